//! Runs by name, read as far as they can be, and how a stored run is summarised.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::report;
use crate::run::reading::{Detail, Reading, read};
use crate::run::{AttemptRecord, RunFile};

/// A name for a run that none under `runs` has.
pub fn run_name(runs: &Path) -> String {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%SZ").to_string();
    let mut name = now.clone();
    let mut number = 2;
    while runs.join(&name).exists() {
        name = format!("{now}-{number}");
        number += 1;
    }
    name
}

/// A run's folder: a path, or a name under `runs`.
pub fn run_folder(run: &str, runs: &Path) -> PathBuf {
    let named = runs.join(run);
    if Path::new(run).join("run.json").exists() || !named.exists() { PathBuf::from(run) } else { named }
}

/// How a run is summarised: for the given values of k, or for 1 and as many attempts as there are.
pub fn report_options(run: &RunFile, k: &[usize]) -> report::Options {
    let planned = run.planned.iter().map(|planned| report::Planned {
        agent: planned.agent.clone(),
        model: planned.model.clone(),
        n: planned.n,
        attempts: planned.attempts,
    });
    let k = if k.is_empty() {
        let mut both = vec![1, run.configuration.k as usize];
        both.dedup();
        both
    } else {
        k.to_vec()
    };
    report::Options { ks: k, planned: planned.collect(), ..report::Options::default() }
}

/// Runs that were named on the command line.
pub struct NamedRuns {
    /// Those that could be read, if only in part.
    pub readings: Vec<Reading>,
    /// Those that could not, a sentence each.
    pub notes: Vec<String>,
}

/// Reads runs. One folder among several that is no run, as `runs/*` may hold, hides none of the others.
///
/// # Errors
/// Kind `Store` when none of them can be read.
pub fn read_runs(names: &[String], runs: &Path, detail: Detail) -> Result<NamedRuns> {
    let (mut readings, mut notes, mut first_error) = (Vec::new(), Vec::new(), None);
    for name in names {
        match read(&run_folder(name, runs), detail) {
            Ok(reading) => readings.push(reading),
            Err(error) => {
                notes.push(format!("left out: {error}"));
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) if readings.is_empty() => Err(error),
        _ => Ok(NamedRuns { readings, notes }),
    }
}

/// How records are summarised of which no `run.json` says what was planned.
pub fn unplanned_options(records: &[AttemptRecord], k: &[usize]) -> report::Options {
    let most = records.iter().map(|record| record.attempt as usize + 1).max().unwrap_or(1);
    let mut ks = if k.is_empty() { vec![1, most] } else { k.to_vec() };
    ks.dedup();
    report::Options { ks, ..report::Options::default() }
}
