//! The units of an item, such as a paper's functions, of which each sample withholds (masks) some, and the sets of
//! units that samples may withhold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Nesting;

/// Parts to mask in a paper that lists functions and regions. A region is a group of statements in a function or module.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum UnitChoice {
    /// Whole functions, or regions if the paper lists no functions
    #[default]
    Functions,
    /// Regions, which are groups of statements in a function or module
    Regions,
    /// Whole functions and regions, also together in one sample
    All,
}

impl UnitChoice {
    /// Whether this is the default, which is not stored in `run.json`.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The units of an item, such as a paper's functions, of which a sample withholds (masks) n.
pub trait Units {
    /// Number of units.
    fn len(&self) -> usize;
    /// Whether the item has no units.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether a sample may withhold this set of units, which is given by their indexes in ascending order.
    fn allows(&self, chosen: &[usize]) -> bool;
    /// Exact number of sets of `n` units that samples may withhold; `None` if the number is too large for `u128`.
    fn count(&self, n: usize) -> Option<u128>;
    /// Largest number of units that a sample may withhold.
    fn most(&self) -> usize;
    /// Returns the sets of `n` units that samples may withhold, by their ranks, which go from 0 to `count(n) - 1`. The
    /// rank of a set never changes. Leaves out ranks that are too large.
    fn ranked(&self, n: usize, ranks: &[u128]) -> Vec<Vec<usize>>;
}

impl Units for Nesting {
    fn len(&self) -> usize {
        Self::len(self)
    }

    fn allows(&self, chosen: &[usize]) -> bool {
        Self::allows(self, chosen)
    }

    fn count(&self, n: usize) -> Option<u128> {
        Self::count(self, n)
    }

    fn most(&self) -> usize {
        Self::most(self)
    }

    fn ranked(&self, n: usize, ranks: &[u128]) -> Vec<Vec<usize>> {
        Self::ranked(self, n, ranks)
    }
}
