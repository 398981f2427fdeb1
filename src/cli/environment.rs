//! Command-line options for building envs, shared by all commands that need an env.

use crate::env::{EnvBuildOptions, EnvKind};

/// How envs are built.
#[derive(clap::Args)]
pub(super) struct EnvOptions {
    /// How to build envs: `conda`, `venv`, or `auto`, which uses conda if the env is locked for it and its channels
    /// answer, and a venv otherwise.
    #[arg(long = "env", value_name = "KIND", default_value = "auto", global = true, help_heading = "Environment")]
    pub kind: EnvKind,
    #[command(flatten)]
    pub channels: ChannelOptions,
}

/// Where packages are downloaded from.
#[derive(clap::Args)]
pub struct ChannelOptions {
    /// Address to put before the names of conda channels, such as `https://conda.example.org` [default: conda's
    /// configuration].
    #[arg(long, value_name = "URL", env = "AUTOEXPERIMENT_CHANNEL_ALIAS", global = true, help_heading = "Environment")]
    channel_alias: Option<String>,
    /// Build envs from the cache only, without a network.
    #[arg(long, global = true, help_heading = "Environment")]
    offline: bool,
}

impl EnvOptions {
    /// Converts to the options of [`crate::env`].
    pub fn options(&self) -> EnvBuildOptions {
        self.channels.options(self.kind)
    }
}

impl ChannelOptions {
    /// Returns the given options as arguments for another process.
    pub fn arguments(&self) -> Vec<String> {
        let alias = self.channel_alias.as_ref().map(|alias| format!("--channel-alias={alias}"));
        alias.into_iter().chain(self.offline.then(|| "--offline".to_owned())).collect()
    }

    /// Converts to the options of [`crate::env`], for envs of this kind.
    pub fn options(&self, kind: EnvKind) -> EnvBuildOptions {
        EnvBuildOptions { kind, alias: self.channel_alias.clone(), offline: self.offline, ..EnvBuildOptions::default() }
    }
}
