//! A disk cache with one file per value. The key is the digest of everything that determines the value. A file appears
//! completely or not at all. Several processes on several machines may share a cache folder; each process immediately
//! sees the values stored by the others.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::whole::WholeFile;
use crate::error::Result;

/// A disk cache for values of one type.
#[derive(Debug, Clone)]
pub struct DiskCache<T> {
    folder: PathBuf,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> DiskCache<T> {
    /// Uses this folder, which is created when the first value is stored.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), of: PhantomData }
    }

    /// Returns the path of a key's file. The key is a digest in hex.
    fn path(&self, key: &str) -> PathBuf {
        let (start, rest) = key.split_at(key.len().min(2));
        self.folder.join(start).join(format!("{rest}.json"))
    }

    /// Returns the value stored under a key. An unreadable file counts as missing, because a crash of the machine may
    /// have damaged it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<T> {
        serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()
    }

    /// Stores a value, replacing any earlier value.
    ///
    /// # Errors
    /// Kind `Machine` if the value cannot be written.
    pub fn put(&self, key: &str, value: &T) -> Result<()> {
        let mut file = WholeFile::create_with_folders(&self.path(key))?;
        file.json_line(value)?;
        file.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> String {
        format!("{number:064x}")
    }

    #[test]
    fn stored_values_are_found_and_torn_files_count_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| DiskCache::<Vec<u32>>::at(&folder.path().join("sub")));
        assert_eq!(one.get(&key(1)), None);
        one.put(&key(1), &vec![1, 2]).unwrap();
        assert_eq!(other.get(&key(1)), Some(vec![1, 2]));
        assert_eq!(other.get(&key(2)), None);
        std::fs::write(one.path(&key(1)), "[1,").unwrap();
        assert_eq!(other.get(&key(1)), None);
        other.put(&key(1), &vec![3]).unwrap();
        assert_eq!(one.get(&key(1)), Some(vec![3]));
    }

    #[test]
    fn concurrent_puts_leave_one_complete_value() {
        let folder = tempfile::tempdir().unwrap();
        let long = |writer: u32| vec![writer; 20_000];
        let kept = DiskCache::<Vec<u32>>::at(folder.path());
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let kept = &kept;
                scope.spawn(move || (0..20).for_each(|_| kept.put(&key(7), &long(writer)).unwrap()));
            }
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Some(found) = kept.get(&key(7)) {
                        assert_eq!(found, long(found[0]));
                    }
                }
            });
        });
        assert_eq!(
            walkdir::WalkDir::new(folder.path()).into_iter().flatten().filter(|it| it.file_type().is_file()).count(),
            1
        );
    }
}
