//! Tests of several tool calls in one reply, and of the setting `one-call`. With this setting, only the first call of a
//! reply is run, as in the original AutoExperiment benchmark.

use serde_json::{Value, json};

use super::support::{AttemptFixture, call, sh, submit, text};
use crate::agent::{End, Event};
use crate::model::{Reply, Role};

/// Builds one reply with all calls of these replies, numbered as a provider does.
fn several(replies: &[Reply]) -> Reply {
    let mut tool_calls: Vec<_> = replies.iter().flat_map(|reply| reply.tool_calls.clone()).collect();
    for (place, call) in tool_calls.iter_mut().enumerate() {
        call.id = format!("c{place}");
    }
    Reply { tool_calls, ..Reply::default() }
}

/// Returns the results shown to the model, each with the id of its call.
fn answers(messages: &[crate::model::Message]) -> Vec<(&str, &str)> {
    let results = messages.iter().filter(|message| message.role == Role::Tool);
    results.filter_map(|message| Some((message.tool_call_id.as_deref()?, message.content.as_str()))).collect()
}

#[tokio::test]
async fn calls_are_run_in_order_in_every_set_of_tools_and_each_is_answered() {
    for (tools, name, argument, answer) in [
        ("autoexperiment", "command_line", "command", "final_answer"),
        ("swe-agent", "command_line", "command", "submit"),
        ("super", "execute", "code", "submit"),
        ("bash", "bash", "command", "bash"),
    ] {
        let run = |text: &str| {
            let command = if tools == "super" { format!("!{text}") } else { text.to_owned() };
            call(name, json!({ argument: command }))
        };
        let report = match tools {
            "bash" => run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{\"Experiment 1\": {\"x\": 1}}'"),
            _ => call(answer, json!({ "answer": r#"{"Experiment 1": {"x": 1}}"# })),
        };
        let three = several(&[run("echo one > log.txt"), run("echo two >> log.txt"), run("cat log.txt")]);
        // The answer ends the attempt; the reply's calls after the answer are not run.
        let last = several(&[run("echo three >> log.txt"), report, run("echo four >> log.txt")]);
        let attempt = AttemptFixture::new(vec![three, last]).await.react_with(&format!("tools={tools}")).await;
        assert_eq!((attempt.end, attempt.budget.steps), (End::Answered, 2), "{tools}");
        assert_eq!(attempt.file("log.txt"), "one\ntwo\nthree\n", "{tools}");
        assert!(attempt.format_errors().is_empty(), "{tools}: several calls are no format error");
        let shown = answers(&attempt.asked[1].messages);
        assert_eq!(shown.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["c0", "c1", "c2"], "{tools}");
        assert!(shown[2].1.contains("one\ntwo"), "{tools}: {shown:?}");
        assert!(attempt.asked.iter().all(|request| !request.one_call), "{tools}");
    }
}

#[tokio::test]
async fn several_calls_in_a_replys_text_are_run_in_order_and_each_result_names_its_call() {
    let reply = "Two at once.\n```bash\necho one > log.txt\n```\nThen:\n```json\n{\"name\": \"nope\", \"arguments\": {}}\n```\n\
                 ```bash\necho two >> log.txt; cat log.txt\n```";
    let json = r#"{"name": "command_line", "arguments": {"command": "echo three >> log.txt"}}
        {"name": "final_answer", "arguments": {"answer": {"Experiment 1": {"x": 1}}}}"#;
    let attempt = AttemptFixture::new(vec![text(reply), text(json)]).await.react_with("protocol=text").await;
    assert_eq!((attempt.end, attempt.budget.steps), (End::Answered, 2));
    assert_eq!(attempt.file("log.txt"), "one\ntwo\nthree\n");
    let shown = attempt.last_shown();
    let order = ["Call 1 of 3, `command_line`:\n", "there is no tool `nope`", "Call 3 of 3, `command_line`:\n"];
    let places: Vec<usize> = order.iter().map(|what| shown.find(what).unwrap_or_else(|| panic!("{shown}"))).collect();
    assert!(places.is_sorted(), "{shown}");
    assert!(shown.contains("one\ntwo"), "{shown}");
    assert_eq!(attempt.format_errors().len(), 1, "the malformed call alone");
}

#[tokio::test]
async fn a_broken_call_gets_an_error_and_the_other_calls_still_run() {
    let broken = [call("write_file", Value::String("{".into())), call("nope", json!({}))];
    let reply = several(&[broken[0].clone(), sh("echo fine"), broken[1].clone()]);
    let attempt = AttemptFixture::new(vec![reply, submit()]).await.react().await;
    assert_eq!(attempt.observations(), ["exit code 0\nstdout:\nfine"]);
    assert_eq!((attempt.format_errors().len(), attempt.budget.format_errors), (1, 1), "one reply, one error");
    let shown = answers(&attempt.asked[1].messages);
    assert_eq!(shown.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["c0", "c1", "c2"]);
    assert!(shown[0].1.contains("not a JSON object") && shown[2].1.contains("there is no tool `nope`"), "{shown:?}");
    // The attempt ends only after several consecutive replies with no call that could be run.
    let attempt = AttemptFixture::new(vec![several(&broken); 9]).await.react().await;
    assert_eq!((attempt.end, attempt.budget.steps), (End::FormatErrors, 5));
}

#[tokio::test]
async fn calls_of_one_reply_stop_when_the_tool_time_is_used_up() {
    let reply = several(&[sh("sleep 0.2"), sh("sleep 60"), sh("echo late")]);
    let world = AttemptFixture::new(vec![reply, submit()]).await.limits(|limits| limits.seconds = 1.0);
    let attempt = world.react().await;
    assert_eq!(attempt.end, End::Answered, "the last reply may still report");
    let shown = attempt.observations();
    assert!(shown[1].starts_with("stopped because the tool time is used up"), "{shown:?}");
    assert!(shown[2].starts_with("error: the tool time is used up"), "{shown:?}");
}

#[tokio::test]
async fn many_observations_of_one_reply_are_shortened_and_only_its_first_32_calls_are_run() {
    let long = sh("head -c 30000 /dev/zero | tr '\\0' x");
    let attempt = AttemptFixture::new(vec![several(&vec![long; 40]), submit()]).await.react().await;
    let shown = answers(&attempt.asked[1].messages);
    assert_eq!((attempt.end, shown.len(), attempt.observations().len()), (End::Answered, 40, 32));
    assert!(shown.iter().map(|(_, content)| content.len()).sum::<usize>() < 110_000);
    assert!(shown[39].1.contains("only the first 32 were run"), "{}", shown[39].1);
}

#[tokio::test]
async fn the_setting_one_call_runs_only_the_first_call_and_asks_providers_for_a_single_call() {
    let reply = several(&[sh("echo first >> log.txt"), sh("echo second >> log.txt"), submit()]);
    let attempt = AttemptFixture::new(vec![reply, submit()]).await.react_with("one-call=true").await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.file("log.txt"), "first\n");
    assert_eq!(attempt.format_errors(), ["3 tool calls in one reply; only the first one was run"]);
    let shown = answers(&attempt.asked[1].messages);
    assert_eq!(shown.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["c0", "c1", "c2"], "each call is answered");
    assert!(attempt.asked.iter().all(|request| request.one_call));
    assert!(attempt.asked[0].messages[0].content.contains("Then call exactly one tool."));
    let again = AttemptFixture::new((0..8).map(|_| several(&[sh("echo a"), sh("echo b")])).chain([submit()]).collect());
    assert_eq!(again.await.react_with("one-call=true").await.end, End::Answered, "that is no reason to stop");
}

#[tokio::test]
async fn a_repeated_result_is_replaced_by_a_note_only_while_the_previous_result_is_shown() {
    let replaced = "The result is the same as in the step before";
    let long = "seq 2000";
    for (history, command, expected) in [
        ("full", long, [false, true, true, true]),
        // Only the newest step is shown, so no output can be replaced by "same as before".
        ("window:1", long, [false, false, false, false]),
        // Only the newest two steps are shown. An output is replaced only if the step before it shows its output in
        // full.
        ("window:2", long, [false, true, false, true]),
        ("summary:1", long, [false, false, false, false]),
        // After the next step, only the end of a long output is shown, so no repetition of a long output is replaced.
        ("super", long, [false, false, false, false]),
        ("super", "echo short", [false, true, true, true]),
    ] {
        let summaries = if history == "summary:1" { 8 } else { 0 };
        let mut replies: Vec<Reply> = vec![sh(command); 4];
        for place in 0..summaries.min(3) {
            replies.insert(2 + 2 * place, text("a summary"));
        }
        let attempt = AttemptFixture::new(replies).await.react_with(&format!("history={history}")).await;
        let said: Vec<bool> = attempt.observations().iter().map(|shown| shown.starts_with(replaced)).collect();
        assert_eq!(said[..4], expected, "{history}: {command}");
    }
}

#[tokio::test]
async fn old_trajectories_in_which_only_the_first_call_was_run_can_be_read() {
    let old = [
        r#"{"at":0.1,"event":"reply","step":1,"text":"","tool_calls":[{"id":"a","name":"command_line","arguments":{}},{"id":"b","name":"x","arguments":{}}],"usage":{"input":1,"cached":0,"output":1,"reasoning":0},"cost":0.0,"seconds":0.1}"#,
        r#"{"at":0.2,"event":"format_error","step":1,"what":"2 tool calls in one reply; only the first one was run"}"#,
        r#"{"at":0.3,"event":"observation","step":1,"call_id":"a","tool":"command_line","arguments":{},"content":"seen","seconds":0.1}"#,
        r#"{"at":0.4,"event":"message","role":"tool","call_id":"b","content":"not run"}"#,
    ];
    let events: Vec<Event> =
        old.iter().map(|line| serde_json::from_str::<crate::agent::TimedEvent>(line).unwrap().event).collect();
    let mut messages = Vec::new();
    for event in &events {
        crate::agent::conversation::take(&mut messages, event);
    }
    assert_eq!(answers(&messages), [("a", "seen"), ("b", "not run")]);
}
