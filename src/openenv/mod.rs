//! Serves episodes over OpenEnv's protocol: WebSocket sessions at `/ws`, and lists of tasks over HTTP.
//!
//! Without a token only this machine's programs are served: requests must name a local host, which keeps out pages that
//! a browser on this machine shows.

mod session;
mod wire;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Path as UrlPath, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::episode::EpisodeHost;
use crate::episode::tasks::Split;
use crate::error::{Error, Result};
use crate::run::ClientName;
use crate::sample::Sample;
use session::Session;
pub use session::PATIENCE;

/// Name of the environment in OpenEnv's lists.
const NAME: &str = "autoexperiment";
/// Longest message of a client, in bytes. Files that clients write are part of messages.
const LONGEST: usize = 4 << 20;
/// Sockets beyond one for each episode, for clients that are between two episodes.
const SPARE: usize = 64;
/// Most tasks in one answer.
const MOST_LISTED: usize = 10_000;
/// Most tasks with their prompts in one answer.
const MOST_PROMPTED: usize = 100;

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeAddress {
    /// A TCP address; port 0 is a free port.
    Tcp(SocketAddr),
    /// A Unix socket, which only this user can connect to.
    Unix(PathBuf),
}

/// Options of the server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where clients connect.
    pub address: ServeAddress,
    /// Secret that clients must send; required beyond this machine.
    pub token: Option<String>,
    /// Time after which a client that waits gets a sign of life.
    pub patience: Duration,
    /// Longest time without a message.
    pub idle: Duration,
}

/// State shared by all requests.
struct Served {
    host: Arc<EpisodeHost>,
    token: Option<String>,
    patience: Duration,
    idle: Duration,
    /// One permit per socket.
    sockets: Arc<Semaphore>,
    stop: CancellationToken,
}

/// A bound server that does not answer yet.
pub struct OpenEnvServer {
    listener: Listener,
    router: Router,
    /// The address for clients.
    pub address: String,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, RemovedSocket),
}

/// A socket's file, removed at the end.
struct RemovedSocket(PathBuf);

impl Drop for RemovedSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl OpenEnvServer {
    /// Listens.
    ///
    /// # Errors
    /// Kind `Usage` for an address beyond this machine without a token; `Machine` if it cannot be listened on.
    pub async fn bind(host: Arc<EpisodeHost>, options: ServeOptions, stop: CancellationToken) -> Result<Self> {
        let ServeOptions { address, token, patience, idle } = options;
        let (listener, address) = listen(address, token.is_some()).await?;
        let (jobs, _) = host.load();
        let sockets = Arc::new(Semaphore::new(jobs + SPARE));
        let served = Arc::new(Served { host, token, patience, idle, sockets, stop });
        let router = Router::new()
            .route("/ws", get(socket))
            .route("/health", get(async || Json(json!({ "status": "healthy" }))))
            .route("/metadata", get(metadata))
            .route("/schema", get(schema))
            .route("/state", get(async || Json(json!({ "episode_id": null, "step_count": 0 }))))
            .route("/reset", post(async || over_http()))
            .route("/step", post(async || over_http()))
            .route("/openapi.json", get(async || Json(openapi())))
            .route("/mcp", post(async || Json(without_mcp())))
            .route("/list_environments", get(async || Json(json!([NAME]))))
            .route("/{env}/splits", get(splits))
            .route("/{env}/tasks", post(tasks))
            .route("/{env}/num_tasks", post(num_tasks))
            .route("/{env}/task", post(task))
            .route("/{env}/task_range", post(task_range))
            .layer(DefaultBodyLimit::max(1 << 16))
            .layer(from_fn_with_state(served.clone(), admit))
            .with_state(served);
        Ok(Self { listener, router, address })
    }

    /// Answers until `stop` is cancelled.
    ///
    /// # Errors
    /// Kind `Machine` if the connection fails.
    pub async fn serve(self, stop: CancellationToken) -> Result<()> {
        let stopped = stop.cancelled_owned();
        let served = match self.listener {
            Listener::Tcp(listener) => axum::serve(listener, self.router).with_graceful_shutdown(stopped).await,
            Listener::Unix(listener, _removed) => {
                axum::serve(listener, self.router).with_graceful_shutdown(stopped).await
            }
        };
        served.map_err(|error| Error::machine("the server failed").because(error))
    }
}

async fn listen(address: ServeAddress, has_token: bool) -> Result<(Listener, String)> {
    match address {
        ServeAddress::Tcp(address) => {
            if !address.ip().is_loopback() && !has_token {
                return Err(Error::usage(format!("`{address}` can be reached from other machines"))
                    .hint("give a secret with `--token`, which clients must send, or listen on 127.0.0.1"));
            }
            let failed = |error| {
                Error::machine(format!("failed to listen on `{address}`"))
                    .because(error)
                    .hint("choose another address with `--listen`, or port 0 for a free one")
            };
            let listener = TcpListener::bind(address).await.map_err(failed)?;
            let bound = listener.local_addr().map_err(failed)?;
            Ok((Listener::Tcp(listener), format!("http://{bound}")))
        }
        ServeAddress::Unix(path) => {
            let listener = unix_listener(&path)?;
            let shown = format!("unix:{}", path.display());
            Ok((Listener::Unix(listener, RemovedSocket(path)), shown))
        }
    }
}

/// Listens on a Unix socket that only this user can connect to.
fn unix_listener(path: &Path) -> Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error| {
        Error::machine(format!("failed to listen on `{}`", path.display()))
            .because(error)
            .hint("choose a path in a folder that you can write, which does not exist yet")
    };
    // A new folder is closed to others from its first moment, unlike a socket.
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

#[derive(Deserialize)]
struct SocketQuery {
    client: Option<String>,
    token: Option<String>,
}

/// Admits requests with the token, or without one those from this machine's programs.
async fn admit(State(served): State<Arc<Served>>, query: Query<SocketQuery>, request: Request, next: Next) -> Response {
    let is_admitted = match &served.token {
        Some(token) => is_same(token, sent_token(request.headers(), query.token.as_deref()).unwrap_or_default()),
        None => is_local(request.headers()),
    };
    if is_admitted {
        next.run(request).await
    } else {
        let (status, what) = match served.token {
            Some(_) => (StatusCode::UNAUTHORIZED, "the token is missing or wrong"),
            None => (StatusCode::FORBIDDEN, "only programs of this machine are served"),
        };
        refuse(status, what)
    }
}

fn sent_token<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> Option<&'a str> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.and_then(|value| value.strip_prefix("Bearer ")).or(query)
}

/// Compares in a time that depends on the lengths alone.
fn is_same(secret: &str, sent: &str) -> bool {
    secret.len() == sent.len() && secret.bytes().zip(sent.bytes()).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

/// Whether a request names this machine and comes from no page of a browser. Programs send no origin.
fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit())).map_or(host, |it| it.0);
    let is_local = matches!(name, "127.0.0.1" | "localhost" | "[::1]" | "");
    is_local && !headers.contains_key(header::ORIGIN)
}

fn refuse(status: StatusCode, what: impl Into<String>) -> Response {
    let detail: String = what.into();
    (status, Json(json!({ "detail": detail }))).into_response()
}

/// An episode of several steps needs a connection that lasts as long.
fn over_http() -> Response {
    refuse(StatusCode::NOT_IMPLEMENTED, "episodes have several steps: connect to the WebSocket at /ws")
}

async fn socket(State(served): State<Arc<Served>>, Query(query): Query<SocketQuery>, upgrade: WebSocketUpgrade) -> Response {
    let client = match query.client.as_deref().map(str::parse::<ClientName>).transpose() {
        Ok(client) => client.unwrap_or_default(),
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error.to_string()),
    };
    let upgrade = upgrade.max_message_size(LONGEST).max_frame_size(LONGEST);
    upgrade.on_upgrade(move |mut socket| async move {
        let Ok(_place) = served.sockets.clone().try_acquire_owned() else {
            let what = "too many clients are connected";
            let error = wire::WireError::new(wire::ErrorCode::CapacityReached, what).encode();
            let _ = tokio::time::timeout(Duration::from_secs(1), socket.send(error.into())).await;
            return;
        };
        let session = Session::new(served.host.clone(), client, served.patience, served.idle);
        session.serve(socket, served.stop.clone()).await;
    })
}

async fn metadata(State(served): State<Arc<Served>>) -> Json<Value> {
    let (jobs, running) = served.host.load();
    Json(json!({
        "name": NAME,
        "description": "Write missing functions of a paper's code and run its experiments; verified by running the code again.",
        "version": env!("CARGO_PKG_VERSION"),
        "family": served.host.tasks().family().name(),
        "jobs": jobs,
        "running": running,
        "tools": session::tools(&served.host),
    }))
}

/// The paths, as far as OpenEnv's validation looks at them.
fn openapi() -> Value {
    let get = json!({ "get": { "responses": { "200": { "description": "JSON" } } } });
    let post = json!({ "post": { "responses": { "200": { "description": "JSON" } } } });
    json!({
        "openapi": "3.1.0",
        "info": { "title": NAME, "version": "1.0.0" },
        "paths": {
            "/health": get, "/metadata": get, "/schema": get, "/state": get, "/reset": post, "/step": post,
            "/list_environments": get, "/{env}/splits": get, "/{env}/tasks": post, "/{env}/num_tasks": post,
            "/{env}/task": post, "/{env}/task_range": post,
        },
    })
}

/// The answer to MCP, which has a server of its own.
fn without_mcp() -> Value {
    let message = "this server speaks OpenEnv's protocol; `autoexperiment mcp` serves MCP";
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32601, "message": message } })
}

async fn schema() -> Json<Value> {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let observation = object(
        json!({
            "text": { "type": "string", "description": "What to show the learner." },
            "pending": { "type": "boolean", "description": "Whether to call the tool `wait` for the result." },
            "error": { "type": "boolean", "description": "Whether the call was malformed and not run." },
            "prompt": { "type": "string" }, "system": { "type": "string" }, "tools": { "type": "array" },
        }),
        json!(["text", "pending"]),
    );
    Json(json!({
        "action": object(
            json!({
                "tool": { "type": "string", "description": "A tool of the first observation, `submit` or `wait`." },
                "arguments": { "type": "object" },
                "text": { "type": "string", "description": "What the learner wrote with the call, for the record." },
                "metadata": { "type": "object" },
            }),
            json!(["tool"]),
        ),
        "observation": observation,
        "reset_observation": observation,
        "state": object(
            json!({ "episode_id": { "type": ["string", "null"] }, "step_count": { "type": "integer" } }),
            json!([]),
        ),
    }))
}

#[derive(Deserialize)]
struct TaskRequest {
    split: String,
    index: Option<usize>,
    start: Option<usize>,
    stop: Option<usize>,
}

type Listed = std::result::Result<Json<Value>, Response>;

fn check_name(name: &str) -> std::result::Result<(), Response> {
    if name.eq_ignore_ascii_case(NAME) {
        return Ok(());
    }
    Err(refuse(StatusCode::NOT_FOUND, format!("unknown environment `{}`", name.escape_debug())))
}

/// The tasks of a split. Draws them at the first request.
fn listed(served: &Served, split: &str) -> std::result::Result<Arc<[Sample]>, Response> {
    let found = split.parse::<Split>().and_then(|split| {
        // Reads nothing but memory, but may count many samples.
        tokio::task::block_in_place(|| served.host.tasks().list(split))
    });
    found.map_err(|error| refuse(StatusCode::BAD_REQUEST, error.to_string()))
}

fn described(split: &str, index: usize, sample: &Sample) -> Value {
    json!({ "index": index, "split": split, "sample": sample.id(), "paper": sample.item(), "n": sample.n() })
}

/// Same as [`described`], with the prompts of the task.
fn prompted(served: &Served, split: &str, index: usize, sample: &Sample) -> std::result::Result<Value, Response> {
    // Reads the item's files.
    let opening = tokio::task::block_in_place(|| served.host.opening(sample));
    let opening = opening.map_err(|error| refuse(StatusCode::BAD_REQUEST, error.to_string()))?;
    let mut task = described(split, index, sample);
    task["prompt"] = json!(opening.prompt);
    task["system"] = json!(opening.system);
    Ok(task)
}

async fn splits(UrlPath(name): UrlPath<String>) -> Listed {
    check_name(&name)?;
    let all = Split::ALL.map(|split| json!({ "name": split.name(), "type": split.name() }));
    Ok(Json(json!(all)))
}

async fn tasks(State(served): State<Arc<Served>>, UrlPath(name): UrlPath<String>, Json(asked): Json<TaskRequest>) -> Listed {
    check_name(&name)?;
    let all = listed(&served, &asked.split)?;
    let shown: Vec<Value> =
        all.iter().take(MOST_LISTED).enumerate().map(|(index, sample)| described(&asked.split, index, sample)).collect();
    Ok(Json(json!({ "tasks": shown, "env_name": NAME })))
}

async fn num_tasks(
    State(served): State<Arc<Served>>,
    UrlPath(name): UrlPath<String>,
    Json(asked): Json<TaskRequest>,
) -> Listed {
    check_name(&name)?;
    Ok(Json(json!({ "num_tasks": listed(&served, &asked.split)?.len() })))
}

async fn task(State(served): State<Arc<Served>>, UrlPath(name): UrlPath<String>, Json(asked): Json<TaskRequest>) -> Listed {
    check_name(&name)?;
    let all = listed(&served, &asked.split)?;
    let found = asked.index.and_then(|index| Some((index, all.get(index)?)));
    let Some((index, sample)) = found else { return Err(refuse(StatusCode::BAD_REQUEST, "Invalid task index")) };
    Ok(Json(json!({ "task": prompted(&served, &asked.split, index, sample)? })))
}

async fn task_range(
    State(served): State<Arc<Served>>,
    UrlPath(name): UrlPath<String>,
    Json(asked): Json<TaskRequest>,
) -> Listed {
    check_name(&name)?;
    let all = listed(&served, &asked.split)?;
    let (start, stop) = (asked.start.unwrap_or(0), asked.stop.unwrap_or(all.len()).min(all.len()));
    let mut shown = Vec::new();
    for (index, sample) in all.iter().enumerate().take(stop).skip(start).take(MOST_PROMPTED) {
        shown.push(prompted(&served, &asked.split, index, sample)?);
    }
    Ok(Json(json!({ "tasks": shown })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn pages_and_foreign_names_are_not_this_machines_programs() {
        for host in ["127.0.0.1:8000", "localhost:8000", "localhost", "[::1]:9"] {
            assert!(is_local(&headers(&[(header::HOST, host)])), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:8000", "10.0.0.3:8000"] {
            assert!(!is_local(&headers(&[(header::HOST, host)])), "{host}");
        }
        assert!(!is_local(&headers(&[(header::HOST, "localhost"), (header::ORIGIN, "https://evil.example")])));
        assert!(!is_local(&headers(&[(header::HOST, "localhost"), (header::ORIGIN, "null")])));
    }

    #[test]
    fn a_token_is_taken_from_the_header_or_the_query_and_must_be_equal() {
        let sent = headers(&[(header::AUTHORIZATION, "Bearer secret")]);
        assert_eq!(sent_token(&sent, None), Some("secret"));
        assert_eq!(sent_token(&HeaderMap::new(), Some("other")), Some("other"));
        assert!(is_same("secret", "secret"));
        for wrong in ["", "secre", "secret1", "Secret"] {
            assert!(!is_same("secret", wrong), "{wrong}");
        }
    }
}
