//! Serves the report of runs as a page for a browser, while the runs continue. The page changes nothing, and only users
//! of this machine who know its address can open it.
//!
//! The address contains a random token; without it every request is refused, so that other users of the machine and
//! pages of other sites see nothing. The request's host must be a local name, which prevents access through a foreign
//! name that resolves to this machine (DNS rebinding).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;

use super::{GatheredRuns, RunReader};
use crate::error::{Error, Result};
use crate::report::html::{Details, Index, index, live_page, overview, papers_text, policy};
use crate::run::{Outcome, counting};

/// A bound server that doesn't answer yet.
pub struct ViewServer {
    listener: TcpListener,
    /// The page's URL, including the token.
    pub address: String,
    router: Router,
}

/// State shared by all requests.
struct ViewState {
    reader: Mutex<RunReader>,
    latest: RwLock<Option<LatestRuns>>,
    port: u16,
}

/// The runs as they were last read.
struct LatestRuns {
    stamp: String,
    gathered: GatheredRuns,
    /// The overview, computed at the first request.
    overview: Mutex<Option<Arc<str>>>,
}

impl LatestRuns {
    const fn new(stamp: String, gathered: GatheredRuns) -> Self {
        Self { stamp, gathered, overview: Mutex::new(None) }
    }

    fn overview(&self) -> Result<Arc<str>> {
        let mut known = self.overview.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let made: Arc<str> = overview(&self.gathered.material)?.into();
        *known = Some(made.clone());
        Ok(made)
    }

    fn index(&self) -> Index {
        let mut index = index(&self.gathered.material);
        index.live = Some(self.stamp.clone());
        index
    }
}

type PageResponse = std::result::Result<Response, StatusCode>;

impl ViewServer {
    /// Listens on the loopback address, at `port` or, for 0, at a free port. If the reader has read the runs already,
    /// `known` contains them, and the value that [`RunReader::stamp`] had before they were read.
    ///
    /// # Errors
    /// Kind `Machine` if the port is taken.
    pub async fn bind(reader: RunReader, known: Option<(String, GatheredRuns)>, port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|error| {
            Error::machine(format!("failed to listen on port {port}"))
                .because(error)
                .hint("choose another with `--port N`; 0 picks a free one")
        })?;
        let port = listener.local_addr().map_err(|error| Error::machine("failed to listen").because(error))?.port();
        let token = format!("{:032x}", rand::random::<u128>());
        let known = known.map(|(stamp, gathered)| LatestRuns::new(stamp, gathered));
        let shared = Arc::new(ViewState { reader: Mutex::new(reader), latest: RwLock::new(known), port });
        // The page requests relative paths, so its own URL must end with a slash.
        let with_slash = format!("/{token}/");
        let router = Router::new()
            .route(&format!("/{token}"), get(async move || Redirect::temporary(&with_slash)))
            .route(&format!("/{token}/"), get(whole))
            .route(&format!("/{token}/state"), get(state))
            .route(&format!("/{token}/page"), get(parts))
            .route(&format!("/{token}/details/{{name}}"), get(details))
            .layer(from_fn_with_state(shared.clone(), own_host))
            .layer(from_fn(with_headers))
            .with_state(shared);
        Ok(Self { listener, address: format!("http://127.0.0.1:{port}/{token}/"), router })
    }

    /// Answers requests until `stop` completes.
    ///
    /// # Errors
    /// Kind `Machine` if the connection fails.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        axum::serve(self.listener, self.router.into_make_service_with_connect_info::<SocketAddr>())
            .with_graceful_shutdown(stop)
            .await
            .map_err(|error| Error::machine("the server failed").because(error))
    }
}

/// Refuses requests addressed to another host and requests from pages of other sites.
async fn own_host(State(shared): State<Arc<ViewState>>, request: Request, next: Next) -> PageResponse {
    if is_own(request.headers(), shared.port) { Ok(next.run(request).await) } else { Err(StatusCode::FORBIDDEN) }
}

fn is_own(headers: &HeaderMap, port: u16) -> bool {
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let names = ["127.0.0.1", "localhost"];
    let mut own = names.map(|name| format!("{name}:{port}")).to_vec();
    // Clients leave out the default port of HTTP.
    if port == 80 {
        own.extend(names.map(str::to_owned));
    }
    let host = text(header::HOST).unwrap_or_default();
    let foreign = text(header::ORIGIN).is_some_and(|origin| !own.iter().any(|own| origin == format!("http://{own}")));
    own.iter().any(|own| own == host) && !foreign
}

/// Adds the headers common to all responses.
async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&format!("{}; frame-ancestors 'none'", policy(true, false))) {
        headers.insert(header::CONTENT_SECURITY_POLICY, value);
    }
    response
}

impl ViewState {
    /// Answers from the current state of the runs, after reading any new records. Blocks.
    fn answer<T>(&self, what: impl FnOnce(&LatestRuns) -> Result<T>) -> Result<T> {
        // Ignore that a panic may have poisoned a lock: `latest` is empty while it is being updated, so its data are
        // never inconsistent.
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = reader.stamp();
        let is_latest = |latest: &Option<LatestRuns>| latest.as_ref().is_some_and(|latest| latest.stamp == stamp);
        if !is_latest(&self.latest.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut latest = self.latest.write().unwrap_or_else(PoisonError::into_inner);
            let read_on = latest.take().and_then(|known| {
                let mut gathered = known.gathered;
                reader.read_on(&mut gathered).is_ok_and(|is_all| is_all).then_some(gathered)
            });
            // If new records cannot be added to the known data, read everything again. The known data have already been
            // dropped, because the memory might not suffice for both.
            let gathered = read_on.map_or_else(|| reader.gather(), Ok)?;
            *latest = Some(LatestRuns::new(stamp, gathered));
        }
        drop(reader);
        match &*self.latest.read().unwrap_or_else(PoisonError::into_inner) {
            Some(latest) => what(latest),
            None => Err(Error::store("the runs can no longer be read")),
        }
    }
}

/// Runs blocking work on a separate thread.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> std::result::Result<T, StatusCode> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.kind == crate::error::FailureKind::Store => Err(StatusCode::NOT_FOUND),
        _ => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn as_json(text: String) -> Response {
    let json = HeaderValue::from_static("application/json");
    (HeaderMap::from_iter([(header::CONTENT_TYPE, json)]), text).into_response()
}

async fn whole(State(shared): State<Arc<ViewState>>) -> PageResponse {
    let html = apart(move || {
        shared.answer(|latest| {
            let material = &latest.gathered.material;
            live_page(material, &latest.overview()?, &latest.index())
        })
    })
    .await?;
    let html_type = HeaderValue::from_static("text/html; charset=utf-8");
    Ok((HeaderMap::from_iter([(header::CONTENT_TYPE, html_type)]), html).into_response())
}

/// Returns the number of attempts that are done. Attempts that ended because the run was stopped are not done: they are
/// made again on resume.
fn done(records: &[Outcome]) -> usize {
    records.iter().zip(counting(records)).filter(|(record, counts)| *counts && !record.is_stopped()).count()
}

/// Reports whether anything has changed, and the run's progress.
async fn state(State(shared): State<Arc<ViewState>>) -> PageResponse {
    let state = apart(move || {
        shared.answer(|latest| {
            let material = &latest.gathered.material;
            let planned: usize = material.options.planned.iter().map(|planned| planned.attempts).sum();
            let done = done(&material.records);
            let changed = latest.gathered.changed().map(|age| age.as_secs());
            Ok(json!({ "stamp": latest.stamp, "planned": planned, "done": done, "changed": changed }).to_string())
        })
    })
    .await?;
    Ok(as_json(state))
}

/// The two parts of the page that change.
#[derive(Serialize)]
struct PageParts<'a> {
    overview: &'a str,
    index: Index,
}

async fn parts(State(shared): State<Arc<ViewState>>) -> PageResponse {
    let parts = apart(move || {
        shared.answer(|latest| {
            let parts = PageParts { overview: &latest.overview()?, index: latest.index() };
            serde_json::to_string(&parts).map_err(|error| Error::internal("failed to write the page").because(error))
        })
    })
    .await?;
    Ok(as_json(parts))
}

/// Returns the details of a sample (`s12`) or a paper (`p3`) by its index in the current state. The response contains
/// the id of the sample or paper, so that a page whose list is older can detect a mismatch.
async fn details(State(shared): State<Arc<ViewState>>, Path(name): Path<String>) -> PageResponse {
    let (kind, place) = name.split_at_checked(1).ok_or(StatusCode::NOT_FOUND)?;
    let place: usize = place.parse().map_err(|_| StatusCode::NOT_FOUND)?;
    let kind = kind.to_owned();
    let found = apart(move || {
        shared.answer(|latest| {
            let gathered = &latest.gathered;
            Ok(match kind.as_str() {
                "p" => papers_text(&gathered.material, place),
                "s" if place < gathered.samples() => {
                    let of = gathered.details();
                    Details::new(gathered.samples(), &of).json(place, &gathered.material).ok()
                }
                _ => None,
            })
        })
    })
    .await?;
    found.map(|value| as_json(value.to_string())).ok_or(StatusCode::NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::sample::masked;

    #[test]
    fn requests_name_a_local_host_and_the_port_unless_it_is_the_default_port() {
        let answered = |host: &'static str, port: u16| {
            let mut headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
            let without_origin = is_own(&headers, port);
            let origin = HeaderValue::try_from(format!("http://{host}")).unwrap();
            headers.insert(header::ORIGIN, origin);
            assert_eq!(is_own(&headers, port), without_origin, "{host}");
            headers.insert(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
            assert!(!is_own(&headers, port), "{host}");
            without_origin
        };
        assert!(answered("localhost:80", 80) && answered("localhost", 80) && answered("127.0.0.1", 80));
        assert!(answered("127.0.0.1:8000", 8000) && !answered("127.0.0.1", 8000) && !answered("localhost:80", 8000));
        assert!(!answered("evil.example", 80));
    }

    #[test]
    fn attempts_that_were_stopped_with_the_run_are_not_done() {
        let ended = |attempt: u32, end: End| Outcome { end, ..Outcome::blank("a", &masked("x_0"), attempt) };
        let records = [
            ended(0, End::Answered),
            ended(1, End::ModelError),
            ended(2, End::Cancelled),
            // The third attempt was stopped again after the run was resumed.
            ended(2, End::Cancelled),
        ];
        assert_eq!((done(&records), done(&records[2..])), (2, 0));
    }
}
