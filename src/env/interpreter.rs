//! Finds a Python interpreter on this machine: tries out every Python 3 in the usual folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::environment::Environment;
use super::python::{OLDEST, PythonSpec, PythonVersion};
use crate::error::{Error, Result};

/// An interpreter that can create venvs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// Path of the executable with links resolved.
    pub(super) path: PathBuf,
    pub(super) version: PythonVersion,
    /// Folders that a sandbox must contain for the interpreter to run: the interpreter's prefix, and folders of
    /// libraries that are outside both the prefix and the system's folders.
    pub(super) read_only: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct InterpreterFacts {
    version: PythonVersion,
    release: bool,
    implementation: String,
    base: PathBuf,
    missing: Vec<String>,
    libraries: Vec<PathBuf>,
}

/// Result of trying out a candidate: the interpreter, or why it cannot be used.
type ProbeResult = (PathBuf, Result<Interpreter, String>);

/// Formats a version as `3.11.7`.
pub(super) fn dotted(version: PythonVersion) -> String {
    version.map(|number| number.to_string()).join(".")
}

/// Returns the folders to search: PATH (without pyenv's shims, which only start pyenv's versions), pyenv, uv, conda,
/// and the system's folders.
pub(super) fn usual_places() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME").unwrap_or_default();
    let mut places: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    places.retain(|place| place.is_absolute() && !place.ends_with("shims"));
    let inside = |places: &mut Vec<PathBuf>, folder: PathBuf| {
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path().join("bin")).collect();
        found.sort();
        places.extend(found);
    };
    inside(&mut places, variable("PYENV_ROOT").unwrap_or_else(|| home.join(".pyenv")).join("versions"));
    inside(&mut places, variable("UV_PYTHON_INSTALL_DIR").unwrap_or_else(|| home.join(".local/share/uv/python")));
    let condas = ["miniforge3", "mambaforge", "miniconda3", "anaconda3", "micromamba"]
        .iter()
        .flat_map(|name| [home.join(name), Path::new("/opt").join(name)])
        .chain([PathBuf::from("/opt/conda")]);
    for conda in condas {
        inside(&mut places, conda.join("envs"));
        places.push(conda.join("bin"));
    }
    places.extend(["/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    places
}

/// Finds the best interpreter for an environment, among those that the environment accepts and that can create a venv.
/// Prefers interpreters for which `preferred` is true, then the highest version, then the first folder.
///
/// # Errors
/// Kind `Machine`, listing the interpreters that were found and why each was rejected.
pub(super) async fn find(
    environment: &Environment,
    places: &[PathBuf],
    preferred: impl Fn(PythonVersion) -> bool,
) -> Result<Interpreter> {
    let mut refused = Vec::new();
    let mut best: Option<Interpreter> = None;
    for (path, probed) in probe_all(candidates(places)).await {
        match probed {
            Ok(found) if !environment.accepts(found.version) => {
                refused.push(format!("{} is {}", path.display(), dotted(found.version)));
            }
            Ok(found) => {
                let rank = |one: &Interpreter| (preferred(one.version), one.version);
                if best.as_ref().is_none_or(|best| rank(&found) > rank(best)) {
                    best = Some(found);
                }
            }
            Err(why) => refused.push(format!("{} {why}", path.display())),
        }
    }
    best.ok_or_else(|| {
        // An interpreter that did not answer in time may still be suitable, for example on an overloaded machine.
        if refused.iter().any(|why| why.contains(SILENT)) {
            return Error::machine(format!(
                "it is not known whether an interpreter fits the env `{}`: {}",
                environment.id,
                refused.join("; ")
            ))
            .at(&environment.path, None)
            .hint("the machine is busy or the disk is slow: try again later, or with fewer jobs (`-j`)");
        }
        let found = if refused.is_empty() { "none was found".to_owned() } else { refused.join("; ") };
        Error::machine(format!("the env `{}` needs {}: {found}", environment.id, environment.python))
            .at(&environment.path, None)
            .hint("install one with its `venv` module (`apt install python3-venv`, `pyenv install 3.12`, `uv python install 3.12`), on PATH or in the usual place")
    })
}

/// Returns the full version, such as `3.11.7`, of the newest interpreter in a version range. `id` is the env's id, for
/// messages.
///
/// # Errors
/// Kind `Usage` for an invalid range; otherwise as [`find`].
pub async fn newest(range: &str, id: &str) -> Result<String> {
    let python = PythonSpec::parse(range).map_err(|why| Error::usage(format!("`--python {range}`: {why}")))?;
    let asked = Environment {
        id: id.to_owned(),
        path: PathBuf::from("environment.yml"),
        python,
        requirements: Vec::new(),
        variables: BTreeMap::new(),
        digest: String::new(),
    };
    find(&asked, &usual_places(), |_| false).await.map(|found| dotted(found.version))
}

/// Lists the files named `python3` or `python3.N`, with links resolved and without duplicates.
fn candidates(places: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for place in places {
        let mut names: Vec<PathBuf> =
            std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        names.retain(|path| {
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix("python3")).is_some_and(
                |rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(|digits| digits.parse::<u64>().is_ok()),
            )
        });
        names.sort();
        for path in names.iter().filter_map(|path| path.canonicalize().ok()) {
            if seen.insert(path.clone()) {
                found.push(path);
            }
        }
    }
    found
}

/// Tries out all candidates in parallel. The results are in the same order.
async fn probe_all(candidates: Vec<PathBuf>) -> Vec<ProbeResult> {
    let mut tasks = JoinSet::new();
    for (number, path) in candidates.into_iter().enumerate() {
        tasks.spawn(async move {
            let probed = probe(&path).await;
            (number, (path, probed))
        });
    }
    let mut answers = tasks.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, probed)| probed).collect()
}

/// Text of the error for an interpreter that did not answer in time.
const SILENT: &str = "did not answer";

async fn probe(path: &Path) -> Result<Interpreter, String> {
    const PATIENCE: Duration = Duration::from_mins(2);
    let mut command = Command::new(path);
    command.args(["-I", "-c", include_str!("probe.py")]).stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(PATIENCE, command.output()).await {
        Err(_) => return Err(format!("{SILENT} within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => return Err(format!("cannot be run ({error})")),
        Ok(Ok(output)) => output,
    };
    let answer: InterpreterFacts = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("did not report its version ({})", last_line(&output.stderr, output.status)))?;
    if answer.implementation != "cpython" || !answer.release {
        return Err(format!("is {} {}, not a release of CPython", answer.implementation, dotted(answer.version)));
    }
    if answer.version < OLDEST {
        return Err(format!("is {}, older than {}", dotted(answer.version), dotted(OLDEST)));
    }
    if !answer.missing.is_empty() {
        return Err(format!("is {} without its module `{}`", dotted(answer.version), answer.missing.join("` and `")));
    }
    let mut read_only = vec![answer.base];
    for library in answer.libraries.into_iter().chain(path.parent().map(Path::to_owned)) {
        let system = ["/usr", "/lib", "/lib64", "/lib32"].iter().any(|folder| library.starts_with(folder));
        if !system && !read_only.iter().any(|folder| library.starts_with(folder)) {
            read_only.push(library);
        }
    }
    Ok(Interpreter { path: path.to_owned(), version: answer.version, read_only })
}

fn last_line(stderr: &[u8], status: std::process::ExitStatus) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .map_or_else(|| status.to_string(), |line| line.trim().to_owned())
}
