//! Folders and backends that a run uses on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gpus::{Graphics, Lease};
use super::results::Results;
use super::scratch::Scratch;
use crate::env::{self, Env};
use crate::error::{Error, FailureKind, Result};
use crate::files::usable::{CACHE, SCRATCH};
use crate::sandbox::{Backend, Evidence, Gpus, SandboxKind, SandboxLimits, Spec, choose_with, sweep_folders};
use crate::workspace::{Snapshot, Workspace};

/// Folders and backends that a run uses on this machine.
pub struct Machine {
    /// Folder of envs and snapshots.
    pub cache: PathBuf,
    /// Folder of workspaces.
    pub scratch: Scratch,
    /// The backend for sandboxes.
    pub backend: Arc<dyn Backend>,
    /// The backend for envs.
    pub envs: Arc<dyn env::EnvBackend>,
    /// Resource limits of each sandbox.
    pub limits: SandboxLimits,
    /// Folders that must not be visible in any sandbox; see [`Spec::hidden`]. They include the cache, the scratch
    /// folder and the user's home; code that opens a suite or a run adds the folder of that suite or run.
    pub hidden: Vec<PathBuf>,
    /// Cached results of checks.
    pub results: Results,
    /// The graphics processors that attempts get.
    pub graphics: Graphics,
}

/// Options for [`Machine::open`].
#[derive(Debug, Clone)]
pub struct MachineOptions {
    /// Folder for envs and copies of repos, kept between runs.
    pub cache: PathBuf,
    /// Folder for workspaces while attempts run; should be on a local disk.
    pub scratch: PathBuf,
    /// The kind of sandbox.
    pub sandbox: SandboxKind,
    /// The graphics processors that the user wants each container, or each attempt, to get.
    pub gpus: Option<Gpus>,
    /// Resource limits of each sandbox.
    pub limits: SandboxLimits,
    /// Options of the env backend.
    pub envs: env::EnvBuildOptions,
}

impl MachineOptions {
    /// Returns options for local sandboxes with the usual limits and the command line's default folders.
    ///
    /// # Errors
    /// Kind `Place` if the user has no home folder.
    pub fn local() -> Result<Self> {
        Ok(Self {
            cache: env::default_cache()?,
            scratch: default_scratch(),
            sandbox: SandboxKind::Local,
            gpus: None,
            limits: SandboxLimits::default(),
            envs: env::EnvBuildOptions::default(),
        })
    }
}

/// The default scratch folder: a folder of this user among the system's temporary files.
#[must_use]
pub fn default_scratch() -> PathBuf {
    std::env::temp_dir().join(format!("autoexperiment-{}", nix::unistd::getuid()))
}

/// Folders of this machine that must not be visible in any sandbox: the cache, the scratch folder and the user's home.
#[must_use]
pub fn private(cache: &Path, scratch: &Path) -> Vec<PathBuf> {
    [cache.to_owned(), scratch.to_owned()].into_iter().chain(std::env::home_dir()).collect()
}

impl Machine {
    /// Finds out what the machine supports, and creates a scratch folder.
    ///
    /// # Errors
    /// Kind `Machine` if the machine lacks something requested; `Place` if the cache or the scratch folder cannot be
    /// used.
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
        std::fs::create_dir_all(cache).map_err(|error| {
            Error { kind: FailureKind::Place, ..Error::io("create", cache, error) }.hint(CACHE.hint())
        })?;
        // Without a sandbox, the code under test could write to the cache of results, so do not use that cache.
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

    /// Checks that these folders (of an env or an agent) can be made visible in sandboxes while all hidden folders stay
    /// hidden.
    ///
    /// # Errors
    /// Kind `Machine`, naming both folders.
    pub fn conceals(&self, shown: &[PathBuf]) -> Result<()> {
        self.backend.conceals(shown, &self.hidden)
    }

    /// Creates a workspace from a repo with these files written over it.
    ///
    /// # Errors
    /// Same as [`Workspace::create`].
    pub fn workspace(&self, snapshot: &Snapshot, files: &[(PathBuf, Vec<u8>)]) -> Result<Workspace> {
        Workspace::create(snapshot, files, &self.scratch.next(), self.backend.layers(), self.backend.owner())
    }

    /// Same as [`Self::workspace`], for an attempt. On machines that support this, the kernel enforces the attempt's
    /// disk limit.
    ///
    /// # Errors
    /// Same as [`Machine::workspace`].
    pub fn attempts_workspace(&self, snapshot: &Snapshot, files: &[(PathBuf, Vec<u8>)]) -> Result<Workspace> {
        let (kind, owner) = (self.backend.layers(), self.backend.owner());
        let disk = self.backend.disk(self.limits.disk, self.scratch.folder());
        Workspace::create_on(snapshot, files, &self.scratch.next(), kind, owner, disk)
    }

    /// Starts a fresh sandbox to find out whether the machine has failed, after another sandbox died for an unknown
    /// reason. See [`Backend::examine`].
    pub async fn examine(&self) -> Option<Evidence> {
        self.backend.examine(self.scratch.folder()).await
    }

    /// Describes a sandbox over a workspace; `own` is the graphics processor given to the attempt, if any.
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
