//! How long the log of a large run takes: 1,000 attempts of 50 steps, and what memory it needs.
//!
//! `cargo bench --bench export`
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use autoexperiment::agent::{End, Event, Line};
use autoexperiment::export::{Source, inspect};
use autoexperiment::model::{Role, ToolCall, Usage};
use autoexperiment::run::AttemptRecord;
use autoexperiment::sample::Sample;
use serde_json::json;

const ATTEMPTS: usize = 1000;
const STEPS: u32 = 50;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("big");
    write_store(&store);
    let size = std::fs::metadata(store.join("attempts.jsonl")).unwrap().len();
    let before = peak();
    let begun = Instant::now();
    let source = Source::open(&store).unwrap();
    let written = inspect::export(&source, &folder.path().join("big.eval")).unwrap();
    let took = begun.elapsed().as_secs_f64();
    let log = std::fs::metadata(&written[0]).unwrap().len();
    println!("{ATTEMPTS} attempts of {STEPS} steps: {took:.1} s, peak memory {} MB (before: {before} MB)", peak());
    println!("attempts.jsonl {} kB, log {} MB", size >> 10, log >> 20);
}

/// Most memory that this process has had, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

fn write_store(folder: &Path) {
    let trajectories = folder.join("trajectories/react");
    std::fs::create_dir_all(&trajectories).unwrap();
    let limits = json!({ "steps": STEPS, "seconds": 1800.0, "cost": 1.0, "tokens": null });
    let sandbox_limits = serde_json::to_value(autoexperiment::sandbox::SandboxLimits::default()).unwrap();
    let run = json!({
        "format": 1, "run": "big", "created": "2026-11-21T10:00:00Z", "command_line": [],
        "configuration": {
            "suite": ".", "papers": ["tiny"], "draw": { "n": [1], "limit": ATTEMPTS }, "k": 5, "agents": ["react"],
            "sampling": { "temperature": null, "seed": null, "max_tokens": null }, "limits": limits, "sandbox": "none",
            "sandbox_limits": sandbox_limits, "protocol": "curtailed", "scoring": "strict", "verify": true, "jobs": 1,
            "tries": 1, "seed": 0,
        },
        "digests": { "papers": {}, "repos": {}, "envs": {}, "prompts": "" },
    });
    std::fs::write(folder.join("run.json"), run.to_string()).unwrap();
    let mut words = Words(1);
    let mut records = String::new();
    for number in 0..ATTEMPTS {
        let sample: Sample = format!("tiny_{}", number / 5).parse().unwrap();
        let attempt = (number % 5) as u32;
        let record = AttemptRecord {
            model: Some("openai:any".into()),
            end: End::StepLimit,
            steps: STEPS,
            ..AttemptRecord::blank("react", &sample, attempt)
        };
        writeln!(records, "{}", serde_json::to_string(&record).unwrap()).unwrap();
        let path = trajectories.join(format!("{}.{attempt}.jsonl", sample.id()));
        std::fs::write(path, trajectory(&mut words)).unwrap();
    }
    std::fs::write(folder.join("attempts.jsonl"), records).unwrap();
}

/// A system prompt and a task of a few kilobytes, then for each step a thought, a call and 1.5 kB of output.
fn trajectory(words: &mut Words) -> String {
    let mut lines = String::new();
    let mut push = |at: f64, event: Event| {
        writeln!(lines, "{}", serde_json::to_string(&Line { at, event }).unwrap()).unwrap();
    };
    let say = |role, content| Event::Message { role, call_id: None, content };
    push(0.0, say(Role::System, words.text(4000)));
    push(0.0, say(Role::User, words.text(3000)));
    for step in 1..=STEPS {
        let at = f64::from(step) * 2.0;
        let arguments = json!({ "command": words.text(100) });
        let id = format!("call-{step}");
        let call = ToolCall { id: id.clone(), name: "command_line".into(), arguments: arguments.clone() };
        push(
            at,
            Event::Reply {
                step,
                text: words.text(400),
                reasoning: None,
                tool_calls: vec![call],
                usage: Usage { input: 1000, output: 100, ..Usage::default() },
                cost: 0.01,
                seconds: 1.0,
            },
        );
        let (call_id, tool) = (Some(id), "command_line".into());
        push(at + 0.5, Event::Observation { step, call_id, tool, arguments, content: words.text(1500), seconds: 0.5 });
    }
    push(200.0, Event::Ended { end: End::StepLimit, detail: None });
    lines
}

/// Text that compresses about as code and prose do.
struct Words(u64);

impl Words {
    fn text(&mut self, length: usize) -> String {
        const VOCABULARY: &str = include_str!("../src/agent/prompts/mod.rs");
        let all: Vec<&str> = VOCABULARY.split_whitespace().collect();
        let mut text = String::with_capacity(length + 20);
        while text.len() < length {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(all[(self.0 >> 33) as usize % all.len()]);
            text.push(' ');
        }
        text
    }
}
