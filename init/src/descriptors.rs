//! Descriptors that a process inherits from whoever started it: a shell's redirections, a pipe of `make`, a lock file.
//! Code in a sandbox could read and write them by number, whatever the sandbox hides.

use std::fs::read_dir;
use std::os::fd::RawFd;

use nix::libc::{self, c_uint};

/// First descriptor after standard input, output and error.
const FIRST: RawFd = 3;

/// Closes all descriptors but standard input, output and error. Only for a process that has opened none itself.
pub fn close_inherited() {
    if !close_range(0) {
        for number in open_descriptors() {
            // SAFETY: nothing in this process uses a descriptor that it has not opened.
            unsafe { libc::close(number) };
        }
    }
}

/// Keeps the descriptors that are open now, but standard input, output and error, from programs that this process
/// starts.
pub fn keep_from_programs() {
    if !close_range(libc::CLOSE_RANGE_CLOEXEC) {
        for number in open_descriptors() {
            // SAFETY: changes a flag, and fails for a descriptor that is closed by now.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Calls `close_range` on all descriptors from [`FIRST`] on. Returns whether the kernel knows the call.
fn close_range(flags: c_uint) -> bool {
    // SAFETY: takes numbers only. The callers answer for what is closed.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST as c_uint, c_uint::MAX, flags) == 0 }
}

/// The numbers of this process's descriptors from [`FIRST`] on.
fn open_descriptors() -> Vec<RawFd> {
    let entries = read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|number| *number >= FIRST).collect()
}

/// Duplicates of this process's descriptors with their numbers, standard input, output and error included. A descriptor
/// can be read even if the path of its file is closed to this process.
#[cfg(feature = "search")]
pub(crate) fn duplicates() -> Vec<(RawFd, std::fs::File)> {
    let duplicate = |number: RawFd| {
        // SAFETY: borrowed only for the call, which fails if the descriptor is closed by now.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        Some((number, std::fs::File::from(descriptor.try_clone_to_owned().ok()?)))
    };
    (0..FIRST).chain(open_descriptors()).filter_map(duplicate).collect()
}
