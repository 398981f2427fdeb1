//! Tests of `fixed` with prepared replies.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use super::support::{Attempt, AttemptFixture, call, cut, open, submit, task, text};
use crate::agent::{Agent, End, Event, Replication, Settings, TaskFunction, TaskRegion};
use crate::model::{ModelError, Reply, Usage};

fn fixed(own: &str) -> std::sync::Arc<dyn Agent> {
    open(&format!("fixed:{own}"), &Settings::default(), None).unwrap()
}

async fn run(own: &str, world: AttemptFixture, task: &Replication) -> Attempt {
    world.run(fixed(own).as_ref(), task).await
}

fn writing(body: &str) -> Reply {
    text(&format!("```python\ndef double(x):\n    {body}\n```"))
}

fn spending(reply: Reply, output: u64) -> Reply {
    Reply { usage: Usage { output, ..Usage::default() }, ..reply }
}

/// Returns all text that the model was shown in its n-th call.
fn call_text(attempt: &Attempt, call: usize) -> String {
    attempt.asked[call].messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
}

const BOTH: &str = r#"{"Experiment 1":{"value":42},"Experiment 2":{"value":3.0}}"#;

#[tokio::test]
async fn fixed_writes_the_function_runs_the_experiments_and_reports_results() {
    let attempt = run("", AttemptFixture::new(vec![writing("return 2 * x")]).await, &task()).await;
    assert_eq!((attempt.end, attempt.detail.as_deref()), (End::Answered, None));
    assert_eq!(attempt.answer.as_deref(), Some(BOTH));
    assert_eq!((attempt.budget.steps, attempt.budget.calls), (1, 1));
    assert_eq!(attempt.file("main.py"), "def double(x):\n    return 2 * x\n");
    let shown = call_text(&attempt, 0);
    for part in
        ["To double a number, add it to itself.", "`main.py::double`", "## The file `main.py`", "Doubles a number."]
    {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    assert!(!shown.contains("x + x"), "no original is shown");
}

#[tokio::test]
async fn a_reply_without_the_function_leaves_it_masked_and_is_a_format_error() {
    let attempt = run("", AttemptFixture::new(vec![text("I would rather not."), text("No.")]).await, &task()).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::GaveUp, None));
    assert_eq!(attempt.detail.as_deref(), Some("the reply holds no Python code of `double`"));
    assert_eq!(attempt.format_errors(), ["the reply holds no Python code of `double`"; 2]);
    assert!(attempt.observations().is_empty(), "nothing was there to run");
}

#[tokio::test]
async fn unusable_replies_end_the_attempt_without_an_answer() {
    let ten = Reply { tool_calls: (0..10).flat_map(|_| submit().tool_calls).collect(), ..Reply::default() };
    let broken = call("final_answer", Value::String("{\"answer\": {\"Experiment 1\"".into()));
    let huge = call("write_file", Value::String("x".repeat(1 << 20)));
    let big = text(&"x".repeat(1 << 20));
    let small = [text(""), ten, broken, text("```python\n```")];
    // The model gives the same reply every time, also when it is asked for repairs.
    let repaired = small.iter().map(|reply| (reply, "repair=2,reasoning=50"));
    for (reply, own) in [&text(" \n"), &huge, &big].into_iter().chain(&small).map(|reply| (reply, "")).chain(repaired) {
        let attempt = run(own, AttemptFixture::new(vec![reply.clone(); 60]).await, &task()).await;
        assert!(matches!(attempt.end, End::GaveUp | End::StepLimit), "{own}: {:?}", attempt.end);
        assert!(attempt.answer.is_none() && attempt.budget.format_errors > 0, "{own}: {:?}", attempt.detail);
        assert!(attempt.detail.is_none_or(|detail| detail.len() < 1000), "{own}");
    }
}

#[tokio::test]
async fn after_an_unusable_reply_the_model_is_told_why_and_asked_again() {
    let replies = vec![writing("raise NotImplementedError"), writing("return 2 * x")];
    let attempt = run("", AttemptFixture::new(replies).await, &task()).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(BOTH)));
    assert_eq!(attempt.format_errors(), ["`double` still only raises NotImplementedError"]);
    let told = call_text(&attempt, 1);
    let why = "An earlier answer could not be used: `double` still only raises NotImplementedError.";
    assert!(told.contains(why), "{told}");
    assert!(!told.contains("```python\ndef double(x):\n    raise"), "small models write a reply again that they see");
}

#[tokio::test]
async fn code_of_a_reply_that_was_cut_off_is_used_only_if_its_fence_is_closed() {
    let right = "```python\ndef double(x):\n    return 2 * x\n```";
    let half = "```python\ndef double(x):\n    y = 2\n";
    let note = "the reply was cut off at a length limit, so write a shorter one";
    for unusable in [half, "def double(x):\n    y = 2\n", "", &format!("A draft:\n{right}\nBetter:\n{half}")] {
        let world = AttemptFixture::new(vec![cut(text(unusable)), text(right)]).await;
        let attempt = run("", world, &task()).await;
        assert_eq!((attempt.answer.as_deref(), attempt.format_errors()), (Some(BOTH), vec![note]), "{unusable}");
        assert!(call_text(&attempt, 1).contains(note), "{unusable}");
    }
    let whole = cut(text(&format!("{right}\nThis code adds")));
    let attempt = run("", AttemptFixture::new(vec![whole]).await, &task()).await;
    assert_eq!((attempt.answer.as_deref(), attempt.budget.calls), (Some(BOTH), 1));
}

#[tokio::test]
async fn the_statement_that_replaces_missing_code_is_not_shown_to_the_model() {
    for code in ["bm25", "none"] {
        let attempt =
            run(&format!("code={code}"), AttemptFixture::new(vec![writing("return 2 * x")]).await, &task()).await;
        let shown = call_text(&attempt, 0);
        assert!(
            shown.contains("```python\ndef double(x):\n```") && !shown.contains("raise NotImplementedError"),
            "{shown}"
        );
        // The prompt shows the signature without any body, not even a docstring.
        assert!(!shown.contains("def double(x):\n "), "{shown}");
        assert!(shown.contains("# `double` goes here.") && shown.contains("> Doubles a number."), "{shown}");
    }
}

#[tokio::test]
async fn a_repair_prompt_shows_the_code_and_its_errors_and_repairs_end_once_everything_runs() {
    let broken = || text("def double(x)");
    let replies = vec![broken(), broken(), writing("return two * x"), writing("return 2 * x"), writing("return 0")];
    let attempt = run("repair=3", AttemptFixture::new(replies).await, &task()).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(BOTH)));
    assert_eq!(attempt.budget.calls, 4);
    let third = call_text(&attempt, 2);
    assert!(third.contains("The last reply could not be used: `double` does not parse"), "{third}");
    let last = call_text(&attempt, 3);
    assert!(last.contains("return two * x") && last.contains("NameError: name 'two' is not defined"), "{last}");
    assert!(last.contains("Experiment 1 gave no result: exit code 1."), "{last}");
    let results = attempt.observations();
    assert_eq!(results.len(), 4, "twice two experiments");
}

#[tokio::test]
async fn without_repair_the_answer_contains_the_results_of_those_experiments_that_succeed() {
    let attempt =
        run("", AttemptFixture::new(vec![writing("return x * 2 if x > 2 else None.no")]).await, &task()).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(r#"{"Experiment 1":{"value":42}}"#)));
    assert_eq!(attempt.detail.as_deref(), Some("Experiment 2: exit code 1"));
}

#[tokio::test]
async fn reasoning_continues_until_its_tokens_are_spent() {
    let replies =
        vec![spending(text("Add."), 30), spending(text("Or double."), 60), spending(writing("return x + x"), 12)];
    let attempt = run("reasoning=100", AttemptFixture::new(replies).await.max_tokens(500), &task()).await;
    assert_eq!(attempt.answer.as_deref(), Some(BOTH));
    let most: Vec<_> = attempt.asked.iter().map(|request| request.sampling.max_tokens.unwrap()).collect();
    assert_eq!(most, [100, 70, 500], "what is left after the second is not worth another call");
    assert!(call_text(&attempt, 1).contains("Wait."));
    let last = &attempt.asked[2].messages;
    assert!(
        last[2].content == "Add."
            && last[4].content == "Or double."
            && last[5].content.starts_with("Complete the code of the function `double`.")
    );
    assert_eq!(attempt.budget.usage.output, 102);
}

/// Returns a task in which `quadruple` calls `double` and both are masked.
async fn two(replies: Vec<Reply>) -> (AttemptFixture, Replication) {
    let world = AttemptFixture::new(replies).await;
    let masked =
        "def quadruple(x):\n    raise NotImplementedError\n\n\ndef double(x):\n    raise NotImplementedError\n";
    std::fs::write(world.dir.path().join("main.py"), masked).unwrap();
    let mut task = task();
    let original = masked.replacen("raise NotImplementedError", "return double(double(x))", 1);
    task.originals =
        vec![("main.py".into(), original.replace("raise NotImplementedError", "return x + x").into_bytes())];
    let outer = TaskFunction {
        at: "main.py::quadruple".into(),
        description: "Four times.".into(),
        passages: vec![],
        region: None,
    };
    task.functions.insert(0, outer);
    task.experiments[0].command = task.experiments[0].command.replace("main.double(21)", "main.quadruple(21)");
    (world, task)
}

#[tokio::test]
async fn callees_are_written_before_callers_whose_prompts_show_the_new_code_only_with_fill_set_to_filled() {
    for (own, sees) in [("fill=filled", true), ("fill=masked", false)] {
        let outer = text("def quadruple(x):\n    return double(double(x))\n");
        let (world, task) = two(vec![writing("return 2 * x"), outer]).await;
        let attempt = run(own, world, &task).await;
        assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1":{"value":84},"Experiment 2":{"value":3.0}}"#));
        assert!(call_text(&attempt, 0).contains("Complete the code of the function `double`"));
        assert_eq!(call_text(&attempt, 1).contains("return 2 * x"), sees, "{own}");
    }
}

#[tokio::test]
async fn functions_written_before_a_limit_are_still_run() {
    let (world, task) = two(vec![writing("return 2 * x")]).await;
    let attempt = run("", world.limits(|limits| limits.steps = 1), &task).await;
    assert_eq!((attempt.end, attempt.budget.steps), (End::StepLimit, 1));
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 2":{"value":3.0}}"#));
    let (world, task) = two(vec![writing("return 2 * x")]).await;
    let attempt = run("", world.limits(|limits| limits.seconds = 1e-6), &task).await;
    assert_eq!(attempt.end, End::TimeLimit);
}

/// Returns a repo with many Python files.
async fn large(replies: Vec<Reply>) -> AttemptFixture {
    let world = AttemptFixture::new(replies).await;
    std::fs::create_dir(world.dir.path().join("b")).unwrap();
    for number in 0..12 {
        let path = world.dir.path().join(format!("b/helper_{number}.py"));
        std::fs::write(path, format!("def double_number_{number}(x):\n    return {number}\n")).unwrap();
    }
    world
}

#[tokio::test]
async fn a_model_whose_thoughts_use_up_the_tokens_of_the_list_of_files_is_asked_again_without_a_limit() {
    for starved in ["", "<think>\nThe function doubles"] {
        let replies = vec![spending(cut(text(starved)), 400), text("b/helper_3.py"), writing("return 2 * x")];
        let attempt = run("", large(replies).await, &task()).await;
        assert_eq!((attempt.answer.as_deref(), attempt.budget.usage.output), (Some(BOTH), 400));
        let most: Vec<_> = attempt.asked.iter().map(|request| request.sampling.max_tokens).collect();
        assert_eq!(most, [Some(400), None, None]);
        assert_eq!(call_text(&attempt, 0), call_text(&attempt, 1));
        assert!(!call_text(&attempt, 2).contains("helper_4"), "only the named file is searched");
    }
}

#[tokio::test]
async fn in_large_repos_the_model_selects_the_relevant_files() {
    let replies = vec![text("1. `b/helper_3.py`\n2. nothing.py"), writing("return 2 * x")];
    let attempt = run("", large(replies).await, &task()).await;
    assert_eq!(attempt.answer.as_deref(), Some(BOTH));
    assert!(call_text(&attempt, 0).contains("b/helper_11.py"));
    let second = call_text(&attempt, 1);
    assert!(second.contains("# b/helper_3.py::double_number_3") && !second.contains("helper_4"), "{second}");
}

#[tokio::test]
async fn without_masked_functions_the_experiments_are_only_run_and_reported() {
    let mut task = task();
    task.functions.clear();
    task.experiments
        .iter_mut()
        .for_each(|experiment| experiment.command = "echo '{\"value\": 1}' | tee out.json".into());
    let attempt = run("", AttemptFixture::new(vec![]).await, &task).await;
    assert_eq!((attempt.end, attempt.budget.calls), (End::Answered, 0));
    assert_eq!(attempt.answer.as_deref(), Some(r#"{"Experiment 1":{"value":1},"Experiment 2":{"value":1}}"#));
}

#[tokio::test]
async fn infrastructure_failures_are_distinguished_from_failures_of_the_agent() {
    let failed = AttemptFixture::new(vec![]).await.then_fails(ModelError::Unavailable("503".into()));
    assert_eq!(run("", failed, &task()).await.end, End::ModelError);
    let long = AttemptFixture::new(vec![]).await.then_fails(ModelError::ContextLength("too long".into()));
    assert_eq!(run("", long, &task()).await.end, End::TokenLimit);
    let dying = AttemptFixture::new(vec![writing("return 2 * x")]).await.dying(3);
    assert_eq!(run("", dying, &task()).await.end, End::SandboxKilled);
    assert_eq!(run("", AttemptFixture::new(vec![]).await, &task()).await.end, End::GaveUp, "the script has ended");
}

#[tokio::test]
async fn an_old_result_file_is_never_taken_for_a_new_one() {
    let mut task = task();
    task.experiments.remove(0);
    task.experiments[0].command = "python3 -c 'import main; main.double(1)'".into();
    let world = AttemptFixture::new(vec![writing("return 2 * x")]).await;
    std::fs::write(world.dir.path().join("out.json"), "{\"value\": 3.0}").unwrap();
    let attempt = run("", world, &task).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::GaveUp, None));
}

#[test]
fn a_fixed_agents_label_lists_its_settings_and_unsuitable_ones_are_refused() {
    assert_eq!(fixed("").name(), "fixed");
    assert_eq!(fixed("paper=oracle,code=ast,repair=2").name(), "fixed+paper=oracle+code=ast+repair=2");
    let refused = open("fixed:paper=embedding", &Settings::default(), None).err().map(|error| error.message);
    assert!(refused.is_some_and(|message| message.contains("no embedding model")));
    assert!(open("fixed:code=agent", &Settings::default(), None).is_err());
    assert!(open("fixed:paper=some", &Settings::default(), None).is_err());
}

/// Generates replies whose code only computes something, so that it is safe to run.
fn reply() -> impl Strategy<Value = Reply> {
    let piece = prop_oneof![
        Just("```python\n"),
        Just("```\n"),
        Just("def double(x):\n"),
        Just("    return x\n"),
        Just("    raise NotImplementedError\n"),
        Just("class A:\n"),
        Just("import math\n"),
        Just("main.py\n"),
        Just("\"\"\""),
        Just("(["),
        Just("\t\u{1f980}"),
        Just("{\"name\": \"final_answer\"}"),
    ];
    (vec(piece, 0..10), 0..50_u64).prop_map(|(pieces, output)| spending(text(&pieces.concat()), output))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_replies_end_the_attempt_and_leave_a_file_that_parses(replies in vec(reply(), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut task = task();
            task.experiments.truncate(1);
            task.experiments[0].command = "echo '{\"value\": 1}'; exit 1".into();
            let world = AttemptFixture::new(replies).await.limits(|limits| limits.steps = 9);
            let attempt = run("repair=2,reasoning=40", world, &task).await;
            assert!(attempt.budget.steps <= 9);
            assert!(!attempt.end.is_infrastructure(), "{:?}", attempt.end);
            let file = attempt.file("main.py").into_bytes();
            assert!(crate::code::Module::parse("main.py", file).is_ok());
            let ended = attempt.lines.iter().filter(|line| matches!(line.event, Event::Answer { .. })).count();
            assert!(ended <= 1 && attempt.answer.is_none_or(|raw| serde_json::from_str::<Value>(&raw).is_ok()));
        });
    }
}

/// Returns a fixture whose model gives these replies, and a task in which only the body of a loop is masked.
async fn part(replies: Vec<Reply>) -> (AttemptFixture, Replication) {
    let world = AttemptFixture::new(replies).await;
    let original = "def double(x):\n    total = 0\n    for part in (x, x):\n        total += part\n    return total\n";
    let masked = original.replace("total += part", "raise NotImplementedError");
    std::fs::write(world.dir.path().join("main.py"), &masked).unwrap();
    let start = masked.find("        raise").unwrap();
    let region = TaskRegion {
        file: "main.py".into(),
        function: Some("double".into()),
        lines: 1,
        stand_in: start..start + "        raise NotImplementedError".len(),
        range: start..start + "        total += part".len(),
    };
    let mut task = task();
    task.originals = vec![("main.py".into(), original.as_bytes().to_vec())];
    task.functions[0].at = "main.py::double[add]".into();
    task.functions[0].region = Some(region);
    (world, task)
}

#[tokio::test]
async fn for_a_region_only_its_statements_are_requested_and_used() {
    let statements = text("```python\ntotal = total + part\n```");
    let whole = text("```python\ndef double(x):\n    return 2 * x\n```");
    for (reply, file) in [
        (
            statements,
            "def double(x):\n    total = 0\n    for part in (x, x):\n        total = total + part\n    return total\n",
        ),
        (whole, "def double(x):\n    return 2 * x\n"),
    ] {
        let (world, task) = part(vec![reply]).await;
        let attempt = run("", world, &task).await;
        assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(BOTH)), "{:?}", attempt.detail);
        assert_eq!(attempt.file("main.py"), file);
        let shown = call_text(&attempt, 0);
        for said in [
            "    for part in (x, x):\n        # The missing statements go here.\n    return total",
            "missing part of the function `double`, about 1 line of code",
            "Write the missing part of the function `double`.",
        ] {
            assert!(shown.contains(said), "{said} is not in {shown}");
        }
        assert!(!shown.contains("total += part"), "no original is shown");
    }
}

#[tokio::test]
async fn the_repair_of_a_masked_region_replaces_the_region_and_keeps_the_code_around_it() {
    let replies = vec![text("```python\ntotal += parts\n```"), text("```python\nkeep = part\ntotal += keep\n```")];
    let (world, task) = part(replies).await;
    let attempt = run("repair=1", world, &task).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(BOTH)), "{:?}", attempt.detail);
    assert!(attempt.file("main.py").contains("        keep = part\n        total += keep\n    return total\n"));
    assert!(call_text(&attempt, 1).contains("NameError: name 'parts' is not defined"));
}

#[tokio::test]
async fn a_whole_function_that_replaced_its_regions_is_repaired_once_and_as_a_whole() {
    let whole = |number| text(&format!("```python\ndef double(x):\n    return {number} * x\n```"));
    let (world, mut task) = part(vec![whole("two"), whole("2")]).await;
    // The function's first statement is masked, too.
    let file = std::fs::read_to_string(world.dir.path().join("main.py")).unwrap();
    let masked = file.replace("total = 0", "raise NotImplementedError");
    std::fs::write(world.dir.path().join("main.py"), &masked).unwrap();
    let lines = ["    raise NotImplementedError", "        raise NotImplementedError"];
    let start = |line: &str| masked.find(&format!("\n{line}")).unwrap() + 1;
    task.functions.insert(0, task.functions[0].clone());
    task.functions[0].at = "main.py::double[begin]".into();
    for (function, line) in task.functions.iter_mut().zip(lines) {
        let region = function.region.as_mut().unwrap();
        region.stand_in = start(line)..start(line) + line.len();
    }
    let attempt = run("repair=2", world, &task).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(BOTH)), "{:?}", attempt.detail);
    assert_eq!(attempt.budget.calls, 2, "one call for each version of the function, not one for each region");
    assert_eq!(attempt.file("main.py"), "def double(x):\n    return 2 * x\n");
    let shown = call_text(&attempt, 1);
    assert!(
        shown.contains("return two * x") && shown.contains("Complete the code of the function `double`."),
        "{shown}"
    );
}

#[tokio::test]
async fn results_of_code_written_before_stay_if_replies_of_the_repair_are_unusable() {
    let half = writing("return x * 2 if x > 2 else None.no");
    let attempt = run("repair=1", AttemptFixture::new(vec![half, text("No."), text("No.")]).await, &task()).await;
    assert_eq!((attempt.end, attempt.answer.as_deref()), (End::Answered, Some(r#"{"Experiment 1":{"value":42}}"#)));
    assert_eq!(attempt.observations().len(), 2, "experiments are not run again without new code");
}
