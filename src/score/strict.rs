//! This project's own rule: every value must be within its tolerance of gold.

use serde_json::{Map, Value};

use super::json::{self, excerpt};
use super::{ExperimentVerdict, ValueVerdict};
use crate::tolerance::{NumberComparison, Tolerance};

/// Scores one experiment's result against a single gold result. The experiment passes if every leaf of gold has its
/// counterpart within tolerance.
///
/// Each leaf of `gold` gets exactly one [`ValueVerdict`], in gold's order, whatever `got` looks like. Numbers may be
/// written as strings. Leaves of gold that are not numbers (strings, booleans) must be equal. Extra metrics cause a
/// warning; a list whose length differs from gold's fails the experiment. Gold that [`check_gold`] refuses never
/// passes. If the tolerance contains the results of gold's repeats, each number must be within the 95% prediction
/// interval of these results, CORE-Bench's published rule.
#[must_use]
pub fn score_experiment(id: &str, gold: &Value, got: Option<&Value>, tolerance: &Tolerance) -> ExperimentVerdict {
    let mut walk = ValueComparison { tolerance, values: Vec::new(), warnings: Vec::new(), reason: None };
    let repeats: Vec<&Value> = tolerance.repeats.iter().collect();
    walk.compare(String::new(), gold, &repeats, got.map_or(Counterpart::Missing, Counterpart::Value));
    if got.is_none() {
        walk.reason = Some("no result".into());
    }
    if let Err(wrong) = check_gold(gold) {
        walk.reason = Some(wrong);
    }
    ExperimentVerdict {
        experiment: id.to_owned(),
        pass: walk.reason.is_none() && walk.values.iter().all(|value| value.pass),
        reason: walk.reason,
        values: walk.values,
        warnings: walk.warnings,
    }
}

/// Checks that a result can serve as gold: it contains no empty object or list and no null, each number is finite or
/// written as a [marker](with_markers), and at least one value is not a marker.
///
/// # Errors
/// An error message that names the fault and its path.
pub fn check_gold(gold: &Value) -> Result<(), String> {
    check_gold_at("", gold)?;
    if is_only_markers(gold) { Err("the gold result has no finite value".to_owned()) } else { Ok(()) }
}

/// Replaces each number that is not finite by one of the markers `NaN`, `Infinity` and `-Infinity`. In a result, such a
/// number is a string in the program's spelling, such as `nan` or `-inf`. A marker in gold equals only that number.
#[must_use]
pub fn with_markers(result: Value) -> Value {
    match result {
        Value::String(text) => match number_in(&text).filter(|number| !number.is_finite()) {
            Some(number) if number.is_nan() => "NaN".into(),
            Some(number) => if number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            None => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(with_markers).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, with_markers(value))).collect(),
        other => other,
    }
}

/// Replaces each text that is a finite number by the number. Answers may give numbers as texts, gold may not.
#[must_use]
pub(crate) fn unquoted(result: Value) -> Value {
    match result {
        Value::String(text) => match (text.trim().parse::<i64>(), number_in(&text)) {
            (Ok(whole), _) => whole.into(),
            (Err(_), Some(number)) if number.is_finite() => number.into(),
            _ => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(unquoted).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, unquoted(value))).collect(),
        other => other,
    }
}

/// Returns the number that a marker in gold represents; `None` if the value is not a marker, see [`with_markers`].
fn marked(gold: &Value) -> Option<f64> {
    json::not_finite(gold.as_str()?)
}

/// Whether two numbers are both NaN, or the same infinity.
fn is_same_extreme(one: f64, other: f64) -> bool {
    let same_sign = one.is_sign_negative() == other.is_sign_negative();
    one.is_nan() && other.is_nan() || one.is_infinite() && other.is_infinite() && same_sign
}

fn is_only_markers(gold: &Value) -> bool {
    match gold {
        Value::Array(items) => items.iter().all(is_only_markers),
        Value::Object(map) => map.values().all(is_only_markers),
        leaf => marked(leaf).is_some(),
    }
}

fn check_gold_at(path: &str, gold: &Value) -> Result<(), String> {
    let place = if path.is_empty() { "the gold result".to_owned() } else { format!("the gold value `{path}`") };
    match gold {
        Value::Null => Err(format!("{place} is null")),
        Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) if text.starts_with(json::GIVEN_TWICE) => Err(format!("{place} is {}", excerpt(text))),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Err(format!("{place} is a number in quotes: `{}`", excerpt(text))),
            Ok(_) if marked(gold).is_some() => Ok(()),
            Ok(_) => Err(format!("{place} is not finite: `{}`", excerpt(text))),
            Err(_) => Ok(()),
        },
        Value::Array(items) if items.is_empty() => Err(format!("{place} is empty")),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| check_gold_at(&format!("{path}[{index}]"), item))
        }
        Value::Object(map) if map.is_empty() => Err(format!("{place} is empty")),
        Value::Object(map) => map.iter().try_for_each(|(key, item)| check_gold_at(&join(path, key), item)),
    }
}

/// What a result has at the path of a gold value.
#[derive(Clone, Copy)]
enum Counterpart<'a> {
    /// The value that the result has at this path.
    Value(&'a Value),
    /// The result has no value at this path.
    Missing,
    /// The result cannot have a value at this path: where gold has an object or list that contains the path, the result
    /// has a value of another type. Holds the reason for the verdict.
    WrongShape(&'a str),
}

/// A comparison in progress.
struct ValueComparison<'a> {
    tolerance: &'a Tolerance,
    values: Vec<ValueVerdict>,
    warnings: Vec<String>,
    reason: Option<String>,
}

impl ValueComparison<'_> {
    /// Compares the values at `path`. `repeats` are the values at `path` in gold's repeats.
    fn compare(&mut self, path: String, gold: &Value, repeats: &[&Value], got: Counterpart<'_>) {
        match gold {
            Value::Object(gold) => self.compare_objects(&path, gold, repeats, got),
            Value::Array(gold) => self.compare_lists(&path, gold, repeats, got),
            leaf => self.values.push(match got {
                Counterpart::Value(got) => score_leaf(path, leaf, repeats, got, self.tolerance),
                Counterpart::Missing => failed(path, leaf, None, "missing".into()),
                Counterpart::WrongShape(reason) => failed(path, leaf, None, reason.to_owned()),
            }),
        }
    }

    fn compare_objects(&mut self, path: &str, gold: &Map<String, Value>, repeats: &[&Value], got: Counterpart<'_>) {
        let unwrapped = unwrap_text(got);
        let wrong;
        let (map, otherwise) = match unwrapped.as_ref().map_or(got, Counterpart::Value) {
            Counterpart::Value(Value::Object(map)) => (Some(map), Counterpart::Missing),
            Counterpart::Value(other) => {
                wrong = format!("not an object: `{}`", excerpt(&other.to_string()));
                (None, Counterpart::WrongShape(&wrong))
            }
            other => (None, other),
        };
        for (key, gold) in gold {
            let got = map.and_then(|map| map.get(key)).map_or(otherwise, Counterpart::Value);
            let repeats: Vec<&Value> = repeats.iter().filter_map(|one| one.get(key)).collect();
            self.compare(join(path, key), gold, &repeats, got);
        }
        for key in map.into_iter().flat_map(Map::keys).filter(|key| !gold.contains_key(*key)) {
            self.warnings.push(format!("extra value `{}`", excerpt(&join(path, key))));
        }
    }

    fn compare_lists(&mut self, path: &str, gold: &[Value], repeats: &[&Value], got: Counterpart<'_>) {
        let unwrapped = unwrap_text(got);
        let wrong;
        let (items, otherwise) = match unwrapped.as_ref().map_or(got, Counterpart::Value) {
            Counterpart::Value(Value::Array(items)) => (Some(items), Counterpart::Missing),
            Counterpart::Value(other) => {
                wrong = format!("not a list: `{}`", excerpt(&other.to_string()));
                (None, Counterpart::WrongShape(&wrong))
            }
            other => (None, other),
        };
        if let Some(items) = items.filter(|items| items.len() != gold.len()) {
            let name = if path.is_empty() { "the list".to_owned() } else { format!("`{path}`") };
            let reason = format!("{name} has {} values, gold has {}", items.len(), gold.len());
            self.reason.get_or_insert(reason);
        }
        for (index, gold) in gold.iter().enumerate() {
            let got = items.and_then(|items| items.get(index)).map_or(otherwise, Counterpart::Value);
            let repeats: Vec<&Value> = repeats.iter().filter_map(|one| one.get(index)).collect();
            self.compare(format!("{path}[{index}]"), gold, &repeats, got);
        }
    }
}

/// Parses an object or list inside a JSON string, which some agents send instead of a nested result.
fn unwrap_text(got: Counterpart<'_>) -> Option<Value> {
    match got {
        Counterpart::Value(Value::String(text)) => {
            json::read(text).ok().filter(|value| value.is_object() || value.is_array())
        }
        _ => None,
    }
}

fn score_leaf(path: String, gold: &Value, repeats: &[&Value], got: &Value, tolerance: &Tolerance) -> ValueVerdict {
    let Value::Number(expected) = gold else {
        let pass = match marked(gold) {
            Some(number) => got.as_str().and_then(number_in).is_some_and(|it| is_same_extreme(it, number)),
            None => gold == got,
        };
        let reason = (!pass).then(|| format!("not equal to `{}`", excerpt(&gold.to_string())));
        return ValueVerdict { path, gold: gold.clone(), got: Some(got.clone()), error: None, pass, reason };
    };
    let number = match read_number(got) {
        Ok(number) => number,
        Err(reason) => return failed(path, gold, Some(got.clone()), reason),
    };
    let NumberComparison { error, fault } = tolerance.compare(expected, repeats, number);
    ValueVerdict {
        path,
        gold: gold.clone(),
        got: Some(got.clone()),
        error: Some(error).filter(|error| error.is_finite()),
        pass: fault.is_none(),
        reason: fault,
    }
}

/// Reads a finite number, bare or in a string in plain decimal or scientific notation (`.5`, ` 1e-3 `).
///
/// # Errors
/// An error message that says what the value is instead.
pub(super) fn read_number(value: &Value) -> Result<f64, String> {
    let found = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_in(text),
        _ => None,
    };
    match found {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(format!("not finite: `{}`", excerpt(&plain(value)))),
        None => Err(format!("not a number: `{}`", excerpt(&plain(value)))),
    }
}

/// Parses a text as a number, including `nan` and `inf` in the spellings that programs print.
pub(super) fn number_in(text: &str) -> Option<f64> {
    // Rust's parser of doubles is as strict as needed: it accepts no underscores, no hexadecimal numbers and no percent
    // signs.
    text.trim().parse().ok()
}

/// Formats a value for a message, strings without their quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn failed(path: String, gold: &Value, got: Option<Value>, reason: String) -> ValueVerdict {
    ValueVerdict { path, gold: gold.clone(), got, error: None, pass: false, reason: Some(reason) }
}

/// Appends a key to a path.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
