//! Ctrl-C and termination signals.

use std::future::Future;

use tokio_util::sync::CancellationToken;

use super::exit::ProgramExit;
use super::shared::block_on;
use crate::error::{Error, FailureKind, Result};

/// Runs a command that may take long and that stores each measurement at once, so that it can be repeated after a stop.
pub(super) fn block_on_work<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    block_on(async {
        let stop = stop_on_signals();
        unless_stopped(future, &stop, "the measurements are stored: repeat the command to continue").await
    })
}

/// Does some work. If `stop` is cancelled, drops the work, which removes its sandboxes and folders, and returns an error
/// with this hint, which says how to continue.
pub(super) async fn unless_stopped<T>(
    work: impl Future<Output = Result<T>>,
    stop: &CancellationToken,
    hint: &str,
) -> Result<T> {
    tokio::select! {
        done = work => done,
        () = stop.cancelled() => Err(Error::new(FailureKind::Interrupted, "stopped").hint(hint)),
    }
}

/// Returns a token that is cancelled by the first Ctrl-C or termination signal; the second ends the process at once,
/// and the sandboxes with it.
pub(super) fn stop_on_signals() -> CancellationToken {
    use tokio::signal::unix::{SignalKind, signal};
    let cancel = CancellationToken::new();
    let told = cancel.clone();
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        for again in [false, true] {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            if again {
                std::process::exit(i32::from(ProgramExit::Interrupted.code()));
            }
            talk!("\nstopping; press Ctrl-C again to stop at once");
            told.cancel();
        }
    });
    cancel
}
