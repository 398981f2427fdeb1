//! JSON for a page: escaped for a script element, or compressed.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Serialises to JSON that cannot end the script element that contains it: `<`, `>` and `&` are escaped, and so are
/// U+2028 and U+2029, which older JavaScript does not accept in strings.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub(super) fn safe_json(value: &impl Serialize) -> Result<String> {
    let text = serde_json::to_string(value).map_err(failed)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            other => safe.push(other),
        }
    }
    Ok(safe)
}

/// Serialises to JSON, compresses it by deflate and encodes it in base64 (letters, digits, `+`, `/` and `=` only). The
/// compression level takes half the time of the default and adds only a few percent of size.
///
/// # Errors
/// Kind `Internal` if serialisation fails.
pub(super) fn packed(value: &impl Serialize) -> Result<String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(4));
    let text = serde_json::to_vec(value).map_err(failed)?;
    let bytes = encoder.write_all(&text).and_then(|()| encoder.finish()).map_err(failed)?;
    Ok(STANDARD.encode(bytes))
}

/// Returns the digest of a script or style in the form that a content security policy expects.
pub(super) fn digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::internal("failed to write the report's data").because(error)
}
