//! Names of files: names made from other names that may be too long for a file system, and the names of the files of
//! shards.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Maximum bytes of a name. File systems allow 255; the difference leaves room for file extensions.
const LONGEST: usize = 220;
/// Number of hex digits that are appended to distinguish names with the same beginning.
const DIGITS: usize = 16;
/// Separator between the beginning of a long name and the digits of its digest.
const MARK: char = '~';

/// Returns the name if it is short enough; otherwise its beginning, followed by a digest of the whole name.
pub fn bounded(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return name.into();
    }
    let mut end = LONGEST - DIGITS - MARK.len_utf8();
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let digest = super::hex(&Sha256::digest(name.as_bytes()));
    format!("{}{MARK}{}", &name[..end], &digest[..DIGITS]).into()
}

/// Returns the paths of the files `STEM.jsonl` and `STEM-SHARD.jsonl` in a folder, sorted. The name of a shard consists of
/// digits and hyphens, so a user's copy such as `attempts-backup.jsonl` is not among them.
///
/// # Errors
/// Returns an error if the folder cannot be read.
pub fn files_of_shards(folder: &Path, stem: &str) -> io::Result<Vec<PathBuf>> {
    let is_shard = |rest: &str| {
        rest.is_empty() || rest.starts_with('-') && !rest.contains(|c: char| !matches!(c, '0'..='9' | '-'))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().and_then(|name| name.strip_prefix(stem)?.strip_suffix(".jsonl")).is_some_and(is_shard) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a file's name may be the shortened form of a longer name.
pub fn may_be_bounded(name: &str) -> bool {
    let head = name.len().checked_sub(DIGITS).and_then(|head| name.get(..head));
    // `bounded` cuts at a character boundary, so a shortened name may be up to three bytes shorter than `LONGEST`.
    name.len() + 3 >= LONGEST && head.is_some_and(|head| head.ends_with(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_made_from_names_of_any_length_fit_the_length_limit_and_stay_distinct() {
        assert_eq!(bounded("react+paper=none"), "react+paper=none");
        let long = "sample_1,2,".repeat(30);
        let (one, two) = (format!("{long}3"), format!("{long}4"));
        assert_ne!(bounded(&one), bounded(&two));
        assert_eq!((bounded(&one).len(), may_be_bounded(&bounded(&one))), (LONGEST, true));
        let wide = "ü".repeat(200);
        assert!(bounded(&wide).len() <= LONGEST && may_be_bounded(&bounded(&wide)));
        assert!(!may_be_bounded("react~0123456789abcdef") && !may_be_bounded(&"x".repeat(LONGEST)));
    }

    #[test]
    fn files_of_shards_are_found_but_copies_under_other_names_are_not() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "a.jsonl",
            "a-02.jsonl",
            "a-02-2.jsonl",
            "a-backup.jsonl",
            "a.old.jsonl",
            "a2.jsonl",
            "ab.jsonl",
            "a-1.json",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = files_of_shards(folder.path(), "a").unwrap();
        assert_eq!(found, ["a-02-2.jsonl", "a-02.jsonl", "a.jsonl"].map(|name| folder.path().join(name)));
    }
}
