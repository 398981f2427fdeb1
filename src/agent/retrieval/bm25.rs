//! BM25, which scores how well documents match a query by the words they share; rare words count more.
//!
//! Formula: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with k1 = 1.2 and
//! b = 0.75, and with the inverse document frequency that Lucene uses because it is never negative: ln(1 + (N - n +
//! 0.5) / (n + 0.5)).

use std::collections::{BTreeMap, HashMap};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// An index of documents.
#[derive(Debug, Default)]
pub struct Bm25 {
    /// For each word, the documents that contain it, with the number of occurrences.
    postings: HashMap<String, Vec<(usize, u32)>>,
    lengths: Vec<usize>,
}

impl Bm25 {
    /// Indexes documents. A document is identified by its position in the list.
    pub fn new<'a>(documents: impl IntoIterator<Item = &'a str>) -> Self {
        let mut this = Self::default();
        for (place, document) in documents.into_iter().enumerate() {
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            let words = words(document);
            this.lengths.push(words.len());
            for word in words {
                *counts.entry(word).or_default() += 1;
            }
            for (word, count) in counts {
                this.postings.entry(word).or_default().push((place, count));
            }
        }
        this
    }

    /// Returns a score for every document; 0 if the document shares no word with the query.
    #[must_use]
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let mean = self.lengths.iter().sum::<usize>() as f64 / self.lengths.len().max(1) as f64;
        let mut words = words(query);
        words.sort_unstable();
        words.dedup();
        for word in words {
            let Some(postings) = self.postings.get(&word) else { continue };
            let (all, with) = (self.lengths.len() as f64, postings.len() as f64);
            let weight = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
            for &(place, count) in postings {
                let count = f64::from(count);
                let length = 1.0 - B + B * self.lengths[place] as f64 / mean.max(1.0);
                scores[place] += weight * count * (K1 + 1.0) / (count + K1 * length);
            }
        }
        scores
    }
}

/// Splits text or code into words in lower case. `squared_distances` and `squaredDistances` give two words each. The
/// `s` of a plural is removed.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for run in text.split(|character: char| !character.is_alphanumeric()) {
        let mut word = String::new();
        let mut lower = false;
        for character in run.chars() {
            if character.is_uppercase() && lower {
                push(&mut found, std::mem::take(&mut word));
            }
            lower = character.is_lowercase();
            word.extend(character.to_lowercase());
        }
        push(&mut found, word);
    }
    found
}

fn push(found: &mut Vec<String>, word: String) {
    let singular = word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with('s')).map(str::to_owned);
    let word = singular.unwrap_or(word);
    if !word.is_empty() {
        found.push(word);
    }
}

/// Returns indices sorted by score, best first; equal scores keep their order.
#[must_use]
pub fn ranked(scores: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).collect();
    places.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_match_the_bm25_formula() {
        let index = Bm25::new(["red apple", "green apple apple", "blue sky over the sea"]);
        let scores = index.scores("apple");
        // Inverse document frequency with N = 3 documents, of which n = 2 contain the word; mean length 10/3.
        let weight = (1.0_f64 + 1.5 / 2.5).ln();
        let second = weight * 2.0 * 2.2 / (2.0 + 1.2 * (0.25 + 0.75 * 3.0 / (10.0 / 3.0)));
        assert!((scores[1] - second).abs() < 1e-12, "{scores:?}");
        assert!(scores[1] > scores[0] && scores[2].abs() < 1e-12);
        assert_eq!(ranked(&scores), [1, 0, 2]);
    }

    #[test]
    fn a_rare_word_counts_more_than_a_common_one() {
        let scores = Bm25::new(["the moment", "the kernel", "the the"]).scores("the kernel");
        assert_eq!(ranked(&scores)[0], 1);
    }

    #[test]
    fn names_in_code_are_split_into_words() {
        assert_eq!(words("squaredDistances(two_nearest, X)"), ["squared", "distance", "two", "nearest", "x"]);
        assert!(Bm25::new([]).scores("a").is_empty());
    }
}
