//! Logs of Inspect AI (`.eval`, log format 2), one for each agent and model of a run; attempts become epochs.
//!
//! A log is a ZIP archive with one JSON file per sample and epoch. The files are written one at a time, so only one
//! attempt and the summaries of all are in memory. Each message is stored once in its sample's pool and referenced by
//! the model calls (`input_refs`), so that a log grows linearly with the length of conversations instead of
//! quadratically.

mod event;
mod header;
mod message;
mod sample;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use self::header::LogTotals;
use super::ExportSource;
use crate::agent::Limits;
use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::files::hex;
use crate::model::Usage;
use crate::run::record_index::IndexedRecord;

/// Name of the task in Inspect's logs.
const TASK: &str = "autoexperiment";
/// Inspect's name for an agent without a model.
const NO_MODEL: &str = "none/none";
/// Compression level: twice as fast as the default, with files 10% larger.
const LEVEL: i64 = 3;

/// The run, agent and model of a log.
pub struct Log<'a> {
    run: &'a str,
    agent: &'a str,
    /// The model's name in the run.
    asked: Option<&'a str>,
    /// The model's name in Inspect's notation.
    model: &'a str,
    id: &'a str,
    limits: &'a Limits,
}

/// Writes a run's logs: into the file `path` if it ends in `.eval`, otherwise into the folder `path`, under the names
/// that Inspect would use. An attempt that ended because infrastructure failed becomes a sample with an error.
///
/// # Errors
/// Kind `Usage` for a single file if the run has several agents or models; kind `Store` if a record is gone; kind
/// `Machine` if a file cannot be written.
pub fn export(source: &ExportSource, path: &Path) -> Result<Vec<PathBuf>> {
    source.require_attempts()?;
    let mut groups: BTreeMap<(&str, Option<&str>), Vec<&IndexedRecord>> = BTreeMap::new();
    for brief in source.attempts() {
        groups.entry((&brief.agent, brief.model.as_deref())).or_default().push(brief);
    }
    let is_file = path.extension().is_some_and(|extension| extension == "eval");
    if is_file && groups.len() > 1 {
        return Err(Error::usage(format!(
            "the run has {} combinations of agent and model, but an Inspect log holds only one",
            groups.len()
        ))
        .hint("give a folder with `-o`; it gets one log for each combination"));
    }
    let mut written = Vec::new();
    for ((agent, asked), attempts) in groups {
        let run = &source.run;
        let model = model_name(asked);
        let created = run.created.to_string();
        let id = identifier(&[&run.run, &created, agent, &model]);
        let log = Log { run: &run.run, agent, asked, model: &model, id: &id, limits: &run.configuration.limits };
        let path = if is_file {
            path.to_owned()
        } else {
            let time = run.created.strftime("%Y-%m-%dT%H-%M-%S+00-00");
            path.join(format!("{time}_{TASK}_{id}.eval"))
        };
        written.push(write_log(source, &log, &attempts, &path)?);
    }
    Ok(written)
}

fn write_log(source: &ExportSource, log: &Log<'_>, attempts: &[&IndexedRecord], path: &Path) -> Result<PathBuf> {
    let mut archive = LogArchive { zip: ZipWriter::new(WholeFile::create_with_folders(path)?), path };
    archive.add("_journal/start.json", &header::start(&source.run, log, attempts))?;
    let mut summaries = Vec::with_capacity(attempts.len());
    let mut totals = LogTotals::default();
    for brief in attempts {
        let record = source.whole(brief)?;
        totals.add(&record);
        let lines = source.lines(&record);
        // The id comes from a store that someone else may have written, and must not name a folder.
        let sample = record.sample.replace(|letter: char| letter.is_control() || "/\\".contains(letter), "_");
        let name = format!("samples/{sample}_epoch_{}.json", record.attempt.saturating_add(1));
        summaries
            .push(sample::write(&record, &source.sentence(&record), &lines, log, |sample| archive.add(&name, sample))?);
    }
    archive.add("summaries.json", &summaries)?;
    archive.add("header.json", &header::header(&source.run, log, attempts, &totals))?;
    archive.finish()
}

/// The ZIP archive of a log.
struct LogArchive<'a> {
    zip: ZipWriter<WholeFile>,
    path: &'a Path,
}

impl LogArchive<'_> {
    /// Adds a JSON file.
    fn add(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(LEVEL))
            .large_file(false);
        let written = self.zip.start_file(name, options).map_err(std::io::Error::from).and_then(|()| {
            let mut buffered = std::io::BufWriter::with_capacity(1 << 16, &mut self.zip);
            serde_json::to_writer(&mut buffered, value)?;
            buffered.flush()
        });
        written.map_err(|error| Error::io("write", self.path, error))
    }

    fn finish(self) -> Result<PathBuf> {
        let failed = |error: zip::result::ZipError| Error::io("write", self.path, error.into());
        self.zip.finish().map_err(failed)?.finish()
    }
}

/// Inspect's `ModelUsage`. Unlike in [`Usage`], input tokens exclude those from the cache.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct InspectUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    input_tokens_cache_write: u64,
    input_tokens_cache_read: u64,
    reasoning_tokens: u64,
    total_cost: f64,
}

impl InspectUsage {
    fn new(usage: Usage, cost: f64) -> Self {
        Self {
            input_tokens: usage.input.saturating_sub(usage.cached.saturating_add(usage.cache_written)),
            output_tokens: usage.output,
            total_tokens: usage.input.saturating_add(usage.output),
            input_tokens_cache_write: usage.cache_written,
            input_tokens_cache_read: usage.cached,
            reasoning_tokens: usage.reasoning,
            total_cost: cost,
        }
    }
}

/// A moment of an attempt, serialised as a timestamp.
#[derive(Debug, Clone, Copy)]
pub struct AttemptMoment {
    begun: jiff::Timestamp,
    since: f64,
}

impl AttemptMoment {
    fn start(begun: jiff::Timestamp) -> Self {
        Self { begun, since: 0.0 }
    }

    /// Returns the moment this many seconds later.
    fn after(self, seconds: f64) -> Self {
        Self { since: self.since + seconds.max(0.0), ..self }
    }

    /// Returns the moment rounded to milliseconds.
    fn timestamp(self) -> jiff::Timestamp {
        let since = Duration::try_from_secs_f64(self.since).unwrap_or_default();
        let moment = self.begun.saturating_add(since).unwrap_or(self.begun);
        moment.round(jiff::Unit::Millisecond).unwrap_or(moment)
    }
}

impl Serialize for AttemptMoment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.timestamp())
    }
}

/// Returns the model's name in Inspect's notation, such as `openai/gpt-5`.
fn model_name(asked: Option<&str>) -> String {
    let Some(asked) = asked else { return NO_MODEL.to_owned() };
    match asked.split_once(':') {
        Some(("gemini", name)) => format!("google/{name}"),
        Some((provider @ ("openai" | "anthropic"), name)) => format!("{provider}/{name}"),
        _ => asked.to_owned(),
    }
}

/// Derives an id from names alone, so that repeated exports of a run have the same ids.
fn identifier(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())[..22].to_owned()
}
