//! Options of agents: what they get at the start, how they think, act and write, and how long. Their defaults are those
//! of [`Settings`].

use super::shared::PlaceOptions;
use crate::agent::history::History;
use crate::agent::prompts::dynamic::Prompting;
use crate::agent::protocol::ToolProtocol;
use crate::agent::retrieval::{CodeChoice, PaperChoice};
use crate::agent::review::MOST_FEEDBACK;
use crate::agent::settings::{Preset, code_help, paper_help};
use crate::agent::tools::ToolChoice;
use crate::agent::{Fill, Settings};
use crate::error::Result;

/// Contents of an agent's task at its start.
#[derive(clap::Args)]
pub struct RetrievalOptions {
    #[arg(long = "paper-text", alias = "paper", value_name = "CHOICE", value_enum, help = paper_help(), help_heading = "Retrieval")]
    paper: Option<PaperChoice>,
    #[arg(long, value_name = "CHOICE", value_enum, help = code_help(), help_heading = "Retrieval")]
    code: Option<CodeChoice>,
    /// Maximum passages of the paper to retrieve per function.
    #[arg(long, value_name = "K", default_value_t = Settings::default().passages, help_heading = "Retrieval")]
    passages: usize,
    /// Maximum functions of the repo to retrieve per function.
    #[arg(long, value_name = "K", default_value_t = Settings::default().snippets, help_heading = "Retrieval")]
    snippets: usize,
    /// Embedding model: the folder of a static one, `openai:NAME`, or NAME with --embedding-url [default: the folder
    /// `embedding` in the cache].
    #[arg(long, value_name = "MODEL", env = "AUTOEXPERIMENT_EMBEDDING", help_heading = "Retrieval")]
    embedding: Option<String>,
    /// Address of an OpenAI-compatible server for the embedding model, such as `http://127.0.0.1:8080/v1`.
    #[arg(long, value_name = "URL", requires = "embedding", help_heading = "Retrieval")]
    embedding_url: Option<String>,
}

/// How a fixed agent works.
#[derive(clap::Args)]
pub struct FixedOptions {
    /// How to show the other missing functions while writing one: masked, or as filled in so far.
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = Settings::default().fill, help_heading = "Fixed agent")]
    fill: Fill,
    /// Rounds of repair, in which the model sees the experiments' errors.
    #[arg(long, value_name = "ROUNDS", default_value_t = Settings::default().repair, help_heading = "Fixed agent")]
    repair: u32,
}

/// How a dynamic agent works.
#[derive(clap::Args)]
pub struct DynamicOptions {
    /// Leave `paper.txt` out of the workspace: the model gets only those parts of the paper that `--paper-text` puts
    /// into its task.
    #[arg(long, help_heading = "Dynamic agent")]
    no_paper_file: bool,
    /// Work like a published agent, which replaces prompt, history, tools and protocol.
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = Settings::default().preset, help_heading = "Dynamic agent")]
    preset: Preset,
    /// Text that the model writes before each tool call.
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = Settings::default().prompt, help_heading = "Dynamic agent")]
    prompt: Prompting,
    /// Which earlier steps the model sees: `full`, `window:K` (the last K), `summary:K` (at least the last K, and a
    /// summary of the earlier ones by the model), `super` (all, but only the last 500 characters of every result except
    /// the newest).
    #[arg(long, value_name = "HISTORY", default_value_t = Settings::default().history, help_heading = "Dynamic agent")]
    history: History,
    /// Context size of the model, in tokens read and written. Shortens the oldest results when it is nearly used up
    /// [default: only when the provider refuses a conversation for its length].
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1000..), help_heading = "Dynamic agent")]
    context_tokens: Option<u64>,
    /// Set of tools.
    #[arg(long, value_name = "SET", value_enum, default_value_t = Settings::default().tools, help_heading = "Dynamic agent")]
    tools: ToolChoice,
    /// How the model calls tools.
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t = Settings::default().protocol, help_heading = "Dynamic agent")]
    protocol: ToolProtocol,
    /// One tool call per step, as in the paper. The provider is asked for no more than one if it supports that. Without
    /// this option, all calls of a reply run, in order.
    #[arg(long, help_heading = "Dynamic agent")]
    one_call: bool,
    /// Tries within an attempt, each with a K-th of its budget. After a failed try (no answer, or experiments without a
    /// result), the model writes a plan for the next.
    #[arg(long, value_name = "K", default_value_t = Settings::default().reflexion, help_heading = "Dynamic agent")]
    reflexion: u32,
}

impl DynamicOptions {
    /// Adds these settings of a dynamic agent to `settings`.
    pub fn over(&self, settings: Settings) -> Settings {
        Settings {
            paper_file: !self.no_paper_file,
            preset: self.preset,
            prompt: self.prompt,
            history: self.history,
            context_tokens: self.context_tokens,
            tools: self.tools,
            protocol: self.protocol,
            one_call: self.one_call,
            reflexion: self.reflexion,
            ..settings
        }
    }
}

impl RetrievalOptions {
    /// Returns the settings, with the embedding model resolved. Prints notes about the model on stderr.
    pub fn settings(&self, places: &PlaceOptions) -> Result<Settings> {
        let mut embedding = self.embedding.clone();
        if self.embedding_url.is_none()
            && let Some(folder) = embedding.as_ref().filter(|folder| std::path::Path::new(folder).is_dir())
        {
            // The run may be resumed from another folder.
            let path = std::path::absolute(folder)
                .map_err(|error| crate::error::Error::io("resolve", folder.as_ref(), error))?;
            embedding = Some(path.display().to_string());
        }
        let mut settings = Settings {
            paper: self.paper,
            code: self.code,
            passages: self.passages,
            snippets: self.snippets,
            embedding,
            embedding_url: self.embedding_url.clone(),
            ..Settings::default()
        };
        settings.choose_embedding(&places.cache()?)?;
        Ok(settings)
    }
}

/// Feedback that agents get on their work.
#[derive(clap::Args)]
pub struct FeedbackOptions {
    /// After each round of `react` and `fixed`, run their work again and tell them nothing (0), that it does not pass
    /// (1), which test fails (2), its error (3), and whether wrong values are too high or too low (4) [default: one
    /// round].
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_FEEDBACK)), help_heading = "Agents and models")]
    feedback: Option<u32>,
    /// Maximum rounds after the first one, within the attempt's budget.
    #[arg(long, value_name = "ROUNDS", default_value_t = Settings::default().rounds, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Agents and models")]
    rounds: u32,
}

impl FeedbackOptions {
    /// Adds these settings of feedback to `settings`.
    pub fn over(&self, settings: Settings) -> Settings {
        Settings { feedback: self.feedback, rounds: self.rounds, ..settings }
    }
}

/// How long agents think.
#[derive(clap::Args)]
pub struct ReasoningOptions {
    /// Tokens of reasoning before each function of `fixed`, and before the first step of `react`; 0 for no reasoning.
    /// Models are cut off at this limit, and told to continue if they stop early. For `fixed`, a provider's own
    /// reasoning budget is used if it has one.
    #[arg(long, value_name = "TOKENS", default_value_t = Settings::default().reasoning_tokens, help_heading = "Agents and models")]
    reasoning_tokens: u32,
}

impl ReasoningOptions {
    /// Adds this setting of reasoning to `settings`.
    pub fn over(&self, settings: Settings) -> Settings {
        Settings { reasoning_tokens: self.reasoning_tokens, ..settings }
    }
}

impl FixedOptions {
    /// Adds these settings of a fixed agent to `settings`.
    pub fn over(&self, settings: Settings) -> Settings {
        Settings { fill: self.fill, repair: self.repair, ..settings }
    }
}
