//! The page's section on the measures that each kind of task defines for its attempts. It shows the measures by n (such
//! as the number of masked functions), and explains the values of n.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::material::Material;
use super::words::with_interval;
use crate::report::figures::NumberTable;
use crate::report::leaderboard::LeaderboardRow;
use crate::report::summary::{Summary, SummaryRow};
use crate::run::family::MeasureFacts;

/// Name under which the table shows the score of attempts.
const CREDIT: &str = "credit";
/// Description of the score, which the section shows like a measure.
const SCORE: MeasureFacts = MeasureFacts::share(CREDIT, "the share of the task that was done, partial credit included");

/// The section on measures.
#[derive(Debug, Default, Serialize)]
pub(super) struct MeasuresSection {
    /// Measures that are shares, in percent with intervals: one row per measure and contender (agent and model).
    shares: NumberTable,
    /// Measures that are counts, as means: one row per measure and contender (agent and model).
    counts: NumberTable,
    /// Each measure with its meaning.
    meanings: Vec<(String, String)>,
}

impl MeasuresSection {
    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.shares.rows.is_empty() && self.counts.rows.is_empty()
    }
}

/// Makes the section; its tables have no rows if the summary has neither scores nor measures.
pub(super) fn measures(material: &Material, summary: &Summary, places: &[LeaderboardRow]) -> MeasuresSection {
    let rows = &summary.rows;
    let measured: BTreeSet<&str> = rows.iter().flat_map(|row| row.measures.keys()).map(String::as_str).collect();
    let listed = || std::iter::once(&SCORE).chain(&material.measures);
    let mut found: Vec<(&str, Option<&MeasureFacts>)> =
        listed().filter(|it| it.name == CREDIT || measured.contains(it.name)).map(|it| (it.name, Some(it))).collect();
    found.retain(|(name, _)| *name != CREDIT || rows.iter().any(|row| row.score.is_some()));
    let unlisted = measured.into_iter().filter(|name| listed().all(|it| it.name != *name));
    found.extend(unlisted.map(|name| (name, None)));
    let is_share = |name: &str, facts: Option<&MeasureFacts>| {
        // A measure without a description is taken for a share if no row's mean is above 1, otherwise for a count.
        facts.map_or_else(
            || rows.iter().all(|row| !row.measures.contains_key(name) || row.measures[name] <= 1.0),
            |facts| !facts.is_count,
        )
    };
    let (shares, counts): (Vec<_>, Vec<_>) = found.iter().partition(|(name, facts)| is_share(name, *facts));
    let names = |of: Vec<(&str, Option<&MeasureFacts>)>| of.into_iter().map(|(name, _)| name.to_owned()).collect();
    let shares: Vec<String> = names(shares);
    let counts: Vec<String> = names(counts);
    MeasuresSection {
        shares: table(rows, places, &shares, |row, name| {
            let (mean, interval) = if name == CREDIT {
                (row.score, row.score_interval)
            } else {
                (row.measures.get(name).copied(), row.measure_intervals.get(name).copied())
            };
            with_interval(mean, interval)
        }),
        counts: table(rows, places, &counts, |row, name| {
            row.measures.get(name).map_or_else(|| "–".to_owned(), |mean| format!("{mean:.2}"))
        }),
        meanings: found
            .iter()
            .filter_map(|(name, facts)| Some(((*name).to_owned(), (*facts)?.meaning.to_owned())))
            .collect(),
    }
}

/// Makes a table with one row per measure and contender, the contenders in the order of the leaderboard. It has one
/// column for each n (such as the number of masked functions) and one for all n.
fn table(
    rows: &[SummaryRow],
    places: &[LeaderboardRow],
    measures: &[String],
    cell: impl Fn(&SummaryRow, &str) -> String,
) -> NumberTable {
    let mut ns: Vec<Option<usize>> = rows.iter().map(|row| row.n).collect::<BTreeSet<_>>().into_iter().collect();
    // `None` stands for all n and is sorted first. With two entries there is only one n, and the column for all n would
    // repeat the column of this n.
    if ns.len() == 2 && ns[0].is_none() {
        ns.remove(0);
    }
    let heading = |n: &Option<usize>| n.map_or_else(|| "all n".to_owned(), |n| format!("n = {n}"));
    let columns = ["agent", "model", "measure"].map(str::to_owned).into_iter().chain(ns.iter().map(heading)).collect();
    let mut table = NumberTable { columns, rows: Vec::new() };
    for measure in measures {
        for place in places {
            let own = |n: &Option<usize>| {
                let row = rows.iter().find(|row| row.agent == place.agent && row.model == place.model && row.n == *n);
                row.map_or_else(|| "–".to_owned(), |row| cell(row, measure))
            };
            let values: Vec<String> = ns.iter().map(own).collect();
            if values.iter().all(|value| value == "–") {
                continue;
            }
            let model = place.model.clone().unwrap_or_else(|| "–".to_owned());
            table.rows.push([place.agent.clone(), model, measure.clone()].into_iter().chain(values).collect());
        }
    }
    table.without_empty_columns()
}

/// The descriptions of the values of n (such as the number of masked functions): for 0, for example, "nothing is
/// masked: reproduction". Leaves out descriptions that only contain the number, such as "3 masked functions".
pub(super) fn meanings_of_n(material: &Material) -> Vec<(usize, String)> {
    let mut found: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for facts in material.samples.values() {
        let is_number =
            facts.extent.starts_with(&format!("{} ", facts.n)) || facts.extent == format!("n = {}", facts.n);
        if !is_number {
            found.entry(facts.n).or_default().insert(&facts.extent);
        }
    }
    found.into_iter().map(|(n, extents)| (n, extents.into_iter().collect::<Vec<_>>().join("; or "))).collect()
}
