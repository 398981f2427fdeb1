//! Runs by name, read as far as they can be, and how a stored run is summarised.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use itertools::Itertools;

use crate::error::{Error, Result};
use crate::report;
use crate::run::reading::{Detail, Readings, read_all};
use crate::run::{AttemptRecord, Planned};

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
    let k = if k.is_empty() {
        let mut both = vec![1, attempts as usize];
        both.dedup();
        both
    } else {
        distinct(k)
    };
    report::Options { ks: k, planned: planned.to_vec(), ..report::Options::default() }
}

/// Values of k as they are named first.
fn distinct(k: &[usize]) -> Vec<usize> {
    k.iter().copied().unique().collect()
}

/// Reads the runs of these names.
///
/// # Errors
/// Kind `Usage` for a run that is named twice, kind `Store` when none of them can be read.
pub fn read_runs(names: &[String], runs: &Path, detail: Detail) -> Result<Readings> {
    read_all(&distinct_folders(names, runs)?, detail)
}

/// How records are summarised of which no `run.json` says what was planned.
pub fn unplanned_options(records: &[AttemptRecord], k: &[usize]) -> report::Options {
    let most = records.iter().map(|record| record.attempt as usize + 1).max().unwrap_or(1);
    let mut ks = if k.is_empty() { vec![1, most] } else { distinct(k) };
    ks.dedup();
    report::Options { ks, ..report::Options::default() }
}
