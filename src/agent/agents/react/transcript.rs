//! A conversation as text, cut to its essentials: for models that summarise or reflect on it.

use std::fmt::Write as _;

use crate::agent::tools::cut_middle;
use crate::model::{Message, Role};

/// Maximum characters of each of the agent's texts, of a call's arguments, and of each observation.
const SAID: usize = 1500;
const SHOWN: usize = 1500;
/// Maximum characters in total.
const WHOLE: usize = 40_000;

/// Renders messages one after another.
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
