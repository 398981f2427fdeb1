//! What models are told, from the templates beside this file.
//!
//! No times, random numbers or paths of this machine may enter a prompt: recorded replies are played back by what
//! was asked.

pub mod fixed;

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior, Value, context};
use sha2::{Digest, Sha256};

use super::tools::{ToolSet, signature_of};
use super::{End, Limits, Task};
use crate::workspace::hex;

const TEMPLATES: [(&str, &str); 16] = [
    ("react_system", include_str!("react_system.md")),
    ("react_task", include_str!("react_task.md")),
    ("submit", include_str!("submit.md")),
    ("format_error", include_str!("format_error.md")),
    ("edit_file", include_str!("edit_file.md")),
    ("understand_file", include_str!("understand_file.md")),
    ("understand_notes", include_str!("understand_notes.md")),
    ("fixed_system", include_str!("fixed_system.md")),
    ("fixed_files", include_str!("fixed_files.md")),
    ("fixed_function", include_str!("fixed_function.md")),
    ("fixed_reason", include_str!("fixed_reason.md")),
    ("fixed_wait", include_str!("fixed_wait.md")),
    ("fixed_write", include_str!("fixed_write.md")),
    ("fixed_repair", include_str!("fixed_repair.md")),
    ("material", include_str!("material.md")),
    ("external_task", include_str!("external_task.md")),
];

/// Digest of all prompts, sha256 in hex: two runs with the same one told their models the same.
#[must_use]
pub fn digest() -> String {
    let mut hash = Sha256::new();
    for (name, text) in TEMPLATES {
        hash.update(name);
        hash.update([0]);
        hash.update(text);
        hash.update([0]);
    }
    hex(&hash.finalize())
}

/// The system prompt of `react`.
#[must_use]
pub fn react_system(tools: &ToolSet) -> String {
    let tools: Vec<Value> = tools
        .shown()
        .iter()
        .map(|tool| {
            let signature = signature_of(&tool.parameters);
            context! { name => &tool.name, signature, description => &tool.description }
        })
        .collect();
    render("react_system", context! { tools })
}

/// The task prompt of `react`.
#[must_use]
pub fn react_task(task: &Task, limits: &Limits) -> String {
    render("react_task", task_values(task, limits, ""))
}

/// The task of an agent that is a program of its own. Its answer is read from the file `answer`; without one, from what it
/// prints at its end.
#[must_use]
pub fn external_task(task: &Task, limits: &Limits, answer: Option<&str>) -> String {
    render("external_task", task_values(task, limits, answer.unwrap_or_default()))
}

/// What the prompts that give a task say about it.
fn task_values(task: &Task, limits: &Limits, answer: &str) -> Value {
    let functions: Vec<Value> = task
        .functions
        .iter()
        .map(|function| {
            let passages = function.passages.join(", ");
            context! { at => &function.at, description => function.description.trim(), passages }
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
        steps => limits.steps,
        minutes => span(limits.seconds),
        cost => if limits.cost > 0.0 { format!("{}", limits.cost) } else { String::new() },
        answer,
    }
}

/// What the model is told before its last reply.
#[must_use]
pub fn submit(why: End) -> String {
    let reason = match why {
        End::StepLimit => "This is your last step.".to_owned(),
        _ => format!("{}.", capitalised(used_up(why))),
    };
    render("submit", context! { reason })
}

/// What is used up, a fragment.
#[must_use]
pub const fn used_up(limit: End) -> &'static str {
    match limit {
        End::TimeLimit => "the tool time is used up",
        End::CostLimit => "the money is used up",
        End::TokenLimit => "the tokens are used up",
        _ => "the steps are used up",
    }
}

/// What the model is told when its reply could not be acted upon.
#[must_use]
pub fn format_error(what: &str, tools: &ToolSet) -> String {
    let names: Vec<String> = tools.shown().iter().map(|tool| format!("`{}`", tool.name)).collect();
    render("format_error", context! { what, names => names.join(", ") })
}

/// What `edit_file` asks the model.
#[must_use]
pub fn edit_file(path: &str, text: &str, instruction: &str) -> String {
    render("edit_file", context! { path, text, instruction, fence => fence(text) })
}

/// What `understand_file` asks the model about one window of a file.
#[must_use]
pub fn understand_file(path: &str, question: &str, text: &str, first: usize, last: usize) -> String {
    render("understand_file", context! { path, question, text, first, last, fence => fence(text) })
}

/// What `understand_file` asks the model at the end of a long file.
#[must_use]
pub fn understand_notes(path: &str, question: &str, notes: &str) -> String {
    render("understand_notes", context! { path, question, notes })
}

/// Renders one of the templates. They are part of this program, and a test renders each of them, so a failure
/// is a bug: the model is then told of it in place of the prompt, which the record shows.
fn render(name: &str, values: Value) -> String {
    /// Parsed once a process.
    static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in TEMPLATES {
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

/// A fence that the text does not hold.
fn fence(text: &str) -> String {
    let longest = text.lines().map(|line| line.chars().take_while(|character| *character == '`').count()).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}

/// Seconds as people say them: "30 minutes", "45 seconds".
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
    use crate::agent::experiment::Failure;
    use crate::agent::retrieval::Passage;
    use crate::agent::tests::support::task;

    #[test]
    fn every_prompt_renders() {
        let tools = ToolSet::autoexperiment();
        let (task_of, passages) = (task(), [Passage { heading: "H".into(), text: "T".into() }]);
        let (function, snippets) = (&task_of.functions[0], [("b.py::g".to_owned(), "def g(): ...".to_owned())]);
        let failure = Failure { key: "Experiment 1".into(), what: "exit code 1".into(), stderr: "é".repeat(2000) };
        let rendered = [
            react_system(&tools),
            react_task(&task(), &Limits::default()),
            submit(End::StepLimit),
            format_error("the reply was empty", &tools),
            edit_file("a.py", "x = 1\n", "add one"),
            understand_file("a.py", "what?", "x = 1\n", 1, 1),
            understand_notes("a.py", "what?", "notes"),
            external_task(&task(), &Limits::default(), Some("/tmp/answer.json")),
            fixed::system(),
            fixed::files(&task(), function, "def f(): ...", &["a.py".into()], 10),
            fixed::function(&task(), function, "a.py", "x = 1\n", &passages, &snippets),
            fixed::reason("f", 512),
            fixed::wait(),
            fixed::write("f", "def f(): ..."),
            fixed::repair("f", "def f(): ...", Some("it has no code"), &[&failure]),
            fixed::material(&passages, &snippets).unwrap(),
        ];
        assert_eq!(rendered.len(), TEMPLATES.len());
        for prompt in rendered {
            assert!(!prompt.contains("could not be rendered") && !prompt.contains("{{"), "{prompt}");
        }
    }

    #[test]
    fn without_missing_functions_the_task_is_to_run_and_report() {
        let mut task = task();
        task.functions.clear();
        let prompt = react_task(&task, &Limits { cost: 0.0, seconds: 90.0, ..Limits::default() });
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
