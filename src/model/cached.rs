//! A disk cache of replies, shared by runs. A request gets the cached reply only if the run's seed and the attempt's
//! number are the same, too. Other attempts at the same sample need replies that are drawn separately, so they call the
//! model.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Model, Pieces, QueryFailed, Reply, Request, recording};
use crate::files::{DiskCache, PartsDigest};

/// A model with a cache of replies.
pub(super) struct CachedModel {
    model: Arc<dyn Model>,
    kept: DiskCache<Reply>,
    /// The model's name, server and settings; cached replies of other models do not match.
    identity: String,
    /// The run's seed.
    seed: u64,
}

impl CachedModel {
    /// Wraps `model`; `identity` distinguishes it from other models that share the cache folder.
    pub(super) fn new(model: Arc<dyn Model>, identity: String, folder: &Path, seed: u64) -> Self {
        Self { model, kept: DiskCache::at(folder), identity, seed }
    }

    /// Returns the cache key of a request; `None` for a request outside attempts, which is not cached.
    fn key(&self, request: &Request) -> Option<String> {
        let mut parts = PartsDigest::default();
        parts.add("reply 1");
        parts.add(&self.identity);
        parts.add(self.seed.to_le_bytes());
        parts.add(request.attempt?.to_le_bytes());
        parts.add(recording::key(request));
        Some(parts.finish())
    }

    /// Returns the cached reply, which costs nothing.
    fn known(&self, key: Option<&String>) -> Option<Reply> {
        let reply = tokio::task::block_in_place(|| self.kept.get(key?))?;
        Some(Reply { cost: 0.0, unanswered: 0, cached: true, ..reply })
    }

    /// Caches a reply. Write errors, such as a full disk, are ignored: the reply is already paid for and is still
    /// returned.
    fn keep(
        &self,
        key: Option<String>,
        request: &Request,
        answer: Result<Reply, QueryFailed>,
    ) -> Result<Reply, QueryFailed> {
        // Don't cache a reply that was cut because money ran short: a later run may afford a longer one.
        if let (Some(key), Ok(reply)) = (key, &answer)
            && !(reply.cut && request.affordable.is_some())
        {
            let _ = tokio::task::block_in_place(|| self.kept.put(&key, reply));
        }
        answer
    }
}

#[async_trait]
impl Model for CachedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn inner(&self) -> Option<&dyn Model> {
        Some(self.model.as_ref())
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        let key = self.key(request);
        match self.known(key.as_ref()) {
            Some(reply) => Ok(reply),
            None => self.keep(key, request, self.model.query(request).await),
        }
    }

    async fn stream(&self, request: &Request, pieces: &Pieces) -> Result<Reply, QueryFailed> {
        let key = self.key(request);
        match self.known(key.as_ref()) {
            Some(reply) => Ok(reply),
            None => self.keep(key, request, self.model.stream(request, pieces).await),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::model::{Message, Role, Usage};

    /// A model that replies with the number of times it was called.
    #[derive(Default)]
    struct CountingModel(AtomicU64);

    #[async_trait]
    impl Model for CountingModel {
        fn name(&self) -> &'static str {
            "counting"
        }

        async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
            let asked = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            if request.messages[0].content == "refused" {
                return Err(crate::model::ModelError::Refused("no".into()).into());
            }
            let usage = Usage { input: 7, output: asked, ..Usage::default() };
            let cut = request.affordable.is_some();
            Ok(Reply { text: format!("reply {asked}"), usage, cost: 0.5, cut, ..Reply::default() })
        }
    }

    fn request(said: &str, attempt: u32) -> Request {
        Request { messages: vec![Message::new(Role::User, said)], attempt: Some(attempt), ..Request::default() }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reply_is_reused_for_the_same_request_seed_and_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let open = |identity: &str, seed| {
            CachedModel::new(Arc::new(CountingModel::default()), identity.to_owned(), folder.path(), seed)
        };
        let first = open("m", 0).query(&request("a", 0)).await.unwrap();
        assert_eq!((first.text.as_str(), first.cost, first.cached), ("reply 1", 0.5, false));
        // A later process opens the same cache.
        let later = open("m", 0);
        let known = later.query(&request("a", 0)).await.unwrap();
        assert_eq!((known.text.as_str(), known.cost, known.cached, known.usage), ("reply 1", 0.0, true, first.usage));
        let other_call = Request { call: 1, ..request("a", 0) };
        for other in [request("a", 1), request("b", 0), other_call] {
            assert!(!later.query(&other).await.unwrap().cached, "{other:?}");
        }
        for other in [open("m", 1), open("n", 0)] {
            assert!(!other.query(&request("a", 0)).await.unwrap().cached);
        }
        // Requests outside of attempts, such as a verifier's, always reach the model.
        let nobodys = Request { attempt: None, ..request("a", 0) };
        for _ in 0..2 {
            assert!(!later.query(&nobodys).await.unwrap().cached);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_cache_returns_no_failures_no_replies_shortened_by_a_cost_limit_and_no_torn_files() {
        let folder = tempfile::tempdir().unwrap();
        let model = CachedModel::new(Arc::new(CountingModel::default()), "m".into(), folder.path(), 0);
        let poor = Request { affordable: Some(5), ..request("poor", 0) };
        for _ in 0..2 {
            model.query(&request("refused", 0)).await.unwrap_err();
            assert!(!model.query(&poor).await.unwrap().cached);
        }
        model.query(&request("a", 0)).await.unwrap();
        for entry in walkdir::WalkDir::new(folder.path()).into_iter().flatten().filter(|it| it.file_type().is_file()) {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            std::fs::write(entry.path(), &text[..text.len() / 2]).unwrap();
        }
        assert!(!model.query(&request("a", 0)).await.unwrap().cached);
        assert!(model.query(&request("a", 0)).await.unwrap().cached);
    }
}
