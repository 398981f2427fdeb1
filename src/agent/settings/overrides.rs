//! Settings of a single agent, written after its name.

use std::fmt;
use std::str::FromStr;

use super::keys::{KEYS, setting_keys, users, written};
use super::{AgentKind, Preset, Settings};
use crate::error::{Error, Result};

/// Settings of a single agent, which replace those of the run: `paper=none,repair=2`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(Vec<(&'static str, String)>);

impl Overrides {
    /// Whether no settings follow the agent's name.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that this kind of agent uses all of these settings. Stored settings of earlier runs are not checked.
    ///
    /// # Errors
    /// Kind `Usage` for a setting that only other agents use, that has several values, or that the preset ignores.
    pub(crate) fn check(&self, kind: AgentKind) -> Result<()> {
        let settings = Settings::default().with(self).for_kind(kind);
        let without_preset = Settings { preset: Preset::None, ..settings.clone() };
        for (place, (name, value)) in self.0.iter().enumerate() {
            let Some(key) = KEYS.iter().find(|key| key.name == *name) else { continue };
            let users = users(key);
            if !users.contains(&kind) {
                let users: Vec<String> = users.iter().map(|user| format!("`{}`", user.name())).collect();
                return Err(Error::usage(format!("`{name}={value}` is not a setting of `{}`", kind.name())).hint(
                    format!("`{name}` is a setting of {}; all settings are {}", users.join(" and "), setting_keys()),
                ));
            }
            if self.0[..place].iter().any(|(earlier, _)| earlier == name) {
                return Err(Error::usage(format!("`{}` has several values of `{name}`", kind.name()))
                    .hint("give one value; to compare values, repeat `--agent`"));
            }
            // This preset retrieves nothing. `heeded` does not say so, because labels of stored runs depend on it.
            let is_unused = matches!(*name, "passages" | "snippets") && settings.preset == Preset::Researchcodebench;
            if is_unused || (key.heeded)(kind, &without_preset) && !(key.heeded)(kind, &settings) {
                let preset = written(settings.preset);
                return Err(Error::usage(format!("`preset={preset}` ignores `{name}={value}`"))
                    .hint("leave out the setting or the preset"));
            }
        }
        Ok(())
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
    /// Returns these settings of the run, overridden by `own`, the settings of a single agent.
    #[must_use]
    pub(crate) fn with(&self, own: &Overrides) -> Self {
        let mut this = self.clone();
        for (name, value) in &own.0 {
            if let Some(key) = KEYS.iter().find(|key| key.name == *name) {
                // Cannot fail: the value was validated when it was parsed.
                let _ = (key.read)(&mut this, value);
            }
        }
        this
    }
}
