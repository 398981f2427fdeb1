//! Messages of a conversation, each written once and pointed at by the calls of the model that were shown it.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::agent::{Event, conversation};
use crate::model::{Message, Role};

/// All messages of an attempt, in order. Of an agent that holds several conversations they follow one another.
pub struct Pool<'a> {
    uuid: &'a str,
    model: Option<&'a str>,
    said: Vec<Message>,
    reasoning: HashMap<usize, &'a str>,
    /// Where the conversation that is going on begins.
    start: usize,
}

/// `ChatMessage`.
#[derive(Serialize)]
pub struct ChatMessage<'a> {
    id: String,
    role: Role,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts([Part<'a>; 2]),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Reasoning { reasoning: &'a str },
    Text { text: &'a str },
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    function: &'a str,
    arguments: &'a Value,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> Pool<'a> {
    /// An empty pool of the attempt with this id.
    pub fn new(uuid: &'a str, model: Option<&'a str>) -> Self {
        Self { uuid, model, said: Vec::new(), reasoning: HashMap::new(), start: 0 }
    }

    /// Adds what an event shows to the model. Every conversation begins with a message of its own from the system. One that
    /// is changed in what was said already is written once more: earlier calls were shown it as it was.
    pub fn take(&mut self, event: &'a Event) {
        let rewrites = match event {
            Event::Asked { kept, messages, .. } if self.start + kept == self.said.len() => {
                return self.said.extend_from_slice(messages);
            }
            Event::Asked { .. } | Event::Try { .. } | Event::Forgotten { .. } | Event::Shortened { .. } => true,
            _ => false,
        };
        if rewrites {
            let mut going_on = self.said[self.start..].to_vec();
            conversation::take(&mut going_on, event);
            self.start = self.said.len();
            return self.said.append(&mut going_on);
        }
        if matches!(event, Event::Message { role: Role::System, .. }) {
            self.start = self.said.len();
        }
        conversation::take(&mut self.said, event);
        if let Event::Reply { reasoning: Some(reasoning), .. } = event {
            self.reasoning.insert(self.said.len() - 1, reasoning);
        }
    }

    /// The messages that a call of the model is shown now: from, and up to.
    pub fn shown(&self) -> (usize, usize) {
        (self.start, self.said.len())
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.said.len()
    }

    /// Adds a message in place of a conversation that an agent without a model does not have.
    pub fn say(&mut self, content: &str) {
        self.said.push(Message::new(Role::User, content));
    }

    /// The first thing that the model was asked.
    pub fn task(&self) -> Option<&str> {
        self.said.iter().find(|message| message.role == Role::User).map(|message| message.content.as_str())
    }

    /// A message.
    pub fn message(&self, index: usize) -> ChatMessage<'_> {
        let message = &self.said[index];
        let is_reply = message.role == Role::Assistant;
        let content = match self.reasoning.get(&index) {
            Some(reasoning) => Content::Parts([Part::Reasoning { reasoning }, Part::Text { text: &message.content }]),
            None => Content::Text(&message.content),
        };
        let calls = message.tool_calls.iter();
        ChatMessage {
            id: self.id(index),
            role: message.role,
            content,
            source: match message.role {
                Role::Assistant => Some("generate"),
                Role::User if index < self.start + 2 => Some("input"),
                _ => None,
            },
            tool_calls: calls
                .map(|call| ToolCall {
                    id: &call.id,
                    function: &call.name,
                    arguments: &call.arguments,
                    kind: "function",
                })
                .collect(),
            tool_call_id: message.tool_call_id.as_deref(),
            function: message.tool_call_id.as_deref().and_then(|id| self.function(index, id)),
            model: self.model.filter(|_| is_reply),
        }
    }

    /// A message's id: unique among all messages of all attempts.
    pub fn id(&self, index: usize) -> String {
        format!("{}-{index}", self.uuid)
    }

    /// All messages.
    pub fn messages(&self) -> Vec<ChatMessage<'_>> {
        (0..self.said.len()).map(|index| self.message(index)).collect()
    }

    /// Name of the tool that was called by this id, before this message.
    fn function(&self, before: usize, id: &str) -> Option<&str> {
        let calls = self.said[..before].iter().rev().flat_map(|message| &message.tool_calls);
        calls.into_iter().find(|call| call.id == id).map(|call| call.name.as_str())
    }
}
