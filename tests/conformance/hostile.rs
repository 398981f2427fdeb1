//! Actions inside a sandbox that no shell command can do, run by this same program. Attempts to escape print `denied`
//! and the error if they were refused, and `escaped` if not.

use std::ffi::CString;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::FromRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

use nix::libc;

fn verdict(result: Result<(), io::Error>) -> ExitCode {
    match result {
        Ok(()) => println!("escaped"),
        Err(error) => println!("denied: {error}"),
    }
    ExitCode::SUCCESS
}

fn check(result: libc::c_long) -> Result<(), io::Error> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn sleep_long() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

pub fn act(action: &str, rest: &[&str]) -> ExitCode {
    let number = |index: usize| rest[index].parse::<i64>().unwrap();
    match action {
        "memory" => {
            let mut held = Vec::new();
            for megabyte in 1..=number(0) {
                let mut block = Vec::new();
                if block.try_reserve_exact(1 << 20).is_err() {
                    println!("refused at {megabyte}");
                    return ExitCode::FAILURE;
                }
                block.resize(1 << 20, megabyte as u8);
                held.push(block);
            }
            println!("got {}", held.len());
        }
        "memories" => println!("{}", living(number(0), true, || held(number(1)))),
        "shared-memories" => {
            let shared = held(number(1));
            println!("{}", living(number(0), false, || &shared));
        }
        "fork-until-refused" => {
            let mut count = 0;
            while count < 5000 {
                // SAFETY: one thread; the child only sleeps.
                match unsafe { libc::fork() } {
                    0 => sleep_long(),
                    -1 => break,
                    _ => count += 1,
                }
            }
            println!("{count}");
        }
        "fork-bomb" => loop {
            // SAFETY: one thread.
            unsafe { libc::fork() };
        },
        "endless" => {
            let block = vec![b'y'; 65536];
            while io::stdout().write_all(&block).is_ok() {}
        }
        "bytes" => {
            let block = vec![b'x'; 1 << 20];
            for _ in 0..number(0) {
                io::stdout().write_all(&block).unwrap();
            }
        }
        "daemon" => {
            // SAFETY: one thread; the children only make system calls and sleep.
            unsafe {
                if libc::fork() == 0 {
                    libc::setsid();
                    if libc::fork() == 0 {
                        libc::signal(libc::SIGTERM, libc::SIG_IGN);
                        libc::signal(libc::SIGHUP, libc::SIG_IGN);
                        sleep_long();
                    }
                    libc::_exit(0);
                }
            }
            println!("started");
            if rest.last() == Some(&"stay") {
                sleep_long();
            }
        }
        "zombies" => {
            let mut count = 0;
            for _ in 0..number(0) {
                // SAFETY: one thread; the child ends at once.
                match unsafe { libc::fork() } {
                    0 => unsafe { libc::_exit(0) },
                    -1 => {}
                    child => {
                        count += 1;
                        // Wait until the child has ended, but do not reap it: on a busy machine it could outlive this
                        // process, and would rightly count as alive. SAFETY: the result may be null.
                        let options = libc::WEXITED | libc::WNOWAIT;
                        unsafe { libc::waitid(libc::P_PID, child as libc::id_t, std::ptr::null_mut(), options) };
                    }
                }
            }
            println!("{count}");
        }
        "open-files" => {
            let mut held = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                held.push(file);
                if held.len() > 100_000 {
                    break;
                }
            }
            println!("{}", held.len());
        }
        "stop-everything" => {
            // SAFETY: the calls take no pointers.
            unsafe {
                libc::kill(1, libc::SIGKILL);
                libc::kill(1, libc::SIGSTOP);
                libc::kill(libc::getppid(), libc::SIGKILL);
                libc::kill(libc::getppid(), libc::SIGSTOP);
            }
            println!("still here");
        }
        "kill-group-of-all" => {
            // SAFETY: the call takes no pointers.
            unsafe { libc::kill(-1, libc::SIGKILL) };
        }
        "connect" => {
            let result = TcpStream::connect_timeout(&rest[0].parse().unwrap(), Duration::from_secs(2)).map(drop);
            return verdict(result);
        }
        "send-datagram" => {
            let socket = UdpSocket::bind("0.0.0.0:0");
            return verdict(socket.and_then(|socket| socket.send_to(b"out", rest[0])).map(drop));
        }
        "abstract-socket" => {
            let address = SocketAddr::from_abstract_name(rest[0]).unwrap();
            return verdict(UnixStream::connect_addr(&address).map(drop));
        }
        "socket-file" => return verdict(UnixStream::connect(rest[0]).map(drop)),
        "socket-pair" => {
            UnixStream::pair().unwrap();
            println!("fine");
        }
        "loopback" => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            println!("fine");
        }
        "kill" => {
            // SAFETY: the call takes no pointers.
            return verdict(check(unsafe { libc::kill(number(0) as i32, number(1) as i32) }.into()));
        }
        "ptrace" => {
            let pid = number(0);
            // SAFETY: attaching reads no pointers.
            return verdict(check(unsafe { libc::ptrace(libc::PTRACE_ATTACH, pid as i32, 0, 0) }));
        }
        "setuid" => {
            // SAFETY: the call takes no pointers.
            return verdict(check(unsafe { libc::setresuid(0, 0, 0) }.into()));
        }
        "raise-limits" => {
            let more = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
            // SAFETY: the pointer is to a live struct.
            return verdict(check(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const more) }.into()));
        }
        "own-limits" => return own_limits(number(0) as i32),
        "forge-faults" => {
            for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS] {
                forge(1, signal, number(0) as usize);
                forge(1, signal, number(0) as usize);
            }
            println!("still here");
        }
        "shared-segments" => println!("{}", shared_segments(number(0) as usize)),
        "memfds" => println!("{}", memfds(number(0))),
        "watchers" => {
            let mut count = 0;
            // SAFETY: the call takes no pointers. The descriptors stay open on purpose.
            while count < 5000 && unsafe { libc::inotify_init1(0) } >= 0 {
                count += 1;
            }
            println!("{count}");
        }
        "hold-unlinked" => hold_unlinked(number(0)),
        "kernel" => return super::kernel::act(rest[0]),
        "undead" => return super::kernel::undead(),
        "undead-holder" => return super::kernel::undead_holder(number(0)),
        "hidden-holder" => return super::kernel::hidden_holder(number(0)),
        "mapped-only" => return super::kernel::mapped_only(number(0).unsigned_abs()),
        "queued-signals" => return super::kernel::queued_signals(),
        "dig" => dig(number(0)),
        "terminals" => return super::terminals::act(rest[0]),
        "terminal-requests" => return super::terminals::request(),
        "hoard" => return super::hoards::act(rest[0], number(1).unsigned_abs() as usize),
        "leave-objects" => {
            // SAFETY: the call takes no pointers.
            let segment = unsafe { libc::shmget(number(0) as i32, 4096, libc::IPC_CREAT | 0o666) };
            // SAFETY: the call takes no pointers.
            let queue = unsafe { libc::msgget(number(0) as i32, libc::IPC_CREAT | 0o666) };
            println!("{segment} {queue}");
        }
        "tamper" => return tamper(rest[0]),
        "paired-datagram" => return verdict(paired_datagram(rest[0])),
        "system-call" => return verdict(system_call(rest[0])),
        _ => {
            println!("unknown action {action}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// System calls that must be refused. If a call is not refused, its arguments do no harm. Calls whose arguments are
/// null pointers and zeros may also fail for other reasons than a refusal.
pub const FORBIDDEN: &[&str] = &[
    "mount",
    "umount",
    "unshare-mount",
    "clone-user",
    "chroot",
    "pivot_root",
    "fsopen",
    "open_tree",
    "mount_setattr",
    "kexec_load",
    "init_module",
    "finit_module",
    "delete_module",
    "syslog",
    "add_key",
    "request_key",
    "swapon",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "acct",
    "quotactl",
    "sethostname",
    "mknod-device",
    "socket-packet",
    "socket-alg",
    "socket-vsock",
    "socket-raw",
    "foreign-numbers",
];

/// More forbidden system calls. Each must fail with EPERM or ENOSYS: without the sandbox's filter, it would succeed, or
/// fail with another error that its arguments happen to cause.
pub const BY_PERMISSION: &[&str] = &[
    "unshare-user",
    "clone3",
    "setns",
    "process_vm_readv",
    "pidfd_getfd",
    "kcmp",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "keyctl",
    "open_by_handle_at",
    "reboot",
    "terminal-input",
    "limits-of-init",
    "scheduler-of-init",
    "scheduler-attributes-of-init",
    "affinity-of-init",
    "priority-of-init",
    "priority-of-user",
    "io-priority-of-init",
    "newer-than-the-list",
];

/// Makes calls with which ordinary programs read and change their own limits, processors and priority. The calls name
/// this process by 0 if `pid` is 0, otherwise by its id.
fn own_limits(pid: i32) -> ExitCode {
    let pid = if pid == 0 { 0 } else { std::process::id() as i32 };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: all pointers are to live values of the right type.
    let results = unsafe {
        let mut processors: libc::cpu_set_t = std::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        [
            libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit),
            libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()),
            libc::sched_getaffinity(pid, size, &raw mut processors),
            libc::sched_setaffinity(pid, size, &raw const processors),
            libc::setpriority(libc::PRIO_PROCESS, pid as u32, 5),
        ]
    };
    println!("{results:?}");
    ExitCode::SUCCESS
}

/// Sends a signal that looks as if the kernel had sent it for a fault at this address.
fn forge(pid: i32, signal: i32, address: usize) {
    // SAFETY: zero is valid for this struct; the address is 16 bytes from its start, and the call only reads it.
    unsafe {
        let mut about: libc::siginfo_t = std::mem::zeroed();
        about.si_signo = signal;
        about.si_code = libc::SI_QUEUE;
        (&raw mut about).cast::<usize>().add(2).write(address);
        libc::syscall(libc::SYS_rt_sigqueueinfo, pid, signal, &raw const about);
    }
}

/// Fills up to `megabytes` of System V shared memory, which outlives this process. Returns the number of megabytes.
fn shared_segments(megabytes: usize) -> usize {
    let size = 8 << 20;
    for made in 0..megabytes / 8 {
        // SAFETY: the attached segment is as long as the bytes that are written.
        unsafe {
            let segment = libc::shmget(libc::IPC_PRIVATE, size, libc::IPC_CREAT | 0o600);
            let memory = libc::shmat(segment, std::ptr::null(), 0);
            if segment < 0 || memory as isize == -1 {
                return made * 8;
            }
            std::ptr::write_bytes(memory.cast::<u8>(), 1, size);
            libc::shmdt(memory);
        }
    }
    megabytes
}

/// Allocates memory and writes each page.
fn held(megabytes: i64) -> Vec<u8> {
    vec![1; (megabytes as usize) << 20]
}

/// Starts `count` processes, each of which makes a value and keeps it. Returns how many are alive a second and a half
/// after each has made its value or died. If `some_die`, waits longer for the first death, because on a busy machine
/// the harness may take a while to end processes.
fn living<T>(count: i64, some_die: bool, make: impl Fn() -> T) -> usize {
    let (mut reader, mut writer) = io::pipe().unwrap();
    let started: Vec<_> = (0..count)
        .map(|_| {
            // SAFETY: one thread; the child only makes its own value, writes to a pipe and sleeps.
            let pid = unsafe { libc::fork() };
            if pid == 0 {
                let _kept = std::hint::black_box(make());
                let _ = writer.write_all(&[1]);
                sleep_long();
            }
            pid
        })
        .collect();
    // SAFETY: the only pointer is null; the children belong to this process.
    let lives = |pid: &&i32| **pid > 0 && unsafe { libc::waitpid(**pid, std::ptr::null_mut(), libc::WNOHANG) } == 0;
    rustix::io::ioctl_fionbio(&reader, true).unwrap();
    let mut made = 0;
    // On a busy machine, it takes a while until each child has made its values.
    for _ in 0..500 {
        made += reader.read(&mut [0; 64]).unwrap_or(0);
        if made + started.iter().filter(|pid| !lives(pid)).count() >= started.len() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let alive = || started.iter().filter(lives).count();
    for _ in 0..300 {
        if !some_die || alive() < started.len() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(1500));
    let alive = alive();
    for pid in started.into_iter().filter(|pid| *pid > 0) {
        // SAFETY: the call takes no pointers.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    alive
}

/// Holds up to `megabytes` in files in memory that are not mapped. Returns the number of megabytes.
fn memfds(megabytes: i64) -> i64 {
    let block = vec![1; 1 << 20];
    for got in 0..megabytes {
        // SAFETY: a live C string; the descriptor is new and only used here. It stays open on purpose.
        let fd = unsafe { libc::memfd_create(c"x".as_ptr(), 0) };
        // SAFETY: the block is as long as the bytes that are written.
        if fd < 0 || unsafe { libc::write(fd, block.as_ptr().cast(), block.len()) } < block.len() as isize {
            return got;
        }
    }
    megabytes
}

/// Writes this number of unlinked files of four megabytes, one after the other, and keeps them open.
pub fn hold_unlinked(files: i64) {
    let mut held = Vec::new();
    for number in 0..files {
        let mut file = std::fs::File::create_new("unlinked").unwrap();
        std::fs::remove_file("unlinked").unwrap();
        file.write_all(&vec![number as u8; 4 << 20]).unwrap();
        held.push(file);
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("held {}", held.len());
}

/// Writes this number of files of four megabytes in a folder whose path is longer than the kernel accepts.
fn dig(files: i64) {
    let name = "d".repeat(200);
    for _ in 0..60 {
        std::fs::create_dir(&name).unwrap();
        std::env::set_current_dir(&name).unwrap();
    }
    for number in 0..files {
        std::fs::write(number.to_string(), vec![1; 4 << 20]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("dug");
}

/// Changes a file's metadata with every call that can, by path and by descriptor.
fn tamper(path: &str) -> ExitCode {
    let name = CString::new(path).unwrap();
    let (value, key) = (c"x".as_ptr().cast(), c"user.tampered".as_ptr());
    let past = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
    // SAFETY: all strings and values are alive.
    unsafe {
        let file = libc::open(name.as_ptr(), libc::O_RDONLY);
        for mode in [0, 0o111, 0o4755, 0o777] {
            libc::chmod(name.as_ptr(), mode);
            libc::fchmod(file, mode);
            libc::fchmodat(libc::AT_FDCWD, name.as_ptr(), mode, 0);
            libc::syscall(libc::SYS_fchmodat2, libc::AT_FDCWD, name.as_ptr(), mode, 0);
        }
        libc::chown(name.as_ptr(), libc::getuid(), libc::getgid());
        libc::utimensat(libc::AT_FDCWD, name.as_ptr(), past.as_ptr(), 0);
        libc::futimens(file, past.as_ptr());
        libc::setxattr(name.as_ptr(), key, value, 1, 0);
        libc::lsetxattr(name.as_ptr(), key, value, 1, 0);
        libc::fsetxattr(file, key, value, 1, 0);
    }
    ExitCode::SUCCESS
}

/// Sends a datagram to a socket file from one socket of a connected pair. If the kernel refuses to make the pair with
/// `SOCK_DGRAM`, tries `SOCK_RAW`, for which the kernel makes a datagram socket, too.
fn paired_datagram(path: &str) -> Result<(), io::Error> {
    let send = |kind| {
        let mut pair = [0; 2];
        // SAFETY: the array has room for two descriptors.
        check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) }.into())?;
        // SAFETY: nothing else owns the descriptor.
        let socket = unsafe { std::os::unix::net::UnixDatagram::from_raw_fd(pair[0]) };
        socket.send_to(b"out", path).map(drop)
    };
    send(libc::SOCK_DGRAM).or_else(|_| send(libc::SOCK_RAW))
}

fn system_call(name: &str) -> Result<(), io::Error> {
    let zero = 0_usize;
    let null = std::ptr::null::<libc::c_void>();
    let call = |number: libc::c_long| {
        // SAFETY: null pointers and zeros, which the kernel refuses if the call needs more.
        check(unsafe { libc::syscall(number, null, null, null, null, null, zero) })
    };
    let socket = |family: i32, kind: i32| {
        // SAFETY: the call takes no pointers.
        check(unsafe { libc::socket(family, kind, 0) }.into())
    };
    let path = CString::new("/tmp").unwrap();
    match name {
        "mount" => {
            let kind = CString::new("tmpfs").unwrap();
            // SAFETY: live C strings.
            check(unsafe { libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, null) }.into())
        }
        // SAFETY: a live C string.
        "umount" => check(unsafe { libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH) }.into()),
        // SAFETY: the call takes no pointers.
        "unshare-user" => check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()),
        // SAFETY: the call takes no pointers.
        "unshare-mount" => check(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into()),
        "clone-user" => {
            let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
            // SAFETY: like fork.
            let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
            if pid == 0 {
                // SAFETY: ends the child.
                unsafe { libc::_exit(0) };
            }
            check(pid)
        }
        "clone3" => call(libc::SYS_clone3),
        // SAFETY: the call takes no pointers.
        "setns" => check(unsafe { libc::setns(0, 0) }.into()),
        // SAFETY: a live C string.
        "chroot" => check(unsafe { libc::chroot(path.as_ptr()) }.into()),
        "pivot_root" => call(libc::SYS_pivot_root),
        "fsopen" => call(libc::SYS_fsopen),
        "open_tree" => call(libc::SYS_open_tree),
        "mount_setattr" => call(libc::SYS_mount_setattr),
        "process_vm_readv" => call(libc::SYS_process_vm_readv).and_then(|()| call(libc::SYS_process_vm_writev)),
        "pidfd_getfd" => call(libc::SYS_pidfd_getfd),
        "kcmp" => call(libc::SYS_kcmp),
        "kexec_load" => call(libc::SYS_kexec_load),
        "init_module" => call(libc::SYS_init_module),
        "finit_module" => call(libc::SYS_finit_module),
        "delete_module" => call(libc::SYS_delete_module),
        "bpf" => call(libc::SYS_bpf),
        "perf_event_open" => call(libc::SYS_perf_event_open),
        "userfaultfd" => call(libc::SYS_userfaultfd),
        "io_uring_setup" => call(libc::SYS_io_uring_setup),
        "syslog" => call(libc::SYS_syslog),
        "keyctl" => call(libc::SYS_keyctl),
        "add_key" => call(libc::SYS_add_key),
        "request_key" => call(libc::SYS_request_key),
        "open_by_handle_at" => call(libc::SYS_open_by_handle_at),
        "reboot" => call(libc::SYS_reboot),
        "swapon" => call(libc::SYS_swapon),
        "settimeofday" => call(libc::SYS_settimeofday),
        "clock_settime" => call(libc::SYS_clock_settime),
        "adjtimex" => call(libc::SYS_adjtimex),
        "acct" => call(libc::SYS_acct),
        "quotactl" => call(libc::SYS_quotactl),
        "sethostname" => call(libc::SYS_sethostname),
        // SAFETY: one live byte.
        "terminal-input" => check(unsafe { libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()) }.into()),
        // SAFETY: a live C string.
        "mknod-device" => {
            check(unsafe { libc::mknod(c"/tmp/device".as_ptr(), libc::S_IFBLK | 0o666, libc::makedev(8, 0)) }.into())
        }
        "socket-packet" => socket(libc::AF_PACKET, libc::SOCK_RAW),
        "socket-alg" => socket(libc::AF_ALG, libc::SOCK_SEQPACKET),
        "socket-vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM),
        "socket-raw" => socket(libc::AF_INET, libc::SOCK_RAW),
        "limits-of-init" => {
            let less = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 40 };
            // SAFETY: a live struct.
            check(unsafe { libc::prlimit(1, libc::RLIMIT_AS, &raw const less, std::ptr::null_mut()) }.into())
        }
        "scheduler-of-init" => {
            let parameters = libc::sched_param { sched_priority: 0 };
            // SAFETY: a live struct.
            check(unsafe { libc::sched_setscheduler(1, libc::SCHED_BATCH, &raw const parameters) }.into())
        }
        "scheduler-attributes-of-init" => {
            // Size, policy SCHED_BATCH, and zeros.
            let attributes: [u32; 14] = [56, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            // SAFETY: a live array of the size in its first field.
            check(unsafe { libc::syscall(libc::SYS_sched_setattr, 1, attributes.as_ptr(), 0) })
        }
        "affinity-of-init" => {
            let all = [0xff_u8; 128];
            // SAFETY: a live array of that size.
            check(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 1, all.len(), all.as_ptr()) })
        }
        // SAFETY: the call takes no pointers.
        "priority-of-init" => check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 1, 1) }.into()),
        // SAFETY: the call takes no pointers.
        "priority-of-user" => check(unsafe { libc::setpriority(libc::PRIO_USER, 0, 1) }.into()),
        // Best-effort class, the lowest of eight priorities. SAFETY: the call takes no pointers.
        "io-priority-of-init" => check(unsafe { libc::syscall(libc::SYS_ioprio_set, 1, 1, 2 << 13 | 7) }),
        // setxattrat of Linux 6.13.
        "newer-than-the-list" => call(463),
        // getpid by its x32 number.
        "foreign-numbers" => call(0x4000_0000 | libc::SYS_getpid),
        _ => Err(io::Error::other("unknown")),
    }
}
