//! Replacement for `files` in a program built without the feature `figures`.

use super::chart::Chart;
use crate::error::{Error, Result};

/// One figure in three formats.
pub struct FigureFiles {
    /// The SVG.
    pub svg: String,
    /// The PDF.
    pub pdf: Vec<u8>,
    /// The PNG.
    pub png: Vec<u8>,
}

/// Always fails with an error that names the missing feature.
///
/// # Errors
/// Kind `Usage`.
pub fn files(_: &Chart) -> Result<FigureFiles> {
    Err(Error::left_out("figures as PDF and PNG", "figures"))
}
