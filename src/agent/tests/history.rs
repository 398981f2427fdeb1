//! Tests which parts of a conversation the model is shown again. `support` checks for every attempt that the record
//! holds exactly what the model was shown.

use serde_json::json;

use super::support::{Attempt, AttemptFixture, call, costing, sh, submit, text};
use crate::agent::{End, Event};
use crate::model::{ModelError, Reply, Role};

/// Returns `count` commands that each print a different line, then the answer.
fn steps(count: usize) -> Vec<Reply> {
    (0..count).map(|number| sh(&format!("echo result-{number}"))).chain([submit()]).collect()
}

/// Returns the messages sent in the last call that the agent itself made, without the system prompt and the task. Only
/// requests of the agent itself, not those of its tools, begin with a system prompt.
fn shown_messages(attempt: &Attempt) -> Vec<String> {
    let own = attempt.asked.iter().rev().find(|request| request.messages[0].role == Role::System).unwrap();
    own.messages[2..].iter().map(|message| message.content.clone()).collect()
}

#[tokio::test]
async fn a_window_shows_the_last_steps_and_notes_the_omitted_ones() {
    let attempt = AttemptFixture::new(steps(6)).await.react_with("history=window:2").await;
    let shown = shown_messages(&attempt);
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(shown[1].contains("result-4") && shown[3].contains("result-5"));
    let task = &attempt.asked[6].messages[1].content;
    assert!(task.ends_with("\n\n[The steps that came next are left out here.]"), "{task}");
    assert_eq!(task.matches("left out").count(), 1, "one note, however often steps leave");
    assert_eq!(attempt.asked[2].messages.len(), 6, "nothing is left out of as many steps as are kept");
    assert_eq!(attempt.budget.calls, 7);
}

#[tokio::test]
async fn the_model_summarises_removed_messages_and_the_call_is_charged() {
    let mut replies = steps(8);
    // With `summary:2`, a summary is requested when there are four steps (two of them are kept), and again two steps
    // later.
    replies.insert(4, costing(text("First summary."), 0.1, 100));
    replies.insert(7, costing(text("Second summary."), 0.1, 100));
    replies.insert(10, costing(text(""), 0.1, 100));
    let attempt = AttemptFixture::new(replies).await.react_with("history=summary:2").await;
    assert_eq!((attempt.end, attempt.budget.steps, attempt.budget.calls), (End::Answered, 9, 12));
    assert!((attempt.budget.cost - 0.3).abs() < 1e-9 && attempt.budget.usage.input == 300);
    let first = &attempt.asked[4].messages[0].content;
    assert!(first.contains("result-0") && first.contains("result-1") && !first.contains("result-2"), "{first}");
    let second = &attempt.asked[7].messages[0].content;
    assert!(second.contains("First summary.") && second.contains("result-3") && !second.contains("result-1"));
    let task = &attempt.asked.last().unwrap().messages[1].content;
    assert!(task.contains("This is a summary of them:]\n\nSecond summary."), "an empty summary replaces nothing");
    assert!(!task.contains("First summary."));
    assert_eq!(shown_messages(&attempt).len(), 4);
    let called = |event: &Event| matches!(event, Event::ToolModelCall { tool, .. } if tool == "summary");
    assert_eq!(attempt.lines.iter().filter(|line| called(&line.event)).count(), 3);
}

#[tokio::test]
async fn steps_are_left_out_even_if_the_provider_refuses_to_summarise_them() {
    let replies = steps(4)[..2].to_vec();
    let world = AttemptFixture::new(replies).await.then_fails(ModelError::Refused("filter".into())).then(submit());
    let attempt = world.react_with("history=summary:1").await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(shown_messages(&attempt).len(), 2);
    let broken = AttemptFixture::new(steps(4)[..2].to_vec()).await.then_fails(ModelError::Unavailable("503".into()));
    assert_eq!(broken.react_with("history=summary:1").await.end, End::ModelError);
}

#[tokio::test]
async fn with_the_history_named_super_only_the_ends_of_older_observations_are_shown() {
    let long = sh("head -c 3000 /dev/zero | tr '\\0' x; echo; echo END-$((1 + 1))");
    let attempt = AttemptFixture::new(vec![long.clone(), sh("echo short"), long, submit()])
        .await
        .react_with("history=super")
        .await;
    let shown = shown_messages(&attempt);
    assert!(shown[1].starts_with("[...]\nxxx") && shown[1].ends_with("END-2"), "{}", shown[1]);
    assert_eq!(shown[1].chars().count(), 506);
    assert!(shown[3].contains("short") && shown[5].chars().count() > 3000);
}

#[tokio::test]
async fn old_observations_are_shortened_and_recorded_when_the_context_fills_up() {
    // Each observation has about 4,000 tokens; prompts and tools have 3,000. So a context of 16,000 tokens is too small
    // for four observations.
    let long = |number: u32| sh(&format!("head -c 12000 /dev/zero | tr '\\0' x; echo {number}"));
    let attempt =
        AttemptFixture::new((0..6).map(long).chain([submit()]).collect()).await.react_with("context=16000").await;
    assert_eq!(attempt.end, End::Answered);
    let lengths: Vec<usize> =
        shown_messages(&attempt).iter().skip(1).step_by(2).map(|content| content.chars().count()).collect();
    assert!(lengths[0] <= 500 && lengths[1] <= 500 && lengths[5] > 12_000, "{lengths:?}");
    let shortened = |event: &Event| matches!(event, Event::Shortened { .. });
    assert!(attempt.lines.iter().any(|line| shortened(&line.event)));
    for request in &attempt.asked {
        let bytes: usize = request.messages.iter().map(|message| message.content.len()).sum();
        assert!(bytes < 60_000, "{bytes}");
    }
}

#[tokio::test]
async fn an_attempt_whose_conversation_the_server_cuts_silently_is_not_scored() {
    let end = async |tokens: [u64; 8]| {
        let replies = tokens.into_iter().enumerate().map(|(place, tokens)| {
            let long = if place < 3 { "head -c 12000 /dev/zero | tr '\\0' x; " } else { "" };
            costing(sh(&format!("{long}echo {place}")), 0.0, tokens)
        });
        let attempt = AttemptFixture::new(replies.chain([submit()]).collect()).await.react().await;
        (attempt.end, attempt.asked.len(), attempt.detail)
    };
    // This server silently cuts conversations to its context, so its token counts do not grow.
    let (ended, calls, detail) = end([2051; 8]).await;
    assert_eq!((ended, calls), (End::ModelDenied, 6), "{detail:?}");
    assert!(detail.is_some_and(|detail| detail.contains("OLLAMA_CONTEXT_LENGTH") && detail.contains("2051 tokens")));
    assert_eq!(end([2051, 3900, 3000, 3100, 2500, 2400, 2300, 2200]).await.0, End::ModelDenied);
    for honest in [
        // All tokens are counted, but the text takes few tokens per byte.
        [2500, 2600, 2700, 2800, 2830, 2860, 2890, 2920],
        // Only the tokens that are missing from the server's cache are counted.
        [2500, 3000, 3000, 3000, 25, 25, 25, 25],
        // The counts are missing, or the same whatever is sent.
        [2500, 3000, 0, 0, 0, 0, 0, 0],
        [10, 10, 10, 10, 10, 10, 10, 10],
    ] {
        assert_eq!(end(honest).await.0, End::Answered, "{honest:?}");
    }
}

#[tokio::test]
async fn the_token_estimate_is_calibrated_by_the_usage_of_replies() {
    let long = sh("head -c 12000 /dev/zero | tr '\\0' x");
    for (told, kept) in [(0, 12_000), (3000, 12_000), (12_000, 1500)] {
        let attempt = AttemptFixture::new(vec![costing(long.clone(), 0.0, told), submit()])
            .await
            .react_with("context=16000")
            .await;
        let length = shown_messages(&attempt)[1].len();
        assert!(length >= kept && length < kept + 1000, "{length} of {kept}");
    }
}

#[tokio::test]
async fn a_conversation_that_the_provider_finds_too_long_is_shortened_and_sent_again() {
    let long = sh("head -c 12000 /dev/zero | tr '\\0' x");
    let too_long = || ModelError::ContextLength("16384".into());
    let world = AttemptFixture::new(vec![long.clone(), sh("echo short")]).await.then_fails(too_long()).then(submit());
    let attempt = world.react_with("").await;
    assert_eq!((attempt.end, attempt.budget.calls), (End::Answered, 4));
    assert!(shown_messages(&attempt)[1].chars().count() <= 500 && shown_messages(&attempt)[3].contains("short"));
    // The attempt ends when there is nothing left to shorten.
    let world = AttemptFixture::new(vec![long]).await.then_fails(too_long()).then_fails(too_long());
    assert_eq!(world.react_with("").await.end, End::TokenLimit);
}

#[tokio::test]
async fn a_history_window_leaves_out_older_steps_together_with_their_format_errors() {
    let replies = vec![text("hm"), call("nope", json!({})), sh("echo one"), sh("echo two"), submit()];
    let attempt = AttemptFixture::new(replies).await.react_with("history=window:1").await;
    assert_eq!(attempt.end, End::Answered);
    let shown = shown_messages(&attempt);
    assert!(shown.len() == 2 && shown[1].contains("two"), "{shown:?}");
}
