//! Reads an experiment's result from its command's output, by the manifest's rule.

use regex::Regex;
use serde_json::{Map, Value};

use super::json::{self, excerpt};
use super::strict::unquoted;
use crate::suite::ResultRule;

/// Returns the result of an experiment's run. `file` contains the bytes of a [`ResultRule::JsonFile`]'s file; `None` if
/// the command has not written it. A single odd value is not an error: `NaN` and the like become strings, and the value
/// of a regular expression without a match is null. A result with a null is not accepted as gold.
///
/// # Errors
/// Returns a phrase for an error message: why there is no result at all.
pub fn read_result(rule: &ResultRule, stdout: &[u8], file: Option<&[u8]>) -> Result<Value, String> {
    match rule {
        ResultRule::JsonFile(path) => {
            let bytes = file.ok_or_else(|| format!("`{path}` was not written"))?;
            let text = String::from_utf8_lossy(bytes);
            json::read(text.trim_start_matches('\u{feff}'))
                .map_err(|error| format!("`{path}` is not JSON: {}", excerpt(&error)))
        }
        ResultRule::JsonLine(_) => last_json_line(stdout)
            .ok_or_else(|| format!("no line of stdout is a JSON object; it ends with `{}`", tail(stdout))),
        ResultRule::Regex(expressions) => {
            let text = String::from_utf8_lossy(stdout);
            let mut result = Map::new();
            for (name, expression) in expressions {
                let regex =
                    Regex::new(expression).map_err(|error| format!("expression `{name}` is broken: {error}"))?;
                if regex.captures_len() < 2 {
                    return Err(format!("expression of `{name}` has no group to read the value from"));
                }
                let group = regex.captures_iter(&text).last().and_then(|captures| captures.get(1));
                result.insert(name.clone(), group.map_or(Value::Null, |group| unquoted(group.as_str().into())));
            }
            if result.values().all(Value::is_null) {
                return Err(format!("no expression matches stdout; it ends with `{}`", tail(stdout)));
            }
            Ok(Value::Object(result))
        }
    }
}

/// Returns the last line that is a JSON object, or else the last object over several lines.
#[must_use]
pub fn last_json_line(stdout: &[u8]) -> Option<Value> {
    stdout
        .rsplit(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| line.starts_with(b"{") && line.ends_with(b"}"))
        .find_map(|line| json::read(&String::from_utf8_lossy(line)).ok())
        .or_else(|| last_json_block(stdout))
}

/// Returns the last JSON object over several lines, as written by `json.dumps(result, indent=2)`: from a line that is
/// `{` to a line that is `}`.
fn last_json_block(stdout: &[u8]) -> Option<Value> {
    let lines: Vec<&[u8]> = stdout.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
    let end = lines.iter().rposition(|line| *line == b"}")?;
    let start = lines[..end].iter().rposition(|line| *line == b"{")?;
    json::read(&String::from_utf8_lossy(&lines[start..=end].join(&b'\n'))).ok()
}

/// Returns the end of a command's output, for messages.
fn tail(stdout: &[u8]) -> String {
    let line = stdout.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    excerpt(&String::from_utf8_lossy(line))
}
