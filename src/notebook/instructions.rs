//! Writes the instructions that an agent gets for a notebook task.

use std::fmt::Write as _;

use super::loaded::LoadedTask;

/// The form of the answer.
pub const ANSWER: &str = "one JSON object with the structure that the query gives";

/// Returns the query, what was executed, and what remains to be done, in SUPER's words.
pub fn instructions(task: &LoadedTask, withheld: &[usize]) -> String {
    let manifest = &task.manifest;
    let mut text = format!("## Query\n\n{}\n", manifest.query.trim());
    if !manifest.instructions.is_empty() {
        text.push_str("\nAdditional instructions:\n");
        for instruction in &manifest.instructions {
            let _ = writeln!(text, "- {}", instruction.trim());
        }
    }
    text.push_str(
        "\n## Where you are\n\nThe repository is in the current folder, without its history. There is no network; `pip \
         install` finds the packages that the task may need on this machine.\n",
    );
    let goals = |inside: bool| {
        let blocks = manifest.blocks.iter().enumerate().filter(move |(place, _)| withheld.contains(place) == inside);
        blocks.map(|(_, block)| block.goal.trim()).collect::<Vec<_>>()
    };
    let (done, left) = (goals(false), goals(true));
    if !done.is_empty() {
        text.push_str("\nThese steps have been executed for you, in this session:\n");
        for goal in &done {
            let _ = writeln!(text, "- {goal}");
        }
        let cells = task.cells_of(withheld, false);
        let _ = write!(text, "\nThe cells that were executed:\n\n```python\n{}\n```\n", cells.join("\n# %%\n"));
    }
    if left.is_empty() {
        text.push_str("\nWhat is left: read the result off what has been executed, and submit it.\n");
    } else {
        text.push_str("\nWhat is left to be done:\n");
        for goal in &left {
            let _ = writeln!(text, "- {goal}");
        }
    }
    let _ = writeln!(
        text,
        "\nRun `{}` for real and submit what it gives, with all digits: it is run again on the files and packages that you \
         leave. Its code must run in one process. Change only what the task needs: other changes of the given files fail, \
         and new Python files are left out.",
        manifest.entry
    );
    text
}
