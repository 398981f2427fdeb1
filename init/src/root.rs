//! The file system of a sandbox: a small tmpfs with an allowlist of the host's folders read-only, the workspace, a
//! private `/tmp`, a fresh `/proc`, five harmless devices and a few pseudo-terminals. Anything not listed does not
//! exist inside.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, pivot_root};

use super::mount::{NO_DEVICES, NO_SUID, READ_ONLY, attach, clone_tree, set_attributes_at};
use super::terminals;
use super::wire::{OsBytes, Setup, WorkspaceSource};
use crate::WORKDIR;

/// HOME inside the sandbox.
pub const HOME: &str = "/tmp/home";
/// Folder over which the new root is mounted while it is built; `/tmp`, because it exists on every Linux system.
const STAGE: &str = "/tmp";
/// Host folders that every sandbox shows, if they exist.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];
/// Folders of /etc that programs need and that contain no secrets.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/ld.so.conf.d",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
];
/// Files of /etc that programs need and that contain no secrets.
const SETTINGS_FILES: &[&str] = &[
    "/etc/debian_version",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/protocols",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// Host folders and files that commands may read in every sandbox that is not a container: by a bind mount or by a
/// landlock rule.
pub fn readable() -> impl Iterator<Item = &'static Path> {
    SYSTEM.iter().chain(SETTINGS).chain(SETTINGS_FILES).map(Path::new)
}

/// Parts of the old root that remain usable while the new root is built.
struct RootSources {
    /// Each tree's path, its detached mount, and whether it is a folder.
    trees: Vec<(PathBuf, OwnedFd, bool)>,
    links: Vec<(PathBuf, PathBuf)>,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Folders and files inside the trees to cover by empty folders and files.
    masks: Vec<PathBuf>,
}

/// The source of the workspace. If the overlay's writable folders are on a separate file system (`disk`), that file
/// system is not attached in this mount namespace yet.
enum UnmovedWorkspace {
    /// The overlay's opened lower layer, and the paths of its other folders.
    Overlay {
        lower: OwnedFd,
        upper: PathBuf,
        work: PathBuf,
        disk: Option<PathBuf>,
    },
    Copy(OwnedFd),
}

enum WorkspaceMount {
    Overlay { lower: OwnedFd, upper: OwnedFd, work: OwnedFd },
    Copy(OwnedFd),
}

/// Adds a description of the failed action to an error.
fn doing<T>(what: impl std::fmt::Display, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))
}

impl RootSources {
    fn open(setup: &Setup) -> io::Result<(Self, UnmovedWorkspace)> {
        let mut sources = Self {
            trees: Vec::new(),
            links: Vec::new(),
            files: Vec::new(),
            masks: setup.masked.iter().map(|path| path.as_path().into()).collect(),
        };
        // Open the workspace before the stage is covered, because it may be below the stage.
        let lower = doing("open the workspace", UnmovedWorkspace::open(&setup.source))?;
        for path in SYSTEM.iter().chain(SETTINGS).map(Path::new) {
            sources.add(path, path.starts_with("/etc"))?;
        }
        for path in SETTINGS_FILES.iter().map(Path::new) {
            // Skip files that do not exist on the host.
            if let Ok(target) = fs::read_link(path) {
                sources.links.push((path.into(), target));
            } else if let Ok(bytes) = fs::read(path) {
                sources.files.push((path.into(), bytes));
            }
        }
        let mut read_only: Vec<_> =
            setup.read_only.iter().map(OsBytes::as_path).filter(|path| path.is_absolute()).collect();
        read_only.sort();
        for path in read_only {
            if path.parent().is_none() {
                return Err(io::Error::other("`/` as a whole cannot be shown"));
            }
            let is_masked =
                |parent: &Path| sources.masks.iter().any(|mask| path.starts_with(mask) && mask.starts_with(parent));
            let covered = sources.trees.iter().any(|(parent, ..)| path.starts_with(parent) && !is_masked(parent));
            if !covered && path.exists() {
                let tree = clone_tree(path, READ_ONLY | NO_SUID | NO_DEVICES);
                sources.trees.push((path.into(), doing(format!("bind `{}`", path.display()), tree)?, path.is_dir()));
            }
        }
        let others = setup.devices.iter().map(|path| path.as_path().to_path_buf());
        for path in DEVICES.iter().map(|name| Path::new("/dev").join(name)).chain(others) {
            let tree = clone_tree(&path, NO_SUID);
            sources.trees.push((path.clone(), doing(format!("bind `{}`", path.display()), tree)?, false));
        }
        Ok((sources, lower))
    }

    /// Adds a folder of the host; if the path is a link, as `/bin` is on merged-usr systems, adds the link. Failures
    /// are ignored for an optional folder.
    fn add(&mut self, path: &Path, optional: bool) -> io::Result<()> {
        let Ok(about) = fs::symlink_metadata(path) else { return Ok(()) };
        if about.is_symlink() {
            self.links.push((path.into(), fs::read_link(path)?));
            return Ok(());
        }
        match clone_tree(path, READ_ONLY | NO_SUID | NO_DEVICES) {
            Ok(tree) => self.trees.push((path.into(), tree, true)),
            Err(_) if optional => {}
            Err(error) => return doing(format!("bind `{}`", path.display()), Err(error)),
        }
        Ok(())
    }
}

fn handle(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    doing(path.display(), open(path, flags, Mode::empty()).map_err(io::Error::from))
}

impl UnmovedWorkspace {
    fn open(source: &WorkspaceSource) -> io::Result<Self> {
        Ok(match source {
            WorkspaceSource::Overlay { lower, upper, work, disk } => Self::Overlay {
                lower: handle(lower.as_path())?,
                upper: upper.as_path().into(),
                work: work.as_path().into(),
                disk: disk.as_ref().map(|disk| disk.as_path().into()),
            },
            WorkspaceSource::Folder(dir) => {
                let dir = dir.as_path();
                Self::Copy(doing(dir.display(), clone_tree(dir, NO_SUID | NO_DEVICES))?)
            }
            WorkspaceSource::Image => return Err(io::Error::other("only a container engine can mount an image")),
        })
    }

    /// Opens the overlay's writable folders. If they are on a separate file system (`disk`), it is attached in this
    /// mount namespace first, because an overlay accepts only folders of its own namespace. It is attached over the
    /// stage, whose old content is no longer needed and is covered by the new root next.
    fn complete(self) -> io::Result<WorkspaceMount> {
        Ok(match self {
            Self::Copy(tree) => WorkspaceMount::Copy(tree),
            Self::Overlay { lower, upper, work, disk } => {
                if let Some(disk) = disk {
                    doing("move the disk", attach(&handle(&disk)?, Path::new(STAGE)))?;
                }
                WorkspaceMount::Overlay { lower, upper: handle(&upper)?, work: handle(&work)? }
            }
        })
    }
}

impl WorkspaceMount {
    fn mount(&self, to: &Path, in_user_namespace: bool) -> io::Result<()> {
        match self {
            Self::Copy(tree) => attach(tree, to),
            Self::Overlay { lower, upper, work } => {
                // Pass the layers by descriptor, so that commas and colons need no escaping and /proc/mounts reveals no
                // paths.
                let fd = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
                let mut options = format!("lowerdir={},upperdir={},workdir={}", fd(lower), fd(upper), fd(work));
                // In a user namespace, the kernel itself turns off index, metacopy and redirects.
                options.push_str(if in_user_namespace {
                    ",userxattr"
                } else {
                    ",index=off,metacopy=off,redirect_dir=off"
                });
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                mount(Some("overlay"), to, Some("overlay"), flags, Some(options.as_str())).map_err(io::Error::from)
            }
        }
    }
}

fn folder(path: &Path, mode: u32) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Returns the location of a path of the new root while the new root is mounted at [`STAGE`].
fn staged(path: &Path) -> PathBuf {
    Path::new(STAGE).join(path.strip_prefix("/").unwrap_or(path))
}

/// Builds the new root in this process's own mount namespace and moves into it. `user` is the user and group inside.
pub(super) fn enter(setup: &Setup, in_user_namespace: bool, user: (u32, u32)) -> io::Result<()> {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    doing("make mounts private", mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(Into::into))?;
    let (sources, lower) = RootSources::open(setup)?;
    let workspace = doing("open the workspace", lower.complete())?;
    // All temporary files together may use half of the memory limit. The number of inodes is limited, too, because they
    // use kernel memory.
    let size = (setup.limits.memory / 2).max(1 << 20);
    let options = format!("mode=0755,size={size},nr_inodes=200000");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let result = mount(Some("tmpfs"), STAGE, Some("tmpfs"), flags, Some(options.as_str()));
    doing("mount a tmpfs", result.map_err(Into::into))?;

    writable(user)?;
    settings(&sources)?;
    trees(&sources)?;
    let place = staged(Path::new(WORKDIR));
    fs::create_dir_all(&place)?;
    doing("mount the workspace", workspace.mount(&place, in_user_namespace))?;
    setup.sealed.iter().try_for_each(|file| seal(&place, file.as_path()))?;
    let proc = staged(Path::new("/proc"));
    fs::create_dir_all(&proc)?;
    let result = mount(Some("proc"), &proc, Some("proc"), flags | MsFlags::MS_NOEXEC, None::<&str>);
    doing("mount /proc", result.map_err(Into::into))?;
    // A failure is acceptable, because it only makes programs fail that need a terminal.
    let _ = terminals::provide(&staged(Path::new("/dev")));
    drop((sources, workspace));

    chdir(STAGE)?;
    doing("pivot to the new root", pivot_root(".", ".").map_err(Into::into))?;
    doing("leave the old root", umount2(".", MntFlags::MNT_DETACH).map_err(Into::into))?;
    chdir("/")?;
    doing("make the root read-only", set_attributes_at(Path::new("/"), READ_ONLY))
}

/// Mounts a file of the workspace read-only over itself, so that it cannot be written, removed or replaced.
fn seal(workspace: &Path, file: &Path) -> io::Result<()> {
    let at = doing(format!("find `{}`", file.display()), workspace.join(file).canonicalize())?;
    if !at.starts_with(workspace.canonicalize()?) || !at.is_file() {
        return Err(io::Error::other(format!("`{}` is not a file of the workspace", file.display())));
    }
    let sealed = clone_tree(&at, READ_ONLY | NO_SUID | NO_DEVICES).and_then(|tree| attach(&tree, &at));
    doing(format!("make `{}` read-only", file.display()), sealed)
}

/// Makes `/tmp` with the home, and `/dev/shm`. They are folders of the root's own tmpfs and share its size limit. They
/// are bound over themselves, so that they stay writable when the root is made read-only.
fn writable(user: (u32, u32)) -> io::Result<()> {
    for path in ["/tmp", "/dev/shm"].map(|path| staged(Path::new(path))) {
        folder(&path, 0o1777)?;
        doing(format!("bind {}", path.display()), attach(&clone_tree(&path, NO_SUID | NO_DEVICES)?, &path))?;
    }
    let home = staged(Path::new(HOME));
    folder(&home, 0o700)?;
    chown(&home, Some(user.0), Some(user.1))
}

/// Attaches the trees and covers the masked parts, outer folders before inner ones, so that a tree inside a masked
/// folder is visible.
fn trees(sources: &RootSources) -> io::Result<()> {
    let trees = sources.trees.iter().map(|(path, tree, is_folder)| (path.as_path(), Some((tree, *is_folder))));
    let mut places: Vec<_> = trees.chain(sources.masks.iter().map(|path| (path.as_path(), None))).collect();
    places.sort_by_key(|(path, _)| *path);
    let mut covered = Vec::new();
    for (path, tree) in places {
        let to = staged(path);
        match tree {
            Some((tree, is_folder)) => {
                if is_folder {
                    fs::create_dir_all(&to)?;
                } else {
                    fs::create_dir_all(to.parent().unwrap_or(&to))?;
                    fs::write(&to, b"")?;
                }
                doing(format!("attach `{}`", path.display()), attach(tree, &to))?;
            }
            // A missing path is already covered, by a mask on a folder above it.
            None if !to.exists() => {}
            None if !to.is_dir() => {
                let empty = staged(Path::new("/covered"));
                fs::write(&empty, b"")?;
                let tree = clone_tree(&empty, READ_ONLY | NO_SUID | NO_DEVICES)?;
                doing(format!("cover `{}`", path.display()), attach(&tree, &to))?;
                // The file is no longer needed by name: the mounts keep it alive.
                fs::remove_file(&empty)?;
            }
            None => {
                let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
                let options = Some("mode=0755,size=64k,nr_inodes=1000");
                let result = mount(Some("tmpfs"), &to, Some("tmpfs"), flags, options);
                doing(format!("cover `{}`", path.display()), result.map_err(Into::into))?;
                covered.push(to);
            }
        }
    }
    // Make the masks read-only last, because trees inside them needed mount points.
    covered.iter().try_for_each(|mask| set_attributes_at(mask, READ_ONLY | NO_SUID | NO_DEVICES))
}

fn settings(sources: &RootSources) -> io::Result<()> {
    for (path, bytes) in &sources.files {
        let to = staged(path);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        fs::write(&to, bytes)?;
    }
    for (path, target) in &sources.links {
        let to = staged(path);
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        symlink(target, &to)?;
    }
    let etc = staged(Path::new("/etc"));
    fs::create_dir_all(&etc)?;
    let passwd = format!("root:x:0:0:root:/:/bin/sh\nsandbox:x:1000:1000:sandbox:{HOME}:/bin/sh\n");
    fs::write(etc.join("passwd"), passwd)?;
    fs::write(etc.join("group"), "root:x:0:\nsandbox:x:1000:\n")?;
    fs::write(etc.join("hosts"), "127.0.0.1 localhost sandbox\n::1 localhost\n")?;
    fs::write(etc.join("hostname"), "sandbox\n")?;
    fs::write(etc.join("nsswitch.conf"), "passwd: files\ngroup: files\nhosts: files\n")?;
    fs::write(etc.join("resolv.conf"), "")?;
    let dev = staged(Path::new("/dev"));
    fs::create_dir_all(&dev)?;
    symlink("/proc/self/fd", dev.join("fd"))?;
    for (number, name) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
        symlink(format!("/proc/self/fd/{number}"), dev.join(name))?;
    }
    fs::create_dir_all(staged(Path::new("/var")))?;
    symlink("/tmp", staged(Path::new("/var/tmp")))?;
    fs::create_dir_all(staged(Path::new("/run")))
}
