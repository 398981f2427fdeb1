//! Request options of external agents, beside the conversation and tools, independent of any provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options that an external agent asks for. The provider decides those that are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wishes")]
pub struct RequestOptions {
    /// Which tools the reply should call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ToolCallChoice>,
    /// Format of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ReplyFormat>,
    /// Sample from the most likely tokens whose probabilities add up to this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sample from this many of the most likely tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// Penalty for tokens, proportional to how often they occurred before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Penalty for tokens that occurred before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Texts at which the reply ends. The gateway cuts the reply there; they are not sent to the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
    /// Length of the reply, in the provider's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

impl RequestOptions {
    /// Whether no option is set.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Which tools a reply should call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Choice")]
#[serde(rename_all = "snake_case")]
pub enum ToolCallChoice {
    /// The model decides.
    Auto,
    /// No tools.
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Tool(String),
}

/// Format of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Format")]
#[serde(rename_all = "snake_case")]
pub enum ReplyFormat {
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema {
        /// Its name.
        name: String,
        /// The schema.
        schema: serde_json::Value,
        /// Whether the provider should enforce the schema.
        strict: Option<bool>,
    },
}
