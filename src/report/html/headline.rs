//! The first lines of the page: what was compared, the results, their uncertainty, and warnings.

use std::collections::BTreeSet;

use serde::Serialize;

use super::material::Material;
use super::words::{percent, plural, with_interval};
use crate::report::compare::{ContenderComparison, contender_name, p_phrase};
use crate::report::full_name;
use crate::report::leaderboard::{LeaderboardRow, money};
use crate::report::summary::{Summary, SummaryRow};

/// Number of agents (each with its model) that the first lines name.
const NAMED: usize = 4;
/// The page warns if a larger share of attempts was lost to infrastructure.
const MUCH_LOST: f64 = 0.03;

/// The first lines of the page.
#[derive(Debug, Default, Serialize)]
pub(super) struct Headline {
    /// Sentence on what was compared.
    compared: String,
    /// Sentence on the outcome and its uncertainty.
    came_out: String,
    /// The agents and models that come first in the leaderboard.
    contenders: Vec<HeadlineRow>,
    /// Number of agents and models that aren't listed.
    others: usize,
    /// Warnings, one sentence each.
    distrust: Vec<String>,
}

/// One contender's line.
#[derive(Debug, Serialize)]
struct HeadlineRow {
    name: String,
    rate: String,
    more: String,
}

/// Makes the headline; empty without attempts.
pub(super) fn headline(
    material: &Material,
    summary: &Summary,
    pairs: &[ContenderComparison],
    places: &[LeaderboardRow],
) -> Headline {
    // For each agent and model, use the row over all n or, if all samples have the same n, the only row.
    let is_whole = |row: &&SummaryRow| {
        row.n.is_none()
            || !summary.rows.iter().any(|it| it.n.is_none() && it.agent == row.agent && it.model == row.model)
    };
    let mut rows: Vec<&SummaryRow> = summary.rows.iter().filter(is_whole).collect();
    if rows.is_empty() {
        return Headline::default();
    }
    let rate = |row: &SummaryRow| row.pass_at_1.rate.unwrap_or(-1.0);
    rows.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    let samples: BTreeSet<&str> = material.records.iter().map(|record| &*record.sample).collect();
    let papers: BTreeSet<&str> = material.records.iter().map(|record| &*record.paper).collect();
    let attempts: usize = rows.iter().map(|row| row.attempts).sum();
    let compared = format!(
        "{}, {} of {}, {} that count.",
        plural(rows.len(), "contender"),
        plural(samples.len(), "sample"),
        plural(papers.len(), summary.group),
        plural(attempts, "attempt")
    );
    Headline {
        compared,
        came_out: came_out(pairs, &rows),
        contenders: places.iter().take(NAMED).map(headline_row).collect(),
        others: places.len().saturating_sub(NAMED),
        distrust: distrust(&rows, summary, &material.notes),
    }
}

/// Formats a row of the leaderboard for the first lines of the page.
fn headline_row(place: &LeaderboardRow) -> HeadlineRow {
    let mut more = Vec::new();
    for (sign, at) in [("@", place.any), ("^", place.all)] {
        if let Some((k, rate)) = at.and_then(|at| Some((at.k, at.rate?))) {
            more.push(format!("pass{sign}{k} {}%", percent(rate)));
        }
    }
    more.extend(place.cost.map(|dollars| format!("${} an attempt", money(dollars))));
    if place.lost > 0 {
        more.push(format!("{} of {} lost", place.lost, place.lost + place.attempts));
    }
    let rate = format!("pass@1 {}%", with_interval(place.pass, place.interval).replace(" [", "% ["));
    HeadlineRow {
        name: full_name(&place.agent, place.model.as_deref()),
        rate: rate.strip_suffix("]%").map_or(rate.clone(), |rate| format!("{rate}]")),
        more: more.join(", "),
    }
}

/// Says whether the first contender is ahead of the second, by the same test that decides the ranks.
fn came_out(pairs: &[ContenderComparison], rows: &[&SummaryRow]) -> String {
    let [first, second, ..] = rows else { return String::new() };
    let name = |row: &SummaryRow| contender_name(&row.agent, row.model.as_deref());
    let (first, second) = (name(first), name(second));
    let is_pair = |pair: &&ContenderComparison| {
        pair.samples > 0 && [&pair.first, &pair.second].iter().all(|it| **it == first || **it == second)
    };
    let Some(pair) = pairs.iter().find(is_pair) else { return String::new() };
    let both = format!("the {} that both attempted", plural(pair.samples, "sample"));
    let p = p_phrase(pair.adjusted_p);
    let ahead = if pair.first == first { -pair.difference } else { pair.difference };
    let points = format!("{:.1} points", 100.0 * ahead.abs());
    match pair.leader() {
        Some(leader) => {
            let behind = if leader == first { &second } else { &first };
            format!("{leader} is ahead of {behind} by {points} on {both} ({p} by the paired test).")
        }
        None if ahead == 0.0 => format!("{first} and {second} pass equally often on {both}."),
        None => format!(
            "The difference of {points} between {first} and {second} on {both} may be chance ({p} by the paired test)."
        ),
    }
}

/// Lists reasons to distrust the results, one sentence each. Some reasons come from notes that begin with `WARNING`:
/// from `notes`, which are about the runs, and from the summary's notes.
fn distrust(rows: &[&SummaryRow], summary: &Summary, notes: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let (lost, all) = rows.iter().fold((0, 0), |(lost, all), row| (lost + row.lost, all + row.lost + row.attempts));
    let share = |lost: usize, all: usize| lost as f64 / all.max(1) as f64;
    let most = rows.iter().map(|row| share(row.lost, row.lost + row.attempts)).fold(0.0, f64::max);
    if most > MUCH_LOST {
        let of_each = rows.iter().filter(|row| row.lost > 0).map(|row| {
            let bounds = row.pass_at_worst.zip(row.pass_at_best);
            let bounds = bounds.map(|(worst, best)| {
                format!(", with which pass@1 would be between {} and {}%", percent(worst), percent(best))
            });
            let name = full_name(&row.agent, row.model.as_deref());
            format!("{name} {} of {}{}", row.lost, row.lost + row.attempts, bounds.unwrap_or_default())
        });
        found.push(format!(
            "{}% of attempts ({lost} of {all}) were lost to infrastructure and left out of the rates: {}.",
            percent(share(lost, all)),
            of_each.collect::<Vec<_>>().join("; ")
        ));
    }
    let notes = notes.iter().chain(&summary.notes);
    found.extend(notes.filter_map(|note| Some(note.strip_prefix("WARNING ")?.to_owned())));
    let unsupported: usize = rows.iter().map(|row| row.unsupported).sum();
    if unsupported > 0 {
        found.push(format!("{} reported results that their code does not reproduce.", plural(unsupported, "attempt")));
    }
    let unverified = rows.iter().filter(|row| row.verified.is_none() && row.attempts > 0).count();
    if unverified > 0 {
        found.push(format!(
            "{} not verified: only the results that agents report decide which attempts pass.",
            plural(unverified, "contender")
        ));
    }
    if rows.iter().any(|row| row.pass_at.iter().any(|at| at.rate.is_some() && at.interval.is_none())) {
        found.push("Some rates rest on too few samples for an interval.".to_owned());
    }
    found
}
