//! The bodies of a paper's maskable functions and the code of its regions (groups of statements that can be masked),
//! indexed by their shingles (overlapping sequences of [`SHINGLE`] tokens).

use std::collections::HashMap;
use std::ops::Range;

use super::LoadedPaper;
use crate::code::{CodeTokens, Identifiers, SHINGLE};

/// The ways of comparing names: each name as written, or all names treated as equal.
pub const WAYS: [Identifiers; 2] = [Identifiers::Kept, Identifiers::Normalised];

/// Minimum number of tokens that a body must have to be compared, by index in [`WAYS`]. Shorter code, such as a loop of
/// two lines, also occurs elsewhere by chance, above all if names do not count.
const LEAST: [usize; 2] = [24, 32];

/// All bodies of a paper.
pub struct Bodies {
    /// Number of distinct shingles of each function's body, by the function's index in the manifest and the index in
    /// [`WAYS`].
    pub sizes: Vec<[usize; 2]>,
    tables: Vec<ShingleTable>,
}

/// The shingles of all bodies, for one way of comparing names (see [`WAYS`]).
struct ShingleTable {
    way: usize,
    /// By the hash of a shingle: the functions whose bodies contain the shingle, each with the shingle's number in the
    /// body.
    index: HashMap<u64, Vec<(usize, usize)>>,
    /// A bitmap of some bits of each shingle's hash. With it, nearly all shingles of a long file are skipped without a
    /// lookup in `index`.
    filter: Vec<bool>,
}

/// A shingle of a body, found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShingleOccurrence {
    /// The function's index in the manifest.
    pub function: usize,
    /// The way in which names were compared, as an index in [`WAYS`].
    pub way: usize,
    /// The shingle's number in the body.
    pub shingle: usize,
    /// Position in the text.
    pub at: Range<usize>,
}

const FILTER: usize = 1 << 16;

impl Bodies {
    /// Indexes the bodies, without docstrings. Bodies too short to be distinguished from other code have no shingles.
    pub fn new(loaded: &LoadedPaper) -> Self {
        let mut this = Self { sizes: Vec::new(), tables: Vec::new() };
        for function in 0..loaded.paper.units.len() {
            let body = CodeTokens::split(loaded.source(function).source(), loaded.code(function));
            this.sizes.push([0, 0]);
            for (way, &identifiers) in WAYS.iter().enumerate() {
                if body.len() < LEAST[way] {
                    continue;
                }
                let table = this.table(way);
                let mut size = 0;
                for (shingle, _) in body.shingles(SHINGLE, identifiers) {
                    let owners = table.index.entry(shingle).or_default();
                    if owners.last().is_none_or(|(last, _)| *last != function) {
                        owners.push((function, size));
                        table.filter[shingle as usize % FILTER] = true;
                        size += 1;
                    }
                }
                this.sizes[function][way] = size;
            }
        }
        this
    }

    fn table(&mut self, way: usize) -> &mut ShingleTable {
        let known = self.tables.iter().position(|table| table.way == way);
        let place = known.unwrap_or_else(|| {
            self.tables.push(ShingleTable { way, index: HashMap::new(), filter: vec![false; FILTER] });
            self.tables.len() - 1
        });
        &mut self.tables[place]
    }

    /// Calls `found` for every shingle of a text that also occurs in one of the paper's bodies.
    pub fn hits(&self, text: &CodeTokens<'_>, found: &mut impl FnMut(ShingleOccurrence)) {
        for table in &self.tables {
            for (shingle, at) in text.shingles(SHINGLE, WAYS[table.way]) {
                if !table.filter[shingle as usize % FILTER] {
                    continue;
                }
                for &(function, number) in table.index.get(&shingle).into_iter().flatten() {
                    found(ShingleOccurrence { function, way: table.way, shingle: number, at: at.clone() });
                }
            }
        }
    }
}
