//! Measures how much a workspace has grown: walks over the files that the sandbox writes, while a command runs and
//! after it, and counts the unlinked files that its processes hold open.

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

/// Total running time of commands after which the workspace's size is measured again.
pub const WORTH_A_WALK: Duration = Duration::from_millis(100);

/// Minimum bytes counted for an entry, so that a million empty files are not free.
pub const LEAST: u64 = 4096;

/// Free bytes below which a disk counts as full.
const ROOM: u64 = 1 << 20;

/// Loss message of a sandbox whose disk is full although its workspace is within its limit.
pub const OUT_OF_ROOM: &str = "the disk that holds its workspace is full";

/// Whether the disk that stores a folder has no room left, for bytes or for files. Commands then fail through no fault
/// of their own.
pub fn is_out_of_room(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| {
        let bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
        // File systems that do not count files report a total of 0 files.
        bytes < ROOM || (disk.files() > 0 && disk.files_available() == 0)
    })
}

/// Returns the used bytes of a disk.
pub fn used(folder: &Path) -> Option<u64> {
    let disk = statvfs(folder).ok()?;
    Some(disk.blocks().saturating_sub(disk.blocks_free()).saturating_mul(disk.fragment_size()))
}

/// Returns the disk space in bytes that a folder takes; stops counting above `enough`. Returns `u64::MAX` if the folder
/// cannot be walked completely.
pub fn usage(folder: &Path, enough: u64) -> u64 {
    let mut sum = 0;
    let is_whole = walk(folder, &mut |about| {
        sum += (about.st_blocks as u64 * 512).max(LEAST);
        if sum > enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if is_whole { sum } else { u64::MAX }
}

/// Unlinked files that processes hold open.
#[derive(Debug, Default)]
pub struct HeldFiles {
    /// Size in bytes on disk.
    pub bytes: u64,
    /// Whether a process hides its open files.
    pub is_hidden: bool,
}

/// Measures the unlinked files that these processes hold open, which take disk space until the last process closes
/// them. Files in memory are not counted here, but as memory.
pub fn unlinked(holders: impl Iterator<Item = i32>) -> HeldFiles {
    let (mut files, mut is_hidden) = (BTreeMap::new(), false);
    // Read all threads of each process: a thread may have its own table of files, and the first thread may have ended.
    for task in holders.flat_map(processes::tasks) {
        let open = match std::fs::read_dir(format!("/proc/{task}/fd")) {
            Ok(open) => open,
            Err(error) => {
                // A dead task's descriptors are unreadable; do not count them as hidden.
                is_hidden |= error.kind() == std::io::ErrorKind::PermissionDenied && !processes::is_dead(task);
                continue;
            }
        };
        for path in open.flatten().map(|entry| entry.path()) {
            // `/proc/TID/fd` contains links to the open files themselves.
            let Ok(about) = std::fs::metadata(&path) else { continue };
            if about.is_file() && about.nlink() == 0 && !is_in_memory(&path) {
                files.insert((about.dev(), about.ino()), about.blocks() * 512);
            }
        }
    }
    HeldFiles { bytes: files.values().sum(), is_hidden }
}

fn is_in_memory(path: &Path) -> bool {
    statfs(path).is_ok_and(|about| about.filesystem_type() == TMPFS_MAGIC)
}

/// Visits all entries below a folder until `visit` breaks. Links are not followed. Each entry is reached by name
/// through a descriptor of its folder, so depth does not matter, and folders that are moved or exchanged during the
/// walk cannot lead outside. A folder whose owner lacks permissions is made accessible while it is read. Entries that
/// vanish during the walk are skipped. Returns `false` if a process keeps removing a folder's permissions, or moves a
/// deep folder away during the walk. Processes have no reason to do so except to hide files.
pub fn walk(top: &Path, visit: &mut dyn FnMut(&FileStat) -> ControlFlow<()>) -> bool {
    let Some(mut here) = FolderLevel::top(top) else { return true };
    let mut above: Vec<FolderLevel> = Vec::new();
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
            // Close folders far above the current one; they are opened again on the way back.
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
    // The walk was stopped, so restore the permissions of folders that can still be reached. If there are no
    // permissions to restore, do not walk back, because the way from a deep folder is long.
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

/// Maximum number of tries to open a folder, because another process may remove its permissions again.
const TRIES: u32 = 16;

/// Maximum number of folders above the current one that stay open.
const MOST_OPEN: usize = 64;

/// A folder on the way to the current one.
struct FolderLevel {
    /// The open folder; `None` for folders far above the current one, which are closed meanwhile.
    folder: Option<OwnedFd>,
    identity: (u64, u64),
    /// Permissions to restore.
    mode: Option<Mode>,
    /// Subfolders that have not been visited yet.
    folders: Vec<OsString>,
}

impl FolderLevel {
    fn top(path: &Path) -> Option<Self> {
        let folder = open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
        let mode = std::fs::metadata(path).ok()?.permissions().mode();
        let mode = (folder.is_err()).then(|| Mode::from_bits_truncate(mode));
        let folder = folder.ok().or_else(|| {
            std::fs::set_permissions(path, Permissions::from_mode(0o700)).ok()?;
            open(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()).ok()
        })?;
        if let Some(mode) = mode {
            // Restore the permissions of group and others now: later steps restore only folders below this one.
            let _ = fchmod(&folder, mode | Mode::S_IRWXU);
        }
        let about = fstat(&folder).ok()?;
        let identity = (about.st_dev, about.st_ino);
        Some(Self { folder: Some(folder), identity, mode: None, folders: Vec::new() })
    }

    fn below(&self, name: &OsStr) -> Option<Self> {
        let parent = self.folder.as_ref()?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Reading metadata of entries needs search permission for the folder, which an open descriptor does not grant.
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

    /// Whether a folder exists and belongs to this user. If such a folder cannot be opened, another process keeps it
    /// closed on purpose.
    fn is_kept_closed(&self, name: &OsStr) -> bool {
        let about = self.folder.as_ref().and_then(|parent| fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok());
        about.is_some_and(|about| {
            about.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits() && about.st_uid == geteuid().as_raw()
        })
    }

    /// Visits the entries and collects the subfolders.
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

    /// Opens this folder again, as the parent of the folder `inside`. Returns `false` if `inside` has been moved away.
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

    /// Restores the folder's permissions. Uses the descriptor, because the name may mean another folder by now.
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
    fn files_in_deep_or_unreadable_folders_count_and_links_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (tree, outside) = (place.path().join("tree"), place.path().join("outside"));
        for folder in [&tree, &outside] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(outside.join("large"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        let before = total(&tree);
        assert!(before < 1 << 16, "{before}");
        // The tree is deeper than the kernel's limit for paths, and the folder at its end has no permissions.
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
