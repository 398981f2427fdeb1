//! The second run of a program, in which the recorder changes an argument (see [`Shift`]): whether the run is needed,
//! and its verdict.

use serde_json::{Map, Value};

use super::calls::{FunctionCall, equal, is_same};
use super::gold::ShiftOutcome;
use super::manifest::Expect;
use super::observe::{ProgramRecord, Shift, package};
use crate::sandbox::Exit;
use crate::score::{ExperimentVerdict, Tolerance, score_experiment};

/// Id of the check in which the program is run a second time, with an argument changed.
pub(super) const CHANGED_RUN: &str = "changed run";

/// Whether the program must be run a second time with the argument changed: its first run succeeded, and the record
/// contains the argument with the value to change.
pub(super) fn is_needed(shift: &Shift, observed: &ProgramRecord) -> bool {
    let arguments = parsed(shift, observed).chain(passed(shift, observed).map(|call| &call.set));
    let mut values = arguments.filter_map(|arguments| arguments.get(&shift.name));
    observed.exit == Exit::Code(0) && values.any(|value| equal(value, &shift.old))
}

/// Whether the program passed something in place of the argument that verdicts accept, but that the recorder does not
/// change. For example, verdicts accept a generator in place of a list, and `[5]` in place of 5. What the repo's own code
/// passes to the function does not count.
fn is_evaded(shift: &Shift, observed: &ProgramRecord, expect: &Expect) -> bool {
    let leeway = expect.leeway();
    let is_own = |call: &FunctionCall| observed.recorded_calls().is_some_and(|recorded| recorded.is_own(call));
    observed.exit == Exit::Code(0)
        && !leeway.has(&shift.name)
        && parsed(shift, observed)
            .chain(passed(shift, observed).filter(|call| is_own(call)).map(|call| &call.set))
            .filter_map(|arguments| arguments.get(&shift.name))
            .any(|value| is_same(&shift.old, value, &shift.name, leeway))
}

/// Returns the arguments that parsers returned, where the recorder changes them.
fn parsed<'a>(shift: &'a Shift, observed: &'a ProgramRecord) -> impl Iterator<Item = &'a Map<String, Value>> {
    observed.calls.iter().filter(move |call| is_at(&shift.at, &call.file)).map(|call| &call.parsed)
}

/// Returns the recorded calls of the function with the argument to change.
fn passed<'a>(shift: &'a Shift, observed: &'a ProgramRecord) -> impl Iterator<Item = &'a FunctionCall> {
    observed.functions.iter().flatten().filter(move |call| call.function == shift.at)
}

/// Whether the recorder changes arguments that a parser returns to `file`; `at` is [`Shift::at`]. A package may have
/// several commands with the same effect, so the recorder changes the arguments of all its parsers.
fn is_at(at: &str, file: &str) -> bool {
    at == file || !at.contains("::") && package(at).is_some() && package(at) == package(file)
}

/// Scores the run in which the recorder changed an argument of the program: the result must be that of the right
/// program with the same change. Returns `None` if no such run is needed. A run that is needed but has no result, for
/// example because the program ended its sandbox, fails. So does a program that passes the argument in a form that the
/// recorder does not change.
pub(super) fn verdict(gold: &ShiftOutcome, observed: &ProgramRecord, expect: &Expect) -> Option<ExperimentVerdict> {
    let name = &gold.shift.name;
    let got = match &observed.shifted {
        Some(got) => got.clone(),
        None if is_needed(&gold.shift, observed) => Err("the program did not end its second run".to_owned()),
        None if is_evaded(&gold.shift, observed, expect) => Err(format!(
            "the argument `{name}` cannot be changed at run time, because the program does not pass a plain value such \
             as {}",
            gold.shift.old
        )),
        None => return None,
    };
    let verdict = score_outcome("changed outcome", &gold.outcome, got.as_ref().ok(), expect);
    let error = got.err().filter(|error| !error.is_empty());
    let reason = error.or_else(|| verdict.reason.clone()).unwrap_or_else(|| {
        format!(
            "with the argument `{name}` changed at run time, the result differs from the right program's with the same \
             change"
        )
    });
    Some(ExperimentVerdict { reason: (!verdict.pass).then_some(reason), ..verdict })
}

/// Scores a result: numbers with the instruction's tolerance, whole numbers and texts exactly.
pub(super) fn score_outcome(id: &str, gold: &Value, got: Option<&Value>, expect: &Expect) -> ExperimentVerdict {
    let tolerance = Tolerance { relative: expect.relative(), ..Tolerance::default() };
    let mut verdict = score_experiment(id, gold, got, &tolerance);
    for one in verdict.values.iter_mut().filter(|one| one.pass && expect.tolerance.is_none()) {
        let (Some(right), Some(got)) = (one.gold.as_i64(), one.got.as_ref().and_then(Value::as_f64)) else { continue };
        #[allow(clippy::float_cmp, clippy::cast_precision_loss, reason = "whole numbers are equal or they are not")]
        if right as f64 != got {
            one.pass = false;
            one.reason = Some("not the same whole number".to_owned());
            verdict.pass = false;
        }
    }
    verdict
}
