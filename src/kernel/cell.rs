//! Notebook cells: splitting files into cells, and the record of running one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "State")]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// It ran to its end.
    Done,
    /// It ran to its end, but a shell command in it failed.
    Failed,
    /// It raised an exception.
    Raised,
    /// It is still running.
    Running,
    /// It did not stop when interrupted, so the session was killed.
    Killed,
    /// The session ended with this exit code.
    Ended(i32),
    /// The session does not answer.
    Silent,
    /// The attempt's tool time ran out.
    OutOfTime,
}

impl CellState {
    /// Parses the state reported by the session.
    pub(super) fn parse(word: &str) -> Self {
        match word.trim() {
            "done" => Self::Done,
            "failed" => Self::Failed,
            "raised" => Self::Raised,
            other => other.strip_prefix("ended ").and_then(|code| code.parse().ok()).map_or(Self::Silent, Self::Ended),
        }
    }

    /// Whether the session has ended with this cell.
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

/// Record of a cell that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRecord {
    /// Who ran it.
    pub by: CellAuthor,
    /// Its code.
    pub code: String,
    /// Raw output; if longer than 4 MiB, only its beginning and end.
    pub output: String,
    /// State of the cell.
    pub state: CellState,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Splits a file into cells at lines that begin with `# %%`.
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
    fn session_words_are_parsed_to_states() {
        assert_eq!(
            ["done", "ended 7", ""].map(CellState::parse),
            [CellState::Done, CellState::Ended(7), CellState::Silent]
        );
    }
}
