//! The `--gpus` option: which graphics processors sandboxes get.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Choice of the graphics processors that sandboxes get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Gpus {
    /// Each container gets all of the machine's graphics processors.
    All,
    /// Each container gets this number of graphics processors.
    Count(u32),
    /// Each attempt gets one graphics processor to itself. The number limits the choice to the first devices of the
    /// machine.
    Each(Option<u32>),
}

/// A graphics processor that one attempt has to itself while it holds this value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The device's name for `CUDA_VISIBLE_DEVICES` in this process. In a Slurm job that was given only some of the
    /// machine's devices, these are numbered from 0.
    pub visible: String,
    /// The device's name on the whole machine, as it is outside of a Slurm job.
    pub name: String,
    /// The device files that programs need to use the graphics processor.
    pub devices: Vec<PathBuf>,
}

impl Gpu {
    /// The environment variable that makes a program use this graphics processor.
    #[must_use]
    pub fn variable(&self) -> (String, String) {
        ("CUDA_VISIBLE_DEVICES".to_owned(), self.visible.clone())
    }
}

impl Gpus {
    /// Returns the setting, with `each` instead of `each:NUMBER`, so that it is the same on every machine. The number
    /// does not change what one attempt gets.
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
            _ => Err(format!("graphics processors are `all`, a number from 1, `each` or `each:NUMBER`, not `{text}`")),
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
