//! `autoexperiment mask`: shows the masked repo that an agent would get.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::shared::{PaperOptions, PlaceOptions, SuiteOptions, print_file, print_json};
use crate::agent::files::task_files;
use crate::code::{MaskTarget, Module};
use crate::error::{Error, Result};
use crate::masked::ready::task_experiments;
use crate::masked::replication;
use crate::sample::Withheld;
use crate::suite::{LoadedPaper, Protocol};
use crate::workspace::{Layers, LayersKind, Snapshot, Workspace, unified_diff};

/// Mask functions of a paper's repo, or of any Python file
///
/// Prints the masked files as a diff, or writes the whole tree that an agent would get. With `--source`, prints a
/// Python file with functions masked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment mask kmeanspp -f 0,3\n  autoexperiment mask kmeanspp -f 2 -o masked\n  \
                        autoexperiment mask --source model.py --function Net.forward --function 'loss=The loss.'"
)]
pub struct Arguments {
    #[command(flatten)]
    paper: PaperOptions,
    /// Functions to mask: their numbers in `autoexperiment list PAPER`, or their selectors. Without any, nothing is
    /// masked.
    #[arg(short, long, value_name = "FUNCTION,...", value_delimiter = ',')]
    functions: Vec<String>,
    /// Write the tree to this folder, which must not exist.
    #[arg(short, long, value_name = "DIR", conflicts_with = "diff")]
    output: Option<PathBuf>,
    /// Print a diff of the masked files [default].
    #[arg(long)]
    diff: bool,
    /// Print JSON: the sample, its functions, the masked files and the diff.
    #[arg(long, conflicts_with_all = ["output", "diff"])]
    json: bool,
    /// Mask this Python file instead of a paper's; `-` reads standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["named", "papers", "functions", "output", "diff", "json"])]
    source: Option<PathBuf>,
    /// Function to mask in `--source`, as `Class.method`, with `#2` for the second of that name. After a `=`, a
    /// docstring for a function that has none. Can be repeated.
    #[arg(long, value_name = "NAME[=DESCRIPTION]", requires = "source")]
    function: Vec<String>,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(file) = &arguments.source {
        return source(file, &arguments.function);
    }
    let suite = arguments.suite.open()?;
    let paper = arguments.paper.one()?;
    suite.select(std::slice::from_ref(&paper))?;
    let loaded = LoadedPaper::load(&suite, &paper)?;
    let mut functions = arguments.functions.iter().map(|one| loaded.place(one)).collect::<Result<Vec<_>>>()?;
    functions.sort_unstable();
    functions.dedup();
    loaded.require(&functions)?;
    let masked = loaded.masked(&functions)?;
    let Some(output) = &arguments.output else {
        let diffs = masked.iter().zip(loaded.originals(&functions)).map(|(file, (_, original))| {
            String::from_utf8_lossy(&unified_diff(&file.path.to_string_lossy(), &original, &file.bytes)).into_owned()
        });
        let diff: String = diffs.collect();
        if !arguments.json {
            return print_file(diff.as_bytes());
        }
        let files: Vec<_> = masked
            .iter()
            .map(|file| json!({ "path": file.path, "masked": String::from_utf8_lossy(&file.bytes) }))
            .collect();
        let names: Vec<&str> = functions.iter().map(|&place| loaded.paper.units[place].at.as_str()).collect();
        let sample = Withheld { item: paper.clone(), units: functions.clone() }.to_string();
        return print_json(&json!({ "sample": sample, "functions": names, "files": files, "diff": diff }));
    };
    if output.exists() {
        return Err(Error::usage(format!("`{}` exists", output.display())).hint("give the name of a new folder"));
    }
    let experiments = task_experiments(&loaded, Protocol::Curtailed)?;
    let replication = replication(&loaded, &experiments, &functions);
    let sample = Withheld { item: paper, units: functions };
    let mut files: Vec<(PathBuf, Vec<u8>)> = masked.into_iter().map(|file| (file.path, file.bytes)).collect();
    files.extend(task_files(&replication));
    let cache = arguments.places.cache()?;
    let snapshot = Snapshot::take(&loaded.repo_dir, &cache, None)?.without(&loaded.paper.hidden_set(), &cache, None)?;
    // Create the tree next to its final place and move it there whole; the rest of the workspace is removed on drop.
    let workspace = Workspace::create(&snapshot, &files, &beside(output), LayersKind::Copy, None)?;
    if let Layers::Copy { dir } = workspace.layers() {
        std::fs::rename(dir, output).map_err(|error| Error::io("create", output, error))?;
    }
    talk!("wrote sample `{sample}` to `{}`", output.display());
    Ok(())
}

/// Returns the folder next to `output` in which its tree is created. A slash at the end of `output`, which shells append
/// to a folder's name, is not part of the name.
fn beside(output: &Path) -> PathBuf {
    let mut name = output.components().collect::<PathBuf>().into_os_string();
    name.push(".partial");
    name.into()
}

/// Prints a Python file with these functions masked.
fn source(path: &Path, functions: &[String]) -> Result<()> {
    let mut text = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut text).map(drop)
    } else {
        std::fs::read(path).map(|bytes| text = bytes)
    };
    read.map_err(|error| Error::unreadable(path, error))?;
    let module = Module::parse(path, text)?;
    let mut targets = Vec::new();
    for function in functions {
        let (name, description) = function.split_once('=').map_or((function.as_str(), None), |(a, b)| (a, Some(b)));
        targets.push(MaskTarget { function: module.find(name)?, description });
    }
    print_file(&module.mask_checked(&targets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_created_beside_its_folder_even_if_the_folders_name_ends_with_a_slash() {
        for output in ["a/masked", "a/masked/", "a/masked//."] {
            assert_eq!(beside(Path::new(output)), Path::new("a/masked.partial"), "{output}");
        }
    }
}
