//! CORE-Bench's tasks: the accepted values for each question, derived from the task's gold results.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::rows::short;
use crate::error::{Error, Result};
use crate::stats::{Interval, prediction_interval};
use crate::tolerance::LEVEL;

/// The answers that are accepted as right.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Accepted {
    /// Any number in this interval.
    Within(Interval),
    /// Exactly this value; used if gold is not a number.
    Equal(Value),
}

/// The questions of a task, each with its accepted answer, in the file's order.
pub type Questions = Vec<(String, Accepted)>;

/// Reads a JSON list of tasks. Returns the accepted answers by task and question, in the file's order.
///
/// # Errors
/// An error that names the file if an entry is not a task, or if a question has fewer than two gold results or results
/// of several types.
pub fn accepted(file: &Path) -> Result<Vec<(String, Questions)>> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::unreadable(file, error))?;
    let form = "the file must be a JSON list of tasks, each with `capsule_id` and `results`";
    let tasks: Vec<Value> = serde_json::from_str(&text).map_err(|error| {
        Error::suite(format!("not a JSON list of tasks: {error}")).at(file, Some(error.line())).hint(form)
    })?;
    if tasks.is_empty() {
        return Err(Error::suite("the file contains no task").at(file, None).hint(form));
    }
    tasks.iter().map(|task| of_task(task).map_err(|wrong| Error::suite(wrong).at(file, None))).collect()
}

fn of_task(task: &Value) -> Result<(String, Questions), String> {
    let id = task.get("capsule_id").and_then(Value::as_str).ok_or("a task without `capsule_id`")?;
    let wrong = |what: String| format!("task `{id}`: {what}");
    let results =
        task.get("results").and_then(Value::as_array).ok_or_else(|| wrong("`results` is not a list".into()))?;
    let results: Option<Vec<&Map<String, Value>>> = results.iter().map(Value::as_object).collect();
    let results = results.ok_or_else(|| wrong("`results` contains something other than an object".into()))?;
    let first = results.first().ok_or_else(|| wrong("`results` is empty".into()))?;
    let question = |(question, gold): (&String, &Value)| {
        let missing = || wrong(format!("a gold result has no answer to `{}`", short(&question.as_str().into())));
        let golds: Option<Vec<&Value>> = results.iter().map(|result| result.get(question)).collect();
        let golds = golds.ok_or_else(missing)?;
        let numbers: Option<Vec<f64>> = golds.iter().map(|gold| gold.as_f64()).collect();
        let accepted = match numbers {
            Some(numbers) => Accepted::Within(
                prediction_interval(&numbers, LEVEL)
                    .ok_or_else(|| wrong("an interval needs two gold results".into()))?,
            ),
            None if golds.iter().all(|other| *other == gold) => Accepted::Equal(gold.clone()),
            None => return Err(wrong(format!("the gold results of `{}` differ", short(&question.as_str().into())))),
        };
        Ok((question.clone(), accepted))
    };
    Ok((id.to_owned(), first.iter().map(question).collect::<Result<_, String>>()?))
}
