//! What can be set about agents: retrieval, order and repair of a fixed agent's functions, reasoning; prompt, history,
//! tools and protocol of a dynamic one.
//!
//! Settings come from the command line and are kept with the run. An agent's own settings follow its name:
//! `fixed:paper=none,repair=2`.

mod embedding;
mod keys;
mod overrides;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::History;
use super::prompts::dynamic::Prompting;
use super::protocol::Protocol;
use super::reach::Reach;
use super::retrieval::{CodeChoice, PaperChoice};
use super::tools::ToolChoice;
use keys::KEYS;
pub use keys::setting_keys;
pub(crate) use keys::written;
pub use overrides::Overrides;

/// What a fixed agent shows, while it writes one function, of those that it has written before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Their masks, as at the beginning
    Masked,
    /// What it has written
    #[default]
    Filled,
}

/// The course of a dynamic agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// As prompt, history, tools and protocol say
    #[default]
    None,
    /// That of SUPER's own agent: one prompt with three shots, the history as one message, actions as text
    Super,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_none(preset: &Preset) -> bool {
    matches!(preset, Preset::None)
}

/// What can be set about agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Which of the paper's text is put into the task; the agent's own default when `None`.
    pub paper: Option<PaperChoice>,
    /// Whether a dynamic agent's workspace has the paper's text beside the code.
    pub paper_file: bool,
    /// Which of the repo's code is; likewise.
    pub code: Option<CodeChoice>,
    /// Most passages that are retrieved.
    pub passages: usize,
    /// Most snippets that are retrieved.
    pub snippets: usize,
    /// The embedding model, as given.
    pub embedding: Option<String>,
    /// Address of an OpenAI-compatible server with it.
    pub embedding_url: Option<String>,
    /// What of other missing functions is shown.
    pub fill: Fill,
    /// Rounds of repair.
    pub repair: u32,
    /// Tokens of reasoning before a function is written, or before the first step of a dynamic agent.
    pub reasoning_tokens: u32,
    /// A published agent's course, in place of a dynamic agent's prompt, history, tools and protocol.
    #[serde(skip_serializing_if = "is_none")]
    pub preset: Preset,
    /// What a dynamic agent writes before each of its calls.
    pub prompt: Prompting,
    /// Which steps it is shown again.
    pub history: History,
    /// Tokens that its model takes, read and written; observations are shortened to keep within.
    pub context_tokens: Option<u64>,
    /// Its tools.
    pub tools: ToolChoice,
    /// How it calls them.
    pub protocol: Protocol,
    /// Whether it makes one call in each step, as in the paper.
    pub one_call: bool,
    /// Tries within an attempt, each but the first after a plan from the one before; 0 and 1 are one try.
    pub reflexion: u32,
    /// How much an agent is told of its work after each round, from 0 (nothing) to 4; one round only when `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<u32>,
    /// Most rounds that follow feedback.
    #[serde(skip_serializing_if = "is_usual")]
    pub rounds: u32,
    /// How far `ml-agent` looks.
    #[serde(skip_serializing_if = "Reach::is_default")]
    pub reach: Reach,
}

/// Rounds that follow feedback, unless others are asked for.
const ROUNDS: u32 = 3;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_usual(rounds: &u32) -> bool {
    *rounds == ROUNDS
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            paper: None,
            paper_file: true,
            code: None,
            passages: 3,
            snippets: 5,
            embedding: None,
            embedding_url: None,
            fill: Fill::default(),
            repair: 0,
            reasoning_tokens: 0,
            preset: Preset::default(),
            prompt: Prompting::default(),
            history: History::default(),
            context_tokens: None,
            tools: ToolChoice::default(),
            protocol: Protocol::default(),
            one_call: false,
            reflexion: 0,
            feedback: None,
            rounds: ROUNDS,
            reach: Reach::default(),
        }
    }
}

/// Agents that settings are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The dynamic agent.
    React,
    /// The fixed one.
    Fixed,
    /// The one that finds the repo first.
    MlAgent,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::React => "react",
            Self::Fixed => "fixed",
            Self::MlAgent => "ml-agent",
        }
    }

    /// What of paper and code it is given by default.
    const fn context(self) -> (PaperChoice, CodeChoice) {
        match self {
            Self::React | Self::MlAgent => (PaperChoice::None, CodeChoice::Agent),
            Self::Fixed => (PaperChoice::Bm25, CodeChoice::Bm25),
        }
    }
}

/// The help of `--paper`.
pub(crate) fn paper_help() -> String {
    let default = |kind: Kind| written(kind.context().0);
    help_by_kind("Text of the paper in the task; `react` can read paper.txt too, without --no-paper-file", default)
}

/// The help of `--code`.
pub(crate) fn code_help() -> String {
    help_by_kind("Code of the repo in the task", |kind| written(kind.context().1))
}

/// The help of an option whose default depends on the agent.
fn help_by_kind(what: &str, default: impl Fn(Kind) -> String) -> String {
    let defaults = [Kind::Fixed, Kind::React].map(|kind| format!("`{}` for `{}`", default(kind), kind.name()));
    format!("{what} [default: {}]", defaults.join(", "))
}

impl Settings {
    /// These settings as an agent of this kind has them: with its own defaults.
    #[must_use]
    pub(crate) fn for_kind(mut self, kind: Kind) -> Self {
        let (paper, code) = kind.context();
        self.paper = self.paper.or(Some(paper));
        self.code = self.code.or(Some(code));
        self
    }

    /// Keys and values of what an agent of this kind heeds and what is not its default.
    pub(crate) fn differences(&self, kind: Kind) -> impl Iterator<Item = (&'static str, String)> {
        let default = Self::default().for_kind(kind);
        KEYS.iter().filter(move |key| (key.heeded)(kind, self)).filter_map(move |key| {
            let value = (key.write)(self);
            (value != (key.write)(&default)).then_some((key.name, value))
        })
    }

    /// The options by which these settings differ from the defaults, as they are written on the command line. The
    /// embedding model is not one of them: it is settled for every run.
    #[must_use]
    pub fn options(&self) -> Vec<&'static str> {
        let default = Self::default();
        KEYS.iter().filter(|key| (key.write)(self) != (key.write)(&default)).map(|key| key.option).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_behind_a_name_are_read_over_those_of_the_run() {
        let run = Settings { repair: 1, ..Settings::default() };
        let own = run.with(&"paper=none,reasoning=512".parse().unwrap());
        assert_eq!((own.paper, own.repair, own.reasoning_tokens), (Some(PaperChoice::None), 1, 512));
        let hint = |text: &str| text.parse::<Overrides>().unwrap_err().hint.unwrap();
        insta::assert_snapshot!(hint("paper=all"), @"give one of `none`, `full`, `bm25`, `embedding`, `oracle`");
        insta::assert_snapshot!(hint("repair=x"), @"`repair` takes a whole number");
        insta::assert_snapshot!(hint("colour=red"), @"the keys are `paper`, `code`, `passages`, `snippets`, `reasoning`, `feedback`, `rounds`; `fill`, `repair` of `fixed`; `paper-file`, `preset`, `prompt`, `history`, `context`, `tools`, `protocol`, `one-call`, `reflexion` of `react`; `words`, `retrieve`, `replies`, `docs`, `file` of `ml-agent`");
        insta::assert_snapshot!(hint("retrieve=0"), @"`retrieve` takes a whole number from 1");
        insta::assert_snapshot!(hint("history=window"), @"`window` is not a history: give `full`, `window:K`, `summary:K` or `super`, with K from 1");
        insta::assert_snapshot!(hint("prompt=plan"), @"give one of `react`, `mlagentbench`, `planning`");
    }

    #[test]
    fn embeddings_without_a_model_are_refused() {
        let cache = tempfile::tempdir().unwrap();
        let mut settings = Settings { paper: Some(PaperChoice::Embedding), ..Settings::default() };
        let refused = settings.settle(cache.path()).unwrap_err();
        assert!(refused.hint.is_some_and(|hint| hint.contains("--embedding")));
        settings.paper = Some(PaperChoice::Bm25);
        settings.settle(cache.path()).unwrap();
    }
}
