//! Known ways out through the kernel: each call has arguments that would work where the call is allowed.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

use nix::libc;

use super::fixture::limits;
use crate::ensure;

/// Attempts that must be refused; with which error does not matter.
const REFUSED: &[&str] = &[
    "io_uring",
    "userfaultfd",
    "userfaultfd-device",
    "keyring",
    "key",
    "perf-event",
    "bpf-map",
    "bpf-program",
    "descriptor-of-init",
    "memory-of-init",
    "advice-for-init",
    "trace-of-init",
    "trace-of-oneself",
    "handle-of-a-name",
    "name-of-a-handle",
    "new-file-system",
    "tree-of-mounts",
    "attributes-of-mounts",
    "pick-of-a-mount",
    "user-namespace",
    "user-namespace-by-clone3",
    "namespace-of-init",
    "namespace-by-descriptor",
    "root-of-init",
    "folder-of-init",
    "whiteout",
    "whiteout-by-folder",
    "block-device",
    "file-capability",
    "trusted-attribute",
    "immutable-file",
    "append-only-file",
    "project-of-a-file",
    "huge-pages",
    "huge-memfd",
    "huge-segment",
    "old-calls",
    "ports",
    "local-descriptor-table",
    "ambient-capability",
    "real-time-priority",
    "negative-oom-score",
    "locked-memory",
    "kernel-log",
    "kernel-messages",
    "debug-files",
    "devices-of-the-host",
    "sysctl",
    "module-by-protocol",
    "family-of-sockets",
    "netlink-of-the-kernel",
    "socket-of-the-hypervisor",
    "quota",
    "watch-of-mounts",
    "secret-memory",
    "time-of-the-machine",
    "loop-device",
    "core-pattern",
];

fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn refused() -> io::Error {
    io::Error::from_raw_os_error(libc::EPERM)
}

/// Makes one attempt, and prints `denied` with the error, or `escaped`.
pub fn act(name: &str) -> ExitCode {
    match attempt(name) {
        Ok(()) => println!("escaped"),
        Err(error) => println!("denied: {error}"),
    }
    ExitCode::SUCCESS
}

/// Succeeds if any of these files can be opened.
fn any_opens(paths: &[&str], write: bool) -> io::Result<()> {
    let open = |path: &&str| fs::OpenOptions::new().read(!write).write(write).open(path).is_ok();
    if paths.iter().any(open) { Ok(()) } else { Err(refused()) }
}

/// Succeeds if any of these calls did.
fn any(results: impl IntoIterator<Item = io::Result<()>>) -> io::Result<()> {
    results.into_iter().find(Result::is_ok).unwrap_or_else(|| Err(refused()))
}

/// Asks for a pair of sockets. Fails only if the call itself is denied. Other errors count as success, because by then
/// the kernel has made a socket of this family: it makes the socket before it refuses to make a pair.
fn socket_pair(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    let mut pair = [0; 2];
    // SAFETY: the array has room for two descriptors.
    match check(unsafe { libc::socketpair(family, kind, protocol, pair.as_mut_ptr()) }) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn attempt(name: &str) -> io::Result<()> {
    let null = std::ptr::null_mut::<libc::c_void>();
    let path = |text: &str| CString::new(text).unwrap();
    let ioctl = |request: u64, mut value: [u32; 8]| {
        let file = fs::File::create("flagged")?;
        // SAFETY: the value is longer than the values that these requests read.
        check(unsafe { libc::ioctl(file.as_raw_fd(), request as _, value.as_mut_ptr()) })
    };
    let attribute = |name: &str, value: &[u8]| {
        fs::write("attributed", "")?;
        let name = path(name);
        // SAFETY: live strings, and a value of the length given.
        check(unsafe { libc::setxattr(c"attributed".as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0) })
    };
    // SAFETY: all pointers are to live values of the size that the calls take, or null.
    unsafe {
        let init = || {
            let handle = libc::syscall(libc::SYS_pidfd_open, 1, 0);
            check(handle).map(|()| handle)
        };
        match name {
            "io_uring" => check(libc::syscall(libc::SYS_io_uring_setup, 8, [0_u64; 15].as_mut_ptr())),
            "userfaultfd" => any([0, 1, 0x800].map(|flags| check(libc::syscall(libc::SYS_userfaultfd, flags)))),
            "userfaultfd-device" => any_opens(&["/dev/userfaultfd", "/dev/fuse", "/dev/kvm", "/dev/net/tun"], true),
            "keyring" => any([-1, -3, -4, -5].map(|ring| check(libc::syscall(libc::SYS_keyctl, 0, ring, 1)))),
            "key" => check(libc::syscall(libc::SYS_add_key, c"user".as_ptr(), c"k".as_ptr(), c"v".as_ptr(), 1, -4)),
            "perf-event" => {
                // A performance event that counts this process's CPU time by a software clock, without the time in the
                // kernel.
                let mut event = [0_u32; 32];
                (event[0], event[1], event[10]) = (1, 128, 0x60);
                check(libc::syscall(libc::SYS_perf_event_open, event.as_ptr(), 0, -1, -1, 0))
            }
            "bpf-map" => check(libc::syscall(libc::SYS_bpf, 0, [2_u32, 4, 4, 1, 0, 0, 0, 0, 0, 0].as_ptr(), 40)),
            "bpf-program" => {
                // The program "r0 = 0; exit", as a socket filter.
                let program = [0xb7_u64, 0x95];
                let mut load = [0_u64; 16];
                (load[0], load[1], load[2]) = (1 | 2 << 32, program.as_ptr() as u64, c"GPL".as_ptr() as u64);
                check(libc::syscall(libc::SYS_bpf, 5, load.as_ptr(), 128))
            }
            "descriptor-of-init" => {
                let handle = init()?;
                any((0..10).map(|fd| check(libc::syscall(libc::SYS_pidfd_getfd, handle, fd, 0))))
            }
            "memory-of-init" => {
                let mut word = 0_u64;
                let mine = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
                let theirs = libc::iovec { iov_base: 0x5000_0000_0000 as *mut _, iov_len: 8 };
                let read = libc::process_vm_readv(1, &raw const mine, 1, &raw const theirs, 1, 0);
                let write = libc::process_vm_writev(1, &raw const mine, 1, &raw const theirs, 1, 0);
                // The error for a bad address counts as an escape, because it reveals which addresses of the process
                // exist.
                if io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
                    Ok(())
                } else {
                    any([check(read as i64), check(write as i64)])
                }
            }
            "advice-for-init" => {
                let range = libc::iovec { iov_base: null, iov_len: 4096 };
                check(libc::syscall(libc::SYS_process_madvise, init()?, &raw const range, 1, libc::MADV_COLD, 0))
            }
            "trace-of-init" => {
                any([libc::PTRACE_ATTACH, libc::PTRACE_SEIZE].map(|how| check(libc::ptrace(how, 1, null, null))))
            }
            "trace-of-oneself" => check(libc::ptrace(libc::PTRACE_TRACEME, 0, null, null)),
            "handle-of-a-name" => {
                let (mut handle, mut mount) = ([128_u32; 40], 0);
                check(libc::syscall(
                    libc::SYS_name_to_handle_at,
                    libc::AT_FDCWD,
                    c"/".as_ptr(),
                    handle.as_mut_ptr(),
                    &raw mut mount,
                    0,
                ))
            }
            "name-of-a-handle" => {
                // The root of the file system that holds the workspace: inode 2 on ext4, 128 on XFS, 256 on btrfs.
                let folder = libc::open(c".".as_ptr(), libc::O_RDONLY);
                any([2, 64, 128, 256].map(|inode| {
                    let handle: [u32; 6] = [8, 1, inode, 0, 0, 0];
                    check(libc::syscall(libc::SYS_open_by_handle_at, folder, handle.as_ptr(), libc::O_RDONLY))
                }))
            }
            "new-file-system" => any(["tmpfs", "overlay", "proc", "ext4"]
                .map(|kind| check(libc::syscall(libc::SYS_fsopen, path(kind).as_ptr(), 0)))),
            "tree-of-mounts" => {
                any([1, 0].map(|clone| check(libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, c"/".as_ptr(), clone))))
            }
            "attributes-of-mounts" => {
                let change = [0_u64, 1, 0, 0];
                check(libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, c"/".as_ptr(), 0, change.as_ptr(), 32))
            }
            "pick-of-a-mount" => check(libc::syscall(libc::SYS_fspick, libc::AT_FDCWD, c"/".as_ptr(), 0)),
            "user-namespace" => any([
                libc::CLONE_NEWUSER,
                libc::CLONE_NEWUSER | libc::CLONE_NEWNS,
                libc::CLONE_NEWNET,
                libc::CLONE_NEWPID,
                0x80,
            ]
            .map(|flags| check(libc::unshare(flags)))),
            "user-namespace-by-clone3" => {
                let mut how = [0_u64; 11];
                (how[0], how[4]) = (libc::CLONE_NEWUSER as u64, libc::SIGCHLD as u64);
                let child = libc::syscall(libc::SYS_clone3, how.as_ptr(), 88);
                if child == 0 {
                    libc::_exit(0);
                }
                check(child)
            }
            "namespace-of-init" => any(["user", "mnt", "pid", "net", "ipc"].map(|kind| {
                let file = fs::File::open(format!("/proc/1/ns/{kind}"))?;
                check(libc::setns(file.as_raw_fd(), 0))
            })),
            "namespace-by-descriptor" => check(libc::setns(init()? as i32, libc::CLONE_NEWUSER)),
            "root-of-init" => fs::read_dir("/proc/1/root/").map(drop),
            "folder-of-init" => fs::read_dir("/proc/1/cwd/").map(drop),
            "whiteout" => check(libc::mknod(c"whiteout".as_ptr(), libc::S_IFCHR | 0o666, 0)),
            "whiteout-by-folder" => check(libc::mknodat(libc::AT_FDCWD, c"/tmp/whiteout".as_ptr(), libc::S_IFCHR, 0)),
            "block-device" => any((0..4)
                .map(|minor| check(libc::mknod(c"disk".as_ptr(), libc::S_IFBLK | 0o666, libc::makedev(254, minor))))),
            "file-capability" => {
                attribute("security.capability", &[1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            }
            "trusted-attribute" => {
                any(["opaque", "redirect", "whiteout"].map(|it| attribute(&format!("trusted.overlay.{it}"), b"y")))
            }
            // FS_IOC_SETFLAGS with FS_IMMUTABLE_FL, FS_APPEND_FL.
            "immutable-file" => ioctl(0x4008_6602, [0x10, 0, 0, 0, 0, 0, 0, 0]),
            "append-only-file" => ioctl(0x4008_6602, [0x20, 0, 0, 0, 0, 0, 0, 0]),
            // FS_IOC_FSSETXATTR, which moves the file to another project; quotas are counted per project.
            "project-of-a-file" => ioctl(0x401c_5820, [0, 0, 0, 4711, 0, 0, 0, 0]),
            "huge-pages" => {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
                check(libc::mmap(null, 2 << 20, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) as i64)
            }
            "huge-memfd" => {
                let file = libc::memfd_create(c"x".as_ptr(), libc::MFD_HUGETLB);
                check(file)
            }
            "huge-segment" => {
                check(libc::shmget(libc::IPC_PRIVATE, 2 << 20, libc::IPC_CREAT | libc::SHM_HUGETLB | 0o600))
            }
            "old-calls" => old_call(),
            #[cfg(target_arch = "x86_64")]
            "ports" => {
                any([check(libc::syscall(libc::SYS_iopl, 3)), check(libc::syscall(libc::SYS_ioperm, 0x70, 2, 1))])
            }
            #[cfg(target_arch = "x86_64")]
            "local-descriptor-table" => check(libc::syscall(libc::SYS_modify_ldt, 1, [0_u32; 4].as_ptr(), 16)),
            "ambient-capability" => any((0..41)
                .map(|number| check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, number, 0, 0)))),
            "real-time-priority" => {
                let parameters = libc::sched_param { sched_priority: 1 };
                any([
                    check(libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters)),
                    check(libc::setpriority(libc::PRIO_PROCESS, 0, -10)),
                ])
            }
            "negative-oom-score" => fs::write("/proc/self/oom_score_adj", "-1000"),
            "locked-memory" => {
                let room = libc::mmap(null, 64 << 20, libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
                check(libc::mlock(room, 64 << 20))
            }
            "kernel-log" => check(libc::klogctl(10, null.cast(), 0)),
            "kernel-messages" => any_opens(&["/dev/kmsg", "/proc/kmsg", "/proc/kcore", "/dev/mem", "/dev/port"], false),
            "debug-files" => any_opens(
                &[
                    "/sys/kernel/debug/sleep_time",
                    "/sys/kernel/tracing/trace",
                    "/sys/kernel/security/lsm",
                    "/proc/sys/kernel/random/boot_id/x",
                    "/proc/slabinfo",
                    "/proc/pagetypeinfo",
                    "/proc/vmallocinfo",
                ],
                false,
            ),
            "devices-of-the-host" => any_opens(
                &[
                    "/dev/vda",
                    "/dev/sda",
                    "/dev/nvme0n1",
                    "/dev/loop0",
                    "/dev/loop-control",
                    "/dev/tty1",
                    "/dev/hwrng",
                    "/dev/rtc0",
                ],
                false,
            ),
            "sysctl" => any_opens(
                &[
                    "/proc/sys/kernel/ns_last_pid",
                    "/proc/sys/kernel/shmmax",
                    "/proc/sys/fs/file-max",
                    "/proc/sys/user/max_user_namespaces",
                    "/proc/sys/net/core/somaxconn",
                ],
                true,
            ),
            // SCTP, DCCP, L2TP, UDP-Lite, MPTCP and SMC: the kernel loads their modules at any user's request.
            "module-by-protocol" => any([(5, 132), (1, 132), (6, 33), (2, 115), (2, 136), (1, 262), (1, 256)]
                .into_iter()
                .flat_map(|(kind, protocol)| {
                    [libc::AF_INET, libc::AF_INET6].map(|family| {
                        check(libc::socket(family, kind, protocol)).or_else(|_| socket_pair(family, kind, protocol))
                    })
                })),
            "family-of-sockets" => {
                any((3..50).filter(|family| ![libc::AF_INET6, libc::AF_NETLINK].contains(family)).flat_map(|family| {
                    [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET]
                        .map(|kind| check(libc::socket(family, kind, 0)).or_else(|_| socket_pair(family, kind, 0)))
                }))
            }
            // All netlink protocols except that for routes and addresses: auditing, device events, packet filters,
            // network keys.
            "netlink-of-the-kernel" => {
                any((1..32).map(|protocol| check(libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol))))
            }
            "socket-of-the-hypervisor" => any([1, 2, 5].map(|kind| check(libc::socket(libc::AF_VSOCK, kind, 0)))),
            "quota" => any([c"/", c"/dev/vda"].map(|device| {
                check(libc::quotactl(0x8000_0700_u32 as i32, device.as_ptr(), 0, [0_i8; 256].as_mut_ptr()))
            })),
            "watch-of-mounts" => any([0, 0x200].map(|flags| check(libc::syscall(libc::SYS_fanotify_init, flags, 0)))),
            "secret-memory" => check(libc::syscall(libc::SYS_memfd_secret, 0)),
            "time-of-the-machine" => {
                let now = libc::timespec { tv_sec: 1, tv_nsec: 0 };
                any([
                    check(libc::clock_settime(libc::CLOCK_REALTIME, &raw const now)),
                    check(libc::syscall(libc::SYS_settimeofday, [1_i64, 0].as_ptr(), null)),
                ])
            }
            "loop-device" => {
                let file = fs::File::open("/dev/loop-control")?;
                check(libc::ioctl(file.as_raw_fd(), 0x4c82))
            }
            "core-pattern" => fs::write("/proc/sys/kernel/core_pattern", "|/workspace/run"),
            _ => Ok(()),
        }
    }
}

/// Makes a system call through the entry for 32-bit programs, which has its own numbers.
fn old_call() -> io::Result<()> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: one thread; the child only makes the call and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut number = 20_i32;
            // SAFETY: this is the 32-bit getpid, which takes no arguments; registers that the kernel may clear are
            // listed.
            unsafe {
                std::arch::asm!("int 0x80", inout("eax") number, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
                libc::_exit(i32::from(number < 0));
            }
        }
        let mut status = 0;
        // SAFETY: a live integer.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        return if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 { Ok(()) } else { Err(refused()) };
    }
    #[allow(unreachable_code)]
    Err(refused())
}

/// Starts a process whose first thread ends while another lives on, so that the process looks dead.
pub fn undead() -> ExitCode {
    // SAFETY: one thread; the child's thread only affects the child.
    if unsafe { libc::fork() } == 0 {
        std::thread::spawn(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1000));
            }
        });
        // SAFETY: ends this thread alone.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    println!("started");
    ExitCode::SUCCESS
}

/// Same as [`undead`], but the other thread holds this number of unlinked files of four megabytes.
pub fn undead_holder(files: i64) -> ExitCode {
    let thread = std::thread::spawn(move || super::hostile::hold_unlinked(files));
    std::mem::forget(thread);
    // SAFETY: ends this thread alone.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    ExitCode::SUCCESS
}

/// Holds this number of unlinked files of four megabytes in a process that unprivileged processes cannot inspect.
pub fn hidden_holder(files: i64) -> ExitCode {
    // SAFETY: the call takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    super::hostile::hold_unlinked(files);
    ExitCode::SUCCESS
}

/// Prints how many megabytes of deleted files can be kept by mapping one page of each.
pub fn mapped_only(files: u64) -> ExitCode {
    for number in 0..files {
        let mut file = fs::File::options().read(true).write(true).create_new(true).open("mapped").unwrap();
        fs::remove_file("mapped").unwrap();
        let written = io::Write::write_all(&mut file, &vec![number as u8; 1 << 20]).is_ok();
        // SAFETY: the file is longer than the mapping, which stays on purpose.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if !written || at == libc::MAP_FAILED {
            println!("{number}");
            return ExitCode::SUCCESS;
        }
    }
    println!("{files}");
    ExitCode::SUCCESS
}

/// Prints how many signals can be queued.
pub fn queued_signals() -> ExitCode {
    let mut count = 0;
    // SAFETY: the signal is blocked first, and the value is not used.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGRTMIN());
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
        while count < 50_000 && libc::sigqueue(libc::getpid(), libc::SIGRTMIN(), value) == 0 {
            count += 1;
        }
    }
    println!("{count}");
    ExitCode::SUCCESS
}

crate::cases! {
    known_ways_out_through_the_kernel_are_closed(fixture) {
        let mut inside = fixture.start().await?;
        let mut open = Vec::new();
        for name in REFUSED {
            let done = inside.hostile(&["kernel", name], limits(10.0)).await?;
            let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            // The kernel may also refuse a call by killing the caller.
            if !said.starts_with("denied") && !matches!(done.exit, autoexperiment::sandbox::Exit::Signal(_)) {
                open.push(format!("{name}: {:?} {said}", done.exit));
            }
        }
        ensure!(open.is_empty(), "{open:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_process_whose_first_thread_has_ended_is_killed_at_the_end(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["undead"], limits(5.0)).await?;
        ensure!(done.stdout == b"started\n", "{done:?}");
        inside.end().await?;
    }

    a_process_whose_first_thread_has_ended_is_killed_at_its_time_limit(fixture) {
        let mut inside = fixture.start().await?;
        // Start a process of an earlier command, which must survive. The time limit therefore cannot simply end all
        // processes, but has to find those of the second command.
        inside.sh("sleep 1000 >/dev/null 2>&1 &").await?;
        let begun = std::time::Instant::now();
        let script = format!("'{}' hostile undead {}; sleep 1000", fixture.exe.display(), fixture.marker);
        let done = inside.exec(autoexperiment::sandbox::Command::shell(&script), limits(0.7)).await?;
        ensure!(done.exit == autoexperiment::sandbox::Exit::TimedOut, "{done:?}");
        ensure!(begun.elapsed() < Duration::from_secs(5), "took {:?}", begun.elapsed());
        let left: Vec<_> = super::runner::survivors(&fixture.marker).into_iter().filter(|line| !line.contains("sleep")).collect();
        ensure!(left.iter().all(|line| !line.contains("undead")), "{left:?}");
        inside.works().await?;
        inside.end().await?;
    }

    files_of_a_process_whose_first_thread_has_ended_count_as_disk(fixture) {
        fixture.is_measured = true;
        fixture.limits.disk = 24 * super::fixture::MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["undead-holder", "100"], limits(20.0)).await?;
        ensure!(done.exit == autoexperiment::sandbox::Exit::DiskFull, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    files_of_a_process_that_hides_count_as_disk(fixture) {
        fixture.is_measured = true;
        fixture.limits.disk = 24 * super::fixture::MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["hidden-holder", "100"], limits(20.0)).await?;
        ensure!(done.exit == autoexperiment::sandbox::Exit::DiskFull, "{done:?}");
        inside.works().await?;
        inside.end().await?;
    }

    a_file_that_is_only_mapped_is_held_to_the_disk_where_it_has_one(fixture) {
        let disk = fixture.backend.disk(24 * super::fixture::MIB, fixture.host.path()).unwrap();
        if disk.is_none() {
            // Without a disk image, the growth of the disk is watched, and the watching process does not see files that
            // are only mapped: see docs/security.md.
            return Ok(());
        }
        fixture.limits.disk = 24 * super::fixture::MIB;
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["mapped-only", "100"], limits(20.0)).await?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let held: u64 = said.trim().parse().unwrap_or(0);
        ensure!(held <= 32, "{held} MiB held, {:?}", done.exit);
        inside.works().await?;
        inside.end().await?;
    }

    queued_signals_are_limited(fixture) {
        let mut inside = fixture.start().await?;
        let done = inside.hostile(&["queued-signals"], limits(20.0)).await?;
        let count: u32 = String::from_utf8_lossy(&done.stdout).trim().parse().map_err(|_| format!("{done:?}"))?;
        ensure!(count <= 4096, "{count}");
        inside.end().await?;
    }
}
