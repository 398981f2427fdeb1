//! What `autoexperiment doctor` says: what works on this machine, and how to get the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::docker::{Flavour, inspect};
use super::local::Report;

/// Free disk below which a build of an env and a few attempts may not fit: bytes.
const ENOUGH_DISK: u64 = 5 << 30;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What, as `overlay workspaces`.
    pub name: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it, where it does not work and something can be done.
    pub remedy: Option<String>,
}

/// Looks at everything. `exe` as for [`super::choose`]; `folder` is where envs and attempts will be kept.
pub async fn examine(exe: Option<&Path>, folder: &Path) -> Vec<Finding> {
    let report = Report::collect(exe).await;
    let mut findings = sandbox(&report);
    findings.extend([engine(Flavour::Docker).await, engine(Flavour::Podman).await]);
    findings.push(python());
    findings.push(disk(folder));
    findings
}

/// What a report of the sandboxes means.
fn sandbox(report: &Report) -> Vec<Finding> {
    let tried = |name, result: &Result<(), String>, works: &str, remedy: &dyn Fn() -> String| Finding {
        name,
        ok: result.is_ok(),
        detail: result.as_ref().err().cloned().unwrap_or_else(|| works.to_owned()),
        remedy: result.is_err().then(remedy),
    };
    let user = if report.root { "as root" } else { "as an ordinary user" };
    let yes_no = |name, ok: bool, detail: String, remedy: &str| Finding {
        name,
        ok,
        detail,
        remedy: (!ok).then(|| remedy.to_owned()),
    };
    vec![
        tried("sandbox in own namespaces", &report.namespaces, user, &namespaces_remedy),
        tried("overlay workspaces", &report.overlay, "no copying of repos", &|| {
            "Linux 5.11 or newer, with the run's folder on a local file system (ext4, xfs, btrfs); until then every \
             attempt gets a full copy"
                .into()
        }),
        tried("sandbox by landlock alone", &report.landlock, "where namespaces are forbidden", &|| {
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
            "limit of memory in all",
            report.memory_cgroup,
            report.cgroups.clone(),
            "a writable cgroup with memory control: start with `systemd-run --user --scope -p Delegate=yes ...`, or \
             as root; until then each process is limited by itself",
        ),
        yes_no(
            "limit of processes in all",
            report.processes_cgroup,
            report.cgroups.clone(),
            "the same with control of pids; until then the kernel's limit for a user holds",
        ),
    ]
}

/// Why namespaces may be refused here, as far as the kernel tells.
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

/// Whether a container engine answers, for `--sandbox docker` and `--sandbox podman`.
async fn engine(flavour: Flavour) -> Finding {
    let found = inspect(flavour).await;
    Finding {
        name: flavour.name(),
        ok: found.is_ok(),
        detail: match &found {
            Ok(about) => about.clone(),
            Err(error) => error.to_string(),
        },
        remedy: found.err().and_then(|error| error.hint),
    }
}

/// The first `python3` or `python` in PATH that is 3.9 or newer.
fn python() -> Finding {
    let found: Vec<_> = ["python3", "python"].into_iter().filter_map(version).collect();
    let good = found.iter().find(|(_, version)| *version >= (3, 9));
    let describe = |(path, (major, minor)): &(PathBuf, (u32, u32))| format!("{major}.{minor} at {}", path.display());
    Finding {
        name: "python",
        ok: good.is_some(),
        detail: good.or(found.first()).map_or_else(|| "none in PATH".into(), describe),
        remedy: good.is_none().then(|| "install Python 3.9 or newer, with its venv module".into()),
    }
}

/// An interpreter's own path and version.
fn version(name: &str) -> Option<(PathBuf, (u32, u32))> {
    let code = "import sys; print(sys.executable, sys.version_info[0], sys.version_info[1], sep='\\n')";
    let said = Command::new(name).args(["-I", "-c", code]).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut lines = said.lines();
    let path = PathBuf::from(lines.next()?);
    Some((path, (lines.next()?.parse().ok()?, lines.next()?.parse().ok()?)))
}

/// What is free where envs and attempts are kept.
fn disk(folder: &Path) -> Finding {
    // It need not exist yet; what is above it is on the same file system, most likely.
    let free = folder.ancestors().find_map(|folder| nix::sys::statvfs::statvfs(folder).ok());
    let free = free.map_or(0, |about| about.blocks_available() * about.fragment_size());
    Finding {
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
    fn every_finding_that_is_not_fine_says_what_to_do_and_no_other_does() {
        let failed = || Err("unshare the user namespace: EPERM".to_owned());
        let broken = Report {
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
    fn free_disk_of_a_folder_that_does_not_exist_yet_is_that_of_its_parent() {
        let finding = disk(Path::new("/tmp/not/there/yet"));
        assert!(!finding.detail.starts_with("0.0 GB"), "{finding:?}");
    }
}
