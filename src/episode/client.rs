//! The client's side of an episode: calls tools and waits for their results and for the verdict.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use super::remote::{Observed, Opening, RemoteCall};
use crate::agent::LiveUsage;
use crate::run::AttemptRecord;
use crate::sample::Sample;

/// The outcome of an episode.
#[derive(Debug)]
pub struct EpisodeOutcome {
    /// The stored record; `None` if the attempt could not be made at all.
    pub record: Option<AttemptRecord>,
    /// The reward; `None` if the attempt was lost to infrastructure.
    pub reward: Option<f64>,
    /// Why the attempt was lost.
    pub lost: Option<String>,
}

/// The event that an episode's client waits for.
pub(super) enum Waiting {
    Opening(oneshot::Receiver<Opening>),
    Call(oneshot::Receiver<Observed>),
    /// Nothing: it is the client's turn, unless the agent has ended without a call, for example because the client
    /// was idle for too long.
    Nothing,
    /// The verdict. The agent has already ended.
    Outcome,
}

/// Reports that a client gets about its episode, one after the other.
#[derive(Debug)]
pub enum Progress {
    /// The episode has begun.
    Opened(Opening),
    /// A call was carried out.
    Observed(Observed),
    /// The episode has ended and was judged.
    Ended(Arc<EpisodeOutcome>),
    /// There is no news yet.
    Pending,
}

/// The client's side of an episode. Dropping it ends the attempt.
pub struct Episode {
    /// The sample.
    pub sample: Sample,
    /// Number of the attempt at this sample.
    pub attempt: u32,
    /// The label under which the episode is stored.
    pub label: String,
    pub(super) calls: mpsc::Sender<RemoteCall>,
    pub(super) waiting: Waiting,
    pub(super) outcome: watch::Receiver<Option<Arc<EpisodeOutcome>>>,
    pub(super) live: Arc<LiveUsage>,
    pub(super) _leaves: DropGuard,
}

/// An episode that its client has left and that is being judged.
pub struct LeftEpisode {
    outcome: watch::Receiver<Option<Arc<EpisodeOutcome>>>,
}

impl LeftEpisode {
    /// Waits until the episode is judged and its slot is free for another episode.
    pub async fn judged(mut self) {
        let _ = self.outcome.wait_for(Option::is_some).await;
    }
}

impl Episode {
    /// Calls a tool. [`Self::wait`] returns the result.
    ///
    /// # Errors
    /// Says why the client cannot call now: an earlier call still runs, or the episode is over.
    pub fn call(&mut self, tool: &str, arguments: Value, text: &str) -> std::result::Result<(), &'static str> {
        self.send(Ok((tool.to_owned(), arguments)), text)
    }

    /// Counts an unreadable message as a malformed call. `why` says why it cannot be read.
    ///
    /// # Errors
    /// Same as [`Self::call`].
    pub fn call_unreadably(&mut self, why: &str) -> std::result::Result<(), &'static str> {
        self.send(Err(why.to_owned()), "")
    }

    fn send(
        &mut self,
        called: std::result::Result<(String, Value), String>,
        text: &str,
    ) -> std::result::Result<(), &'static str> {
        match self.waiting {
            Waiting::Nothing => {}
            Waiting::Outcome => return Err("the episode is over"),
            _ => return Err("an earlier call is still being carried out"),
        }
        let (reply, observed) = oneshot::channel();
        let call = RemoteCall { called, text: text.to_owned(), reply };
        // The queue has room for one call, and a client never has more than one call under way, so sending fails only
        // if the agent has ended.
        self.waiting = match self.calls.try_send(call) {
            Ok(()) => Waiting::Call(observed),
            Err(_) => Waiting::Outcome,
        };
        Ok(())
    }

    /// Waits for the next [`Progress`], at most for `patience`.
    pub async fn wait(&mut self, patience: Duration) -> Progress {
        timeout(patience, self.next()).await.unwrap_or(Progress::Pending)
    }

    /// Waits for the next [`Progress`]. No progress is lost if the future is dropped before it is ready.
    async fn next(&mut self) -> Progress {
        let news = match &mut self.waiting {
            Waiting::Opening(opening) => opening.await.ok().map(Progress::Opened),
            Waiting::Call(observed) => observed.await.ok().map(Progress::Observed),
            Waiting::Nothing if !self.calls.is_closed() => return Progress::Pending,
            Waiting::Nothing | Waiting::Outcome => None,
        };
        if let Some(news) = news {
            self.waiting = Waiting::Nothing;
            return news;
        }
        self.waiting = Waiting::Outcome;
        let outcome = self.outcome.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        Progress::Ended(outcome.unwrap_or_else(|| {
            let lost = Some("the attempt failed within the harness".to_owned());
            Arc::new(EpisodeOutcome { record: None, reward: None, lost })
        }))
    }

    /// Returns the outcome, if the episode has been judged.
    #[must_use]
    pub fn outcome(&self) -> Option<Arc<EpisodeOutcome>> {
        self.outcome.borrow().clone()
    }

    /// Ends the episode because its client leaves.
    #[must_use]
    pub fn leave(self) -> LeftEpisode {
        LeftEpisode { outcome: self.outcome }
    }

    /// Whether the client must wait: for the episode to begin, for the result of a call, or for the verdict.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        // The agent closes the channel when it ends.
        !matches!(self.waiting, Waiting::Nothing) || self.calls.is_closed()
    }

    /// Returns the number of steps so far.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.live.steps()
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::sample::MASKED;

    #[tokio::test]
    async fn a_client_that_made_no_call_gets_the_verdict_of_an_attempt_that_ended_by_itself() {
        let (calls, received) = mpsc::channel(1);
        let (judge, outcome) = watch::channel(None);
        let mut episode = Episode {
            sample: Sample::new(MASKED, "a", "a", "a_0".to_owned(), 1),
            attempt: 0,
            label: "serve:x".to_owned(),
            calls,
            waiting: Waiting::Nothing,
            outcome,
            live: Arc::default(),
            _leaves: CancellationToken::new().drop_guard(),
        };
        let soon = Duration::from_millis(20);
        assert!(!episode.is_busy());
        assert!(matches!(episode.wait(soon).await, Progress::Pending));
        // The agent ends. Until the verdict is known, there is something to wait for.
        drop(received);
        assert!(episode.is_busy());
        assert!(matches!(episode.wait(soon).await, Progress::Pending));
        judge.send_replace(Some(Arc::new(EpisodeOutcome { record: None, reward: Some(0.0), lost: None })));
        for _ in 0..2 {
            let Progress::Ended(outcome) = episode.wait(soon).await else { panic!("the verdict is not reported") };
            assert_eq!(outcome.reward, Some(0.0));
        }
    }
}
