//! Serves episodes over OpenEnv's protocol: WebSocket sessions at `/ws`, and lists of tasks over HTTP.
//!
//! Without a token only this machine's programs are served: requests must name a local host and must not come from a
//! page in a browser.

pub mod access;
mod session;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Path as UrlPath, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::episode::EpisodeHost;
use crate::episode::tasks::Split;
use crate::error::Result;
use crate::run::ClientName;
use crate::sample::Sample;
use access::{Access, BoundAddress, Refusal, ServeAddress, admit, refuse};
pub use session::PATIENCE;
use session::Session;

/// Name of the environment in OpenEnv's lists.
const NAME: &str = "autoexperiment";
/// Maximum size of a client's message in bytes. Files that clients write are part of messages.
const LONGEST: usize = 4 << 20;
/// Number of sockets in addition to one for each episode, for clients that are between two episodes.
const SPARE: usize = 64;
/// Maximum number of tasks in one answer.
const MOST_LISTED: usize = 10_000;
/// Maximum number of tasks with their prompts in one answer.
const MOST_PROMPTED: usize = 100;

/// Options of the server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where clients connect.
    pub address: ServeAddress,
    /// Secret that clients must send; required if other machines can reach the address.
    pub token: Option<String>,
    /// Time after which a client that waits for a result gets the answer that it is still pending.
    pub patience: Duration,
    /// Maximum time without a message, after which a session without a running episode is closed.
    pub idle: Duration,
}

/// State shared by all requests.
struct Served {
    host: Arc<EpisodeHost>,
    patience: Duration,
    idle: Duration,
    /// Permits for open sockets; each socket holds one permit.
    sockets: Arc<Semaphore>,
    stop: CancellationToken,
}

/// A server that has bound its address but does not answer requests yet.
pub struct OpenEnvServer {
    listener: BoundAddress,
    router: Router,
    /// The address for clients.
    pub address: String,
}

impl OpenEnvServer {
    /// Begins to listen for connections.
    ///
    /// # Errors
    /// Kind `Usage` if other machines can reach the address and there is no token; `Machine` if listening on it fails.
    pub async fn bind(host: Arc<EpisodeHost>, options: ServeOptions, stop: CancellationToken) -> Result<Self> {
        let ServeOptions { address, token, patience, idle } = options;
        let (listener, address) = BoundAddress::listen(address, token.is_some()).await?;
        let (jobs, _) = host.load();
        let sockets = Arc::new(Semaphore::new(jobs + SPARE));
        let served = Arc::new(Served { host, patience, idle, sockets, stop });
        let access = Arc::new(Access { token });
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
            .layer(from_fn_with_state(access, admit))
            .with_state(served);
        Ok(Self { listener, router, address })
    }

    /// Answers requests until `stop` is cancelled.
    ///
    /// # Errors
    /// Kind `Machine` if the server fails.
    pub async fn serve(self, stop: CancellationToken) -> Result<()> {
        self.listener.serve(self.router, stop).await
    }
}

#[derive(Deserialize)]
struct SocketQuery {
    client: Option<String>,
}

/// Refuses OpenEnv's calls over plain HTTP: an episode of several steps needs a connection that lasts as long as the
/// episode.
fn over_http() -> Refusal {
    refuse(StatusCode::NOT_IMPLEMENTED, "episodes have several steps: connect to the WebSocket at /ws")
}

async fn socket(
    State(served): State<Arc<Served>>,
    Query(query): Query<SocketQuery>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let client = match query.client.as_deref().map(str::parse::<ClientName>).transpose() {
        Ok(client) => client.unwrap_or_default(),
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error.to_string()).into_response(),
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

/// Returns the description of the server's paths, which OpenEnv's validation reads.
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

/// Returns the answer to requests for MCP, which this server does not speak; `autoexperiment mcp` does.
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

type Listed = std::result::Result<Json<Value>, Refusal>;

fn check_name(name: &str) -> std::result::Result<(), Refusal> {
    if name.eq_ignore_ascii_case(NAME) {
        return Ok(());
    }
    Err(refuse(StatusCode::NOT_FOUND, format!("unknown environment `{}`", name.escape_debug())))
}

/// Returns the tasks of a split, which are drawn at the first request.
fn listed(served: &Served, split: &str) -> std::result::Result<Arc<[Sample]>, Refusal> {
    let found = split.parse::<Split>().and_then(|split| {
        // Listing reads only memory, but may block the thread for long, because it may have to count many samples.
        tokio::task::block_in_place(|| served.host.tasks().list(split))
    });
    found.map_err(|error| refuse(StatusCode::BAD_REQUEST, error.to_string()))
}

fn described(split: &str, index: usize, sample: &Sample) -> Value {
    json!({ "index": index, "split": split, "sample": sample.id(), "paper": sample.item(), "n": sample.n() })
}

/// Same as [`described`], with the prompts of the task.
fn prompted(served: &Served, split: &str, index: usize, sample: &Sample) -> std::result::Result<Value, Refusal> {
    // Making the prompts reads the item's files, which blocks the thread.
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

async fn tasks(
    State(served): State<Arc<Served>>,
    UrlPath(name): UrlPath<String>,
    Json(asked): Json<TaskRequest>,
) -> Listed {
    check_name(&name)?;
    let all = listed(&served, &asked.split)?;
    let shown: Vec<Value> = all
        .iter()
        .take(MOST_LISTED)
        .enumerate()
        .map(|(index, sample)| described(&asked.split, index, sample))
        .collect();
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

async fn task(
    State(served): State<Arc<Served>>,
    UrlPath(name): UrlPath<String>,
    Json(asked): Json<TaskRequest>,
) -> Listed {
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
