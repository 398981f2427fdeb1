//! Runs a package's tests, records gold, and chooses and measures functions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::functions::{Candidate, PackageFunctions, examine};
use super::gates::Gates;
use super::inputs::{
    AddedInputs, added_tests_of_function, file_of, is_added, make_test_files, remove_unused, write_test_files,
};
use super::list::{ListedFunction, Measured, PackageEntry};
use super::prepare::{Prepared, write_plan, write_runner};
use super::record::{Recorded, new_drawings, record};
use super::shown::{TestFiles, refuse_installed};
use super::survey::{
    Circumstances, MOST_SECONDS, Plan, SpecialResults, StableTests, Survey, SurveyOptions, SurveyedTest, groups,
    stable, survey, within_budget,
};
use super::workshop::Workshop;
use crate::error::{Error, FailureKind, Result};
use crate::masked::ready::ReadyPaper;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::suite::{LoadedPaper, PartialDate, Protocol, Suite};

/// Maximum number of times that gold is recorded. If the outcomes or values of some tests differ between the runs for
/// gold, these tests, or only their values, are left out, and gold is recorded again.
const ROUNDS: usize = 6;

impl Workshop {
    /// Runs the tests, chooses functions and measures them, and writes the paper.
    pub(super) async fn measure(
        &self,
        prepared: &Prepared,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<Measured> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let repo = suite.repo_dir(id);
        let begun = Instant::now();
        let (surveyed, mut tests, ready) = self.survey(prepared, entry, observer).await?;
        entry.spent("survey", begun);
        let begun = Instant::now();
        let TestFiles { files: mut test_files, dependent } =
            self.test_files(prepared, &surveyed, &mut tests, entry, observer).await?;
        let added = self.add_inputs(prepared, &ready, &test_files, &mut tests, entry, observer).await?;
        test_files.extend(added.files.keys().cloned());
        entry.spent("inputs", begun);
        let begun = Instant::now();
        let (mut tests, mut without_values) = (tests.kept, tests.without_values);
        // Use the same drawings in all rounds. Then each round repeats the runs of the previous round, without the
        // tests that were left out.
        let drawings = new_drawings();
        let mut round = 0;
        let (bench, plan, examined, functions, gold) = loop {
            round += 1;
            let plan = Plan { drawings: drawings.clone(), ..planned(&tests, &without_values) };
            if tests.is_empty() {
                return Err(Error::new(FailureKind::Baseline, "none of its tests passes in every run"));
            }
            write_plan(&repo, &plan)?;
            let mut examined = self.examine(prepared, &test_files, &tests);
            for candidate in examined.candidates.iter_mut().filter(|candidate| candidate.has_own_calls) {
                candidate.add_examples(added.examples(candidate.name(), &tests));
            }
            let released = prepared.record.released;
            let functions: Vec<ListedFunction> =
                examined.candidates.iter().map(|candidate| listed(candidate, released)).collect();
            if functions.is_empty() {
                fill_funnel(entry, &examined, &tests, &plan);
                return Err(Error::new(FailureKind::Baseline, "its tests run no function that can become a task"));
            }
            self.write_paper(prepared, &test_files, &plan, &functions, None)?;
            let ready = self.ready(suite, id, observer).await?;
            let bench = self.bench(ready)?;
            match record(&bench, &prepared.layout, &plan, self.machine.backend.name(), observer).await? {
                Recorded::Gold(gold) => break (bench, plan, examined, functions, *gold),
                Recorded::Varying(failed, varying) if round < ROUNDS => {
                    let own = failed.iter().filter(|test| !is_added(file_of(test))).count();
                    if own > 0 {
                        *entry.funnel.tests_left_out.entry("varies".to_owned()).or_default() += own;
                    }
                    // If the outcome or the values of an added test differ between runs, drop all added tests of its
                    // function. If this still happens shortly before the last round, drop all added tests, so that a
                    // package does not lose its tasks only because of added tests.
                    let unsteady: BTreeSet<&str> =
                        failed.iter().chain(&varying).filter_map(|test| added_tests_of_function(test)).collect();
                    let is_last = round + 2 >= ROUNDS && !unsteady.is_empty();
                    tests.retain(|test, _| {
                        let added = added_tests_of_function(test);
                        !failed.contains(test) && !added.is_some_and(|it| is_last || unsteady.contains(it))
                    });
                    without_values.extend(varying);
                }
                Recorded::Varying(..) => {
                    return Err(Error::new(FailureKind::Baseline, "its tests vary from run to run"));
                }
            }
        };
        entry.spent("gold", begun);
        let begun = Instant::now();
        fill_funnel(entry, &examined, &tests, &plan);
        gold.save(&suite.paper_dir(id).join("gold.json"))?;
        drop(bench);
        let ready = self.ready(suite, id, observer).await?;
        let prefix = ready.env.prefix.clone();
        let bench = self.bench(ready)?;
        let mut dropped = Self::leaking(&bench, &prefix)?;
        for candidate in examined.candidates.iter().filter(|candidate| dependent.contains(&candidate.file)) {
            let reason = "its file cannot be imported without hidden files of tests";
            dropped.insert(candidate.at.clone(), reason.to_owned());
        }
        let gates = Gates::new(Arc::clone(&bench), prepared.layout.clone(), plan.clone(), tests).await?;
        for place in gates.entered_by_import(examined.candidates.len()).await? {
            let at = examined.candidates[place].at.clone();
            dropped.entry(at).or_insert_with(|| "runs when the package is imported".to_owned());
        }
        let passed = self.gate(Arc::new(gates), &examined, &mut dropped, entry, observer).await?;
        entry.spent("functions", begun);
        for (at, reason) in dropped {
            entry.funnel.dropped.entry(reason).or_default().push(at);
        }
        if passed.is_empty() {
            return Err(Error::new(
                FailureKind::Baseline,
                "none of the package's functions can become a task (`dropped` in factory.json has the reasons)",
            ));
        }
        let measured = self.finish(prepared, &bench, &test_files, plan, gold, &functions, &passed, entry)?;
        Ok(Measured { added: added.files, ..measured })
    }

    fn examine(
        &self,
        prepared: &Prepared,
        test_files: &[String],
        tests: &BTreeMap<String, SurveyedTest>,
    ) -> PackageFunctions {
        let repo = prepared.draft.suite().repo_dir(prepared.draft.id());
        let hidden = test_files.iter().cloned().collect();
        let (earlier, documented) = (prepared.earlier.as_ref(), self.settings.documented);
        examine(&repo, &prepared.layout, &hidden, &entering(tests), earlier, documented)
    }

    /// Makes tests with more inputs than the package's own tests have. Writes their files into the repo, and adds the
    /// new tests with stable results to `tests`. `surveyed` is the package as it was prepared for the survey, in which
    /// its own tests were run for the first time.
    async fn add_inputs(
        &self,
        prepared: &Prepared,
        surveyed: &ReadyPaper,
        test_files: &[String],
        tests: &mut StableTests,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<AddedInputs> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let repo = suite.repo_dir(id);
        let candidates = self.examine(prepared, test_files, &tests.kept).candidates;
        if candidates.is_empty() {
            return Ok(AddedInputs::default());
        }
        let plan = planned(&tests.kept, &tests.without_values);
        observer.on(RunEvent::Stage(Stage::new("making more inputs for", id)));
        let mut made = make_test_files(surveyed, prepared, &plan, &candidates, &self.settings, &self.machine).await?;
        entry.funnel.added_left_out = std::mem::take(&mut made.left_out);
        if made.files.is_empty() {
            return Ok(made);
        }
        write_plan(&repo, &plan)?;
        write_test_files(&repo, &made.files)?;
        let all: Vec<String> = test_files.iter().chain(made.files.keys()).cloned().collect();
        self.write_paper(prepared, &all, &plan, &[], None)?;
        let ready = self.ready(suite, id, observer).await?;
        let options = SurveyOptions { seconds: self.settings.test_seconds, doctests: false, only_added: true };
        let exports = prepared.layout.exports();
        let (first, second) = tokio::join!(
            survey(&ready, &exports, options, Circumstances::Alone, &self.machine),
            survey(&ready, &exports, options, Circumstances::OtherDraws, &self.machine)
        );
        let mut found = stable(&[first?, second?]);
        let over = within_budget(&mut found.kept);
        entry.funnel.added_left_out.append(&mut found.left_out);
        if over > 0 {
            entry.funnel.added_left_out.insert(over_budget(), over);
        }
        // The assertions of added tests check what matters about the values that the package returns. Do not also
        // compare these values with gold, because their other properties, such as their class, may not matter.
        tests.without_values.extend(found.kept.keys().cloned());
        tests.kept.append(&mut found.kept);
        made.files = remove_unused(&repo, made.files, tests)?;
        Ok(made)
    }

    /// Runs all tests three times: first alone; then, at the same time, once with other processes that keep the machine
    /// busy, and once with other random numbers for the package's code.
    async fn survey(
        &self,
        prepared: &Prepared,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<(Survey, StableTests, ReadyPaper)> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let repo = suite.repo_dir(id);
        write_plan(&repo, &Plan::default())?;
        write_runner(&repo)?;
        self.write_paper(prepared, &[], &Plan::default(), &[], None)?;
        let ready = self.ready(suite, id, observer).await?;
        refuse_installed(&ready)?;
        let options =
            SurveyOptions { seconds: self.settings.test_seconds, doctests: self.settings.doctests, only_added: false };
        let exports = prepared.layout.exports();
        observer.on(RunEvent::Stage(Stage::new("running the tests of", id)));
        let first = survey(&ready, &exports, options, Circumstances::Alone, &self.machine).await?;
        if !first.tests.values().any(|test| test.outcome == "passed") {
            entry.funnel.tests = first.tests.len();
            let found = stable(std::slice::from_ref(&first));
            let reasons =
                found.left_out.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| format!(": {reason}"));
            entry.funnel.tests_left_out = found.left_out.clone();
            return Err(Error::new(
                FailureKind::Baseline,
                format!("none of its tests passes{}", reasons.unwrap_or_default()),
            ));
        }
        let (second, third) = tokio::join!(
            survey(&ready, &exports, options, Circumstances::Busy, &self.machine),
            survey(&ready, &exports, options, Circumstances::OtherDraws, &self.machine)
        );
        let surveys = [first, second?, third?];
        let mut found = stable(&surveys);
        entry.funnel.tests = surveys[0].tests.len();
        let over = within_budget(&mut found.kept);
        if over > 0 {
            found.left_out.insert(over_budget(), over);
        }
        entry.funnel.tests_left_out.clone_from(&found.left_out);
        let [first, ..] = surveys;
        Ok((first, found, ready))
    }

    /// Prepares the package's paper as it is written now.
    pub(super) async fn ready(&self, suite: &Suite, id: &str, observer: &dyn Observer) -> Result<ReadyPaper> {
        let loaded = LoadedPaper::load(suite, id)?;
        ReadyPaper::prepare(loaded, Protocol::Curtailed, &self.machine, observer).await
    }
}

/// Returns the reason that is recorded for tests left out because of the limit on the total seconds of tests.
fn over_budget() -> String {
    format!("more than {MOST_SECONDS} seconds of tests")
}

/// Returns the test runner's plan, which splits these tests into groups. `without_values` lists tests of which only the
/// outcome is compared with gold, but not the values that the package returns to them.
fn planned(tests: &BTreeMap<String, SurveyedTest>, without_values: &BTreeSet<String>) -> Plan {
    let seconds = |test: &SurveyedTest| (test.seconds * 1000.0).round() / 1000.0;
    let mut special_results = SpecialResults::default();
    for test in tests.values() {
        special_results.merge(&test.special_results);
    }
    Plan {
        drawings: Vec::new(),
        groups: groups(tests),
        without_values: without_values.iter().filter(|id| tests.contains_key(*id)).cloned().collect(),
        seconds: tests.iter().map(|(id, test)| (id.clone(), seconds(test))).collect(),
        special_results,
    }
}

/// Returns, for each function that tests run, the ids of these tests.
fn entering(tests: &BTreeMap<String, SurveyedTest>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, test) in tests {
        for function in &test.entered {
            found.entry(function.clone()).or_default().insert(id.clone());
        }
    }
    found
}

fn listed(candidate: &Candidate, released: Option<PartialDate>) -> ListedFunction {
    ListedFunction {
        at: candidate.at.clone(),
        description: candidate.description.clone(),
        passages: Vec::new(),
        since: released.filter(|_| candidate.is_fresh),
    }
}

fn fill_funnel(
    entry: &mut PackageEntry,
    examined: &PackageFunctions,
    tests: &BTreeMap<String, SurveyedTest>,
    plan: &Plan,
) {
    let funnel = &mut entry.funnel;
    funnel.tests_added = tests.values().filter(|test| is_added(&test.file)).count();
    funnel.tests_kept = tests.len() - funnel.tests_added;
    funnel.tests_with_values = tests.len() - plan.without_values.len();
    funnel.functions = examined.found;
    funnel.entered = examined.entered;
    funnel.candidates = examined.candidates.len();
    funnel.dropped.clone_from(&examined.refused);
}
