//! Runs one attempt of a Python function: answers its requests in order, within the budget, and records them.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::child::{Child, ChildInput};
use super::wire::{self, CallFailureKind, CallReply, FunctionRequest};
use crate::agent::budget::account::{Asker, NotAsked, Unanswered};
use crate::agent::tail::tail;
use crate::agent::tools::{cut_middle, show_exec};
use crate::agent::trajectory::request_record::RequestRecord;
use crate::agent::trajectory::seconds;
use crate::agent::{AttemptEnd, Context, End, Event, Task, experiment};
use crate::model::{ModelError, Request, Sampling};
use crate::sandbox::{Command, EntryKind, EvidenceKind, Exit, Fault};

/// Maximum bytes of each output stream of a command, and of a file that is read.
const OUTPUT: usize = 4 << 20;
const FILE: u64 = 32 << 20;
/// Maximum characters of an observation that are recorded.
const RECORDED: usize = 20_000;
/// Number of refused calls at which the function is stopped. Calls are refused once a limit of the attempt is reached.
const REFUSALS: u32 = 5;
/// Consecutive failed model calls after which the function is stopped.
const FAILURES: u32 = 10;
/// Maximum characters quoted from the end of the function's output in the description of the attempt's end.
const DETAIL: usize = 300;

/// Runs one attempt of the function.
pub(super) async fn run(
    command: std::process::Command,
    name: &str,
    task: &Task,
    context: &mut Context<'_>,
) -> AttemptEnd {
    let mut child = match Child::start(command, context.memory) {
        Ok(child) => child,
        Err(error) => {
            let what = format!("`{name}` cannot be started: {error}");
            return AttemptEnd::lost("", EvidenceKind::NotStarted.because(what));
        }
    };
    let workdir = context.sandbox.workdir().display().to_string();
    let first = wire::begin(task, &workdir, context.model, &context.sampling, context.budget);
    let mut session = FunctionExchange {
        record: RequestRecord::default(),
        own_time: Duration::ZERO,
        refused: None,
        refusals: 0,
        failures: 0,
    };
    let last = session.converse(&mut child, first, context).await;
    let is_stopped = matches!(last, FunctionEnd::Stopped(_));
    let (exit, printed) = child.finish(is_stopped).await;
    context.note_exit(exit);
    context.trajectory.push(&Event::Program {
        exit,
        stdout: String::new(),
        stderr: printed.clone(),
        seconds: seconds(session.own_time),
    });
    match last {
        FunctionEnd::Stopped(ended) => ended,
        FunctionEnd::Answered(raw) => {
            experiment::answer_raw(raw, context);
            End::Answered.into()
        }
        FunctionEnd::Nothing => {
            session.refused.map_or_else(|| End::GaveUp.because("it returned no answer"), AttemptEnd::from)
        }
        FunctionEnd::Raised { error, budget } => match session.refused.filter(|_| budget) {
            Some(end) => end.into(),
            None => End::GaveUp.because(format!("it raised {}{}", shorten(&error), of_memory(&error, context.memory))),
        },
        FunctionEnd::Gone => end_without_message(exit, &printed),
    }
}

/// Returns a note on the memory limit if the function raised a `MemoryError`; otherwise an empty text.
fn of_memory(error: &str, memory: u64) -> String {
    let kind = error.split(':').next().unwrap_or_default();
    if !kind.ends_with("MemoryError") {
        return String::new();
    }
    format!("; each of its processes has at most {} MiB (`--memory`)", memory >> 20)
}

/// How a function ended.
enum FunctionEnd {
    Answered(String),
    Nothing,
    Raised {
        error: String,
        budget: bool,
    },
    /// The process ended without a last message.
    Gone,
    /// The harness stopped the function.
    Stopped(AttemptEnd),
}

/// Returns the end of an attempt whose process sent no last message. The end counts as the function's own failure even
/// if a signal ended the process, because the signal may have been sent by the function itself.
fn end_without_message(exit: Exit, printed: &str) -> AttemptEnd {
    let words = if printed.trim().is_empty() { String::new() } else { format!(": {}", shorten(printed)) };
    match exit {
        Exit::Signal(signal) => End::GaveUp.because(format!("its process died of signal {signal}{words}")),
        Exit::Code(code) => End::GaveUp.because(format!("its process ended by itself with exit code {code}{words}")),
        Exit::TimedOut | Exit::DiskFull => End::GaveUp.because("it closed its output but kept running"),
    }
}

/// Returns the last characters of a function's output.
fn shorten(text: &str) -> &str {
    tail(text.trim(), DETAIL)
}

/// State of the exchange of messages with the function.
struct FunctionExchange {
    record: RequestRecord,
    /// Time that the function itself has run, without the requests it makes.
    own_time: Duration,
    /// The limit that the attempt had reached when a request was refused; `None` if no request was refused.
    refused: Option<End>,
    refusals: u32,
    /// Consecutive failed model calls.
    failures: u32,
}

impl FunctionExchange {
    /// Answers requests until the function's last message.
    async fn converse(&mut self, child: &mut Child, first: Vec<u8>, context: &mut Context<'_>) -> FunctionEnd {
        let mut line = first;
        for number in 1_u64.. {
            let (left, begun) = (context.budget.time_left(), Instant::now());
            let exchange = async {
                // Ignore a failed write: if the process has gone, the next read reports it.
                let _ = child.send(&line).await;
                child.line().await
            };
            let came = timeout(left, exchange).await;
            let took = begun.elapsed();
            self.own_time += took;
            context.budget.charge_time(if came.is_err() { took.max(left) } else { took });
            let call = match came {
                Err(_) => return FunctionEnd::Stopped(self.refused.unwrap_or(End::TimeLimit).into()),
                Ok(Err(_) | Ok(ChildInput::Over)) => return FunctionEnd::Gone,
                Ok(Ok(ChildInput::TooLong)) => {
                    return FunctionEnd::Stopped(End::GaveUp.because(format!("message {number} is too long")));
                }
                Ok(Ok(ChildInput::Message(message))) => match serde_json::from_slice::<FunctionRequest>(&message) {
                    Ok(call) => call,
                    Err(error) => {
                        let text = String::from_utf8_lossy(&message);
                        let words = shorten(&text);
                        let what = format!("message {number} does not follow the protocol ({error}): {words}");
                        return FunctionEnd::Stopped(End::GaveUp.because(what));
                    }
                },
            };
            let answer = match call {
                FunctionRequest::Answer { answer: Some(answer) } => return FunctionEnd::Answered(answer),
                FunctionRequest::Answer { answer: None } => return FunctionEnd::Nothing,
                FunctionRequest::Failed { error, budget } => return FunctionEnd::Raised { error, budget },
                call => self.answer(call, context).await,
            };
            match answer {
                Ok(answer) => line = wire::answer(answer, context.budget),
                Err(ended) => return FunctionEnd::Stopped(ended),
            }
        }
        FunctionEnd::Gone
    }

    /// Carries out a request. An error ends the attempt.
    async fn answer(&mut self, call: FunctionRequest, context: &mut Context<'_>) -> Result<CallReply, AttemptEnd> {
        let (tool, arguments) = match &call {
            FunctionRequest::Exec { argv, cwd, .. } => ("exec", json!({ "argv": argv, "cwd": cwd })),
            FunctionRequest::Read { path } => ("read", json!({ "path": path })),
            FunctionRequest::Write { path, .. } => ("write", json!({ "path": path })),
            FunctionRequest::List { path } => ("list", json!({ "path": path })),
            _ => ("", Value::Null),
        };
        let before = context.budget.tool_time;
        let done = match call {
            FunctionRequest::Ask { messages, tools, temperature, max_tokens } => {
                let asked = Sampling { temperature, max_tokens, ..Sampling::default() };
                return self
                    .ask(Request { messages, tools: tools.into(), foreign: true, ..Request::default() }, asked, context)
                    .await;
            }
            FunctionRequest::Exec { argv, cwd, seconds, stdin } => exec(argv, cwd, seconds, stdin, context).await,
            FunctionRequest::Read { path } => read(&path, context).await,
            FunctionRequest::Write { path, base64 } => write(&path, &base64, context).await,
            FunctionRequest::List { path } => list(&path, context).await,
            FunctionRequest::Answer { .. } | FunctionRequest::Failed { .. } => return Ok(Ok(Value::Null)),
        };
        let (shown, answer) = match done {
            Ok((shown, value)) => (shown, Ok(value)),
            Err(Fault::Lost(loss)) => return Err(loss.into()),
            Err(Fault::Refused(what)) => {
                let why = if context.no_time_left() { CallFailureKind::Budget } else { CallFailureKind::Sandbox };
                (what.clone(), Err((why, what)))
            }
        };
        context.trajectory.push(&Event::Observation {
            step: context.budget.steps,
            call_id: None,
            tool: tool.to_owned(),
            arguments,
            content: cut_middle(&shown, RECORDED).into_owned(),
            seconds: seconds(context.budget.tool_time.saturating_sub(before)),
        });
        Ok(answer)
    }

    async fn ask(
        &mut self,
        mut request: Request,
        asked: Sampling,
        context: &mut Context<'_>,
    ) -> Result<CallReply, AttemptEnd> {
        let Some(model) = context.model else {
            return Ok(Err((CallFailureKind::Model, "this agent has no model".to_owned())));
        };
        if let Err(why) = context.may_ask() {
            return self.not_asked(why, context);
        }
        let ours = context.next_sampling();
        request.sampling = Sampling {
            temperature: ours.temperature.or(asked.temperature.map(|asked| asked.clamp(0.0, 2.0))),
            max_tokens: [ours.max_tokens, asked.max_tokens, context.budget.tokens_left()].into_iter().flatten().min(),
            ..ours
        };
        request.call = context.budget.calls;
        if !self.record.record(&request, context.trajectory) {
            return self.not_asked(NotAsked::Limit(End::DiskLimit), context);
        }
        match context.ask(model, Asker::Agent, &mut request).await {
            Ok(reply) => {
                self.failures = 0;
                let message = request.messages.last().map(serde_json::to_value).transpose().ok().flatten();
                self.record.is(request.messages);
                Ok(Ok(json!({
                    "text": reply.text, "reasoning": reply.reasoning, "tool_calls": reply.tool_calls,
                    "usage": reply.usage, "cost": reply.cost, "message": message,
                })))
            }
            Err(Unanswered::NotAsked(why)) => self.not_asked(why, context),
            Err(Unanswered::Failed(error)) => {
                self.failures += 1;
                let goes_on =
                    matches!(error, ModelError::ContextLength(_) | ModelError::Refused(_) | ModelError::Rejected(_));
                if goes_on && self.failures < FAILURES {
                    Ok(Err((CallFailureKind::Model, error.to_string())))
                } else {
                    Err(AttemptEnd::from(&error))
                }
            }
        }
    }

    /// Refuses a model call because a limit is reached. Stops the function if it has made too many calls after the
    /// limit was reached.
    fn not_asked(&mut self, why: NotAsked, context: &mut Context<'_>) -> Result<CallReply, AttemptEnd> {
        let NotAsked::Limit(end) = why else { return Err(why.into()) };
        let what = match end {
            End::DiskLimit => "there is no more room to record what is asked",
            end => end.used_up(),
        };
        let message = format!("{what}: make no further call, and return the answer");
        context.trajectory.push(&Event::CallRefused { what: message.clone() });
        self.refused = Some(end);
        self.refusals += 1;
        if self.refusals >= REFUSALS {
            return Err(end.because(format!("it made {} more calls after reaching its limit", self.refusals)));
        }
        Ok(Err((CallFailureKind::Budget, message)))
    }
}

/// Result of a request: the text that the trajectory records, and the value that the function gets.
type CallResult = Result<(String, Value), Fault>;

async fn exec(
    argv: Vec<String>,
    cwd: std::path::PathBuf,
    limit: Option<f64>,
    stdin: String,
    context: &mut Context<'_>,
) -> CallResult {
    let wall = limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok());
    let wall = wall.unwrap_or_else(|| context.budget.command_limit());
    let command = Command {
        cwd,
        stdin: stdin.into_bytes(),
        argv: argv.into_iter().map(Into::into).collect(),
        ..Command::default()
    };
    let exec = context.exec(&command, wall, OUTPUT).await?;
    let (code, ended) = match exec.exit {
        Exit::Code(code) => (Some(code), "exit"),
        Exit::Signal(_) => (None, "signal"),
        Exit::TimedOut => (None, "timeout"),
        Exit::DiskFull => (None, "disk"),
    };
    let value = json!({
        "code": code, "ended": ended, "seconds": exec.wall.as_secs_f64(),
        "stdout": String::from_utf8_lossy(&exec.stdout), "stderr": String::from_utf8_lossy(&exec.stderr),
    });
    Ok((show_exec(&exec), value))
}

async fn read(path: &Path, context: &mut Context<'_>) -> CallResult {
    let bytes = context.read(path, FILE).await?;
    Ok((format!("{} bytes", bytes.len()), json!({ "base64": STANDARD.encode(bytes) })))
}

async fn write(path: &Path, base64: &str, context: &mut Context<'_>) -> CallResult {
    let bytes = STANDARD.decode(base64).map_err(|error| Fault::Refused(format!("not base64: {error}")))?;
    context.write(path, &bytes).await?;
    Ok((format!("{} bytes", bytes.len()), json!({})))
}

async fn list(path: &Path, context: &mut Context<'_>) -> CallResult {
    let entries = context.list(path).await?;
    let value = entries.iter().map(|entry| {
        let kind = match entry.kind {
            EntryKind::File => "file",
            EntryKind::Folder => "folder",
            EntryKind::Link => "link",
            EntryKind::Other => "other",
        };
        json!({ "name": entry.name.to_string_lossy(), "kind": kind, "size": entry.size })
    });
    Ok((format!("{} entries", entries.len()), json!({ "entries": value.collect::<Vec<_>>() })))
}
