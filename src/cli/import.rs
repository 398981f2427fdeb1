//! `autoexperiment import`: imports papers of other projects.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::shared::{SuiteOptions, print, print_json, table};
use crate::error::{Error, FailureKind, Result};
use crate::import::replies::import_replies;
use crate::import::tasks::import_tasks;
use crate::import::{Decisions, PaperFolder, PublishedFolder, import};
use crate::report::clean;

/// Import other projects' papers into this suite
#[derive(clap::Args)]
#[command(after_help = "Example:\n  autoexperiment import mlrc dataset/MLRC")]
pub struct Arguments {
    #[command(subcommand)]
    what: ImportSource,
}

#[derive(clap::Subcommand)]
enum ImportSource {
    Mlrc(Mlrc),
    #[command(name = "researchcodebench-tasks")]
    ResearchCodeBenchTasks(ResearchCodeBenchTasks),
    #[command(name = "researchcodebench-replies")]
    ResearchCodeBenchReplies(ResearchCodeBenchReplies),
}

/// Import the tasks of ResearchCodeBench from a copy of its repository, as a new suite
///
/// Each paper's tagged regions become units that samples mask, and its unit tests decide whether an attempt passes.
/// Tests and reference solutions are hidden from agents. Papers whose tests need the network or packages that cannot be
/// installed are refused by name. If anything in the folder is missing or contradicts itself, nothing is written.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  autoexperiment import researchcodebench-tasks ResearchCodeBench -o rcb\n  \
                        autoexperiment env --suite rcb lock --here researchcodebench\n  autoexperiment gold --suite rcb GPS\n  \
                        autoexperiment run --suite rcb -p GPS -n 1 --agent gold --agent noop")]
struct ResearchCodeBenchTasks {
    /// The copy of the repository, or its folder `pset`.
    folder: PathBuf,
    /// Folder of the new suite, which must not exist.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Import the completions of a stored run of ResearchCodeBench, as replies that the agent `replies:FILE` returns
///
/// Writes one file for each model. Snippets that the suite does not have are left out and named.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  autoexperiment import researchcodebench-replies results.json --suite rcb -o replies\n  \
                        autoexperiment run --suite rcb -p GPS -n 1 --agent replies:replies/GPT_4_1.jsonl --name again\n  \
                        autoexperiment rescore researchcodebench-replies replies/GPT_4_1.jsonl runs/again"
)]
struct ResearchCodeBenchReplies {
    /// The stored run: one JSON file with problems, snippets and completions.
    file: PathBuf,
    /// New folder for the replies.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
}

/// Import the published AutoExperiment data: functions.jsonl, experiments.jsonl, code, paper.txt, mlrc_n=*.jsonl
///
/// Finds functions by name, class and content; published line numbers are the weakest evidence. Prints every correction
/// and every doubt. If a function cannot be identified with certainty, its paper is refused and the candidates are
/// listed; the other papers are still imported. Papers that the suite already has are left unchanged.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment import mlrc dataset/MLRC\n  autoexperiment import mlrc dataset/MLRC -p 2303.11932 --at 2303.11932:6=metrics.py::IoU.compute"
)]
struct Mlrc {
    /// Folder that contains the papers' folders, or the folder of one paper.
    folder: PathBuf,
    /// Papers to import [default: all].
    #[arg(short, long = "papers", alias = "paper", value_name = "PAPER", value_delimiter = ',')]
    paper: Vec<String>,
    /// Identify an ambiguous function, as `PAPER:NUMBER=FILE::NAME`. Can be repeated.
    #[arg(long, value_name = "PLACE")]
    at: Vec<String>,
    /// Leave out functions that cannot be identified, instead of refusing their paper.
    #[arg(long)]
    leave_out: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        ImportSource::Mlrc(arguments) => mlrc(arguments),
        ImportSource::ResearchCodeBenchTasks(arguments) => research_code_bench(arguments),
        ImportSource::ResearchCodeBenchReplies(arguments) => stored_replies(arguments),
    }
}

fn research_code_bench(arguments: &ResearchCodeBenchTasks) -> Result<()> {
    let imported = import_tasks(&arguments.folder, &arguments.output)?;
    if arguments.json {
        return print_json(&imported);
    }
    let rows = imported.papers.iter().map(|paper| {
        let counts = [paper.regions.len(), paper.nested, paper.lines, paper.hidden.len(), paper.scrubbed];
        std::iter::once(clean(&paper.paper)).chain(counts.iter().map(ToString::to_string)).collect()
    });
    print(&table(&["paper", "regions", "nested", "lines", "hidden files", "numbers removed"], &[1, 2, 3, 4, 5], rows))?;
    let mut text = String::new();
    for paper in &imported.papers {
        for tag in &paper.left_out {
            let _ = writeln!(text, "{}: left out: {}", clean(&paper.paper), clean(tag));
        }
    }
    for one in &imported.refused {
        let _ = writeln!(text, "{}: refused: {}", clean(&one.paper), clean(&one.reason));
    }
    print(&text)?;
    let regions: usize = imported.papers.iter().map(|paper| paper.regions.len()).sum();
    talk!(
        "{} papers with {regions} regions in `{}`; their env needs {}",
        imported.papers.len(),
        arguments.output.display(),
        imported.packages.join(", ")
    );
    if !imported.unknown.is_empty() {
        talk!(
            "warning: the packages of these modules are not known, so the env lacks them: {}; add them to its \
             `environment.yml`",
            clean(&imported.unknown.join(", "))
        );
    }
    if imported.packages.iter().any(|package| package.starts_with("torch==")) {
        talk!(
            "building the env downloads and installs about 6.4 GB, because PyTorch from PyPI includes CUDA's libraries"
        );
    }
    talk!(
        "next: `autoexperiment env --suite {0} lock --here researchcodebench`, then `autoexperiment gold --suite {0}`",
        arguments.output.display()
    );
    Ok(())
}

fn stored_replies(arguments: &ResearchCodeBenchReplies) -> Result<()> {
    let imported = import_replies(&arguments.file, &arguments.suite.open_own()?, &arguments.output)?;
    for one in &imported.left_out {
        talk!("left out: {}", clean(one));
    }
    if arguments.json {
        return print_json(&imported);
    }
    let rows = imported.models.iter().map(|model| {
        let counts = [model.papers.len(), model.replies, model.attempts as usize].map(|count| count.to_string());
        let [papers, replies, attempts] = counts;
        vec![clean(&model.model), papers, replies, attempts, clean(&model.file.display().to_string())]
    });
    print(&table(&["model", "papers", "replies", "for each snippet", "file"], &[1, 2, 3], rows))
}

fn mlrc(arguments: &Mlrc) -> Result<()> {
    let suite = arguments.suite.open_own()?;
    let mut published = PublishedFolder::open(&arguments.folder)?;
    let decisions = decisions(arguments)?;
    for (id, number) in decisions.at.keys() {
        let papers = published.papers.iter().filter(|paper| paper.id == *id);
        let mut read = papers.filter_map(|paper| paper.paper.as_ref().ok()).peekable();
        let is_refused = read.peek().is_none() && published.papers.iter().any(|paper| paper.id == *id);
        if !is_refused && !read.any(|paper| paper.functions.iter().any(|function| function.number == *number)) {
            return Err(Error::usage(format!("`--at {id}:{number}`: there is no function {number} in a paper `{id}`"))
                .hint("the numbers are those of the published list of functions"));
        }
    }
    for id in &arguments.paper {
        if !published.papers.iter().any(|paper| paper.id == *id) {
            let known: Vec<&str> = published.papers.iter().map(|paper| paper.id.as_str()).collect();
            return Err(Error::usage(format!("no paper `{id}` in `{}`", arguments.folder.display()))
                .hint(format!("the papers are: {}", known.join(", "))));
        }
    }
    let mut imported = Vec::new();
    let mut refused: Option<Error> = None;
    for PaperFolder { id, paper } in std::mem::take(&mut published.papers) {
        let is_named = arguments.paper.contains(&id);
        if !arguments.paper.is_empty() && !is_named {
            continue;
        }
        if !is_named && suite.paper_dir(&id).exists() {
            talk!("{}: in the suite already, left as it is", clean(&id));
            continue;
        }
        let paper = match paper {
            Ok(paper) => paper,
            Err(error) => {
                refuse(&id, error, &mut refused);
                continue;
            }
        };
        let done = match import(&suite, &published, &paper, &decisions) {
            Ok(done) => done,
            Err(error) if matches!(error.kind, FailureKind::Suite | FailureKind::Usage) => {
                refuse(&id, error, &mut refused);
                continue;
            }
            // Stop here: if one paper cannot be written, the next one cannot be written either.
            Err(error) => {
                if let Some(earlier) = refused.replace(error) {
                    super::render(&earlier);
                }
                break;
            }
        };
        if !arguments.json {
            let mut text = format!(
                "{}: {} functions, {} experiments\n",
                clean(&done.paper),
                done.functions.len(),
                done.experiments
            );
            for finding in &done.findings {
                let (kind, about, what) = finding.parts();
                let _ = writeln!(text, "  {kind}: {}: {}", clean(about), clean(what));
            }
            print(&text)?;
        }
        imported.push(done);
    }
    if arguments.json {
        print_json(&imported)?;
    }
    refused.map_or(Ok(()), Err)
}

/// Reports that a paper is refused and continues with the others. The first refusal becomes the command's error.
fn refuse(id: &str, error: Error, refused: &mut Option<Error>) {
    talk!("{}: refused", clean(id));
    match refused {
        None => *refused = Some(error),
        Some(_) => super::render(&error),
    }
}

fn decisions(arguments: &Mlrc) -> Result<Decisions> {
    let mut decisions = Decisions { leave_out: arguments.leave_out, ..Decisions::default() };
    for place in &arguments.at {
        let parts = place.split_once('=').and_then(|(function, selector)| {
            let (paper, number) = function.rsplit_once(':')?;
            Some((paper.to_owned(), number.to_owned(), selector.to_owned()))
        });
        let (paper, number, selector) = parts.ok_or_else(|| {
            Error::usage(format!("`{place}` names no function")).hint("write it as `PAPER:NUMBER=FILE::NAME`")
        })?;
        decisions.at.insert((paper, number), selector);
    }
    Ok(decisions)
}
