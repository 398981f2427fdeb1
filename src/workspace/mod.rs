//! A masked copy-on-write tree for one attempt, and the attempt's changes in it.
//!
//! A [`Snapshot`] is a clean, content-addressed copy of a repo (no `.git`, no caches, no links that lead out). Every
//! attempt's [`Workspace`] builds on it: as an overlay's upper layer if the sandbox can mount one, otherwise as a full
//! copy. Hard links are never used, because an edit through one would reach the original.

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
pub use patch::unified_diff;
pub use snapshot::{Snapshot, repo_digest};

/// Kind of workspace that a sandbox backend supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayersKind {
    /// An overlay, mounted by the sandbox inside its own mount namespace.
    Overlay,
    /// A full copy.
    Copy,
    /// An image of the snapshot, on which a container runs; the attempt's changes are copied back at its end.
    Image,
}

/// The folders on the host that make up a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layers {
    /// An overlay's folders.
    Overlay {
        /// The snapshot, read-only.
        lower: PathBuf,
        /// The writable layer, which initially contains the masked files.
        upper: PathBuf,
        /// The overlay's work folder.
        work: PathBuf,
        /// The separate file system that contains `upper` and `work`, if any.
        disk: Option<OwnDisk>,
    },
    /// A full copy.
    Copy {
        /// The copy.
        dir: PathBuf,
    },
    /// A container over an image of the snapshot.
    Image {
        /// The snapshot, from which the image is made if it doesn't exist yet.
        tree: PathBuf,
        /// The snapshot's digest, which identifies its image.
        digest: String,
        /// A folder in the form of an overlay's upper layer: it contains the masked files at first, and the attempt's
        /// changes once its sandbox is destroyed.
        upper: PathBuf,
    },
}

/// One file that an attempt changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Path relative to the workspace, lossy if it is not UTF-8.
    pub path: String,
    /// Kind of change.
    pub kind: ChangeKind,
    /// New contents of a regular file; empty for removed files and for everything else.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Whether the owner may execute it.
    pub executable: bool,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new regular file.
    Added,
    /// A regular file with other bytes or another mode.
    Modified,
    /// A removed file.
    Removed,
    /// A path that is never copied to verification: a link, FIFO, socket or device, a file that is too large or whose
    /// name is not UTF-8, or anything behind a path that is too long or too deep.
    Skipped,
}

/// All changes of an attempt compared with the masked tree that it was given.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Changed files, sorted by path.
    pub files: Vec<FileChange>,
    /// The changes as a unified diff for `git apply`; binary files are only named.
    pub patch: Vec<u8>,
    /// Number of new files beyond [`ChangeLimits::files`], which are neither listed nor kept.
    pub unlisted: u64,
}

/// Limits on the changes that are kept of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLimits {
    /// Maximum bytes of one file; a longer one is [`ChangeKind::Skipped`].
    pub file: u64,
    /// Maximum bytes of all files together; files beyond it, in the order of their paths, are skipped.
    pub total: u64,
    /// Maximum number of listed new files.
    pub files: usize,
    /// Maximum total length in bytes of the paths of listed new files.
    pub names: usize,
}

impl Default for ChangeLimits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self { file: 16 * MIB, total: 64 * MIB, files: 10_000, names: 2 << 20 }
    }
}
