//! The masked functions of a sample as shown on pages: original, masked, and as left by an agent. For a region, the
//! function around it is shown.

use std::path::PathBuf;

use super::patched::patched;
use crate::code::Module;
use crate::error::Result;
use crate::run::family::WrittenPart;
use crate::suite::{LoadedPaper, MaskedFile};

/// The part of a file that is shown: one function or, if `function` is `None`, the whole file.
struct FunctionLocation {
    file: PathBuf,
    function: Option<String>,
}

fn place(loaded: &LoadedPaper, unit: usize) -> FunctionLocation {
    let module = loaded.source(unit);
    let label = |index: usize| module.functions()[index].label();
    FunctionLocation { file: module.path().to_owned(), function: loaded.function_of(unit).map(label) }
}

/// Returns the text of the file at `place` with the sample's parts masked; `None` if the sample masks nothing there.
fn masked(files: &[MaskedFile], place: &FunctionLocation) -> Option<String> {
    let file = files.iter().find(|file| file.path == place.file)?;
    Some(String::from_utf8_lossy(&file.bytes).into_owned())
}

/// Returns the functions and regions that a sample masks, each with its original and its masked text.
pub fn parts(loaded: &LoadedPaper, units: &[usize]) -> Result<Vec<WrittenPart>> {
    let files = loaded.masked(units)?;
    let part = |&unit: &usize| {
        let place = place(loaded, unit);
        let original = String::from_utf8_lossy(loaded.source(unit).source()).into_owned();
        WrittenPart {
            at: loaded.paper.units[unit].at.clone(),
            original: excerpt(&original, &place).unwrap_or_default(),
            masked: masked(&files, &place).and_then(|text| excerpt(&text, &place).ok()).unwrap_or_default(),
        }
    };
    Ok(units.iter().map(part).collect())
}

/// Returns the texts of the masked functions and regions after applying a patch; `None` for those that cannot be shown.
/// If a text cannot be shown, also returns the reason; if there are several such texts, the reason for one of them.
pub fn written(loaded: &LoadedPaper, units: &[usize], patch: &str) -> Result<(Vec<Option<String>>, Option<String>)> {
    let files = loaded.masked(units)?;
    let mut problem = None;
    let written = units.iter().map(|&unit| {
        let place = place(loaded, unit);
        let before = masked(&files, &place)?;
        let after = patched(patch, &place.file.to_string_lossy(), &before).and_then(|text| excerpt(&text, &place));
        after.map_err(|why| problem = Some(why)).ok()
    });
    let written = written.collect();
    Ok((written, problem.map(|why| format!("{why} (paper `{}`)", loaded.paper.id))))
}

/// Extracts a function's text from a file.
fn excerpt(text: &str, place: &FunctionLocation) -> Result<String, String> {
    let Some(name) = &place.function else { return Ok(text.to_owned()) };
    let module = Module::parse(&place.file, text.as_bytes().to_vec()).map_err(|error| error.to_string())?;
    let index = module.find(name).map_err(|error| error.to_string())?;
    Ok(function_text(&module, index))
}

/// A function's text, from the beginning of its first line to its end.
fn function_text(module: &Module, place: usize) -> String {
    let function = &module.functions()[place];
    let source = module.source();
    let begin = source[..function.whole.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    // If other code precedes the function on its line, begin at the function itself.
    let is_blank = source[begin..function.whole.start].iter().all(u8::is_ascii_whitespace);
    let begin = if is_blank { begin } else { function.whole.start };
    String::from_utf8_lossy(&source[begin..function.whole.end]).into_owned()
}
