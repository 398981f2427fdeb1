//! The init's end of its connection with the harness: a socket on the host, two pipes in a container.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{dup, dup2_stdin, dup2_stdout};

/// The streams on which requests arrive and replies are sent.
pub(super) struct Channel {
    from: File,
    to: File,
}

impl Channel {
    /// Takes over standard input, and also standard output if the input is not a socket. Replaces both by `/dev/null`,
    /// because commands must never inherit them.
    pub(super) fn take() -> io::Result<Self> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let is_socket = fstat(&stdin)?.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFSOCK.bits();
        let from = moved(&stdin)?;
        let to = if is_socket { from.try_clone()? } else { moved(&stdout)? };
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        Ok(Self { from, to })
    }
}

impl Channel {
    /// Waits until there is data to read or the other end is closed. Returns `false` if neither happens within `time`.
    pub(super) fn is_ready_within(&self, time: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
        Ok(poll(&mut fds, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX))? > 0)
    }
}

/// Duplicates a descriptor under another number. The duplicate is closed on exec.
fn moved(fd: impl AsFd) -> io::Result<File> {
    let fd: OwnedFd = dup(fd)?;
    // `try_clone` sets the close-on-exec flag.
    File::from(fd).try_clone()
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer)
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
