//! Settings from one source: a single `.condarc` file, or the `CONDA_*` variables.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::Visitor;
use serde_saphyr::Spanned;

use super::super::address::{absolute, checked_alias, is_path};
use super::places::CondarcLocations;
use crate::error::{Error, Result};

/// Which packages of a lower-priority channel may be chosen if a higher-priority channel has a package of the same
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::env) enum Priority {
    /// Each package is taken from the highest-priority channel that has a package of its name.
    Strict,
    /// Each package may be taken from any channel.
    Disabled,
}

/// The settings of a single `.condarc` file, or of the `CONDA_*` variables.
#[derive(Debug, Default)]
pub(super) struct Condarc {
    pub(super) given: CondarcValues,
    /// Warnings about unsupported settings in this source.
    pub(super) warnings: Vec<String>,
}

/// The supported settings. A list is empty if the source does not set it.
#[derive(Debug, Default)]
pub(super) struct CondarcValues {
    pub(super) channel_alias: Option<String>,
    pub(super) channels: Vec<String>,
    pub(super) default_channels: Vec<String>,
    pub(super) custom_channels: BTreeMap<String, String>,
    pub(super) custom_multichannels: BTreeMap<String, Vec<String>>,
    pub(super) mirrored_channels: BTreeMap<String, Vec<String>>,
    pub(super) channel_priority: Option<Priority>,
    pub(super) offline: Option<bool>,
}

type List = Option<Vec<String>>;

/// The keys that are read from a file. Most of conda's other keys do not affect which packages are installed.
#[derive(Default, Deserialize)]
struct File {
    channel_alias: Option<Spanned<String>>,
    #[serde(alias = "channel")]
    channels: List,
    default_channels: List,
    custom_channels: Option<BTreeMap<String, String>>,
    custom_multichannels: Option<BTreeMap<String, Vec<String>>>,
    mirrored_channels: Option<BTreeMap<String, Vec<String>>>,
    channel_priority: Option<Spanned<Scalar>>,
    offline: Option<Spanned<Scalar>>,
    #[serde(alias = "verify_ssl")]
    ssl_verify: Option<Spanned<Scalar>>,
    proxy_servers: Option<BTreeMap<String, Option<String>>>,
    #[serde(alias = "whitelist_channels")]
    allowlist_channels: List,
    denylist_channels: List,
    migrated_channel_aliases: List,
    pinned_packages: List,
    disallowed_packages: List,
    create_default_packages: List,
}

/// A string, a number or a boolean, kept as text.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a single value")
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_bool<E>(self, truth: bool) -> Result<Scalar, E> {
                Ok(Scalar(truth.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Condarc {
    /// Reads a `.condarc` file.
    ///
    /// # Errors
    /// Kind `Machine`, with the file and, if known, the line.
    pub(super) fn read(path: &Path, places: &CondarcLocations) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        // A file without keys is parsed as null.
        let file: Option<File> = serde_saphyr::from_str(&text).map_err(|error| {
            let line = error.location().map(|location| location.line() as usize);
            Error::machine(error.without_snippet().to_string())
                .at(path, line)
                .hint("this is conda's configuration; `conda config --show-sources` reads it, too")
        })?;
        let file = file.unwrap_or_default();
        let wrong = |line: Option<usize>, what: String| Error::machine(what).at(path, line);
        let mut condarc = Self::default();
        condarc.single(
            file.channel_alias.as_ref().map(known),
            file.channel_priority.as_ref().map(word),
            file.offline.as_ref().map(word),
            file.ssl_verify.as_ref().map(word),
            &path.display().to_string(),
            places,
            &wrong,
        )?;

        // A channel's path is relative to the `.condarc` file, not to the working directory.
        let folder = path.parent().unwrap_or(Path::new("/"));
        let place = |channel: String| {
            let channel = places.expanded(channel.trim());
            if is_path(&channel) { absolute(&channel, folder, places.home()) } else { channel }
        };
        let list = |channels: List| channels.unwrap_or_default().into_iter().map(place).collect::<Vec<_>>();
        let lists = |map: Option<BTreeMap<String, Vec<String>>>| {
            map.unwrap_or_default().into_iter().map(|(name, channels)| (name, list(Some(channels)))).collect()
        };
        condarc.given.channels = list(file.channels);
        condarc.given.default_channels = list(file.default_channels);
        condarc.given.custom_multichannels = lists(file.custom_multichannels);
        condarc.given.mirrored_channels = lists(file.mirrored_channels);
        condarc.given.custom_channels =
            file.custom_channels.unwrap_or_default().into_iter().map(|(name, base)| (name, place(base))).collect();

        for (key, given) in [
            ("proxy_servers", file.proxy_servers.is_some_and(|proxies| !proxies.is_empty())),
            ("allowlist_channels", filled(&file.allowlist_channels)),
            ("denylist_channels", filled(&file.denylist_channels)),
            ("migrated_channel_aliases", filled(&file.migrated_channel_aliases)),
            ("pinned_packages", filled(&file.pinned_packages)),
            ("disallowed_packages", filled(&file.disallowed_packages)),
            ("create_default_packages", filled(&file.create_default_packages)),
        ] {
            if given {
                let remedy = if key == "proxy_servers" { "; set `HTTPS_PROXY` and `HTTP_PROXY`" } else { "" };
                condarc.warnings.push(format!("`{key}` of `{}` is not used here{remedy}", path.display()));
            }
        }
        if ["#!final", "#!top", "#!bottom"].iter().any(|mark| text.contains(mark)) {
            condarc
                .warnings
                .push(format!("the marks `#!final`, `#!top` and `#!bottom` of `{}` are not used here", path.display()));
        }
        Ok(condarc)
    }

    /// Reads `CONDA_CHANNEL_ALIAS`, `CONDA_CHANNELS`, `CONDA_DEFAULT_CHANNELS`, `CONDA_CHANNEL_PRIORITY`,
    /// `CONDA_OFFLINE` and `CONDA_SSL_VERIFY`. Lists are separated by commas.
    ///
    /// # Errors
    /// Kind `Usage`, with the variable's name in the message.
    pub(super) fn of_variables(places: &CondarcLocations) -> Result<Self> {
        let value = |name: &str| places.variable(name).map(|text| (text.to_owned(), None));
        let wrong = |_: Option<usize>, what: String| Error::usage(format!("in the environment, {what}"));
        let mut condarc = Self::default();
        condarc.single(
            value("CONDA_CHANNEL_ALIAS"),
            value("CONDA_CHANNEL_PRIORITY"),
            value("CONDA_OFFLINE"),
            value("CONDA_SSL_VERIFY"),
            "CONDA_SSL_VERIFY",
            places,
            &wrong,
        )?;
        let list = |name: &str| {
            let channels = places.variable(name).unwrap_or_default().split(',').map(str::trim);
            channels.filter(|channel| !channel.is_empty()).map(|channel| places.expanded(channel)).collect()
        };
        condarc.given.channels = list("CONDA_CHANNELS");
        condarc.given.default_channels = list("CONDA_DEFAULT_CHANNELS");
        Ok(condarc)
    }

    /// Adds the settings that are single values and that both `.condarc` files and `CONDA_*` variables can contain.
    #[expect(clippy::too_many_arguments, reason = "each is a setting")]
    fn single(
        &mut self,
        alias: Option<(String, Option<usize>)>,
        priority: Option<(String, Option<usize>)>,
        offline: Option<(String, Option<usize>)>,
        ssl_verify: Option<(String, Option<usize>)>,
        source: &str,
        places: &CondarcLocations,
        wrong: &dyn Fn(Option<usize>, String) -> Error,
    ) -> Result<()> {
        if let Some((alias, line)) = alias {
            let alias = places.expanded(&alias);
            let checked = checked_alias(&alias).map_err(|why| wrong(line, format!("channel alias `{alias}` {why}")))?;
            self.given.channel_alias = Some(checked);
        }
        if let Some((priority, line)) = priority {
            self.given.channel_priority = Some(match priority.to_lowercase().as_str() {
                "strict" => Priority::Strict,
                // The solver does not support `flexible`; use `strict`, which conda itself recommends.
                "flexible" | "true" => {
                    self.warnings.push("channel priority `flexible` is taken as `strict`".to_owned());
                    Priority::Strict
                }
                "disabled" | "false" => Priority::Disabled,
                _ => {
                    let what = format!("channel priority `{priority}` is not `strict`, `flexible` or `disabled`");
                    return Err(wrong(line, what));
                }
            });
        }
        if let Some((offline, line)) = offline {
            let truth =
                truth(&offline).ok_or_else(|| wrong(line, format!("offline `{offline}` is not true or false")))?;
            self.given.offline = Some(truth);
        }
        // Certificates are always verified, against the system's authorities, so warn if `ssl_verify` is anything else.
        if let Some((ssl_verify, _)) = ssl_verify
            && truth(&ssl_verify) != Some(true)
            && !["<truststore>", "truststore"].contains(&ssl_verify.as_str())
        {
            self.warnings.push(format!(
                "`ssl_verify: {ssl_verify}` of `{source}` is not used: certificates are verified against the system's; \
                 set `SSL_CERT_FILE` to use others"
            ));
        }
        Ok(())
    }
}

fn filled(list: &List) -> bool {
    list.as_ref().is_some_and(|list| !list.is_empty())
}

/// Returns a text and the number of its line in the file.
fn known(text: &Spanned<String>) -> (String, Option<usize>) {
    (text.value.clone(), Some(text.referenced.line() as usize))
}

fn word(scalar: &Spanned<Scalar>) -> (String, Option<usize>) {
    (scalar.value.0.clone(), Some(scalar.referenced.line() as usize))
}

/// Parses a boolean as YAML 1.1 and conda's variables allow.
fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}
