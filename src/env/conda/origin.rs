//! Removes from a prefix the addresses from which its packages were downloaded. An address may contain a user name and
//! password, and agents can read the prefix. Without addresses, prefixes are also equal on every machine.

use std::collections::BTreeMap;
use std::path::Path;

use rattler_conda_types::RepoDataRecord;
use serde_json::Value;

use super::lock::channel_of;
use crate::error::{Error, Result};

/// Rewrites the packages' records in `conda-meta`: replaces addresses by the addresses in the lock, and removes paths
/// on this machine. Also empties the file `history`.
///
/// # Errors
/// Kind `Machine` if a file cannot be read or written.
pub(super) fn forget(prefix: &Path, locked: &[RepoDataRecord]) -> Result<()> {
    let meta = prefix.join("conda-meta");
    let failed = |error| Error::io("rewrite", &meta, error);
    let addresses: BTreeMap<String, String> = locked
        .iter()
        .map(|record| {
            let mut url = record.url.clone();
            // If the `environment.yml` gives a channel by URL, the URL may contain credentials. Both calls also succeed
            // if the URL contains no credentials.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            (record.identifier.to_string(), url.to_string())
        })
        .collect();
    for entry in std::fs::read_dir(&meta).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|name| name == "history") {
            // Remove the contents of `history`, because they differ from machine to machine (times), but not the file,
            // because conda recognises a prefix by this file.
            replace(&path, b"").map_err(failed)?;
        }
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let mut record: Value = serde_json::from_slice(&std::fs::read(&path).map_err(failed)?).map_err(|error| {
            Error::machine("an installed package's record is not JSON").because(error).at(&path, None)
        })?;
        let Some(fields) = record.as_object_mut() else { continue };
        let url = fields.get("fn").and_then(Value::as_str).and_then(|file| addresses.get(file)).cloned();
        let url = url.unwrap_or_default();
        let channel = channel_of(&url).unwrap_or_default().to_owned();
        fields.insert("url".into(), url.into());
        fields.insert("channel".into(), channel.into());
        for local in ["extracted_package_dir", "package_tarball_full_path", "link"] {
            fields.remove(local);
        }
        let text = serde_json::to_vec_pretty(&record)
            .map_err(|error| Error::internal("failed to write a package's record").because(error))?;
        replace(&path, &text).map_err(failed)?;
    }
    Ok(())
}

/// Replaces a file by a new file instead of overwriting it, because the old file may be shared by hard links.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::remove_file(path)?;
    std::fs::write(path, bytes)
}
