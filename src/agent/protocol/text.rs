//! Tool calls of models without tool calling: a thought, then one code fence.
//!
//! A fence labelled `json` holds the call as a JSON object. A fence labelled with a tool's name holds the tool's
//! arguments: as a JSON object; as bare text, if the tool has only one argument; or as lines `name: value` for the
//! short arguments, followed by the text of the long argument. `bash` and `python` mean the tools that run such code,
//! if the tool set has them. If no fence is a call, JSON outside of fences is accepted.

use serde_json::{Map, Value};

use super::{ParsedCall, parse, typed};
use crate::agent::tools::ToolSet;

/// Labels of code fences with Python code.
const PYTHON: [&str; 3] = ["python", "py", "ipython"];

/// A code fence in a reply.
#[derive(Debug, PartialEq)]
struct Fence<'a> {
    /// The first word after the backticks, in lower case.
    label: String,
    /// The contents, including line breaks.
    body: &'a str,
    /// Whether the fence has a closing line.
    closed: bool,
}

/// Extracts the calls of a reply, in order.
///
/// # Errors
/// If the reply contains no call, returns the reason, as a text to show to the model.
pub fn calls(text: &str, tools: &ToolSet) -> Result<Vec<ParsedCall>, String> {
    // Read tags first, because the value of a tagged call may contain fences.
    let mut found = super::tagged(text, &|name| tools.get(name).is_some());
    if !found.is_empty() {
        return Ok(found);
    }
    let mut trouble = None;
    for fence in fences(text) {
        match call(&fence, tools) {
            Some(Ok(calls)) => found.extend(calls),
            Some(Err(what)) => trouble = trouble.or(Some(what)),
            None => {}
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let anywhere = super::calls(text, &[], &|name| tools.get(name).is_some());
    anywhere.map_err(|what| {
        let what = trouble.unwrap_or_else(|| what.replace("tool call", "code fence with a call"));
        // Small models often show code in a reply instead of writing it to a file. The error then says that such code
        // is not written to any file.
        let has_code = fences(text).iter().any(|fence| PYTHON.contains(&fence.label.as_str()));
        if has_code && what.ends_with("no code fence with a call") {
            return format!("{what}, and code in a reply is not written to any file");
        }
        what
    })
}

/// Interprets a fence as a call; returns `None` if it is not one.
fn call(fence: &Fence<'_>, tools: &ToolSet) -> Option<Result<Vec<ParsedCall>, String>> {
    let known = |name: &str| tools.get(name).is_some();
    let name = match fence.label.as_str() {
        "" | "json" | "tool_call" => {
            // Ignore an error here: if no fence is a call, the search of the whole text below reports the error.
            let written = super::calls(fence.body, &[], &known).ok();
            // The fence may contain an object without its braces, such as `"list_files": {..}`.
            let bare = || super::calls(&format!("{{{}}}", fence.body), &[], &known).ok();
            return written.or_else(|| fence.body.trim_start().starts_with('"').then(bare).flatten()).map(Ok);
        }
        "bash" | "sh" | "shell" | "console" if !known(&fence.label) => tools.shell()?,
        label if PYTHON.contains(&label) && !known(label) => tools.python()?,
        label => tools.definitions().iter().find(|tool| tool.name == label)?.name.as_str(),
    };
    if !fence.closed {
        return Some(Err(format!("the code fence `{}` is not closed", fence.label)));
    }
    let tool = tools.definitions().iter().find(|tool| tool.name == name)?;
    let arguments = arguments(&tool.parameters, fence.body);
    Some(Ok(vec![ParsedCall { id: None, name: name.to_owned(), arguments }]))
}

/// Parses the text of a fence as arguments.
fn arguments(parameters: &Value, body: &str) -> Result<Map<String, Value>, String> {
    let nothing = Map::new();
    let properties = parameters["properties"].as_object().unwrap_or(&nothing);
    if let Ok(map) = parse(body.trim())
        && map.keys().all(|key| properties.contains_key(key))
    {
        return Ok(map);
    }
    let mut given = Map::new();
    if let (1, Some((name, schema))) = (properties.len(), properties.iter().next()) {
        if !body.trim().is_empty() {
            given.insert(name.clone(), typed(schema, body.trim_end_matches('\n')));
        }
        return Ok(given);
    }
    let mut rest = body;
    while let Some((name, value)) = rest.split('\n').next().and_then(|line| line.split_once(':')) {
        let name = name.trim();
        let Some(schema) = properties.get(name).filter(|_| !given.contains_key(name)) else { break };
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
        if value.trim().is_empty() && schema["type"] == "string" {
            // If a text argument has no value on its line, its value is the rest of the fence.
            given.insert(name.to_owned(), Value::from(std::mem::take(&mut rest)));
        } else {
            given.insert(name.to_owned(), typed(schema, value.trim()));
        }
    }
    if rest.trim().is_empty() {
        return Ok(given);
    }
    let is_required = |name: &str| parameters["required"].as_array().is_some_and(|all| all.iter().any(|it| it == name));
    let open = |required: bool| {
        let fits = |(name, schema): &(&String, &Value)| {
            schema["type"] == "string" && is_required(name) == required && !given.contains_key(*name)
        };
        properties.iter().find(fits).map(|(name, _)| name.clone())
    };
    let Some(long) = open(true).or_else(|| open(false)) else {
        return Err("followed by text that belongs to none of them".to_owned());
    };
    // If the long argument is the only required one, it is a command or code, whose trailing newlines don't matter.
    // Otherwise it is the text of a file and is kept verbatim.
    let is_command = parameters["required"].as_array().is_some_and(|all| all.len() == 1 && is_required(&long));
    given.insert(long, Value::from(if is_command { rest.trim_end_matches('\n') } else { rest }));
    Ok(given)
}

/// Whether the last code fence of a reply is closed; `false` without a fence.
#[must_use]
pub fn ends_with_closed_fence(text: &str) -> bool {
    fences(text).last().is_some_and(|fence| fence.closed)
}

/// Returns the code fences of a text, in order. A fence ends at a line that consists of at least as many backticks as
/// opened the fence.
fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let line = line.trim();
        let ticks = line.len() - line.trim_start_matches('`').len();
        match &open {
            None if ticks >= 3 => {
                let info = line[ticks..].trim();
                // Code between backticks on one line, as in ```code```, doesn't open a fence.
                if !info.contains('`') {
                    let label = info.split_whitespace().next().unwrap_or_default().trim_matches(['{', '}', '.']);
                    open = Some((ticks, label.to_lowercase(), end));
                }
            }
            Some((opened, label, from)) if ticks >= *opened && line.len() == ticks => {
                found.push(Fence { label: label.clone(), body: &text[*from..start], closed: true });
                open = None;
            }
            _ => {}
        }
    }
    if let Some((_, label, from)) = open {
        found.push(Fence { label, body: &text[from..], closed: false });
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::tools::ToolChoice;

    type Named = (String, Result<Value, String>);

    fn read(choice: ToolChoice, text: &str) -> Result<Vec<Named>, String> {
        let calls = calls(text, &ToolSet::from_choice(choice))?;
        Ok(calls.into_iter().map(|call| (call.name, call.arguments.map(Value::from))).collect())
    }

    fn one(text: &str) -> (String, Value) {
        let mut calls = read(ToolChoice::Autoexperiment, text).unwrap();
        assert_eq!(calls.len(), 1, "{calls:?}");
        let (name, arguments) = calls.remove(0);
        (name, arguments.unwrap())
    }

    #[test]
    fn a_fenced_call_is_read_in_every_shape_that_models_write() {
        let expected = ("command_line".to_owned(), json!({"command": "ls -la"}));
        for text in [
            "I look.\n```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"ls -la\"}}\n```\n",
            "```\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"ls -la\"}}\n```",
            "I look.\n\n```command_line\nls -la\n```\nThat is all.",
            "```command_line\n{\"command\": \"ls -la\"}\n```",
            "```bash\nls -la\n```",
            "   ```sh\nls -la\n   ```",
            "````Bash title=x\nls -la\n````",
            "```json\n\"Command line\": {\"command\": \"ls -la\"}\n```",
            "No fence: {\"name\": \"command_line\", \"arguments\": {\"command\": \"ls -la\"}}",
            "```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"ls -la\"}}",
        ] {
            assert_eq!(one(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_argument_is_written_verbatim_below_the_short_ones() {
        let content = "def f():\n    return \"\"\"a: b\"\"\"\n";
        let expected = ("write_file".to_owned(), json!({"path": "a.py", "content": content}));
        assert_eq!(one(&format!("```write_file\npath: a.py\n{content}```")), expected);
        assert_eq!(one(&format!("```write_file\npath: a.py\ncontent:\n{content}```")), expected);
        let lines = "```inspect_file_lines\npath: a.py\nstart_line: 3\n```";
        assert_eq!(one(lines).1, json!({"path": "a.py", "start_line": 3}));
        let script = "```execute_python_script\npath: a.py\narguments: [\"1\"]\n```";
        assert_eq!(one(script).1, json!({"path": "a.py", "arguments": ["1"]}));
    }

    #[test]
    fn code_fences_that_contain_no_tool_call_are_part_of_the_models_thought() {
        let text = "As in\n```python\nx = 1\n```\nand\n```json\n{\"x\": 1}\n```\nso\n```list_files\n```";
        assert_eq!(one(text), ("list_files".to_owned(), json!({})));
        let none = "the reply has no code fence with a call";
        let shown = read(ToolChoice::Autoexperiment, "So:\n```python\nx = 1\n```").unwrap_err();
        assert_eq!(shown, format!("{none}, and code in a reply is not written to any file"));
        assert_eq!(read(ToolChoice::Autoexperiment, "I shall look.").unwrap_err(), none);
        let python = read(ToolChoice::Super, "```python\nx = 1\n```").unwrap();
        assert_eq!(python, [("execute".to_owned(), Ok(json!({"code": "x = 1"})))]);
        let edit = read(ToolChoice::SweAgent, "```edit\nstart_line: 3\nend_line: 3\n    x: int = 1\n```").unwrap();
        let expected = json!({"start_line": 3, "end_line": 3, "replacement": "    x: int = 1\n"});
        assert_eq!(edit, [("edit".to_owned(), Ok(expected))]);
    }

    #[test]
    fn example_calls_in_the_prompt_of_a_tool_set_use_only_tools_of_that_set() {
        for choice in [ToolChoice::Autoexperiment, ToolChoice::SweAgent, ToolChoice::Super, ToolChoice::Bash] {
            let set = ToolSet::from_choice(choice);
            for shown in [format!("```json\n{}\n```", set.first()), set.example().to_owned()] {
                let calls = read(choice, &shown).unwrap();
                assert!(
                    calls.len() == 1 && set.get(&calls[0].0).is_some() && calls[0].1.is_ok(),
                    "{choice:?}: {calls:?}"
                );
            }
        }
    }

    #[test]
    fn errors_in_a_fenced_call_are_explained() {
        let error = |text: &str| read(ToolChoice::Autoexperiment, text).unwrap_err();
        assert_eq!(error("```bash\nls"), "the code fence `bash` is not closed");
        let broken = error("```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": ls}}\n```");
        assert!(broken.contains("is not valid JSON"), "{broken}");
        let extra = read(ToolChoice::Autoexperiment, "```move\nsource: a\ndestination: b\nthen more\n```").unwrap();
        assert_eq!(extra[0].1, Err("followed by text that belongs to none of them".to_owned()));
        let several = read(ToolChoice::Bash, "```bash\nls\n```\n```bash\npwd\n```").unwrap();
        assert_eq!(several.len(), 2);
    }
}
