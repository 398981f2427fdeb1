//! A task with all files of its folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::changes::PermittedChanges;
use super::manifest::{LandmarkCheck, TaskManifest};
use super::trace::Calls;
use crate::error::{Error, FailureKind, Result};
use crate::files::hex;
use crate::kernel::split_cells;
use crate::sample::UpSets;

/// Name of the [`GoldRecord`] file in a task's folder.
pub const RECORD: &str = "record.json";

/// Record of a run of the gold cells (the reference solution): the parts of the repository that it changed, its calls
/// of the repository's functions, and the cells in which a shell command failed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldRecord {
    /// The changed parts of the repository.
    pub changed: Vec<String>,
    /// The calls of the repository's functions.
    pub calls: Calls,
    /// Code of the gold cells in which a shell command fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl GoldRecord {
    /// Returns the text of the record's file, with one line per function.
    #[must_use]
    pub fn to_text(&self) -> String {
        let calls = self.calls.iter().map(|(name, values)| format!("    {}: {}", json!(name), json!(values)));
        let calls: Vec<String> = calls.collect();
        let failed =
            if self.failed.is_empty() { String::new() } else { format!("  \"failed\": {},\n", json!(self.failed)) };
        let (changed, calls) = (json!(self.changed), calls.join(",\n"));
        format!("{{\n  \"changed\": {changed},\n{failed}  \"calls\": {{\n{calls}\n  }}\n}}\n")
    }
}

/// A task loaded from its folder.
pub struct LoadedTask {
    /// The task's id, such as `ir.rankers`.
    pub id: String,
    /// The parsed `task.toml`.
    pub manifest: TaskManifest,
    /// The gold cells (the reference solution) of each block.
    pub cells: Vec<Vec<String>>,
    /// For each landmark (sign of progress), the text of its probe, a script that checks it; `None` without a probe.
    pub probes: Vec<Option<String>>,
    /// The gold answer; `None` until it is recorded.
    pub answer: Option<Value>,
    /// The file of the gold answer.
    pub answer_path: PathBuf,
    /// The changes and calls of a run of the gold cells; `None` until they are recorded.
    pub record: Option<GoldRecord>,
    /// Parts of the repository that a solution may change.
    pub permitted: PermittedChanges,
    /// For each block, the earlier blocks that it needs. A sample that withholds a block also withholds all blocks that
    /// need it.
    pub order: UpSets,
    /// Folder of the repo.
    pub repo_dir: PathBuf,
    /// Folder of the base env.
    pub env_dir: PathBuf,
    /// The list of wheels that `pip install` can install.
    pub wheels: Option<PathBuf>,
    /// Digest of the task's files and its list of wheels.
    pub digest: String,
}

/// Returns the ids of a suite's tasks.
///
/// # Errors
/// Kind `Suite` if there is no `tasks` folder, `Machine` if they cannot be read.
pub(super) fn task_ids(suite: &Path) -> Result<Vec<String>> {
    let folder = suite.join("tasks");
    if !folder.is_dir() {
        return Err(Error::suite(format!("no tasks in `{}`: there is no folder `tasks`", suite.display()))
            .hint("run in the project's folder, or name a suite's folder with `--suite DIR`"));
    }
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))? {
        let entry = entry.map_err(|error| Error::io("read", &folder, error))?;
        if entry.path().join("task.toml").is_file()
            && let Ok(id) = entry.file_name().into_string()
        {
            ids.push(id);
        }
    }
    ids.sort();
    Ok(ids)
}

impl LoadedTask {
    /// Loads a task.
    ///
    /// # Errors
    /// Kind `Machine` if the manifest cannot be read; `Suite` for any other fault.
    pub fn load(suite: &Path, id: &str) -> Result<Self> {
        let suite = std::path::absolute(suite).map_err(|error| Error::io("resolve", suite, error))?;
        let dir = suite.join("tasks").join(id);
        let path = dir.join("task.toml");
        if !id.split_once('.').is_some_and(|(cluster, item)| !cluster.is_empty() && !item.is_empty()) {
            return Err(Error::suite(format!("`{id}` is not the name of a task: a name is `<cluster>.<item>`")));
        }
        let manifest = TaskManifest::load(&path)?;
        let mut hash = Sha256::new();
        let mut read = |file: &Path| {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Error::suite(format!("failed to read `{}`", file.display())).at(&path, None).because(error)
            })?;
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(&text);
            Ok::<_, Error>(text)
        };
        read(&path)?;
        let mut cells = Vec::new();
        for block in &manifest.blocks {
            let mut all = Vec::new();
            for file in &block.cells {
                all.extend(split_cells(&read(&dir.join(file))?));
            }
            cells.push(all);
        }
        let mut probes = Vec::new();
        for landmark in &manifest.landmarks {
            probes.push(match &landmark.check {
                LandmarkCheck::Probe(file) => Some(read(&dir.join(file))?),
                LandmarkCheck::Entry(_) => None,
            });
        }
        let gold = dir.join("answer.json");
        let answer = if gold.exists() {
            let text = read(&gold)?;
            let value: Value = serde_json::from_str(&text)
                .map_err(|error| Error::suite("is not JSON").at(&gold, None).because(error))?;
            if value.as_object().is_none_or(serde_json::Map::is_empty) {
                return Err(
                    Error::suite("the gold answer must be a JSON object with at least one value").at(&gold, None)
                );
            }
            Some(value)
        } else {
            None
        };
        let recorded = dir.join(RECORD);
        let record: Option<GoldRecord> =
            if recorded.exists() {
                let text = read(&recorded)?;
                Some(serde_json::from_str(&text).map_err(|error| {
                    Error::suite("is not a record of gold's run").at(&recorded, None).because(error)
                })?)
            } else {
                None
            };
        let changed = record.iter().flat_map(|record| &record.changed);
        let permitted = PermittedChanges::new(changed.chain(&manifest.may_change).map(String::as_str))?;
        let wheels = manifest.wheels.as_ref().map(|name| suite.join("wheels").join(format!("{name}.txt")));
        if let Some(wheels) = &wheels {
            read(wheels)?;
        }
        let (repo_dir, env_dir) = (suite.join("repos").join(&manifest.repo), suite.join("envs").join(&manifest.env));
        for (kind, name, folder) in [("repo", &manifest.repo, &repo_dir), ("env", &manifest.env, &env_dir)] {
            if !folder.is_dir() {
                return Err(Error::suite(format!("there is no {kind} `{name}`"))
                    .at(&path, None)
                    .hint(format!("it belongs in `{}`", folder.display())));
            }
        }
        let (digest, order) = (hex(&hash.finalize()), manifest.order());
        Ok(Self {
            id: id.to_owned(),
            manifest,
            cells,
            probes,
            answer,
            answer_path: gold,
            record,
            permitted,
            order,
            repo_dir,
            env_dir,
            wheels,
            digest,
        })
    }

    /// Returns the gold answer.
    ///
    /// # Errors
    /// Kind `Baseline` if the gold answer, or the changes and calls of gold's run, have not been recorded.
    pub fn gold(&self) -> Result<&Value> {
        let missing = |what: &str| {
            Error::new(FailureKind::Baseline, format!("task `{}` has no {what}", self.id))
                .hint(format!("`autoexperiment gold --family notebook {}` records it", self.id))
        };
        self.record.as_ref().ok_or_else(|| missing("record of gold's run"))?;
        self.answer.as_ref().ok_or_else(|| missing("gold answer"))
    }

    /// Returns, in order, the cells of the blocks in `withheld` or, if `inside` is false, of all other blocks.
    #[must_use]
    pub(super) fn cells_of(&self, withheld: &[usize], inside: bool) -> Vec<String> {
        let blocks = self.cells.iter().enumerate();
        blocks.filter(|(place, _)| withheld.contains(place) == inside).flat_map(|(_, cells)| cells.clone()).collect()
    }
}
