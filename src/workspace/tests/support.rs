//! Test support: file trees, and functions that change and compare them.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::workspace::{ChangeKind, ChangeLimits, Changes, Layers, LayersKind, Snapshot, Workspace};

/// A repo, a cache and a folder for workspaces.
pub struct TestRepo {
    pub dir: TempDir,
    pub repo: PathBuf,
    pub cache: PathBuf,
}

impl TestRepo {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (repo, cache) = (dir.path().join("repo"), dir.path().join("cache"));
        std::fs::create_dir(&repo).unwrap();
        Self { dir, repo, cache }
    }

    /// Creates the repo that most tests use, with text, binary, empty, executable, nested and linked files.
    pub fn with_repo() -> Self {
        let place = Self::new();
        place.file("main.py", b"import pkg\nprint(pkg.f())\n");
        place.file("pkg/__init__.py", b"def f():\n    return 1\n");
        place.file("pkg/empty.py", b"");
        place.file("pkg/deep/er/data.bin", b"\0\x01\x02\xff");
        place.file("data/points.csv", b"1,2\r\n3,4\r\n");
        place.file("no newline", b"last line");
        place.file("run.sh", b"#!/bin/sh\necho hi\n");
        std::fs::set_permissions(place.repo.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("pkg/deep", place.repo.join("shortcut")).unwrap();
        place
    }

    pub fn file(&self, path: &str, bytes: &[u8]) {
        let path = self.repo.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.repo, &self.cache, None).unwrap()
    }

    pub fn workspace(&self, name: &str, kind: LayersKind) -> Workspace {
        self.workspace_with(name, kind, &overrides())
    }

    pub fn workspace_with(&self, name: &str, kind: LayersKind, overrides: &[(PathBuf, Vec<u8>)]) -> Workspace {
        Workspace::create(&self.snapshot(), overrides, &self.dir.path().join(name), kind, None).unwrap()
    }
}

/// Returns overrides: a masked source that replaces a file of the repo, and a new file.
pub fn overrides() -> Vec<(PathBuf, Vec<u8>)> {
    vec![
        ("pkg/__init__.py".into(), b"def f():\n    raise NotImplementedError\n".to_vec()),
        ("paper.txt".into(), b"A paper.\n".to_vec()),
    ]
}

/// Runs a shell script in the workspace. For an overlay, mounts it in a separate mount namespace. If overlays cannot be
/// mounted, panics, or returns `None` if AUTOEXPERIMENT_WITHOUT_OVERLAY is set.
pub fn edit(workspace: &Workspace, script: &str) -> Option<Output> {
    match workspace.layers() {
        Layers::Copy { dir } => Some(sh(dir, script)),
        Layers::Image { .. } => unreachable!("containers are tested with their engines"),
        Layers::Overlay { lower, upper, work, .. } => {
            let mount = format!(
                "mount -t overlay overlay -o lowerdir={},upperdir={},workdir={} \"$MERGED\"",
                lower.display(),
                upper.display(),
                work.display()
            );
            let user_namespace = if nix::unistd::geteuid().is_root() { "" } else { "-r" };
            let merged = upper.parent().unwrap().join("merged");
            std::fs::create_dir_all(&merged).unwrap();
            let options = if user_namespace.is_empty() { "" } else { "-o userxattr" };
            let whole = format!("{mount} {options} || exit 99\ncd \"$MERGED\" || exit 99\n{script}");
            let mut command = Command::new("unshare");
            command.arg("-m").args((!user_namespace.is_empty()).then_some(user_namespace));
            let output = command.args(["sh", "-c", &whole]).env("MERGED", &merged).output();
            match output {
                Ok(output) if output.status.code() != Some(99) && output.status.code().is_some() => Some(output),
                other => {
                    assert!(
                        std::env::var_os("AUTOEXPERIMENT_WITHOUT_OVERLAY").is_some(),
                        "no overlay can be mounted here: set AUTOEXPERIMENT_WITHOUT_OVERLAY=1 ({other:?})"
                    );
                    None
                }
            }
        }
    }
}

/// Runs a shell script and checks that it succeeds.
pub fn sh(dir: &Path, script: &str) -> Output {
    let output = Command::new("sh").args(["-ec", script]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the contents of a workspace as a sandbox would see them: for each path, the execute permission and the
/// contents or the link's target.
pub fn mounted_contents(workspace: &Workspace) -> Option<BTreeMap<String, (bool, Vec<u8>)>> {
    let copy = TempDir::new().unwrap();
    let target = copy.path().display();
    let output = edit(workspace, &format!("cp -a . {target}/"))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(files(copy.path()))
}

/// Returns all files and links in a folder.
pub fn files(root: &Path) -> BTreeMap<String, (bool, Vec<u8>)> {
    walkdir::WalkDir::new(root)
        .min_depth(1)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| !entry.file_type().is_dir())
        .map(|entry| {
            let path = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if entry.file_type().is_symlink() {
                let target = std::fs::read_link(entry.path()).unwrap();
                return (path, (false, format!("-> {}", target.display()).into_bytes()));
            }
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            (path, (executable, std::fs::read(entry.path()).unwrap()))
        })
        .collect()
}

/// Formats each change as a letter and a path: `A` for added, `M` for modified, `R` for removed, `S` for skipped.
pub fn lines(changes: &Changes) -> Vec<String> {
    let letter = |kind| match kind {
        ChangeKind::Added => 'A',
        ChangeKind::Modified => 'M',
        ChangeKind::Removed => 'R',
        ChangeKind::Skipped => 'S',
    };
    changes.files.iter().map(|change| format!("{} {}", letter(change.kind), change.path)).collect()
}

/// Returns the changes, with the default limits.
pub fn changes(workspace: &Workspace) -> Changes {
    workspace.changes(&ChangeLimits::default()).unwrap()
}

pub const KINDS: [LayersKind; 2] = [LayersKind::Overlay, LayersKind::Copy];
