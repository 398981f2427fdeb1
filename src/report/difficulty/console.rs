//! Formats tables for the console: how pass rates fall with growing n, and how difficult the functions are.

use super::{Decline, Difficulty, DifficultyPoint};
use crate::report::clean::{clean, short};
use crate::report::console::render;
use crate::report::terminal::{plain_table, trimmed, wrap};
use crate::run::family::Words;

/// Maximum number of functions that the table lists.
const SHOWN: usize = 15;

/// Formats tables of at most 100 columns: how pass rates fall with growing n, and which functions are hardest.
#[must_use]
pub fn difficulty_console(found: &Difficulty) -> String {
    let percent = 100.0 * found.level;
    let Words { item, group, unit } = found.words;
    let mut parts = Vec::new();
    if !found.declines.is_empty() {
        let rows: Vec<(&Decline, &DifficultyPoint)> = found
            .declines
            .iter()
            .flat_map(|decline| decline.points.iter().map(move |point| (decline, point)))
            .collect();
        let heading = ["samples", "pass@1", "fitted", "slope", "half fail at n"].map(str::to_owned);
        let key = |row: &(&Decline, &DifficultyPoint)| (row.0.agent.clone(), row.0.model.clone(), Some(row.1.n));
        let table = render(&rows, &heading, key, |(decline, point)| {
            let first = decline.points.first() == Some(point);
            let of_decline = |text: String| if first { text } else { String::new() };
            let DifficultyPoint { samples, rate, fitted, interval, .. } = point;
            let slope = decline.slope_interval;
            vec![
                samples.to_string(),
                format!("{:.1}", 100.0 * rate),
                format!("{:.1} [{:.1}, {:.1}]", 100.0 * fitted, 100.0 * interval.low, 100.0 * interval.high),
                of_decline(format!(
                    "{:.2} [{:.2}, {:.2}]",
                    unsigned(decline.slope),
                    unsigned(slope.low),
                    unsigned(slope.high)
                )),
                of_decline(half(decline)),
            ]
        });
        let legend = format!(
            "fitted: chance in percent of a typical sample, by logistic regression on n with {group}s and {unit}s that \
             differ if the data distinguish them, with its {percent:.0}% interval. slope: change of the log-odds with \
             each further {unit}. half fail at n: the n with a fitted chance of one half; its interval is open if the \
             slope may be 0."
        );
        parts.push(format!("Decline\n{table}\n{}", wrap(&legend, "")));
    }
    if !found.functions.is_empty() {
        let mut table = plain_table();
        table.set_header([item, unit, "difficulty", "attempts", "passed %"]);
        for row in found.functions.iter().take(SHOWN) {
            let function = match &row.name {
                Some(name) => format!("{} {}", row.function, short(name, 50)),
                None => row.function.to_string(),
            };
            table.add_row([
                short(&row.paper, 24),
                function,
                format!(
                    "{:+.2} [{:+.2}, {:+.2}]",
                    unsigned(row.difficulty),
                    unsigned(row.interval.low),
                    unsigned(row.interval.high)
                ),
                row.attempts.to_string(),
                format!("{:.1}", 100.0 * row.rate),
            ]);
        }
        let legend = format!(
            "{} of {} {unit}s, hardest first. difficulty: decrease of the log-odds when this {unit} is withheld \
             instead of a typical one, over all agents, with its {percent:.0}% interval; 0 is typical. attempts: number at \
             samples that withhold it, and the share of them that pass.",
            found.functions.len().min(SHOWN),
            found.functions.len()
        );
        parts.push(format!("Hardest {unit}s\n{}\n{}", trimmed(table, &[0]), wrap(&legend, "")));
    }
    if !found.notes.is_empty() {
        let notes = found.notes.iter().map(|note| wrap(&format!("- {}", clean(note)), "  "));
        parts.push(format!("Notes\n{}", notes.collect::<Vec<_>>().join("\n")));
    }
    format!("{}\n", parts.join("\n\n"))
}

/// Replaces a value that rounds to zero by 0, so that it has no sign.
fn unsigned(value: f64) -> f64 {
    if value.abs() < 0.005 { 0.0 } else { value }
}

/// Formats the n at which half of the attempts fail, as `2.3 [1.9, 2.8]`; writes `open` in place of a missing interval.
fn half(decline: &Decline) -> String {
    match decline.half_interval {
        Some(interval) => format!("{:.1} [{:.1}, {:.1}]", decline.half, interval.low, interval.high),
        None => "open".to_owned(),
    }
}
