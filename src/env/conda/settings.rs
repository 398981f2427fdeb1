//! The user's conda configuration: `.condarc` files and `CONDA_*` variables, read where and how conda reads them.
//!
//! Only what decides where packages come from is taken over: the alias, channels, mirrors, priority, offline. A
//! setting that would change what is installed or trusted, and that is not served here, is named in
//! [`Settings::warnings`]. Proxies are left to the environment (`HTTPS_PROXY`).

mod condarc;
mod places;
#[cfg(test)]
mod tests;

use condarc::{Condarc, Given};
use std::collections::BTreeMap;

use super::address::checked_alias;
use crate::error::{Error, Result};

pub(in crate::env) use condarc::Priority;
pub(in crate::env) use places::Places;

/// Where packages come from, as the user has configured conda.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::env) struct Settings {
    /// What is before the name of a channel, without a slash at its end. None: the library's own default.
    pub(in crate::env) alias: Option<String>,
    /// Channels that follow those of an `environment.yml` without `nodefaults`.
    pub(in crate::env) channels: Vec<String>,
    /// What the channel `defaults` stands for.
    pub(in crate::env) default_channels: Vec<String>,
    /// Places of single channels: a channel's URL is the place and the channel's name.
    pub(in crate::env) custom_channels: BTreeMap<String, String>,
    /// Names that stand for several channels.
    pub(in crate::env) custom_multichannels: BTreeMap<String, Vec<String>>,
    /// All URLs that hold a channel, the best first.
    pub(in crate::env) mirrored_channels: BTreeMap<String, Vec<String>>,
    /// Whether channels are in strict order.
    pub(in crate::env) priority: Priority,
    /// Whether only `file:` channels and the cache may be used.
    pub(in crate::env) offline: bool,
    /// What is configured and is not served here, a sentence each.
    pub(in crate::env) warnings: Vec<String>,
}

impl Default for Settings {
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

impl Settings {
    /// This machine's and this user's settings; `alias`, from the command line, wins over theirs.
    ///
    /// # Errors
    /// Kind `Usage` for an alias that is not a URL, `Machine` for a `.condarc` that cannot be read or is wrong, with its
    /// line.
    pub(in crate::env) fn load(alias: Option<&str>) -> Result<Self> {
        Self::read(&Places::here(), alias)
    }

    /// Likewise, with files and variables from elsewhere.
    pub(in crate::env) fn read(places: &Places, alias: Option<&str>) -> Result<Self> {
        let mut settings = Self::default();
        // Lists are joined, what is more important first; of maps and single values the more important win.
        for file in places.files()? {
            settings.take(Condarc::read(&file, places)?);
        }
        settings.take(Condarc::of_variables(places)?);
        if let Some(alias) = alias {
            settings.alias = Some(checked_alias(alias).map_err(|why| {
                Error::usage(format!("`--channel-alias {alias}` {why}"))
                    .hint("give a URL, as `https://conda.example.org` or `file:///srv/conda`")
            })?);
        }
        Ok(settings)
    }

    /// Puts what a more important source says over what is known.
    fn take(&mut self, condarc: Condarc) {
        let Condarc { given, warnings } = condarc;
        let Given {
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

/// Joins two lists, each entry once.
fn put_before(list: &mut Vec<String>, mut important: Vec<String>) {
    list.retain(|one| !important.contains(one));
    important.append(list);
    *list = important;
}
