//! Descriptors that a process inherits from whoever started it: a shell's redirections, a pipe of `make`, a lock file.
//! Code in a sandbox could read and write them by number, whatever the sandbox hides.

use std::fs::read_dir;
use std::os::fd::RawFd;

use nix::libc::{self, c_uint};

/// First descriptor after standard input, output and error.
const FIRST: RawFd = 3;

/// Closes all descriptors except standard input, output and error. Only for a process that has not opened any itself.
pub fn close_inherited() {
    if !close_range(0) {
        for number in open_descriptors() {
            // SAFETY: nothing in this process uses a descriptor that it has not opened.
            unsafe { libc::close(number) };
        }
    }
}

/// Marks all open descriptors, except standard input, output and error, as closed on exec, so that programs started by
/// this process do not get them.
pub fn keep_from_programs() {
    if !close_range(libc::CLOSE_RANGE_CLOEXEC) {
        for number in open_descriptors() {
            // SAFETY: the call only changes a flag, and fails if the descriptor is closed by now.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Calls `close_range` on all descriptors from [`FIRST`] on. Returns whether the kernel knows the call.
fn close_range(flags: c_uint) -> bool {
    // SAFETY: the call takes only numbers. The callers make sure that the closed descriptors are unused.
    unsafe { libc::syscall(libc::SYS_close_range, FIRST as c_uint, c_uint::MAX, flags) == 0 }
}

/// The numbers of this process's descriptors from [`FIRST`] on.
fn open_descriptors() -> Vec<RawFd> {
    let entries = read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|number| *number >= FIRST).collect()
}

/// Duplicates this process's descriptors, including standard input, output and error, and returns them with their
/// numbers. A descriptor can be read even if this process may not open the path of its file.
#[cfg(feature = "search")]
pub(crate) fn duplicates() -> Vec<(RawFd, std::fs::File)> {
    let duplicate = |number: RawFd| {
        // SAFETY: the descriptor is borrowed only for the call, which fails if it is closed by now.
        let descriptor = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
        Some((number, std::fs::File::from(descriptor.try_clone_to_owned().ok()?)))
    };
    (0..FIRST).chain(open_descriptors()).filter_map(duplicate).collect()
}
