//! Splicing: takes a function from a model's reply and puts it into a file in place of the old function.
//!
//! The reply may be a whole file, the function, its class, or only its body, with or without fences, indented in any
//! way, and surrounded by prose. The new body is always used. The new signature and decorators are used only if the
//! parameters have changed. Imports and helpers from the reply are added only if the new code needs them and the file
//! lacks them; if the file uses the same name for something else, they may be put into the function's body. The
//! function's docstring and the rest of the file stay byte for byte: a splice is one replaced range and a list of
//! insertions, and the result must parse.

mod additions;
mod corrected;
mod lines;
mod names;
mod region;
mod reply;
mod taken;

use std::collections::BTreeSet;
use std::ops::Range;

use super::extent::start_of_line;
use super::function::{Function, last_part};
use super::module::Module;
use additions::NeededNames;
use lines::{body_lines, lines};
use names::{attributes_of, mentioned, needed, parameters, same_parameters};
use taken::FunctionFromReply;

/// A file into which a model's function was spliced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplicedFile {
    /// The file's new bytes.
    pub bytes: Vec<u8>,
    /// Names of the imports and helpers that were added.
    pub added: Vec<String>,
    /// Whether the signature comes from the reply.
    pub new_signature: bool,
    /// Ranges of the old bytes and their replacements, in order and without overlaps.
    pub edits: Vec<(Range<usize>, Vec<u8>)>,
}

impl Module {
    /// Returns the file with the reply's version of `function`, an index into [`Module::functions`].
    ///
    /// # Errors
    /// Returns a message for the model if the reply does not contain the function, or if the function
    /// contains no code or does not parse.
    pub fn splice(&self, function: usize, reply: &str) -> Result<SplicedFile, String> {
        let old = self.functions().get(function).ok_or("there is no such function in the file")?;
        let taken = self.take(old, function, reply)?;
        self.put(old, function, &taken)
    }

    /// Same as [`Module::splice`], but refuses a reply that does not define the function by its name. Used after
    /// another reply has replaced the whole function: statements that were written for a part of it are not its whole
    /// body.
    ///
    /// # Errors
    /// Returns the errors of [`Module::splice`], and a message for the model if the reply does not define the function.
    pub fn splice_definition(&self, function: usize, reply: &str) -> Result<SplicedFile, String> {
        let old = self.functions().get(function).ok_or("there is no such function in the file")?;
        let taken = self.take(old, function, reply)?;
        if !taken.defines(old) {
            let name = last_part(&old.name);
            return Err(format!(
                "the reply does not define `{name}`: another reply has already replaced the whole function, so only a \
                 whole function can take its place"
            ));
        }
        self.put(old, function, &taken)
    }

    /// Applies the edits, and checks that the result parses and contains the function called `label`.
    fn proved(&self, mut spliced: SplicedFile, label: Option<&str>) -> Result<SplicedFile, String> {
        spliced.edits.sort_by_key(|(range, _)| (range.start, range.end));
        spliced.bytes = apply(self.source(), &spliced.edits);
        let after = Self::parse(self.path(), spliced.bytes.clone())
            .map_err(|error| format!("the code does not fit into the file: {error}"))?;
        if let Some(label) = label {
            after
                .find(label)
                .map_err(|_| format!("with the code in it, the file no longer has exactly one `{label}`"))?;
        }
        Ok(spliced)
    }

    /// Returns the file with the reply's function in place of `old`.
    fn put(&self, old: &Function, function: usize, taken: &FunctionFromReply) -> Result<SplicedFile, String> {
        let new = taken.function();
        let ending = String::from_utf8_lossy(old.line_ending).into_owned();
        let indent = String::from_utf8_lossy(&old.indent).into_owned();
        let outer = reply::indent_of(line_before(self.source(), old.header.start)).to_owned();

        let mut text = String::new();
        let mut range = old.body.clone();
        let header = taken.header();
        let (own, theirs) = (parameters(&self.header(function)), parameters(&header));
        let new_signature = !taken.bare && !same_parameters(own.as_deref(), theirs.as_deref());
        if new_signature {
            range = old.header.start..old.body.end;
            let decorators = taken.code.module.decorators(taken.function);
            if !decorators.is_empty() && decorators != self.decorators(function) {
                range.start = old.whole.start;
                for decorator in decorators {
                    text.push_str(&decorator.replace('\n', &ending));
                    text.push_str(&ending);
                    text.push_str(&outer);
                }
            }
            // Keep the function's name in the file; the reply may use another name.
            let header = header.replacen(last_part(&new.name), last_part(&old.name), 1);
            text.push_str(&header.replace('\n', &ending));
        }
        if let Some(docstring) = &old.docstring {
            text.push_str(&ending);
            text.push_str(&indent);
            let own = self.encoding.text(&self.source()[docstring.clone()]);
            text.push_str(&own);
        }

        let siblings = self.siblings(old, taken);
        let wanted = needed_by(taken, new_signature, &siblings);
        let additions = self.additions(taken, wanted, old.whole.start, &indent, &ending)?;
        let body = body_lines(taken);
        for line in additions.in_function.into_iter().chain(body.iter().map(|line| line.place(&indent))) {
            text.push_str(&ending);
            text.push_str(&line);
        }
        text.push_str(&methods(taken, &siblings, &outer, &ending));
        let mut edits = vec![(range, self.encoded(&text)?)];
        edits.extend(additions.edits);
        let mut added = taken.names_of(&siblings);
        added.extend(additions.names);
        self.proved(SplicedFile { bytes: Vec::new(), added, new_signature, edits }, Some(&old.label()))
    }

    /// Returns other methods in the reply that the new method uses and that the class in the file lacks. If the reply
    /// has the new method without its class, these are functions that the method uses as attributes of `self`, `cls` or
    /// its class.
    fn siblings(&self, old: &Function, taken: &FunctionFromReply) -> Vec<usize> {
        let Some(class) = &old.class else { return Vec::new() };
        let functions = taken.code.module.functions();
        let own = taken.function();
        let objects = ["self", "cls", last_part(class)];
        let used = |range: Range<usize>| match own.class {
            Some(_) => mentioned(&taken.code.tree, &taken.code.text, &range),
            None => attributes_of(&taken.code.tree, &taken.code.text, &range, &objects),
        };
        let mut wanted = used(own.whole.start..own.body.end);
        let known: BTreeSet<&str> =
            self.functions().iter().filter(|it| it.class == old.class).map(|it| last_part(&it.name)).collect();
        let mut chosen: Vec<usize> = Vec::new();
        loop {
            let next = (0..functions.len()).find(|&at| {
                let (it, name) = (&functions[at], last_part(&functions[at].name));
                at != taken.function
                    && it.class == own.class
                    && it.parent == own.parent
                    && !known.contains(name)
                    && wanted.contains(name)
                    && !chosen.iter().any(|&other| last_part(&functions[other].name) == name)
            });
            let Some(next) = next else { break };
            wanted.extend(used(functions[next].whole.clone()));
            chosen.push(next);
        }
        chosen.sort_unstable();
        chosen
    }

    /// Encodes a text in the file's encoding.
    fn encoded(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            if !self.encoding.push(character, &mut bytes) {
                return Err(format!(
                    "holds the character `{}`, which the file's encoding lacks",
                    character.escape_unicode()
                ));
            }
        }
        Ok(bytes)
    }
}

/// Returns the names that the reply's function and its new `siblings` need. If the file's signature stays, names in the
/// reply's decorators and annotations do not count.
fn needed_by(taken: &FunctionFromReply, new_signature: bool, siblings: &[usize]) -> NeededNames {
    let (code, new) = (&taken.code, taken.function());
    let in_body = mentioned(&code.tree, &code.text, &(new.header.end..new.body.end));
    let mut all = needed(&code.tree, &code.text, &(new.whole.start..new.body.end));
    if !new_signature {
        all.retain(|name| in_body.contains(name));
    }
    let rebindable = all.intersection(&in_body).cloned().collect();
    for &sibling in siblings {
        all.extend(needed(&code.tree, &code.text, &code.module.functions()[sibling].whole));
    }
    NeededNames { all, rebindable, variables: taken.variables() }
}

/// Returns the text of methods of the reply, indented by `outer`. An empty line precedes each method.
fn methods(taken: &FunctionFromReply, methods: &[usize], outer: &str, ending: &str) -> String {
    let mut text = String::new();
    for &method in methods {
        let whole = &taken.code.module.functions()[method].whole;
        let base = reply::indent_of(line_before(taken.code.text.as_bytes(), whole.start));
        text.push_str(ending);
        for line in lines(&taken.code, whole, base, taken.added_indent()) {
            text.push_str(ending);
            text.push_str(&line.place(outer));
        }
    }
    text
}

/// Returns the part of the line before the offset `at`.
fn line_before(source: &[u8], at: usize) -> &str {
    std::str::from_utf8(&source[start_of_line(source, at)..at]).unwrap_or_default()
}

fn apply(source: &[u8], edits: &[(Range<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(source.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut at = 0;
    for (range, new) in edits {
        bytes.extend_from_slice(&source[at.min(range.start)..range.start]);
        bytes.extend_from_slice(new);
        at = range.end;
    }
    bytes.extend_from_slice(&source[at..]);
    bytes
}

#[cfg(test)]
mod tests;
