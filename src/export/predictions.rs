//! Predictions in SWE-bench's format: each attempt's changes as a patch, one JSON object per line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::ExportSource;
use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::run::record_index::IndexedRecord;

/// One line of a predictions file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Prediction {
    /// The sample's id.
    pub instance_id: String,
    /// The agent's label, followed by `__` and the model's name if there is one.
    pub model_name_or_path: String,
    /// The attempt's changes to the masked repo, as a diff for `git apply`.
    pub model_patch: String,
}

/// Writes one file for each agent and attempt number into the folder `path`, as `<agent>.<attempt>.jsonl`, or
/// `<agent>__<model>.<attempt>.jsonl` if an agent has several models, because SWE-bench allows one prediction per
/// instance. A path that ends in `.jsonl` is a single file, for a run that needs only one. Attempts without a diff are
/// left out and noted.
///
/// # Errors
/// Kind `Usage` for a single file if several are needed; kind `Store` if a record is gone; kind `Machine` if a file
/// cannot be written.
pub fn export(source: &ExportSource, path: &Path) -> Result<Vec<PathBuf>> {
    source.require_attempts()?;
    let mut files: BTreeMap<(&str, Option<&str>, u32), Vec<&IndexedRecord>> = BTreeMap::new();
    for brief in source.attempts() {
        files.entry((&brief.agent, brief.model.as_deref(), brief.attempt)).or_default().push(brief);
    }
    let is_file = path.extension().is_some_and(|extension| extension == "jsonl");
    if is_file && files.len() > 1 {
        return Err(Error::usage(format!(
            "the run has {} combinations of agent, model and attempt, but a predictions file holds only one",
            files.len()
        ))
        .hint("give a folder with `-o`: one file is written for each combination"));
    }
    let names = source.names();
    let mut written = Vec::new();
    for ((agent, model, attempt), briefs) in files {
        let name = || format!("{}.{attempt}.jsonl", names.get(agent, model));
        let path = if is_file { path.to_owned() } else { path.join(name()) };
        let mut destination = None;
        for brief in briefs {
            let record = source.whole(brief)?;
            let Some(model_patch) = source.patch(&record) else { continue };
            let model = record.model.as_ref().map(|model| format!("__{model}")).unwrap_or_default();
            let model_name_or_path = format!("{}{model}", record.agent);
            let file = match &mut destination {
                Some(file) => file,
                none => none.insert(WholeFile::create_with_folders(&path)?),
            };
            file.json_line(&Prediction { instance_id: record.sample, model_name_or_path, model_patch })?;
        }
        // Without any prediction, `destination` is `None`, so no file is written.
        written.extend(destination.map(WholeFile::finish).transpose()?);
    }
    Ok(written)
}
