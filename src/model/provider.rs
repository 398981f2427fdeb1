//! A provider's model over HTTP: where it is, its retries, the bound on its replies, its price.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use genai::chat::ChatOptions;
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ServiceTarget, WebConfig};
use tokio::sync::mpsc::UnboundedSender;

use super::failure::Failure;
use super::features::Target;
use super::price::Price;
use super::quote::{LONGEST_REPLY, Quote, tokens_read};
use super::{Model, ModelError, Piece, Probed, QueryFailed, Reply, Request, Usage, thinking, wire};
use crate::error::{Error, Kind, Result};

/// The longest wait between two tries, unless the provider asks for more.
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A bound on a reply that every model takes: below it, a refused bound is not made smaller.
const SHORT_REPLY: u32 = 1024;

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
        let outcome = (|| self.ask(request, chat.clone(), options, pieces))
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

    async fn probe(&self) -> Result<Probed, QueryFailed> {
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
    /// What came of a call, with its cost.
    pub(super) fn priced(&self, answer: Result<Reply, Failure>) -> Result<Reply, QueryFailed> {
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

pub(super) const fn told_nothing(usage: &Usage) -> bool {
    usage.input == 0 && usage.output == 0
}

/// Puts an estimate in the place of the tokens that a server does not report: rather too many than too few.
pub(super) fn estimate(request: &Request, reply: &mut Reply) {
    let said = Request { messages: vec![reply.as_message()], ..Request::default() };
    if reply.usage.input == 0 {
        reply.usage.input = tokens_read(request);
    }
    if reply.usage.output == 0 {
        reply.usage.output = tokens_read(&said);
    }
    reply.estimated = true;
}
