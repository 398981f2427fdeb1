//! Where an export goes: files that appear whole or not at all, in a folder that is made as needed.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file being written. It takes its name only when it is [finished](Destination::finish); until then it is a
/// temporary one beside it, which is removed if anything goes wrong.
pub struct Destination {
    path: PathBuf,
    file: BufWriter<tempfile::NamedTempFile>,
}

impl Destination {
    /// Begins a file; the folders above it are made.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = std::fs::create_dir_all(folder).and_then(|()| {
            tempfile::Builder::new()
                .prefix(".writing-")
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
                .tempfile_in(folder)
        });
        let file = made.map_err(|error| Error::io("write", path, error))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Writes a value as one line of JSON.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be written.
    pub fn json_line(&mut self, value: &impl serde::Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.file, value)
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| Error::io("write", &self.path, error))
    }

    /// Gives the file its name, in place of any other of that name.
    ///
    /// # Errors
    /// Kind `Machine` when the rest cannot be written.
    pub fn finish(self) -> Result<PathBuf> {
        let failed = |error: std::io::Error| Error::io("write", &self.path, error);
        let file = self.file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(self.path)
    }

    /// A whole small file.
    ///
    /// # Errors
    /// Kind `Machine` when it cannot be written.
    pub fn save(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
        let mut destination = Self::create(path)?;
        destination.write_all(bytes).map_err(|error| Error::io("write", path, error))?;
        destination.finish()
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl std::io::Seek for Destination {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}
