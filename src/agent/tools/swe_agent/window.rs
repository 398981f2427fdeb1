//! The open file and the lines of it that are seen.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::agent::Context;
use crate::agent::tools::{Failure, READ_LIMIT, Session, read_text};

/// Lines that are seen at once, as in the original.
pub const LINES: usize = 100;
/// Lines that two windows share when one scrolls.
pub const OVERLAP: usize = 2;

/// The open file.
#[derive(Debug, Clone)]
pub struct Window {
    /// Where it is, as the sandbox takes it.
    pub path: PathBuf,
    /// As the model named it.
    pub shown: String,
    /// First line that is seen, from 0.
    pub top: usize,
}

impl Window {
    /// The file's text.
    ///
    /// # Errors
    /// What the sandbox says, and when it is no text.
    pub async fn text(&self, context: &mut Context<'_>) -> Result<String, Failure> {
        read_text(context, &self.path, &self.shown, READ_LIMIT).await
    }

    /// Moves the window so that this line, from 0, is near its middle.
    pub fn center(&mut self, line: usize, total: usize) {
        self.top = line.saturating_sub(LINES / 2).min(total.saturating_sub(LINES));
    }

    /// The lines that are seen, with their numbers and what is above and below.
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

/// The open file of a session.
///
/// # Errors
/// [`Failure::Refused`] when there is none.
pub fn open(session: &mut Session) -> Result<&mut Window, Failure> {
    let none = || Failure::Refused("no file is open; open one with `open` first".to_owned());
    session.window.as_mut().ok_or_else(none)
}
