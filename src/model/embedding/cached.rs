//! A disk cache of embedding vectors, by text, so that no text is embedded twice.
//!
//! Each model has one file of appended records: the text's SHA-256, the number of dimensions and the vector,
//! little-endian.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
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
    known: Mutex<HashMap<TextKey, Vec<f32>>>,
}

impl CachedEmbedder {
    /// Reads the vectors cached in the folder `cache`. Without a folder, vectors are cached in memory only.
    ///
    /// # Errors
    /// Kind `Machine` if the folder cannot be created or the file cannot be read.
    pub(super) fn open(inner: Arc<dyn Embedder>, cache: Option<&Path>) -> Result<Self> {
        let mut known = HashMap::new();
        let mut path = None;
        if let Some(cache) = cache {
            let folder = cache.join("embeddings");
            std::fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
            let name = hex(&Sha256::digest(inner.name())[..12]);
            let file = folder.join(name);
            match std::fs::read(&file) {
                Ok(bytes) => {
                    let whole;
                    (known, whole) = read(&bytes);
                    if whole < bytes.len() {
                        // Cut off a torn last record, so that new records do not follow it.
                        let file = OpenOptions::new().write(true).open(&file);
                        let _ = file.and_then(|file| file.set_len(whole as u64));
                    }
                }
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
            known.insert(*key, vector.clone());
        }
        if let Some(path) = &self.path {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(&bytes));
        }
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
                .filter(|(key, _)| !known.contains_key(*key))
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
        Ok(keys.iter().map(|key| known.get(key).cloned().unwrap_or_default()).collect())
    }
}
