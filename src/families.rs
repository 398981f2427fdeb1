//! The families that this program knows: the one place where they are listed.

use crate::command::Commands;
use crate::masked::Masked;
use crate::notebook::Notebook;
use crate::run::family::Families;

impl Families {
    /// All families of this program.
    #[must_use]
    pub fn standard() -> Self {
        Self::none().with(Masked).with(Commands).with(Notebook)
    }
}
