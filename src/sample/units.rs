//! Units that samples withhold, and the allowed sets of units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Nesting;

/// Units to mask in a paper that lists functions and regions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum UnitChoice {
    /// Functions, or regions if the paper lists no functions
    #[default]
    Functions,
    /// Regions
    Regions,
    /// Functions and regions, also together in one sample
    All,
}

impl UnitChoice {
    /// Whether this is the default choice, which is not stored in runs.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The units of an item, of which a sample withholds n.
pub trait Units {
    /// Number of units.
    fn len(&self) -> usize;
    /// Whether there are no units.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether a sample may withhold these units, given by ascending indexes.
    fn allows(&self, chosen: &[usize]) -> bool;
    /// Number of allowed sets of `n` units, exact, or `None` beyond u128.
    fn count(&self, n: usize) -> Option<u128>;
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
}
