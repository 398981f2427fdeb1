//! Tests that limits hold inside a step, not only between steps, and that the model is asked once to submit.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::support::{AttemptFixture, call, costing, sh, submit, text};
use crate::agent::budget::command_limit;
use crate::agent::{End, Event, Limits};

#[tokio::test]
async fn a_command_of_a_minute_is_cut_at_a_limit_of_1_second() {
    let begun = Instant::now();
    let world = AttemptFixture::new(vec![sh("sleep 60; echo late > late.txt"), sh("echo more"), submit()]).await;
    let attempt = world.limits(|limits| limits.seconds = 1.0).react().await;
    assert!(begun.elapsed() < super::support::SOON, "{:?}", begun.elapsed());
    assert_eq!(attempt.observations(), ["stopped because the tool time is used up, no output"]);
    assert!(!attempt.dir.path().join("late.txt").exists());
    // One last reply was requested. It was not an answer, so the attempt ended without using the next prepared reply.
    assert_eq!((attempt.end, attempt.asked.len(), attempt.told_to_submit()), (End::TimeLimit, 2, 1));
    assert_eq!(attempt.answer, None);
}

#[tokio::test]
async fn after_the_tool_time_is_used_up_an_answer_in_the_last_reply_still_counts() {
    let world = AttemptFixture::new(vec![sh("sleep 4"), submit()]).await;
    let attempt = world.limits(|limits| limits.seconds = 0.3).react().await;
    assert_eq!((attempt.end, attempt.told_to_submit()), (End::Answered, 1));
    assert!(attempt.last_shown().contains("The tool time is used up. Your next reply is the last one"));
}

#[tokio::test]
async fn reading_writing_and_listing_end_when_the_time_for_tools_is_used_up() {
    for (tool, arguments) in [
        ("read_file", json!({"path": "main.py"})),
        ("write_file", json!({"path": "a", "content": "A"})),
        ("list_files", json!({})),
    ] {
        let begun = std::time::Instant::now();
        let world = AttemptFixture::new(vec![call(tool, arguments), submit()]).await.stuck();
        let attempt = world.limits(|limits| limits.seconds = 0.3).react().await;
        assert_eq!(attempt.observations(), ["error: not finished: the tool time is used up"], "{tool}");
        assert_eq!((attempt.end, attempt.told_to_submit()), (End::Answered, 1));
        assert!(attempt.budget.time_left().is_zero() && begun.elapsed() < super::support::SOON);
    }
}

#[tokio::test]
async fn many_short_actions_use_up_the_time() {
    let world = AttemptFixture::new((0..50).map(|_| sh("sleep 0.1")).collect()).await;
    let attempt = world.limits(|limits| limits.seconds = 0.5).react().await;
    assert_eq!(attempt.end, End::TimeLimit);
    assert!(attempt.budget.steps <= 7, "{} steps", attempt.budget.steps);
}

#[tokio::test]
async fn waiting_for_a_model_costs_no_tool_time() {
    let attempt =
        AttemptFixture::new(vec![sh("true"), submit()]).await.limits(|limits| limits.seconds = 5.0).react().await;
    let tool_time: f64 = attempt
        .lines
        .iter()
        .filter_map(|line| if let Event::Observation { seconds, .. } = &line.event { Some(*seconds) } else { None })
        .sum();
    assert!((attempt.budget.tool_time.as_secs_f64() - tool_time).abs() < 1e-3);
}

#[tokio::test]
async fn before_its_last_step_an_agent_is_told_exactly_once_to_submit_its_answer() {
    let world = AttemptFixture::new(vec![sh("echo 1"), sh("echo 2"), submit()]).await;
    let attempt = world.limits(|limits| limits.steps = 3).react().await;
    assert_eq!((attempt.end, attempt.told_to_submit(), attempt.asked.len()), (End::Answered, 1, 3));
    assert!(attempt.last_shown().ends_with(
        "This is your last step. Your next reply is the last one, and only `final_answer` counts in it: report all \
         results that you have now."
    ));
}

#[tokio::test]
async fn a_tool_call_in_the_last_reply_is_not_run_unless_it_submits_the_answer() {
    let world = AttemptFixture::new(vec![sh("echo 1"), sh("touch run.txt"), submit()]).await;
    let attempt = world.limits(|limits| limits.steps = 2).react().await;
    assert_eq!((attempt.end, attempt.asked.len()), (End::StepLimit, 2));
    assert!(!attempt.dir.path().join("run.txt").exists());
    assert_eq!(
        attempt.detail.as_deref(),
        Some("the last reply called `command_line`, but only `final_answer` counts in it")
    );
}

#[tokio::test]
async fn a_broken_answer_on_the_last_step_is_accepted_unchanged() {
    let broken = call("final_answer", json!({"answer": "about 5"}));
    let attempt = AttemptFixture::new(vec![broken]).await.limits(|limits| limits.steps = 1).react().await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some("about 5")));
    // If the last reply makes several calls, one of which gives the answer, the answer counts.
    let mut two = sh("echo 1");
    two.tool_calls.extend(submit().tool_calls);
    assert_eq!(AttemptFixture::new(vec![two]).await.limits(|limits| limits.steps = 1).react().await.end, End::Answered);
}

#[tokio::test]
async fn a_limit_of_zero_steps_ends_the_attempt_without_a_model_call() {
    let attempt = AttemptFixture::new(vec![submit()]).await.limits(|limits| limits.steps = 0).react().await;
    assert_eq!((attempt.end, attempt.asked.len()), (End::StepLimit, 0));
}

#[tokio::test]
async fn no_call_is_made_when_the_money_is_used_up() {
    let world = AttemptFixture::new(vec![costing(sh("echo 1"), 1.5, 1), submit()]).await;
    let attempt = world.react().await;
    assert_eq!((attempt.end, attempt.asked.len()), (End::CostLimit, 1));
}

#[tokio::test]
async fn before_the_money_runs_out_the_agent_is_told_to_submit() {
    let replies = vec![costing(sh("echo 1"), 0.4, 1), costing(sh("echo 2"), 0.3, 1), costing(submit(), 0.3, 1)];
    let attempt = AttemptFixture::new(replies).await.react().await;
    assert_eq!((attempt.end, attempt.told_to_submit()), (End::CostLimit, 1), "0.6 left, the next two may cost 0.8");
    let replies = vec![costing(sh("echo 1"), 0.4, 1), costing(submit(), 0.4, 1)];
    assert_eq!(AttemptFixture::new(replies).await.react().await.end, End::Answered);
}

#[tokio::test]
async fn an_agent_is_told_exactly_once_to_submit_before_it_reaches_its_token_limit() {
    let world =
        AttemptFixture::new(vec![costing(sh("echo 1"), 0.0, 600), costing(sh("echo 2"), 0.0, 700), submit()]).await;
    let attempt = world.limits(|limits| limits.tokens = Some(1000)).react().await;
    assert_eq!((attempt.end, attempt.told_to_submit()), (End::TokenLimit, 1));
}

#[tokio::test]
async fn a_tool_does_not_ask_the_model_when_the_money_is_used_up() {
    let long = "x = 1\n".repeat(30_000);
    let ask = call("understand_file", json!({"path": "long.py", "question": "what?"}));
    let dear = (0..20).map(|_| costing(text("part"), 0.3, 1));
    let world = AttemptFixture::new(std::iter::once(ask).chain(dear).collect()).await;
    std::fs::write(world.dir.path().join("long.py"), &long).unwrap();
    let attempt = world.react().await;
    assert_eq!(attempt.observations(), ["error: `understand_file` was not run: the money is used up"]);
    assert_eq!((attempt.end, attempt.asked.len()), (End::CostLimit, 5), "the fourth part went beyond $1");
}

#[tokio::test]
async fn every_tool_set_has_a_time_limit_per_command() {
    for (tools, name, argument) in [
        ("autoexperiment", "command_line", "command"),
        ("swe-agent", "command_line", "command"),
        ("bash", "bash", "command"),
    ] {
        let endless = call(name, json!({ argument: "while :; do :; done", "timeout_seconds": 0.5 }));
        let wrong = call(name, json!({ argument: "true", "timeout_seconds": 0 }));
        let world = AttemptFixture::new(vec![endless, wrong, call(name, json!({ argument: "echo on" }))]).await;
        let attempt = world.react_with(&format!("tools={tools}")).await;
        let shown = attempt.observations();
        assert!(shown[0].starts_with("stopped after 0.5 seconds, the time limit of one call."), "{tools}: {shown:?}");
        assert!(
            shown[0].contains("larger `timeout_seconds`") && shown[0].contains("a loop that does not end"),
            "{shown:?}"
        );
        assert!(shown[1].ends_with("on"), "{tools}: the attempt goes on: {shown:?}");
        assert_eq!(attempt.format_errors(), ["`timeout_seconds` must be more than 0"], "{tools}");
        assert!(attempt.budget.tool_time < Duration::from_mins(1), "{tools}: {:?}", attempt.budget.tool_time);
    }
    // In a Python session, code that exceeds a call's time limit keeps running, and can be interrupted.
    let endless = call("execute", json!({"code": "while True: pass", "timeout_seconds": 0.5}));
    let wait = call("continue_wait", json!({"timeout_seconds": 0.5}));
    let replies = vec![endless, wait, call("interrupt", json!({})), call("execute", json!({"code": "1 + 1"}))];
    let attempt = AttemptFixture::new(replies).await.react_with("tools=super").await;
    let shown = attempt.observations();
    assert!(shown[0].starts_with("still running after 0.5 seconds; `continue_wait` waits on"), "{shown:?}");
    assert!(shown[1].starts_with("still running after 0.5 seconds") && shown[3] == "2", "{shown:?}");
}

#[tokio::test]
async fn a_script_is_stopped_at_its_timeout_or_else_at_the_default() {
    let script = |arguments: Value| {
        let mut all = json!({"path": "loop.sh"});
        all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
        call("execute_bash_script", all)
    };
    let world = AttemptFixture::new(vec![script(json!({"timeout_seconds": 0.3})), script(json!({}))]).await;
    std::fs::write(world.dir.path().join("loop.sh"), "while :; do sleep 0.05; done\n").unwrap();
    let attempt = world.limits(|limits| limits.seconds = 30.0).react().await;
    let shown = attempt.observations();
    assert!(shown[0].starts_with("stopped after 0.3 seconds"), "{shown:?}");
    assert!(shown[1].starts_with("stopped after 10 seconds"), "a third of 30: {shown:?}");
    let task = &attempt.asked[0].messages[1].content;
    assert!(
        task.contains("One call is stopped after 10 seconds unless its `timeout_seconds` says otherwise"),
        "{task}"
    );
    assert_eq!(command_limit(&Limits::default()), Duration::from_mins(5), "of 30 minutes");
}
