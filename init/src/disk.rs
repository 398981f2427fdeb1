//! How much a workspace has grown: a walk over what the sandbox writes on disk, while a command runs and after it, and the
//! files without a name that its processes hold open.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;
use rustix::fs::Dir;

use crate::processes;

/// Commands that ran for less than this in all since the last walk are not worth one.
pub const WORTH_A_WALK: Duration = Duration::from_millis(100);

/// What any entry counts, in bytes, so that a million empty files are not free.
pub const LEAST: u64 = 4096;

/// A disk with less than this many bytes left is full.
const ROOM: u64 = 1 << 20;

/// Why a sandbox is given up whose disk is full though its workspace is within its limit.
pub const OUT_OF_ROOM: &str = "the disk that holds its workspace is full";

/// Whether the disk below a folder has no room left, for bytes or for files. Then commands fail through no fault of
/// their own.
pub fn is_out_of_room(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| {
        let bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
        // Some file systems count no files.
        bytes < ROOM || (disk.files() > 0 && disk.files_available() == 0)
    })
}

/// Bytes of a disk that are taken.
pub fn used(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.blocks().saturating_sub(disk.blocks_free()).saturating_mul(disk.fragment_size()))
}

/// Bytes of disk that everything in a folder takes, counted until there are `enough`.
pub fn usage(folder: &Path, enough: u64) -> u64 {
    let mut sum = 0;
    let is_whole = walk(folder, &mut |about| {
        sum += (about.st_blocks as u64 * 512).max(LEAST);
        if sum > enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if is_whole { sum } else { u64::MAX }
}

/// What processes hold open that has no name any more.
#[derive(Debug, Default)]
pub struct Held {
    /// Bytes of disk.
    pub bytes: u64,
    /// Whether some process lets nobody see its files.
    pub is_hidden: bool,
}

/// Files that these processes hold open and that have no name any more. They take room until the last process closes
/// them. Files in memory count as memory.
pub fn unlinked(holders: impl Iterator<Item = i32>) -> Held {
    let (mut files, mut is_hidden) = (BTreeMap::new(), false);
    // A thread may have files of its own, and the first thread of a process may have ended.
    for task in holders.flat_map(processes::tasks) {
        let open = match std::fs::read_dir(format!("/proc/{task}/fd")) {
            Ok(open) => open,
            Err(error) => {
                // What is left of a dead one belongs to nobody.
                is_hidden |= error.kind() == std::io::ErrorKind::PermissionDenied && !processes::is_dead(task);
                continue;
            }
        };
        for path in open.flatten().map(|entry| entry.path()) {
            // By the link that leads to the open file itself.
            let Ok(about) = std::fs::metadata(&path) else { continue };
            if about.is_file() && about.nlink() == 0 && !is_in_memory(&path) {
                files.insert((about.dev(), about.ino()), about.blocks() * 512);
            }
        }
    }
    Held { bytes: files.values().sum(), is_hidden }
}

fn is_in_memory(path: &Path) -> bool {
    statfs(path).is_ok_and(|about| about.filesystem_type() == TMPFS_MAGIC)
}

/// Visits all entries below a folder until told to stop. No link is followed, and no path is longer than one name: entries
/// are reached by descriptors of the folders that hold them, so that neither depth nor folders that are moved or exchanged
/// meanwhile lead out. Folders that their owner has closed are opened for as long as they are read. What vanishes
/// meanwhile is left out. `false` where somebody keeps a folder closed or moves a deep one away while it is read, which
/// nobody does but to hide what is there.
pub fn walk(top: &Path, visit: &mut dyn FnMut(&FileStat) -> ControlFlow<()>) -> bool {
    let Some(mut here) = Level::top(top) else { return true };
    let mut above: Vec<Level> = Vec::new();
    let mut is_whole = true;
    let mut goes_on = here.read(visit).is_continue();
    while goes_on {
        if let Some(name) = here.folders.pop() {
            let Some(mut below) = (0..TRIES).find_map(|_| here.below(&name)) else {
                is_whole = !here.is_kept_closed(&name);
                goes_on = is_whole;
                continue;
            };
            goes_on = below.read(visit).is_continue();
            above.push(std::mem::replace(&mut here, below));
            // Those far above are opened again on the way back.
            if let Some(distant) = above.len().checked_sub(MOST_OPEN) {
                above[distant].folder = None;
            }
        } else {
            let Some(mut next) = above.pop() else { return true };
            is_whole = next.reopen(&here);
            here.close();
            goes_on = is_whole;
            here = next;
        }
    }
    // Stopped: what was opened is closed again as far as it can be reached. The way back from a deep folder is long.
    if here.mode.is_none() && above.iter().all(|level| level.mode.is_none()) {
        return is_whole;
    }
    while let Some(mut next) = above.pop() {
        let is_reached = next.reopen(&here);
        here.close();
        here = next;
        if !is_reached {
            break;
        }
    }
    is_whole
}

/// How often a closed folder is opened that somebody closes again.
const TRIES: u32 = 16;

/// How many folders above the one that is read stay open.
const MOST_OPEN: usize = 64;

/// A folder on the way to the one that is read.
struct Level {
    /// Not held for folders far above.
    folder: Option<OwnedFd>,
    identity: (u64, u64),
    /// Permissions to set again.
    mode: Option<Mode>,
    /// Folders in it that have yet to be visited.
    folders: Vec<OsString>,
}

impl Level {
    fn top(path: &Path) -> Option<Self> {
        let folder = open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
        let mode = std::fs::metadata(path).ok()?.permissions().mode();
        let mode = (folder.is_err()).then(|| Mode::from_bits_truncate(mode));
        let folder = folder.ok().or_else(|| {
            std::fs::set_permissions(path, Permissions::from_mode(0o700)).ok()?;
            open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).ok()
        })?;
        if let Some(mode) = mode {
            // Nothing is above it that could set it again later.
            let _ = fchmod(&folder, mode | Mode::S_IRWXU);
        }
        let about = fstat(&folder).ok()?;
        let identity = (about.st_dev, about.st_ino);
        Some(Self { folder: Some(folder), identity, mode: None, folders: Vec::new() })
    }

    fn below(&self, name: &OsStr) -> Option<Self> {
        let parent = self.folder.as_ref()?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Looking at entries takes the permission to pass, which an open descriptor does not give.
        let about = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        let closed = about.st_mode & Mode::S_IRWXU.bits() != Mode::S_IRWXU.bits() && !geteuid().is_root();
        let mode = closed.then(|| Mode::from_bits_truncate(about.st_mode));
        if closed {
            let handle = openat(parent, name, flags | OFlag::O_PATH, Mode::empty()).ok()?;
            let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
            std::fs::set_permissions(path, Permissions::from_mode(about.st_mode | 0o700)).ok()?;
        }
        let folder = openat(parent, name, flags | OFlag::O_RDONLY, Mode::empty()).ok()?;
        let about = fstat(&folder).ok()?;
        let identity = (about.st_dev, about.st_ino);
        Some(Self { folder: Some(folder), identity, mode, folders: Vec::new() })
    }

    /// Whether a folder is there and closed, by an owner whose doing that is.
    fn is_kept_closed(&self, name: &OsStr) -> bool {
        let about = self.folder.as_ref().and_then(|parent| fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok());
        about.is_some_and(|about| {
            about.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits() && about.st_uid == geteuid().as_raw()
        })
    }

    /// Visits the entries and remembers which are folders.
    fn read(&mut self, visit: &mut dyn FnMut(&FileStat) -> ControlFlow<()>) -> ControlFlow<()> {
        let Some(folder) = &self.folder else { return ControlFlow::Continue(()) };
        let Ok(entries) = Dir::read_from(folder) else { return ControlFlow::Continue(()) };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let Ok(about) = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
            visit(&about)?;
            if about.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits() {
                self.folders.push(name.to_owned());
            }
        }
        ControlFlow::Continue(())
    }

    /// Opens it again from a folder inside. `false` where that has been moved away.
    fn reopen(&mut self, inside: &Self) -> bool {
        if self.folder.is_some() {
            return true;
        }
        let Some(inside) = &inside.folder else { return false };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let Ok(folder) = openat(inside, "..", flags, Mode::empty()) else { return false };
        let is_same = fstat(&folder).is_ok_and(|about| (about.st_dev, about.st_ino) == self.identity);
        self.folder = is_same.then_some(folder);
        is_same
    }

    /// Gives it its permissions back. Its name may be another folder's by now, so it is done by descriptor.
    fn close(&self) {
        if let (Some(mode), Some(folder)) = (self.mode, &self.folder) {
            let _ = fchmod(folder, mode);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(folder: &Path) -> u64 {
        usage(folder, u64::MAX)
    }

    #[test]
    fn a_tree_is_counted_however_deep_and_whatever_its_permissions_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let (tree, outside) = (place.path().join("tree"), place.path().join("outside"));
        for folder in [&tree, &outside] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(outside.join("large"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        let before = total(&tree);
        assert!(before < 1 << 16, "{before}");
        // Deeper than any path that the kernel takes, and closed at its end.
        let script = "import os\nfor _ in range(700):\n    os.mkdir('deeper'); os.chdir('deeper')\n\
                      open('f', 'wb').write(b'x' * 2**20)\nos.chmod('.', 0)";
        let made = std::process::Command::new("python3").args(["-c", script]).current_dir(&tree).status().unwrap();
        assert!(made.success());
        let deep = total(&tree) - before;
        assert!((700 * 4096 + (1 << 20)..700 * 4096 + (2 << 20)).contains(&deep), "{deep}");
        let shut = tree.join("shut");
        std::fs::create_dir(&shut).unwrap();
        std::fs::write(shut.join("f"), vec![1; 3 << 20]).unwrap();
        std::fs::set_permissions(&shut, Permissions::from_mode(0o000)).unwrap();
        assert!(total(&tree) - before - deep >= 3 << 20);
        assert_eq!(std::fs::metadata(&shut).unwrap().permissions().mode() & 0o777, 0, "it stays closed");
        assert!(usage(&tree, 1 << 20) < 2 << 20, "no more is counted than is needed");
        crate::folder::remove_tree(&tree).unwrap();
    }

    #[test]
    fn a_file_without_a_name_counts_while_it_is_open() {
        let own = || unlinked(std::iter::once(std::process::id() as i32)).bytes;
        let before = own();
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 5 << 20]).unwrap();
        let copy = file.try_clone().unwrap();
        let held = own();
        assert!((before + (5 << 20)..before + (6 << 20)).contains(&held), "{before} {held}");
        drop((file, copy));
        assert!(own() < held);
    }
}
