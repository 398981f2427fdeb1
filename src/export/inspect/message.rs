//! Messages of conversations, each stored once and referenced by the model calls that included it.

use serde::Serialize;
use serde_json::Value;

use crate::agent::{Event, conversation};
use crate::model::{Message, Role};

/// All messages of an attempt in order, and the part of them that forms the current conversation. An agent may hold
/// several conversations, one after another. If a message is shortened after a call has included it, the original stays
/// for that call and the shortened text becomes a new message.
pub struct MessagePool<'a> {
    uuid: &'a str,
    model: Option<&'a str>,
    said: Vec<StoredMessage<'a>>,
    /// The current conversation.
    live: Vec<Message>,
    /// For each message of the current conversation, its index in `said`, the list of all messages.
    places: Vec<usize>,
    /// Number of leading messages that a call has included and that must not change any more.
    fixed: usize,
}

struct StoredMessage<'a> {
    message: Message,
    reasoning: Option<&'a str>,
    /// Whether the message is the task at the start of a conversation.
    is_input: bool,
    /// Whether the message is a changed version of an earlier message.
    is_rest: bool,
}

/// Inspect's `ChatMessage`.
#[derive(Serialize)]
pub struct ChatMessage<'a> {
    id: String,
    role: Role,
    content: MessageContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<LoggedToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Text(&'a str),
    Parts([MessagePart<'a>; 2]),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagePart<'a> {
    Reasoning { reasoning: &'a str },
    Text { text: &'a str },
}

#[derive(Serialize)]
struct LoggedToolCall<'a> {
    id: &'a str,
    function: &'a str,
    arguments: &'a Value,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> MessagePool<'a> {
    /// Creates the list of messages, which is empty at first, of the attempt with this id.
    pub fn new(uuid: &'a str, model: Option<&'a str>) -> Self {
        Self { uuid, model, said: Vec::new(), live: Vec::new(), places: Vec::new(), fixed: 0 }
    }

    /// Adds the messages of an event. A system message or a new try starts a new conversation. A message that changed
    /// after it was included in a call is stored again, because the earlier call included the old version.
    pub fn add_event(&mut self, event: &'a Event) {
        if self.model.is_none() {
            // Events of an agent without a model are not part of a conversation, so add no messages.
            return;
        }
        if matches!(event, Event::Message { role: Role::System, .. }) {
            self.live.clear();
            self.places.clear();
        }
        conversation::take(&mut self.live, event);
        match event {
            Event::Try { .. } => self.places.clear(),
            // An external agent sends its whole conversation with each call. The first `kept` messages are those of the
            // previous call; the messages after them are new.
            Event::Asked { kept, .. } => {
                self.places.truncate(*kept);
                while self.places.len() < self.live.len() {
                    self.add(None, false);
                }
            }
            Event::Forgotten { from, count, .. } => {
                let end = from.saturating_add(*count).min(self.places.len());
                self.places.drain((*from).min(end)..end);
                self.changed(from.checked_sub(1));
            }
            Event::Shortened { message, .. } => self.changed(Some(*message)),
            _ if self.live.len() > self.places.len() => {
                let reasoning = match event {
                    Event::Reply { reasoning, .. } => reasoning.as_deref(),
                    _ => None,
                };
                self.add(reasoning, false);
            }
            // Two user messages in a row are merged, so this event may have extended the last message instead of adding
            // one.
            Event::Message { .. } | Event::Observation { .. } => self.changed(self.places.len().checked_sub(1)),
            _ => {}
        }
    }

    /// Adds to `said` the first message of the current conversation that is not in `said` yet.
    fn add(&mut self, reasoning: Option<&'a str>, is_rest: bool) {
        let place = self.places.len();
        if let Some(message) = self.live.get(place).cloned() {
            let is_input = message.role == Role::User && place < 2;
            self.places.push(self.said.len());
            self.said.push(StoredMessage { message, reasoning, is_input, is_rest });
        }
    }

    /// Updates a message of the conversation whose content has changed.
    fn changed(&mut self, place: Option<usize>) {
        let Some(place) = place else { return };
        let (Some(message), Some(index)) = (self.live.get(place), self.places.get_mut(place)) else { return };
        let Some(said) = self.said.get(*index) else { return };
        if said.message.content == message.content {
            return;
        }
        if *index >= self.fixed {
            self.said[*index].message.content.clone_from(&message.content);
        } else {
            let said = StoredMessage { message: message.clone(), is_rest: true, ..*said };
            *index = self.said.len();
            self.said.push(said);
        }
    }

    /// Returns the messages that a model call includes now, as ranges `[start, end)`.
    pub fn included_ranges(&mut self) -> Vec<(usize, usize)> {
        self.fixed = self.said.len();
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for &place in &self.places {
            match ranges.last_mut() {
                Some((_, end)) if *end == place => *end += 1,
                _ => ranges.push((place, place + 1)),
            }
        }
        ranges
    }

    /// Number of messages, including changed versions.
    pub fn len(&self) -> usize {
        self.said.len()
    }

    /// Adds a message in place of a conversation, for an agent without a model.
    pub fn add_message(&mut self, content: &str) {
        self.live.push(Message::new(Role::User, content));
        self.add(None, false);
    }

    /// The first user message.
    pub fn task(&self) -> Option<&str> {
        let mut messages = self.said.iter().map(|said| &said.message);
        messages.find(|message| message.role == Role::User).map(|message| message.content.as_str())
    }

    /// Returns the message with this index.
    pub fn message(&self, index: usize) -> ChatMessage<'_> {
        let StoredMessage { message, reasoning, is_input, .. } = &self.said[index];
        let is_reply = message.role == Role::Assistant;
        let content = match reasoning {
            Some(reasoning) => MessageContent::Parts([
                MessagePart::Reasoning { reasoning },
                MessagePart::Text { text: &message.content },
            ]),
            None => MessageContent::Text(&message.content),
        };
        let calls = message.tool_calls.iter();
        ChatMessage {
            id: self.id(index),
            role: message.role,
            content,
            source: match message.role {
                Role::Assistant => Some("generate"),
                Role::User if *is_input => Some("input"),
                _ => None,
            },
            tool_calls: calls
                .map(|call| LoggedToolCall {
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

    /// Returns a message's id, which is unique among all messages of all attempts.
    pub fn id(&self, index: usize) -> String {
        format!("{}-{index}", self.uuid)
    }

    /// Returns all messages that model calls may reference.
    pub fn all(&self) -> Vec<ChatMessage<'_>> {
        (0..self.said.len()).map(|index| self.message(index)).collect()
    }

    /// Returns the messages in their original versions, without the changed versions that were stored later.
    pub fn messages(&self) -> Vec<ChatMessage<'_>> {
        (0..self.said.len()).filter(|&index| !self.said[index].is_rest).map(|index| self.message(index)).collect()
    }

    /// Returns the name of the tool that was called with this id before the message at `before`.
    fn function(&self, before: usize, id: &str) -> Option<&str> {
        let calls = self.said[..before].iter().rev().flat_map(|said| &said.message.tool_calls);
        calls.into_iter().find(|call| call.id == id).map(|call| call.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{Sampling, Usage};

    fn message_event(role: Role, content: &str) -> Event {
        Event::Message { role, call_id: None, content: content.to_owned() }
    }

    fn reply(text: &str) -> Event {
        let (usage, cost, seconds) = (Usage::default(), 0.0, 0.0);
        Event::Reply {
            step: 1,
            text: text.to_owned(),
            reasoning: None,
            tool_calls: Vec::new(),
            thoughts: Vec::new(),
            estimated: false,
            cached: false,
            finish: None,
            weights: None,
            tokens: None,
            unanswered: 0,
            usage,
            cost,
            seconds,
            seed: None,
        }
    }

    /// Returns the contents of the messages that a model call at this point would include.
    fn visible_contents(pool: &mut MessagePool<'_>) -> Vec<String> {
        let indices = pool.included_ranges().into_iter().flat_map(|(from, to)| from..to);
        indices.map(|index| pool.said[index].message.content.clone()).collect()
    }

    #[test]
    fn messages_exported_for_an_earlier_call_stay_unchanged_when_later_events_shorten_the_conversation() {
        let mut events = vec![
            message_event(Role::System, "s"),
            message_event(Role::User, "t"),
            reply("1"),
            message_event(Role::User, "a long one"),
        ];
        events.extend([reply("2"), message_event(Role::User, "b"), reply("3"), message_event(Role::User, "c")]);
        let shortened = Event::Shortened { message: 3, content: "short".to_owned() };
        let forgotten = Event::Forgotten { from: 2, count: 4, keep: 1, note: "four left".to_owned() };
        let more = [message_event(Role::User, "and d"), Event::Try { number: 2, why: None }];
        let again = [message_event(Role::System, "s"), message_event(Role::User, "again")];

        let mut pool = MessagePool::new("u", Some("m"));
        for event in &events {
            pool.add_event(event);
        }
        let whole = pool.included_ranges();
        assert_eq!(whole, [(0, 8)]);
        pool.add_event(&shortened);
        assert_eq!(visible_contents(&mut pool), ["s", "t", "1", "short", "2", "b", "3", "c"]);
        pool.add_event(&forgotten);
        assert_eq!(visible_contents(&mut pool), ["s", "t\n\nfour left", "3", "c"]);
        pool.add_event(&more[0]);
        assert_eq!(visible_contents(&mut pool), ["s", "t\n\nfour left", "3", "c\n\nand d"]);
        more[1..].iter().chain(&again).for_each(|event| pool.add_event(event));
        assert_eq!(visible_contents(&mut pool), ["s", "again"]);

        let first: Vec<&str> = pool.said[..8].iter().map(|said| said.message.content.as_str()).collect();
        assert_eq!(first, ["s", "t", "1", "a long one", "2", "b", "3", "c"]);
        let once = serde_json::to_value(pool.messages()).unwrap();
        let once: Vec<&str> = once.as_array().unwrap().iter().filter_map(|one| one["content"].as_str()).collect();
        assert_eq!(once, ["s", "t", "1", "a long one", "2", "b", "3", "c", "s", "again"]);
        assert_eq!(serde_json::to_value(pool.message(1)).unwrap()["source"], json!("input"));
        assert_eq!(serde_json::to_value(pool.message(7)).unwrap().get("source"), None);
    }

    #[test]
    fn a_call_with_a_shortened_conversation_does_not_change_the_messages_of_earlier_calls() {
        let asked = |call: u32, kept: usize, said: &[&str]| Event::Asked {
            call,
            kept,
            messages: said.iter().map(|text| Message::new(Role::User, *text)).collect(),
            tools: None,
            sampling: Sampling::default(),
            wishes: crate::model::RequestOptions::default(),
        };
        let events = [asked(0, 0, &["s", "t"]), reply("1"), asked(1, 3, &["a"]), reply("2"), asked(2, 1, &["other"])];
        let mut pool = MessagePool::new("u", Some("m"));
        for event in &events[..4] {
            pool.add_event(event);
        }
        assert_eq!(pool.included_ranges(), [(0, 5)]);
        pool.add_event(&events[4]);
        assert_eq!(visible_contents(&mut pool), ["s", "other"]);
        assert_eq!(pool.included_ranges(), [(0, 1), (5, 6)]);
    }
}
