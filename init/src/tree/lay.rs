//! Writes the files of an attempt into the workspace, replacing existing entries.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_bytes::ByteBuf;

use super::{PreparedEntry, inside};
use crate::folder::remove_tree;
use crate::wire::next_item;

/// Writes and removes files below `root`, in the order of the list.
pub fn lay(root: &Path, mut list: &[u8]) -> io::Result<()> {
    while let Some((path, laid)) = next_item::<(ByteBuf, PreparedEntry)>(&mut list)? {
        let path = inside(&path)?;
        match laid {
            PreparedEntry::Gone => _ = make_room(root, path)?,
            PreparedEntry::File { executable, bytes } => write(root, path, executable, |file| file.write_all(&bytes))?,
        }
    }
    Ok(())
}

/// Makes a new file at `path` below `root`, replacing an existing entry, and fills it.
pub fn write(
    root: &Path,
    path: &Path,
    executable: bool,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let target = make_room(root, path)?;
    let mode = if executable { 0o755 } else { 0o644 };
    fill(&mut OpenOptions::new().write(true).create_new(true).mode(mode).open(&target)?)?;
    fs::set_permissions(&target, Permissions::from_mode(mode))
}

/// Makes room at `path` below `root`: removes what is there, and makes the folders above it, which may replace files
/// and links. Returns the full path.
pub fn make_room(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut here = root.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        here.push(part);
        match fs::symlink_metadata(&here) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => fs::remove_file(&here)?,
            Err(_) => {}
        }
        fs::create_dir(&here)?;
    }
    let target = root.join(path);
    remove_tree(&target)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::encode_laid;

    #[test]
    fn prepared_files_replace_existing_files_and_folders() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        fs::write(root.path().join("folder/old"), "old").unwrap();
        fs::write(root.path().join("plain"), "plain").unwrap();
        let file = |text: &str, executable| PreparedEntry::File { executable, bytes: text.into() };
        let list = [
            (b"folder".to_vec(), file("now a file", true)),
            (b"plain/deep/new".to_vec(), file("new", false)),
            (b"gone".to_vec(), PreparedEntry::Gone),
        ];
        lay(root.path(), &encode_laid(&list).unwrap()).unwrap();
        assert_eq!(fs::read(root.path().join("folder")).unwrap(), b"now a file");
        assert_eq!(fs::metadata(root.path().join("folder")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read(root.path().join("plain/deep/new")).unwrap(), b"new");
    }

    #[test]
    fn paths_that_lead_out_of_the_tree_are_refused() {
        let root = tempfile::tempdir().unwrap();
        for path in ["../out", "/etc/passwd", "a/../../out", ""] {
            let list = encode_laid(&[(path.as_bytes().to_vec(), PreparedEntry::Gone)]).unwrap();
            assert!(lay(root.path(), &list).is_err(), "{path}");
        }
    }
}
