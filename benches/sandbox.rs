//! Measures the cost of a sandbox: its start, a command in it compared with a bare spawn, and 32 at once.
//! `cargo bench --bench sandbox`.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails should stop")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use autoexperiment::sandbox::{Backend, Command, ExecLimits, LocalBackend, Sandbox, SandboxLimits, Spec};
use autoexperiment::workspace::{Layers, LayersKind};

const STARTS: usize = 60;
const COMMANDS: usize = 400;
const AT_ONCE: usize = 32;
const LIMITS: ExecLimits = ExecLimits {
    wall: Duration::from_secs(20),
    patience: Duration::ZERO,
    grace: Duration::from_secs(1),
    output: 64 * 1024,
};

fn main() -> std::process::ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
    std::process::ExitCode::SUCCESS
}

fn spec(backend: &dyn Backend, base: &Path, number: usize) -> Spec {
    let folder = |name: &str| -> PathBuf {
        let path = base.join(format!("{number}/{name}"));
        std::fs::create_dir_all(&path).unwrap();
        if let Some((uid, gid)) = backend.owner() {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
        }
        path
    };
    let layers = match backend.layers() {
        LayersKind::Overlay => {
            Layers::Overlay { lower: folder("lower"), upper: folder("upper"), work: folder("work"), disk: None }
        }
        LayersKind::Copy | LayersKind::Image => Layers::Copy { dir: folder("copy") },
    };
    Spec {
        layers,
        read_only: Vec::new(),
        sealed: Vec::new(),
        hidden: Vec::new(),
        variables: BTreeMap::new(),
        limits: SandboxLimits::default(),
        gpu: None,
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Runs a command in the fastest possible way: with an inherited environment, the standard library uses posix_spawn.
async fn bare() {
    let done = tokio::process::Command::new("sh")
        .args(["-c", "echo hi"])
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .unwrap();
    assert_eq!(done.stdout, b"hi\n");
}

async fn inside(sandbox: &mut dyn Sandbox) {
    let done = sandbox.exec(&Command::shell("echo hi"), &LIMITS).await.unwrap();
    assert_eq!(done.stdout, b"hi\n");
}

/// Returns this process's resident memory in MB, current and peak.
fn memory() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1e3
    };
    (field("VmRSS"), field("VmHWM"))
}

async fn measure() {
    let backend = LocalBackend::probe().await.unwrap();
    println!("mode {:?}, cgroups and all: {:?}", backend.mode(), backend.warnings());
    let base = tempfile::tempdir().unwrap();

    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for number in 0..STARTS {
        let spec = spec(&backend, base.path(), number);
        let begun = Instant::now();
        let sandbox = backend.start(&spec).await.unwrap();
        starts.push(begun.elapsed());
        let begun = Instant::now();
        sandbox.destroy().await.unwrap();
        ends.push(begun.elapsed());
    }
    println!("start {:.2} ms, destroy {:.2} ms (medians of {STARTS})", median(starts), median(ends));

    let mut sandbox = backend.start(&spec(&backend, base.path(), 1000)).await.unwrap();
    let (mut bares, mut insides) = (Vec::new(), Vec::new());
    for _ in 0..COMMANDS {
        let begun = Instant::now();
        bare().await;
        bares.push(begun.elapsed());
        let begun = Instant::now();
        inside(&mut *sandbox).await;
        insides.push(begun.elapsed());
    }
    let (bare_median, inside_median) = (median(bares), median(insides));
    println!("`sh -c 'echo hi'`: bare {bare_median:.2} ms, in a sandbox {inside_median:.2} ms (medians of {COMMANDS})");
    sandbox.destroy().await.unwrap();

    let mut sandboxes = Vec::new();
    for number in 0..AT_ONCE {
        sandboxes.push(backend.start(&spec(&backend, base.path(), 2000 + number)).await.unwrap());
    }
    // Run bare spawns and commands in sandboxes in alternation, because the speed of a shared machine varies.
    let (mut bare_rates, mut inside_rates) = (Vec::new(), Vec::new());
    let each = COMMANDS / 8;
    for _ in 0..5 {
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE {
            tasks.spawn(async move {
                for _ in 0..each {
                    bare().await;
                }
            });
        }
        tasks.join_all().await;
        bare_rates.push((AT_ONCE * each) as f64 / begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for mut sandbox in sandboxes.drain(..) {
            tasks.spawn(async move {
                for _ in 0..each {
                    inside(&mut *sandbox).await;
                }
                sandbox
            });
        }
        sandboxes = tasks.join_all().await;
        inside_rates.push((AT_ONCE * each) as f64 / begun.elapsed().as_secs_f64());
    }
    bare_rates.sort_by(f64::total_cmp);
    inside_rates.sort_by(f64::total_cmp);
    let (bare_rate, inside_rate) = (bare_rates[2], inside_rates[2]);
    let ratio = inside_rate / bare_rate;
    println!("{AT_ONCE} at once: bare {bare_rate:.0}/s, in sandboxes {inside_rate:.0}/s, ratio {ratio:.2}");
    let (now, peak) = memory();
    println!("harness memory with {AT_ONCE} sandboxes: {now:.1} MB, at its peak {peak:.1} MB");
    for sandbox in sandboxes {
        sandbox.destroy().await.unwrap();
    }
}
