//! Options of the embedding model, with which retrieval may rank passages and functions.

use super::shared::PlaceOptions;
use crate::agent::Settings;
use crate::error::{Error, Result};

/// Embedding model of the run.
#[derive(clap::Args)]
pub(super) struct EmbeddingOptions {
    /// Embedding model, for agents whose retrieval uses one: the folder of a static one, `openai:NAME`, or NAME with
    /// --embedding-url [default: the folder `embedding` in the cache].
    #[arg(long, value_name = "MODEL", env = "AUTOEXPERIMENT_EMBEDDING", help_heading = "Agents and models")]
    embedding: Option<String>,
    /// Address of an OpenAI-compatible server for the embedding model, such as `http://127.0.0.1:8080/v1`.
    #[arg(long, value_name = "URL", requires = "embedding", help_heading = "Agents and models")]
    embedding_url: Option<String>,
}

impl EmbeddingOptions {
    /// Returns the settings that apply to all agents: the embedding model.
    pub fn settings(&self, places: &PlaceOptions) -> Result<Settings> {
        let mut embedding = self.embedding.clone();
        if self.embedding_url.is_none()
            && let Some(folder) = embedding.as_ref().filter(|folder| std::path::Path::new(folder).is_dir())
        {
            // Make the path absolute, because the run may be resumed from another folder.
            let path = std::path::absolute(folder).map_err(|error| Error::io("resolve", folder.as_ref(), error))?;
            embedding = Some(path.display().to_string());
        }
        let mut settings = Settings { embedding, embedding_url: self.embedding_url.clone(), ..Settings::default() };
        settings.choose_embedding(&places.cache()?)?;
        Ok(settings)
    }
}
