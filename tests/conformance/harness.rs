//! Kills the harness itself with `kill -9`: none of its sandboxes' processes may live on, and nothing may stay mounted.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use autoexperiment::sandbox::{Backend, ConfinementMode, ContainerBackend, EngineKind, Fault, LocalBackend};

use super::fixture::{Fixture, limits};
use super::runner::survivors;

/// Runs a harness that starts three sandboxes, each with a daemon and a running command, and then waits to be killed.
pub fn doomed(mode: &str, marker: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = |engine_kind| async move { ContainerBackend::open(engine_kind, None).await.ok().unwrap() };
        let backend: Box<dyn Backend> = match mode {
            "landlock" => Box::new(LocalBackend::with_mode(ConfinementMode::Landlock)),
            "docker" => Box::new(engine(EngineKind::Docker).await),
            "podman" => Box::new(engine(EngineKind::Podman).await),
            _ => Box::new(LocalBackend::with_mode(ConfinementMode::Overlay)),
        };
        let mut fixture = Fixture::new(&*backend, marker.to_owned(), std::env::current_exe().unwrap());
        println!("{}", fixture.host.path().display());
        let mut sandboxes = Vec::new();
        for _ in 0..3 {
            let mut inside = fixture.start().await.unwrap();
            inside.hostile(&["daemon", marker], limits(5.0)).await.unwrap();
            // Start chains of processes: each process starts the next one and exits.
            let link = "perl -e 'while (1) { fork and exit }'";
            let chains = format!("for i in 1 2 3; do setsid {link} {marker} > /dev/null 2>&1 & done");
            inside.sh(&chains).await.unwrap();
            sandboxes.push(inside);
        }
        println!("ready");
        let command = autoexperiment::sandbox::Command::shell("trap '' TERM; sleep 1000; sleep 1000");
        sandboxes[0].exec(command, limits(1000.0)).await.unwrap();
    });
    ExitCode::FAILURE
}

/// Kills a harness in each mode and engine that works here. Returns the failures.
pub fn run(words: &[&str], modes: &[ConfinementMode], engines: &[EngineKind]) -> Vec<String> {
    const NAME: &str = "killing_the_harness_leaves_nothing";
    if !words.iter().all(|word| NAME.contains(word)) {
        return Vec::new();
    }
    let mut failures = Vec::new();
    let modes = modes.iter().filter_map(|mode| match mode {
        ConfinementMode::Overlay => Some("overlay"),
        ConfinementMode::Namespaces => None,
        ConfinementMode::Landlock => Some("landlock"),
    });
    for mode in modes.chain(engines.iter().map(|engine| engine.name())) {
        match kill(mode) {
            Ok(()) => println!("{NAME}: {mode}: passed"),
            Err(error) => {
                println!("  FAILED: {NAME}: {mode}: {error}");
                failures.push(format!("{NAME}: {mode}"));
            }
        }
    }
    failures
}

/// Runs a harness in a control group of its own. Its sandbox works at first; then the group gets a limit that allows no
/// new process.
pub fn starved(folder: &str) -> ExitCode {
    let folder = Path::new(folder);
    fs::write(folder.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let backend = LocalBackend::with_mode(ConfinementMode::Overlay);
        let mut fixture = Fixture::new(&backend, "starved".into(), std::env::current_exe().unwrap());
        let mut inside = fixture.start().await.unwrap();
        inside.works().await.unwrap();
        fs::write(folder.join("pids.max"), "1").unwrap();
        let echo = autoexperiment::sandbox::Command::shell("echo fine");
        let fault = inside.sandbox.exec(&echo, &limits(10.0)).await.unwrap_err();
        // A fresh sandbox cannot start a process either, which shows that the attempt did not cause the failure.
        let evidence = backend.examine(&std::env::temp_dir()).await;
        fs::write(folder.join("pids.max"), "max").unwrap();
        match (fault, evidence) {
            (Fault::Lost(loss), Some(evidence)) => println!("lost: {loss}: {evidence}"),
            (other, _) => println!("charged: {other}"),
        }
        let evidence = backend.examine(&std::env::temp_dir()).await;
        assert!(evidence.is_none(), "{evidence:?}");
    });
    ExitCode::SUCCESS
}

/// Checks that the loss of a sandbox counts as the machine's fault if it was caused by a limit on processes that was
/// set outside of the sandbox. Returns the failures.
pub fn starve(words: &[&str], modes: &[ConfinementMode]) -> Vec<String> {
    const NAME: &str = "a_limit_of_processes_from_outside_is_not_the_attempt_s";
    let folder = Path::new("/sys/fs/cgroup/pids").join(format!("conformance.{}", std::process::id()));
    if !words.iter().all(|word| NAME.contains(word)) || !modes.contains(&ConfinementMode::Overlay) {
        return Vec::new();
    }
    if fs::create_dir(&folder).is_err() {
        println!("skipped: {NAME}: no writable pids cgroup of version 1");
        return Vec::new();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["starved-harness", folder.to_str().unwrap()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for _ in 0..100 {
        if fs::remove_dir(&folder).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    if said.contains("lost: ") && said.contains("pids.max") {
        println!("{NAME}: passed");
        return Vec::new();
    }
    println!("  FAILED: {NAME}: {said} {}", String::from_utf8_lossy(&output.stderr));
    vec![NAME.to_owned()]
}

fn kill(mode: &str) -> Result<(), String> {
    let marker = format!("marker-doomed-{mode}-{}", std::process::id());
    let mounts = mounts();
    let mut harness = Command::new(std::env::current_exe().unwrap())
        .args(["doomed-harness", mode, &marker])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(harness.stdout.take().unwrap()).lines();
    let (host, ready) = (lines.next(), lines.next());
    std::thread::sleep(std::time::Duration::from_millis(200));
    let before = survivors(&marker).len();
    // Keep every processor busy meanwhile.
    let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let mut crowd: Vec<_> = (0..8).map(|_| busy()).collect();
    harness.kill().unwrap();
    harness.wait().unwrap();
    // A living chain may be missed, because its current process may start and end while the process table is read. So
    // no process may be found in ten searches in a row.
    let begun = std::time::Instant::now();
    let mut left = Vec::new();
    let mut without = 0;
    while without < 10 && begun.elapsed() < std::time::Duration::from_secs(30) {
        left = survivors(&marker);
        without = if left.is_empty() { without + 1 } else { 0 };
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    if without < 10 && left.is_empty() {
        left.push("a chain".into());
    }
    for child in &mut crowd {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    if let Some(Ok(host)) = host {
        let _ = fs::remove_dir_all(host);
    }
    if !ready.is_some_and(|line| line.is_ok_and(|line| line == "ready")) {
        return Err("the harness did not get ready".into());
    }
    if before < 4 {
        return Err(format!("only {before} processes before"));
    }
    if !left.is_empty() {
        return Err(format!("survivors: {left:?}"));
    }
    // An engine needs a moment to clean up after a container that has ended.
    let begun = std::time::Instant::now();
    loop {
        let left: Vec<String> = self::mounts().difference(&mounts).cloned().collect();
        if left.is_empty() {
            break;
        }
        if begun.elapsed() > std::time::Duration::from_secs(30) {
            return Err(format!("mounts were left behind: {left:#?}"));
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // The next harness removes the dead one's control groups, once the kernel has released their last process.
    let begun = std::time::Instant::now();
    let groups = loop {
        drop(LocalBackend::with_mode(ConfinementMode::Overlay));
        let groups = control_groups(&format!("autoexperiment.{}.", harness.id()));
        if groups.is_empty() || begun.elapsed() > std::time::Duration::from_secs(10) {
            break groups;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    if !groups.is_empty() {
        return Err(format!("control groups were left behind: {groups:?}"));
    }
    Ok(())
}

/// Returns the lines of the mount table. Callers only look for new lines, because mounts of an engine may vanish at any
/// time.
fn mounts() -> BTreeSet<String> {
    fs::read_to_string("/proc/mounts").unwrap().lines().map(str::to_owned).collect()
}

fn control_groups(prefix: &str) -> Vec<std::path::PathBuf> {
    let entries = walkdir::WalkDir::new("/sys/fs/cgroup").into_iter().filter_entry(|entry| entry.file_type().is_dir());
    let named = |entry: &walkdir::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    entries.flatten().filter(named).map(walkdir::DirEntry::into_path).collect()
}
