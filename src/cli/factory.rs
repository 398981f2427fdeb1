//! `autoexperiment factory`: makes a suite from Python packages with tests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::model::parse_time;
use super::progress::ProgressDisplay;
use super::run::{MachineArguments, default_jobs, parse_jobs};
use super::shared::{print, print_json, table};
use crate::env::{EnvBuildOptions, EnvKind};
use crate::error::{Error, Result};
use crate::factory::{Factory, FactoryList, FactorySettings, PackageEntry, packages};
use crate::report::clean;

/// Make a suite from Python packages that have tests, without a model or a person
///
/// A package is `name` or `name==version` (its sdist comes from the index that pip is configured to use), a folder, an
/// sdist, a git repository's address, or a text file with one of these per line. Its tests run in the sandbox, and
/// become hidden experiments. Functions that tests enter are masked and mutated one by one; those that the tests need,
/// and whose changes they notice, become maskable. The package's own documentation is the paper's text.
///
/// Writes papers, repos and envs, and `factory.json` and `factory.html` with what was found, kept and dropped, and why.
/// A package that gives no tasks is listed with the reason, and the others continue. Repeat a command to continue after
/// an interruption. `--from factory.json` makes the same suite again from the sources and that file, and checks every
/// file's digest.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  autoexperiment factory inflection toolz==1.0.0 ~/src/mypkg -o tasks
  autoexperiment factory packages.txt -o tasks --most 40 -j 2
  autoexperiment run --suite tasks -p inflection -n 1..3 --agent gold --agent noop
  autoexperiment factory --from tasks/factory.json -o again
  autoexperiment factory refresh tasks/factory.json -o fresh"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Option<FactoryVerb>,
    /// Packages, or text files that list them.
    #[arg(value_name = "PACKAGE", required_unless_present = "from", conflicts_with = "from")]
    packages: Vec<String>,
    /// Folder of the suite; an unfinished suite is continued.
    #[arg(short, long, value_name = "DIR", required = true)]
    output: Option<PathBuf>,
    /// Make the suite of this `factory.json` again, without running anything.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["most", "seed", "test_seconds", "tests", "least_score", "mutants", "doctests", "keep_examples", "documented", "examples"])]
    from: Option<PathBuf>,
    /// Maximum number of functions per package. Functions are drawn from different files and with different lengths.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    most: u32,
    /// Seed of the random choice of functions.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Time limit of one test, such as `5s`, or in seconds. Slower tests are left out.
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = parse_time)]
    test_seconds: f64,
    /// Whether agents see the tests. In either case, agents cannot change the tests that verification runs.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = TestVisibility::Hidden)]
    tests: TestVisibility,
    /// Minimum share of a function's mutants that its tests notice.
    #[arg(long, value_name = "SCORE", default_value_t = 0.8, value_parser = parse_score)]
    least_score: f64,
    /// Number of mutants per function.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    mutants: u32,
    /// Use doctests as well. The outputs of examples in docstrings then stay visible.
    #[arg(long)]
    doctests: bool,
    /// Keep the outputs of examples in documentation, which may be values that tests compare.
    #[arg(long)]
    keep_examples: bool,
    /// Mask only functions with a docstring. Other functions are described only by signature and calls, which do not
    /// always say what a function must do.
    #[arg(long)]
    documented: bool,
    /// Maximum number of example calls per function, with results, in the text that agents get. The package's own tests
    /// do not make these calls.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(..=60))]
    examples: u32,
    #[command(flatten)]
    making: MakingOptions,
}

/// How a suite is made.
#[derive(clap::Args)]
struct MakingOptions {
    /// Number of sandboxes at once [default: one per core].
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    /// Use only the first N packages.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: MachineArguments,
}

#[derive(clap::Subcommand)]
enum FactoryVerb {
    Refresh(RefreshArguments),
}

/// Make a suite of the newer versions of a list's packages, in which new functions carry the date of the release
///
/// A function is new if the older version has no function of this name with at least half of the body's tokens in the
/// same order, and no file with at least half of the body's sequences of 12 tokens, names aside. New functions are
/// measured first. `run --after DATE` draws only functions that are younger than a date, and `report dates` compares
/// pass rates before and after a model's knowledge cutoff. Settings are those of the list.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  autoexperiment factory refresh tasks/factory.json -o fresh
  autoexperiment run --suite fresh --after 2026-06-01 --agent react --model openai:gpt-5-mini")]
struct RefreshArguments {
    /// A suite's `factory.json`.
    #[arg(value_name = "LIST")]
    list: PathBuf,
    /// Folder of the new suite; an unfinished suite is continued.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    making: MakingOptions,
}

/// Whether agents see a package's tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TestVisibility {
    Hidden,
    Visible,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    if let Some(FactoryVerb::Refresh(arguments)) = &arguments.verb {
        return refresh(arguments).await;
    }
    let given = arguments.output.as_ref().ok_or_else(|| Error::internal("no folder for the suite"))?;
    let known = arguments.from.as_deref().map(FactoryList::read).transpose()?;
    let asked = if known.is_some() { Vec::new() } else { packages(&arguments.packages)? };
    let settings = known.as_ref().map_or_else(|| arguments.settings(), |known| known.settings.clone());
    let factory = arguments.making.open(given, settings).await?;
    let Some(known) = known else { return arguments.making.make(factory, asked, given).await };
    let progress = Arc::new(ProgressDisplay::new(false));
    let made = factory.rebuild(known, &*progress).await;
    progress.finish();
    arguments.making.tell(&made?, given)
}

async fn refresh(arguments: &RefreshArguments) -> Result<()> {
    let known = FactoryList::read(&arguments.list)?;
    let factory = arguments.making.open(&arguments.output, known.settings.clone()).await?;
    let (asked, without) = factory.newer(&known).await;
    for line in &without {
        talk!("{}", clean(line));
    }
    if asked.is_empty() {
        return Err(Error::suite("no package of the list has a newer version").at(&arguments.list, None));
    }
    arguments.making.make(factory, asked, &arguments.output).await
}

impl MakingOptions {
    async fn open(&self, output: &Path, settings: FactorySettings) -> Result<Factory> {
        let envs = EnvBuildOptions { kind: EnvKind::Venv, here: true, wheels_only: true, ..EnvBuildOptions::default() };
        let output = std::path::absolute(output).map_err(|error| Error::io("resolve", output, error))?;
        let machine = Arc::new(self.machine.open(&envs, &output).await?);
        Factory::open(&output, settings, machine, self.jobs.unwrap_or_else(default_jobs))
    }

    async fn make(&self, factory: Factory, mut asked: Vec<String>, output: &Path) -> Result<()> {
        asked.truncate(self.limit.map_or(usize::MAX, |limit| limit as usize));
        let progress = Arc::new(ProgressDisplay::new(false));
        let made = factory.make(&asked, Arc::clone(&progress) as _, talk_of).await;
        progress.finish();
        self.tell(&made?, output)
    }

    /// Prints the result for each package. Fails if no package gave tasks.
    fn tell(&self, list: &FactoryList, output: &Path) -> Result<()> {
        if self.json {
            print_json(list)?;
        } else {
            print(&console(list))?;
        }
        let given = list.packages.iter().filter(|entry| entry.measured.is_some()).count();
        if given == 0 {
            return Err(Error::suite("no package gave tasks").hint("the reasons are listed above"));
        }
        let kept: usize = list.packages.iter().map(|entry| entry.funnel.kept).sum();
        talk!("{kept} functions from {given} of {} packages in `{}`", list.packages.len(), output.display());
        Ok(())
    }
}

impl Arguments {
    fn settings(&self) -> FactorySettings {
        FactorySettings {
            most: self.most as usize,
            seed: self.seed,
            test_seconds: self.test_seconds,
            visible_tests: self.tests == TestVisibility::Visible,
            least_score: self.least_score,
            mutants: self.mutants as usize,
            doctests: self.doctests,
            keep_examples: self.keep_examples,
            documented: self.documented,
            examples: self.examples as usize,
        }
    }
}

/// Prints one line about a finished package.
fn talk_of(entry: &PackageEntry) {
    let funnel = &entry.funnel;
    match &entry.refused {
        Some(reason) => talk!("{}: no tasks: {}", clean(&entry.package), clean(reason)),
        None => {
            let fresh = match &entry.earlier {
                Some(earlier) => format!(" ({} not in {})", funnel.fresh, clean(&earlier.package)),
                None => String::new(),
            };
            talk!(
                "{}: {} functions{fresh}, of {} that {} tests and {} added tests enter, in {:.1} minutes",
                clean(&entry.package),
                funnel.kept,
                funnel.entered,
                funnel.tests_kept,
                funnel.tests_added,
                entry.minutes
            );
        }
    }
}

fn console(list: &FactoryList) -> String {
    let rows = list.packages.iter().map(|entry| {
        let funnel = &entry.funnel;
        let counts = [
            funnel.tests,
            funnel.tests_kept,
            funnel.tests_added,
            funnel.functions,
            funnel.entered,
            funnel.candidates,
            funnel.tried,
            funnel.kept,
        ];
        let named = std::iter::once(clean(&entry.package)).chain(counts.iter().map(ToString::to_string));
        named.chain([format!("{:.1}", entry.minutes)]).collect()
    });
    let columns =
        ["package", "tests", "kept", "added", "functions", "entered", "candidates", "measured", "kept", "minutes"];
    table(&columns, &[1, 2, 3, 4, 5, 6, 7, 8, 9], rows)
}

fn parse_score(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(score) if (0.0..=1.0).contains(&score) => Ok(score),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}
