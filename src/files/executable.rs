//! The digest of this program, for keys of cached outcomes.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::hex;
use crate::error::{Error, Result};

/// Returns the digest of the running program's executable: sha256, hex. It is part of the keys of caches of outcomes, so
/// that no outcome is used again after any change of this program or of the libraries in it.
///
/// # Errors
/// Kind `Machine` if the executable cannot be read.
pub(crate) fn executable_digest() -> Result<&'static str> {
    static DIGEST: OnceLock<String> = OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(digest);
    }
    // The kernel keeps this path valid even if a new build has replaced the executable.
    let path = Path::new("/proc/self/exe");
    let failed = |error| Error::io("read", path, error);
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 17];
    loop {
        let length = file.read(&mut buffer).map_err(failed)?;
        if length == 0 {
            break;
        }
        hasher.update(&buffer[..length]);
    }
    Ok(DIGEST.get_or_init(|| hex(&hasher.finalize())))
}
