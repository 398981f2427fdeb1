//! Converts an external agent's request options to the provider's format, and lists those that are not sent.

use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatResponseFormat, JsonSpec, ReasoningEffort, ToolChoice};
use serde_json::{Map, Value, json};

use super::features::ModelTarget;
use super::{Effort, ReplyFormat, Request, ToolCallChoice};

/// Adds the options of a request in the provider's format. Leaves out options that the provider does not support, or
/// for which it would refuse the whole request, and returns descriptions of them.
pub(super) fn apply(
    target: &ModelTarget,
    request: &Request,
    options: &mut ChatOptions,
    extra: &mut Map<String, Value>,
) -> Vec<String> {
    let (wishes, features) = (&request.wishes, target.features);
    let mut left_out = Vec::new();
    // The contents of the `text` field of the Responses API.
    let mut text = Map::new();
    if request.foreign && !features.sampling && options.temperature.take().is_some() {
        left_out.push("`temperature`".to_owned());
    }
    match wishes.top_p {
        Some(top_p) if takes_top_p(target, options) => options.top_p = Some(top_p),
        Some(_) => left_out.push("`top_p`".to_owned()),
        None => {}
    }
    sample(target, request, extra, &mut left_out);
    if !request.tools.is_empty() {
        choose(target, request, options, extra, &mut left_out);
    }
    if let Some(format) = &wishes.format
        && !write_as(target, format, request, options, extra, &mut text)
    {
        left_out.push("the reply's format".to_owned());
    }
    if let Some(verbosity) = &wishes.verbosity {
        match target.kind {
            AdapterKind::OpenAIResp => text.insert("verbosity".to_owned(), json!(verbosity)),
            AdapterKind::OpenAI if features.reasoning || target.own_server => {
                extra.insert("verbosity".to_owned(), json!(verbosity))
            }
            _ => {
                left_out.push("`verbosity`".to_owned());
                None
            }
        };
    }
    if !text.is_empty() {
        extra.insert("text".to_owned(), Value::Object(text));
    }
    if !features.images && request.messages.iter().any(|message| !message.images.is_empty()) {
        left_out.push("pictures, which this model does not take".to_owned());
    }
    left_out
}

/// Whether the provider accepts `top_p`. Anthropic refuses it together with a temperature or thinking; OpenAI's
/// reasoning models refuse it always.
fn takes_top_p(target: &ModelTarget, options: &ChatOptions) -> bool {
    match target.kind {
        AdapterKind::Anthropic => options.temperature.is_none() && !thinks(options),
        _ => target.features.sampling,
    }
}

/// Whether the options ask for thinking.
fn thinks(options: &ChatOptions) -> bool {
    options.reasoning_effort.as_ref().is_some_and(|effort| !matches!(effort, ReasoningEffort::Zero))
}

/// Adds the sampling options that `genai` does not support.
fn sample(target: &ModelTarget, request: &Request, extra: &mut Map<String, Value>, left_out: &mut Vec<String>) {
    let wishes = &request.wishes;
    let is_chat = target.kind == AdapterKind::OpenAI;
    let takes_penalties = is_chat && (target.own_server || target.features.sampling);
    let takes_top_k = target.kind == AdapterKind::Anthropic || is_chat && target.own_server;
    for (value, name, in_gemini, is_taken) in [
        (wishes.top_k.map(Value::from), "top_k", "topK", takes_top_k),
        (wishes.frequency_penalty.map(Value::from), "frequency_penalty", "frequencyPenalty", takes_penalties),
        (wishes.presence_penalty.map(Value::from), "presence_penalty", "presencePenalty", takes_penalties),
    ] {
        let Some(value) = value else { continue };
        if target.kind == AdapterKind::Gemini {
            let config = extra.entry("generationConfig").or_insert_with(|| json!({}));
            config[in_gemini] = value;
        } else if is_taken {
            extra.insert(name.to_owned(), value);
        } else {
            left_out.push(format!("`{name}`"));
        }
    }
}

/// Adds the tool choice, and the limit of one call per reply.
fn choose(
    target: &ModelTarget,
    request: &Request,
    options: &mut ChatOptions,
    extra: &mut Map<String, Value>,
    left_out: &mut Vec<String>,
) {
    let mut choice = request.wishes.choice.as_ref().filter(|choice| **choice != ToolCallChoice::Auto);
    // Anthropic's documentation of extended thinking says: "Tool use with thinking only supports auto and none".
    if target.kind == AdapterKind::Anthropic
        && thinks(options)
        && matches!(choice, Some(ToolCallChoice::Required | ToolCallChoice::Tool(_)))
    {
        choice = None;
        left_out.push("`tool_choice`, which the provider does not take with thinking".to_owned());
    }
    options.tool_choice = choice.map(|choice| match choice {
        ToolCallChoice::Auto => ToolChoice::Auto,
        ToolCallChoice::None => ToolChoice::None,
        ToolCallChoice::Required => ToolChoice::Required,
        ToolCallChoice::Tool(name) => ToolChoice::tool(name.as_str()),
    });
    if !request.one_call {
        return;
    }
    if !target.features.one_call {
        left_out.push("the limit of one call per reply".to_owned());
    } else if target.kind == AdapterKind::Anthropic {
        let kind = match choice {
            None | Some(ToolCallChoice::Auto) => json!({"type": "auto"}),
            // Anthropic does not accept `disable_parallel_tool_use` together with "none".
            Some(ToolCallChoice::None) => return,
            Some(ToolCallChoice::Required) => json!({"type": "any"}),
            Some(ToolCallChoice::Tool(name)) => json!({"type": "tool", "name": name}),
        };
        let mut kind = kind;
        kind["disable_parallel_tool_use"] = json!(true);
        extra.insert("tool_choice".to_owned(), kind);
    } else {
        extra.insert("parallel_tool_calls".to_owned(), Value::Bool(false));
    }
}

/// Adds the reply format; returns `false` if the provider does not support it.
fn write_as(
    target: &ModelTarget,
    format: &ReplyFormat,
    request: &Request,
    options: &mut ChatOptions,
    extra: &mut Map<String, Value>,
    text: &mut Map<String, Value>,
) -> bool {
    match (target.kind, format) {
        (AdapterKind::OpenAI, ReplyFormat::Json) => {
            extra.insert("response_format".to_owned(), json!({"type": "json_object"}));
        }
        (AdapterKind::OpenAI, ReplyFormat::Schema { name, schema, strict }) => {
            let schema = json!({"name": name, "schema": schema, "strict": strict.unwrap_or(false)});
            extra.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
        }
        (AdapterKind::OpenAIResp, ReplyFormat::Json) => {
            text.insert("format".to_owned(), json!({"type": "json_object"}));
        }
        (AdapterKind::OpenAIResp, ReplyFormat::Schema { name, schema, strict }) => {
            let strict = strict.unwrap_or(false);
            let format = json!({"type": "json_schema", "name": name, "schema": schema, "strict": strict});
            text.insert("format".to_owned(), format);
        }
        // Gemini refuses a request with both a reply schema and tools.
        (AdapterKind::Gemini, ReplyFormat::Schema { .. }) if !request.tools.is_empty() => return false,
        (AdapterKind::Anthropic | AdapterKind::Gemini, ReplyFormat::Schema { name, schema, .. }) => {
            let spec = JsonSpec::new(name.as_str(), schema.clone());
            options.response_format = Some(ChatResponseFormat::JsonSpec(spec));
        }
        _ => return false,
    }
    true
}

/// Converts an external agent's effort to a level that every reasoning model accepts. Keeps `none`, which not every
/// model accepts ([`super::Model::takes_effort_none`]).
#[must_use]
pub(crate) const fn plain(effort: Effort) -> Effort {
    match effort {
        Effort::None => Effort::None,
        Effort::Minimal | Effort::Low => Effort::Low,
        Effort::Medium => Effort::Medium,
        Effort::High | Effort::XHigh | Effort::Max => Effort::High,
    }
}
