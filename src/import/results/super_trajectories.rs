//! SUPER's stored attempts: means of the stored values. If a row contains the data from which a value follows, the
//! value is also computed again and compared with the stored one:
//!
//! - `submitted`: from the last action and the submission.
//! - Accuracy (`output_match`): from gold and the submission. Without a submission it is 0, so gold need not be known.
//! - Script (`entrypoint`), which is whether the requested script was executed: from the steps that name the script. Only
//!   for tasks of SUPER's set `masked` whose query names exactly one script. By the published rule, the script was
//!   executed if one of these steps took at least 10 s. The value is not computed if the longest took exactly 10 s: stored
//!   seconds are whole numbers, so the true time may be shorter.
//! - Landmarks (`checkpoints`): never, because landmarks are searched in outputs, which the rows do not contain.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::mean;
use super::rows::{ImportedRow, for_each, short};
use crate::error::Result;
use crate::score::read_python_json;
use crate::score::super_bench::{SHORTEST_RUN, is_submitted, shipped_accuracy};

/// Maximum difference of values that count as equal. Equal values may differ slightly, because sums of floats depend on
/// the order of the summands.
const SAME: f64 = 1e-9;

/// Means of the stored values. Each mean is over the attempts that have this value.
#[derive(Debug, Default, Serialize)]
pub struct RescoredMeans {
    /// Number of attempts.
    pub attempts: usize,
    /// Share of attempts that submitted something.
    pub submitted: Option<f64>,
    /// Mean accuracy.
    pub accuracy: Option<f64>,
    /// Mean share of a task's landmarks that the attempt reached.
    pub landmarks: Option<f64>,
    /// Share of attempts that executed the script.
    pub script: Option<f64>,
    /// Tasks with a stored value that differs from the one computed by the published rule; each task once, in order.
    pub differs: Vec<String>,
    /// Number of stored values that were computed again.
    #[serde(skip)]
    pub checked: RecomputedValues,
    /// Descriptions of the differing values.
    #[serde(skip)]
    pub differences: Vec<String>,
}

/// For each measure, the number of stored values that were computed again and compared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RecomputedValues {
    /// Number of stored values of `submitted` that were computed again.
    pub submitted: usize,
    /// Number of accuracies that were computed from gold and a submission.
    pub accuracy: usize,
    /// Number of accuracies that were computed without gold: they are 0, because the attempt submitted nothing.
    pub nothing: usize,
    /// Number of stored values of `script` that were computed again.
    pub script: usize,
}

/// Reads files of stored attempts and scores the attempts again.
///
/// # Errors
/// An error with file and line for anything that is not an attempt.
pub fn rescore<P: AsRef<Path>>(files: &[P]) -> Result<RescoredMeans> {
    let mut rescored = RescoredMeans::default();
    let mut values: [Vec<f64>; 4] = Default::default();
    for file in files {
        for_each(file.as_ref(), |row| add(&row, &mut rescored, &mut values))?;
    }
    [rescored.submitted, rescored.accuracy, rescored.landmarks, rescored.script] = values.map(|of| mean(&of));
    Ok(rescored)
}

/// Adds one attempt to the means.
fn add(row: &ImportedRow, rescored: &mut RescoredMeans, values: &mut [Vec<f64>; 4]) -> Result<()> {
    let task = row.text("task_id")?;
    rescored.attempts += 1;
    let stored = [
        stored(row, &["submitted"])?,
        stored(row, &["output_match", "accuracy"])?,
        stored(row, &["checkpoints", "landmarks"])?,
        stored(row, &["entrypoint", "script"])?,
    ];
    for (values, stored) in values.iter_mut().zip(stored) {
        values.extend(stored);
    }
    let has_submitted = submitted(row);
    let accuracy = accuracy(row, has_submitted)?;
    let computed = [has_submitted.map(|it| f64::from(u8::from(it))), accuracy, None, script(row)];
    let checked = &mut rescored.checked;
    let accuracies = if has_submitted == Some(false) { &mut checked.nothing } else { &mut checked.accuracy };
    let counts = [&mut checked.submitted, accuracies, &mut 0, &mut checked.script];
    let names = ["submitted", "accuracy", "landmarks", "script"];
    for (((stored, computed), count), name) in stored.into_iter().zip(computed).zip(counts).zip(names) {
        let (Some(stored), Some(computed)) = (stored, computed) else { continue };
        *count += 1;
        if (stored - computed).abs() < SAME {
            continue;
        }
        rescored.differences.push(format!("{task}: {name} is stored as {stored} and computed as {computed}"));
        if !rescored.differs.iter().any(|known| known == task) {
            rescored.differs.push(task.to_owned());
        }
    }
    Ok(())
}

/// Returns the stored value under the first of these names that the row has. NaN counts as absent, like null.
fn stored(row: &ImportedRow, names: &[&str]) -> Result<Option<f64>> {
    let Some(stored) = row.get("stored") else { return Ok(None) };
    let Value::Object(stored) = stored else {
        return Err(row.wrong(format!("`stored` is not an object: `{}`", short(stored))));
    };
    let Some((name, value)) = names.iter().find_map(|name| Some((name, stored.get(*name)?))) else { return Ok(None) };
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(f64::from(u8::from(*flag)))),
        Value::Number(number) => Ok(number.as_f64()),
        Value::String(text) if text == "NaN" => Ok(None),
        other => Err(row.wrong(format!("`stored.{name}` is not a number: `{}`", short(other)))),
    }
}

/// Whether an attempt's last action submitted something; `None` if its row has no field `submission`.
fn submitted(row: &ImportedRow) -> Option<bool> {
    let action = row.get("last_action_type").or_else(|| row.get("end")).and_then(Value::as_str);
    if !row.has("submission") {
        return None;
    }
    Some(action.is_none_or(|action| action == "submit") && is_submitted(row.get("submission")))
}

/// Computes the accuracy by the published rule; returns `None` if gold is unknown or the rule raises an exception.
fn accuracy(row: &ImportedRow, has_submitted: Option<bool>) -> Result<Option<f64>> {
    let Some(has_submitted) = has_submitted else { return Ok(None) };
    if !has_submitted {
        return Ok(Some(0.0));
    }
    let gold = match (row.get("pseudo_gold").or_else(|| row.get("gold")), row.get("answer")) {
        (Some(gold), _) => gold.clone(),
        // In the published tasks, gold is JSON in a string.
        (None, Some(Value::String(text))) => {
            read_python_json(text).map_err(|error| row.wrong(format!("`answer` is not JSON: {error}")))?
        }
        (None, Some(answer)) => answer.clone(),
        (None, None) => return Ok(None),
    };
    Ok(if is_submitted(Some(&gold)) { shipped_accuracy(&gold, row.get("submission")).ok() } else { None })
}

/// Whether the script of a masked task was executed, as 0 or 1; `None` if the stored steps do not decide this.
fn script(row: &ImportedRow) -> Option<f64> {
    let scripts = row.get("query_scripts")?.as_array()?;
    let [Value::String(script)] = scripts.as_slice() else { return None };
    if row.get("set").and_then(Value::as_str) != Some("masked") {
        return None;
    }
    let names = |step: &Value, list: &str| {
        step.get(list)
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|name| name.as_str() == Some(script)))
    };
    let is = |step: &Value, flag: &str| step.get(flag).and_then(Value::as_bool) == Some(true);
    let mut is_certain = true;
    for step in row.get("script_steps")?.as_array()? {
        if is(step, "traceback") || names(step, "arg_error") {
            continue;
        }
        let seconds = step.get("seconds").and_then(Value::as_f64);
        match (names(step, "scripts"), seconds) {
            (true, Some(seconds)) if seconds > SHORTEST_RUN => return Some(1.0),
            (true, Some(seconds)) => is_certain &= seconds < SHORTEST_RUN,
            (true, None) => is_certain = false,
            // A step that ran `python -m` may have run the script, but the stored steps do not contain the module's
            // name.
            (false, _) => is_certain &= !is(step, "python_m"),
        }
    }
    is_certain.then_some(0.0)
}
