//! Tests of SWE-agent's tools in complete attempts, in a real sandbox.

use serde_json::json;

use crate::agent::End;
use crate::agent::tests::support::{Attempt, AttemptFixture, call, sh};
use crate::model::Reply;

async fn observe(replies: Vec<Reply>) -> Attempt {
    let submit = call("submit", json!({"answer": {"Experiment 1": {"x": 1}}}));
    let world = AttemptFixture::new(replies.into_iter().chain([submit]).collect()).await;
    let long = (1..=250).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
    std::fs::create_dir(world.dir.path().join("sub")).unwrap();
    std::fs::write(world.dir.path().join("sub/long.txt"), long).unwrap();
    let attempt = world.react_with("tools=swe-agent").await;
    assert_eq!(attempt.end, End::Answered, "{:?}", attempt.detail);
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1":{"x":1}}"#));
    attempt
}

fn edit(start: usize, end: usize, replacement: &str) -> Reply {
    call("edit", json!({"start_line": start, "end_line": end, "replacement": replacement}))
}

#[tokio::test]
async fn a_long_file_is_shown_in_a_window_of_100_lines_that_scroll_and_goto_move() {
    let attempt = observe(vec![
        call("goto", json!({"line": 1})),
        call("open", json!({"path": "sub/long.txt"})),
        call("scroll", json!({"direction": "down"})),
        call("scroll", json!({"direction": "down"})),
        call("scroll", json!({"direction": "up"})),
        call("goto", json!({"line": 240})),
        call("goto", json!({"line": 251})),
        call("open", json!({"path": "sub/long.txt", "line": 120})),
        call("open", json!({"path": "missing"})),
    ])
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "error: no file is open; open one with `open` first");
    assert!(shown[1].starts_with("[File: `sub/long.txt` (250 lines)]\n1:line 1\n2:line 2\n"), "{}", shown[1]);
    assert!(shown[1].ends_with("100:line 100\n(150 more lines below)\n"));
    assert!(shown[2].contains("(98 more lines above)\n99:line 99\n") && shown[2].contains("198:line 198\n(52 more"));
    assert!(shown[3].contains("(150 more lines above)\n") && shown[3].ends_with("250:line 250\n"));
    assert!(shown[4].contains("(52 more lines above)\n53:line 53"), "{}", shown[4]);
    assert!(shown[5].contains("(150 more lines above)\n"));
    assert_eq!(shown[6], "error: the file has lines 1 to 250, so there is no line 251");
    assert!(shown[7].contains("(69 more lines above)\n70:line 70\n"));
    assert!(shown[8].starts_with("error: "), "a file that cannot be opened leaves the one that is open");
}

#[tokio::test]
async fn an_edit_that_breaks_the_syntax_is_refused_and_changes_nothing() {
    let attempt = observe(vec![
        call("open", json!({"path": "main.py"})),
        edit(2, 2, "    return (2 * x"),
        edit(2, 2, "    return 2 * x"),
        edit(3, 2, "\n\nprint(double(4))\n"),
        edit(9, 9, "x"),
        edit(1, 0, "# first\n"),
        sh("python main.py"),
    ])
    .await;
    let shown = attempt.observations();
    insta::assert_snapshot!(shown[1], @r"
    error: nothing was changed, because `main.py` would have a syntax error in line 2. It would have become:
    1:def double(x):
    2:    return (2 * x

    It is still:
    1:def double(x):
    2:    raise NotImplementedError

    Correct the replacement or its line numbers; do not send the same edit again.
    ");
    assert!(shown[2].ends_with("1:def double(x):\n2:    return 2 * x\n"), "{}", shown[2]);
    assert!(shown[4].contains("so lines 9 to 9 cannot be replaced; nothing was changed"), "{}", shown[4]);
    assert_eq!(attempt.file("main.py"), "# first\ndef double(x):\n    return 2 * x\n\n\nprint(double(4))\n");
    assert_eq!(shown[6], "exit code 0\nstdout:\n8");
}

#[tokio::test]
async fn files_are_created_and_filled_but_never_replaced() {
    let attempt = observe(vec![
        call("create", json!({"path": "new/a.py"})),
        edit(1, 1, "x = 1\ny = 2"),
        call("create", json!({"path": "main.py"})),
    ])
    .await;
    assert_eq!(attempt.observations()[0], "[File: `new/a.py` (1 lines)]\n1:\n");
    assert_eq!(attempt.observations()[2], "error: `main.py` exists already; see it with open");
    assert_eq!(attempt.file("new/a.py"), "x = 1\ny = 2\n");
}

#[tokio::test]
async fn search_finds_literal_texts_and_files_by_name() {
    let attempt = observe(vec![
        call("search_dir", json!({"text": "double(x)"})),
        call("search_dir", json!({"text": "line 25", "path": "sub"})),
        call("search_dir", json!({"text": "nowhere"})),
        call("search_dir", json!({"text": "a", "path": "missing"})),
        call("search_file", json!({"text": "line 25", "path": "sub/long.txt"})),
        call("search_file", json!({"text": "line", "path": "sub/long.txt"})),
        call("search_file", json!({"text": "x"})),
        call("find_file", json!({"name": "*.txt"})),
        call("find_file", json!({"name": "main.py", "path": "sub"})),
        call("change_directory", json!({"path": "sub"})),
        call("find_file", json!({"name": "long.txt"})),
    ])
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "1 file(s) in `.` hold `double(x)` (lines):\nmain.py (1)");
    assert_eq!(shown[1], "1 file(s) in `sub` hold `line 25` (lines):\nlong.txt (2)");
    assert_eq!(shown[2], "no file in `.` holds `nowhere`");
    assert!(shown[3].starts_with("exit code "), "{}", shown[3]);
    assert_eq!(shown[4], "2 line(s) of `sub/long.txt` hold `line 25`:\n25:line 25\n250:line 250");
    assert!(shown[5].starts_with("250 lines of `sub/long.txt` hold `line`: too many"), "{}", shown[5]);
    assert_eq!(shown[6], "error: no file is open; open one with `open` first");
    assert_eq!(shown[7], "1 file(s) in `.` are named `*.txt`:\nsub/long.txt");
    assert_eq!(shown[8], "no file in `sub` is named `main.py`");
    assert_eq!(shown[10], "1 file(s) in `.` are named `long.txt`:\nlong.txt");
}
