//! What is known of one function of a [`Module`](super::Module).

use std::ops::Range;

/// A function or method, as byte ranges of its module's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Qualified name: Python's `__qualname__` without `<locals>`, as `Class.method` or `outer.inner`.
    pub name: String,
    /// Number (from 1) among the functions of the same qualified name, where there are several.
    pub number: Option<usize>,
    /// From the first decorator, or else `def` or `async`, to the end of the body.
    pub whole: Range<usize>,
    /// The signature: from `def` or `async` to the colon, inclusive. Decorators are not part of it.
    pub header: Range<usize>,
    /// What a mask replaces: from the header's colon (or a `# type:` comment behind it) to the end of the last
    /// statement's line and of the comment lines after it that are indented deeper than `def`. The line ending
    /// there is not part of it.
    pub body: Range<usize>,
    /// The docstring as written, quotes and parentheses included.
    pub docstring: Option<Range<usize>>,
    /// Each decorator as written, `@` included.
    pub decorators: Vec<Range<usize>>,
    /// Line (from 1) of `def` or `async`.
    pub first_line: usize,
    /// Line (from 1) on which the last statement ends; comments after it do not count.
    pub last_line: usize,
    /// Whether it is an `async def`.
    pub is_async: bool,
    /// Whether it yields: its own body, not that of a nested function or lambda.
    pub is_generator: bool,
    /// The function that this one is nested in, directly or through classes: an index into the module's functions.
    pub parent: Option<usize>,
    /// Qualified name of the class whose body defines it.
    pub class: Option<String>,
    /// Its share of the module's calls, nested functions included.
    pub(super) calls: Range<usize>,
    /// Indentation of a masked body's lines.
    pub(super) indent: Vec<u8>,
    /// Line ending of a masked body's lines.
    pub(super) line_ending: &'static [u8],
}

impl Function {
    /// The name by which [`Module::find`](super::Module::find) finds exactly this one: with `#k` where needed.
    #[must_use]
    pub fn label(&self) -> String {
        self.number.map_or_else(|| self.name.clone(), |number| format!("{}#{number}", self.name))
    }

    /// Number of lines from `def` to the end of the last statement; decorators and trailing comments do not count.
    #[must_use]
    pub const fn lines(&self) -> usize {
        self.last_line - self.first_line + 1
    }

    /// Whether one of the two is nested in the other, or both are the same: they cannot be masked together.
    #[must_use]
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.whole.start < other.whole.end && other.whole.start < self.whole.end
    }
}

/// The last part of a dotted name: `fit` of `Outer.Inner.fit`.
#[must_use]
pub fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
