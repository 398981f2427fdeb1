//! A provider's model over HTTP: one call, its time limit, its retries, its price.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget, WebConfig};
use tokio::sync::mpsc::UnboundedSender;

use super::failure::Failure;
use super::features::Target;
use super::price::Price;
use super::quote::{LONGEST_REPLY, Quote, tokens_read};
use super::{Model, ModelError, Piece, QueryFailed, Reply, Request, Usage, responses, thinking, wire};
use crate::error::{Error, Kind, Result};

/// The longest wait between two tries, unless the provider asks for more.
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A bound on a reply that every model takes: below it, a refused bound is not made smaller.
const SHORT_REPLY: u32 = 1024;

/// What is said of a stream that ends before its reply does, or that is none.
const BROKEN_OFF: &str = "the stream breaks off";

/// Where a provider's model is and how it is called.
#[derive(Debug)]
pub(super) struct Settings {
    /// The name as the user gave it.
    pub(super) name: String,
    /// The model as the provider has it.
    pub(super) target: Target,
    /// Tokens of its longest reply, where the user has said so.
    pub(super) output: Option<u32>,
    /// Tokens that it takes, read and written, where the user has said so.
    pub(super) context: Option<u64>,
    /// Another server than the provider's own, with a slash at the end.
    pub(super) base_url: Option<String>,
    /// The key, `None` for a server that needs none.
    pub(super) key: Option<String>,
    /// What calls cost.
    pub(super) price: Price,
    /// Time for one try, from the first byte sent to the last one read.
    pub(super) request_timeout: Duration,
    /// Tries after the first.
    pub(super) retries: usize,
    /// The wait before the second try; it doubles from there.
    pub(super) first_wait: Duration,
}

/// A provider's model.
pub(super) struct Provider {
    pub(super) settings: Settings,
    pub(super) client: Client,
    /// The largest bound on a reply that the model takes, as far as is known.
    longest: AtomicU32,
}

impl Provider {
    /// Prepares calls, without any traffic.
    pub(super) fn new(settings: Settings) -> Result<Self> {
        let endpoint = settings.base_url.clone();
        // A server without keys still gets the header, which the protocols demand.
        let key = settings.key.clone().unwrap_or_else(|| "none".to_owned());
        let resolver = ServiceTargetResolver::from_resolver_fn(move |mut target: ServiceTarget| {
            if let Some(url) = endpoint {
                target.endpoint = Endpoint::from_owned(url);
            }
            target.auth = AuthData::from_single(key);
            Ok(target)
        });
        let client = Client::builder()
            .with_service_target_resolver(resolver)
            .with_web_config(WebConfig::default().with_connect_timeout(CONNECT_TIMEOUT))
            .build()
            .map_err(|error| Error::new(Kind::Machine, "failed to set up the network client").because(error))?;
        let longest = AtomicU32::new(settings.output.unwrap_or(LONGEST_REPLY));
        Ok(Self { settings, client, longest })
    }

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

    /// Asks with the reply bounded by the money that is left. A model that does not take so large a bound is asked again
    /// with a smaller one, which it keeps.
    async fn ask_bounded(&self, request: &Request, pieces: Option<&UnboundedSender<Piece>>) -> Result<Reply, Failure> {
        let settings = &self.settings;
        let (mut options, _) = wire::options(&settings.target, request);
        let room = settings.context.map(|context| context.saturating_sub(tokens_read(request)).max(SHORT_REPLY.into()));
        let room = room.and_then(|room| u32::try_from(room).ok());
        let longest = [options.max_tokens, room, settings.output].into_iter().flatten().min();
        let asked = options.max_tokens.and(longest).or(room);
        let mut is_told = false;
        loop {
            let bound = request.affordable.map(|most| most.min(self.longest.load(Ordering::Relaxed)));
            let bound = bound.filter(|most| asked.is_none_or(|asked| *most < asked));
            options.max_tokens = bound.or(asked);
            let outcome = self.ask_patiently(request, &options, pieces).await;
            let refused =
                outcome.as_ref().err().filter(|failure| !failure.retry).map(|failure| failure.error.to_string());
            match (bound, refused.filter(|what| speaks_of_the_bound(what))) {
                (Some(bound), Some(what)) if bound > SHORT_REPLY => {
                    // It may say how much it takes; half of what it refused is tried after that.
                    let named = largest_below(&what, bound).filter(|_| !is_told);
                    is_told = true;
                    self.longest.store(named.unwrap_or(bound / 2).max(SHORT_REPLY), Ordering::Relaxed);
                }
                _ => return outcome,
            }
        }
    }

    /// Tries until there is a reply, tries run out, or another one cannot help.
    async fn ask_patiently(
        &self,
        request: &Request,
        options: &ChatOptions,
        pieces: Option<&UnboundedSender<Piece>>,
    ) -> Result<Reply, Failure> {
        let settings = &self.settings;
        let chat = wire::request(&settings.target, request);
        let waits = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(settings.first_wait)
            .with_max_delay(LONGEST_BACKOFF)
            .with_max_times(settings.retries);
        let mut tries: u32 = 1;
        let mut charged = Usage::default();
        let mut unknown: u32 = 0;
        let first = request.call == 0 && !request.foreign;
        let outcome = (|| self.ask(chat.clone(), options, first, pieces))
            .retry(waits)
            .sleep(tokio::time::sleep)
            .when(|failure| failure.retry)
            .adjust(|failure, wait| wait.map(|wait| failure.wait.unwrap_or(wait)))
            .notify(|failure, _| {
                tries += 1;
                charged += failure.usage;
                unknown += u32::from(failure.unknown_charge);
            })
            .await;
        match outcome {
            Ok(mut reply) => {
                if (reply.estimated || told_nothing(&reply.usage)) && !settings.price.is_free() {
                    estimate(request, &mut reply);
                }
                reply.usage += charged;
                Ok(reply)
            }
            Err(mut failure) => {
                failure.usage += charged;
                unknown += u32::from(failure.unknown_charge);
                if tries > 1 {
                    failure.error.note(&format!(" (after {tries} tries)"));
                }
                if unknown > 0 && !settings.price.is_free() {
                    let which = if tries > 1 { format!("{unknown} of them") } else { "it".to_owned() };
                    failure.error.note(&format!("; what {which} cost is unknown and not counted"));
                }
                Err(failure)
            }
        }
    }
}

#[async_trait]
impl Model for Provider {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn reasons(&self) -> bool {
        self.settings.target.features.reasoning
    }

    fn leaves_out(&self, request: &Request) -> Vec<String> {
        wire::options(&self.settings.target, request).1
    }

    /// What is read is estimated, and a model that reasons first must be left room for it.
    fn quote(&self, request: &Request) -> Quote {
        let settings = &self.settings;
        if settings.price.is_free() {
            return Quote::default();
        }
        let thoughts = thinking::beyond(&settings.target, &request.sampling);
        // A price that cannot be computed is told when the reply is there.
        settings.price.quote(tokens_read(request), thoughts).unwrap_or_default()
    }

    async fn probe(&self) -> Result<(), ModelError> {
        self.look().await
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        self.priced(self.ask_bounded(request, None).await)
    }

    /// Not every server counts the tokens of a stream: one that costs money and is not the provider's own is asked for
    /// the whole reply.
    async fn stream(&self, request: &Request, pieces: &UnboundedSender<Piece>) -> Result<Reply, QueryFailed> {
        let counts = self.settings.base_url.is_none() || self.settings.price.is_free();
        self.priced(self.ask_bounded(request, counts.then_some(pieces)).await)
    }
}

impl Provider {
    fn priced(&self, answer: Result<Reply, Failure>) -> Result<Reply, QueryFailed> {
        let usage = match &answer {
            Ok(reply) => reply.usage,
            Err(failure) => failure.usage,
        };
        let cost = self.settings.price.cost(&usage).map_err(|error| QueryFailed {
            error: ModelError::Denied(format!("the cost of {usage:?} cannot be computed: {error}")),
            usage,
            cost: 0.0,
        })?;
        match answer {
            Ok(reply) => Ok(Reply { cost, ..reply }),
            Err(failure) => Err(QueryFailed { error: failure.error, usage, cost }),
        }
    }
}

/// Whether another way of asking may help: some models stream for some accounts only, some servers not at all.
fn does_not_stream(failure: &Failure) -> bool {
    let said = failure.error.to_string();
    said.contains(BROKEN_OFF) || (!failure.retry && said.contains("stream"))
}

/// Whether a provider refuses the bound on its reply.
fn speaks_of_the_bound(what: &str) -> bool {
    ["max_tokens", "max_completion_tokens", "maxOutputTokens", "in the completion"]
        .iter()
        .any(|name| what.contains(name))
}

/// The largest number in a text that is smaller than another one, and not so small that it means something else.
fn largest_below(text: &str, limit: u32) -> Option<u32> {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    numbers.filter(|number| (SHORT_REPLY..limit).contains(number)).max()
}

const fn told_nothing(usage: &Usage) -> bool {
    usage.input == 0 && usage.output == 0
}

/// Puts an estimate in the place of the tokens that a server does not report: rather too many than too few.
fn estimate(request: &Request, reply: &mut Reply) {
    let said = Request { messages: vec![reply.as_message()], ..Request::default() };
    if reply.usage.input == 0 {
        reply.usage.input = tokens_read(request);
    }
    if reply.usage.output == 0 {
        reply.usage.output = tokens_read(&said);
    }
    reply.estimated = true;
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
