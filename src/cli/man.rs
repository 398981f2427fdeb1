//! `autoexperiment man`: prints or writes manual pages.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;

use super::shared::print;
use crate::error::{Error, Result};

/// Print the manual page, or write the pages of all commands
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment man | man -l -\n  autoexperiment man -o ~/.local/share/man/man1")]
pub struct Arguments {
    /// Write a page for the program and for each command to this folder.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let command = super::Arguments::command();
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        return clap_mangen::generate_to(command, folder).map_err(|error| Error::io("write pages to", folder, error));
    }
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Error::internal("failed to render the manual page").because(error))?;
    print(&String::from_utf8_lossy(&page))
}
