//! Limits on the length of a model's replies and conversations. They are learned from the user, from the server's list
//! of models, and from calls that the server refused.
//!
//! A request contains a bound on the length of its reply (`max_tokens`) if the user or an external agent asks for one,
//! or if the remaining money buys less than the longest reply. The bound is lowered to the known limits, because many
//! servers refuse a request whose prompt and bound together exceed the context, although the model would stop by
//! itself.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use genai::adapter::AdapterKind;
use serde_json::Value;

use super::features::ModelTarget;
use super::lengths::{StatedLengths, is_too_long, speaks_of_the_reply};
use super::quote::{LONGEST_REPLY, tokens_read};
use super::{ModelError, Request, Usage};

/// If a server refuses a bound on the reply's length, the bound is not lowered below this number of tokens.
const SHORT_REPLY: u32 = 1024;

/// Initial [`Capacity::ceiling`] for a server with unknown limits, in tokens. If the remaining money buys a reply of
/// this length, no bound on the reply is sent: models hardly ever write such long replies, and the server might refuse
/// so high a bound.
const UNKNOWN_SERVER: u32 = 32_768;

/// If the context's size is unknown, a refusal for length is plausible only for a prompt of at least this many tokens.
const LONG_PROMPT: u64 = 4096;

/// Maximum average number of bytes per token in a prompt, for a low estimate of the prompt's number of tokens.
const MOST_BYTES: u64 = 5;

/// Known limits of one server's model; 0 if unknown.
#[derive(Debug)]
pub(super) struct Capacity {
    /// Maximum tokens of prompt and reply together.
    context: AtomicU64,
    /// Maximum tokens of a reply.
    output: AtomicU32,
    /// If the remaining money buys a reply of at least this many tokens, no bound on the reply is sent because of the
    /// money.
    ceiling: AtomicU32,
    /// Correction factor for estimated prompt lengths: the tokens that the server counted in the last prompt, per
    /// thousand tokens estimated from the prompt's bytes.
    density: AtomicU64,
}

/// Limits that the refusals of one call state or imply; `None` if they do not. They apply to retries of this call. A
/// refusal may quote the request, so [`Capacity`] adopts them only once the server has accepted a call within them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LearnedLimits {
    /// Maximum tokens of prompt and reply together.
    context: Option<u64>,
    /// Maximum tokens of a reply.
    output: Option<u32>,
    /// Correction factor for estimated prompt lengths, as in [`Capacity::density`]. It is not adopted, because an
    /// accepted call comes with the server's own count.
    density: Option<u64>,
}

/// Conclusion from a refused call: whether the server refused the call because its bound on the reply's length is too
/// large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lesson {
    /// The refusal has another reason, or no smaller bound can be tried.
    None,
    /// The refusal states or implies a limit. The call can be retried with a bound within this limit.
    Limit,
    /// The bound may be the reason, although the refusal does not say so. The call can be retried without a bound.
    Perhaps,
}

impl Capacity {
    /// Creates the limits known before the first call.
    pub(super) fn new(target: &ModelTarget, context: Option<u64>, output: Option<u32>) -> Self {
        Self {
            context: AtomicU64::new(context.unwrap_or(0)),
            output: AtomicU32::new(output.unwrap_or(0)),
            ceiling: AtomicU32::new(if context.or(output.map(u64::from)).is_some() {
                LONGEST_REPLY
            } else {
                known_ceiling(target)
            }),
            density: AtomicU64::new(0),
        }
    }

    /// Returns the bound on the reply to send with a request: the smaller of `wanted` and the number of tokens that the
    /// money buys, both lowered to the known limits and to those in `learned`. `None` if no bound is needed.
    pub(super) fn bound(&self, request: &Request, wanted: Option<u32>, learned: &LearnedLimits) -> Option<u32> {
        let fits = self.fits(request, learned);
        let own = request.affordable.filter(|most| *most < self.ceiling.load(Ordering::Relaxed));
        // If money is short, send a bound only if it states what the money buys, or if at least [`SHORT_REPLY`] tokens
        // fit. Otherwise the prompt nearly fills the context, at whose end the model stops anyway.
        let own =
            own.map(|most| most.min(fits)).filter(|most| *most >= SHORT_REPLY || request.affordable == Some(*most));
        let wanted = wanted.map(|most| most.min(fits.max(SHORT_REPLY)));
        [own, wanted].into_iter().flatten().min()
    }

    /// Returns the number of tokens left for a reply to this request.
    fn fits(&self, request: &Request, learned: &LearnedLimits) -> u32 {
        let context = learned.context.unwrap_or_else(|| self.context.load(Ordering::Relaxed));
        let room = (context > 0).then(|| context.saturating_sub(self.estimate(request, learned)));
        let room = room.map_or(u32::MAX, |room| u32::try_from(room).unwrap_or(u32::MAX));
        match learned.output.unwrap_or_else(|| self.output.load(Ordering::Relaxed)) {
            0 => room,
            output => room.min(output),
        }
    }

    /// Estimates the number of tokens of a prompt, rather too high than too low.
    fn estimate(&self, request: &Request, learned: &LearnedLimits) -> u64 {
        match learned.density.unwrap_or_else(|| self.density.load(Ordering::Relaxed)) {
            0 => tokens_read(request),
            // Add 5%, because this prompt may have more tokens per byte than the one that the server counted.
            density => tokens_read(request).saturating_mul(density * 21 / 20) / 1000 + 16,
        }
    }

    /// Updates the correction factor for estimated prompt lengths from the server's token count of a prompt.
    pub(super) fn counted(&self, request: &Request, usage: &Usage) {
        if usage.input > 0 {
            self.density.store(density(request, usage.input), Ordering::Relaxed);
        }
    }

    /// Adopts limits that were learned from refusals of a call, after the server has accepted the call within them.
    pub(super) fn adopt(&self, learned: &LearnedLimits) {
        if let Some(context) = learned.context {
            self.context.store(context, Ordering::Relaxed);
        }
        if let Some(output) = learned.output {
            self.output.store(output, Ordering::Relaxed);
        }
    }

    /// Stores the limits from the server's list of models, unless a limit is already known.
    pub(super) fn listed(&self, context: Option<u64>, output: Option<u32>) {
        let unknown = (self.context.load(Ordering::Relaxed), self.output.load(Ordering::Relaxed)) == (0, 0);
        if let Some(context) = context.filter(|_| unknown) {
            self.context.store(context, Ordering::Relaxed);
            self.ceiling.store(LONGEST_REPLY, Ordering::Relaxed);
        }
        if let Some(output) = output.filter(|_| unknown) {
            self.output.store(output, Ordering::Relaxed);
        }
    }

    /// Maximum tokens of prompt and reply together, if known.
    pub(super) fn context(&self) -> Option<u64> {
        Some(self.context.load(Ordering::Relaxed)).filter(|context| *context > 0)
    }

    /// Lowers `ceiling` after a server refused a call with this bound, stated no reason, and accepted the same call
    /// without a bound.
    pub(super) fn takes_no(&self, bound: u32) {
        self.ceiling.fetch_min((bound / 2).max(SHORT_REPLY), Ordering::Relaxed);
    }

    /// Whether a prompt that was refused for its length is in fact short. If so, the server is set up with too small a
    /// context for the task, and the agent is not to blame.
    pub(super) fn is_short(&self, request: &Request, what: &str) -> bool {
        let lower = what.to_lowercase();
        if lower.contains("per minute") {
            // The refusal states the account's quota of tokens per minute. If a single request exceeds the quota, the
            // agent is not to blame, either.
            return true;
        }
        let named = StatedLengths::read(&lower);
        let prompt = named.prompt.unwrap_or_else(|| tokens_read(request) * 3 / MOST_BYTES);
        prompt < named.context.or(self.context()).unwrap_or(LONG_PROMPT)
    }
}

impl LearnedLimits {
    /// Learns limits from a refused call whose reply was bounded by `bound` tokens. `is_wanted` says whether the user
    /// or agent asked for this bound (otherwise money was short).
    pub(super) fn learn(&mut self, error: &ModelError, request: &Request, bound: u32, is_wanted: bool) -> Lesson {
        let (ModelError::ContextLength(text) | ModelError::Rejected(text) | ModelError::Denied(text)) = error else {
            return Lesson::None;
        };
        let lower = text.to_lowercase();
        let of_reply = speaks_of_the_reply(&lower);
        if !of_reply && !is_too_long(&lower) {
            let is_about_the_request = ["status 400", "status 413", "status 422"].iter().any(|it| lower.contains(it));
            return if is_about_the_request && !is_wanted { Lesson::Perhaps } else { Lesson::None };
        }
        let named = StatedLengths::read(&lower);
        if let Some(prompt) = named.prompt {
            self.density = Some(density(request, prompt)).filter(|_| prompt > 0).or(self.density);
        }
        let largest = of_reply.then(|| largest_below(&lower, bound)).flatten();
        match (named.output, named.context) {
            (Some(output), _) if output < bound => self.output = Some(output.max(1)),
            (_, Some(context)) => self.context = Some(context),
            _ if !is_wanted => return Lesson::Perhaps,
            _ => match largest.or_else(|| of_reply.then_some(bound / 2)).filter(|most| *most >= SHORT_REPLY) {
                Some(most) => self.output = Some(most),
                None => return Lesson::None,
            },
        }
        Lesson::Limit
    }
}

/// Returns the correction factor for estimated prompt lengths if the server counts `tokens` in this request's prompt.
fn density(request: &Request, tokens: u64) -> u64 {
    (tokens.saturating_mul(1000) / tokens_read(request).max(1)).clamp(50, 10_000)
}

/// Returns the largest reply bound, in tokens, that the provider's model certainly accepts, or that the user's server
/// probably accepts. Sources: the model pages of the providers' documentation.
fn known_ceiling(target: &ModelTarget) -> u32 {
    let begins = |names: &[&str]| names.iter().any(|name| target.model.starts_with(name));
    match target.kind {
        _ if target.own_server => UNKNOWN_SERVER,
        AdapterKind::OpenAI | AdapterKind::OpenAIResp if begins(&["gpt-3", "gpt-4-", "chatgpt-4"]) => 4096,
        AdapterKind::OpenAI | AdapterKind::OpenAIResp if begins(&["gpt-4o", "gpt-5-chat"]) => 16_384,
        AdapterKind::OpenAI | AdapterKind::OpenAIResp if begins(&["gpt-4.1"]) => 32_768,
        AdapterKind::OpenAI | AdapterKind::OpenAIResp if target.model == "gpt-4" => 4096,
        AdapterKind::Gemini if begins(&["gemini-1", "gemini-2.0"]) => 8192,
        AdapterKind::Gemini => 65_536,
        AdapterKind::Anthropic if begins(&["claude-2", "claude-instant", "claude-3-haiku", "claude-3-opus"]) => 4096,
        AdapterKind::Anthropic if begins(&["claude-3-5", "claude-3-sonnet"]) => 8192,
        AdapterKind::Anthropic if begins(&["claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2"]) => 32_000,
        AdapterKind::Anthropic => 64_000,
        _ => 100_000,
    }
}

/// Returns the largest number in an error text that may be the model's maximum reply length in tokens: at least
/// [`SHORT_REPLY`] and below `limit`.
fn largest_below(text: &str, limit: u32) -> Option<u32> {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    numbers.filter(|number| (SHORT_REPLY..limit).contains(number)).max()
}

/// Reads a model's context and longest reply, in tokens, from its entry in a server's list of models. Fields: vLLM and
/// SGLang (`max_model_len`), llama.cpp (`meta.n_ctx`), LM Studio (`loaded_context_length`), `OpenRouter`
/// (`top_provider`), Groq (`context_window`), Together, Fireworks, Kimi (`context_length`), Mistral
/// (`max_context_length`), Anthropic (`max_input_tokens`).
pub(super) fn limits_in(entry: &Value) -> (Option<u64>, Option<u32>) {
    let number = |pointer: &&str| entry.pointer(pointer).and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    let contexts = [
        "/max_model_len",
        "/meta/n_ctx",
        "/loaded_context_length",
        "/top_provider/context_length",
        "/context_length",
        "/context_window",
        "/max_context_length",
        "/max_input_tokens",
        "/model_info/max_input_tokens",
        "/default_generation_settings/n_ctx",
        "/max_total_tokens",
    ];
    let outputs =
        ["/top_provider/max_completion_tokens", "/max_completion_tokens", "/max_output_tokens", "/max_tokens"];
    let output = outputs.iter().find_map(number).and_then(|tokens| u32::try_from(tokens).ok());
    (contexts.iter().find_map(number), output)
}
