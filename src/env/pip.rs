//! Runs Python and pip as child processes, and converts their output to progress events and errors.
//!
//! pip uses the user's configuration of indexes and certificates. Child processes inherit this process's environment
//! variables, except for two kinds: variables that would change what Python runs or how pip installs, and variables
//! that contain keys, because pip runs packages' code.
//!
//! A build locks its folder with an empty file. Its child processes inherit the handle of this file as their standard
//! input. So if this process is killed, the lock is held until the last child has ended, and nobody else builds into
//! the same folder meanwhile.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;

use super::lock::LockedPackage;
use super::{BuildProgress, OnProgress, secret_variables};
use crate::error::{Error, Result};

/// Number of lines quoted in an error from the end of a failed command's output.
const LINES: usize = 12;

/// Variables removed from the environment, because they would change what Python runs or how pip installs.
pub(super) const TAKEN_AWAY: [&str; 12] = [
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "VIRTUAL_ENV",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_DRY_RUN",
    "PIP_REPORT",
    "PIP_NO_DEPS",
];

/// Creates an environment without packages at `prefix`.
pub(super) async fn make_venv(
    interpreter: &Path,
    prefix: &Path,
    lock: Option<&File>,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let arguments = [OsStr::new("-m"), OsStr::new("venv"), prefix.as_os_str()];
    run(interpreter, &arguments, "make a venv", 0, lock, on_progress).await
}

/// How packages are installed.
#[derive(Debug, Clone, Copy)]
pub(super) struct InstallOptions {
    /// Whether each package must have one of the hashes in the requirements file.
    pub(super) hashes: bool,
    /// Whether packages must be wheels, which run no code when they are installed.
    pub(super) wheels_only: bool,
}

/// Installs exactly the packages of a requirements file.
pub(super) async fn install(
    python: &Path,
    requirements: &Path,
    options: InstallOptions,
    count: usize,
    lock: &File,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let mut arguments: Vec<&OsStr> =
        ["-m", "pip", "install", "--no-input", "--progress-bar=off", "--no-compile", "--no-deps"]
            .map(OsStr::new)
            .into();
    if options.wheels_only {
        arguments.push(OsStr::new("--only-binary=:all:"));
    }
    if options.hashes {
        arguments.push(OsStr::new("--require-hashes"));
    }
    arguments.extend([OsStr::new("-r"), requirements.as_os_str()]);
    run(python, &arguments, "install the packages", count as u64, Some(lock), on_progress).await
}

/// Checks that no installed package lacks a dependency.
pub(super) async fn check(python: &Path, lock: &File, on_progress: OnProgress<'_>) -> Result<()> {
    let arguments = ["-m", "pip", "check"].map(OsStr::new);
    run(
        python,
        &arguments,
        "check the packages, whose versions were locked for another target,",
        0,
        Some(lock),
        on_progress,
    )
    .await
}

/// Compiles all Python files in a folder to bytecode, because programs that use the folder later cannot write to it.
/// Invalid files, which some packages contain for their tests, are skipped.
///
/// The path `stripped` is removed from the paths in the bytecode, so that the result doesn't depend on the folder;
/// Python corrects these paths when it reads the bytecode.
pub(super) async fn compile(
    python: &Path,
    folder: &Path,
    stripped: Option<&Path>,
    lock: &File,
    on_progress: OnProgress<'_>,
) {
    // The bytecode has no modification times of source files, so that two builds of one lock are identical.
    // Without `-I` and `-S`, files of the installed packages (`.pth`) or of the current folder could run code.
    let options = ["-I", "-S", "-c", include_str!("compile_all.py")];
    let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    arguments.push(folder.as_os_str());
    arguments.extend(stripped.map(Path::as_os_str));
    // Ignore a failure, because it only makes imports slower.
    let _ = run(python, &arguments, "compile", 0, Some(lock), on_progress).await;
}

/// A target other than this machine, for which packages are solved.
pub(super) struct ForeignTarget<'a> {
    /// Minor version of Python, such as `3.12`.
    pub(super) python: &'a str,
    /// Processor in pip's notation, such as `x86_64`.
    pub(super) processor: &'a str,
}

/// Solves a requirements file with pip's resolver without installing anything. Returns exact versions and hashes.
///
/// `scratch` is an empty folder for temporary files.
pub(super) async fn solve(
    python: &Path,
    requirements: &Path,
    constraints: Option<&Path>,
    foreign: Option<&ForeignTarget<'_>>,
    wheels_only: bool,
    scratch: &Path,
    on_progress: OnProgress<'_>,
) -> Result<Vec<LockedPackage>> {
    let report = scratch.join("report.json");
    let mut arguments: Vec<String> = [
        "-m",
        "pip",
        "install",
        "--no-input",
        "--progress-bar=off",
        "--dry-run",
        "--ignore-installed",
        "--prefer-binary",
    ]
    .map(str::to_owned)
    .into();
    if wheels_only {
        arguments.push("--only-binary=:all:".to_owned());
    }
    if let Some(target) = foreign {
        arguments.extend(foreign_arguments(target));
        arguments.push(format!("--target={}", scratch.join("target").display()));
    }
    let mut arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    arguments.extend([OsStr::new("--report"), report.as_os_str(), OsStr::new("-r"), requirements.as_os_str()]);
    if let Some(constraints) = constraints {
        arguments.extend([OsStr::new("-c"), constraints.as_os_str()]);
    }
    run(python, &arguments, "find versions that fit together", 0, None, on_progress).await?;
    if let Some(target) = foreign {
        let code = ["-I", "-c", include_str!("closure.py")].map(OsStr::new);
        let names =
            [report.as_os_str(), OsStr::new(target.python), OsStr::new(target.processor), requirements.as_os_str()];
        run(python, &[&code[..], &names[..]].concat(), "find all packages of another target", 0, None, on_progress)
            .await?;
    }
    Ok(packages(&read_report(&report)?)?.into_iter().map(|(package, _)| package).collect())
}

/// Solves a requirements file for an environment that already contains packages. Requirements that these packages
/// satisfy are not installed again; conda treats the pip packages of an `environment.yml` in the same way. Returns the
/// packages to install, with the names of their files.
#[cfg(feature = "conda")]
pub(super) async fn solve_over(
    python: &Path,
    requirements: &Path,
    scratch: &Path,
    on_progress: OnProgress<'_>,
) -> Result<Vec<(LockedPackage, String)>> {
    let report = scratch.join("report.json");
    let mut arguments: Vec<&OsStr> =
        ["-m", "pip", "install", "--no-input", "--progress-bar=off", "--dry-run", "--prefer-binary", "--report"]
            .map(OsStr::new)
            .into();
    arguments.extend([report.as_os_str(), OsStr::new("-r"), requirements.as_os_str()]);
    run(python, &arguments, "find versions that fit together", 0, None, on_progress).await?;
    packages(&read_report(&report)?)
}

/// Downloads into a folder exactly the packages that a requirements file lists.
pub(super) async fn download(
    python: &Path,
    requirements: &Path,
    into: &Path,
    count: usize,
    lock: &File,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let mut arguments: Vec<&OsStr> = [
        "-m",
        "pip",
        "download",
        "--no-input",
        "--progress-bar=off",
        "--no-deps",
        "--require-hashes",
        "--prefer-binary",
    ]
    .map(OsStr::new)
    .into();
    arguments.extend([OsStr::new("-d"), into.as_os_str(), OsStr::new("-r"), requirements.as_os_str()]);
    run(python, &arguments, "download the packages", count as u64, Some(lock), on_progress).await
}

/// Installs exactly the packages that a requirements file lists. Takes them from `folders`, without a network.
#[cfg(feature = "conda")]
pub(super) async fn install_from(
    python: &Path,
    requirements: &Path,
    folders: &[std::path::PathBuf],
    lock: &File,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let mut arguments: Vec<&OsStr> = [
        "-m",
        "pip",
        "install",
        "--no-input",
        "--progress-bar=off",
        "--no-compile",
        "--no-deps",
        "--no-index",
        "--require-hashes",
    ]
    .map(OsStr::new)
    .into();
    for folder in folders {
        arguments.extend([OsStr::new("--find-links"), folder.as_os_str()]);
    }
    arguments.extend([OsStr::new("-r"), requirements.as_os_str()]);
    run(python, &arguments, "install the packages", folders.len() as u64, Some(lock), on_progress).await
}

fn read_report(report: &Path) -> Result<Vec<u8>> {
    std::fs::read(report)
        .map_err(|error| Error::io("read", report, error).hint("pip must be 22.2 or newer: use a newer interpreter"))
}

/// Returns pip's arguments for another target: only wheels, for CPython, and for any manylinux version that glibc 2.28
/// (2018) supports.
fn foreign_arguments(target: &ForeignTarget<'_>) -> Vec<String> {
    const GLIBC: std::ops::RangeInclusive<u32> = 5..=28;
    let digits = target.python.replace('.', "");
    let mut arguments = vec![format!("--python-version={}", target.python)];
    arguments.extend(["--implementation=cp".to_owned()]);
    arguments.extend([format!("cp{digits}"), "abi3".to_owned(), "none".to_owned()].map(|abi| format!("--abi={abi}")));
    let old = ["manylinux1", "manylinux2010", "manylinux2014"].map(str::to_owned);
    let new = GLIBC.rev().map(|minor| format!("manylinux_2_{minor}"));
    arguments.extend(new.chain(old.into_iter().rev()).map(|name| format!("--platform={name}_{}", target.processor)));
    arguments
}

#[derive(Deserialize)]
struct PipReport {
    install: Vec<ReportedInstall>,
}

#[derive(Deserialize)]
struct ReportedInstall {
    metadata: Metadata,
    download_info: Download,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct Download {
    url: String,
    archive_info: Option<PipArchive>,
}

#[derive(Deserialize)]
struct PipArchive {
    #[serde(default)]
    hashes: std::collections::BTreeMap<String, String>,
    hash: Option<String>,
}

/// Parses pip's installation report. Returns packages and names of their files, sorted by package.
fn packages(report: &[u8]) -> Result<Vec<(LockedPackage, String)>> {
    let report: PipReport = serde_json::from_slice(report)
        .map_err(|error| Error::machine("failed to read pip's report").because(error).hint("use a newer pip"))?;
    let mut packages = report
        .install
        .into_iter()
        .map(|installed| {
            let Metadata { name, version } = installed.metadata;
            let archive = installed.download_info.archive_info;
            let hash = archive.and_then(|mut archive| {
                archive.hashes.remove("sha256").or_else(|| archive.hash?.strip_prefix("sha256=").map(str::to_owned))
            });
            let sha256 = hash.ok_or_else(|| {
                Error::suite(format!("`{name}` {version} has no hash"))
                    .hint("take it from a package index, not from a folder or repository")
            })?;
            let path = installed.download_info.url.split(['?', '#']).next().unwrap_or_default();
            // Decode `+` and `!`: names of wheels may contain them, and URLs may write them as `%2B` and `%21`.
            let file = path.rsplit('/').next().unwrap_or_default();
            let file = file.replace("%2B", "+").replace("%2b", "+").replace("%21", "!");
            Ok((
                LockedPackage { name: name.to_lowercase().replace(['_', '.'], "-"), version, sha256: vec![sha256] },
                file,
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    packages.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    Ok(packages)
}

/// Runs Python until it ends. Each of the `expected` packages counts as one step of progress.
async fn run(
    python: &Path,
    arguments: &[&OsStr],
    what: &str,
    expected: u64,
    lock: Option<&File>,
    on_progress: OnProgress<'_>,
) -> Result<()> {
    let stdin = match lock {
        Some(lock) => lock.try_clone().map_err(|error| Error::io("run", python, error))?.into(),
        None => Stdio::null(),
    };
    let mut command = Command::new(python);
    command.args(arguments).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1").env("PYTHONNOUSERSITE", "1").env("LC_ALL", "C.UTF-8");
    for name in TAKEN_AWAY.iter().map(OsString::from).chain(secret_variables()) {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(|error| Error::io("run", python, error))?;
    let collected = std::sync::atomic::AtomicU64::new(0);
    let say = |line: &str| {
        let Some(name) = line.trim_start().strip_prefix("Collecting ") else { return };
        if expected > 0 {
            let count = collected.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            on_progress(BuildProgress::Step(count.min(expected), expected));
        }
        // Report only the package's name; pip's line also contains the requirements file.
        on_progress(BuildProgress::Detail(name.split(" (from").next().unwrap_or(name).to_owned()));
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let warn = |line: &str| {
        if is_retry(line) {
            on_progress(BuildProgress::Detail("the package index does not answer: trying again".to_owned()));
        }
    };
    let (stdout, stderr, status) = tokio::join!(last_lines(stdout, say), last_lines(stderr, warn), child.wait());
    let status = status.map_err(|error| Error::io("wait for", python, error))?;
    if status.success() {
        return Ok(());
    }
    let said = if stderr.is_empty() { stdout } else { stderr };
    let (retries, said): (Vec<String>, Vec<String>) = said.into_iter().partition(|line| is_retry(line));
    let text = said.join("\n");
    // pip does not always report a full disk as such, in particular when a venv fails to install pip, so check for free
    // space.
    let places = arguments.iter().map(Path::new).filter(|path| path.is_absolute());
    let is_full = places.chain([python, &std::env::temp_dir()]).any(is_out_of_room);
    let error = if is_full || text.contains("No space left on device") {
        Error::machine(format!("failed to {what}: the disk is full\n{text}"))
            .hint("make room, or put the cache elsewhere with `--cache DIR`; `autoexperiment env prune` removes envs")
    } else if text.contains("DO NOT MATCH THE HASHES") {
        Error::suite(format!("failed to {what}: a download does not match its hash in the lock file\n{text}")).hint(
            "do not install this download if you trust the lock file: the index served another file; lock the env again only \
             if the index replaced the package",
        )
    } else if let Some(retry) = retries.iter().rev().find(|line| line.contains("total=0,")) {
        Error::machine(format!("failed to {what}: the package index does not answer ({})", unanswered(retry))).hint(
            "connect this machine to a network, or give pip an index, a proxy or certificates in its own configuration",
        )
    } else {
        Error::machine(format!("failed to {what} ({status})\n{text}"))
            .hint("see pip's output above; usual causes are a version that does not exist for this Python, or no network (pip uses its own configuration of index, proxy and certificates)")
    };
    Err(error)
}

/// Whether a line of pip's output is the warning that pip repeats a request to an index.
fn is_retry(line: &str) -> bool {
    line.contains("Retrying (Retry(total=")
}

/// Extracts from pip's warning about a repeated request why the request failed. Leaves out the names of pip's internal
/// objects.
fn unanswered(warning: &str) -> &str {
    let after = warning.split_once("connection broken by ").map_or(warning, |(_, after)| after);
    let reason = ["Failed to establish a new connection: ", "object at 0x"].into_iter().find_map(|before| {
        let (_, after) = after.split_once(before)?;
        Some(if before.ends_with("0x") { after.split_once(": ")?.1 } else { after })
    });
    let reason = reason.unwrap_or(after);
    reason.rsplit_once(")': ").map_or(reason, |(reason, _)| reason).trim_matches(['\'', '"', ' '])
}

/// Whether the disk that contains a path has less than 1 MiB left.
fn is_out_of_room(path: &Path) -> bool {
    let disk = path.ancestors().find_map(|folder| nix::sys::statvfs::statvfs(folder).ok());
    disk.is_some_and(|disk| disk.blocks_available().saturating_mul(disk.fragment_size()) < 1 << 20)
}

/// Reads all lines, passes each line to `tell`, and returns the last lines.
async fn last_lines(stream: Option<impl AsyncRead + Unpin>, tell: impl Fn(&str)) -> VecDeque<String> {
    let mut kept = VecDeque::new();
    let Some(stream) = stream else { return kept };
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line).await, Ok(count) if count > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        tell(&text);
        if !text.trim().is_empty() {
            kept.push_back(text);
        }
        if kept.len() > LINES {
            kept.pop_front();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reason_is_taken_from_pips_warning_about_a_repeated_request() {
        let named = "WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection \
                     broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f1c2>: Failed \
                     to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/numpy/";
        assert!(is_retry(named));
        assert_eq!(unanswered(named), "[Errno -3] Temporary failure in name resolution");
        let newer = "WARNING: Retrying (Retry(total=1, connect=None, read=None, redirect=None, status=None)) after connection \
                     broken by 'NameResolutionError(\"<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f1c2>: Failed \
                     to resolve 'x' ([Errno -2] Name or service not known)\")': /simple/numpy/";
        assert_eq!(unanswered(newer), "Failed to resolve 'x' ([Errno -2] Name or service not known)");
        assert!(!is_retry("ERROR: No matching distribution found for numpy==1"));
    }
}
