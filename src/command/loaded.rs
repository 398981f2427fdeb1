//! Loads the instructions for a repo (each is a task), their documentation and their gold from the suite.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::gold::CommandGold;
use super::manifest::{CommandSet, Instruction};
use crate::error::{Error, Result};
use crate::files::hex;
use crate::workspace::repo_digest;

/// Folder in a suite that contains the instructions for repos.
pub const FOLDER: &str = "commands";

/// The instructions for a repo (each is a task), with their documentation and gold.
#[derive(Debug, Clone)]
pub struct LoadedCommands {
    /// The repo's id, such as `kmeanspp`.
    pub id: String,
    /// The manifest.
    pub set: Arc<CommandSet>,
    /// Paths and texts of the documentation.
    pub docs: Vec<(String, String)>,
    /// Gold: the results of the programs that the manifest gives as right solutions. `None` if gold has not been
    /// recorded.
    pub gold: Option<Arc<CommandGold>>,
    /// Digest of manifest, files, repo and gold.
    pub digest: String,
    /// The suite's folder.
    pub suite: PathBuf,
}

/// Lists the ids of all repos with instructions, sorted.
///
/// # Errors
/// Kind `Suite` if the suite has none, `Machine` if the folder cannot be read.
pub fn ids(suite: &Path) -> Result<Vec<String>> {
    let folder = suite.join(FOLDER);
    if !folder.is_dir() {
        return Err(Error::suite(format!("no instructions in `{}`: there is no folder `{FOLDER}`", suite.display()))
            .hint("run in the project's folder, or name a suite's folder with `--suite DIR`"));
    }
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))? {
        let entry = entry.map_err(|error| Error::io("read", &folder, error))?;
        let name = entry.file_name();
        ids.extend(name.to_str().and_then(|name| name.strip_suffix(".toml")).map(str::to_owned));
    }
    ids.sort();
    Ok(ids)
}

impl LoadedCommands {
    /// Loads the instructions for the repo `id`.
    ///
    /// # Errors
    /// Kind `Suite` if a file is missing or invalid.
    pub fn load(suite: &Path, id: &str) -> Result<Self> {
        let path = suite.join(FOLDER).join(format!("{id}.toml"));
        let set = CommandSet::read(&path)?;
        let mut hasher = Sha256::new();
        let mut read = |path: &Path| {
            let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
            Ok::<_, Error>(bytes)
        };
        read(&path)?;
        let mut docs = Vec::new();
        for name in &set.readme {
            let text = String::from_utf8_lossy(&read(&suite.join(FOLDER).join(id).join(name))?).into_owned();
            docs.push((name.clone(), text));
        }
        let gold_path = gold_path(suite, id);
        let gold = if gold_path.exists() {
            read(&gold_path)?;
            CommandGold::read(&gold_path)?.map(Arc::new)
        } else {
            None
        };
        hasher.update(repo_digest(&suite.join(FOLDER).join(id))?);
        if let Some(repo) = &set.repo {
            hasher.update(repo_digest(&suite.join("repos").join(repo))?);
        }
        let digest = hex(&hasher.finalize());
        Ok(Self { id: id.to_owned(), set: Arc::new(set), docs, gold, digest, suite: suite.to_owned() })
    }

    /// Finds an instruction by id.
    ///
    /// # Errors
    /// Kind `Usage` for an unknown id.
    pub fn instruction(&self, id: &str) -> Result<&Instruction> {
        self.set.instructions.iter().find(|it| it.id == id).ok_or_else(|| {
            let ids: Vec<&str> = self.set.instructions.iter().map(|it| it.id.as_str()).collect();
            Error::usage(format!("`{}` has no instruction `{}`", self.id, id.escape_debug()))
                .hint(format!("the instructions are: {}", ids.join(", ")))
        })
    }

    /// Returns the path of the gold file.
    #[must_use]
    pub fn gold_path(&self) -> PathBuf {
        gold_path(&self.suite, &self.id)
    }

    /// Returns the folder whose files are copied over the repo.
    #[must_use]
    pub fn overlay(&self) -> PathBuf {
        self.suite.join(FOLDER).join(&self.id)
    }
}

fn gold_path(suite: &Path, id: &str) -> PathBuf {
    suite.join(FOLDER).join(format!("{id}.gold.json"))
}
