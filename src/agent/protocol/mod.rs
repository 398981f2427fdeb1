//! Finds the tool calls of a reply: those that the provider reports, or tags or JSON in the text.
//!
//! The functions are pure and tolerant of what small local models write: a call in a code fence, between tags or bare,
//! with keys other than `name` and `arguments`, with the arguments as a JSON text, or with raw line breaks inside
//! strings.

pub mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::ToolCall;

/// How a model calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[schemars(rename = "Protocol")]
#[serde(rename_all = "kebab-case")]
pub enum ToolProtocol {
    /// The provider's tool calling; a call written into the text as JSON is accepted, too
    #[default]
    Tools,
    /// A thought and one code fence in the text, for models without tool calling
    Text,
}

/// A parsed tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCall {
    /// The provider's id of the call; `None` for a call found in the text.
    pub id: Option<String>,
    /// The tool's name; a tool of that name need not exist.
    pub name: String,
    /// The arguments, or an error message if they aren't a JSON object.
    pub arguments: Result<Map<String, Value>, String>,
}

/// Maximum bytes that the search for objects or tags scans in total, so that deeply nested braces cannot take minutes.
const SEARCH: usize = 8 << 20;

/// Beginning and end of a call that is written with tags, as by Qwen3-Coder:
/// `<function=NAME><parameter=KEY>VALUE</parameter></function>`.
const FUNCTION: (&str, &str) = ("<function=", "</function>");
const PARAMETER: (&str, &str) = ("<parameter=", "</parameter>");

/// Pairs of tags around a call. Between the tags of the first pair is JSON or a call with the tags of the second pair.
const CALL_TAGS: [(&str, &str); 2] = [("<tool_call>", "</tool_call>"), FUNCTION];

const NAMES: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 4] = ["arguments", "args", "parameters", "input"];

/// Extracts the calls of a reply, in order. If the provider reports calls, the text is ignored. `known` says whether a
/// tool exists: an object without a key for its arguments counts as a call only if it names an existing tool.
///
/// # Errors
/// If the reply contains no call, returns the reason, as a text to show to the model.
pub fn calls(text: &str, tool_calls: &[ToolCall], known: &dyn Fn(&str) -> bool) -> Result<Vec<ParsedCall>, String> {
    if !tool_calls.is_empty() {
        return Ok(tool_calls.iter().map(|call| provided(call, known)).collect());
    }
    let mut found = tagged(text, known);
    if !found.is_empty() {
        return Ok(found);
    }
    let mut trouble = None;
    let mut looked_at = 0;
    let mut from = 0;
    while let Some(start) = next_object(text, from) {
        if looked_at > SEARCH {
            break;
        }
        let end = object_end(text, start);
        looked_at += end.unwrap_or(text.len()) - start;
        from = start + 1;
        let Some(end) = end else {
            // The opening brace has no closing brace: a call was cut off, or the brace is part of prose.
            if trouble.is_none() && mentions_call(&text[start..]) {
                trouble = Some("the JSON object is not closed".to_owned());
            }
            continue;
        };
        match parse(&text[start..end]) {
            Ok(object) => {
                if let Some(call) = written(object, known) {
                    found.push(call);
                    from = end;
                }
            }
            Err(error) if trouble.is_none() && mentions_call(&text[start..end]) => trouble = Some(error.to_string()),
            Err(_) => {}
        }
    }
    match (found.is_empty(), trouble) {
        (false, _) => Ok(found),
        (true, Some(trouble)) => Err(format!("the tool call is not valid JSON: {trouble}")),
        (true, None) if text.trim().is_empty() => Err("the reply was empty".to_owned()),
        (true, None) if text.contains(FUNCTION.0) => {
            Err(format!("a tag `{}...>` or a tag in it is not closed", FUNCTION.0))
        }
        (true, None) => Err("the reply has no tool call".to_owned()),
    }
}

/// Converts a call that the provider reports.
fn provided(call: &ToolCall, known: &dyn Fn(&str) -> bool) -> ParsedCall {
    let name = meant(&call.name, known).unwrap_or_else(|| call.name.clone());
    ParsedCall { id: Some(call.id.clone()), name, arguments: object(&call.arguments) }
}

/// Returns the complete calls of a text that are written as [`FUNCTION`] tags. All their arguments are texts.
fn tagged(text: &str, known: &dyn Fn(&str) -> bool) -> Vec<ParsedCall> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut looked_at = 0;
    while let Some((_, begun)) = rest.split_once(FUNCTION.0).filter(|_| looked_at <= SEARCH) {
        rest = begun;
        match tagged_call(begun, known) {
            Some((call, after)) => {
                found.push(call);
                rest = after;
            }
            None => looked_at += begun.len(),
        }
    }
    found
}

/// Reads a call from the text after its opening `<function=`. Also returns the text after the call. A value may
/// contain any text except the tag that closes it.
fn tagged_call<'a>(text: &'a str, known: &dyn Fn(&str) -> bool) -> Option<(ParsedCall, &'a str)> {
    let (name, mut rest) = text.split_once('>')?;
    let name = meant(name, known).unwrap_or_else(|| name.trim().to_owned());
    let mut arguments = Map::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(FUNCTION.1) {
            return Some((ParsedCall { id: None, name, arguments: Ok(arguments) }, after));
        }
        let (key, begun) = rest.strip_prefix(PARAMETER.0)?.split_once('>')?;
        let (value, after) = begun.split_once(PARAMETER.1)?;
        // The tags are on lines of their own if the value has several lines.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.trim().to_owned(), Value::from(value));
        rest = after;
    }
}

/// Returns the tagged call with which a model's thoughts end. Some servers leave a call in the thoughts, because the
/// model did not close them before the call. A call with text after it may be a draft and does not count.
#[must_use]
pub fn call_after_thoughts(thoughts: &str) -> Option<&str> {
    let thoughts = thoughts.trim_end();
    let (begin, _) = CALL_TAGS.iter().find(|(_, end)| thoughts.ends_with(end))?;
    Some(&thoughts[thoughts.rfind(begin)?..])
}

/// Whether the text of a reply contains nothing after the model's thoughts, so that the model has not answered. Without
/// a parser for thoughts, servers report them as part of the text.
#[must_use]
pub fn is_only_thoughts(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with("<think>") && (!text.contains("</think>") || text.ends_with("</think>"))
}

/// Converts the arguments that are texts although the tool's schema demands another type, such as the number `"20"`.
pub fn convert_texts(arguments: &mut Map<String, Value>, parameters: &Value) {
    for (name, value) in arguments {
        if let (Some(schema), Value::String(text)) = (parameters["properties"].get(name.as_str()), &*value) {
            *value = typed(schema, text);
        }
    }
}

/// Converts a value to the type that its schema demands, if possible.
fn typed(schema: &Value, text: &str) -> Value {
    let json = match schema["type"].as_str() {
        Some("string") => return Value::from(text),
        // Python's spelling of `true` and `false`.
        Some("boolean") => text.trim().to_lowercase(),
        _ => text.trim().to_owned(),
    };
    serde_json::from_str(&json).unwrap_or_else(|_| Value::from(text))
}

/// Returns a call's arguments as an object; parses them if they are a text. Missing arguments become an empty object.
fn object(arguments: &Value) -> Result<Map<String, Value>, String> {
    match arguments {
        Value::Object(map) => Ok(map.clone()),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => parse(text).map_err(|error| format!("not a JSON object: {error}")),
        other => Err(format!("not a JSON object but {}", kind(other))),
    }
}

/// Interprets an object in the text as a call; returns `None` if it is not one.
fn written(mut map: Map<String, Value>, known: &dyn Fn(&str) -> bool) -> Option<ParsedCall> {
    // In {"function": {"name": .., "arguments": ..}}, the outer object has no name; the search then finds the inner
    // object.
    let Some(name_key) = NAMES.iter().find(|key| map.get(**key).is_some_and(Value::is_string)) else {
        return misnamed(map, known);
    };
    let Some(Value::String(name)) = map.shift_remove(*name_key) else { return None };
    let name = meant(&name, known).unwrap_or(name);
    let arguments = match ARGUMENTS.iter().find_map(|key| map.shift_remove(*key)) {
        Some(arguments) => object(&arguments),
        None if known(&name) => Ok(map),
        None => return None,
    };
    Some(ParsedCall { id: None, name, arguments })
}

/// Interprets an object without a name key as a call: either the tool's name has another key, as in
/// `{"command": "list_files", "arguments": {..}}`, or it is itself the key, as in `{"list_files": {..}}`.
fn misnamed(mut map: Map<String, Value>, known: &dyn Fn(&str) -> bool) -> Option<ParsedCall> {
    if let Some(key) = ARGUMENTS.iter().find(|key| map.get(**key).is_some_and(Value::is_object)) {
        let arguments = object(&map.shift_remove(*key)?);
        let name = map.values().filter_map(Value::as_str).find_map(|text| meant(text, known))?;
        return Some(ParsedCall { id: None, name, arguments });
    }
    let (key, value) = map.iter().next().filter(|(_, value)| map.len() == 1 && value.is_object())?;
    Some(ParsedCall { id: None, name: meant(key, known)?, arguments: object(value) })
}

/// Returns the known tool that a name refers to. Small models write names as words, such as `Command line`; gpt-oss
/// adds parts of its own syntax, as in `functions.command_line` and `command_line<|channel|>commentary`.
fn meant(name: &str, known: &dyn Fn(&str) -> bool) -> Option<String> {
    let bare = name.split("<|").next().unwrap_or_default().trim();
    let bare = bare.strip_prefix("functions.").unwrap_or(bare);
    let plain = bare.to_lowercase().replace([' ', '-'], "_");
    [name, bare, &plain].into_iter().find(|name| known(name)).map(str::to_owned)
}

/// Returns the position of the next possible JSON object: an opening brace followed by a quote or a closing brace.
fn next_object(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == b'{')?;
        let after = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
        if matches!(after, Some(b'"' | b'}')) {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the position after the brace that closes the object at `start`. Counts only the braces outside of strings,
/// and does not check that the object is valid JSON.
fn object_end(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in text.as_bytes()[start..].iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(start + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Parses JSON. Also accepts raw line breaks and tabs in strings.
fn parse(text: &str) -> Result<Map<String, Value>, serde_json::Error> {
    serde_json::from_str(text)
        .or_else(|error| if text.contains(char::is_control) { serde_json::from_str(&escape(text)) } else { Err(error) })
}

/// Escapes the control characters inside the JSON strings of a text.
fn escape(text: &str) -> String {
    let mut escaped_text = String::with_capacity(text.len() + 64);
    let mut in_string = false;
    let mut escaped = false;
    for character in text.chars() {
        match character {
            // A backslash before a raw line break, as in a shell script, is meant literally.
            '\n' if escaped => escaped_text.push_str("\\\\n"),
            '\n' if in_string => escaped_text.push_str("\\n"),
            '\r' if in_string => escaped_text.push_str("\\r"),
            '\t' if in_string => escaped_text.push_str("\\t"),
            _ => escaped_text.push(character),
        }
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    escaped_text
}

/// Returns a text's last JSON object with keys that begin with "experiment": results that the model reported without a
/// tool.
#[must_use]
pub fn results(text: &str) -> Option<String> {
    let (mut found, mut from, mut looked_at) = (None, 0, 0);
    while let Some(start) = next_object(text, from) {
        if looked_at > SEARCH / 4 {
            break;
        }
        let end = object_end(text, start);
        looked_at += end.unwrap_or(text.len()) - start;
        from = start + 1;
        let Some(end) = end else { continue };
        if let Ok(map) = parse(&text[start..end])
            && map.keys().any(|key| key.to_lowercase().starts_with("experiment"))
        {
            found = Some(Value::Object(map).to_string());
            from = end;
        }
    }
    found
}

/// Whether a JSON object that is unclosed or invalid was probably meant as a call, judged by the keys in its first 200
/// characters.
fn mentions_call(text: &str) -> bool {
    let head: String = text.chars().take(200).collect();
    NAMES.iter().any(|key| head.contains(&format!("\"{key}\"")))
}

/// Names the type of a JSON value, for messages.
#[must_use]
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Vec<(String, Value)>, String> {
        let known = |name: &str| matches!(name, "command_line" | "list_files" | "write_file");
        Ok(calls(text, &[], &known)?.into_iter().map(|call| (call.name, call.arguments.unwrap().into())).collect())
    }

    fn one(text: &str) -> (String, Value) {
        let mut calls = read(text).unwrap();
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    #[test]
    fn a_call_is_read_in_every_shape_that_models_write() {
        let expected = ("command_line".to_owned(), json!({"command": "ls"}));
        for text in [
            r#"{"name": "command_line", "arguments": {"command": "ls"}}"#,
            "Thought: look.\n```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"ls\"}}\n```\nDone.",
            "<tool_call>\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
            r#"{"tool": "command_line", "args": {"command": "ls"}}"#,
            r#"{"tool_name": "command_line", "parameters": {"command": "ls"}}"#,
            r#"{"name": "command_line", "arguments": "{\"command\": \"ls\"}"}"#,
            r#"{"function": {"name": "command_line", "arguments": {"command": "ls"}}}"#,
            r#"{"tool_calls": [{"name": "command_line", "arguments": {"command": "ls"}}]}"#,
            r#"{"thought": "a {brace} in text", "action": {"name": "command_line", "input": {"command": "ls"}}}"#,
            r#"{"tool": "command_line", "command": "ls"}"#,
            r#"{"name": "Command line", "arguments": {"command": "ls"}}"#,
            r#"{"command": "command_line", "arguments": {"command": "ls"}}"#,
            r#"{"command_line": {"command": "ls"}}"#,
            "<tool_call>\n<function=command_line>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
            "I look. <function=Command line><parameter=command>ls</parameter></function> Then I wait.",
            r#"{"name": "functions.command_line", "arguments": {"command": "ls"}}"#,
            "for x in {1..3}; do { :; }; done {\"a\": {} {\"name\": \"command_line\", \"args\": {\"command\": \"ls\"}}",
        ] {
            assert_eq!(one(text), expected, "{text}");
        }
        assert_eq!(one(r#"{"name": "list_files"}"#), ("list_files".to_owned(), json!({})));
    }

    #[test]
    fn raw_line_breaks_inside_strings_of_a_call_are_accepted_and_kept() {
        let text =
            "{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.sh\", \"content\": \"x \\\n\ty\n\\\"}\\\"\"}}";
        assert_eq!(one(text).1["content"], json!("x \\\n\ty\n\"}\""));
    }

    #[test]
    fn json_that_is_not_a_call_is_ignored() {
        let none = Err("the reply has no tool call".to_owned());
        assert_eq!(read(r#"The result is {"Experiment 1": {"x": 1}}."#), none);
        assert_eq!(read(r#"{"name": "Ann", "age": 3}"#), none);
        assert_eq!(read(r#"{"command": "ls", "arguments": {"path": "."}}"#), none);
        assert_eq!(read(r#"{"list_files": {}, "command_line": {}}"#), none);
        assert_eq!(read("{ {} { \" {} "), none);
        assert_eq!(read(""), Err("the reply was empty".to_owned()));
    }

    #[test]
    fn calls_are_not_looked_for_inside_the_arguments_of_a_call() {
        let inner = r#"{"name": "list_files", "arguments": {}}"#;
        let text = json!({"name": "write_file", "arguments": {"path": "a", "content": inner}}).to_string();
        assert_eq!(one(&text).0, "write_file");
    }

    #[test]
    fn several_calls_keep_their_order() {
        let text = r#"{"name": "list_files", "args": {}} then {"name": "nope", "args": {}}"#;
        let names: Vec<String> = read(text).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["list_files", "nope"]);
    }

    #[test]
    fn calls_in_the_providers_format_take_precedence_over_calls_in_the_text() {
        let own = ToolCall { id: "7".into(), name: "list_files".into(), arguments: json!("{\"path\": \"a\"}") };
        let read = calls(r#"{"name": "command_line", "args": {}}"#, &[own], &|_| true).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].id.as_deref(), &read[0].arguments.as_ref().unwrap()["path"]), (Some("7"), &json!("a")));
    }

    #[test]
    fn names_that_gpt_oss_writes_in_its_own_syntax_are_those_of_the_tools() {
        let known = |name: &str| name == "list_files";
        for written in
            ["functions.list_files", "list_files<|channel|>commentary", "functions.list_files<|constrain|>json"]
        {
            let call = ToolCall { id: "7".into(), name: written.into(), arguments: json!({}) };
            assert_eq!(calls("", &[call], &known).unwrap()[0].name, "list_files", "{written}");
        }
        let other = ToolCall { id: "7".into(), name: "functions.nope".into(), arguments: json!({}) };
        assert_eq!(calls("", &[other], &known).unwrap()[0].name, "functions.nope");
    }

    #[test]
    fn values_between_tags_keep_their_lines_and_may_contain_other_tags() {
        let content =
            "x = {\"name\": \"list_files\", \"arguments\": {}}\n\n  </function>\n<function=list_files></function>\n";
        let text = format!(
            "<function=write_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=content>\n{content}\n\
             </parameter>\n</function>\n<function=list_files>\n</function>"
        );
        let expected = [
            ("write_file".to_owned(), json!({"path": "a.py", "content": content})),
            ("list_files".to_owned(), json!({})),
        ];
        assert_eq!(read(&text).unwrap(), expected);
        let open = read("<function=write_file>\n<parameter=path>\na.py\n</function>").unwrap_err();
        assert_eq!(open, "a tag `<function=...>` or a tag in it is not closed");
    }

    #[test]
    fn only_a_tagged_call_at_the_end_of_thoughts_counts() {
        let json = r#"<tool_call>{"name": "list_files", "arguments": {}}</tool_call>"#;
        let tags = "<function=list_files>\n</function>";
        for call in [json, tags] {
            let thoughts = format!("Perhaps {json} or {tags}? No.\n{call} \n");
            assert_eq!(call_after_thoughts(&thoughts), Some(call));
            assert_eq!(call_after_thoughts(&format!("{thoughts} I wait.")), None);
        }
        assert_eq!(call_after_thoughts(r#"I call {"name": "list_files", "arguments": {}}"#), None);
        assert_eq!(call_after_thoughts("</tool_call>"), None);
    }

    #[test]
    fn texts_are_converted_to_the_types_of_the_schema() {
        let schema = json!({"properties": {
            "line": {"type": "integer"},
            "seconds": {"type": "number"},
            "all": {"type": "boolean"},
            "text": {"type": "string"},
        }});
        let mut arguments = Map::from_iter(
            [("line", "1"), ("seconds", " 2.5"), ("all", "True"), ("text", "7"), ("other", "8")]
                .map(|(name, text)| (name.to_owned(), json!(text))),
        );
        convert_texts(&mut arguments, &schema);
        let expected = json!({"line": 1, "seconds": 2.5, "all": true, "text": "7", "other": "8"});
        assert_eq!(Value::Object(arguments), expected);
        let mut wrong = Map::from_iter([("line".to_owned(), json!("one"))]);
        convert_texts(&mut wrong, &schema);
        assert_eq!(wrong["line"], "one");
    }

    #[test]
    fn the_last_object_with_results_of_experiments_is_found_in_a_text() {
        let text = "First {\"Experiment 1\": {\"x\": 1}}.\n```json\n{\"experiment 1\": {\"x\": 2}}\n``` {\"a\": 1}";
        assert_eq!(results(text).as_deref(), Some(r#"{"experiment 1":{"x":2}}"#));
        assert_eq!(results("{\"a\": {\"b\": 1}} {\"Experiment 1\": "), None);
    }

    #[test]
    fn deeply_nested_replies_are_parsed_within_seconds() {
        let now = || nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        let begun = now();
        for hostile in
            ["{\"a\":", "{\"", "{}", "{\"name\":{", "{\"a\":{\"b\":1},", "\"{\"", "<function=a><parameter=b>"]
        {
            let long = hostile.repeat((1 << 20) / hostile.len());
            let _ = (read(&long), results(&long));
        }
        let took = std::time::Duration::from(now() - begun);
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    }
}
