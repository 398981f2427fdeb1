//! Plays a recording back without a network: the same request gets the same reply, byte for byte.
//!
//! Equal requests, such as the first requests of k attempts at one sample, get the recorded replies in order; after the
//! last reply, the first is used again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::recording::{self, RecordedOutcome};
use super::{Message, Model, ModelError, QueryFailed, Quote, Reply, Request, Role};
use crate::error::{Error, Result};

/// Maximum characters quoted from each of two differing texts.
const SHOWN: usize = 60;

/// A recording that is played back.
pub(super) struct Replay {
    name: String,
    path: PathBuf,
    /// The provider's name of the recorded model.
    model: Option<String>,
    calls: HashMap<String, RecordedOutcomes>,
}

/// The recorded outcomes of one request, in order, and the number of outcomes played back so far.
#[derive(Default)]
struct RecordedOutcomes {
    outcomes: Vec<RecordedOutcome>,
    played: AtomicUsize,
}

impl Replay {
    /// Reads a recording.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be read, is empty, or has a line that is not a recorded call.
    pub(super) fn load(name: &str, path: &Path) -> Result<Self> {
        let mut calls: HashMap<String, RecordedOutcomes> = HashMap::new();
        let mut model = None;
        recording::read(path, |call| {
            model = model.take().or(call.model);
            calls.entry(recording::key(&call.request)).or_default().outcomes.push(call.outcome);
        })?;
        if calls.is_empty() {
            return Err(Error::usage("the recording is empty")
                .at(path, None)
                .hint("give a file that `--record` has written"));
        }
        Ok(Self { name: name.to_owned(), path: path.to_owned(), model, calls })
    }

    /// Explains how a request differs from the most similar recorded request with the same call number. Reads the file
    /// again, because requests contain whole conversations and are not kept in memory.
    fn explain(&self, request: &Request) -> String {
        let mut nearest: Option<(usize, Request)> = None;
        let read = recording::read(&self.path, |call| {
            let same = same_messages(&call.request, request);
            if call.request.call == request.call && nearest.as_ref().is_none_or(|(most, _)| same > *most) {
                nearest = Some((same, call.request));
            }
        });
        let file = self.path.display();
        match (read, nearest) {
            (Err(error), _) => {
                format!("no recorded reply for call {}; the reason is unknown, because {error}", request.call)
            }
            (Ok(_), None) => {
                format!("`{file}` has no reply for call {}: no recorded attempt made so many calls", request.call)
            }
            (Ok(_), Some((same, recorded))) => {
                format!(
                    "`{file}` has no reply for this request at call {}: {}",
                    request.call,
                    difference(same, &recorded, request)
                )
            }
        }
    }
}

/// Counts the leading messages that two requests have in common.
fn same_messages(one: &Request, other: &Request) -> usize {
    one.messages.iter().zip(&other.messages).take_while(|(one, other)| one == other).count()
}

/// Describes the first difference between two requests whose first `same` messages are equal.
fn difference(same: usize, recorded: &Request, asked: &Request) -> String {
    match (recorded.messages.get(same), asked.messages.get(same)) {
        (Some(before), Some(now)) => message_difference(same, before, now),
        (Some(before), None) => {
            format!("message {same} ({}) of the recording is not in the request", role(before.role))
        }
        (None, Some(now)) => format!("message {same} ({}) of the request is not in the recording", role(now.role)),
        (None, None) if recorded.tools != asked.tools => {
            "the tools on offer differ, the messages are the same".to_owned()
        }
        (None, None) => format!(
            "the sampling differs: {} recorded, {} asked",
            serde_json::json!(recorded.sampling),
            serde_json::json!(asked.sampling)
        ),
    }
}

fn message_difference(place: usize, before: &Message, now: &Message) -> String {
    let from = format!("message {place} ({}) differs", role(now.role));
    if before.role != now.role {
        return format!("{from}: in the recording, its role is {}", role(before.role));
    }
    if before.content == now.content {
        return format!("{from} in its tool calls");
    }
    let at = before.content.chars().zip(now.content.chars()).take_while(|(one, other)| one == other).count();
    let shown = |text: &str| text.chars().skip(at).take(SHOWN).collect::<String>();
    format!(
        "{from} from character {at} on: `{}` recorded, `{}` asked",
        shown(&before.content).escape_debug(),
        shown(&now.content).escape_debug()
    )
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[async_trait]
impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider_name(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the cost of the most expensive outcome that was recorded for this request, a reply or a failure.
    fn quote(&self, request: &Request) -> Quote {
        let recorded = self.calls.get(&recording::key(request));
        let costs = recorded.into_iter().flat_map(|recorded| &recorded.outcomes).map(|outcome| match outcome {
            RecordedOutcome::Reply(reply) => reply.cost,
            RecordedOutcome::Failed(failed) => failed.cost,
        });
        Quote { read: costs.fold(0.0, f64::max), ..Quote::default() }
    }

    async fn query(&self, request: &Request) -> Result<Reply, QueryFailed> {
        let Some(recorded) = self.calls.get(&recording::key(request)) else {
            return Err(ModelError::Exhausted(self.explain(request)).into());
        };
        let turn = recorded.played.fetch_add(1, Ordering::Relaxed) % recorded.outcomes.len();
        match &recorded.outcomes[turn] {
            RecordedOutcome::Reply(reply) => Ok(reply.as_ref().clone()),
            RecordedOutcome::Failed(failed) => Err(failed.clone()),
        }
    }
}
