//! The conditions under which runs scored their attempts. Rates are comparable only if the conditions are the same.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;

use crate::run::RunFile;

/// Maximum number of conditions that a warning names.
const NAMED: usize = 4;

/// Lists the conditions because of which the verdicts of two runs are not comparable, as in "the budget of an attempt".
/// Different prompts of the agents are not listed, because prompts are part of what is compared.
#[must_use]
pub fn differing_conditions(first: &RunFile, second: &RunFile) -> Vec<String> {
    let mut found = Vec::new();
    let (one, other) = (&first.digests, &second.digests);
    for (what, one, other) in [
        ("definition or gold of", &one.papers, &other.papers),
        ("the repo of", &one.repos, &other.repos),
        ("the env of", &one.envs, &other.envs),
    ] {
        for (id, digest) in one {
            if other.get(id).is_some_and(|theirs| theirs != digest) {
                // Results from two kinds of envs may differ in their last digits, so name the kinds.
                let kinds = [first, second].map(|run| run.sessions.last().and_then(|session| session.envs.get(id)));
                found.push(match kinds {
                    [Some(one), Some(other)] if what.contains("env") && one != other => {
                        format!("{what} `{id}`: {one} and {other}")
                    }
                    _ => format!("{what} `{id}`"),
                });
            }
        }
    }
    let (one, other) = (&first.configuration, &second.configuration);
    let settings = [
        ("the experiments: curtailed and full", one.protocol == other.protocol),
        ("scoring", one.scoring == other.scoring),
        ("verification", one.verify == other.verify),
        ("the budget of an attempt", one.limits == other.limits),
    ];
    found.extend(settings.into_iter().filter(|(_, is_same)| !is_same).map(|(what, _)| what.to_owned()));
    found
}

/// Lists the changes of a run's suite, envs or prompts that `resume --changed-suite` has accepted, one sentence each.
/// The attempts before and after such a change are not comparable.
#[must_use]
pub fn accepted_changes(run: &RunFile) -> Vec<&str> {
    run.sessions.iter().flat_map(|session| &session.differences).map(String::as_str).unique().collect()
}

/// Returns a warning that names the run and its [`accepted_changes`]; `None` without such changes.
#[must_use]
pub fn changes_warning(name: &str, run: &RunFile) -> Option<String> {
    let changes = accepted_changes(run);
    let total = (changes.len() > NAMED).then(|| format!("{} changes in total", changes.len()));
    let named = changes.iter().take(NAMED).copied().map(str::to_owned).chain(total).join("; ");
    (!changes.is_empty()).then(|| {
        format!(
            "WARNING run `{name}` was continued with `--changed-suite`. Its attempts before and after are not \
             comparable, and `autoexperiment compare` refuses it: {named}"
        )
    })
}

/// Runs whose rates must not be compared with those of other runs.
#[derive(Debug, Default)]
pub(super) struct Incomparable<'a> {
    /// For each condition, the names of the runs that differ from another run in it.
    differing: BTreeMap<String, BTreeSet<&'a str>>,
    /// Names of the runs without a run file, whose conditions are unknown.
    unknown: BTreeSet<&'a str>,
}

impl<'a> Incomparable<'a> {
    /// Compares every run with every other one. Each run is given by its name and its run file, if it has one.
    pub(super) fn new(runs: &[(&'a str, Option<&RunFile>)]) -> Self {
        let mut found = Self::default();
        for (place, (name, run)) in runs.iter().enumerate() {
            let Some(run) = run else {
                found.unknown.extend((runs.len() > 1).then_some(*name));
                continue;
            };
            for (other_name, other) in &runs[place + 1..] {
                for what in other.map(|other| differing_conditions(run, other)).unwrap_or_default() {
                    found.differing.entry(what).or_default().extend([*name, *other_name]);
                }
            }
        }
        found
    }

    /// Returns the warning; `None` if all runs have the same conditions.
    pub(super) fn warning(&self) -> Option<String> {
        let mut reasons: Vec<String> = self
            .differing
            .iter()
            .take(NAMED)
            .map(|(what, runs)| format!("{} differ in {what}", listed(runs)))
            .collect();
        if self.differing.len() > NAMED {
            reasons.push(format!("{} conditions differ in total", self.differing.len()));
        }
        if !self.unknown.is_empty() {
            reasons.push(format!("without its run file, it is not known how {} scored", listed(&self.unknown)));
        }
        (!reasons.is_empty()).then(|| {
            format!(
                "WARNING the rates of these runs are not comparable, and `autoexperiment compare` refuses them: {}",
                reasons.join("; ")
            )
        })
    }
}

/// Formats names as `a`, `b` and `c`.
fn listed(names: &BTreeSet<&str>) -> String {
    let mut names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::SessionFacts;

    #[test]
    fn the_warning_about_accepted_changes_names_each_change_once() {
        let session = |changes: &[&str]| SessionFacts {
            differences: changes.iter().copied().map(str::to_owned).collect(),
            ..SessionFacts::blank()
        };
        assert_eq!(changes_warning("r", &RunFile::blank("r", vec![session(&[]), session(&[])])), None);
        let run = RunFile::blank("r", vec![session(&[]), session(&["a has changed"]), session(&["a has changed"])]);
        assert_eq!(accepted_changes(&run), ["a has changed"]);
        let said = changes_warning("mine", &run).unwrap();
        assert!(said.starts_with("WARNING run `mine` ") && said.ends_with(": a has changed"), "{said}");
        let said = changes_warning("r", &RunFile::blank("r", vec![session(&["a", "b", "c", "d", "e"])])).unwrap();
        assert!(said.ends_with(": a; b; c; d; 5 changes in total"), "{said}");
    }

    #[test]
    fn the_warning_names_the_runs_that_differ_and_what_differs() {
        let none = Incomparable::new(&[]);
        assert_eq!(none.warning(), None);
        let mut found = Incomparable::default();
        found.differing.insert("scoring".to_owned(), BTreeSet::from(["a", "b", "c"]));
        let said = found.warning().unwrap();
        assert!(said.starts_with("WARNING "), "{said}");
        assert!(said.ends_with(": `a`, `b` and `c` differ in scoring"), "{said}");
        for paper in 0..4 {
            found.differing.insert(format!("the repo of `{paper}`"), BTreeSet::from(["a", "b"]));
        }
        let said = found.warning().unwrap();
        assert!(said.contains("; `a` and `b` differ in the repo of `2`; 5 conditions differ in total"), "{said}");
        // A single run is not compared with another one. Of several runs, those without a run file are named.
        assert_eq!(Incomparable::new(&[("a", None)]).warning(), None);
        let said = Incomparable::new(&[("a", None), ("b", None)]).warning().unwrap();
        assert!(said.ends_with(": without its run file, it is not known how `a` and `b` scored"), "{said}");
    }
}
