//! What the fixed agent tells the model, and what retrieval puts into any agent's task.

use minijinja::{Value, context};

use super::{fence, render, words};
use crate::agent::experiment::Failure;
use crate::agent::retrieval::Passage;
use crate::agent::{Replication, TaskFunction};

/// Characters of an experiment's error output that a model is shown, from its end.
const STDERR_SHOWN: usize = 1500;
/// What masked functions do.
pub const STAND_IN: &str = "raise NotImplementedError";

/// The system prompt.
#[must_use]
pub fn system() -> String {
    render("fixed_system", context! {})
}

/// Asks which files matter.
#[must_use]
pub fn files(task: &Replication, function: &TaskFunction, stub: &str, paths: &[String], most: usize) -> String {
    render(
        "fixed_files",
        context! { title => &task.paper.title, at => &function.at, description => function.told(),
        stub => beginning(stub),
        paths => paths.to_vec(), most, fence => fence(stub) },
    )
}

/// What is known of a missing function. A docstring is shown as prose and the function stands in no code: a small model
/// that has seen one of a signature and a docstring alone writes the same.
#[derive(Debug, Clone)]
pub struct Missing {
    /// The function in words: a file may have several methods of one name, so their class is said.
    pub called: String,
    /// Its signature.
    pub header: String,
    /// The lines of its docstring, without quotes and indentation.
    pub docstring: Vec<String>,
    /// Where only a part of it is missing: that part.
    pub part: Option<MissingPart>,
}

/// Missing statements of a function.
#[derive(Debug, Clone)]
pub struct MissingPart {
    /// The function with [`MARKER`] in the place of the statements.
    pub function: String,
    /// About how much is missing, in words.
    pub lines: String,
}

/// What a model is shown in the place of missing statements: small models copy a `raise` that they see.
pub const MARKER: &str = "# The missing statements go here.";

/// Shows a missing function, its file (the path, its text, and what was left out of that), and what was retrieved for it.
#[must_use]
pub fn function(
    task: &Replication,
    function: &TaskFunction,
    missing: &Missing,
    (path, file, left_out): (&str, &str, &[String]),
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
            description => function.told(),
            passages => text_of(passages),
            fence => fence(&format!(
                "{file}\n{snippets}\n{}\n{}",
                missing.header,
                missing.part.as_ref().map_or("", |part| &part.function)
            )),
            called => &missing.called,
            header => &missing.header,
            docstring => missing.docstring.clone(),
            part => missing.part.as_ref().map(|part| &part.function),
            lines => missing.part.as_ref().map(|part| &part.lines),
            snippets,
            path,
            file,
            left_out => left_out.to_vec(),
        },
    )
}

/// Asks for thoughts about the function that is called so in words.
#[must_use]
pub fn reason(called: &str, tokens: u32) -> String {
    render("fixed_reason", context! { called, words => words(tokens) })
}

/// Asks for more thoughts where tokens are left for them, as in "s1: Simple test-time scaling" (Muennighoff et al., 2025).
#[must_use]
pub fn wait() -> String {
    render("fixed_wait", context! {})
}

/// Asks for the code of a function.
#[must_use]
pub fn write(missing: &Missing) -> String {
    let (called, header) = (&missing.called, &missing.header);
    if missing.part.is_some() {
        return render("fixed_write_part", context! { called, marker => MARKER, fence => fence(MARKER) });
    }
    render("fixed_write", context! { called, header, fence => fence(header) })
}

/// Says that the function was asked for before.
#[must_use]
pub fn again(fault: &str) -> String {
    render("fixed_again", context! { fault })
}

/// What is left of a function, without the line that stands for the missing code.
fn beginning(stub: &str) -> &str {
    let stub = stub.trim_end();
    stub.strip_suffix(STAND_IN).unwrap_or(stub).trim_end()
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

/// Shows a function together with what was found when the work was looked at.
#[must_use]
pub fn feedback(name: &str, code: &str, feedback: &str) -> String {
    render("fixed_feedback", context! { name, code, feedback => feedback.trim(), fence => "````" })
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
