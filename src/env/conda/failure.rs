//! Converts errors of the conda libraries to this crate's errors, with hints.

use std::error::Error as StdError;
use std::io::ErrorKind;

use crate::error::{Error, causes, with_causes};

/// Creates an error that is caused by `error`. Its kind and its hint are chosen by the texts and kinds of `error` and
/// of the causes of `error`.
pub(super) fn explained(what: &str, error: impl StdError + Send + Sync + 'static) -> Error {
    let said = with_causes(&error);
    let holds = |words: &[&str]| words.iter().any(|word| said.to_lowercase().contains(word));
    if is_full(&error) || holds(&["no space left", "storage full"]) {
        return Error::machine(format!("{what}: the disk is full"))
            .because(error)
            .hint("make room, or put the cache elsewhere with `--cache DIR`; `autoexperiment env prune` removes envs");
    }
    if holds(&["hash mismatch"]) {
        return Error::suite(format!("{what}: a download does not match its hash")).because(error).hint(
            "do not install this download if you trust the lock file: the channel served another file, or the download was \
             damaged; lock the env again only if the channel replaced the package",
        );
    }
    // The library compares hashes only after unpacking. So for a damaged archive, it reports that the archive cannot be
    // unpacked, and not that the hash differs.
    if holds(&["failed to fetch"]) && is_unreadable(&error) && !holds(&["response body", "sending request"]) {
        return Error::suite(format!("{what}: a download is damaged, so its hash cannot match"))
            .because(error)
            .hint("the file of the channel or mirror is broken; choose another with `--channel-alias URL`");
    }
    if holds(&["offline mode", "no cache", "not in the cache", "is not cached"]) {
        return Error::machine(format!("{what}: offline, and a file that is needed is not in the cache"))
            .because(error)
            .hint("repeat the command once without `--offline`");
    }
    if holds(&["timed out", "timeout"]) {
        return Error::machine(format!("{what}: the server does not answer"))
            .because(error)
            .hint("try again later, or name a mirror with `--channel-alias URL`");
    }
    Error::machine(what.to_owned()).because(error).hint(
        "see the causes above, and check the channel's address and the network; `--channel-alias URL` sets a \
         mirror",
    )
}

fn is_full(error: &(dyn StdError + 'static)) -> bool {
    let full = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    io_kinds(error).any(full)
}

/// Whether an error says that a file's contents do not fit the file's type.
fn is_unreadable(error: &(dyn StdError + 'static)) -> bool {
    io_kinds(error).any(|kind| {
        matches!(kind, ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof | ErrorKind::Other)
    })
}

/// Returns the kinds of all I/O errors among an error and its causes.
fn io_kinds(error: &(dyn StdError + 'static)) -> impl Iterator<Item = ErrorKind> {
    let all = std::iter::once(error).chain(causes(error));
    all.filter_map(|error| error.downcast_ref::<std::io::Error>().map(std::io::Error::kind))
}

#[cfg(test)]
mod tests {
    use super::explained;
    use crate::error::FailureKind;

    #[test]
    fn the_cause_of_a_conda_failure_decides_its_message_and_hint() {
        let io = |kind, text: &str| std::io::Error::new(kind, text.to_owned());
        let full = explained("failed to install", std::io::Error::from_raw_os_error(28));
        assert!(full.message.contains("the disk is full") && full.hint.unwrap().contains("--cache"));
        let corrupt = explained("failed to install", io(std::io::ErrorKind::Other, "hash mismatch when extracting x"));
        assert_eq!(corrupt.kind, FailureKind::Suite);
        let silent = explained("failed to read", io(std::io::ErrorKind::TimedOut, "operation timed out"));
        assert!(silent.message.contains("does not answer"));
        let other = explained("failed to read", io(std::io::ErrorKind::NotFound, "nothing there"));
        assert_eq!((other.kind, other.message.as_str()), (FailureKind::Machine, "failed to read"));
    }
}
