//! The gateway's server and its routes: accepts connections, hands calls to the harness and writes replies.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::Method;
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::answers::{closed, event_stream, json_response, listed, refuse};
use super::broken::PanicFlag;
use super::coming::{ReplyEvent, ReplyInProgress, write};
use super::protocol::WireProtocol;
use super::shared::{GatewayState, LONGEST_NAME};
use super::stream::Stream;
use super::{AgentCall, CallContext, GatewayRequest, ListedModel, ParsedRequest, Refusal, anthropic, gemini};
use crate::model::{pieces, quote::tokens_read};

/// Capacity of the queue of calls to the harness.
const WAITING: usize = 16;

/// A running gateway; stops when dropped.
pub struct Gateway {
    server: JoinHandle<()>,
    broken: PanicFlag,
}

impl Gateway {
    /// Whether the gateway has crashed: the server ended, or an answer was not finished because of a bug.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.server.is_finished() || self.broken.is_told()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Answers requests on all connections that `connections` receives, until the returned gateway is dropped. The returned
/// receiver gets all calls to the model, and reports of refused requests that had the right key. Once the receiver is
/// dropped, calls are refused. The list of models contains only `model`.
pub fn serve<C>(
    connections: mpsc::Receiver<C>,
    key: Option<String>,
    model: ListedModel,
) -> (Gateway, mpsc::Receiver<GatewayRequest>)
where
    C: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (asks, asked) = mpsc::channel(WAITING);
    let parsing = Semaphore::new(1);
    let broken = PanicFlag::default();
    let shared = Arc::new(GatewayState {
        asks,
        parsing,
        key,
        model,
        calls: AtomicU64::new(0),
        broken: broken.clone(),
        thoughts: Mutex::default(),
    });
    let routes = Router::new()
        .route("/chat/completions", post(chat))
        .route("/responses", post(responses))
        .route("/messages", post(messages))
        .route("/messages/count_tokens", post(count_tokens))
        .route("/models", get(models))
        .route("/models/{*name}", get(model_of));
    let of_gemini =
        Router::new().route("/models", get(gemini_models)).route("/models/{*name}", get(gemini_model).post(contents));
    let router = Router::new()
        .nest("/v1", routes.clone())
        .nest("/v1beta", of_gemini.clone())
        .nest("/v1alpha", of_gemini)
        .merge(routes)
        .fallback(unknown)
        .with_state(shared);
    let server = tokio::spawn(async move {
        // `serve` returns only on an error, which connections from a channel never cause.
        let _ = axum::serve(Incoming(connections), router).await;
    });
    (Gateway { server, broken }, asked)
}

/// A listener that takes its connections from a channel.
struct Incoming<C>(mpsc::Receiver<C>);

impl<C> axum::serve::Listener for Incoming<C>
where
    C: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    type Io = C;
    type Addr = ();

    async fn accept(&mut self) -> (C, ()) {
        match self.0.recv().await {
            Some(connection) => (connection, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

async fn chat(State(shared): State<Arc<GatewayState>>, request: Request) -> Response {
    call(WireProtocol::Chat, &shared, request, None).await
}

async fn responses(State(shared): State<Arc<GatewayState>>, request: Request) -> Response {
    call(WireProtocol::Responses, &shared, request, None).await
}

async fn messages(State(shared): State<Arc<GatewayState>>, request: Request) -> Response {
    call(WireProtocol::Messages, &shared, request, None).await
}

async fn count_tokens(State(shared): State<Arc<GatewayState>>, request: Request) -> Response {
    count(WireProtocol::Messages, &shared, request, anthropic::count).await
}

/// Handles Gemini's calls: the path ends with the model's name and the method.
async fn contents(State(shared): State<Arc<GatewayState>>, Path(name): Path<String>, request: Request) -> Response {
    let protocol = WireProtocol::Gemini;
    match name.rsplit_once(':') {
        Some((model, "generateContent")) => call(protocol, &shared, request, Some((model, false))).await,
        Some((model, "streamGenerateContent"))
            if request.uri().query().is_some_and(|query| query.contains("alt=sse")) =>
        {
            call(protocol, &shared, request, Some((model, true))).await
        }
        Some((_, "streamGenerateContent")) => {
            let refusal = Refusal::invalid("this gateway streams events: ask with `alt=sse`");
            shared.report_refusal(&refusal).await;
            refuse(protocol, &refusal)
        }
        Some((_, "countTokens")) => count(protocol, &shared, request, gemini::count).await,
        _ => unknown(State(shared), request).await,
    }
}

/// Answers with an estimate of a request's tokens, made from its bytes.
async fn count(protocol: WireProtocol, shared: &GatewayState, request: Request, says: fn(u64) -> Value) -> Response {
    match shared.read(protocol, request).await {
        Ok((read, _)) => json_response(200, &says(tokens_read(&read.request))),
        Err(refusal) => refuse(protocol, &refusal),
    }
}

async fn gemini_models(State(shared): State<Arc<GatewayState>>) -> Response {
    json_response(200, &gemini::models(&shared.model))
}

async fn gemini_model(State(shared): State<Arc<GatewayState>>, Path(name): Path<String>) -> Response {
    json_response(200, &gemini::model(&ListedModel { name, context: shared.model.context }))
}

/// Lists the model, in a format that fits both OpenAI's and Anthropic's protocols.
async fn models(State(shared): State<Arc<GatewayState>>) -> Response {
    let name = &shared.model.name;
    json_response(
        200,
        &json!({"object": "list", "data": [listed(&shared.model)], "first_id": name, "last_id": name, "has_more": false}),
    )
}

async fn model_of(State(shared): State<Arc<GatewayState>>, Path(name): Path<String>) -> Response {
    json_response(200, &listed(&ListedModel { name, context: shared.model.context }))
}

async fn unknown(State(shared): State<Arc<GatewayState>>, request: Request) -> Response {
    let message = "there is no such path: this gateway has /v1/chat/completions, /v1/responses, \
                   /v1/messages, /v1beta/models/NAME:generateContent and /v1/models";
    // Report the request to the harness only if it is a POST request with the right key: other requests may just test
    // whether the server exists.
    if request.method() == Method::POST && shared.admit_to(&request).is_ok() {
        let path: String = request.uri().path().chars().take(LONGEST_NAME).collect();
        shared.report_refusal(&Refusal::invalid(format!("`{path}`: {message}"))).await;
    }
    json_response(404, &json!({"error": {"message": message, "type": "not_found_error", "code": "not_found"}}))
}

/// Answers a call. For Gemini, `path` holds the model's name and whether to stream.
async fn call(
    protocol: WireProtocol,
    shared: &Arc<GatewayState>,
    request: Request,
    path: Option<(&str, bool)>,
) -> Response {
    let _watch = shared.broken.watch();
    let (read, parsing) = match shared.read(protocol, request).await {
        Ok(read) => read,
        Err(refusal) => return refuse(protocol, &refusal),
    };
    let ParsedRequest { mut request, stops, model, streams, counts, thinks, kinds, left_out } = read;
    let (model, streams) = path
        .map_or((model, streams), |(model, streams)| (model.chars().take(LONGEST_NAME).collect::<String>(), streams));
    let number = shared.calls.fetch_add(1, Ordering::Relaxed);
    shared.thoughts().put_back(&mut request.messages);
    let (answer, answered) = oneshot::channel();
    let (to, pieces) = pieces();
    let ask = AgentCall { request, left_out, pieces: streams.then_some(to), answer };
    if shared.asks.send(GatewayRequest::Call(Box::new(ask))).await.is_err() {
        return refuse(protocol, &closed());
    }
    drop(parsing);
    let head = CallContext { model, number, counts, thinks, kinds };
    let mut reply = ReplyInProgress { number, pieces, answered, shared: shared.clone() };
    if !streams {
        return match reply.answer().await {
            Ok(given) => json_response(200, &protocol.body(head, given, &stops)),
            Err(refusal) => refuse(protocol, &refusal),
        };
    }
    let begin = move || Stream::new(protocol.events(head.clone()), stops.clone());
    match reply.next().await {
        // Before a stream has begun, clients handle a refusal best as an HTTP status.
        ReplyEvent::Answer(Err(refusal)) => refuse(protocol, &refusal),
        next => {
            let (to, mut from) = mpsc::channel::<Result<Bytes, Infallible>>(4);
            tokio::spawn(write(protocol, begin, reply, next, to));
            event_stream(Body::from_stream(stream::poll_fn(move |context| from.poll_recv(context))))
        }
    }
}
