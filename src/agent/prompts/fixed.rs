//! Prompts of the `fixed` agent, and the message in which `react` shows retrieved passages and snippets.

use minijinja::{Value, context};

use super::{fence, render, words};
use crate::agent::experiment::ExperimentFailure;
use crate::agent::retrieval::Passage;
use crate::agent::{Replication, TaskFunction};

/// Maximum characters shown of the end of an experiment's error output.
const STDERR_SHOWN: usize = 1500;
/// The statement that replaces the body of a masked function.
pub const STAND_IN: &str = "raise NotImplementedError";

/// Renders the system prompt.
#[must_use]
pub fn system() -> String {
    render("fixed_system", context! {})
}

/// Renders the whole prompt of `fixed:preset=researchcodebench`: the paper's text, and paths and texts of files.
#[must_use]
pub fn one_prompt(paper: &str, files: &[(String, String)]) -> String {
    let files: Vec<Value> =
        files.iter().map(|(path, text)| context! { path, text => text.trim_end_matches('\n') }).collect();
    render("researchcodebench_task", context! { paper, files })
}

/// Renders the request to name the relevant files.
#[must_use]
pub fn files(task: &Replication, function: &TaskFunction, stub: &str, paths: &[String], most: usize) -> String {
    render(
        "fixed_files",
        context! { title => &task.paper.title, at => &function.at, description => function.full_description(),
        stub => beginning(stub),
        paths => paths.to_vec(), most, fence => fence(stub) },
    )
}

/// Description of a missing function. It is shown as prose, because a small model that sees code with only a signature
/// and a docstring replies with the same code.
#[derive(Debug, Clone)]
pub struct Missing {
    /// The function's name with its kind, for sentences, such as "method `fit` of the class `Model`". It includes the
    /// class, because a file may have several methods of one name.
    pub called: String,
    /// The function's signature.
    pub header: String,
    /// The lines of the function's docstring, without quotes and indentation.
    pub docstring: Vec<String>,
    /// The missing part, if only some statements are missing.
    pub part: Option<MissingPart>,
}

/// Description of missing statements of a function.
#[derive(Debug, Clone)]
pub struct MissingPart {
    /// The function's code with [`MARKER`] in place of the statements.
    pub function: String,
    /// Approximate length of the missing part as a text, such as "3 lines".
    pub lines: String,
}

/// Comment shown in place of missing statements. It is not a `raise` statement, because small models copy `raise`
/// statements.
pub const MARKER: &str = "# The missing statements go here.";

/// A file as shown to the model.
#[derive(Debug, Clone, Copy)]
pub struct ShownFile<'a> {
    /// Path in the repo.
    pub path: &'a str,
    /// The file's text, perhaps without some functions.
    pub text: &'a str,
    /// Signatures of the functions that `text` omits.
    pub left_out: &'a [String],
}

/// Renders a missing function, its file, and the material retrieved for it.
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

/// Renders the request to think about the function described as `called`.
#[must_use]
pub fn reason(called: &str, tokens: u32) -> String {
    render("fixed_reason", context! { called, words => words(tokens) })
}

/// Renders the request to continue thinking while tokens are left, as in "s1: Simple test-time scaling" (Muennighoff et
/// al., 2025).
#[must_use]
pub fn wait() -> String {
    render("fixed_wait", context! {})
}

/// Renders the request for the code of a function.
#[must_use]
pub fn write(missing: &Missing) -> String {
    let (called, header) = (&missing.called, &missing.header);
    if missing.part.is_some() {
        return render("fixed_write_part", context! { called, marker => MARKER, fence => fence(MARKER) });
    }
    render("fixed_write", context! { called, header, fence => fence(header) })
}

/// Renders the second request for a function, with the reason why the first reply was unusable.
#[must_use]
pub fn again(fault: &str) -> String {
    render("fixed_again", context! { fault })
}

/// Returns the stub of a function without its last line if that is [`STAND_IN`].
fn beginning(stub: &str) -> &str {
    let stub = stub.trim_end();
    stub.strip_suffix(STAND_IN).unwrap_or(stub).trim_end()
}

/// Renders the request to repair a function, with its faults and the failed experiments.
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

/// Renders the request to rewrite a function, with feedback from a review.
#[must_use]
pub fn feedback(name: &str, code: &str, feedback: &str) -> String {
    render("fixed_feedback", context! { name, code, feedback => feedback.trim(), fence => "````" })
}

/// Renders the message with retrieved material that is shown after a task; `None` if nothing was retrieved.
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
