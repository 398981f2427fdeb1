//! Masking: function bodies replaced by a docstring and `raise NotImplementedError`, everything else kept byte for byte.
//!
//! A masked body always has two or three lines of its own, even if the original was on the header's line:
//!
//! ```text
//! def f(x):                         def f(x):
//!     # a hint                          """The docstring, byte for byte, or one made of the description."""
//!     """The docstring."""       →      raise NotImplementedError
//!     return x + 1  # why
//!     # more hints
//! ```
//!
//! Comments between colon and first statement, and after the last statement as long as they are indented deeper than
//! `def`, tell how the body works and go with it; so does a comment behind the colon, unless it is a `# type:` comment,
//! which is part of the signature. Comments above the function stay. A masked generator raises when it is called, not
//! at its first `next()`: it must not run, and whoever calls it learns so at once.

use super::docstring;
use super::module::Module;
use crate::error::{Error, Result};

/// What a masked body holds after the docstring.
const RAISE: &[u8] = b"raise NotImplementedError";

/// A function to mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'text> {
    /// Its index in [`Module::functions`].
    pub function: usize,
    /// Its docstring in the masked text if it has none of its own.
    pub description: Option<&'text str>,
}

impl Module {
    /// The file's bytes with these functions masked, in any order; a splice, nothing is parsed. Time and memory are
    /// those of copying the bytes.
    ///
    /// # Errors
    /// Kind `Suite` when one target is nested in another or named twice; `Internal` for an index out of range.
    pub fn mask(&self, targets: &[Target<'_>]) -> Result<Vec<u8>> {
        let targets = self.in_order(targets)?;
        let source = self.source();
        let extra: usize = targets.iter().map(|target| 64 + target.description.map_or(0, |text| 2 * text.len())).sum();
        let mut masked = Vec::with_capacity(source.len() + extra);
        let mut at = 0;
        for target in targets {
            let body = &self.functions()[target.function].body;
            masked.extend_from_slice(&source[at..body.start]);
            self.push_masked_body(target, &mut masked);
            at = body.end;
        }
        masked.extend_from_slice(&source[at..]);
        Ok(masked)
    }

    /// As [`Module::mask`], and parses the result to prove it: no syntax errors, the masked bodies hold just what
    /// they should, and every other function is where it was, its own bytes unchanged.
    ///
    /// # Errors
    /// As [`Module::mask`]; kind `Internal` when the proof fails.
    pub fn mask_checked(&self, targets: &[Target<'_>]) -> Result<Vec<u8>> {
        let masked = self.mask(targets)?;
        let wrong = |what: String| Error::internal(format!("masking went wrong: {what}")).at(self.path(), None);
        let after =
            Self::parse(self.path(), masked.clone()).map_err(|error| wrong(error.to_string()).because(error))?;
        let mut kept = after.functions().iter();
        let mut inside = 0..0;
        for (index, before) in self.functions().iter().enumerate() {
            if before.whole.start < inside.end {
                continue;
            }
            let label = before.label();
            let now = kept.next().filter(|now| now.name == before.name);
            let now = now.ok_or_else(|| wrong(format!("`{label}` was lost")))?;
            let same = |a: &std::ops::Range<usize>, b: &std::ops::Range<usize>| {
                self.source()[a.clone()] == after.source()[b.clone()]
            };
            if !same(&(before.whole.start..before.header.end), &(now.whole.start..now.header.end)) {
                return Err(wrong(format!("the signature of `{label}` changed")));
            }
            if let Some(target) = targets.iter().find(|target| target.function == index) {
                inside = before.whole.clone();
                let mut body = Vec::new();
                self.push_masked_body(target, &mut body);
                if after.source()[now.body.clone()] != body {
                    return Err(wrong(format!("the body of `{label}` is not what it should be")));
                }
            } else if !targets.iter().any(|target| before.overlaps(&self.functions()[target.function]))
                && !same(&before.whole, &now.whole)
            {
                return Err(wrong(format!("`{label}` changed")));
            }
        }
        match kept.next() {
            Some(extra) => Err(wrong(format!("`{}` appeared", extra.label()))),
            None => Ok(masked),
        }
    }

    /// Whether one of the two functions is nested in the other, or both are the same: a sample holds no such pair.
    #[must_use]
    pub fn overlaps(&self, a: usize, b: usize) -> bool {
        self.functions()[a].overlaps(&self.functions()[b])
    }

    fn in_order<'targets, 'text>(&self, targets: &'targets [Target<'text>]) -> Result<Vec<&'targets Target<'text>>> {
        let functions = self.functions();
        if let Some(target) = targets.iter().find(|target| target.function >= functions.len()) {
            let message = format!("no function {} among the {} of this file", target.function, functions.len());
            return Err(Error::internal(message).at(self.path(), None));
        }
        let mut sorted: Vec<_> = targets.iter().collect();
        sorted.sort_by_key(|target| functions[target.function].body.start);
        for pair in sorted.windows(2) {
            let (outer, inner) = (&functions[pair[0].function], &functions[pair[1].function]);
            if outer.overlaps(inner) {
                let message = if pair[0].function == pair[1].function {
                    format!("`{}` is to be masked twice", outer.label())
                } else {
                    format!("`{}` is nested in `{}`: the two cannot be masked together", inner.label(), outer.label())
                };
                return Err(Error::suite(message)
                    .at(self.path(), Some(inner.first_line))
                    .hint("mask one of them; masking the outer one removes the inner one too"));
            }
        }
        Ok(sorted)
    }

    fn push_masked_body(&self, target: &Target<'_>, masked: &mut Vec<u8>) {
        let function = &self.functions()[target.function];
        let (ending, indent) = (function.line_ending, &function.indent);
        masked.extend_from_slice(ending);
        masked.extend_from_slice(indent);
        let documented = match (&function.docstring, target.description) {
            (Some(own), _) => {
                masked.extend_from_slice(&self.source()[own.clone()]);
                true
            }
            (None, Some(text)) => docstring::push(text, self.encoding, indent, ending, masked),
            (None, None) => false,
        };
        if documented {
            masked.extend_from_slice(ending);
            masked.extend_from_slice(indent);
        }
        masked.extend_from_slice(RAISE);
    }
}

#[cfg(test)]
mod tests;
