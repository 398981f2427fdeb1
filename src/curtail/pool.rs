//! The pool of solutions with which curtailed (shortened) experiments are tested: mutants, and agents' code from stored
//! runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::patch;
use crate::audit::Bench;
use crate::code::choose;
use crate::error::Result;
use crate::masked::guard::Guard;
use crate::masked::withheld;
use crate::run::Store;
use crate::sample::MASKED;

/// A solution: files that replace files of the unmasked repo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PooledSolution {
    /// Readable name of the solution: the id of a mutant or of a stored attempt.
    pub name: String,
    /// Name of the solution's group: the functions that it changes.
    pub group: String,
    /// The functions that the solution changes, as indices in the manifest.
    pub functions: Vec<usize>,
    /// The files that the solution changes.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// All solutions for a paper. Each solution differs from every other one and from the unchanged code. The unchanged
/// code always gives the gold results, so it would say nothing about precision or recall.
#[derive(Debug, Default)]
pub struct SolutionPool {
    /// Solutions in the order in which they are run: stored attempts, then the first mutant of each function, then the
    /// second mutant of each, and so on. So even if the budget ends early, the mutants that were run are spread evenly
    /// over the functions.
    pub attempts: Vec<PooledSolution>,
    /// Notes on stored attempts that are not used.
    pub notes: Vec<String>,
}

impl SolutionPool {
    /// Collects up to `mutants` mutants of each function, chosen with the seed `seed`.
    ///
    /// # Errors
    /// Kind `Internal` if a source file no longer parses as before.
    pub fn new(bench: &Bench, mutants: usize, seed: u64) -> Result<Self> {
        let loaded = bench.loaded();
        let mut distinct = DistinctCode::new(bench.ready().snapshot.tree());
        let mut rounds: Vec<Vec<PooledSolution>> = Vec::new();
        for (place, function) in loaded.paper.units.iter().enumerate() {
            let (module, all) = (loaded.source(place), loaded.mutants(place)?);
            let chosen = choose(&all, mutants, seed).into_iter().filter_map(|mutant| {
                let files = vec![(module.path().to_owned(), module.mutant_text(mutant))];
                // A mutant of a nested function is also a mutant of the function around it, so the same files may come
                // twice.
                distinct.insert(&files).then_some((mutant, files))
            });
            for (round, (mutant, files)) in chosen.enumerate() {
                if round == rounds.len() {
                    rounds.push(Vec::new());
                }
                rounds[round].push(PooledSolution {
                    name: mutant.id.clone(),
                    group: function.at.clone(),
                    functions: vec![place],
                    files,
                });
            }
        }
        Ok(Self { attempts: rounds.into_iter().flatten().collect(), notes: Vec::new() })
    }

    /// Adds agents' solutions from a stored run: one for every finished attempt at this paper that changed a file.
    /// Changes to protected files are left out, as in verification. Copies of the unchanged code and of solutions in the
    /// pool are not added, because they would count as independent solutions; a note says how many there are.
    ///
    /// # Errors
    /// Kind `Store` if the run cannot be read.
    pub fn add_run(&mut self, bench: &Bench, folder: &Path) -> Result<()> {
        let ready = bench.ready();
        let loaded = bench.loaded();
        let guard = ready.guard();
        let (store, _) = Store::open(folder)?;
        let mut distinct = DistinctCode::new(ready.snapshot.tree());
        for known in &self.attempts {
            distinct.insert(&known.files);
        }
        let (mut stored, mut copies) = (Vec::new(), 0_usize);
        for record in store.records()? {
            let of_paper = record.family == MASKED && record.paper == loaded.paper.id;
            if !of_paper || record.is_infrastructure() || record.changed.is_empty() {
                continue;
            }
            let name = format!("{}/{}.{}", record.agent, record.sample, record.attempt);
            let functions = match withheld(&record.sample) {
                Ok(withheld) if loaded.require(&withheld.units).is_ok() => withheld.units,
                _ => {
                    self.notes.push(format!("attempt `{name}` masks functions that the paper no longer has"));
                    continue;
                }
            };
            let diff = std::fs::read(store.diff(&record.agent, &record.sample, record.attempt));
            let files = diff
                .map_err(|error| format!("its diff cannot be read: {error}"))
                .and_then(|diff| files(bench, &guard, &functions, &String::from_utf8_lossy(&diff)));
            match files {
                Ok(files) if !distinct.insert(&files) => copies += 1,
                Ok(files) => {
                    stored.push(PooledSolution { name, group: selectors(bench, &functions), functions, files });
                }
                Err(why) => self.notes.push(format!("attempt `{name}` is left out: {why}")),
            }
        }
        if copies > 0 {
            self.notes.push(format!(
                "{copies} of the attempts in `{}` are left out: their code equals the unchanged code or another solution",
                folder.display()
            ));
        }
        self.attempts.splice(0..0, stored);
        Ok(())
    }

    /// Returns the indices of the solutions that can affect an experiment: those that change a function that the
    /// experiment needs.
    #[must_use]
    pub(super) fn affecting(&self, bench: &Bench, experiment: usize) -> Vec<usize> {
        let bears = |attempt: &PooledSolution| bench.loaded().tests(&attempt.functions).contains(&experiment);
        (0..self.attempts.len()).filter(|&place| bears(&self.attempts[place])).collect()
    }
}

/// Set of different code of a repo: the unchanged code, and solutions.
struct DistinctCode<'a> {
    /// Folder of the unchanged repo.
    tree: &'a Path,
    /// For each code, the files that differ from the unchanged repo. New files count only if they are Python code:
    /// other new files are mostly what experiments wrote.
    seen: BTreeSet<BTreeMap<PathBuf, Vec<u8>>>,
}

impl<'a> DistinctCode<'a> {
    /// Makes a set that contains only the unchanged code.
    fn new(tree: &'a Path) -> Self {
        Self { tree, seen: BTreeSet::from([BTreeMap::new()]) }
    }

    /// Adds the code of a solution. Returns `false` if the set contains it already.
    fn insert(&mut self, files: &[(PathBuf, Vec<u8>)]) -> bool {
        let mut changed = BTreeMap::new();
        for (path, bytes) in files {
            let is_changed = match std::fs::read(self.tree.join(path)) {
                Ok(before) => before != *bytes,
                Err(_) => path.extension().is_some_and(|extension| extension == "py"),
            };
            if is_changed {
                changed.insert(path.clone(), bytes.clone());
            }
        }
        self.seen.insert(changed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_unchanged_code_and_of_other_solutions_are_not_distinct() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a.py"), "a").unwrap();
        std::fs::write(tree.path().join("b.py"), "b").unwrap();
        let code = |files: &[(&str, &str)]| -> Vec<(PathBuf, Vec<u8>)> {
            files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())).collect()
        };
        let mut distinct = DistinctCode::new(tree.path());
        assert!(!distinct.insert(&code(&[])) && !distinct.insert(&code(&[("a.py", "a"), ("b.py", "b")])));
        assert!(distinct.insert(&code(&[("a.py", "new")])));
        // Files that equal those of the repo make no difference.
        assert!(!distinct.insert(&code(&[("b.py", "b"), ("a.py", "new")])));
        assert!(distinct.insert(&code(&[("a.py", "new"), ("b.py", "new")])));
        // New code is a change, even if it is empty. The output of an experiment is not a change.
        assert!(distinct.insert(&code(&[("c.py", "")])) && !distinct.insert(&code(&[("c.py", "")])));
        assert!(!distinct.insert(&code(&[("results/out.json", "{}")])));
    }
}
