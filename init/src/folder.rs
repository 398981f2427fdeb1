//! A folder that is held open and whose entries are accessed by name only: symbolic links are never followed, and FIFOs
//! never block.
//!
//! Used to read and remove untrusted trees, because an attempt may leave links to the host's files, folders without
//! permissions, and paths longer than the kernel accepts in one call.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use xattr::FileExt;

/// Whether an entry has this type, by its mode bits.
pub fn is(stat: &FileStat, kind: SFlag) -> bool {
    stat.st_mode & SFlag::S_IFMT.bits() == kind.bits()
}

/// An open folder.
pub struct OpenFolder(File);

impl OpenFolder {
    /// Opens a trusted folder; links in `path` are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Opens an attempt's own folder, making it accessible to its owner if the attempt has removed the permissions.
    pub fn open_again(path: &Path) -> io::Result<Self> {
        let wanted = Mode::S_IRWXU.bits();
        let mode = std::fs::metadata(path)?.permissions().mode();
        if mode & wanted != wanted {
            std::fs::set_permissions(path, Permissions::from_mode(mode | wanted))?;
        }
        Self::open(path)
    }

    /// Returns the names of the entries, sorted by their bytes.
    pub fn entries(&self) -> io::Result<Vec<OsString>> {
        let mut names =
            std::fs::read_dir(self.by_handle())?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the names of the entries, or `None` if their total size exceeds `room`.
    pub fn entries_within(&self, size: impl Fn(&OsStr) -> usize, room: usize) -> io::Result<Option<Vec<OsString>>> {
        let (mut names, mut left) = (Vec::new(), room);
        for entry in std::fs::read_dir(self.by_handle())? {
            let name = entry?.file_name();
            let Some(rest) = left.checked_sub(size(&name)) else { return Ok(None) };
            left = rest;
            names.push(name);
        }
        names.sort_unstable();
        Ok(Some(names))
    }

    /// Returns the metadata of an entry; for a link, the metadata of the link itself.
    pub fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        Ok(fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Opens a subfolder, making it accessible to its owner if needed.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let wanted = Mode::S_IRWXU;
        if self.stat(name)?.st_mode & wanted.bits() != wanted.bits() {
            self.permit(name, wanted);
        }
        self.open_at(name, flags).map(Self)
    }

    /// Opens a regular file for reading, making it readable if needed; fails for anything else.
    pub fn file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        if !is(&self.stat(name)?, SFlag::S_IFREG) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = match self.open_at(name, flags) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.permit(name, Mode::S_IRUSR | Mode::S_IWUSR);
                self.open_at(name, flags)?
            }
            other => other?,
        };
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
        }
    }

    /// Returns the target of a link as bytes.
    pub fn link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, name)?.into_vec())
    }

    /// Whether the folder itself has an extended attribute of the overlay, such as `opaque`.
    pub fn overlay_attribute(&self, name: &str) -> bool {
        overlay_attribute(&self.0, name)
    }

    /// Removes everything except folders; returns the names of the remaining folders.
    fn clear_files(&self) -> io::Result<Vec<OsString>> {
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(self.by_handle())? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.file_name());
            } else {
                unlinkat(&self.0, entry.file_name().as_os_str(), UnlinkatFlags::NoRemoveDir)?;
            }
        }
        Ok(folders)
    }

    fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Returns device and inode, which identify the folder.
    fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = fstat(&self.0)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Returns a path that refers to this open folder at any depth, even after the folder is moved.
    fn by_handle(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn open_at(&self, name: &OsStr, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Gives the owner permissions for an entry that is not a link. Ignores failures, because the caller then fails to
    /// open the entry.
    fn permit(&self, name: &OsStr, mode: Mode) {
        if let Ok(handle) = self.open_at(name, OFlag::O_PATH) {
            let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
            // For a link, this call fails with EOPNOTSUPP.
            let _ = std::fs::set_permissions(path, Permissions::from_mode(mode.bits()));
        }
    }
}

/// Whether an open file or folder has an extended attribute of the overlay in the namespace that the mount uses:
/// `trusted` for root, `user` in a user namespace. Such attributes cannot be set through the mount.
pub fn overlay_attribute(file: &File, name: &str) -> bool {
    let space = if nix::unistd::geteuid().is_root() { "trusted" } else { "user" };
    file.get_xattr(format!("{space}.overlay.{name}")).is_ok_and(|value| value.is_some())
}

/// Removes a tree of any depth and with any permissions, without following links. Succeeds if the tree does not exist.
///
/// Holds one folder open at a time and does not recurse, so that neither depth nor number of entries can exhaust a
/// resource.
///
/// # Errors
/// Returns an error if an entry belongs to another user or the tree changes during the removal.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    struct PendingFolder {
        name: OsString,
        above: (u64, u64),
        pending: Vec<OsString>,
    }
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(metadata) if !metadata.is_dir() => return std::fs::remove_file(path),
        Ok(_) => {}
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a folder that can be removed"));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let mut here = OpenFolder::open(parent)?;
    let mut levels: Vec<PendingFolder> = Vec::new();
    let mut next = Some(name.to_owned());
    loop {
        if let Some(name) = next {
            let below = here.folder(&name)?;
            levels.push(PendingFolder { name, above: here.identity()?, pending: below.clear_files()? });
            here = below;
        } else {
            let Some(done) = levels.pop() else { return Ok(()) };
            here = OpenFolder(here.open_at(OsStr::new(".."), OFlag::O_RDONLY | OFlag::O_DIRECTORY)?);
            if here.identity()? != done.above {
                return Err(io::Error::other("the tree was changed while it was being removed"));
            }
            here.remove_folder(&done.name)?;
            if levels.is_empty() {
                return Ok(());
            }
        }
        next = levels.last_mut().and_then(|level| level.pending.pop());
    }
}
