//! Resolves the channels of an `environment.yml` to URLs, using the user's conda settings.

use std::path::Path;

use itertools::Itertools;
use rattler_conda_types::{ChannelConfig, ChannelUrl};

use super::address::{absolute, file_url, is_path, url};
use super::settings::CondaSettings;
use crate::error::{Error, Result};

/// The entry in `channels` that excludes the user's own channels.
const NODEFAULTS: &str = "nodefaults";

/// A channel, and the URLs where it can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::env) struct LocatedChannel {
    /// The channel's name as requested: `conda-forge`, `conda-forge/label/dev`, or a URL. It does not depend on this
    /// machine's settings.
    pub(in crate::env) name: String,
    /// The channel's URL, followed by its mirrors, if any. Never empty.
    pub(in crate::env) urls: Vec<ChannelUrl>,
}

impl CondaSettings {
    /// Returns the channels to search, in order and without duplicates: those of the `environment.yml` at `path`, given
    /// with their line numbers, and then the user's own, unless the file contains `nodefaults`. If this gives no
    /// channel, returns `defaults`.
    ///
    /// # Errors
    /// Kind `Suite`, with file and line, for an invalid channel.
    pub(in crate::env) fn locate(&self, path: &Path, channels: &[(String, usize)]) -> Result<Vec<LocatedChannel>> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut located: Vec<LocatedChannel> = Vec::new();
        for (channel, line) in channels.iter().filter(|(channel, _)| channel != NODEFAULTS) {
            located.extend(self.find(channel, folder).map_err(|why| {
                Error::suite(format!("channel `{channel}` {why}"))
                    .at(path, Some(*line))
                    .hint("a channel is a name such as `conda-forge`, a URL, or a path such as `./channel`")
            })?);
        }
        if !channels.iter().any(|(channel, _)| channel == NODEFAULTS) {
            for channel in &self.channels {
                located.extend(self.find(channel, folder).map_err(|why| {
                    Error::machine(format!("channel `{channel}` of conda's configuration {why}"))
                        .hint("`conda config --show-sources` shows where it is set")
                })?);
            }
            if located.is_empty() {
                located = self
                    .find("defaults", folder)
                    .map_err(|why| Error::suite(format!("no channel is given, and `defaults` {why}")).at(path, None))?;
            }
        }
        if located.is_empty() {
            return Err(Error::suite("there is no channel: `nodefaults` is the only entry")
                .at(path, channels.first().map(|(_, line)| *line))
                .hint("add one, such as `conda-forge`"));
        }
        Ok(located.into_iter().unique_by(|one| one.urls.clone()).collect())
    }

    /// Locates the channel that a lock file names, using the current settings.
    ///
    /// # Errors
    /// Kind `Suite` for an invalid name.
    pub(in crate::env) fn locate_one(&self, name: &str, lock: &Path) -> Result<LocatedChannel> {
        self.single(name, lock.parent().unwrap_or(Path::new(".")))
            .map_err(|why| Error::suite(format!("channel `{name}` {why}")).at(lock, None))
    }

    /// Resolves a channel's name, which may mean several channels.
    fn find(&self, channel: &str, folder: &Path) -> Result<Vec<LocatedChannel>, String> {
        let several = match channel {
            "defaults" if !self.default_channels.is_empty() => Some(&self.default_channels),
            other => self.custom_multichannels.get(other),
        };
        match (several, channel) {
            (Some(channels), _) => channels.iter().map(|one| self.single(one, folder)).collect(),
            // On the public server, to which the URL prefix points by default, `defaults` consists of these channels.
            (None, "defaults") => ["main", "r"].iter().map(|one| self.single(one, folder)).collect(),
            (None, "local") => Err("is conda's folder of locally built packages, which is not supported".to_owned()),
            (None, _) => Ok(vec![self.single(channel, folder)?]),
        }
    }

    fn single(&self, channel: &str, folder: &Path) -> Result<LocatedChannel, String> {
        let channel = channel.trim().trim_end_matches('/');
        if let Some((scheme, _)) = channel.split_once("://") {
            if !["http", "https", "file"].contains(&scheme) {
                return Err(format!("is not supported: `{scheme}` is not `http`, `https` or `file`"));
            }
            return Ok(LocatedChannel { name: channel.to_owned(), urls: vec![url(channel)?] });
        }
        if is_path(channel) {
            let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
            let path = absolute(channel, folder, home.as_deref());
            return Ok(LocatedChannel { name: channel.to_owned(), urls: vec![url(&file_url(&path))?] });
        }
        let odd = |letter: char| letter.is_whitespace() || letter.is_control() || "[]:\\?#".contains(letter);
        if channel.is_empty() || channel.contains(odd) || channel.split('/').any(|part| ["", ".", ".."].contains(&part))
        {
            return Err("is not a channel name".to_owned());
        }
        let mirrors = self.mirrored_channels.get(channel).filter(|mirrors| !mirrors.is_empty());
        let urls = match mirrors {
            Some(mirrors) => mirrors
                .iter()
                .filter(|mirror| ["http://", "https://", "file://", "/"].iter().any(|start| mirror.starts_with(start)))
                .map(|mirror| if is_path(mirror) { url(&file_url(mirror)) } else { url(mirror) })
                .collect::<Result<Vec<_>, _>>()?,
            None => vec![self.below(channel)?],
        };
        if urls.is_empty() {
            return Err("has no supported mirror (`http`, `https` or `file`)".to_owned());
        }
        Ok(LocatedChannel { name: channel.to_owned(), urls })
    }

    /// Resolves a channel's name to a URL. If the user's settings give a location for the name or for a beginning of
    /// the name, the URL is relative to that location. Otherwise, it is relative to the URL prefix for channel names.
    fn below(&self, channel: &str) -> Result<ChannelUrl, String> {
        let mut begin = channel;
        loop {
            if let Some(base) = self.custom_channels.get(begin) {
                let base = base.trim_end_matches('/');
                let base = if is_path(base) { file_url(base) } else { base.to_owned() };
                return url(&format!("{base}/{channel}"))
                    .map_err(|why| format!("has an invalid location in `custom_channels`: {why}"));
            }
            match begin.rsplit_once('/') {
                Some((shorter, _)) => begin = shorter,
                None => break,
            }
        }
        let alias = match &self.alias {
            Some(alias) => alias.clone(),
            None => ChannelConfig::default_with_root_dir("/".into()).channel_alias.to_string(),
        };
        url(&format!("{}/{channel}", alias.trim_end_matches('/')))
    }
}
