//! Starts a program in a child that shares this process's memory until it executes the program, as `posix_spawn` does.
//!
//! The C library's `posix_spawn` also checks for each of the 64 signals whether this process handles it, and resets it
//! in the child. The init handles no signal and ignores only `SIGPIPE`, so it is enough to reset `SIGPIPE` here.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{null, null_mut};

use nix::libc::{self, c_char, c_int, c_void};

/// Bytes of the child's stack. It calls a dozen functions of the C library, none of which needs more than a few hundred
/// bytes.
const STACK: usize = 32 << 10;

/// A program to start.
pub(super) struct Launch<'a> {
    /// Path of the program's file.
    pub(super) program: CString,
    /// The arguments, including the program's name.
    pub(super) arguments: Vec<CString>,
    /// The whole environment, each variable as `NAME=value`.
    pub(super) environment: Vec<CString>,
    /// The working directory.
    pub(super) folder: CString,
    /// Standard input, output and error.
    pub(super) streams: [BorrowedFd<'a>; 3],
    /// Limit of the address space in bytes.
    pub(super) address_space: Option<u64>,
}

/// A [`Launch`] as raw pointers for the child. If a call fails, the child writes its error to `error`.
struct ChildPlan {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    folder: *const c_char,
    streams: [RawFd; 3],
    address_space: Option<libc::rlimit>,
    error: c_int,
}

/// Converts text to a C string.
///
/// # Errors
/// Returns an error if the text contains a NUL character.
pub(super) fn c_string(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}

impl Launch<'_> {
    /// Starts the program as the leader of its own process group, with no signal blocked, and returns its pid. Only for
    /// processes with one thread and without signal handlers.
    ///
    /// # Errors
    /// Returns the error of the first call that failed in the child.
    pub(super) fn start(&self) -> io::Result<i32> {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([null()]).collect()
        };
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        let mut plan = ChildPlan {
            program: self.program.as_ptr(),
            arguments: arguments.as_ptr(),
            environment: environment.as_ptr(),
            folder: self.folder.as_ptr(),
            streams: self.streams.map(|stream| stream.as_raw_fd()),
            address_space: self.address_space.map(|most| libc::rlimit { rlim_cur: most, rlim_max: most }),
            error: 0,
        };
        let mut stack: Vec<u128> = Vec::with_capacity(STACK / size_of::<u128>());
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: this process, whose only thread waits until the child has executed its program or ended, keeps
        // everything that the plan points to. The child runs on its own stack, of which the highest address is passed.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity());
            libc::clone(begin, top.cast(), flags, (&raw mut plan).cast())
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the plan is a live local variable; the read is volatile because the compiler does not see the child's
        // writes.
        let error = unsafe { (&raw const plan.error).read_volatile() };
        if error == 0 {
            return Ok(pid);
        }
        // SAFETY: reaps this process's own child; a null status is allowed.
        unsafe { libc::waitpid(pid, null_mut(), 0) };
        Err(io::Error::from_raw_os_error(error))
    }
}

/// Prepares the child and executes its program. Makes system calls only, because it shares the memory of its parent.
extern "C" fn begin(plan: *mut c_void) -> c_int {
    let plan = plan.cast::<ChildPlan>();
    // SAFETY: the parent passes a live plan and waits, so nothing else reads or writes it.
    unsafe {
        prepare(&*plan);
        (&raw mut (*plan).error).write_volatile(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO));
        libc::_exit(127)
    }
}

/// Returns only if a call fails, with the error in `errno`.
///
/// # Safety
/// All pointers of the plan must be valid, and all texts and lists ended by zero.
unsafe fn prepare(plan: &ChildPlan) {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        if libc::setpgid(0, 0) < 0 {
            return;
        }
        // The descriptors of the streams have numbers above 2, so no copy replaces a stream that is still to be copied.
        // The original descriptors close when the program is executed.
        for (number, stream) in (0..).zip(plan.streams) {
            if libc::dup2(stream, number) < 0 {
                return;
            }
        }
        if libc::chdir(plan.folder) < 0 {
            return;
        }
        if let Some(limit) = &plan.address_space
            && libc::setrlimit(libc::RLIMIT_AS, limit) < 0
        {
            return;
        }
        if libc::signal(libc::SIGPIPE, libc::SIG_DFL) == libc::SIG_ERR {
            return;
        }
        let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        if libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), null_mut()) < 0 {
            return;
        }
        libc::execve(plan.program, plan.arguments, plan.environment);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read};
    use std::os::fd::AsFd;

    use super::*;

    fn launched(program: &str, script: &str, folder: &str) -> io::Result<(i32, PipeReader)> {
        let (output, end) = io::pipe()?;
        let null = std::fs::File::open("/dev/null")?;
        let launch = Launch {
            program: c_string(program)?,
            arguments: ["sh", "-c", script].map(|text| c_string(text).unwrap()).to_vec(),
            environment: vec![c_string("WORD=a b")?],
            folder: c_string(folder)?,
            streams: [null.as_fd(), end.as_fd(), end.as_fd()],
            address_space: Some(1 << 32),
        };
        Ok((launch.start()?, output))
    }

    #[test]
    fn a_program_gets_its_folder_environment_limit_and_process_group_and_ends_by_a_broken_pipe() {
        let script = "echo $WORD; pwd; ulimit -v; echo $(($(cut -d' ' -f5 /proc/$$/stat) == $$)); \
            grep SigBlk /proc/self/status; kill -PIPE $$";
        let (pid, mut output) = launched("/bin/sh", script, "/usr").unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert_eq!(text, "a b\n/usr\n4194304\n1\nSigBlk:\t0000000000000000\n");
        let pid = nix::unistd::Pid::from_raw(pid);
        let ended = nix::sys::wait::waitpid(pid, None).unwrap();
        assert_eq!(ended, nix::sys::wait::WaitStatus::Signaled(pid, nix::sys::signal::Signal::SIGPIPE, false));
    }

    #[test]
    fn a_failure_in_the_child_is_returned_as_its_error() {
        for (program, folder, error) in
            [("/bin/missing", "/", libc::ENOENT), ("/bin/sh", "/missing", libc::ENOENT), ("/etc", "/", libc::EACCES)]
        {
            assert_eq!(
                launched(program, "true", folder).unwrap_err().raw_os_error(),
                Some(error),
                "{program} {folder}"
            );
        }
        assert!(c_string("a\0b").is_err());
    }
}
