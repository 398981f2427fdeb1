//! One try of a call: its time limit, and its answer, whole or in pieces, as a reply.

use std::sync::Arc;

use futures_util::StreamExt;
use genai::ModelIden;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason};
use tokio::sync::mpsc::UnboundedSender;

use super::failure::Failure;
use super::provider::{Provider, told_nothing};
use super::{ModelError, Piece, Reply, Usage, responses, wire};

/// What is said of a stream that ends before its reply does, or that is none.
const BROKEN_OFF: &str = "the stream breaks off";

impl Provider {
    /// One try of an attempt's first call, if that is of our own making, or of another one.
    pub(super) async fn ask(
        &self,
        chat: ChatRequest,
        options: &ChatOptions,
        first: bool,
        pieces: Option<&UnboundedSender<Piece>>,
    ) -> Result<Reply, Failure> {
        let settings = &self.settings;
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
        let answer = tokio::time::timeout(settings.request_timeout, answer).await.unwrap_or_else(|_| {
            let seconds = settings.request_timeout.as_secs_f64();
            Err(Failure::unanswered(format!("no whole answer within {seconds} s")))
        });
        let (reply, told) = answer.map_err(|failure| Failure { retry: failure.retry && !sent, ..failure })?;
        if let Some(absurd) = [reply.usage, told].iter().find(|usage| !wire::is_possible(usage)) {
            let what = format!(
                "the server says that one call took {} tokens, which no model takes: what it cost is not known",
                absurd.input.max(absurd.output)
            );
            return Err(Failure::lasting(ModelError::Unavailable(what)));
        }
        let mut reply = reply;
        if told_nothing(&reply.usage) && !told_nothing(&told) {
            (reply.usage, reply.estimated) = (told, true);
        }
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
        let failed = |error: genai::Error| Failure::from_genai(&error, self.settings.key.as_deref(), first);
        let kind = self.settings.target.kind;
        let mut options = wire::streaming(kind, options);
        let collected = Arc::new(responses::Collected::default());
        if kind == AdapterKind::OpenAIResp {
            options = options.with_raw_frame_sink_arc(collected.clone());
        }
        let mut stream = self.client.exec_chat_stream(model, chat, Some(&options)).await.map_err(failed)?.stream;
        let (mut text, mut thoughts) = (String::new(), String::new());
        while let Some(event) = stream.next().await {
            let piece = match event.map_err(failed)? {
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
                    let reply = match responses::streamed(&collected) {
                        Some(reply) => reply,
                        None => wire::streamed_reply(kind, text, thoughts, end),
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
