//! `autoexperiment rescore`: scores other benchmarks' stored results again.

use std::path::PathBuf;

use serde_json::{Map, json};

use super::shared::{print, print_json, table};
use crate::error::Result;
use crate::import::replies::compare_replies;
use crate::import::results::{self, Accepted, PassingRows, Questions};
use crate::report::clean;

/// Score other benchmarks' stored results again, by their published rules
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment rescore super-trajectories attempts.jsonl --json\n  autoexperiment rescore ml-bench rows.jsonl"
)]
pub struct Arguments {
    #[command(subcommand)]
    results: StoredResults,
}

#[derive(clap::Subcommand)]
enum StoredResults {
    SuperTrajectories(SuperTrajectories),
    MlBench(MlBench),
    #[command(name = "researchcodebench")]
    ResearchCodeBench(ResearchCodeBench),
    #[command(name = "researchcodebench-replies")]
    ResearchCodeBenchReplies(ResearchCodeBenchReplies),
    CoreBench(CoreBench),
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.results {
        StoredResults::SuperTrajectories(arguments) => super_trajectories(arguments),
        StoredResults::MlBench(arguments) => ml_bench(arguments),
        StoredResults::ResearchCodeBench(arguments) => research_code_bench(arguments),
        StoredResults::ResearchCodeBenchReplies(arguments) => stored_replies(arguments),
        StoredResults::CoreBench(arguments) => core_bench(arguments),
    }
}

/// Score SUPER's stored attempts again
///
/// Prints the means of the stored values, and the tasks with a stored value that differs from SUPER's published rule:
/// whether something was submitted, and its accuracy where gold is known.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  autoexperiment rescore super-trajectories react.jsonl swe-agent.jsonl --json")]
struct SuperTrajectories {
    /// Files of attempts, one JSON object per line.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Check ML-Bench's programs without running them
///
/// Checks that a program contains the values of the arguments asked for, and is Bash or Python as asked for: by the
/// published rules, and by strict ones that look for whole tokens in the code alone. Nothing is run, so the result is
/// not a pass rate.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment rescore ml-bench rows.jsonl\n  autoexperiment rescore ml-bench rows.jsonl --outputs replies.jsonl --json"
)]
struct MlBench {
    /// File of rows, one JSON object per line.
    rows: PathBuf,
    /// File of a model's replies to check, instead of the rows' gold programs.
    #[arg(long, value_name = "REPLIES")]
    outputs: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Compute ResearchCodeBench's rates from stored results
///
/// The line rate is the share of lines in snippets that pass, the task rate the share of snippets, both in percent.
/// With several completions per snippet, each rate is computed for the first completions, for the second ones and so
/// on, and the mean of these rates is printed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  autoexperiment rescore researchcodebench results.jsonl --json")]
struct ResearchCodeBench {
    /// File of results, one JSON object per line.
    results: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Compare the outcomes of ResearchCodeBench's stored replies with those of running them again
///
/// Prints the line rate and the task rate, by the stored outcomes and by the run's, and each reply whose two outcomes
/// differ, with the reason.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  autoexperiment rescore researchcodebench-replies replies/GPT_4_1.jsonl runs/again")]
struct ResearchCodeBenchReplies {
    /// File of replies that `import researchcodebench-replies` wrote.
    replies: PathBuf,
    /// Folder of a run with the agent `replies:FILE`.
    run: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Compute the intervals of CORE-Bench's gold results
///
/// A numeric answer is right if it is within the 95% prediction interval of the task's gold results, any other answer
/// if it equals them. If all gold results are the same, the interval is that one value.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  autoexperiment rescore core-bench core_train.json --json")]
struct CoreBench {
    /// File of tasks: one JSON list.
    tasks: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn super_trajectories(arguments: &SuperTrajectories) -> Result<()> {
    let rescored = results::rescore(&arguments.files)?;
    let checked = rescored.checked;
    talk!(
        "computed again: `submitted` of {} attempts, `accuracy` of {} with gold and of {} that submitted nothing, \
         `script` of {}",
        checked.submitted,
        checked.accuracy,
        checked.nothing,
        checked.script
    );
    for difference in &rescored.differences {
        talk!("{}", clean(difference));
    }
    if arguments.json {
        return print_json(&rescored);
    }
    let mean = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let header = ["attempts", "submitted", "accuracy", "landmarks", "script", "differ"];
    let row = vec![
        rescored.attempts.to_string(),
        mean(rescored.submitted),
        mean(rescored.accuracy),
        mean(rescored.landmarks),
        mean(rescored.script),
        rescored.differs.len().to_string(),
    ];
    print(&table(&header, &[0, 1, 2, 3, 4, 5], [row]))
}

fn ml_bench(arguments: &MlBench) -> Result<()> {
    let checks = results::check_rows(&arguments.rows, arguments.outputs.as_deref())?;
    if checks.unanswered > 0 {
        talk!("{} rows have no reply and count as failed", checks.unanswered);
    }
    if checks.unasked > 0 {
        talk!("{} replies belong to no row and are left out", checks.unasked);
    }
    if arguments.json {
        return print_json(&checks);
    }
    let row = |rules: &str, counts: PassingRows| {
        vec![
            rules.to_owned(),
            checks.rows.to_string(),
            counts.arguments.to_string(),
            counts.kind.to_string(),
            counts.both.to_string(),
        ]
    };
    let rows = [row("shipped", checks.shipped), row("strict", checks.strict)];
    print(&table(&["rules", "rows", "arguments", "kind", "both"], &[1, 2, 3, 4], rows))
}

fn research_code_bench(arguments: &ResearchCodeBench) -> Result<()> {
    let (rates, left_out) = results::rates(&arguments.results)?;
    if left_out > 0 {
        talk!("{left_out} snippets have a completion without a result and are left out");
    }
    if arguments.json {
        let models: Map<_, _> = rates.into_iter().map(|(model, rates)| (model, json!(rates))).collect();
        return print_json(&models);
    }
    let rate = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let rows = rates.into_iter().map(|(model, rates)| vec![model, rate(rates.line_rate), rate(rates.task_rate)]);
    print(&table(&["model", "lines %", "tasks %"], &[1, 2], rows))
}

fn stored_replies(arguments: &ResearchCodeBenchReplies) -> Result<()> {
    let compared = compare_replies(&arguments.replies, &arguments.run)?;
    if compared.left_out > 0 {
        talk!("{} attempts are left out: several units were masked, or an outcome is unknown", compared.left_out);
    }
    if arguments.json {
        return print_json(&compared);
    }
    let rate = |rates: Option<[f64; 2]>, place: usize| {
        rates.map_or_else(|| "-".to_owned(), |rates| format!("{:.2}", rates[place]))
    };
    let row = |name: &str, place: usize| {
        vec![
            name.to_owned(),
            compared.compared.to_string(),
            rate(compared.line_rates, place),
            rate(compared.task_rates, place),
        ]
    };
    let rows = [row("as stored", 0), row("run again", 1)];
    print(&table(&["outcomes", "replies", "lines %", "tasks %"], &[1, 2, 3], rows))?;
    let differences = compared.differences.iter().map(|one| {
        let here = if one.passes_here { "passes" } else { "fails" };
        let reason = one.reason.as_deref().unwrap_or_default();
        vec![clean(&one.paper), clean(&one.unit), one.attempt.to_string(), here.to_owned(), clean(reason)]
    });
    if !compared.differences.is_empty() {
        print("\n")?;
        print(&table(&["paper", "unit", "attempt", "here", "reason"], &[2], differences))?;
    }
    Ok(())
}

fn core_bench(arguments: &CoreBench) -> Result<()> {
    let tasks = results::accepted(&arguments.tasks)?;
    if arguments.json {
        let task = |(id, questions): (String, Questions)| {
            let questions: Map<_, _> = questions.into_iter().map(|(name, accepted)| (name, json!(accepted))).collect();
            (id, questions.into())
        };
        return print_json(&tasks.into_iter().map(task).collect::<Map<_, _>>());
    }
    let row = |task: &str, question: String, accepted: Accepted| {
        let accepted = match accepted {
            Accepted::Within(interval) => format!("{:.6} to {:.6}", interval.low, interval.high),
            Accepted::Equal(value) => value.to_string(),
        };
        vec![task.to_owned(), accepted, question]
    };
    let rows = tasks.into_iter().flat_map(|(task, questions)| {
        questions.into_iter().map(move |(question, accepted)| row(&task, question, accepted)).collect::<Vec<_>>()
    });
    print(&table(&["task", "accepted", "question"], &[], rows))
}
