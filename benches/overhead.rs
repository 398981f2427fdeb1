//! Measures the cost of the harness itself: `cargo bench --bench overhead`.
//!
//! Makes attempts of `react` with a scripted model at samples of k-means++, 32 at once, in local sandboxes, storing
//! trajectories, diffs and records. This is the real path of a run, without its baseline and without verification, so
//! that no Python runs. Each step is `echo`, and every observation is read back and compared. Bare spawns of the same
//! shell command are measured in alternation with the attempts, because the speed of a shared machine varies.
//!
//! Every measurement runs in its own process, so that the CPU time and memory of this process, and the CPU time of its
//! child processes, can be measured. Also measures what watching four computing sandboxes costs, and the times of
//! `autoexperiment list`, of a draw out of 10^12 combinations, and of a large repo's workspace.
//!
//! With `--short`, only compares attempts with bare spawns, and fails if the harness is slow. A program that is not
//! optimised, as `cargo test --bench overhead -- --short` builds it, has another limit. With `--readme`, writes
//! the figures into docs/performance.md.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that fails should stop")]

#[path = "support/figures.rs"]
mod figures;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoexperiment::agent::{self, End, Event, Limits, Trajectory};
use autoexperiment::env::{Env, Venv};
use autoexperiment::masked::ready::{ReadyPaper, task_experiments};
use autoexperiment::masked::{MaskedReplication, PaperItem, ReadyItem};
use autoexperiment::model::{self, Sampling};
use autoexperiment::run::attempt::{LabelledAgent, RunContext};
use autoexperiment::run::event::{Observer, RunEvent};
use autoexperiment::run::family::{Item, ScoringBasis, samples};
use autoexperiment::run::gpus::Graphics;
use autoexperiment::run::machine::Machine;
use autoexperiment::run::results::Results;
use autoexperiment::run::run_file::FORMAT;
use autoexperiment::run::scheduler::{RunOutcome, SchedulingLimits, execute, plan};
use autoexperiment::run::scratch::Scratch;
use autoexperiment::run::{AttemptRecord, Configuration, Digests, RunFile, SampleDraw, Store};
use autoexperiment::sample::{Nesting, UnitChoice, count, draw};
use autoexperiment::sandbox::{ExecLimits, SandboxKind, SandboxLimits, Spec, choose, patience};
use autoexperiment::score::Rule;
use autoexperiment::suite::{LoadedPaper, Protocol, Suite};
use autoexperiment::workspace::{LayersKind, Snapshot, Workspace};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Path of the program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_autoexperiment");
const ROUNDS: usize = 5;
/// `--short` fails if the rate of calls is less than this share of the rate of bare spawns.
const LEAST_RATIO: f64 = 0.8;
/// In a program that is not optimised, `--short` instead fails if the CPU time is more than this multiple of the bare
/// spawns' CPU time. Such a program cannot keep up with bare spawns, and its rate depends on what else runs on the
/// machine, but its CPU time hardly does.
const MOST_CPU_UNOPTIMISED: f64 = 4.0;
const AT_ONCE: usize = 32;
/// Argument that makes this program run one measurement and print it as JSON.
const PART: &str = "__measure";

/// Result of one measuring process.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    /// Seconds from the start of the sandboxes' backend, or of the first spawn, to the end of the last attempt or
    /// spawn.
    wall: f64,
    /// CPU seconds of this process in that time.
    own: f64,
    /// CPU seconds of its child processes in that time: guardians, inits, commands.
    children: f64,
    /// Largest resident set of this process, in MB of 10^6 bytes.
    peak: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let numbers: Vec<usize> = arguments.iter().skip(1).map_while(|number| number.parse().ok()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compare(false),
        ["--readme"] => compare(true),
        ["--short"] => return short(),
        [PART, ..] => println!("{}", serde_json::to_string(&measure(&numbers)).unwrap()),
        _ => panic!("usage: [--short | --readme]"),
    }
    ExitCode::SUCCESS
}

fn measure(numbers: &[usize]) -> Measured {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    match *numbers {
        [spawns] => runtime.block_on(bare(spawns)),
        [attempts, calls] => runtime.block_on(attempts_at(attempts, calls)),
        [sandboxes, seconds, _] => runtime.block_on(watched(sandboxes, seconds)),
        _ => panic!("no such measurement: {numbers:?}"),
    }
}

/// Measurements of attempts, and of bare spawns that ran just before them; one of each per round.
struct Comparison {
    bares: Vec<Measured>,
    attempts: Vec<Measured>,
}

/// Number of attempts, and of calls in each attempt. There are as many bare spawns as calls in all attempts together.
const ATTEMPTS: usize = 100;
const CALLS: usize = 20;
const SPAWNS: usize = ATTEMPTS * CALLS;

impl Comparison {
    /// Attempts' rate of calls as a share of the rate of bare spawns.
    fn ratio(&self) -> f64 {
        median(self.rounds().map(|(bare, attempts)| bare.wall / attempts.wall))
    }

    /// CPU time of the harness, its sandboxes and commands, as a multiple of that of bare spawns.
    fn cpu_ratio(&self) -> f64 {
        median(self.rounds().map(|(bare, attempts)| attempts.cpu() / bare.cpu()))
    }

    /// Largest memory of the harness, in MB.
    fn peak(&self) -> f64 {
        peak(&self.attempts)
    }

    fn rounds(&self) -> impl Iterator<Item = (&Measured, &Measured)> {
        self.bares.iter().zip(&self.attempts)
    }

    fn print(&self) {
        println!("medians of {} rounds, {AT_ONCE} at once", self.bares.len());
        println!("bare `sh -c 'echo hi'`:         {:8.0} /s", median(self.bares.iter().map(rate)));
        println!("{ATTEMPTS} attempts x {CALLS} calls:       {:8.0} /s", median(self.attempts.iter().map(rate)));
        let each: Vec<String> = self.rounds().map(|(bare, it)| format!("{:.2}", bare.wall / it.wall)).collect();
        println!("ratio, round by round:          {:8.2} (goal: at least 0.95; {})", self.ratio(), each.join(", "));
        println!("CPU time, of the bare spawns':  {:8.2} (goal: at most 1.25)", self.cpu_ratio());
        println!("peak memory of the harness:     {:8.1} MB (goal: at most 40)", self.peak());
    }
}

impl Measured {
    fn cpu(&self) -> f64 {
        self.own + self.children
    }
}

fn rate(measured: &Measured) -> f64 {
    SPAWNS as f64 / measured.wall
}

fn peak(all: &[Measured]) -> f64 {
    all.iter().map(|measured| measured.peak).fold(0.0, f64::max)
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned()
}

/// Compares attempts with bare spawns, and fails if they are much slower.
fn short() -> ExitCode {
    println!("load before: {}", load());
    let mut compared = Comparison { bares: Vec::new(), attempts: Vec::new() };
    for _ in 0..ROUNDS {
        compared.bares.push(part(&[SPAWNS]));
        compared.attempts.push(part(&[ATTEMPTS, CALLS]));
    }
    compared.print();
    println!("load after: {}", load());
    if cfg!(debug_assertions) {
        println!("not optimised: only the CPU time counts, which must be at most {MOST_CPU_UNOPTIMISED} times");
        if compared.cpu_ratio() > MOST_CPU_UNOPTIMISED {
            println!("FAILED: the harness takes more than {MOST_CPU_UNOPTIMISED} times the CPU time of bare spawns");
            return ExitCode::FAILURE;
        }
    } else if compared.ratio() < LEAST_RATIO {
        println!("FAILED: the harness makes less than {LEAST_RATIO} of the calls that bare spawns make");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs all measurements in alternation and prints the medians.
fn compare(is_written: bool) {
    let load_before = load();
    println!("load before: {load_before}");
    let mut compared = Comparison { bares: Vec::new(), attempts: Vec::new() };
    let (mut longs, mut empties) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        compared.bares.push(part(&[SPAWNS]));
        compared.attempts.push(part(&[ATTEMPTS, CALLS]));
        longs.push(part(&[10, 200]));
        empties.push(part(&[ATTEMPTS, 0]));
    }
    compared.print();
    let per = |all: &[Measured], what: fn(&Measured) -> f64, number: usize| {
        median(all.iter().map(|measured| 1e3 * what(measured) / number as f64))
    };
    let own: fn(&Measured) -> f64 = |measured| measured.own;
    let children: fn(&Measured) -> f64 = |measured| measured.children;
    let (bares, shorts) = (&compared.bares, &compared.attempts);
    let (short, long) = (per(shorts, own, SPAWNS), per(&longs, own, SPAWNS));
    let empty = per(&empties, own, ATTEMPTS);
    println!("own CPU a call, 100 x 20:       {short:8.3} ms (goal: at most 1)");
    println!("own CPU a call, 10 x 200:       {long:8.3} ms (goal: at most 1.1 times that)");
    println!("own CPU of an empty attempt:    {empty:8.3} ms");
    let (short_beyond, long_beyond) = (short - empty / 20.0, long - empty / 200.0);
    println!("own CPU a call beyond that:     {short_beyond:8.3} ms at 20, {long_beyond:.3} ms at 200");
    let all: fn(&Measured) -> f64 = Measured::cpu;
    let (bare, of_short, of_long) = (per(bares, all, SPAWNS), per(shorts, all, SPAWNS), per(&longs, all, SPAWNS));
    println!("all CPU a call: bare {bare:.3} ms, 100 x 20 {of_short:.3} ms, 10 x 200 {of_long:.3} ms");
    let sandbox = per(&empties, children, ATTEMPTS);
    println!(
        "others' CPU: bare spawn {:.3} ms, call {:.3} ms, sandbox start to end {sandbox:.3} ms",
        per(bares, children, SPAWNS),
        (per(shorts, children, SPAWNS) - sandbox / CALLS as f64),
    );
    println!("peak memory at 10 x 200:        {:8.1} MB", peak(&longs));
    let watching = part(&[4, 60, 0]);
    let share = 100.0 * watching.cpu() / watching.wall / 4.0;
    println!("watching a computing sandbox:   {share:8.2} % of a core (goal: at most 0.5)");
    let listing = list();
    let drawing = draws();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (ready, gone) = runtime.block_on(large_workspace());
    println!("load after: {}", load());
    if is_written {
        let rows = [
            (
                format!(
                    "commands per second in {ATTEMPTS} attempts of {CALLS} commands, {AT_ONCE} at once, against bare \
                     `sh -c`, measured alternately"
                ),
                format!(
                    "{:.0} against {:.0}: {:.2}",
                    median(shorts.iter().map(rate)),
                    median(bares.iter().map(rate)),
                    compared.ratio()
                ),
                "at least 0.95",
            ),
            (
                "CPU time of harness, sandboxes and commands, against bare `sh -c`".to_owned(),
                format!("{:.2} times", compared.cpu_ratio()),
                "at most 1.25",
            ),
            ("peak memory of the harness".to_owned(), format!("{:.0} MB", compared.peak()), "at most 40 MB"),
            (
                "the harness's own CPU time per command; in attempts of 200 commands".to_owned(),
                format!("{short:.2} ms; {long:.2} ms"),
                "at most 1 ms",
            ),
            (
                "CPU time of an attempt without commands: the harness; its sandbox".to_owned(),
                format!("{empty:.1} ms; {sandbox:.1} ms"),
                "",
            ),
            (
                "watching a sandbox that computes, of one core (4 sandboxes, a minute)".to_owned(),
                format!("{share:.2}%"),
                "at most 0.5%",
            ),
            ("`autoexperiment list`".to_owned(), format!("{listing:.0} ms"), "at most 50 ms"),
            ("100 samples at n = 5 out of 10^12".to_owned(), format!("{drawing:.2} ms"), "at most 10 ms"),
            (
                "workspace of 4,000 files, 130 MB, in a started sandbox; its end".to_owned(),
                format!("{ready:.1} ms; {gone:.1} ms"),
                "at most 10 ms",
            ),
        ];
        figures::write("overhead", &load_before, &rows);
    }
}

/// Runs one measurement in a process of its own.
fn part(numbers: &[usize]) -> Measured {
    let done = Command::new(std::env::current_exe().unwrap())
        .arg(PART)
        .args(numbers.iter().map(usize::to_string))
        // Cargo sets this variable. Bare spawns would inherit it, and search more folders for their libraries than
        // commands in sandboxes do.
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(done.status.success(), "the measurement {numbers:?} failed");
    serde_json::from_slice(&done.stdout).unwrap()
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns the CPU seconds of this process so far, and of its child processes that were waited for.
fn cpu() -> (f64, f64) {
    let [own, children] = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| {
        let usage = getrusage(who).unwrap();
        let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    });
    (own, children)
}

async fn timed(work: impl Future<Output = ()>) -> Measured {
    let (own, children) = cpu();
    let begun = Instant::now();
    work.await;
    let wall = begun.elapsed().as_secs_f64();
    let (own_then, children_then) = cpu();
    let peak = getrusage(UsageWho::RUSAGE_SELF).unwrap().max_rss() as f64 * 1024.0 / 1e6;
    Measured { wall, own: own_then - own, children: children_then - children, peak }
}

/// Spawns commands as fast as possible. They inherit the environment, because the standard library then uses
/// `posix_spawn`.
async fn bare(spawns: usize) -> Measured {
    timed(async {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..AT_ONCE {
            tasks.spawn(async move {
                for number in (task..spawns).step_by(AT_ONCE) {
                    let done = tokio::process::Command::new("sh")
                        .args(["-c", &format!("echo hi-{number}")])
                        .stdin(Stdio::null())
                        .output()
                        .await
                        .unwrap();
                    assert_eq!(done.stdout, format!("hi-{number}\n").as_bytes());
                }
            });
        }
        tasks.join_all().await;
    })
    .await
}

struct Silent;

impl Observer for Silent {
    fn on(&self, _: RunEvent) {}
}

/// Makes a run of `attempts` attempts, each with `calls` calls and an answer.
async fn attempts_at(attempts: usize, calls: usize) -> Measured {
    let base = tempfile::tempdir().unwrap();
    let cache = base.path().join("cache");
    let mut backend = None;
    let start_up = timed(async { backend = Some(choose(SandboxKind::Local).await.unwrap()) }).await;
    let machine = Machine {
        backend: backend.unwrap(),
        scratch: Scratch::create(&base.path().join("scratch")).unwrap(),
        envs: Arc::new(Venv::new()),
        offline: false,
        limits: SandboxLimits::default(),
        hidden: Vec::new(),
        results: Results::none(),
        graphics: Graphics::default(),
        cache: cache.clone(),
    };
    let loaded = LoadedPaper::load(&Suite::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap(), "kmeanspp").unwrap();
    let asked = SampleDraw {
        n: vec![3],
        fractions: Vec::new(),
        units: UnitChoice::default(),
        after: None,
        limit: attempts,
        samples: Vec::new(),
    };
    let item = Arc::new(PaperItem { loaded: Arc::new(loaded), basis: ScoringBasis::default() });
    let items: [Arc<dyn Item>; 1] = [item.clone()];
    let samples = samples(&MaskedReplication, &items, &asked, 0).unwrap();
    let loaded = &item.loaded;
    assert_eq!(samples.len(), attempts);
    let snapshot = Snapshot::take(&loaded.repo_dir, &cache, machine.backend.owner()).unwrap();
    let ready = ReadyPaper {
        shown: snapshot.clone(),
        snapshot,
        base: None,
        experiments: task_experiments(loaded, Protocol::Curtailed).unwrap(),
        env: Env {
            backend: "venv",
            digest: String::new(),
            python: String::new(),
            prefix: base.path().into(),
            read_only: Vec::new(),
            variables: BTreeMap::new(),
            hold: None,
        },
        loaded: loaded.clone(),
    };
    let configuration = Configuration {
        family: "masked".into(),
        suite: env!("CARGO_MANIFEST_DIR").into(),
        papers: vec!["kmeanspp".into()],
        draw: asked,
        k: 1,
        agents: vec!["react".parse().unwrap()],
        settings: agent::Settings::default(),
        model: None,
        sampling: Sampling::default(),
        limits: Limits { steps: calls as u32 + 5, ..Limits::default() },
        env: autoexperiment::env::EnvKind::Venv,
        sandbox: SandboxKind::Local,
        gpus: None,
        sandbox_limits: SandboxLimits::default(),
        protocol: Protocol::Curtailed,
        scoring: Rule::Strict,
        verify: false,
        jobs: AT_ONCE,
        tries: 1,
        max_cost: None,
        verifiers: Vec::new(),
        orders: 2,
        seed: 0,
        serving: None,
    };
    let run = RunFile {
        format: FORMAT,
        run: "r".into(),
        created: jiff::Timestamp::now(),
        command_line: Vec::new(),
        configuration: configuration.clone(),
        digests: Digests::default(),
        planned: Vec::new(),
        sharing: None,
        sessions: Vec::new(),
    };
    let store = Store::create(&base.path().join("runs/r"), &run).unwrap();
    store.make_folders("react").unwrap();
    let script = base.path().join("script");
    std::fs::write(&script, replies(calls)).unwrap();
    let context = Arc::new(RunContext {
        configuration,
        machine,
        items: vec![Box::new(ReadyItem::new(item, ready))],
        agents: vec![LabelledAgent {
            label: "react".into(),
            agent: "react".parse::<agent::AgentSpec>().unwrap().open(&agent::Settings::default(), None).unwrap(),
        }],
        model: Some(model::open(&format!("scripted:{}", script.display()), &model::ModelAccess::default()).unwrap()),
        store: store.clone(),
        ledger: Arc::new(store.ledger().unwrap()),
        verifications: None,
    });
    let (jobs, mut writer) = (plan(&samples, 1, 1), store.writer().unwrap());
    let measured = timed(async {
        let terms = SchedulingLimits { jobs: AT_ONCE, tries: 1, max_cost: None, spent: 0.0 };
        let keep = |records: &[&AttemptRecord]| tokio::task::block_in_place(|| writer.append(records.iter().copied()));
        let outcome = execute(context, jobs, terms, keep, &Silent, &CancellationToken::new()).await.unwrap();
        assert_eq!(outcome, RunOutcome::Complete);
    })
    .await;
    check(&store, attempts, calls);
    Measured {
        wall: start_up.wall + measured.wall,
        own: start_up.own + measured.own,
        children: start_up.children + measured.children,
        peak: measured.peak,
    }
}

/// Returns the model's replies: numbered calls, then the answer.
fn replies(calls: usize) -> String {
    let call = |number: usize| {
        json!({"text": format!("Step {number}: look around."),
            "tool_calls": [{"name": "command_line", "arguments": {"command": format!("echo hi-{number}")}}]})
    };
    let answer = json!({"text": "Done.",
        "tool_calls": [{"name": "final_answer", "arguments": {"answer": {"Experiment 1": {}}}}]});
    (0..calls).map(call).chain([answer]).fold(String::new(), |text, reply| text + &reply.to_string() + "\n")
}

/// Checks that every attempt is in the store and has answered, and that every call has run and was shown to the model.
fn check(store: &Store, attempts: usize, calls: usize) {
    let records = store.records().unwrap();
    assert_eq!(records.len(), attempts);
    for record in records {
        assert_eq!((record.end, record.steps), (End::Answered, calls as u32 + 1), "{record:?}");
        let lines = Trajectory::read(&store.trajectory("react", &record.sample, 0)).unwrap();
        let observations: Vec<String> = lines
            .into_iter()
            .filter_map(|line| match line.event {
                Event::Observation { content, .. } => Some(content),
                _ => None,
            })
            .collect();
        let expected: Vec<String> = (0..calls).map(|number| format!("exit code 0\nstdout:\nhi-{number}")).collect();
        assert_eq!(observations, expected);
    }
}

/// Runs `sandboxes` sandboxes whose commands compute for `seconds` seconds. Measures the CPU time of this process and
/// of the sandboxes' first processes, but not that of the commands.
async fn watched(sandboxes: usize, seconds: usize) -> Measured {
    let backend = choose(SandboxKind::Local).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let repo = place.path().join("repo");
    std::fs::create_dir(&repo).unwrap();
    let snapshot = Snapshot::take(&repo, &place.path().join("cache"), backend.owner()).unwrap();
    let script = format!("timeout {seconds} sh -c 'while :; do :; done'; echo over");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..sandboxes {
        let folder = place.path().join(number.to_string());
        let (kind, owner) = (backend.layers(), backend.owner());
        // Make a disk as for an attempt, so that the kernel enforces the disk limit if it can.
        let disk = backend.disk(SandboxLimits::default().disk, place.path());
        let workspace = Workspace::create_on(&snapshot, &[], &folder, kind, owner, disk.unwrap()).unwrap();
        let mut sandbox = backend.start(&spec(&workspace)).await.unwrap();
        let command = autoexperiment::sandbox::Command::shell(&script);
        let wall = Duration::from_secs(seconds as u64 + 60);
        let limits = ExecLimits { wall, patience: patience(wall), grace: Duration::from_secs(1), output: 1000 };
        tasks.spawn(async move {
            let done = sandbox.exec(&command, &limits).await.unwrap();
            assert_eq!(done.stdout, b"over\n");
            sandbox.destroy().await.unwrap();
            workspace.remove().unwrap();
        });
    }
    let begun = Instant::now();
    let (own, inits) = (cpu().0, of_inits());
    assert_eq!(inits.len(), sandboxes);
    tokio::time::sleep(Duration::from_secs(seconds as u64 - 1)).await;
    let wall = begun.elapsed().as_secs_f64();
    let (own, inits_then) = (cpu().0 - own, of_inits());
    let children = inits.iter().map(|(pid, before)| inits_then[pid] - before).sum();
    tasks.join_all().await;
    Measured { wall, own, children, peak: 0.0 }
}

/// Returns the CPU seconds of each sandbox's first process. It is a child of the sandbox's guardian, which is a child
/// of this process.
fn of_inits() -> BTreeMap<i32, f64> {
    let table = autoexperiment_init::processes::table();
    let own = std::process::id() as i32;
    let is_init = |pid: &i32| table.get(&table[pid].parent).is_some_and(|guardian| guardian.parent == own);
    let seconds = |pid: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    };
    table.keys().copied().filter(|pid| is_init(pid)).map(|pid| (pid, seconds(pid))).collect()
}

fn spec(workspace: &Workspace) -> Spec {
    Spec {
        layers: workspace.layers().clone(),
        read_only: Vec::new(),
        sealed: Vec::new(),
        hidden: Vec::new(),
        variables: BTreeMap::new(),
        limits: SandboxLimits::default(),
        gpu: None,
    }
}

/// Measures `autoexperiment list` on this project's own suite, in milliseconds.
fn list() -> f64 {
    let times = (0..21).map(|_| {
        let begun = Instant::now();
        let done = Command::new(PROGRAM).arg("list").current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(done.status.success());
        milliseconds(begun.elapsed())
    });
    let time = median(times);
    println!("`autoexperiment list`:          {time:8.2} ms (goal: at most 50)");
    time
}

/// Measures draws out of many combinations, in milliseconds.
fn draws() -> f64 {
    let functions = (5..1000).find(|&functions| count(functions, 5) >= Some(1_000_000_000_000)).unwrap();
    let nesting = Nesting::flat(functions);
    let times = (0..21).map(|seed| {
        let begun = Instant::now();
        assert_eq!(draw("paper", &nesting, 5, 100, seed).unwrap().len(), 100);
        milliseconds(begun.elapsed())
    });
    let time = median(times);
    println!("100 samples at n = 5 of 10^12:  {time:8.2} ms (goal: at most 10)");
    time
}

/// Measures, in milliseconds, how long it takes to make a workspace over a snapshot of 4,000 files and 130 MB and to
/// start a sandbox in it, and how long it takes to end both.
async fn large_workspace() -> (f64, f64) {
    const FILES: usize = 4_000;
    let place = tempfile::tempdir().unwrap();
    let repo = place.path().join("repo");
    for file in 0..FILES {
        let folder = repo.join((file % 100).to_string());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{file}.py")), vec![b'0' + (file % 10) as u8; 130_000_000 / FILES]).unwrap();
    }
    let backend = choose(SandboxKind::Local).await.unwrap();
    if backend.layers() != LayersKind::Overlay {
        println!("no overlay here: workspaces are full copies");
    }
    let snapshot = Snapshot::take(&repo, &place.path().join("cache"), backend.owner()).unwrap();
    let masked = [("0/0.py".into(), b"def f():\n    raise NotImplementedError\n".to_vec())];
    let (mut ready, mut gone) = (Vec::new(), Vec::new());
    for number in 0..21 {
        let begun = Instant::now();
        let folder = place.path().join(number.to_string());
        let workspace = Workspace::create(&snapshot, &masked, &folder, backend.layers(), backend.owner()).unwrap();
        let sandbox = backend.start(&spec(&workspace)).await.unwrap();
        ready.push(milliseconds(begun.elapsed()));
        let begun = Instant::now();
        sandbox.destroy().await.unwrap();
        workspace.remove().unwrap();
        gone.push(milliseconds(begun.elapsed()));
    }
    let (ready, gone) = (median(ready), median(gone));
    println!("workspace of 130 MB, 4,000 files, in a started sandbox: {ready:.2} ms (goal: at most 10)");
    println!("its end and removal:            {gone:8.2} ms");
    (ready, gone)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
