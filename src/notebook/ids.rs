//! Sample ids, such as `ir.rankers_1,2`.

use crate::error::{Error, Result};
use crate::sample::{Sample, Withheld};

/// Name of the family.
pub(super) const NOTEBOOK: &str = "notebook";

/// Parses a sample id into the task and the indices of its withheld blocks.
///
/// # Errors
/// Kind `Usage` for an invalid id.
pub fn withheld(id: &str) -> Result<Withheld> {
    let hint = "a sample id is a task and its withheld blocks, such as `ir.rankers_1,2`";
    let withheld = id.parse::<Withheld>().map_err(|error| error.hint(hint))?;
    if withheld.item.contains('.') {
        return Ok(withheld);
    }
    Err(Error::usage(format!("`{id}` is not a sample of a notebook task")).hint(hint))
}

/// Returns the sample that withholds these blocks of the task.
pub fn sample(withheld: &Withheld) -> Sample {
    withheld.sample(NOTEBOOK, withheld.item.split('.').next().unwrap_or_default())
}
