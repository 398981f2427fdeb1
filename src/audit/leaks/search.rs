//! Searches everything that agents see for the bodies of maskable functions and regions, file by file. Records how much
//! of each body is found where.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::readings::{FileReading, of_python, of_text, without_tables};
use super::{FunctionLeak, LEAK, SimilarPair};
use crate::code::Module;
use crate::suite::{Bodies, LoadedPaper, Piece, ShingleOccurrence};

/// A text that agents see.
pub struct Visible<'a> {
    name: String,
    bytes: Cow<'a, [u8]>,
    /// Path in the repo if the text is that of a Python file; otherwise `None`.
    python: Option<&'a Path>,
    ending: String,
}

impl<'a> Visible<'a> {
    /// Creates a text that does not come from a file of the repo, such as `paper.md`.
    pub fn text(name: &str, bytes: &'a [u8]) -> Self {
        Self { name: name.to_owned(), bytes: bytes.into(), python: None, ending: String::new() }
    }

    /// Creates the text of a file of the repo. `path` is the file's path in the repo, and `bytes` are its contents,
    /// which the caller must decompress for a `.gz` file.
    pub fn file(path: &'a Path, bytes: &'a [u8]) -> Self {
        let ending = |path: &Path| path.extension().map(|it| it.to_string_lossy().to_lowercase()).unwrap_or_default();
        let mut own = ending(path);
        if own == "gz" {
            own = ending(Path::new(path.file_stem().unwrap_or_default()));
        }
        let first_line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let script = first_line.starts_with(b"#!") && first_line.windows(6).any(|part| part == b"python");
        let python = matches!(own.as_str(), "py" | "pyi" | "pyw" | "pyx" | "pxd") || script;
        let bytes = if python { bytes.into() } else { without_tables(bytes) };
        Self { name: path.display().to_string(), bytes, python: python.then_some(path), ending: own }
    }

    fn readings(&self) -> Vec<FileReading<'_>> {
        if self.python.is_some() { of_python(&self.bytes) } else { of_text(&self.bytes, &self.ending) }
    }
}

/// A shingle (sequence of tokens) of the body of a function or region that was found in a file: its index among the
/// body's shingles, and its position in the file if known.
type ShingleHit = (usize, Option<Range<usize>>);

/// A search with its results so far.
pub(super) struct LeakSearch<'a> {
    bodies: &'a Bodies,
    functions: Vec<SearchedUnit>,
    /// For each pair of maskable functions, the share of the first one's body that was found in the second one.
    between: BTreeMap<(usize, usize), f64>,
}

/// A maskable function, or a region of code that the paper marks as maskable, to search for.
struct SearchedUnit {
    leak: FunctionLeak,
    /// The file that contains the function or region. The fields below are the function's index in that file (`None`
    /// for a region), and the positions of the body and of the docstring. Code that is found in the body itself does
    /// not count as a leak, because masking removes it; code in the docstring counts.
    path: PathBuf,
    index: Option<usize>,
    body: Range<usize>,
    docstring: Range<usize>,
}

impl<'a> LeakSearch<'a> {
    /// Starts a search.
    pub fn new(loaded: &LoadedPaper, bodies: &'a Bodies) -> Self {
        let functions = loaded.paper.units.iter().enumerate().map(|(place, listed)| {
            let module = loaded.source(place);
            let (index, body, docstring) = match loaded.piece(place) {
                Piece::Function(index) => {
                    let function = &module.functions()[*index];
                    (Some(*index), function.body.clone(), function.docstring.clone())
                }
                Piece::Region(region) => (None, region.range.clone(), None),
            };
            SearchedUnit {
                leak: FunctionLeak {
                    at: listed.at.clone(),
                    containment: 0.0,
                    place: String::new(),
                    kept: 0.0,
                    normalised: 0.0,
                },
                path: module.path().to_owned(),
                index,
                body,
                docstring: docstring.unwrap_or(0..0),
            }
        });
        Self { bodies, functions: functions.collect(), between: BTreeMap::new() }
    }

    /// Searches one text for the bodies of all functions and regions.
    pub fn look(&mut self, visible: &Visible<'_>) {
        let mut found: BTreeMap<(usize, usize), Vec<ShingleHit>> = BTreeMap::new();
        for reading in visible.readings() {
            self.bodies.hits(&reading.tokens(), &mut |ShingleOccurrence { function, way, shingle, at }| {
                if !self.functions[function].hides(visible.python, &at) {
                    found.entry((function, way)).or_default().push((shingle, reading.in_place.then_some(at)));
                }
            });
        }
        if found.is_empty() {
            return;
        }
        let module = visible.python.and_then(|path| Module::parse(path, visible.bytes.to_vec()).ok());
        for ((function, way), hits) in found {
            let size = self.bodies.sizes[function][way];
            let distinct: HashSet<usize> = hits.iter().map(|(shingle, _)| *shingle).collect();
            let containment = share(distinct.len(), size);
            let by_function = module.as_ref().map(|module| holders(module, &hits)).unwrap_or_default();
            for (&holder, shingles) in &by_function {
                let listed = |it: &SearchedUnit| it.index == Some(holder) && Some(it.path.as_path()) == visible.python;
                if let Some(other) = self.functions.iter().position(listed)
                    && other != function
                {
                    let known = self.between.entry((function, other)).or_insert(0.0);
                    *known = known.max(share(shingles.len(), size));
                }
            }
            let leak = &mut self.functions[function].leak;
            let by_way = if way == 0 { &mut leak.kept } else { &mut leak.normalised };
            *by_way = by_way.max(containment);
            if containment > leak.containment {
                leak.containment = containment;
                leak.place = place(visible, module.as_ref(), &by_function, distinct.len(), &hits);
            }
        }
    }

    /// Returns the result for each function and region, and the pairs of them with similar bodies.
    pub fn finish(self) -> (Vec<FunctionLeak>, Vec<SimilarPair>) {
        let part = |of: usize, within: usize| self.between.get(&(of, within)).copied().unwrap_or(0.0);
        let mut pairs = Vec::new();
        for one in 0..self.functions.len() {
            for other in one + 1..self.functions.len() {
                let containment = (part(one, other), part(other, one));
                if containment.0.max(containment.1) >= LEAK {
                    let name = |place: usize| self.functions[place].leak.at.clone();
                    pairs.push(SimilarPair { functions: (one, other), at: (name(one), name(other)), containment });
                }
            }
        }
        (self.functions.into_iter().map(|function| function.leak).collect(), pairs)
    }
}

impl SearchedUnit {
    /// Whether masking the function or region removes the bytes `at` of the file with this path.
    fn hides(&self, path: Option<&Path>, at: &Range<usize>) -> bool {
        let overlaps = at.start < self.body.end && self.body.start < at.end;
        let in_docstring = self.docstring.start <= at.start && at.end <= self.docstring.end;
        path == Some(self.path.as_path()) && overlaps && !in_docstring
    }
}

/// Returns a share rounded to four decimals, to keep stored results short.
fn share(part: usize, whole: usize) -> f64 {
    (1e4 * part as f64 / whole.max(1) as f64).round() / 1e4
}

/// For each function of a module, returns the shingles that were found in it. A shingle in a nested function is also in
/// the functions around that function.
fn holders(module: &Module, hits: &[ShingleHit]) -> HashMap<usize, HashSet<usize>> {
    let mut holders: HashMap<usize, HashSet<usize>> = HashMap::new();
    for (shingle, at) in hits {
        let Some(at) = at else { continue };
        for (index, function) in module.functions().iter().enumerate() {
            if function.whole.start <= at.start && at.end <= function.whole.end {
                holders.entry(index).or_default().insert(*shingle);
            }
        }
    }
    holders
}

/// Returns the place to report for the hits: the innermost function that contains at least half of the shingles found
/// in this text, or else the line of the first hit.
fn place(
    visible: &Visible<'_>,
    module: Option<&Module>,
    holders: &HashMap<usize, HashSet<usize>>,
    all: usize,
    hits: &[ShingleHit],
) -> String {
    let most = holders.iter().max_by_key(|(index, shingles)| (shingles.len(), **index));
    if let (Some((index, shingles)), Some(module)) = (most, module)
        && 2 * shingles.len() >= all
    {
        return module.selector(*index).to_string();
    }
    let first = hits.iter().filter_map(|(_, at)| at.as_ref()).map(|at| at.start).min();
    match first {
        Some(start) => {
            let line = visible.bytes[..start].split(|&byte| byte == b'\n').count();
            format!("{}:{line}", visible.name)
        }
        None => visible.name.clone(),
    }
}
