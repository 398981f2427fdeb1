//! Published experiments and their results. Several files may state the result of an experiment, and may disagree: the
//! paper's own `experiments.jsonl`, the `experiments.jsonl` of all papers, and the samples in `mlrc_n=<n>.jsonl`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ImportRemark;
use super::published::{PublishedFolder, PublishedPaper, plain};
use crate::error::{Error, Result};
use crate::score::{Tolerance, score_experiment};
use crate::suite::is_manifest_id;

/// A published experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedExperiment {
    /// The experiment's id in the manifest.
    pub id: String,
    /// Published id of the experiment (`exp_id`), usually a number.
    pub number: String,
    /// Description of the measurement.
    pub description: String,
    /// The experiment's command.
    pub command: String,
    /// Published ids (`func_id`) of the functions that the experiment needs.
    pub dependencies: Vec<String>,
    /// Published results, each with the name of the file that states it.
    pub results: Vec<(String, Value)>,
}

/// Reads a paper's experiments. Reports results that disagree with each other, results that are not JSON, and results
/// that are equal to another experiment's.
///
/// # Errors
/// Kind `Suite` if the paper has no experiments, or an experiment has no command or an invalid id.
pub fn experiments(
    published: &PublishedFolder,
    paper: &PublishedPaper,
    findings: &mut Vec<ImportRemark>,
) -> Result<Vec<PublishedExperiment>> {
    let of_paper = |value: &&Value| value["paper_id"].as_str() == Some(&paper.id);
    let together: Vec<&Value> = published.experiments.iter().filter(of_paper).collect();
    let own: Vec<&Value> =
        if paper.experiments.is_empty() { together.clone() } else { paper.experiments.iter().collect() };
    if own.is_empty() {
        return Err(Error::suite(format!("paper `{}` has no experiments", paper.id))
            .hint("they belong in its `experiments.jsonl`"));
    }
    let mut found: Vec<PublishedExperiment> = Vec::new();
    for value in own {
        let number = value.get("exp_id").map(plain).unwrap_or_default();
        let about = format!("experiment {number}");
        let text = |name: &str| value[name].as_str().unwrap_or_default().trim().to_owned();
        let command = text("solution");
        if number.is_empty() || command.is_empty() {
            return Err(Error::suite(format!("paper `{}`: an experiment without `exp_id` or `solution`", paper.id)));
        }
        if !is_manifest_id(&number) {
            return Err(Error::suite(format!(
                "paper `{}`: an experiment with the invalid `exp_id` {number:?}",
                paper.id
            ))
            .hint("an id consists of letters, digits, `.`, `_` and `-`"));
        }
        let mut results = Vec::new();
        let same = |other: &&&Value| other.get("exp_id").map(plain).as_ref() == Some(&number);
        let source = if paper.experiments.is_empty() { "experiments.jsonl" } else { "the paper's experiments.jsonl" };
        add(source, &value["result"], &about, &mut results, findings);
        if !paper.experiments.is_empty()
            && let Some(other) = together.iter().find(same)
        {
            add("experiments.jsonl", &other["result"], &about, &mut results, findings);
        }
        for (file, samples) in &published.samples {
            if let Some(result) = sampled(samples, &paper.id, &command) {
                add(file, &result, &about, &mut results, findings);
            }
        }
        let dependencies = value["func_dependencies"].as_str().unwrap_or_default();
        found.push(PublishedExperiment {
            id: format!("e{number}"),
            number,
            description: text("description"),
            command,
            dependencies: dependencies.split(',').map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect(),
            results,
        });
    }
    for experiment in &found {
        disagreements(experiment, findings);
    }
    twins(&found, findings);
    findings.push(ImportRemark::doubt(
        "experiments",
        "how results are read is not published: the last JSON line of stdout is taken; correct `result` in paper.toml",
    ));
    Ok(found)
}

/// Adds a result unless an equal result was added before.
fn add(file: &str, result: &Value, about: &str, results: &mut Vec<(String, Value)>, findings: &mut Vec<ImportRemark>) {
    match read(result) {
        Some(value) if results.iter().any(|(_, known)| *known == value) => {}
        Some(value) => results.push((file.to_owned(), value)),
        None => {
            findings.push(ImportRemark::doubt(about, format!("its result in {file} is not JSON: `{}`", plain(result))));
        }
    }
}

/// Parses a result: JSON, a string that contains JSON, or a string that contains a value as Python prints it, with
/// single quotes.
fn read(result: &Value) -> Option<Value> {
    match result {
        Value::Null => None,
        Value::String(text) => {
            serde_json::from_str(text).or_else(|_| serde_json::from_str(&text.replace('\'', "\""))).ok()
        }
        other => Some(other.clone()),
    }
}

/// Finds an experiment's result in the published samples with one number of masked functions. Searches by command,
/// because each sample numbers its experiments differently.
fn sampled(samples: &[Value], paper: &str, command: &str) -> Option<Value> {
    let of_paper = samples.iter().filter(|sample| sample["paper_id"].as_str() == Some(paper));
    for sample in of_paper {
        let commands = commands(sample["solution"].as_str().unwrap_or_default());
        let name = commands.iter().find(|(_, it)| it.as_str() == command).map(|(name, _)| name);
        if let Some(result) = name.and_then(|name| sample["results"].get(name)) {
            return Some(result.clone());
        }
    }
    None
}

/// Splits a sample's script into commands. The script prints a name before each command, as in `echo Experiment 1`; the
/// result maps these names to the commands.
fn commands(script: &str) -> BTreeMap<String, String> {
    let mut commands: BTreeMap<String, String> = BTreeMap::new();
    let mut name = None;
    for line in script.lines() {
        if let Some(next) = line.trim().strip_prefix("echo ").filter(|next| next.starts_with("Experiment ")) {
            name = Some(next.trim().to_owned());
        } else if let Some(name) = &name {
            let command = commands.entry(name.clone()).or_default();
            if !command.is_empty() {
                command.push('\n');
            }
            command.push_str(line.trim_end());
        }
    }
    commands.into_iter().map(|(name, command)| (name, command.trim().to_owned())).collect()
}

/// Reports experiments whose published results differ from each other by more than 5%.
fn disagreements(experiment: &PublishedExperiment, findings: &mut Vec<ImportRemark>) {
    let Some(((first, gold), others)) = experiment.results.split_first() else { return };
    let differing: Vec<&str> =
        others.iter().filter(|(_, other)| !agree(gold, other)).map(|(file, _)| file.as_str()).collect();
    if !differing.is_empty() {
        findings.push(ImportRemark::doubt(
            format!("experiment {}", experiment.number),
            format!("its published results disagree by more than 5%: {first} and {}", differing.join(", ")),
        ));
    }
}

/// Reports experiments with equal results, because a right answer for one of them would be right for all.
fn twins(experiments: &[PublishedExperiment], findings: &mut Vec<ImportRemark>) {
    let gold: Vec<Option<&Value>> = experiments.iter().map(|it| it.results.first().map(|(_, value)| value)).collect();
    for (place, experiment) in experiments.iter().enumerate() {
        let Some(own) = gold[place] else { continue };
        let alike: Vec<&str> = experiments
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place && gold[*other].is_some_and(|other| agree(own, other)))
            .map(|(_, other)| other.number.as_str())
            .collect();
        if !alike.is_empty() {
            findings.push(ImportRemark::doubt(
                format!("experiment {}", experiment.number),
                format!("the gold results of experiments {} would pass for this one, too", alike.join(", ")),
            ));
        }
    }
}

fn agree(gold: &Value, other: &Value) -> bool {
    score_experiment("", gold, Some(other), &Tolerance::default()).pass
}

/// Returns all published results as the text of the file `published.json`.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub fn sets(experiments: &[PublishedExperiment]) -> Result<String> {
    let by_id: Map<String, Value> = experiments
        .iter()
        .map(|experiment| (experiment.id.clone(), experiment.results.iter().cloned().collect::<Map<_, _>>().into()))
        .collect();
    let mut text = serde_json::to_string_pretty(&by_id)
        .map_err(|error| Error::internal("failed to serialise published results").because(error))?;
    text.push('\n');
    Ok(text)
}
