//! Embeddings: vectors of texts. Texts of similar meaning have similar vectors.
//!
//! [`open`] takes a folder with a static model's files, or the name of a model behind an OpenAI-compatible
//! `/embeddings` endpoint. Vectors are cached on disk by text.

mod cached;
#[cfg(feature = "embedding")]
mod local;
mod remote;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::files::hex;

/// The forms that [`open`] takes, for error messages.
pub const FORMS: &str = "a folder with `tokenizer.json`, `model.safetensors` and `config.json`, `openai:NAME`, or NAME with `--embedding-url`";

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Identifies the model and its weights: equal names give equal vectors.
    fn name(&self) -> &str;
    /// Returns one vector per text. All have length 1 and the same number of dimensions.
    ///
    /// # Errors
    /// An error message that says why the model did not answer.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String>;
}

/// Whether a folder contains the files of a static embedding model, which has one fixed vector per token.
#[must_use]
pub fn is_model(folder: &Path) -> bool {
    ["tokenizer.json", "model.safetensors", "config.json"].iter().all(|file| folder.join(file).is_file())
}

/// Opens the embedding model that `spec` names. Vectors are cached in the folder `cache`.
///
/// # Errors
/// Kind `Usage` for an unknown form of `spec` or an invalid address, `Model` for a missing key, `Machine` for files
/// that cannot be read or a cache folder that cannot be created.
pub fn open(spec: &str, url: Option<&str>, cache: Option<&Path>) -> Result<Arc<dyn Embedder>> {
    let inner: Arc<dyn Embedder> = if url.is_some() || spec.starts_with("openai:") {
        Arc::new(remote::Remote::open(spec, url, &|name| std::env::var(name).ok())?)
    } else if is_model(Path::new(spec)) {
        open_local(Path::new(spec))?
    } else {
        return Err(Error::usage(format!("`{spec}` is not an embedding model")).hint(format!("give {FORMS}")));
    };
    Ok(Arc::new(cached::CachedEmbedder::open(inner, cache)?))
}

#[cfg(feature = "embedding")]
fn open_local(folder: &Path) -> Result<Arc<dyn Embedder>> {
    Ok(Arc::new(local::Local::open(folder)?))
}

#[cfg(not(feature = "embedding"))]
fn open_local(_: &Path) -> Result<Arc<dyn Embedder>> {
    Err(Error::left_out("local embedding models", "embedding"))
}

/// Returns the cosine of the angle between two vectors of length 1.
#[must_use]
pub fn similarity(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// Scales a vector to length 1. A zero vector is not changed.
fn normalised(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|part| f64::from(*part).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        for part in &mut vector {
            *part = (f64::from(*part) / length) as f32;
        }
    }
    vector
}
