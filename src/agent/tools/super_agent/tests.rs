//! Tests of SUPER's tools in complete attempts, as plain processes; `tests/it/dynamic.rs` tests them in the sandbox
//! that runs use.

use serde_json::json;

use crate::agent::End;
use crate::agent::tests::support::{Attempt, AttemptFixture, call};
use crate::model::Reply;

async fn observe(replies: Vec<Reply>) -> Attempt {
    let submit = call("submit", json!({"answer": {"Experiment 1": {"x": 1}}}));
    let attempt =
        AttemptFixture::new(replies.into_iter().chain([submit]).collect()).await.react_with("tools=super").await;
    assert_eq!(attempt.end, End::Answered, "{:?}", attempt.detail);
    attempt
}

fn python(code: &str) -> Reply {
    call("execute", json!({ "code": code }))
}

#[tokio::test]
async fn the_session_keeps_its_variables_and_shows_output_values_and_errors() {
    let attempt = observe(vec![
        python("x = 20\nprint('set')"),
        python("import main, os\nx + 1"),
        python("1 / 0"),
        python("def f(:"),
        python("x += 1"),
        python("!echo from-the-shell; exit 3\n%cd /\nos.getcwd()"),
        python("%%bash\ncd /tmp && echo $((x + 1))"),
        python("raise SystemExit(4)"),
        python("x, __name__"),
        python("import subprocess, sys\n_ = subprocess.run(['echo', 'child'])\nprint('err', file=sys.stderr)"),
    ])
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[..2], ["set", "21"]);
    let trace = "Traceback (most recent call last):\n  File \"<cell 3>\", line 1, in <module>\n    1 / 0\n";
    assert!(shown[2].starts_with(trace) && shown[2].ends_with("ZeroDivisionError: division by zero"), "{}", shown[2]);
    assert!(shown[3].contains("SyntaxError") && !shown[3].contains("<string>"), "{}", shown[3]);
    assert_eq!(shown[4..7], ["no output", "from-the-shell\n/\n'/'", "1"]);
    assert_eq!(shown[7..], ["SystemExit: 4", "(21, '__main__')", "child\nerr"]);
}

#[tokio::test]
async fn magic_commands_and_shell_lines_of_notebooks_work() {
    let cells = [
        ("%mkdir sub\n%cd sub\n%pwd", "/sub'"),
        ("%%writefile a.txt\none\ntwo", "Writing a.txt"),
        ("%%writefile -a a.txt\nthree", "Appending to a.txt"),
        ("lines = !cat a.txt\nlines", "['one', 'two', 'three']"),
        ("name = 'a.txt'\n!wc -l {name} | \\\n  cut -d' ' -f1\n!echo $name", "3\na.txt"),
        ("%ls", "a.txt"),
        ("%env COLOUR=red", "env: COLOUR=red"),
        ("!echo $COLOUR", "red"),
        ("text = '''\n!not a command\n'''\n!echo ran\nlen(text)", "ran\n16"),
        ("for i in range(2):\n    !echo {i}", "0\n1"),
        ("1;", "no output"),
        ("%%bash\nfalse", "CalledProcessError: Command 'b'false\\n'' returned non-zero exit status 1."),
        ("%nothing", "UsageError: Line magic function `%nothing` not found."),
    ];
    let attempt = observe(cells.iter().map(|(code, _)| python(code)).collect()).await;
    for ((code, end), shown) in cells.iter().zip(attempt.observations()) {
        assert!(shown.ends_with(end), "{code}: {shown}");
    }
}

#[tokio::test]
async fn code_that_exceeds_a_calls_limit_can_be_awaited_or_interrupted_without_losing_the_session() {
    let waited = observe(vec![
        python("import time\nprint('begun')\ntime.sleep(7)\nprint('slept')"),
        call("continue_wait", json!({})),
        call("continue_wait", json!({})),
    ]);
    let endless = || call("execute", json!({"code": "!sleep 300", "timeout_seconds": 0.5}));
    let interrupted = observe(vec![python("x = 5"), endless(), call("interrupt", json!({})), endless(), python("x")]);
    let (waited, interrupted) = tokio::join!(waited, interrupted);
    let still =
        |seconds| format!("still running after {seconds} seconds; `continue_wait` waits on, `interrupt` stops it\n");
    let shown = waited.observations();
    assert_eq!(shown[0], format!("{}output so far:\nbegun", still("5")));
    assert_eq!(shown[1], "begun\nslept");
    assert_eq!(shown[2], "error: nothing is running");
    let shown = interrupted.observations();
    assert_eq!(shown[1], format!("{}no output so far", still("0.5")));
    assert!(shown[2].ends_with("KeyboardInterrupt"), "{}", shown[2]);
    assert_eq!(shown[3], format!("{}no output so far", still("0.5")));
    assert_eq!(shown[4], "5", "anything else interrupts");
}

#[tokio::test]
async fn a_session_that_ignores_interrupts_or_dies_is_replaced() {
    let stubborn = "import os, signal\nopen('pid', 'w').write(str(os.getpid()))\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n\
                    while True: pass";
    let ignoring = observe(vec![
        python(stubborn),
        call("interrupt", json!({})),
        python("import os\nos.path.exists('/proc/' + open('pid').read())"),
    ]);
    let dying = observe(vec![
        python("import os\nprint('last words')\nos._exit(7)"),
        python("1 + 1"),
        python("import threading, time\nthreading.Timer(0.3, os._exit, [0]).start()"),
        python("import os, threading\nthreading.Timer(0.2, os._exit, [9]).start()"),
        python("import time\ntime.sleep(2)"),
        python("2 + 2"),
    ]);
    let (ignoring, dying) = tokio::join!(ignoring, dying);
    let shown = ignoring.observations();
    assert!(
        shown[1].starts_with("the code did not stop when it was interrupted, so the session was ended"),
        "{shown:?}"
    );
    assert_eq!(shown[2], "False");
    let shown = dying.observations();
    let ended =
        "the Python session has ended with exit code 7 and what it held is lost; the next call begins a new one";
    assert_eq!(shown[0], format!("{ended}\nlast words"));
    assert_eq!(shown[1], "2");
    assert!(shown[2].contains("NameError"), "it is a new session: {}", shown[2]);
    assert_eq!(shown[3], "no output");
    assert!(shown[4].starts_with("the Python session has ended with exit code 9"), "{}", shown[4]);
    assert_eq!(shown[5], "4");
}

#[tokio::test]
async fn long_output_is_cut_and_code_stops_when_the_tool_time_is_used_up() {
    let attempt = observe(vec![python("print('B' + 'x' * 5_000_000 + 'E')")]).await;
    let shown = attempt.observations()[0];
    assert!(shown.starts_with("Bxxx") && shown.ends_with("xE") && shown.len() < 21_000, "{}", shown.len());
    let world = AttemptFixture::new(vec![python("import time\ntime.sleep(100)")]).await;
    let attempt = world.limits(|limits| limits.seconds = 4.0).react_with("tools=super").await;
    assert_eq!(attempt.end, End::GaveUp);
    assert_eq!(attempt.observations().last(), Some(&"stopped because the tool time is used up"));
    assert!(attempt.budget.time_left().is_zero());
}

#[tokio::test]
async fn the_edit_tool_replaces_exact_lines_and_creates_a_file_if_given_no_old_lines() {
    let edit =
        |path: &str, old: &str, new: &str| call("edit", json!({"path": path, "old_lines": old, "new_lines": new}));
    let attempt = observe(vec![
        edit("main.py", "    raise NotImplementedError", "    return 2 * x"),
        edit("main.py", "  return 2*x", "    return x"),
        edit("main.py", "", "x"),
        edit("new/a.py", "", "y = 1"),
        python("import main\nmain.double(4)"),
    ])
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "`main.py` was changed; it now reads there:\n    1  def double(x):\n    2      return 2 * x");
    assert!(shown[1].starts_with("error: the lines are not there exactly, but these differ"), "{}", shown[1]);
    assert!(shown[2].starts_with("error: `main.py` is not empty"), "{}", shown[2]);
    assert_eq!((attempt.file("new/a.py").as_str(), shown[4]), ("y = 1\n", "8"));
}
