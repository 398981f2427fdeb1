//! `cli:NAME`: agents that are programs of their own. They run inside the sandbox, whose network is off, and ask the
//! model through the [gateway](crate::model::gateway); a manifest says how one is installed and started, and where its
//! answer is read.

mod answer;
mod builtin;
mod launch;
mod manifest;
mod meter;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use async_trait::async_trait;

use super::{Agent, Context, End, Task};
use crate::env::{Backend, Env, OnProgress, Venv};
use crate::error::{Error, Result};
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
    /// The agent of this name, or of the folder that holds its manifest; `,mode=NAME` after it chooses one of its modes.
    ///
    /// # Errors
    /// Kind `Usage` for a name, folder or mode that does not exist, and `Suite` for a broken manifest.
    pub fn open(spec: &str) -> Result<Self> {
        let (which, mode) = match spec.split_once(',') {
            None => (spec, None),
            Some((which, option)) => match option.split_once('=') {
                Some(("mode", mode)) if !mode.is_empty() => (which, Some(mode)),
                _ => {
                    return Err(Error::usage(format!("`{option}` is no setting of `cli:{which}`"))
                        .hint("the one setting is `mode=NAME`"));
                }
            },
        };
        let (id, manifest, home) = if which.contains('/') {
            let folder = Path::new(which);
            let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            (id, Manifest::read(folder)?, Home::Folder(folder.to_owned()))
        } else {
            let Some(builtin) = builtin::ALL.iter().find(|builtin| builtin.name == which) else {
                let names: Vec<String> = builtin::ALL.iter().map(|builtin| format!("`cli:{}`", builtin.name)).collect();
                return Err(Error::usage(format!("there is no agent `cli:{which}`")).hint(format!(
                    "there are {}, and `cli:FOLDER` (with a `/`) for a folder with an `{}`",
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

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> (End, Option<String>) {
        launch::run(&self.name, &self.manifest, self.env(), task, context).await
    }
}
