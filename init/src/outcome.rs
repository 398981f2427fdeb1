//! What came of a job: how a command ended and what it wrote, and a folder's entries.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Killed at its time limit.
    TimedOut,
    /// Killed because the workspace grew beyond its limit of disk.
    DiskFull,
}

/// What came of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exec {
    /// How it ended.
    pub exit: Exit,
    /// Standard output, at most [`ExecLimits::output`] bytes and a note in the middle where it was cut.
    #[serde(with = "serde_bytes")]
    pub stdout: Vec<u8>,
    /// Standard error, likewise.
    #[serde(with = "serde_bytes")]
    pub stderr: Vec<u8>,
    /// Bytes of stdout and stderr that were cut.
    pub cut: u64,
    /// Wall time.
    pub wall: Duration,
    /// How much of the wall time it was ready to run and had no processor because other processes had them. Counted only
    /// where the limits have patience for it.
    pub starved: Duration,
    /// CPU time of the command and its children that were waited for.
    pub cpu: Duration,
    /// Largest resident set in bytes of the command or a child.
    pub peak_memory: u64,
}

impl Exec {
    /// Whether the command exited with 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// Wall time but for what it went without a processor.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        self.wall.saturating_sub(self.starved)
    }
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// File name, bytes as the file system has them.
    pub name: OsString,
    /// `file`, `folder`, `link` or `other`.
    pub kind: EntryKind,
    /// Size in bytes of a file.
    pub size: u64,
}

/// What a folder's entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, not followed.
    Link,
    /// A socket, fifo or device.
    Other,
}
