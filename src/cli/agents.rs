//! `autoexperiment agents`: lists the external agents that come with the program.

use super::shared::{PlaceOptions, print, print_json, table};
use crate::agent::list_bundled;
use crate::error::Result;

/// List the external agents that come with AutoExperiment, and whether they are installed
///
/// `--agent cli:NAME` runs one. It is installed into the cache when a run first needs it, from PyPI or npm, in the
/// version given by its lock.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment agents\n  autoexperiment run -n 1 --agent cli:codex --model openai:gpt-5-mini"
)]
pub struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    places: PlaceOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let agents = list_bundled(&arguments.places.cache()?)?;
    if arguments.json {
        return print_json(&agents);
    }
    let rows = agents.iter().map(|agent| {
        let installed = if agent.installed { "yes" } else { "no" };
        vec![format!("cli:{}", agent.name), agent.modes.join(", "), agent.source.clone(), installed.to_owned()]
    });
    print(&table(&["agent", "modes", "from", "installed"], &[], rows))
}
