//! State of an attempt's Python session.

use std::time::Duration;

use crate::kernel::{CellRecord, Kernel};

/// Time after which a call returns although its code still runs, as in SUPER.
pub const PATIENCE: Duration = if cfg!(test) { Duration::from_secs(5) } else { Duration::from_mins(5) };

/// Python session of an attempt, and its settings.
#[derive(Debug, Default)]
pub struct PythonSession {
    /// The session; `None` before it is started and after it has ended.
    pub kernel: Option<Kernel>,
    /// Time limit of a call; `None` for the default of 5 minutes.
    pub patience: Option<Duration>,
    /// The cells run so far; `None` unless the task is a notebook task.
    pub cells: Option<Vec<CellRecord>>,
}

impl PythonSession {
    /// Returns the time limit of a call.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }
}
