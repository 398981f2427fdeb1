//! Points at which a test kills the program: before, after and in the middle of a write. A debug build reads the point
//! from the variable `AUTOEXPERIMENT_KILL_AT`. For example, `attempts.jsonl torn 2` kills the program at the second
//! write to a file of that name, when half of the bytes are written. In a release build these points do nothing.

use std::io::{Result, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The moment of a write at which the program is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMoment {
    Before,
    /// Half of the bytes are written.
    Torn,
    After,
}

/// The point at which to kill the program, if a test asks for it: the end of the written file's path, the moment of the
/// write, and a counter. Each write that matches lowers the counter by 1, and the program is killed when it reaches 0.
static ASKED: LazyLock<Option<(String, WriteMoment, AtomicU32)>> = LazyLock::new(|| {
    let asked = std::env::var("AUTOEXPERIMENT_KILL_AT").ok()?;
    let mut words = asked.rsplitn(3, ' ');
    let number = words.next()?.parse().ok()?;
    let moment = match words.next()? {
        "before" => WriteMoment::Before,
        "torn" => WriteMoment::Torn,
        "after" => WriteMoment::After,
        _ => return None,
    };
    Some((words.next()?.to_owned(), moment, AtomicU32::new(number)))
});

/// Whether the program should be killed at this moment of a write to this file.
fn is_asked(path: &Path, moment: WriteMoment) -> bool {
    cfg!(debug_assertions)
        && ASKED.as_ref().is_some_and(|(name, at, left)| {
            *at == moment && path.ends_with(name) && left.fetch_sub(1, Ordering::Relaxed) == 1
        })
}

/// Sends SIGKILL to this process, so that no cleanup is done.
fn kill() {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
}

/// Kills the program if this is the requested point.
pub fn reach(path: &Path, moment: WriteMoment) {
    if is_asked(path, moment) {
        kill();
    }
}

/// Writes all bytes to the file, whose path is `path`. If a test requests it, the program is killed before, during or
/// after the write.
///
/// # Errors
/// Fails if the write fails.
pub fn write_all(file: &mut impl Write, path: &Path, bytes: &[u8]) -> Result<()> {
    reach(path, WriteMoment::Before);
    if is_asked(path, WriteMoment::Torn) {
        file.write_all(&bytes[..bytes.len() / 2])?;
        kill();
    }
    file.write_all(bytes)?;
    reach(path, WriteMoment::After);
    Ok(())
}
