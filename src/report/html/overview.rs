//! The first page: what came of the runs, in tables and pictures. It needs no script.

use std::collections::BTreeMap;

use minijinja::context;
use minijinja::value::Serde;
use serde_json::json;

use super::material::Material;
use super::template::render;
use crate::error::Result;
use crate::report::compare::p_value;
use crate::report::figures::chart::{Canvas, INK, draw};
use crate::report::figures::{Source, Table, figures};
use crate::report::summary::Row;
use crate::report::terminal::TOO_FEW;
use crate::report::{Comparison, Contender, compare, contenders, end_name, summarise};
use crate::stats::Interval;

/// Most comparisons that are shown: with many agents the first is compared with each of the others.
const EVERY_PAIR: usize = 5;

/// The overview as HTML, to be put into the page.
///
/// # Errors
/// Kind `Internal`, should a chart or the template fail.
pub fn overview(material: &Material) -> Result<String> {
    let options = &material.options;
    let summary = summarise(&material.records, options);
    let source = Source {
        axis: &material.axis,
        records: &material.records,
        summary: &summary,
        conditions: &material.conditions,
        intervals: options.intervals,
    };
    let mut drawn = Vec::new();
    for figure in figures(&source) {
        let svg = match &figure.chart {
            Some(chart) => Some(draw(chart, Canvas::SCREEN)?.replace(INK, "currentColor")),
            None => None,
        };
        let missing = figure.missing.unwrap_or_default();
        drawn.push(json!({
            "id": figure.id, "title": figure.title, "caption": figure.caption, "svg": svg, "missing": missing,
            "table": figure.table,
        }));
    }
    let planned: usize = options.planned.iter().map(|planned| planned.attempts).sum();
    let done: usize = summary.rows.iter().filter(|row| row.n.is_some()).map(|row| row.attempts + row.lost).sum();
    let whiskers = format!("{:.0}% intervals, {}", 100.0 * summary.level, summary.population.legend());
    let notes: Vec<&String> = material.notes.iter().chain(&summary.notes).collect();
    let runs: Vec<_> = material
        .runs
        .iter()
        .map(|run| json!({ "name": run.name, "created": run.created, "facts": run.facts }))
        .collect();
    let (comparisons, comparison_legend) = comparisons(material);
    render(
        "overview.html",
        context! {
            title => material.title.clone(),
            planned,
            done,
            begun => material.begun.len(),
            notes => Serde(notes),
            runs => Serde(runs),
            whiskers,
            results => Serde(results(&summary.rows)),
            figures => Serde(drawn),
            comparisons => Serde(comparisons),
            comparison_legend,
            ends => Serde(ends(&summary.rows)),
        },
    )
}

fn cells<const COUNT: usize>(names: [&str; COUNT]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn n_of(n: Option<usize>) -> String {
    n.map_or_else(|| "all".to_owned(), |n| n.to_string())
}

fn percent(rate: f64) -> String {
    format!("{:.1}", 100.0 * rate)
}

fn with_interval(rate: Option<f64>, interval: Option<Interval>) -> String {
    let Some(rate) = rate else { return "–".to_owned() };
    let bounds = interval.map(|it| format!("[{}, {}]", percent(it.low), percent(it.high)));
    format!("{} {}", percent(rate), bounds.as_deref().unwrap_or(TOO_FEW))
}

/// A row for each agent, model and n.
fn results(rows: &[Row]) -> Table {
    let mut columns = cells(["agent", "model", "n", "samples", "attempts"]);
    let ks: Vec<usize> = rows.first().map(|row| row.pass_at.iter().map(|at| at.k).collect()).unwrap_or_default();
    columns.extend(ks.iter().map(|k| format!("pass@{k} %")));
    columns.extend(ks.iter().filter(|&&k| k > 1).map(|k| format!("pass^{k} %")));
    columns.extend(cells([
        "reported %",
        "verified %",
        "unsupported",
        "lost: pass@1 %",
        "steps",
        "$ a sample",
        "$ in all",
    ]));
    columns.extend(cells(["tool s", "model s"]));
    let number =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.digits$}"));
    let rows = rows
        .iter()
        .map(|row| {
            let mut cells = vec![row.agent.clone(), row.model.clone().unwrap_or_else(|| "–".to_owned()), n_of(row.n)];
            cells.extend([row.samples, row.attempts].map(|count| count.to_string()));
            let rates = row.pass_at.iter().chain(&row.pass_all);
            cells.extend(rates.map(|at| with_interval(at.rate, at.interval)));
            cells.extend([row.reported, row.verified].map(|rate| with_interval(rate, None)));
            let bounds = row.pass_at_worst.zip(row.pass_at_best);
            let bounds = bounds.map(|(worst, best)| format!(": {} to {}", percent(worst), percent(best)));
            cells.extend([row.unsupported.to_string(), format!("{}{}", row.lost, bounds.unwrap_or_default())]);
            cells.push(number(row.steps, 1));
            cells.extend([number(row.cost_per_sample, 4), format!("{:.2}", row.cost)]);
            cells.extend([row.tool_seconds, row.model_seconds].map(|seconds| number(seconds, 1)));
            cells
        })
        .collect();
    Table { columns, rows }
}

/// How often attempts ended in which way.
fn ends(rows: &[Row]) -> Table {
    let mut totals: BTreeMap<_, usize> = BTreeMap::new();
    for (end, count) in rows.iter().filter(|row| row.n.is_some()).flat_map(|row| &row.ends) {
        *totals.entry(*end).or_default() += count;
    }
    let mut columns = cells(["agent", "model", "n"]);
    columns.extend(totals.keys().map(|&end| end_name(end).replace('_', " ")));
    let rows = rows
        .iter()
        .map(|row| {
            let mut cells = vec![row.agent.clone(), row.model.clone().unwrap_or_else(|| "–".to_owned()), n_of(row.n)];
            cells.extend(totals.keys().map(|end| row.ends.get(end).copied().unwrap_or_default().to_string()));
            cells
        })
        .collect();
    Table { columns, rows }
}

/// Contenders against each other on the samples that both have, and how to read it.
fn comparisons(material: &Material) -> (Table, String) {
    let (all, absent): (Vec<Contender>, Vec<Contender>) =
        contenders(&material.records).into_iter().partition(|contender| contender.all_lost_note().is_none());
    let how = material.options.intervals;
    let every_pair = all.len() <= EVERY_PAIR;
    let found = compare(&all, every_pair, false, how);
    let columns = cells([
        "first",
        "second",
        "samples",
        "first %",
        "second %",
        "difference, points",
        "only first",
        "only second",
        "p",
        "Holm p",
        "McNemar p",
    ]);
    let rows = found
        .iter()
        .map(|row| {
            vec![
                row.first.clone(),
                row.second.clone(),
                row.samples.to_string(),
                percent(row.first_rate),
                percent(row.second_rate),
                row.shown_difference(),
                row.only_first.to_string(),
                row.only_second.to_string(),
                p_value(row.p),
                p_value(row.adjusted_p),
                p_value(row.mcnemar_p),
            ]
        })
        .collect();
    let which = if every_pair { "Every pair" } else { "The first agent with each of the others" };
    let mut legend = format!(
        "{which}, on the samples that both have: pass@1, the second's less the first's, with its {:.0}% interval ({}). p: \
         sign-flip permutation test over samples; Holm p: adjusted for all rows; only first, only second: samples whose \
         first attempt only that one passes; McNemar p: the exact test on these. Whether the runs were measured by the \
         same suite, gold and budgets is not checked here; `autoexperiment compare` does.",
        100.0 * how.level,
        how.population.legend()
    );
    let lost = found.iter().filter_map(Comparison::lost_note);
    let absent = absent.iter().filter_map(Contender::all_lost_note);
    for note in lost.chain(absent) {
        legend.push(' ');
        legend.push_str(&note);
    }
    (Table { columns, rows }, legend)
}
