//! `autoexperiment index`: lists the functions of a folder or file.

use std::path::PathBuf;

use super::shared::{print, table};
use crate::code::{FunctionRow, Module, each_module};
use crate::error::{Error, Result};
use crate::report::safe_json;

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
    let left_out = |path: PathBuf, error: Error| {
        talk!("left out: {}: {}", path.display(), crate::report::clean(&error.to_string()));
    };
    if arguments.json {
        let mut printed = JsonRows { is_empty: true, failed: None };
        each_module(
            &arguments.path,
            |module| module.map(|module| json_of(&module.rows())),
            |path, rows| match rows {
                Ok(rows) => printed.print(rows),
                Err(error) => left_out(path, error),
            },
        );
        return printed.end();
    }
    let mut rows = Vec::new();
    let cells = |module: Result<Module>| module.map(|module| module.rows().iter().map(cells).collect::<Vec<_>>());
    each_module(&arguments.path, cells, |path, found| match found {
        Ok(found) => rows.extend(found),
        Err(error) => left_out(path, error),
    });
    print(&table(&["function", "lines", "calls", "marks"], &[1, 2], rows))
}

fn cells(row: &FunctionRow) -> Vec<String> {
    let mut marks: Vec<String> = row.decorators.clone();
    marks.extend(row.is_async.then(|| "async".to_owned()));
    marks.extend(row.nested_in.is_some().then(|| "nested".to_owned()));
    vec![row.selector.to_string(), row.lines.to_string(), row.calls.len().to_string(), marks.join(" ")]
}

/// Formats rows as the elements of a pretty-printed array.
fn json_of(rows: &[FunctionRow]) -> Result<Vec<String>> {
    let format = |row| serde_json::to_string_pretty(row).map(|text| safe_json(&text).replace('\n', "\n  "));
    rows.iter()
        .map(format)
        .collect::<serde_json::Result<_>>()
        .map_err(|error| Error::internal("failed to serialise output").because(error))
}

/// Prints an array of any length, in the format of [`print_json`](super::shared::print_json), as its elements arrive.
struct JsonRows {
    is_empty: bool,
    failed: Option<Error>,
}

impl JsonRows {
    fn print(&mut self, rows: Result<Vec<String>>) {
        let mut text = String::new();
        match rows {
            Ok(rows) => {
                for row in rows {
                    text.push_str(if self.is_empty { "[\n  " } else { ",\n  " });
                    text.push_str(&row);
                    self.is_empty = false;
                }
            }
            Err(error) => self.failed = Some(error),
        }
        if self.failed.is_none() {
            self.failed = print(&text).err();
        }
    }

    fn end(self) -> Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => print(if self.is_empty { "[]\n" } else { "\n]\n" }),
        }
    }
}
