//! The figure of pass rate over cost, with the Pareto front.

use super::chart::{Chart, ChartPoint, HorizontalAxis, Series};
use super::{Figure, FigureInput, NumberTable, figure, headings, percents, whiskers};
use crate::report::leaderboard::{LeaderboardRow, leaderboard};
use crate::report::names::full_name;

/// The figure's id.
pub const COST: &str = "cost-accuracy";

/// The axis is logarithmic if the ratio of the highest to the lowest cost is above this.
const ORDERS: f64 = 20.0;

/// Draws pass@1 over dollars per attempt, one point per pair of agent and model, and the Pareto front.
pub(super) fn cost(source: &FigureInput<'_>) -> Figure {
    let places = leaderboard(source.summary, &[]);
    let known: Vec<(&LeaderboardRow, f64, f64)> =
        places.iter().filter_map(|it| Some((it, it.cost?, it.pass?))).collect();
    let mut table = NumberTable {
        columns: headings(&["agent", "model", "$ an attempt", "pass@1 %", "low %", "high %", "front"]),
        rows: Vec::new(),
    };
    for (place, cost, rate) in &known {
        let mut cells = vec![place.agent.clone(), place.model.clone().unwrap_or_default(), format!("{cost:.6}")];
        cells.extend(percents(*rate, place.interval));
        cells.push(if place.is_front { "yes" } else { "no" }.to_owned());
        table.rows.push(cells);
    }
    let caption = format!(
        "Each agent and model by the cost of its attempts and their pass rate. The dashed line joins those that no other \
         contender beats at the same cost (Pareto front). {}",
        whiskers(source, |record| record.model.is_some())
    );
    figure(COST, "Cost against accuracy", caption, table, drawn(&known))
}

fn drawn(known: &[(&LeaderboardRow, f64, f64)]) -> Result<Chart, String> {
    let costs = || known.iter().map(|(_, cost, _)| *cost);
    let (least, most) = (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max));
    if known.len() < 2 {
        return Err("comparing costs takes at least two agents with models".to_owned());
    }
    if most <= 0.0 {
        return Err("no attempt of these runs has cost anything".to_owned());
    }
    let series = known.iter().map(|(place, cost, rate)| Series {
        name: full_name(&place.agent, place.model.as_deref()),
        points: vec![ChartPoint { x: *cost, rate: *rate, interval: place.interval }],
        style: None,
    });
    let mut front: Vec<(f64, f64)> =
        known.iter().filter(|(place, ..)| place.is_front).map(|(_, cost, rate)| (*cost, *rate)).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let label = "dollars an attempt".to_owned();
    let over = if least > 0.0 && most > ORDERS * least {
        HorizontalAxis::Orders(label)
    } else {
        HorizontalAxis::Quantity(label)
    };
    Ok(Chart { over, rate: "pass@1, %".to_owned(), series: series.collect(), line: Some(front) })
}
