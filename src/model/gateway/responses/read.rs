//! Reads a request: converts items to messages.

use serde_json::{Value, json};

use super::super::openai::no_arguments;
use super::super::parts::{self, RequestReader, list, text};
use super::super::{HashMap, ParsedRequest, Refusal, SpecialTool, ToolForm, thoughts};
use crate::model::{Message, Request, RequestOptions, Role, Sampling, Tool, ToolCall};

/// Fields of a request that the gateway uses or may ignore. All other fields are reported as left out of the model's
/// call.
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

/// The namespace of tools that state no namespace.
const DEFAULT_NAMESPACE: &str = "functions";
/// The name under which the model sees the tool with which the agent itself searches for further tools.
const SEARCH: &str = "tool_search";
/// Separator between the namespace and the tool's own name in the name that the model sees.
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
    if let Some(reasoning) = body.get("reasoning") {
        reader.leave_out_fields(reasoning, "reasoning.", &["effort", "summary", "generate_summary"]);
    }
    let mut offered = OfferedTools::default();
    list(body, "tools").iter().try_for_each(|said| offered.add(said, None))?;
    let mut messages = Vec::new();
    let instructions = text(body, "instructions");
    if !instructions.is_empty() {
        messages.push(Message::new(Role::System, instructions));
    }
    match body.get("input") {
        Some(Value::String(said)) => messages.push(Message::new(Role::User, said.as_str())),
        Some(Value::Array(items)) => {
            for item in items {
                read_item(item, &mut messages, &mut offered, &mut reader)?;
            }
        }
        _ => return Err(Refusal::invalid("`input` is neither a text nor a list of items")),
    }
    Ok(ParsedRequest {
        request: Request {
            messages,
            tools: offered.tools.into(),
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
        kinds: offered.kinds,
        left_out: reader.left_out,
    })
}

/// The tools that a request offers, in its list of tools or among the items of the conversation.
#[derive(Default)]
struct OfferedTools {
    tools: Vec<Tool>,
    kinds: HashMap<String, SpecialTool>,
}

impl OfferedTools {
    /// Adds a tool: a function, a tool that takes free text, the agent's own search for tools, or a namespace of tools.
    fn add(&mut self, said: &Value, namespace: Option<&str>) -> Result<(), Refusal> {
        let (name, description) = (text(said, "name"), text(said, "description"));
        let parameters = said.get("parameters").filter(|schema| schema.is_object()).cloned();
        let parameters = parameters.unwrap_or_else(no_arguments);
        let is_agent_s = said.get("execution").and_then(Value::as_str) == Some("client");
        match said.get("type").and_then(Value::as_str) {
            Some("function") => self.push(ToolForm::Function, namespace, name, description, parameters),
            Some("custom") => {
                let grammar = said.pointer("/format/definition").and_then(Value::as_str);
                let grammar = grammar.map(|grammar| format!("\n\nThe input keeps to this grammar:\n{grammar}"));
                let description = description + grammar.as_deref().unwrap_or_default();
                let input = json!({"type": "string", "description": "The whole input, as it stands."});
                let parameters = json!({"type": "object", "properties": {"input": input}, "required": ["input"]});
                self.push(ToolForm::Custom, namespace, name, description, parameters);
            }
            Some("tool_search") if is_agent_s => {
                self.push(ToolForm::Search, namespace, SEARCH.to_owned(), description, parameters);
            }
            Some("namespace") if namespace.is_none() => {
                return list(said, "tools").iter().try_for_each(|inner| self.add(inner, Some(&name)));
            }
            other => return Err(parts::foreign_tool(other.unwrap_or_default())),
        }
        Ok(())
    }

    /// Adds a tool; replaces an earlier tool of the same name.
    fn push(&mut self, form: ToolForm, namespace: Option<&str>, name: String, description: String, parameters: Value) {
        let known = full_name(namespace, &name);
        self.tools.retain(|tool| tool.name != known);
        self.kinds.remove(&known);
        if form != ToolForm::Function || namespace.is_some() {
            self.kinds.insert(known.clone(), SpecialTool { form, namespace: namespace.map(str::to_owned), name });
        }
        self.tools.push(Tool { name: known, description, parameters });
    }
}

/// Returns the name under which the model sees a tool. It contains the namespace unless this is the default one.
fn full_name(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) if !namespace.is_empty() && namespace != DEFAULT_NAMESPACE => {
            format!("{namespace}{WITHIN}{name}")
        }
        _ => name.to_owned(),
    }
}

/// Adds an item to the messages. Items of one reply are merged into one message.
fn read_item(
    item: &Value,
    messages: &mut Vec<Message>,
    offered: &mut OfferedTools,
    reader: &mut RequestReader,
) -> Result<(), Refusal> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    match kind {
        "message" | "agent_message" => read_message(item, messages, reader),
        "reasoning" => {
            let token = text(item, "encrypted_content");
            replied(messages).thoughts.extend(thoughts::placeholder(&token));
            Ok(())
        }
        "additional_tools" => list(item, "tools").iter().try_for_each(|said| offered.add(said, None)),
        "tool_search_call" => {
            let (id, arguments) = (text(item, "call_id"), parts::arguments(item.get("arguments")));
            replied(messages).tool_calls.push(ToolCall { id, name: SEARCH.to_owned(), arguments });
            Ok(())
        }
        "tool_search_output" => {
            let known: Vec<String> = offered.tools.iter().map(|tool| tool.name.clone()).collect();
            list(item, "tools").iter().try_for_each(|said| offered.add(said, None))?;
            let names = offered.tools.iter().map(|tool| &tool.name);
            let found: Vec<&str> = names.filter(|name| !known.contains(name)).map(String::as_str).collect();
            let said = if found.is_empty() {
                "No further tools were found.".to_owned()
            } else {
                format!("These tools can be called now: {}.", found.join(", "))
            };
            messages.push(Message { tool_call_id: Some(text(item, "call_id")), ..Message::new(Role::Tool, said) });
            Ok(())
        }
        "function_call" | "custom_tool_call" => {
            let name = full_name(item.get("namespace").and_then(Value::as_str), &text(item, "name"));
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

/// Returns the assistant message that the next item belongs to; adds one if the last message is not the assistant's.
fn replied(messages: &mut Vec<Message>) -> &mut Message {
    if messages.last().is_none_or(|last| last.role != Role::Assistant) {
        messages.push(Message::new(Role::Assistant, ""));
    }
    let last = messages.len() - 1;
    &mut messages[last]
}
