//! Keeps a conversation in the form that the agent's [`History`] setting demands, and shortens it when the model's
//! context is nearly full.
//!
//! Every change is recorded as an event, which [`conversation::take`](crate::agent::conversation::take) applies both
//! during the attempt and when the record is read. So the record shows exactly what the model was shown.

use super::transcript;
use crate::agent::history::{History, SHORT};
use crate::agent::prompts::dynamic;
use crate::agent::tools::{ToolFailure, ask, cut_middle};
use crate::agent::{AttemptEnd, Context, Event};
use crate::model::{Message, ModelError, Reply, Role, Thought};

/// Characters to which the newest observation is shortened if the conversation is still too long after all other
/// observations have been shortened.
const NEWEST: usize = 2000;
/// Assumed bytes per token until a reply reports the actual number. A low value overestimates the number of tokens, so
/// that the conversation is shortened too early rather than too late.
const BYTES: f64 = 3.0;
/// Maximum tokens reserved for a reply if the run does not limit its length. In a small context, an eighth of the
/// context is reserved instead.
const RESERVE: u64 = 4096;
/// Share of the usable context to which a nearly full conversation is reduced. Shortening only a little at every step
/// would invalidate the provider's prompt cache each time.
const DOWN_TO: f64 = 0.75;
/// Signs of a server that cuts conversations without an error: the conversation has grown by at least this many bytes
/// since its first call; it has more bytes per counted token than at its first call, by at least this number; and it
/// grew in at least this many calls without more tokens being counted.
const CUT_BYTES: usize = 8000;
const CUT_RATIO: f64 = 6.0;
const CUT_CALLS: u32 = 2;
/// Tokens that a server which counts only tokens missing from its cache may count in addition to one for each added
/// byte: tokens of names, of roles and of the conversation's template, whose bytes are not counted here, and tokens at
/// the end of the cached part, because a cache that stores whole blocks lacks an incomplete last block.
const UNCOUNTED_TOKENS: u64 = 512;

/// A conversation's history setting, and measurements of its length.
#[derive(Debug)]
pub(super) struct ConversationMemory {
    history: History,
    /// Context size of the model in tokens, input and output together; `None` if unknown.
    context: Option<u64>,
    /// Number of leading messages that are never removed: those before the first step, such as system prompt and task.
    head: usize,
    /// Length in bytes of the last of the messages that are never removed. A note or summary, which is appended to this
    /// message when steps are removed, does not count.
    keep: usize,
    /// Bytes sent with every call in addition to the messages, such as tool descriptions.
    beside: usize,
    summary: Option<String>,
    /// Tokens per byte, measured on the last reply.
    ratio: f64,
    /// Bytes of the conversation that was sent last.
    sent: usize,
    /// Bytes of the longest conversation that got a reply.
    answered: usize,
    /// Number of leading messages whose observations are already shortened as the history setting demands.
    checked: usize,
    /// Bytes of each message without and with the model's thoughts. They are cached because a long conversation has
    /// many messages.
    sizes: Vec<[usize; 2]>,
    /// Bytes, without the model's thoughts, and tokens of the conversation at the first call and at the last call whose
    /// tokens the server counted.
    counted: Option<[(usize, u64); 2]>,
    /// Number of calls in which the conversation grew without more tokens being counted.
    uncounted: u32,
}

impl ConversationMemory {
    /// Creates the memory of a conversation that contains only the messages before the first step. `beside` is the
    /// number of bytes sent in addition to the messages.
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
            counted: None,
            uncounted: 0,
        }
    }

    /// Prepares the conversation for the next call. An error ends the attempt.
    pub async fn tidy(&mut self, messages: &mut Vec<Message>, context: &mut Context<'_>) -> Result<(), AttemptEnd> {
        match self.history {
            History::Full => {}
            History::Window(most) => {
                if let Some(count) = self.surplus(messages, most, 1) {
                    self.forget(count, messages, context);
                }
            }
            History::Summary(most) => {
                // Don't pay for a summary if the next reply is the last: that reply needs the remaining money and
                // tokens.
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
                        context.record_message(messages, &Event::Shortened { message: index, content: end });
                        self.sizes.truncate(index);
                    }
                }
            }
        }
        self.fit(messages, context);
        Ok(())
    }

    /// Measures a conversation just before it is sent.
    pub fn measure(&mut self, messages: &[Message]) {
        self.sent = self.bytes(messages);
    }

    /// Updates the estimate of tokens per byte from a reply.
    pub fn learn(&mut self, reply: &Reply) {
        self.answered = self.answered.max(self.sent);
        let tokens = tokens_read(reply);
        if tokens > 0 {
            self.ratio = tokens as f64 / self.sent.max(1) as f64;
        }
    }

    /// Checks a reply's token count for signs that the server cuts conversations without an error, so that the model
    /// does not see all of its task. Called once per reply.
    ///
    /// A single low count may have other reasons. A server that counts only the tokens missing from its cache counts
    /// little more than one token for each byte that was added since the last call. Most servers do not count the
    /// thoughts of earlier replies, so thoughts are left out here.
    ///
    /// # Errors
    /// Returns the signs and what the user can do about them.
    pub fn check_count(&mut self, reply: &Reply) -> Result<(), String> {
        let bytes = self.beside + self.sizes.iter().map(|[bytes, _]| bytes).sum::<usize>();
        let tokens = tokens_read(reply);
        if reply.estimated || tokens == 0 {
            return Ok(());
        }
        let Some([first, last]) = self.counted else {
            self.counted = Some([(bytes, tokens); 2]);
            return Ok(());
        };
        self.counted = Some([first, (bytes, tokens)]);
        let ratio = |(bytes, tokens): (usize, u64)| bytes as f64 / tokens as f64;
        let is_long = bytes >= first.0 + CUT_BYTES && ratio((bytes, tokens)) >= ratio(first) + CUT_RATIO;
        let added = bytes.saturating_sub(last.0) as u64;
        if tokens > last.1 {
            self.uncounted = 0;
        } else if is_long && added > 0 && added + UNCOUNTED_TOKENS < tokens {
            self.uncounted += 1;
        }
        if self.uncounted < CUT_CALLS {
            return Ok(());
        }
        Err(format!(
            "the server seems to cut conversations without an error: it counted {tokens} tokens in {bytes} bytes of \
             conversation; serve the model with a longer context (Ollama: `num_ctx` or OLLAMA_CONTEXT_LENGTH), or give \
             the context's size, as in `react:context=4096`"
        ))
    }

    /// Whether a model error may be due to the conversation's length: the error says so, or it gives no known reason
    /// and the conversation is longer than any that got a reply.
    pub fn is_of_length(&self, error: &ModelError) -> bool {
        let is_longest = self.answered > 0 && self.sent > self.answered;
        match error {
            ModelError::ContextLength(_) => true,
            ModelError::Rejected(_) => is_longest,
            // For a conversation that is too long, some servers return status 500, even after all retries.
            ModelError::Unavailable(what) => is_longest && what.starts_with("status 500"),
            ModelError::Refused(_) | ModelError::Denied(_) | ModelError::Exhausted(_) => false,
        }
    }

    /// Shortens the older half of the long messages, after a provider refused the conversation for its length. Returns
    /// `false` if there is no long message to shorten.
    pub fn shrink(&mut self, messages: &mut Vec<Message>, context: &mut Context<'_>) -> bool {
        let long: Vec<usize> = (self.head..messages.len()).filter(|index| is_long(&messages[*index], SHORT)).collect();
        for &index in long.iter().take(long.len().div_ceil(2)) {
            shorten(index, SHORT, messages, context);
            self.sizes.truncate(index);
        }
        !long.is_empty()
    }

    /// Returns the number of messages older than the last `most` steps; `None` if they make up fewer than `least`
    /// steps.
    fn surplus(&self, messages: &[Message], most: u32, least: u32) -> Option<usize> {
        let replies: Vec<usize> =
            (self.head..messages.len()).filter(|index| messages[*index].role == Role::Assistant).collect();
        let out = replies.len().checked_sub(most as usize).filter(|out| *out >= least as usize && *out > 0)?;
        replies.get(out).map(|first| first - self.head)
    }

    fn forget(&mut self, count: usize, messages: &mut Vec<Message>, context: &mut Context<'_>) {
        let note = dynamic::left_out(self.summary.as_deref());
        let event = Event::Forgotten { from: self.head, count, keep: self.keep, note };
        context.record_message(messages, &event);
        self.checked = self.checked.saturating_sub(count).max(self.head);
        self.sizes.clear();
    }

    /// Updates the summary with the steps to be removed. Keeps the previous summary if the model gives no new one, for
    /// example because no further call is allowed.
    async fn summarise(
        &mut self,
        count: usize,
        messages: &[Message],
        context: &mut Context<'_>,
    ) -> Result<(), AttemptEnd> {
        let steps = transcript::render(&messages[self.head..self.head + count]);
        let question = Message::new(Role::User, dynamic::summarise(self.summary.as_deref(), &steps));
        match ask("summary", vec![question], context).await {
            Ok(reply) if !reply.text.trim().is_empty() => self.summary = Some(reply.text.trim().to_owned()),
            Ok(_) | Err(ToolFailure::Refused(_) | ToolFailure::Arguments(_)) => {}
            Err(ToolFailure::Lost(loss)) => return Err(loss.into()),
            Err(ToolFailure::Model(error)) => return Err(AttemptEnd::from(&error)),
        }
        Ok(())
    }

    /// Shortens observations, the oldest first, if the context is nearly full.
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
        // Measure the last message again: it may have grown, because consecutive user messages are merged.
        self.sizes.pop();
        for message in &messages[self.sizes.len().min(messages.len())..] {
            let calls = message.tool_calls.iter().map(|call| call.arguments.to_string().len()).sum::<usize>();
            // Without a parser for thoughts, servers report them as part of the text.
            let said = message.content.rsplit("</think>").next().unwrap_or_default();
            let thoughts = message.thoughts.iter().map(thought).sum::<usize>() + message.content.len() - said.len();
            self.sizes.push([said.len() + calls, said.len() + calls + thoughts]);
        }
        self.beside + self.sizes.iter().map(|[_, bytes]| bytes).sum::<usize>()
    }
}

/// Returns the number of tokens that the server counted in the conversation, without those of failed tries.
const fn tokens_read(reply: &Reply) -> u64 {
    reply.usage.input.saturating_sub(reply.failed.input)
}

/// Returns the index of the last reply; the newest observation follows it.
fn newest(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0)
}

fn is_long(message: &Message, most: usize) -> bool {
    message.role != Role::Assistant && message.content.len() > most && message.content.chars().count() > most
}

fn shorten(index: usize, most: usize, messages: &mut Vec<Message>, context: &mut Context<'_>) {
    let content = cut_middle(&messages[index].content, most).into_owned();
    context.record_message(messages, &Event::Shortened { message: index, content });
}

/// Returns the end of an observation if the observation is too long.
fn tail(message: &Message) -> Option<String> {
    if !is_long(message, SHORT + 10) {
        return None;
    }
    let (start, _) = message.content.char_indices().rev().nth(SHORT - 1)?;
    Some(format!("[...]\n{}", &message.content[start..]))
}
