//! The Python session of an attempt, which keeps its variables between cells (pieces of code, as in a notebook). The
//! functions here run cells within the budget, record them and format their output for models.

pub(super) mod session;

use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::agent::trajectory::seconds;
use crate::agent::{Context, Event};
use crate::kernel::{CellAuthor, CellOutput, CellRecord, CellState, Host, Kernel};
use crate::sandbox::{Command, Exec, Fault};

#[async_trait]
impl Host for Context<'_> {
    async fn exec(&mut self, command: &Command, wall: Duration, output: usize) -> Result<Exec, Fault> {
        Context::exec(self, command, wall, output).await
    }

    fn is_spent(&self) -> bool {
        self.no_time_left()
    }
}

/// Runs a cell, and returns when the cell ends or when the time limit of one call (the session's `patience`) is over.
/// Code that still runs from an earlier call is interrupted first.
///
/// # Errors
/// The errors of the sandbox; [`Fault::Refused`] if no session can be started.
pub async fn cell(code: &str, context: &mut Context<'_>) -> Result<CellOutput, Fault> {
    stop(context).await?;
    let mut kernel = match context.session.kernel.take() {
        Some(kernel) => kernel,
        None => Kernel::start(context).await?,
    };
    let patience = context.session.patience();
    let begun = Instant::now();
    let shown = kernel.run(code, patience, context).await;
    keep(kernel, shown, Some(code), begun, context)
}

/// Runs a cell to its end, even if it takes longer than the time limit of one call.
///
/// # Errors
/// Same as [`cell`].
pub(super) async fn to_end(code: &str, context: &mut Context<'_>) -> Result<CellOutput, Fault> {
    let mut shown = cell(code, context).await?;
    while shown.state == CellState::Running {
        shown = wait_on(context).await?;
    }
    Ok(shown)
}

/// Runs a cell and returns its output, formatted for a model.
///
/// # Errors
/// Same as [`cell`].
pub async fn execute(code: &str, context: &mut Context<'_>) -> Result<String, Fault> {
    Ok(format_cell(&cell(code, context).await?, context))
}

/// Waits for running code and returns its output, formatted for a model.
///
/// # Errors
/// [`Fault::Refused`] if no code is running, and the errors of the sandbox.
pub async fn wait(context: &mut Context<'_>) -> Result<String, Fault> {
    Ok(format_cell(&wait_on(context).await?, context))
}

async fn wait_on(context: &mut Context<'_>) -> Result<CellOutput, Fault> {
    let mut kernel = running(context)?;
    let (patience, begun) = (context.session.patience(), Instant::now());
    let shown = kernel.wait(patience, context).await;
    keep(kernel, shown, None, begun, context)
}

/// Interrupts running code and returns its output, formatted for a model. Ends the session if the code does not stop.
///
/// # Errors
/// [`Fault::Refused`] if no code is running, and the errors of the sandbox.
pub async fn interrupt(context: &mut Context<'_>) -> Result<String, Fault> {
    let mut kernel = running(context)?;
    let begun = Instant::now();
    let shown = kernel.interrupt(context).await;
    let shown = keep(kernel, shown, None, begun, context)?;
    Ok(format_cell(&shown, context))
}

/// Interrupts code that still runs from an earlier call, if any.
///
/// # Errors
/// The errors of the sandbox.
pub async fn stop(context: &mut Context<'_>) -> Result<(), Fault> {
    if let Ok(mut kernel) = running(context) {
        let begun = Instant::now();
        let shown = kernel.interrupt(context).await;
        keep(kernel, shown, None, begun, context)?;
    }
    Ok(())
}

/// Returns the session, or an error if no code is running in it.
fn running(context: &Context<'_>) -> Result<Kernel, Fault> {
    let nothing = || Fault::Refused("nothing is running".to_owned());
    context.session.kernel.clone().filter(Kernel::is_running).ok_or_else(nothing)
}

/// Stores the session for the next call unless it has ended, and records the cell. `code` is `None` for a cell that was
/// started by an earlier call.
fn keep(
    kernel: Kernel,
    shown: Result<CellOutput, Fault>,
    code: Option<&str>,
    begun: Instant,
    context: &mut Context<'_>,
) -> Result<CellOutput, Fault> {
    let is_over = shown.as_ref().is_ok_and(|shown| shown.state.is_end());
    context.session.kernel = (!is_over).then_some(kernel);
    let shown = shown?;
    record(CellAuthor::Agent, code, &shown, begun.elapsed(), context);
    Ok(shown)
}

/// Records a cell, if the task's cells are recorded. For a cell that was started by an earlier call, the recorded
/// output is replaced.
pub fn record(by: CellAuthor, code: Option<&str>, shown: &CellOutput, took: Duration, context: &mut Context<'_>) {
    let Some(cells) = &mut context.session.cells else { return };
    let CellOutput { state, output } = shown.clone();
    match (code, cells.last_mut()) {
        (None, Some(last)) => {
            (last.state, last.output) = (state, output);
            last.seconds = seconds(Duration::from_secs_f64(last.seconds) + took);
        }
        (None, None) => return,
        (Some(code), _) => {
            cells.push(CellRecord { by, code: code.to_owned(), output, state, seconds: seconds(took) });
        }
    }
    if let Some(cell) = cells.last() {
        context.trajectory.push(&Event::Cell(cell.clone()));
    }
}

/// Formats the outcome of a cell for a model.
fn format_cell(shown: &CellOutput, context: &Context<'_>) -> String {
    let CellOutput { state, output } = shown;
    let output = output.strip_suffix('\n').unwrap_or(output);
    let so_far = if output.is_empty() { "no output so far".to_owned() } else { format!("output so far:\n{output}") };
    match state {
        CellState::OutOfTime => "stopped because the tool time is used up".to_owned(),
        CellState::Running => format!(
            "still running after {} seconds; `continue_wait` waits on, `interrupt` stops it\n{so_far}",
            context.session.patience().as_secs_f64()
        ),
        CellState::Done | CellState::Failed | CellState::Raised if output.is_empty() => "no output".to_owned(),
        CellState::Done | CellState::Failed | CellState::Raised => output.to_owned(),
        CellState::Killed => format!(
            "the code did not stop when it was interrupted, so the session was ended; the next call begins a new one\n\
             {so_far}"
        ),
        CellState::Ended(code) => format!(
            "the Python session has ended with exit code {code} and what it held is lost; the next call begins a new \
             one\n{output}"
        ),
        CellState::Silent => "the Python session does not answer; the next call begins a new one".to_owned(),
    }
}
