//! Converts stored completions of ResearchCodeBench to replies that the agent `replies` can submit in a run, and
//! compares the outcomes of this run with the stored outcomes.
//!
//! The benchmark stores a run as one JSON object: problems, their files, the snippets of each file, and for each
//! snippet and model the completions with the outcome of the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::spec::labelled;
use crate::agent::{AgentSpec, StoredReply, stored_replies};
use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::masked::withheld;
use crate::run::reading::read;
use crate::run::{AttemptRecord, RunFile, counting, is_file_name};
use crate::suite::{LoadedPaper, Suite};

#[derive(Deserialize)]
struct StoredRun {
    problems: Vec<StoredProblem>,
}

#[derive(Deserialize)]
struct StoredProblem {
    folder_name: String,
    problem_files: Vec<StoredFile>,
}

#[derive(Deserialize)]
struct StoredFile {
    rel_path: String,
    snippets: Vec<StoredSnippet>,
}

#[derive(Deserialize)]
struct StoredSnippet {
    name: String,
    #[serde(default)]
    predictions: Option<BTreeMap<String, StoredPrediction>>,
}

#[derive(Deserialize)]
struct StoredPrediction {
    completions: Vec<StoredCompletion>,
}

#[derive(Deserialize)]
struct StoredCompletion {
    completion: String,
    #[serde(default)]
    test_result: Option<StoredOutcome>,
}

#[derive(Deserialize)]
struct StoredOutcome {
    passed: bool,
}

/// The replies of one model, written to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelReplies {
    /// Name of the model in the benchmark.
    pub model: String,
    /// File that contains the model's replies.
    pub file: PathBuf,
    /// Number of replies.
    pub replies: usize,
    /// Largest number of replies to a single snippet.
    pub attempts: u32,
    /// Papers with a reply.
    pub papers: BTreeSet<String>,
}

/// Result of importing a stored run: the replies of each model, and the papers and snippets (the benchmark's tasks)
/// that were left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedReplies {
    /// Replies of each model, sorted by the model's name.
    pub models: Vec<ModelReplies>,
    /// Papers and snippets (the benchmark's tasks) that were left out, with the reason.
    pub left_out: Vec<String>,
}

/// Writes the completions of a stored run into the new folder `output`, one file for each model.
///
/// # Errors
/// Kind `Usage` if the file is not a stored run or has no completion of the suite's papers, or the folder exists; kind
/// `Machine` if a file cannot be written.
pub fn import_replies(file: &Path, suite: &Suite, output: &Path) -> Result<ImportedReplies> {
    if output.symlink_metadata().is_ok() {
        return Err(Error::usage(format!("`{}` exists already", output.display())).hint("name a new folder"));
    }
    let text = std::fs::read(file).map_err(|error| Error::io("read", file, error))?;
    let run: StoredRun = serde_json::from_slice(&text).map_err(|error| {
        Error::usage("not a stored run of ResearchCodeBench")
            .at(file, Some(error.line()))
            .because(error)
            .hint("give the JSON file that its `main.py` writes, with `problems`, `problem_files` and `snippets`")
    })?;
    let mut models: BTreeMap<String, Vec<StoredReply>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for problem in run.problems {
        let id = problem.folder_name;
        if crate::draft::require_id(&id).is_err() || !suite.paper_dir(&id).is_dir() {
            left_out.push(format!("`{id}`: the suite does not have this paper"));
            continue;
        }
        let paper = LoadedPaper::load(suite, &id)?;
        for stored in problem.problem_files {
            let mut seen: BTreeMap<String, usize> = BTreeMap::new();
            for snippet in stored.snippets {
                let number = seen.entry(snippet.name.clone()).or_default();
                *number += 1;
                let Some(unit) = unit(&paper, &stored.rel_path, &snippet.name, *number) else {
                    left_out.push(format!(
                        "`{id}`: the paper has no region for the snippet `{}` of `{}`",
                        snippet.name, stored.rel_path
                    ));
                    continue;
                };
                for (model, prediction) in snippet.predictions.into_iter().flatten() {
                    let replies = models.entry(model).or_default();
                    replies.extend((0..).zip(prediction.completions).map(|(attempt, completion)| StoredReply {
                        paper: id.clone(),
                        unit: unit.clone(),
                        attempt,
                        text: completion.completion,
                        passed: completion.test_result.map(|outcome| outcome.passed),
                    }));
                }
            }
        }
    }
    if let Some(odd) = models.keys().find(|model| !is_file_name(model)) {
        return Err(Error::usage(format!("the model's name `{odd}` cannot be a file's name")).at(file, None));
    }
    if models.values().all(Vec::is_empty) {
        return Err(Error::usage("the stored run has no completion for the suite's papers")
            .at(file, None)
            .hint("import the tasks first: `autoexperiment import researchcodebench-tasks`"));
    }
    let mut written = Vec::new();
    for (model, replies) in models {
        let mut destination = WholeFile::create_with_folders(&output.join(format!("{model}.jsonl")))?;
        for reply in &replies {
            destination.json_line(reply)?;
        }
        written.push(ModelReplies {
            model,
            file: destination.finish()?,
            attempts: replies.iter().map(|reply| reply.attempt + 1).max().unwrap_or_default(),
            papers: replies.iter().map(|reply| reply.paper.clone()).collect(),
            replies: replies.len(),
        });
    }
    Ok(ImportedReplies { models: written, left_out })
}

/// Returns the name of the marked region of code that belongs to the benchmark's snippet `name` in a file. If several
/// snippets in the file have this name, `number` (from 1) selects one of them.
fn unit(paper: &LoadedPaper, file: &str, name: &str, number: usize) -> Option<String> {
    let regions = &paper.paper.regions;
    let place = regions.iter().position(|region| {
        let at = region.at.split("::").next().unwrap_or_default();
        at == file && region.tag.as_deref() == Some(name) && region.number.unwrap_or(1) == number
    })?;
    paper.paper.units.iter().find(|unit| unit.region == Some(place)).map(|unit| unit.at.clone())
}

/// Outcomes of replies: as stored by the benchmark, and in a run of this program.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ComparedReplies {
    /// Number of replies whose outcome is known both in the benchmark and in the run.
    pub compared: usize,
    /// Number of compared replies that pass both in the benchmark and in the run.
    pub both_pass: usize,
    /// Number of compared replies that fail both in the benchmark and in the run.
    pub both_fail: usize,
    /// Pass rates of the compared replies in percent, first in the benchmark and then in the run. Each reply is
    /// weighted by the number of lines that it replaces.
    pub line_rates: Option<[f64; 2]>,
    /// Pass rates of the compared replies in percent, first in the benchmark and then in the run.
    pub task_rates: Option<[f64; 2]>,
    /// Replies whose two outcomes differ.
    pub differences: Vec<ReplyDifference>,
    /// Number of attempts of the run that are not compared, because not exactly one part of the code is masked, or
    /// because the outcome in the benchmark or in the run is unknown.
    pub left_out: usize,
}

/// A reply whose stored outcome differs from its outcome in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyDifference {
    /// The paper's id.
    pub paper: String,
    /// Name of the masked part of the code, as in tables.
    pub unit: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// Whether the reply passes in the run of this program.
    pub passes_here: bool,
    /// Why the reply fails in the run of this program, if it does and the reason is known.
    pub reason: Option<String>,
}

/// Compares the attempts of the agent `replies` in a stored run with the outcomes in the file of replies.
///
/// # Errors
/// Kind `Usage` for a broken file of replies, or if no attempt of the run can be compared; kind `Store` if the folder
/// is not a run; kind `Suite` if the run's suite cannot be loaded.
pub fn compare_replies(file: &Path, folder: &Path) -> Result<ComparedReplies> {
    let replies: BTreeMap<(String, String, u32), Option<bool>> = stored_replies(file)?
        .into_iter()
        .map(|(_, reply)| ((reply.paper, reply.unit, reply.attempt), reply.passed))
        .collect();
    let run = read::<AttemptRecord>(folder)?;
    let label = agent_of(file, run.run.as_ref(), folder)?;
    let is_reply = |record: &AttemptRecord| *record.agent == *label;
    let suite = run.run.as_ref().map(|run| run.configuration.suite.clone()).unwrap_or_default();
    let suite = Suite::open(&suite)?;
    let mut papers: BTreeMap<String, LoadedPaper> = BTreeMap::new();
    let mut compared = ComparedReplies::default();
    let (mut lines, mut passed, mut tasks) = (0, [0, 0], [0, 0]);
    let flags = counting(&run.records);
    for (record, _) in run.records.iter().zip(flags).filter(|(record, counts)| *counts && is_reply(record)) {
        if !papers.contains_key(&record.paper) {
            papers.insert(record.paper.clone(), LoadedPaper::load(&suite, &record.paper)?);
        }
        let units = withheld(&record.sample)?.units;
        let (Some(paper), [unit]) = (papers.get(&record.paper), units.as_slice()) else {
            compared.left_out += 1;
            continue;
        };
        let at = paper.paper.units.get(*unit).map(|unit| unit.at.clone()).unwrap_or_default();
        let there = replies.get(&(record.paper.clone(), at.clone(), record.attempt)).copied().flatten();
        let Some(there) = there.filter(|_| !record.is_infrastructure()) else {
            compared.left_out += 1;
            continue;
        };
        let count = paper.masked_lines(&units);
        lines += count;
        compared.compared += 1;
        for (place, passes) in [there, record.pass].into_iter().enumerate() {
            tasks[place] += usize::from(passes);
            passed[place] += if passes { count } else { 0 };
        }
        match (there, record.pass) {
            (true, true) => compared.both_pass += 1,
            (false, false) => compared.both_fail += 1,
            (_, passes_here) => compared.differences.push(ReplyDifference {
                paper: record.paper.clone(),
                unit: at,
                attempt: record.attempt,
                passes_here,
                reason: reason(record).filter(|_| !passes_here),
            }),
        }
    }
    if compared.compared == 0 {
        return Err(Error::usage("none of the run's attempts used a stored reply whose published outcome is known")
            .hint("make one with `autoexperiment run -n 1 --agent replies:FILE`"));
    }
    let percent =
        |part: [usize; 2], whole: usize| (whole > 0).then(|| part.map(|part| 100.0 * part as f64 / whole as f64));
    (compared.line_rates, compared.task_rates) = (percent(passed, lines), percent(tasks, compared.compared));
    Ok(compared)
}

/// Returns the label of the run's agent `replies` that submitted the replies of this file. If the run has only one agent
/// of this kind, the file may have moved since.
///
/// # Errors
/// Kind `Usage` if the run has several agents `replies`, and either none or more than one of them used this file.
fn agent_of(file: &Path, run: Option<&RunFile>, folder: &Path) -> Result<String> {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let configuration = run.map(|run| &run.configuration);
    let agents = configuration.map(|it| labelled(&it.agents, &it.settings)).unwrap_or_default();
    let of_replies: Vec<(String, &PathBuf)> = agents
        .into_iter()
        .filter_map(|(label, spec)| if let AgentSpec::Replies(path) = spec { Some((label, path)) } else { None })
        .collect();
    let of_file: Vec<&String> =
        of_replies.iter().filter(|(_, path)| whole(path) == whole(file)).map(|(label, _)| label).collect();
    match (&of_file[..], &of_replies[..]) {
        ([label], _) => Ok((*label).clone()),
        ([], [(label, _)]) => Ok(label.clone()),
        ([], []) => Ok("replies".to_owned()),
        _ => Err(Error::usage(format!(
            "run `{}` has {} agents `replies`, and {} of them used `{}`: one of them cannot be chosen",
            folder.display(),
            of_replies.len(),
            of_file.len(),
            file.display()
        ))
        .hint(format!(
            "give the file of one agent, where the run read it: `{}`",
            of_replies.iter().map(|(_, path)| path.display().to_string()).collect::<Vec<_>>().join("`, `")
        ))),
    }
}

/// Returns the first known reason why an attempt failed: details of its end, or else a reason in its verdict.
fn reason(record: &AttemptRecord) -> Option<String> {
    let verdict = record.verified.as_ref()?;
    let of_experiments = verdict.experiments.iter().flat_map(|experiment| {
        let of_values = experiment.values.iter().filter(|value| !value.pass).map(|value| {
            let path = &value.path;
            value.reason.as_ref().map_or_else(|| format!("`{path}`"), |reason| format!("`{path}`: {reason}"))
        });
        experiment.reason.clone().into_iter().chain(of_values)
    });
    record.end_detail.clone().into_iter().chain(verdict.reason.clone()).chain(of_experiments).next()
}
