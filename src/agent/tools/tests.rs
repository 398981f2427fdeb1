//! Tests of each tool in a complete attempt, in a real sandbox.

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{ToolChoice, ToolSet, schema, signature_of};
use crate::agent::tests::support::{Attempt, AttemptFixture, call, cut, sh, submit, text};
use crate::agent::{End, Limits};
use crate::model::Reply;

/// Runs an attempt in a workspace with `files`. The model gives `replies`, and then submits an answer.
async fn observe(files: &[(&str, &[u8])], replies: Vec<Reply>) -> Attempt {
    let world = AttemptFixture::new(replies.into_iter().chain([submit()]).collect()).await;
    for (path, bytes) in files {
        std::fs::write(world.dir.path().join(path), bytes).unwrap();
    }
    let attempt = world.react().await;
    assert_eq!(attempt.end, End::Answered);
    assert!(attempt.format_errors().is_empty(), "{:?}", attempt.format_errors());
    attempt
}

fn inspect(path: &str, start: usize, end: usize) -> Reply {
    call("inspect_file_lines", json!({"path": path, "start_line": start, "end_line": end}))
}

#[test]
fn every_schema_is_an_object_that_all_providers_take() {
    for tool in ToolChoice::value_variants().iter().flat_map(|choice| ToolSet::from_choice(*choice).definitions()) {
        assert_eq!(tool.parameters["type"], "object", "{}", tool.name);
        let text = tool.parameters.to_string();
        for keyword in ["$schema", "$ref", "anyOf", "additionalProperties", "null", "title"] {
            assert!(!text.contains(keyword), "{keyword} in {text}");
        }
        for (name, property) in tool.parameters["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{} of {} is not described", name, tool.name);
        }
    }
    let inspect = ToolSet::autoexperiment().get("inspect_file_lines").unwrap();
    let expected = r#"{"path": string, "start_line": integer (optional), "end_line": integer (optional)}"#;
    assert_eq!(signature_of(&inspect.parameters()), expected);
}

/// Tool descriptions are part of requests, and recorded conversations can only be played back while the bytes of the
/// requests stay the same.
#[test]
fn the_tool_descriptions_sent_to_models_are_byte_for_byte_as_stored() {
    for choice in ToolChoice::value_variants() {
        let line = |tool: &crate::model::Tool| {
            let shown = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
            format!("{shown}\n")
        };
        let tools: String = ToolSet::from_choice(*choice).definitions().iter().map(line).collect();
        insta::assert_snapshot!(format!("tools_of_{}", crate::agent::settings::written(*choice)), tools);
    }
}

#[test]
fn a_property_named_like_a_schema_keyword_is_kept() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Odd {
        title: String,
        format: Option<u64>,
    }
    let schema = schema::<Odd>();
    assert_eq!(schema["properties"], json!({"title": {"type": "string"}, "format": {"type": "integer"}}));
}

#[tokio::test]
async fn inspected_ranges_include_their_first_and_last_line_and_show_the_files_number_of_lines() {
    let file = (1..=10).map(|number| format!("l{number}\n")).collect::<Vec<_>>().concat();
    let attempt = observe(
        &[("a.txt", file.as_bytes()), ("b.txt", b"only\r\nno newline"), ("c.txt", b"")],
        vec![
            inspect("a.txt", 3, 5),
            inspect("a.txt", 1, 1),
            inspect("a.txt", 10, 99),
            inspect("a.txt", 11, 12),
            inspect("a.txt", 0, 2),
            inspect("a.txt", 5, 4),
            call("inspect_file_lines", json!({"path": "b.txt"})),
            inspect("c.txt", 1, 5),
            inspect("missing.txt", 1, 5),
        ],
    )
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "lines 3 to 5 of 10:\n    3  l3\n    4  l4\n    5  l5\n");
    assert_eq!(shown[1], "lines 1 to 1 of 10:\n    1  l1\n");
    assert_eq!(shown[2], "lines 10 to 10 of 10:\n   10  l10\n");
    assert_eq!(shown[3], "error: the file has 10 lines, so there is no line 11");
    assert_eq!(shown[4], "error: lines are counted from 1");
    assert_eq!(shown[5], "error: the last line, 4, comes before the first one, 5");
    assert_eq!(shown[6], "all 2 lines:\n    1  only\n    2  no newline\n");
    assert_eq!(shown[7], "the file is empty");
    assert!(shown[8].starts_with("error: "));
}

#[tokio::test]
async fn a_long_file_can_be_paged_through_without_losing_a_line() {
    let file = (1..=3000).map(|number| format!("this is line number {number}\n")).collect::<Vec<_>>().concat();
    let first = observe(&[("a.txt", file.as_bytes())], vec![inspect("a.txt", 1, 3000)]).await;
    let heading = first.observations()[0].lines().next().unwrap();
    let next: usize = heading.split("start_line ").nth(1).unwrap().trim_end_matches(':').parse().unwrap();
    assert!(heading.starts_with(&format!("lines 1 to {} of 3000", next - 1)), "{heading}");
    assert!(first.observations()[0].ends_with(&format!("this is line number {}\n", next - 1)));
    let second = observe(&[("a.txt", file.as_bytes())], vec![inspect("a.txt", next, 3000)]).await;
    assert!(second.observations()[0].contains(&format!("  this is line number {next}\n")));
}

#[tokio::test]
async fn files_are_read_written_listed_and_moved() {
    let attempt = observe(
        &[("caf\u{e9}.bin", b"caf\xe9\n")],
        vec![
            call("write_file", json!({"path": "new/deep/a.py", "content": "x = 1\n"})),
            call("read_file", json!({"path": "new/deep/a.py"})),
            call("move", json!({"source": "new/deep/a.py", "destination": "b.py"})),
            call("move", json!({"source": "missing", "destination": "c"})),
            call("list_files", json!({})),
            call("list_files", json!({"path": "new/deep"})),
            call("list_files", json!({"path": "nowhere"})),
            call("read_file", json!({"path": "caf\u{e9}.bin"})),
            call("read_file", json!({"path": "new"})),
            call("read_file", json!({"path": ""})),
        ],
    )
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "wrote 6 bytes to `new/deep/a.py`");
    assert_eq!(shown[1], "all 1 lines:\nx = 1\n");
    assert_eq!(shown[2], "moved `new/deep/a.py` to `b.py`");
    assert!(shown[3].contains("exit code 1\nstderr:\nmv: cannot stat 'missing'"), "{}", shown[3]);
    assert_eq!(shown[4], "b.py  6\ncaf\u{e9}.bin  5\nmain.py  45\nnew/\n");
    assert_eq!(shown[5], "the folder is empty");
    assert!(shown[6].starts_with("error: "));
    assert_eq!(shown[7], "all 1 lines:\ncaf\u{fffd}\n");
    assert!(shown[8].starts_with("error: ") && shown[9].starts_with("error: "));
}

#[tokio::test]
async fn commands_and_file_tools_share_a_current_directory_that_is_kept_between_steps() {
    let attempt = observe(
        &[],
        vec![
            sh("mkdir -p sub/inner '-' && ln -s sub/inner link"),
            call("change_directory", json!({"path": "sub"})),
            call("write_file", json!({"path": "here.txt", "content": "in sub\n"})),
            sh("cat here.txt; cd inner"),
            call("list_files", json!({})),
            call("change_directory", json!({"path": "missing"})),
            sh("cat ../sub/here.txt"),
            call("change_directory", json!({"path": ".."})),
            call("read_file", json!({"path": "link/../here.txt"})),
            call("execute_bash_script", json!({"path": "sub/nothing.sh"})),
            call("change_directory", json!({"path": "-"})),
            sh("basename \"$PWD\""),
        ],
    )
    .await;
    let shown = attempt.observations();
    assert!(shown[1].starts_with("the current directory is now /") && shown[1].ends_with("/sub"), "{}", shown[1]);
    assert_eq!(shown[3], "exit code 0\nstdout:\nin sub");
    assert_eq!(shown[4], "here.txt  7\ninner/\n");
    assert_eq!(shown[5], "error: cannot change to `missing`: no such folder, or no way into it");
    assert_eq!(shown[6], "exit code 0\nstdout:\nin sub", "a failed change leaves the directory as it was");
    assert_eq!(shown[8], "all 1 lines:\nin sub\n", "`..` behind a link leads where the file system says");
    assert!(shown[9].starts_with("exit code 127"));
    assert_eq!(shown[11], "exit code 0\nstdout:\n-");
}

#[tokio::test]
async fn scripts_run_in_the_current_directory_with_their_arguments() {
    let attempt = observe(
        &[
            ("s.py", b"import sys, os\nprint(sys.argv[1:], os.path.exists('s.py'))\n"),
            ("s.sh", b"[[ $1 == a* ]] && echo yes; exit 4\n"),
        ],
        vec![
            call("execute_python_script", json!({"path": "s.py", "arguments": ["a b", "$HOME"]})),
            call("execute_bash_script", json!({"path": "s.sh", "arguments": ["abc"]})),
            sh("mkdir d"),
            call("change_directory", json!({"path": "d"})),
            call("execute_python_script", json!({"path": "../s.py"})),
        ],
    )
    .await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "exit code 0\nstdout:\n['a b', '$HOME'] True");
    assert_eq!(shown[1], "exit code 4\nstdout:\nyes");
    assert_eq!(shown[4], "exit code 0\nstdout:\n[] False");
}

#[tokio::test]
async fn a_tilde_is_the_sandboxs_home() {
    let attempt = observe(
        &[],
        vec![
            call("write_file", json!({"path": "~/notes/a.txt", "content": "mine\n"})),
            sh("cat ~/notes/a.txt"),
            call("change_directory", json!({"path": "~"})),
            call("read_file", json!({"path": "notes/a.txt"})),
        ],
    )
    .await;
    assert_eq!(attempt.observations()[1], "exit code 0\nstdout:\nmine");
    assert_eq!(attempt.observations()[3], "all 1 lines:\nmine\n");
}

#[tokio::test]
async fn edit_file_can_save_under_another_name_and_writes_nothing_if_the_reply_is_cut_off() {
    let edit = |arguments: Value| call("edit_file", arguments);
    let attempt = observe(
        &[("latin.py", b"# caf\xe9\n")],
        vec![
            edit(json!({"path": "main.py", "instruction": "copy", "save_as": "copy.py"})),
            text("```python\nx = 2\n```"),
            edit(json!({"path": "main.py", "instruction": "cut off"})),
            text("```python\ndef double("),
            edit(json!({"path": "main.py", "instruction": "nothing"})),
            text(""),
            edit(json!({"path": "latin.py", "instruction": "no text"})),
            edit(json!({"path": "missing.py", "instruction": "not there"})),
        ],
    )
    .await;
    assert_eq!(attempt.file("copy.py"), "x = 2\n");
    assert_eq!(attempt.file("main.py"), "def double(x):\n    raise NotImplementedError\n");
    let shown = attempt.observations();
    assert!(
        shown[0].starts_with("`copy.py` was written with these changes:\n--- main.py\n+++ copy.py\n"),
        "{}",
        shown[0]
    );
    assert_eq!(shown[1], "error: the model gave no new content; nothing was written");
    assert_eq!(shown[2], shown[1]);
    assert_eq!(shown[3], "error: `latin.py` is not UTF-8 text");
    assert!(shown[4].starts_with("error: "));
    let prompt = &attempt.asked[1].messages[0].content;
    assert!(
        prompt.contains("raise NotImplementedError") && prompt.contains("copy") && attempt.asked[1].tools.is_empty()
    );
}

#[tokio::test]
async fn edit_file_writes_no_reply_that_was_cut_off_and_no_refusal() {
    let edit = |path: &str, what: &str| call("edit_file", json!({"path": path, "instruction": what}));
    let attempt = observe(
        &[("notes.txt", b"one\n")],
        vec![
            edit("main.py", "one"),
            cut(text("def double(x):\n    y = 2\n")),
            edit("main.py", "two"),
            cut(text("```sh\nls\n```\nThen:\n```python\ndef double(x):\n")),
            edit("main.py", "three"),
            text("I cannot see the file that you mean."),
            edit("notes.txt", "four"),
            text("I cannot say whether this is prose."),
        ],
    )
    .await;
    assert_eq!(attempt.file("main.py"), "def double(x):\n    raise NotImplementedError\n");
    let shown = attempt.observations();
    assert!(
        shown[0].starts_with("error: the model's reply was cut off at a length limit; nothing was written"),
        "{shown:?}"
    );
    assert_eq!(shown[1], shown[0]);
    assert!(
        shown[2].ends_with("nothing was written. The model replied: I cannot see the file that you mean."),
        "{shown:?}"
    );
    assert!(attempt.file("notes.txt").starts_with("I cannot say"), "only Python files can be checked");
}

#[tokio::test]
async fn understand_file_asks_the_model_about_each_part_of_a_long_file_and_then_about_the_answers() {
    let long = (1..=4000).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
    let ask = call("understand_file", json!({"path": "long.txt", "question": "what is it?"}));
    let replies = vec![ask, text("first part"), text("second part"), text("a list of lines")];
    let attempt = observe(&[("long.txt", long.as_bytes())], replies).await;
    assert_eq!(attempt.observations(), ["a list of lines"]);
    assert!(attempt.asked[2].messages[0].content.contains("\nline 4000\n"));
    let notes = &attempt.asked[3].messages[0].content;
    assert!(notes.contains("first part") && notes.contains("to 4000:\nsecond part"), "{notes}");
    assert_eq!((attempt.budget.steps, attempt.budget.calls), (2, 5));
    let endless = "x = 1\n".repeat(200_000);
    let ask = call("understand_file", json!({"path": "long.txt", "question": "what is it?"}));
    let attempt = observe(&[("long.txt", endless.as_bytes())], vec![ask]).await;
    assert!(attempt.observations()[0].starts_with("error: `long.txt` is too long") && attempt.budget.calls == 2);
    let short = vec![call("understand_file", json!({"path": "main.py", "question": "q"})), text("it raises")];
    assert_eq!(observe(&[], short).await.observations(), ["it raises"]);
}

#[tokio::test]
async fn a_command_has_no_keyboard_and_shows_binary_output_as_text() {
    let attempt = observe(&[], vec![sh("cat; printf 'a\\377b\\0'"), sh("kill -9 $$")]).await;
    assert_eq!(attempt.observations(), ["exit code 0\nstdout:\na\u{fffd}b\0", "killed by signal 9, no output"]);
    assert!(attempt.budget.tool_time.as_secs_f64() < Limits::default().seconds);
}

#[tokio::test]
async fn commands_that_no_system_can_run_are_answered_with_an_error() {
    let long = format!("true {}", "x".repeat(1 << 20));
    let attempt = observe(&[], vec![sh("echo a\0b"), sh(&long), sh("echo still here")]).await;
    let shown = attempt.observations();
    assert_eq!(shown[0], "error: a command cannot hold a NUL character");
    assert!(shown[1].starts_with("error: "), "{}", shown[1]);
    assert_eq!(shown[2], "exit code 0\nstdout:\nstill here");
}

#[tokio::test]
async fn listing_a_file_or_reading_a_folder_gives_an_error_that_names_the_suitable_tool() {
    let attempt =
        observe(&[], vec![call("list_files", json!({"path": "main.py"})), call("read_file", json!({"path": "."}))])
            .await;
    let shown = attempt.observations();
    assert!(shown[0].starts_with("error: cannot list") && shown[0].contains("`read_file` shows"));
    assert!(shown[1].starts_with("error: cannot read") && shown[1].contains("`list_files` shows"), "{}", shown[1]);
}

#[tokio::test]
async fn the_listing_of_a_large_folder_shows_the_first_entries_and_the_number_of_omitted_entries() {
    let many = sh("mkdir many; for n in $(seq 1000 1449); do : > many/$n; done");
    let attempt = observe(&[], vec![many, call("list_files", json!({"path": "many"}))]).await;
    let shown = attempt.observations()[1];
    assert_eq!(shown.lines().count(), 201);
    assert!(shown.contains("1199  0") && !shown.contains("1200  0"));
    assert!(shown.ends_with("[... 250 more entries not shown ...]\n"), "{shown}");
}
