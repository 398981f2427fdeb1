//! Limits and spending of an attempt.

pub(super) mod account;
pub(super) mod live_usage;

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{End, LiveUsage};
use crate::model::ledger::PayerLedger;
use crate::model::{QueryFailed, Reply, Usage};

/// Limits on the steps, time, money and tokens of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Number of steps; a step is one reply of the model.
    pub steps: u32,
    /// Seconds of tool time. Time spent waiting for the model is not included.
    pub seconds: f64,
    /// Dollars.
    pub cost: f64,
    /// Tokens read and written; `None` for no limit.
    pub tokens: Option<u64>,
}

impl Default for Limits {
    /// Returns the limits of the original benchmark: 50 steps, 30 minutes, $1.
    fn default() -> Self {
        Self { steps: 50, seconds: 1800.0, cost: 1.0, tokens: None }
    }
}

/// Returns the default time limit of one command under these limits. The model may ask for another limit.
#[must_use]
pub fn command_limit(limits: &Limits) -> Duration {
    Duration::try_from_secs_f64((limits.seconds / 3.0).clamp(10.0, 300.0).round()).unwrap_or(Duration::from_mins(5))
}

/// Spending of an attempt, and its limits.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: Limits,
    /// Totals of steps, time, money and tokens that the attempt may reach at present. Equal to `limits` unless
    /// [`Self::share`] has allowed only a share of the limits.
    until: Limits,
    /// The current share of `limits`; all of them unless [`Self::share`] has divided them.
    share: Limits,
    /// Steps so far.
    pub steps: u32,
    /// Model calls so far, including failed calls and calls made by tools.
    pub calls: u32,
    /// Replies so far that were reused from an earlier run.
    pub cached_replies: u32,
    /// Requests of an external agent so far that the gateway could not pass on.
    pub refused_requests: u32,
    /// Replies so far with calls that could not be carried out.
    pub format_errors: u32,
    /// Tool time so far.
    pub tool_time: Duration,
    /// Time spent waiting for the model.
    pub model_time: Duration,
    /// Tokens so far.
    pub usage: Usage,
    /// Dollars so far.
    pub cost: f64,
    /// Dollars and tokens of the last step. The next step will hardly cost less, because its conversation is longer.
    last: (f64, u64),
    /// Number of calls in progress, and the maximum dollars that they can cost together.
    under_way: (u32, f64),
    tab: Option<PayerLedger>,
    /// Receives steps and cost, to show progress to the user.
    watched: Option<Arc<LiveUsage>>,
}

impl Budget {
    /// Creates a budget of which nothing is spent.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            until: limits,
            share: limits,
            steps: 0,
            calls: 0,
            cached_replies: 0,
            refused_requests: 0,
            format_errors: 0,
            tool_time: Duration::ZERO,
            model_time: Duration::ZERO,
            usage: Usage::default(),
            cost: 0.0,
            last: (0.0, 0),
            under_way: (0, 0.0),
            tab: None,
            watched: None,
        }
    }

    /// Same as [`Self::new`], for an attempt whose calls are written to a run's ledger.
    #[must_use]
    pub fn with_tab(limits: Limits, tab: Option<PayerLedger>) -> Self {
        Self { tab, ..Self::new(limits) }
    }

    /// Reports steps and cost to `so_far` from now on.
    pub fn watch(&mut self, so_far: Arc<LiveUsage>) {
        self.watched = Some(so_far);
    }

    fn publish_usage(&self) {
        if let Some(watched) = &self.watched {
            watched.set(self.steps, self.cost);
        }
    }

    /// Returns the ledger that the attempt's calls are written to; `None` outside a run.
    #[must_use]
    pub const fn tab(&self) -> Option<&PayerLedger> {
        self.tab.as_ref()
    }

    /// Remaining dollars, minus the maximum cost of calls in progress.
    #[must_use]
    pub const fn money_left(&self) -> f64 {
        (self.until.cost - self.cost - self.under_way.1).max(0.0)
    }

    /// The limits of the whole attempt.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Allows only `1 / parts` of the attempt's limits to be used from now on, and returns this share. What was left of
    /// an earlier share is not added. The limits of the whole attempt still hold.
    pub fn share(&mut self, parts: u32) -> Limits {
        let parts = parts.max(1);
        let whole = self.limits;
        let share = Limits {
            steps: (whole.steps / parts).max(1),
            seconds: whole.seconds / f64::from(parts),
            cost: whole.cost / f64::from(parts),
            tokens: whole.tokens.map(|tokens| tokens / u64::from(parts)),
        };
        self.share = share;
        self.until = Limits {
            steps: whole.steps.min(self.steps.saturating_add(share.steps)),
            seconds: whole.seconds.min(self.tool_time.as_secs_f64() + share.seconds),
            cost: whole.cost.min(self.cost + share.cost),
            tokens: whole.tokens.zip(share.tokens).map(|(most, share)| most.min(self.tokens().saturating_add(share))),
        };
        share
    }

    /// Remaining tool time, which is also the maximum for the next command.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        Duration::try_from_secs_f64(self.until.seconds).unwrap_or(Duration::MAX).saturating_sub(self.tool_time)
    }

    /// Default time limit of one command: a third of the attempt's time, but at least 10 seconds and at most 5 minutes.
    #[must_use]
    pub fn command_limit(&self) -> Duration {
        command_limit(&self.limits)
    }

    /// Remaining steps, minus calls in progress.
    #[must_use]
    pub const fn steps_left(&self) -> u32 {
        self.until.steps.saturating_sub(self.steps).saturating_sub(self.under_way.0)
    }

    /// Tokens read and written so far.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.usage.input.saturating_add(self.usage.output)
    }

    /// Remaining tokens, capped at `u32::MAX`; `None` for no limit.
    #[must_use]
    pub fn tokens_left(&self) -> Option<u32> {
        let left = self.until.tokens?.saturating_sub(self.tokens());
        Some(u32::try_from(left).unwrap_or(u32::MAX))
    }

    /// Counts a reply as a step, and adds its cost.
    pub fn charge_reply(&mut self, reply: &Reply, waited: Duration) {
        self.charge_step();
        self.charge_call(reply, waited);
        self.last = (reply.cost, reply.usage.input.saturating_add(reply.usage.output));
    }

    /// Counts a step without a model call, such as a step of a script.
    pub fn charge_step(&mut self) {
        self.steps += 1;
        self.publish_usage();
    }

    /// Counts a model call that is not a step, such as one made by a tool.
    pub fn charge_call(&mut self, reply: &Reply, waited: Duration) {
        self.calls += 1;
        self.cached_replies += u32::from(reply.cached);
        self.usage += reply.usage;
        self.cost += reply.cost;
        self.model_time += waited;
        self.publish_usage();
    }

    /// Counts a failed model call, which may have cost money.
    pub fn charge_failed(&mut self, failed: &QueryFailed, waited: Duration) {
        self.calls += 1;
        self.usage += failed.usage;
        self.cost += failed.cost;
        self.model_time += waited;
        self.publish_usage();
    }

    /// The number of the next call.
    #[must_use]
    pub const fn next_call(&self) -> u32 {
        self.calls + self.under_way.0
    }

    /// Reserves the maximum cost of a call in progress until [`Self::release`], because other calls may start
    /// meanwhile.
    pub fn hold(&mut self, most: f64) {
        self.under_way = (self.under_way.0 + 1, self.under_way.1 + most);
    }

    /// Releases a reservation made by [`Self::hold`].
    pub fn release(&mut self, most: f64) {
        let calls = self.under_way.0.saturating_sub(1);
        self.under_way = (calls, if calls == 0 { 0.0 } else { (self.under_way.1 - most).max(0.0) });
    }

    /// Adds tool time.
    pub fn charge_time(&mut self, took: Duration) {
        self.tool_time += took;
    }

    /// Returns the first limit that is used up, in the order time, money, tokens, steps.
    #[must_use]
    pub fn exceeded(&self) -> Option<End> {
        if self.time_left().is_zero() { Some(End::TimeLimit) } else { self.no_step_left() }
    }

    /// Returns the limit that forbids another step, if any: money, tokens or steps. Time is not checked, because a
    /// reply takes no tool time.
    #[must_use]
    pub fn no_step_left(&self) -> Option<End> {
        if self.steps_left() == 0 { self.no_call_left().or(Some(End::StepLimit)) } else { self.no_call_left() }
    }

    /// Returns the limit that forbids another model call, if any: money or tokens.
    #[must_use]
    pub fn no_call_left(&self) -> Option<End> {
        // With a limit of $0, a model that costs nothing may still be called.
        if self.cost >= self.until.cost && self.cost > 0.0 {
            Some(End::CostLimit)
        } else if self.until.tokens.is_some_and(|most| self.tokens() >= most) {
            Some(End::TokenLimit)
        } else {
            None
        }
    }

    /// Returns the limit that makes the next step the last one, if any: the time is used up, one step is left, or money
    /// or tokens may not be enough for two more steps (less than a tenth of the current share is left, or less than
    /// twice the last step's cost).
    #[must_use]
    pub fn last_step(&self) -> Option<End> {
        let (last_cost, last_tokens) = self.last;
        let money_left = self.until.cost - self.cost;
        if self.time_left().is_zero() {
            Some(End::TimeLimit)
        } else if self.cost > 0.0 && money_left < (self.share.cost / 10.0).max(2.0 * last_cost) {
            Some(End::CostLimit)
        } else if self.until.tokens.zip(self.share.tokens).is_some_and(|(most, share)| {
            self.tokens() > 0 && most.saturating_sub(self.tokens()) < (share / 10).max(last_tokens.saturating_mul(2))
        }) {
            Some(End::TokenLimit)
        } else if self.steps_left() == 1 {
            Some(End::StepLimit)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelError;

    fn spent(limits: Limits, cost: f64, tokens: u64) -> Budget {
        let mut budget = Budget::new(limits);
        let usage = Usage { input: tokens, ..Usage::default() };
        budget.charge_reply(&Reply { usage, cost, ..Reply::default() }, Duration::from_secs(9));
        budget
    }

    #[test]
    fn waiting_for_the_model_is_recorded_apart_from_tool_time() {
        let mut budget = spent(Limits::default(), 0.1, 10);
        budget.charge_time(Duration::from_millis(1500));
        assert_eq!(budget.model_time, Duration::from_secs(9));
        assert_eq!(budget.time_left(), Duration::from_secs_f64(1798.5));
        assert_eq!((budget.steps, budget.calls), (1, 1));
    }

    #[test]
    fn a_call_without_a_reply_is_charged_but_not_counted_as_a_step() {
        let mut budget = spent(Limits { cost: 0.5, ..Limits::default() }, 0.1, 10);
        let usage = Usage { input: 7, ..Usage::default() };
        let failed = QueryFailed { error: ModelError::Unavailable("503".into()), usage, unanswered: 0, cost: 0.4 };
        budget.charge_failed(&failed, Duration::from_secs(1));
        assert_eq!((budget.steps, budget.calls, budget.tokens()), (1, 2, 17));
        assert_eq!(budget.model_time, Duration::from_secs(10));
        assert_eq!(budget.no_step_left(), Some(End::CostLimit));
    }

    #[test]
    fn with_a_limit_of_0_dollars_only_a_free_model_may_be_called() {
        let limits = Limits { cost: 0.0, ..Limits::default() };
        assert_eq!(spent(limits, 0.0, 10).no_step_left(), None);
        assert_eq!(spent(limits, 0.01, 10).no_step_left(), Some(End::CostLimit));
    }

    #[test]
    fn the_next_step_is_the_last_if_money_or_tokens_may_not_suffice_for_two_steps() {
        let limits = Limits::default();
        assert_eq!(spent(limits, 0.2, 10).last_step(), None);
        assert_eq!(spent(limits, 0.4, 10).last_step(), Some(End::CostLimit), "0.6 left, the next two may cost 0.8");
        let tokens = Limits { tokens: Some(1000), ..limits };
        assert_eq!(spent(tokens, 0.0, 300).last_step(), None);
        assert_eq!(spent(tokens, 0.0, 340).last_step(), Some(End::TokenLimit));
        assert_eq!(spent(tokens, 0.0, 1000).no_step_left(), Some(End::TokenLimit));
    }

    #[test]
    fn the_last_step_of_a_share_is_measured_by_the_share() {
        let limits = Limits { steps: 100, cost: 1.0, tokens: Some(100_000), ..Limits::default() };
        let mut budget = Budget::new(limits);
        let usage = Usage { input: 100, ..Usage::default() };
        let reply = Reply { usage, cost: 0.001, ..Reply::default() };
        for share in 0..10 {
            budget.share(10);
            for step in 0..10 {
                let expected = (step == 9).then_some(End::StepLimit);
                assert_eq!(budget.last_step(), expected, "step {step} of share {share}");
                budget.charge_reply(&reply, Duration::ZERO);
            }
        }
        // A share of $0.1 has less than a tenth left after $0.091.
        let mut budget = Budget::new(limits);
        budget.share(10);
        budget.charge_reply(&Reply { cost: 0.091, ..Reply::default() }, Duration::ZERO);
        budget.charge_reply(&Reply::default(), Duration::ZERO);
        assert_eq!(budget.last_step(), Some(End::CostLimit));
    }

    #[test]
    fn a_share_is_a_part_of_the_remaining_budget_and_never_exceeds_it() {
        let limits = Limits { steps: 10, seconds: 100.0, cost: 1.0, tokens: Some(1000) };
        let mut budget = Budget::new(limits);
        assert_eq!(budget.share(4), Limits { steps: 2, seconds: 25.0, cost: 0.25, tokens: Some(250) });
        budget.charge_time(Duration::from_secs(10));
        budget.charge_step();
        assert_eq!((budget.time_left(), budget.steps_left()), (Duration::from_secs(15), 1));
        budget.share(4);
        assert_eq!((budget.time_left(), budget.steps_left()), (Duration::from_secs(25), 2));
        budget.charge_time(Duration::from_secs(80));
        budget.share(4);
        assert_eq!(budget.time_left(), Duration::from_secs(10), "no more than is left of the whole");
        assert_eq!(Budget::new(limits).share(100).steps, 1);
        let usage = Usage { input: 249, ..Usage::default() };
        budget.share(4);
        budget.charge_reply(&Reply { usage, ..Reply::default() }, Duration::ZERO);
        assert_eq!(budget.no_call_left(), None);
        budget.usage.input += 1;
        assert_eq!(budget.no_call_left(), Some(End::TokenLimit));
    }

    #[test]
    fn many_short_actions_use_up_the_tool_time() {
        let mut budget = Budget::new(Limits { seconds: 0.01, ..Limits::default() });
        for _ in 0..20 {
            budget.charge_time(Duration::from_micros(600));
        }
        assert_eq!(budget.exceeded(), Some(End::TimeLimit));
        assert_eq!(budget.last_step(), Some(End::TimeLimit));
        assert_eq!(budget.no_step_left(), None, "a last reply costs no tool time");
    }
}
