//! Runs by name, and how a stored run is summarised.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::report;
use crate::run::Planned;

/// A run's folder: a path, or a name under `runs`.
pub fn run_folder(run: &str, runs: &Path) -> PathBuf {
    let named = runs.join(run);
    if Path::new(run).join("run.json").exists() || !named.exists() { PathBuf::from(run) } else { named }
}

/// The folders of runs.
///
/// # Errors
/// Kind `Usage` when two are the same: its attempts would count twice.
pub fn distinct_folders(names: &[String], runs: &Path) -> Result<Vec<PathBuf>> {
    let mut real = BTreeSet::new();
    let folder = |name: &String| {
        let folder = run_folder(name, runs);
        // One that is not there is told of by whoever reads it.
        if folder.canonicalize().is_ok_and(|folder| !real.insert(folder)) {
            return Err(Error::usage(format!("run `{name}` is named twice"))
                .hint("a run with several agents is several contenders: name it once"));
        }
        Ok(folder)
    };
    names.iter().map(folder).collect()
}

/// How a run is summarised: for the given values of k, or for 1 and as many attempts as there are.
pub fn report_options(planned: &[Planned], attempts: u32, k: &[usize]) -> report::Options {
    let ks = report::ks(k, [attempts as usize]);
    report::Options { ks, planned: planned.to_vec(), ..report::Options::default() }
}
