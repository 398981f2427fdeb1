//! The kernel's newer mount calls, by which trees are cloned into file descriptors, made read-only there and then
//! attached. Needs Linux 5.12.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;
use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

pub(super) const READ_ONLY: u64 = 1;
pub(super) const NO_SUID: u64 = 2;
pub(super) const NO_DEVICES: u64 = 4;

/// `struct mount_attr` of `linux/mount.h`.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Returns a detached copy of the mounts at and below `path`, with attributes set on all of them.
pub(super) fn clone_tree(path: &Path, set: u64) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, path, flags)?;
    set_attributes(tree.as_raw_fd(), c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, set)?;
    Ok(tree)
}

/// Sets attributes on the single mount at `path`.
pub(super) fn set_attributes_at(path: &Path, set: u64) -> io::Result<()> {
    set_attributes(libc::AT_FDCWD, &CString::new(path.as_os_str().as_bytes())?, 0, set)
}

/// Calls `mount_setattr`, which no library wraps yet.
fn set_attributes(fd: i32, path: &CStr, flags: i32, set: u64) -> io::Result<()> {
    let attributes = Attributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: both pointers point to live values, and the size is that of the struct.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, fd, path.as_ptr(), flags, &raw const attributes, size_of::<Attributes>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Attaches a detached tree at an existing file or folder.
pub(super) fn attach(tree: &OwnedFd, to: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", CWD, to, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}
