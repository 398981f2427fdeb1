//! Token ids and log-probabilities, as returned by the server. Nothing is tokenised here: what the server does not
//! return is missing.
//!
//! vLLM returns the ids of prompt and reply if the request sets `return_token_ids`. llama.cpp's server returns the id
//! of each reply token together with its log-probability. Other servers return log-probabilities without ids.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Reply;
use super::features::ModelTarget;

/// Prefix of ids that vLLM writes in place of token texts if its server runs with `return_tokens_as_token_ids`.
const ID_PREFIX: &str = "token_id:";

/// Token ids and log-probabilities of one call. Each list is empty if the server did not return it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyTokens {
    /// Ids of the prompt's tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompt: Vec<u32>,
    /// Ids of the reply's tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completion: Vec<u32>,
    /// Log-probabilities (natural logarithm) of the reply's tokens, one per token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<f64>,
}

/// Adds the fields that ask for token ids and log-probabilities. Returns false if the protocol has no such fields.
pub(super) fn request(target: &ModelTarget, body: &mut Map<String, Value>) -> bool {
    if target.kind != genai::adapter::AdapterKind::OpenAI {
        return false;
    }
    body.insert("logprobs".to_owned(), json!(true));
    if target.own_server {
        // Without this number, llama.cpp's server lists twenty alternatives for each token.
        body.insert("top_logprobs".to_owned(), json!(1));
        body.insert("return_token_ids".to_owned(), json!(true));
    }
    true
}

/// Collects token ids, log-probabilities and the weights' version from a whole body or from the events of a stream.
#[derive(Debug, Default)]
pub(super) struct TokenCollector {
    prompt: Vec<u32>,
    completion: Vec<u32>,
    logprobs: Vec<f64>,
    /// The token id in each entry of the list of log-probabilities; `None` for an entry without an id.
    beside: Vec<Option<u32>>,
    weights: Option<String>,
}

impl TokenCollector {
    /// Whether an event of a stream may contain data to collect. Most events contain none, and parsing takes time.
    pub(super) fn concerns(&self, event: &str) -> bool {
        event.contains("token_ids")
            || event.contains("logprobs")
            || self.weights.is_none() && (event.contains("fingerprint") || event.contains("weight_version"))
    }

    /// Collects from a whole body or from one event of a stream.
    pub(super) fn add(&mut self, body: &Value) {
        let ids = |pointer: &str| body.pointer(pointer).and_then(ids);
        if let Some(prompt) = ids("/prompt_token_ids").or_else(|| ids("/choices/0/prompt_token_ids")) {
            self.prompt = prompt;
        }
        self.completion.extend(ids("/choices/0/token_ids").unwrap_or_default());
        let listed = body.pointer("/choices/0/logprobs/content").and_then(Value::as_array);
        for token in listed.into_iter().flatten() {
            let written = || token.get("token")?.as_str()?.strip_prefix(ID_PREFIX)?.parse().ok();
            self.beside.push(token.get("id").and_then(id).or_else(written));
            self.logprobs.extend(token.get("logprob").and_then(Value::as_f64));
        }
        if self.weights.is_none() {
            let mut told = ["/metadata/weight_version", "/weight_version", "/system_fingerprint"].into_iter();
            self.weights = told.find_map(|pointer| body.pointer(pointer)?.as_str()).map(str::to_owned);
        }
    }

    /// Moves everything collected into the reply. Drops the reply's token ids or log-probabilities if their number
    /// contradicts the reported token count or if the two numbers differ: some servers lose tokens in streams.
    pub(super) fn complete(self, reply: &mut Reply) {
        let Self { prompt, mut completion, mut logprobs, beside, weights } = self;
        reply.weights = weights;
        if completion.is_empty() {
            completion = beside.into_iter().collect::<Option<Vec<u32>>>().unwrap_or_default();
        }
        let count = |list: usize| reply.usage.output == 0 || reply.usage.output == list as u64;
        if !count(completion.len()) {
            completion.clear();
        }
        if !count(logprobs.len()) || !completion.is_empty() && completion.len() != logprobs.len() {
            logprobs.clear();
        }
        let tokens = ReplyTokens { prompt, completion, logprobs };
        reply.tokens = (tokens != ReplyTokens::default()).then_some(tokens);
    }
}

/// Reads a list of ids; `None` if an element is not an id.
fn ids(value: &Value) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(id).collect()
}

fn id(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Usage;

    fn collected(bodies: &[Value], written: u64) -> Reply {
        let mut reply = Reply { usage: Usage { output: written, ..Usage::default() }, ..Reply::default() };
        let mut collector = TokenCollector::default();
        for body in bodies.iter().filter(|body| collector.concerns(&body.to_string())).collect::<Vec<_>>() {
            collector.add(body);
        }
        collector.complete(&mut reply);
        reply
    }

    #[test]
    fn ids_of_prompt_and_reply_are_read_from_a_body_and_from_the_events_of_a_stream() {
        let whole = json!({
            "prompt_token_ids": [1, 2, 3],
            "choices": [{ "token_ids": [4, 5], "logprobs": { "content": [{ "logprob": -0.5 }, { "logprob": -1.0 }] } }],
            "system_fingerprint": "v1",
        });
        let reply = collected(std::slice::from_ref(&whole), 2);
        let tokens = ReplyTokens { prompt: vec![1, 2, 3], completion: vec![4, 5], logprobs: vec![-0.5, -1.0] };
        assert_eq!((reply.tokens, reply.weights.as_deref()), (Some(tokens.clone()), Some("v1")));
        let piece = |id: u32, probability: f64| json!({ "choices": [{ "token_ids": [id], "logprobs": { "content": [{ "logprob": probability }] } }] });
        let first = json!({ "prompt_token_ids": [1, 2, 3], "choices": [{ "delta": {} }] });
        let words = json!({ "choices": [{ "delta": { "content": "a" } }] });
        assert_eq!(collected(&[first, piece(4, -0.5), words, piece(5, -1.0)], 2).tokens, Some(tokens));
    }

    #[test]
    fn ids_beside_log_probabilities_are_read_if_every_token_has_one() {
        let body = |second: Value| {
            let content = json!([{ "id": 7, "token": "a", "logprob": -0.1 }, second]);
            json!({ "choices": [{ "logprobs": { "content": content } }] })
        };
        let tokens = collected(&[body(json!({ "token": "token_id:9", "logprob": -0.2 }))], 2).tokens.unwrap();
        assert_eq!((tokens.completion, tokens.logprobs), (vec![7, 9], vec![-0.1, -0.2]));
        let tokens = collected(&[body(json!({ "token": "b", "logprob": -0.2 }))], 2).tokens.unwrap();
        assert_eq!((tokens.completion, tokens.logprobs), (vec![], vec![-0.1, -0.2]));
    }

    #[test]
    fn token_lists_with_wrong_lengths_or_invalid_ids_are_left_out() {
        let body = json!({ "choices": [{ "token_ids": [4, 5], "logprobs": { "content": [{ "logprob": -0.5 }] } }] });
        assert_eq!(collected(std::slice::from_ref(&body), 3).tokens, None);
        let tokens = collected(std::slice::from_ref(&body), 2).tokens.unwrap();
        assert_eq!((tokens.completion, tokens.logprobs), (vec![4, 5], vec![]));
        for odd in [json!([4, -5]), json!([4, "5"]), json!([4, 5.5]), json!({ "0": 4 }), json!([4, 1_u64 << 40])] {
            assert_eq!(collected(&[json!({ "choices": [{ "token_ids": odd }] })], 2).tokens, None);
        }
    }
}
