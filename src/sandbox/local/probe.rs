//! Finds out what works on this machine, by trying.

use nix::libc;
use serde::Serialize;

use super::{ConfinementMode, LocalBackend, cgroup};
use crate::sandbox::{Backend, canary};

/// The features of this machine that sandboxes need. An `Err` contains the reason why a feature does not work.
#[derive(Debug, Clone, Serialize)]
pub struct MachineReport {
    /// Kernel release, such as `6.1.0-13-amd64`.
    pub kernel: String,
    /// Processor architecture, such as `x86_64`.
    pub architecture: &'static str,
    /// Whether the harness runs as root.
    pub root: bool,
    /// Whether sandboxes in separate namespaces work.
    pub namespaces: Result<(), String>,
    /// Whether sandboxes in separate namespaces with an overlay as the workspace work.
    pub overlay: Result<(), String>,
    /// Whether sandboxes by landlock and seccomp alone work.
    pub landlock: Result<(), String>,
    /// Version of landlock's interface; 0 if the kernel does not offer landlock.
    pub landlock_abi: i32,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// For memory, processes and CPU time: the version of cgroups that can limit them, or `no`; as text for users.
    pub cgroups: String,
    /// Whether memory can be limited for a sandbox as a whole.
    pub memory_cgroup: bool,
    /// Whether processes can be limited for a sandbox as a whole.
    pub processes_cgroup: bool,
}

impl MachineReport {
    /// Returns the user with whose id sandboxes on this machine access folders ([`Backend::walker`]), if it is not the
    /// current one.
    #[must_use]
    pub fn walker(&self) -> Option<u32> {
        let mode = if self.namespaces.is_ok() { ConfinementMode::Namespaces } else { ConfinementMode::Landlock };
        LocalBackend::with_mode(mode).walker()
    }

    /// Tries all kinds of sandboxes and reads facts about the kernel.
    pub async fn collect() -> Self {
        let cgroups = cgroup::Parents::find();
        let uname = nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned());
        Self {
            kernel: uname.unwrap_or_default(),
            architecture: std::env::consts::ARCH,
            root: nix::unistd::getuid().is_root(),
            namespaces: canary::try_out(&LocalBackend::with_mode(ConfinementMode::Namespaces)).await,
            overlay: canary::try_out(&LocalBackend::with_mode(ConfinementMode::Overlay)).await,
            landlock: canary::try_out(&LocalBackend::with_mode(ConfinementMode::Landlock)).await,
            landlock_abi: landlock_abi(),
            seccomp: rustix::thread::secure_computing_mode().is_ok(),
            cgroups: cgroups.describe(),
            memory_cgroup: cgroups.memory(),
            processes_cgroup: cgroups.processes(),
        }
    }
}

/// Returns the version of landlock that the kernel offers; 0 if it has no landlock.
pub(super) fn landlock_abi() -> i32 {
    const VERSION: u32 = 1;
    // SAFETY: with the flag `VERSION`, the system call does not read the attributes (null here) and returns the
    // version.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, VERSION) };
    abi.max(0) as i32
}
