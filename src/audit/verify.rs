//! All measurements of one paper, and the files that keep them.

use std::sync::Arc;

use super::matrix::{Effort, Matrix};
use super::trial::Bench;
use crate::error::Error;
use crate::run::event::Observer;
use crate::suite::{Dependencies, replace_file};

/// What is measured, and how.
#[derive(Debug, Clone, Copy)]
pub struct Measures {
    /// How the dependency matrix is.
    pub effort: Effort,
}

/// What was measured of a paper.
#[derive(Debug)]
pub struct Verified {
    /// The dependency matrix.
    pub matrix: Matrix,
    /// The same as it is stored.
    pub dependencies: Dependencies,
    /// Names of the paper's files that were written; none when all of them held this already.
    pub written: Vec<&'static str>,
    /// Trials that were really made.
    pub made: u64,
    /// Their CPU seconds.
    pub cpu: f64,
}

/// Measures a paper and writes `dependencies.json`.
///
/// # Errors
/// All that is wrong with its experiments, as [`Matrix::measure`]; kind `Machine` when a file cannot be written.
pub async fn verify(bench: Bench, measures: Measures, observer: &dyn Observer) -> Result<Verified, Vec<Error>> {
    let bench = Arc::new(bench);
    let matrix = Matrix::measure(&bench, measures.effort, observer).await?;
    let dependencies = matrix.dependencies(bench.loaded(), bench.ready().snapshot.digest());
    let mut written = Vec::new();
    if bench.loaded().dependencies.as_ref() != Some(&dependencies) {
        save(&bench.loaded().dir.join("dependencies.json"), &dependencies).map_err(|error| vec![error])?;
        written.push("dependencies.json");
    }
    Ok(Verified { matrix, dependencies, written, made: bench.made(), cpu: bench.cpu() })
}

fn save(path: &std::path::Path, dependencies: &Dependencies) -> Result<(), Error> {
    let mut text = serde_json::to_string_pretty(dependencies)
        .map_err(|error| Error::internal("failed to serialise a dependency matrix").because(error))?;
    text.push('\n');
    replace_file(path, text.as_bytes())
}
