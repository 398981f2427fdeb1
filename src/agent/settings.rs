//! What can be set about agents: retrieval, order and repair of a fixed agent's functions, reasoning; prompt, history,
//! tools and protocol of a dynamic one.
//!
//! Settings come from the command line and are kept with the run. An agent's own settings follow its name:
//! `fixed:paper=none,repair=2`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::History;
use super::prompts::dynamic::Prompting;
use super::protocol::Protocol;
use super::reach::Reach;
use super::retrieval::{CodeChoice, PaperChoice, Retriever};
use super::review::MOST_FEEDBACK;
use super::tools::ToolChoice;
use crate::error::{Error, Result};
use crate::model::embedding::{self, Embedder};

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

/// One thing that can be set: how it is called, read and written, and which agents heed it.
struct Key {
    /// Behind an agent's name, and in labels.
    name: &'static str,
    /// On the command line.
    option: &'static str,
    /// Sets it; the error is a hint.
    read: fn(&mut Settings, &str) -> Result<(), String>,
    /// As it is read.
    write: fn(&Settings) -> String,
    /// Whether an agent of this kind with these settings heeds it.
    heeded: fn(Kind, &Settings) -> bool,
}

/// By the dynamic agent and the fixed one.
fn by_both(kind: Kind, _: &Settings) -> bool {
    kind != Kind::MlAgent
}

fn by_fixed(kind: Kind, _: &Settings) -> bool {
    kind == Kind::Fixed
}

fn by_react(kind: Kind, _: &Settings) -> bool {
    kind == Kind::React
}

fn by_ml_agent(kind: Kind, _: &Settings) -> bool {
    kind == Kind::MlAgent
}

/// By a dynamic agent that follows no preset.
fn by_free_react(kind: Kind, settings: &Settings) -> bool {
    kind == Kind::React && settings.preset == Preset::None
}

/// All that can be set for an agent alone, in the order of labels.
static KEYS: [Key; 23] = [
    Key {
        name: "paper",
        option: "--paper-text",
        read: |settings, text| {
            settings.paper = Some(choice(text)?);
            Ok(())
        },
        write: |settings| settings.paper.map(written).unwrap_or_default(),
        heeded: by_both,
    },
    Key {
        name: "paper-file",
        option: "--no-paper-file",
        read: |settings, text| {
            settings.paper_file = flag(text)?;
            Ok(())
        },
        write: |settings| settings.paper_file.to_string(),
        heeded: by_react,
    },
    Key {
        name: "code",
        option: "--code",
        read: |settings, text| {
            settings.code = Some(choice(text)?);
            Ok(())
        },
        write: |settings| settings.code.map(written).unwrap_or_default(),
        heeded: by_both,
    },
    Key {
        name: "passages",
        option: "--passages",
        read: |settings, text| {
            settings.passages = number(text)? as usize;
            Ok(())
        },
        write: |settings| settings.passages.to_string(),
        heeded: |kind, settings| {
            let ranks = matches!(settings.paper, Some(PaperChoice::Bm25 | PaperChoice::Embedding));
            kind == Kind::Fixed || (kind == Kind::React && ranks)
        },
    },
    Key {
        name: "snippets",
        option: "--snippets",
        read: |settings, text| {
            settings.snippets = number(text)? as usize;
            Ok(())
        },
        write: |settings| settings.snippets.to_string(),
        heeded: |kind, settings| {
            let ranks = matches!(settings.code, Some(CodeChoice::Bm25 | CodeChoice::Ast | CodeChoice::Embedding));
            kind == Kind::Fixed || (kind == Kind::React && ranks)
        },
    },
    Key {
        name: "fill",
        option: "--fill",
        read: |settings, text| {
            settings.fill = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.fill),
        heeded: by_fixed,
    },
    Key {
        name: "repair",
        option: "--repair",
        read: |settings, text| {
            settings.repair = number(text)?;
            Ok(())
        },
        write: |settings| settings.repair.to_string(),
        heeded: by_fixed,
    },
    Key {
        name: "preset",
        option: "--preset",
        read: |settings, text| {
            settings.preset = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.preset),
        heeded: by_react,
    },
    Key {
        name: "prompt",
        option: "--prompt",
        read: |settings, text| {
            settings.prompt = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.prompt),
        heeded: by_free_react,
    },
    Key {
        name: "history",
        option: "--history",
        read: |settings, text| {
            settings.history = text.parse()?;
            Ok(())
        },
        write: |settings| settings.history.to_string(),
        heeded: by_free_react,
    },
    Key {
        name: "context",
        option: "--context-tokens",
        read: |settings, text| {
            settings.context_tokens = Some(number(text)?.into());
            Ok(())
        },
        write: |settings| settings.context_tokens.unwrap_or(0).to_string(),
        heeded: by_free_react,
    },
    Key {
        name: "tools",
        option: "--tools",
        read: |settings, text| {
            settings.tools = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.tools),
        heeded: by_free_react,
    },
    Key {
        name: "protocol",
        option: "--protocol",
        read: |settings, text| {
            settings.protocol = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.protocol),
        heeded: by_free_react,
    },
    Key {
        name: "one-call",
        option: "--one-call",
        read: |settings, text| {
            settings.one_call = flag(text)?;
            Ok(())
        },
        write: |settings| settings.one_call.to_string(),
        heeded: by_free_react,
    },
    Key {
        name: "reflexion",
        option: "--reflexion",
        read: |settings, text| {
            settings.reflexion = number(text)?;
            Ok(())
        },
        // No try beyond the first and one try are the same.
        write: |settings| settings.reflexion.max(1).to_string(),
        heeded: by_react,
    },
    Key {
        name: "reasoning",
        option: "--reasoning-tokens",
        read: |settings, text| {
            settings.reasoning_tokens = number(text)?;
            Ok(())
        },
        write: |settings| settings.reasoning_tokens.to_string(),
        heeded: by_both,
    },
    Key {
        name: "feedback",
        option: "--feedback",
        read: |settings, text| {
            let level = number(text)?;
            if level > MOST_FEEDBACK {
                return Err(format!("`{{key}}` goes from 0 to {MOST_FEEDBACK}"));
            }
            settings.feedback = Some(level);
            Ok(())
        },
        write: |settings| settings.feedback.map(|level| level.to_string()).unwrap_or_default(),
        heeded: by_both,
    },
    Key {
        name: "rounds",
        option: "--rounds",
        read: |settings, text| {
            settings.rounds = number(text)?;
            Ok(())
        },
        write: |settings| settings.rounds.to_string(),
        heeded: |kind, settings| by_both(kind, settings) && settings.feedback.is_some(),
    },
    Key {
        name: "words",
        option: "ml-agent:words",
        read: |settings, text| {
            settings.reach.words = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.words.to_string(),
        heeded: by_ml_agent,
    },
    Key {
        name: "retrieve",
        option: "ml-agent:retrieve",
        read: |settings, text| {
            settings.reach.repos = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.repos.to_string(),
        heeded: by_ml_agent,
    },
    Key {
        name: "replies",
        option: "ml-agent:replies",
        read: |settings, text| {
            settings.reach.replies = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.replies.to_string(),
        heeded: by_ml_agent,
    },
    Key {
        name: "docs",
        option: "ml-agent:docs",
        read: |settings, text| {
            settings.reach.docs = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.docs.to_string(),
        heeded: by_ml_agent,
    },
    Key {
        name: "file",
        option: "ml-agent:file",
        read: |settings, text| {
            settings.reach.file = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.file.to_string(),
        heeded: by_ml_agent,
    },
];

/// The keys that agents of these kinds heed, and no others.
fn keys_of(kinds: &[Kind]) -> String {
    let settings = Settings {
        paper: Some(PaperChoice::Bm25),
        code: Some(CodeChoice::Bm25),
        feedback: Some(1),
        ..Settings::default()
    };
    let heeded = |key: &Key, kind: Kind| (key.heeded)(kind, &settings) == kinds.contains(&kind);
    let names = KEYS.iter().filter(|key| heeded(key, Kind::Fixed) && heeded(key, Kind::React));
    let names = names.filter(|key| heeded(key, Kind::MlAgent));
    names.map(|key| format!("`{}`", key.name)).collect::<Vec<_>>().join(", ")
}

/// The keys of agents' own settings, for hints and help.
#[must_use]
pub fn setting_keys() -> String {
    let both = keys_of(&[Kind::Fixed, Kind::React]);
    let own =
        [Kind::Fixed, Kind::React, Kind::MlAgent].map(|kind| format!("{} of `{}`", keys_of(&[kind]), kind.name()));
    format!("{both}; {}", own.join("; "))
}

/// Settings of an agent's own, over those of its run: `paper=none,repair=2`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(Vec<(&'static str, String)>);

impl Overrides {
    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Overrides {
    type Err = Error;

    /// # Errors
    /// Kind `Usage` for an unknown key or value.
    fn from_str(text: &str) -> Result<Self> {
        let mut own = Vec::new();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let wrong = || Error::usage(format!("`{pair}` is not a setting of an agent"));
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| wrong().hint(format!("write KEY=VALUE, with one of {}", setting_keys())))?;
            let key = KEYS.iter().find(|key| key.name == name);
            let key = key.ok_or_else(|| wrong().hint(format!("the keys are {}", setting_keys())))?;
            let mut read = Settings::default();
            (key.read)(&mut read, value).map_err(|hint| wrong().hint(hint.replace("{key}", key.name)))?;
            own.push((key.name, (key.write)(&read)));
        }
        Ok(Self(own))
    }
}

impl fmt::Display for Overrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&pairs.join(","))
    }
}

impl Settings {
    /// These settings with an agent's own over them.
    #[must_use]
    pub(crate) fn with(&self, own: &Overrides) -> Self {
        let mut this = self.clone();
        for (name, value) in &own.0 {
            if let Some(key) = KEYS.iter().find(|key| key.name == *name) {
                // It was read before.
                let _ = (key.read)(&mut this, value);
            }
        }
        this
    }

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

    /// Whether any choice needs an embedding model.
    #[must_use]
    pub fn embeds(&self) -> bool {
        self.paper == Some(PaperChoice::Embedding) || self.code == Some(CodeChoice::Embedding)
    }

    /// Settles which embedding model is used: the given one, or the one in the cache's folder `embedding`.
    ///
    /// # Errors
    /// Kind `Usage` where embeddings are asked for and there is no model for them: another way to search would be
    /// measured under the name of this one.
    pub fn settle(&mut self, cache: &Path) -> Result<()> {
        let local = cache.join("embedding");
        if self.embedding.is_none() && embedding::is_model(&local) {
            self.embedding = Some(local.display().to_string());
        }
        if self.embeds() && self.embedding.is_none() { Err(Self::without_embedding(cache)) } else { Ok(()) }
    }

    /// What is wrong where embeddings are asked for and there is no model for them.
    #[must_use]
    pub fn without_embedding(cache: &Path) -> Error {
        Error::usage("`embedding` is asked for, and there is no embedding model").hint(format!(
            "put one into `{}`, or name one with `--embedding`; `bm25` needs none",
            cache.join("embedding").display()
        ))
    }

    /// The retriever of an agent with these settings. Vectors are kept in `cache`.
    ///
    /// # Errors
    /// Those of [`embedding::open`]; kind `Usage` for embeddings without a model.
    pub(crate) fn retriever(&self, cache: Option<&Path>) -> Result<Retriever> {
        let embedder: Option<Arc<dyn Embedder>> = match &self.embedding {
            Some(spec) if self.embeds() => Some(embedding::open(spec, self.embedding_url.as_deref(), cache)?),
            None if self.embeds() => {
                return Err(Error::usage("`embedding` is asked for, and there is no embedding model"));
            }
            _ => None,
        };
        Ok(Retriever {
            paper: self.paper.unwrap_or(PaperChoice::None),
            code: self.code.unwrap_or(CodeChoice::Agent),
            passages: self.passages,
            snippets: self.snippets,
            embedder,
        })
    }
}

/// A whole number; the error is a hint, in which the key is put in.
fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "`{key}` takes a whole number".to_owned())
}

/// A whole number from 1; likewise.
fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "`{key}` takes a whole number from 1".to_owned())
}

/// As a choice is written.
pub(crate) fn written<T: ValueEnum + Copy>(choice: T) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn choice<T: ValueEnum + Copy>(text: &str) -> std::result::Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let names: Vec<String> = T::value_variants().iter().copied().map(|it| format!("`{}`", written(it))).collect();
        format!("give one of {}", names.join(", "))
    })
}

fn flag(text: &str) -> std::result::Result<bool, String> {
    text.parse().map_err(|_| "`{key}` takes `true` or `false`".to_owned())
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
