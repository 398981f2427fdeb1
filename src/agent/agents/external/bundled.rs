//! The external agents that come with this program. Their manifests and the files that define their envs are compiled
//! into the program.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::hex;
use crate::files::write_whole;

/// An external agent that comes with this program.
pub(super) struct BundledFiles {
    pub(super) name: &'static str,
    pub(super) manifest: &'static str,
    /// Names and contents of the two files that define the agent's env: the package list and the lock file.
    files: [(&'static str, &'static str); 2],
}

macro_rules! bundled {
    ($name:literal, $env:literal, $lock:literal) => {
        BundledFiles {
            name: $name,
            manifest: include_str!(concat!("../../../../agents/", $name, "/agent.toml")),
            files: [
                ($env, include_str!(concat!("../../../../agents/", $name, "/", $env))),
                ($lock, include_str!(concat!("../../../../agents/", $name, "/", $lock))),
            ],
        }
    };
    (npm $name:literal) => {
        bundled!($name, "package.json", "package-lock.json")
    };
    (pip $name:literal) => {
        bundled!($name, "environment.yml", "venv.lock")
    };
}

pub(super) const ALL: [BundledFiles; 15] = [
    bundled!(pip "aider"),
    bundled!(npm "claude-code"),
    bundled!(npm "cline"),
    bundled!(npm "codex"),
    bundled!(npm "copilot"),
    bundled!(npm "droid"),
    bundled!(npm "gemini-cli"),
    bundled!(npm "goose"),
    bundled!(pip "gptme"),
    bundled!(npm "kimi-code"),
    bundled!(pip "mini-swe-agent"),
    bundled!(npm "opencode"),
    bundled!(pip "openhands"),
    bundled!(npm "pi"),
    bundled!(npm "qwen-code"),
];

/// Names of the files that list an env's packages, for npm and for PyPI.
pub(super) const NPM: &str = "package.json";
pub(super) const PYPI: &str = "environment.yml";

/// Finds the first package with a pinned version in the text of a [`NPM`] or [`PYPI`] file. Returns the package index,
/// the package and the version, such as "npm: NAME VERSION".
pub(super) fn source(file: &str, text: &str) -> String {
    let index = if file == NPM { "npm" } else { "PyPI" };
    let mark = if index == "npm" { "\": \"" } else { "==" };
    let is_pin = |line: &&str| {
        line.split_once(mark).is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
    };
    let (package, version) = text.lines().find(is_pin).and_then(|line| line.split_once(mark)).unwrap_or_default();
    let package = package.rsplit(['"', ' ']).next().unwrap_or_default();
    let version = version.split(['"', ' ', ',']).next().unwrap_or_default();
    format!("{index}: {package} {version}")
}

impl BundledFiles {
    /// Returns package index, package and version, such as "npm: NAME VERSION".
    pub(super) fn source(&self) -> String {
        let (name, text) = self.files[0];
        source(name, text)
    }

    /// Writes the env's files to a folder in the cache, named by their digest, and returns the folder.
    pub(super) fn unpack(&self, cache: &Path) -> Result<PathBuf> {
        let digest = hex(&Sha256::digest(format!("{}\0{}", self.files[0].1, self.files[1].1)));
        let folder = cache.join("agents").join(&digest[..16]).join(self.name);
        std::fs::create_dir_all(&folder).map_err(|error| Error::io("write", &folder, error))?;
        for (name, text) in self.files {
            let path = folder.join(name);
            if std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
                continue;
            }
            // Replace the file as a whole, because another process may be reading it.
            write_whole(&path, text.as_bytes())?;
        }
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ExternalAgent;
    use super::*;

    #[test]
    fn every_bundled_manifest_loads_in_all_modes_and_its_env_is_unpacked_once() {
        let open = |spec: &str| ExternalAgent::open(&spec.parse().unwrap()).unwrap();
        let cache = tempfile::tempdir().unwrap();
        for bundled in &ALL {
            open(bundled.name);
            let folder = bundled.unpack(cache.path()).unwrap();
            assert_eq!(folder, bundled.unpack(cache.path()).unwrap());
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
            assert!(bundled.source().rsplit(' ').next().unwrap().starts_with(char::is_numeric), "{}", bundled.source());
        }
        open("mini-swe-agent,mode=text");
        open("gptme,mode=openai");
    }
}
