//! A separate file system for the files that an attempt writes. It becomes full when the attempt has used up its disk
//! limit.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A mounted file system that can be reached only through this descriptor. It disappears when the descriptor is closed,
/// so that even a killed process leaves nothing behind.
#[derive(Debug)]
pub struct Disk {
    _mount: OwnedFd,
    place: OwnDisk,
}

/// The paths of a [`Disk`]: its root, and the folder that stores its data.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OwnDisk {
    /// Path of the file system's root, for processes of this user on this machine while the [`Disk`] exists.
    pub root: PathBuf,
    /// A folder on the disk that stores the data of this file system.
    pub stored_in: PathBuf,
}

impl Disk {
    /// Wraps the descriptor of a mounted file system.
    pub(crate) fn new(mount: OwnedFd, stored_in: &Path) -> Self {
        let root = format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd());
        Self { _mount: mount, place: OwnDisk { root: root.into(), stored_in: stored_in.to_owned() } }
    }

    /// Returns the paths of the file system's root and of the folder that stores its data.
    #[must_use]
    pub fn place(&self) -> &OwnDisk {
        &self.place
    }
}

impl OwnDisk {
    /// Opens the root of the file system, to find out later whether all writes succeeded.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.root)
    }
}
