//! Language models: the [`Model`] trait, its requests and its replies.
//!
//! [`open`] takes the name that the user gave: a provider's model (`openai:NAME`, `anthropic:NAME`, `gemini:NAME`), a
//! model on any OpenAI-compatible server, a script (`scripted:FILE`) or a recording (`replay:FILE`). Agents see only
//! the trait. Keys stay in this process and never appear in an error.

mod answer;
pub(crate) mod ask;
mod cached;
mod capacity;
mod cutoff;
pub(crate) mod embedding;
pub(crate) mod extra;
mod failure;
mod features;
mod finish;
pub(crate) mod gateway;
pub(crate) mod ledger;
mod lengths;
mod message_text;
mod open;
mod pieces;
mod price;
mod probe;
mod probe_cost;
mod provider;
mod provider_options;
pub(crate) mod quote;
mod reasoning;
mod record;
mod recording;
mod replay;
mod request_options;
mod responses;
mod scripted;
mod streamed_calls;
mod thinking;
mod tokens;
mod waits;
mod wire;

#[cfg(test)]
mod tests;

pub(crate) use cutoff::Cutoffs;
use failure::FailedCharges;
pub(crate) use features::Description;
pub use open::{ModelAccess, open};
pub(crate) use open::{keys, prices};
pub use pieces::{IncomingPieces, Pieces, ReplyPiece, pieces};
pub(crate) use probe::reach;
pub use probe_cost::ProbeCost;
pub(crate) use provider_options::plain as plain_effort;
pub(crate) use quote::Quote;
pub use request_options::{ReplyFormat, RequestOptions, ToolCallChoice};
pub use tokens::ReplyTokens;

use std::borrow::Cow;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Role of a message in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system prompt.
    System,
    /// The task, and messages that the harness writes during the attempt.
    User,
    /// A message of the model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Role of the message.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The model's tool calls, on assistant messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// On tool messages, the id of the call that this message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The model's thoughts, on assistant messages; they are sent back to the provider that wrote them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// Pictures, placed after the text, for models that accept pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Base64-encoded bytes.
    pub data: String,
}

impl Message {
    /// Creates a message without tool calls.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            thoughts: Vec::new(),
            images: Vec::new(),
        }
    }
}

/// Data that must be sent back to the provider together with the reply in which the data came, so that the model can
/// continue the reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Thought {
    /// Reasoning in plain text (`reasoning_content`).
    Text(String),
    /// A block exactly as received, signed or encrypted by the provider (Anthropic's `thinking`, `OpenRouter`'s
    /// details).
    Block(serde_json::Value),
    /// Gemini's signature of the reply's text or of one of the reply's tool calls.
    Signature {
        /// The signature.
        signature: String,
        /// Id of the tool call that is signed; absent if the text is signed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    },
}

/// A tool call made by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name; a model may invent a tool that does not exist.
    pub name: String,
    /// The arguments; a JSON string if the model did not write valid JSON.
    pub arguments: serde_json::Value,
}

impl ToolCall {
    /// Reads the arguments of a call as the model wrote them. A call without arguments gets an empty object.
    fn arguments_in(written: &str) -> serde_json::Value {
        if written.trim().is_empty() {
            return serde_json::json!({});
        }
        serde_json::from_str(written).unwrap_or_else(|_| serde_json::Value::String(written.to_owned()))
    }
}

/// A tool offered to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name that the model uses to call the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON schema of the arguments, an object.
    pub parameters: serde_json::Value,
}

/// Reasoning effort, under the names that providers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Effort {
    /// No reasoning
    None,
    /// The least reasoning
    Minimal,
    /// Little reasoning
    Low,
    /// Some reasoning
    Medium,
    /// Much reasoning
    High,
    /// More than `high`
    XHigh,
    /// The most reasoning
    Max,
}

/// Sampling settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// Temperature; the provider's default when `None`.
    pub temperature: Option<f64>,
    /// Seed, for providers that take one.
    pub seed: Option<u64>,
    /// Maximum tokens of a reply.
    pub max_tokens: Option<u32>,
    /// Maximum tokens of reasoning before the reply, for models that take such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
    /// How much to reason; the provider's default when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Additional fields of each request's body, given by the user.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// A request to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools offered to the model. The list may be borrowed, so that all attempts of an agent can share it.
    pub tools: Cow<'static, [Tool]>,
    /// Sampling settings.
    pub sampling: Sampling,
    /// Whether the reply should make at most one tool call. Only some providers can be asked for this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_call: bool,
    /// Further options that an external agent asked for.
    #[serde(default, skip_serializing_if = "RequestOptions::is_none")]
    pub wishes: RequestOptions,
    /// Number of this call within the attempt, from 0. A scripted model answers with the reply at this index of its
    /// script.
    pub call: u32,
    /// Whether an external agent wrote the request, so that the agent is responsible for faults in it, even at its
    /// first call. Not sent to the model and not part of recordings.
    #[serde(skip)]
    pub foreign: bool,
    /// Maximum tokens of the reply that the remaining money buys; `None` for no limit. It is not sent as such, but may
    /// set or lower the `max_tokens` that is sent. Not part of recordings.
    #[serde(skip)]
    pub affordable: Option<u32>,
    /// Number of the attempt, if the request belongs to one. The cache of replies distinguishes attempts by it, because
    /// attempts at the same sample must get separate replies. Not sent to the model and not part of recordings.
    #[serde(skip)]
    pub attempt: Option<u32>,
}

/// Token counts of one call or of several. `cached` is part of `input`, `reasoning` part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Prompt tokens.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached: u64,
    /// Prompt tokens written to the provider's cache.
    #[serde(default)]
    pub cache_written: u64,
    /// Reply tokens.
    pub output: u64,
    /// Reply tokens spent on reasoning.
    pub reasoning: u64,
}

impl Usage {
    /// Whether no tokens are counted.
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Usage {
    // Saturates, because counts from servers may be absurd.
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// A model's reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; empty if there are only tool calls.
    pub text: String,
    /// Reasoning, if the provider shows it separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Data to send back to the provider with this reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// Whether the provider reports that it cut the reply at its maximum length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Whether the token counts are estimates, because the provider does not report any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether the reply comes from the cache of an earlier run, at no cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Why the reply ended, in the server's word, such as `stop` or `tool_calls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Version of the model's weights or, if the server does not report it, of the server's configuration; `None` if
    /// the server reports neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// Token ids and log-probabilities, if the server returned them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<ReplyTokens>,
    /// Tokens of this call, including failed tries that the provider charged.
    pub usage: Usage,
    /// Tokens of the failed tries alone.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub failed: Usage,
    /// Number of failed tries that got no complete answer. The provider may have charged them, but their tokens are
    /// unknown, so they are not part of `usage` and `cost`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u32,
    /// Cost in dollars.
    pub cost: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(crate) const fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Reply {
    /// Appends the rest of a reply that the provider had paused.
    fn continue_with(&mut self, more: Self) {
        self.text.push_str(&more.text);
        if let Some(reasoning) = more.reasoning {
            self.reasoning.get_or_insert_default().push_str(&reasoning);
        }
        self.tool_calls.extend(more.tool_calls);
        self.thoughts.extend(more.thoughts);
        self.usage += more.usage;
        self.failed += more.failed;
        self.unanswered = self.unanswered.saturating_add(more.unanswered);
        self.cut |= more.cut;
        self.finish = more.finish;
        // The lists of token ids of two calls cannot be joined into one list.
        self.tokens = None;
        self.estimated |= more.estimated;
    }

    /// Adds the charges of failed tries of the same call.
    fn add_failed(&mut self, FailedCharges { usage, unanswered }: FailedCharges) {
        self.usage += usage;
        self.failed += usage;
        self.unanswered = self.unanswered.saturating_add(unanswered);
    }

    /// Whether the reply ended because it reached its maximum length of `most` tokens. The tokens decide only if the
    /// server does not say why the reply ended.
    #[must_use]
    pub fn reaches(&self, most: Option<u32>) -> bool {
        let written = self.usage.output.saturating_sub(self.failed.output);
        self.cut || self.finish.is_none() && most.is_some_and(|most| written >= u64::from(most))
    }

    /// Returns the reply as an assistant message.
    fn as_message(&self) -> Message {
        let text = [self.reasoning.as_deref().unwrap_or_default(), &self.text].concat();
        Message { tool_calls: self.tool_calls.clone(), ..Message::new(Role::Assistant, text) }
    }
}

/// Why a model did not answer, after all retries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelError {
    /// The conversation exceeds the model's context.
    #[error("the conversation is too long for the model: {0}")]
    ContextLength(String),
    /// The model declined to answer this conversation, or a content filter blocked the prompt or withheld the reply.
    /// Other conversations may be answered.
    #[error("the provider refused the conversation: {0}")]
    Refused(String),
    /// The provider rejected this request for an unknown reason, perhaps something in its history, or its length. Other
    /// requests may be answered, or were answered in this session.
    #[error("the provider rejected the request: {0}")]
    Rejected(String),
    /// No conversation can be answered or paid for: a wrong key, an unknown model, an empty account, a server that does
    /// not report what a reply costs, or a recording that cannot be written.
    #[error("the model cannot be used: {0}")]
    Denied(String),
    /// An infrastructure failure: the provider could not be reached, failed or limited the rate, even after retries.
    #[error("the provider failed: {0}")]
    Unavailable(String),
    /// The script or recording has no reply to this call.
    #[error("{0}")]
    Exhausted(String),
}

impl ModelError {
    /// Appends a note to the cause.
    fn note(&mut self, note: &str) {
        let (Self::ContextLength(text)
        | Self::Refused(text)
        | Self::Rejected(text)
        | Self::Denied(text)
        | Self::Unavailable(text)
        | Self::Exhausted(text)) = self;
        text.push_str(note);
    }
}

/// A failed call, which may have cost money.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{error}")]
pub struct QueryFailed {
    /// Why there is no reply.
    #[serde(flatten)]
    pub error: ModelError,
    /// Tokens that the provider reported as charged, over all tries.
    #[serde(default)]
    pub usage: Usage,
    /// Number of tries that got no complete answer. The provider may have charged them, but their tokens are unknown,
    /// so they are not part of `usage` and `cost`; `error` says so.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u32,
    /// Cost of these tokens in dollars.
    #[serde(default)]
    pub cost: f64,
}

impl From<ModelError> for QueryFailed {
    /// Creates a failure that cost nothing.
    fn from(error: ModelError) -> Self {
        Self { error, usage: Usage::default(), unanswered: 0, cost: 0.0 }
    }
}

/// A language model. It is shared by all attempts of a run and does not hold conversations.
#[async_trait]
pub trait Model: Send + Sync {
    /// The model's name as the user gave it.
    fn name(&self) -> &str;
    /// The wrapped model, if this model only adds something to another model, such as a cache. By default, all methods
    /// except `name` and `query` ask the wrapped model.
    fn inner(&self) -> Option<&dyn Model> {
        None
    }
    /// The provider's name of the model, which is passed to external agents; `None` if unknown.
    fn provider_name(&self) -> Option<&str> {
        self.inner()?.provider_name()
    }
    /// Maximum tokens of prompt and reply together, if known.
    fn context(&self) -> Option<u64> {
        self.inner()?.context()
    }
    /// Whether the model takes a token budget for reasoning ([`Sampling::reasoning_tokens`]).
    fn reasons(&self) -> bool {
        self.inner().is_some_and(Model::reasons)
    }
    /// Whether the effort [`Effort::None`] is known to turn the model's reasoning off.
    fn takes_effort_none(&self) -> bool {
        self.inner().is_some_and(Model::takes_effort_none)
    }
    /// Describes the parts of a request that will not be sent, because the provider does not support them or would
    /// refuse the request.
    fn leaves_out(&self, request: &Request) -> Vec<String> {
        self.inner().map(|model| model.leaves_out(request)).unwrap_or_default()
    }
    /// Estimates the cost of a call before it is made.
    fn quote(&self, request: &Request) -> Quote {
        self.inner().map(|model| model.quote(request)).unwrap_or_default()
    }
    /// Checks that the provider can be reached, accepts the key and has the model. Makes a test call to the model only
    /// if the provider's list of models leaves doubt. Returns the cost of the test call.
    async fn probe(&self) -> Result<ProbeCost, QueryFailed> {
        match self.inner() {
            Some(model) => model.probe().await,
            None => Ok(ProbeCost::default()),
        }
    }
    /// Sends a request and waits for the reply; retries are handled inside. A failure may have a cost, which is charged
    /// like a reply's.
    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed>;
    /// Same as [`Model::query`], but also sends the reply's text, without tool calls, to `pieces` as it arrives. Once a
    /// piece was passed on, the call is not retried, because the new reply would differ. A model that has its whole
    /// reply at once sends no pieces.
    async fn stream(&self, request: &Request, _pieces: &Pieces) -> Result<Reply, QueryFailed> {
        self.query(request).await
    }
}
