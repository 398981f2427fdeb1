//! C extensions of a paper's repo: built once per repo, env and command, in a sandbox, and shown in every sandbox of
//! the paper.
//!
//! The products are kept in the cache, `<cache>/builds/<key>/tree`, laid out as in the repo. A folder appears there
//! only once it is complete, so a killed build leaves no partial result. Only files that the manifest names as products
//! are kept: other files left by a build (objects, generated C, copies of the sources) may contain masked bodies.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::env::Env;
use crate::error::{Error, FailureKind, Result};
use crate::files::PartsDigest;
use crate::run::check::tail;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::sandbox::{Command, Exec, ExecLimits, Exit, Fault, patience};
use crate::suite::Paper;
use crate::workspace::{ChangeKind, ChangeLimits, Changes, FileChange, Snapshot, remove_tree};

/// Version of the cache key. Increase it if this program changes which files of a build it caches.
const FORMAT: &[u8] = b"autoexperiment build 1\n";

/// Time limit of a build.
const LIMIT: Duration = Duration::from_mins(30);

/// Limits on reading the tree after a build.
const READ: ChangeLimits = ChangeLimits { file: 256 << 20, total: 1 << 30, files: 100_000, names: 16 << 20 };

/// Returns the copy of a paper's repo for sandboxes, with the products of its build if it has one.
///
/// # Errors
/// Kind `Suite` if the env's interpreter does not fit the paper's compiled code, or if the build fails, makes no
/// products, or makes products for another interpreter; `Machine` if the cache cannot be written; `Infrastructure` if
/// the sandbox is lost.
pub async fn built(
    paper: &Paper,
    snapshot: Snapshot,
    env: &Env,
    base: Option<&str>,
    machine: &Machine,
    observer: &dyn Observer,
) -> Result<Snapshot> {
    require_abi(paper, env)?;
    let Some(command) = &paper.build else { return Ok(snapshot) };
    let builds = machine.cache.join("builds");
    let key = key(paper, command, &snapshot, env, base, machine);
    let home = builds.join(&key);
    if !home.join("complete").exists() {
        fs::create_dir_all(&builds).map_err(|error| Error::io("create", &builds, error))?;
        let _lock = lock(builds.join(format!("{key}.lock"))).await?;
        if !home.join("complete").exists() {
            observer.on(RunEvent::Stage(Stage::new("building the extensions of", &paper.id)));
            let partial = builds.join(format!("{key}.partial"));
            for leftover in [&partial, &home] {
                remove_tree(leftover).map_err(|error| Error::io("remove", leftover, error))?;
            }
            let changes = make(paper, command, &snapshot, env, machine).await?;
            keep(paper, env, &changes, &partial.join("tree"))?;
            let marker = partial.join("complete");
            File::create(&marker).map_err(|error| Error::io("create", &marker, error))?;
            fs::rename(&partial, &home).map_err(|error| Error::io("rename", &partial, error))?;
        }
    }
    snapshot.with_products(&home.join("tree"), &machine.cache, machine.backend.owner())
}

/// Rejects an interpreter that does not fit the paper's compiled code.
fn require_abi(paper: &Paper, env: &Env) -> Result<()> {
    let Some(abi) = paper.abi.as_ref().filter(|abi| **abi != env.abi()) else { return Ok(()) };
    let minor = abi.trim_start_matches("cpython-3");
    Err(Error::suite(format!(
        "the compiled code of paper `{}` is for `{abi}`, but the env `{}` has Python {}",
        paper.id, paper.env, env.python
    ))
    .hint(format!(
        "let the env ask for that interpreter (`python=3.{minor}` in its environment.yml, then `autoexperiment env lock {}`); \
         or write `abi = \"{}\"` into the manifest, and record gold again",
        paper.env,
        env.abi()
    )))
}

/// Digest of everything that decides what a build makes.
fn key(paper: &Paper, command: &str, snapshot: &Snapshot, env: &Env, base: Option<&str>, machine: &Machine) -> String {
    let mut parts = PartsDigest::default();
    parts.add(FORMAT);
    for part in [snapshot.digest(), &env.digest, &env.python, machine.backend.name(), std::env::consts::ARCH, command] {
        parts.add(part);
    }
    parts.add(base.unwrap_or_default());
    for glob in paper.product_globs() {
        parts.add(glob);
    }
    parts.finish()
}

/// Waits until no other process makes the same build, without blocking an async thread.
async fn lock(path: PathBuf) -> Result<File> {
    let wait = move || {
        let file = File::create(&path).map_err(|error| Error::io("create", &path, error))?;
        file.lock().map_err(|error| Error::io("lock", &path, error))?;
        Ok(file)
    };
    tokio::task::spawn_blocking(wait)
        .await
        .map_err(|error| Error::internal("waiting for a lock failed").because(error))?
}

/// Runs the command on a fresh copy of the repo and returns what it changed.
async fn make(paper: &Paper, command: &str, snapshot: &Snapshot, env: &Env, machine: &Machine) -> Result<Changes> {
    let lost = |fault: Fault| Error::new(FailureKind::Infrastructure, "the sandbox was lost").because(fault);
    let workspace = machine.workspace(snapshot, &[])?;
    let mut sandbox = machine.backend.start(&machine.spec(env, &workspace, None)).await?;
    let limits = ExecLimits { wall: LIMIT, patience: patience(LIMIT), grace: Duration::from_secs(2), output: 4 << 20 };
    let exec = match sandbox.exec(&Command::shell(command), &limits).await {
        Ok(exec) => exec,
        Err(Fault::Refused(why)) => return Err(fault(paper, &format!("could not be run: {why}"))),
        Err(fault) => return Err(lost(fault)),
    };
    sandbox.destroy().await.map_err(lost)?;
    if let Some(why) = failure(&exec) {
        return Err(fault(paper, &why));
    }
    let changes = workspace.changes(&READ)?;
    workspace.remove()?;
    Ok(changes)
}

fn fault(paper: &Paper, why: &str) -> Error {
    Error::suite(format!("the build of paper `{}` {why}", paper.id)).hint(
        "it runs in the repo's root, in a sandbox without a network: packages that it needs (setuptools, cython, numpy) \
         must be in the env, and tools (a compiler) on this machine or, with containers, in their base image",
    )
}

fn failure(exec: &Exec) -> Option<String> {
    let said = [tail(&exec.stdout), tail(&exec.stderr)].join("\n");
    let why = match exec.exit {
        Exit::Code(0) => return None,
        Exit::Code(code) => format!("ended with exit code {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
        Exit::TimedOut => format!("did not end within {} minutes", LIMIT.as_secs() / 60),
        Exit::DiskFull => "wrote more than the disk limit".to_owned(),
    };
    Some(format!("{why}\n{}", said.trim()).trim_end().to_owned())
}

/// Writes the files that the build has made to a folder.
fn keep(paper: &Paper, env: &Env, changes: &Changes, folder: &Path) -> Result<()> {
    let set = paper.product_set();
    let mut kept: Vec<&FileChange> = Vec::new();
    for change in changes.files.iter().filter(|change| set.is_match(&change.path) && !is_aside(&change.path)) {
        match change.kind {
            ChangeKind::Added => kept.push(change),
            ChangeKind::Modified | ChangeKind::Removed => {
                return Err(fault(paper, &format!("changes `{}`, which is in the repo", change.path))
                    .hint("remove it from the repo, so that only the build makes it"));
            }
            ChangeKind::Skipped => {
                return Err(fault(paper, &format!("makes `{}`, which is a link or too large to be kept", change.path))
                    .hint("let it make a regular file of at most 256 MB"));
            }
        }
    }
    if kept.is_empty() {
        return Err(fault(paper, "made no file that matches the products").hint(format!(
            "products are files that match {}; build in place (`python setup.py build_ext --inplace`), or name them with \
             `products` in the manifest",
            paper.product_globs().iter().map(|glob| format!("`{glob}`")).collect::<Vec<_>>().join(", ")
        )));
    }
    for change in kept {
        if let Some(tag) = tag(&change.path).filter(|tag| *tag != env.abi()) {
            return Err(fault(
                paper,
                &format!("made `{}`, which is for `{tag}`, but the env has Python {}", change.path, env.python),
            )
            .hint("call `python`, which is the env's, not the system's own interpreter"));
        }
        let path = folder.join(&change.path);
        let failed = |error| Error::io("write", &path, error);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, &change.bytes).map_err(failed)?;
        let mode = if change.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).map_err(failed)?;
    }
    Ok(())
}

/// Whether a file is in `build`, where setuptools puts copies of the sources.
fn is_aside(path: &str) -> bool {
    path.starts_with("build/")
}

/// The interpreter in the file name of an extension module: `cpython-312` for `x.cpython-312-x86_64-linux-gnu.so`.
#[must_use]
pub fn tag(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?.strip_suffix(".so")?;
    let start = name.rfind(".cpython-")? + 1;
    let digits = name[start + "cpython-".len()..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| &name[start..start + "cpython-".len() + digits])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_is_read_from_the_file_name_of_an_extension() {
        assert_eq!(tag("a/_x.cpython-312-x86_64-linux-gnu.so"), Some("cpython-312"));
        assert_eq!(tag("a.cpython-39/_x.abi3.so"), None);
        assert_eq!(tag("_x.so"), None);
        assert_eq!(tag("_x.cpython-313t-x86_64-linux-gnu.so"), Some("cpython-313"));
    }
}
