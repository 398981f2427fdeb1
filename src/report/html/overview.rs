//! The overview: the runs' results as tables and charts. It works without a script.

use std::collections::BTreeMap;

use minijinja::context;
use minijinja::value::Serde;
use serde_json::json;

use super::board::{agents_by_models, board, by_paper};
use super::headline::headline;
use super::material::Material;
use super::measures::{meanings_of_n, measures};
use super::template::render;
use super::words::{percent, with_interval};
use crate::error::Result;
use crate::report::compare::{contender_name, flipped_units, p_value};
use crate::report::curriculum::{COLUMNS, CurriculumCourse};
use crate::report::figures::chart::{Canvas, INK, draw};
use crate::report::figures::{COST, FigureInput, NumberTable, figures};
use crate::report::leaderboard::{LeaderboardRow, leaderboard, legend};
use crate::report::summary::SummaryRow;
use crate::report::{Contender, ContenderComparison, compare, contenders, end_name, summarise};

/// Maximum number of contenders for which every pair is compared. If there are more contenders, only the first is
/// compared with each of the others.
const EVERY_PAIR: usize = 5;

/// Renders the overview as HTML to embed in the page.
///
/// # Errors
/// Kind `Internal` if a chart or the template fails.
pub fn overview(material: &Material) -> Result<String> {
    let options = &material.options;
    let summary = summarise(&material.records, options);
    let source = FigureInput {
        axis: &material.axis,
        records: &material.records,
        summary: &summary,
        conditions: &material.conditions,
        intervals: options.intervals,
    };
    let mut drawn = Vec::new();
    for figure in figures(&source) {
        // Figures without data are left out; `report --figures` lists them with the reason.
        let Some(chart) = &figure.chart else { continue };
        let svg = draw(chart, Canvas::SCREEN)?.replace(INK, "currentColor");
        drawn.push(json!({
            "id": figure.id, "title": figure.title, "caption": figure.caption, "svg": svg,
            "table": figure.table.without_empty_columns(),
        }));
    }
    let planned: usize = options.planned.iter().map(|planned| planned.attempts).sum();
    let done: usize = summary.rows.iter().filter(|row| row.n.is_some()).map(|row| row.attempts + row.lost).sum();
    let whiskers = format!("{:.0}% intervals, {}", 100.0 * summary.level, summary.intervals().legend());
    let notes: Vec<&String> = material.notes.iter().chain(&summary.notes).collect();
    let runs: Vec<_> = material
        .runs
        .iter()
        .map(|run| json!({ "name": run.name, "created": run.created, "facts": run.facts }))
        .collect();
    // The first chart goes above the tables, and the cost chart next to the table of costs.
    let (priced, mut drawn): (Vec<_>, Vec<_>) = drawn.into_iter().partition(|figure| figure["id"] == COST);
    let further = drawn.split_off(drawn.len().min(1));
    let pairs = compare(&contenders(&material.records), true, false, material.options.intervals);
    let places = leaderboard(&summary, &pairs);
    let (comparisons, comparison_legend) = comparisons(material, &places, &pairs);
    let board = if places.len() > 1 { board(&places).without_empty_columns() } else { NumberTable::default() };
    let (cross, papers) = (agents_by_models(material, &places), by_paper(material, &places));
    let measures = measures(material, &summary, &places);
    let rows = best_first(&summary.rows, &places);
    let mut contents = Vec::new();
    let mut list = |id: &str, title: &str, is_there: bool| {
        contents.extend(is_there.then(|| (id.to_owned(), title.to_owned())));
    };
    let title_of = |figure: &serde_json::Value, key: &str| figure[key].as_str().unwrap_or_default().to_owned();
    list("leaderboard", "Leaderboard", !board.rows.is_empty());
    list("results", "Results by n", true);
    list("measures", "Measures of the task", !measures.is_empty());
    list("agents-models", "Agents by models", !cross.rows.is_empty());
    list("papers", &format!("Results by {}", summary.group), !papers.is_empty());
    list("differences", "Differences", !comparisons.rows.is_empty());
    list("ends", "What ended attempts", true);
    for figure in &further {
        list(&title_of(figure, "id"), &title_of(figure, "title"), true);
    }
    list("took", "What attempts took", true);
    list("curricula", "Curricula", !summary.curricula.is_empty());
    for figure in &priced {
        list(&title_of(figure, "id"), &title_of(figure, "title"), true);
    }
    list("runs", "Settings of the runs", !runs.is_empty());
    let table = |course: &CurriculumCourse| NumberTable { columns: cells(COLUMNS), rows: course.rows() };
    let curricula: Vec<_> =
        summary.curricula.iter().map(|one| json!({ "heading": one.heading(), "table": table(one) })).collect();
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
            headline => Serde(headline(material, &summary, &pairs, &places)),
            contents => Serde(contents),
            board => Serde(board),
            board_legend => legend(&summary),
            priced => Serde(priced),
            cross => Serde(cross),
            papers => Serde(papers),
            group => summary.group,
            axis => material.axis.clone(),
            meanings_of_n => Serde(meanings_of_n(material)),
            measures => Serde(measures),
            results => Serde(results(&rows).without_empty_columns()),
            took => Serde(took(&rows).without_empty_columns()),
            curricula => Serde(curricula),
            first_figure => Serde(drawn),
            figures => Serde(further),
            comparisons => Serde(comparisons.without_empty_columns()),
            comparison_legend,
            ends => Serde(ends(&rows).without_empty_columns()),
        },
    )
}

fn cells<const COUNT: usize>(names: [&str; COUNT]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn n_of(n: Option<usize>) -> String {
    n.map_or_else(|| "all".to_owned(), |n| n.to_string())
}

/// Cells that identify a row: agent, model and n (such as the number of masked functions).
fn key(row: &SummaryRow) -> Vec<String> {
    vec![row.agent.clone(), row.model.clone().unwrap_or_else(|| "–".to_owned()), n_of(row.n)]
}

/// Returns the rows, those of the best contender first. Rows of the same contender keep their order.
fn best_first<'a>(rows: &'a [SummaryRow], places: &[LeaderboardRow]) -> Vec<&'a SummaryRow> {
    let mut sorted: Vec<&SummaryRow> = rows.iter().collect();
    sorted.sort_by_key(|row| places.iter().position(|place| place.agent == row.agent && place.model == row.model));
    sorted
}

/// Rates with their sample sizes: one row for each agent, model and n (such as the number of masked functions).
fn results(rows: &[&SummaryRow]) -> NumberTable {
    let mut columns = cells(["agent", "model", "n"]);
    let ks: Vec<usize> = rows.first().map(|row| row.pass_at.iter().map(|at| at.k).collect()).unwrap_or_default();
    columns.extend(ks.iter().map(|k| format!("pass@{k} %")));
    columns.extend(ks.iter().filter(|&&k| k > 1).map(|k| format!("pass^{k} %")));
    columns.extend(cells(["lost %", "pass@1 % with lost", "samples", "attempts"]));
    let of = |row: &SummaryRow| {
        let mut cells = key(row);
        let rates = row.pass_at.iter().chain(&row.pass_all);
        cells.extend(rates.map(|at| with_interval(at.rate, at.interval)));
        let all = row.lost + row.attempts;
        cells.push(format!("{} [{} of {all}]", percent(row.lost as f64 / all.max(1) as f64), row.lost));
        let bounds = row.pass_at_worst.zip(row.pass_at_best);
        cells.push(
            bounds.map_or_else(|| "–".to_owned(), |(worst, best)| format!("{} to {}", percent(worst), percent(best))),
        );
        cells.extend([row.samples, row.attempts].map(|count| count.to_string()));
        cells
    };
    NumberTable { columns, rows: rows.iter().map(|row| of(row)).collect() }
}

/// The resources that attempts used.
fn took(rows: &[&SummaryRow]) -> NumberTable {
    let mut columns = cells(["agent", "model", "n", "steps"]);
    columns.extend(cells(["$ a sample", "$ in all", "tool s", "model s", "tokens/s"]));
    let number =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.digits$}"));
    let of = |row: &SummaryRow| {
        let mut cells = key(row);
        cells.extend([number(row.steps, 1), number(row.cost_per_sample, 4), format!("{:.2}", row.cost)]);
        cells.extend([row.tool_seconds, row.model_seconds, row.tokens_per_second].map(|value| number(value, 1)));
        cells
    };
    NumberTable { columns, rows: rows.iter().map(|row| of(row)).collect() }
}

/// Returns a table with the shares of attempts whose reported and whose verified results are right, and the number of
/// attempts that ended in each way.
fn ends(rows: &[&SummaryRow]) -> NumberTable {
    let mut totals: BTreeMap<_, usize> = BTreeMap::new();
    for (end, count) in rows.iter().filter(|row| row.n.is_some()).flat_map(|row| &row.ends) {
        *totals.entry(*end).or_default() += count;
    }
    let mut columns = cells(["agent", "model", "n", "reported %", "verified %", "unsupported"]);
    columns.extend(totals.keys().map(|&end| end_name(end).replace('_', " ")));
    let rows = rows
        .iter()
        .map(|row| {
            let mut cells = key(row);
            cells.extend([row.reported, row.verified].map(|rate| rate.map_or_else(|| "–".to_owned(), percent)));
            cells.push(row.unsupported.to_string());
            cells.extend(totals.keys().map(|end| row.ends.get(end).copied().unwrap_or_default().to_string()));
            cells
        })
        .collect();
    NumberTable { columns, rows }
}

/// Compares contenders on the samples they share; returns the table and its legend.
///
/// The contenders come in the order of the leaderboard, so that the first of each pair is the one that passes more
/// often. `pairs` has all comparisons of two contenders. The table may have fewer rows, but shows the adjusted p-values
/// of `pairs`, from which the ranks and the first lines of the page follow.
pub(super) fn comparisons(
    material: &Material,
    places: &[LeaderboardRow],
    pairs: &[ContenderComparison],
) -> (NumberTable, String) {
    let mut found = contenders(&material.records);
    let names: Vec<String> = places.iter().map(|place| contender_name(&place.agent, place.model.as_deref())).collect();
    found.sort_by_key(|contender| names.iter().position(|name| *name == contender.name));
    let (all, absent): (Vec<Contender>, Vec<Contender>) =
        found.into_iter().partition(|contender| contender.all_lost_note().is_none());
    let how = material.options.intervals;
    let every_pair = all.len() <= EVERY_PAIR;
    let mut found = compare(&all, every_pair, false, how);
    for row in &mut found {
        let is_same = |pair: &&ContenderComparison| {
            (pair.first == row.first && pair.second == row.second)
                || (pair.first == row.second && pair.second == row.first)
        };
        let same = pairs.iter().find(is_same);
        if let Some(pair) = same {
            row.adjusted_p = pair.adjusted_p;
        }
    }
    let columns = cells([
        "first",
        "second",
        "samples",
        "first pass@1 %",
        "second pass@1 %",
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
    let which = if every_pair { "Every pair" } else { "The best contender with each of the others" };
    let mut legend = format!(
        "{which}, on the samples that both attempted: pass@1 of the second minus that of the first, with its {:.0}% interval ({}). p: \
         sign-flip permutation test over {}, which also decides whether the interval contains 0; Holm p: adjusted for all \
         pairs, decides the ranks and the first lines, and can be above 0.05 beside an interval without 0; only first, only second: samples whose \
         first attempt passes for that contender only; McNemar p: the exact test on these. If the runs' \
         suites, gold or budgets differ, a warning at the top says so.",
        100.0 * how.level,
        how.legend(),
        flipped_units(how)
    );
    let lost = found.iter().filter_map(ContenderComparison::lost_note);
    let absent = absent.iter().filter_map(Contender::all_lost_note);
    for note in lost.chain(absent) {
        legend.push(' ');
        legend.push_str(&note);
    }
    (NumberTable { columns, rows }, legend)
}
