//! A cache of check results, keyed by the digest of everything that decides them, so that the same code runs only once,
//! for example for two attempts that left the same files, or for the baselines of two runs.
//!
//! Only a success is cached: the command exited by itself with code 0, its result could be read, and other processes
//! did not slow it down for most of its time. A failure, a time-out or a lost sandbox may be the machine's fault and is
//! never cached. Each family says which checks give the same result every time
//! ([`Ready::is_exact`](super::family::Ready::is_exact)); the others always run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::Measurement;
use crate::agent::Check;
use crate::env::Env;
use crate::files::{DiskCache, PartsDigest};
use crate::sandbox::{Exit, SandboxLimits};
use crate::workspace::FileChange;

/// Version of the cache, part of each result's key. Increase it when the code that reads results, or makes keys,
/// changes. The cache then ignores older results.
const FORMAT: &str = "result 1";

/// The cache of results on this machine, or on a disk shared with other machines.
#[derive(Debug, Clone)]
pub struct Results {
    /// The cached results on disk; `None` to cache nothing.
    kept: Option<DiskCache<KnownResult>>,
    /// Description of this kind of machine.
    machine: String,
    /// Whether cached results are ignored and replaced.
    fresh: bool,
}

/// The cached result of a check, with the times that it took, and the changed files that verification left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownResult {
    /// The result.
    result: Value,
    /// Wall seconds.
    wall: f64,
    /// CPU seconds.
    cpu: f64,
    /// Paths of changes that were left out because the files are protected.
    pub ignored: Vec<String>,
}

/// Everything that decides the result of a check.
#[derive(Debug, Clone, Copy)]
pub struct CheckKey<'a> {
    /// Digest of the repo.
    pub repo: &'a str,
    /// The env.
    pub env: &'a Env,
    /// Digest of the image that sandboxes are based on, if any.
    pub base: Option<&'a str>,
    /// The kind of sandbox.
    pub sandbox: &'a str,
    /// Resource limits of the sandbox.
    pub limits: &'a SandboxLimits,
    /// The command and the rule for its result. The time limit is not part of the key, because it only decides whether
    /// there is a result.
    pub check: &'a Check,
    /// Files written over the repo.
    pub files: &'a [(PathBuf, Vec<u8>)],
    /// An attempt's changes, each with whether verification excludes it.
    pub changes: &'a [(&'a FileChange, bool)],
}

impl Results {
    /// Returns the cache of results in the machine's cache folder `cache`.
    #[must_use]
    pub fn at(cache: &Path) -> Self {
        Self { kept: Some(DiskCache::at(&cache.join("results"))), machine: kind_of_machine(), fresh: false }
    }

    /// Returns a cache that stores nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { kept: None, machine: String::new(), fresh: false }
    }

    /// Makes the cache distinguish this machine from machines with other graphics processors, which `kind` describes.
    pub fn with_graphics(&mut self, kind: &str) {
        if !kind.is_empty() {
            self.machine.extend([", graphics processors: ", kind]);
        }
    }

    /// Makes the cache ignore the results that it already has, and replace them by new ones.
    pub const fn doubt(&mut self) {
        self.fresh = true;
    }

    /// The key of a check's result in the cache; `None` if the cache stores nothing.
    #[must_use]
    pub fn key(&self, ran: &CheckKey<'_>) -> Option<String> {
        self.kept.as_ref()?;
        let mut parts = PartsDigest::default();
        for text in [FORMAT, env!("CARGO_PKG_VERSION"), &self.machine, ran.repo, &ran.env.digest, &ran.env.python] {
            parts.add(text);
        }
        parts.add(ran.base.unwrap_or_default());
        parts.add(ran.sandbox);
        parts.add(serde_json::to_vec(ran.limits).ok()?);
        parts.add(serde_json::to_vec(&ran.env.variables).ok()?);
        parts.add(&ran.check.command);
        parts.add(format!("{:?}", ran.check.result));
        parts.add(ran.files.len().to_le_bytes());
        for (path, bytes) in ran.files {
            parts.add(path.as_os_str().as_encoded_bytes());
            parts.add(bytes);
        }
        for (change, is_kept_out) in ran.changes {
            parts.add(format!("{:?} {} {is_kept_out} {}", change.kind, change.executable, change.path));
            parts.add(&change.bytes);
        }
        Some(parts.finish())
    }

    /// The cached result of a check with this time limit in seconds.
    #[must_use]
    pub fn get(&self, key: &str, time_limit: f64) -> Option<KnownResult> {
        let known = self.kept.as_ref().filter(|_| !self.fresh)?.get(key)?;
        // The cached run may have had a longer time limit, so compare the time that it took with the current limit.
        (known.wall <= time_limit).then_some(known)
    }

    /// Caches the result of a check if it was a success. If the disk is full, the result is not cached and the run
    /// continues.
    pub fn put(&self, key: &str, measured: &Measurement, ignored: &[String]) {
        let (Some(kept), Ok(result)) = (&self.kept, &measured.result) else { return };
        if measured.exit != Exit::Code(0) || 2 * measured.starved > measured.wall {
            return;
        }
        let known = KnownResult {
            result: result.clone(),
            wall: measured.wall.as_secs_f64(),
            cpu: measured.cpu.as_secs_f64(),
            ignored: ignored.to_vec(),
        };
        let _ = kept.put(key, &known);
    }
}

impl KnownResult {
    /// Converts the result to a measurement of the check with this id.
    #[must_use]
    pub fn measurement(&self, id: &str) -> Measurement {
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Measurement {
            id: id.to_owned(),
            exit: Exit::Code(0),
            wall: time(self.wall),
            cpu: time(self.cpu),
            starved: Duration::ZERO,
            result: Ok(self.result.clone()),
            stderr: String::new(),
        }
    }
}

/// Describes everything about the machine that may change the last digits of a result: the processors and their number,
/// the kernel and the system libraries.
fn kind_of_machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let one = |name: &str| processors.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    [
        std::env::consts::ARCH.to_owned(),
        one("model name"),
        one("CPU part"),
        one("flags"),
        one("Features"),
        count.to_string(),
        read("/proc/sys/kernel/osrelease"),
        read("/etc/os-release"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{ResultRule, Stdout};
    use crate::workspace::ChangeKind;

    fn check(time_limit: f64) -> Check {
        let result = ResultRule::JsonLine(Stdout::Stdout);
        Check { id: "a".into(), key: "k".into(), command: "python x.py".into(), time_limit, result }
    }

    fn env(digest: &str) -> Env {
        Env {
            backend: "venv",
            digest: digest.to_owned(),
            python: "3.12".to_owned(),
            prefix: "/e".into(),
            read_only: Vec::new(),
            variables: std::collections::BTreeMap::new(),
            hold: None,
        }
    }

    fn change(path: &str, bytes: &[u8]) -> FileChange {
        FileChange { path: path.to_owned(), kind: ChangeKind::Modified, bytes: bytes.to_vec(), executable: false }
    }

    #[test]
    fn the_cache_key_depends_on_exactly_the_inputs_of_a_result() {
        let folder = tempfile::tempdir().unwrap();
        let results = Results::at(folder.path());
        let (env_a, env_b, check_a, limits) = (env("a"), env("b"), check(20.0), SandboxLimits::default());
        let one = change("x.py", b"1");
        let ran = CheckKey {
            repo: "r",
            env: &env_a,
            base: None,
            sandbox: "local",
            limits: &limits,
            check: &check_a,
            files: &[],
            changes: &[(&one, false)],
        };
        let key = |ran: &CheckKey<'_>| results.key(ran).unwrap();
        let same = key(&ran);
        assert_eq!(same, key(&CheckKey { check: &Check { id: "b".into(), ..check(99.0) }, ..ran }));
        let other_command = Check { command: "python y.py".into(), ..check(20.0) };
        let (two, moved) = (change("x.py", b"2"), change("y.py", b"1"));
        for other in [
            CheckKey { repo: "s", ..ran },
            CheckKey { env: &env_b, ..ran },
            CheckKey { base: Some("b"), ..ran },
            CheckKey { sandbox: "docker", ..ran },
            CheckKey { limits: &SandboxLimits { memory: 1, ..limits }, ..ran },
            CheckKey { check: &other_command, ..ran },
            CheckKey { files: &[("x.py".into(), b"1".to_vec())], ..ran },
            CheckKey { changes: &[(&two, false)], ..ran },
            CheckKey { changes: &[(&moved, false)], ..ran },
            CheckKey { changes: &[(&one, true)], ..ran },
            CheckKey { changes: &[], ..ran },
        ] {
            assert_ne!(same, key(&other), "{other:?}");
        }
        assert_eq!(Results::none().key(&ran), None);
    }

    #[test]
    fn only_results_of_successful_runs_that_were_not_slowed_down_are_cached() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::at(folder.path());
        let key = "0".repeat(64);
        let right = KnownResult { result: 0.1.into(), wall: 5.0, cpu: 4.0, ignored: vec!["conftest.py".into()] };
        let measured = right.measurement("a");
        for never in [
            Measurement { exit: Exit::TimedOut, ..measured.clone() },
            Measurement { exit: Exit::Code(1), ..measured.clone() },
            Measurement { exit: Exit::Signal(9), ..measured.clone() },
            Measurement { result: Err("exit code 0".into()), ..measured.clone() },
            Measurement { starved: Duration::from_secs(3), ..measured.clone() },
        ] {
            results.put(&key, &never, &[]);
            assert_eq!(results.get(&key, 100.0), None, "{never:?}");
        }
        results.put(&key, &measured, &right.ignored);
        assert_eq!(results.get(&key, 20.0), Some(right));
        assert_eq!(results.get(&key, 4.0), None, "it took longer than that");
        results.doubt();
        assert_eq!(results.get(&key, 20.0), None);
    }
}
