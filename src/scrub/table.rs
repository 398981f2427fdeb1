//! Decides which numbers in tables are results: finds the columns and rows that contain results.

use std::ops::Range;

use super::layout::{PROSE_WORDS, TableCell, TableLayout, TextBlock};
use super::prose::Prose;
use super::token::{TextToken, TokenKind, split};
use super::words::{self, SectionKind, WordSense};
use super::{MarkerContext, MarkupFormat, NumberDecision, ScrubRule, keep_all, sentences};

/// Kind of numbers that a header or a row's label indicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentHint {
    Result,
    Setting,
    Nothing,
}

/// Decides for each number of a table whether it is kept or removed as a result.
pub(super) fn judge(
    text: &str,
    table: &TableLayout,
    block: &TextBlock,
    format: MarkupFormat,
    judged: &mut Vec<NumberDecision>,
) {
    let reader = TableReader { text, format, table };
    let columns = reader.columns();
    let results = reader.is_of_results(&columns, block.section);
    let mut at = block.range.start;
    for (place, row) in table.rows.iter().enumerate() {
        let label = reader.label(row);
        let mut column = 0;
        for (index, cell) in row.iter().enumerate() {
            reader.between(at..cell.range.start.max(at), block.section, judged);
            at = cell.range.end.max(at);
            let says = columns.get(column).copied().unwrap_or(ContentHint::Nothing);
            let rule = if place < table.header {
                Some(ScrubRule::TableHeader)
            } else if column == 0 && index == 0 && !(row.len() == 1 && is_prose(&reader.tokens(&cell.range))) {
                Some(ScrubRule::TableLabel)
            } else if says == ContentHint::Setting || (label == ContentHint::Setting && says != ContentHint::Result) {
                Some(ScrubRule::TableSetting)
            } else if !results {
                Some(ScrubRule::TableOther)
            } else {
                None
            };
            column += cell.span;
            reader.cell(cell, rule, block.section, judged);
        }
    }
    reader.between(at..block.range.end.max(at), block.section, judged);
}

struct TableReader<'a> {
    text: &'a str,
    format: MarkupFormat,
    table: &'a TableLayout,
}

impl TableReader<'_> {
    fn tokens(&self, range: &Range<usize>) -> Vec<TextToken> {
        split(self.text, range.start, range.end, self.format)
    }

    fn str(&self, token: &TextToken) -> &str {
        &self.text[token.start..token.end]
    }

    /// Decides which numbers between two cells are kept. In HTML tables, the text between cells, such as a caption, is
    /// judged as sentences. In other tables, all numbers between cells are kept.
    fn between(&self, range: Range<usize>, section: SectionKind, judged: &mut Vec<NumberDecision>) {
        // Judge the text between cells only in HTML tables. In tables with columns of fixed width, a text across
        // columns would be cut at the borders of the columns; in LaTeX, there are only commands between cells.
        if !self.table.fixed_width && self.format == MarkupFormat::Markdown {
            sentences::judge(self.text, range, self.format, section, false, judged);
        } else {
            judged.extend(keep_all(self.text, range, ScrubRule::Layout));
        }
    }

    /// Decides which numbers of one cell are kept. If a `rule` is given, all numbers are kept by this rule, except in
    /// sentences beside the labels. Otherwise, a cell with prose is judged like other sentences. In any other cell,
    /// numbers are results, except numbers that are kept in any context, such as parts of names.
    fn cell(&self, cell: &TableCell, rule: Option<ScrubRule>, section: SectionKind, judged: &mut Vec<NumberDecision>) {
        let tokens = self.tokens(&cell.range);
        let is_sentence = matches!(rule, Some(ScrubRule::TableSetting | ScrubRule::TableOther)) && is_prose(&tokens);
        if let Some(rule) = rule.filter(|_| !is_sentence) {
            judged.extend(keep_all(self.text, cell.range.clone(), rule));
            return;
        }
        if is_prose(&tokens) {
            sentences::judge(self.text, cell.range.clone(), self.format, section, false, judged);
            return;
        }
        let split = Prose { text: self.text, tokens: &tokens, heading: false };
        let place = MarkerContext::Cell { fixed_width: self.table.fixed_width };
        for (at, token) in tokens.iter().enumerate() {
            let range = token.start..token.end;
            match token.kind {
                TokenKind::Number(form) => {
                    let (remove, rule) = match split.fixed(at, form) {
                        Some(rule) => (false, rule),
                        None => (true, ScrubRule::TableResult),
                    };
                    judged.push(NumberDecision { range, remove, rule, cue: None, place });
                }
                TokenKind::Word => judged.extend(keep_all(self.text, range, ScrubRule::Name)),
                TokenKind::Opaque => judged.extend(keep_all(self.text, range, ScrubRule::Markup)),
                _ => {}
            }
        }
    }

    /// Classifies each column by its header.
    fn columns(&self) -> Vec<ContentHint> {
        let mut columns: Vec<ContentHint> = Vec::new();
        for row in self.table.rows.iter().take(self.table.header) {
            let mut column = 0;
            for cell in row {
                let says = self.content_hint(&self.tokens(&cell.range), true);
                // The name of a setting over several columns only groups these columns; it does not make them settings.
                let says = if cell.span > 1 && says == ContentHint::Setting { ContentHint::Nothing } else { says };
                for place in column..column + cell.span {
                    if columns.len() <= place {
                        columns.resize(place + 1, ContentHint::Nothing);
                    }
                    if columns[place] == ContentHint::Nothing || says == ContentHint::Result {
                        columns[place] = says;
                    }
                }
                column += cell.span;
            }
        }
        self.by_values(&mut columns);
        columns
    }

    /// Uses the columns' values to correct the classification by header. A column whose header names a setting contains
    /// results if at least half of its values have a spread, such as `2.61 (0.03)`. A column whose header indicates
    /// nothing contains settings if its values repeat or are integers in order, and if all columns between the row
    /// labels and this column contain settings.
    fn by_values(&self, columns: &mut [ContentHint]) {
        let mut beside = true;
        for (column, says) in columns.iter_mut().enumerate().skip(1) {
            let Some(cells) = self.cells(column) else {
                beside = false;
                continue;
            };
            let spread = cells.iter().filter(|tokens| has_spread(tokens)).count();
            if *says == ContentHint::Setting && spread > 0 && 2 * spread >= cells.len() {
                *says = ContentHint::Result;
            } else if *says == ContentHint::Nothing && beside && self.are_settings(&cells) {
                *says = ContentHint::Setting;
            }
            beside &= *says == ContentHint::Setting;
        }
    }

    /// Returns the cells of a column below the header, if every row has its own cell there.
    fn cells(&self, column: usize) -> Option<Vec<Vec<TextToken>>> {
        let body = self.table.rows.iter().skip(self.table.header);
        let cells = body.map(|row| {
            let plain = row.iter().all(|cell| cell.span == 1);
            row.get(column).filter(|_| plain).map(|cell| self.tokens(&cell.range))
        });
        cells.collect::<Option<Vec<_>>>().filter(|cells| !cells.is_empty())
    }

    fn are_settings(&self, cells: &[Vec<TextToken>]) -> bool {
        let mut values = Vec::new();
        for tokens in cells {
            let mut numbers = tokens.iter().filter(|token| token.kind != TokenKind::Break);
            let (Some(token), None) = (numbers.next(), numbers.next()) else { return false };
            let TokenKind::Number(form) = token.kind else { return false };
            let Ok(value) = self.str(token).replace(',', "").parse::<f64>() else { return false };
            values.push((value, form.decimals));
        }
        let whole = values.iter().all(|(_, decimals)| *decimals == 0);
        let in_order = values.len() > 2 && values.is_sorted_by(|one, next| one.0 <= next.0);
        let mut distinct: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
        distinct.sort_by(f64::total_cmp);
        distinct.dedup();
        (whole && in_order) || (values.len() > 3 && 2 * distinct.len() <= values.len())
    }

    /// Classifies a row by its label.
    fn label(&self, row: &[TableCell]) -> ContentHint {
        row.first().map_or(ContentHint::Nothing, |cell| self.content_hint(&self.tokens(&cell.range), false))
    }

    fn content_hint(&self, tokens: &[TextToken], header: bool) -> ContentHint {
        let words: Vec<&str> =
            tokens.iter().filter(|token| token.kind == TokenKind::Word).map(|token| self.str(token)).collect();
        // A column's header or a row's label indicates results if it contains a rate (`/` before a unit of time),
        // another unit of time (except `s`), or the word "time".
        let rate = tokens
            .windows(2)
            .any(|pair| pair[0].kind == TokenKind::Sign('/') && words::is_time_unit(self.str(&pair[1])));
        let timed = words.iter().any(|word| words::is_time_unit(word) && !word.eq_ignore_ascii_case("s"))
            || words.iter().any(|word| word.eq_ignore_ascii_case("time"));
        if rate || timed {
            return ContentHint::Result;
        }
        // A column of the share of answers among the first k, such as "Top-5", or of the statistic R2.
        let is_numbered = header
            && matches!(words.as_slice(), [name] if name.eq_ignore_ascii_case("top") || *name == "R")
            && tokens.iter().any(|token| matches!(token.kind, TokenKind::Number(_)));
        if is_numbered {
            return ContentHint::Result;
        }
        let sorts: Vec<WordSense> = words.iter().filter_map(|word| words::sense_of(word)).collect();
        if sorts.contains(&WordSense::Metric) {
            return ContentHint::Result;
        }
        if !header && words.len() > 3 {
            return ContentHint::Nothing;
        }
        let named = words.iter().any(|word| {
            matches!(
                word.to_lowercase().as_str(),
                "params"
                    | "param"
                    | "range"
                    | "value"
                    | "values"
                    | "default"
                    | "symbol"
                    | "year"
                    | "type"
                    | "search"
                    | "flops"
            )
        });
        let setting = sorts.contains(&WordSense::Setting) || named;
        if !setting && sorts.contains(&WordSense::Hint) {
            return ContentHint::Result;
        }
        let counted = words.iter().any(|word| words::is_counted_name(word));
        // A single letter, such as n, d or K, names a setting.
        let letter = header
            && !words.is_empty()
            && words
                .iter()
                .all(|word| word.chars().count() == 1 && !matches!(*word, "p" | "r" | "R" | "F" | "t" | "s"));
        let number_sign = header && tokens.iter().any(|token| token.kind == TokenKind::Sign('#'));
        let lone_value = letter && tokens.iter().any(|token| token.kind == TokenKind::Sign('='));
        if (setting || counted || letter || number_sign) && !lone_value {
            ContentHint::Setting
        } else {
            ContentHint::Nothing
        }
    }

    /// Whether the table seems to contain results rather than settings.
    fn is_of_results(&self, columns: &[ContentHint], section: SectionKind) -> bool {
        if columns.contains(&ContentHint::Result) {
            return true;
        }
        let caption = self.table.caption.as_ref().map(|range| self.tokens(range)).unwrap_or_default();
        let mut metric = false;
        let mut setting = false;
        for token in caption.iter().filter(|token| token.kind == TokenKind::Word) {
            let word = self.str(token);
            metric |= words::sense_of(word) == Some(WordSense::Metric) || word.to_lowercase().starts_with("result");
            setting |= matches!(
                word.to_lowercase().as_str(),
                "settings"
                    | "hyperparameters"
                    | "hyper-parameters"
                    | "hyper"
                    | "parameters"
                    | "statistics"
                    | "notation"
                    | "configuration"
                    | "configurations"
                    | "characteristics"
                    | "symbols"
            );
        }
        if setting && !metric {
            return false;
        }
        if columns.iter().skip(1).any(|says| *says == ContentHint::Setting)
            && columns.iter().skip(1).all(|says| *says == ContentHint::Setting)
        {
            return false;
        }
        // A table whose header has a word such as "parameter" or "default", and whose caption mentions no metric and no
        // results, is a table of settings.
        let header_words = |wanted: &[&str]| {
            self.table
                .rows
                .iter()
                .take(self.table.header)
                .flatten()
                .flat_map(|cell| self.tokens(&cell.range))
                .any(|token| wanted.contains(&self.str(&token).to_lowercase().as_str()))
        };
        if header_words(&["parameter", "hyperparameter", "setting", "default", "symbol"]) && !metric {
            return false;
        }
        let measured = self.table.rows.iter().skip(self.table.header).flat_map(|row| row.iter().skip(1)).any(|cell| {
            self.tokens(&cell.range).iter().any(|token| match token.kind {
                TokenKind::Number(form) => form.decimals > 0,
                TokenKind::Sign(sign) => matches!(sign, '±' | '%'),
                TokenKind::Marker => true,
                _ => false,
            })
        });
        let labels = self.table.rows.iter().skip(self.table.header).any(|row| self.label(row) == ContentHint::Result);
        metric || measured || labels || section == SectionKind::Results
    }
}

/// Whether tokens have as many words as a sentence.
fn is_prose(tokens: &[TextToken]) -> bool {
    let words = tokens.iter().filter(|token| token.kind == TokenKind::Word && token.end - token.start > 2);
    words.count() >= PROSE_WORDS
}

/// Whether a cell has a value with its spread: `2.61 (0.03)`, `2.61 ± 0.03`.
fn has_spread(tokens: &[TextToken]) -> bool {
    let values = tokens.iter().filter(|token| matches!(token.kind, TokenKind::Number(_) | TokenKind::Marker)).count();
    let signs = |wanted: char| tokens.iter().any(|token| token.kind == TokenKind::Sign(wanted));
    values == 2 && (signs('±') || (signs('(') && signs(')')))
}
