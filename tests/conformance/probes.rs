//! Hundreds of probes: every operation on every target by every path. Whether a probe itself fails or seems to succeed
//! does not matter. The tests check the state of the host afterwards, which bytes were read, and whether the sandbox
//! still works.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use autoexperiment::sandbox::Fault;
use nix::libc;

use super::fixture::{Fixture, Inside, limits};
use super::hostile::FORBIDDEN;
use crate::ensure;

/// Operations on a path.
const FILE_OPERATIONS: &[&str] = &[
    "read",
    "reopen",
    "mmap",
    "sendfile",
    "copy",
    "list",
    "readlink",
    "execute",
    "write",
    "append",
    "truncate",
    "unlink",
    "rmdir",
    "mkdir-below",
    "create-below",
    "fifo-below",
    "rename-away",
    "rename-over",
    "link",
    "symlink",
    "chmod-none",
    "chmod-all",
    "chown",
    "times",
    "attribute",
    "bind",
];
/// Prefixes by which a path could lead to the host's file.
const WAYS: &[&str] = &["", "/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../../../..", "../../../../../../.."];
/// Operations on a process.
const PROCESS_OPERATIONS: &[&str] = &[
    "terminate",
    "kill",
    "stop",
    "queue",
    "thread",
    "by-descriptor",
    "attach",
    "seize",
    "read-memory",
    "write-memory",
    "limits",
    "priority",
    "affinity",
    "scheduler",
    "io-priority",
    "environment",
    "memory-file",
    "maps",
    "oom-score",
    "open-files",
];

/// Runs one probe per operation and argument inside a sandbox, and prints the result of each.
pub fn act(kind: &str, arguments: &[&str]) -> ExitCode {
    let operations = if kind == "probe-files" { FILE_OPERATIONS } else { PROCESS_OPERATIONS };
    for argument in arguments {
        for operation in operations {
            let result = match kind {
                "probe-files" => file(operation, argument),
                _ => process(operation, argument.parse().unwrap()),
            };
            match result {
                Ok(found) => println!("{operation} {argument}: done {found}"),
                Err(error) => println!("{operation} {argument}: {error}"),
            }
        }
    }
    println!("end");
    ExitCode::SUCCESS
}

fn check(result: impl Into<i64>) -> io::Result<String> {
    if result.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(String::new()) }
}

fn file(operation: &str, path: &str) -> io::Result<String> {
    let name = CString::new(path).unwrap();
    let below = format!("{path}/probe");
    let inner = CString::new(below.clone()).unwrap();
    let past = [libc::timespec { tv_sec: 1, tv_nsec: 0 }; 2];
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\n', " ");
    // SAFETY: all strings and values that are passed are alive, and the mapping is read within its length.
    unsafe {
        match operation {
            "read" => fs::read(path).map(text),
            "reopen" => {
                let handle = libc::open(name.as_ptr(), libc::O_PATH);
                check(handle)?;
                fs::read(format!("/proc/self/fd/{handle}")).map(text)
            }
            "mmap" => {
                let file = fs::File::open(path)?;
                let length = file.metadata()?.len().clamp(1, 4096) as usize;
                let null = std::ptr::null_mut();
                let at = libc::mmap(null, length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
                check(at as i64)?;
                Ok(text(std::slice::from_raw_parts(at.cast::<u8>(), length).to_vec()))
            }
            "sendfile" | "copy" => {
                let (from, to) = (fs::File::open(path)?, fs::File::create("copied")?);
                let (from, to, null) = (from.as_raw_fd(), to.as_raw_fd(), std::ptr::null_mut());
                check(if operation == "copy" {
                    libc::copy_file_range(from, null, to, null, 4096, 0) as i64
                } else {
                    libc::sendfile(to, from, null.cast(), 4096) as i64
                })?;
                fs::read("copied").map(text)
            }
            "list" => fs::read_dir(path)
                .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect()),
            "readlink" => fs::read_link(path).map(|to| to.display().to_string()),
            "execute" => std::process::Command::new(path).output().map(|output| text(output.stdout)),
            "write" => check(libc::open(name.as_ptr(), libc::O_WRONLY))
                .and_then(|_| fs::write(path, "probe"))
                .map(|()| String::new()),
            "append" => {
                io::Write::write(&mut fs::OpenOptions::new().append(true).open(path)?, b"probe").map(|n| n.to_string())
            }
            "truncate" => check(libc::truncate(name.as_ptr(), 0)),
            "unlink" => check(libc::unlink(name.as_ptr())),
            "rmdir" => check(libc::rmdir(name.as_ptr())),
            "mkdir-below" => check(libc::mkdir(inner.as_ptr(), 0o777)),
            "create-below" => fs::File::create_new(below).map(|_| String::new()),
            "fifo-below" => check(libc::mkfifo(inner.as_ptr(), 0o666)),
            "rename-away" => check(libc::rename(name.as_ptr(), c"stolen".as_ptr())),
            "rename-over" => {
                fs::write("forged", "probe")?;
                check(libc::rename(c"forged".as_ptr(), name.as_ptr()))
            }
            "link" => {
                let _ = fs::remove_file("linked");
                check(libc::link(name.as_ptr(), c"linked".as_ptr())).and_then(|_| fs::read("linked").map(text))
            }
            "symlink" => {
                let _ = fs::remove_file("pointer");
                check(libc::symlink(name.as_ptr(), c"pointer".as_ptr()))?;
                fs::read("pointer").map(text)
            }
            "chmod-none" => check(libc::chmod(name.as_ptr(), 0)),
            "chmod-all" => check(libc::chmod(name.as_ptr(), 0o777)),
            "chown" => check(libc::chown(name.as_ptr(), libc::getuid(), libc::getgid())),
            "times" => check(libc::utimensat(libc::AT_FDCWD, name.as_ptr(), past.as_ptr(), 0)),
            "attribute" => check(libc::setxattr(name.as_ptr(), c"user.probe".as_ptr(), c"x".as_ptr().cast(), 1, 0)),
            "bind" => {
                check(libc::mount(name.as_ptr(), c"folder".as_ptr(), c"none".as_ptr(), libc::MS_BIND, std::ptr::null()))
            }
            _ => Err(io::Error::other("unknown")),
        }
    }
}

fn process(operation: &str, pid: i32) -> io::Result<String> {
    let of = |name: &str| format!("/proc/{pid}/{name}");
    let read = |name: &str| fs::read(of(name)).map(|bytes| String::from_utf8_lossy(&bytes).replace(['\0', '\n'], " "));
    let mut word = 0_u64;
    // SAFETY: all pointers are to live values of the right size.
    unsafe {
        let mut memory = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: 8 };
        let mut there = libc::iovec { iov_base: 0x40_0000 as *mut _, iov_len: 8 };
        match operation {
            "terminate" => check(libc::kill(pid, libc::SIGTERM)),
            "kill" => check(libc::kill(pid, libc::SIGKILL)),
            "stop" => check(libc::kill(pid, libc::SIGSTOP)),
            "queue" => check(libc::sigqueue(pid, libc::SIGSEGV, libc::sigval { sival_ptr: std::ptr::null_mut() })),
            "thread" => check(libc::syscall(libc::SYS_tgkill, pid, pid, libc::SIGKILL)),
            "by-descriptor" => {
                let handle = libc::syscall(libc::SYS_pidfd_open, pid, 0);
                check(handle)?;
                check(libc::syscall(libc::SYS_pidfd_send_signal, handle, libc::SIGKILL, 0, 0))
            }
            "attach" => check(libc::ptrace(libc::PTRACE_ATTACH, pid, 0, 0)),
            "seize" => check(libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0)),
            "read-memory" => check(libc::process_vm_readv(pid, &raw mut memory, 1, &raw mut there, 1, 0) as i64),
            "write-memory" => check(libc::process_vm_writev(pid, &raw mut memory, 1, &raw mut there, 1, 0) as i64),
            "limits" => {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                check(libc::prlimit(pid, libc::RLIMIT_AS, &raw const none, std::ptr::null_mut()))
            }
            "priority" => check(libc::setpriority(libc::PRIO_PROCESS, pid as u32, 19)),
            "affinity" => {
                let one = [1_u64; 1];
                check(libc::syscall(libc::SYS_sched_setaffinity, pid, 8, one.as_ptr()))
            }
            "scheduler" => {
                let parameters = libc::sched_param { sched_priority: 0 };
                check(libc::sched_setscheduler(pid, libc::SCHED_IDLE, &raw const parameters))
            }
            "io-priority" => check(libc::syscall(libc::SYS_ioprio_set, 1, pid, 3 << 13)),
            "environment" => read("environ"),
            "memory-file" => fs::OpenOptions::new().write(true).open(of("mem")).map(|_| "SECRET".into()),
            "maps" => read("maps").map(|_| "read".into()),
            "oom-score" => fs::write(of("oom_score_adj"), "1000").map(|()| String::new()),
            "open-files" => fs::read_dir(of("fd")).map(|entries| entries.count().to_string()),
            _ => Err(io::Error::other("unknown")),
        }
    }
}

/// Describes the state of a file or folder on the host that no probe may change.
fn state(path: &Path) -> String {
    let about = fs::symlink_metadata(path).unwrap();
    let names: BTreeSet<_> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    let times = if about.is_dir() { (0, 0) } else { (about.mtime(), about.mtime_nsec()) };
    let attributes = xattr::list(path).map_or(0, Iterator::count);
    format!(
        "{} {:o} {} {} {times:?} {attributes} {names:?} {:?}",
        path.display(),
        about.mode(),
        about.uid(),
        if about.is_dir() { 0 } else { about.nlink() },
        fs::read(path).ok(),
    )
}

/// Describes the state of a process that no probe may change: whether it runs, its limits, its priority and its
/// processors.
fn process_state(pid: u32) -> String {
    let of = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = of("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let stopped = fields.first().is_none_or(|state| ["T", "t", "Z", "X"].contains(state));
    let affinity = of("status").lines().find(|line| line.starts_with("Cpus_allowed:")).map(str::to_owned);
    let nice = (fields.get(16), fields.get(38));
    format!("{stopped} {nice:?} {affinity:?} {} {}", of("limits"), of("oom_score_adj"))
}

/// Runs one kind of probe. Returns the number of probes, or an error with a secret that was read.
async fn run(inside: &mut Inside, kind: &str, arguments: &[String]) -> Result<usize, String> {
    let all: Vec<&str> = std::iter::once(kind).chain(arguments.iter().map(String::as_str)).collect();
    let long = autoexperiment::sandbox::ExecLimits { output: 1 << 20, ..limits(20.0) };
    let done = inside.hostile(&all, long).await?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    ensure!(said.ends_with("end\n"), "{kind}: {:?} {said} {}", done.exit, String::from_utf8_lossy(&done.stderr));
    if let Some(line) = said.lines().find(|line| line.contains("SECRET")) {
        return Err(format!("escaped: {line}"));
    }
    Ok(said.lines().count() - 1)
}

/// Uses the three file tools on a path. Returns the number of uses, or an error with a secret that was read.
async fn by_file_tools(inside: &mut Inside, path: &str) -> Result<usize, String> {
    match inside.read(path).await {
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains("SECRET") => return Err(format!("escaped: read {path}")),
        Err(Fault::Lost(loss)) => return Err(format!("lost by reading {path}: {loss}")),
        _ => {}
    }
    if let Err(Fault::Lost(loss)) = inside.sandbox.list(Path::new(path)).await {
        return Err(format!("lost by listing {path}: {loss}"));
    }
    if let Err(Fault::Lost(loss)) = inside.write(path, b"probe").await {
        return Err(format!("lost by writing {path}: {loss}"));
    }
    Ok(3)
}

async fn all(fixture: &mut Fixture<'_>) -> Result<(), String> {
    let host = fixture.host.path().to_path_buf();
    let folder = host.join("home");
    let targets: Vec<PathBuf> =
        vec![host.join("gold.json"), host.join("original.py"), folder.join("secret"), folder.clone()];
    fs::set_permissions(&host, fs::Permissions::from_mode(0o755)).unwrap();
    let paths: Vec<String> =
        targets.iter().flat_map(|target| WAYS.iter().map(move |way| format!("{way}{}", target.display()))).collect();
    let mut inside = fixture.start().await?;
    let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pids = [victim.id(), std::process::id()];
    let look = || {
        let files: Vec<String> = targets.iter().map(|target| state(target)).collect();
        let processes: Vec<String> = pids.iter().map(|pid| process_state(*pid)).collect();
        (files, processes)
    };
    let before = look();
    let probed = async {
        let mut count = run(&mut inside, "probe-files", &paths).await?;
        let numbers: Vec<String> = std::iter::once(1).chain(pids).map(|pid| pid.to_string()).collect();
        count += run(&mut inside, "probe-processes", &numbers).await?;
        for path in &paths {
            count += by_file_tools(&mut inside, path).await?;
        }
        for target in &targets {
            inside.sh(&format!("rm -rf pointer; ln -s '{}' pointer", target.display())).await?;
            count += by_file_tools(&mut inside, "pointer").await?;
        }
        for call in FORBIDDEN {
            inside.denied(&["system-call", call]).await?;
            count += 1;
        }
        inside.works().await?;
        inside.end().await?;
        Ok::<usize, String>(count)
    }
    .await;
    let after = look();
    victim.kill().and_then(|()| victim.wait()).unwrap();
    let count = probed?;
    for (before, after) in before.0.iter().chain(&before.1).zip(after.0.iter().chain(&after.1)) {
        ensure!(before == after, "changed on the host: {before} is now {after}");
    }
    ensure!(count >= 650, "only {count} probes");
    println!("{}: {count} probes, 0 escapes, the sandbox lived on", fixture.backend.name());
    Ok(())
}

crate::cases! {
    no_probe_reads_or_changes_what_is_on_the_host(fixture) {
        all(fixture).await?;
    }
}
