//! What the fixed agent tells the model, and what retrieval puts into any agent's task.

use minijinja::{Value, context};

use super::{fence, render};
use crate::agent::experiment::Failure;
use crate::agent::retrieval::Passage;
use crate::agent::{Task, TaskFunction};

/// Characters of an experiment's error output that a model is shown, from its end.
const STDERR_SHOWN: usize = 1500;
/// Words to a token, roughly.
const WORDS: f64 = 0.6;

/// The system prompt.
#[must_use]
pub fn system() -> String {
    render("fixed_system", context! {})
}

/// Asks which files matter.
#[must_use]
pub fn files(task: &Task, function: &TaskFunction, stub: &str, paths: &[String], most: usize) -> String {
    render(
        "fixed_files",
        context! { title => &task.paper.title, at => &function.at, description => function.description.trim(), stub,
        paths => paths.to_vec(), most, fence => fence(stub) },
    )
}

/// Shows a missing function, its file, and what was retrieved for it.
#[must_use]
pub fn function(
    task: &Task,
    function: &TaskFunction,
    path: &str,
    file: &str,
    passages: &[Passage],
    snippets: &[(String, String)],
) -> String {
    let snippets = joined(snippets);
    render(
        "fixed_function",
        context! {
            title => &task.paper.title,
            authors => task.paper.authors.join(", "),
            year => task.paper.year,
            at => &function.at,
            description => function.description.trim(),
            passages => text_of(passages),
            fence => fence(&format!("{file}\n{snippets}")),
            snippets,
            path,
            file,
        },
    )
}

/// Asks for thoughts.
#[must_use]
pub fn reason(name: &str, tokens: u32) -> String {
    render("fixed_reason", context! { name, words => (f64::from(tokens) * WORDS) as u32 })
}

/// Asks for more thoughts where tokens are left for them, as in "s1: Simple test-time scaling" (Muennighoff et al., 2025).
#[must_use]
pub fn wait() -> String {
    render("fixed_wait", context! {})
}

/// Asks for the code. What is left of the function is shown without the line that stands for the missing code: small
/// models copy it, too.
#[must_use]
pub fn write(name: &str, stub: &str) -> String {
    let beginning = stub.trim_end();
    let beginning = beginning.strip_suffix("raise NotImplementedError").unwrap_or(beginning).trim_end();
    render("fixed_write", context! { name, stub => beginning, fence => fence(stub) })
}

/// Shows what went wrong.
#[must_use]
pub fn repair(name: &str, code: &str, fault: Option<&str>, failures: &[&Failure]) -> String {
    let failures: Vec<Value> = failures
        .iter()
        .map(|failure| {
            let start = failure.stderr.char_indices().rev().nth(STDERR_SHOWN - 1).map_or(0, |(at, _)| at);
            context! { key => &failure.key, what => &failure.what, stderr => failure.stderr[start..].trim() }
        })
        .collect();
    render("fixed_repair", context! { name, code, fault => fault.unwrap_or_default(), failures, fence => "````" })
}

/// What retrieval puts into a task at its start; nothing when nothing was retrieved.
#[must_use]
pub fn material(passages: &[Passage], snippets: &[(String, String)]) -> Option<String> {
    if passages.is_empty() && snippets.is_empty() {
        return None;
    }
    let snippets = joined(snippets);
    Some(render("material", context! { passages => text_of(passages), fence => fence(&snippets), snippets }))
}

fn text_of(passages: &[Passage]) -> String {
    passages.iter().map(Passage::shown).collect::<Vec<_>>().join("\n\n")
}

fn joined(snippets: &[(String, String)]) -> String {
    snippets.iter().map(|(at, text)| format!("# {at}\n{}", text.trim_end())).collect::<Vec<_>>().join("\n\n\n")
}
