//! `autoexperiment run --dry-run`: shows what a run would do, before it costs anything.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::naming::stored_runs;
use super::shared::{print, table};
use crate::error::Result;
use crate::report::duration;
use crate::run::reading::read_outcomes;
use crate::run::scored;
use crate::session::{Run, RunPlan};

/// Number of newest runs from which time and cost of an agent's attempts are estimated.
const EARLIER: usize = 20;

/// Sums over earlier attempts of an agent.
#[derive(Debug, Default, Clone, Copy)]
struct EarlierSums {
    attempts: usize,
    seconds: f64,
    cost: f64,
}

impl EarlierSums {
    fn mean(self, sum: f64) -> f64 {
        sum / self.attempts.max(1) as f64
    }
}

/// Earlier attempts by the agent's label and the model's name.
type EarlierAttempts = BTreeMap<(String, Option<String>), EarlierSums>;

/// Prints what executing this run would do.
pub fn show(run: &Run, runs: &Path) -> Result<()> {
    let plan = run.preview();
    print(&text(&plan, &history(runs)))
}

/// Sums up the attempts of the newest runs. Unreadable runs are skipped.
fn history(runs: &Path) -> EarlierAttempts {
    let mut history = EarlierAttempts::new();
    for stored in stored_runs(runs).into_iter().take(EARLIER) {
        let Ok(reading) = read_outcomes(&stored.folder) else { continue };
        for record in scored(&reading.records) {
            let earlier =
                history.entry((record.agent.to_string(), record.model.as_deref().map(str::to_owned))).or_default();
            earlier.attempts += 1;
            earlier.seconds += record.wall_seconds;
            earlier.cost += record.cost;
        }
    }
    history
}

fn text(plan: &RunPlan, history: &EarlierAttempts) -> String {
    let mut text = table(
        &[plan.item, "n", "samples"],
        &[1, 2],
        plan.samples.iter().map(|((item, n), samples)| vec![item.clone(), n.to_string(), samples.to_string()]),
    );
    let mut agents: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    for planned in &plan.planned {
        *agents.entry((planned.agent.clone(), planned.model.clone())).or_default() += planned.attempts;
    }
    text.push('\n');
    text += &table(
        &["agent", "model", "attempts", "earlier", "seconds", "dollars"],
        &[2, 3, 4, 5],
        agents.iter().map(|(key, attempts)| {
            let known = history.get(key).copied();
            let mean = |sum: fn(&EarlierSums) -> f64, digits: usize| {
                known.map_or("-".to_owned(), |known| format!("{:.digits$}", known.mean(sum(&known))))
            };
            vec![
                key.0.clone(),
                key.1.clone().unwrap_or_default(),
                attempts.to_string(),
                known.map_or(0, |known| known.attempts).to_string(),
                mean(|known| known.seconds, 1),
                mean(|known| known.cost, 3),
            ]
        }),
    );
    let total: usize = agents.values().sum();
    let _ = writeln!(text, "\nattempts:      {total}, {} at once", plan.jobs);
    let _ = writeln!(text, "cost at most:  {}", worst(plan));
    if let Some(cost) = expected_cost(&agents, history).filter(|_| plan.asking > 0) {
        let _ = writeln!(text, "expected cost: ${:.2}, as earlier attempts", cost.min(plan.worst));
    }
    let _ = writeln!(text, "expected time: {}", time(plan, &agents, history));
    for note in &plan.notes {
        let _ = writeln!(text, "note:          {}", crate::report::clean(note));
    }
    text.push_str("nothing was run (`--dry-run`)\n");
    text
}

fn worst(plan: &RunPlan) -> String {
    if plan.asking == 0 && !plan.verifiers_ask {
        return "$0.00: no agent asks a model".to_owned();
    }
    let mut text = format!("${:.2}", plan.worst);
    if plan.worst < plan.asking as f64 * plan.cost {
        text.push_str(" (`--max-cost`)");
    } else {
        let _ = write!(text, ", {} attempts of at most ${:.2} (`--cost`)", plan.asking, plan.cost);
        if plan.worst_retried > plan.worst {
            let most = plan.worst_retried;
            let _ = write!(text, "; ${most:.2} if all are lost to infrastructure and made again (`--tries`)");
        }
    }
    if plan.verifiers_ask {
        text.push_str(", and what verifiers ask");
    }
    text
}

/// Estimates the cost from the mean of earlier attempts; `None` if an agent with a model has no earlier attempts.
fn expected_cost(agents: &BTreeMap<(String, Option<String>), usize>, history: &EarlierAttempts) -> Option<f64> {
    let cost = |(key, &attempts): (&(String, Option<String>), &usize)| match history.get(key) {
        Some(known) => Some(known.mean(known.cost) * attempts as f64),
        None if key.1.is_none() => Some(0.0),
        None => None,
    };
    agents.iter().map(cost).sum()
}

/// Describes the expected time: first the check that the original code reproduces gold (the baseline), then the
/// attempts, several of them in parallel. Assumes that an agent's attempts take as long as its earlier attempts.
/// Without earlier attempts, assumes twice the experiments' time, because the agent runs the experiments and
/// verification runs them again.
fn time(plan: &RunPlan, agents: &BTreeMap<(String, Option<String>), usize>, history: &EarlierAttempts) -> String {
    let (mut seconds, mut unknown) = (0.0, Vec::new());
    for (key, &attempts) in agents {
        let one = if let Some(known) = history.get(key) {
            known.mean(known.seconds)
        } else {
            if key.1.is_some() {
                unknown.push(format!("`{}`", key.0));
            }
            let Some(checks) = plan.checks else { return "not known: no experiment was timed".to_owned() };
            2.0 * checks
        };
        seconds += one * attempts as f64;
    }
    let baseline = plan.baseline.unwrap_or_default();
    let mut text = format!(
        "{}, of which the baseline {}",
        duration(baseline + seconds / plan.jobs.max(1) as f64),
        duration(baseline)
    );
    text.push_str("; building envs and images comes on top");
    if !unknown.is_empty() {
        let _ = write!(text, ", and the model's own time of {}", unknown.join(", "));
    }
    text
}
