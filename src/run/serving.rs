//! Settings of a run whose attempts are episodes, which clients of `autoexperiment serve` start and act in.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::tools::ToolChoice;
use crate::error::{Error, Result};

/// Settings of a run of episodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Serving {
    /// How an episode is rewarded.
    pub reward: Reward,
    /// The tools that clients call.
    pub tools: ToolChoice,
    /// Share of each paper's functions that are masked only in samples of the test split.
    pub held_out: f64,
    /// Keeps the success rate at a target by drawing easier or harder samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curriculum: Option<CurriculumSettings>,
}

/// How an episode is rewarded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Reward {
    /// 1 if the attempt passes, otherwise 0
    #[default]
    Pass,
    /// The share of checks that pass
    Share,
}

/// Settings of a curriculum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Curriculum")]
pub struct CurriculumSettings {
    /// Success rate to keep, between 0 and 1.
    pub target: f64,
    /// Number of episodes over which the success rate is measured.
    pub window: usize,
}

/// The name that a client gives itself: at most 40 letters, digits, `-`, `_` and `.`, beginning with a letter or a
/// digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientName(String);

impl ClientName {
    /// Longest name, in characters.
    const LONGEST: usize = 40;

    /// The label under which reports show the client's episodes.
    #[must_use]
    pub fn label(&self) -> String {
        format!("serve:{}", self.0)
    }
}

impl Default for ClientName {
    fn default() -> Self {
        Self("client".to_owned())
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ClientName {
    type Err = Error;

    /// # Errors
    /// Kind `Usage` for an invalid name.
    fn from_str(name: &str) -> Result<Self> {
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_plain || name.len() > Self::LONGEST || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            let shown: String = name.chars().take(Self::LONGEST).collect();
            return Err(Error::usage(format!("`{}` is not a valid name of a client", shown.escape_debug()))
                .hint("use at most 40 letters, digits, `-`, `_` and `.`, beginning with a letter or a digit"));
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clients_are_plain_and_short() {
        for name in ["policy", "grpo-7b_v2.1", "0"] {
            assert_eq!(name.parse::<ClientName>().unwrap().label(), format!("serve:{name}"));
        }
        for name in ["", ".hidden", "a/b", "../up", "a b", "\u{e9}", &"x".repeat(41)] {
            assert!(name.parse::<ClientName>().is_err(), "{name}");
        }
    }
}
