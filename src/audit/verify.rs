//! Runs all measurements of one paper, and writes its `dependencies.json` and `evidence.json`.

use std::path::Path;
use std::sync::Arc;

use super::baseline::two_threads;
use super::believed::basis;
use super::leaks::{self, LeakReport};
use super::matrix::Matrix;
pub use super::measures::{MUTANT_SEED, Measures};
use super::mutation::{self, MutantDraw, Mutation};
use super::trial::Bench;
use crate::code::MutantKind;
use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::run::event::Observer;
use crate::suite::{Dependencies, EVIDENCE_FORMAT, FunctionEvidence, LoadedPaper, PaperEvidence};

/// The results of measuring a paper.
#[derive(Debug)]
pub struct PaperMeasurement {
    /// The dependency matrix.
    pub matrix: Matrix,
    /// Largest relative difference between gold and the results if linear algebra uses two threads. If experiments do
    /// not reproduce their gold with two threads, the errors of these experiments.
    pub threads: std::result::Result<f64, Vec<Error>>,
    /// Results of the mutants of the functions that an experiment needs.
    pub mutations: Vec<Mutation>,
    /// Parts of the functions and of gold that also appear elsewhere in what agents see, including the environment.
    pub leaks: LeakReport,
    /// The measurements of all functions, as in `evidence.json`; `None` if mutants were never run on this repo.
    pub evidence: Option<PaperEvidence>,
    /// Names of the paper's files that were written; empty if none changed.
    pub written: Vec<&'static str>,
    /// Number of trials (runs of an experiment on a changed repo) that were made, rather than found in the cache.
    pub made: u64,
    /// CPU seconds of the trials that were made.
    pub cpu: f64,
    /// CPU seconds of the trials that were made to measure the dependency matrix.
    pub matrix_cpu: f64,
}

/// Measures a paper and writes its `dependencies.json` and `evidence.json`, each only if its content changes.
///
/// # Errors
/// The errors of [`Matrix::measure`] and [`mutation::measure`]; kind `Machine` if a file cannot be written.
pub async fn verify(
    mut bench: Bench,
    measures: Measures,
    observer: &dyn Observer,
) -> Result<PaperMeasurement, Vec<Error>> {
    let single = |error| vec![error];
    let mut written = Vec::new();
    let shared = Arc::new(bench);
    let matrix = Matrix::measure(&shared, measures.effort, observer).await?;
    let matrix_cpu = shared.cpu();
    let dependencies = matrix.dependencies(shared.loaded(), shared.ready().snapshot.digest());
    if shared.loaded().dependencies.as_ref() != Some(&dependencies) {
        save_dependencies(&shared.loaded().dir.join("dependencies.json"), &dependencies).map_err(single)?;
        written.push("dependencies.json");
    }
    let threads = two_threads(&shared).await;
    bench = Arc::into_inner(shared).ok_or_else(|| {
        vec![Error::internal("an experiment was still running after the dependency matrix was finished")]
    })?;
    bench.set_dependencies(dependencies);
    let bench = Arc::new(bench);

    let mut mutations = Vec::new();
    if let Some(mutants) = measures.mutants {
        let functions = 0..bench.loaded().paper.units.len();
        let needed: Vec<usize> = functions.filter(|&function| !bench.loaded().tests(&[function]).is_empty()).collect();
        let draw = MutantDraw { mutants, seed: MUTANT_SEED };
        mutations = mutation::measure(&bench, &needed, draw, observer).await.map_err(|error| {
            let paper = &bench.loaded().paper.id;
            let message = format!("paper `{paper}`: {}", error.message);
            vec![Error { message, ..error }]
        })?;
    }
    let mut leaks = leaks::measure(bench.loaded(), Some(&bench.ready().snapshot)).map_err(single)?;
    leaks.findings.extend(leaks::installed(bench.loaded(), &bench.ready().env.prefix));
    let path = bench.loaded().dir.join("evidence.json");
    let stored = PaperEvidence::load(&path).map_err(single)?;
    let repo = bench.ready().snapshot.digest();
    let mut evidence = if measures.mutants.is_some() {
        Some(of_mutants(bench.loaded(), repo, &mutations))
    } else {
        stored.clone().filter(|stored| stored.repo == repo)
    };
    if let Some(evidence) = &mut evidence {
        add_leaks(evidence, &leaks);
        if measures.mutants.is_some() {
            let in_order = threads.is_ok() && leaks.is_clean() && matrix.inessential().is_empty();
            let basis = if in_order { basis(bench.loaded(), measures).map_err(single)? } else { None };
            evidence.basis = basis;
        }
    }
    if let Some(evidence) = &evidence
        && stored.as_ref() != Some(evidence)
    {
        evidence.save(&path).map_err(single)?;
        written.push("evidence.json");
    }
    Ok(PaperMeasurement {
        matrix,
        threads,
        mutations,
        leaks,
        evidence,
        written,
        made: bench.made(),
        cpu: bench.cpu(),
        matrix_cpu,
    })
}

/// Adds to the evidence of each function how much of its body also appears elsewhere, and where.
fn add_leaks(evidence: &mut PaperEvidence, leaks: &LeakReport) {
    for leak in &leaks.functions {
        if let Some(function) = evidence.functions.get_mut(&leak.at) {
            function.containment = (1e4 * leak.containment).round() / 1e4;
            function.contained_in.clone_from(&leak.place);
        }
    }
}

/// Creates the contents of `evidence.json`: an entry for each function, with the results of its mutants.
fn of_mutants(loaded: &LoadedPaper, repo: &str, mutations: &[Mutation]) -> PaperEvidence {
    let mut evidence = PaperEvidence {
        format: EVIDENCE_FORMAT,
        repo: repo.to_owned(),
        kinds: Some(MutantKind::COUNT),
        ..PaperEvidence::default()
    };
    for function in &loaded.paper.units {
        evidence.functions.insert(function.at.clone(), FunctionEvidence::default());
    }
    for mutation in mutations {
        if let Some(function) = evidence.functions.get_mut(&mutation.at) {
            mutation.write_to(function);
        }
    }
    evidence
}

fn save_dependencies(path: &Path, dependencies: &Dependencies) -> Result<()> {
    let mut text = serde_json::to_string_pretty(dependencies)
        .map_err(|error| Error::internal("failed to serialise a dependency matrix").because(error))?;
    text.push('\n');
    write_durably(path, text.as_bytes())
}
