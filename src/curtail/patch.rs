//! Applies the diff of a stored attempt, which is a unified diff in git's format, written by this program.
//!
//! Every line that a hunk keeps or removes must be exactly where the hunk says. Unlike `patch`, this module does not
//! search for another position: a diff that doesn't fit was made for other code, and its result would not be the
//! attempt's.

/// A file that a diff changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Changed {
    /// Path relative to the repo.
    pub path: String,
    /// New contents; `None` for a removed file.
    pub bytes: Option<Vec<u8>>,
}

/// Returns the files that a diff changes, with their new contents. `read` returns the old bytes of a file, or no bytes
/// if the file does not exist.
///
/// # Errors
/// An error message that names the file: for a hunk that does not fit, for binary contents, which the diff lacks, and for a
/// diff in another format.
pub(super) fn apply(diff: &str, read: impl Fn(&str) -> Vec<u8>) -> Result<Vec<Changed>, String> {
    let mut lines = diff.split_inclusive('\n').peekable();
    let mut changed = Vec::new();
    while let Some(line) = lines.next() {
        let names = line.trim_end_matches('\n').strip_prefix("diff --git ");
        let path =
            names.and_then(path_of).ok_or_else(|| format!("not a diff in git's format: `{}`", line.trim_end()))?;
        let old = read(&path);
        let old = String::from_utf8(old).map_err(|_| format!("`{path}` is not UTF-8"))?;
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut new, mut at, mut removed) = (String::new(), 0, false);
        while let Some(line) = lines.next_if(|line| !line.starts_with("diff --git ")) {
            if line.starts_with("deleted file mode ") {
                removed = true;
            } else if line.starts_with("Binary files ") {
                return Err(format!("`{path}` is binary: its content is not in the diff"));
            } else if let Some(head) = line.strip_prefix("@@ -") {
                let misfit = |at: usize| format!("`{path}`: a hunk does not fit at line {}", at + 1);
                let (start, mut before, mut after) = hunk(head).ok_or_else(|| misfit(at))?;
                let kept = old.get(at..start).ok_or_else(|| misfit(at))?;
                new.extend(kept.iter().copied());
                at = start;
                while before > 0 || after > 0 {
                    let line = lines.next().ok_or_else(|| misfit(at))?;
                    let (sign, text) = line.split_at_checked(1).ok_or_else(|| misfit(at))?;
                    let ends_here = lines.next_if(|next| next.starts_with("\\ ")).is_some();
                    let text = if ends_here { text.strip_suffix('\n').unwrap_or(text) } else { text };
                    if sign != "+" {
                        if old.get(at) != Some(&text) {
                            return Err(misfit(at));
                        }
                        at += 1;
                        before = usize::checked_sub(before, 1).ok_or_else(|| misfit(at))?;
                    }
                    if sign != "-" {
                        new.push_str(text);
                        after = usize::checked_sub(after, 1).ok_or_else(|| misfit(at))?;
                    }
                }
            }
        }
        new.extend(old.get(at..).unwrap_or_default().iter().copied());
        changed.push(Changed { path, bytes: (!removed).then(|| new.into_bytes()) });
    }
    Ok(changed)
}

/// Parses a hunk header such as `3,4 +3,5 @@`. Returns how many lines of the old file come before the hunk, how many
/// old lines the hunk has, and how many new lines.
fn hunk(head: &str) -> Option<(usize, usize, usize)> {
    let (old, rest) = head.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| {
        let (start, length) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse::<usize>().ok()?, length.parse::<usize>().ok()?))
    };
    let ((start, before), (_, after)) = (range(old)?, range(new)?);
    // For an empty range, the header states the line before the range.
    Some((if before == 0 { start } else { start.checked_sub(1)? }, before, after))
}

/// Returns PATH from `a/PATH b/PATH`. The names may be quoted as git does.
fn path_of(names: &str) -> Option<String> {
    if let Some(quoted) = names.strip_prefix("\"a/") {
        return unquote(quoted);
    }
    let path = names.strip_prefix("a/")?.get(..(names.len().checked_sub(5)?) / 2)?;
    (names == format!("a/{path} b/{path}")).then(|| path.to_owned())
}

/// Returns the text up to the closing quote, and decodes git's escapes.
fn unquote(quoted: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = quoted.bytes();
    loop {
        match rest.next()? {
            b'"' => return String::from_utf8(bytes).ok(),
            b'\\' => bytes.push(match rest.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                high @ b'0'..=b'3' => {
                    let mut digit =
                        || rest.next().filter(|digit| (b'0'..=b'7').contains(digit)).map(|digit| digit - b'0');
                    (high - b'0') * 64 + digit()? * 8 + digit()?
                }
                other => other,
            }),
            byte => bytes.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workspace::unified_diff;

    fn text() -> impl Strategy<Value = String> {
        let line =
            proptest::sample::select(&["a\n", "b\n", "\n", "-x\n", "+y\n", "\\ z\n", "@@ -1 +1 @@\n", "ü\n"][..]);
        (proptest::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ends)| {
            let text = lines.concat();
            if ends { text } else { text.trim_end_matches('\n').to_owned() }
        })
    }

    proptest! {
        #[test]
        fn applying_a_diff_that_the_harness_wrote_gives_the_changed_file(old in text(), new in text()) {
            for path in ["m.py", "a b/m.py", "q\"uo\\te\n/ü.py"] {
                let diff = String::from_utf8(unified_diff(path, old.as_bytes(), new.as_bytes())).unwrap();
                let changed = apply(&diff, |_| old.clone().into_bytes()).unwrap();
                if old == new {
                    prop_assert_eq!(changed, vec![]);
                } else {
                    let bytes = Some(new.clone().into_bytes());
                    prop_assert_eq!(changed, vec![Changed { path: path.to_owned(), bytes }]);
                }
            }
        }

        #[test]
        fn no_diff_makes_the_parser_panic(pieces in proptest::collection::vec(proptest::sample::select(&[
            "diff --git a/x b/x\n", "diff --git ", "\"a/\\", "@@ -1,2 +1 @@\n", "@@ -", "+a\n", "-a\n", " a\n", "\\ No\n", "\n", "ü",
        ][..]), 0..12)) {
            let _ = apply(&pieces.concat(), |_| b"a\nb\n".to_vec());
        }
    }

    #[test]
    fn diffs_that_do_not_fit_or_lack_contents_are_rejected_and_deletions_are_applied() {
        let diff = String::from_utf8(unified_diff("m.py", b"a\nb\n", b"a\nc\n")).unwrap();
        assert_eq!(apply(&diff, |_| b"a\nx\n".to_vec()).unwrap_err(), "`m.py`: a hunk does not fit at line 2");
        let diff = String::from_utf8(unified_diff("m.bin", b"\0", b"\0\0")).unwrap();
        assert_eq!(apply(&diff, |_| Vec::new()).unwrap_err(), "`m.bin` is binary: its content is not in the diff");
        let removed =
            "diff --git a/m.py b/m.py\ndeleted file mode 100644\n--- a/m.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n";
        let gone = Changed { path: "m.py".to_owned(), bytes: None };
        assert_eq!(apply(removed, |_| b"a\n".to_vec()).unwrap(), [gone]);
        let empty = "diff --git a/m/__init__.py b/m/__init__.py\nnew file mode 100644\n";
        let new = Changed { path: "m/__init__.py".to_owned(), bytes: Some(Vec::new()) };
        assert_eq!(apply(empty, |_| Vec::new()).unwrap(), [new]);
    }
}
