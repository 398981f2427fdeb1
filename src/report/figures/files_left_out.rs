//! Stands in for the conversion of figures in a program that was built without it.

use super::chart::Chart;
use crate::error::{Error, Result};

/// One figure in three formats.
pub struct Files {
    /// As drawn.
    pub svg: String,
    /// Vectors.
    pub pdf: Vec<u8>,
    /// Pixels.
    pub png: Vec<u8>,
}

/// Always an error that names the feature.
///
/// # Errors
/// Kind `Usage`.
pub fn files(_: &Chart) -> Result<Files> {
    Err(Error::left_out("figures as PDF and PNG", "figures"))
}
