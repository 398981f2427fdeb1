//! A conversation with the model without tools. Used for all calls of the `fixed` agent, and for `react`'s thoughts
//! before its first step.

use super::{AttemptEnd, Context, End, Event};
use crate::agent::budget::account::{Asker, NotAsked, Unanswered};
use crate::model::{Message, Model, Reply, Request, Role};

/// If fewer tokens of reasoning than this are left, the model is not asked to continue thinking.
const LEAST_THOUGHTS: u32 = 16;
/// Maximum number of calls that ask the model to think or to continue thinking.
const MOST_ROUNDS: u32 = 8;
/// Assumed bytes per token, for servers that do not report token counts.
const BYTES: usize = 4;

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// A limit of the attempt is reached, so the model was not asked. The code written so far can still be run.
    Limit(End),
    /// The attempt ends.
    End(AttemptEnd),
}

impl From<Unanswered> for NoReply {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotAsked(NotAsked::Limit(end)) => Self::Limit(end),
            other => Self::End(other.into()),
        }
    }
}

impl From<NoReply> for AttemptEnd {
    fn from(stop: NoReply) -> Self {
        match stop {
            NoReply::Limit(end) => end.into(),
            NoReply::End(ended) => ended,
        }
    }
}

/// A conversation without tools.
pub(crate) struct PlainChat<'a> {
    model: &'a dyn Model,
    request: Request,
}

impl<'a> PlainChat<'a> {
    /// Begins a conversation with these messages.
    pub(crate) fn over(model: &'a dyn Model, messages: Vec<Message>) -> Self {
        Self { model, request: Request { messages, ..Request::default() } }
    }

    /// Returns the messages of the conversation.
    pub(crate) fn into_messages(self) -> Vec<Message> {
        self.request.messages
    }

    /// Whether the model accepts a token budget for reasoning.
    pub(crate) fn reasons(&self) -> bool {
        self.model.reasons()
    }

    /// Adds a message.
    pub(crate) fn add_message(&mut self, role: Role, content: String, context: &mut Context<'_>) {
        context.record_message(&mut self.request.messages, &Event::Message { role, content, call_id: None });
    }

    /// Asks for a reply of at most `most` tokens; the run's own limit on replies also applies.
    pub(crate) async fn ask(&mut self, most: Option<u32>, context: &mut Context<'_>) -> Result<Reply, NoReply> {
        self.request.sampling = context.next_sampling();
        if let Some(most) = most {
            self.request.sampling.max_tokens = Some(self.request.sampling.max_tokens.map_or(most, |run| run.min(most)));
        }
        Ok(context.ask(self.model, Asker::Agent, &mut self.request).await?)
    }

    /// Asks the model to think, with at most `reasoning` tokens. A model that stops early is asked to continue while
    /// tokens are left.
    pub(crate) async fn think(
        &mut self,
        question: String,
        wait: &str,
        reasoning: u32,
        context: &mut Context<'_>,
    ) -> Result<(), NoReply> {
        let mut question = Some(question);
        let mut left = reasoning;
        for _ in 0..MOST_ROUNDS {
            self.add_message(Role::User, question.take().unwrap_or_else(|| wait.to_owned()), context);
            let reply = self.ask(Some(left), context).await?;
            let counted = if reply.usage.output > 0 { reply.usage.output } else { (reply.text.len() / BYTES) as u64 };
            left = left.saturating_sub(u32::try_from(counted.max(1)).unwrap_or(u32::MAX));
            // Stop when only one step is left, because the agent needs it for the work that follows the thinking.
            if left < LEAST_THOUGHTS || context.budget.steps_left() <= 1 {
                break;
            }
        }
        Ok(())
    }
}
