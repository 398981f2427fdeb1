//! The local sandbox: separate namespaces, an overlay workspace, landlock, seccomp, rlimits, and cgroups if this user
//! can write them. Needs no daemon and no root. Where namespaces are forbidden, as inside a default container, it uses
//! landlock and seccomp alone. The module `unconfined` starts sandboxes in the same way, but without any protection.

mod cgroup;
mod client;
mod disk_image;
mod probe;
mod unconfined;

use std::collections::BTreeSet;
use std::os::unix::fs::{chown, lchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use nix::unistd::getuid;

use super::canary;
use super::exposed::{Exposure, exposures, system};
use super::program::PREFIX;
use super::watch::DiskWatch;
use super::{Backend, Evidence, Gpu, Sandbox, Spec, WORKDIR};
use crate::error::{Error, FailureKind, Result};
use crate::files::Temporary;
use crate::files::usable::closed;
use crate::workspace::{Disk, Layers, LayersKind, OwnDisk};
use autoexperiment_init::wire::{Setup, Surroundings};
use autoexperiment_init::{OWN_VARIABLE, processes};
use client::{Leftovers, LocalSandbox, lost, spawn};

pub use probe::MachineReport;
pub use unconfined::Unconfined;

/// User id of a sandbox's processes when the harness is root: a number that no user of the machine has. Sandboxes with
/// a copy of the repo have one of the [`OWN_USERS`] ids that follow.
const NOBODY_ELSE: u32 = 1_978_000_000;

/// Number of user ids from which that of a sandbox with a copy of the repo is drawn.
const OWN_USERS: u32 = 1_000_000;

/// Time limit of a canary: a fresh sandbox that shows whether the machine still works, see [`canary::examine`].
const CANARY: Duration = Duration::from_secs(10);

/// The way in which sandboxes are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementMode {
    /// Separate namespaces. The workspace is an overlay over the repo.
    Overlay,
    /// Separate namespaces. The workspace is a full copy of the repo.
    Namespaces,
    /// Landlock and seccomp alone, in the host's file system. The workspace is a full copy of the repo.
    Landlock,
}

/// Starts local sandboxes.
#[derive(Debug)]
pub struct LocalBackend {
    mode: ConfinementMode,
    owner: Option<(u32, u32)>,
    cgroups: cgroup::Parents,
    landlock_abi: i32,
    images: disk_image::DiskImages,
}

impl LocalBackend {
    /// Returns a backend in the best mode that works on this machine, by trying the modes in turn.
    ///
    /// # Errors
    /// Returns an error of kind `Machine` if neither namespaces nor landlock work.
    pub async fn probe() -> Result<Self> {
        let mut reasons = Vec::new();
        for mode in [ConfinementMode::Overlay, ConfinementMode::Namespaces, ConfinementMode::Landlock] {
            let backend = Self::with_mode(mode);
            match canary::try_out(&backend).await {
                Ok(()) => return Ok(backend),
                Err(reason) => reasons.push(format!("{mode:?}: {reason}").to_lowercase()),
            }
        }
        Err(Error::machine(format!("no sandbox works on this machine ({})", reasons.join("; ")))
            .hint("`autoexperiment doctor` says what is missing; `--sandbox none` runs without any protection"))
    }

    /// Creates a backend in the given mode, without checking whether that mode works here.
    #[must_use]
    pub fn with_mode(mode: ConfinementMode) -> Self {
        Self {
            mode,
            owner: getuid().is_root().then_some((NOBODY_ELSE, NOBODY_ELSE)),
            cgroups: cgroup::Parents::find(),
            landlock_abi: probe::landlock_abi(),
            images: disk_image::DiskImages::default(),
        }
    }

    /// The way in which the backend's sandboxes are confined.
    #[must_use]
    pub fn mode(&self) -> ConfinementMode {
        self.mode
    }
}

#[async_trait]
impl Backend for LocalBackend {
    fn name(&self) -> &'static str {
        if self.mode == ConfinementMode::Landlock { "landlock" } else { "local" }
    }

    fn layers(&self) -> LayersKind {
        if self.mode == ConfinementMode::Overlay { LayersKind::Overlay } else { LayersKind::Copy }
    }

    fn owner(&self) -> Option<(u32, u32)> {
        self.owner
    }

    fn walker(&self) -> Option<u32> {
        self.owner.filter(|_| self.mode == ConfinementMode::Landlock).map(|(user, _)| user)
    }

    fn listens(&self) -> bool {
        self.mode != ConfinementMode::Landlock
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |text: &str| warnings.push(text.to_owned());
        if self.mode == ConfinementMode::Landlock {
            warn("no namespaces here: commands can find out which processes and files exist (not what is in them)");
            warn("no namespaces here: all sockets are refused, so experiments that talk to localhost fail");
            warn("no namespaces here: a command cannot signal what an earlier command left running");
            warn("no namespaces here: /dev/shm is refused, so Python's multiprocessing locks fail");
            warn("no namespaces here: System V shared memory and message queues are refused, and so is inotify");
            warn(
                "no namespaces here: commands cannot change owners and attributes; changing times, or setting \
                 permissions other than 0700 to 0755, has no effect",
            );
            if self.owner.is_none() {
                warn(
                    "no namespaces here: commands can make your files executable for you and readable for others, \
                     although the commands themselves cannot read these files",
                );
            }
            if self.landlock_abi < 6 && self.owner.is_none() {
                warn("landlock is older than version 6: commands can send signals to your other processes");
            }
            if self.landlock_abi < 3 && self.owner.is_none() {
                warn("landlock is older than version 3: commands can truncate files of yours that they cannot read");
            }
        }
        if !self.cgroups.memory() {
            warn(
                "no writable memory cgroup: the memory of all processes and their sockets together is watched five times a \
                 second, not enforced; memfds and System V objects are refused",
            );
        }
        if !self.cgroups.processes() && self.mode == ConfinementMode::Landlock && self.owner.is_none() {
            warn("no writable pids cgroup: sandboxes that run at once share one limit of processes");
        }
        warnings
    }

    fn conceals(&self, shown: &[PathBuf], hidden: &[PathBuf]) -> Result<()> {
        Self::masks(shown, hidden).map(drop)
    }

    fn disk(&self, bytes: u64, folder: &Path) -> Result<Option<Disk>> {
        if self.mode != ConfinementMode::Overlay || self.owner.is_none() {
            return Ok(None);
        }
        self.images.disk(bytes, folder).map_err(|error| {
            let what = format!("failed to make an attempt's disk in `{}`", folder.display());
            Error::new(FailureKind::Infrastructure, what).because(error)
        })
    }

    fn memory_around(&self) -> Option<u64> {
        cgroup::memory_limit_around()
    }

    async fn examine(&self, place: &Path) -> Option<Evidence> {
        canary::examine(self, place, CANARY).await
    }

    async fn start(&self, spec: &Spec) -> Result<Box<dyn Sandbox>> {
        let masks = Self::masks(&spec.read_only, &spec.hidden)?;
        if spec.limits.cpus.is_some() && !self.cgroups.cpu() {
            return Err(Error::machine("CPUs cannot be limited here: no cpu control group is writable")
                .hint("omit `--cpus`, or use `--sandbox docker`"));
        }
        let namespaces = self.mode != ConfinementMode::Landlock;
        let owner = match &spec.layers {
            Layers::Copy { dir } => self.own_user(dir)?,
            _ => self.owner,
        };
        let scratch = if namespaces { None } else { Some(scratch(owner)?) };
        let (grows, workdir, disk) = match &spec.layers {
            Layers::Overlay { upper, disk, .. } => (upper, Path::new(WORKDIR), disk.as_ref()),
            Layers::Copy { dir } if namespaces => (dir, Path::new(WORKDIR), None),
            Layers::Copy { dir } => (dir, dir.as_path(), None),
            Layers::Image { .. } => return Err(Error::internal("a local sandbox was given an image")),
        };
        if let Some((user, _)) = owner.filter(|_| !namespaces) {
            for path in spec.read_only.iter().map(PathBuf::as_path).chain([workdir]) {
                reachable(path, user)?;
            }
        }
        let (socket, child) = spawn(self.name(), namespaces)?;
        // Number of this program's own processes in the sandbox's control groups. With namespaces, these are the init
        // and its parent, the guardian; without namespaces, only the init.
        let own = if namespaces { 2 } else { 1 };
        let cgroup = self.cgroups.create(&spec.limits, own).map_err(|error| lost(self.name(), "cgroup", error))?;
        let setup = Setup {
            place: if namespaces { Surroundings::Namespaces } else { Surroundings::Host },
            owner,
            source: (&spec.layers).into(),
            read_only: spec.read_only.iter().map(Into::into).collect(),
            masked: masks.iter().map(|mask| (&mask.at).into()).collect(),
            devices: spec.gpu.iter().flat_map(|gpu| &gpu.devices).map(Into::into).collect(),
            variables: spec.variables.clone().into_iter().chain(spec.gpu.as_ref().map(Gpu::variable)).collect(),
            sealed: spec.sealed.iter().map(Into::into).collect(),
            limits: spec.limits.into(),
            procs_files: cgroup.procs_files().iter().map(Into::into).collect(),
            memory_cgroup: self.cgroups.memory(),
            processes_cgroup: self.cgroups.processes(),
            scratch: scratch.as_ref().map(|folder| folder.path().into()),
        };
        let watch = match disk {
            Some(disk) => DiskWatch::of_disk(disk, spec.limits.disk),
            None => DiskWatch::new(grows, spec.limits.disk).await.with_processes_of(child.id()),
        };
        let written = disk.map(OwnDisk::open).transpose().map_err(|error| lost(self.name(), "disk", error))?;
        let cpu_limit = Duration::from_secs(spec.limits.cpu_seconds);
        LocalSandbox::new(socket, child, Leftovers { cgroup, scratch }, workdir.to_path_buf(), cpu_limit)
            .watched(watch, written)
            .started(self.name(), &setup)
            .await
    }
}

/// Kills the processes of sandboxes without namespaces whose harness and init were both killed, and removes the
/// temporary folders of killed harnesses.
pub fn sweep_folders() {
    let orphaned: BTreeSet<String> = processes::table().into_keys().filter_map(orphaned).collect();
    for variable in orphaned {
        processes::kill_all(|| processes::marked(&variable));
    }
    crate::files::sweep(&std::env::temp_dir(), PREFIX);
}

/// Returns the environment variable, with its value, that marks all processes of the sandbox to which the process `pid`
/// belongs. Returns `None` if the process is in no sandbox, or if a harness still holds the sandbox's private folder.
fn orphaned(pid: i32) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environ.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
    let mark = format!("{OWN_VARIABLE}=");
    let (variable, folder) = entries.find_map(|entry| Some((entry, entry.strip_prefix(&mark)?)))?;
    let folder = Path::new(folder);
    let is_private = folder.is_absolute() && folder.file_name()?.to_str()?.starts_with(PREFIX);
    // In another mount namespace, the same path may lead to another folder, so ignore processes in other namespaces.
    let place = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let is_here = place(&pid.to_string()).is_some_and(|found| Some(found) == place("self"));
    let is_held = || std::fs::File::open(folder).is_ok_and(|folder| folder.try_lock().is_err());
    (is_private && is_here && !is_held()).then(|| variable.to_owned())
}

impl LocalBackend {
    /// Returns the hidden folders that sandboxes would show, so that they can be covered. Fails if a hidden folder is
    /// itself a shown folder, because covering it would hide all of that folder.
    fn masks(shown: &[PathBuf], hidden: &[PathBuf]) -> Result<Vec<Exposure>> {
        let found =
            exposures(shown.iter().map(PathBuf::as_path).chain(system().map(|folder| -> &Path { folder })), hidden);
        match found.iter().find(|exposure| exposure.is_whole()) {
            Some(exposure) => Err(exposure.refusal("and hiding it would hide that whole folder")),
            None => Ok(found),
        }
    }

    /// Draws the user and group of a new sandbox, and gives them its copy of the repo. If sandboxes without namespaces
    /// had the same user, a command in one of them, such as `pkill python`, could kill processes of another. Returns
    /// `None` if the harness is not root, because sandboxes then have the harness's user.
    fn own_user(&self, copy: &Path) -> Result<Option<(u32, u32)>> {
        if self.owner.is_none() {
            return Ok(None);
        }
        let user = NOBODY_ELSE + 1 + rand::random_range(0..OWN_USERS);
        let given =
            walkdir::WalkDir::new(copy).into_iter().try_for_each(|entry| lchown(entry?.path(), Some(user), Some(user)));
        given.map_err(|error| lost(self.name(), "change the owner of the workspace", error))?;
        Ok(Some((user, user)))
    }
}

/// Makes a private folder for temporary files, for a sandbox that cannot have its own /tmp.
fn scratch(owner: Option<(u32, u32)>) -> Result<Temporary> {
    let base = std::env::temp_dir();
    let folder = Temporary::create(&base, PREFIX, 0o700);
    let folder = folder.map_err(|error| Error::io("create a folder in", &base, error))?;
    owner
        .map_or(Ok(()), |(uid, gid)| chown(folder.path(), Some(uid), Some(gid)))
        .map_err(|error| Error::io("change the owner of", folder.path(), error))?;
    Ok(folder)
}

/// Checks that the sandbox's user can pass through all folders above `path`. This is necessary for a sandbox without
/// its own view of the file system.
fn reachable(path: &Path, user: u32) -> Result<()> {
    let Some(folder) = path.parent().and_then(|above| closed(above, user)) else { return Ok(()) };
    let message = format!("`{}` is closed to the sandbox's user, and contains `{}`", folder.display(), path.display());
    Err(Error::new(FailureKind::Place, message)
        .hint("keep caches, runs and interpreters in folders that every user may enter, such as /opt or /var/tmp"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_below_an_inaccessible_one_is_reported() {
        let base = tempfile::tempdir().unwrap();
        let inner = base.path().join("closed/inner");
        std::fs::create_dir_all(&inner).unwrap();
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(base.path(), mode(0o755)).unwrap();
        std::fs::set_permissions(base.path().join("closed"), mode(0o700)).unwrap();
        let error = reachable(&inner, NOBODY_ELSE).unwrap_err();
        assert!(error.message.contains("closed` is closed"), "{error}");
        std::fs::set_permissions(base.path().join("closed"), mode(0o711)).unwrap();
        assert!(reachable(&inner, NOBODY_ELSE).is_ok());
    }
}
