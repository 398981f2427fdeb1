//! Runs a program in a sandbox and records everything that is judged: how it ended, the arguments parsed by its
//! parsers, the functions it called with their arguments, the programs it started, and its result.
//!
//! The recorder runs inside the program's own Python processes, so a program written for this purpose can forge a
//! record. Three measures make this harder. Only the entries on files and functions that the instruction's gold program
//! uses are compared with gold. The repo's files must be unchanged. And the program's result is compared as well, also
//! in a second run, in a fresh sandbox, with an argument changed (see [`Shift`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::argv::{self, StartedProgram};
use super::calls::{FunctionCall, RecordedCalls, WatchedFunctions};
use super::manifest::{CommandSet, Instruction};
use super::program::{Program, file_name};
use crate::run::check::tail;
use crate::sandbox::{Command, ExecLimits, Exit, Fault, Sandbox, patience, stop_signal};
use crate::score::ml_bench::ProgramKind;
use crate::score::{last_json_line, read_result};
use crate::suite::ResultRule;

/// Source of the recorder, a module that Python imports when it starts.
const RECORDER: &str = include_str!("recorder.py");
/// Folder of the recorder and its output, in the workspace of verification.
const FOLDER: &str = ".recorder";
/// File name of the record in [`FOLDER`].
const RECORD_FILE: &str = "record.jsonl";
/// File name of Bash's trace in [`FOLDER`].
const TRACE_FILE: &str = "bash.trace";
/// Maximum bytes of output and of a result file.
const OUTPUT: usize = 4 << 20;
/// Maximum bytes that are read of the record, and of Bash's trace.
const RECORD: u64 = 4 << 20;
/// Starts a program with the folder of the `python` wrappers first in `PATH`.
const LAUNCH: &str = r#"chmod +x "$0"/*; PATH="$0:$PATH" exec "$@""#;

/// The record of a program's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Source text of the program.
    pub code: String,
    /// Whether the program was run as a Python or a Bash program.
    pub kind: ProgramKind,
    /// How the program ended.
    pub exit: Exit,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Whether the program's text can be parsed; checked only after a failure.
    pub parses: bool,
    /// The end of standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// Arguments parsed by the program's parsers, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ParserCall>,
    /// The program's calls of the functions that verification compares with gold. `None` in records that early versions
    /// of the harness wrote, which did not record calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Vec<FunctionCall>>,
    /// Digests of the objects that the calls in `functions` made, received and returned.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub objects: BTreeSet<String>,
    /// Digests of the objects that the program itself, not the repo's code, passed to calls.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub used: BTreeSet<String>,
    /// Other programs that the program started. They are recorded only if the instruction's verdict compares them with
    /// those that the gold program starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub started: Vec<StartedProgram>,
    /// The program's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// Why the program has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_outcome: Option<String>,
    /// Whether the program wrote more than the harness reads of the record, so that its calls are unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record_too_large: bool,
    /// The program's result in a second run with one argument changed, or why it has none. In results of attempts, only
    /// earlier versions of the harness set this field: now the second run is a check of its own, with its own entry in
    /// the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shifted: Option<Result<Value, String>>,
}

impl ProgramRecord {
    /// Returns the recorded function calls, to be compared with gold; `None` if [`ProgramRecord::functions`] is `None`.
    #[must_use]
    pub fn recorded_calls(&self) -> Option<RecordedCalls<'_>> {
        let (objects, used, is_script) = (&self.objects, &self.used, self.kind == ProgramKind::Bash);
        Some(RecordedCalls { calls: self.functions.as_ref()?, objects, used, is_script })
    }
}

/// Arguments parsed by a parser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParserCall {
    /// The file that called the parser: its path in the repo, or the path from `site-packages/` on.
    pub file: String,
    /// All arguments by name.
    pub parsed: Map<String, Value>,
    /// Arguments unknown to the parser.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<Value>,
}

/// Returns the installed package of a file that is given as in [`ParserCall::file`]; `None` for a file of the repo, and
/// for a module that is not in a package.
pub(super) fn package(file: &str) -> Option<&str> {
    let (package, _) = file.strip_prefix("site-packages/")?.split_once('/')?;
    Some(package)
}

/// An argument that the recorder changes in a second run, when the program passes the argument to the repo's code. The
/// program cannot know the change in advance. If the program really uses the argument as its record says, its result is
/// then the same as that of the gold program with the same change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shift {
    /// The function that gets the argument, or the file that calls a parser. For a file of an installed package, the
    /// argument is also changed if another file of the package calls a parser.
    pub at: String,
    /// Name of the argument.
    pub name: String,
    /// The argument's value in the gold program.
    pub old: Value,
    /// The new value.
    pub new: Value,
}

/// The parts of a run to record.
#[derive(Debug, Clone)]
pub struct RecordingPlan<'a> {
    /// The repo's instructions.
    pub set: &'a CommandSet,
    /// The functions to record. `None` to record all functions that the program calls, as is done for gold programs in
    /// Python.
    pub watch: Option<WatchedFunctions>,
    /// Whether to record the programs that the program starts.
    pub started: bool,
    /// Whether to end the program as soon as one of its parsers has parsed arguments.
    pub stops: bool,
    /// An argument to change in a second run.
    pub shift: Option<&'a Shift>,
    /// The argument to change in this run.
    pub shifts: Option<&'a Shift>,
}

/// A line of a record.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordLine {
    Parsed(ParserCall),
    Function(FunctionCall),
    Object(ObjectDigest),
    Process(argv::PythonProcess),
}

/// The digest of an object, see [`FunctionCall::object`].
#[derive(Deserialize)]
struct ObjectDigest {
    digest: String,
    /// Line number, in the record, of the call that made or returned the object; `None` for an object that was passed
    /// to a call.
    of: Option<usize>,
}

/// Runs a program in the instruction's folder with the instruction's time limit, and records the run.
///
/// # Errors
/// [`Fault::Lost`] if the sandbox died.
pub async fn observe(
    sandbox: &mut dyn Sandbox,
    program: &Program,
    instruction: &Instruction,
    plan: &RecordingPlan<'_>,
) -> Result<ProgramRecord, Fault> {
    let folder = Path::new(&instruction.path);
    let file = file_name(program.kind);
    let wall = Duration::try_from_secs_f64(instruction.time_limit).unwrap_or(Duration::from_hours(1));
    let limits = ExecLimits { wall, patience: patience(wall), grace: Duration::from_secs(2), output: OUTPUT };
    let variables = plan.install(sandbox, &folder.join(file)).await?;
    sandbox.write(&folder.join(file), program.code.as_bytes()).await?;
    for name in [RECORD_FILE, TRACE_FILE] {
        sandbox.write(&Path::new(FOLDER).join(name), b"").await?;
    }
    let interpreter = if program.kind == ProgramKind::Bash { "bash" } else { "python" };
    let run = |arguments: &[&str]| Command {
        argv: std::iter::once(interpreter).chain(arguments.iter().copied()).map(Into::into).collect(),
        cwd: folder.to_owned(),
        ..Command::default()
    };
    let wrappers = sandbox.workdir().join(FOLDER).join("bin").display().to_string();
    let launched = ["sh", "-c", LAUNCH, &wrappers, interpreter, file].map(Into::into).into();
    let command = Command { variables, argv: launched, ..run(&[]) };
    let exec = stop_signal::exec(sandbox, &command, &limits).await?;
    let succeeded = exec.exit == Exit::Code(0);
    let parses = succeeded || {
        let check = match program.kind {
            ProgramKind::Bash => run(&["-n", file]),
            ProgramKind::Python => run(&["-c", &format!("import ast; ast.parse(open({file:?}, 'rb').read())")]),
        };
        stop_signal::exec(sandbox, &check, &limits).await?.exit == Exit::Code(0)
    };
    let record = read_record(sandbox, RECORD_FILE).await?;
    let trace = if plan.started { read_record(sandbox, TRACE_FILE).await? } else { Some(Vec::new()) };
    let record_too_large = record.is_none() || trace.is_none();
    let (lines, trace) = (record.unwrap_or_default(), trace.unwrap_or_default());
    let lines = lines.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let (mut calls, mut functions, mut processes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut objects, mut used, mut made) =
        (BTreeSet::new(), BTreeSet::new(), BTreeMap::<usize, BTreeSet<String>>::new());
    for line in lines {
        match line {
            RecordLine::Parsed(call) => calls.push(call),
            RecordLine::Function(call) => functions.push(call),
            RecordLine::Object(ObjectDigest { digest, of }) => {
                objects.insert(digest.clone());
                match of {
                    Some(of) => made.entry(of).or_default().insert(digest),
                    None => used.insert(digest),
                };
            }
            RecordLine::Process(process) => processes.push(process),
        }
    }
    for call in &mut functions {
        let made = call.number.and_then(|number| made.remove(&number)).filter(|made| made.len() == 1);
        call.object = made.and_then(|made| made.into_iter().next());
    }
    let started = if plan.started { argv::started(&String::from_utf8_lossy(&trace), &processes) } else { Vec::new() };
    let read = if instruction.files.is_empty() {
        let written = match &instruction.result {
            ResultRule::JsonFile(path) => read_file(sandbox, &folder.join(path)).await?,
            ResultRule::JsonLine(_) | ResultRule::Regex(_) => None,
        };
        read_result(&instruction.result, &exec.stdout, written.as_deref())
    } else {
        // Run Python isolated (`-I`), so that files left by the program cannot replace modules.
        let start = ["-I", "-c", &plan.set.probe].into_iter().chain(instruction.files.iter().map(String::as_str));
        let command = Command { argv: std::iter::once("python").chain(start).map(Into::into).collect(), ..run(&[]) };
        let probed = stop_signal::exec(sandbox, &command, &limits).await?;
        last_json_line(&probed.stdout).ok_or_else(|| format!("its files cannot be read: {}", tail(&probed.stderr)))
    };
    let (outcome, no_outcome) = match read {
        Ok(outcome) => (Some(outcome), None),
        Err(reason) => (None, Some(reason)),
    };
    Ok(ProgramRecord {
        code: program.code.clone(),
        kind: program.kind,
        exit: exec.exit,
        seconds: crate::run::round(exec.wall.as_secs_f64()),
        parses,
        stderr: tail(&exec.stderr),
        calls,
        functions: Some(functions),
        objects,
        used,
        started,
        outcome,
        no_outcome,
        record_too_large,
        shifted: None,
    })
}

/// Runs a program again, with the argument `shift` changed. The sandbox must be a fresh one, because files that the
/// first run left could change what the program does. Returns the program's result, or why it has none.
///
/// # Errors
/// Same as [`observe`].
pub(super) async fn observe_shifted(
    sandbox: &mut dyn Sandbox,
    program: &Program,
    instruction: &Instruction,
    plan: &RecordingPlan<'_>,
    shift: &Shift,
) -> Result<Result<Value, String>, Fault> {
    let again = observe(sandbox, program, instruction, &RecordingPlan { shifts: Some(shift), ..plan.clone() }).await?;
    let reason = again.no_outcome.unwrap_or_else(|| format!("the program ended with {:?}", again.exit));
    Ok(again.outcome.filter(|_| again.exit == Exit::Code(0)).ok_or(reason))
}

impl<'a> RecordingPlan<'a> {
    /// Returns a copy of the plan with which the program ends as soon as one of its parsers has parsed arguments, and
    /// is not run a second time with a changed argument.
    #[must_use]
    pub fn stopping(&self) -> Self {
        Self { stops: true, shift: None, ..self.clone() }
    }

    /// Returns the plan with which a gold program is run to find out which calls it makes.
    #[must_use]
    pub(super) fn of_gold(set: &'a CommandSet, kind: ProgramKind) -> Self {
        let named = || set.functions.iter().map(|name| (name.clone(), None)).collect();
        let watch = (kind == ProgramKind::Bash).then(named);
        Self { set, watch, started: kind == ProgramKind::Bash, stops: false, shift: None, shifts: None }
    }

    /// Writes the recorder into the workspace. Returns the environment variables for starting the program.
    async fn install(&self, sandbox: &mut dyn Sandbox, program: &Path) -> Result<BTreeMap<String, String>, Fault> {
        let root = sandbox.workdir().to_owned();
        let folder = root.join(FOLDER);
        let plan = serde_json::json!({
            "out": folder.join(RECORD_FILE),
            "root": root,
            "program": root.join(program),
            "packages": self.set.packages,
            "functions": self.watch.as_ref().is_none_or(|watch| !watch.is_empty()),
            "watch": self.watch,
            "stops": self.stops,
            "shift": self.shifts,
        });
        let within = Path::new(FOLDER);
        sandbox.write(&within.join("sitecustomize.py"), RECORDER.as_bytes()).await?;
        sandbox.write(&within.join("plan.json"), plan.to_string().as_bytes()).await?;
        let shown = folder.display().to_string();
        let file = folder.join("plan.json").display().to_string();
        // A program may change environment variables, so the `python` wrappers set the recorder's variables again.
        let wrapper = format!(
            "#!/bin/sh\nexport AUTOEXPERIMENT_RECORDER='{file}' PYTHONPATH=\"{shown}${{PYTHONPATH:+:$PYTHONPATH}}\"\n\
             real=$(PATH=${{PATH#*'{shown}/bin':}} command -v \"${{0##*/}}\") && exec \"$real\" \"$@\"\n"
        );
        for name in ["python", "python3"] {
            sandbox.write(&within.join("bin").join(name), wrapper.as_bytes()).await?;
        }
        let mut variables =
            BTreeMap::from([("PYTHONPATH".to_owned(), shown.clone()), ("AUTOEXPERIMENT_RECORDER".to_owned(), file)]);
        if self.started {
            let trace = argv::tracer(&folder.join(TRACE_FILE));
            sandbox.write(&within.join("trace.sh"), trace.as_bytes()).await?;
            variables.insert("BASH_ENV".to_owned(), format!("{shown}/trace.sh"));
        }
        Ok(variables)
    }
}

/// Reads a file in the recorder's folder; empty if the program removed it, `None` if it is larger than [`RECORD`].
async fn read_record(sandbox: &mut dyn Sandbox, name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let path = Path::new(FOLDER).join(name);
    match sandbox.read(&path, RECORD).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Fault::Refused(_)) => {
            let mut command = Command::shell(r#"[ -f "$1" ] && [ "$(wc -c < "$1")" -gt "$2" ]"#);
            command.argv.extend(["sh".into(), path.into(), RECORD.to_string().into()]);
            let (wall, grace) = (Duration::from_mins(1), Duration::from_secs(1));
            let limits = ExecLimits { wall, patience: patience(wall), grace, output: OUTPUT };
            let is_larger = stop_signal::exec(sandbox, &command, &limits).await?.exit == Exit::Code(0);
            Ok((!is_larger).then(Vec::new))
        }
        Err(lost) => Err(lost),
    }
}

/// Reads a file; `None` if it does not exist.
pub async fn read_file(sandbox: &mut dyn Sandbox, path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    match sandbox.read(path, OUTPUT as u64).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Fault::Refused(_)) => Ok(None),
        Err(lost) => Err(lost),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;

    use super::super::calls::equal;
    use super::*;

    #[test]
    fn the_recorder_compares_arguments_as_verdicts_do() {
        let values = [
            json!(0.3),
            json!(1.0 - 0.7),
            json!(0.300_000_1),
            json!(1),
            json!(1.0),
            json!(true),
            json!("1"),
            json!(null),
            json!([1, 0.3]),
            json!([1, 1.0 - 0.7]),
            json!([1]),
            json!({ "a": 0.3, "b": "x" }),
            json!({ "b": "x", "a": 1.0 - 0.7 }),
            json!({ "a": 0.3 }),
        ];
        let pairs = values.iter().flat_map(|one| values.iter().map(move |other| [one, other]));
        let pairs: Vec<[&Value; 2]> = pairs.collect();
        let program = format!("{RECORDER}\nprint(json.dumps([equal(*pair) for pair in json.loads(sys.argv[1])]))\n");
        let mut command = Command::new("python3");
        command.args(["-I", "-c", &program, &json!(pairs).to_string()]).env_remove("AUTOEXPERIMENT_RECORDER");
        let ran = command.output().unwrap();
        let found: Vec<bool> = serde_json::from_slice(&ran.stdout).unwrap();
        let expected: Vec<bool> = pairs.iter().map(|[one, other]| equal(one, other)).collect();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(&ran.stderr));
        assert!(equal(&values[0], &values[1]) && !equal(&values[0], &values[2]));
    }

    #[test]
    fn the_recorder_changes_an_argument_of_each_parser_of_a_package_even_if_the_argument_differs_by_rounding() {
        let folder = tempfile::tempdir().unwrap();
        let tool = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--share', type=float)\n\
                    print(parser.parse_args().share)\n";
        for (path, text) in [
            ("recorder/sitecustomize.py", RECORDER),
            ("site-packages/tool/__init__.py", ""),
            ("site-packages/tool/other.py", tool),
            ("root/run.sh", ""),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let place = |path: &str| folder.path().join(path).display().to_string();
        let run = |at: &str, share: &str| {
            let shift = json!({ "at": at, "name": "share", "old": 0.3, "new": 0.4 });
            let plan = json!({
                "out": place("record.jsonl"), "root": place("root"), "program": place("root/run.sh"), "packages": [],
                "functions": false, "watch": null, "stops": false, "shift": shift,
            });
            std::fs::write(place("plan.json"), plan.to_string()).unwrap();
            let mut command = Command::new("python3");
            command.args(["-m", "tool.other", "--share", share]).current_dir(place("root"));
            command.env("PYTHONPATH", format!("{}:{}", place("recorder"), place("site-packages")));
            let ran = command.env("AUTOEXPERIMENT_RECORDER", place("plan.json")).output().unwrap();
            [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()).concat()
        };
        assert_eq!(run("site-packages/tool/main.py", "0.3"), "0.4");
        assert_eq!(run("site-packages/tool/other.py", "0.30000000000000004"), "0.4");
        assert_eq!(run("site-packages/tool/other.py", "0.31"), "0.31");
        assert_eq!(run("site-packages/other/main.py", "0.3"), "0.3");
        assert_eq!(run("tool/main.py", "0.3"), "0.3");
    }
}
