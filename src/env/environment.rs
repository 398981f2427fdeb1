//! `environment.yml`, a conda environment file: its whole contents ([`EnvironmentFile`]), and the subset that a venv
//! supports ([`Environment`]).
//!
//! Supported keys: `name`, `channels` (ignored for a venv), `dependencies` with one `pip:` list, and `variables`. The
//! only conda packages that a venv can provide are `python`, `pip`, `setuptools` and `wheel`; an error lists any
//! others.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_saphyr::Spanned;

use super::python::{PythonSpec, PythonVersion};
use crate::error::{Error, Result};
use crate::files::hex;

/// Name of the file in `envs/<id>/`.
const FILE: &str = "environment.yml";

/// Contents of the file.
#[derive(Debug, Clone)]
pub(super) struct EnvironmentFile {
    /// Name of the env's folder under `envs/`.
    pub(super) id: String,
    /// Path of the `environment.yml`.
    pub(super) path: PathBuf,
    /// SHA-256 of the `environment.yml` in hex.
    pub(super) digest: String,
    /// Channels in order, each with its line number.
    #[cfg_attr(not(feature = "conda"), expect(dead_code, reason = "a venv has no channels"))]
    pub(super) channels: Vec<(String, usize)>,
    /// conda's match specifications, each with its line number.
    pub(super) specs: Vec<(String, usize)>,
    /// Requirements for pip.
    pub(super) pip: Vec<String>,
    /// Environment variables to set when the env is activated.
    pub(super) variables: BTreeMap<String, String>,
}

/// The part of an `environment.yml` that a venv supports.
#[derive(Debug, Clone)]
pub(super) struct Environment {
    /// Name of the env's folder under `envs/`.
    pub(super) id: String,
    /// Path of the `environment.yml`.
    pub(super) path: PathBuf,
    /// Accepted versions of Python.
    pub(super) python: PythonSpec,
    /// Requirements for pip.
    pub(super) requirements: Vec<String>,
    /// Environment variables to set when the env is activated.
    pub(super) variables: BTreeMap<String, String>,
    /// SHA-256 of the `environment.yml` in hex.
    pub(super) digest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EnvironmentYml {
    #[serde(default, rename = "name")]
    _name: Option<String>,
    #[serde(default, rename = "prefix")]
    _prefix: Option<String>,
    #[serde(default)]
    channels: Vec<Spanned<String>>,
    dependencies: Vec<Spanned<Dependency>>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
}

enum Dependency {
    Conda(String),
    Pip(Vec<Spanned<String>>),
}

impl<'de> Deserialize<'de> for Dependency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Dependency;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a package as `python=3.11`, or a `pip:` list")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Dependency, E> {
                Ok(Dependency::Conda(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dependency, A::Error> {
                let key: Option<String> = map.next_key()?;
                if key.as_deref() != Some("pip") {
                    return Err(serde::de::Error::custom("only `pip:` can be a nested list"));
                }
                let lines = map.next_value()?;
                match map.next_key::<String>()? {
                    None => Ok(Dependency::Pip(lines)),
                    Some(_) => Err(serde::de::Error::custom("only `pip:` can be a nested list")),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl EnvironmentFile {
    /// Reads the `environment.yml` in `folder`.
    ///
    /// # Errors
    /// Kind `Suite`, with the file and, if known, the line.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::suite(format!("failed to read `{}`", path.display()))
                .because(error)
                .hint("an env is a folder under `envs/` with an `environment.yml`; check the manifest's `env`")
        })?;
        let yml: EnvironmentYml = serde_saphyr::from_str(&text).map_err(|error| {
            let line = error.location().map(|location| location.line() as usize);
            Error::suite(error.without_snippet().to_string())
                .at(&path, line)
                .hint("the fields are `name`, `channels`, `dependencies` and `variables`")
        })?;
        let lined = |text: Spanned<String>| (text.value.trim().to_owned(), text.referenced.line() as usize);
        let mut source = Self {
            id,
            digest: hex(&<sha2::Sha256 as sha2::Digest>::digest(text.as_bytes())),
            channels: yml.channels.into_iter().map(lined).collect(),
            specs: Vec::new(),
            pip: Vec::new(),
            variables: yml.variables,
            path,
        };
        let mut faults = Vec::new();
        for dependency in yml.dependencies {
            let line = dependency.referenced.line() as usize;
            match dependency.value {
                Dependency::Conda(spec) => source.specs.push((spec, line)),
                Dependency::Pip(lines) => {
                    for (requirement, line) in lines.into_iter().map(lined) {
                        faults.extend(source.refuse_odd(&requirement, line).err());
                        source.pip.push(requirement);
                    }
                }
            }
        }
        match Error::all(faults) {
            None => Ok(source),
            Some(error) => Err(error),
        }
    }

    /// Fails for a requirement that pip cannot lock by version and hash.
    fn refuse_odd(&self, requirement: &str, line: usize) -> Result<()> {
        let refuse = |why: &str| {
            Err(Error::suite(format!("`{requirement}` {why}"))
                .at(&self.path, Some(line))
                .hint("give a name and a version, such as `numpy==2.3.5`; indexes belong in pip's own configuration"))
        };
        if requirement.starts_with('-') {
            return refuse("is an option of pip, not a package");
        }
        if requirement.is_empty() || has_line_break(requirement) || requirement.contains('\\') {
            return refuse("is not a package");
        }
        if !is_from_index(requirement) {
            return refuse("does not come from a package index, so it cannot be locked by version and hash");
        }
        Ok(())
    }
}

/// Whether a requirement names a package of an index. Returns `false` for a requirement with a slash or with the ending
/// of an archive: pip would treat it as a file or a folder, and run the code in it. Returns `false` for control
/// characters, too: pip ends a line at some of them, and would read the rest as another requirement or option.
#[must_use]
pub fn is_from_index(requirement: &str) -> bool {
    const ARCHIVES: [&str; 11] =
        [".whl", ".zip", ".tar", ".tgz", ".tbz", ".txz", ".tlz", ".gz", ".bz2", ".xz", ".lzma"];
    let package = requirement.split(';').next().unwrap_or_default().trim().to_lowercase();
    let is_file = package.contains('/') || ARCHIVES.iter().any(|ending| package.ends_with(ending));
    let begins_well = package.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    begins_well
        && !is_file
        && !requirement.contains('@')
        && !requirement.contains("://")
        && !has_line_break(requirement)
}

fn has_line_break(text: &str) -> bool {
    text.contains(|letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}'))
}

impl Environment {
    /// Reads the `environment.yml` in `folder`.
    ///
    /// # Errors
    /// Kind `Suite`, with the file and, if known, the line.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let EnvironmentFile { id, path, digest, specs, pip, variables, .. } = EnvironmentFile::read(folder)?;
        let mut environment = Self { id, path, digest, variables, python: PythonSpec::any(), requirements: Vec::new() };
        let mut foreign: Vec<(String, usize)> = Vec::new();
        for (spec, line) in specs {
            environment.add_conda(&spec, line, &mut foreign)?;
        }
        if let Some((_, line)) = foreign.first() {
            let names: Vec<String> = foreign.iter().map(|(name, _)| format!("`{name}`")).collect();
            return Err(Error::suite(format!("a venv cannot provide the conda packages {}", names.join(", ")))
                .at(&environment.path, Some(*line))
                .hint("request them under `pip:` if they are on PyPI, or use `--env conda`"));
        }
        environment.requirements.extend(pip);
        Ok(environment)
    }

    fn add_conda(&mut self, spec: &str, line: usize, foreign: &mut Vec<(String, usize)>) -> Result<()> {
        let end =
            spec.find(|letter: char| !(letter.is_ascii_alphanumeric() || "-_.".contains(letter))).unwrap_or(spec.len());
        let (name, rest) = spec.split_at(end);
        match name.to_ascii_lowercase().as_str() {
            "python" => {
                self.python = PythonSpec::parse(rest).map_err(|why| {
                    Error::suite(format!("failed to read `{spec}`: {why}"))
                        .at(&self.path, Some(line))
                        .hint("write it as `python=3.11`, `python 3.11.*` or `python>=3.10,<3.14`")
                })?;
            }
            "pip" => {}
            tool @ ("setuptools" | "wheel") if rest.trim().is_empty() => self.requirements.push(tool.to_owned()),
            other => foreign.push((other.to_owned(), line)),
        }
        Ok(())
    }

    /// Whether an interpreter with this version of Python is accepted.
    pub(super) fn accepts(&self, version: PythonVersion) -> bool {
        self.python.matches(version)
    }
}

#[cfg(test)]
mod tests {
    use super::is_from_index;

    #[test]
    fn requirements_that_pip_takes_for_files_folders_or_further_lines_do_not_come_from_an_index() {
        for package in ["numpy", "numpy==2.3.5", "a.b-c[d,e]>=1,<2; python_version < '3.12'", "zope.interface ~= 5.0"] {
            assert!(is_from_index(package), "{package}");
        }
        for other in [
            "./a",
            "/a",
            "x/../tasks/a",
            "a.whl",
            "A.TAR.GZ; python_version > '3'",
            "-e a",
            "a @ file:///b",
            "git+https://a/b",
            "a\r-e b",
            "a\u{2028}b",
            "a\u{c}b",
            "{a}",
            "",
        ] {
            assert!(!is_from_index(other), "{other:?}");
        }
    }
}
