//! `run.json`: a run's configuration, what it depends on, and the sessions that worked on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Configuration;
use super::shared::Sharing;

/// The only format version of run stores that this program writes and reads.
pub const FORMAT: u32 = 1;

/// The contents of `run.json`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunFile {
    /// Format version.
    pub format: u32,
    /// The run's name, which is also its folder's name.
    pub run: String,
    /// Start of the run.
    pub created: jiff::Timestamp,
    /// The command line as typed.
    pub command_line: Vec<String>,
    /// The run's settings.
    pub configuration: Configuration,
    /// Digests of everything the results depend on.
    pub digests: Digests,
    /// Number of planned attempts, so that a report on an unfinished run can say what is missing.
    #[serde(default)]
    pub planned: Vec<PlannedAttempts>,
    /// Settings shared by several processes, if several work on the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// The sessions that worked on the run, in order.
    #[serde(default)]
    pub sessions: Vec<SessionFacts>,
}

/// One process's work on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFacts {
    /// Start of the session.
    pub started: jiff::Timestamp,
    /// Version of this program.
    pub version: String,
    /// The sandbox backend in use.
    pub sandbox: String,
    /// Backend that built each paper's env: `venv` or `conda`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub envs: BTreeMap<String, String>,
    /// Version of each external agent, by its label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
    /// Whether the baseline was checked: the unmasked repos reproduce their gold.
    pub baseline: bool,
    /// Weaknesses of the sandboxes on the session's machine, a sentence each.
    pub warnings: Vec<String>,
    /// Accepted differences from the state in which the run was started.
    pub differences: Vec<String>,
    /// The process's name among the processes that share the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// The machine's name, if several processes share the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How the session ended, if several processes share the run: `complete`, `lost`, `interrupted`, `cost_limit` or
    /// `failed`; absent while it is running or if it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// Planned attempts of one agent at one n.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Planned")]
pub struct PlannedAttempts {
    /// The agent's label.
    pub agent: String,
    /// The model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Number of masked functions.
    pub n: usize,
    /// Number of attempts, over all samples.
    pub attempts: usize,
}

/// Digests of everything a run's results depend on: sha256, hex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Digests {
    /// Digest of each paper's manifest, text and gold.
    pub papers: BTreeMap<String, String>,
    /// Digest of each paper's repo.
    pub repos: BTreeMap<String, String>,
    /// Digest of each paper's env.
    pub envs: BTreeMap<String, String>,
    /// Digest of the prompts.
    pub prompts: String,
    /// Digest of each external agent's manifest and env.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
    /// The base image of all sandboxes, if they have one, as engines write it: `sha256:...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

impl Digests {
    /// Lists differences between these digests and the current ones, one sentence each.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let kinds = [
            ("definition or gold of", &self.papers, &now.papers),
            ("repo of", &self.repos, &now.repos),
            ("env of", &self.envs, &now.envs),
            ("manifest or env of agent", &self.agents, &now.agents),
        ];
        let mut found = Vec::new();
        for (kind, then, now) in kinds {
            for (id, digest) in then {
                if now.get(id) != Some(digest) {
                    found.push(format!("the {kind} `{id}` has changed since the run was started"));
                }
            }
        }
        if self.base != now.base {
            let name = |base: &Option<String>| base.clone().unwrap_or_else(|| "none".to_owned());
            let (then, now) = (name(&self.base), name(&now.base));
            found.push(format!("the base image has changed since the run was started: `{then}` then, `{now}` now"));
        }
        if self.prompts != now.prompts {
            found.push("the prompts have changed since the run was started".to_owned());
        }
        found
    }
}

#[cfg(test)]
impl RunFile {
    /// Creates the file of a run with default settings and without planned attempts.
    pub(crate) fn blank(name: &str, sessions: Vec<SessionFacts>) -> Self {
        Self {
            format: FORMAT,
            run: name.to_owned(),
            created: crate::files::now(),
            command_line: Vec::new(),
            configuration: Configuration::new(std::path::Path::new("suite")),
            digests: Digests::default(),
            planned: Vec::new(),
            sharing: None,
            sessions,
        }
    }
}

#[cfg(test)]
impl SessionFacts {
    /// Creates the facts about a session that starts now, without warnings and differences.
    pub(crate) fn blank() -> Self {
        Self {
            started: crate::files::now(),
            version: String::new(),
            sandbox: String::new(),
            envs: BTreeMap::new(),
            agents: BTreeMap::new(),
            baseline: false,
            warnings: Vec::new(),
            differences: Vec::new(),
            shard: None,
            node: None,
            ended: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_changed_base_image_is_listed_as_a_difference_from_the_start_of_the_run() {
        let over = |base: Option<&str>| Digests { base: base.map(ToOwned::to_owned), ..Digests::default() };
        assert!(over(None).differences(&over(None)).is_empty());
        assert!(over(Some("sha256:a")).differences(&over(Some("sha256:a"))).is_empty());
        let found = over(Some("sha256:a")).differences(&over(Some("sha256:b")));
        assert_eq!(found, ["the base image has changed since the run was started: `sha256:a` then, `sha256:b` now"]);
    }
}
