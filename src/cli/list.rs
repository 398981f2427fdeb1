//! `autoexperiment list`: lists what there is to run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::listed::RowCache;
use super::shared::{PaperOptions, SuiteOptions, described, print, print_json, table};
use crate::env::default_cache;
use crate::error::Result;
use crate::masked::MaskedReplication;
use crate::report::clean;
use crate::run::family::{Families, Family, ScoringBasis};
use crate::sample::UnitChoice;
use crate::suite::{LoadedPaper, Suite};

/// Values of n that have a column in the table of papers.
const SHOWN: std::ops::RangeInclusive<usize> = 1..=5;
/// Values of n for which the samples of an item are counted.
const ASKED: std::ops::RangeInclusive<usize> = 0..=50;
/// Maximum number of values of n that have a column in the table of `--family`. The table shows the smallest values of
/// n that have samples.
const COLUMNS: usize = 6;

/// List papers with their functions, experiments and number of samples for each n
///
/// For a paper that you name, lists its functions and experiments, with the numbers that sample ids use. With
/// `--family`, lists the items of that kind of task with their number of samples for each n.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment list\n  autoexperiment list kmeanspp\n  autoexperiment list --json\n  \
                  autoexperiment list --family masked"
)]
pub struct Arguments {
    #[command(flatten)]
    papers: PaperOptions,
    /// List the items of this kind of task.
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
}

#[derive(Clone, Serialize, Deserialize)]
struct PaperRow {
    paper: String,
    title: String,
    year: u16,
    functions: usize,
    regions: usize,
    experiments: usize,
    /// Number of samples by n, starting at 1; `None` if too large to count.
    samples: Vec<Option<u128>>,
    mean_lines: f64,
    mean_calls: f64,
}

/// One item in the output of `list --family`.
#[derive(Serialize)]
struct ItemRow {
    item: String,
    title: String,
    checks: usize,
    /// Number of samples by n, without values of n that have no samples; `None` if too large to count.
    samples: BTreeMap<usize, Option<u128>>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(name) = &arguments.family {
        return family(Families::standard().get(name)?.as_ref(), arguments);
    }
    let suite = arguments.suite.open()?;
    if !arguments.papers.all().is_empty() {
        return details(&suite, arguments);
    }
    let mut rows = Vec::new();
    // If there is no cache folder, compute every row again.
    let cache = default_cache().ok();
    let mut listed: RowCache<PaperRow> = RowCache::read(cache.as_deref());
    for id in SuiteOptions::items(&MaskedReplication, suite.root(), &[])? {
        let known = listed.row(&suite.paper_dir(&id));
        rows.push(if let Some(row) = known {
            row
        } else {
            let loaded = LoadedPaper::load(&suite, &id)?;
            let row = row(&loaded);
            listed.keep(&loaded, row.clone());
            row
        });
    }
    listed.save(cache.as_deref());
    if arguments.json {
        return print_json(&rows);
    }
    let mut header = vec!["paper", "year", "functions", "experiments"];
    let counts: Vec<String> = SHOWN.map(|n| format!("n={n}")).collect();
    header.extend(counts.iter().map(String::as_str));
    header.extend(["lines", "calls"]);
    let mut text = table(
        &header,
        &(1..header.len()).collect::<Vec<_>>(),
        rows.iter().map(|row| {
            let mut cells =
                vec![row.paper.clone(), row.year.to_string(), row.functions.to_string(), row.experiments.to_string()];
            cells.extend(row.samples.iter().copied().map(number));
            cells.push(format!("{:.1}", row.mean_lines));
            cells.push(format!("{:.1}", row.mean_calls));
            cells
        }),
    );
    text.push_str("\nn=1 to n=5: samples with that many masked functions; lines and calls: means per function\n");
    let _ = writeln!(text, "suite: {}", described(suite.root()));
    print(&text)
}

fn family(family: &dyn Family, arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.folder()?;
    let mut rows = Vec::new();
    for id in SuiteOptions::items(family, &suite, &arguments.papers.all())? {
        let item = family.load(&suite, &id, ScoringBasis::default())?;
        let facts = item.facts();
        let samples = ASKED.map(|n| (n, item.count(n))).filter(|(_, count)| *count != Some(0)).collect();
        rows.push(ItemRow { item: id, title: facts.title, checks: facts.experiments.len(), samples });
    }
    if arguments.json {
        return print_json(&rows);
    }
    let shown: BTreeSet<usize> = rows.iter().flat_map(|row| row.samples.keys().copied()).collect();
    let shown: Vec<usize> = shown.into_iter().take(COLUMNS).collect();
    let counts: Vec<String> = shown.iter().map(|n| format!("n={n}")).collect();
    let word = family.words().item;
    let header: Vec<&str> = [word, "title", "checks"].into_iter().chain(counts.iter().map(String::as_str)).collect();
    let mut text = table(
        &header,
        &(2..header.len()).collect::<Vec<_>>(),
        rows.iter().map(|row| {
            let samples = shown.iter().map(|n| number(row.samples.get(n).copied().unwrap_or(Some(0))));
            [row.item.clone(), row.title.clone(), row.checks.to_string()].into_iter().chain(samples).collect()
        }),
    );
    let _ =
        write!(text, "\nsamples of each {word} by n, the number of {}\nsuite: {}\n", family.axis(), described(&suite));
    print(&text)
}

/// Formats a number of samples.
fn number(count: Option<u128>) -> String {
    count.map_or("> 10^38".to_owned(), |count| count.to_string())
}

fn row(loaded: &LoadedPaper) -> PaperRow {
    let mut statistics = loaded.statistics();
    statistics.truncate(loaded.paper.functions.len());
    let (_, drawn) = loaded.drawn(UnitChoice::default(), |_| true);
    let mean = |total: usize| total as f64 / (statistics.len().max(1)) as f64;
    PaperRow {
        paper: loaded.paper.id.clone(),
        title: loaded.paper.title.clone(),
        year: loaded.paper.year,
        functions: loaded.paper.functions.len(),
        regions: loaded.paper.regions.len(),
        experiments: loaded.paper.experiments.len(),
        samples: SHOWN.map(|n| drawn.count(n)).collect(),
        mean_lines: mean(statistics.iter().map(|function| function.lines).sum()),
        mean_calls: mean(statistics.iter().map(|function| function.calls).sum()),
    }
}

fn details(suite: &Suite, arguments: &Arguments) -> Result<()> {
    let mut text = String::new();
    let mut all = Vec::new();
    for id in suite.select(&arguments.papers.all())? {
        let loaded = LoadedPaper::load(suite, &id)?;
        let paper = &loaded.paper;
        let statistics = loaded.statistics();
        if arguments.json {
            all.push(serde_json::json!({
                "paper": id, "title": paper.title, "authors": paper.authors, "year": paper.year, "url": paper.url,
                "repo": paper.repo, "env": paper.env, "functions": statistics, "experiments": paper.experiments,
            }));
            continue;
        }
        let (title, authors, url) = (clean(&paper.title), clean(&paper.authors.join(", ")), clean(&paper.url));
        let _ = write!(text, "{title}, {authors} ({})\n{url}\n\n", paper.year);
        text.push_str(&table(
            &["", if paper.regions.is_empty() { "function" } else { "function or region" }, "lines", "calls", "tests"],
            &[0, 2, 3, 4],
            statistics.iter().enumerate().map(|(place, function)| {
                let tests = loaded.tests(&[place]).len();
                vec![
                    place.to_string(),
                    function.at.clone(),
                    function.lines.to_string(),
                    function.calls.to_string(),
                    tests.to_string(),
                ]
            }),
        ));
        text.push('\n');
        text.push_str(&table(
            &["", "experiment", "command"],
            &[0],
            paper.experiments.iter().enumerate().map(|(place, experiment)| {
                let command = experiment.command_line(crate::suite::Protocol::Curtailed).unwrap_or_default();
                vec![(place + 1).to_string(), experiment.id.clone(), command]
            }),
        ));
        text.push('\n');
    }
    if arguments.json { print_json(&all) } else { print(&text) }
}
