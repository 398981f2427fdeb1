//! A conversation with the model that offers no tools: the fixed agent's work, and a dynamic agent's thoughts before its
//! first step.

use super::account::{Asker, NotAsked, Unanswered};
use super::{Context, End, Ended, Event};
use crate::model::{Message, Model, Reply, Request, Role};

/// Tokens of reasoning that are not worth another call.
const LEAST_THOUGHTS: u32 = 16;
/// Most calls for thoughts.
const MOST_ROUNDS: u32 = 8;
/// Bytes to a token, for servers that do not count.
const BYTES: usize = 4;

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A limit forbids another call; what was written can still be run.
    Limit(End),
    /// The attempt ends.
    End(Ended),
}

impl From<Unanswered> for Stop {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::NotAsked(NotAsked::Limit(end)) => Self::Limit(end),
            other => Self::End(other.into()),
        }
    }
}

impl From<Stop> for Ended {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Limit(end) => end.into(),
            Stop::End(ended) => ended,
        }
    }
}

/// A conversation.
pub(crate) struct Talk<'a> {
    model: &'a dyn Model,
    request: Request,
}

impl<'a> Talk<'a> {
    /// Begins one, or goes on with these messages.
    pub(crate) fn over(model: &'a dyn Model, messages: Vec<Message>) -> Self {
        Self { model, request: Request { messages, ..Request::default() } }
    }

    /// What was said.
    pub(crate) fn into_messages(self) -> Vec<Message> {
        self.request.messages
    }

    /// Whether the model takes a budget of tokens for reasoning.
    pub(crate) fn reasons(&self) -> bool {
        self.model.reasons()
    }

    /// Says something to the model.
    pub(crate) fn say(&mut self, role: Role, content: String, context: &mut Context<'_>) {
        context.tell(&mut self.request.messages, &Event::Message { role, content, call_id: None });
    }

    /// Asks for a reply of at most so many tokens, or as many as the run allows.
    pub(crate) async fn ask(&mut self, most: Option<u32>, context: &mut Context<'_>) -> Result<Reply, Stop> {
        self.request.sampling = context.next_sampling();
        if let Some(most) = most {
            self.request.sampling.max_tokens = Some(self.request.sampling.max_tokens.map_or(most, |run| run.min(most)));
        }
        Ok(context.ask(self.model, Asker::Agent, &mut self.request).await?)
    }

    /// Asks for thoughts, cut at so many tokens; a model that stops early is told to wait while there are tokens left.
    pub(crate) async fn think(
        &mut self,
        question: String,
        wait: &str,
        reasoning: u32,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let mut question = Some(question);
        let mut left = reasoning;
        for _ in 0..MOST_ROUNDS {
            self.say(Role::User, question.take().unwrap_or_else(|| wait.to_owned()), context);
            let reply = self.ask(Some(left), context).await?;
            let counted = if reply.usage.output > 0 { reply.usage.output } else { (reply.text.len() / BYTES) as u64 };
            left = left.saturating_sub(u32::try_from(counted.max(1)).unwrap_or(u32::MAX));
            // The last step is for the work.
            if left < LEAST_THOUGHTS || context.budget.steps_left() <= 1 {
                break;
            }
        }
        Ok(())
    }
}
