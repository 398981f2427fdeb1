//! The published implementation's rule, faults included, so that old results stay comparable.
//!
//! Each value of an experiment has the loss |gold - got| / gold, with its sign; the experiment passes if the mean loss
//! is at most 0.05. The faults that follow from this, all kept here:
//! - the loss is negative where gold is negative, so there any error passes, and errors of different sign cancel;
//! - the mean lets one wrong value hide among many right ones;
//! - a missing key counts as 0.0, and missing items at the end of a list are ignored; extra items at the end of a list,
//!   or a lone empty list, are an exception that fails the whole sample ("parsing error"), as are objects and lists in
//!   place of numbers;
//! - gold 0 divides by zero: loss 1; everything else that is not a number has loss 1 as well, but `true` is 1;
//! - a string is read as JSON or else as a Python integer: "1_000" is 1000, ".5" is not a number;
//! - 5% is compared without regard to rounding;
//! - a sample without experiments passes, and only the exact keys and bare JSON are accepted.
//!
//! The published implementation does not have stochastic experiments. Such experiments are judged by CORE-Bench's
//! published rule: each number, by itself, must be within the 95% prediction interval of gold's repeats.
//!
//! One deviation: if an object is reported where gold is a list, the result is always the exception. The published code
//! raises no exception if gold's list is empty, and may accidentally look up the integers in gold's list as keys of the
//! object.

use serde_json::{Map, Value};

use super::strict::{self, join};
use super::{Expected, ExperimentVerdict, ValueVerdict, Verdict, json};

/// Maximum mean loss that passes.
const THRESHOLD: f64 = 0.05;

/// An exception in the published code. The published code catches it, and the whole sample fails.
struct ParsingError(String);

/// Scores the text of an answer.
pub(super) fn score_answer(experiments: &[Expected], answer: Option<&str>) -> Verdict {
    let names = |text: &str| experiments.iter().any(|expected| text == expected.key);
    let holds = |text: &str| experiments.iter().any(|expected| text.contains(&expected.key));
    let parsed = match answer.map(json::read_as_python) {
        Some(Ok(Value::Object(map))) => Ok(map),
        // If the answer is a list or a string, the published Python code looks for each experiment's key in it, and
        // raises an exception only if it finds the key.
        Some(Ok(Value::Array(items))) if !items.iter().filter_map(Value::as_str).any(names) => Ok(Map::new()),
        Some(Ok(Value::String(text))) if json::not_finite(&text).is_none() && !holds(&text) => Ok(Map::new()),
        Some(Ok(other)) => Err(format!("found `{}`", json::excerpt(&other.to_string()))),
        Some(Err(error)) => Err(error),
        None => Err("no answer".to_owned()),
    };
    match parsed {
        Ok(map) => score_map(experiments, |experiment| map.get(&experiment.key)),
        Err(_) if experiments.is_empty() => score_map(experiments, |_| None),
        Err(why) => parsing_error(experiments, &why),
    }
}

/// Scores the result of each experiment.
pub(super) fn score_map<'a>(experiments: &[Expected], result: impl Fn(&Expected) -> Option<&'a Value>) -> Verdict {
    let mut verdicts = Vec::with_capacity(experiments.len());
    for expected in experiments {
        if expected.varies() {
            let result = result(expected);
            verdicts.push(strict::score_experiment(&expected.id, &expected.gold, result, &expected.tolerance));
            continue;
        }
        match score_experiment(expected, result(expected)) {
            Ok(verdict) => verdicts.push(verdict),
            Err(ParsingError(why)) => return parsing_error(experiments, &format!("`{}`: {why}", expected.key)),
        }
    }
    Verdict { pass: verdicts.iter().all(|verdict| verdict.pass), experiments: verdicts, ..Verdict::default() }
}

fn parsing_error(experiments: &[Expected], why: &str) -> Verdict {
    let failed = |expected: &Expected| ExperimentVerdict {
        experiment: expected.id.clone(),
        pass: false,
        reason: None,
        values: Vec::new(),
        warnings: Vec::new(),
    };
    Verdict {
        pass: false,
        reason: Some(format!("parsing error: {why}")),
        experiments: experiments.iter().map(failed).collect(),
        ..Verdict::default()
    }
}

/// Scores one experiment. Each value's `error` is its signed loss, and its `pass` says whether that loss alone is at
/// most 0.05.
fn score_experiment(expected: &Expected, got: Option<&Value>) -> Result<ExperimentVerdict, ParsingError> {
    let mut values = Vec::new();
    let loss = match got {
        None => 1.0,
        Some(got) => {
            let losses = collect(String::new(), &expected.gold, got, &mut values)?;
            if losses.is_empty() {
                return Err(ParsingError("no values".into()));
            }
            losses.iter().sum::<f64>() / losses.len() as f64
        }
    };
    let pass = loss <= THRESHOLD;
    let reason = if got.is_none() {
        Some("no result".to_owned())
    } else {
        (!pass).then(|| format!("mean loss {loss:.4} is above {THRESHOLD}"))
    };
    Ok(ExperimentVerdict { experiment: expected.id.clone(), pass, reason, values, warnings: Vec::new() })
}

fn collect(path: String, gold: &Value, got: &Value, values: &mut Vec<ValueVerdict>) -> Result<Vec<f64>, ParsingError> {
    let loaded = match got {
        Value::String(text) => match json::read_as_python(text).ok().or_else(|| python_integer(text)) {
            Some(value) => value,
            None => return Ok(vec![push(values, path, gold, got, 1.0)]),
        },
        other => other.clone(),
    };
    let mut losses = Vec::new();
    match (gold, &loaded) {
        (Value::Object(gold), Value::Object(map)) => {
            let zero = Value::from(0.0);
            for (key, gold) in gold {
                losses.extend(collect(join(&path, key), gold, map.get(key).unwrap_or(&zero), values)?);
            }
        }
        (_, Value::Object(_)) => return Err(ParsingError("an object where gold has none".into())),
        (Value::Array(gold), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                let gold = gold.get(index).ok_or_else(|| ParsingError("list index out of range".into()))?;
                losses.extend(collect(format!("{path}[{index}]"), gold, item, values)?);
            }
        }
        (Value::String(gold), Value::Array(items)) => {
            let mut characters = gold.chars();
            for (index, item) in items.iter().enumerate() {
                let gold = characters.next().ok_or_else(|| ParsingError("string index out of range".into()))?;
                losses.extend(collect(format!("{path}[{index}]"), &gold.to_string().into(), item, values)?);
            }
        }
        (_, Value::Array(items)) if items.is_empty() => {}
        (_, Value::Array(_)) => return Err(ParsingError("a list where gold has none".into())),
        (gold, leaf) => {
            let loss = match (python_number(gold), python_number(leaf)) {
                (Some(gold), Some(number)) if gold != 0.0 => (gold - number).abs() / gold,
                _ => 1.0,
            };
            losses.push(push(values, path, gold, got, loss));
        }
    }
    Ok(losses)
}

fn push(values: &mut Vec<ValueVerdict>, path: String, gold: &Value, got: &Value, loss: f64) -> f64 {
    values.push(ValueVerdict {
        path,
        gold: gold.clone(),
        got: Some(got.clone()),
        error: Some(loss).filter(|loss| loss.is_finite()),
        pass: loss <= THRESHOLD,
        reason: None,
    });
    loss
}

/// Returns the number that Python would compute with: booleans are integers, NaN and infinities are numbers.
fn python_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::String(text) => json::not_finite(text),
        _ => None,
    }
}

/// Parses like Python's `int(text)`: a sign, digits, single underscores between digits.
fn python_integer(text: &str) -> Option<Value> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let well_formed = digits.split('_').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if !well_formed {
        return None;
    }
    text.replace('_', "").parse::<f64>().ok().map(Value::from)
}
