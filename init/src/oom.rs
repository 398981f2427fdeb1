//! Sets which processes the kernel kills first when memory runs out: commands before their init, and both before the
//! harness.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The score of commands, in thousandths of the machine's memory. The kernel adds this score to the memory that a
/// process uses.
const COMMANDS: &[u8] = b"500";

/// The init's own score. Children inherit it, so it is raised while a child is started.
pub(super) struct OomScore {
    file: File,
    own: Vec<u8>,
}

impl OomScore {
    /// Opens the file of the score early, because a process that is not dumpable cannot open it. Returns `None` if the
    /// kernel has no such file.
    pub(super) fn open() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let own = std::fs::read(path).ok()?.trim_ascii().to_vec();
        Some(Self { file: File::options().write(true).open(path).ok()?, own })
    }

    /// Starts a child while this process has the score of commands, which the child inherits.
    pub(super) fn raised<T>(score: Option<&Self>, start: impl FnOnce() -> T) -> T {
        let Some(Self { file, own }) = score else { return start() };
        // A failure is acceptable: when memory runs out, the kernel may then only kill a less suitable process.
        let _ = file.write_all_at(COMMANDS, 0);
        let child = start();
        // If `start` forks, this line also runs in the child. There, too, the open file is the init's, so the child
        // keeps the raised score.
        let _ = file.write_all_at(own, 0);
        child
    }
}
