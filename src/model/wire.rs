//! Conversion between this crate's requests and replies and those of `genai`.

use std::borrow::Cow;
use std::collections::HashMap;

use genai::adapter::AdapterKind;
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ChatResponse, ChatRole, ContentPart, MessageContent,
    ReasoningEffort, StreamEnd, Tool as GenaiTool, ToolCall as GenaiToolCall, ToolResponse,
};
use serde_json::{Map, Value, json};

use sha2::{Digest, Sha256};

use super::features::ModelTarget;
use super::quote::most_read;
use super::{
    Effort, Image, Message, Reply, Request, Role, Thought, ToolCall, Usage, extra as more, message_text,
    provider_options, responses, thinking, tokens,
};
use crate::files::hex;

/// Mask for the seed that is sent: the narrowest field, Gemini's, is a signed 32-bit integer.
const SEED_BITS: u64 = 0x7fff_ffff;

/// Converts the conversation and the tools of a request. `sends_reasoning` is whether an OpenAI-compatible server gets
/// its earlier reasoning back.
pub(super) fn request(target: &ModelTarget, request: &Request, sends_reasoning: bool) -> ChatRequest {
    let kind = target.kind;
    // Gemini identifies a result by its function's name, the other providers by the call's id.
    let names: HashMap<&str, &str> = request
        .messages
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| (call.id.as_str(), call.name.as_str()))
        .collect();
    let mut messages: Vec<ChatMessage> = Vec::with_capacity(request.messages.len());
    // For the Responses API, [`options`] adds the messages in the form of items, so add none here.
    let said_here = if kind == AdapterKind::OpenAIResp { &[][..] } else { &request.messages };
    for said in said_here {
        // Anthropic wants the results of all calls in one message ("Parallel tool use" in its documentation).
        match messages.last_mut() {
            Some(last) if kind == AdapterKind::Anthropic && last.role == ChatRole::Tool && is_result(said) => {
                for part in message(target, said, &names, sends_reasoning).content {
                    last.content.push(part);
                }
            }
            _ => {
                messages.push(message(target, said, &names, sends_reasoning));
                messages.extend(pictures_apart(target, said));
            }
        }
    }
    if kind == AdapterKind::Anthropic {
        mark(request, &mut messages);
    }
    let chat = ChatRequest::from_messages(messages);
    if request.tools.is_empty() {
        return chat;
    }
    chat.with_tools(request.tools.iter().map(|tool| {
        GenaiTool::new(tool.name.as_str())
            .with_description(tool.description.as_str())
            .with_schema(tool.parameters.clone())
    }))
}

/// Marks messages for Anthropic's cache. Anthropic caches only up to a mark, accepts at most four marks, and searches
/// at most 20 blocks back from a mark for an earlier write ("How automatic prefix checking works" in its
/// documentation). An agent sends its whole history at every step, so the newest message is marked. The message that
/// was the newest one step ago is marked too, because a step with many calls has more than 20 blocks. A mark on the
/// system message keeps this message and the tools before it in the cache even if the history is rewritten. A
/// conversation with a single question gets no mark, because the write to the cache costs money and nothing would read
/// the cache later.
fn mark(request: &Request, messages: &mut [ChatMessage]) {
    let goes_on = !request.tools.is_empty() || request.messages.iter().any(|said| said.role == Role::Assistant);
    if !goes_on {
        return;
    }
    let system = messages.iter().rposition(|message| message.role == ChatRole::System);
    let replied = messages.iter().rposition(|message| message.role == ChatRole::Assistant);
    let places = [system, replied.and_then(|place| place.checked_sub(1)), messages.len().checked_sub(1)];
    for (place, message) in messages.iter_mut().enumerate() {
        if places.contains(&Some(place)) {
            *message = message.clone().with_options(CacheControl::Ephemeral);
        }
    }
}

/// Whether the message is the result of a call.
fn is_result(message: &Message) -> bool {
    message.role == Role::Tool && message.tool_call_id.is_some()
}

fn message(target: &ModelTarget, message: &Message, names: &HashMap<&str, &str>, sends_reasoning: bool) -> ChatMessage {
    let text = message_text::text(target, message);
    match (message.role, &message.tool_call_id) {
        (Role::System, _) => ChatMessage::system(text),
        (Role::Tool, Some(id)) => {
            if let Some(block) = with_pictures(target, message, id, &text) {
                return ChatMessage::tool(MessageContent::from_parts(vec![ContentPart::from_custom(block, None)]));
            }
            let mut response = ToolResponse::new(id.as_str(), text);
            if let Some(name) = names.get(id.as_str()) {
                response = response.with_fn_name(*name);
            }
            ChatMessage::tool(response)
        }
        (Role::User | Role::Tool, _) if target.features.images && !message.images.is_empty() => {
            let mut parts = vec![ContentPart::from_text(text)];
            parts.extend(message.images.iter().map(picture));
            ChatMessage::user(MessageContent::from_parts(parts))
        }
        (Role::User | Role::Tool, _) => ChatMessage::user(text),
        (Role::Assistant, _) => {
            let mut parts = match target.kind {
                AdapterKind::OpenAI if !sends_reasoning => Vec::new(),
                kind => sent_thoughts(kind, message),
            };
            if message.tool_calls.is_empty() || !message.content.trim().is_empty() {
                parts.push(ContentPart::from_text(text));
            }
            parts.extend(
                message.tool_calls.iter().map(|call| ContentPart::ToolCall(sent_call(call, &message.thoughts))),
            );
            ChatMessage::assistant(MessageContent::from_parts(parts))
        }
    }
}

fn picture(image: &Image) -> ContentPart {
    ContentPart::from_binary_base64(image.media_type.as_str(), image.data.as_str(), None)
}

/// Returns a tool result with pictures as one block, the form that Anthropic takes.
fn with_pictures(target: &ModelTarget, message: &Message, id: &str, text: &str) -> Option<Value> {
    if target.kind != AdapterKind::Anthropic || !target.features.images || message.images.is_empty() {
        return None;
    }
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(message.images.iter().map(|image| {
        json!({"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}})
    }));
    Some(json!({"type": "tool_result", "tool_use_id": id, "content": content}))
}

/// Returns a tool result's pictures as a user message. Providers other than Anthropic accept pictures only in user
/// messages.
fn pictures_apart(target: &ModelTarget, message: &Message) -> Option<ChatMessage> {
    let is_apart = is_result(message) && target.kind != AdapterKind::Anthropic && target.features.images;
    if !is_apart || message.images.is_empty() {
        return None;
    }
    let mut parts = vec![ContentPart::from_text("What the call above showed:")];
    parts.extend(message.images.iter().map(picture));
    Some(ChatMessage::user(MessageContent::from_parts(parts)))
}

/// Converts a message's thoughts to the provider's format, except signatures of calls, which [`sent_call`] converts.
fn sent_thoughts(kind: AdapterKind, message: &Message) -> Vec<ContentPart> {
    let part = |thought: &Thought| match (kind, thought) {
        // Servers that send reasoning with a call want the reasoning back with the call's result. With other replies,
        // the reasoning is useless, and some servers refuse it. [`super::reasoning`] moves it to another field if the
        // server uses another one.
        (AdapterKind::OpenAI, Thought::Text(text)) if !message.tool_calls.is_empty() => {
            Some(ContentPart::ReasoningContent(text.clone()))
        }
        (AdapterKind::OpenAI | AdapterKind::Anthropic, Thought::Block(block)) => {
            Some(ContentPart::from_custom(block.clone(), None))
        }
        (AdapterKind::Gemini, Thought::Signature { signature, call_id: None }) => {
            Some(ContentPart::ThoughtSignature(signature.clone()))
        }
        _ => None,
    };
    message.thoughts.iter().filter_map(part).collect()
}

/// Converts a call that is sent back to the provider. Providers demand an object as arguments, even if the model wrote
/// something else.
fn sent_call(call: &ToolCall, thoughts: &[Thought]) -> GenaiToolCall {
    let fn_arguments = match &call.arguments {
        Value::Object(_) => call.arguments.clone(),
        other => json!({ "malformed_arguments": other }),
    };
    let signatures = thoughts.iter().filter_map(|thought| match thought {
        Thought::Signature { signature, call_id } if call_id.as_ref() == Some(&call.id) => Some(signature.clone()),
        _ => None,
    });
    let signatures: Vec<String> = signatures.collect();
    let thought_signatures = (!signatures.is_empty()).then_some(signatures);
    GenaiToolCall { call_id: call.id.clone(), fn_name: call.name.clone(), fn_arguments, thought_signatures }
}

/// Returns the model's name to give to `genai`. If no effort is set, `genai` takes an ending such as `-high` of the
/// name for the effort and cuts it off. To prevent this, [`options`] sets an effort that `genai` does not send.
/// Anthropic has no such effort, so the names of its models get another ending here, and [`options`] puts the real name
/// into the body.
pub(super) fn genai_name(target: &ModelTarget) -> Cow<'_, str> {
    let is_cut = target.kind == AdapterKind::Anthropic && ReasoningEffort::from_model_name(&target.model).0.is_some();
    if is_cut { Cow::Owned(format!("{}-", target.model)) } else { Cow::Borrowed(&target.model) }
}

/// Returns `genai`'s options for a request, and descriptions of the request's parts that are not sent.
pub(super) fn options(target: &ModelTarget, request: &Request) -> (ChatOptions, Vec<String>) {
    let sampling = &request.sampling;
    let mut options = ChatOptions::default().with_capture_raw_body(true);
    options.temperature = sampling.temperature;
    // The Responses API does not take a seed.
    options.seed = sampling.seed.map(|seed| seed & SEED_BITS).filter(|_| target.kind != AdapterKind::OpenAIResp);
    let takes_budget = !target.own_server && target.features.reasoning;
    if let Some(budget) = sampling.reasoning_tokens.filter(|_| takes_budget) {
        if let Some(effort) = thinking::effort(target, budget) {
            options = options.with_reasoning_effort(effort);
        }
        if target.kind == AdapterKind::Anthropic && budget > 0 {
            // Anthropic refuses a temperature other than 1 with a thinking budget.
            options.temperature = None;
        }
    }
    // Providers count reasoning as part of the reply, so add room for it to the bound that the user asked for.
    let thoughts = if request.foreign { 0 } else { thinking::beyond(target, sampling) };
    options.max_tokens = sampling.max_tokens.map(|most| most.saturating_add(thoughts));
    let mut extra = Map::new();
    if target.kind != AdapterKind::Gemini {
        // `genai` may have cut the name: see [`genai_name`]. Gemini's name is part of the address.
        extra.insert("model".to_owned(), json!(target.model));
    }
    if let Some(effort) = sampling.effort {
        if target.kind == AdapterKind::OpenAI {
            // Send the effort to every server, even if this program does not know the server's models.
            extra.insert("reasoning_effort".to_owned(), json!(effort));
        } else if let (AdapterKind::Gemini, Effort::None, Some(off)) =
            (target.kind, effort, thinking::effort(target, 0))
        {
            // `genai` sends nothing for the effort `none`, and these models reason by default.
            options = options.with_reasoning_effort(off);
        } else {
            options = options.with_reasoning_effort(thinking::of_genai(effort));
        }
        if target.kind == AdapterKind::Anthropic && effort != Effort::None {
            options.temperature = None;
        }
    }
    // `genai` sends nothing for these efforts, but does not cut off the end of the model's name. See [`genai_name`].
    let unsent = match target.kind {
        AdapterKind::OpenAI | AdapterKind::OpenAIResp => Some(ReasoningEffort::Budget(0)),
        AdapterKind::Gemini => Some(ReasoningEffort::Zero),
        _ => None,
    };
    options.reasoning_effort = options.reasoning_effort.or(unsent);
    let mut left_out = provider_options::apply(target, request, &mut options, &mut extra);
    if target.features.tokens && !tokens::request(target, &mut extra) {
        left_out.push("the request for token ids and log-probabilities".to_owned());
    }
    if target.kind == AdapterKind::OpenAIResp {
        responses::complete(target, request, &mut options, &mut extra);
    }
    // `genai` turns off caching for OpenAI's newest models unless a cache key is set. It knows these models by their
    // names, so on the user's own server only models named `gpt-...` need a key.
    let has_cache = !target.own_server || target.model.starts_with("gpt-");
    if target.kind == AdapterKind::OpenAIResp || target.is_openai() && has_cache {
        options.prompt_cache_key = Some(cache_key(request));
    }
    more::merge(&mut extra, &sampling.extra_body);
    (if extra.is_empty() { options } else { options.with_extra_body(Value::Object(extra)) }, left_out)
}

/// Returns the cache key of a conversation, the same for all its calls. With it, OpenAI routes the calls to the server
/// that has cached the conversation's beginning.
fn cache_key(request: &Request) -> String {
    let mut hasher = Sha256::new();
    for message in request.messages.iter().take(2) {
        hasher.update(message.content.as_bytes());
        hasher.update([0]);
    }
    hex(&hasher.finalize())[..32].to_owned()
}

/// Converts the reply, without its cost.
pub(super) fn reply(kind: AdapterKind, response: ChatResponse) -> Reply {
    let (texts, reply) = parts(kind, response.content, response.reasoning_content, &response.usage);
    Reply { text: texts.join("\n\n"), ..reply }
}

/// Adapts options to a stream, so that `genai` returns usage, content and tool calls at the stream's end. Only tool
/// calls of OpenAI's protocol are assembled by [`super::streamed_calls`].
///
/// The caller collects the text of thoughts while it reads the stream, because letting `genai` capture it would also
/// make Gemini send thoughts. Only Anthropic's thoughts are captured, because their signatures cannot be read in
/// another way.
pub(super) fn streaming(kind: AdapterKind, options: &ChatOptions) -> ChatOptions {
    let options = options.clone().with_capture_usage(true).with_capture_content(true);
    let options = options.with_capture_tool_calls(kind != AdapterKind::OpenAI);
    if kind == AdapterKind::Anthropic { options.with_capture_reasoning_content(true) } else { options }
}

/// Makes the reply from the end of a stream, and from the text and thoughts collected from its pieces.
pub(super) fn streamed_reply(kind: AdapterKind, text: String, thoughts: String, end: StreamEnd) -> Reply {
    let usage = end.captured_usage.unwrap_or_default();
    let (_, reply) = parts(kind, end.captured_content.unwrap_or_default(), Some(thoughts), &usage);
    Reply { text, ..reply }
}

/// Converts the content of `genai`'s reply to a reply without text. Returns the texts in the content separately,
/// because the text of a streamed reply has already been collected from its pieces.
fn parts(
    kind: AdapterKind,
    content: MessageContent,
    reasoning: Option<String>,
    tokens: &genai::chat::Usage,
) -> (Vec<String>, Reply) {
    let reasoning = reasoning.filter(|text| !text.is_empty());
    let mut reply = Reply { reasoning, usage: usage(kind, tokens), ..Reply::default() };
    let mut texts = Vec::new();
    if kind == AdapterKind::OpenAI {
        reply.thoughts.extend(reply.reasoning.clone().map(Thought::Text));
    }
    // Anthropic's signature of thoughts. The part with the thoughts comes after the part with their signature.
    let mut signed: Option<String> = None;
    for part in content {
        match part {
            ContentPart::Text(text) => texts.push(text),
            ContentPart::ThoughtSignature(signature) if kind == AdapterKind::Anthropic => signed = Some(signature),
            ContentPart::ThoughtSignature(signature) => {
                reply.thoughts.push(Thought::Signature { signature, call_id: None });
            }
            ContentPart::ReasoningContent(thinking) if kind == AdapterKind::Anthropic => {
                reply.thoughts.extend(signed.take().map(|signature| {
                    Thought::Block(json!({"type": "thinking", "thinking": thinking, "signature": signature}))
                }));
            }
            ContentPart::Custom(block) => reply.thoughts.push(Thought::Block(block.data)),
            ContentPart::ToolCall(call) => {
                own_signatures(kind, &call, &mut reply.thoughts);
                reply.tool_calls.push(ToolCall {
                    id: call.call_id,
                    name: call.fn_name,
                    // A call without arguments gets an empty object.
                    arguments: if call.fn_arguments.is_null() { json!({}) } else { call.fn_arguments },
                });
            }
            _ => {}
        }
    }
    (texts, reply)
}

/// Links the signatures of a Gemini call to this call, and removes the copies of them that `genai` returned as separate
/// parts before the call.
fn own_signatures(kind: AdapterKind, call: &GenaiToolCall, thoughts: &mut Vec<Thought>) {
    if kind != AdapterKind::Gemini {
        return;
    }
    for signature in call.thought_signatures.iter().flatten() {
        let free = Thought::Signature { signature: signature.clone(), call_id: None };
        thoughts.retain(|thought| *thought != free);
        thoughts.push(Thought::Signature { signature: signature.clone(), call_id: Some(call.call_id.clone()) });
    }
}

/// Converts token counts to the conventions of [`Usage`].
fn usage(kind: AdapterKind, usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
    let input = usage.prompt_tokens_details.as_ref();
    let reasoning = count(usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens));
    let (read, completion) = (count(usage.prompt_tokens), count(usage.completion_tokens));
    let total = if kind == AdapterKind::OpenAI { count(usage.total_tokens) } else { 0 };
    Usage {
        input: read,
        cached: count(input.and_then(|details| details.cached_tokens)),
        cache_written: count(input.and_then(|details| details.cache_creation_tokens)),
        // For a reply that contains only thoughts, Gemini does not state the total number of tokens written.
        output: written(read, completion, reasoning, total).max(reasoning),
        reasoning,
    }
}

/// Returns the tokens written, by the counts of a chat completion. xAI and Gemini leave thoughts out of the
/// completion's tokens, but not out of the total. A total may also contain tokens that were read from a cache, so the
/// result exceeds `completion` by at most the reported thoughts.
fn written(read: u64, completion: u64, reasoning: u64, total: u64) -> u64 {
    let rest = if read > 0 { total.saturating_sub(read) } else { 0 };
    completion.max(rest.min(completion.saturating_add(reasoning)))
}

/// Reads an OpenAI reply that `genai` refuses because a tool call's arguments are not JSON, or its id or type is
/// missing. Returns `None` if the body is not a reply at all.
pub(super) fn lenient_openai_reply(body: &Value) -> Option<Reply> {
    let message = body.pointer("/choices/0/message")?;
    let text = |key: &str| message.get(key).and_then(Value::as_str).map(|text| text.trim().to_owned());
    let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let tool_calls = calls.iter().map(|call| {
        let arguments = match call.pointer("/function/arguments") {
            Some(Value::String(written)) => ToolCall::arguments_in(written),
            Some(Value::Null) | None => json!({}),
            Some(other) => other.clone(),
        };
        let given = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        ToolCall { id: given("/id"), name: given("/function/name"), arguments }
    });
    let reasoning = text("reasoning").or_else(|| text("reasoning_content")).filter(|text| !text.is_empty());
    Some(Reply {
        tool_calls: tool_calls.collect(),
        text: text("content").unwrap_or_default(),
        thoughts: reasoning.clone().map(Thought::Text).into_iter().collect(),
        reasoning,
        usage: reported_usage(body),
        ..Reply::default()
    })
}

/// Maximum plausible number of tokens written in one call: far more than any model writes.
const MOST_WRITTEN: u64 = 1_000_000;

/// Maximum tokens that a provider adds to a prompt, such as instructions for tool calls or its own system message.
const MOST_ADDED: u64 = 100_000;

/// Whether a call with this request can have used as many tokens as `usage` says. No token is shorter than a byte, so
/// the prompt's bytes limit the tokens read.
pub(super) fn is_possible(usage: &Usage, request: &Request) -> bool {
    let most_read = most_read(request).saturating_add(MOST_ADDED);
    let read = [usage.input, usage.cached, usage.cache_written];
    read.into_iter().all(|count| count <= most_read) && usage.output <= MOST_WRITTEN && usage.reasoning <= MOST_WRITTEN
}

/// Reads the token counts in a body of any provider's format; 0 if missing.
pub(super) fn reported_usage(body: &Value) -> Usage {
    let count = |pointer: &str| body.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    if body.get("usageMetadata").is_some() {
        let reasoning = count("/usageMetadata/thoughtsTokenCount");
        return Usage {
            input: count("/usageMetadata/promptTokenCount"),
            cached: count("/usageMetadata/cachedContentTokenCount"),
            cache_written: 0,
            output: count("/usageMetadata/candidatesTokenCount").saturating_add(reasoning),
            reasoning,
        };
    }
    if body.get("object").is_some_and(|object| object == "response") {
        return responses::usage(body);
    }
    if body.pointer("/usage/input_tokens").is_some() {
        let (cached, cache_written) =
            (count("/usage/cache_read_input_tokens"), count("/usage/cache_creation_input_tokens"));
        // Anthropic counts cached tokens separately from other input.
        let input = count("/usage/input_tokens").saturating_add(cached).saturating_add(cache_written);
        return Usage { input, cached, cache_written, output: count("/usage/output_tokens"), reasoning: 0 };
    }
    let reasoning = count("/usage/completion_tokens_details/reasoning_tokens");
    let (read, completion) = (count("/usage/prompt_tokens"), count("/usage/completion_tokens"));
    Usage {
        input: read,
        cached: count("/usage/prompt_tokens_details/cached_tokens"),
        cache_written: count("/usage/prompt_tokens_details/cache_write_tokens"),
        output: written(read, completion, reasoning, count("/usage/total_tokens")),
        reasoning,
    }
}
