//! Writes a reply as items, whole or as the events of a stream.

use serde_json::{Map, Value, json};

use super::super::openai::{error, written};
use super::super::stream::EventWriter;
use super::super::{CallContext, Finish, Refusal, ToolForm};
use crate::model::{Reply, ReplyPiece, ToolCall, Usage};

/// Writes the whole reply as one body.
pub(in super::super) fn body(head: CallContext, reply: &Reply, finish: &Finish) -> Value {
    let mut items = ResponseItems::new(head);
    // Make the same items as a stream would, so that a body and a stream end with the same list.
    if let Some(reasoning) = &reply.reasoning {
        items.piece(&ReplyPiece::Reasoning(reasoning.clone()));
    }
    if !reply.text.is_empty() {
        items.piece(&ReplyPiece::Text(reply.text.clone()));
    }
    items.close_all(reply, finish);
    items.response(reply, finish)
}

/// Writes a refusal as the last event of a stream.
pub(in super::super) fn error_events(refusal: &Refusal) -> String {
    let error = &error(refusal)["error"];
    let said = json!({"code": error["code"], "message": error["message"]});
    let response = json!({"id": "resp", "object": "response", "status": "failed", "error": said, "output": []});
    written_event("response.failed", &json!({"type": "response.failed", "response": response}))
}

/// Writes a response and its items.
pub(in super::super) struct ResponseItems {
    head: CallContext,
    /// Number of events so far.
    number: u64,
    /// Finished items.
    done: Vec<Value>,
    open: Option<OpenItem>,
    has_reasoned: bool,
}

/// The unfinished item: its kind and its text so far.
struct OpenItem {
    is_reasoning: bool,
    text: String,
}

impl ResponseItems {
    pub(in super::super) const fn new(head: CallContext) -> Self {
        Self { head, number: 0, done: Vec::new(), open: None, has_reasoned: false }
    }

    fn id(&self) -> String {
        format!("resp_{}", self.head.number)
    }

    /// Returns the id of the unfinished item or, if there is none, of the next item.
    fn item_id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.head.number, self.done.len())
    }

    fn event(&mut self, kind: &str, said: Value) -> String {
        let mut event =
            Map::from_iter([("type".to_owned(), json!(kind)), ("sequence_number".to_owned(), json!(self.number))]);
        self.number += 1;
        if let Value::Object(said) = said {
            event.extend(said);
        }
        written_event(kind, &Value::Object(event))
    }

    /// Writes an event about the unfinished item.
    fn of_item(&mut self, kind: &str, said: Value) -> String {
        let (prefix, place) = self.place();
        let mut said = said;
        said["item_id"] = json!(self.item_id(prefix));
        said["output_index"] = json!(self.done.len());
        said[place] = json!(0);
        self.event(kind, said)
    }

    fn place(&self) -> (&'static str, &'static str) {
        if self.open.as_ref().is_some_and(|open| open.is_reasoning) {
            ("rs", "summary_index")
        } else {
            ("msg", "content_index")
        }
    }

    /// Begins a reasoning item or a message, after ending the unfinished item. Does nothing if the unfinished item is
    /// already of the wanted type.
    fn within(&mut self, is_reasoning: bool) -> String {
        if self.open.as_ref().is_some_and(|open| open.is_reasoning == is_reasoning) {
            return String::new();
        }
        let mut events = self.close();
        let item = if is_reasoning {
            self.has_reasoned = true;
            json!({"type": "reasoning", "id": self.item_id("rs"), "summary": []})
        } else {
            self.message("in_progress", &[])
        };
        self.open = Some(OpenItem { is_reasoning, text: String::new() });
        let index = self.done.len();
        events += &self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        let (kind, part) = if is_reasoning {
            ("response.reasoning_summary_part.added", json!({"type": "summary_text", "text": ""}))
        } else {
            ("response.content_part.added", text_part(""))
        };
        events + &self.of_item(kind, json!({"part": part}))
    }

    fn message(&self, status: &str, content: &[Value]) -> Value {
        let id = self.item_id("msg");
        json!({"type": "message", "id": id, "status": status, "role": "assistant", "content": content})
    }

    fn close(&mut self) -> String {
        let Some(open) = &self.open else { return String::new() };
        let (text, is_reasoning) = (open.text.clone(), open.is_reasoning);
        let (kinds, part, item) = if is_reasoning {
            let part = json!({"type": "summary_text", "text": text});
            let item = json!({
                "type": "reasoning", "id": self.item_id("rs"), "summary": [part], "encrypted_content": self.head.token(),
            });
            (["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"], part, item)
        } else {
            let part = text_part(&text);
            let item = self.message("completed", std::slice::from_ref(&part));
            (["response.output_text.done", "response.content_part.done"], part, item)
        };
        let mut events = self.of_item(kinds[0], json!({"text": text}));
        events += &self.of_item(kinds[1], json!({"part": part}));
        self.open = None;
        events + &self.finish(&item)
    }

    fn finish(&mut self, item: &Value) -> String {
        let index = self.done.len();
        self.done.push(item.clone());
        self.event("response.output_item.done", json!({"output_index": index, "item": item}))
    }

    /// Ends the unfinished item and adds the tool calls. If the reply has thoughts whose text was not sent, first adds
    /// an empty reasoning item. It carries the token that represents these thoughts in later requests.
    fn close_all(&mut self, reply: &Reply, finish: &Finish) -> String {
        let mut events = String::new();
        if let Finish::Refused(text) = finish {
            return self.close() + &self.refusal(text);
        }
        if !self.has_reasoned && !reply.thoughts.is_empty() {
            events += &self.within(true);
        }
        if self.open.is_none() && self.done.is_empty() && reply.tool_calls.is_empty() {
            // The protocol demands at least one item per response.
            events += &self.within(false);
        }
        events += &self.close();
        for call in &reply.tool_calls {
            events += &self.call(call);
        }
        events
    }

    /// Writes a message in which the model declines.
    fn refusal(&mut self, text: &str) -> String {
        let (index, id) = (self.done.len(), self.item_id("msg"));
        let part = json!({"type": "refusal", "refusal": text});
        let within = |said: Value| {
            let mut said = said;
            said["item_id"] = json!(id);
            said["output_index"] = json!(index);
            said["content_index"] = json!(0);
            said
        };
        let begun = self.message("in_progress", &[]);
        let mut events = self.event("response.output_item.added", json!({"output_index": index, "item": begun}));
        let empty = json!({"part": {"type": "refusal", "refusal": ""}});
        events += &self.event("response.content_part.added", within(empty));
        events += &self.event("response.refusal.delta", within(json!({"delta": text})));
        events += &self.event("response.refusal.done", within(json!({"refusal": text})));
        events += &self.event("response.content_part.done", within(json!({"part": part})));
        let whole = self.message("completed", &[part]);
        events + &self.finish(&whole)
    }

    fn call(&mut self, call: &ToolCall) -> String {
        let index = self.done.len();
        let special = self.head.kinds.get(&call.name);
        let form = special.map_or(ToolForm::Function, |special| special.form);
        let name = special.map_or(&call.name, |special| &special.name);
        let (mut item, delta, kind, key) = match form {
            ToolForm::Search => {
                let item = json!({
                    "type": "tool_search_call", "id": self.item_id("tsc"), "call_id": call.id, "execution": "client",
                    "arguments": call.arguments, "status": "completed",
                });
                let begun = json!({"output_index": index, "item": item});
                return self.event("response.output_item.added", begun) + &self.finish(&item);
            }
            ToolForm::Custom => {
                let input = call.arguments.get("input").and_then(Value::as_str).map(str::to_owned);
                let input = input.unwrap_or_else(|| written(&call.arguments));
                let item = json!({"type": "custom_tool_call", "id": self.item_id("ctc"), "name": name});
                (item, input, "response.custom_tool_call_input", "input")
            }
            ToolForm::Function => {
                let item = json!({"type": "function_call", "id": self.item_id("fc"), "name": name});
                (item, written(&call.arguments), "response.function_call_arguments", "arguments")
            }
        };
        if let Some(namespace) = special.and_then(|special| special.namespace.as_ref()) {
            item["namespace"] = json!(namespace);
        }
        item["call_id"] = json!(call.id);
        item[key] = json!("");
        item["status"] = json!("in_progress");
        let id = item["id"].clone();
        let mut events = self.event("response.output_item.added", json!({"output_index": index, "item": item}));
        let said = json!({"item_id": id, "output_index": index, "delta": delta});
        events += &self.event(&format!("{kind}.delta"), said);
        let said = json!({"item_id": id, "output_index": index, key: delta});
        events += &self.event(&format!("{kind}.done"), said);
        item[key] = json!(delta);
        item["status"] = json!("completed");
        events + &self.finish(&item)
    }

    /// Returns the whole response.
    fn response(&self, reply: &Reply, finish: &Finish) -> Value {
        let is_cut = *finish == Finish::Length;
        let details = is_cut.then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.id(), "object": "response", "created_at": 0, "model": self.head.model,
            "status": if is_cut { "incomplete" } else { "completed" }, "incomplete_details": details, "error": null,
            "output": self.done, "usage": usage(&reply.usage), "parallel_tool_calls": true, "tool_choice": "auto",
            "tools": [], "instructions": null, "metadata": {}, "temperature": null, "top_p": null,
        })
    }
}

impl EventWriter for ResponseItems {
    fn begin(&mut self) -> String {
        let response = json!({
            "id": self.id(), "object": "response", "created_at": 0, "model": self.head.model, "status": "in_progress",
            "output": [], "error": null, "incomplete_details": null, "parallel_tool_calls": true, "tools": [],
        });
        self.event("response.created", json!({"response": response}))
            + &self.event("response.in_progress", json!({"response": response}))
    }

    fn piece(&mut self, piece: &ReplyPiece) -> String {
        let (is_reasoning, text, kind) = match piece {
            ReplyPiece::Text(text) => (false, text, "response.output_text.delta"),
            ReplyPiece::Reasoning(text) => (true, text, "response.reasoning_summary_text.delta"),
        };
        let events = self.within(is_reasoning);
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        events + &self.of_item(kind, json!({"delta": text}))
    }

    fn end(&mut self, reply: &Reply, finish: &Finish) -> String {
        let events = self.close_all(reply, finish);
        let response = self.response(reply, finish);
        let kind = if *finish == Finish::Length { "response.incomplete" } else { "response.completed" };
        events + &self.event(kind, json!({"response": response}))
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn written_event(kind: &str, event: &Value) -> String {
    format!("event: {kind}\ndata: {event}\n\n")
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input, "output_tokens": usage.output,
        "total_tokens": usage.input.saturating_add(usage.output),
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
