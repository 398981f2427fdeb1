//! `autoexperiment report`: prints tables over stored runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::naming::{distinct_folders, intervals};
use super::report_files::{html, write_figures};
use super::shared::{print, print_json};
use crate::agent::{Event, TimedEvent, Trajectory};
use crate::error::{Result, with_causes};
use crate::model::Cutoffs;
use crate::report::{self, Course, Detailed, Label, Labelled, Labels, Merged, MergedRun, SummaryOptions, clean};
use crate::run::family::{Families, Family, Item, ScoringBasis};
use crate::run::reading::Detail;
use crate::run::record_index::RecordIndex;
use crate::run::{AttemptRecord, RunFile};
use crate::sample::Sample;
use crate::stats::{Intervals, Population};
use crate::suite::PartialDate;
use crate::view::RunReader;

/// Print pass rates by agent and n from stored runs
///
/// Unfinished runs are reported with the attempts that they have.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment report 2026-11-21T10-30-00Z\n  autoexperiment report runs/a runs/b --csv\n  autoexperiment report fixed dynamic --html report.html\n  autoexperiment report fixed dynamic --figures figures"
)]
pub struct Arguments {
    /// Runs: folders, or names under --runs; `latest` is the newest [default: latest]. Several are shown side by side.
    run: Vec<String>,
    /// Show how attempts went: how often the first run of code crashed, how often agents recovered, what samples took,
    /// and how much lost attempts could change.
    #[arg(long, conflicts_with_all = ["csv", "attempts", "values"])]
    how: bool,
    /// Show how the pass rate falls with n, where half of all attempts fail, and which functions are hard.
    #[arg(long, conflicts_with_all = ["how", "csv", "attempts", "values"])]
    difficulty: bool,
    /// Show one row per agent and model, best first: all of k and any of k attempts, cost, and the Pareto front.
    #[arg(long, conflicts_with_all = ["how", "difficulty", "csv", "attempts", "values"])]
    leaderboard: bool,
    /// Show pass rates on tasks that were public before and after each model's knowledge cutoff.
    #[arg(long, conflicts_with_all = ["how", "difficulty", "leaderboard", "csv", "attempts", "values", "html", "figures"])]
    dates: bool,
    /// A model's knowledge cutoff, such as `openai:gpt-5-mini=2024-05`, for --dates. Can be repeated.
    #[arg(long, value_name = "MODEL=DATE", requires = "dates")]
    cutoff: Vec<String>,
    #[command(flatten)]
    output: OutputOptions,
    /// Write a page for a browser, with overview, samples and trajectories. Of broken runs, the readable parts are
    /// shown.
    #[arg(long, value_name = "FILE", group = "format", conflicts_with_all = ["how", "difficulty"])]
    html: Option<PathBuf>,
    /// Write the figures for a paper to a folder, as SVG, PDF and PNG, 5.5 inches wide, with their numbers as CSV.
    #[arg(long, value_name = "DIR", group = "format", conflicts_with_all = ["how", "difficulty"])]
    figures: Option<PathBuf>,
    /// Show a run, an agent or a model under another name, such as `react=ReAct` or `by-n/react=ReAct`. Can be
    /// repeated.
    #[arg(long, value_name = "OLD=NEW")]
    label: Vec<Label>,
    /// Folder of the suite, for --html, --difficulty and --dates [default: each run's own].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Contents and format of the output.
#[derive(clap::Args)]
pub struct OutputOptions {
    /// Values of k in pass@k [default: 1 and the number of attempts].
    #[arg(short, value_name = "K", value_delimiter = ',', value_parser = parse_k)]
    k: Vec<usize>,
    /// Scope of the intervals: these papers (`suite`), or papers like them (`papers`).
    #[arg(long, value_name = "SCOPE", default_value = "suite", value_parser = parse_population)]
    intervals: Population,
    /// Print JSON.
    #[arg(long, group = "format")]
    json: bool,
    /// Print CSV, one row per agent and n. What verifiers chose is in the tables and in --json.
    #[arg(long, group = "format")]
    csv: bool,
    /// Show pass rates in which samples are weighted by their lines of withheld code.
    #[arg(long, group = "format")]
    lines: bool,
    /// Print CSV, one row per attempt.
    #[arg(long = "csv-attempts", alias = "attempts", group = "format")]
    attempts: bool,
    /// Print CSV, one row per value of each verdict.
    #[arg(long = "csv-values", alias = "values", group = "format")]
    values: bool,
}

impl OutputOptions {
    /// Prints these records.
    pub fn show(&self, records: &[AttemptRecord], options: &SummaryOptions) -> Result<()> {
        let text = if self.attempts {
            Detailed::attempts(records).csv(records)
        } else if self.values {
            Detailed::Values.csv(records)
        } else {
            let intervals = intervals(self.intervals, records);
            let summary = report::summarise(records, &SummaryOptions { intervals, ..options.clone() });
            if self.json {
                report::json(&summary)?
            } else if self.csv {
                report::csv(&summary)?
            } else if self.lines {
                report::lines_console(&summary)
            } else {
                report::console(&summary)
            }
        };
        print(&text)
    }

    /// Whether single attempts or values are shown.
    pub const fn is_detailed(&self) -> bool {
        self.attempts || self.values
    }

    /// Returns the values of k asked for.
    pub fn k(&self) -> &[usize] {
        &self.k
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.html.is_some() || arguments.figures.is_some() {
        let folders = distinct_folders(&arguments.run, &arguments.runs)?;
        let intervals = Intervals { population: arguments.output.intervals, ..Intervals::default() };
        let ks = arguments.output.k().to_vec();
        let labels = Labels::new(&arguments.label);
        let mut reader =
            RunReader::new(Families::standard(), folders, arguments.suite.clone(), ks, intervals).labelled(labels);
        return match (&arguments.html, &arguments.figures) {
            (Some(file), _) => html(&mut reader, file),
            (None, Some(folder)) => write_figures(&mut reader, folder),
            (None, None) => Ok(()),
        };
    }
    let folders = distinct_folders(&arguments.run, &arguments.runs)?;
    let labels = Labels::new(&arguments.label);
    if arguments.output.is_detailed() {
        return show_detailed(&arguments.output, &folders, &labels);
    }
    let mut merged = Merged::read(&folders, Detail::Outcome, &labels)?.with_choices();
    let families = Families::standard();
    let units = if arguments.difficulty {
        self::names(&merged.runs, arguments.suite.as_ref(), &families)
    } else {
        WithheldNames::default()
    };
    let cutoffs = Cutoffs::with(&arguments.cutoff)?;
    let dates = if arguments.dates {
        dates(&merged.runs, arguments.suite.as_ref(), &families)
    } else {
        PublicationDates::default()
    };
    let mut options = merged.options(arguments.output.k());
    let records = merged.take_records();
    options.intervals = intervals(arguments.output.intervals, &records);
    if arguments.how {
        return show_how(arguments, &records, &merged, &options);
    }
    if arguments.difficulty {
        return show_difficulty(arguments, &records, (&families, units), &options);
    }
    if arguments.dates {
        return show_dates(arguments, &records, (&families, dates), &cutoffs, &options);
    }
    if arguments.leaderboard {
        let summary = report::summarise(&records, &options);
        let places = report::leaderboard(&summary);
        return if arguments.output.json {
            print_json(&serde_json::json!({ "format": 1, "places": places, "notes": summary.notes }))
        } else {
            print(&report::leaderboard_console(&places, &summary))
        };
    }
    arguments.output.show(&records, &options)
}

/// Number of bytes of text printed at a time.
const PIECE: usize = 1 << 16;

/// Prints attempts or values record by record, so that memory use does not depend on their number.
fn show_detailed(output: &OutputOptions, folders: &[PathBuf], labels: &Labels) -> Result<()> {
    let (runs, unread) = RecordIndex::open_all(folders)?;
    let prefixes: Vec<String> = runs.iter().map(|(name, _)| labels.prefix(name, folders.len() > 1)).collect();
    let labelled: Vec<_> = runs
        .iter()
        .zip(&prefixes)
        .map(|((run, briefs), prefix)| Labelled { run, prefix, contenders: briefs.contenders() })
        .collect();
    labels.fit(&labelled)?;
    for note in unread.iter().chain(runs.iter().flat_map(|(_, run)| &run.notes)) {
        talk!("{}", clean(note));
    }
    let table = if output.attempts {
        let measures: BTreeSet<&String> = runs.iter().flat_map(|(_, run)| run.measures()).collect();
        let has_score = runs.iter().any(|(_, run)| run.has_score());
        Detailed::Attempts { has_score, measures: measures.into_iter().cloned().collect() }
    } else {
        Detailed::Values
    };
    let mut text = table.heading();
    for ((name, run), prefix) in runs.iter().zip(&prefixes) {
        for record in run.each() {
            let (mut record, counts) = record?;
            record.agent = labels.agent(name, prefix, &record.agent);
            record.model = record.model.as_deref().map(|model| labels.renamed(model));
            table.add(&mut text, &record, counts);
            if text.len() > PIECE {
                print(&text)?;
                text.clear();
            }
        }
    }
    print(&text)
}

/// Publication dates of items, by family and item.
#[derive(Default)]
struct PublicationDates {
    since: BTreeMap<(String, String), PartialDate>,
    /// Why a date is unknown, one sentence per item.
    notes: Vec<String>,
}

/// Looks up in the suite when the items of runs became public.
fn dates(merged: &[MergedRun], suite: Option<&PathBuf>, families: &Families) -> PublicationDates {
    let mut found = PublicationDates::default();
    for ((family, id), (_, runs)) in tried(merged, families) {
        let Ok(known) = families.get(&family) else { continue };
        let runs: Vec<Option<&RunFile>> = runs.into_iter().map(|place| merged[place].run.as_ref()).collect();
        match item(known.as_ref(), &id, &runs, suite).map(|item| item.facts().public_since) {
            Ok(Some(since)) => {
                found.since.insert((family, id), since);
            }
            Ok(None) => found.notes.push(format!("`{id}` has no date in the suite")),
            Err(why) => found.notes.push(format!("`{id}` {why}: when it became public is not known")),
        }
    }
    found
}

/// Prints pass rates before and after the models' cutoffs.
fn show_dates(
    arguments: &Arguments,
    records: &[AttemptRecord],
    (families, dates): (&Families, PublicationDates),
    cutoffs: &Cutoffs,
    options: &SummaryOptions,
) -> Result<()> {
    let since = |record: &AttemptRecord| {
        let item = families.sample(record).ok()?.item().to_owned();
        dates.since.get(&(record.family.clone(), item)).copied()
    };
    let rows = report::by_date(records, options, |model| cutoffs.cutoff(model), since);
    let notes: Vec<String> = options.notes.iter().chain(&dates.notes).cloned().collect();
    if arguments.output.json {
        return print_json(&serde_json::json!({ "format": 1, "rows": rows, "notes": notes }));
    }
    print(&report::by_date_console(&rows, options, &notes))
}

/// Names of what samples withhold, such as functions of papers, by item and index.
#[derive(Default)]
struct WithheldNames {
    names: BTreeMap<(String, usize), String>,
    /// Why names are unknown, one sentence per item.
    notes: Vec<String>,
}

/// Looks up the names of what the samples of runs withhold. Each run's items are looked up in its own suite, unless one
/// is named. Items that changed since the run are not used, as their indices may mean other units.
fn names(merged: &[MergedRun], suite: Option<&PathBuf>, families: &Families) -> WithheldNames {
    let mut found = WithheldNames::default();
    for ((family, id), (samples, runs)) in tried(merged, families) {
        let Ok(family) = families.get(&family) else { continue };
        let runs: Vec<Option<&RunFile>> = runs.into_iter().map(|place| merged[place].run.as_ref()).collect();
        match item(family.as_ref(), &id, &runs, suite) {
            Ok(item) => {
                for sample in &samples {
                    let places = family.withheld(sample).map(|withheld| withheld.units).unwrap_or_default();
                    let units = item.listed(sample).map(|listed| listed.units).unwrap_or_default();
                    found.names.extend(places.into_iter().zip(units).map(|(place, name)| ((id.clone(), place), name)));
                }
            }
            Err(why) => found.notes.push(format!("`{id}` {why}: its parts are shown as numbers")),
        }
    }
    found
}

/// By family and item: the samples that were tried, and the indices of the runs that tried them.
type TriedSamples = BTreeMap<(String, String), (BTreeSet<Sample>, BTreeSet<usize>)>;

/// Collects what runs tried.
fn tried(merged: &[MergedRun], families: &Families) -> TriedSamples {
    let mut tried = TriedSamples::new();
    for (place, run) in merged.iter().enumerate() {
        for sample in run.records.iter().filter_map(|record| families.sample(record).ok()) {
            let item = tried.entry((sample.family().to_owned(), sample.item().to_owned())).or_default();
            item.0.insert(sample);
            item.1.insert(place);
        }
    }
    tried
}

/// Loads the item that all of these runs had, from the first suite that has it.
fn item(
    family: &dyn Family,
    id: &str,
    runs: &[Option<&RunFile>],
    named: Option<&PathBuf>,
) -> Result<Arc<dyn Item>, String> {
    let own = runs.iter().flatten().map(|run| &run.configuration.suite);
    let folders: BTreeSet<&PathBuf> = named.map_or_else(|| own.collect(), |folder| BTreeSet::from([folder]));
    let load = |folder: &PathBuf| {
        let known = family
            .items(folder, &[])
            .map_err(|error| format!("cannot be looked up in its suite: {}", with_causes(&error)))?;
        if !known.iter().any(|known| known == id) {
            let which = named.map_or_else(|| " any more".to_owned(), |folder| format!(" `{}`", folder.display()));
            return Err(format!("is not in the suite{which}"));
        }
        let item = family.load(folder, id, ScoringBasis::default());
        let item = item.map_err(|error| format!("cannot be read: {}", with_causes(&error)))?;
        let digest = item.digest();
        let is_same = |run: Option<&RunFile>| run.and_then(|run| run.digests.papers.get(id)) == Some(&digest);
        if runs.iter().copied().all(is_same) { Ok(item) } else { Err("may have changed since the run".to_owned()) }
    };
    let mut why = None;
    for folder in folders {
        match load(folder) {
            Ok(item) => return Ok(item),
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(why.unwrap_or_else(|| "cannot be looked up, because its suite is unknown (pass `--suite DIR`)".to_owned()))
}

/// Prints how the pass rate falls with n, and which functions are hard.
fn show_difficulty(
    arguments: &Arguments,
    records: &[AttemptRecord],
    (families, names): (&Families, WithheldNames),
    options: &SummaryOptions,
) -> Result<()> {
    let withheld = |record: &AttemptRecord| {
        families.get(&record.family).ok().and_then(|family| family.withheld(&family.sample(&record.sample).ok()?))
    };
    let named = |item: &str, place: usize| names.names.get(&(item.to_owned(), place)).cloned();
    let mut found = report::difficulty(records, options.intervals.level, withheld, named);
    found.words = families.words(records.iter().map(|record| record.family.as_str())).unwrap_or_default();
    found.notes.extend(names.notes);
    found.notes.splice(0..0, options.notes.iter().cloned());
    if arguments.output.json { print_json(&found) } else { print(&report::difficulty_console(&found)) }
}

/// Prints how attempts went, from their trajectories.
fn show_how(arguments: &Arguments, records: &[AttemptRecord], merged: &Merged, options: &SummaryOptions) -> Result<()> {
    let rows = report::how(records, options.intervals, |record| {
        let Some((run, agent)) = merged.origin(record) else { return Ok(None) };
        // A missing or broken trajectory counts as not read.
        let lines = Trajectory::read(&run.store.trajectory(agent, &record.sample, record.attempt));
        // The events do not show what an external agent ran.
        let seen = |lines: &Vec<TimedEvent>| !lines.iter().any(|line| matches!(line.event, Event::Program { .. }));
        Ok(lines.ok().filter(seen).map(|lines| Course::from_trajectory(&lines)))
    })?;
    if arguments.output.json {
        return print_json(&serde_json::json!({ "format": 1, "rows": rows, "notes": options.notes }));
    }
    for note in &options.notes {
        talk!("{}", report::clean(note));
    }
    print(&report::how_console(&rows))
}

/// Parses a k of pass@k.
pub fn parse_k(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&k| k > 0).ok_or_else(|| format!("k is a whole number from 1 up, not `{text}`"))
}

/// Parses `suite` or `papers`.
pub fn parse_population(text: &str) -> Result<Population, String> {
    match text {
        "suite" => Ok(Population::Suite),
        "papers" => Ok(Population::Papers),
        _ => Err(format!("intervals speak of the `suite` or of `papers`, not of `{text}`")),
    }
}
