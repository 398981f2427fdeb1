//! Where hostile code runs: the [`Sandbox`] trait, what a command may use, and what came of it.
//!
//! A sandbox is started for one attempt from a [`Spec`] by a [`Backend`], lives until the attempt ends, and takes
//! every process in it along when it goes. A sandbox that died is [`Fault::Lost`], an error of its own kind and
//! never an observation shown to a model. It counts as the attempt's failure unless there is [`Evidence`] that the machine
//! failed.

mod canary;
mod conversation;
mod docker;
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
mod setup;
mod starved;
mod unconfined;
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

pub use autoexperiment_init::{Entry, EntryKind, Exec, Exit, WORKDIR};
pub use docker::{DockerBackend, Flavour};
pub use fault::{Evidence, EvidenceKind, Fault, Loss, OutOfMemory, evidence_in};
pub use gpus::{Gpu, Gpus};
pub use kind::SandboxKind;
pub use listener::{Connection, Listener};
pub(crate) use local::sweep_folders;
pub use local::{LocalBackend, Mode, Report};
pub use starved::patience;
pub use unconfined::Unconfined;

/// One command to run inside a sandbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments. The program is looked up in the sandbox's PATH.
    pub argv: Vec<OsString>,
    /// Directory inside the sandbox; relative to the workspace; empty means the workspace.
    pub cwd: PathBuf,
    /// Variables beside the sandbox's own.
    pub variables: BTreeMap<String, String>,
    /// What the command reads on standard input, then end of file.
    pub stdin: Vec<u8>,
}

impl Command {
    /// `sh -c SCRIPT` in the workspace.
    #[must_use]
    pub fn shell(script: &str) -> Self {
        Self { argv: vec!["sh".into(), "-c".into(), script.into()], ..Self::default() }
    }

    /// The same command in another directory.
    #[must_use]
    pub fn in_dir(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }
}

/// Limits of one command.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ExecLimits {
    /// Wall time. At its end: TERM, `grace`, KILL, for everything that the command started.
    pub wall: Duration,
    /// How much later that may be because other processes had the processors, see [`Exec::starved`].
    pub patience: Duration,
    /// Between TERM and KILL.
    pub grace: Duration,
    /// Bytes kept of stdout and of stderr each; the middle of what is longer is cut.
    pub output: usize,
}

/// Limits of a whole sandbox.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLimits {
    /// Memory in bytes: of everything together where a cgroup can be had, of each process otherwise.
    pub memory: u64,
    /// Processes and threads alive at once.
    pub processes: u64,
    /// Largest file in bytes.
    pub file_size: u64,
    /// Bytes that the workspace may grow by in all.
    pub disk: u64,
    /// CPU seconds of each process.
    pub cpu_seconds: u64,
    /// How many CPUs' worth of time all processes together may take; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
}

impl Default for SandboxLimits {
    fn default() -> Self {
        const GIB: u64 = 1 << 30;
        Self { memory: 4 * GIB, processes: 256, file_size: GIB, disk: 4 * GIB, cpu_seconds: 3600, cpus: None }
    }
}

/// What a sandbox is made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spec {
    /// The tree that becomes the workspace, writable inside.
    pub layers: Layers,
    /// Host folders visible read-only at the same path: the env's prefix and its interpreter's.
    pub read_only: Vec<PathBuf>,
    /// Host folders that nobody inside may see, though they lie in one that is shown: suite, cache, scratch, runs, home.
    /// Folders of `read_only` that lie in them are shown nevertheless.
    pub hidden: Vec<PathBuf>,
    /// Files of the workspace, by their path in it, that nobody inside may write, remove or replace. Enforced where the
    /// sandbox has a mount namespace of its own, and left out of what is verified everywhere.
    pub sealed: Vec<PathBuf>,
    /// The environment, whole: nothing is inherited from the host.
    pub variables: BTreeMap<String, String>,
    /// Limits of the sandbox.
    pub limits: SandboxLimits,
    /// The graphics processor that is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
}

/// A running sandbox. Paths are inside it, relative ones to the workspace, and resolved inside it, so that
/// a symbolic link that an agent laid cannot lead out.
#[async_trait]
pub trait Sandbox: Send {
    /// The workspace's path as commands inside see it.
    fn workdir(&self) -> &Path;
    /// Runs a command to its end or its time limit. Background children live on until the sandbox ends.
    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault>;
    /// A regular file's bytes; refused when it is longer than `limit` bytes or no regular file.
    async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault>;
    /// Creates or replaces a regular file, with its folders.
    async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault>;
    /// A folder's entries, sorted by name.
    async fn list(&mut self, path: &Path) -> Result<Vec<Entry>, Fault>;
    /// Lets processes inside connect to the harness, on the sandbox's own loopback, while commands run. A second call
    /// replaces the first one's listener.
    ///
    /// # Errors
    /// [`Fault::Refused`] where commands can make no connections.
    async fn listen(&mut self) -> Result<Listener, Fault> {
        Err(Fault::Refused("commands here can make no connections".into()))
    }
    /// Which memory limit made the kernel kill a process of the sandbox. `None` if none did, or if nothing shows it.
    fn out_of_memory(&self) -> Option<OutOfMemory> {
        None
    }
    /// Copies what the workspace holds now into `upper`, a new folder on the host, in the form of an overlay's upper layer.
    /// What runs inside stands still meanwhile, and goes on afterwards. `false` where the workspace's own folders hold it,
    /// and nothing was copied.
    async fn look(&mut self, _upper: &Path) -> Result<bool, Fault> {
        Ok(false)
    }
    /// Kills everything inside and waits until it is gone. Dropping a sandbox does the same without waiting.
    async fn destroy(self: Box<Self>) -> Result<(), Fault>;
}

/// A way of making sandboxes on this machine.
#[async_trait]
pub trait Backend: Send + Sync {
    /// `local`, `landlock`, `none`, `docker`, ...
    fn name(&self) -> &'static str;
    /// Which workspaces it can mount.
    fn layers(&self) -> LayersKind;
    /// The host user that owns a workspace's files, where that is not the current one.
    fn owner(&self) -> Option<(u32, u32)>;
    /// The host user as whom sandboxes walk this machine's own folders, where that is another than the current one: he must be
    /// able to pass to the cache and to the workspaces.
    fn walker(&self) -> Option<u32> {
        None
    }
    /// Whether [`Sandbox::listen`] works.
    fn listens(&self) -> bool {
        true
    }
    /// What is weaker than it should be on this machine, one sentence each; shown once a run.
    fn warnings(&self) -> Vec<String>;
    /// Digest of the base image that all sandboxes stand on; `None` where they stand on this machine itself.
    ///
    /// # Errors
    /// Kind `Infrastructure` or `Machine` when there is none and it cannot be made.
    async fn base(&self) -> Result<Option<String>> {
        Ok(None)
    }
    /// Whether sandboxes can show the folders `shown`, and those that they show to everybody, without `hidden` ones.
    /// [`Backend::start`] checks it, too; asked before, it fails a run before its first attempt.
    ///
    /// # Errors
    /// Kind `Machine`, naming a hidden folder and the one in which it would be seen.
    fn conceals(&self, _shown: &[PathBuf], _hidden: &[PathBuf]) -> Result<()> {
        Ok(())
    }
    /// A file system of its own for what an attempt writes, of so many bytes, stored in `folder`, so that the kernel holds it
    /// to its limit. `None` where none can be made: then growth is watched.
    fn disk(&self, _bytes: u64, _folder: &Path) -> Option<Disk> {
        None
    }
    /// Looks for evidence that the machine failed, when an attempt's sandbox has died without any and is gone by now. It
    /// starts a fresh, empty sandbox, whose workspace is in the folder `place`: the one that holds the attempts' workspaces.
    async fn examine(&self, _place: &Path) -> Option<Evidence> {
        None
    }
    /// Waits, for a bounded time, until what ended sandboxes left behind is removed. Returns a sentence for each that is still
    /// there.
    async fn removals(&self) -> Vec<String> {
        Vec::new()
    }
    /// Starts a sandbox.
    ///
    /// # Errors
    /// An error of kind `Infrastructure` or `Machine`: never the model's fault.
    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>>;
}

/// The backend of that kind, for `local` the best that works here.
///
/// # Errors
/// Kind `Machine` where nothing of that kind works.
pub async fn choose(kind: SandboxKind) -> Result<Arc<dyn Backend>> {
    choose_with(kind, None).await
}

/// The same, whose sandboxes get these graphics processors.
///
/// # Errors
/// As [`choose`]; kind `Usage` where the backend passes none through, `Machine` where there are none.
pub async fn choose_with(kind: SandboxKind, gpus: Option<Gpus>) -> Result<Arc<dyn Backend>> {
    if matches!(gpus, Some(Gpus::All | Gpus::Count(_))) && !kind.is_container() {
        return Err(Error::usage(format!(
            "sandbox `{kind}` is no container, which could be given several graphics processors"
        ))
        .hint("give each attempt one of its own with `--gpus each`, or use `--sandbox docker`"));
    }
    match kind {
        SandboxKind::Local => Ok(Arc::new(LocalBackend::probe().await?)),
        SandboxKind::Unconfined => Ok(Arc::new(Unconfined)),
        SandboxKind::Docker => Ok(Arc::new(DockerBackend::open(Flavour::Docker, gpus).await?)),
        SandboxKind::Podman if gpus.is_some() => {
            Err(Error::machine("podman gives containers no graphics processors by the interface that is used here")
                .hint("use `--sandbox docker` for `--gpus`"))
        }
        SandboxKind::Podman => Ok(Arc::new(DockerBackend::open(Flavour::Podman, gpus).await?)),
    }
}
