//! Tests of `gold`, `noop`, `mutant:P`, `random`, `copycat` and `scripted`.

use serde_json::{Value, json};

use super::support::{AttemptFixture, open, task};
use crate::agent::{End, Event, Settings};
use crate::score::parse_answer;

#[tokio::test]
async fn gold_restores_the_originals_runs_the_experiments_and_reports_their_results() {
    let attempt = AttemptFixture::new(vec![])
        .await
        .run(open("gold", &Settings::default(), None).unwrap().as_ref(), &task())
        .await;
    assert_eq!((attempt.end, &attempt.detail), (End::Answered, &None));
    let answer = attempt.answer.unwrap();
    let expected = json!({"Experiment 1": {"value": 42}, "Experiment 2": {"value": 3.0}});
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), expected);
    assert!(parse_answer(&answer).is_ok());
}

#[tokio::test]
async fn gold_names_the_failed_experiment_and_reports_the_others() {
    let mut task = task();
    task.experiments[0].command = "echo trouble >&2; exit 7".into();
    let attempt =
        AttemptFixture::new(vec![]).await.run(open("gold", &Settings::default(), None).unwrap().as_ref(), &task).await;
    assert_eq!(attempt.end, End::Answered);
    assert_eq!(attempt.detail.as_deref(), Some("Experiment 1: exit code 7"));
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 2":{"value":3.0}}"#));
    assert!(
        attempt.lines.iter().any(
            |line| matches!(&line.event, Event::Observation { content, .. } if content.contains("stderr:\ntrouble"))
        )
    );
}

#[tokio::test]
async fn gold_keeps_to_each_experiments_time_limit() {
    let mut task = task();
    task.experiments[0].command = "sleep 30".into();
    task.experiments[0].time_limit = 0.3;
    let attempt =
        AttemptFixture::new(vec![]).await.run(open("gold", &Settings::default(), None).unwrap().as_ref(), &task).await;
    assert!(attempt.detail.unwrap().starts_with("Experiment 1: stopped at its time limit"));
    let lost = AttemptFixture::new(vec![])
        .await
        .dying(1)
        .run(open("gold", &Settings::default(), None).unwrap().as_ref(), &task)
        .await;
    assert_eq!(lost.end, End::SandboxKilled);
}

#[tokio::test]
async fn noop_does_nothing_and_gives_up() {
    let attempt = AttemptFixture::new(vec![])
        .await
        .run(open("noop", &Settings::default(), None).unwrap().as_ref(), &task())
        .await;
    assert_eq!((attempt.end, attempt.answer, attempt.budget.steps), (End::GaveUp, None, 0));
    assert_eq!(attempt.asked.len(), 0);
}

async fn scripted(script: &str, world: AttemptFixture) -> super::support::Attempt {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let agent = open(&format!("scripted:{}", file.path().display()), &Settings::default(), None).unwrap();
    assert!(!agent.needs_model());
    world.run(agent.as_ref(), &task()).await
}

#[tokio::test]
async fn a_scripted_agent_runs_one_tool_per_step_and_stops_after_its_answer() {
    let script = concat!(
        r#"{"tool": "write_file", "arguments": {"path": "a.txt", "content": "A"}}"#,
        "\n\n",
        r#"{"tool": "no_such_tool"}"#,
        "\n",
        r#"{"tool": "command_line", "arguments": {"command": "cat a.txt"}}"#,
        "\n",
        r#"{"tool": "final_answer", "arguments": {"answer": {"Experiment 1": {"value": 42}}}}"#,
        "\n",
        r#"{"tool": "command_line", "arguments": {"command": "touch never.txt"}}"#,
        "\n",
    );
    let attempt = scripted(script, AttemptFixture::new(vec![]).await).await;
    assert_eq!((attempt.end, attempt.budget.steps, attempt.budget.calls), (End::Answered, 4, 0));
    assert_eq!(attempt.observations(), ["wrote 1 bytes to `a.txt`", "exit code 0\nstdout:\nA"]);
    assert_eq!(attempt.format_errors(), ["there is no tool `no_such_tool`"]);
    assert!(!attempt.dir.path().join("never.txt").exists());
}

#[tokio::test]
async fn a_scripted_agent_ends_at_its_step_limit_or_its_time_limit() {
    let line = r#"{"tool": "command_line", "arguments": {"command": "sleep 0.2"}}"#.to_owned() + "\n";
    let steps = scripted(&line.repeat(5), AttemptFixture::new(vec![]).await.limits(|limits| limits.steps = 2)).await;
    assert_eq!((steps.end, steps.observations().len()), (End::StepLimit, 2));
    let time = scripted(&line.repeat(5), AttemptFixture::new(vec![]).await.limits(|limits| limits.seconds = 0.3)).await;
    assert_eq!(time.end, End::TimeLimit);
    assert!(time.observations().len() <= 2);
    assert_eq!(scripted("", AttemptFixture::new(vec![]).await).await.end, End::GaveUp);
}

#[test]
fn a_broken_script_is_an_error_with_its_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "{\"tool\": \"command_line\"}\n{\"tol\": 1}\n").unwrap();
    let error =
        open(&format!("scripted:{}", file.path().display()), &Settings::default(), None).map(|_| ()).unwrap_err();
    assert_eq!(error.place.as_ref().and_then(|(_, line)| *line), Some(2));
    assert!(open("scripted:/no/such/file", &Settings::default(), None).is_err());
}

async fn baseline(spec: &str, seed: u64, task: &crate::agent::Replication) -> super::support::Attempt {
    AttemptFixture::new(vec![])
        .await
        .seed(seed)
        .run(open(spec, &Settings::default(), None).unwrap().as_ref(), task)
        .await
}

#[tokio::test]
async fn the_agent_mutant_writes_wrong_functions_at_the_requested_rate_reproducibly_for_each_seed() {
    let right = baseline("mutant:0", 1, &task()).await;
    assert_eq!(right.answer.as_deref(), Some(r#"{"Experiment 1":{"value":42},"Experiment 2":{"value":3.0}}"#));
    let wrong = baseline("mutant:1", 1, &task()).await;
    assert_ne!(wrong.file("main.py"), right.file("main.py"));
    assert!(!wrong.file("main.py").contains("NotImplementedError"));
    assert_eq!(baseline("mutant:1", 1, &task()).await.file("main.py"), wrong.file("main.py"));
    let wrong = (0..2000).filter(|&seed| crate::agent::agents::mutant::share(seed, "wrong", "f") < 0.3).count();
    assert!((540..660).contains(&wrong), "{wrong} of 2000");
    for written in ["mutant", "mutant:1.5", "mutant:x"] {
        assert!(open(written, &Settings::default(), None).is_err(), "{written}");
    }
}

#[tokio::test]
async fn the_random_agent_reports_numbers_and_leaves_the_masked_code_unchanged() {
    let attempt = baseline("random", 1, &task()).await;
    assert_eq!(attempt.end, End::Answered);
    assert!(attempt.file("main.py").contains("NotImplementedError"));
    let answer: Value = serde_json::from_str(&attempt.answer.unwrap()).unwrap();
    assert!(answer["Experiment 2"]["value"].is_number(), "{answer}");
    assert_ne!(Some(answer.to_string()), baseline("random", 2, &task()).await.answer);
}

#[tokio::test]
async fn a_copycat_copies_the_most_similar_function_with_as_many_parameters() {
    let world = AttemptFixture::new(vec![]).await;
    let main = "def double(x):\n    \"\"\"Doubles a number x.\"\"\"\n    raise NotImplementedError\n\n\ndef double_all(x, y):\n    \"\"\"Doubles numbers: doubles x, doubles y.\"\"\"\n    return 0\n\n\ndef twice(x):\n    \"\"\"A number twice.\"\"\"\n    y = 2\n    return y * x\n";
    std::fs::write(world.dir.path().join("main.py"), main).unwrap();
    let attempt = world.run(open("copycat", &Settings::default(), None).unwrap().as_ref(), &task()).await;
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1":{"value":42},"Experiment 2":{"value":3.0}}"#));
    assert!(
        attempt
            .file("main.py")
            .starts_with("def double(x):\n    \"\"\"Doubles a number x.\"\"\"\n    y = 2\n    return y * x\n")
    );
}
