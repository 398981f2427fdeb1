//! Verification: the agent's code, run again by us, in a fresh workspace and a fresh sandbox.

use std::time::Instant;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::attempt::{RunContext, round};
use super::experiments::measure;
use super::family::Staged;
use crate::agent::{Event, Trajectory};
use crate::error::{Error, Kind, Result};
use crate::workspace::Changes;

/// What verification gives.
pub(super) struct Verification {
    /// Paths of changes that were not taken over because the paper protects them.
    pub ignored: Vec<String>,
    /// `{"result": ...}` or `{"error": "..."}` by the experiment's id.
    pub results: Map<String, Value>,
    /// How long it took.
    pub seconds: f64,
}

impl RunContext {
    /// Runs the experiments again on the agent's code, in a fresh workspace and a fresh sandbox. A sandbox that is lost
    /// is tried again here, so that the agent's work need not be repeated.
    pub(super) async fn verify(
        &self,
        staged: &Staged<'_>,
        changes: &Changes,
        trajectory: &mut Trajectory,
        cancel: &CancellationToken,
    ) -> Result<Verification> {
        let mut last = None;
        for _ in 0..self.configuration.tries.max(1) {
            let tried = tokio::select! {
                () = cancel.cancelled() => return Err(Error::new(Kind::Interrupted, "the run was stopped")),
                tried = self.verify_once(staged, changes, trajectory) => tried,
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
        staged: &Staged<'_>,
        changes: &Changes,
        trajectory: &mut Trajectory,
    ) -> Result<Verification> {
        let begun = Instant::now();
        let workspace = self.workspace(staged)?;
        let ignored = tokio::task::block_in_place(|| workspace.apply(changes, |path| staged.guard.keeps_out(path)))?;
        let mut sandbox = self.machine.backend.start(&staged.ready.spec(&workspace, &self.machine)).await?;
        let mut results = Map::new();
        for experiment in &staged.task.experiments {
            let measurement = measure(sandbox.as_mut(), experiment)
                .await
                .map_err(|fault| Error::new(Kind::Infrastructure, fault.to_string()))?;
            results.insert(experiment.id.clone(), measurement.to_json());
            trajectory.push(&Event::Verification {
                experiment: experiment.id.clone(),
                exit: measurement.exit,
                seconds: round(measurement.wall.as_secs_f64()),
                result: measurement.result.ok(),
                stderr: measurement.stderr,
            });
        }
        sandbox.destroy().await.map_err(|fault| Error::new(Kind::Infrastructure, fault.to_string()))?;
        tokio::task::block_in_place(|| workspace.remove())?;
        Ok(Verification { ignored, results, seconds: begun.elapsed().as_secs_f64() })
    }
}
