//! The meter of an external agent's model calls: it calls the model, charges the budget, records the calls, and stops
//! an agent that keeps calling after its budget is used up.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::agent::budget::account::{Account, Asker, NotAsked};
use crate::agent::trajectory::request_record::RequestRecord;
use crate::agent::{AttemptEnd, Budget, End, Event, Trajectory};
use crate::model::ask::{self, Caller, MadeCall, ReservedCall};
use crate::model::gateway::{AgentCall, AnsweredCall, GatewayRequest, Refusal, RefusalKind};
use crate::model::ledger::PayerLedger;
use crate::model::{
    Effort, Message, Model, ModelError, Pieces, QueryFailed, Quote, Reply, Request, Sampling, Thought, ToolCall,
    plain_effort,
};

/// Number of refused calls at which the agent is stopped. Calls are refused once a limit of the attempt is reached.
const REFUSALS: u32 = 5;
/// Consecutive failed calls after which the agent is stopped. Failed calls are recorded but are not steps, so the step
/// limit does not bound them.
const FAILURES: u32 = 10;
/// Time that the agent has to write an answer after the first refused call, that is, once its budget is used up.
const LAST_WORDS: Duration = Duration::from_mins(1);
/// Maximum wait for the replies of calls in progress when the run is stopped. Without its reply, a call's cost is
/// unknown.
const LAST_REPLY: Duration = Duration::from_secs(3);
/// Maximum number of calls in progress; further calls wait.
const SIDE_BY_SIDE: usize = 8;
/// Maximum number of unreadable requests that are recorded. No other limit bounds them, because they cost nothing.
const UNREADABLE: u32 = 50;

/// Maximum number of different parts of requests, such as options, that are recorded as not passed on to the model.
const NOT_PASSED: usize = 100;

/// A finished call.
struct FinishedCall {
    ask: AgentCall,
    begun: ReservedCall,
    done: MadeCall,
}

/// Answers and charges the model calls of one attempt.
pub(super) struct Meter<'a> {
    pub(super) model: &'a dyn Model,
    pub(super) budget: &'a mut Budget,
    pub(super) trajectory: &'a mut Trajectory,
    pub(super) sampling: &'a Sampling,
    /// Cancelling this token stops the program.
    pub(super) stop: CancellationToken,
    begun: Instant,
    /// Time that the program has spent waiting for the model. It does not count towards the attempt's tool time.
    pub(super) waited: Duration,
    /// Start of the current wait for the model; `None` if no call is in progress.
    waiting: Option<Instant>,
    /// Time for which processes outside the sandbox have held up the program, as reported by the sandbox.
    starved: watch::Receiver<Duration>,
    /// The last report taken from `starved`, and the program's time without waits for the model at that moment.
    reported: (Duration, Duration),
    /// Time for which processes outside the sandbox have held up the program while it did not wait for the model. It
    /// does not count towards the attempt's tool time.
    held_up: Duration,
    /// Calls that wait for other calls to finish, because money is short or too many calls are in progress.
    queue: VecDeque<AgentCall>,
    /// Descriptions of the parts of requests, such as options, that were not passed on to the model.
    not_passed: HashSet<String>,
    /// Reasoning of earlier replies with tool calls. If the program leaves the reasoning out of a later request, the
    /// reasoning is taken from this map and put back. Each reply is stored twice, under the id of its first tool call
    /// and under the contents of that call, because some programs change ids. The stored value is the call's original
    /// id and the reasoning.
    thoughts: HashMap<String, (String, Vec<Thought>)>,
    record: RequestRecord,
    refusals: u32,
    first_refusal: Option<Instant>,
    /// Consecutive failed calls so far.
    failures: u32,
    /// Cancelled when the run is stopped.
    cancel: CancellationToken,
    /// Number of unreadable requests, and the error of the last one.
    pub(super) unreadable: (u32, String),
    /// The limit that the attempt had reached when a call was refused; `None` if no call was refused.
    pub(super) refused: Option<End>,
    /// How the attempt ends if the program exits now without an answer: with the error of the last model call. `None`
    /// if that call did not fail.
    pub(super) failed: Option<AttemptEnd>,
    /// Why the program was stopped; `None` if it was not.
    pub(super) stopped: Option<AttemptEnd>,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        model: &'a dyn Model,
        budget: &'a mut Budget,
        trajectory: &'a mut Trajectory,
        sampling: &'a Sampling,
        stop: CancellationToken,
        cancel: CancellationToken,
        starved: watch::Receiver<Duration>,
    ) -> Self {
        Self {
            model,
            budget,
            trajectory,
            sampling,
            stop,
            begun: Instant::now(),
            waited: Duration::ZERO,
            waiting: None,
            starved,
            reported: (Duration::ZERO, Duration::ZERO),
            held_up: Duration::ZERO,
            queue: VecDeque::new(),
            not_passed: HashSet::new(),
            thoughts: HashMap::new(),
            record: RequestRecord::default(),
            refusals: 0,
            first_refusal: None,
            failures: 0,
            cancel,
            unreadable: (0, String::new()),
            refused: None,
            failed: None,
            stopped: None,
        }
    }

    /// Answers calls until the program has ended. Calls may run in parallel; before a call begins, its cost is reserved
    /// in the budget. At the end, waits for the calls in progress, because they are paid for and every paid call must
    /// be recorded.
    pub(super) async fn serve(&mut self, mut asked: mpsc::Receiver<GatewayRequest>, ended: &CancellationToken) {
        let mut under_way: FuturesUnordered<BoxFuture<'a, FinishedCall>> = FuturesUnordered::new();
        loop {
            if ended.is_cancelled() {
                self.queue.clear();
            }
            self.start_waiting(&mut under_way);
            let is_idle = under_way.is_empty();
            let deadline = self.deadline();
            tokio::select! {
                biased;
                Some(call) = under_way.next() => self.finish(call, under_way.is_empty()),
                Ok(()) = self.starved.changed() => self.note_starved(),
                () = ended.cancelled(), if is_idle => {
                    // The program has ended, so nobody needs an answer to the remaining requests. Only record those
                    // that the gateway refused.
                    while let Ok(asked) = asked.try_recv() {
                        if let GatewayRequest::Refused(refusal) = asked {
                            self.unreadable(refusal);
                        }
                    }
                    return;
                }
                () = tokio::time::sleep_until(deadline.into()), if self.stopped.is_none() && is_idle => {
                    self.out_of_time();
                }
                Some(asked) = asked.recv(), if self.queue.len() < SIDE_BY_SIDE && !ended.is_cancelled() => match asked {
                    GatewayRequest::Call(ask) => self.queue.push_back(*ask),
                    GatewayRequest::Refused(refusal) => self.unreadable(refusal),
                },
            }
        }
    }

    /// Starts queued calls, within the limits of money and [`SIDE_BY_SIDE`].
    fn start_waiting(&mut self, under_way: &mut FuturesUnordered<BoxFuture<'a, FinishedCall>>) {
        while under_way.len() < SIDE_BY_SIDE
            && let Some(mut ask) = self.queue.pop_front()
        {
            if ask.answer.is_closed() {
                // The program disconnected while the call was queued.
                continue;
            }
            if !under_way.is_empty() && !self.fits(&ask) {
                // Try again when a call in progress has finished, because the money reserved for that call may then be
                // available.
                self.queue.push_front(ask);
                return;
            }
            match self.begin_call(&mut ask) {
                Ok(begun) => {
                    self.waiting.get_or_insert_with(Instant::now);
                    let (model, cancel) = (self.model, self.cancel.clone());
                    under_way.push(Box::pin(async move {
                        let done = ask::run(model, &ask.request, ask.pieces.as_ref(), given_up(&cancel)).await;
                        FinishedCall { ask, begun, done }
                    }));
                }
                Err(refusal) => {
                    let _ = ask.answer.send(Err(refusal));
                }
            }
        }
    }

    /// Whether the call `ask` can start while other calls are in progress: the budget must have enough money and a step
    /// left for it. With a token limit, no second call can start, because the tokens of the call in progress are not
    /// known yet.
    fn fits(&self, ask: &AgentCall) -> bool {
        let quote = self.model.quote(&ask.request);
        let Ok(affordable) = quote.affordable(self.budget.money_left()) else { return false };
        let most = [ask.request.sampling.max_tokens, self.sampling.max_tokens].into_iter().flatten().min();
        // If the call started now, the money reserved for other calls would cut its reply short; let it wait instead.
        let is_short = most.zip(affordable).is_some_and(|(most, affordable)| affordable < most);
        !is_short && self.budget.steps_left() > 0 && self.budget.tokens_left().is_none()
    }

    fn begin_call(&mut self, ask: &mut AgentCall) -> Result<ReservedCall, Refusal> {
        self.put_thoughts_back(&mut ask.request.messages);
        let mut left_out = std::mem::take(&mut ask.left_out);
        self.leave_to_the_run(&mut ask.request.sampling, &mut left_out);
        left_out.extend(self.model.leaves_out(&ask.request));
        let begun = ask::begin(self.model, &mut ask.request, self)?;
        for what in left_out {
            if self.not_passed.len() < NOT_PASSED && self.not_passed.insert(what.clone()) {
                self.record_event(&Event::NotPassed { what });
            }
        }
        self.budget.hold(begun.most);
        Ok(begun)
    }

    fn finish(&mut self, call: FinishedCall, is_last: bool) {
        let FinishedCall { ask, begun, done } = call;
        self.budget.release(begun.most);
        if is_last && let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        // Record the request directly before its reply, even if other requests arrived in between.
        self.record.write(&ask.request, self.trajectory);
        let most = [ask.request.sampling.max_tokens, ask.request.affordable].into_iter().flatten().min();
        let is_begun = ask.pieces.as_ref().is_some_and(Pieces::are_passed_on);
        let answered = match ask::finish(&begun, done, self) {
            Ok(answered) => self.answered(answered.outcome, most, is_begun),
            Err(refusal) => Err(refusal),
        };
        // The reply is charged even if the agent no longer waits for it.
        let _ = ask.answer.send(answered);
    }

    /// Converts the outcome of a model call to what the agent receives. `is_begun` is whether the agent has already
    /// received the beginning of the reply.
    fn answered(
        &mut self,
        outcome: Result<Reply, QueryFailed>,
        most: Option<u32>,
        is_begun: bool,
    ) -> Result<AnsweredCall, Refusal> {
        let reply = outcome.map_err(|failed| self.fail(&failed.error, is_begun))?;
        self.failed = None;
        self.failures = 0;
        if let Some(call) = reply.tool_calls.first().filter(|_| !reply.thoughts.is_empty()) {
            let entry = (call.id.clone(), reply.thoughts.clone());
            self.thoughts.insert(content_key(call), entry.clone());
            self.thoughts.insert(call.id.clone(), entry);
        }
        Ok(AnsweredCall { reply, most, refusal: None })
    }

    /// Puts the model's reasoning back into earlier messages, because some providers require the reasoning together
    /// with the results of tool calls.
    fn put_thoughts_back(&self, messages: &mut [Message]) {
        for message in messages.iter_mut().filter(|message| message.thoughts.is_empty()) {
            let Some(call) = message.tool_calls.first() else { continue };
            let kept = self.thoughts.get(&call.id).or_else(|| self.thoughts.get(&content_key(call)));
            let Some((first, thoughts)) = kept else { continue };
            let renamed = |thought: &Thought| match thought {
                Thought::Signature { signature, call_id: Some(id) } if id == first => {
                    Thought::Signature { signature: signature.clone(), call_id: Some(call.id.clone()) }
                }
                other => other.clone(),
            };
            message.thoughts = thoughts.iter().map(renamed).collect();
        }
    }

    fn account(&mut self) -> Account<'_> {
        // The reply's record needs no seed, because the request's record contains it.
        Account { budget: self.budget, trajectory: self.trajectory, asker: Asker::Agent, seed: None }
    }

    /// Tool time used so far.
    pub(super) fn tool_time(&self) -> Duration {
        self.time_without_model().saturating_sub(self.held_up)
    }

    /// Time since the program's start in which it did not wait for the model.
    fn time_without_model(&self) -> Duration {
        let waiting = self.waiting.map_or(Duration::ZERO, |since| since.elapsed());
        self.begun.elapsed().saturating_sub(self.waited).saturating_sub(waiting)
    }

    /// Takes the sandbox's last report of how long other processes have held up the program. Since the previous report,
    /// the program may also have waited for the model. This wait is not part of the tool time, so at most the remaining
    /// time between the two reports is subtracted.
    fn note_starved(&mut self) {
        let (before, time_before) = self.reported;
        let starved = before.max(*self.starved.borrow_and_update());
        let time = self.time_without_model();
        self.held_up += starved.saturating_sub(before).min(time.saturating_sub(time_before));
        self.reported = (starved, time);
    }

    /// Returns the time at which the program is stopped: when its tool time is used up, or [`LAST_WORDS`] after the
    /// first refused call, whichever comes first.
    fn deadline(&self) -> Instant {
        // Used if the time limit is so large that the deadline is not a valid `Instant`. A year is practically no
        // limit.
        let far = self.begun + Duration::from_hours(24 * 365);
        let left = self.budget.time_left().saturating_add(self.waited).saturating_add(self.held_up);
        let time = self.begun.checked_add(left).unwrap_or(far);
        self.first_refusal.map_or(time, |first| time.min(first + LAST_WORDS))
    }

    fn out_of_time(&mut self) {
        let end = if self.tool_time() >= self.budget.time_left() { None } else { self.refused };
        self.stop(end.unwrap_or(End::TimeLimit).into());
    }

    fn stop(&mut self, ended: AttemptEnd) {
        if self.stopped.is_none() {
            self.stopped = Some(ended);
            self.stop.cancel();
        }
    }

    /// Records a request that the gateway refused. Such a request costs nothing and does not count as a call.
    fn unreadable(&mut self, refusal: Refusal) {
        let (count, last) = &mut self.unreadable;
        *count = count.saturating_add(1);
        self.budget.refused_requests = *count;
        last.clone_from(&refusal.message);
        if *count <= UNREADABLE {
            self.record_event(&Event::CallRefused { what: refusal.message });
        }
    }

    /// Refuses a call because a limit is reached. Stops the agent if it has made too many calls after the limit was
    /// reached.
    fn refuse(&mut self, end: End) -> Refusal {
        let what = match end {
            End::DiskLimit => "there is no more room to record what is asked",
            end => end.used_up(),
        };
        let message = format!("{what}: make no further call, and write the answer now");
        self.record_event(&Event::CallRefused { what: message.clone() });
        self.refused = Some(end);
        self.first_refusal.get_or_insert_with(Instant::now);
        self.refusals += 1;
        if self.refusals >= REFUSALS {
            self.stop(end.because(format!("it made {} more calls after reaching its limit", self.refusals)));
        }
        Refusal { why: RefusalKind::Budget, message }
    }

    fn fail(&mut self, error: &ModelError, is_begun: bool) -> Refusal {
        let (why, goes_on) = match error {
            ModelError::ContextLength(_) => (RefusalKind::ContextLength, true),
            ModelError::Refused(_) => (RefusalKind::Filtered, true),
            ModelError::Rejected(_) => (RefusalKind::Invalid, true),
            // Once the agent has received the beginning of a reply, only the agent can retry the call, so let it
            // continue.
            ModelError::Unavailable(_) if is_begun => (RefusalKind::Unavailable, true),
            // Stop the agent: what it does without a model is not what the benchmark measures.
            ModelError::Denied(_) | ModelError::Unavailable(_) | ModelError::Exhausted(_) => {
                (RefusalKind::Closed, false)
            }
        };
        self.failures += 1;
        let ended = AttemptEnd::from(error);
        self.failed = Some(ended.clone());
        if !goes_on || self.failures >= FAILURES {
            self.stop(ended);
        }
        // By these words in the error message, agents recognise that the conversation is too long.
        let prefix = if why == RefusalKind::ContextLength {
            "maximum context length exceeded, prompt is too long: "
        } else {
            ""
        };
        Refusal { why, message: format!("{prefix}{error}") }
    }

    /// Merges the run's sampling settings with the agent's: the run's settings take precedence, the seed is always the
    /// run's, and the reply is limited to the remaining tokens.
    fn sampled(&self, asked: &Sampling) -> Sampling {
        let ours = self.sampling;
        Sampling {
            // No provider accepts a temperature outside of this range. Limit the agent's temperature, because the
            // provider's error would look as if the run were wrong.
            temperature: ours.temperature.or(asked.temperature.map(|asked| asked.clamp(0.0, 2.0))),
            seed: ours.seed.map(|seed| seed.wrapping_add(u64::from(self.budget.next_call()))),
            max_tokens: [ours.max_tokens, asked.max_tokens, self.budget.tokens_left()].into_iter().flatten().min(),
            reasoning_tokens: ours.reasoning_tokens.or(asked.reasoning_tokens),
            effort: ours.effort.or(asked.effort),
            extra_body: ours.extra_body.clone(),
        }
    }

    /// Drops the agent's reasoning settings if the run has reasoning settings of its own or the model accepts none.
    /// Adds a description of the dropped settings to `left_out`.
    fn leave_to_the_run(&self, asked: &mut Sampling, left_out: &mut Vec<String>) {
        let decided = self.sampling.effort.is_some() || self.sampling.reasoning_tokens.is_some();
        asked.effort = asked.effort.map(plain_effort);
        if !decided && self.model.reasons() {
            if asked.effort == Some(Effort::None) && !self.model.takes_effort_none() {
                asked.effort = Some(Effort::Low);
                left_out.push("the effort `none`, which this model is not known to take (`low` instead)".to_owned());
            }
            return;
        }
        let asks = asked.effort.take().is_some() | asked.reasoning_tokens.take().is_some_and(|tokens| tokens > 0);
        if asks {
            let why = if decided { "which the run sets" } else { "which this model is not known to take" };
            left_out.push(format!("how much to reason, {why}"));
        }
    }

    fn record_event(&mut self, event: &Event) {
        self.record.take(event);
        self.trajectory.push(event);
    }
}

impl Caller for Meter<'_> {
    type Refused = Refusal;
    type Kept = ();

    fn begin(&mut self, model: &dyn Model, request: &mut Request) -> Result<Quote, Refusal> {
        if self.stopped.is_some() || self.cancel.is_cancelled() {
            return Err(over());
        }
        let quote = match self.account().begin(model, request) {
            Ok(quote) => quote,
            Err(NotAsked::Limit(end)) => return Err(self.refuse(end)),
            Err(unrecorded @ NotAsked::Unrecorded(_)) => {
                self.stop(unrecorded.into());
                return Err(over());
            }
        };
        request.sampling = self.sampled(&request.sampling);
        if self.record.reserve(request) { Ok(quote) } else { Err(self.refuse(End::DiskLimit)) }
    }

    fn keep(&mut self, outcome: &Result<Reply, QueryFailed>, waited: Duration) -> Result<(), Refusal> {
        let event = self.account().charge(outcome, waited);
        self.record_event(&event);
        Ok(())
    }

    fn tab(&self) -> Option<PayerLedger> {
        self.budget.tab().cloned()
    }

    fn unwritten(&mut self, error: io::Error) -> Refusal {
        self.stop(NotAsked::Unrecorded(error.to_string()).into());
        over()
    }
}

/// Returns a key made of a tool call's contents. The key never equals a call's id, because it contains a line break,
/// which no provider uses in ids.
fn content_key(call: &ToolCall) -> String {
    format!("{}\n{}", call.name, call.arguments)
}

fn over() -> Refusal {
    Refusal { why: RefusalKind::Closed, message: "the attempt is over".into() }
}

/// Waits until the run has been stopped and [`LAST_REPLY`] is over, the time in which calls in progress may still
/// finish. Returns the error for a call that has not finished.
async fn given_up(cancel: &CancellationToken) -> QueryFailed {
    cancel.cancelled().await;
    tokio::time::sleep(LAST_REPLY).await;
    let what = "the run was stopped during this call; what it cost is unknown, and the most that it may have cost is \
                counted against `--max-cost`";
    ModelError::Unavailable(what.to_owned()).into()
}
