//! Where things are kept and run on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gpus::{Graphics, Lease};
use super::results::Results;
use super::scratch::Scratch;
use crate::env::{self, Env};
use crate::error::{Error, Kind, Result};
use crate::files::usable::{CACHE, SCRATCH};
use crate::sandbox::{Backend, Evidence, Gpus, SandboxKind, SandboxLimits, Spec, choose_with, sweep_folders};
use crate::workspace::{Snapshot, Workspace};

/// What a run finds on this machine.
pub struct Machine {
    /// Envs and snapshots.
    pub cache: PathBuf,
    /// Workspaces.
    pub scratch: Scratch,
    /// How sandboxes are made.
    pub backend: Arc<dyn Backend>,
    /// How envs are made.
    pub envs: Arc<dyn env::Backend>,
    /// Limits of a sandbox.
    pub limits: SandboxLimits,
    /// Folders that no sandbox may show; see [`Spec::hidden`]. The cache, the scratch folder and the user's home; what
    /// works on a suite or a run adds these.
    pub hidden: Vec<PathBuf>,
    /// Results of checks that ran before.
    pub results: Results,
    /// The graphics processors that attempts get.
    pub graphics: Graphics,
}

/// What is asked of a machine.
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Folder for envs and copies of repos, kept from run to run.
    pub cache: PathBuf,
    /// Folder for workspaces while attempts run; a local disk.
    pub scratch: PathBuf,
    /// The kind of sandbox.
    pub sandbox: SandboxKind,
    /// Graphics processors of containers, or of attempts.
    pub gpus: Option<Gpus>,
    /// Limits of a sandbox.
    pub limits: SandboxLimits,
    /// How envs are made.
    pub envs: env::Options,
}

impl MachineOptions {
    /// Local sandboxes with the usual limits, and the folders that the command line uses by default.
    ///
    /// # Errors
    /// Kind `Place` when the user has no home folder.
    pub fn local() -> Result<Self> {
        Ok(Self {
            cache: env::default_cache()?,
            scratch: default_scratch(),
            sandbox: SandboxKind::Local,
            gpus: None,
            limits: SandboxLimits::default(),
            envs: env::Options::default(),
        })
    }
}

/// The scratch folder that is used when none is named: this user's, among the system's temporary files.
#[must_use]
pub fn default_scratch() -> PathBuf {
    std::env::temp_dir().join(format!("autoexperiment-{}", nix::unistd::getuid()))
}

/// What no sandbox may show of a machine, whatever runs: the cache, the scratch folder and the user's home.
#[must_use]
pub fn private(cache: &Path, scratch: &Path) -> Vec<PathBuf> {
    [cache.to_owned(), scratch.to_owned()].into_iter().chain(std::env::home_dir()).collect()
}

impl Machine {
    /// Finds out what the machine can do, and makes a scratch folder.
    ///
    /// # Errors
    /// Kind `Machine` when it lacks what is asked of it; `Place` when the cache or the scratch folder cannot be used.
    pub async fn open(options: &MachineOptions) -> Result<Self> {
        let cache = &options.cache;
        CACHE.writable(cache)?;
        SCRATCH.writable(&options.scratch)?;
        sweep_folders();
        let backend = choose_with(options.sandbox, options.gpus).await?;
        if let Some(user) = backend.walker() {
            CACHE.passable(cache, user)?;
            SCRATCH.passable(&options.scratch, user)?;
        }
        std::fs::create_dir_all(cache)
            .map_err(|error| Error { kind: Kind::Place, ..Error::io("create", cache, error) }.hint(CACHE.hint()))?;
        // What runs without a sandbox could write there.
        let mut results = if backend.name() == "none" { Results::none() } else { Results::at(cache) };
        let scratch = Scratch::create(&options.scratch)?;
        let graphics = Graphics::new(options.gpus, &options.scratch);
        results.with_graphics(&graphics.kind());
        Ok(Self {
            cache: cache.clone(),
            results,
            backend,
            scratch,
            graphics,
            envs: options.envs.open()?,
            limits: options.limits,
            hidden: private(cache, &options.scratch),
        })
    }

    /// Checks that sandboxes can show an env, and folders of an agent's, without what is hidden.
    ///
    /// # Errors
    /// Kind `Machine`, naming both folders.
    pub fn conceals(&self, shown: &[PathBuf]) -> Result<()> {
        self.backend.conceals(shown, &self.hidden)
    }

    /// A fresh workspace over a repo, with these files laid over it.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be made.
    pub fn workspace(&self, snapshot: &Snapshot, files: &[(PathBuf, Vec<u8>)]) -> Result<Workspace> {
        Workspace::create(snapshot, files, &self.scratch.next(), self.backend.layers(), self.backend.owner())
    }

    /// The same for an attempt, which the kernel holds to its disk where this machine can.
    ///
    /// # Errors
    /// As [`Machine::workspace`].
    pub fn attempts_workspace(&self, snapshot: &Snapshot, files: &[(PathBuf, Vec<u8>)]) -> Result<Workspace> {
        let (kind, owner) = (self.backend.layers(), self.backend.owner());
        let disk = self.backend.disk(self.limits.disk, self.scratch.folder());
        Workspace::create_on(snapshot, files, &self.scratch.next(), kind, owner, disk)
    }

    /// Looks for evidence that the machine failed, after a sandbox has ended without any. See [`Backend::examine`].
    pub async fn examine(&self) -> Option<Evidence> {
        self.backend.examine(self.scratch.folder()).await
    }

    /// What a sandbox over a workspace is made from, with a graphics processor of its own where one is given out.
    #[must_use]
    pub fn spec(&self, env: &Env, workspace: &Workspace, own: Option<&Lease>) -> Spec {
        Spec {
            layers: workspace.layers().clone(),
            read_only: env.read_only.clone(),
            hidden: self.hidden.clone(),
            sealed: workspace.products().map(PathBuf::from).collect(),
            variables: env.variables.clone(),
            limits: self.limits,
            gpu: own.map(Lease::gpu).cloned(),
        }
    }
}
