//! One client's WebSocket: a session with at most one episode at a time.
//!
//! A separate task reads the client's messages and passes them on through a queue of length one. So a client that
//! floods the server only fills its own connection, and the server notices that a client has left even while a call
//! runs. Answers are sent one per message and in order. A client that does not take its answers is dropped.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::wire::{self, ClientMessage, ErrorCode, ResetRequest, StepRequest, WAIT, WireError};
use crate::episode::{Episode, EpisodeHost, NotStarted, Progress, SUBMIT};
use crate::run::ClientName;

/// Default time after which a client that waits for a result gets the answer that it is still pending. OpenEnv's
/// clients give up after 60 s.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Longest time between pings. If sessions may be idle only for a shorter time, this time is used instead.
const PING: Duration = Duration::from_secs(20);
/// Shortest time between pings.
const SHORTEST_PING: Duration = Duration::from_secs(1);
/// Time within which a client must receive an answer.
const SEND: Duration = Duration::from_secs(30);

/// A client's session.
pub struct Session {
    host: Arc<EpisodeHost>,
    client: ClientName,
    episode: Option<Episode>,
    patience: Duration,
    /// Maximum time without a message while no episode runs.
    idle: Duration,
    tools: Vec<Value>,
}

/// Reaction to a client's message.
enum Answer {
    Text(String),
    Close,
}

/// Describes the tools of a host to clients.
pub fn tools(host: &EpisodeHost) -> Vec<Value> {
    let mut tools: Vec<Value> = host
        .tools()
        .map(|tool| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters }))
        .collect();
    if !tools.iter().any(|tool| tool["name"] == SUBMIT || tool["name"] == "final_answer") {
        tools.push(json!({
            "name": SUBMIT,
            "description": "Report the results of all experiments and finish. Nothing can be done afterwards.",
            "parameters": {
                "type": "object",
                "properties": { "answer": { "type": "string", "description": "The results, a JSON object written as text." } },
                "required": ["answer"],
            },
        }));
    }
    tools
}

impl Session {
    pub fn new(host: Arc<EpisodeHost>, client: ClientName, patience: Duration, idle: Duration) -> Self {
        let tools = tools(&host);
        Self { host, client, episode: None, patience, idle, tools }
    }

    /// Answers messages until the client leaves or `stop` is cancelled. Dropping the session ends its episode.
    pub async fn serve(mut self, socket: WebSocket, stop: CancellationToken) {
        let (mut sink, stream) = socket.split();
        let gone = CancellationToken::new();
        let (sender, mut messages) = mpsc::channel(1);
        let reader = tokio::spawn(read(stream, sender, gone.clone()));
        let pause = self.idle.clamp(SHORTEST_PING, PING);
        let mut pings = interval_at(Instant::now() + pause, pause);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = Instant::now();
        loop {
            let message = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                message = messages.recv() => message,
                _ = pings.tick() => {
                    let is_running = self.episode.as_ref().is_some_and(|episode| episode.outcome().is_none());
                    let is_idle = !is_running && last.elapsed() > self.idle;
                    if is_idle || !send(&mut sink, Message::Ping(Vec::new().into())).await {
                        break;
                    }
                    continue;
                }
            };
            let Some(message) = message else { break };
            let answer = tokio::select! {
                biased;
                () = gone.cancelled() => break,
                () = stop.cancelled() => break,
                answer = self.answer(message) => answer,
            };
            last = Instant::now();
            match answer {
                Answer::Close => break,
                Answer::Text(text) => {
                    if !send(&mut sink, Message::Text(text.into())).await {
                        break;
                    }
                }
            }
        }
        drop(self);
        reader.abort();
        let why = if stop.is_cancelled() { "the server is being stopped" } else { "" };
        let farewell = Message::Close(Some(CloseFrame { code: 1000, reason: why.into() }));
        let _ = timeout(Duration::from_secs(1), sink.send(farewell)).await;
    }

    async fn answer(&mut self, message: Result<String, WireError>) -> Answer {
        let answered = match message.and_then(|text| wire::parse(&text)) {
            Ok(ClientMessage::Close) => return Answer::Close,
            Ok(ClientMessage::State) => Ok(wire::state(self.episode.as_ref())),
            Ok(ClientMessage::Reset(asked)) => self.reset(&asked).await,
            Ok(ClientMessage::Step(call)) => self.step(&call).await,
            Err(error) if error.is_call => self.malformed(error).await,
            Err(error) => Err(error),
        };
        Answer::Text(answered.unwrap_or_else(|error| error.encode()))
    }

    async fn reset(&mut self, asked: &ResetRequest) -> Result<String, WireError> {
        let choice = asked.choice()?;
        let client = asked.client()?.unwrap_or_else(|| self.client.clone());
        // A wrong request must not end the running episode.
        self.host.check(&client, &choice).map_err(|error| WireError::of(&error))?;
        self.client = client;
        // An episode counts towards the host's limit until it has been judged, even after the client has left it. If
        // the limit prevents the new episode, wait for the verdict on the old one and try again.
        let left = self.episode.take().map(Episode::leave);
        let episode = match (self.host.start(&self.client, &choice), left) {
            (Err(NotStarted::Capacity(_)), Some(left)) => {
                let _ = timeout(self.patience, left.judged()).await;
                self.host.start(&self.client, &choice)
            }
            (started, _) => started,
        };
        let episode = episode.map_err(|why| match why {
            NotStarted::Capacity(what) => WireError::new(ErrorCode::CapacityReached, what),
            NotStarted::Request(error) => WireError::of(&error),
            NotStarted::Stopped => WireError::new(ErrorCode::SessionError, "the server is being stopped"),
        })?;
        self.news(episode).await
    }

    async fn step(&mut self, call: &StepRequest) -> Result<String, WireError> {
        let refused = |what: &str| WireError::new(ErrorCode::ExecutionError, what);
        let Some(mut episode) = self.episode.take() else {
            return Err(refused("there is no episode: send `reset` first"));
        };
        // If there is nothing to wait for, `wait` is malformed like any call of a tool that does not exist.
        let is_wait = call.tool == WAIT && episode.is_busy();
        if !is_wait && let Err(what) = episode.call(&call.tool, call.arguments(), &call.text) {
            self.episode = Some(episode);
            return Err(refused(&format!(
                "{what}: {}",
                if what.starts_with("an") { "call `wait`" } else { "send `reset`" }
            )));
        }
        self.news(episode).await
    }

    /// Counts an unreadable message as a malformed call if an episode waits for a call. If such messages were only
    /// refused, a learner could send any number of them without using up its steps, and its client would have to decide
    /// whether the episode counts.
    async fn malformed(&mut self, error: WireError) -> Result<String, WireError> {
        let Some(episode) = &mut self.episode else { return Err(error) };
        if episode.call_unreadably(&error.message).is_err() {
            return Err(error);
        }
        let Some(episode) = self.episode.take() else { return Err(error) };
        self.news(episode).await
    }

    /// Waits until an episode has something to report, or for at most `patience`, and returns the message for the
    /// client.
    async fn news(&mut self, episode: Episode) -> Result<String, WireError> {
        // Keep the episode in the session while waiting, because the client may leave meanwhile.
        let episode = self.episode.insert(episode);
        Ok(match episode.wait(self.patience).await {
            Progress::Opened(opening) => wire::opened(episode, &opening, &self.tools),
            Progress::Observed(observed) => wire::observed(episode, &observed),
            Progress::Pending => wire::pending(episode),
            Progress::Ended(outcome) => wire::ended(episode, &outcome),
        })
    }
}

/// Passes the client's messages on to [`Session::serve`] until the client leaves, and then cancels `gone`.
async fn read(
    mut stream: SplitStream<WebSocket>,
    messages: mpsc::Sender<Result<String, WireError>>,
    gone: CancellationToken,
) {
    let _gone = gone.drop_guard();
    loop {
        let message = match stream.next().await {
            Some(Ok(Message::Text(text))) => Ok(text.as_str().to_owned()),
            Some(Ok(Message::Binary(_))) => {
                Err(WireError::of_call(ErrorCode::InvalidJson, "messages are text, not binary"))
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
        };
        if messages.send(message).await.is_err() {
            return;
        }
    }
}

/// Sends a message; `false` if the client doesn't take it.
async fn send(sink: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(timeout(SEND, sink.send(message)).await, Ok(Ok(())))
}
