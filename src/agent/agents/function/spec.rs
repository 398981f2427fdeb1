//! The Python function that a user names on the command line.

use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A Python file and the name of a function in it: `FILE.py:NAME`, or `FILE.py` alone if the file defines only one
/// agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionSpec {
    /// The file.
    pub file: PathBuf,
    /// The function's name; `None` for the file's only agent.
    pub name: Option<String>,
}

impl FunctionSpec {
    /// Returns the same agent, with the path of its file made absolute by calling `here`.
    ///
    /// # Errors
    /// Returns the errors of `here`.
    pub fn in_file<E>(self, here: impl Fn(&Path) -> Result<PathBuf, E>) -> Result<Self, E> {
        Ok(Self { file: here(&self.file)?, ..self })
    }

    /// Returns the agent's label for file names and tables: the name of the function, or else the name of its file.
    #[must_use]
    pub fn label(&self) -> String {
        let stem = || self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.name.clone().unwrap_or_else(stem)
    }
}

impl FromStr for FunctionSpec {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        Ok(match text.rsplit_once(':').filter(|(_, name)| is_name(name)) {
            Some((file, name)) => Self { file: file.into(), name: Some(name.to_owned()) },
            None => Self { file: text.into(), name: None },
        })
    }
}

impl fmt::Display for FunctionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.name.iter().try_for_each(|name| write!(f, ":{name}"))
    }
}
