//! `cli:NAME`: agents that are programs of their own. They run inside the sandbox, whose network is off, and ask the
//! model through the [gateway](crate::model::gateway); a manifest says how one is installed and started, and where its
//! answer is read.

mod builtin;
mod launch;
mod manifest;
mod meter;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::{Agent, Context, Ended, Task};
use crate::env::{Backend, Env, OnProgress, Venv};
use crate::error::{Error, Result};
use crate::workspace::hex;
use manifest::Manifest;

/// An agent that is a program of its own.
pub struct External {
    name: String,
    manifest: Manifest,
    home: Home,
    /// Set by [`Agent::prepare`]; `None` within for an agent without an env.
    env: OnceLock<Option<Env>>,
}

/// Where an agent's manifest lies.
enum Home {
    Builtin(&'static builtin::Builtin),
    Folder(PathBuf),
}

impl External {
    /// The agent of this name, or (with a `/`) of the folder that holds its manifest; `,mode=NAME` after it chooses one of its
    /// modes.
    ///
    /// # Errors
    /// Kind `Usage` for a name, folder or mode that does not exist, and `Suite` for a broken manifest.
    pub fn open(spec: &str) -> Result<Self> {
        let (which, setting) = split_setting(spec);
        let mode = match setting.map(|setting| (setting, setting.split_once('='))) {
            None => None,
            Some((_, Some(("mode", mode)))) if !mode.is_empty() => Some(mode),
            Some((setting, _)) => {
                return Err(Error::usage(format!("`{setting}` is no setting of `cli:{which}`"))
                    .hint("the one setting is `mode=NAME`"));
            }
        };
        let (id, manifest, home) = if which.contains('/') {
            let folder = Path::new(which);
            let id = folder.file_name().and_then(|name| name.to_str()).filter(|name| is_plain(name));
            let id = id.ok_or_else(|| {
                Error::usage(format!(
                    "`{which}` is no folder of an agent: its results are kept under the folder's name"
                ))
                .hint("the name may hold letters, digits, `-`, `_` and `.`")
            })?;
            (id.to_owned(), Manifest::read(folder)?, Home::Folder(folder.to_owned()))
        } else {
            let Some(builtin) = builtin::ALL.iter().find(|builtin| builtin.name == which) else {
                let names: Vec<String> = builtin::ALL.iter().map(|builtin| format!("`cli:{}`", builtin.name)).collect();
                return Err(Error::usage(format!("there is no agent `cli:{which}`")).hint(format!(
                    "there are {}, `cli:NAME` for the suite's folder `agents/NAME`, and `cli:FOLDER` (with a `/`) for another \
                     folder with an `{}`",
                    names.join(", "),
                    manifest::FILE
                )));
            };
            let manifest = Manifest::parse(builtin.manifest, Path::new(builtin.name))?;
            (builtin.name.to_owned(), manifest, Home::Builtin(builtin))
        };
        let name = mode.map_or_else(|| id.clone(), |mode| format!("{id}+mode={mode}"));
        let manifest = manifest.in_mode(mode).map_err(|error| error.hint_modes(&id))?;
        Ok(Self { name, manifest, home, env: OnceLock::new() })
    }

    /// The env, where it has one; `None` also before it is prepared.
    fn env(&self) -> Option<&Env> {
        self.env.get().and_then(Option::as_ref)
    }
}

/// Whether an agent of this name comes with this program.
#[must_use]
pub fn is_builtin(name: &str) -> bool {
    builtin::ALL.iter().any(|builtin| builtin.name == name)
}

/// A name or folder, and the setting behind it. A comma in the path of a folder is part of it.
#[must_use]
pub fn split_setting(spec: &str) -> (&str, Option<&str>) {
    let name = spec.rfind('/').map_or(0, |slash| slash + 1);
    match spec[name..].find(',') {
        Some(comma) => (&spec[..name + comma], Some(&spec[name + comma + 1..])),
        None => (spec, None),
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric)
        && name.chars().all(|character| character.is_alphanumeric() || "-_.".contains(character))
}

#[async_trait]
impl Agent for External {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn needs_listener(&self) -> bool {
        true
    }

    async fn prepare(&self, cache: &Path, on_progress: OnProgress<'_>) -> Result<()> {
        let folder = match &self.home {
            Home::Builtin(builtin) => Some(builtin.unpack(cache)?),
            Home::Folder(folder) => Some(folder.clone()).filter(|folder| folder.join("environment.yml").exists()),
        };
        let env = match folder {
            Some(folder) => Some(Venv::new().build(&folder, cache, on_progress).await?),
            None => None,
        };
        // Whoever was first has made the same.
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

    fn winds_down(&self) -> Duration {
        launch::WINDING_DOWN
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> Ended {
        launch::run(&self.name, &self.manifest, self.env(), task, context).await
    }
}
