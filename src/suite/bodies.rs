//! The bodies of a paper's maskable functions and the code of its regions, indexed by their shingles.

use std::collections::HashMap;
use std::ops::Range;

use super::LoadedPaper;
use crate::code::{Identifiers, SHINGLE, Tokens};

/// Both ways of comparing names.
pub const WAYS: [Identifiers; 2] = [Identifiers::Kept, Identifiers::Normalised];

/// Fewest tokens of a body that is compared, by the places of [`WAYS`]: a loop of two lines is in any code, above all where
/// names do not count.
const LEAST: [usize; 2] = [24, 32];

/// All bodies of a paper.
pub struct Bodies {
    /// By the functions' places in the manifest: the number of distinct shingles, by the places of [`WAYS`].
    pub sizes: Vec<[usize; 2]>,
    tables: Vec<Table>,
}

/// The shingles, compared in one way.
struct Table {
    way: usize,
    /// The functions that have each shingle, and its number in each of them.
    index: HashMap<u64, Vec<(usize, usize)>>,
    /// A bitmap of some bits of each shingle, which rules out nearly every shingle of a long file.
    filter: Vec<bool>,
}

/// A shingle of a body, found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The function's place in the manifest.
    pub function: usize,
    /// The place of the way of comparing in [`WAYS`].
    pub way: usize,
    /// The shingle's number in the body.
    pub shingle: usize,
    /// Where it is in the text.
    pub at: Range<usize>,
}

const FILTER: usize = 1 << 16;

impl Bodies {
    /// Indexes the bodies, without docstrings. Those that are too short to be told from other code have no shingles.
    pub fn new(loaded: &LoadedPaper) -> Self {
        let mut this = Self { sizes: Vec::new(), tables: Vec::new() };
        for function in 0..loaded.paper.units.len() {
            let body = Tokens::of(loaded.source(function).source(), loaded.code(function));
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

    fn table(&mut self, way: usize) -> &mut Table {
        let known = self.tables.iter().position(|table| table.way == way);
        let place = known.unwrap_or_else(|| {
            self.tables.push(Table { way, index: HashMap::new(), filter: vec![false; FILTER] });
            self.tables.len() - 1
        });
        &mut self.tables[place]
    }

    /// Every shingle of a text that is also in some body.
    pub fn hits(&self, text: &Tokens<'_>, found: &mut impl FnMut(Hit)) {
        for table in &self.tables {
            for (shingle, at) in text.shingles(SHINGLE, WAYS[table.way]) {
                if !table.filter[shingle as usize % FILTER] {
                    continue;
                }
                for &(function, number) in table.index.get(&shingle).into_iter().flatten() {
                    found(Hit { function, way: table.way, shingle: number, at: at.clone() });
                }
            }
        }
    }
}
