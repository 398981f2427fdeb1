//! Chooses the backend that builds an env: the backend that the user requested or, for `auto`, a backend that can build
//! the env.

#[cfg(feature = "conda")]
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
#[cfg(feature = "conda")]
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "conda")]
use super::Conda;
use super::environment::Environment;
#[cfg(feature = "conda")]
use super::{BuildProgress, conda};
use super::{Env, EnvBackend, EnvState, OnProgress, Venv};
#[cfg(not(feature = "conda"))]
use crate::error::Error;
use crate::error::Result;

/// Kind of env.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvKind {
    /// Conda if the env is locked for it and its channels can be reached, otherwise venv.
    #[default]
    Auto,
    /// Packages from conda channels.
    Conda,
    /// An interpreter of this machine and packages from pip.
    Venv,
}

impl FromStr for EnvKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "conda" => Ok(Self::Conda),
            "venv" => Ok(Self::Venv),
            _ => Err(format!("`{text}` is not a kind of env: `conda`, `venv` or `auto`")),
        }
    }
}

impl fmt::Display for EnvKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Conda => "conda",
            Self::Venv => "venv",
        })
    }
}

/// The user's settings for building envs.
#[derive(Debug, Clone, Default)]
pub struct EnvBuildOptions {
    /// The requested kind of env.
    pub kind: EnvKind,
    /// URL prefix for names of conda channels; replaces the prefix in the user's conda configuration.
    pub alias: Option<String>,
    /// Whether to avoid network access.
    pub offline: bool,
    /// Whether to lock venvs for this machine's Python and platform only.
    pub here: bool,
    /// Whether venvs get wheels only, so that pip runs no code of the packages.
    pub wheels_only: bool,
}

impl EnvBuildOptions {
    /// Opens the backend for these options.
    ///
    /// # Errors
    /// Kind `Usage` for a channel alias that is not a URL, or for conda in a program that was built without it;
    /// `Machine` for a conda configuration that cannot be read.
    pub fn open(&self) -> Result<Arc<dyn EnvBackend>> {
        match self.kind {
            EnvKind::Auto => Ok(Arc::new(Auto {
                options: self.clone(),
                #[cfg(feature = "conda")]
                fallen: Mutex::default(),
            })),
            EnvKind::Conda => self.conda(),
            EnvKind::Venv => Ok(Arc::new(self.venv())),
        }
    }

    #[cfg(feature = "conda")]
    fn conda(&self) -> Result<Arc<dyn EnvBackend>> {
        Ok(Arc::new(Conda::open(self.alias.as_deref(), self.offline)?))
    }

    #[cfg(not(feature = "conda"))]
    #[expect(clippy::unused_self, reason = "it is used where there is conda")]
    fn conda(&self) -> Result<Arc<dyn EnvBackend>> {
        Err(Error::usage("this program was built without conda")
            .hint("use `--env venv`, or build it with `cargo build --features conda`"))
    }

    fn venv(&self) -> Venv {
        Venv::new().offline(self.offline).here(self.here).wheels_only(self.wheels_only)
    }

    /// Returns the backends for which to lock the env of `folder`: the backends for which it is already locked. If it
    /// is not locked yet, returns conda if the `environment.yml` requests packages that a venv cannot provide,
    /// otherwise venv.
    ///
    /// # Errors
    /// As [`EnvBuildOptions::open`].
    pub fn to_lock(&self, folder: &Path) -> Result<Vec<Arc<dyn EnvBackend>>> {
        if self.kind != EnvKind::Auto {
            return Ok(vec![self.open()?]);
        }
        let has = |file: &str| folder.join(file).exists();
        let mut backends: Vec<Arc<dyn EnvBackend>> = Vec::new();
        if has("conda.lock") || (!has("venv.lock") && cfg!(feature = "conda") && Environment::read(folder).is_err()) {
            backends.push(self.conda()?);
        }
        if has("venv.lock") || backends.is_empty() {
            backends.push(Arc::new(self.venv()));
        }
        Ok(backends)
    }
}

/// The backend `auto`: uses conda if possible, otherwise a venv.
///
/// An env without `conda.lock` is always a venv. A network request checks whether the channels answer, but only for an
/// env that is locked for conda and not built yet.
#[derive(Debug)]
struct Auto {
    options: EnvBuildOptions,
    /// Folders of envs for which a venv is used because conda's channels could not be reached. Remembered, so that this
    /// is decided and reported only once.
    #[cfg(feature = "conda")]
    fallen: Mutex<BTreeSet<PathBuf>>,
}

impl Auto {
    #[cfg(feature = "conda")]
    async fn choose(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Arc<dyn EnvBackend>> {
        let fallen = || self.fallen.lock().unwrap_or_else(PoisonError::into_inner);
        if !conda::is_locked(folder) || fallen().contains(folder) {
            return Ok(Arc::new(self.options.venv()));
        }
        let conda = Conda::open(self.options.alias.as_deref(), self.options.offline)?;
        let state = conda.state(folder, cache)?;
        let why = if !state.locked {
            "is not locked for this kind of machine"
        } else if state.built || self.options.offline || conda.answers(folder).await {
            return Ok(Arc::new(conda));
        } else {
            "comes from channels that do not answer"
        };
        if !self.options.venv().state(folder, cache)?.locked {
            return Ok(Arc::new(conda));
        }
        let id = folder.file_name().unwrap_or_default().to_string_lossy();
        on_progress(BuildProgress::Notice(format!(
            "the conda env `{id}` {why}, so a venv is used instead: results may differ in the last digits"
        )));
        fallen().insert(folder.to_owned());
        Ok(Arc::new(self.options.venv()))
    }

    #[cfg(not(feature = "conda"))]
    #[expect(clippy::unused_async, reason = "it waits where there is conda")]
    async fn choose(&self, _: &Path, _: &Path, _: OnProgress<'_>) -> Result<Arc<dyn EnvBackend>> {
        Ok(Arc::new(self.options.venv()))
    }
}

#[async_trait]
impl EnvBackend for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    async fn lock(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<PathBuf> {
        let mut path = folder.to_owned();
        for backend in self.options.to_lock(folder)? {
            path = backend.lock(folder, cache, on_progress).await?;
        }
        Ok(path)
    }

    async fn build(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Env> {
        self.choose(folder, cache, on_progress).await?.build(folder, cache, on_progress).await
    }

    fn state(&self, folder: &Path, cache: &Path) -> Result<EnvState> {
        let mut all = EnvState { locked: false, built: false };
        for backend in self.options.to_lock(folder)? {
            let EnvState { locked, built } = backend.state(folder, cache)?;
            all = EnvState { locked: all.locked || locked, built: all.built || built };
        }
        Ok(all)
    }
}
