//! The env of a new paper, and the command that builds its repo's extensions.

use std::path::Path;

use super::Arguments;
use crate::cli::progress::ProgressDisplay;
use crate::draft::extension::{Extension, extension, joined, libraries};
use crate::draft::manifest::CompiledCode;
use crate::draft::{Draft, environment, metadata};
use crate::env::{self, Env};
use crate::error::{Error, Result};
use crate::masked::build::tag;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::run::machine::Machine;

/// Decisions about a new paper's env and compiled code, made before anything runs.
pub(super) struct DraftEnvPlan {
    /// The env's id.
    pub(super) env: String,
    /// The command that builds the extensions, if any.
    build: Option<String>,
    /// The Python versions that the repository requires, and the file that says so.
    requires: Option<(String, &'static str)>,
}

impl DraftEnvPlan {
    /// Describes the repo's compiled code for the manifest.
    pub(super) fn compiled(&self, repo: &Path, env: &Env) -> CompiledCode {
        let files: Vec<String> =
            libraries(repo).into_iter().filter_map(|path| Some(path.to_str()?.to_owned())).collect();
        let bound = self.build.is_some() || files.iter().any(|file| tag(file).is_some());
        CompiledCode { build: self.build.clone(), files, abi: bound.then(|| env.abi()) }
    }
}

impl Arguments {
    /// Decides on the env and on the command that builds the repo's extensions. Adds the env to the draft.
    pub(super) async fn plan_env(&self, draft: &mut Draft) -> Result<DraftEnvPlan> {
        let repo = draft.suite().repo_dir(draft.id());
        let found = self.extension(&repo);
        let requires = metadata::requires_python(&self.repo);
        let build = found.as_ref().map(|found| found.command.clone());
        if let Some(env) = &self.env {
            draft.use_env(env)?;
            return Ok(DraftEnvPlan { env: env.clone(), build, requires });
        }
        let yml = if let Some(yml) = self.written_yml()? {
            yml
        } else {
            let (file, mut packages) = self.packages()?;
            if let Some(file) = file {
                talk!("packages of `{file}`: {}", crate::report::clean(&packages.join(", ")));
            }
            if let Some(found) = &found {
                packages = joined(&packages, &found.requirements);
            }
            let python = self.python(requires.as_ref(), found.is_some()).await?;
            environment::yml(draft.id(), &python, &packages)
        };
        draft.write_env(&yml)?;
        Ok(DraftEnvPlan { env: draft.id().to_owned(), build, requires })
    }

    /// Determines how extensions are built: from the user's option, or from the repository.
    fn extension(&self, repo: &Path) -> Option<Extension> {
        let found = extension(repo);
        match (&self.build, found) {
            (None, Some(found)) => {
                talk!(
                    "it has compiled extensions ({}), built by: {}",
                    crate::report::clean(&found.because),
                    crate::report::clean(&found.command)
                );
                Some(found)
            }
            (Some(command), found) if !command.trim().is_empty() => {
                let requirements = found.map(|found| found.requirements).unwrap_or_default();
                Some(Extension { command: command.clone(), requirements, because: String::new() })
            }
            _ => None,
        }
    }

    /// Returns the text of the environment file that the user names. If the user names neither this file nor
    /// `--requirements`, returns the text of the repository's `environment.yml`. Returns `None` if there is no such
    /// file.
    fn written_yml(&self) -> Result<Option<String>> {
        let own = self.repo.join("environment.yml");
        let path = match &self.environment {
            Some(path) => path,
            None if self.requirements.is_none() && own.is_file() => &own,
            None => return Ok(None),
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::usage(format!("failed to read `{}`", path.display())).because(error))?;
        Ok(Some(text))
    }

    /// Returns the packages of a new env. If the packages come from the repository's metadata, such as
    /// `pyproject.toml`, also returns the name of that file, to tell the user.
    fn packages(&self) -> Result<(Option<&'static str>, Vec<String>)> {
        let own = self.repo.join("requirements.txt");
        match &self.requirements {
            Some(list) if Path::new(list).is_file() => Ok((None, environment::read(Path::new(list))?)),
            Some(list) => Ok((None, environment::split(list))),
            None if own.is_file() => Ok((None, environment::read(&own)?)),
            None => match metadata::dependencies(&self.repo) {
                Some(found) => Ok((Some(found.file), found.packages)),
                None => Err(Error::usage(
                    "no environment: the repository has no environment.yml, requirements.txt, pyproject.toml or setup.py \
                     that names its packages",
                )
                .hint(
                    "name its packages with `--requirements numpy==2.2.6,...`, or an env of the suite with `--use-env`",
                )),
            },
        }
    }

    /// Returns the Python versions that a new env accepts. Compiled code works with only one version, so its env gets
    /// the newest version on this machine.
    async fn python(&self, requires: Option<&(String, &'static str)>, compiled: bool) -> Result<String> {
        let mut range = self.python.clone().unwrap_or_else(|| environment::PYTHON.to_owned());
        if let (None, Some((wanted, file))) = (&self.python, requires) {
            let both = format!("{range},{wanted}");
            if env::python_range(&both).is_ok() {
                range = both;
            } else {
                let wanted = crate::report::clean(wanted);
                talk!(
                    "`{wanted}` of `{file}` is not a version or a range of versions: name the versions with `--python`"
                );
            }
        }
        if !compiled || range.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(range);
        }
        let version = env::newest_python(&range, &self.paper).await?;
        Ok(version.split('.').take(2).collect::<Vec<_>>().join("."))
    }

    pub(super) async fn build_env(
        &self,
        draft: &Draft,
        plan: &DraftEnvPlan,
        machine: &Machine,
        progress: &ProgressDisplay,
    ) -> Result<Env> {
        let folder = draft.suite().env_dir(&plan.env);
        let on_progress = |told| progress.on(RunEvent::Env(told));
        progress.on(RunEvent::Stage(Stage::new("building env", &plan.env)));
        if self.env.is_none() && !draft.take_lock(&machine.cache)? {
            machine.envs.lock(&folder, &machine.cache, &on_progress).await.map_err(|mut error| {
                if let (Some((path, _)), Some(own)) = (&mut error.place, &self.environment) {
                    path.clone_from(own);
                }
                error
            })?;
            draft.keep_lock(&machine.cache)?;
        }
        let env = machine.envs.build(&folder, &machine.cache, &on_progress).await?;
        if let Some((wanted, file)) = &plan.requires
            && env::accepts(wanted, &env.python) == Some(false)
        {
            return Err(Error::usage(format!(
                "the repository needs Python {wanted}, as its `{file}` says, but the env `{}` has {}",
                plan.env, env.python
            ))
            .hint(match self.env {
                Some(_) => "take an env with such an interpreter, or leave `--use-env` out, so that one is made",
                None => "ask for such an interpreter in the environment file, or with `--python`",
            }));
        }
        Ok(env)
    }
}
