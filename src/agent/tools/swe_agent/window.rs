//! The open file, and the window of its lines that is shown.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::agent::Context;
use crate::agent::tools::{READ_LIMIT, Session, ToolFailure, read_text};

/// Lines in the window, as in SWE-agent.
pub const LINES: usize = 100;
/// Lines that are in the window both before and after scrolling.
pub(super) const OVERLAP: usize = 2;

/// The open file.
#[derive(Debug, Clone)]
pub struct Window {
    /// The file's path, resolved for the sandbox.
    pub path: PathBuf,
    /// The file's path as the model wrote it.
    pub shown: String,
    /// First line in the window, from 0.
    pub top: usize,
}

impl Window {
    /// Reads the file.
    ///
    /// # Errors
    /// Returns the errors of the sandbox; fails if the file is not text.
    pub async fn text(&self, context: &mut Context<'_>) -> Result<String, ToolFailure> {
        read_text(context, &self.path, &self.shown, READ_LIMIT).await
    }

    /// Moves the window so that `line` (from 0) is near its middle.
    pub fn center(&mut self, line: usize, total: usize) {
        self.top = line.saturating_sub(LINES / 2).min(total.saturating_sub(LINES));
    }

    /// Formats the lines in the window with their numbers, and the number of lines above and below.
    #[must_use]
    pub fn show(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let end = (self.top + LINES).min(lines.len());
        let mut shown = format!("[File: `{}` ({} lines)]\n", self.shown, lines.len());
        if self.top > 0 {
            let _ = writeln!(shown, "({} more lines above)", self.top);
        }
        for (index, line) in lines.iter().enumerate().take(end).skip(self.top) {
            let _ = writeln!(shown, "{}:{line}", index + 1);
        }
        if end < lines.len() {
            let _ = writeln!(shown, "({} more lines below)", lines.len() - end);
        }
        shown
    }
}

/// Returns the open file of a session.
///
/// # Errors
/// [`ToolFailure::Refused`] if no file is open.
pub fn open(session: &mut Session) -> Result<&mut Window, ToolFailure> {
    let none = || ToolFailure::Refused("no file is open; open one with `open` first".to_owned());
    session.window.as_mut().ok_or_else(none)
}
