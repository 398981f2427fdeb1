//! Pipes between the init and its children, with calls that never wait.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;

use crate::capture::Capture;

/// Reads once. Returns `false` at the end of the pipe.
pub(super) fn read_some(pipe: Option<&mut PipeReader>, capture: &mut Capture) -> bool {
    let Some(pipe) = pipe else { return false };
    let mut buffer = [0; 16384];
    match pipe.read(&mut buffer) {
        Ok(0) => false,
        Ok(count) => {
            capture.push(&buffer[..count]);
            true
        }
        Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

/// Reads what the pipe contains now, without waiting for more.
pub(super) fn drain(pipe: Option<&mut PipeReader>, capture: &mut Capture) {
    let Some(pipe) = pipe else { return };
    let waiting = rustix::io::ioctl_fionread(&*pipe).unwrap_or(0);
    let _ = io::copy(&mut pipe.take(waiting), &mut Sink(capture));
}

struct Sink<'a>(&'a mut Capture);

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes a pipe whose reading end does not block.
pub(super) fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    non_blocking(&reader)?;
    Ok((reader, writer))
}

/// Makes reads or writes of a descriptor return at once.
pub(super) fn non_blocking(fd: &impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}
