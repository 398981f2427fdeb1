//! Tables drawn in text: pipe tables, and pandoc's grid, simple and multi-line tables.

use std::ops::Range;

use super::layout::{TableCell, TableLayout};

/// A line with its position in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextLine<'a> {
    pub(super) start: usize,
    pub(super) text: &'a str,
}

/// Maximum number of rows of a table. This limits the search for a table's end.
pub(super) const MOST_ROWS: usize = 2000;

/// Reads the table that starts at this line; also returns the line after it.
pub(super) fn read(lines: &[TextLine<'_>], at: usize) -> Option<(TableLayout, usize)> {
    pipes(lines, at).or_else(|| grid(lines, at)).or_else(|| dashed(lines, at))
}

fn line<'a>(lines: &[TextLine<'a>], at: usize) -> &'a str {
    lines.get(at).map_or("", |line| line.text)
}

/// Reads a pipe table: `| a | b |` with a line of dashes below the header.
fn pipes(lines: &[TextLine<'_>], at: usize) -> Option<(TableLayout, usize)> {
    let delimiter = |text: &str| {
        text.contains('-')
            && text.contains('|')
            && text.trim().chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '+'))
    };
    if !line(lines, at).contains('|') || !delimiter(line(lines, at + 1)) {
        return None;
    }
    let mut end = at + 2;
    while end < lines.len() && line(lines, end).contains('|') {
        end += 1;
    }
    let rows =
        lines[at..end].iter().enumerate().filter(|(place, _)| *place != 1).map(|(_, line)| pipe_cells(line)).collect();
    Some((TableLayout { rows, header: 1, caption: None, fixed_width: true }, end))
}

fn pipe_cells(line: &TextLine<'_>) -> Vec<TableCell> {
    let text = line.text.trim_end();
    let text = text.strip_suffix('|').filter(|rest| !rest.ends_with('\\')).unwrap_or(text);
    let lead = text.len() - text.trim_start().len();
    let lead = lead + usize::from(text[lead..].starts_with('|'));
    let mut cells = Vec::new();
    let mut begun = lead;
    let mut escaped = false;
    let mut formula = false;
    for (place, c) in text.char_indices().skip_while(|(place, _)| *place < lead) {
        match c {
            '|' if !escaped && !formula => {
                cells.push(cell(line, begun..place));
                begun = place + 1;
            }
            // Bars inside a formula do not separate cells. A `$` begins a formula only if another `$` follows:
            // otherwise, none of the remaining bars would separate cells.
            '$' if !escaped => formula = !formula && text[place + 1..].contains('$'),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    cells.push(cell(line, begun..text.len()));
    cells
}

fn cell(line: &TextLine<'_>, range: Range<usize>) -> TableCell {
    TableCell { range: line.start + range.start..line.start + range.end, span: 1 }
}

/// Reads a grid table, with `+---+---+` around every row.
fn grid(lines: &[TextLine<'_>], at: usize) -> Option<(TableLayout, usize)> {
    let border = |text: &str| {
        let text = text.trim();
        text.len() > 2 && text.starts_with('+') && text.ends_with('+') && text.chars().all(|c| "+-=:".contains(c))
    };
    if !border(line(lines, at)) {
        return None;
    }
    let mut table = TableLayout { fixed_width: true, ..TableLayout::default() };
    let mut end = at + 1;
    while end < lines.len() {
        let text = line(lines, end).trim();
        if border(text) {
            if text.contains('=') {
                table.header = table.rows.len();
            }
        } else if text.starts_with('|') {
            table.rows.push(pipe_cells(&lines[end]));
        } else {
            break;
        }
        end += 1;
    }
    if table.header == 0 && table.rows.len() > 1 {
        table.header = 1;
    }
    Some((table, end))
}

/// Reads pandoc's simple and multi-line tables, whose columns are marked by runs of dashes.
fn dashed(lines: &[TextLine<'_>], at: usize) -> Option<(TableLayout, usize)> {
    let first = line(lines, at);
    if is_dashes(first) {
        // The first line of dashes is either the upper border of a table or, in a table without a header, the line that
        // marks the columns.
        let (header, columns) = if runs(first).len() > 1 && !has_columns(lines, at + 1) {
            (at..at, at)
        } else {
            let below = (at + 1..lines.len().min(at + 8)).find(|&below| is_dashes(line(lines, below)))?;
            (at + 1..below, below)
        };
        let end = (columns + 1..lines.len().min(columns + MOST_ROWS)).find(|&below| is_dashes(line(lines, below)))?;
        return Some((columned(lines, header, columns, columns + 1..end), end + 1));
    }
    let below = line(lines, at + 1);
    if first.trim().is_empty() || !is_dashes(below) || runs(below).len() < 2 {
        return None;
    }
    let mut end = at + 2;
    while end < lines.len() && !line(lines, end).trim().is_empty() && !is_dashes(line(lines, end)) {
        end += 1;
    }
    let rows = at + 2..end;
    let end = end + usize::from(is_dashes(line(lines, end)));
    Some((columned(lines, at..at + 1, at + 1, rows), end))
}

fn has_columns(lines: &[TextLine<'_>], from: usize) -> bool {
    (from..lines.len().min(from + 5)).any(|below| runs(line(lines, below)).len() > 1 && is_dashes(line(lines, below)))
}

/// Whether a line consists of dashes and blanks, with at least five dashes.
fn is_dashes(text: &str) -> bool {
    text.bytes().filter(|byte| *byte == b'-').count() >= 5 && text.bytes().all(|byte| matches!(byte, b'-' | b' '))
}

/// Returns the ranges of the runs of dashes in characters. In a line of dashes and blanks, each character is one byte.
fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (place, byte) in text.bytes().enumerate() {
        if byte == b'-' {
            match runs.last_mut() {
                Some(run) if run.end == place => run.end += 1,
                _ => runs.push(place..place + 1),
            }
        }
    }
    runs
}

fn columned(lines: &[TextLine<'_>], header: Range<usize>, columns: usize, body: Range<usize>) -> TableLayout {
    let runs = runs(line(lines, columns));
    let rows = |range: Range<usize>| range.filter(|&at| !line(lines, at).trim().is_empty()).collect::<Vec<_>>();
    let header = rows(header);
    let count = header.len();
    let rows = header.into_iter().chain(rows(body)).map(|at| column_cells(&lines[at], &runs)).collect();
    TableLayout { rows, header: count, caption: None, fixed_width: true }
}

/// Splits a line at two or more blanks and assigns each piece to the column whose dashes it overlaps most, because
/// hand-made tables seldom align exactly.
fn column_cells(line: &TextLine<'_>, runs: &[Range<usize>]) -> Vec<TableCell> {
    let mut cells: Vec<Option<Range<usize>>> = vec![None; runs.len()];
    for (columns, bytes) in pieces(line.text) {
        let overlap = |run: &Range<usize>| run.end.min(columns.end) as i64 - run.start.max(columns.start) as i64;
        let Some((place, _)) = runs.iter().enumerate().max_by_key(|(_, run)| overlap(run)) else { continue };
        match &mut cells[place] {
            Some(range) => range.end = bytes.end,
            slot => *slot = Some(bytes),
        }
    }
    let empty = line.text.len()..line.text.len();
    cells.into_iter().map(|range| cell(line, range.unwrap_or_else(|| empty.clone()))).collect()
}

/// Splits a line at two or more blanks; returns each piece's range in characters and in bytes.
fn pieces(text: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (column, (byte, c)) in text.char_indices().enumerate() {
        if c.is_whitespace() {
            continue;
        }
        let end = byte + c.len_utf8();
        match found.last_mut() {
            Some((columns, bytes)) if column <= columns.end + 1 => {
                columns.end = column + 1;
                bytes.end = end;
            }
            _ => found.push((column..column + 1, byte..end)),
        }
    }
    found
}
