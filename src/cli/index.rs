//! `autoexperiment index`: lists the functions of a folder or file.

use std::path::PathBuf;

use super::shared::{print, print_json, table};
use crate::code::{FunctionRow, index_tree};
use crate::error::{Error, Result};

/// List every Python function under a path, with its selector, lines, decorators and calls
///
/// Files that do not parse are reported on stderr and skipped.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment index repos/kmeanspp\n  autoexperiment index --json file.py")]
pub struct Arguments {
    /// A folder or a Python file.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.path.exists() {
        return Err(Error::usage(format!("there is no `{}`", arguments.path.display()))
            .hint("name a Python file, or a folder with some"));
    }
    let mut rows: Vec<FunctionRow> = Vec::new();
    for (path, module) in index_tree(&arguments.path) {
        match module {
            Ok(module) => rows.extend(module.rows()),
            Err(error) => talk!("left out: {}: {}", path.display(), crate::report::clean(&error.to_string())),
        }
    }
    if arguments.json {
        return print_json(&rows);
    }
    print(&table(
        &["function", "lines", "calls", "marks"],
        &[1, 2],
        rows.iter().map(|row| {
            let mut marks: Vec<String> = row.decorators.clone();
            marks.extend(row.is_async.then(|| "async".to_owned()));
            marks.extend(row.nested_in.is_some().then(|| "nested".to_owned()));
            vec![row.selector.to_string(), row.lines.to_string(), row.calls.len().to_string(), marks.join(" ")]
        }),
    ))
}
