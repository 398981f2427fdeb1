//! Repeats a random part of the measurements by `verify`, to check that the stored files are still true.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::baseline::untraced;
use super::leaks;
use super::matrix::{Effect, effect, masked};
use super::mutation;
use super::trial::{Bench, TrialJob};
use crate::error::{Error, FailureKind, Result};
use crate::run::event::{Observer, RunEvent, Stage};
use crate::suite::PaperEvidence;

/// Which part of the stored measurements to measure again.
#[derive(Debug, Clone, Copy)]
pub struct RecheckShare {
    /// Share of all pairs of an experiment and a function, and of all mutants, from 0 to 1; at least one of each.
    pub fraction: f64,
    /// Seed that selects the pairs and mutants.
    pub seed: u64,
}

/// The result of measuring a part of a paper's evidence again and comparing it with the stored files.
#[derive(Debug)]
pub struct RecheckResult {
    /// Number of pairs of an experiment and a function that were measured again.
    pub pairs: usize,
    /// Number of mutants that were run again.
    pub mutants: usize,
    /// Differences from the stored files.
    pub disagreements: Vec<Error>,
}

/// Measures a random part of the pairs of an experiment and a function again, and a random part of the mutants. Also
/// determines again for every function how much of its body appears elsewhere. Compares the results with the stored
/// files. The bench should [use no cache](Bench::without_memory), because cached results would not be measured again.
///
/// # Errors
/// One error for each experiment that does not give its gold; kind `Suite` if nothing is stored or the stored files
/// belong to another repo; or the error of a trial.
pub async fn recheck(
    bench: &Arc<Bench>,
    part: RecheckShare,
    observer: &dyn Observer,
) -> Result<RecheckResult, Vec<Error>> {
    untraced(bench).await?;
    let mut disagreements = Vec::new();
    let pairs = pairs(bench, part, observer, &mut disagreements).await.map_err(|error| vec![error])?;
    let mutants = mutants(bench, part, observer, &mut disagreements).await.map_err(|error| vec![error])?;
    containments(bench, &mut disagreements).map_err(|error| vec![error])?;
    Ok(RecheckResult { pairs, mutants, disagreements })
}

async fn pairs(
    bench: &Arc<Bench>,
    part: RecheckShare,
    observer: &dyn Observer,
    disagreements: &mut Vec<Error>,
) -> Result<usize> {
    let loaded = bench.loaded();
    let (paper, path) = (&loaded.paper, loaded.dir.join("dependencies.json"));
    let hint = format!("measure it with `autoexperiment verify {}`", paper.id);
    let stored = loaded
        .dependencies
        .as_ref()
        .ok_or_else(|| Error::suite("the dependency matrix has not been measured").at(&path, None).hint(&hint))?;
    if stored.repo != bench.ready().snapshot.digest() {
        let changed = Error::suite("the repo has changed since the dependency matrix was measured");
        return Err(changed.at(path, None).hint(hint));
    }
    let all: Vec<(usize, usize)> = (0..paper.experiments.len())
        .flat_map(|experiment| (0..paper.units.len()).map(move |function| (experiment, function)))
        .collect();
    let chosen = part.select(all, |&(experiment, function)| {
        format!("{} {} {}", paper.id, paper.experiments[experiment].id, paper.units[function].at)
    });
    let mut jobs = Vec::with_capacity(chosen.len());
    for &(experiment, function) in &chosen {
        jobs.push(TrialJob {
            files: masked(loaded, function)?,
            experiment: bench.ready().experiments[experiment].clone(),
        });
    }
    let total = chosen.len();
    let stage = Stage::new("masked runs, again, of", &paper.id);
    let stage = |done| observer.on(RunEvent::Stage(stage.counted(done, total, "pairs")));
    let outcomes = bench.run_all(jobs, stage).await?;
    for (&(experiment, function), outcome) in chosen.iter().zip(&outcomes) {
        let (id, at) = (&paper.experiments[experiment].id, &paper.units[function].at);
        let needed = effect(bench, experiment, outcome) != Effect::None;
        let was = stored.needs.get(id).is_some_and(|needs| needs.contains(at));
        if needed != was {
            let (now, then) = if needed { ("needs", "does not") } else { ("does not need", "does") };
            disagreements.push(
                Error::new(
                    FailureKind::Baseline,
                    format!("experiment `{id}` {now} function `{at}`, but the stored file says that it {then}"),
                )
                .at(&path, None)
                .hint(&hint),
            );
        }
    }
    Ok(total)
}

async fn mutants(
    bench: &Arc<Bench>,
    part: RecheckShare,
    observer: &dyn Observer,
    disagreements: &mut Vec<Error>,
) -> Result<usize> {
    let loaded = bench.loaded();
    let (paper, path) = (&loaded.paper, loaded.dir.join("evidence.json"));
    let hint = format!("measure it with `autoexperiment verify {}`", paper.id);
    let stored = PaperEvidence::load(&path)?
        .ok_or_else(|| Error::suite("no mutants have been measured").at(&path, None).hint(&hint))?;
    if stored.repo != bench.ready().snapshot.digest() {
        return Err(Error::suite("the repo has changed since its mutants were run").at(path, None).hint(hint));
    }
    let mut all = Vec::new();
    for (place, function) in paper.units.iter().enumerate() {
        let Some(evidence) = stored.functions.get(&function.at) else { continue };
        let drawn = mutation::drawn(loaded, &stored, place, evidence.mutants)?;
        all.extend(drawn.into_iter().map(|mutant| (place, mutant)));
    }
    let chosen =
        part.select(all, |(function, mutant)| format!("{} {} {}", paper.id, paper.units[*function].at, mutant.id));
    let total = chosen.len();
    observer.on(RunEvent::Stage(Stage::new("running mutants again of", &paper.id).counted(0, total, "mutants")));
    let killed = mutation::again(bench, &chosen).await?;
    for ((function, mutant), killed) in chosen.iter().zip(killed) {
        let function = &paper.units[*function];
        let marked = function.equivalent.iter().any(|mark| mark.mutant == mutant.id);
        let survived = stored.functions.get(&function.at).is_some_and(|it| it.survivors.contains(&mutant.id));
        if killed == (survived || marked) {
            let (now, then) = if killed { ("is killed", "survives") } else { ("survives", "is killed") };
            disagreements.push(
                Error::new(
                    FailureKind::Baseline,
                    format!(
                        "mutant `{}` of function `{}` {now}, but the stored file says that it {then}",
                        mutant.id, function.at
                    ),
                )
                .at(&path, None)
                .hint(&hint),
            );
        }
    }
    Ok(total)
}

/// Measures again how much of each function's body appears elsewhere, and compares it with the stored share. Checks all
/// functions, because this only reads files.
fn containments(bench: &Bench, disagreements: &mut Vec<Error>) -> Result<()> {
    let loaded = bench.loaded();
    let path = loaded.dir.join("evidence.json");
    let stored = PaperEvidence::load(&path)?.unwrap_or_default();
    for leak in leaks::measure(loaded, Some(&bench.ready().snapshot))?.functions {
        let Some(was) = stored.functions.get(&leak.at).map(|function| function.containment) else { continue };
        // The stored share is rounded to four decimals.
        if (leak.containment - was).abs() > 1e-4 {
            disagreements.push(
                Error::new(
                    FailureKind::Baseline,
                    format!(
                        "{:.0}% of function `{}` is in one other file, but the stored file says {:.0}%",
                        100.0 * leak.containment,
                        leak.at,
                        100.0 * was
                    ),
                )
                .at(&path, None)
                .hint(format!("measure it with `autoexperiment verify {}`", loaded.paper.id)),
            );
        }
    }
    Ok(())
}

impl RecheckShare {
    /// Returns the items selected by the hash of their names; if none is selected, the one with the smallest hash.
    fn select<T>(self, items: Vec<T>, name: impl Fn(&T) -> String) -> Vec<T> {
        let weight = |item: &T| {
            let hash = Sha256::digest(format!("recheck {} {}", self.seed, name(item)));
            let head: [u8; 8] = std::array::from_fn(|at| hash[at]);
            u64::from_be_bytes(head) as f64 / 2_f64.powi(64)
        };
        let mut weighed: Vec<(f64, T)> = items.into_iter().map(|item| (weight(&item), item)).collect();
        let least = weighed.iter().map(|(weight, _)| *weight).fold(1.0, f64::min);
        weighed.retain(|(weight, _)| *weight < self.fraction || *weight <= least);
        weighed.into_iter().map(|(_, item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_selection_has_about_the_requested_share_depends_on_the_seed_and_is_never_empty() {
        let items: Vec<u32> = (0..2000).collect();
        let draw = |fraction, seed| RecheckShare { fraction, seed }.select(items.clone(), u32::to_string);
        assert!((150..250).contains(&draw(0.1, 1).len()));
        assert_eq!(draw(0.1, 1), draw(0.1, 1));
        assert_ne!(draw(0.1, 1), draw(0.1, 2));
        assert_eq!(draw(1.0, 1).len(), 2000);
        assert_eq!(draw(0.0, 1).len(), 1);
    }
}
