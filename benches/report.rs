//! Measures the commands that examine runs: tables over 100,000 attempts, comparisons, pages for a browser.
//!
//! `cargo bench --bench report` (`-- --large` adds a store of 2 GB, whose attempts are as long as those of the bundled
//! suite). Each line is one process of the program, from its start to its end: the best of three runs, with CPU time
//! and peak memory.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

#[path = "support/stores.rs"]
mod stores;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use autoexperiment::sample::{MASKED, UnitChoice, Withheld, draw};
use autoexperiment::suite::{LoadedPaper, Suite};
use autoexperiment::workspace::unified_diff;
use stores::{Random, Shape, run_file, trajectory};

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    println!("| what | wall, s | user and system CPU, s | peak memory, MB | written, MB |\n|---|---|---|---|---|");

    // An attempt of this shape takes about 4 kB in the store.
    let many = Shape { agents: 2, papers: 10, ns: 5, samples: 200, k: 5, values: 8 };
    many.write(&at("many"));
    // Wait until the files are older than two seconds: to see whether newer files have changed, the program compares
    // checksums instead of change times, which takes longer.
    std::thread::sleep(std::time::Duration::from_secs(3));
    measure_first("`status`, 100,000 attempts, 0.4 GB, for the first time", &at("many"), &["status", "many"]);
    measure("the same, again", &at("many"), &["status", "many"], &[]);
    measure("`report --json`, the same attempts", &at("many"), &["report", "many", "--json"], &[]);
    let papers = &["report", "many", "--json", "--intervals", "papers"];
    measure("the same, intervals over papers", &at("many"), papers, &[]);
    measure("`compare --by-n`, the same attempts", &at("many"), &["compare", "many", "--by-n"], &[]);
    std::fs::remove_dir_all(at("many")).unwrap();
    if std::env::args().any(|argument| argument == "--large") {
        let long = Shape { values: 48, ..many };
        long.write(&at("long"));
        measure("`report --json`, 100,000 attempts, 2.1 GB", &at("long"), &["report", "long", "--json"], &[]);
        std::fs::remove_dir_all(at("long")).unwrap();
    }
    for samples in [100, 1000] {
        let each = Shape { agents: 2, papers: 5, ns: 2, samples: samples / 10, k: 5, values: 80 };
        let name = format!("compared-{samples}");
        each.write(&at(&name));
        let what = format!("`compare`, {samples} samples x 5, 10,000 replicates");
        measure(&what, &at(&name), &["compare", &name], &[]);
    }
    for samples in [100, 1000] {
        let name = format!("page-{samples}");
        write_whole(&at(&name), samples);
        let written = [at("page.html"), at("page.data")];
        let what = format!("`report --html`, {samples} samples x 5, 30 steps each");
        measure(&what, &at(&name), &["report", &name, "--html", "page.html"], &written);
    }
}

/// Same as [`measure`], but each time without the cached outcomes that an earlier command saved beside the records.
fn measure_first(what: &str, run: &Path, arguments: &[&str]) {
    let first = || {
        let _ = std::fs::remove_file(run.join("outcomes.cache"));
        once(run.parent().unwrap(), arguments)
    };
    print_fastest(what, std::iter::repeat_with(first).take(3), &[]);
}

/// Runs the program in the folder above the run's, three times, and prints the figures of the fastest.
fn measure(what: &str, run: &Path, arguments: &[&str], written: &[std::path::PathBuf]) {
    print_fastest(what, (0..3).map(|_| once(run.parent().unwrap(), arguments)), written);
}

fn print_fastest(what: &str, times: impl Iterator<Item = Took>, written: &[std::path::PathBuf]) {
    let best = times.min_by(|a, b| a.wall.total_cmp(&b.wall)).unwrap();
    let size: u64 = written.iter().map(|path| size(path)).sum();
    println!("| {what} | {:.2} | {:.2} | {} | {:.1} |", best.wall, best.cpu, best.peak >> 10, size as f64 / 1e6);
}

struct Took {
    wall: f64,
    cpu: f64,
    /// Peak memory in kB.
    peak: i64,
}

fn once(folder: &Path, arguments: &[&str]) -> Took {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autoexperiment"));
    command.args(arguments).arg("--runs").arg(folder).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    #[expect(clippy::zombie_processes, reason = "it is waited for below, by the call that tells what it took")]
    let child = command.spawn().unwrap();
    // SAFETY: both are plain numbers, for which zero is valid.
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<nix::libc::rusage>() });
    // SAFETY: the child belongs to this process and is only waited for here; both pointers are to live locals.
    let ended = unsafe { nix::libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage) };
    let wall = begun.elapsed().as_secs_f64();
    assert!(ended > 0 && status == 0, "{arguments:?}: {status}");
    let seconds = |time: nix::libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Took { wall, cpu: seconds(usage.ru_utime) + seconds(usage.ru_stime), peak: usage.ru_maxrss }
}

/// Returns the bytes of a file or of a folder's files.
fn size(path: &Path) -> u64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| size(&entry.unwrap().path())).sum(),
        Err(_) => path.metadata().map_or(0, |facts| facts.len()),
    }
}

/// Writes a run of the bundled suite's own samples with trajectories and diffs. Every second attempt restores the
/// original code.
fn write_whole(folder: &Path, samples: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let suite = Suite::open(root).unwrap();
    let ids = suite.ids().unwrap();
    let made = Shape { agents: 1, papers: 1, ns: 1, samples: 1, k: 5, values: 80 };
    let mut random = Random(2);
    let mut lines = Vec::new();
    for part in ["trajectories", "diffs"] {
        std::fs::create_dir_all(folder.join(part).join("react")).unwrap();
    }
    let each = samples.div_ceil(ids.len() * 2);
    let mut left = samples;
    for id in &ids {
        let paper = LoadedPaper::load(&suite, id).unwrap();
        let (_, nesting) = paper.drawn(UnitChoice::default(), |_| true);
        for n in [2, 3] {
            for functions in draw(id, &nesting, n, each.min(left), 0).unwrap() {
                left -= 1;
                let diff = restored(&suite, &paper, &functions);
                let sample = Withheld { item: id.clone(), units: functions }.sample(MASKED, id);
                for attempt in 0..5 {
                    let record = made.record("react", &sample, attempt, 0.5, &mut random);
                    serde_json::to_writer(&mut lines, &record).unwrap();
                    lines.push(b'\n');
                    let file = format!("{}.{attempt}", sample.id());
                    let events = folder.join("trajectories/react").join(format!("{file}.jsonl"));
                    std::fs::write(events, trajectory(&mut random, 30)).unwrap();
                    let patch = if attempt % 2 == 0 { diff.as_slice() } else { b"" };
                    std::fs::write(folder.join("diffs/react").join(format!("{file}.patch")), patch).unwrap();
                }
            }
        }
    }
    assert_eq!(left, 0, "the suite has too few samples");
    std::fs::write(folder.join("attempts.jsonl"), lines).unwrap();
    let run = run_file(&root.display().to_string(), &ids, &[2, 3], 5, &["react".to_owned()], &[]);
    std::fs::write(folder.join("run.json"), run.to_string()).unwrap();
}

/// Returns the diff of an agent that writes the original functions.
fn restored(suite: &Suite, paper: &LoadedPaper, functions: &[usize]) -> Vec<u8> {
    let masked = paper.masked(functions).unwrap();
    let whole = |path: &Path| std::fs::read(suite.repo_dir(&paper.paper.repo).join(path)).unwrap();
    masked.iter().flat_map(|file| unified_diff(&file.path.to_string_lossy(), &file.bytes, &whole(&file.path))).collect()
}
