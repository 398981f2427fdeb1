//! Predictions as SWE-bench has them: what each attempt changed, as a patch, one JSON object a line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::Source;
use crate::error::{Error, Result};
use crate::files::{WholeFile, bounded};

/// A line of a file of predictions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Prediction {
    /// The sample's id.
    pub instance_id: String,
    /// The agent's label and, behind `__`, the model's name.
    pub model_name_or_path: String,
    /// What the attempt changed in the masked repo, a diff that `git apply` takes.
    pub model_patch: String,
}

/// Writes a file for each agent and each number of attempt into the folder `path`, as `<agent>.<attempt>.jsonl`, or
/// `<agent>__<model>.<attempt>.jsonl` where an agent has several models: SWE-bench knows one prediction an instance. A path that ends in `.jsonl` is a file, for a run of which one file would come.
/// Attempts without a diff are left out and noted.
///
/// # Errors
/// Kind `Usage` for a file when several are needed; kind `Machine` when one cannot be written.
pub fn export(source: &Source, path: &Path) -> Result<Vec<PathBuf>> {
    source.require_attempts()?;
    let mut files: BTreeMap<(&str, Option<&str>, u32), Vec<Prediction>> = BTreeMap::new();
    for record in source.attempts() {
        let Some(model_patch) = source.patch(record) else { continue };
        let model = record.model.as_ref().map(|model| format!("__{model}")).unwrap_or_default();
        files.entry((&record.agent, record.model.as_deref(), record.attempt)).or_default().push(Prediction {
            instance_id: record.sample.clone(),
            model_name_or_path: format!("{}{model}", record.agent),
            model_patch,
        });
    }
    let is_file = path.extension().is_some_and(|extension| extension == "jsonl");
    if is_file && files.len() > 1 {
        return Err(Error::usage(format!(
            "the run has {} combinations of agent, model and attempt, and a file of predictions holds one",
            files.len()
        ))
        .hint("name a folder with `-o`: it gets a file for each"));
    }
    // An agent with several models has a file for each.
    let mut models: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
    for (agent, model, _) in files.keys() {
        models.entry(agent).or_default().insert(*model);
    }
    let name = |agent: &str, model: Option<&str>| match model {
        Some(model) if models.get(agent).is_some_and(|models| models.len() > 1) => {
            format!("{agent}__{}", model.replace('/', "-"))
        }
        _ => agent.to_owned(),
    };
    let mut written = Vec::new();
    for ((agent, model, attempt), predictions) in files {
        let path = if is_file {
            path.to_owned()
        } else {
            path.join(format!("{}.{attempt}.jsonl", bounded(&name(agent, model))))
        };
        let mut destination = WholeFile::create_with_folders(&path)?;
        for prediction in &predictions {
            destination.json_line(prediction)?;
        }
        written.push(destination.finish()?);
    }
    Ok(written)
}
