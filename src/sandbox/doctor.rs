//! `autoexperiment doctor`: checks what works on this machine, and suggests how to mend the rest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::canary;
use super::containers::{EngineKind, inspect};
use super::exposed::{exposures, system};
use super::local::{LocalBackend, MachineReport};
use super::search::WantedSecrets;
use crate::files::usable::{CACHE, NeededFolder, SCRATCH, closed};

/// Free disk space in bytes that suffices to build an env and make a few attempts.
const ENOUGH_DISK: u64 = 5 << 30;

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorResult {
    /// Name of the check, such as `overlay workspaces`.
    pub name: &'static str,
    /// Whether the check passed.
    pub ok: bool,
    /// Details for the user: the version, path or error that was found.
    pub detail: String,
    /// Suggestion for the user, if the check failed and something can be done about it.
    pub remedy: Option<String>,
}

/// Time limit in seconds of the search for secrets inside a sandbox. The search begins with manually installed
/// software, in case the time is too short for all files.
const SEARCH: u64 = 20;

/// Runs all checks. Envs are stored in the folder `cache`, and attempts in the folder `scratch`. No agent may see the
/// `hidden` folders. `secrets` are pairs of a name and a text; no sandbox may show these texts.
pub async fn examine(
    cache: &Path,
    scratch: &Path,
    hidden: &[PathBuf],
    secrets: &[(String, Vec<u8>)],
) -> Vec<DoctorResult> {
    let report = MachineReport::collect().await;
    let mut findings = sandbox(&report);
    findings.extend([engine(EngineKind::Docker).await, engine(EngineKind::Podman).await]);
    let walker = report.walker();
    findings.push(python(walker));
    findings.push(place("cache", CACHE, cache, walker));
    findings.push(place("scratch folder", SCRATCH, scratch, walker));
    findings.push(disk(cache));
    findings.push(out_of_sight(&in_sight(hidden)));
    findings.push(searched(hidden, secrets).await);
    findings
}

/// A folder that agents must not see, inside a folder that every sandbox shows.
pub struct ExposedFolder {
    /// The folder to be hidden, such as `/usr/local/src/suite`.
    pub hidden: PathBuf,
    /// The folder that contains the hidden folder and that every sandbox shows to agents, such as `/usr`.
    pub shown: PathBuf,
    /// Whether the hidden folder is the shown folder itself. Then no sandbox can cover the hidden folder, because the
    /// whole shown folder would be covered.
    pub is_whole: bool,
}

/// Returns those of the folders in `hidden` that are inside a folder that every sandbox shows: a folder of the system,
/// or the prefix of the Python that [`examine`] finds.
#[must_use]
pub fn in_sight(hidden: &[PathBuf]) -> Vec<ExposedFolder> {
    let prefix = interpreter().map(|found| found.prefix);
    let found =
        exposures(prefix.iter().map(PathBuf::as_path).chain(system().map(|folder| -> &Path { folder })), hidden);
    let seen = |found: super::exposed::Exposure| ExposedFolder {
        is_whole: found.is_whole(),
        hidden: found.hidden,
        shown: found.shown,
    };
    found.into_iter().map(seen).collect()
}

/// Searches for the secrets from inside a sandbox.
async fn searched(hidden: &[PathBuf], secrets: &[(String, Vec<u8>)]) -> DoctorResult {
    let mut wanted = WantedSecrets::within(SEARCH);
    let names: Vec<&str> = secrets.iter().filter_map(|(name, text)| wanted.add(text).map(|_| name.as_str())).collect();
    let prefix: Vec<PathBuf> = interpreter().map(|found| found.prefix).into_iter().collect();
    let found = match LocalBackend::probe().await {
        Ok(backend) => canary::search(&backend, (&prefix, hidden), wanted).await,
        Err(error) => Err(error.message),
    };
    let remedy =
        "move these files to folders that sandboxes do not show, or name them with `--suite`, `--cache`, `--runs`";
    let (ok, detail) = match found {
        Err(why) => (false, format!("not searched: {why}")),
        Ok(found) => {
            let seen: BTreeSet<String> = found
                .hits
                .iter()
                .filter_map(|(secret, at)| Some(format!("`{}` in `{at}`", names.get(*secret as usize)?)))
                .collect();
            let result = match (seen.first(), seen.len()) {
                (None, _) => "found no gold and no original code".to_owned(),
                (Some(first), 1) => first.clone(),
                (Some(first), count) => format!("{first} and {} more", count - 1),
            };
            let rest = if found.is_complete { "" } else { "; the time limit ended the search early" };
            let amount = found.bytes as f64 / 1e9;
            (
                seen.is_empty(),
                format!("searched {} files, {amount:.1} GB, for {} texts: {result}{rest}", found.files, names.len()),
            )
        }
    };
    DoctorResult { name: "what sandboxes show", ok, detail, remedy: (!ok).then(|| remedy.to_owned()) }
}

fn out_of_sight(found: &[ExposedFolder]) -> DoctorResult {
    let is_refused = |one: &&ExposedFolder| one.is_whole;
    let refused = found.iter().find(is_refused);
    DoctorResult {
        name: "suite, cache and home are hidden",
        ok: refused.is_none(),
        detail: refused.or(found.first()).map_or_else(
            || "none of them is in a folder that sandboxes can read".into(),
            |one| {
                let what = if is_refused(&one) { "runs refuse to start" } else { "sandboxes cover it" };
                format!("`{}` is in `{}`, which sandboxes can read: {what}", one.hidden.display(), one.shown.display())
            },
        ),
        remedy: refused
            .map(|one| format!("move `{}`, or use a Python whose prefix does not contain it", one.hidden.display())),
    }
}

/// Returns the findings about local sandboxes.
fn sandbox(report: &MachineReport) -> Vec<DoctorResult> {
    let tried = |name, result: &Result<(), String>, works: &str, remedy: &dyn Fn() -> String| DoctorResult {
        name,
        ok: result.is_ok(),
        detail: result.as_ref().err().cloned().unwrap_or_else(|| works.to_owned()),
        remedy: result.is_err().then(remedy),
    };
    let user = if report.root { "as root" } else { "as an ordinary user" };
    let yes_no = |name, ok: bool, detail: String, remedy: &str| DoctorResult {
        name,
        ok,
        detail,
        remedy: (!ok).then(|| remedy.to_owned()),
    };
    vec![
        tried("sandbox with namespaces", &report.namespaces, user, &namespaces_remedy),
        tried("overlay workspaces", &report.overlay, "attempts need no copy of the repo", &|| {
            "Linux 5.11 or newer, with the run's folder on a local file system (ext4, xfs, btrfs); until then every \
             attempt gets a full copy"
                .into()
        }),
        tried("sandbox with landlock only", &report.landlock, "used where namespaces are forbidden", &|| {
            "Linux 5.13 or newer with `landlock` in the kernel's `lsm=` parameter".into()
        }),
        yes_no(
            "landlock",
            report.landlock_abi >= 6,
            format!("version {} on Linux {} {}", report.landlock_abi, report.kernel, report.architecture),
            "Linux 6.12 or newer, for version 6, which also confines signals and abstract sockets",
        ),
        yes_no("system call filter", report.seccomp, "seccomp".into(), "a kernel with CONFIG_SECCOMP_FILTER"),
        yes_no(
            "memory limit per sandbox",
            report.memory_cgroup,
            report.cgroups.clone(),
            "a writable cgroup with memory control: start with `systemd-run --user --scope -p Delegate=yes ...`, or \
             as root; until then each process is limited by itself",
        ),
        yes_no(
            "process limit per sandbox",
            report.processes_cgroup,
            report.cgroups.clone(),
            "a writable cgroup with pids control, started in the same way; until then the kernel's limit per user \
             applies",
        ),
    ]
}

/// Suggests how to allow namespaces, judging by the kernel's settings.
fn namespaces_remedy() -> String {
    let setting = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        "`sudo sysctl kernel.unprivileged_userns_clone=1`".into()
    } else if setting("/proc/sys/user/max_user_namespaces") == "0" {
        "`sudo sysctl user.max_user_namespaces=10000`".into()
    } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or an AppArmor profile for this program that \
         allows `userns`"
            .into()
    } else if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        "start the container with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined \
         --security-opt systempaths=unconfined`"
            .into()
    } else {
        "Linux 5.12 or newer with user namespaces".into()
    }
}

/// Checks whether a container engine answers, for `--sandbox docker` and `--sandbox podman`.
async fn engine(kind: EngineKind) -> DoctorResult {
    let found = inspect(kind).await;
    DoctorResult {
        name: kind.name(),
        ok: found.is_ok(),
        detail: match &found {
            Ok(about) => about.clone(),
            Err(error) => error.to_string(),
        },
        remedy: found.err().and_then(|error| error.hint),
    }
}

/// Checks whether this user can use a folder. If sandboxes run as another user, whose id is `walker`, that user must be
/// able to reach the folder, too.
fn place(name: &'static str, needed: NeededFolder, folder: &Path, walker: Option<u32>) -> DoctorResult {
    let usable = needed.writable(folder).and_then(|()| walker.map_or(Ok(()), |user| needed.passable(folder, user)));
    DoctorResult {
        name,
        ok: usable.is_ok(),
        detail: usable.as_ref().err().map_or_else(|| format!("`{}`", folder.display()), ToString::to_string),
        remedy: usable.err().and_then(|error| error.hint),
    }
}

/// Checks the first `python3` or `python` in PATH that is 3.9 or newer. If sandboxes run as another user, that user
/// must be able to reach it, too.
fn python(walker: Option<u32>) -> DoctorResult {
    let found = interpreter();
    if let Some(found) = found.as_ref().filter(|found| found.is_good())
        && let Some(folder) = walker.and_then(|user| closed(&found.prefix, user))
    {
        return DoctorResult {
            name: "python",
            ok: false,
            detail: format!(
                "{} is below `{}`, which is closed to the user as whom sandboxes run here",
                found.path.display(),
                folder.display()
            ),
            remedy: Some("use a Python that every user can reach, as the system's own: put it first in PATH".into()),
        };
    }
    let is_good = found.as_ref().is_some_and(FoundInterpreter::is_good);
    let describe =
        |FoundInterpreter { path, version: (major, minor), .. }| format!("{major}.{minor} at {}", path.display());
    DoctorResult {
        name: "python",
        ok: is_good,
        detail: found.map_or_else(|| "none in PATH".into(), describe),
        remedy: (!is_good).then(|| "install Python 3.9 or newer, with its venv module".into()),
    }
}

/// A Python interpreter in PATH.
struct FoundInterpreter {
    path: PathBuf,
    prefix: PathBuf,
    version: (u32, u32),
}

impl FoundInterpreter {
    fn is_good(&self) -> bool {
        self.version >= (3, 9)
    }
}

/// Returns the first interpreter that is new enough, or else the first one.
fn interpreter() -> Option<FoundInterpreter> {
    let mut found: Vec<_> = ["python3", "python"].into_iter().filter_map(ask).collect();
    let good = found.iter().position(FoundInterpreter::is_good).unwrap_or(0);
    (good < found.len()).then(|| found.swap_remove(good))
}

/// Runs an interpreter to get its path, prefix and version.
fn ask(name: &str) -> Option<FoundInterpreter> {
    let code = "import sys; print(sys.executable, sys.base_prefix, *sys.version_info[:2], sep='\\n')";
    let said = Command::new(name).args(["-I", "-c", code]).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut lines = said.lines();
    let (path, prefix) = (lines.next()?.into(), lines.next()?.into());
    Some(FoundInterpreter { path, prefix, version: (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?) })
}

/// Checks the free space where envs and attempts are kept.
fn disk(folder: &Path) -> DoctorResult {
    // The folder may not exist yet; its parents are most likely on the same file system.
    let free = folder.ancestors().find_map(|folder| nix::sys::statvfs::statvfs(folder).ok());
    let free = free.map_or(0, |about| about.blocks_available() * about.fragment_size());
    DoctorResult {
        name: "free disk",
        ok: free >= ENOUGH_DISK,
        detail: format!("{:.1} GB at {}", free as f64 / 1e9, folder.display()),
        remedy: (free < ENOUGH_DISK)
            .then(|| format!("free {:.0} GB or choose another folder", ENOUGH_DISK as f64 / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_failed_checks_have_a_remedy() {
        let failed = || Err("unshare the user namespace: EPERM".to_owned());
        let broken = MachineReport {
            kernel: "5.4.0".into(),
            architecture: "x86_64",
            root: false,
            namespaces: failed(),
            overlay: failed(),
            landlock: failed(),
            landlock_abi: 0,
            seccomp: false,
            cgroups: "memory: no, processes: no".into(),
            memory_cgroup: false,
            processes_cgroup: false,
        };
        let mut fine = broken.clone();
        (fine.namespaces, fine.overlay, fine.landlock) = (Ok(()), Ok(()), Ok(()));
        (fine.landlock_abi, fine.seccomp, fine.memory_cgroup, fine.processes_cgroup) = (7, true, true, true);
        assert!(sandbox(&broken).iter().all(|finding| !finding.ok && finding.remedy.is_some()));
        assert!(sandbox(&broken)[0].detail.contains("EPERM"));
        assert!(sandbox(&fine).iter().all(|finding| finding.ok && finding.remedy.is_none()));
    }

    #[test]
    fn the_doctor_reports_every_exposed_folder_but_fails_only_if_sandboxes_cannot_hide_it() {
        let seen = |is_whole| ExposedFolder { hidden: "/usr/local/src/s".into(), shown: "/usr".into(), is_whole };
        assert!(out_of_sight(&[]).ok);
        for (found, ok) in [(seen(false), true), (seen(true), false)] {
            let finding = out_of_sight(&[found]);
            assert_eq!((finding.ok, finding.remedy.is_none()), (ok, ok));
            assert!(finding.detail.contains("/usr/local/src/s") && finding.detail.contains("`/usr`"), "{finding:?}");
        }
    }

    #[test]
    fn free_disk_of_a_folder_that_does_not_exist_yet_is_that_of_its_parent() {
        let finding = disk(Path::new("/tmp/not/there/yet"));
        assert!(!finding.detail.starts_with("0.0 GB"), "{finding:?}");
    }
}
