//! Finds parts of masked bodies or gold results elsewhere in what agents see.
//!
//! Agents get the repo without what snapshots leave out (version control, caches, compiled Python), with the sample's
//! functions masked, and the paper's text and the texts of its manifest. [`measure`] reads all of that and runs
//! nothing. For each maskable function, it measures the share of the body that is in any single file
//! ([`crate::code::containment`]). It compares names once unchanged and once as if all names were equal, and uses the
//! larger share. It also lists files that cannot be compared but may reveal code anyway.
//!
//! Agents do not see a masked body in the function's own file. So when that file is searched for the function, the body
//! and everything nested in it are left out. The docstring stays, as in the masked file.

mod findings;
mod readings;
mod search;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::files::{readable_text, without_utf16};
use crate::suite::{Bodies, GoldValues, LoadedPaper, copies};
use crate::workspace::{Snapshot, is_left_out};
use search::{LeakSearch, Visible};

/// If one other place contains at least this share of a function's body, the function counts as leaked.
pub(super) const LEAK: f64 = 0.6;

/// Size in bytes above which a file is only listed, not read.
const LARGEST: u64 = 16 << 20;

/// The findings for one paper.
#[derive(Debug)]
pub struct LeakReport {
    /// Every maskable function, in the manifest's order.
    pub functions: Vec<FunctionLeak>,
    /// Pairs of maskable functions with similar bodies.
    pub pairs: Vec<SimilarPair>,
    /// Everything else that reveals, or might reveal, code or results.
    pub findings: Vec<LeakFinding>,
}

/// How much of one function's body also appears elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionLeak {
    /// Selector of the function.
    pub at: String,
    /// Largest share of the body, 0 to 1, found in a single file or text that agents see, which may be the rest of the
    /// function's own file. The larger of `kept` and `normalised`.
    pub containment: f64,
    /// Place that contains the largest share of the body: the selector of a function if at least half of the share is
    /// in that function, otherwise `file:line` or a file. Empty if `containment` is 0.
    pub place: String,
    /// Largest share of the body found in a single file if names are compared as they are written.
    pub kept: f64,
    /// Largest share of the body found in a single file if all names are treated as equal.
    pub normalised: f64,
}

/// Two maskable functions, at least one of which contains [`LEAK`] or more of the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimilarPair {
    /// Indices in the manifest.
    pub functions: (usize, usize),
    /// Selectors of the functions, in the order of `functions`.
    pub at: (String, String),
    /// Share of the first function's body that is in the second function, and share of the second's body in the first.
    pub containment: (f64, f64),
}

/// Something that reveals, or might reveal, code or results.
#[derive(Debug)]
pub struct LeakFinding {
    /// Kind of finding.
    pub kind: FindingKind,
    /// Error that describes the finding, with its place and a hint on what to do.
    pub error: Error,
}

/// Kinds of [`LeakFinding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A gold value in a text.
    GoldValue,
    /// Compiled code.
    Compiled,
    /// An archive that contains code or cannot be read.
    Archive,
    /// Git objects, which contain old versions of files.
    GitObjects,
    /// The paper's own package in the environment.
    Installed,
    /// A file that could not be read, because it is too long or compressed by other means than gzip; probably data,
    /// judging by its name.
    Unread,
}

impl LeakReport {
    /// Whether [`LeakReport::errors`] is empty.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.pairs.is_empty()
            && self.functions.iter().all(|function| function.containment < LEAK)
            && self.findings.iter().all(|finding| finding.kind == FindingKind::Unread)
    }

    /// Returns the faults as errors that say what to do: each function of which at least [`LEAK`] appears elsewhere,
    /// and each finding. Unread files are not errors, because they usually contain data. A function gets no error of
    /// its own if its `place` is the other function of a [`SimilarPair`], because the pair has an error.
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
                .hint("rewrite one of them, or move what they share into a function that both call and that can be masked itself"),
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
                    .hint(
                        "rewrite the function or the code that resembles it, or leave the function out of the manifest",
                    ),
                );
            }
        }
        let found = self.findings.into_iter().filter(|finding| finding.kind != FindingKind::Unread);
        errors.extend(found.map(|finding| finding.error));
        errors
    }
}

/// Looks for leaks in everything that agents see of a paper, except the environment (see [`installed`]). Also searches
/// the products of the repo's build, if given in `built`.
///
/// # Errors
/// Kind `Suite` if the repo cannot be read.
pub fn measure(loaded: &LoadedPaper, built: Option<&Snapshot>) -> Result<LeakReport> {
    let bodies = Bodies::new(loaded);
    let gold = GoldValues::new(loaded);
    let mut search = LeakSearch::new(loaded, &bodies);
    let exempted = loaded.paper.compiled_set();
    let mut findings: Vec<LeakFinding> =
        gold.in_paper(loaded).into_iter().map(|error| LeakFinding { kind: FindingKind::GoldValue, error }).collect();

    search.look(&Visible::text("paper.md", loaded.text.as_bytes()));
    for (place, text) in loaded.paper.agent_texts() {
        search.look(&Visible::text(&format!("paper.toml, {place}"), text.as_bytes()));
    }
    for experiment in loaded.paper.experiments.iter().filter(|experiment| !experiment.hidden) {
        let name = format!("paper.toml, command of experiment `{}`", experiment.id);
        search.look(&Visible::text(&name, experiment.command.as_bytes()));
    }
    let hidden = loaded.paper.hidden_set();
    let in_repo = files(&loaded.repo_dir, &hidden, &mut findings)?.into_iter().filter(|file| !hidden.is_match(file));
    let in_repo = in_repo.map(|file| (loaded.repo_dir.as_path(), file));
    let products = built.into_iter().flat_map(|built| built.products().iter().map(|file| (built.tree(), file.into())));
    for (root, relative) in in_repo.chain(products) {
        let path = root.join(&relative);
        let length = path.metadata().map_err(|error| Error::io("read", &path, error))?.len();
        let unread = |what: String| LeakFinding {
            kind: FindingKind::Unread,
            error: Error::suite(what).at(&path, None).hint("make sure that it holds data only"),
        };
        findings.extend(findings::of_archive(&path)?);
        if length > LARGEST {
            findings.push(unread(format!("a file of {} MB was not searched for leaks", length >> 20)));
            continue;
        }
        let mut bytes = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
        if let Some(unpacked) = findings::unpacked(&bytes) {
            if unpacked.len() as u64 >= LARGEST {
                findings.push(unread(format!("only the first {} MB of its content were searched", LARGEST >> 20)));
            }
            bytes = unpacked;
        }
        if let Cow::Owned(text) = without_utf16(&bytes) {
            bytes = text;
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
        if let Some(text) = readable_text(&bytes) {
            let values = gold.in_file(&path, &text);
            findings.extend(values.into_iter().map(|error| LeakFinding { kind: FindingKind::GoldValue, error }));
        }
    }
    findings.extend(in_env(copies::listed(loaded)));
    let (functions, pairs) = search.finish();
    Ok(LeakReport { functions, pairs, findings })
}

/// Finds the paper's packages, modules and masked functions that are installed in a built environment. `prefix` is the
/// environment's folder.
#[must_use]
pub fn installed(loaded: &LoadedPaper, prefix: &Path) -> Vec<LeakFinding> {
    in_env(copies::installed(loaded, prefix)).collect()
}

fn in_env(errors: Vec<Error>) -> impl Iterator<Item = LeakFinding> {
    errors.into_iter().map(|error| LeakFinding { kind: FindingKind::Installed, error })
}

/// Lists the files of a repo, sorted. Git folders that are not hidden from agents are added to `findings`.
fn files(repo: &Path, hidden: &globset::GlobSet, findings: &mut Vec<LeakFinding>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let walk = walkdir::WalkDir::new(repo).sort_by_file_name().into_iter();
    let seen = walk.filter_entry(|entry| entry.depth() == 0 || !entry.file_name().to_str().is_some_and(is_left_out));
    for entry in seen {
        let entry = entry
            .map_err(|error| Error::suite(format!("failed to read the repo `{}`", repo.display())).because(error))?;
        if entry.file_type().is_dir() {
            let inside = entry.path().strip_prefix(repo).unwrap_or(entry.path());
            if !hidden.is_match(inside.join("HEAD")) {
                findings.extend(findings::of_folder(entry.path()));
            }
        } else if entry.file_type().is_file() {
            found.push(entry.path().strip_prefix(repo).unwrap_or(entry.path()).to_path_buf());
        }
    }
    Ok(found)
}
