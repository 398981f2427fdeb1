//! What an engine may do in the midst of a run: containers that vanish, a daemon that is killed and started again, a
//! harness that is killed. Every attempt ends with a verdict of its own or as lost to infrastructure, and nothing stays.
//!
//! Needs root and `dockerd`, takes minutes, and runs only with AUTOEXPERIMENT_FAULTS=1. It has a daemon of its own, with
//! its own folders and socket: whatever else runs on the machine is left alone.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::Lab;

const ASKED: &str = "AUTOEXPERIMENT_FAULTS";
/// Samples of the tiny suite (11) times agents (2) times attempts at each.
const ATTEMPTS_EACH: usize = 10;
const LEAST_ATTEMPTS: usize = 200;
/// Between two kills of a container, of the daemon, of the harness.
const CONTAINERS: Duration = Duration::from_secs(3);
const DAEMON: Duration = Duration::from_secs(31);
const HARNESS: Duration = Duration::from_secs(23);
/// Harnesses that are killed; the next goes on to the end.
const HARNESSES: u32 = 5;

/// A Docker daemon of this test's own.
struct Daemon {
    folder: tempfile::TempDir,
    /// Beside it, as services are: a daemon that starts containerd by itself takes it along when it is killed.
    containerd: Child,
    process: Mutex<Option<Child>>,
}

impl Daemon {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let log = fs::File::create(path("containerd.log")).unwrap();
        let containerd = Command::new("containerd")
            .arg("--root")
            .arg(path("containerd"))
            .arg("--state")
            .arg(path("state"))
            .arg("--address")
            .arg(path("containerd.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let daemon = Self { folder, containerd, process: Mutex::new(None) };
        let begun = Instant::now();
        while !daemon.path("containerd.sock").exists() {
            assert!(begun.elapsed() < Duration::from_mins(1), "containerd does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon.start();
        daemon
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn address(&self) -> String {
        format!("unix://{}", self.path("docker.sock").display())
    }

    fn start(&self) {
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        let _ = fs::remove_file(self.path("pid"));
        let child = Command::new("dockerd")
            .arg("--data-root")
            .arg(self.path("data"))
            .arg("--exec-root")
            .arg(self.path("exec"))
            .arg("--pidfile")
            .arg(self.path("pid"))
            .arg("--containerd")
            .arg(self.path("containerd.sock"))
            .args(["--host", &self.address(), "--bridge=none", "--iptables=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        *self.process.lock().unwrap() = Some(child);
        let begun = Instant::now();
        while !self.docker(&["info"]).0 {
            assert!(begun.elapsed() < Duration::from_mins(1), "{}", fs::read_to_string(self.path("log")).unwrap());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// With `kill -9`, as if the machine's memory had run out.
    fn kill(&self) {
        let child = self.process.lock().unwrap().take();
        if let Some(mut child) = child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// What `docker` says, and whether it succeeded.
    fn docker(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new("docker");
        command.args(["--host", &self.address()]).args(arguments).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The first processes of all running containers, as the kernel's groups list them.
    fn inits(&self) -> Vec<i32> {
        let (_, ids) = self.docker(&["ps", "-q"]);
        let mut arguments = vec!["inspect", "--format", "{{.State.Pid}}"];
        arguments.extend(ids.lines());
        if ids.is_empty() {
            return Vec::new();
        }
        self.docker(&arguments).1.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 0).collect()
    }

    /// Mounts of containers below the daemon's folders.
    fn mounts(&self) -> Vec<String> {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let needle = self.folder.path().display().to_string();
        let is_container = |line: &&str| line.contains(&needle) && (line.contains("merged") || line.contains("/shm"));
        mounts.lines().filter(is_container).map(ToOwned::to_owned).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let stop = |child: &mut Child| {
            let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            let _ = child.wait();
        };
        if let Some(mut child) = self.process.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).take() {
            stop(&mut child);
        }
        stop(&mut self.containerd);
    }
}

/// Folders of control groups named by containers: 64 hex digits.
fn groups() -> Vec<PathBuf> {
    let is_id = |name: &str| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let walk = walkdir::WalkDir::new("/sys/fs/cgroup").into_iter().filter_entry(|entry| entry.file_type().is_dir());
    walk.flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_id))
        .map(walkdir::DirEntry::into_path)
        .collect()
}

fn can_have_a_daemon() -> bool {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let can = nix::unistd::getuid().is_root() && is_there("dockerd") && is_there("docker");
    if !can {
        println!("skipped: it needs root, `dockerd` and `docker`");
    }
    can
}

/// A base image of the usual daemon's saves making another.
fn give_base(daemon: &Daemon) {
    const BASE: &str = "localhost/autoexperiment/base:1";
    let file = daemon.path("base.tar");
    let saved = Command::new("docker").args(["save", "-o"]).arg(&file).arg(BASE).stderr(Stdio::null()).status();
    if saved.is_ok_and(|status| status.success()) {
        assert!(daemon.docker(&["load", "-i", &file.display().to_string()]).0);
    }
}

#[test]
fn a_run_outlives_the_loss_of_containers_of_the_daemon_and_of_itself() {
    if std::env::var_os(ASKED).is_none() {
        println!("skipped: it takes minutes; set {ASKED}=1");
        return;
    }
    if !can_have_a_daemon() {
        return;
    }
    let lab = Lab::new();
    let groups_before = groups();
    let daemon = Daemon::new();
    give_base(&daemon);
    // An object of somebody else's.
    assert!(daemon.docker(&["volume", "create", "precious"]).0);
    let command = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.env("DOCKER_HOST", daemon.address()).stdout(Stdio::null());
        command
    };
    let built = command(&["image", "build", "tiny"]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let done = AtomicBool::new(false);
    let (containers, daemons, mut harnesses) = (AtomicU64::new(0), AtomicU64::new(0), 0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = Instant::now();
            let mut turn = 0_usize;
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(CONTAINERS);
                let inits = daemon.inits();
                turn += 7;
                if let Some(pid) = inits.get(turn % inits.len().max(1)) {
                    let pid = nix::unistd::Pid::from_raw(*pid);
                    if nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).is_ok() {
                        containers.fetch_add(1, Ordering::Relaxed);
                    }
                }
                if last.elapsed() > DAEMON && !done.load(Ordering::Relaxed) {
                    daemon.kill();
                    std::thread::sleep(Duration::from_secs(1));
                    daemon.start();
                    daemons.fetch_add(1, Ordering::Relaxed);
                    last = Instant::now();
                }
            }
        });
        let each = ATTEMPTS_EACH.to_string();
        let first = [
            "run",
            "-n",
            "1..3",
            "-k",
            &each,
            "--agent",
            "gold",
            "--agent",
            "noop",
            "--no-baseline",
            "--sandbox",
            "docker",
            "--name",
            "r",
            "--tries",
            "5",
            "-j",
            "4",
        ];
        let mut arguments: Vec<&str> = first.to_vec();
        loop {
            let log = fs::File::options().create(true).append(true).open(lab.path("log")).unwrap();
            let mut child = command(&arguments).stderr(log).spawn().unwrap();
            let started = Instant::now();
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                // The last quarter is left to go on by itself, or it would never end.
                if started.elapsed() > HARNESS && harnesses < HARNESSES {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    harnesses += 1;
                    break None;
                }
                std::thread::sleep(Duration::from_millis(50));
            };
            if status.is_some_and(|status| status.success()) {
                break;
            }
            let said = || fs::read_to_string(lab.path("log")).unwrap_or_default();
            // Lost after all tries, or no daemon to begin with, is what `resume` is for; nothing else may go wrong.
            let code = status.map(|status| status.code());
            assert!(code.is_none_or(|code| code == Some(8) || code == Some(5)), "{code:?}\n{}", said());
            assert!(begun.elapsed() < Duration::from_mins(25), "{}", said());
            if lab.path("runs/r/run.json").exists() {
                arguments = vec!["resume", "r", "--no-baseline"];
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!(
        "{} containers, {} daemons and {harnesses} harnesses killed in {:.0} s",
        containers.load(Ordering::Relaxed),
        daemons.load(Ordering::Relaxed),
        begun.elapsed().as_secs_f64()
    );

    let (mut passes, mut lost) = (BTreeMap::new(), 0);
    for record in lab.records("r") {
        let end = record["end"].as_str().unwrap().to_owned();
        if ["sandbox_lost", "cancelled"].contains(&end.as_str()) {
            assert_eq!(record["pass"], false, "{record}");
            lost += 1;
            continue;
        }
        let key = (record["agent"].to_string(), record["sample"].to_string(), record["attempt"].as_u64().unwrap());
        assert!(passes.insert(key, record["pass"] == true).is_none(), "{record} was made twice");
    }
    println!("{} attempts with a verdict, {lost} lost on the way", passes.len());
    assert!(passes.len() >= LEAST_ATTEMPTS, "{}", passes.len());
    for ((agent, sample, _), pass) in &passes {
        assert_eq!(*pass, agent.contains("gold"), "{agent} at {sample}");
    }
    let swept = command(&["sweep"]).output().unwrap();
    assert!(swept.status.success(), "{}", String::from_utf8_lossy(&swept.stderr));
    assert_eq!(daemon.docker(&["ps", "-aq"]).1, "", "containers");
    assert_eq!(daemon.mounts(), Vec::<String>::new(), "mounts");
    assert_eq!(daemon.docker(&["network", "ls", "--filter", "type=custom", "-q"]).1, "", "networks");
    assert_eq!(daemon.docker(&["volume", "ls", "-q", "--filter", "name=precious"]).1, "precious");
    // The last containers' groups go with their shims, a moment after the containers.
    let left = || groups().into_iter().filter(|group| !groups_before.contains(group)).collect::<Vec<_>>();
    let begun = Instant::now();
    while !left().is_empty() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let inside = |group: &PathBuf| fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let left: Vec<_> = left().into_iter().map(|group| (inside(&group), group)).collect();
    assert!(left.is_empty(), "{left:?}");
    println!("no control group left after {:.1} s", begun.elapsed().as_secs_f64());
    assert!(fs::read_dir(lab.path("scratch")).unwrap().next().is_none(), "workspaces were left");
}

#[test]
fn a_sweep_and_a_prune_touch_nothing_that_is_not_labelled() {
    if std::env::var_os(ASKED).is_none() {
        println!("skipped: set {ASKED}=1");
        return;
    }
    if !can_have_a_daemon() {
        return;
    }
    let daemon = Daemon::new();
    let mine = |arguments: &[&str]| {
        let (succeeded, said) = daemon.docker(arguments);
        assert!(succeeded, "{arguments:?}: {said}");
        said
    };
    let image = format!("autoexperiment-stranger-{}", std::process::id());
    let made = format!("tar -c -C /etc hostname | docker --host {} import - {image}", daemon.address());
    assert!(Command::new("sh").args(["-c", &made]).stdout(Stdio::null()).status().unwrap().success());
    let container = mine(&["create", "--name", &image, &image, "true"]);
    // Labelled, but nobody's whose end is known.
    let living = mine(&["create", "--label", "autoexperiment=1", &image, "true"]);
    let dead = mine(&[
        "create",
        "--label",
        "autoexperiment=1",
        "--label",
        &format!("autoexperiment.owner={}", dead()),
        &image,
        "true",
    ]);
    mine(&["volume", "create", &image]);
    for verb in [&["sweep"][..], &["image", "prune"]] {
        let output = Command::new(support::PROGRAM).args(verb).env("DOCKER_HOST", daemon.address()).output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let containers = mine(&["ps", "-aq", "--no-trunc"]);
    let (kept, kept_too) = (containers.contains(&container), containers.contains(&living));
    let swept = !containers.contains(&dead);
    let others =
        (mine(&["image", "ls", "-q", &image]), mine(&["volume", "ls", "-q", "--filter", &format!("name={image}")]));
    assert!(kept && kept_too && swept, "{kept} {kept_too} {swept}");
    assert!(!others.0.is_empty() && !others.1.is_empty(), "{others:?}");
}

/// The owner's label of a process of this machine that is no more.
fn dead() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let machine = Some(read("/etc/machine-id")).filter(|id| !id.is_empty());
    let machine = machine.unwrap_or_else(|| nix::unistd::gethostname().unwrap().to_string_lossy().into_owned());
    format!("{machine}/{}/{}/1", read("/proc/sys/kernel/random/boot_id"), std::process::id())
}
