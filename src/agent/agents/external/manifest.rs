//! `agent.toml`, the manifest of an external agent: how to start the agent and where to read its answer.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::files::from_toml;

/// File name of the manifest in an agent's folder.
pub(super) const FILE: &str = "agent.toml";

/// A parsed manifest. Its texts may contain placeholders in braces, which are replaced when an attempt begins; see
/// [`Placeholders`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentManifest {
    /// Program and arguments, run in the workspace.
    pub(super) command: Vec<String>,
    /// Where to read the answer.
    pub(super) answer: AnswerPlace,
    /// Text sent to the program's standard input.
    #[serde(default)]
    pub(super) stdin: String,
    /// Environment variables, in addition to those of the paper's env.
    #[serde(default)]
    pub(super) variables: BTreeMap<String, String>,
    /// Files to write before the program starts: paths and contents.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Alternative ways to start the agent, by mode name.
    #[serde(default)]
    mode: BTreeMap<String, AgentMode>,
}

/// Where to read an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnswerPlace {
    /// A file, which the agent writes. The task states its path.
    File,
    /// The last JSON object in the standard output.
    Stdout,
}

/// Changes that a mode makes to the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentMode {
    /// Replaces the manifest's command.
    command: Option<Vec<String>>,
    /// Replaces the manifest's standard input.
    stdin: Option<String>,
    /// Environment variables added to the manifest's variables. They replace variables of the same name.
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Files added to the manifest's files. They replace files of the same path.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Placeholders and their values.
pub(super) struct Placeholders {
    pub(super) entries: Vec<(&'static str, String)>,
    /// Placeholders whose value may be unknown. If the value is unknown, each argument, variable or line of a file that
    /// contains the placeholder is left out.
    pub(super) perhaps: Vec<(&'static str, Option<String>)>,
}

impl Placeholders {
    /// Replaces the placeholders in a text. Other braces, such as JSON's, are kept.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        // Replace in one pass from left to right, so that inserted text is not searched again: a task may contain
        // braces.
        'next: while let Some(open) = rest.find('{') {
            filled.push_str(&rest[..open]);
            rest = &rest[open..];
            let known = self.perhaps.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
            for (name, value) in self.entries.iter().map(|(name, value)| (name, value)).chain(known) {
                if let Some(after) = rest[1..].strip_prefix(name).and_then(|after| after.strip_prefix('}')) {
                    filled.push_str(value);
                    rest = after;
                    continue 'next;
                }
            }
            filled.push('{');
            rest = &rest[1..];
        }
        filled + rest
    }

    /// Replaces the placeholders in a text; returns `None` if one of them has no value.
    pub(super) fn fill_known(&self, text: &str) -> Option<String> {
        (!self.has_unknown(text)).then(|| self.fill(text))
    }

    /// Replaces the placeholders in a file's text, and removes the lines with a placeholder that has no value.
    pub(super) fn fill_lines(&self, text: &str) -> String {
        text.split_inclusive('\n').filter_map(|line| self.fill_known(line)).collect()
    }

    fn has_unknown(&self, text: &str) -> bool {
        self.perhaps.iter().any(|(name, value)| value.is_none() && text.contains(&format!("{{{name}}}")))
    }
}

/// The error for a mode that the manifest does not have.
#[derive(Debug)]
pub(super) struct UnknownMode {
    asked: String,
    modes: Vec<String>,
}

impl UnknownMode {
    pub(super) fn hint_modes(self, agent: &str) -> Error {
        let hint = if self.modes.is_empty() {
            format!("this agent has no modes: write `cli:{agent}`")
        } else {
            format!("its modes are `{}`", self.modes.join("`, `"))
        };
        Error::usage(format!("agent `cli:{agent}` has no mode `{}`", self.asked)).hint(hint)
    }
}

impl AgentManifest {
    /// Reads the manifest in a folder.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be read, `Suite` with file and line if it is invalid.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Error::usage(format!("failed to read `{}`", path.display()))
                .because(error)
                .hint("an agent's folder needs an `agent.toml` and, for an env, an `environment.yml` and a lock file")
        })?;
        Self::parse(&text, &path)
    }

    /// Parses a manifest; `path` is used in error messages.
    ///
    /// # Errors
    /// Kind `Suite` with file and line.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self> {
        let manifest: Self = from_toml(text, path)
            .map_err(|error| error.hint("the manifest needs `command` (a list) and `answer` (`file` or `stdout`)"))?;
        let modes = manifest.mode.keys().filter(|mode| !super::is_plain(mode)).map(|mode| {
            Error::suite(format!("`{mode}` cannot be the name of a mode"))
                .at(path, None)
                .hint("a name may hold letters, digits, `-`, `_` and `.`")
        });
        let commands =
            std::iter::once(&manifest.command).chain(manifest.mode.values().filter_map(|m| m.command.as_ref()));
        let empty = commands.into_iter().any(Vec::is_empty).then(|| {
            Error::suite("a `command` is empty")
                .at(path, None)
                .hint("give the program and its arguments, such as `[\"{prefix}/bin/mine\", \"--task\", \"{task}\"]`")
        });
        if let Some(error) = Error::all(modes.chain(empty).collect()) {
            return Err(error);
        }
        Ok(manifest)
    }

    /// Returns the names of the modes.
    pub(super) fn modes(&self) -> Vec<String> {
        self.mode.keys().cloned().collect()
    }

    /// Applies a mode to the manifest; `None` leaves it unchanged.
    pub(super) fn in_mode(mut self, mode: Option<&str>) -> std::result::Result<Self, UnknownMode> {
        let Some(asked) = mode else { return Ok(self) };
        let Some(mode) = self.mode.remove(asked) else {
            return Err(UnknownMode { asked: asked.to_owned(), modes: self.mode.into_keys().collect() });
        };
        self.command = mode.command.unwrap_or(self.command);
        self.stdin = mode.stdin.unwrap_or(self.stdin);
        self.variables.extend(mode.variables);
        self.files.extend(mode.files);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "command = ['a', '{task}']\nanswer = 'stdout'\nvariables = { A = '1', B = '2' }\n\
                        [mode.x]\nvariables = { B = '3' }\n[mode.y]\ncommand = ['b']\n";

    #[test]
    fn all_errors_of_an_agent_manifest_are_reported() {
        let told = |text: &str| AgentManifest::parse(text, Path::new("agent.toml")).unwrap_err().to_string();
        let misread = told("command = 'x'\nanswer = 'stdout'\nstdn = ''\n");
        assert!(
            misread.contains("agent.toml:1: ") && misread.contains("agent.toml:3: unknown field `stdn`"),
            "{misread}"
        );
        let wrong = told("command = []\nanswer = 'stdout'\n[mode.'a b']\n[mode.'c d']\n");
        assert!(
            wrong.contains("`a b`") && wrong.contains("`c d`") && wrong.contains("a `command` is empty"),
            "{wrong}"
        );
    }

    #[test]
    fn a_mode_changes_only_the_settings_that_it_names() {
        let plain = AgentManifest::parse(TEXT, Path::new("agent.toml")).unwrap();
        let x = plain.clone().in_mode(Some("x")).unwrap();
        assert_eq!((&x.command, x.variables["A"].as_str(), x.variables["B"].as_str()), (&plain.command, "1", "3"));
        assert_eq!(plain.clone().in_mode(Some("y")).unwrap().command, ["b"]);
        let error = plain.in_mode(Some("z")).unwrap_err().hint_modes("q").to_string();
        assert_eq!(error, "agent `cli:q` has no mode `z`");
    }

    #[test]
    fn the_error_of_a_broken_manifest_names_its_line() {
        for (text, line) in [("answer = 'file'\ncomand = []\n", 1), ("command = ['a']\nanswer = 'mail'\n", 2)] {
            let error = AgentManifest::parse(text, Path::new("agent.toml")).unwrap_err();
            assert!(format!("{error}{:?}", error.hint).contains("command"), "{error}");
            assert_eq!(error.place.as_ref().and_then(|(_, at)| *at), Some(line), "{error}");
        }
        assert!(AgentManifest::parse("command = []\nanswer = 'file'\n", Path::new("agent.toml")).is_err());
    }

    #[test]
    fn known_placeholders_are_replaced_once_and_other_braces_stay() {
        let entries = vec![("task", "do {key} {x}".into()), ("key", "K".into())];
        let places = Placeholders { entries, perhaps: Vec::new() };
        assert_eq!(places.fill("{\"a\": \"{key}\"} {task}{"), "{\"a\": \"K\"} do {key} {x}{");
    }

    #[test]
    fn lines_and_arguments_whose_placeholder_has_no_value_are_left_out() {
        let perhaps = vec![("context", Some("8192".to_owned())), ("effort", None)];
        let places = Placeholders { entries: vec![("model", "m".into())], perhaps };
        let file = "model = \"{model}\"\neffort = \"{effort}\"\nwindow = {context}\n{other}";
        assert_eq!(places.fill_lines(file), "model = \"m\"\nwindow = 8192\n{other}");
        assert_eq!(places.fill_known("--effort={effort}"), None);
        assert_eq!(places.fill_known("--window={context}").as_deref(), Some("--window=8192"));
    }
}
