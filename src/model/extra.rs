//! Fields that the user adds to requests (`--extra-body`): parsed, checked and merged.

use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatResponseFormat, ReasoningEffort};
use serde_json::{Map, Value, json};

use super::features::ModelTarget;
use super::thinking;

/// Fields that the user must not set because this program writes them, each with advice on what to do instead.
const OWN: [(&str, &str); 21] = [
    ("model", "name the model with `--model`"),
    ("messages", "the agent writes the conversation"),
    ("input", "the agent writes the conversation"),
    ("contents", "the agent writes the conversation"),
    ("prompt", "the agent writes the conversation"),
    ("system", "the agent writes the conversation"),
    ("systemInstruction", "the agent writes the conversation"),
    ("system_instruction", "the agent writes the conversation"),
    ("instructions", "the agent writes the conversation"),
    ("tools", "choose the tools with `react:tools=SET`"),
    ("stream", "the program decides whether to stream"),
    ("stream_options", "the program decides whether to stream"),
    ("n", "an attempt takes one reply per call; make more attempts with `-k`"),
    ("candidateCount", "an attempt takes one reply per call; make more attempts with `-k`"),
    ("max_tokens", "use `--max-tokens`"),
    ("max_completion_tokens", "use `--max-tokens`"),
    ("max_output_tokens", "use `--max-tokens`"),
    ("maxOutputTokens", "use `--max-tokens`"),
    ("temperature", "use `--temperature`"),
    ("seed", "seeds follow from `--seed`"),
    ("background", "the program waits for each reply"),
];

/// Fields of a request's body.
pub(crate) type Fields = Map<String, Value>;

/// Parses the user's fields.
///
/// # Errors
/// An error message that names the fault and its remedy.
pub(crate) fn parse(text: &str) -> Result<Fields, String> {
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err("not a JSON object: give fields and values, as in `{\"top_k\": 20}`".to_owned()),
        Err(error) => return Err(format!("not JSON ({error}): give an object, as in `{{\"top_k\": 20}}`")),
    };
    let config = fields.get("generationConfig").and_then(Value::as_object);
    for name in fields.keys().chain(config.into_iter().flat_map(Map::keys)) {
        if let Some((_, instead)) = OWN.iter().find(|(own, _)| own == name) {
            return Err(format!("`{name}` cannot be overridden: {instead}"));
        }
    }
    Ok(fields)
}

/// Merges `fields` into `into`: objects are merged, other values replaced.
pub(super) fn merge(into: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (name, value) in fields {
        match (into.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// If the user's fields set an object in which `genai` also writes settings, adds `genai`'s settings to the user's
/// object. Otherwise, `genai` would replace its own object by the user's and lose these settings.
pub(super) fn complete(target: &ModelTarget, options: &mut ChatOptions) {
    let Some(Value::Object(mut extra)) = options.extra_body.take() else { return };
    let (name, own) = match target.kind {
        AdapterKind::Gemini => ("generationConfig", generation_config(target, options)),
        AdapterKind::OpenAIResp => ("reasoning", reasoning(options)),
        _ => ("", Map::new()),
    };
    if let Some(Value::Object(given)) = extra.get(name) {
        let mut whole = own;
        merge(&mut whole, given);
        extra.insert(name.to_owned(), Value::Object(whole));
    }
    options.extra_body = Some(Value::Object(extra));
}

/// Returns the object that `genai` writes as Gemini's `generationConfig` for these options.
fn generation_config(target: &ModelTarget, options: &ChatOptions) -> Map<String, Value> {
    let thinking = options.reasoning_effort.as_ref().and_then(|effort| thinking::gemini_config(&target.model, effort));
    let schema = match &options.response_format {
        Some(ChatResponseFormat::JsonSpec(spec)) => Some(&spec.schema),
        _ => None,
    };
    let stops = Some(&options.stop_sequences).filter(|stops| !stops.is_empty());
    let fields = [
        ("temperature", json!(options.temperature)),
        ("maxOutputTokens", json!(options.max_tokens)),
        ("topP", json!(options.top_p)),
        ("seed", json!(options.seed)),
        ("stopSequences", json!(stops)),
        ("thinkingConfig", json!(thinking)),
        ("responseMimeType", json!(schema.map(|_| "application/json"))),
        ("responseJsonSchema", json!(schema)),
    ];
    fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the object that `genai` writes as `reasoning` of OpenAI's Responses API for these options.
fn reasoning(options: &ChatOptions) -> Map<String, Value> {
    let effort = options.reasoning_effort.as_ref().and_then(|effort| match effort {
        ReasoningEffort::Zero => Some("none"),
        effort => effort.as_keyword(),
    });
    effort.map(|effort| ("effort".to_owned(), json!(effort))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_the_program_sets_cannot_be_overridden() {
        assert_eq!(
            Value::Object(parse("{\"top_k\": 20, \"a\": {\"b\": 1}}").unwrap()),
            json!({"top_k": 20, "a": {"b": 1}})
        );
        for (text, words) in [
            ("[1]", "not a JSON object"),
            ("{", "not JSON"),
            ("{\"messages\": []}", "`messages` cannot be overridden"),
            ("{\"model\": \"x\"}", "`--model`"),
            ("{\"stream\": true}", "stream"),
            ("{\"max_tokens\": 5}", "`--max-tokens`"),
            ("{\"generationConfig\": {\"maxOutputTokens\": 5}}", "`--max-tokens`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn the_effort_none_has_the_name_that_openai_uses() {
        let options = ChatOptions::default().with_reasoning_effort(ReasoningEffort::Zero);
        assert_eq!(Value::Object(reasoning(&options)), json!({"effort": "none"}));
    }

    #[test]
    fn merging_two_json_objects_merges_nested_objects_and_replaces_all_other_values() {
        let mut into = parse("{\"a\": {\"b\": 1, \"c\": 2}, \"d\": 3}").unwrap();
        merge(&mut into, &parse("{\"a\": {\"b\": 4}, \"d\": {\"e\": 5}}").unwrap());
        assert_eq!(Value::Object(into), json!({"a": {"b": 4, "c": 2}, "d": {"e": 5}}));
    }
}
