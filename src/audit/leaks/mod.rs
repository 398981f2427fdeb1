//! What of a masked body, or of a gold result, stands elsewhere in what agents see.
//!
//! Agents are given the repo without what snapshots leave out (version control, caches, compiled Python), with the
//! sample's functions masked, and the paper's text and descriptions. [`measure`] reads all of that and runs nothing: for
//! each maskable function, which part of its body is in some one file of it ([`crate::code::containment`], the
//! larger of both ways of comparing names), and what cannot be compared but gives code away all the same.
//!
//! A body that is masked cannot be read where it stands. So for each function its own body is left out of the file that
//! holds it, and with it what is nested in it; the docstring stays, as in the masked file.

mod bodies;
mod findings;
mod readings;
mod search;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::suite::{GoldValues, LoadedPaper};
use crate::workspace::{Snapshot, is_left_out};
use bodies::Bodies;
pub use findings::installed;
use search::{Search, Visible};

/// From this containment on a function is said to leak.
pub const LEAK: f64 = 0.6;

/// Longer files are not read, but named.
const LARGEST: u64 = 16 << 20;

/// What was found in a paper.
#[derive(Debug)]
pub struct LeakReport {
    /// Every maskable function, in the manifest's order.
    pub functions: Vec<FunctionLeak>,
    /// Maskable functions that hold each other's bodies.
    pub pairs: Vec<Pair>,
    /// All else that gives something away.
    pub findings: Vec<Finding>,
}

/// What of one function's body stands elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionLeak {
    /// Its selector.
    pub at: String,
    /// The largest part of its body that is in one other file, 0 to 1: the larger of the two below.
    pub containment: f64,
    /// Where most of that stands: a selector, or `file:line`; empty for nowhere.
    pub place: String,
    /// The largest part with names compared as they are.
    pub kept: f64,
    /// The largest part with all names alike.
    pub normalised: f64,
}

/// Two maskable functions, one of which holds [`LEAK`] or more of the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Their places in the manifest.
    pub functions: (usize, usize),
    /// Their selectors.
    pub at: (String, String),
    /// Which part of the first is in the second, and of the second in the first.
    pub containment: (f64, f64),
}

/// Something that gives code or results away, or could.
#[derive(Debug)]
pub struct Finding {
    /// What sort.
    pub kind: FindingKind,
    /// What, where, and what to do.
    pub error: Error,
}

/// A sort of [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A gold value in a text.
    GoldValue,
    /// Compiled code.
    Compiled,
    /// An archive with code in it, or that cannot be looked into.
    Archive,
    /// Objects of git, which hold old versions of files.
    GitObjects,
    /// The paper's own package in the environment.
    Installed,
    /// A file of data, by its name, that could not be looked into: too long, or packed by other means than gzip.
    Unread,
}

impl LeakReport {
    /// Whether [`LeakReport::errors`] has none.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.pairs.is_empty()
            && self.functions.iter().all(|function| function.containment < LEAK)
            && self.findings.iter().all(|finding| finding.kind == FindingKind::Unread)
    }

    /// What is wrong, as errors that say what to do: functions of which [`LEAK`] or more stands elsewhere, and the
    /// findings, but for files that could not be looked into, which are data as a rule. A pair stands for its two
    /// functions where each one's worst place is the other.
    #[must_use]
    pub fn errors(self) -> Vec<Error> {
        let mut errors = Vec::new();
        for pair in &self.pairs {
            let ((one, other), (first, second)) = (&pair.at, pair.containment);
            errors.push(
                Error::suite(format!(
                    "functions `{one}` and `{other}` give each other away: {:.0}% of the first is in the second, {:.0}% of the second in the first",
                    100.0 * first, 100.0 * second
                ))
                .hint("write one of them another way, or move what they share into one function that both call and that can be masked itself"),
            );
        }
        for function in &self.functions {
            let told = self.pairs.iter().any(|pair| {
                (pair.at.0 == function.at && pair.at.1 == function.place)
                    || (pair.at.1 == function.at && pair.at.0 == function.place)
            });
            if function.containment >= LEAK && !told {
                errors.push(
                    Error::suite(format!(
                        "{:.0}% of function `{}` is in `{}`",
                        100.0 * function.containment,
                        function.at,
                        function.place
                    ))
                    .hint("write one of the two another way, or leave the function out of the manifest"),
                );
            }
        }
        let found = self.findings.into_iter().filter(|finding| finding.kind != FindingKind::Unread);
        errors.extend(found.map(|finding| finding.error));
        errors
    }
}

/// Looks for leaks in everything that agents see of a paper, but for the environment, see [`installed`]. What the repo's
/// build made is searched where `built` has it.
///
/// # Errors
/// Kind `Suite` when the repo cannot be read.
pub fn measure(loaded: &LoadedPaper, built: Option<&Snapshot>) -> Result<LeakReport> {
    let bodies = Bodies::new(loaded);
    let gold = GoldValues::new(loaded);
    let mut search = Search::new(loaded, &bodies);
    let exempted = loaded.paper.compiled_set();
    let mut findings: Vec<Finding> =
        gold.in_paper(loaded).into_iter().map(|error| Finding { kind: FindingKind::GoldValue, error }).collect();

    search.look(&Visible::text("paper.md", loaded.text.as_bytes()));
    for function in &loaded.paper.units {
        let name = format!("paper.toml, description of `{}`", function.at);
        search.look(&Visible::text(&name, function.description.as_bytes()));
    }
    for experiment in &loaded.paper.experiments {
        let name = format!("paper.toml, experiment `{}`", experiment.id);
        search.look(&Visible::text(&name, format!("{}\n{}", experiment.description, experiment.command).as_bytes()));
    }
    let in_repo = files(&loaded.repo_dir, &mut findings)?.into_iter().map(|file| (loaded.repo_dir.as_path(), file));
    let products = built.into_iter().flat_map(|built| built.products().iter().map(|file| (built.tree(), file.into())));
    for (root, relative) in in_repo.chain(products) {
        let path = root.join(&relative);
        let length = path.metadata().map_err(|error| Error::io("read", &path, error))?.len();
        if length > LARGEST {
            findings.push(Finding {
                kind: FindingKind::Unread,
                error: Error::suite(format!("a file of {} MB was not searched for leaks", length >> 20))
                    .at(path, None)
                    .hint("make sure that it holds data only"),
            });
            continue;
        }
        let mut bytes = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
        if let Some(unpacked) = findings::unpacked(&bytes) {
            bytes = unpacked;
        }
        let found = findings::of_file(&path, &bytes);
        let exempt = root != loaded.repo_dir || exempted.is_match(&relative);
        findings.extend(match found {
            Some(finding) if finding.kind == FindingKind::Compiled && exempt => {
                findings::of_compiled(loaded, &path, &relative, &bytes)
            }
            found => found,
        });
        search.look(&Visible::file(&relative, &bytes));
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let values = gold.in_file(&path, text);
            findings.extend(values.into_iter().map(|error| Finding { kind: FindingKind::GoldValue, error }));
        }
    }
    findings.extend(findings::locked(loaded));
    let (functions, pairs) = search.finish();
    Ok(LeakReport { functions, pairs, findings })
}

/// The files of a repo that agents see, sorted; folders that are git's are named in `findings`.
fn files(repo: &Path, findings: &mut Vec<Finding>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let walk = walkdir::WalkDir::new(repo).sort_by_file_name().into_iter();
    let seen = walk.filter_entry(|entry| entry.depth() == 0 || !entry.file_name().to_str().is_some_and(is_left_out));
    for entry in seen {
        let entry = entry
            .map_err(|error| Error::suite(format!("failed to read the repo `{}`", repo.display())).because(error))?;
        if entry.file_type().is_dir() {
            findings.extend(findings::of_folder(entry.path()));
        } else if entry.file_type().is_file() {
            found.push(entry.path().strip_prefix(repo).unwrap_or(entry.path()).to_path_buf());
        }
    }
    Ok(found)
}
