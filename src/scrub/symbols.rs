//! Rules for numbers in formulas and next to symbols: `n = 5`, `1 - cos a`, `t(4) = 6.32`.

use super::ScrubRule;
use super::prose::{Prose, back};
use super::token::{TextToken, TokenKind};
use super::words::{self, WordSense};

impl Prose<'_> {
    /// Whether the number is a test statistic: `t(4) = 6.32`, `F(2, 30) = 4.5`, `χ²(3) = 7.8`.
    pub(super) fn is_statistic(&self, at: usize) -> bool {
        if self.sign(back(at, 1)) != Some('=') || self.sign(back(at, 2)) != Some(')') {
            return false;
        }
        let Some(open) = (0..at - 2).rev().take(6).find(|&before| self.sign(before) == Some('(')) else { return false };
        let degrees = (open + 1..at - 2).all(|inner| self.is_number(inner) || self.sign(inner) == Some(','));
        let mut name = back(open, 1);
        if matches!(self.sign(name), Some('²' | '^')) {
            name = back(open, 2);
        } else if self.form(name).is_some() {
            name = back(open, 3);
        }
        degrees && open + 1 < at - 2 && matches!(self.word(name), "t" | "F" | "χ" | "chi" | "U" | "z" | "Z" | "H" | "T")
    }

    /// Decides whether a number that is the value of a symbol, or a part of a formula, is a result; `None` if it is
    /// neither.
    pub(super) fn in_symbols(&self, at: usize) -> Option<(bool, ScrubRule)> {
        let relation = |at: usize| self.sign(at).is_some_and(|sign| "=<>≈≤≥≪≫∈≡".contains(sign));
        let before = back(at, 1);
        if relation(before) && before > 0 {
            let name = self.symbol(before - 1);
            if name.is_some_and(words::is_statistic) {
                // Measured statistics have decimals. So keep a single digit after a Greek letter, as in `kappa = 0`,
                // which is a setting. All other values of statistics are left undecided here.
                let is_bound = self.form(at).is_some_and(|form| form.decimals == 0 && form.digits <= 1 && !form.signed);
                return (is_bound && name.is_some_and(is_greek)).then_some((false, ScrubRule::Symbol));
            }
            // A statistic with its p-value, such as "t = 2.43, p = 0.015".
            let tested = (at + 1..at + 8).any(|at| matches!(self.word(at), "p" | "P") && relation(at + 1));
            if tested && matches!(name, Some("t" | "z" | "F" | "U")) && self.is_decimal_at(at) {
                return None;
            }
            // The symbol of a metric, such as "Krippendorff's alpha = 0.58".
            let of_metric = (before.saturating_sub(4)..before - 1)
                .any(|at| matches!(words::sense_of(self.word(at)), Some(WordSense::Metric)));
            if of_metric && self.form(at).is_some_and(|form| form.decimals > 1) {
                return None;
            }
            if let Some(name) = name {
                let coded = name.len() < self.text.len() && self.text[..self.tokens[before - 1].end].ends_with(name);
                let snake = coded && self.sign(back(before, 2)) == Some('_');
                let short = name.chars().count() <= 2 || is_greek(name) || self.tokens[at].formula.is_some() || snake;
                return (short || words::sense_of(name) == Some(WordSense::Setting))
                    .then_some((false, ScrubRule::Symbol));
            }
            // In `f(x) = 2` and `|a| < 3`, the token before the relation sign is not a word.
            let opened = matches!(
                self.tokens[before - 1].kind,
                TokenKind::Sign(')' | ']' | '|' | '_' | '²' | '‖') | TokenKind::Number(_)
            );
            return opened.then_some((false, ScrubRule::Symbol));
        }
        if relation(at + 1) && !self.is_plus_minus(at) {
            return Some((false, ScrubRule::Symbol));
        }
        if self.is_operand(at) {
            return Some((false, ScrubRule::Equation));
        }
        self.tokens[at].formula.and_then(|formula| self.is_formula(at, formula)).map(|()| (false, ScrubRule::Equation))
    }

    fn is_decimal_at(&self, at: usize) -> bool {
        self.form(at).is_some_and(|form| form.decimals > 0)
    }

    /// Whether the number is next to an operator whose other side is not a number: `1 - cos a`, `2 / (m + n)`, `c - 1`.
    fn is_operand(&self, at: usize) -> bool {
        let spaced = |at: usize| self.tokens.get(at).is_some_and(|token| token.spaced);
        let operator = |sign: usize, behind: usize| match self.sign(sign) {
            Some('/' | '+' | '·' | '√') => true,
            Some('-' | '−' | '*') => spaced(sign) && spaced(behind),
            _ => false,
        };
        // `3.4 ms/step` and `4 / 5` are not formulas.
        let letter = |at: usize| {
            self.word(at).chars().count() == 1
                || matches!(self.sign(at), Some('(' | ')'))
                || matches!(self.word(at), "exp" | "log" | "ln" | "cos" | "sin" | "sqrt" | "mean")
        };
        let before = back(at, 1);
        let spelt = |at: usize| matches!(self.word(at), "minus" | "plus");
        // A product, such as 2 s^2.
        let product = self.word(at + 1).chars().count() == 1 && self.sign(at + 2) == Some('^');
        let factor = self.word(at + 1).chars().count() == 1
            && !matches!(
                self.word(at + 1),
                "s" | "h" | "x" | "k" | "K" | "M" | "B" | "G" | "T" | "D" | "a" | "A" | "I"
            )
            && matches!(self.sign(at + 2), Some(')' | ']' | '/' | '+' | '|'));
        // A fraction, such as 2 PR / (P + R).
        let fraction = self.sign(at + 2) == Some('/') && self.word(at + 1).chars().all(char::is_uppercase);
        let fraction = fraction && self.tokens[at + 2].spaced && !self.word(at + 1).is_empty();
        if spelt(at + 1) || spelt(before) || product || factor || fraction {
            return true;
        }
        (operator(at + 1, at + 2) && letter(at + 2))
            || (operator(before, at) && (letter(back(at, 2)) || self.sign(before) == Some('√')))
    }

    /// Returns the symbol that ends at this token: a word, or the word to which a subscript or an exponent belongs.
    fn symbol(&self, at: usize) -> Option<&str> {
        let mut place = at;
        if matches!(self.tokens[place].kind, TokenKind::Number(_) | TokenKind::Sign('²')) && place > 0 {
            place -= 1;
            if matches!(self.sign(place), Some('_' | '^')) && place > 0 {
                place -= 1;
            }
        }
        let word = self.word(place);
        // `R`, `χ` and `η` name a statistic only together with the `²`, so the symbol includes it.
        if place < at && self.sign(at) == Some('²') && matches!(word, "R" | "χ" | "η") {
            return Some(match word {
                "R" => "R²",
                "η" => "η²",
                _ => "χ²",
            });
        }
        (!word.is_empty()).then_some(word)
    }

    /// Returns `Some` if the inline formula contains more than a number with its spread, unit or power.
    fn is_formula(&self, at: usize, formula: usize) -> Option<()> {
        let within = |token: &TextToken| token.formula == Some(formula);
        let from = (0..at).rev().find(|&before| !within(&self.tokens[before])).map_or(0, |before| before + 1);
        let to = (at..self.tokens.len()).find(|&behind| !within(&self.tokens[behind])).unwrap_or(self.tokens.len());
        let relation = (from..to).find(|&place| self.sign(place).is_some_and(|sign| "=<>≈".contains(sign)));
        // If the relation sign follows the name of a statistic, as in `kappa = 0.6`, or precedes a number with ±, the
        // text before the sign only names the number. So examine only the text after the sign.
        let from = relation
            .filter(|&relation| relation < at && relation > 0)
            .filter(|&relation| self.symbol(relation - 1).is_some_and(words::is_statistic) || self.is_plus_minus(at))
            .map_or(from, |relation| relation + 1);
        let strange = (from..to).any(|place| match self.tokens[place].kind {
            TokenKind::Word => !matches!(self.str(place), "x" | "s" | "ms" | "pp" | "bf" | "k" | "M"),
            TokenKind::Sign(sign) => !"±×%[](),./→_^-–".contains(sign),
            TokenKind::Opaque => true,
            _ => false,
        });
        strange.then_some(())
    }
}

/// Whether a word is a Greek letter or the name of a Greek letter.
fn is_greek(word: &str) -> bool {
    const NAMES: [&str; 24] = [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "varepsilon",
        "zeta",
        "kappa",
        "rho",
        "eta",
        "theta",
        "iota",
        "lambda",
        "mu",
        "nu",
        "xi",
        "pi",
        "sigma",
        "tau",
        "phi",
        "varphi",
        "psi",
        "omega",
        "chi",
    ];
    NAMES.contains(&word) || word.chars().all(|c| ('α'..='ω').contains(&c) || ('Α'..='Ω').contains(&c))
}
