//! Options and small things that several verbs share.

use std::future::Future;
use std::io::Write;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::run::machine::default_scratch;
use crate::suite::Suite;

/// Where the suite is.
#[derive(clap::Args)]
pub struct SuiteOptions {
    /// Folder of the suite, with `papers`, `repos` and `envs` [default: this folder, or the nearest parent that has
    /// them].
    #[arg(long, value_name = "DIR", env = "AUTOEXPERIMENT_SUITE")]
    suite: Option<PathBuf>,
}

impl SuiteOptions {
    /// Whether somebody says where the suite is, so that it has to be there.
    pub const fn is_named(&self) -> bool {
        self.suite.is_some()
    }

    /// Opens the suite.
    pub fn open(&self) -> Result<Suite> {
        Suite::open(&self.folder()?)
    }

    /// The suite's folder, whatever is in it.
    pub fn folder(&self) -> Result<PathBuf> {
        if let Some(folder) = &self.suite {
            return std::path::absolute(folder).map_err(|error| Error::io("resolve", folder, error));
        }
        let here = std::env::current_dir()
            .map_err(|error| Error::machine("the current folder cannot be found").because(error))?;
        let above = here.ancestors().find(|folder| folder.join("papers").is_dir() && folder.join("repos").is_dir());
        Ok(above.unwrap_or(&here).to_owned())
    }
}

/// Where envs, repos' copies and workspaces are kept.
#[derive(clap::Args)]
pub struct PlaceOptions {
    /// Folder for envs and copies of repos [default: ~/.cache/autoexperiment].
    #[arg(long, value_name = "DIR", env = "AUTOEXPERIMENT_CACHE", help_heading = "Places")]
    cache: Option<PathBuf>,
    /// Folder for workspaces while attempts run; use a local disk [default: the system's temporary folder].
    #[arg(long, value_name = "DIR", env = "AUTOEXPERIMENT_SCRATCH", help_heading = "Places")]
    scratch: Option<PathBuf>,
}

impl PlaceOptions {
    /// The cache folder, absolute.
    pub fn cache(&self) -> Result<PathBuf> {
        let folder = match &self.cache {
            Some(folder) => folder.clone(),
            None => crate::env::default_cache()?,
        };
        std::path::absolute(&folder).map_err(|error| Error::io("resolve", &folder, error))
    }

    /// The scratch folder.
    pub fn scratch(&self) -> PathBuf {
        self.scratch.clone().unwrap_or_else(default_scratch)
    }
}

/// Runs a verb that waits for others.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::machine("failed to start the runtime").because(error))?
        .block_on(future)
}

/// Writes data to stdout. A reader that has gone away, as `| head`, is no error.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::machine("failed to write to standard output").because(error))
        }
        _ => Ok(()),
    }
}

/// Writes data as pretty JSON to stdout.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::internal("failed to serialise output").because(error))?;
    print(&(text + "\n"))
}

/// A plain table: header, rows, columns of numbers to the right.
pub fn table(header: &[&str], numbers: &[usize], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row.iter().map(|cell| crate::report::clean(cell)).collect::<Vec<_>>());
    }
    for &column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
