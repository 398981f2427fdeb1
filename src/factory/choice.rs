//! Measures candidate functions until enough of them are suitable for tasks, and then combinations of these functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::functions::{PackageFunctions, spread};
use super::gates::{Gate, Gates, Passed};
use super::list::PackageEntry;
use super::shown::with_place;
use super::workshop::Workshop;
use crate::audit::Bench;
use crate::audit::leaks::{self, FindingKind};
use crate::error::{Error, Result};
use crate::run::event::{Observer, RunEvent, Stage};

/// A function is dropped if at least this share of its body also occurs in one other place, where agents could read it.
const LEAK: f64 = 0.6;

/// Maximum number of combinations of two or three functions that are masked together, to see whether tests fail.
const COMBINATIONS: usize = 20;

impl Workshop {
    /// Measures candidate functions, in the order of [`spread`], until enough of them pass all gates (the conditions for
    /// becoming a task). Returns the functions that pass, with their indices.
    pub(super) async fn gate(
        &self,
        gates: Arc<Gates>,
        examined: &PackageFunctions,
        dropped: &mut BTreeMap<String, String>,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<Vec<(usize, Passed)>> {
        let mut order = spread(&examined.candidates, self.settings.seed);
        order.retain(|place| !dropped.contains_key(&examined.candidates[*place].at));
        let total = order.len();
        let mut todo = order.into_iter();
        let mut running = tokio::task::JoinSet::new();
        let mut passed: Vec<(usize, Passed)> = Vec::new();
        let (mutants, least) = (self.settings.mutants, self.settings.least_score);
        loop {
            // Never measure more functions at a time than are still needed. Otherwise, the choice would depend on which
            // measurement ends first.
            while running.len() < self.jobs + 1 && passed.len() + running.len() < self.settings.most {
                let Some(place) = todo.next() else { break };
                let (gates, candidate) = (Arc::clone(&gates), examined.candidates[place].clone());
                running.spawn(async move { (place, gates.measure(place, &candidate, mutants, least).await) });
            }
            let Some(ended) = running.join_next().await else { break };
            let (place, gate) = ended.map_err(|error| Error::internal("a measurement was aborted").because(error))?;
            entry.funnel.tried += 1;
            let stage = Stage::new("measuring functions of", &entry.id);
            observer.on(RunEvent::Stage(stage.counted(entry.funnel.tried, total, "functions")));
            match gate? {
                Gate::Passed(one) => passed.push((place, *one)),
                Gate::Dropped(reason) => drop(dropped.insert(examined.candidates[place].at.clone(), reason)),
            }
        }
        passed.sort_by_key(|(place, _)| *place);
        entry.funnel.combinations = self.combine(&gates, examined, &passed).await?;
        Ok(passed)
    }

    /// Draws pairs and triples of functions, and masks the functions of each together. Returns the number of these
    /// combinations, and the number of those with which tests fail, as they should.
    async fn combine(
        &self,
        gates: &Gates,
        examined: &PackageFunctions,
        passed: &[(usize, Passed)],
    ) -> Result<(usize, usize)> {
        let mut drawn: BTreeSet<Vec<usize>> = BTreeSet::new();
        for number in 0..4 * COMBINATIONS {
            let size = 2 + number % 2;
            if drawn.len() == COMBINATIONS || passed.len() < size {
                continue;
            }
            let mut order: Vec<usize> = (0..passed.len()).collect();
            order.sort_by_cached_key(|place| {
                let name = format!("{}\n{number}\n{}", self.settings.seed, examined.candidates[passed[*place].0].at);
                crate::files::hex(&<sha2::Sha256 as sha2::Digest>::digest(name.as_bytes()))
            });
            order.truncate(size);
            order.sort_unstable();
            drawn.insert(order);
        }
        let combinations: Vec<(Vec<usize>, BTreeSet<String>)> = drawn
            .iter()
            .map(|combination| {
                let ids = combination.iter().flat_map(|place| passed[*place].1.ids.clone());
                (combination.iter().map(|place| passed[*place].0).collect(), ids.collect())
            })
            .collect();
        if combinations.is_empty() {
            return Ok((0, 0));
        }
        let fail = gates.fail_together(&combinations).await?;
        // If the package can be imported with all of these functions masked, it can also be imported with any
        // combination of them masked, so do not try to import it with each combination.
        let all: Vec<usize> = passed.iter().map(|(place, _)| *place).collect();
        let all_load = gates.loads(&all).await?;
        let mut failed = 0;
        for ((units, _), fails) in combinations.iter().zip(fail) {
            failed += usize::from(fails && (all_load || gates.loads(units).await?));
        }
        Ok((combinations.len(), failed))
    }

    /// Returns the functions whose bodies agents could read or derive from other code, with the reason.
    ///
    /// # Errors
    /// Kind `Suite` if the env contains a package with the name of this one; the errors of reading files.
    pub(super) fn leaking(bench: &Bench, prefix: &Path) -> Result<BTreeMap<String, String>> {
        let loaded = bench.loaded();
        let report = leaks::measure(loaded, Some(&bench.ready().shown))?;
        let mut found: BTreeMap<String, String> = report
            .functions
            .iter()
            .filter(|leak| leak.containment >= LEAK)
            .map(|leak| (leak.at.clone(), "its body is elsewhere in the repo".to_owned()))
            .collect();
        // Packages with findings of other kinds were refused before their tests were measured (`shown`).
        for finding in report.findings {
            if finding.kind == FindingKind::Installed {
                return Err(finding.error);
            }
            let message = finding.error.to_string();
            for (place, unit) in loaded.paper.units.iter().enumerate() {
                let file = format!("`{}`", loaded.source(place).path().display());
                if finding.kind == FindingKind::Compiled && message.contains(&file) {
                    found.insert(unit.at.clone(), "compiled code of its file is in the repo".to_owned());
                }
            }
        }
        for (place, unit) in loaded.paper.units.iter().enumerate() {
            if loaded.function_of(place).is_some_and(|function| loaded.source(place).has_opposite(function, LEAK)) {
                let reason = "the opposite of its body is in the same file";
                found.entry(unit.at.clone()).or_insert_with(|| reason.to_owned());
            }
        }
        for finding in leaks::installed(loaded, prefix) {
            let message = finding.error.to_string();
            let mut named =
                loaded.paper.units.iter().filter(|unit| message.contains(&format!("`{}`", unit.at))).peekable();
            // A finding that concerns no function concerns the whole package: the env contains one of the same name.
            if named.peek().is_none() {
                return Err(with_place(finding.error, prefix));
            }
            for unit in named {
                found.insert(unit.at.clone(), "its body is in the environment".to_owned());
            }
        }
        Ok(found)
    }
}
