//! Tests of the scheduler with attempts that only wait, without a sandbox. The clock is paused and jumps to the end of
//! each wait.

use std::sync::Mutex;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::time::{Instant, sleep};

use super::*;
use crate::sample::masked;

/// Outcome of one try of an attempt.
#[derive(Debug, Clone)]
struct PlannedTry {
    seconds: u64,
    cost: f64,
    end: End,
    verification_lost: bool,
    /// Why the try could not be started.
    not_started: Option<&'static str>,
    error: Option<FailureKind>,
}

impl PlannedTry {
    fn new(seconds: u64, cost: f64, end: End) -> Self {
        Self { seconds, cost, end, verification_lost: false, not_started: None, error: None }
    }

    fn not_started(why: &'static str) -> Self {
        Self { not_started: Some(why), ..Self::new(1, 0.0, End::SandboxLost) }
    }
}

/// An agent with prepared tries: the first list is for sample `p_0`, the second for `p_1`, and so on. The last try of a
/// list is repeated.
struct ScriptedTries {
    budget: f64,
    tries: Vec<Vec<PlannedTry>>,
    seen: Mutex<SeenTries>,
}

#[derive(Default)]
struct SeenTries {
    /// Tries begun so far, by sample.
    begun: Vec<usize>,
    running: usize,
    most_running: usize,
    /// Dollars spent by finished tries.
    spent: f64,
    /// The most that could have been spent at any time: past costs and the whole budgets of all running tries.
    most_spent: f64,
}

impl ScriptedTries {
    fn new(budget: f64, tries: Vec<Vec<PlannedTry>>) -> Arc<Self> {
        let seen = SeenTries { begun: vec![0; tries.len()], ..SeenTries::default() };
        Arc::new(Self { budget, tries, seen: Mutex::new(seen) })
    }

    fn jobs(&self) -> Vec<AttemptJob> {
        let samples: Vec<Sample> = (0..self.tries.len()).map(|place| masked(&format!("p_{place}"))).collect();
        plan(&samples, 1, 1)
    }

    fn lock_seen(&self) -> std::sync::MutexGuard<'_, SeenTries> {
        self.seen.lock().unwrap()
    }
}

impl AttemptRunner for ScriptedTries {
    fn label(&self, _job: &AttemptJob) -> &'static str {
        "scripted"
    }

    fn budget(&self, _job: &AttemptJob) -> f64 {
        self.budget
    }

    async fn attempt(&self, job: &AttemptJob, _: &Arc<LiveUsage>, cancel: &CancellationToken) -> Result<AttemptRecord> {
        let place: usize = job.sample.id().trim_start_matches("p_").parse().unwrap();
        let one = {
            let mut seen = self.lock_seen();
            let one = self.tries[place][seen.begun[place].min(self.tries[place].len() - 1)].clone();
            seen.begun[place] += 1;
            seen.running += 1;
            seen.most_running = seen.most_running.max(seen.running);
            seen.most_spent = seen.most_spent.max(seen.spent + seen.running as f64 * self.budget);
            one
        };
        let blank =
            AttemptRecord { model: Some("m".to_owned()), ..AttemptRecord::blank("scripted", &job.sample, job.attempt) };
        let record = tokio::select! {
            () = sleep(Duration::from_secs(one.seconds)) => AttemptRecord {
                end: one.end,
                end_detail: Some(format!("try {}", self.lock_seen().begun[place])),
                cost: one.cost,
                verification_lost: one.verification_lost,
                evidence: one.not_started.map(|why| EvidenceKind::NotStarted.because(why)),
                ..blank
            },
            // A stopped try has spent half its cost.
            () = cancel.cancelled() => AttemptRecord { end: End::Cancelled, cost: one.cost / 2.0, ..blank },
        };
        let mut seen = self.lock_seen();
        seen.running -= 1;
        seen.spent += record.cost;
        match one.error {
            Some(kind) => Err(Error::new(kind, "scripted")),
            None => Ok(record),
        }
    }
}

/// Collects events.
#[derive(Default)]
struct EventLog(Mutex<Vec<RunEvent>>);

impl Observer for EventLog {
    fn on(&self, event: RunEvent) {
        self.0.lock().unwrap().push(event);
    }
}

impl EventLog {
    fn retried(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|event| matches!(event, RunEvent::Retried { .. })).count()
    }

    fn finished(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|event| matches!(event, RunEvent::Finished(_))).count()
    }
}

/// Result of a call of [`execute`].
struct SchedulerRun {
    outcome: Result<RunOutcome>,
    /// The stored records: sample, end, cost.
    kept: Vec<(String, End, f64)>,
    events: EventLog,
    seconds: u64,
}

async fn run(attempts: &Arc<ScriptedTries>, terms: SchedulingLimits, cancel: &CancellationToken) -> SchedulerRun {
    let (mut kept, events, begun) = (Vec::new(), EventLog::default(), Instant::now());
    let keep = |records: &[&AttemptRecord]| {
        kept.extend(records.iter().map(|record| (record.sample.clone(), record.end, record.cost)));
        Ok(())
    };
    let outcome = execute(attempts.clone(), attempts.jobs(), terms, keep, &events, cancel).await;
    SchedulerRun { outcome, kept, events, seconds: begun.elapsed().as_secs() }
}

const TERMS: SchedulingLimits = SchedulingLimits { jobs: 2, tries: 3, max_cost: None, spent: 0.0 };

#[test]
fn every_sample_is_attempted_once_before_any_is_attempted_twice() {
    let samples: Vec<Sample> = ["p_0", "p_1"].map(masked).to_vec();
    let jobs = plan(&samples, 2, 2);
    let order: Vec<_> = jobs.iter().map(|job| (job.attempt, job.sample.id(), job.agent)).collect();
    assert!(order.is_sorted());
    assert_eq!(order.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn as_many_attempts_run_at_once_as_there_are_jobs() {
    let attempts = ScriptedTries::new(0.0, vec![vec![PlannedTry::new(10, 0.0, End::Answered)]; 6]);
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Complete);
    assert_eq!((attempts.lock_seen().most_running, ran.seconds, ran.kept.len(), ran.events.finished()), (2, 30, 6, 6));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_starts_only_if_the_unreserved_money_covers_its_limit() {
    // Each attempt may spend a dollar and spends ten cents, so the limit of 1.25 dollars allows one at a time.
    let attempts = ScriptedTries::new(1.0, vec![vec![PlannedTry::new(10, 0.1, End::Answered)]; 3]);
    let terms = SchedulingLimits { max_cost: Some(1.25), ..TERMS };
    let ran = run(&attempts, terms, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Complete);
    assert_eq!((attempts.lock_seen().most_running, ran.seconds), (1, 30));
    // The 0.2 dollars of earlier sessions count, so after the first attempt too little is left for a second one.
    let attempts = ScriptedTries::new(1.0, vec![vec![PlannedTry::new(10, 0.1, End::Answered)]; 3]);
    let ran = run(&attempts, SchedulingLimits { spent: 0.2, ..terms }, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::CostLimit);
    assert_eq!(ran.kept.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_attempt_is_tried_again_until_its_tries_are_used_up() {
    let lost = PlannedTry::new(1, 0.5, End::SandboxLost);
    let attempts =
        ScriptedTries::new(0.0, vec![vec![lost.clone(), PlannedTry::new(1, 0.0, End::Answered)], vec![lost]]);
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Lost(vec!["try 3".to_owned()]));
    assert_eq!(attempts.lock_seen().begun, [2, 3]);
    // An attempt may need several tries. Every try is recorded, but the attempt is reported as finished only once.
    assert_eq!((ran.kept.len(), ran.events.retried(), ran.events.finished()), (5, 3, 2));
}

#[tokio::test(start_paused = true)]
async fn a_run_stops_if_its_attempts_cannot_be_started_for_the_same_reason() {
    let broken = PlannedTry::not_started("no program `mine-agnet`");
    let attempts = ScriptedTries::new(0.0, vec![vec![broken.clone()]; 100]);
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    let error = ran.outcome.unwrap_err();
    assert!(error.kind == FailureKind::Machine && error.message.contains("mine-agnet"), "{error}");
    assert!(ran.kept.len() <= LEAST_NOT_STARTED + TERMS.jobs, "{}", ran.kept.len());
    // The run continues if an attempt's next try starts, or if the reasons differ, because such failures may be
    // temporary.
    let answered = PlannedTry::new(1, 0.0, End::Answered);
    let others = [vec![broken.clone(), answered.clone()], vec![PlannedTry::not_started("EAGAIN"), answered.clone()]];
    let attempts = ScriptedTries::new(0.0, others.iter().cycle().take(20).cloned().collect());
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Complete);
    // A short failure of the machine may end all attempts that run at once. So a run with 20 parallel attempts does not
    // stop after 19 failed starts.
    let terms = SchedulingLimits { jobs: 20, ..TERMS };
    let attempts = ScriptedTries::new(0.0, vec![vec![broken, answered]; 19]);
    let ran = run(&attempts, terms, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Complete);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_ended_its_sandbox_is_not_tried_again() {
    let killed = PlannedTry::new(1, 0.0, End::SandboxKilled);
    let attempts = ScriptedTries::new(0.0, vec![vec![killed, PlannedTry::new(1, 0.0, End::Answered)]]);
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Complete);
    assert_eq!(
        (attempts.lock_seen().begun.clone(), ran.events.retried(), ran.kept[0].1),
        (vec![1], 0, End::SandboxKilled)
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_lost_only_its_verification_is_not_made_again() {
    let lost = PlannedTry { verification_lost: true, ..PlannedTry::new(1, 0.5, End::SandboxLost) };
    let attempts = ScriptedTries::new(0.0, vec![vec![lost]]);
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Lost(vec!["try 1".to_owned()]));
    assert_eq!((attempts.lock_seen().begun.clone(), ran.events.retried()), (vec![1], 0));
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_stops_the_run_and_keeps_ended_attempts() {
    let attempts = ScriptedTries::new(
        0.0,
        vec![
            vec![PlannedTry::new(1, 0.25, End::Answered)],
            vec![PlannedTry::new(5, 0.25, End::ModelDenied)],
            vec![PlannedTry::new(60, 0.5, End::Answered)],
            vec![PlannedTry::new(1, 0.5, End::Answered)],
        ],
    );
    let cancel = CancellationToken::new();
    let ran = run(&attempts, TERMS, &cancel).await;
    let error = ran.outcome.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (FailureKind::Model, "try 1"));
    // The third attempt was running and is stopped with its cost so far; the fourth never began.
    let ends: Vec<_> = ran.kept.iter().map(|(sample, end, _)| (sample.as_str(), *end)).collect();
    assert_eq!(ends, [("p_0", End::Answered), ("p_1", End::ModelDenied), ("p_2", End::Cancelled)]);
    assert_eq!((attempts.lock_seen().begun.clone(), ran.seconds), (vec![1, 1, 1, 0], 5));
    assert!(cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_answers_stops_the_run_early() {
    let down = || vec![PlannedTry::new(45, 0.0, End::ModelError)];
    let attempts = ScriptedTries::new(0.0, (0..20).map(|_| down()).collect());
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    let error = ran.outcome.unwrap_err();
    assert_eq!(error.kind, FailureKind::Provider);
    assert!(error.message.contains("did not answer 3 attempts in a row: try 1"), "{}", error.message);
    assert!(error.hint.unwrap().contains("resume"));
    assert!(ran.seconds <= 90, "{} s, not 45 s for each try of each attempt", ran.seconds);
    // A provider that answers some attempts between the failed ones does not count as down.
    let good = || vec![PlannedTry::new(45, 0.0, End::GaveUp)];
    let tries = (0..12).map(|place| if place % 3 == 2 { good() } else { down() }).collect();
    let ran = run(
        &ScriptedTries::new(0.0, tries),
        SchedulingLimits { jobs: 1, tries: 1, ..TERMS },
        &CancellationToken::new(),
    )
    .await;
    assert!(matches!(ran.outcome, Ok(RunOutcome::Lost(lost)) if lost.len() == 8));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_everything_stops_the_run_early() {
    let refused = || vec![PlannedTry::new(1, 0.0, End::Refused)];
    let attempts = ScriptedTries::new(0.0, (0..20).map(|_| refused()).collect());
    let ran = run(&attempts, SchedulingLimits { jobs: 1, ..TERMS }, &CancellationToken::new()).await;
    let error = ran.outcome.unwrap_err();
    assert_eq!((error.kind, ran.kept.len()), (FailureKind::Provider, 5));
    assert!(error.message.contains("refused all 5 attempts of `scripted` so far"), "{}", error.message);
    // An agent that never asks the model stops the run, too.
    let unasked = (0..20).map(|_| vec![PlannedTry::new(1, 0.0, End::NeverAsked)]).collect();
    let ran =
        run(&ScriptedTries::new(0.0, unasked), SchedulingLimits { jobs: 1, ..TERMS }, &CancellationToken::new()).await;
    let error = ran.outcome.unwrap_err();
    assert_eq!((error.kind, ran.kept.len()), (FailureKind::Machine, 5));
    assert!(error.message.contains("failed in all 5 attempts so far before"), "{}", error.message);
    // A single attempt that ends without a refusal shows that the provider works.
    let tries = (0..20).map(|place| if place == 3 { vec![PlannedTry::new(1, 0.0, End::GaveUp)] } else { refused() });
    let ran = run(&ScriptedTries::new(0.0, tries.collect()), TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Complete);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_cannot_be_recorded_stops_the_run_with_the_first_error() {
    let failing =
        |seconds, kind| vec![PlannedTry { error: Some(kind), ..PlannedTry::new(seconds, 0.0, End::Answered) }];
    let attempts = ScriptedTries::new(0.0, vec![failing(2, FailureKind::Store), failing(9, FailureKind::Internal)]);
    let ran = run(&attempts, TERMS, &CancellationToken::new()).await;
    assert_eq!(ran.outcome.unwrap_err().kind, FailureKind::Store);
    assert_eq!((ran.kept.len(), ran.seconds), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_full_stops_the_run() {
    let attempts = ScriptedTries::new(0.0, vec![vec![PlannedTry::new(1, 0.0, End::Answered)]; 5]);
    let (events, cancel) = (EventLog::default(), CancellationToken::new());
    let keep = |_: &[&AttemptRecord]| Err(Error::store("full"));
    let ended =
        execute(attempts.clone(), attempts.jobs(), SchedulingLimits { jobs: 1, ..TERMS }, keep, &events, &cancel).await;
    assert_eq!(ended.unwrap_err().kind, FailureKind::Store);
    // An attempt that is not on disk is not reported.
    assert_eq!((attempts.lock_seen().begun.iter().sum::<usize>(), events.finished()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn stopping_a_run_keeps_finished_attempts() {
    let attempts = ScriptedTries::new(
        0.0,
        vec![
            vec![PlannedTry::new(1, 0.25, End::Answered)],
            vec![PlannedTry::new(60, 0.5, End::Answered)],
            vec![PlannedTry::new(60, 0.0, End::Answered)],
            vec![PlannedTry::new(60, 0.0, End::Answered)],
        ],
    );
    let cancel = CancellationToken::new();
    let stop = async {
        sleep(Duration::from_secs(10)).await;
        cancel.cancel();
    };
    let (ran, ()) = tokio::join!(run(&attempts, TERMS, &cancel), stop);
    assert_eq!(ran.outcome.unwrap(), RunOutcome::Interrupted);
    // One attempt had ended. Of the two running attempts, one had spent something, so its cost is recorded.
    let kept: Vec<_> = ran.kept.iter().map(|(sample, end, cost)| (sample.as_str(), *end, *cost)).collect();
    assert_eq!(kept, [("p_0", End::Answered, 0.25), ("p_1", End::Cancelled, 0.25)]);
    assert_eq!((ran.events.finished(), ran.seconds), (1, 10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_never_spends_more_than_it_may(
        attempts in vec((0_u64..20, 0.0..1.0_f64, 0_usize..4), 1..20),
        jobs in 1_usize..6,
        max_cost in 0.5..8.0_f64,
        spent in 0.0..2.0_f64,
    ) {
        let ends = [End::Answered, End::CostLimit, End::GaveUp, End::SandboxLost];
        let tries = attempts.iter().map(|&(seconds, cost, end)| vec![PlannedTry::new(seconds, cost, ends[end])]).collect();
        let scripted = ScriptedTries::new(1.0, tries);
        let terms = SchedulingLimits { jobs, tries: 2, max_cost: Some(max_cost), spent };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let ran = runtime.block_on(run(&scripted, terms, &CancellationToken::new()));
        let seen = scripted.lock_seen();
        prop_assert!(seen.most_spent == 0.0 || spent + seen.most_spent <= max_cost + 1e-9, "{}", seen.most_spent);
        prop_assert!(seen.most_running <= jobs);
        let outcome = ran.outcome.unwrap();
        // The run ends by its cost limit if and only if attempts remain and the budget of one more would exceed the
        // limit.
        prop_assert_eq!(outcome == RunOutcome::CostLimit, spent + seen.spent + 1.0 > max_cost + 1e-9 && {
            let finished = ran.events.finished();
            finished < attempts.len()
        });
    }
}
