//! Files that are created by exactly one of several processes, even if they run on different machines.

use std::fs::File;
use std::io::{ErrorKind, Result, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Creates a file with all its contents unless the path exists, and returns whether it did so. The file is put in place
/// by a hard link, because creating a hard link is atomic on every POSIX file system, including NFS. With `is_durable`,
/// the contents are flushed to disk first.
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
        // The link was made if the temporary file has two links now. The error then comes from a network file system:
        // the server's first reply was lost, and the repeated request failed because the link existed already.
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
