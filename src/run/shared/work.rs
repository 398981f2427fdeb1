//! The attempts that one process of a shared run makes: first those of its own share of the plan (its shard), then
//! those of other shards that no process has started, then those that dead processes left unfinished.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::beat::{Liveness, PeerWatch};
use super::claims::Claims;
use super::member::{Member, books, spent_by_pick};
use super::purse::Purse;
use super::tails::TailPositions;
use super::{Sharing, shards};
use crate::error::{Error, Result};
use crate::run::attempt::AttemptJob;
use crate::run::family::Family;
use crate::run::scheduler::{Affordability, AttemptQueue, NextJob};
use crate::run::store::write_failed;
use crate::run::{AttemptRecord, Configuration, Store, TryRecord as _, interrupted_attempts};

/// Name of the claim of the process that runs the verifiers, which choose among the attempts. Only one live process may
/// hold this claim.
const CHOICES: &str = "choices";

/// Name of the claim of the process that stays until all attempts are finished. This process takes over the attempts of
/// processes that die.
const KEEPER: &str = "keeper";

/// Returns the name of the process that last claimed to run the verifiers of the run in this folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn last_chooser(folder: &Path) -> io::Result<Option<String>> {
    Ok(Claims::new(&claims_folder(folder), "").last(CHOICES, 0)?.map(|claim| claim.holder))
}

fn claims_folder(run: &Path) -> PathBuf {
    run.join("claims")
}

/// The remaining work of a run, as far as one process knows.
pub struct SharedQueue<'a> {
    store: Store,
    family: &'a dyn Family,
    member: Member,
    claims: Claims,
    watch: PeerWatch,
    purse: Option<Purse>,
    tails: TailPositions,
    tries: u32,
    /// All attempts of the run. Claims refer to an attempt by its index here.
    plan: Vec<AttemptJob>,
    places: HashMap<(String, String, u32), usize>,
    /// Whether each attempt, by index, has a record that was not lost to infrastructure.
    done: Vec<bool>,
    /// For each attempt: the number of tries that this or another process has lost to infrastructure since this process
    /// started, and the reason for the last loss.
    lost: HashMap<usize, (u32, String)>,
    /// Attempts that no process had started when the claims were last read, in the order in which this process tries to
    /// claim them.
    free: VecDeque<usize>,
    /// Whether `free` also contains attempts of other processes' shares of the plan (shards).
    of_others: bool,
    /// Attempts that other processes have claimed and not finished, with the number of times that each claim was taken
    /// over (its generation).
    held: BTreeMap<usize, u32>,
    /// Attempts that this process has claimed, with the number of times that each claim was taken over (its
    /// generation).
    own: HashMap<usize, u32>,
    /// Dead processes after which this or another process has cleaned up.
    cleared: Vec<String>,
    /// Number of attempts that this process leaves to other processes if it ends before the run is finished.
    left: usize,
    pause: Duration,
    looked: Option<Instant>,
}

impl<'a> SharedQueue<'a> {
    /// Creates the queue of one process of a shared run. `label` returns the label of a job's agent.
    ///
    /// # Errors
    /// Kind `Store` if the run's folder cannot be read.
    pub fn new(
        store: &Store,
        sharing: &Sharing,
        member: Member,
        family: &'a dyn Family,
        plan: Vec<AttemptJob>,
        label: impl Fn(&AttemptJob) -> String,
        configuration: &Configuration,
    ) -> Result<Self> {
        let (folder, timeout) = (store.folder(), sharing.timeout());
        let places: HashMap<_, _> = plan
            .iter()
            .enumerate()
            .map(|(place, job)| ((label(job), job.sample.id().to_owned(), job.attempt), place))
            .collect();
        // The purse has no entry for `pick`, which spends money only while no shard works on the run.
        let purse = |most: f64| -> Result<Purse> {
            Ok(Purse::new(&folder.join("purse"), &member.name, most - spent_by_pick(store)?))
        };
        let purse = configuration.max_cost.map(purse).transpose()?;
        let mut part = Self {
            claims: Claims::new(&claims_folder(folder), &member.name),
            watch: PeerWatch::new(&shards(folder), timeout),
            purse,
            tails: TailPositions::default(),
            tries: configuration.tries,
            done: vec![false; plan.len()],
            lost: HashMap::new(),
            free: VecDeque::new(),
            of_others: false,
            held: BTreeMap::new(),
            own: HashMap::new(),
            cleared: Vec::new(),
            left: 0,
            pause: (timeout / 12).min(Duration::from_secs(2)),
            looked: None,
            store: store.clone(),
            family,
            member,
            plan,
            places,
        };
        part.read_on()?;
        // Attempts that were lost to infrastructure before this process started are tried again. So do not count those
        // losses as tries.
        part.lost.clear();
        part.find_free(false)?;
        Ok(part)
    }

    /// Returns an error if other processes consider this process dead and have taken over its work.
    #[must_use]
    pub fn taken_over(&self) -> Option<Error> {
        let what =
            format!("shard {} showed no activity for so long that others have taken over its work", self.member.name);
        self.member.beat.lapsed().is_cancelled().then(|| {
            Error::store(what)
                .hint("start it again; if file servers are slow here, plan with a longer `--claim-timeout`")
        })
    }

    /// Number of all attempts, and number of finished attempts.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.plan.len(), self.done.iter().filter(|done| **done).count())
    }

    /// Claims the verifiers for this process, and returns whether this process may run them. Only one live process may
    /// do so. Called once all attempts are made. If another process has claimed the verifiers, waits until that process
    /// is known to be alive or dead: about for the run's claim timeout, if its heartbeat file can be read.
    ///
    /// # Errors
    /// Kind `Store` if the run's folder cannot be read or written.
    pub async fn may_choose(&mut self) -> Result<bool> {
        loop {
            let last = self.claims.last(CHOICES, 0).map_err(|error| self.failed(error))?;
            let generation = match last {
                None => 0,
                Some(claim) => match self.watch.look(&claim.holder) {
                    Liveness::Alive if self.watch.is_well(&claim.holder) => return Ok(false),
                    // A single read of the process's counter does not show whether the process is alive or was killed.
                    // Read the counter again after a pause.
                    Liveness::Alive => {
                        tokio::time::sleep(self.pause).await;
                        continue;
                    }
                    life => {
                        if life == Liveness::Dead {
                            // If the other process was only suspended, it notices that others have cleaned up after it,
                            // and ends before it runs the verifiers, too.
                            self.clear_up(&claim.holder)?;
                        }
                        claim.generation + 1
                    }
                },
            };
            return self.claims.take(CHOICES, generation).map_err(|error| self.failed(error));
        }
    }

    /// Records that this process is done and how it ended, so that no other process cleans up after it.
    ///
    /// # Errors
    /// Kind `Store` if the run's folder cannot be read or written.
    pub fn close(mut self, how: &str) -> Result<()> {
        let spent = self.member.spent(&self.store)?;
        if let Some(purse) = &mut self.purse {
            purse.rest(&self.member.name, spent).map_err(|error| write_failed(self.store.folder(), error))?;
        }
        // Without this check, only the next reader would notice that the records file disappeared after its last record
        // was written.
        self.member.writer.check()?;
        self.member.end(&self.store, how)
    }

    fn failed(&self, error: std::io::Error) -> Error {
        write_failed(self.store.folder(), error)
    }

    /// Reads new records.
    fn read_on(&mut self) -> Result<()> {
        let Self { tails, places, done, lost, .. } = self;
        tails.read(&self.store, |ended| {
            let key = (ended.agent.into_owned(), ended.sample.into_owned(), ended.attempt);
            let Some(&place) = places.get(&key) else { return };
            if !ended.end.is_infrastructure() {
                done[place] = true;
            } else if ended.end != crate::agent::End::Cancelled {
                let (count, why) = lost.entry(place).or_default();
                // If the agent had finished and only the verification was lost, count all tries of this session as used
                // up. Another try would pay for the agent's work again.
                *count = if ended.verification_lost { u32::MAX } else { count.saturating_add(1) };
                *why = ended.end_detail.unwrap_or_default();
            }
        })
    }

    /// Whether this attempt has been lost to infrastructure as often as it may be tried.
    fn is_given_up(&self, place: usize) -> bool {
        self.lost.get(&place).is_some_and(|(count, _)| *count >= self.tries)
    }

    /// Looks for attempts that no process has started, in this process's shard or, if `of_others`, in all shards.
    fn find_free(&mut self, of_others: bool) -> Result<()> {
        self.of_others = of_others;
        let claimed = self.claims.all().map_err(|error| self.failed(error))?;
        let (index, count) = (self.member.shard.index as usize, self.member.shard.count as usize);
        let open = |place: &usize| !self.done[*place] && !self.own.contains_key(place);
        let is_part = |place: &usize| place % count == index;
        let (mut free, mut held) = (VecDeque::new(), BTreeMap::new());
        for place in (0..self.plan.len()).filter(open).filter(|place| of_others || is_part(place)) {
            match claimed.get(&place.to_string()) {
                Some(generation) => _ = held.insert(place, *generation),
                None => free.push_back(place),
            }
        }
        if of_others {
            // Begin with the last attempts, because each shard makes its last attempts last. Each process begins at a
            // different attempt, so that processes rarely try to claim the same one.
            free.make_contiguous().reverse();
            let skip = free.len() * index / count;
            free.rotate_left(skip);
        }
        (self.free, self.held) = (free, held);
        Ok(())
    }

    /// Takes over an attempt left by a dead process. If there is no such attempt, returns whether all remaining
    /// attempts are held by processes with a recent sign of life.
    fn take_over(&mut self) -> Result<Result<AttemptJob, bool>> {
        let mut lives: HashMap<String, Liveness> = HashMap::new();
        let (mut left, mut holders) = (Vec::new(), BTreeMap::new());
        for (place, generation) in self.held.clone() {
            let claim = self.claims.last(&place.to_string(), generation).map_err(|error| self.failed(error))?;
            let Some(claim) = claim else { continue };
            self.held.insert(place, claim.generation);
            let watch = &mut self.watch;
            let life = *lives.entry(claim.holder.clone()).or_insert_with_key(|holder| watch.look(holder));
            if life == Liveness::Alive {
                holders.insert(place, claim.holder);
            } else {
                left.push((place, claim));
            }
        }
        // Read the records only after checking which processes are alive. A process that was found dead writes no more
        // records, so none of its records can be missed.
        self.read_on()?;
        let (done, lost, tries) = (&self.done, &self.lost, self.tries);
        self.held.retain(|place, _| !done[*place] && lost.get(place).is_none_or(|(count, _)| *count < tries));
        for (name, _) in lives.iter().filter(|(_, life)| **life == Liveness::Dead) {
            self.clear_up(name)?;
        }
        for (place, claim) in left {
            if !self.held.contains_key(&place) {
                continue;
            }
            let generation = claim.generation + 1;
            if self.claims.take(&place.to_string(), generation).map_err(|error| self.failed(error))? {
                self.held.remove(&place);
                return Ok(Ok(self.begin(place, generation)));
            }
            self.held.insert(place, generation);
        }
        let is_well = |place: &usize| holders.get(place).is_some_and(|holder| self.watch.is_well(holder));
        Ok(Err(self.held.keys().all(is_well)))
    }

    /// Whether this process may end and leave the remaining attempts to the processes that have claimed them. One idle
    /// process must stay to take over the attempts of processes that die. If the idle process dies, another one stays
    /// in its place.
    fn may_leave(&mut self) -> Result<bool> {
        let last = self.claims.last(KEEPER, 0).map_err(|error| self.failed(error))?;
        let generation = match last {
            None => 0,
            Some(claim) if claim.holder == self.member.name => return Ok(false),
            Some(claim) => match self.watch.look(&claim.holder) {
                // Another process stays until the end. Leave only if its counter, which shows that it is alive, has
                // changed recently.
                Liveness::Alive => return Ok(self.watch.is_well(&claim.holder)),
                Liveness::Dead | Liveness::Ended => claim.generation + 1,
            },
        };
        self.claims.take(KEEPER, generation).map_err(|error| self.failed(error))?;
        Ok(false)
    }

    /// Records what a dead process spent on unfinished attempts, and lets other processes use its unspent money.
    fn clear_up(&mut self, name: &str) -> Result<()> {
        if name.is_empty() || self.cleared.iter().any(|known| known == name) {
            return Ok(());
        }
        let what = Claims::after(name);
        let last = self.claims.last(&what, 0).map_err(|error| self.failed(error))?;
        let generation = match &last {
            None => 0,
            Some(claim) if claim.holder == self.member.name => return Ok(()),
            Some(claim) => match self.watch.look(&claim.holder) {
                Liveness::Alive => return Ok(()),
                Liveness::Ended => {
                    self.cleared.push(name.to_owned());
                    return Ok(());
                }
                Liveness::Dead => claim.generation + 1,
            },
        };
        if !self.claims.take(&what, generation).map_err(|error| self.failed(error))? {
            return Ok(());
        }
        let books = books(&self.store, name)?;
        let interrupted = interrupted_attempts(&self.store, Some(&books), &self.store.records()?, self.family)?;
        self.member.writer.append(&interrupted)?;
        if let Some(purse) = &mut self.purse {
            let rest = purse.rest(name, books.total().dollars());
            rest.map_err(|error| write_failed(self.store.folder(), error))?;
        }
        self.cleared.push(name.to_owned());
        Ok(())
    }

    fn begin(&mut self, place: usize, generation: u32) -> AttemptJob {
        self.own.insert(place, generation);
        self.plan[place].clone()
    }

    fn next_job(&mut self) -> Result<NextJob> {
        self.left = 0;
        if let Some(error) = self.taken_over() {
            return Err(error);
        }
        loop {
            while let Some(place) = self.free.pop_front() {
                if self.done[place] || self.own.contains_key(&place) {
                    continue;
                }
                if self.claims.take(&place.to_string(), 0).map_err(|error| self.failed(error))? {
                    return Ok(NextJob::Job(self.begin(place, 0)));
                }
                self.held.insert(place, 0);
            }
            if self.of_others {
                break;
            }
            self.read_on()?;
            self.find_free(true)?;
        }
        if self.held.is_empty() {
            return Ok(NextJob::None);
        }
        if self.looked.is_some_and(|at| at.elapsed() < self.pause) {
            return Ok(NextJob::Later);
        }
        self.looked = Some(Instant::now());
        Ok(match self.take_over()? {
            Ok(job) => {
                // Dead processes may have left more attempts. Forget the time of this search, so that the next call
                // searches without a pause.
                self.looked = None;
                NextJob::Job(job)
            }
            Err(_) if self.held.is_empty() => NextJob::None,
            Err(true) if self.may_leave()? => {
                self.left = self.held.len();
                NextJob::None
            }
            Err(_) => NextJob::Later,
        })
    }

    /// Whether some of the run's money may still become available, because another process may spend less than it is
    /// allowed to.
    fn others_spend(&mut self) -> Result<bool> {
        let busy: Vec<String> = self.purse.iter().flat_map(Purse::busy).map(ToOwned::to_owned).collect();
        let mut any = false;
        for name in busy {
            match self.watch.look(&name) {
                Liveness::Dead => self.clear_up(&name)?,
                // A process that has just ended has stored how much it spent in total, so the money that it did not
                // spend may be available now.
                Liveness::Alive | Liveness::Ended => any = true,
            }
        }
        Ok(any)
    }
}

impl AttemptQueue for SharedQueue<'_> {
    fn next(&mut self) -> Result<NextJob> {
        tokio::task::block_in_place(|| self.next_job())
    }

    fn afford(&mut self, committed: f64, more: f64) -> Result<Affordability> {
        tokio::task::block_in_place(|| {
            let folder = self.store.folder();
            let Some(purse) = &mut self.purse else { return Ok(Affordability::Fits) };
            let failed = |error| write_failed(folder, error);
            if committed + more <= purse.allowed() || purse.raise(committed + more).map_err(failed)? {
                return Ok(Affordability::Fits);
            }
            Ok(if self.others_spend()? { Affordability::Later } else { Affordability::Short })
        })
    }

    fn rest(&mut self, spent: f64) -> Result<()> {
        tokio::task::block_in_place(|| {
            let Some(purse) = &mut self.purse else { return Ok(()) };
            purse.rest(&self.member.name, spent).map_err(|error| write_failed(self.store.folder(), error))
        })
    }

    fn keep(&mut self, ended: &mut [(AttemptJob, AttemptRecord)]) -> Result<()> {
        tokio::task::block_in_place(|| {
            for (_, record) in ended.iter_mut() {
                let key = (record.agent.clone(), record.sample.clone(), record.attempt);
                let Some(&place) = self.places.get(&key) else { continue };
                let Some(&generation) = self.own.get(&place) else { continue };
                if self.claims.is_taken_over(&place.to_string(), generation) {
                    record.supersede();
                    self.own.remove(&place);
                    self.held.insert(place, generation + 1);
                } else if !record.is_infrastructure() {
                    self.done[place] = true;
                }
            }
            self.member.writer.append(ended.iter().map(|(_, record)| record))
        })
    }

    fn lost(&self) -> Vec<String> {
        let open = |place: &usize| !self.done[*place] && !self.own.contains_key(place) && self.is_given_up(*place);
        self.lost.iter().filter(|(place, _)| open(place)).map(|(_, (_, why))| why.clone()).collect()
    }

    fn left(&self) -> usize {
        self.left
    }

    fn pause(&self) -> Duration {
        self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProbeCost;
    use crate::run::SessionFacts;
    use crate::run::family::Families;
    use crate::run::shared::Shard;
    use crate::sample::MASKED;

    #[test]
    fn shards_cannot_spend_the_money_that_pick_or_other_shards_have_spent() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let sharing = Sharing { plan: String::new(), claim_timeout: 60.0 };
        let member = Member::join(&store, Shard::ONLY, sharing.timeout(), &SessionFacts::blank(), true).unwrap();
        let cost = |cost| ProbeCost { cost, ..ProbeCost::default() };
        store.ledger().unwrap().probed(&cost(1.25)).unwrap();
        // Another shard's spending is in its ledger and in the purse, and must count only once.
        store.shard_ledger("2").unwrap().probed(&cost(0.5)).unwrap();
        Purse::new(&folder.path().join("purse"), "2", 2.0).rest("2", 0.5).unwrap();
        let families = Families::standard();
        let family: &dyn Family = families.get(MASKED).unwrap().as_ref();
        let configuration = Configuration { max_cost: Some(2.0), ..Configuration::new(folder.path()) };
        let label = |_: &AttemptJob| String::new();
        let queue = SharedQueue::new(&store, &sharing, member, family, Vec::new(), label, &configuration);
        let mut queue = queue.unwrap();
        assert_eq!(queue.afford(0.0, 0.25).unwrap(), Affordability::Fits);
        assert_eq!(queue.afford(0.25, 0.25).unwrap(), Affordability::Short);
    }
}
