//! Tests of several tries within an attempt.

use serde_json::json;

use super::support::{AttemptFixture, call, costing, sh, submit, text};
use crate::agent::{End, Event};
use crate::model::{Reply, Role};

fn write(code: &str) -> Reply {
    call("write_file", json!({"path": "main.py", "content": code}))
}

fn report() -> Reply {
    call("final_answer", json!({"answer": {"Experiment 1": {"value": 42}, "Experiment 2": {"value": 3.0}}}))
}

fn tries(lines: &[crate::agent::TimedEvent]) -> Vec<(u32, Option<&str>)> {
    let number = |line| match line {
        &crate::agent::TimedEvent { event: Event::Try { number, ref why }, .. } => Some((number, why.as_deref())),
        _ => None,
    };
    lines.iter().filter_map(number).collect()
}

#[tokio::test]
async fn after_a_failed_try_the_model_plans_and_tries_again_with_its_share_of_the_budget() {
    let right = "def double(x):\n    return 2 * x\n";
    let replies =
        vec![sh("echo first-try"), report(), costing(text("1. Write the function."), 0.1, 100), write(right), report()];
    let attempt = AttemptFixture::new(replies).await.react_with("reflexion=3").await;
    assert_eq!((attempt.end, attempt.budget.steps, attempt.budget.calls), (End::Answered, 4, 5));
    assert!((attempt.budget.cost - 0.1).abs() < 1e-9);
    let tries = tries(&attempt.lines);
    let why = tries[1].1.unwrap();
    assert_eq!((tries.len(), tries[0]), (2, (1, None)), "the second try's experiments run, so there is no third");
    assert!(
        why.starts_with(
            "experiments gave no result when they were run again: Experiment 1: exit code 1, NotImplementedError"
        ),
        "{why}"
    );
    let asked = &attempt.asked[2].messages;
    assert!(asked.len() == 1 && asked[0].content.contains("first-try") && asked[0].content.contains(why));
    let again = &attempt.asked[3].messages;
    assert_eq!(again.iter().map(|message| message.role).collect::<Vec<_>>(), [Role::System, Role::User]);
    assert!(
        again[1].content.contains("16 steps and 10 minutes") && again[1].content.contains("1. Write the function.")
    );
    assert!(!again[1].content.contains("first-try"));
    let plan = |event: &Event| matches!(event, Event::ToolModelCall { tool, .. } if tool == "reflexion");
    assert!(attempt.lines.iter().any(|line| plan(&line.event)));
}

#[tokio::test]
async fn each_try_gets_its_share_of_the_steps_and_the_answer_of_an_earlier_try_counts() {
    let mut replies = vec![submit(), text("Report all.")];
    replies.extend((0..4).map(|number| sh(&format!("echo {number}"))));
    let world = AttemptFixture::new(replies).await.limits(|limits| limits.steps = 6);
    let attempt = world.react_with("reflexion=2").await;
    assert_eq!(tries(&attempt.lines)[1].1, Some("nothing was reported for Experiment 2"));
    assert_eq!(
        (attempt.end, attempt.budget.steps),
        (End::Answered, 4),
        "three steps a try, and the first has used one"
    );
    assert_eq!(attempt.detail.as_deref(), Some("the answer is from an earlier try; the last try ended with StepLimit"));
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1": {"x": 1}}"#));
}

#[tokio::test]
async fn a_try_that_ends_without_a_report_has_failed() {
    let mut replies: Vec<Reply> = (0..5).map(|_| text("hm")).collect();
    replies.push(text(""));
    replies.extend([write("def double(x):\n    return 2 * x\n"), report()]);
    let attempt = AttemptFixture::new(replies).await.react_with("reflexion=2").await;
    let why = "no results were reported: too many replies contained no call that could be run";
    assert_eq!((attempt.end, tries(&attempt.lines)[1].1), (End::Answered, Some(why)));
    let told = &attempt.asked[6].messages[1].content;
    assert!(told.ends_with("The files are as that try left them."), "without a plan: {told}");
    let limited = AttemptFixture::new(vec![sh("echo one")]).await.limits(|limits| limits.seconds = 0.0);
    assert_eq!(limited.react_with("reflexion=2").await.end, End::TimeLimit);
}

#[tokio::test]
async fn late_and_many_tries_get_their_whole_share_of_the_steps() {
    // Every try works for its five steps without an answer, and a plan follows each try but the last.
    let five = || (0..5).map(|_| costing(sh("date +%N"), 0.001, 100));
    let tried = (0..10).flat_map(|_| five().chain([costing(text("Try again."), 0.001, 100)]));
    let world = AttemptFixture::new(tried.collect()).await.limits(|limits| limits.tokens = Some(1_000_000));
    let attempt = world.react_with("reflexion=10").await;
    assert_eq!((attempt.end, attempt.budget.steps), (End::StepLimit, 50));
    assert_eq!(tries(&attempt.lines).len(), 10);
    assert!(
        tries(&attempt.lines)[1..].iter().all(|(_, why)| why.is_some_and(|why| why.ends_with("the steps are used up")))
    );
}
