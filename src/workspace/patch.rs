//! Unified diffs in git's format, which `git apply` accepts.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Number of unchanged lines shown around a change, as in git.
const CONTEXT: usize = 3;

/// Maximum bytes of a text for which a diff is made. The patch contains only the names of longer files.
const LONGEST_TEXT: usize = 1 << 20;

/// Time limit for all diffs of a patch together. After it, diffs are coarser, but still correct.
const TIME: Duration = Duration::from_secs(5);

/// One side of a change: the contents, and git's mode (`0o100644`, `0o100755`, or `0o120000` for a link).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchSide<'a> {
    pub(super) mode: u32,
    pub(super) bytes: &'a [u8],
}

/// Compares two versions of a regular file and returns a unified diff in git's format; empty if they are equal.
#[must_use]
pub fn unified_diff(path: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    let side = |bytes| Some(PatchSide { mode: 0o100_644, bytes });
    let mut patch = Patch::new();
    patch.add(path, side(old), side(new));
    patch.finish()
}

/// A patch under construction.
pub(super) struct Patch {
    text: String,
    deadline: Instant,
}

impl Patch {
    pub(super) fn new() -> Self {
        Self { text: String::new(), deadline: Instant::now() + TIME }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    /// Adds one file. Without `old`, the file is new; without `new`, it was deleted.
    pub(super) fn add(&mut self, path: &str, old: Option<PatchSide<'_>>, new: Option<PatchSide<'_>>) {
        const FILE_TYPE: u32 = 0o170_000;
        if let (Some(before), Some(after)) = (old, new)
            && before.mode & FILE_TYPE != after.mode & FILE_TYPE
        {
            // As in git, a link that became a file is written as two changes.
            self.add(path, old, None);
            return self.add(path, None, new);
        }
        if old == new {
            return;
        }
        let (a, b) = (quoted("a/", path), quoted("b/", path));
        let text = &mut self.text;
        let _ = writeln!(text, "diff --git {a} {b}");
        match (old, new) {
            (None, Some(new)) => {
                let _ = writeln!(text, "new file mode {:o}", new.mode);
            }
            (Some(old), None) => {
                let _ = writeln!(text, "deleted file mode {:o}", old.mode);
            }
            (Some(old), Some(new)) if old.mode != new.mode => {
                let _ = writeln!(text, "old mode {:o}\nnew mode {:o}", old.mode, new.mode);
            }
            _ => {}
        }
        let (before, after) = (old.map_or(&[][..], |side| side.bytes), new.map_or(&[][..], |side| side.bytes));
        if before == after {
            return;
        }
        // A name with spaces is followed by a tab. Without the tab, programs that read the patch would take the part
        // after a space for the file's time.
        let name = |side: Option<PatchSide<'_>>, quoted: &str| match side {
            None => "/dev/null".to_owned(),
            Some(_) if quoted.contains(' ') && !quoted.starts_with('"') => format!("{quoted}\t"),
            Some(_) => quoted.to_owned(),
        };
        if let (Some(before), Some(after)) = (as_text(before), as_text(after)) {
            let _ = writeln!(text, "--- {}\n+++ {}", name(old, &a), name(new, &b));
            hunks(text, before, after, self.deadline);
        } else {
            let (a, b) = (name(old, &a), name(new, &b));
            let _ = writeln!(text, "Binary files {} and {} differ", a.trim_end_matches('\t'), b.trim_end_matches('\t'));
        }
    }
}

/// Returns the bytes as text if they are text that is short enough for a diff.
fn as_text(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > LONGEST_TEXT || bytes.contains(&0) { None } else { std::str::from_utf8(bytes).ok() }
}

fn hunks(text: &mut String, before: &str, after: &str, deadline: Instant) {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            range(first.old_range().start, last.old_range().end),
            range(first.new_range().start, last.new_range().end)
        );
        for change in group.iter().flat_map(|op: &DiffOp| op.iter_changes(&old, &new)) {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value();
            text.push(sign);
            text.push_str(line);
            if !line.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
}

/// Formats `start,length` for the header of a hunk. Lines count from 1; the start of an empty range is the line before
/// it.
fn range(start: usize, end: usize) -> String {
    let length = end - start;
    format!("{},{length}", if length == 0 { start } else { start + 1 })
}

/// Quotes a path as git does: a path with quotes, backslashes, control characters or non-ASCII characters is put in
/// double quotes, with bytes in octal (git-config's `core.quotePath`).
pub(crate) fn quoted(prefix: &str, path: &str) -> String {
    if path.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\') {
        return format!("{prefix}{path}");
    }
    let mut text = format!("\"{prefix}");
    for byte in path.bytes() {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            0x20..0x7f => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}
