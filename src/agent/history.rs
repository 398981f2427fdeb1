//! The history setting, which selects the earlier steps that a model is shown in each call: all steps, only the last
//! ones, or the last ones and a summary of the others.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Message, Role};

/// Characters kept of an older observation with [`History::Super`], and of any observation that is shortened to save
/// space.
pub const SHORT: usize = 500;

/// Which earlier steps a model is shown again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum History {
    /// All steps.
    #[default]
    Full,
    /// The last K steps.
    Window(u32),
    /// At least the last K steps, and a running summary, written by the model, of the steps before. Steps are removed K
    /// at a time, so a new summary is needed only every K steps.
    Summary(u32),
    /// All steps, but only the last 500 characters of every observation except the newest, as in SUPER.
    Super,
}

/// The accepted spellings of a history.
pub const FORMS: &str = "`full`, `window:K`, `summary:K` or `super`";

impl History {
    /// Whether the next model call shows this observation of an earlier step in full. The last reply in `messages` is
    /// that of the current step.
    #[must_use]
    pub(super) fn still_shows(self, messages: &[Message], observation: &str) -> bool {
        let kept = match self {
            Self::Full | Self::Super => 0,
            // `steps` is the number of replies that stay in the conversation, including the newest reply.
            Self::Window(steps) | Self::Summary(steps) => messages
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, message)| message.role == Role::Assistant)
                .nth((steps as usize).saturating_sub(1))
                .map_or(0, |(place, _)| place),
        };
        if self == Self::Super && observation.chars().count() > SHORT {
            return false;
        }
        messages[kept..].iter().any(|said| said.role != Role::Assistant && said.content.contains(observation))
    }
}

impl FromStr for History {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let steps = |number: &str| number.parse::<u32>().ok().filter(|steps| *steps > 0);
        let read = match text.split_once(':').unwrap_or((text, "")) {
            ("full", "") => Some(Self::Full),
            ("super", "") => Some(Self::Super),
            ("window", number) => steps(number).map(Self::Window),
            ("summary", number) => steps(number).map(Self::Summary),
            _ => None,
        };
        read.ok_or_else(|| format!("`{text}` is not a value of `history`: give {FORMS}, where K is 1 or more"))
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => write!(f, "full"),
            Self::Window(steps) => write!(f, "window:{steps}"),
            Self::Summary(steps) => write!(f, "summary:{steps}"),
            Self::Super => write!(f, "super"),
        }
    }
}

crate::files::stored_as_text!(History);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_setting_is_printed_as_it_was_parsed() {
        for text in ["full", "window:5", "summary:12", "super"] {
            assert_eq!(text.parse::<History>().unwrap().to_string(), text);
        }
        for text in ["", "window", "window:0", "window:-1", "summary:x", "full:3", "everything"] {
            let error = text.parse::<History>().unwrap_err();
            assert!(error.ends_with(
                "is not a value of `history`: give `full`, `window:K`, `summary:K` or `super`, where K is 1 or more"
            ));
        }
    }
}
