//! A file system of a workspace's own, for what an attempt writes: full when the attempt has used up its disk, whoever else
//! has room.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A mounted file system that nothing shows but this descriptor, and that is gone when it is dropped: a process that is
/// killed leaves nothing.
#[derive(Debug)]
pub struct Disk {
    _mount: OwnedFd,
    place: OwnDisk,
}

/// Where such a file system is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OwnDisk {
    /// Its root, for processes of this user on this machine, as long as the disk lives.
    pub root: PathBuf,
    /// The folder on whose disk the file lies that holds it.
    pub stored_in: PathBuf,
}

impl Disk {
    /// Takes a mount by its descriptor.
    pub(crate) fn new(mount: OwnedFd, stored_in: &Path) -> Self {
        let root = format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd());
        Self { _mount: mount, place: OwnDisk { root: root.into(), stored_in: stored_in.to_owned() } }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &OwnDisk {
        &self.place
    }
}

impl OwnDisk {
    /// Opens its root to find out later whether all that was written got there.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.root)
    }
}
