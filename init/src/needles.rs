//! The secrets that a search looks for. A secret is stored only as hashes of short windows of its text, so that the
//! searching process does not contain the text itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Length of a window in bytes.
pub const WINDOW: usize = 24;
/// Minimum number of windows of one secret that must be found in one place, because any single window may be in an
/// innocent file.
const ENOUGH: usize = 3;
/// Share of a secret's windows that must be found in one place, in percent. Programs of one kind, for example those
/// that read the same options, have some lines in common.
const MOST_OF_IT: usize = 60;
/// Maximum number of windows of one secret.
const MOST: usize = 24;
/// Multiplier of the rolling hash.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash of the last [`WINDOW`] bytes of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct RollingHash(u64);

impl RollingHash {
    /// Adds a byte, and removes `leaves`, the byte that was added one window before.
    #[inline]
    #[must_use]
    pub fn next(self, byte: u8, leaves: u8) -> Self {
        const LAST: u64 = BASE.wrapping_pow(WINDOW as u32);
        let sum = self.0.wrapping_mul(BASE).wrapping_add(u64::from(byte) + 1);
        Self(sum.wrapping_sub((u64::from(leaves) + 1).wrapping_mul(LAST)))
    }

    /// Returns the initial state: the hash of a window of zeros.
    #[must_use]
    pub fn start() -> Self {
        Self((0..WINDOW).fold(0_u64, |sum, _| sum.wrapping_mul(BASE).wrapping_add(1)))
    }

    /// Returns the hash.
    #[must_use]
    pub fn value(self) -> u64 {
        self.0
    }
}

fn hash(window: &[u8]) -> u64 {
    window.iter().fold(RollingHash::start(), |hash, byte| hash.next(*byte, 0)).value()
}

/// The secrets to search for, and the places to search.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct WantedSecrets {
    /// Hashes of windows, each with the secret's number.
    windows: Vec<(u64, u32)>,
    /// Number of different windows of each secret that must be found in one place.
    enough: Vec<u32>,
    /// Folders to search before the whole file system, in addition to the current folder and those for temporary files.
    pub roots: Vec<PathBuf>,
    /// Time limit in seconds.
    pub seconds: u64,
}

impl WantedSecrets {
    /// Creates a search without secrets and with this time limit.
    #[must_use]
    pub fn within(seconds: u64) -> Self {
        Self { seconds, ..Self::default() }
    }

    /// Adds a secret. Returns its number, or `None` if it is too short to be distinguished from other texts.
    pub fn add(&mut self, secret: &[u8]) -> Option<u32> {
        let windows = windows(secret);
        if windows.len() < ENOUGH {
            return None;
        }
        let number = self.enough.len() as u32;
        self.enough.push((windows.len() * MOST_OF_IT).div_ceil(100).max(ENOUGH) as u32);
        self.windows.extend(windows.into_iter().map(|window| (window, number)));
        Some(number)
    }

    /// Number of secrets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.enough.len()
    }

    /// Whether there are no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.enough.is_empty()
    }

    /// Returns, for the hash of each window, the indices of the secrets that contain it.
    #[must_use]
    pub fn by_hash(&self) -> BTreeMap<u64, Vec<u32>> {
        let mut found: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (hash, secret) in &self.windows {
            found.entry(*hash).or_default().push(*secret);
        }
        found
    }

    /// Whether finding this number of the secret's different windows proves that the secret was found.
    #[must_use]
    pub fn is_enough(&self, secret: u32, windows: usize) -> bool {
        self.enough.get(secret as usize).is_some_and(|enough| windows >= *enough as usize)
    }

    /// Returns the secrets that are found in these bytes.
    #[must_use]
    pub fn found_in(&self, bytes: &[u8]) -> Vec<u32> {
        let table = self.by_hash();
        let mut seen: BTreeMap<u32, std::collections::BTreeSet<u64>> = BTreeMap::new();
        let mut rolling = RollingHash::start();
        for (at, byte) in bytes.iter().enumerate() {
            let leaves = at.checked_sub(WINDOW).map_or(0, |before| bytes[before]);
            rolling = rolling.next(*byte, leaves);
            for secret in table.get(&rolling.value()).into_iter().flatten() {
                seen.entry(*secret).or_default().insert(rolling.value());
            }
        }
        seen.into_iter().filter(|(secret, windows)| self.is_enough(*secret, windows.len())).map(|(it, _)| it).collect()
    }
}

/// Hashes windows that distinguish a secret from other texts: disjoint parts of its lines, without their indentation.
/// If the lines are too short for that, windows across line ends are used, too.
fn windows(secret: &[u8]) -> Vec<u64> {
    let lines = secret.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut found: Vec<&[u8]> = lines.flat_map(|line| line.chunks_exact(WINDOW)).filter(|it| is_telling(it)).collect();
    if found.len() < ENOUGH {
        found.extend(secret.chunks_exact(WINDOW).filter(|window| is_telling(window)));
    }
    let step = found.len().div_ceil(MOST).max(1);
    let mut hashes: Vec<u64> = found.into_iter().step_by(step).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Whether a window has enough different bytes to identify the text that contains it.
fn is_telling(window: &[u8]) -> bool {
    window.iter().collect::<std::collections::BTreeSet<_>>().len() >= 9
}

/// The result of a search.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NeedleHits {
    /// Number of files, environments, memories and sockets that were read.
    pub files: u64,
    /// Number of bytes that were searched, counting packed bytes both as stored and unpacked.
    pub bytes: u64,
    /// Whether everything was read within the time limit.
    pub is_complete: bool,
    /// The numbers of the secrets that were found, each with its place.
    pub hits: Vec<(u32, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_are_found_at_any_position_and_indentation() {
        let secret = b"def answer(points, weights):\n    total = sum(weights) / len(points)\n    centre = points.mean(axis=0)\n    \
                       return numpy.linalg.norm(points - centre, axis=1).sum() * total\n";
        let mut wanted = WantedSecrets::default();
        assert_eq!((wanted.add(secret), wanted.add(b"return 1")), (Some(0), None));
        let text = String::from_utf8_lossy(secret).replace('\n', "\n        ");
        assert_eq!(wanted.found_in(format!("some text before {text} and after").as_bytes()), [0]);
        assert!(wanted.found_in(b"return numpy.linalg.norm(points - others, axis=0)").is_empty());
        assert!(wanted.found_in(&vec![b' '; 1000]).is_empty());
    }
}
