//! Graphics processors: which of them sandboxes get.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Which graphics processors sandboxes get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Gpus {
    /// Each container all that there are.
    All,
    /// Each container so many.
    Count(u32),
    /// Each attempt one of its own: of those that are here, or of the first so many.
    Each(Option<u32>),
}

/// A graphics processor that nobody else uses for as long as it is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// What `CUDA_VISIBLE_DEVICES` calls it here. In a job whose devices are fenced off, it counts from 0.
    pub visible: String,
    /// What the whole machine calls it.
    pub name: String,
    /// The device files that code needs to reach it.
    pub devices: Vec<PathBuf>,
}

impl Gpu {
    /// The variable that binds a program to it.
    #[must_use]
    pub fn variable(&self) -> (String, String) {
        ("CUDA_VISIBLE_DEVICES".to_owned(), self.visible.clone())
    }
}

impl Gpus {
    /// The same for every machine: how many there are to be given out does not matter to who gets one.
    #[must_use]
    pub fn kind(self) -> String {
        match self {
            Self::Each(_) => "each".to_owned(),
            other => other.to_string(),
        }
    }
}

impl std::str::FromStr for Gpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, is_each) = text.strip_prefix("each:").map_or((text, false), |number| (number, true));
        match (text, number.parse()) {
            ("all", _) => Ok(Self::All),
            ("each", _) => Ok(Self::Each(None)),
            (_, Ok(count)) if count > 0 => Ok(if is_each { Self::Each(Some(count)) } else { Self::Count(count) }),
            _ => Err(format!(
                "`{text}` is no number of graphics processors: `all`, a number from 1, `each`, or `each:NUMBER`"
            )),
        }
    }
}

crate::files::stored_as_text!(Gpus);

impl std::fmt::Display for Gpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Each(None) => f.write_str("each"),
            Self::Each(Some(count)) => write!(f, "each:{count}"),
        }
    }
}
