//! What can be set about agents: retrieval, order and repair of a fixed agent's functions, reasoning; prompt, history,
//! tools and protocol of a dynamic one.
//!
//! Settings come from the command line and are kept with the run. An agent's own ones stand behind its name:
//! `fixed:paper=none,repair=2`.

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::History;
use super::prompts::dynamic::Prompting;
use super::protocol::Protocol;
use super::retrieval::{CodeChoice, PaperChoice, Retriever};
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

/// What can be set about agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// Which of the paper's text is put into the task; the agent's own default when `None`.
    pub paper: Option<PaperChoice>,
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
    /// Tries within an attempt, each but the first after a plan from the one before; 0 and 1 are one try.
    pub reflexion: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            paper: None,
            code: None,
            passages: 3,
            snippets: 5,
            embedding: None,
            embedding_url: None,
            fill: Fill::default(),
            repair: 0,
            reasoning_tokens: 0,
            prompt: Prompting::default(),
            history: History::default(),
            context_tokens: None,
            tools: ToolChoice::default(),
            protocol: Protocol::default(),
            reflexion: 0,
        }
    }
}

/// The keys of an agent's own settings.
const KEYS: &str = "`paper`, `code`, `passages`, `snippets`, `reasoning`; `fill`, `repair` of `fixed`; `prompt`, `history`, `context`, \
                    `tools`, `protocol`, `reflexion` of `react`";

impl Settings {
    /// These settings with those that stand behind an agent's name: `paper=none,repair=2`.
    ///
    /// # Errors
    /// Kind `Usage` for an unknown key or value.
    pub fn with(&self, written: &str) -> Result<Self> {
        let mut this = self.clone();
        for pair in written.split(',').filter(|pair| !pair.is_empty()) {
            let wrong = || Error::usage(format!("`{pair}` is no setting of an agent"));
            let (key, value) =
                pair.split_once('=').ok_or_else(|| wrong().hint(format!("write KEY=VALUE, with one of {KEYS}")))?;
            let number = || value.parse::<u32>().map_err(|_| wrong().hint(format!("`{key}` takes a whole number")));
            match key {
                "paper" => this.paper = Some(choice(value).map_err(|hint| wrong().hint(hint))?),
                "code" => this.code = Some(choice(value).map_err(|hint| wrong().hint(hint))?),
                "fill" => this.fill = choice(value).map_err(|hint| wrong().hint(hint))?,
                "passages" => this.passages = number()? as usize,
                "snippets" => this.snippets = number()? as usize,
                "repair" => this.repair = number()?,
                "reasoning" => this.reasoning_tokens = number()?,
                "prompt" => this.prompt = choice(value).map_err(|hint| wrong().hint(hint))?,
                "history" => this.history = value.parse().map_err(|hint: String| wrong().hint(hint))?,
                "context" => this.context_tokens = Some(number()?.into()),
                "tools" => this.tools = choice(value).map_err(|hint| wrong().hint(hint))?,
                "reflexion" => this.reflexion = number()?,
                "protocol" => this.protocol = choice(value).map_err(|hint| wrong().hint(hint))?,
                _ => return Err(wrong().hint(format!("the keys are {KEYS}"))),
            }
        }
        Ok(this)
    }

    /// The options by which these settings differ from the defaults, as they are written on the command line. Which
    /// embedding model there is says nothing: it is settled for every run.
    #[must_use]
    pub fn options(&self) -> Vec<&'static str> {
        let default = Self::default();
        [
            ("--paper", self.paper != default.paper),
            ("--code", self.code != default.code),
            ("--passages", self.passages != default.passages),
            ("--snippets", self.snippets != default.snippets),
            ("--fill", self.fill != default.fill),
            ("--repair", self.repair != default.repair),
            ("--reasoning-tokens", self.reasoning_tokens != default.reasoning_tokens),
            ("--prompt", self.prompt != default.prompt),
            ("--history", self.history != default.history),
            ("--context-tokens", self.context_tokens != default.context_tokens),
            ("--tools", self.tools != default.tools),
            ("--protocol", self.protocol != default.protocol),
            ("--reflexion", self.reflexion != default.reflexion),
        ]
        .into_iter()
        .filter_map(|(option, differs)| differs.then_some(option))
        .collect()
    }

    /// Whether any choice needs an embedding model.
    #[must_use]
    pub fn embeds(&self) -> bool {
        self.paper == Some(PaperChoice::Embedding) || self.code == Some(CodeChoice::Embedding)
    }

    /// Settles which embedding model is used: the given one, or the one in the cache's folder `embedding`. Where neither
    /// is there, embeddings become BM25, and what was said about it comes back.
    pub fn settle(&mut self, cache: &Path) -> Option<String> {
        let local = cache.join("embedding");
        if self.embedding.is_none() && embedding::is_model(&local) {
            self.embedding = Some(local.display().to_string());
        }
        if !self.embeds() || self.embedding.is_some() {
            return None;
        }
        self.fall_back();
        Some(Self::without_embedding(cache))
    }

    /// What there is to say where embeddings are asked for and there is no model for them.
    #[must_use]
    pub fn without_embedding(cache: &Path) -> String {
        format!(
            "there is no embedding model, so BM25 is used instead; put one into `{}`, or name one with `--embedding`",
            cache.join("embedding").display()
        )
    }

    fn fall_back(&mut self) {
        if self.paper == Some(PaperChoice::Embedding) {
            self.paper = Some(PaperChoice::Bm25);
        }
        if self.code == Some(CodeChoice::Embedding) {
            self.code = Some(CodeChoice::Bm25);
        }
    }

    /// A retriever with the agent's own defaults where nothing is chosen. Vectors are kept in `cache`.
    ///
    /// # Errors
    /// Those of [`embedding::open`].
    pub fn retriever(&self, paper: PaperChoice, code: CodeChoice, cache: Option<&Path>) -> Result<Retriever> {
        let mut this = Self { paper: self.paper.or(Some(paper)), code: self.code.or(Some(code)), ..self.clone() };
        if this.embedding.is_none() {
            this.fall_back();
        }
        let embedder: Option<Arc<dyn Embedder>> = match &this.embedding {
            Some(spec) if this.embeds() => Some(embedding::open(spec, this.embedding_url.as_deref(), cache)?),
            _ => None,
        };
        Ok(Retriever {
            paper: this.paper.unwrap_or(paper),
            code: this.code.unwrap_or(code),
            passages: self.passages,
            snippets: self.snippets,
            embedder,
        })
    }
}

/// A name with the settings that are not the agent's defaults behind it, as part of file names and tables. A colon, which
/// not every file system and archive takes in a name, becomes a dash.
#[must_use]
pub fn label(name: &str, parts: &[(&str, String, String)]) -> String {
    parts
        .iter()
        .filter(|(_, value, default)| value != default)
        .fold(name.to_owned(), |label, (key, value, _)| format!("{label}+{key}={}", value.replace(':', "-")))
}

/// As a choice is written.
pub fn written<T: ValueEnum + Copy>(choice: T) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn choice<T: ValueEnum + Copy>(text: &str) -> std::result::Result<T, String> {
    T::from_str(text, false).map_err(|_| {
        let names: Vec<String> = T::value_variants().iter().copied().map(|it| format!("`{}`", written(it))).collect();
        format!("give one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_behind_a_name_are_read_over_those_of_the_run() {
        let run = Settings { repair: 1, ..Settings::default() };
        let own = run.with("paper=none,reasoning=512").unwrap();
        assert_eq!((own.paper, own.repair, own.reasoning_tokens), (Some(PaperChoice::None), 1, 512));
        let hint = |text: &str| run.with(text).unwrap_err().hint.unwrap();
        insta::assert_snapshot!(hint("paper=all"), @"give one of `none`, `full`, `bm25`, `embedding`, `oracle`");
        insta::assert_snapshot!(hint("repair=x"), @"`repair` takes a whole number");
        insta::assert_snapshot!(hint("colour=red"), @"the keys are `paper`, `code`, `passages`, `snippets`, `reasoning`; `fill`, `repair` of `fixed`; `prompt`, `history`, `context`, `tools`, `protocol`, `reflexion` of `react`");
        insta::assert_snapshot!(hint("history=window"), @"`window` is no history: give `full`, `window:K`, `summary:K` or `super`, with K from 1");
        insta::assert_snapshot!(hint("prompt=plan"), @"give one of `react`, `mlagentbench`, `planning`");
    }

    #[test]
    fn without_an_embedding_model_bm25_takes_its_place_and_says_so() {
        let cache = tempfile::tempdir().unwrap();
        let mut settings = Settings { paper: Some(PaperChoice::Embedding), ..Settings::default() };
        assert!(settings.settle(cache.path()).is_some_and(|notice| notice.contains("--embedding")));
        assert_eq!(settings.paper, Some(PaperChoice::Bm25));
        assert_eq!(settings.settle(cache.path()), None);
    }
}
