//! Copies the repository to `repos/`, without files that agents must not see or do not need.
//!
//! Version control folders and caches are never copied; snapshots of a repo leave them out, too. Tests, notebooks and
//! saved results may reveal a function's body or a gold value, so they are left out and listed; the user can choose to
//! keep them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use globset::{Glob, GlobSet, GlobSetBuilder};
use walkdir::{DirEntry, WalkDir};

use crate::error::{Error, Result};
use crate::workspace::is_left_out;

/// The user's choices about which files to copy.
#[derive(Debug, Clone, Default)]
pub struct CopyRules {
    keep: GlobSet,
    leave_out: GlobSet,
}

impl CopyRules {
    /// Parses globs that match paths in the repo. A glob that matches a folder covers all files in it.
    ///
    /// # Errors
    /// Kind `Usage` for an invalid glob.
    pub fn new(keep: &[String], leave_out: &[String]) -> Result<Self> {
        Ok(Self { keep: set(keep)?, leave_out: set(leave_out)? })
    }
}

fn set(globs: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let glob = glob.trim_end_matches('/');
        set.add(Glob::new(glob).map_err(|error| Error::usage(format!("invalid glob `{glob}`")).because(error))?);
    }
    set.build().map_err(|error| Error::internal("failed to combine globs").because(error))
}

/// Copies a repository into the new folder `to`. Returns the paths that were left out, each with the reason. A folder
/// that was left out as a whole is listed as one path.
///
/// # Errors
/// Kind `Usage` if `from` is not a folder or contains no Python file; `Machine` if a file cannot be read or written.
pub fn copy(from: &Path, to: &Path, choice: &CopyRules) -> Result<BTreeMap<PathBuf, &'static str>> {
    if !from.is_dir() {
        let what = if from.exists() { "is not a folder" } else { "does not exist" };
        return Err(Error::usage(format!("the repository `{}` {what}", from.display()))
            .hint("give the folder of its code, as it is after a `git clone`, with `--repo DIR`"));
    }
    let mut left_out: BTreeMap<PathBuf, &'static str> = BTreeMap::new();
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    // Files inside folders that are left out: `kept_below` has those that the user chose to keep, `others_below` the
    // rest.
    let mut kept_below: BTreeSet<PathBuf> = BTreeSet::new();
    let mut others_below: Vec<(PathBuf, &'static str)> = Vec::new();
    let mut python = false;
    fs::create_dir_all(to).map_err(|error| Error::io("create", to, error))?;
    let walk = WalkDir::new(from).min_depth(1).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(|entry| !entry.file_name().to_str().is_some_and(is_left_out)) {
        let entry = entry.map_err(|error| {
            Error::machine(format!("failed to read the repository `{}`", from.display())).because(error)
        })?;
        let path = entry.path().strip_prefix(from).unwrap_or(entry.path()).to_owned();
        let reason = above(&left_out, &path).or_else(|| reason(&entry, &path, choice));
        let kept = path.ancestors().any(|above| choice.keep.is_match(above));
        if let Some(reason) = reason.filter(|_| !kept) {
            if above(&left_out, &path).is_none() {
                left_out.insert(path, reason);
            } else if !entry.file_type().is_dir() {
                others_below.push((path, reason));
            }
            continue;
        }
        if !entry.file_type().is_dir() && above(&left_out, &path).is_some() {
            kept_below.insert(path.clone());
        }
        let target = to.join(&path);
        let kind = entry.file_type();
        let failed = |error| Error::io("copy", entry.path(), error);
        if kind.is_dir() {
            folders.insert(path);
            continue;
        }
        let parent = target.parent().unwrap_or(to);
        fs::create_dir_all(parent).map_err(failed)?;
        if kind.is_symlink() {
            let pointed = fs::read_link(entry.path()).map_err(failed)?;
            std::os::unix::fs::symlink(pointed, &target).map_err(failed)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).map_err(failed)?;
            python |= path.extension().is_some_and(|extension| extension == "py");
        } else {
            left_out.insert(path, "no regular file");
        }
    }
    for folder in folders {
        // Also create folders that are empty in the repo, because programs may write into them.
        fs::create_dir_all(to.join(&folder)).map_err(|error| Error::io("create", &to.join(&folder), error))?;
    }
    if !python {
        return Err(Error::usage(format!("the repository `{}` contains no Python file", from.display()))
            .hint("only functions in Python sources can be masked"));
    }
    left_out.retain(|path, _| !holds(path, &kept_below));
    for (path, reason) in others_below {
        if above(&left_out, &path).is_none() {
            // List the outermost folder around this file from which no file was kept. If there is no such folder, list
            // the file itself.
            let whole = path.ancestors().take_while(|above| !holds(above, &kept_below)).last().unwrap_or(&path);
            left_out.insert(whole.to_owned(), reason);
        }
    }
    Ok(left_out)
}

/// Whether one of these paths is inside the folder.
fn holds(folder: &Path, paths: &BTreeSet<PathBuf>) -> bool {
    paths.range(folder.to_owned()..).next().is_some_and(|path| path.starts_with(folder))
}

/// Returns the reason why a folder that contains this path was left out, if any.
fn above(left_out: &BTreeMap<PathBuf, &'static str>, path: &Path) -> Option<&'static str> {
    path.ancestors().skip(1).find_map(|above| left_out.get(above).copied())
}

fn reason(entry: &DirEntry, path: &Path, choice: &CopyRules) -> Option<&'static str> {
    if choice.leave_out.is_match(path) {
        return Some("as you said");
    }
    let name = entry.file_name().to_str()?.to_ascii_lowercase();
    let is = |names: &[&str]| names.contains(&name.as_str());
    let ends = |wanted: &str| path.extension().is_some_and(|extension| extension == wanted);
    if entry.file_type().is_dir() {
        let holds = |file: &str| entry.path().join(file).exists();
        if holds("pyvenv.cfg") || holds("conda-meta") || is(&["node_modules", ".tox", ".nox", ".eggs", ".venv"]) {
            Some("an environment")
        } else if is(&["tests", "test", "testing"]) {
            Some("tests")
        } else if entry.depth() == 1
            && (is(&["dist"]) || (is(&["build"]) && (holds("lib") || holds("bdist.linux-x86_64"))))
        {
            Some("built from the sources")
        } else if is(&RESULTS) && !holds_python(entry.path()) {
            Some("saved results")
        } else {
            None
        }
    } else if name == "conftest.py" || name.ends_with("_test.py") || (name.starts_with("test_") && ends("py")) {
        Some("tests")
    } else if ends("ipynb") {
        Some("a notebook")
    } else if ends("so") || ends("pyd") || ends("dylib") {
        Some("compiled")
    } else {
        None
    }
}

/// Names of folders that usually contain a program's output.
const RESULTS: [&str; 14] = [
    "result",
    "results",
    "output",
    "outputs",
    "out",
    "log",
    "logs",
    "runs",
    "wandb",
    "mlruns",
    "figures",
    "plots",
    "checkpoints",
    "lightning_logs",
];

fn holds_python(folder: &Path) -> bool {
    WalkDir::new(folder).into_iter().flatten().any(|entry| entry.path().extension().is_some_and(|it| it == "py"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join("from").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        folder
    }

    fn copied(folder: &tempfile::TempDir, choice: &CopyRules) -> (Vec<String>, Vec<String>) {
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let left_out = copy(&from, &to, choice).unwrap();
        let files =
            WalkDir::new(&to).sort_by_file_name().into_iter().flatten().filter(|entry| entry.file_type().is_file());
        let files = files.map(|entry| entry.path().strip_prefix(&to).unwrap().display().to_string()).collect();
        fs::remove_dir_all(&to).unwrap();
        (files, left_out.into_iter().map(|(path, why)| format!("{}: {why}", path.display())).collect())
    }

    #[test]
    fn files_that_reveal_answers_are_left_out_and_listed() {
        let folder = repo(&[
            ".git/config",
            "pkg/a.py",
            "pkg/__pycache__/a.pyc",
            "pkg/runs/loop.py",
            "tests/test_a.py",
            "pkg/test_b.py",
            "demo.ipynb",
            "results/full/table.csv",
            "results/table.csv",
            "venv/pyvenv.cfg",
            "venv/lib/x.py",
            "build/lib/pkg/a.py",
            "data/x.csv",
        ]);
        let (files, left_out) = copied(&folder, &CopyRules::default());
        assert_eq!(files, ["data/x.csv", "pkg/a.py", "pkg/runs/loop.py"]);
        assert_eq!(
            left_out,
            [
                "build: built from the sources",
                "demo.ipynb: a notebook",
                "pkg/test_b.py: tests",
                "results: saved results",
                "tests: tests",
                "venv: an environment"
            ]
        );
    }

    #[test]
    fn the_users_globs_override_what_is_copied() {
        let folder = repo(&["a.py", "tests/test_a.py", "results/in.csv", "results/out.csv", "paper/draft.tex"]);
        let choice = CopyRules::new(&["results/in.csv".into(), "tests/".into()], &["paper".into()]).unwrap();
        let (files, left_out) = copied(&folder, &choice);
        assert_eq!(files, ["a.py", "results/in.csv", "tests/test_a.py"]);
        assert_eq!(left_out, ["paper: as you said", "results/out.csv: saved results"]);
    }

    #[test]
    fn a_folder_from_which_some_files_are_copied_is_not_listed_as_left_out() {
        let folder = repo(&["a.py", "tests/test_a.py", "tests/data/x.csv", "results/deep/a.csv", "results/b/in.csv"]);
        let all = CopyRules::new(&["tests/**".into(), "results/**/in.csv".into()], &[]).unwrap();
        let (files, left_out) = copied(&folder, &all);
        assert_eq!(files, ["a.py", "results/b/in.csv", "tests/data/x.csv", "tests/test_a.py"]);
        assert_eq!(left_out, ["results/deep: saved results"]);
    }

    #[test]
    fn folders_that_are_not_repositories_are_rejected() {
        let folder = repo(&["a.txt"]);
        let fault =
            |path: &str| copy(&folder.path().join(path), &folder.path().join("to"), &CopyRules::default()).unwrap_err();
        assert!(fault("nowhere").message.ends_with("does not exist"));
        assert!(fault("from/a.txt").message.ends_with("is not a folder"));
        assert!(fault("from").message.ends_with("contains no Python file"));
    }
}
