//! The forms in which a channel's location may be written: a URL, a path, or a prefix for channel names.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rattler_conda_types::{ChannelConfig, ChannelUrl};

/// Parses a URL and adds a trailing slash. The error says why the text is not a URL.
pub(super) fn url(text: &str) -> Result<ChannelUrl, String> {
    // The library does not export its URL type by name, so take a value of this type from a configuration's field.
    let mut config = ChannelConfig::default_with_root_dir("/".into());
    config.channel_alias = text.parse().map_err(|error| format!("{error}"))?;
    Ok(config.channel_alias.into())
}

/// Returns a URL prefix for channel names without its trailing slash, or why it is invalid.
pub(super) fn checked_alias(alias: &str) -> Result<String, String> {
    let alias = alias.trim().trim_end_matches('/');
    match alias.split_once("://") {
        Some((scheme @ ("http" | "https" | "file"), rest)) if !rest.is_empty() => {
            url(alias).map(|_| alias.to_owned()).map_err(|why| format!("is not a valid {scheme} URL: {why}"))
        }
        Some((scheme, _)) => Err(format!("is not supported: `{scheme}` is not `http`, `https` or `file`")),
        None => Err("is not a URL".to_owned()),
    }
}

/// Whether a channel is written as a path, according to conda's rule.
pub(super) fn is_path(channel: &str) -> bool {
    ["./", "../", "~", "/"].iter().any(|start| channel.starts_with(start)) || [".", ".."].contains(&channel)
}

/// Makes a channel's path absolute: `~` is the home folder, and other relative paths are relative to `folder`.
pub(super) fn absolute(channel: &str, folder: &Path, home: Option<&Path>) -> String {
    let path = match (channel.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => folder.join(channel),
    };
    std::path::absolute(&path).unwrap_or(path).display().to_string()
}

/// Converts a path to a `file:` URL.
pub(super) fn file_url(path: &str) -> String {
    /// Characters to escape in paths. Characters that occur in names of channels and packages are excluded.
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b'+')
        .remove(b'@')
        .remove(b'=')
        .remove(b',');
    format!("file://{}", utf8_percent_encode(path, ESCAPED))
}
