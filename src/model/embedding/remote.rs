//! An OpenAI-compatible `/embeddings` endpoint.

use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use genai::adapter::AdapterKind;
use genai::embed::EmbedRequest;
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};

use super::{Embedder, normalised};
use crate::error::{Error, FailureKind, Result};
use crate::model::open::checked_address;

/// Maximum texts per request.
const BATCH: usize = 64;
/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_mins(5);
/// Maximum number of retries.
const RETRIES: usize = 4;

/// An embedding model behind an endpoint.
pub(super) struct Remote {
    name: String,
    model: String,
    client: Client,
}

impl Remote {
    /// Prepares the model for calls, without any network traffic. The API keys are the same as for language models:
    /// `OPENAI_API_KEY` for OpenAI itself; `AUTOEXPERIMENT_API_KEY`, if set, for another server.
    ///
    /// # Errors
    /// Kind `Model` for a missing key, `Usage` for an invalid address.
    pub(super) fn open(spec: &str, url: Option<&str>, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let model = spec.strip_prefix("openai:").unwrap_or(spec).to_owned();
        let given = |name: &str| variable(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        let key = if url.is_some() {
            given("AUTOEXPERIMENT_API_KEY").unwrap_or_else(|| "none".to_owned())
        } else {
            given("OPENAI_API_KEY").ok_or_else(|| {
                Error::new(FailureKind::Model, format!("no key for `{spec}`: the variable `OPENAI_API_KEY` is not set"))
                    .hint(
                        "set it, or give another server (`--embedding-url`) or a static model's folder (`--embedding`)",
                    )
            })?
        };
        let endpoint = url.map(|url| checked_address("--embedding-url", url)).transpose()?;
        let name = format!("{}{model}", endpoint.as_deref().unwrap_or("openai:"));
        let resolver = ServiceTargetResolver::from_resolver_fn(move |mut target: ServiceTarget| {
            if let Some(url) = endpoint.clone() {
                target.endpoint = Endpoint::from_owned(url);
            }
            target.auth = AuthData::from_single(key.clone());
            Ok(target)
        });
        let client = Client::builder()
            .with_service_target_resolver(resolver)
            .build()
            .map_err(|error| Error::new(FailureKind::Machine, "failed to set up the network client").because(error))?;
        Ok(Self { name, model, client })
    }

    async fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let model = ModelIden::new(AdapterKind::OpenAI, self.model.as_str());
        let asked = self.client.exec_embed(model, EmbedRequest::new_batch(texts.to_vec()), None);
        let mut response = tokio::time::timeout(TIMEOUT, asked)
            .await
            .map_err(|_| format!("no whole answer within {} s", TIMEOUT.as_secs()))?
            .map_err(|error| error.to_string())?;
        response.embeddings.sort_by_key(|embedding| embedding.index);
        if response.embeddings.len() != texts.len() {
            return Err(format!("{} vectors for {} texts", response.embeddings.len(), texts.len()));
        }
        Ok(response.into_vectors().into_iter().map(normalised).collect())
    }
}

#[async_trait]
impl Embedder for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let waits = ExponentialBuilder::new().with_jitter().with_max_times(RETRIES);
            let batch = (|| self.batch(batch)).retry(waits).sleep(tokio::time::sleep).await;
            vectors.extend(batch.map_err(|what| format!("the embedding model `{}` failed: {what}", self.name))?);
        }
        Ok(vectors)
    }
}
