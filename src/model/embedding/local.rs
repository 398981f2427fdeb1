//! A static embedding model on this machine: the average of a text's token vectors, which are read from a table
//! (Model2Vec, <https://github.com/MinishLab/model2vec>).

use std::path::Path;

use async_trait::async_trait;
use model2vec_rs::model::StaticModel;
use sha2::{Digest, Sha256};

use super::{Embedder, hex, normalised};
use crate::error::{Error, Result};

/// Maximum tokens of a text; the rest is ignored.
const MOST_TOKENS: usize = 512;

/// A static embedding model.
pub(super) struct Local {
    name: String,
    model: StaticModel,
}

impl Local {
    /// Reads a model's folder, which contains `tokenizer.json`, `model.safetensors` and `config.json`.
    ///
    /// # Errors
    /// Kind `Machine` if the folder cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let mut hash = Sha256::new();
        for file in ["tokenizer.json", "model.safetensors"] {
            let path = folder.join(file);
            hash.update(std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?);
        }
        let digest = hex(&hash.finalize()[..8]);
        let model = StaticModel::from_pretrained(folder, None, Some(true), None).map_err(|error| {
            Error::machine(format!("failed to read the embedding model in `{}`: {error:#}", folder.display()))
                .hint("it must be one that model2vec reads")
        })?;
        Ok(Self { name: format!("static:{digest}"), model })
    }
}

#[async_trait]
impl Embedder for Local {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let (model, texts) = (self.model.clone(), texts.to_vec());
        tokio::task::spawn_blocking(move || model.encode_with_args(&texts, Some(MOST_TOKENS), 256))
            .await
            .map(|vectors| vectors.into_iter().map(normalised).collect())
            .map_err(|error| format!("the embedding model failed: {error}"))
    }
}
