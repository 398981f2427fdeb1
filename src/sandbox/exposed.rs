//! Finds folders that must stay hidden but are inside folders that sandboxes can read: a suite below `/usr/local/src`,
//! a cache below an interpreter's prefix, this program in `/usr/local/bin`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use autoexperiment_init::shown_to_all;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::holders;
use crate::error::Error;

/// A folder or file that must stay hidden, inside a folder that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exposure {
    /// The folder that is shown.
    pub(super) shown: PathBuf,
    /// The folder or file that must stay hidden. A path from the `hidden` list of [`exposures`] may contain symbolic
    /// links.
    pub(super) hidden: PathBuf,
    /// The path at which the sandbox would show the hidden folder or file: inside `shown`, or `shown` itself.
    pub(super) at: PathBuf,
}

impl Exposure {
    /// Whether the hidden folder is the shown folder itself. Then it cannot be covered, because that would hide the
    /// whole shown folder.
    pub(super) fn is_whole(&self) -> bool {
        self.at == self.shown
    }

    /// The error for a sandbox that cannot start because it would show the hidden folder.
    pub(super) fn refusal(&self, why: &str) -> Error {
        let Self { shown, hidden, .. } = self;
        let (shown, hidden) = (shown.display(), hidden.display());
        Error::machine(format!("agents would see `{hidden}`: it is in `{shown}`, which the sandbox shows, {why}")).hint(
            format!(
                "move `{hidden}` to another place, or use an interpreter whose prefix does not contain it; `--suite`, \
                 `--cache`, `--scratch` and `--runs` name the places"
            ),
        )
    }
}

/// Folders and files of the host that every sandbox except a container shows: by mounts in the sandbox's own namespace,
/// or by a landlock rule.
pub(super) fn system() -> impl Iterator<Item = &'static Path> {
    // Skip symbolic links such as `/bin`, because each of them leads into another folder of this list.
    shown_to_all().filter(|folder| !folder.is_symlink())
}

/// Returns everything that must stay hidden but would be visible in the `shown` folders: the folders in `hidden`, this
/// program's own file if a suite is embedded in it, and other files and folders that contain a suite. Symbolic links in
/// the given paths are resolved, and a hidden folder is also found through another mount of its file system. Hidden
/// folders that do not exist are ignored.
pub(super) fn exposures<'a>(shown: impl Iterator<Item = &'a Path>, hidden: &[PathBuf]) -> Vec<Exposure> {
    /// This program, if it contains a suite.
    static OWN: LazyLock<Option<PathBuf>> =
        LazyLock::new(|| std::env::current_exe().ok().filter(|path| holders::holds(path)));
    let mounts = MountTable::current();
    let hidden: Vec<(&PathBuf, Vec<PathBuf>)> = hidden
        .iter()
        .chain(&*OWN)
        .filter_map(|path| Some((path, aliases(&path.canonicalize().ok()?, &mounts))))
        .collect();
    let mut found = Vec::new();
    for shown in shown {
        let Ok(real) = shown.canonicalize() else { continue };
        for (folder, aliases) in &hidden {
            for rest in aliases.iter().filter_map(|alias| alias.strip_prefix(&real).ok()) {
                let at = if rest.as_os_str().is_empty() { shown.to_owned() } else { shown.join(rest) };
                found.push(Exposure { shown: shown.to_owned(), hidden: (*folder).clone(), at });
            }
        }
        for holder in holders::below(&real) {
            let Ok(rest) = holder.strip_prefix(&real) else { continue };
            let at = if rest.as_os_str().is_empty() { shown.to_owned() } else { shown.join(rest) };
            if !found.iter().any(|known: &Exposure| at.starts_with(&known.at)) {
                found.push(Exposure { shown: shown.to_owned(), hidden: holder, at });
            }
        }
    }
    found
}

/// Returns all paths at which a folder is visible, because its file system may be mounted at several places. `real` is
/// one such path, without symbolic links.
fn aliases(real: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    // If several mounts have the same mount point, only the last one is visible; `max_by_key` returns the last one.
    let home =
        mounts.iter().filter(|mount| real.starts_with(&mount.point)).max_by_key(|mount| mount.point.as_os_str().len());
    let mut all = vec![real.to_owned()];
    let Some((home, rest)) = home.and_then(|home| Some((home, real.strip_prefix(&home.point).ok()?))) else {
        return all;
    };
    let in_file_system = home.root.join(rest);
    let others = mounts.iter().filter(|mount| mount.device == home.device);
    all.extend(others.filter_map(|mount| Some(mount.point.join(in_file_system.strip_prefix(&mount.root).ok()?))));
    all.sort();
    all.dedup();
    all
}

/// The mounts of this process's namespace. They are read again only after a mount was added, changed or removed. A
/// table can have thousands of lines, and each sandbox that starts needs it.
struct MountTable {
    /// The open mount table. Polling this file shows whether the mounts have changed since it was opened.
    file: File,
    mounts: Arc<[Mount]>,
}

impl MountTable {
    /// Returns the current mounts, or none if the table cannot be read.
    fn current() -> Arc<[Mount]> {
        static LAST: Mutex<Option<MountTable>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(Self::has_changed) {
            *last = Self::read().ok();
        }
        last.as_ref().map(|table| table.mounts.clone()).unwrap_or_default()
    }

    fn read() -> io::Result<Self> {
        let mut file = File::open("/proc/self/mountinfo")?;
        let mut lines = String::new();
        file.read_to_string(&mut lines)?;
        Ok(Self { file, mounts: lines.lines().filter_map(Mount::parse).collect() })
    }

    /// Whether the mounts changed since the table was opened, see proc(5).
    fn has_changed(&self) -> bool {
        let mut asked = [PollFd::new(self.file.as_fd(), PollFlags::POLLPRI)];
        poll(&mut asked, PollTimeout::ZERO) != Ok(0)
    }
}

/// A mount of this process's namespace.
struct Mount {
    /// Major and minor number of the file system's device, such as `8:1`.
    device: String,
    /// The folder within the file system that appears at the mount point.
    root: PathBuf,
    /// The mount point.
    point: PathBuf,
}

impl Mount {
    /// Parses a line of `/proc/self/mountinfo`, see proc(5).
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(2);
        let (device, root, point) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self { device: device.to_owned(), root: unescaped(root), point: unescaped(point) })
    }
}

/// Decodes a path in which spaces, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'\\').then(|| std::str::from_utf8(after.get(..3)?).ok()).flatten();
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            bytes.push(byte);
            rest = &after[3..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use std::iter::once;

    use super::*;

    #[test]
    fn exposed_folders_are_found_by_their_real_paths() {
        let place = tempfile::tempdir().unwrap();
        let shown = place.path().canonicalize().unwrap().join("prefix");
        let suite = shown.join("src/suite");
        std::fs::create_dir_all(&suite).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&suite, &link).unwrap();
        let found = exposures(once(shown.as_path()), std::slice::from_ref(&link));
        assert_eq!(found, [Exposure { shown: shown.clone(), hidden: link, at: suite.clone() }]);
        assert!(!found[0].is_whole());
        assert!(exposures(once(suite.as_path()), std::slice::from_ref(&shown)).is_empty(), "the other way around");
        assert!(exposures(once(suite.as_path()), std::slice::from_ref(&suite))[0].is_whole());
        assert!(exposures(once(shown.as_path()), &[shown.join("none")]).is_empty());
    }

    #[test]
    #[ignore = "needs root"]
    fn a_new_mount_appears_in_the_table_of_mounts() {
        let place = tempfile::tempdir().unwrap();
        let point = place.path().canonicalize().unwrap();
        let is_known = || MountTable::current().iter().any(|mount| mount.point == point);
        assert!(!is_known());
        nix::mount::mount(Some("none"), &point, Some("tmpfs"), nix::mount::MsFlags::empty(), None::<&str>).unwrap();
        assert!(is_known());
        nix::mount::umount(&point).unwrap();
        assert!(!is_known());
        // Compare several times: if another program mounts something between two calls, the calls rightly return
        // different tables.
        let is_the_same = |_| Arc::ptr_eq(&MountTable::current(), &MountTable::current());
        assert!((0..50).any(is_the_same), "read again without a change");
    }

    #[test]
    fn a_folder_is_found_through_another_mount_of_its_file_system() {
        let lines = [
            "21 1 254:0 / / rw shared:1 - ext4 /dev/vda rw",
            "40 21 254:0 /data/my\\040suites /usr/share/s rw - ext4 /dev/vda rw",
            "41 21 0:9 / /usr/share/other rw - tmpfs none rw",
        ];
        let mounts: Vec<Mount> = lines.into_iter().filter_map(Mount::parse).collect();
        let found = aliases(Path::new("/data/my suites/one"), &mounts);
        assert_eq!(found, [PathBuf::from("/data/my suites/one"), "/usr/share/s/one".into()]);
        assert_eq!(aliases(Path::new("/usr/share/other/x"), &mounts), [PathBuf::from("/usr/share/other/x")]);
    }
}
