//! The gateway: an HTTP server for agents that are programs of their own, speaking the protocols of OpenAI (chat
//! completions and responses), Anthropic and Gemini.
//!
//! Whatever it is asked becomes a [`Request`] for a [`Model`](super::Model), and the reply is written in the protocol
//! that was asked in. So an agent of one provider's protocol can be tried with another provider's model, and prices,
//! retries, recordings and replays are those of every other agent. The gateway itself holds no key and no budget: each
//! call is handed on as an [`Ask`], and whoever takes it answers or refuses. What cannot be handed on is told of, and where
//! the answer would mean something else without it, refused here.

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

/// What becomes of an agent's requests.
#[derive(Debug)]
pub enum Asked {
    /// A call, which waits for its answer.
    Call(Box<Ask>),
    /// A request that was refused because it cannot be passed on.
    Refused(Refusal),
}

/// A call that an agent makes.
#[derive(Debug)]
pub struct Ask {
    /// What is asked, in our own words. Seed and number of the call are not the agent's to choose.
    pub request: Request,
    /// What the agent asks for beside that and nobody is told.
    pub left_out: Vec<String>,
    /// Where the reply goes piece by piece, where the agent wants to see it come.
    pub pieces: Option<Pieces>,
    /// Where the answer goes. Closed when the agent has gone away meanwhile.
    pub answer: oneshot::Sender<Result<Given, Refusal>>,
}

/// An answered call.
#[derive(Debug)]
pub struct Given {
    /// The reply.
    pub reply: Reply,
    /// Most tokens that it could have: fewer, it may be, than were asked for.
    pub most: Option<u32>,
    /// The text by which the model or its provider declines to answer.
    pub refusal: Option<String>,
}

/// Why a call is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Of which kind.
    pub why: Why,
    /// For the agent, and whoever reads its logs.
    pub message: String,
}

/// Kinds of refusals. Agents are asked not to retry any of them but [`Why::Unavailable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The budget is used up.
    Budget,
    /// The request cannot be read, or asks for what the gateway does not have.
    Invalid,
    /// The conversation is too long for the model.
    ContextLength,
    /// The provider does not answer this conversation. The agent is told so by a reply that declines.
    Filtered,
    /// The reply broke off after its beginning was passed on: another call may be answered.
    Unavailable,
    /// Nothing will be answered any more.
    Closed,
}

impl Why {
    /// The HTTP status. A client tries 402, 429 and everything from 500 on again, some for minutes; 403 it takes.
    const fn status(self) -> u16 {
        match self {
            Self::Budget | Self::Closed => 403,
            Self::Invalid | Self::ContextLength | Self::Filtered => 400,
            Self::Unavailable => 503,
        }
    }
}

/// Characters of the longest refusal: it quotes what a stranger wrote.
const LONGEST_REFUSAL: usize = 500;

impl Refusal {
    fn invalid(message: impl Into<String>) -> Self {
        Self { why: Why::Invalid, message: message.into().chars().take(LONGEST_REFUSAL).collect() }
    }
}

/// A request as a protocol's reader gives it back.
#[derive(Debug)]
struct Read {
    request: Request,
    stops: Vec<String>,
    /// The model's name as the agent knows it, which is repeated to it.
    model: String,
    streams: bool,
    /// Whether a stream ends with the tokens used.
    counts: bool,
    /// Whether the agent wants to see thoughts.
    thinks: bool,
    /// Tools that are no plain functions in the agent's protocol, by the names that the model knows them by.
    kinds: HashMap<String, Kind>,
    /// What is asked for and not passed on.
    left_out: Vec<String>,
}

/// What a tool is that is no plain function, in OpenAI's responses.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// One that takes a text as it stands.
    Custom,
    /// A function of this name in a namespace.
    In { namespace: String, name: String },
}

/// Why a reply ended, in no protocol's words.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finish {
    Stop,
    /// At this text.
    Stopped(String),
    Length,
    ToolCalls,
    /// The model or its provider declined, with this text.
    Refused(String),
}

impl Finish {
    fn of(Given { reply, most, refusal }: &Given, stops: &[String]) -> Self {
        if let Some(refusal) = refusal {
            Self::Refused(refusal.clone())
        } else if reply.cut || most.is_some_and(|most| reply.usage.output >= u64::from(most)) {
            Self::Length
        } else if !reply.tool_calls.is_empty() {
            Self::ToolCalls
        } else {
            stops::which(&reply.text, stops).map_or(Self::Stop, |stop| Self::Stopped(stop.to_owned()))
        }
    }
}

/// Which call an answer is to, as its protocol says it.
#[derive(Debug, Clone, Default)]
struct Head {
    model: String,
    /// Number of the call at this gateway, from 0.
    number: u64,
    counts: bool,
    thinks: bool,
    kinds: HashMap<String, Kind>,
}

impl Head {
    /// By what the thoughts of this reply are known, when they come back.
    fn token(&self) -> String {
        thoughts::token(self.number)
    }
}
