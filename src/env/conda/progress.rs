//! Forwards the progress of the conda libraries as this crate's [`BuildProgress`].
//!
//! The libraries call their listeners on other threads and require them to be owned, but [`OnProgress`] is a borrowed
//! function. So the listeners put events into a queue (a tokio channel), which is read while the work is awaited.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rattler::install::{Reporter, Transaction};
use rattler_conda_types::{PrefixRecord, RepoDataRecord};
use rattler_repodata_gateway::DownloadReporter;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::env::{BuildProgress, OnProgress};

/// Minimum time between two progress events of a download.
const EVERY: Duration = Duration::from_millis(100);

/// Creates a queue for progress events: its sender and its receiver.
pub(super) fn events() -> (UnboundedSender<BuildProgress>, UnboundedReceiver<BuildProgress>) {
    unbounded_channel()
}

/// Awaits some work, and forwards its progress events meanwhile.
pub(super) async fn forward_events<T>(
    work: impl Future<Output = T>,
    mut events: UnboundedReceiver<BuildProgress>,
    on_progress: OnProgress<'_>,
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => on_progress(event),
            done = &mut work => {
                while let Ok(event) = events.try_recv() {
                    on_progress(event);
                }
                return done;
            }
        }
    }
}

/// Listener for the download of channel indexes and for installations.
pub(super) struct BuildListener {
    events: UnboundedSender<BuildProgress>,
    packages: AtomicUsize,
    linked: AtomicUsize,
    /// Names of the packages that are being added to the cache, by the library's number for them.
    names: Mutex<HashMap<usize, String>>,
    last: Mutex<Option<Instant>>,
}

impl BuildListener {
    pub(super) fn new(events: UnboundedSender<BuildProgress>) -> Self {
        let (packages, linked) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { events, packages, linked, names: Mutex::default(), last: Mutex::default() }
    }

    fn send(&self, event: BuildProgress) {
        // Sending fails if the work was cancelled; ignore that.
        let _ = self.events.send(event);
    }

    fn downloaded(&self, name: &str, done: u64, total: Option<u64>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() < EVERY) && total != Some(done) {
            return;
        }
        *last = Some(Instant::now());
        let of = total.map_or(String::new(), |total| format!(" of {}", megabytes(total)));
        self.send(BuildProgress::Detail(format!("{name}, {}{of} MB", megabytes(done))));
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

impl rattler_repodata_gateway::Reporter for BuildListener {
    fn download_reporter(&self) -> Option<&dyn DownloadReporter> {
        Some(self)
    }
}

impl DownloadReporter for BuildListener {
    fn on_download_progress(&self, url: &reqwest::Url, _: usize, done: usize, total: Option<usize>) {
        let mut end: Vec<&str> = url.path().rsplit('/').take(2).collect();
        end.reverse();
        self.downloaded(&end.join("/"), done as u64, total.map(|total| total as u64));
    }
}

impl Reporter for BuildListener {
    fn on_transaction_start(&self, transaction: &Transaction<PrefixRecord, RepoDataRecord>) {
        self.packages.store(transaction.operations.len(), Ordering::Relaxed);
    }

    fn on_transaction_operation_start(&self, _: usize) {}

    fn on_populate_cache_start(&self, operation: usize, record: &RepoDataRecord) -> usize {
        let name = record.package_record.name.as_normalized().to_owned();
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(operation, name);
        operation
    }

    fn on_validate_start(&self, entry: usize) -> usize {
        entry
    }

    fn on_validate_complete(&self, _: usize) {}

    fn on_download_start(&self, entry: usize) -> usize {
        entry
    }

    fn on_download_progress(&self, entry: usize, done: u64, total: Option<u64>) {
        let name = self.names.lock().unwrap_or_else(PoisonError::into_inner).get(&entry).cloned();
        self.downloaded(&name.unwrap_or_default(), done, total);
    }

    fn on_download_completed(&self, _: usize) {}

    fn on_populate_cache_complete(&self, _: usize) {}

    fn on_unlink_start(&self, operation: usize, _: &PrefixRecord) -> usize {
        operation
    }

    fn on_unlink_complete(&self, _: usize) {}

    fn on_link_start(&self, operation: usize, _: &RepoDataRecord) -> usize {
        operation
    }

    fn on_link_complete(&self, _: usize) {
        let linked = self.linked.fetch_add(1, Ordering::Relaxed) + 1;
        self.send(BuildProgress::Step(linked as u64, self.packages.load(Ordering::Relaxed) as u64));
    }

    fn on_transaction_operation_complete(&self, _: usize) {}

    fn on_transaction_complete(&self) {}

    fn on_post_link_start(&self, _: &str, _: &str) -> usize {
        0
    }

    fn on_post_link_complete(&self, _: usize, _: bool) {}

    fn on_pre_unlink_start(&self, _: &str, _: &str) -> usize {
        0
    }

    fn on_pre_unlink_complete(&self, _: usize, _: bool) {}
}
