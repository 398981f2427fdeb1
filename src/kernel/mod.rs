//! A Python session that runs the cells of a notebook. The session is a process in a sandbox, and lives until the
//! sandbox ends.
//!
//! The session is controlled by commands and files alone, so it works in every sandbox. A command writes a cell's code
//! to a file, wakes the session's process through a named pipe, and waits at another pipe. If the command is stopped at
//! its time limit, the process continues to run; the next command can wait again or interrupt it. `session.py` defines
//! the syntax of cells.

mod cell;

use std::time::Duration;

use async_trait::async_trait;

pub use cell::{CellAuthor, CellRecord, CellState, split_cells};

use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, Sandbox, patience, stop_signal};

/// Maximum bytes of a cell's output; the middle of longer output is dropped.
pub const MOST_OUTPUT: usize = 4 << 20;
/// Maximum time for a cell to stop after it was interrupted.
const TO_STOP: Duration = if cfg!(test) { Duration::from_secs(3) } else { Duration::from_secs(10) };
/// Maximum time for a session to start.
const TO_START: Duration = Duration::from_mins(1);
/// Time limit of commands that should be short.
const SHORTLY: Duration = Duration::from_secs(20);
/// Time between SIGTERM and SIGKILL for a command.
const GRACE: Duration = Duration::from_secs(1);

const SOURCE: &str = include_str!("session.py");

/// Creates the session's folder and starts its Python process. The shell that waits for this process holds both ends of
/// the pipe `in` open, so that writing to the pipe never blocks, and reports when the process has ended.
const START: &str = r#"
folder=$(mktemp -d) && mkfifo "$folder/in" "$folder/done" || exit 1
(
    exec 3<> "$folder/in"
    python -u -c "$1" "$folder" 3>&-
    code=$?
    while [ -p "$folder/done" ]; do
        echo "ended $code" > "$folder/word.new" && mv -f "$folder/word.new" "$folder/word"
        echo > "$folder/done"
    done
) > /dev/null 2>&1 < /dev/null &
echo "$folder"
set -- "$folder"
"#;

/// Writes a cell's code and wakes the Python process.
const WAKE: &str = r#"cat > "$1/code" && rm -f "$1/word" && echo run > "$1/in" || exit 1
"#;
/// Waits until the cell or the session has ended, then prints the cell's state on a separate line. The state is in the file
/// `word`; the pipe `done` only signals that the file may exist. The state is not sent through the pipe, because a command
/// that is killed while it reads the pipe would lose the state.
const AWAIT: &str = r#"
until [ -s "$1/word" ]; do read -r _ < "$1/done"; [ -p "$1/done" ] || exit 1; done
cat "$1/word"
"#;
/// Prints a cell's output. If it is too long, prints only its beginning and end.
const SHOW: &str = r#"
size=$(wc -c < "$1/out" 2> /dev/null || echo 0)
if [ "$size" -le "$2" ]; then cat "$1/out" 2> /dev/null
else
    head -c "$(($2 / 2))" "$1/out"
    printf '\n[... %s bytes not shown ...]\n' "$((size - $2))"
    tail -c "$(($2 / 2))" "$1/out"
fi
true
"#;

/// Runs commands in a sandbox: either for an attempt, within the attempt's budget, or for the harness, without a
/// budget.
#[async_trait]
pub trait Host: Send {
    /// Runs a command for at most `wall`, keeping at most `output` bytes of each stream.
    async fn exec(&mut self, command: &Command, wall: Duration, output: usize) -> Result<Exec, Fault>;
    /// Whether the attempt's time for tool calls is used up. Always false for the harness, which has no such budget.
    fn is_spent(&self) -> bool {
        false
    }
}

/// Runs commands for the harness itself, which has no budget.
pub struct Harness<'a>(pub &'a mut dyn Sandbox);

#[async_trait]
impl Host for Harness<'_> {
    async fn exec(&mut self, command: &Command, wall: Duration, output: usize) -> Result<Exec, Fault> {
        stop_signal::exec(self.0, command, &ExecLimits { wall, patience: patience(wall), grace: GRACE, output }).await
    }
}

/// A running Python session.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The session's folder in the sandbox.
    folder: String,
    /// Whether a cell was started whose final state has not been read yet.
    running: bool,
}

/// State of a cell, and its raw output so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellOutput {
    /// State of the cell.
    pub state: CellState,
    /// Output to stdout and stderr, and the value of the cell's last expression.
    pub output: String,
}

impl Kernel {
    /// Starts a session in the workspace, with the `python` in the sandbox.
    ///
    /// # Errors
    /// [`Fault::Refused`] if the session cannot be started; errors of the sandbox.
    pub async fn start(host: &mut dyn Host) -> Result<Self, Fault> {
        let mut command = Command::shell(&format!("{START}{AWAIT}"));
        command.argv.extend(["sh".into(), SOURCE.into()]);
        let exec = host.exec(&command, TO_START, MOST_OUTPUT).await?;
        let printed = String::from_utf8_lossy(&exec.stdout);
        match (printed.trim_end().split_once('\n'), exec.exit) {
            (Some((folder, "ready")), Exit::Code(0)) => Ok(Self { folder: folder.to_owned(), running: false }),
            (Some((_, ended)), Exit::Code(0)) => {
                Err(Fault::Refused(format!("no Python session could be started: it {ended}")))
            }
            _ => Err(Fault::Refused("no Python session could be started".to_owned())),
        }
    }

    /// Whether a cell is still running.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// Runs a cell and waits for at most `patience`.
    ///
    /// # Errors
    /// [`Fault::Refused`] while an earlier cell is running; errors of the sandbox.
    pub async fn run(&mut self, code: &str, patience: Duration, host: &mut dyn Host) -> Result<CellOutput, Fault> {
        if code.contains('\0') {
            return Err(Fault::Refused("Python code cannot contain a NUL character".to_owned()));
        }
        if self.running {
            return Err(Fault::Refused("the code of an earlier call is still running".to_owned()));
        }
        let mut command = self.script(&format!("{WAKE}{AWAIT}{SHOW}"));
        command.stdin = code.as_bytes().to_vec();
        self.finish(command, patience, host).await
    }

    /// Waits for the running cell.
    ///
    /// # Errors
    /// [`Fault::Refused`] if nothing is running; errors of the sandbox.
    pub async fn wait(&mut self, patience: Duration, host: &mut dyn Host) -> Result<CellOutput, Fault> {
        self.require_running()?;
        self.finish(self.script(&format!("{AWAIT}{SHOW}")), patience, host).await
    }

    /// Interrupts the running cell like Ctrl-C; if that doesn't help, kills the session ([`CellState::Killed`]).
    ///
    /// # Errors
    /// [`Fault::Refused`] if nothing is running; errors of the sandbox.
    pub async fn interrupt(&mut self, host: &mut dyn Host) -> Result<CellOutput, Fault> {
        self.require_running()?;
        self.signal("INT", host).await?;
        let shown = self.finish(self.script(&format!("{AWAIT}{SHOW}")), TO_STOP, host).await?;
        if shown.state != CellState::Running {
            return Ok(shown);
        }
        self.running = false;
        self.signal("KILL", host).await?;
        Ok(CellOutput { state: CellState::Killed, output: self.output_so_far(host).await? })
    }

    fn require_running(&self) -> Result<(), Fault> {
        if self.running { Ok(()) } else { Err(Fault::Refused("nothing is running".to_owned())) }
    }

    /// Runs a command that waits for the session, and returns state and output of the cell.
    async fn finish(&mut self, command: Command, wall: Duration, host: &mut dyn Host) -> Result<CellOutput, Fault> {
        // Set this flag before the command, so that the flag is also right if the future is dropped while the command
        // runs.
        self.running = true;
        let exec = host.exec(&command, wall, MOST_OUTPUT + 4096).await?;
        if exec.exit == Exit::TimedOut {
            if host.is_spent() {
                return Ok(CellOutput { state: CellState::OutOfTime, output: String::new() });
            }
            return Ok(CellOutput { state: CellState::Running, output: self.output_so_far(host).await? });
        }
        self.running = false;
        let printed = String::from_utf8_lossy(&exec.stdout);
        let (word, output) = printed.split_once('\n').unwrap_or((&printed, ""));
        Ok(CellOutput { state: CellState::parse(word), output: output.to_owned() })
    }

    async fn output_so_far(&self, host: &mut dyn Host) -> Result<String, Fault> {
        let exec = host.exec(&self.script(SHOW), SHORTLY, MOST_OUTPUT + 4096).await?;
        Ok(String::from_utf8_lossy(&exec.stdout).into_owned())
    }

    /// Sends a signal to the session's process and all its child processes.
    async fn signal(&self, name: &str, host: &mut dyn Host) -> Result<(), Fault> {
        // Do not put `--` before the process group, because dash would parse `--` as a number here.
        let command = self.script(&format!(r#"kill -{name} "-$(cat "$1/pid")""#));
        host.exec(&command, SHORTLY, MOST_OUTPUT).await.map(drop)
    }

    fn script(&self, text: &str) -> Command {
        let mut command = Command::shell(text);
        command.argv.extend(["sh".into(), self.folder.clone().into(), MOST_OUTPUT.to_string().into()]);
        command
    }
}
