//! Measures the cost of the harness itself: `cargo bench --bench overhead`.
//!
//! Makes attempts of `react` with a scripted model at samples of k-means++, 32 at once, in local sandboxes, storing
//! trajectories, diffs and records. This is the real path of a run, without its baseline and without verification, so
//! that no Python runs. Each step is `echo`, and every observation is read back and compared. In the same run, bare
//! spawns of the same shell command alternate with it, because the speed of a shared machine varies.
//!
//! Every measurement runs in a process of its own, whose own CPU time and memory are measured. Afterwards, measures the
//! times of `autoexperiment list`, of a draw out of 10^12 combinations, and of a large repo's workspace.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that fails should stop")]

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
use autoexperiment::sandbox::{SandboxKind, SandboxLimits, Spec, choose};
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
const AT_ONCE: usize = 32;
/// Argument that makes this program run one measurement and print it as JSON.
const PART: &str = "__measure";

/// Result of one measuring process.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    /// Seconds from the start of the first attempt or spawn to the end of the last.
    wall: f64,
    /// CPU seconds of this process in that time.
    own: f64,
    /// CPU seconds of its child processes in that time: guardians, inits, commands.
    children: f64,
    /// Largest resident set of this process, in MB of 10^6 bytes.
    peak: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_none_or(|first| first != PART) {
        compare();
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let measured = match &arguments[2..] {
        [spawns] => runtime.block_on(bare(spawns.parse().unwrap())),
        [attempts, calls] => runtime.block_on(attempts_at(attempts.parse().unwrap(), calls.parse().unwrap())),
        other => panic!("no such measurement: {other:?}"),
    };
    println!("{}", serde_json::to_string(&measured).unwrap());
    ExitCode::SUCCESS
}

/// Runs all measurements in alternation and prints the medians.
fn compare() {
    let load = || std::fs::read_to_string("/proc/loadavg").unwrap().trim().to_owned();
    println!("load before: {}", load());
    let (mut bares, mut shorts, mut longs, mut empties) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bares.push(part(&[2000]));
        shorts.push(part(&[100, 20]));
        longs.push(part(&[10, 200]));
        empties.push(part(&[100, 0]));
    }
    let rate = |measured: &Measured| 2000.0 / measured.wall;
    println!("medians of {ROUNDS} rounds, {AT_ONCE} at once");
    println!("bare `sh -c 'echo hi'`:         {:8.0} /s", median(bares.iter().map(rate)));
    println!("100 samples x 20 calls:         {:8.0} /s", median(shorts.iter().map(rate)));
    let ratios = bares.iter().zip(&shorts).map(|(bare, short)| rate(short) / rate(bare));
    println!("ratio, round by round:          {:8.2} (goal: at least 0.8)", median(ratios));
    let per = |all: &[Measured], what: fn(&Measured) -> f64, number: f64| {
        median(all.iter().map(|measured| 1e3 * what(measured) / number))
    };
    let own: fn(&Measured) -> f64 = |measured| measured.own;
    let children: fn(&Measured) -> f64 = |measured| measured.children;
    let (short, long) = (per(&shorts, own, 2000.0), per(&longs, own, 2000.0));
    let empty = per(&empties, own, 100.0);
    println!("own CPU a call, 100 x 20:       {short:8.3} ms (goal: at most 1)");
    println!("own CPU a call, 10 x 200:       {long:8.3} ms (goal: at most 1.1 times that)");
    println!("own CPU of an empty attempt:    {empty:8.3} ms");
    let (short, long) = (short - empty / 20.0, long - empty / 200.0);
    println!("own CPU a call beyond that:     {short:8.3} ms at 20, {long:.3} ms at 200");
    let all: fn(&Measured) -> f64 = |measured| measured.own + measured.children;
    let (bare, short, long) = (per(&bares, all, 2000.0), per(&shorts, all, 2000.0), per(&longs, all, 2000.0));
    println!("all CPU a call: bare {bare:.3} ms, 100 x 20 {short:.3} ms, 10 x 200 {long:.3} ms");
    println!("rate that this allows, of bare: {:8.2} at 20, {:.2} at 200", bare / short, bare / long);
    println!(
        "others' CPU: bare spawn {:.3} ms, call {:.3} ms, sandbox start to end {:.3} ms",
        per(&bares, children, 2000.0),
        (per(&shorts, children, 2000.0) - per(&empties, children, 2000.0)),
        per(&empties, children, 100.0),
    );
    let peak = |all: &[Measured]| all.iter().map(|measured| measured.peak).fold(0.0, f64::max);
    println!("peak memory of the harness:     {:8.1} MB at 20, {:.1} MB at 200", peak(&shorts), peak(&longs));
    println!("load after: {}", load());
    list();
    draws();
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(large_workspace());
}

/// Runs one measurement in a process of its own.
fn part(numbers: &[usize]) -> Measured {
    let done = Command::new(std::env::current_exe().unwrap())
        .arg(PART)
        .args(numbers.iter().map(usize::to_string))
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

/// Spawns commands as fast as possible: with an inherited environment, the standard library uses `posix_spawn`.
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
    let machine = Machine {
        backend: choose(SandboxKind::Local).await.unwrap(),
        scratch: Scratch::create(&base.path().join("scratch")).unwrap(),
        envs: Arc::new(Venv::new()),
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
        limit: attempts,
        samples: Vec::new(),
    };
    let item = Arc::new(PaperItem { loaded: Arc::new(loaded), basis: ScoringBasis::default() });
    let items: [Arc<dyn Item>; 1] = [item.clone()];
    let samples = samples(&MaskedReplication, &items, &asked, 0).unwrap();
    let loaded = &item.loaded;
    assert_eq!(samples.len(), attempts);
    let ready = ReadyPaper {
        snapshot: Snapshot::take(&loaded.repo_dir, &cache, machine.backend.owner()).unwrap(),
        base: None,
        experiments: task_experiments(loaded, Protocol::Curtailed).unwrap(),
        env: Env {
            backend: "venv",
            digest: String::new(),
            python: String::new(),
            prefix: base.path().into(),
            read_only: Vec::new(),
            variables: BTreeMap::new(),
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
    measured
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

/// Measures `autoexperiment list` on this project's own suite.
fn list() {
    let times = (0..21).map(|_| {
        let begun = Instant::now();
        let done = Command::new(PROGRAM).arg("list").current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(done.status.success());
        milliseconds(begun.elapsed())
    });
    println!("`autoexperiment list`:          {:8.2} ms (goal: at most 50)", median(times));
}

fn draws() {
    let functions = (5..1000).find(|&functions| count(functions, 5) >= Some(1_000_000_000_000)).unwrap();
    let nesting = Nesting::flat(functions);
    let times = (0..21).map(|seed| {
        let begun = Instant::now();
        assert_eq!(draw("paper", &nesting, 5, 100, seed).unwrap().len(), 100);
        milliseconds(begun.elapsed())
    });
    println!("100 samples at n = 5 of 10^12:  {:8.2} ms (goal: at most 10)", median(times));
}

/// Measures the time from nothing to a sandbox that has replied, over a repo of 4,000 files and 130 MB.
async fn large_workspace() {
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
        let spec = Spec {
            layers: workspace.layers().clone(),
            read_only: Vec::new(),
            sealed: Vec::new(),
            hidden: Vec::new(),
            variables: BTreeMap::new(),
            limits: SandboxLimits::default(),
            gpu: None,
        };
        let sandbox = backend.start(&spec).await.unwrap();
        ready.push(milliseconds(begun.elapsed()));
        let begun = Instant::now();
        sandbox.destroy().await.unwrap();
        workspace.remove().unwrap();
        gone.push(milliseconds(begun.elapsed()));
    }
    println!("workspace of 130 MB, 4,000 files, in a started sandbox: {:.2} ms (goal: at most 10)", median(ready));
    println!("its end and removal:            {:8.2} ms", median(gone));
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
