//! Watches a container engine's stream of events, separately from the connections to the containers. The stream shows
//! when the engine fails, and when other processes end a container through the engine. Code in a container can cause
//! neither, so both are evidence that the attempt is not to blame.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptionsBuilder;
use futures_util::{Stream, StreamExt};

use super::LABEL;
use crate::sandbox::{Evidence, EvidenceKind};

/// Actions of other users of the engine that end a container or keep it from answering.
const ACTIONS: [&str; 3] = ["kill", "pause", "stop"];
/// Minimum duration of a stream of events for its end to mean that the engine broke. If a stream ends sooner, the
/// engine has refused it.
const ESTABLISHED: Duration = Duration::from_secs(1);
/// If the stream of events broke at most this long before the connection to a container ended, or after it, a failure
/// of the engine counts as the cause of both.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Time to wait for an event of the engine that explains why the connection to a container ended.
const LATER: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);

/// Events of one engine.
#[derive(Debug, Default)]
pub(super) struct EngineWatch {
    seen: Arc<Mutex<SeenEvents>>,
    begun: OnceLock<()>,
}

#[derive(Debug, Default)]
struct SeenEvents {
    /// Time at which the stream of events last broke.
    broken: Option<Instant>,
    /// The last action, one of [`ACTIONS`], on each container, by container id.
    stopped: HashMap<String, String>,
}

impl EngineWatch {
    /// Starts the watch; later calls do nothing.
    pub(super) fn begin(&self, docker: &Docker) {
        self.begun.get_or_init(|| {
            let (docker, seen) = (docker.clone(), self.seen.clone());
            tokio::spawn(async move {
                loop {
                    let actions = ACTIONS.map(str::to_owned).to_vec();
                    let filters = HashMap::from([
                        ("type".to_owned(), vec!["container".to_owned()]),
                        ("event".to_owned(), actions),
                    ]);
                    let options = EventsOptionsBuilder::default().filters(&filters).build();
                    listen(docker.events(Some(options)), &seen).await;
                    tokio::time::sleep(BETWEEN_TRIES).await;
                }
            });
        });
    }

    /// After the connection to a container has ended, returns evidence, if there is any, that the engine failed or that
    /// another user of the engine ended the container.
    pub(super) async fn evidence(&self, id: &str) -> Option<Evidence> {
        let begun = Instant::now();
        loop {
            let found = find_evidence(&locked(&self.seen), id, begun);
            if found.is_some() || begun.elapsed() > LATER {
                return found;
            }
            tokio::time::sleep(BETWEEN_TRIES / 4).await;
        }
    }
}

fn locked(seen: &Mutex<SeenEvents>) -> MutexGuard<'_, SeenEvents> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find_evidence(seen: &SeenEvents, id: &str, ended: Instant) -> Option<Evidence> {
    if let Some(action) = seen.stopped.get(id) {
        let what = format!("somebody else ended its container through the engine (`{action}`)");
        return Some(EvidenceKind::StoppedByOthers.because(what));
    }
    let broken = seen.broken.filter(|broken| *broken + AT_ONCE >= ended)?;
    let apart = broken.max(ended).duration_since(broken.min(ended)).as_secs_f64();
    let what = format!(
        "the engine's stream of events also broke, {apart:.1} s before or after the connection to the container"
    );
    Some(EvidenceKind::EngineGone.because(what))
}

/// Records events until the stream breaks.
async fn listen(events: impl Stream<Item = Result<EventMessage, bollard::errors::Error>>, seen: &Mutex<SeenEvents>) {
    let begun = Instant::now();
    let mut events = std::pin::pin!(events);
    while let Some(Ok(event)) = events.next().await {
        let Some(actor) = event.actor else { continue };
        // Check label and action here. The filter does not contain the label, because podman cannot filter by a label
        // without a value, and some engines ignore the filter altogether.
        let is_ours = actor.attributes.is_some_and(|attributes| attributes.contains_key(LABEL));
        let action = event.action.filter(|action| ACTIONS.contains(&action.as_str()));
        if let (true, Some(id), Some(action)) = (is_ours, actor.id, action) {
            locked(seen).stopped.insert(id, action);
        }
    }
    if begun.elapsed() >= ESTABLISHED {
        locked(seen).broken = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_containers_own_stop_event_or_a_recent_break_of_the_event_stream_proves_interference() {
        let now = Instant::now();
        let seen = |broken, stopped: &[&str]| SeenEvents {
            broken,
            stopped: stopped.iter().map(|id| ((*id).to_owned(), "kill".to_owned())).collect(),
        };
        let kind = |seen: &SeenEvents| find_evidence(seen, "abc", now).map(|evidence| evidence.kind);
        assert_eq!(kind(&seen(None, &[])), None);
        assert_eq!(kind(&seen(None, &["def"])), None);
        assert_eq!(kind(&seen(None, &["abc"])), Some(EvidenceKind::StoppedByOthers));
        assert_eq!(kind(&seen(Some(now), &[])), Some(EvidenceKind::EngineGone));
        assert_eq!(kind(&seen(now.checked_sub(Duration::from_mins(1)), &[])), None);
    }

    #[tokio::test]
    async fn a_refused_event_stream_does_not_count_as_a_broken_one() {
        let seen = Mutex::default();
        listen(futures_util::stream::empty(), &seen).await;
        assert!(locked(&seen).broken.is_none());
    }
}
