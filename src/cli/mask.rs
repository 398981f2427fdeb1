//! `autoexperiment mask`: what an agent would be given.

use std::path::{Path, PathBuf};

use super::shared::{PlaceOptions, SuiteOptions, print};
use crate::agent::files::task_files;
use crate::error::{Error, Result};
use crate::masked::ready::task_experiments;
use crate::masked::replication;
use crate::sample::Withheld;
use crate::suite::{LoadedPaper, Protocol};
use crate::workspace::{Layers, LayersKind, Snapshot, Workspace, unified_diff};

/// Mask functions of a paper's repo
///
/// Prints the masked files as a diff, or writes the whole tree that an agent would get.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment mask kmeanspp -f 0,3\n  autoexperiment mask kmeanspp -f 2 -o masked"
)]
pub struct Arguments {
    /// The paper.
    paper: String,
    /// Numbers of the functions to mask, as `autoexperiment list PAPER` shows them. Without any, nothing is masked.
    #[arg(short, long, value_name = "I,J,...", value_delimiter = ',')]
    functions: Vec<usize>,
    /// Write the tree to this folder, which must not exist.
    #[arg(short, long, value_name = "DIR", conflicts_with = "diff")]
    output: Option<PathBuf>,
    /// Print a diff of the masked files [default].
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.open()?;
    suite.select(std::slice::from_ref(&arguments.paper))?;
    let loaded = LoadedPaper::load(&suite, &arguments.paper)?;
    let mut functions = arguments.functions.clone();
    functions.sort_unstable();
    functions.dedup();
    loaded.require(&functions)?;
    let masked = loaded.masked(&functions)?;
    let Some(output) = &arguments.output else {
        for (file, (_, original)) in masked.iter().zip(loaded.originals(&functions)) {
            print(&String::from_utf8_lossy(&unified_diff(&file.path.to_string_lossy(), &original, &file.bytes)))?;
        }
        return Ok(());
    };
    if output.exists() {
        return Err(Error::usage(format!("`{}` exists", output.display())).hint("name a folder that does not exist"));
    }
    let experiments = task_experiments(&loaded, Protocol::Curtailed)?;
    let replication = replication(&loaded, &experiments, &functions);
    let sample = Withheld { item: arguments.paper.clone(), units: functions };
    let mut files: Vec<(PathBuf, Vec<u8>)> = masked.into_iter().map(|file| (file.path, file.bytes)).collect();
    files.extend(task_files(&replication));
    let snapshot = Snapshot::take(&loaded.repo_dir, &arguments.places.cache()?, None)?;
    // Made beside its place and moved there whole; what is left of the workspace goes when it is dropped.
    let mut beside = output.as_os_str().to_owned();
    beside.push(".partial");
    let workspace = Workspace::create(&snapshot, &files, Path::new(&beside), LayersKind::Copy, None)?;
    if let Layers::Copy { dir } = workspace.layers() {
        std::fs::rename(dir, output).map_err(|error| Error::io("create", output, error))?;
    }
    talk!("wrote sample `{sample}` to `{}`", output.display());
    Ok(())
}
