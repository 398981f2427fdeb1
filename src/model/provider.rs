//! A model that a provider serves over HTTP: its address, retries, limits on the length of replies, and its price.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use genai::adapter::AdapterKind;
use genai::chat::ChatOptions;
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ServiceTarget, WebConfig};
use serde_json::json;

use super::capacity::{Capacity, LearnedLimits, Lesson};
use super::failure::{FailedCharges, FailedTry};
use super::features::ModelTarget;
use super::finish::{CONTEXT_FULL, ClassifiedReply};
use super::price::Price;
use super::quote::{Quote, tokens_read};
use super::reasoning::{self, ReasoningField};
use super::waits::next_wait;
use super::{
    Message, Model, ModelError, Pieces, ProbeCost, QueryFailed, Reply, Request, Role, Usage, extra, thinking, wire,
};
use crate::error::{Error, FailureKind, Result};

/// Maximum wait between two tries, unless the provider asks for more.
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of different limits on the length of one reply that are tried. If the server refuses all of them, its
/// last refusal is reported.
const MOST_BOUNDS: u32 = 6;

/// A question that every model answers in a few tokens, to find out whether the model can be used.
pub(super) const SHORT_QUESTION: &str = "Reply with: ok";

/// Maximum number of times that a paused reply is continued.
const MOST_PAUSES: u32 = 16;

/// Address and settings of a provider's model.
#[derive(Debug)]
pub(super) struct ProviderSettings {
    /// The model's name as the user gave it.
    pub(super) name: String,
    /// The model's name at the provider and its features.
    pub(super) target: ModelTarget,
    /// Maximum tokens of a reply; `None` if the user's description of the model (`--describe`) does not state it.
    pub(super) output: Option<u32>,
    /// Maximum tokens of prompt and reply together; `None` if the user's description of the model does not state it.
    pub(super) context: Option<u64>,
    /// A server used instead of the provider's; ends with a slash.
    pub(super) base_url: Option<String>,
    /// The key; `None` if the server does not need one.
    pub(super) key: Option<String>,
    /// The price of calls.
    pub(super) price: Price,
    /// Time limit of one try, from the first byte sent to the last byte received.
    pub(super) request_timeout: Duration,
    /// Maximum number of retries.
    pub(super) retries: usize,
    /// Wait before the first retry; doubles with each retry.
    pub(super) first_wait: Duration,
}

/// A provider's model.
pub(super) struct Provider {
    pub(super) settings: ProviderSettings,
    pub(super) client: Client,
    /// Known limits on the length of replies and conversations.
    pub(super) capacity: Capacity,
    /// The field in which the server sends reasoning and takes it back.
    pub(super) reasoning: ReasoningField,
    /// Whether the model's chat template opens the reasoning, so that it looks like text until the closing tag arrives.
    pub(super) opens_reasoning: AtomicBool,
}

impl Provider {
    /// Creates the model, without any network traffic.
    pub(super) fn new(settings: ProviderSettings) -> Result<Self> {
        let endpoint = settings.base_url.clone();
        // The protocols demand a key header even from servers without keys.
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
            .map_err(|error| Error::new(FailureKind::Machine, "failed to set up the network client").because(error))?;
        let capacity = Capacity::new(&settings.target, settings.context, settings.output);
        Ok(Self {
            settings,
            client,
            capacity,
            reasoning: ReasoningField::default(),
            opens_reasoning: AtomicBool::new(false),
        })
    }

    /// Asks for a reply. If the provider pauses the reply, asks for the rest until the reply is complete.
    async fn ask_to_the_end(&self, request: &Request, pieces: Option<&Pieces>) -> Result<Reply, FailedTry> {
        let mut whole = match self.ask_settled(request, pieces).await? {
            ClassifiedReply::Whole(reply) => return Ok(reply),
            ClassifiedReply::Paused(reply) => reply,
        };
        let mut request = request.clone();
        for _ in 0..MOST_PAUSES {
            let written = u32::try_from(whole.usage.output).unwrap_or(u32::MAX);
            request.affordable = request.affordable.map(|most| most.saturating_sub(written).max(1));
            request.messages.push(Message {
                thoughts: whole.thoughts.clone(),
                ..Message::new(Role::Assistant, whole.text.clone())
            });
            let ending = self.ask_settled(&request, pieces).await;
            request.messages.pop();
            let (more, is_paused) = match ending {
                Ok(ClassifiedReply::Whole(reply)) => (reply, false),
                Ok(ClassifiedReply::Paused(reply)) => (reply, true),
                Err(mut failure) => {
                    failure.add(FailedCharges { usage: whole.usage, unanswered: whole.unanswered });
                    return Err(failure);
                }
            };
            whole.continue_with(more);
            if !is_paused {
                break;
            }
        }
        Ok(whole)
    }

    /// Asks for a reply. If the server refuses and it is unclear whether it refuses only this conversation, asks a
    /// short question with the same settings. The error is [`ModelError::Denied`] only if this question is refused,
    /// too. That earlier conversations were answered proves nothing: since then, the account may have run out of money,
    /// and another agent's requests may contain no tools.
    async fn ask_settled(&self, request: &Request, pieces: Option<&Pieces>) -> Result<ClassifiedReply, FailedTry> {
        let mut failure = match self.ask_bounded(request, pieces).await {
            Err(failure) if failure.doubtful => failure,
            outcome => return outcome,
        };
        // Use a system message only if the request has one, because some servers refuse system messages.
        let has_system = request.messages.iter().any(|message| message.role == Role::System);
        let roles = has_system.then_some(Role::System).into_iter().chain([Role::User]);
        let question = Request {
            messages: roles.map(|role| Message::new(role, SHORT_QUESTION)).collect(),
            tools: request.tools.clone(),
            sampling: request.sampling.clone(),
            one_call: request.one_call,
            affordable: request.affordable,
            ..Request::default()
        };
        match self.ask_bounded(&question, None).await {
            Ok(answer) => {
                let answer = answer.into_reply();
                failure.add(FailedCharges { usage: answer.usage, unanswered: answer.unanswered });
                if let ModelError::Denied(what) = failure.error {
                    failure.error = ModelError::Rejected(what);
                }
                Err(failure)
            }
            Err(mut other) => {
                // If the question could not be answered because of the infrastructure, it remains unclear whether the
                // model can be used. So report this failure, with which the attempt counts as lost.
                if matches!(other.error, ModelError::Unavailable(_)) {
                    other.add(failure.charges());
                    Err(other)
                } else {
                    failure.add(other.charges());
                    Err(failure)
                }
            }
        }
    }

    /// Asks for a reply whose length is limited by the model's capacity and the remaining money. If the server refuses
    /// the limit, asks again with another limit or without one, and remembers what the server accepts.
    async fn ask_bounded(&self, request: &Request, pieces: Option<&Pieces>) -> Result<ClassifiedReply, FailedTry> {
        let target = &self.settings.target;
        let (options, _) = wire::options(target, request);
        let wanted = options.max_tokens;
        let mut learned = LearnedLimits::default();
        let mut bound = self.capacity.bound(request, wanted, &learned);
        let mut charged = FailedCharges::default();
        let mut bounds = 0;
        // The limit on the reply's length in a call that the server refused without a stated reason, if the limit may
        // be the reason.
        let mut perhaps = None;
        loop {
            bounds += 1;
            let mut options = options.clone();
            options.max_tokens = bound;
            thinking::fit(target, &mut options);
            extra::complete(target, &mut options);
            let mut outcome = self.ask_with_reasoning(request, &options, pieces).await;
            match &mut outcome {
                Ok(ClassifiedReply::Whole(reply) | ClassifiedReply::Paused(reply)) => {
                    match perhaps {
                        Some(refused) => self.capacity.takes_no(refused),
                        None => self.capacity.adopt(&learned),
                    }
                    reply.add_failed(charged);
                    return outcome;
                }
                Err(failure) => failure.add(charged),
            }
            let (Err(failure), Some(refused)) = (&outcome, bound) else { return self.explained(request, outcome) };
            let lesson = if failure.retry || perhaps.is_some() || bounds == MOST_BOUNDS {
                Lesson::None
            } else {
                learned.learn(&failure.error, request, refused, wanted.is_some())
            };
            bound = match lesson {
                Lesson::None => return self.explained(request, outcome),
                Lesson::Limit => self.capacity.bound(request, wanted, &learned),
                Lesson::Perhaps => Some(refused),
            };
            if bound == Some(refused) {
                // Try again without a limit on the reply's length, which shows whether the server refused the call
                // because of the limit. The limit cannot be left out if the user or the agent asked for it.
                if wanted.is_some() {
                    return self.explained(request, outcome);
                }
                perhaps = bound.take();
            }
            charged = failure.charges();
        }
    }

    /// Turns a length error for a short first prompt into [`ModelError::Denied`]: a context in which even this prompt
    /// does not fit is a fault of the server's set-up, so no attempt should be scored.
    fn explained(
        &self,
        request: &Request,
        outcome: Result<ClassifiedReply, FailedTry>,
    ) -> Result<ClassifiedReply, FailedTry> {
        outcome.map_err(|failure| match &failure.error {
            ModelError::ContextLength(what)
                if request.call == 0 && !what.starts_with(CONTEXT_FULL) && self.capacity.is_short(request, what) =>
            {
                let what = format!(
                    "{what} (the prompt has about {} tokens: serve the model with a longer context, or give a smaller \
                     `--max-tokens`)",
                    tokens_read(request)
                );
                FailedTry { error: ModelError::Denied(what), ..failure }
            }
            _ => failure,
        })
    }

    /// Asks for a reply to a conversation that may contain reasoning of earlier replies. If the server refuses
    /// reasoning, asks again without it, and remembers this.
    async fn ask_with_reasoning(
        &self,
        request: &Request,
        options: &ChatOptions,
        pieces: Option<&Pieces>,
    ) -> Result<ClassifiedReply, FailedTry> {
        let target = &self.settings.target;
        let field = self.reasoning.name();
        let has_reasoning = field.is_some()
            && target.kind == AdapterKind::OpenAI
            && request.messages.iter().any(|message| !message.thoughts.is_empty());
        if !has_reasoning {
            return self.ask_patiently(request, options, pieces, false).await;
        }
        let mut with_field = options.clone();
        if let Some(messages) = reasoning::messages_with(field, wire::request(target, request, true).messages) {
            let extra = with_field.extra_body.get_or_insert_with(|| json!({}));
            extra["messages"] = messages;
        }
        let mut outcome = self.ask_patiently(request, &with_field, pieces, true).await;
        if let Err(failure) = &outcome
            && refuses_reasoning(failure)
        {
            let charged = failure.charges();
            outcome = self.ask_patiently(request, options, pieces, false).await;
            match &mut outcome {
                Ok(ClassifiedReply::Whole(reply) | ClassifiedReply::Paused(reply)) => {
                    self.reasoning.give_up();
                    reply.add_failed(charged);
                }
                Err(failure) => failure.add(charged),
            }
        }
        outcome
    }

    /// Tries until there is a reply, no tries are left, or a retry cannot help.
    async fn ask_patiently(
        &self,
        request: &Request,
        options: &ChatOptions,
        pieces: Option<&Pieces>,
        sends_reasoning: bool,
    ) -> Result<ClassifiedReply, FailedTry> {
        let settings = &self.settings;
        let waits = ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(settings.first_wait)
            .with_max_delay(LONGEST_BACKOFF)
            .with_max_times(settings.retries);
        let mut tries: u32 = 1;
        let mut charged = FailedCharges::default();
        let begun = Instant::now();
        let outcome = (|| {
            // Convert the conversation to `genai`'s types anew for each try: `genai` consumes it, and a copy kept for
            // later tries would take memory during the whole call.
            self.ask(request, wire::request(&settings.target, request, sends_reasoning), options, pieces)
        })
        .retry(waits)
        .sleep(tokio::time::sleep)
        .when(|failure| failure.retry)
        .adjust(|failure, wait| next_wait(failure.wait, wait, begun.elapsed()).filter(|_| settings.retries > 0))
        .notify(|failure, _| {
            tries += 1;
            charged += failure.charges();
        })
        .await;
        match outcome {
            Ok(mut ending) => {
                let (ClassifiedReply::Whole(reply) | ClassifiedReply::Paused(reply)) = &mut ending;
                self.capacity.counted(request, &reply.usage);
                if reply.estimated || told_nothing(&reply.usage) {
                    estimate(request, reply);
                }
                reply.add_failed(charged);
                Ok(ending)
            }
            Err(mut failure) => {
                failure.add(charged);
                if tries > 1 {
                    failure.error.note(&format!(" (after {tries} tries)"));
                }
                if failure.unanswered > 0 && !settings.price.is_free() {
                    let which = if tries > 1 { format!("{} of them", failure.unanswered) } else { "it".to_owned() };
                    let cost = format!("; what {which} cost is unknown and not counted");
                    failure.error.note(&cost);
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

    fn provider_name(&self) -> Option<&str> {
        Some(&self.settings.target.model)
    }

    fn context(&self) -> Option<u64> {
        self.capacity.context()
    }

    fn reasons(&self) -> bool {
        self.settings.target.features.reasoning
    }

    fn takes_effort_none(&self) -> bool {
        thinking::takes_none(&self.settings.target)
    }

    fn leaves_out(&self, request: &Request) -> Vec<String> {
        wire::options(&self.settings.target, request).1
    }

    /// Estimates the cost from the request's length. For a model that reasons before it answers, adds the tokens that
    /// its thoughts may take.
    fn quote(&self, request: &Request) -> Quote {
        let settings = &self.settings;
        if settings.price.is_free() {
            return Quote::default();
        }
        let thoughts = if request.foreign { 0 } else { thinking::beyond(&settings.target, &request.sampling) };
        // A pricing error is ignored here; it is reported when there is a reply.
        settings.price.quote(tokens_read(request), thoughts).unwrap_or_default()
    }

    async fn probe(&self) -> Result<ProbeCost, QueryFailed> {
        self.look().await
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        self.priced(self.ask_to_the_end(request, None).await)
    }

    /// Streams the reply, except in three cases. A user's server whose model has a price is asked for the whole reply,
    /// because not every server counts the tokens of a stream. If token ids are wanted, the whole reply is requested,
    /// too, because some servers lose token ids in streams. The third case is reasoning without an opening tag, which
    /// would be streamed as text.
    async fn stream(&self, request: &Request, pieces: &Pieces) -> Result<Reply, QueryFailed> {
        let counts = self.settings.base_url.is_none() || self.settings.price.is_free();
        let is_clear = !self.settings.target.features.tokens && !self.opens_reasoning.load(Ordering::Relaxed);
        let streams = counts && is_clear;
        self.priced(self.ask_to_the_end(request, streams.then_some(pieces)).await)
    }
}

impl Provider {
    /// Adds the cost to a reply or a failure.
    pub(super) fn priced(&self, answer: Result<Reply, FailedTry>) -> Result<Reply, QueryFailed> {
        let (usage, unanswered) = match &answer {
            Ok(reply) => (reply.usage, reply.unanswered),
            Err(failure) => (failure.usage, failure.unanswered),
        };
        let cost = self.settings.price.cost(&usage).map_err(|error| QueryFailed {
            error: ModelError::Denied(format!("the cost of {usage:?} cannot be computed: {error}")),
            usage,
            unanswered,
            cost: 0.0,
        })?;
        match answer {
            Ok(reply) => Ok(Reply { cost, ..reply }),
            Err(failure) => Err(QueryFailed { error: failure.error, usage, unanswered, cost }),
        }
    }
}

/// Whether a refusal names a field with reasoning: servers with a strict schema refuse fields that they do not know.
fn refuses_reasoning(failure: &FailedTry) -> bool {
    match &failure.error {
        ModelError::Rejected(what) | ModelError::Denied(what) => what.to_lowercase().contains("reasoning"),
        _ => false,
    }
}

pub(super) const fn told_nothing(usage: &Usage) -> bool {
    usage.input == 0 && usage.output == 0
}

/// Estimates the token counts if the server did not report any, rather too high than too low.
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
