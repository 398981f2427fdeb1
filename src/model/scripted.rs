//! Replies from a file, for tests and demonstrations: no provider, no network, no key.
//!
//! The file is JSON lines, or one JSON array, of replies: `{"text": "...", "tool_calls": [{"name": "...", "arguments":
//! {...}}], "usage": {...}, "cost": 0.01}`, all optional. A request gets the reply at index [`Request::call`], so any
//! number of attempts can share a script.

use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{Model, ModelError, QueryFailed, Quote, Reply, ReplyTokens, Request, ToolCall, Usage};
use crate::error::{Error, Result};
use crate::files::json_lines;

/// A model that gives the replies of a script.
pub(super) struct ScriptedModel {
    name: String,
    replies: Vec<ScriptedReply>,
}

/// A reply in a script file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedReply {
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ScriptedCall>,
    #[serde(default)]
    usage: Option<ScriptedTokens>,
    #[serde(default)]
    cost: f64,
    #[serde(default)]
    finish: Option<String>,
    #[serde(default)]
    weights: Option<String>,
    #[serde(default)]
    tokens: Option<ReplyTokens>,
}

/// A tool call in a script file. Its id is made from its position.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default = "no_arguments")]
    arguments: Value,
}

/// Token counts in a script file; all are optional.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ScriptedTokens {
    input: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
    reasoning: u64,
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

impl ScriptedModel {
    /// Reads a script.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be read, or, with file and line, if it is not a script.
    pub(super) fn load(name: &str, path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::usage(format!("failed to read script `{}`", path.display())).because(error))?;
        let wrong = |line: usize, error: serde_json::Error| {
            Error::usage(format!("the script is wrong: {error}"))
                .at(path, Some(line))
                .hint("each reply is `{\"text\": ..., \"tool_calls\": [{\"name\": ..., \"arguments\": {...}}]}`")
        };
        let replies: Vec<ScriptedReply> = if text.trim_start().starts_with('[') {
            serde_json::from_str(&text).map_err(|error| wrong(error.line(), error))?
        } else {
            let lines = json_lines(text.as_bytes());
            lines.map(|line| line.value.map_err(|error| wrong(line.number, error))).collect::<Result<_>>()?
        };
        if replies.is_empty() {
            return Err(Error::usage("the script has no replies")
                .at(path, None)
                .hint("write one JSON object a line, as {\"text\": \"...\"}"));
        }
        if let Some(place) = replies.iter().position(|reply| !(reply.cost.is_finite() && reply.cost >= 0.0)) {
            return Err(Error::usage(format!("reply {place} (from 0) has a negative cost")).at(path, None));
        }
        Ok(Self { name: name.to_owned(), replies })
    }

    /// Returns the script's reply to a request, if there is one.
    fn written(&self, request: &Request) -> Option<&ScriptedReply> {
        self.replies.get(usize::try_from(request.call).ok()?)
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    /// Returns the cost that the script states for the reply as the estimated cost.
    fn quote(&self, request: &Request) -> Quote {
        Quote { read: self.written(request).map_or(0.0, |reply| reply.cost), ..Quote::default() }
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        let written = self.written(request).ok_or_else(|| {
            ModelError::Exhausted(format!(
                "the script has {} replies, none for call {}",
                self.replies.len(),
                request.call
            ))
        })?;
        let tokens = written.usage.unwrap_or_default();
        Ok(Reply {
            text: written.text.clone(),
            reasoning: written.reasoning.clone(),
            finish: written.finish.clone(),
            weights: written.weights.clone(),
            tokens: written.tokens.clone(),
            tool_calls: (written.tool_calls.iter().enumerate())
                .map(|(place, call)| ToolCall {
                    id: format!("call-{}-{place}", request.call),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                })
                .collect(),
            usage: Usage {
                input: tokens.input,
                cached: tokens.cached,
                cache_written: tokens.cache_written,
                output: tokens.output,
                reasoning: tokens.reasoning,
            },
            cost: written.cost,
            ..Reply::default()
        })
    }
}
