//! Options that an external agent's request may set, independent of any provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options set by an external agent. The provider's default applies to those that are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Wishes")]
pub struct RequestOptions {
    /// Which tools the reply should call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ToolCallChoice>,
    /// Format of the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ReplyFormat>,
    /// Sampling is restricted to the most likely tokens whose probabilities add up to this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sampling is restricted to this number of most likely tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// Penalty for tokens that occurred before, proportional to their number of occurrences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Penalty for tokens that occurred before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Texts at which the reply ends. The gateway cuts the reply; these texts are not sent to the provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
    /// Length of the reply, as one of the provider's keywords.
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
    /// No tool may be called.
    None,
    /// At least one tool must be called.
    Required,
    /// The tool of this name must be called.
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
        /// The schema's name.
        name: String,
        /// The schema.
        schema: serde_json::Value,
        /// Whether the provider should enforce the schema.
        strict: Option<bool>,
    },
}
