//! A function of a [`Module`](super::Module).

use std::ops::Range;

/// A function or method, as byte ranges of its module's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Qualified name, which is Python's `__qualname__` without `<locals>`: `Class.method` or `outer.inner`.
    pub name: String,
    /// Number (from 1) among the functions of the same qualified name; `None` if there is only one.
    pub number: Option<usize>,
    /// Range from the first decorator (without decorators, from `def` or `async`) to the end of the body.
    pub whole: Range<usize>,
    /// The signature, from `def` or `async` to the colon, inclusive, without decorators.
    pub header: Range<usize>,
    /// The range that a mask replaces. It begins after the header's colon (or a `# type:` comment after the colon). It
    /// ends with the last statement's line, or with the comment lines below it that are indented deeper than `def`. The
    /// last line ending is not included.
    pub body: Range<usize>,
    /// The docstring as written, including quotes and parentheses.
    pub docstring: Option<Range<usize>>,
    /// The decorators as written, including `@`.
    pub decorators: Vec<Range<usize>>,
    /// Line (from 1) of `def` or `async`.
    pub first_line: usize,
    /// Line (from 1) on which the last statement ends. Comments below it do not count.
    pub last_line: usize,
    /// Whether the function is an `async def`.
    pub is_async: bool,
    /// Whether the function's body contains a `yield`, not counting nested functions and lambdas.
    pub is_generator: bool,
    /// Index of the function that directly contains this function, possibly through a class; `None` if it is not
    /// nested.
    pub parent: Option<usize>,
    /// Qualified name of the class whose body defines the function.
    pub class: Option<String>,
    /// The calls in this function, including nested functions, as a range of indices into the module's calls.
    pub(super) calls: Range<usize>,
    /// Indentation of each line of a masked body.
    pub(super) indent: Vec<u8>,
    /// Line ending of each line of a masked body.
    pub(super) line_ending: &'static [u8],
}

impl Function {
    /// Returns a name by which [`Module::find`](super::Module::find) finds exactly this function, with `#k` if the file
    /// has several of that name.
    #[must_use]
    pub fn label(&self) -> String {
        self.number.map_or_else(|| self.name.clone(), |number| format!("{}#{number}", self.name))
    }

    /// Number of lines from `def` to the end of the last statement, without decorators and trailing comments.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.last_line - self.first_line + 1
    }

    /// Whether one function is nested in the other, or both are the same. Such functions cannot be masked together.
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
