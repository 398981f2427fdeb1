//! Removes helpers that a later reply corrects.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::Regex;

use super::names::{parameters, same_parameters};
use super::taken::ReplyCode;
use super::{SplicedFile, reply};
use crate::code::extent::{end_of_line, start_of_line};
use crate::code::function::{Function, last_part};
use crate::code::module::Module;

impl Module {
    /// Removes helpers that an earlier reply has added and that this reply defines again. `added` contains the
    /// qualified names of the functions that the earlier reply has added to the file; `function` is the function that
    /// the replies are about. Returns the file without the helpers, and their names. Returns `None` if this reply
    /// defines no helper again. Also returns `None` if a helper's new definition has other parameters, but code other
    /// than `function` and these helpers uses the helper: that code would no longer work.
    #[must_use]
    pub fn without_corrected(
        &self,
        function: Option<usize>,
        added: &BTreeSet<String>,
        reply: &str,
    ) -> Option<(SplicedFile, Vec<String>)> {
        let mut in_reply: BTreeMap<String, Vec<Option<Vec<String>>>> = BTreeMap::new();
        for code in reply::candidates(reply).iter().filter_map(|text| ReplyCode::parse(text).ok()) {
            for (at, it) in code.module.functions().iter().enumerate() {
                let header = parameters(&code.module.header(at));
                in_reply.entry(last_part(&it.name).to_owned()).or_default().push(header);
            }
        }
        let is_corrected = |&at: &usize| {
            let it = &self.functions()[at];
            Some(at) != function
                && it.parent.is_none()
                && it.number.is_none()
                && added.contains(&it.name)
                && in_reply.contains_key(last_part(&it.name))
        };
        let corrected: Vec<usize> = (0..self.functions().len()).filter(is_corrected).collect();
        if corrected.is_empty() {
            return None;
        }
        let wholes = corrected.iter().copied().chain(function).map(|at| self.functions()[at].whole.clone());
        let mut others = self.source().to_vec();
        wholes.for_each(|whole| others[whole].fill(b' '));
        for &at in &corrected {
            let name = last_part(&self.functions()[at].name);
            let own = parameters(&self.header(at));
            let is_same = in_reply[name].iter().all(|theirs| same_parameters(own.as_deref(), theirs.as_deref()));
            let word = Regex::new(&format!(r"\b{}\b", regex::escape(name))).ok()?;
            if !is_same && word.is_match(&others) {
                return None;
            }
        }
        let line = |it: &Function| {
            let end = end_of_line(self.source(), it.body.end);
            start_of_line(self.source(), it.whole.start)..(end + it.line_ending.len()).min(self.source().len())
        };
        let removed = SplicedFile {
            bytes: Vec::new(),
            added: Vec::new(),
            new_signature: false,
            edits: corrected.iter().map(|&at| (line(&self.functions()[at]), Vec::new())).collect(),
        };
        let names = corrected.iter().map(|&at| last_part(&self.functions()[at].name).to_owned()).collect();
        let label = function.map(|index| self.functions()[index].label());
        Some((self.proved(removed, label.as_deref()).ok()?, names))
    }
}
