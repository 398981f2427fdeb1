//! The gateway: an HTTP server for external agents, with the protocols of OpenAI (Chat Completions and Responses),
//! Anthropic and Gemini.
//!
//! The gateway turns each call into a [`Request`] for a [`Model`](super::Model), and writes the reply in the protocol
//! of the call. So an agent can run with any provider's model, and its calls use the same prices, retries, recordings
//! and replays as those of all other agents. The gateway holds no key and no budget: it sends each call to the harness
//! as an [`AgentCall`], and the harness answers or refuses it. Parts of a call that cannot be passed on are reported to
//! the harness; if the answer would be wrong without them, the gateway refuses the call.

mod answers;
mod anthropic;
mod broken;
mod coming;
mod gemini;
mod openai;
mod parts;
mod protocol;
mod responses;
mod serve;
mod shared;
mod stops;
mod stream;
mod thoughts;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use tokio::sync::oneshot;

use super::{Pieces, Reply, Request};

pub use serve::serve;

/// The model in the gateway's list of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    /// The name under which the model is listed.
    pub name: String,
    /// Maximum tokens of prompt and reply together, if known.
    pub context: Option<u64>,
}

/// A request of an agent.
#[derive(Debug)]
pub enum GatewayRequest {
    /// A call that waits for its answer.
    Call(Box<AgentCall>),
    /// A request that the gateway refused because it cannot be passed on.
    Refused(Refusal),
}

/// A call made by an agent.
#[derive(Debug)]
pub struct AgentCall {
    /// The request. Its seed and call number are set by the harness, not by the agent.
    pub request: Request,
    /// Descriptions of the parts of the call that are not passed on.
    pub left_out: Vec<String>,
    /// Where to send the reply piece by piece, if the agent asked for a stream.
    pub pieces: Option<Pieces>,
    /// Where to send the answer; closed if the agent has disconnected.
    pub answer: oneshot::Sender<Result<AnsweredCall, Refusal>>,
}

/// The harness's answer to a call.
#[derive(Debug)]
pub struct AnsweredCall {
    /// The reply.
    pub reply: Reply,
    /// Maximum number of tokens of the reply, which may be lower than the agent asked for.
    pub most: Option<u32>,
    /// The text with which the model or its provider declined to answer.
    pub refusal: Option<String>,
}

/// Why a call is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of refusal.
    pub why: RefusalKind,
    /// Explanation for the agent, which may log it.
    pub message: String,
}

/// Kinds of refusals. [`RefusalKind::Unavailable`] is the only one that agents should retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The budget is used up.
    Budget,
    /// The request is malformed, or asks for something the gateway does not support.
    Invalid,
    /// The conversation is too long for the model.
    ContextLength,
    /// The provider's filter blocked this conversation. The agent gets a reply in which the model declines.
    Filtered,
    /// The reply broke off after part of it was sent; another call may succeed.
    Unavailable,
    /// The attempt is over; no further call will be answered.
    Closed,
}

impl RefusalKind {
    /// Returns the HTTP status. Clients retry 402, 429, and 500 and above, some of them for minutes. They do not retry
    /// 403, so this is the status for a used-up budget and for the end of the attempt.
    const fn status(self) -> u16 {
        match self {
            Self::Budget | Self::Closed => 403,
            Self::Invalid | Self::ContextLength | Self::Filtered => 400,
            Self::Unavailable => 503,
        }
    }
}

/// Maximum characters of a refusal, which may quote untrusted text.
const LONGEST_REFUSAL: usize = 500;

impl Refusal {
    fn invalid(message: impl Into<String>) -> Self {
        Self { why: RefusalKind::Invalid, message: message.into().chars().take(LONGEST_REFUSAL).collect() }
    }
}

/// A parsed request, independent of the protocol.
#[derive(Debug)]
struct ParsedRequest {
    request: Request,
    stops: Vec<String>,
    /// The model's name as sent by the agent; the reply repeats it.
    model: String,
    streams: bool,
    /// Whether a stream should end with the token counts.
    counts: bool,
    /// Whether the agent wants to see thoughts.
    thinks: bool,
    /// The agent's tools that are not plain functions, by the names under which the model sees them.
    kinds: HashMap<String, SpecialTool>,
    /// Descriptions of the parts of the request that are not passed on.
    left_out: Vec<String>,
}

/// A tool of OpenAI's Responses API that is not a function for the agent, but is offered to the model as one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SpecialTool {
    form: ToolForm,
    namespace: Option<String>,
    /// The agent's name for the tool.
    name: String,
}

/// The form in which an agent wants a tool to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolForm {
    /// A function with JSON arguments.
    Function,
    /// A tool that takes free text.
    Custom,
    /// The tool `tool_search` of the Responses API, with which the agent itself searches for more tools.
    Search,
}

/// Why a reply ended, independent of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finish {
    Stop,
    /// The reply was ended at this stop text.
    Stopped(String),
    Length,
    ToolCalls,
    /// The model or its provider declined with this text.
    Refused(String),
}

impl Finish {
    /// Ends a reply at the first stop text, as a provider does, and returns why the reply ended. If a stop text was
    /// found, the reply's tool calls are dropped, because they come after its text.
    fn apply(AnsweredCall { reply, most, refusal }: &mut AnsweredCall, stops: &[String]) -> Self {
        if let Some(refusal) = refusal {
            Self::Refused(refusal.clone())
        } else if let Some(stop) = stops::which(&reply.text, stops) {
            reply.text.truncate(stops::stop_at(&reply.text, stops).len());
            reply.tool_calls.clear();
            Self::Stopped(stop.to_owned())
        } else if reply.reaches(*most) {
            Self::Length
        } else if reply.tool_calls.is_empty() {
            Self::Stop
        } else {
            Self::ToolCalls
        }
    }
}

/// Facts about a call that are needed to write its answer.
#[derive(Debug, Clone, Default)]
struct CallContext {
    model: String,
    /// Number of this call at the gateway, from 0.
    number: u64,
    counts: bool,
    thinks: bool,
    kinds: HashMap<String, SpecialTool>,
}

impl CallContext {
    /// Returns the placeholder text that represents this reply's thoughts in later requests (see [`thoughts`]).
    fn token(&self) -> String {
        thoughts::token(self.number)
    }
}
