//! Records the calls of the repository's functions in the harness's own run of the entry script, to prove that the
//! program ran and did not just print the output.
//!
//! The recorder (`recorder.py`) runs in the program's own process, so hostile code can write such a record itself. But
//! a record is accepted only if it agrees with the record of gold's run. To forge it, the code would have to know the
//! arguments and results of every function in that run, and it can learn these only by running the same program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::changes::{PACKAGES, PermittedChanges};
use crate::agent::Check;
use crate::code::Module;
use crate::run::check::{Measurement, measure_with_output};
use crate::sandbox::{Fault, Sandbox};

/// Id of the record of calls, among the results of verification.
pub(super) const TRACE: &str = "trace";
const RECORDER: &str = include_str!("recorder.py");
/// Folder of the recorder and its output, in the workspace of verification.
const FOLDER: &str = ".recorder";
/// Factor by which the time limit of the entry script is multiplied, because tracing slows Python code down.
const SLOWER: f64 = 3.0;
/// Maximum size of the recorder's output file in bytes.
const MOST: u64 = 4 << 20;
/// Modulus of the sum of hashes, as in the recorder.
const MODULUS: f64 = (1_u64 << 48) as f64;
/// Maximum difference of sums, relative to the sum of magnitudes: rounding differs between processors.
const RELATIVE: f64 = 1e-7;
/// Maximum number of differences that are listed.
const LISTED: usize = 5;

/// Per function: number of calls; sum of hashes of texts and whole numbers; and for other numbers their count, sum,
/// weighted sum and sum of magnitudes.
pub type Calls = BTreeMap<String, [f64; 6]>;

/// Runs the entry script with the recorder, which observes the functions of the repo and of `packages`. Returns the
/// script's outcome, all of its output, and the record of calls as a second outcome.
///
/// # Errors
/// [`Fault::Lost`] if the sandbox died.
pub async fn run(
    sandbox: &mut dyn Sandbox,
    entry: &Check,
    packages: &BTreeSet<String>,
) -> Result<(Measurement, String, Measurement), Fault> {
    let root = sandbox.workdir().to_owned();
    let folder = root.join(FOLDER);
    let file = folder.join("calls.jsonl");
    let nothing = |why: String| Measurement::not_run(TRACE, crate::sandbox::Exit::Code(1), why);
    if let Err(fault) = sandbox.write(&Path::new(FOLDER).join("sitecustomize.py"), RECORDER.as_bytes()).await {
        let Fault::Refused(why) = fault else { return Err(fault) };
        let entry =
            Measurement::not_run(&entry.id, crate::sandbox::Exit::Code(126), format!("could not be run: {why}"));
        return Ok((entry, String::new(), nothing(why)));
    }
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    // Make joblib run everything in this process: counts of calls depend on the number of worker processes.
    let command = format!(
        "export PYTHONPATH={} AUTOEXPERIMENT_CALLS={} AUTOEXPERIMENT_ROOT={} AUTOEXPERIMENT_PACKAGES='{}' \
         JOBLIB_MULTIPROCESSING=0\n{}",
        quoted(&folder),
        quoted(&file),
        quoted(&root),
        packages.join(" "),
        entry.command
    );
    let (measured, output) =
        measure_with_output(sandbox, &Check { command, time_limit: SLOWER * entry.time_limit, ..entry.clone() })
            .await?;
    let record = match sandbox.read(&file, MOST).await {
        Ok(bytes) => sum(&bytes).ok_or_else(|| "the record of calls cannot be read".to_owned()),
        Err(Fault::Refused(_)) => Err("no Python program ran to its end".to_owned()),
        Err(lost) => return Err(lost),
    };
    let result = record.and_then(|calls| serde_json::to_value(calls).map_err(|error| error.to_string()));
    let trace = Measurement { id: TRACE.to_owned(), result, stderr: String::new(), ..measured.clone() };
    Ok((measured, output, trace))
}

/// Returns the packages of these files, given as `boruta/boruta_py.py` or `site-packages/boruta/boruta_py.py::name`.
pub fn packages<'a>(files: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let top = |file: &'a String| file.strip_prefix(PACKAGES).unwrap_or(file).split('/').next().unwrap_or_default();
    // Allow only plain names, because they become words of a shell command.
    let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    files.map(top).filter(is_plain).map(str::to_owned).collect()
}

/// Adds up the recorded calls of all processes, given as one JSON object per line.
fn sum(lines: &[u8]) -> Option<Calls> {
    let mut all = Calls::new();
    for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        for (name, values) in serde_json::from_slice::<Calls>(line).ok()? {
            let sums = all.entry(name).or_default();
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            sums[1] %= MODULUS;
        }
    }
    Some(all)
}

/// Removes the functions of the repo that its original files do not have. The gold cells may add functions, and other
/// right solutions need not have them.
pub fn without_new(calls: Calls, repo: &Path) -> Calls {
    let mut known: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    let mut is_original = |name: &str| {
        let Some((file, function)) = name.split_once("::") else { return true };
        let names = known.entry(file.to_owned()).or_insert_with(|| names_in(&repo.join(file)));
        name.starts_with(PACKAGES) || names.as_ref().is_none_or(|names| names.contains(function))
    };
    calls.into_iter().filter(|(name, _)| is_original(name)).collect()
}

/// Returns the qualified names under which the recorder counts the calls of a file's functions and classes; none if
/// there is no such file, `None` if the file cannot be parsed.
fn names_in(file: &Path) -> Option<BTreeSet<String>> {
    let Ok(source) = std::fs::read(file) else { return Some(BTreeSet::new()) };
    let text = String::from_utf8_lossy(&source).into_owned();
    let module = Module::parse("a.py", source).ok()?;
    let functions = module.functions().iter().flat_map(|function| [Some(&function.name), function.class.as_ref()]);
    let mut names: BTreeSet<String> = functions.flatten().cloned().collect();
    names.insert("<module>".to_owned());
    // A class without methods, outside of all functions and classes.
    let classes = text.lines().filter_map(|line| line.strip_prefix("class "));
    names.extend(classes.map(|rest| rest.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect()));
    Some(names)
}

/// Whether a solution may change a function, or a function or class in which it is nested. The recorder does not
/// distinguish several definitions of a function, so permission to change one of them suffices.
fn is_permitted(name: &str, permitted: &PermittedChanges) -> bool {
    let start = name.find("::").map_or(name.len(), |at| at + 2);
    let outer = name[start..].match_indices('.').map(|(dot, _)| &name[..start + dot]);
    outer.chain([name]).any(|part| permitted.allows_a_definition(part))
}

/// Lists differences between the calls in the verification run and in gold's run, each as part of a sentence. Functions
/// of the repo that a solution may change are not compared, nor are functions nested in them. Functions of packages are
/// always compared: repairing a package must not change what it computes.
pub fn differences(gold: &Calls, ran: Option<&Value>, permitted: &PermittedChanges) -> Vec<String> {
    let Some(ran) = ran.and_then(|value| serde_json::from_value::<Calls>(value.clone()).ok()) else {
        return vec!["there is no record of the program's calls".to_owned()];
    };
    let compared = gold.iter().filter(|(name, _)| name.starts_with(PACKAGES) || !is_permitted(name, permitted));
    let differ = compared.filter_map(|(name, gold)| {
        let Some(ran) = ran.get(name) else { return Some(format!("`{name}` was never called")) };
        if count(gold[0]) != count(ran[0]) {
            return Some(format!("`{name}` was called {} times instead of {}", count(ran[0]), count(gold[0])));
        }
        let is_near = |place: usize| (gold[place] - ran[place]).abs() <= RELATIVE * gold[5].abs().max(ran[5].abs());
        let is_same = count(gold[1]) == count(ran[1]) && count(gold[2]) == count(ran[2]) && (3..6).all(is_near);
        (!is_same).then(|| format!("`{name}` was given or returned other values"))
    });
    differ.take(LISTED).collect()
}

/// Converts a whole number stored as a double.
fn count(value: f64) -> u64 {
    value as u64
}

/// Returns the functions whose calls are exactly the same in two runs of gold on one machine. Only these functions are
/// compared in verification. No difference is tolerated here. With a tolerance, a function that returns a time of a few
/// milliseconds could be kept, because its other values are much larger. But on a busy machine the time is longer, and
/// right solutions would fail.
pub fn stable(first: &Calls, second: &Calls) -> Calls {
    let is_same = |name: &String, calls: &[f64; 6]| {
        second
            .get(name)
            .is_some_and(|other| calls.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits()))
    };
    first.iter().filter(|(name, calls)| is_same(name, calls)).map(|(name, calls)| (name.clone(), *calls)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_of_a_program_are_compared_with_the_gold_calls_and_differences_are_named() {
        let gold = Calls::from([("a.py::f".to_owned(), [3.0, 7.0, 2.0, 0.5, 0.25, 0.5])]);
        let differ = |ran: Value| differences(&gold, Some(&ran), &PermittedChanges::default()).join("; ");
        assert_eq!(differ(json!({"a.py::f": [3, 7, 2, 0.5 + 1e-12, 0.25, 0.5], "b.py::g": [1, 0, 0, 0, 0, 0]})), "");
        assert_eq!(differ(json!({})), "`a.py::f` was never called");
        assert_eq!(differ(json!({"a.py::f": [2, 7, 2, 0.5, 0.25, 0.5]})), "`a.py::f` was called 2 times instead of 3");
        for other in [[3.0, 8.0, 2.0, 0.5, 0.25, 0.5], [3.0, 7.0, 2.0, 0.501, 0.25, 0.5]] {
            assert_eq!(differ(json!({"a.py::f": other})), "`a.py::f` was given or returned other values");
        }
        assert_eq!(differences(&gold, None, &PermittedChanges::default()).len(), 1);
        let free = PermittedChanges::new(["a.py::f"]).unwrap();
        assert!(differences(&gold, Some(&json!({})), &free).is_empty());
    }

    #[test]
    fn functions_nested_in_one_that_a_solution_may_change_are_not_compared() {
        let free = PermittedChanges::new(["a.py::f", "a.py::A.g", "a.py::A.x#2"]).unwrap();
        let differs = |name: &str| {
            let gold = Calls::from([(name.to_owned(), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])]);
            !differences(&gold, Some(&json!({})), &free).is_empty()
        };
        let nested = ["a.py::f.inner", "a.py::f.inner.most", "a.py::A.g.inner", "a.py::A.x", "a.py::A.x.inner"];
        assert!(nested.iter().all(|name| !differs(name)));
        let others = ["a.py::ff", "a.py::A.h", "b.py::f.inner", "b.c.py::f", "a.py::A.xx", "b.py::A.x"];
        assert!(others.iter().all(|name| differs(name)));
    }

    #[test]
    fn functions_that_the_original_repo_does_not_have_are_left_out_of_the_record() {
        let repo = tempfile::tempdir().unwrap();
        let source =
            "def f():\n    def g():\n        pass\n\nclass A:\n    x = 1\n\nclass B:\n    def h(self):\n        pass\n";
        std::fs::write(repo.path().join("a.py"), source).unwrap();
        let kept =
            ["a.py::<module>", "a.py::f", "a.py::f.g", "a.py::A", "a.py::B", "a.py::B.h", "site-packages/a.py::k"];
        let new = ["a.py::k", "a.py::f.k", "b.py::<module>", "b.py::f"];
        let calls = kept.iter().chain(&new).map(|name| ((*name).to_owned(), [1.0; 6])).collect();
        let found = without_new(calls, repo.path());
        assert_eq!(found.keys().collect::<BTreeSet<_>>(), kept.map(str::to_owned).iter().collect::<BTreeSet<_>>());
    }

    #[test]
    fn functions_whose_recorded_values_depend_on_the_clock_are_left_out_of_the_trace() {
        let run = |seconds: f64| {
            let sum = 10_015.75 + seconds;
            Calls::from([
                ("a.py::report".to_owned(), [15.0, 7.0, 420.0, sum, sum, sum]),
                ("a.py::step".to_owned(), [15.0, 9.0, 3.0, 0.1, 0.2, 0.1]),
            ])
        };
        // The runs differ by half a millisecond, which is far below the tolerance of a comparison.
        let kept = stable(&run(0.0040), &run(0.0045));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a.py::step"]);
    }

    #[test]
    fn call_records_of_several_processes_are_summed_and_broken_ones_refused() {
        let all = sum(b"{\"f\": [1, 281474976710655, 1, 2.0, 1.0, 2.0]}\n{\"f\": [1, 3, 0, 0, 0, 0]}\n").unwrap();
        assert_eq!(all["f"].map(|value| value as u64), [2, 2, 1, 2, 1, 2]);
        assert!(sum(b"{\"f\": ").is_none());
    }
}
