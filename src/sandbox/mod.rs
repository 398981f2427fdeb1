//! Sandboxes, in which untrusted code runs: the [`Sandbox`] trait, the limits of commands, and their results.
//!
//! A [`Backend`] starts a sandbox for one attempt from a [`Spec`]. The sandbox lives until the attempt ends, and all
//! its processes end with it. If the sandbox dies, its methods return [`Fault::Lost`]. This error is never shown to a
//! model as the result of a command. The death counts as the attempt's failure unless there is [`Evidence`] that the
//! machine failed.

mod canary;
mod containers;
mod conversation;
pub mod doctor;
mod exposed;
mod fault;
mod gpus;
mod holders;
mod kind;
mod listener;
mod local;
mod program;
pub mod search;
mod searched;
mod setup;
mod starved;
pub mod stop_signal;
mod watch;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::workspace::{Disk, Layers, LayersKind};

pub use autoexperiment_init::{EntryKind, Exec, Exit, FolderEntry, WORKDIR};
pub use containers::{ContainerBackend, EngineKind};
pub use fault::{Evidence, EvidenceKind, Fault, Loss, OutOfMemory, evidence_in};
pub use gpus::{Gpu, Gpus};
pub use kind::SandboxKind;
pub use listener::{Connection, Listener};
pub(crate) use local::sweep_folders;
pub use local::{ConfinementMode, LocalBackend, MachineReport, Unconfined};
pub use starved::patience;

/// One command to run inside a sandbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments. The program is looked up in the sandbox's PATH.
    pub argv: Vec<OsString>,
    /// Directory inside the sandbox; relative to the workspace; empty means the workspace.
    pub cwd: PathBuf,
    /// Environment variables in addition to the sandbox's own.
    pub variables: BTreeMap<String, String>,
    /// Standard input, followed by end of file.
    pub stdin: Vec<u8>,
}

impl Command {
    /// Returns the command `sh -c SCRIPT`, run in the workspace.
    #[must_use]
    pub fn shell(script: &str) -> Self {
        Self { argv: vec!["sh".into(), "-c".into(), script.into()], ..Self::default() }
    }

    /// Returns the same command in another directory.
    #[must_use]
    pub fn in_dir(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }
}

/// Limits of one command.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ExecLimits {
    /// Wall time. When it is over, all processes that the command started get TERM and, after `grace`, KILL.
    pub wall: Duration,
    /// On a busy machine, `wall` is extended by the time in which other processes occupied the processors, but by no
    /// more than this; see [`Exec::starved`].
    pub patience: Duration,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// Bytes kept of stdout and of stderr each; the middle of longer output is cut out.
    pub output: usize,
}

/// Limits of a whole sandbox.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLimits {
    /// Memory in bytes: of all processes together where cgroups work, of each process otherwise.
    pub memory: u64,
    /// Processes and threads alive at once.
    pub processes: u64,
    /// Size of the largest file in bytes.
    pub file_size: u64,
    /// Growth of the workspace in bytes.
    pub disk: u64,
    /// CPU time of each process in seconds.
    pub cpu_seconds: u64,
    /// CPU time of all processes together, as a number of CPUs; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        Self { memory: 4 * GIB, processes: 256, file_size: GIB, disk: 4 * GIB, cpu_seconds: 3600, cpus: None }
    }
}

/// Specification of a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spec {
    /// The tree that becomes the workspace, writable inside.
    pub layers: Layers,
    /// Host folders visible read-only at the same path: the prefixes of the env and of its interpreter.
    pub read_only: Vec<PathBuf>,
    /// Host folders that must not be visible inside, even if a folder that contains them is shown: the suite, the
    /// cache, the scratch folder, runs, and the user's home. Folders of `read_only` inside hidden folders stay visible.
    pub hidden: Vec<PathBuf>,
    /// Files that nobody inside may write, remove or replace, by their path in the workspace. The sandbox enforces this
    /// only if it has its own mount namespace. With every kind of sandbox, verification ignores changes to these files.
    pub sealed: Vec<PathBuf>,
    /// The complete environment: no variables are inherited from the host.
    pub variables: BTreeMap<String, String>,
    /// Limits of the sandbox.
    pub limits: SandboxLimits,
    /// The graphics processor that only this sandbox may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

/// A running sandbox. All paths are inside the sandbox, and relative ones start at the workspace. They are resolved
/// inside, so that an agent's symbolic link cannot lead out.
#[async_trait]
pub trait Sandbox: Send {
    /// The workspace's path, as seen by commands inside.
    fn workdir(&self) -> &Path;
    /// Runs a command until it exits or its time limit is over. Background processes live on until the sandbox ends.
    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault>;
    /// Reads a regular file. Refused if the file is longer than `limit` bytes or not a regular file.
    async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault>;
    /// Creates or replaces a regular file, and creates its folders.
    async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault>;
    /// Lists a folder's entries, sorted by name.
    async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault>;
    /// Lets processes inside connect to the harness, on the sandbox's own loopback, while commands run. A second call
    /// replaces the listener of the first one.
    ///
    /// # Errors
    /// Returns [`Fault::Refused`] if commands in this sandbox cannot make connections, and [`Fault::Lost`] if the
    /// sandbox is gone or does not answer.
    async fn listen(&mut self) -> Result<Listener, Fault> {
        Err(Fault::Refused("commands here can make no connections".into()))
    }
    /// Returns which memory limit made the kernel kill a process of the sandbox. `None` if there was no such kill, or
    /// if it cannot be known.
    fn out_of_memory(&self) -> Option<OutOfMemory> {
        None
    }
    /// Copies the workspace's current content into `upper`, a new folder on the host, in the format of an overlay's
    /// upper layer: the new and changed files, and a mark for each removed file. Processes inside are paused during the
    /// copy. Returns `false`, without a copy, if the workspace's folders on the host hold the content already.
    async fn look(&mut self, _upper: &Path) -> Result<bool, Fault> {
        Ok(false)
    }
    /// Kills all processes inside and waits until they are gone. Dropping a sandbox kills them without waiting.
    async fn destroy(self: Box<Self>) -> Result<(), Fault>;
}

/// A kind of sandboxes that can be made on this machine.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Name of the backend: `local`, `landlock`, `none`, `docker`, ...
    fn name(&self) -> &'static str;
    /// The kind of workspaces that the backend's sandboxes can mount.
    fn layers(&self) -> LayersKind;
    /// The host user and group that own a workspace's files, if not the current ones.
    fn owner(&self) -> Option<(u32, u32)>;
    /// The host user id with which sandboxes access this machine's folders, if not the current one. That user must be
    /// able to reach the cache and the workspaces.
    fn walker(&self) -> Option<u32> {
        None
    }
    /// Whether [`Sandbox::listen`] works.
    fn listens(&self) -> bool {
        true
    }
    /// Warnings about weaker protection on this machine, one sentence each; shown once per run.
    fn warnings(&self) -> Vec<String>;
    /// Returns the digest of the base image of all sandboxes; `None` if they use this machine's own system.
    ///
    /// # Errors
    /// Returns an error of kind `Infrastructure` or `Machine` if the base image cannot be made or examined.
    async fn base(&self) -> Result<Option<String>> {
        Ok(None)
    }
    /// Checks that sandboxes can show the folders `shown`, and the folders that they always show, without showing
    /// `hidden` ones. [`Backend::start`] checks this, too; checking it earlier fails a run before its first attempt.
    ///
    /// # Errors
    /// Returns an error of kind `Machine` that names a hidden folder and the folder in which it would be seen.
    fn conceals(&self, _shown: &[PathBuf], _hidden: &[PathBuf]) -> Result<()> {
        Ok(())
    }
    /// Makes a file system of `bytes` bytes, stored in `folder`, for the files that an attempt writes, so that the
    /// kernel enforces the disk limit. Returns `None` if that is impossible on this machine; the workspace's size is
    /// then measured repeatedly while commands run.
    ///
    /// # Errors
    /// Returns an error of kind `Infrastructure` if it is possible on this machine, but failed this time.
    fn disk(&self, _bytes: u64, _folder: &Path) -> Result<Option<Disk>> {
        Ok(None)
    }
    /// Returns the memory limit in bytes, outside of any sandbox, that applies to all sandboxes together and to this
    /// process; `None` if there is no such limit or it is unknown.
    fn memory_around(&self) -> Option<u64> {
        None
    }
    /// Whether sandboxes run on another machine, about which this process knows nothing.
    fn is_remote(&self) -> bool {
        false
    }
    /// Looks for evidence that the machine failed. Called when an attempt's sandbox has died and is gone, and nothing
    /// shows yet whether the machine was the cause. Starts a fresh, empty sandbox, whose workspace is in `place`, the
    /// folder of the attempts' workspaces.
    async fn examine(&self, _place: &Path) -> Option<Evidence> {
        None
    }
    /// Waits, for a bounded time, until the remains of ended sandboxes are removed. Returns a sentence for each sandbox
    /// whose remains could not be removed.
    async fn removals(&self) -> Vec<String> {
        Vec::new()
    }
    /// Starts a sandbox.
    ///
    /// # Errors
    /// Returns an error of kind `Infrastructure`, `Machine` or `Place`, which never counts against the model.
    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>>;
}

/// Returns the backend of this kind; for `local`, the best that works here.
///
/// # Errors
/// Returns an error of kind `Machine` if no sandbox of that kind works, and one of kind `Infrastructure` if its
/// container engine fails.
pub async fn choose(kind: SandboxKind) -> Result<Arc<dyn Backend>> {
    choose_with(kind, None).await
}

/// Same as [`choose`], for sandboxes with graphics processors.
///
/// # Errors
/// Returns the errors of [`choose`], an error of kind `Usage` if several graphics processors are requested for
/// sandboxes that are not containers, and one of kind `Machine` for podman, or if no container with graphics processors
/// starts.
pub async fn choose_with(kind: SandboxKind, gpus: Option<Gpus>) -> Result<Arc<dyn Backend>> {
    if matches!(gpus, Some(Gpus::All | Gpus::Count(_))) && !kind.is_container() {
        return Err(Error::usage(format!(
            "sandbox `{kind}` cannot be given several graphics processors: only containers can"
        ))
        .hint("give each attempt one of its own with `--gpus each`, or use `--sandbox docker`"));
    }
    match kind {
        SandboxKind::Local => Ok(Arc::new(LocalBackend::probe().await?)),
        SandboxKind::Unconfined => Ok(Arc::new(Unconfined)),
        SandboxKind::Docker => Ok(Arc::new(ContainerBackend::open(EngineKind::Docker, gpus).await?)),
        SandboxKind::Podman if gpus.is_some() => {
            Err(Error::machine("podman cannot give containers graphics processors by its Docker-compatible interface")
                .hint("use `--sandbox docker` for `--gpus`"))
        }
        SandboxKind::Podman => Ok(Arc::new(ContainerBackend::open(EngineKind::Podman, gpus).await?)),
    }
}
