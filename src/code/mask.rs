//! Masking: replaces function bodies by a docstring and `raise NotImplementedError`, and keeps all other bytes.
//!
//! A masked body always begins on a line of its own, even if the original was on the header's line:
//!
//! ```text
//! def f(x):                         def f(x):
//!     # a hint                          """The docstring, byte for byte, or one made of the description."""
//!     """The docstring."""       →      raise NotImplementedError
//!     return x + 1  # why
//!     # more hints
//! ```
//!
//! Comments between the colon and the first statement, and comments after the last statement that are indented deeper
//! than `def`, describe the body and are removed with it. A comment after the colon is removed, too, unless it is a
//! `# type:` comment, which is part of the signature. Comments above the function are kept. A masked generator raises
//! the error when it is called, not at its first `next()`, so that the caller notices at once.
//!
//! A [`Region`] of a function can be masked alone: `raise NotImplementedError` then replaces its statements, at their
//! indentation.

use std::ops::Range;

use super::docstring;
use super::module::Module;
use super::region::{RAISE, Region};
use crate::error::{Error, Result};

/// A function to mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskTarget<'text> {
    /// Index in [`Module::functions`].
    pub function: usize,
    /// Docstring for the masked function if it has none.
    pub description: Option<&'text str>,
}

/// A part to mask: a whole function or some of its statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskedPart<'text> {
    /// The body of a whole function.
    Function(MaskTarget<'text>),
    /// The statements of a region.
    Region(&'text Region),
}

/// The text of a file in which some parts are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedText {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// For each masked part, in the order of the caller's list, the range of `bytes` that has taken its place.
    pub stand_ins: Vec<Range<usize>>,
}

/// A range of the file and its replacement.
struct Splice {
    /// Index in the caller's list of parts to mask.
    cut: usize,
    range: Range<usize>,
    text: Vec<u8>,
}

impl Module {
    /// Returns the file's bytes with these functions masked. The functions may be given in any order. Takes no longer
    /// than copying the bytes, because nothing is parsed.
    ///
    /// # Errors
    /// Returns an error of kind `Suite` if a function is nested in another or given twice, and of kind `Internal` for
    /// an index out of range.
    pub fn mask(&self, targets: &[MaskTarget<'_>]) -> Result<Vec<u8>> {
        Ok(self.cut(&functions(targets))?.bytes)
    }

    /// Same as [`Module::mask`], but also parses and checks the result, see [`Module::cut_checked`].
    ///
    /// # Errors
    /// Returns the errors of [`Module::cut_checked`].
    pub fn mask_checked(&self, targets: &[MaskTarget<'_>]) -> Result<Vec<u8>> {
        Ok(self.cut_checked(&functions(targets))?.bytes)
    }

    /// Returns the file with these parts masked: whole functions, or regions, which are some statements of the file.
    /// The parts may be given in any order. The result is not parsed.
    ///
    /// # Errors
    /// Returns an error of kind `Suite` if a part is nested in another or given twice, and of kind `Internal` for an
    /// index out of range.
    pub fn cut(&self, cuts: &[MaskedPart<'_>]) -> Result<MaskedText> {
        let splices = self.splices(cuts)?;
        let source = self.source();
        let extra: usize = splices.iter().map(|splice| splice.text.len()).sum();
        let mut bytes = Vec::with_capacity(source.len() + extra);
        let mut stand_ins = vec![0..0; cuts.len()];
        let mut at = 0;
        for splice in splices {
            bytes.extend_from_slice(&source[at..splice.range.start]);
            let start = bytes.len();
            bytes.extend_from_slice(&splice.text);
            stand_ins[splice.cut] = start..bytes.len();
            at = splice.range.end;
        }
        bytes.extend_from_slice(&source[at..]);
        Ok(MaskedText { bytes, stand_ins })
    }

    /// Same as [`Module::cut`], but also parses the result and checks it: it has no syntax errors, the masked parts
    /// contain exactly the docstring and the `raise` statement, and all other functions and the statements around a
    /// region are unchanged.
    ///
    /// # Errors
    /// Returns the errors of [`Module::cut`], and an error of kind `Internal` if the check fails.
    pub fn cut_checked(&self, cuts: &[MaskedPart<'_>]) -> Result<MaskedText> {
        let masked = self.cut(cuts)?;
        let wrong = |what: String| Error::internal(format!("masking went wrong: {what}")).at(self.path(), None);
        let after =
            Self::parse(self.path(), masked.bytes.clone()).map_err(|error| wrong(error.to_string()).because(error))?;
        let splices = self.splices(cuts)?;
        let mut kept = after.functions().iter();
        for (index, before) in self.functions().iter().enumerate() {
            // Skip functions inside a masked part, which no longer exist.
            if splices.iter().any(|it| it.range.start <= before.whole.start && before.whole.start < it.range.end) {
                continue;
            }
            let label = before.label();
            let now = kept.next().filter(|now| now.name == before.name);
            let now = now.ok_or_else(|| wrong(format!("`{label}` was lost")))?;
            let header = &self.source()[before.whole.start..before.header.end];
            if *header != after.source()[now.whole.start..now.header.end] {
                return Err(wrong(format!("the signature of `{label}` changed")));
            }
            if self.with(&splices, &before.whole) != after.source()[now.whole.clone()] {
                let is_target =
                    |cut: &MaskedPart<'_>| matches!(cut, MaskedPart::Function(target) if target.function == index);
                let what = if cuts.iter().any(is_target) {
                    format!("the body of `{label}` is not the one that masking put there")
                } else {
                    format!("`{label}` changed")
                };
                return Err(wrong(what));
            }
        }
        if let Some(extra) = kept.next() {
            return Err(wrong(format!("`{}` appeared", extra.label())));
        }
        for (cut, stand_in) in cuts.iter().zip(&masked.stand_ins) {
            if let MaskedPart::Region(region) = cut {
                after.prove_stand_in(region, stand_in, cuts.len() == 1).map_err(wrong)?;
            }
        }
        Ok(masked)
    }

    /// Whether one function is nested in the other, or both are the same. No sample contains such a pair.
    #[must_use]
    pub fn overlaps(&self, a: usize, b: usize) -> bool {
        self.functions()[a].overlaps(&self.functions()[b])
    }

    /// Returns the range of a part that can be masked: a function with its decorators, or the lines of a region.
    #[must_use]
    pub fn extent(&self, cut: &MaskedPart<'_>) -> Range<usize> {
        match cut {
            MaskedPart::Function(target) => self.functions()[target.function].whole.clone(),
            MaskedPart::Region(region) => region.range.clone(),
        }
    }

    /// Returns the bytes of a range of the file, in which the splices inside the range are applied.
    fn with(&self, splices: &[Splice], range: &Range<usize>) -> Vec<u8> {
        let (mut bytes, mut at) = (Vec::with_capacity(range.len()), range.start);
        for splice in splices.iter().filter(|it| range.start <= it.range.start && it.range.end <= range.end) {
            bytes.extend_from_slice(&self.source()[at..splice.range.start]);
            bytes.extend_from_slice(&splice.text);
            at = splice.range.end;
        }
        bytes.extend_from_slice(&self.source()[at..range.end]);
        bytes
    }

    /// Returns the ranges to replace, with their replacements, in the order of the file.
    fn splices(&self, cuts: &[MaskedPart<'_>]) -> Result<Vec<Splice>> {
        let functions = self.functions();
        let beyond = cuts.iter().find_map(|cut| match cut {
            MaskedPart::Function(target) if target.function >= functions.len() => Some(target.function),
            _ => None,
        });
        if let Some(beyond) = beyond {
            let message = format!("this file has {} functions, so there is no function {beyond}", functions.len());
            return Err(Error::internal(message).at(self.path(), None));
        }
        let mut order: Vec<usize> = (0..cuts.len()).collect();
        order.sort_by_key(|&place| {
            let extent = self.extent(&cuts[place]);
            (extent.start, std::cmp::Reverse(extent.end))
        });
        for pair in order.windows(2) {
            let (outer, inner) = (&cuts[pair[0]], &cuts[pair[1]]);
            if self.extent(inner).start < self.extent(outer).end {
                return Err(self.nested(outer, inner));
            }
        }
        let splice = |cut: usize| match cuts[cut] {
            MaskedPart::Function(target) => {
                Splice { cut, range: functions[target.function].body.clone(), text: self.masked_body(&target) }
            }
            MaskedPart::Region(region) => Splice { cut, range: region.range.clone(), text: self.stand_in(region) },
        };
        Ok(order.into_iter().map(splice).collect())
    }

    fn nested(&self, outer: &MaskedPart<'_>, inner: &MaskedPart<'_>) -> Error {
        let name = |cut: &MaskedPart<'_>| match cut {
            MaskedPart::Function(target) => format!("`{}`", self.functions()[target.function].label()),
            MaskedPart::Region(region) => format!("the region from line {} to {}", region.first_line, region.last_line),
        };
        let line = match inner {
            MaskedPart::Function(target) => self.functions()[target.function].first_line,
            MaskedPart::Region(region) => region.first_line,
        };
        let message = if self.extent(outer) == self.extent(inner) {
            format!("{} is to be masked twice", name(outer))
        } else {
            format!("{} is nested in {}: the two cannot be masked together", name(inner), name(outer))
        };
        Error::suite(message)
            .at(self.path(), Some(line))
            .hint("mask one of them; masking the outer one removes the inner one too")
    }

    fn masked_body(&self, target: &MaskTarget<'_>) -> Vec<u8> {
        let function = &self.functions()[target.function];
        let (ending, indent) = (function.line_ending, &function.indent);
        let mut masked = Vec::with_capacity(64 + target.description.map_or(0, |text| 2 * text.len()));
        masked.extend_from_slice(ending);
        masked.extend_from_slice(indent);
        let documented = match (&function.docstring, target.description) {
            (Some(own), _) => {
                masked.extend_from_slice(&self.source()[own.clone()]);
                true
            }
            (None, Some(text)) => docstring::push(text, self.encoding, indent, ending, &mut masked),
            (None, None) => false,
        };
        if documented {
            masked.extend_from_slice(ending);
            masked.extend_from_slice(indent);
        }
        masked.extend_from_slice(RAISE);
        masked
    }
}

fn functions<'text>(targets: &[MaskTarget<'text>]) -> Vec<MaskedPart<'text>> {
    targets.iter().copied().map(MaskedPart::Function).collect()
}

#[cfg(test)]
mod tests;
