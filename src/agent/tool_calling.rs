//! The tools offered to a model, the protocol by which it calls them, and the parsing of its calls.

use super::tools::ToolSet;
use crate::agent::protocol::{self, ParsedCall, ToolProtocol};
use crate::model::{self, Reply};

/// A tool set with the protocol for calling the tools.
#[derive(Debug, Clone, Copy)]
pub struct ToolCalling {
    /// The tools.
    pub tools: ToolSet,
    /// The protocol.
    pub protocol: ToolProtocol,
    /// Whether a reply may make only one call, as in the original benchmark.
    pub one_call: bool,
}

impl ToolCalling {
    /// Returns the tools sent to the provider; empty if the prompt describes them instead.
    #[must_use]
    pub const fn offered(&self) -> &'static [model::Tool] {
        match self.protocol {
            ToolProtocol::Tools => self.tools.definitions(),
            ToolProtocol::Text => &[],
        }
    }

    /// Returns the calls of a reply, in order; an error if it contains no call.
    pub fn calls(&self, reply: &Reply) -> Result<Vec<ParsedCall>, String> {
        let known = |name: &str| self.tools.get(name).is_some();
        let thoughts = reply.reasoning.as_deref().unwrap_or_default().trim();
        if reply.tool_calls.is_empty() && reply.text.trim().is_empty() && !thoughts.is_empty() {
            let call = protocol::call_after_thoughts(thoughts).filter(|_| !reply.cut);
            let calls = call.and_then(|call| protocol::calls(call, &[], &known).ok());
            return calls.ok_or_else(|| "the reply consisted only of thoughts".to_owned());
        }
        match self.protocol {
            ToolProtocol::Text if reply.tool_calls.is_empty() => protocol::text::calls(&reply.text, &self.tools),
            _ => protocol::calls(&reply.text, &reply.tool_calls, &known),
        }
    }
}
