//! The protocols that external agents use. Each has its own format of requests and replies.

use serde_json::Value;

use super::stream::EventWriter;
use super::{AnsweredCall, CallContext, Finish, ParsedRequest, Refusal, anthropic, gemini, openai, responses};

/// The protocol of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireProtocol {
    /// OpenAI's Chat Completions API.
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Messages,
    /// Gemini's `generateContent` API.
    Gemini,
}

impl WireProtocol {
    /// Parses a request.
    pub(super) fn read(self, body: &[u8]) -> Result<ParsedRequest, Refusal> {
        let body: Value = serde_json::from_slice(body)
            .map_err(|error| Refusal::invalid(format!("the request is not JSON: {error}")))?;
        match self {
            Self::Chat => openai::read(&body),
            Self::Responses => responses::read(&body),
            Self::Messages => anthropic::read(&body),
            Self::Gemini => gemini::read(&body),
        }
    }

    /// Writes a reply as the body of a response that is not streamed.
    pub(super) fn body(self, head: CallContext, mut given: AnsweredCall, stops: &[String]) -> Value {
        let finish = Finish::apply(&mut given, stops);
        match self {
            Self::Chat => openai::body(&head, &given.reply, &finish),
            Self::Responses => responses::body(head, &given.reply, &finish),
            Self::Messages => anthropic::body(&head, &given.reply, &finish),
            Self::Gemini => gemini::body(&head, &given.reply, &finish),
        }
    }

    /// Returns the writer of a streamed reply.
    pub(super) fn events(self, head: CallContext) -> Box<dyn EventWriter> {
        match self {
            Self::Chat => Box::new(openai::OpenAiChunks(head)),
            Self::Responses => Box::new(responses::ResponseItems::new(head)),
            Self::Messages => Box::new(anthropic::Blocks::new(head)),
            Self::Gemini => Box::new(gemini::GeminiChunks::new(head)),
        }
    }

    /// Returns the body of the HTTP answer to a refused request.
    pub(super) fn error(self, refusal: &Refusal) -> Value {
        match self {
            Self::Chat | Self::Responses => openai::error(refusal),
            Self::Messages => anthropic::error(refusal),
            Self::Gemini => gemini::error(refusal),
        }
    }

    /// Writes a refusal as the last events of a stream.
    pub(super) fn error_events(self, refusal: &Refusal) -> String {
        match self {
            Self::Chat => openai::error_events(refusal),
            Self::Responses => responses::error_events(refusal),
            Self::Messages => anthropic::error_events(refusal),
            Self::Gemini => format!("data: {}\n\n", gemini::error(refusal)),
        }
    }

    /// Returns the keep-alive event, sent while the model is silent.
    pub(super) const fn patience(self) -> &'static str {
        match self {
            Self::Messages => "event: ping\ndata: {\"type\": \"ping\"}\n\n",
            Self::Chat | Self::Responses | Self::Gemini => ": ping\n\n",
        }
    }
}
