//! Runs a package's own tests in the sandbox, several times, and decides which of them can be trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PLAN, RUNNER};
use crate::error::{Error, FailureKind, Result};
use crate::files::hex;
use crate::masked::ready::ReadyPaper;
use crate::run::machine::Machine;
use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, stop_signal};
use crate::score::read_result;
use crate::suite::{ResultRule, Stdout};

/// Time limit of one survey of all tests.
const LIMIT: Duration = Duration::from_mins(15);

/// Largest survey that is read, in bytes.
const LARGEST: u64 = 512 << 20;

/// File into which the runner writes a survey.
const OUTPUT: &str = ".autoexperiment-survey.json";

/// Shell code that starts one process per core to keep all cores busy during one of the surveys. Tests that depend on
/// timing may then give other results.
const LOAD: &str = "for core in $(seq \"$(nproc)\"); do python -c 'import time\nend = time.time() + 900\nwhile time.time() < end: pass' & done; ";

/// Difference up to which numbers in two runs count as equal. The difference is relative or, for numbers below 1,
/// absolute: a small number may consist of nothing but rounding errors. The limit is so low that the time in seconds
/// since 1970 counts as different even if one run directly follows the other, so tests with such values are recognised.
/// Verification has larger tolerances.
const CLOSE: f64 = 1e-10;

/// A test in a survey.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct SurveyedTest {
    /// `passed`, `failed`, `error`, `skipped`, `xfailed`, `xpassed` or `slow`.
    pub(super) outcome: String,
    /// Duration in seconds.
    #[serde(default)]
    pub(super) seconds: f64,
    /// Reason for the outcome, if there is one.
    #[serde(default)]
    pub(super) reason: String,
    /// The test's file.
    #[serde(default)]
    pub(super) file: String,
    /// Digest of the values that the package returned to the test.
    #[serde(default)]
    pub(super) values: Value,
    /// Functions of the package that the test entered, as `path.py::Class.method`.
    #[serde(default)]
    pub(super) entered: Vec<String>,
    /// Functions that the test entered and that have special results.
    #[serde(default)]
    pub(super) special_results: SpecialResults,
}

/// Functions whose results are digested in a special way, because right solutions may return other objects. Each
/// function is named as `path.py::Class.method`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpecialResults {
    /// Generators, and functions that return an iterator. A right solution may return a list instead, so their results
    /// are left out.
    pub(super) iterating: BTreeSet<String>,
    /// Functions that return a match of a regular expression. A right solution may return `True` instead.
    pub(super) matching: BTreeSet<String>,
    /// Functions with a cache. The body of such a function runs only for arguments with which nothing has called it
    /// before. Whether that is so in a test depends on earlier tests, so the function's results are left out.
    pub(super) caching: BTreeSet<String>,
}

impl SpecialResults {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the functions of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        self.iterating.extend(other.iterating.iter().cloned());
        self.matching.extend(other.matching.iter().cloned());
        self.caching.extend(other.caching.iter().cloned());
    }
}

/// All tests of a package, run once.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Survey {
    /// Tests by their id.
    pub(super) tests: BTreeMap<String, SurveyedTest>,
    /// Test files with an error, such as a failed import, or without tests; each with the reason.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Files of the tests: their modules, helpers, data and configuration.
    #[serde(default)]
    pub(super) test_files: BTreeSet<String>,
    /// How this survey was made.
    #[serde(skip)]
    pub(super) circumstances: Circumstances,
}

/// The circumstances in which a survey is made. They differ between the surveys of one package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Circumstances {
    /// Nothing else runs.
    #[default]
    Alone,
    /// Other processes compete for the processors.
    Busy,
    /// The package's code draws other random numbers than in the other surveys, and Python's sets have another order.
    OtherDraws,
}

/// Options of a survey.
#[derive(Debug, Clone, Copy)]
pub(super) struct SurveyOptions {
    /// Time limit of one test in seconds.
    pub(super) seconds: f64,
    /// Whether doctests count as tests.
    pub(super) doctests: bool,
    /// Whether to run only the tests of added files; see [`super::inputs`].
    pub(super) only_added: bool,
}

/// The tests that pass in every survey, and for which reasons the other tests are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct StableTests {
    /// Tests that pass in every survey, as reported by the first survey.
    pub(super) kept: BTreeMap<String, SurveyedTest>,
    /// Kept tests of which only the outcome is compared with gold: tests for which the package returned different
    /// values in different surveys, and added tests (see [`super::inputs`]).
    pub(super) without_values: BTreeSet<String>,
    /// Number of tests left out, by reason.
    pub(super) left_out: BTreeMap<String, usize>,
}

/// Runs all tests once.
///
/// # Errors
/// Kind `Baseline` if the runner gives no survey; `Infrastructure` if the sandbox is lost.
pub(super) async fn survey(
    ready: &ReadyPaper,
    exports: &str,
    options: SurveyOptions,
    circumstances: Circumstances,
    machine: &Machine,
) -> Result<Survey> {
    let load = if circumstances == Circumstances::Busy { LOAD } else { "" };
    let draws = if circumstances == Circumstances::OtherDraws { " --other-draws" } else { "" };
    let doctests = if options.doctests { " --doctests" } else { "" };
    let added = if options.only_added { " --added" } else { "" };
    let seconds = options.seconds;
    // Redirect the output of the processes that keep the machine busy: if they inherited the command's output, it would
    // stay open until they end.
    let line = format!(
        "{exports}\n{{ {load}true; }} >/dev/null 2>&1 </dev/null\npython -B -I {RUNNER} survey --seconds {seconds} --output {OUTPUT}{doctests}{added}{draws} >/dev/null\n\
         status=$?\nkill $(jobs -p) 2>/dev/null\nexit $status"
    );
    let Ran { exec, written } = run_tests(ready, &[], &line, OUTPUT, LIMIT, machine).await?;
    let bytes = written.unwrap_or_default();
    // Use a reader that accepts numbers such as `NaN`: Python writes them, but JSON does not have them.
    let read = read_result(&ResultRule::JsonLine(Stdout::Stdout), &bytes, None);
    let parsed = read.map_err(|_| None).and_then(|value| serde_json::from_value(value).map_err(Some));
    let parsed = parsed.map(|survey: Survey| Survey { circumstances, ..survey });
    parsed.map_err(|broken| {
        let said = String::from_utf8_lossy(&exec.stderr);
        let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
        match exec.exit {
            Exit::TimedOut => failed(&format!("its tests took more than {} minutes", LIMIT.as_secs() / 60)),
            _ if broken.is_some() => failed(&format!(
                "its tests gave a broken result: {}",
                broken.map(|it| it.to_string()).unwrap_or_default()
            )),
            _ if said.is_empty() => failed("its tests gave no result"),
            _ => failed(&format!("its tests gave no result: {said}")),
        }
    })
}

/// Result of a command of the runner.
pub(super) struct Ran {
    /// How the command ended.
    pub(super) exec: Exec,
    /// Contents of the file that the command wrote, if any.
    pub(super) written: Option<Vec<u8>>,
}

/// Runs a shell command in a new sandbox, in a copy of the repo with `files` added. Reads the file `output`, which the
/// command writes.
///
/// # Errors
/// Kind `Baseline` if the command makes the sandbox unusable; `Infrastructure` if the sandbox is lost.
pub(super) async fn run_tests(
    ready: &ReadyPaper,
    files: &[(PathBuf, Vec<u8>)],
    line: &str,
    output: &str,
    limit: Duration,
    machine: &Machine,
) -> Result<Ran> {
    let workspace = tokio::task::block_in_place(|| machine.workspace(&ready.snapshot, files))?;
    let mut sandbox = machine.backend.start(&machine.spec(&ready.env, &workspace, None)).await?;
    let limits = ExecLimits { wall: limit, patience: limit, grace: Duration::from_secs(2), output: 1 << 20 };
    let lost = |fault: Fault| Error::new(FailureKind::Infrastructure, "the sandbox was lost").because(fault);
    let exec = match stop_signal::exec(sandbox.as_mut(), &Command::shell(line), &limits).await {
        Ok(exec) => exec,
        Err(Fault::Refused(why)) => return Err(failed(&format!("its tests broke the sandbox: {why}"))),
        Err(fault) => return Err(lost(fault)),
    };
    let written = match sandbox.read(output.as_ref(), LARGEST).await {
        Ok(bytes) => Some(bytes),
        Err(Fault::Refused(_)) => None,
        Err(fault) => return Err(lost(fault)),
    };
    sandbox.destroy().await.map_err(lost)?;
    tokio::task::block_in_place(|| workspace.remove())?;
    Ok(Ran { exec, written })
}

fn failed(why: &str) -> Error {
    Error::new(FailureKind::Baseline, why)
}

/// Compares surveys of the same tests.
pub(super) fn stable(surveys: &[Survey]) -> StableTests {
    let mut found = StableTests::default();
    let Some((first, others)) = surveys.split_first() else { return found };
    for (id, test) in &first.tests {
        let again: Vec<Option<&SurveyedTest>> = others.iter().map(|other| other.tests.get(id)).collect();
        let passes = |survey: &Survey| survey.tests.get(id).is_some_and(|other| other.outcome == "passed");
        let depends_on_draws =
            others.iter().all(|other| passes(other) != (other.circumstances == Circumstances::OtherDraws));
        let reason = match test.outcome.as_str() {
            "passed" if again.iter().all(|other| other.is_some_and(|other| other.outcome == "passed")) => None,
            "passed" if again.iter().any(|other| other.is_some_and(|other| other.outcome == "slow")) => {
                Some("slow on a busy machine".to_owned())
            }
            "passed" if depends_on_draws => {
                Some("depends on random numbers that the package draws, or on the order of sets".to_owned())
            }
            "passed" => Some("varies".to_owned()),
            other => Some(reason_of(other, &test.reason)),
        };
        if let Some(reason) = reason {
            *found.left_out.entry(reason).or_default() += 1;
            continue;
        }
        if again.iter().flatten().any(|other| !is_close(&test.values, &other.values)) {
            found.without_values.insert(id.clone());
        }
        found.kept.insert(id.clone(), test.clone());
    }
    for reason in first.files.values() {
        let telling = |line: &&str| line.contains("Error") || line.contains("Exception");
        let reason = reason.lines().rev().find(telling).or(reason.lines().next()).unwrap_or_default();
        let reason: String = reason.trim().trim_start_matches("E ").trim().chars().take(160).collect();
        *found.left_out.entry(format!("file not collected: {reason}")).or_default() += 1;
    }
    found
}

/// Returns the kind of reason for which a test did not pass, so that tests can be counted by kind.
fn reason_of(outcome: &str, reason: &str) -> String {
    let said = reason.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    let why = match outcome {
        "failed" | "error"
            if any(&["network", "name resolution", "connection", "urlopen", "socket", "unreachable"]) =>
        {
            "needs the network"
        }
        "failed" | "error" if any(&["display", "tkinter", "tcl"]) => "needs a display",
        "failed" | "error" if any(&["filenotfound", "no such file"]) => "needs missing files",
        "failed" | "error" if any(&["modulenotfound", "no module named", "importerror"]) => "needs a missing module",
        other => other,
    };
    why.to_owned()
}

/// Whether two summaries of recorded values (a hash and sums of numbers) are equal up to rounding of the sums.
pub(super) fn is_close(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN));
            (one - other).abs() <= CLOSE * one.abs().max(other.abs()).max(1.0)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_close(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| is_close(value, other)))
        }
        (one, other) => one == other,
    }
}

/// The plan that the test runner reads: the tests of each group, the tests of which only the outcome is compared with
/// gold, and the duration of each test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// Ids of tests, by the name of their group.
    pub(super) groups: BTreeMap<String, Vec<String>>,
    /// Ids of tests of which only the outcome is compared with gold, and not the values that the package returned to
    /// them.
    pub(super) without_values: BTreeSet<String>,
    /// Random texts. Which tests a verification alters, and how, follows from one of them. Gold is recorded with each
    /// of them, so that verification runs no altered tests together that were never tried on the original code. Plans
    /// of before December 2026 don't have them; verification then draws without restrictions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) drawings: Vec<String>,
    /// Seconds of each test in the survey, from which the runner's time limits follow.
    #[serde(default)]
    pub(super) seconds: BTreeMap<String, f64>,
    /// Functions with special results. Plans of before December 2026 don't have them.
    #[serde(default, skip_serializing_if = "SpecialResults::is_empty")]
    pub(super) special_results: SpecialResults,
}

impl Plan {
    /// Returns the path and contents of the file from which the test runner reads the plan.
    pub(super) fn file(&self) -> (PathBuf, Vec<u8>) {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        (PathBuf::from(PLAN), text.into_bytes())
    }

    /// Returns, by the id of each test, the name of the group that contains the test.
    pub(super) fn by_test(&self) -> BTreeMap<&str, &str> {
        let all = self.groups.iter().flat_map(|(group, ids)| ids.iter().map(|id| (id.as_str(), group.as_str())));
        all.collect()
    }
}

/// Maximum number of groups of tests; maximum seconds that all kept tests may take together; and maximum number of kept
/// tests.
const MOST_GROUPS: usize = 8;
pub(super) const MOST_SECONDS: f64 = 8.0;
const MOST_TESTS: usize = 4000;

/// Seconds of tests per group, from which the number of groups follows.
const GROUP_SECONDS: f64 = 2.0;

/// Drops tests, so that at most [`MOST_TESTS`] remain and take at most [`MOST_SECONDS`] together. Two passes go through
/// the tests, quick ones first. The first pass keeps tests that enter a function that no test kept so far enters. The
/// second pass keeps any further tests that fit. Returns the number of dropped tests.
pub(super) fn within_budget(tests: &mut BTreeMap<String, SurveyedTest>) -> usize {
    let mut order: Vec<String> = tests.keys().cloned().collect();
    let cost = |id: &String| tests.get(id).map_or(0.0, |test| test.seconds);
    // Quick tests come first. A hash orders tests of equal time, so that no file is preferred.
    let tie = |id: &String| hex(&<sha2::Sha256 as sha2::Digest>::digest(id.as_bytes()));
    order.sort_by(|one, other| {
        let rounded = |id: &String| (cost(id) * 20.0).round();
        rounded(one).total_cmp(&rounded(other)).then_with(|| tie(one).cmp(&tie(other)))
    });
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let (mut seconds, mut count) = (0.0, 0);
    let mut kept = BTreeSet::new();
    for is_second_pass in [false, true] {
        for id in &order {
            let Some(test) = tests.get(id) else { continue };
            let is_new = test.entered.iter().any(|function| !seen.contains(function));
            let fits = seconds + test.seconds <= MOST_SECONDS && count < MOST_TESTS;
            if kept.contains(id) || !fits || (!is_second_pass && !is_new) {
                continue;
            }
            seen.extend(test.entered.iter().cloned());
            seconds += test.seconds;
            count += 1;
            kept.insert(id.clone());
        }
    }
    let before = tests.len();
    tests.retain(|id, _| kept.contains(id));
    before - tests.len()
}

/// Splits tests into groups that take about the same time. The tests of a file stay together, unless they take too
/// long: then the file is split by class, then by test.
pub(super) fn groups(tests: &BTreeMap<String, SurveyedTest>) -> BTreeMap<String, Vec<String>> {
    let total: f64 = tests.values().map(|test| test.seconds).sum();
    let files: BTreeSet<&str> = tests.values().map(|test| test.file.as_str()).collect();
    let wanted = (total / GROUP_SECONDS).ceil() as usize;
    let count = wanted.max(files.len().min(3)).clamp(1, MOST_GROUPS);
    let share = total / count as f64;
    let mut parts: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for (id, test) in tests {
        parts.entry(test.file.clone()).or_default().push(id);
    }
    for by_class in [true, false] {
        let mut finer: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        for (name, ids) in parts {
            let seconds: f64 = ids.iter().map(|id| tests[*id].seconds).sum();
            if seconds <= 1.5 * share || ids.len() < 2 {
                finer.insert(name, ids);
                continue;
            }
            for id in ids {
                let upper =
                    if by_class { id.rsplit_once("::").map_or(id.as_str(), |(upper, _)| upper) } else { id.as_str() };
                finer.entry(upper.to_owned()).or_default().push(id);
            }
        }
        parts = finer;
    }
    let mut parts: Vec<(f64, Vec<&String>)> =
        parts.into_values().map(|ids| (ids.iter().map(|id| tests[*id].seconds).sum(), ids)).collect();
    parts.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let mut bins: Vec<(f64, Vec<String>)> = vec![(0.0, Vec::new()); count];
    for (seconds, ids) in parts {
        let lightest = bins.iter_mut().min_by(|one, other| {
            (one.0, one.1.len()).partial_cmp(&(other.0, other.1.len())).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(bin) = lightest {
            bin.0 += seconds;
            bin.1.extend(ids.into_iter().cloned());
        }
    }
    bins.retain(|(_, ids)| !ids.is_empty());
    let named = bins.into_iter().enumerate().map(|(place, (_, mut ids))| {
        ids.sort();
        (format!("tests_{}", place + 1), ids)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(outcome: &str, seconds: f64, file: &str, values: Value) -> SurveyedTest {
        SurveyedTest { outcome: outcome.into(), seconds, file: file.into(), values, ..SurveyedTest::default() }
    }

    fn survey(tests: &[(&str, SurveyedTest)]) -> Survey {
        Survey { tests: tests.iter().map(|(id, test)| ((*id).to_owned(), test.clone())).collect(), ..Survey::default() }
    }

    #[test]
    fn timestamps_a_second_apart_count_as_different_and_rounding_errors_do_not() {
        let digest = |number: f64| serde_json::json!({ "numbers": [number] });
        assert!(!is_close(&digest(1_764_367_200.0), &digest(1_764_367_201.0)));
        assert!(is_close(&digest(1.0), &digest(1.0 + 1e-12)));
        assert!(is_close(&digest(2e-12), &digest(-3e-12)) && !is_close(&digest(1e-7), &digest(2e-7)));
    }

    #[test]
    fn a_plan_without_special_results_and_drawings_is_read_and_written_as_before() {
        let old = r#"{"groups":{"tests_1":["a"]},"without_values":[],"seconds":{"a":0.5}}"#;
        let mut plan: Plan = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&plan).unwrap(), old);
        plan.special_results.matching.insert("m.py::find".to_owned());
        let again: Plan = serde_json::from_slice(&plan.file().1).unwrap();
        assert_eq!(again, plan);
    }

    #[test]
    fn surveyed_tests_that_fail_or_vary_in_outcome_are_left_out_with_the_reason_for_each() {
        let value = |number: f64| serde_json::json!({"exact": "aa", "numbers": [number]});
        let one = survey(&[
            ("a", test("passed", 0.1, "t.py", value(1.0))),
            ("b", test("passed", 0.1, "t.py", value(1.0))),
            ("c", test("passed", 0.1, "t.py", value(1.0))),
            (
                "d",
                SurveyedTest { reason: "URLError: Name resolution".into(), ..test("failed", 0.1, "t.py", Value::Null) },
            ),
            ("e", test("slow", 5.0, "t.py", Value::Null)),
        ]);
        let mut two = one.clone();
        two.tests.get_mut("b").unwrap().outcome = "failed".into();
        two.tests.get_mut("c").unwrap().values = value(1.1);
        two.tests.get_mut("a").unwrap().values = value(1.0 + 1e-12);
        let found = stable(&[one, two]);
        assert_eq!(found.kept.keys().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(found.without_values.iter().collect::<Vec<_>>(), ["c"]);
        let reasons: Vec<(&str, usize)> = found.left_out.iter().map(|(why, count)| (why.as_str(), *count)).collect();
        assert_eq!(reasons, [("needs the network", 1), ("slow", 1), ("varies", 1)]);
    }

    #[test]
    fn tests_that_fail_only_if_random_numbers_change_are_left_out_with_a_special_reason() {
        let passed = |circumstances| {
            let tests = survey(&[("a", test("passed", 0.1, "t.py", Value::Null))]);
            Survey { circumstances, ..tests }
        };
        let mut redrawn = passed(Circumstances::OtherDraws);
        redrawn.tests.get_mut("a").unwrap().outcome = "failed".into();
        let found = stable(&[passed(Circumstances::Alone), passed(Circumstances::Busy), redrawn.clone()]);
        let reasons: Vec<&str> = found.left_out.keys().map(String::as_str).collect();
        assert_eq!(reasons, ["depends on random numbers that the package draws, or on the order of sets"]);
        let mut busy = redrawn.clone();
        busy.circumstances = Circumstances::Busy;
        let found = stable(&[passed(Circumstances::Alone), busy, redrawn]);
        assert_eq!(found.left_out.keys().map(String::as_str).collect::<Vec<_>>(), ["varies"]);
    }

    #[test]
    fn groups_are_balanced_by_time_and_hold_every_test_once() {
        let mut tests = BTreeMap::new();
        for number in 0..40 {
            let id = format!("tests/test_a.py::TestA{}::test_{number}", number % 4);
            tests.insert(id, test("passed", 0.5, "tests/test_a.py", Value::Null));
        }
        for number in 0..3 {
            tests
                .insert(format!("tests/test_b.py::test_{number}"), test("passed", 0.1, "tests/test_b.py", Value::Null));
        }
        let groups = groups(&tests);
        let times: Vec<f64> = groups.values().map(|ids| ids.iter().map(|id| tests[id].seconds).sum()).collect();
        let mut all: Vec<&String> = groups.values().flatten().collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 43);
        assert!(groups.len() <= 8 && times.iter().all(|&time| time < 5.1), "{times:?}");
    }

    #[test]
    fn tests_chosen_within_a_time_budget_include_the_only_test_that_enters_a_function() {
        let mut tests = BTreeMap::new();
        for number in 0..30 {
            let entered = vec![if number == 29 { "m.py::rare".to_owned() } else { "m.py::usual".to_owned() }];
            let seconds = if number == 29 { 4.5 } else { 3.0 };
            tests
                .insert(format!("t{number}"), SurveyedTest { entered, ..test("passed", seconds, "t.py", Value::Null) });
        }
        let dropped = within_budget(&mut tests);
        assert!(tests.contains_key("t29"));
        assert!(dropped > 0 && tests.values().map(|test| test.seconds).sum::<f64>() <= MOST_SECONDS);
    }
}
