//! Shared by `run` and `resume`: shows a session's progress and results.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use super::events;
use super::exit::ProgramExit;
use super::naming::report_options;
use super::progress::ProgressDisplay;
use super::shared::print;
use super::signals::stop_on_signals;
use crate::error::Result;
use crate::report;
use crate::run::scheduler::RunOutcome;
use crate::run::{Store, outcomes};
use crate::session::{Finished, Run};

/// Settings of a session's output and exit code.
pub struct SessionOutput {
    /// Number of attempts at each sample.
    pub k: u32,
    /// Whether events are printed on stdout as JSON lines, instead of the report.
    pub json_events: bool,
    /// Whether a failed attempt makes the command fail.
    pub require_pass: bool,
}

/// Executes a run and prints its report or its events.
pub async fn show(run: Run, shown: &SessionOutput) -> Result<ProgramExit> {
    let progress = ProgressDisplay::with_json(shown.json_events);
    let finished = run.execute(&progress, &stop_on_signals()).await;
    progress.finish();
    let finished = finished?;
    if finished.outcome != RunOutcome::NotStarted {
        print_results(&finished, shown)?;
    }
    let exit = ProgramExit::from_outcome(&finished.outcome, shown.require_pass && finished.any_failed());
    let end = end(&finished, exit);
    if let Some(error) = finished.unverified {
        return Err(error);
    }
    if let Some((message, hint)) = end {
        super::render_message(&message, hint.as_deref());
    }
    Ok(exit)
}

/// Plans a run for other processes to work on, and prints the command with which they do so.
pub(super) async fn show_plan(run: Run) -> Result<ProgramExit> {
    let Some(folder) = plan(run).await? else { return Ok(ProgramExit::Interrupted) };
    let folder = folder.display();
    talk!("work on it with `autoexperiment resume {folder} --shard I/N`");
    print(&format!("{folder}\n"))?;
    Ok(ProgramExit::Done)
}

/// Plans a run for other processes to work on. `None` if planning was stopped.
pub async fn plan(run: Run) -> Result<Option<PathBuf>> {
    let progress = ProgressDisplay::new(false);
    let planned = run.plan(&progress, &stop_on_signals()).await;
    progress.finish();
    let Some((folder, attempts)) = planned? else {
        super::render_message("stopped before the run was planned", None);
        return Ok(None);
    };
    talk!("planned {attempts} attempts");
    Ok(Some(folder))
}

fn print_results(finished: &Finished, shown: &SessionOutput) -> Result<()> {
    let folder = finished.folder.display().to_string();
    if shown.json_events {
        events::print_end(&folder, end_name(finished));
        return Ok(());
    }
    let outcomes = outcomes(&finished.records);
    let options = report_options(&outcomes, &finished.planned, shown.k, &[]);
    // Read the run's file again, because it now has the facts about all sessions, including those of other processes.
    let run = Store::open(&finished.folder).ok().map(|(_, run)| run);
    let notes = run.and_then(|run| report::changes_warning(&run.run, &run)).into_iter().collect();
    let options = report::SummaryOptions { choices: finished.choices.clone(), notes, ..options };
    let summary = report::summarise(&outcomes, &options);
    // On a terminal, print only the brief report, because pass rates would scroll away above wide tables.
    if std::io::stdout().is_terminal() {
        print(&report::brief_console(&summary))?;
        let more = "how attempts ended, what they cost:";
        return print(&format!("\nrun: {folder}\n{more} autoexperiment report {folder}\n"));
    }
    print(&report::console(&summary))?;
    print(&format!("\nrun: {folder}\n"))
}

/// Returns the word by which JSON lines say how the session ended, such as `complete`.
const fn end_name(finished: &Finished) -> &'static str {
    if finished.unverified.is_some() { "unverified" } else { finished.outcome.name() }
}

/// Returns a message about how the session ended, and a hint; `None` if all attempts are complete.
fn end(finished: &Finished, exit: ProgramExit) -> Option<(String, Option<String>)> {
    let run = finished.folder.display();
    Some(match &finished.outcome {
        RunOutcome::Complete | RunOutcome::Left(_) if exit == ProgramExit::Failed => {
            ("at least one attempt failed".to_owned(), None)
        }
        RunOutcome::Complete => return None,
        RunOutcome::Left(count) => {
            let what =
                format!("no attempt is left for this process; other processes are still making {count} attempt(s)");
            (what, Some(format!("`autoexperiment status {run}` shows how far they are")))
        }
        RunOutcome::Lost(lost) => {
            let why = lost.first().map_or("", String::as_str);
            let what = format!("{} attempt(s) were lost to infrastructure, the first because: {why}", lost.len());
            (what, Some(format!("try them again with `autoexperiment resume {run}`")))
        }
        RunOutcome::NotStarted => ("stopped before the first attempt".to_owned(), None),
        RunOutcome::Interrupted => {
            let hint = format!("continue with `autoexperiment resume {run}`");
            ("stopped; what was finished is kept".to_owned(), Some(hint))
        }
        RunOutcome::CostLimit => {
            let hint = format!("continue with `autoexperiment resume {run} --max-cost DOLLARS`");
            ("stopped before `--max-cost` could be exceeded".to_owned(), Some(hint))
        }
    })
}
