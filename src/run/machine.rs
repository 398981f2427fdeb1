//! Folders and backends that a run uses on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::sys::statvfs::statvfs;

use super::gpus::{Graphics, Lease};
use super::results::Results;
use super::scratch::Scratch;
use crate::env::{self, Env};
use crate::error::{Error, FailureKind, Result};
use crate::files::usable::{CACHE, SCRATCH};
use crate::sandbox::{Backend, Evidence, Gpus, SandboxKind, SandboxLimits, Spec, choose_with, sweep_folders};
use crate::workspace::{LayersKind, Snapshot, Workspace};

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
    /// Whether envs are made without the network.
    pub offline: bool,
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
        let scratch = Scratch::create(&options.scratch)?;
        let graphics = Graphics::new(options.gpus, &options.scratch);
        let kind = known_graphics(backend.as_ref(), &graphics);
        // Without a sandbox, the code under test could write to the cache of results, so do not use that cache.
        let results = match kind.filter(|_| backend.name() != "none") {
            Some(kind) => {
                let mut results = Results::at(cache);
                results.with_graphics(&kind);
                results
            }
            None => Results::none(),
        };
        Ok(Self {
            cache: cache.clone(),
            results,
            backend,
            scratch,
            graphics,
            envs: options.envs.open()?,
            offline: options.envs.offline,
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
    /// Same as [`Machine::workspace`], and kind `Infrastructure` if the disk on which the kernel enforces the limit cannot
    /// be made.
    pub fn attempts_workspace(&self, snapshot: &Snapshot, files: &[(PathBuf, Vec<u8>)]) -> Result<Workspace> {
        let (kind, owner) = (self.backend.layers(), self.backend.owner());
        let disk = self.backend.disk(self.limits.disk, self.scratch.folder())?;
        Workspace::create_on(snapshot, files, &self.scratch.next(), kind, owner, disk)
    }

    /// Describes the graphics processors of attempts, for the keys of cached results; `None` if results must not be
    /// cached.
    #[must_use]
    pub fn known_graphics(&self) -> Option<String> {
        known_graphics(self.backend.as_ref(), &self.graphics)
    }

    /// Warns if the machine may lack memory or disk space for `jobs` sandboxes that use all that their limits allow.
    #[must_use]
    pub fn shortages(&self, jobs: usize) -> Vec<String> {
        let free = statvfs(self.scratch.folder()).ok();
        let free = free.map(|disk| disk.blocks_available().saturating_mul(disk.fragment_size()));
        // The files of containers are in the engine's storage, so the free space of the scratch folder does not matter
        // for them.
        let free = free.filter(|_| self.backend.layers() != LayersKind::Image);
        shortages(jobs as u64, &self.limits, self.backend.memory_around(), free)
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

/// Describes the graphics processors that attempts get, see [`Graphics::kind`]. Returns `None` if they, or the machine
/// that runs the code, are unknown. Results must then not be cached, because they may be different on other devices.
fn known_graphics(backend: &dyn Backend, graphics: &Graphics) -> Option<String> {
    if backend.is_remote() { None } else { graphics.kind() }
}

/// Warns if `jobs` sandboxes with these limits may need more than `memory` bytes, which they share with this process, or
/// if the scratch folder has fewer than `disk` bytes.
fn shortages(jobs: u64, limits: &SandboxLimits, memory: Option<u64>, disk: Option<u64>) -> Vec<String> {
    let mib = |bytes: u64| bytes >> 20;
    let memory = memory.filter(|around| jobs.saturating_mul(limits.memory) >= *around).map(|around| {
        format!(
            "{jobs} sandboxes at once may use {} MiB of memory each, but a limit outside of them allows {} MiB for all \
             together: attempts that exceed it are lost; use fewer at once (`-j`) or less memory (`--memory`)",
            mib(limits.memory),
            mib(around)
        )
    });
    let disk = disk.filter(|free| limits.disk > *free).map(|free| {
        format!(
            "the scratch folder has {} MiB free, but an attempt may write {} MiB: if its disk is full, attempts fail; use \
             another folder (`--scratch`)",
            mib(free),
            mib(limits.disk)
        )
    });
    memory.into_iter().chain(disk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_the_machine_cannot_keep_are_reported() {
        const GIB: u64 = 1 << 30;
        let limits = SandboxLimits { memory: 4 * GIB, disk: 4 * GIB, ..SandboxLimits::default() };
        let warnings = |jobs, memory, disk| shortages(jobs, &limits, memory, disk).len();
        assert_eq!((warnings(4, None, None), warnings(3, Some(16 * GIB), Some(4 * GIB))), (0, 0));
        assert_eq!((warnings(4, Some(16 * GIB), None), warnings(1, None, Some(GIB))), (1, 1));
        assert_eq!(warnings(1, Some(GIB), Some(GIB)), 2);
    }
}
