//! Makes one try of a model call, within its time limit. Reads the answer, whole or streamed, and converts it to a
//! reply.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::{FutureExt, StreamExt};
use genai::ModelIden;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason};

use super::failure::{FailedTry, INVALID_CALL};
use super::finish::{ClassifiedReply, CollectedEvents, ReplyErrors, StreamEvents};
use super::provider::{Provider, told_nothing};
use super::tokens::TokenCollector;
use super::{ModelError, Pieces, Reply, ReplyPiece, Request, Thought, Usage, reasoning, responses, wire};

/// Error text for a stream that ends early or is not a valid event stream.
const BROKEN_OFF: &str = "the stream breaks off";

/// Suffix of [`BROKEN_OFF`] for a stream that ended without any text or thoughts, perhaps because the server cannot
/// stream.
const NEVER_BEGAN: &str = "before its beginning";

impl Provider {
    /// Makes one try of a model call; `chat` is the conversation in `genai`'s types.
    pub(super) async fn ask(
        &self,
        request: &Request,
        chat: ChatRequest,
        options: &ChatOptions,
        pieces: Option<&Pieces>,
    ) -> Result<ClassifiedReply, FailedTry> {
        let settings = &self.settings;
        // An attempt's first request contains nothing that a model wrote. If the provider refuses this request, the
        // set-up is at fault, unless an external agent wrote the request.
        let first = request.call == 0 && !request.foreign;
        let model = ModelIden::new(settings.target.kind, &*wire::genai_name(&settings.target));
        let answer = async {
            match pieces {
                None => self.whole(model, chat, options, first).await,
                Some(pieces) => {
                    let streamed = self.in_pieces(model.clone(), chat.clone(), options, first, pieces).await;
                    match streamed {
                        Err(failure) if does_not_stream(&failure) && pieces.take_back() => {
                            self.whole(model, chat, options, first).await
                        }
                        streamed => streamed,
                    }
                }
            }
        };
        // `genai` may panic over invalid items or counts in this untrusted answer, for instance when it adds token
        // counts.
        let answer = AssertUnwindSafe(answer).catch_unwind();
        let answer = match tokio::time::timeout(settings.request_timeout, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(FailedTry::unanswered("the answer cannot be read: parsing it caused a panic")),
            Err(_) => {
                let seconds = settings.request_timeout.as_secs_f64();
                Err(FailedTry::unanswered(format!("no whole answer within {seconds} s")))
            }
        };
        let answer = match answer {
            Err(FailedTry { generation: Some(text), usage, .. }) => {
                let finish = Some(INVALID_CALL.to_owned());
                Ok((ClassifiedReply::Whole(Reply { text, finish, usage, ..Reply::default() }), Usage::default()))
            }
            answer => answer,
        };
        let (ending, told) = answer.map_err(|failure| {
            // Ignore a reported number of tokens that is impossible for this call.
            let usage = Some(failure.usage).filter(|usage| wire::is_possible(usage, request)).unwrap_or_default();
            FailedTry { retry: failure.retry && pieces.is_none_or(Pieces::take_back), usage, ..failure }
        })?;
        let (mut reply, is_paused) = match ending {
            ClassifiedReply::Whole(reply) => (reply, false),
            ClassifiedReply::Paused(reply) => (reply, true),
        };
        if let Some(absurd) = [reply.usage, told].iter().find(|usage| !wire::is_possible(usage, request)) {
            let what = format!(
                "the server reports {} tokens for one call, more than any model can use for it: the cost is unknown",
                absurd.input.max(absurd.output)
            );
            return Err(FailedTry::lasting(ModelError::Unavailable(what)));
        }
        if told_nothing(&reply.usage) && !told_nothing(&told) {
            (reply.usage, reply.estimated) = (told, true);
        }
        if settings.target.kind == AdapterKind::OpenAI && reasoning::take_from_text(&mut reply) {
            self.opens_reasoning.store(true, Ordering::Relaxed);
        }
        name_calls(&mut reply, request);
        Ok(if is_paused { ClassifiedReply::Paused(reply) } else { ClassifiedReply::Whole(reply) })
    }

    /// Asks for the reply as one answer. Also returns the tokens and log-probabilities found in the raw body.
    async fn whole(
        &self,
        model: ModelIden,
        chat: ChatRequest,
        options: &ChatOptions,
        first: bool,
    ) -> Result<(ClassifiedReply, Usage), FailedTry> {
        let (kind, key) = (self.settings.target.kind, self.settings.key.as_deref());
        match self.client.exec_chat(model, chat, Some(options)).await {
            Ok(response) => {
                let body = response.captured_raw_body.as_ref();
                let told = body.map(wire::reported_usage).unwrap_or_default();
                if let Some(message) = body.and_then(message_in) {
                    self.reasoning.learn(message);
                }
                let lacks_choices = |body: &&serde_json::Value| body.pointer("/choices/0").is_none();
                if kind == AdapterKind::OpenAI
                    && let Some(body) = body.filter(lacks_choices)
                {
                    return Err(FailedTry::from_odd_body(body, "no choices", key, first));
                }
                let said = body.map(|body| ReplyErrors::in_body(kind, body)).unwrap_or_default();
                let mut stop = response.stop_reason.clone();
                let own = body.filter(|_| kind == AdapterKind::OpenAIResp);
                if let Some(body) = own.filter(|body| body.get("output").is_none() || body["status"] == "failed") {
                    return Err(FailedTry::from_odd_body(body, "no output", key, first));
                }
                let tokens = body.map(collected).unwrap_or_default();
                let mut reply = match own.and_then(|body| Some((responses::reply(body)?, responses::stop_reason(body))))
                {
                    Some((reply, reason)) => {
                        stop = reason;
                        reply
                    }
                    None => wire::reply(kind, response),
                };
                tokens.complete(&mut reply);
                Ok((said.classify(kind, reply, stop.as_ref())?, told))
            }
            Err(genai::Error::ChatResponseGeneration { ref response_body, .. })
                if kind == AdapterKind::OpenAI
                    && let Some(mut reply) = wire::lenient_openai_reply(response_body) =>
            {
                if let Some(message) = message_in(response_body) {
                    self.reasoning.learn(message);
                }
                collected(response_body).complete(&mut reply);
                let stop = response_body.pointer("/choices/0/finish_reason").and_then(serde_json::Value::as_str);
                let stop = stop.map(|reason| StopReason::from(reason.to_owned()));
                Ok((ReplyErrors::in_body(kind, response_body).classify(kind, reply, stop.as_ref())?, Usage::default()))
            }
            Err(error) => Err(FailedTry::from_genai(&error, key, first)),
        }
    }

    /// Asks for the reply as a stream.
    async fn in_pieces(
        &self,
        model: ModelIden,
        chat: ChatRequest,
        options: &ChatOptions,
        first: bool,
        pieces: &Pieces,
    ) -> Result<(ClassifiedReply, Usage), FailedTry> {
        let (kind, key) = (self.settings.target.kind, self.settings.key.as_deref());
        let failed = |error: genai::Error| FailedTry::from_genai(&error, key, first);
        let mut options = wire::streaming(kind, options);
        let collected = Arc::new(responses::ResponseCollector::default());
        let heard = Arc::new(StreamEvents::default());
        options = if kind == AdapterKind::OpenAIResp {
            options.with_raw_frame_sink_arc(collected.clone())
        } else {
            options.with_raw_frame_sink_arc(heard.clone())
        };
        let mut stream = self.client.exec_chat_stream(model, chat, Some(&options)).await.map_err(failed)?.stream;
        let (mut text, mut thoughts) = (String::new(), String::new());
        // Number of bytes of the text that were sent as pieces.
        let mut sent = 0;
        while let Some(event) = stream.next().await {
            let event = match event {
                // This event does not say why the stream failed, but the answer to the same request without streaming
                // does. `ask` makes that request if the stream ended without any text or thoughts.
                Err(genai::Error::ChatResponse { ref body, .. })
                    if kind == AdapterKind::Gemini && body.get("finishReason").is_some() =>
                {
                    break;
                }
                Err(error) => {
                    let told = collected.failed();
                    let told = told.map(|body| FailedTry::from_odd_body(&body, "it failed", key, first));
                    return Err(told.unwrap_or_else(|| failed(error)));
                }
                Ok(event) => event,
            };
            let piece = match event {
                ChatStreamEvent::Chunk(chunk) => {
                    text.push_str(&chunk.content);
                    // Reasoning in tags is separated from the text once the reply is complete, so hold it back.
                    if kind == AdapterKind::OpenAI && reasoning::may_begin(&text) {
                        continue;
                    }
                    let piece = text[sent..].to_owned();
                    sent = text.len();
                    ReplyPiece::Text(piece)
                }
                ChatStreamEvent::ReasoningChunk(chunk) => {
                    thoughts.push_str(&chunk.content);
                    ReplyPiece::Reasoning(chunk.content)
                }
                ChatStreamEvent::End(end) => {
                    let mut stop = end.captured_stop_reason.clone();
                    let CollectedEvents { errors: mut said, tokens, calls, reasoning } = heard.take();
                    self.reasoning.learn(&reasoning);
                    let mut reply = match kind {
                        // If Gemini or OpenAI's Responses API closes the connection too early, `genai` reports a normal
                        // end of the reply. Such a reply is recognised by its missing stop reason or body.
                        AdapterKind::Gemini if stop.is_none() => break,
                        AdapterKind::OpenAIResp => {
                            let Some(body) = collected.body() else { break };
                            let Some(reply) = responses::reply(&body) else { break };
                            (said, stop) = (ReplyErrors::in_body(kind, &body), responses::stop_reason(&body));
                            reply
                        }
                        kind => {
                            let mut reply = wire::streamed_reply(kind, text, thoughts, end);
                            reply.tool_calls.extend(calls.into_calls());
                            reply
                        }
                    };
                    tokens.complete(&mut reply);
                    return Ok((said.classify(kind, reply, stop.as_ref())?, Usage::default()));
                }
                _ => continue,
            };
            pieces.send(piece);
        }
        let begun = if text.is_empty() && thoughts.is_empty() { NEVER_BEGAN } else { "after its beginning" };
        Err(FailedTry::unanswered(format!("{BROKEN_OFF} {begun}")))
    }
}

/// Collects token ids and log-probabilities from a whole body.
fn collected(body: &serde_json::Value) -> TokenCollector {
    let mut tokens = TokenCollector::default();
    tokens.add(body);
    tokens
}

/// Returns the message in the body of a chat completion.
fn message_in(body: &serde_json::Value) -> Option<&serde_json::Value> {
    body.pointer("/choices/0/message")
}

/// Whether to ask again without streaming: some models stream for some accounts only, some servers never stream.
fn does_not_stream(failure: &FailedTry) -> bool {
    let said = failure.error.to_string().to_lowercase();
    let mut words = said.split(|c: char| !c.is_alphanumeric());
    said.contains(NEVER_BEGAN) || (!failure.retry && words.any(|word| word.starts_with("stream")))
}

/// Gives each tool call a unique id, because results refer to calls by id: a call without an id, or with an id already
/// used in the conversation, gets a new one. New ids have nine letters and digits, the only form that Mistral accepts.
fn name_calls(reply: &mut Reply, request: &Request) {
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let mut known: HashSet<String> = calls.map(|call| call.id.clone()).collect();
    let mut kept: HashSet<String> = HashSet::new();
    let mut number = 0;
    for call in &mut reply.tool_calls {
        if !call.id.is_empty() && known.insert(call.id.clone()) {
            kept.insert(call.id.clone());
            continue;
        }
        let own = loop {
            let id = format!("c{:05}{number:03}", request.call);
            number += 1;
            if known.insert(id.clone()) {
                break id;
            }
        };
        let given = std::mem::replace(&mut call.id, own);
        // A signature of a call refers to the call by its id, so update the signature, too.
        let signatures = reply.thoughts.iter_mut().filter_map(|thought| match thought {
            Thought::Signature { call_id: Some(of), .. } if *of == given && !kept.contains(of) => Some(of),
            _ => None,
        });
        for of in signatures {
            of.clone_from(&call.id);
        }
    }
}
