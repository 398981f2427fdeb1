//! Reaps children that have ended, and returns their exit status and resource usage.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use nix::libc;

use super::Exit;

/// How a child ended, and the resources used by the child and by those of its own children that it waited for.
#[derive(Debug, Clone, Copy)]
pub struct EndedChild {
    pub exit: Exit,
    pub cpu: Duration,
    /// Largest resident set of one process, in bytes.
    pub peak_memory: u64,
}

/// Reaps the child `pid`, or any child for `None`, and returns its pid with the result. Returns `Ok(None)` if no such
/// child has ended yet.
///
/// # Errors
/// Returns an error if there is no such child, for example because the parent process ignores `SIGCHLD`.
pub fn reap(pid: Option<i32>) -> io::Result<Option<(i32, EndedChild)>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers point to live local variables of the right type; zero is valid for all numbers of the
    // second one.
    let (dead, usage) = unsafe {
        (libc::wait4(pid.unwrap_or(-1), &raw mut status, libc::WNOHANG, usage.as_mut_ptr()), usage.assume_init())
    };
    if dead < 0 {
        return Err(io::Error::last_os_error());
    }
    if dead == 0 {
        return Ok(None);
    }
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Ok(Some((dead, EndedChild { exit, cpu, peak_memory: usage.ru_maxrss as u64 * 1024 })))
}
