//! Sends the contents of files to the harness.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::libc;
use serde_bytes::Bytes;

use super::inside;
use crate::wire::{next_item, put_item};

/// Writes the contents of the wanted files, one after another.
pub fn collect(root: &Path, mut wanted: &[u8], to: &mut impl Write) -> io::Result<()> {
    while let Some((path, most)) = next_item::<(&[u8], u64)>(&mut wanted)? {
        let mut bytes = Vec::new();
        readable(&root.join(inside(path)?))?.take(most).read_to_end(&mut bytes)?;
        let mut item = Vec::with_capacity(bytes.len() + 10);
        put_item(&mut item, &Bytes::new(&bytes))?;
        to.write_all(&item)?;
    }
    Ok(())
}

/// Opens a regular file, and makes it readable first if its owner has removed that permission.
fn readable(path: &PathBuf) -> io::Result<File> {
    let open = || {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        OpenOptions::new().read(true).custom_flags(flags).open(path)
    };
    match open() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            open()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{decode_collected, encode_wanted};

    #[test]
    fn collected_files_arrive_in_order_and_cut_to_the_requested_length() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "abcdef").unwrap();
        fs::write(root.path().join("b"), "").unwrap();
        let mut out = Vec::new();
        let wanted = encode_wanted([(&b"b"[..], 10), (&b"a"[..], 3)]).unwrap();
        collect(root.path(), &wanted, &mut out).unwrap();
        assert_eq!(decode_collected(&out).unwrap(), [&b""[..], b"abc"]);
    }
}
