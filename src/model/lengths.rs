//! Recognises refusals by servers because the prompt, alone or together with the requested reply, is too long. Contains
//! the servers' phrases, and reads the token counts that they state.
//!
//! A comment at each phrase names its source. Wordings change with every release, so [`is_too_long`] also recognises
//! the general form of such a sentence. `ConversationMemory::is_of_length` handles other wordings: it compares the
//! conversation's length with the lengths of conversations that got a reply.

use std::sync::LazyLock;

use regex::Regex;

/// Phrases by which servers say that a prompt is too long, in lower case.
const TOO_LONG: [&str; 43] = [
    // Error code of OpenAI and Azure (also of Groq, Together and LM Studio), and their sentences. Sentences of vLLM,
    // DeepSeek and OpenRouter begin in the same way.
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "input tokens exceed the configured limit",
    // Phrases of Anthropic, from "Errors" and "Context windows" in its documentation.
    "prompt is too long",
    "exceed context limit",
    "request_too_large",
    // Phrase of Gemini's `generateContent`, with the status INVALID_ARGUMENT.
    "exceeds the maximum number of tokens",
    // Phrases of llama.cpp, from tools/server: the error type, and a sentence of older releases.
    "exceed_context_size_error",
    "exceeds the available context size",
    // Phrase of llama-cpp-python, from llama.py.
    "exceed context window of",
    // Phrases of vLLM, from entrypoints/openai (`_validate_input`), inputs and v1/engine/processor.
    "context length is only",
    "longer than the maximum model length",
    "longer than the model's context length",
    // Phrases of SGLang, from managers/tokenizer_manager.py.
    "exceeds the model's maximum context",
    "exceeds the maximum allowed length",
    "exceeds the model's context length",
    // Phrases of TGI and of services built on it, from router/src/validation.rs.
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens`",
    // Phrases of LM Studio's engine.
    "greater than the context length",
    "the model's context length of only",
    "context overflow",
    // Phrases of Ollama, from server/routes.go and the runner.
    "exceeded max context length",
    "input length exceeds",
    "input exceeds maximum context length",
    // Phrase of TabbyAPI and ExLlama.
    "greater than max_seq_len",
    // Phrase of xAI's server, api.x.ai.
    "maximum prompt length is",
    // Phrase of Moonshot (Kimi), as in "exceeded model token limit: 131072 (requested: 140000)".
    "exceeded model token limit",
    // Phrase of Alibaba (Qwen, DashScope), with the error code InvalidParameter.
    "range of input length should be",
    // Phrase of Groq and Cerebras: "Please reduce the length of the messages or completion."
    "reduce the length of the messages",
    // Phrases of Z.ai (code 1261) and MiniMax (code 2013).
    "prompt exceeds max length",
    "context window exceeds limit",
    // Phrase of Mistral, as in "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum
    // context length".
    "too large for model with",
    // Phrases of GitHub's models and Copilot.
    "tokens_limit_reached",
    "prompt token count of",
    // Phrases of Bedrock, Cohere, Volcengine, Cloudflare, and of LiteLLM's own error class.
    "input is too long",
    "too many input tokens",
    "maximum number of input tokens",
    "total tokens exceeds",
    "too many tokens: total number of tokens in the prompt",
    "exceed max message tokens",
    "exceeded this model context window",
    "contextwindowexceedederror",
];

/// Regular expression for words about length. In a refusal for length, one sentence matches both this expression and
/// [`OVER`].
const LENGTHS: &str = r"context|prompt|total tokens|input (?:length|tokens?|sequence)|sequence length|conversation|number of tokens|token (?:count|limit)|max_seq_len|max_model_len|messages? (?:is|are) too long";

/// Regular expression for words that say that a length is too great.
const OVER: &str = r"exceed|too long|too large|longer than|larger than|greater than|more than|beyond|over the (?:limit|maximum)|does(?: not|n't) fit|must be (?:<=|less|at most|smaller)|overflow|超";

static GENERAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!(r"(?:{LENGTHS})[^.!?]*?(?:{OVER})|(?:{OVER})[^.!?]*?(?:{LENGTHS})")).ok());

/// Whether a refusal, in lower case, contains a known phrase for a prompt that is too long.
pub(super) fn has_known_words(lower: &str) -> bool {
    TOO_LONG.iter().any(|words| lower.contains(words))
}

/// Whether a refusal, in lower case, says that the prompt is too long.
pub(super) fn is_too_long(lower: &str) -> bool {
    has_known_words(lower) || GENERAL.as_ref().is_some_and(|general| general.is_match(lower))
}

/// Whether a refusal, in lower case, mentions the bound on the reply's length.
pub(super) fn speaks_of_the_reply(lower: &str) -> bool {
    [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "maxoutputtokens",
        "max_new_tokens",
        "max tokens",
        "the completion",
        "completion tokens",
        "output tokens",
    ]
    .iter()
    .any(|name| lower.contains(name))
}

/// Token counts stated in a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StatedLengths {
    /// The model's context, that is, maximum tokens of prompt and reply together.
    pub(super) context: Option<u64>,
    /// Tokens of the prompt.
    pub(super) prompt: Option<u64>,
    /// Maximum tokens of a reply.
    pub(super) output: Option<u32>,
}

/// Patterns of a stated context, in lower case; the first match wins.
const CONTEXTS: [&str; 9] = [
    r"context (?:length|window|size)(?: limit)?(?: is| of|:)?(?: only)? ?\(?(\d{3,})",
    r"> ?(\d{3,})",
    r"(\d{3,}) maximum context length",
    r"max(?:imum)?[ _](?:allowed )?(?:model|seq|input|prompt|allowed)[ _]?len(?:gth)?[^0-9.]{0,16}(\d{3,})",
    r"n_ctx\D{0,6}(\d{3,})",
    r"must be <= ?(\d{3,})",
    r"input length should be \[\d+, ?(\d{3,})\]",
    r"(?:token )?limit(?: is| of|:)? (\d{3,})",
    r"tokens allowed \((\d{3,})\)",
];

/// Patterns of a stated prompt length, in lower case; the first match wins.
const PROMPTS: [&str; 10] = [
    r"(\d+) input tokens",
    r"(\d+)(?: tokens)? (?:in|from) (?:the|your) (?:input )?(?:messages|prompt)",
    r"given: (\d+) `?inputs",
    r"(\d+) of text input",
    r"(?:input|request|prompt|length|prompt tokens) \((\d+)(?: tokens)?\)",
    r"input length (\d+)",
    r"contains (?:at least )?(\d+)",
    r"prompt is too long: (\d+)",
    r"(\d+) \+ \d+ >",
    r"decoder prompt \(length (\d+)\)",
];

/// Patterns of a stated maximum length of a reply, in lower case; the first match wins.
const OUTPUTS: [&str; 5] = [
    r"at most (\d+) (?:completion|output)",
    r"max_?(?:tokens|completion_tokens|output_?tokens)[^0-9]{0,40}\[\d+, ?(\d+)\]",
    r"> (\d+), which is the maximum allowed number of output",
    r"supported range is from \d+ \(inclusive\) to (\d+)",
    r"less than or equal to \D?(\d+)",
];

static NAMED: LazyLock<[Vec<Regex>; 3]> = LazyLock::new(|| {
    let compiled = |patterns: &[&str]| patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
    [compiled(&CONTEXTS), compiled(&PROMPTS), compiled(&OUTPUTS)]
});

/// A thousands separator, as in `8,192`.
static THOUSANDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r",(\d{3})\b").ok());

impl StatedLengths {
    /// Reads the token counts in a refusal, in lower case.
    pub(super) fn read(lower: &str) -> Self {
        let text = THOUSANDS.as_ref().map_or_else(|| lower.into(), |commas| commas.replace_all(lower, "$1"));
        let first = |patterns: &[Regex]| {
            patterns.iter().find_map(|pattern| pattern.captures(&text)?.get(1)?.as_str().parse::<u64>().ok())
        };
        let [contexts, prompts, outputs] = &*NAMED;
        let output = first(outputs).and_then(|tokens| u32::try_from(tokens).ok());
        // If the text states the maximum length of a reply, do not look for a context, because the same sentence may
        // also match a pattern for the context.
        let context = if output.is_some() { None } else { first(contexts) };
        Self { context, prompt: first(prompts), output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> (Option<u64>, Option<u64>, Option<u32>) {
        let StatedLengths { context, prompt, output } = StatedLengths::read(&text.to_lowercase());
        (context, prompt, output)
    }

    /// Examples of refusals for length, with the context and the prompt length that each states.
    const SAID: [(&str, Option<u64>, Option<u64>); 40] = [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 99643 output tokens and your prompt contains at least 512 input tokens, for a total of at least 100155 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
            Some(8192),
            Some(512),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 99643. This model's maximum context length is 8192 tokens and your request has 512 input tokens (99643 > 8192 - 512).",
            Some(8192),
            Some(512),
        ),
        (
            "You passed 8193 input tokens and requested 100 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 8092 tokens. Please reduce the length of the input prompt.",
            Some(8192),
            Some(8193),
        ),
        (
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens.",
            Some(8192),
            Some(9000),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9096 tokens: 5000 tokens from the input messages and 4096 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
            Some(8192),
            Some(5000),
        ),
        (
            "The input (1492905 tokens) is longer than the model's context length (1048576 tokens).",
            Some(1_048_576),
            Some(1_492_905),
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3996 `inputs` tokens and 1024 `max_new_tokens`",
            Some(4096),
            Some(3996),
        ),
        ("Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", None, None),
        (
            "request (20030 tokens) exceeds the available context size (16384 tokens), try increasing it",
            Some(16384),
            Some(20030),
        ),
        ("Requested tokens (9000) exceed context window of 8192", Some(8192), None),
        ("The number of tokens to keep from the initial prompt is greater than the context length.", None, None),
        (
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
            Some(4096),
            None,
        ),
        ("prompt too long; exceeded max context length by 200 tokens", None, None),
        ("the input length exceeds the context length", None, None),
        ("Prompt length 9000 is greater than max_seq_len 8192", Some(8192), None),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some(131_072),
            Some(537_812),
        ),
        ("Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)", Some(131_072), None),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", Some(129_024), None),
        (
            "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            Some(8192),
            None,
        ),
        ("Prompt exceeds max length", None, None),
        ("invalid params, context window exceeds limit (2013)", None, None),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some(32768),
            Some(40000),
        ),
        ("prompt token count of 140000 exceeds the limit of 128000", Some(128_000), None),
        ("prompt is too long: 215000 tokens > 200000 maximum", Some(200_000), Some(215_000)),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
            Some(200_000),
            Some(190_000),
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
            None,
        ),
        (
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of text input).",
            Some(32768),
            Some(42832),
        ),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
        ("litellm.ContextWindowExceededError: litellm.BadRequestError", None, None),
        ("Input is too long for requested model.", None, None),
        (
            "The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192).",
            Some(8192),
            None,
        ),
        ("Total tokens of image and text exceed max message tokens", None, None),
        ("Input length (265330) exceeds model's maximum context length (262144).", Some(262_144), Some(265_330)),
        (
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
            Some(131_040),
            Some(131_393),
        ),
        ("Prompt tokens (40000) exceeds context size (32768)", Some(32768), Some(40000)),
        ("Input exceeds the max input token limit", None, None),
        ("total tokens exceeds the model's max of 4096", None, None),
        ("context length exceeded for llama3", None, None),
        // General sentences about length, which no known server uses.
        (
            "the conversation has 9,000 tokens, which is more than the context window (8,192) has room for",
            Some(8192),
            None,
        ),
        ("sequence length 9000 exceeds maximum of 8192", None, None),
    ];

    #[test]
    fn refusals_of_too_long_conversations_are_recognised_and_their_token_numbers_are_read() {
        for (text, context, prompt) in SAID {
            assert!(is_too_long(&text.to_lowercase()), "{text}");
            assert_eq!(named(text), (context, prompt, None), "{text}");
        }
    }

    #[test]
    fn the_reply_limit_is_read_from_a_refusal() {
        for (text, most) in [
            (
                "max_tokens is too large: 99643. This model supports at most 16384 completion tokens, whereas you provided 99643.",
                16384,
            ),
            (
                "max_tokens: 99643 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4",
                64000,
            ),
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
            ("<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", 8192),
            (
                "Unable to submit request because it has a maxOutputTokens value of 99643 but the supported range is from 1 (inclusive) to 65537 (exclusive).",
                65537,
            ),
            (
                "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
                8192,
            ),
        ] {
            assert!(speaks_of_the_reply(&text.to_lowercase()), "{text}");
            assert_eq!(named(text), (None, None, Some(most)), "{text}");
        }
    }

    #[test]
    fn refusals_for_other_reasons_are_not_mistaken_for_too_long_conversations() {
        for text in [
            "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40",
            "messages.4.content.0.tool_use.name: String should match pattern",
            "tools.0.custom.description: string is too long",
            "Invalid value for 'temperature': must be <= 2",
            "Unknown name \"top_k\": cannot find field",
            "Invalid 'messages[3].tool_calls[0].function.name'",
            "This organization has been disabled.",
        ] {
            assert!(!is_too_long(&text.to_lowercase()), "{text}");
        }
    }
}
