//! A reply as a stream of events: pieces as the model sends them, and at the end the rest of the reply.

use super::Finish;
use super::stops::{safe, stop_at};
use crate::model::{Reply, ReplyPiece};

/// Writes a reply's events in a protocol's format.
pub(super) trait EventWriter: Send {
    /// Writes the beginning of a stream.
    fn begin(&mut self) -> String;
    /// Writes a piece of text or thoughts.
    fn piece(&mut self, piece: &ReplyPiece) -> String;
    /// Writes the end, after all text.
    fn end(&mut self, reply: &Reply, finish: &Finish) -> String;
}

/// A stream that is being written.
pub(super) struct Stream {
    events: Box<dyn EventWriter>,
    /// Texts at which the reply ends.
    stops: Vec<String>,
    begun: bool,
    /// Whether a stop text was reached.
    stopped: bool,
    /// Whether any reasoning was sent.
    reasoned: bool,
    /// The reply's text so far.
    text: String,
    /// Number of bytes of `text` that were sent. The rest is held back because it may be the beginning of a stop text.
    sent: usize,
}

impl Stream {
    pub(super) fn new(events: Box<dyn EventWriter>, stops: Vec<String>) -> Self {
        Self { events, stops, begun: false, stopped: false, reasoned: false, text: String::new(), sent: 0 }
    }

    /// Returns the stop texts.
    pub(super) fn stops(&self) -> &[String] {
        &self.stops
    }

    /// Returns the events for a piece; empty if the piece is held back until more text arrives.
    pub(super) fn piece(&mut self, piece: ReplyPiece) -> String {
        match piece {
            ReplyPiece::Text(_) if self.stopped => String::new(),
            ReplyPiece::Text(text) => {
                self.text.push_str(&text);
                // The bytes already sent cannot be the beginning of a stop text, so search only the rest.
                let (length, stopped) = safe(&self.text[self.sent..], &self.stops);
                self.stopped = stopped;
                self.send_text(self.sent + length)
            }
            ReplyPiece::Reasoning(_) => {
                self.reasoned = true;
                self.begin() + &self.events.piece(&piece)
            }
        }
    }

    /// Returns the last events of a stream: the rest of the text, the tool calls, and the reason why the reply ended.
    pub(super) fn end(&mut self, reply: &Reply, finish: &Finish) -> String {
        let mut events = String::new();
        if let Some(reasoning) = reply.reasoning.as_ref().filter(|_| !self.reasoned) {
            events += &self.piece(ReplyPiece::Reasoning(reasoning.clone()));
        }
        // Take the final text unless it contradicts what was already sent, which cannot be taken back.
        if reply.text.get(..self.sent) == self.text.get(..self.sent) {
            self.text.clone_from(&reply.text);
        }
        let whole = stop_at(&self.text, &self.stops).len();
        events += &self.send_text(whole);
        events += &self.begin();
        events + &self.events.end(reply, finish)
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) { String::new() } else { self.events.begin() }
    }

    /// Sends the text up to byte `end`.
    fn send_text(&mut self, end: usize) -> String {
        if end <= self.sent {
            return String::new();
        }
        let text = self.text[self.sent..end].to_owned();
        self.sent = end;
        self.begin() + &self.events.piece(&ReplyPiece::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::CallContext;
    use super::super::protocol::WireProtocol;
    use super::*;

    /// Joins the text of the events, as a client does.
    fn read(events: &str) -> String {
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let text = |event: Value| {
            let places = ["/choices/0/delta/content", "/delta/text", "/candidates/0/content/parts/0/text"];
            let text = places.iter().find_map(|place| event.pointer(place)?.as_str());
            let of_responses =
                (event["type"] == "response.output_text.delta").then(|| event["delta"].as_str()).flatten();
            text.or(of_responses).map(str::to_owned)
        };
        events.filter_map(text).collect()
    }

    proptest! {
        #[test]
        fn the_streamed_pieces_concatenate_to_the_text_before_the_first_stop_sequence(
            pieces in prop::collection::vec("[abé]{0,4}", 0..12), stops in prop::collection::vec("[abé]{0,3}", 0..3),
            sent in 0usize..13,
        ) {
            let text = pieces.concat();
            let reply = Reply { text: text.clone(), ..Reply::default() };
            for protocol in [WireProtocol::Chat, WireProtocol::Messages, WireProtocol::Responses, WireProtocol::Gemini] {
                let mut stream = Stream::new(protocol.events(CallContext::default()), stops.clone());
                // Only some pieces arrive; the rest of the text is only in the final reply.
                let mut events: String = pieces.iter().take(sent).map(|piece| stream.piece(ReplyPiece::Text(piece.clone()))).collect();
                events += &stream.end(&reply, &Finish::Stop);
                prop_assert_eq!(read(&events), stop_at(&text, &stops), "{:?}", protocol);
            }
        }
    }
}
