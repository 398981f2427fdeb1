//! The command line: one file per verb (subcommand). The only module that prints: data to stdout, messages to stderr.

/// Prints a message to stderr, escaped as [`shared::print`] escapes. Write errors, such as a closed pipe in
/// `2>&1 | head`, are ignored.
macro_rules! talk {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let text = format_args!($($part)*).to_string();
        let _ = writeln!(std::io::stderr().lock(), "{}", $crate::cli::shared::clean_lines(&text));
    }};
}

mod agents;
mod check;
mod clean;
mod compare;
mod complete;
mod completions;
mod curtail;
mod doctor;
mod embedding;
mod env;
mod environment;
mod episodes;
mod events;
mod exit;
mod export;
mod factory;
mod gold;
mod image;
mod import;
mod index;
mod init;
pub mod lines;
mod list;
mod listed;
mod man;
mod mask;
mod mcp;
mod model;
mod moved;
mod naming;
mod new;
mod parity;
mod pick;
mod plan;
mod power;
mod probe;
mod progress;
mod regions;
mod report;
mod report_files;
mod rescore;
mod resume;
mod retrieve;
mod run;
mod runs;
mod sample;
mod score;
mod scrub;
mod serve;
mod session;
mod shards;
mod shared;
mod show;
mod signals;
mod slurm;
mod status;
mod suite;
mod verified;
mod verify;
mod verify_items;
mod view;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::error::{Error, Result, causes};
use exit::ProgramExit;

/// Measures whether AI agents can re-implement and run the experiments of research papers.
///
/// Masks n functions of a paper's repository. An agent writes them again in a sandbox, runs the paper's experiments and
/// reports the results. AutoExperiment compares the reported results with the reference (gold) results, then re-runs
/// the agent's code and compares that too.
#[derive(Parser)]
#[command(name = "autoexperiment", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs by topic, in the order in which beginners need them.
const GROUPS: [(&str, &[&str]); 3] = [
    (
        "Papers",
        &[
            "init", "list", "check", "new", "gold", "verify", "curtail", "scrub", "mask", "regions", "index", "suite",
            "sample", "retrieve", "import", "factory",
        ],
    ),
    (
        "Runs",
        &[
            "agents", "run", "serve", "mcp", "resume", "cancel", "runs", "status", "show", "report", "view", "compare",
            "score", "pick", "export", "parity", "rescore", "power",
        ],
    ),
    ("This machine", &["doctor", "env", "image", "clean", "completions", "man"]),
];

const EXAMPLES: &str = "\
Examples:
  autoexperiment run -p kmeanspp -n 1..3 --limit 5 --agent gold,noop
  autoexperiment check
  autoexperiment run -n 1..3 -k 5 --agent react --model openai:gpt-5-mini --max-cost 50
  autoexperiment resume 2026-11-21T10-30-00Z
  autoexperiment report runs/*
  autoexperiment list

Exit codes:
  0 done                  1 bug in autoexperiment   2 wrong usage      3 faulty suite
  4 gold not reproduced   5 missing on machine      6 model or price   7 run store
  8 attempts lost         9 --require-pass         10 --max-cost      11 provider down
  12 folder not usable    130 interrupted";

#[derive(Subcommand)]
enum Verb {
    List(list::Arguments),
    Agents(agents::Arguments),
    Check(check::Arguments),
    New(Box<new::Arguments>),
    Import(import::Arguments),
    Factory(factory::Arguments),
    Suite(suite::Arguments),
    Init(init::Arguments),
    Index(index::Arguments),
    Regions(regions::Arguments),
    Mask(mask::Arguments),
    Sample(sample::Arguments),
    Retrieve(retrieve::Arguments),
    Env(env::Arguments),
    Image(image::Arguments),
    Gold(gold::Arguments),
    Run(Box<run::Arguments>),
    Serve(Box<serve::Arguments>),
    Mcp(Box<mcp::Arguments>),
    Resume(resume::Arguments),
    Runs(runs::Arguments),
    Cancel(slurm::CancelArguments),
    Score(score::Arguments),
    Scrub(scrub::Arguments),
    Report(report::Arguments),
    Status(status::Arguments),
    Show(show::Arguments),
    View(view::Arguments),
    Verify(verify::Arguments),
    Curtail(curtail::Arguments),
    Compare(compare::Arguments),
    Parity(parity::Arguments),
    Power(power::Arguments),
    Pick(pick::Arguments),
    Rescore(rescore::Arguments),
    Export(export::Arguments),
    Doctor(doctor::Arguments),
    Clean(clean::Arguments),
    Completions(completions::Arguments),
    #[command(hide = true)]
    Complete(complete::Arguments),
    Man(man::Arguments),
}

/// Parses the command line, runs the verb and renders its error, if any.
#[must_use]
pub fn main() -> ExitCode {
    autoexperiment_init::descriptors::keep_from_programs();
    let matches = command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    match dispatch(arguments.verb) {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(error) => {
            render(&error);
            ExitCode::from(ProgramExit::from(error.kind).code())
        }
    }
}

/// Exits with clap's error message. Adds a hint: the new name of a renamed verb or option, or, if a parser of this
/// program refused an option's value, the hint of the parser's [`Error`].
fn refuse(error: &clap::Error) -> ! {
    // Ignore a failure, because stderr may be closed.
    let _ = error.print();
    let ours = std::error::Error::source(error).and_then(|below| below.downcast_ref::<Error>());
    match moved::new_name(error) {
        Some(hint) => render_hint(Some(&hint)),
        None => render_hint(ours.and_then(Error::advice)),
    }
    std::process::exit(error.exit_code())
}

/// Lets every option accept `-1`, so that the error says that the value is too small, not that the option is unknown.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|argument| {
            let takes = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes)
        })
        .mut_subcommands(with_negative_numbers)
}

/// Builds the command line, whose help lists the verbs in groups.
fn command() -> clap::Command {
    let command = with_negative_numbers(Arguments::command());
    let verbs = verbs(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}Options:\n{{options}}{{after-help}}"
    ))
}

/// Lists the verbs in groups, each with its first sentence.
fn verbs(command: &clap::Command) -> String {
    let indent = 15;
    let mut text = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(text, "{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
            text += &shared::wrapped(&format!("  {name:<12}"), &about.unwrap_or_default(), indent);
        }
        text.push('\n');
    }
    text
}

fn dispatch(verb: Verb) -> Result<ProgramExit> {
    match verb {
        Verb::Run(arguments) => return shared::block_on(run::run(&arguments)),
        Verb::Serve(arguments) => return shared::block_on(serve::run(&arguments)),
        Verb::Mcp(arguments) => return shared::block_on(mcp::run(&arguments)),
        Verb::Resume(arguments) => return shared::block_on(resume::run(&arguments)),
        Verb::Runs(arguments) => runs::run(&arguments),
        Verb::Cancel(arguments) => slurm::cancel(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Agents(arguments) => agents::run(&arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::New(arguments) => shared::block_on(new::run(&arguments)),
        Verb::Import(arguments) => import::run(&arguments),
        Verb::Factory(arguments) => signals::block_on_work(factory::run(&arguments)),
        Verb::Suite(arguments) => suite::run(&arguments),
        Verb::Init(arguments) => init::run(&arguments),
        Verb::Index(arguments) => index::run(&arguments),
        Verb::Regions(arguments) => regions::run(&arguments),
        Verb::Mask(arguments) => mask::run(&arguments),
        Verb::Sample(arguments) => sample::run(&arguments),
        Verb::Retrieve(arguments) => retrieve::run(&arguments),
        Verb::Env(arguments) => shared::block_on(env::run(&arguments)),
        Verb::Image(arguments) => shared::block_on(image::run(&arguments)),
        Verb::Gold(arguments) => signals::block_on_work(gold::run(&arguments)),
        Verb::Score(arguments) => score::run(&arguments),
        Verb::Scrub(arguments) => scrub::run(&arguments),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Show(arguments) => show::run(&arguments),
        Verb::View(arguments) => shared::block_on(view::run(&arguments)),
        Verb::Verify(arguments) => signals::block_on_work(verify::run(&arguments)),
        Verb::Curtail(arguments) => signals::block_on_work(curtail::run(&arguments)),
        Verb::Compare(arguments) => compare::run(&arguments),
        Verb::Parity(arguments) => parity::run(&arguments),
        Verb::Power(arguments) => power::run(&arguments),
        Verb::Pick(arguments) => shared::block_on(pick::run(&arguments)),
        Verb::Rescore(arguments) => rescore::run(&arguments),
        Verb::Export(arguments) => export::run(&arguments),
        Verb::Completions(arguments) => completions::run(&arguments),
        Verb::Complete(arguments) => complete::run(&arguments),
        Verb::Man(arguments) => man::run(&arguments),
        Verb::Doctor(arguments) => shared::block_on(doctor::run(&arguments)),
        Verb::Clean(arguments) => shared::block_on(clean::run(&arguments)),
    }
    .map(|()| ProgramExit::Done)
}

/// Prints an error with its causes and its hint to stderr. The texts may quote a model or a file, so escape sequences
/// are removed, and further lines of a text are indented to distinguish them from this program's own lines.
fn render(error: &Error) {
    render_line(&error.to_string());
    for below in causes(error) {
        talk!("  cause: {}", crate::report::clean(&below.to_string()));
    }
    render_hint(error.advice());
}

/// Same as [`render`], for a message that ends a command without an [`Error`].
fn render_message(message: &str, hint: Option<&str>) {
    render_line(message);
    render_hint(hint);
}

fn render_line(message: &str) {
    let mut lines = message.lines().map(crate::report::clean);
    talk!("error: {}", lines.next().unwrap_or_default());
    for line in lines {
        talk!("    {line}");
    }
}

fn render_hint(hint: Option<&str>) {
    if let Some(hint) = hint {
        talk!("  hint: {}", crate::report::clean(hint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group_of_the_help_which_fits_a_terminal() {
        let command = Arguments::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut known: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(known, grouped);
        let verbs = verbs(&command);
        assert!(verbs.lines().all(|line| line.len() <= shared::WIDTH), "{verbs}");
    }
}
