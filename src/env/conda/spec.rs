//! conda's match specifications in an `environment.yml`.

use std::sync::Arc;

use rattler_conda_types::{Channel, MatchSpec, ParseMatchSpecOptions};

use super::channels::LocatedChannel;
use super::settings::CondaSettings;
use crate::env::environment::EnvironmentFile;
use crate::error::{Error, Result};

/// The requested specifications, and the channels to search, in order of priority.
#[derive(Debug)]
pub(super) struct CondaRequest {
    pub(super) specs: Vec<MatchSpec>,
    pub(super) channels: Vec<LocatedChannel>,
}

impl CondaRequest {
    /// Reads the specifications. As conda does, adds pip if there are packages to install with pip. A channel that is
    /// named only in a specification (`conda-forge::numpy`) has the lowest priority.
    ///
    /// # Errors
    /// Kind `Suite`, with file and line.
    pub(super) fn from_environment(source: &EnvironmentFile, settings: &CondaSettings) -> Result<Self> {
        let mut wanted = Self { specs: Vec::new(), channels: settings.locate(&source.path, &source.channels)? };
        for (text, line) in &source.specs {
            wanted.add(text, *line, source, settings)?;
        }
        let has_pip =
            wanted.specs.iter().any(|spec| spec.name.as_exact().is_some_and(|name| name.as_normalized() == "pip"));
        if !source.pip.is_empty() && !has_pip {
            wanted.add("pip", 0, source, settings)?;
        }
        Ok(wanted)
    }

    fn add(&mut self, text: &str, line: usize, source: &EnvironmentFile, settings: &CondaSettings) -> Result<()> {
        let mut spec = MatchSpec::from_str(text, ParseMatchSpecOptions::lenient()).map_err(|error| {
            Error::suite(format!("failed to read `{text}`: {error}"))
                .at(&source.path, Some(line))
                .hint("write it as `python=3.11`, `numpy >=1.20,<2` or `conda-forge::numpy`")
        })?;
        if spec.channel.is_some()
            && let Some((name, _)) = text.split_once("::")
        {
            let located = match self.channels.iter().find(|channel| channel.name == name.trim()) {
                Some(located) => located.clone(),
                None => settings.locate_one(name.trim(), &source.path)?,
            };
            spec.channel = located.urls.first().map(|url| Arc::new(Channel::from_url(url.clone())));
            if !self.channels.contains(&located) {
                self.channels.push(located);
            }
        }
        self.specs.push(spec);
        Ok(())
    }
}
