//! The course of one attempt, read from its trajectory: whether its first run of code crashed and whether a later one
//! worked.

use serde_json::Value;

use crate::agent::{Event, TimedEvent};

/// Outcomes of the code runs in a trajectory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// Whether each run of code crashed, in order.
    pub crashed: Vec<bool>,
    /// Number of the first step at which code ran without crashing.
    pub working_step: Option<u32>,
}

impl Course {
    /// Reads a trajectory. A run of code is a tool call that runs Python, a script or an experiment. It crashed if its
    /// exit code is not 0 or its output shows a traceback (`python … | tail` hides a crash from the exit code).
    #[must_use]
    pub fn from_trajectory(lines: &[TimedEvent]) -> Self {
        let mut course = Self::default();
        let mut last = None;
        for line in lines {
            let Event::Observation { step, tool, arguments, content, .. } = &line.event else { continue };
            if !runs_code(tool, arguments) {
                continue;
            }
            // If the session reports an error, no code has run. If the code is still running, a later call shows its
            // outcome.
            if tool == "execute" && (content.starts_with("error:") || content.starts_with("still running")) {
                continue;
            }
            // If a call gives the same output as the call before, the trajectory contains a notice instead of the
            // output. The outcome is then that of the earlier call. If no earlier call has an outcome, this call was
            // refused and ran nothing.
            let Some(crashed) = shows_crash(tool, content).or(last) else { continue };
            last = Some(crashed);
            course.crashed.push(crashed);
            if !crashed && course.working_step.is_none() {
                course.working_step = Some(*step);
            }
        }
        course
    }

    /// Whether the first run crashed; `None` if nothing was run.
    #[must_use]
    pub fn first_crashed(&self) -> Option<bool> {
        self.crashed.first().copied()
    }

    /// Whether the first run crashed and a later one did not.
    #[must_use]
    pub fn recovered(&self) -> bool {
        self.first_crashed() == Some(true) && self.working_step.is_some()
    }
}

/// Whether a command's output shows a crash; `None` if it doesn't say how the command ended.
fn shows_crash(tool: &str, content: &str) -> Option<bool> {
    let has_traceback = content.contains("Traceback (most recent call last)");
    // A Python session shows no exit code until it ends, so look for signs of a crash in its output.
    if tool == "execute" && !content.starts_with("exit code ") {
        return Some(has_traceback || content.contains("the Python session has ended"));
    }
    let ran_through = if let Some(rest) = content.strip_prefix("exit code ") {
        rest.split(|c: char| !c.is_ascii_digit()).next() == Some("0")
    } else if content.starts_with("killed by signal") || content.starts_with("stopped because") {
        false
    } else {
        return None;
    };
    Some(!ran_through || has_traceback)
}

/// Whether a tool call runs Python, a script or an experiment.
fn runs_code(tool: &str, arguments: &Value) -> bool {
    match tool {
        "experiment" | "execute_python_script" | "execute_bash_script" | "execute" => true,
        "command_line" | "bash" => arguments.get("command").and_then(Value::as_str).is_some_and(command_runs_code),
        _ => false,
    }
}

/// Whether any part of a shell command runs Python, a test runner or a script.
fn command_runs_code(command: &str) -> bool {
    command.split(['\n', ';', '&', '|', '(']).any(|part| {
        let mut words = part.split_whitespace().filter(|word| !word.contains('=')).peekable();
        while words.next_if(|word| is_wrapper(word)).is_some() {}
        let Some(program) = words.next() else { return false };
        let name = program.rsplit('/').next().unwrap_or(program);
        let is_script = |word: &str| matches!(word.rsplit_once('.'), Some((_, "py" | "sh")));
        name.starts_with("python")
            || name == "pytest"
            || is_script(name)
            || (matches!(name, "bash" | "sh" | "source" | ".") && words.any(is_script))
    })
}

/// Whether a word only introduces the program that is run: `time`, `nice -n 5`, `timeout 60`.
fn is_wrapper(word: &str) -> bool {
    matches!(word, "time" | "nice" | "timeout" | "env" | "nohup" | "exec" | "then" | "do")
        || word.starts_with('-')
        || word.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ran(step: u32, command: &str, content: &str) -> TimedEvent {
        ran_by("command_line", step, command, content)
    }

    fn ran_by(tool: &str, step: u32, command: &str, content: &str) -> TimedEvent {
        let event = Event::Observation {
            step,
            call_id: None,
            tool: tool.to_owned(),
            arguments: json!({ "command": command }),
            content: content.to_owned(),
            seconds: 0.1,
        };
        TimedEvent { at: f64::from(step), event }
    }

    #[test]
    fn runs_of_code_and_their_crashes_are_recognised_for_every_tool() {
        let trace = "Traceback (most recent call last):\n  1 / 0";
        for tool in ["command_line", "bash", "execute"] {
            let code = |status| if tool == "execute" { String::new() } else { format!("exit code {status}\n") };
            let lines = [
                ran_by(tool, 1, "python a.py", &format!("{}{trace}", code(1))),
                ran_by(tool, 2, "python a.py", &format!("{}4.5", code(0))),
            ];
            let course = Course::from_trajectory(&lines);
            assert_eq!((course.crashed.as_slice(), course.working_step), ([true, false].as_slice(), Some(2)), "{tool}");
            assert!(course.recovered());
        }
        let waits = ran_by("execute", 1, "run()", "still running after 5 seconds; `continue_wait` waits on");
        assert_eq!(Course::from_trajectory(&[waits]), Course::default());
    }

    #[test]
    fn only_commands_that_run_python_or_a_script_count_as_runs_of_code() {
        for command in [
            "python -m tiny means",
            "cd x && python3.11 run.py",
            "bash run_experiments.sh",
            "./run_experiments.sh 2>&1 | tail",
            "OMP_NUM_THREADS=1 timeout 60 python a.py",
            "for i in 1 2; do python a.py; done",
        ] {
            assert!(command_runs_code(command), "{command}");
        }
        for command in ["cat run.py", "ls -la; grep def a.py", "sed -n 1,20p run_experiments.sh", "bash -c ls", ""] {
            assert!(!command_runs_code(command), "{command}");
        }
    }

    #[test]
    fn an_attempt_has_recovered_if_code_runs_without_a_crash_after_an_earlier_crash() {
        let course = Course::from_trajectory(&[
            ran(1, "cat a.py", "exit code 0\nstdout:\n..."),
            ran(2, "python a.py", "exit code 1\nstderr:\nNameError"),
            ran(3, "python a.py | tail -3", "exit code 0\nstdout:\nTraceback (most recent call last):\n..."),
            ran(5, "python a.py", "exit code 0\nstdout:\n1"),
        ]);
        assert_eq!(course.crashed, [true, true, false]);
        assert_eq!((course.first_crashed(), course.recovered(), course.working_step), (Some(true), true, Some(5)));
    }

    #[test]
    fn a_repeated_call_has_its_earlier_outcome_and_a_refused_call_is_no_run_of_code() {
        let course = Course::from_trajectory(&[
            ran(1, "python a.py", "error: there is no such folder"),
            ran(2, "python a.py", "exit code 2\nstderr:\nx"),
            ran(3, "python a.py", "the same call as before, with the same outcome"),
        ]);
        assert_eq!((course.crashed.as_slice(), course.working_step), ([true, true].as_slice(), None));
        assert_eq!(Course::default().first_crashed(), None);
    }

    #[test]
    fn exit_codes_that_only_begin_with_the_digit_zero_count_as_crashes() {
        assert_eq!(shows_crash("command_line", "exit code 0, no output"), Some(false));
        assert_eq!(shows_crash("command_line", "exit code 0"), Some(false));
        assert_eq!(shows_crash("command_line", "exit code 01"), Some(true));
        assert_eq!(shows_crash("command_line", "exit code 137\nstderr:"), Some(true));
        assert_eq!(shows_crash("command_line", "killed by signal 9"), Some(true));
        assert_eq!(shows_crash("command_line", "lines 1 to 3"), None);
    }
}
