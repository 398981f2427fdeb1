//! Reuses a paper's stored measurements if a digest shows that nothing they depend on has changed.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::measures::{MUTANT_SEED, Measures};
use super::mutation::{MutantDraw, pick};
use crate::error::{Error, Result};
use crate::files::hex;
use crate::suite::{LoadedPaper, PaperEvidence};
use crate::workspace::repo_digest;

/// Version of the measurement, part of the digest. Change it when the measuring code changes such that stored results
/// are no longer valid: the digest covers the inputs of the measurement, but not the code.
const FORMAT: &[u8] = b"autoexperiment evidence 1\n";

/// Returns the digest of everything that a paper's evidence depends on: its repo, the functions and experiments in the
/// manifest, its text, gold, the env's files, and the drawn mutants. `None` if `measures` runs no mutants.
///
/// # Errors
/// Returns the errors of the repo's digest and of drawing mutants; kind `Machine` if a file cannot be read.
pub fn basis(loaded: &LoadedPaper, measures: Measures) -> Result<Option<String>> {
    let Some(mutants) = measures.mutants else { return Ok(None) };
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let json = |value: serde_json::Result<Vec<u8>>| {
        value.map_err(|error| Error::internal("failed to serialise a manifest").because(error))
    };
    let paper = &loaded.paper;
    add(FORMAT);
    add(repo_digest(&loaded.repo_dir)?.as_bytes());
    add(&json(serde_json::to_vec(&paper.functions))?);
    add(&json(serde_json::to_vec(&paper.regions))?);
    add(&json(serde_json::to_vec(&paper.experiments))?);
    add(&json(serde_json::to_vec(&paper.protected))?);
    if !paper.hidden.is_empty() {
        add(&json(serde_json::to_vec(&paper.hidden))?);
    }
    // Add nothing for papers without a build, so that their digest is the same as in earlier versions of this program,
    // which did not know builds.
    if paper.build.is_some() || !paper.compiled.is_empty() || paper.abi.is_some() {
        add(&json(serde_json::to_vec(&(&paper.build, &paper.products, &paper.compiled, &paper.abi)))?);
    }
    add(loaded.text.as_bytes());
    add(&json(serde_json::to_vec(&loaded.gold.as_ref().map(|gold| (&gold.repo, &gold.results))))?);
    for file in ["environment.yml", "venv.lock", "conda.lock"] {
        add(&read(&loaded.env_dir.join(file))?);
    }
    add(format!("{:?}", measures.effort).as_bytes());
    let draw = MutantDraw { mutants, seed: MUTANT_SEED };
    for function in 0..loaded.paper.units.len() {
        for mutant in pick(loaded, function, draw)?.1 {
            add(mutant.id.as_bytes());
        }
    }
    Ok(Some(hex(&hash.finalize())))
}

/// Reads a file; empty if it does not exist.
fn read(path: &Path) -> Result<Vec<u8>> {
    match std::fs::read(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("read", path, error)),
        read => Ok(read.unwrap_or_default()),
    }
}

/// Returns a paper's stored measurements if they found no faults and nothing that they depend on has changed since.
///
/// # Errors
/// Returns the errors of [`basis`]; kind `Suite` for a broken file.
pub fn believed(loaded: &LoadedPaper, measures: Measures) -> Result<Option<PaperEvidence>> {
    let Some(evidence) = PaperEvidence::load(&loaded.dir.join("evidence.json"))?.filter(|one| one.basis.is_some())
    else {
        return Ok(None);
    };
    let matrix = loaded.dependencies.as_ref().is_some_and(|matrix| matrix.repo == evidence.repo);
    let same = matrix && evidence.basis == basis(loaded, measures)?;
    Ok(same.then_some(evidence))
}
