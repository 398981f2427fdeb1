//! The dependency matrix: the effect of masking a single function on each experiment.
//!
//! Trying every pair would run every experiment as often as there are functions. Instead each experiment is traced
//! once:
//!
//! - a function that the experiment does not enter cannot affect it. (Code that reads its own source, or compiles it to
//!   something else, as numba does, can break this rule; [`MatrixMethod::EveryPair`] does not rely on it.)
//! - for a function that it enters, a fork of the traced run shows whether an error there would end the process. We
//!   trust this if the whole experiment is that one process ([`believes`]), and we test it: each function and each
//!   experiment has at least one real masked run. If one contradicts the trace, all pairs of that experiment run.
//! - in every other case we make the masked run. That includes regions (maskable parts of the code that are not whole
//!   functions), because not every call of the surrounding function reaches the region.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::baseline::{agrees, traced, untraced};
use super::trace::{Trace, TracedFunction};
use super::trial::{Bench, ExperimentOutcome, TrialJob};
use crate::code::Function;
use crate::error::{Error, Result};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::suite::{Dependencies, LoadedPaper, Piece};

/// The effect of masking a function on an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The result stays the same.
    None,
    /// The result changes.
    OtherValue,
    /// The experiment has no result.
    Error,
}

/// How the matrix is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixMethod {
    /// Traces, plus masked runs in case of doubt.
    Traced,
    /// A masked run of every experiment for every function.
    EveryPair,
}

/// A measured dependency matrix.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The effect of masking each function, by experiment and then by function, both in the manifest's order.
    pub effects: Vec<Vec<Effect>>,
    /// Notes on the measurement for the user, one sentence each.
    pub notes: Vec<String>,
    /// Number of pairs of an experiment and a masked function that were run, now or in an earlier measurement.
    pub runs: usize,
}

impl Matrix {
    /// Measures the dependency matrix of the paper of `bench`.
    ///
    /// # Errors
    /// One error for each experiment that does not give its gold, as for [`traced`]; or the error of a masked run.
    pub async fn measure(
        bench: &Arc<Bench>,
        effort: MatrixMethod,
        observer: &dyn Observer,
    ) -> Result<Self, Vec<Error>> {
        let mut plan = match effort {
            MatrixMethod::EveryPair => {
                untraced(bench).await?;
                MatrixPlan::every_pair(bench.loaded())
            }
            MatrixMethod::Traced => {
                let functions = 0..bench.loaded().paper.functions.len();
                let ask: Vec<TracedFunction> =
                    functions.filter_map(|function| place(bench.loaded(), function)).collect();
                MatrixPlan::by_traces(bench.loaded(), &traced(bench, &ask, observer).await?)
            }
        };
        let mut effects = plan.predicted.clone();
        let first = plan.pairs.clone();
        let contradicted = plan.make(bench, &first, &mut effects, observer).await.map_err(|error| vec![error])?;
        let rest: BTreeSet<ExperimentAndFunction> =
            plan.believed.iter().filter(|(experiment, _)| contradicted.contains(experiment)).copied().collect();
        for &experiment in &contradicted {
            let id = &bench.loaded().paper.experiments[experiment].id;
            plan.notes.push(format!(
                "experiment `{id}`: a masked run contradicted its trace, so every function that it enters was \
                 masked and run"
            ));
        }
        let rest: BTreeSet<ExperimentAndFunction> = rest.difference(&first).copied().collect();
        plan.make(bench, &rest, &mut effects, observer).await.map_err(|error| vec![error])?;
        Ok(Self { effects, notes: plan.notes, runs: first.len() + rest.len() })
    }

    /// Returns the matrix in the form that `dependencies.json` stores. `repo` is the digest of the repo.
    #[must_use]
    pub fn dependencies(&self, loaded: &LoadedPaper, repo: &str) -> Dependencies {
        let needs = loaded.paper.experiments.iter().zip(&self.effects).map(|(experiment, effects)| {
            let needed = loaded.paper.units.iter().zip(effects).filter(|(_, effect)| **effect != Effect::None);
            (experiment.id.clone(), needed.map(|(function, _)| function.at.clone()).collect())
        });
        Dependencies { format: 1, repo: repo.to_owned(), needs: needs.collect(), gone: Vec::new() }
    }

    /// Returns the functions, as indices in the manifest, whose masking leaves the result of every experiment
    /// unchanged.
    #[must_use]
    pub fn inessential(&self) -> Vec<usize> {
        self.functions(|effects| effects.iter().all(|&effect| effect == Effect::None))
    }

    /// Returns the functions, as indices in the manifest, whose masking changes a result but makes no experiment fail:
    /// other code handles the error that the masked function raises.
    #[must_use]
    pub fn swallowed(&self) -> Vec<usize> {
        self.functions(|effects| effects.contains(&Effect::OtherValue) && !effects.contains(&Effect::Error))
    }

    fn functions(&self, is_meant: impl Fn(&[Effect]) -> bool) -> Vec<usize> {
        let count = self.effects.first().map_or(0, Vec::len);
        let column = |function: usize| self.effects.iter().map(|effects| effects[function]).collect::<Vec<_>>();
        (0..count).filter(|&function| is_meant(&column(function))).collect()
    }
}

/// Indices of an experiment and a function in the manifest.
type ExperimentAndFunction = (usize, usize);

/// Returns the function that a trace records for a maskable part of the code: the part itself or, if the part is a
/// group of statements, the function around it. Returns `None` for statements outside of functions. `unit` is the
/// part's index in the manifest.
fn place(loaded: &LoadedPaper, unit: usize) -> Option<TracedFunction> {
    loaded.function_of(unit).map(|index| TracedFunction::locate(loaded.source(unit), index))
}

/// Returns the files for a trial with one function masked.
pub(super) fn masked(loaded: &LoadedPaper, function: usize) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    Ok(loaded.masked(&[function])?.into_iter().map(|file| (file.path, file.bytes)).collect())
}

/// Returns the effect of masking, from the outcome of the masked run.
pub(super) fn effect(bench: &Bench, experiment: usize, outcome: &ExperimentOutcome) -> Effect {
    match outcome.result {
        Err(_) => Effect::Error,
        Ok(_) if agrees(bench, experiment, outcome) => Effect::None,
        Ok(_) => Effect::OtherValue,
    }
}

/// Effects known before any masked run, and the pairs to run.
struct MatrixPlan {
    predicted: Vec<Vec<Effect>>,
    /// Pairs of an experiment and a function for which a trace predicts that masking the function makes the experiment
    /// fail.
    believed: BTreeSet<ExperimentAndFunction>,
    /// Pairs to run.
    pairs: BTreeSet<ExperimentAndFunction>,
    notes: Vec<String>,
}

impl MatrixPlan {
    fn every_pair(loaded: &LoadedPaper) -> Self {
        let (experiments, functions) = (loaded.paper.experiments.len(), loaded.paper.units.len());
        let pairs = (0..experiments).flat_map(|experiment| (0..functions).map(move |function| (experiment, function)));
        Self {
            predicted: vec![vec![Effect::None; functions]; experiments],
            believed: BTreeSet::new(),
            pairs: pairs.collect(),
            notes: Vec::new(),
        }
    }

    fn by_traces(loaded: &LoadedPaper, traces: &[Trace]) -> Self {
        let mut plan = Self { pairs: BTreeSet::new(), ..Self::every_pair(loaded) };
        for (number, (experiment, trace)) in loaded.paper.experiments.iter().zip(traces).enumerate() {
            if let Some(why) = &trace.blind {
                plan.notes.push(format!(
                    "experiment `{}`: which functions it enters cannot be traced ({why}), so every function was \
                     masked and run",
                    experiment.id
                ));
            }
            for function in 0..loaded.paper.units.len() {
                let module = loaded.source(function);
                let index = loaded.function_of(function);
                if index.is_some_and(|index| !trace.may_call(module, index)) {
                    continue;
                }
                // Trust the trace for whole functions only, not for regions (other maskable parts of the code). Not
                // every call of a function reaches a region in it, and the tracer sees no code outside of functions.
                let ends = matches!(loaded.piece(function), Piece::Function(_))
                    && place(loaded, function).is_some_and(|place| trace.fails.contains(&place));
                let plain = |it: &Function| !it.is_generator && !it.is_async;
                let foretold = ends && index.is_some_and(|index| plain(&module.functions()[index]));
                if foretold && believes(experiment.command.as_str(), trace) {
                    plan.predicted[number][function] = Effect::Error;
                    plan.believed.insert((number, function));
                } else {
                    plan.pairs.insert((number, function));
                }
            }
        }
        plan.test_beliefs(&seconds(loaded));
        plan
    }

    /// Adds some of the pairs in `believed` to the pairs to run, to test what the traces predict. Then each experiment
    /// and each function in `believed` is in at least one pair to run. For a function, prefers an experiment that no
    /// pair tests yet, then the shortest one.
    fn test_beliefs(&mut self, seconds: &[f64]) {
        let mut by_function: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(experiment, function) in &self.believed {
            by_function.entry(function).or_default().push(experiment);
        }
        for (function, mut experiments) in by_function {
            if self.pairs.iter().any(|&(_, other)| other == function) {
                continue;
            }
            let tested: BTreeSet<usize> = self.pairs.iter().map(|&(experiment, _)| experiment).collect();
            experiments.sort_by(|one, other| {
                (tested.contains(one), seconds[*one])
                    .partial_cmp(&(tested.contains(other), seconds[*other]))
                    .unwrap_or(one.cmp(other))
            });
            self.pairs.extend(experiments.first().map(|&experiment| (experiment, function)));
        }
        for &(experiment, function) in &self.believed {
            if !self.pairs.iter().any(|&(other, _)| other == experiment) {
                self.pairs.insert((experiment, function));
            }
        }
    }

    /// Runs the experiment of each pair with the pair's function masked, and records the effects. Returns the
    /// experiments for which a masked run contradicts the trace.
    async fn make(
        &self,
        bench: &Arc<Bench>,
        pairs: &BTreeSet<ExperimentAndFunction>,
        effects: &mut [Vec<Effect>],
        observer: &dyn Observer,
    ) -> Result<BTreeSet<usize>> {
        let mut jobs = Vec::with_capacity(pairs.len());
        for &(experiment, function) in pairs {
            let files = masked(bench.loaded(), function)?;
            jobs.push(TrialJob { files, experiment: bench.ready().experiments[experiment].clone() });
        }
        let (paper, total) = (&bench.loaded().paper.id, pairs.len());
        let stage = Stage::new("masked runs of", paper);
        let stage = |done: usize| observer.on(RunEvent::Stage(stage.counted(done, total, "pairs")));
        let outcomes = bench.run_all(jobs, stage).await?;
        let mut contradicted = BTreeSet::new();
        for (&(experiment, function), outcome) in pairs.iter().zip(&outcomes) {
            let effect = effect(bench, experiment, outcome);
            if self.believed.contains(&(experiment, function)) && effect != Effect::Error {
                contradicted.insert(experiment);
            }
            effects[experiment][function] = effect;
        }
        Ok(contradicted)
    }
}

/// Whether an error that ends the traced process also ends the experiment: there was only one process, the shell does
/// nothing after it, and the trace is complete.
fn believes(command: &str, trace: &Trace) -> bool {
    trace.blind.is_none() && trace.processes == 1 && is_plain(command)
}

/// Whether a command is one run of Python, perhaps after commands that must succeed: `cd x && python -m y`.
fn is_plain(command: &str) -> bool {
    let chained: Vec<&str> = command.trim().split("&&").collect();
    if chained.iter().any(|part| part.contains([';', '|', '&', '`', '\n', '(', '!'])) {
        return false;
    }
    let Some(last) = chained.last() else { return false };
    let program = last.split_whitespace().find(|word| !word.contains('='));
    program.and_then(|program| program.rsplit('/').next()).is_some_and(|name| name.starts_with("python"))
}

/// Returns the seconds that each experiment took when gold was recorded.
fn seconds(loaded: &LoadedPaper) -> Vec<f64> {
    let gold = crate::masked::gold::gold_of(loaded, crate::suite::Protocol::Curtailed).ok();
    let of = |id: &String| gold?.get(id)?.seconds.iter().copied().reduce(f64::min);
    loaded.paper.experiments.iter().map(|experiment| of(&experiment.id).unwrap_or(f64::INFINITY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_plain_if_its_shell_does_nothing_but_start_one_program() {
        for command in ["python -m pkg norm", "cd sub && X=1 python3.11 run.py > out", "/env/bin/python x.py"] {
            assert!(is_plain(command), "{command}");
        }
        for command in [
            "python a.py; cat out.json",
            "python a.py || true",
            "python a.py | tee log",
            "python a.py & wait",
            "echo $(python a.py)",
            "! python a.py",
            "bash run.sh",
            "python a.py\ntrue",
            "python a.py && cat out.json",
        ] {
            assert!(!is_plain(command), "{command}");
        }
    }

    #[test]
    fn each_function_and_experiment_for_which_traces_predict_an_effect_is_tested_in_some_pair() {
        let believed: BTreeSet<ExperimentAndFunction> = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)].into();
        let mut plan = MatrixPlan { predicted: Vec::new(), believed, pairs: [(3, 3)].into(), notes: Vec::new() };
        plan.test_beliefs(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(plan.pairs, [(0, 0), (0, 2), (1, 1), (2, 0), (3, 3)].into());
    }
}
