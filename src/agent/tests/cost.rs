//! Measures the CPU time that the harness itself needs per step: the sandbox and the model answer at once.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use nix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::support::{call, open, sh, task, text};
use crate::agent::{Budget, Context, End, Limits, Settings, Trajectory, attempt};
use crate::model::{Model, ModelError, QueryFailed, Reply, Request, Sampling};
use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, FolderEntry, Sandbox};

struct Instant;

#[async_trait]
impl Sandbox for Instant {
    fn workdir(&self) -> &Path {
        Path::new("/workspace")
    }
    async fn exec(&mut self, _: &Command, _: &ExecLimits) -> Result<Exec, Fault> {
        let (wall, cpu) = (Duration::ZERO, Duration::ZERO);
        Ok(Exec {
            exit: Exit::Code(0),
            stdout: b"hi\n".to_vec(),
            stderr: vec![],
            cut: 0,
            wall,
            starved: Duration::ZERO,
            cpu,
            peak_memory: 0,
        })
    }
    async fn read(&mut self, _: &Path, _: u64) -> Result<Vec<u8>, Fault> {
        Ok(Vec::new())
    }
    async fn write(&mut self, _: &Path, _: &[u8]) -> Result<(), Fault> {
        Ok(())
    }
    async fn list(&mut self, _: &Path) -> Result<Vec<FolderEntry>, Fault> {
        Ok(Vec::new())
    }
    async fn destroy(self: Box<Self>) -> Result<(), Fault> {
        Ok(())
    }
}

/// A model that gives the same reply a number of times and then fails.
struct RepeatingModel(Reply, u32);

#[async_trait]
impl Model for RepeatingModel {
    fn name(&self) -> &'static str {
        "echoes"
    }
    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        let exhausted = || ModelError::Exhausted("no more".into()).into();
        (request.call < self.1).then(|| self.0.clone()).ok_or_else(exhausted)
    }
}

/// Returns CPU seconds of this thread per step, over `attempts` attempts of `steps` steps that run `echo`.
fn a_step(settings: &str, reply: &Reply, attempts: u32, steps: u32) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let agent = open(&format!("react:{settings}"), &Settings::default(), None).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let begun = now();
    for _ in 0..attempts {
        let mut trajectory = Trajectory::create(&runs.path().join("t.jsonl")).unwrap();
        let mut budget = Budget::new(Limits { steps: steps + 2, ..Limits::default() });
        let mut context = Context {
            sandbox: &mut Instant,
            model: Some(&RepeatingModel(reply.clone(), steps)),
            sampling: Sampling::default(),
            budget: &mut budget,
            trajectory: &mut trajectory,
            cancel: CancellationToken::new(),
            answer: None,
            session: crate::agent::PythonSession::default(),
            review: None,
            round: 0,
            memory: 1 << 30,
            signalled: None,
        };
        let ended = runtime.block_on(attempt(agent.as_ref(), &task().task("doubling_0", 0), &mut context));
        assert_eq!((ended.end, budget.steps), (End::GaveUp, steps));
        trajectory.finish().unwrap();
    }
    now().saturating_sub(begun).as_secs_f64() / f64::from(attempts * steps)
}

#[test]
fn a_step_costs_less_than_a_millisecond_and_no_more_in_a_long_attempt() {
    for (settings, reply) in [
        ("", sh("echo hi")),
        ("tools=swe-agent", call("search_dir", json!({"text": "hi"}))),
        ("tools=super", call("execute", json!({"code": "print('hi')"}))),
        ("tools=bash", call("bash", json!({"command": "echo hi"}))),
        ("history=window:5", sh("echo hi")),
        ("history=super,context=100000", sh("echo hi")),
        ("protocol=text,prompt=mlagentbench", text("I look.\n```bash\necho hi\n```")),
    ] {
        a_step(settings, &reply, 2, 20);
        // Other processes can only add to the CPU time that is measured, so the least of several measurements counts.
        let (mut short, mut long) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..10 {
            short = short.min(a_step(settings, &reply, 25, 20));
            long = long.min(a_step(settings, &reply, 3, 200));
            if short < 0.001 && long < short * 1.5 {
                break;
            }
        }
        eprintln!("CPU a step of `{settings}`: {:.0} us at 20 steps, {:.0} us at 200", short * 1e6, long * 1e6);
        assert!(short < 0.001, "{settings}: {short}");
        assert!(long < short * 1.5, "{settings}: {short} s a step at 20 steps, {long} at 200");
    }
}
