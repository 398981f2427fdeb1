//! Verification: the agent's code, run again by us, in a fresh workspace and a fresh sandbox.

use std::time::Instant;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::attempt::RunContext;
use super::check::Measurement;
use super::family::{Ready, Staged};
use super::round;
use crate::agent::{Event, Trajectory};
use crate::error::{Error, Kind, Result};
use crate::workspace::Changes;

/// What verification gives.
pub(super) struct Verification {
    /// Paths of changes that were not taken over because the paper protects them.
    pub ignored: Vec<String>,
    /// `{"result": ...}` or `{"error": "..."}` by the check's id.
    pub results: Map<String, Value>,
    /// How long it took.
    pub seconds: f64,
}

impl RunContext {
    /// Runs the experiments again on the agent's code, in a fresh workspace and a fresh sandbox. A sandbox that is lost
    /// is tried again here, so that the agent's work need not be repeated.
    pub(super) async fn verify(
        &self,
        item: (&dyn Ready, &Staged<'_>),
        changes: &Changes,
        trajectory: &mut Trajectory,
        cancel: &CancellationToken,
    ) -> Result<Verification> {
        let mut last = None;
        for _ in 0..self.configuration.tries.max(1) {
            let tried = tokio::select! {
                () = cancel.cancelled() => return Err(Error::new(Kind::Interrupted, "the run was stopped")),
                tried = self.verify_once(item, changes, trajectory) => tried,
            };
            match tried {
                Ok(verification) => return Ok(verification),
                Err(error) if matches!(error.kind, Kind::Infrastructure | Kind::Machine) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::internal("verification was never tried")))
    }

    async fn verify_once(
        &self,
        (ready, staged): (&dyn Ready, &Staged<'_>),
        changes: &Changes,
        trajectory: &mut Trajectory,
    ) -> Result<Verification> {
        let begun = Instant::now();
        let workspace = self.workspace(staged)?;
        let ignored = tokio::task::block_in_place(|| workspace.apply(changes, |path| ready.keeps_out(path)))?;
        let mut sandbox = self.machine.backend.start(&self.machine.spec(ready.env(), &workspace)).await?;
        let mut results = Map::new();
        let mut done = |measurement: Measurement| {
            results.insert(measurement.id.clone(), measurement.to_json());
            trajectory.push(&Event::Verification {
                experiment: measurement.id,
                exit: measurement.exit,
                seconds: round(measurement.wall.as_secs_f64()),
                result: measurement.result.ok(),
                stderr: measurement.stderr,
            });
        };
        let verified = ready.verify(staged, sandbox.as_mut(), &mut done).await;
        verified.map_err(|fault| Error::new(Kind::Infrastructure, fault.to_string()))?;
        sandbox.destroy().await.map_err(|fault| Error::new(Kind::Infrastructure, fault.to_string()))?;
        tokio::task::block_in_place(|| workspace.remove())?;
        Ok(Verification { ignored, results, seconds: begun.elapsed().as_secs_f64() })
    }
}
