//! Records the conversations of an agent that keeps its conversation itself. For each call, the leading messages that
//! it shares with the previous call are not recorded again.

use std::borrow::Cow;

use super::conversation;
use crate::agent::{Event, Trajectory};
use crate::model::{Message, Request, Tool};

/// Maximum bytes of requests recorded per attempt. Without this limit, an agent that rewrites a long history at every
/// call would fill the disk, because its whole history is recorded each time.
const ROOM: usize = 64 << 20;

/// The requests recorded so far.
pub(in crate::agent) struct RequestRecord {
    /// The conversation as it is recorded so far.
    shown: Vec<Message>,
    tools: Cow<'static, [Tool]>,
    /// Number of bytes of requests that may still be recorded.
    pub(in crate::agent) room: usize,
}

impl Default for RequestRecord {
    fn default() -> Self {
        Self { shown: Vec::new(), tools: Cow::default(), room: ROOM }
    }
}

impl RequestRecord {
    /// Records a request's messages from the first one that differs from the recorded conversation, and its tools if
    /// they have changed. If they need more bytes than `room`, records nothing and returns false.
    pub(in crate::agent) fn record(&mut self, request: &Request, trajectory: &mut Trajectory) -> bool {
        let has_room = self.reserve(request);
        if has_room {
            self.write(request, trajectory);
        }
        has_room
    }

    /// Subtracts from `room` the size of what [`Self::write`] would record of a request. Returns false if the room is
    /// too small.
    pub(in crate::agent) fn reserve(&mut self, request: &Request) -> bool {
        let kept = self.kept(request);
        let tools = (self.tools != request.tools).then_some(&request.tools);
        let size = serde_json::to_vec(&(&request.messages[kept..], tools)).map_or(usize::MAX, |text| text.len());
        let Some(room) = self.room.checked_sub(size) else { return false };
        self.room = room;
        true
    }

    /// Records a request's messages from the first one that differs from the recorded conversation, and its tools if
    /// they have changed. The caller must have [reserved room](Self::reserve) for them.
    pub(in crate::agent) fn write(&mut self, request: &Request, trajectory: &mut Trajectory) {
        let kept = self.kept(request);
        let has_other_tools = self.tools != request.tools;
        let messages = request.messages[kept..].to_vec();
        if has_other_tools {
            self.tools.clone_from(&request.tools);
        }
        let tools = has_other_tools.then(|| request.tools.to_vec());
        let (sampling, wishes) = (request.sampling.clone(), request.wishes.clone());
        let event = Event::Asked { call: request.call, kept, messages, tools, sampling, wishes };
        self.take(&event);
        trajectory.push(&event);
    }

    /// Returns the number of leading messages that the request shares with the recorded conversation.
    fn kept(&self, request: &Request) -> usize {
        self.shown.iter().zip(&request.messages).take_while(|(ours, theirs)| ours == theirs).count()
    }

    /// Updates the recorded conversation with an event that is already in the trajectory.
    pub(in crate::agent) fn take(&mut self, event: &Event) {
        conversation::take(&mut self.shown, event);
    }

    /// Sets the recorded conversation to `messages`, all of which must already be in the trajectory.
    pub(in crate::agent) fn is(&mut self, messages: Vec<Message>) {
        self.shown = messages;
    }
}
