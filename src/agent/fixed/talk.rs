//! One conversation of the fixed agent with the model: asked within the budget, recorded, with thoughts before the answer.
//! A dynamic agent's thoughts before its first step are asked for in the same way.

use std::time::Instant;

use crate::agent::step::{self, Next};
use crate::agent::{Context, End, Event, prompts};
use crate::model::{Message, Model, Reply, Request, Role};

/// Tokens of reasoning that are not worth another call.
const LEAST_THOUGHTS: u32 = 16;
/// Most calls for thoughts.
const MOST_ROUNDS: u32 = 8;
/// Bytes to a token, for servers that do not count.
const BYTES: usize = 4;

/// Why there is no reply.
#[derive(Debug)]
pub(in crate::agent) enum Stop {
    /// A limit forbids another call; what there is can still be run.
    Limit(End),
    /// The attempt ends.
    End(End, Option<String>),
}

/// A conversation.
pub(in crate::agent) struct Talk<'a> {
    model: &'a dyn Model,
    request: Request,
}

impl<'a> Talk<'a> {
    /// A new one.
    pub(super) fn new(model: &'a dyn Model, context: &mut Context<'_>) -> Self {
        let mut talk = Self { model, request: Request::default() };
        talk.say(Role::System, prompts::fixed::system(), context);
        talk
    }

    /// One that goes on. Tools are not offered.
    pub(in crate::agent) fn over(model: &'a dyn Model, messages: Vec<Message>) -> Self {
        Self { model, request: Request { messages, ..Request::default() } }
    }

    /// What was said.
    pub(in crate::agent) fn into_messages(self) -> Vec<Message> {
        self.request.messages
    }

    /// Says something to the model.
    pub(super) fn say(&mut self, role: Role, content: String, context: &mut Context<'_>) {
        context.tell(&mut self.request.messages, &Event::Message { role, content, call_id: None });
    }

    /// Asks for a reply of at most so many tokens, or as many as the run allows.
    pub(super) async fn ask(&mut self, most: Option<u32>, context: &mut Context<'_>) -> Result<Reply, Stop> {
        if let Some(end) = context.budget.barred() {
            return Err(Stop::Limit(end));
        }
        if let Some(error) = context.trajectory.failed() {
            return Err(Stop::End(End::Cancelled, Some(format!("the trajectory cannot be written: {error}"))));
        }
        self.request.call = context.budget.calls;
        self.request.sampling = context.next_sampling();
        if let Some(most) = most {
            self.request.sampling.max_tokens = Some(self.request.sampling.max_tokens.map_or(most, |run| run.min(most)));
        }
        let begun = Instant::now();
        let asked = self.model.query(&self.request).await;
        let waited = begun.elapsed();
        match asked {
            Ok(reply) => {
                context.budget.charge_reply(&reply, waited);
                let event = Event::reply(context.budget.steps, &reply, waited);
                context.tell(&mut self.request.messages, &event);
                Ok(reply)
            }
            Err(failed) => {
                context.call_failed(None, &failed, waited);
                match step::model_failed(&failed.error) {
                    Next::End(end, detail) => Err(Stop::End(end, detail)),
                    Next::Step | Next::Retry => Err(Stop::End(End::ModelError, None)),
                }
            }
        }
    }

    /// Asks for thoughts, cut at so many tokens; a model that stops early is told to wait while there are tokens left.
    pub(in crate::agent) async fn think(
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

    /// Asks for the function, after thoughts of `reasoning` tokens. A provider that takes such a budget is given it;
    /// otherwise thoughts are asked for first, and asked for again while tokens are left ("Wait").
    pub(super) async fn write(
        &mut self,
        missing: &prompts::fixed::Missing,
        reasoning: u32,
        context: &mut Context<'_>,
    ) -> Result<Reply, Stop> {
        // A model that reasons by itself is told also when it is to do without.
        let native = self.model.reasons();
        if reasoning > 0 && !native {
            let question = prompts::fixed::reason(&missing.called, reasoning);
            self.think(question, &prompts::fixed::wait(), reasoning, context).await?;
        }
        self.say(Role::User, prompts::fixed::write(missing), context);
        let before = context.sampling.reasoning_tokens;
        context.sampling.reasoning_tokens = native.then_some(reasoning);
        let reply = self.ask(None, context).await;
        context.sampling.reasoning_tokens = before;
        reply
    }
}
