//! The first process of a sandbox. The harness starts it and talks to it through its standard input.

use std::io::{Read, Write};
use std::process::ExitCode;

use autoexperiment_init::{SEARCH, needles, search, wire};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == SEARCH) {
        return search().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    autoexperiment_init::main()
}

/// Runs as an ordinary command in a sandbox: searches all files that it can read for the texts given on standard input.
fn search() -> std::io::Result<()> {
    let mut wanted = Vec::new();
    std::io::stdin().read_to_end(&mut wanted)?;
    let wanted: needles::WantedSecrets = wire::decode(&wanted)?;
    let mut found = Vec::new();
    wire::put_item(&mut found, &search::search(&wanted))?;
    std::io::stdout().write_all(&found)
}
