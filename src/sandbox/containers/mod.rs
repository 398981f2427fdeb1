//! Docker or podman containers as sandboxes. There are three images: the base, the env on top of the base, and the repo
//! on top of the env. Each attempt has one container, which only adds the masked files to the repo's image.
//!
//! The container's first process is this program's own init, as in the local sandbox. All jobs go through one stream
//! that is attached to this process, and not through the engine's `exec`. So time limits, output, memory and files
//! behave as in the local sandbox.

mod base;
mod builder;
mod container;
mod engine;
mod forgotten;
mod images;
mod libraries;
mod pack;
mod registry;
mod removals;
mod store;
mod tools;
mod upper;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{Backend, Evidence, EvidenceKind, Gpus, Sandbox, Spec, canary};
use crate::error::{Error, FailureKind, Result};
use crate::workspace::{Layers, LayersKind};
use engine::Engine;
use images::EngineImages;
use tools::Tools;

pub use engine::EngineKind;
pub use store::{EngineStore, SweepResult};

/// Label of all objects that this program makes in an engine. Objects without it are never removed.
const LABEL: &str = "autoexperiment";
/// User and group of all processes and files in a container: a number that no system assigns by default and that
/// engines without root can map.
const USER: u32 = 61_978;
/// Time to wait for an engine that does not answer.
const RESTART: Duration = Duration::from_mins(1);
/// Time limit of a canary, see [`canary::examine`], and of an engine's answer to a ping.
const CANARY: Duration = Duration::from_secs(30);
/// Time to wait for the removal of containers, at the end of a run and before a canary (a trial sandbox) is started.
const REMOVALS: Duration = Duration::from_mins(2);

/// Returns version and storage driver of an engine, as text for users.
///
/// # Errors
/// Returns an error of kind `Machine`, with a hint, if no engine answers.
pub(super) async fn inspect(kind: EngineKind) -> Result<String> {
    Engine::connect(kind).await.map(|engine| engine.describe())
}

/// Starts containers as sandboxes.
pub struct ContainerBackend {
    engine: Arc<Engine>,
    gpus: Option<Gpus>,
    images: EngineImages,
    /// The volume with the init, which is a container's first process. It is found or made when the first sandbox
    /// starts.
    tools: Mutex<Option<Arc<Tools>>>,
    /// A sentence for each container of a dead process that could not be removed.
    leftovers: Vec<String>,
}

impl ContainerBackend {
    /// Connects to an engine and removes the containers that dead processes left in it.
    ///
    /// # Errors
    /// Returns an error of kind `Machine` if no engine answers, the engine does not run Linux containers, or no
    /// container with these graphics processors starts, and one of kind `Infrastructure` if the engine fails.
    pub async fn open(kind: EngineKind, gpus: Option<Gpus>) -> Result<Self> {
        let engine = Arc::new(Engine::connect(kind).await?);
        if engine.info.os_type.as_deref().is_some_and(|os| os != "linux") {
            return Err(Error::machine(format!("{} does not run Linux containers here", kind.name())));
        }
        let leftovers = store::sweep(&engine).await?.failures;
        let backend =
            Self { images: EngineImages::new(engine.clone()), engine, tools: Mutex::new(None), gpus, leftovers };
        if let Some(gpus) = backend.gpus {
            canary::try_out(&backend).await.map_err(|why| {
                Error::machine(format!("no container with `--gpus {gpus}` starts here: {why}"))
                    .hint("install the NVIDIA driver and its container toolkit, or omit `--gpus`")
            })?;
        }
        Ok(backend)
    }

    /// Removes the containers that dead processes of this machine left, where possible.
    ///
    /// # Errors
    /// Returns an error of kind `Machine` if no engine answers, and of kind `Infrastructure` if the engine fails.
    pub async fn sweep(kind: EngineKind) -> Result<SweepResult> {
        store::sweep(&Engine::connect(kind).await?).await
    }

    /// The images and volumes that this program keeps in the engine.
    #[must_use]
    pub fn store(&self) -> EngineStore {
        EngineStore::new(self.engine.clone())
    }

    /// Makes the images that do not exist yet: the base, the folders `read_only` (such as an env) on top of the base
    /// and, if `repo` is given (folder and digest of a snapshot), the repo on top of both. The folders `hidden` are
    /// left out. Returns the names of the images, the base first.
    ///
    /// # Errors
    /// Returns the errors of [`Backend::start`].
    pub async fn build(
        &self,
        read_only: &[PathBuf],
        hidden: &[PathBuf],
        repo: Option<(&Path, &str)>,
    ) -> Result<Vec<String>> {
        self.images.build((read_only, hidden), repo).await
    }

    async fn tools(&self) -> Result<Arc<Tools>> {
        let mut tools = self.tools.lock().await;
        if let Some(tools) = &*tools {
            return Ok(tools.clone());
        }
        let base = self.images.base().await?;
        let made = Arc::new(Tools::install(&self.engine, &base).await?);
        *tools = Some(made.clone());
        Ok(made)
    }

    async fn start_once(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let Layers::Image { tree, digest, upper } = &spec.layers else {
            return Err(Error::internal(format!(
                "sandbox `{}` runs images, but was given folders to mount",
                self.name()
            )));
        };
        let tools = self.tools().await?;
        let image = self.images.repo((&spec.read_only, &spec.hidden), tree, digest).await?;
        container::start(&self.engine, &tools, &image, spec, tree, upper, self.gpus).await
    }
}

#[async_trait]
impl Backend for ContainerBackend {
    fn name(&self) -> &'static str {
        self.engine.kind.name()
    }

    fn layers(&self) -> LayersKind {
        LayersKind::Image
    }

    fn is_remote(&self) -> bool {
        !self.engine.is_local
    }

    fn owner(&self) -> Option<(u32, u32)> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.leftovers.clone();
        let info = &self.engine.info;
        for (has, what) in [(info.memory_limit, "memory"), (info.pids_limit, "the number of processes")] {
            if has == Some(false) {
                warnings.push(format!("{} cannot limit {what} on this machine", self.name()));
            }
        }
        let filters = info.security_options.as_ref().is_none_or(|all| all.iter().any(|one| one.contains("seccomp")));
        if !filters {
            warnings
                .push(format!("{} does not filter system calls; only this program's own filter applies", self.name()));
        }
        warnings
    }

    async fn base(&self) -> Result<Option<String>> {
        let base = self.images.base().await?;
        self.images.digest(&base).await.map(Some)
    }

    fn conceals(&self, shown: &[PathBuf], hidden: &[PathBuf]) -> Result<()> {
        EngineImages::left_out(shown, hidden).map(drop)
    }

    async fn examine(&self, place: &Path) -> Option<Evidence> {
        let silent = |what: String| Some(EvidenceKind::EngineSilent.because(format!("{} {what}", self.name())));
        match tokio::time::timeout(CANARY, self.engine.docker.ping()).await {
            Err(_) => return silent(format!("did not answer for {} s", CANARY.as_secs())),
            Ok(Err(error)) => return silent(format!("does not answer: {error}")),
            Ok(Ok(_)) => {}
        }
        // As long as the attempt's own container exists, it may make the canary fail, so wait until it is removed.
        if !self.engine.removals.wait_until_idle(REMOVALS).await {
            return None;
        }
        canary::examine(self, place, CANARY).await
    }

    async fn removals(&self) -> Vec<String> {
        self.engine.removals.wait_until_idle(REMOVALS).await;
        self.engine.removals.report()
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let begun = Instant::now();
        let mut again = false;
        loop {
            match Box::pin(self.start_once(spec)).await {
                Err(error) if error.kind == FailureKind::Infrastructure && begun.elapsed() < RESTART => {
                    // Another process may have removed an image that this process had found, so ask the engine again.
                    self.images.forget();
                    *self.tools.lock().await = None;
                    if self.engine.docker.ping().await.is_err() {
                        // The engine does not answer, perhaps because it restarts, so wait. Only failures while the
                        // engine answers are limited to two.
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    } else if std::mem::replace(&mut again, true) {
                        return Err(error);
                    }
                }
                made => return made,
            }
        }
    }
}
