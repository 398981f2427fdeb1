//! Formats and computes digests.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Formats bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Computes the digest of several parts. Each part is added with its length, so that different lists of parts never
/// give the same input.
#[derive(Debug, Clone, Default)]
pub struct PartsDigest(Sha256);

impl PartsDigest {
    /// Adds a part.
    pub fn add(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Returns the SHA-256 of all parts in hex.
    #[must_use]
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}
