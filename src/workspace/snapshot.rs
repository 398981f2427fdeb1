//! A clean, content-addressed copy of a repo, on which every attempt's workspace is based.
//!
//! Copies `repos/<id>/` to `<cache>/snapshots/<digest>-<owner>/tree`. All files get the mode 644 or 755 and all folders
//! 755, so that neither the digest nor an attempt depends on the umask with which the repo was checked out. The copy's
//! files stay writable for their owner, because an overlay shows the same permissions, and attempts must be able to
//! write there. The copy itself does not change, because it is only mounted as the read-only lower layer.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Permissions, create_dir, create_dir_all, rename, set_permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use autoexperiment_init::folder::remove_tree;
use autoexperiment_init::left_out::{DEEPEST, LONGEST_PATH, is_left_out};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::hex;

/// Version of the format; increase it when digests or the layout on disk change.
const FORMAT: &[u8] = b"autoexperiment snapshot 1\n";

/// Maximum number of links to follow before a chain of links counts as a loop, as in the kernel.
const MOST_LINKS: usize = 40;

/// One entry of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// A folder.
    Folder,
    /// A regular file.
    File { executable: bool },
    /// A symbolic link, with its target.
    Link(String),
}

/// All entries of a tree, by path with `/` between the parts.
pub(super) type TreeManifest = BTreeMap<String, Node>;

/// A clean copy of a repo in the cache.
#[derive(Debug, Clone)]
pub struct Snapshot {
    digest: String,
    content: String,
    tree: PathBuf,
    manifest: Arc<TreeManifest>,
    products: Arc<BTreeSet<String>>,
}

/// Computes the digest of a repo's [`Snapshot`] without making the snapshot.
///
/// # Errors
/// Returns the errors of [`Snapshot::take`] that concern the repo.
pub fn repo_digest(repo: &Path) -> Result<String> {
    examine(repo).map(|(_, _, digest)| digest)
}

impl Snapshot {
    /// Returns the snapshot of `repo` in its current state, from `cache` or newly copied.
    ///
    /// `owner` is the user on the host as which the processes of a sandbox run. The files are given to that user, which
    /// only root can do. Several processes or threads may call this function at the same time and get the same
    /// snapshot.
    ///
    /// # Errors
    /// Kind `Suite` if the repo does not exist, changes while it is copied, or contains a link that leads out, a
    /// special file, or a path that is too long or not UTF-8; kind `Machine` if a file cannot be read or the cache
    /// cannot be written.
    pub fn take(repo: &Path, cache: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let (repo, manifest, digest) = examine(repo)?;
        let tree = copied(&manifest, &|_| &repo, &digest, cache, owner)?;
        let products = Arc::default();
        Ok(Self { content: digest.clone(), digest, tree, manifest: Arc::new(manifest), products })
    }

    /// Adds the files that a build has made, from the folder `products`, which has the layout of the repo. Files of the
    /// repo itself are not changed, and neither is its digest.
    ///
    /// # Errors
    /// Same as [`Snapshot::take`].
    pub fn with_products(self, products: &Path, cache: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let (products, added, _) = examine(products)?;
        let mut manifest = TreeManifest::clone(&self.manifest);
        let mut names = BTreeSet::new();
        for (path, node) in added {
            if let Entry::Vacant(place) = manifest.entry(path) {
                if node != Node::Folder {
                    names.insert(place.key().clone());
                }
                place.insert(node);
            }
        }
        let root = |path: &str| -> &Path { if names.contains(path) { &products } else { &self.tree } };
        let content = pour(&manifest, &root, None)?;
        let tree = copied(&manifest, &root, &content, cache, owner)?;
        Ok(Self { digest: self.digest, content, tree, manifest: Arc::new(manifest), products: Arc::new(names) })
    }

    /// Returns the snapshot without the files that match `left_out`, links to such files, and folders that are empty as
    /// a result.
    ///
    /// # Errors
    /// Same as [`Snapshot::take`].
    pub fn without(&self, left_out: &globset::GlobSet, cache: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let mut manifest = TreeManifest::clone(&self.manifest);
        manifest.retain(|path, node| match node {
            Node::Folder => true,
            Node::Link(target) => !left_out.is_match(path) && !left_out.is_match(led_to(path, target)),
            Node::File { .. } => !left_out.is_match(path),
        });
        if manifest.len() == self.manifest.len() {
            return Ok(self.clone());
        }
        let holds = |manifest: &TreeManifest, folder: &str| {
            let inside = format!("{folder}/");
            manifest.range(inside.clone()..).next().is_some_and(|(path, _)| path.starts_with(&inside))
        };
        // Inner folders come after outer ones; remove them in reverse order, so that outer folders become empty.
        let folders: Vec<String> = manifest.iter().filter(|it| *it.1 == Node::Folder).map(|it| it.0.clone()).collect();
        for folder in folders.iter().rev() {
            if holds(&self.manifest, folder) && !holds(&manifest, folder) {
                manifest.remove(folder);
            }
        }
        let content = pour(&manifest, &|_| self.tree.as_path(), None)?;
        let tree = copied(&manifest, &|_| self.tree.as_path(), &content, cache, owner)?;
        let products = self.products.iter().filter(|path| manifest.contains_key(*path)).cloned().collect();
        let (digest, products) = (content.clone(), Arc::new(products));
        Ok(Self { digest, content, tree, manifest: Arc::new(manifest), products })
    }

    /// Returns the paths of all files and links that match.
    #[must_use]
    pub fn matching(&self, globs: &globset::GlobSet) -> Vec<String> {
        let files = self.manifest.iter().filter(|(path, node)| **node != Node::Folder && globs.is_match(path));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// Returns the SHA-256 in hex of all paths, kinds, execute permissions and contents of the repo, without files left
    /// out by [`Snapshot::without`]. It is the same on every machine.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns a digest like [`Snapshot::digest`], but with the files made by a build. It may differ between machines.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// Returns the files that a build has added, as paths in the repo.
    pub fn products(&self) -> &BTreeSet<String> {
        &self.products
    }

    /// Returns the folder in the cache that contains the copy of the repo.
    pub fn tree(&self) -> &Path {
        &self.tree
    }

    pub(super) fn manifest(&self) -> &TreeManifest {
        &self.manifest
    }
}

/// Returns a repo's path with links resolved, the repo's entries, and its digest.
fn examine(repo: &Path) -> Result<(PathBuf, TreeManifest, String)> {
    let repo = repo.canonicalize().map_err(|error| {
        Error::suite(format!("failed to read the repo `{}`", repo.display()))
            .because(error)
            .hint("check the manifest's `repo` and the folder of that name under `repos/`")
    })?;
    let manifest = read_manifest(&repo)?;
    let digest = pour(&manifest, &|_| &repo, None)?;
    Ok((repo, manifest, digest))
}

/// Returns the folder in the cache that contains the copy of the repo with this digest, and makes the copy if it does
/// not exist. For each path in the repo, `root` returns the folder from which to copy it.
fn copied<'a>(
    manifest: &TreeManifest,
    root: &impl Fn(&str) -> &'a Path,
    digest: &str,
    cache: &Path,
    owner: Option<(u32, u32)>,
) -> Result<PathBuf> {
    let snapshots = cache.join("snapshots");
    let name = match owner {
        Some((user, group)) => format!("{digest}-{user}.{group}"),
        None => format!("{digest}-self"),
    };
    let home = snapshots.join(&name);
    if !home.join("complete").exists() {
        create_dir_all(&snapshots).map_err(|error| Error::io("create", &snapshots, error))?;
        let lock_path = snapshots.join(format!("{name}.lock"));
        let lock = File::create(&lock_path).map_err(|error| Error::io("create", &lock_path, error))?;
        lock.lock().map_err(|error| Error::io("lock", &lock_path, error))?;
        if !home.join("complete").exists() {
            let partial = snapshots.join(format!("{name}.partial"));
            for leftover in [&partial, &home] {
                remove_tree(leftover).map_err(|error| Error::io("remove", leftover, error))?;
            }
            let tree = partial.join("tree");
            create_dir_all(&tree).map_err(|error| Error::io("create", &tree, error))?;
            if pour(manifest, root, Some((&tree, owner)))? != digest {
                return Err(Error::suite("the repo was changed while it was being copied")
                    .at(root(""), None)
                    .hint("wait until nothing writes to it, then try again"));
            }
            let marker = partial.join("complete");
            File::create(&marker).map_err(|error| Error::io("create", &marker, error))?;
            rename(&partial, &home).map_err(|error| Error::io("rename", &partial, error))?;
        }
    }
    Ok(home.join("tree"))
}

/// Lists the entries of a repo. Fails for entries that cannot be copied exactly or lead out of the repo.
fn read_manifest(repo: &Path) -> Result<TreeManifest> {
    let mut manifest = TreeManifest::new();
    let walk = walkdir::WalkDir::new(repo).min_depth(1).follow_links(false);
    let kept = walk
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || !entry.file_name().to_str().is_some_and(is_left_out));
    for entry in kept {
        let entry = entry
            .map_err(|error| Error::suite(format!("failed to read the repo `{}`", repo.display())).because(error))?;
        let relative = entry.path().strip_prefix(repo).unwrap_or(entry.path());
        let Some(path) = relative.to_str() else {
            return Err(Error::suite("a file name in the repo is not UTF-8").at(entry.path(), None).hint("rename it"));
        };
        if path.len() > LONGEST_PATH || entry.depth() > DEEPEST {
            let message =
                format!("a path in the repo is longer than {LONGEST_PATH} bytes or deeper than {DEEPEST} folders");
            return Err(Error::suite(message).at(entry.path(), None).hint("move or remove it"));
        }
        let kind = entry.file_type();
        let node = if kind.is_dir() {
            Node::Folder
        } else if kind.is_file() {
            let metadata = entry
                .metadata()
                .map_err(|error| Error::suite("failed to read a file").at(entry.path(), None).because(error))?;
            Node::File { executable: metadata.permissions().mode() & 0o100 != 0 }
        } else if kind.is_symlink() {
            Node::Link(check_link(repo, relative)?)
        } else {
            return Err(Error::suite("the repo contains a socket, FIFO or device")
                .at(entry.path(), None)
                .hint("remove it"));
        };
        manifest.insert(path.to_owned(), node);
    }
    Ok(manifest)
}

/// Returns the target of the link at `relative`. Follows the link as the kernel would, and checks that no step leads
/// out of `repo`.
fn check_link(repo: &Path, relative: &Path) -> Result<String> {
    let refuse = |what: String| {
        Error::suite(what).at(repo.join(relative), None).hint(
            "replace the link by a copy of what it points to, or remove it: attempts cannot see anything outside the repo",
        )
    };
    let read = |path: &Path| {
        std::fs::read_link(path).map_err(|error| Error::suite("failed to read a link").at(path, None).because(error))
    };
    let target = read(&repo.join(relative))?;
    let Some(text) = target.to_str() else { return Err(refuse("a symbolic link's target is not UTF-8".into())) };
    let mut here: Vec<std::ffi::OsString> =
        relative.parent().into_iter().flat_map(|parent| parent.iter().map(ToOwned::to_owned)).collect();
    let mut pending: Vec<PathBuf> = parts_reversed(&target);
    let mut links = 0;
    while let Some(part) = pending.pop() {
        match part.components().next() {
            Some(Component::RootDir | Component::Prefix(_)) => {
                return Err(refuse(format!("a symbolic link points outside the repo, to `{text}`")));
            }
            Some(Component::ParentDir) => {
                if here.pop().is_none() {
                    return Err(refuse(format!("a symbolic link points outside the repo, to `{text}`")));
                }
            }
            Some(Component::Normal(name)) => {
                here.push(name.to_owned());
                let path = repo.join(here.iter().collect::<PathBuf>());
                if path.is_symlink() {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(refuse(format!("a symbolic link to `{text}` is a loop")));
                    }
                    here.pop();
                    pending.extend(parts_reversed(&read(&path)?));
                }
            }
            Some(Component::CurDir) | None => {}
        }
    }
    Ok(text.to_owned())
}

/// Returns the path to which a link leads, computed from the text of its target alone. Links along the way are not
/// followed.
fn led_to(path: &str, target: &str) -> PathBuf {
    let mut found = Path::new(path).parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => found.push(part),
        }
    }
    found
}

fn parts_reversed(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Reads all files of a repo once and returns its digest. If `to` is given, also copies the files there.
fn pour<'a>(
    manifest: &TreeManifest,
    root: &impl Fn(&str) -> &'a Path,
    to: Option<(&Path, Option<(u32, u32)>)>,
) -> Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(FORMAT);
    let mut buffer = vec![0_u8; 1 << 17];
    if let Some((tree, owner)) = to {
        set_owner_and_mode(tree, 0o755, owner).map_err(|error| Error::io("set the owner of", tree, error))?;
    }
    for (path, node) in manifest {
        let source = root(path).join(path);
        let copy = to.map(|(tree, owner)| (tree.join(path), owner));
        let mut head = |kind: u8, length: u64| {
            hasher.update([kind]);
            hasher.update((path.len() as u64).to_le_bytes());
            hasher.update(path.as_bytes());
            hasher.update(length.to_le_bytes());
        };
        match node {
            Node::Folder => {
                head(b'd', 0);
                if let Some((copy, owner)) = copy {
                    create_dir(&copy)
                        .and_then(|()| set_owner_and_mode(&copy, 0o755, owner))
                        .map_err(|error| Error::io("create", &copy, error))?;
                }
            }
            Node::Link(target) => {
                head(b'l', target.len() as u64);
                hasher.update(target.as_bytes());
                if let Some((copy, owner)) = copy {
                    link(target, &copy, owner).map_err(|error| Error::io("create", &copy, error))?;
                }
            }
            Node::File { executable } => {
                let mut file = File::open(&source).map_err(|error| Error::io("open", &source, error))?;
                let length = file.metadata().map_err(|error| Error::io("read", &source, error))?.len();
                head(if *executable { b'x' } else { b'f' }, length);
                let mut output = match &copy {
                    Some((copy, _)) => Some(File::create_new(copy).map_err(|error| Error::io("create", copy, error))?),
                    None => None,
                };
                loop {
                    let count = file.read(&mut buffer).map_err(|error| Error::io("read", &source, error))?;
                    if count == 0 {
                        break;
                    }
                    hasher.update(&buffer[..count]);
                    if let (Some(output), Some((copy, _))) = (&mut output, &copy) {
                        output.write_all(&buffer[..count]).map_err(|error| Error::io("write", copy, error))?;
                    }
                }
                if let Some((copy, owner)) = copy {
                    set_owner_and_mode(&copy, file_mode(*executable), owner)
                        .map_err(|error| Error::io("set the owner of", &copy, error))?;
                }
            }
        }
    }
    Ok(hex(&hasher.finalize()))
}

/// Returns the mode of a regular file in snapshots and workspaces.
pub(super) const fn file_mode(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

/// Sets owner and mode of a new file or folder.
pub(super) fn set_owner_and_mode(path: &Path, mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    set_permissions(path, Permissions::from_mode(mode))?;
    match owner {
        Some((user, group)) => lchown(path, Some(user), Some(group)),
        None => Ok(()),
    }
}

/// Creates a symbolic link and sets its owner.
pub(super) fn link(target: &str, path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    symlink(target, path)?;
    match owner {
        Some((user, group)) => lchown(path, Some(user), Some(group)),
        None => Ok(()),
    }
}
