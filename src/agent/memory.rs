//! Keeps a conversation as its [`History`] wants it, and shortens it when the model's context is nearly full.
//!
//! Each change is an event that [`conversation::take`](super::conversation::take) carries out, live and when a record is
//! read, so that the record still holds exactly what the model was shown.

use super::history::{History, SHORT};
use super::prompts::dynamic;
use super::tools::{Failure, ask, cut_middle};
use super::{Context, Ended, Event, transcript};
use crate::model::{Message, ModelError, Reply, Role, Thought};

/// Characters that are left of the newest one, where shortening all others is not enough.
const NEWEST: usize = 2000;
/// Bytes to a token until a reply has told: few, so that nothing overflows.
const BYTES: f64 = 3.0;
/// Tokens kept free for a reply where the run does not limit it, at most: an eighth of the context.
const RESERVE: u64 = 4096;
/// Once the context is nearly full it is brought down to this share of what may be used. Shortening a little in every
/// step would make the provider read everything again in each of them.
const DOWN_TO: f64 = 0.75;

/// Keeps one conversation as its history wants it.
#[derive(Debug)]
pub struct Memory {
    history: History,
    /// Tokens that the model takes, read and written.
    context: Option<u64>,
    /// Messages at the beginning that stay: system and task.
    head: usize,
    /// Bytes of the last of them, behind which a note or a summary stands.
    keep: usize,
    /// Bytes that are sent beside the messages.
    beside: usize,
    summary: Option<String>,
    /// Tokens to a byte, as the last reply told.
    ratio: f64,
    /// Bytes of the conversation that was sent last.
    sent: usize,
    /// Bytes of the longest conversation that was answered.
    answered: usize,
    /// Messages that were shortened already.
    checked: usize,
    /// Bytes of each message: counted once, because a long conversation has many.
    sizes: Vec<usize>,
}

impl Memory {
    /// For a conversation that has its system prompt and its task. `beside` are the bytes that are sent with it.
    #[must_use]
    pub fn new(history: History, context: Option<u64>, messages: &[Message], beside: usize) -> Self {
        let keep = messages.last().map_or(0, |message| message.content.len());
        let head = messages.len();
        Self {
            history,
            context,
            head,
            keep,
            beside,
            summary: None,
            ratio: 1.0 / BYTES,
            sent: 0,
            answered: 0,
            checked: head,
            sizes: Vec::new(),
        }
    }

    /// Makes the conversation ready for the next question. The error ends the attempt.
    pub async fn tidy(&mut self, messages: &mut Vec<Message>, context: &mut Context<'_>) -> Result<(), Ended> {
        match self.history {
            History::Full => {}
            History::Window(most) => {
                if let Some(count) = self.surplus(messages, most, 1) {
                    self.forget(count, messages, context);
                }
            }
            History::Summary(most) => {
                // What the last reply needs is not spent on a summary.
                if let Some(count) = self.surplus(messages, most, most).filter(|_| context.budget.last_step().is_none())
                {
                    self.summarise(count, messages, context).await?;
                    self.forget(count, messages, context);
                }
            }
            History::Super => {
                let newest = newest(messages);
                while self.checked < newest {
                    let index = self.checked;
                    self.checked += 1;
                    if let Some(end) = messages.get(index).and_then(tail) {
                        context.tell(messages, &Event::Shortened { message: index, content: end });
                        self.sizes.truncate(index);
                    }
                }
            }
        }
        self.fit(messages, context);
        Ok(())
    }

    /// Measures a conversation that is about to be sent.
    pub fn measure(&mut self, messages: &[Message]) {
        self.sent = self.bytes(messages);
    }

    /// Learns from the reply how many tokens it had.
    pub fn learn(&mut self, reply: &Reply) {
        self.answered = self.answered.max(self.sent);
        if self.context.is_some() && reply.usage.input > 0 {
            self.ratio = reply.usage.input as f64 / self.sent.max(1) as f64;
        }
    }

    /// Whether a refusal may be about the length of the conversation: it says so, or it gives no reason that is known and the
    /// conversation is longer than any that was answered.
    pub fn is_of_length(&self, error: &ModelError) -> bool {
        let is_longest = self.answered > 0 && self.sent > self.answered;
        match error {
            ModelError::ContextLength(_) => true,
            ModelError::Rejected(_) => is_longest,
            // Some servers fail over what is too long for them, after all retries.
            ModelError::Unavailable(what) => is_longest && what.starts_with("status 500"),
            ModelError::Refused(_) | ModelError::Denied(_) | ModelError::Exhausted(_) => false,
        }
    }

    /// Shortens the older half of what can be, after a provider has refused the conversation for its length. `false` when
    /// nothing is left to shorten.
    pub fn shrink(&mut self, messages: &mut Vec<Message>, context: &mut Context<'_>) -> bool {
        let long: Vec<usize> = (self.head..messages.len()).filter(|index| is_long(&messages[*index], SHORT)).collect();
        for &index in long.iter().take(long.len().div_ceil(2)) {
            shorten(index, SHORT, messages, context);
            self.sizes.truncate(index);
        }
        !long.is_empty()
    }

    /// How many messages are beyond the last `most` steps, when these are at least `least` steps.
    fn surplus(&self, messages: &[Message], most: u32, least: u32) -> Option<usize> {
        let replies: Vec<usize> =
            (self.head..messages.len()).filter(|index| messages[*index].role == Role::Assistant).collect();
        let out = replies.len().checked_sub(most as usize).filter(|out| *out >= least as usize && *out > 0)?;
        replies.get(out).map(|first| first - self.head)
    }

    fn forget(&mut self, count: usize, messages: &mut Vec<Message>, context: &mut Context<'_>) {
        let note = dynamic::left_out(self.summary.as_deref());
        let event = Event::Forgotten { from: self.head, count, keep: self.keep, note };
        context.tell(messages, &event);
        self.checked = self.checked.saturating_sub(count).max(self.head);
        self.sizes.clear();
    }

    /// Brings the summary up to date. Where the model may not be asked any more, the one before stays.
    async fn summarise(&mut self, count: usize, messages: &[Message], context: &mut Context<'_>) -> Result<(), Ended> {
        let steps = transcript::of(&messages[self.head..self.head + count]);
        let question = Message::new(Role::User, dynamic::summarise(self.summary.as_deref(), &steps));
        match ask("summary", vec![question], context).await {
            Ok(summary) if !summary.trim().is_empty() => self.summary = Some(summary.trim().to_owned()),
            Ok(_) | Err(Failure::Refused(_) | Failure::Arguments(_)) => {}
            Err(Failure::Lost(loss)) => return Err(loss.into()),
            Err(Failure::Model(error)) => return Err(Ended::from(&error)),
        }
        Ok(())
    }

    /// Shortens observations, the oldest first, when the context is nearly full.
    fn fit(&mut self, messages: &mut Vec<Message>, context: &mut Context<'_>) {
        let Some(whole) = self.context else { return };
        let reserve = context.sampling.max_tokens.map_or(RESERVE.min(whole / 8), u64::from);
        let room = whole.saturating_sub(reserve) as f64;
        let mut tokens = self.bytes(messages) as f64 * self.ratio;
        if tokens <= room {
            return;
        }
        let newest = newest(messages);
        for index in self.head..messages.len() {
            let (most, goal) = if index < newest { (SHORT, room * DOWN_TO) } else { (NEWEST, room) };
            if tokens <= goal {
                return;
            }
            if is_long(&messages[index], most) {
                let before = messages[index].content.len();
                shorten(index, most, messages, context);
                self.sizes.truncate(index);
                tokens -= before.saturating_sub(messages[index].content.len()) as f64 * self.ratio;
            }
        }
    }

    fn bytes(&mut self, messages: &[Message]) -> usize {
        let thought = |thought: &Thought| match thought {
            Thought::Text(text) => text.len(),
            Thought::Block(block) => block.to_string().len(),
            Thought::Signature { signature, .. } => signature.len(),
        };
        let calls = |message: &Message| {
            let calls = message.tool_calls.iter().map(|call| call.arguments.to_string().len()).sum::<usize>();
            calls + message.thoughts.iter().map(thought).sum::<usize>()
        };
        // The newest may have grown: what is said by the user in a row is one message.
        self.sizes.pop();
        for message in &messages[self.sizes.len().min(messages.len())..] {
            self.sizes.push(message.content.len() + calls(message));
        }
        self.beside + self.sizes.iter().sum::<usize>()
    }
}

/// Where the newest observation begins: behind the last reply.
fn newest(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0)
}

fn is_long(message: &Message, most: usize) -> bool {
    message.role != Role::Assistant && message.content.len() > most && message.content.chars().count() > most
}

fn shorten(index: usize, most: usize, messages: &mut Vec<Message>, context: &mut Context<'_>) {
    let content = cut_middle(&messages[index].content, most).into_owned();
    context.tell(messages, &Event::Shortened { message: index, content });
}

/// The end of an observation that is longer.
fn tail(message: &Message) -> Option<String> {
    if !is_long(message, SHORT + 10) {
        return None;
    }
    let (start, _) = message.content.char_indices().rev().nth(SHORT - 1)?;
    Some(format!("[...]\n{}", &message.content[start..]))
}
