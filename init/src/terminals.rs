//! Pseudo-terminals: each sandbox has its own few, which nothing outside of it can see.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::mount::{MsFlags, mount};

use super::mount::{NO_SUID, attach, clone_tree};

/// Folder of the pseudo-terminals. Opening its file `ptmx` creates a new pseudo-terminal.
pub(super) const FOLDER: &str = "/dev/pts";
/// The terminal that controls the session of the process that opens it.
pub(super) const CONTROLLING: &str = "/dev/tty";
/// Maximum number of pseudo-terminals of a sandbox. By default, all sandboxes of a machine together may have 3,072; the
/// kernel reserves 1,024 more for the host's own mount namespace.
pub(super) const MOST: usize = 64;

/// Mounts a file system of pseudo-terminals in `dev`, the `/dev` of the new root, which is still being built.
///
/// The file system is a new instance, so the terminals of the host and of other sandboxes do not exist in it.
pub(super) fn provide(dev: &Path) -> io::Result<()> {
    let folder = dev.join("pts");
    fs::create_dir_all(&folder)?;
    let options = format!("newinstance,ptmxmode=0666,mode=0620,max={MOST}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount(Some("devpts"), &folder, Some("devpts"), flags, Some(options.as_str()))?;
    symlink("pts/ptmx", dev.join("ptmx"))?;
    let controlling = dev.join("tty");
    fs::write(&controlling, b"")?;
    attach(&clone_tree(Path::new(CONTROLLING), NO_SUID)?, &controlling)
}

/// Whether a container has more pseudo-terminals than a sandbox may have. Engines mount them without a limit.
pub(super) fn are_too_many() -> bool {
    let Ok(folder) = fs::read_dir(FOLDER) else { return false };
    // Allow one more entry, because `ptmx` is not a terminal.
    folder.take(MOST + 2).count() > MOST + 1
}
