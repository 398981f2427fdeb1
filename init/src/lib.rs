//! The sandbox's first process: a small program that is embedded in the main program and started by it. It builds the
//! sandbox around itself, gives up all rights, and then runs jobs for the harness until the harness closes its end of
//! the socket.
//!
//! The harness shares the messages ([`wire`]), the lists ([`tree`]) and the code that examines processes, disks and
//! files.
//!
//! ```text
//! harness ── guardian (outside, waits) ── init (pid 1 inside) ── commands      with namespaces
//! harness ── init (collects orphans) ── commands, each confined by landlock    without
//! harness ── init (collects orphans) ── commands                               not confined
//! harness ── engine ── init (pid 1 inside) ── commands                         in a container
//! ```

#![allow(missing_docs, reason = "shared by two programs of one workspace, published for nobody else")]

mod calls;
pub mod capture;
mod channel;
mod children;
mod confine;
pub mod descriptors;
pub mod disk;
pub mod files;
mod filter;
pub mod folder;
mod growth;
mod launch;
pub mod left_out;
mod memory;
mod mount;
pub mod needles;
mod oom;
mod outcome;
mod pipes;
pub mod processes;
pub mod reap;
mod relay;
mod root;
mod running;
#[cfg(feature = "search")]
pub mod search;
mod serve;
mod sockets;
mod start;
pub mod starved;
mod terminals;
pub mod tree;
pub mod wire;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getgid, getuid, setsid};

use channel::Channel;
use confine::Confinement;
use growth::Growth;
use memory::{MemoryWatch, SocketMeasurement};
use oom::OomScore;
use serve::{JobServer, send};
use start::Starter;
use wire::{ENVELOPE, InitReply, OsBytes, Setup, Surroundings, WorkspaceSource, receive};

pub use outcome::{EntryKind, Exec, Exit, FolderEntry};
pub use root::HOME;
pub use root::readable as shown_to_all;

/// The workspace's path in every sandbox that has its own view of the file system.
pub const WORKDIR: &str = "/workspace";

/// Argument that makes the program run a search, see `search`.
pub const SEARCH: &str = "search";
/// Environment variable that marks a sandbox's processes if there are no namespaces. Its value is the sandbox's private
/// folder.
pub const OWN_VARIABLE: &str = "AUTOEXPERIMENT_SANDBOX";
/// Time limit for the first message to arrive.
const FIRST_MESSAGE: Duration = Duration::from_mins(2);
/// Base of a guardian's exit code if a signal has ended the init: the signal's number is added.
pub const SIGNALLED: u8 = 128;
/// User and group id inside a sandbox, whatever the ids outside are.
const INSIDE: u32 = 1000;

/// Runs the whole program. Standard input is a socket to the harness, or standard input and output are two pipes to the
/// harness.
pub fn main() -> ExitCode {
    run().unwrap_or(ExitCode::FAILURE)
}

fn run() -> io::Result<ExitCode> {
    descriptors::close_inherited();
    let mut channel = Channel::take()?;
    default_signals();
    let _ = setsid();
    // If an engine is killed while it starts a container, the engine forgets the container, but the streams stay open.
    // So do not wait for ever.
    if !channel.is_ready_within(FIRST_MESSAGE)? {
        return Ok(ExitCode::FAILURE);
    }
    let Some(setup) = receive::<Setup>(&mut channel, ENVELOPE)? else { return Ok(ExitCode::SUCCESS) };
    let result = doing("enter the cgroup", enter_cgroups(&setup.procs_files)).and_then(|()| match setup.place {
        Surroundings::Namespaces => enter_namespaces(&setup),
        Surroundings::Host => start_confined(&setup),
        Surroundings::Unconfined => start_unconfined(&setup),
        Surroundings::Container => start_contained(&setup),
    });
    match result {
        Ok(ProcessRole::Init(server)) => {
            send(&mut channel, &InitReply::Ready)?;
            server.serve(&mut channel)?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(ProcessRole::Guardian(init)) => {
            drop(channel);
            Ok(guard(init))
        }
        Err(error) => {
            send(&mut channel, &InitReply::Failed(error.to_string()))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Restores the default action of fault signals. Rust's handler would mistake a forged signal for a stack overflow and
/// end the process. With the default action, the kernel drops signals that are sent to a namespace's first process from
/// inside.
fn default_signals() {
    for fault in [Signal::SIGSEGV, Signal::SIGBUS] {
        // SAFETY: the default action runs no code.
        let _ = unsafe { signal(fault, SigHandler::SigDfl) };
    }
}

enum ProcessRole {
    Guardian(Pid),
    Init(Box<JobServer>),
}

fn doing<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> io::Result<T> {
    result.map_err(|error| io::Error::other(format!("{what}: {error}")))
}

/// Moves this process into its control groups, by writing 0, which means the writer itself. Cgroup version 1 moves only
/// the writing thread, which suffices because this process has only one. A process moves itself because the kernel then
/// moves it at once; moving another process takes about 20 ms.
fn enter_cgroups(procs_files: &[OsBytes]) -> io::Result<()> {
    procs_files.iter().try_for_each(|file| fs::OpenOptions::new().write(true).open(file.as_path())?.write_all(b"0"))
}

/// Leaves the host's namespaces. An ordinary user needs a user namespace first, to be allowed to make the other
/// namespaces. Root makes the others with root's rights and enters a user namespace last. The other namespaces then do
/// not belong to this user namespace, so no capability in it applies to them.
fn enter_namespaces(setup: &Setup) -> io::Result<ProcessRole> {
    let root = getuid().is_root();
    if !root {
        let (uid, gid) = (getuid(), getgid());
        doing("unshare the user namespace", unshare(CloneFlags::CLONE_NEWUSER))?;
        let map = |file: &str, text: String| doing(file, fs::write(format!("/proc/self/{file}"), text));
        map("setgroups", "deny".into())?;
        map("uid_map", format!("{INSIDE} {uid} 1"))?;
        map("gid_map", format!("{INSIDE} {gid} 1"))?;
    }
    doing("unshare the pid namespace", unshare(CloneFlags::CLONE_NEWPID))?;
    let (mut asked, asking) = UnixStream::pair()?;
    // SAFETY: this process has one thread.
    if let ForkResult::Parent { child } = doing("fork", unsafe { fork() })? {
        drop(asking);
        if let Some(owner) = setup.owner.filter(|_| root) {
            // Wait until the child is inside its new user namespace, then map its users.
            if asked.read_exact(&mut [0]).is_ok() {
                let map = |file: &str, id: u32| fs::write(format!("/proc/{child}/{file}"), format!("{INSIDE} {id} 1"));
                // If this fails, the child fails to become the user inside, and reports that.
                let _ = map("uid_map", owner.0).and_then(|()| map("gid_map", owner.1));
                let _ = asked.write_all(&[0]);
            }
        }
        return Ok(ProcessRole::Guardian(child));
    }
    drop(asked);
    build_inside(setup, root, asking).map(|server| ProcessRole::Init(Box::new(server)))
}

fn build_inside(setup: &Setup, root: bool, mut asking: UnixStream) -> io::Result<JobServer> {
    let others = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    // A memory cgroup also counts the memory of sockets that the kernel does not list, so these count as 0 bytes here.
    let most_of_a_socket = if setup.memory_cgroup { 0 } else { sockets::most_of_one() };
    doing("unshare namespaces", unshare(others))?;
    doing("set the host name", nix::unistd::sethostname("sandbox"))?;
    loopback_up();
    if !root {
        limit_inotify();
    }
    limit_shared_memory(setup.limits.memory / 2);
    let user = setup.owner.filter(|_| root);
    root::enter(setup, !root, user.unwrap_or((INSIDE, INSIDE)))?;
    let oom_score = OomScore::open();
    // If the kernel does not report the memory of sockets, a memory cgroup still counts most of it. Without a memory
    // cgroup, derive it from the number of open sockets.
    let sockets = SocketMeasurement::ask_kernel(most_of_a_socket).ok();
    let sockets = sockets.or_else(|| (!setup.memory_cgroup).then_some(SocketMeasurement::Guessed(most_of_a_socket)));
    if root {
        nix::unistd::setgroups(&[])?;
        doing("unshare the user namespace", unshare(CloneFlags::CLONE_NEWUSER))?;
        limit_inotify();
        asking.write_all(&[0])?;
        asking.read_exact(&mut [0])?;
        doing("become the user inside", nix::unistd::setresgid(INSIDE.into(), INSIDE.into(), INSIDE.into()))?;
        doing("become the user inside", nix::unistd::setresuid(INSIDE.into(), INSIDE.into(), INSIDE.into()))?;
    }
    drop(asking);
    // Child processes must not see the init's environment, memory or socket.
    nix::sys::prctl::set_dumpable(false)?;
    // If the guardian is killed, the init dies with it, and all processes die with the init.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let confinement = doing("prepare the confinement", Confinement::prepare(setup, None))?;
    doing("confine", confinement.apply())?;
    let workdir = PathBuf::from(WORKDIR);
    let variables = variables(setup, root::HOME.as_ref());
    let server = JobServer::new(Starter::new(workdir, variables, None, oom_score, setup)?)?;
    Ok(weighing(server, setup, sockets))
}

/// Returns the folder that is the workspace of a sandbox without namespaces.
fn folder_of(setup: &Setup) -> io::Result<&OsBytes> {
    match &setup.source {
        WorkspaceSource::Folder(dir) => Ok(dir),
        _ => Err(io::Error::other("an overlay cannot be mounted without namespaces")),
    }
}

/// Starts an init without namespaces. The init keeps its rights, because it must be able to kill processes. Each child
/// gives up its rights before it begins.
fn start_confined(setup: &Setup) -> io::Result<ProcessRole> {
    let dir = folder_of(setup)?;
    let oom_score = OomScore::open();
    nix::sys::prctl::set_child_subreaper(true)?;
    nix::sys::prctl::set_dumpable(false)?;
    let user = setup.owner.filter(|_| getuid().is_root());
    let confinement = Confinement::prepare(setup, user)?;
    let home = setup.scratch.as_ref().unwrap_or(dir).as_path();
    let (workdir, variables) = (dir.as_path().into(), variables(setup, home));
    let starter = Starter::new(workdir, variables, Some(confinement), oom_score, setup)?;
    let sockets = (!setup.memory_cgroup).then(SocketMeasurement::guessed);
    Ok(ProcessRole::Init(Box::new(weighing(JobServer::new(starter)?, setup, sockets))))
}

/// Starts an init that confines nothing.
fn start_unconfined(setup: &Setup) -> io::Result<ProcessRole> {
    let dir = folder_of(setup)?;
    nix::sys::prctl::set_child_subreaper(true)?;
    let home = setup.scratch.as_ref().unwrap_or(dir).as_path();
    let starter = Starter::new(dir.as_path().into(), variables(setup, home), None, None, setup)?;
    Ok(ProcessRole::Init(Box::new(JobServer::new(starter)?)))
}

/// Adds a watch on the memory that no cgroup counts, if `sockets` says how to measure the memory of sockets.
fn weighing(server: JobServer, setup: &Setup, sockets: Option<SocketMeasurement>) -> JobServer {
    match sockets {
        Some(sockets) => {
            let watch = MemoryWatch::new(setup.limits.memory, sockets, setup.memory_cgroup);
            server.weighing(watch.counting_terminals(setup.place == Surroundings::Container))
        }
        None => server,
    }
}

/// Starts an init in a container. The engine has done everything that needs privileges. The init only gives up system
/// calls, resources, and the right to write outside the workspace and the folders for temporary files.
fn start_contained(setup: &Setup) -> io::Result<ProcessRole> {
    let oom_score = OomScore::open();
    nix::sys::prctl::set_dumpable(false)?;
    doing("make the home", fs::create_dir_all(root::HOME))?;
    // Ask the kernel for the memory of sockets, because cgroup version 1 does not count TCP connections. Sockets that
    // the kernel does not list count as 0 bytes, because both versions of cgroups count their memory.
    let sockets = SocketMeasurement::ask_kernel(0).ok();
    let confinement = doing("prepare the confinement", Confinement::prepare(setup, None))?;
    doing("confine", confinement.apply())?;
    let workdir = PathBuf::from(WORKDIR);
    let growth = Growth::new(&[&workdir, "/tmp".as_ref()], setup.limits.disk)?;
    let starter = Starter::new(workdir, variables(setup, root::HOME.as_ref()), None, oom_score, setup)?;
    let server = JobServer::new(starter)?.watching(growth);
    Ok(ProcessRole::Init(Box::new(weighing(server, setup, sockets))))
}

/// Returns the sandbox's environment variables: the given ones, and defaults for a few that most programs need.
fn variables(setup: &Setup, home: &Path) -> std::collections::BTreeMap<String, String> {
    let mut variables = setup.variables.clone();
    let has_own_tmp = matches!(setup.place, Surroundings::Namespaces | Surroundings::Container);
    let temporary = if has_own_tmp { "/tmp".into() } else { home.display().to_string() };
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME", home.display().to_string()),
        ("TMPDIR", temporary),
        ("LANG", "C.UTF-8".to_owned()),
        ("USER", "sandbox".to_owned()),
    ] {
        variables.entry(name.to_owned()).or_insert(value);
    }
    if let Some(scratch) = &setup.scratch {
        variables.insert(OWN_VARIABLE.into(), scratch.as_path().display().to_string());
    }
    variables
}

/// Limits System V shared memory. This memory belongs to no process, so no limit of a process applies to it. Only works
/// for root.
fn limit_shared_memory(bytes: u64) {
    let _ = fs::write("/proc/sys/kernel/shmall", (bytes / 4096).to_string());
}

/// Limits inotify in the new user namespace. Otherwise, sandboxes could use up the limits of the user who started them,
/// which are 128 instances and at least 8,192 watches by default.
fn limit_inotify() {
    for (limit, most) in [("instances", 8), ("watches", 4096)] {
        let _ = fs::write(format!("/proc/sys/user/max_inotify_{limit}"), most.to_string());
    }
}

/// Brings up the sandbox's own loopback device. A failure is acceptable, because it only makes sockets on the device
/// fail.
fn loopback_up() {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    let Ok(fd) = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None) else { return };
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: libc::IFF_UP as libc::c_short },
    };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    // SAFETY: the call reads one `ifreq`, which is alive.
    unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
}

/// Waits for the init and exits like it. When the init is gone, all processes inside are gone.
fn guard(init: Pid) -> ExitCode {
    loop {
        match waitpid(init, None) {
            Ok(WaitStatus::Exited(_, 0)) => return ExitCode::SUCCESS,
            // Use the exit code by which shells report a signal.
            Ok(WaitStatus::Signaled(_, signal, _)) => return ExitCode::from(SIGNALLED + signal as u8),
            Ok(WaitStatus::Exited(..)) => return ExitCode::FAILURE,
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => {
                let _ = kill(init, Signal::SIGKILL);
                return ExitCode::FAILURE;
            }
        }
    }
}
