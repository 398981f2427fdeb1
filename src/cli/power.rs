//! `autoexperiment power`: plans the size of a comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::naming::run_folder;
use super::run::parse_dollars;
use super::shared::{SuiteOptions, print, print_json};
use crate::error::{Error, Result};
use crate::report::{PowerInput, clean, power_console, power_rows};
use crate::run::family::{Families, Item, ScoringBasis};
use crate::run::reading::read_outcomes;
use crate::run::{Outcome, scored};
use crate::sample::{MASKED, parse_n};
use crate::stats::{ComparisonGoal, Spread};

/// Compute how many samples and attempts a difference between two contenders needs, and what it would cost
///
/// Learns how much samples differ and what an attempt costs from a stored run (`--run`), or starts from assumptions.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment power --diff 0.05 --n 1..3 --k 5 --rate 0.4 --cost 0.10\n  \
                        autoexperiment power --diff 0.05 --run sweep --agent react")]
pub struct Arguments {
    /// Difference to detect, as 0.05 for five points.
    #[arg(long, value_name = "SHARE", value_parser = parse_inner_share)]
    diff: f64,
    /// Numbers of masked functions: `3`, `1..5`, `1,2,5` [default: 1, or those of the run].
    #[arg(short, long = "n", alias = "masked", value_name = "N")]
    n: Option<String>,
    /// Number of attempts at each sample. The table also has a row for a single attempt.
    #[arg(short, long, alias = "attempts", value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    k: u32,
    /// Probability of detecting the difference if it exists.
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = parse_inner_share)]
    power: f64,
    /// Confidence level of the comparison.
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = parse_inner_share)]
    level: f64,
    /// A stored run to learn from: its folder, or its name under --runs.
    #[arg(long, value_name = "RUN", conflicts_with = "rate")]
    run: Option<String>,
    /// Agent of the run to learn from, if it has several.
    #[arg(long, requires = "run")]
    agent: Option<String>,
    /// Pass rate at n = 1. At n, its n-th power is assumed, as if functions were written independently.
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = parse_inner_share)]
    rate: f64,
    /// Share of the attempts' variance that lies between samples: 0 if all samples are equally hard, 1 if each is
    /// either always or never passed. A run with several attempts per sample provides it.
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = parse_share)]
    alike: f64,
    /// Correlation of the two contenders' pass rates over samples: 1 if the same samples are hard for both.
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = parse_share)]
    correlation: f64,
    /// Cost of an attempt in dollars [default: that of the run].
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    cost: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    #[command(flatten)]
    suite: SuiteOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let ns = arguments.n.as_deref().map(parse_n).transpose()?;
    let Inputs { mut known, assumed, family } =
        if let Some(run) = &arguments.run { learned(arguments, run, ns)? } else { assumed(arguments, ns) };
    // Without a suite, the number of available samples is unknown.
    let items = arguments.suite.own()?.map(|folder| items(&family, &folder));
    let items = if arguments.suite.is_named() { items.transpose()? } else { items.and_then(Result::ok) };
    if let Some(items) = items.flatten() {
        for it in &mut known {
            it.available = available(&items, it.n);
        }
    }
    let aim = ComparisonGoal { difference: arguments.diff, level: arguments.level, power: arguments.power };
    let mut ks = vec![1, arguments.k as usize];
    ks.dedup();
    let rows = power_rows(&known, &ks, aim, arguments.correlation);
    let assumed = format!("{assumed}`--correlation {}`.", arguments.correlation);
    if arguments.json {
        return print_json(&serde_json::json!({ "format": 1, "rows": rows, "assumed": assumed }));
    }
    print(&power_console(&rows, aim, &assumed))
}

/// The inputs of the plan.
struct Inputs {
    /// Variation of the results and cost of an attempt, for each n (such as the number of masked functions).
    known: Vec<PowerInput>,
    /// Says which values were measured and which were assumed.
    assumed: String,
    /// Name of the samples' family (kind of task).
    family: String,
}

/// Computes the inputs from the options.
fn assumed(arguments: &Arguments, ns: Option<Vec<usize>>) -> Inputs {
    let of = |n: usize| {
        let spread = Spread::assumed(arguments.rate.powi(n as i32), arguments.alike);
        PowerInput { n, spread, cost: arguments.cost, available: None }
    };
    let told = format!("Assumed: `--rate {}` at n = 1, `--alike {}`, ", arguments.rate, arguments.alike);
    let known = ns.unwrap_or_else(|| vec![1]).into_iter().map(of).collect();
    Inputs { known, assumed: told, family: MASKED.to_owned() }
}

/// Measures the variation of the results and the mean cost for each n on a stored run.
fn learned(arguments: &Arguments, name: &str, ns: Option<Vec<usize>>) -> Result<Inputs> {
    let reading = read_outcomes(&run_folder(name, &arguments.runs)?)?;
    for note in &reading.notes {
        talk!("{}", clean(note));
    }
    let mut agents: BTreeMap<(&str, Option<&str>), Vec<&Outcome>> = BTreeMap::new();
    for record in scored(&reading.records) {
        if arguments.agent.as_ref().is_none_or(|agent| **agent == *record.agent) {
            agents.entry((&record.agent, record.model.as_deref())).or_default().push(record);
        }
    }
    let mut found = agents.into_iter();
    let Some(((agent, _), records)) = found.next() else {
        return Err(Error::usage(format!("run `{name}` has no attempt to learn from"))
            .hint("name another run or agent, or give assumptions with `--rate`"));
    };
    if let Some(((other, _), _)) = found.next() {
        return Err(Error::usage(format!("run `{name}` has attempts of `{agent}` and of `{other}`"))
            .hint("choose one with `--agent`"));
    }
    let mut by_n: BTreeMap<usize, BTreeMap<&str, (usize, usize)>> = BTreeMap::new();
    let mut costs: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    for record in &records {
        let (tries, passed) = by_n.entry(record.n).or_default().entry(&record.sample).or_default();
        *tries += 1;
        *passed += usize::from(record.pass);
        let (cost, count) = costs.entry(record.n).or_default();
        *cost += record.cost;
        *count += 1;
    }
    let mut known = Vec::new();
    let mut single = false;
    for n in ns.unwrap_or_else(|| by_n.keys().copied().collect()) {
        let Some(samples) = by_n.get(&n) else {
            talk!("run `{}` has no attempt at n = {n}: left out", clean(name));
            continue;
        };
        let counts: Vec<(usize, usize)> = samples.values().copied().collect();
        let rate =
            counts.iter().map(|&(tries, passed)| passed as f64 / tries as f64).sum::<f64>() / counts.len() as f64;
        let spread = Spread::estimate(&counts).unwrap_or_else(|| {
            single = true;
            Spread::assumed(rate, arguments.alike)
        });
        if spread.between + spread.within <= 0.0 {
            talk!("at n = {n} all attempts of `{}` end alike: the run cannot tell how samples differ", clean(agent));
        }
        let cost = costs.get(&n).map(|(cost, count)| cost / *count as f64);
        known.push(PowerInput { n, spread, cost: arguments.cost.or(cost), available: None });
    }
    let alike = if single { format!("`--alike {}`, ", arguments.alike) } else { String::new() };
    let told = format!("Measured on `{}` in run `{}`: how samples differ. Assumed: {alike}", clean(agent), clean(name));
    let family = records.first().map_or(MASKED, |record| &*record.family).to_owned();
    Ok(Inputs { known, assumed: told, family })
}

/// Loads all items of a family (kind of task) from a suite; `None` if some cannot be loaded.
fn items(family: &str, suite: &Path) -> Result<Option<Vec<Arc<dyn Item>>>> {
    let families = Families::standard();
    let family = families.get(family)?;
    let ids = family.items(suite, &[])?;
    Ok(ids.iter().map(|id| family.load(suite, id, ScoringBasis::default()).ok()).collect())
}

/// Counts the samples of these items at this n; `None` if they cannot be counted.
fn available(items: &[Arc<dyn Item>], n: usize) -> Option<u128> {
    items.iter().try_fold(0_u128, |total, item| total.checked_add(item.count(n)?))
}

/// Parses a share from 0 to 1, inclusive.
fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("`{text}` is not a share: give a number from 0 to 1"))
}

/// Parses a share between 0 and 1, exclusive.
fn parse_inner_share(text: &str) -> Result<f64, String> {
    parse_share(text).and_then(|share| {
        if share > 0.0 && share < 1.0 { Ok(share) } else { Err(format!("`{text}` is not between 0 and 1")) }
    })
}
