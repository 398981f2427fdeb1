//! Determines which functions of a repo are called when its experiments run (the functions that they enter), by one
//! traced run per experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::propose::ExperimentsByFunction;
use crate::audit::Bench;
use crate::audit::trace::{TracedFunction, trace};
use crate::code::{Module, index_tree};
use crate::error::{Error, FailureKind, Result};
use crate::run::event::{Observer, RunEvent, Stage};

/// The files of a repo.
#[derive(Debug, Default)]
pub struct RepoSources {
    /// Python files that can be parsed.
    pub modules: BTreeMap<PathBuf, Module>,
    /// Errors of the Python files that cannot be parsed.
    pub broken: Vec<Error>,
    /// Paths of the files that are not Python.
    pub others: Vec<PathBuf>,
}

/// Reads the files of a repo.
#[must_use]
pub fn sources(repo: &Path) -> RepoSources {
    let mut found = RepoSources::default();
    for (path, module) in index_tree(repo) {
        match module {
            Ok(module) => drop(found.modules.insert(path, module)),
            Err(error) => found.broken.push(error),
        }
    }
    let files = walkdir::WalkDir::new(repo).sort_by_file_name().into_iter().flatten();
    for entry in files.filter(|entry| entry.file_type().is_file()) {
        let path = entry.path().strip_prefix(repo).unwrap_or(entry.path());
        if path.extension().is_none_or(|extension| extension != "py") {
            found.others.push(path.to_owned());
        }
    }
    found
}

/// Runs each experiment under the tracer. Returns the functions that the experiments enter, and a warning for each
/// experiment whose trace may be incomplete.
///
/// # Errors
/// Kind `Baseline` if the experiments enter no function of the repo; errors of the sandbox.
pub async fn entered(
    bench: &Bench,
    sources: &RepoSources,
    observer: &dyn Observer,
) -> Result<(ExperimentsByFunction, Vec<String>)> {
    let paper = &bench.loaded().paper;
    let total = paper.experiments.len();
    let mut entered = ExperimentsByFunction::new();
    let mut doubts = Vec::new();
    for (place, task) in bench.ready().experiments.iter().enumerate() {
        let stage = Stage::new("tracing", &paper.id);
        observer.on(RunEvent::Stage(stage.counted(place, total, "experiments")));
        let seen = trace(bench, task, &[]).await?;
        if let Some(why) = seen.blind {
            doubts.push(format!("experiment `{}` may enter more functions than were seen: {why}", task.id));
        }
        for (path, module) in &sources.modules {
            for function in 0..module.functions().len() {
                if seen.entered.contains(&TracedFunction::locate(module, function)) {
                    entered.entry((path.clone(), function)).or_default().insert(place);
                }
            }
        }
    }
    if entered.is_empty() {
        let why = if doubts.is_empty() { String::new() } else { format!("\n{}", doubts.join("\n")) };
        return Err(Error::new(
            FailureKind::Baseline,
            format!("paper `{}`: its experiments do not call any Python function of the repo{why}", paper.id),
        )
        .hint(
            "do they run a copy of the package that is installed in the env, or compiled code? Let them import the repo's \
             own sources, as with `PYTHONPATH=src:$PYTHONPATH`",
        ));
    }
    Ok((entered, doubts))
}
