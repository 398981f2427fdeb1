//! `autoexperiment status`: shows a run's progress, from another terminal.

use std::collections::HashMap;
use std::path::PathBuf;

use super::naming::run_folder;
use super::shared::{print, print_json};
use crate::error::{Result, with_causes};
use crate::report::{Status, clean};
use crate::run::StoredTrajectory;
use crate::run::reading::{ReadableRun, read_outcomes};
use crate::verifier::stored::spent;

/// Show a run's progress
///
/// Reads the run's store, so it works from any terminal, during the run and afterwards. The rate and the remaining time
/// are based on the last ten minutes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment status sweep\n  watch autoexperiment status sweep\n  autoexperiment status runs/sweep --json"
)]
pub struct Arguments {
    /// A run: its folder, or its name under --runs; `latest` is the newest.
    #[arg(default_value = "latest")]
    run: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let reading = read_outcomes(&run_folder(&arguments.run, &arguments.runs)?)?;
    let being_written = reading.store.is_being_written();
    for note in &reading.notes {
        talk!("{}", clean(note));
    }
    let begun = if being_written { begun(&reading)? } else { 0 };
    let (name, run) = (reading.name(), reading.run.as_ref());
    let status = Status::compute(name, run, &reading.records, begun, being_written, crate::files::now());
    let mut beside_attempts = match spent(&reading.store) {
        Ok(spent) => {
            for note in &spent.notes {
                talk!("{}", clean(note));
            }
            spent.dollars
        }
        Err(error) => {
            talk!("the cost of the verifiers is unknown: {}", clean(&with_causes(&error)));
            0.0
        }
    };
    let ledger = match reading.store.books() {
        Ok(books) => books.map(|books| {
            books.notes.iter().for_each(|note| talk!("{}", clean(note)));
            beside_attempts += books.probes.settled;
            books.total()
        }),
        Err(error) => {
            talk!("the ledger cannot be read: {}", clean(&with_causes(&error)));
            None
        }
    };
    let status = status.with_costs(beside_attempts, ledger);
    if let Some(job) = super::slurm::status(reading.store.folder()) {
        talk!("{job}");
    }
    if arguments.json { print_json(&status) } else { print(&status.text()) }
}

/// Counts the attempts in progress: trajectories of this session that are newer than the attempt's last record.
fn begun(reading: &ReadableRun) -> Result<usize> {
    let mut ended: HashMap<(&str, &str, u32), f64> = HashMap::new();
    for record in &reading.records {
        let at = record.started.as_duration().as_secs_f64() + record.wall_seconds;
        ended.insert((&record.agent, &record.sample, record.attempt), at);
    }
    let sessions = reading.run.as_ref().and_then(|run| run.sessions.last());
    let session = sessions.map_or(0.0, |session| session.started.as_duration().as_secs_f64());
    let mut running = 0;
    for StoredTrajectory { agent, sample, attempt, path } in reading.store.trajectories()? {
        let changed = path.metadata().ok().and_then(|facts| facts.modified().ok());
        let changed =
            changed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).map_or(0.0, |at| at.as_secs_f64());
        // The last event of a finished try is written at about the record's end time. A trajectory that was written at
        // least a second later belongs to a new try.
        let after = ended.get(&(agent.as_str(), sample.as_str(), attempt)).map_or(session, |ended| ended + 1.0);
        running += usize::from(changed >= after);
    }
    Ok(running)
}
