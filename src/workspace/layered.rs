//! The workspace of one attempt: how it is created from a snapshot, compared with the snapshot, and removed.

use std::collections::BTreeMap;
use std::fs::{OpenOptions, copy, create_dir, create_dir_all, remove_file, symlink_metadata};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use autoexperiment_init::folder::remove_tree;
use autoexperiment_init::left_out::LONGEST_PATH;
use nix::sys::stat::{Mode, SFlag, mknod};
use tokio::sync::Semaphore;

use super::changes::{Base, Override, View, collect};
use super::snapshot::{Node, Snapshot, file_mode, link, set_owner_and_mode};
use super::{ChangeKind, ChangeLimits, Changes, Disk, FileChange, Layers, LayersKind};
use crate::error::{Error, Result};

/// Maximum time that discarding a workspace waits for its removal. After this time, the removal continues in the
/// background.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Limits the number of workspaces that are removed at the same time, because each removal has a thread of its own.
static REMOVALS: Semaphore = Semaphore::const_new(8);

/// The repo of one attempt (such as a masked repo), as files that the attempt may change.
#[derive(Debug)]
pub struct Workspace {
    snapshot: Snapshot,
    overrides: BTreeMap<String, Override>,
    dir: PathBuf,
    layers: Layers,
    owner: Option<(u32, u32)>,
    /// The separate file system that contains the writable folders, if there is one.
    disk: Option<Disk>,
    removed: bool,
}

impl Drop for Workspace {
    /// Removes the workspace if the attempt did not end normally.
    fn drop(&mut self) {
        if !self.removed {
            // Ignore a failure: the rest is removed when the scratch folder is cleaned.
            let _ = remove_tree(&self.dir);
        }
    }
}

impl Workspace {
    /// Creates a workspace of `snapshot` in `dir`, a new or empty folder, with `overrides` (path in the repo, and
    /// bytes) on top. Overrides replace files, whose permissions are kept, or add files, which are executable if they
    /// begin with `#!`. `owner` is the same as for [`Snapshot::take`].
    ///
    /// # Errors
    /// Kind `Suite` for an override whose path leads out of the repo, through a link, or to a folder; kind `Machine` if
    /// the files cannot be written.
    pub fn create(
        snapshot: &Snapshot,
        overrides: &[(PathBuf, Vec<u8>)],
        dir: &Path,
        kind: LayersKind,
        owner: Option<(u32, u32)>,
    ) -> Result<Self> {
        Self::create_on(snapshot, overrides, dir, kind, owner, None)
    }

    /// Same as [`create`](Self::create), but with an overlay's writable layer on a separate file system. That file
    /// system is removed with the workspace. Such a workspace can have only one sandbox.
    ///
    /// # Errors
    /// Same as [`Workspace::create`].
    pub fn create_on(
        snapshot: &Snapshot,
        overrides: &[(PathBuf, Vec<u8>)],
        dir: &Path,
        kind: LayersKind,
        owner: Option<(u32, u32)>,
        disk: Option<Disk>,
    ) -> Result<Self> {
        let overrides = check(snapshot, overrides)?;
        create_dir_all(dir).map_err(|error| Error::io("create", dir, error))?;
        let place = disk.as_ref().map(|disk| disk.place().clone());
        let new_folder = |name: &str| {
            let path = place.as_ref().map_or(dir, |place| place.root.as_path()).join(name);
            create_dir(&path)
                .and_then(|()| set_owner_and_mode(&path, 0o755, owner))
                .map_err(|error| Error::io("create", &path, error).hint("give every attempt its own empty folder"))?;
            Ok::<_, Error>(path)
        };
        let layers = match kind {
            LayersKind::Overlay => Layers::Overlay {
                lower: snapshot.tree().to_owned(),
                upper: new_folder("upper")?,
                work: new_folder("work")?,
                disk: place.clone(),
            },
            LayersKind::Copy => Layers::Copy { dir: new_folder("tree")? },
            LayersKind::Image => Layers::Image {
                tree: snapshot.tree().to_owned(),
                digest: snapshot.content().to_owned(),
                upper: new_folder("upper")?,
            },
        };
        let workspace =
            Self { snapshot: snapshot.clone(), overrides, dir: dir.to_owned(), layers, owner, disk, removed: false };
        if kind == LayersKind::Copy {
            workspace.fill().map_err(|(path, error)| Error::io("copy", &path, error))?;
        }
        for (path, laid) in &workspace.overrides {
            workspace.write(path, &laid.bytes, laid.executable)?;
        }
        Ok(workspace)
    }

    /// Returns the folders that a sandbox must mount.
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Files that the repo's build has made, as paths in the workspace.
    pub fn products(&self) -> impl Iterator<Item = &str> {
        self.snapshot.products().iter().map(String::as_str)
    }

    /// Returns the changes since the workspace was created. Call this method after the sandbox has been destroyed: if a
    /// process still changes the files, the result is inconsistent. Even then, no symbolic link is followed, so the
    /// host is safe.
    ///
    /// # Errors
    /// Kind `Machine` if the tree cannot be read.
    pub fn changes(&self, limits: &ChangeLimits) -> Result<Changes> {
        let view = if matches!(self.layers, Layers::Copy { .. }) { View::Whole } else { View::Upper };
        collect(self.writable(), view, self.base(), limits)
    }

    /// Path of a folder into which a running sandbox copies its upper layer. The folder is next to the workspace's own
    /// folders, and is removed with them.
    pub(crate) fn aside(&self) -> PathBuf {
        self.dir.join("look")
    }

    /// Returns the changes since the workspace was created, according to the copy of the sandbox's upper layer at
    /// [`aside`](Self::aside). Removes the copy.
    ///
    /// # Errors
    /// Same as [`Workspace::changes`].
    pub(crate) fn changes_aside(&self, limits: &ChangeLimits) -> Result<Changes> {
        let aside = self.aside();
        let changes = collect(&aside, View::Upper, self.base(), limits)?;
        remove_tree(&aside).map_err(|error| Error::io("remove", &aside, error))?;
        Ok(changes)
    }

    /// Returns the repo's files as they were when the attempt started.
    fn base(&self) -> Base<'_> {
        Base { tree: self.snapshot.tree(), manifest: self.snapshot.manifest(), overrides: &self.overrides }
    }

    /// Applies another attempt's changes to this new workspace, for verification. Must be called before a sandbox uses
    /// the workspace. Links and other [`ChangeKind::Skipped`] changes are left out.
    ///
    /// Protected files are not changed, and changes in conflict with them are ignored, such as a file in place of their
    /// folder. Returns the paths of all changes that were ignored because of protected files, or because the path is
    /// too long for a repo.
    ///
    /// # Errors
    /// Kind `Machine` if the files cannot be written.
    pub fn apply(&self, changes: &Changes, is_protected: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        let stays: Vec<&str> = changes
            .files
            .iter()
            .filter(|change| change.kind == ChangeKind::Removed && is_protected(&change.path))
            .map(|change| change.path.as_str())
            .collect();
        let ignore = |change: &FileChange| {
            is_protected(&change.path)
                || is_too_long(&change.path)
                || stays.iter().any(|kept| is_inside(kept, &change.path) || is_inside(&change.path, kept))
        };
        let (ignored, accepted): (Vec<&FileChange>, Vec<&FileChange>) =
            changes.files.iter().partition(|change| ignore(change));
        let written: BTreeMap<&str, &FileChange> = accepted
            .iter()
            .filter(|change| matches!(change.kind, ChangeKind::Added | ChangeKind::Modified))
            .map(|change| (change.path.as_str(), *change))
            .collect();
        for change in accepted.iter().filter(|change| change.kind == ChangeKind::Removed) {
            let replaced = Path::new(&change.path).ancestors().skip(1).filter_map(Path::to_str);
            // Skip a removed file whose folder became a file: writing that file removes the folder with its contents.
            if !replaced.into_iter().any(|above| written.contains_key(above)) {
                self.take_away(&change.path)?;
            }
        }
        for (path, change) in written {
            self.write(path, &change.bytes, change.executable)?;
        }
        Ok(ignored.into_iter().map(|change| change.path.clone()).collect())
    }

    /// Removes the workspace, in the background if that takes long: an attempt may have left a hundred thousand nested
    /// folders. What cannot be removed is removed later, with the scratch folder.
    pub(crate) async fn discard(self) {
        let removal = tokio::spawn(async move {
            let _permit = REMOVALS.acquire().await;
            // Use a separate thread: before the process ends, the runtime would wait for its own threads, and so for a
            // long removal.
            let (done, is_done) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || done.send(self.remove()));
            is_done.await
        });
        let _ = tokio::time::timeout(AT_ONCE, removal).await;
    }

    /// Removes the workspace from the disk, even if an attempt left folders that are hard to remove.
    ///
    /// # Errors
    /// Kind `Machine` if an entry cannot be removed.
    pub fn remove(mut self) -> Result<()> {
        self.removed = true;
        // Dropping the file system removes all of its files at once.
        drop(self.disk.take());
        remove_tree(&self.dir).map_err(|error| Error::io("remove", &self.dir, error))
    }

    /// Returns the folder that receives all writes.
    fn writable(&self) -> &Path {
        match &self.layers {
            Layers::Overlay { upper, .. } | Layers::Image { upper, .. } => upper,
            Layers::Copy { dir } => dir,
        }
    }

    /// Copies the whole snapshot. If the file system supports it, the copies share their blocks (`copy_file_range`).
    fn fill(&self) -> Result<(), (PathBuf, io::Error)> {
        let (from, to) = (self.snapshot.tree(), self.writable());
        for (path, node) in self.snapshot.manifest() {
            let target = to.join(path);
            let made = match node {
                Node::Folder => create_dir(&target).and_then(|()| set_owner_and_mode(&target, 0o755, self.owner)),
                Node::Link(text) => link(text, &target, self.owner),
                Node::File { executable } => copy(from.join(path), &target)
                    .and_then(|_| set_owner_and_mode(&target, file_mode(*executable), self.owner)),
            };
            made.map_err(|error| (target, error))?;
        }
        Ok(())
    }

    /// Writes a file at `path`. Replaces whatever the writable layer has at this path.
    fn write(&self, path: &str, bytes: &[u8], executable: bool) -> Result<()> {
        let target = self.writable().join(path);
        let write = || {
            self.make_room(path)?;
            match symlink_metadata(&target) {
                Ok(found) if found.is_dir() => remove_tree(&target)?,
                Ok(_) => remove_file(&target)?,
                Err(_) => {}
            }
            OpenOptions::new().write(true).create_new(true).open(&target)?.write_all(bytes)?;
            set_owner_and_mode(&target, file_mode(executable), self.owner)
        };
        write().map_err(|error| Error::io("write", &target, error))
    }

    /// Removes a file. If the lower layer has a file at this path, leaves a whiteout to hide it. Every user may create
    /// whiteouts since Linux 5.8, and ordinary users can mount overlays only since Linux 5.11.
    fn take_away(&self, path: &str) -> Result<()> {
        let target = self.writable().join(path);
        let take = || {
            match symlink_metadata(&target) {
                Ok(found) if found.is_dir() => return Ok(()),
                Ok(_) => remove_file(&target)?,
                Err(_) => {}
            }
            if !matches!(self.layers, Layers::Copy { .. }) && self.snapshot.manifest().contains_key(path) {
                self.make_room(path)?;
                mknod(&target, SFlag::S_IFCHR, Mode::empty(), 0)?;
            }
            Ok(())
        };
        take().map_err(|error: io::Error| Error::io("remove", &target, error))
    }

    /// Creates the folders that contain `path`, in place of any files and links.
    fn make_room(&self, path: &str) -> io::Result<()> {
        let mut here = self.writable().to_owned();
        let parts: Vec<&str> = path.split('/').collect();
        for part in &parts[..parts.len() - 1] {
            here.push(part);
            match symlink_metadata(&here) {
                Ok(found) if found.is_dir() => continue,
                Ok(_) => remove_file(&here)?,
                Err(_) => {}
            }
            create_dir(&here)?;
            set_owner_and_mode(&here, 0o755, self.owner)?;
        }
        Ok(())
    }
}

/// Whether a path is longer than the limit up to which the trees of attempts are read.
fn is_too_long(path: &str) -> bool {
    const LONGEST_NAME: usize = 255;
    // A path beyond the limit is still listed if its folder is within the limit, so add the length of the longest name.
    path.len() > LONGEST_PATH + 1 + LONGEST_NAME || path.split('/').any(|name| name.len() > LONGEST_NAME)
}

/// Whether `path` is inside the folder `folder`.
fn is_inside(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Checks overrides and returns them by path. Masking must never write outside of the repo, follow a link or replace a
/// folder.
fn check(snapshot: &Snapshot, overrides: &[(PathBuf, Vec<u8>)]) -> Result<BTreeMap<String, Override>> {
    let mut checked = BTreeMap::new();
    for (path, bytes) in overrides {
        let refuse = |why: &str| {
            Error::suite(format!("cannot place `{}` into the repo: {why}", path.display()))
                .hint("give the path of a regular file, relative to the repo, that leads through no link")
        };
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let Some(text) = path.to_str().filter(|text| plain && !text.is_empty()) else {
            return Err(refuse("the path leads out of it"));
        };
        let executable = match snapshot.manifest().get(text) {
            Some(Node::Folder) => return Err(refuse("there is a folder of that name")),
            Some(Node::Link(_)) => return Err(refuse("it is a symbolic link")),
            Some(Node::File { executable }) => *executable,
            None => bytes.starts_with(b"#!"),
        };
        for above in path.ancestors().skip(1).filter_map(Path::to_str).filter(|above| !above.is_empty()) {
            if matches!(snapshot.manifest().get(above), Some(Node::File { .. } | Node::Link(_)))
                || overrides.iter().any(|(other, _)| other == Path::new(above))
            {
                return Err(refuse(&format!("`{above}` is not a folder")));
            }
        }
        checked.insert(text.to_owned(), Override { bytes: bytes.clone(), executable });
    }
    Ok(checked)
}
