//! A run's samples as Harbor tasks, so that agents can attempt them under Harbor, and its trajectories in ATIF.
//!
//! ```text
//! tasks/<sample>/instruction.md, task.toml
//! tasks/<sample>/environment/   Dockerfile, requirements.txt, workspace/: everything that the agent gets
//! tasks/<sample>/tests/         the verifier's Dockerfile, the masked repo, gold, verify.py, tolerance.py
//! tasks/<sample>/solution/      the gold agent's solution: the original files, solve.sh
//! trajectories/<agent>/<sample>.<attempt>.json
//! ```
//!
//! The agent's image contains neither gold nor the original code. The agent's workspace is copied into the verifier's
//! environment, where the agent's changes are applied to a fresh masked repo and the experiments run again. A reward
//! written by the agent's code is ignored.

mod copy;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use globset::GlobSet;
use serde::Deserialize;
use serde_json::{Value, json};

use self::copy::copy_repo;
use super::names::file_name;
use super::{ExportSource, atif};
use crate::agent::{Replication, TaskExperiment, files::task_files};
use crate::env::portable_variables;
use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::masked::gold::{gold_of, runs};
use crate::masked::ready::task_experiments;
use crate::masked::{replication, withheld};
use crate::sample::{MASKED, Withheld};
use crate::score::redraw;
use crate::suite::{LoadedPaper, Suite};
use crate::workspace::{LEFT_OUT_ENDINGS, LEFT_OUT_NAMES};

const MEASURE: &str = include_str!("measure.py");
const VERIFY: &str = include_str!("verify.py");

/// Version of Harbor's task format.
const SCHEMA: &str = "1.4";
/// Minimum of an agent's time limit in seconds. Harbor limits an agent's total time, but the run's limit covers only
/// tool time and would be too short.
const LEAST_AGENT: f64 = 3600.0;
/// Seconds for verification in addition to the experiments' time limits.
const BESIDE: f64 = 120.0;

/// Writes tasks for all samples of a run, from the suite in its current state, and the run's trajectories.
///
/// # Errors
/// Kind `Store` for a run without attempts; kind `Usage` for a run of another family than masked replication; kind
/// `Suite` for a paper that cannot be loaded or an env without a venv lock file; kind `Baseline` for a paper without
/// gold; kind `Machine` if a file cannot be written.
pub fn export(source: &ExportSource, suite: &Suite, path: &Path) -> Result<Vec<PathBuf>> {
    source.require_attempts()?;
    let family = &source.run.configuration.family;
    if family != MASKED {
        return Err(Error::usage(format!("samples of the family `{family}` cannot be exported as Harbor tasks"))
            .hint("their trajectories can: `--format atif`"));
    }
    let mut samples: Vec<&str> = source.attempts().map(|record| &*record.sample).collect();
    samples.sort_unstable();
    samples.dedup();
    let mut papers: BTreeMap<String, ExportedPaper> = BTreeMap::new();
    let mut written = Vec::new();
    for id in samples {
        let Withheld { item, units } = withheld(id)?;
        if !papers.contains_key(&item) {
            papers.insert(item.clone(), ExportedPaper::open(suite, &item)?);
        }
        let Some(paper) = papers.get(&item) else { continue };
        written.push(write_task(source, paper, id, &units, &path.join("tasks").join(folder_name(id)))?);
    }
    written.extend(atif::export(source, &path.join("trajectories"))?);
    Ok(written)
}

/// Returns the folder of a sample, which is also the last part of its task's name. Harbor's names may not contain
/// commas.
fn folder_name(sample: &str) -> String {
    file_name(&sample.replace(',', "-"))
}

/// A paper and the contents of its images.
struct ExportedPaper {
    loaded: LoadedPaper,
    /// Version of Python, such as `3.12`: the one with which gold was recorded, if the lock file has it.
    python: String,
    requirements: String,
    /// Environment variables that the env sets. Gold was recorded with the same variables.
    variables: BTreeMap<String, String>,
}

/// The parts of a venv lock file that a task needs.
#[derive(Deserialize)]
struct LockExcerpt {
    #[serde(default)]
    target: Vec<HarborTarget>,
}

#[derive(Deserialize)]
struct HarborTarget {
    python: String,
    platform: String,
    #[serde(default)]
    package: Vec<HarborPackage>,
}

#[derive(Deserialize)]
struct HarborPackage {
    name: String,
    version: String,
}

impl ExportedPaper {
    fn open(suite: &Suite, id: &str) -> Result<Self> {
        let loaded = LoadedPaper::load(suite, id)?;
        loaded.refuse_results()?;
        let path = loaded.env_dir.join("venv.lock");
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::suite("only envs with a lock file for pip can be exported")
                .at(&path, None)
                .because(error)
                .hint(format!("type `autoexperiment env lock {}`", loaded.paper.env))
        })?;
        let lock: LockExcerpt =
            toml::from_str(&text).map_err(|error| Error::suite("broken lock file").at(&path, None).because(error))?;
        let recorded = loaded.gold.as_ref().map(|gold| gold.env.python.clone()).unwrap_or_default();
        let python = recorded.split('.').take(2).collect::<Vec<_>>().join(".");
        // The image runs Linux. Any processor will do, because packages have the same versions on all of them.
        let target = lock
            .target
            .iter()
            .filter(|target| target.platform.starts_with("linux"))
            .max_by_key(|target| (target.python == python, target.platform.ends_with("x86_64")));
        let target = target.ok_or_else(|| Error::suite("the lock file has no target for Linux").at(&path, None))?;
        let requirements = target.package.iter().fold(String::new(), |mut lines, package| {
            let _ = writeln!(lines, "{}=={}", package.name, package.version);
            lines
        });
        let variables = portable_variables(&loaded.env_dir)?;
        if let Some((name, _)) = variables.iter().find(|(_, value)| value.contains(['\n', '\r'])) {
            return Err(Error::suite(format!(
                "the variable `{name}` has a line break, which a Dockerfile cannot express"
            ))
            .at(loaded.env_dir.join("environment.yml"), None));
        }
        Ok(Self { python: target.python.clone(), loaded, requirements, variables })
    }

    /// Returns the Dockerfile line that builds the repo's extensions in a folder of the image; empty if the repo has no
    /// extensions.
    fn build(&self, folder: &str) -> String {
        let shell = |build: &String| serde_json::json!(["sh", "-c", format!("cd {folder} && ({build})")]);
        self.loaded.paper.build.as_ref().map(|build| format!("RUN {}\n", shell(build))).unwrap_or_default()
    }

    /// Returns the Dockerfile of an image with the env, and with a compiler if the repo has extensions.
    fn dockerfile(&self, rest: &str) -> String {
        let slim = if self.loaded.paper.build.is_some() { "" } else { "-slim" };
        let variables = self.variables.iter().fold(String::new(), |mut lines, (name, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
            let _ = writeln!(lines, "ENV {name}=\"{value}\"");
            lines
        });
        format!(
            "FROM python:{}{slim}\n{variables}COPY requirements.txt /requirements.txt\n\
             RUN pip install --no-cache-dir -r /requirements.txt\n{rest}",
            self.python
        )
    }
}

fn write_task(
    source: &ExportSource,
    paper: &ExportedPaper,
    sample: &str,
    functions: &[usize],
    folder: &Path,
) -> Result<PathBuf> {
    let loaded = &paper.loaded;
    loaded.require(functions)?;
    let protocol = source.run.configuration.protocol;
    let experiments = task_experiments(loaded, protocol)?;
    let gold = gold_of(loaded, protocol)?;
    let task = replication(loaded, &experiments, functions);
    let masked: BTreeMap<PathBuf, Vec<u8>> =
        loaded.masked(functions)?.into_iter().map(|file| (file.path, file.bytes)).collect();

    // The agent's environment.
    let environment = folder.join("environment");
    copy_repo(&loaded.repo_dir, &masked, &loaded.paper.hidden_set(), &environment.join("workspace"))?;
    for (path, bytes) in task_files(&task) {
        save(&environment.join("workspace").join(path), &bytes)?;
    }
    let rest = format!("COPY workspace /workspace\nWORKDIR /workspace\n{}", paper.build("/workspace"));
    save(&environment.join("Dockerfile"), paper.dockerfile(&rest).as_bytes())?;
    save(&environment.join("requirements.txt"), paper.requirements.as_bytes())?;
    save(&folder.join("instruction.md"), instruction(&task, sample).as_bytes())?;
    save(&folder.join("task.toml"), configuration(source, (sample, functions), &experiments, loaded)?.as_bytes())?;

    // The verifier's environment.
    let tests = folder.join("tests");
    copy_repo(&loaded.repo_dir, &masked, &GlobSet::empty(), &tests.join("original"))?;
    let listed: Vec<Value> = loaded
        .tests(functions)
        .into_iter()
        .map(|place| {
            let experiment = &experiments[place];
            let declared = loaded.paper.experiments.iter().find(|it| it.id == experiment.id);
            json!({
                "id": experiment.id,
                "key": experiment.key,
                "command": experiment.command,
                "time_limit": experiment.time_limit,
                "variables": paper.variables,
                "result": experiment.result,
                "gold": gold.get(&experiment.id).map(|gold| &gold.result),
                "tolerance": declared.map(|it| it.bounds(gold.get(&it.id))),
                "runs": declared.map_or(1, runs),
                "hidden": declared.is_some_and(|it| it.hidden),
            })
        })
        .collect();
    let measured = json!({
        "protected": expressions(&loaded.paper.protected_globs()),
        "hidden": expressions(&loaded.paper.hidden),
        "left_out": { "names": LEFT_OUT_NAMES, "endings": LEFT_OUT_ENDINGS },
        "redraw": redraw::settings(),
        "experiments": listed,
    });
    save(&tests.join("task.json"), &pretty(&measured)?)?;
    save(&tests.join("measure.py"), MEASURE.as_bytes())?;
    save(&tests.join("tolerance.py"), crate::tolerance::PYTHON.as_bytes())?;
    save(&tests.join("verify.py"), VERIFY.as_bytes())?;
    script(&tests.join("test.sh"), "#!/bin/sh\nexec python3 /tests/verify.py\n")?;
    // The code under test runs as another user, who must not be able to read gold.
    let rest = format!("COPY . /tests\n{}RUN chmod -R go-rwx /tests\n", paper.build("/tests/original"));
    save(&tests.join("Dockerfile"), paper.dockerfile(&rest).as_bytes())?;
    save(&tests.join("requirements.txt"), paper.requirements.as_bytes())?;

    // The gold agent's solution.
    let solution = folder.join("solution");
    for (path, bytes) in loaded.originals(functions) {
        save(&solution.join("files").join(path), &bytes)?;
    }
    let without_gold: Vec<Value> = listed
        .iter()
        .filter(|experiment| experiment["hidden"] == false)
        .cloned()
        .map(|mut experiment| {
            if let Some(fields) = experiment.as_object_mut() {
                fields.retain(|name, _| !["gold", "tolerance", "runs", "hidden"].contains(&name.as_str()));
            }
            experiment
        })
        .collect();
    save(&solution.join("experiments.json"), &pretty(&without_gold.into())?)?;
    save(&solution.join("measure.py"), MEASURE.as_bytes())?;
    let solve = "#!/bin/sh\nset -e\nhere=$(dirname \"$0\")\nif [ -d \"$here/files\" ]; then cp -r \"$here/files/.\" /workspace/; fi\n\
                 python3 \"$here/measure.py\" \"$here/experiments.json\" /workspace\n";
    script(&solution.join("solve.sh"), solve)?;
    Ok(folder.to_owned())
}

/// Converts globs to regular expressions for Python. Matched against the bytes of a path, an expression gives the same
/// result as its glob.
fn expressions(globs: &[String]) -> Vec<String> {
    let globs = globs.iter().filter_map(|glob| globset::Glob::new(glob).ok());
    // Remove Rust's flag for matching bytes instead of Unicode: Python's byte patterns neither need nor accept it.
    globs.map(|glob| glob.regex().trim_start_matches("(?-u)").to_owned()).collect()
}

fn instruction(task: &Replication, sample: &str) -> String {
    let paper = &task.paper;
    let mut text = format!(
        "# {}\n\nThe folder `/workspace` is the repository of the paper \"{}\" ({}, {}). Beside the code there are `paper.txt`, the \
         paper's text without the numbers of its results, {}\n\n",
        sample,
        paper.title,
        paper.authors.join(", "),
        paper.year,
        if task.experiments.is_empty() {
            "and `experiments.md`, how your code is tested."
        } else {
            "`experiments.md`, the experiments that you are to run and report, and `run_experiments.sh`, which runs all of \
             them."
        }
    );
    if task.functions.is_empty() {
        text.push_str("No function is missing: the experiments only have to be run and reported.\n");
    } else {
        let what = match (
            task.functions.iter().any(|it| it.region.is_some()),
            task.functions.iter().any(|it| it.region.is_none()),
        ) {
            (false, _) => "These functions are missing: their bodies only raise `NotImplementedError`.",
            (true, false) => "These parts of functions are missing.",
            (true, true) => {
                "These functions and parts of functions are missing. The bodies of functions that are missing as a whole only raise `NotImplementedError`."
            }
        };
        let _ = write!(text, "{what} Write them again from the paper and the code around them.\n\n");
        for function in &task.functions {
            let passages = function.passages.join(", ");
            let passages = if passages.is_empty() { passages } else { format!(" (in the paper: {passages})") };
            let _ = writeln!(text, "- `{}`: {}{passages}", function.at, function.full_description());
        }
    }
    if task.experiments.is_empty() {
        text.push_str(
            "\n## The answer\n\nThere are no experiments to run or report. Hidden tests are run on the finished code. Write an \
             empty JSON object, `{}`, to `/workspace/answer.json`.\n",
        );
        return text;
    }
    text.push_str("\n## Experiments to report\n\n");
    for experiment in &task.experiments {
        let _ = writeln!(
            text,
            "- {}: {}\n  Command (at most {} seconds): `{}`",
            experiment.key,
            experiment.description.trim(),
            experiment.told_limit.ceil(),
            experiment.command
        );
    }
    let keys: Vec<String> = task.experiments.iter().map(|experiment| format!("\"{}\"", experiment.key)).collect();
    let _ = write!(
        text,
        "\n## The answer\n\nRun every experiment with the finished code, then write one JSON object to `/workspace/answer.json`. It has \
         one entry for each experiment, under the keys {}, and each entry has the shape that the experiment's description asks \
         for. Give numbers, unrounded. Report what the code prints: it is run again by others, and what it does \
         not bear out counts as failed.\n",
        keys.join(", ")
    );
    text
}

fn configuration(
    source: &ExportSource,
    (sample, functions): (&str, &[usize]),
    experiments: &[TaskExperiment],
    loaded: &LoadedPaper,
) -> Result<String> {
    let seconds = |place: usize| (experiments[place].time_limit + 5.0) * runs(&loaded.paper.experiments[place]) as f64;
    let verify: f64 = loaded.tests(functions).into_iter().map(seconds).sum::<f64>() + BESIDE;
    let limits = source.run.configuration.limits;
    let value = json!({
        "schema_version": SCHEMA,
        "artifacts": ["/workspace"],
        "task": {
            "name": format!("autoexperiment/{}", folder_name(sample)),
            "description": format!("missing code of \"{}\" is to be written again: {} of its functions or parts of them", loaded.paper.title, functions.len()),
            "keywords": ["replication", "machine-learning"],
        },
        "metadata": { "paper": loaded.paper.id, "sample": sample, "masked_lines": loaded.masked_lines(functions) },
        "agent": { "timeout_sec": limits.seconds.max(LEAST_AGENT) },
        "environment": { "workdir": "/workspace", "network_mode": "no-network" },
        "verifier": {
            "timeout_sec": verify,
            "environment_mode": "separate",
            "environment": { "network_mode": "no-network" },
        },
    });
    toml::to_string(&value).map_err(|error| Error::internal("failed to write a task's configuration").because(error))
}

fn pretty(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(value).map_err(|error| Error::internal("failed to write a task").because(error))
}

fn save(path: &Path, bytes: &[u8]) -> Result<()> {
    WholeFile::create_with_folders(path)?.filled(bytes)?.finish().map(drop)
}

/// Writes an executable file.
fn script(path: &Path, text: &str) -> Result<()> {
    save(path, text.as_bytes())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).map_err(|error| Error::io("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masked::guard::tests::{
        HIDDEN, KEPT_OUT, KEPT_OUT_BESIDE_HIDDEN, PROTECTED, TAKEN, TAKEN_BESIDE_HIDDEN, example,
        example_with_hidden_tests,
    };
    use crate::score::{Expected, Rule, Tolerance, score_answer, score_experiment, score_results};

    /// Evaluates the Python expression `code`, which can use the verifier (module `verify`) and the variable `asked`.
    /// Returns its value.
    fn run(code: &str, asked: &Value) -> Value {
        let mut child = std::process::Command::new("/usr/bin/python3")
            .args(["-c", &format!("import json, sys, verify\nasked = json.load(sys.stdin)\nprint(json.dumps({code}))")])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/harbor"))
            .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tolerance"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), asked.to_string().as_bytes()).unwrap();
        let answered = child.wait_with_output().unwrap();
        assert!(answered.status.success());
        serde_json::from_slice(&answered.stdout).unwrap()
    }

    #[test]
    fn the_verifier_of_harbor_tasks_assigns_answers_to_experiments_as_the_harness_does() {
        let experiment = |key: &str, id: &str| Expected {
            id: id.to_owned(),
            key: key.to_owned(),
            gold: Value::Null,
            tolerance: crate::score::Tolerance::default(),
        };
        let experiments = [experiment("Experiment 1", "means"), experiment("Experiment 2", "Power")];
        let listed: Vec<Value> = experiments.iter().map(|it| json!({ "key": it.key, "id": it.id })).collect();
        let mut answers: Vec<Value> = [
            "Experiment 1",
            "experiment_1",
            "experiment2",
            "Experiment #2",
            "EXPERIMENT: 02",
            "1",
            " 2 ",
            "#1",
            "means",
            "MEANS",
            "power",
            "3",
            "experiment",
            "experiment 4294967297",
            "\u{661}",
            "",
        ]
        .map(|key| json!({ key: 7 }))
        .to_vec();
        answers.extend([
            json!({ "1": 1, "Experiment 1": 1.0, "power": true, "2": 1 }),
            json!({ "means": [1, { "a": 2.0 }], "1": [1.0, { "a": 2 }] }),
            json!({ "means": [1], "1": [1, 1] }),
        ]);
        let theirs = run("[verify.placed(one, asked[0]) for one in asked[1]]", &json!([listed, answers]));
        for (answer, theirs) in answers.iter().zip(theirs.as_array().unwrap()) {
            let ours = crate::score::placed_answer(&experiments, Some(&answer.to_string()));
            // `verify.placed` puts answers that match no experiment under the key `null`.
            let theirs: serde_json::Map<_, _> =
                theirs.as_object().unwrap().clone().into_iter().filter(|(key, _)| key != "null").collect();
            assert_eq!(theirs, ours, "{answer}");
        }
    }

    #[test]
    fn harbors_verifier_reads_answers_as_the_harness_does() {
        let gold = json!({ "a": 0.5, "l": [1, { "b": 2.0 }], "n": "NaN" });
        let (id, key) = ("e".to_owned(), "Experiment 1".to_owned());
        let experiments = [Expected { id, key, gold: gold.clone(), tolerance: Tolerance::default() }];
        let right = json!({ "Experiment 1": gold }).to_string();
        let result = |text: &str| format!("{{\"1\": {text}}}");
        let answers = [
            right.clone(),
            format!("\u{feff}  {right}\n"),
            format!("I found:\n```json\n{right}\n```\nThat {{is}} all."),
            format!("{right}\nOr rather {}", result("7")),
            format!("{right}\n{{}}"),
            format!("{{\"cut\": {{\"off\": [1,\n{right}"),
            format!("{{\"cut\": \"{{\n{right}"),
            format!("[{right}]"),
            format!("{right} \"\\"),
            result(r#"{"a": .5, "l": [+1, {"b": 2.}], "n": nan}"#),
            result(r#"{"a": 0.50, "l": [1, {"b": 2e0}], "n": NaN}"#),
            result(r#"{"a": 5_0, "l": [1, {"b": 2}], "n": NaN}"#),
            result(r#"{"a": 1e999, "l": [1, {"b": 2}], "n": NaN}"#),
            result(r#"{"a": "0.5", "l": ["1", {"b": "2"}], "n": "nan"}"#),
            result(r#"{"a": 0.5, "l": "[1, {\"b\": .2e1}]", "n": "NaN"}"#),
            result(r#"{"a": 0.5, "l": [1, "{\"b\": 2}"], "n": "NaN"}"#),
            result(&json!(gold.to_string()).to_string()),
            result(&json!(json!(gold.to_string()).to_string()).to_string()),
            result(r#"{"a": 0.5, "a": 0.5, "l": [1, {"b": 2}], "n": "NaN"}"#),
            result(r#"{"a": 0.5, "a": 0.6, "l": [1, {"b": 2}], "n": "NaN"}"#),
            result(r#"{"a": 0.6, "a": 0.5, "l": [1, {"b": 2, "b": 2.0}], "n": "NaN"}"#),
            result(r#"{"a": 0.5, "l": [true, {"b": 2}], "n": "NaN"}"#),
            result("{'a': 0.5}"),
            result(r#"{"a": 0.5, "l": [1, {"b": 2}], "n": "NaN", "x": "\ud83d\uDE00 \\ud83d"}"#),
            result(r#"{"a": 0.5, "l": [1, {"b": 2}], "n": "NaN", "x": "\ud83d"}"#),
            result(r#"{"a": 0.5, "l": [1, {"b": 2}], "n": "NaN", "\ude00\ud83d": 1}"#),
            result(r#"{"a": 0.5, "l": [1, {"b": 2}], "n": "NaN", "x": ["\uD83D\ud83d\ude00"], "x": 1}"#),
            format!("{right}\n{}", result(r#"{"a": 0.6, "x": "\ud83d"}"#)),
            result(r#"{"a": 0.5, "l": "[1, {\"b\": 2, \"x\": \"\\ud83d\"}]", "n": "NaN"}"#),
            String::new(),
            "{".repeat(5000),
            "\"".to_owned(),
        ];
        let listed: Vec<Value> = experiments.iter().map(|it| json!({ "key": it.key, "id": it.id })).collect();
        let code = "[verify.agrees(asked[0], verify.placed(verify.results_in(text), asked[1]).get('Experiment 1'), asked[2]) \
            for text in asked[3]]";
        let theirs = run(code, &json!([gold, listed, experiments[0].tolerance, answers]));
        let none = crate::score::ExperimentRuns::new();
        let mut seen = std::collections::BTreeSet::new();
        for (place, answer) in answers.iter().enumerate() {
            let ours = score_answer(Rule::Strict, &experiments, Some(answer), &none).pass;
            seen.insert(ours);
            assert_eq!(theirs[place], json!(ours), "{answer:.80}");
        }
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn harbors_verifier_judges_varying_results_as_the_harness_does() {
        let mut random = crate::stats::Uniform::seeded(5);
        let mut draw = |off: f64| {
            let spread = random.next() + random.next();
            json!({ "a": spread + off, "l": [3, (10.0 * random.next()).floor()], "fixed": 0.25, "text": "x" })
        };
        let repeats: Vec<Value> = (0..96).map(|_| draw(0.0)).collect();
        let expected = |id: &str| Expected {
            id: id.to_owned(),
            key: id.to_owned(),
            gold: repeats[0].clone(),
            tolerance: Tolerance { repeats: repeats.clone(), ..Tolerance::default() },
        };
        let experiments = [expected("one"), expected("two")];
        let listed: Vec<Value> = experiments
            .iter()
            .map(|one| json!({ "id": one.id, "key": one.key, "gold": one.gold, "tolerance": one.tolerance }))
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        for (bias, off) in [(0.0, 0.0), (0.0, 0.0), (0.3, 0.3), (1.5, 1.5), (0.0, 2.0)] {
            let runs: crate::score::ExperimentRuns = ["one", "two"]
                .iter()
                .map(|id| ((*id).to_owned(), (0..redraw::RUNS).map(|_| draw(bias)).collect()))
                .collect();
            let answer = json!({ "one": draw(off), "two": draw(off) });
            let verified = score_results(Rule::Strict, &experiments, &runs, &BTreeMap::new()).pass;
            let reported = score_answer(Rule::Strict, &experiments, Some(&answer.to_string()), &runs).pass;
            seen.insert((verified, reported));
            let code =
                "[all(one.values()) for one in [verify.verified_draws(*asked[:3]), verify.reported_draws(*asked)]]";
            let asked = json!([listed, runs, redraw::settings(), answer]);
            assert_eq!(run(code, &asked), json!([verified, reported]), "{bias} {off}");
        }
        assert!(seen.len() > 1, "{seen:?}");
    }

    #[test]
    fn harbors_verifier_judges_equal_runs_odd_repeats_and_markers_as_the_harness_does() {
        let mut random = crate::stats::Uniform::seeded(9);
        let mut draw = || {
            let a = random.next() + random.next() + random.next();
            json!({ "a": a, "b": random.next(), "odd": 0, "k": 10, "x": "NaN" })
        };
        let mut repeats: Vec<Value> = (0..96).map(|_| draw()).collect();
        repeats[40]["odd"] = json!(1);
        let (id, key, gold) = ("e".to_owned(), "e".to_owned(), repeats[0].clone());
        let experiments = [Expected { id, key, gold, tolerance: Tolerance { repeats, ..Tolerance::default() } }];
        let listed =
            json!([{ "id": "e", "key": "e", "gold": experiments[0].gold, "tolerance": experiments[0].tolerance }]);
        let runs: Vec<Value> = (0..redraw::RUNS).map(|_| draw()).collect();
        let (equal, other) = (vec![draw(); redraw::RUNS], draw());
        let with = |rows: &[Value], name: &str, value: Value| -> Vec<Value> {
            let mut rows = rows.to_vec();
            for row in &mut rows {
                row[name] = value.clone();
            }
            rows
        };
        let biased = runs.iter().map(|row| {
            let mut row = row.clone();
            row["a"] = json!(row["a"].as_f64().unwrap() + 1.0);
            row
        });
        let seeded = with(&runs, "b", json!(0.5));
        let tried = [
            (runs.clone(), other.clone(), [true, true]),
            (biased.collect(), other.clone(), [false, true]),
            (equal.clone(), equal[0].clone(), [true, true]),
            (equal.clone(), other.clone(), [true, false]),
            (with(&equal, "a", json!(123)), other.clone(), [false, false]),
            (with(&equal, "k", json!(77)), other.clone(), [false, false]),
            (runs.clone(), with(&equal, "k", json!(77)).swap_remove(0), [true, false]),
            (seeded.clone(), seeded[1].clone(), [true, true]),
            (seeded.clone(), other.clone(), [true, false]),
            (with(&runs, "x", json!("nan")), other.clone(), [true, true]),
            (with(&runs, "x", json!(1)), other.clone(), [false, false]),
        ];
        let asked: Vec<Value> = tried.iter().map(|(runs, told, _)| json!([{ "e": runs }, { "e": told }])).collect();
        let code = "[[verify.verified_draws(asked[0], runs, asked[1])['e'], \
            verify.reported_draws(asked[0], runs, asked[1], told)['e']] for runs, told in asked[2]]";
        let theirs = run(code, &json!([listed, redraw::settings(), asked]));
        for (place, (runs, told, wanted)) in tried.into_iter().enumerate() {
            let runs = crate::score::ExperimentRuns::from([("e".to_owned(), runs)]);
            let answer = json!({ "e": told }).to_string();
            let verified = score_results(Rule::Strict, &experiments, &runs, &BTreeMap::new()).pass;
            let reported = score_answer(Rule::Strict, &experiments, Some(&answer), &runs).pass;
            assert_eq!([verified, reported], wanted, "{place}");
            assert_eq!(theirs[place], json!(wanted), "{place}");
        }
    }

    #[test]
    fn harbors_verifier_compares_integers_and_reals_as_the_harness_does() {
        let (gold, usual) = (json!({ "n": 40, "x": 40.0 }), Tolerance::default());
        let loose = Tolerance { counts: 0.05, ..usual.clone() };
        let tried = [json!({ "n": 40.0, "x": 41 }), json!({ "n": 41, "x": 40 }), json!({ "n": 40, "x": 43 })];
        for (tolerance, wanted) in [(usual, [true, false, false]), (loose, [true, true, false])] {
            let ours: Vec<bool> =
                tried.iter().map(|got| score_experiment("e", &gold, Some(got), &tolerance).pass).collect();
            assert_eq!(ours, wanted);
            let code = "[verify.agrees(asked[0], got, asked[1]) for got in asked[2]]";
            assert_eq!(run(code, &json!([gold, tolerance, tried])), json!(ours));
        }
    }

    #[test]
    fn the_code_of_one_experiment_cannot_change_what_the_verifier_runs_next() {
        let folder = tempfile::tempdir().unwrap();
        let (tests, workspace) = (folder.path().join("tests"), folder.path().join("workspace"));
        for place in [&tests.join("original"), &workspace] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join("data.json"), "{\"x\": 1}").unwrap();
        }
        std::fs::write(workspace.join("new.json"), "{\"x\": 3}").unwrap();
        let experiment = |id: &str, command: &str, file: &str, gold: i32| {
            json!({ "id": id, "key": id, "command": command, "time_limit": 20.0, "result": { "json_file": file },
                "gold": { "x": gold }, "tolerance": { "relative": 0.0, "absolute": 0.0 } })
        };
        let left = format!("/tmp/left-by-harbor-test-{}", std::process::id());
        let forge = format!("touch {left}; echo '{{\"x\": 2}}' | tee data.json > out.json");
        let read = "cat data.json > out.json; cat new.json > two.json";
        // The verifier finds files that an experiment left by their owner. It can do so only if this test runs as root.
        let finds = if nix::unistd::geteuid().is_root() { format!("test ! -e {left} && ") } else { String::new() };
        let read = format!("{finds}{read}");
        let task = json!({ "protected": ["data\\.json"], "left_out": { "names": [], "endings": [] },
            "redraw": redraw::settings(), "experiments": [
            experiment("one", &forge, "out.json", 2), experiment("two", &read, "out.json", 1),
            experiment("three", &read, "two.json", 3)] });
        std::fs::write(tests.join("task.json"), task.to_string()).unwrap();
        let code = "verify.verify(verify.Path(asked[0]), verify.Path(asked[1]))";
        let told = run(code, &json!([tests, workspace]));
        assert_eq!(told[1], json!({ "reward": 0.0, "reported": 0.0, "verified": 1.0 }), "{told}");
    }

    #[test]
    fn experiments_of_harbor_tasks_have_an_empty_home_and_the_variables_of_the_env() {
        let folder = tempfile::tempdir().unwrap();
        // If this folder were the user's home, Python would run these `.pth` lines when it starts, and so forge the
        // result.
        for minor in 8..20 {
            let packages = folder.path().join(format!(".local/lib/python3.{minor}/site-packages"));
            std::fs::create_dir_all(&packages).unwrap();
            std::fs::write(packages.join("x.pth"), "import os; print('{\"x\": 1}', flush=True); os._exit(0)\n")
                .unwrap();
        }
        let command = "test -z \"$(ls -A \"$HOME\")\" && python3 -c 'import os; print({\"x\": os.environ[\"SEED\"]})' | tr \\' \\\"";
        let experiment = json!({ "command": command, "time_limit": 20.0, "result": { "json_line": true },
            "variables": { "SEED": "7" } });
        let told = run("verify.measure.run(asked[0], asked[1])", &json!([experiment, folder.path()]));
        assert_eq!(told, json!({ "result": { "x": "7" } }));
    }

    #[test]
    fn harbors_verifier_ignores_the_same_changes_as_the_harness() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, prefix) = example(folder.path());
        let library = prefix.join("lib/python3.11");
        let globs = PROTECTED.map(str::to_owned);
        let paths: Vec<&str> = KEPT_OUT.iter().chain(&TAKEN).copied().collect();
        let asked = json!([tree, [library, library.join("site-packages")], expressions(&globs), paths]);
        let guard = "verify.Guard(asked[0], verify.compiled(asked[2]), {'names': [], 'endings': []})";
        let library = "setattr(verify, 'folders_of_python', lambda: {verify.Path(folder) for folder in asked[1]})";
        let code = format!("[{library}] and [guard.keeps_out(path) for guard in [{guard}] for path in asked[3]]");
        let ours: Vec<bool> = paths.iter().map(|path| KEPT_OUT.contains(path)).collect();
        assert_eq!(run(&code, &asked), json!(ours));
    }

    #[test]
    fn harbors_verifier_ignores_the_same_files_beside_hidden_tests_as_the_harness() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, prefix) = example_with_hidden_tests(folder.path());
        let library = prefix.join("lib/python3.11");
        let hidden = HIDDEN.map(str::to_owned);
        let protected = [&PROTECTED.map(str::to_owned)[..], &hidden].concat();
        let paths: Vec<&str> = KEPT_OUT_BESIDE_HIDDEN.iter().chain(&TAKEN_BESIDE_HIDDEN).copied().collect();
        let folders = [library.clone(), library.join("site-packages")];
        let asked = json!([tree, folders, expressions(&protected), paths, expressions(&hidden)]);
        let guard = "verify.Guard(asked[0], verify.compiled(asked[2]), {'names': [], 'endings': []}, \
            verify.compiled(asked[4]))";
        let library = "setattr(verify, 'folders_of_python', lambda: {verify.Path(folder) for folder in asked[1]})";
        let code = format!("[{library}] and [guard.keeps_out(path) for guard in [{guard}] for path in asked[3]]");
        let ours: Vec<bool> = paths.iter().map(|path| KEPT_OUT_BESIDE_HIDDEN.contains(path)).collect();
        assert_eq!(run(&code, &asked), json!(ours));
    }

    #[test]
    fn harbors_verifier_matches_globs_as_the_harness_does() {
        let globs =
            ["scripts/*", "**/config.py", "data/**", "a[!b]?.{py,txt}", "[[]x].md", "caf\u{e9}/*.py", "a-b#c.py"];
        let paths = [
            "scripts/run.py",
            "scripts/deep/run.py",
            "config.py",
            "deep/er/config.py",
            "myconfig.py",
            "data",
            "data/x/y.csv",
            "ac1.py",
            "ab1.py",
            "ac1.txt",
            "[x].md",
            "caf\u{e9}/a.py",
            "cafe/a.py",
            "a-b#c.py",
            "scripts/a\nb.py",
            "config.py\n",
        ];
        let code = "[[verify.protects([one], path) for path in asked[1]] for one in verify.compiled(asked[0])]";
        let theirs = run(code, &json!([expressions(&globs.map(str::to_owned)), paths]));
        let theirs: Vec<Vec<bool>> = serde_json::from_value(theirs).unwrap();
        for (glob, theirs) in globs.iter().zip(theirs) {
            let matcher = globset::Glob::new(glob).unwrap().compile_matcher();
            for (path, theirs) in paths.iter().zip(theirs) {
                assert_eq!(theirs, matcher.is_match(path), "{glob} {path:?}");
            }
        }
    }
}
