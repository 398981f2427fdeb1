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
        let kept = self.shown.iter().zip(&request.messages).take_while(|(ours, theirs)| ours == theirs).count();
        let tools = (self.tools != request.tools).then(|| request.tools.clone());
        let messages = request.messages[kept..].to_vec();
        let size = serde_json::to_vec(&(&messages, &tools)).map_or(usize::MAX, |text| text.len());
        let Some(room) = self.room.checked_sub(size) else { return false };
        self.room = room;
        if let Some(tools) = &tools {
            self.tools.clone_from(tools);
        }
        let event = Event::Asked { call: request.call, kept, messages, tools, sampling: request.sampling.clone() };
        self.take(&event);
        trajectory.push(&event);
        true
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
