//! Removes the results from a text: judges all remaining numbers repeatedly, until none has to be removed any more, and
//! replaces the removed numbers by markers.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CELL_MARKER, LATEX_CELL_MARKER, LATEX_MARKER, MARKER, MarkerContext, MarkupFormat, NumberDecision, ScrubOptions,
    ScrubRule, judge,
};

/// A text from which the results have been removed, and the decisions on its numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Scrubbed {
    /// The text, with markers in place of removed numbers.
    pub text: String,
    /// Every number of the original text, in order.
    pub numbers: Vec<SeenNumber>,
}

/// A number that was found in the original text, and the decision on this number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenNumber {
    /// Line in which the number begins, from 1.
    pub line: usize,
    /// Column at which the number begins, from 1, in characters.
    pub column: usize,
    /// The number as written.
    pub text: String,
    /// Whether the number was removed.
    pub removed: bool,
    /// The rule by which the number was kept or removed.
    pub rule: ScrubRule,
    /// The nearby word, sign or name that counted most. Present only with the rules `result-words` and `setting-words`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cue: Option<String>,
}

impl Scrubbed {
    /// Number of removed numbers.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.numbers.iter().filter(|number| number.removed).count()
    }
}

/// Removes the results from a text.
#[must_use]
pub fn scrub(text: &str, options: &ScrubOptions<'_>) -> Scrubbed {
    let mut removed: Vec<(Range<usize>, NumberDecision)> = Vec::new();
    let mut current = text.to_owned();
    loop {
        let judged = judge(&current, options);
        // Each pass removes a number or ends the loop, so there are at most as many passes as numbers.
        if !judged.iter().any(|number| number.remove) {
            let kept = judged.into_iter().map(|number| (original(&removed, &number.range), number));
            let mut all: Vec<_> = removed.iter().cloned().chain(kept).collect();
            all.sort_by_key(|(range, _)| range.start);
            return Scrubbed { numbers: located_numbers(text, &all), text: current };
        }
        let found = judged.into_iter().filter(|number| number.remove);
        let found: Vec<_> = found.map(|number| (original(&removed, &number.range), number)).collect();
        removed.extend(found);
        removed.sort_by_key(|(range, _)| range.start);
        current = rewrite(text, &mut removed, options.format);
    }
}

/// Replaces the numbers in `removed` by markers in the original text. Stores in `removed` where each marker is in the
/// new text.
fn rewrite(text: &str, removed: &mut [(Range<usize>, NumberDecision)], format: MarkupFormat) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, number) in removed {
        out.push_str(&text[copied..range.start]);
        let start = out.len();
        out.push_str(&marker(&text[range.clone()], number.place, format));
        number.range = start..out.len();
        copied = range.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// Returns the marker for a number. In columns of fixed width it is padded to the number's width.
fn marker(number: &str, place: MarkerContext, format: MarkupFormat) -> String {
    match (place, format) {
        (MarkerContext::Prose, MarkupFormat::Latex) => LATEX_MARKER.to_owned(),
        (MarkerContext::Prose, _) => MARKER.to_owned(),
        (MarkerContext::Cell { .. }, MarkupFormat::Latex) => LATEX_CELL_MARKER.to_owned(),
        (MarkerContext::Cell { fixed_width: true }, _) => {
            format!("{CELL_MARKER:<width$}", width = number.chars().count())
        }
        (MarkerContext::Cell { fixed_width: false }, _) => CELL_MARKER.to_owned(),
    }
}

/// Converts a range of the text with markers to a range of the original text. `removed` contains the range of each
/// removed number in the original text, and its marker.
fn original(removed: &[(Range<usize>, NumberDecision)], range: &Range<usize>) -> Range<usize> {
    // `range` never overlaps a marker, and `removed` is sorted by position, so a binary search finds the last marker
    // before `range`.
    let before = removed.partition_point(|(_, marker)| marker.range.end <= range.start);
    let start = match removed[..before].last() {
        Some((original, marker)) => original.end + (range.start - marker.range.end),
        None => range.start,
    };
    start..start + range.len()
}

/// Computes line and column of each number; the numbers are in the text's order.
fn located_numbers(text: &str, numbers: &[(Range<usize>, NumberDecision)]) -> Vec<SeenNumber> {
    let mut line = 1;
    let mut line_start = 0;
    let mut at = 0;
    numbers
        .iter()
        .map(|(range, number)| {
            for (place, _) in text[at..range.start].match_indices('\n') {
                line += 1;
                line_start = at + place + 1;
            }
            at = range.start;
            SeenNumber {
                line,
                column: text[line_start..range.start].chars().count() + 1,
                text: text[range.clone()].to_owned(),
                removed: number.remove,
                rule: number.rule,
                cue: number.cue.clone(),
            }
        })
        .collect()
}
