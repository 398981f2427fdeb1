//! Finds runs by name, and chooses the settings for summaries of stored runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

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

/// A run in a folder of runs.
pub(super) struct StoredRun {
    /// The run's folder.
    pub folder: PathBuf,
    /// The run's file, or why it cannot be read.
    pub run: Result<RunFile>,
    /// Time at which the run was created or, if its file cannot be read, at which the file was written.
    created: Timestamp,
}

impl StoredRun {
    fn open(folder: PathBuf) -> Self {
        let run = Store::open(&folder).map(|(_, run)| run);
        let created = run.as_ref().map_or_else(|_| written(&folder.join("run.json")), |run| run.created);
        Self { folder, run, created }
    }
}

/// Returns the time at which a file was last written, or the Unix epoch if that time is unknown.
fn written(file: &Path) -> Timestamp {
    let time = file.metadata().and_then(|facts| facts.modified()).ok();
    time.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns all stored runs, newest first. Includes runs that cannot be read: if the newest run cannot be read, an older
/// one must not be taken for the newest.
pub(super) fn stored_runs(runs: &Path) -> Vec<StoredRun> {
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<_> = folders.filter(|folder| folder.join("run.json").is_file()).map(StoredRun::open).collect();
    found.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| b.folder.cmp(&a.folder)));
    found
}

fn newest(runs: &Path) -> Option<PathBuf> {
    stored_runs(runs).into_iter().next().map(|stored| stored.folder)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_run_is_the_latest_even_if_it_cannot_be_read() {
        let runs = tempfile::tempdir().unwrap();
        for (name, year) in [("a-newer", 2026), ("b-older", 2025)] {
            let file = runs.path().join(name).join("run.json");
            std::fs::create_dir(runs.path().join(name)).unwrap();
            std::fs::write(&file, "{\"format\": 99}").unwrap();
            let time: Timestamp = format!("{year}-01-01T00:00:00Z").parse().unwrap();
            std::fs::File::options().write(true).open(&file).unwrap().set_modified(time.into()).unwrap();
        }
        assert_eq!(run_folder(LATEST, runs.path()).unwrap(), runs.path().join("a-newer"));
        let all = stored_runs(runs.path());
        assert!(all.len() == 2 && all.iter().all(|stored| stored.run.is_err()));
    }
}
