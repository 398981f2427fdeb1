//! What an attempt keeps of its Python session.

use std::time::Duration;

use crate::kernel::{CellRecord, Kernel};

/// Seconds after which a call returns though its code is still running, as in SUPER.
pub const PATIENCE: Duration = if cfg!(test) { Duration::from_secs(5) } else { Duration::from_mins(5) };

/// The Python session of an attempt.
#[derive(Debug, Default)]
pub struct PythonSession {
    /// The session, once it has begun.
    pub kernel: Option<Kernel>,
    /// How long a call may take, where that is not 5 minutes.
    pub patience: Option<Duration>,
    /// The cells that were run, where they count: in tasks that are a notebook.
    pub cells: Option<Vec<CellRecord>>,
}

impl PythonSession {
    /// How long a call may take.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }
}
