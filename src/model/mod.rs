//! Language models: the [`Model`] trait, what is asked and what comes back.
//!
//! [`open`] makes a model from the name that the user gave: a provider's (`openai:NAME`, `anthropic:NAME`,
//! `gemini:NAME`, or any OpenAI-compatible server), a script (`scripted:FILE`) or a recording (`replay:FILE`).
//! Agents see only the trait. Keys stay in this process and never appear in an error.

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
mod open;
mod pieces;
mod price;
mod probe;
mod probed;
mod provider;
pub(crate) mod quote;
mod record;
mod recording;
mod replay;
mod responses;
mod scripted;
mod shown;
mod thinking;
mod wire;
mod wish;
mod wished;

#[cfg(test)]
mod tests;

pub(crate) use cutoff::Cutoffs;
pub(crate) use features::Description;
pub use open::{Options, open};
pub(crate) use open::{keys, prices};
pub use pieces::{Coming, Piece, Pieces, pieces};
pub(crate) use probe::reach;
pub use probed::Probed;
pub(crate) use quote::Quote;
pub use wish::{Choice, Format, Wishes};
pub(crate) use wished::plain as plain_effort;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The setting.
    System,
    /// The task, and what the harness says.
    User,
    /// The model.
    Assistant,
    /// The observation of a tool call.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The model's tool calls, on assistant messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Which call this is the observation of, on tool messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The model's thoughts, on assistant messages, for the provider that gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// Pictures that stand behind the text, for models that see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Its kind, as `image/png`.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
}

impl Message {
    /// A message without tool calls.
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

/// What a provider wants back, with the reply that it came with, so that its model can go on from its thoughts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Thought {
    /// Reasoning in plain text (`reasoning_content`).
    Text(String),
    /// A block as it came, signed or encrypted by the provider (Anthropic's `thinking`, `OpenRouter`'s details).
    Block(serde_json::Value),
    /// A signature of what it stands before (Gemini).
    Signature {
        /// The signature.
        signature: String,
        /// The call that it is of; the text's where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    },
}

/// A call of a tool, as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// The tool's name, which may not exist.
    pub name: String,
    /// The arguments; a JSON string when the model wrote something that is not JSON.
    pub arguments: serde_json::Value,
}

/// A tool as it is shown to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of the arguments, an object.
    pub parameters: serde_json::Value,
}

/// How much a model reasons, in the providers' words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum Effort {
    /// Not at all
    None,
    /// The least
    Minimal,
    /// Little
    Low,
    /// Some
    Medium,
    /// Much
    High,
    /// More than `high`
    XHigh,
    /// The most
    Max,
}

/// How to sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sampling {
    /// Temperature; the provider's default when `None`.
    pub temperature: Option<f64>,
    /// Seed, for providers that take one.
    pub seed: Option<u64>,
    /// Most tokens to write.
    pub max_tokens: Option<u32>,
    /// Most tokens to reason with before the reply, for models that [reason by themselves](Model::reasons).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
    /// How much to reason; the provider's default when `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Further fields of each request's body, as the user gave them.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// The tools on offer.
    pub tools: Vec<Tool>,
    /// How to sample.
    pub sampling: Sampling,
    /// Whether the reply is to make at most one tool call, for providers that can be told so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_call: bool,
    /// What else a program of its own asks for.
    #[serde(default, skip_serializing_if = "Wishes::is_none")]
    pub wishes: Wishes,
    /// Number of this call within its attempt, from 0: the place in a script.
    pub call: u32,
    /// Whether a program of its own has written it: what is wrong with it is then the program's doing, also at the first
    /// call. No part of what is asked, so a recording neither holds it nor looks for it.
    #[serde(skip)]
    pub foreign: bool,
    /// Tokens that the reply may have for the money that is left; `None` for no bound. No part of what is asked either.
    #[serde(skip)]
    pub affordable: Option<u32>,
    /// Number of the attempt that asks, where one does: the attempts at a sample are draws of their own. No part of what is
    /// asked either.
    #[serde(skip)]
    pub attempt: Option<u32>,
}

/// Tokens of one call or of many. `cached` is part of `input`, `reasoning` part of `output`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read, in all.
    pub input: u64,
    /// Of these, read from the provider's cache.
    pub cached: u64,
    /// Of the tokens read, written to the provider's cache.
    #[serde(default)]
    pub cache_written: u64,
    /// Tokens written, in all.
    pub output: u64,
    /// Of these, spent on reasoning.
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    // Counts are a stranger's, and may be anything.
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text, empty when there are only tool calls.
    pub text: String,
    /// Reasoning that the provider shows apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// What goes back to the provider with the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thoughts: Vec<Thought>,
    /// Whether the provider says that it ends because it is long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Whether its tokens are estimated, because the provider reports none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Whether it was kept from an earlier run, so that it costs nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Tokens, of this call and of its failed tries that the provider charged.
    pub usage: Usage,
    /// Cost in dollars.
    pub cost: f64,
}

impl Reply {
    /// Adds the rest of a reply that was paused.
    fn continue_with(&mut self, more: Self) {
        self.text.push_str(&more.text);
        if let Some(reasoning) = more.reasoning {
            self.reasoning.get_or_insert_default().push_str(&reasoning);
        }
        self.tool_calls.extend(more.tool_calls);
        self.thoughts.extend(more.thoughts);
        self.usage += more.usage;
        self.cut |= more.cut;
        self.estimated |= more.estimated;
    }

    /// The reply as it stands in a conversation.
    fn as_message(&self) -> Message {
        let text = [self.reasoning.as_deref().unwrap_or_default(), &self.text].concat();
        Message { tool_calls: self.tool_calls.clone(), ..Message::new(Role::Assistant, text) }
    }
}

/// Why a model did not answer, after all retries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelError {
    /// The conversation is longer than the model takes.
    #[error("the conversation is too long for the model: {0}")]
    ContextLength(String),
    /// The model declined to answer this conversation, or a content filter blocked the prompt or withheld the reply. Others
    /// may be answered.
    #[error("the provider refused the conversation: {0}")]
    Refused(String),
    /// The provider does not take this request, for a reason that is not known: perhaps for something in its history, or
    /// for its length. Others may be answered.
    #[error("the provider rejected the request: {0}")]
    Rejected(String),
    /// No conversation will be answered or can be paid for: a bad key, an unknown model, an empty account, a server
    /// that does not say what a reply costs, a recording that cannot be written.
    #[error("the model cannot be used: {0}")]
    Denied(String),
    /// The provider could not be reached, failed or limited the rate, also after retries: infrastructure.
    #[error("the provider failed: {0}")]
    Unavailable(String),
    /// A script or recording has no reply for this call.
    #[error("{0}")]
    Exhausted(String),
}

impl ModelError {
    /// Says more about the cause.
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

/// A call without a reply, and what it cost all the same.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{error}")]
pub struct QueryFailed {
    /// Why there is no reply.
    #[serde(flatten)]
    pub error: ModelError,
    /// Tokens of all tries that the provider charged, as far as it says. What a try cost that got no whole answer is
    /// known to the provider only; the error then says so.
    #[serde(default)]
    pub usage: Usage,
    /// Their cost in dollars.
    #[serde(default)]
    pub cost: f64,
}

impl From<ModelError> for QueryFailed {
    /// A failure that cost nothing.
    fn from(error: ModelError) -> Self {
        Self { error, usage: Usage::default(), cost: 0.0 }
    }
}

/// A language model. Shared by all attempts of a run; holds no conversation.
#[async_trait]
pub trait Model: Send + Sync {
    /// The name as the user gave it.
    fn name(&self) -> &str;
    /// Whether the provider takes a budget of tokens for reasoning: [`Sampling::reasoning_tokens`].
    fn reasons(&self) -> bool {
        false
    }
    /// What of a request the provider is not told, in words: what it has no place for, or would refuse.
    fn leaves_out(&self, _request: &Request) -> Vec<String> {
        Vec::new()
    }
    /// What this call may cost, as far as that is known before it is made.
    fn quote(&self, _request: &Request) -> Quote {
        Quote::default()
    }
    /// Looks whether the provider can be reached, takes the key and has the model. Asks the model nothing unless its list
    /// of models speaks against it. Gives what that cost.
    async fn probe(&self) -> Result<Probed, QueryFailed> {
        Ok(Probed::default())
    }
    /// Asks once, with retries inside. The cost of a failure is to be charged like that of a reply.
    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed>;
    /// As [`Model::query`], and what is written goes out piece by piece meanwhile; the pieces are a beginning of the
    /// reply, its tool calls excepted. Once one was passed on no other try is made, because its reply would be another. A
    /// model that has its reply at once sends no pieces.
    async fn stream(&self, request: &Request, _pieces: &Pieces) -> Result<Reply, QueryFailed> {
        self.query(request).await
    }
}
