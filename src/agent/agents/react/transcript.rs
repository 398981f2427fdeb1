//! A conversation as text, cut to its essentials, for a model that summarises it or reflects on it.

use std::fmt::Write as _;

use crate::agent::tools::cut_middle;
use crate::model::{Message, Role};

/// Maximum characters of each text of the agent, of each call's arguments, and of each observation.
const SAID: usize = 1500;
const SHOWN: usize = 1500;
/// Maximum characters of the whole text.
const WHOLE: usize = 40_000;

/// Renders all messages, one after another.
#[must_use]
pub fn render(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        match message.role {
            Role::Assistant => {
                let _ = writeln!(text, "The agent: {}", cut_middle(message.content.trim(), SAID));
                for call in &message.tool_calls {
                    let arguments = call.arguments.to_string();
                    let _ = writeln!(text, "It called `{}`: {}", call.name, cut_middle(&arguments, SAID));
                }
            }
            _ => {
                let _ = writeln!(text, "It was shown: {}", cut_middle(message.content.trim(), SHOWN));
            }
        }
    }
    cut_middle(text.trim_end(), WHOLE).into_owned()
}
