//! `cli:NAME`: external agents, which are command-line programs. They run inside the sandbox, whose network is off, and
//! reach the model through the [gateway](crate::model::gateway). A manifest says how to install and start each of them,
//! and where to read its answer.

mod bundled;
mod launch;
mod manifest;
mod meter;
mod spec;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use crate::agent::{Agent, AttemptEnd, Context, Task};
use crate::env::{Env, EnvBackend, OnProgress, Venv, npm};
use crate::error::{Error, Result};
use crate::files::hex;
use manifest::AgentManifest;

pub use spec::ExternalAgentSpec;

/// An external agent.
pub struct ExternalAgent {
    name: String,
    manifest: AgentManifest,
    home: ManifestLocation,
    /// The env, set by [`Agent::prepare`]; the inner `None` means that the agent has no env.
    env: OnceLock<Option<Env>>,
}

/// Description of an external agent that comes with this program.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BundledAgent {
    /// The agent's name, as in `cli:NAME`.
    pub name: String,
    /// Description of the agent in one line.
    pub about: String,
    /// Package index, package and version.
    pub source: String,
    /// Names of the agent's modes.
    pub modes: Vec<String>,
    /// Whether the agent's env is already in the cache.
    pub installed: bool,
}

/// Returns the names of the external agents that come with this program, without `cli:`.
#[must_use]
pub fn bundled_names() -> Vec<&'static str> {
    bundled::ALL.iter().map(|bundled| bundled.name).collect()
}

/// Lists the external agents that come with this program.
///
/// # Errors
/// If the cache cannot be written.
pub fn list_bundled(cache: &Path) -> Result<Vec<BundledAgent>> {
    let one = |bundled: &bundled::BundledFiles| {
        let manifest = AgentManifest::parse(bundled.manifest, Path::new(bundled.name))?;
        let folder = bundled.unpack(cache)?;
        let installed = if npm::is_npm(&folder) {
            npm::is_built(&folder, cache)?
        } else {
            Venv::new().state(&folder, cache)?.built
        };
        let about = bundled.manifest.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let modes = manifest.modes();
        Ok(BundledAgent { name: bundled.name.to_owned(), about, source: bundled.source(), modes, installed })
    };
    bundled::ALL.iter().map(one).collect()
}

/// Where an agent's manifest comes from.
enum ManifestLocation {
    Bundled(&'static bundled::BundledFiles),
    Folder(PathBuf),
}

impl ExternalAgent {
    /// Opens the agent whose name or folder the user gave, in the mode that the user chose.
    ///
    /// # Errors
    /// Kind `Usage` for a name, folder or mode that does not exist, and `Suite` for an invalid manifest.
    pub fn open(program: &ExternalAgentSpec) -> Result<Self> {
        let which = &program.which;
        let (manifest, home) = if let Some(folder) = program.folder() {
            let id = folder.file_name().and_then(|name| name.to_str()).filter(|name| is_plain(name));
            id.ok_or_else(|| {
                Error::usage(format!(
                    "the name of the folder `{which}` is not a valid agent name, under which results are stored"
                ))
                .hint("use letters, digits, `-`, `_` and `.`, a letter or digit first")
            })?;
            (AgentManifest::read(folder)?, ManifestLocation::Folder(folder.to_owned()))
        } else {
            let Some(bundled) = bundled::ALL.iter().find(|bundled| bundled.name == which) else {
                let names: Vec<String> = bundled::ALL.iter().map(|bundled| format!("`cli:{}`", bundled.name)).collect();
                return Err(Error::usage(format!("there is no agent `cli:{which}`")).hint(format!(
                    "there are {}, `cli:NAME` for the suite's folder `agents/NAME`, and `cli:FOLDER` (with a `/`) for another \
                     folder with an `{}`",
                    names.join(", "),
                    manifest::FILE
                )));
            };
            (AgentManifest::parse(bundled.manifest, Path::new(bundled.name))?, ManifestLocation::Bundled(bundled))
        };
        let manifest = manifest.in_mode(program.mode.as_deref()).map_err(|error| error.hint_modes(&program.id()))?;
        Ok(Self { name: program.label(), manifest, home, env: OnceLock::new() })
    }

    /// Returns the env; `None` if the agent has none or is not prepared yet.
    fn env(&self) -> Option<&Env> {
        self.env.get().and_then(Option::as_ref)
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric)
        && name.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character))
}

#[async_trait]
impl Agent for ExternalAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn needs_listener(&self) -> bool {
        true
    }

    async fn prepare(&self, cache: &Path, offline: bool, on_progress: OnProgress<'_>) -> Result<()> {
        let folder = match &self.home {
            ManifestLocation::Bundled(bundled) => Some(bundled.unpack(cache)?),
            ManifestLocation::Folder(folder) => Some(folder.clone()),
        };
        let env = match folder {
            Some(folder) if npm::is_npm(&folder) => Some(npm::build(&folder, cache, offline, on_progress).await?),
            Some(folder) if folder.join("environment.yml").exists() => {
                Some(Venv::new().offline(offline).build(&folder, cache, on_progress).await?)
            }
            _ => None,
        };
        // Ignore the error: if another async task has set the env meanwhile, both envs are the same.
        let _ = self.env.set(env);
        Ok(())
    }

    fn read_only(&self) -> Vec<PathBuf> {
        self.env().map(|env| env.read_only.clone()).unwrap_or_default()
    }

    fn digest(&self) -> Option<String> {
        let env = self.env().map(|env| env.digest.as_str()).unwrap_or_default();
        let manifest = serde_json::to_string(&self.manifest).ok()?;
        Some(hex(&Sha256::digest(format!("{manifest}\0{env}"))))
    }

    fn version(&self) -> Option<String> {
        let source = match &self.home {
            ManifestLocation::Bundled(bundled) => bundled.source(),
            ManifestLocation::Folder(folder) => {
                let text = |name| Some((name, std::fs::read_to_string(folder.join(name)).ok()?));
                let (name, text) = [bundled::NPM, bundled::PYPI].into_iter().find_map(text)?;
                bundled::source(name, &text)
            }
        };
        source.rsplit_once(' ').map(|(_, version)| version.to_owned()).filter(|version| !version.is_empty())
    }

    fn winds_down(&self) -> Duration {
        launch::WINDING_DOWN
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        launch::run(&self.name, &self.manifest, self.env(), task, context).await
    }
}
