//! What a program of its own asks of a model beside its conversation and tools, in no provider's words.

use serde::{Deserialize, Serialize};

/// What a program asks for. What is `None` is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
