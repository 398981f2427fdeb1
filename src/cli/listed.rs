//! Cache of the rows of `list`: a paper's files are read again, but only parsed again if they changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files::{hex, write_whole};
use crate::suite::LoadedPaper;

/// File name in the cache.
const FILE: &str = "list.json";

/// Format version, to be raised when the contents change. Rows of other program versions are ignored, too.
const FORMAT: &str = concat!("2 ", env!("CARGO_PKG_VERSION"));

/// The files in a paper's folder that `list` reads.
const FILES: [&str; 4] = ["paper.toml", "paper.md", "gold.json", "dependencies.json"];

/// The cached rows.
#[derive(Serialize, Deserialize)]
pub(super) struct RowCache<Row> {
    format: String,
    /// Cached rows, by the paper's folder.
    papers: BTreeMap<PathBuf, CachedRow<Row>>,
    #[serde(skip)]
    changed: bool,
}

#[derive(Serialize, Deserialize)]
struct CachedRow<Row> {
    /// Paths of all files that the row depends on. `digest` is computed from their contents.
    files: Vec<PathBuf>,
    digest: String,
    row: Row,
}

impl<Row: Clone + Serialize + DeserializeOwned> RowCache<Row> {
    /// Reads the cached rows; empty if they cannot be read.
    pub fn read(cache: Option<&Path>) -> Self {
        let bytes = cache.and_then(|cache| std::fs::read(cache.join(FILE)).ok());
        let known = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        known.filter(|known| known.format == FORMAT).unwrap_or_else(|| Self {
            format: FORMAT.to_owned(),
            papers: BTreeMap::new(),
            changed: false,
        })
    }

    /// Returns the row of the paper in this folder, if it is cached and its files are unchanged.
    pub fn row(&self, folder: &Path) -> Option<Row> {
        let entry = self.papers.get(folder).filter(|entry| digest(&entry.files) == entry.digest)?;
        Some(entry.row.clone())
    }

    /// Stores a row.
    pub fn keep(&mut self, loaded: &LoadedPaper, row: Row) {
        let mut files: Vec<PathBuf> = FILES.iter().map(|file| loaded.dir.join(file)).collect();
        let sources = (0..loaded.paper.units.len()).map(|unit| loaded.repo_dir.join(loaded.source(unit).path()));
        files.extend(sources);
        files.sort();
        files.dedup();
        let digest = digest(&files);
        self.papers.insert(loaded.dir.clone(), CachedRow { files, digest, row });
        self.changed = true;
    }

    /// Writes the cache if it changed. Write errors are ignored: the next `list` takes longer.
    pub fn save(mut self, cache: Option<&Path>) {
        if let (true, Some(cache)) = (self.changed, cache) {
            self.papers.retain(|folder, _| folder.is_dir());
            let written = serde_json::to_vec(&self).ok().filter(|_| std::fs::create_dir_all(cache).is_ok());
            let _ = written.map(|bytes| write_whole(&cache.join(FILE), &bytes));
        }
    }
}

/// Returns a digest of the names and contents of files. A missing file has a different digest than an empty one.
fn digest(files: &[PathBuf]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        let bytes = std::fs::read(file).ok();
        hash.update((file.as_os_str().len() as u64).to_le_bytes());
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update((bytes.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64)).to_le_bytes());
        hash.update(bytes.unwrap_or_default());
    }
    hex(&hash.finalize())
}
