//! Replies that did not end normally: the model declined, a filter withheld the reply, the provider failed, the context
//! was full, or the provider paused the reply.
//!
//! `genai` reads the stop reason, but not the text of a refusal and not an error that is inside an element of
//! `choices`. So both are read here from the raw body or from the stream's events.

use std::sync::{Mutex, MutexGuard, PoisonError};

use genai::adapter::AdapterKind;
use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef, StopReason};
use serde_json::{Value, json};

use super::failure::FailedTry;
use super::streamed_calls::StreamedCalls;
use super::tokens::TokenCollector;
use super::{ModelError, Reply, reasoning, responses};

/// Stop reasons for a context that was full before the reply was complete: Anthropic's and Z.ai's, then Mistral's.
const FULL: [&str; 2] = ["model_context_window_exceeded", "model_length"];

/// Beginning of the error for a reply that ended because the context was full.
pub(super) const CONTEXT_FULL: &str = "the model's context was full";

/// Anthropic's stop reason for a reply that the next call should continue ("Handling stop reasons" in its
/// documentation).
const PAUSED: &str = "pause_turn";

/// A refusal and an error, which providers send separately from the reply's content.
#[derive(Debug, Default)]
pub(super) struct ReplyErrors {
    /// The text with which the model declines to answer; empty if it does not decline.
    refusal: String,
    /// The provider's error.
    error: Option<Value>,
}

/// A reply, classified by how it ended.
#[derive(Debug)]
pub(super) enum ClassifiedReply {
    /// A complete reply.
    Whole(Reply),
    /// The beginning of a reply, to be continued by the next call.
    Paused(Reply),
}

impl ClassifiedReply {
    /// Returns the reply, even if it is incomplete.
    pub(super) fn into_reply(self) -> Reply {
        match self {
            Self::Whole(reply) | Self::Paused(reply) => reply,
        }
    }
}

impl ReplyErrors {
    /// Reads a refusal and an error from a whole body.
    pub(super) fn in_body(kind: AdapterKind, body: &Value) -> Self {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind {
            AdapterKind::OpenAI => Self {
                refusal: text("/choices/0/message/refusal"),
                error: body.pointer("/choices/0/error").filter(|error| !error.is_null()).cloned(),
            },
            AdapterKind::OpenAIResp => Self { refusal: responses::refusal(body), error: None },
            AdapterKind::Anthropic => Self { refusal: text("/stop_details/explanation"), error: None },
            AdapterKind::Gemini => Self { refusal: text("/candidates/0/finishMessage"), error: None },
            _ => Self::default(),
        }
    }

    /// Classifies a reply; a refusal, a failure or a full context becomes an error.
    pub(super) fn classify(
        self,
        kind: AdapterKind,
        mut reply: Reply,
        stop: Option<&StopReason>,
    ) -> Result<ClassifiedReply, FailedTry> {
        let reason = stop.map_or("", StopReason::raw).to_owned();
        reply.finish = Some(reason.clone()).filter(|reason| !reason.is_empty());
        let usage = reply.usage;
        let failed = |failure: FailedTry| {
            let unanswered = if usage.is_zero() { failure.unanswered } else { 0 };
            Err(FailedTry { usage, unanswered, ..failure })
        };
        let lasting = |error: ModelError| failed(FailedTry::lasting(error));
        if let Some(error) = self.error {
            return failed(FailedTry::from_odd_body(&json!({ "error": error }), "it failed", None, false));
        }
        let is_filtered = matches!(stop, Some(StopReason::ContentFilter(_)));
        let declines = !self.refusal.is_empty() && reply.tool_calls.is_empty();
        // Only OpenAI's text in `refusal` means that the model declines to answer. Other providers' texts are remarks
        // on how the reply ended.
        let speaks = matches!(kind, AdapterKind::OpenAI | AdapterKind::OpenAIResp);
        if is_filtered || declines && speaks {
            let reason = if is_filtered { format!("{reason}: ") } else { String::new() };
            let said = [self.refusal.trim(), reply.text.trim()].into_iter().find(|text| !text.is_empty());
            return lasting(ModelError::Refused(format!("{reason}{}", said.unwrap_or("the reply was withheld"))));
        }
        if FULL.contains(&reason.as_str()) {
            let what = format!("{CONTEXT_FULL} before its reply was complete ({reason})");
            return lasting(ModelError::ContextLength(what));
        }
        if reason == "error" {
            return failed(FailedTry::unanswered("the provider ended the reply with an error"));
        }
        if reason == PAUSED && kind == AdapterKind::Anthropic && reply.tool_calls.is_empty() {
            return Ok(ClassifiedReply::Paused(reply));
        }
        reply.cut |= matches!(stop, Some(StopReason::MaxTokens(_)));
        Ok(ClassifiedReply::Whole(reply))
    }
}

/// Collects from a stream's events what `genai` does not read.
#[derive(Debug, Default)]
pub(super) struct StreamEvents(Mutex<CollectedEvents>);

/// The data collected from a stream's events.
#[derive(Debug, Default)]
pub(super) struct CollectedEvents {
    pub(super) errors: ReplyErrors,
    pub(super) tokens: TokenCollector,
    /// Tool calls of OpenAI's protocol.
    pub(super) calls: StreamedCalls,
    /// The first piece of a message that contains reasoning in a field of its own.
    pub(super) reasoning: Value,
}

impl StreamEvents {
    fn lock(&self) -> MutexGuard<'_, CollectedEvents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes everything collected so far.
    pub(super) fn take(&self) -> CollectedEvents {
        std::mem::take(&mut *self.lock())
    }
}

impl ChatFrameSink for StreamEvents {
    fn on_frame(&self, _stream: &FrameCtx, frame: RawFrameRef<'_>) {
        let mut collected = self.lock();
        let CollectedEvents { errors: said, tokens, calls, reasoning } = &mut *collected;
        let has_tokens = tokens.concerns(frame.data);
        let has_reasoning = reasoning.is_null() && frame.data.contains("\"reasoning");
        let words = ["refusal", "\"error\"", "finishMessage", "tool_calls"];
        if !has_tokens && !has_reasoning && !words.iter().any(|word| frame.data.contains(word)) {
            return;
        }
        let Some(event) = frame.json() else { return };
        if has_tokens {
            tokens.add(&event);
        }
        if let Some(delta) = event.pointer("/choices/0/delta") {
            calls.add(delta);
            if has_reasoning && reasoning::is_in(delta) {
                *reasoning = delta.clone();
            }
        }
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        for pointer in ["/choices/0/delta/refusal", "/delta/stop_details/explanation", "/candidates/0/finishMessage"] {
            said.refusal.push_str(text(pointer));
        }
        if let Some(error) = event.pointer("/choices/0/error").filter(|error| !error.is_null()) {
            said.error = Some(error.clone());
        }
    }
}
