//! The tasks that a server hands out: samples by split, found by index or drawn by a seed.
//!
//! Some of each item's functions are held out, by a draw from the run's seed. Samples of the training split mask no
//! held-out function, and samples of the test split mask only held-out functions. A sample that masks both kinds is in
//! neither split. A function is held out together with all functions nested in it. If the units of an item cannot be
//! withheld one by one, as in notebook tasks, whole samples are held out instead.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::run::SampleDraw;
use crate::run::family::{Family, Item};
use crate::sample::Sample;

/// Maximum number of samples that are drawn for one item and one n (number of masked functions), to find samples for
/// each split.
const MOST_DRAWN: usize = 20_000;
/// Maximum n (number of masked functions) that is tried when searching for the largest sample of an item. That sample
/// shows whether the item's units, such as functions, can be withheld one by one.
const LARGEST_N: usize = 64;

/// One of the two sets of tasks, for training and for testing. They have no task in common.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Split {
    /// Tasks to learn from.
    #[default]
    Train,
    /// Tasks that measure what was learnt.
    Test,
}

impl Split {
    /// Both splits.
    pub const ALL: [Self; 2] = [Self::Train, Self::Test];

    /// Returns the split's name, as used by clients.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

impl FromStr for Split {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|split| split.name() == name);
        found.ok_or_else(|| {
            Error::usage(format!("there is no split `{}`", name.escape_debug()))
                .hint("the splits are `train` and `test`")
        })
    }
}

/// A request for a task. The server chooses what the request leaves open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChoice {
    /// Id of the requested sample.
    pub sample: Option<String>,
    /// The item, such as a paper, that the sample must belong to.
    pub item: Option<String>,
    /// The n (number of masked functions) that the sample must have.
    pub n: Option<usize>,
    /// Seed of the choice among several samples.
    pub seed: Option<u64>,
    /// The split that the sample must be in.
    pub split: Split,
    /// Index of the sample among the tasks that fit the rest of the request.
    pub index: Option<usize>,
}

impl TaskChoice {
    /// Whether the request leaves it to the server to choose n (number of masked functions) and the functions.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.sample.is_none() && self.n.is_none() && self.seed.is_none() && self.index.is_none()
    }
}

/// The samples that were drawn for one item and one n (number of masked functions), by split.
#[derive(Debug, Default)]
struct DrawnSamples {
    train: Vec<Sample>,
    test: Vec<Sample>,
}

/// The part of an item that is held out, that is, kept for the test split.
enum HeldOut {
    /// Only samples of the test split withhold these units, such as functions.
    Units(BTreeSet<usize>),
    /// Whole samples are held out. A sample is in the test split if its hash, as a number from 0 to 1, is below the
    /// share to hold out.
    Samples,
}

/// The tasks of a run.
pub struct Tasks {
    family: Arc<dyn Family>,
    items: Vec<Arc<dyn Item>>,
    draw: SampleDraw,
    seed: u64,
    /// Share of each item's functions, or of its samples, that only the test split contains.
    held_out: f64,
    drawn: Mutex<HashMap<(String, usize), Arc<DrawnSamples>>>,
    listed: Mutex<HashMap<Split, Arc<[Sample]>>>,
}

impl Tasks {
    /// Creates the tasks of these items. `draw` decides which n (numbers of masked functions) they have.
    #[must_use]
    pub fn new(family: Arc<dyn Family>, items: Vec<Arc<dyn Item>>, draw: SampleDraw, seed: u64, held_out: f64) -> Self {
        Self { family, items, draw, seed, held_out, drawn: Mutex::default(), listed: Mutex::default() }
    }

    /// The family (kind of task) of the samples.
    #[must_use]
    pub fn family(&self) -> &dyn Family {
        self.family.as_ref()
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &[Arc<dyn Item>] {
        &self.items
    }

    /// Returns all tasks of a split, over all items. Tasks with a small n (number of masked functions) come first.
    ///
    /// # Errors
    /// Kind `Usage` if there are too many samples to count.
    pub fn list(&self, split: Split) -> Result<Arc<[Sample]>> {
        if let Some(known) = self.listed.lock().unwrap_or_else(PoisonError::into_inner).get(&split) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for item in &self.items {
            for n in self.sizes(item.as_ref())? {
                found.extend_from_slice(self.of(item.as_ref(), n)?.of(split));
            }
        }
        found.sort_by_key(Sample::n);
        let found: Arc<[Sample]> = found.into();
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).insert(split, found.clone());
        Ok(found)
    }

    /// Chooses a sample. If several samples fit the request, `turn` (the number of episodes begun before) decides between
    /// them.
    ///
    /// # Errors
    /// Kind `Usage` for a sample, item, n (number of masked functions) or index that does not exist.
    pub fn choose(&self, asked: &TaskChoice, turn: u64) -> Result<Sample> {
        if let Some(id) = &asked.sample {
            let sample = self.family.sample(id)?;
            self.item(sample.item())?.require(&sample)?;
            return Ok(sample);
        }
        let samples = self.fitting(asked)?;
        let index = match asked.index {
            Some(index) => index,
            None => below(samples.len(), self.seed, asked.seed, turn),
        };
        samples.get(index).cloned().ok_or_else(|| {
            Error::usage(format!("there is no task {index}: the split `{}` has {}", asked.split.name(), samples.len()))
                .hint("indexes begin at 0")
        })
    }

    /// Draws different samples that fit a request, at most `count`. The draw depends only on the run's seed and on `seed`.
    ///
    /// # Errors
    /// Kind `Usage` for an item or n (number of masked functions) that does not exist.
    pub fn draw(&self, asked: &TaskChoice, seed: u64, count: usize) -> Result<Vec<Sample>> {
        let mut samples = self.fitting(asked)?.to_vec();
        samples.sort_by_cached_key(|sample| {
            number(&[b"drawn", &self.seed.to_le_bytes(), &seed.to_le_bytes(), sample.id().as_bytes()])
        });
        samples.truncate(count);
        Ok(samples)
    }

    /// Returns all samples that fit a request's item, n (number of masked functions) and split. Samples with a small n
    /// come first.
    fn fitting(&self, asked: &TaskChoice) -> Result<Arc<[Sample]>> {
        let samples = if asked.n.is_none() && asked.item.is_none() {
            self.list(asked.split)?
        } else {
            let items = match &asked.item {
                Some(id) => vec![self.item(id)?],
                None => self.items.iter().map(AsRef::as_ref).collect(),
            };
            let mut chosen = Vec::new();
            for item in items {
                let sizes = match asked.n {
                    Some(n) => BTreeSet::from([n]),
                    None => self.sizes(item)?,
                };
                for n in sizes {
                    chosen.extend_from_slice(self.of(item, n)?.of(asked.split));
                }
            }
            chosen.sort_by_key(Sample::n);
            chosen.into()
        };
        if samples.is_empty() {
            let name = asked.split.name();
            return Err(Error::usage(format!("the split `{name}` has no such task"))
                .hint("choose another paper or n, or hold out another share of the functions"));
        }
        Ok(samples)
    }

    /// Returns the samples of an item that have this n (number of masked functions) and are in this split.
    ///
    /// # Errors
    /// Kind `Usage` if there are too many samples to count.
    pub fn samples(&self, item: &dyn Item, n: usize, split: Split) -> Result<Vec<Sample>> {
        Ok(self.of(item, n)?.of(split).to_vec())
    }

    /// Returns the n (numbers of masked functions) for which an item has tasks.
    ///
    /// # Errors
    /// Kind `Usage` if there are too many samples to count.
    pub fn sizes(&self, item: &dyn Item) -> Result<BTreeSet<usize>> {
        let one = SampleDraw { limit: 1, ..self.draw.clone() };
        Ok(item.draw(&one, self.seed)?.iter().map(Sample::n).collect())
    }

    fn item(&self, id: &str) -> Result<&dyn Item> {
        let word = self.family.words().item;
        self.items.iter().find(|item| item.id() == id).map(AsRef::as_ref).ok_or_else(|| {
            let names: Vec<String> = self.items.iter().map(|item| format!("`{}`", item.id())).collect();
            Error::usage(format!("this server has no {word} `{}`", id.escape_debug()))
                .hint(format!("it has {}", names.join(", ")))
        })
    }

    fn of(&self, item: &dyn Item, n: usize) -> Result<Arc<DrawnSamples>> {
        let key = (item.id().to_owned(), n);
        if let Some(known) = self.drawn.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let drawn = Arc::new(self.draw_of(item, n)?);
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner).insert(key, drawn.clone());
        Ok(drawn)
    }

    /// Draws samples until each split has as many samples as the run's limit allows, all samples have been drawn, or
    /// [`MOST_DRAWN`] samples have been drawn.
    fn draw_of(&self, item: &dyn Item, n: usize) -> Result<DrawnSamples> {
        let held_out = self.held_out(item)?;
        let limit = self.draw.limit;
        let mut asked = limit;
        loop {
            let draw = SampleDraw { n: vec![n], fractions: Vec::new(), limit: asked, ..self.draw.clone() };
            let all = item.draw(&draw, self.seed)?;
            let mut found = DrawnSamples::default();
            for sample in &all {
                match self.split_of(sample, &held_out) {
                    Some(Split::Train) if found.train.len() < limit => found.train.push(sample.clone()),
                    Some(Split::Test) if found.test.len() < limit => found.test.push(sample.clone()),
                    _ => {}
                }
            }
            let is_full = found.train.len() >= limit && (found.test.len() >= limit || self.held_out == 0.0);
            if is_full || all.len() < asked || asked >= MOST_DRAWN {
                return Ok(found);
            }
            asked = asked.saturating_mul(4).min(MOST_DRAWN);
        }
    }

    fn split_of(&self, sample: &Sample, held_out: &HeldOut) -> Option<Split> {
        let units = self.family.withheld(sample).map(|withheld| withheld.units);
        match (held_out, units) {
            (HeldOut::Units(held), Some(units)) => {
                let count = units.iter().filter(|unit| held.contains(unit)).count();
                match count {
                    0 => Some(Split::Train),
                    all if all == units.len() => Some(Split::Test),
                    _ => None,
                }
            }
            _ if rank(self.seed, sample.id(), 0) < self.held_out => Some(Split::Test),
            _ => Some(Split::Train),
        }
    }

    /// Chooses the units or samples of an item that only the test split contains.
    fn held_out(&self, item: &dyn Item) -> Result<HeldOut> {
        let single = SampleDraw {
            n: vec![1],
            fractions: Vec::new(),
            limit: MOST_DRAWN,
            samples: Vec::new(),
            ..self.draw.clone()
        };
        let single = item.draw(&single, self.seed)?;
        let units: BTreeSet<usize> =
            single.iter().filter_map(|sample| self.family.withheld(sample)).flat_map(|it| it.units).collect();
        let largest = (0..=LARGEST_N).rev().find(|&n| item.count(n).is_none_or(|count| count > 0)).unwrap_or(0);
        if units.len() < 2 || units.len() < largest {
            return Ok(HeldOut::Samples);
        }
        let outermost = |unit: usize| {
            let containers = std::iter::successors(item.container(unit), |outer| item.container(*outer));
            containers.filter(|outer| units.contains(outer)).last().unwrap_or(unit)
        };
        let rank = |unit: usize| rank(self.seed, item.id(), unit);
        Ok(HeldOut::Units(held_out_units(&units, outermost, rank, self.held_out)))
    }
}

/// Chooses the units to hold out: those of the lowest rank, until this share of the units is reached. A unit and all
/// units nested in it form a group, which is held out as a whole and ranked by its outermost unit. The group of the
/// highest rank is never held out, so a single group leaves nothing for the test split.
fn held_out_units(
    units: &BTreeSet<usize>,
    outermost: impl Fn(usize) -> usize,
    rank: impl Fn(usize) -> f64,
    share: f64,
) -> BTreeSet<usize> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &unit in units {
        groups.entry(outermost(unit)).or_default().push(unit);
    }
    let mut groups: Vec<(f64, Vec<usize>)> = groups.into_iter().map(|(outer, group)| (rank(outer), group)).collect();
    groups.sort_by(|a, b| a.0.total_cmp(&b.0));
    groups.pop();
    let wanted = ((share * units.len() as f64).round() as usize).max(usize::from(share > 0.0));
    let mut held_out = BTreeSet::new();
    for (_, group) in groups {
        if held_out.len() >= wanted {
            break;
        }
        held_out.extend(group);
    }
    held_out
}

impl DrawnSamples {
    fn of(&self, split: Split) -> &[Sample] {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }
}

/// Returns a number from 0 to 1 that depends only on the seed, the name (of an item or a sample) and the unit's index.
fn rank(seed: u64, name: &str, unit: usize) -> f64 {
    number(&[b"held out", &seed.to_le_bytes(), name.as_bytes(), &(unit as u64).to_le_bytes()]) as f64 / u64::MAX as f64
}

/// Returns a number below `bound` that depends only on the run's seed and the requested seed or, if no seed was
/// requested, on the run's seed and `turn` (the number of episodes begun before).
fn below(bound: usize, seed: u64, asked: Option<u64>, turn: u64) -> usize {
    let drawn = match asked {
        Some(asked) => number(&[b"asked", &seed.to_le_bytes(), &asked.to_le_bytes()]),
        None => number(&[b"turn", &seed.to_le_bytes(), &turn.to_le_bytes()]),
    };
    ((u128::from(drawn) * bound as u128) >> 64) as usize
}

/// Hashes parts to a number.
pub(super) fn number(parts: &[&[u8]]) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize()[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Nesting;

    /// Returns the units of a nesting that are held out, and each unit's outermost containing unit.
    fn split(nesting: &Nesting, seed: u64, share: f64) -> (BTreeSet<usize>, Vec<usize>) {
        let outermost = |unit: usize| {
            let around = std::iter::successors(nesting.parent(unit), |outer| nesting.parent(*outer));
            around.last().unwrap_or(unit)
        };
        let units = (0..nesting.len()).collect();
        let held_out = held_out_units(&units, outermost, |unit| rank(seed, "paper", unit), share);
        (held_out, units.into_iter().map(outermost).collect())
    }

    #[test]
    fn functions_nested_in_each_other_are_in_the_same_split() {
        let nesting = Nesting::new(vec![None, Some(0), Some(1), None, Some(3), None, None]);
        for seed in 0..50 {
            let (held_out, outermost) = split(&nesting, seed, 0.3);
            assert!((2..7).contains(&held_out.len()), "{held_out:?}");
            for (unit, outer) in outermost.iter().enumerate() {
                assert_eq!(held_out.contains(&unit), held_out.contains(outer), "{unit}: {held_out:?}");
            }
        }
        let (held_out, _) = split(&Nesting::new(vec![None, Some(0), Some(0)]), 0, 0.5);
        assert!(held_out.is_empty(), "a single group of functions is for training: {held_out:?}");
    }

    #[test]
    fn of_functions_that_are_not_nested_exactly_the_share_is_held_out() {
        for (share, count) in [(0.0, 0), (0.01, 1), (0.25, 3), (0.99, 9)] {
            assert_eq!(split(&Nesting::flat(10), 7, share).0.len(), count, "{share}");
        }
    }
}
