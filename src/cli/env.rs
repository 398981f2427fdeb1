//! `autoexperiment env`: lock, build, list and prune environments.

use super::progress::Progress;
use super::shared::{PlaceOptions, SuiteOptions, print, table};
use crate::env::{Backend, Venv, cached, remove_cached};
use crate::error::{Error, Result};
use crate::run::event::{Observer, RunEvent};
use crate::suite::Suite;

/// Lock, build, list and prune Python environments
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment env lock numpy-sklearn\n  autoexperiment env build numpy-sklearn\n  \
                        autoexperiment env list"
)]
pub struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    suite: SuiteOptions,
    #[command(flatten)]
    places: PlaceOptions,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Solve `environment.yml` anew and write the lock file beside it.
    Lock {
        /// Envs.
        #[arg(required = true)]
        envs: Vec<String>,
    },
    /// Build from the lock file, or find in the cache.
    Build {
        /// Envs.
        #[arg(required = true)]
        envs: Vec<String>,
    },
    /// List the envs in the cache.
    List,
    /// Remove envs from the cache: the named ones, or those whose build was never finished.
    Prune {
        /// Envs.
        envs: Vec<String>,
    },
}

pub async fn run(arguments: &Arguments) -> Result<()> {
    let cache = arguments.places.cache()?;
    let progress = Progress::new(false);
    let on_progress = |told| progress.on(RunEvent::Env(told));
    match &arguments.verb {
        Verb::Lock { envs } => {
            let suite = arguments.suite.open()?;
            for id in envs {
                let path = Venv::new().lock(&folder(&suite, id)?, &on_progress).await?;
                progress.finish();
                talk!("wrote {}", path.display());
            }
        }
        Verb::Build { envs } => {
            let suite = arguments.suite.open()?;
            for id in envs {
                let env = Venv::new().build(&folder(&suite, id)?, &cache, &on_progress).await?;
                progress.finish();
                print(&format!("{}\n", env.prefix.display()))?;
            }
        }
        Verb::List => {
            let rows = cached(&cache)?.into_iter().map(|env| {
                let id = if env.complete { env.id } else { "(unfinished)".to_owned() };
                vec![id, env.python, format!("{}", env.bytes >> 20), env.path.display().to_string()]
            });
            print(&table(&["env", "python", "MiB", "folder"], &[2], rows))?;
        }
        Verb::Prune { envs } => {
            let all = cached(&cache)?;
            if let Some(unknown) = envs.iter().find(|id| !all.iter().any(|env| env.id == **id)) {
                return Err(Error::usage(format!("no env `{unknown}` in the cache"))
                    .hint("`autoexperiment env list` shows what is there"));
            }
            let named = |id: &String| envs.contains(id);
            let removed: Vec<_> =
                all.iter().filter(|env| if envs.is_empty() { !env.complete } else { named(&env.id) }).collect();
            for env in &removed {
                remove_cached(env)?;
            }
            talk!("removed {} env(s)", removed.len());
        }
    }
    Ok(())
}

/// An env of the suite, or with a `/` the folder of one, as that of an agent.
fn folder(suite: &Suite, id: &str) -> Result<std::path::PathBuf> {
    let folder = if id.contains('/') { std::path::PathBuf::from(id) } else { suite.env_dir(id) };
    if folder.join("environment.yml").is_file() {
        Ok(folder)
    } else {
        Err(Error::usage(format!("no env `{id}`: `{}` has no environment.yml", folder.display())))
    }
}
