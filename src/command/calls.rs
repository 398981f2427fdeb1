//! Recorded calls of functions, and their comparison with the calls of a right program.
//!
//! The right program is the manifest's solution of a task. An agent's program must make each call in which the right
//! program sets an argument to a constant, such as a number or a string in its source. The constants of such a call are
//! compared, and the arguments that the right program leaves at their defaults. Other values, such as arrays and models
//! computed from data, are judged only by the program's outcome.
//!
//! If an agent's program does not make an expected call at all, the calls that this call makes itself are expected
//! instead. So an agent's program may call `A(alpha=1)` where the right program calls `make_model("a", alpha=1)`, which
//! calls `A(alpha=1)`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::score::ValueVerdict;

/// Maximum number of calls in [`ExpectedCall::inner`].
const MOST_INNER: usize = 60;

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The function, as `folder/file.py::Class.method`.
    pub function: String,
    /// Whether the program itself made the call, and not code of the repo that the program calls.
    pub direct: bool,
    /// Arguments to compare. In a right program's call, these are the arguments whose values are constants of the
    /// program; in an attempt's call, all recorded arguments.
    pub set: Map<String, Value>,
    /// Arguments that the right program leaves at their defaults.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub left: Map<String, Value>,
    /// Number by which `parent` of other calls refers to this call. It is unique in the record, but not a line number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Number of the recorded call inside which this call was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<usize>,
    /// Whether the call was made inside another recorded call, and not by the program itself. Recorded only in
    /// attempts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
    /// Digest of the object that the call made or returned, if the object is the same in each run: sha256 of its
    /// contents, hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

impl FunctionCall {
    /// Whether the call makes an object.
    fn is_construction(&self) -> bool {
        [".__init__", ".__new__"].iter().any(|method| self.function.ends_with(method))
    }
}

/// A call that a right program makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    /// The function.
    pub function: String,
    /// Arguments that the program sets to constants, such as numbers and strings in its source.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Arguments left at their defaults.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub left: Map<String, Value>,
    /// Recorded calls that this call makes itself. A call is listed only if a constant of the program is passed to it
    /// or to one of its own inner calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<ExpectedCall>,
    /// Whether this call is made inside another recorded call, as in [`FunctionCall::within`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within: bool,
    /// Digest of the object that the call makes or returns, see [`FunctionCall::object`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// The calls of a program that are compared with expected ones.
#[derive(Debug, Clone, Copy)]
pub struct RecordedCalls<'a> {
    /// The calls.
    pub calls: &'a [FunctionCall],
    /// Digests of the objects that these calls made, received and returned.
    pub objects: &'a BTreeSet<String>,
    /// Digests of the objects that the program's own calls received.
    pub used: &'a BTreeSet<String>,
    /// Whether the program is a script, whose calls are made by the programs that it starts. Then the calls that are
    /// not made inside another recorded call count as the program's own.
    pub is_script: bool,
}

impl RecordedCalls<'_> {
    /// Whether a call counts as the program's own: the program itself made the call or, if the program is a script, one
    /// of the programs that the script starts made it.
    pub(super) fn is_own(&self, call: &FunctionCall) -> bool {
        call.direct || self.is_script && !call.within
    }
}

/// The functions whose calls are recorded in an attempt, each with the names of the arguments to record. `None` stands
/// for all arguments except objects.
pub type WatchedFunctions = BTreeMap<String, Option<BTreeSet<String>>>;

impl ExpectedCall {
    /// Whether every right program has to make this call. This is so if the right program sets an argument to a
    /// constant, and `free` does not permit other values of this argument.
    #[must_use]
    pub fn is_required(&self, free: Leeway<'_>) -> bool {
        self.set.keys().any(|name| name != "self" && !free.has(name))
    }

    /// Returns the arguments to compare, with their values.
    fn arguments(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.set.iter().chain(&self.left)
    }

    /// Returns the arguments to compare as one JSON object.
    fn to_value(&self) -> Value {
        Value::Object(self.arguments().map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Whether a recorded call is of the same function as this expected call, and agrees with it in all arguments to
    /// compare. Free arguments may have any value.
    fn covers(&self, call: &FunctionCall, free: Leeway<'_>) -> bool {
        self.function == call.function && self.arguments().all(|(name, _)| self.agrees(name, call, free))
    }

    /// Whether a recorded call agrees with the expected one in an argument. A recorded object is accepted in place of a
    /// constant that the right program sets (see [`is_same`]), but not in place of a default.
    fn agrees(&self, name: &str, call: &FunctionCall, free: Leeway<'_>) -> bool {
        let Some(got) = call.set.get(name) else { return free.has(name) };
        let is_set = self.set.get(name).is_some_and(|right| is_same(right, got, name, free));
        is_set
            || self
                .left
                .get(name)
                .is_some_and(|right| free.has(name) || is_same(right, got, name, free) && !is_object(got))
    }

    fn add_to(&self, watch: &mut WatchedFunctions) {
        let names = watch.entry(self.function.clone()).or_insert_with(|| Some(BTreeSet::new()));
        if let Some(names) = names {
            names.extend(self.arguments().map(|(name, _)| name.clone()));
        }
        for inner in &self.inner {
            inner.add_to(watch);
        }
    }

    /// Returns the short name of the call, such as `load`.
    fn title(&self) -> String {
        let name = self.function.rsplit("::").next().unwrap_or(&self.function);
        name.trim_end_matches(".__init__").trim_end_matches(".__new__").to_owned()
    }
}

/// Permitted differences from a right program's arguments.
#[derive(Debug, Clone, Copy)]
pub struct Leeway<'a> {
    /// Arguments that may have any value; `options.key` is the entry `key` of the argument `options`.
    pub free: &'a BTreeMap<String, String>,
    /// Arguments that are lists whose order does not matter.
    pub unordered: &'a [String],
}

impl Leeway<'_> {
    /// Whether an argument may have any value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.free.contains_key(name)
    }
}

/// Whether two values are equal within the leeway. An object is accepted in place of a plain value, for example a
/// generator in place of a list.
pub fn is_same(right: &Value, got: &Value, path: &str, free: Leeway<'_>) -> bool {
    if free.has(path) || is_object(got) {
        return free.has(path) || !is_object(right) || right == got;
    }
    match (right, got) {
        // A number is the same as a list that contains only this number.
        (Value::Array(list), Value::Number(_)) if list.len() == 1 => is_same(&list[0], got, path, free),
        (Value::Number(_), Value::Array(list)) if list.len() == 1 => is_same(right, &list[0], path, free),
        (Value::Object(right), Value::Object(got)) => {
            let names: BTreeSet<&String> = right.keys().chain(got.keys()).collect();
            names.into_iter().all(|name| {
                let path = format!("{path}.{name}");
                match (right.get(name), got.get(name)) {
                    (Some(right), Some(got)) => is_same(right, got, &path, free),
                    _ => free.has(&path),
                }
            })
        }
        (Value::Array(right), Value::Array(got)) => {
            let (mut right, mut got): (Vec<&Value>, Vec<&Value>) = (right.iter().collect(), got.iter().collect());
            if free.unordered.iter().any(|name| name == path) {
                right.sort_by_cached_key(ToString::to_string);
                got.sort_by_cached_key(ToString::to_string);
            }
            right.len() == got.len() && right.iter().zip(got).all(|(right, got)| is_same(right, got, path, free))
        }
        _ => equal(right, got),
    }
}

fn is_object(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("object"))
}

/// Whether a recorded value is an object that JSON cannot express, or contains one.
pub fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(map) => is_object(value) || map.values().any(holds_object),
        Value::Array(values) => values.iter().any(holds_object),
        _ => false,
    }
}

/// Extracts the expected calls of a right program from its record.
#[must_use]
pub fn expected(record: &[FunctionCall]) -> Vec<ExpectedCall> {
    let mut found: Vec<ExpectedCall> = Vec::new();
    for call in record.iter().filter(|call| call.direct || call.parent.is_none()) {
        let one = ExpectedCall { object: call.object.clone(), ..build(call, record) };
        match found
            .iter_mut()
            .find(|other| other.function == one.function && other.set == one.set && other.left == one.left)
        {
            Some(_) => {}
            None => found.push(one),
        }
    }
    found
}

fn build(call: &FunctionCall, record: &[FunctionCall]) -> ExpectedCall {
    let parts = record.iter().filter(|other| !other.direct && other.parent.is_some() && other.parent == call.number);
    let parts = parts
        .map(|part| build(part, record))
        .filter(|part| (part.set.keys().any(|name| name != "self")) || !part.inner.is_empty());
    let (function, set, left) = (call.function.clone(), call.set.clone(), call.left.clone());
    let within = call.within || call.parent.is_some();
    ExpectedCall { function, set, left, inner: parts.take(MOST_INNER).collect(), within, object: None }
}

/// Returns the functions and arguments to record for a comparison with these calls.
#[must_use]
pub fn watch(expected: &[ExpectedCall]) -> WatchedFunctions {
    let mut watch = WatchedFunctions::new();
    for one in expected {
        one.add_to(&mut watch);
    }
    watch
}

/// Whether an expected call was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// The program made the expected call, or at least one of the calls that are expected inside of it.
    Made,
    /// The program made the expected call, or one of the calls that are expected inside of it, with other arguments.
    Otherwise,
    /// The program made neither the expected call, nor another call of the same function in its place, nor any of the
    /// calls that are expected inside of it.
    Absent,
}

/// Determines whether an expected call was made. `others` are all expected calls of the right program.
fn state(one: &ExpectedCall, others: &[ExpectedCall], got: RecordedCalls<'_>, free: Leeway<'_>) -> CallState {
    let is_made = one.object.as_ref().is_some_and(|object| got.objects.contains(object));
    if is_made || got.calls.iter().any(|call| one.covers(call, free)) {
        return CallState::Made;
    }
    // Find calls of the same function that the program made in place of the expected call. Skip calls that are
    // themselves expected. If the program should make the expected call itself, also skip calls that were made inside
    // another recorded call.
    let is_instead = |call: &FunctionCall| {
        call.function == one.function
            && (!call.within || one.within)
            && !others.iter().any(|other| other.is_required(free) && other.covers(call, free))
    };
    if got.calls.iter().any(is_instead) {
        return CallState::Otherwise;
    }
    let states: Vec<CallState> = one.inner.iter().map(|inner| state(inner, others, got, free)).collect();
    if states.contains(&CallState::Otherwise) {
        CallState::Otherwise
    } else if states.contains(&CallState::Made) {
        CallState::Made
    } else {
        CallState::Absent
    }
}

/// Comparison of a program's calls with the right program's.
#[derive(Debug, Default)]
pub struct CallComparison {
    /// A verdict on each required call that the program made, with right or with wrong arguments. Also a failed verdict
    /// on each other call that has wrong arguments and is the program's own (see [`RecordedCalls::is_script`]).
    pub values: Vec<ValueVerdict>,
    /// Number of required calls that were made.
    pub made: usize,
    /// Required calls that the program neither made nor replaced by a call of the same function with other arguments.
    pub absent: Vec<ExpectedCall>,
}

impl CallComparison {
    /// Whether all calls that were made have the expected arguments.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.values.iter().all(|value| value.pass)
    }
}

/// Compares a program's calls with the expected ones.
#[must_use]
pub fn compare(expected: &[ExpectedCall], got: RecordedCalls<'_>, free: Leeway<'_>) -> CallComparison {
    let mut comparison = CallComparison::default();
    let calls = got.calls;
    for one in expected.iter().filter(|one| one.is_required(free)) {
        let state = state(one, expected, got, free);
        let gold = one.to_value();
        let closest = calls.iter().filter(|call| call.function == one.function).max_by_key(|call| {
            one.arguments()
                .filter(|(name, right)| call.set.get(*name).is_some_and(|got| is_same(right, got, name, free)))
                .count()
        });
        match state {
            CallState::Absent => comparison.absent.push(one.clone()),
            CallState::Made => {
                comparison.made += 1;
                comparison.values.push(value(&one.title(), gold.clone(), Some(gold), true));
            }
            CallState::Otherwise => {
                let got = closest.map(|call| Value::Object(call.set.clone()));
                comparison.values.push(value(&one.title(), gold, got, false));
            }
        }
    }
    // If one of the program's own calls is of a function that the right program calls, it must agree with one of the
    // right program's calls: a program that tries several settings has not decided on the right one. This also holds if
    // the right program passes no constants to the function: arguments that it leaves at their defaults must have their
    // defaults here, too.
    for call in calls.iter().filter(|call| got.is_own(call)) {
        let rights: Vec<&ExpectedCall> = expected.iter().filter(|one| one.function == call.function).collect();
        let Some(first) = rights.first() else { continue };
        // Skip the creation of an object if no call receives the object as it was created. For example, a program may
        // create a default recipe, change it, and pass only the changed recipe on. The record shows which objects calls
        // receive only if the program itself makes the calls.
        let is_used = !call.direct || call.object.as_ref().is_some_and(|object| got.used.contains(object));
        if call.is_construction() && !is_used && rights.iter().any(|one| one.is_required(free)) {
            continue;
        }
        // A call that creates an object is also right if this object equals the right program's object. In all other
        // calls, the arguments must be right even if they have no effect, such as a seed for data that are never drawn.
        let is_right = |one: &&ExpectedCall| {
            one.covers(call, free) || call.is_construction() && one.object.is_some() && one.object == call.object
        };
        if rights.iter().any(is_right) {
            continue;
        }
        let got = Some(Value::Object(call.set.clone()));
        let is_listed = comparison.values.iter().any(|listed| !listed.pass && listed.got == got);
        if !is_listed {
            comparison.values.push(value(&first.title(), first.to_value(), got, false));
        }
    }
    comparison
}

/// Whether two arguments are equal. Numbers are compared by value, up to rounding in the last digits; as in Python,
/// `True` equals 1.
pub fn equal(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| value.as_bool().map(f64::from).or_else(|| value.as_f64());
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        return (one - other).abs() <= 1e-14 * one.abs().max(other.abs());
    }
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_same = |name: &String, one: &Value| other.get(name).is_some_and(|other| equal(one, other));
            one.len() == other.len() && one.iter().all(|(name, one)| is_same(name, one))
        }
        _ => one == other,
    }
}

/// Builds the verdict on a value, with `reason` unset.
pub fn value(path: &str, gold: Value, got: Option<Value>, pass: bool) -> ValueVerdict {
    ValueVerdict { path: path.to_owned(), gold, got, error: None, pass, reason: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn expects(function: &str, set: Value) -> ExpectedCall {
        ExpectedCall {
            function: function.to_owned(),
            set: arguments(set),
            left: Map::new(),
            inner: Vec::new(),
            within: false,
            object: None,
        }
    }

    fn calls(function: &str, set: Value) -> FunctionCall {
        FunctionCall {
            function: function.to_owned(),
            direct: true,
            set: arguments(set),
            left: Map::new(),
            number: None,
            parent: None,
            within: false,
            object: None,
        }
    }

    fn compared(expected: &[ExpectedCall], calls: &[FunctionCall]) -> CallComparison {
        compared_with(expected, calls, &[], &[])
    }

    fn compared_with(
        expected: &[ExpectedCall],
        calls: &[FunctionCall],
        objects: &[&str],
        used: &[&str],
    ) -> CallComparison {
        let set = |digests: &[&str]| digests.iter().map(|&digest| digest.to_owned()).collect::<BTreeSet<String>>();
        let got = RecordedCalls { calls, objects: &set(objects), used: &set(used), is_script: false };
        compare(expected, got, Leeway { free: &BTreeMap::new(), unordered: &[] })
    }

    #[test]
    fn an_object_with_the_expected_contents_is_accepted_although_its_constructor_got_other_arguments() {
        let right =
            ExpectedCall { object: Some("a1".to_owned()), ..expects("a.py::Recipe.__init__", json!({"epochs": 4})) };
        let recipe = |epochs: u32| calls("a.py::Recipe.__init__", json!({ "epochs": epochs }));
        let expected = [right];
        assert!(compared_with(&expected, &[recipe(1)], &["a1"], &["a1"]).agrees());
        assert!(!compared_with(&expected, &[recipe(1)], &["b2"], &["b2"]).agrees());
    }

    #[test]
    fn a_call_with_a_wrong_argument_fails_the_comparison_even_if_it_returns_the_expected_object() {
        let right = ExpectedCall { object: Some("a1".to_owned()), ..expects("a.py::load", json!({"seed": 2})) };
        let load =
            |seed: u32| FunctionCall { object: Some("a1".to_owned()), ..calls("a.py::load", json!({ "seed": seed })) };
        let expected = [right];
        assert!(compared_with(&expected, &[load(2)], &["a1"], &[]).agrees());
        assert!(!compared_with(&expected, &[load(3)], &["a1"], &[]).agrees());
    }

    #[test]
    fn an_object_made_with_wrong_arguments_fails_the_comparison_only_if_the_program_uses_it() {
        let expected = [expects("a.py::Kernel.__init__", json!({"width": 4}))];
        let kernel = |width: u32| FunctionCall {
            object: Some(format!("of {width}")),
            ..calls("a.py::Kernel.__init__", json!({ "width": width }))
        };
        for (used, agrees) in [(&["of 4"][..], true), (&["of 2", "of 4"], false)] {
            let comparison = compared_with(&expected, &[kernel(2), kernel(4)], &["of 2", "of 4"], used);
            assert!(comparison.agrees() == agrees, "{comparison:?}");
        }
    }

    #[test]
    fn a_wrong_constant_is_an_error_although_another_expected_call_of_the_function_has_no_constants() {
        let expected = [expects("a.py::count", json!({})), expects("a.py::count", json!({"words": ["a", "b"]}))];
        let count = |words: Value| calls("a.py::count", json!({ "words": words }));
        assert!(compared(&expected, &[count(json!(["a", "b"])), count(json!(["x"]))]).agrees());
        assert!(!compared(&expected, &[count(json!(["b"])), count(json!(["x"]))]).agrees());
    }

    #[test]
    fn a_call_within_another_recorded_call_does_not_replace_an_expected_call() {
        let expected = [expects("a.py::rng", json!({"seed": 3})), expects("a.py::load", json!({"name": "x"}))];
        let load = calls("a.py::load", json!({"name": "x"}));
        let inner = FunctionCall { direct: false, within: true, ..calls("a.py::rng", json!({"seed": 8})) };
        let comparison = compared(&expected, &[load.clone(), inner.clone()]);
        assert!(comparison.agrees() && comparison.absent.len() == 1, "{comparison:?}");
        // If the expected call is itself made inside another recorded call, as in a Bash program, an inner call with
        // other arguments is a wrong call.
        let nested = [ExpectedCall { within: true, ..expected[0].clone() }];
        assert!(!compared(&nested, std::slice::from_ref(&inner)).agrees());
        let unseen = FunctionCall { within: false, ..inner };
        assert!(!compared(&expected, &[load, unseen]).agrees());
    }

    #[test]
    fn of_two_expected_calls_one_is_reported_absent_if_only_the_other_is_made() {
        let expected = [3, 4].map(|seed| expects("a.py::rng", json!({ "seed": seed })));
        let comparison = compared(&expected, &[calls("a.py::rng", json!({"seed": 3}))]);
        assert!(comparison.agrees() && comparison.made == 1 && comparison.absent.len() == 1, "{comparison:?}");
    }

    #[test]
    fn an_argument_that_is_a_number_equals_a_list_that_contains_only_this_number() {
        let expected = [expects("a.py::bound", json!({"times": [5000]}))];
        assert!(compared(&expected, &[calls("a.py::bound", json!({"times": 5000}))]).agrees());
        for other in [json!(5001), json!([5000, 5000]), json!([]), json!("5000")] {
            assert!(!compared(&expected, &[calls("a.py::bound", json!({ "times": other }))]).agrees());
        }
    }

    #[test]
    fn a_program_that_makes_a_right_and_a_wrong_call_fails_the_comparison_in_either_order() {
        let expected = [expects("a.py::fit", json!({"alpha": 0.8}))];
        let fit = |alpha: f64| calls("a.py::fit", json!({ "alpha": alpha }));
        assert!(compared(&expected, &[fit(0.8), fit(0.8)]).agrees());
        for alphas in [[0.8, 0.9], [0.9, 0.8]] {
            let comparison = compared(&expected, &alphas.map(fit));
            assert!(!comparison.agrees() && comparison.made == 1, "{comparison:?}");
        }
    }

    #[test]
    fn a_script_that_makes_a_right_and_a_wrong_call_through_other_programs_fails_the_comparison() {
        let expected = [expects("a.py::SVD.__init__", json!({"n_factors": 7}))];
        let made = |factors: u32| FunctionCall {
            direct: false,
            ..calls("a.py::SVD.__init__", json!({ "n_factors": factors }))
        };
        let agrees = |calls: &[FunctionCall]| {
            let none = BTreeSet::new();
            let got = RecordedCalls { calls, objects: &none, used: &none, is_script: true };
            compare(&expected, got, Leeway { free: &BTreeMap::new(), unordered: &[] }).agrees()
        };
        assert!(agrees(&[made(7), made(7)]));
        assert!(!agrees(&[made(8), made(7)]) && !agrees(&[made(7), made(8)]));
        assert!(agrees(&[made(7), FunctionCall { within: true, ..made(8) }]), "the repo's code made the second call");
    }

    #[test]
    fn an_additional_object_that_the_program_never_uses_does_not_fail_the_comparison() {
        let expected = [expects("a.py::Recipe.__init__", json!({"epochs": 4}))];
        let recipe = |epochs: u32| calls("a.py::Recipe.__init__", json!({ "epochs": epochs }));
        assert!(compared(&expected, &[recipe(1), recipe(4)]).agrees());
        assert!(!compared(&expected, &[recipe(1)]).agrees());
    }
}
