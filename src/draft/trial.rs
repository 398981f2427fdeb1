//! The first run of an experiment's command, which shows whether the command works in the sandbox and how to read its
//! result.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::command::RequestedExperiment;
use super::metadata::scripts;
use super::result::{guess, values};
use crate::env::Env;
use crate::error::{Error, FailureKind, Result};
use crate::run::machine::Machine;
use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, Spec};
use crate::score::read_result;
use crate::suite::{Protocol, ResultRule};
use crate::workspace::{ChangeKind, ChangeLimits, FileChange, Snapshot, Workspace};

/// Maximum bytes quoted from the end of each output stream.
const SHOWN: usize = 1500;

/// Results of the first run of an experiment's command, if it succeeded.
#[derive(Debug, Clone)]
pub struct TrialResult {
    /// The rule for reading the result.
    pub rule: ResultRule,
    /// The experiment's result.
    pub value: Value,
    /// Wall-clock seconds of the run.
    pub seconds: f64,
    /// Path of the result file, if the repo already contained this file and the run overwrote it.
    pub overwrote: Option<String>,
}

/// The data that the first runs of all experiments of a paper share.
pub struct TrialSetup<'a> {
    /// The paper's id, for messages.
    pub paper: &'a str,
    /// Snapshot of the repo.
    pub snapshot: &'a Snapshot,
    /// The paper's env.
    pub env: &'a Env,
    /// Files that were left out of the repo, with the reason.
    pub left_out: &'a BTreeMap<PathBuf, &'static str>,
    /// This machine's sandboxes and limits.
    pub machine: &'a Machine,
    /// Time limit of one command.
    pub limit: Duration,
}

/// Runs a command with its curtailed parameters (those of the shortened experiment) on a new copy of the repo.
///
/// # Errors
/// Kind `Baseline`, with paper, experiment and hint, if the command fails, takes too long, or gives no readable result;
/// other kinds for failures of the machine.
pub async fn try_command(wanted: &RequestedExperiment, place: &TrialSetup<'_>) -> Result<TrialResult> {
    let machine = place.machine;
    let backend = &machine.backend;
    let gpu = machine.graphics.take().await?;
    let workspace = Workspace::create(place.snapshot, &[], &machine.scratch.next(), backend.layers(), backend.owner())?;
    let spec = Spec {
        layers: workspace.layers().clone(),
        read_only: place.env.read_only.clone(),
        sealed: Vec::new(),
        hidden: machine.hidden.clone(),
        variables: place.env.variables.clone(),
        limits: machine.limits,
        gpu: gpu.as_ref().map(|lease| lease.gpu().clone()),
    };
    let line = wanted.command_line(Protocol::Curtailed).map_err(Error::usage)?;
    let limits =
        ExecLimits { wall: place.limit, patience: Duration::ZERO, grace: Duration::from_secs(2), output: 4 << 20 };
    let lost = |fault: Fault| Error::new(FailureKind::Infrastructure, "the sandbox was lost").because(fault);
    let mut sandbox = backend.start(&spec).await?;
    let exec = match sandbox.exec(&Command::shell(&line), &limits).await {
        Ok(exec) => exec,
        Err(Fault::Refused(why)) => return Err(place.fault(wanted, &why, "run it by hand, in a copy of the repo")),
        Err(fault) => return Err(lost(fault)),
    };
    sandbox.destroy().await.map_err(lost)?;
    let changes = workspace.changes(&ChangeLimits::default())?;
    workspace.remove()?;
    if let Some((why, hint)) = failure(&exec, &line, place) {
        return Err(place.fault(wanted, &why, &hint));
    }
    let written: Vec<&FileChange> =
        changes.files.iter().filter(|change| matches!(change.kind, ChangeKind::Added | ChangeKind::Modified)).collect();
    let found = |file: &str| written.iter().find(|change| change.path == file);
    let (rule, value) = if let Some(rule) = &wanted.result {
        let file = if let ResultRule::JsonFile(file) = rule { found(file) } else { None };
        let value = read_result(rule, &exec.stdout, file.map(|change| change.bytes.as_slice()))
            .map_err(|why| place.fault(wanted, &why, "correct its result rule"))?;
        if values(&value) == 0 {
            return Err(place.fault(wanted, "its result contains no number", "correct its result rule"));
        }
        (rule.clone(), value)
    } else {
        let files: Vec<(&str, &[u8])> =
            written.iter().map(|change| (change.path.as_str(), change.bytes.as_slice())).collect();
        guess(&wanted.id, &exec.stdout, &files).map_err(|found| place.fault(wanted, &found.why, &found.hint))?
    };
    let overwrote = match &rule {
        ResultRule::JsonFile(file) => {
            found(file).filter(|change| change.kind == ChangeKind::Modified).map(|change| change.path.clone())
        }
        ResultRule::JsonLine(_) | ResultRule::Regex(_) => None,
    };
    Ok(TrialResult { rule, value, seconds: exec.wall.as_secs_f64(), overwrote })
}

impl TrialSetup<'_> {
    fn fault(&self, wanted: &RequestedExperiment, why: &str, hint: &str) -> Error {
        Error::new(FailureKind::Baseline, format!("paper `{}`, experiment `{}`: {why}", self.paper, wanted.id))
            .hint(hint)
    }
}

/// Returns why a command failed, and what the user should do; `None` if it succeeded.
fn failure(exec: &Exec, line: &str, place: &TrialSetup<'_>) -> Option<(String, String)> {
    let last = |bytes: &[u8]| tail(String::from_utf8_lossy(bytes).trim_end());
    let (stdout, stderr) = (last(&exec.stdout), last(&exec.stderr));
    // Quote stdout too, because test runners report failures there.
    let said = match (stdout.is_empty(), stderr.is_empty()) {
        (true, _) => stderr.clone(),
        (false, true) => format!("its output ends with:\n{stdout}"),
        (false, false) => format!("{stderr}\nits output ends with:\n{stdout}"),
    };
    let why = match exec.exit {
        Exit::Code(0) => return None,
        Exit::TimedOut => {
            return Some((
                format!("`{line}` did not end within {} s", place.limit.as_secs_f64()),
                "give it smaller curtailed parameters, such as `{n=full:1000,curtailed:50}`, or more time with \
                 `--time-limit SECONDS`; a program that waits for input or a window never ends"
                    .to_owned(),
            ));
        }
        Exit::Code(code) => format!("`{line}` ended with exit code {code}\n{said}"),
        Exit::Signal(signal) => format!("`{line}` was killed by signal {signal}\n{said}"),
        Exit::DiskFull => format!("`{line}` wrote more than the disk limit"),
    };
    let hint = script(&stderr, place.snapshot.tree());
    let said = format!("{stdout}\n{stderr}");
    let hint = hint.unwrap_or_else(|| next_step(&said, place.snapshot.tree(), place.left_out));
    Some((why.trim_end().to_owned(), hint))
}

/// Returns a hint if the command was not found because it is a console script of the repo. Such scripts do not exist,
/// because the repo is not installed.
fn script(stderr: &str, tree: &Path) -> Option<String> {
    static UNKNOWN: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?m)([A-Za-z0-9_.-]+): (?:command )?not found").ok());
    let name = UNKNOWN.as_ref()?.captures(stderr)?.get(1)?.as_str();
    call_of(name, tree)
}

/// Rejects commands that begin with a console script of the repo, because the repo is not installed. Called before the
/// env is built.
///
/// # Errors
/// Kind `Usage`, listing all such commands.
pub fn refuse_scripts(wanted: &[RequestedExperiment], tree: &Path) -> Result<()> {
    let faults = wanted.iter().filter_map(|one| {
        let mut words = one.command.split_whitespace();
        let name = words.find(|word| word.split_once('=').is_none_or(|(name, _)| name.contains(['/', '.', '-'])))?;
        let hint = call_of(name, tree)?;
        Some(Error::usage(format!("experiment `{}` runs `{name}`, which does not exist", one.id)).hint(hint))
    });
    Error::all(faults.collect()).map_or(Ok(()), Err)
}

/// Programs that packages install, each with its package. If a command runs such a program, the env must contain the
/// package, even if the repository does not declare it as a dependency.
const RUNNERS: [(&str, &str); 9] = [
    ("pytest", "pytest"),
    ("py.test", "pytest"),
    ("nose2", "nose2"),
    ("nosetests", "nose"),
    ("coverage", "coverage"),
    ("asv", "asv"),
    ("torchrun", "torch"),
    ("papermill", "papermill"),
    ("jupyter", "jupyter"),
];

/// Rejects commands that name files which were left out of the repo. Called before anything is built.
///
/// # Errors
/// Kind `Usage`, listing all such commands.
pub fn refuse_left_out(
    wanted: &[RequestedExperiment],
    tree: &Path,
    left_out: &BTreeMap<PathBuf, &'static str>,
) -> Result<()> {
    let faults = wanted.iter().filter_map(|one| {
        let words = one.command.split(|c: char| c.is_whitespace() || ";&|()\"'=:".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let is_test = words.iter().any(|word| TEST_RUNNERS.contains(word));
        let named = words.iter().find_map(|word| {
            let path = Path::new(word.trim_start_matches("./"));
            // In the command of a test runner, every word may be a path. In other commands, a word without a slash or a
            // dot is not taken for a path: it may be an argument that happens to be the name of a folder.
            let is_path = is_test || word.contains(['/', '.']);
            let is_meant = is_path && !path.as_os_str().is_empty() && !tree.join(path).exists();
            left_out.iter().find(|(folder, _)| is_meant && path.starts_with(folder))
        });
        // A test runner without a path runs all tests that it finds. If the repo's tests were left out, it finds none.
        let all = || {
            let is_there = words.iter().any(|word| is_python(Path::new(word)) && tree.join(word).exists());
            left_out.iter().find(|(_, why)| is_test && **why == "tests" && !is_there && !has_tests(tree))
        };
        let (path, why) = named.or_else(all)?;
        let path = path.display();
        Some(
            Error::usage(format!("experiment `{}` uses `{path}`, which was left out of the repo ({why})", one.id))
                .hint(format!("include it with `--keep '{path}'`; agents can then read it")),
        )
    });
    Error::all(faults.collect()).map_or(Ok(()), Err)
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// Programs and modules that run tests.
const TEST_RUNNERS: [&str; 5] = ["pytest", "py.test", "unittest", "nose2", "nosetests"];

/// Whether a folder contains files that test runners would run.
fn has_tests(tree: &Path) -> bool {
    walkdir::WalkDir::new(tree).into_iter().flatten().any(|entry| {
        let stem = entry.path().file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        is_python(entry.path()) && (stem.starts_with("test") || stem.ends_with("_test"))
    })
}

/// Rejects commands that run a program whose package the env's files do not name. Called before the env is built. `env`
/// is the text of these files.
///
/// # Errors
/// Kind `Usage`, listing all such commands.
pub fn refuse_missing_runners(wanted: &[RequestedExperiment], env: &str) -> Result<()> {
    let env = env.to_lowercase();
    let faults = wanted.iter().filter_map(|one| {
        let words: Vec<&str> = one
            .command
            .split(|c: char| c.is_whitespace() || ";&|()".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        let (runner, package) = RUNNERS.into_iter().find(|(runner, package)| {
            let is_run = |(place, word): (usize, &&str)| {
                let before = place.checked_sub(1).map(|before| words[before]);
                let begins = before.is_none_or(|word| word == "-m" || word.contains('=') || word == "exec");
                word == runner && begins
            };
            words.iter().enumerate().any(is_run) && !env.contains(package)
        })?;
        Some(
            Error::usage(format!("experiment `{}` runs `{runner}`, but the env has no package `{package}`", one.id))
                .hint(format!(
                    "add it to the packages, as in `--requirements ...,{package}`, or to the environment file"
                )),
        )
    });
    Error::all(faults.collect()).map_or(Ok(()), Err)
}

/// Suggests the Python call to use in place of a console script of the repo.
fn call_of(name: &str, tree: &Path) -> Option<String> {
    let target = scripts(tree).remove(name)?;
    let (module, function) = target.split_once(':')?;
    let top = module.split('.').next()?;
    let folder = home(tree, top).map_or_else(|| ".".to_owned(), |path| path.display().to_string());
    Some(format!(
        "`{name}` is a console script of the repo, which is not installed: write `PYTHONPATH={folder}:$PYTHONPATH python \
         -c 'import sys; from {module} import {function}; sys.exit({function}())'` instead"
    ))
}

/// Returns the folder of the repo that must be on `PYTHONPATH` so that Python can import a module. If several folders
/// contain such a module, a package with an `__init__.py` takes precedence.
fn home(tree: &Path, module: &str) -> Option<PathBuf> {
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name == module);
    let mut found: Vec<(u8, usize, PathBuf)> = Vec::new();
    for entry in walkdir::WalkDir::new(tree).min_depth(1).sort_by_file_name().into_iter().flatten() {
        let Ok(path) = entry.path().strip_prefix(tree) else { continue };
        let rank = if entry.file_type().is_dir() && is_it(path) {
            if entry.path().join("__init__.py").exists() { 0 } else { 2 }
        } else if path.ends_with(format!("{module}.py")) {
            1
        } else {
            continue;
        };
        found.push((rank, entry.depth(), path.to_owned()));
    }
    let (_, _, path) = found.into_iter().min()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(folder.unwrap_or(Path::new(".")).to_owned())
}

/// Suggests what the user should do about a failed command, judging by its error output.
fn next_step(stderr: &str, tree: &Path, left_out: &BTreeMap<PathBuf, &'static str>) -> String {
    static MISSING: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"No module named '?([A-Za-z0-9_.]+)'?").ok());
    let module = MISSING.as_ref().and_then(|regex| Some(regex.captures_iter(stderr).last()?.get(1)?.as_str()));
    if let Some(module) = module {
        let top = module.split('.').next().unwrap_or(module);
        let is_it =
            |path: &Path| path.file_name().is_some_and(|name| name == top) || path.ends_with(format!("{top}.py"));
        if let Some(path) = left_out.keys().find(|path| is_it(path)) {
            return format!("`{}` was left out of the repo: include it with `--keep {0}`", path.display());
        }
        if let Some(folder) = home(tree, top) {
            let file = PathBuf::from(format!("{top}.py"));
            let below = if tree.join(&folder).join(top).exists() { PathBuf::from(top) } else { file };
            let path = if folder == Path::new(".") { below } else { folder.join(below) };
            let inner = tree.join(&folder).join(module.replace('.', "/"));
            if !module.contains('.') || inner.exists() || inner.with_extension("py").exists() {
                return format!(
                    "`{top}` is in the repo, at `{}`: begin the command with `PYTHONPATH={}:$PYTHONPATH`",
                    path.display(),
                    folder.display()
                );
            }
            return format!("`{}` is in the repo, but has no `{module}`", path.display());
        }
        return format!("the env has no `{top}`: add the package that contains it to `--requirements`");
    }
    let mut hint = "run it by hand, in a copy of the repo and without network".to_owned();
    let names: Vec<String> = left_out
        .keys()
        .filter(|path| stderr.contains(path.display().to_string().as_str()) || stderr.contains("No such file"))
        .map(|path| format!("`{}`", path.display()))
        .collect();
    if !names.is_empty() {
        let _ = write!(hint, "; left out of the repo were {} (`--keep GLOB` includes one)", names.join(", "));
    }
    hint
}

/// Returns the end of a text, beginning with a whole line if possible.
fn tail(text: &str) -> String {
    let mut start = text.len().saturating_sub(SHOWN);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let part = &text[start..];
    let cut = if start > 0 { part.split_once('\n').map_or(part, |(_, rest)| rest) } else { part };
    cut.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repo_is_searched_for_a_missing_module_before_a_package_is_suggested() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in ["src/inner/__init__.py", "helper.py"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        let left_out = BTreeMap::from([(PathBuf::from("tests"), "tests")]);
        let step =
            |module: &str| next_step(&format!("ModuleNotFoundError: No module named '{module}'"), root, &left_out);
        assert_eq!(
            step("inner"),
            "`inner` is in the repo, at `src/inner`: begin the command with `PYTHONPATH=src:$PYTHONPATH`"
        );
        assert!(step("helper").contains("`PYTHONPATH=.:$PYTHONPATH`"));
        // Here, the folder `libs/deep`, which is not a package, has the same name as the package `libs/deep/src/deep`.
        for file in ["libs/deep/README", "libs/deep/src/deep/__init__.py", "libs/deep/src/deep/core.py"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "").unwrap();
        }
        for module in ["deep", "deep.core"] {
            assert!(
                step(module).contains("at `libs/deep/src/deep`: begin the command with `PYTHONPATH=libs/deep/src:")
            );
        }
        std::fs::write(root.join("pyproject.toml"), "[project.scripts]\ndig = 'deep.core:main'\n").unwrap();
        let dig = script("sh: 1: dig: not found", root).unwrap();
        assert!(
            dig.contains("`PYTHONPATH=libs/deep/src:$PYTHONPATH python -c 'import sys; from deep.core import main;"),
            "{dig}"
        );
        assert_eq!(script("sh: 1: other: not found", root), None);
        let wanted = |command: &str| [crate::draft::command::parse(&format!("one={command}")).unwrap()];
        let refused = refuse_scripts(&wanted("A=1 dig --deep"), root).unwrap_err();
        assert_eq!(refused.message, "experiment `one` runs `dig`, which does not exist");
        assert!(refuse_scripts(&wanted("python dig.py"), root).is_ok());
        assert_eq!(step("inner.gone"), "`src/inner` is in the repo, but has no `inner.gone`");
        assert_eq!(step("tests.tools"), "`tests` was left out of the repo: include it with `--keep tests`");
        assert!(step("torch").contains("the env has no `torch`"));
        assert!(next_step("No module named torch", root, &left_out).contains("`torch`"));
        assert!(next_step("No such file or directory", root, &left_out).contains("`--keep GLOB`"));
        assert!(!next_step("ValueError", root, &left_out).contains("--keep"));
    }

    #[test]
    fn commands_that_need_left_out_tests_or_a_missing_pytest_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = |command: &str| [crate::draft::command::parse(&format!("one={command}")).unwrap()];
        let left_out = BTreeMap::from([(PathBuf::from("tests"), "tests"), (PathBuf::from("a/test_b.py"), "tests")]);
        let lacks =
            |command: &str| refuse_left_out(&wanted(command), folder.path(), &left_out).map_err(|it| it.message);
        for command in [
            "python -m pytest tests/test_a.py::test_x",
            "cd . && pytest ./tests",
            "python a/test_b.py",
            "python -m pytest -q",
            "python -m unittest",
        ] {
            assert!(lacks(command).unwrap_err().contains("was left out of the repo (tests)"), "{command}");
        }
        for command in ["python run.py --tests 3", "python run.py --split tests", "python testsuite.py"] {
            assert_eq!(lacks(command), Ok(()), "{command}");
        }
        let runs = |command: &str, env: &str| refuse_missing_runners(&wanted(command), env).map_err(|it| it.message);
        for command in ["pytest -q", "A=1 py.test", "python -m pytest x", "cd a && python3 -m pytest"] {
            assert!(runs(command, "numpy==2.0").unwrap_err().contains("no package `pytest`"), "{command}");
            assert_eq!(runs(command, "  - pytest-xdist==3"), Ok(()), "{command}");
        }
        assert_eq!(runs("python pytest.py --runner pytest", "numpy"), Ok(()));
    }

    #[test]
    fn a_long_message_is_shortened_to_its_end_beginning_with_a_whole_line() {
        let text = "first é\n".repeat(400) + "last";
        let cut = tail(&text);
        assert!(cut.starts_with("first") && cut.ends_with("last") && cut.len() <= SHOWN, "{cut}");
        assert_eq!(tail("short"), "short");
    }
}
