//! Choice of the embedding model, and creation of an agent's retriever.

use std::path::Path;
use std::sync::Arc;

use super::Settings;
use crate::agent::retrieval::{CodeChoice, PaperChoice, Retriever};
use crate::error::{Error, Result};
use crate::model::embedding::{self, Embedder};

impl Settings {
    /// Whether these settings need an embedding model.
    #[must_use]
    pub fn embeds(&self) -> bool {
        self.paper == Some(PaperChoice::Embedding) || self.code == Some(CodeChoice::Embedding)
    }

    /// Decides which embedding model to use: the user's, or the one in the folder `embedding` of the cache.
    ///
    /// # Errors
    /// Kind `Usage` if the settings request embeddings and there is no embedding model. There is no fallback to another
    /// search method, because its results would be reported under the wrong name.
    pub fn choose_embedding(&mut self, cache: &Path) -> Result<()> {
        let local = cache.join("embedding");
        if self.embedding.is_none() && embedding::is_model(&local) {
            self.embedding = Some(local.display().to_string());
        }
        if self.embeds() && self.embedding.is_none() { Err(Self::without_embedding(cache)) } else { Ok(()) }
    }

    /// Returns the error for settings that request embeddings when there is no embedding model.
    #[must_use]
    pub fn without_embedding(cache: &Path) -> Error {
        Error::usage("`embedding` was requested, but there is no embedding model").hint(format!(
            "put one into `{}`, or name one with `--embedding`; `bm25` needs none",
            cache.join("embedding").display()
        ))
    }

    /// Builds the retriever of an agent with these settings. Embedding vectors are stored in `cache`.
    ///
    /// # Errors
    /// The errors of [`embedding::open`]; kind `Usage` if embeddings are requested and there is no embedding model.
    pub(crate) fn retriever(&self, cache: Option<&Path>) -> Result<Retriever> {
        let embedder: Option<Arc<dyn Embedder>> = match &self.embedding {
            Some(spec) if self.embeds() => Some(embedding::open(spec, self.embedding_url.as_deref(), cache)?),
            None if self.embeds() => {
                return Err(Error::usage("`embedding` was requested, but there is no embedding model"));
            }
            _ => None,
        };
        Ok(Retriever {
            paper: self.paper.unwrap_or(PaperChoice::None),
            code: self.code.unwrap_or(CodeChoice::Agent),
            passages: self.passages,
            snippets: self.snippets,
            embedder,
        })
    }
}
