//! The one error type: what was wrong, where, and what to do about it.
//!
//! Messages are lower-case fragments that fit behind "error: ", with what the user typed in backticks
//! (the style is written down in DESIGN.md).

use std::error::Error as StdError;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// What sort of failure it is. The command line turns it into an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The command line is wrong, or asks for something that does not exist.
    Usage,
    /// A new run's name is taken.
    Taken,
    /// A paper, repo or environment file is wrong.
    Suite,
    /// The unmasked repo does not reproduce its gold, so that no score would mean anything.
    Baseline,
    /// This machine lacks something: an interpreter, a kernel feature, disk space, a container engine.
    Machine,
    /// A folder that the program needs (cache, scratch, data) cannot be used by this user, or not by that of the sandboxes.
    Place,
    /// The model's provider refused or could not be reached, or its price is unknown.
    Model,
    /// The model's provider is down, or refuses whatever it is asked.
    Provider,
    /// The run store could not be read or written.
    Store,
    /// A sandbox or an engine failed, through no fault of what ran in it.
    Infrastructure,
    /// Stopped by Ctrl-C or a termination signal.
    Interrupted,
    /// Stopped because `--max-cost` is spent.
    CostLimit,
    /// A bug in this program.
    Internal,
}

/// An error with its kind, its place, its cause and the way out.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    /// What sort of failure.
    pub kind: Kind,
    /// What was wrong, a lower-case fragment.
    pub message: String,
    /// Where: a file, with the line (from 1) where one is known.
    pub place: Option<(PathBuf, Option<usize>)>,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// The error below.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the given kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, hint: None, source: None }
    }

    /// A wrong command line or a name that does not exist.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Something that this program was built without, and the feature of its package that has it.
    pub fn left_out(what: &str, feature: &str) -> Self {
        Self::usage(format!("this program was built without {what}"))
            .hint(format!("build it with `cargo build --features {feature}`"))
    }

    /// A wrong paper, repo or environment file.
    pub fn suite(message: impl Into<String>) -> Self {
        Self::new(Kind::Suite, message)
    }

    /// A machine that lacks something.
    pub fn machine(message: impl Into<String>) -> Self {
        Self::new(Kind::Machine, message)
    }

    /// A run store that cannot be read or written.
    pub fn store(message: impl Into<String>) -> Self {
        Self::new(Kind::Store, message)
    }

    /// A bug in this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// A failed file operation: "failed to read `path`" for the verb "read", with the cause. Becomes [`Kind::Machine`].
    pub fn io(verb: &str, path: &Path, source: std::io::Error) -> Self {
        Self::machine(format!("failed to {verb} `{}`", path.display())).because(source)
    }

    /// A failed reading of what the user has named: wrong usage where there is nothing of this kind at the path.
    pub fn unreadable(path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
        let is_named_wrongly = matches!(source.kind(), NotFound | IsADirectory | NotADirectory);
        let error = Self::io("read", path, source);
        if is_named_wrongly { Self { kind: Kind::Usage, ..error } } else { error }
    }

    /// Several errors as one, with each of the others on a line of its own; `None` for none. One alone stays as it is.
    #[must_use]
    pub fn all(errors: Vec<Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        for other in errors {
            first.message.push('\n');
            first.message.push_str(&with_causes(&other));
            if let Some(hint) = other.hint.filter(|hint| first.hint.as_ref() != Some(hint)) {
                let _ = write!(first.message, " ({hint})");
            }
        }
        Some(first)
    }

    /// Names the file, and the line (from 1) where known.
    #[must_use]
    pub fn at(mut self, path: impl Into<PathBuf>, line: Option<usize>) -> Self {
        self.place = Some((path.into(), line));
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Keeps the error below.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What to do: the hint, or what a full table of open files, a full disk or a wrong path asks for.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        let says = |what: fn(&str) -> bool| causes(self).any(|below| what(&below.to_string())) || what(&self.message);
        if says(says_too_many_files) {
            return Some(MORE_FILES);
        }
        // Who knows which disk or file it is says what to do about it.
        if self.hint.is_some() {
            return self.hint.as_deref();
        }
        if says(says_full) { Some(MORE_ROOM) } else { self.about_the_path() }
    }

    /// What to do where a file operation failed for its path.
    fn about_the_path(&self) -> Option<&'static str> {
        use std::io::ErrorKind as Sort;
        let below = self.source.as_ref()?.downcast_ref::<std::io::Error>()?;
        match below.kind() {
            _ if !self.message.starts_with("failed to ") => None,
            Sort::NotFound => Some("check the path: nothing is there, or a folder on the way is missing"),
            Sort::AlreadyExists => Some("name another path: something is there already"),
            Sort::NotADirectory => Some("check the path: a file is where a folder must be"),
            Sort::IsADirectory => Some("name a file, not a folder"),
            Sort::PermissionDenied => Some("let this user read and write it, or name another path"),
            Sort::ReadOnlyFilesystem => Some("name a path on a disk that can be written"),
            _ => None,
        }
    }
}

/// What helps a process that may open no more files.
const MORE_FILES: &str = "this process may open no more files: raise the limit with `ulimit -n 65536`, or make fewer \
                          attempts at once with `-j`";

/// What helps where a disk is full.
const MORE_ROOM: &str = "the disk is full: make room (`autoexperiment sweep` and `autoexperiment env prune` remove what is \
                         not used), or put the cache on another disk with `--cache DIR` and workspaces with `--scratch DIR`";

/// As the C library says it of a disk, and of a user's share of one.
fn says_full(text: &str) -> bool {
    text.contains("No space left on device") || text.contains("Disk quota exceeded")
}

/// As the C library says it, of a process and of a machine.
fn says_too_many_files(text: &str) -> bool {
    text.contains("Too many open files")
}

/// The line, from 1, of a byte offset in a text.
#[must_use]
pub fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((path, line)) = &self.place {
            write!(f, "{}", path.display())?;
            if let Some(line) = line {
                write!(f, ":{line}")?;
            }
            write!(f, ": ")?;
        }
        f.write_str(&self.message)
    }
}

/// The errors below an error, nearest first.
pub fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |below: &&'a (dyn StdError + 'static)| (*below).source())
}

/// An error with all its causes, on one line: "failed to read `x`: permission denied".
#[must_use]
pub fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    for below in causes(error) {
        text.push_str(": ");
        text.push_str(&below.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_open_files_is_named_whatever_failed_for_it() {
        let full = std::io::Error::from_raw_os_error(nix::libc::EMFILE);
        let error = Error::new(Kind::Infrastructure, "no sandbox").because(Error::io("open", Path::new("x"), full));
        assert!(error.hint("see `doctor`").advice().unwrap().contains("ulimit -n"));
        assert_eq!(Error::usage("x").hint("do y").advice(), Some("do y"));
    }

    #[test]
    fn a_full_disk_is_named_unless_somebody_knows_better() {
        let full = || Error::io("write", Path::new("x"), std::io::Error::from_raw_os_error(nix::libc::ENOSPC));
        assert!(full().advice().unwrap().contains("the disk is full"));
        assert_eq!(full().hint("do y").advice(), Some("do y"));
    }

    #[test]
    fn a_path_that_does_not_fit_says_what_to_do() {
        let error = |kind: std::io::ErrorKind| Error::io("write", Path::new("x"), std::io::Error::from(kind));
        let advice = |error: &Error| error.advice().unwrap_or_default().to_owned();
        assert!(advice(&error(std::io::ErrorKind::NotFound)).contains("a folder on the way is missing"));
        assert!(advice(&error(std::io::ErrorKind::PermissionDenied)).contains("let this user"));
        assert_eq!(advice(&error(std::io::ErrorKind::NotFound).hint("do y")), "do y");
        assert_eq!(error(std::io::ErrorKind::TimedOut).advice(), None);
        let gone = |kind: std::io::ErrorKind| Error::unreadable(Path::new("x"), std::io::Error::from(kind)).kind;
        assert_eq!(gone(std::io::ErrorKind::NotFound), Kind::Usage);
        assert_eq!(gone(std::io::ErrorKind::PermissionDenied), Kind::Machine);
    }

    #[test]
    fn several_errors_are_told_line_by_line() {
        let all = vec![Error::suite("a").at("f", Some(1)), Error::suite("b").at("f", Some(2)).hint("do c")];
        assert_eq!(Error::all(all).unwrap().to_string(), "f:1: a\nf:2: b (do c)");
        assert!(Error::all(Vec::new()).is_none());
    }

    #[test]
    fn an_error_is_written_with_all_its_causes() {
        let denied = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "permission denied");
        let failed = Error::io("read", Path::new("x"), denied);
        let error = Error::store("the run cannot be read").at("run.json", Some(3)).because(failed);
        let written = with_causes(&error);
        assert_eq!(written, "run.json:3: the run cannot be read: failed to read `x`: permission denied");
        assert_eq!(causes(&error).count(), 2);
    }
}
