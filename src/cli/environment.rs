//! Options on how envs are made, for all verbs that need one.

use crate::env::{EnvKind, Options};

/// How envs are made.
#[derive(clap::Args)]
pub struct EnvOptions {
    /// Envs: `conda`, `venv`, or `auto` for conda where an env is locked for it and its channels answer, else venv.
    #[arg(long = "env", value_name = "KIND", default_value = "auto", global = true, help_heading = "Environment")]
    pub kind: EnvKind,
    #[command(flatten)]
    pub channels: ChannelOptions,
}

/// Where packages come from.
#[derive(clap::Args)]
pub struct ChannelOptions {
    /// What stands before the names of conda channels, as `https://conda.example.org` [default: conda's configuration].
    #[arg(long, value_name = "URL", env = "AUTOEXPERIMENT_CHANNEL_ALIAS", global = true, help_heading = "Environment")]
    channel_alias: Option<String>,
    /// Build envs from the cache alone.
    #[arg(long, global = true, help_heading = "Environment")]
    offline: bool,
}

impl EnvOptions {
    /// The options for [`crate::env`].
    pub fn options(&self) -> Options {
        self.channels.options(self.kind)
    }
}

impl ChannelOptions {
    /// The options for [`crate::env`], with a kind from elsewhere.
    pub fn options(&self, kind: EnvKind) -> Options {
        Options { kind, alias: self.channel_alias.clone(), offline: self.offline }
    }
}
