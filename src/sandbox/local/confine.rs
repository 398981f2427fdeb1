//! What a process gives up for good before it runs anything of an agent's: capabilities, system calls, resources,
//! and with landlock the file system outside an allowlist.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::root;
use super::wire::{Place, Setup};
use crate::sandbox::processes;

/// The newest landlock whose rights we know; older kernels enforce what they have.
const LANDLOCK: ABI = ABI::V6;

/// What commands may read of the machine without namespaces. Not the rest of /proc: it shows the command lines of
/// all processes.
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

/// System calls that no experiment needs and that have led out of sandboxes, or reach beyond one.
const DENIED: &[libc::c_long] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    libc::SYS_fanotify_init,
    // Keys outlive and cross sandboxes.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Files by number, past every path.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib, libc::SYS_nfsservctl];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Everything to give up, prepared so that giving it up needs few calls.
pub(super) struct Confinement {
    filters: Vec<BpfProgram>,
    limits: Vec<(Resource, u64)>,
    landlock: Option<RulesetCreated>,
    /// The user to become, where the process is root on the host.
    user: Option<(u32, u32)>,
}

impl Confinement {
    /// Prepares for the user inside; `user` is to be become now, `None` where that is already so.
    pub(super) fn prepare(setup: &Setup, user: Option<(u32, u32)>) -> io::Result<Self> {
        let landlock = landlock(setup);
        if setup.place == Place::Host && landlock.is_none() {
            return Err(io::Error::other("landlock is not available"));
        }
        Ok(Self { filters: filters(setup.place != Place::Host)?, limits: limits(setup, user), landlock, user })
    }

    /// Gives it up, for this process and all its children. After a fork of a process with one thread only.
    pub(super) fn apply(&self) -> io::Result<()> {
        drop_bounding_set();
        if let Some((uid, gid)) = self.user {
            nix::unistd::setgroups(&[])?;
            nix::unistd::setresgid(gid.into(), gid.into(), gid.into())?;
            nix::unistd::setresuid(uid.into(), uid.into(), uid.into())?;
        }
        drop_capabilities()?;
        for (resource, value) in &self.limits {
            // A hard limit below ours may be there already.
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
        no_foreign_calls()?;
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// No capability can come back by executing a file. Needs a capability itself, so it comes before the others go.
fn drop_bounding_set() {
    // Numbers beyond the kernel's last are an error and the end.
    for capability in 0..64 {
        // SAFETY: no pointers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
}

fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    // SAFETY: no pointers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let header = Header { version: 0x2008_0522, pid: 0 };
    let nothing = [0_u32; 6];
    // SAFETY: version 3 of the call reads a header and two triples of u32.
    if unsafe { libc::syscall(libc::SYS_capset, &raw const header, nothing.as_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn limits(setup: &Setup, user: Option<(u32, u32)>) -> Vec<(Resource, u64)> {
    let mut limits = vec![
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, setup.limits.file_size),
        (Resource::RLIMIT_CPU, setup.limits.cpu_seconds),
        (Resource::RLIMIT_NOFILE, 4096),
        (Resource::RLIMIT_MEMLOCK, 8 << 20),
        (Resource::RLIMIT_MSGQUEUE, 1 << 20),
    ];
    if setup.place == Place::Namespaces {
        // Counted within the sandbox's own user namespace.
        limits.push((Resource::RLIMIT_NPROC, setup.limits.processes));
    } else if !setup.processes_cgroup {
        // Counted over the whole machine, so what the user has already must fit in as well.
        let user = user.map_or_else(|| nix::unistd::getuid().as_raw(), |(uid, _)| uid);
        limits.push((Resource::RLIMIT_NPROC, setup.limits.processes + processes::threads_of(user)));
    }
    if !setup.memory_cgroup {
        limits.push((Resource::RLIMIT_AS, setup.limits.memory));
    }
    limits
}

/// Two programs: what is refused, and what must look absent so that callers fall back.
fn filters(own_network: bool) -> io::Result<Vec<BpfProgram>> {
    let other = io::Error::other::<seccompiler::BackendError>;
    let dword =
        |index, operator, value| SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value).map_err(other);
    let rule = |conditions| SeccompRule::new(conditions).map_err(other);
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().chain(DENIED_HERE).map(|call| (*call, Vec::new())).collect();

    // clone with any flag that makes a namespace (the low byte of flags is the signal).
    let namespace_flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let clone = namespace_flags
        .iter()
        .map(|flag| rule(vec![dword(0, SeccompCmpOp::MaskedEq(*flag as u64), *flag as u64)?]))
        .collect::<io::Result<_>>()?;
    denied.insert(libc::SYS_clone, clone);

    // Pushing input into a terminal.
    let terminal = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| rule(vec![dword(1, SeccompCmpOp::Eq, request)?]));
    denied.insert(libc::SYS_ioctl, terminal.into_iter().collect::<io::Result<_>>()?);

    // Device nodes.
    let device = |index| {
        [libc::S_IFCHR, libc::S_IFBLK]
            .map(|kind| rule(vec![dword(index, SeccompCmpOp::MaskedEq(libc::S_IFMT.into()), kind.into())?]))
            .into_iter()
            .collect::<io::Result<Vec<_>>>()
    };
    denied.insert(libc::SYS_mknodat, device(2)?);
    #[cfg(target_arch = "x86_64")]
    denied.insert(libc::SYS_mknod, device(1)?);

    // Sockets: with a network namespace the common families, which reach only the sandbox itself; without one none
    // at all, for landlock does not see a connection to a socket file.
    let families: &[i32] =
        if own_network { &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] } else { &[] };
    let family =
        families.iter().map(|family| dword(0, SeccompCmpOp::Ne, *family as u64)).collect::<io::Result<Vec<_>>>()?;
    denied.insert(libc::SYS_socket, if family.is_empty() { Vec::new() } else { vec![rule(family)?] });

    // clone3 takes its flags by pointer, where no filter can look; glibc falls back to clone.
    let absent: BTreeMap<i64, Vec<SeccompRule>> = [(libc::SYS_clone3, Vec::new())].into();

    let build = |rules, error: i32| {
        let action = SeccompAction::Errno(error as u32);
        SeccompFilter::new(rules, SeccompAction::Allow, action, architecture()?)
            .and_then(BpfProgram::try_from)
            .map_err(other)
    };
    Ok(vec![build(absent, libc::ENOSYS)?, build(denied, libc::EPERM)?])
}

fn architecture() -> io::Result<TargetArch> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(|_| io::ErrorKind::Unsupported.into())
}

/// Refuses x32 calls, which are x86-64 calls by other numbers; filters by number would miss them.
fn no_foreign_calls() -> io::Result<()> {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it.
    if unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The landlock rules, or `None` where the kernel has none.
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
    if setup.place == Place::Host {
        rules = rules.handle_access(AccessNet::from_all(LANDLOCK)).ok()?;
    }
    let mut rules = rules.create().ok()?;
    let read = AccessFs::from_read(LANDLOCK);
    let all = AccessFs::from_all(LANDLOCK);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut allowed: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    if setup.place == Place::Host {
        allowed.extend(root::readable().map(|path| (path.to_path_buf(), read)));
        allowed.extend(setup.read_only.iter().map(|path| (path.clone(), read)));
        allowed.extend(HOST_FACTS.iter().map(|path| (path.into(), read)));
        allowed.extend(setup.scratch.iter().map(|path| (path.clone(), all)));
        if let crate::workspace::Layers::Copy { dir } = &setup.layers {
            allowed.push((dir.clone(), all));
        }
    } else {
        // The root holds nothing but what may be read.
        allowed.extend([("/".into(), read), ("/tmp".into(), all), ("/dev/shm".into(), all)]);
        allowed.push((super::super::WORKDIR.into(), all));
    }
    for name in ["null", "zero", "full", "random", "urandom"] {
        allowed.push((Path::new("/dev").join(name), device));
    }
    for (path, access) in allowed {
        let Ok(file) = PathFd::new(&path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(LANDLOCK) };
        rules = rules.add_rule(PathBeneath::new(file, access)).ok()?;
    }
    Some(rules)
}
