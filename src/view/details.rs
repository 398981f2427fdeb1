//! One sample's attempts, whole: trajectories, changes, and what became of the masked functions.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::patched::patched;
use super::reader::Gathered;
use crate::code::{Module, Selector};
use crate::report::html::{AttemptDetails, FunctionDetails, SampleDetails, samples};
use crate::run::{AttemptRecord, is_file_name};
use crate::sample::Sample;
use crate::suite::LoadedPaper;

/// Most bytes of a trajectory or a patch that are read.
const MOST_BYTES: u64 = 16 << 20;

/// Most characters of a patch that are shown.
const MOST_PATCH: usize = 100_000;

/// A sample's paper and what is masked in it.
struct Masked<'a> {
    loaded: &'a LoadedPaper,
    /// The files that hold masked functions, with these masked.
    files: Vec<(String, String)>,
    /// The functions, as the manifest names them.
    selectors: Vec<Selector>,
    functions: Vec<FunctionDetails>,
}

impl Gathered {
    /// All samples that were tried.
    #[must_use]
    pub fn samples(&self) -> usize {
        samples(&self.material).len()
    }

    /// Gives the details of a sample, by its place.
    pub fn details(&self) -> impl Fn(usize) -> SampleDetails + '_ {
        let samples = samples(&self.material);
        move |place| samples.get(place).map_or_else(SampleDetails::default, |sample| self.sample(sample))
    }

    fn sample(&self, entry: &crate::report::html::SampleEntry) -> SampleDetails {
        let masked = self.masked(&entry.id, &entry.paper);
        let attempts = entry.attempts.iter().filter_map(|one| {
            let (origin, record) = match (one.record, one.begun) {
                (Some(record), _) => (self.material.origins.get(record)?, self.material.records.get(record)),
                (None, Some(begun)) => (&self.material.begun.get(begun)?.origin, None),
                (None, None) => return None,
            };
            let mut details = AttemptDetails {
                contender: one.contender,
                attempt: one.attempt,
                state: one.state,
                record: record.map(|record| AttemptRecord { results: serde_json::Map::new(), ..record.clone() }),
                ..AttemptDetails::default()
            };
            let store = self.stores.get(origin.run)?;
            if is_file_name(&origin.agent) && is_file_name(&entry.id) {
                read_events(&store.trajectory(&origin.agent, &entry.id, one.attempt), &mut details);
                read_patch(&store.diff(&origin.agent, &entry.id, one.attempt), masked.as_ref().ok(), &mut details);
            } else {
                details.problems.push("its agent or its sample has a name that is no file's".to_owned());
            }
            Some(details)
        });
        let (id, attempts) = (entry.id.clone(), attempts.collect());
        match masked {
            Ok(masked) => SampleDetails { id, functions: masked.functions, attempts, problem: None },
            Err(problem) => SampleDetails { id, functions: Vec::new(), attempts, problem: Some(problem) },
        }
    }

    /// What is masked in a sample.
    fn masked(&self, sample: &str, paper: &str) -> Result<Masked<'_>, String> {
        let told = |error: crate::error::Error| error.to_string();
        let loaded = match self.papers.get(paper) {
            Some(Ok(loaded)) => loaded.as_ref(),
            Some(Err(why)) => return Err(why.clone()),
            None => return Err(format!("paper `{paper}` was not read")),
        };
        let functions = sample.parse::<Sample>().map_err(told)?.functions;
        loaded.require(&functions).map_err(told)?;
        let files: Vec<(String, String)> = loaded
            .masked(&functions)
            .map_err(told)?
            .into_iter()
            .map(|file| (file.path.to_string_lossy().into_owned(), String::from_utf8_lossy(&file.bytes).into_owned()))
            .collect();
        let (mut selectors, mut shown) = (Vec::new(), Vec::new());
        for &function in &functions {
            let (module, place) = loaded.source(function);
            let selector = module.selector(place);
            let path = selector.file.to_string_lossy().into_owned();
            let masked = files.iter().find(|(other, _)| *other == path);
            let masked = masked.and_then(|(_, text)| function_in(text, &selector).ok()).unwrap_or_default();
            let original = function_text(module, place);
            shown.push(FunctionDetails { at: loaded.paper.functions[function].at.clone(), original, masked });
            selectors.push(selector);
        }
        Ok(Masked { loaded, files, selectors, functions: shown })
    }
}

impl Masked<'_> {
    /// The functions as a patch leaves them; why some cannot be shown.
    fn written(&self, patch: &str) -> (Vec<Option<String>>, Option<String>) {
        let mut problem = None;
        let written = self.selectors.iter().map(|selector| {
            let path = selector.file.to_string_lossy();
            let before = self.files.iter().find(|(other, _)| *other == path).map(|(_, text)| text)?;
            let after = patched(patch, &path, before).and_then(|text| function_in(&text, selector));
            after.map_err(|why| problem = Some(why)).ok()
        });
        let written = written.collect();
        (written, problem.map(|why| format!("{why} (paper `{}`)", self.loaded.paper.id)))
    }
}

/// A function's text in a file.
fn function_in(text: &str, selector: &Selector) -> Result<String, String> {
    let module = Module::parse(&selector.file, text.as_bytes().to_vec()).map_err(|error| error.to_string())?;
    let place = module.find(&selector.name).map_err(|error| error.to_string())?;
    Ok(function_text(&module, place))
}

/// From the beginning of its first line to its end.
fn function_text(module: &Module, place: usize) -> String {
    let function = &module.functions()[place];
    let source = module.source();
    let begin = source[..function.whole.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    // One that shares its line with something else begins with itself.
    let is_blank = source[begin..function.whole.start].iter().all(u8::is_ascii_whitespace);
    let begin = if is_blank { begin } else { function.whole.start };
    String::from_utf8_lossy(&source[begin..function.whole.end]).into_owned()
}

/// The beginning of a file, and whether that is all of it.
fn read(path: &Path) -> std::io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let whole = file.metadata()?.len() <= MOST_BYTES;
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), whole))
}

fn read_events(path: &Path, details: &mut AttemptDetails) {
    let (text, whole) = match read(path) {
        Ok(read) => read,
        Err(error) => return details.problems.push(format!("its trajectory cannot be read: {error}")),
    };
    if !whole {
        details.problems.push(format!("only the first {} MB of its trajectory are shown", MOST_BYTES >> 20));
    }
    let mut broken = 0;
    for line in text.split_inclusive('\n').filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => details.events.push(event),
            Err(_) if !line.ends_with('\n') => {
                details.problems.push("its trajectory is cut off in its last line".to_owned());
            }
            _ => broken += 1,
        }
    }
    if broken > 0 {
        details.problems.push(format!("{broken} line(s) of its trajectory cannot be read and are left out"));
    }
}

fn read_patch(path: &Path, masked: Option<&Masked<'_>>, details: &mut AttemptDetails) {
    let (patch, whole) = match read(path) {
        Ok(read) => read,
        Err(error) => {
            // One that was lost, or is under way, need not have any.
            if matches!(details.state, "pass" | "fail" | "unsupported") {
                details.problems.push(format!("its changes cannot be read: {error}"));
                details.unwritten = Some("its changes cannot be read".to_owned());
            } else {
                details.unwritten = Some("nothing is stored of what it wrote".to_owned());
            }
            return;
        }
    };
    if let Some(masked) = masked {
        (details.written, details.unwritten) = masked.written(&patch);
    }
    let end = patch.char_indices().nth(MOST_PATCH).map(|(at, _)| at);
    details.patch_cut = end.is_some() || !whole;
    if !patch.is_empty() {
        details.patch = Some(end.map_or(patch.as_str(), |end| &patch[..end]).to_owned());
    }
}
