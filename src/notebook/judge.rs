//! Verdicts on a sample: the published measures, from the attempt's cells, and the harness's own measures, from the
//! verification run.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::changes::CHANGES;
use super::loaded::LoadedTask;
use super::trace::{self, TRACE};
use crate::error::Result;
use crate::kernel::{CellAuthor, CellRecord, CellState};
use crate::run::family::ScoringInput;
use crate::score::super_bench::{ExecutedCommand, landmarks_hit, shipped_accuracy, shipped_script};
use crate::score::{ExperimentVerdict, Rule, ValueVerdict, Verdict, parse_answer};
use crate::tolerance;

/// Id of the check in which the harness itself runs the entry script, the command that gives the answer.
pub const ENTRY: &str = "entry";
/// Name of the check that the repo's program (the entry script and the code that it calls) is the original one, apart
/// from permitted changes, and really ran.
pub const PROGRAM: &str = "program";
/// Name of the check that every value of the answer is right.
pub(super) const ANSWER: &str = "answer";
/// Id of the check that runs the agent's cells again on the original repo.
pub(super) const REPLAY: &str = "replay";

/// Id of the result that lists the packages and files of packages that verification could not restore.
pub(super) const PACKAGES_CHECK: &str = "packages";

/// Whether the harness's own run of the entry script gave values. The other results are those of checks.
pub(super) fn gave_results(results: &Map<String, Value>) -> bool {
    results.get(ENTRY).is_some_and(|outcome| outcome.get("result").is_some())
}

/// Returns the id of the check of a landmark, which is a sign of progress in the task.
pub(super) fn landmark_id(id: &str) -> String {
    format!("landmark:{id}")
}

/// Applies SUPER's published rules to the agent's cells and, separately, to the prefix, that is, the cells executed
/// before the agent began. Returns which landmarks' patterns match the cells' outputs, and whether the entry script
/// counts as executed.
pub fn observed(task: &LoadedTask, cells: &[CellRecord]) -> Map<String, Value> {
    let patterns: Vec<String> = task.manifest.landmarks.iter().map(|landmark| landmark.pattern.clone()).collect();
    let of = |by: CellAuthor| cells.iter().filter(move |cell| cell.by == by);
    let hits = |by: CellAuthor| {
        let outputs: Vec<&str> = of(by).map(|cell| cell.output.as_str()).collect();
        landmarks_hit(&patterns, &outputs).unwrap_or_else(|_| vec![false; patterns.len()])
    };
    let script = |by: CellAuthor| {
        let cells: Vec<ExecutedCommand<'_>> = of(by)
            .map(|cell| ExecutedCommand { command: &cell.code, output: &cell.output, seconds: cell.seconds })
            .collect();
        shipped_script(&task.manifest.entry, &cells).unwrap_or(false)
    };
    let (prefix, agent) = (hits(CellAuthor::Prefix), hits(CellAuthor::Agent));
    let landmarks = task.manifest.landmarks.iter().zip(prefix).zip(agent);
    let landmarks: Map<String, Value> = landmarks
        .map(|((landmark, prefix), agent)| (landmark.id.clone(), json!({ "prefix": prefix, "agent": agent })))
        .collect();
    let script = json!({ "prefix": script(CellAuthor::Prefix), "agent": script(CellAuthor::Agent) });
    let mut seen = Map::new();
    seen.insert("cells".to_owned(), of(CellAuthor::Agent).count().into());
    let failed = of(CellAuthor::Agent).enumerate().filter(|(_, cell)| cell.state == CellState::Failed);
    let failed: Vec<usize> = failed.map(|(number, _)| number).collect();
    if !failed.is_empty() {
        seen.insert("failed".to_owned(), json!(failed));
    }
    seen.insert("landmarks".to_owned(), landmarks.into());
    seen.insert("script".to_owned(), script);
    seen
}

/// Parses the submission.
pub fn submission(answer: Option<&str>) -> Option<Value> {
    parse_answer(answer?).ok().map(Value::Object)
}

/// Returns the verdict with the published measures. Measures with the suffix `_floor` have the values that would result
/// if the agent had executed no cell. The verdict passes if every value of the submission is right within the task's
/// tolerance or, with [`Rule::Reference`], if the published accuracy is 1.
///
/// # Errors
/// Returns the errors of [`LoadedTask::gold`].
pub fn reported(task: &LoadedTask, rule: Rule, answer: Option<&str>, seen: &Map<String, Value>) -> Result<Verdict> {
    let (gold, submitted) = (task.gold()?, submission(answer));
    let experiment = compared(gold, submitted.as_ref(), OwnRun::NotAsked, task.manifest.answer.relative);
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
    Ok(Verdict {
        pass: if rule == Rule::Reference { is_all(accuracy) } else { experiment.pass },
        score: Some(accuracy),
        rated: Some(ANSWER.to_owned()),
        measures,
        reason: answer.is_none().then(|| "no answer".to_owned()),
        experiments: vec![experiment],
        ..Verdict::default()
    })
}

/// Returns the verdict with the harness's own measures. A value is right if it is right both in the submission and in
/// the result that the harness gets when it runs the entry script itself. The script counts as executed if this result
/// matches the submission, right or wrong. A landmark is reached if its check succeeds. The measure `replays` is 1 if
/// every value is right and the agent's cells that succeeded also succeed when they are run again on the original repo.
///
/// The verdict passes if every value is right, the check [`PROGRAM`] passes, and the agent has reached every landmark
/// of the steps of the task that the sample leaves to it. With [`Rule::Reference`], it passes if the published accuracy
/// is 1.
///
/// # Errors
/// Returns the errors of [`LoadedTask::gold`].
pub fn verified(task: &LoadedTask, rule: Rule, withheld: &[usize], findings: &ScoringInput<'_>) -> Result<Verdict> {
    let ScoringInput { answer, observed: seen, results } = *findings;
    let (gold, submitted) = (task.gold()?, submission(answer));
    let relative = task.manifest.answer.relative;
    let result = |id: &str| results.get(id).and_then(|it| it.get("result"));
    let error = |id: &str| results.get(id).and_then(|it| it.get("error")).and_then(Value::as_str).map(str::to_owned);
    let run = result(ENTRY);
    let mut experiment = compared(gold, submitted.as_ref(), OwnRun::Gave(run), relative);
    experiment.reason = error(ENTRY).or(experiment.reason);
    let right = experiment.values.iter().filter(|value| value.pass).count();
    let accuracy = right as f64 / experiment.values.len().max(1) as f64;
    let executed = matches!((&submitted, run), (Some(submitted), Some(run)) if compared(run, Some(submitted), OwnRun::NotAsked, relative).pass);
    let mut experiments = vec![experiment, program(task, results)];
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
    let landmarks = &experiments[2..];
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
        warnings.push(format!("{} changed files of installed packages were left out of verification", left.len()));
    }
    if let Some(why) = seen.get("env").and_then(|env| env.get("error")).and_then(Value::as_str) {
        warnings.push(format!("the attempt's packages were left out of verification: {why}"));
    }
    let unrestored = result(PACKAGES_CHECK).and_then(|packages| packages.get("left")).and_then(Value::as_array);
    for part in unrestored.into_iter().flatten().filter_map(Value::as_str) {
        warnings
            .push(format!("`{part}`, which the attempt installed or changed, could not be restored in verification"));
    }
    let left = result(CHANGES).and_then(|changes| changes.get("left")).and_then(Value::as_array);
    for path in left.into_iter().flatten().filter_map(Value::as_str) {
        warnings.push(format!("the change of `{path}` was left out of verification: the task does not need it"));
    }
    let pass = if rule == Rule::Reference {
        is_all(shipped_accuracy(gold, submitted.as_ref()).unwrap_or(0.0))
    } else {
        experiments.iter().all(|experiment| experiment.pass)
    };
    let (score, rated) = (Some(accuracy), Some(ANSWER.to_owned()));
    Ok(Verdict { pass, score, rated, measures, experiments, warnings, ..Verdict::default() })
}

/// Returns the reason why the changes of a solution are forbidden; `None` if they are permitted. `changes` is the
/// result with the id [`CHANGES`], which lists the changed parts.
pub fn forbidden(task: &LoadedTask, changes: &Value) -> Option<String> {
    if let Some(error) = changes.get("error").and_then(Value::as_str) {
        return Some(error.to_owned());
    }
    let Some(parts) = changes.pointer("/result/parts").and_then(Value::as_array) else {
        return Some("the changed files were not compared".to_owned());
    };
    let parts = parts.iter().filter_map(Value::as_str).filter(|part| !task.permitted.allows_function(part));
    let reasons: Vec<String> =
        parts.map(|part| format!("`{part}` was changed, which the task does not need")).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Checks that the repo's program is the original one, changed only where a solution may change it, and really ran.
fn program(task: &LoadedTask, results: &Map<String, Value>) -> ExperimentVerdict {
    let mut reasons: Vec<String> = forbidden(task, results.get(CHANGES).unwrap_or(&Value::Null)).into_iter().collect();
    if let Some(record) = &task.record {
        let calls = results.get(TRACE).and_then(|it| it.get("result"));
        reasons.extend(trace::differences(&record.calls, calls, &task.permitted));
    }
    let (pass, reason) = (reasons.is_empty(), (!reasons.is_empty()).then(|| reasons.join("; ")));
    ExperimentVerdict { experiment: PROGRAM.to_owned(), pass, reason, values: Vec::new(), warnings: Vec::new() }
}

/// Whether a share is 1, allowing for rounding in sums.
fn is_all(share: f64) -> bool {
    share >= 1.0 - 1e-9
}

/// Whether the submission alone must be right, or also the result of the harness's own run of the entry script.
#[derive(Clone, Copy)]
enum OwnRun<'a> {
    /// The submission alone must be right.
    NotAsked,
    /// The result of the harness's own run must be right, too. Contains this result, or `None` if the run gave none.
    Gave(Option<&'a Value>),
}

/// Compares the submission with gold, value by value. With [`OwnRun::Gave`], a value passes only if it is also right in
/// the result of the harness's own run of the entry script.
fn compared(gold: &Value, submitted: Option<&Value>, run: OwnRun<'_>, relative: f64) -> ExperimentVerdict {
    let (mut leaves, mut containers) = (Vec::new(), Vec::new());
    flatten(String::new(), gold, &mut leaves, &mut containers);
    let at = |value: Option<&Value>, pointer: &str| value.and_then(|value| value.pointer(pointer)).cloned();
    let named = |pointer: &str| pointer.trim_start_matches('/').replace('/', ".");
    let mut values: Vec<ValueVerdict> = leaves
        .into_iter()
        .map(|(pointer, gold)| {
            let got = at(submitted, &pointer);
            let submitted_right = got.as_ref().is_some_and(|got| is_near(&gold, got, relative));
            let (ran_right, ran) = match run {
                OwnRun::NotAsked => (true, None),
                OwnRun::Gave(run) => {
                    let ran = at(run, &pointer);
                    (ran.as_ref().is_some_and(|ran| is_near(&gold, ran, relative)), ran)
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
            let numbers = gold.as_f64().zip(got.as_ref().and_then(Value::as_f64));
            let error = numbers.map(|(gold, got)| (gold - got).abs() / if gold == 0.0 { 1.0 } else { gold.abs() });
            let path = named(&pointer);
            ValueVerdict { path, error, pass: submitted_right && ran_right, reason, gold, got }
        })
        .collect();
    // The values inside a list or object may all be right although it has another form than gold's.
    for (pointer, gold) in containers {
        let got = at(submitted, &pointer);
        let ran = match run {
            OwnRun::NotAsked => None,
            OwnRun::Gave(run) => at(run, &pointer),
        };
        let reason = match (got.as_ref().and_then(|got| other_form(&gold, got)), ran) {
            (Some(form), _) => Some(format!("submitted {form}")),
            (None, Some(ran)) => other_form(&gold, &ran).map(|form| format!("our run gave {form}")),
            (None, None) => None,
        };
        if reason.is_some() {
            values.push(ValueVerdict { path: named(&pointer), error: None, pass: false, reason, gold, got });
        }
    }
    let reason = submitted.is_none().then(|| "nothing was submitted".to_owned());
    let pass = reason.is_none() && !values.is_empty() && values.iter().all(|value| value.pass);
    ExperimentVerdict { experiment: ANSWER.to_owned(), pass, reason, values, warnings: Vec::new() }
}

/// Lists the values of a result, and its lists and objects that are not empty, by their JSON pointers. An empty list or
/// object counts as a value.
fn flatten(pointer: String, value: &Value, leaves: &mut Vec<(String, Value)>, containers: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            containers.push((pointer.clone(), value.clone()));
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                flatten(format!("{pointer}/{key}"), value, leaves, containers);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            containers.push((pointer.clone(), value.clone()));
            for (place, value) in items.iter().enumerate() {
                flatten(format!("{pointer}/{place}"), value, leaves, containers);
            }
        }
        leaf => leaves.push((pointer, leaf.clone())),
    }
}

/// Describes a value that is not of gold's kind (a list or an object) or, as a list, not as long as gold's. Returns
/// `None` if the forms are the same.
fn other_form(gold: &Value, got: &Value) -> Option<String> {
    match (gold, got) {
        (Value::Array(gold), Value::Array(got)) => {
            (gold.len() != got.len()).then(|| format!("a list of {} instead of {} items", got.len(), gold.len()))
        }
        (Value::Object(_), Value::Object(_)) => None,
        (Value::Array(_), _) => Some("no list".to_owned()),
        _ => Some("no object".to_owned()),
    }
}

/// Whether two values match. A number may differ from gold by the share `relative` unless gold is a whole number; if gold
/// is 0.0, it may differ by the default absolute tolerance of experiments. Texts must be equal after trimming. If gold is
/// an empty object, any object matches. All other values must be equal.
fn is_near(gold: &Value, got: &Value, relative: f64) -> bool {
    match (gold, got) {
        (Value::Number(number), Value::Number(_)) => gold.as_f64().zip(got.as_f64()).is_some_and(|(gold, got)| {
            let most = if !number.is_f64() {
                0.0
            } else if gold == 0.0 {
                tolerance::default_absolute()
            } else {
                relative * gold.abs()
            };
            (gold - got).abs() <= most
        }),
        (Value::String(gold), Value::String(got)) => gold.trim() == got.trim(),
        // Objects may have more keys than gold's.
        (Value::Object(gold), Value::Object(_)) if gold.is_empty() => true,
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
    fn a_solution_that_misses_a_landmark_or_fails_its_replay_gave_results_all_the_same() {
        let error = json!({ "error": "why" });
        let others = [landmark_id("x"), REPLAY.to_owned(), CHANGES.to_owned()].map(|id| (id, error.clone()));
        let results = |entry: Value| others.iter().cloned().chain([(ENTRY.to_owned(), entry)]).collect::<Map<_, _>>();
        assert!(gave_results(&results(json!({ "result": { "a": 1 } }))));
        assert!(!gave_results(&results(error.clone())));
    }

    #[test]
    fn a_value_passes_if_the_agent_submitted_it_and_a_run_by_the_harness_confirms_it() {
        let gold = json!({"a": 0.5, "b": {"c/d": 3, "e": "x"}});
        let near = json!({"a": 0.500_000_000_1, "b": {"c/d": 3.0, "e": " x"}});
        assert!(compared(&gold, Some(&near), OwnRun::Gave(Some(&gold)), 1e-9).pass);
        let other = json!({"a": 0.6, "b": {"c/d": 3, "e": "x"}});
        let half = compared(&gold, Some(&near), OwnRun::Gave(Some(&other)), 1e-9);
        assert_eq!(half.values.iter().filter(|value| value.pass).count(), 2);
        assert_eq!(half.values[0].reason.as_deref(), Some("our run gave 0.6"));
        assert!(!compared(&gold, Some(&near), OwnRun::Gave(None), 1e-9).pass, "our run gave nothing");
        assert!(!compared(&gold, None, OwnRun::NotAsked, 1e-9).pass);
        assert!(half.values[0].error.is_some_and(|error| (error - 2e-10).abs() < 1e-12), "errors are relative");
        assert!(!is_near(&json!(1), &json!("1"), 0.01) && !is_near(&json!(1.0), &json!(1.011), 0.01));
        assert!(!is_near(&json!(1000), &json!(1001), 0.01) && is_near(&json!(0.0), &json!(0), 1e-9));
        assert!(is_near(&json!(0.0), &json!(-2.2e-16), 1e-9) && is_near(&json!(-0.0), &json!(1e-10), 1e-9));
        assert!(!is_near(&json!(0.0), &json!(1e-6), 1e-2) && !is_near(&json!(0), &json!(1e-12), 1e-2));
    }

    #[test]
    fn lists_and_objects_of_another_kind_or_length_fail() {
        let passes = |gold: &Value, got: &Value, ran: &Value| {
            let alone = compared(gold, Some(got), OwnRun::NotAsked, 1e-9).pass;
            (alone, compared(gold, Some(got), OwnRun::Gave(Some(ran)), 1e-9).pass)
        };
        let gold = json!({"a": [1, 2], "b": [], "c": {}});
        assert_eq!(passes(&gold, &gold, &gold), (true, true));
        let more = json!({"a": [1, 2], "b": [], "c": {"x": 1}, "d": 2});
        assert_eq!(passes(&gold, &more, &more), (true, true), "more keys do not matter");
        let others = [
            json!({"a": [1, 2, 3], "b": [], "c": {}}),
            json!({"a": {"0": 1, "1": 2}, "b": [], "c": {}}),
            json!({"a": [1, 2], "b": [0], "c": {}}),
            json!({"a": [1, 2], "b": {}, "c": {}}),
            json!({"a": [1, 2], "b": [], "c": []}),
            json!({"a": [1, 2], "b": []}),
        ];
        for other in &others {
            assert_eq!(passes(&gold, other, &gold), (false, false), "{other}");
            assert_eq!(passes(&gold, &gold, other), (true, false), "{other}");
        }
        let longer = compared(&gold, Some(&others[0]), OwnRun::NotAsked, 1e-9);
        let reasons: Vec<&str> = longer.values.iter().filter_map(|value| value.reason.as_deref()).collect();
        assert_eq!(reasons, ["submitted a list of 3 instead of 2 items"]);
    }
}
