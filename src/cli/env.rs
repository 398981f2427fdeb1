//! `autoexperiment env`: locks, builds, lists and removes environments.

use std::path::Path;

use super::environment::EnvOptions;
use super::progress::ProgressDisplay;
use super::shared::{PlaceOptions, SuiteOptions, print, table};
use crate::env::{EnvBuildOptions, EnvKind, EnvState, cached, remove_cached, remove_downloads};
use crate::error::{Error, FailureKind, Result};
use crate::files::usable::CACHE;
use crate::run::event::{Observer, RunEvent};
use crate::suite::Suite;

/// Lock, build, list and remove Python environments
///
/// An env can be locked for conda (`conda.lock`), for a venv (`venv.lock`), or for both. Without `--env`, `lock` keeps
/// both up to date, and `build` uses conda if its channels answer.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment env lock --env conda numpy-sklearn\n  \
                  autoexperiment env build numpy-sklearn --channel-alias https://conda.example.org\n  \
                  autoexperiment env lock --check\n  autoexperiment env list\n  autoexperiment env prune numpy-sklearn")]
pub struct Arguments {
    #[command(subcommand)]
    verb: EnvVerb,
    #[command(flatten)]
    env: EnvOptions,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

#[derive(clap::Subcommand)]
enum EnvVerb {
    /// Solve `environment.yml` and write the lock file next to it.
    #[command(
        after_help = "Examples:\n  autoexperiment env lock --env conda numpy-sklearn\n  autoexperiment env lock --check"
    )]
    Lock {
        /// Envs to lock; with --check, all of the suite if none is named.
        #[arg(required_unless_present = "check")]
        envs: Vec<String>,
        /// Write nothing: check that lock files are up to date and show which envs are built; exit code 3 if a lock is
        /// missing or outdated.
        #[arg(long, conflicts_with = "here")]
        check: bool,
        /// Lock venvs for this machine only, which takes seconds; without it, for all Pythons and processors that the
        /// packages have wheels for.
        #[arg(long)]
        here: bool,
    },
    /// Build envs from their lock files, unless they are in the cache.
    #[command(after_help = "Example:\n  autoexperiment env build numpy-sklearn")]
    Build {
        /// Envs to build.
        #[arg(required = true)]
        envs: Vec<String>,
    },
    /// List the envs in the cache.
    #[command(after_help = "Example:\n  autoexperiment env list")]
    List,
    /// Remove envs from the cache: the ones you name, or those whose build was never finished.
    #[command(after_help = "Example:\n  autoexperiment env prune --downloads")]
    Prune {
        /// Envs to remove.
        envs: Vec<String>,
        /// Also remove downloaded and unpacked conda packages. Built envs stay.
        #[arg(long)]
        downloads: bool,
    },
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let cache = arguments.places.cache()?;
    let options = arguments.env.options();
    let progress = ProgressDisplay::new(false);
    let on_progress = |told| progress.on(RunEvent::Env(told));
    if matches!(arguments.verb, EnvVerb::Lock { check: false, .. } | EnvVerb::Build { .. }) {
        CACHE.writable(&cache)?;
    }
    match &arguments.verb {
        EnvVerb::Lock { envs, check: true, .. } => check(&arguments.suite.open()?, envs, &options, &cache)?,
        EnvVerb::Lock { envs, here, check: false } => {
            let options = EnvBuildOptions { here: *here, ..options };
            let elsewhere = envs.iter().all(|id| id.contains('/'));
            let suite = if elsewhere { arguments.suite.open()? } else { arguments.suite.open_own()? };
            for id in envs {
                let folder = folder(&suite, id)?;
                for backend in options.to_lock(&folder)? {
                    let path = backend.lock(&folder, &cache, &on_progress).await?;
                    progress.finish();
                    talk!("wrote {}", path.display());
                }
            }
        }
        EnvVerb::Build { envs } => {
            let suite = arguments.suite.open()?;
            for id in envs {
                let env = options.open()?.build(&folder(&suite, id)?, &cache, &on_progress).await?;
                progress.finish();
                print(&format!("{}\n", env.prefix.display()))?;
            }
        }
        EnvVerb::List => {
            let rows = cached(&cache)?.into_iter().map(|env| {
                let id = if env.complete { env.id } else { "(unfinished)".to_owned() };
                vec![id, env.backend, env.python, format!("{}", env.bytes >> 20), env.path.display().to_string()]
            });
            print(&table(&["env", "kind", "python", "MiB", "folder"], &[3], rows))?;
        }
        EnvVerb::Prune { envs, downloads } => {
            let all = cached(&cache)?;
            if let Some(unknown) = envs.iter().find(|id| !all.iter().any(|env| env.id == **id)) {
                return Err(Error::usage(format!("no env `{unknown}` in the cache"))
                    .hint("`autoexperiment env list` shows what is there"));
            }
            let named = |id: &String| envs.contains(id);
            let removed: Vec<_> =
                all.iter().filter(|env| if envs.is_empty() { !env.complete } else { named(&env.id) }).collect();
            let kept: Vec<Error> = removed.iter().filter_map(|env| remove_cached(env).err()).collect();
            talk!("removed {} env(s)", removed.len() - kept.len());
            if *downloads {
                remove_downloads(&cache)?;
                talk!("removed downloads");
            }
            if let Some(error) = kept.into_iter().next() {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Prints a row for each env and each kind of env (conda or venv). Returns an error if an env has no lock, or a broken
/// or outdated one.
fn check(suite: &Suite, envs: &[String], options: &EnvBuildOptions, cache: &Path) -> Result<()> {
    let all = if envs.is_empty() { suite_envs(suite)? } else { envs.to_vec() };
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for id in &all {
        let states = states(&folder(suite, id)?, options, cache)?;
        for (kind, state) in &states {
            let (lock, built) = match state {
                Ok(EnvState { locked: false, .. }) => ("none", "no"),
                Ok(EnvState { built, .. }) => ("up to date", if *built { "yes" } else { "no" }),
                Err(error) if error.kind == FailureKind::Suite => ("wrong", "no"),
                Err(_) => ("?", "no"),
            };
            rows.push(vec![id.clone(), kind.to_string(), lock.to_owned(), built.to_owned()]);
        }
        faults.extend(wrong(id, states));
    }
    print(&table(&["env", "kind", "lock", "built"], &[], rows))?;
    let mut faults = faults.into_iter();
    match faults.next() {
        None => Ok(()),
        Some(first) => {
            for fault in faults {
                talk!("{fault}");
            }
            Err(first)
        }
    }
}

/// State of an env, for each kind of env (conda, venv) that the options allow.
type States = Vec<(EnvKind, Result<EnvState>)>;

/// Determines the state of the env in a folder, for each kind of env (conda, venv) that the options allow.
pub fn states(folder: &Path, options: &EnvBuildOptions, cache: &Path) -> Result<States> {
    let kinds = match options.kind {
        EnvKind::Auto if cfg!(feature = "conda") => vec![EnvKind::Conda, EnvKind::Venv],
        EnvKind::Auto => vec![EnvKind::Venv],
        one => vec![one],
    };
    kinds
        .into_iter()
        .map(|kind| Ok((kind, EnvBuildOptions { kind, ..options.clone() }.open()?.state(folder, cache))))
        .collect()
}

/// Lists the faults of an env: a broken or outdated lock of any kind, or no lock at all.
pub fn wrong(id: &str, states: States) -> Vec<Error> {
    let first = states.first().map_or(EnvKind::Venv, |(kind, _)| *kind);
    let locked = states.iter().any(|(_, state)| state.as_ref().map_or(true, |state| state.locked));
    let mut faults: Vec<Error> = states.into_iter().filter_map(|(_, state)| state.err()).collect();
    if !locked {
        faults.push(
            Error::suite(format!("the env `{id}` is not locked"))
                .hint(format!("type `autoexperiment env lock --env {first} {id}`")),
        );
    }
    faults
}

/// Returns the ids of all envs of a suite, sorted.
fn suite_envs(suite: &Suite) -> Result<Vec<String>> {
    let folder = suite.root().join("envs");
    let entries = std::fs::read_dir(&folder).map_err(|error| Error::io("read", &folder, error))?;
    let mut ids: Vec<String> = entries
        .filter_map(|entry| entry.ok().filter(|entry| entry.path().join("environment.yml").is_file()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    ids.sort();
    Ok(ids)
}

/// Returns the folder of an env: a path if `id` contains a `/`, such as an agent's env, else an env of the suite.
fn folder(suite: &Suite, id: &str) -> Result<std::path::PathBuf> {
    let folder = if id.contains('/') { std::path::PathBuf::from(id) } else { suite.env_dir(id) };
    if folder.join("environment.yml").is_file() {
        Ok(folder)
    } else {
        Err(Error::usage(format!("no env `{id}`: `{}` has no environment.yml", folder.display()))
            .hint("name a folder below the suite's `envs`, or a path with a `/`"))
    }
}
