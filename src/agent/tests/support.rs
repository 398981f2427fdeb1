//! Test support: a small task, a model with prepared replies, and the run of an attempt from start to end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::agent::trajectory::conversation;
use crate::agent::{
    Agent, AgentSpec, AttemptEnd, Budget, Context, End, Event, Limits, Replication, Settings, TaskExperiment,
    TaskFunction, TimedEvent, Trajectory, attempt,
};
use crate::error::{Error, Result};
use crate::model::{Model, ModelError, QueryFailed, Reply, Request, Role, Sampling, ToolCall, Usage};
use crate::sandbox::{
    Backend, Command, EntryKind, Exec, ExecLimits, Exit, Fault, FolderEntry, Sandbox, SandboxLimits, Spec, Unconfined,
};
use crate::suite::{Paper, ResultRule};
use crate::workspace::Layers;

/// A model with one prepared reply per call, which also stores the requests.
#[derive(Default)]
pub struct PreparedModel {
    replies: Vec<Result<Reply, QueryFailed>>,
    asked: Mutex<Vec<Request>>,
    hangs: bool,
    context: Option<u64>,
}

#[async_trait]
impl Model for PreparedModel {
    fn name(&self) -> &'static str {
        "given"
    }

    fn context(&self) -> Option<u64> {
        self.context
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        self.asked.lock().unwrap().push(request.clone());
        if self.hangs {
            std::future::pending::<()>().await;
        }
        self.replies
            .get(request.call as usize)
            .cloned()
            .unwrap_or_else(|| Err(ModelError::Exhausted("the script has ended".into()).into()))
    }
}

/// A sandbox that dies after `left` more operations.
struct DyingSandbox {
    inner: Box<dyn Sandbox>,
    left: u32,
}

impl DyingSandbox {
    fn tick(&mut self) -> Result<(), Fault> {
        self.left = self.left.checked_sub(1).ok_or_else(|| Fault::Lost("its init was killed".into()))?;
        Ok(())
    }
}

#[async_trait]
impl Sandbox for DyingSandbox {
    fn workdir(&self) -> &Path {
        self.inner.workdir()
    }
    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        self.tick()?;
        self.inner.exec(command, limits).await
    }
    async fn read(&mut self, path: &Path, limit: u64) -> Result<Vec<u8>, Fault> {
        self.tick()?;
        self.inner.read(path, limit).await
    }
    async fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        self.tick()?;
        self.inner.write(path, bytes).await
    }
    async fn list(&mut self, path: &Path) -> Result<Vec<FolderEntry>, Fault> {
        self.tick()?;
        self.inner.list(path).await
    }
    async fn destroy(self: Box<Self>) -> Result<(), Fault> {
        self.inner.destroy().await
    }
}

/// A sandbox whose file operations never finish.
struct StuckSandbox {
    inner: Box<dyn Sandbox>,
}

#[async_trait]
impl Sandbox for StuckSandbox {
    fn workdir(&self) -> &Path {
        self.inner.workdir()
    }
    async fn exec(&mut self, command: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        self.inner.exec(command, limits).await
    }
    async fn read(&mut self, _: &Path, _: u64) -> Result<Vec<u8>, Fault> {
        std::future::pending().await
    }
    async fn write(&mut self, _: &Path, _: &[u8]) -> Result<(), Fault> {
        std::future::pending().await
    }
    async fn list(&mut self, _: &Path) -> Result<Vec<FolderEntry>, Fault> {
        std::future::pending().await
    }
    async fn destroy(self: Box<Self>) -> Result<(), Fault> {
        self.inner.destroy().await
    }
}

/// A sandbox that runs nothing and returns random results of all kinds that a sandbox may return. Used for replies that
/// must not run on this machine.
struct RandomSandbox {
    draws: Vec<u8>,
    asked: usize,
}

impl RandomSandbox {
    fn draw(&mut self) -> u8 {
        self.asked += 1;
        // Add the number of calls, so that the result varies even if `draws` has few elements.
        self.draws.get(self.asked % self.draws.len().max(1)).copied().unwrap_or(0).wrapping_add(self.asked as u8)
    }

    fn bytes(&mut self) -> Vec<u8> {
        match self.draw() % 12 {
            0 => Vec::new(),
            1 => vec![0xff; 300],
            2 => vec![b'x'; 200_000],
            3 => b"/tmp/folder\nready\n".to_vec(),
            4 => b"done\nout\n".to_vec(),
            5 => b"ended 3\n".to_vec(),
            6 => b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n{\"Experiment 1\": 1}".to_vec(),
            7 => "def f(\u{e9}):\n    return 1\n".repeat(200).into_bytes(),
            8 => b"a:b:c\n:\n::3\n".to_vec(),
            _ => b"hi\n".to_vec(),
        }
    }

    fn fault(&mut self) -> Result<(), Fault> {
        match self.draw() {
            0 => Err(Fault::Lost("gone".into())),
            1..=25 => Err(Fault::Refused("not possible".into())),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Sandbox for RandomSandbox {
    fn workdir(&self) -> &Path {
        Path::new("/workspace")
    }
    async fn exec(&mut self, _: &Command, limits: &ExecLimits) -> Result<Exec, Fault> {
        self.fault()?;
        let exit = match self.draw() % 16 {
            0 => Exit::TimedOut,
            1 => Exit::Signal(9),
            2 => Exit::DiskFull,
            3..=5 => Exit::Code(1),
            _ => Exit::Code(0),
        };
        let (stdout, stderr) = (self.bytes(), self.bytes());
        let wall = if exit == Exit::TimedOut { limits.wall } else { Duration::ZERO };
        Ok(Exec { exit, stdout, stderr, cut: 0, wall, starved: Duration::ZERO, cpu: Duration::ZERO, peak_memory: 0 })
    }
    async fn read(&mut self, _: &Path, _: u64) -> Result<Vec<u8>, Fault> {
        self.fault()?;
        Ok(self.bytes())
    }
    async fn write(&mut self, _: &Path, _: &[u8]) -> Result<(), Fault> {
        self.fault()
    }
    async fn list(&mut self, _: &Path) -> Result<Vec<FolderEntry>, Fault> {
        self.fault()?;
        let name = format!("{}.py", self.draw() % 3).into();
        Ok(vec![FolderEntry { name, kind: EntryKind::File, size: 3 }])
    }
    async fn destroy(self: Box<Self>) -> Result<(), Fault> {
        Ok(())
    }
}

/// Creates the agent that `spec` names.
pub fn open(spec: &str, settings: &Settings, cache: Option<&Path>) -> Result<Arc<dyn Agent>> {
    spec.parse::<AgentSpec>()?.open(settings, cache)
}

/// Everything that one attempt needs.
pub struct AttemptFixture {
    pub dir: TempDir,
    runs: TempDir,
    sandbox: Box<dyn Sandbox>,
    model: PreparedModel,
    sampling: Sampling,
    pub limits: Limits,
    pub cancel: CancellationToken,
}

/// The outcome of an attempt, for assertions.
pub struct Attempt {
    pub end: End,
    pub detail: Option<String>,
    pub answer: Option<String>,
    pub budget: Budget,
    pub lines: Vec<TimedEvent>,
    pub asked: Vec<Request>,
    pub dir: TempDir,
}

impl AttemptFixture {
    /// Creates a workspace with `main.py`, and a model with these replies.
    pub async fn new(replies: Vec<Reply>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("main.py"), "def double(x):\n    raise NotImplementedError\n").unwrap();
        let spec = Spec {
            layers: Layers::Copy { dir: dir.path().to_owned() },
            read_only: Vec::new(),
            sealed: Vec::new(),
            hidden: Vec::new(),
            variables: [("PATH".to_owned(), std::env::var("PATH").unwrap())].into(),
            limits: SandboxLimits::default(),
            gpu: None,
        };
        let sandbox = Unconfined.start(&spec).await.unwrap();
        let model = PreparedModel { replies: replies.into_iter().map(Ok).collect(), ..PreparedModel::default() };
        let cancel = CancellationToken::new();
        let sampling = Sampling { seed: Some(7), ..Sampling::default() };
        Self { dir, runs: tempfile::tempdir().unwrap(), sandbox, model, sampling, limits: Limits::default(), cancel }
    }

    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Sets the attempt's seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.sampling.seed = Some(seed);
        self
    }

    /// Limits the tokens of each reply.
    pub fn max_tokens(mut self, most: u32) -> Self {
        self.sampling.max_tokens = Some(most);
        self
    }

    /// Adds a failure as the model's next reply.
    pub fn then_fails(mut self, failed: impl Into<QueryFailed>) -> Self {
        self.model.replies.push(Err(failed.into()));
        self
    }

    /// Adds the model's next reply.
    pub fn then(mut self, reply: Reply) -> Self {
        self.model.replies.push(Ok(reply));
        self
    }

    /// Makes the model never answer.
    pub fn hanging(mut self) -> Self {
        self.model.hangs = true;
        self
    }

    /// Makes all file operations of the sandbox hang.
    pub fn stuck(mut self) -> Self {
        self.sandbox = Box::new(StuckSandbox { inner: self.sandbox });
        self
    }

    /// Replaces the sandbox by one that runs nothing and derives its results from these random draws.
    pub fn drawn(mut self, draws: Vec<u8>) -> Self {
        self.sandbox = Box::new(RandomSandbox { draws, asked: 0 });
        self
    }

    /// Makes the sandbox die after `after` operations.
    pub fn dying(mut self, after: u32) -> Self {
        self.sandbox = Box::new(DyingSandbox { inner: self.sandbox, left: after });
        self
    }

    pub async fn react(self) -> Attempt {
        self.run(open("react", &Settings::default(), None).unwrap().as_ref(), &task()).await
    }

    /// Runs the agent `react:SETTINGS`, for example with the settings `history=window:2`.
    pub async fn react_with(self, settings: &str) -> Attempt {
        let agent = open(&format!("react:{settings}"), &Settings::default(), None).unwrap();
        self.run(agent.as_ref(), &task()).await
    }

    /// Runs `react` with a trajectory on a full disk. Returns the attempt's end, the number of calls and the error of
    /// the trajectory.
    pub async fn react_on_a_full_disk(mut self) -> (End, usize, Error) {
        let mut trajectory = Trajectory::create(Path::new("/dev/full")).unwrap();
        let agent = open("react", &Settings::default(), None).unwrap();
        let (ended, ..) = self.work(agent.as_ref(), &task(), &mut trajectory).await;
        (ended.end, self.model.asked.lock().unwrap().len(), trajectory.finish().unwrap_err())
    }

    async fn work(
        &mut self,
        agent: &dyn Agent,
        task: &Replication,
        trajectory: &mut Trajectory,
    ) -> (AttemptEnd, Option<String>, Budget) {
        let mut budget = Budget::new(self.limits);
        let mut context = Context {
            sandbox: self.sandbox.as_mut(),
            model: Some(&self.model),
            sampling: self.sampling.clone(),
            budget: &mut budget,
            trajectory,
            cancel: self.cancel.clone(),
            answer: None,
            session: crate::agent::PythonSession::default(),
            review: None,
            round: 0,
            memory: 1 << 30,
            signalled: None,
        };
        let ended = attempt(agent, &task.clone().task("doubling_0", 0), &mut context).await;
        let answer = context.answer.take();
        (ended, answer, budget)
    }

    /// Runs the attempt, and checks what holds for every attempt: it has exactly one end, which is recorded, and the
    /// record reproduces exactly what the model was sent.
    pub async fn run(mut self, agent: &dyn Agent, task: &Replication) -> Attempt {
        let path = self.runs.path().join("trajectory.jsonl");
        let mut trajectory = Trajectory::create(&path).unwrap();
        let (AttemptEnd { end, detail, .. }, answer, budget) = self.work(agent, task, &mut trajectory).await;
        trajectory.finish().unwrap();
        self.sandbox.destroy().await.unwrap();
        let lines = Trajectory::read(&path).unwrap();
        let ends: Vec<_> = lines.iter().filter(|line| matches!(line.event, Event::Ended { .. })).collect();
        assert_eq!(ends.len(), 1);
        assert_eq!(lines.last().unwrap().event, Event::Ended { end, detail: detail.clone() });
        let asked = self.model.asked.into_inner().unwrap();
        // Only the agent's own requests have a system prompt; those of tools and summaries do not.
        let own = |request: &&Request| request.messages[0].role == Role::System;
        if let (Some(last), true) = (asked.iter().rev().find(own), agent.name().starts_with("react")) {
            let replayed = conversation::replay(&lines);
            assert_eq!(&replayed[..last.messages.len()], &last.messages[..], "the record is not what the model saw");
        }
        Attempt { end, detail, answer, budget, lines, asked, dir: self.dir }
    }
}

impl Attempt {
    /// Returns the observations shown to the model, in order.
    pub fn observations(&self) -> Vec<&str> {
        let content = |line| match line {
            &TimedEvent { event: Event::Observation { ref content, .. }, .. } => Some(content.as_str()),
            _ => None,
        };
        self.lines.iter().filter_map(content).collect()
    }

    /// Returns the format errors of replies, in order.
    pub fn format_errors(&self) -> Vec<&str> {
        let what = |line| match line {
            &TimedEvent { event: Event::FormatError { ref what, .. }, .. } => Some(what.as_str()),
            _ => None,
        };
        self.lines.iter().filter_map(what).collect()
    }

    /// Returns how many times the model was asked to submit.
    pub fn told_to_submit(&self) -> usize {
        let told = |line: &&TimedEvent| match &line.event {
            Event::Message { role: Role::User, content, .. } => content.contains("Your next reply is the last one"),
            _ => false,
        };
        self.lines.iter().filter(told).count()
    }

    /// Returns the last message shown to the model.
    pub fn last_shown(&self) -> &str {
        &self.asked.last().unwrap().messages.last().unwrap().content
    }

    pub fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(path)).unwrap()
    }
}

/// Builds a reply with one tool call through the provider's interface.
pub fn call(name: &str, arguments: Value) -> Reply {
    let call = ToolCall { id: "a1".into(), name: name.into(), arguments };
    Reply { text: "I do the next thing.".into(), tool_calls: vec![call], ..Reply::default() }
}

/// Builds a reply that is only text.
pub fn text(text: &str) -> Reply {
    Reply { text: text.into(), ..Reply::default() }
}

pub fn sh(command: &str) -> Reply {
    call("command_line", json!({ "command": command }))
}

pub fn submit() -> Reply {
    call("final_answer", json!({ "answer": r#"{"Experiment 1": {"x": 1}}"# }))
}

/// Marks a reply as cut off by the server.
pub fn cut(reply: Reply) -> Reply {
    Reply { cut: true, ..reply }
}

/// Adds a cost and tokens to a reply.
pub fn costing(reply: Reply, cost: f64, tokens: u64) -> Reply {
    Reply { cost, usage: Usage { input: tokens, ..Usage::default() }, ..reply }
}

/// Returns a task with two experiments that need one masked function.
pub fn task() -> Replication {
    let paper = Paper {
        id: "doubling".into(),
        title: "On Doubling".into(),
        authors: vec!["A. Author".into(), "B. Author".into()],
        year: 2020,
        url: "https://example.org".into(),
        repo: "doubling".into(),
        env: "plain".into(),
        ..Paper::default()
    };
    let experiment = |number: u32, command: &str, result| TaskExperiment {
        id: format!("double-{number}"),
        key: format!("Experiment {number}"),
        description: "Doubles a number. Report {\"value\": number}.".into(),
        shape: None,
        command: command.into(),
        time_limit: 20.0,
        told_limit: 20.0,
        result,
    };
    Replication {
        paper: Arc::new(paper),
        text: "To double a number, add it to itself.\n".into(),
        experiments: vec![
            experiment(
                1,
                "python3 -c 'import main, json; print(json.dumps({\"value\": main.double(21)}))'",
                serde_json::from_value(json!({"json_line": "stdout"})).unwrap(),
            ),
            experiment(
                2,
                "python3 -c 'import main; open(\"out.json\", \"w\").write(\"{\\\"value\\\": %r}\" % main.double(1.5))'",
                ResultRule::JsonFile("out.json".into()),
            ),
        ],
        functions: vec![TaskFunction {
            at: "main.py::double".into(),
            description: "Doubles a number.".into(),
            passages: vec!["Method".into()],
            region: None,
        }],
        originals: vec![(PathBuf::from("main.py"), b"def double(x):\n    return x + x\n".to_vec())],
    }
}

/// A timeout that is long enough for a busy machine, and short enough to notice a hang.
pub const SOON: Duration = Duration::from_secs(20);
