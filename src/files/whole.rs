//! Files that appear completely or not at all: written under a temporary name in the same folder, then renamed.

use std::fs::Permissions;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::failpoint::{WriteMoment, reach};
use crate::error::{Error, Result};

/// A file that is being written. It gets its name when it is [finished](WholeFile::finish). Until then it is a
/// temporary file in the same folder, which is removed if anything fails.
pub struct WholeFile {
    path: PathBuf,
    file: BufWriter<tempfile::NamedTempFile>,
}

impl WholeFile {
    /// Creates a file that will replace the file at `path`. If there is such a file, takes its permissions; otherwise
    /// `rw-r--r--`.
    ///
    /// # Errors
    /// Kind `Machine` if the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let begin = || {
            let file = tempfile::Builder::new()
                .prefix(".writing-")
                .permissions(Permissions::from_mode(0o644))
                .tempfile_in(folder_of(path))?;
            if let Ok(old) = std::fs::metadata(path) {
                file.as_file().set_permissions(old.permissions())?;
            }
            Ok(file)
        };
        let file = begin().map_err(|error| Error::io("write", path, error))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Same as [`create`](Self::create), but also creates the folders in `path`.
    ///
    /// # Errors
    /// Kind `Machine` if the folders or the file cannot be created.
    pub fn create_with_folders(path: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder_of(path)).map_err(|error| Error::io("write", path, error))?;
        Self::create(path)
    }

    /// Writes a value as one line of JSON.
    ///
    /// # Errors
    /// Kind `Machine` if the line cannot be written.
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.file, value)
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| Error::io("write", &self.path, error))
    }

    /// Writes these bytes, and returns the file.
    ///
    /// # Errors
    /// Kind `Machine` if the bytes cannot be written.
    pub fn filled(mut self, bytes: &[u8]) -> Result<Self> {
        self.file.write_all(bytes).map_err(|error| Error::io("write", &self.path, error))?;
        Ok(self)
    }

    /// Renames the temporary file to its final name, replacing an existing file.
    ///
    /// # Errors
    /// Kind `Machine` if the remaining bytes cannot be written.
    pub fn finish(self) -> Result<PathBuf> {
        self.rename(false)
    }

    fn rename(self, is_durable: bool) -> Result<PathBuf> {
        let failed = |error| Error::io("write", &self.path, error);
        let file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        if is_durable {
            file.as_file().sync_all().map_err(failed)?;
        }
        reach(&self.path, WriteMoment::Before);
        file.persist(&self.path).map_err(|error| failed(error.error))?;
        reach(&self.path, WriteMoment::After);
        Ok(self.path)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Seek for WholeFile {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

/// Writes a whole file, replacing an existing one. A crash of the machine may leave the file empty, so use this only
/// for contents that can be recreated.
///
/// # Errors
/// Kind `Machine` if the file cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    WholeFile::create(path)?.filled(bytes)?.rename(false).map(drop)
}

/// Writes a whole file, replacing an existing one, and flushes it to disk before it gets its name.
///
/// # Errors
/// Kind `Machine` if the file cannot be written.
pub fn write_durably(path: &Path, bytes: &[u8]) -> Result<()> {
    WholeFile::create(path)?.filled(bytes)?.rename(true).map(drop)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_gets_its_name_only_when_complete_and_no_temporary_file_remains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.jsonl");
        let mut file = WholeFile::create(&path).unwrap();
        file.json_line(&1).unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(names(folder.path()), [""; 0]);
        write_durably(&path, b"old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.json_line(&2).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"2\n");
        assert_eq!(names(folder.path()), ["table.jsonl"]);
    }

    #[test]
    fn a_new_file_takes_the_permissions_of_the_file_it_replaces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sub/file");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        write_whole(&path, b"").unwrap_err();
        WholeFile::create_with_folders(&path).unwrap().finish().unwrap();
        assert_eq!(mode() & 0o700, 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        write_whole(&path, b"new").unwrap();
        assert_eq!((mode(), std::fs::read(&path).unwrap()), (0o751, b"new".to_vec()));
    }
}
