//! What works on this machine, found out by trying.

use std::time::Duration;

use nix::libc;
use serde::Serialize;

use super::{LocalBackend, Mode, cgroup};
use crate::files::Temporary;
use crate::sandbox::{Backend, Command, ExecLimits, Exit, SandboxLimits, Spec};
use crate::workspace::{Layers, LayersKind};

/// What works on this machine. Each `Err` says why something does not.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Kernel release, as `6.1.0-13-amd64`.
    pub kernel: String,
    /// Processor architecture, as `x86_64`.
    pub architecture: &'static str,
    /// Whether the harness runs as root.
    pub root: bool,
    /// Sandboxes in own namespaces.
    pub namespaces: Result<(), String>,
    /// The same with an overlay as workspace.
    pub overlay: Result<(), String>,
    /// Sandboxes by landlock and seccomp alone.
    pub landlock: Result<(), String>,
    /// Version of landlock's interface; 0 where there is none.
    pub landlock_abi: i32,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Which cgroups can be written, for people.
    pub cgroups: String,
    /// Whether memory can be limited for a sandbox as a whole.
    pub memory_cgroup: bool,
    /// Whether processes can be limited for a sandbox as a whole.
    pub processes_cgroup: bool,
}

impl Report {
    /// As [`Backend::walker`] of the sandbox that is chosen here.
    #[must_use]
    pub fn walker(&self) -> Option<u32> {
        let mode = if self.namespaces.is_ok() { Mode::Namespaces } else { Mode::Landlock };
        LocalBackend::with_mode(mode).walker()
    }

    /// Tries everything out.
    pub async fn collect() -> Self {
        let cgroups = cgroup::Parents::find();
        let uname = nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned());
        Self {
            kernel: uname.unwrap_or_default(),
            architecture: std::env::consts::ARCH,
            root: nix::unistd::getuid().is_root(),
            namespaces: try_out(&LocalBackend::with_mode(Mode::Namespaces)).await,
            overlay: try_out(&LocalBackend::with_mode(Mode::Overlay)).await,
            landlock: try_out(&LocalBackend::with_mode(Mode::Landlock)).await,
            landlock_abi: landlock_abi(),
            seccomp: rustix::thread::secure_computing_mode().is_ok(),
            cgroups: cgroups.describe(),
            memory_cgroup: cgroups.memory(),
            processes_cgroup: cgroups.processes(),
        }
    }
}

/// The version of landlock that the kernel offers; 0 for none.
pub(super) fn landlock_abi() -> i32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no attributes and returns the version.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION) };
    abi.max(0) as i32
}

/// Starts a sandbox, lets it change a file, and ends it.
pub(super) async fn try_out(backend: &LocalBackend) -> Result<(), String> {
    let folder = Temporary::create(&std::env::temp_dir(), super::PREFIX, 0o700)
        .map_err(|error| format!("no temporary folder: {error}"))?;
    let place = |name: &str| -> Result<std::path::PathBuf, String> {
        let path = folder.path().join(name);
        let file = path.join("file");
        let make = || -> std::io::Result<()> {
            std::fs::create_dir(&path)?;
            if name == "lower" || name == "copy" {
                std::fs::write(&file, "before")?;
            }
            let Some((uid, gid)) = backend.owner() else { return Ok(()) };
            for path in [folder.path(), &path, &file].into_iter().filter(|path| path.exists()) {
                std::os::unix::fs::chown(path, Some(uid), Some(gid))?;
            }
            Ok(())
        };
        make().map_err(|error| format!("failed to prepare `{}`: {error}", path.display()))?;
        Ok(path)
    };
    let layers = match backend.layers() {
        LayersKind::Overlay => {
            Layers::Overlay { lower: place("lower")?, upper: place("upper")?, work: place("work")?, disk: None }
        }
        LayersKind::Copy | LayersKind::Image => Layers::Copy { dir: place("copy")? },
    };
    let spec = Spec {
        layers,
        read_only: Vec::new(),
        sealed: Vec::new(),
        hidden: Vec::new(),
        variables: std::collections::BTreeMap::new(),
        limits: SandboxLimits::default(),
        gpu: None,
    };
    let mut sandbox = backend.start(&spec).await.map_err(|error| error.message)?;
    let limits =
        ExecLimits { wall: Duration::from_secs(10), patience: Duration::ZERO, grace: Duration::ZERO, output: 1000 };
    let command = Command::shell("test \"$(cat file)\" = before && echo after > file && mv file moved && cat moved");
    let done = sandbox.exec(&command, &limits).await.map_err(|fault| fault.to_string())?;
    let result = if done.exit == Exit::Code(0) && done.stdout == b"after\n" {
        Ok(())
    } else {
        Err(format!("a trial command failed: {:?} {}", done.exit, String::from_utf8_lossy(&done.stderr)))
    };
    sandbox.destroy().await.map_err(|fault| fault.to_string())?;
    result
}
