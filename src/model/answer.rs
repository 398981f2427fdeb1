//! One try of a call: its time limit, and its answer, whole or in pieces, as a reply.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use genai::ModelIden;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason};
use tokio::sync::mpsc::UnboundedSender;

use super::failure::Failure;
use super::provider::{Provider, told_nothing};
use super::{ModelError, Piece, Reply, Request, Usage, responses, wire};

/// What is said of a stream that ends before its reply does, or that is none.
const BROKEN_OFF: &str = "the stream breaks off";

impl Provider {
    /// One try of a call, with the conversation as `genai` has it.
    pub(super) async fn ask(
        &self,
        request: &Request,
        chat: ChatRequest,
        options: &ChatOptions,
        pieces: Option<&UnboundedSender<Piece>>,
    ) -> Result<Reply, Failure> {
        let settings = &self.settings;
        // What a program of its own has written may be wrong at its first call, too.
        let first = request.call == 0 && !request.foreign;
        let model = ModelIden::new(settings.target.kind, settings.target.model.as_str());
        let mut sent = false;
        let answer = async {
            match pieces {
                None => self.whole(model, chat, options, first).await,
                Some(pieces) => {
                    let streamed = self.in_pieces(model.clone(), chat.clone(), options, first, pieces, &mut sent).await;
                    match streamed {
                        Err(failure) if !sent && does_not_stream(&failure) => {
                            self.whole(model, chat, options, first).await
                        }
                        streamed => streamed,
                    }
                }
            }
        };
        // Counts and items are a stranger's, and `genai` adds and unpacks them as they come.
        let answer = AssertUnwindSafe(answer).catch_unwind();
        let answer = match tokio::time::timeout(settings.request_timeout, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Failure::unanswered("the answer cannot be read: its reader broke down over it")),
            Err(_) => {
                let seconds = settings.request_timeout.as_secs_f64();
                Err(Failure::unanswered(format!("no whole answer within {seconds} s")))
            }
        };
        let (mut reply, told) = answer.map_err(|failure| {
            // What no call can have taken was not charged.
            let usage = Some(failure.usage).filter(|usage| wire::is_possible(usage, request)).unwrap_or_default();
            Failure { retry: failure.retry && !sent, usage, ..failure }
        })?;
        if let Some(absurd) = [reply.usage, told].iter().find(|usage| !wire::is_possible(usage, request)) {
            let what = format!(
                "the server says that one call took {} tokens, which no model takes for it: what it cost is not known",
                absurd.input.max(absurd.output)
            );
            return Err(Failure::lasting(ModelError::Unavailable(what)));
        }
        if told_nothing(&reply.usage) && !told_nothing(&told) {
            (reply.usage, reply.estimated) = (told, true);
        }
        name_calls(&mut reply);
        Ok(reply)
    }

    /// The reply as one answer, and the tokens that the provider reports in whichever shape.
    async fn whole(
        &self,
        model: ModelIden,
        chat: ChatRequest,
        options: &ChatOptions,
        first: bool,
    ) -> Result<(Reply, Usage), Failure> {
        let (kind, key) = (self.settings.target.kind, self.settings.key.as_deref());
        match self.client.exec_chat(model, chat, Some(options)).await {
            Ok(response) => {
                let body = response.captured_raw_body.as_ref();
                let told = body.map(wire::reported_usage).unwrap_or_default();
                let lacks_choices = |body: &&serde_json::Value| body.pointer("/choices/0").is_none();
                if kind == AdapterKind::OpenAI
                    && let Some(body) = body.filter(lacks_choices)
                {
                    return Err(Failure::from_odd_body(body, "no choices", key, first));
                }
                let stop = response.stop_reason.clone();
                let own = body.filter(|_| kind == AdapterKind::OpenAIResp);
                if let Some(body) = own.filter(|body| body.get("output").is_none() || body["status"] == "failed") {
                    return Err(Failure::from_odd_body(body, "no output", key, first));
                }
                let reply = match own.and_then(responses::reply) {
                    Some(reply) => reply,
                    None => wire::reply(kind, response),
                };
                Ok((unless_withheld(reply, stop)?, told))
            }
            Err(genai::Error::ChatResponseGeneration { ref response_body, .. })
                if kind == AdapterKind::OpenAI
                    && let Some(reply) = wire::lenient_openai_reply(response_body) =>
            {
                Ok((reply, Usage::default()))
            }
            Err(error) => Err(Failure::from_genai(&error, key, first)),
        }
    }

    /// The reply as a stream. `sent` says whether a piece has gone out.
    async fn in_pieces(
        &self,
        model: ModelIden,
        chat: ChatRequest,
        options: &ChatOptions,
        first: bool,
        pieces: &UnboundedSender<Piece>,
        sent: &mut bool,
    ) -> Result<(Reply, Usage), Failure> {
        let (kind, key) = (self.settings.target.kind, self.settings.key.as_deref());
        let failed = |error: genai::Error| Failure::from_genai(&error, key, first);
        let mut options = wire::streaming(kind, options);
        let collected = Arc::new(responses::Collected::default());
        if kind == AdapterKind::OpenAIResp {
            options = options.with_raw_frame_sink_arc(collected.clone());
        }
        let mut stream = self.client.exec_chat_stream(model, chat, Some(&options)).await.map_err(failed)?.stream;
        let (mut text, mut thoughts) = (String::new(), String::new());
        while let Some(event) = stream.next().await {
            let event = match event {
                // It does not say why it breaks off, so it is asked for as a whole.
                Err(genai::Error::ChatResponse { ref body, .. })
                    if kind == AdapterKind::Gemini && body.get("finishReason").is_some() =>
                {
                    break;
                }
                Err(error) => {
                    let told = collected.failed();
                    let told = told.map(|body| Failure::from_odd_body(&body, "it failed", key, first));
                    return Err(told.unwrap_or_else(|| failed(error)));
                }
                Ok(event) => event,
            };
            let piece = match event {
                ChatStreamEvent::Chunk(chunk) => {
                    text.push_str(&chunk.content);
                    Piece::Text(chunk.content)
                }
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    thoughts.push_str(&chunk.content);
                    Piece::Reasoning(chunk.content)
                }
                ChatStreamEvent::End(end) => {
                    let stop = end.captured_stop_reason.clone();
                    let reply = match kind {
                        // Their readers take the end of the connection for that of the reply.
                        AdapterKind::Gemini if stop.is_none() => break,
                        AdapterKind::OpenAIResp => match collected.reply() {
                            Some(reply) => reply,
                            None => break,
                        },
                        kind => wire::streamed_reply(kind, text, thoughts, end),
                    };
                    return Ok((unless_withheld(reply, stop)?, Usage::default()));
                }
                _ => continue,
            };
            *sent = true;
            // Whoever listened has gone away; the reply is paid for all the same.
            let _ = pieces.send(piece);
        }
        Err(Failure::unanswered(BROKEN_OFF.to_owned()))
    }
}

/// Whether another way of asking may help: some models stream for some accounts only, some servers not at all.
fn does_not_stream(failure: &Failure) -> bool {
    let said = failure.error.to_string();
    said.contains(BROKEN_OFF) || (!failure.retry && said.contains("stream"))
}

/// Refuses an empty reply that ends because a filter withheld it.
fn unless_withheld(mut reply: Reply, stop: Option<StopReason>) -> Result<Reply, Failure> {
    reply.cut |= matches!(stop, Some(StopReason::MaxTokens(_)));
    match stop {
        Some(StopReason::ContentFilter(reason)) if reply.text.is_empty() && reply.tool_calls.is_empty() => {
            Err(Failure {
                usage: reply.usage,
                ..Failure::lasting(ModelError::Refused(format!("the reply was withheld: {reason}")))
            })
        }
        _ => Ok(reply),
    }
}

/// Gives calls without an id, or with another one's, one of their own: by it their results are told apart.
fn name_calls(reply: &mut Reply) {
    let mut known = HashSet::new();
    for (place, call) in reply.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() || known.contains(&call.id) {
            call.id = format!("call-{place}");
        }
        while !known.insert(call.id.clone()) {
            call.id.push_str("-again");
        }
    }
}
