//! Tables of the leaderboard page: ranks, costs, and pass rates by paper.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use serde::Serialize;

use super::material::Material;
use super::words::{percent, with_interval};
use crate::report::figures::NumberTable;
use crate::report::full_name;
use crate::report::leaderboard::{LeaderboardRow, largest_k, money, rate_at};
use crate::report::summary::PassAt;
use crate::run::{Outcome, scored};
use crate::stats::{Intervals, Population, SampleValue, rate_interval};

/// Maximum number of agents (each with its model) that have a column of their own.
const MOST_COLUMNS: usize = 5;

/// A table whose rows link to other pages or sections.
#[derive(Debug, Default, Serialize)]
pub(super) struct LinkedTable {
    #[serde(flatten)]
    table: NumberTable,
    /// Link target of each row's first cell.
    hrefs: Vec<String>,
    /// Number of agents (each with its model) that have no column.
    left_out: usize,
}

impl LinkedTable {
    /// Whether there is nothing to show.
    pub(super) fn is_empty(&self) -> bool {
        self.table.rows.is_empty()
    }
}

/// Returns the leaderboard, with one row for each agent and model.
pub(super) fn board(places: &[LeaderboardRow]) -> NumberTable {
    // If no agent has such a rate, any k will do for the heading, because empty columns are removed.
    let any = largest_k(places, |place| place.any).unwrap_or(1);
    let all = largest_k(places, |place| place.all).unwrap_or(1);
    let mut columns = vec!["agent".to_owned(), "model".to_owned(), "rank".to_owned(), "pass@1 %".to_owned()];
    columns.extend([format!("pass@{any} %"), format!("pass^{all} %")]);
    columns.extend(["$ an attempt", "$ a pass", "front", "steps", "samples", "attempts", "lost %"].map(str::to_owned));
    let dollars = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), money);
    let rate = |at: Option<PassAt>, k: usize| rate_at(at, k).map_or_else(|| "–".to_owned(), percent);
    let row = |place: &LeaderboardRow| {
        let lost = place.lost as f64 / (place.lost + place.attempts).max(1) as f64;
        vec![
            place.agent.clone(),
            place.model.clone().unwrap_or_else(|| "–".to_owned()),
            place.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string()),
            with_interval(place.pass, place.interval),
            rate(place.any, any),
            rate(place.all, all),
            dollars(place.cost),
            dollars(place.cost_per_pass),
            if place.is_front { "★" } else { "" }.to_owned(),
            place.steps.map_or_else(|| "–".to_owned(), |steps| format!("{steps:.1}")),
            place.samples.to_string(),
            place.attempts.to_string(),
            percent(lost),
        ]
    };
    NumberTable { columns, rows: places.iter().map(row).collect() }
}

/// pass@1 of each agent and model as a matrix, with the longer side vertical. Empty unless there are several agents and
/// several models.
pub(super) fn agents_by_models(material: &Material, places: &[LeaderboardRow]) -> NumberTable {
    let agent = |place: &LeaderboardRow| material.agents.get(&place.agent).unwrap_or(&place.agent).clone();
    let model = |place: &LeaderboardRow| place.model.clone().unwrap_or_else(|| "no model".to_owned());
    let mut cells: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for place in places {
        let rate = place.pass.map_or_else(|| "–".to_owned(), percent);
        cells.entry((agent(place), model(place))).or_default().push(rate);
    }
    // `places` is sorted by pass rate, so the names of the best agents and models come first.
    let agents: Vec<String> = places.iter().map(agent).unique().collect();
    let models: Vec<String> = places.iter().map(model).unique().collect();
    if agents.len() < 2 || models.len() < 2 {
        return NumberTable::default();
    }
    let of = |agent: &String, model: &String| {
        cells.get(&(agent.clone(), model.clone())).map_or_else(String::new, |rates| rates.join(" / "))
    };
    let (corner, down, across, is_turned) = if models.len() > agents.len() {
        ("model", &models, &agents, true)
    } else {
        ("agent", &agents, &models, false)
    };
    let columns = std::iter::once(corner.to_owned()).chain(across.iter().cloned()).collect();
    let row = |name: &String| {
        let cell = |other: &String| if is_turned { of(other, name) } else { of(name, other) };
        std::iter::once(name.clone()).chain(across.iter().map(cell)).collect()
    };
    NumberTable { columns, rows: down.iter().map(row).collect() }
}

/// By sample: its n (the number of masked functions), the number of passed attempts, and the number of all attempts
/// that were not lost to infrastructure failures.
type Samples<'a> = BTreeMap<&'a str, (usize, [usize; 2])>;
/// (paper, agent, model).
type ContenderOnPaper<'a> = (&'a str, &'a str, Option<&'a str>);

fn of_place<'a>(
    found: &'a BTreeMap<ContenderOnPaper<'a>, Samples<'a>>,
    paper: &'a str,
    place: &'a LeaderboardRow,
) -> Option<&'a Samples<'a>> {
    found.get(&(paper, place.agent.as_str(), place.model.as_deref()))
}

/// pass@1 by paper, with a column for each of the first contenders (agent and model) of the leaderboard.
pub(super) fn by_paper(material: &Material, places: &[LeaderboardRow]) -> LinkedTable {
    let mut found: BTreeMap<ContenderOnPaper<'_>, Samples<'_>> = BTreeMap::new();
    // For each paper, the numbers of passed and of all attempts, over all agents and models together.
    let mut totals: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for record in scored(&material.records) {
        let Outcome { paper, agent, model, sample, n, pass, .. } = record;
        let total = totals.entry(paper).or_default();
        *total = [total[0] + usize::from(*pass), total[1] + 1];
        let samples = found.entry((paper, agent, model.as_deref())).or_default();
        let (_, counts) = samples.entry(sample).or_insert((*n, [0, 0]));
        *counts = [counts[0] + usize::from(*pass), counts[1] + 1];
    }
    // The paper that was solved most often comes first.
    let rate = |paper: &str| totals[paper][0] as f64 / totals[paper][1] as f64;
    let mut papers: Vec<&str> = totals.keys().copied().collect();
    papers.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    if papers.len() < 2 {
        return LinkedTable::default();
    }
    let shown = &places[..places.len().min(MOST_COLUMNS)];
    let mut columns = vec![material.options.intervals.group.to_owned(), "samples".to_owned()];
    columns.extend(shown.iter().map(|place| format!("{} %", full_name(&place.agent, place.model.as_deref()))));
    // Each row is about one paper, which says nothing about other papers. So the intervals here are for this suite
    // only.
    let how = Intervals { population: Population::Suite, ..material.options.intervals };
    let (mut rows, mut hrefs) = (Vec::new(), Vec::new());
    for paper in papers {
        let samples = shown.iter().filter_map(|place| of_place(&found, paper, place));
        let samples: BTreeSet<&str> = samples.flat_map(|samples| samples.keys().copied()).collect();
        let rate = |place: &LeaderboardRow| {
            let Some(samples) = of_place(&found, paper, place) else { return "–".to_owned() };
            let measured: Vec<SampleValue<'_>> = samples
                .values()
                .map(|(n, [passed, all])| SampleValue { paper, n: *n, value: *passed as f64 / *all as f64 })
                .collect();
            let attempts: usize = samples.values().map(|(_, [_, all])| all).sum();
            let mean = measured.iter().map(|sample| sample.value).sum::<f64>() / measured.len() as f64;
            with_interval(Some(mean), rate_interval(&measured, attempts as f64 / measured.len() as f64, how))
        };
        let mut cells = vec![paper.to_owned(), samples.len().to_string()];
        cells.extend(shown.iter().map(rate));
        rows.push(cells);
        let name = percent_encoding::utf8_percent_encode(paper, percent_encoding::NON_ALPHANUMERIC);
        // In the address of the list of samples, the paper is the sixth filter. The five filters before it are empty.
        hrefs.push(format!("#/samples//////{name}"));
    }
    LinkedTable { table: NumberTable { columns, rows }, hrefs, left_out: places.len() - shown.len() }
}
