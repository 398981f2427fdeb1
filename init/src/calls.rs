//! The rules of the seccomp filter. They refuse calls that no experiment needs, every call newer than the list of known
//! calls, and calls that would affect the init. Without namespaces, they also refuse calls that would affect the host's
//! files and processes.

use std::io;

use nix::libc;

use super::filter::{CallRules, Comparison, Condition, Program, Refusals, Rule, compile};
use super::wire::Surroundings;

/// The newest call known to this list: `mseal` of Linux 6.10. New calls have the same number on every architecture.
const NEWEST: u32 = 462;

/// System calls that no experiment needs. They have been used to escape from sandboxes, or affect the world outside.
const DENIED: &[libc::c_long] = &[
    // Mounting file systems and changing the root.
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
    // Creating and entering namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Tracing and reading other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    // The running kernel and its modules.
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
    // Keys of the kernel's key rings survive a sandbox and are visible in other sandboxes.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Opening files by number bypasses every rule about paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Rebooting, the clock and other state of the whole machine.
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
    // Getting memory that no limit counts, and changing where memory is placed.
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
/// Calls that change the priority of a process, a group or a user. The call's first argument says which of the three is
/// meant, and its second argument is the id. Each pair here has the call and the value of the first argument that means
/// a user.
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

/// Calls that are refused if no cgroup limits memory: the memory that they take belongs to no process, so no limit of a
/// process applies to it. `vmsplice` can keep a whole huge page in a pipe for one byte.
const UNCOUNTED: &[libc::c_long] = &[libc::SYS_shmget, libc::SYS_vmsplice];

/// Calls that create System V and POSIX objects that outlive their process. Their memory counts towards the sandbox's
/// limit but belongs to no process. So no limit of a process applies to it, killing commands does not free it, and the
/// kernel would in the end kill the sandbox's first process.
const OUTLIVING: &[libc::c_long] = &[libc::SYS_mq_open, libc::SYS_msgget, libc::SYS_semget];

/// System calls that are refused only where there are no namespaces. Landlock protects only the contents of files, so
/// these calls could change the metadata of hidden files.
const DENIED_ON_THE_HOST: &[libc::c_long] = &[libc::SYS_fchown, libc::SYS_fchownat];
#[cfg(target_arch = "x86_64")]
const DENIED_ON_THE_HOST_HERE: &[libc::c_long] = &[libc::SYS_chown, libc::SYS_lchown];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_ON_THE_HOST_HERE: &[libc::c_long] = &[];

/// Additional calls refused without namespaces. They fail as on a file system without extended attributes, because
/// programs that copy files expect that error.
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

/// Calls that set the permissions of a file, with the index of the permissions argument.
#[cfg(target_arch = "x86_64")]
const PERMISSIONS: &[(libc::c_long, u8)] =
    &[(libc::SYS_chmod, 1), (libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
#[cfg(not(target_arch = "x86_64"))]
const PERMISSIONS: &[(libc::c_long, u8)] = &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
/// Permission bits that the owner of a file or folder must keep.
const NEEDED: [u64; 3] = [0o400, 0o200, 0o100];
/// Permission bits that would let other users do more than read.
const HARMFUL: [u64; 5] = [0o4000, 0o2000, 0o1000, 0o020, 0o002];

/// Calls that set the times of a file, except `utimensat`.
#[cfg(target_arch = "x86_64")]
const TIMES: &[libc::c_long] = &[libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const TIMES: &[libc::c_long] = &[];

/// Returns the filter for the commands of a sandbox whose init runs in `place`. `memory_cgroup` is whether a cgroup
/// counts the memory of all processes together.
pub(super) fn filter(place: Surroundings, memory_cgroup: bool) -> io::Result<Program> {
    compile(&refusals(place, memory_cgroup), NEWEST)
}

fn refusals(place: Surroundings, memory_cgroup: bool) -> Vec<Refusals> {
    // clone3 takes its flags by pointer, which a filter cannot follow. If the call is absent, glibc falls back to
    // clone.
    let mut absent: CallRules = [(libc::SYS_clone3, Vec::new())].into();
    let mut denied = denied(place);
    if !memory_cgroup {
        // The limits of a process do not count the memory of memfd files. Programs that cannot create them use a
        // temporary file.
        absent.insert(libc::SYS_memfd_create, Vec::new());
        denied.extend(UNCOUNTED.iter().map(|call| (*call, Vec::new())));
    }
    let refused = |rules, error| Refusals { rules, error };
    let mut refusals =
        vec![refused(absent, libc::ENOSYS), refused(denied, libc::EPERM), refused(process_hiding_calls(), 0)];
    if !memory_cgroup {
        // Each socket counts as the maximum that it may hold, so commands must not raise this maximum. The refused call
        // reports success, because programs cope with the smaller limit.
        let level = condition(1, Comparison::Equal, libc::SOL_SOCKET as u64);
        let option = condition(2, Comparison::Equal, libc::SO_SNDBUF as u64);
        refusals.push(refused([(libc::SYS_setsockopt, vec![vec![level, option]])].into(), 0));
    }
    if place != Surroundings::Namespaces {
        // The kernel counts inotify instances per user of the host, so a sandbox could use up those that the user's
        // other programs need. Programs that watch files fall back to polling.
        refusals.push(refused([(libc::SYS_inotify_init1, Vec::new())].into(), libc::EMFILE));
        #[cfg(target_arch = "x86_64")]
        refusals.push(refused([(libc::SYS_inotify_init, Vec::new())].into(), libc::EMFILE));
    }
    if place == Surroundings::Host {
        let attributes = ATTRIBUTES.iter().map(|call| (*call, Vec::new())).collect();
        refusals.extend([refused(attributes, libc::EOPNOTSUPP), refused(pretended(), 0)]);
    }
    refusals
}

fn condition(argument: u8, comparison: Comparison, value: u64) -> Condition {
    Condition { argument, comparison, value }
}

fn masked(argument: u8, mask: u64, value: u64) -> Condition {
    condition(argument, Comparison::Masked(mask as u32), value)
}

/// Returns the calls that fail with EPERM.
fn denied(place: Surroundings) -> CallRules {
    let mut denied: CallRules =
        DENIED.iter().chain(DENIED_HERE).chain(OUTLIVING).map(|call| (*call, Vec::new())).collect();

    // Refuse `clone` with a flag that makes a namespace.
    let namespace_flags = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let clone = namespace_flags.iter().map(|flag| vec![masked(0, *flag as u64, *flag as u64)]);
    denied.insert(libc::SYS_clone, clone.collect());

    let requests = REQUESTS.iter().map(|request| vec![condition(1, Comparison::Equal, *request)]);
    denied.insert(libc::SYS_ioctl, requests.collect());

    // Huge pages come from a pool of the host that no memory limit counts.
    for (call, argument, flag) in HUGE {
        denied.insert(*call, vec![vec![masked(*argument, *flag, *flag)]]);
    }

    // Creating device nodes.
    let device = |index| {
        [libc::S_IFCHR, libc::S_IFBLK].map(|kind| vec![masked(index, libc::S_IFMT.into(), kind.into())]).to_vec()
    };
    denied.insert(libc::SYS_mknodat, device(2));
    #[cfg(target_arch = "x86_64")]
    denied.insert(libc::SYS_mknod, device(1));

    // With a network namespace, allow the common families of sockets, which reach only the sandbox itself. Without a
    // network namespace, allow no sockets, because landlock does not restrict connections to socket files.
    let families: &[i32] = match place {
        Surroundings::Host => &[],
        _ => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let family: Rule = families.iter().map(|family| condition(0, Comparison::Unequal, *family as u64)).collect();
    let mut sockets = Vec::new();
    if !family.is_empty() {
        sockets.push(family);
        // For other protocols, the kernel would load a module at any user's request.
        for (family, protocols) in PROTOCOLS {
            let others = protocols.iter().map(|protocol| condition(2, Comparison::Unequal, *protocol as u64));
            let family = condition(0, Comparison::Equal, *family as u64);
            sockets.push(std::iter::once(family).chain(others).collect());
        }
    }
    denied.insert(libc::SYS_socket, sockets);

    // Limits and priorities of other processes. In a pid namespace, only the init (process 1) needs protection. On the
    // host, a process may change only its own limits and priority, and must refer to itself as 0.
    let is_other = |argument| match place {
        Surroundings::Host => condition(argument, Comparison::Unequal, 0),
        _ => condition(argument, Comparison::Equal, 1),
    };
    for call in OF_A_PROCESS {
        denied.insert(*call, vec![vec![is_other(0)]]);
    }
    for (call, user) in OF_SEVERAL {
        denied.insert(*call, vec![vec![is_other(1)], vec![condition(0, Comparison::Equal, *user)]]);
    }

    if place != Surroundings::Namespaces {
        // Refuse System V shared memory: its total is limited only in an IPC namespace that the init has made.
        denied.insert(libc::SYS_shmget, Vec::new());
    }
    // Allow pairs of Unix sockets only. For other families, the kernel makes a socket, and may load a module, before it
    // refuses to make a pair.
    let mut pairs: Vec<Rule> = vec![vec![condition(0, Comparison::Unequal, libc::AF_UNIX as u64)]];
    if place == Surroundings::Host {
        denied.extend(DENIED_ON_THE_HOST.iter().chain(DENIED_ON_THE_HOST_HERE).map(|call| (*call, Vec::new())));
        // Refuse pairs of datagram sockets, too: even a connected datagram socket could send to any socket file. For
        // `SOCK_RAW`, the kernel also makes datagram sockets.
        pairs.extend([libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| vec![masked(1, 0xf, kind as u64)]));
    }
    denied.insert(libc::SYS_socketpair, pairs);
    denied
}

/// Returns the calls that report success without any effect, only used on the host. Programs set permissions and times
/// whenever they copy a file, and few continue after an error. Landlock allows these calls, so without the filter they
/// would change files of other users.
fn pretended() -> CallRules {
    let mut pretended: CallRules = TIMES.iter().map(|call| (*call, Vec::new())).collect();
    // Let `touch` pass, which sets the times of an open file to the current time.
    let by_path = vec![condition(1, Comparison::WholeUnequal, 0)];
    let to_another_time = vec![condition(2, Comparison::WholeUnequal, 0)];
    pretended.insert(libc::SYS_utimensat, vec![by_path, to_another_time]);
    for (call, argument) in PERMISSIONS {
        let mut rules = Vec::new();
        for bit in NEEDED {
            rules.push(vec![masked(*argument, bit, 0)]);
        }
        for bit in HARMFUL {
            rules.push(vec![masked(*argument, bit, bit)]);
        }
        pretended.insert(*call, rules);
    }
    pretended
}

/// Returns the call by which a process hides from other processes of its user. The call reports success without any
/// effect, because all processes must stay visible for their open files to be counted.
fn process_hiding_calls() -> CallRules {
    let hides = vec![condition(0, Comparison::Equal, libc::PR_SET_DUMPABLE as u64), condition(1, Comparison::Equal, 0)];
    [(libc::SYS_prctl, vec![hides])].into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nix::libc::sock_filter;
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
        TargetArch,
    };

    use super::*;

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    /// Returns a filter's action for a call with this number and these arguments.
    fn decide(program: &[(u16, u8, u8, u32)], architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        for half in [number, architecture, 0, 0] {
            data.extend(half.to_le_bytes());
        }
        for argument in arguments {
            data.extend(argument.to_le_bytes());
        }
        let (mut at, mut loaded) = (0, 0);
        loop {
            let (code, yes, no, k) = program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { yes } else { no });
            match u32::from(code) {
                0x20 => loaded = u32::from_le_bytes(*data[k as usize..].first_chunk().unwrap()),
                0x54 => loaded &= k,
                0x05 => at += k as usize,
                0x15 => at += jump(loaded == k),
                0x25 => at += jump(loaded > k),
                0x35 => at += jump(loaded >= k),
                0x45 => at += jump(loaded & k != 0),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    /// The same rules, compiled by a library into one filter for each error.
    fn compiled_by_a_library(refusals: &Refusals) -> BpfProgram {
        let converted = |condition: &Condition| {
            let (length, operator) = match condition.comparison {
                Comparison::Equal => (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq),
                Comparison::Unequal => (SeccompCmpArgLen::Dword, SeccompCmpOp::Ne),
                Comparison::Masked(mask) => (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask.into())),
                Comparison::WholeUnequal => (SeccompCmpArgLen::Qword, SeccompCmpOp::Ne),
            };
            SeccompCondition::new(condition.argument, length, operator, condition.value).unwrap()
        };
        let rules = refusals.rules.iter().map(|(number, rules)| {
            let rule = |rule: &Rule| SeccompRule::new(rule.iter().map(converted).collect()).unwrap();
            (*number, rules.iter().map(rule).collect())
        });
        let architecture = TargetArch::try_from(std::env::consts::ARCH).unwrap();
        let action = SeccompAction::Errno(refusals.error as u32);
        SeccompFilter::new(rules.collect(), SeccompAction::Allow, action, architecture).unwrap().try_into().unwrap()
    }

    /// Values that arguments are compared with, and values close to them.
    fn values(refusals: &[Refusals], number: i64) -> Vec<u64> {
        let rules = refusals.iter().filter_map(|refusals| refusals.rules.get(&number)).flatten().flatten();
        let compared = rules.flat_map(|condition| match condition.comparison {
            Comparison::Masked(mask) => vec![condition.value, mask.into(), !u64::from(mask)],
            _ => vec![condition.value],
        });
        let near = compared.flat_map(|value| [value, value + 1, value ^ 0x80, value | 1 << 40, value & !(value >> 1)]);
        near.chain([0, 1, 3, u64::MAX, 1 << 32]).collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[test]
    fn the_filter_decides_like_filters_compiled_by_a_library() {
        let mut refused = BTreeSet::new();
        for (place, memory_cgroup) in [Surroundings::Namespaces, Surroundings::Host, Surroundings::Container]
            .into_iter()
            .flat_map(|it| [(it, false), (it, true)])
        {
            let refusals = refusals(place, memory_cgroup);
            let fields = |it: &sock_filter| (it.code, it.jt, it.jf, it.k);
            let own: Vec<_> = filter(place, memory_cgroup).unwrap().iter().map(fields).collect();
            let architecture = own[1].3;
            let library: Vec<Vec<_>> = refusals
                .iter()
                .map(|it| compiled_by_a_library(it).iter().map(|it| (it.code, it.jt, it.jf, it.k)).collect())
                .collect();
            for number in (0..NEWEST + 3).chain([0x4000_0000, 0x4000_0038, u32::MAX]) {
                let values = values(&refusals, number.into());
                let choose = |seed: usize| values[seed % values.len()];
                // If a call has no conditions, its arguments do not matter.
                let draws = if values.len() > 5 { 400 } else { 2 };
                for draw in 0..draws {
                    let seed = draw * 2_654_435_761 + number as usize;
                    let arguments = std::array::from_fn(|argument| choose(seed >> (5 * argument)));
                    // Of several filters that refuse a call, the last one decides.
                    let mut decided = library.iter().map(|program| decide(program, architecture, number, arguments));
                    let expected = if number > NEWEST {
                        libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32
                    } else {
                        decided.rfind(|action| *action != ALLOW).unwrap_or(ALLOW)
                    };
                    let found = decide(&own, architecture, number, arguments);
                    assert_eq!(found, expected, "{place:?} {memory_cgroup} {number} {arguments:x?}");
                    refused.insert((number, found));
                }
            }
            assert_eq!(decide(&own, architecture ^ 1, 0, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
        }
        // The random arguments must cover both outcomes of the calls that have conditions.
        for call in [libc::SYS_clone, libc::SYS_mmap, libc::SYS_socket, libc::SYS_prctl, libc::SYS_utimensat] {
            let actions = refused.iter().filter(|(number, _)| i64::from(*number) == call).count();
            assert!(actions > 1, "{call}");
        }
    }
}
