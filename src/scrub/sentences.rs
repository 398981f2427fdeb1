//! Judges numbers in sentences: fixed rules settle unambiguous ones, nearby words decide on the others.

use std::ops::Range;

use super::evidence::{self, Setting};
use super::prose::Prose;
use super::token::{Kind, split};
use super::words::Section;
use super::{Format, Judged, Place, Rule, keep_all};

/// Judges the numbers of a stretch of prose.
pub(super) fn judge(
    text: &str,
    range: Range<usize>,
    format: Format,
    section: Section,
    heading: bool,
    judged: &mut Vec<Judged>,
) {
    let tokens = split(text, range.start, range.end, format);
    let prose = Prose { text, tokens: &tokens, heading };
    let mut decisions: Vec<Option<(bool, Rule, Option<String>)>> = vec![None; tokens.len()];
    for (at, decision) in decisions.iter_mut().enumerate() {
        if let Kind::Number(form) = tokens[at].kind {
            *decision = prose.rule(at, form).map(|(remove, rule)| (remove, rule, None));
        }
    }
    evidence::weigh(&prose, Setting { section }, &mut decisions);
    for (token, decision) in tokens.iter().zip(decisions) {
        match (token.kind, decision) {
            (Kind::Number(_), Some((remove, rule, cue))) => {
                let range = token.start..token.end;
                judged.push(Judged { range, remove, rule, cue, place: Place::Prose });
            }
            (Kind::Opaque, _) => judged.extend(keep_all(text, token.start..token.end, Rule::Markup)),
            _ => {}
        }
    }
}
