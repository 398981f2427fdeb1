//! Checks that the unmasked repo reproduces its gold, and finds the functions that each experiment enters, with one
//! traced run per experiment.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::trace::{Trace, TracedFunction, trace};
use super::trial::{Bench, ExperimentOutcome, Trial, TrialJob};
use crate::agent::TaskExperiment;
use crate::error::{Error, FailureKind, Result};
use crate::masked::gold::{VARIES, differences, gold_of};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::sandbox::Exit;
use crate::score::score_experiment;
use crate::suite::Protocol;

/// Traces all experiments in parallel and returns the traces in the manifest's order. If an experiment gives its gold
/// only without the tracer, its trace says that functions may be missing ([`Trace::blind`]).
///
/// # Errors
/// One error of kind `Baseline` for each experiment that does not give its gold. The error names the paper and the
/// experiment, and says what the user can do.
pub async fn traced(
    bench: &Arc<Bench>,
    ask: &[TracedFunction],
    observer: &dyn Observer,
) -> Result<Vec<Trace>, Vec<Error>> {
    gold_of(bench.loaded(), Protocol::Curtailed).map_err(|error| vec![error])?;
    let mut running = JoinSet::new();
    let ask: Arc<Vec<TracedFunction>> = Arc::new(ask.to_vec());
    let total = bench.ready().experiments.len();
    for experiment in 0..total {
        let (bench, ask) = (Arc::clone(bench), Arc::clone(&ask));
        running.spawn(async move { (experiment, one(&bench, experiment, &ask).await) });
    }
    let mut traces: Vec<Option<Trace>> = vec![None; total];
    let mut errors = Vec::new();
    let mut done = 0;
    let stage = |done: usize| {
        let paper = &bench.loaded().paper.id;
        let stage = Stage::new("tracing the experiments of", paper);
        observer.on(RunEvent::Stage(stage.counted(done, total, "experiments")));
    };
    stage(done);
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((experiment, Ok(trace))) => traces[experiment] = Some(trace),
            Ok((experiment, Err(error))) => errors.push((experiment, error)),
            Err(error) => return Err(vec![Error::internal("a traced run was aborted").because(error)]),
        }
        done += 1;
        stage(done);
    }
    if errors.is_empty() {
        return Ok(traces.into_iter().flatten().collect());
    }
    errors.sort_by_key(|(experiment, _)| *experiment);
    Err(errors.into_iter().map(|(_, error)| error).collect())
}

/// Runs every experiment of the unmasked repo untraced.
///
/// # Errors
/// Returns the errors of [`traced`].
pub(super) async fn untraced(bench: &Arc<Bench>) -> Result<(), Vec<Error>> {
    gold_of(bench.loaded(), Protocol::Curtailed).map_err(|error| vec![error])?;
    let mut errors = Vec::new();
    for (experiment, task) in bench.ready().experiments.iter().enumerate() {
        let ended = match bench.run(&Trial { files: &[], experiment: task }).await {
            Ok(outcome) if agrees(bench, experiment, &outcome) => Ok(()),
            Ok(outcome) => {
                // This run does not reproduce gold. If it gave a result, and both new runs of `confirm` do reproduce
                // gold, the result varies by chance. This is an error unless the experiment is stochastic.
                let gave =
                    outcome.result.is_ok() && !bench.loaded().paper.experiments[experiment].tolerance.is_stochastic();
                confirm(bench, experiment, task)
                    .await
                    .and_then(|()| if gave { Err(rare(bench, experiment)) } else { Ok(()) })
            }
            Err(error) => Err(error),
        };
        errors.extend(ended.err());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Runs every experiment of the unmasked repo with two threads for linear algebra instead of one, because the order of
/// a sum depends on the number of threads. Returns the largest relative difference of any value from gold.
///
/// # Errors
/// One error for each experiment that does not give its gold with two threads.
pub async fn two_threads(bench: &Arc<Bench>) -> Result<f64, Vec<Error>> {
    let gold = gold_of(bench.loaded(), Protocol::Curtailed).map_err(|error| vec![error])?;
    let tasks: Vec<TaskExperiment> = bench
        .ready()
        .experiments
        .iter()
        .map(|task| TaskExperiment { command: format!("{TWO_THREADS}; {}", task.command), ..task.clone() })
        .collect();
    let jobs: Vec<TrialJob> = tasks.into_iter().map(|experiment| TrialJob { files: Vec::new(), experiment }).collect();
    let outcomes = bench.run_all(jobs, |_| {}).await.map_err(|error| vec![error])?;
    let (mut worst, mut errors): (f64, Vec<Error>) = (0.0, Vec::new());
    for (outcome, experiment) in outcomes.iter().zip(&bench.loaded().paper.experiments) {
        let Some(gold) = gold.get(&experiment.id) else { continue };
        if !experiment.tolerance.is_stochastic() {
            let tolerance = experiment.bounds(Some(gold));
            let verdict = score_experiment(&experiment.id, &gold.result, outcome.result.as_ref().ok(), &tolerance);
            worst = verdict.values.iter().filter_map(|value| value.error).fold(worst, f64::max);
        }
        if !outcome.agrees(experiment, gold) {
            let paper = &bench.loaded().paper.id;
            let what = "its result depends on the number of threads for linear algebra";
            errors.push(
                Error::new(FailureKind::Baseline, format!("paper `{paper}`, experiment `{}`: {what}", experiment.id))
                    .hint(format!(
                        "compare its results with and without `{TWO_THREADS}` before the command, and do not print \
                         values that depend on rounding"
                    )),
            );
        }
    }
    if errors.is_empty() { Ok(worst) } else { Err(errors) }
}

/// Shell code that makes libraries for linear algebra use two threads: they read these variables when they start.
const TWO_THREADS: &str = "export OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 MKL_NUM_THREADS=2";

/// Whether an outcome's result is the experiment's gold, within its tolerance. `experiment` is an index in the
/// manifest.
#[must_use]
pub fn agrees(bench: &Bench, experiment: usize, outcome: &ExperimentOutcome) -> bool {
    let experiment = &bench.loaded().paper.experiments[experiment];
    gold_of(bench.loaded(), Protocol::Curtailed)
        .ok()
        .and_then(|gold| gold.get(&experiment.id))
        .is_some_and(|gold| outcome.agrees(experiment, gold))
}

/// Returns the error for an experiment that gave its gold in one run but not in another.
fn rare(bench: &Bench, experiment: usize) -> Error {
    let paper = &bench.loaded().paper;
    let id = &paper.experiments[experiment].id;
    let what = "its result varies, if rarely: one run of several did not reproduce its gold result";
    Error::new(FailureKind::Baseline, format!("paper `{}`, experiment `{id}`: {what}", paper.id)).hint(VARIES)
}

async fn one(bench: &Bench, experiment: usize, ask: &[TracedFunction]) -> Result<Trace> {
    let task = &bench.ready().experiments[experiment];
    let seen = trace(bench, task, ask).await?;
    if bench.loaded().paper.experiments[experiment].tolerance.is_stochastic() {
        // The traced run alone is not enough to compare a stochastic experiment with gold. `confirm` makes further
        // runs.
        return confirm(bench, experiment, task).await.map(|()| seen);
    }
    if agrees(bench, experiment, &seen.outcome) {
        return Ok(seen);
    }
    // The tracer forks the process to test the effect of an error in a function. A fork may have changed something that
    // it shares with the original process, such as a file, and thus the result. Trace again without forks.
    let mut seen = trace(bench, task, &[]).await?;
    if agrees(bench, experiment, &seen.outcome) {
        return Ok(seen);
    }
    confirm(bench, experiment, task).await?;
    seen.blind = Some("the tracer changes its result".to_owned());
    Ok(seen)
}

/// Checks that an experiment with a doubtful result gives its gold in two new runs.
async fn confirm(bench: &Bench, experiment: usize, task: &TaskExperiment) -> Result<()> {
    let trial = Trial { files: &[], experiment: task };
    let first = bench.run_again(&trial).await?;
    let failed = first.result.is_err();
    let second = if failed { None } else { Some(bench.run_again(&trial).await?) };
    let known = &bench.loaded().paper.experiments[experiment];
    let paper = &bench.loaded().paper.id;
    let wrong =
        |what: String| Error::new(FailureKind::Baseline, format!("paper `{paper}`, experiment `{}`: {what}", known.id));
    if let (Ok(one), Some(Ok(other))) = (&first.result, second.as_ref().map(|second| &second.result)) {
        let close = known.declared_tolerance().bounds_between_runs();
        let verdict = score_experiment(&known.id, one, Some(other), &close);
        if let Some(odd) = verdict.values.iter().find(|value| !value.pass) {
            let got = odd.got.as_ref().map_or("nothing".to_owned(), ToString::to_string);
            return Err(wrong(format!("its result varies: `{}` was {}, and {got} when run again", odd.path, odd.gold))
                .hint("fix its seeds, or its number of threads, and record gold again with `autoexperiment gold`"));
        }
        if agrees(bench, experiment, &first) {
            return Ok(());
        }
        if differences(bench.ready()).is_empty() {
            return Err(wrong("its result varies: two runs agree with each other, but not with its gold".to_owned())
                .hint(VARIES));
        }
        return Err(wrong("it does not reproduce its gold result here".to_owned())
            .hint(format!("record gold for this repo and machine with `autoexperiment gold {paper}`")));
    }
    let outcome = second.as_ref().filter(|second| second.result.is_err()).unwrap_or(&first);
    let reason = outcome.result.as_ref().err().cloned().unwrap_or_default();
    let by_hand = format!("run `{}` by hand, in a copy of `{}`", task.command, bench.loaded().repo_dir.display());
    let last = outcome.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let import = ["ModuleNotFoundError", "ImportError", "SyntaxError", "IndentationError"];
    Err(match outcome.exit {
        Exit::TimedOut => wrong(reason).hint(format!(
            "{by_hand}; shorten it by its curtailed parameters, or raise its `time_limit` in the manifest"
        )),
        Exit::Code(0) => wrong(reason).hint(format!("{by_hand}, and check its `result` in the manifest")),
        _ if import.iter().any(|kind| last.starts_with(kind)) => wrong(format!("the repo's imports fail: {last}"))
            .hint(format!(
                "correct the repo, or add what is missing to `{}` and lock it with `autoexperiment env lock`",
                bench.loaded().env_dir.join("environment.yml").display()
            )),
        _ if outcome.stderr.is_empty() => wrong(reason).hint(by_hand),
        _ => wrong(format!("{reason}\n{}", outcome.stderr)).hint(by_hand),
    })
}
