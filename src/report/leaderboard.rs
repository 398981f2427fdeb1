//! The leaderboard: one row for each agent and model over all its samples, with costs and the Pareto front.

use serde::Serialize;

use super::clean::clean;
use super::compare::{ContenderComparison, contender_name};
use super::names::short_name;
use super::summary::{PassAt, Summary, SummaryRow};
use super::terminal::{percent, percent_with_interval, plain_table, too_few_legend, trimmed, wrap};
use crate::stats::{FEWEST_SAMPLES, Interval};

/// The row of one agent and model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeaderboardRow {
    /// One plus the number of agents and models that are significantly better than this one by the paired test. `None`
    /// if there are several rows but this one was compared with none of them.
    pub rank: Option<usize>,
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    pub model: Option<String>,
    /// Samples with at least one attempt that counts, because the infrastructure did not fail.
    pub samples: usize,
    /// Attempts that count.
    pub attempts: usize,
    /// Attempts that do not count, because the infrastructure failed.
    pub lost: usize,
    /// pass@1.
    pub pass: Option<f64>,
    /// Confidence interval of `pass`.
    pub interval: Option<Interval>,
    /// pass@k for the largest k: at least one of k attempts passes.
    pub any: Option<PassAt>,
    /// pass^k for the largest k: all of k attempts pass.
    pub all: Option<PassAt>,
    /// Mean dollars per attempt; `None` without a model.
    pub cost: Option<f64>,
    /// Dollars per attempt that passes; `None` without a model or if no attempt passes.
    pub cost_per_pass: Option<f64>,
    /// Mean number of model replies per attempt; `None` for agents without a model.
    pub steps: Option<f64>,
    /// Whether no other contender passes more often without costing more, or as often at a lower cost; false if the
    /// cost is unknown.
    pub is_front: bool,
}

/// Sorts the agents and models by pass@1, highest first, then by cost and name. `pairs` has their comparisons with each
/// other, from which the ranks are computed.
#[must_use]
pub fn leaderboard(summary: &Summary, pairs: &[ContenderComparison]) -> Vec<LeaderboardRow> {
    // For each agent and model, use the row over all n (such as the number of masked functions). If all samples have
    // the same n, there is no such row; use the only row.
    let is_whole = |row: &&SummaryRow| {
        row.n.is_none()
            || !summary.rows.iter().any(|it| it.n.is_none() && it.agent == row.agent && it.model == row.model)
    };
    let mut places: Vec<LeaderboardRow> = summary.rows.iter().filter(is_whole).map(place).collect();
    let points: Vec<_> = places.iter().map(|it| it.cost.zip(it.pass)).collect();
    let is_alone = places.len() == 1;
    for (one, point) in places.iter_mut().zip(&points) {
        let is_beaten = |&(cost, pass): &(f64, f64)| {
            let better = |&(c, p): &(f64, f64)| c <= cost && p >= pass && (c < cost || p > pass);
            points.iter().flatten().any(better)
        };
        one.is_front = point.as_ref().is_some_and(|point| !is_beaten(point));
        let name = contender_name(&one.agent, one.model.as_deref());
        let own = || pairs.iter().filter(|pair| pair.samples > 0 && (pair.first == name || pair.second == name));
        let ahead = own().filter(|pair| pair.leader().is_some_and(|leader| leader != name)).count();
        one.rank = (is_alone || own().next().is_some()).then_some(1 + ahead);
    }
    places.sort_by(|a, b| {
        let cost = |place: &LeaderboardRow| place.cost.unwrap_or(f64::INFINITY);
        let by_rate = b.pass.unwrap_or(-1.0).total_cmp(&a.pass.unwrap_or(-1.0));
        by_rate.then(cost(a).total_cmp(&cost(b))).then_with(|| (&a.agent, &a.model).cmp(&(&b.agent, &b.model)))
    });
    places
}

fn place(row: &SummaryRow) -> LeaderboardRow {
    let last =
        |rates: &[PassAt]| rates.iter().copied().filter(|at| at.k > 1 && at.rate.is_some()).max_by_key(|at| at.k);
    let spent = row.cost_per_sample.map(|dollars| dollars * row.samples as f64).filter(|_| row.model.is_some());
    LeaderboardRow {
        rank: None,
        agent: row.agent.clone(),
        model: row.model.clone(),
        samples: row.samples,
        attempts: row.attempts,
        lost: row.lost,
        pass: row.pass_at_1.rate,
        interval: row.pass_at_1.interval,
        any: last(&row.pass_at),
        all: last(&row.pass_all),
        cost: spent.map(|dollars| dollars / row.attempts.max(1) as f64),
        cost_per_pass: spent.filter(|_| row.passed > 0).map(|dollars| dollars / row.passed as f64),
        steps: row.steps.filter(|_| row.model.is_some()),
        is_front: false,
    }
}

/// Returns the largest k among the rates that `of` selects; `None` if no row has such a rate.
pub(super) fn largest_k(places: &[LeaderboardRow], of: fn(&LeaderboardRow) -> Option<PassAt>) -> Option<usize> {
    places.iter().filter_map(of).map(|at| at.k).max()
}

/// Returns the rate for a column of pass@k or pass^k; `None` if the rate is for another k.
pub(super) fn rate_at(at: Option<PassAt>, k: usize) -> Option<f64> {
    at.filter(|at| at.k == k)?.rate
}

/// Formats dollars with enough digits to distinguish small amounts.
#[must_use]
pub(super) fn money(dollars: f64) -> String {
    match dollars {
        0.0 => "0".to_owned(),
        ..0.001 => format!("{dollars:.5}"),
        ..0.1 => format!("{dollars:.4}"),
        ..100.0 => format!("{dollars:.2}"),
        _ => format!("{dollars:.0}"),
    }
}

/// Formats the rows as a table with a legend.
#[must_use]
pub fn leaderboard_console(places: &[LeaderboardRow], summary: &Summary) -> String {
    let mut table = plain_table();
    let (any, all) = (largest_k(places, |place| place.any), largest_k(places, |place| place.all));
    let mut heading: Vec<String> = ["rank", "agent", "pass@1"].map(str::to_owned).to_vec();
    heading.extend(any.map(|k| format!("pass@{k}")));
    heading.extend(all.map(|k| format!("pass^{k}")));
    heading.extend(["$/attempt", "$/pass", "lost", "front"].map(str::to_owned));
    table.set_header(heading);
    for place in places {
        let dollars = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), money);
        let mut cells = vec![
            place.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string()),
            short_name(&place.agent, place.model.as_deref()),
            percent_with_interval(place.pass, place.interval),
        ];
        cells.extend(any.map(|k| percent(rate_at(place.any, k))));
        cells.extend(all.map(|k| percent(rate_at(place.all, k))));
        cells.extend([dollars(place.cost), dollars(place.cost_per_pass), place.lost.to_string()]);
        cells.push(if place.is_front { "yes" } else { "" }.to_owned());
        table.add_row(cells);
    }
    let mut below = vec![wrap(&legend(summary), "")];
    if places.iter().any(|place| place.pass.is_some() && place.interval.is_none()) {
        below.push(wrap(&too_few_legend(FEWEST_SAMPLES, summary.intervals()), ""));
    }
    below.extend(summary.notes.iter().map(|note| wrap(&format!("- {}", clean(note)), "  ")));
    format!("{}\n\n{}\n", trimmed(table, &[1]), below.join("\n"))
}

/// Explains how to read the leaderboard.
pub(super) fn legend(summary: &Summary) -> String {
    format!(
        "pass@1 in percent over all samples, with its {:.0}% interval ({}); pass@k: at least one of k attempts passes; \
         pass^k: each of them does. rank: one more than there are others ahead of this one by the paired \
         test on the samples that both attempted (p < 0.05 after Holm's adjustment for all pairs). $/attempt and $/pass: of attempts that count; the cost of agents without a model is unknown. \
         front: no other contender passes more often for the same cost, or as often for less (Pareto).",
        100.0 * summary.level,
        summary.intervals().legend()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::End;
    use crate::report::{SummaryOptions, compare, contenders, lines_console, summarise};
    use crate::run::Outcome;
    use crate::sample::masked;

    fn records(agent: &str, model: Option<&str>, passes: u32, cost: f64) -> Vec<Outcome> {
        let record = |i: u32| Outcome {
            pass: i < passes,
            end: End::Answered,
            cost,
            model: model.map(Into::into),
            ..Outcome::blank(agent, &masked(&format!("x_{}", i / 2)), i % 2)
        };
        (0..40).map(record).collect()
    }

    #[test]
    fn the_pareto_front_excludes_beaten_contenders_and_agents_without_a_model() {
        let all = [
            records("gold", None, 40, 0.0),
            records("dear", Some("m"), 30, 0.5),
            records("cheap", Some("m"), 20, 0.1),
            records("beaten", Some("m"), 19, 0.2),
            records("same", Some("m"), 30, 0.6),
        ]
        .concat();
        let options = SummaryOptions { ks: vec![1, 2], ..SummaryOptions::default() };
        let summary = summarise(&all, &options);
        let pairs = compare(&contenders(&all), true, false, summary.intervals());
        let places = leaderboard(&summary, &pairs);
        let told: Vec<_> = places.iter().map(|it| (it.agent.as_str(), it.is_front)).collect();
        let expected = [("gold", false), ("dear", true), ("same", false), ("cheap", true), ("beaten", false)];
        assert_eq!(told, expected);
        // With 20 samples, a difference at 5 samples may be due to chance, but a difference at 10 samples is not. So
        // only the last two contenders are behind `gold`.
        assert_eq!(places.iter().map(|it| it.rank).collect::<Vec<_>>(), [1, 1, 1, 2, 2].map(Some));
        assert!(leaderboard(&summary, &[]).iter().all(|place| place.rank.is_none()));
        assert!(places[0].cost.is_none() && places[1].cost.is_some_and(|cost| (cost - 0.5).abs() < 1e-9));
        assert_eq!(places[1].any.map(|at| at.k), Some(2));
        let text = leaderboard_console(&places, &summary);
        assert!(text.contains("pass@2") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn ranks_and_rates_do_not_depend_on_the_requested_k() {
        let mut all = [records("good", Some("m"), 30, 0.5), records("bad", Some("m"), 10, 0.1)].concat();
        let lost = |i| Outcome { end: End::SandboxLost, ..Outcome::blank("lost", &masked("x_0"), i) };
        all.extend((0..2).map(lost));
        let board = |ks: &[usize]| {
            let summary = summarise(&all, &SummaryOptions { ks: ks.to_vec(), ..SummaryOptions::default() });
            let places = leaderboard(&summary, &compare(&contenders(&all), true, false, summary.intervals()));
            (leaderboard_console(&places, &summary), lines_console(&summary), places)
        };
        let (text, lines, places) = board(&[2]);
        let (_, usual_lines, usual) = board(&[1, 2]);
        assert_eq!((&places, lines), (&usual, usual_lines));
        let shown: Vec<_> = places.iter().map(|it| (it.agent.as_str(), it.pass, it.is_front)).collect();
        assert_eq!(shown, [("good", Some(0.75), true), ("bad", Some(0.25), true), ("lost", None, false)]);
        assert!(places[0].interval.is_some() && !text.contains("too few"), "{text}");
    }

    #[test]
    fn a_contender_with_too_few_attempts_for_the_columns_k_has_a_dash_there() {
        let attempts = |agent: &str, k: u32| {
            let record = |i: u32| Outcome {
                pass: true,
                end: End::Answered,
                ..Outcome::blank(agent, &masked(&format!("x_{}", i / k)), i % k)
            };
            (0..4 * k).map(record).collect::<Vec<_>>()
        };
        let all = [attempts("five", 5), attempts("two", 2)].concat();
        let summary = summarise(&all, &SummaryOptions { ks: vec![1, 2, 5], ..SummaryOptions::default() });
        let places = leaderboard(&summary, &[]);
        let mut ks = places.iter().map(|it| (it.agent.as_str(), it.any.map(|at| at.k))).collect::<Vec<_>>();
        ks.sort_unstable();
        assert_eq!(ks, [("five", Some(5)), ("two", Some(2))]);
        let text = leaderboard_console(&places, &summary);
        assert!(text.contains("pass@5") && text.contains("pass^5"), "{text}");
        for (agent, shown) in [("five", "100.0"), ("two", "-")] {
            let line = text.lines().find(|line| line.starts_with('-') && line.contains(agent)).unwrap();
            let cells: Vec<&str> = line.split_whitespace().collect();
            // The last cells of the line: pass@5, pass^5, the two costs, and lost attempts.
            assert_eq!(cells[cells.len() - 5..], [shown, shown, "-", "-", "0"], "{text}");
        }
    }
}
