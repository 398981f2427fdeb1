//! HTML tables, as converters put them into Markdown.

use std::ops::Range;

use super::layout::{TableCell, TableLayout};

/// Returns the rows and cells of `text[range]`, which contains a `<table>`.
pub(super) fn read(text: &str, range: Range<usize>) -> TableLayout {
    let mut table = TableLayout::default();
    let mut heads = Vec::new();
    let mut begun = None;
    let mut at = range.start;
    while let Some(found) = text[at..range.end].find('<') {
        let start = at + found;
        let end = text[start..range.end].find('>').map_or(range.end, |end| start + end + 1);
        let tag = text[start + 1..end].to_ascii_lowercase();
        let name = tag.split(|c: char| !(c.is_ascii_alphabetic() || c == '/')).next().unwrap_or_default();
        if matches!(name, "tr" | "/tr" | "td" | "/td" | "th" | "/th" | "/table")
            && let Some((from, span)) = begun.take()
            && let Some(row) = table.rows.last_mut()
        {
            row.push(TableCell { range: from..start, span });
        }
        match name {
            "tr" => {
                table.rows.push(Vec::new());
                heads.push(true);
            }
            "td" | "th" => {
                begun = Some((end, span(&tag)));
                if let Some(head) = heads.last_mut() {
                    *head &= name == "th";
                }
            }
            _ => {}
        }
        at = end;
    }
    table.header = heads.iter().take_while(|head| **head).count().max(usize::from(table.rows.len() > 1));
    table
}

/// Returns the number of columns that a cell spans.
fn span(tag: &str) -> usize {
    let value = tag.split_once("colspan=").map_or("", |(_, value)| value.trim_start_matches(['"', '\'']));
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    value[..digits].parse().map_or(1, |count: usize| count.clamp(1, 100))
}
