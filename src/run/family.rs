//! Families of tasks: everything that depends on the kind of task.
//!
//! A [`Family`] reads sample ids and loads items. An [`Item`] (a paper, a task) knows its samples, what they are
//! called, and how work on them is scored; nothing is built or run for it. A [`Ready`] item has its repo and env on
//! this machine and says what an attempt is given and what is run to verify it. The rest of the program asks these
//! three and knows no family by name. `docs/new-family.md` shows a whole family.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};

use super::check::{Measurement, measure};
use super::configuration::{Configuration, Draw};
use super::event::Observer;
use super::machine::Machine;
use super::record::AttemptRecord;
use crate::agent::prompts::general_digest;
use crate::agent::{Check, Context, Limits, Task};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::kernel::CellRecord;
use crate::sample::{Sample, Withheld};
use crate::sandbox::{Fault, Sandbox};
use crate::score::{Rule, Tolerance, Verdict};
use crate::suite::{Protocol, When};
use crate::workspace::{Changes, Snapshot};

/// What a family calls things: singular words whose plural ends in `s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Words {
    /// An item: "paper", "task".
    pub item: &'static str,
    /// What samples are grouped by in reports: "paper", "repo".
    pub group: &'static str,
    /// A unit that samples withhold: "function", "block".
    pub unit: &'static str,
}

impl Default for Words {
    fn default() -> Self {
        Self { item: "item", group: "group", unit: "unit" }
    }
}

/// What n counts if nothing else says it.
pub const WITHHELD: &str = "withheld units";

/// A kind of task.
pub trait Family: Send + Sync {
    /// Its name, in configurations and records: `masked`.
    fn name(&self) -> &'static str;
    /// What n counts, as figures name their axis: "masked functions".
    fn axis(&self) -> &'static str {
        WITHHELD
    }
    /// What it calls its items, and the groups of samples in reports.
    fn words(&self) -> Words {
        Words::default()
    }
    /// A value on that axis, in words: "3 masked functions".
    fn extent(&self, n: usize) -> String {
        format!("n = {n}")
    }
    /// A sample in one sentence, where nothing else says what was asked.
    fn sentence(&self, sample: &Sample) -> String {
        format!("Sample `{sample}` of `{}`, {}.", sample.cluster(), self.extent(sample.n()))
    }
    /// Parses a sample's id. [`Item::require`] checks whether the item has such a sample.
    ///
    /// # Errors
    /// Kind `Usage` for what is not one.
    fn sample(&self, id: &str) -> Result<Sample>;
    /// The units that a sample withholds, such as masked functions, in families that compare how hard units are.
    fn withheld(&self, _sample: &Sample) -> Option<Withheld> {
        None
    }
    /// Whether its tasks have a [`Task::forgery`].
    fn forges(&self) -> bool {
        false
    }
    /// The ids of these items, or of all if none is named; sorted, each once.
    ///
    /// # Errors
    /// Kind `Usage` for one that does not exist, `Suite` when the suite cannot be read.
    fn items(&self, suite: &Path, asked: &[String]) -> Result<Vec<String>>;
    /// Reads an item.
    ///
    /// # Errors
    /// Kind `Suite` for one that is missing or broken.
    fn load(&self, suite: &Path, item: &str, basis: Basis) -> Result<Arc<dyn Item>>;
    /// Digest of everything that models are told apart from the items. A run cannot continue with another one.
    fn prompts(&self) -> String {
        general_digest()
    }
}

/// How work is compared with the right solution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Basis {
    /// Curtailed or full experiments.
    pub protocol: Protocol,
    /// How values are compared.
    pub rule: Rule,
}

impl From<&Configuration> for Basis {
    fn from(configuration: &Configuration) -> Self {
        Self { protocol: configuration.protocol, rule: configuration.scoring }
    }
}

/// One item of a family, read and not yet made ready.
#[async_trait]
pub trait Item: Send + Sync {
    /// Its id, as a paper's.
    fn id(&self) -> &str;
    /// Digest of its content: sha256, hex. A run whose items have changed cannot continue.
    fn digest(&self) -> String;
    /// Whether work on it can be scored.
    ///
    /// # Errors
    /// Kind `Baseline` when what it is compared with is missing.
    fn scorable(&self) -> Result<()> {
        Ok(())
    }
    /// What is wrong with it, as far as can be seen without running anything. Runs refuse it, unless they are told not to
    /// check.
    fn problems(&self) -> Vec<Error> {
        self.scorable().err().into_iter().collect()
    }
    /// Digest of its repo as it is now, as [`Ready::repo`] will have it; `None` where that shows only once it is ready.
    fn repo(&self) -> Option<Result<String>> {
        None
    }
    /// Seconds that the checks of a sample took with the right solution, or all checks if no sample is given; `None` if
    /// that was not measured.
    fn seconds(&self, _sample: Option<&Sample>) -> Option<f64> {
        None
    }
    /// Number of samples of this n; `None` beyond what can be counted.
    fn count(&self, n: usize) -> Option<u128>;
    /// The samples that a run takes, in their order.
    ///
    /// # Errors
    /// Kind `Usage` when there are more than can be counted.
    fn draw(&self, asked: &Draw, seed: u64) -> Result<Vec<Sample>>;
    /// Refuses a sample that it does not have.
    ///
    /// # Errors
    /// Kind `Usage`.
    fn require(&self, sample: &Sample) -> Result<()>;
    /// Scores what an agent reported.
    ///
    /// # Errors
    /// As [`Item::scorable`] and [`Item::require`].
    fn reported(&self, sample: &Sample, answer: Option<&str>) -> Result<Verdict>;
    /// Scores what verification found: `{"result": ...}` or `{"error": "..."}` by the check's id; all results under `runs`
    /// where a check ran several times.
    ///
    /// # Errors
    /// As [`Item::scorable`] and [`Item::require`].
    fn verified(&self, sample: &Sample, results: &Map<String, Value>) -> Result<Verdict>;
    /// Scores what an agent reported if more than its answer counts, for instance how the answer was found.
    ///
    /// # Errors
    /// As [`Item::reported`].
    fn reported_by(&self, sample: &Sample, findings: &Findings<'_>) -> Result<Verdict> {
        self.reported(sample, findings.answer)
    }
    /// Scores what verification found if more than its results counts, for instance whether they match the report.
    ///
    /// # Errors
    /// As [`Item::verified`].
    fn verified_by(&self, sample: &Sample, findings: &Findings<'_>) -> Result<Verdict> {
        self.verified(sample, findings.results)
    }
    /// Makes it ready on this machine. With `baseline`, also checks that the right results can be reached here.
    ///
    /// # Errors
    /// Those of the repo's copy, the env and the baseline.
    async fn prepare(
        self: Arc<Self>,
        machine: &Machine,
        baseline: bool,
        observer: &dyn Observer,
    ) -> Result<Box<dyn Ready>>;
    /// What was asked, for somebody who compares several attempts at a sample.
    ///
    /// # Errors
    /// As [`Item::require`].
    fn question(&self, sample: &Sample) -> Result<Question>;
    /// What an answer reports, by the keys of [`Question::answers`]; what cannot be read is left out.
    fn answered(&self, sample: &Sample, answer: Option<&str>) -> Map<String, Value>;
    /// What a page says of it.
    fn facts(&self) -> ItemFacts;
    /// The parts of a sample that an agent was to write, and what it was asked.
    ///
    /// # Errors
    /// As [`Item::require`].
    fn parts(&self, sample: &Sample) -> Result<Parts>;
    /// The same parts after an attempt's diff, in the same order, and why some cannot be shown.
    fn written(&self, _sample: &Sample, _patch: &str) -> (Vec<Option<String>>, Option<String>) {
        (Vec::new(), None)
    }
    /// Lines of code that a sample withholds, in families that withhold code: reports weigh samples by them.
    fn lines(&self, _sample: &Sample) -> Option<usize> {
        None
    }
    /// What a listing says of a sample.
    ///
    /// # Errors
    /// As [`Item::require`].
    fn listed(&self, sample: &Sample) -> Result<Listed>;
}

/// An item that is ready on this machine.
#[async_trait]
pub trait Ready: Send + Sync {
    /// The item.
    fn item(&self) -> &dyn Item;
    /// Digest of its repo.
    fn repo(&self) -> &str;
    /// Digest of what sandboxes show of the repo: with what a build made of it.
    fn content(&self) -> &str {
        self.repo()
    }
    /// The env of its sandboxes.
    fn env(&self) -> &Env;
    /// What is wrong with it and shows only now, such as the paper's own code in the env. Treated like [`Item::problems`].
    fn problems(&self) -> Vec<Error> {
        Vec::new()
    }
    /// What an attempt is given.
    ///
    /// # Errors
    /// As [`Item::require`].
    fn stage(&self, sample: &Sample, attempt: u32) -> Result<Staged<'_>>;
    /// What an attempt may spend in a run with these limits.
    fn limits(&self, asked: Limits) -> Limits {
        asked
    }
    /// What is done in the sandbox before the agent begins, outside its budget.
    ///
    /// # Errors
    /// Kind `Infrastructure` when it cannot be done: the attempt is lost.
    async fn begin(&self, _staged: &Staged<'_>, _context: &mut Context<'_>) -> Result<()> {
        Ok(())
    }
    /// What to keep of the agent's work besides its answer and changed files, while its sandbox still lives.
    ///
    /// # Errors
    /// [`Fault::Lost`] when the sandbox died.
    async fn finish(&self, _staged: &Staged<'_>, _context: &mut Context<'_>) -> Result<Work, Fault> {
        Ok(Work::default())
    }
    /// Whether an attempt's change to this path is not taken over to verification.
    fn keeps_out(&self, _path: &str) -> bool {
        false
    }
    /// Whether no check needs what an earlier one left. If so, verification gives every check a fresh sandbox and calls
    /// [`Ready::verify`] for each alone, so that the code of one check cannot change another.
    fn checks_are_independent(&self) -> bool {
        false
    }
    /// Whether this check gives the same result whenever it runs on the same files, in families that know. Only such
    /// results are kept, and only of checks that are independent.
    fn is_exact(&self, _check: &str) -> bool {
        false
    }
    /// How many times verification runs this check, each time in a fresh sandbox, in families whose checks are independent.
    fn runs(&self, _check: &str) -> usize {
        1
    }
    /// Verifies an attempt in a fresh sandbox over the same files and what the agent changed: runs the checks, one
    /// after another, and hands over what each gave. A family that verifies what was reported reads it from the
    /// evidence.
    ///
    /// # Errors
    /// [`Fault::Lost`] when the sandbox died.
    async fn verify(
        &self,
        staged: &Staged<'_>,
        _evidence: &Evidence<'_>,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        for check in &staged.checks {
            done(measure(sandbox, check).await?);
        }
        Ok(())
    }
    /// Whether verification also repeats what the agent did, in another sandbox over the files that it began with,
    /// after these results.
    fn repeats(&self, _staged: &Staged<'_>, _evidence: &Evidence<'_>, _results: &Map<String, Value>) -> bool {
        false
    }
    /// Repeats what the agent did.
    ///
    /// # Errors
    /// [`Fault::Lost`] when the sandbox died.
    async fn repeat(
        &self,
        _staged: &Staged<'_>,
        _evidence: &Evidence<'_>,
        _sandbox: &mut dyn Sandbox,
        _done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        Ok(())
    }
}

/// What is known of an agent's work besides its answer and the files that it changed.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// What the record keeps of it, as the family has it.
    pub observed: Map<String, Value>,
    /// The cells that ran in its Python session; in the trajectory they are kept.
    pub cells: Vec<CellRecord>,
}

/// What an attempt is scored by.
#[derive(Debug, Clone, Copy)]
pub struct Findings<'a> {
    /// What the agent reported.
    pub answer: Option<&'a str>,
    /// What was seen of its work: [`Work::observed`].
    pub observed: &'a Map<String, Value>,
    /// What verification found, by the check's id; empty before it.
    pub results: &'a Map<String, Value>,
}

impl<'a> Findings<'a> {
    /// What a record holds.
    #[must_use]
    pub fn of(record: &'a AttemptRecord) -> Self {
        Self { answer: record.answer.as_deref(), observed: &record.observed, results: &record.results }
    }
}

/// What an attempt is given, and what it is verified by.
pub struct Staged<'a> {
    /// What the agent is told.
    pub task: Task,
    /// The repo as far as the agent may see it.
    pub snapshot: &'a Snapshot,
    /// What is laid over it, by path.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// What verification runs.
    pub checks: Vec<Check>,
}

/// What an attempt left, for verification.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// What the agent reported, as it wrote it.
    pub answer: Option<&'a str>,
    /// What it changed. Of these, verification's sandbox has what [`Ready::keeps_out`] does not name.
    pub changes: &'a Changes,
    /// What else is known of its work.
    pub work: &'a Work,
}

/// What the attempts at a sample had to do, without the right result.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// The sample's id.
    pub sample: String,
    /// What was asked.
    pub task: String,
    /// What the diffs of attempts are taken against, a fragment: "the repository without the bodies".
    pub before: String,
    /// How to tell good work.
    pub criterion: String,
    /// Paths of the files that had to be changed: a long diff shows these first.
    pub files: Vec<String>,
    /// The keys of the answer, each with how far two values may differ and still agree.
    pub answers: Vec<(String, Tolerance)>,
}

/// What a page says of an item.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ItemFacts {
    /// The title.
    pub title: String,
    /// The authors.
    pub authors: String,
    /// The year.
    pub year: Option<u16>,
    /// Where it can be read.
    pub url: String,
    /// When the first of it became public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_since: Option<When>,
    /// What it is scored by.
    pub experiments: Vec<CheckFacts>,
    /// What is missing of it.
    pub problem: Option<String>,
    /// The text as agents are given it, which pages load apart.
    #[serde(skip)]
    pub text: Option<String>,
}

/// What a page says of an experiment or another check.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckFacts {
    /// Its id.
    pub id: String,
    /// What it measures.
    pub description: String,
    /// Its command.
    pub command: String,
}

/// What a listing says of a sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Names of the units that it withholds, in the order of [`Family::withheld`].
    pub units: Vec<String>,
    /// Names of what it is scored by.
    pub checks: Vec<String>,
}

/// What an agent was asked, and what it had to write.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// What it was asked, where the parts do not say it.
    pub asked: Option<String>,
    /// What the parts are, as a heading: "Masked functions".
    pub heading: String,
    /// What it had to write.
    pub parts: Vec<Part>,
}

/// A part of the repo that an agent had to write.
#[derive(Debug, Clone, Serialize)]
pub struct Part {
    /// Its name: `path/file.py::Class.method`.
    pub at: String,
    /// Its text in the repo.
    pub original: String,
    /// Its text as agents are given it.
    pub masked: String,
}

/// The families that a program knows.
#[derive(Clone, Default)]
pub struct Families {
    known: BTreeMap<&'static str, Arc<dyn Family>>,
}

impl Families {
    /// No families; `Families::standard()` has those of this program.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a family, replacing one of the same name.
    #[must_use]
    pub fn with(mut self, family: impl Family + 'static) -> Self {
        self.known.insert(family.name(), Arc::new(family));
        self
    }

    /// The family of this name.
    ///
    /// # Errors
    /// Kind `Usage` when there is none.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Family>> {
        self.known.get(name).ok_or_else(|| {
            let names: Vec<String> = self.known.keys().map(|name| format!("`{name}`")).collect();
            Error::usage(format!("there is no family `{}`", name.escape_debug()))
                .hint(format!("the families are: {}", names.join(", ")))
        })
    }

    /// What the families of these names call things: neutral words if they differ, `None` without any known name.
    #[must_use]
    pub fn words<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<Words> {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let mut found = names.iter().filter_map(|name| Some(self.known.get(name)?.words()));
        let first = found.next()?;
        Some(if found.all(|words| words == first) { first } else { Words::default() })
    }

    /// The sample that a record is of.
    ///
    /// # Errors
    /// Kind `Usage` for a family or an id that does not exist.
    pub fn sample(&self, record: &AttemptRecord) -> Result<Sample> {
        self.get(&record.family)?.sample(&record.sample)
    }
}

/// The samples of a run: the requested ones, or those drawn from its items. Small n come first, over all items, so that
/// the first rows of a table are complete early.
///
/// # Errors
/// Kind `Usage` for a sample that does not exist, and where there are none.
pub fn samples(family: &dyn Family, items: &[Arc<dyn Item>], asked: &Draw, seed: u64) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    for id in &asked.samples {
        let sample = family.sample(id)?;
        let item = items.iter().find(|item| item.id() == sample.item());
        item.ok_or_else(|| Error::usage(format!("no item of this run has the sample `{id}`")))?.require(&sample)?;
        if !samples.contains(&sample) {
            samples.push(sample);
        }
    }
    if asked.samples.is_empty() {
        for item in items {
            samples.extend(item.draw(asked, seed)?);
        }
        samples.sort_by_key(Sample::n);
    }
    if samples.is_empty() {
        return Err(Error::usage("there are no such samples").hint("`autoexperiment list` shows how many there are"));
    }
    Ok(samples)
}

/// A sentence about requested n for which no item has a sample.
#[must_use]
pub fn beyond(family: &dyn Family, asked: &Draw, samples: &[Sample]) -> Option<String> {
    let missing: Vec<usize> = asked.n.iter().copied().filter(|&n| samples.iter().all(|one| one.n() != n)).collect();
    if missing.is_empty() || !asked.samples.is_empty() {
        return None;
    }
    let most = samples.iter().map(Sample::n).max()?;
    let listed = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    Some(format!("there are no samples with {listed} {}; those drawn have at most {most}", family.axis()))
}

/// A record with its verdicts computed again from its contents.
///
/// # Errors
/// Those of [`Item::reported`] and [`Item::verified`].
pub fn rescored(item: &dyn Item, sample: &Sample, record: &AttemptRecord) -> Result<AttemptRecord> {
    let mut again = record.clone();
    if record.is_infrastructure() {
        return Ok(again);
    }
    let reported = item.reported_by(sample, &Findings::of(record))?;
    again.pass = reported.pass;
    again.reported = Some(reported);
    if record.verified.is_some() {
        let verified = item.verified_by(sample, &Findings::of(record))?;
        again.pass &= verified.pass;
        again.verified = Some(verified);
    }
    Ok(again)
}
