//! Copies a repo into a task.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use globset::GlobSet;

use crate::error::{Error, Result};
use crate::files::WholeFile;
use crate::workspace::is_left_out;

/// Copies a repo with some files replaced, without the files that snapshots leave out, such as caches and version
/// control, and without files that `left_out` matches. Harbor refuses links, so a link within the repo becomes a copy
/// of its target. A link to a replaced file becomes a copy of the replacement; otherwise it would reveal the masked
/// code.
///
/// # Errors
/// Kind `Suite` for a link that leads out of the repo; kind `Machine` if a file cannot be read or written.
pub(super) fn copy_repo(
    repo: &Path,
    replaced: &BTreeMap<PathBuf, Vec<u8>>,
    left_out: &GlobSet,
    to: &Path,
) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|error| Error::io("create", to, error))?;
    let resolve = |path: &Path| path.canonicalize().map_err(|error| Error::io("resolve", path, error));
    let root = resolve(repo)?;
    let mut by_file = BTreeMap::new();
    for (path, bytes) in replaced {
        by_file.insert(resolve(&repo.join(path))?, bytes);
    }
    let is_skipped = |name: &std::ffi::OsStr| name.to_str().is_some_and(is_left_out);
    let walk = walkdir::WalkDir::new(repo).follow_links(true).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| !is_skipped(entry.file_name())) {
        let entry = match entry {
            Ok(entry) => entry,
            // The link leads to a folder that contains the link, or to nothing, so there is nothing to copy.
            Err(error)
                if error.loop_ancestor().is_some()
                    || error.path().is_some_and(|path| path.is_symlink() && !path.exists()) =>
            {
                continue;
            }
            Err(error) => return Err(Error::machine("failed to read the repo").because(error)),
        };
        let real = resolve(entry.path())?;
        let Ok(inside) = real.strip_prefix(&root) else {
            return Err(Error::suite("the link leads out of the repo")
                .at(entry.path(), None)
                .hint("remove it: its target is not part of the paper"));
        };
        let path = entry.path().strip_prefix(repo).unwrap_or(entry.path());
        // Also leave out a link whose target (`inside`) is left out: the link would reveal that file under another
        // name.
        if inside.iter().any(is_skipped) || left_out.is_match(path) || left_out.is_match(inside) {
            continue;
        }
        let target = to.join(path);
        let failed = |error| Error::io("copy", entry.path(), error);
        if entry.file_type().is_dir() {
            if !left_out.is_empty() && is_emptied(repo, entry.path(), left_out) {
                continue;
            }
            std::fs::create_dir_all(&target).map_err(failed)?;
        } else if let Some(bytes) = by_file.get(&real) {
            WholeFile::create_with_folders(&target)?.filled(bytes)?.finish()?;
        } else if real.is_file() {
            std::fs::copy(&real, &target).map_err(failed)?;
        }
    }
    Ok(())
}

/// Whether everything in a folder is left out. Such a folder is not copied, because its name would reveal that
/// something was left out.
fn is_emptied(repo: &Path, folder: &Path, left_out: &GlobSet) -> bool {
    let mut files =
        walkdir::WalkDir::new(folder).into_iter().flatten().filter(|it| !it.file_type().is_dir()).peekable();
    files.peek().is_some() && files.all(|file| file.path().strip_prefix(repo).is_ok_and(|path| left_out.is_match(path)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_masked_file_is_masked_under_every_name_that_links_give_it() {
        let folder = tempfile::tempdir().unwrap();
        let (repo, to) = (folder.path().join("repo"), folder.path().join("to"));
        std::fs::create_dir_all(repo.join("pkg/.git")).unwrap();
        for (path, text) in [("pkg/means.py", "original"), ("pkg/other.py", "kept"), ("pkg/.git/means.py", "original")]
        {
            std::fs::write(repo.join(path), text).unwrap();
        }
        for (target, link) in [
            ("means.py", "pkg/alias.py"),
            ("alias.py", "pkg/alias_of_alias.py"),
            ("other.py", "pkg/more.py"),
            ("pkg", "again"),
            ("pkg/.git", "history"),
            ("..", "pkg/around"),
            ("nothing", "broken"),
            ("itself", "itself"),
        ] {
            symlink(target, repo.join(link)).unwrap();
        }
        // The manifest may refer to the file through a link.
        for named in ["pkg/means.py", "pkg/alias.py"] {
            copy_repo(&repo, &BTreeMap::from([(named.into(), b"masked".to_vec())]), &GlobSet::empty(), &to).unwrap();
            for (path, text) in [
                ("pkg/means.py", "masked"),
                ("pkg/alias.py", "masked"),
                ("pkg/alias_of_alias.py", "masked"),
                ("again/means.py", "masked"),
                ("pkg/more.py", "kept"),
                ("again/other.py", "kept"),
            ] {
                assert_eq!(std::fs::read_to_string(to.join(path)).unwrap(), text, "{path}");
            }
            for entry in walkdir::WalkDir::new(&to).into_iter().map(std::result::Result::unwrap) {
                assert!(!entry.path_is_symlink(), "{entry:?}");
                if entry.file_type().is_file() {
                    assert_ne!(std::fs::read_to_string(entry.path()).unwrap(), "original", "{entry:?}");
                }
            }
            std::fs::remove_dir_all(&to).unwrap();
        }
        std::fs::write(folder.path().join("secret"), "").unwrap();
        symlink("../secret", repo.join("out")).unwrap();
        let refused = copy_repo(&repo, &BTreeMap::new(), &GlobSet::empty(), &to).unwrap_err();
        assert_eq!(refused.kind, crate::error::FailureKind::Suite);
    }
}
