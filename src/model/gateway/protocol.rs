//! The protocols that programs speak: each reads requests and writes replies in its own words.

use serde_json::Value;

use super::stops::stop_at;
use super::{Finish, Given, Head, Read, Refusal, anthropic, openai};

/// Which protocol a call is made in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Protocol {
    OpenAi,
    Anthropic,
}

impl Protocol {
    /// Reads a request.
    pub(super) fn read(self, body: &[u8]) -> Result<Read, Refusal> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| Refusal::invalid(format!("the request is not JSON: {error}")))?;
        match self {
            Self::OpenAi => openai::read(&body),
            Self::Anthropic => anthropic::read(&body),
        }
    }

    /// A reply as one body.
    pub(super) fn body(self, head: &Head, mut given: Given, stops: &[String]) -> Value {
        let finish = Finish::of(&given);
        given.reply.text.truncate(stop_at(&given.reply.text, stops).len());
        match self {
            Self::OpenAi => openai::body(head, &given.reply, finish),
            Self::Anthropic => anthropic::body(head, &given.reply, finish),
        }
    }

    /// A refusal as a body.
    pub(super) fn error(self, refusal: &Refusal) -> Value {
        match self {
            Self::OpenAi => openai::error(refusal),
            Self::Anthropic => anthropic::error(refusal),
        }
    }

    /// A refusal as the last events of a stream.
    pub(super) fn error_events(self, refusal: &Refusal) -> String {
        match self {
            Self::OpenAi => openai::error_events(refusal),
            Self::Anthropic => anthropic::error_events(refusal),
        }
    }

    /// What is sent while there is nothing to send.
    pub(super) const fn patience(self) -> &'static str {
        match self {
            Self::OpenAi => ": ping\n\n",
            Self::Anthropic => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        }
    }
}
