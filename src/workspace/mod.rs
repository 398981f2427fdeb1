//! The file tree of one attempt: a masked copy of the repo that the attempt may change, and the changes it has made.
//!
//! A [`Snapshot`] is a clean, content-addressed copy of a repo (no `.git`, no caches, no links that lead out). Each
//! attempt's [`Workspace`] is based on a snapshot: as the upper layer of an overlay if the sandbox can mount one,
//! otherwise as a full copy. Hard links are never used, because an edit through a hard link would change the original.

mod changes;
mod disk;
mod layered;
mod patch;
mod snapshot;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use autoexperiment_init::folder::remove_tree;
pub(crate) use autoexperiment_init::left_out::{LEFT_OUT_ENDINGS, LEFT_OUT_NAMES, is_left_out};
pub use disk::{Disk, OwnDisk};
pub use layered::Workspace;
pub(crate) use patch::quoted;
pub use patch::unified_diff;
pub use snapshot::{Snapshot, repo_digest};

/// The kind of workspace that a sandbox backend uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayersKind {
    /// An overlay, which the sandbox mounts inside its own mount namespace.
    Overlay,
    /// A full copy of the snapshot.
    Copy,
    /// A container image of the snapshot. The attempt's changes are copied out of the container at the end of the
    /// attempt.
    Image,
}

/// The folders on the host that make up a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layers {
    /// The layers of an overlay.
    Overlay {
        /// The snapshot, which is read-only.
        lower: PathBuf,
        /// The writable layer, which contains the masked files at first.
        upper: PathBuf,
        /// The overlay's work folder.
        work: PathBuf,
        /// The separate file system that contains `upper` and `work`, if any.
        disk: Option<OwnDisk>,
    },
    /// A full copy of the snapshot.
    Copy {
        /// The folder of the copy.
        dir: PathBuf,
    },
    /// A container that runs on an image of the snapshot.
    Image {
        /// The snapshot's folder. The snapshot's image is made from this folder, unless the image exists already.
        tree: PathBuf,
        /// The snapshot's digest, which identifies its image.
        digest: String,
        /// A folder in the format of an overlay's upper layer. At first it contains the masked files. The attempt's
        /// changes are copied into it when its sandbox is destroyed.
        upper: PathBuf,
    },
}

/// One file that an attempt changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the workspace; invalid UTF-8 is replaced.
    pub path: String,
    /// Kind of change.
    pub kind: ChangeKind,
    /// New contents of a regular file; empty for all other kinds of changes.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Whether the file's owner may execute it.
    pub executable: bool,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new regular file.
    Added,
    /// A regular file whose bytes or permissions have changed.
    Modified,
    /// A removed file.
    Removed,
    /// A path that is not copied to verification: a link, FIFO, socket or device, a file that is too large, cannot be
    /// read or has a name that is not UTF-8, or anything below a path that is too long or too deep.
    Skipped,
}

/// All changes of an attempt, compared with the masked tree that it started with.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Changed files, sorted by path.
    pub files: Vec<FileChange>,
    /// The changes as a unified diff for `git apply`. It contains only the names of binary files.
    pub patch: Vec<u8>,
    /// Number of new files beyond [`ChangeLimits::files`] or [`ChangeLimits::names`]; these files are neither listed
    /// nor stored.
    pub unlisted: u64,
}

/// Limits on the number and the size of an attempt's changes that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLimits {
    /// Maximum bytes of one file. A longer file becomes [`ChangeKind::Skipped`].
    pub file: u64,
    /// Maximum bytes of all new files together and, counted separately, of all changed files that existed before. Files
    /// are counted in the order of their paths; those beyond the limit are skipped.
    pub total: u64,
    /// Maximum number of listed changes. New files beyond this number are only counted.
    pub files: usize,
    /// Maximum bytes of the paths of all listed new files together.
    pub names: usize,
}

impl Default for ChangeLimits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self { file: 16 * MIB, total: 64 * MIB, files: 10_000, names: 2 << 20 }
    }
}
