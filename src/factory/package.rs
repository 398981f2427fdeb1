//! Makes the tasks of one package, from its name to a paper in the suite.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use regex::Regex;
use tokio::sync::Semaphore;

use super::about::{has_tests, licence, python_range, repository};
use super::documentation;
use super::examples::{source_without_outputs, without_outputs};
use super::functions::{Candidate, PackageFunctions, examine, spread};
use super::gates::{Gate, Gates, Passed};
use super::index::normalised;
use super::layout::{self, Layout};
use super::list::{FactorySettings, ListedFunction, Measured, PackageEntry, digests};
use super::manifest::PackageManifest;
use super::record::{Recorded, record};
use super::requirements::{self, Requirements, name_of};
use super::source::{Fetcher, PackageSource, Unpacked};
use super::survey::{Plan, StableTests, Survey, SurveyOptions, SurveyedTest, groups, stable, survey, within_budget};
use super::{JOURNAL, PLAN, RUNNER, RUNNER_CODE};
use crate::audit::Bench;
use crate::audit::leaks;
use crate::code::index_tree;
use crate::draft::extension::{extension, joined, libraries};
use crate::draft::manifest::CompiledCode;
use crate::draft::metadata::{self, facts};
use crate::draft::repo::{CopyRules, copy};
use crate::draft::{Draft, environment};
use crate::error::{Error, FailureKind, Result};
use crate::masked::build::tag;
use crate::masked::ready::ReadyPaper;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;
use crate::suite::{Dependencies, EVIDENCE_FORMAT, Gold, LoadedPaper, PaperEvidence, Protocol, Suite};

/// Files of tests, which `new` leaves out and this verb keeps.
const TESTS: [&str; 10] = [
    "**/tests",
    "**/test",
    "**/testing",
    "**/tests.py",
    "**/test.py",
    "**/test_*.py",
    "**/*_test.py",
    "**/*_tests.py",
    "**/conftest.py",
    "**/pytest.ini",
];

/// Files that give functions or values away, and that no test needs as a rule.
const LEFT_OUT: [&str; 12] = [
    "doc",
    "docs",
    "documentation",
    "*.egg-info",
    "*/*.egg-info",
    "build",
    "paper",
    "joss",
    "CHANGE*",
    "HISTORY*",
    "NEWS*",
    "*.ipynb",
];

/// Configuration that tests and builds share; protected, and never hidden.
const SHARED: [&str; 6] = ["pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "PKG-INFO", "MANIFEST.in"];

/// Number of times that the plan may change while gold is recorded.
const ROUNDS: usize = 4;

/// A containment of this much or more in one other place gives a function away.
const LEAK: f64 = 0.6;

/// Number of combinations of two or three functions that are tried.
const COMBINATIONS: usize = 20;

/// Resources shared by the packages of one command.
pub(super) struct Workshop {
    /// The new suite.
    pub(super) suite: Suite,
    /// Settings that decide the result.
    pub(super) settings: FactorySettings,
    /// This machine.
    pub(super) machine: Arc<Machine>,
    /// Gets sources.
    pub(super) fetcher: Fetcher,
    /// Number of trials of one package at once.
    pub(super) slots: usize,
    /// Locking and building of environments, one at a time: pip and the network are the limit.
    pub(super) envs: Semaphore,
    /// Ids that are taken, by the package that took them.
    pub(super) ids: std::sync::Mutex<BTreeMap<String, String>>,
}

/// A repo that is ready for its tests.
struct Prepared {
    draft: Draft,
    layout: Layout,
    sources: PathBuf,
    compiled: CompiledCode,
    facts: metadata::PackageFacts,
    environment: String,
}

impl Workshop {
    /// Makes the tasks of a package. Whatever goes wrong becomes the entry's reason; `false` says that another try may
    /// succeed, because the package is not to blame.
    pub(super) async fn make(&self, asked: &str, observer: &dyn Observer) -> (PackageEntry, bool) {
        let begun = Instant::now();
        let mut entry = PackageEntry { package: asked.to_owned(), ..PackageEntry::default() };
        let made = self.try_make(asked, &mut entry, observer).await;
        entry.minutes = (begun.elapsed().as_secs_f64() / 0.6).round() / 100.0;
        let mut is_final = true;
        if let Err(error) = made {
            is_final = !matches!(
                error.kind,
                FailureKind::Machine | FailureKind::Infrastructure | FailureKind::Place | FailureKind::Interrupted
            );
            entry.refused = Some(one_line(&error));
            entry.measured = None;
        }
        (entry, is_final)
    }

    async fn try_make(&self, asked: &str, entry: &mut PackageEntry, observer: &dyn Observer) -> Result<()> {
        let source = PackageSource::parse(asked)?;
        let scratch = self.scratch()?;
        observer.on(RunEvent::Stage(Stage::new("getting", asked)));
        let mut found = self.fetcher.get(&source, &scratch.path().join("sources"), None).await?;
        entry.source = Some(found.record.clone());
        let mut layout = layout::find(&found.folder)?;
        if !has_tests(&found.folder) {
            found = self.repository_sources(&source, &found, &layout, &scratch.path().join("repository")).await?;
            entry.source = Some(found.record.clone());
            let version = layout.version.clone();
            layout = layout::find(&found.folder)?;
            layout.version = version;
        }
        let id = self.take_id(asked, &layout);
        entry.id.clone_from(&id);
        entry.name.clone_from(&layout.name);
        entry.version.clone_from(&layout.version);
        entry.licence = licence(&found.folder);
        let prepared = self.prepare(&id, layout, &found.folder, entry, observer).await?;
        let measured = self.measure(&prepared, entry, observer).await?;
        entry.measured = Some(measured);
        let Prepared { draft, .. } = prepared;
        draft.move_into_suite()?;
        let (files, bytes) = digests(self.suite.root(), &id)?;
        (entry.digests, entry.bytes) = (files, bytes);
        Ok(())
    }

    /// Gets the sources that the metadata names, for an archive without tests.
    async fn repository_sources(
        &self,
        source: &PackageSource,
        found: &Unpacked,
        layout: &Layout,
        into: &Path,
    ) -> Result<Unpacked> {
        let refused = |why: &str| {
            Error::suite(format!("its sources have no tests{why}"))
                .hint("give a folder with its sources and tests, as after a `git clone`")
        };
        if !matches!(source, PackageSource::Index(..)) {
            return Err(refused(""));
        }
        let Some(address) = repository(&found.folder) else {
            return Err(refused(", and its metadata names no repository"));
        };
        for tag in [format!("v{}", layout.version), layout.version.clone()] {
            let target = into.join(&tag);
            let git = PackageSource::Git(format!("{address}@{tag}"));
            if let Ok(unpacked) = self.fetcher.get(&git, &target, None).await
                && has_tests(&unpacked.folder)
            {
                return Ok(unpacked);
            }
        }
        Err(refused(", and the repository that its metadata names cannot be reached or has none of this version"))
    }

    /// Chooses an id that no other package of the suite has.
    fn take_id(&self, asked: &str, layout: &Layout) -> String {
        let mut taken = self.ids.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let plain = normalised(&layout.name);
        let versioned = format!("{plain}-{}", layout.version.replace(['+', '!'], "."));
        let is_free = |id: &String| taken.get(id).is_none_or(|other| other == asked);
        let id = [plain.clone(), versioned.clone()].into_iter().find(is_free);
        let id = id.unwrap_or_else(|| {
            let numbered = (2..).map(|number| format!("{versioned}-{number}"));
            numbered.into_iter().find(is_free).unwrap_or(plain)
        });
        taken.insert(id.clone(), asked.to_owned());
        id
    }

    /// Writes repo and env, and builds the env.
    async fn prepare(
        &self,
        id: &str,
        layout: Layout,
        sources: &Path,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<Prepared> {
        self.remove_unfinished(id)?;
        let mut draft = Draft::begin(&self.suite, id)?;
        let repo = draft.suite().repo_dir(id);
        write_repo(sources, &repo, &layout, &self.settings)?;
        let mut needed = requirements::find(sources, &layout.name);
        let found = extension(sources);
        if let Some(found) = &found {
            needed.own = joined(&needed.own, &found.requirements);
        }
        let python = python_range(sources, found.is_some(), id).await?;
        let permit = self.envs.acquire().await.map_err(|_| Error::internal("the envs' queue was closed"))?;
        observer.on(RunEvent::Stage(Stage::new("building env of", id)));
        let environment = self.lock(&mut draft, id, &python, &mut needed).await?;
        entry.left_out = std::mem::take(&mut needed.left_out);
        let folder = draft.suite().env_dir(id);
        refuse_itself(&folder, &layout)?;
        let built = self.machine.envs.build(&folder, &self.machine.cache, &|_| {}).await?;
        drop(permit);
        entry.env_bytes = folder_bytes(&built.prefix);
        let files = library_files(&repo);
        let bound = found.is_some() || files.iter().any(|file| tag(file).is_some());
        let compiled = CompiledCode { build: found.map(|found| found.command), files, abi: bound.then(|| built.abi()) };
        let mut facts = facts(sources);
        if facts.year.is_none() {
            facts.year = Some(u16::try_from(crate::files::now().to_zoned(jiff::tz::TimeZone::UTC).year()).unwrap_or(0));
        }
        Ok(Prepared { draft, layout, sources: sources.to_owned(), compiled, facts, environment })
    }

    /// Locks the env; requirements of tests that cannot be installed are dropped.
    async fn lock(&self, draft: &mut Draft, id: &str, python: &str, needed: &mut Requirements) -> Result<String> {
        let mut without_tests = false;
        loop {
            let yml = environment::yml(id, python, &needed.all());
            draft.write_env(&yml)?;
            if draft.take_lock(&self.machine.cache)? {
                return Ok(yml);
            }
            let folder = draft.suite().env_dir(id);
            match self.machine.envs.lock(&folder, &self.machine.cache, &|_| {}).await {
                Ok(_) => {
                    draft.keep_lock(&self.machine.cache)?;
                    return Ok(yml);
                }
                Err(error) => {
                    let message = error.to_string();
                    if message.contains("does not answer") || message.contains("disk is full") {
                        return Err(error);
                    }
                    if needed.drop_named(&message) {
                        continue;
                    }
                    if !needed.tests.is_empty() && !without_tests {
                        without_tests = true;
                        let dropped = std::mem::take(&mut needed.tests);
                        needed.left_out.extend(
                            dropped
                                .into_iter()
                                .map(|one| format!("{one}: its tests' requirements contradict each other")),
                        );
                        continue;
                    }
                    let said = message.lines().rev().find(|line| line.contains("ERROR")).unwrap_or(&message);
                    let said = said.trim().trim_start_matches("ERROR:").trim().to_owned();
                    return Err(Error::suite(format!("its requirements cannot be installed: {said}")));
                }
            }
        }
    }

    /// Creates a folder for the sources of a package, which is removed at the end.
    fn scratch(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in(self.suite.root().join(JOURNAL))
            .map_err(|error| Error::io("create", self.suite.root(), error))
    }

    /// Removes what a killed process left of a package.
    fn remove_unfinished(&self, id: &str) -> Result<()> {
        for part in ["papers", "repos", "envs"] {
            let folder = self.suite.root().join(part).join(id);
            crate::workspace::remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
        }
        Ok(())
    }

    /// Runs the tests, chooses functions and measures them, and writes the paper.
    async fn measure(
        &self,
        prepared: &Prepared,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<Measured> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let repo = suite.repo_dir(id);
        let (surveyed, tests) = self.survey(prepared, entry, observer).await?;
        let (mut tests, mut without_values) = (tests.kept, tests.without_values);
        let test_files = test_files(&surveyed, &repo, &prepared.layout);
        let mut round = 0;
        let (bench, plan, examined, gold) = loop {
            round += 1;
            let plan = Plan {
                groups: groups(&tests),
                without_values: without_values.iter().filter(|id| tests.contains_key(*id)).cloned().collect(),
                seconds: tests
                    .iter()
                    .map(|(id, test)| (id.clone(), (test.seconds * 1000.0).round() / 1000.0))
                    .collect(),
            };
            if tests.is_empty() {
                return Err(Error::new(FailureKind::Baseline, "none of its tests passes in every run"));
            }
            write_plan(&repo, &plan)?;
            let examined = examine(&repo, &prepared.layout, &test_files.iter().cloned().collect(), &entering(&tests));
            let functions: Vec<ListedFunction> = examined.candidates.iter().map(listed).collect();
            if functions.is_empty() {
                fill_funnel(entry, &examined, &tests, &plan);
                return Err(Error::new(FailureKind::Baseline, "its tests enter no function that is worth masking"));
            }
            self.write_paper(prepared, &test_files, &plan, &functions)?;
            let ready = self.ready(suite, id, observer).await?;
            let bench = Arc::new(Bench::new(ready, Arc::clone(&self.machine), self.slots, false)?);
            match record(&bench, &prepared.layout, &plan, self.machine.backend.name(), observer).await? {
                Recorded::Gold(gold) => break (bench, plan, examined, *gold),
                Recorded::Varying(failed, varying) if round < ROUNDS => {
                    *entry.funnel.tests_left_out.entry("varies".to_owned()).or_default() += failed.len();
                    tests.retain(|test, _| !failed.contains(test));
                    without_values.extend(varying);
                }
                Recorded::Varying(..) => {
                    return Err(Error::new(FailureKind::Baseline, "its tests vary from run to run"));
                }
            }
        };
        fill_funnel(entry, &examined, &tests, &plan);
        gold.save(&suite.paper_dir(id).join("gold.json"))?;
        drop(bench);
        let ready = self.ready(suite, id, observer).await?;
        let prefix = ready.env.prefix.clone();
        let bench = Arc::new(Bench::new(ready, Arc::clone(&self.machine), self.slots, false)?);
        let mut dropped = Self::leaking(&bench, &prefix)?;
        let gates = Gates::new(Arc::clone(&bench), prepared.layout.clone(), plan.clone(), tests).await?;
        let all: Vec<usize> = (0..examined.candidates.len()).collect();
        if !gates.loads(&all).await? {
            for place in all {
                if !dropped.contains_key(&examined.candidates[place].at) && !gates.loads(&[place]).await? {
                    dropped
                        .insert(examined.candidates[place].at.clone(), "runs when the package is imported".to_owned());
                }
            }
        }
        let passed = self.gate(Arc::new(gates), &examined, &mut dropped, entry, observer).await?;
        for (at, reason) in dropped {
            entry.funnel.dropped.entry(reason).or_default().push(at);
        }
        if passed.is_empty() {
            return Err(Error::new(FailureKind::Baseline, "no function of it passes all gates"));
        }
        self.finish(prepared, &bench, &test_files, plan, gold, &passed, entry)
    }

    /// Runs all tests three times: alone, then twice beside each other with other work.
    async fn survey(
        &self,
        prepared: &Prepared,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<(Survey, StableTests)> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let repo = suite.repo_dir(id);
        write_plan(&repo, &Plan::default())?;
        write_runner(&repo)?;
        self.write_paper(prepared, &[], &Plan::default(), &[])?;
        let ready = self.ready(suite, id, observer).await?;
        let options = SurveyOptions { seconds: self.settings.test_seconds, doctests: self.settings.doctests };
        let exports = prepared.layout.exports();
        observer.on(RunEvent::Stage(Stage::new("running the tests of", id)));
        let first = survey(&ready, &exports, options, false, &self.machine).await?;
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
            survey(&ready, &exports, options, true, &self.machine),
            survey(&ready, &exports, options, false, &self.machine)
        );
        let surveys = [first, second?, third?];
        let mut found = stable(&surveys);
        entry.funnel.tests = surveys[0].tests.len();
        let over = within_budget(&mut found.kept);
        if over > 0 {
            found.left_out.insert("more than 20 seconds of tests".to_owned(), over);
        }
        entry.funnel.tests_left_out.clone_from(&found.left_out);
        let [first, ..] = surveys;
        Ok((first, found))
    }

    /// Measures candidates in their drawn order until there are enough. Returns those that pass, with their index.
    async fn gate(
        &self,
        gates: Arc<Gates>,
        examined: &PackageFunctions,
        dropped: &mut BTreeMap<String, String>,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<Vec<(usize, Passed)>> {
        let places: BTreeMap<&str, usize> =
            examined.candidates.iter().enumerate().map(|(place, one)| (one.at.as_str(), place)).collect();
        let order: Vec<usize> = spread(examined.candidates.clone(), self.settings.seed)
            .iter()
            .filter(|candidate| !dropped.contains_key(&candidate.at))
            .filter_map(|candidate| places.get(candidate.at.as_str()).copied())
            .collect();
        let total = order.len();
        let mut todo = order.into_iter();
        let mut running = tokio::task::JoinSet::new();
        let mut passed: Vec<(usize, Passed)> = Vec::new();
        let (mutants, least) = (self.settings.mutants, self.settings.least_score);
        loop {
            // Start only measurements that could all be kept, so that the choice does not depend on their order.
            while running.len() < self.slots + 1 && passed.len() + running.len() < self.settings.most {
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

    /// Masks drawn pairs and triples together. Returns how many were tried, and how many failed as they should.
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
        let mut failed = 0;
        for combination in &drawn {
            let units: Vec<usize> = combination.iter().map(|place| passed[*place].0).collect();
            let ids: BTreeSet<String> = combination.iter().flat_map(|place| passed[*place].1.ids.clone()).collect();
            failed += usize::from(gates.fails_together(&units, &ids).await? && gates.loads(&units).await?);
        }
        Ok((drawn.len(), failed))
    }

    /// Functions whose bodies can be read elsewhere, with the reason.
    fn leaking(bench: &Bench, prefix: &Path) -> Result<BTreeMap<String, String>> {
        let loaded = bench.loaded();
        let report = leaks::measure(loaded, Some(&bench.ready().shown))?;
        let mut found: BTreeMap<String, String> = report
            .functions
            .iter()
            .filter(|leak| leak.containment >= LEAK)
            .map(|leak| (leak.at.clone(), "its body is elsewhere in the repo".to_owned()))
            .collect();
        for finding in leaks::installed(loaded, prefix) {
            let message = finding.error.to_string();
            for unit in loaded.paper.units.iter().filter(|unit| message.contains(&format!("`{}`", unit.at))) {
                found.insert(unit.at.clone(), "its body is in the environment".to_owned());
            }
        }
        Ok(found)
    }

    /// Writes the paper with the functions that passed, and checks that it loads.
    #[allow(clippy::too_many_arguments, reason = "everything that was measured")]
    fn finish(
        &self,
        prepared: &Prepared,
        bench: &Bench,
        test_files: &[String],
        plan: Plan,
        mut gold: Gold,
        passed: &[(usize, Passed)],
        entry: &mut PackageEntry,
    ) -> Result<Measured> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let units = &bench.loaded().paper.units;
        let functions: Vec<ListedFunction> = passed
            .iter()
            .map(|(place, _)| {
                let unit = &units[*place];
                ListedFunction { at: unit.at.clone(), description: unit.description.clone(), passages: Vec::new() }
            })
            .collect();
        let needed: BTreeSet<&String> = passed.iter().flat_map(|(_, one)| &one.needed_by).collect();
        let mut used = plan.clone();
        used.groups.retain(|group, _| needed.contains(group));
        for results in gold.results.values_mut() {
            results.retain(|group, _| needed.contains(group));
        }
        let functions = self.with_passages(prepared, functions);
        self.write_paper(prepared, test_files, &used, &functions)?;
        let paper = suite.paper_dir(id);
        gold.save(&paper.join("gold.json"))?;
        let mut dependencies = Dependencies { format: 1, repo: gold.repo.clone(), ..Dependencies::default() };
        for group in used.groups.keys() {
            let needs = passed.iter().filter(|(_, one)| one.needed_by.contains(group));
            dependencies.needs.insert(group.clone(), needs.map(|(place, _)| units[*place].at.clone()).collect());
        }
        let loaded = LoadedPaper::load(suite, id)?;
        (0..loaded.paper.units.len()).try_for_each(|place| loaded.prove_mask(place))?;
        let mut evidence = PaperEvidence {
            format: EVIDENCE_FORMAT,
            repo: gold.repo.clone(),
            kinds: Some(crate::code::MutantKind::COUNT),
            ..PaperEvidence::default()
        };
        for (place, one) in passed {
            evidence.functions.insert(units[*place].at.clone(), one.evidence.clone());
        }
        for leak in leaks::measure(&loaded, Some(&bench.ready().shown))?.functions {
            if let Some(function) = evidence.functions.get_mut(&leak.at) {
                function.containment = (1e4 * leak.containment).round() / 1e4;
                function.contained_in = leak.place;
            }
        }
        entry.funnel.kept = functions.len();
        entry.funnel.mutants =
            evidence.functions.values().fold((0, 0), |(made, killed), one| (made + one.mutants, killed + one.killed));
        super::list::save_json(&paper.join("dependencies.json"), &dependencies)?;
        evidence.save(&paper.join("evidence.json"))?;
        LoadedPaper::load(suite, id)?;
        let env = suite.env_dir(id);
        let mut locks = BTreeMap::new();
        for file in fs::read_dir(&env).map_err(|error| Error::io("read", &env, error))?.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name != "environment.yml" {
                let text = fs::read_to_string(file.path()).map_err(|error| Error::io("read", &file.path(), error))?;
                locks.insert(name, text);
            }
        }
        Ok(Measured {
            environment: prepared.environment.clone(),
            locks,
            build: prepared.compiled.build.clone(),
            abi: prepared.compiled.abi.clone(),
            year: prepared.facts.year.unwrap_or(0),
            test_files: test_files.to_vec(),
            plan,
            functions,
            gold,
            dependencies,
            evidence,
        })
    }

    /// Adds the headings of the text that name a function.
    fn with_passages(&self, prepared: &Prepared, functions: Vec<ListedFunction>) -> Vec<ListedFunction> {
        let text = self.document(prepared, &functions);
        let headings: Vec<&str> =
            text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim()).collect();
        let named = |function: &ListedFunction| -> Vec<String> {
            let name = function.at.rsplit(['.', ':']).next().unwrap_or_default().split('#').next().unwrap_or_default();
            if name.len() < 4 || name.starts_with("__") {
                return Vec::new();
            }
            let Ok(word) = Regex::new(&format!(r"(?:^|[^\w]){}(?:$|[^\w])", regex::escape(name))) else {
                return Vec::new();
            };
            let mut found: Vec<String> =
                headings.iter().filter(|heading| word.is_match(heading)).map(|it| (*it).to_owned()).collect();
            found.dedup();
            found.truncate(3);
            found
        };
        functions.into_iter().map(|function| ListedFunction { passages: named(&function), ..function }).collect()
    }

    fn document(&self, prepared: &Prepared, functions: &[ListedFunction]) -> String {
        let masked: BTreeSet<String> = functions.iter().map(|function| function.at.clone()).collect();
        let repo = prepared.draft.suite().repo_dir(prepared.draft.id());
        let keep = self.settings.keep_examples;
        documentation::write(&prepared.sources, &repo, &prepared.layout, &prepared.facts, &masked, keep).text
    }

    /// Writes manifest and text.
    fn write_paper(
        &self,
        prepared: &Prepared,
        test_files: &[String],
        plan: &Plan,
        functions: &[ListedFunction],
    ) -> Result<()> {
        let repo = prepared.draft.suite().repo_dir(prepared.draft.id());
        let walk = walkdir::WalkDir::new(&repo).sort_by_file_name().into_iter().flatten();
        let files: Vec<PathBuf> = walk
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(&repo).unwrap_or(entry.path()).to_owned())
            .collect();
        let manifest = PackageManifest {
            id: prepared.draft.id(),
            files: &files,
            facts: &prepared.facts,
            layout: &prepared.layout,
            compiled: &prepared.compiled,
            test_files,
            visible: self.settings.visible_tests,
            plan,
            functions,
        };
        prepared.draft.write("paper.toml", &manifest.text())?;
        prepared.draft.write("paper.md", &self.document(prepared, functions))
    }

    async fn ready(&self, suite: &Suite, id: &str, observer: &dyn Observer) -> Result<ReadyPaper> {
        let loaded = LoadedPaper::load(suite, id)?;
        ReadyPaper::prepare(loaded, Protocol::Curtailed, &self.machine, observer).await
    }

    /// Makes a package's files again from its sources and its measurements, without running anything.
    ///
    /// # Errors
    /// Kind `Suite` if the sources are others or the files come out differently.
    pub(super) async fn rebuild(&self, entry: &PackageEntry) -> Result<()> {
        let (Some(source), Some(measured)) = (&entry.source, &entry.measured) else { return Ok(()) };
        let id = &entry.id;
        let scratch = self.scratch()?;
        let parsed = PackageSource::parse(&source.package)?;
        let found = self.fetcher.get(&parsed, &scratch.path().join("sources"), Some(source)).await?;
        let layout = Layout { version: entry.version.clone(), ..layout::find(&found.folder)? };
        self.remove_unfinished(id)?;
        let mut draft = Draft::begin(&self.suite, id)?;
        let repo = draft.suite().repo_dir(id);
        write_repo(&found.folder, &repo, &layout, &self.settings)?;
        draft.write_env(&measured.environment)?;
        let env = draft.suite().env_dir(id);
        for (name, text) in &measured.locks {
            if name.contains(['/', '\\']) {
                return Err(Error::suite(format!("`{name}` is not the name of a lock file")));
            }
            fs::write(env.join(name), text).map_err(|error| Error::io("write", &env.join(name), error))?;
        }
        write_plan(&repo, &measured.plan)?;
        write_runner(&repo)?;
        let files = library_files(&repo);
        let compiled = CompiledCode { build: measured.build.clone(), files, abi: measured.abi.clone() };
        let facts = metadata::PackageFacts { year: Some(measured.year), ..facts(&found.folder) };
        let prepared = Prepared {
            draft,
            layout,
            sources: found.folder.clone(),
            compiled,
            facts,
            environment: measured.environment.clone(),
        };
        let mut used = measured.plan.clone();
        used.groups.retain(|group, _| measured.dependencies.needs.contains_key(group));
        self.write_paper(&prepared, &measured.test_files, &used, &measured.functions)?;
        let paper = prepared.draft.suite().paper_dir(id);
        measured.gold.save(&paper.join("gold.json"))?;
        super::list::save_json(&paper.join("dependencies.json"), &measured.dependencies)?;
        measured.evidence.save(&paper.join("evidence.json"))?;
        LoadedPaper::load(prepared.draft.suite(), id)?;
        let Prepared { draft, .. } = prepared;
        draft.move_into_suite()?;
        let (made, _) = digests(self.suite.root(), id)?;
        let other = super::list::differing(&made, &entry.digests);
        if let Some(first) = other.first() {
            return Err(Error::suite(format!(
                "`{}`: {} files are not as in the list, such as `{first}`",
                entry.package,
                other.len()
            ))
            .hint("was the list made by another version of this program?"));
        }
        Ok(())
    }
}

/// Writes the plan of the tests into a repo.
fn write_plan(repo: &Path, plan: &Plan) -> Result<()> {
    let (path, bytes) = plan.file();
    fs::write(repo.join(&path), bytes).map_err(|error| Error::io("write", &path, error))
}

/// Writes the runner of the tests into a repo.
fn write_runner(repo: &Path) -> Result<()> {
    fs::write(repo.join(RUNNER), RUNNER_CODE).map_err(|error| Error::io("write", &repo.join(RUNNER), error))
}

/// Paths of the compiled libraries in a repo.
fn library_files(repo: &Path) -> Vec<String> {
    libraries(repo).into_iter().filter_map(|path| Some(path.to_str()?.to_owned())).collect()
}

/// Copies the sources to the repo of agents: with the tests, without documents and outputs of examples, with what a build
/// would have made.
fn write_repo(sources: &Path, repo: &Path, layout: &Layout, settings: &FactorySettings) -> Result<()> {
    let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
    copy(sources, repo, &CopyRules::new(&owned(&TESTS), &owned(&LEFT_OUT))?)?;
    if !settings.keep_examples {
        for entry in fs::read_dir(repo).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().to_lowercase();
            if name.starts_with("readme")
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                fs::write(entry.path(), without_outputs(&text).0)
                    .map_err(|error| Error::io("write", &entry.path(), error))?;
            }
        }
    }
    // Doctests are tests in the code itself, so their outputs stay.
    if !settings.keep_examples && !settings.doctests {
        for (path, module) in index_tree(repo) {
            if let Ok(module) = module
                && layout.holds(&path)
                && let Some((bytes, _)) = source_without_outputs(&module)
            {
                fs::write(repo.join(&path), bytes).map_err(|error| Error::io("write", &repo.join(&path), error))?;
            }
        }
    }
    layout.complete(sources, repo)
}

/// Refuses an env that contains the package itself, because one of its requirements needs it.
fn refuse_itself(env: &Path, layout: &Layout) -> Result<()> {
    for file in fs::read_dir(env).into_iter().flatten().flatten() {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("name = "));
        if names.into_iter().any(|name| name_of(name.trim_matches('"')) == normalised(&layout.name)) {
            return Err(Error::suite(format!(
                "a requirement of its tests installs `{}` itself, where agents could read it",
                layout.name
            )));
        }
    }
    Ok(())
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

/// The tests that enter each function.
fn entering(tests: &BTreeMap<String, SurveyedTest>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (id, test) in tests {
        for function in &test.entered {
            found.entry(function.clone()).or_default().insert(id.clone());
        }
    }
    found
}

fn listed(candidate: &Candidate) -> ListedFunction {
    ListedFunction { at: candidate.at.clone(), description: candidate.description.clone(), passages: Vec::new() }
}

/// Files of the tests that exist in the repo and that neither a build nor the package needs.
fn test_files(survey: &Survey, repo: &Path, layout: &Layout) -> Vec<String> {
    let is_test = |file: &String| {
        let path = Path::new(file);
        let in_tests = path.iter().any(|part| part.to_string_lossy().starts_with("test") || part == "conftest.py");
        !SHARED.contains(&file.as_str())
            && file != RUNNER
            && file != PLAN
            && repo.join(path).is_file()
            && (in_tests || !layout.holds(path) || file.ends_with("_test.py") || file.ends_with("_tests.py"))
    };
    survey.test_files.iter().filter(|file| is_test(file)).cloned().collect()
}

fn fill_funnel(
    entry: &mut PackageEntry,
    examined: &PackageFunctions,
    tests: &BTreeMap<String, SurveyedTest>,
    plan: &Plan,
) {
    let funnel = &mut entry.funnel;
    funnel.tests_kept = tests.len();
    funnel.tests_with_values = tests.len() - plan.without_values.len();
    funnel.functions = examined.found;
    funnel.entered = examined.entered;
    funnel.candidates = examined.candidates.len();
    funnel.dropped.clone_from(&examined.refused);
}

/// An error as one line.
fn one_line(error: &Error) -> String {
    let text = crate::error::with_causes(error);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.next().unwrap_or_default().to_owned();
    if let Some(last) = lines.next_back() {
        line = format!("{line}: {last}");
    }
    line.chars().take(400).collect()
}
