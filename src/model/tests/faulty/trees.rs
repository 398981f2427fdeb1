//! Faulty values: each part of a good reply is replaced, removed or doubled, and token counts are impossible.

use serde_json::{Value, json};

use super::super::server::{CannedAnswer, TestServer};
use super::bytes::events;
use super::{ProtocolCase, hold, protocols, request};

/// Values that replace a part of a server's reply, to make it faulty.
fn others() -> [Value; 6] {
    [json!(null), json!("\u{1b}[31mx"), json!(-1), json!(u64::MAX), json!({"a": [{"b": null}]}), json!([7, [], null])]
}

/// Returns JSON pointers to all parts of a value. The last pointer is that of the whole value.
fn parts(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(place, value)| (place.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        all.extend(parts(child).into_iter().map(|rest| format!("/{name}{rest}")));
    }
    all.push(String::new());
    all
}

/// Returns the value with one part removed.
fn without(value: &Value, part: &str) -> Value {
    let mut value = value.clone();
    let Some((above, name)) = part.rsplit_once('/') else { return json!(null) };
    match value.pointer_mut(above) {
        Some(Value::Object(fields)) => drop(fields.remove(name)),
        Some(Value::Array(items)) => drop(items.remove(name.parse().unwrap())),
        _ => {}
    }
    value
}

/// Returns variants of the value, each with a description. In each variant, one part is removed or replaced by one of
/// [`others`].
fn mutants(value: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for part in parts(value) {
        for other in others() {
            let mut mutant = value.clone();
            if let Some(place) = mutant.pointer_mut(&part) {
                *place = other.clone();
            }
            all.push((format!("`{part}` is {other}"), mutant));
        }
        all.push((format!("`{part}` is not there"), without(value, &part)));
    }
    all
}

fn replaced(protocol: &ProtocolCase, streamed: bool) -> Vec<(String, CannedAnswer)> {
    if !streamed {
        return mutants(&protocol.whole).into_iter().map(|(what, body)| (what, CannedAnswer::ok(body))).collect();
    }
    let mut all = Vec::new();
    for (place, event) in protocol.stream.iter().enumerate() {
        for (what, mutant) in mutants(event) {
            let mut stream = protocol.stream.clone();
            stream[place] = mutant;
            all.push((format!("event {place}, {what}"), events(&ProtocolCase::written(&stream))));
        }
    }
    all
}

/// Sets all numbers inside the part at the JSON pointer `part` to `count`.
fn counted(value: &Value, part: &str, count: &Value) -> Value {
    let mut value = value.clone();
    for below in value.pointer(part).map(parts).unwrap_or_default() {
        if let Some(place) = value.pointer_mut(&format!("{part}{below}")).filter(|place| place.is_number()) {
            *place = count.clone();
        }
    }
    value
}

fn items_and_counts(protocol: &ProtocolCase, streamed: bool) -> Vec<(String, CannedAnswer)> {
    let mut all = Vec::new();
    let counts = [
        json!(i32::MAX),
        json!(u32::MAX),
        json!(i64::MAX),
        json!(1e18),
        json!(1e300),
        json!(-1),
        json!("9"),
        json!(0.5),
    ];
    for count in &counts {
        let what = format!("all counts are {count}");
        if streamed {
            let stream: Vec<Value> = protocol
                .stream
                .iter()
                .map(|event| {
                    let usages = parts(event)
                        .into_iter()
                        .filter(|part| part.ends_with("sage") || part.ends_with("usageMetadata"));
                    usages.fold(event.clone(), |event, part| counted(&event, &part, count))
                })
                .collect();
            all.push((what, events(&ProtocolCase::written(&stream))));
        } else {
            all.push((what, CannedAnswer::ok(counted(&protocol.whole, protocol.usage, count))));
        }
    }
    if streamed {
        let stream = &protocol.stream;
        for place in 0..stream.len() {
            let [mut gone, mut twice, mut odd] = [stream.clone(), stream.clone(), stream.clone()];
            gone.remove(place);
            twice.insert(place, stream[place].clone());
            odd.insert(place, json!({"type": "banana", "banana": [null]}));
            for (what, stream) in [("gone", gone), ("twice", twice), ("after a strange one", odd)] {
                all.push((format!("event {place} {what}"), events(&ProtocolCase::written(&stream))));
            }
        }
        let back: Vec<Value> = stream.iter().rev().cloned().collect();
        all.push(("backwards".to_owned(), events(&ProtocolCase::written(&back))));
        return all;
    }
    let strange = [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!({}),
        json!({"type": null}),
        json!({"type": "banana"}),
        json!({"type": "web_search_call", "id": 7}),
        json!({"type": "function_call"}),
        json!({"type": "reasoning"}),
        json!({"type": "message"}),
        json!({"type": "message", "content": [null, {"type": "refusal"}]}),
        json!({"type": "tool_use"}),
        json!({"type": "thinking"}),
        json!({"type": "custom"}),
        json!({"functionCall": null}),
        json!({"functionCall": {}}),
        json!({"functionResponse": {}}),
        json!({"executableCode": {"code": "x"}}),
        json!({"inlineData": {"data": "!"}}),
        json!({"text": null}),
        json!({"thought": "yes"}),
        json!({"thoughtSignature": "s"}),
        json!({"function": {}}),
        json!({"function": {"name": "", "arguments": "{"}}),
        json!({"type": "item_reference", "id": "x"}),
    ];
    let items = protocol.whole.pointer(protocol.items).and_then(Value::as_array).unwrap();
    let with = |items: Vec<Value>| {
        let mut whole = protocol.whole.clone();
        *whole.pointer_mut(protocol.items).unwrap() = Value::Array(items);
        CannedAnswer::ok(whole)
    };
    for item in &strange {
        all.push((format!("{item} in front"), with([std::slice::from_ref(item), items].concat())));
        all.push((format!("{item} alone"), with(vec![item.clone()])));
    }
    all.push(("everything twice".to_owned(), with([items.clone(), items.clone()].concat())));
    all.push(("a thousand calls of one id".to_owned(), with(vec![items.last().unwrap().clone(); 1000])));
    all
}

#[tokio::test]
async fn altered_replies_are_read_or_reported_as_server_errors() {
    hold("parts", 100, replaced).await;
}

#[tokio::test]
async fn odd_items_repeated_items_and_impossible_token_counts_are_read_or_reported_as_server_errors() {
    hold("items", 18, items_and_counts).await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_not_a_reply() {
    for protocol in protocols() {
        let server = TestServer::start(vec![CannedAnswer::Close]).await;
        let model = protocol.model(&server, (0.0, 0.0));
        for length in 0..protocol.stream.len() {
            server.answer_with(events(&ProtocolCase::written(&protocol.stream[..length])));
            let (to, _from) = crate::model::pieces();
            let reply = model.stream(&request(), &to).await;
            let (name, enough) = (protocol.spec, length >= protocol.enough);
            assert_eq!(reply.is_ok(), enough, "{name}, {length} events: {reply:?}");
        }
    }
}
