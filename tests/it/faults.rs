//! Faults in the middle of a run: vanishing containers, a daemon that is killed and restarted, a harness that is
//! killed. Every attempt ends with a verdict of its own or as lost to infrastructure, and nothing is left behind.
//!
//! Takes minutes and is ignored by default (`-- --ignored`), with AUTOEXPERIMENT_FAULTS attempts at each of the 11
//! samples by two agents. Docker and podman need root, because the tests start their own, with their own folders and
//! sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::Lab;
use crate::support::engine::{Engine, Kind, on_engines};

on_engines! {
    docker: a_run_is_completed_although_containers_the_daemon_and_the_program_are_killed, a_sweep_and_a_prune_touch_nothing_that_is_not_labelled;
    podman: a_run_is_completed_although_containers_the_daemon_and_the_program_are_killed, a_sweep_and_a_prune_touch_nothing_that_is_not_labelled;
}

/// Numbers of attempts at each of the 11 samples by each of two agents, for each kind of sandbox. All kinds together
/// make 264 attempts.
const DOCKER: usize = 4;
const PODMAN: usize = 3;
const LOCAL: usize = 5;
/// Time between two kills of the daemon and, below, of the harness.
const DAEMON: Duration = Duration::from_secs(12);
const HARNESS: Duration = Duration::from_secs(8);
/// A run in local sandboxes takes less time, so its harness is killed more often.
const LOCAL_HARNESS: Duration = Duration::from_secs(3);
/// Number of times that the daemon is killed. Limited, so that a run also finishes on a slow machine.
const DAEMONS: u64 = 4;
/// Minimum time between the deaths of a daemon and a harness. If both are killed while a container begins, neither
/// knows this container afterwards (docs/containers.md).
const APART: Duration = Duration::from_secs(4);
/// Number of times that the harness is killed; the next one runs to the end.
const HARNESSES: u32 = 4;

/// Returns the number of attempts at each sample.
fn each(usual: usize) -> usize {
    std::env::var("AUTOEXPERIMENT_FAULTS").map_or(usual, |number| number.parse().expect("AUTOEXPERIMENT_FAULTS=NUMBER"))
}

/// Returns the control groups of an engine's containers, or of these harnesses' local sandboxes.
fn groups(engine: Option<&Engine>, harnesses: &[i32]) -> BTreeSet<PathBuf> {
    if let Some(engine) = engine {
        return engine.groups();
    }
    let is_own = |name: &str| harnesses.iter().any(|pid| name.starts_with(&format!("autoexperiment.{pid}.")));
    let walk = walkdir::WalkDir::new("/sys/fs/cgroup").into_iter().filter_entry(|entry| entry.file_type().is_dir());
    walk.flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_own))
        .map(walkdir::DirEntry::into_path)
        .collect()
}

/// Returns the inits of a harness's local sandboxes.
fn local_inits(harness: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        // The init has a name and no arguments.
        if cmdline == b"autoexperiment\0" && parent(pid) == Some(harness) {
            found.push(pid);
        }
    }
    found
}

fn parent(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// Makes attempts in sandboxes of this kind while their inits, the engine's daemon and the harness are killed again and
/// again.
fn outlive(sandbox: &str, engine: Option<&Engine>, each: usize, kill_every: Duration) {
    let lab = Lab::new();
    let groups_before = groups(engine, &[]);
    let command = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        if let Some(engine) = engine {
            command.env(engine.kind.variable(), engine.address());
        }
        command
    };
    if let Some(engine) = engine {
        engine.give_base();
        // A volume that does not belong to this program, and which must not be removed.
        engine.say(&["volume", "create", "precious"]);
        let built = command(&["image", "build", "--engine", sandbox, "tiny"]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    let networks = engine.map(|engine| engine.say(&["network", "ls", "-q"]));

    let (done, harness, mut pids) = (AtomicBool::new(false), AtomicI32::new(0), Vec::new());
    let (containers, daemons, mut harnesses) = (AtomicU64::new(0), AtomicU64::new(0), 0);
    let other = std::sync::Mutex::new(Instant::now());
    let most_kills = (22 * each / 2) as u64;
    let patience = if engine.is_some() { HARNESS } else { LOCAL_HARNESS };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = Instant::now();
            let mut turn = 0_usize;
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(kill_every);
                let local = || local_inits(harness.load(Ordering::Relaxed)).iter().map(ToString::to_string).collect();
                let sandboxes: Vec<String> = engine.map_or_else(local, Engine::running);
                turn += 7;
                // Limit the number of kills: if attempts take longer than the time between two kills, no attempt would
                // end.
                let is_enough = containers.load(Ordering::Relaxed) >= most_kills;
                if let Some(sandbox) = sandboxes.get(turn % sandboxes.len().max(1)).filter(|_| !is_enough) {
                    let is_killed = match engine {
                        // Kill the container through the engine, which then reports the kill. If a container dies in
                        // another way, its attempt counts as failed.
                        Some(engine) => engine.cli(&["kill", sandbox]).0,
                        None => {
                            let pid = nix::unistd::Pid::from_raw(sandbox.parse().unwrap());
                            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).is_ok()
                        }
                    };
                    containers.fetch_add(u64::from(is_killed), Ordering::Relaxed);
                }
                if let Some(engine) = engine
                    && last.elapsed() > DAEMON
                    && daemons.load(Ordering::Relaxed) < DAEMONS
                    && !done.load(Ordering::Relaxed)
                    && let Ok(mut other) = other.lock()
                    && other.elapsed() > APART
                {
                    engine.kill();
                    std::thread::sleep(Duration::from_secs(1));
                    engine.go().unwrap();
                    daemons.fetch_add(1, Ordering::Relaxed);
                    last = Instant::now();
                    *other = last;
                }
            }
        });
        let each = each.to_string();
        let first = ["run", "-n", "1..3", "-k", &each, "--agent", "gold", "--agent", "noop", "--no-baseline"];
        let second = ["--sandbox", sandbox, "--name", "r", "--tries", "5", "-j", "4"];
        let mut arguments: Vec<&str> = first.into_iter().chain(second).collect();
        loop {
            let log = fs::File::options().create(true).append(true).open(lab.path("log")).unwrap();
            let mut child = command(&arguments).stdout(std::process::Stdio::null()).stderr(log).spawn().unwrap();
            pids.push(child.id().cast_signed());
            harness.store(child.id().cast_signed(), Ordering::Relaxed);
            let started = Instant::now();
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                // The last harness is not killed, or the run would never end.
                if started.elapsed() > patience
                    && harnesses < HARNESSES
                    && let Ok(mut other) = other.lock()
                    && (engine.is_none() || other.elapsed() > APART)
                {
                    *other = Instant::now();
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
            // `resume` continues a run that lost attempts after all tries, or that ended because the daemon was down.
            // The run may not fail in any other way.
            let code = status.map(|status| status.code());
            assert!(code.is_none_or(|code| matches!(code, Some(8 | 5 | 12))), "{code:?}\n{}", said());
            assert!(begun.elapsed() < Duration::from_mins(25), "{}", said());
            if lab.path("runs/r/run.json").exists() {
                arguments = vec!["resume", "r", "--no-baseline"];
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!(
        "{sandbox}: {} sandboxes, {} daemons and {harnesses} harnesses killed in {:.0} s",
        containers.load(Ordering::Relaxed),
        daemons.load(Ordering::Relaxed),
        begun.elapsed().as_secs_f64()
    );
    // The test shows nothing unless faults happened.
    assert!(containers.load(Ordering::Relaxed) > 0 && harnesses > 0);
    assert!(engine.is_none() || daemons.load(Ordering::Relaxed) > 0);
    check_verdicts(&lab, sandbox, 22 * each);

    let mut swept = command(&["clean"]);
    let swept = swept.output().unwrap();
    assert!(swept.status.success(), "{}", String::from_utf8_lossy(&swept.stderr));
    if let Some(engine) = engine {
        assert_eq!(engine.say(&["ps", "-aq"]), "", "containers");
        assert_eq!(engine.mounts(), Vec::<String>::new(), "mounts");
        assert_eq!(Some(engine.say(&["network", "ls", "-q"])), networks, "networks");
        assert_eq!(engine.say(&["volume", "ls", "-q", "--filter", "name=precious"]), "precious");
    }
    let place = lab.path("").display().to_string();
    assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(&place), "mounts");
    nothing_left(sandbox, &groups_before, || groups(engine, &pids));
    assert!(fs::read_dir(lab.path("scratch")).unwrap().next().is_none(), "workspaces were left");
}

/// Checks that every attempt has one verdict, and the right one.
fn check_verdicts(lab: &Lab, sandbox: &str, attempts: usize) {
    let (mut passes, mut lost) = (BTreeMap::new(), 0);
    for record in lab.records("r") {
        let end = record["end"].as_str().unwrap().to_owned();
        if ["sandbox_lost", "cancelled"].contains(&end.as_str()) {
            assert_eq!(record["pass"], false, "{record}");
            lost += 1;
            continue;
        }
        let key = (record["agent"].to_string(), record["sample"].to_string(), record["attempt"].as_u64().unwrap());
        assert!(passes.insert(key, record.clone()).is_none(), "{record} was made twice");
    }
    println!("{sandbox}: {} attempts with a verdict, {lost} lost on the way", passes.len());
    assert_eq!(passes.len(), attempts);
    for ((agent, sample, _), record) in &passes {
        assert_eq!(record["pass"] == true, agent.contains("gold"), "{agent} at {sample}: {record:#}");
    }
}

/// Returns a group's processes, each with its command and its parent's command.
fn processes(group: &Path) -> Vec<[String; 3]> {
    let command = |pid: &str| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
    let inside = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let describe = |pid: &str| {
        let parent = pid.parse().ok().and_then(parent).unwrap_or_default().to_string();
        [pid.to_owned(), command(pid), command(&parent)]
    };
    inside.lines().map(describe).collect()
}

/// Checks that no control group is left. The last containers' groups are removed with their monitors, a moment after
/// the containers.
fn nothing_left(sandbox: &str, before: &BTreeSet<PathBuf>, all: impl Fn() -> BTreeSet<PathBuf>) {
    let begun = Instant::now();
    let now = || all().difference(before).cloned().collect::<BTreeSet<_>>();
    let mut left = now();
    while !left.is_empty() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
        left = now();
    }
    let left: Vec<_> = left.iter().map(|group| (group, processes(group))).collect();
    assert!(left.is_empty(), "{left:#?}");
    println!("{sandbox}: no control group left after {:.1} s", begun.elapsed().as_secs_f64());
}

fn a_run_is_completed_although_containers_the_daemon_and_the_program_are_killed(kind: Kind) {
    let engine = Engine::start(kind);
    let usual = if kind == Kind::Docker { DOCKER } else { PODMAN };
    outlive(kind.name(), Some(&engine), each(usual), Duration::from_millis(900));
}

#[test]
#[ignore = "kills sandboxes and the program at random moments, which takes a minute"]
fn a_local_run_is_completed_although_sandboxes_and_the_program_are_killed() {
    outlive("local", None, each(LOCAL), Duration::from_millis(400));
}

fn a_sweep_and_a_prune_touch_nothing_that_is_not_labelled(kind: Kind) {
    let engine = Engine::start(kind);
    let image = format!("localhost/autoexperiment-stranger-{}", std::process::id());
    let archive = engine.path("stranger.tar");
    let made = Command::new("tar").args(["-c", "-C", "/etc", "hostname", "-f"]).arg(&archive).status().unwrap();
    assert!(made.success());
    engine.say(&["import", &archive.display().to_string(), &image]);
    let container = engine.say(&["create", "--name", "stranger", &image, "true"]);
    // This container has the program's label, but no label that names an ended process as its owner, so it must be
    // kept.
    let living = engine.say(&["create", "--label", "autoexperiment=1", &image, "true"]);
    let owner = format!("autoexperiment.owner={}", dead());
    let dead = engine.say(&["create", "--label", "autoexperiment=1", "--label", &owner, &image, "true"]);
    engine.say(&["volume", "create", "stranger"]);
    let name = engine.kind.name();
    for verb in [&["clean"][..], &["image", "prune", "--engine", name]] {
        let mut command = Command::new(crate::support::PROGRAM);
        command.args(verb).env(engine.kind.variable(), engine.address());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let containers = engine.say(&["ps", "-aq", "--no-trunc"]);
    let (kept, kept_too) = (containers.contains(&container), containers.contains(&living));
    let swept = !containers.contains(&dead);
    let others = (engine.say(&["image", "ls", "-q", &image]), engine.say(&["volume", "ls", "-q"]));
    assert!(kept && kept_too && swept, "{name}: {kept} {kept_too} {swept}");
    assert!(!others.0.is_empty() && others.1.contains("stranger"), "{name}: {others:?}");
}

/// Returns an owner label that names a process of this machine that has ended.
fn dead() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let machine = Some(read("/etc/machine-id")).filter(|id| !id.is_empty());
    let machine = machine.unwrap_or_else(|| nix::unistd::gethostname().unwrap().to_string_lossy().into_owned());
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    format!("{machine}/{}/{}/1/{}", read("/proc/sys/kernel/random/boot_id"), std::process::id(), namespace.display())
}
