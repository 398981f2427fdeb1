//! Decides which numbers in the sentences of a paper are results. Fixed rules decide clear cases. In the other cases,
//! the words near the number decide.

use std::ops::Range;

use super::evidence::{self, StretchContext};
use super::prose::Prose;
use super::token::{TokenKind, split};
use super::words::SectionKind;
use super::{MarkerContext, MarkupFormat, NumberDecision, ScrubRule, keep_all};

/// Decides for each number in a range of prose whether it is a result and must be removed, and adds the decisions to
/// `judged`.
pub(super) fn judge(
    text: &str,
    range: Range<usize>,
    format: MarkupFormat,
    section: SectionKind,
    heading: bool,
    judged: &mut Vec<NumberDecision>,
) {
    let tokens = split(text, range.start, range.end, format);
    let prose = Prose { text, tokens: &tokens, heading };
    let mut decisions: Vec<Option<(bool, ScrubRule, Option<String>)>> = vec![None; tokens.len()];
    for (at, decision) in decisions.iter_mut().enumerate() {
        if let TokenKind::Number(form) = tokens[at].kind {
            *decision = prose.rule(at, form).map(|(remove, rule)| (remove, rule, None));
        }
    }
    evidence::weigh(&prose, StretchContext { section }, &mut decisions);
    for (token, decision) in tokens.iter().zip(decisions) {
        match (token.kind, decision) {
            (TokenKind::Number(_), Some((remove, rule, cue))) => {
                let range = token.start..token.end;
                judged.push(NumberDecision { range, remove, rule, cue, place: MarkerContext::Prose });
            }
            // The number in the name of a metric.
            (TokenKind::Word, _) => judged.extend(keep_all(text, token.start..token.end, ScrubRule::Name)),
            (TokenKind::Opaque, _) => judged.extend(keep_all(text, token.start..token.end, ScrubRule::Markup)),
            _ => {}
        }
    }
}
