//! Messages of OpenEnv's WebSocket protocol.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::episode::reward::figures;
use crate::episode::tasks::{Split, TaskChoice};
use crate::episode::{Episode, EpisodeOutcome, Observed, Opening};
use crate::error::Error;
use crate::run::ClientName;
use crate::score::read_python_json;

/// Pseudo tool with which clients wait for the result of a long call, or for the verdict.
pub const WAIT: &str = "wait";

/// OpenEnv's codes for the reason why a client's message cannot be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    InvalidJson,
    UnknownType,
    ValidationError,
    ExecutionError,
    CapacityReached,
    SessionError,
}

impl ErrorCode {
    const fn name(self) -> &'static str {
        match self {
            Self::InvalidJson => "INVALID_JSON",
            Self::UnknownType => "UNKNOWN_TYPE",
            Self::ValidationError => "VALIDATION_ERROR",
            Self::ExecutionError => "EXECUTION_ERROR",
            Self::CapacityReached => "CAPACITY_REACHED",
            Self::SessionError => "SESSION_ERROR",
        }
    }
}

/// An error message for the client.
#[derive(Debug)]
pub struct WireError {
    pub code: ErrorCode,
    pub message: String,
    /// Whether the client's message may have been meant as a call. It then counts as a malformed call of the running
    /// episode.
    pub is_call: bool,
}

impl WireError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_call: false }
    }

    /// Creates an error of a message that may have been meant as a call.
    pub fn of_call(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { is_call: true, ..Self::new(code, message) }
    }

    /// Creates a message about an invalid request, from an error and its hint.
    pub fn of(error: &Error) -> Self {
        let message = match &error.hint {
            Some(hint) => format!("{error} ({hint})"),
            None => error.to_string(),
        };
        Self::new(ErrorCode::ValidationError, message)
    }

    pub fn encode(&self) -> String {
        json!({ "type": "error", "data": { "message": self.message, "code": self.code.name() } }).to_string()
    }
}

/// A message of a client.
#[derive(Debug)]
pub enum ClientMessage {
    Reset(Box<ResetRequest>),
    Step(StepRequest),
    State,
    Close,
}

/// A request for an episode.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    sample: Option<String>,
    #[serde(alias = "task", alias = "item")]
    paper: Option<String>,
    n: Option<usize>,
    seed: Option<u64>,
    split: Option<String>,
    index: Option<usize>,
    client: Option<String>,
    /// OpenEnv's own id, which is not used.
    #[serde(rename = "episode_id")]
    _episode_id: Option<Value>,
}

/// A call of a tool.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    pub tool: String,
    #[serde(default)]
    arguments: Value,
    /// Text that the client's model wrote; it is stored in the trajectory.
    #[serde(default)]
    pub text: String,
    /// Metadata, which every OpenEnv action may have; not used.
    #[serde(default, rename = "metadata")]
    _metadata: Value,
}

impl ResetRequest {
    /// Returns which task the client requests.
    pub fn choice(&self) -> Result<TaskChoice, WireError> {
        let split = self.split.as_deref().map_or(Ok(Split::default()), str::parse);
        Ok(TaskChoice {
            sample: self.sample.clone(),
            item: self.paper.clone(),
            n: self.n,
            seed: self.seed,
            split: split.map_err(|error| WireError::of(&error))?,
            index: self.index,
        })
    }

    /// Returns the client's name, if it gives one.
    pub fn client(&self) -> Result<Option<ClientName>, WireError> {
        self.client.as_deref().map(str::parse).transpose().map_err(|error| WireError::of(&error))
    }
}

impl StepRequest {
    /// Returns the arguments. Arguments given as text are parsed as JSON, because models' APIs return them in this
    /// form.
    pub fn arguments(&self) -> Value {
        match &self.arguments {
            Value::String(text) => read_python_json(text).unwrap_or_else(|_| Value::String(text.clone())),
            Value::Null => Value::Object(Map::new()),
            other => other.clone(),
        }
    }
}

/// Parses a message as Python does, because Python's clients write `NaN`, which JSON does not allow.
pub fn parse(text: &str) -> Result<ClientMessage, WireError> {
    #[derive(Deserialize)]
    struct Envelope {
        #[serde(rename = "type")]
        kind: Option<Value>,
        #[serde(default)]
        data: Value,
    }
    let envelope = read_python_json(text)
        .map_err(|error| WireError::of_call(ErrorCode::InvalidJson, format!("not JSON: {error}")))?;
    let invalid = |what: String| WireError::new(ErrorCode::ValidationError, what);
    // Replace a list by null, which is refused below: serde would accept the list's elements as the envelope's fields.
    let envelope = if envelope.is_object() { envelope } else { Value::Null };
    let Envelope { kind, data } = serde_json::from_value(envelope)
        .map_err(|_| invalid("a message is an object like {\"type\": \"reset\", \"data\": {}}".to_owned()))?;
    let data = if data.is_null() { Value::Object(Map::new()) } else { data };
    match kind.as_ref().and_then(Value::as_str) {
        Some("reset") => {
            let request = serde_json::from_value(data).map_err(|error| invalid(format!("wrong `reset`: {error}")))?;
            Ok(ClientMessage::Reset(Box::new(request)))
        }
        Some("step") => {
            let example = "an action is like {\"tool\": \"command_line\", \"arguments\": {\"command\": \"ls\"}}";
            let request = serde_json::from_value(data).map_err(|error| {
                WireError::of_call(ErrorCode::ValidationError, format!("wrong `step`: {error}; {example}"))
            })?;
            Ok(ClientMessage::Step(request))
        }
        Some("state") => Ok(ClientMessage::State),
        Some("close") => Ok(ClientMessage::Close),
        other => {
            let shown: String = other.unwrap_or_default().chars().take(40).collect();
            let what =
                format!("unknown type `{}`: there are `reset`, `step`, `state` and `close`", shown.escape_debug());
            Err(WireError::new(ErrorCode::UnknownType, what))
        }
    }
}

fn observation(observation: &Value, reward: Option<f64>, done: bool, metadata: &Map<String, Value>) -> String {
    let data = json!({ "observation": observation, "reward": reward, "done": done, "metadata": metadata });
    json!({ "type": "observation", "data": data }).to_string()
}

fn names(episode: &Episode) -> Map<String, Value> {
    let mut names = Map::new();
    names.insert("sample".to_owned(), json!(episode.sample.id()));
    names.insert("n".to_owned(), json!(episode.sample.n()));
    names.insert("attempt".to_owned(), json!(episode.attempt));
    names.insert("agent".to_owned(), json!(episode.label));
    names
}

/// Formats the first observation.
pub fn opened(episode: &Episode, opening: &Opening, tools: &[Value]) -> String {
    let shown = json!({
        "text": opening.prompt, "prompt": opening.prompt, "system": opening.system, "tools": tools, "pending": false,
    });
    let mut metadata = names(episode);
    metadata.insert("steps_left".to_owned(), json!(opening.steps));
    metadata.insert("seconds_left".to_owned(), json!(opening.seconds));
    observation(&shown, None, false, &metadata)
}

/// Formats the output of a call.
pub fn observed(episode: &Episode, observed: &Observed) -> String {
    let shown = json!({ "text": observed.text, "error": observed.is_error, "pending": false });
    observation(&shown, None, false, &names(episode))
}

/// Formats the answer that a result is still pending, which is sent if a call or the verdict takes long.
pub fn pending(episode: &Episode) -> String {
    let text = format!("not finished yet: call `{WAIT}` until `pending` is false");
    observation(&json!({ "text": text, "pending": true }), None, false, &names(episode))
}

/// Formats the verdict.
pub fn ended(episode: &Episode, outcome: &EpisodeOutcome) -> String {
    let text = match (&outcome.lost, outcome.reward) {
        (Some(_), _) | (None, None) => {
            "The episode was lost to a failure of the machine and does not count.".to_owned()
        }
        (None, Some(reward)) => format!("The episode is over, with a reward of {reward}."),
    };
    observation(&json!({ "text": text, "pending": false }), outcome.reward, true, &metadata(episode, outcome))
}

fn metadata(episode: &Episode, outcome: &EpisodeOutcome) -> Map<String, Value> {
    let mut metadata = names(episode);
    if let Some(record) = &outcome.record {
        metadata.extend(figures(record));
    } else {
        metadata.insert("lost".to_owned(), json!(true));
    }
    metadata
}

/// Formats the state of a session.
pub fn state(episode: Option<&Episode>) -> String {
    let Some(episode) = episode else {
        return json!({ "type": "state", "data": { "episode_id": null, "step_count": 0 } }).to_string();
    };
    let outcome = episode.outcome();
    let mut data = names(episode);
    data.insert("episode_id".to_owned(), json!(format!("{}.{}", episode.sample, episode.attempt)));
    data.insert("step_count".to_owned(), json!(episode.steps()));
    data.insert("pending".to_owned(), json!(outcome.is_none() && episode.is_busy()));
    data.insert("done".to_owned(), json!(outcome.is_some()));
    if let Some(outcome) = outcome {
        data.insert("reward".to_owned(), json!(outcome.reward));
        data.insert("metadata".to_owned(), metadata(episode, &outcome).into());
    }
    json!({ "type": "state", "data": data }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> ErrorCode {
        parse(text).unwrap_err().code
    }

    #[test]
    fn each_kind_of_invalid_message_gets_the_expected_error_code() {
        assert_eq!(code("{"), ErrorCode::InvalidJson);
        assert_eq!(code("[1]"), ErrorCode::ValidationError);
        assert_eq!(code(r#"{"type": "mcp", "data": {}}"#), ErrorCode::UnknownType);
        assert_eq!(code("{}"), ErrorCode::UnknownType);
        assert_eq!(code(r#"{"type": "reset", "data": {"papr": "x"}}"#), ErrorCode::ValidationError);
        assert_eq!(code(r#"{"type": "reset", "data": {"n": -1}}"#), ErrorCode::ValidationError);
        assert_eq!(code(r#"{"type": "step", "data": {}}"#), ErrorCode::ValidationError);
        let Ok(ClientMessage::Reset(asked)) = parse(r#"{"type": "reset", "data": {"split": "dev"}}"#) else { panic!() };
        assert_eq!(asked.choice().unwrap_err().code, ErrorCode::ValidationError);
    }

    #[test]
    fn only_messages_that_may_have_been_calls_count_as_malformed_calls() {
        let is_call = |text: &str| parse(text).unwrap_err().is_call;
        let deep =
            format!(r#"{{"type":"step","data":{{"tool":"a","arguments":{}1{}}}}}"#, "[".repeat(200), "]".repeat(200));
        for text in ["{", &deep, r#"{"type":"step","data":{"tool":"\ud83d"}}"#, r#"{"type":"step","data":{"tool":5}}"#]
        {
            assert!(is_call(text), "{text}");
        }
        for text in ["[1]", "{}", r#"{"type":"mcp"}"#, r#"{"type":"reset","data":{"papr":"x"}}"#] {
            assert!(!is_call(text), "{text}");
        }
    }

    #[test]
    fn arguments_may_be_an_object_or_a_string_of_json() {
        let arguments = |text: &str| match parse(text).unwrap() {
            ClientMessage::Step(step) => step.arguments(),
            other => panic!("{other:?}"),
        };
        let object = json!({ "command": "ls" });
        assert_eq!(arguments(r#"{"type":"step","data":{"tool":"bash","arguments":{"command":"ls"}}}"#), object);
        assert_eq!(arguments(r#"{"type":"step","data":{"tool":"bash","arguments":"{\"command\":\"ls\"}"}}"#), object);
        assert_eq!(arguments(r#"{"type":"step","data":{"tool":"bash","metadata":{"a":1}}}"#), json!({}));
        let answer = json!({ "answer": { "Experiment 1": { "mean": "NaN" } } });
        let written = r#"{"answer":{"Experiment 1":{"mean":NaN}}}"#;
        assert_eq!(
            arguments(&format!(r#"{{"type":"step","data":{{"tool":"submit","arguments":{written}}}}}"#)),
            answer
        );
        let quoted = Value::from(written);
        assert_eq!(arguments(&format!(r#"{{"type":"step","data":{{"tool":"submit","arguments":{quoted}}}}}"#)), answer);
        let long = format!(r#"{{"type":"step","data":{{"tool":"a","arguments":{{"x":1{}}}}}}}"#, "0".repeat(400));
        assert_eq!(arguments(&long), json!({ "x": "Infinity" }));
    }
}
