//! The server: connections in, calls out, replies back.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::broken::Broken;
use super::protocol::Protocol;
use super::stream::Stream;
use super::{Ask, Asked, Finish, Given, Head, Read, Refusal, Why, anthropic, gemini, thoughts};
use crate::model::quote::tokens_read;
use crate::model::{Piece, Reply};

/// Bytes of the longest request that is read.
const LONGEST: usize = 8 << 20;
/// Bytes of the longest name of a model, and of a text to stop at; both are repeated or searched for often.
const LONGEST_NAME: usize = 200;
/// Most texts to stop at.
const MOST_STOPS: usize = 16;
/// How long a streamed call may be silent before the client is told to go on waiting, again and again.
const SILENCE: Duration = Duration::from_secs(10);
/// Calls that wait to be taken.
const WAITING: usize = 16;

/// A running gateway; stops when dropped.
pub struct Gateway {
    server: JoinHandle<()>,
    broken: Broken,
}

impl Gateway {
    /// Whether it has broken down: its server has ended, or an answer was never finished for a fault of its own.
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

/// What all connections share.
struct Shared {
    asks: mpsc::Sender<Asked>,
    /// Requests are parsed and handed over one at a time: what is parsed takes many times the room of its text.
    parsing: Semaphore,
    /// Demanded of every call, where strangers can connect.
    key: Option<String>,
    /// What models are said to be there.
    model: String,
    calls: AtomicU64,
    broken: Broken,
    /// The model's thoughts, as they are known to the agent.
    thoughts: Mutex<thoughts::Given>,
}

/// Serves these connections until they end. Calls go to the receiver that comes back, and what is refused of the requests
/// that have the key; when it is dropped, calls are refused. `model` is the one name that is listed.
pub fn serve<C>(connections: mpsc::Receiver<C>, key: Option<String>, model: &str) -> (Gateway, mpsc::Receiver<Asked>)
where
    C: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (asks, asked) = mpsc::channel(WAITING);
    let parsing = Semaphore::new(1);
    let broken = Broken::default();
    let shared = Arc::new(Shared {
        asks,
        parsing,
        key,
        model: model.to_owned(),
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
        // It ends only with an error, and connections that are handed over have none.
        let _ = axum::serve(Incoming(connections), router).await;
    });
    (Gateway { server, broken }, asked)
}

/// Where connections come from.
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

async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    call(Protocol::Chat, &shared, request, None).await
}

async fn responses(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    call(Protocol::Responses, &shared, request, None).await
}

async fn messages(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    call(Protocol::Messages, &shared, request, None).await
}

async fn count_tokens(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    count(Protocol::Messages, &shared, request, anthropic::count).await
}

/// Gemini's calls: the path ends with the model's name and what is wanted of it.
async fn contents(State(shared): State<Arc<Shared>>, Path(name): Path<String>, request: Request) -> Response {
    let protocol = Protocol::Gemini;
    match name.rsplit_once(':') {
        Some((model, "generateContent")) => call(protocol, &shared, request, Some((model, false))).await,
        Some((model, "streamGenerateContent"))
            if request.uri().query().is_some_and(|query| query.contains("alt=sse")) =>
        {
            call(protocol, &shared, request, Some((model, true))).await
        }
        Some((_, "streamGenerateContent")) => {
            let refusal = Refusal::invalid("this gateway streams events: ask with `alt=sse`");
            shared.tell(&refusal).await;
            refuse(protocol, &refusal)
        }
        Some((_, "countTokens")) => count(protocol, &shared, request, gemini::count).await,
        _ => unknown(State(shared), request).await,
    }
}

/// An estimate, from the bytes of a request.
async fn count(protocol: Protocol, shared: &Shared, request: Request, says: fn(u64) -> Value) -> Response {
    match shared.read(protocol, request).await {
        Ok((read, _)) => json_response(200, &says(tokens_read(&read.request))),
        Err(refusal) => refuse(protocol, &refusal),
    }
}

async fn gemini_models(State(shared): State<Arc<Shared>>) -> Response {
    json_response(200, &gemini::models(&shared.model))
}

async fn gemini_model(Path(name): Path<String>) -> Response {
    json_response(200, &gemini::model(&name))
}

/// The list is of both protocols at once.
async fn models(State(shared): State<Arc<Shared>>) -> Response {
    let name = &shared.model;
    json_response(
        200,
        &json!({"object": "list", "data": [listed(name)], "first_id": name, "last_id": name, "has_more": false}),
    )
}

async fn model_of(Path(name): Path<String>) -> Response {
    json_response(200, &listed(&name))
}

fn listed(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "created": 0, "owned_by": "gateway",
        "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z",
    })
}

async fn unknown(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let message = "there is no such path: this gateway has /v1/chat/completions, /v1/responses, \
                   /v1/messages, /v1beta/models/NAME:generateContent and /v1/models";
    // Whoever only looks whether somebody is there has asked nothing.
    if request.method() == Method::POST && shared.admit_to(&request).is_ok() {
        let path: String = request.uri().path().chars().take(LONGEST_NAME).collect();
        shared.tell(&Refusal::invalid(format!("`{path}`: {message}"))).await;
    }
    json_response(404, &json!({"error": {"message": message, "type": "not_found_error", "code": "not_found"}}))
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

/// Answers a call; `path` says which model and whether in a stream where the body does not.
async fn call(protocol: Protocol, shared: &Arc<Shared>, request: Request, path: Option<(&str, bool)>) -> Response {
    let _watch = shared.broken.watch();
    let (read, parsing) = match shared.read(protocol, request).await {
        Ok(read) => read,
        Err(refusal) => return refuse(protocol, &refusal),
    };
    let Read { mut request, stops, model, streams, counts, thinks, kinds, left_out } = read;
    let (model, streams) = path
        .map_or((model, streams), |(model, streams)| (model.chars().take(LONGEST_NAME).collect::<String>(), streams));
    let number = shared.calls.fetch_add(1, Ordering::Relaxed);
    shared.thoughts().put_back(&mut request.messages);
    let (answer, answered) = oneshot::channel();
    let (to, pieces) = mpsc::unbounded_channel();
    let ask = Ask { request, left_out, pieces: streams.then_some(to), answer };
    if shared.asks.send(Asked::Call(Box::new(ask))).await.is_err() {
        return refuse(protocol, &closed());
    }
    drop(parsing);
    let head = Head { model, number, counts, thinks, kinds };
    let mut reply = Coming { number, pieces, answered, shared: shared.clone() };
    if !streams {
        return match reply.answer().await {
            Ok(given) => json_response(200, &protocol.body(head, given, &stops)),
            Err(refusal) => refuse(protocol, &refusal),
        };
    }
    let stream = Stream::new(protocol.events(head), stops);
    match reply.next().await {
        // Clients understand a refusal best as a status.
        Next::Answer(Err(refusal)) => refuse(protocol, &refusal),
        next => {
            let (to, mut from) = mpsc::channel::<Result<Bytes, Infallible>>(4);
            tokio::spawn(write(protocol, stream, reply, next, to));
            event_stream(Body::from_stream(stream::poll_fn(move |context| from.poll_recv(context))))
        }
    }
}

/// A reply that is under way.
struct Coming {
    number: u64,
    shared: Arc<Shared>,
    pieces: mpsc::UnboundedReceiver<Piece>,
    answered: oneshot::Receiver<Result<Given, Refusal>>,
}

/// What comes next of it.
enum Next {
    Piece(Piece),
    Silence,
    Answer(Result<Given, Refusal>),
}

impl Coming {
    async fn answer(&mut self) -> Result<Given, Refusal> {
        let answer = (&mut self.answered).await;
        self.told(answer)
    }

    /// The answer as the agent is told: the end of its budget is a reply that says so, for an agent that is refused takes
    /// the key for wrong or the provider for down, and tries again or leaves with an error.
    fn told(&self, answer: Result<Result<Given, Refusal>, oneshot::error::RecvError>) -> Result<Given, Refusal> {
        match answer.unwrap_or_else(|_| Err(closed())) {
            Ok(given) => {
                self.shared.thoughts().keep(self.number, &given.reply.thoughts);
                Ok(given)
            }
            Err(Refusal { why: Why::Budget, message }) => {
                Ok(Given { reply: Reply { text: message, ..Reply::default() }, most: None })
            }
            Err(refusal) => Err(refusal),
        }
    }

    async fn next(&mut self) -> Next {
        tokio::select! {
            // Pieces that were sent come before the answer.
            biased;
            Some(piece) = self.pieces.recv() => Next::Piece(piece),
            answer = &mut self.answered => Next::Answer(self.told(answer)),
            () = tokio::time::sleep(SILENCE) => Next::Silence,
        }
    }
}

/// Writes a stream to its end, or until the agent has gone away; dropping our end of the answer tells so.
async fn write(
    protocol: Protocol,
    mut stream: Stream,
    mut reply: Coming,
    mut next: Next,
    to: mpsc::Sender<Result<Bytes, Infallible>>,
) {
    let _watch = reply.shared.broken.watch();
    loop {
        let (events, goes_on) = match next {
            Next::Piece(piece) => (stream.piece(piece), true),
            Next::Silence => (protocol.patience().to_owned(), true),
            Next::Answer(Ok(given)) => {
                let finish = Finish::of(&given, stream.stops());
                (stream.end(&given.reply, &finish), false)
            }
            Next::Answer(Err(refusal)) => (protocol.error_events(&refusal), false),
        };
        if !events.is_empty() && to.send(Ok(events.into())).await.is_err() || !goes_on {
            return;
        }
        next = reply.next().await;
    }
}

impl Shared {
    /// Reads a request, once its key has been looked at; nothing else of a stranger's is. While the permit is held no other
    /// request is parsed.
    async fn read(&self, protocol: Protocol, request: Request) -> Result<(Read, Option<SemaphorePermit<'_>>), Refusal> {
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
    async fn tell(&self, refusal: &Refusal) {
        // When nobody listens any more, there is no record either.
        let _ = self.asks.send(Asked::Refused(refusal.clone())).await;
    }

    fn thoughts(&self) -> std::sync::MutexGuard<'_, thoughts::Given> {
        self.thoughts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit_to(&self, request: &Request) -> Result<(), Refusal> {
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

fn refuse(protocol: Protocol, refusal: &Refusal) -> Response {
    json_response(refusal.why.status(), &protocol.error(refusal))
}

fn closed() -> Refusal {
    Refusal { why: Why::Closed, message: "the attempt is over".into() }
}

fn json_response(status: u16, body: &Value) -> Response {
    respond(status, "application/json", Body::from(body.to_string()))
}

fn event_stream(body: Body) -> Response {
    respond(200, "text/event-stream; charset=utf-8", body)
}

fn respond(status: u16, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    if status != 200 {
        // Both providers' clients keep to it.
        headers.insert("x-should-retry", header::HeaderValue::from_static("false"));
    }
    response
}
