//! `autoexperiment show`: shows one attempt, from its first message to its verdict.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::naming::run_folder;
use super::shared::{clean_lines, print, print_bytes};
use crate::agent::Trajectory;
use crate::error::{Error, Result};
use crate::report::{Colour, clean, safe_json, trajectory_text, verdict_lines};
use crate::run::reading::{ReadableRun, read};
use crate::run::{AttemptRecord, StoredTrajectory, counting};

/// Show one attempt: its messages, tool calls and their results, and the verdict
///
/// On a terminal, uses colours (unless NO_COLOR is set) and a pager ($PAGER, otherwise `less`).
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment show sweep kmeanspp_0,3\n  autoexperiment show sweep kmeanspp_0,3.2 --agent react"
)]
pub struct Arguments {
    /// A run: its folder, or its name under --runs; `latest` is the newest.
    run: String,
    /// Sample, such as `kmeanspp_0,3`, or one of its attempts, such as `kmeanspp_0,3.2` [default attempt: the first
    /// one].
    sample: String,
    /// Agent, if several attempted the sample.
    #[arg(long)]
    agent: Option<String>,
    /// Print the stored events, one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Do not use a pager.
    #[arg(long)]
    no_pager: bool,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let reading = read::<AttemptRecord>(&run_folder(&arguments.run, &arguments.runs)?)?;
    for note in &reading.notes {
        talk!("{}", clean(note));
    }
    let (sample, attempt) = match arguments.sample.rsplit_once('.').map(|(sample, attempt)| (sample, attempt.parse())) {
        Some((sample, Ok(attempt))) => (sample, Some(attempt)),
        _ => (arguments.sample.as_str(), None),
    };
    let mut found = reading.store.trajectories()?;
    found.retain(|stored| {
        stored.sample == sample
            && attempt.is_none_or(|attempt: u32| attempt == stored.attempt)
            && arguments.agent.as_ref().is_none_or(|wanted| *wanted == stored.agent)
    });
    found.sort_by(|a, b| (&a.agent, a.attempt).cmp(&(&b.agent, b.attempt)));
    let Some(first) = found.first() else {
        return Err(Error::usage(format!("run `{}` has no trajectory of `{}`", arguments.run, arguments.sample))
            .hint("`autoexperiment report attempts RUN` lists the attempts"));
    };
    if let Some(other) = found.iter().find(|other| other.agent != first.agent) {
        return Err(Error::usage(format!("`{}` and `{}` both attempted `{sample}`", first.agent, other.agent))
            .hint("choose one with `--agent`"));
    }
    if found.len() > 1 {
        let numbers: Vec<_> = found.iter().map(|stored| stored.attempt.to_string()).collect();
        talk!("attempts at `{sample}`: {}; this is {}", numbers.join(", "), first.attempt);
    }
    if arguments.json {
        let text = std::fs::read_to_string(&first.path)
            .map_err(|error| Error::store("failed to read trajectory").at(&first.path, None).because(error))?;
        return print(&safe_json(&text));
    }
    let terminal = std::io::stdout().is_terminal();
    let colours = terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let lines = Trajectory::read(&first.path)?;
    let mut text = trajectory_text(&lines, if colours { Colour::On } else { Colour::Off });
    let is_it = |record: &AttemptRecord| {
        (record.agent == first.agent) && record.sample == sample && record.attempt == first.attempt
    };
    let counting = counting(&reading.records);
    let mut records = reading.records.iter().zip(counting);
    match records.find(|(record, counts)| *counts && is_it(record)) {
        Some((record, _)) => text += &clean_lines(&(verdict_lines(record).join("\n") + "\n")),
        None => text += "no verdict is stored: the attempt is still running, or was cut off\n",
    }
    if let Some(line) = costs(&reading, first)? {
        text += &line;
    }
    // The text is escaped already; its only escape sequences are our own colours.
    if terminal && !arguments.no_pager { page(&text) } else { print_bytes(text.as_bytes()) }
}

/// Describes what all tries of an attempt cost, according to the ledger and according to the records of the tries;
/// `None` if nothing was paid.
fn costs(reading: &ReadableRun<AttemptRecord>, stored: &StoredTrajectory) -> Result<Option<String>> {
    let Some(books) = reading.store.books()? else { return Ok(None) };
    let is_it = |agent: &str, sample: &str, attempt: Option<u32>| {
        (agent, sample, attempt) == (stored.agent.as_str(), stored.sample.as_str(), Some(stored.attempt))
    };
    let payers = books.payers.iter().filter(|(payer, _)| is_it(&payer.agent, &payer.sample, payer.attempt));
    let (settled, open) = payers.fold((0.0, 0.0), |sum, (_, paid)| (sum.0 + paid.settled, sum.1 + paid.open));
    if settled + open <= 0.0 {
        return Ok(None);
    }
    let records = reading.records.iter().filter(|it| is_it(&it.agent, &it.sample, Some(it.attempt)));
    let (count, recorded) = records.fold((0, 0.0), |sum, record| (sum.0 + 1, sum.1 + record.cost));
    let mut line = format!("cost in the ledger: ${settled:.4}; in the records of its {count} tries: ${recorded:.4}");
    if open > 0.0 {
        let _ = write!(line, "; at most ${open:.4} for calls under way or of unknown cost");
    }
    Ok(Some(line + "\n"))
}

/// Shows a text in the user's pager; prints it if the pager does not work.
fn page(text: &str) -> Result<()> {
    let pager =
        std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty()).unwrap_or_else(|| "less".to_owned());
    let mut command = Command::new("sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Keep colours, and exit at once if the text fits on the screen.
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return print_bytes(text.as_bytes()) };
    if let Some(mut stdin) = child.stdin.take() {
        // Leaving the pager early is not an error.
        let _ = stdin.write_all(text.as_bytes());
    }
    match child.wait() {
        // 127 is the shell's exit code for a missing command.
        Ok(status) if status.code() != Some(127) => Ok(()),
        _ => print_bytes(text.as_bytes()),
    }
}
