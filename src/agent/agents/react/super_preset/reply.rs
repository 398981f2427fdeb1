//! Parsing of replies in the format of SUPER's agent: a thought, an action and its content.

use serde_json::{Map, Value, json};

/// The text that ends a reply; text after it is ignored.
const END: &str = "</content>";
const OBSERVATION: &str = "\nObservation:";
const BEFORE: &str = "<<<BEFORE_EDIT>>>";
const AFTER: &str = "<<<AFTER_EDIT>>>";

/// An action and its arguments, or why the reply is malformed.
type ReplyAction = Result<(String, Map<String, Value>), String>;

/// Parses a reply. Returns the text that the history keeps of the reply, and the reply's action. Text after the action,
/// such as an observation that the model made up, is dropped.
pub fn read(text: &str) -> (String, ReplyAction) {
    let text = text.trim();
    let said = match (text.find(END), text.find(OBSERVATION)) {
        (Some(end), observation) if observation.is_none_or(|at| end < at) => &text[..end + END.len()],
        (_, Some(at)) => &text[..at],
        _ => text,
    };
    let call = action(said);
    // The closing tag is missing if the reply was cut off, or if the tag is a stop sequence, as in SUPER. Add the tag.
    let is_open = said.contains("<content>") && !said.contains(END);
    let said = if is_open { format!("{}\n{END}", said.trim_end()) } else { said.to_owned() };
    (if said.is_empty() { "(nothing)".to_owned() } else { said }, call)
}

/// Whether the reply contains the tag that ends its action.
pub fn is_complete(text: &str) -> bool {
    text.contains(END)
}

fn action(said: &str) -> ReplyAction {
    let form = "write `Thought:`, then `Action:` with one action, then its `<content>`";
    let mut lines = said.lines();
    let Some(name) = lines.find_map(|line| line.trim().strip_prefix("Action:")) else {
        return Err(format!("the reply has no line `Action:`; {form}"));
    };
    let name = name.trim().trim_matches('`').to_lowercase().replace(' ', "_");
    let content = said.split_once("<content>").map(|(_, content)| content.split(END).next().unwrap_or_default());
    let content = content.map(|content| content.strip_prefix('\n').unwrap_or(content));
    let arguments = match (name.as_str(), content) {
        ("continue_wait" | "interrupt", _) => Map::new(),
        (_, None) => return Err(format!("the action `{name}` has no `<content>`; {form}")),
        ("execute", Some(code)) => one("code", code.trim_end()),
        ("submit", Some(answer)) => one("answer", answer.trim()),
        ("edit", Some(content)) => edit(content)?,
        (_, Some(_)) => Map::new(),
    };
    Ok((name, arguments))
}

fn one(name: &str, text: &str) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), json!(text))])
}

/// Parses the content of `edit`: a path, the lines to replace and the new lines.
fn edit(content: &str) -> Result<Map<String, Value>, String> {
    let wrong = || {
        format!(
            "`edit` takes a path on the first line, then `{BEFORE}`, the lines to replace, `{AFTER}` and the new lines"
        )
    };
    let (path, rest) = content.split_once(BEFORE).ok_or_else(wrong)?;
    let (before, after) = rest.split_once(AFTER).ok_or_else(wrong)?;
    let path = path.trim();
    if path.is_empty() || path.contains('\n') {
        return Err(wrong());
    }
    let inner = |text: &str| text.strip_prefix('\n').unwrap_or(text).trim_end_matches([' ', '\n']).to_owned();
    let parts = [("path", path.to_owned()), ("old_lines", inner(before)), ("new_lines", inner(after))];
    Ok(parts.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(text: &str) -> (String, Value) {
        let (name, arguments) = read(text).1.unwrap();
        (name, arguments.into())
    }

    #[test]
    fn a_turn_ends_after_its_content_tag_and_the_closing_tag_may_be_missing() {
        let text =
            "Thought: look\nAction: execute\n<content>\n!ls\nx = 1\n</content>\nObservation: a.py\nThought: more";
        assert_eq!(called(text), ("execute".to_owned(), json!({"code": "!ls\nx = 1"})));
        assert!(read(text).0.ends_with("x = 1\n</content>"));
        // A reply that is cut before its closing tag is valid.
        let (said, call) = read("Thought: done\nAction: submit\n<content>\n{\"a\": 1}\n");
        assert_eq!(call.unwrap().1["answer"], "{\"a\": 1}");
        assert!(said.ends_with("{\"a\": 1}\n</content>"));
        assert_eq!(called("Thought: wait\nAction: continue_wait").0, "continue_wait");
    }

    #[test]
    fn an_edit_keeps_its_indentation() {
        let text = "Action: edit\n<content>\na/b.py\n<<<BEFORE_EDIT>>>\n    x = 1\n<<<AFTER_EDIT>>>\n    x = 2\n    y = 3\n\
                    </content>";
        let expected = json!({"path": "a/b.py", "old_lines": "    x = 1", "new_lines": "    x = 2\n    y = 3"});
        assert_eq!(called(text), ("edit".to_owned(), expected));
        let new = called("Action: edit\n<content>\nnew.py\n<<<BEFORE_EDIT>>>\n<<<AFTER_EDIT>>>\nx = 1\n</content>").1;
        assert_eq!((&new["old_lines"], &new["new_lines"]), (&json!(""), &json!("x = 1")));
    }

    #[test]
    fn an_invalid_turn_is_explained() {
        let wrong = |text: &str| read(text).1.unwrap_err();
        assert!(wrong("I think.").starts_with("the reply has no line `Action:`"));
        assert!(wrong("").starts_with("the reply has no line `Action:`"));
        assert!(wrong("Action: execute\nls").starts_with("the action `execute` has no `<content>`"));
        assert!(wrong("Action: edit\n<content>\na.py\nx\n</content>").starts_with("`edit` takes a path"));
    }
}
