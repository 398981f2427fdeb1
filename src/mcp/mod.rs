//! An MCP server with which an assistant attempts samples: it lists papers, draws samples, opens attempts, acts in
//! their sandboxes and reads verdicts.
//!
//! Each call names the attempt that it is about; the server does not remember an attempt for a connection. So clients
//! that use the protocol's revision without sessions can use the server, too. Clients cannot reach gold or
//! verification. They see only the figures of a verdict that clients of episodes see ([`crate::episode`]).

mod tools;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, Resource, ResourceContents, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::episode::reward::figures;
use crate::episode::tasks::{Split, TaskChoice, Tasks};
use crate::episode::{Episode, EpisodeHost, NotStarted, Progress};
use crate::error::{Error, Result};
use crate::openenv::access::{Access, BoundAddress, ServeAddress, admit};
use crate::report::{SummaryOptions, brief_console, summarise};
use crate::run::family::Item;
use crate::run::{ClientName, outcomes};
use crate::sample::{COMMAND, Sample};
use tools::{DrawArguments, StartArguments};

/// Time after which a call returns even if its work is not finished. The client can then wait for the outcome by
/// calling the tool `result`. Many clients give up on a call after 60 s.
const PATIENCE: Duration = Duration::from_secs(40);
/// Number of attempts that are remembered. When it is reached, attempts that have ended are forgotten, so their results
/// can no longer be read.
const MOST_KEPT: usize = 1000;
/// Maximum size of a request over HTTP in bytes.
const LONGEST: usize = 4 << 20;

const INSTRUCTIONS: &str = "Attempts at re-implementing functions of research papers. Call `list_papers`, `draw_samples`, and \
                            `start_attempt`, which returns the task and an `attempt`; then act in its sandbox with the other \
                            tools, and `submit` the results. The code is then run again and compared with the paper's.";

/// The server.
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

struct Shared {
    host: Arc<EpisodeHost>,
    client: ClientName,
    attempts: RwLock<HashMap<String, Arc<Mutex<Episode>>>>,
}

/// The outcome of a tool: text for the assistant, or an error that the assistant should see.
type Answer = std::result::Result<String, String>;

impl McpServer {
    /// Creates a server for the tasks of `host`. Attempts are stored under the name of the client.
    #[must_use]
    pub fn new(host: Arc<EpisodeHost>, client: ClientName) -> Self {
        Self { shared: Arc::new(Shared { host, client, attempts: RwLock::default() }) }
    }

    /// Serves one client over stdin and stdout, until the client disconnects or `stop` is cancelled.
    ///
    /// # Errors
    /// Kind `Machine` if the connection fails.
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Error::machine(format!("the connection failed: {error}"));
        let served = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            served = self.serve(rmcp::transport::stdio()) => served,
        };
        let service = match served {
            Ok(service) => service,
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(failed(&error)),
        };
        let ended = service.cancellation_token();
        tokio::select! {
            () = stop.cancelled() => {
                ended.cancel();
                Ok(())
            }
            ended = service.waiting() => ended.map(drop).map_err(|error| failed(&error)),
        }
    }

    /// Serves clients over streamable HTTP at the path `/mcp`, until `stop` is cancelled. Reports the address first.
    ///
    /// # Errors
    /// Same as [`BoundAddress::listen`] and [`BoundAddress::serve`], and the errors of `report`.
    pub async fn serve_http(
        self,
        address: ServeAddress,
        token: Option<String>,
        stop: CancellationToken,
        report: impl FnOnce(&str) -> Result<()>,
    ) -> Result<()> {
        let (bound, shown) = BoundAddress::listen(address, token.is_some()).await?;
        // Turn off the library's check of hosts, because `admit` checks hosts and origins.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_cancellation_token(stop.child_token())
            .with_max_request_body_bytes(LONGEST);
        let service =
            StreamableHttpService::new(move || Ok(self.clone()), Arc::new(LocalSessionManager::default()), config);
        let access = Arc::new(Access { token });
        let router = axum::Router::new()
            .nest_service("/mcp", service)
            .layer(axum::middleware::from_fn_with_state(access, admit));
        report(&format!("{shown}/mcp"))?;
        bound.serve(router, stop).await
    }

    async fn call(&self, name: &str, arguments: JsonObject) -> Answer {
        let shared = &self.shared;
        match name {
            "list_papers" => Ok(shared.papers()),
            "draw_samples" => shared.samples(&tools::parse(arguments)?),
            "start_attempt" => shared.begin(&tools::parse(arguments)?).await,
            "result" => shared.wait(&attempt_of(&arguments)?).await,
            "report" => shared.report(),
            _ => shared.act(name, arguments).await,
        }
    }
}

impl Shared {
    fn papers(&self) -> String {
        let tasks = self.host.tasks();
        let papers: Vec<Value> = tasks
            .items()
            .iter()
            .map(|item| {
                let facts = item.facts();
                let sizes = tasks.sizes(item.as_ref()).unwrap_or_default();
                json!({
                    "paper": item.id(), "title": facts.title, "authors": facts.authors, "year": facts.year,
                    "url": facts.url, "experiments": facts.experiments.len(), "n": sizes,
                    "text": shown_text(tasks, item.as_ref()).is_some().then(|| uri(item.id())),
                })
            })
            .collect();
        json!({ "family": tasks.family().name(), "papers": papers }).to_string()
    }

    fn samples(&self, asked: &DrawArguments) -> Answer {
        let tasks = self.host.tasks();
        let split = asked.split.as_deref().map_or(Ok(Split::default()), str::parse).map_err(|error| told(&error))?;
        let choice = TaskChoice { item: asked.paper.clone(), n: asked.n, split, ..TaskChoice::default() };
        let (seed, count) = (asked.seed.unwrap_or_else(rand::random), asked.count.unwrap_or(1));
        let drawn = tasks.draw(&choice, seed, usize::from(count)).map_err(|error| told(&error))?;
        let shown = |sample: &Sample| json!({ "sample": sample.id(), "paper": sample.item(), "n": sample.n() });
        let drawn: Vec<Value> = drawn.iter().map(shown).collect();
        Ok(json!({ "samples": drawn }).to_string())
    }

    async fn begin(&self, asked: &StartArguments) -> Answer {
        let choice = TaskChoice { sample: Some(asked.sample.clone()), ..TaskChoice::default() };
        let episode = self.host.start(&self.client, &choice).map_err(|why| match why {
            NotStarted::Capacity(what) => format!("no attempt can start now: {what}"),
            NotStarted::Request(error) => told(&error),
            NotStarted::Stopped => "the server is being stopped".to_owned(),
        })?;
        // The name contains a random number, so that clients cannot guess the names of other clients' attempts.
        let handle = format!("{}.{}-{:016x}", episode.sample, episode.attempt, rand::random::<u64>());
        let episode = Arc::new(Mutex::new(episode));
        self.keep(handle.clone(), episode.clone());
        let news = episode.lock().await.wait(PATIENCE).await;
        Ok(shown(&handle, news))
    }

    /// Remembers an attempt, and forgets ended ones if there are too many.
    fn keep(&self, handle: String, episode: Arc<Mutex<Episode>>) {
        let mut attempts = self.attempts.write().unwrap_or_else(PoisonError::into_inner);
        if attempts.len() >= MOST_KEPT {
            // If an attempt is locked, a call on it is in progress, so the attempt has not ended.
            attempts.retain(|_, episode| !episode.try_lock().is_ok_and(|episode| episode.outcome().is_some()));
        }
        attempts.insert(handle, episode);
    }

    fn find(&self, handle: &str) -> std::result::Result<Arc<Mutex<Episode>>, String> {
        let attempts = self.attempts.read().unwrap_or_else(PoisonError::into_inner);
        let known = attempts.get(handle).cloned();
        known.ok_or_else(|| "there is no such attempt: `start_attempt` returns the name of one".to_owned())
    }

    async fn act(&self, tool: &str, mut arguments: JsonObject) -> Answer {
        let handle = attempt_of(&arguments)?;
        let episode = self.find(&handle)?;
        arguments.remove("attempt");
        let mut episode = episode.lock().await;
        episode.call(tool, arguments.into(), "").map_err(|what| format!("{what}: see `result`"))?;
        Ok(shown(&handle, episode.wait(PATIENCE).await))
    }

    async fn wait(&self, handle: &str) -> Answer {
        let episode = self.find(handle)?;
        let mut episode = episode.lock().await;
        if !episode.is_busy() && episode.outcome().is_none() {
            return Ok(json!({ "attempt": handle, "state": "waiting for your next call" }).to_string());
        }
        Ok(shown(handle, episode.wait(PATIENCE).await))
    }

    fn report(&self) -> Answer {
        let records = self.host.store().records().map_err(|error| told(&error))?;
        if records.is_empty() {
            return Ok("no attempt has ended yet".to_owned());
        }
        Ok(brief_console(&summarise(&outcomes(&records), &SummaryOptions::default())))
    }
}

/// Returns the argument `attempt` of a call.
fn attempt_of(arguments: &JsonObject) -> std::result::Result<String, String> {
    let given = arguments.get("attempt").and_then(Value::as_str);
    given.map(str::to_owned).ok_or_else(|| "`attempt` is missing: `start_attempt` returns it".to_owned())
}

/// Formats an attempt's progress for the assistant.
fn shown(handle: &str, news: Progress) -> String {
    match news {
        Progress::Opened(opening) => {
            json!({ "attempt": handle, "task": opening.prompt, "how": opening.system }).to_string()
        }
        Progress::Observed(observed) => observed.text,
        Progress::Pending => json!({
            "attempt": handle, "state": "not finished yet", "hint": "call `result` to wait for it",
        })
        .to_string(),
        Progress::Ended(outcome) => {
            let mut ended = outcome.record.as_ref().map(figures).unwrap_or_default();
            ended.insert("attempt".to_owned(), json!(handle));
            ended.insert("reward".to_owned(), json!(outcome.reward));
            ended.insert("lost".to_owned(), json!(outcome.lost.is_some()));
            Value::Object(ended).to_string()
        }
    }
}

fn told(error: &Error) -> String {
    match &error.hint {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

/// Returns the URI of a paper's text.
fn uri(id: &str) -> String {
    format!("paper://{id}")
}

/// Returns the text that every attempt at an item may read. The samples of the family `command` differ in how much of
/// the text they show, so that family has no such text.
fn shown_text(tasks: &Tasks, item: &dyn Item) -> Option<String> {
    let withholds = tasks.family().name() == COMMAND;
    item.facts().text.filter(|_| !withholds)
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("autoexperiment", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all(&self.shared.host)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        // When the client leaves, the library cancels its calls. They must end, because a running call keeps its
        // attempt open.
        let answer = tokio::select! {
            biased;
            () = context.ct.cancelled() => Err("the call was cancelled: see `result`".to_owned()),
            answer = self.call(&request.name, request.arguments.unwrap_or_default()) => answer,
        };
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(what) => CallToolResult::error(vec![ContentBlock::text(what)]),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> std::result::Result<ListResourcesResult, ErrorData> {
        let mut resources = Vec::new();
        let tasks = self.shared.host.tasks();
        for item in tasks.items() {
            if shown_text(tasks, item.as_ref()).is_some() {
                let about = "The paper's text without its results.";
                resources.push(Resource::new(uri(item.id()), item.facts().title).with_description(about));
            }
        }
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> std::result::Result<ReadResourceResponse, ErrorData> {
        let tasks = self.shared.host.tasks();
        let item = tasks.items().iter().find(|item| uri(item.id()) == request.uri);
        let found = item.and_then(|item| shown_text(tasks, item.as_ref()));
        let Some(text) = found else {
            return Err(ErrorData::resource_not_found("there is no such text", None));
        };
        let contents = ResourceContents::text(text, request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
