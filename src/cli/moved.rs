//! Names that verbs and options had in earlier versions: using one is an error that says the new name.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::agent::describe_settings;

/// Old verbs, each with what to type instead.
const VERBS: [(&str, &str); 7] = [
    ("sweep", "clean"),
    ("verify-runs", "pick"),
    ("super-trajectories", "rescore super-trajectories"),
    ("ml-bench", "rescore ml-bench"),
    ("researchcodebench", "rescore researchcodebench"),
    ("core-bench", "rescore core-bench"),
    ("check", "env lock --check"),
];

/// Old options of `report`, each with the view that replaces it.
const VIEWS: [(&str, &str); 9] = [
    ("--how", "behaviour"),
    ("--difficulty", "difficulty"),
    ("--leaderboard", "leaderboard"),
    ("--dates", "dates"),
    ("--lines", "lines"),
    ("--csv-attempts", "attempts"),
    ("--attempts", "attempts"),
    ("--csv-values", "values"),
    ("--values", "values"),
];

/// Old options of `run`, each with the setting of an agent that replaces it.
const SETTINGS: [(&str, &str); 19] = [
    ("--paper-text", "paper"),
    ("--paper", "paper"),
    ("--no-paper-file", "paper-file=false"),
    ("--code", "code"),
    ("--passages", "passages"),
    ("--snippets", "snippets"),
    ("--fill", "fill"),
    ("--repair", "repair"),
    ("--preset", "preset"),
    ("--prompt", "prompt"),
    ("--history", "history"),
    ("--context-tokens", "context"),
    ("--tools", "tools"),
    ("--protocol", "protocol"),
    ("--one-call", "one-call=true"),
    ("--reflexion", "reflexion"),
    ("--reasoning-tokens", "reasoning"),
    ("--feedback", "feedback"),
    ("--rounds", "rounds"),
];

/// Returns a hint with the new name, if an unknown verb or option is an old one.
pub(super) fn new_name(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // If an option is unknown, the verb (subcommand) is only in the usage line of the message.
    let usage = error.render().to_string();
    let is_of = |verb: &str| usage.contains(&format!("autoexperiment {verb}"));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let old = text(ContextKind::InvalidSubcommand)?;
            let (_, new) = VERBS.iter().find(|(name, _)| *name == old)?;
            Some(format!("this command is now called `autoexperiment {new}`"))
        }
        ErrorKind::UnknownArgument => {
            let old = text(ContextKind::InvalidArg)?;
            if is_of("report") || is_of("score") {
                let (_, view) = VIEWS.iter().find(|(name, _)| *name == old)?;
                let verb = if is_of("score") { "score RUN --view" } else { "report" };
                return Some(format!("use `autoexperiment {verb} {view}` instead"));
            }
            let (_, key) = SETTINGS.iter().find(|(name, _)| *name == old)?;
            let (name, setting) = match key.split_once('=') {
                Some((name, _)) => (name, (*key).to_owned()),
                None => (*key, format!("{key}=VALUE")),
            };
            let agent = describe_settings().into_iter().find(|it| it.key == name)?.agents.first()?.0;
            Some(format!(
                "it is a setting of an agent now, as in `--agent {agent}:{setting}`; `autoexperiment agents` lists them"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn hint(line: &str) -> Option<String> {
        let words = ["autoexperiment"].into_iter().chain(line.split(' '));
        new_name(&command().try_get_matches_from(words).unwrap_err())
    }

    #[test]
    fn old_commands_and_options_are_refused_with_a_hint_to_the_new() {
        for (line, new) in [
            ("sweep", "`autoexperiment clean`"),
            ("verify-runs r --verifier oracle", "`autoexperiment pick`"),
            ("import super-trajectories a.jsonl", "`autoexperiment rescore super-trajectories`"),
            ("env check", "`autoexperiment env lock --check`"),
            ("report r --how", "`autoexperiment report behaviour`"),
            ("report --csv-attempts r", "`autoexperiment report attempts`"),
            ("score r --csv-values", "`autoexperiment score RUN --view values`"),
            ("run --agent react --prompt planning", "`--agent react:prompt=VALUE`"),
            ("run --agent react --one-call", "`--agent react:one-call=true`"),
            ("run --agent fixed --repair=2", "`--agent fixed:repair=VALUE`"),
        ] {
            let hint = hint(line);
            assert!(hint.as_ref().is_some_and(|hint| hint.contains(new)), "{line}: {hint:?}");
        }
        assert_eq!(hint("run --agent react --colour red"), None);
        assert_eq!(hint("swep"), None);
    }
}
