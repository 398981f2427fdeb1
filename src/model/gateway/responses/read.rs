//! Reads a request: converts items to messages.

use serde_json::{Value, json};

use super::super::openai::no_arguments;
use super::super::parts::{self, RequestReader, list, text};
use super::super::{HashMap, ParsedRequest, Refusal, SpecialTool, thoughts};
use crate::model::{Message, Request, RequestOptions, Role, Sampling, Tool, ToolCall};

/// Fields that are read or can be ignored.
const FIELDS: [&str; 24] = [
    "input",
    "instructions",
    "model",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
    "temperature",
    "top_p",
    "max_output_tokens",
    "stream",
    "stream_options",
    "store",
    "include",
    "metadata",
    "client_metadata",
    "user",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "truncation",
    "background",
];

/// Separates a namespace from the name of its function, in the single name used with the model.
const WITHIN: &str = "__";

/// Parses a request.
pub(in super::super) fn read(body: &Value) -> Result<ParsedRequest, Refusal> {
    for field in ["previous_response_id", "conversation", "prompt"] {
        if body.get(field).is_some_and(|value| !value.is_null()) {
            return Err(Refusal::invalid(format!(
                "this gateway keeps nothing between calls, so there is no `{field}`: send the whole conversation as \
                 `input`, as clients do with `store` off"
            )));
        }
    }
    if body.get("background").and_then(Value::as_bool) == Some(true) {
        return Err(Refusal::invalid("this gateway answers while a client waits: leave `background` off"));
    }
    let mut reader = RequestReader::default();
    reader.leave_out_fields(body, "", &FIELDS);
    let mut kinds = HashMap::new();
    let mut tools = Vec::new();
    for said in list(body, "tools") {
        tool(said, &mut tools, &mut kinds, &mut reader);
    }
    let mut messages = Vec::new();
    let instructions = text(body, "instructions");
    if !instructions.is_empty() {
        messages.push(Message::new(Role::System, instructions));
    }
    match body.get("input") {
        Some(Value::String(said)) => messages.push(Message::new(Role::User, said.as_str())),
        Some(Value::Array(items)) => {
            for item in items {
                read_item(item, &mut messages, &mut reader)?;
            }
        }
        _ => return Err(Refusal::invalid("`input` is neither a text nor a list of items")),
    }
    Ok(ParsedRequest {
        request: Request {
            messages,
            tools,
            sampling: Sampling {
                temperature: body.get("temperature").and_then(Value::as_f64),
                max_tokens: parts::count(body, "max_output_tokens"),
                effort: parts::effort(body.pointer("/reasoning/effort")),
                ..Sampling::default()
            },
            one_call: body.get("parallel_tool_calls").and_then(Value::as_bool) == Some(false),
            wishes: RequestOptions {
                choice: parts::choice(body.get("tool_choice"), "/name"),
                format: parts::format(body.pointer("/text/format"), None),
                top_p: body.get("top_p").and_then(Value::as_f64),
                verbosity: body.pointer("/text/verbosity").and_then(Value::as_str).map(str::to_owned),
                ..RequestOptions::default()
            },
            foreign: true,
            ..Request::default()
        },
        stops: Vec::new(),
        model: text(body, "model"),
        streams: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        counts: true,
        thinks: true,
        kinds,
        left_out: reader.left_out,
    })
}

/// Reads a tool: a function, a tool that takes free text, or a namespace of functions.
fn tool(said: &Value, tools: &mut Vec<Tool>, kinds: &mut HashMap<String, SpecialTool>, reader: &mut RequestReader) {
    let (name, description) = (text(said, "name"), text(said, "description"));
    match said.get("type").and_then(Value::as_str) {
        Some("function") => {
            let parameters = said.get("parameters").filter(|schema| schema.is_object()).cloned();
            tools.push(Tool { name, description, parameters: parameters.unwrap_or_else(no_arguments) });
        }
        Some("custom") => {
            let grammar = said.pointer("/format/definition").and_then(Value::as_str);
            let grammar = grammar.map(|grammar| format!("\n\nThe input keeps to this grammar:\n{grammar}"));
            let description = description + grammar.as_deref().unwrap_or_default();
            let input = json!({"type": "string", "description": "The whole input, as it stands."});
            let parameters = json!({"type": "object", "properties": {"input": input}, "required": ["input"]});
            kinds.insert(name.clone(), SpecialTool::Custom);
            tools.push(Tool { name, description, parameters });
        }
        Some("namespace") => {
            for function in list(said, "tools") {
                let inner = text(function, "name");
                let known = format!("{name}{WITHIN}{inner}");
                let parameters = function.get("parameters").filter(|schema| schema.is_object()).cloned();
                kinds.insert(known.clone(), SpecialTool::In { namespace: name.clone(), name: inner });
                tools.push(Tool {
                    name: known,
                    description: text(function, "description"),
                    parameters: parameters.unwrap_or_else(no_arguments),
                });
            }
        }
        other => reader.leave_out(format!("the tool `{}`", other.unwrap_or_default())),
    }
}

/// Adds an item. The items of one reply are merged into one message.
fn read_item(item: &Value, messages: &mut Vec<Message>, reader: &mut RequestReader) -> Result<(), Refusal> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    match kind {
        "message" | "agent_message" => read_message(item, messages, reader),
        "reasoning" => {
            let token = text(item, "encrypted_content");
            replied(messages).thoughts.extend(thoughts::placeholder(&token));
            Ok(())
        }
        "function_call" | "custom_tool_call" => {
            let name = text(item, "name");
            let name = match item.get("namespace").and_then(Value::as_str) {
                Some(namespace) if !namespace.is_empty() => format!("{namespace}{WITHIN}{name}"),
                _ => name,
            };
            let arguments = match item.get("input").and_then(Value::as_str) {
                Some(input) if kind == "custom_tool_call" => json!({"input": input}),
                _ => parts::arguments(item.get("arguments")),
            };
            let id = text(item, "call_id");
            replied(messages).tool_calls.push(ToolCall { id, name, arguments });
            Ok(())
        }
        "function_call_output" | "custom_tool_call_output" => {
            let mut result = reader.content(item.get("output"))?.message(Role::Tool);
            result.tool_call_id = Some(text(item, "call_id"));
            messages.push(result);
            Ok(())
        }
        "item_reference" => {
            Err(Refusal::invalid("this gateway keeps nothing between calls, so there is no `item_reference`"))
        }
        other => {
            let note = reader.missing(other);
            messages.push(Message::new(Role::User, note));
            Ok(())
        }
    }
}

fn read_message(item: &Value, messages: &mut Vec<Message>, reader: &mut RequestReader) -> Result<(), Refusal> {
    let role = match item.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        other => return Err(Refusal::invalid(format!("`{}` is not a role of a message", other.unwrap_or_default()))),
    };
    let content = reader.content(item.get("content"))?;
    if role != Role::Assistant {
        messages.push(content.message(role));
        return Ok(());
    }
    let message = replied(messages);
    if !message.content.is_empty() {
        message.content.push('\n');
    }
    message.content.push_str(&content.text);
    Ok(())
}

/// Returns the reply that the last items belong to, starting a new one if needed.
fn replied(messages: &mut Vec<Message>) -> &mut Message {
    if messages.last().is_none_or(|last| last.role != Role::Assistant) {
        messages.push(Message::new(Role::Assistant, ""));
    }
    let last = messages.len() - 1;
    &mut messages[last]
}
