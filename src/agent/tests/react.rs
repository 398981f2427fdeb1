//! Tests of `react` with well-formed replies and within its limits.

use serde_json::json;

use super::support::{AttemptFixture, call, costing, open, sh, submit, task, text};
use crate::agent::retrieval::{CodeChoice, PaperChoice};
use crate::agent::tools::OBSERVATION_LIMIT;
use crate::agent::{End, Event, Settings};
use crate::error::FailureKind;
use crate::model::{ModelError, QueryFailed, Role, Usage};

#[tokio::test]
async fn an_attempt_runs_tools_step_by_step_and_ends_with_its_answer() {
    let world = AttemptFixture::new(vec![sh("echo one"), sh("echo two > two.txt"), submit()]).await;
    let attempt = world.react().await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1": {"x": 1}}"#));
    assert_eq!(attempt.observations(), ["exit code 0\nstdout:\none", "exit code 0, no output"]);
    assert_eq!(attempt.file("two.txt"), "two\n");
    assert_eq!((attempt.budget.steps, attempt.told_to_submit()), (3, 0));
    assert!(attempt.format_errors().is_empty());
    assert!(attempt.lines.iter().any(|line| matches!(&line.event, Event::Answer { .. })));
}

#[tokio::test]
async fn each_model_call_sends_the_whole_history_and_has_its_own_number_and_seed() {
    let attempt = AttemptFixture::new(vec![sh("echo one"), sh("echo two"), submit()]).await.react().await;
    let roles: Vec<Role> = attempt.asked[2].messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::Tool]);
    assert_eq!(attempt.asked.iter().map(|request| request.call).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(attempt.asked.iter().all(|request| request.tools.len() == 12));
    let seeds: Vec<_> = attempt.asked.iter().map(|request| request.sampling.seed).collect();
    assert_eq!(seeds, [Some(7), Some(8), Some(9)], "the same seed would keep a model in a loop");
    assert_eq!(attempt.asked[2].messages[3].tool_call_id.as_deref(), Some("a1"));
}

#[tokio::test]
async fn the_prompts_name_functions_experiments_tools_files_and_limits() {
    let attempt = AttemptFixture::new(vec![]).await.limits(|limits| limits.steps = 33).react().await;
    let system = &attempt.asked[0].messages[0].content;
    let by_text = AttemptFixture::new(vec![]).await.react_with("protocol=text").await;
    let told = &by_text.asked[0].messages[0].content;
    for tool in attempt.asked[0].tools.iter() {
        // Each tool is described exactly once. The prompt describes it only with the text protocol; otherwise, the
        // request's list of tools does.
        let call = format!("`{{\"name\": \"{}\", \"arguments\": {{\"", tool.name);
        assert!(!system.contains(&call) && told.contains(&call), "{call}:\n{system}\n{told}");
    }
    assert!(by_text.asked[0].tools.is_empty());
    let task = &attempt.asked[0].messages[1].content;
    for part in [
        "On Doubling",
        "A. Author, B. Author, 2020",
        "`main.py::double`: Doubles a number.",
        "Experiment 1: Doubles",
        "\"Experiment 1\", \"Experiment 2\"",
        "python3 -c 'import main;",
        "paper.txt",
        "experiments.md",
        "run_experiments.sh",
        "33 steps",
        "30 minutes",
        "and $1 for",
    ] {
        assert!(task.contains(part), "{part} is missing in:\n{task}");
    }
    assert!(!task.contains("in the paper: Method"), "where it stands is told with `paper=oracle` only");
    assert!(!task.contains("return x + x") && !system.contains("return x + x"), "the original must not be shown");
}

#[tokio::test]
async fn a_tool_call_in_a_json_code_fence_is_run_like_a_native_tool_call() {
    let fenced =
        "I look around.\n```json\n{\"name\": \"command_line\", \"arguments\": {\"command\": \"echo hi\"}}\n```";
    let last = "{\"tool\": \"final_answer\", \"args\": {\"answer\": {\"Experiment 1\": {\"x\": 1.50}}}}";
    let attempt = AttemptFixture::new(vec![text(fenced), text(last)]).await.react().await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.observations(), ["exit code 0\nstdout:\nhi"]);
    assert_eq!(attempt.asked[1].messages[3].role, Role::User, "no provider's call, so no tool message");
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1":{"x":1.5}}"#));
}

#[tokio::test]
async fn an_agent_is_told_when_a_call_repeats_the_previous_one_with_the_same_result() {
    let replies = ["echo a", "echo a", "echo a", "echo b", "echo a", "date +%N", "date +%N"].map(sh);
    let attempt = AttemptFixture::new(replies.into_iter().chain([submit()]).collect()).await.react().await;
    let noted: Vec<bool> =
        attempt.observations().iter().map(|shown| shown.starts_with("The result is the same")).collect();
    assert_eq!(noted, [false, true, true, false, false, false, false]);
}

#[tokio::test]
async fn five_megabytes_of_output_are_cut_in_the_middle_with_a_note() {
    let flood = "printf BEGIN; head -c 5000000 /dev/zero | tr '\\0' x; printf END";
    let attempt = AttemptFixture::new(vec![sh(flood), submit()]).await.react().await;
    let shown = attempt.observations()[0];
    assert!(shown.chars().count() <= OBSERVATION_LIMIT, "{}", shown.len());
    assert!(shown.contains("BEGINx") && shown.ends_with("xEND"));
    assert!(
        shown.contains("characters cut ...]") && shown.contains("bytes of output were not kept"),
        "{}",
        &shown[..80]
    );
}

#[tokio::test]
async fn a_nonzero_exit_shows_its_code_and_both_streams() {
    let attempt = AttemptFixture::new(vec![sh("echo out; echo err >&2; exit 3"), submit()]).await.react().await;
    assert_eq!(attempt.observations(), ["exit code 3\nstdout:\nout\nstderr:\nerr"]);
}

#[tokio::test]
async fn a_background_process_of_a_command_does_not_block_the_tool_call() {
    let begun = std::time::Instant::now();
    let attempt =
        AttemptFixture::new(vec![sh("sleep 300 & echo started"), sh("echo next"), submit()]).await.react().await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.observations(), ["exit code 0\nstdout:\nstarted", "exit code 0\nstdout:\nnext"]);
    assert!(begun.elapsed() < super::support::SOON);
}

#[tokio::test]
async fn a_script_that_ends_without_an_answer_gave_up() {
    let attempt = AttemptFixture::new(vec![sh("echo one")]).await.react().await;
    assert_eq!((attempt.end, attempt.detail.as_deref()), (End::GaveUp, Some("the script has ended")));
}

#[tokio::test]
async fn the_kind_of_failed_model_call_decides_how_the_attempt_ends() {
    for (error, end) in [
        (ModelError::Unavailable("503".into()), End::ModelError),
        (ModelError::Denied("bad key".into()), End::ModelDenied),
        (ModelError::Refused("content filter".into()), End::Refused),
        (ModelError::ContextLength("too long".into()), End::TokenLimit),
    ] {
        let detail = error.to_string();
        let attempt = AttemptFixture::new(vec![sh("echo one")]).await.then_fails(error).react().await;
        assert_eq!((attempt.end, attempt.detail), (end, Some(detail)));
    }
}

#[test]
fn a_refused_conversation_fails_its_attempt_and_an_unusable_model_stops_the_run() {
    assert!(!End::Refused.is_infrastructure() && !End::Refused.is_fatal());
    assert!(End::ModelDenied.is_infrastructure() && End::ModelDenied.is_fatal());
    assert!(End::ModelError.is_infrastructure() && !End::ModelError.is_fatal());
    assert_eq!(json!([End::Refused, End::ModelDenied]), json!(["refused", "model_denied"]));
}

#[tokio::test]
async fn a_failed_model_call_is_charged_and_recorded_with_its_cost() {
    let usage = Usage { input: 40, output: 2, ..Usage::default() };
    let failed = |error| QueryFailed { error, usage, unanswered: 0, cost: 0.25 };
    let world = AttemptFixture::new(vec![costing(sh("echo one"), 0.5, 5)]).await;
    let attempt = world.then_fails(failed(ModelError::Unavailable("503".into()))).react().await;
    assert_eq!((attempt.end, attempt.budget.steps, attempt.budget.calls), (End::ModelError, 1, 2));
    assert_eq!((attempt.budget.cost, attempt.budget.tokens()), (0.75, 47));
    let recorded = attempt.lines.iter().any(|line| {
        matches!(&line.event, Event::CallFailed { step: 1, tool: None, what, usage: told, cost: 0.25, .. }
            if what.contains("503") && *told == usage)
    });
    assert!(recorded);
    // A model call made by a tool is a separate conversation. If the provider refuses it, the agent's own conversation
    // continues.
    for (error, words) in [
        (ModelError::ContextLength("long".into()), "the file is too long for the model: long"),
        (ModelError::Refused("filter".into()), "the provider refused the conversation: filter"),
    ] {
        let ask = call("understand_file", json!({"path": "main.py", "question": "what?"}));
        let attempt = AttemptFixture::new(vec![ask]).await.then_fails(failed(error)).then(submit()).react().await;
        assert_eq!(attempt.observations(), [format!("error: {words}")]);
        assert_eq!((attempt.end, attempt.budget.calls, attempt.budget.cost), (End::Answered, 3, 0.25));
    }
    let ask = call("understand_file", json!({"path": "main.py", "question": "what?"}));
    let denied = failed(ModelError::Denied("bad key".into()));
    let attempt = AttemptFixture::new(vec![ask]).await.then_fails(denied).then(submit()).react().await;
    assert_eq!((attempt.end, attempt.budget.calls, attempt.budget.cost), (End::ModelDenied, 2, 0.25));
}

#[tokio::test]
async fn nothing_more_is_paid_for_once_the_trajectory_cannot_be_written() {
    let (end, calls, error) = AttemptFixture::new(vec![sh("echo one"), submit()]).await.react_on_a_full_disk().await;
    assert_eq!((end, calls, error.kind), (End::Cancelled, 0, FailureKind::Store));
    assert!(error.to_string().contains("/dev/full"), "{error}");
}

#[tokio::test]
async fn a_lost_sandbox_ends_the_attempt_and_is_never_shown_to_the_model() {
    let attempt = AttemptFixture::new(vec![sh("echo one"), sh("echo two"), submit()]).await.dying(1).react().await;
    assert_eq!((attempt.end, attempt.detail.as_deref()), (End::SandboxKilled, Some("its init was killed")));
    assert_eq!((attempt.asked.len(), attempt.observations().len()), (2, 1));
    // The attempt also ends if the sandbox is lost while a tool other than the shell runs.
    for (tool, arguments) in [
        ("list_files", json!({})),
        ("read_file", json!({"path": "main.py"})),
        ("write_file", json!({"path": "a", "content": ""})),
        ("change_directory", json!({"path": "."})),
        ("move", json!({"source": "a", "destination": "b"})),
        ("edit_file", json!({"path": "main.py", "instruction": "i"})),
        ("inspect_file_lines", json!({"path": "~/a"})),
    ] {
        let attempt = AttemptFixture::new(vec![call(tool, arguments)]).await.dying(0).react().await;
        assert_eq!(attempt.end, End::SandboxKilled, "{tool}");
    }
}

#[tokio::test]
async fn a_cancelled_run_stops_in_the_midst_of_a_command_or_a_model_call() {
    for hanging in [false, true] {
        let mut world = AttemptFixture::new(vec![sh("sleep 300")]).await;
        if hanging {
            world = world.hanging();
        }
        let cancel = world.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            cancel.cancel();
        });
        let begun = std::time::Instant::now();
        assert_eq!(world.react().await.end, End::Cancelled);
        assert!(begun.elapsed() < super::support::SOON);
    }
}

#[tokio::test]
async fn model_calls_of_tools_are_charged_and_recorded_but_not_counted_as_steps() {
    let edit = call("edit_file", json!({"path": "main.py", "instruction": "return twice x"}));
    let new = text("```python\ndef double(x):\n    return 2 * x\n```");
    let attempt = AttemptFixture::new(vec![costing(edit, 0.1, 5), costing(new, 0.2, 7), submit()]).await.react().await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.file("main.py"), "def double(x):\n    return 2 * x\n");
    assert!(attempt.observations()[0].contains("-    raise NotImplementedError\n+    return 2 * x"));
    assert_eq!((attempt.budget.steps, attempt.budget.calls, attempt.budget.usage.input), (2, 3, 12));
    assert!((attempt.budget.cost - 0.3).abs() < 1e-12);
    assert_eq!(attempt.asked[2].call, 2, "the next place in a script");
    assert!(
        attempt
            .lines
            .iter()
            .any(|line| matches!(&line.event, Event::ToolModelCall { tool, .. } if tool == "edit_file"))
    );
}

#[test]
fn an_agent_that_does_not_exist_is_an_error_that_lists_those_that_do() {
    let error = open("raect", &Settings::default(), None).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "there is no agent `raect`");
    assert!(
        error
            .hint
            .unwrap()
            .starts_with("the agents are `react`, `fixed`, `single`, `ml-agent`, `gold`, `noop`, `forger`, ")
    );
}

#[tokio::test]
async fn retrieved_passages_and_snippets_are_in_the_task_and_their_settings_in_the_agents_name() {
    let settings = Settings { paper: Some(PaperChoice::Full), code: Some(CodeChoice::Bm25), ..Settings::default() };
    let agent = open("react", &settings, None).unwrap();
    assert_eq!(agent.name(), "react+paper=full+code=bm25");
    let world = AttemptFixture::new(vec![submit()]).await;
    std::fs::write(world.dir.path().join("more.py"), "def doubled_number(x):\n    return 7\n").unwrap();
    let attempt = world.run(agent.as_ref(), &task()).await;
    let shown = &attempt.asked[0].messages[1].content;
    assert!(shown.contains("## From the paper") && shown.contains("add it to itself"), "{shown}");
    assert!(shown.contains("# more.py::doubled_number\ndef doubled_number(x):\n    return 7"), "{shown}");
    assert_eq!(attempt.end, End::Answered);
}
