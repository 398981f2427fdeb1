//! A paper with everything that a run needs, each file read and parsed once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::pieces::{self, PaperSources, Piece};
use super::{Dependencies, Gold, Paper, ResultRule, Suite};
use crate::code::{MaskedPart, Module, Mutant};
use crate::error::{Error, Result};
use crate::files::hex;
use crate::sample::{Nesting, UnitChoice};

/// A paper, loaded.
#[derive(Debug, Clone)]
pub struct LoadedPaper {
    /// The manifest.
    pub paper: Arc<Paper>,
    /// The text, `paper.md`.
    pub text: Arc<str>,
    /// The gold results, if they have been recorded.
    pub gold: Option<Gold>,
    /// The dependency matrix (which experiments need which functions), if it has been measured.
    pub dependencies: Option<Dependencies>,
    /// The paper's folder.
    pub dir: PathBuf,
    /// The repo's folder.
    pub repo_dir: PathBuf,
    /// The env's folder.
    pub env_dir: PathBuf,
    /// Which maskable parts of the code are nested in which: functions, and regions (maskable groups of statements).
    pub units: Nesting,
    /// SHA-256 in hex of the manifest, the paper's text, gold and the dependency matrix.
    pub digest: String,
    sources: PaperSources,
}

/// A source file with masked functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedFile {
    /// Path in the repo.
    pub path: PathBuf,
    /// The masked text.
    pub bytes: Vec<u8>,
    /// For each part of the code that is masked in this file, its index in the manifest, and the range of `bytes` that
    /// replaces it.
    pub stand_ins: Vec<(usize, Range<usize>)>,
}

/// Size of one maskable part of the code: a function, or a region (a group of statements).
#[derive(Debug, Clone, Serialize)]
pub struct FunctionStatistics {
    /// Name of the part, as in files and tables; a function is named by its selector.
    pub at: String,
    /// Number of lines: of a function, from its `def` to the end of its last statement; of a region (a group of
    /// statements), from its first to its last statement.
    pub lines: usize,
    /// Number of call expressions in a function's body. Always 0 for a region (a group of statements), whose calls are
    /// not counted.
    pub calls: usize,
}

impl LoadedPaper {
    /// Loads a paper and finds its functions in its repo.
    ///
    /// # Errors
    /// Kind `Suite`: a broken manifest, gold file or dependency matrix, a missing repo, env or text, a selector that
    /// matches no function or several, maskable parts of the code that overlap in part or are the same lines, a source
    /// file with syntax errors. Kind `Machine` if the manifest, gold file or dependency matrix cannot be read.
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

        let sources = pieces::find(&paper, &repo_dir, &manifest)?;
        let units = pieces::nesting(&paper, &sources, &manifest)?;

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
            units,
            digest,
            sources,
        })
    }

    /// Returns the experiments that test a sample, as indices into the manifest: those that need any of these
    /// functions. Returns all experiments if no functions are given, or the dependency matrix has not been measured or
    /// was measured on another state of the repo than gold.
    #[must_use]
    pub fn tests(&self, functions: &[usize]) -> Vec<usize> {
        let is_current = |matrix: &&Dependencies| self.gold.as_ref().is_none_or(|gold| gold.repo == matrix.repo);
        match self.dependencies.as_ref().filter(is_current) {
            Some(dependencies) => dependencies.tests(&self.paper, functions),
            None => (0..self.paper.experiments.len()).collect(),
        }
    }

    /// Returns the experiments of [`tests`](Self::tests) that are not hidden. Agents run and report only these.
    #[must_use]
    pub fn shown_tests(&self, functions: &[usize]) -> Vec<usize> {
        let is_shown = |place: &usize| !self.paper.experiments[*place].hidden;
        self.tests(functions).into_iter().filter(is_shown).collect()
    }

    /// Returns the maskable parts of the code from which samples are drawn, as indices in the manifest, and how they
    /// are nested. `choice` selects functions, regions (groups of statements) or both.
    #[must_use]
    pub fn drawn(&self, choice: UnitChoice, is_wanted: impl Fn(usize) -> bool) -> (Vec<usize>, Nesting) {
        let (functions, all) = (self.paper.functions.len(), self.paper.units.len());
        let places = match choice {
            UnitChoice::Functions if functions > 0 => 0..functions,
            UnitChoice::Functions | UnitChoice::Regions => functions..all,
            UnitChoice::All => 0..all,
        };
        let places: Vec<usize> = places.filter(|unit| is_wanted(*unit)).collect();
        let nesting = self.units.only(&places);
        (places, nesting)
    }

    /// Returns the index of a maskable part of the code: a function, or a region (a group of statements). `function` is
    /// the part's number in the manifest (from 0), its selector, or its name alone if no other part has this name.
    ///
    /// # Errors
    /// Kind `Usage` if there is no such part, or several.
    pub fn place(&self, function: &str) -> Result<usize> {
        let all = &self.paper.units;
        if let Ok(place) = function.parse::<usize>() {
            return self.require(&[place]).map(|()| place);
        }
        let hint = format!("`autoexperiment list {}` shows them", self.paper.id);
        if let Some(place) = all.iter().position(|one| one.at == function) {
            return Ok(place);
        }
        let named = |at: &str| at.split_once("::").is_some_and(|(_, name)| name == function);
        let mut found = all.iter().enumerate().filter(|(_, one)| named(&one.at)).map(|(place, _)| place);
        match (found.next(), found.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => {
                Err(Error::usage(format!("paper `{}` has several functions `{function}`", self.paper.id)).hint(hint))
            }
            _ => Err(Error::usage(format!("paper `{}` has no function `{function}`", self.paper.id)).hint(hint)),
        }
    }

    /// Refuses indices that the manifest does not have, and a maskable part of the code together with another that is
    /// nested in it.
    ///
    /// # Errors
    /// Kind `Usage`.
    pub fn require(&self, functions: &[usize]) -> Result<()> {
        let all = self.paper.units.len();
        if let Some(wrong) = functions.iter().find(|&&function| function >= all) {
            return Err(Error::usage(format!("paper `{}` has no function {wrong}", self.paper.id))
                .hint(format!("it has {all}, numbered from 0: `autoexperiment list {}`", self.paper.id)));
        }
        if !self.units.allows(functions) {
            let regions = functions.iter().any(|&place| self.paper.units[place].region.is_some());
            let what = if regions { "what is nested in it" } else { "one nested in it" };
            return Err(Error::usage(format!("a function and {what} are never masked together"))
                .hint(format!("`autoexperiment list {}` shows the functions", self.paper.id)));
        }
        Ok(())
    }

    /// Returns the files that contain these maskable parts of the code, with the parts masked. Nothing is parsed again,
    /// because the positions of all parts are known.
    ///
    /// # Errors
    /// Kind `Suite` if one of these parts is nested in another.
    pub fn masked(&self, units: &[usize]) -> Result<Vec<MaskedFile>> {
        self.by_module(units)
            .into_iter()
            .map(|(module, cuts)| {
                let module = &self.sources.modules[module];
                let (places, cuts): (Vec<usize>, Vec<MaskedPart<'_>>) = cuts.into_iter().unzip();
                let masked = module.cut(&cuts)?;
                let stand_ins = places.into_iter().zip(masked.stand_ins).collect();
                Ok(MaskedFile { path: module.path().to_owned(), bytes: masked.bytes, stand_ins })
            })
            .collect()
    }

    /// Refuses a repo that contains the result file of an experiment: the result is gold, and every agent would find it
    /// there.
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

    /// Masks only this part of the code, and verifies the masked file by parsing it again.
    ///
    /// # Errors
    /// If the verification fails.
    pub fn prove_mask(&self, unit: usize) -> Result<()> {
        for (module, cuts) in self.by_module(&[unit]) {
            let cuts: Vec<MaskedPart<'_>> = cuts.into_iter().map(|(_, cut)| cut).collect();
            self.sources.modules[module].cut_checked(&cuts)?;
        }
        Ok(())
    }

    /// Returns the original files that contain these maskable parts of the code.
    #[must_use]
    pub fn originals(&self, units: &[usize]) -> Vec<(PathBuf, Vec<u8>)> {
        let modules = self.by_module(units).into_keys().map(|module| &self.sources.modules[module]);
        modules.map(|module| (module.path().to_owned(), module.source().to_vec())).collect()
    }

    /// Returns the parsed file that contains this maskable part of the code.
    #[must_use]
    pub fn source(&self, unit: usize) -> &Module {
        self.sources.unit(unit).0
    }

    /// Returns the position of a maskable part of the code in its parsed file.
    #[must_use]
    pub fn piece(&self, unit: usize) -> &Piece {
        self.sources.unit(unit).1
    }

    /// Returns the function that contains a maskable part of the code or is this part, as an index into its file's
    /// functions; `None` for statements outside of functions.
    #[must_use]
    pub fn function_of(&self, unit: usize) -> Option<usize> {
        match self.piece(unit) {
            Piece::Function(function) => Some(*function),
            Piece::Region(region) => region.function,
        }
    }

    /// Returns the range of bytes that masking this part of the code removes from its file. Masking keeps docstrings,
    /// so the range does not include them.
    #[must_use]
    pub fn code(&self, unit: usize) -> Range<usize> {
        let (module, piece) = self.sources.unit(unit);
        match piece {
            Piece::Function(function) => module.body_code(*function),
            Piece::Region(region) => region.range.clone(),
        }
    }

    /// Counts the lines of code that are masked in a sample.
    #[must_use]
    pub fn masked_lines(&self, units: &[usize]) -> usize {
        units.iter().map(|&unit| self.source(unit).code_lines(&self.code(unit))).sum()
    }

    /// Returns the mutants that change this maskable part of the code. For a region (a group of statements), these are
    /// the mutants of the function around it that change only code in the region. Statements outside of functions have
    /// no mutants.
    ///
    /// # Errors
    /// Kind `Internal` if the file no longer parses.
    pub fn mutants(&self, unit: usize) -> Result<Vec<Mutant>> {
        let Some(function) = self.function_of(unit) else { return Ok(Vec::new()) };
        let mut mutants = self.source(unit).mutants(function)?;
        let code = self.code(unit);
        mutants.retain(|mutant| code.start <= mutant.range.start && mutant.range.end <= code.end);
        Ok(mutants)
    }

    /// Returns the sizes of all maskable parts of the code: first of the functions, then of the regions (groups of
    /// statements).
    #[must_use]
    pub fn statistics(&self) -> Vec<FunctionStatistics> {
        let figures = |(place, unit): (usize, &super::Unit)| {
            let (module, piece) = self.sources.unit(place);
            let (lines, calls) = match piece {
                Piece::Function(function) => (module.functions()[*function].lines(), module.calls(*function).len()),
                Piece::Region(region) => (region.last_line - region.first_line + 1, 0),
            };
            FunctionStatistics { at: unit.at.clone(), lines, calls }
        };
        self.paper.units.iter().enumerate().map(figures).collect()
    }

    /// Groups maskable parts of the code by the index of their module. Each part is paired with its own index.
    fn by_module(&self, units: &[usize]) -> BTreeMap<usize, Vec<(usize, MaskedPart<'_>)>> {
        let mut grouped: BTreeMap<usize, Vec<(usize, MaskedPart<'_>)>> = BTreeMap::new();
        for &unit in units {
            let description = self.paper.units[unit].description.as_str();
            let cut = self.sources.unit(unit).1.cut(Some(description));
            grouped.entry(self.sources.places[unit].0).or_default().push((unit, cut));
        }
        grouped
    }
}
