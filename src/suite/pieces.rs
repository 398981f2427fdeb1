//! Finds the functions and regions that a paper's manifest names in the paper's repo, and how they are nested. A region
//! consists of some statements of a function or file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::Paper;
use crate::code::{MaskTarget, MaskedPart, Module, Region, Selector};
use crate::error::{Error, Result};
use crate::sample::Nesting;

/// A maskable part of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A function, as an index into the module's functions.
    Function(usize),
    /// Statements.
    Region(Region),
}

impl Piece {
    /// Returns the [`MaskedPart`] that tells [`Module::cut`] to mask this function or region. `description` becomes the
    /// docstring of a function that has none.
    #[must_use]
    pub const fn cut<'text>(&'text self, description: Option<&'text str>) -> MaskedPart<'text> {
        match self {
            Self::Function(function) => MaskedPart::Function(MaskTarget { function: *function, description }),
            Self::Region(region) => MaskedPart::Region(region),
        }
    }
}

/// The parsed files of a paper, and the positions of its units (the functions and regions that can be masked).
#[derive(Debug, Clone)]
pub(super) struct PaperSources {
    /// The files that contain functions or regions to mask, each file once.
    pub modules: Vec<Module>,
    /// For each function or region in the manifest, the index of its module in `modules`, and its position in that
    /// module.
    pub places: Vec<(usize, Piece)>,
}

impl PaperSources {
    /// Returns the module that contains a function or region, and its position in that module. `unit` is the index of
    /// the function or region in the manifest.
    pub(super) fn unit(&self, unit: usize) -> (&Module, &Piece) {
        let (module, piece) = &self.places[unit];
        (&self.modules[*module], piece)
    }

    fn read(&mut self, repo: &Path, file: &Path, index: &mut BTreeMap<PathBuf, usize>) -> Result<usize> {
        if let Some(&module) = index.get(file) {
            return Ok(module);
        }
        self.modules.push(Module::read(repo, file)?);
        index.insert(file.to_owned(), self.modules.len() - 1);
        Ok(self.modules.len() - 1)
    }
}

/// Finds all functions and regions of a paper that can be masked.
///
/// # Errors
/// Kind `Suite`: a function or region that does not exist, is invalid, or is the same as another; a file with syntax
/// errors.
pub(super) fn find(paper: &Paper, repo: &Path, manifest: &Path) -> Result<PaperSources> {
    let mut sources = PaperSources { modules: Vec::new(), places: Vec::with_capacity(paper.units.len()) };
    let mut index = BTreeMap::new();
    let mut unreadable = BTreeSet::new();
    let mut faults: Vec<Error> = Vec::new();
    for unit in &paper.units {
        let is_first = faults.is_empty();
        let mut locate = || -> Result<Option<(usize, Piece)>> {
            let at = unit.region.map_or(unit.at.as_str(), |place| paper.regions[place].at.as_str());
            let (file, name) = place_of(at, unit.region.is_some())?;
            // This file cannot be parsed, and this was already reported for an earlier function or region in it.
            if unreadable.contains(&file) {
                return Ok(None);
            }
            let module = sources.read(repo, &file, &mut index).inspect_err(|_| {
                unreadable.insert(file.clone());
            })?;
            let function = name.map(|name| sources.modules[module].find(&name)).transpose()?;
            let piece = match (unit.region, function) {
                (Some(place), function) => {
                    Piece::Region(sources.modules[module].region(function, paper.regions[place].bounds())?)
                }
                (None, Some(function)) => Piece::Function(function),
                (None, None) => return Err(Error::suite("names no function")),
            };
            // Compare only if there was no error before. After an error, the indices in `sources.places` are not those
            // in `paper.units` any more.
            let twin = sources.places.iter().position(|place| *place == (module, piece.clone()));
            if let Some(twin) = twin.filter(|_| is_first) {
                return Err(Error::suite(format!("is the same {} as `{}`", unit.kind(), paper.units[twin].at)));
            }
            Ok(Some((module, piece)))
        };
        match locate() {
            Ok(place) => sources.places.extend(place),
            Err(error) => {
                let mut wrong = Error::suite(format!("{} `{}`: {error}", unit.kind(), unit.at)).at(manifest, None);
                wrong.hint = error.hint;
                faults.push(wrong);
            }
        }
    }
    if let Some(error) = Error::all(faults) {
        return Err(error);
    }
    Ok(sources)
}

/// Splits the manifest's field `at` into file and function. `region` is whether the field belongs to a region (some
/// statements of a file) instead of a function. If the statements are outside of functions, the field names only a
/// file.
fn place_of(at: &str, region: bool) -> Result<(PathBuf, Option<String>)> {
    if !region || at.contains("::") {
        let selector: Selector = at.parse()?;
        return Ok((selector.file, Some(selector.name)));
    }
    let inside = !at.is_empty() && Path::new(at).components().all(|part| matches!(part, Component::Normal(_)));
    if !inside {
        return Err(Error::suite(format!("`{at}` is not a file of the repo"))
            .hint("write a path relative to the repo's root, without `..`"));
    }
    Ok((PathBuf::from(at), None))
}

/// Determines for each function or region the innermost function or region around it.
///
/// # Errors
/// Kind `Suite` for two functions or regions that overlap in part or consist of the same lines.
pub(super) fn nesting(paper: &Paper, sources: &PaperSources, manifest: &Path) -> Result<Nesting> {
    let extents: Vec<_> = (0..sources.places.len())
        .map(|unit| {
            let (module, piece) = sources.unit(unit);
            (sources.places[unit].0, module.extent(&piece.cut(None)))
        })
        .collect();
    let mut parents = Vec::with_capacity(extents.len());
    for (unit, (module, extent)) in extents.iter().enumerate() {
        let mut nearest: Option<usize> = None;
        for (other, (_, around)) in extents.iter().enumerate().filter(|(other, it)| *other != unit && it.0 == *module) {
            if around.end <= extent.start || extent.end <= around.start {
                continue;
            }
            let (holds, held) = (contains(around, extent), contains(extent, around));
            if holds == held {
                let names = (&paper.units[unit].at, &paper.units[other].at);
                let how = if holds { "are the same lines" } else { "overlap in part" };
                return Err(Error::suite(format!("`{}` and `{}` {how}", names.0, names.1))
                    .at(manifest, None)
                    .hint("two regions may be nested or separate, but not overlap in part"));
            }
            if holds && nearest.is_none_or(|known| contains(&extents[known].1, around)) {
                nearest = Some(other);
            }
        }
        parents.push(nearest);
    }
    Ok(Nesting::new(parents))
}

fn contains(outer: &std::ops::Range<usize>, inner: &std::ops::Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
