//! `autoexperiment report`: prints tables over stored runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::naming::{distinct_folders, intervals};
use super::report_files::{html, write_figures};
use super::shared::{print, print_json};
use crate::agent::{Event, TimedEvent, Trajectory};
use crate::error::{Result, with_causes};
use crate::export::table::{CsvTable, TableRows};
use crate::model::Cutoffs;
use crate::report::{self, Course, Label, Labelled, Labels, Merged, MergedRun, SummaryOptions, clean};
use crate::run::family::{Families, Family, Item, ScoringBasis};
use crate::run::record_index::RecordIndex;
use crate::run::{Outcome, RunFile};
use crate::sample::Sample;
use crate::stats::{Intervals, Population};
use crate::suite::PartialDate;
use crate::view::RunReader;

/// Print pass rates by agent and n from stored runs, or another view of them
///
/// Without the name of a view, shows the overview. Unfinished runs are reported with the attempts that they have.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "VIEW",
    subcommand_help_heading = "Views",
    after_help = "Examples:\n  autoexperiment report 2026-11-21T10-30-00Z\n  autoexperiment report runs/a runs/b --csv\n  autoexperiment report fixed dynamic --html report.html\n  autoexperiment report behaviour fixed dynamic\n  autoexperiment report attempts latest > attempts.csv"
)]
pub struct Arguments {
    #[command(subcommand)]
    view: Option<View>,
    #[command(flatten)]
    overview: Overview,
}

/// A view of stored runs.
#[derive(clap::Subcommand)]
enum View {
    /// Print pass rates by agent and n; the same as `report` without a view
    #[command(after_help = "Example:\n  autoexperiment report overview latest --json")]
    Overview(Overview),
    /// Print pass rates in which samples are weighted by their lines of withheld code
    #[command(after_help = "Example:\n  autoexperiment report lines latest")]
    Lines(Lines),
    /// Print how attempts went: how often the first run of code crashed, how often agents recovered, what samples took,
    /// and how much lost attempts could change
    #[command(after_help = "Example:\n  autoexperiment report behaviour fixed dynamic")]
    Behaviour(ViewOptions),
    /// Print how the pass rate falls with n, where half of all attempts fail, and which functions are hard
    #[command(after_help = "Example:\n  autoexperiment report difficulty latest --json")]
    Difficulty(Difficulty),
    /// Print one row per agent and model, best first: all of k and any of k attempts, cost, and the Pareto front
    #[command(after_help = "Example:\n  autoexperiment report leaderboard runs/*")]
    Leaderboard(ViewOptions),
    /// Print pass rates on tasks that were public before and after each model's knowledge cutoff
    #[command(after_help = "Example:\n  autoexperiment report dates latest --cutoff my-model=2025-03-31")]
    Dates(Dates),
    /// Print CSV, one row per attempt
    #[command(after_help = "Example:\n  autoexperiment report attempts latest > attempts.csv")]
    Attempts(RunSelection),
    /// Print CSV, one row per value of each verdict
    #[command(after_help = "Example:\n  autoexperiment report values latest > values.csv")]
    Values(RunSelection),
}

/// The runs that are shown, and their names.
#[derive(clap::Args)]
struct RunSelection {
    /// Runs: folders, or names under --runs; `latest` is the newest [default: latest]. Several are shown side by side.
    run: Vec<String>,
    /// Show a run, an agent or a model under another name, such as `react=ReAct` or `by-n/react=ReAct`. Can be
    /// repeated.
    #[arg(long, value_name = "OLD=NEW")]
    label: Vec<Label>,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Values of k, and the scope of the intervals.
#[derive(clap::Args)]
pub(super) struct RateOptions {
    /// Values of k in pass@k [default: 1 and the number of attempts].
    #[arg(short, value_name = "K", value_delimiter = ',', value_parser = parse_k)]
    pub k: Vec<usize>,
    /// Papers that the intervals are about: the given papers (`suite`) or similar ones (`papers`).
    #[arg(long, value_name = "SCOPE", default_value = "suite", value_parser = parse_population)]
    pub intervals: Population,
}

/// Options of `report overview`, and of `report` without a view.
#[derive(clap::Args)]
struct Overview {
    #[command(flatten)]
    selection: RunSelection,
    #[command(flatten)]
    rates: RateOptions,
    #[command(flatten)]
    format: SummaryFormat,
    /// Write a page for a browser, with overview, samples and trajectories. Of broken runs, the readable parts are
    /// shown.
    #[arg(long, value_name = "FILE", group = "format")]
    html: Option<PathBuf>,
    /// Write the figures for a paper to a folder, as SVG, PDF and PNG, 5.5 inches wide, with their numbers as CSV.
    #[arg(long, value_name = "DIR", group = "format")]
    figures: Option<PathBuf>,
    /// Folder of the suite, for --html [default: each run's own].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

/// Options for the output format of a summary, which shows pass rates by agent and n (number of masked functions).
#[derive(clap::Args)]
pub(super) struct SummaryFormat {
    /// Print JSON.
    #[arg(long, group = "format")]
    json: bool,
    /// Print CSV, one row per agent and n. Results of verifiers are only in the tables and in --json.
    #[arg(long, group = "format")]
    csv: bool,
}

impl SummaryFormat {
    /// Prints a summary of these records.
    pub fn show(&self, records: &[Outcome], options: &SummaryOptions) -> Result<()> {
        let summary = report::summarise(records, options);
        print(&if self.json {
            report::json(&summary)?
        } else if self.csv {
            report::csv(&summary)?
        } else {
            report::console(&summary)
        })
    }

    /// Whether the user asked for JSON or CSV.
    pub const fn is_given(&self) -> bool {
        self.json || self.csv
    }
}

/// Options of `report lines`.
#[derive(clap::Args)]
struct Lines {
    #[command(flatten)]
    selection: RunSelection,
    #[command(flatten)]
    rates: RateOptions,
}

/// Options of `report behaviour` and `report leaderboard`. `report difficulty` and `report dates` have the same options
/// and others.
#[derive(clap::Args)]
struct ViewOptions {
    #[command(flatten)]
    selection: RunSelection,
    #[command(flatten)]
    rates: RateOptions,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Options of `report difficulty`.
#[derive(clap::Args)]
struct Difficulty {
    #[command(flatten)]
    view: ViewOptions,
    /// Folder of the suite, for the names of functions [default: each run's own].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

/// Options of `report dates`.
#[derive(clap::Args)]
struct Dates {
    #[command(flatten)]
    view: ViewOptions,
    /// A model's knowledge cutoff, such as `openai:gpt-5-mini=2024-05`. Can be repeated.
    #[arg(long, value_name = "MODEL=DATE")]
    cutoff: Vec<String>,
    /// Folder of the suite, for the dates of papers [default: each run's own].
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.view {
        None => overview(&arguments.overview),
        Some(View::Overview(arguments)) => overview(arguments),
        Some(View::Lines(Lines { selection, rates })) => {
            let (records, options) = rates.records(&mut selection.read()?);
            print(&report::lines_console(&report::summarise(&records, &options)))
        }
        Some(View::Behaviour(arguments)) => behaviour(arguments),
        Some(View::Difficulty(arguments)) => difficulty(arguments),
        Some(View::Leaderboard(arguments)) => leaderboard(arguments),
        Some(View::Dates(arguments)) => dates(arguments),
        Some(View::Attempts(selection)) => print_rows(selection, TableRows::Attempts),
        Some(View::Values(selection)) => print_rows(selection, TableRows::Values),
    }
}

impl RateOptions {
    /// Takes the records out of the runs. Also returns the options for summarising them.
    fn records(&self, merged: &mut Merged) -> (Vec<Outcome>, SummaryOptions) {
        let mut options = merged.options(&self.k);
        let records = merged.take_records();
        options.intervals = intervals(self.intervals, &records);
        (records, options)
    }
}

impl RunSelection {
    fn folders(&self) -> Result<Vec<PathBuf>> {
        distinct_folders(&self.run, &self.runs)
    }

    /// Reads the runs, and renames runs, agents and models as the options ask for.
    fn read(&self) -> Result<Merged> {
        let labels = Labels::new(&self.label);
        Ok(Merged::read(&self.folders()?, &labels)?.with_choices())
    }
}

fn overview(arguments: &Overview) -> Result<()> {
    let Overview { selection, rates, format, html: page, figures, suite } = arguments;
    if page.is_none() && figures.is_none() {
        let mut merged = selection.read()?;
        let (records, options) = rates.records(&mut merged);
        return format.show(&records, &options);
    }
    let intervals = Intervals { population: rates.intervals, ..Intervals::default() };
    let labels = Labels::new(&selection.label);
    let folders = selection.folders()?;
    let mut reader =
        RunReader::new(Families::standard(), folders, suite.clone(), rates.k.clone(), intervals).labelled(labels);
    match (page, figures) {
        (Some(file), _) => html(&mut reader, file),
        (None, Some(folder)) => write_figures(&mut reader, folder),
        (None, None) => Ok(()),
    }
}

fn leaderboard(arguments: &ViewOptions) -> Result<()> {
    let (records, options) = arguments.rates.records(&mut arguments.selection.read()?);
    let summary = report::summarise(&records, &options);
    let pairs = report::compare(&report::contenders(&records), true, false, options.intervals);
    let places = report::leaderboard(&summary, &pairs);
    if arguments.json {
        print_json(&serde_json::json!({ "format": 1, "places": places, "notes": summary.notes }))
    } else {
        print(&report::leaderboard_console(&places, &summary))
    }
}

/// Number of bytes of text printed at a time.
const PIECE: usize = 1 << 16;

/// Prints attempts or values as CSV, record by record, so that memory use does not depend on their number.
fn print_rows(selection: &RunSelection, rows: TableRows) -> Result<()> {
    let (folders, labels) = (selection.folders()?, Labels::new(&selection.label));
    let (runs, unread) = RecordIndex::open_all(&folders)?;
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
    let measures: BTreeSet<&String> = runs.iter().flat_map(|(_, run)| run.measures()).collect();
    let table = CsvTable { rows, measures: measures.into_iter().cloned().collect() };
    let mut text = table.heading()?;
    for ((name, run), prefix) in runs.iter().zip(&prefixes) {
        for record in run.each() {
            let (mut record, counts) = record?;
            record.agent = labels.agent(name, prefix, &record.agent);
            record.model = record.model.as_deref().map(|model| labels.renamed(model));
            table.add(&mut text, name, record, counts)?;
            if text.len() > PIECE {
                print(&text)?;
                text.clear();
            }
        }
    }
    print(&text)
}

/// Publication dates of samples, by the family's name and the sample's id.
#[derive(Default)]
struct PublicationDates {
    since: BTreeMap<(String, String), PartialDate>,
    /// Why a date is unknown, one sentence per item.
    notes: Vec<String>,
}

/// Looks up in the suite when the functions or other units that each sample of the runs withholds became public.
fn publication_dates(merged: &[MergedRun], suite: Option<&PathBuf>, families: &Families) -> PublicationDates {
    let mut found = PublicationDates::default();
    for ((family, id), (samples, runs)) in tried(merged, families) {
        let Ok(known) = families.get(&family) else { continue };
        let runs: Vec<Option<&RunFile>> = runs.into_iter().map(|place| merged[place].run.as_ref()).collect();
        match item(known.as_ref(), &id, &runs, suite) {
            Ok(item) => {
                let dated = samples.iter().filter_map(|sample| Some((sample, item.since(sample)?)));
                let dated: BTreeMap<_, _> =
                    dated.map(|(sample, since)| ((family.clone(), sample.id().to_owned()), since)).collect();
                if dated.is_empty() {
                    found.notes.push(format!("`{id}` has no date in the suite"));
                }
                found.since.extend(dated);
            }
            Err(why) => found.notes.push(format!("`{id}` {why}: when it became public is not known")),
        }
    }
    found
}

/// Whether one of the cutoffs `MODEL=DATE` names this model, with or without its provider.
fn has_cutoff(given: &[String], model: &str) -> bool {
    let name = model.split_once(':').map_or(model, |(_, name)| name);
    given.iter().filter_map(|pair| pair.rsplit_once('=')).any(|(it, _)| it == model || it == name)
}

/// Prints pass rates before and after the models' cutoffs.
fn dates(arguments: &Dates) -> Result<()> {
    let cutoffs = Cutoffs::with(&arguments.cutoff)?;
    let mut merged = arguments.view.selection.read()?;
    let families = Families::standard();
    let dates = publication_dates(&merged.runs, arguments.suite.as_ref(), &families);
    let (records, options) = arguments.view.rates.records(&mut merged);
    let since = |record: &Outcome| {
        let sample = families.sample(&record.family, &record.sample).ok()?.id().to_owned();
        dates.since.get(&(record.family.to_string(), sample)).copied()
    };
    // Unless the user gives a cutoff for the shown name, look up the cutoff of a renamed model by its original name:
    // the new name may be unknown, or may be the name of a different model.
    let cutoff = |agent: &str, model: &str| {
        let own = merged.own_model(agent, model).unwrap_or(model);
        cutoffs.cutoff(if has_cutoff(&arguments.cutoff, model) { model } else { own })
    };
    let rows = report::by_date(&records, &options, cutoff, since);
    let notes: Vec<String> = options.notes.iter().chain(&dates.notes).cloned().collect();
    if arguments.view.json {
        return print_json(&serde_json::json!({ "format": 1, "rows": rows, "notes": notes }));
    }
    print(&report::by_date_console(&rows, &options, &notes))
}

/// Names of the functions or other units that samples withhold, by the item's id and the unit's index in the item.
#[derive(Default)]
struct WithheldNames {
    names: BTreeMap<(String, usize), String>,
    /// Why names are unknown, one sentence per item.
    notes: Vec<String>,
}

/// Looks up the names of the units, such as functions, that the samples of runs withhold. Searches each item (paper or
/// repo) in the suites of the runs, or only in `suite` if it is given. Does not use an item that has changed since the
/// runs, because its indices may now mean other units.
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
            Err(why) => found.notes.push(format!("`{id}` {why}: its masked parts are shown by number, not by name")),
        }
    }
    found
}

/// Samples that were tried, and the indices of the runs that tried them, by family and item.
type TriedSamples = BTreeMap<(String, String), (BTreeSet<Sample>, BTreeSet<usize>)>;

/// Collects the samples that the runs tried, by item.
fn tried(merged: &[MergedRun], families: &Families) -> TriedSamples {
    let mut tried = TriedSamples::new();
    for (place, run) in merged.iter().enumerate() {
        for sample in run.records.iter().filter_map(|record| families.sample(&record.family, &record.sample).ok()) {
            let item = tried.entry((sample.family().to_owned(), sample.item().to_owned())).or_default();
            item.0.insert(sample);
            item.1.insert(place);
        }
    }
    tried
}

/// Loads an item in the version that all of `runs` used. Takes it from the first of the runs' suites that has this
/// version, or from the suite `named` if it is given.
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

/// Prints how the pass rate falls with n (the number of masked functions or other units), and which of these units are
/// hard.
fn difficulty(arguments: &Difficulty) -> Result<()> {
    let mut merged = arguments.view.selection.read()?;
    let families = Families::standard();
    let names = names(&merged.runs, arguments.suite.as_ref(), &families);
    let (records, options) = arguments.view.rates.records(&mut merged);
    let withheld = |record: &Outcome| {
        families.get(&record.family).ok().and_then(|family| family.withheld(&family.sample(&record.sample).ok()?))
    };
    let named = |item: &str, place: usize| names.names.get(&(item.to_owned(), place)).cloned();
    let mut found = report::difficulty(&records, options.intervals.level, withheld, named);
    found.words = families.words(records.iter().map(|record| &*record.family)).unwrap_or_default();
    found.notes.extend(names.notes);
    found.notes.splice(0..0, options.notes.iter().cloned());
    if arguments.view.json { print_json(&found) } else { print(&report::difficulty_console(&found)) }
}

/// Prints how attempts went, from their trajectories.
fn behaviour(arguments: &ViewOptions) -> Result<()> {
    let mut merged = arguments.selection.read()?;
    let (records, options) = arguments.rates.records(&mut merged);
    let rows = report::how(&records, options.intervals, |record| {
        let Some((run, agent)) = merged.origin(record) else { return Ok(None) };
        // An attempt whose trajectory is missing or broken counts as one without a trajectory.
        let lines = Trajectory::read(&run.store.trajectory(agent, &record.sample, record.attempt));
        // Skip external agents, because their events do not show which commands they ran.
        let seen = |lines: &Vec<TimedEvent>| !lines.iter().any(|line| matches!(line.event, Event::Program { .. }));
        Ok(lines.ok().filter(seen).map(|lines| Course::from_trajectory(&lines)))
    })?;
    if arguments.json {
        return print_json(&serde_json::json!({ "format": 1, "rows": rows, "notes": options.notes }));
    }
    for note in &options.notes {
        talk!("{}", report::clean(note));
    }
    print(&report::how_console(&rows))
}

/// Parses a k of pass@k.
pub(super) fn parse_k(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&k| k > 0).ok_or_else(|| format!("k is a whole number from 1 up, not `{text}`"))
}

/// Parses `suite` or `papers`.
pub(super) fn parse_population(text: &str) -> Result<Population, String> {
    match text {
        "suite" => Ok(Population::Suite),
        "papers" => Ok(Population::Papers),
        _ => Err(format!("`{text}` is not a scope of intervals: give `suite` or `papers`")),
    }
}
