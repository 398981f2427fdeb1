//! Tests of prompts, and of tool calls that the model writes as text.

use serde_json::json;

use super::support::{AttemptFixture, call, open, submit, text};
use crate::agent::{End, Settings};
use crate::model::{Reply, Role, Usage};

const REPORT: &str = "Done.\n```final_answer\n{\"Experiment 1\": {\"x\": 1}}\n```";

#[tokio::test]
async fn calls_by_text_are_run_and_no_tool_is_offered_to_the_provider() {
    let replies = ["I look.\n```bash\necho one\n```", "```write_file\npath: a.py\nx = \"1\"\n```", REPORT].map(text);
    let attempt = AttemptFixture::new(replies.to_vec()).await.react_with("protocol=text").await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(r#"{"Experiment 1": {"x": 1}}"#)));
    assert_eq!(attempt.observations(), ["exit code 0\nstdout:\none", "wrote 8 bytes to `a.py`"]);
    assert_eq!(attempt.file("a.py"), "x = \"1\"\n");
    assert!(attempt.asked.iter().all(|request| request.tools.is_empty()));
    let system = &attempt.asked[0].messages[0].content;
    // Small models copy the example, so the example must be a useful call.
    assert!(system.contains("```command_line\ncat experiments.md\n```") && !system.contains("check.py"));
    assert!(!system.contains("If you cannot call tools directly"));
    let roles: Vec<Role> = attempt.asked[2].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User, Role::Assistant, Role::User]);
}

#[tokio::test]
async fn a_reply_without_a_fenced_call_is_answered_with_an_example() {
    let replies = ["I shall look.", "```bash\nls", "```run_it\nls\n```", REPORT].map(text);
    let attempt = AttemptFixture::new(replies.to_vec()).await.react_with("protocol=text").await;
    assert_eq!(attempt.end, End::Answered);
    let none = "the reply has no code fence with a call";
    assert_eq!(attempt.format_errors(), [none, "the code fence `bash` is not closed", none]);
    let told = &attempt.asked[1].messages.last().unwrap().content;
    assert!(told.starts_with("Nothing was run: the reply has no code fence with a call."), "{told}");
    let example = "```json\n{\"name\": \"list_files\", \"arguments\": {\"path\": \".\"}}\n```";
    assert!(told.contains(example), "small models copy what they are shown: {told}");
}

#[tokio::test]
async fn in_the_last_reply_of_the_text_protocol_an_answer_counts_but_no_command_runs() {
    for (last, end) in [(REPORT, End::Answered), ("```bash\necho late\n```", End::StepLimit)] {
        let world = AttemptFixture::new(["```bash\necho one\n```", last].map(text).to_vec()).await;
        let attempt = world.limits(|limits| limits.steps = 2).react_with("protocol=text").await;
        assert_eq!((attempt.end, attempt.observations().len()), (end, 1));
    }
}

#[tokio::test]
async fn each_prompt_style_asks_for_its_sections_and_the_agents_name_lists_its_settings() {
    for (setting, name, parts) in [
        ("prompt=react", "react", vec!["first think: say in a few sentences"]),
        (
            "prompt=mlagentbench,protocol=text",
            "react+prompt=mlagentbench+protocol=text",
            vec!["**Reflection**", "**Research Plan and Status**", "**Fact Check**", "**Thought**"],
        ),
        (
            "prompt=planning,history=window:5,context=8000,tools=bash",
            "react+prompt=planning+history=window-5+context=8000+tools=bash",
            vec!["**Plan and Status**", "**Thought**", "the last 5 steps only"],
        ),
    ] {
        let agent = open(&format!("react:{setting}"), &Settings::default(), None).unwrap();
        assert_eq!(agent.name(), name);
        let attempt = AttemptFixture::new(vec![submit()]).await.react_with(setting).await;
        let system = &attempt.asked[0].messages[0].content;
        for part in parts {
            assert!(system.contains(part), "{part} is missing in:\n{system}");
        }
        let by_text = setting.contains("protocol=text");
        assert_eq!(system.contains("Then call one tool."), by_text, "{system}");
        assert_eq!(system.contains("or several in one reply"), !by_text, "{system}");
    }
}

#[tokio::test]
async fn with_one_shell_tool_the_task_says_how_to_report() {
    let attempt =
        AttemptFixture::new(vec![call("bash", json!({"command": "echo hi"}))]).await.react_with("tools=bash").await;
    let (system, task) = (&attempt.asked[0].messages[0].content, &attempt.asked[0].messages[1].content);
    assert!(task.contains("prints the line `COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT` first"), "{task}");
    assert!(!task.contains("final_answer") && !system.contains("final_answer"));
    assert_eq!(attempt.asked[0].tools.len(), 1);
}

#[tokio::test]
async fn a_dynamic_agent_thinks_before_its_first_step_until_its_tokens_are_spent() {
    let thought = |said: &str, output| Reply { usage: Usage { output, ..Usage::default() }, ..text(said) };
    let replies = || vec![thought("First this.", 30), thought("Then that.", 60), submit()];
    let attempt = AttemptFixture::new(replies()).await.max_tokens(500).react_with("reasoning=100").await;
    assert_eq!((attempt.end, attempt.budget.usage.output), (End::Answered, 90));
    let most: Vec<_> = attempt.asked.iter().map(|request| request.sampling.max_tokens.unwrap()).collect();
    assert_eq!(most, [100, 70, 500], "what is left after the second is not worth another call");
    let offered: Vec<bool> = attempt.asked.iter().map(|request| !request.tools.is_empty()).collect();
    assert_eq!(offered, [false, false, true], "thoughts call no tools");
    let last = &attempt.asked[2].messages;
    assert!(last.iter().any(|message| message.content.starts_with("Wait.")));
    assert_eq!(last[last.len() - 2].content, "Then that.");
    assert!(last.last().is_some_and(|message| message.role == Role::User && message.content.starts_with("Now begin")));
    assert!(attempt.format_errors().is_empty());
    assert_eq!(open("react:reasoning=100", &Settings::default(), None).unwrap().name(), "react+reasoning=100");
    // With a limit of two steps, only one step is a reasoning step without tools, because the last step is kept for
    // calling tools.
    let attempt =
        AttemptFixture::new(replies()).await.limits(|limits| limits.steps = 2).react_with("reasoning=100").await;
    assert_eq!((attempt.asked.len(), attempt.asked[1].tools.is_empty()), (2, false));
}
