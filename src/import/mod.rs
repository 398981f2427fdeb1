//! Imports data of other projects: papers of the published AutoExperiment data, into an existing suite;
//! ResearchCodeBench's [`tasks`], into a new suite; and other benchmarks' stored [`results`], which are scored again.
//!
//! The published AutoExperiment data ([`published`]) identifies functions by file, bare name and line numbers. Line
//! numbers are outdated, names are not unique, and gold results come in several sets that disagree. So functions are
//! located by more reliable evidence ([`find`]), every correction and doubt is reported, and ambiguous functions are
//! rejected with their candidates, so that a person can decide.

mod find;
mod gold;
mod manifest;
mod published;
pub mod replies;
pub mod results;
pub mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::draft::{Draft, repo, text};
use crate::error::{Error, Result};
use crate::files;
use crate::suite::{Dependencies, LoadedPaper, Suite, result_numbers};
use crate::workspace::repo_digest;

pub use published::{PaperFolder, PublishedFolder, PublishedPaper};

/// Decisions that a person made for an import.
#[derive(Debug, Clone, Default)]
pub struct Decisions {
    /// Selectors that the user gave for published functions, for which the import then does not search. The key is the
    /// paper's id and the function's id in the published benchmark.
    pub at: BTreeMap<(String, String), String>,
    /// Whether to leave out functions that are missing or cannot be located for certain. If false, papers with such
    /// functions are rejected.
    pub leave_out: bool,
}

/// A remark to the user about an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ImportRemark {
    /// A published error that the import has corrected.
    Correction {
        /// Subject of the remark, such as `experiment 3` or a file.
        about: String,
        /// The correction.
        what: String,
    },
    /// Something that may be wrong in the imported data, which a person should check.
    Doubt {
        /// Subject of the remark, such as `experiment 3` or a file.
        about: String,
        /// The possible mistake.
        what: String,
    },
    /// A part of the published data that the import has left out.
    LeftOut {
        /// Subject of the remark, such as `experiment 3` or a file.
        about: String,
        /// Why the import has left out this part of the data.
        what: String,
    },
}

impl ImportRemark {
    fn correction(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Correction { about: about.into(), what: what.into() }
    }

    fn doubt(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Doubt { about: about.into(), what: what.into() }
    }

    fn left_out(about: impl Into<String>, what: impl Into<String>) -> Self {
        Self::LeftOut { about: about.into(), what: what.into() }
    }

    /// Returns the kind of the remark (`correction`, `doubt` or `left out`), what the remark is about, and its text.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &str, &str) {
        match self {
            Self::Correction { about, what } => ("correction", about, what),
            Self::Doubt { about, what } => ("doubt", about, what),
            Self::LeftOut { about, what } => ("left out", about, what),
        }
    }
}

/// Result of importing a paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The paper's id.
    pub paper: String,
    /// The paper's functions in the manifest's order: the selector of each, and its id in the published benchmark.
    pub functions: Vec<(String, String)>,
    /// Number of experiments.
    pub experiments: usize,
    /// Remarks about the import.
    pub findings: Vec<ImportRemark>,
}

/// Imports one published paper into the suite, as a paper, a repo and an env; completely or not at all.
///
/// # Errors
/// Kind `Suite` for functions that are ambiguous or missing (the error lists all of them with their candidates), and
/// for sources that cannot be parsed; kind `Usage` if the suite already has the paper; kind `Machine` if a file cannot
/// be read or written.
pub fn import(
    suite: &Suite,
    published: &PublishedFolder,
    paper: &PublishedPaper,
    decisions: &Decisions,
) -> Result<Imported> {
    let mut findings = Vec::new();
    let mut draft = Draft::begin(suite, &paper.id)?;
    let repo_dir = draft.suite().repo_dir(&paper.id);
    // Keep files that contain published functions, even if they look like tests.
    let keep: Vec<String> = paper.functions.iter().map(|function| globset::escape(&function.file)).collect();
    let left_out = repo::copy(&paper.code, &repo_dir, &repo::CopyRules::new(&keep, &[])?)?;
    findings.extend(left_out.iter().map(|(path, why)| ImportRemark::left_out(path.display().to_string(), *why)));

    let functions = find::find(&repo_dir, paper, decisions, &mut findings)?;
    let experiments = gold::experiments(published, paper, &mut findings)?;
    let needs = needs(paper, &functions, &experiments, &mut findings);
    let text = paper_text(paper, &experiments, &mut findings)?;
    let env = environment(&mut draft, paper, &mut findings)?;
    let manifest = manifest::write(&manifest::ImportedManifest {
        paper,
        env: &env,
        functions: &functions,
        experiments: &experiments,
        text: &text,
        repo: &repo_dir,
    });
    draft.write("paper.md", &text)?;
    draft.write("paper.toml", &manifest)?;
    draft.write("published.json", &gold::sets(&experiments)?)?;
    let digest = repo_digest(&repo_dir)?;
    let matrix = Dependencies { format: 1, repo: digest, needs, gone: Vec::new() };
    let mut json = serde_json::to_string_pretty(&matrix)
        .map_err(|error| Error::internal("failed to serialise dependencies").because(error))?;
    json.push('\n');
    draft.write("dependencies.json", &json)?;
    findings.push(ImportRemark::doubt(
        "dependencies.json",
        "published, not measured: `autoexperiment verify` measures them",
    ));
    findings.push(ImportRemark::doubt(
        "gold",
        "has to be recorded here: `autoexperiment gold`; the published results are in published.json",
    ));

    // Check that the imported paper can be loaded and that each of its functions can be masked.
    let proven = LoadedPaper::load(draft.suite(), &paper.id)
        .and_then(|loaded| (0..functions.len()).try_for_each(|place| loaded.prove_mask(place)));
    proven.map_err(|error| draft.outside(error))?;
    draft.move_into_suite()?;
    Ok(Imported {
        paper: paper.id.clone(),
        functions: functions.into_iter().map(|found| (found.selector, found.number)).collect(),
        experiments: experiments.len(),
        findings,
    })
}

/// Returns which functions each experiment needs, as published with the experiments. Published functions also list the
/// experiments that need them. Reports where these lists differ from what is returned.
fn needs(
    paper: &PublishedPaper,
    functions: &[find::FoundFunction],
    experiments: &[gold::PublishedExperiment],
    findings: &mut Vec<ImportRemark>,
) -> BTreeMap<String, BTreeSet<String>> {
    let selectors: BTreeMap<&str, &str> =
        functions.iter().map(|found| (found.number.as_str(), found.selector.as_str())).collect();
    let mut needs = BTreeMap::new();
    for experiment in experiments {
        let mut needed = BTreeSet::new();
        for number in &experiment.dependencies {
            match selectors.get(number.as_str()) {
                Some(selector) => {
                    needed.insert((*selector).to_owned());
                }
                None => findings.push(ImportRemark::left_out(
                    format!("experiment {}", experiment.number),
                    format!("it needs function {number}, which does not exist"),
                )),
            }
        }
        needs.insert(experiment.id.clone(), needed);
    }
    for function in &paper.functions {
        let Some(said) = &function.experiments else { continue };
        let by_experiments: BTreeSet<&str> = experiments
            .iter()
            .filter(|experiment| experiment.dependencies.contains(&function.number))
            .map(|experiment| experiment.number.as_str())
            .collect();
        if by_experiments != said.iter().map(String::as_str).collect() {
            findings.push(ImportRemark::doubt(
                format!("function {}", function.number),
                "its own list of experiments differs from what the experiments say; theirs is kept",
            ));
        }
    }
    needs
}

/// Returns the paper's text without its results.
fn paper_text(
    paper: &PublishedPaper,
    experiments: &[gold::PublishedExperiment],
    findings: &mut Vec<ImportRemark>,
) -> Result<String> {
    let source = text::TextSource::read(&paper.text)?;
    let mut values = Vec::new();
    let results = experiments.iter().flat_map(|experiment| &experiment.results);
    for (_, result) in results {
        result_numbers(result, &mut |value| values.push(value));
    }
    let scrubbed = source.without_results(&values);
    if scrubbed.removed > 0 {
        findings.push(ImportRemark::correction(
            "paper.md",
            format!(
                "{} results were still in the published text and have been removed; check the remaining text",
                scrubbed.removed
            ),
        ));
    }
    Ok(scrubbed.text)
}

/// Creates the env from the paper's environment file or, without one, from a template that a person must complete.
/// Returns the env's id.
fn environment(draft: &mut Draft, paper: &PublishedPaper, findings: &mut Vec<ImportRemark>) -> Result<String> {
    let yml = if let Some(path) = &paper.environment {
        std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?
    } else {
        let called = paper.environment_name.as_ref().map(|name| format!(" (the environment is called `{name}`)"));
        findings.push(ImportRemark::doubt(
            "environment.yml",
            format!("not published with the paper{}: add the packages by hand", called.unwrap_or_default()),
        ));
        "dependencies:\n  - python>=3.10,<3.14\n".to_owned()
    };
    draft.write_env(&yml)?;
    Ok(paper.id.clone())
}

/// Reads a file of JSON lines.
fn json_lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let broken = |number, error| Error::suite(format!("broken line: {error}")).at(path, Some(number));
    files::json_lines(&text).map(|line| line.value.map_err(|error| broken(line.number, error))).collect()
}
