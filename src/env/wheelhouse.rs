//! Wheelhouses: folders of packages, downloaded from lists with hashes, from which packages can be installed without a
//! network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::cache::{clear, lock};
use super::pip::download;
use super::{BuildProgress, Env, OnProgress};
use crate::error::{Error, Result};
use crate::files::{hex, write_whole};

/// Returns a folder with the packages of `list` for the Python of `env`, from the cache or downloaded with pip. The
/// file `list` has one requirement with its hashes per line, and may contain several versions of a package. With
/// `offline`, nothing is downloaded.
///
/// # Errors
/// Kind `Suite` for an invalid list or a package with another hash, `Machine` for a failed download, or if a download is
/// needed with `offline`.
pub async fn wheelhouse(
    list: &Path,
    env: &Env,
    cache: &Path,
    offline: bool,
    on_progress: OnProgress<'_>,
) -> Result<PathBuf> {
    let text = std::fs::read_to_string(list).map_err(|error| Error::io("read", list, error))?;
    let key = hex(&Sha256::digest(format!("wheelhouse 1\n{}\n{text}", env.digest)));
    let cache = std::path::absolute(cache).map_err(|error| Error::io("find", cache, error))?;
    let home = cache.join("wheelhouses").join(&key[..32]);
    let (folder, marker) = (home.join("wheels"), home.join("complete.json"));
    if marker.exists() {
        return Ok(folder);
    }
    if offline {
        return Err(Error::machine(format!("offline, but the packages of `{}` are not in the cache", list.display()))
            .hint("repeat the command once without `--offline`: what it downloads can then be used offline"));
    }
    let above = home.parent().unwrap_or(&home);
    std::fs::create_dir_all(above).map_err(|error| Error::io("create", above, error))?;
    let taken = lock(&home, on_progress).await?;
    if marker.exists() {
        return Ok(folder);
    }
    clear(&home)?;
    std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
    on_progress(BuildProgress::Task(format!("fetching wheels of `{}`", list.display())));
    for round in rounds(&text) {
        let path = home.join("requirements.txt");
        std::fs::write(&path, round.join("\n") + "\n").map_err(|error| Error::io("write", &path, error))?;
        let python = env.prefix.join("bin/python");
        download(&python, &path, &folder, round.len(), &taken, on_progress)
            .await
            .map_err(|error| error.at(list, None))?;
    }
    write_whole(&marker, b"{}")?;
    Ok(folder)
}

/// Splits lines into groups that contain each package at most once, because pip rejects duplicates.
fn rounds(text: &str) -> Vec<Vec<&str>> {
    let mut rounds: Vec<(BTreeSet<String>, Vec<&str>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let name = line.split(['=', ' ', '<', '>', '~', ';']).next().unwrap_or(line);
        let name = name.to_lowercase().replace(['_', '.'], "-");
        match rounds.iter_mut().find(|(names, _)| !names.contains(&name)) {
            Some((names, lines)) => {
                names.insert(name);
                lines.push(line);
            }
            None => rounds.push((BTreeSet::from([name]), vec![line])),
        }
    }
    rounds.into_iter().map(|(_, lines)| lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_one_package_are_fetched_one_after_another() {
        let text = "# ours\nA_b==1 --hash=x\nc==2\n\na.B==2 --hash=y\n";
        assert_eq!(rounds(text), [vec!["A_b==1 --hash=x", "c==2"], vec!["a.B==2 --hash=y"]]);
    }
}
