//! Copies a workspace's upper layer into a container before the attempt. After the attempt, copies its changes back
//! into the upper layer, in the form that overlays use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};

use crate::workspace::remove_tree;
use autoexperiment_init::tree::lay::{make_room, write};
use autoexperiment_init::tree::{NodeType, PreparedEntry, Surveyed};

/// Size in bytes from which a file is copied back without its content, because the list of changes skips files that are
/// larger than `ChangeLimits::file`.
const FILE: u64 = (16 << 20) + 1;
/// Maximum number of bytes of all files together whose contents are copied back.
const TOTAL: u64 = 80 << 20;
/// Maximum number of new files to copy back. This is twice `ChangeLimits::files`, the number of changes that are listed
/// by name, so that further changes can still be counted.
const NEW: usize = 20_000;

/// Reads an upper layer: files to write and, for whiteouts, files to remove.
pub(super) fn laid(upper: &Path) -> io::Result<Vec<(Vec<u8>, PreparedEntry)>> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(upper).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        let Ok(path) = entry.path().strip_prefix(upper) else { continue };
        let about = entry.metadata()?;
        let laid = if is_whiteout(&about) {
            PreparedEntry::Gone
        } else if about.is_file() {
            PreparedEntry::File { executable: about.mode() & 0o100 != 0, bytes: fs::read(entry.path())? }
        } else {
            continue;
        };
        files.push((path.as_os_str().as_bytes().to_vec(), laid));
    }
    Ok(files)
}

/// Copies an upper layer into the new folder `to`.
pub(super) fn copy(upper: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for (path, laid) in laid(upper)? {
        match laid {
            PreparedEntry::Gone => whiteout(to, &to_path(&path))?,
            PreparedEntry::File { executable, bytes } => {
                write(to, &to_path(&path), executable, |file| file.write_all(&bytes))?;
            }
        }
    }
    Ok(())
}

/// Makes a whiteout: a mark in an upper layer that a file of the lower layer is gone.
fn whiteout(upper: &Path, path: &Path) -> io::Result<()> {
    Ok(mknod(&make_room(upper, path)?, SFlag::S_IFCHR, Mode::empty(), 0)?)
}

fn is_whiteout(about: &fs::Metadata) -> bool {
    about.file_type().is_char_device() && about.rdev() == 0
}

/// An entry of the snapshot, which is the lower layer of the attempt's workspace.
enum LowerEntry {
    Folder,
    File { executable: bool, size: u64 },
    Link(Vec<u8>),
}

/// Differences between the tree that an attempt was given and the tree that it left.
pub(super) struct TreeDifferences {
    /// Files whose contents must be copied back, with their sizes.
    pub(super) wanted: Vec<(Vec<u8>, u64)>,
    modes: BTreeMap<Vec<u8>, bool>,
    /// Entries that are copied back without contents: files beyond the limits [`FILE`] and [`TOTAL`], links, and other
    /// entries such as pipes.
    named: Vec<Surveyed>,
    /// Paths of the snapshot that the attempt removed or replaced by folders.
    gone: Vec<PathBuf>,
    /// Paths of files that were in the upper layer before the attempt and that the attempt removed or replaced by
    /// folders.
    lifted: Vec<PathBuf>,
}

/// Returns all paths that are in the workspace before the attempt: those of the snapshot's `tree` and of the upper
/// layer.
pub(super) fn known(tree: &Path, upper: &Path) -> io::Result<BTreeSet<Vec<u8>>> {
    let (given, over) = before(tree, upper)?;
    Ok(given.into_keys().chain(over).collect())
}

/// Entries of the snapshot by path, and the paths of the upper layer's files.
type SnapshotEntries = (BTreeMap<Vec<u8>, LowerEntry>, BTreeSet<Vec<u8>>);

/// Returns the entries of the snapshot's `tree` that the upper layer does not remove, and the paths of the files in
/// `upper`.
fn before(tree: &Path, upper: &Path) -> io::Result<SnapshotEntries> {
    let mut given = BTreeMap::new();
    for entry in walkdir::WalkDir::new(tree).min_depth(1) {
        let entry = entry?;
        let Ok(path) = entry.path().strip_prefix(tree) else { continue };
        let about = entry.metadata()?;
        let kind = if about.is_dir() {
            LowerEntry::Folder
        } else if about.is_symlink() {
            LowerEntry::Link(fs::read_link(entry.path())?.into_os_string().into_vec())
        } else {
            LowerEntry::File { executable: about.mode() & 0o100 != 0, size: about.len() }
        };
        given.insert(path.as_os_str().as_bytes().to_vec(), kind);
    }
    let mut over = BTreeSet::new();
    for (path, laid) in laid(upper)? {
        match laid {
            PreparedEntry::Gone => _ = given.remove(&path),
            PreparedEntry::File { .. } => _ = over.insert(path),
        }
    }
    Ok((given, over))
}

/// Compares `survey`, the list of the workspace's entries after the attempt, with the snapshot's `tree` and the upper
/// layer.
pub(super) fn compare(tree: &Path, upper: &Path, survey: Vec<Surveyed>) -> io::Result<TreeDifferences> {
    let (mut given, mut over) = before(tree, upper)?;
    let mut left = TreeDifferences {
        wanted: Vec::new(),
        modes: BTreeMap::new(),
        named: Vec::new(),
        gone: Vec::new(),
        lifted: Vec::new(),
    };
    let (mut total, mut new) = (0, 0);
    for entry in survey {
        let before = given.remove(&entry.path);
        let was_laid = over.remove(&entry.path);
        if before.is_none() && !was_laid && entry.sort != NodeType::Folder {
            new += 1;
            if new > NEW {
                continue;
            }
        }
        match (&entry.sort, before) {
            (NodeType::Folder, Some(LowerEntry::Folder)) => {}
            (NodeType::Folder, before) => {
                if before.is_some() {
                    left.gone.push(to_path(&entry.path));
                }
                if was_laid {
                    left.lifted.push(to_path(&entry.path));
                }
            }
            (NodeType::Link(now), Some(LowerEntry::Link(then))) if *now == then && !was_laid => {}
            (
                NodeType::File { executable, size, fresh: false },
                Some(LowerEntry::File { executable: mode, size: length }),
            ) if *executable == mode && *size == length && !was_laid => {}
            (NodeType::File { executable, size, .. }, _) => {
                if *size < FILE && total + size <= TOTAL {
                    total += size;
                    left.modes.insert(entry.path.clone(), *executable);
                    left.wanted.push((entry.path, *size));
                } else {
                    left.named.push(entry);
                }
            }
            (NodeType::Link(_) | NodeType::Other, _) => left.named.push(entry),
        }
    }
    // A missing folder gets no entry of its own, because the entries of the missing files in it show that it is
    // missing.
    left.gone
        .extend(given.iter().filter(|(_, kind)| !matches!(kind, LowerEntry::Folder)).map(|(path, _)| to_path(path)));
    left.lifted.extend(over.iter().map(|path| to_path(path)));
    Ok(left)
}

fn to_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()))
}

/// Writes the differences into the upper layer, with `contents` in the order of [`TreeDifferences::wanted`].
pub(super) fn write_back(upper: &Path, left: &TreeDifferences, contents: &[&[u8]]) -> io::Result<()> {
    if contents.len() != left.wanted.len() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the container sent fewer of the changed files than it announced",
        ));
    }
    for path in &left.lifted {
        remove_tree(&upper.join(path))?;
    }
    for path in &left.gone {
        whiteout(upper, path)?;
    }
    for ((path, _), bytes) in left.wanted.iter().zip(contents) {
        let executable = left.modes.get(path).copied().unwrap_or_default();
        write(upper, &to_path(path), executable, |file| file.write_all(bytes))?;
    }
    for entry in &left.named {
        match &entry.sort {
            // Write a sparse file of the same size. The list of changes names this file, but does not show its
            // contents.
            NodeType::File { executable, size, .. } => {
                write(upper, &to_path(&entry.path), *executable, |file| file.set_len(*size))?;
            }
            NodeType::Link(target) => symlink(to_path(target), make_room(upper, &to_path(&entry.path))?)?,
            NodeType::Folder | NodeType::Other => {
                nix::unistd::mkfifo(&make_room(upper, &to_path(&entry.path))?, Mode::S_IRUSR | Mode::S_IWUSR)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{ChangeKind, ChangeLimits, Layers, LayersKind, Snapshot, Workspace};
    use autoexperiment_init::tree::lay::lay;
    use autoexperiment_init::tree::survey::{SurveyLimits, survey, survey_known};
    use autoexperiment_init::tree::{decode_survey, encode_laid, encode_paths};

    fn sh(folder: &Path, script: &str) {
        let status = std::process::Command::new("sh").args(["-ec", script]).current_dir(folder).status().unwrap();
        assert!(status.success(), "{script}");
    }

    /// In this test, a folder replaces the container: a copy of the snapshot with the upper layer on top.
    #[test]
    fn a_workspace_lists_the_changes_made_in_its_container() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        sh(
            place.path(),
            "mkdir -p repo/src repo/old; cd repo; echo kept > kept; echo removed > removed; echo original > src/a.py; \
                          echo swapped > swap; echo 1 > old/one; echo 2 > old/two; ln -s kept link; echo x > run.sh",
        );
        let snapshot = Snapshot::take(&at("repo"), &at("cache"), None).unwrap();
        let masked = [("src/a.py".into(), b"masked".to_vec()), ("paper.txt".into(), b"paper".to_vec())];
        let workspace = Workspace::create(&snapshot, &masked, &at("w"), LayersKind::Image, None).unwrap();
        let Layers::Image { tree, upper, .. } = workspace.layers() else { unreachable!() };
        sh(place.path(), &format!("cp -a {} inside", tree.display()));
        lay(&at("inside"), &encode_laid(&laid(upper).unwrap()).unwrap()).unwrap();
        assert_eq!(fs::read(at("inside/src/a.py")).unwrap(), b"masked");

        sh(
            &at("inside"),
            "echo solved > src/a.py; rm removed paper.txt; rm swap; mkdir swap; echo inner > swap/inner; \
                           mv old new; chmod +x run.sh; ln -s /etc/passwd out; mkfifo pipe; truncate -s 20000000 large",
        );
        let mut list = Vec::new();
        survey(&at("inside"), None, SurveyLimits::default(), &mut list).unwrap();
        let left = compare(tree, upper, decode_survey(&list).unwrap().entries).unwrap();
        let contents: Vec<Vec<u8>> =
            left.wanted.iter().map(|(path, _)| fs::read(at("inside").join(to_path(path))).unwrap()).collect();
        let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
        // Copying the workspace during the attempt leaves the upper layer unchanged.
        let before = encode_laid(&laid(upper).unwrap()).unwrap();
        copy(upper, &workspace.aside()).unwrap();
        write_back(&workspace.aside(), &left, &contents).unwrap();
        let aside = workspace.changes_aside(&ChangeLimits::default()).unwrap();
        assert_eq!(encode_laid(&laid(upper).unwrap()).unwrap(), before);
        assert!(!workspace.aside().exists());
        write_back(upper, &left, &contents).unwrap();

        let changes = workspace.changes(&ChangeLimits::default()).unwrap();
        assert_eq!(aside.files, changes.files);
        let told: Vec<_> = changes.files.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        let expected = [
            ("large", ChangeKind::Skipped),
            ("new/one", ChangeKind::Added),
            ("new/two", ChangeKind::Added),
            ("old/one", ChangeKind::Removed),
            ("old/two", ChangeKind::Removed),
            ("out", ChangeKind::Skipped),
            ("paper.txt", ChangeKind::Removed),
            ("pipe", ChangeKind::Skipped),
            ("removed", ChangeKind::Removed),
            ("run.sh", ChangeKind::Modified),
            ("src/a.py", ChangeKind::Modified),
            ("swap", ChangeKind::Removed),
            ("swap/inner", ChangeKind::Added),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_copy_of_an_upper_layer_has_its_files_and_its_whiteouts() {
        let place = tempfile::tempdir().unwrap();
        let (upper, to) = (place.path().join("upper"), place.path().join("to"));
        sh(place.path(), "mkdir -p upper/a/b; echo x > upper/a/b/run; chmod 755 upper/a/b/run; echo y > upper/plain");
        whiteout(&upper, Path::new("a/gone")).unwrap();
        copy(&upper, &to).unwrap();
        let (from, copied) = (laid(&upper).unwrap(), laid(&to).unwrap());
        assert_eq!(encode_laid(&from).unwrap(), encode_laid(&copied).unwrap());
        assert_eq!(copied.len(), 3);
    }

    #[test]
    fn changes_to_initial_files_are_found_even_if_the_list_of_new_files_is_cut_off() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        sh(
            place.path(),
            "mkdir -p repo/src repo/old; cd repo; for f in kept src/a.py src/b.py old/one; do echo $f > $f; done",
        );
        let snapshot = Snapshot::take(&at("repo"), &at("cache"), None).unwrap();
        let masked = [("src/a.py".into(), b"masked".to_vec()), ("zoo.txt".into(), b"paper".to_vec())];
        let workspace = Workspace::create(&snapshot, &masked, &at("w"), LayersKind::Image, None).unwrap();
        let Layers::Image { tree, upper, .. } = workspace.layers() else { unreachable!() };
        sh(place.path(), &format!("cp -a {} inside", tree.display()));
        lay(&at("inside"), &encode_laid(&laid(upper).unwrap()).unwrap()).unwrap();
        sh(
            &at("inside"),
            "for i in 1 2 3 4 5 6 7 8 9; do echo > a$i; done; echo solved > src/a.py; rm src/b.py; mv old new",
        );

        let mut list = Vec::new();
        survey(&at("inside"), None, SurveyLimits { fresh: 3, ..SurveyLimits::default() }, &mut list).unwrap();
        let cut = decode_survey(&list).unwrap();
        assert!(cut.is_cut);
        let known = known(tree, upper).unwrap();
        let mut list = Vec::new();
        survey_known(&at("inside"), None, &encode_paths(known.iter().map(Vec::as_slice)).unwrap(), &mut list).unwrap();
        let survey = cut.completed(&known, decode_survey(&list).unwrap());
        let left = compare(tree, upper, survey.entries).unwrap();
        let contents: Vec<Vec<u8>> =
            left.wanted.iter().map(|(path, _)| fs::read(at("inside").join(to_path(path))).unwrap()).collect();
        write_back(upper, &left, &contents.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();

        let changes = workspace.changes(&ChangeLimits::default()).unwrap();
        let told: Vec<_> = changes.files.iter().map(|change| (change.path.as_str(), change.kind)).collect();
        let expected = [
            ("a1", ChangeKind::Added),
            ("a2", ChangeKind::Added),
            ("a3", ChangeKind::Added),
            ("old/one", ChangeKind::Removed),
            ("src/a.py", ChangeKind::Modified),
            ("src/b.py", ChangeKind::Removed),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn the_limit_on_new_files_does_not_apply_to_files_that_the_attempt_was_given() {
        let place = tempfile::tempdir().unwrap();
        sh(place.path(), "mkdir tree upper; echo > tree/zoo");
        let file = |path: String| Surveyed {
            path: path.into(),
            sort: NodeType::File { executable: false, size: 0, fresh: true },
        };
        let new = (0..NEW + 5).map(|number| file(format!("new{number:06}")));
        let survey = new.chain([file("zoo".into())]).collect();
        let left = compare(&place.path().join("tree"), &place.path().join("upper"), survey).unwrap();
        assert_eq!(left.wanted.len(), NEW + 1);
        assert_eq!(left.wanted.last().unwrap().0, b"zoo");
    }

    #[test]
    fn write_back_fails_if_the_contents_of_a_new_file_are_missing() {
        let place = tempfile::tempdir().unwrap();
        for folder in ["tree", "upper"] {
            fs::create_dir(place.path().join(folder)).unwrap();
        }
        let sort = NodeType::File { executable: false, size: 3, fresh: true };
        let survey = vec![Surveyed { path: b"new".to_vec(), sort }];
        let left = compare(&place.path().join("tree"), &place.path().join("upper"), survey).unwrap();
        assert!(write_back(&place.path().join("upper"), &left, &[]).is_err());
    }
}
