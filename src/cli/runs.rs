//! `autoexperiment runs`: lists the stored runs.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::naming::{StoredRun, stored_runs};
use super::shared::{print, print_json, table};
use crate::error::{Result, with_causes};
use crate::report::{Status, clean};
use crate::run::RunFile;
use crate::run::reading::read_outcomes;

/// Maximum characters of the agents' names in the table.
const WIDEST: usize = 24;

/// List runs, newest first
///
/// Shows how many of each run's attempts are finished, how many of them passed, and what they cost. Wherever a run is
/// named, `latest` is the first of this list.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment runs\n  autoexperiment runs --limit 100 --json")]
pub struct Arguments {
    /// Maximum runs to list.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

#[derive(Serialize)]
struct RunRow {
    run: String,
    created: jiff::Timestamp,
    agents: Vec<String>,
    model: Option<String>,
    planned: usize,
    finished: usize,
    passed: usize,
    lost: usize,
    cost: f64,
    being_written: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let all = stored_runs(&arguments.runs);
    let more = all.len().saturating_sub(arguments.limit as usize);
    let mut rows = Vec::new();
    let none = all.is_empty();
    for StoredRun { folder, run, .. } in all.into_iter().take(arguments.limit as usize) {
        // A run that cannot be read does not hide the others.
        match run.and_then(|run| row(&folder, run)) {
            Ok(row) => rows.push(row),
            Err(error) => talk!("left out: `{}` cannot be read: {}", folder.display(), clean(&with_causes(&error))),
        }
    }
    if arguments.json {
        return print_json(&rows);
    }
    if none {
        talk!("there are no runs in `{}`", arguments.runs.display());
        return Ok(());
    }
    // Without a run that can be read, the table would be a bare heading.
    if !rows.is_empty() {
        print(&table(
            &["run", "agents", "attempts", "passed", "cost", "state"],
            &[2, 3, 4],
            rows.iter().map(|row| {
                let state = match row {
                    RunRow { being_written: true, .. } => "running",
                    RunRow { planned, finished, .. } if finished >= planned => "complete",
                    _ => "unfinished",
                };
                vec![
                    row.run.clone(),
                    shortened(&row.agents.join(",")),
                    format!("{}/{}", row.finished, row.planned),
                    row.passed.to_string(),
                    format!("${:.2}", row.cost),
                    state.to_owned(),
                ]
            }),
        ))?;
    }
    if more > 0 {
        talk!("{more} older ones: `--limit` shows more");
    }
    Ok(())
}

/// Sums up a run.
fn row(folder: &Path, run: RunFile) -> Result<RunRow> {
    let reading = read_outcomes(folder)?;
    let being_written = reading.store.is_being_written();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let status = Status::compute(name, Some(&run), &reading.records, 0, being_written, crate::files::now());
    Ok(RunRow {
        run: status.run,
        created: run.created,
        agents: run.configuration.agents.iter().map(ToString::to_string).collect(),
        model: run.configuration.model.map(|model| model.spec),
        planned: status.planned.unwrap_or_default(),
        finished: status.finished,
        passed: status.passed,
        lost: status.lost,
        cost: status.recorded,
        being_written,
    })
}

/// Shortens a text that is too long for its column.
fn shortened(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    text.chars().take(WIDEST - 3).chain("...".chars()).collect()
}
