//! What samples withhold, and which sets of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Nesting;

/// Of a paper that lists functions and regions, which are masked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum UnitChoice {
    /// Functions; the regions of a paper that lists no functions
    #[default]
    Functions,
    /// Regions
    Regions,
    /// Both, also in one sample
    All,
}

impl UnitChoice {
    /// Whether it is that of a run which does not say.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The units of an item, of which a sample withholds n.
pub trait Units {
    /// Number of units.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether a sample can withhold these: places, ascending.
    fn allows(&self, chosen: &[usize]) -> bool;
    /// Number of allowed sets of `n`, exact, or `None` beyond u128.
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
