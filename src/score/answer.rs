//! Parses an agent's answer tolerantly.
//!
//! Which text counts: the whole answer if it is JSON, which must then be an object; otherwise the last complete,
//! readable and non-empty JSON object in it, in a code fence or not. The last object counts because models think aloud
//! first and conclude last. [`place`] assigns the object's entries to experiments.

use serde_json::{Map, Value};

use super::Expected;
use super::json::{self, excerpt};

/// Returns the JSON object in an agent's answer: bare, in a code fence, or in prose. Takes time linear in the answer's
/// length. Values that JSON does not allow, such as `NaN` or `.5`, become strings, which the scoring rule then
/// interprets.
///
/// # Errors
/// Returns the text of an error message, which says what was found instead.
pub fn parse_answer(raw: &str) -> Result<Map<String, Value>, String> {
    let text = raw.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err("the answer is empty".into());
    }
    match json::read(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("the answer must be a JSON object, found `{}`", excerpt(&other.to_string()))),
        Err(error) => match last_object(text) {
            Ok((_, map)) => Ok(map),
            Err(found) => Err(found.unwrap_or(format!("the answer is not JSON: {error}"))),
        },
    }
}

/// Returns the text of the JSON object that [`parse_answer`] finds in a text that is not JSON as a whole. Used for
/// texts that contain more than an answer, such as the output of a program.
#[must_use]
pub fn find_answer(text: &str) -> Option<&str> {
    last_object(text).ok().map(|(written, _)| written)
}

/// Maximum number of unclosed objects skipped while searching. The limit keeps the search fast, because each unclosed
/// object is read to the end of the text.
const MOST_UNCLOSED: u32 = 16;

/// Returns the last complete, readable JSON object in a text, as written and as parsed, or else the fault of the last
/// text that looked like a JSON object.
fn last_object(text: &str) -> Result<(&str, Map<String, Value>), Option<String>> {
    let bytes = text.as_bytes();
    let mut found: Option<(&str, Map<String, Value>)> = None;
    let mut wrong = None;
    let mut unclosed = 0;
    let mut at = 0;
    while let Some(start) = bytes[at..].iter().position(|&b| b == b'{').map(|offset| at + offset) {
        at = start + 1;
        match bytes[at..].iter().find(|b| !b.is_ascii_whitespace()) {
            Some(b'"' | b'}' | b'0'..=b'9') => {}
            Some(b'\'') => {
                wrong = Some("the answer is not JSON: it looks like a Python dict, write it with `json.dumps`".into());
                continue;
            }
            _ => continue,
        }
        let Some(end) = object_end(bytes, start) else {
            wrong = Some("the answer's JSON is cut off: its last `{` is never closed".into());
            unclosed += 1;
            // An object inside an object that is never closed is not an answer. So continue at the next line that
            // begins with `{`: an object at the start of a line counts as a new object.
            match text[at..].find("\n{").filter(|_| unclosed < MOST_UNCLOSED) {
                Some(line) => at += line + 1,
                None => break,
            }
            continue;
        };
        match json::read(&text[start..end]) {
            Ok(Value::Object(map)) if found.is_none() || !map.is_empty() => found = Some((&text[start..end], map)),
            Ok(_) => {}
            Err(error) => wrong = Some(format!("the answer is not JSON: {error}")),
        }
        at = end;
    }
    found.ok_or(wrong)
}

/// Returns the position after the `}` that closes the `{` at `start`.
fn object_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, start);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at = json::string_end(bytes, at);
                continue;
            }
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the answer's value for each expected experiment, in their order, and the keys that match none.
///
/// An experiment is found, in order of precedence, under its key ("Experiment 3"), its id, the key in another spelling
/// ("experiment 3", "Experiment_3", "experiment3", "3"), or the id in another case. Two differing entries for one
/// experiment are an error, as it is unclear which one was meant.
pub(super) fn place<'a>(
    answer: &'a Map<String, Value>,
    experiments: &[Expected],
) -> (Vec<Result<Option<&'a Value>, String>>, Vec<&'a str>) {
    let mut placed: Vec<Vec<(&str, &Value)>> = vec![Vec::new(); experiments.len()];
    let mut unknown = Vec::new();
    for (key, value) in answer {
        match owner(key, experiments) {
            Some(index) => placed[index].push((key, value)),
            None => unknown.push(key.as_str()),
        }
    }
    let placed = placed
        .into_iter()
        .map(|entries| match entries.as_slice() {
            [] => Ok(None),
            [(first, value), rest @ ..] => match rest.iter().find(|(_, other)| !json::same(other, value)) {
                None => Ok(Some(*value)),
                Some((second, _)) => Err(format!(
                    "reported twice with different results, as `{}` and `{}`",
                    excerpt(first),
                    excerpt(second)
                )),
            },
        })
        .collect();
    (placed, unknown)
}

/// Returns the index of the experiment that a key of an answer refers to.
fn owner(key: &str, experiments: &[Expected]) -> Option<usize> {
    let number = number_of(key);
    let lower = key.trim().to_lowercase();
    experiments
        .iter()
        .position(|experiment| experiment.key == key)
        .or_else(|| experiments.iter().position(|experiment| experiment.id == key))
        .or_else(|| experiments.iter().position(|experiment| number.is_some() && number_of(&experiment.key) == number))
        .or_else(|| experiments.iter().position(|experiment| experiment.id.to_lowercase() == lower))
}

/// Returns the number in "Experiment 3", "experiment_3", "experiment3" or "3".
fn number_of(key: &str) -> Option<u32> {
    let lower = key.trim().to_lowercase();
    let digits = match lower.strip_prefix("experiment") {
        Some(rest) => rest.trim_start_matches([' ', '_', '-', '#', ':']),
        None => &lower,
    };
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}
