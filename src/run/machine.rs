//! Where things are kept and run on this machine.

use std::path::PathBuf;
use std::sync::Arc;

use super::scratch::Scratch;
use crate::env::Env;
use crate::error::Result;
use crate::sandbox::{Backend, SandboxLimits, Spec};
use crate::workspace::{Snapshot, Workspace};

/// Where things are kept and run on this machine.
pub struct Machine {
    /// Envs and snapshots.
    pub cache: PathBuf,
    /// Workspaces.
    pub scratch: Scratch,
    /// How sandboxes are made.
    pub backend: Arc<dyn Backend>,
    /// How envs are made.
    pub envs: Arc<dyn crate::env::Backend>,
    /// Limits of a sandbox.
    pub limits: SandboxLimits,
}

impl Machine {
    /// A fresh workspace over a repo, with these files laid over it.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be made.
    pub fn workspace(&self, snapshot: &Snapshot, files: &[(PathBuf, Vec<u8>)]) -> Result<Workspace> {
        Workspace::create(snapshot, files, &self.scratch.next(), self.backend.layers(), self.backend.owner())
    }

    /// What a sandbox over a workspace is made from.
    #[must_use]
    pub fn spec(&self, env: &Env, workspace: &Workspace) -> Spec {
        Spec {
            layers: workspace.layers().clone(),
            read_only: env.read_only.clone(),
            variables: env.variables.clone(),
            limits: self.limits,
        }
    }
}
