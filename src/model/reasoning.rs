//! Reasoning in chat completions: the field in which a server sends it and takes it back, and reasoning that a server
//! leaves in the text of a reply, between tags.

use std::sync::atomic::{AtomicUsize, Ordering};

use genai::chat::{ChatMessage, ChatRole, ContentPart};
use serde_json::{Map, Value, json};

use super::{Reply, Thought};

/// Fields of a message in which servers send reasoning. DeepSeek, Kimi and SGLang use the first, vLLM, Groq and
/// OpenRouter the second. Under the wrong name, vLLM ignores the reasoning and Groq refuses the request.
const FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Tags around reasoning in a reply's text.
const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Place in [`FIELDS`] of the field in which one server sends reasoning and takes it back; `FIELDS.len()` if the server
/// refuses reasoning.
#[derive(Debug, Default)]
pub(super) struct ReasoningField(AtomicUsize);

impl ReasoningField {
    /// Returns the field's name; `None` if the server refuses reasoning.
    pub(super) fn name(&self) -> Option<&'static str> {
        FIELDS.get(self.0.load(Ordering::Relaxed)).copied()
    }

    /// Learns the field from a message of the server, or from a piece of one.
    pub(super) fn learn(&self, message: &Value) {
        if let Some(place) = FIELDS.iter().position(|name| has_text(message, name))
            && self.name().is_some()
        {
            self.0.store(place, Ordering::Relaxed);
        }
    }

    /// Stops sending reasoning to the server.
    pub(super) fn give_up(&self) {
        self.0.store(FIELDS.len(), Ordering::Relaxed);
    }
}

fn has_text(message: &Value, field: &str) -> bool {
    message.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Whether a message, or a piece of one, contains reasoning in a field of its own.
pub(super) fn is_in(message: &Value) -> bool {
    FIELDS.iter().any(|name| has_text(message, name))
}

/// Returns the `messages` of a request with the reasoning in `field`; `None` if `genai` writes the same, because it
/// knows only the first of [`FIELDS`].
pub(super) fn messages_with(field: Option<&str>, messages: Vec<ChatMessage>) -> Option<Value> {
    let field = field.filter(|name| *name != FIELDS[0])?;
    let is_reasoning = |part: &ContentPart| matches!(part, ContentPart::ReasoningContent(_));
    let has_reasoning = messages.iter().any(|message| message.content.parts().iter().any(is_reasoning));
    has_reasoning.then(|| messages.into_iter().map(|message| written(field, message)).collect())
}

/// Writes a message in OpenAI's format, with the reasoning in `field`.
fn written(field: &str, message: ChatMessage) -> Value {
    let role = match message.role {
        ChatRole::System => "system",
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Tool => "tool",
    };
    let mut fields = Map::from_iter([("role".to_owned(), json!(role))]);
    let (mut texts, mut pictures, mut calls, mut details) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for part in message.content {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::Binary(picture) => {
                pictures.push(json!({"type": "image_url", "image_url": {"url": picture.into_url()}}));
            }
            ContentPart::ToolCall(call) => {
                let function = json!({"name": call.fn_name, "arguments": call.fn_arguments.to_string()});
                calls.push(json!({"type": "function", "id": call.call_id, "function": function}));
            }
            ContentPart::ToolResponse(result) => {
                texts.push(result.content);
                fields.insert("tool_call_id".to_owned(), json!(result.call_id));
            }
            ContentPart::ReasoningContent(text) => drop(fields.insert(field.to_owned(), json!(text))),
            // Leave out all other blocks. `genai` does not send them to these servers, either.
            ContentPart::Custom(block) if block.typ().is_some_and(|kind| kind.starts_with("reasoning.")) => {
                details.push(block.data);
            }
            ContentPart::Custom(_) | ContentPart::ThoughtSignature(_) => {}
        }
    }
    let text = texts.join("\n\n");
    let content = if pictures.is_empty() {
        json!(text)
    } else {
        pictures.insert(0, json!({"type": "text", "text": text}));
        Value::Array(pictures)
    };
    fields.insert("content".to_owned(), content);
    for (name, list) in [("tool_calls", calls), ("reasoning_details", details)] {
        if !list.is_empty() {
            fields.insert(name.to_owned(), Value::Array(list));
        }
    }
    Value::Object(fields)
}

/// Whether the beginning of a reply's text is, or may become, an opening tag of reasoning.
pub(super) fn may_begin(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(OPEN) || OPEN.starts_with(text)
}

/// Moves reasoning between tags from the reply's text to its reasoning. Returns whether the opening tag was missing.
pub(super) fn take_from_text(reply: &mut Reply) -> bool {
    if reply.reasoning.is_some() {
        return false;
    }
    let Some((thoughts, rest)) = split(&reply.text) else { return false };
    let is_unopened = !reply.text.trim_start().starts_with(OPEN);
    let (thoughts, rest) = (thoughts.to_owned(), rest.to_owned());
    reply.text = rest;
    if !thoughts.is_empty() {
        reply.thoughts.push(Thought::Text(thoughts.clone()));
        reply.reasoning = Some(thoughts);
    }
    is_unopened
}

/// Splits a text that begins with reasoning into the reasoning and the rest; `None` if the text does not begin with
/// reasoning. The opening tag is missing if the model's chat template writes it into the prompt, and the closing tag if
/// the reply was cut. Tags elsewhere in the text are part of what the model says, such as code that handles tags.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let (thoughts, rest) = if let Some(rest) = text.strip_prefix(OPEN) {
        let end = closing(rest).or_else(|| rest.find(CLOSE));
        end.map_or((rest, ""), |end| (&rest[..end], &rest[end + CLOSE.len()..]))
    } else {
        let end = closing(text).filter(|&end| is_unopened(text, end))?;
        (&text[..end], &text[end + CLOSE.len()..])
    };
    Some((thoughts.trim(), rest.trim()))
}

/// Whether the closing tag at `end` ends reasoning that has no opening tag. The tag must be alone on its line, because
/// otherwise it may be part of a sentence or of code. The text before it must not contain an opening tag or a call.
fn is_unopened(text: &str, end: usize) -> bool {
    let (before, after) = (&text[..end], &text[end + CLOSE.len()..]);
    let starts_line = before.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|last| last == '\n');
    let ends_line = after.trim_start_matches([' ', '\t', '\r']).chars().next().is_none_or(|first| first == '\n');
    starts_line && ends_line && ![OPEN, "<tool_call>", "<function="].iter().any(|tag| before.contains(tag))
}

/// Returns the place of the first closing tag that is not part of code: it is not in a code block, it does not follow a
/// quote, and whitespace or nothing follows it.
fn closing(text: &str) -> Option<usize> {
    text.match_indices(CLOSE).map(|(place, _)| place).find(|place| {
        let (before, after) = (&text[..*place], &text[place + CLOSE.len()..]);
        (after.is_empty() || after.starts_with(char::is_whitespace))
            && !before.ends_with(['"', '\'', '`'])
            && before.matches("```").count().is_multiple_of(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_in_tags_is_split_from_a_text_that_begins_with_it() {
        for (text, thoughts, rest) in [
            ("<think>Hm.</think>\n\nYes.", "Hm.", "Yes."),
            ("<think>Hm.</think>Yes.", "Hm.", "Yes."),
            (" \n<think>\nCut off", "Cut off", ""),
            ("I call `rm`.\n</think>\n\nYes.", "I call `rm`.", "Yes."),
            ("Hm.\n</think>", "Hm.", ""),
            ("</think>\nYes.", "", "Yes."),
            (
                "Like\n```\ns.split('</think>')\n</think>\n```\nso.\n</think>\nYes.",
                "Like\n```\ns.split('</think>')\n</think>\n```\nso.",
                "Yes.",
            ),
            ("<think>Not \"</think>\" yet.\n</think>\nYes.", "Not \"</think>\" yet.", "Yes."),
        ] {
            assert_eq!(split(text), Some((thoughts, rest)), "{text}");
        }
    }

    #[test]
    fn code_that_handles_tags_is_left_as_it_is() {
        for text in [
            "",
            "Yes.",
            "text.split(\"<think>\")[1].split(\"</think>\")[0]",
            "text.rsplit(\"</think>\")[-1]",
            "text.rsplit('</think> ')",
            "```\na\n</think>\nb\n```",
            "```python\nx = 1\n```\nIt drops everything up to the closing </think> tag.",
            "<function=write_file>\n<parameter=content>\n\"\"\"\n</think>\n\"\"\"</parameter>\n</function>",
            "def f(reply):\n    \"\"\"Return the part after </think> of a reply.\"\"\"",
            "First <think>, then\n</think>\n",
        ] {
            assert_eq!(split(text), None, "{text}");
        }
    }

    #[test]
    fn a_beginning_that_may_become_a_tag_is_recognised() {
        for (text, may) in [("", true), (" <thi", true), ("<think>Hm", true), ("<this", false), ("Yes", false)] {
            assert_eq!(may_begin(text), may, "{text}");
        }
    }
}
