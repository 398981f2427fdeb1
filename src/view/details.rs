//! Details of one sample's attempts: trajectories, changes, and the code that agents wrote for the missing parts.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::reader::GatheredRuns;
use crate::error::with_causes;
use crate::report::MergedRun;
use crate::report::html::{AttemptDetails, Origin, SampleDetails, ShownRecord};
use crate::run::family::{Item, SampleParts};
use crate::run::{AttemptRecord, Outcome, is_file_name};
use crate::sample::Sample;

/// Maximum bytes read of a trajectory or a patch.
const MOST_BYTES: u64 = 16 << 20;

/// Maximum characters shown of a patch.
const MOST_PATCH: usize = 100_000;

impl GatheredRuns {
    /// Number of attempted samples.
    #[must_use]
    pub const fn samples(&self) -> usize {
        self.entries.len()
    }

    /// Returns a function that maps a sample's index to its details.
    pub fn details(&self) -> impl Fn(usize) -> SampleDetails + '_ {
        |place| self.entries.get(place).map_or_else(SampleDetails::default, |sample| self.sample(sample))
    }

    fn sample(&self, entry: &crate::report::html::SampleEntry) -> SampleDetails {
        let known = self.parts(&entry.id);
        let attempts = entry.attempts.iter().filter_map(|one| {
            let (origin, record) = match (one.record, one.begun) {
                (Some(record), _) => (self.material.origins.get(record)?, self.material.records.get(record)),
                (None, Some(begun)) => (&self.material.begun.get(begun)?.origin, None),
                (None, None) => return None,
            };
            let mut details = AttemptDetails {
                contender: one.contender,
                attempt: one.attempt,
                state: one.state,
                ..AttemptDetails::default()
            };
            let run = self.merged.runs.get(origin.run)?;
            let of = known.as_ref().ok();
            let of = of.map(|(shown, sample, _)| (self.item(origin.run, sample).unwrap_or(*shown), *sample));
            details.record = record.map(|record| whole(run, origin, record, &mut details.problems));
            let store = &run.store;
            if is_file_name(&origin.agent) && is_file_name(&entry.id) {
                read_events(&store.trajectory(&origin.agent, &entry.id, one.attempt), &mut details);
                read_patch(&store.diff(&origin.agent, &entry.id, one.attempt), of, &mut details);
            } else {
                details.problems.push("the name of its agent or sample is not a valid file name".to_owned());
            }
            Some(details)
        });
        let (id, attempts) = (entry.id.clone(), attempts.collect());
        match known {
            Ok((_, _, SampleParts { asked, heading, parts: functions })) => {
                SampleDetails { id, asked, heading, functions, attempts, problem: None }
            }
            Err(problem) => SampleDetails { id, attempts, problem: Some(problem), ..SampleDetails::default() },
        }
    }

    /// Returns a sample with its item, and the parts of the item that agents have to write.
    fn parts(&self, id: &str) -> Result<(&dyn Item, &Sample, SampleParts), String> {
        let sample = self.samples.get(id).ok_or_else(|| format!("no family here has a sample `{id}`"))?;
        let of_runs = self.items.get(&(sample.family().to_owned(), sample.item().to_owned()));
        let all = || of_runs.into_iter().flatten().map(|(_, item)| item);
        let item = match all().find(|item| item.is_ok()).or_else(|| all().next()) {
            Some(Ok(item)) => item.as_ref(),
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(format!("`{}` was not read", sample.item())),
        };
        let parts = item.parts(sample).map_err(|error| error.to_string())?;
        Ok((item, sample, parts))
    }

    /// Returns a sample's item as the suite of this run has it.
    fn item(&self, run: usize, sample: &Sample) -> Option<&dyn Item> {
        let of_runs = self.items.get(&(sample.family().to_owned(), sample.item().to_owned()))?;
        of_runs.get(&run)?.as_ref().ok().map(|item| &**item)
    }
}

/// Reads an attempt's complete record from disk, leaves out its results, and sets the labels of agent and model that
/// the page uses. If the record cannot be read, adds the reason to `problems` and returns `record`, the attempt's
/// outcome in memory.
fn whole(run: &MergedRun, origin: &Origin, record: &Outcome, problems: &mut Vec<String>) -> ShownRecord {
    match origin.line.map(|line| run.tail.whole(line)) {
        Some(Ok(read))
            if (&*read.sample, read.attempt, read.started) == (&*record.sample, record.attempt, record.started) =>
        {
            ShownRecord::Whole(Box::new(AttemptRecord {
                agent: record.agent.to_string(),
                model: record.model.as_deref().map(str::to_owned),
                // If an attempt was made twice, only one of its records is used for rates. The verdict has been removed
                // from the unused record in memory (`record`), but not on disk (`read`). So take these fields from
                // `record`.
                end: record.end,
                end_detail: record.end_detail.as_deref().map(str::to_owned),
                pass: record.pass,
                reported: read.reported.filter(|_| record.reported.is_some()),
                verified: read.verified.filter(|_| record.verified.is_some()),
                results: serde_json::Map::new(),
                ..read
            }))
        }
        Some(Ok(_)) => {
            problems.push(
                "its record is no longer where it was in the run's files, so only its outcome is shown".to_owned(),
            );
            ShownRecord::Outcome(Box::new(record.clone()))
        }
        Some(Err(error)) => {
            problems.push(with_causes(&error));
            ShownRecord::Outcome(Box::new(record.clone()))
        }
        None => ShownRecord::Outcome(Box::new(record.clone())),
    }
}

/// Reads at most [`MOST_BYTES`] from the beginning of a file. Also returns whether that is the whole file.
fn read(path: &Path) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let whole = file.metadata()?.len() <= MOST_BYTES;
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), whole))
}

fn read_events(path: &Path, details: &mut AttemptDetails) {
    let (text, whole) = match read(path) {
        Ok(read) => read,
        Err(error) => return details.problems.push(format!("its trajectory cannot be read: {error}")),
    };
    if !whole {
        details.problems.push(format!("only the first {} MB of its trajectory are shown", MOST_BYTES >> 20));
    }
    let mut broken = 0;
    for line in text.split_inclusive('\n').filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => details.events.push(event),
            Err(_) if !line.ends_with('\n') => {
                details.problems.push("its trajectory is cut off in its last line".to_owned());
            }
            _ => broken += 1,
        }
    }
    if broken > 0 {
        details.problems.push(format!("{broken} line(s) of its trajectory cannot be read and are left out"));
    }
}

fn read_patch(path: &Path, of: Option<(&dyn Item, &Sample)>, details: &mut AttemptDetails) {
    let (patch, whole) = match read(path) {
        Ok(read) => read,
        Err(error) => {
            // A lost attempt or one in progress may have no patch.
            if matches!(details.state, "pass" | "fail" | "unsupported") {
                details.problems.push(format!("its changes cannot be read: {error}"));
                details.unwritten = Some("its changes cannot be read".to_owned());
            } else {
                details.unwritten = Some("none of its code is stored".to_owned());
            }
            return;
        }
    };
    if let Some((item, sample)) = of {
        (details.written, details.unwritten) = item.written(sample, &patch);
    }
    let end = patch.char_indices().nth(MOST_PATCH).map(|(at, _)| at);
    details.patch_cut = end.is_some() || !whole;
    if !patch.is_empty() {
        details.patch = Some(end.map_or(patch.as_str(), |end| &patch[..end]).to_owned());
    }
}
