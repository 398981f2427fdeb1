//! Where conda's configuration is found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::address::absolute;
use crate::error::{Error, Result};

/// The machine's configuration files and this process's environment variables.
#[derive(Debug, Clone)]
pub(in crate::env) struct CondarcLocations {
    /// The folder that contains `etc` and `var`: `/`, except in tests.
    pub(super) root: PathBuf,
    /// Variables of the environment.
    pub(super) variables: BTreeMap<String, String>,
}

/// Names of configuration files in conda's folders, and of a folder with such files.
const NAMES: [&str; 3] = [".condarc", "condarc", "condarc.d"];

impl CondarcLocations {
    /// Returns the locations for this process: the real root folder and this process's environment variables.
    pub(in crate::env) fn here() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { root: PathBuf::from("/"), variables: std::env::vars_os().filter_map(text).collect() }
    }

    /// Returns the value of an environment variable; `None` if the variable is not set or empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.variable("HOME").map(Path::new)
    }

    /// Returns the folder in which conda is installed, according to the environment variables that conda's shell hook
    /// sets. `CONDA_EXE` names the executable, which is in a subfolder.
    fn conda_root(&self) -> Option<PathBuf> {
        let of_program = |program: &str| Some(Path::new(program).parent()?.parent()?.to_owned());
        (self.variable("CONDA_ROOT").map(PathBuf::from))
            .or_else(|| self.variable("CONDA_EXE").and_then(of_program))
            .or_else(|| self.variable("MAMBA_ROOT_PREFIX").map(PathBuf::from))
    }

    /// Expands environment variables written as `${TOKEN}` or `$TOKEN`; unset variables are left as written.
    pub(super) fn expanded(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            expanded.push_str(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            let (name, end) = if let Some(braced) = after.strip_prefix('{') {
                braced.find('}').map_or(("", 0), |close| (&braced[..close], close + 2))
            } else {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                (&after[..end], end)
            };
            match self.variables.get(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.push_str(&rest[dollar..=dollar + end]),
            }
            rest = &after[end..];
        }
        expanded + rest
    }

    /// Returns all existing configuration files, in ascending order of precedence: the machine's, conda's own, the
    /// user's, the active environment's, and the file named by `CONDARC`.
    ///
    /// # Errors
    /// Kind `Machine` if a folder of such files cannot be read, or if `CONDARC` names a missing file.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        if self.variable("CONDA_RESTRICT_RC_SEARCH_PATH").is_none() {
            let home = self.home();
            let folders = [
                Some(self.root.join("etc/conda")),
                Some(self.root.join("var/lib/conda")),
                self.conda_root(),
                self.variable("XDG_CONFIG_HOME").map(|folder| Path::new(folder).join("conda")),
                home.map(|home| home.join(".config/conda")),
                home.map(|home| home.join(".conda")),
            ];
            for folder in folders.into_iter().flatten() {
                add_all(&folder, &mut found)?;
            }
            found.extend(home.map(|home| home.join(".condarc")).filter(|file| file.is_file()));
            if let Some(prefix) = self.variable("CONDA_PREFIX") {
                add_all(Path::new(prefix), &mut found)?;
            }
        }
        if let Some(named) = self.variable("CONDARC") {
            let path = PathBuf::from(absolute(named, Path::new(""), self.home()));
            if !path.exists() {
                return Err(Error::machine(format!("`CONDARC` names `{}`, which does not exist", path.display()))
                    .hint("correct the variable, or unset it"));
            }
            add(&path, &mut found)?;
        }
        Ok(found)
    }
}

/// Adds all configuration files in one of conda's folders.
fn add_all(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    NAMES.iter().map(|name| folder.join(name)).filter(|path| path.exists()).try_for_each(|path| add(&path, found))
}

/// Adds a file, or the `.yml` and `.yaml` files of a folder, sorted by name. A file that was already found moves to the
/// end, where it has higher precedence.
fn add(path: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| Error::io("read", path, error))?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| {
            let named = file.file_name().is_some_and(|name| NAMES.iter().any(|one| name == *one));
            file.is_file() && (named || file.extension().is_some_and(|kind| kind == "yml" || kind == "yaml"))
        });
        files.sort();
    }
    found.retain(|file| !files.contains(file));
    found.append(&mut files);
    Ok(())
}
