//! Settings of agents: retrieval, order of functions, repair and reasoning of `fixed`; prompt, history, tools and
//! protocol of `react`.
//!
//! A setting is written after the agent's name on the command line, as in `fixed:paper=none,repair=2`, and stored with
//! the name in the run. The run separately stores settings that hold for all agents: the embedding model and, in runs
//! of earlier versions, any other setting.

mod embedding;
mod keys;
mod overrides;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::History;
use super::prompts::dynamic::Prompting;
use super::protocol::ToolProtocol;
use super::retrieval::{CodeChoice, PaperChoice};
use super::tools::ToolChoice;
use crate::agent::agents::one_reply::limits::MlAgentLimits;
use crate::error::{Error, Result};
use keys::KEYS;
pub(crate) use keys::written;
pub use keys::{SettingHelp, describe_settings, setting_keys};
pub use overrides::Overrides;

/// How the `fixed` agent shows the functions it has written before while it writes another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Still masked
    Masked,
    /// As written
    #[default]
    Filled,
}

/// A published agent that `react` or `fixed` imitates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// None: prompt, history, tools and protocol are as set
    #[default]
    None,
    /// SUPER's own agent: one prompt with three shots, the history as one message, actions as text
    Super,
    /// `ResearchCodeBench`'s order of prompts: one message with the paper and the code, one reply for each missing part
    Researchcodebench,
}

impl Preset {
    /// Checks that the agent called `agent` can imitate this preset.
    ///
    /// # Errors
    /// Kind `Usage` for a preset of another agent.
    pub(crate) fn check(self, agent: &str) -> Result<()> {
        let own = match self {
            Self::None => return Ok(()),
            Self::Super => AgentKind::React.name(),
            Self::Researchcodebench => AgentKind::Fixed.name(),
        };
        if own == agent {
            return Ok(());
        }
        let name = written(self);
        Err(Error::usage(format!("`{agent}` has no preset `{name}`")).hint(format!("write `{own}:preset={name}`")))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_none(preset: &Preset) -> bool {
    matches!(preset, Preset::None)
}

/// Settings of agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Text of the paper in the task; `None` for the agent's default.
    pub paper: Option<PaperChoice>,
    /// Whether the workspace of `react` contains the paper's text.
    pub paper_file: bool,
    /// Code of the repo in the task; `None` for the agent's default.
    pub code: Option<CodeChoice>,
    /// Maximum number of passages retrieved.
    pub passages: usize,
    /// Maximum number of snippets retrieved.
    pub snippets: usize,
    /// The embedding model, as given by the user.
    pub embedding: Option<String>,
    /// Address of an OpenAI-compatible server with the embedding model.
    pub embedding_url: Option<String>,
    /// How the `fixed` agent shows functions that it has already written.
    pub fill: Fill,
    /// Rounds of repair.
    pub repair: u32,
    /// Tokens of reasoning before a function is written, or before the first step of `react`.
    pub reasoning_tokens: u32,
    /// A published agent to imitate, which replaces the prompt, history, tools and protocol of `react`, and the whole
    /// procedure of `fixed`.
    #[serde(skip_serializing_if = "is_none")]
    pub preset: Preset,
    /// Text that `react` has to write before each of its calls.
    pub prompt: Prompting,
    /// Which earlier steps the model is shown again.
    pub history: History,
    /// Context size of the model in tokens, input and output together; observations are shortened to fit.
    pub context_tokens: Option<u64>,
    /// The tools of `react`.
    pub tools: ToolChoice,
    /// How the model calls tools.
    pub protocol: ToolProtocol,
    /// Whether each step runs only one tool call, as in the original benchmark.
    pub one_call: bool,
    /// Number of tries within an attempt; each later try follows a plan based on the try before. 0 and 1 mean one try.
    pub reflexion: u32,
    /// Level of feedback after each round, from 0 (nothing) to 4; `None` for a single round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<u32>,
    /// Maximum number of rounds that follow feedback.
    #[serde(skip_serializing_if = "is_usual")]
    pub rounds: u32,
    /// Limits of `ml-agent`.
    #[serde(skip_serializing_if = "MlAgentLimits::is_default")]
    pub reach: MlAgentLimits,
}

/// Default of [`Settings::rounds`]: how many rounds may follow the first one, each after feedback.
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
            protocol: ToolProtocol::default(),
            one_call: false,
            reflexion: 0,
            feedback: None,
            rounds: ROUNDS,
            reach: MlAgentLimits::default(),
        }
    }
}

/// A kind of agent that has settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// `react`.
    React,
    /// `fixed`.
    Fixed,
    /// `ml-agent`.
    MlAgent,
}

impl AgentKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::React => "react",
            Self::Fixed => "fixed",
            Self::MlAgent => "ml-agent",
        }
    }

    /// Returns the defaults of `paper` and `code` for this kind of agent.
    const fn context(self) -> (PaperChoice, CodeChoice) {
        match self {
            Self::React | Self::MlAgent => (PaperChoice::None, CodeChoice::Agent),
            Self::Fixed => (PaperChoice::Bm25, CodeChoice::Bm25),
        }
    }
}

impl Settings {
    /// Replaces unset settings by the defaults of this kind of agent.
    #[must_use]
    pub(crate) fn for_kind(mut self, kind: AgentKind) -> Self {
        let (paper, code) = match self.preset {
            Preset::Researchcodebench => (PaperChoice::Full, CodeChoice::Full),
            Preset::None | Preset::Super => kind.context(),
        };
        self.paper = self.paper.or(Some(paper));
        self.code = self.code.or(Some(code));
        self
    }

    /// Returns name and value of each setting that this kind of agent uses and that differs from its default.
    pub(crate) fn differences(&self, kind: AgentKind) -> impl Iterator<Item = (&'static str, String)> {
        let mut default = Self { preset: self.preset, ..Self::default() }.for_kind(kind);
        default.preset = Preset::default();
        KEYS.iter().filter(move |key| (key.heeded)(kind, self)).filter_map(move |key| {
            let value = (key.write)(self);
            (value != (key.write)(&default)).then_some((key.name, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_an_agent_override_those_of_the_run_and_invalid_settings_are_explained() {
        let run = Settings { repair: 1, ..Settings::default() };
        let own = run.with(&"paper=none,reasoning=512".parse().unwrap());
        assert_eq!((own.paper, own.repair, own.reasoning_tokens), (Some(PaperChoice::None), 1, 512));
        let hint = |text: &str| text.parse::<Overrides>().unwrap_err().hint.unwrap();
        insta::assert_snapshot!(hint("paper=all"), @"give one of `none`, `full`, `bm25`, `embedding`, `oracle`");
        insta::assert_snapshot!(hint("repair=x"), @"`repair` takes a whole number");
        insta::assert_snapshot!(hint("colour=red"), @"the keys are `paper`, `code`, `passages`, `snippets`, `preset`, `reasoning`, `feedback`, `rounds`; `fill`, `repair` of `fixed`; `paper-file`, `prompt`, `history`, `context`, `tools`, `protocol`, `one-call`, `reflexion` of `react`; `words`, `retrieve`, `replies`, `docs`, `file` of `ml-agent`");
        insta::assert_snapshot!(hint("retrieve=0"), @"`retrieve` takes a whole number from 1");
        insta::assert_snapshot!(hint("history=window"), @"`window` is not a value of `history`: give `full`, `window:K`, `summary:K` or `super`, where K is 1 or more");
        insta::assert_snapshot!(hint("prompt=plan"), @"give one of `react`, `mlagentbench`, `planning`");
    }

    #[test]
    fn repeated_settings_and_settings_that_the_preset_ignores_are_refused_for_new_runs_only() {
        for (kind, text, message) in [
            (AgentKind::React, "tools=bash,history=full,tools=super", "`react` has several values of `tools`"),
            (AgentKind::Fixed, "repair=1,repair=1", "`fixed` has several values of `repair`"),
            (AgentKind::React, "preset=super,tools=bash", "`preset=super` ignores `tools=bash`"),
            (AgentKind::React, "context=9000,preset=super", "`preset=super` ignores `context=9000`"),
            (
                AgentKind::Fixed,
                "preset=researchcodebench,snippets=9",
                "`preset=researchcodebench` ignores `snippets=9`",
            ),
        ] {
            let stored: Overrides = text.parse().unwrap();
            assert_eq!(stored.to_string(), text);
            assert_eq!(stored.check(kind).unwrap_err().message, message);
        }
        for (kind, text) in [
            (AgentKind::React, "preset=super,reflexion=3,paper-file=false"),
            (AgentKind::React, "preset=none,tools=bash,passages=9"),
            (AgentKind::Fixed, "preset=researchcodebench,fill=masked"),
        ] {
            text.parse::<Overrides>().unwrap().check(kind).unwrap();
        }
    }

    #[test]
    fn embeddings_without_a_model_are_refused() {
        let cache = tempfile::tempdir().unwrap();
        let mut settings = Settings { paper: Some(PaperChoice::Embedding), ..Settings::default() };
        let refused = settings.choose_embedding(cache.path()).unwrap_err();
        assert!(refused.hint.is_some_and(|hint| hint.contains("--embedding")));
        settings.paper = Some(PaperChoice::Bm25);
        settings.choose_embedding(cache.path()).unwrap();
    }
}
