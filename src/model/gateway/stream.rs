//! A reply as the events of a stream: pieces as they come from the model, and at the end what they did not say.

use super::protocol::Protocol;
use super::stops::{safe, stop_at};
use super::{Finish, Head, anthropic, openai};
use crate::model::{Piece, Reply};

/// A stream under way.
pub(super) struct Stream {
    protocol: Protocol,
    head: Head,
    /// What the text stops at.
    stops: Vec<String>,
    begun: bool,
    /// Whether one of them has come.
    stopped: bool,
    /// Whether reasoning was sent.
    reasoned: bool,
    /// The text so far.
    text: String,
    /// Bytes of it that were sent: the rest may begin with what it stops at.
    sent: usize,
}

impl Stream {
    pub(super) fn new(protocol: Protocol, head: Head, stops: Vec<String>) -> Self {
        Self { protocol, head, stops, begun: false, stopped: false, reasoned: false, text: String::new(), sent: 0 }
    }

    /// The events for a piece; none where it must wait for more.
    pub(super) fn piece(&mut self, piece: Piece) -> String {
        match piece {
            Piece::Text(_) if self.stopped => String::new(),
            Piece::Text(text) => {
                self.text.push_str(&text);
                // What was sent held no beginning of a stop, so only the rest is searched.
                let (length, stopped) = safe(&self.text[self.sent..], &self.stops);
                self.stopped = stopped;
                self.say(self.sent + length)
            }
            Piece::Reasoning(text) => self.reason(text),
        }
    }

    /// The last events: what of the reply is not said yet, its calls, why it ended.
    pub(super) fn end(&mut self, reply: &Reply, finish: Finish) -> String {
        let mut events = String::new();
        if let Some(reasoning) = reply.reasoning.as_ref().filter(|_| !self.reasoned) {
            events += &self.reason(reasoning.clone());
        }
        // What was sent cannot be taken back, should the reply differ.
        if reply.text.get(..self.sent) == self.text.get(..self.sent) {
            self.text.clone_from(&reply.text);
        }
        let whole = stop_at(&self.text, &self.stops).len();
        events += &self.say(whole);
        events += &self.begin();
        events += &match self.protocol {
            Protocol::OpenAi => openai::end(&self.head, reply, finish),
            Protocol::Anthropic => {
                // A message has a block at least.
                let block =
                    if self.sent == 0 && reply.tool_calls.is_empty() { anthropic::begin_text() } else { String::new() };
                let has_text = self.sent > 0 || !block.is_empty();
                block + &anthropic::end(reply, finish, has_text)
            }
        };
        events
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) {
            return String::new();
        }
        match self.protocol {
            Protocol::OpenAi => openai::begin(&self.head),
            Protocol::Anthropic => anthropic::begin(&self.head),
        }
    }

    /// Says the text up to here.
    fn say(&mut self, end: usize) -> String {
        if end <= self.sent {
            return String::new();
        }
        let mut events = self.begin();
        let text = &self.text[self.sent..end];
        match self.protocol {
            Protocol::OpenAi => events += &openai::piece(&self.head, &Piece::Text(text.to_owned())),
            Protocol::Anthropic => {
                if self.sent == 0 {
                    events += &anthropic::begin_text();
                }
                events += &anthropic::text(text);
            }
        }
        self.sent = end;
        events
    }

    /// Anthropic's thoughts are signed, which nobody here can do: they are left out.
    fn reason(&mut self, text: String) -> String {
        self.reasoned = true;
        match self.protocol {
            Protocol::OpenAi => self.begin() + &openai::piece(&self.head, &Piece::Reasoning(text)),
            Protocol::Anthropic => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn stream(protocol: Protocol, stops: &[String]) -> Stream {
        Stream::new(protocol, Head { model: "m".into(), number: 0, counts: true }, stops.to_vec())
    }

    /// The text that a client puts together from the events.
    fn read(events: &str) -> String {
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let text = |event: Value| {
            let text = event.pointer("/choices/0/delta/content").or_else(|| event.pointer("/delta/text"));
            text.and_then(Value::as_str).map(str::to_owned)
        };
        events.filter_map(text).collect()
    }

    proptest! {
        #[test]
        fn the_pieces_of_a_reply_make_up_its_text_before_its_stops(
            pieces in prop::collection::vec("[abé]{0,4}", 0..12), stops in prop::collection::vec("[abé]{0,3}", 0..3),
            sent in 0usize..13,
        ) {
            let text = pieces.concat();
            let reply = Reply { text: text.clone(), ..Reply::default() };
            for protocol in [Protocol::OpenAi, Protocol::Anthropic] {
                let mut stream = stream(protocol, &stops);
                // Some of the pieces come, the rest is in the reply.
                let mut events: String = pieces.iter().take(sent).map(|piece| stream.piece(Piece::Text(piece.clone()))).collect();
                events += &stream.end(&reply, Finish::Stop);
                prop_assert_eq!(read(&events), stop_at(&text, &stops));
            }
        }
    }
}
