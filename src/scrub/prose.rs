//! A passage of prose split into tokens, and fixed rules that keep or remove numbers. The rules decide only about
//! numbers that can be judged without weighing the words near them.

use super::ScrubRule;
use super::number::NumberForm;
use super::token::{TextToken, TokenKind};
use super::words::{self, WordSense};

/// A passage of prose split into tokens.
pub(super) struct Prose<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [TextToken],
    pub(super) heading: bool,
}

impl Prose<'_> {
    pub(super) fn str(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    /// Returns the word at this token; empty if the token isn't a word.
    pub(super) fn word(&self, at: usize) -> &str {
        if matches!(self.tokens.get(at), Some(TextToken { kind: TokenKind::Word, .. })) { self.str(at) } else { "" }
    }

    pub(super) fn sign(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)?.kind {
            TokenKind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    pub(super) fn form(&self, at: usize) -> Option<NumberForm> {
        match self.tokens.get(at)?.kind {
            TokenKind::Number(form) => Some(form),
            _ => None,
        }
    }

    pub(super) fn is_number(&self, at: usize) -> bool {
        matches!(self.tokens.get(at), Some(TextToken { kind: TokenKind::Number(_) | TokenKind::Marker, .. }))
    }

    /// Whether this token directly follows the previous one.
    pub(super) fn glued(&self, at: usize) -> bool {
        at > 0 && self.tokens.get(at).is_some_and(|token| !token.spaced && self.tokens[at - 1].end == token.start)
    }

    /// Returns the rule that keeps this number in the text whatever its context is, even in a table cell; `None` if no
    /// such rule applies.
    pub(super) fn fixed(&self, at: usize, form: NumberForm) -> Option<ScrubRule> {
        if self.is_power(at) {
            Some(ScrubRule::Power)
        } else if form.version || self.is_version(at) {
            Some(ScrubRule::Version)
        } else if self.is_name(at) {
            Some(ScrubRule::Name)
        } else if self.is_citation(at, form) && self.tokens.iter().any(|token| token.kind == TokenKind::Word) {
            Some(ScrubRule::Citation)
        } else if self.is_size(at, form) {
            Some(ScrubRule::Size)
        } else {
            None
        }
    }

    /// Returns the rule that applies to this number, if any, and whether it removes the number.
    pub(super) fn rule(&self, at: usize, form: NumberForm) -> Option<(bool, ScrubRule)> {
        let keep = |rule| Some((false, rule));
        let remove = |rule| Some((true, rule));
        if self.is_power(at) {
            return keep(ScrubRule::Power);
        }
        if self.is_dated(at, form) {
            return keep(ScrubRule::Date);
        }
        if form.version || self.is_version(at) {
            return keep(ScrubRule::Version);
        }
        if self.is_name(at) {
            return keep(ScrubRule::Name);
        }
        if self.is_numbering(at, form) {
            return keep(ScrubRule::Numbering);
        }
        if self.is_reference(at) {
            return keep(ScrubRule::Reference);
        }
        if self.is_citation(at, form) {
            return keep(ScrubRule::Citation);
        }
        if self.is_plus_minus(at) {
            return None;
        }
        if let Some(decided) = self.ratio(at, form) {
            return Some(decided);
        }
        if self.is_size(at, form) {
            return keep(ScrubRule::Size);
        }
        if self.is_level(at) {
            return keep(ScrubRule::Level);
        }
        if self.is_in_braces(at) {
            return keep(ScrubRule::Range);
        }
        if self.is_statistic(at) {
            return remove(ScrubRule::Statistic);
        }
        self.in_symbols(at)
    }

    /// Whether the number is part of a power or an index: `10^6`, `10⁻³`, `x^2`, `x_1`.
    pub(super) fn is_power(&self, at: usize) -> bool {
        let before = self.sign(back(at, 1));
        let bracketed = before == Some('(') && self.sign(back(at, 2)) == Some('^');
        let index = matches!(before, Some('^' | '_')) && !self.tokens[at].spaced;
        let base = self.sign(at + 1).is_some_and(|sign| sign == '^' || "⁻⁰¹²³⁴⁵⁶⁷⁸⁹".contains(sign))
            && !self.tokens[at + 1].spaced;
        // In the subscript `$_{82.1 \pm 0.3}$`, the number before the ± is a result, not an index.
        let spread = index && before == Some('_') && self.sign(at + 1) == Some('±');
        (index || bracketed || base) && !spread
    }

    /// Whether the number is part of a name: `P100`, `ResNet-50`, `top-5`, `i7-9750H`.
    fn is_name(&self, at: usize) -> bool {
        if !self.glued(at) {
            return false;
        }
        let before = at - 1;
        match self.tokens[before].kind {
            // A word and the number directly after it form a name, such as `F1`, unless the word is a LaTeX command in
            // a formula.
            TokenKind::Word => {
                !self.tokens[at].formula.is_some_and(|_| self.text[..self.tokens[before].start].ends_with('\\'))
            }
            TokenKind::Sign('-') => {
                if !self.glued(before) {
                    return false;
                }
                let named =
                    |at: usize| matches!(self.tokens[at].kind, TokenKind::Word) && !self.glued_number_before(at);
                match self.tokens[before - 1].kind {
                    TokenKind::Word => named(before - 1),
                    // A number in a name may follow an earlier number of that name, as in i7-9750H.
                    TokenKind::Number(_) => self.glued(before - 1) && before > 1 && named(before - 2),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Whether a word is the unit of the preceding number, as in `5ms-10ms`.
    fn glued_number_before(&self, word: usize) -> bool {
        self.glued(word) && matches!(self.tokens[word - 1].kind, TokenKind::Number(_))
    }

    /// Whether the number numbers a heading, an item or an equation: `2. `, `(3)`.
    fn is_numbering(&self, at: usize, form: NumberForm) -> bool {
        let first = (0..at).all(|before| {
            matches!(self.tokens[before].kind, TokenKind::Sign('#' | '>' | '-' | ':') | TokenKind::Break)
        });
        if first && self.heading {
            return true;
        }
        let ended = matches!(self.sign(at + 1), Some('.' | ')')) && self.glued(at + 1);
        let follows = self.tokens.get(at + 2).is_some_and(|token| token.spaced);
        if first && form.is_whole() && ended && follows {
            return true;
        }
        let alone = self.sign(back(at, 1)) == Some('(') && self.sign(at + 1) == Some(')');
        let whole = form.is_whole() && !form.signed && form.digits <= 2;
        alone && whole && !self.is_number(back(at, 2))
    }

    /// Whether the number follows a reference word, such as "Section", "Figures 2 and" or "Eq. (".
    fn is_reference(&self, at: usize) -> bool {
        let mut before = at;
        for _ in 0..8 {
            let Some(previous) = before.checked_sub(1) else { return false };
            match self.tokens[previous].kind {
                TokenKind::Sign('(' | '.' | '–' | '-' | '§' | '~' | '[') | TokenKind::Number(_) => {}
                TokenKind::Sign(',') if before != at => {}
                TokenKind::Word if matches!(self.str(previous), "and" | "to" | "or" | "p") && previous > 0 => {}
                TokenKind::Word => {
                    let form = self.form(at).unwrap_or_default();
                    // A number directly after the reference word may have one or two decimals, as in "Table 2.15";
                    // other numbers must be whole. No number may have thousands separators or an exponent.
                    let most_decimals = if previous + 1 == at { 2 } else { 0 };
                    return words::is_reference(self.str(previous)) && form.decimals <= most_decimals && !form.grouped;
                }
                _ => return false,
            }
            if matches!(self.sign(previous), Some('§')) {
                return true;
            }
            before = previous;
        }
        false
    }

    /// Whether the number is part of a citation: `[12]`, `[3, 5–7]`, `[11, Theorem 1]`.
    fn is_citation(&self, at: usize, form: NumberForm) -> bool {
        if !form.is_whole() || form.signed || form.grouped || form.digits > 3 || self.tokens[at].formula.is_some() {
            return false;
        }
        let listed = |at: usize| match self.tokens[at].kind {
            TokenKind::Number(form) => form.is_whole(),
            TokenKind::Sign(',' | '–' | '-' | ';') => true,
            _ => false,
        };
        let Some(open) = (0..at).rev().take(20).find(|&before| !listed(before)) else { return false };
        if self.sign(open) != Some('[') || self.is_number(back(open, 1)) {
            return false;
        }
        let close = (at + 1..self.tokens.len()).take(20).find(|&behind| !listed(behind));
        close.is_some_and(|close| self.sign(close) == Some(']') || !self.word(close).is_empty())
    }

    /// Whether the number is a year, a day next to a month, or part of a numeric date or a time of day.
    fn is_dated(&self, at: usize, form: NumberForm) -> bool {
        if !form.is_whole() || form.signed || form.grouped {
            return false;
        }
        let before = back(at, 1);
        if words::is_month(self.word(before)) || (form.digits <= 2 && words::is_month(self.word(at + 1))) {
            return true;
        }
        if self.sign(before) == Some(',') && words::is_month(self.word(back(at, 3))) {
            return true;
        }
        let clock = |sign: usize, other: usize| {
            self.sign(sign) == Some(':') && self.glued(sign) && self.is_number(other) && form.digits <= 2
        };
        if clock(before, back(at, 2)) || clock(at + 1, at + 2) {
            return self.glued(at + 1) || self.glued(at);
        }
        if form.padded && self.sign(before) == Some('-') && self.glued(at) && self.is_number(back(at, 2)) {
            return true;
        }
        self.is_year(at, form)
    }

    fn is_year(&self, at: usize, form: NumberForm) -> bool {
        let year = form.digits == 4 && self.str(at).parse().is_ok_and(|year: u32| (1800..=2035).contains(&year));
        if !year || self.sign(at + 1) == Some('%') || self.is_plus_minus(at) || words::is_counted(self.word(at + 1)) {
            return false;
        }
        let before = back(at, 1);
        let placed = matches!(
            self.word(before).to_lowercase().as_str(),
            "in" | "since"
                | "until"
                | "of"
                | "by"
                | "from"
                | "before"
                | "after"
                | "to"
                | "and"
                | "al"
                | "year"
                | "early"
                | "late"
                | "the"
        );
        placed
            || matches!(self.sign(before), Some('(' | '[' | ',' | '.' | ';'))
            || matches!(self.sign(at + 1), Some(')' | ']'))
            || (self.sign(at + 1) == Some('-')
                && self.glued(at + 1)
                && self.form(at + 2).is_some_and(|next| next.padded))
    }

    fn is_version(&self, at: usize) -> bool {
        words::is_versioned(self.word(back(at, 1)))
            || (words::is_versioned(self.word(back(at, 2))) && self.sign(back(at, 1)) == Some('='))
    }

    /// Whether the number is on either side of a ±.
    pub(super) fn is_plus_minus(&self, at: usize) -> bool {
        let spread = |sign: usize, other: usize| self.sign(sign) == Some('±') && self.is_number(other);
        // A percent sign or a bracket may be between the number and the ±.
        let left =
            |other: usize| self.is_number(other) || (self.sign(other) == Some('%') && self.is_number(back(other, 1)));
        (self.sign(back(at, 1)) == Some('±') && (left(back(at, 2)) || self.sign(back(at, 2)) == Some('_')))
            || spread(at + 1, at + 2)
            || (self.sign(at + 1) == Some('%') && spread(at + 2, at + 3))
            || (matches!(self.sign(at + 1), Some('_' | '(')) && spread(at + 2, at + 3))
    }

    /// Decides whether to remove a ratio such as `2.5 times faster`, `3.1x fewer`, `120-fold` and `a 3.2-point gain`.
    fn ratio(&self, at: usize, form: NumberForm) -> Option<(bool, ScrubRule)> {
        let (sign, word) = (self.sign(at + 1), self.word(at + 1));
        if sign == Some('-') && self.glued(at + 1) && self.glued(at + 2) {
            let compound = self.word(at + 2).to_lowercase();
            return match compound.as_str() {
                "" => None,
                "fold" => {
                    let validation = ["cross", "cv", "validation", "split", "partition"];
                    let next = self.word(at + 3).to_lowercase();
                    let next = if next.is_empty() { self.word(at + 4).to_lowercase() } else { next };
                    Some(if validation.contains(&next.as_str()) {
                        (false, ScrubRule::Size)
                    } else {
                        (true, ScrubRule::Ratio)
                    })
                }
                "point" | "points" | "percent" => {
                    let claims = (at + 3..at + 6).any(|next| {
                        matches!(words::sense_of(self.word(next)), Some(WordSense::Claim | WordSense::Metric))
                    });
                    if claims { Some((true, ScrubRule::Ratio)) } else { None }
                }
                _ => Some((false, ScrubRule::Size)),
            };
        }
        // A range before the ratio, such as "15 to 20 times faster".
        let range = matches!(word, "to" | "or" | "and") || matches!(sign, Some('–' | '-'));
        let (last, form) = match self.form(at + 2).filter(|_| range) {
            Some(upper) => (at + 2, upper),
            None => (at, form),
        };
        self.times(last, form)
    }

    /// Decides whether to remove a number before `times faster` or `x fewer`, and a number such as `2.5x`.
    fn times(&self, at: usize, form: NumberForm) -> Option<(bool, ScrubRule)> {
        let (sign, word) = (self.sign(at + 1), self.word(at + 1));
        // A percentage with a comparative, such as "40% fewer".
        let word_behind = self.word(at + 2);
        if sign == Some('%') && words::is_comparative(word_behind) && !matches!(word_behind, "as" | "more") {
            return Some((true, ScrubRule::Ratio));
        }
        let times = matches!(word, "x" | "X" | "times") || sign == Some('×');
        if !times || self.is_number(at + 2) {
            return None;
        }
        if words::is_comparative(self.word(at + 2)) {
            return Some((true, ScrubRule::Ratio));
        }
        let glued = self.glued(at + 1) && word != "times";
        (glued && form.decimals > 0).then_some((true, ScrubRule::Ratio))
    }

    /// Whether the number is part of a size: `28 x 28`, `1.2 million`, `16 GB`, `10k`, `3D`.
    fn is_size(&self, at: usize, form: NumberForm) -> bool {
        let by = |at: usize| matches!(self.sign(at), Some('×')) || matches!(self.word(at), "x" | "by");
        if form.is_whole() {
            let factor =
                |at: usize| self.form(at).is_some_and(|form| form.is_whole() && !form.signed) && !self.is_power(at);
            let letter = |at: usize| self.tokens.get(at).is_some() && self.word(at).chars().count() == 1;
            let right = by(at + 1) && (factor(at + 2) || letter(at + 2));
            let left = by(back(at, 1)) && at > 1 && (factor(at - 2) || letter(at - 2));
            if right || left {
                return true;
            }
        }
        let (next, glued) = (self.word(at + 1), self.glued(at + 1));
        let short = matches!(next, "in" | "V" | "W" | "em" | "ex" | "pt");
        if words::is_hardware_unit(next) && (glued || !short) {
            return true;
        }
        glued
            && (next == "D"
                || matches!(next, "st" | "nd" | "rd" | "th")
                || (next.len() > 2 && !words::is_time_unit(next) && next != "times"))
    }

    /// Whether the number is a level: `95% confidence interval`, `the 90th percentile`, `2.5% and 97.5% quantiles`.
    fn is_level(&self, at: usize) -> bool {
        let mut behind = at + 1;
        for _ in 0..6 {
            match self.tokens.get(behind).map(|token| token.kind) {
                Some(TokenKind::Sign('%' | '-' | '–' | ',') | TokenKind::Number(_)) => behind += 1,
                Some(TokenKind::Word) => match self.str(behind).to_lowercase().as_str() {
                    "and" | "percent" | "or" | "th" | "to" | "the" | "statistical" | "two" | "asymptotic"
                    | "bootstrap" => behind += 1,
                    "confidence" | "ci" | "cis" | "credible" | "quantile" | "quantiles" | "percentile"
                    | "percentiles" | "level" | "levels" | "significance" | "interval" | "intervals" | "prediction"
                    | "nominal" => {
                        return true;
                    }
                    _ => return false,
                },
                _ => return false,
            }
        }
        false
    }

    /// Whether the number is in braces: `{0.1, 0.2}`.
    fn is_in_braces(&self, at: usize) -> bool {
        (0..at).rev().take(40).find_map(|before| match self.sign(before) {
            Some('{') => Some(true),
            Some('}' | '.' | ';') => Some(false),
            _ => None,
        }) == Some(true)
    }
}

/// Returns the index `by` tokens before `at`, or, if there are fewer tokens, [`usize::MAX`], which no token has.
pub(super) fn back(at: usize, by: usize) -> usize {
    at.checked_sub(by).unwrap_or(usize::MAX)
}
