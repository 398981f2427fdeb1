//! Changes one constant at a time in the gold cells, to find changes that no check notices.

use std::ops::Range;

use super::loaded::LoadedTask;
use super::task::TrialSolution;

/// Maximum length of a quoted word that counts as a constant.
const LONGEST_WORD: usize = 20;

/// Returns one changed copy of the gold solution for each constant in the gold cells; only that constant is changed.
/// The copies have different names.
pub fn changes(task: &LoadedTask) -> Vec<TrialSolution> {
    let mut trials: Vec<TrialSolution> = Vec::new();
    for (place, block) in task.manifest.blocks.iter().enumerate() {
        for (number, cell) in task.cells[place].iter().enumerate() {
            for (range, other) in constants(cell) {
                let mut cells = task.cells[place].clone();
                cells[number].replace_range(range.clone(), &other);
                let base = format!("{}: `{}` becomes `{other}`", block.id, &cell[range]);
                let taken = |name: &str| trials.iter().any(|trial| trial.name == name);
                let numbered = (2..).map(|count| format!("{base} ({count})"));
                let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or_default();
                trials.push(TrialSolution::from_gold(task, name, &[place], cells));
            }
        }
    }
    trials
}

/// Finds the constants of a cell, each with its replacement: numbers, booleans, and quoted words outside of shell
/// lines.
fn constants(cell: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let mut start = 0;
    let is_script = cell.starts_with("%%bash") || cell.starts_with("%%sh");
    for line in cell.split_inclusive('\n') {
        let text = line.trim_start();
        let is_shell = is_script || text.starts_with(['!', '%']);
        if !text.starts_with('#') {
            let inside = in_line(line, is_shell);
            found.extend(inside.into_iter().map(|(range, other)| (range.start + start..range.end + start, other)));
        }
        start += line.len();
    }
    found
}

fn in_line(line: &str, is_shell: bool) -> Vec<(Range<usize>, String)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = line[at..].chars().next() {
        let before = line[..at].chars().next_back();
        if !is_word(first) || before.is_some_and(|c| is_word(c) || c == '\\' || c == '$') {
            at += first.len_utf8();
            continue;
        }
        let is_number = first.is_ascii_digit();
        let belongs = |c: char| is_word(c) || (is_number && c == '.');
        let length = line[at..].find(|c: char| !belongs(c)).unwrap_or(line.len() - at);
        let word = line[at..at + length].trim_end_matches('.');
        let (range, after) = (at..at + word.len(), line[at + word.len()..].chars().next());
        at += length;
        let is_quoted = matches!(before, Some('"' | '\'')) && after == before && word.len() <= LONGEST_WORD;
        // The number of a file descriptor, as in `2>&1`, does not count as a constant.
        let is_descriptor = is_shell && (after == Some('>') || before == Some('&'));
        let other = match word {
            "True" => Some("False".to_owned()),
            "False" => Some("True".to_owned()),
            _ if is_number && !is_descriptor => next(word),
            _ if is_quoted && !is_shell && !is_number => Some(format!("{word}x")),
            _ => None,
        };
        found.extend(other.map(|other| (range, other)));
    }
    found
}

/// Returns a similar number: adds 1 to whole numbers and to the last part of versions, multiplies others by 1.5.
fn next(word: &str) -> Option<String> {
    if let Ok(whole) = word.parse::<u64>() {
        return whole.checked_add(1).map(|next| next.to_string());
    }
    match word.rsplit_once('.') {
        Some((front, last)) if front.contains('.') => {
            Some(format!("{front}.{}", last.parse::<u64>().ok()?.checked_add(1)?))
        }
        _ => word.parse::<f64>().ok().map(|number| ((number * 1.5e9).round() / 1e9).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_python_and_shell_are_changed_one_at_a_time() {
        let changed = |cell: &str| {
            let all = constants(cell);
            all.into_iter().map(|(range, other)| format!("{}>{other}", &cell[range])).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(changed("config[\"bm25\"] = {\"k1\": 0.6, \"n\": 50}"), "bm25>bm25x k1>k1x 0.6>0.9 n>nx 50>51");
        assert_eq!(changed("!sed -i 's/SEED = .*/SEED = 7/; s/\\(a\\)/\\1/' x.py 2>&1 | tail -2"), "7>8 2>3");
        assert_eq!(changed("%pip install Boruta==0.3 networkx==3.4.2"), "0.3>0.45 3.4.2>3.4.3");
        assert_eq!(changed("# 5 rows\nx = True\ny2 = v[0]"), "True>False 0>1");
        assert_eq!(changed("%%writefile c.json\n{\"a\": \"b.c\"}"), "a>ax");
        assert_eq!(changed("%%bash\nsed -i 's/a: .*/a: 1/' \"f\""), "1>2");
    }
}
