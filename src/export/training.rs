//! Model calls as a table for training: one row per reply, with token ids, log-probabilities and the attempt's reward,
//! for every agent, including command-line agents, whose model calls go through the gateway.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::ExportSource;
use super::column::ExportTable;
use super::table::{TableFormat, save};
use crate::agent::{CallTokens, Event, RecentTokens, TimedEvent, WholeTokens, conversation};
use crate::error::Result;
use crate::run::AttemptRecord;

/// A row of the table of turns: one reply of the model to the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct TurnRow {
    /// The run's name.
    pub run: String,
    /// The agent's label.
    pub agent: String,
    /// The model's name, null for agents without one.
    pub model: Option<String>,
    /// The kind of task.
    pub family: String,
    /// The paper's id.
    pub paper: String,
    /// The sample's id.
    pub sample: String,
    /// Number of masked functions.
    pub n: u64,
    /// Number of the attempt at its sample, from 0.
    pub attempt: u64,
    /// Whether pass rates use the attempt's record.
    pub counts: bool,
    /// Number of the reply within the attempt, from 1.
    pub step: u64,
    /// Whether this reply is the last one of the attempt.
    pub last: bool,
    /// Text of the reply.
    pub text: String,
    /// Reasoning that the server returned separately.
    pub reasoning: Option<String>,
    /// The reply's tool calls as JSON, null if the reply has none.
    pub tool_calls: Option<String>,
    /// Why the reply ended, in the server's words.
    pub finish: Option<String>,
    /// Version of the model's weights, or else of the server's set-up, as reported by the server.
    pub weights: Option<String>,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Cost in dollars.
    pub cost: f64,
    /// Seconds waited for the reply.
    pub seconds: f64,
    /// Ids of the prompt's tokens, null if the server did not return them.
    pub prompt_ids: Option<Vec<i64>>,
    /// For each id of the prompt, whether the model wrote it in an earlier reply of the attempt.
    pub prompt_written: Option<Vec<bool>>,
    /// Ids of the reply's tokens, null if the server did not return them.
    pub completion_ids: Option<Vec<i64>>,
    /// Log-probabilities of the reply's tokens, null if the server did not return them.
    pub logprobs: Option<Vec<f64>>,
    /// Number of the earlier step whose prompt and reply share the longest beginning with this prompt, null if none.
    pub continues: Option<u64>,
    /// Number of leading token ids that the prompt shares with the step in `continues`, null if ids are unknown.
    pub kept_tokens: Option<u64>,
    /// Number of token ids of the step in `continues` that this prompt does not repeat, null if ids are unknown.
    pub dropped_tokens: Option<u64>,
    /// Why `dropped_tokens` is not 0: the agent changed the conversation, or the server tokenised it differently.
    pub dropped_by: Option<String>,
    /// 1 if the attempt passes, 0 if not; null if the attempt was lost or stopped.
    pub reward: Option<f64>,
    /// Completed share of the task from 0 to 1, in families (kinds of task) with partial credit.
    pub score: Option<f64>,
}

/// A conversation, as Harbor's `RolloutDetail`: the prompt of each call begins with all token ids of the previous call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Rollout {
    prompt_token_ids: Vec<Vec<u32>>,
    completion_token_ids: Vec<Vec<u32>>,
    logprobs: Vec<Vec<f64>>,
    extra: Value,
}

/// Writes the table into the folder `path` as `turns.parquet`, or into the file `path` if it ends in `.parquet` or
/// `.jsonl`. Returns the written file and notes for the user: which prompts do not continue an earlier prompt and its
/// reply, and how many replies have no prompt ids.
///
/// # Errors
/// Kind `Store` if a record is gone; kind `Machine` if the file cannot be written.
pub fn export(source: &ExportSource, path: &Path) -> Result<(Vec<PathBuf>, Vec<String>)> {
    source.require_attempts()?;
    let format = match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("jsonl") => TableFormat::Jsonl,
        _ => TableFormat::Parquet,
    };
    let is_file = path.extension().is_some_and(|given| given == format.extension());
    let file = if is_file { path.to_owned() } else { path.join("turns.parquet") };
    let gaps = std::cell::RefCell::new(Gaps::default());
    let rows = source.attempts().flat_map(|brief| match source.whole(brief) {
        Ok(record) => {
            let rows = rows(&source.run.run, &record, &source.lines(&record));
            gaps.borrow_mut().add(&rows);
            rows.into_iter().map(Ok).collect()
        }
        Err(error) => vec![Err(error)],
    });
    let table = ExportTable { name: "turns", rows: Box::new(rows), measures: Vec::new() };
    let written = save(table, format, &file)?;
    Ok((vec![written], gaps.into_inner().notes()))
}

/// Counts of replies, and notes on the first replies whose prompt does not continue an earlier one.
#[derive(Default)]
struct Gaps {
    replies: usize,
    with_ids: usize,
    count: usize,
    first: Vec<String>,
}

/// Maximum number of replies that the notes describe one by one because their prompt does not continue an earlier one.
/// Further replies are only counted.
const NAMED: usize = 5;

impl Gaps {
    fn add(&mut self, rows: &[TurnRow]) {
        self.replies += rows.len();
        for row in rows.iter().filter(|row| row.prompt_ids.is_some()) {
            self.with_ids += 1;
            let (Some(dropped), Some(by)) = (row.dropped_tokens.filter(|dropped| *dropped > 0), &row.dropped_by) else {
                continue;
            };
            self.count += 1;
            if self.first.len() < NAMED {
                let TurnRow { agent, sample, attempt, step, .. } = row;
                let (of, kept) = (row.continues.unwrap_or_default(), row.kept_tokens.unwrap_or_default());
                self.first.push(format!(
                    "step {step} of attempt {attempt} of `{agent}` at `{sample}` does not continue step {of}: from token \
                     {kept} on, {dropped} are not repeated ({by})"
                ));
            }
        }
    }

    fn notes(self) -> Vec<String> {
        let mut notes = self.first;
        if self.count > notes.len() {
            notes.push(format!("{} more steps do not continue an earlier one, either", self.count - notes.len()));
        }
        let without = self.replies - self.with_ids;
        if without > 0 {
            let replies = self.replies;
            notes.push(format!(
                "{without} of {replies} replies have no prompt ids: the server was not asked for them (`--describe \
                 tokens=true`) or returned none"
            ));
        }
        notes
    }
}

/// Returns the rows of an attempt.
fn rows(run: &str, record: &AttemptRecord, lines: &[TimedEvent]) -> Vec<TurnRow> {
    let is_lost = record.is_infrastructure();
    let about = TurnRow {
        run: run.to_owned(),
        agent: record.agent.clone(),
        model: record.model.clone(),
        family: record.family.clone(),
        paper: record.paper.clone(),
        sample: record.sample.clone(),
        n: record.n as u64,
        attempt: u64::from(record.attempt),
        counts: !is_lost,
        reward: (!is_lost).then(|| f64::from(u8::from(record.pass))),
        score: record.score(),
        ..TurnRow::default()
    };
    let mut rows: Vec<TurnRow> = replies(lines)
        .into_iter()
        .filter_map(|reply| {
            let Event::Reply { step, text, reasoning, tool_calls, finish, weights, usage, cost, seconds, .. } =
                reply.event
            else {
                return None;
            };
            let tokens = reply.tokens.cloned().unwrap_or_default();
            let has_prompt = !reply.whole.prompt.is_empty();
            let known = |count: usize| has_prompt.then_some(count as u64);
            Some(TurnRow {
                step: u64::from(*step),
                text: text.clone(),
                reasoning: reasoning.clone(),
                tool_calls: (!tool_calls.is_empty()).then(|| json!(tool_calls).to_string()),
                finish: finish.clone(),
                weights: weights.clone(),
                input_tokens: usage.input,
                output_tokens: usage.output,
                cost: *cost,
                seconds: *seconds,
                prompt_ids: has_prompt.then(|| wide(&reply.whole.prompt)),
                prompt_written: has_prompt.then(|| reply.whole.written.clone()),
                completion_ids: (!tokens.completion.is_empty()).then(|| wide(&tokens.completion)),
                continues: tokens.after.filter(|_| has_prompt).map(u64::from),
                kept_tokens: known(tokens.kept),
                dropped_tokens: known(tokens.dropped),
                dropped_by: (tokens.dropped > 0).then(|| reply.rewritten.to_owned()),
                logprobs: (!tokens.logprobs.is_empty()).then_some(tokens.logprobs),
                ..about.clone()
            })
        })
        .collect();
    if let Some(last) = rows.last_mut() {
        last.last = true;
    }
    rows
}

fn wide(ids: &[u32]) -> Vec<i64> {
    ids.iter().copied().map(i64::from).collect()
}

/// A reply with its whole prompt.
struct TrainingReply<'a> {
    event: &'a Event,
    tokens: Option<&'a CallTokens>,
    whole: WholeTokens,
    /// How the conversation was changed since the last reply.
    rewritten: &'static str,
}

/// Value of `rewritten` if the agent has only added messages since the last reply.
const UNCHANGED: &str = "the agent only added messages: the server writes earlier ones differently";

fn replies(lines: &[TimedEvent]) -> Vec<TrainingReply<'_>> {
    let (mut recent, mut shown, mut found) = (RecentTokens::default(), Vec::new(), Vec::new());
    let mut rewritten = UNCHANGED;
    for line in lines {
        match &line.event {
            Event::Forgotten { .. } => rewritten = "the agent removed messages",
            Event::Shortened { .. } => rewritten = "the agent shortened a message",
            Event::Try { .. } => rewritten = "the agent began another try",
            Event::Asked { kept, .. } if *kept < shown.len() => {
                rewritten = "the agent rewrote its messages or asked in another conversation";
            }
            Event::Reply { step, tokens, .. } => {
                let whole = tokens.as_ref().map(|tokens| recent.complete(*step, tokens)).unwrap_or_default();
                found.push(TrainingReply { event: &line.event, tokens: tokens.as_ref(), whole, rewritten });
                rewritten = UNCHANGED;
            }
            _ => {}
        }
        conversation::take(&mut shown, &line.event);
    }
    found
}

/// Returns an attempt's conversations as lists of token ids, in the order in which they began. If the prompt of a call
/// lacks ids of the previous call, the call begins another conversation.
pub(super) fn rollouts(lines: &[TimedEvent]) -> Vec<Rollout> {
    let mut found: Vec<(Vec<u32>, Rollout)> = Vec::new();
    for reply in replies(lines) {
        let (Event::Reply { step, finish, weights, .. }, Some(tokens)) = (reply.event, reply.tokens) else { continue };
        let step = *step;
        if reply.whole.prompt.is_empty() || tokens.completion.is_empty() {
            continue;
        }
        let goes_on =
            |steps: &[u32]| tokens.dropped == 0 && tokens.after.is_some() && steps.last() == tokens.after.as_ref();
        let place = found.iter().position(|(steps, _)| goes_on(steps)).unwrap_or_else(|| {
            found.push((
                Vec::new(),
                Rollout { extra: json!({ "step": [], "finish": [], "weights": [] }), ..Rollout::default() },
            ));
            found.len() - 1
        });
        let Some((steps, rollout)) = found.get_mut(place) else { continue };
        steps.push(step);
        rollout.prompt_token_ids.push(reply.whole.prompt);
        rollout.completion_token_ids.push(tokens.completion.clone());
        rollout.logprobs.push(tokens.logprobs.clone());
        for (name, value) in [("step", json!(step)), ("finish", json!(finish)), ("weights", json!(weights))] {
            if let Some(Value::Array(list)) = rollout.extra.get_mut(name) {
                list.push(value);
            }
        }
    }
    found.into_iter().map(|(_, rollout)| rollout).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reply, ReplyTokens};
    use crate::report::tests::full_record;

    /// Returns a trajectory whose replies have these prompts and completions, with events before some of them.
    fn trajectory(calls: &[(&[u32], &[u32], Option<Event>)]) -> Vec<TimedEvent> {
        let mut recent = RecentTokens::default();
        let mut lines = Vec::new();
        for (step, (prompt, completion, before)) in (1..).zip(calls) {
            lines.extend(before.clone().map(|event| TimedEvent { at: 0.0, event }));
            let tokens = ReplyTokens {
                prompt: prompt.to_vec(),
                completion: completion.to_vec(),
                logprobs: vec![-0.5; completion.len()],
            };
            let reply = Reply { tokens: Some(tokens.clone()), finish: Some("stop".into()), ..Reply::default() };
            let event =
                Event::reply(step, &reply, Some(recent.shorten(step, &tokens)), std::time::Duration::ZERO, None);
            lines.push(TimedEvent { at: 0.0, event });
        }
        lines
    }

    #[test]
    fn rows_have_whole_prompts_token_masks_and_rewards_and_say_why_token_ids_were_dropped() {
        let shortened = Event::Shortened { message: 1, content: "...".into() };
        let lines = trajectory(&[
            (&[1, 2], &[3], None),
            (&[1, 2, 3, 4], &[5], None),
            (&[1, 2, 3, 9], &[6], Some(shortened)),
            (&[1, 2, 3, 9, 7], &[8], None),
        ]);
        let rows = rows("r", &full_record("react", 1, 0, 0, true), &lines);
        assert_eq!(rows[1].prompt_ids, Some(vec![1, 2, 3, 4]));
        assert_eq!(rows[1].prompt_written, Some(vec![false, false, true, false]));
        assert_eq!((rows[1].reward, rows[1].last, rows[3].last), (Some(1.0), false, true));
        let dropped: Vec<_> = rows.iter().map(|row| (row.dropped_tokens, row.dropped_by.as_deref())).collect();
        let by = [
            (Some(0), None),
            (Some(0), None),
            (Some(2), Some("the agent shortened a message")),
            (Some(1), Some(UNCHANGED)),
        ];
        assert_eq!(dropped, by);
        let mut gaps = Gaps::default();
        gaps.add(&rows);
        let notes = gaps.notes();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("step 3 of attempt 0 of `react`") && notes[0].contains("from token 3 on, 2 are"));
    }

    #[test]
    fn a_rollout_ends_where_a_prompt_drops_token_ids_and_parallel_conversations_give_separate_rollouts() {
        let lines = trajectory(&[
            (&[1, 2], &[3], None),
            (&[7, 7], &[7], None),
            (&[1, 2, 3, 4], &[5], None),
            (&[7, 7, 7, 8], &[7], None),
            (&[1, 9], &[5], None),
        ]);
        let found = rollouts(&lines);
        let prompts: Vec<usize> = found.iter().map(|rollout| rollout.prompt_token_ids.len()).collect();
        assert_eq!(prompts, [2, 2, 1]);
        assert_eq!(found[0].extra["step"], json!([1, 3]));
        assert_eq!(found[1].completion_token_ids, [[7], [7]]);
    }

    #[test]
    fn replies_without_token_ids_have_nulls_and_are_counted() {
        let event = Event::reply(1, &Reply::default(), None, std::time::Duration::ZERO, None);
        let rows = rows("r", &full_record("react", 1, 0, 0, false), &[TimedEvent { at: 0.0, event }]);
        assert_eq!((&rows[0].prompt_ids, rows[0].reward, rows[0].dropped_tokens), (&None, Some(0.0), None));
        let mut gaps = Gaps::default();
        gaps.add(&rows);
        assert!(gaps.notes()[0].starts_with("1 of 1 replies have no prompt ids"));
    }
}
