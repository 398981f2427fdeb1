//! The first process of a sandbox. The harness starts it and speaks to it by its standard input.

use std::io::{Read, Write};
use std::process::ExitCode;

use autoexperiment_init::{SEARCH, needles, search, wire};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == SEARCH) {
        return search().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    autoexperiment_init::main()
}

/// As an ordinary command in a sandbox: looks for what standard input says in everything that it can read.
fn search() -> std::io::Result<()> {
    let mut wanted = Vec::new();
    std::io::stdin().read_to_end(&mut wanted)?;
    let wanted: needles::Wanted = wire::decode(&wanted)?;
    let mut found = Vec::new();
    wire::put_item(&mut found, &search::search(&wanted))?;
    std::io::stdout().write_all(&found)
}
