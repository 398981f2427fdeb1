//! The folder in which a new paper is prepared: a miniature suite inside the suite. Its folders are moved into the
//! suite at the end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::is_name;
use crate::error::{Error, Result};
use crate::files::hex;
use crate::files::write_durably;
use crate::suite::Suite;
use crate::workspace::remove_tree;

/// Name of the venv backend's lock file.
const LOCK: &str = "venv.lock";
/// Name of the cache folder for lock files of drafts.
const LOCKS: &str = "draft-locks";

/// Maximum age at which a cached lock file is reused.
const DAY: Duration = Duration::from_hours(24);

/// A paper in preparation. If dropped before [`Draft::move_into_suite`], everything is removed.
pub struct Draft {
    root: PathBuf,
    id: String,
    staged: Suite,
    new_env: bool,
    _lock: File,
}

/// Checks that a text is a valid id for a paper.
///
/// # Errors
/// Kind `Usage`.
pub fn require_id(id: &str) -> Result<()> {
    if is_name(id) {
        return Ok(());
    }
    Err(Error::usage(format!("`{id}` is not a valid id for a paper"))
        .hint("use letters, digits, `-`, `_` and `.`, a letter or digit first, such as `kmeanspp`"))
}

impl Draft {
    /// Starts a draft.
    ///
    /// # Errors
    /// Kind `Usage` for an id that is invalid or taken; `Machine` if the suite cannot be written or another process is
    /// drafting a paper with this id.
    pub fn begin(suite: &Suite, id: &str) -> Result<Self> {
        require_id(id)?;
        for (kind, folder) in [("paper", suite.paper_dir(id)), ("repo", suite.repo_dir(id))] {
            if folder.symlink_metadata().is_ok() {
                return Err(Error::usage(format!("there is a {kind} `{id}` already, in `{}`", folder.display()))
                    .hint("choose another id, or remove it first: nothing is ever overwritten"));
            }
        }
        let staging = suite.root().join(format!(".new-{id}"));
        let failed = |error| Error::io("create", &staging, error);
        fs::create_dir_all(&staging).map_err(failed)?;
        let lock = File::create(staging.join("lock")).map_err(failed)?;
        if lock.try_lock().is_err() {
            return Err(
                Error::machine(format!("another process is creating paper `{id}`")).hint("wait until it has ended")
            );
        }
        for part in ["papers", "repos", "envs"] {
            // Remove what a killed process left.
            remove_tree(&staging.join(part)).map_err(failed)?;
            fs::create_dir_all(staging.join(part)).map_err(failed)?;
        }
        let staged = Suite::open(&staging)?;
        fs::create_dir_all(staged.paper_dir(id)).map_err(failed)?;
        Ok(Self { root: suite.root().to_owned(), id: id.to_owned(), staged, new_env: false, _lock: lock })
    }

    /// The miniature suite that contains the draft.
    #[must_use]
    pub const fn suite(&self) -> &Suite {
        &self.staged
    }

    /// The paper's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Copies an existing env of the suite into the draft.
    ///
    /// # Errors
    /// Kind `Usage` if there is no env with this id.
    pub fn use_env(&self, env: &str) -> Result<()> {
        let from = self.root.join("envs").join(env);
        if !is_name(env) || !from.join("environment.yml").is_file() {
            return Err(Error::usage(format!("no env `{env}`: `{}` has no environment.yml", from.display()))
                .hint("give a folder under `envs/`, or create one with `--requirements` or `--environment`"));
        }
        let to = self.staged.env_dir(env);
        fs::create_dir_all(&to).map_err(|error| Error::io("create", &to, error))?;
        for entry in fs::read_dir(&from).map_err(|error| Error::io("read", &from, error))?.flatten() {
            if entry.path().is_file() {
                fs::copy(entry.path(), to.join(entry.file_name()))
                    .map_err(|error| Error::io("copy", &entry.path(), error))?;
            }
        }
        Ok(())
    }

    /// Creates a new env with the paper's id from the text of its `environment.yml`.
    ///
    /// # Errors
    /// Kind `Usage` if that env already exists.
    pub fn write_env(&mut self, yml: &str) -> Result<()> {
        let taken = self.root.join("envs").join(&self.id);
        if taken.symlink_metadata().is_ok() {
            return Err(Error::usage(format!("there is an env `{}` already, in `{}`", self.id, taken.display()))
                .hint(format!("use it with `--use-env {}`, or choose another id for the paper", self.id)));
        }
        let folder = self.staged.env_dir(&self.id);
        fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        self.new_env = true;
        write(&folder.join("environment.yml"), yml)
    }

    /// Reuses the env's lock file of an earlier draft with the same environment file, if it is at most a day old. So a
    /// user who corrects and repeats a command need not wait for the env to be solved again. Returns whether there was
    /// such a lock file.
    ///
    /// # Errors
    /// Kind `Machine`.
    pub fn take_lock(&self, cache: &Path) -> Result<bool> {
        let kept = self.lock_in(cache)?;
        let recent =
            kept.metadata().and_then(|it| it.modified()).is_ok_and(|at| at.elapsed().is_ok_and(|age| age < DAY));
        if recent {
            let to = self.staged.env_dir(&self.id).join(LOCK);
            fs::copy(&kept, &to).map_err(|error| Error::io("copy", &kept, error))?;
        }
        Ok(recent)
    }

    /// Caches the env's lock file for the next draft.
    ///
    /// # Errors
    /// Kind `Machine`.
    pub fn keep_lock(&self, cache: &Path) -> Result<()> {
        let from = self.staged.env_dir(&self.id).join(LOCK);
        if !from.exists() {
            return Ok(());
        }
        let kept = self.lock_in(cache)?;
        let bytes = fs::read(&from).map_err(|error| Error::io("read", &from, error))?;
        fs::create_dir_all(cache.join(LOCKS)).map_err(|error| Error::io("create", &cache.join(LOCKS), error))?;
        write_durably(&kept, &bytes)
    }

    fn lock_in(&self, cache: &Path) -> Result<PathBuf> {
        let yml = self.staged.env_dir(&self.id).join("environment.yml");
        let bytes = fs::read(&yml).map_err(|error| Error::io("read", &yml, error))?;
        let digest = hex(&<sha2::Sha256 as sha2::Digest>::digest(&bytes));
        Ok(cache.join(LOCKS).join(format!("{}-{digest}", self.id)))
    }

    /// Writes a file into the paper's folder.
    ///
    /// # Errors
    /// Kind `Machine`.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write(&self.staged.paper_dir(&self.id).join(name), text)
    }

    /// Replaces paths inside this draft in an error by the final paths in the suite, because the draft will be removed.
    #[must_use]
    pub fn outside(&self, mut error: Error) -> Error {
        if let Some((path, _)) = &mut error.place
            && let Ok(inside) = path.strip_prefix(self.staged.root())
        {
            *path = inside.to_owned();
        }
        let inner = format!("{}/", self.staged.root().display());
        error.message = error.message.replace(&inner, "");
        error.hint = error.hint.map(|hint| hint.replace(&inner, ""));
        error
    }

    /// Moves everything into the suite.
    ///
    /// # Errors
    /// Kind `Machine` if a folder cannot be moved, for example because another process has created a folder of this
    /// name in the suite meanwhile. In this case, the suite is left as it was.
    pub fn move_into_suite(self) -> Result<()> {
        let parts: &[&str] = if self.new_env { &["envs", "repos", "papers"] } else { &["repos", "papers"] };
        let mut settled: Vec<PathBuf> = Vec::new();
        for part in parts {
            let (from, to) = (self.staged.root().join(part).join(&self.id), self.root.join(part).join(&self.id));
            let moved = fs::create_dir_all(self.root.join(part)).and_then(|()| fs::rename(&from, &to));
            if let Err(error) = moved {
                for done in settled {
                    let _ = remove_tree(&done);
                }
                return Err(Error::io("create", &to, error));
            }
            settled.push(to);
        }
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Ignore a failure: the next draft with this id removes the rest.
        let _ = remove_tree(self.staged.root());
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::io("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite() -> (tempfile::TempDir, Suite) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("papers/old")).unwrap();
        let suite = Suite::open(folder.path()).unwrap();
        (folder, suite)
    }

    fn listing(folder: &Path) -> Vec<String> {
        let walk = walkdir::WalkDir::new(folder).min_depth(1).sort_by_file_name().into_iter().flatten();
        walk.map(|entry| entry.path().strip_prefix(folder).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_draft_that_is_discarded_leaves_no_files_in_the_suite() {
        let (folder, suite) = suite();
        let mut draft = Draft::begin(&suite, "p").unwrap();
        draft.write_env("name: p\n").unwrap();
        drop(draft);
        assert_eq!(listing(folder.path()), ["papers", "papers/old"]);
    }

    #[test]
    fn a_draft_is_moved_into_the_suite_as_a_whole() {
        let (folder, suite) = suite();
        let mut draft = Draft::begin(&suite, "p").unwrap();
        draft.write_env("name: p\n").unwrap();
        draft.write("paper.md", "# T\n").unwrap();
        fs::create_dir_all(draft.suite().repo_dir("p")).unwrap();
        draft.move_into_suite().unwrap();
        assert_eq!(
            listing(folder.path()),
            [
                "envs",
                "envs/p",
                "envs/p/environment.yml",
                "papers",
                "papers/old",
                "papers/p",
                "papers/p/paper.md",
                "repos",
                "repos/p"
            ]
        );
    }

    #[test]
    fn taken_and_invalid_ids_are_rejected() {
        let (_folder, suite) = suite();
        let fault = |id: &str| Draft::begin(&suite, id).map(|_| ()).unwrap_err().message;
        assert!(fault("old").contains("there is a paper `old` already"));
        for id in ["", "a/b", "../x", ".x", "a b"] {
            assert!(fault(id).contains("is not a valid id for a paper"), "{id}");
        }
        let _draft = Draft::begin(&suite, "p").unwrap();
        assert!(fault("p").contains("another process"));
    }

    #[test]
    fn a_lock_file_is_reused_only_for_the_same_environment() {
        let (folder, suite) = suite();
        let cache = folder.path().join("cache");
        let begin = |yml: &str| {
            let mut draft = Draft::begin(&suite, "p").unwrap();
            draft.write_env(yml).unwrap();
            draft
        };
        let draft = begin("name: p\n");
        assert!(!draft.take_lock(&cache).unwrap());
        fs::write(draft.suite().env_dir("p").join(LOCK), "locked").unwrap();
        draft.keep_lock(&cache).unwrap();
        drop(draft);
        assert!(!begin("name: p\nother: 1\n").take_lock(&cache).unwrap());
        let draft = begin("name: p\n");
        assert!(draft.take_lock(&cache).unwrap());
        assert_eq!(fs::read_to_string(draft.suite().env_dir("p").join(LOCK)).unwrap(), "locked");
    }

    #[test]
    fn the_remains_of_a_killed_process_are_replaced() {
        let (folder, suite) = suite();
        fs::create_dir_all(folder.path().join(".new-p/repos/p/x")).unwrap();
        let draft = Draft::begin(&suite, "p").unwrap();
        assert!(!draft.suite().repo_dir("p").exists());
    }
}
