//! A function of a [`Module`](super::Module).

use std::ops::Range;

/// A function or method, as byte ranges of its module's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Qualified name, which is Python's `__qualname__` without `<locals>`: `Class.method` or `outer.inner`.
    pub name: String,
    /// Number (from 1) among the functions of the same qualified name, if there are several.
    pub number: Option<usize>,
    /// Range from the first decorator, or else `def` or `async`, to the end of the body.
    pub whole: Range<usize>,
    /// The signature, from `def` or `async` to the colon, inclusive, without decorators.
    pub header: Range<usize>,
    /// The range that a mask replaces: from the header's colon (or a `# type:` comment after it) to the end of the last
    /// statement's line and of the comment lines below it that are indented deeper than `def`, without the last line
    /// ending.
    pub body: Range<usize>,
    /// The docstring as written, including quotes and parentheses.
    pub docstring: Option<Range<usize>>,
    /// The decorators as written, including `@`.
    pub decorators: Vec<Range<usize>>,
    /// Line (from 1) of `def` or `async`.
    pub first_line: usize,
    /// Line (from 1) on which the last statement ends. Comments after it do not count.
    pub last_line: usize,
    /// Whether the function is an `async def`.
    pub is_async: bool,
    /// Whether the function's own body yields, not counting nested functions and lambdas.
    pub is_generator: bool,
    /// The function that this one is nested in, directly or through classes, as an index into the module's functions.
    pub parent: Option<usize>,
    /// Qualified name of the class whose body defines the function.
    pub class: Option<String>,
    /// The range of the module's calls that this function contains, including nested functions.
    pub(super) calls: Range<usize>,
    /// Indentation of the lines of a masked body.
    pub(super) indent: Vec<u8>,
    /// Line ending of the lines of a masked body.
    pub(super) line_ending: &'static [u8],
}

impl Function {
    /// Returns the name by which [`Module::find`](super::Module::find) finds exactly this function, with `#k` if
    /// needed.
    #[must_use]
    pub fn label(&self) -> String {
        self.number.map_or_else(|| self.name.clone(), |number| format!("{}#{number}", self.name))
    }

    /// Number of lines from `def` to the end of the last statement, without decorators and trailing comments.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.last_line - self.first_line + 1
    }

    /// Whether one of the functions is nested in the other, or both are the same, so that they cannot be masked
    /// together.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.whole.start < other.whole.end && other.whole.start < self.whole.end
    }
}

/// Returns the last part of a dotted name: `fit` for `Outer.Inner.fit`.
#[must_use]
pub fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
