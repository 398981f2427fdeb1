//! The container of one attempt, from creation to removal.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::{
    ContainerCreateBody, DeviceRequest, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, ResourcesUlimits,
};
use bollard::query_parameters::{AttachContainerOptionsBuilder, StartContainerOptions};
use futures_util::{StreamExt, TryStreamExt};
use tokio_util::bytes::Bytes;
use tokio_util::io::StreamReader;

use super::engine::{Engine, EngineKind};
use super::tools::Tools;
use super::{USER, store, upper};
use crate::error::{Error, FailureKind, Result};
use crate::sandbox::conversation::InitConversation;
use crate::sandbox::{
    Command, EvidenceKind, Exec, ExecLimits, Fault, FolderEntry, Gpu, Gpus, Listener, Loss, Sandbox, SandboxLimits,
    Spec, WORKDIR,
};
use autoexperiment_init::tree;
use autoexperiment_init::wire::{InitJob, Setup, Surroundings};

/// Time limit for the init to set up a container.
const SETUP: Duration = Duration::from_mins(1);
/// Maximum time that the end of an attempt waits for its container's removal. A removal that takes longer continues in
/// the background.
const REMOVAL: Duration = Duration::from_secs(20);
/// Maximum number of processes in all of podman's containers together.
const PROCESSES: u64 = 32_768;
/// Maximum bytes of a list of all files in the workspace. The init cuts the list at `tree::LISTING` bytes; the rest is
/// room for the last entry and for the mark at the list's end.
const SURVEY: u64 = (tree::LISTING + 2 * tree::ENTRY) as u64;
/// Maximum bytes of standard error that are kept from a container whose init fails.
const LAST_WORDS: usize = 2000;

/// A running container.
struct Container {
    conversation: InitConversation,
    engine: Arc<Engine>,
    id: String,
    tree: PathBuf,
    upper: PathBuf,
    /// Whether this process has already looked for the cause of the container's loss.
    is_explained: bool,
    /// Removes the container when dropped.
    removal: Removal,
}

/// Creates a container over `image`, attaches to it, starts it, and writes the files of the workspace's upper layer
/// into it.
pub(super) async fn start(
    engine: &Arc<Engine>,
    tools: &Tools,
    image: &str,
    spec: &Spec,
    tree: &Path,
    upper: &Path,
    gpus: Option<Gpus>,
) -> Result<Box<dyn Sandbox>> {
    let failed = |what: &'static str| move |error: bollard::errors::Error| engine.failed(what, &error);
    let laid = upper::laid(upper).map_err(|error| Error::io("read", upper, error))?;
    engine.watch.begin(&engine.docker);
    let body = body(engine, tools, image, &spec.limits, devices(spec.gpu.as_ref(), gpus));
    let id = create(engine, body, spec.limits.disk).await.map_err(failed("create a container"))?;
    // From here on, dropping `removal` removes the container, whatever happens.
    let removal = Removal::new(engine, &id);
    let options = AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true).build();
    let attached = engine.docker.attach_container(&id, Some(options)).await.map_err(failed("attach to a container"))?;
    engine.docker.start_container(&id, None::<StartContainerOptions>).await.map_err(failed("start a container"))?;
    let last_words = Arc::new(Mutex::new(Vec::new()));
    let from = StreamReader::new(standard_output(attached.output, last_words.clone()));
    let mut conversation = InitConversation::new(from, attached.input, None);
    let setup = Setup {
        place: Surroundings::Container,
        owner: None,
        source: (&spec.layers).into(),
        read_only: Vec::new(),
        sealed: Vec::new(),
        masked: Vec::new(),
        devices: Vec::new(),
        variables: spec.variables.clone(),
        limits: spec.limits.into(),
        procs_files: Vec::new(),
        memory_cgroup: true,
        processes_cgroup: true,
        scratch: None,
    };
    let ready = tokio::time::timeout(SETUP, conversation.set_up(&setup)).await;
    let lost = |why: String| {
        let words = last_words.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        let why = if words.is_empty() { why } else { format!("{why} ({words})") };
        Error::new(FailureKind::Infrastructure, format!("failed to start a `{}` sandbox: {why}", engine.kind.name()))
    };
    match ready {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => return Err(lost(reason)),
        Err(_) => return Err(lost(format!("no answer for {} s", SETUP.as_secs()))),
    }
    if !laid.is_empty() {
        let list = tree::encode_laid(&laid).map_err(|error| lost(error.to_string()))?;
        let written = conversation.file_job("write", Path::new(WORKDIR), InitJob::Lay, &list, 4096).await;
        written.map_err(|fault| lost(fault.to_string()))?;
    }
    let (tree, upper) = (tree.to_owned(), upper.to_owned());
    let engine = engine.clone();
    Ok(Box::new(Container { conversation, engine, id, tree, upper, is_explained: false, removal }))
}

/// Creates a container, with a quota for its files if the engine's storage driver supports quotas.
async fn create(engine: &Engine, mut body: ContainerCreateBody, disk: u64) -> Result<String, bollard::errors::Error> {
    if engine.quota.is_expected() {
        // The init enforces the disk limit, because it can stop the command and report the reason. The quota is larger
        // than that limit, so it takes effect only if a command writes faster than the init checks the disk.
        let size = disk.saturating_add(disk / 8).saturating_add(64 << 20);
        let mut limited = body.clone();
        let option = HashMap::from([("size".to_owned(), size.to_string())]);
        limited.host_config.get_or_insert_default().storage_opt = Some(option);
        match engine.docker.create_container(None, limited).await {
            Ok(made) => return Ok(made.id),
            Err(error) if engine.quota.is_refused(&error) => {}
            Err(error) => return Err(error),
        }
    }
    body.host_config.get_or_insert_default().storage_opt = None;
    Ok(engine.docker.create_container(None, body).await?.id)
}

/// Returns the stream of standard output, and stores standard error in `aside`.
fn standard_output(
    output: impl futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send + Unpin + 'static,
    aside: Arc<Mutex<Vec<u8>>>,
) -> impl futures_util::Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static {
    output
        .map_err(io::Error::other)
        .try_filter_map(move |piece| {
            let bytes = match piece {
                LogOutput::StdErr { message } => {
                    let mut aside = aside.lock().unwrap_or_else(PoisonError::into_inner);
                    let room = LAST_WORDS.saturating_sub(aside.len());
                    aside.extend_from_slice(&message[..message.len().min(room)]);
                    None
                }
                other => Some(other.into_bytes()),
            };
            std::future::ready(Ok(bytes))
        })
        .boxed()
}

/// Requests the attempt's own graphics processor or, if it has none, the graphics processors that every container gets.
fn devices(own: Option<&Gpu>, gpus: Option<Gpus>) -> Option<DeviceRequest> {
    let (count, ids) = match (own, gpus) {
        (Some(own), _) => (None, Some(vec![own.name.clone()])),
        (None, None) => return None,
        (None, Some(Gpus::All)) => (Some(-1), None),
        (None, Some(Gpus::Count(count))) => (Some(i64::from(count)), None),
        // Containers outside of attempts, such as those that test whether the machine works, get any one graphics
        // processor.
        (None, Some(Gpus::Each(_))) => (Some(1), None),
    };
    let capabilities = Some(vec![vec!["gpu".to_owned()]]);
    Some(DeviceRequest { count, device_ids: ids, capabilities, ..DeviceRequest::default() })
}

fn body(
    engine: &Engine,
    tools: &Tools,
    image: &str,
    limits: &SandboxLimits,
    devices: Option<DeviceRequest>,
) -> ContainerCreateBody {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let same = |name: &str, most: u64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(number(most)),
        hard: Some(number(most)),
    };
    // Shared memory counts towards the memory limit. Allow half of the limit, so that shared memory cannot use up all
    // of it.
    let half = (limits.memory / 2).max(1 << 20);
    let mut ulimits =
        vec![same("core", 0), same("nofile", 4096), same("fsize", limits.file_size), same("memlock", 8 << 20)];
    if engine.kind == EngineKind::Podman {
        // If podman itself may have only few processes, it is not allowed to give a container its own larger default
        // for `nproc`. So request a value that is allowed. `nproc` limits the processes of all containers together;
        // `pids_limit` below limits the processes of one container.
        let most = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NPROC)
            .map_or(PROCESSES, |limit| limit.1);
        ulimits.push(same("nproc", most.min(PROCESSES)));
    }
    let host_config = HostConfig {
        // When the harness closes the streams or dies, the init exits, and the container is removed.
        auto_remove: Some(true),
        network_mode: Some("none".into()),
        ipc_mode: Some("private".into()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec!["no-new-privileges".into()]),
        // Do not let the engine add an init: this program's own init reaps orphans, and it must be the first process so
        // that no process inside can kill it.
        init: Some(false),
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
        memory: Some(number(limits.memory)),
        memory_swap: Some(number(limits.memory)),
        nano_cpus: limits.cpus.map(|cpus| (cpus * 1e9).round() as i64),
        // Allow one process more than the commands' limit, for the init.
        pids_limit: Some(number(limits.processes.saturating_add(1))),
        ulimits: Some(ulimits),
        shm_size: Some(number(half)),
        mounts: Some(vec![tools.mount(true)]),
        device_requests: devices.map(|devices| vec![devices]),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(image.to_owned()),
        hostname: Some("sandbox".into()),
        user: Some(format!("{USER}:{USER}")),
        entrypoint: Some(tools.command.clone()),
        cmd: Some(Vec::new()),
        working_dir: Some("/".into()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        labels: Some(engine.labels("attempt", true)),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    }
}

impl Container {
    /// Copies the attempt's changes into `to`, which is the upper layer's folder on the host or a copy of that folder.
    /// `job` is the job that lists the workspace: [`InitJob::Survey`] kills the processes inside, and [`InitJob::Look`]
    /// only pauses them.
    async fn bring_back(&mut self, job: &InitJob, to: &Path) -> Result<(), Fault> {
        let here = Path::new(WORKDIR);
        let lost = |error: io::Error| Fault::Lost(Loss::new("failed to read the workspace").because(error));
        // If the workspace cannot be read, treat the sandbox as lost, and do not report the fault to the model.
        let gone = |fault: Fault| match fault {
            Fault::Refused(why) => Fault::lost(why),
            lost @ Fault::Lost(_) => lost,
        };
        self.conversation.end_abandoned_job().await?;
        let survey = self.conversation.file_job("read", here, job.clone(), &[], SURVEY).await.map_err(gone)?;
        let mut survey = tree::decode_survey(&survey).map_err(lost)?;
        if survey.is_cut {
            // The workspace has so many files that their list was cut. Request a list of only those files that the
            // attempt was given, so that at least their changes are found.
            let (tree, upper) = (self.tree.clone(), self.upper.clone());
            let known = blocking(move || upper::known(&tree, &upper)).await.map_err(lost)?;
            let paths = tree::encode_paths(known.iter().map(Vec::as_slice)).map_err(lost)?;
            let most = (known.len() * tree::ENTRY) as u64;
            let found = self.conversation.file_job("read", here, job.clone(), &paths, most).await.map_err(gone)?;
            survey = survey.completed(&known, tree::decode_survey(&found).map_err(lost)?);
        }
        let (tree, upper) = (self.tree.clone(), self.upper.clone());
        let left = blocking(move || upper::compare(&tree, &upper, survey.entries)).await.map_err(lost)?;
        let wanted = left.wanted.iter().map(|(path, size)| (path.as_slice(), *size));
        let wanted = tree::encode_wanted(wanted).map_err(lost)?;
        let most: u64 = left.wanted.iter().map(|(_, size)| size + 10).sum();
        let bytes = if left.wanted.is_empty() && *job == InitJob::Survey {
            Vec::new()
        } else {
            self.conversation.file_job("read", here, InitJob::Collect, &wanted, most).await.map_err(gone)?
        };
        let to = to.to_owned();
        blocking(move || upper::write_back(&to, &left, &tree::decode_collected(&bytes)?)).await.map_err(lost)
    }
}

impl Container {
    /// Returns `result`. If the container was lost and the cause is not known yet, first looks for evidence that the
    /// engine, or another user of the engine, ended the container, and adds the evidence.
    async fn checked<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        let Err(Fault::Lost(loss)) = result else { return result };
        if loss.evidence().is_some() || !self.conversation.is_lost() || self.is_explained {
            return Err(Fault::Lost(loss));
        }
        self.is_explained = true;
        let evidence = self.engine.watch.evidence(&self.id).await;
        Err(Fault::Lost(self.conversation.explain(None, evidence).unwrap_or(loss)))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[async_trait]
impl Sandbox for Container {
    fn workdir(&self) -> &Path {
        Path::new(WORKDIR)
    }

    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        let result = self.conversation.exec(command, limits).await;
        self.checked(result).await
    }

    async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        let result = self.conversation.read(path, limit).await;
        self.checked(result).await
    }

    async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        let result = self.conversation.write(path, bytes).await;
        self.checked(result).await
    }

    async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault> {
        let result = self.conversation.list(path).await;
        self.checked(result).await
    }

    async fn listen(&mut self) -> Result<Listener, Fault> {
        let result = self.conversation.listen().await;
        self.checked(result).await
    }

    async fn look(&mut self, upper: &Path) -> Result<bool, Fault> {
        let (from, to) = (self.upper.clone(), upper.to_owned());
        // Both folders are on the host, so a failure to copy is the harness's fault.
        let copied = blocking(move || upper::copy(&from, &to)).await;
        copied.map_err(|error| {
            let evidence = EvidenceKind::Harness.because(format!("the harness failed to copy its own files: {error}"));
            Fault::Lost(Loss::new("failed to copy the workspace's files").because(error).proven(evidence))
        })?;
        let brought = self.bring_back(&InitJob::Look, upper).await;
        self.checked(brought).await.map(|()| true)
    }

    async fn destroy(mut self: Box<Self>) -> Result<(), Fault> {
        let brought = self.bring_back(&InitJob::Survey, &self.upper.clone()).await;
        let brought = self.checked(brought).await;
        // Removing the attempt's files may take long. A timeout is not an error, because the attempt's changes have
        // been copied already.
        self.removal.wait(REMOVAL).await;
        brought
    }
}

/// Removes a container in the background when dropped, see [`store::remove_persistently`].
struct Removal {
    engine: Arc<Engine>,
    id: Option<String>,
}

impl Removal {
    fn new(engine: &Arc<Engine>, id: &str) -> Self {
        Self { engine: engine.clone(), id: Some(id.to_owned()) }
    }

    /// Begins the removal and waits for it, for at most `longest`.
    async fn wait(&mut self, longest: Duration) {
        if let Some(task) = self.begin() {
            let _ = tokio::time::timeout(longest, task).await;
        }
    }

    fn begin(&mut self) -> Option<tokio::task::JoinHandle<()>> {
        let id = self.id.take()?;
        // Outside of a Tokio runtime, no request can be sent to the engine. The container then ends when its streams
        // are closed.
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let engine = self.engine.clone();
        engine.removals.begin(&id);
        Some(runtime.spawn(async move {
            let result = store::remove_persistently(&engine, &id).await;
            engine.removals.end(&id, result);
        }))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        drop(self.begin());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_requests_the_graphics_processor_assigned_to_its_attempt_or_those_of_the_setting() {
        let own = Gpu { visible: "0".into(), name: "3".into(), devices: Vec::new() };
        let asked = |own: Option<&Gpu>, gpus| devices(own, gpus).map(|asked| (asked.count, asked.device_ids));
        assert_eq!(asked(None, None), None);
        assert_eq!(asked(None, Some(Gpus::All)), Some((Some(-1), None)));
        assert_eq!(asked(None, Some(Gpus::Count(2))), Some((Some(2), None)));
        // The request contains the device's name on the whole machine. The name inside a Slurm job would be wrong,
        // because the engine runs outside of the job.
        assert_eq!(asked(Some(&own), Some(Gpus::Each(None))), Some((None, Some(vec!["3".to_owned()]))));
    }
}
