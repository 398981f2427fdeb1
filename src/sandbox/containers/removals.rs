//! Removes containers of ended attempts in the background, because an engine may need minutes to remove an attempt's
//! files. Containers that still exist at the end of a run are reported.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The removals of one engine's containers.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// By container id: the reason why a removal was given up, or `None` while it is under way. Successful removals are
    /// not kept.
    left: Mutex<BTreeMap<String, Option<String>>>,
    ended: Notify,
}

impl Removals {
    fn left(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a removal begins.
    pub(super) fn begin(&self, id: &str) {
        self.left().insert(id.to_owned(), None);
    }

    /// Records how a removal ended.
    pub(super) fn end(&self, id: &str, result: Result<(), String>) {
        match result {
            Ok(()) => drop(self.left().remove(id)),
            Err(why) => drop(self.left().insert(id.to_owned(), Some(why))),
        }
        self.ended.notify_waiters();
    }

    /// Waits until no removal is under way, for at most `longest`. Returns `false` if removals are still under way
    /// then.
    pub(super) async fn wait_until_idle(&self, longest: Duration) -> bool {
        let settled = async {
            loop {
                let ended = self.ended.notified();
                if self.left().values().all(Option::is_some) {
                    return;
                }
                ended.await;
            }
        };
        tokio::time::timeout(longest, settled).await.is_ok()
    }

    /// Returns a sentence for each container that still exists.
    pub(super) fn report(&self) -> Vec<String> {
        let sentence = |(id, why): (&String, &Option<String>)| {
            let id = id.get(..12).unwrap_or(id);
            match why {
                Some(why) => format!("container {id} of an attempt that has ended is still there: {why}"),
                None => format!("container {id} of an attempt that has ended is still being removed by its engine"),
            }
        };
        self.left().iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ongoing_removals_of_containers_are_awaited_and_failed_removals_are_reported() {
        let removals = Removals::default();
        let moment = Duration::from_millis(10);
        assert!(removals.wait_until_idle(moment).await && removals.report().is_empty());
        removals.begin("first");
        assert!(!removals.wait_until_idle(moment).await && removals.report()[0].contains("still being removed"));
        removals.end("first", Ok(()));
        removals.begin("second");
        removals.end("second", Err("busy".into()));
        assert!(removals.wait_until_idle(moment).await);
        assert_eq!(removals.report(), ["container second of an attempt that has ended is still there: busy"]);
    }
}
