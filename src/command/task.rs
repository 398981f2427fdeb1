//! The task of an attempt at an instruction.

use std::sync::Arc;

use serde_json::json;

use super::context::context;
use super::loaded::LoadedCommands;
use super::manifest::Instruction;
use super::program::file_name;
use crate::agent::{OneReply, ShownRepo, Solution, Task};
use crate::score::ml_bench::ProgramKind;
use crate::suite::ResultRule;

/// Builds the task of an attempt at an instruction. `n` is the number of the context, which decides how much
/// documentation the agent gets.
pub fn task(
    loaded: &LoadedCommands,
    shelf: &Arc<Vec<ShownRepo>>,
    instruction: &Instruction,
    n: usize,
    sample: &str,
    attempt: u32,
) -> Task {
    let told = describe_task(loaded, instruction, n);
    let unplaced = order(loaded, instruction, n);
    let (noun, fence) = match instruction.kind {
        ProgramKind::Bash => ("script", "bash"),
        ProgramKind::Python => ("program", "python"),
    };
    let file = file_name(instruction.kind);
    let answer = format!(
        "one JSON object: {{\"file\": \"{file}\"}} when you have written the {noun} to the file `{file}` in the folder \
         where it is run, or {{\"code\": \"...\"}} with the whole {noun} as text"
    );
    let prompt = format!("{told}\n\nReply with the whole {noun} in one ```{fence} block, and nothing else.\n");
    let solved = |code: &str| Solution {
        answer: Some(json!({ "kind": fence, "code": code }).to_string()),
        ..Solution::default()
    };
    Task {
        sample: sample.to_owned(),
        attempt,
        instructions: told,
        answer,
        solution: solved(&instruction.gold),
        forgery: Some(solved(&forgery(instruction))),
        part: Some(Arc::new(OneReply { prompt, unplaced, fence, shelf: shelf.clone() })),
    }
}

/// Describes the task to agents: the repo, the instruction, how the program is run, and the documentation that an
/// attempt of difficulty `n` gets.
pub(super) fn describe_task(loaded: &LoadedCommands, instruction: &Instruction, n: usize) -> String {
    format!("You work with the repository of {}. {}", loaded.set.title, order(loaded, instruction, n))
}

/// Describes the task as [`describe_task`] does, but without the name of the repo.
fn order(loaded: &LoadedCommands, instruction: &Instruction, n: usize) -> String {
    let kind = match instruction.kind {
        ProgramKind::Bash => "Bash script",
        ProgramKind::Python => "Python program",
    };
    let run = match instruction.kind {
        ProgramKind::Bash => "bash run.sh",
        ProgramKind::Python => "python run.py",
    };
    let place =
        if instruction.path == "." { "its root".to_owned() } else { format!("its folder `{}`", instruction.path) };
    let result = match &instruction.result {
        _ if !instruction.files.is_empty() => format!("what it writes to `{}`", instruction.files.join("` and `")),
        ResultRule::JsonLine(_) => "its standard output, where the last line of JSON counts".to_owned(),
        ResultRule::Regex(_) => "its standard output".to_owned(),
        ResultRule::JsonFile(file) => format!("the file `{file}`"),
    };
    let mut text = format!(
        "Write a {kind} that does this:\n\n{}\n\n\
         It is run as `{run}` in {place}, from the repository as it is: only this one file of yours is taken over. It has \
         {} seconds and must end by itself with exit code 0. Its result is read from {result}. It asks the repository's own \
         code for it. Numbers are given in full, not rounded. Options that the task does not name keep their defaults.",
        instruction.text.trim(),
        instruction.time_limit
    );
    if let Some(context) = context(loaded, instruction, n) {
        text.push_str("\n\n# From the documentation\n\n");
        text.push_str(context.trim());
    }
    text
}

/// Builds a program that does nothing and nevertheless satisfies ML-Bench's published rule. The rule searches the text
/// for the values of all arguments, so a comment contains them. In a Bash script, the comment also contains `.py `, by
/// which the rule recognises Bash.
fn forgery(instruction: &Instruction) -> String {
    let asked = instruction.required_arguments().unwrap_or_default();
    let values: Vec<&str> = asked.iter().map(|argument| argument.value.as_str()).collect();
    match instruction.kind {
        ProgramKind::Bash => format!("# main.py {}\ntrue\n", values.join(" ")),
        ProgramKind::Python => format!("# {}\npass\n", values.join(" ")),
    }
}
