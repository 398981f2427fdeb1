//! Runs a program in a sandbox and records what can be judged: how it ended, what its parsers made of its arguments, and
//! its result.
//!
//! The recorder runs inside the program's own Python processes, so a program that is written against it can write such a
//! record itself. That is why a record counts only from the file that records it for the right program, in a repo whose
//! files are as they were, and why the result is compared as well.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::manifest::Instruction;
use super::program::{Program, file_name};
use crate::run::check::tail;
use crate::sandbox::{Command, ExecLimits, Exit, Fault, Sandbox, patience};
use crate::score::ml_bench::ProgramKind;
use crate::score::{last_json_line, read_result};
use crate::suite::ResultRule;

/// Python runs a module of this name when it starts.
const RECORDER: &str = include_str!("recorder.py");
/// Where the recorder is and writes to, in the workspace of verification.
const FOLDER: &str = ".recorder";
/// Bytes of output and of a result file.
const OUTPUT: usize = 4 << 20;
/// Bytes of what was recorded.
const CALLS: u64 = 1 << 20;

/// What a program did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// The program.
    pub code: String,
    /// What it was run as.
    pub kind: ProgramKind,
    /// How it ended.
    pub exit: Exit,
    /// Wall time in seconds.
    pub seconds: f64,
    /// Whether its text can be parsed; looked at when it failed.
    pub parses: bool,
    /// The end of standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// What its parsers gave, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// Its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_outcome: Option<String>,
}

/// Arguments as a parser gave them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The file that had them parsed: by its path in the repo, or from `site-packages/` on.
    pub file: String,
    /// All of them by name.
    pub parsed: Map<String, Value>,
    /// What the parser did not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<Value>,
}

/// How far a program is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// To its end.
    Whole,
    /// Until its first arguments are parsed.
    Parsing,
}

/// Runs a program as the instruction says. `probe` is the repo's.
///
/// # Errors
/// [`Fault::Lost`] when the sandbox died.
pub async fn observe(
    sandbox: &mut dyn Sandbox,
    program: &Program,
    instruction: &Instruction,
    probe: &str,
    extent: Extent,
) -> Result<Observed, Fault> {
    let folder = Path::new(&instruction.path);
    let file = file_name(program.kind);
    let recorder = sandbox.workdir().join(FOLDER);
    let root = sandbox.workdir().display().to_string();
    let wall = Duration::try_from_secs_f64(instruction.time_limit).unwrap_or(Duration::from_hours(1));
    let limits = ExecLimits { wall, patience: patience(wall), grace: Duration::from_secs(2), output: OUTPUT };
    sandbox.write(&Path::new(FOLDER).join("sitecustomize.py"), RECORDER.as_bytes()).await?;
    sandbox.write(&folder.join(file), program.code.as_bytes()).await?;
    let calls = recorder.join("calls.jsonl");
    let mut variables = vec![
        ("PYTHONPATH", recorder.display().to_string()),
        ("AUTOEXPERIMENT_CALLS", calls.display().to_string()),
        ("AUTOEXPERIMENT_ROOT", root),
    ];
    if extent == Extent::Parsing {
        variables.push(("AUTOEXPERIMENT_STOPS", "1".to_owned()));
    }
    let interpreter = if program.kind == ProgramKind::Bash { "bash" } else { "python" };
    let run = |arguments: &[&str]| Command {
        argv: std::iter::once(interpreter).chain(arguments.iter().copied()).map(Into::into).collect(),
        cwd: folder.to_owned(),
        ..Command::default()
    };
    let command = Command {
        variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        ..run(&[file])
    };
    let exec = sandbox.exec(&command, &limits).await?;
    let succeeded = exec.exit == Exit::Code(0);
    let parses = succeeded || {
        let check = match program.kind {
            ProgramKind::Bash => run(&["-n", file]),
            ProgramKind::Python => run(&["-c", &format!("import ast; ast.parse(open({file:?}, 'rb').read())")]),
        };
        sandbox.exec(&check, &limits).await?.exit == Exit::Code(0)
    };
    let calls = match sandbox.read(&calls, CALLS).await {
        Ok(bytes) => bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect(),
        Err(Fault::Refused(_)) => Vec::new(),
        Err(lost) => return Err(lost),
    };
    let read = if instruction.files.is_empty() {
        let written = match &instruction.result {
            ResultRule::JsonFile(path) => read_file(sandbox, &folder.join(path)).await?,
            ResultRule::JsonLine(_) | ResultRule::Regex(_) => None,
        };
        read_result(&instruction.result, &exec.stdout, written.as_deref())
    } else {
        // Isolated, so that nothing that the program has left decides what its modules are.
        let start = ["-I", "-c", probe].into_iter().chain(instruction.files.iter().map(String::as_str));
        let command = Command { argv: std::iter::once("python").chain(start).map(Into::into).collect(), ..run(&[]) };
        let probed = sandbox.exec(&command, &limits).await?;
        last_json_line(&probed.stdout).ok_or_else(|| format!("its files cannot be read: {}", tail(&probed.stderr)))
    };
    let (outcome, no_outcome) = match read {
        Ok(outcome) => (Some(outcome), None),
        Err(reason) => (None, Some(reason)),
    };
    Ok(Observed {
        code: program.code.clone(),
        kind: program.kind,
        exit: exec.exit,
        seconds: crate::run::round(exec.wall.as_secs_f64()),
        parses,
        stderr: tail(&exec.stderr),
        calls,
        outcome,
        no_outcome,
    })
}

/// A file's bytes, if there is such a file.
pub async fn read_file(sandbox: &mut dyn Sandbox, path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    match sandbox.read(path, OUTPUT as u64).await {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Fault::Refused(_)) => Ok(None),
        Err(lost) => Err(lost),
    }
}
