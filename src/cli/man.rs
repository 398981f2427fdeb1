//! `autoexperiment man`: prints or writes manual pages, or prints the help of all commands as one Markdown page.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_mangen::Man;

use super::shared::print;
use crate::error::{Error, Result};

/// Print the manual page, write the pages of all commands, or print the help of all commands as one page
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment man | man -l -\n  autoexperiment man -o ~/.local/share/man/man1\n  autoexperiment man --markdown > options.md"
)]
pub struct Arguments {
    /// Write a page for the program and for each command to this folder.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print what `--help` says of every command, as one page in Markdown.
    #[arg(long, conflicts_with = "output")]
    markdown: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let command = super::Arguments::command();
    if let Some(folder) = &arguments.output {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
        return clap_mangen::generate_to(command, folder).map_err(|error| Error::io("write pages to", folder, error));
    }
    if arguments.markdown {
        let mut page = "# Options\n\nWhat `--help` says of each command.\n".to_owned();
        let mut command = for_print(super::command());
        command.build();
        for (_, verbs) in super::GROUPS {
            for verb in verbs {
                if let Some(verb) = command.find_subcommand(verb) {
                    describe(verb, verb.get_name(), &mut page);
                }
            }
        }
        return print(&page);
    }
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Error::internal("failed to render the manual page").because(error))?;
    print(&String::from_utf8_lossy(&page))
}

/// Width in columns of the help texts on the Markdown page.
const COLUMNS: usize = 100;

/// Prepares a command's help for a page: a fixed width, and no values of this machine's environment variables.
fn for_print(command: clap::Command) -> clap::Command {
    command.term_width(COLUMNS).mut_args(|argument| argument.hide_env_values(true)).mut_subcommands(for_print)
}

/// Appends the help of a command, and then the help of its subcommands.
fn describe(command: &clap::Command, name: &str, page: &mut String) {
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = writeln!(page, "\n## {name}\n\n```text\n{}\n```", lines.join("\n").trim());
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        describe(below, &format!("{name} {}", below.get_name()), page);
    }
}
