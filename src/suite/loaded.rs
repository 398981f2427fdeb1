//! One paper with everything that a run needs of it, each file read and parsed once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Dependencies, Gold, Paper, ResultRule, Suite};
use crate::code::{Module, Selector, Target};
use crate::error::{Error, Result};
use crate::files::hex;
use crate::sample::Nesting;

/// A paper, loaded.
#[derive(Debug, Clone)]
pub struct LoadedPaper {
    /// The manifest.
    pub paper: Arc<Paper>,
    /// The text, `paper.md`.
    pub text: Arc<str>,
    /// The gold results, where they have been recorded.
    pub gold: Option<Gold>,
    /// The dependency matrix, where it has been measured.
    pub dependencies: Option<Dependencies>,
    /// The paper's folder.
    pub dir: PathBuf,
    /// The repo's folder.
    pub repo_dir: PathBuf,
    /// The env's folder.
    pub env_dir: PathBuf,
    /// Which maskable functions lie inside which.
    pub nesting: Nesting,
    /// Digest of manifest, text, gold and dependency matrix: sha256, hex.
    pub digest: String,
    modules: Vec<Module>,
    /// For each function of the manifest: its module, and its index there.
    places: Vec<(usize, usize)>,
}

/// A source file with masked functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedFile {
    /// Path in the repo.
    pub path: PathBuf,
    /// The masked text.
    pub bytes: Vec<u8>,
}

/// Figures of one function.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionStatistics {
    /// Its selector.
    pub at: String,
    /// Number of lines from `def` to the end of the last statement.
    pub lines: usize,
    /// Number of call expressions in its body.
    pub calls: usize,
}

impl LoadedPaper {
    /// Loads a paper and finds its functions in its repo.
    ///
    /// # Errors
    /// Kind `Suite`: a broken manifest, a missing repo, env or text, a selector that names no or several functions, a
    /// source file with syntax errors.
    pub fn load(suite: &Suite, id: &str) -> Result<Self> {
        let dir = suite.paper_dir(id);
        let manifest = dir.join("paper.toml");
        let paper = Paper::load(&manifest, id)?;
        let repo_dir = suite.repo_dir(&paper.repo);
        let env_dir = suite.env_dir(&paper.env);
        for (kind, name, path) in [("repo", &paper.repo, &repo_dir), ("env", &paper.env, &env_dir)] {
            if !path.is_dir() {
                return Err(Error::suite(format!("there is no {kind} `{name}`"))
                    .at(&manifest, None)
                    .hint(format!("it belongs in `{}`", path.display())));
            }
        }
        let text_path = dir.join("paper.md");
        let text = std::fs::read_to_string(&text_path)
            .map_err(|error| Error::suite("failed to read the paper's text").at(&text_path, None).because(error))?;
        let gold = Gold::load(&dir.join("gold.json"))?;
        let dependencies = Dependencies::load(&dir.join("dependencies.json"), &paper)?;

        let mut modules: Vec<Module> = Vec::new();
        let mut index: BTreeMap<PathBuf, usize> = BTreeMap::new();
        let mut places = Vec::with_capacity(paper.functions.len());
        for function in &paper.functions {
            let in_manifest = |error: Error| {
                let mut wrong = Error::suite(format!("function `{}`: {error}", function.at)).at(&manifest, None);
                wrong.hint = error.hint;
                wrong
            };
            let selector: Selector = function.at.parse().map_err(in_manifest)?;
            let module = if let Some(&module) = index.get(&selector.file) {
                module
            } else {
                modules.push(Module::read(&repo_dir, &selector.file).map_err(in_manifest)?);
                index.insert(selector.file.clone(), modules.len() - 1);
                modules.len() - 1
            };
            let found = modules[module].find(&selector.name).map_err(in_manifest)?;
            if let Some(twin) = places.iter().position(|&place| place == (module, found)) {
                return Err(in_manifest(Error::suite(format!(
                    "is the same function as `{}`",
                    paper.functions[twin].at
                ))));
            }
            places.push((module, found));
        }
        let nesting = nesting(&modules, &places);

        let mut hash = Sha256::new();
        for name in ["paper.toml", "paper.md", "gold.json", "dependencies.json"] {
            let bytes = std::fs::read(dir.join(name)).unwrap_or_default();
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(&bytes);
        }
        let digest = hex(&hash.finalize());
        Ok(Self {
            paper: Arc::new(paper),
            text: text.into(),
            gold,
            dependencies,
            dir,
            repo_dir,
            env_dir,
            nesting,
            digest,
            modules,
            places,
        })
    }

    /// The tests of a sample: places in the manifest of the experiments that need any of these functions; all of them
    /// while the dependency matrix has not been measured, and for no functions.
    #[must_use]
    pub fn tests(&self, functions: &[usize]) -> Vec<usize> {
        match &self.dependencies {
            Some(dependencies) => dependencies.tests(&self.paper, functions),
            None => (0..self.paper.experiments.len()).collect(),
        }
    }

    /// The parsed file that holds a function of the manifest, and the function's index there.
    #[must_use]
    pub fn source_of(&self, function: usize) -> (&Module, usize) {
        let (module, place) = self.places[function];
        (&self.modules[module], place)
    }

    /// Refuses places that the manifest does not have, and a function together with one nested in it.
    ///
    /// # Errors
    /// Kind `Usage`.
    pub fn require(&self, functions: &[usize]) -> Result<()> {
        let all = self.places.len();
        if let Some(wrong) = functions.iter().find(|&&function| function >= all) {
            return Err(Error::usage(format!("paper `{}` has no function {wrong}", self.paper.id))
                .hint(format!("it has {all}, numbered from 0: `autoexperiment list {}`", self.paper.id)));
        }
        if !self.nesting.allows(functions) {
            return Err(Error::usage("a function and one nested in it are never masked together")
                .hint(format!("`autoexperiment list {}` shows the functions", self.paper.id)));
        }
        Ok(())
    }

    /// The files that hold these functions, with them masked. A splice of cached offsets, nothing is parsed.
    ///
    /// # Errors
    /// Kind `Suite` for a function and one nested in it.
    pub fn masked(&self, functions: &[usize]) -> Result<Vec<MaskedFile>> {
        self.by_module(functions)
            .into_iter()
            .map(|(module, targets)| {
                let module = &self.modules[module];
                Ok(MaskedFile { path: module.path().to_owned(), bytes: module.mask(&targets)? })
            })
            .collect()
    }

    /// Refuses a repo in which an experiment was run: its result is gold, and every agent would find it there.
    ///
    /// # Errors
    /// Kind `Suite`, naming the file.
    pub fn refuse_results(&self) -> Result<()> {
        for experiment in &self.paper.experiments {
            if let ResultRule::JsonFile(file) = &experiment.result
                && self.repo_dir.join(file).symlink_metadata().is_ok()
            {
                return Err(Error::suite(format!("the repo holds the result of experiment `{}`", experiment.id))
                    .at(self.repo_dir.join(file), None)
                    .hint("remove it: every agent would be given it"));
            }
        }
        Ok(())
    }

    /// Masks one function alone and proves the result, by parsing it again.
    ///
    /// # Errors
    /// When the proof fails.
    pub fn prove_mask(&self, function: usize) -> Result<()> {
        for (module, targets) in self.by_module(&[function]) {
            self.modules[module].mask_checked(&targets)?;
        }
        Ok(())
    }

    /// The files that hold these functions, as they are.
    #[must_use]
    pub fn originals(&self, functions: &[usize]) -> Vec<(PathBuf, Vec<u8>)> {
        self.by_module(functions)
            .into_keys()
            .map(|module| (self.modules[module].path().to_owned(), self.modules[module].source().to_vec()))
            .collect()
    }

    /// Where a function of the manifest stands: its file, parsed, and its index there.
    #[must_use]
    pub fn source(&self, function: usize) -> (&Module, usize) {
        let (module, place) = self.places[function];
        (&self.modules[module], place)
    }

    /// Figures of all functions, in the manifest's order.
    #[must_use]
    pub fn statistics(&self) -> Vec<FunctionStatistics> {
        self.paper
            .functions
            .iter()
            .zip(&self.places)
            .map(|(function, &(module, place))| FunctionStatistics {
                at: function.at.clone(),
                lines: self.modules[module].functions()[place].lines(),
                calls: self.modules[module].calls(place).len(),
            })
            .collect()
    }

    /// Functions grouped by the module that holds them.
    fn by_module(&self, functions: &[usize]) -> BTreeMap<usize, Vec<Target<'_>>> {
        let mut grouped: BTreeMap<usize, Vec<Target<'_>>> = BTreeMap::new();
        for &function in functions {
            let (module, place) = self.places[function];
            let description = Some(self.paper.functions[function].description.as_str());
            grouped.entry(module).or_default().push(Target { function: place, description });
        }
        grouped
    }
}

/// For each listed function the nearest listed function around it.
fn nesting(modules: &[Module], places: &[(usize, usize)]) -> Nesting {
    let parents = places
        .iter()
        .map(|&(module, place)| {
            let functions = modules[module].functions();
            let mut around = functions[place].parent;
            while let Some(outer) = around {
                if let Some(listed) = places.iter().position(|&other| other == (module, outer)) {
                    return Some(listed);
                }
                around = functions[outer].parent;
            }
            None
        })
        .collect();
    Nesting::new(parents)
}
