//! A cache of the files that pip and the compiler add to a prefix of conda packages. It allows a removed env to be
//! rebuilt quickly and without a network. Each set of files is a layer: `<cache>/conda/layers/<key>/`, with `files/`
//! and `layer.json`, which is written last. The key is a digest of the packages.
//!
//! Files are hard-linked into prefixes; the few files that contain the prefix's own path (commands in `bin`) are
//! rewritten instead.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::hex;
use crate::workspace::remove_tree;

/// Contents of `layer.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Layer {
    /// The prefix from which the layer was made.
    prefix: PathBuf,
    /// All files and links of the layer, relative to the prefix.
    files: Vec<PathBuf>,
    /// Files that contain the path in `prefix`; [`apply`] replaces this path by the path of the new prefix.
    rewritten: BTreeSet<PathBuf>,
    /// SHA-256 in hex of all names and contents. It shows whether somebody modified the files, which are hard-linked
    /// into prefixes.
    digest: String,
}

/// The part of a package's record in `conda-meta` that is read here: the names of its files.
#[derive(Deserialize)]
struct InstalledFiles {
    files: Vec<PathBuf>,
}

/// Adds the layer of this key to a prefix. Returns whether there is such a layer.
///
/// # Errors
/// Kind `Machine` if the layer cannot be used; the layer is then removed. A layer whose files were modified is removed
/// too, but counts as missing.
pub(super) fn apply(layers: &Path, key: &str, prefix: &Path) -> Result<bool> {
    let home = layers.join(key);
    let Some(layer) = read(&home) else { return Ok(false) };
    if digest(&home.join("files"), &layer.files).is_ok_and(|found| found != layer.digest) {
        let _ = remove_tree(&home);
        return Ok(false);
    }
    let applied = layer.files.iter().try_for_each(|file| {
        let (from, to) = (home.join("files").join(file), prefix.join(file));
        if to.symlink_metadata().is_ok() {
            // conda's installer creates its own marker files, so skip those.
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if layer.rewritten.contains(file) {
            let permissions = std::fs::metadata(&from)?.permissions();
            let text = replace(&std::fs::read(&from)?, bytes(&layer.prefix), bytes(prefix));
            std::fs::write(&to, text)?;
            std::fs::set_permissions(&to, permissions)
        } else {
            std::fs::hard_link(&from, &to)
        }
    });
    match applied {
        Ok(()) => Ok(true),
        Err(error) => {
            // Remove the layer, because the next use of it would fail too.
            let _ = remove_tree(&home);
            Err(Error::machine("failed to use the cached packages of the env")
                .because(error)
                .hint("repeat the command"))
        }
    }
}

/// Caches all files of a prefix that do not come from a conda package. If a binary file contains the prefix's path,
/// nothing is cached. Errors are ignored, because the env itself is complete.
pub(super) fn keep(layers: &Path, key: &str, prefix: &Path) {
    let Some(layer) = survey(prefix) else { return };
    let home = layers.join(key);
    let kept = || -> std::io::Result<()> {
        std::fs::create_dir_all(layers)?;
        let scratch = tempfile::tempdir_in(layers)?;
        for file in &layer.files {
            let to = scratch.path().join("files").join(file);
            if let Some(parent) = to.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::hard_link(prefix.join(file), to)?;
        }
        std::fs::write(scratch.path().join("layer.json"), serde_json::to_vec(&layer)?)?;
        let scratch = scratch.keep();
        std::fs::rename(&scratch, &home).inspect_err(|_| {
            // If another process has made the layer meanwhile, its contents are the same, so use that one.
            let _ = remove_tree(&scratch);
        })
    };
    let _ = kept();
}

/// Lists the files that do not come from a conda package, and those among them that contain the prefix's path.
fn survey(prefix: &Path) -> Option<Layer> {
    let meta = prefix.join("conda-meta");
    let mut conda: BTreeSet<PathBuf> = BTreeSet::new();
    for entry in std::fs::read_dir(&meta).ok()? {
        let path = entry.ok()?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let installed: InstalledFiles = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            conda.extend(installed.files);
        }
    }
    let mut layer =
        Layer { prefix: prefix.to_owned(), files: Vec::new(), rewritten: BTreeSet::new(), digest: String::new() };
    let mut hasher = Sha256::new();
    let walk = walkdir::WalkDir::new(prefix).into_iter().filter_entry(|entry| entry.path() != meta);
    for entry in walk {
        let entry = entry.ok()?;
        let file = entry.path().strip_prefix(prefix).ok()?.to_owned();
        if entry.file_type().is_dir() || conda.remove(&file) {
            continue;
        }
        let content = content(entry.path(), entry.path_is_symlink()).ok()?;
        take(&mut hasher, &file, entry.path_is_symlink(), &content);
        if entry.file_type().is_file() && find(&content, bytes(prefix)).is_some() {
            if content.contains(&0) {
                return None;
            }
            layer.rewritten.insert(file.clone());
        }
        layer.files.push(file);
    }
    layer.digest = hex(&hasher.finalize());
    // If files of conda packages are missing from the prefix, pip or the compiler has removed them. Do not make a layer
    // in that case, because applying a layer only adds files.
    conda.is_empty().then_some(layer)
}

/// Returns a digest of files and links in a folder.
fn digest(folder: &Path, files: &[PathBuf]) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    for file in files {
        let path = folder.join(file);
        let is_link = path.symlink_metadata()?.is_symlink();
        take(&mut hasher, file, is_link, &content(&path, is_link)?);
    }
    Ok(hex(&hasher.finalize()))
}

/// Returns a file's contents, or a link's target.
fn content(path: &Path, is_link: bool) -> std::io::Result<Vec<u8>> {
    if is_link { Ok(bytes(&std::fs::read_link(path)?).to_vec()) } else { std::fs::read(path) }
}

/// Adds a file or link to a digest.
fn take(hasher: &mut Sha256, file: &Path, is_link: bool, content: &[u8]) {
    for part in [bytes(file), &[u8::from(is_link)], content] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
}

fn read(home: &Path) -> Option<Layer> {
    serde_json::from_slice(&std::fs::read(home.join("layer.json")).ok()?).ok()
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn find(content: &[u8], wanted: &[u8]) -> Option<usize> {
    // To be fast, search for the first byte of `wanted` before comparing the rest.
    let mut from = 0;
    while let Some(place) = content.get(from..)?.iter().position(|byte| *byte == wanted[0]) {
        let start = from + place;
        if content[start..].starts_with(wanted) {
            return Some(start);
        }
        from = start + 1;
    }
    None
}

fn replace(content: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(place) = find(rest, old) {
        replaced.extend_from_slice(&rest[..place]);
        replaced.extend_from_slice(new);
        rest = &rest[place + old.len()..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use tempfile::tempdir;

    use super::{apply, keep};

    fn write(prefix: &Path, file: &str, text: impl AsRef<[u8]>) {
        let path = prefix.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_cached_layer_is_applied_to_another_prefix() {
        let place = tempdir().unwrap();
        let (layers, one, other) = (place.path().join("layers"), place.path().join("one"), place.path().join("other"));
        write(&one, "conda-meta/python.json", r#"{"files": ["bin/python"]}"#);
        write(&one, "bin/python", "a program");
        write(&one, "lib/six.py", "import sys");
        write(&one, "bin/tool", format!("#!{}/bin/python\n", one.display()));
        fs::set_permissions(one.join("bin/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        write(&one, "CACHEDIR.TAG", "the installer's");
        write(&other, "CACHEDIR.TAG", "the installer's");
        assert!(!apply(&layers, "key", &other).unwrap(), "nothing is kept yet");
        keep(&layers, "key", &one);
        assert!(apply(&layers, "key", &other).unwrap());
        assert!(!other.join("bin/python").exists(), "conda's own files are conda's to install");
        assert_eq!(
            fs::metadata(other.join("lib/six.py")).unwrap().ino(),
            fs::metadata(one.join("lib/six.py")).unwrap().ino()
        );
        assert_eq!(fs::read_to_string(other.join("bin/tool")).unwrap(), format!("#!{}/bin/python\n", other.display()));
        assert_eq!(fs::metadata(other.join("bin/tool")).unwrap().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_prefix_that_cannot_be_recreated_is_not_cached() {
        let place = tempdir().unwrap();
        let (layers, prefix) = (place.path().join("layers"), place.path().join("prefix"));
        write(&prefix, "conda-meta/python.json", r#"{"files": ["bin/python"]}"#);
        write(&prefix, "lib/six.py", "import sys");
        keep(&layers, "gone", &prefix);
        write(&prefix, "bin/python", "a program");
        write(&prefix, "lib/a.so", [b"\0", prefix.to_str().unwrap().as_bytes(), b"\0"].concat());
        keep(&layers, "binary", &prefix);
        let other = place.path().join("other");
        assert!(!apply(&layers, "gone", &other).unwrap(), "a file of conda's is missing");
        assert!(!apply(&layers, "binary", &other).unwrap(), "the path is in a binary file");
    }

    #[test]
    fn a_modified_layer_is_not_used() {
        let place = tempdir().unwrap();
        let (layers, prefix) = (place.path().join("layers"), place.path().join("prefix"));
        write(&prefix, "conda-meta/python.json", r#"{"files": []}"#);
        write(&prefix, "lib/six.py", "import sys");
        keep(&layers, "key", &prefix);
        // Modify the cached file through its hard link in the prefix.
        fs::write(prefix.join("lib/six.py"), "import os").unwrap();
        let other = place.path().join("other");
        assert!(!apply(&layers, "key", &other).unwrap());
        assert!(!other.exists() && !layers.join("key").exists());
    }

    #[test]
    fn a_damaged_layer_is_an_error_and_is_then_discarded() {
        let place = tempdir().unwrap();
        let (layers, prefix) = (place.path().join("layers"), place.path().join("prefix"));
        write(&prefix, "conda-meta/python.json", r#"{"files": []}"#);
        write(&prefix, "lib/six.py", "import sys");
        keep(&layers, "key", &prefix);
        fs::remove_file(layers.join("key/files/lib/six.py")).unwrap();
        let other = place.path().join("other");
        assert!(apply(&layers, "key", &other).unwrap_err().hint.unwrap().contains("repeat"));
        assert!(!apply(&layers, "key", &other).unwrap());
    }
}
