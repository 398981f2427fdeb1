//! Tests of malformed replies: each is counted and answered with the form that was expected, and never causes a panic.

use serde_json::{Value, json};

use super::support::{AttemptFixture, call, cut, sh, submit, text};
use crate::agent::End;
use crate::agent::tools::OBSERVATION_LIMIT;
use crate::model::{Reply, Role, Usage};

/// Checks that the reply counts as a format error, that the answer to it contains `expected`, and that the attempt
/// continues.
async fn is_answered(reply: Reply, expected: &str) {
    let own_call = !reply.tool_calls.is_empty();
    let attempt = AttemptFixture::new(vec![reply, submit()]).await.react().await;
    assert_eq!(attempt.end, End::Answered, "{expected}");
    assert_eq!((attempt.format_errors().len(), attempt.budget.format_errors), (1, 1), "{expected}");
    let told = attempt.asked[1].messages.last().unwrap();
    assert!(told.content.contains(expected), "`{expected}` is missing in: {}", told.content);
    assert!(told.content.contains("a call of one of the tools `command_line`"));
    assert_eq!(told.role, if own_call { Role::Tool } else { Role::User });
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_the_available_tools() {
    is_answered(call("run_shell", json!({"command": "ls"})), "there is no tool `run_shell`").await;
    is_answered(text(r#"{"name": "run_shell", "arguments": {}}"#), "there is no tool `run_shell`").await;
}

#[tokio::test]
async fn arguments_that_are_not_json_are_answered_with_an_error() {
    let broken = call("command_line", Value::String("{\"command\": \"ls".into()));
    is_answered(broken, "the arguments of `command_line` are not a JSON object").await;
    is_answered(call("command_line", json!(["ls"])), "not a JSON object but a list").await;
    is_answered(text("```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": ls}}\n```"), "not valid JSON")
        .await;
    is_answered(text("{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", "), "is not closed").await;
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_answered_with_the_limit_it_ran_into() {
    let of_tokens = |output| {
        let reply = text("{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", ");
        Reply { usage: Usage { output, ..Usage::default() }, ..reply }
    };
    let attempt =
        AttemptFixture::new(vec![of_tokens(400), of_tokens(399), submit()]).await.max_tokens(400).react().await;
    let errors = attempt.format_errors();
    assert!(errors[0].ends_with("is not closed (the reply was cut off at 400 tokens, so write a shorter one)"));
    assert!(errors[1].ends_with("is not closed"), "{}", errors[1]);
}

#[tokio::test]
async fn a_reply_that_the_server_cut_off_is_answered_with_the_advice_to_write_less() {
    let note = "the reply was cut off at a length limit, so write a shorter one";
    is_answered(cut(text("")), &format!("Nothing was run: the reply was empty ({note})")).await;
    is_answered(cut(call("command_line", Value::String("{\"command\": \"ls".into()))), note).await;
    let thinking = Reply { reasoning: Some("I think".into()), ..Reply::default() };
    is_answered(cut(thinking), &format!("the reply consisted only of thoughts ({note})")).await;
    let last = AttemptFixture::new(vec![cut(text(""))]).await.limits(|limits| limits.steps = 1).react().await;
    assert_eq!(last.detail, Some(format!("the reply was empty ({note})")));
}

#[tokio::test]
async fn an_action_of_supers_agent_that_was_cut_off_is_not_run() {
    let action = "Thought: done\nAction: submit\n<content>\n{\"Experiment 1\": {\"x\": 1}}\n";
    let replies = vec![cut(text(action)), cut(text(&format!("{action}</content>\nObservation: I")))];
    let attempt = AttemptFixture::new(replies).await.react_with("preset=super").await;
    assert_eq!((attempt.end, attempt.budget.steps), (End::Answered, 2));
    assert_eq!(attempt.format_errors(), ["the reply was cut off at a length limit, so write a shorter one"]);
}

#[tokio::test]
async fn a_call_that_the_server_left_at_the_end_of_the_thoughts_is_run() {
    let list = r#"<tool_call>{"name": "list_files", "arguments": {"path": "."}}</tool_call>"#;
    let thinking = |thoughts: String| Reply { reasoning: Some(thoughts), ..Reply::default() };
    for protocol in ["tools", "text"] {
        let world = AttemptFixture::new(vec![thinking(format!("Draft: {list} No. So:\n{list}\n")), submit()]).await;
        let attempt = world.react_with(&format!("protocol={protocol}")).await;
        assert_eq!(attempt.observations(), ["Call 1 of 1, `list_files`:\nmain.py  45\n"], "{protocol}");
        assert_eq!((attempt.end, attempt.format_errors().len()), (End::Answered, 0), "{protocol}");
    }
    is_answered(thinking(format!("I might call {list}, but first I think.")), "consisted only of thoughts").await;
    is_answered(cut(thinking(format!("I call\n{list}"))), "consisted only of thoughts").await;
    is_answered(thinking("Hm.".into()), "the reply consisted only of thoughts").await;
}

#[tokio::test]
async fn calls_with_names_and_types_as_open_models_write_them_are_run() {
    let tagged = "I look.\n<tool_call>\n<function=inspect_file_lines>\n<parameter=path>\nmain.py\n</parameter>\n\
                  <parameter=start_line>\n1\n</parameter>\n<parameter=end_line>\n1\n</parameter>\n\
                  </function>\n</tool_call>";
    let lines = json!({"path": "main.py", "start_line": "1", "end_line": "1"});
    let replies = vec![
        call("functions.list_files", json!({})),
        call("inspect_file_lines<|channel|>commentary", lines),
        call("Command line", json!({"command": "echo hi", "timeout_seconds": "20"})),
        text(tagged),
        submit(),
    ];
    let attempt = AttemptFixture::new(replies).await.react().await;
    assert_eq!((attempt.end, attempt.format_errors().len()), (End::Answered, 0), "{:?}", attempt.format_errors());
    let line = "lines 1 to 1 of 2:\n    1  def double(x):\n";
    assert_eq!(attempt.observations(), ["main.py  45\n", line, "exit code 0\nstdout:\nhi", line]);
}

#[tokio::test]
async fn missing_extra_and_wrongly_typed_arguments_are_answered_with_an_error_that_describes_the_fault() {
    is_answered(call("command_line", json!({})), "missing field `command`; expected {\"command\": string, ").await;
    is_answered(call("command_line", Value::Null), "missing field `command`").await;
    is_answered(call("command_line", json!({"command": "ls", "timeout": 5})), "unknown field `timeout`").await;
    is_answered(call("command_line", json!({"command": 5})), "invalid type: integer `5`, expected a string").await;
    let lines = json!({"path": "main.py", "start_line": "one"});
    is_answered(call("inspect_file_lines", lines), "\"start_line\": integer (optional)").await;
}

#[tokio::test]
async fn a_reply_without_a_call_is_answered() {
    is_answered(text("I think that I should look at the files first."), "the reply has no tool call").await;
    is_answered(text("```bash\nls -la\n```"), "the reply has no tool call").await;
    is_answered(text(""), "the reply was empty").await;
    is_answered(text(" \n\t"), "the reply was empty").await;
}

#[tokio::test]
async fn a_broken_final_answer_can_be_corrected() {
    is_answered(call("final_answer", json!({})), "`final_answer` needs its `answer`").await;
    is_answered(call("final_answer", json!({"answer": "it works"})), "the answer was not accepted").await;
    is_answered(call("final_answer", json!({"answer": [1, 2]})), "must be a JSON object").await;
}

#[tokio::test]
async fn the_setting_one_call_runs_only_the_first_of_several_calls_in_a_text() {
    let two = "```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"echo a\"}}\n```\nand\n```json\n\
               {\"name\": \"final_answer\", \"arguments\": {\"answer\": \"{}\"}}\n```";
    for protocol in ["tools", "text"] {
        let world = AttemptFixture::new(vec![text(two), submit()]).await;
        let attempt = world.react_with(&format!("one-call=true,protocol={protocol}")).await;
        assert_eq!(attempt.budget.steps, 2);
        assert!(attempt.observations()[0].ends_with("Note: 2 tool calls in one reply; only the first one was run."));
    }
}

#[tokio::test]
async fn five_format_errors_in_a_row_end_the_attempt_but_a_good_call_starts_the_count_again() {
    let mut replies: Vec<Reply> = (0..4).map(|_| text("hm")).collect();
    replies.push(sh("echo good"));
    replies.extend((0..9).map(|_| text("hm")));
    let attempt = AttemptFixture::new(replies).await.react().await;
    assert_eq!(attempt.end, End::FormatErrors);
    assert_eq!((attempt.budget.steps, attempt.format_errors().len()), (10, 9));
}

#[tokio::test]
async fn replies_of_a_megabyte_are_run_or_answered_with_short_errors_and_the_attempt_continues() {
    let big = "x".repeat(1 << 20);
    let write = call("write_file", json!({"path": "big.txt", "content": big}));
    let broken = call("write_file", Value::String(format!("{{\"path\": \"{big}")));
    let name = call(&big, json!({}));
    let attempt =
        AttemptFixture::new(vec![write, broken, name, text(&big), text(&"{\"a\":".repeat(200_000)), submit()]).await;
    let attempt = attempt.react().await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.observations(), ["wrote 1048576 bytes to `big.txt`"]);
    assert!(attempt.format_errors().iter().all(|what| what.len() < OBSERVATION_LIMIT));
    assert_eq!(attempt.format_errors().len(), 4);
}

#[tokio::test]
async fn every_tool_set_answers_bad_replies_and_continues() {
    let answer = r#"{"Experiment 1": {"x": 1}}"#;
    let printed = |answer: &str| format!("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{answer}'");
    for tools in ["autoexperiment", "swe-agent", "super", "bash"] {
        let (shell, argument) = match tools {
            "super" => ("execute", "code"),
            "bash" => ("bash", "command"),
            _ => ("command_line", "command"),
        };
        let shown = if tools == "super" { "!echo one" } else { "echo one" };
        let run = |text: &str| call(shell, json!({ argument: text }));
        let report = |answer: &str| match tools {
            "autoexperiment" => call("final_answer", json!({ "answer": answer })),
            "bash" => run(&printed(answer)),
            _ => call("submit", json!({ "answer": answer })),
        };
        let ten = Reply { tool_calls: (0..10).flat_map(|_| run(shown).tool_calls).collect(), ..Reply::default() };
        let big = "x".repeat(1 << 20);
        let replies = vec![
            text(""),
            text("I should look at the files."),
            ten,
            call(shell, Value::String(format!("{{\"{argument}\": \"{big}"))),
            text(&big),
            report(r#"{"Experiment 1": {"x": "#),
            report(answer),
        ];
        let attempt = AttemptFixture::new(replies).await.react_with(&format!("tools={tools}")).await;
        assert_eq!((attempt.end, attempt.answer.as_deref().map(str::trim)), (End::Answered, Some(answer)), "{tools}");
        assert_eq!(attempt.budget.steps, 7, "{tools}: each reply was answered");
        let errors = attempt.format_errors();
        assert!(errors.len() >= 4 && errors.iter().all(|error| error.len() < OBSERVATION_LIMIT), "{tools}: {errors:?}");
        assert_eq!(errors[..2], ["the reply was empty", "the reply has no tool call"], "{tools}");
        assert!(errors.iter().all(|error| !error.contains("tool calls in one reply")), "{tools}: {errors:?}");
        let told = &attempt.asked[6].messages.last().unwrap().content;
        assert!(told.contains("was not accepted"), "{tools}: {told}");

        // An agent that only repeats a call is told that the result is the same, and the attempt ends at the step
        // limit.
        let world = AttemptFixture::new(vec![run(shown); 30]).await.limits(|limits| limits.steps = 8);
        let attempt = world.react_with(&format!("tools={tools}")).await;
        assert_eq!((attempt.end, attempt.budget.steps), (End::StepLimit, 8), "{tools}");
        let shown = attempt.observations();
        assert!(shown[3].starts_with("The result is the same as in the step before"), "{tools}: {shown:?}");
    }
}
