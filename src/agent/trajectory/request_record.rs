//! Recording of conversations that an agent keeps itself: for each call, only the messages that differ from the
//! previous call's.

use super::conversation;
use crate::agent::{Event, Trajectory};
use crate::model::{Message, Request, Tool};

/// Maximum bytes of requests recorded per attempt. An agent that rewrites a long history at every call has all of it
/// recorded each time and would otherwise fill the disk.
const ROOM: usize = 64 << 20;

/// The requests recorded so far.
pub(in crate::agent) struct RequestRecord {
    /// The conversation as recorded.
    shown: Vec<Message>,
    tools: Vec<Tool>,
    /// Bytes of requests that may still be recorded.
    pub(in crate::agent) room: usize,
}

impl Default for RequestRecord {
    fn default() -> Self {
        Self { shown: Vec::new(), tools: Vec::new(), room: ROOM }
    }
}

impl RequestRecord {
    /// Records what is new in a request. Returns false, and records nothing, if there is no room left.
    pub(in crate::agent) fn record(&mut self, request: &Request, trajectory: &mut Trajectory) -> bool {
        let has_room = self.reserve(request);
        if has_room {
            self.write(request, trajectory);
        }
        has_room
    }

    /// Takes the room that a request needs; returns false if there is too little.
    pub(in crate::agent) fn reserve(&mut self, request: &Request) -> bool {
        let kept = self.kept(request);
        let tools = (self.tools != request.tools).then_some(&request.tools);
        let size = serde_json::to_vec(&(&request.messages[kept..], tools)).map_or(usize::MAX, |text| text.len());
        let Some(room) = self.room.checked_sub(size) else { return false };
        self.room = room;
        true
    }

    /// Records what is new in a request, without checking the room.
    pub(in crate::agent) fn write(&mut self, request: &Request, trajectory: &mut Trajectory) {
        let kept = self.kept(request);
        let tools = (self.tools != request.tools).then(|| request.tools.clone());
        let messages = request.messages[kept..].to_vec();
        if let Some(tools) = &tools {
            self.tools.clone_from(tools);
        }
        let (sampling, wishes) = (request.sampling.clone(), request.wishes.clone());
        let event = Event::Asked { call: request.call, kept, messages, tools, sampling, wishes };
        self.take(&event);
        trajectory.push(&event);
    }

    /// Number of leading messages that the request shares with the record.
    fn kept(&self, request: &Request) -> usize {
        self.shown.iter().zip(&request.messages).take_while(|(ours, theirs)| ours == theirs).count()
    }

    /// Applies an event that is in the trajectory already.
    pub(in crate::agent) fn take(&mut self, event: &Event) {
        conversation::take(&mut self.shown, event);
    }

    /// Replaces the recorded conversation.
    pub(in crate::agent) fn is(&mut self, messages: Vec<Message>) {
        self.shown = messages;
    }
}
