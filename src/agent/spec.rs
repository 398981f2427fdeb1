//! An agent and its settings, as named by the user and stored in `run.json`. The agent's label is made from them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{AgentKind, Overrides, Settings};
use crate::agent::Agent;
use crate::agent::agents::external::{ExternalAgent, ExternalAgentSpec};
use crate::agent::agents::function::{FunctionAgent, FunctionSpec};
use crate::agent::agents::one_reply::{ml_agent, single};
use crate::agent::agents::{copycat, fixed, forger, gold, mutant, noop, random, react, replies, scripted};
use crate::error::{Error, Result};

/// The accepted forms of an agent's name.
const FORMS: &str = "`react`, `fixed`, `single`, `ml-agent`, `gold`, `noop`, `forger`, `mutant:P`, `random`, `copycat`, `scripted:FILE`, `replies:FILE`; `cli:NAME` or \
     `cli:FOLDER` for an external agent; `python:FILE.py:NAME` for a function in Python; `react:KEY=VALUE,...`, \
     `fixed:KEY=VALUE,...` and `ml-agent:KEY=VALUE,...` for agents with settings";

/// The names of agents, without the part after the colon.
pub const NAMES: [&str; 14] = [
    "react", "fixed", "single", "ml-agent", "gold", "noop", "forger", "mutant", "random", "copycat", "scripted",
    "replies", "cli", "python",
];

/// An agent, as named on the command line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum AgentSpec {
    /// `react`: the model decides step by step.
    React(Overrides),
    /// `fixed`: a model, asked in a fixed procedure.
    Fixed(Overrides),
    /// `cli:NAME`: an external agent.
    External(ExternalAgentSpec),
    /// `python:FILE.py:NAME`: a Python function.
    Function(FunctionSpec),
    /// `scripted:FILE`: a fixed list of tool calls.
    Scripted(PathBuf),
    /// `replies:FILE`: stored replies of a model.
    Replies(PathBuf),
    /// `mutant:P`: the original functions, each replaced by a mutant with probability P.
    Mutant(f64),
    /// `single`: a single reply of a model.
    Single,
    /// `ml-agent`: finds the task's repo among all repos of the suite, then writes the program.
    MlAgent(Overrides),
    /// `gold`: the original functions.
    Gold,
    /// `noop`: does nothing.
    Noop,
    /// `forger`: a cheat that satisfies every measure except those that run the agent's code again.
    Forger,
    /// `random`: reports made-up results.
    Random,
    /// `copycat`: fills each masked function with the body of the most similar function.
    Copycat,
}

impl AgentSpec {
    /// Returns the agent's kind and its own settings; `None` if it has no settings.
    const fn configurable(&self) -> Option<(AgentKind, &Overrides)> {
        match self {
            Self::React(own) => Some((AgentKind::React, own)),
            Self::Fixed(own) => Some((AgentKind::Fixed, own)),
            Self::MlAgent(own) => Some((AgentKind::MlAgent, own)),
            _ => None,
        }
    }

    /// Returns all settings of this agent in a run; `None` if it has no settings.
    #[must_use]
    pub fn settings(&self, run: &Settings) -> Option<Settings> {
        self.configurable().map(|(kind, own)| run.with(own).for_kind(kind))
    }

    /// Checks that the agent uses all settings that follow its name.
    ///
    /// # Errors
    /// Kind `Usage` for a setting that only other agents use.
    pub fn check_settings(&self) -> Result<()> {
        self.configurable().map_or(Ok(()), |(kind, own)| own.check(kind))
    }

    /// Whether the agent uses embeddings in a run with these settings.
    #[must_use]
    pub fn embeds(&self, run: &Settings) -> bool {
        self.configurable().is_some_and(|(kind, own)| kind != AgentKind::MlAgent && run.with(own).embeds())
    }

    /// Returns the name used in file names and tables, followed by the settings that differ from the defaults. Colons
    /// become dashes, because some file systems and archives do not accept them in names.
    #[must_use]
    pub fn label(&self, run: &Settings) -> String {
        self.label_without(run, None)
    }

    /// Same as [`Self::label`], but without the setting called `key`.
    #[must_use]
    pub fn label_without(&self, run: &Settings, key: Option<&str>) -> String {
        match self {
            Self::External(program) => program.label(),
            Self::Function(function) => function.label(),
            Self::Mutant(probability) => format!("mutant-{probability}"),
            _ => match (self.configurable(), self.settings(run)) {
                (Some((kind, _)), Some(settings)) => settings
                    .differences(kind)
                    .filter(|(name, _)| Some(*name) != key)
                    .fold(kind.name().to_owned(), |label, (name, value)| {
                        format!("{label}+{name}={}", value.replace(':', "-"))
                    }),
                _ => self.name().to_owned(),
            },
        }
    }

    /// Returns the part of the name before the colon.
    const fn name(&self) -> &'static str {
        match self {
            Self::React(_) => AgentKind::React.name(),
            Self::Fixed(_) => AgentKind::Fixed.name(),
            Self::External(_) => "cli",
            Self::Function(_) => "python",
            Self::Scripted(_) => "scripted",
            Self::Replies(_) => "replies",
            Self::Mutant(_) => "mutant",
            Self::Single => "single",
            Self::MlAgent(_) => AgentKind::MlAgent.name(),
            Self::Gold => "gold",
            Self::Noop => "noop",
            Self::Forger => "forger",
            Self::Random => "random",
            Self::Copycat => "copycat",
        }
    }

    /// Creates the agent. Embedding vectors are stored in the folder `cache`.
    ///
    /// # Errors
    /// Kind `Usage` for unsuitable settings, a missing program or an unreadable script; `Suite` for an invalid
    /// manifest; and the errors of the embedding model.
    pub fn open(&self, run: &Settings, cache: Option<&Path>) -> Result<Arc<dyn Agent>> {
        let label = self.label(run);
        let settings = || self.settings(run).unwrap_or_default();
        Ok(match self {
            Self::React(_) => Arc::new(react::React::new(label, settings(), cache)?),
            Self::Fixed(_) => Arc::new(fixed::Fixed::new(label, settings(), cache)?),
            Self::External(program) => Arc::new(ExternalAgent::open(program)?),
            Self::Function(function) => Arc::new(FunctionAgent::open(label, function)?),
            Self::Scripted(file) => Arc::new(scripted::ScriptedAgent::open(file)?),
            Self::Replies(file) => Arc::new(replies::Replies::open(file)?),
            Self::Mutant(probability) => Arc::new(mutant::Mutants::new(label, *probability)),
            Self::Single => Arc::new(single::Single),
            Self::MlAgent(_) => Arc::new(ml_agent::MlAgent::new(label, settings().reach)),
            Self::Gold => Arc::new(gold::GoldAgent),
            Self::Noop => Arc::new(noop::Noop),
            Self::Forger => Arc::new(forger::Forger),
            Self::Random => Arc::new(random::Random),
            Self::Copycat => Arc::new(copycat::Copycat),
        })
    }
}

impl AgentSpec {
    /// Splits a list of agents, such as `fixed:paper=none,repair=2,gold`. A part that does not begin with an agent's
    /// name belongs to the agent before it, as a setting or as the rest of a file name.
    #[must_use]
    pub fn split(list: &str) -> Vec<String> {
        let is_name = |part: &str| {
            let name = part.split(':').next().unwrap_or_default();
            NAMES.contains(&name)
        };
        let mut found: Vec<String> = Vec::new();
        for part in list.split(',') {
            match found.last_mut() {
                Some(last) if !is_name(part) => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => found.push(part.to_owned()),
            }
        }
        found
    }
}

impl FromStr for AgentSpec {
    type Err = Error;

    /// # Errors
    /// Kind `Usage` for a name or a setting that does not exist.
    fn from_str(spec: &str) -> Result<Self> {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        Ok(match (name, rest) {
            ("react", own) => Self::React(own.parse()?),
            ("fixed", own) => Self::Fixed(own.parse()?),
            ("cli", program) => Self::External(program.parse()?),
            ("python", function) if !function.is_empty() => match function.parse() {
                Ok(function) => Self::Function(function),
            },
            ("scripted", file) if !file.is_empty() => Self::Scripted(file.into()),
            ("replies", file) if !file.is_empty() => Self::Replies(file.into()),
            ("mutant", probability) => Self::Mutant(parse_probability(probability)?),
            ("single", "") => Self::Single,
            ("ml-agent", own) => Self::MlAgent(own.parse()?),
            ("gold", "") => Self::Gold,
            ("noop", "") => Self::Noop,
            ("forger", "") => Self::Forger,
            ("random", "") => Self::Random,
            ("copycat", "") => Self::Copycat,
            _ => {
                return Err(Error::usage(format!("there is no agent `{spec}`")).hint(format!("the agents are {FORMS}")));
            }
        })
    }
}

fn parse_probability(text: &str) -> Result<f64> {
    let parsed = text.parse::<f64>().ok().filter(|probability| (0.0..=1.0).contains(probability));
    parsed.ok_or_else(|| {
        Error::usage(format!("`{text}` is not a probability")).hint("give a number from 0 to 1, as in `mutant:0.3`")
    })
}

impl fmt::Display for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::React(own) | Self::Fixed(own) | Self::MlAgent(own) if own.is_empty() => Ok(()),
            Self::React(own) | Self::Fixed(own) | Self::MlAgent(own) => write!(f, ":{own}"),
            Self::External(program) => write!(f, ":{program}"),
            Self::Function(function) => write!(f, ":{function}"),
            Self::Scripted(file) | Self::Replies(file) => write!(f, ":{}", file.display()),
            Self::Mutant(probability) => write!(f, ":{probability}"),
            Self::Single | Self::Gold | Self::Noop | Self::Forger | Self::Random | Self::Copycat => Ok(()),
        }
    }
}

crate::files::stored_as_text!(AgentSpec);

/// Returns the agents with their labels in a run with these settings. If two labels are equal, the second becomes
/// `NAME-2`.
pub fn labelled<'a>(agents: &'a [AgentSpec], run: &Settings) -> Vec<(String, &'a AgentSpec)> {
    let mut all: Vec<(String, &AgentSpec)> = Vec::new();
    for spec in agents {
        let name = spec.label(run);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|label| all.iter().all(|(it, _)| it != label));
        all.push((free.unwrap_or(name), spec));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: &str) -> AgentSpec {
        spec.parse().unwrap()
    }

    #[test]
    fn a_list_of_agents_is_split_only_where_the_name_of_an_agent_begins() {
        let split = |list: &str| AgentSpec::split(list).join(" | ");
        assert_eq!(split("gold,noop"), "gold | noop");
        assert_eq!(
            split("fixed:paper=none,repair=2,react:history=window:5,gold"),
            "fixed:paper=none,repair=2 | react:history=window:5 | gold"
        );
        assert_eq!(split("scripted:a,b.jsonl,noop"), "scripted:a,b.jsonl | noop");
        assert_eq!(split("golden,noop"), "golden | noop");
        assert_eq!(split("react,python:a.py:f"), "react | python:a.py:f");
    }

    #[test]
    fn every_form_of_an_agent_is_printed_as_it_was_parsed() {
        for spec in [
            "react",
            "fixed",
            "react:prompt=planning,history=window:5",
            "fixed:paper=none,repair=2,fill=masked",
            "react:reasoning=512,paper=bm25,passages=7,context=16000,tools=swe-agent,protocol=text,reflexion=3",
            "cli:gptme",
            "cli:mini-swe-agent,mode=text",
            "cli:/a folder, with a comma/mine,mode=x",
            "python:agents.py",
            "python:a folder/agents.py:mine",
            "scripted:steps.jsonl",
            "replies:a folder/replies.jsonl",
            "mutant:0.3",
            "single",
            "ml-agent",
            "ml-agent:words=4,retrieve=10,replies=12,docs=6000,file=4000",
            "gold",
            "noop",
            "forger",
            "random",
            "copycat",
        ] {
            assert_eq!(AgentSpec::split(&format!("gold,{spec}")), ["gold", spec], "its name is listed");
            assert_eq!(read(spec).to_string(), spec);
            let kept = serde_json::to_string(&read(spec)).unwrap();
            assert_eq!(kept, format!("\"{spec}\""));
            assert_eq!(serde_json::from_str::<AgentSpec>(&kept).unwrap(), read(spec));
        }
        for wrong in
            ["", "raect", "gold:x", "scripted:", "python:", "mutant:2", "react:colour=red", "cli:gptme,colour=red"]
        {
            assert!(wrong.parse::<AgentSpec>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_label_lists_settings_that_differ_from_the_agents_defaults() {
        let run = Settings::default();
        for (spec, label) in [
            ("react", "react"),
            ("react:paper=none,code=agent,history=full", "react"),
            ("react:history=window:5,prompt=planning", "react+prompt=planning+history=window-5"),
            ("react:passages=9", "react"),
            ("react:paper=bm25,passages=9", "react+paper=bm25+passages=9"),
            ("fixed:paper=bm25,repair=2,prompt=planning", "fixed+repair=2"),
            ("fixed:paper=none,passages=9,reasoning=512", "fixed+paper=none+passages=9+reasoning=512"),
            ("fixed:paper=embedding", "fixed+paper=embedding"),
            ("ml-agent:retrieve=5", "ml-agent"),
            ("ml-agent:retrieve=10,paper=bm25,passages=9", "ml-agent+retrieve=10"),
            ("mutant:0.30", "mutant-0.3"),
            ("cli:agents/mine,mode=text", "mine+mode=text"),
            ("scripted:a/b.jsonl", "scripted"),
            ("python:a/b.py", "b"),
            ("python:a/b.py:mine", "mine"),
        ] {
            assert_eq!(read(spec).label(&run), label, "{spec}");
        }
        let run = Settings { reasoning_tokens: 64, embedding: Some("model".into()), ..run };
        assert_eq!(read("fixed:paper=embedding").label(&run), "fixed+paper=embedding+reasoning=64");
        assert_eq!(read("fixed:repair=1").label_without(&run, Some("reasoning")), "fixed+repair=1");
    }

    #[test]
    fn agents_of_one_name_are_numbered() {
        let agents = [read("react"), read("react:paper=none"), read("gold"), read("react")];
        let labels: Vec<String> = labelled(&agents, &Settings::default()).into_iter().map(|it| it.0).collect();
        assert_eq!(labels, ["react", "react-2", "gold", "react-3"]);
    }
}
