//! The single definition of each agent setting: name, help, parsing, formatting, and the agents that use it.

use clap::ValueEnum;
use serde::Serialize;

use super::{AgentKind, Preset, Settings};
use crate::agent::retrieval::{CodeChoice, PaperChoice};
use crate::agent::review::MOST_FEEDBACK;

/// The definition of one setting.
pub(super) struct SettingKey {
    /// The setting's name on the command line and in labels.
    pub(super) name: &'static str,
    /// Placeholder for the value in help texts, such as `TOKENS`.
    pub(super) value: &'static str,
    /// Help text: the effect of the setting and, if they are few, its possible values.
    pub(super) help: &'static str,
    /// Parses a value and sets it; the error is a hint for the user.
    pub(super) read: fn(&mut Settings, &str) -> Result<(), String>,
    /// Formats the value so that `read` can parse it.
    pub(super) write: fn(&Settings) -> String,
    /// Whether an agent of this kind, with these settings, uses the setting.
    pub(super) heeded: fn(AgentKind, &Settings) -> bool,
}

/// Used as [`SettingKey::heeded`] for settings that both `react` and `fixed` use.
fn by_both(kind: AgentKind, _: &Settings) -> bool {
    kind != AgentKind::MlAgent
}

fn by_fixed(kind: AgentKind, _: &Settings) -> bool {
    kind == AgentKind::Fixed
}

fn by_react(kind: AgentKind, _: &Settings) -> bool {
    kind == AgentKind::React
}

fn by_ml_agent(kind: AgentKind, _: &Settings) -> bool {
    kind == AgentKind::MlAgent
}

/// Used as [`SettingKey::heeded`] for settings that `react` uses only without a preset.
fn by_free_react(kind: AgentKind, settings: &Settings) -> bool {
    kind == AgentKind::React && settings.preset == Preset::None
}

/// All settings that can differ between agents. Labels list them in this order.
pub(super) static KEYS: [SettingKey; 23] = [
    SettingKey {
        name: "paper",
        value: "CHOICE",
        help: "text of the paper in the task: `none`, `full`, `bm25`, `embedding` or `oracle`; `react` can read `paper.txt` too",
        read: |settings, text| choice(text).map(|value| settings.paper = Some(value)),
        write: |settings| settings.paper.map(written).unwrap_or_default(),
        heeded: by_both,
    },
    SettingKey {
        name: "paper-file",
        value: "true|false",
        help: "whether the workspace contains `paper.txt`; without it the model sees only what `paper` puts into its task",
        read: |settings, text| flag(text).map(|value| settings.paper_file = value),
        write: |settings| settings.paper_file.to_string(),
        heeded: by_react,
    },
    SettingKey {
        name: "code",
        value: "CHOICE",
        help: "code of the repo in the task: `none`, `full`, `bm25`, `embedding`, `ast` or `agent`",
        read: |settings, text| choice(text).map(|value| settings.code = Some(value)),
        write: |settings| settings.code.map(written).unwrap_or_default(),
        heeded: by_both,
    },
    SettingKey {
        name: "passages",
        value: "K",
        help: "maximum passages of the paper to retrieve per function",
        read: |settings, text| {
            settings.passages = number(text)? as usize;
            Ok(())
        },
        write: |settings| settings.passages.to_string(),
        heeded: |kind, settings| {
            let ranks = matches!(settings.paper, Some(PaperChoice::Bm25 | PaperChoice::Embedding));
            kind == AgentKind::Fixed || (kind == AgentKind::React && ranks)
        },
    },
    SettingKey {
        name: "snippets",
        value: "K",
        help: "maximum functions of the repo to retrieve per function",
        read: |settings, text| {
            settings.snippets = number(text)? as usize;
            Ok(())
        },
        write: |settings| settings.snippets.to_string(),
        heeded: |kind, settings| {
            let ranks = matches!(settings.code, Some(CodeChoice::Bm25 | CodeChoice::Ast | CodeChoice::Embedding));
            kind == AgentKind::Fixed || (kind == AgentKind::React && ranks)
        },
    },
    SettingKey {
        name: "fill",
        value: "CHOICE",
        help: "how the other missing functions are shown while one is written: `masked`, or `filled` in as written so far",
        read: |settings, text| choice(text).map(|value| settings.fill = value),
        write: |settings| written(settings.fill),
        heeded: by_fixed,
    },
    SettingKey {
        name: "repair",
        value: "ROUNDS",
        help: "rounds of repair, in which the model sees the end of the experiments' errors",
        read: |settings, text| number(text).map(|value| settings.repair = value),
        write: |settings| settings.repair.to_string(),
        heeded: by_fixed,
    },
    SettingKey {
        name: "preset",
        value: "CHOICE",
        help: "a published agent. `super` of `react`: SUPER's own, which replaces prompt, history, tools and protocol. `researchcodebench` of `fixed`: one message with the paper and the code, one reply for each missing part",
        read: |settings, text| choice(text).map(|value| settings.preset = value),
        write: |settings| written(settings.preset),
        heeded: by_both,
    },
    SettingKey {
        name: "prompt",
        value: "CHOICE",
        help: "text written before each call. `react`: a thought. `mlagentbench`: reflection, research plan and status, fact check, thought. `planning`: plan and status, thought",
        read: |settings, text| choice(text).map(|value| settings.prompt = value),
        write: |settings| written(settings.prompt),
        heeded: by_free_react,
    },
    SettingKey {
        name: "history",
        value: "HISTORY",
        help: "earlier steps that the model sees. `full`: all. `window:K`: the last K. `summary:K`: at least the last K, and a summary of those before. `super`: all, but only the last 500 characters of every result except the newest",
        read: |settings, text| {
            settings.history = text.parse()?;
            Ok(())
        },
        write: |settings| settings.history.to_string(),
        heeded: by_free_react,
    },
    SettingKey {
        name: "context",
        value: "TOKENS",
        help: "context size of the model, for tokens read and written together; the oldest results are shortened when it is nearly used up. 0: they are shortened only when the provider refuses a conversation as too long",
        read: |settings, text| {
            settings.context_tokens = match number(text)? {
                0 => None,
                1..1000 => return Err("`{key}` must be 0 or a number of tokens of at least 1000".to_owned()),
                tokens => Some(tokens.into()),
            };
            Ok(())
        },
        write: |settings| settings.context_tokens.unwrap_or(0).to_string(),
        heeded: by_free_react,
    },
    SettingKey {
        name: "tools",
        value: "SET",
        help: "set of tools: `autoexperiment`, `swe-agent`, `super` or `bash`",
        read: |settings, text| choice(text).map(|value| settings.tools = value),
        write: |settings| written(settings.tools),
        heeded: by_free_react,
    },
    SettingKey {
        name: "protocol",
        value: "CHOICE",
        help: "how the model calls tools. `tools`: the provider's tool calling. `text`: a thought and one code fence",
        read: |settings, text| choice(text).map(|value| settings.protocol = value),
        write: |settings| written(settings.protocol),
        heeded: by_free_react,
    },
    SettingKey {
        name: "one-call",
        value: "true|false",
        help: "one tool call per step, as in the AutoExperiment paper; otherwise all calls of a reply run, in order",
        read: |settings, text| flag(text).map(|value| settings.one_call = value),
        write: |settings| settings.one_call.to_string(),
        heeded: by_free_react,
    },
    SettingKey {
        name: "reflexion",
        value: "K",
        help: "tries within an attempt, each with a K-th of its budget; after a failed try the model writes a plan for the next",
        read: |settings, text| number(text).map(|value| settings.reflexion = value),
        // `reflexion=0` and `reflexion=1` both mean a single try, so always write 1.
        write: |settings| settings.reflexion.max(1).to_string(),
        heeded: by_react,
    },
    SettingKey {
        name: "reasoning",
        value: "TOKENS",
        help: "tokens of reasoning before each function of `fixed`, and before the first step of `react`; 0 for none",
        read: |settings, text| number(text).map(|value| settings.reasoning_tokens = value),
        write: |settings| settings.reasoning_tokens.to_string(),
        heeded: by_both,
    },
    SettingKey {
        name: "feedback",
        value: "LEVEL",
        help: "what the agent is told about its work after each round, from 0 (nothing) to 4; without it there is one round",
        read: |settings, text| {
            let level = number(text)?;
            if level > MOST_FEEDBACK {
                return Err(format!("`{{key}}` must be between 0 and {MOST_FEEDBACK}"));
            }
            settings.feedback = Some(level);
            Ok(())
        },
        write: |settings| settings.feedback.map(|level| level.to_string()).unwrap_or_default(),
        heeded: by_both,
    },
    SettingKey {
        name: "rounds",
        value: "N",
        help: "maximum rounds that follow feedback, within the attempt's budget",
        read: |settings, text| match number(text)? {
            rounds @ 1..=100 => {
                settings.rounds = rounds;
                Ok(())
            }
            _ => Err("`{key}` must be between 1 and 100".to_owned()),
        },
        write: |settings| settings.rounds.to_string(),
        heeded: |kind, settings| by_both(kind, settings) && settings.feedback.is_some(),
    },
    SettingKey {
        name: "words",
        value: "N",
        help: "maximum words to search for",
        read: |settings, text| at_least_one(text).map(|value| settings.reach.words = value),
        write: |settings| settings.reach.words.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "retrieve",
        value: "N",
        help: "maximum repositories considered",
        read: |settings, text| at_least_one(text).map(|value| settings.reach.repos = value),
        write: |settings| settings.reach.repos.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "replies",
        value: "N",
        help: "maximum replies per repository until there is a program",
        read: |settings, text| at_least_one(text).map(|value| settings.reach.replies = value),
        write: |settings| settings.reach.replies.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "docs",
        value: "CHARACTERS",
        help: "characters of a repository's documentation shown for planning",
        read: |settings, text| at_least_one(text).map(|value| settings.reach.docs = value),
        write: |settings| settings.reach.docs.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "file",
        value: "CHARACTERS",
        help: "characters shown of each file that the model reads",
        read: |settings, text| at_least_one(text).map(|value| settings.reach.file = value),
        write: |settings| settings.reach.file.to_string(),
        heeded: by_ml_agent,
    },
];

/// The agents that have settings.
const KINDS: [AgentKind; 3] = [AgentKind::Fixed, AgentKind::React, AgentKind::MlAgent];

/// Returns the kinds of agents that use a setting, possibly only together with other settings.
pub(super) fn users(key: &SettingKey) -> Vec<AgentKind> {
    let settings = Settings {
        paper: Some(PaperChoice::Bm25),
        code: Some(CodeChoice::Bm25),
        feedback: Some(1),
        ..Settings::default()
    };
    KINDS.into_iter().filter(|kind| (key.heeded)(*kind, &settings)).collect()
}

/// Returns the names of the settings by agent, for hints and help.
#[must_use]
pub fn setting_keys() -> String {
    let keys_of = |kinds: &[AgentKind]| {
        let keys = KEYS.iter().filter(|key| users(key) == kinds);
        keys.map(|key| format!("`{}`", key.name)).collect::<Vec<_>>().join(", ")
    };
    let both = keys_of(&[AgentKind::Fixed, AgentKind::React]);
    let own = KINDS.map(|kind| format!("{} of `{}`", keys_of(&[kind]), kind.name()));
    format!("{both}; {}", own.join("; "))
}

/// Description of one setting, for help and documentation.
#[derive(Debug, Clone, Serialize)]
pub struct SettingHelp {
    /// The setting's name, as in `react:NAME=VALUE`.
    pub key: &'static str,
    /// Placeholder for the value, such as `TOKENS`.
    pub value: &'static str,
    /// The agents that use the setting, each with its default value (an empty text if it has no default).
    pub agents: Vec<(&'static str, String)>,
    /// Effect of the setting.
    pub help: &'static str,
}

/// Describes all agent settings, in the order in which they appear in an agent's label.
#[must_use]
pub fn describe_settings() -> Vec<SettingHelp> {
    let default = |key: &SettingKey, kind: AgentKind| (key.write)(&Settings::default().for_kind(kind));
    let describe = |key: &SettingKey| SettingHelp {
        key: key.name,
        value: key.value,
        agents: users(key).into_iter().map(|kind| (kind.name(), default(key, kind))).collect(),
        help: key.help,
    };
    KEYS.iter().map(describe).collect()
}

/// Parses a whole number. The error is a hint that contains `{key}`, which the caller replaces.
fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "`{key}` takes a whole number".to_owned())
}

/// Parses a whole number of at least 1, with the same errors as [`number`].
fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "`{key}` takes a whole number from 1".to_owned())
}

/// Returns the command-line spelling of a choice.
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
