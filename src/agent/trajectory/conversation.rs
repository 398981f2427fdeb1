//! The conversation with the model: extended by agents during an attempt, and rebuilt from a stored trajectory.
//!
//! Both use [`take`], so the record contains exactly what the model was shown.

use serde_json::{Value, json};

use super::{Event, TimedEvent};
use crate::model::{Message, Role, Thought, ToolCall};

/// Maximum number of characters kept of a call's arguments if they are a text instead of a JSON object. The text is
/// sent back to the provider inside an object, because providers reject arguments that are not an object.
const MALFORMED_KEPT: usize = 1000;

/// Applies an event to the conversation. Most events change nothing, because the model is not shown them.
pub fn take(messages: &mut Vec<Message>, event: &Event) {
    match event {
        Event::Message { role, content, call_id } => push(messages, *role, content, call_id.as_deref()),
        Event::Reply { text, tool_calls, thoughts, .. } => push_reply(messages, text, tool_calls, thoughts),
        Event::Observation { content, call_id, .. } => {
            let role = if call_id.is_some() { Role::Tool } else { Role::User };
            push(messages, role, content, call_id.as_deref());
        }
        Event::Asked { kept, messages: asked, .. } => {
            messages.truncate(*kept);
            messages.extend_from_slice(asked);
        }
        Event::Try { .. } => messages.clear(),
        Event::Forgotten { from, count, keep, note } => forget(messages, *from, *count, *keep, note),
        Event::Shortened { message, content } => {
            if let Some(message) = messages.get_mut(*message) {
                message.content.clone_from(content);
            }
        }
        _ => {}
    }
}

/// Rebuilds the conversation of a stored trajectory. If the attempt had several tries, returns the conversation of the
/// last try.
#[must_use]
pub fn replay(lines: &[TimedEvent]) -> Vec<Message> {
    let mut messages = Vec::new();
    for line in lines {
        take(&mut messages, &line.event);
    }
    messages
}

/// Appends a message. Consecutive user messages are merged, because some chat templates insist on alternating roles.
fn push(messages: &mut Vec<Message>, role: Role, content: &str, call_id: Option<&str>) {
    if let (Role::User, Some(last)) = (role, messages.last_mut())
        && last.role == Role::User
    {
        last.content.push_str("\n\n");
        last.content.push_str(content);
        return;
    }
    let mut message = Message::new(role, content);
    message.tool_call_id = call_id.map(str::to_owned);
    messages.push(message);
}

/// Removes messages, and appends a note to the message before them. The note replaces an earlier note.
fn forget(messages: &mut Vec<Message>, from: usize, count: usize, keep: usize, note: &str) {
    let end = from.saturating_add(count).min(messages.len());
    messages.drain(from.min(end)..end);
    if let Some(before) = from.checked_sub(1).and_then(|index| messages.get_mut(index)) {
        let kept = before.content.get(..keep).unwrap_or(&before.content);
        before.content = format!("{kept}\n\n{note}");
    }
}

/// Appends a reply. The reply is repaired if necessary, because providers reject empty assistant messages and calls
/// whose arguments are not an object.
fn push_reply(messages: &mut Vec<Message>, text: &str, tool_calls: &[ToolCall], thoughts: &[Thought]) {
    let empty = text.is_empty() && tool_calls.is_empty();
    let mut message = Message::new(Role::Assistant, if empty { "(nothing)" } else { text });
    message.tool_calls = tool_calls.iter().map(sendable).collect();
    message.thoughts = thoughts.to_vec();
    messages.push(message);
}

/// Converts a call to a form that providers accept when it is sent back.
fn sendable(call: &ToolCall) -> ToolCall {
    let arguments = match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        Value::Null => json!({}),
        Value::String(text) => json!({ "malformed": text.chars().take(MALFORMED_KEPT).collect::<String>() }),
        other => json!({ "malformed": other }),
    };
    ToolCall { id: call.id.clone(), name: call.name.clone(), arguments }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RequestOptions, Sampling, Usage};

    fn reply(text: &str, tool_calls: Vec<ToolCall>) -> Event {
        Event::Reply {
            step: 1,
            text: text.into(),
            reasoning: None,
            tool_calls,
            thoughts: Vec::new(),
            estimated: false,
            cached: false,
            finish: None,
            weights: None,
            tokens: None,
            unanswered: 0,
            usage: Usage::default(),
            cost: 0.0,
            seconds: 0.0,
            seed: None,
        }
    }

    fn message_event(role: Role, content: &str) -> Event {
        Event::Message { role, content: content.into(), call_id: None }
    }

    #[test]
    fn user_messages_in_a_row_become_one() {
        let mut messages = Vec::new();
        for event in [
            message_event(Role::System, "s"),
            message_event(Role::User, "a"),
            message_event(Role::User, "b"),
            reply("c", vec![]),
        ] {
            take(&mut messages, &event);
        }
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[1].content, "a\n\nb");
    }

    #[test]
    fn a_new_request_replaces_messages_that_the_agent_dropped() {
        let asked = |kept, words: &[&str]| Event::Asked {
            call: 0,
            kept,
            messages: words.iter().map(|word| Message::new(Role::User, *word)).collect(),
            tools: None,
            sampling: Sampling::default(),
            wishes: RequestOptions::default(),
        };
        let mut messages = Vec::new();
        for event in [asked(0, &["a", "b"]), reply("c", vec![]), asked(3, &["d"]), reply("e", vec![]), asked(1, &["f"])]
        {
            take(&mut messages, &event);
        }
        let words: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(words, ["a", "f"]);
    }

    #[test]
    fn conversations_that_providers_refuse_are_repaired() {
        let mut messages = Vec::new();
        take(&mut messages, &reply("", vec![]));
        let broken = ToolCall { id: "1".into(), name: "x".into(), arguments: Value::String("{".repeat(1 << 20)) };
        take(&mut messages, &reply("", vec![broken]));
        assert_eq!(messages[0].content, "(nothing)");
        let kept = &messages[1].tool_calls[0].arguments;
        assert_eq!(kept["malformed"].as_str().map(str::len), Some(MALFORMED_KEPT));
    }
}
