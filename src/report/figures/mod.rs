//! Figures over stored attempts, each with the table of its numbers.
//!
//! [`figures`] computes them from rows and records, [`chart`] draws one as SVG, and [`files`] converts it to files for
//! print. Rates carry the same intervals as the tables of the report.

pub mod chart;
mod cost;
#[cfg(feature = "figures")]
pub mod files;
#[cfg(not(feature = "figures"))]
#[path = "files_left_out.rs"]
pub mod files;
mod scaling;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::clean::cell;
use super::names::full_name;
use super::summary::{PassAt, Summary, SummaryRow};
use super::verifiers::VerifierRow;
use crate::agent::{AgentSpec, Settings, written};
use crate::error::{Error, Result};
use crate::run::{Outcome, scored};
use crate::stats::{Interval, Intervals};
use chart::{Chart, ChartPoint, HorizontalAxis, Series};
pub use cost::COST;

/// A chart with its title, caption and numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Id for links and file names, such as `pass-by-n`.
    pub id: &'static str,
    /// Title: what the figure shows.
    pub title: &'static str,
    /// Caption: how to read the figure.
    pub caption: String,
    /// The chart; `None` if there is nothing to draw, with the reason in `missing`.
    pub chart: Option<Chart>,
    /// Reason why there is no chart.
    pub missing: Option<String>,
    /// Table of the figure's numbers.
    pub table: NumberTable,
}

/// One figure in three formats.
pub struct FigureFiles {
    /// The SVG as drawn, with its size in inches.
    pub svg: String,
    /// The PDF, as vectors with embedded fonts.
    pub pdf: Vec<u8>,
    /// The PNG at 300 dots per inch, on white.
    pub png: Vec<u8>,
}

/// The table of numbers below a chart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NumberTable {
    /// Column headings.
    pub columns: Vec<String>,
    /// Rows of cells, one cell per column. Numbers are unformatted, rates in percent.
    pub rows: Vec<Vec<String>>,
}

impl NumberTable {
    /// Returns the table without the columns that are empty in every row.
    #[must_use]
    pub fn without_empty_columns(&self) -> Self {
        let is_filled = |place: usize| self.rows.iter().any(|row| !matches!(row[place].as_str(), "" | "–" | "-"));
        let kept: Vec<usize> = (0..self.columns.len()).filter(|&place| is_filled(place)).collect();
        let of = |row: &Vec<String>| kept.iter().map(|&place| row[place].clone()).collect();
        Self { columns: of(&self.columns), rows: self.rows.iter().map(of).collect() }
    }

    /// Formats the table as CSV that is safe to open in a spreadsheet.
    ///
    /// # Errors
    /// Kind `Internal` if writing to memory fails.
    pub fn csv(&self) -> Result<String> {
        let failed = |error: csv::Error| Error::internal("failed to write CSV").because(error);
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            // `cell` changes texts that begin with `-`, because spreadsheets take them as formulas. Negative numbers
            // stay as they are.
            let safe = row.iter().map(|text| if text.parse::<f64>().is_ok() { text.clone() } else { cell(text) });
            writer.write_record(safe).map_err(failed)?;
        }
        let bytes = writer.into_inner().map_err(|error| Error::internal(format!("failed to write CSV: {error}")))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Settings of one agent in a run. They decide on which curve of a figure, and where on the curve, the agent's results
/// are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    /// The agent's label without its run and its reasoning setting; the same for all points of a curve.
    pub base: String,
    /// The agent's settings `paper` and `code`, which say what the prompt contains of each. An example is
    /// `paper bm25, code agent`. `None` for agents without these settings.
    pub context: Option<String>,
    /// Requested tokens of reasoning; 0 if no amount was requested.
    pub reasoning_tokens: u32,
    /// Maximum number of steps per attempt.
    pub steps: Option<u32>,
}

impl Condition {
    /// Derives the condition from an agent's label and the run's settings and step limit.
    #[must_use]
    pub fn from_settings(label: &str, agent: &AgentSpec, run: &Settings, steps: u32) -> Self {
        // Keep the number at the end of the label that distinguishes agents with otherwise equal labels.
        let number = label.strip_prefix(&agent.label(run)).unwrap_or_default();
        let base = format!("{}{number}", agent.label_without(run, Some("reasoning")));
        let settings = agent.settings(run);
        let context = settings.as_ref().and_then(|settings| Some((settings.paper?, settings.code?)));
        Self {
            base,
            context: context.map(|(paper, code)| format!("paper {}, code {}", written(paper), written(code))),
            reasoning_tokens: settings.map_or(0, |settings| settings.reasoning_tokens),
            steps: Some(steps),
        }
    }
}

/// Input of all figures.
pub struct FigureInput<'a> {
    /// All attempts, with the agents' labels used in the rows.
    pub records: &'a [Outcome],
    /// Pass rates of each agent and model, and of the attempts that verifiers chose.
    pub summary: &'a Summary,
    /// For each agent's label, the settings that decide where the agent's results appear in the figures.
    pub conditions: &'a BTreeMap<String, Condition>,
    /// Method of the intervals.
    pub intervals: Intervals,
    /// Name of the quantity that n counts, such as "masked functions".
    pub axis: &'a str,
}

/// Makes all figures in the order of the AutoExperiment paper. Instead of a chart, a figure without data has a text
/// that says what is missing.
#[must_use]
pub fn figures(source: &FigureInput<'_>) -> Vec<Figure> {
    let mut all = vec![by_n(source), pass_at_k(source)];
    all.extend(scaling::scaling(source));
    all.push(contexts(source));
    all.push(cost::cost(source));
    // A contender's style follows from its place among all contenders, so it looks the same in every chart.
    let names = source.summary.rows.iter().map(|row| full_name(&row.agent, row.model.as_deref()));
    let contenders: Vec<String> = names.collect::<BTreeSet<_>>().into_iter().collect();
    for series in all.iter_mut().filter_map(|figure| figure.chart.as_mut()).flat_map(|chart| &mut chart.series) {
        series.style = contenders.iter().position(|name| *name == series.name);
    }
    all
}

/// Returns the end of a caption, which gives the number of samples and says what the whiskers show. Counts only the
/// attempts that the figure shows, according to `is_shown`.
fn whiskers(source: &FigureInput<'_>, is_shown: impl Fn(&Outcome) -> bool) -> String {
    let (level, over) = (100.0 * source.summary.level, source.summary.intervals().legend());
    let counting = scored(source.records).filter(|record| is_shown(record));
    let (samples, attempts) = counting.fold((BTreeSet::new(), 0_usize), |(mut samples, attempts), record| {
        samples.insert(&*record.sample);
        (samples, attempts + 1)
    });
    format!("From {attempts} attempts at {} samples. Whiskers: {level:.0}% intervals, {over}.", samples.len())
}

/// Pass rate by n, one line per contender.
fn by_n(source: &FigureInput<'_>) -> Figure {
    let rows: Vec<&SummaryRow> = source.summary.rows.iter().filter(|row| row.n.is_some()).collect();
    let mut series: Vec<Series> = Vec::new();
    let mut table = NumberTable {
        columns: headings(&["agent", "model", "n", "samples", "attempts", "pass@1 %", "low %", "high %"]),
        rows: Vec::new(),
    };
    for row in &rows {
        let (Some(n), Some((rate, interval))) = (row.n, rate_of(row, 1)) else { continue };
        let label = full_name(&row.agent, row.model.as_deref());
        add(&mut series, &label, ChartPoint { x: n as f64, rate, interval });
        let mut cells = vec![row.agent.clone(), row.model.clone().unwrap_or_default(), n.to_string()];
        cells.extend([row.samples.to_string(), row.attempts.to_string()]);
        cells.extend(percents(rate, interval));
        table.rows.push(cells);
    }
    let caption = format!(
        "Share of attempts that pass, by the number of {}, averaged over samples. {}",
        source.axis,
        whiskers(source, |_| true)
    );
    let axis = quantity(&format!("{} (n)", source.axis));
    figure("pass-by-n", "Pass rate by n", caption, table, drawn(axis, "pass@1, %", series))
}

/// Draws pass@1, the pass rates of the attempts that verifiers chose, and pass@k, next to each other for each
/// contender.
fn pass_at_k(source: &FigureInput<'_>) -> Figure {
    let mut names: Vec<String> = Vec::new();
    let mut series: Vec<Series> = Vec::new();
    let mut table = NumberTable {
        columns: headings(&["agent", "model", "what", "samples", "rate %", "low %", "high %", "gap closed %"]),
        rows: Vec::new(),
    };
    table.columns.extend(headings(&["gap low %", "gap high %"]));
    let mut is_partial = false;
    for row in overall(source.summary) {
        let place = names.len() as f64;
        names.push(full_name(&row.agent, row.model.as_deref()));
        let mut put = |what: &str, samples: usize, rate: f64, interval: Option<Interval>, gap: [String; 3]| {
            add(&mut series, what, ChartPoint { x: place, rate, interval });
            let mut cells = vec![row.agent.clone(), row.model.clone().unwrap_or_default(), what.to_owned()];
            cells.push(samples.to_string());
            cells.extend(percents(rate, interval));
            cells.extend(gap);
            table.rows.push(cells);
        };
        let no_gap = || [const { String::new() }; 3];
        if let PassAt { rate: Some(rate), interval, samples, .. } = row.pass_at_1 {
            put("pass@1", samples, rate, interval, no_gap());
        }
        let mine = source.summary.verifiers.iter().filter(|it| it.agent == row.agent && it.model == row.model);
        // Leave out a verifier that chose at only some samples, because the other rates cover all samples.
        let (whole, partial): (Vec<_>, Vec<_>) =
            widest(mine).into_iter().partition(|verifier| verifier.samples == row.samples);
        is_partial |= !partial.is_empty();
        for verifier in whole {
            let what = format!("chosen by {}", super::clean::clean(&verifier.verifier));
            let interval = verifier.intervals.map(|intervals| intervals[1]);
            let gap = verifier.gap_closed.map_or_else(no_gap, |share| percents(share, verifier.gap_interval));
            put(&what, verifier.samples, verifier.rates[1], interval, gap);
        }
        for at in row.pass_at.iter().filter(|at| at.k != 1) {
            if let Some(rate) = at.rate {
                put(&format!("pass@{}", at.k), at.samples, rate, at.interval, no_gap());
            }
        }
    }
    let unchosen = if source.summary.verifiers.is_empty() {
        " No verifier has chosen among these attempts (`autoexperiment pick`)."
    } else if is_partial {
        " Verifiers that chose at only some samples are left out (`autoexperiment pick` continues)."
    } else {
        ""
    };
    let caption = format!(
        "A single attempt, the attempt that a verifier chooses, and the best of k; over all n. Gap closed: how far the \
         chosen attempt gets from pass@1 to pass@k. {}{unchosen}",
        whiskers(source, |_| true)
    );
    let drawn = drawn(HorizontalAxis::Names(names), "samples solved, %", series);
    figure("pass-at-k", "One attempt, a chosen one, the best of k", caption, table, drawn)
}

/// Draws the pass rate by n, one line for each contender and [`Condition::context`].
fn contexts(source: &FigureInput<'_>) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    let mut table = NumberTable {
        columns: headings(&["context", "agent", "model", "n", "samples", "pass@1 %", "low %", "high %"]),
        rows: Vec::new(),
    };
    let mut kinds = std::collections::BTreeSet::new();
    for row in source.summary.rows.iter().filter(|row| row.n.is_some()) {
        let context = source.conditions.get(&row.agent).and_then(|condition| condition.context.clone());
        let (Some(n), Some(context), Some((rate, interval))) = (row.n, context, rate_of(row, 1)) else { continue };
        let label = format!("{context}: {}", full_name(&row.agent, row.model.as_deref()));
        add(&mut series, &label, ChartPoint { x: n as f64, rate, interval });
        let mut cells = vec![context.clone(), row.agent.clone(), row.model.clone().unwrap_or_default(), n.to_string()];
        cells.push(row.samples.to_string());
        cells.extend(percents(rate, interval));
        table.rows.push(cells);
        kinds.insert(context);
    }
    let has_context =
        |record: &Outcome| source.conditions.get(&*record.agent).is_some_and(|condition| condition.context.is_some());
    let caption = format!(
        "Pass rate by n, for each kind of paper and code context that agents got. {}",
        whiskers(source, has_context)
    );
    let drawn = match kinds.len() {
        0 => Err("no agent in these runs has configurable context".to_owned()),
        1 => Err(format!(
            "all attempts had the same context ({}); to compare contexts, add runs with other values of the agent's settings \
             `paper` and `code`",
            kinds.first().map_or("", String::as_str)
        )),
        _ => drawn(quantity(&format!("{} (n)", source.axis)), "pass@1, %", series),
    };
    figure("context-by-n", "Kinds of context by n", caption, table, drawn)
}

/// For each contender, the row over all n or, if the contender has only one row, that row.
fn overall(summary: &Summary) -> Vec<&SummaryRow> {
    let same = |one: &SummaryRow, other: &SummaryRow| one.agent == other.agent && one.model == other.model;
    let is_only = |row: &SummaryRow| summary.rows.iter().filter(|other| same(row, other)).count() == 1;
    summary.rows.iter().filter(|row| row.n.is_none() || is_only(row)).collect()
}

/// For each verifier, its row over all n or, without one, its first row.
fn widest<'a>(rows: impl Iterator<Item = &'a VerifierRow>) -> Vec<&'a VerifierRow> {
    let mut found: Vec<&VerifierRow> = Vec::new();
    for row in rows {
        match found.iter_mut().find(|other| other.verifier == row.verifier) {
            Some(other) if row.n.is_none() => *other = row,
            Some(_) => {}
            None => found.push(row),
        }
    }
    found
}

fn rate_of(row: &SummaryRow, k: usize) -> Option<(f64, Option<Interval>)> {
    let at = row.pass_at.iter().find(|at| at.k == k)?;
    Some((at.rate?, at.interval))
}

/// Adds a point to the series of this name and creates the series if needed.
fn add(series: &mut Vec<Series>, name: &str, point: ChartPoint) {
    match series.iter_mut().find(|series| series.name == name) {
        Some(series) => series.points.push(point),
        None => series.push(Series { name: name.to_owned(), points: vec![point], style: None }),
    }
}

fn quantity(label: &str) -> HorizontalAxis {
    HorizontalAxis::Quantity(label.to_owned())
}

fn headings(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Formats a rate and its bounds in percent, unknown bounds as empty cells.
fn percents(rate: f64, interval: Option<Interval>) -> [String; 3] {
    let percent = |rate: f64| format!("{:.1}", 100.0 * rate);
    [
        percent(rate),
        interval.map(|it| percent(it.low)).unwrap_or_default(),
        interval.map(|it| percent(it.high)).unwrap_or_default(),
    ]
}

/// Returns the chart, or the reason why there is nothing to draw.
fn drawn(over: HorizontalAxis, rate: &str, series: Vec<Series>) -> std::result::Result<Chart, String> {
    if series.is_empty() {
        return Err("no attempt has been scored yet".to_owned());
    }
    Ok(Chart { over, rate: rate.to_owned(), series, line: None })
}

fn figure(
    id: &'static str,
    title: &'static str,
    caption: String,
    table: NumberTable,
    drawn: std::result::Result<Chart, String>,
) -> Figure {
    let (chart, missing) = match drawn {
        Ok(chart) => (Some(chart), None),
        Err(why) => (None, Some(why)),
    };
    Figure { id, title, caption, chart, missing, table }
}
