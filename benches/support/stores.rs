//! Made-up runs of any size, the same each time, for benchmarks of reports, comparisons and exports.
#![allow(dead_code, reason = "each benchmark uses a part of it")]
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use autoexperiment::agent::{End, Event, TimedEvent};
use autoexperiment::model::{Role, ToolCall, Usage};
use autoexperiment::run::AttemptRecord;
use autoexperiment::sample::{MASKED, Sample, Withheld};
use autoexperiment::score::{ExperimentVerdict, ValueVerdict, Verdict};
use serde_json::{Value, json};

/// Size of a made-up run, in which every agent makes k attempts at every sample.
pub struct Shape {
    pub agents: usize,
    pub papers: usize,
    /// Numbers of masked functions: from 1 to this.
    pub ns: usize,
    /// Number of samples of each paper and n.
    pub samples: usize,
    pub k: u32,
    /// Number of values in a sample's experiments, each compared with gold in both verdicts.
    pub values: usize,
}

impl Shape {
    pub const fn attempts(&self) -> usize {
        self.agents * self.papers * self.ns * self.samples * self.k as usize
    }

    fn agent(place: usize) -> String {
        if place == 0 { "react".to_owned() } else { format!("react+history=window-{place}") }
    }

    /// Writes the run's folder, without trajectories.
    pub fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("run.json"), self.run().to_string()).unwrap();
        let mut file = BufWriter::new(File::create(folder.join("attempts.jsonl")).unwrap());
        let mut random = Random(1);
        for agent in 0..self.agents {
            let label = Self::agent(agent);
            for paper in 0..self.papers {
                for n in 1..=self.ns {
                    for sample in 0..self.samples {
                        // Every sample masks a different set of functions: the first function depends on the sample's
                        // number, and the others follow it.
                        let functions = (0..n).map(|at| sample * 10 + at).collect();
                        let item = format!("paper{paper}");
                        let sample = Withheld { item: item.clone(), units: functions }.sample(MASKED, &item);
                        // Some samples are hard for every agent; agents differ by a little.
                        let chance = (0.9 - 0.15 * n as f64 - 0.03 * agent as f64) * (0.5 + 0.5 * random.unit());
                        for attempt in 0..self.k {
                            let record = self.record(&label, &sample, attempt, chance, &mut random);
                            serde_json::to_writer(&mut file, &record).unwrap();
                            file.write_all(b"\n").unwrap();
                        }
                    }
                }
            }
        }
        file.flush().unwrap();
    }

    pub fn record(
        &self,
        agent: &str,
        sample: &Sample,
        attempt: u32,
        chance: f64,
        random: &mut Random,
    ) -> AttemptRecord {
        let lost = random.unit() < 0.01;
        let pass = !lost && random.unit() < chance;
        let is_reported = pass || random.unit() < 0.1;
        let (reported, answer) = self.verdict(is_reported, random);
        let (verified, results) = self.verdict(pass, random);
        let end = if lost { End::SandboxLost } else { End::Answered };
        AttemptRecord {
            model: Some("openai:any".into()),
            end,
            answer: (!lost).then(|| Value::Object(answer).to_string()),
            reported: (!lost).then_some(reported),
            verified: (!lost).then_some(verified),
            results: if lost { serde_json::Map::new() } else { results },
            pass,
            steps: 5 + (random.unit() * 30.0) as u32,
            usage: Usage { input: 40_000, cached: 10_000, output: 6_000, ..Usage::default() },
            cost: random.unit(),
            tool_seconds: 60.0 * random.unit(),
            model_seconds: 90.0 * random.unit(),
            verify_seconds: 20.0 * random.unit(),
            wall_seconds: 200.0,
            changed: vec!["package/module.py".into()],
            sandbox: "local: namespaces, overlay, seccomp, landlock".into(),
            ..AttemptRecord::blank(agent, sample, attempt)
        }
    }

    /// Makes a verdict on all values, grouped into experiments of at most 15 values, and the results that the verdict
    /// is about.
    fn verdict(&self, pass: bool, random: &mut Random) -> (Verdict, serde_json::Map<String, Value>) {
        let (mut experiments, mut results) = (Vec::new(), serde_json::Map::new());
        let mut left = self.values;
        while left > 0 {
            let count = left.min(15);
            left -= count;
            let experiment = format!("experiment-{}", experiments.len());
            let (mut values, mut result) = (Vec::new(), serde_json::Map::new());
            for value in 0..count {
                let gold = 10.0 * random.unit();
                let got = if pass { gold } else { gold * (0.8 + 0.4 * random.unit()) };
                let path = format!("method-{value}, d=2, effect=2.5.statistic");
                result.insert(path.clone(), json!(got));
                let error = Some((got - gold).abs() / gold);
                let is_near = error.is_some_and(|error| error <= 0.05);
                values.push(ValueVerdict {
                    path,
                    gold: json!(gold),
                    got: Some(json!(got)),
                    error,
                    pass: is_near,
                    reason: (!is_near).then(|| "outside its tolerance of 5%".to_owned()),
                });
            }
            let all = values.iter().all(|value| value.pass);
            experiments.push(ExperimentVerdict {
                experiment: experiment.clone(),
                pass: all,
                reason: None,
                values,
                warnings: Vec::new(),
            });
            results.insert(experiment, Value::Object(result));
        }
        (Verdict { pass, experiments, ..Verdict::default() }, results)
    }

    fn run(&self) -> Value {
        let papers: Vec<String> = (0..self.papers).map(|paper| format!("paper{paper}")).collect();
        let ns: Vec<usize> = (1..=self.ns).collect();
        let agents: Vec<String> = (0..self.agents).map(Self::agent).collect();
        let each = self.papers * self.samples * self.k as usize;
        let planned: Vec<Value> = agents
            .iter()
            .flat_map(|agent| {
                ns.iter().map(move |n| json!({ "agent": agent, "model": "openai:any", "n": n, "attempts": each }))
            })
            .collect();
        let named: Vec<String> =
            agents.iter().map(|agent| agent.replace("react+", "react:").replace("window-", "window:")).collect();
        run_file(".", &papers, &ns, self.k, &named, &planned)
    }
}

/// Makes a `run.json` with these settings.
pub fn run_file(suite: &str, papers: &[String], ns: &[usize], k: u32, agents: &[String], planned: &[Value]) -> Value {
    let limits = json!({ "steps": 50, "seconds": 1800.0, "cost": 1.0, "tokens": null });
    let sandbox_limits = json!({
        "memory": 4_294_967_296_u64, "processes": 256, "file_size": 1_073_741_824,
        "disk": 4_294_967_296_u64, "cpu_seconds": 3600,
    });
    json!({
        "format": 1, "run": "big", "created": "2026-11-21T10:00:00Z", "command_line": [],
        "configuration": {
            "suite": suite, "papers": papers, "draw": { "n": ns, "limit": 1000 }, "k": k, "agents": agents,
            "sampling": { "temperature": null, "seed": null, "max_tokens": null }, "limits": limits, "sandbox": "none",
            "sandbox_limits": sandbox_limits, "protocol": "curtailed", "scoring": "strict", "verify": true, "jobs": 1,
            "tries": 1, "seed": 0,
        },
        "digests": { "papers": {}, "repos": {}, "envs": {}, "prompts": "" }, "planned": planned,
    })
}

/// Makes a system prompt and a task of a few kilobytes, then for each step a thought, a call and 1.5 kB of output.
pub fn trajectory(random: &mut Random, steps: u32) -> String {
    let mut lines = String::new();
    let mut push = |at: f64, event: Event| {
        writeln!(lines, "{}", serde_json::to_string(&TimedEvent { at, event }).unwrap()).unwrap();
    };
    let say = |role, content| Event::Message { role, call_id: None, content };
    push(0.0, say(Role::System, random.text(4000)));
    push(0.0, say(Role::User, random.text(3000)));
    for step in 1..=steps {
        let at = f64::from(step) * 2.0;
        let arguments = json!({ "command": random.text(100) });
        let id = format!("call-{step}");
        let call = ToolCall { id: id.clone(), name: "command_line".into(), arguments: arguments.clone() };
        push(
            at,
            Event::Reply {
                unanswered: 0,
                step,
                text: random.text(400),
                reasoning: None,
                tool_calls: vec![call],
                thoughts: Vec::new(),
                estimated: false,
                seed: None,
                cached: false,
                finish: None,
                weights: None,
                tokens: None,
                usage: Usage { input: 1000, output: 100, ..Usage::default() },
                cost: 0.01,
                seconds: 1.0,
            },
        );
        let (call_id, tool) = (Some(id), "command_line".into());
        push(at + 0.5, Event::Observation { step, call_id, tool, arguments, content: random.text(1500), seconds: 0.5 });
    }
    push(200.0, Event::Ended { end: End::StepLimit, detail: None });
    lines
}

/// A random generator that is the same on every machine (Knuth's MMIX constants).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Returns a number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        self.next() as f64 / (1_u64 << 31) as f64
    }

    /// Returns text that compresses about as well as code and prose.
    pub fn text(&mut self, length: usize) -> String {
        const VOCABULARY: &str = include_str!("../../src/agent/prompts/mod.rs");
        static WORDS: std::sync::LazyLock<Vec<&str>> =
            std::sync::LazyLock::new(|| VOCABULARY.split_whitespace().collect());
        let mut text = String::with_capacity(length + 20);
        while text.len() < length {
            let _ = write!(text, "{} ", WORDS[self.next() as usize % WORDS.len()]);
        }
        text
    }
}
