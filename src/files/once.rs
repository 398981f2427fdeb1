//! Files that exactly one of several processes creates, even on different machines.

use std::fs::File;
use std::io::{ErrorKind, Result, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Creates a complete file unless the path exists, and returns whether it did. A hard link decides, because creating
/// one is atomic on every POSIX file system including NFS. With `is_durable`, the contents are flushed to disk first.
///
/// # Errors
/// Fails if the folder cannot be written or doesn't support hard links.
pub fn write_once(path: &Path, bytes: &[u8], is_durable: bool) -> Result<bool> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new().prefix(".once-").tempfile_in(folder)?;
    draft.write_all(bytes)?;
    if is_durable {
        draft.as_file().sync_all()?;
    }
    let linked = std::fs::hard_link(draft.path(), path);
    match linked {
        Ok(()) => {}
        // A file server's reply may be lost after it made the link, so that the repeated request fails.
        Err(_) if draft.as_file().metadata().is_ok_and(|about| about.nlink() == 2) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    }
    if is_durable {
        File::open(folder)?.sync_all()?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_concurrent_creators_exactly_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let path = folder.path().join(round.to_string());
            let makers: Vec<_> = (0..8)
                .map(|maker| {
                    let path = path.clone();
                    std::thread::spawn(move || {
                        write_once(&path, format!("made by {maker}").as_bytes(), false).unwrap().then_some(maker)
                    })
                })
                .collect();
            let made: Vec<i32> = makers.into_iter().filter_map(|maker| maker.join().unwrap()).collect();
            assert_eq!(made.len(), 1);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("made by {}", made[0]));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 20, "no draft stays");
    }
}
