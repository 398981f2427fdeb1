//! Failures of one try of a call: whether and when to retry, and the error to report.
//!
//! Retried, and reported as [`ModelError::Unavailable`] if no retry helps: no connection, a broken or late answer,
//! statuses 408, 409, 425, 429 and 5xx, and bodies that are not a reply.
//!
//! Not retried, because the outcome would be the same:
//! - conversations that are too long or blocked by a content filter; each provider reports these in other words and
//!   under several statuses;
//! - statuses 400 and 422, by which providers refuse something in the history: [`ModelError::Rejected`]. But at an
//!   attempt's first call, the history contains nothing that a model wrote. If this program, and not an external agent,
//!   wrote the request of that call, the request may be wrong for this model: [`ModelError::Denied`], marked as
//!   [doubtful](FailedTry::doubtful);
//! - statuses 401, 402 and 404 (a bad key, an empty account, an unknown model): [`ModelError::Denied`];
//! - every other status: [`ModelError::Denied`], marked as [doubtful](FailedTry::doubtful).

use std::time::Duration;

use axum::http::HeaderMap;
use genai::webc;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::error::with_causes;

use super::waits::{LONGEST_WAIT, wait_in_body, wait_in_headers};
use super::{ModelError, Usage, lengths, wire};

/// Maximum characters quoted from a provider's answer in an error.
const QUOTED: usize = 400;

/// The HTTP client's text for a failed connection, to recognise it inside errors whose type is hidden.
const NO_CONNECTION: &str = "client error (Connect)";

/// Phrases, in lower case, for a conversation blocked by a content filter: OpenAI's code and message, Azure's code and
/// two messages, Anthropic's message, `OpenRouter`'s message, Gemini's reason, DeepSeek's message, DashScope's two
/// codes, the code of Volcengine, xAI's and Z.ai's messages.
const FILTERED: [&str; 14] = [
    "invalid_prompt",
    "violating our usage policy",
    "content_filter",
    "content_policy_violation",
    "content management policy",
    "content filtering policy",
    "your input was flagged",
    "prohibited_content",
    "content exists risk",
    "data_inspection_failed",
    "datainspectionfailed",
    "sensitivecontentdetected",
    "content violates usage guidelines",
    "敏感内容",
];

/// Phrases, in lower case, for a busy server or a rate limit, under statuses that can also mean something else:
/// OpenAI's and Anthropic's error types, Gemini's status, Bedrock's exceptions, DashScope's, Moonshot's and Z.ai's
/// codes, and sentences of proxies.
const BUSY: [&str; 20] = [
    "rate limit",
    "rate_limit",
    "ratelimit",
    "rate-limit",
    "too many requests",
    "requests per minute",
    "tokens per minute",
    "throttl",
    "overloaded",
    "resource_exhausted",
    "quota",
    "over capacity",
    "at capacity",
    "server is busy",
    "server busy",
    "temporarily unavailable",
    "try again later",
    "try again in",
    "retry later",
    "serviceunavailable",
];

/// Phrases, in lower case, that show an invalid key or account if the status alone does not show it: three codes of
/// OpenAI, one message of Anthropic, one reason and two messages of Gemini.
const NO_ACCESS: [&str; 11] = [
    "insufficient_quota",
    "billing_not_active",
    "billing_hard_limit_reached",
    "credit balance is too low",
    "api_key_invalid",
    "api key not valid",
    "user location is not supported",
    "key limit exceeded",
    "used all available credits",
    "run out of credits",
    "monthly spending limit",
];

/// Groq's error code for a reply that it does not return because of an invalid tool call.
pub(super) const INVALID_CALL: &str = "tool_use_failed";

/// Charges of failed tries of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FailedCharges {
    /// Tokens that the provider reports as charged.
    pub(super) usage: Usage,
    /// Number of tries for which the provider may have charged an unknown amount.
    pub(super) unanswered: u32,
}

impl std::ops::AddAssign for FailedCharges {
    fn add_assign(&mut self, other: Self) {
        self.usage += other.usage;
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
    }
}

/// A failed try of a call.
#[derive(Debug)]
pub(super) struct FailedTry {
    /// The error to report if there is no retry.
    pub(super) error: ModelError,
    /// Whether a retry may help.
    pub(super) retry: bool,
    /// The wait that the provider asks for.
    pub(super) wait: Option<Duration>,
    /// Tokens that the provider reports as charged for this try.
    pub(super) usage: Usage,
    /// Number of tries for which the provider may have charged an unknown amount: the request was sent, but no usage
    /// figures arrived.
    pub(super) unanswered: u32,
    /// For [`ModelError::Denied`]: whether the provider perhaps refuses only this conversation, for instance because of
    /// a filter or a firewall.
    pub(super) doubtful: bool,
    /// The text that the model wrote, if the provider refuses to return it as a reply because it contains an invalid
    /// tool call.
    pub(super) generation: Option<String>,
}

impl FailedTry {
    /// Creates an infrastructure failure, which is worth a retry.
    pub(super) fn passing(cause: impl Into<String>) -> Self {
        Self { retry: true, ..Self::lasting(ModelError::Unavailable(cause.into())) }
    }

    /// Same as [`Self::passing`], for a try that was sent, and perhaps charged, but got no complete answer.
    pub(super) fn unanswered(cause: impl Into<String>) -> Self {
        Self { unanswered: 1, ..Self::passing(cause) }
    }

    /// Creates a permanent failure, which is not retried.
    pub(super) fn lasting(error: ModelError) -> Self {
        Self {
            error,
            retry: false,
            wait: None,
            usage: Usage::default(),
            unanswered: 0,
            doubtful: false,
            generation: None,
        }
    }

    /// Returns what the provider charged, or may have charged.
    pub(super) const fn charges(&self) -> FailedCharges {
        FailedCharges { usage: self.usage, unanswered: self.unanswered }
    }

    /// Adds the charges of other failed tries of the same call.
    pub(super) fn add(&mut self, charges: FailedCharges) {
        self.usage += charges.usage;
        self.unanswered = self.unanswered.saturating_add(charges.unanswered);
    }

    /// Converts an error of `genai`. The key is removed from all quoted text. `first` is whether this is an attempt's
    /// first call and this program wrote the request: if such a request is refused, the set-up is to blame.
    pub(super) fn from_genai(error: &genai::Error, key: Option<&str>, first: bool) -> Self {
        match error {
            genai::Error::WebModelCall { webc_error, .. } | genai::Error::WebAdapterCall { webc_error, .. } => {
                Self::from_web(webc_error, key, first)
            }
            genai::Error::ChatResponseGeneration { response_body, cause, .. } => {
                Self::from_odd_body(response_body, cause, key, first)
            }
            genai::Error::HttpError { status, body, headers, .. } => {
                Self::from_answer(status.as_u16(), body, headers, key, first)
            }
            // This error comes from a stream: `body` is an error event, an invalid event, or the reason why the stream
            // ended.
            genai::Error::ChatResponse { body, .. } => {
                let body = if body.get("error").is_some() { body.clone() } else { json!({"error": body}) };
                Self::from_odd_body(&body, "an error in its stream", key, first)
            }
            genai::Error::StreamParse { serde_error, .. } => {
                Self::unanswered(format!("the answer is a broken stream: {serde_error}"))
            }
            genai::Error::WebStream { error, .. } => {
                if let Some(error) = error.downcast_ref::<genai::Error>() {
                    return Self::from_genai(error, key, first);
                }
                let causes = quote(&without(key, &with_causes(error.as_ref())));
                if causes.contains(NO_CONNECTION) { Self::passing(causes) } else { Self::unanswered(causes) }
            }
            // An event of the stream lacks a field.
            genai::Error::JsonValueExt(_) | genai::Error::SerdeJson(_) => Self::unanswered(format!(
                "the answer is not a model's reply: {}",
                quote(&without(key, &error.to_string()))
            )),
            other => Self::lasting(ModelError::Denied(quote(&without(key, &other.to_string())))),
        }
    }

    fn from_web(error: &webc::Error, key: Option<&str>, first: bool) -> Self {
        let safe = |text: &str| quote(&without(key, text));
        match error {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                Self::from_answer(status.as_u16(), body, headers, key, first)
            }
            webc::Error::ResponseFailedNotJson { content_type, body } => {
                Self::passing(format!("the answer is `{}`, not JSON: {}", safe(content_type), safe(body)))
            }
            webc::Error::ResponseFailedInvalidJson { body, cause } => {
                Self::unanswered(format!("the answer is broken JSON ({cause}): {}", safe(body)))
            }
            webc::Error::Reqwest(error) => {
                let causes = safe(&with_causes(error));
                if error.is_builder() {
                    Self::lasting(ModelError::Denied(format!("the request cannot be sent: {causes}")))
                } else if error.is_connect() {
                    Self::passing(causes)
                } else {
                    Self::unanswered(causes)
                }
            }
            webc::Error::JsonValueExt(error) => {
                Self::passing(format!("the answer is not a model's reply: {}", safe(&error.to_string())))
            }
        }
    }

    fn from_answer(status: u16, body: &str, headers: &HeaderMap, key: Option<&str>, first: bool) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let wait = wait_in_headers(header("retry-after-ms"), header("retry-after"), crate::files::now());
        Self::from_status(status, &without(key, body), wait, first)
    }

    /// Interprets an error status and its body. `first` has the same meaning as in [`Self::from_genai`].
    fn from_status(status: u16, body: &str, wait: Option<Duration>, first: bool) -> Self {
        let said = format!("status {status}: {}", said_in(body));
        if let Some(text) = failed_generation(body) {
            return Self { generation: Some(text), ..Self::lasting(ModelError::Rejected(said)) };
        }
        let lower = body.to_lowercase();
        let wait = wait.or_else(|| wait_in_body(&lower));
        // An empty account is reported with the status of a rate limit, but waiting does not help.
        if says_no_access(&lower) {
            return Self::lasting(ModelError::Denied(said));
        }
        let of_the_conversation = !matches!(status, 401 | 404 | 429);
        let is_of_length = of_the_conversation && status != 403;
        if status == 413 || is_of_length && lengths::has_known_words(&lower) {
            return Self::lasting(ModelError::ContextLength(said));
        }
        // Search only JSON for phrases of a content filter. Other bodies do not come from the provider: a proxy's HTML
        // page, for instance, may mention filters of the proxy.
        let is_json = serde_json::from_str::<IgnoredAny>(body).is_ok();
        if of_the_conversation && is_json && FILTERED.iter().any(|words| lower.contains(words)) {
            return Self::lasting(ModelError::Refused(said));
        }
        let is_busy = matches!(status, 400 | 422) && BUSY.iter().any(|words| lower.contains(words));
        if matches!(status, 400 | 422 | 500) && !is_busy && lengths::is_too_long(&lower) {
            return Self::lasting(ModelError::ContextLength(said));
        }
        match status {
            _ if is_busy => Self { wait: wait.filter(|wait| *wait <= LONGEST_WAIT), ..Self::passing(said) },
            408 | 409 | 425 | 429 | 500..=599 => match wait {
                Some(wait) if wait > LONGEST_WAIT => {
                    Self { retry: false, ..Self::passing(format!("{said} (it asks to wait {} s)", wait.as_secs())) }
                }
                wait => Self { wait, ..Self::passing(said) },
            },
            400 | 422 if !first => Self::lasting(ModelError::Rejected(said)),
            401 | 402 | 404 => Self::lasting(ModelError::Denied(said)),
            _ => Self { doubtful: true, ..Self::lasting(ModelError::Denied(said)) },
        }
    }

    /// Interprets an answer with a successful status whose body is not a reply: some providers report errors this way.
    pub(super) fn from_odd_body(body: &Value, cause: &str, key: Option<&str>, first: bool) -> Self {
        let usage = wire::reported_usage(body);
        // OpenRouter may put the error inside the first choice of the body.
        let error = body.get("error").filter(|error| !error.is_null()).or_else(|| body.pointer("/choices/0/error"));
        if let Some(error) = error.filter(|error| !error.is_null()) {
            let code = error.get("code").and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
            let status = code.and_then(|code| u16::try_from(code).ok());
            let status = status.filter(|code| *code >= 400).unwrap_or(500);
            let text = without(key, &json!({ "error": error }).to_string());
            return Self { usage, ..Self::from_status(status, &text, None, first) };
        }
        if let Some(said) =
            body.get("base_resp").filter(|said| said["status_code"].as_u64().is_some_and(|code| code > 0))
        {
            return Self { usage, ..Self::from_minimax(said, key, first) };
        }
        if let Some(reason) = body.pointer("/promptFeedback/blockReason").and_then(Value::as_str) {
            let error = ModelError::Refused(format!("the prompt was blocked: {reason}"));
            return Self { usage, ..Self::lasting(error) };
        }
        let (cause, text) = (quote(&without(key, cause)), without(key, &body.to_string()));
        Self { usage, ..Self::passing(format!("the answer is not a model's reply ({cause}): {}", quote(&text))) }
    }
}

impl FailedTry {
    /// Interprets an error of `MiniMax`, which answers with status 200 and its own error code ("Error codes" in its
    /// documentation).
    fn from_minimax(said: &Value, key: Option<&str>, first: bool) -> Self {
        let text = without(key, said["status_msg"].as_str().unwrap_or_default());
        let code = said["status_code"].as_u64().unwrap_or_default();
        let what = format!("error {code}: {}", quote(&text));
        match code {
            1000..=1002 | 1013 | 1024 | 1033 => Self::passing(what),
            1004 | 1008 | 2049 => Self::lasting(ModelError::Denied(what)),
            1026 | 1027 => Self::lasting(ModelError::Refused(what)),
            1039 => Self::lasting(ModelError::ContextLength(what)),
            _ => Self::from_status(400, &json!({"error": {"message": what}}).to_string(), None, first),
        }
    }
}

/// Whether a text in lower case says that the key or the account is invalid.
pub(super) fn says_no_access(lower: &str) -> bool {
    NO_ACCESS.iter().any(|words| lower.contains(words))
}

/// Removes the key from a text. Must run before the text is shortened, which could leave half of the key.
fn without(key: Option<&str>, text: &str) -> String {
    key.map_or_else(|| text.to_owned(), |key| text.replace(key, "[key]"))
}

/// Returns the text of a reply that Groq refuses to return because a tool call in it is invalid.
fn failed_generation(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let error = body.get("error").unwrap_or(&body);
    let text = error.get("failed_generation")?.as_str()?;
    (error["code"] == INVALID_CALL && !text.trim().is_empty()).then(|| text.to_owned())
}

/// Returns the message inside an error's JSON body, or the body itself if it contains no message.
fn said_in(body: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed.as_ref().and_then(|body| {
        // Gemini wraps its errors in a list on some endpoints.
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        error.get("message").and_then(Value::as_str).or_else(|| error.as_str())
    });
    quote(message.unwrap_or(body))
}

/// Shortens a text to quote it in an error, and puts it on one line.
fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED) {
        Some((cut, _)) => format!("{}...", &line[..cut]),
        None if line.is_empty() => "(nothing)".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_is_read_from_the_body_of_an_error() {
        let gemini = r#"{"error":{"code":429,"message":"Quota exceeded.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay": "55s"}]}}"#;
        for (body, milliseconds) in [
            (gemini, Some(55_000)),
            ("Rate limit reached. Please try again in 20s. Visit the page of your limits.", Some(20_000)),
            ("Please try again in 6ms.", Some(6)),
            ("Please try again in 1m26.4s.", Some(86_400)),
            ("Please retry after 2 seconds or use 5 keys.", Some(2000)),
            ("Please retry in 34.074824224s.", Some(34_074)),
            ("Retry your request after 1 minute", Some(60_000)),
            ("Try again in a moment, or in 3 tries", None),
            ("try again in 3 tries", None),
        ] {
            let failure = FailedTry::from_status(429, body, None, false);
            assert_eq!(failure.wait.map(|wait| wait.as_millis()), milliseconds, "{body}");
            assert!(failure.retry, "{body}");
        }
        let stated = FailedTry::from_status(429, gemini, Some(Duration::from_secs(3)), false);
        assert_eq!(stated.wait, Some(Duration::from_secs(3)), "the header comes first");
        assert!(!FailedTry::from_status(429, "try again in 2 hours", None, false).retry);
    }

    #[test]
    fn only_a_wrong_key_an_empty_account_and_an_unknown_model_deny_every_conversation() {
        for status in [301, 400, 403, 405, 422, 451] {
            let failure = FailedTry::from_status(status, "<html>blocked</html>", None, true);
            assert!(failure.doubtful && matches!(failure.error, ModelError::Denied(_)), "{status}: {failure:?}");
        }
        for status in [401, 402, 404] {
            assert!(!FailedTry::from_status(status, "no", None, true).doubtful, "{status}");
        }
        assert!(!FailedTry::from_status(403, "api key not valid", None, true).doubtful);
    }

    #[test]
    fn the_text_of_an_invalid_tool_call_is_read_from_the_error() {
        let error = json!({"error": {"message": "Failed to call a function.", "code": "tool_use_failed",
            "failed_generation": "<function=ls>{"}});
        assert_eq!(failed_generation(&error.to_string()).as_deref(), Some("<function=ls>{"));
        let streamed = FailedTry::from_odd_body(&error, "an error in its stream", None, false);
        assert_eq!(streamed.generation.as_deref(), Some("<function=ls>{"));
        for body in [json!({"error": {"code": "tool_use_failed", "failed_generation": ""}}), json!({"error": "no"})] {
            assert_eq!(failed_generation(&body.to_string()), None, "{body}");
        }
    }

    #[test]
    fn context_overflow_is_distinguished_from_rate_limits() {
        let long = r#"{"error":{"message":"This model's maximum context length is 128000 tokens."}}"#;
        for status in [400, 413, 422, 500] {
            let failure = FailedTry::from_status(status, long, None, false);
            assert!(!failure.retry && matches!(failure.error, ModelError::ContextLength(_)), "{status}: {failure:?}");
        }
        let limited = FailedTry::from_status(429, "the maximum context length counts towards your rate", None, false);
        assert!(matches!(limited.error, ModelError::Unavailable(_)), "a limited rate stays one: {limited:?}");
    }

    #[test]
    fn a_busy_provider_is_retried_under_any_status() {
        for (status, message) in [
            (400, "Rate limit reached for requests"),
            (400, "ThrottlingException: Too many requests, please wait before trying again."),
            (400, "You exceeded your current quota of tokens per minute"),
            (422, "The server is overloaded"),
            (400, "The engine is currently overloaded, please try again later"),
        ] {
            let body = json!({"error": {"message": message}}).to_string();
            for first in [false, true] {
                let failure = FailedTry::from_status(status, &body, None, first);
                assert!(failure.retry && matches!(failure.error, ModelError::Unavailable(_)), "{message}: {failure:?}");
            }
        }
    }

    #[test]
    fn only_statuses_of_transient_failures_are_retried() {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            let failure = FailedTry::from_status(status, "", None, false);
            assert!(failure.retry && matches!(failure.error, ModelError::Unavailable(_)), "{status}");
        }
        for status in [301, 400, 401, 402, 403, 404, 405, 413, 422] {
            assert!(!FailedTry::from_status(status, "", None, false).retry, "{status}");
        }
    }

    #[test]
    fn errors_that_a_retry_cannot_fix_are_classified_as_denied_whatever_their_http_status() {
        for status in [301, 401, 402, 403, 404, 405] {
            let failure = FailedTry::from_status(status, "no", None, false);
            assert!(matches!(failure.error, ModelError::Denied(_)), "{status}");
        }
        let bodies = [
            (429, r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#),
            (429, r#"{"error":{"message":"Your account is not active","code":"billing_not_active"}}"#),
            (400, r#"{"error":{"message":"Billing hard limit has been reached","code":"billing_hard_limit_reached"}}"#),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
            ),
            (403, r#"{"error":{"type":"permission_error","message":"Your API key does not have permission"}}"#),
            (403, "<html>This page was blocked by the content_filter of your company.</html>"),
        ];
        for (status, body) in bodies {
            let failure = FailedTry::from_status(status, body, None, false);
            assert!(!failure.retry && matches!(failure.error, ModelError::Denied(_)), "{body}: {failure:?}");
        }
    }

    #[test]
    fn every_providers_error_for_a_filtered_conversation_is_recognised() {
        let bodies = [
            (400, r#"{"error":{"message":"Invalid prompt: your prompt was flagged","code":"invalid_prompt"}}"#),
            (
                400,
                r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400}}"#,
            ),
            (400, r#"{"error":{"message":"Your request was rejected.","code":"content_policy_violation"}}"#),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
            ),
            (
                403,
                r#"{"error":{"code":403,"message":"m requires moderation. Your input was flagged for \"violence\""}}"#,
            ),
            (400, r#"{"error":{"code":400,"message":"PROHIBITED_CONTENT","status":"INVALID_ARGUMENT"}}"#),
            (
                400,
                r#"{"error":{"message":"Content Exists Risk","type":"invalid_request_error","code":"invalid_request_error"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}"#,
            ),
            (400, r#"{"code":"DataInspectionFailed","message":"Output data may contain inappropriate content."}"#),
            (400, r#"{"error":{"code":"InputTextSensitiveContentDetected","message":"The request failed."}}"#),
            (403, r#"{"error":"Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}"#),
            (400, r#"{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}"#),
        ];
        for (status, body) in bodies {
            for first in [false, true] {
                let failure = FailedTry::from_status(status, body, None, first);
                assert!(!failure.retry && matches!(failure.error, ModelError::Refused(_)), "{body}: {failure:?}");
            }
        }
    }

    #[test]
    fn status_400_or_422_means_denied_at_the_first_call_and_rejected_at_later_calls() {
        let body = r#"{"error":{"message":"Invalid 'messages[3].tool_calls[0].function.name'"}}"#;
        for status in [400, 422] {
            assert!(matches!(FailedTry::from_status(status, body, None, false).error, ModelError::Rejected(_)));
            assert!(matches!(FailedTry::from_status(status, body, None, true).error, ModelError::Denied(_)));
        }
    }

    #[test]
    fn an_error_in_an_answer_with_status_200_is_recognised() {
        let read = |body: &Value| FailedTry::from_odd_body(body, "no choices", None, false).error;
        let error = |code: Value, message: &str| json!({"error": {"code": code, "message": message}});
        assert!(matches!(read(&error(json!(502), "upstream")), ModelError::Unavailable(_)));
        assert!(matches!(read(&error(json!("insufficient_quota"), "no credit")), ModelError::Denied(_)));
        assert!(matches!(read(&error(json!("content_filter"), "blocked")), ModelError::Refused(_)));
        assert!(matches!(read(&error(json!(404), "no such model")), ModelError::Denied(_)));
    }

    #[test]
    fn a_call_is_given_up_if_the_provider_demands_a_long_wait() {
        let failure = FailedTry::from_status(429, "slow down", Some(Duration::from_hours(1)), false);
        assert!(!failure.retry);
        assert_eq!(failure.error.to_string(), "the provider failed: status 429: slow down (it asks to wait 3600 s)");
    }

    #[test]
    fn the_api_key_is_removed_from_an_error_text_before_the_text_is_shortened() {
        let body = format!("{}sk-1234567890", "x".repeat(QUOTED - 5));
        let failure = FailedTry::from_status(401, &without(Some("sk-1234567890"), &body), None, false);
        assert!(failure.error.to_string().ends_with("x[key]"), "{failure:?}");
    }
}
