//! Notebook cells: splitting a file into cells, and the record of a cell that was run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "State")]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// The cell ran to its end.
    Done,
    /// The cell ran to its end, but a shell command in it failed.
    Failed,
    /// The cell raised an exception.
    Raised,
    /// The cell is still running.
    Running,
    /// The cell did not stop when interrupted, so the session was killed.
    Killed,
    /// The session ended with this exit code while the cell ran.
    Ended(i32),
    /// The session does not answer any more.
    Silent,
    /// The attempt's tool time ran out while the cell ran.
    OutOfTime,
}

impl CellState {
    /// Parses the state that the session reports.
    pub(super) fn parse(word: &str) -> Self {
        match word.trim() {
            "done" => Self::Done,
            "failed" => Self::Failed,
            "raised" => Self::Raised,
            other => other.strip_prefix("ended ").and_then(|code| code.parse().ok()).map_or(Self::Silent, Self::Ended),
        }
    }

    /// Whether a cell in this state means that the session has ended, too.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Killed | Self::Ended(_) | Self::Silent)
    }
}

/// Who ran a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "By")]
#[serde(rename_all = "snake_case")]
pub enum CellAuthor {
    /// The harness, before the agent started.
    Prefix,
    /// The agent.
    Agent,
}

/// Record of a notebook cell that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRecord {
    /// Who ran the cell.
    pub by: CellAuthor,
    /// The cell's code.
    pub code: String,
    /// Raw output. If it is longer than 4 MiB, only its beginning and end are kept.
    pub output: String,
    /// How the cell ended.
    pub state: CellState,
    /// Seconds that the cell ran.
    pub seconds: f64,
}

/// Splits a file into cells; a cell begins at each line that begins with `# %%`.
#[must_use]
pub fn split_cells(text: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.starts_with("# %%") {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push_str(line);
        }
    }
    let cells = cells.into_iter().map(|cell| cell.trim_matches('\n').trim_end().to_owned());
    cells.filter(|cell| !cell.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_at_cell_marks_without_empty_cells() {
        assert_eq!(
            split_cells("a = 1\n\n# %% more\n!ls\n# %%\n\n# %%\n%%bash\necho\n"),
            ["a = 1", "!ls", "%%bash\necho"]
        );
        assert!(split_cells("\n").is_empty());
    }

    #[test]
    fn the_state_of_a_cell_is_parsed_from_the_report_of_its_session() {
        assert_eq!(
            ["done", "ended 7", ""].map(CellState::parse),
            [CellState::Done, CellState::Ended(7), CellState::Silent]
        );
    }
}
