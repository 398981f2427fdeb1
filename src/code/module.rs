//! A parsed Python file: its bytes and the offsets of its functions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Tree};

use super::encoding::{Encoding, line_of};
use super::function::{Function, last_part};
use super::selector::{Selector, split_number};
use super::walk::{self, Contents};
use crate::error::{Error, Result};

const REFUSED: &str = "a file that does not parse cannot be masked safely: correct it, or leave it out of the manifest";

/// A parsed Python file. Contains its bytes and offsets into them, but no syntax tree.
#[derive(Debug, Clone)]
pub struct Module {
    path: PathBuf,
    source: Vec<u8>,
    functions: Vec<Function>,
    /// The range of the called expression of each call, including calls outside of functions.
    calls: Vec<std::ops::Range<usize>>,
    pub(super) encoding: Encoding,
}

impl Module {
    /// Parses a file's bytes. `path` is used only in selectors and messages; no file is read.
    ///
    /// # Errors
    /// Returns an error of kind `Suite`, with file and line, for a syntax error, bytes that are not in the declared
    /// encoding, or an encoding that does not extend ASCII. Offsets in such files would be guesses.
    pub fn parse(path: impl Into<PathBuf>, source: Vec<u8>) -> Result<Self> {
        let path = path.into();
        let encoding = Encoding::detect(&source).map_err(|(message, line)| {
            let hint = "save the file as UTF-8, or declare its encoding in a comment on the first line (PEP 263)";
            Error::suite(message).at(&path, Some(line)).hint(hint)
        })?;
        let tree = parse_readable(&encoding.readable(&source))?;
        if tree.root_node().has_error() {
            return Err(syntax_error(&path, &source, &tree));
        }
        let Contents { mut functions, calls, unreadable_name, bad_block } =
            walk::walk(&tree, &source, |bytes| encoding.name(bytes));
        if let Some(line) = unreadable_name {
            return Err(Error::suite(
                "cannot decode a non-ASCII name: names are read only from UTF-8 and Latin-1 files",
            )
            .at(&path, Some(line))
            .hint("save the file as UTF-8"));
        }
        if let Some((line, what)) = bad_block {
            return Err(Error::suite(format!("syntax error: {what}")).at(&path, Some(line)).hint(REFUSED));
        }
        for function in &mut functions {
            // Calls that begin before the body are in the signature; leave them out.
            let body = function.header.end;
            let signature = calls[function.calls.clone()].iter().take_while(|call| call.start < body).count();
            function.calls.start += signature;
        }
        number_duplicates(&mut functions);
        Ok(Self { path, source, functions, calls, encoding })
    }

    /// Reads and parses the file `root/path`.
    ///
    /// # Errors
    /// Returns the errors of [`Module::parse`], and an error of kind `Machine` if the file cannot be read.
    pub fn read(root: &Path, path: &Path) -> Result<Self> {
        let full = root.join(path);
        let source = std::fs::read(&full).map_err(|error| Error::io("read", &full, error))?;
        Self::parse(path, source)
    }

    /// Path of the file, as given to [`Module::parse`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's bytes.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// All functions and methods, in the order of their `def`. Other methods of [`Module`] take indices into this list.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the index of the function called `name`: a qualified name, with `#k` if the file has several of that
    /// name.
    ///
    /// # Errors
    /// Returns an error of kind `Suite` if there is no such function (the hint lists similar names) or several (the
    /// hint lists them with their lines).
    pub fn find(&self, name: &str) -> Result<usize> {
        let (bare, number) = split_number(name).unwrap_or((name, None));
        let matches: Vec<usize> = (0..self.functions.len()).filter(|&at| self.functions[at].name == bare).collect();
        match (matches.as_slice(), number) {
            ([one], None) => Ok(*one),
            ([], _) => Err(self.not_found(name, bare)),
            (several, None) => {
                let list = several.iter().map(|&at| self.with_line(at));
                Err(Error::suite(format!("`{name}` matches {} functions", several.len()))
                    .at(&self.path, Some(self.functions[several[0]].first_line))
                    .hint(format!("use {}", either(list))))
            }
            (several, Some(number)) => several.get(number.wrapping_sub(1)).copied().ok_or_else(|| {
                let message = match several.len() {
                    1 => format!("there is no `{name}`, because the file has only one function `{bare}`"),
                    count => format!("there is no `{name}`, because the file has only {count} functions `{bare}`"),
                };
                Error::suite(message)
                    .at(&self.path, None)
                    .hint(format!("use {}", either(several.iter().map(|&at| self.with_line(at)))))
            }),
        }
    }

    /// Returns the selector of this function. `function` is an index into [`Module::functions`].
    #[must_use]
    pub fn selector(&self, function: usize) -> Selector {
        Selector::new(&self.path, self.functions[function].label())
    }

    /// Returns the functions that the body calls, including calls in nested functions, in source order. A call is given
    /// by the dotted name as written, by `.name` for a method of an expression, or otherwise by the called expression
    /// on one line.
    #[must_use]
    pub fn calls(&self, function: usize) -> Vec<String> {
        let calls = &self.calls[self.functions[function].calls.clone()];
        calls.iter().map(|call| call_name(&self.text(call.clone()))).collect()
    }

    /// Returns the signature as written, from `def` or `async` to the colon, without decorators.
    #[must_use]
    pub fn header(&self, function: usize) -> String {
        self.text(self.functions[function].header.clone())
    }

    /// Returns the decorators as written, including `@`.
    #[must_use]
    pub fn decorators(&self, function: usize) -> Vec<String> {
        self.functions[function].decorators.iter().map(|range| self.text(range.clone())).collect()
    }

    /// Returns the docstring as written, including quotes.
    #[must_use]
    pub fn docstring(&self, function: usize) -> Option<String> {
        self.functions[function].docstring.clone().map(|range| self.text(range))
    }

    fn text(&self, range: std::ops::Range<usize>) -> String {
        self.encoding.text(&self.source[range])
    }

    fn with_line(&self, function: usize) -> String {
        let function = &self.functions[function];
        format!("`{}` (line {})", function.label(), function.first_line)
    }

    fn not_found(&self, name: &str, bare: &str) -> Error {
        let mut near: Vec<String> =
            self.functions.iter().filter(|it| last_part(&it.name) == last_part(bare)).map(Function::label).collect();
        if near.is_empty() {
            let labels: Vec<String> = self.functions.iter().map(Function::label).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            near = similar::get_close_matches(bare, &labels, 5, 0.6).into_iter().map(str::to_owned).collect();
        }
        near.truncate(5);
        let hint = if near.is_empty() {
            format!("`autoexperiment index {}` lists its functions", self.path.display())
        } else {
            format!("did you mean {}?", either(near.iter().map(|name| format!("`{name}`"))))
        };
        Error::suite(format!("no function `{name}` in this file")).at(&self.path, None).hint(hint)
    }
}

fn parse_readable(text: &[u8]) -> Result<Tree> {
    walk::parse(text).ok_or_else(|| Error::internal("the Python grammar does not fit the tree-sitter library"))
}

/// Numbers functions that have the same qualified name.
fn number_duplicates(functions: &mut [Function]) {
    let mut seen: HashMap<&str, Vec<usize>> = HashMap::with_capacity(functions.len());
    for (index, function) in functions.iter().enumerate() {
        seen.entry(&function.name).or_default().push(index);
    }
    let several: Vec<Vec<usize>> = seen.into_values().filter(|indices| indices.len() > 1).collect();
    for indices in several {
        for (number, index) in indices.into_iter().enumerate() {
            functions[index].number = Some(number + 1);
        }
    }
}

fn syntax_error(path: &Path, source: &[u8], tree: &Tree) -> Error {
    let node = first_error(tree.root_node());
    let at = node.start_byte().min(source.len());
    let message =
        if node.is_missing() { format!("syntax error: missing `{}`", node.kind()) } else { "syntax error".into() };
    Error::suite(message).at(path, Some(line_of(source, at))).hint(REFUSED)
}

/// Returns the first node of the tree that marks a syntax error.
fn first_error(mut node: Node<'_>) -> Node<'_> {
    while !node.is_error() && !node.is_missing() {
        let mut cursor = node.walk();
        let next = node.children(&mut cursor).find(Node::has_error);
        match next {
            Some(child) => node = child,
            None => break,
        }
    }
    node
}

fn call_name(text: &str) -> String {
    let dotted = |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '.');
    if dotted(text) {
        return text.to_owned();
    }
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.rsplit_once('.') {
        Some((_, method)) if !method.is_empty() && dotted(method.trim()) => format!(".{}", method.trim()),
        _ => one_line,
    }
}

/// Formats a list as "`a`, `b` or `c`".
fn either(items: impl IntoIterator<Item = String>) -> String {
    let mut items: Vec<String> = items.into_iter().collect();
    match items.pop() {
        None => String::new(),
        Some(last) if items.is_empty() => last,
        Some(last) => format!("{} or {last}", items.join(", ")),
    }
}

#[cfg(test)]
mod tests;
