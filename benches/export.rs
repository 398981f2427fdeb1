//! Measures the time and memory for exporting the log of a large run: 1,000 attempts of 50 steps.
//!
//! `cargo bench --bench export`
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

#[path = "support/stores.rs"]
mod stores;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use autoexperiment::agent::End;
use autoexperiment::export::{ExportSource, inspect};
use autoexperiment::masked::MaskedReplication;
use autoexperiment::run::AttemptRecord;
use autoexperiment::run::family::{Families, Family};
use nix::sys::resource::{UsageWho, getrusage};
use stores::{Random, run_file, trajectory};

const ATTEMPTS: usize = 1000;
const STEPS: u32 = 50;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("big");
    write_store(&store);
    let size = std::fs::metadata(store.join("attempts.jsonl")).unwrap().len();
    let before = peak();
    let (begun, cpu) = (Instant::now(), processor());
    let source = ExportSource::open(&store, &Families::standard()).unwrap();
    let written = inspect::export(&source, &folder.path().join("big.eval")).unwrap();
    let (took, cpu) = (begun.elapsed().as_secs_f64(), processor() - cpu);
    let log = std::fs::metadata(&written[0]).unwrap().len();
    println!(
        "{ATTEMPTS} attempts of {STEPS} steps: {took:.1} s, {cpu:.1} s of CPU, peak memory {} MB (before: {before} MB)",
        peak()
    );
    println!("attempts.jsonl {} kB, log {} MB", size >> 10, log >> 20);
}

/// Returns the user and system CPU time of this process, in seconds.
fn processor() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    [usage.user_time(), usage.system_time()].iter().map(|it| it.tv_sec() as f64 + it.tv_usec() as f64 / 1e6).sum()
}

/// Returns the peak memory of this process, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

fn write_store(folder: &Path) {
    let trajectories = folder.join("trajectories/react");
    std::fs::create_dir_all(&trajectories).unwrap();
    let run = run_file(".", &["tiny".to_owned()], &[1], 5, &["react".to_owned()], &[]);
    std::fs::write(folder.join("run.json"), run.to_string()).unwrap();
    let mut random = Random(1);
    let mut records = String::new();
    for number in 0..ATTEMPTS {
        let sample = MaskedReplication.sample(&format!("tiny_{}", number / 5)).unwrap();
        let attempt = (number % 5) as u32;
        let record = AttemptRecord {
            model: Some("openai:any".into()),
            end: End::StepLimit,
            steps: STEPS,
            ..AttemptRecord::blank("react", &sample, attempt)
        };
        writeln!(records, "{}", serde_json::to_string(&record).unwrap()).unwrap();
        let path = trajectories.join(format!("{}.{attempt}.jsonl", sample.id()));
        std::fs::write(path, trajectory(&mut random, STEPS)).unwrap();
    }
    std::fs::write(folder.join("attempts.jsonl"), records).unwrap();
}
