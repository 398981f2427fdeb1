//! Traces which functions of the repo an experiment enters, by running it once with a tracer in every Python process.
//!
//! The tracer is `trace/sitecustomize.py`; comments there explain how it works. It is put into a hidden folder of the
//! workspace. Python processes find it through PYTHONPATH, so subprocesses load it too. If a process may have run
//! without it, the trace says so ([`Trace::blind`]), and functions missing from the trace may have been entered.
//!
//! When one of the functions named by the caller is entered for the first time, the tracer forks the process and raises
//! NotImplementedError in the fork. If this error ends the fork, it would also end the experiment ([`Trace::fails`]).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::trial::{Bench, ExperimentOutcome, Trial, TrialWithFiles};
use crate::agent::TaskExperiment;
use crate::code::{Function, Module, last_part};
use crate::error::Result;

const TRACER: &str = include_str!("trace/sitecustomize.py");
const SHIM: &str = include_str!("trace/python.sh");
/// The tracer's folder in the workspace.
const FOLDER: &str = ".autoexperiment-trace";
/// Maximum CPU seconds and maximum wall seconds of a fork in which the tracer makes a function fail. A fork that takes
/// longer is killed, and the program counts as having handled the error.
const PATIENCE: &str = "0.5 5";
/// Time limit of a traced experiment, as a multiple of its usual limit.
const SLOWER: f64 = 3.0;

/// A function as identified by Python.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TracedFunction {
    /// The file, relative to the repo's root, links resolved.
    pub file: PathBuf,
    /// Line (from 1) of the first decorator, or else of `def` or `async`: Python's `co_firstlineno`.
    pub line: usize,
    /// The function's own name: Python's `co_name`.
    pub name: String,
}

impl TracedFunction {
    /// Returns the file, line and name of a function of a module. `function` is the function's index in
    /// `module.functions()`.
    #[must_use]
    pub fn locate(module: &Module, function: usize) -> Self {
        let function: &Function = &module.functions()[function];
        let above = &module.source()[function.whole.start..function.header.start];
        let breaks = |(at, &byte): (usize, &u8)| {
            byte == b'\n' || (byte == b'\r' && above.get(at + 1).is_none_or(|&next| next != b'\n'))
        };
        let lines = above.iter().enumerate().filter(|&item| breaks(item)).count();
        let name = last_part(&function.name).to_owned();
        Self { file: module.path().to_owned(), line: function.first_line - lines, name }
    }
}

/// The trace of one experiment.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Outcome of the run; its result should be that of an untraced run.
    pub outcome: ExperimentOutcome,
    /// All code of the repo that was entered; top-level code of a file is called `<module>`.
    pub entered: BTreeSet<TracedFunction>,
    /// Functions in which an exception would end the process, because no code handles it. The tracer tries this only
    /// for the functions that the caller names, when each is first called.
    pub fails: BTreeSet<TracedFunction>,
    /// Number of traced Python processes.
    pub processes: usize,
    /// Why the trace may lack functions that were entered; `None` if it is complete.
    pub blind: Option<String>,
}

impl Trace {
    /// Whether this function may have been called. For a generator or coroutine this is `true` as soon as its file was
    /// imported: calling it only creates an object and runs none of its code, so the tracer does not see the call.
    #[must_use]
    pub(super) fn may_call(&self, module: &Module, function: usize) -> bool {
        let place = TracedFunction::locate(module, function);
        let it = &module.functions()[function];
        self.blind.is_some()
            || self.entered.contains(&place)
            || ((it.is_generator || it.is_async) && self.entered.contains(&file_itself(place)))
    }
}

fn file_itself(place: TracedFunction) -> TracedFunction {
    TracedFunction { line: 1, name: "<module>".to_owned(), ..place }
}

/// Runs an experiment of the unmasked repo once with the tracer. For each function in `ask`, also finds out whether an
/// error in the function would end the experiment.
///
/// # Errors
/// Returns the errors of [`Bench::run`]; a failing experiment is not an error.
pub async fn trace(bench: &Bench, experiment: &TaskExperiment, ask: &[TracedFunction]) -> Result<Trace> {
    let mut wanted = format!("{PATIENCE}\n");
    for TracedFunction { file, line, name } in ask {
        let _ = writeln!(wanted, "{line}\t{name}\t{}", file.display());
    }
    let mut files = vec![("sitecustomize.py".to_owned(), TRACER.into()), ("wanted".to_owned(), wanted.into_bytes())];
    let version = &bench.ready().env.python;
    let minor = version.rsplit_once('.').map_or(version.as_str(), |(minor, _)| minor);
    for name in ["python".to_owned(), "python3".to_owned(), format!("python{minor}")] {
        files.push((format!("bin/{name}"), SHIM.as_bytes().to_vec()));
    }
    let files: Vec<(PathBuf, Vec<u8>)> =
        files.into_iter().map(|(name, bytes)| (PathBuf::from(FOLDER).join(name), bytes)).collect();
    let command = format!(
        "export PYTHONPATH=\"$PWD/{FOLDER}${{PYTHONPATH:+:$PYTHONPATH}}\" PATH=\"$PWD/{FOLDER}/bin:$PATH\"\n{}",
        experiment.command
    );
    let traced = TaskExperiment { command, time_limit: SLOWER * experiment.time_limit, ..experiment.clone() };
    let trial = Trial { files: &files, experiment: &traced };
    let TrialWithFiles { outcome, files } = bench.run_keeping(&trial, FOLDER.as_ref()).await?;
    Ok(read(outcome, &files))
}

/// Parses the files written by the traced processes.
fn read(outcome: ExperimentOutcome, files: &[(String, String)]) -> Trace {
    let mut trace = Trace { outcome, entered: BTreeSet::new(), fails: BTreeSet::new(), processes: 0, blind: None };
    let traces: Vec<(&str, &str)> =
        files.iter().filter_map(|(name, text)| Some((name.strip_suffix(".trace")?, text.as_str()))).collect();
    for (_, text) in &traces {
        for line in text.lines() {
            let fields: Vec<&str> = line.splitn(4, '\t').collect();
            match fields[..] {
                ["process", _] => trace.processes += 1,
                ["blind", why] => trace.blind = Some(why.to_owned()),
                [kind @ ("enter" | "fails"), first, name, file] => {
                    let Ok(line) = first.parse() else { continue };
                    // Python 3.10 and earlier give a file's top-level code the line of its first statement.
                    let line = if name == "<module>" { 1 } else { line };
                    let place = TracedFunction { file: file.into(), line, name: name.to_owned() };
                    if kind == "enter" { &mut trace.entered } else { &mut trace.fails }.insert(place);
                }
                _ => {}
            }
        }
    }
    let started = files.iter().filter(|(name, _)| name == "started").flat_map(|(_, text)| text.lines());
    let hidden = started.into_iter().any(|process| traces.iter().all(|(traced, _)| *traced != process));
    if hidden {
        trace.blind = Some("a Python process ran without the tracer, as with its options -I, -E and -S".to_owned());
    } else if trace.processes == 0 {
        trace.blind = Some("no Python process was traced".to_owned());
    }
    trace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_functions_position_is_the_one_python_reports() {
        let source = b"import x\r\n\r\n@x.a\r\n@x.b(\r\n  1)\r\nasync def f(): pass\r\nclass C:\r\n  def g(self):\r\n    pass\r\n";
        let module = Module::parse("m.py", source.to_vec()).unwrap();
        let places: Vec<(usize, String)> =
            (0..2).map(|at| TracedFunction::locate(&module, at)).map(|at| (at.line, at.name)).collect();
        assert_eq!(places, [(3, "f".to_owned()), (8, "g".to_owned())]);
    }
}
