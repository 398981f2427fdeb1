//! The record of one attempt: one JSON line an event, written as it happens.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::End;
use crate::error::{Error, Kind, Result};
use crate::files::{Appender, JsonLine, json_lines};
use crate::kernel::CellRecord;
use crate::model::{Message, Reply, Role, Sampling, Thought, Tool, ToolCall, Usage, Wishes};

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
        /// When, as the attempt's record says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started: Option<jiff::Timestamp>,
    },
    /// The harness says something to the model.
    Message {
        /// As whom.
        role: Role,
        /// Which call it answers, where a call could not be run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// What.
        content: String,
    },
    /// The model replies: a step.
    Reply {
        /// Number of the step, from 1.
        step: u32,
        /// The text.
        text: String,
        /// Reasoning shown apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        /// Tool calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// What goes back to the provider with the reply.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        thoughts: Vec<Thought>,
        /// Whether the tokens are estimated, because the provider reports none.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// Whether it was kept from an earlier run, so that it costs nothing.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
        /// Tokens.
        usage: Usage,
        /// Dollars.
        cost: f64,
        /// Seconds waited.
        seconds: f64,
        /// Seed that the model was asked to sample with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seed: Option<u64>,
    },
    /// A tool has run.
    Observation {
        /// Number of the step.
        step: u32,
        /// Which call, where the provider numbers them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The tool's name.
        tool: String,
        /// Its arguments.
        arguments: Value,
        /// What the model is shown.
        content: String,
        /// Seconds of tool time.
        seconds: f64,
    },
    /// A tool has asked the model something: no step, but tokens and money.
    ToolModelCall {
        /// Number of the step.
        step: u32,
        /// The tool's name.
        tool: String,
        /// What the model answered the tool.
        text: String,
        /// Tokens.
        usage: Usage,
        /// Dollars.
        cost: f64,
        /// Seconds waited.
        seconds: f64,
    },
    /// A call of the model got no reply: no step, but it may have cost tokens and money.
    CallFailed {
        /// Number of the last step.
        step: u32,
        /// The tool that asked, where it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// What went wrong.
        what: String,
        /// Tokens, as far as the provider says.
        usage: Usage,
        /// Their cost in dollars.
        cost: f64,
        /// Seconds waited.
        seconds: f64,
    },
    /// A reply could not be acted upon, or not upon all of it: malformed call, unknown tool, more calls than were asked
    /// for.
    FormatError {
        /// Number of the step.
        step: u32,
        /// What was wrong.
        what: String,
    },
    /// An agent that is a program of its own asks the model, through the gateway.
    Asked {
        /// Number of the call within the attempt, from 0.
        call: u32,
        /// So many messages of the conversation so far it goes on from. The others are gone: it has written them anew, or
        /// begun another conversation.
        kept: usize,
        /// What stands there after these.
        messages: Vec<Message>,
        /// The tools on offer, where they are others than at the call before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<Tool>>,
        /// How the model was to sample.
        sampling: Sampling,
        /// What else the agent asked for: `top_p`, `top_k`, penalties, texts to stop at, a choice of tools, a format.
        #[serde(default, skip_serializing_if = "Wishes::is_none")]
        wishes: Wishes,
    },
    /// An agent that is a program of its own asks for something that the model is not told. Said once an attempt.
    NotPassed {
        /// What.
        what: String,
    },
    /// The gateway has refused a call without asking the model.
    CallRefused {
        /// Why.
        what: String,
    },
    /// An agent that is a program of its own has ended.
    Program {
        /// How.
        exit: crate::sandbox::Exit,
        /// What it printed, the middle of what is long left out.
        stdout: String,
        /// Likewise on standard error.
        stderr: String,
        /// Seconds that it ran, without those that it waited for the model.
        seconds: f64,
    },
    /// The agent begins once more, with a conversation of its own.
    Try {
        /// Number of the try, from 1.
        number: u32,
        /// Why the one before failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Steps have left the conversation: messages `from`, `from + 1`, ... and so on, `count` of them.
    Forgotten {
        /// Number of the first message that leaves, from 0.
        from: usize,
        /// How many leave.
        count: usize,
        /// Bytes that stay of the message before them.
        keep: usize,
        /// What stands behind these: that steps are missing, with a summary of them where there is one.
        note: String,
    },
    /// An old observation was shortened, to save room in the model's context.
    Shortened {
        /// Number of the message in the conversation, from 0.
        message: usize,
        /// What is left of it.
        content: String,
    },
    /// A cell of a notebook was run, before the agent began or by it, in tasks that count cells.
    Cell(CellRecord),
    /// The agent reports.
    Answer {
        /// As it wrote it.
        raw: String,
    },
    /// The agent stops.
    Ended {
        /// Why.
        end: End,
        /// More about it.
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
        /// What was read, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The end of its standard error, when it failed.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        stderr: String,
        /// Whether it was not run: the same code had been run before.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
    },
}

impl Event {
    /// A model's reply as step `step`, after having waited for it.
    #[must_use]
    pub fn reply(step: u32, reply: &Reply, waited: Duration, seed: Option<u64>) -> Self {
        Self::Reply {
            step,
            text: reply.text.clone(),
            reasoning: reply.reasoning.clone(),
            tool_calls: reply.tool_calls.clone(),
            thoughts: reply.thoughts.clone(),
            estimated: reply.estimated,
            cached: reply.cached,
            usage: reply.usage,
            cost: reply.cost,
            seconds: round(waited),
            seed,
        }
    }
}

/// A line of a trajectory: an event and when it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimedEvent {
    /// Seconds since the attempt began.
    pub at: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// An open trajectory. A write that fails is kept and fails the attempt: the record is the product.
pub struct Trajectory {
    path: PathBuf,
    file: Appender,
    begun: Instant,
    failed: Option<std::io::Error>,
}

impl Trajectory {
    /// Starts a new trajectory file, replacing what an interrupted attempt left.
    ///
    /// # Errors
    /// Kind `Store` when the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = Appender::create(path).map_err(|error| {
            Error::store(format!("failed to create trajectory `{}`", path.display())).because(error)
        })?;
        Ok(Self { path: path.to_owned(), file, begun: Instant::now(), failed: None })
    }

    /// Appends an event. One write a line, so that a killed run can still be read up to its last event.
    pub fn push(&mut self, event: &Event) {
        #[derive(Serialize)]
        struct Out<'a> {
            at: f64,
            #[serde(flatten)]
            event: &'a Event,
        }
        if self.failed.is_some() {
            return;
        }
        self.failed = self.file.append(&Out { at: round(self.begun.elapsed()), event }).err();
    }

    /// Why the record can no longer be written: nothing more should be paid for.
    #[must_use]
    pub const fn failed(&self) -> Option<&std::io::Error> {
        self.failed.as_ref()
    }

    /// Ends the record, flushed to disk.
    ///
    /// # Errors
    /// Kind `Store` when any write had failed.
    pub fn finish(self) -> Result<()> {
        match self.failed.map_or_else(|| self.file.sync(), Err) {
            Ok(()) => Ok(()),
            Err(error) => Err(Error::new(Kind::Store, format!("failed to write trajectory `{}`", self.path.display()))
                .hint("free some space or choose another --runs folder, then `autoexperiment resume` the run")
                .because(error)),
        }
    }

    /// The events of a stored trajectory; a torn last line is dropped.
    ///
    /// # Errors
    /// Kind `Store` when the file cannot be read or a line before the last is broken.
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

/// Seconds to the microsecond: what a record says of tools and calls.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

/// Milliseconds are enough.
fn round(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}
