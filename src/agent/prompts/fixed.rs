//! Prompts of the fixed agent, and retrieved material for the task of any agent.

use minijinja::{Value, context};

use super::{fence, render, words};
use crate::agent::experiment::ExperimentFailure;
use crate::agent::retrieval::Passage;
use crate::agent::{Replication, TaskFunction};

/// Maximum characters of an experiment's error output that are shown, from its end.
const STDERR_SHOWN: usize = 1500;
/// The body of masked functions.
pub const STAND_IN: &str = "raise NotImplementedError";

/// Renders the system prompt.
#[must_use]
pub fn system() -> String {
    render("fixed_system", context! {})
}

/// Asks for the relevant files.
#[must_use]
pub fn files(task: &Replication, function: &TaskFunction, stub: &str, paths: &[String], most: usize) -> String {
    render(
        "fixed_files",
        context! { title => &task.paper.title, at => &function.at, description => function.full_description(),
        stub => beginning(stub),
        paths => paths.to_vec(), most, fence => fence(stub) },
    )
}

/// Description of a missing function. The docstring is shown as prose and the function not as code: a small model that
/// has seen a function consisting of a signature and a docstring writes the same.
#[derive(Debug, Clone)]
pub struct Missing {
    /// The function in words, with its class, because a file may have several methods of one name.
    pub called: String,
    /// Its signature.
    pub header: String,
    /// The lines of its docstring, without quotes and indentation.
    pub docstring: Vec<String>,
    /// The missing part, if only some statements are missing.
    pub part: Option<MissingPart>,
}

/// Missing statements of a function.
#[derive(Debug, Clone)]
pub struct MissingPart {
    /// The function with [`MARKER`] in place of the statements.
    pub function: String,
    /// Approximate length of the missing part, in words.
    pub lines: String,
}

/// Comment shown in place of missing statements. Small models copy a `raise` that they see.
pub const MARKER: &str = "# The missing statements go here.";

/// A file as shown to the model.
#[derive(Debug, Clone, Copy)]
pub struct ShownFile<'a> {
    /// Path in the repo.
    pub path: &'a str,
    /// The text, perhaps without some functions.
    pub text: &'a str,
    /// Signatures of the functions that are left out of the text.
    pub left_out: &'a [String],
}

/// Shows a missing function, its file, and the material retrieved for it.
#[must_use]
pub fn function(
    task: &Replication,
    function: &TaskFunction,
    missing: &Missing,
    file: ShownFile<'_>,
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
            description => function.full_description(),
            passages => text_of(passages),
            fence => fence(&format!(
                "{}\n{snippets}\n{}\n{}",
                file.text,
                missing.header,
                missing.part.as_ref().map_or("", |part| &part.function)
            )),
            called => &missing.called,
            header => &missing.header,
            docstring => missing.docstring.clone(),
            part => missing.part.as_ref().map(|part| &part.function),
            lines => missing.part.as_ref().map(|part| &part.lines),
            snippets,
            path => file.path,
            file => file.text,
            left_out => file.left_out.to_vec(),
        },
    )
}

/// Asks for thoughts about the function described as `called`.
#[must_use]
pub fn reason(called: &str, tokens: u32) -> String {
    render("fixed_reason", context! { called, words => words(tokens) })
}

/// Asks for more thoughts while tokens are left for them, as in "s1: Simple test-time scaling" (Muennighoff et al.,
/// 2025).
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

/// Renders a repeated request for the function, with the reason why the previous reply was unusable.
#[must_use]
pub fn again(fault: &str) -> String {
    render("fixed_again", context! { fault })
}

/// The stub of a function, without the line that replaces the missing code.
fn beginning(stub: &str) -> &str {
    let stub = stub.trim_end();
    stub.strip_suffix(STAND_IN).unwrap_or(stub).trim_end()
}

/// Shows a function together with what went wrong.
#[must_use]
pub fn repair(name: &str, code: &str, fault: Option<&str>, failures: &[&ExperimentFailure]) -> String {
    let failures: Vec<Value> = failures
        .iter()
        .map(|failure| {
            let start = failure.stderr.char_indices().rev().nth(STDERR_SHOWN - 1).map_or(0, |(at, _)| at);
            context! { key => &failure.key, what => &failure.what, stderr => failure.stderr[start..].trim() }
        })
        .collect();
    render("fixed_repair", context! { name, code, fault => fault.unwrap_or_default(), failures, fence => "````" })
}

/// Shows a function together with the feedback of a review.
#[must_use]
pub fn feedback(name: &str, code: &str, feedback: &str) -> String {
    render("fixed_feedback", context! { name, code, feedback => feedback.trim(), fence => "````" })
}

/// Renders retrieved material for the beginning of a task; `None` if nothing was retrieved.
#[must_use]
pub fn material(passages: &[Passage], snippets: &[(String, String)]) -> Option<String> {
    if passages.is_empty() && snippets.is_empty() {
        return None;
    }
    let snippets = joined(snippets);
    Some(render("material", context! { passages => text_of(passages), fence => fence(&snippets), snippets }))
}

fn text_of(passages: &[Passage]) -> String {
    passages.iter().map(Passage::heading_and_text).collect::<Vec<_>>().join("\n\n")
}

fn joined(snippets: &[(String, String)]) -> String {
    snippets.iter().map(|(at, text)| format!("# {at}\n{}", text.trim_end())).collect::<Vec<_>>().join("\n\n\n")
}
