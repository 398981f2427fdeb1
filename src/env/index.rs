//! The package indexes that pip is configured to use, so that this program can read packages from them without pip.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::environment::Environment;
use super::interpreter::{find, usual_places};
use super::pip::{TAKEN_AWAY, make_venv};
use super::python::PythonSpec;
use crate::error::{Error, Result};

/// Python code that prints the address of the index that pip uses without any configuration.
const DEFAULT: &str = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";

/// pip's configuration of indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipIndexes {
    /// Addresses of the indexes, the main one first.
    pub addresses: Vec<String>,
    /// File of certificates to trust, if configured.
    pub certificates: Option<PathBuf>,
}

/// Asks pip for its configured indexes.
///
/// # Errors
/// Kind `Machine` if there is no interpreter, or its pip does not answer.
pub async fn pip_indexes() -> Result<PipIndexes> {
    let any = Environment {
        id: "index".to_owned(),
        path: PathBuf::new(),
        python: PythonSpec::any(),
        requirements: Vec::new(),
        variables: std::collections::BTreeMap::new(),
        digest: String::new(),
    };
    let interpreter = find(&any, &usual_places(), |_| false).await?;
    let scratch = tempfile::tempdir().map_err(|error| Error::io("create", &std::env::temp_dir(), error))?;
    let mut python = interpreter.path;
    let configured = if let Ok(configured) = answer(&python, &["-m", "pip", "config", "list"]).await {
        configured
    } else {
        // Some systems have a Python without pip, but such a Python can make a venv that contains pip.
        let prefix = scratch.path().join("venv");
        make_venv(&python, &prefix, None, &|_| {}).await?;
        python = prefix.join("bin/python");
        answer(&python, &["-m", "pip", "config", "list"]).await?
    };
    let mut indexes = read(&configured);
    if !has_main(&configured) {
        indexes.addresses.insert(0, answer(&python, &["-c", DEFAULT]).await?.trim().to_owned());
    }
    Ok(indexes)
}

async fn answer(python: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(python);
    command.args(arguments).stdin(std::process::Stdio::null()).kill_on_drop(true);
    command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    for name in TAKEN_AWAY {
        command.env_remove(name);
    }
    let output = command.output().await.map_err(|error| Error::io("run", python, error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::machine(format!("pip's configuration cannot be read: {said}"))
            .hint("try `python3 -m pip config list`, and install pip if it is missing"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the value of a key in the output of `pip config list`. The value comes from the first section that sets the
/// key, in this order: `:env:` (environment variables), `download`, `install`, `global`.
fn value(configured: &str, key: &str) -> Option<String> {
    let of = |section: &str| {
        configured.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            let value = value.trim().trim_matches(['\'', '"']);
            (name.trim() == format!("{section}.{key}")).then(|| value.replace("\\n", "\n"))
        })
    };
    [":env:", "download", "install", "global"].into_iter().find_map(of)
}

/// Same as [`value`], for a key whose value is a list.
fn values(configured: &str, key: &str) -> Vec<String> {
    value(configured, key).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn has_main(configured: &str) -> bool {
    !values(configured, "index-url").is_empty()
}

fn read(configured: &str) -> PipIndexes {
    let mut addresses = values(configured, "index-url");
    addresses.truncate(1);
    addresses.extend(values(configured, "extra-index-url"));
    PipIndexes { addresses, certificates: value(configured, "cert").map(PathBuf::from) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_variables_override_pip_configuration_files_and_extra_indexes_follow_the_main_index() {
        let configured = "global.index-url='https://one/simple'\n:env:.index-url='https://two/simple'\n\
                          global.extra-index-url='\\nhttps://three/simple\\nhttps://four/simple'\nglobal.cert='/a b.pem'\n";
        let found = read(configured);
        assert_eq!(found.addresses, ["https://two/simple", "https://three/simple", "https://four/simple"]);
        assert_eq!(found.certificates, Some(PathBuf::from("/a b.pem")));
        assert!(has_main(configured));
        assert!(!has_main("global.timeout='3'\n"));
    }
}
