//! The error type of this crate: what failed, where, and what the user can do about it.
//!
//! Messages are lower-case fragments that fit after "error: ", with the user's input in backticks (DESIGN.md describes
//! the style).

use std::error::Error as StdError;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// The category of a failure, from which the command line derives the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The command line is invalid, or names something that does not exist.
    Usage,
    /// There is already a run with the name of the new run.
    Taken,
    /// A paper, repo or environment file is invalid.
    Suite,
    /// The unmasked repo does not reproduce its own gold results, so scores would be meaningless.
    Baseline,
    /// This machine lacks something that is needed, such as an interpreter, a kernel feature, disk space or a container
    /// engine.
    Machine,
    /// A required folder (cache, scratch, data) cannot be used by this user or by the user of the sandboxes.
    Place,
    /// The model cannot be used, for example because the key is missing or denied, or because its price is unknown.
    Model,
    /// The model's provider does not answer, or refuses all calls.
    Provider,
    /// The store of runs could not be read or written.
    Store,
    /// A sandbox or container engine failed, for another reason than the code that runs in it.
    Infrastructure,
    /// The run was stopped by Ctrl-C or a termination signal.
    Interrupted,
    /// The run was stopped because the money limit `--max-cost` is used up.
    CostLimit,
    /// A bug in this program.
    Internal,
}

/// An error with its kind, location, cause and hint.
#[derive(Debug, thiserror::Error)]
pub struct Error {
    /// The category of the failure.
    pub kind: FailureKind,
    /// Description of the failure, as a lower-case fragment.
    pub message: String,
    /// The file that the error is about, and the line (from 1) if known.
    pub place: Option<(PathBuf, Option<usize>)>,
    /// Advice to the user.
    pub hint: Option<String>,
    /// The underlying error.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, hint: None, source: None }
    }

    /// Creates an error about an invalid command line, or about a name that does not exist.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// Creates an error about a feature that this program was built without. `feature` is the cargo feature that
    /// provides it.
    pub fn left_out(what: &str, feature: &str) -> Self {
        Self::usage(format!("this program was built without {what}"))
            .hint(format!("build it with `cargo build --features {feature}`"))
    }

    /// Creates an error about an invalid paper, repo or environment file.
    pub fn suite(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Suite, message)
    }

    /// Creates an error about something that this machine lacks.
    pub fn machine(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Machine, message)
    }

    /// Creates an error about a run store that cannot be read or written.
    pub fn store(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Store, message)
    }

    /// Creates an error about a bug in this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, message)
    }

    /// Creates an error of kind [`FailureKind::Machine`] about a failed file operation. For the verb "read", the
    /// message is "failed to read `path`".
    pub fn io(verb: &str, path: &Path, source: std::io::Error) -> Self {
        Self::machine(format!("failed to {verb} `{}`", path.display())).because(source)
    }

    /// Creates an error about a file that the user named and that cannot be read. The kind is `Usage` if the path does
    /// not exist or is not a file, otherwise `Machine`.
    pub fn unreadable(path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
        let is_named_wrongly = matches!(source.kind(), NotFound | IsADirectory | NotADirectory);
        let error = Self::io("read", path, source);
        if is_named_wrongly { Self { kind: FailureKind::Usage, ..error } } else { error }
    }

    /// Combines several errors into one error with one line for each. Returns `None` for an empty list, and a single
    /// error unchanged.
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

    /// Adds the file that the error is about, and the line (from 1) if known.
    #[must_use]
    pub fn at(mut self, path: impl Into<PathBuf>, line: Option<usize>) -> Self {
        self.place = Some((path.into(), line));
        self
    }

    /// Adds a hint that says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the underlying error.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns advice to the user. If the cause is too many open files, returns the default advice about them, even if
    /// the error has a hint. Otherwise, returns the hint or, without a hint, the default advice about a full disk or a
    /// bad path.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        let says = |what: fn(&str) -> bool| causes(self).any(|below| what(&below.to_string())) || what(&self.message);
        if says(says_too_many_files) {
            return Some(MORE_FILES);
        }
        // A hint says more about the disk or the file than the default advice below, so it takes precedence.
        if self.hint.is_some() {
            return self.hint.as_deref();
        }
        if says(says_full) { Some(MORE_ROOM) } else { self.about_the_path() }
    }

    /// Returns advice for a file operation that failed because of its path.
    fn about_the_path(&self) -> Option<&'static str> {
        use std::io::ErrorKind as Sort;
        let below = self.source.as_ref()?.downcast_ref::<std::io::Error>()?;
        match below.kind() {
            _ if !self.message.starts_with("failed to ") => None,
            Sort::NotFound => Some("check the path: it or one of its parent folders does not exist"),
            Sort::AlreadyExists => Some("choose another path: this one exists already"),
            Sort::NotADirectory => Some("check the path: a file is where a folder must be"),
            Sort::IsADirectory => Some("name a file, not a folder"),
            Sort::PermissionDenied => Some("give this user permission to read and write it, or choose another path"),
            Sort::ReadOnlyFilesystem => Some("choose a path on a writable disk"),
            _ => None,
        }
    }
}

/// Advice for a process that has too many open files.
const MORE_FILES: &str = "this process has too many open files: raise the limit with `ulimit -n 65536`, or make fewer \
                          attempts at once with `-j`";

/// Advice for a full disk.
const MORE_ROOM: &str = "the disk is full: make room (`autoexperiment clean` and `autoexperiment env prune` remove what is \
                         not used), or move what fills it: the cache with `--cache DIR`, workspaces with \
                         `--scratch DIR`, runs with `--runs DIR`, the suite with `--suite DIR`";

/// Whether the text contains the C library's message for a full disk or an exhausted disk quota.
fn says_full(text: &str) -> bool {
    text.contains("No space left on device") || text.contains("Disk quota exceeded")
}

/// Whether the text contains the C library's message for too many open files in a process or system.
fn says_too_many_files(text: &str) -> bool {
    text.contains("Too many open files")
}

/// Returns the number (from 1) of the line that contains a byte offset of a text.
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

/// Iterates over the underlying errors, nearest first.
pub fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |below: &&'a (dyn StdError + 'static)| (*below).source())
}

/// Formats an error and all its causes on one line: "failed to read `x`: permission denied".
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
    fn advice_on_too_many_open_files_replaces_another_hint() {
        let full = std::io::Error::from_raw_os_error(nix::libc::EMFILE);
        let error =
            Error::new(FailureKind::Infrastructure, "no sandbox").because(Error::io("open", Path::new("x"), full));
        assert!(error.hint("see `doctor`").advice().unwrap().contains("ulimit -n"));
        assert_eq!(Error::usage("x").hint("do y").advice(), Some("do y"));
    }

    #[test]
    fn a_full_disk_gives_advice_unless_the_error_has_a_hint() {
        let full = || Error::io("write", Path::new("x"), std::io::Error::from_raw_os_error(nix::libc::ENOSPC));
        assert!(full().advice().unwrap().contains("the disk is full"));
        assert_eq!(full().hint("do y").advice(), Some("do y"));
    }

    #[test]
    fn path_errors_give_advice() {
        let error = |kind: std::io::ErrorKind| Error::io("write", Path::new("x"), std::io::Error::from(kind));
        let advice = |error: &Error| error.advice().unwrap_or_default().to_owned();
        assert!(advice(&error(std::io::ErrorKind::NotFound)).contains("one of its parent folders does not exist"));
        assert!(advice(&error(std::io::ErrorKind::PermissionDenied)).contains("give this user"));
        assert_eq!(advice(&error(std::io::ErrorKind::NotFound).hint("do y")), "do y");
        assert_eq!(error(std::io::ErrorKind::TimedOut).advice(), None);
        let gone = |kind: std::io::ErrorKind| Error::unreadable(Path::new("x"), std::io::Error::from(kind)).kind;
        assert_eq!(gone(std::io::ErrorKind::NotFound), FailureKind::Usage);
        assert_eq!(gone(std::io::ErrorKind::PermissionDenied), FailureKind::Machine);
    }

    #[test]
    fn several_errors_are_combined_line_by_line() {
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
