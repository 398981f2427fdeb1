//! A folder held open, and its entries reached by name only: no symbolic link is ever followed, no FIFO ever blocks.
//!
//! Hostile trees are read and removed through this: what an attempt leaves behind may hold links to the host's
//! files, folders without permissions and paths longer than the kernel takes in one call.

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

/// What an entry is, by its mode bits.
pub fn is(stat: &FileStat, kind: SFlag) -> bool {
    stat.st_mode & SFlag::S_IFMT.bits() == kind.bits()
}

/// A folder held open.
pub struct Folder(File);

impl Folder {
    /// Opens a folder that the caller trusts: links in `path` are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// The same for an attempt's own folder, made accessible to its owner first where an attempt has closed it.
    pub fn open_again(path: &Path) -> io::Result<Self> {
        let wanted = Mode::S_IRWXU.bits();
        let mode = std::fs::metadata(path)?.permissions().mode();
        if mode & wanted != wanted {
            std::fs::set_permissions(path, Permissions::from_mode(mode | wanted))?;
        }
        Self::open(path)
    }

    /// Names of the entries, sorted by their bytes.
    pub fn entries(&self) -> io::Result<Vec<OsString>> {
        let mut names =
            std::fs::read_dir(self.by_handle())?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    /// The same, or `None` when the sizes of all names together exceed `room`.
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

    /// What is known of an entry, a link's own data for a link.
    pub fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        Ok(fstatat(&self.0, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// A folder inside, made accessible to its owner first where it is not.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let wanted = Mode::S_IRWXU;
        if self.stat(name)?.st_mode & wanted.bits() != wanted.bits() {
            self.permit(name, wanted);
        }
        self.open_at(name, flags).map(Self)
    }

    /// A regular file inside, open for reading; anything else is an error. Made readable first where it is not.
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

    /// Where a link points, as bytes.
    pub fn link(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, name)?.into_vec())
    }

    /// Whether the folder itself carries an extended attribute of the overlay, as `opaque`.
    pub fn overlay_attribute(&self, name: &str) -> bool {
        overlay_attribute(&self.0, name)
    }

    /// Removes everything but folders; names of the folders that are left.
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

    /// Device and inode, to tell that a folder is still the same one.
    fn identity(&self) -> io::Result<(u64, u64)> {
        let stat = fstat(&self.0)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// The folder as a path that leads to this very handle, however deep it lies and wherever it is moved.
    fn by_handle(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    fn open_at(&self, name: &OsStr, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Gives the owner rights to an entry that is no link. A failure shows when the entry is opened.
    fn permit(&self, name: &OsStr, mode: Mode) {
        if let Ok(handle) = self.open_at(name, OFlag::O_PATH) {
            let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
            // A link's handle cannot be changed this way: the kernel answers EOPNOTSUPP.
            let _ = std::fs::set_permissions(path, Permissions::from_mode(mode.bits()));
        }
    }
}

/// Whether an open file or folder carries an extended attribute of the overlay, under the name that only a mount gives it:
/// `trusted` for one by root, `user` for one in a user namespace, through which nobody else can set it.
pub fn overlay_attribute(file: &File, name: &str) -> bool {
    let space = if nix::unistd::geteuid().is_root() { "trusted" } else { "user" };
    file.get_xattr(format!("{space}.overlay.{name}")).is_ok_and(|value| value.is_some())
}

/// Removes a tree of any depth, whatever its permissions, without following links. Fine when it is not there.
///
/// One folder is held open at a time, and there is no recursion, so that neither depth nor number can exhaust
/// anything.
///
/// # Errors
/// What the kernel says, when an entry belongs to somebody else or the tree changes underneath.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    struct Level {
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
    let mut here = Folder::open(parent)?;
    let mut levels: Vec<Level> = Vec::new();
    let mut next = Some(name.to_owned());
    loop {
        if let Some(name) = next {
            let below = here.folder(&name)?;
            levels.push(Level { name, above: here.identity()?, pending: below.clear_files()? });
            here = below;
        } else {
            let Some(done) = levels.pop() else { return Ok(()) };
            here = Folder(here.open_at(OsStr::new(".."), OFlag::O_RDONLY | OFlag::O_DIRECTORY)?);
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
