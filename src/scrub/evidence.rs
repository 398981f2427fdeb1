//! Weighs the words around a number as evidence for a result or for a setting.
//!
//! Numbers joined by commas, "and", "to", ±, brackets and units form a group, for which one decision is made. Before
//! and after a group, only the nearest word of each kind (`WordSense`) counts. The weight of a word falls with its
//! distance from the group, and falls again if a clause ends in between. The form of the numbers, the section of the
//! text and the preceding group contribute, too. A total above zero means a result.

use super::ScrubRule;
use super::prose::Prose;
use super::token::TokenKind;
use super::words::{self, SectionKind, WordSense};

/// Context of a piece of text, which is the same for all numbers in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct StretchContext {
    /// Section of the text.
    pub(super) section: SectionKind,
}

/// The decision on a number: whether to remove it, the rule, and the word that decided.
pub(super) type Decision = Option<(bool, ScrubRule, Option<String>)>;

/// Maximum distance, in tokens, from a word to a later number that the word is evidence for.
const FAR: usize = 30;

/// Outside of sections of results, a number counts as a result only if a single word or sign near it has at least this
/// weight.
const LEAST_SPOKEN: f64 = 0.35;

/// Decides on all numbers on which no rule has decided.
pub(super) fn weigh(prose: &Prose<'_>, setting: StretchContext, decisions: &mut [Decision]) {
    let mut before: Option<(usize, f64)> = None;
    let mut at = 0;
    while at < prose.tokens.len() {
        if !is_open(prose, decisions, at) {
            if ends_sentence(prose, at) {
                before = None;
            }
            at += 1;
            continue;
        }
        let group = group(prose, decisions, at);
        let mut scale = Scale {
            prose,
            group: &group,
            total: 0.0,
            loudest: 0.0,
            spoken: 0.0,
            measured: false,
            claimed: false,
            cue: None,
        };
        scale.weigh_all(setting, decisions, before.map(|(_, score)| score));
        let (total, cue) = (scale.total, scale.cue);
        let remove = total > 0.0;
        let rule = if remove { ScrubRule::ResultWords } else { ScrubRule::SettingWords };
        for &member in &group {
            if prose.form(member).is_some() {
                decisions[member] = Some((remove, rule, cue.clone()));
            }
        }
        before = Some((at, total));
        at = group.last().map_or(at, |last| *last) + 1;
    }
}

/// Whether a token is a number on which no rule has decided. Also true for the marker that replaces a removed number,
/// so that a group of numbers does not change when one of its numbers is removed.
fn is_open(prose: &Prose<'_>, decisions: &[Decision], at: usize) -> bool {
    match prose.tokens[at].kind {
        TokenKind::Number(_) => decisions[at].is_none(),
        TokenKind::Marker => true,
        _ => false,
    }
}

/// Returns the indices of the tokens in the group of numbers that begins at `first`. The markers that replace removed
/// numbers belong to the group, too.
fn group(prose: &Prose<'_>, decisions: &[Decision], first: usize) -> Vec<usize> {
    let mut members = vec![first];
    let mut last = first;
    'next: loop {
        for behind in last + 1..prose.tokens.len().min(last + 6) {
            if is_open(prose, decisions, behind) && behind > last + 1 {
                members.push(behind);
                last = behind;
                continue 'next;
            }
            let joins = match prose.tokens[behind].kind {
                TokenKind::Sign(sign) => ",±–-/%()[]→×_".contains(sign),
                TokenKind::Word => matches!(
                    prose.str(behind),
                    "and" | "or" | "to" | "vs" | "versus" | "against" | "percent" | "ms" | "s" | "up" | "x"
                ),
                TokenKind::Number(_) => {
                    decisions[behind].as_ref().is_some_and(|(_, rule, _)| *rule == ScrubRule::Power)
                }
                _ => false,
            };
            if !joins {
                break;
            }
        }
        return members;
    }
}

/// Whether a sentence ends with this token.
fn ends_sentence(prose: &Prose<'_>, at: usize) -> bool {
    match prose.tokens[at].kind {
        TokenKind::Break | TokenKind::Sign('!' | '?') => true,
        TokenKind::Sign('.') => {
            let Some(next) = prose.tokens.get(at + 1) else { return true };
            if !next.spaced {
                return false;
            }
            let word = at.checked_sub(1).map_or("", |before| prose.word(before));
            let abbreviated = words::is_reference(word) && word.len() <= 4
                || matches!(word, "al" | "e" | "g" | "i" | "vs" | "cf" | "resp" | "approx" | "etc" | "ca");
            !abbreviated || (word == "al" && next.kind == TokenKind::Break)
        }
        _ => false,
    }
}

/// Whether a clause ends with this token.
fn ends_clause(prose: &Prose<'_>, at: usize) -> bool {
    match prose.tokens[at].kind {
        TokenKind::Sign(',' | ';' | ':' | '(' | ')') => true,
        TokenKind::Word => matches!(
            prose.str(at),
            "while"
                | "whereas"
                | "but"
                | "although"
                | "where"
                | "though"
                | "because"
                | "so"
                | "which"
                | "when"
                | "whose"
        ),
        _ => false,
    }
}

struct Scale<'a> {
    prose: &'a Prose<'a>,
    group: &'a [usize],
    total: f64,
    loudest: f64,
    /// The largest weight of any single word or sign for a result.
    spoken: f64,
    /// Whether the name of a metric precedes the group of numbers in the same clause.
    measured: bool,
    /// Whether a [`Claim`](WordSense::Claim), such as "improves", precedes the group of numbers in the same clause.
    claimed: bool,
    cue: Option<String>,
}

impl Scale<'_> {
    fn add(&mut self, weight: f64, cue: &str) {
        self.total += weight;
        self.spoken = self.spoken.max(weight);
        if !cue.is_empty() && weight.abs() > self.loudest {
            self.loudest = weight.abs();
            self.cue = Some(cue.to_owned());
        }
    }

    fn weigh_all(&mut self, setting: StretchContext, decisions: &[Decision], before: Option<f64>) {
        let (first, last) = (self.group[0], self.group[self.group.len() - 1]);
        self.form();
        self.total += match setting.section {
            SectionKind::Results => 0.6,
            SectionKind::Method => -1.0,
            SectionKind::Other | SectionKind::Bibliography => -0.2,
        };
        if let Some(before) = before {
            self.total += 0.7 * before.clamp(-1.0, 1.0);
            self.spoken = self.spoken.max(0.7 * before.min(1.0));
        }
        self.words_before(first);
        self.words_behind(last, decisions);
        self.neighbours(first, last, setting.section, decisions);
        // In sections of results, the form of a number can be enough to make it a result. In other sections, a word or
        // sign must also indicate a result.
        if setting.section != SectionKind::Results && self.spoken < LEAST_SPOKEN {
            self.total = self.total.min(0.0);
        }
    }

    /// Changes the total by the form of the numbers: decimals and signs speak for a result, whole numbers against it.
    fn form(&mut self) {
        let forms: Vec<_> = self.group.iter().filter_map(|&member| self.prose.form(member)).collect();
        let decimals = forms.iter().map(|form| form.decimals).max().unwrap_or(0);
        let exponent = forms.iter().any(|form| form.grouped && form.digits <= 2);
        self.total += match decimals {
            0 if forms.iter().all(|form| form.digits <= 1 && !form.signed) => -2.8,
            0 => -1.0,
            1 => 0.4,
            2 => 0.7,
            _ => 0.9,
        };
        if exponent {
            self.total -= 1.8;
        }
        if forms.iter().any(|form| form.signed) {
            self.total += 0.5;
        }
    }

    fn words_before(&mut self, first: usize) {
        let mut factor = 1.0;
        let mut distance = 0.0;
        let mut heard: Vec<WordSense> = Vec::new();
        let mut passed = 1.0;
        let mut next = first;
        for _ in 0..FAR {
            let Some(at) = next.checked_sub(1) else { break };
            next = at;
            if ends_sentence(self.prose, at) {
                break;
            }
            // Skip text in brackets, because its words do not describe this group of numbers.
            if self.prose.sign(at) == Some(')')
                && let Some(open) = (at.saturating_sub(FAR)..at).rev().find(|&open| self.prose.sign(open) == Some('('))
                && (open..at).all(|inner| !ends_sentence(self.prose, inner))
            {
                next = open;
                continue;
            }
            let whole_clause = factor > 0.99;
            if ends_clause(self.prose, at) {
                factor = f64::max(factor * 0.55, 0.2);
            }
            if self.prose.is_number(at) {
                factor = f64::max(factor * 0.8, 0.2);
                // Words for a setting or an action before another number describe that number rather than this group of
                // numbers. So they count less, and least if the other number directly precedes the group.
                passed = if distance < 1.0 { 0.1 } else { f64::min(passed, 0.6) };
            }
            let word = self.prose.word(at).to_owned();
            if word.is_empty() {
                continue;
            }
            // "When the buffer shrinks to 1%" names a setting and not a result.
            if whole_clause
                && heard.contains(&WordSense::Setting)
                && matches!(word.as_str(), "When" | "when" | "If" | "if" | "As")
            {
                self.add(-2.5, &word);
            }
            self.measured |= whole_clause && words::sense_of(&word) == Some(WordSense::Metric);
            // "We raise it to 0.001" describes an action, not a finding.
            let done = at > 0
                && matches!(self.prose.word(at - 1), "we" | "We")
                && matches!(word.as_str(), "raise" | "lower" | "cut" | "add");
            self.claimed |= whole_clause && !done && words::sense_of(&word) == Some(WordSense::Claim);
            // "set to" is a verb, but "the test set" is not.
            let noun = word == "set" && !matches!(self.prose.word(at + 1), "to" | "at" | "as" | "by");
            // In "learning rate", the preceding word makes `rate` a setting.
            let described = at > 0 && words::sense_of(self.prose.word(at - 1)) == Some(WordSense::Setting);
            let sort = words::sense_of(&word).filter(|_| !noun);
            let sort = sort.map(|sort| if sort == WordSense::Hint && described { WordSense::Setting } else { sort });
            let sort = sort.map(|sort| if sort == WordSense::Claim && done { WordSense::Doing } else { sort });
            if let Some(sort) = sort
                && !heard.contains(&sort)
            {
                heard.push(sort);
                let close = if distance < 1.0 { 1.5 } else { 1.0 };
                let without = (at.saturating_sub(3)..at).any(|at| {
                    matches!(self.prose.word(at).to_lowercase().as_str(), "without" | "removing" | "omitting" | "no")
                });
                let weight = match sort {
                    WordSense::Metric => 2.2 * close,
                    WordSense::Claim => 1.5 * close,
                    WordSense::Hint => 1.0,
                    WordSense::Setting if without => 0.5,
                    WordSense::Setting => -2.6 * close * passed,
                    WordSense::Doing => -1.4 * close * passed,
                    WordSense::Counted => {
                        if at + 1 == first {
                            -1.5
                        } else {
                            -0.2
                        }
                    }
                };
                self.add(factor * weight / (1.0 + distance / 5.0), &word);
            }
            if !matches!(
                word.as_str(),
                "of" | "is"
                    | "are"
                    | "was"
                    | "were"
                    | "be"
                    | "found"
                    | "to"
                    | "at"
                    | "the"
                    | "a"
                    | "by"
                    | "only"
                    | "an"
            ) {
                distance += 1.0;
            }
        }
    }

    fn words_behind(&mut self, last: usize, decisions: &[Decision]) {
        let whole = self.group.iter().filter_map(|&member| self.prose.form(member)).all(|form| form.is_whole());
        let mut factor = 1.0;
        let mut distance = 0.0;
        let mut heard: Vec<WordSense> = Vec::new();
        for (at, decision) in decisions.iter().enumerate().take(last + 14).skip(last + 1) {
            if ends_sentence(self.prose, at) {
                break;
            }
            if ends_clause(self.prose, at) {
                factor *= 0.4;
            }
            if self.prose.is_number(at) && decision.is_none() {
                factor *= 0.5;
            }
            let word = self.prose.word(at).to_owned();
            if word.is_empty() {
                continue;
            }
            let sort = if distance < 3.0 && words::is_counted(&word) {
                Some(WordSense::Counted)
            } else {
                words::sense_of(&word)
            };
            if let Some(sort) = sort
                && !heard.contains(&sort)
            {
                heard.push(sort);
                let weight = match sort {
                    // In "0.1, accuracy is 93.4", the metric belongs to the next number.
                    WordSense::Metric if factor < 1.0 && (at + 1..at + 4).any(|at| self.prose.is_number(at)) => 0.5,
                    WordSense::Metric if distance < 3.0 => 2.0,
                    WordSense::Metric => 0.6,
                    WordSense::Hint => 0.6 / (1.0 + distance / 5.0),
                    WordSense::Counted if whole => -3.0 / (1.0 + 0.6 * distance),
                    WordSense::Counted => -1.0 / (1.0 + distance),
                    WordSense::Setting if distance < 1.0 => -2.0,
                    WordSense::Setting => -0.6,
                    WordSense::Claim => 1.0 / (1.0 + distance / 5.0),
                    WordSense::Doing => -1.0 / (1.0 + distance / 5.0),
                };
                self.add(factor * weight, &word);
            }
            distance += 1.0;
        }
    }

    /// Changes the total by signs in the group of numbers and by signs and fixed phrases next to it.
    fn neighbours(&mut self, first: usize, last: usize, section: SectionKind, decisions: &[Decision]) {
        let prose = self.prose;
        let back = |by: usize| first.checked_sub(by).unwrap_or(usize::MAX);
        let inside = |sign: char| (first..=last + 1).any(|at| prose.sign(at) == Some(sign));
        if inside('%') || prose.word(last + 1) == "percent" {
            // `form` lowers the total more for a single digit than for a longer whole number. The larger weight here
            // makes up for the difference, so that 9% and 12% are judged alike.
            self.add(if self.is_digit() && !self.is_decimal() { 3.0 } else { 1.2 }, "%");
        }
        if prose.sign(back(1)) == Some('(') && self.is_decimal() {
            self.total += 0.6;
        }
        if inside('±') {
            self.add(3.0, "±");
        }
        let points = if prose.word(last + 1) == "percentage" || prose.word(last + 1) == "pp" {
            3.0
        } else if matches!(prose.word(last + 1), "points" | "point") {
            if self.is_decimal() { 1.8 } else { 0.8 }
        } else {
            0.0
        };
        if points > 0.0 {
            self.add(points, "points");
        }
        if words::is_time_unit(prose.word(last + 1)) {
            let lasting = matches!(prose.word(back(1)), "for" | "after" | "every" | "within");
            // A compound, such as "10 ms frames" or "a 5 s window".
            let compound = words::is_counted(prose.word(last + 2))
                || matches!(words::sense_of(prose.word(last + 2)), Some(WordSense::Setting));
            let weight = if compound {
                -2.0
            } else if lasting {
                0.3
            } else {
                2.4
            };
            self.add(weight, prose.word(last + 1));
        }
        let before = prose.word(back(1)).to_lowercase();
        if (back(4).min(first)..first).any(|at| matches!(prose.word(at), "CI" | "interval")) && self.group.len() > 1 {
            self.add(2.0, "CI");
        }
        // In "measured at 0.5", the number is a setting; in "stays at 0.5", it is a result.
        let placed =
            before == "at" && !matches!(words::sense_of(prose.word(back(2))), Some(WordSense::Claim | WordSense::Hint));
        let named = matches!(words::sense_of(prose.word(last + 1)), Some(WordSense::Metric));
        if placed && !named {
            self.add(-1.3, "at");
        }
        let only = usize::from(matches!(before.as_str(), "only" | "just"));
        if matches!(prose.word(back(1 + only)), "With" | "with" | "Using" | "using") {
            self.add(-1.8, prose.word(back(1 + only)));
        }
        if before == "top" {
            self.add(-3.0, "top");
        }
        let compared = matches!(before.as_str(), "below" | "above" | "over" | "under" | "than" | "exceeds");
        if compared && section == SectionKind::Method {
            self.add(-2.2, &before);
        }
        if matches!(before.as_str(), "least" | "most") && prose.word(back(2)) == "at" {
            self.add(-1.2, "at least");
        }
        if (last + 1..last + 4).any(|at| prose.word(at) == "default") {
            self.add(-3.0, "default");
        }
        if prose.word(last + 1) == "times" {
            self.add(-2.0, "times");
        }
        if words::is_ordinal(prose.word(back(1))) && !self.is_decimal() {
            self.add(-3.0, prose.word(back(1)));
        }
        // A share of something, such as "exact in 71% of the trials".
        if section == SectionKind::Results && before == "in" && prose.word(last + 2) == "of" && inside('%') {
            self.add(2.5, "% of");
        }
        if before == "from" && !self.claimed {
            self.add(-1.8, "from");
        }
        if before == "between" {
            self.add(-1.5, "between");
        }
        if matches!(before.as_str(), "is" | "are" | "was" | "were")
            && (self.is_decimal() || (self.measured && !self.is_digit()))
        {
            self.total += 0.5;
        }
        if matches!(prose.word(last + 1), "M" | "k" | "K" | "B" | "million" | "billion" | "thousand") {
            self.add(-2.0, prose.word(last + 1));
        }
        if prose.sign(back(1)).is_some_and(|sign| "=<>≈".contains(sign)) {
            let name = [back(2), back(3)].into_iter().map(|at| prose.str(at)).find(|name| words::is_statistic(name));
            let squared = prose.sign(back(2)) == Some('²');
            if let Some(name) = name.filter(|_| self.is_decimal()) {
                self.add(2.5, name);
            } else if squared {
                self.add(2.5, "²");
            }
        }
        // A part of a whole, such as "94 of the 100 runs".
        let whole = (last + 1..last + 5).find(|&at| prose.is_number(at));
        let of = (last + 1..last + 3).any(|at| prose.word(at) == "of");
        if of && whole.is_some_and(|at| decisions[at].is_none()) {
            self.add(2.5, "of");
        }
        // A part after its whole, such as "Of the 1,852 people, 211".
        let sentence = (0..first).rev().take(FAR).find(|&at| ends_sentence(prose, at)).map_or(0, |at| at + 1);
        if prose.word(sentence) == "Of" && (sentence + 1..sentence + 4).any(|at| prose.is_number(at) && at < first) {
            self.add(3.0, "Of");
        }
        // The size of a whole after its part, such as 100 in "94 of the 100 runs".
        if prose.word(back(1)) == "of" || (prose.word(back(2)) == "of" && prose.word(back(1)) == "the") {
            let part = (back(6).min(first)..first).any(|at| prose.is_number(at));
            if part && !self.is_decimal() {
                self.add(-2.5, "of");
            }
        }
    }

    /// Whether every number of the group has at most one digit, not counting leading zeros.
    fn is_digit(&self) -> bool {
        self.group.iter().filter_map(|&member| self.prose.form(member)).all(|form| form.digits <= 1)
    }

    fn is_decimal(&self) -> bool {
        self.group.iter().filter_map(|&member| self.prose.form(member)).any(|form| form.decimals > 0)
    }
}
