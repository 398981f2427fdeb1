//! Episodes: attempts whose steps come from outside, from a learner or an assistant.
//!
//! An [`EpisodeHost`] holds a prepared run. Each [`Episode`] is one attempt of this run, made by the same code as other
//! attempts, with the same sandbox, limits, guards, verification, store and ledger. Its agent waits for the client's
//! calls ([`remote`]); if the client leaves, the attempt ends as if its agent had given up. [`tasks`] says what clients
//! can ask for, [`curriculum`] chooses for them, and [`reward`] turns a record into a number. This module does not know
//! how clients connect.

mod client;
pub mod curriculum;
mod remote;
pub mod reward;
pub mod tasks;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::tools::ToolSet;
use crate::agent::{End, LiveUsage};
use crate::error::{Error, Result, with_causes};
use crate::files::{MEMORY_REPORT, reported_memory};
use crate::model::Tool;
use crate::run::attempt::{AttemptJob, LabelledAgent, RunContext};
use crate::run::event::{Observer, RunEvent};
use crate::run::store::Writer;
use crate::run::{AttemptRecord, ClientName, Serving, Store};
use crate::sample::Sample;
use crate::session::{HostedRun, Run};
use client::Waiting;
pub use client::{Episode, EpisodeOutcome, Progress};
use curriculum::{CANDIDATES, Curriculum, KnownDifficulty, Unit};
use remote::{Exchange, RemoteAgent};
pub use remote::{Observed, Opening, SUBMIT};
use tasks::{Split, TaskChoice, Tasks};

/// Memory that must be available before another episode starts, in bytes.
const LEAST_MEMORY: u64 = 512 << 20;
/// Maximum number of different client names in a run. A client's episodes are numbered and stored under its name.
const MOST_CLIENTS: usize = 256;

/// Starts episodes and stores their records.
pub struct EpisodeHost {
    context: Arc<RunContext>,
    serving: Serving,
    tools: ToolSet,
    tasks: Tasks,
    /// One permit per episode that may run.
    slots: Arc<Semaphore>,
    jobs: usize,
    /// Maximum time that an episode waits for its client's next call.
    idle: Duration,
    /// Number of the next attempt, by the client's label and the sample's id.
    numbers: Mutex<HashMap<String, HashMap<String, u32>>>,
    curriculum: Option<Arc<Mutex<Curriculum>>>,
    /// Number of episodes begun so far, which decides between the samples that fit a request.
    turns: Mutex<u64>,
    records: mpsc::UnboundedSender<StoredRecord>,
    keeper: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
    failure: Arc<Mutex<Option<Error>>>,
    observer: Arc<dyn Observer>,
}

/// A record to store, and the channel that reports when it is on disk.
type StoredRecord = (AttemptRecord, oneshot::Sender<()>);

/// Options of a host, which starts episodes for its clients.
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    /// Maximum time that an episode waits for its client's next call.
    pub idle: Duration,
    /// Difficulties of functions known from earlier runs, with which a curriculum begins.
    pub known: KnownDifficulty,
}

/// Why an episode cannot be started.
#[derive(Debug)]
pub enum NotStarted {
    /// The maximum number of episodes is running, or too little memory is left.
    Capacity(String),
    /// The request is wrong.
    Request(Error),
    /// The host is being stopped.
    Stopped,
}

impl EpisodeHost {
    /// Prepares the run and creates its folder. Returns `None` if it is cancelled.
    ///
    /// # Errors
    /// As [`Run::execute`], and kind `Usage` if there are no tasks.
    pub async fn open(
        run: Run,
        options: HostOptions,
        observer: Arc<dyn Observer>,
        stop: CancellationToken,
    ) -> Result<Option<Arc<Self>>> {
        let at_once = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let Some(hosted) = run.host(at_once, observer.as_ref(), &stop).await? else { return Ok(None) };
        let HostedRun { context, writer, family, items, records } = hosted;
        let configuration = &context.configuration;
        let serving = configuration.serving.clone();
        let serving = serving.ok_or_else(|| Error::internal("the run's episode settings are missing"))?;
        let tasks = Tasks::new(family, items, configuration.draw.clone(), configuration.seed, serving.held_out);
        let jobs = context.machine.graphics.at_once(configuration.jobs)?;
        let mut numbers: HashMap<String, HashMap<String, u32>> = HashMap::new();
        for record in &records {
            let next = numbers.entry(record.agent.clone()).or_default().entry(record.sample.clone()).or_default();
            *next = (*next).max(record.attempt + 1);
        }
        let curriculum = serving.curriculum.map(|settings| {
            let mut curriculum = Curriculum::new(settings, configuration.seed, options.known.clone());
            for record in &records {
                let Some(draw) = record.curriculum else { continue };
                curriculum.resume_after(draw);
                if let Some(sample) = tasks.family().sample(&record.sample).ok().filter(|_| !record.is_infrastructure())
                {
                    curriculum.learn(&units(&tasks, &sample), record.pass);
                }
            }
            Arc::new(Mutex::new(curriculum))
        });
        let (sender, receiver) = mpsc::unbounded_channel();
        let failure = Arc::new(Mutex::new(None));
        let keeper = tokio::spawn(keep(writer, receiver, failure.clone(), stop.clone()));
        let tools = ToolSet::from_choice(serving.tools);
        let host = Self {
            tools,
            serving,
            tasks,
            slots: Arc::new(Semaphore::new(jobs)),
            jobs,
            idle: options.idle,
            numbers: Mutex::new(numbers),
            curriculum,
            turns: Mutex::new(records.len() as u64),
            records: sender,
            keeper: Mutex::new(Some(keeper)),
            stop,
            failure,
            observer,
            context: Arc::new(context),
        };
        if host.tasks.list(Split::Train)?.is_empty() {
            return Err(Error::usage("the training split has no tasks")
                .hint("give another `-n`, or a smaller `--held-out`, the share of functions kept for the test split"));
        }
        Ok(Some(Arc::new(host)))
    }

    /// The tasks.
    #[must_use]
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The tools that clients can call, without [`SUBMIT`].
    pub fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        self.tools.without_model()
    }

    /// Returns the task of a sample in the form shown to clients, without starting an episode.
    ///
    /// # Errors
    /// Kind `Usage` for a sample that its item does not have.
    pub fn opening(&self, sample: &Sample) -> Result<Opening> {
        let ready = self.context.ready(sample)?;
        let staged = ready.stage(sample, 0)?;
        Ok(remote::opening(&staged.task, &ready.limits(self.context.configuration.limits), self.tools))
    }

    /// The store of the run.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.context.store
    }

    /// Returns the number of episodes that may run at once, and the number that run now.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        (self.jobs, self.jobs - self.slots.available_permits().min(self.jobs))
    }

    /// Checks a request for an episode without starting one.
    ///
    /// # Errors
    /// Kind `Usage` for a request that no task meets, or for too many clients.
    pub fn check(&self, client: &ClientName, asked: &TaskChoice) -> Result<()> {
        check_clients(&lock(&self.numbers), &client.label())?;
        self.tasks.choose(asked, 0).map(drop)
    }

    /// Chooses a sample for a client. If the curriculum drew the sample, also returns the number of this draw, from 0.
    ///
    /// # Errors
    /// Kind `Usage` for a request that no task meets.
    fn choose(&self, asked: &TaskChoice, turn: u64) -> Result<(Sample, Option<u64>)> {
        if let Some(curriculum) = self.curriculum.as_ref().filter(|_| asked.is_open() && asked.split == Split::Train) {
            return self.fitting(&mut lock(curriculum), asked.item.as_deref());
        }
        Ok((self.tasks.choose(asked, turn)?, None))
    }

    /// Draws some samples at random, and chooses the one whose difficulty fits the curriculum best.
    fn fitting(&self, curriculum: &mut Curriculum, item: Option<&str>) -> Result<(Sample, Option<u64>)> {
        let mut places = Vec::new();
        for found in self.tasks.items().iter().filter(|found| item.is_none_or(|id| id == found.id())) {
            for n in self.tasks.sizes(found.as_ref())? {
                let samples = self.tasks.samples(found.as_ref(), n, Split::Train)?;
                if !samples.is_empty() {
                    places.push(samples);
                }
            }
        }
        let mut best: Option<(f64, &Sample)> = None;
        for place in 0..CANDIDATES {
            let drawn = curriculum.draw(place);
            let Some(samples) = pick(&places, drawn >> 32) else { break };
            let Some(sample) = pick(samples, drawn & u64::from(u32::MAX)) else { continue };
            let distance = curriculum.distance(&units(&self.tasks, sample));
            if best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, sample));
            }
        }
        match best {
            Some((_, sample)) => Ok((sample.clone(), Some(curriculum.next()))),
            // The curriculum found no sample, so this call of `choose` fails, with an error that names what is missing.
            None => {
                let asked = TaskChoice { item: item.map(str::to_owned), ..TaskChoice::default() };
                Ok((self.tasks.choose(&asked, 0)?, None))
            }
        }
    }

    /// Starts an episode.
    ///
    /// # Errors
    /// Says why it cannot start now.
    pub fn start(&self, client: &ClientName, asked: &TaskChoice) -> std::result::Result<Episode, NotStarted> {
        if self.stop.is_cancelled() {
            return Err(NotStarted::Stopped);
        }
        let slot = self.slots.clone().try_acquire_owned().map_err(|_| {
            NotStarted::Capacity(format!("{} episodes are running, which is the most (`--jobs`)", self.jobs))
        })?;
        if let Some(left) =
            reported_memory(Path::new(MEMORY_REPORT), "MemAvailable").filter(|left| *left < LEAST_MEMORY)
        {
            return Err(NotStarted::Capacity(format!("only {} MiB of memory are available", left >> 20)));
        }
        let label = client.label();
        let (sample, draw, attempt) = {
            // A refused request does not increase the turn, because a refused request has no record, and a resumed run
            // takes the number of its records as the turn.
            let mut turn = lock(&self.turns);
            let (sample, draw) = self.choose(asked, *turn).map_err(NotStarted::Request)?;
            let attempt = self.number(&label, &sample)?;
            *turn += 1;
            (sample, draw, attempt)
        };
        Ok(self.begin(label, sample, attempt, draw, slot))
    }

    /// Returns the number of the next attempt of a client at a sample.
    fn number(&self, label: &str, sample: &Sample) -> std::result::Result<u32, NotStarted> {
        let mut numbers = lock(&self.numbers);
        check_clients(&numbers, label).map_err(NotStarted::Request)?;
        if !numbers.contains_key(label) {
            self.context.store.make_folders(label).map_err(|error| {
                let what = error.to_string();
                self.fail(error);
                NotStarted::Request(Error::store(what))
            })?;
        }
        let next = numbers.entry(label.to_owned()).or_default().entry(sample.id().to_owned()).or_default();
        *next += 1;
        Ok(*next - 1)
    }

    fn begin(
        &self,
        label: String,
        sample: Sample,
        attempt: u32,
        draw: Option<u64>,
        slot: OwnedSemaphorePermit,
    ) -> Episode {
        let gone = CancellationToken::new();
        let (opened, opening) = oneshot::channel();
        let (calls, received) = mpsc::channel(1);
        let exchange = Exchange { opened, calls: received, gone: gone.clone(), idle: self.idle };
        let agent = Arc::new(RemoteAgent::new(label.clone(), self.tools, exchange));
        let agent = LabelledAgent { label: label.clone(), agent };
        let live = Arc::new(LiveUsage::default());
        let (told, outcome) = watch::channel(None);
        self.observer.on(RunEvent::Started {
            agent: label.clone(),
            sample: sample.id().to_owned(),
            attempt,
            so_far: live.clone(),
        });
        let work = EpisodeWork {
            context: self.context.clone(),
            reward: self.serving.reward,
            records: self.records.clone(),
            stop: self.stop.clone(),
            failure: self.failure.clone(),
            observer: self.observer.clone(),
            draw,
            learns: self.curriculum.clone().map(|curriculum| (curriculum, units(&self.tasks, &sample))),
        };
        let job = AttemptJob { agent: 0, sample: sample.clone(), attempt };
        let so_far = live.clone();
        tokio::spawn(async move {
            let outcome = Box::pin(work.make(&agent, &job, &so_far)).await;
            // Free the slot before the client learns of the outcome, so that the client can start another episode at
            // once.
            drop(slot);
            told.send_replace(Some(Arc::new(outcome)));
        });
        Episode {
            sample,
            attempt,
            label,
            calls,
            waiting: Waiting::Opening(opening),
            outcome,
            live,
            _leaves: gone.drop_guard(),
        }
    }

    fn fail(&self, error: Error) {
        lock(&self.failure).get_or_insert(error);
        self.stop.cancel();
    }

    /// Waits until all episodes have ended and are stored. Meanwhile, no other episode can start.
    pub async fn all_ended(&self) {
        let all = u32::try_from(self.jobs).unwrap_or(u32::MAX);
        // This fails only if the semaphore is closed, which never happens.
        let _all = self.slots.acquire_many(all).await;
    }

    /// Waits until all episodes have ended and are stored, after the host was stopped.
    ///
    /// # Errors
    /// The first error that stopped the host, such as kind `Store`.
    pub async fn finish(&self) -> Result<()> {
        self.all_ended().await;
        for left in self.context.machine.backend.removals().await {
            self.observer.on(RunEvent::Warning(left));
        }
        if let Some(keeper) = lock(&self.keeper).take() {
            keeper.abort();
        }
        lock(&self.failure).take().map_or(Ok(()), Err)
    }
}

/// The parts of the [`EpisodeHost`] that the asynchronous task of an episode uses.
struct EpisodeWork {
    context: Arc<RunContext>,
    reward: crate::run::Reward,
    records: mpsc::UnboundedSender<StoredRecord>,
    stop: CancellationToken,
    failure: Arc<Mutex<Option<Error>>>,
    observer: Arc<dyn Observer>,
    /// Number (from 0) of the curriculum's draw that chose this sample; `None` if the curriculum did not choose it.
    draw: Option<u64>,
    /// The curriculum, and the units that the sample masks.
    learns: Option<(Arc<Mutex<Curriculum>>, Vec<Unit>)>,
}

impl EpisodeWork {
    async fn make(&self, agent: &LabelledAgent, job: &AttemptJob, so_far: &Arc<LiveUsage>) -> EpisodeOutcome {
        let mut record = match self.context.make_by(agent, job, so_far, &self.stop).await {
            Ok(record) => record,
            Err(error) => {
                let lost = with_causes(&error);
                lock(&self.failure).get_or_insert(error);
                self.stop.cancel();
                return EpisodeOutcome { record: None, reward: None, lost: Some(lost) };
            }
        };
        record.curriculum = self.draw;
        // Do not record an attempt that was stopped before its first step.
        if record.end != End::Cancelled || record.steps > 0 {
            let (done, stored) = oneshot::channel();
            if self.records.send((record.clone(), done)).is_err() || stored.await.is_err() {
                let lost = Some("the record could not be stored".to_owned());
                return EpisodeOutcome { record: None, reward: None, lost };
            }
        }
        if let Some((curriculum, units)) = self.learns.as_ref().filter(|_| self.draw.is_some())
            && !record.is_infrastructure()
        {
            lock(curriculum).learn(units, record.pass);
        }
        self.observer.on(RunEvent::Finished(Arc::new(record.clone())));
        let lost = record.is_infrastructure().then(|| record.end_detail.clone().unwrap_or_default());
        EpisodeOutcome { reward: reward::reward(self.reward, &record), lost, record: Some(record) }
    }
}

/// Stores records. Those that arrive while the disk is busy are written together, with one flush.
async fn keep(
    mut writer: Writer,
    mut records: mpsc::UnboundedReceiver<StoredRecord>,
    failure: Arc<Mutex<Option<Error>>>,
    stop: CancellationToken,
) {
    let mut batch = Vec::new();
    while records.recv_many(&mut batch, 256).await > 0 {
        let (stored, waiting): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        // Appending waits for the disk, so tell the runtime that this thread will block.
        match tokio::task::block_in_place(|| writer.append(&stored)) {
            Ok(()) => {
                for done in waiting {
                    // Sending fails if the episode was dropped; ignore that.
                    let _ = done.send(());
                }
            }
            Err(error) => {
                lock(&failure).get_or_insert(error);
                stop.cancel();
            }
        }
    }
}

/// Returns the units that a sample withholds from the agent, such as functions, whose difficulty the curriculum learns.
/// For kinds of tasks without units, returns the sample itself as the only unit.
fn units(tasks: &Tasks, sample: &Sample) -> Vec<Unit> {
    match tasks.family().withheld(sample) {
        Some(withheld) => withheld.units.into_iter().map(|unit| (withheld.item.clone(), unit)).collect(),
        None => vec![(sample.id().to_owned(), 0)],
    }
}

/// Checks that a client is known, or that there is room for another one. `numbers` has an entry for each known client.
fn check_clients(numbers: &HashMap<String, HashMap<String, u32>>, label: &str) -> Result<()> {
    if numbers.contains_key(label) || numbers.len() < MOST_CLIENTS {
        return Ok(());
    }
    let what = format!("at most {MOST_CLIENTS} clients can give themselves a name, and that many already have");
    Err(Error::usage(what).hint("give a name that a client of this run already has"))
}

/// Picks an element by a random number below 2^32.
fn pick<T>(from: &[T], drawn: u64) -> Option<&T> {
    let index = (u128::from(drawn) * from.len() as u128) >> 32;
    from.get(index as usize)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equally_spaced_random_numbers_pick_every_entry_of_a_list() {
        let all: Vec<usize> = (0..7).collect();
        let picked: std::collections::BTreeSet<usize> =
            (0..700_u64).filter_map(|number| pick(&all, number * (u64::from(u32::MAX) / 700)).copied()).collect();
        assert_eq!(picked.len(), 7);
        assert_eq!(pick::<usize>(&[], 5), None);
    }
}
