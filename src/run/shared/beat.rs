//! Signs of life of processes. A process that works on a shared run keeps writing a counter to its own file. Others
//! consider it dead when they have seen the same count for long enough by their own clock; clocks of other machines do
//! not matter.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Number of times that a process writes its counter (beats) within the time after which it would count as dead.
const BEATS: u32 = 12;
/// Maximum time between beats.
const RAREST: Duration = Duration::from_secs(5);
/// Minimum number of times that a process's file is read, after the first time, before the process counts as dead: the
/// time between two reads counts as at most `timeout / LOOKS`. While a file server is down, processes can neither read
/// nor write these files, so a long gap between two reads does not show that a process is dead.
const LOOKS: u32 = 4;
/// Age of a heartbeat file after which [`any_recent`] no longer counts its process as alive.
const RECENT: Duration = Duration::from_mins(1);

/// Word at the end of a beat file's line that says whether the process is running or has ended cleanly.
const RUNNING: &str = "running";
const ENDED: &str = "ended  ";

fn line(count: u64, state: &str) -> String {
    // All lines have the same length, because each one overwrites the previous one.
    format!("{count:020} {state}\n")
}

/// Writes signs of life of this process to its file, in a thread, until dropped.
#[derive(Debug)]
pub struct Heartbeat {
    path: PathBuf,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<u64>>,
    /// Cancelled when other processes consider this process dead.
    lapsed: CancellationToken,
    /// Whether the process has finished properly, so that nobody has to clean up after it.
    is_clean: bool,
}

impl Heartbeat {
    /// Contents of a new heartbeat file: the counter at 0.
    #[must_use]
    pub fn first() -> String {
        line(0, RUNNING)
    }

    /// Starts writing this process's counter to a file. A process whose counter does not change for `timeout` counts as
    /// dead. Another process then creates the file `buried` before it cleans up after this process. If this process was
    /// only suspended, it notices the file and cancels [`lapsed`](Self::lapsed).
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(path: &Path, timeout: Duration, buried: PathBuf) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let lapsed = CancellationToken::new();
        let (own, told, file) = (stop.clone(), lapsed.clone(), path.to_owned());
        let every = (timeout / BEATS).min(RAREST);
        let thread = std::thread::Builder::new().name("beat".to_owned()).spawn(move || {
            let mut count = 0;
            loop {
                let stopped = own.0.lock().unwrap_or_else(PoisonError::into_inner);
                let (stopped, _) = own
                    .1
                    .wait_timeout_while(stopped, every, |stopped| !*stopped)
                    .unwrap_or_else(PoisonError::into_inner);
                if *stopped {
                    return count;
                }
                drop(stopped);
                count += 1;
                // Ignore a failed write: only this beat is missing.
                let _ = write(&file, count, RUNNING);
                if buried.exists() {
                    told.cancel();
                }
            }
        })?;
        Ok(Self { path: path.to_owned(), stop, thread: Some(thread), lapsed, is_clean: false })
    }

    /// Cancelled when other processes take over this process's work.
    #[must_use]
    pub const fn lapsed(&self) -> &CancellationToken {
        &self.lapsed
    }

    /// Marks the end of this process as clean, so that no other process cleans up after it.
    pub const fn end_clean(&mut self) {
        self.is_clean = true;
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        let count = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        if self.is_clean {
            let _ = write(&self.path, count + 1, ENDED);
        }
    }
}

/// Writes a beat. Opens the file each time: on NFS, other machines see new contents only after the writer has closed
/// the file and they have opened it again.
fn write(path: &Path, count: u64, state: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all_at(line(count, state).as_bytes(), 0)
}

/// Whether a process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// There is no reason to consider the process dead.
    Alive,
    /// No sign of life for too long.
    Dead,
    /// Ended without leaving anything to clean up.
    Ended,
}

/// Watches other processes.
#[derive(Debug)]
pub(super) struct PeerWatch {
    folder: PathBuf,
    timeout: Duration,
    seen: HashMap<String, PeerBeat>,
}

#[derive(Debug)]
struct PeerBeat {
    text: Vec<u8>,
    looked: Instant,
    /// Time for which the file's text has not changed. At most `timeout / LOOKS` is counted for the time between two
    /// reads.
    unchanged: Duration,
    /// Whether the file's text has ever changed. It never changes if the process died before the first read.
    has_changed: bool,
}

impl PeerWatch {
    /// Watches the processes that write heartbeat files into this folder.
    #[must_use]
    pub fn new(folder: &Path, timeout: Duration) -> Self {
        Self { folder: folder.to_owned(), timeout, seen: HashMap::new() }
    }

    /// Reads the heartbeat file of a process and decides whether the process is alive.
    pub fn look(&mut self, name: &str) -> Liveness {
        match std::fs::read(file(&self.folder, name)) {
            Ok(text) => self.looked(name, text, Instant::now()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.looked(name, Vec::new(), Instant::now()),
            Err(_) => {
                // This process could not read the file, for example because it has too many open files. So the time
                // since its last read does not count towards the timeout.
                if let Some(seen) = self.seen.get_mut(name) {
                    seen.looked = Instant::now();
                }
                Liveness::Alive
            }
        }
    }

    /// Whether a process's counter has changed since it was first read, and its last change is less than half the
    /// timeout ago.
    #[must_use]
    pub fn is_well(&self, name: &str) -> bool {
        self.seen.get(name).is_some_and(|seen| seen.has_changed && seen.unchanged < self.timeout / 2)
    }

    fn looked(&mut self, name: &str, text: Vec<u8>, now: Instant) -> Liveness {
        if text.trim_ascii_end().ends_with(ENDED.trim_end().as_bytes()) {
            return Liveness::Ended;
        }
        let longest = self.timeout / LOOKS;
        let seen = self.seen.entry(name.to_owned()).or_insert_with(|| PeerBeat {
            text: text.clone(),
            looked: now,
            unchanged: Duration::ZERO,
            has_changed: false,
        });
        let since = now.duration_since(std::mem::replace(&mut seen.looked, now));
        if seen.text == text {
            seen.unchanged += since.min(longest);
        } else {
            (seen.text, seen.unchanged, seen.has_changed) = (text, Duration::ZERO, true);
        }
        if seen.unchanged >= self.timeout { Liveness::Dead } else { Liveness::Alive }
    }
}

/// Path of a process's heartbeat file.
#[must_use]
pub fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.beat"))
}

/// Whether any process seems alive, judged by the files' modification times; used by processes that read these files
/// only once.
#[must_use]
pub fn any_recent(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "beat")).any(
        |path| {
            let is_running = std::fs::read(&path).is_ok_and(|text| text.trim_ascii_end().ends_with(RUNNING.as_bytes()));
            let written = path.metadata().and_then(|about| about.modified());
            // `elapsed` fails if the time is in the future because the writer's clock is ahead. The process then counts
            // as alive.
            is_running && written.is_ok_and(|at| at.elapsed().map_or(true, |age| age < RECENT))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_counts_as_dead_only_after_a_long_observed_silence() {
        let mut watch = PeerWatch::new(Path::new("nowhere"), Duration::from_mins(1));
        let begun = Instant::now();
        let mut look = |seconds: u64, text: &str| {
            watch.looked("a", text.as_bytes().to_vec(), begun + Duration::from_secs(seconds))
        };
        assert_eq!(look(0, "1 running\n"), Liveness::Alive);
        // An hour passes without a read, as if the file server were unavailable. The process still counts as alive.
        assert_eq!(look(3600, "1 running\n"), Liveness::Alive);
        assert_eq!(look(3605, "2 running\n"), Liveness::Alive);
        for seconds in (3610..3665).step_by(5) {
            assert_eq!(look(seconds, "2 running\n"), Liveness::Alive, "{seconds}");
        }
        assert_eq!(look(3665, "2 running\n"), Liveness::Dead);
        assert_eq!(look(3670, "3 running\n"), Liveness::Alive);
        assert_eq!(look(3671, &line(4, ENDED)), Liveness::Ended);
        // A single read does not show whether the process that wrote the number in the file is still alive. So
        // `is_well` is true only once the number has changed, and is false again after half the timeout without a
        // change.
        let well = |watch: &mut PeerWatch, seconds: u64, text: &str| {
            watch.looked("c", text.as_bytes().to_vec(), begun + Duration::from_secs(seconds));
            watch.is_well("c")
        };
        assert!(!well(&mut watch, 0, "1 running\n") && !well(&mut watch, 5, "1 running\n"));
        assert!(well(&mut watch, 10, "2 running\n") && well(&mut watch, 15, "2 running\n"));
        assert!(!well(&mut watch, 30, "2 running\n") || !well(&mut watch, 45, "2 running\n"));
        // A process without a file counts as alive at first, and as dead when the file stays missing.
        assert_eq!(watch.looked("b", Vec::new(), begun), Liveness::Alive);
        let later = (1..=5).map(|turn| watch.looked("b", Vec::new(), begun + Duration::from_secs(15 * turn))).last();
        assert_eq!(later, Some(Liveness::Dead));
    }

    #[test]
    fn a_heartbeat_file_that_cannot_be_read_does_not_show_that_its_process_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = PeerWatch::new(folder.path(), Duration::from_millis(8));
        // Put a folder in place of the heartbeat file of `a`, so that reading it fails, and no file for `b`. A missing
        // file, unlike an unreadable one, shows in the end that its process is dead.
        std::fs::create_dir(file(folder.path(), "a")).unwrap();
        let mut lives = |name: &str| -> Vec<Liveness> {
            let look = |_| {
                std::thread::sleep(Duration::from_millis(3));
                watch.look(name)
            };
            (0..8).map(look).collect()
        };
        assert_eq!(lives("a"), [Liveness::Alive; 8]);
        assert_eq!(lives("b").last(), Some(&Liveness::Dead));
    }

    #[test]
    fn liveness_depends_neither_on_file_times_nor_on_the_writers_clock() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "a");
        let timeout = Duration::from_mins(1);
        let now = std::time::SystemTime::now();
        let hour = Duration::from_hours(1);
        for written in [now - 24 * hour, now + 24 * hour] {
            let (mut watch, begun) = (PeerWatch::new(folder.path(), timeout), Instant::now());
            let mut look = |seconds: u64, count: u64, at: std::time::SystemTime| {
                std::fs::write(&path, line(count, RUNNING)).unwrap();
                std::fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
                let text = std::fs::read(&path).unwrap();
                watch.looked("a", text, begun + Duration::from_secs(seconds))
            };
            // Even if the clock is a day off in either direction, a process is alive while its counter changes.
            for turn in 0..60 {
                assert_eq!(look(5 * turn, turn, written), Liveness::Alive);
            }
            // A process is dead once its counter has not changed for long enough, however new its file is.
            for turn in 60..71 {
                assert_eq!(look(5 * turn, 59, now + Duration::from_secs(5 * turn)), Liveness::Alive, "{turn}");
            }
            assert_eq!(look(5 * 71, 59, now + hour), Liveness::Dead);
        }
    }

    #[test]
    fn a_process_with_a_late_heartbeat_stops_only_if_another_process_has_taken_over_its_work() {
        let folder = tempfile::tempdir().unwrap();
        let (path, buried) = (file(folder.path(), "a"), folder.path().join("of-a.0"));
        let timeout = Duration::from_millis(120);
        // The heartbeat file is missing, as it would be while a file server is unavailable.
        let beat = Heartbeat::start(&path, timeout, buried.clone()).unwrap();
        std::thread::sleep(4 * timeout);
        assert!(!beat.lapsed().is_cancelled());
        std::fs::write(&path, Heartbeat::first()).unwrap();
        while std::fs::read(&path).unwrap() == Heartbeat::first().as_bytes() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!beat.lapsed().is_cancelled());
        std::fs::write(&buried, "b").unwrap();
        while !beat.lapsed().is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_heartbeat_continues_until_dropped_and_records_a_clean_end() {
        let folder = tempfile::tempdir().unwrap();
        let timeout = Duration::from_millis(240);
        for is_clean in [false, true] {
            let path = file(folder.path(), if is_clean { "a" } else { "b" });
            std::fs::write(&path, Heartbeat::first()).unwrap();
            let mut beat = Heartbeat::start(&path, timeout, folder.path().join("of-it")).unwrap();
            assert!(any_recent(folder.path()));
            while std::fs::read(&path).unwrap() == Heartbeat::first().as_bytes() {
                std::thread::sleep(Duration::from_millis(5));
            }
            if is_clean {
                beat.end_clean();
            }
            drop(beat);
            let life = PeerWatch::new(folder.path(), timeout).look(if is_clean { "a" } else { "b" });
            assert_eq!(life, if is_clean { Liveness::Ended } else { Liveness::Alive });
        }
    }
}
