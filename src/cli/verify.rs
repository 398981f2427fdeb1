//! `autoexperiment verify`: measures whether a paper's experiments notice missing or wrong code, and finds leaks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::environment::EnvOptions;
use super::progress::ProgressDisplay;
use super::run::{MachineArguments, default_jobs, parse_jobs};
use super::shared::{PaperOptions, SuiteOptions, print, print_json};
use super::verified::{as_json, console, evidence_score, score, stored};
use super::verify_items::{self, VerificationFaults};
use crate::audit::believed::believed;
use crate::audit::recheck::{RecheckResult, RecheckShare, recheck};
use crate::audit::verify::{Measures, PaperMeasurement, verify};
use crate::audit::{Bench, MatrixMethod};
use crate::error::{Error, Result};
use crate::masked::ready::ReadyPaper;
use crate::run::machine::Machine;
use crate::sample::{COMMAND, MASKED};
use crate::soundness::{ProofSetup, SoundnessScope};
use crate::suite::{LoadedPaper, PaperEvidence, Protocol, Suite};

/// Measure how far papers can be trusted
///
/// Masks each function alone; the experiments that enter it in a traced run must then fail. Runs mutants of each
/// function to see whether the experiments notice wrong code. Looks for leaks: how much of each function's body, and
/// which gold values, are elsewhere in what agents see.
///
/// Writes each paper's `dependencies.json` and `evidence.json`, and ends with exit code 3 if a function is not
/// essential or something leaks. If a paper's evidence was measured with its current repo, manifest, gold, env and
/// mutants, on any machine, it is not measured again, except with `--recheck` or `--fresh`. Results of earlier
/// measurements on this machine are reused while nothing has changed.
///
/// With `--family notebook` or `command`, runs `gold`, `noop` and `forger` on the tasks and writes nothing: gold must
/// pass in full, the others must pass nothing that we verify, and without any one of its blocks, a notebook task's gold
/// must fail some check. Then changes the constants in the gold cells of notebook tasks and in the right programs of
/// instructions, one at a time: each change must be noticed, or be listed in the manifest as harmless. Ends with exit
/// code 4 if gold fails, and 3 if something else is wrong.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment verify kmeanspp --survivors\n  autoexperiment verify --recheck 0.1\n  \
                        autoexperiment verify --family notebook ir.rankers"
)]
pub struct Arguments {
    #[command(flatten)]
    papers: PaperOptions,
    /// Kind of task: `masked`, `notebook` or `command`.
    #[arg(long, value_name = "NAME", default_value = MASKED, conflicts_with_all = ["mutants", "no_mutants", "survivors", "min_score", "every_pair", "recheck"])]
    family: String,
    /// Try only the solutions in DIR/TASK of notebook tasks: `wrong-*.py` must fail, `right-*.py` must pass. The first
    /// line of each, `# replaces: BLOCK ...`, names the blocks whose cells it replaces.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["mutants", "no_mutants", "survivors", "min_score", "every_pair", "recheck", "constants"])]
    solutions: Option<PathBuf>,
    /// Only change constants in gold cells or right programs, and list unnoticed changes.
    #[arg(long, conflicts_with_all = ["mutants", "no_mutants", "survivors", "min_score", "every_pair", "recheck"])]
    constants: bool,
    /// Number of mutants per function.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    mutants: u32,
    /// Skip the mutants.
    #[arg(long, conflicts_with_all = ["mutants", "survivors", "min_score", "recheck"])]
    no_mutants: bool,
    /// Show the mutants that no experiment notices, as diffs.
    #[arg(long)]
    survivors: bool,
    /// End with exit code 3 if a paper's mutation score is below SCORE.
    #[arg(long, value_name = "SCORE", value_parser = parse_share)]
    min_score: Option<f64>,
    /// Run every experiment for every masked function, without using a trace to find which ones can matter.
    #[arg(long = "no-trace", alias = "every-pair")]
    every_pair: bool,
    /// Measure a random share of the stored results again, and list what differs. Also measures again, for every
    /// function, how much of the body appears elsewhere. Writes nothing.
    #[arg(long, value_name = "SHARE", value_parser = parse_share, conflicts_with_all = ["mutants", "every_pair", "fresh", "survivors", "min_score"])]
    recheck: Option<f64>,
    /// Seed that selects the random part [default: from the clock].
    #[arg(long, requires = "recheck")]
    seed: Option<u64>,
    /// Number of experiments to run at once [default: one per core].
    #[arg(short, long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    /// Measure everything again, ignoring earlier measurements.
    #[arg(long)]
    fresh: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    machine: MachineArguments,
    #[command(flatten)]
    env: EnvOptions,
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    if arguments.family == MASKED && (arguments.solutions.is_some() || arguments.constants) {
        return Err(Error::usage("`--solutions` and `--constants` need `--family notebook`"));
    }
    if arguments.family != MASKED {
        return items(arguments).await;
    }
    let suite = if arguments.recheck.is_some() { arguments.suite.open()? } else { arguments.suite.open_own()? };
    let papers = suite.select(&arguments.papers.all())?;
    let machine = Arc::new(arguments.machine.open(&arguments.env.options(), suite.root()).await?);
    let seed = arguments.seed.unwrap_or_else(|| crate::files::now().as_second().unsigned_abs());
    if let Some(share) = arguments.recheck {
        talk!("measuring {share} of the stored results again, `--seed {seed}`");
    }
    let mut faults = VerificationFaults::default();
    let mut documents = Vec::new();
    for id in &papers {
        if let Some((loaded, evidence)) = arguments.believed(&suite, id) {
            print(&stored(&loaded, &evidence))?;
            talk!(
                "{id}: nothing has changed since it was verified (`--recheck 0.1` measures a tenth again, `--fresh` all)"
            );
            faults.add(id, &arguments.low(&loaded, evidence_score(&evidence)));
            continue;
        }
        let progress = ProgressDisplay::new(false);
        let begun = Instant::now();
        let bench = prepare(arguments, &suite, id, &machine, &progress).await;
        let errors = match (bench, arguments.recheck) {
            (Err(error), _) => Err(vec![error]),
            (Ok(bench), Some(fraction)) => {
                let bench = Arc::new(bench.without_memory());
                let again = recheck(&bench, RecheckShare { fraction, seed }, &progress).await;
                progress.finish();
                again.map(|again| print_recheck(id, again, begun, &mut documents))
            }
            (Ok(bench), None) => {
                let verified = verify(bench, arguments.measures(), &progress).await;
                progress.finish();
                match verified.and_then(|verified| {
                    // Load the paper again with its new dependency matrix.
                    LoadedPaper::load(&suite, id).map(|loaded| (loaded, verified)).map_err(|error| vec![error])
                }) {
                    Ok((loaded, verified)) => {
                        if arguments.json {
                            documents.push(as_json(&loaded, &verified));
                        } else {
                            print(&console(&loaded, &verified, arguments.survivors))?;
                        }
                        print_measurement(id, &verified, begun);
                        Ok(arguments.judge(&loaded, verified))
                    }
                    Err(errors) => Err(errors),
                }
            }
        };
        progress.finish();
        match errors {
            Ok(errors) => faults.add(id, &errors),
            Err(errors) => {
                let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
                documents.push(json!({ "paper": id, "errors": messages }));
                faults.add(id, &errors);
            }
        }
    }
    if arguments.json {
        print_json(&documents)?;
    }
    faults.end(papers.len(), "papers")
}

/// Verifies the tasks of `--family notebook` or `--family command`.
async fn items(arguments: &Arguments) -> Result<()> {
    let place = ProofSetup {
        suite: arguments.suite.folder()?,
        machine: arguments.machine.options(&arguments.env.options())?,
        env: arguments.env.kind,
        jobs: arguments.jobs.unwrap_or_else(default_jobs),
        fresh: arguments.fresh,
    };
    let scope = match &arguments.solutions {
        Some(folder) => SoundnessScope::Solutions(folder.clone()),
        None if arguments.constants => SoundnessScope::Constants,
        None => SoundnessScope::Everything,
    };
    if arguments.solutions.is_some() && arguments.family == COMMAND {
        return Err(Error::usage("`--solutions` is for notebook tasks"));
    }
    verify_items::run(&place, &arguments.family, &arguments.papers.all(), &scope, arguments.json).await
}

async fn prepare(
    arguments: &Arguments,
    suite: &Suite,
    id: &str,
    machine: &Arc<Machine>,
    progress: &ProgressDisplay,
) -> Result<Bench> {
    let loaded = LoadedPaper::load(suite, id)?;
    let ready = ReadyPaper::prepare(loaded, Protocol::Curtailed, machine, progress).await?;
    let jobs = arguments.jobs.unwrap_or_else(default_jobs);
    Bench::new(ready, Arc::clone(machine), jobs, arguments.fresh)
}

impl Arguments {
    /// Returns a paper with its stored evidence, if the evidence is up to date and contains all measurements that the
    /// options ask for. Errors in a paper are ignored here, because they are reported when the paper is measured.
    fn believed(&self, suite: &Suite, id: &str) -> Option<(LoadedPaper, PaperEvidence)> {
        if self.fresh || self.survivors || self.json || self.no_mutants || self.recheck.is_some() {
            return None;
        }
        let loaded = LoadedPaper::load(suite, id).ok()?;
        let evidence = believed(&loaded, self.measures()).ok()??;
        Some((loaded, evidence))
    }

    /// Returns an error if the mutation score is lower than `--min-score`.
    fn low(&self, loaded: &LoadedPaper, score: Option<f64>) -> Vec<Error> {
        let id = &loaded.paper.id;
        let low = self.min_score.zip(score).filter(|(least, score)| score < least);
        let error = low.map(|(least, score)| {
            Error::suite(format!("paper `{id}`: mutation score {score:.3} is less than {least}")).hint(
                "see what the experiments do not notice with `--survivors`; print more of what is computed, or mark \
                 mutants that change nothing as `equivalent`, with a reason",
            )
        });
        error.into_iter().collect()
    }

    fn measures(&self) -> Measures {
        Measures {
            effort: if self.every_pair { MatrixMethod::EveryPair } else { MatrixMethod::Traced },
            mutants: (!self.no_mutants).then_some(self.mutants as usize),
        }
    }

    /// Lists the faults that the measurement of a paper has found.
    fn judge(&self, loaded: &LoadedPaper, verified: PaperMeasurement) -> Vec<Error> {
        let paper = &loaded.paper;
        let mut errors = Vec::new();
        let score = score(&verified);
        for function in verified.matrix.inessential() {
            let at = &paper.units[function].at;
            errors.push(
                Error::suite(format!(
                    "paper `{}`: function `{at}` is not essential: no experiment changes without it",
                    paper.id
                ))
                .hint("leave it out of the manifest, or add an experiment that it matters to"),
            );
        }
        errors.extend(verified.threads.err().unwrap_or_default());
        errors.extend(verified.leaks.errors().into_iter().map(|error| {
            let message = format!("paper `{}`: {}", paper.id, error.message);
            Error { message, ..error }
        }));
        errors.extend(self.low(loaded, score));
        errors
    }
}

/// Prints the notes of a measurement, the number of trials (runs of an experiment on a changed repo), the time that the
/// measurement took, and the files that were written.
fn print_measurement(id: &str, verified: &PaperMeasurement, begun: Instant) {
    for note in &verified.matrix.notes {
        talk!("note: paper `{id}`, {}", crate::report::clean(note));
    }
    if let Ok(worst) = verified.threads {
        talk!("{id}: with two threads for linear algebra, no value differs from gold by more than {worst:.1e} of gold");
    }
    if verified.made == 0 && verified.written.is_empty() {
        talk!("{id}: nothing has changed since it was verified");
        return;
    }
    let wrote = if verified.written.is_empty() {
        "no file changed".to_owned()
    } else {
        format!("wrote {}", verified.written.join(", "))
    };
    let seconds = begun.elapsed().as_secs_f64();
    talk!("{id}: {} trials, {:.1} s of CPU time in {seconds:.1} s; {wrote}", verified.made, verified.cpu);
}

/// Prints how many results were measured again and how many of them differ from the stored ones. Adds these facts to
/// `documents`, and returns the differences.
fn print_recheck(id: &str, again: RecheckResult, begun: Instant, documents: &mut Vec<serde_json::Value>) -> Vec<Error> {
    let seconds = begun.elapsed().as_secs_f64();
    let RecheckResult { pairs, mutants, disagreements } = again;
    talk!(
        "{id}: measured {pairs} pairs of experiment and function and {mutants} mutants again in {seconds:.1} s, \
         {} differ from the stored results",
        disagreements.len()
    );
    let messages: Vec<String> = disagreements.iter().map(ToString::to_string).collect();
    documents.push(json!({ "paper": id, "pairs": pairs, "mutants": mutants, "disagreements": messages }));
    disagreements
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be a number from 0 to 1".to_owned()),
    }
}
