//! What a program of its own asks of a model beside its conversation and tools, in no provider's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a program asks for. What is `None` is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wishes {
    /// Which tools the reply is to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// How the reply is to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Samples from the likeliest tokens that have so much probability together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Samples from this many of the likeliest tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// Penalty for tokens by how often they came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Penalty for tokens that came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Texts at which the reply ends. The gateway ends it there; no provider is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<String>,
    /// How long the reply is to be, in the provider's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
}

impl Wishes {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Which tools a reply is to call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// As the model likes.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Tool(String),
}

/// How a reply is to be written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// As any JSON object.
    Json,
    /// As JSON of a schema.
    Schema {
        /// Its name.
        name: String,
        /// The schema.
        schema: serde_json::Value,
        /// Whether nothing else may come.
        strict: Option<bool>,
    },
}
