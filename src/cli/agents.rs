//! `autoexperiment agents`: lists the agents' settings, and the external agents that come with the program.

use serde_json::json;

use super::shared::{PlaceOptions, print, print_json, table, wrapped};
use crate::agent::{SettingHelp, describe_settings, list_bundled};
use crate::error::Result;

/// List the external agents that come with AutoExperiment, and the settings of `react`, `fixed` and `ml-agent`
///
/// `--agent cli:NAME` runs an external agent. It is installed into the cache when a run first needs it, from PyPI or
/// npm, in the version given by its lock. Settings follow an agent's name, as in `--agent fixed:paper=none,repair=2`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment agents\n  autoexperiment run -n 1 --agent cli:codex --model openai:gpt-5-mini\n  autoexperiment run -n 1 --agent react:prompt=planning,history=window:5 --model openai:gpt-5-mini"
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
    let settings = describe_settings();
    if arguments.json {
        return print_json(&json!({ "agents": agents, "settings": settings }));
    }
    let rows = agents.iter().map(|agent| {
        let installed = if agent.installed { "yes" } else { "no" };
        vec![format!("cli:{}", agent.name), agent.modes.join(", "), agent.source.clone(), installed.to_owned()]
    });
    print(&table(&["agent", "modes", "from", "installed"], &[], rows))?;
    let mut text = String::from("\nSettings, as in --agent react:KEY=VALUE; defaults in brackets\n");
    for setting in &settings {
        text += &setting_lines(setting);
    }
    print(&text)
}

/// Formats a setting: a line with its name and the agents that have it, each with its default, then the setting's help.
fn setting_lines(setting: &SettingHelp) -> String {
    let default = |default: &str| if default.is_empty() { String::new() } else { format!(" [{default}]") };
    let agents: Vec<String> = setting.agents.iter().map(|(name, value)| format!("{name}{}", default(value))).collect();
    let name = format!("{}={}", setting.key, setting.value);
    format!("  {name:<22} {}\n{}", agents.join(", "), wrapped("     ", setting.help, 6))
}
