//! The external agent that a user names on the command line.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::bundled;
use crate::error::{Error, Result};

/// An external agent and its mode: a name or a folder, optionally followed by `,mode=NAME`. A folder must be written
/// with a `/` and contain a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAgentSpec {
    pub(super) which: String,
    pub(super) mode: Option<String>,
}

impl ExternalAgentSpec {
    /// Returns the folder, if the user gave a folder.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.which.contains('/').then(|| Path::new(&self.which))
    }

    /// Returns a copy of this agent that contains the absolute path of the agent's folder; `here` makes a path
    /// absolute. If the user gave a name that no bundled agent has, the folder is `others/NAME`. If there is no such
    /// folder, or if the agent is bundled, the copy is unchanged.
    ///
    /// # Errors
    /// Returns the errors of `here`.
    pub fn located(&self, others: &Path, here: impl Fn(&Path) -> Result<PathBuf>) -> Result<Self> {
        let is_bundled = || bundled::ALL.iter().any(|bundled| bundled.name == self.which);
        let folder = match self.folder() {
            Some(folder) => here(folder)?,
            None if self.which.is_empty() || is_bundled() => return Ok(self.clone()),
            None => {
                let folder = here(&others.join(&self.which))?;
                if !folder.is_dir() {
                    return Ok(self.clone());
                }
                folder
            }
        };
        Ok(Self { which: folder.display().to_string(), mode: self.mode.clone() })
    }

    /// Returns the agent's name. If the user gave a folder, this is the last part of its path.
    pub(super) fn id(&self) -> String {
        let name = self.folder().map(|folder| folder.file_name().unwrap_or_default());
        name.map_or_else(|| self.which.clone(), |name| name.to_string_lossy().into_owned())
    }

    /// Returns the label of the agent and its mode for file names and tables.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.mode {
            Some(mode) => format!("{}+mode={mode}", self.id()),
            None => self.id(),
        }
    }
}

impl FromStr for ExternalAgentSpec {
    type Err = Error;

    /// # Errors
    /// Kind `Usage` for a setting other than `mode`.
    fn from_str(text: &str) -> Result<Self> {
        // Search for a comma only after the last slash, because the folder's path may contain commas.
        let name = text.rfind('/').map_or(0, |slash| slash + 1);
        let (which, setting) = match text[name..].find(',') {
            Some(comma) => (&text[..name + comma], Some(&text[name + comma + 1..])),
            None => (text, None),
        };
        let mode = match setting.map(|setting| (setting, setting.split_once('='))) {
            None => None,
            Some((_, Some(("mode", mode)))) if !mode.is_empty() => Some(mode.to_owned()),
            Some((setting, _)) => {
                return Err(Error::usage(format!("`{setting}` is not a setting of `cli:{which}`"))
                    .hint("the only setting is `mode=NAME`"));
            }
        };
        Ok(Self { which: which.to_owned(), mode })
    }
}

impl fmt::Display for ExternalAgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.which)?;
        self.mode.iter().try_for_each(|mode| write!(f, ",mode={mode}"))
    }
}
