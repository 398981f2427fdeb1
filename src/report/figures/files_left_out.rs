//! Replacement for `files` in a program built without the feature `figures`.

use super::FigureFiles;
use super::chart::Chart;
use crate::error::{Error, Result};

/// Always fails with an error that names the missing feature.
///
/// # Errors
/// Kind `Usage`.
pub fn files(_: &Chart) -> Result<FigureFiles> {
    Err(Error::left_out("figures as PDF and PNG", "figures"))
}
