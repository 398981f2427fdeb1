//! `autoexperiment completions`: completions of the command line for a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use super::shared::print;
use crate::error::{Error, Result};

/// Print shell completions
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment completions bash >~/.local/share/bash-completion/completions/autoexperiment\n  autoexperiment completions zsh >~/.zfunc/_autoexperiment\n  autoexperiment completions fish >~/.config/fish/completions/autoexperiment.fish"
)]
pub struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "autoexperiment", &mut text);
    let text = String::from_utf8(text).map_err(|error| Error::internal("completions are no text").because(error))?;
    print(&text)
}
