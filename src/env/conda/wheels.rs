//! The `pip:` part of an env that is otherwise made of conda packages.
//!
//! Downloaded files are cached by hash in `<cache>/wheels/<sha256>/<file>`, so that an env can be rebuilt without a
//! network.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::lock::PipPackage;
use crate::env::pip;
use crate::env::{BuildProgress, OnProgress};
use crate::error::{Error, Result};

/// Solves the requirements for pip to exact packages.
pub(super) async fn solve(python: &Path, lines: &[String], on_progress: OnProgress<'_>) -> Result<Vec<PipPackage>> {
    on_progress(BuildProgress::Task("solving for pip".into()));
    let scratch = scratch(&std::env::temp_dir())?;
    let requirements = write(scratch.path(), &(lines.join("\n") + "\n"))?;
    let solved = pip::solve_over(python, &requirements, scratch.path(), on_progress).await?;
    // Refuse source packages: to build one, pip would download tools that are not locked.
    if let Some((package, file)) =
        solved.iter().find(|(_, file)| Path::new(file).extension().is_none_or(|kind| kind != "whl"))
    {
        return Err(Error::suite(format!(
            "`{}` {} is only available as source (`{file}`), not as a wheel",
            package.name, package.version
        ))
        .hint("request a version that has a wheel, or take the package from a conda channel"));
    }
    Ok(solved
        .into_iter()
        .map(|(package, file)| PipPackage {
            name: package.name,
            version: package.version,
            file,
            sha256: package.sha256.into_iter().next().unwrap_or_default(),
        })
        .collect())
}

/// Installs exactly these packages; downloads those that are not cached. `home` is the folder of the env that is being
/// built.
///
/// # Errors
/// Kind `Suite` for a file that does not match its hash, `Machine` for a file that cannot be downloaded.
pub(super) async fn install(
    python: &Path,
    packages: &[PipPackage],
    cache: &Path,
    home: &Path,
    offline: bool,
    taken: &File,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let wheels = cache.join("wheels");
    let place = |package: &PipPackage| wheels.join(&package.sha256);
    let missing: Vec<&PipPackage> =
        packages.iter().filter(|package| !place(package).join(&package.file).is_file()).collect();
    if offline && !missing.is_empty() {
        let names: Vec<String> = missing.iter().map(|package| format!("`{}`", package.file)).collect();
        return Err(Error::machine(format!("offline, and not in the cache: {}", names.join(", ")))
            .hint("build the env once without `--offline`"));
    }
    if !missing.is_empty() {
        on_progress(BuildProgress::Task(format!("downloading {} packages of pip", missing.len())));
        std::fs::create_dir_all(&wheels).map_err(|error| Error::io("create", &wheels, error))?;
        let scratch = scratch(&wheels)?;
        let requirements = write(scratch.path(), &requirements(missing.iter().copied()))?;
        let into = scratch.path().join("files");
        pip::download(python, &requirements, &into, missing.len(), taken, on_progress).await?;
        for package in missing {
            keep(&into, package, &place(package))?;
        }
    }
    on_progress(BuildProgress::Task(format!("installing {} packages of pip", packages.len())));
    let list = write(home, &requirements(packages))?;
    let folders: Vec<PathBuf> = packages.iter().map(place).collect();
    pip::install_from(python, &list, &folders, taken, on_progress).await
}

/// Moves a downloaded file into the cache. Fails if pip has downloaded a file of another name than the locked one.
fn keep(from: &Path, package: &PipPackage, place: &Path) -> Result<()> {
    let file = from.join(&package.file);
    if !file.is_file() {
        return Err(Error::suite(format!("pip downloaded another file of `{}` than `{}`", package.name, package.file))
            .hint("lock the env again: the index no longer has what was locked"));
    }
    std::fs::create_dir_all(place).map_err(|error| Error::io("create", place, error))?;
    let to = place.join(&package.file);
    std::fs::rename(&file, &to).map_err(|error| Error::io("write", &to, error))
}

fn requirements<'a>(packages: impl IntoIterator<Item = &'a PipPackage>) -> String {
    let mut text = String::new();
    for package in packages {
        let _ = writeln!(text, "{}=={} --hash=sha256:{}", package.name, package.version, package.sha256);
    }
    text
}

fn scratch(within: &Path) -> Result<tempfile::TempDir> {
    tempfile::tempdir_in(within).map_err(|error| Error::io("create", within, error))
}

fn write(folder: &Path, text: &str) -> Result<PathBuf> {
    let path = folder.join("requirements.txt");
    std::fs::write(&path, text).map_err(|error| Error::io("write", &path, error))?;
    Ok(path)
}
