//! The families (kinds of task) that this program knows. No other file lists them.

use crate::command::Commands;
use crate::masked::MaskedReplication;
use crate::notebook::Notebook;
use crate::run::family::Families;

impl Families {
    /// Returns all families (kinds of task) that this program knows.
    #[must_use]
    pub fn standard() -> Self {
        Self::none().with(MaskedReplication).with(Commands).with(Notebook)
    }
}
