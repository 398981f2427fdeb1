//! What all connections of a gateway share, and how a request of theirs is let in and read.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::HeaderMap;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use super::broken::Broken;
use super::protocol::Protocol;
use super::{Asked, Read, Refusal, Why, thoughts};

/// Bytes of the longest request that is read.
const LONGEST: usize = 8 << 20;
/// Bytes of the longest name of a model, and of a text to stop at; both are repeated or searched for often.
pub(super) const LONGEST_NAME: usize = 200;
/// Most texts to stop at.
const MOST_STOPS: usize = 16;

/// What all connections share.
pub(super) struct Shared {
    pub(super) asks: mpsc::Sender<Asked>,
    /// Requests are parsed and handed over one at a time: what is parsed takes many times the room of its text.
    pub(super) parsing: Semaphore,
    /// Demanded of every call, where strangers can connect.
    pub(super) key: Option<String>,
    /// What models are said to be there.
    pub(super) model: String,
    pub(super) calls: AtomicU64,
    pub(super) broken: Broken,
    /// The model's thoughts, as they are known to the agent.
    pub(super) thoughts: Mutex<thoughts::Given>,
}

impl Shared {
    /// Reads a request, once its key has been looked at; nothing else of a stranger's is. While the permit is held no other
    /// request is parsed.
    pub(super) async fn read(
        &self,
        protocol: Protocol,
        request: Request,
    ) -> Result<(Read, Option<SemaphorePermit<'_>>), Refusal> {
        self.admit_to(&request)?;
        let betas = request.headers().get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
        let betas = betas.flat_map(|values| values.split(',')).map(|beta| format!("beta `{}`", beta.trim()));
        // Programs send a dozen at most.
        let betas: Vec<String> = betas.filter(|beta| beta.len() <= LONGEST_NAME).take(50).collect();
        let body = to_bytes(request.into_body(), LONGEST).await;
        // It is never closed.
        let permit = self.parsing.acquire().await.ok();
        let read = body
            .map_err(|error| {
                Refusal::invalid(format!("the request cannot be read to its end, or is too long: {error}"))
            })
            .and_then(|body| protocol.read(&body))
            .and_then(checked);
        match read {
            Ok(mut read) => {
                read.left_out.extend(betas);
                Ok((read, permit))
            }
            Err(refusal) => {
                self.tell(&refusal).await;
                Err(refusal)
            }
        }
    }

    /// Tells whoever takes the calls of a request that is none.
    pub(super) async fn tell(&self, refusal: &Refusal) {
        // When nobody listens any more, there is no record either.
        let _ = self.asks.send(Asked::Refused(refusal.clone())).await;
    }

    pub(super) fn thoughts(&self) -> std::sync::MutexGuard<'_, thoughts::Given> {
        self.thoughts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn admit_to(&self, request: &Request) -> Result<(), Refusal> {
        let Some(key) = &self.key else { return Ok(()) };
        let headers: &HeaderMap = request.headers();
        let given = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = given("authorization").and_then(|value| value.strip_prefix("Bearer "));
        // Gemini's clients may send it as a part of the address.
        let queried =
            request.uri().query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("key=")));
        if [bearer, given("x-api-key"), given("x-goog-api-key"), queried].contains(&Some(key.as_str())) {
            return Ok(());
        }
        Err(Refusal { why: Why::Closed, message: "this is another attempt's gateway".into() })
    }
}

/// Refuses what would make answering dear.
fn checked(read: Read) -> Result<Read, Refusal> {
    if read.model.len() > LONGEST_NAME {
        return Err(Refusal::invalid(format!("the name of the model is longer than {LONGEST_NAME} bytes")));
    }
    if read.stops.len() > MOST_STOPS || read.stops.iter().any(|stop| stop.len() > LONGEST_NAME) {
        return Err(Refusal::invalid(format!(
            "there are more than {MOST_STOPS} texts to stop at, or one is longer than {LONGEST_NAME} bytes"
        )));
    }
    Ok(read)
}
