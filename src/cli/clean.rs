//! `autoexperiment clean`: removes what killed processes of this program left behind.

use std::path::PathBuf;

use super::shared::{PlaceOptions, print, print_json};
use crate::error::{Error, FailureKind, Result};
use crate::run::Store;
use crate::run::scratch::Scratch;
use crate::sandbox::{ConfinementMode, ContainerBackend, EngineKind, LocalBackend, sweep_folders};

/// Remove what killed processes left behind: containers, control groups, workspaces, folders of runs not begun
///
/// Every run does this when it starts. Removes only what has this program's label and belongs to a process that no
/// longer exists on this machine. Keeps images (see `autoexperiment image prune`).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment clean\n  autoexperiment clean --json")]
pub struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    #[command(flatten)]
    places: PlaceOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    // These calls remove what dead processes left: scratch folders, temporary folders, folders of runs, control groups.
    drop(Scratch::create(&arguments.places.scratch())?);
    sweep_folders();
    Store::sweep(&arguments.runs);
    drop(LocalBackend::with_mode(ConfinementMode::Overlay));
    let mut told = serde_json::Map::new();
    let mut failed = Vec::new();
    for kind in [EngineKind::Docker, EngineKind::Podman] {
        let swept = match ContainerBackend::sweep(kind).await {
            Ok(swept) => swept,
            Err(error) if error.kind == FailureKind::Machine => {
                talk!("{}: no engine answers", kind.name());
                continue;
            }
            Err(error) => {
                failed.push(error);
                continue;
            }
        };
        told.insert(kind.name().to_owned(), serde_json::json!(swept));
        if !arguments.json {
            print(&format!("{}: {} container(s) removed\n", kind.name(), swept.containers))?;
        }
        for failure in &swept.failures {
            talk!("{}: {failure}", kind.name());
        }
        failed.extend(left_over(kind, swept.failures.len()));
    }
    if arguments.json {
        print_json(&told)?;
    }
    // Each engine is tried, even if another one fails. The last failure decides the exit code.
    let last = failed.pop();
    for error in failed {
        talk!("{error}");
    }
    last.map_or(Ok(()), Err)
}

/// Returns an error if `count` containers could not be removed; `None` for 0.
fn left_over(kind: EngineKind, count: usize) -> Option<Error> {
    let name = kind.name();
    (count > 0).then(|| {
        Error::new(FailureKind::Infrastructure, format!("{name} failed to remove {count} container(s)"))
            .hint(format!("see what holds them with `{name} ps --all` and `{name} info`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaning_fails_only_if_something_could_not_be_removed() {
        assert!(left_over(EngineKind::Docker, 0).is_none());
        let error = left_over(EngineKind::Podman, 2).unwrap();
        assert_eq!(error.kind, FailureKind::Infrastructure);
        assert_eq!(error.message, "podman failed to remove 2 container(s)");
    }
}
