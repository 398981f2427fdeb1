//! The table of all agent settings: names, options, parsing, formatting, and which agents use each.

use clap::ValueEnum;

use super::{AgentKind, Preset, Settings};
use crate::agent::retrieval::{CodeChoice, PaperChoice};
use crate::agent::review::MOST_FEEDBACK;

/// One setting: its names, how to read and write it, and which agents use it.
pub(super) struct SettingKey {
    /// Name after an agent's name and in labels.
    pub(super) name: &'static str,
    /// Name of the command-line option.
    pub(super) option: &'static str,
    /// Parses and sets a value; the error is a hint.
    pub(super) read: fn(&mut Settings, &str) -> Result<(), String>,
    /// Formats the value as `read` parses it.
    pub(super) write: fn(&Settings) -> String,
    /// Whether an agent of this kind with these settings uses it.
    pub(super) heeded: fn(AgentKind, &Settings) -> bool,
}

/// Used by `react` and `fixed`.
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

/// Used by `react` without a preset.
fn by_free_react(kind: AgentKind, settings: &Settings) -> bool {
    kind == AgentKind::React && settings.preset == Preset::None
}

/// All settings that can differ between agents, in the order of labels.
pub(super) static KEYS: [SettingKey; 23] = [
    SettingKey {
        name: "paper",
        option: "--paper-text",
        read: |settings, text| {
            settings.paper = Some(choice(text)?);
            Ok(())
        },
        write: |settings| settings.paper.map(written).unwrap_or_default(),
        heeded: by_both,
    },
    SettingKey {
        name: "paper-file",
        option: "--no-paper-file",
        read: |settings, text| {
            settings.paper_file = flag(text)?;
            Ok(())
        },
        write: |settings| settings.paper_file.to_string(),
        heeded: by_react,
    },
    SettingKey {
        name: "code",
        option: "--code",
        read: |settings, text| {
            settings.code = Some(choice(text)?);
            Ok(())
        },
        write: |settings| settings.code.map(written).unwrap_or_default(),
        heeded: by_both,
    },
    SettingKey {
        name: "passages",
        option: "--passages",
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
        option: "--snippets",
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
        option: "--fill",
        read: |settings, text| {
            settings.fill = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.fill),
        heeded: by_fixed,
    },
    SettingKey {
        name: "repair",
        option: "--repair",
        read: |settings, text| {
            settings.repair = number(text)?;
            Ok(())
        },
        write: |settings| settings.repair.to_string(),
        heeded: by_fixed,
    },
    SettingKey {
        name: "preset",
        option: "--preset",
        read: |settings, text| {
            settings.preset = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.preset),
        heeded: by_react,
    },
    SettingKey {
        name: "prompt",
        option: "--prompt",
        read: |settings, text| {
            settings.prompt = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.prompt),
        heeded: by_free_react,
    },
    SettingKey {
        name: "history",
        option: "--history",
        read: |settings, text| {
            settings.history = text.parse()?;
            Ok(())
        },
        write: |settings| settings.history.to_string(),
        heeded: by_free_react,
    },
    SettingKey {
        name: "context",
        option: "--context-tokens",
        read: |settings, text| {
            settings.context_tokens = Some(number(text)?.into());
            Ok(())
        },
        write: |settings| settings.context_tokens.unwrap_or(0).to_string(),
        heeded: by_free_react,
    },
    SettingKey {
        name: "tools",
        option: "--tools",
        read: |settings, text| {
            settings.tools = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.tools),
        heeded: by_free_react,
    },
    SettingKey {
        name: "protocol",
        option: "--protocol",
        read: |settings, text| {
            settings.protocol = choice(text)?;
            Ok(())
        },
        write: |settings| written(settings.protocol),
        heeded: by_free_react,
    },
    SettingKey {
        name: "one-call",
        option: "--one-call",
        read: |settings, text| {
            settings.one_call = flag(text)?;
            Ok(())
        },
        write: |settings| settings.one_call.to_string(),
        heeded: by_free_react,
    },
    SettingKey {
        name: "reflexion",
        option: "--reflexion",
        read: |settings, text| {
            settings.reflexion = number(text)?;
            Ok(())
        },
        // 0 and 1 tries mean the same.
        write: |settings| settings.reflexion.max(1).to_string(),
        heeded: by_react,
    },
    SettingKey {
        name: "reasoning",
        option: "--reasoning-tokens",
        read: |settings, text| {
            settings.reasoning_tokens = number(text)?;
            Ok(())
        },
        write: |settings| settings.reasoning_tokens.to_string(),
        heeded: by_both,
    },
    SettingKey {
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
    SettingKey {
        name: "rounds",
        option: "--rounds",
        read: |settings, text| {
            settings.rounds = number(text)?;
            Ok(())
        },
        write: |settings| settings.rounds.to_string(),
        heeded: |kind, settings| by_both(kind, settings) && settings.feedback.is_some(),
    },
    SettingKey {
        name: "words",
        option: "ml-agent:words",
        read: |settings, text| {
            settings.reach.words = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.words.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "retrieve",
        option: "ml-agent:retrieve",
        read: |settings, text| {
            settings.reach.repos = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.repos.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "replies",
        option: "ml-agent:replies",
        read: |settings, text| {
            settings.reach.replies = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.replies.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
        name: "docs",
        option: "ml-agent:docs",
        read: |settings, text| {
            settings.reach.docs = at_least_one(text)?;
            Ok(())
        },
        write: |settings| settings.reach.docs.to_string(),
        heeded: by_ml_agent,
    },
    SettingKey {
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

/// Names of the keys used by exactly these kinds of agents.
fn keys_of(kinds: &[AgentKind]) -> String {
    let settings = Settings {
        paper: Some(PaperChoice::Bm25),
        code: Some(CodeChoice::Bm25),
        feedback: Some(1),
        ..Settings::default()
    };
    let heeded = |key: &SettingKey, kind: AgentKind| (key.heeded)(kind, &settings) == kinds.contains(&kind);
    let names = KEYS.iter().filter(|key| heeded(key, AgentKind::Fixed) && heeded(key, AgentKind::React));
    let names = names.filter(|key| heeded(key, AgentKind::MlAgent));
    names.map(|key| format!("`{}`", key.name)).collect::<Vec<_>>().join(", ")
}

/// Names of the settings for each agent, for hints and help.
#[must_use]
pub fn setting_keys() -> String {
    let both = keys_of(&[AgentKind::Fixed, AgentKind::React]);
    let own = [AgentKind::Fixed, AgentKind::React, AgentKind::MlAgent]
        .map(|kind| format!("{} of `{}`", keys_of(&[kind]), kind.name()));
    format!("{both}; {}", own.join("; "))
}

/// Parses a whole number. The error is a hint in which the caller replaces `{key}`.
fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "`{key}` takes a whole number".to_owned())
}

/// Parses a whole number from 1, with errors as [`number`].
fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "`{key}` takes a whole number from 1".to_owned())
}

/// The command-line spelling of a choice.
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
