//! Imports ResearchCodeBench's tasks into a new suite: papers whose code has regions marked by comment tags, hidden
//! tests that score an attempt, and one env for all papers.
//!
//! ```text
//! <dir>/pset/papers.yaml                              title, dates, annotated files and context files of each paper
//! <dir>/pset/<paper>/paper2code_test.py, *_ref.py     tests and reference solutions: hidden from agents
//! <dir>/pset/<paper>/paper2code_paper.tex (or .md)    the text, from which results are removed
//! <dir>/pset/<paper>/...                              the code, with `# <paper2code name="...">` around regions
//! ```
//!
//! [`read`] parses and checks everything before [`write`] creates the suite, so that an error leaves nothing behind.
//! [`needs`] finds the packages that a paper's tests import, and rejects papers that cannot run here.

mod needs;
mod read;
mod write;

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};

/// Result of importing a folder of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportedTasks {
    /// The papers in the new suite.
    pub papers: Vec<ImportedTask>,
    /// The papers that were not imported, because they cannot run here.
    pub refused: Vec<RefusedTask>,
    /// Packages of the env that all papers share, as requirements.
    pub packages: Vec<String>,
    /// Modules that the papers' tests import and whose packages are not known, such as `some_module (PAPER)`. The env
    /// lacks them.
    pub unknown: Vec<String>,
}

/// A paper that was imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedTask {
    /// The paper's id.
    pub paper: String,
    /// Names of the regions of the paper's code that tags mark, in the manifest's order.
    pub regions: Vec<String>,
    /// Number of regions that are inside another region.
    pub nested: usize,
    /// Number of lines of code in all regions. A line that is in several nested regions is counted once.
    pub lines: usize,
    /// Files that are hidden from agents.
    pub hidden: Vec<String>,
    /// Count of the numbers removed from the paper's text.
    pub scrubbed: usize,
    /// Tags that were left out because they do not enclose whole statements, with file and line.
    pub left_out: Vec<String>,
}

/// A paper that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedTask {
    /// The paper's id.
    pub paper: String,
    /// Why the paper cannot run here, with the file and line from which this follows.
    pub reason: String,
}

/// Imports all papers of `folder` into the new suite `output`. An error leaves nothing behind.
///
/// # Errors
/// Kind `Usage` if the folder has no `papers.yaml` or `output` exists; kind `Suite`, with file and line, for anything
/// in the folder that is missing or contradictory; kind `Machine` if the suite cannot be written.
pub fn import_tasks(folder: &Path, output: &Path) -> Result<ImportedTasks> {
    if output.symlink_metadata().is_ok() {
        return Err(Error::usage(format!("`{}` exists", output.display())).hint("give the name of a new folder"));
    }
    let tasks = read::read(folder)?;
    let beside = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error| Error::io("create", output, error);
    std::fs::create_dir_all(beside).map_err(failed)?;
    // If the import fails, this folder is removed when it is dropped. Other users cannot read it, but the suite inside
    // of it gets the usual permissions.
    let partial = tempfile::Builder::new().prefix(".autoexperiment-import-").tempdir_in(beside).map_err(failed)?;
    let suite = partial.path().join("suite");
    let written = write::write(&tasks, &suite)?;
    std::fs::rename(&suite, output).map_err(failed)?;
    Ok(written)
}
