//! The Python session: a process in the sandbox that lives from call to call and ends with the sandbox.
//!
//! It is reached through commands and files alone, so it works in every sandbox: a command writes the code to a file, wakes
//! the process by a named pipe and waits at another one. A command that is stopped at its time limit leaves the process
//! running; the next one waits on, or interrupts it.

use std::time::Duration;

use crate::agent::Context;
use crate::agent::tools::{Failure, OUTPUT, Session};
use crate::sandbox::{Command, Exec, Exit};

/// Seconds after which a call returns though its code is still running, as in the original.
pub const PATIENCE: Duration = if cfg!(test) { Duration::from_secs(5) } else { Duration::from_mins(5) };
/// What an interrupted session has to come to an end.
const TO_STOP: Duration = if cfg!(test) { Duration::from_secs(3) } else { Duration::from_secs(10) };
/// What a session has to begin.
const TO_START: Duration = Duration::from_mins(1);
/// What short commands have.
const SHORTLY: Duration = Duration::from_secs(20);

const SOURCE: &str = include_str!("session.py");

/// Makes the folder and starts the process. The shell that waits for it holds both ends of `in`, so that nobody who writes
/// to it is ever kept waiting, and says when it is gone.
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

/// Takes the code and wakes the process.
const WAKE: &str = r#"cat > "$1/code" && rm -f "$1/word" && echo run > "$1/in" || exit 1
"#;
/// Waits for the process, then shows how it went in a line of its own. The word in the file counts; `done` only tells that it
/// may be there: a command that is stopped while it reads would take the news with it.
const AWAIT: &str = r#"
until [ -s "$1/word" ]; do read -r _ < "$1/done"; [ -p "$1/done" ] || exit 1; done
cat "$1/word"
"#;
/// Shows the output, of a long one beginning and end.
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

/// A running session.
#[derive(Debug, Clone)]
pub struct Python {
    /// Its folder in the sandbox.
    folder: String,
    /// Whether code is still running that a call has not waited for.
    running: bool,
}

/// Runs code for as long as a call may take.
///
/// # Errors
/// [`Failure::Refused`] while earlier code runs or where no session can be started; what the sandbox says.
pub async fn execute(code: &str, context: &mut Context<'_>, session: &mut Session) -> Result<String, Failure> {
    if code.contains('\0') {
        return Err(Failure::Refused("Python code cannot hold a NUL character".to_owned()));
    }
    if session.python.as_ref().is_some_and(|python| python.running) {
        let what = "the code of an earlier call is still running; `wait` for it, or stop it with `interrupt`";
        return Err(Failure::Refused(what.to_owned()));
    }
    let python = match session.python.take() {
        Some(python) => python,
        None => start(context).await?,
    };
    let mut command = script(&format!("{WAKE}{AWAIT}{SHOW}"), &python.folder);
    command.stdin = code.as_bytes().to_vec();
    finish(command, PATIENCE, python, context, session).await
}

/// Waits for what is running.
///
/// # Errors
/// [`Failure::Refused`] when nothing is; what the sandbox says.
pub async fn wait(context: &mut Context<'_>, session: &mut Session) -> Result<String, Failure> {
    let python = running(session)?;
    finish(script(&format!("{AWAIT}{SHOW}"), &python.folder), PATIENCE, python, context, session).await
}

/// Interrupts what is running, as Ctrl-C does; where that does not help, ends the session.
///
/// # Errors
/// [`Failure::Refused`] when nothing is running; what the sandbox says.
pub async fn interrupt(context: &mut Context<'_>, session: &mut Session) -> Result<String, Failure> {
    let python = running(session)?;
    signal("INT", &python, context).await?;
    let (awaiting, kept) = (script(&format!("{AWAIT}{SHOW}"), &python.folder), python.clone());
    let shown = finish(awaiting, TO_STOP, python, context, session).await?;
    if session.python.as_ref().is_none_or(|python| !python.running) || context.budget.time_left().is_zero() {
        return Ok(shown);
    }
    session.python = None;
    signal("KILL", &kept, context).await?;
    let output = output_so_far(&kept, context).await?;
    Ok(format!(
        "the code did not stop when it was interrupted, so the session was ended; the next call begins a new one\n{output}"
    ))
}

async fn start(context: &mut Context<'_>) -> Result<Python, Failure> {
    let mut command = Command::shell(&format!("{START}{AWAIT}"));
    command.argv.extend(["sh".into(), SOURCE.into()]);
    let exec = context.exec(&command, TO_START, OUTPUT).await?;
    let printed = String::from_utf8_lossy(&exec.stdout);
    match (printed.trim_end().split_once('\n'), exec.exit) {
        (Some((folder, "ready")), Exit::Code(0)) => Ok(Python { folder: folder.to_owned(), running: false }),
        (Some((_, ended)), Exit::Code(0)) => {
            Err(Failure::Refused(format!("no Python session could be started: it {ended}")))
        }
        _ => Err(Failure::Refused("no Python session could be started".to_owned())),
    }
}

/// The session with running code.
fn running(session: &mut Session) -> Result<Python, Failure> {
    let nothing = || Failure::Refused("nothing is running".to_owned());
    session.python.clone().filter(|python| python.running).ok_or_else(nothing)
}

/// Runs a command that waits for the session, and says what came of it. The session is kept where it still lives.
async fn finish(
    command: Command,
    wall: Duration,
    python: Python,
    context: &mut Context<'_>,
    session: &mut Session,
) -> Result<String, Failure> {
    // Were the call dropped here, nobody would know whether code is running.
    session.python = Some(Python { running: true, ..python.clone() });
    let exec = context.exec(&command, wall, OUTPUT + 4096).await?;
    if exec.exit == Exit::TimedOut {
        if context.budget.time_left().is_zero() {
            return Ok("stopped because the tool time is used up".to_owned());
        }
        let output = output_so_far(&python, context).await?;
        return Ok(format!(
            "still running after {} seconds; `wait` for it, or stop it with `interrupt`\n{output}",
            wall.as_secs()
        ));
    }
    let (word, output) = told(&exec);
    session.python = (word == "done").then_some(Python { running: false, ..python });
    Ok(match word.strip_prefix("ended") {
        _ if word == "done" && output.is_empty() => "no output".to_owned(),
        _ if word == "done" => output,
        Some(code) => format!(
            "the Python session has ended with exit code{code} and what it held is lost; the next call begins a new \
             one\n{output}"
        ),
        None => "the Python session does not answer; the next call begins a new one".to_owned(),
    })
}

/// The first line that a command printed, and the rest.
fn told(exec: &Exec) -> (String, String) {
    let printed = String::from_utf8_lossy(&exec.stdout);
    let (word, output) = printed.split_once('\n').unwrap_or((&printed, ""));
    (word.to_owned(), output.strip_suffix('\n').unwrap_or(output).to_owned())
}

async fn output_so_far(python: &Python, context: &mut Context<'_>) -> Result<String, Failure> {
    let exec = context.exec(&script(SHOW, &python.folder), SHORTLY, OUTPUT + 4096).await?;
    let output = String::from_utf8_lossy(&exec.stdout);
    Ok(if output.is_empty() { "no output so far".to_owned() } else { format!("output so far:\n{}", output.trim_end()) })
}

/// Sends a signal to the session and to all that it has started.
async fn signal(name: &str, python: &Python, context: &mut Context<'_>) -> Result<(), Failure> {
    // Without `--`, which dash takes for a number here.
    let command = script(&format!(r#"kill -{name} "-$(cat "$1/pid")""#), &python.folder);
    context.exec(&command, SHORTLY, OUTPUT).await?;
    Ok(())
}

fn script(text: &str, folder: &str) -> Command {
    let mut command = Command::shell(text);
    command.argv.extend(["sh".into(), folder.into(), OUTPUT.to_string().into()]);
    command
}
