//! Removes helpers that a later reply corrects.

use std::collections::BTreeSet;

use super::taken::ReplyCode;
use super::{SplicedFile, reply};
use crate::code::extent::{end_of_line, start_of_line};
use crate::code::function::{Function, last_part};
use crate::code::module::Module;

impl Module {
    /// Removes helpers that an earlier reply has added and that this reply defines again. `names` are the names that the
    /// earlier reply has added; `function` is the function that the replies are about. Returns the file without the
    /// helpers, and their names; `None` if no helper is removed.
    #[must_use]
    pub fn without_corrected(
        &self,
        function: Option<usize>,
        names: &[String],
        reply: &str,
    ) -> Option<(SplicedFile, Vec<String>)> {
        let class = function.and_then(|index| self.functions()[index].class.as_deref());
        let mut in_reply = BTreeSet::new();
        for code in reply::candidates(reply).iter().filter_map(|text| ReplyCode::parse(text).ok()) {
            in_reply.extend(code.module.functions().iter().map(|it| last_part(&it.name).to_owned()));
        }
        let is_corrected = |at: usize| {
            let (it, name) = (&self.functions()[at], last_part(&self.functions()[at].name));
            Some(at) != function
                && it.parent.is_none()
                && it.number.is_none()
                && (it.class.is_none() || it.class.as_deref() == class)
                && names.iter().any(|added| added == name)
                && in_reply.contains(name)
        };
        let corrected: Vec<&Function> =
            (0..self.functions().len()).filter(|&at| is_corrected(at)).map(|at| &self.functions()[at]).collect();
        let line = |it: &Function| {
            let end = end_of_line(self.source(), it.body.end);
            start_of_line(self.source(), it.whole.start)..(end + it.line_ending.len()).min(self.source().len())
        };
        if corrected.is_empty() {
            return None;
        }
        let removed = SplicedFile {
            bytes: Vec::new(),
            added: Vec::new(),
            new_signature: false,
            edits: corrected.iter().map(|it| (line(it), Vec::new())).collect(),
        };
        let names = corrected.iter().map(|it| last_part(&it.name).to_owned()).collect();
        let label = function.map(|index| self.functions()[index].label());
        Some((self.proved(removed, label.as_deref()).ok()?, names))
    }
}
