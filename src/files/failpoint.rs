//! Points at which a test kills the program: before, after and in the middle of a write. A debug build reads them from
//! the variable `AUTOEXPERIMENT_KILL_AT`; for example, `attempts.jsonl torn 2` kills it at the second write to a file
//! of that name, with half of it written. A release build has none.

use std::io::{Result, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Moment of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMoment {
    Before,
    /// Half of the bytes are written.
    Torn,
    After,
}

/// End of the file's path, the moment, and the number of matches left, including the one that kills.
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

/// Whether to kill the program at this moment of writing this file.
fn is_asked(path: &Path, moment: WriteMoment) -> bool {
    cfg!(debug_assertions)
        && ASKED.as_ref().is_some_and(|(name, at, left)| {
            *at == moment && path.ends_with(name) && left.fetch_sub(1, Ordering::Relaxed) == 1
        })
}

/// Sends SIGKILL to this process, so that nothing is cleaned up.
fn kill() {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
}

/// Kills the program if a test asks for this point.
pub fn reach(path: &Path, moment: WriteMoment) {
    if is_asked(path, moment) {
        kill();
    }
}

/// Writes all bytes to the file at this path; a test may kill the program at any moment of it.
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
