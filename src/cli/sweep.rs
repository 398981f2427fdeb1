//! `autoexperiment sweep`: remove what killed processes of this program left behind.

use super::shared::{PlaceOptions, print, print_json};
use crate::error::Result;
use crate::run::scratch::Scratch;
use crate::sandbox::{DockerBackend, Flavour, LocalBackend, Mode};

/// Remove what killed processes left behind: containers, control groups, workspaces
///
/// Every run does so at its start. Only what carries this program's label is touched, and only when the process that it
/// belongs to is gone from this machine; images are kept (`autoexperiment image prune`).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment sweep\n  autoexperiment sweep --json")]
pub struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    places: PlaceOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    // Making a scratch folder and looking for control groups sweeps those of the dead.
    drop(Scratch::create(&arguments.places.scratch())?);
    drop(LocalBackend::with_mode(Mode::Overlay, None));
    let mut told = serde_json::Map::new();
    for flavour in [Flavour::Docker, Flavour::Podman] {
        let Ok(swept) = DockerBackend::sweep(flavour).await else {
            talk!("{}: no engine answers", flavour.name());
            continue;
        };
        told.insert(flavour.name().to_owned(), serde_json::json!(swept));
        if !arguments.json {
            print(&format!("{}: {} container(s) removed\n", flavour.name(), swept.containers))?;
        }
    }
    if arguments.json { print_json(&told) } else { Ok(()) }
}
