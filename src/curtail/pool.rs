//! The pool of solutions with which curtailed (shortened) experiments are tested: the unchanged code, mutants, and
//! agents' code from stored runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::patch;
use crate::audit::Bench;
use crate::code::choose;
use crate::error::{Error, Result};
use crate::masked::guard::Guard;
use crate::masked::withheld;
use crate::run::Store;
use crate::sample::MASKED;

/// A solution: files that replace files of the unmasked repo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PooledSolution {
    /// Readable name of the solution: the id of a mutant or of a stored attempt.
    pub name: String,
    /// Name of the solution's group: the functions that it changes. The unchanged code forms a separate group.
    pub group: String,
    /// The functions that the solution changes, as indices in the manifest; empty for the unchanged code.
    pub functions: Vec<usize>,
    /// The files that the solution changes.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// All solutions for a paper.
#[derive(Debug, Default)]
pub struct SolutionPool {
    /// Solutions in the order in which they are run: the unchanged code, stored attempts, then the first mutant of each
    /// function, then the second mutant of each, and so on. So even if the budget ends early, the mutants that were run
    /// are spread evenly over the functions.
    pub attempts: Vec<PooledSolution>,
    /// Warnings about stored attempts that could not be used.
    pub notes: Vec<String>,
}

impl SolutionPool {
    /// Collects the unchanged code and, for each function, up to `mutants` mutants, chosen with the seed `seed`.
    ///
    /// # Errors
    /// Kind `Internal` if a source file no longer parses as before.
    pub fn new(bench: &Bench, mutants: usize, seed: u64) -> Result<Self> {
        let loaded = bench.loaded();
        let unchanged = PooledSolution {
            name: "unchanged".into(),
            group: "unchanged".into(),
            functions: Vec::new(),
            files: Vec::new(),
        };
        let mut rounds: Vec<Vec<PooledSolution>> = Vec::new();
        for (place, function) in loaded.paper.units.iter().enumerate() {
            let (module, all) = (loaded.source(place), loaded.mutants(place)?);
            for (round, mutant) in choose(&all, mutants, seed).into_iter().enumerate() {
                if round == rounds.len() {
                    rounds.push(Vec::new());
                }
                rounds[round].push(PooledSolution {
                    name: mutant.id.clone(),
                    group: function.at.clone(),
                    functions: vec![place],
                    files: vec![(module.path().to_owned(), module.mutant_text(mutant))],
                });
            }
        }
        let attempts = std::iter::once(unchanged).chain(rounds.into_iter().flatten()).collect();
        Ok(Self { attempts, notes: Vec::new() })
    }

    /// Adds agents' solutions from a stored run: one for every finished attempt at this paper that changed a file.
    /// Changes to protected files are left out, as in verification.
    ///
    /// # Errors
    /// Kind `Store` if the run cannot be read.
    pub fn add_run(&mut self, bench: &Bench, folder: &Path) -> Result<()> {
        let ready = bench.ready();
        let loaded = bench.loaded();
        let guard = ready.guard();
        let (store, _) = Store::open(folder)?;
        let mut stored = Vec::new();
        for record in store.records()? {
            let of_paper = record.family == MASKED && record.paper == loaded.paper.id;
            if !of_paper || record.is_infrastructure() || record.changed.is_empty() {
                continue;
            }
            let name = format!("{}/{}.{}", record.agent, record.sample, record.attempt);
            let functions = withheld(&record.sample)?.units;
            if loaded.require(&functions).is_err() {
                self.notes.push(format!("attempt `{name}` masks functions that the paper no longer has"));
                continue;
            }
            let path = store.diff(&record.agent, &record.sample, record.attempt);
            let diff = std::fs::read(&path)
                .map_err(|error| Error::store("failed to read a diff").at(&path, None).because(error))?;
            match files(bench, &guard, &functions, &String::from_utf8_lossy(&diff)) {
                Ok(files) => {
                    stored.push(PooledSolution { name, group: selectors(bench, &functions), functions, files });
                }
                Err(why) => self.notes.push(format!("attempt `{name}` is left out: {why}")),
            }
        }
        self.attempts.splice(1..1, stored);
        Ok(())
    }

    /// Returns the indices of the solutions that can affect an experiment: the unchanged code, and those that change a
    /// function that the experiment needs.
    #[must_use]
    pub(super) fn affecting(&self, bench: &Bench, experiment: usize) -> Vec<usize> {
        let bears = |attempt: &PooledSolution| {
            attempt.functions.is_empty() || bench.loaded().tests(&attempt.functions).contains(&experiment)
        };
        (0..self.attempts.len()).filter(|&place| bears(&self.attempts[place])).collect()
    }
}

/// Returns the files of a stored attempt: the masked files after applying the attempt's diff.
fn files(bench: &Bench, guard: &Guard, functions: &[usize], diff: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let masked = bench.loaded().masked(functions).map_err(|error| error.to_string())?;
    let mut files: BTreeMap<PathBuf, Vec<u8>> = masked.into_iter().map(|file| (file.path, file.bytes)).collect();
    let tree = bench.ready().snapshot.tree();
    let before = |path: &str| {
        let masked = files.get(Path::new(path)).cloned();
        masked.unwrap_or_else(|| std::fs::read(tree.join(path)).unwrap_or_default())
    };
    for changed in patch::apply(diff, before)? {
        match changed.bytes {
            _ if guard.keeps_out(&changed.path) => {}
            Some(bytes) => {
                files.insert(changed.path.into(), bytes);
            }
            // A solution is tried by adding files to the repo or replacing its files, so a solution that removes a file
            // cannot be tried.
            None if tree.join(&changed.path).exists() => return Err(format!("its diff removes `{}`", changed.path)),
            None => {}
        }
    }
    Ok(files.into_iter().collect())
}

fn selectors(bench: &Bench, functions: &[usize]) -> String {
    let names: Vec<&str> = functions.iter().map(|&function| bench.loaded().paper.units[function].at.as_str()).collect();
    names.join(" + ")
}
