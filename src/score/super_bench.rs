//! SUPER's measures of an attempt ("SUPER: Evaluating Agents on Setting Up and Executing Tasks from Research
//! Repositories"): the rules as published, faults included, so that stored scores stay comparable.
//!
//! The published rules' faults, all kept in the `shipped_` functions:
//! - the comparison is called with gold and submission swapped, so only the keys and list items that the submission
//!   contains are compared; for the values of an object, but not for the items of a list, the two are swapped again;
//! - a boolean, a null or an empty list or object on both sides raises an exception;
//! - landmarks (regular expressions) are searched in every output, even in one that the agent's work did not cause;
//! - a script counts as executed if its name occurs anywhere, even in a comment, in a command that took at least ten
//!   seconds.

use regex::Regex;
use serde_json::Value;

use super::json::not_finite;

/// By SUPER's published rule, a number is right if it differs from gold by less than this.
pub const EPSILON: f64 = 0.01;

/// By SUPER's published rule, a script counts as executed only if the command that names it took at least this many
/// seconds.
pub const SHORTEST_RUN: f64 = 10.0;

/// A command of an attempt, with its output.
#[derive(Debug, Clone, Copy)]
pub struct ExecutedCommand<'a> {
    /// The command or the notebook cell, as the agent wrote it.
    pub command: &'a str,
    /// The raw output.
    pub output: &'a str,
    /// Wall time of the command.
    pub seconds: f64,
}

/// Whether, by the published rule, something was submitted: an empty text, list or object, 0, false and null do not
/// count.
#[must_use]
pub fn is_submitted(submission: Option<&Value>) -> bool {
    match submission {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
    }
}

/// Returns the accuracy by the published rule, from 0 to 1. The strings `NaN`, `Infinity` and `-Infinity` represent the
/// numbers without a JSON notation, as in the results of [`read_python_json`](super::read_python_json).
///
/// # Errors
/// If the published rule ends in an exception: the values that cannot be compared.
pub fn shipped_accuracy(gold: &Value, submission: Option<&Value>) -> Result<f64, String> {
    // The published code passes gold as `predicted` and the submission as `gold`, so do the same.
    evaluate(gold, submission.filter(|it| is_submitted(Some(it))).unwrap_or(&Value::Null))
}

/// Reproduces the published `evaluate(predicted, gold)`.
fn evaluate(predicted: &Value, gold: &Value) -> Result<f64, String> {
    let score = |sum: f64, of: usize| sum / of as f64;
    if let (Some(predicted), Some(gold)) = (number(predicted), number(gold)) {
        return Ok(f64::from(u8::from((predicted - gold).abs() < EPSILON)));
    }
    match (predicted, gold) {
        _ if number(predicted).is_some() || number(gold).is_some() => Ok(0.0),
        (Value::Array(predicted), Value::Array(gold)) => {
            let values: Result<Vec<f64>, _> = predicted.iter().zip(gold).map(|(p, g)| evaluate(p, g)).collect();
            if gold.is_empty() { Err("an empty list".to_owned()) } else { Ok(score(values?.iter().sum(), gold.len())) }
        }
        (Value::Object(predicted), Value::Object(gold)) => {
            let pairs = gold.iter().map(|(key, value)| evaluate(value, predicted.get(key).unwrap_or(&Value::Null)));
            let values: Result<Vec<f64>, _> = pairs.collect();
            if gold.is_empty() {
                Err("an empty object".to_owned())
            } else {
                Ok(score(values?.iter().sum(), gold.len()))
            }
        }
        (Value::String(predicted), Value::String(gold)) => Ok(f64::from(u8::from(predicted.trim() == gold.trim()))),
        (Value::Bool(_), Value::Bool(_)) => Err("a boolean".to_owned()),
        (Value::Null, Value::Null) => Err("a null".to_owned()),
        _ => Ok(0.0),
    }
}

/// Returns the number that a value represents. Strings such as `NaN` and `Infinity` represent numbers, too, because
/// Python's JSON has them as numbers.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => not_finite(text),
        _ => None,
    }
}

/// Returns, for each landmark, whether the published rule finds it in an output: a landmark is a regular expression,
/// searched in each output with line breaks replaced by blanks. Called with the outputs of the cells that were executed
/// before the agent began, it returns which landmarks are found without the agent's work.
///
/// # Errors
/// A landmark that is not a valid regular expression in Rust, for example because it has look-around or a
/// back-reference.
pub fn landmarks_hit(landmarks: &[String], outputs: &[&str]) -> Result<Vec<bool>, String> {
    let flat: Vec<String> = outputs.iter().map(|output| output.replace('\n', " ")).collect();
    let hit = |landmark: &String| {
        let pattern = Regex::new(landmark).map_err(|error| format!("`{landmark}` is not a valid pattern: {error}"))?;
        Ok(flat.iter().any(|output| pattern.is_match(output)))
    };
    landmarks.iter().map(hit).collect()
}

/// Whether the published rule counts the script as executed. `None` if the script's name does not have the ending of a
/// Python or Bash script. Without any commands, the published rule does not look at the ending, and the result is
/// `Some(false)`.
#[must_use]
pub fn shipped_script(script: &str, cells: &[ExecutedCommand<'_>]) -> Option<bool> {
    if !cells.is_empty() && ![".py", ".sh", ".bash"].iter().any(|ending| script.ends_with(ending)) {
        return None;
    }
    let name = basename(script);
    let module = name.replace(".py", "");
    Some(cells.iter().any(|cell| {
        let named =
            cell.command.contains(name) || (cell.command.contains(&module) && cell.command.contains("python -m"));
        named && ran_well(name, cell)
    }))
}

fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ran_well(name: &str, cell: &ExecutedCommand<'_>) -> bool {
    !cell.output.contains("Traceback")
        && !cell.output.contains(&format!("{name}: error"))
        && cell.seconds >= SHORTEST_RUN
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "shares of small counts are exact")]
mod tests {
    use super::*;
    use serde_json::json;
    use std::borrow::Borrow;

    fn shipped(gold: impl Borrow<Value>, submission: impl Borrow<Value>) -> f64 {
        shipped_accuracy(gold.borrow(), Some(submission.borrow())).unwrap()
    }

    #[test]
    fn published_accuracy_is_computed_over_submitted_values() {
        // Expected values: the results of the published code on the same pairs.
        assert_eq!(shipped(json!({"a": 1, "b": 2}), json!({"a": 1})), 1.0);
        assert_eq!(shipped(json!({"a": 1}), json!({"a": 1, "b": 2})), 0.5);
        assert_eq!(shipped(json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1}})), 0.5);
        assert_eq!(shipped(json!([1, 2]), json!([1])), 1.0);
        assert_eq!(shipped(json!([1]), json!([1, 2])), 0.5);
        assert_eq!(shipped(json!({"a": [1]}), json!({"a": [1, 2]})), 1.0);
        assert_eq!(shipped(json!({"a": [1, 2]}), json!({"a": [1]})), 0.5);
        assert_eq!(shipped(json!({"a": 1}), json!({"a": 1.0099})), 1.0);
        assert_eq!(shipped(json!({"a": 1}), json!({"a": "1"})), 0.0);
        assert_eq!(shipped(json!(" x "), json!("x")), 1.0);
        assert_eq!(shipped(json!({"a": 1}), json!("{\"a\": 1}")), 0.0);
        assert_eq!(shipped(json!({"a": "NaN"}), json!({"a": "NaN"})), 0.0);
        assert_eq!(shipped(json!({"a": "Infinity"}), json!({"a": "Infinity"})), 0.0);
        assert_eq!(shipped(json!({"a": true}), json!({"a": 1})), 0.0);
        assert_eq!(shipped_accuracy(&json!({"a": 1}), None), Ok(0.0));
        assert_eq!(shipped_accuracy(&json!({"a": 1}), Some(&json!({}))), Ok(0.0));
        for (gold, submission) in [
            (json!({"a": true}), json!({"a": true})),
            (json!({"a": 1}), json!({"b": null})),
            (json!({"a": []}), json!({"a": []})),
            (json!({"a": {}}), json!({"a": {"x": 1}})),
        ] {
            assert!(shipped_accuracy(&gold, Some(&submission)).is_err(), "{gold} {submission}");
        }
    }

    #[test]
    fn an_empty_answer_does_not_count_as_submitted() {
        for nothing in [json!(null), json!({}), json!([]), json!(""), json!(0), json!(0.0), json!(false)] {
            assert!(!is_submitted(Some(&nothing)), "{nothing}");
        }
        for something in [json!({"a": null}), json!([0]), json!(" "), json!(0.1), json!(true)] {
            assert!(is_submitted(Some(&something)), "{something}");
        }
        assert!(!is_submitted(None));
    }

    #[test]
    fn landmark_patterns_are_searched_in_each_output_after_line_breaks_become_spaces() {
        let landmarks = ["loss: [0-9.]+ done".to_owned(), "^epoch 3".to_owned(), "a.*b".to_owned()];
        let hit = landmarks_hit(&landmarks, &["loss: 0.5\ndone", "x\nepoch 3", "a", "b"]).unwrap();
        assert_eq!(hit, [true, false, false]);
        assert!(landmarks_hit(&["(".to_owned()], &[]).is_err());
    }

    #[test]
    fn a_comment_and_a_sleep_fool_the_published_script_rule() {
        let cell = |command: &'static str| [ExecutedCommand { command, output: "done", seconds: 12.0 }];
        for (command, shipped) in [
            ("!python src/train.py --epochs 1", true),
            ("%%bash\ncd src && CUDA_VISIBLE_DEVICES= python3 -u train.py", true),
            ("python -m src.train", true),
            ("!python -m pdb train.py", true),
            ("!./train.py", true),
            ("# train.py\n!sleep 10", true),
            ("!cat train.py; sleep 10", true),
            ("!python train.py; sleep 10", true),
            ("!python pretrain.py", true),
            ("!python eval.py", false),
        ] {
            assert_eq!(shipped_script("src/train.py", &cell(command)), Some(shipped), "{command}");
        }
        let failed = [
            ExecutedCommand { command: "!python train.py", output: "Traceback", seconds: 20.0 },
            ExecutedCommand { command: "!python train.py", output: "train.py: error: no such option", seconds: 20.0 },
            ExecutedCommand { command: "!python train.py", output: "", seconds: 9.9 },
        ];
        assert_eq!(shipped_script("train.py", &failed), Some(false));
        assert_eq!(shipped_script("train.ipynb", &failed), None);
        assert_eq!(shipped_script("train.ipynb", &[]), Some(false));
    }
}
