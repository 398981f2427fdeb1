//! Measures each function: do tests fail without it, and do they notice small changes of it? Each such question is a
//! gate, and a function that does not pass all gates is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::functions::Candidate;
use super::imports::{IMPORT_LIMIT, ImportCommand, OUTPUT, importing};
use super::layout::Layout;
use super::manifest::{TRIALS, trials_command};
use super::survey::{Plan, SurveyedTest};
use crate::agent::TaskExperiment;
use crate::audit::{Bench, ExperimentOutcome, Trial};
use crate::code::{Cases, Detail, DetailKind, Module, Mutant, choose, one_spaced};
use crate::error::{Error, FailureKind, Result};
use crate::score::score_experiment;
use crate::suite::{FunctionEvidence, LoadedPaper, ResultRule, Stdout};
use crate::workspace::is_left_out;

/// Limits on the tests that are run to measure one function: maximum number of tests of each group (see [`Plan`]), and
/// maximum total seconds of all of them.
const MOST_TESTS: usize = 60;
const MOST_SECONDS: f64 = 6.0;

/// Limit on the total seconds of the tests that are run with variants of a function's body. The variants show which
/// details of the body the tests need, which of its branches they run, and whether they pass with the body of a similar
/// function.
const MOST_SECONDS_OF_BODY: f64 = 20.0;

/// Minimum number of calls of the function, with different arguments, that its tests must make.
const LEAST_CALLS: usize = 10;

/// Maximum number of similar functions whose bodies are tried in a function's place.
const MOST_SIBLINGS: usize = 3;

/// Seed that selects mutants; the same as that of `verify`.
const MUTANT_SEED: u64 = 0;

/// Time limit of a run, as a multiple of its usual time; and the minimum limit in seconds.
const SLOWER: f64 = 5.0;
const LEAST_LIMIT: f64 = 10.0;

/// Assumed seconds that a run takes in addition to its tests, until they have been measured.
const UNKNOWN_OVERHEAD: f64 = 60.0;

/// Maximum size in bytes of a file that is searched for texts and numbers of a function's body. Larger files are taken
/// to be data.
const LARGEST_TEXT: u64 = 4 << 20;

/// Runs the measurements of a package's functions.
pub(super) struct Gates {
    /// Runs the tests.
    pub(super) bench: Arc<Bench>,
    /// How the package is imported.
    pub(super) layout: Layout,
    /// The plan, which divides the tests into groups.
    pub(super) plan: Plan,
    /// The tests of all groups of the plan, by id.
    pub(super) tests: BTreeMap<String, SurveyedTest>,
    /// Seconds that a run takes in addition to its tests.
    pub(super) overhead: f64,
    /// Tests that are not used, because they do not give their gold results when the gates run them on the unmasked
    /// repo. The gates run tests differently than verification: each test only once, because the code is trusted, and
    /// not several times.
    odd: BTreeSet<String>,
    /// Modules that are imported to find out whether the package needs a function for its import. They are always
    /// imported in the same order, because importing one may prepare what the next needs.
    modules: BTreeSet<String>,
    /// Members of `modules` that cannot be imported even if nothing is masked.
    unimportable: BTreeSet<String>,
    /// Results of the unmasked repo: outcomes and values of all tests, by test id.
    gold: Map<String, Value>,
    values: Map<String, Value>,
    /// Texts that agents see, by file, with one space for each stretch of white space. The path of the paper's own text
    /// is empty.
    visible: BTreeMap<PathBuf, String>,
}

/// The measurements of a function that passes all gates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Passed {
    /// Names of the groups of tests (see [`Plan`]) in which at least one test fails if the function is masked.
    pub(super) needed_by: BTreeSet<String>,
    /// Ids of the tests that were run with the function's mutants. All of these tests belong to the groups in
    /// `needed_by`.
    pub(super) ids: Vec<String>,
    /// Results of the function's mutants.
    pub(super) evidence: FunctionEvidence,
}

/// Whether a function becomes a task, as found by running its tests on the original code and on changed code.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Gate {
    /// The function passes all gates, so it becomes a task.
    Passed(Box<Passed>),
    /// The function is dropped, for this reason.
    Dropped(String),
}

/// Changed files of the package, and the ids of the tests to run with them.
struct Variant {
    files: Vec<(PathBuf, Vec<u8>)>,
    ids: Vec<String>,
    /// The condition on the tests' results under which the next variants are run.
    required: Required,
}

/// A condition on the results of a variant's tests. If it is not met, the variants after this one are not run.
#[derive(Debug, Clone, Copy)]
enum Required {
    /// No condition.
    Nothing,
    /// The tests run this number of cases (such as branches) of the function's body, and make at least [`LEAST_CALLS`]
    /// calls with different arguments.
    AllCases(usize),
    /// All tests give their gold outcomes and values. The variant ends with the first test that does not pass.
    Gold,
}

/// Result of all tests of a variant.
#[derive(Debug, Default)]
struct WholeRun {
    /// Whether the test runner has reported on the variant.
    is_reported: bool,
    /// Tests whose outcome or values differ from gold.
    failing: BTreeSet<String>,
    /// Indices of the cases (such as branches) of the function's body that were run, if the variant records them.
    cases: BTreeSet<usize>,
    /// Number of recorded calls with different arguments.
    calls: usize,
}

impl WholeRun {
    /// Whether the results meet a variant's condition.
    fn shows(&self, required: Required) -> bool {
        match required {
            Required::Nothing => true,
            Required::AllCases(count) => self.cases.len() >= count && self.calls >= LEAST_CALLS,
            Required::Gold => self.failing.is_empty(),
        }
    }
}

/// Returns the report on each variant. `result` is the JSON object that the test runner printed.
fn trials(result: &Value) -> Vec<&Value> {
    result.get("trials").and_then(Value::as_array).into_iter().flatten().collect()
}

/// Whether a test is in a variant's report.
fn is_reported(id: &str, report: &Value) -> bool {
    report.get("tests").is_some_and(|tests| tests.get(id).is_some())
}

/// Decodes a text and replaces each stretch of white space by one space.
fn plain(bytes: &[u8]) -> String {
    one_spaced(&String::from_utf8_lossy(bytes))
}

/// Reads what agents see of a paper: its text and the files of its repo that are not hidden.
fn visible_texts(loaded: &LoadedPaper) -> BTreeMap<PathBuf, String> {
    let hidden = loaded.paper.hidden_set();
    let mut found = BTreeMap::from([(PathBuf::new(), one_spaced(&loaded.text))]);
    let walk = walkdir::WalkDir::new(&loaded.repo_dir).into_iter();
    // Leave out the same files as in the snapshots that agents get.
    let walk = walk.filter_entry(|it| it.depth() == 0 || !it.file_name().to_str().is_some_and(is_left_out));
    for file in walk.flatten().filter(|it| it.file_type().is_file()) {
        let path = file.path().strip_prefix(&loaded.repo_dir).unwrap_or(file.path()).to_owned();
        if hidden.is_match(&path) || file.metadata().map_or(u64::MAX, |it| it.len()) > LARGEST_TEXT {
            continue;
        }
        if let Ok(bytes) = std::fs::read(file.path()) {
            found.insert(path, plain(&bytes));
        }
    }
    found
}

impl Gates {
    /// Prepares the measurements for a package whose gold was recorded. First runs quick tests to measure the time that
    /// a run takes in addition to its tests. Then runs all tests to find those that fail to give their gold results,
    /// and imports the modules of the package.
    ///
    /// # Errors
    /// Kind `Baseline` if there is no gold, or if the tests of the original code give no result; the errors of
    /// [`Bench::run`].
    pub(super) async fn new(
        bench: Arc<Bench>,
        layout: Layout,
        plan: Plan,
        tests: BTreeMap<String, SurveyedTest>,
    ) -> Result<Self> {
        let results = crate::masked::gold::gold_of(bench.loaded(), crate::suite::Protocol::Curtailed)?;
        let (mut gold, mut values) = (Map::new(), Map::new());
        for result in results.values() {
            for (key, all) in [("tests", &mut gold), ("values", &mut values)] {
                let found = result.result.get(key).and_then(Value::as_object).into_iter().flatten();
                all.extend(found.map(|(id, value)| (id.clone(), value.clone())));
            }
        }
        let visible = visible_texts(bench.loaded());
        let odd = BTreeSet::new();
        let (modules, unimportable) = (BTreeSet::new(), BTreeSet::new());
        let overhead = UNKNOWN_OVERHEAD;
        let mut gates =
            Self { bench, layout, plan, tests, overhead, odd, modules, unimportable, gold, values, visible };
        let all: BTreeSet<String> = gates.tests.keys().cloned().collect();
        // The time of this run minus the time of its tests is the overhead of a run. Use quick tests, because the times
        // of slow tests may vary by more than the overhead.
        let original = |ids| Variant { files: Vec::new(), ids, required: Required::Nothing };
        let quick = original(gates.ids_of(&all));
        let inside = gates.seconds(&quick.ids);
        let first = gates.outcome(&[quick], &json!({ "whole": true })).await?;
        gates.overhead = (first.wall - inside).max(0.5);
        let all = gates.whole_run(original(all.into_iter().collect())).await?;
        if !all.is_reported {
            let why = "its tests give no result if all of them are run with the original code in one sandbox";
            return Err(Error::new(FailureKind::Baseline, why));
        }
        gates.odd = all.failing;
        gates.import_original().await?;
        Ok(gates)
    }

    /// Returns the names of the package's modules: those that its metadata or folders name, and those that contain
    /// functions which may be masked.
    fn all_modules(&self) -> BTreeSet<String> {
        let loaded = self.bench.loaded();
        let files = (0..loaded.paper.units.len()).filter_map(|unit| self.layout.module_of(loaded.source(unit).path()));
        self.layout.modules.iter().cloned().chain(files).collect()
    }

    /// Imports the modules of the original code, to find those that cannot be imported even if nothing is masked.
    async fn import_original(&mut self) -> Result<()> {
        self.modules = self.all_modules();
        let mut failed = self.failed_imports(&[]).await?;
        if failed.is_none() {
            // A module has ended the process or blocked it. Try again with the main modules only.
            self.modules = self.layout.modules.iter().cloned().collect();
            failed = self.failed_imports(&[]).await?;
        }
        match failed {
            Some(failed) => self.unimportable = failed,
            None => self.modules.clear(),
        }
        Ok(())
    }

    /// Masks these functions, each given by its index in the manifest, and imports the package's modules. Returns the
    /// names of the modules that cannot be imported; `None` if the program that imports them gives no result.
    ///
    /// # Errors
    /// Same as [`Bench::run`].
    async fn failed_imports(&self, functions: &[usize]) -> Result<Option<BTreeSet<String>>> {
        let ImportCommand { files, line } = importing(&self.modules, &self.layout.exports());
        let experiment = self.experiment(format!("{line}; cat {OUTPUT}"), IMPORT_LIMIT)?;
        let mut all = self.masked(functions)?;
        all.extend(files);
        let outcome = self.bench.run(&Trial { files: &all, experiment: &experiment }).await?;
        let failed = outcome.result.ok().and_then(|result| Some(result.as_object()?.keys().cloned().collect()));
        Ok(failed)
    }

    /// Whether the package can be imported if these functions are masked. Each function is given by its index in the
    /// manifest.
    ///
    /// # Errors
    /// Same as [`Bench::run`].
    pub(super) async fn loads(&self, functions: &[usize]) -> Result<bool> {
        Ok(self.failed_imports(functions).await?.is_some_and(|failed| failed.is_subset(&self.unimportable)))
    }

    /// Returns the functions, among the first `count` of the manifest, without which the package cannot be imported.
    /// Masks all of them at once and, as long as the import fails, tries each half of the set in the same way.
    ///
    /// # Errors
    /// Same as [`Bench::run`].
    pub(super) async fn entered_by_import(&self, count: usize) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        if self.modules.is_subset(&self.unimportable) {
            return Ok(found);
        }
        let mut waiting = vec![(0..count).collect::<Vec<usize>>()];
        while let Some(some) = waiting.pop() {
            if some.is_empty() || self.loads(&some).await? {
                continue;
            }
            if let [one] = some[..] {
                found.push(one);
                continue;
            }
            let (left, right) = some.split_at(some.len() / 2);
            waiting.extend([left.to_vec(), right.to_vec()]);
        }
        Ok(found)
    }

    /// Decides whether a function, given by its index in the manifest, becomes a task. Checks all conditions (gates)
    /// for which tests must be run. For one of them, runs up to `mutants` mutants of the function: its tests must
    /// notice at least the share `least` of these mutants.
    ///
    /// # Errors
    /// Same as [`Bench::run`].
    pub(super) async fn measure(&self, unit: usize, candidate: &Candidate, mutants: usize, least: f64) -> Result<Gate> {
        let dropped = |reason: &str| Ok(Gate::Dropped(reason.to_owned()));
        let ids = self.ids_of(&candidate.tests);
        if ids.is_empty() {
            return dropped("no kept test enters it");
        }
        if candidate.is_unexplained(self.visible.get(Path::new("")).map_or("", String::as_str)) {
            return dropped("nothing but its signature says what it does");
        }
        let module = self.bench.loaded().source(unit);
        // For the variants of the body, run more tests than those in `ids`. Any further test may be the one that needs
        // a detail of the body, runs one of its cases (such as a branch), or fails with the body of a similar function.
        let most_ids = self.quickest(&candidate.tests, usize::MAX, MOST_SECONDS_OF_BODY);
        let variant = |files, required| Variant { files, ids: most_ids.clone(), required };
        let of_module = |text, required| variant(vec![(module.path().to_owned(), text)], required);
        let Some(function) = self.bench.loaded().function_of(unit) else { return dropped("trivial") };
        let Cases { lines: cases, recording } = module.cases(function);
        let unstated = self.unstated(unit, candidate)?;
        let mut variants = Vec::new();
        if !unstated.is_empty() {
            variants.push(of_module(module.with_other_details(&unstated), Required::Gold));
        }
        variants.push(of_module(recording, Required::AllCases(cases.len())));
        variants.push(variant(self.masked(&[unit])?, Required::Nothing));
        let siblings = self.with_bodies_of_siblings(module, function);
        variants.extend(siblings.into_iter().map(|text| of_module(text, Required::Nothing)));
        let mut runs = self.whole_runs(variants).await?.into_iter();
        if !unstated.is_empty() && runs.next().is_some_and(|run| !run.failing.is_empty()) {
            return dropped("its tests need a text, number, exception or type that only its body states");
        }
        let recorded = runs.next().unwrap_or_default();
        if !recorded.is_reported {
            return dropped("its tests give no result while its calls are recorded");
        }
        // If no test runs a case of the body (such as a branch), a wrong solution could leave out this case and pass.
        if recorded.cases.len() < cases.len() {
            return dropped("its tests do not try every case of its body");
        }
        if recorded.calls < LEAST_CALLS {
            return dropped("its tests call it with too few different arguments");
        }
        let failing = runs.next().unwrap_or_default().failing;
        let groups = self.plan.by_test();
        let needed_by: BTreeSet<String> =
            failing.iter().filter_map(|id| groups.get(id.as_str())).map(|group| (*group).to_owned()).collect();
        if needed_by.is_empty() {
            return dropped("no test fails without it");
        }
        // If the body of a similar function passes most of the tests that fail when the function is masked, these tests
        // hardly check how the two functions differ.
        if runs.any(|run| 2 * run.failing.len() < failing.len()) {
            return dropped("the body of a similar function passes most of its tests");
        }
        let ids = self.ids_of(&failing);
        let all = self.bench.loaded().mutants(unit)?;
        let chosen: Vec<Mutant> = choose(&all, mutants, MUTANT_SEED).into_iter().cloned().collect();
        if chosen.is_empty() {
            return dropped("trivial");
        }
        let allowed = ((1.0 - least) * chosen.len() as f64 + 1e-9).floor() as usize;
        let mut evidence = FunctionEvidence::default();
        let variants = chosen.iter().map(|mutant| Variant {
            files: vec![(module.path().to_owned(), module.mutant_text(mutant))],
            ids: ids.clone(),
            required: Required::Nothing,
        });
        let noticed = self.noticed(variants.collect(), Some(allowed)).await?;
        for (mutant, is_noticed) in chosen.iter().zip(noticed) {
            evidence.mutants += 1;
            if is_noticed {
                evidence.killed += 1;
            } else {
                evidence.survivors.push(mutant.id.clone());
            }
            if evidence.survivors.len() > allowed {
                return dropped("its tests notice too few mutants");
            }
        }
        Ok(Gate::Passed(Box::new(Passed { needed_by, ids, evidence })))
    }

    /// Masks all functions of each combination at once, and returns for each combination whether any of its tests
    /// fails. A combination consists of indices in the manifest and of the ids of the tests to run.
    ///
    /// # Errors
    /// Same as [`Bench::run`].
    pub(super) async fn fail_together(&self, combinations: &[(Vec<usize>, BTreeSet<String>)]) -> Result<Vec<bool>> {
        let variants = combinations
            .iter()
            .map(|(units, ids)| {
                Ok(Variant { files: self.masked(units)?, ids: self.ids_of(ids), required: Required::Nothing })
            })
            .collect::<Result<_>>()?;
        self.noticed(variants, None).await
    }

    fn masked(&self, units: &[usize]) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        Ok(self.bench.loaded().masked(units)?.into_iter().map(|file| (file.path, file.bytes)).collect())
    }

    /// Same as [`Self::quickest`], with the limits [`MOST_TESTS`] and [`MOST_SECONDS`].
    fn ids_of(&self, tests: &BTreeSet<String>) -> Vec<String> {
        self.quickest(tests, MOST_TESTS, MOST_SECONDS)
    }

    /// Chooses the quickest of these tests, except those in `odd`. Takes at most `most_tests` tests of each group (see
    /// [`Plan`]). Of all tests taken, keeps the quickest, as many as run within `most_seconds` together, but at least
    /// one.
    fn quickest(&self, tests: &BTreeSet<String>, most_tests: usize, most_seconds: f64) -> Vec<String> {
        let groups = self.plan.by_test();
        let seconds = |id: &String| self.tests.get(id).map_or(0.0, |test| test.seconds);
        let mut by_group: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for id in tests {
            if let Some(group) = groups.get(id.as_str()).filter(|_| !self.odd.contains(id)) {
                by_group.entry(group).or_default().push(id);
            }
        }
        for ids in by_group.values_mut() {
            ids.sort_by(|one, other| seconds(one).total_cmp(&seconds(other)).then_with(|| one.cmp(other)));
            ids.truncate(most_tests);
        }
        let mut all: Vec<&String> = by_group.into_values().flatten().collect();
        all.sort_by(|one, other| seconds(one).total_cmp(&seconds(other)).then_with(|| one.cmp(other)));
        let mut total = 0.0;
        let mut chosen = Vec::new();
        for id in all {
            total += seconds(id);
            if total > most_seconds && !chosen.is_empty() {
                break;
            }
            chosen.push(id.clone());
        }
        chosen.sort();
        chosen
    }

    /// Runs the tests of a variant, and returns those whose outcome or values differ from gold. If the run gives no
    /// result, returns all of the variant's tests.
    async fn failing(&self, variant: Variant) -> Result<BTreeSet<String>> {
        Ok(self.whole_run(variant).await?.failing)
    }

    async fn whole_run(&self, variant: Variant) -> Result<WholeRun> {
        let variant = [variant];
        let outcome = self.outcome(&variant, &json!({ "whole": true })).await?;
        let [Variant { ids, .. }] = variant;
        let reports = outcome.result.as_ref().map(trials).unwrap_or_default();
        Ok(match reports.first() {
            Some(report) => self.read_run(ids, report),
            None => WholeRun { failing: ids.into_iter().collect(), ..WholeRun::default() },
        })
    }

    /// Same as [`Self::whole_run`], for several variants in one sandbox. Ends with the first variant that does not meet
    /// its condition, and then returns fewer runs than variants.
    async fn whole_runs(&self, variants: Vec<Variant>) -> Result<Vec<WholeRun>> {
        let outcome = self.outcome(&variants, &json!({ "whole": true })).await?;
        let reports = outcome.result.as_ref().map(trials).unwrap_or_default();
        let mut found = Vec::new();
        for (place, variant) in variants.into_iter().enumerate() {
            let required = variant.required;
            let run = match reports.get(place) {
                Some(report) => self.read_run(variant.ids, report),
                // There is no report on this variant, because an earlier variant may have ended the test runner. So run
                // this variant alone.
                None => self.whole_run(variant).await?,
            };
            let is_last = !run.shows(required);
            found.push(run);
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    fn read_run(&self, ids: Vec<String>, report: &Value) -> WholeRun {
        let cases = report.get("cases").and_then(Value::as_array).into_iter().flatten();
        WholeRun {
            is_reported: true,
            failing: ids.into_iter().filter(|id| !self.is_gold(id, report)).collect(),
            cases: cases.filter_map(|case| usize::try_from(case.as_u64()?).ok()).collect(),
            calls: report
                .get("calls")
                .and_then(Value::as_u64)
                .and_then(|calls| usize::try_from(calls).ok())
                .unwrap_or(0),
        }
    }

    /// Returns up to [`MOST_SIBLINGS`] versions of the function's file. In each version, the function's body is
    /// replaced by the body of a similar function from the paper's files. The most similar functions are used.
    fn with_bodies_of_siblings(&self, module: &Module, function: usize) -> Vec<Vec<u8>> {
        let loaded = self.bench.loaded();
        let others: BTreeMap<&Path, &Module> = (0..loaded.paper.units.len())
            .map(|other| loaded.source(other))
            .map(|other| (other.path(), other))
            .collect();
        let mut found: Vec<(f64, Vec<u8>)> = Vec::new();
        for other in others.into_values() {
            let functions = 0..other.functions().len();
            found.extend(functions.filter_map(|sibling| module.with_body_of_sibling(function, other, sibling)));
        }
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        found.truncate(MOST_SIBLINGS);
        found.into_iter().map(|(_, text)| text).collect()
    }

    /// Returns the details of a function's body that agents cannot know, because nothing that they see states them. The
    /// name of an exception or a type must be stated in the function's own signature, docstring, description or
    /// examples: elsewhere, it may concern other functions.
    fn unstated(&self, unit: usize, candidate: &Candidate) -> Result<Vec<Detail>> {
        let loaded = self.bench.loaded();
        let module = loaded.source(unit);
        let masked: Vec<(PathBuf, String)> =
            self.masked(&[unit])?.into_iter().map(|(path, bytes)| (path, plain(&bytes))).collect();
        // Other files may contain a short detail, such as a small number, by chance. So search for a short detail only
        // in the masked files and in the paper's text (whose path in `visible` is empty).
        let is_stated = |detail: &Detail| {
            let may_state = |path: &PathBuf| !detail.is_short || path.as_os_str().is_empty();
            let is_masked = |path: &PathBuf| masked.iter().any(|(own, _)| own == path);
            let elsewhere = self.visible.iter().filter(|(path, _)| may_state(path) && !is_masked(path));
            let mut texts = elsewhere.map(|(_, text)| text).chain(masked.iter().map(|(_, text)| text));
            texts.any(|text| detail.is_stated_in(text))
        };
        let function = loaded.function_of(unit);
        let docstring = function.and_then(|function| module.docstring(function)).unwrap_or_default();
        let header = function.map_or(&[][..], |function| &module.source()[module.functions()[function].header.clone()]);
        let header = String::from_utf8_lossy(header);
        let own = one_spaced(&format!("{header}\n{}\n{docstring}", candidate.description));
        let mut found = module.details(&loaded.code(unit));
        found.retain(|detail| !detail.is_stated_in(&own) && (detail.kind != DetailKind::Literal || !is_stated(detail)));
        Ok(found)
    }

    /// Runs the tests of all variants in one sandbox. A variant is noticed if one of its tests gives another result
    /// than gold; the variant's remaining tests are then not run. Returns for each variant whether it was noticed. If
    /// more than `most_unnoticed` variants go unnoticed, the remaining variants are not run and not in the result.
    async fn noticed(&self, variants: Vec<Variant>, most_unnoticed: Option<usize>) -> Result<Vec<bool>> {
        let mut options = json!({ "most_unnoticed": most_unnoticed });
        let ids: BTreeSet<&String> = variants.iter().flat_map(|variant| &variant.ids).collect();
        let expected: Map<String, Value> =
            ids.into_iter().filter_map(|id| Some((id.clone(), self.values.get(id)?.clone()))).collect();
        options["expected"] = expected.into();
        let outcome = self.outcome(&variants, &options).await?;
        let reports = outcome.result.as_ref().map(trials).unwrap_or_default();
        let mut found = Vec::new();
        let mut unnoticed = 0;
        for (place, variant) in variants.into_iter().enumerate() {
            if most_unnoticed.is_some_and(|most| unnoticed > most) {
                break;
            }
            let is_noticed = match reports.get(place) {
                Some(report) if variant.ids.iter().any(|id| is_reported(id, report) && !self.is_gold(id, report)) => {
                    true
                }
                Some(report) if variant.ids.iter().all(|id| is_reported(id, report)) => false,
                // The report on this variant is missing or incomplete: the test runner may have been ended, or the
                // memory filled, by this or an earlier variant. So run this variant alone.
                _ => !self.failing(variant).await?.is_empty(),
            };
            unnoticed += usize::from(!is_noticed);
            found.push(is_noticed);
        }
        Ok(found)
    }

    /// Runs the tests of these variants in one sandbox. The test runner also gets `options`.
    async fn outcome(&self, variants: &[Variant], options: &Value) -> Result<ExperimentOutcome> {
        let limit = |variant: &Variant| (SLOWER * (self.overhead + self.seconds(&variant.ids))).max(LEAST_LIMIT);
        let experiment = self.experiment(trials_command(&self.layout), variants.iter().map(limit).sum())?;
        let mut request = options.clone();
        request["trials"] = variants
            .iter()
            .map(|variant| {
                let files = variant.files.iter();
                let files: Map<String, Value> = files
                    .map(|(path, bytes)| (path.display().to_string(), BASE64_STANDARD.encode(bytes).into()))
                    .collect();
                let mut trial = json!({ "files": files, "ids": variant.ids });
                match variant.required {
                    Required::Nothing => {}
                    Required::AllCases(count) => {
                        trial["least_cases"] = count.into();
                        trial["least_calls"] = LEAST_CALLS.into();
                    }
                    Required::Gold => trial["must_pass"] = true.into(),
                }
                trial
            })
            .collect();
        let files = [(PathBuf::from(TRIALS), serde_json::to_vec(&request).unwrap_or_default())];
        self.bench.run(&Trial { files: &files, experiment: &experiment }).await
    }

    /// Returns the total seconds that these tests took when all tests of the original code were run (the survey).
    fn seconds(&self, ids: &[String]) -> f64 {
        ids.iter().filter_map(|id| self.tests.get(id)).map(|test| test.seconds).sum()
    }

    /// Whether a test gave its gold outcome and values.
    fn is_gold(&self, id: &str, result: &Value) -> bool {
        if result.get("tests").and_then(|tests| tests.get(id)) != self.gold.get(id) {
            return false;
        }
        let Some(expected) = self.values.get(id) else { return true };
        let got = result.get("values").and_then(|values| values.get(id));
        let Some(experiment) = self.bench.loaded().paper.experiments.first() else { return false };
        score_experiment(
            id,
            &json!({ "x": 1, "values": expected }),
            got.map(|got| json!({ "x": 1, "values": got })).as_ref(),
            &experiment.bounds(None),
        )
        .pass
    }

    fn experiment(&self, command: String, time_limit: f64) -> Result<TaskExperiment> {
        let first = self.bench.ready().experiments.first();
        let first = first.ok_or_else(|| Error::new(FailureKind::Baseline, "no groups of tests"))?;
        Ok(TaskExperiment { command, time_limit, result: ResultRule::JsonLine(Stdout::Stdout), ..first.clone() })
    }
}
