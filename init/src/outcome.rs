//! The result of a job: how a command ended and its output, or a folder's entries.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The way in which a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Exit {
    /// The command exited with this code.
    Code(i32),
    /// The command was ended by this signal.
    Signal(i32),
    /// The command was killed at its time limit.
    TimedOut,
    /// The command was killed because the workspace grew beyond its disk limit.
    DiskFull,
}

/// The result of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exec {
    /// How the command ended.
    pub exit: Exit,
    /// Standard output, at most [`ExecLimits::output`] bytes, with a note in the middle if it was cut.
    #[serde(with = "serde_bytes")]
    pub stdout: Vec<u8>,
    /// Standard error, limited in the same way as `stdout`.
    #[serde(with = "serde_bytes")]
    pub stderr: Vec<u8>,
    /// Bytes of stdout and stderr that were cut.
    pub cut: u64,
    /// Wall time.
    pub wall: Duration,
    /// Part of the wall time in which the command was ready to run but other processes occupied the processors. Only
    /// measured if the command's limits allow an extension for it (`patience`).
    pub starved: Duration,
    /// CPU time of the command and of the child processes that it waited for.
    pub cpu: Duration,
    /// Largest resident set of the command or a child, in bytes.
    pub peak_memory: u64,
}

impl Exit {
    /// Whether a signal ended the command itself, or a process that the command's shell ran: a shell then exits with
    /// 128 plus the signal's number.
    #[must_use]
    pub fn is_by_signal(self) -> bool {
        matches!(self, Self::Signal(_) | Self::Code(129..=192))
    }
}

impl Exec {
    /// Whether the command exited with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// Wall time without the time in which other processes occupied the processors.
    #[must_use]
    pub fn own_time(&self) -> Duration {
        self.wall.saturating_sub(self.starved)
    }
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderEntry {
    /// File name, as the file system's bytes.
    pub name: OsString,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Size of a file in bytes; 0 for other entries.
    pub size: u64,
}

/// The type of a folder's entry.
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
