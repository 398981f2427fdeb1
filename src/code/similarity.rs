//! Measures how much of one piece of code is contained in another: containment over shingles (sequences) of 12 tokens.
//!
//! If a function's body can be copied from elsewhere in the repo, masking it measures nothing. A similarity of whole
//! functions misses a body that is part of a longer function. Containment finds it, because it is the share of the
//! body's shingles that the other text also has (Broder, "On the resemblance and containment of documents", 1997).

use std::collections::HashSet;
use std::ops::Range;

use super::module::Module;
use super::tokens::{self, CodeToken, CodeTokens};

/// Number of tokens in a shingle.
pub const SHINGLE: usize = 12;

/// How names are treated in shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identifiers {
    /// Names are compared as they are.
    Kept,
    /// All names count as equal, so that a copy with other names is found.
    Normalised,
}

impl CodeTokens<'_> {
    /// Iterates over all sequences of `width` tokens, each as a 64-bit hash and a range of the text. Two different
    /// sequences have the same hash about once in 10^19 pairs.
    pub fn shingles(&self, width: usize, identifiers: Identifiers) -> impl Iterator<Item = (u64, Range<usize>)> {
        const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
        let any_name = tokens::hash(b"_");
        let word = move |token: &CodeToken| match identifiers {
            Identifiers::Normalised if token.is_identifier => any_name,
            _ => token.hash,
        };
        // The hash is a rolling polynomial in BASE: when the window moves, the new token is added and the oldest is
        // subtracted.
        let highest = (0..width).fold(1_u64, |power, _| power.wrapping_mul(BASE));
        let tokens = self.tokens();
        let mut rolled = 0_u64;
        tokens.iter().enumerate().filter_map(move |(last, token)| {
            rolled = rolled.wrapping_mul(BASE).wrapping_add(word(token));
            if last >= width {
                rolled = rolled.wrapping_sub(word(&tokens[last - width]).wrapping_mul(highest));
            }
            let first = (last + 1).checked_sub(width)?;
            Some((mixed(rolled), tokens[first].range().start..token.range().end))
        })
    }

    /// Returns the share (0 to 1) of these tokens that `other` has in the same order, by their longest common
    /// subsequence.
    #[must_use]
    pub fn share_in_order(&self, other: &Self) -> f64 {
        let hashes = |tokens: &Self| -> Vec<u64> { tokens.tokens().iter().map(|token| token.hash).collect() };
        let (own, others) = (hashes(self), hashes(other));
        let operations = similar::capture_diff_slices(similar::Algorithm::Myers, &own, &others);
        let common: usize = operations
            .iter()
            .map(|operation| if let similar::DiffOp::Equal { len, .. } = operation { *len } else { 0 })
            .sum();
        common as f64 / own.len().max(1) as f64
    }
}

/// Mixes all bits of a hash, because the low bits of the polynomial depend only on the low bits of the tokens' hashes.
const fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

impl Module {
    /// Returns the range of the function's body without its docstring, which masking keeps.
    #[must_use]
    pub fn body_code(&self, function: usize) -> Range<usize> {
        let function = &self.functions()[function];
        function.docstring.as_ref().map_or(function.body.start, |docstring| docstring.end)..function.body.end
    }
}

/// Returns the share (0 to 1) of the distinct shingles of `body` that `other` also has. If a body is shorter than a
/// shingle, all its tokens together count as one shingle. Returns 0 for a body without tokens.
#[must_use]
pub fn containment(body: &CodeTokens<'_>, other: &CodeTokens<'_>, identifiers: Identifiers) -> f64 {
    let width = SHINGLE.min(body.len());
    if width == 0 {
        return 0.0;
    }
    let shingles = |tokens: &CodeTokens<'_>| -> HashSet<u64> {
        tokens.shingles(width, identifiers).map(|(shingle, _)| shingle).collect()
    };
    let (own, others) = (shingles(body), shingles(other));
    own.intersection(&others).count() as f64 / own.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
def distances(points, centres):
    """Squared distances."""
    out = []
    for point in points:
        out.append([sum((a - b) ** 2 for a, b in zip(point, centre)) for centre in centres])
    return out

def cost(points, centres):
    # the same lines inside a longer function
    out = []
    for point in points:
        out.append([sum((a - b) ** 2 for a, b in zip(point, centre)) for centre in centres])
    return out
    total = 0.0
    for row in out:
        total += min(row)
    return total / max(len(points), 1)

def renamed(xs, ys):
    result = []
    for x in xs:
        result.append([sum((p - q) ** 2 for p, q in zip(x, y)) for y in ys])
    return result

def other(n):
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        print("at", n, "of", n * n, "and", -n)
    return n
"#;

    fn similarity(a: &str, b: &str, identifiers: Identifiers) -> f64 {
        let module = Module::parse("a.py", SOURCE.into()).unwrap();
        let body = |name: &str| CodeTokens::split(module.source(), module.body_code(module.find(name).unwrap()));
        containment(&body(a), &body(b), identifiers)
    }

    #[test]
    #[allow(clippy::float_cmp)]
    fn a_body_copied_into_a_longer_function_is_wholly_contained_and_not_the_other_way_round() {
        assert_eq!(similarity("distances", "cost", Identifiers::Kept), 1.0);
        assert!(similarity("cost", "distances", Identifiers::Kept) < 0.7);
    }

    #[test]
    #[allow(clippy::float_cmp)]
    fn a_copy_with_other_names_is_found_with_normalised_identifiers() {
        assert!(similarity("distances", "renamed", Identifiers::Kept) < 0.1);
        assert_eq!(similarity("distances", "renamed", Identifiers::Normalised), 1.0);
    }

    #[test]
    fn normalised_bodies_of_unrelated_functions_have_a_similarity_below_five_percent() {
        assert!(similarity("distances", "other", Identifiers::Normalised) < 0.05);
    }

    #[test]
    #[allow(clippy::float_cmp)]
    fn a_body_shorter_than_a_shingle_is_compared_whole() {
        let (short, long) = (CodeTokens::new(b"return x + 1"), CodeTokens::new(b"y = 2\nreturn x + 1\n"));
        assert_eq!(containment(&short, &long, Identifiers::Kept), 1.0);
        assert_eq!(containment(&CodeTokens::new(b""), &long, Identifiers::Kept), 0.0);
    }
}
