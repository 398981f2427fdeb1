//! Moments at which a test kills the program: before and after a write, and in the middle of one. A debug build looks for
//! them in the variable `AUTOEXPERIMENT_KILL_AT`, as `attempts.jsonl torn 2`: at the second write to a file of that name, when
//! half of it is written. A release build has none.

use std::io::{Result, Write};
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A moment of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Before,
    /// Half of the bytes are written.
    Torn,
    After,
}

/// End of the file's path, moment, and how often it is still to be passed by, this time included.
static ASKED: LazyLock<Option<(String, Moment, AtomicU32)>> = LazyLock::new(|| {
    let asked = std::env::var("AUTOEXPERIMENT_KILL_AT").ok()?;
    let mut words = asked.rsplitn(3, ' ');
    let number = words.next()?.parse().ok()?;
    let moment = match words.next()? {
        "before" => Moment::Before,
        "torn" => Moment::Torn,
        "after" => Moment::After,
        _ => return None,
    };
    Some((words.next()?.to_owned(), moment, AtomicU32::new(number)))
});

/// Whether the program is to be killed at this moment of writing this file.
fn is_asked(path: &Path, moment: Moment) -> bool {
    cfg!(debug_assertions)
        && ASKED.as_ref().is_some_and(|(name, at, left)| {
            *at == moment && path.ends_with(name) && left.fetch_sub(1, Ordering::Relaxed) == 1
        })
}

/// As if somebody else had killed it: nothing is cleaned up.
fn kill() {
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
}

/// Kills the program if a test asks for this.
pub fn reach(path: &Path, moment: Moment) {
    if is_asked(path, moment) {
        kill();
    }
}

/// Writes all bytes to the file of this path, at any moment of which a test may kill the program.
///
/// # Errors
/// When the write fails.
pub fn write_all(file: &mut impl Write, path: &Path, bytes: &[u8]) -> Result<()> {
    reach(path, Moment::Before);
    if is_asked(path, Moment::Torn) {
        file.write_all(&bytes[..bytes.len() / 2])?;
        kill();
    }
    file.write_all(bytes)?;
    reach(path, Moment::After);
    Ok(())
}
