//! Scaling figures: the share of attempts that pass within a number of interactions or of reasoning tokens.
//!
//! One run is enough for a curve, because an attempt that passed with 12 steps counts as passing under every limit of
//! 12 steps or more. Its actual limit was different and may have influenced the agent; the figure's caption says so. If
//! runs with several limits are compared, as in the AutoExperiment paper, the limit is the axis.

use std::collections::BTreeMap;

use super::chart::{ChartPoint, Series};
use super::{
    Condition, Figure, FigureInput, NumberTable, add, drawn, figure, headings, overall, percents, quantity, rate_of,
    whiskers,
};
use crate::report::names::full_name;
use crate::report::summary::SummaryRow;
use crate::run::{Outcome, counting};
use crate::stats::{SampleValue, rate_interval};

/// Points per curve.
const POINTS: usize = 12;

/// Makes both figures: over interactions and over reasoning tokens. If agents that otherwise have the same settings had
/// different limits, the axis is the limit; otherwise it is the amount that each attempt used.
pub(super) fn scaling(source: &FigureInput<'_>) -> [Figure; 2] {
    let interactions = Scaling {
        id: "scaling-interactions",
        title: "Scaling in interactions",
        what: "interactions",
        other: "reasoning tokens",
        allowed: "interactions allowed",
        used: "interactions (replies of the model) used, at most",
        nothing: "no attempt of these runs has asked a model",
        spent: |record| u64::from(record.steps),
        limit: |condition| condition.steps.map(u64::from),
        same: |condition| (condition.base.clone(), u64::from(condition.reasoning_tokens)),
    };
    let reasoning = Scaling {
        id: "scaling-reasoning",
        title: "Scaling in reasoning tokens",
        what: "reasoning tokens",
        other: "interactions",
        allowed: "reasoning tokens asked for",
        used: "reasoning tokens used, at most",
        nothing: "no attempt of these runs has used reasoning tokens that its provider counted",
        spent: |record| record.usage.reasoning,
        limit: |condition| Some(u64::from(condition.reasoning_tokens)),
        same: |condition| (condition.base.clone(), condition.steps.map(u64::from).unwrap_or_default()),
    };
    [interactions.figure(source), reasoning.figure(source)]
}

/// Definition of one scaling figure.
struct Scaling {
    id: &'static str,
    title: &'static str,
    what: &'static str,
    /// Unit of the limit that this figure does not vary.
    other: &'static str,
    allowed: &'static str,
    used: &'static str,
    nothing: &'static str,
    spent: fn(&Outcome) -> u64,
    limit: fn(&Condition) -> Option<u64>,
    /// Returns an agent's settings without the limit that this figure varies: its label and its other limit. Agents
    /// with the same result differ only in the limit.
    same: fn(&Condition) -> (String, u64),
}

impl Scaling {
    fn figure(&self, source: &FigureInput<'_>) -> Figure {
        if let Some((series, table)) = self.by_limit(source) {
            let shown = whiskers(source, |record| record.model.is_some());
            let caption = format!("pass@1 over all n, by the {} an attempt. {shown}", self.allowed);
            return figure(self.id, self.title, caption, table, drawn(quantity(self.allowed), "pass@1, %", series));
        }
        let caption = format!(
            "Share of attempts that pass with at most this many {}, averaged over samples; an attempt under a lower limit \
             might have gone otherwise. {}",
            self.what,
            whiskers(source, |record| record.model.is_some())
        );
        if !scored(source).any(|record| (self.spent)(record) > 0) {
            return figure(self.id, self.title, caption, NumberTable::default(), Err(self.nothing.to_owned()));
        }
        let (series, table) = curves(source, self.what, self.spent);
        figure(self.id, self.title, caption, table, drawn(quantity(self.used), "passed, %", series))
    }

    /// pass@1 by limit; `None` unless some agent ran under several limits with otherwise equal settings.
    fn by_limit(&self, source: &FigureInput<'_>) -> Option<(Vec<Series>, NumberTable)> {
        type Same = (String, u64, Option<String>);
        let mut found: BTreeMap<Same, Vec<(u64, &SummaryRow)>> = BTreeMap::new();
        for row in overall(source.summary) {
            if row.model.is_none() {
                continue;
            }
            let condition = source.conditions.get(&row.agent)?;
            let (base, other) = (self.same)(condition);
            found.entry((base, other, row.model.clone())).or_default().push(((self.limit)(condition)?, row));
        }
        let mut table = NumberTable {
            columns: headings(&["agent", "model", self.allowed, "samples", "pass@1 %", "low %", "high %"]),
            rows: Vec::new(),
        };
        let (mut series, mut several) = (Vec::new(), false);
        let names: Vec<(String, Option<String>)> =
            found.keys().map(|(base, _, model)| (base.clone(), model.clone())).collect();
        for ((base, other, model), mut rows) in found {
            rows.sort_by_key(|(limit, _)| *limit);
            // If several curves have the same agent and model, they differ in the other limit, so add that limit to
            // their names.
            let is_unique = names.iter().filter(|(one, of)| *one == base && *of == model).count() == 1;
            let mut name = full_name(&base, model.as_deref());
            if !is_unique {
                name = format!("{name}, {other} {}", self.other);
            }
            several |= rows.first().map(|(limit, _)| *limit) != rows.last().map(|(limit, _)| *limit);
            for (limit, row) in rows {
                let Some((rate, interval)) = rate_of(row, 1) else { continue };
                add(&mut series, &name, ChartPoint { x: limit as f64, rate, interval });
                let mut cells = vec![row.agent.clone(), row.model.clone().unwrap_or_default(), limit.to_string()];
                cells.push(row.samples.to_string());
                cells.extend(percents(rate, interval));
                table.rows.push(cells);
            }
        }
        several.then_some((series, table))
    }
}

/// Returns the records of attempts that used a model and were not lost to infrastructure. If an attempt has several
/// records, returns only the one that pass rates use (see [`counting`]). Agents without a model are left out, because
/// their steps are not interactions.
fn scored<'a>(source: &FigureInput<'a>) -> impl Iterator<Item = &'a Outcome> + use<'a> {
    let records = source.records;
    records
        .iter()
        .zip(counting(records))
        .filter(|(record, counts)| *counts && record.model.is_some() && !record.is_infrastructure())
        .map(|it| it.0)
}

/// Returns one curve per pair of agent and model, over the same thresholds for all.
fn curves(source: &FigureInput<'_>, what: &str, spent: fn(&Outcome) -> u64) -> (Vec<Series>, NumberTable) {
    /// Attempts by sample.
    type Attempts<'a> = BTreeMap<&'a str, Vec<&'a Outcome>>;
    let mut contenders: BTreeMap<(&str, Option<&str>), Attempts<'_>> = BTreeMap::new();
    for record in scored(source) {
        let samples = contenders.entry((&record.agent, record.model.as_deref())).or_default();
        samples.entry(&record.sample).or_default().push(record);
    }
    let most = scored(source).map(spent).max().unwrap_or_default();
    let thresholds = thresholds(most);
    let most_used = format!("{what} used, at most");
    let mut table = NumberTable {
        columns: headings(&["agent", "model", &most_used, "passed %", "low %", "high %"]),
        rows: Vec::new(),
    };
    let mut series = Vec::new();
    for ((agent, model), samples) in contenders {
        let count = samples.len() as f64;
        let trials = samples.values().map(Vec::len).sum::<usize>() as f64 / count;
        for (place, &most) in thresholds.iter().enumerate() {
            // If the maximum is smaller than the number of thresholds, the last thresholds all equal the maximum. Draw
            // only one of them.
            if place > 0 && thresholds[place - 1] == most {
                break;
            }
            let within = |record: &&&Outcome| record.pass && spent(record) <= most;
            let rates: Vec<SampleValue<'_>> = samples
                .values()
                .map(|attempts| {
                    let value = attempts.iter().filter(within).count() as f64 / attempts.len() as f64;
                    SampleValue { paper: &attempts[0].paper, n: attempts[0].n, value }
                })
                .collect();
            let rate = rates.iter().map(|sample| sample.value).sum::<f64>() / count;
            let interval = rate_interval(&rates, trials, source.intervals);
            add(&mut series, &full_name(agent, model), ChartPoint { x: most as f64, rate, interval });
            let mut cells = vec![agent.to_owned(), model.unwrap_or_default().to_owned()];
            cells.push(most.to_string());
            cells.extend(percents(rate, interval));
            table.rows.push(cells);
        }
    }
    (series, table)
}

/// Returns the x values of the curves: evenly spaced up to `most`, the largest amount that any attempt used. At each of
/// them, a curve shows the share of attempts that passed without using more.
fn thresholds(most: u64) -> [u64; POINTS] {
    std::array::from_fn(|place| {
        if most <= POINTS as u64 {
            (place as u64 + 1).min(most.max(1))
        } else {
            // In 128 bits, because token counts from servers may be absurd.
            (u128::from(most) * (place as u128 + 1) / POINTS as u128) as u64
        }
    })
}
