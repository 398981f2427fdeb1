//! State shared by a gateway's connections: checks keys and reads requests.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::HeaderMap;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use super::broken::PanicFlag;
use super::protocol::WireProtocol;
use super::{GatewayRequest, ListedModel, ParsedRequest, Refusal, RefusalKind, thoughts};

/// Maximum bytes of a request.
const LONGEST: usize = 8 << 20;
/// Maximum bytes of a model's name and of a stop text. Both must be short, because a streamed reply repeats the name
/// many times, and the gateway often searches replies for the stop text.
pub(super) const LONGEST_NAME: usize = 200;
/// Maximum number of stop texts per request.
const MOST_STOPS: usize = 16;

/// State shared by all connections.
pub(super) struct GatewayState {
    pub(super) asks: mpsc::Sender<GatewayRequest>,
    /// Permits only one request at a time to be parsed and handed over to the harness, because a parsed request takes
    /// many times the memory of its text.
    pub(super) parsing: Semaphore,
    /// The key that every call must have; `None` if no key is needed, because only the agent can connect.
    pub(super) key: Option<String>,
    /// The only model in the gateway's list of models.
    pub(super) model: ListedModel,
    pub(super) calls: AtomicU64,
    pub(super) broken: PanicFlag,
    /// The model's thoughts. The keys are the placeholder texts (tokens) that the agent got in place of the thoughts.
    pub(super) thoughts: Mutex<thoughts::ThoughtStore>,
}

impl GatewayState {
    /// Checks a request's key, then reads and parses the request. While the caller holds the returned permit, no other
    /// request is parsed.
    pub(super) async fn read(
        &self,
        protocol: WireProtocol,
        request: Request,
    ) -> Result<(ParsedRequest, Option<SemaphorePermit<'_>>), Refusal> {
        self.admit_to(&request)?;
        let betas = request.headers().get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
        let betas = betas.flat_map(|values| values.split(',')).map(|beta| format!("beta `{}`", beta.trim()));
        // The names of beta features come from an untrusted header, so limit their length and number. Real agents send
        // a dozen names at most.
        let betas: Vec<String> = betas.filter(|beta| beta.len() <= LONGEST_NAME).take(50).collect();
        let body = to_bytes(request.into_body(), LONGEST).await;
        // This never fails, because the semaphore is never closed.
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
                self.report_refusal(&refusal).await;
                Err(refusal)
            }
        }
    }

    /// Reports a refused request to the harness.
    pub(super) async fn report_refusal(&self, refusal: &Refusal) {
        // If the receiver is gone, the attempt is over and there is nothing to report to.
        let _ = self.asks.send(GatewayRequest::Refused(refusal.clone())).await;
    }

    pub(super) fn thoughts(&self) -> std::sync::MutexGuard<'_, thoughts::ThoughtStore> {
        self.thoughts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn admit_to(&self, request: &Request) -> Result<(), Refusal> {
        let Some(key) = &self.key else { return Ok(()) };
        let headers: &HeaderMap = request.headers();
        let given = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = given("authorization").and_then(|value| value.strip_prefix("Bearer "));
        // Gemini's clients may send the key in the URL's query.
        let queried =
            request.uri().query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("key=")));
        if [bearer, given("x-api-key"), given("x-goog-api-key"), queried].contains(&Some(key.as_str())) {
            return Ok(());
        }
        Err(Refusal { why: RefusalKind::Closed, message: "this is another attempt's gateway".into() })
    }
}

/// Refuses requests that would take too much work to answer.
fn checked(read: ParsedRequest) -> Result<ParsedRequest, Refusal> {
    if read.model.len() > LONGEST_NAME {
        return Err(Refusal::invalid(format!("the name of the model is longer than {LONGEST_NAME} bytes")));
    }
    if read.stops.len() > MOST_STOPS || read.stops.iter().any(|stop| stop.len() > LONGEST_NAME) {
        return Err(Refusal::invalid(format!(
            "there are more than {MOST_STOPS} stop sequences, or one is longer than {LONGEST_NAME} bytes"
        )));
    }
    Ok(read)
}
