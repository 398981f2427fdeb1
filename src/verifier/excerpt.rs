//! Shortens a diff for a model, with the requested files first so that they are cut last.

/// Last line of a masked function's placeholder. The hunk that removes this line implements the function.
const STAND_IN: &str = "raise NotImplementedError";

/// Reorders a diff so that the requested files come first and, within them, the hunks that remove a placeholder; then
/// cuts it to `most` characters.
pub(super) fn excerpt(patch: &str, files: &[String], most: usize) -> String {
    let mut sections: Vec<&str> = pieces(patch, "diff --git ");
    // The sort is stable, so equal sections keep their order.
    sections.sort_by_key(|section| !is_of(section, files));
    let ordered: String = sections
        .iter()
        .map(|section| if is_of(section, files) { hunks_first(section) } else { (*section).to_owned() })
        .collect();
    match ordered.char_indices().nth(most) {
        Some((end, _)) => format!("{}\n[cut]", &ordered[..end]),
        None => ordered.trim_end().to_owned(),
    }
}

/// Whether a section of a diff changes one of these files.
fn is_of(section: &str, files: &[String]) -> bool {
    let heading = section.lines().next().unwrap_or_default();
    files.iter().any(|file| heading == format!("diff --git a/{file} b/{file}"))
}

/// Reorders a file's section so that the hunks that remove a placeholder come first.
fn hunks_first(section: &str) -> String {
    let hunks = pieces(section, "@@ ");
    let Some((head, hunks)) = hunks.split_first().filter(|(head, _)| !head.starts_with("@@ ")) else {
        return section.to_owned();
    };
    let writes = |hunk: &&&str| hunk.lines().any(|line| line.starts_with('-') && line.trim_end().ends_with(STAND_IN));
    let (first, then): (Vec<&&str>, Vec<&&str>) = hunks.iter().partition(writes);
    let mut ordered = (*head).to_owned();
    first.into_iter().chain(then).for_each(|hunk| ordered.push_str(hunk));
    ordered
}

/// Splits a text before each line that starts with `beginning`.
fn pieces<'a>(text: &'a str, beginning: &str) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.starts_with(beginning) && at > from {
            pieces.push(&text[from..at]);
            from = at;
        }
        at += line.len();
    }
    pieces.push(&text[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, hunks: &[&str]) -> String {
        format!("diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n{}", hunks.concat())
    }

    #[test]
    fn a_shortened_diff_shows_the_requested_files_first_and_is_cut_at_its_end() {
        let other = "@@ -1,1 +1,1 @@\n-import a\n+import b\n";
        let wanted = "@@ -9,1 +9,1 @@\n-    raise NotImplementedError\n+    return 1\n";
        let long = format!("@@ -0,0 +1,9 @@\n{}", "+x\n".repeat(5000));
        let patch = file("a.py", &[&long]) + &file("m.py", &[other, wanted]) + &file("z.py", &[other]);
        let files = ["m.py".to_owned()];
        let shown = excerpt(&patch, &files, 1000);
        assert!(shown.starts_with(&file("m.py", &[wanted, other])), "{shown}");
        assert!(shown.ends_with("\n[cut]") && shown.chars().count() == 1000 + "\n[cut]".len());
        // Without a limit nothing is lost, and without requested files nothing is reordered.
        assert_eq!(excerpt(&patch, &files, 1 << 20).len(), patch.trim_end().len());
        assert_eq!(excerpt(&patch, &[], 1 << 20), patch.trim_end());
        for odd in ["", "+no diff", "@@ x", "diff --git a/m.py b/m.py\n", "\n\n@@ \n@@ "] {
            assert_eq!(excerpt(odd, &files, 100), odd.trim_end());
        }
    }
}
