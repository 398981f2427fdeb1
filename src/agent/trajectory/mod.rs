//! The record of one attempt: one JSON line per event, written as it happens.

pub mod call_tokens;
pub mod conversation;
pub(super) mod request_record;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::call_tokens::{CallTokens, RecentTokens};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::End;
use crate::error::{Error, FailureKind, Result};
use crate::files::{Appender, JsonLine, json_lines};
use crate::kernel::CellRecord;
use crate::model::{Message, Reply, RequestOptions, Role, Sampling, Thought, Tool, ToolCall, Usage};

/// An event of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(clippy::large_enum_variant, reason = "events are written as they come, not kept in large numbers")]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The attempt begins.
    Started {
        /// The sample's id.
        sample: String,
        /// Number of the attempt, from 0.
        attempt: u32,
        /// The agent's name.
        agent: String,
        /// The model's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The sandbox backend.
        sandbox: String,
        /// Start time of the attempt, equal to the start time in the attempt's record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started: Option<jiff::Timestamp>,
    },
    /// The harness adds a message to the conversation.
    Message {
        /// Role of the message.
        role: Role,
        /// Id of the call that the message answers, if that call could not be run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// Text of the message.
        content: String,
    },
    /// The model replies, which is a step.
    Reply {
        /// Number of the step, from 1.
        step: u32,
        /// Text of the reply.
        text: String,
        /// Reasoning that the provider returned separately.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// Tool calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// Reasoning in the provider's format, to send back with the reply.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        thoughts: Vec<Thought>,
        /// Whether the tokens are estimated, because the provider reports none.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// Whether the reply was reused from an earlier run, so that it costs nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
        /// Why the reply ended, in the server's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish: Option<String>,
        /// Version of the model's weights, or else of the server's configuration, if the server reports one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weights: Option<String>,
        /// Token ids and log-probabilities, if the server returned them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<CallTokens>,
        /// Tries of the call that got no complete answer. What they cost is unknown and not part of `cost`.
        #[serde(default, skip_serializing_if = "crate::model::is_zero")]
        unanswered: u32,
        /// Tokens of the call.
        usage: Usage,
        /// Cost of the call in dollars.
        cost: f64,
        /// Seconds of waiting for the reply.
        seconds: f64,
        /// Sampling seed of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    },
    /// A tool has run.
    Observation {
        /// Number of the step.
        step: u32,
        /// Id of the call, if the provider gives ids.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The tool's name.
        tool: String,
        /// The tool's arguments.
        arguments: Value,
        /// Text shown to the model.
        content: String,
        /// Seconds of tool time.
        seconds: f64,
    },
    /// A tool has asked the model. This call is not a step, but costs tokens and money.
    ToolModelCall {
        /// Number of the step.
        step: u32,
        /// The tool's name.
        tool: String,
        /// The model's reply to the tool.
        text: String,
        /// Tries of the call that got no complete answer. What they cost is unknown and not part of `cost`.
        #[serde(default, skip_serializing_if = "crate::model::is_zero")]
        unanswered: u32,
        /// Tokens of the call.
        usage: Usage,
        /// Cost of the call in dollars.
        cost: f64,
        /// Seconds of waiting for the reply.
        seconds: f64,
    },
    /// A model call got no reply. This call is not a step, but may have cost tokens and money.
    CallFailed {
        /// Number of the last step.
        step: u32,
        /// The tool that made the call, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The error.
        what: String,
        /// Tokens, if the provider reports them.
        usage: Usage,
        /// Cost of these tokens in dollars.
        cost: f64,
        /// Seconds of waiting until the call failed.
        seconds: f64,
    },
    /// A reply could not be carried out, at least in part: malformed call, unknown tool, more calls than allowed.
    FormatError {
        /// Number of the step.
        step: u32,
        /// The format error, as shown to the agent.
        what: String,
    },
    /// An agent that keeps its own conversation asks the model: an external agent, a Python function or SUPER's
    /// agent.
    Asked {
        /// Number of the call within the attempt, from 0.
        call: u32,
        /// Number of leading messages reused from the previous call. The other messages are gone: the agent has
        /// rewritten them or begun another conversation.
        kept: usize,
        /// The messages that follow the reused ones.
        messages: Vec<Message>,
        /// The tools on offer, if they differ from the previous call's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<Tool>>,
        /// Sampling settings of the call.
        sampling: Sampling,
        /// Other options that the agent requested: `top_p`, `top_k`, penalties, stop sequences, a choice of tools, a
        /// format.
        #[serde(default, skip_serializing_if = "RequestOptions::is_none")]
        wishes: RequestOptions,
    },
    /// An external agent requested something that is not passed on to the model. Recorded once per attempt.
    NotPassed {
        /// Name of the omitted feature.
        what: String,
    },
    /// A call was refused and not sent to the model.
    CallRefused {
        /// Why the call was refused.
        what: String,
    },
    /// An external agent or a Python function has ended.
    Program {
        /// How the program or function ended.
        exit: crate::sandbox::Exit,
        /// Standard output of the program or function; if it is long, its middle is left out.
        stdout: String,
        /// Standard error of the program or function; if it is long, its middle is left out.
        stderr: String,
        /// Seconds that the program or function ran, without waits for the model.
        seconds: f64,
    },
    /// The agent begins a try: a part of the attempt in which the agent works on the task in a new conversation. Only
    /// agents with the setting `reflexion` divide an attempt into tries.
    Try {
        /// Number of the try within the attempt, from 1.
        number: u32,
        /// Why the previous try failed; absent for the first try.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Steps were removed from the conversation: `count` messages, beginning with the message at index `from`.
    Forgotten {
        /// Index of the first removed message, from 0.
        from: usize,
        /// Number of removed messages.
        count: usize,
        /// Number of bytes kept of the message before the removed messages; the note is appended to these bytes.
        keep: usize,
        /// Note which says that steps are missing. If the removed steps were summarised, the note contains the summary.
        note: String,
    },
    /// An observation was shortened to save space in the model's context.
    Shortened {
        /// Index of the message in the conversation, from 0.
        message: usize,
        /// The shortened content.
        content: String,
    },
    /// A notebook cell was run, by the agent or before the agent began. Only in tasks that record cells.
    Cell(CellRecord),
    /// The agent reports an answer.
    Answer {
        /// The answer verbatim.
        raw: String,
    },
    /// The agent stops.
    Ended {
        /// Why the attempt stopped.
        end: End,
        /// Details about the end, such as an error message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The harness has run an experiment again on the agent's code.
    Verification {
        /// The experiment's id.
        experiment: String,
        /// How the command ended.
        exit: crate::sandbox::Exit,
        /// Wall seconds.
        seconds: f64,
        /// Result of the experiment; absent if no result could be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The end of the command's standard error, if the command failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// Whether the result was taken from a cache, because the same code had been run before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
    },
}

impl Event {
    /// Builds the event of a model's reply in step `step`. `tokens` are in their recorded form; `waited` is the time
    /// spent waiting for the reply.
    #[must_use]
    pub fn reply(step: u32, reply: &Reply, tokens: Option<CallTokens>, waited: Duration, seed: Option<u64>) -> Self {
        Self::Reply {
            step,
            text: reply.text.clone(),
            reasoning: reply.reasoning.clone(),
            tool_calls: reply.tool_calls.clone(),
            thoughts: reply.thoughts.clone(),
            estimated: reply.estimated,
            cached: reply.cached,
            finish: reply.finish.clone(),
            weights: reply.weights.clone(),
            tokens,
            unanswered: reply.unanswered,
            usage: reply.usage,
            cost: reply.cost,
            seconds: round(waited),
            seed,
        }
    }
}

/// A line of a trajectory: an event and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimedEvent {
    /// Seconds since the attempt began.
    pub at: f64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// A trajectory that is being written. A failed write is remembered and makes the attempt fail, because an attempt
/// without a complete record is of no use.
pub struct Trajectory {
    path: PathBuf,
    file: Appender,
    begun: Instant,
    recent: RecentTokens,
    failed: Option<std::io::Error>,
}

impl Trajectory {
    /// Creates a trajectory file, replacing the trajectory of an interrupted attempt.
    ///
    /// # Errors
    /// Kind `Store` if the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = Appender::create(path).map_err(|error| {
            Error::store(format!("failed to create trajectory `{}`", path.display())).because(error)
        })?;
        Ok(Self { path: path.to_owned(), file, begun: Instant::now(), recent: RecentTokens::default(), failed: None })
    }

    /// Converts the tokens of a reply in step `step` to their recorded form.
    pub(in crate::agent) fn tokens(&mut self, step: u32, reply: &Reply) -> Option<CallTokens> {
        reply.tokens.as_ref().map(|tokens| self.recent.shorten(step, tokens))
    }

    /// Appends an event in a single write, so that the record of a killed run can be read up to its last event.
    pub fn push(&mut self, event: &Event) {
        #[derive(Serialize)]
        struct TimedEventLine<'a> {
            at: f64,
            #[serde(flatten)]
            event: &'a Event,
        }
        if self.failed.is_some() {
            return;
        }
        self.failed = self.file.append(&TimedEventLine { at: round(self.begun.elapsed()), event }).err();
    }

    /// The error of a failed write, if any. After such an error, the attempt should make no more model calls, because
    /// their cost would be wasted.
    #[must_use]
    pub const fn failed(&self) -> Option<&std::io::Error> {
        self.failed.as_ref()
    }

    /// Finishes the record and flushes it to disk.
    ///
    /// # Errors
    /// Kind `Store` if any write failed.
    pub fn finish(self) -> Result<()> {
        match self.failed.map_or_else(|| self.file.sync(), Err) {
            Ok(()) => Ok(()),
            Err(error) => {
                Err(Error::new(FailureKind::Store, format!("failed to write trajectory `{}`", self.path.display()))
                    .hint("free some space or choose another --runs folder, then `autoexperiment resume` the run")
                    .because(error))
            }
        }
    }

    /// Reads the events of a stored trajectory; an incomplete last line is dropped.
    ///
    /// # Errors
    /// Kind `Store` if the file cannot be read or a line before the last is invalid.
    pub fn read(path: &Path) -> Result<Vec<TimedEvent>> {
        let text = std::fs::read(path)
            .map_err(|error| Error::store("failed to read trajectory").at(path, None).because(error))?;
        let mut lines = Vec::new();
        for JsonLine { number, is_ended, value } in json_lines(&text) {
            match value {
                Ok(line) => lines.push(line),
                Err(_) if !is_ended => {}
                Err(error) => {
                    return Err(Error::store("broken line in trajectory").at(path, Some(number)).because(error));
                }
            }
        }
        Ok(lines)
    }
}

/// Converts a duration to seconds, rounded to microseconds.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

/// Converts a duration to seconds, rounded to milliseconds.
fn round(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
