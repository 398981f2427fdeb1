//! The masked functions of a sample as a page shows them: as they were, as agents are given them, as one left them.

use super::patched::patched;
use crate::code::{Module, Selector};
use crate::error::Result;
use crate::run::family::Part;
use crate::suite::LoadedPaper;

/// What is masked in a sample: the files that hold these functions, with them masked, and the functions.
struct Masked {
    files: Vec<(String, String)>,
    selectors: Vec<Selector>,
}

impl Masked {
    fn of(loaded: &LoadedPaper, functions: &[usize]) -> Result<Self> {
        let files = loaded.masked(functions)?.into_iter();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let selector = |&function: &usize| {
            let (module, place) = loaded.source(function);
            module.selector(place)
        };
        Ok(Self {
            files: files.map(|file| (file.path.to_string_lossy().into_owned(), text(&file.bytes))).collect(),
            selectors: functions.iter().map(selector).collect(),
        })
    }

    fn file(&self, path: &str) -> Option<&String> {
        self.files.iter().find(|(other, _)| other == path).map(|(_, text)| text)
    }
}

/// The functions, and each of them masked.
pub fn parts(loaded: &LoadedPaper, functions: &[usize]) -> Result<Vec<Part>> {
    let masked = Masked::of(loaded, functions)?;
    let part = |(&function, selector): (&usize, &Selector)| {
        let (module, place) = loaded.source(function);
        let text = masked.file(&selector.file.to_string_lossy());
        Part {
            at: loaded.paper.functions[function].at.clone(),
            original: function_text(module, place),
            masked: text.and_then(|text| function_in(text, selector).ok()).unwrap_or_default(),
        }
    };
    Ok(functions.iter().zip(&masked.selectors).map(part).collect())
}

/// The functions as a patch leaves them; why some cannot be shown.
pub fn written(
    loaded: &LoadedPaper,
    functions: &[usize],
    patch: &str,
) -> Result<(Vec<Option<String>>, Option<String>)> {
    let masked = Masked::of(loaded, functions)?;
    let mut problem = None;
    let written = masked.selectors.iter().map(|selector| {
        let path = selector.file.to_string_lossy();
        let before = masked.file(&path)?;
        let after = patched(patch, &path, before).and_then(|text| function_in(&text, selector));
        after.map_err(|why| problem = Some(why)).ok()
    });
    let written = written.collect();
    Ok((written, problem.map(|why| format!("{why} (paper `{}`)", loaded.paper.id))))
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
