//! Ids of samples: `ir.rankers_1,2`.

use crate::error::{Error, Result};
use crate::sample::{Sample, Withheld};

/// Its name.
pub const NOTEBOOK: &str = "notebook";

/// A sample's task and the places of its withheld blocks, from its id.
///
/// # Errors
/// Kind `Usage` for what is not one.
pub fn withheld(id: &str) -> Result<Withheld> {
    let hint = "a sample id is a task and its withheld blocks, as `ir.rankers_1,2`";
    let withheld = id.parse::<Withheld>().map_err(|error| error.hint(hint))?;
    if withheld.item.contains('.') {
        return Ok(withheld);
    }
    Err(Error::usage(format!("`{id}` is not a sample of a notebook task")).hint(hint))
}

/// The sample of these ids.
pub fn sample(withheld: &Withheld) -> Sample {
    withheld.sample(NOTEBOOK, withheld.item.split('.').next().unwrap_or_default())
}
