//! Excerpts of the code in prompts: the missing function, its file, other files.

use std::ops::Range;
use std::path::Path;

use super::{Code, CodeChoice};
use crate::agent::TaskFunction;
use crate::agent::prompts::fixed::{MARKER, Missing, MissingPart, STAND_IN};
use crate::agent::retrieval::RetrievalQuery;
use crate::code::{Function, Module, last_part};

/// Maximum bytes of a file's outline. If the outline is longer, only the part around the function is shown.
const MOST_SHOWN: usize = 12_000;
/// Maximum lines in the body of a method that the outline keeps because the method sets attributes.
const MOST_LINES: usize = 15;

/// Returns the lines that masking leaves of a function, without the indentation of the function's class.
pub(super) fn stub(function: &TaskFunction, masked: &Code) -> Result<String, String> {
    source(function, masked).ok_or_else(|| "is not there".to_owned())
}

/// Describes the masked function at index `function` of a file for a prompt; `name` is the function's name without its
/// class. `description` is the function's description in the manifest. If the function has a docstring, the docstring
/// is shown in place of the first paragraph of `description`, which only sums up the function.
pub(super) fn described(name: &str, module: &Module, function: usize, description: &str) -> Missing {
    let class = module.functions()[function].class.as_deref();
    let called =
        class.map_or_else(|| format!("function `{name}`"), |class| format!("method `{name}` of the class `{class}`"));
    let docstring = module.docstring(function).unwrap_or_default();
    let text = docstring.trim_start_matches(|character: char| character.is_ascii_alphabetic());
    let text = text.trim_matches(['"', '\'']).trim();
    // If there is a docstring, append the description's later paragraphs, such as examples, because the docstring lacks
    // them.
    let more = description.split_once("\n\n").filter(|_| !text.is_empty()).map_or("", |(_, more)| more);
    let lines = if text.is_empty() { description.trim() } else { text }.lines();
    let docstring = lines.chain(more.lines()).map(|line| line.trim().to_owned()).collect();
    Missing { called, header: module.header(function), docstring, part: None }
}

/// Extends the result of [`described`] for a function of which only a part is missing. A placeholder at `at` stands in
/// place of the part, which has `lines` lines.
pub(super) fn described_part(
    missing: Missing,
    module: &Module,
    function: usize,
    at: &Range<usize>,
    lines: usize,
) -> Missing {
    let whole = &module.functions()[function].whole;
    let source = module.source();
    let start = source[..whole.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let indent: Vec<u8> = source[at.clone()].iter().copied().take_while(|byte| b" \t".contains(byte)).collect();
    let text = [&source[start..at.start], &indent, MARKER.as_bytes(), &source[at.end..whole.end.max(at.end)]].concat();
    let part = MissingPart {
        function: dedented(&String::from_utf8_lossy(&text)),
        lines: if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") },
    };
    Missing { called: format!("missing part of the {}", missing.called), part: Some(part), ..missing }
}

/// Returns a function's current lines in the code.
pub(super) fn source(function: &TaskFunction, code: &Code) -> Option<String> {
    let wanted = RetrievalQuery::new(function, code).ok()?;
    let module = code.modules.get(&wanted.file)?;
    let it = module.functions().get(wanted.function)?;
    let bytes = module.source();
    let start = bytes[..it.whole.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    Some(dedented(&String::from_utf8_lossy(&bytes[start..it.body.end])))
}

/// Removes the first line's indentation from all lines.
fn dedented(text: &str) -> String {
    let indent = &text[..text.len() - text.trim_start_matches([' ', '\t']).len()];
    text.lines().map(|line| line.strip_prefix(indent).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the part of the function's file to show, and the signatures of the functions that this part omits. Usually
/// this is the outline, or the part around the function if the outline is too long. With [`CodeChoice::Full`] it is the
/// whole file, with [`CodeChoice::None`] only the imports and the function. The part is kept small because small models
/// copy a file that they are shown.
pub(super) fn visible_code(module: &Module, function: usize, choice: CodeChoice) -> (String, Vec<String>) {
    let text = String::from_utf8_lossy(module.source()).into_owned();
    if choice == CodeChoice::Full {
        return (text, Vec::new());
    }
    // Remove the lines that replace the bodies of masked functions, because small models copy these lines, too.
    let unmasked = |text: &str| {
        let lines = text.split_inclusive('\n').filter(|line| line.trim() != STAND_IN);
        lines.collect::<String>()
    };
    let (outline, left_out) = outline(module, function);
    let outline = unmasked(&outline);
    if choice != CodeChoice::None && outline.len() <= MOST_SHOWN {
        return (outline, left_out);
    }
    let it = &module.functions()[function];
    let imports: Vec<&str> =
        text.lines().filter(|line| line.starts_with("import ") || line.starts_with("from ")).collect();
    // Find the part by line numbers, because byte offsets are wrong in files that are not UTF-8.
    let lines: Vec<&str> = text.lines().collect();
    let around = if choice == CodeChoice::None { 0 } else { 60 };
    let own = it.first_line.saturating_sub(1 + it.decorators.len());
    let first = own.saturating_sub(around);
    let end = (it.last_line + around).min(lines.len());
    let class = it.class.as_ref().map(|class| {
        let class = last_part(class);
        let begins =
            |line: &&&str| line.trim_start().strip_prefix("class ").is_some_and(|rest| rest.starts_with(class));
        lines[..first.min(lines.len())]
            .iter()
            .rev()
            .find(begins)
            .map_or_else(String::new, |line| format!("{line}\n    # ...\n"))
    });
    let before = lines.get(first..own).unwrap_or_default().join("\n");
    let after = lines.get(it.last_line..end).unwrap_or_default().join("\n");
    let part = format!("{before}\n{}\n{after}\n", place_of(module, it));
    let part = format!("{}\n\n# ...\n\n{}{part}\n", imports.join("\n"), class.unwrap_or_default());
    (unmasked(&part), Vec::new())
}

/// Returns the file's text without its other functions, and the signatures of the removed functions with the first
/// lines of their docstrings. Other functions are removed completely: a small model that sees functions without bodies
/// writes its own function without a body. Methods that show an object's attributes are kept: constructors, and short
/// methods that set attributes, in the function's class and its bases.
fn outline(module: &Module, function: usize) -> (String, Vec<String>) {
    let (functions, source) = (module.functions(), module.source());
    let target = &functions[function];
    let family = target.class.as_deref().map_or_else(Vec::new, |class| family(module, class));
    let stays = |index: usize| {
        let it = &functions[index];
        let related = it.class.as_deref().is_some_and(|class| family.iter().any(|name| name == last_part(class)));
        it.overlaps(target) || (related && sets_attributes(module, it))
    };
    let (mut bytes, mut at, mut left_out) = (Vec::new(), 0, Vec::new());
    for (index, it) in functions.iter().enumerate().filter(|(_, it)| it.parent.is_none()) {
        if (stays(index) && index != function) || it.whole.start < at {
            continue;
        }
        bytes.extend_from_slice(source[at..it.whole.start].trim_ascii_end());
        bytes.extend_from_slice(b"\n\n");
        if index == function {
            bytes.extend_from_slice(format!("{}\n\n", place_of(module, it)).as_bytes());
        } else {
            left_out.push(signature(module, index));
        }
        let rest = &source[it.body.end.max(it.whole.end)..];
        at = source.len() - rest.len() + rest.iter().take_while(|&&byte| byte == b'\n' || byte == b'\r').count();
    }
    bytes.extend_from_slice(&source[at..]);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    while text.contains("\n\n\n\n") {
        text = text.replace("\n\n\n\n", "\n\n\n");
    }
    (format!("{}\n", text.trim_matches('\n')), left_out)
}

/// Returns the names of a class and of its bases in the same file, each without its dotted prefix.
fn family(module: &Module, class: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(module.source());
    let is_here = |name: &str| module.functions().iter().any(|it| it.class.as_deref().map(last_part) == Some(name));
    let mut found = vec![last_part(class).to_owned()];
    let mut at = 0;
    while let Some(header) = found.get(at).map(|name| format!("class {name}(")) {
        at += 1;
        let listed = text.lines().filter_map(|line| line.trim_start().strip_prefix(&header));
        for base in listed.flat_map(|rest| rest.split([',', ')'])).map(|base| last_part(base.trim())) {
            if is_here(base) && !found.iter().any(|name| name == base) {
                found.push(base.to_owned());
            }
        }
    }
    found
}

/// Whether a method shows the attributes of its object: it is a constructor, or a short method that sets attributes.
fn sets_attributes(module: &Module, method: &Function) -> bool {
    let sets = |line: &str| {
        let target = line.trim_start().strip_prefix("self.").and_then(|rest| rest.split_once(" = "));
        target.is_some_and(|(names, _)| !names.contains(['(', '[']))
    };
    let body = String::from_utf8_lossy(&module.source()[method.body.clone()]);
    method.name.ends_with(".__init__") || (body.lines().count() <= MOST_LINES && body.lines().any(sets))
}

/// Returns the comment to show in place of the missing function.
fn place_of(module: &Module, function: &Function) -> String {
    let before = &module.source()[..function.whole.start];
    let depth = before.iter().rev().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let depth = " ".repeat(depth);
    let name = last_part(&function.name);
    format!("{depth}# `{name}` goes here.")
}

/// Describes a function in one line: its name, its parameters, the first line of its docstring.
fn signature(module: &Module, index: usize) -> String {
    let header = module.header(index).split_whitespace().collect::<Vec<_>>().join(" ");
    let parameters = header.find('(').map_or("()", |at| header[at..].trim_end_matches(':'));
    let docstring = module.docstring(index).unwrap_or_default();
    let quote = |character: char| character == '"' || character == '\'' || character.is_whitespace();
    let words = docstring.trim_matches(quote).lines().next().map_or_else(String::new, |line| format!(": {line}"));
    format!("`{}{parameters}`{words}", module.functions()[index].name)
}

/// Returns the paths and complete texts of all Python files except `own`.
pub(super) fn others(code: &Code, own: &Path) -> Vec<(String, String)> {
    let others = code.modules.iter().filter(|(path, _)| path.as_path() != own);
    others
        .map(|(path, module)| (path.display().to_string(), String::from_utf8_lossy(module.source()).into_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_in_a_functions_description_are_shown_whether_or_not_it_has_a_docstring() {
        let file = "def one(x):\n    \"\"\"The docstring.\"\"\"\n    return x\n\n\ndef two(x):\n    return x\n";
        let module = Module::parse("m.py", file.into()).unwrap();
        let lines = |function| described("f", &module, function, "First.\n\nExamples:\n    f(1) returns 1").docstring;
        assert_eq!(lines(0), ["The docstring.", "Examples:", "f(1) returns 1"]);
        assert_eq!(lines(1), ["First.", "", "Examples:", "f(1) returns 1"]);
        assert_eq!(described("f", &module, 0, "First.").docstring, ["The docstring."]);
    }

    #[test]
    fn the_code_shown_for_a_method_keeps_methods_that_set_its_fields_and_omits_other_methods() {
        let file = "class Policy:\n    def start(self, n):\n        self.sums, self.counts = zeros(2, n)\n\n    def see(self, x):\n        self.sums[x] = 1\n\n\n\
                    class Other:\n    def __init__(self):\n        self.x = 1\n\n\n\
                    class Best(Policy):\n    def __init__(self):\n        self.width = 2\n\n    def index(self):\n        \"\"\"An index.\"\"\"\n        raise NotImplementedError\n";
        let module = Module::parse("policies.py", file.into()).unwrap();
        let (text, left_out) = visible_code(&module, module.find("Best.index").unwrap(), CodeChoice::Bm25);
        assert_eq!(
            text,
            "class Policy:\n    def start(self, n):\n        self.sums, self.counts = zeros(2, n)\n\n\
             class Other:\n\n\
             class Best(Policy):\n    def __init__(self):\n        self.width = 2\n\n    # `index` goes here.\n"
        );
        assert_eq!(left_out, ["`Policy.see(self, x)`", "`Other.__init__(self)`"]);
    }
}
