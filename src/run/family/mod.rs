//! Families of tasks: everything that depends on the kind of task.
//!
//! A [`Family`] parses sample ids and loads items. An [`Item`] (a paper, a task) draws and describes its samples and
//! scores work on them; loading an item builds and runs nothing. A [`Ready`] item has its repo and env on this machine;
//! it provides the files and task of an attempt and the checks that verify it. All code that makes, stores and reports
//! attempts uses these three traits and does not depend on single families. Code that proves the soundness of items,
//! and code that imports or exports items, is written for one family. `docs/new-family.md` shows a complete family.

mod draw;
mod facts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::prompts::general_digest;
use crate::agent::{Check, Context, Limits, Task};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::kernel::CellRecord;
use crate::run::check::{Measurement, measure};
use crate::run::configuration::{Configuration, SampleDraw};
use crate::run::event::Observer;
use crate::run::machine::Machine;
use crate::run::record::AttemptRecord;
use crate::sample::{Sample, Withheld};
use crate::sandbox::{Fault, Sandbox};
use crate::score::{Rule, Verdict};
use crate::suite::{PartialDate, Protocol};
use crate::workspace::{Changes, Snapshot};
pub use draw::{beyond, nothing_drawn, samples};
pub use facts::{CheckFacts, ItemFacts, MeasureFacts, Question, SampleNames, SampleParts, Words, WrittenPart};

/// Default name of the difficulty axis, n, in figures.
pub const WITHHELD: &str = "withheld units";

/// A kind of task.
pub trait Family: Send + Sync {
    /// Name of the family in configurations and records: `masked`.
    fn name(&self) -> &'static str;
    /// Name of the difficulty axis, n, in figures: "masked functions".
    fn axis(&self) -> &'static str {
        WITHHELD
    }
    /// The family's words for items and for groups of samples in reports.
    fn words(&self) -> Words {
        Words::default()
    }
    /// Describes a value of n in words, such as "3 masked functions".
    fn extent(&self, n: usize) -> String {
        format!("n = {n}")
    }
    /// The measures of the family's verdicts, the most important first. Pages show them in this order with their
    /// meanings; measures that are not listed come last, without a meaning.
    fn measures(&self) -> &'static [MeasureFacts] {
        &[]
    }
    /// Describes a sample in one sentence; used if nothing else describes the task.
    fn sentence(&self, sample: &Sample) -> String {
        format!("Sample `{sample}` of `{}`, {}.", sample.cluster(), self.extent(sample.n()))
    }
    /// Parses a sample's id. [`Item::require`] checks whether the item has such a sample.
    ///
    /// # Errors
    /// Kind `Usage` if the text isn't a sample id.
    fn sample(&self, id: &str) -> Result<Sample>;
    /// The units that a sample withholds, such as masked functions. `None` in families that don't compare the
    /// difficulty of units.
    fn withheld(&self, _sample: &Sample) -> Option<Withheld> {
        None
    }
    /// Whether the family's tasks contain a forged solution ([`Task::forgery`]), a cheat that soundness runs try.
    fn forges(&self) -> bool {
        false
    }
    /// Resolves item ids; returns all items if none is named. Sorted, without duplicates.
    ///
    /// # Errors
    /// Kind `Usage` for an item that does not exist, `Suite` or `Machine` if the suite cannot be read.
    fn items(&self, suite: &Path, asked: &[String]) -> Result<Vec<String>>;
    /// Loads an item.
    ///
    /// # Errors
    /// Kind `Suite` if the item is invalid, `Suite` or `Machine` if a file is missing or cannot be read.
    fn load(&self, suite: &Path, item: &str, basis: ScoringBasis) -> Result<Arc<dyn Item>>;
    /// Digest of all texts that models see and that do not belong to an item. A run cannot continue with a different
    /// digest.
    fn prompts(&self) -> String {
        general_digest()
    }
}

/// The basis of scoring: which experiments are run and how their values are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScoringBasis {
    /// Whether experiments use the parameters of the curtailed or of the full version.
    pub protocol: Protocol,
    /// How values are compared.
    pub rule: Rule,
}

impl From<&Configuration> for ScoringBasis {
    fn from(configuration: &Configuration) -> Self {
        Self { protocol: configuration.protocol, rule: configuration.scoring }
    }
}

/// The share of a sample's checks that agents neither see nor report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenShare {
    /// No check is hidden, so agents report on all checks.
    Nothing,
    /// Some checks are hidden, and agents report on the others.
    Part,
    /// All checks are hidden, so agents report nothing.
    All,
}

/// An item of a family that is loaded but not yet prepared on this machine.
#[async_trait]
pub trait Item: Send + Sync {
    /// Id of the item, such as a paper's id.
    fn id(&self) -> &str;
    /// Digest of the item's content: sha256, hex. A run whose items have changed cannot continue.
    fn digest(&self) -> String;
    /// Fails if attempts at the item cannot be scored.
    ///
    /// # Errors
    /// Kind `Baseline` if the reference results are missing.
    fn scorable(&self) -> Result<()> {
        Ok(())
    }
    /// Problems that can be found without running anything. Runs reject an item with problems unless told not to check.
    fn problems(&self) -> Vec<Error> {
        self.scorable().err().into_iter().collect()
    }
    /// Digest of the current repo, the same as [`Ready::repo`] returns after preparation; `None` if the digest is known
    /// only after preparation.
    fn repo(&self) -> Option<Result<String>> {
        None
    }
    /// Seconds that a sample's checks took with the right solution, or all checks if `sample` is `None`; `None` if not
    /// measured.
    fn seconds(&self, _sample: Option<&Sample>) -> Option<f64> {
        None
    }
    /// Number of the item's samples with this n (such as the number of masked functions); `None` if there are too many
    /// to count.
    fn count(&self, n: usize) -> Option<u128>;
    /// The nearest unit (such as a function) in which this unit is nested, if any. Both contain the same code, so they
    /// are never in different splits.
    fn container(&self, _unit: usize) -> Option<usize> {
        None
    }
    /// Date at which the oldest part of the code or text that a sample withholds became public.
    fn since(&self, _sample: &Sample) -> Option<PartialDate> {
        self.facts().public_since
    }
    /// Draws the samples of a run, in order.
    ///
    /// # Errors
    /// Kind `Usage` if there are too many samples to count.
    fn draw(&self, asked: &SampleDraw, seed: u64) -> Result<Vec<Sample>>;
    /// Returns an error if this item (a paper or task) has no such sample.
    ///
    /// # Errors
    /// Kind `Usage`.
    fn require(&self, sample: &Sample) -> Result<()>;
    /// Scores an agent's answer. Some families also take other data into account, for instance how the agent found the
    /// answer.
    ///
    /// # Errors
    /// Same as [`Item::scorable`] and [`Item::require`].
    fn reported(&self, sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict>;
    /// Scores the results of verification. Some families also take the agent's answer into account.
    ///
    /// # Errors
    /// Same as [`Item::scorable`] and [`Item::require`].
    fn verified(&self, sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict>;
    /// Returns how many of a sample's checks are hidden from agents, so that only verification can decide them.
    fn hidden(&self, _sample: &Sample) -> HiddenShare {
        HiddenShare::Nothing
    }
    /// Prepares the item on this machine. With `baseline`, also checks that the right results can be reproduced here.
    ///
    /// # Errors
    /// The errors of copying the repo, of the env and of the baseline.
    async fn prepare(
        self: Arc<Self>,
        machine: &Machine,
        baseline: bool,
        observer: &dyn Observer,
    ) -> Result<Box<dyn Ready>>;
    /// Describes the task to a verifier that compares several attempts at a sample.
    ///
    /// # Errors
    /// Same as [`Item::scorable`] and [`Item::require`].
    fn question(&self, sample: &Sample) -> Result<Question>;
    /// Parses an answer into values by the keys of [`Question::answers`]; unreadable values are left out.
    fn answered(&self, sample: &Sample, answer: Option<&str>) -> Map<String, Value>;
    /// Whether an attempt's code produced results, right or wrong, when the harness ran it. `results` are the results
    /// of verification and are not empty. By default, every check must have a result.
    fn gave_results(&self, results: &Map<String, Value>) -> bool {
        results.values().all(|outcome| outcome.get("result").is_some())
    }
    /// Facts about the item for pages.
    fn facts(&self) -> ItemFacts;
    /// The parts of a sample that an agent had to write, and the question it was asked.
    ///
    /// # Errors
    /// Same as [`Item::require`].
    fn parts(&self, sample: &Sample) -> Result<SampleParts>;
    /// Returns the parts of [`Item::parts`] as they are after an attempt's diff has been applied, in the same order;
    /// `None` for a part that cannot be shown. Also returns a reason if a part cannot be shown.
    fn written(&self, _sample: &Sample, _patch: &str) -> (Vec<Option<String>>, Option<String>) {
        (Vec::new(), None)
    }
    /// Number of code lines that a sample withholds, by which reports weigh samples; `None` in families that withhold
    /// no code.
    fn lines(&self, _sample: &Sample) -> Option<usize> {
        None
    }
    /// Names of the parts that a sample withholds, and of its checks, for listings.
    ///
    /// # Errors
    /// Same as [`Item::require`].
    fn listed(&self, sample: &Sample) -> Result<SampleNames>;
}

/// An item prepared on this machine.
#[async_trait]
pub trait Ready: Send + Sync {
    /// The item.
    fn item(&self) -> &dyn Item;
    /// Digest of the item's repo.
    fn repo(&self) -> &str;
    /// The env of the item's sandboxes.
    fn env(&self) -> &Env;
    /// Problems found only during preparation, for example of the paper's code in the env. Treated like
    /// [`Item::problems`].
    fn problems(&self) -> Vec<Error> {
        Vec::new()
    }
    /// Builds the task and files of an attempt.
    ///
    /// # Errors
    /// Same as [`Item::require`].
    fn stage(&self, sample: &Sample, attempt: u32) -> Result<Staged<'_>>;
    /// Returns the limits of an attempt. `asked` are the run's limits; an item may replace those that have their
    /// default values.
    fn limits(&self, asked: Limits) -> Limits {
        asked
    }
    /// Prepares the sandbox before the agent begins, outside of the agent's budget.
    ///
    /// # Errors
    /// Kind `Infrastructure` if the preparation fails, in which case the attempt is lost.
    async fn begin(&self, _staged: &Staged<'_>, _context: &mut Context<'_>) -> Result<()> {
        Ok(())
    }
    /// Collects data about the agent's work besides its answer and changed files, while its sandbox still exists.
    ///
    /// # Errors
    /// [`Fault::Lost`] if the sandbox died.
    async fn finish(&self, _staged: &Staged<'_>, _context: &mut Context<'_>) -> Result<Collected, Fault> {
        Ok(Collected::default())
    }
    /// The repo in which a hidden check runs: it includes the check's files, which [`Staged::snapshot`] lacks. `None`
    /// for a check that is not hidden. Feedback to agents says nothing about hidden checks.
    fn hidden_snapshot(&self, _check: &str) -> Option<&Snapshot> {
        None
    }
    /// Whether an attempt's change to this path is excluded from verification.
    fn keeps_out(&self, _path: &str) -> bool {
        false
    }
    /// Whether no check depends on files left by an earlier check. If so, verification gives every check a fresh
    /// sandbox and calls [`Ready::verify`] for each alone, so that the code of one check cannot affect another.
    fn checks_are_independent(&self) -> bool {
        false
    }
    /// Whether this check always gives the same result on the same files. Only results of such checks are cached, and
    /// only in families whose [checks are independent](Self::checks_are_independent) of each other.
    fn is_exact(&self, _check: &str) -> bool {
        false
    }
    /// Number of times that verification runs this check, each in a fresh sandbox. Used only in families with
    /// independent checks.
    fn runs(&self, _check: &str) -> usize {
        1
    }
    /// Verifies an attempt in a fresh sandbox that has the files given to the agent, and the agent's changes: runs the
    /// checks in order and passes each outcome to `done`. Families that verify the answer find it in `evidence`.
    ///
    /// # Errors
    /// [`Fault::Lost`] if the sandbox died.
    async fn verify(
        &self,
        staged: &Staged<'_>,
        _evidence: &AttemptOutput<'_>,
        sandbox: &mut dyn Sandbox,
        done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        for check in &staged.checks {
            done(measure(sandbox, check).await?);
        }
        Ok(())
    }
    /// Whether verification should also repeat the agent's work in another sandbox, which has the files as they were
    /// given to the agent. The decision may depend on the results of the checks.
    fn repeats(&self, _staged: &Staged<'_>, _evidence: &AttemptOutput<'_>, _results: &Map<String, Value>) -> bool {
        false
    }
    /// Repeats the agent's work in a sandbox that has the files as they were given to the agent. Called if
    /// [`Self::repeats`] returns true. Passes each measurement to `done`.
    ///
    /// # Errors
    /// [`Fault::Lost`] if the sandbox died.
    async fn repeat(
        &self,
        _staged: &Staged<'_>,
        _evidence: &AttemptOutput<'_>,
        _sandbox: &mut dyn Sandbox,
        _done: &mut (dyn FnMut(Measurement) + Send),
    ) -> Result<(), Fault> {
        Ok(())
    }
}

/// Data about an agent's work besides its answer and changed files.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Data for the record, as defined by the family.
    pub observed: Map<String, Value>,
    /// The cells that ran in the agent's Python session; stored in the trajectory.
    pub cells: Vec<CellRecord>,
}

/// The inputs of scoring.
#[derive(Debug, Clone, Copy)]
pub struct ScoringInput<'a> {
    /// The agent's answer.
    pub answer: Option<&'a str>,
    /// Data about the agent's work: [`Collected::observed`].
    pub observed: &'a Map<String, Value>,
    /// Results of verification for each check, by its id: `{"result": ...}` or `{"error": "..."}`; if the check ran
    /// several times, also `runs`, the list of all results. Empty before verification.
    pub results: &'a Map<String, Value>,
}

impl<'a> ScoringInput<'a> {
    /// Takes the answer, the observed data and the results of verification from a record.
    #[must_use]
    pub fn from_record(record: &'a AttemptRecord) -> Self {
        Self { answer: record.answer.as_deref(), observed: &record.observed, results: &record.results }
    }
}

/// The inputs of an attempt and of its verification.
pub struct Staged<'a> {
    /// The task for the agent.
    pub task: Task,
    /// The repo as visible to the agent.
    pub snapshot: &'a Snapshot,
    /// Files written over the snapshot, by path.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The checks that verification runs.
    pub checks: Vec<Check>,
}

/// An attempt's output, for verification.
#[derive(Clone, Copy)]
pub struct AttemptOutput<'a> {
    /// The agent's answer, verbatim.
    pub answer: Option<&'a str>,
    /// The agent's changes. The sandbox of verification gets these changes, except those for which [`Ready::keeps_out`]
    /// returns true.
    pub changes: &'a Changes,
    /// Data about the agent's work besides its answer and changed files.
    pub work: &'a Collected,
}

/// All families: those of this crate, and those that a program which uses it adds.
#[derive(Clone, Default)]
pub struct Families {
    known: BTreeMap<&'static str, Arc<dyn Family>>,
}

impl Families {
    /// Creates an empty set; `Families::standard()` has the families of this program.
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

    /// Returns the families, sorted by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Family>> {
        self.known.values()
    }

    /// Finds a family by name.
    ///
    /// # Errors
    /// Kind `Usage` for an unknown name.
    pub fn get(&self, name: &str) -> Result<&Arc<dyn Family>> {
        self.known.get(name).ok_or_else(|| {
            let names: Vec<String> = self.known.keys().map(|name| format!("`{name}`")).collect();
            Error::usage(format!("there is no family `{}`", name.escape_debug()))
                .hint(format!("the families are: {}", names.join(", ")))
        })
    }

    /// Returns the words that the families with these names use in reports. If the families use different words,
    /// returns neutral words. Returns `None` if no name is known.
    #[must_use]
    pub fn words<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Option<Words> {
        let names: BTreeSet<&str> = names.into_iter().collect();
        let mut found = names.iter().filter_map(|name| Some(self.known.get(name)?.words()));
        let first = found.next()?;
        Some(if found.all(|words| words == first) { first } else { Words::default() })
    }

    /// Parses a sample's id.
    ///
    /// # Errors
    /// Kind `Usage` for an unknown family or an invalid id.
    pub fn sample(&self, family: &str, id: &str) -> Result<Sample> {
        self.get(family)?.sample(id)
    }
}

/// Computes a record's verdicts again from its contents.
///
/// # Errors
/// Returns the errors of [`Item::reported`] and [`Item::verified`].
pub fn rescored(item: &dyn Item, sample: &Sample, record: &AttemptRecord) -> Result<AttemptRecord> {
    let mut again = record.clone();
    if record.is_infrastructure() {
        return Ok(again);
    }
    let reported = item.reported(sample, &ScoringInput::from_record(record))?;
    again.pass = reported.pass;
    again.reported = Some(reported);
    if record.verified.is_some() {
        let verified = item.verified(sample, &ScoringInput::from_record(record))?;
        again.pass &= verified.pass;
        again.verified = Some(verified);
    }
    Ok(again)
}
