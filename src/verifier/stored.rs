//! Applies verifiers to a stored run without running agents. Choices go to `runs/<run>/choices.jsonl`, one line each,
//! and replies of verifiers' models to `votes.jsonl`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::vote::{Vote, VoteOutcome, Votes};
use super::{Candidate, Verifier};
use crate::error::{Error, FailureKind, Result};
use crate::files::{Appender, json_lines};
use crate::model::ledger::{Ledger, Payer, PayerLedger};
use crate::model::{Quote, Usage};
use crate::run::family::Item;
use crate::run::{AttemptRecord, Catalogue, Store, scored};
use crate::sample::Sample;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Names of the files, in a run's folder.
const CHOICES: &str = "choices.jsonl";
const VOTES: &str = "votes.jsonl";

/// A verifier's choice among the attempts of one agent at one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChoiceRecord {
    /// The verifier's name.
    pub verifier: String,
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The sample's id.
    pub sample: String,
    /// Numbers of the attempts to choose from.
    pub attempts: Vec<u32>,
    /// Number of the chosen attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<u32>,
    /// Reason for the choice.
    pub reason: String,
    /// Tokens used.
    #[serde(default)]
    pub usage: Usage,
    /// Cost in dollars.
    #[serde(default)]
    pub cost: f64,
    /// Number of the model's replies that named a candidate that doesn't exist.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unknown: u32,
    /// Number of the model's replies that named no candidate, and of questions that the model refused.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unreadable: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A vote of a verifier's model. The fields besides `vote` say which decision between attempts the vote belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct VoteRecord {
    verifier: String,
    agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    sample: String,
    attempts: Vec<u32>,
    #[serde(flatten)]
    vote: Vote,
}

/// The cost limit of verifiers, and their spending so far.
#[derive(Debug)]
pub struct CostCap {
    /// Dollars spent so far.
    spent: Mutex<f64>,
    /// Maximum dollars.
    most: Option<f64>,
    /// The run's ledger of calls, if it has one.
    ledger: Option<Arc<Ledger>>,
    /// Cancelled if the user stops the run.
    cancel: CancellationToken,
}

impl CostCap {
    /// Creates a limit of `most` dollars. `spent` dollars of them are already used.
    #[must_use]
    pub const fn new(spent: f64, most: Option<f64>, ledger: Option<Arc<Ledger>>, cancel: CancellationToken) -> Self {
        Self { spent: Mutex::new(spent), most, ledger, cancel }
    }

    /// Returns the dollars spent so far.
    pub fn spent(&self) -> f64 {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pay(&self, cost: f64) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += cost;
    }

    fn allow(&self, quote: &Quote) -> Result<Option<u32>> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(FailureKind::Interrupted, "stopped; the choices made so far are kept"));
        }
        let (spent, Some(most)) = (self.spent(), self.most) else { return Ok(None) };
        let over = || {
            let what = format!("stopped the verifiers: ${spent:.4} of `--max-cost {most}` are spent");
            Error::new(FailureKind::CostLimit, what)
        };
        if spent >= most {
            return Err(over());
        }
        quote.affordable(most - spent).map_err(|_| over())
    }
}

/// A verifier's choice among `attempts`; `first` is the record of one of them, and names agent, model and sample.
struct ChoiceCase<'a> {
    verifier: String,
    first: &'a AttemptRecord,
    attempts: Vec<u32>,
}

/// The votes for one choice. They are stored on disk, and their cost counts towards the cost limit.
struct StoredVotes<'a> {
    case: &'a ChoiceCase<'a>,
    path: PathBuf,
    earlier: &'a [VoteRecord],
    cost_cap: &'a CostCap,
}

impl Votes for StoredVotes<'_> {
    fn earlier(&self, order: u32, ask: u32) -> Option<Vote> {
        let mine = |known: &&VoteRecord| {
            let (vote, case) = (&known.vote, self.case);
            (vote.order, vote.ask) == (order, ask)
                && vote.named != VoteOutcome::Failed
                && known.verifier == case.verifier
                && (&known.agent, &known.model, &known.sample)
                    == (&case.first.agent, &case.first.model, &case.first.sample)
                && known.attempts == case.attempts
        };
        self.earlier.iter().find(mine).map(|known| known.vote.clone())
    }

    fn allow(&self, quote: &Quote) -> Result<Option<u32>> {
        self.cost_cap.allow(quote)
    }

    fn tab(&self) -> Option<PayerLedger> {
        let payer = Payer {
            agent: self.case.first.agent.clone(),
            sample: self.case.first.sample.clone(),
            verifier: Some(self.case.verifier.clone()),
            ..Payer::default()
        };
        self.cost_cap.ledger.clone().map(|ledger| PayerLedger::new(ledger, payer))
    }

    fn keep(&self, vote: &Vote) -> Result<()> {
        self.cost_cap.pay(vote.cost);
        append(
            &self.path,
            &VoteRecord {
                verifier: self.case.verifier.clone(),
                agent: self.case.first.agent.clone(),
                model: self.case.first.model.clone(),
                sample: self.case.first.sample.clone(),
                attempts: self.case.attempts.clone(),
                vote: vote.clone(),
            },
        )
    }
}

/// All attempts of one agent at one sample.
pub struct AttemptGroup<'a> {
    /// For each attempt that was not lost, the record from which rates are computed. Sorted by the attempts' numbers.
    pub records: Vec<&'a AttemptRecord>,
}

/// Groups attempts by agent, model and sample. If an attempt has several records, takes the one from which rates are
/// computed.
#[must_use]
pub fn groups(records: &[AttemptRecord]) -> Vec<AttemptGroup<'_>> {
    let mut found: BTreeMap<_, BTreeMap<u32, &AttemptRecord>> = BTreeMap::new();
    for record in scored(records) {
        let key = (record.agent.as_str(), record.model.as_deref(), record.n, record.sample.as_str());
        found.entry(key).or_default().insert(record.attempt, record);
    }
    found.into_values().map(|attempts| AttemptGroup { records: attempts.into_values().collect() }).collect()
}

/// Records read from a file of choices or votes.
#[derive(Debug)]
pub struct StoredRecords<T> {
    /// Records in the order of writing.
    pub records: Vec<T>,
    /// Sentences about the lines that could not be read.
    pub notes: Vec<String>,
}

/// Returns the number of bytes that the verifiers of a run have written. It grows while they choose.
#[must_use]
pub fn written(store: &Store) -> u64 {
    let length = |name| std::fs::metadata(store.folder().join(name)).map_or(0, |file| file.len());
    [CHOICES, VOTES].into_iter().map(length).sum()
}

/// Reads all stored choices of a run. Unreadable lines, such as one torn by a kill, are left out and noted; their
/// choices will be made again.
///
/// # Errors
/// Kind `Store` if the file cannot be read.
pub fn choices(store: &Store) -> Result<StoredRecords<ChoiceRecord>> {
    lines(store, CHOICES)
}

/// The cost of a run's verifiers.
#[derive(Debug)]
pub struct VerifierSpending {
    /// Known cost in dollars.
    pub dollars: f64,
    /// Sentences about the lines that could not be read.
    pub notes: Vec<String>,
}

/// Sums the cost of a run's verifiers: every reply of their models, including those for choices that were never
/// completed and those of failed calls. Unreadable lines are noted, because their cost is unknown.
///
/// # Errors
/// Kind `Store` if a file cannot be read.
pub fn spent(store: &Store) -> Result<VerifierSpending> {
    let StoredRecords { records: votes, mut notes } = lines::<VoteRecord>(store, VOTES)?;
    let choices = choices(store)?;
    notes.extend(choices.notes);
    // Earlier versions of this program stored a verifier's choices, but not the votes for them. Add the cost of such
    // choices.
    let unkept = choices.records.into_iter().filter(|choice| {
        !votes.iter().any(|vote| {
            (&vote.verifier, &vote.agent, &vote.model, &vote.sample, &vote.attempts)
                == (&choice.verifier, &choice.agent, &choice.model, &choice.sample, &choice.attempts)
        })
    });
    let dollars = unkept.map(|choice| choice.cost).sum::<f64>() + votes.iter().map(|vote| vote.vote.cost).sum::<f64>();
    Ok(VerifierSpending { dollars, notes })
}

fn lines<T: DeserializeOwned>(store: &Store, name: &str) -> Result<StoredRecords<T>> {
    let path = store.folder().join(name);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Error::store(format!("failed to read `{}`", path.display())).because(error)),
    };
    let mut kept = StoredRecords { records: Vec::new(), notes: Vec::new() };
    let (mut broken, mut is_torn) = (0_usize, false);
    for line in json_lines(&bytes) {
        match line.value {
            Ok(record) => kept.records.push(record),
            Err(_) if line.is_ended => broken += 1,
            Err(_) => is_torn = true,
        }
    }
    if broken > 0 {
        let lines = if broken == 1 { "line" } else { "lines" };
        kept.notes.push(format!("left out of `{name}`: {broken} broken {lines}"));
    }
    // While a process writes the file, an incomplete last line is not an error.
    if is_torn && !store.is_being_written() {
        kept.notes.push(format!("the last line of `{name}` is cut off and left out"));
    }
    Ok(kept)
}

/// Lets a verifier choose one attempt of every group. Stores each choice as soon as it is made, and returns all
/// choices. Choices already stored for the same attempts are reused.
///
/// # Errors
/// Kind `Model` if the model does not answer, `CostLimit` if the cost limit is reached, `Interrupted` if the user stops
/// the run, `Store` if a file of the run cannot be read or written, `Suite` if the suite does not have a sample's item;
/// also the errors of describing a sample's task to the verifier. Earlier choices stay stored.
pub(super) async fn verify_run(
    store: &Store,
    groups: &[AttemptGroup<'_>],
    catalogue: &Catalogue,
    verifier: &dyn Verifier,
    cost_cap: &CostCap,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<ChoiceRecord>> {
    let known = choices(store)?.records;
    let earlier: Vec<VoteRecord> = lines(store, VOTES)?.records;
    let total = groups.len();
    let mut made = Vec::with_capacity(total);
    for (done, group) in groups.iter().enumerate() {
        told(done, total);
        let Some(&first) = group.records.first() else { continue };
        let attempts = group.records.iter().map(|record| record.attempt).collect();
        let case = ChoiceCase { verifier: verifier.name(), first, attempts };
        let same = |choice: &&ChoiceRecord| {
            choice.verifier == case.verifier
                && (&choice.agent, &choice.model, &choice.sample) == (&first.agent, &first.model, &first.sample)
                && choice.attempts == case.attempts
        };
        if let Some(choice) = known.iter().find(same) {
            made.push(choice.clone());
            continue;
        }
        let (sample, item) = catalogue
            .find(first)
            .ok_or_else(|| Error::suite(format!("the suite does not have the item of sample `{}`", first.sample)))?;
        let question = item.question(&sample)?;
        let candidates: Vec<Candidate> =
            group.records.iter().map(|record| candidate(store, record, item, &sample)).collect::<Result<_>>()?;
        let votes = StoredVotes { case: &case, path: store.folder().join(VOTES), earlier: &earlier, cost_cap };
        let choice = verifier.choose(&question, &candidates, &votes).await.map_err(|error| match error.kind {
            FailureKind::Model => Error { message: format!("sample `{}`: {}", first.sample, error.message), ..error },
            _ => error,
        })?;
        let chosen = choice.chosen.map(|place| named(&case, &candidates, place)).transpose()?;
        let record = ChoiceRecord {
            verifier: case.verifier,
            agent: first.agent.clone(),
            model: first.model.clone(),
            sample: first.sample.clone(),
            attempts: case.attempts,
            chosen,
            reason: choice.reason,
            usage: choice.usage,
            cost: choice.cost,
            unknown: choice.unknown,
            unreadable: choice.unreadable,
        };
        append(&store.folder().join(CHOICES), &record)?;
        made.push(record);
    }
    told(total, total);
    Ok(made)
}

/// Returns the attempt number of the candidate with this index.
fn named(case: &ChoiceCase<'_>, candidates: &[Candidate], place: usize) -> Result<u32> {
    candidates.get(place).map(|candidate| candidate.attempt).ok_or_else(|| {
        Error::internal(format!(
            "verifier `{}` chose candidate {}, but there are only {} at sample `{}`",
            case.verifier,
            place + 1,
            candidates.len(),
            case.first.sample
        ))
    })
}

/// Appends a line and flushes it to disk. Only one process at a time runs verifiers, so an incomplete last line was
/// left by a killed process, and is cut off first.
fn append(path: &Path, record: &impl Serialize) -> Result<()> {
    Appender::resume(path).and_then(|file| file.durable().append(record)).map_err(|error| {
        Error { kind: FailureKind::Store, ..Error::io("write", path, error) }
            .hint("free some space, or change the folder's rights")
    })
}

fn candidate(store: &Store, record: &AttemptRecord, item: &dyn Item, sample: &Sample) -> Result<Candidate> {
    let path = store.diff(&record.agent, &record.sample, record.attempt);
    let patch = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Error::store(format!("failed to read `{}`", path.display())).because(error)),
    };
    let answer = item.answered(sample, record.answer.as_deref());
    let runs = (!record.results.is_empty()).then(|| item.gave_results(&record.results));
    Ok(Candidate { attempt: record.attempt, patch, answer, runs, pass: record.pass })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choosing_a_nonexistent_candidate_is_an_internal_error() {
        let first = AttemptRecord::blank("react", &crate::sample::masked("x_1"), 0);
        let case = ChoiceCase { verifier: "v".to_owned(), first: &first, attempts: vec![3, 4] };
        let candidates: Vec<Candidate> =
            [3, 4].map(|attempt| Candidate { attempt, ..Candidate::default() }).into_iter().collect();
        assert_eq!(named(&case, &candidates, 1).unwrap(), 4);
        let error = named(&case, &candidates, 2).unwrap_err();
        assert_eq!(error.kind, FailureKind::Internal);
        assert_eq!(error.message, "verifier `v` chose candidate 3, but there are only 2 at sample `x_1`");
    }

    #[test]
    fn a_torn_line_of_stored_choices_is_reported_only_until_the_next_choice_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let path = folder.path().join("choices.jsonl");
        std::fs::write(&path, "{\"verifier\": \"v\", \"ag").unwrap();
        assert_eq!(choices(&store).unwrap().notes.len(), 1);
        let choice = ChoiceRecord {
            verifier: "v".into(),
            agent: "a".into(),
            model: None,
            sample: "x_1".into(),
            attempts: vec![0],
            chosen: Some(0),
            reason: String::new(),
            usage: Usage::default(),
            cost: 0.0,
            unknown: 0,
            unreadable: 0,
        };
        append(&path, &choice).unwrap();
        let kept = choices(&store).unwrap();
        assert_eq!((kept.records, kept.notes), (vec![choice], Vec::new()));
    }

    #[test]
    fn model_calls_of_a_verifier_are_allowed_until_its_cost_limit_or_the_cancellation_of_the_run() {
        let cancel = CancellationToken::new();
        let cost_cap = CostCap::new(1.0, Some(2.0), None, cancel.clone());
        let quote = Quote { read: 0.25, token: 0.125, ..Quote::default() };
        assert_eq!(cost_cap.allow(&quote).unwrap(), Some(6), "the reply may cost what is left");
        cost_cap.pay(0.75);
        assert_eq!(cost_cap.allow(&Quote::default()).unwrap(), None);
        assert_eq!(cost_cap.allow(&quote).unwrap_err().kind, FailureKind::CostLimit);
        cost_cap.pay(0.75);
        assert_eq!(cost_cap.allow(&Quote::default()).unwrap_err().kind, FailureKind::CostLimit);
        let endless = CostCap::new(9.0, None, None, cancel.clone());
        assert_eq!(endless.allow(&quote).unwrap(), None);
        cancel.cancel();
        assert_eq!(endless.allow(&quote).unwrap_err().kind, FailureKind::Interrupted);
    }
}
