//! Finds roundings of gold values among the numbers that all other scrubbing rules would keep in a paper's text.

use super::{NumberDecision, ScrubRule};
use crate::suite::{CHANCE_IN_PROSE, roundings, written_numbers};

/// Minimum number of significant digits of a number with a decimal point that can be a rounding of gold. A whole number
/// needs one digit more.
const LEAST_DIGITS: usize = 3;

/// A number with at least this many digits agrees with gold by chance so rarely (about once in ten thousand) that it
/// does not matter how many numbers the text has.
const SURE_DIGITS: usize = 5;

/// Marks roundings of gold values for removal if all other scrubbing rules would keep them. Numbers of the
/// bibliography, the layout, markup, versions and dates are not considered. Roundings with five or more digits are
/// always marked. Shorter ones are not marked if as many matches could arise by chance, because the text has many other
/// numbers, as in a table of settings ([`roundings`]).
pub(super) fn judge(text: &str, judged: &mut [NumberDecision], gold: &[f64]) {
    let values: Vec<f64> = gold.iter().copied().filter(|value| value.is_finite()).collect();
    let mut plain = Vec::new();
    for (place, number) in judged.iter().enumerate().filter(|(_, number)| !number.remove) {
        if !matches!(
            number.rule,
            ScrubRule::Bibliography | ScrubRule::Layout | ScrubRule::Markup | ScrubRule::Version | ScrubRule::Date
        ) {
            let mut token = text[number.range.clone()].replace("{,}", "").replace("\\,", "").replace('_', "");
            // Read a percentage also as a share, as `autoexperiment check` does.
            let behind = text[number.range.end..].trim_start_matches(['\\', ',', ' ']);
            if behind.starts_with('%') || behind.starts_with("percent") {
                token.push('%');
            }
            plain.push((place, token));
        }
    }
    let mut found = Vec::new();
    for (place, token) in &plain {
        for mut written in written_numbers(token, LEAST_DIGITS) {
            // Each token is read as a separate text and needs no line number, so `line` is used for the token's index.
            written.line = *place;
            found.push(written);
        }
    }
    let surprising = roundings(&found, &values, CHANCE_IN_PROSE).into_iter().map(|(written, _)| written.line);
    let sure =
        found.iter().filter(|it| it.written.digits >= SURE_DIGITS && values.iter().any(|&value| it.written.is(value)));
    let places: Vec<usize> = surprising.chain(sure.map(|written| written.line)).collect();
    for place in places {
        judged[place].remove = true;
        judged[place].rule = ScrubRule::Gold;
        judged[place].cue = None;
    }
}
