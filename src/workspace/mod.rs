//! A masked copy-on-write tree for one attempt, and what the attempt changed in it.
//!
//! A [`Snapshot`] is a clean, content-addressed copy of a repo (no `.git`, no caches, no links that lead out).
//! Every attempt's [`Workspace`] lies over it: an overlay's upper layer where the sandbox can mount one, a full
//! copy otherwise; never hard links, through which an edit would reach the original.

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

/// Which kind of workspace a sandbox backend can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayersKind {
    /// An overlay, mounted by the sandbox inside its own mount namespace.
    Overlay,
    /// A full copy.
    Copy,
    /// An image of the snapshot, over which a container lies; what the attempt changed is brought back at its end.
    Image,
}

/// The folders that make up a workspace, on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layers {
    /// An overlay's folders.
    Overlay {
        /// The snapshot, read-only.
        lower: PathBuf,
        /// What the attempt writes; holds the masked files from the start.
        upper: PathBuf,
        /// The overlay's own scratch folder.
        work: PathBuf,
        /// The file system of its own that `upper` and `work` are on, where they are.
        disk: Option<OwnDisk>,
    },
    /// A full copy.
    Copy {
        /// The copy.
        dir: PathBuf,
    },
    /// A container over an image of the snapshot.
    Image {
        /// The snapshot, from which the image is made where there is none yet.
        tree: PathBuf,
        /// The snapshot's digest, by which its image is found.
        digest: String,
        /// In the form of an overlay's upper layer: the masked files at first, and what the attempt left once its
        /// sandbox is destroyed.
        upper: PathBuf,
    },
}

/// One file that an attempt changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Path relative to the workspace, lossy where it is not UTF-8.
    pub path: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// New content of a regular file; empty for removed ones, folders, links and others.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Whether the owner may execute it.
    pub executable: bool,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A new regular file.
    Added,
    /// A regular file with other bytes or another mode.
    Modified,
    /// Gone.
    Removed,
    /// Something that is never carried over to verification: a link, fifo, socket or device, a file that is too large
    /// or whose name is not UTF-8, or whatever lies behind a path that is too long or too deep.
    Skipped,
}

/// All that an attempt changed, against the masked tree that it was given.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Sorted by path.
    pub files: Vec<Change>,
    /// The same as a unified diff (`git apply` takes it); binary files are named, not shown.
    pub patch: Vec<u8>,
    /// New files beyond [`ChangeLimits::files`], which are neither listed nor kept.
    pub unlisted: u64,
}

/// How much of what an attempt changed is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeLimits {
    /// Bytes of one file; a longer one is [`ChangeKind::Skipped`].
    pub file: u64,
    /// Bytes of all files together; those that would exceed it, in the order of their paths, are skipped.
    pub total: u64,
    /// New files that are listed.
    pub files: usize,
    /// Bytes of the paths of the new files that are listed.
    pub names: usize,
}

impl Default for ChangeLimits {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self { file: 16 * MIB, total: 64 * MIB, files: 10_000, names: 2 << 20 }
    }
}
