//! Canaries: new, empty sandboxes in which a trial command is run. They show what works on this machine. After an
//! attempt's sandbox has died, a canary that fails is evidence that the machine failed.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::program::PREFIX;
use super::search::{self, NeedleHits, WantedSecrets};
use super::{Backend, Command, Evidence, EvidenceKind, ExecLimits, Exit, SandboxLimits, Spec};
use crate::files::Temporary;
use crate::workspace::{Layers, LayersKind};

/// Bytes that a canary writes. If even this small amount does not fit, the machine's disk is full, no matter how much
/// an attempt has written.
const ROOM: u64 = 64 << 20;
/// Trial command: overwrites and renames a file that the workspace began with.
const CHANGE: &str = "test \"$(cat file)\" = before && echo after > file && mv file moved && cat moved";

/// Looks for evidence that the machine failed, after an attempt's sandbox has died and is gone: starts a fresh sandbox
/// and checks that it works within `wall`. The fresh sandbox's workspace is in the folder `place`, on the same disk as
/// the attempts' workspaces.
pub(super) async fn examine(backend: &dyn Backend, place: &Path, wall: Duration) -> Option<Evidence> {
    // The script must not delete the file `room`: after the command, the sandbox checks whether the disk has room left.
    // A successful write alone does not prove that, because even on a full disk the file may fit into blocks that are
    // reserved for root.
    let script = format!("{CHANGE} && head -c {ROOM} /dev/zero > room");
    match tokio::time::timeout(wall, run(backend, place, &script)).await {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(
            EvidenceKind::FreshSandboxFailed.because(format!("a fresh, empty sandbox failed at the same time: {why}")),
        ),
        Err(_) => Some(
            EvidenceKind::FreshSandboxFailed
                .because(format!("a fresh, empty sandbox was not ready within {} s", wall.as_secs())),
        ),
    }
}

/// Starts a sandbox, runs the trial command in it and ends it. An error says what failed.
pub(super) async fn try_out(backend: &dyn Backend) -> Result<(), String> {
    run(backend, &std::env::temp_dir(), CHANGE).await
}

/// Starts a sandbox that shows the folders `shown` except the folders `hidden`, and searches all files that are visible
/// in it for the secrets in `wanted`.
pub(super) async fn search(
    backend: &dyn Backend,
    (shown, hidden): (&[PathBuf], &[PathBuf]),
    mut wanted: WantedSecrets,
) -> Result<NeedleHits, String> {
    let (_folder, mut spec) = empty(backend, &std::env::temp_dir())?;
    (spec.read_only, spec.hidden) = (shown.to_vec(), hidden.to_vec());
    wanted.roots.extend(shown.iter().cloned());
    let mut sandbox = backend.start(&spec).await.map_err(|error| crate::error::with_causes(&error))?;
    let found = search::search(&mut *sandbox, wanted).await.map_err(|fault| fault.to_string())?;
    sandbox.destroy().await.map_err(|fault| fault.to_string())?;
    Ok(found)
}

/// Specification of a fresh, empty sandbox, and the temporary folder that holds its workspace.
fn empty(backend: &dyn Backend, place: &Path) -> Result<(Temporary, Spec), String> {
    // A sandbox without namespaces has a user of its own, who must be able to enter the folder.
    let folder = Temporary::create(place, PREFIX, 0o711).map_err(|error| format!("no temporary folder: {error}"))?;
    let layers = layers(backend, folder.path())?;
    let spec = Spec {
        layers,
        read_only: Vec::new(),
        sealed: Vec::new(),
        hidden: Vec::new(),
        variables: BTreeMap::new(),
        limits: SandboxLimits::default(),
        gpu: None,
    };
    Ok((folder, spec))
}

async fn run(backend: &dyn Backend, place: &Path, script: &str) -> Result<(), String> {
    let (_folder, spec) = empty(backend, place)?;
    let mut sandbox = backend.start(&spec).await.map_err(|error| crate::error::with_causes(&error))?;
    let limits =
        ExecLimits { wall: Duration::from_secs(10), patience: Duration::ZERO, grace: Duration::ZERO, output: 1000 };
    let done = sandbox.exec(&Command::shell(script), &limits).await.map_err(|fault| fault.to_string())?;
    let result = if done.exit == Exit::Code(0) && done.stdout == b"after\n" {
        Ok(())
    } else {
        Err(format!("a trial command failed: {:?} {}", done.exit, String::from_utf8_lossy(&done.stderr).trim()))
    };
    sandbox.destroy().await.map_err(|fault| fault.to_string())?;
    result
}

/// Makes a workspace in `folder` that has one file, which the trial command changes.
fn layers(backend: &dyn Backend, folder: &Path) -> Result<Layers, String> {
    let make = |path: &Path, has_file: bool| -> io::Result<()> {
        let file = path.join("file");
        std::fs::create_dir(path)?;
        if has_file {
            std::fs::write(&file, "before")?;
        }
        let Some((uid, gid)) = backend.owner() else { return Ok(()) };
        let own = [folder, path, &file];
        own.into_iter().filter(|path| path.exists()).try_for_each(|path| chown(path, Some(uid), Some(gid)))
    };
    let part = |name: &str, has_file: bool| -> Result<PathBuf, String> {
        let path = folder.join(name);
        make(&path, has_file).map_err(|error| format!("failed to prepare `{}`: {error}", path.display()))?;
        Ok(path)
    };
    Ok(match backend.layers() {
        LayersKind::Overlay => Layers::Overlay {
            lower: part("lower", true)?,
            upper: part("upper", false)?,
            work: part("work", false)?,
            disk: None,
        },
        LayersKind::Copy => Layers::Copy { dir: part("copy", true)? },
        LayersKind::Image => {
            Layers::Image { tree: part("tree", true)?, digest: "canary".into(), upper: part("upper", false)? }
        }
    })
}
