//! Envs of npm packages: `npm ci` installs a folder's packages as in its `package-lock.json` and checks their hashes.
//! Installation scripts of packages are not run.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::cache::{CompletionMarker, EnvHold, clear, lock as lock_folder, stamp};
use super::prefix::protect;
use super::{BuildProgress, Env, OnProgress};
use crate::error::{Error, Result};
use crate::files::hex;

/// Version of the installation procedure; increase it to prevent folders installed earlier from being reused.
const FORMAT: &str = "npm 1";
const PACKAGE: &str = "package.json";
const LOCK: &str = "package-lock.json";
/// Maximum characters of npm's output in an error.
const SHOWN: usize = 2000;

/// Whether a folder's env consists of npm packages.
#[must_use]
pub fn is_npm(folder: &Path) -> bool {
    folder.join(LOCK).exists()
}

/// Returns the env of a folder, from the cache or newly installed. With `offline`, installs only from npm's own cache.
///
/// # Errors
/// Kind `Usage` for a missing or broken lock, `Machine` for a missing Node.js or a failed installation.
pub async fn build(folder: &Path, cache: &Path, offline: bool, on_progress: OnProgress<'_>) -> Result<Env> {
    let texts = read(folder)?;
    let node = program("node")?;
    let home = home(&texts, cache)?;
    let complete = match CompletionMarker::read(&home) {
        Some(complete) => complete,
        None => build_once(folder, &texts, &node, &home, cache, offline, on_progress).await?,
    };
    let prefix = home.join("npm");
    let variables = BTreeMap::from([("NODE".to_owned(), complete.interpreter.display().to_string())]);
    let hold = Some(EnvHold::new(&home, &complete)?);
    let read_only = std::iter::once(prefix.clone()).chain(complete.read_only).collect();
    Ok(Env { backend: "npm", digest: complete.digest, python: complete.python, prefix, read_only, variables, hold })
}

/// Whether the folder's env is already in the cache.
///
/// # Errors
/// Fails if the folder has no lock.
pub fn is_built(folder: &Path, cache: &Path) -> Result<bool> {
    Ok(CompletionMarker::read(&home(&read(folder)?, cache)?).is_some())
}

async fn build_once(
    folder: &Path,
    texts: &[String; 2],
    node: &Path,
    home: &Path,
    cache: &Path,
    offline: bool,
    on_progress: OnProgress<'_>,
) -> Result<CompletionMarker> {
    let envs = home.parent().unwrap_or(home);
    std::fs::create_dir_all(envs).map_err(|error| Error::io("create", envs, error))?;
    let taken = lock_folder(home, on_progress).await?;
    if let Some(complete) = CompletionMarker::read(home) {
        return Ok(complete);
    }
    clear(home)?;
    let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let built = install(texts, node, home, &NpmCache { folder: cache, offline }, &id, &taken, on_progress).await;
    if built.is_err() {
        clear(home)?;
    }
    built
}

/// Where npm keeps what it downloads.
struct NpmCache<'a> {
    /// The cache of this program.
    folder: &'a Path,
    /// Whether npm must not use the network.
    offline: bool,
}

async fn install(
    texts: &[String; 2],
    node: &Path,
    home: &Path,
    downloads: &NpmCache<'_>,
    id: &str,
    taken: &File,
    on_progress: OnProgress<'_>,
) -> Result<CompletionMarker> {
    let prefix = home.join("npm");
    std::fs::create_dir_all(&prefix).map_err(|error| Error::io("create", &prefix, error))?;
    for (name, text) in [PACKAGE, LOCK].iter().zip(texts) {
        let path = prefix.join(name);
        std::fs::write(&path, text).map_err(|error| Error::io("write", &path, error))?;
    }
    on_progress(BuildProgress::Task(format!("installing `{id}` by npm")));
    let npm = program("npm")?;
    let output = tokio::process::Command::new(&npm)
        .args(["ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error", "--cache"])
        .arg(downloads.folder.join("downloads-npm"))
        .args(downloads.offline.then_some("--offline"))
        .current_dir(&prefix)
        // npm continues to run if this process is killed, so it must hold the lock, too.
        .stdin(taken.try_clone().map_err(|error| Error::machine("failed to copy a file handle").because(error))?)
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Error::machine(format!("failed to start `{}`", npm.display())).because(error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = said.trim().chars().take(SHOWN).collect();
        let error = Error::machine(format!("npm cannot install `{id}`: {said}"));
        if downloads.offline {
            return Err(
                error.hint("repeat the command once without `--offline`: what it downloads can then be used offline")
            );
        }
        return Err(
            error.hint("connect this machine to npm's index, or name another index with `npm config set registry URL`")
        );
    }
    protect(&prefix)?;
    let version = tokio::process::Command::new(node).arg("--version").output().await;
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let folder = node.parent().filter(|folder| !folder.starts_with("/usr")).map(Path::to_owned);
    let complete = CompletionMarker {
        id: id.to_owned(),
        backend: "npm".to_owned(),
        python: version.clone(),
        digest: hex(&Sha256::digest(format!("{FORMAT}\n{version}\n{}\n{}", texts[0], texts[1]))),
        read_only: folder.into_iter().collect(),
        stamp: stamp(node).map_err(|error| Error::io("read", node, error))?,
        interpreter: node.to_owned(),
        variables: BTreeMap::new(),
    };
    complete.write(home)?;
    Ok(complete)
}

fn read(folder: &Path) -> Result<[String; 2]> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| {
            Error::usage(format!("failed to read `{}`", path.display())).because(error).hint(
                "an npm program needs a `package.json` and the lock file made by `npm install --package-lock-only`",
            )
        })
    };
    Ok([read(PACKAGE)?, read(LOCK)?])
}

fn home(texts: &[String; 2], cache: &Path) -> Result<PathBuf> {
    let key = hex(&Sha256::digest(format!("{FORMAT}\n{}\n{}", texts[0], texts[1])));
    let cache = std::path::absolute(cache).map_err(|error| Error::io("find", cache, error))?;
    Ok(cache.join("envs").join(&key[..32]))
}

/// Finds a program in PATH. Links are resolved for `node` only.
fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name)).filter(|file| file.is_file());
    found.next().map(|file| if name == "node" { file.canonicalize().unwrap_or(file) } else { file }).ok_or_else(|| {
        Error::machine(format!("`{name}` is not installed, and this agent is a program from npm"))
            .hint("install Node.js with npm (Debian: `apt install nodejs npm`)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_broken_npm_lock_is_reported_as_npms_failure_and_nothing_counts_as_built() {
        if program("npm").is_err() {
            eprintln!("skipped: npm is not installed");
            return;
        }
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert!(!is_npm(folder.path()));
        std::fs::write(folder.path().join(PACKAGE), r#"{"name": "x", "dependencies": {"y": "1.0.0"}}"#).unwrap();
        std::fs::write(
            folder.path().join(LOCK),
            r#"{"name": "x", "lockfileVersion": 3, "packages": {"": {"name": "x"}}}"#,
        )
        .unwrap();
        let error = build(folder.path(), cache.path(), false, &|_| {}).await.unwrap_err();
        assert!(error.to_string().contains("npm cannot install"), "{error}");
        assert!(!is_built(folder.path(), cache.path()).unwrap());
    }
}
