//! Prompts, rendered from the templates in this folder.
//!
//! Prompts must not contain times, random numbers or paths of this machine, because recorded replies are looked up by
//! the content of the request.

pub mod dynamic;
pub mod external;
pub mod fixed;
pub mod ml_agent;

use std::sync::LazyLock;
use std::time::Duration;

use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest, Sha256};

use super::budget::command_limit;
use super::history::SHORT;
use super::{Limits, Replication, Task};
use crate::files::hex;

const TEMPLATES: [(&str, &str); 32] = [
    ("react_system", include_str!("react_system.md")),
    ("react_task", include_str!("react_task.md")),
    ("react_reason", include_str!("react_reason.md")),
    ("react_wait", include_str!("react_wait.md")),
    ("react_begin", include_str!("react_begin.md")),
    ("submit", include_str!("submit.md")),
    ("format_error", include_str!("format_error.md")),
    ("format_error_text", include_str!("format_error_text.md")),
    ("think_react", include_str!("think_react.md")),
    ("think_mlagentbench", include_str!("think_mlagentbench.md")),
    ("think_planning", include_str!("think_planning.md")),
    ("call_text", include_str!("call_text.md")),
    ("summarise", include_str!("summarise.md")),
    ("left_out", include_str!("left_out.md")),
    ("reflect", include_str!("reflect.md")),
    ("try_again", include_str!("try_again.md")),
    ("edit_file", include_str!("edit_file.md")),
    ("understand_file", include_str!("understand_file.md")),
    ("understand_notes", include_str!("understand_notes.md")),
    ("fixed_system", include_str!("fixed_system.md")),
    ("fixed_files", include_str!("fixed_files.md")),
    ("fixed_function", include_str!("fixed_function.md")),
    ("fixed_reason", include_str!("fixed_reason.md")),
    ("fixed_wait", include_str!("fixed_wait.md")),
    ("fixed_write", include_str!("fixed_write.md")),
    ("fixed_write_part", include_str!("fixed_write_part.md")),
    ("fixed_again", include_str!("fixed_again.md")),
    ("fixed_repair", include_str!("fixed_repair.md")),
    ("fixed_feedback", include_str!("fixed_feedback.md")),
    ("feedback", include_str!("feedback.md")),
    ("material", include_str!("material.md")),
    ("external_task", include_str!("external_task.md")),
];

/// Prompts for kinds of tasks that define no prompts of their own.
const GENERAL: [(&str, &str); 8] = [
    ("general_system", include_str!("general_system.md")),
    ("general_task", include_str!("general_task.md")),
    ("general_external", include_str!("general_external.md")),
    ("ml_agent_keywords", include_str!("ml_agent_keywords.md")),
    ("ml_agent_sort", include_str!("ml_agent_sort.md")),
    ("ml_agent_plan", include_str!("ml_agent_plan.md")),
    ("ml_agent_generate", include_str!("ml_agent_generate.md")),
    ("ml_agent_told", include_str!("ml_agent_told.md")),
];

/// The prompts of presets. Each is used in place of the agent's usual prompts.
const PRESETS: [(&str, &str); 2] = [
    ("super_task", include_str!("super_task.md")),
    ("researchcodebench_task", include_str!("researchcodebench_task.md")),
];

/// Approximate number of words per token.
const WORDS: f64 = 0.6;

/// Converts tokens to words, for prompts that tell a model how long to think.
fn words(tokens: u32) -> u32 {
    (f64::from(tokens) * WORDS) as u32
}

/// Returns the digest of all prompts of masked replication, SHA-256 in hex. Runs with equal digests used the same
/// prompts.
#[must_use]
pub fn digest() -> String {
    digest_of(TEMPLATES.iter())
}

/// Returns the digest of all prompts for kinds of tasks that define no prompts of their own.
#[must_use]
pub fn general_digest() -> String {
    digest_of(TEMPLATES.iter().chain(&GENERAL))
}

/// Returns the digest of a preset's prompt. `template` is the name of the prompt in [`PRESETS`].
#[must_use]
pub(super) fn preset_digest(template: &str) -> String {
    digest_of(PRESETS.iter().filter(|(name, _)| *name == template))
}

fn digest_of<'a>(templates: impl Iterator<Item = &'a (&'a str, &'a str)>) -> String {
    let mut hash = Sha256::new();
    for (name, text) in templates {
        hash.update(name);
        hash.update([0]);
        hash.update(text);
        hash.update([0]);
    }
    hex(&hash.finalize())
}

/// Returns the template values that describe a task of masked replication.
fn task_values(task: &Replication, limits: &Limits) -> Value {
    let functions: Vec<Value> = task
        .functions
        .iter()
        .map(|function| {
            context! { at => &function.at, description => function.full_description() }
        })
        .collect();
    let experiments: Vec<Value> = task
        .experiments
        .iter()
        .map(|experiment| {
            context! { key => &experiment.key, description => experiment.description.trim(),
            command => &experiment.command, seconds => experiment.told_limit.ceil() as u64 }
        })
        .collect();
    let keys: Vec<String> = task.experiments.iter().map(|experiment| format!("\"{}\"", experiment.key)).collect();
    context! {
        title => &task.paper.title,
        authors => task.paper.authors.join(", "),
        year => task.paper.year,
        functions,
        experiments,
        keys => keys.join(", "),
        ..limit_values(limits)
    }
}

/// Returns the template values that describe a task of any kind other than masked replication.
fn general_values(task: &Task, limits: &Limits) -> Value {
    context! { instructions => task.instructions.trim(), form => &task.answer, ..limit_values(limits) }
}

fn limit_values(limits: &Limits) -> Value {
    context! {
        steps => limits.steps,
        minutes => span(limits.seconds),
        command => span(command_limit(limits).as_secs_f64()),
        cost => if limits.cost > 0.0 { format!("{}", limits.cost) } else { String::new() },
    }
}

/// Renders the whole prompt of `react:preset=super`. `patience` is the time after which a call returns although its
/// code still runs.
#[must_use]
pub(super) fn super_task(task: &Task, limits: &Limits, patience: Duration) -> String {
    let question = match task.part::<Replication>() {
        None => task.instructions.trim().to_owned(),
        Some(part) => {
            let report = "submit one JSON object";
            render(
                "react_task",
                context! { report, printed => false, file => "", paper => true, ..task_values(part, limits) },
            )
        }
    };
    let (patience, short) = (span(patience.as_secs_f64()), SHORT);
    render("super_task", context! { question, form => &task.answer, patience, short, ..limit_values(limits) })
}

/// Renders the request that `edit_file` makes to the model.
#[must_use]
pub(super) fn edit_file(path: &str, text: &str, instruction: &str) -> String {
    render("edit_file", context! { path, text, instruction, fence => fence(text) })
}

/// Renders the question that `understand_file` asks the model about one part of a file.
#[must_use]
pub(super) fn understand_file(path: &str, question: &str, text: &str, first: usize, last: usize) -> String {
    render("understand_file", context! { path, question, text, first, last, fence => fence(text) })
}

/// Renders the last question that `understand_file` asks the model about a long file, after a question about each part.
#[must_use]
pub(super) fn understand_notes(path: &str, question: &str, notes: &str) -> String {
    render("understand_notes", context! { path, question, notes })
}

/// Renders a template. Templates are compiled in and a test renders each of them, so a failure is a bug. The error is
/// then returned as the prompt, so that it appears in the record.
fn render(name: &str, values: Value) -> String {
    /// The parsed templates, parsed once per process.
    static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in TEMPLATES.into_iter().chain(GENERAL).chain(PRESETS) {
            environment.add_template(name, text)?;
        }
        Ok(environment)
    });
    let rendered = match &*ENVIRONMENT {
        Ok(environment) => environment.get_template(name).and_then(|template| template.render(values)),
        Err(error) => return format!("(the prompts could not be parsed: {error:#})"),
    };
    rendered.unwrap_or_else(|error| format!("(the prompt `{name}` could not be rendered: {error:#})"))
}

/// Returns a code fence that is longer than any fence in the text.
fn fence(text: &str) -> String {
    let longest = text.lines().map(|line| line.chars().take_while(|character| *character == '`').count()).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}

/// Formats seconds for people: "30 minutes", "45 seconds".
fn span(seconds: f64) -> String {
    if seconds >= 120.0 { format!("{} minutes", (seconds / 60.0).floor()) } else { format!("{seconds} seconds") }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::experiment::ExperimentFailure;
    use crate::agent::history::History;
    use crate::agent::protocol::ToolProtocol;
    use crate::agent::retrieval::Passage;
    use crate::agent::tests::support::task;
    use crate::agent::tool_calling::ToolCalling;
    use crate::agent::tools::{ToolChoice, ToolSet};
    use crate::agent::{End, Limits};
    use dynamic::Prompting;

    #[test]
    fn every_prompt_renders() {
        let tool_calling =
            |choice, protocol| ToolCalling { tools: ToolSet::from_choice(choice), protocol, one_call: false };
        let original = tool_calling(ToolChoice::Autoexperiment, ToolProtocol::Tools);
        let by_text = tool_calling(ToolChoice::Bash, ToolProtocol::Text);
        let told = task().task("doubling_0", 0);
        let other = Task { part: None, ..told.clone() };
        let (task_of, passages) = (task(), [Passage { heading: "H".into(), text: "T".into() }]);
        let (function, snippets) = (&task_of.functions[0], [("b.py::g".to_owned(), "def g(): ...".to_owned())]);
        let docstring = vec!["What it does.".to_owned()];
        let missing =
            fixed::Missing { called: "function `f`".into(), header: "def f():".into(), docstring, part: None };
        let part = fixed::MissingPart { function: "def f():\n    ...".into(), lines: "1 line".into() };
        let of_region = fixed::Missing { part: Some(part), ..missing.clone() };
        let failure =
            ExperimentFailure { key: "Experiment 1".into(), what: "exit code 1".into(), stderr: "é".repeat(2000) };
        let rendered = [
            dynamic::system(Prompting::React, &original, History::Full, true),
            dynamic::system(Prompting::Mlagentbench, &original, History::Window(5), false),
            dynamic::system(Prompting::Planning, &by_text, History::Summary(5), true),
            dynamic::task(&told, &Limits::default(), &original, true),
            dynamic::task(&told, &Limits::default(), &by_text, false),
            dynamic::general_system(Prompting::React, &by_text, History::Full),
            dynamic::task(&other, &Limits::default(), &original, true),
            external::task(&other, &Limits::default(), None),
            dynamic::reason(512),
            dynamic::wait(),
            dynamic::begin(),
            dynamic::submit(End::StepLimit, &original),
            dynamic::submit(End::TimeLimit, &by_text),
            dynamic::format_error("the reply was empty", &original),
            dynamic::format_error("the reply was empty", &by_text),
            dynamic::summarise(Some("before"), "steps"),
            dynamic::left_out(Some("summary")),
            dynamic::reflect("no results were reported", "steps"),
            dynamic::try_again("no results were reported", Some("plan")),
            edit_file("a.py", "x = 1\n", "add one"),
            understand_file("a.py", "what?", "x = 1\n", 1, 1),
            understand_notes("a.py", "what?", "notes"),
            external::task(&told, &Limits::default(), Some("/tmp/answer.json")),
            external::task(&told, &Limits::default(), None),
            fixed::system(),
            fixed::files(&task(), function, "def f(): ...", &["a.py".into()], 10),
            fixed::function(
                &task(),
                function,
                &missing,
                fixed::ShownFile { path: "a.py", text: "x = 1\n", left_out: &["`g()`".to_owned()] },
                &passages,
                &snippets,
            ),
            fixed::reason("function `f`", 512),
            fixed::wait(),
            fixed::write(&missing),
            fixed::function(
                &task_of,
                function,
                &of_region,
                fixed::ShownFile { path: "a.py", text: "x = 1\n", left_out: &[] },
                &passages,
                &snippets,
            ),
            fixed::write(&of_region),
            fixed::again("`f` has no code"),
            fixed::repair("f", "def f(): ...", Some("it has no code"), &[&failure]),
            fixed::feedback("f", "def f(): ...", "It does not pass."),
            dynamic::feedback(3, &[dynamic::TestFeedback::default()]),
            fixed::material(&passages, &snippets).unwrap(),
            ml_agent::keywords("Add.", 8),
            ml_agent::sort(&[("adder", "# Adder")]),
            ml_agent::plan("Add.", "adder", "main.py", "# Adder"),
            ml_agent::generate("bash", 8),
            ml_agent::ask_for_program("There is no file `x`.", 7),
        ];
        for prompt in &rendered {
            assert!(!prompt.contains("could not be rendered") && !prompt.contains("{{"), "{prompt}");
        }
        for (name, text) in TEMPLATES.into_iter().chain(GENERAL) {
            // Find a piece of the template's text that is outside of its tags and longer than 12 bytes. A rendered
            // prompt that contains this piece was made from this template.
            let outside =
                text.split("{{").flat_map(|part| part.split_once("}}").map_or(part, |(_, rest)| rest).lines());
            let beginning =
                outside.flat_map(|line| line.split(['{', '}'])).find(|part| part.len() > 12 && !part.starts_with('%'));
            let beginning = beginning.unwrap_or_default();
            assert!(rendered.iter().any(|prompt| prompt.contains(beginning)), "`{name}` is rendered by no test");
        }
    }

    #[test]
    fn tools_are_described_once_and_only_existing_ones_are_named() {
        let tool_calling = |protocol| ToolCalling {
            tools: ToolSet::from_choice(ToolChoice::Autoexperiment),
            protocol,
            one_call: false,
        };
        let system = |protocol| dynamic::system(Prompting::React, &tool_calling(protocol), History::Full, true);
        // The provider is sent the schemas, so the prompt leaves them out.
        for tool in ToolSet::from_choice(ToolChoice::Autoexperiment).definitions() {
            let description = tool.description.as_str();
            assert_eq!(system(ToolProtocol::Tools).matches(description).count(), 0, "{description}");
            assert_eq!(system(ToolProtocol::Text).matches(description).count(), 1, "{description}");
        }
        assert!(tool_calling(ToolProtocol::Text).offered().is_empty());
        let told = task().task("doubling_0", 0);
        let whole = |paper| {
            let system = dynamic::system(Prompting::React, &tool_calling(ToolProtocol::Text), History::Full, paper);
            system + &dynamic::task(&told, &Limits::default(), &tool_calling(ToolProtocol::Text), paper)
        };
        assert_eq!((whole(true).matches("`paper.txt`").count(), whole(false).matches("paper.txt").count()), (2, 0));
        assert!(whole(false).contains("Beside the code there are\n- `experiments.md`"), "{}", whole(false));
        // The manifest names the headings of the paper's passages about each function, here "Method". Only the setting
        // `paper=oracle` may show them to agents.
        assert!(!whole(true).contains("Method"));
    }

    #[test]
    fn without_masked_functions_the_task_is_to_run_and_report_the_experiments() {
        let mut task = task();
        task.functions.clear();
        let tool_calling =
            ToolCalling { tools: ToolSet::autoexperiment(), protocol: ToolProtocol::Tools, one_call: true };
        let prompt = dynamic::task(
            &task.task("doubling_", 0),
            &Limits { cost: 0.0, seconds: 90.0, ..Limits::default() },
            &tool_calling,
            true,
        );
        assert!(prompt.contains("No function is missing") && !prompt.contains("## Missing functions"));
        assert!(prompt.contains("90 seconds") && !prompt.contains('$'));
    }

    #[test]
    fn text_that_looks_like_a_template_stays_as_it_is() {
        let prompt = edit_file("a.md", "{{ path }} {% if %}\n````\n", "keep");
        assert!(prompt.contains("{{ path }} {% if %}\n````\n"));
        assert!(prompt.contains("\n`````\n"), "the fence is longer than any in the text");
    }
}
