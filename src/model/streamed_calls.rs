//! Tool calls of a streamed chat completion, assembled from its events.
//!
//! `genai` also assembles them, but relies on OpenAI's numbering. Other servers give several calls the same index,
//! count from 1, or leave out the index: `genai` then merges, doubles or loses calls, and a huge index makes it run out
//! of memory.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::ToolCall;

/// The calls in the events so far.
#[derive(Debug, Default)]
pub(super) struct StreamedCalls(Vec<StreamedCall>);

#[derive(Debug)]
struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl StreamedCalls {
    /// Adds the parts of calls in one event's `delta`.
    pub(super) fn add(&mut self, delta: &Value) {
        let parts = delta.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for part in parts.iter().filter(|part| part.get("function").is_some_and(Value::is_object)) {
            let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let (index, id, name) = (part.get("index").and_then(Value::as_u64), text("/id"), text("/function/name"));
            let arguments = match part.pointer("/function/arguments") {
                Some(Value::String(written)) => written.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            match self.continued(index, id, name) {
                Some(place) => self.0[place].arguments.push_str(&arguments),
                None => self.0.push(StreamedCall { index, id: id.to_owned(), name: name.to_owned(), arguments }),
            }
        }
    }

    /// Returns the place of the call that a part continues; `None` if the part begins a call.
    fn continued(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let has_id = |call: &StreamedCall| !id.is_empty() && call.id == id;
        let has_index = |call: &StreamedCall| index.is_some() && call.index == index;
        // Every call begins with its name, so a part without a name continues a call. If no call has the part's id,
        // because the id is missing or, as in some releases of vLLM, different in each part, use the index or else the
        // last call.
        if name.is_empty() {
            let by_id = self.0.iter().rposition(has_id);
            return by_id.or_else(|| self.0.iter().rposition(has_index)).or_else(|| self.0.len().checked_sub(1));
        }
        // Some servers repeat the name in each part.
        self.0.iter().rposition(|call| {
            let is_same = has_id(call) || id.is_empty() && has_index(call);
            is_same && call.name == name && serde_json::from_str::<IgnoredAny>(&call.arguments).is_err()
        })
    }

    /// Returns the calls; a call that came without an id has an empty one.
    pub(super) fn into_calls(self) -> impl Iterator<Item = ToolCall> {
        self.0.into_iter().map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: ToolCall::arguments_in(&call.arguments),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the ids, names and arguments of the calls that these parts make up, one event per part.
    fn calls(parts: &[Value]) -> Vec<(String, String, Value)> {
        let mut calls = StreamedCalls::default();
        for part in parts {
            calls.add(&json!({ "tool_calls": [part] }));
        }
        calls.into_calls().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.to_owned(), name.to_owned(), arguments)
    }

    #[test]
    fn calls_are_told_apart_whatever_their_indexes_are() {
        let part = |index: Value, id: Value, name: Value, arguments: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
        let whole = |index: Value, id: &str| part(index, json!(id), json!("ls"), "{\"a\":1}");
        let two = [call("x", "ls", json!({"a": 1})), call("y", "ls", json!({"a": 1}))];
        let null = || json!(null);
        assert_eq!(calls(&[whole(json!(0), "x"), whole(json!(0), "y")]), two, "the same index twice");
        assert_eq!(calls(&[whole(null(), "x"), whole(null(), "y")]), two, "no index");
        assert_eq!(calls(&[whole(json!(1), "x"), whole(json!(2), "y")]), two, "indexes from 1");
        assert_eq!(calls(&[whole(json!(u32::MAX), "x"), whole(json!(u64::MAX), "y")]), two, "huge indexes");
        let begun = [part(json!(0), json!("x"), json!("ls"), ""), part(json!(1), json!("y"), json!("ls"), "{\"a\"")];
        let rest = |id: Value| [part(json!(0), id.clone(), null(), "{\"a\":1}"), part(json!(1), id, json!(""), ":1}")];
        assert_eq!(calls(&[begun.clone(), rest(null())].concat()), two, "parts without an id");
        assert_eq!(calls(&[begun, rest(json!("random"))].concat()), two, "parts with ids of their own");
        let repeated = ["{\"a\"", ":1}"].map(|text| part(json!(0), json!("x"), json!("ls"), text));
        assert_eq!(calls(&repeated), two[..1], "parts that repeat id and name");
        let unnumbered = [whole(null(), ""), part(null(), null(), json!("rm"), "{"), part(null(), null(), null(), "}")];
        assert_eq!(calls(&unnumbered), [call("", "ls", json!({"a": 1})), call("", "rm", json!({}))]);
    }

    #[test]
    fn arguments_that_are_missing_are_an_empty_object_and_broken_ones_stay_text() {
        let part = |function: Value| json!({"index": 0, "id": "x", "function": function});
        assert_eq!(calls(&[part(json!({"name": "ls"}))]), [call("x", "ls", json!({}))]);
        assert_eq!(calls(&[part(json!({"name": "ls", "arguments": {"a": 1}}))]), [call("x", "ls", json!({"a": 1}))]);
        assert_eq!(calls(&[part(json!({"name": "ls", "arguments": "{\"a"}))]), [call("x", "ls", json!("{\"a"))]);
        assert!(calls(&[json!(null), json!(7), json!({}), json!({"index": 0, "function": null})]).is_empty());
    }
}
