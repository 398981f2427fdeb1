//! What the record holds of conversations that an agent keeps itself: each call's messages are recorded as far as they
//! differ from those of the call before.

use super::{Event, Trajectory, conversation};
use crate::model::{Message, Request, Tool};

/// Bytes of what an agent has said that are recorded. One that rewrites a long history at every call has it recorded again
/// each time, and would fill the disk.
const ROOM: usize = 64 << 20;

/// What the record says so far.
pub(super) struct AskedRecord {
    /// The conversation.
    shown: Vec<Message>,
    tools: Vec<Tool>,
    /// Bytes that may still be recorded of what the agent says.
    pub(super) room: usize,
}

impl Default for AskedRecord {
    fn default() -> Self {
        Self { shown: Vec::new(), tools: Vec::new(), room: ROOM }
    }
}

impl AskedRecord {
    /// Records what is asked beyond what the record holds, unless there is no room for it.
    pub(super) fn asked(&mut self, request: &Request, trajectory: &mut Trajectory) -> bool {
        let has_room = self.reserve(request);
        if has_room {
            self.write(request, trajectory);
        }
        has_room
    }

    /// Takes the room for what is asked, if there is so much.
    pub(super) fn reserve(&mut self, request: &Request) -> bool {
        let kept = self.kept(request);
        let tools = (self.tools != request.tools).then_some(&request.tools);
        let size = serde_json::to_vec(&(&request.messages[kept..], tools)).map_or(usize::MAX, |text| text.len());
        let Some(room) = self.room.checked_sub(size) else { return false };
        self.room = room;
        true
    }

    /// Records what is asked beyond what the record holds.
    pub(super) fn write(&mut self, request: &Request, trajectory: &mut Trajectory) {
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

    /// Messages of the record that what is asked goes on from.
    fn kept(&self, request: &Request) -> usize {
        self.shown.iter().zip(&request.messages).take_while(|(ours, theirs)| ours == theirs).count()
    }

    /// Takes note of an event that is in the record.
    pub(super) fn take(&mut self, event: &Event) {
        conversation::take(&mut self.shown, event);
    }

    /// The conversation is this one, with what was recorded since.
    pub(super) fn is(&mut self, messages: Vec<Message>) {
        self.shown = messages;
    }
}
