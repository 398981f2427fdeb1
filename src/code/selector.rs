//! Selectors, which name functions: `pkg/file.py::Class.method`, with `#2` for the second function of that name in the
//! file.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The name of a function within a repo, written as `pkg/file.py::Class.method#2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Selector {
    /// The file, relative to the repo's root.
    pub file: PathBuf,
    /// The function's qualified name, which is Python's `__qualname__` without `<locals>`. If the file defines several
    /// functions of that name, `#k` (from 1) follows.
    pub name: String,
}

impl Selector {
    /// Creates the selector of the function `name` of `file`.
    pub fn new(file: impl AsRef<Path>, name: impl Into<String>) -> Self {
        Self { file: file.as_ref().to_path_buf(), name: name.into() }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.file.display(), self.name)
    }
}

crate::files::stored_as_text!(Selector);

impl FromStr for Selector {
    type Err = Error;

    /// # Errors
    /// Returns an error of kind `Suite` if there is no `::`, no file or name, a file outside the repo, or a `#` without
    /// a number from 1.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| {
            Error::suite(format!("`{text}` does not name a function: {why}"))
                .hint("write it as `pkg/file.py::Class.method`, with `#2` for the second one of the same name")
        };
        let (file, name) = text.split_once("::").ok_or_else(|| wrong("no `::` in it"))?;
        if file.is_empty() {
            return Err(wrong("no file before `::`"));
        }
        let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside {
            return Err(wrong("the file must be relative to the repo's root, without `..`"));
        }
        let (bare, number) = split_number(name).ok_or_else(|| wrong("after `#` comes a number from 1"))?;
        if bare.is_empty() || bare.split('.').any(str::is_empty) || bare.contains(char::is_whitespace) {
            return Err(wrong("no function's name after `::`"));
        }
        let file = Path::new(file).components().filter(|part| *part != Component::CurDir).collect();
        let name = number.map_or_else(|| bare.to_owned(), |number| format!("{bare}#{number}"));
        Ok(Self { file, name })
    }
}

/// Splits `name#k` into the name and k. Returns `None` if the text after `#` is not a number from 1.
pub(super) fn split_number(name: &str) -> Option<(&str, Option<usize>)> {
    match name.split_once('#') {
        None => Some((name, None)),
        Some((bare, number)) => match number.parse() {
            Ok(number) if number > 0 => Some((bare, Some(number))),
            _ => None,
        },
    }
}

/// Returns the region's name in the selector `path/file.py::function[name]`; `None` for a function.
pub(crate) fn region_name(unit: &str) -> Option<&str> {
    Some(unit.strip_suffix(']')?.split_once('[')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_printed_as_it_was_parsed() {
        for text in ["a.py::f", "pkg/losses.py::EnergyLoss.__call__", "a.py::outer.inner", "a.py::f#2"] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
            let json = serde_json::to_string(&selector).unwrap();
            assert_eq!(serde_json::from_str::<Selector>(&json).unwrap(), selector);
        }
    }

    #[test]
    fn a_leading_dot_in_the_path_is_dropped() {
        assert_eq!("./a/b.py::f".parse::<Selector>().unwrap(), Selector::new("a/b.py", "f"));
    }

    #[test]
    fn malformed_selectors_are_refused_with_a_hint() {
        for text in ["", "f", "a.py", "::f", "a.py::", "a.py::f#", "a.py::f#0", "a.py::f#x", "a.py::f..g", "a.py::f g"]
        {
            let error = text.parse::<Selector>().unwrap_err();
            assert!(error.hint.is_some(), "{text}");
            assert!(error.message.contains(&format!("`{text}`")), "{}", error.message);
        }
    }

    #[test]
    fn a_selector_cannot_leave_the_repo() {
        for text in ["/etc/a.py::f", "../a.py::f", "pkg/../../a.py::f"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }
}
