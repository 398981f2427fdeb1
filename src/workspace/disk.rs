//! A separate file system for an attempt's writes, which is full once the attempt has used up its disk limit.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A mounted file system that is only reachable through this descriptor and disappears when it is dropped, so that a
/// killed process leaves nothing behind.
#[derive(Debug)]
pub struct Disk {
    _mount: OwnedFd,
    place: OwnDisk,
}

/// Location of a [`Disk`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OwnDisk {
    /// Path of the root, for processes of this user on this machine while the disk exists.
    pub root: PathBuf,
    /// The folder in whose file system the backing file is stored.
    pub stored_in: PathBuf,
}

impl Disk {
    /// Wraps the descriptor of a mount.
    pub(crate) fn new(mount: OwnedFd, stored_in: &Path) -> Self {
        let root = format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd());
        Self { _mount: mount, place: OwnDisk { root: root.into(), stored_in: stored_in.to_owned() } }
    }

    /// Returns its location.
    #[must_use]
    pub fn place(&self) -> &OwnDisk {
        &self.place
    }
}

impl OwnDisk {
    /// Opens its root, in order to find out later whether all writes succeeded.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.root)
    }
}
