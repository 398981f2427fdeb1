//! Guesses the rule for reading an experiment's result from the output and files of its command.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::score::read_result;
use crate::suite::{ResultRule, Stdout};

/// Why no rule could be guessed, with a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The reason, as an error fragment.
    pub why: String,
    /// Hint for the user.
    pub hint: String,
}

/// Returns the rule that fits the output of a command: the last line of stdout that is a JSON object with a number in
/// it; without such a line, the only JSON file that contains a number. `files` are the new and changed files with their
/// bytes.
///
/// # Errors
/// Fails if there is neither such a line nor such a file, or if there are several such files.
pub(super) fn guess(id: &str, stdout: &[u8], files: &[(&str, &[u8])]) -> Result<(ResultRule, Value), Unreadable> {
    let line = ResultRule::JsonLine(Stdout::Stdout);
    if let Ok(value) = read_result(&line, stdout, None)
        && values(&value) > 0
    {
        return Ok((line, value));
    }
    let mut found = Vec::new();
    for (path, bytes) in files {
        let rule = ResultRule::JsonFile((*path).to_owned());
        if Path::new(path).extension().is_some_and(|extension| extension == "json")
            && let Ok(value) = read_result(&rule, stdout, Some(bytes))
            && values(&value) > 0
        {
            found.push((rule, value, *path));
        }
    }
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|(_, _, path)| format!("`{path}`")).collect();
        return Err(Unreadable {
            why: format!("it writes several JSON files: {}", names.join(", ")),
            hint: format!("say which one contains the result: `--json-file '{id}={}'`", found[0].2),
        });
    }
    if let Some((rule, value, _)) = found.pop() {
        return Ok((rule, value));
    }
    let wrote = match files {
        [] => "no file".to_owned(),
        files => {
            let names: Vec<&str> = files.iter().take(4).map(|(path, _)| *path).collect();
            format!("{}{}", names.join(", "), if files.len() > 4 { ", ..." } else { "" })
        }
    };
    let like_json = |line: &[u8]| line.trim_ascii().starts_with(b"{") && line.trim_ascii().ends_with(b"}");
    let said = if stdout.trim_ascii().is_empty() {
        "nothing on stdout"
    } else if stdout.split(|&byte| byte == b'\n').any(like_json) {
        "no JSON object with a number on stdout (`NaN` and `Infinity` are not JSON numbers)"
    } else {
        "no JSON object on stdout"
    };
    Err(Unreadable {
        why: format!("it gives no readable result: {said}, no JSON file with a number (it wrote {wrote})"),
        hint: suggestion(id, &String::from_utf8_lossy(stdout)).unwrap_or_else(|| {
            "let it print its numbers as a line of JSON, or write them to a new .json file; an existing file of the \
             repo with unchanged numbers does not count"
                .to_owned()
        }),
    })
}

/// Counts the numbers in a result.
#[must_use]
pub fn values(value: &Value) -> usize {
    match value {
        Value::Number(_) => 1,
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(items) => items.values().map(values).sum(),
        _ => 0,
    }
}

/// Suggests options for reading the numbers in a text. For `loss: 0.25`, the option is
/// `--regex 'table.loss=loss: ([-+.0-9e]+)'`.
fn suggestion(id: &str, stdout: &str) -> Option<String> {
    // A label and a number: separated by a colon or an equals sign, or by a space if the number has a decimal point.
    static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"([A-Za-z][\w-]*(?: [A-Za-z][\w-]*){0,3})(?:( ?[:=] *)[-+]?\d*\.?\d+|( )[-+]?\d*\.\d+)").ok()
    });
    let mut options = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    for found in NAMED.as_ref()?.captures_iter(stdout) {
        let (label, sign) = (found.get(1)?.as_str(), found.get(2).or(found.get(3))?.as_str());
        let key: String = label.to_ascii_lowercase().replace([' ', '-'], "_");
        if !keys.contains(&key) && options.len() < 3 {
            options.push(format!("--regex '{id}.{key}={}{sign}([-+.0-9e]+)'", regex::escape(label)));
            keys.push(key);
        }
    }
    (!options.is_empty())
        .then(|| format!("give an expression for each relevant value, such as `{}`", options.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_line_of_the_output_is_preferred_to_a_file() {
        let (rule, value) = guess("a", b"log {x}\n{\"loss\": 0.5}\nbye\n", &[("out.json", b"{\"loss\": 1}")]).unwrap();
        assert_eq!(rule, ResultRule::JsonLine(Stdout::Stdout));
        assert_eq!(value["loss"], 0.5);
    }

    #[test]
    fn a_new_json_file_with_a_number_is_the_result() {
        let files: [(&str, &[u8]); 3] =
            [("log.txt", b"0.5"), ("args.json", b"{\"name\": \"x\"}"), ("out/r.json", b"{\"loss\": [1, 2]}")];
        assert_eq!(guess("a", b"done\n", &files).unwrap().0, ResultRule::JsonFile("out/r.json".to_owned()));
    }

    #[test]
    fn of_several_result_files_none_is_chosen_and_the_hint_says_how_to_name_one() {
        let files: [(&str, &[u8]); 2] = [("a.json", b"[1]"), ("b.json", b"[2]")];
        let error = guess("exp", b"", &files).unwrap_err();
        assert_eq!(error.why, "it writes several JSON files: `a.json`, `b.json`");
        assert_eq!(error.hint, "say which one contains the result: `--json-file 'exp=a.json'`");
    }

    #[test]
    fn without_json_output_regular_expressions_are_suggested() {
        let stdout = b"epoch 1 loss: 0.75\nepoch 2 loss: 0.5\nTest accuracy = 93.5%\n";
        let error = guess("exp", stdout, &[]).unwrap_err();
        assert!(error.why.contains("no JSON object on stdout"), "{}", error.why);
        let expressions: Vec<(String, Regex)> = Regex::new(r"--regex 'exp\.(\w+)=([^']*)'")
            .unwrap()
            .captures_iter(&error.hint)
            .map(|found| (found[1].to_owned(), Regex::new(&found[2]).unwrap()))
            .collect();
        assert_eq!(expressions.len(), 2, "{}", error.hint);
        let read = |key: &str| {
            let (_, regex) = expressions.iter().find(|(name, _)| name.ends_with(key)).unwrap();
            regex.captures_iter(std::str::from_utf8(stdout).unwrap()).last().unwrap()[1].to_owned()
        };
        assert_eq!((read("loss"), read("accuracy")), ("0.5".to_owned(), "93.5".to_owned()));
    }

    #[test]
    fn nan_in_a_result_is_reported() {
        let error = guess("exp", b"{\"loss\": NaN}\n", &[]).unwrap_err();
        assert!(error.why.contains("`NaN` and `Infinity` are not JSON numbers"), "{}", error.why);
    }

    #[test]
    fn a_command_without_output_has_its_own_message() {
        let error = guess("exp", b" \n", &[]).unwrap_err();
        assert!(error.why.contains("nothing on stdout") && error.hint.contains("a line of JSON"), "{error:?}");
    }

    #[test]
    fn numbers_are_counted_at_every_level_of_a_result() {
        assert_eq!(values(&serde_json::json!({"a": 0.5, "b": {"c": [1, 2], "d": "n"}})), 3);
    }
}
