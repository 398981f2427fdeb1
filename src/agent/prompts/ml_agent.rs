//! Prompts of `ml-agent`.

use minijinja::context;

use super::render;

/// Renders the request for search words.
pub fn keywords(task: &str, most: usize) -> String {
    render("ml_agent_keywords", context! { task => task.trim(), most })
}

/// Renders the request to sort the repos that were found; each repo has its id and the beginning of its documentation.
pub fn sort(repos: &[(&str, &str)]) -> String {
    let repos: Vec<_> = repos.iter().map(|(id, beginning)| context! { id => *id, beginning => *beginning }).collect();
    render("ml_agent_sort", context! { repos })
}

/// Renders the question whether the requested program belongs to this repo.
pub fn plan(task: &str, repo: &str, files: &str, docs: &str) -> String {
    render("ml_agent_plan", context! { task => task.trim(), repo, files, docs })
}

/// Renders the request for the program, in a code block of the language `fence`.
pub fn generate(fence: &str, most: usize) -> String {
    render("ml_agent_generate", context! { fence, most })
}

/// Renders the answer to a reply that does not contain the program.
pub fn ask_for_program(told: &str, left: usize) -> String {
    render("ml_agent_told", context! { told, left })
}
