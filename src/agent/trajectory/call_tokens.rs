//! Recorded form of the tokens of a call. If the prompt begins like an earlier call of the attempt, the shared
//! beginning is not recorded again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::ReplyTokens;

/// Number of recent calls that are compared with a new call, because agents may hold several conversations at once.
const RECENT: usize = 8;

/// Token ids and log-probabilities of a call, as the server returned them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallTokens {
    /// Step of the earlier call that this call continues: the recent call that shares the longest beginning with this
    /// prompt. None if no recent call begins with the same token, or if the server returned no token ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Number of ids at the beginning of the prompt that equal the first ids of the earlier call (prompt and reply).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: usize,
    /// Number of the earlier call's ids that this prompt does not repeat. If this number is not 0, the conversation was
    /// rewritten.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: usize,
    /// Ids of the prompt after the first `kept` ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt: Vec<u32>,
    /// The reply's ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completion: Vec<u32>,
    /// Log-probabilities of the reply's tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Token ids of an attempt's recent calls. Used both to write and to read trajectories.
#[derive(Debug, Clone, Default)]
pub struct RecentTokens {
    calls: Vec<RecentCall>,
}

#[derive(Debug, Clone)]
struct RecentCall {
    step: u32,
    /// Token ids of the prompt, followed by those of the reply.
    ids: Vec<u32>,
    /// For each token in `ids`, whether the model wrote it (otherwise it comes from a prompt).
    written: Vec<bool>,
}

/// The whole prompt of a call, including the tokens that the recorded form leaves out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WholeTokens {
    /// Token ids of the prompt; empty if they are unknown.
    pub prompt: Vec<u32>,
    /// For each token of the prompt, whether the model wrote it in an earlier call.
    pub written: Vec<bool>,
}

impl RecentTokens {
    /// Converts a call's tokens to their recorded form.
    pub fn shorten(&mut self, step: u32, tokens: &ReplyTokens) -> CallTokens {
        let common =
            |call: &RecentCall| call.ids.iter().zip(&tokens.prompt).take_while(|(one, other)| one == other).count();
        let nearest = self.calls.iter().map(|call| (common(call), call)).max_by_key(|(kept, call)| (*kept, call.step));
        let (after, kept, dropped) = match nearest {
            Some((kept, call)) if kept > 0 => (Some(call.step), kept, call.ids.len() - kept),
            _ => (None, 0, 0),
        };
        let recorded = CallTokens {
            after,
            kept,
            dropped,
            prompt: tokens.prompt.get(kept..).unwrap_or_default().to_vec(),
            completion: tokens.completion.clone(),
            logprobs: tokens.logprobs.clone(),
        };
        self.complete(step, &recorded);
        recorded
    }

    /// Restores all tokens of a recorded call. The prompt is empty if the trajectory lacks the earlier call that this
    /// call continues.
    pub fn complete(&mut self, step: u32, tokens: &CallTokens) -> WholeTokens {
        let before = tokens.after.and_then(|after| self.calls.iter().find(|call| call.step == after));
        let mut whole = WholeTokens::default();
        match before.and_then(|call| Some((call.ids.get(..tokens.kept)?, call.written.get(..tokens.kept)?))) {
            Some((ids, written)) => (whole.prompt, whole.written) = (ids.to_vec(), written.to_vec()),
            None if tokens.kept > 0 => return whole,
            None => {}
        }
        whole.prompt.extend(&tokens.prompt);
        whole.written.resize(whole.prompt.len(), false);
        if !whole.prompt.is_empty() {
            let mut call = RecentCall { step, ids: whole.prompt.clone(), written: whole.written.clone() };
            call.ids.extend(&tokens.completion);
            call.written.resize(call.ids.len(), true);
            self.calls.push(call);
            if self.calls.len() > RECENT {
                self.calls.remove(0);
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(prompt: &[u32], completion: &[u32]) -> ReplyTokens {
        ReplyTokens { prompt: prompt.to_vec(), completion: completion.to_vec(), logprobs: Vec::new() }
    }

    #[test]
    fn only_what_a_prompt_adds_is_recorded_and_the_whole_prompt_can_be_rebuilt() {
        let calls = [
            tokens(&[1, 2], &[3, 4]),
            tokens(&[1, 2, 3, 4, 5], &[6]),
            // A second conversation begins, then the first one continues.
            tokens(&[9, 8], &[7]),
            tokens(&[1, 2, 3, 4, 5, 6, 5], &[6]),
            tokens(&[9, 8, 7, 7], &[]),
        ];
        let (mut writer, mut reader) = (RecentTokens::default(), RecentTokens::default());
        let recorded: Vec<CallTokens> = (1..).zip(&calls).map(|(step, call)| writer.shorten(step, call)).collect();
        let found: Vec<_> =
            recorded.iter().map(|call| (call.after, call.kept, call.dropped, call.prompt.len())).collect();
        assert_eq!(
            found,
            [(None, 0, 0, 2), (Some(1), 4, 0, 1), (None, 0, 0, 2), (Some(2), 6, 0, 1), (Some(3), 3, 0, 1)]
        );
        let whole: Vec<_> = (1..).zip(&recorded).map(|(step, call)| reader.complete(step, call)).collect();
        assert!(whole.iter().zip(&calls).all(|(whole, call)| whole.prompt == call.prompt));
        assert_eq!(whole[3].written, [false, false, true, true, false, true, false]);
    }

    #[test]
    fn tokens_that_a_rewritten_history_no_longer_contains_are_counted_as_dropped() {
        let mut recent = RecentTokens::default();
        recent.shorten(1, &tokens(&[1, 2, 3], &[4, 5]));
        let rewritten = recent.shorten(2, &tokens(&[1, 2, 9], &[4]));
        assert_eq!((rewritten.after, rewritten.kept, rewritten.dropped), (Some(1), 2, 3));
        // The next prompt lacks the id 4 of the earlier reply, as when an agent removes a reply's thoughts from its
        // conversation.
        let shortened = recent.shorten(3, &tokens(&[1, 2, 9, 7], &[4]));
        assert_eq!((shortened.after, shortened.kept, shortened.dropped), (Some(2), 3, 1));
    }

    #[test]
    fn a_trajectory_that_lacks_a_call_gives_no_prompt_rather_than_a_wrong_one() {
        let mut recent = RecentTokens::default();
        let alone = CallTokens { after: Some(1), kept: 4, prompt: vec![5], ..CallTokens::default() };
        assert_eq!(recent.complete(2, &alone), WholeTokens::default());
    }
}
