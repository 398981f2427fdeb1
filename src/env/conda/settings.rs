//! The user's conda configuration: `.condarc` files and `CONDA_*` variables, found in conda's locations and with
//! conda's precedence.
//!
//! Only settings that decide where packages come from are used: URL prefix (alias), channels, mirrors, priority,
//! offline. [`CondaSettings::warnings`] lists unsupported settings that would change which packages are installed or
//! trusted. Proxies are taken from the environment (`HTTPS_PROXY`).

mod condarc;
mod places;
#[cfg(test)]
mod tests;

use condarc::{Condarc, CondarcValues};
use std::collections::BTreeMap;

use super::address::checked_alias;
use crate::error::{Error, Result};

pub(in crate::env) use condarc::Priority;
pub(in crate::env) use places::CondarcLocations;

/// Where packages come from, according to the user's conda configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::env) struct CondaSettings {
    /// URL prefix for channel names, without a trailing slash. `None` means the library's default.
    pub(in crate::env) alias: Option<String>,
    /// The user's channels, which are appended to those of an `environment.yml` unless it contains `nodefaults`.
    pub(in crate::env) channels: Vec<String>,
    /// Channels meant by the name `defaults`.
    pub(in crate::env) default_channels: Vec<String>,
    /// Locations of individual channels: the URL of a channel is its location followed by its name.
    pub(in crate::env) custom_channels: BTreeMap<String, String>,
    /// Lists of channels by the name under which each list can be used like a channel.
    pub(in crate::env) custom_multichannels: BTreeMap<String, Vec<String>>,
    /// All URLs of a channel, the preferred one first.
    pub(in crate::env) mirrored_channels: BTreeMap<String, Vec<String>>,
    /// How the order of channels affects the choice of packages.
    pub(in crate::env) priority: Priority,
    /// Whether only `file:` channels and the cache may be used.
    pub(in crate::env) offline: bool,
    /// Warnings about configured settings that are not supported.
    pub(in crate::env) warnings: Vec<String>,
}

impl Default for CondaSettings {
    fn default() -> Self {
        Self {
            alias: None,
            channels: Vec::new(),
            default_channels: Vec::new(),
            custom_channels: BTreeMap::new(),
            custom_multichannels: BTreeMap::new(),
            mirrored_channels: BTreeMap::new(),
            priority: Priority::Strict,
            offline: false,
            warnings: Vec::new(),
        }
    }
}

impl CondaSettings {
    /// Loads the settings of this machine and user. `alias` is the command line's URL prefix for channel names, and
    /// takes precedence.
    ///
    /// # Errors
    /// Kind `Usage` for an alias that is not a URL; `Machine`, with the line, for a `.condarc` that cannot be read or
    /// is invalid.
    pub(in crate::env) fn load(alias: Option<&str>) -> Result<Self> {
        Self::read(&CondarcLocations::here(), alias)
    }

    /// Loads the settings from the configuration files and environment variables in `places`. `alias` takes precedence
    /// over both.
    pub(in crate::env) fn read(places: &CondarcLocations, alias: Option<&str>) -> Result<Self> {
        let mut settings = Self::default();
        // Sources come in ascending order of precedence. Their lists are concatenated, with later sources first; in
        // maps and for single values, later sources replace earlier ones.
        for file in places.files()? {
            settings.take(Condarc::read(&file, places)?);
        }
        settings.take(Condarc::of_variables(places)?);
        if let Some(alias) = alias {
            settings.alias = Some(checked_alias(alias).map_err(|why| {
                Error::usage(format!("`--channel-alias {alias}` {why}"))
                    .hint("give a URL, such as `https://conda.example.org` or `file:///srv/conda`")
            })?);
        }
        Ok(settings)
    }

    /// Adds the settings of a source with higher precedence.
    fn take(&mut self, condarc: Condarc) {
        let Condarc { given, warnings } = condarc;
        let CondarcValues {
            channel_alias,
            channels,
            default_channels,
            custom_channels,
            custom_multichannels,
            mirrored_channels,
            channel_priority,
            offline,
        } = given;
        self.alias = channel_alias.or(self.alias.take());
        put_before(&mut self.channels, channels);
        put_before(&mut self.default_channels, default_channels);
        self.custom_channels.extend(custom_channels);
        self.custom_multichannels.extend(custom_multichannels);
        self.mirrored_channels.extend(mirrored_channels);
        self.priority = channel_priority.unwrap_or(self.priority);
        self.offline = offline.unwrap_or(self.offline);
        self.warnings.extend(warnings);
    }
}

/// Puts the list `important` before `list`, without duplicates.
fn put_before(list: &mut Vec<String>, mut important: Vec<String>) {
    list.retain(|one| !important.contains(one));
    important.append(list);
    *list = important;
}
