//! Gives up rights for good before a process runs an agent's code: capabilities, system calls, resources and, with
//! landlock, the file system outside an allowlist.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::sys::resource::{Resource, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::filter::Program;
use super::wire::{OsBytes, Setup, Surroundings, WorkspaceSource};
use super::{calls, filter, root, terminals};
use crate::processes;

/// The newest landlock version whose rights are used here. Older kernels enforce the rights that they support.
const LANDLOCK: ABI = ABI::V6;

/// Files about the machine that commands may read without namespaces. Most of /proc is not among them, because it shows
/// the command lines of all processes.
const HOST_FACTS: &[&str] = &[
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// Everything to give up, prepared in advance so that few calls remain after the fork.
pub(super) struct Confinement {
    filter: Program,
    limits: Vec<(Resource, u64)>,
    landlock: Option<RulesetCreated>,
    /// User and group to become, if the process is root on the host.
    user: Option<(u32, u32)>,
}

impl Confinement {
    /// Prepares the confinement. `user` is the user to become; `None` if this process already is that user.
    pub(super) fn prepare(setup: &Setup, user: Option<(u32, u32)>) -> io::Result<Self> {
        let landlock = landlock(setup);
        if setup.place == Surroundings::Host && landlock.is_none() {
            return Err(io::Error::other("landlock is not available"));
        }
        Ok(Self {
            filter: calls::filter(setup.place, setup.memory_cgroup)?,
            limits: limits(setup, user),
            landlock,
            user,
        })
    }

    /// Confines this process and its future children. Only for processes with one thread.
    pub(super) fn apply(&self) -> io::Result<()> {
        drop_bounding_set();
        if let Some((uid, gid)) = self.user {
            nix::unistd::setgroups(&[])?;
            nix::unistd::setresgid(gid.into(), gid.into(), gid.into())?;
            nix::unistd::setresuid(uid.into(), uid.into(), uid.into())?;
        }
        rustix::thread::clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
        for (resource, value) in &self.limits {
            // Keep an existing hard limit that is lower than ours.
            let (_, hard) = nix::sys::resource::getrlimit(*resource)?;
            setrlimit(*resource, (*value).min(hard), (*value).min(hard))?;
        }
        nix::sys::prctl::set_no_new_privs()?;
        if let Some(rules) = &self.landlock {
            let status = rules.try_clone()?.restrict_self().map_err(io::Error::other)?;
            if status.ruleset == RulesetStatus::NotEnforced {
                return Err(io::Error::other("landlock rules were not enforced"));
            }
        }
        filter::install(&self.filter)
    }
}

/// Drops the bounding set, so that executing a file cannot restore capabilities. Must be called before this process
/// drops its capabilities, because the call needs one.
fn drop_bounding_set() {
    // Capabilities are numbered without gaps. The call fails for the first number that the kernel does not know, so all
    // capabilities have been dropped then.
    for capability in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << capability);
        if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
            break;
        }
    }
}

fn limits(setup: &Setup, user: Option<(u32, u32)>) -> Vec<(Resource, u64)> {
    // A file that was sent through a socket and has not been received yet is in no process's table of files. Its memory
    // is counted only in a network namespace or by a memory cgroup. If there is neither, allow fewer open files, so
    // that less memory can escape the count.
    let is_uncounted = setup.place == Surroundings::Host && !setup.memory_cgroup;
    let mut limits = vec![
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, setup.limits.file_size),
        (Resource::RLIMIT_CPU, setup.limits.cpu_seconds),
        (Resource::RLIMIT_NOFILE, if is_uncounted { 1024 } else { 4096 }),
        (Resource::RLIMIT_MEMLOCK, 8 << 20),
        (Resource::RLIMIT_MSGQUEUE, 1 << 20),
        // Timers and queued signals take kernel memory and count for the user on the host.
        (Resource::RLIMIT_SIGPENDING, 4096),
    ];
    if setup.place == Surroundings::Namespaces {
        // In a user namespace, the kernel counts only the sandbox's own processes.
        limits.push((Resource::RLIMIT_NPROC, setup.limits.processes));
    } else if !setup.processes_cgroup {
        // Without namespaces, the kernel counts the user's threads on the whole machine, so add the existing ones.
        let user = user.map_or_else(|| nix::unistd::getuid().as_raw(), |(uid, _)| uid);
        limits.push((Resource::RLIMIT_NPROC, setup.limits.processes + processes::threads_of(user)));
    }
    limits
}

/// Grants reading a folder, except its masked parts: in each folder above a masked part, every other entry gets its own
/// rule. The names in such a folder can still be listed.
fn grant(path: &Path, masked: &[PathBuf], allowed: &mut Vec<(PathBuf, BitFlags<AccessFs>)>) {
    let read = AccessFs::from_read(LANDLOCK);
    if masked.iter().any(|mask| mask == path) {
        return;
    }
    if !masked.iter().any(|mask| mask.starts_with(path)) {
        allowed.push((path.into(), read));
        return;
    }
    allowed.push((path.into(), AccessFs::ReadDir.into()));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        // Links get no rule, because the rules of their targets decide.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            grant(&entry.path(), masked, allowed);
        }
    }
}

/// Returns the landlock rules, or `None` if the kernel does not support landlock.
fn landlock(setup: &Setup) -> Option<RulesetCreated> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .ok()?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .ok()?
        .scope(Scope::from_all(LANDLOCK))
        .ok()?;
    if setup.place == Surroundings::Host {
        rules = rules.handle_access(AccessNet::from_all(LANDLOCK)).ok()?;
    }
    let mut rules = rules.create().ok()?;
    let read = AccessFs::from_read(LANDLOCK);
    let all = AccessFs::from_all(LANDLOCK);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut allowed: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    if setup.place == Surroundings::Host {
        // Use real paths, because `/bin` is a link into `/usr` on most systems.
        let real = |path: &Path| path.canonicalize().ok();
        let masked: Vec<PathBuf> = setup.masked.iter().filter_map(|path| real(path.as_path())).collect();
        let shown = setup.read_only.iter().map(OsBytes::as_path).filter_map(real);
        for path in root::readable().filter_map(real).chain(shown) {
            grant(&path, &masked, &mut allowed);
        }
        allowed.extend(HOST_FACTS.iter().map(|path| (path.into(), read)));
        allowed.extend(setup.scratch.iter().map(|path| (path.as_path().into(), all)));
        if let WorkspaceSource::Folder(dir) = &setup.source {
            allowed.push((dir.as_path().into(), all));
        }
    } else {
        // In a container or namespace, the root contains only files that may be read.
        allowed.extend([("/".into(), read), ("/tmp".into(), all), ("/dev/shm".into(), all)]);
        allowed.push((crate::WORKDIR.into(), all));
        allowed.push((terminals::FOLDER.into(), device | AccessFs::ReadDir));
        allowed.push((terminals::CONTROLLING.into(), device));
    }
    for name in ["null", "zero", "full", "random", "urandom"] {
        allowed.push((Path::new("/dev").join(name), device));
    }
    allowed.extend(setup.devices.iter().map(|path| (path.as_path().into(), device)));
    for (path, access) in allowed {
        let Ok(file) = PathFd::new(&path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(LANDLOCK) };
        rules = rules.add_rule(PathBeneath::new(file, access)).ok()?;
    }
    Some(rules)
}
