//! The samples of a run: requested by name, or drawn from the run's items.

use std::sync::Arc;

use super::{Family, Item};
use crate::error::{Error, Result};
use crate::run::configuration::SampleDraw;
use crate::sample::{Sample, UnitChoice};

/// Returns the samples of a run: the requested ones, or those drawn from its items. Drawn samples of all items are
/// sorted together by n (number of masked functions), so that in a table with a row for each n, the first rows are
/// complete early.
///
/// # Errors
/// Kind `Usage` for a sample that does not exist, and if there are no samples.
pub fn samples(family: &dyn Family, items: &[Arc<dyn Item>], asked: &SampleDraw, seed: u64) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for id in &asked.samples {
        let sample = family.sample(id)?;
        let item = items.iter().find(|item| item.id() == sample.item());
        item.ok_or_else(|| Error::usage(format!("no item of this run has the sample `{id}`")))?.require(&sample)?;
        if !samples.contains(&sample) {
            samples.push(sample);
        }
    }
    if asked.samples.is_empty() {
        for item in items {
            samples.extend(item.draw(asked, seed)?);
        }
        samples.sort_by_key(Sample::n);
    }
    if samples.is_empty() { Err(nothing_drawn(family, items, asked, seed)) } else { Ok(samples) }
}

/// If no sample was drawn, the program tries to draw a sample of each n (number of masked functions) up to this one, to
/// find the reason.
const LARGEST_N: usize = 64;

/// The error if no sample was drawn, with the reason.
#[must_use]
pub fn nothing_drawn(family: &dyn Family, items: &[Arc<dyn Item>], asked: &SampleDraw, seed: u64) -> Error {
    let list = "`autoexperiment list` shows how many there are";
    let has_samples = |n: usize, units: UnitChoice| {
        let one = SampleDraw { n: vec![n], fractions: Vec::new(), units, limit: 1, ..asked.clone() };
        items.iter().any(|item| item.draw(&one, seed).is_ok_and(|samples| !samples.is_empty()))
    };
    let most = (0..=LARGEST_N).rev().find(|&n| has_samples(n, asked.units));
    if asked.units == UnitChoice::Regions && most.is_none_or(|most| most == 0) && has_samples(1, UnitChoice::Functions)
    {
        return Error::usage(format!("none of the chosen {}s lists regions to mask", family.words().item))
            .hint("leave out `--units`: functions are then masked");
    }
    if let Some(after) = asked.after.filter(|_| most.is_none_or(|most| most == 0)) {
        return Error::usage(format!("nothing here is known to have become public after {after}")).hint(
            "give an earlier date, or add `published` or `first_commit` to manifests without dates; `autoexperiment \
             factory refresh` makes a suite with new functions",
        );
    }
    let numbers = asked.n.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match most {
        Some(most) if !asked.n.is_empty() => {
            Error::usage(format!("there are no samples with {numbers} {}: there are at most {most}", family.axis()))
                .hint(list)
        }
        _ => Error::usage("there are no samples").hint(list),
    }
}

/// Returns a warning if no sample was drawn for some of the requested n (numbers of masked functions). Returns `None`
/// if there are no such n, or if the samples were requested by name.
#[must_use]
pub fn beyond(family: &dyn Family, asked: &SampleDraw, samples: &[Sample]) -> Option<String> {
    let missing: Vec<usize> = asked.n.iter().copied().filter(|&n| samples.iter().all(|one| one.n() != n)).collect();
    if missing.is_empty() || !asked.samples.is_empty() {
        return None;
    }
    let most = samples.iter().map(Sample::n).max()?;
    let listed = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Some(format!("there are no samples with {listed} {}; those drawn have at most {most}", family.axis()))
}
