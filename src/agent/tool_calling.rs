//! How a model calls tools: which ones there are, by which protocol it calls them, and the calls that a reply makes.

use super::protocol::{self, Call, Protocol};
use super::tools::ToolSet;
use crate::model::{self, Reply};

/// How a model acts: with which tools, and how it calls them.
#[derive(Debug, Clone, Copy)]
pub struct ToolCalling {
    /// The tools.
    pub tools: ToolSet,
    /// How they are called.
    pub protocol: Protocol,
    /// Whether a reply may make one call only, as in the paper.
    pub one_call: bool,
}

impl ToolCalling {
    /// The tools that are offered to the provider.
    #[must_use]
    pub const fn offered(&self) -> &'static [model::Tool] {
        match self.protocol {
            Protocol::Tools => self.tools.shown(),
            Protocol::Text => &[],
        }
    }

    /// The calls of a reply, in order; an error when there is none.
    pub fn calls(&self, reply: &Reply) -> Result<Vec<Call>, String> {
        match self.protocol {
            Protocol::Text if reply.tool_calls.is_empty() => protocol::text::calls(&reply.text, &self.tools),
            _ => protocol::calls(&reply.text, &reply.tool_calls, &|name| self.tools.get(name).is_some()),
        }
    }
}
