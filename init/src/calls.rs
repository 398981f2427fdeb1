//! The seccomp filters: they refuse calls that no experiment needs, every call newer than that list, and calls that
//! would affect the init. Without namespaces, they also refuse calls that would affect the host's files and processes.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::wire::Surroundings;

/// The newest call known to this list: `mseal` of Linux 6.10. New calls have the same number on every architecture.
const NEWEST: u32 = 462;

/// System calls that no experiment needs. They have been used to escape from sandboxes, or affect the world outside.
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
    libc::SYS_process_mrelease,
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
    // Keys survive a sandbox and are visible in others.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Opening files by number bypasses every rule about paths.
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
    // Memory that no limit counts, and the placement of memory.
    libc::SYS_memfd_secret,
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

/// Calls that change a process's limits, priority or processor. Their first argument is the process id.
const OF_A_PROCESS: &[libc::c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// Calls that do the same for a process, a group or a user. The first argument selects one of the three, and the second
/// is its id. The pair's second value selects a user.
const OF_SEVERAL: &[(libc::c_long, u64)] = &[(libc::SYS_setpriority, PRIO_USER), (libc::SYS_ioprio_set, IOPRIO_USER)];
const PRIO_USER: u64 = 2;
const IOPRIO_USER: u64 = 3;

/// Refused `ioctl` requests. The first two push input into a terminal. The third changes a terminal's line discipline,
/// for which the kernel would load one of many seldom used modules. The others make files immutable, or move them to
/// another project and so to another quota.
const REQUESTS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR];
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;

/// Calls that can return huge pages, with the index of the flags argument and the flag that requests them.
const HUGE: &[(libc::c_long, u8, u64)] = &[
    (libc::SYS_mmap, 3, libc::MAP_HUGETLB as u64),
    (libc::SYS_memfd_create, 1, libc::MFD_HUGETLB as u64),
    (libc::SYS_shmget, 2, libc::SHM_HUGETLB as u64),
];

/// The protocols that commands may use, per socket family: the usual internet protocols, and queries of routes and
/// addresses.
const PROTOCOLS: &[(i32, &[i32])] =
    &[(libc::AF_INET, INTERNET), (libc::AF_INET6, INTERNET), (libc::AF_NETLINK, &[libc::NETLINK_ROUTE])];
const INTERNET: &[i32] =
    &[libc::IPPROTO_IP, libc::IPPROTO_ICMP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMPV6];

/// Calls refused without a memory cgroup, because their memory belongs to no process. `vmsplice` can keep a whole huge
/// page in a pipe for one byte.
const UNCOUNTED: &[libc::c_long] = &[libc::SYS_shmget, libc::SYS_vmsplice];

/// Calls that create System V and POSIX objects that outlive their process. Their memory counts for the sandbox but
/// belongs to no process, so no limit of a process applies to it, and in the end the kernel would kill the sandbox's
/// first process.
const OUTLIVING: &[libc::c_long] = &[libc::SYS_mq_open, libc::SYS_msgget, libc::SYS_semget];

/// Calls also refused without namespaces: they change the metadata of files that landlock hides, because landlock
/// protects only contents.
const DENIED_ON_THE_HOST: &[libc::c_long] = &[libc::SYS_fchown, libc::SYS_fchownat];
#[cfg(target_arch = "x86_64")]
const DENIED_ON_THE_HOST_HERE: &[libc::c_long] = &[libc::SYS_chown, libc::SYS_lchown];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_ON_THE_HOST_HERE: &[libc::c_long] = &[];

/// Calls also refused without namespaces, with the error of a file system without attributes, which programs that copy
/// files expect.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
];

/// The call `fchmodat2`, which has the same number on all architectures but is missing from `libc` on some.
const FCHMODAT2: libc::c_long = 452;

/// Calls that set permissions, with the index of the permissions argument.
#[cfg(target_arch = "x86_64")]
const PERMISSIONS: &[(libc::c_long, u8)] =
    &[(libc::SYS_chmod, 1), (libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
#[cfg(not(target_arch = "x86_64"))]
const PERMISSIONS: &[(libc::c_long, u8)] = &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
/// Permission bits that the owner of a file or folder must keep.
const NEEDED: [u64; 3] = [0o400, 0o200, 0o100];
/// Permission bits that would let other users do more than read.
const HARMFUL: [u64; 5] = [0o4000, 0o2000, 0o1000, 0o020, 0o002];

/// Calls that set times, except `utimensat`.
#[cfg(target_arch = "x86_64")]
const TIMES: &[libc::c_long] = &[libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const TIMES: &[libc::c_long] = &[];

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the filters for commands in this place. `memory_cgroup` is whether a cgroup counts the memory of all
/// processes together.
pub(super) fn filters(place: Surroundings, memory_cgroup: bool) -> io::Result<Vec<BpfProgram>> {
    // clone3 takes its flags by pointer, which a filter cannot follow. If the call is absent, glibc falls back to
    // clone.
    let mut absent: SyscallRules = [(libc::SYS_clone3, Vec::new())].into();
    let mut denied = denied(place)?;
    if !memory_cgroup {
        // The limits of a process do not count this memory. Programs fall back to a temporary file.
        absent.insert(libc::SYS_memfd_create, Vec::new());
        denied.extend(UNCOUNTED.iter().map(|call| (*call, Vec::new())));
    }
    let mut filters = vec![
        unknown_calls(),
        filter(absent, libc::ENOSYS)?,
        filter(denied, libc::EPERM)?,
        filter(process_hiding_calls()?, 0)?,
    ];
    if !memory_cgroup {
        // Each socket counts for the most that it may hold, so its limit must not be raised. Report success: programs
        // cope with the smaller limit.
        let level = dword(1, SeccompCmpOp::Eq, libc::SOL_SOCKET as u64)?;
        let option = dword(2, SeccompCmpOp::Eq, libc::SO_SNDBUF as u64)?;
        filters.push(filter([(libc::SYS_setsockopt, vec![rule(vec![level, option])?])].into(), 0)?);
    }
    if place != Surroundings::Namespaces {
        // The kernel counts inotify instances per user of the host, who may need them. Programs that watch files fall
        // back to polling.
        let inotify = [(libc::SYS_inotify_init1, Vec::new())].into();
        filters.push(filter(inotify, libc::EMFILE)?);
        #[cfg(target_arch = "x86_64")]
        filters.push(filter([(libc::SYS_inotify_init, Vec::new())].into(), libc::EMFILE)?);
    }
    if place == Surroundings::Host {
        let attributes = ATTRIBUTES.iter().map(|call| (*call, Vec::new())).collect();
        filters.extend([filter(attributes, libc::EOPNOTSUPP)?, filter(pretended()?, 0)?]);
    }
    Ok(filters)
}

fn dword(argument: u8, operator: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).map_err(io::Error::other)
}

fn qword(argument: u8, operator: SeccompCmpOp, value: u64) -> io::Result<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value).map_err(io::Error::other)
}

fn rule(conditions: Vec<SeccompCondition>) -> io::Result<SeccompRule> {
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Returns the calls that fail with EPERM.
fn denied(place: Surroundings) -> io::Result<SyscallRules> {
    let mut denied: SyscallRules =
        DENIED.iter().chain(DENIED_HERE).chain(OUTLIVING).map(|call| (*call, Vec::new())).collect();

    // clone with a flag that makes a namespace (the low byte of the flags is the signal).
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

    let requests = REQUESTS.iter().map(|request| rule(vec![dword(1, SeccompCmpOp::Eq, *request)?]));
    denied.insert(libc::SYS_ioctl, requests.collect::<io::Result<_>>()?);

    // Huge pages come from a pool of the host that no memory limit counts.
    for (call, argument, flag) in HUGE {
        denied.insert(*call, vec![rule(vec![dword(*argument, SeccompCmpOp::MaskedEq(*flag), *flag)?])?]);
    }

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

    // With a network namespace, allow the common families of sockets, which reach only the sandbox itself. Without one,
    // allow no sockets, because landlock does not restrict connections to socket files.
    let families: &[i32] = match place {
        Surroundings::Host => &[],
        _ => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let family =
        families.iter().map(|family| dword(0, SeccompCmpOp::Ne, *family as u64)).collect::<io::Result<Vec<_>>>()?;
    let mut sockets = Vec::new();
    if !family.is_empty() {
        sockets.push(rule(family)?);
        // For other protocols, the kernel would load a module at any user's request.
        for (family, protocols) in PROTOCOLS {
            let others = protocols.iter().map(|protocol| dword(2, SeccompCmpOp::Ne, *protocol as u64));
            let family = dword(0, SeccompCmpOp::Eq, *family as u64);
            sockets.push(rule(std::iter::once(family).chain(others).collect::<io::Result<_>>()?)?);
        }
    }
    denied.insert(libc::SYS_socket, sockets);

    // Limits and priorities of other processes. In a pid namespace, only the init (process 1) needs protection. On the
    // host, a process may change only its own, and must refer to itself as 0.
    let is_other = |argument| match place {
        Surroundings::Host => dword(argument, SeccompCmpOp::Ne, 0),
        _ => dword(argument, SeccompCmpOp::Eq, 1),
    };
    for call in OF_A_PROCESS {
        denied.insert(*call, vec![rule(vec![is_other(0)?])?]);
    }
    for (call, user) in OF_SEVERAL {
        denied.insert(*call, vec![rule(vec![is_other(1)?])?, rule(vec![dword(0, SeccompCmpOp::Eq, *user)?])?]);
    }

    if place != Surroundings::Namespaces {
        // Only in an IPC namespace does the kernel limit all shared memory together.
        denied.insert(libc::SYS_shmget, Vec::new());
    }
    if place == Surroundings::Host {
        denied.extend(DENIED_ON_THE_HOST.iter().chain(DENIED_ON_THE_HOST_HERE).map(|call| (*call, Vec::new())));
        // A datagram socket could send to any socket file.
        let datagram = dword(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM as u64)?;
        denied.insert(libc::SYS_socketpair, vec![rule(vec![datagram])?]);
    }
    Ok(denied)
}

/// Returns the calls that report success without any effect, only used on the host. Programs set permissions and times
/// whenever they copy a file, and few continue after an error. Landlock allows these calls, so without the filter they
/// would change files of other users.
fn pretended() -> io::Result<SyscallRules> {
    let mut pretended: SyscallRules = TIMES.iter().map(|call| (*call, Vec::new())).collect();
    // Let `touch` pass, which sets the times of an open file to the current time.
    let by_path = rule(vec![qword(1, SeccompCmpOp::Ne, 0)?])?;
    let to_another_time = rule(vec![qword(2, SeccompCmpOp::Ne, 0)?])?;
    pretended.insert(libc::SYS_utimensat, vec![by_path, to_another_time]);
    for (call, argument) in PERMISSIONS {
        let mut rules = Vec::new();
        for bit in NEEDED {
            rules.push(rule(vec![dword(*argument, SeccompCmpOp::MaskedEq(bit), 0)?])?);
        }
        for bit in HARMFUL {
            rules.push(rule(vec![dword(*argument, SeccompCmpOp::MaskedEq(bit), bit)?])?);
        }
        pretended.insert(*call, rules);
    }
    Ok(pretended)
}

/// Returns the call by which a process hides from other processes of its user. The call reports success without any
/// effect, because the open files of all processes must be visible to be counted.
fn process_hiding_calls() -> io::Result<SyscallRules> {
    let hides = vec![dword(0, SeccompCmpOp::Eq, libc::PR_SET_DUMPABLE as u64)?, dword(1, SeccompCmpOp::Eq, 0)?];
    Ok([(libc::SYS_prctl, vec![rule(hides)?])].into())
}

fn filter(rules: SyscallRules, error: i32) -> io::Result<BpfProgram> {
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error as u32), architecture)
        .and_then(BpfProgram::try_from)
        .map_err(io::Error::other)
}

/// Makes all calls with higher numbers look absent: calls newer than the list and, on x86-64, the x32 calls, which are
/// the same calls under other numbers.
fn unknown_calls() -> BpfProgram {
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 1, NEWEST),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
