//! Finds a container engine, connects to it, and labels everything that this program creates in the engine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::Docker;
use bollard::models::SystemInfo;

use super::removals::Removals;
use super::watch::EngineWatch;
use crate::error::{Error, FailureKind, Result};
use autoexperiment_init::processes;

pub(super) use super::LABEL;
/// Label for the purpose of an object: `attempt`, `build`, `base`, `env`, `repo`, `init`.
pub(super) const KIND: &str = "autoexperiment.kind";
/// Label for the process that a container belongs to, see [`Owner`].
pub(super) const OWNER: &str = "autoexperiment.owner";
/// Time limit of one request, in seconds.
const PATIENCE: u64 = 120;
/// Time limit of a request that sends a large layer, in seconds.
const BUILD_PATIENCE: u64 = 1800;

/// Kind of engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Docker, or another engine that answers on Docker's socket.
    Docker,
    /// Podman.
    Podman,
}

impl EngineKind {
    /// Name of the backend and of the engine's own program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// The environment variable for the engine's address.
    const fn variable(self) -> &'static str {
        match self {
            Self::Docker => "DOCKER_HOST",
            Self::Podman => "CONTAINER_HOST",
        }
    }

    fn sockets(self) -> Vec<PathBuf> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let runtime = variable("XDG_RUNTIME_DIR");
        match self {
            Self::Docker => [
                Some("/run/docker.sock".into()),
                Some("/var/run/docker.sock".into()),
                runtime.map(|folder| folder.join("docker.sock")),
                variable("HOME").map(|home| home.join(".docker/run/docker.sock")),
            ],
            Self::Podman => [
                Some("/run/podman/podman.sock".into()),
                runtime.map(|folder| folder.join("podman/podman.sock")),
                None,
                None,
            ],
        }
        .into_iter()
        .flatten()
        .collect()
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::Docker => {
                "`apt-get install docker.io`, then `dockerd &` (or `systemctl start docker`); another address is given \
                 by DOCKER_HOST"
            }
            Self::Podman => {
                "`apt-get install podman catatonit`, then `podman system service --time=0 \
                 unix:///run/podman/podman.sock &`; another address is given by CONTAINER_HOST"
            }
        }
    }
}

/// A connection to an engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    pub(super) kind: EngineKind,
    pub(super) docker: Docker,
    /// A connection to the same engine with a longer time limit.
    pub(super) builder: Docker,
    pub(super) info: SystemInfo,
    pub(super) owner: Owner,
    /// Whether the engine is reached through a local socket, so that its containers run on this machine.
    pub(super) is_local: bool,
    pub(super) quota: Arc<Quota>,
    pub(super) watch: Arc<EngineWatch>,
    pub(super) removals: Arc<Removals>,
}

/// Whether the storage driver can limit the size of a container's files. An engine reveals this only when a limit is
/// requested.
#[derive(Debug)]
pub(super) struct Quota(AtomicBool);

impl Quota {
    /// Decides from the driver whether to request quotas. A driver that may support quotas counts as supporting them
    /// until it refuses one.
    fn from_info(info: &SystemInfo) -> Self {
        let driver = info.driver.as_deref().unwrap_or_default();
        let below =
            info.driver_status.iter().flatten().find(|line| line.first().is_some_and(|key| key.contains("Backing")));
        let is_xfs = below.is_some_and(|line| line.get(1).is_some_and(|kind| kind == "xfs"));
        Self(AtomicBool::new(["btrfs", "zfs"].contains(&driver) || driver.starts_with("overlay") && is_xfs))
    }

    pub(super) fn is_expected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the engine refused a container because of its quota. If so, no further quotas are requested.
    pub(super) fn is_refused(&self, error: &bollard::errors::Error) -> bool {
        let said = error.to_string();
        let is_refused =
            ["storage-opt", "storage opt", "storage option", "pquota"].iter().any(|word| said.contains(word));
        if is_refused {
            self.0.store(false, Ordering::Relaxed);
        }
        is_refused
    }
}

impl Engine {
    /// Connects to the engine at the address in the environment, or to the first of the usual sockets that answers.
    ///
    /// # Errors
    /// Returns an error of kind `Machine` if no engine answers.
    pub(super) async fn connect(kind: EngineKind) -> Result<Self> {
        let mut tried = Vec::new();
        let named = std::env::var(kind.variable()).ok().filter(|address| !address.is_empty());
        let addresses = named.map_or_else(
            || kind.sockets().iter().map(|path| format!("unix://{}", path.display())).collect(),
            |address| vec![address],
        );
        for address in addresses {
            match Self::open(kind, &address).await {
                Ok(engine) => return Ok(engine),
                Err(error) => tried.push(format!("{address}: {error}")),
            }
        }
        Err(Error::machine(format!("no {} answers ({})", kind.name(), tried.join("; "))).hint(kind.remedy()))
    }

    async fn open(kind: EngineKind, address: &str) -> Result<Self, bollard::errors::Error> {
        let docker = Docker::connect_with_host(address)?.with_timeout(Duration::from_secs(10));
        let docker = docker.negotiate_version().await?;
        let info = docker.info().await?;
        Ok(Self::over(kind, address, &docker, info))
    }

    /// Creates the engine for a connection to this address.
    pub(super) fn over(kind: EngineKind, address: &str, docker: &Docker, info: SystemInfo) -> Self {
        let with = |seconds| docker.clone().with_timeout(Duration::from_secs(seconds));
        Self {
            kind,
            docker: with(PATIENCE),
            builder: with(BUILD_PATIENCE),
            owner: Owner::this(),
            is_local: address.starts_with("unix://"),
            quota: Arc::new(Quota::from_info(&info)),
            watch: Arc::default(),
            removals: Arc::default(),
            info,
        }
    }

    /// Describes version and storage driver for users.
    pub(super) fn describe(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
        format!("version {}, storage {}", text(&self.info.server_version), text(&self.info.driver))
    }

    /// Returns the labels for an object of this kind. An object with an owner is removed after its owner has ended.
    pub(super) fn labels(&self, kind: &str, is_owned: bool) -> HashMap<String, String> {
        let mut labels =
            HashMap::from([(LABEL.to_owned(), env!("CARGO_PKG_VERSION").to_owned()), (KIND.into(), kind.into())]);
        if is_owned {
            labels.insert(OWNER.into(), self.owner.to_string());
        }
        labels
    }

    /// Builds the error for a failed request to the engine. The error's kind is `Infrastructure`, because code inside a
    /// container cannot cause such a failure.
    pub(super) fn failed(&self, what: &str, error: &bollard::errors::Error) -> Error {
        Error::new(FailureKind::Infrastructure, format!("{} failed to {what}: {error}", self.kind.name()))
            .hint(format!("check the engine with `{} info` and the disk with `df`", self.kind.name()))
    }
}

/// Whether the engine says that the object does not exist.
pub(super) fn is_missing(error: &bollard::errors::Error) -> bool {
    status(error) == Some(404)
}

/// Whether the engine says that the name is taken, or that the same operation is under way already.
pub(super) fn is_conflict(error: &bollard::errors::Error) -> bool {
    // Podman answers with status 500 if a name is in use.
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, message } => {
            *status_code == 409 || message.contains("already in use") || message.contains("is already in progress")
        }
        _ => false,
    }
}

fn status(error: &bollard::errors::Error) -> Option<u16> {
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Identity of a process among all machines: machine, boot, pid namespace, pid and start time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    machine: String,
    boot: String,
    pid: i32,
    begun: u64,
    /// The kernel's name of the pid namespace; empty if unknown.
    namespace: String,
}

impl Owner {
    /// Returns the identity of this process.
    pub(super) fn this() -> Self {
        let pid = std::process::id() as i32;
        let (machine, boot) = here();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default().to_string_lossy().into_owned();
        Self { machine, boot, pid, begun: processes::started(pid).unwrap_or_default(), namespace }
    }

    /// Whether the owner was a process of this machine that has ended. Returns `false` for an owner on another machine
    /// or in another pid namespace, because nothing is known about it. If harnesses run inside containers of one image,
    /// they may have the same machine id on different machines. A different boot id therefore proves that the owner has
    /// ended only if the engine, and with it every harness that uses it, is on this machine.
    pub(super) fn is_dead(&self, engine_is_local: bool) -> bool {
        let this = Self::this();
        if self.machine != this.machine || self.boot.is_empty() || this.boot.is_empty() {
            return false;
        }
        if self.boot != this.boot {
            return engine_is_local;
        }
        !self.namespace.is_empty()
            && self.namespace == this.namespace
            && processes::started(self.pid) != Some(self.begun)
    }

    /// Parses a label. Labels that earlier versions of this program wrote lack the pid namespace.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let owner = Self {
            machine: parts.next()?.to_owned(),
            boot: parts.next()?.to_owned(),
            pid: parts.next()?.parse().ok()?,
            begun: parts.next()?.parse().ok()?,
            namespace: parts.next().unwrap_or_default().to_owned(),
        };
        parts.next().is_none().then_some(owner)
    }

    /// Returns the identity of a process that has ended, for tests.
    #[cfg(test)]
    pub(super) fn dead() -> Self {
        let this = Self::this();
        Self { begun: this.begun + 1, ..this }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}/{}", self.machine, self.boot, self.pid, self.begun, self.namespace)
    }
}

/// Returns the identities of the machine and of the current boot.
fn here() -> (String, String) {
    let read = |path| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    let name = || nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let machine = read("/etc/machine-id").filter(|id| !id.is_empty()).unwrap_or_else(name);
    (machine, read("/proc/sys/kernel/random/boot_id").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_ended_process_of_this_machine_counts_as_a_dead_owner() {
        let this = Owner::this();
        assert!(!this.is_dead(true));
        assert_eq!(Owner::parse(&this.to_string()).as_ref(), Some(&this));
        assert!(Owner::dead().is_dead(false), "another process of the same number");
        assert!(!Owner { machine: "other".into(), ..Owner::dead() }.is_dead(true), "a stranger's process");
        assert!(Owner::parse("garbage").is_none());
        assert!(Owner::parse(&format!("{this}/more")).is_none());
    }

    #[test]
    fn an_owner_in_another_or_unknown_pid_namespace_is_not_considered_dead() {
        let other = Owner { namespace: "pid:[1]".into(), ..Owner::dead() };
        assert!(!other.is_dead(true));
        let unknown = Owner { namespace: String::new(), ..Owner::dead() };
        assert!(!unknown.is_dead(true));
        assert_eq!(Owner::parse(unknown.to_string().trim_end_matches('/')), Some(unknown), "as it was once written");
    }

    #[test]
    fn an_owner_from_an_earlier_boot_counts_as_dead_only_if_the_engine_is_local() {
        let earlier = Owner { boot: "earlier".into(), namespace: "pid:[1]".into(), ..Owner::this() };
        assert!(earlier.is_dead(true));
        assert!(!earlier.is_dead(false));
        assert!(!Owner { boot: String::new(), ..earlier }.is_dead(true), "its boot is not known");
    }

    #[test]
    fn a_disk_quota_is_requested_if_the_file_system_supports_it_and_no_request_was_refused() {
        let info = |driver: &str, below: &str| SystemInfo {
            driver: Some(driver.into()),
            driver_status: Some(vec![vec!["Backing Filesystem".into(), below.into()]]),
            ..SystemInfo::default()
        };
        assert!(!Quota::from_info(&info("overlay2", "extfs")).is_expected());
        assert!(Quota::from_info(&info("btrfs", "")).is_expected());
        let quota = Quota::from_info(&info("overlay2", "xfs"));
        assert!(quota.is_expected());
        let error = |message: &str| bollard::errors::Error::DockerResponseServerError {
            status_code: 500,
            message: message.into(),
        };
        assert!(!quota.is_refused(&error("no space left on device")) && quota.is_expected());
        let refusal = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
        assert!(quota.is_refused(&error(refusal)) && !quota.is_expected());
    }
}
