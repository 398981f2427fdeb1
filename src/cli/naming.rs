//! Finds runs by name, and chooses the settings for summaries of stored runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::report;
use crate::run::family::Families;
use crate::run::{Outcome, PlannedAttempts, RunFile, Store};
use crate::stats::{Intervals, Population};

/// Name of the newest run on the command line.
const LATEST: &str = "latest";

/// Returns a run's folder, given by path, by name under `runs`, or as `latest` for the newest one there.
///
/// # Errors
/// Kind `Usage` if it does not exist.
pub(super) fn run_folder(run: &str, runs: &Path) -> Result<PathBuf> {
    let named = runs.join(run);
    if Path::new(run).join("run.json").exists() {
        return Ok(PathBuf::from(run));
    }
    if !run.is_empty() && named.exists() {
        return Ok(named);
    }
    if Path::new(run).exists() {
        return Ok(PathBuf::from(run));
    }
    if run == LATEST {
        return newest(runs)
            .ok_or_else(|| Error::usage(format!("there are no runs in `{}`", runs.display())).hint(MAKE_ONE));
    }
    let hint = match newest(runs) {
        Some(newest) => format!(
            "`autoexperiment runs` lists those in `{}`; the newest, `latest`, is `{}`",
            runs.display(),
            newest.file_name().unwrap_or_default().to_string_lossy()
        ),
        None => format!("there are no runs in `{}`: {MAKE_ONE}", runs.display()),
    };
    Err(Error::usage(format!("there is no run `{run}`")).hint(hint))
}

const MAKE_ONE: &str = "make one with `autoexperiment run`, or name the folder of runs with `--runs DIR`";

/// Returns the folders of all stored runs, each with its run file, newest first.
pub(super) fn stored_runs(runs: &Path) -> Vec<(PathBuf, RunFile)> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.path().join("run.json").is_file())
        .filter_map(|entry| Store::open(&entry.path()).ok().map(|(_, run)| (entry.path(), run)))
        .collect();
    found.sort_by(|a, b| b.1.created.cmp(&a.1.created).then_with(|| b.0.cmp(&a.0)));
    found
}

fn newest(runs: &Path) -> Option<PathBuf> {
    stored_runs(runs).into_iter().next().map(|(folder, _)| folder)
}

/// Returns the folders of the named runs or, if there are no names, of the newest run.
///
/// # Errors
/// Kind `Usage` if a run does not exist, or is named twice, because its attempts would count twice.
pub(super) fn distinct_folders(names: &[String], runs: &Path) -> Result<Vec<PathBuf>> {
    let mut real = BTreeSet::new();
    let latest = [LATEST.to_owned()];
    let folder = |name: &String| {
        let folder = run_folder(name, runs)?;
        if folder.canonicalize().is_ok_and(|folder| !real.insert(folder)) {
            return Err(Error::usage(format!("run `{name}` is named twice"))
                .hint("name each run once: all of its agents are included"));
        }
        Ok(folder)
    };
    let names = if names.is_empty() { &latest } else { names };
    names.iter().map(folder).collect()
}

/// Returns the settings for confidence intervals over these records. They include the word for a group of samples of
/// this kind of task, such as "paper".
pub fn intervals<'a>(population: Population, records: impl IntoIterator<Item = &'a Outcome>) -> Intervals {
    let usual = Intervals::default();
    let words = Families::standard().words(records.into_iter().map(|record| &*record.family));
    Intervals { population, group: words.map_or(usual.group, |words| words.group), ..usual }
}

/// Returns the options for a run's summary. If `k` is empty, pass@k is reported for k = 1 and for k = the number of
/// attempts.
pub(super) fn report_options(
    records: &[Outcome],
    planned: &[PlannedAttempts],
    attempts: u32,
    k: &[usize],
) -> report::SummaryOptions {
    let ks = report::ks(k, [attempts as usize]);
    let intervals = intervals(Population::Suite, records);
    report::SummaryOptions { ks, intervals, planned: planned.to_vec(), ..report::SummaryOptions::default() }
}
