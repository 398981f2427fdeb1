//! Verdicts on a sample: the published measures from what the agent did, ours from what our own run found.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::loaded::LoadedTask;
use crate::kernel::{By, CellRecord};
use crate::score::super_bench::{Cell, landmarks_hit, shipped_accuracy, shipped_script};
use crate::score::{ExperimentVerdict, ValueVerdict, Verdict, parse_answer};

/// The id of our own run of the answer's command.
pub const ENTRY: &str = "entry";
/// The id of the repetition of the agent's cells.
pub const REPLAY: &str = "replay";

/// The id of a landmark's check.
pub fn landmark_id(id: &str) -> String {
    format!("landmark:{id}")
}

/// What is seen of an attempt's cells by the published rules, apart for those of the prefix: which landmarks they hit, and
/// whether the script counts as executed.
pub fn observed(task: &LoadedTask, cells: &[CellRecord]) -> Map<String, Value> {
    let patterns: Vec<String> = task.manifest.landmarks.iter().map(|landmark| landmark.pattern.clone()).collect();
    let of = |by: By| cells.iter().filter(move |cell| cell.by == by);
    let hits = |by: By| {
        let outputs: Vec<&str> = of(by).map(|cell| cell.output.as_str()).collect();
        landmarks_hit(&patterns, &outputs).unwrap_or_else(|_| vec![false; patterns.len()])
    };
    let script = |by: By| {
        let cells: Vec<Cell<'_>> =
            of(by).map(|cell| Cell { command: &cell.code, output: &cell.output, seconds: cell.seconds }).collect();
        shipped_script(&task.manifest.entry, &cells).unwrap_or(false)
    };
    let (prefix, agent) = (hits(By::Prefix), hits(By::Agent));
    let landmarks = task.manifest.landmarks.iter().zip(prefix).zip(agent);
    let landmarks: Map<String, Value> = landmarks
        .map(|((landmark, prefix), agent)| (landmark.id.clone(), json!({ "prefix": prefix, "agent": agent })))
        .collect();
    let script = json!({ "prefix": script(By::Prefix), "agent": script(By::Agent) });
    let mut seen = Map::new();
    seen.insert("cells".to_owned(), of(By::Agent).count().into());
    seen.insert("landmarks".to_owned(), landmarks.into());
    seen.insert("script".to_owned(), script);
    seen
}

/// What was submitted, as it can be read.
pub fn submission(answer: Option<&str>) -> Option<Value> {
    parse_answer(answer?).ok().map(Value::Object)
}

/// The published measures, with what the prefix alone would have got beside them as `_floor`. Passes when every value of the
/// submission is right.
pub fn reported(task: &LoadedTask, gold: &Value, answer: Option<&str>, seen: &Map<String, Value>) -> Verdict {
    let submitted = submission(answer);
    let experiment = compared(gold, submitted.as_ref(), Run::NotAsked, task.manifest.answer.absolute);
    let accuracy = shipped_accuracy(gold, submitted.as_ref()).unwrap_or(0.0);
    let flag = |of: &Value, by: &str| of.get(by).and_then(Value::as_bool).unwrap_or(false);
    let landmarks: Vec<&Value> =
        seen.get("landmarks").and_then(Value::as_object).into_iter().flat_map(Map::values).collect();
    let share = |hit: &dyn Fn(&Value) -> bool| {
        (!landmarks.is_empty()).then(|| landmarks.iter().filter(|it| hit(it)).count() as f64 / landmarks.len() as f64)
    };
    let mut measures =
        BTreeMap::from([("accuracy".to_owned(), accuracy), ("submitted".to_owned(), one(submitted.is_some()))]);
    if let Some(script) = seen.get("script") {
        measures.insert("script".to_owned(), one(flag(script, "agent") || flag(script, "prefix")));
        measures.insert("script_floor".to_owned(), one(flag(script, "prefix")));
    }
    let hit = share(&|it| flag(it, "agent") || flag(it, "prefix"));
    measures.extend(hit.map(|share| ("landmarks".to_owned(), share)));
    measures.extend(share(&|it| flag(it, "prefix")).map(|share| ("landmarks_floor".to_owned(), share)));
    Verdict {
        pass: experiment.pass,
        score: Some(accuracy),
        measures,
        reason: answer.is_none().then(|| "no answer".to_owned()),
        experiments: vec![experiment],
        ..Verdict::default()
    }
}

/// Our measures. A value is right when it is in the submission and in what our own run of the entry gave; the script was
/// executed when our run gives what was submitted, right or wrong; a landmark is reached when its check says so; the work
/// replays when the agent's cells, repeated over the repo as it was, go as they went.
pub fn verified(
    task: &LoadedTask,
    withheld: &[usize],
    gold: &Value,
    answer: Option<&str>,
    seen: &Map<String, Value>,
    results: &Map<String, Value>,
) -> Verdict {
    let submitted = submission(answer);
    let absolute = task.manifest.answer.absolute;
    let result = |id: &str| results.get(id).and_then(|it| it.get("result"));
    let error = |id: &str| results.get(id).and_then(|it| it.get("error")).and_then(Value::as_str).map(str::to_owned);
    let run = result(ENTRY);
    let mut experiment = compared(gold, submitted.as_ref(), Run::Gave(run), absolute);
    experiment.reason = error(ENTRY).or(experiment.reason);
    let right = experiment.values.iter().filter(|value| value.pass).count();
    let accuracy = right as f64 / experiment.values.len().max(1) as f64;
    let executed = matches!((&submitted, run), (Some(submitted), Some(run)) if compared(run, Some(submitted), Run::NotAsked, absolute).pass);
    let mut experiments = vec![experiment];
    for landmark in task.manifest.landmarks_of(withheld) {
        let id = landmark_id(&landmark.id);
        let pass = result(&id) == Some(&Value::Bool(true));
        let reason = if pass { None } else { error(&id).or_else(|| Some("not checked".to_owned())) };
        experiments.push(ExperimentVerdict { experiment: id, pass, reason, values: Vec::new(), warnings: Vec::new() });
    }
    let has_cells = seen.get("cells").and_then(Value::as_u64).unwrap_or(0) > 0;
    let is_right = right > 0 && experiments[0].pass;
    let replays = is_right && (!has_cells || result(REPLAY) == Some(&Value::Bool(true)));
    let mut measures = BTreeMap::from([
        ("accuracy".to_owned(), accuracy),
        ("execution".to_owned(), one(executed)),
        ("replays".to_owned(), one(replays)),
    ]);
    let landmarks = &experiments[1..];
    if !landmarks.is_empty() {
        let reached = landmarks.iter().filter(|landmark| landmark.pass).count();
        measures.insert("landmarks".to_owned(), reached as f64 / landmarks.len() as f64);
    }
    let mut warnings: Vec<String> = error(REPLAY).map(|why| format!("does not replay: {why}")).into_iter().collect();
    let early = |id: &str| seen.get("landmarks")?.get(id)?.get("prefix")?.as_bool();
    for landmark in task.manifest.landmarks_of(withheld).filter(|it| early(&it.id) == Some(true)) {
        let id = &landmark.id;
        warnings.push(format!("landmark `{id}` was hit before the agent began, though its block is withheld"));
    }
    if let Some(left) =
        seen.get("env").and_then(|env| env.get("left")).and_then(Value::as_array).filter(|it| !it.is_empty())
    {
        warnings.push(format!("{} changed files of installed packages were not taken over", left.len()));
    }
    Verdict { pass: is_right, score: Some(accuracy), measures, experiments, warnings, ..Verdict::default() }
}

/// Whether our own run counts.
#[derive(Clone, Copy)]
enum Run<'a> {
    /// It doesn't.
    NotAsked,
    /// It does, and gave this.
    Gave(Option<&'a Value>),
}

/// The submission against gold, value by value. Where our run counts, a value must be in what it gave, too.
fn compared(gold: &Value, submitted: Option<&Value>, run: Run<'_>, absolute: f64) -> ExperimentVerdict {
    let mut leaves = Vec::new();
    flatten(String::new(), gold, &mut leaves);
    let at = |value: Option<&Value>, pointer: &str| value.and_then(|value| value.pointer(pointer)).cloned();
    let values: Vec<ValueVerdict> = leaves
        .into_iter()
        .map(|(pointer, gold)| {
            let got = at(submitted, &pointer);
            let submitted_right = got.as_ref().is_some_and(|got| is_near(&gold, got, absolute));
            let (ran_right, ran) = match run {
                Run::NotAsked => (true, None),
                Run::Gave(run) => {
                    let ran = at(run, &pointer);
                    (ran.as_ref().is_some_and(|ran| is_near(&gold, ran, absolute)), ran)
                }
            };
            let reason = match (&got, submitted_right, ran_right) {
                (None, ..) => Some("missing".to_owned()),
                (Some(_), false, _) => Some("submitted wrongly".to_owned()),
                (Some(_), true, false) => {
                    Some(ran.map_or("our run gave none".to_owned(), |ran| format!("our run gave {ran}")))
                }
                _ => None,
            };
            let error = gold.as_f64().zip(got.as_ref().and_then(Value::as_f64)).map(|(gold, got)| (gold - got).abs());
            let path = pointer.trim_start_matches('/').replace('/', ".");
            ValueVerdict { path, error, pass: submitted_right && ran_right, reason, gold, got }
        })
        .collect();
    let reason = submitted.is_none().then(|| "nothing was submitted".to_owned());
    let pass = reason.is_none() && !values.is_empty() && values.iter().all(|value| value.pass);
    ExperimentVerdict { experiment: "answer".to_owned(), pass, reason, values, warnings: Vec::new() }
}

/// The values of a result by their JSON pointers.
fn flatten(pointer: String, value: &Value, leaves: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                flatten(format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), value, leaves);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                flatten(format!("{pointer}/{place}"), value, leaves);
            }
        }
        leaf => leaves.push((pointer, leaf.clone())),
    }
}

/// Numbers within `absolute`, texts without blanks at their ends, everything else equal.
fn is_near(gold: &Value, got: &Value, absolute: f64) -> bool {
    match (gold, got) {
        (Value::Number(_), Value::Number(_)) => {
            gold.as_f64().zip(got.as_f64()).is_some_and(|(gold, got)| (gold - got).abs() < absolute)
        }
        (Value::String(gold), Value::String(got)) => gold.trim() == got.trim(),
        _ => gold == got,
    }
}

const fn one(flag: bool) -> f64 {
    if flag { 1.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_when_it_was_submitted_and_our_run_gives_it() {
        let gold = json!({"a": 0.5, "b": {"c/d": 3, "e": "x"}});
        let near = json!({"a": 0.505, "b": {"c/d": 3.0, "e": " x"}});
        assert!(compared(&gold, Some(&near), Run::Gave(Some(&gold)), 0.01).pass);
        let other = json!({"a": 0.6, "b": {"c/d": 3, "e": "x"}});
        let half = compared(&gold, Some(&near), Run::Gave(Some(&other)), 0.01);
        assert_eq!(half.values.iter().filter(|value| value.pass).count(), 2);
        assert_eq!(half.values[0].reason.as_deref(), Some("our run gave 0.6"));
        assert!(!compared(&gold, Some(&near), Run::Gave(None), 0.01).pass, "our run gave nothing");
        assert!(!compared(&gold, None, Run::NotAsked, 0.01).pass);
        assert!(!is_near(&json!(1), &json!("1"), 0.01) && !is_near(&json!(1.0), &json!(1.01), 0.01));
    }
}
