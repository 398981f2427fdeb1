//! Reconstructs a file after an attempt: the masked file with the attempt's own patch.

use crate::workspace::quoted;

/// Applies a unified diff of [`crate::workspace`] to one file's text. Returns the text unchanged if the diff does not
/// name the file.
///
/// # Errors
/// Why the diff cannot be applied: the file was deleted or is binary now, or the diff was made for another text.
pub(super) fn patched(patch: &str, path: &str, before: &str) -> Result<String, String> {
    let Some(section) = section(patch, path) else { return Ok(before.to_owned()) };
    if section.iter().any(|line| line.starts_with("deleted file mode")) {
        return Err("the file was deleted".to_owned());
    }
    if section.iter().any(|line| line.starts_with("Binary files")) {
        return Err("the file is no longer text".to_owned());
    }
    let other = || "the changes do not fit the paper's files as they are now".to_owned();
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::with_capacity(before.len()), 0_usize);
    // The lines before the first hunk are headings.
    let body = section.iter().position(|line| line.starts_with("@@ ")).unwrap_or(section.len());
    for (place, line) in section.iter().enumerate().skip(body) {
        // The line ends with a line break unless `\ No newline at end of file` follows.
        let ends = !section.get(place + 1).is_some_and(|next| next.starts_with('\\'));
        let whole = |rest: &str| if ends { format!("{rest}\n") } else { rest.to_owned() };
        if let Some(rest) = line.strip_prefix("@@ -") {
            let start =
                rest.split([',', ' ']).next().and_then(|number| number.parse::<usize>().ok()).ok_or_else(other)?;
            // If the hunk's old range is empty, the hunk's heading gives the number of the line before the range.
            let is_empty = rest.split(' ').next().is_some_and(|range| range.ends_with(",0"));
            let start = if is_empty { start } else { start.saturating_sub(1) };
            out.extend(old.get(at..start).ok_or_else(other)?.iter().copied());
            at = start;
        } else if let Some(rest) = line.strip_prefix('+') {
            out.push_str(&whole(rest));
        } else if let Some((sign, rest)) = line.split_at_checked(1).filter(|(sign, _)| matches!(*sign, " " | "-")) {
            if old.get(at) != Some(&whole(rest).as_str()) {
                return Err(other());
            }
            if sign == " " {
                out.push_str(&whole(rest));
            }
            at += 1;
        }
    }
    out.extend(old.get(at..).ok_or_else(other)?.iter().copied());
    Ok(out)
}

/// Returns the lines of a patch that are about this file, without the heading line.
fn section<'patch>(patch: &'patch str, path: &str) -> Option<Vec<&'patch str>> {
    let heading = format!("diff --git {} {}", quoted("a/", path), quoted("b/", path));
    // Lines of hunks begin with `+`, `-`, a space or a backslash, so no line of a file can look like a heading.
    let mut lines = patch.split('\n').skip_while(|line| *line != heading);
    lines.next()?;
    Some(lines.take_while(|line| !line.starts_with("diff --git ")).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workspace::unified_diff;

    proptest! {
        #[test]
        fn applying_a_patch_gives_the_changed_text_and_leaves_files_of_other_names_unchanged(
            before in "([a-c]\n){0,12}[a-c]?", after in "([a-c+ -]\n){0,12}[a-c]?",
        ) {
            let patch = unified_diff("a/b.py", before.as_bytes(), after.as_bytes());
            let patch = String::from_utf8(patch).unwrap();
            prop_assert_eq!(patched(&patch, "a/b.py", &before), Ok(after));
            prop_assert_eq!(patched(&patch, "a/c.py", &before), Ok(before));
        }
    }

    #[test]
    fn a_patch_is_applied_to_a_file_whose_name_needs_quotes() {
        let patch = String::from_utf8(unified_diff("é/x \"y\".py", b"a\n", b"b\n")).unwrap();
        assert_eq!(patched(&patch, "é/x \"y\".py", "a\n"), Ok("b\n".to_owned()));
    }

    #[test]
    fn a_patch_for_another_text_is_refused() {
        let patch = String::from_utf8(unified_diff("x.py", b"a\nb\nc\n", b"a\nB\nc\n")).unwrap();
        assert!(patched(&patch, "x.py", "a\nb\n").is_err());
        assert!(patched(&patch, "x.py", "").is_err());
        assert!(patched("diff --git a/x.py b/x.py\ndeleted file mode 100644\n", "x.py", "a\n").is_err());
    }
}
