//! A disk cache of embedding vectors, by text, so that no text is embedded twice.
//!
//! Each model has one file of appended records: the text's SHA-256, the number of dimensions and the vector,
//! little-endian. Several processes may append to it, each while it holds the file's lock. A killed process can leave
//! an incomplete last record. The next process that appends records cuts it off, because otherwise the bytes of later
//! records would be read as the missing part of its vector.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::{Embedder, hex};
use crate::error::{Error, Result};

type TextKey = [u8; 32];

/// Number of texts embedded before their vectors are written to disk.
const CHUNK: usize = 1024;

/// An embedding model with a cache.
pub(super) struct CachedEmbedder {
    inner: Arc<dyn Embedder>,
    path: Option<PathBuf>,
    known: Mutex<KnownVectors>,
}

/// The vectors read from the file or made by this process.
#[derive(Debug, Default)]
struct KnownVectors {
    vectors: HashMap<TextKey, Vec<f32>>,
    /// Number of bytes of the file that this process has read or written: whole records only.
    length: u64,
    /// Inode of the file that this process has read or written last.
    inode: u64,
}

impl CachedEmbedder {
    /// Reads the vectors cached in the folder `cache`. Without a folder, vectors are cached in memory only.
    ///
    /// # Errors
    /// Kind `Machine` if the folder cannot be created or the file cannot be read.
    pub(super) fn open(inner: Arc<dyn Embedder>, cache: Option<&Path>) -> Result<Self> {
        let mut known = KnownVectors::default();
        let mut path = None;
        if let Some(cache) = cache {
            let folder = cache.join("embeddings");
            std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
            let name = hex(&Sha256::digest(inner.name())[..12]);
            let file = folder.join(name);
            // Another process may be writing the last record, so an incomplete one is not cut off here.
            match File::open(&file).and_then(|mut file| known.read_added(&mut file)) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read", &file, error)),
            }
            path = Some(file);
        }
        Ok(Self { inner, path, known: Mutex::new(known) })
    }

    /// Caches vectors. Write errors, such as a full disk, are ignored: later runs embed those texts again.
    fn keep(&self, keys: &[TextKey], vectors: &[Vec<f32>]) {
        let mut bytes = Vec::new();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, vector) in keys.iter().zip(vectors) {
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&(vector.len() as u32).to_le_bytes());
            bytes.extend(vector.iter().flat_map(|part| part.to_le_bytes()));
            known.vectors.insert(*key, vector.clone());
        }
        if let Some(path) = &self.path {
            let _ = known.append(path, &bytes);
        }
    }
}

impl KnownVectors {
    /// Reads the records that other processes have added to the file. Returns whether the last record is incomplete.
    fn read_added(&mut self, file: &mut File) -> io::Result<bool> {
        let facts = file.metadata()?;
        if facts.ino() != self.inode || facts.len() < self.length {
            // The file is new to this process, or was replaced.
            (self.inode, self.length) = (facts.ino(), 0);
        }
        file.seek(SeekFrom::Start(self.length))?;
        let mut added = Vec::new();
        file.read_to_end(&mut added)?;
        let (vectors, whole) = read(&added);
        self.vectors.extend(vectors);
        self.length += whole as u64;
        Ok(whole < added.len())
    }

    /// Appends records to the file, after reading those that other processes have added and cutting off a torn one.
    fn append(&mut self, path: &Path, records: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // The lock ends when the file is closed. Some file systems have no locks; do without one there.
        let _ = file.lock();
        if self.read_added(&mut file)? {
            file.set_len(self.length)?;
        }
        file.write_all(records)?;
        self.length += records.len() as u64;
        Ok(())
    }
}

/// Parses a file's records up to the first torn or invalid one. Also returns the number of bytes parsed.
fn read(mut bytes: &[u8]) -> (HashMap<TextKey, Vec<f32>>, usize) {
    let mut known = HashMap::new();
    let all = bytes.len();
    while let Some((key, rest)) = bytes.split_first_chunk::<32>() {
        let Some((length, rest)) = rest.split_first_chunk::<4>() else { break };
        let length = 4 * u32::from_le_bytes(*length) as usize;
        let Some((vector, rest)) = rest.split_at_checked(length) else { break };
        let vector: Vec<f32> = vector.as_chunks::<4>().0.iter().map(|part| f32::from_le_bytes(*part)).collect();
        if vector.iter().any(|part| !part.is_finite()) {
            break;
        }
        known.insert(*key, vector);
        bytes = rest;
    }
    (known, all - bytes.len())
}

#[async_trait]
impl Embedder for CachedEmbedder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let keys: Vec<TextKey> = texts.iter().map(|text| Sha256::digest(text).into()).collect();
        let missing: HashMap<TextKey, &String> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            keys.iter()
                .zip(texts)
                .filter(|(key, _)| !known.vectors.contains_key(*key))
                .map(|(key, text)| (*key, text))
                .collect()
        };
        let missing: Vec<(TextKey, String)> = missing.into_iter().map(|(key, text)| (key, text.clone())).collect();
        for chunk in missing.chunks(CHUNK) {
            let (keys, texts): (Vec<TextKey>, Vec<String>) = chunk.iter().cloned().unzip();
            let vectors = self.inner.embed(&texts).await?;
            if vectors.len() != texts.len() {
                return Err(format!("the embedding model gave {} vectors for {} texts", vectors.len(), texts.len()));
            }
            self.keep(&keys, &vectors);
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(keys.iter().map(|key| known.vectors.get(key).cloned().unwrap_or_default()).collect())
    }
}
