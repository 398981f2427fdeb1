//! Reads and writes Gemini's `generateContent` API.

use serde_json::{Value, json};

use super::parts::{self, RequestReader, list, text};
use super::stream::EventWriter;
use super::{CallContext, Finish, ListedModel, ParsedRequest, Refusal, RefusalKind, thoughts};
use crate::model::{
    Message, Reply, ReplyFormat, ReplyPiece, Request, RequestOptions, Role, Sampling, Tool, ToolCall, ToolCallChoice,
    Usage,
};

/// Request fields that the gateway reads or may ignore; any other field is reported as left out.
const FIELDS: [&str; 9] = [
    "contents",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "model",
    "labels",
];
const SETTINGS: [&str; 14] = [
    "temperature",
    "topP",
    "topK",
    "frequencyPenalty",
    "presencePenalty",
    "maxOutputTokens",
    "stopSequences",
    "thinkingConfig",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "candidateCount",
    "responseModalities",
    "seed",
];

/// Parses a request. Whether to stream is part of the path, not of the body.
pub(super) fn read(body: &Value) -> Result<ParsedRequest, Refusal> {
    let contents = body.get("contents").and_then(Value::as_array);
    let contents = contents.ok_or_else(|| Refusal::invalid("`contents` is missing"))?;
    if body.get("cachedContent").is_some_and(|name| !name.is_null()) {
        return Err(Refusal::invalid("this gateway keeps nothing between calls, so there is no `cachedContent`"));
    }
    let settings = body.get("generationConfig").unwrap_or(&Value::Null);
    if settings.get("candidateCount").and_then(Value::as_u64).is_some_and(|count| count > 1) {
        return Err(Refusal::invalid("this gateway gives one candidate a call: leave `candidateCount` at 1"));
    }
    let mut reader = RequestReader::default();
    reader.leave_out_fields(body, "", &FIELDS);
    reader.leave_out_fields(settings, "generationConfig.", &SETTINGS);
    let mut messages = Vec::new();
    if let Some(system) = body.get("systemInstruction").or_else(|| body.get("system_instruction")) {
        let system = reader.content(system.get("parts").or(Some(system)).filter(|said| !said.is_object()))?;
        messages.push(system.message(Role::System));
    }
    let mut conversation = GeminiConversation { messages, waiting: Vec::new(), calls: 0 };
    for content in contents {
        conversation.add(content, &mut reader);
    }
    let thinking = settings.get("thinkingConfig").unwrap_or(&Value::Null);
    let stops: Vec<String> =
        list(settings, "stopSequences").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(ParsedRequest {
        request: Request {
            messages: conversation.messages,
            tools: list(body, "tools").iter().map(tools).collect::<Result<Vec<_>, _>>()?.concat().into(),
            sampling: Sampling {
                temperature: settings.get("temperature").and_then(Value::as_f64),
                max_tokens: parts::count(settings, "maxOutputTokens"),
                // A negative budget means that the model decides; it is read as no budget.
                reasoning_tokens: parts::count(thinking, "thinkingBudget"),
                effort: parts::effort(thinking.get("thinkingLevel")),
                ..Sampling::default()
            },
            wishes: RequestOptions {
                choice: choice(body.pointer("/toolConfig/functionCallingConfig")),
                format: format(settings),
                top_p: settings.get("topP").and_then(Value::as_f64),
                // Some clients send `topK` as a float.
                top_k: settings.get("topK").and_then(Value::as_f64).map(|top_k| top_k.max(0.0) as u64),
                frequency_penalty: settings.get("frequencyPenalty").and_then(Value::as_f64),
                presence_penalty: settings.get("presencePenalty").and_then(Value::as_f64),
                stops: stops.clone(),
                ..RequestOptions::default()
            },
            foreign: true,
            ..Request::default()
        },
        stops,
        model: String::new(),
        streams: false,
        counts: true,
        thinks: thinking.get("includeThoughts").and_then(Value::as_bool) == Some(true),
        kinds: super::HashMap::new(),
        left_out: reader.left_out,
    })
}

/// A conversation that is being parsed. Gemini's calls and results need not have ids: a result without an id belongs to
/// the earliest unanswered call of the same name.
struct GeminiConversation {
    messages: Vec<Message>,
    /// Name and id of each unanswered call.
    waiting: Vec<(String, String)>,
    calls: usize,
}

impl GeminiConversation {
    fn add(&mut self, content: &Value, reader: &mut RequestReader) {
        let is_model = content.get("role").and_then(Value::as_str) == Some("model");
        let mut own = Message::new(if is_model { Role::Assistant } else { Role::User }, "");
        let (mut texts, mut results) = (Vec::new(), false);
        for part in list(content, "parts") {
            own.thoughts.extend(thoughts::placeholder(&text(part, "thoughtSignature")));
            if let Some(call) = part.get("functionCall") {
                own.tool_calls.push(self.call(call));
            } else if let Some(response) = part.get("functionResponse") {
                self.result(response, reader);
                results = true;
            } else if part.get("thought").and_then(Value::as_bool) != Some(true) {
                reader.part(part, &mut texts, &mut own.images);
            }
        }
        if !texts.is_empty() || !own.tool_calls.is_empty() || !own.images.is_empty() || !results {
            own.content = texts.join("\n");
            self.messages.push(own);
        }
    }

    fn call(&mut self, call: &Value) -> ToolCall {
        let name = text(call, "name");
        let given = Some(text(call, "id")).filter(|id| !id.is_empty());
        let id = given.unwrap_or_else(|| format!("call-{}", self.calls));
        self.calls += 1;
        self.waiting.push((name.clone(), id.clone()));
        ToolCall { id, name, arguments: call.get("args").cloned().unwrap_or_else(|| json!({})) }
    }

    fn result(&mut self, response: &Value, reader: &mut RequestReader) {
        let (name, given) = (text(response, "name"), text(response, "id"));
        let is_its = |(waiting, id): &(String, String)| if given.is_empty() { *waiting == name } else { *id == given };
        let id = self.waiting.iter().position(is_its).map(|place| self.waiting.remove(place).1);
        let said = response.get("response").unwrap_or(&Value::Null);
        // Most agents put a tool's result into a single field named `output`, `result` or `error`. Pass on only the
        // text of this field.
        let alone = said
            .as_object()
            .filter(|fields| fields.len() == 1)
            .and_then(|fields| ["output", "result", "error"].iter().find_map(|name| fields.get(*name)?.as_str()));
        let mut message = Message::new(Role::Tool, alone.map_or_else(|| said.to_string(), str::to_owned));
        for part in list(response, "parts") {
            let mut texts = Vec::new();
            reader.part(part, &mut texts, &mut message.images);
            message.content.extend(texts.iter().map(|text| format!("\n{text}")));
        }
        message.tool_call_id = Some(id.unwrap_or(given));
        self.messages.push(message);
    }
}

fn tools(said: &Value) -> Result<Vec<Tool>, Refusal> {
    let mut names = said.as_object().into_iter().flatten().map(|(name, _)| name);
    if let Some(name) = names.find(|name| *name != "functionDeclarations") {
        return Err(parts::foreign_tool(name));
    }
    let function = |said: &Value| Tool {
        name: text(said, "name"),
        description: text(said, "description"),
        parameters: said
            .get("parametersJsonSchema")
            .cloned()
            .or_else(|| said.get("parameters").map(json_schema))
            .unwrap_or_else(super::openai::no_arguments),
    };
    Ok(list(said, "functionDeclarations").iter().map(function).collect())
}

/// Converts a schema to standard JSON Schema: Gemini writes the names of types in capitals.
fn json_schema(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(kind) if name == "type" => (name.clone(), json!(kind.to_lowercase())),
                value => (name.clone(), json_schema(value)),
            })
            .collect(),
        Value::Array(values) => values.iter().map(json_schema).collect(),
        other => other.clone(),
    }
}

fn choice(config: Option<&Value>) -> Option<ToolCallChoice> {
    let config = config?;
    match config.get("mode")?.as_str()? {
        "AUTO" => Some(ToolCallChoice::Auto),
        "NONE" => Some(ToolCallChoice::None),
        "ANY" => match list(config, "allowedFunctionNames") {
            [Value::String(name)] => Some(ToolCallChoice::Tool(name.clone())),
            _ => Some(ToolCallChoice::Required),
        },
        _ => None,
    }
}

fn format(settings: &Value) -> Option<ReplyFormat> {
    let schema = settings.get("responseJsonSchema").cloned();
    let schema = schema.or_else(|| settings.get("responseSchema").map(json_schema));
    match schema {
        Some(schema) => Some(ReplyFormat::Schema { name: "reply".to_owned(), schema, strict: None }),
        None => (text(settings, "responseMimeType") == "application/json").then_some(ReplyFormat::Json),
    }
}

/// Writes the answer to a request for a token count.
pub(super) fn count(tokens: u64) -> Value {
    json!({"totalTokens": tokens})
}

/// Writes the list of models, which has one entry.
pub(super) fn models(listed: &ListedModel) -> Value {
    json!({"models": [model(listed)]})
}

/// Writes the description of the model.
pub(super) fn model(ListedModel { name, context }: &ListedModel) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": name, "version": "1", "inputTokenLimit": context,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    })
}

/// Writes a reply as the body of a response that is not streamed.
pub(super) fn body(head: &CallContext, reply: &Reply, finish: &Finish) -> Value {
    let mut parts = Vec::new();
    if let Some(reasoning) = reply.reasoning.as_ref().filter(|_| head.thinks) {
        parts.push(json!({"text": reasoning, "thought": true}));
    }
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    parts.extend(calls(head, reply));
    reply_json(head, &parts, Some(finish), &reply.usage)
}

/// Writes a reply as a stream of chunks.
pub(super) struct GeminiChunks {
    head: CallContext,
}

impl GeminiChunks {
    pub(super) const fn new(head: CallContext) -> Self {
        Self { head }
    }

    fn chunk(&self, parts: &[Value]) -> String {
        format!("data: {}\n\n", reply_json(&self.head, parts, None, &Usage::default()))
    }
}

impl EventWriter for GeminiChunks {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn piece(&mut self, piece: &ReplyPiece) -> String {
        match piece {
            ReplyPiece::Text(text) => self.chunk(&[json!({"text": text})]),
            ReplyPiece::Reasoning(text) if self.head.thinks => self.chunk(&[json!({"text": text, "thought": true})]),
            ReplyPiece::Reasoning(_) => String::new(),
        }
    }

    fn end(&mut self, reply: &Reply, finish: &Finish) -> String {
        let mut parts = calls(&self.head, reply);
        if parts.is_empty() {
            parts.push(json!({"text": ""}));
        }
        format!("data: {}\n\n", reply_json(&self.head, &parts, Some(finish), &reply.usage))
    }
}

/// Writes the reply's tool calls. If the reply has thoughts, the `thoughtSignature` of the first call is a placeholder
/// text that represents them (see [`thoughts`]).
fn calls(head: &CallContext, reply: &Reply) -> Vec<Value> {
    let part = |(place, call): (usize, &ToolCall)| {
        let args = if call.arguments.is_object() {
            call.arguments.clone()
        } else {
            json!({"malformed_arguments": call.arguments})
        };
        let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": args}});
        if place == 0 && !reply.thoughts.is_empty() {
            part["thoughtSignature"] = json!(head.token());
        }
        part
    };
    reply.tool_calls.iter().enumerate().map(part).collect()
}

fn reply_json(head: &CallContext, parts: &[Value], finish: Option<&Finish>, usage: &Usage) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    let mut said = json!({"modelVersion": head.model, "responseId": format!("reply-{}", head.number)});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(match finish {
            Finish::Length => "MAX_TOKENS",
            Finish::Refused(_) => "SAFETY",
            Finish::Stop | Finish::Stopped(_) | Finish::ToolCalls => "STOP",
        });
        if let Finish::Refused(text) = finish {
            candidate["finishMessage"] = json!(text);
        }
        said["usageMetadata"] = json!({
            "promptTokenCount": usage.input, "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "thoughtsTokenCount": usage.reasoning, "totalTokenCount": usage.input.saturating_add(usage.output),
        });
    }
    said["candidates"] = json!([candidate]);
    said
}

/// Writes a refusal as a body.
pub(super) fn error(refusal: &Refusal) -> Value {
    let status = match refusal.why {
        RefusalKind::Budget | RefusalKind::Closed => "PERMISSION_DENIED",
        RefusalKind::Unavailable => "UNAVAILABLE",
        RefusalKind::Invalid | RefusalKind::ContextLength | RefusalKind::Filtered => "INVALID_ARGUMENT",
    };
    json!({"error": {"code": refusal.why.status(), "message": refusal.message, "status": status}})
}
