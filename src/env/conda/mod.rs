//! The backend `conda`: packages from conda channels, which this program solves, locks and installs itself, and
//! additional packages installed by pip.
//!
//! Only this module uses the libraries for conda packages. `environment.yml` ([`EnvironmentFile`]) and the user's
//! configuration ([`settings`]) give specifications and channels ([`spec`]). These are solved ([`solve`]) and locked
//! ([`lock`]). From the lock a prefix is built ([`install`], [`wheels`], [`layer`]) and activated once
//! ([`activation`]). Finally, the addresses from which the packages came are removed from the prefix ([`origin`]).

mod activation;
mod address;
mod channels;
mod client;
mod failure;
mod install;
mod layer;
mod lock;
mod origin;
mod progress;
mod settings;
mod solve;
mod spec;
#[cfg(test)]
mod tests;
mod wheels;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rattler_conda_types::{RepoDataRecord, Subdir};
use sha2::{Digest, Sha256};

use super::cache::{CompletionMarker, EnvHold, clear, lock as lock_folder, stamp};
use super::environment::EnvironmentFile;
use super::pip::compile;
use super::prefix::{self, protect};
use super::{BuildProgress, Env, EnvBackend, EnvState, OnProgress};
use crate::error::{Error, Result};
use crate::files::hex;
use lock::{CondaLock, PlatformPackages, channel_name, from_lock, to_lock};
use settings::CondaSettings;
use solve::{SolveOptions, check_machine};
use spec::CondaRequest;

/// Version of the build procedure; increase it to prevent environments built earlier from being reused.
const FORMAT: &str = "conda 1";

/// The conda backend.
#[derive(Debug, Clone)]
pub struct Conda {
    settings: CondaSettings,
    offline: bool,
}

impl Conda {
    /// Opens the backend with the user's conda configuration. `alias` replaces the configured URL prefix for channel
    /// names. With `offline`, only the cache and channels on this machine are used.
    ///
    /// # Errors
    /// Kind `Usage` for an alias that is not a URL, `Machine` for a configuration that cannot be read.
    pub fn open(alias: Option<&str>, offline: bool) -> Result<Self> {
        let settings = CondaSettings::load(alias)?;
        Ok(Self { offline: offline || settings.offline, settings })
    }

    /// Whether all channels of the packages locked for `folder` answer within a few seconds.
    pub async fn answers(&self, folder: &Path) -> bool {
        let here = || {
            let source = EnvironmentFile::read(folder).ok()?;
            let lock = CondaLock::read(folder, &source).ok()?;
            let section = lock.section(here().ok()?, folder, &source).ok()?;
            let names: BTreeSet<&str> = section.records.iter().filter_map(channel_name).collect();
            let path = CondaLock::path(folder);
            let channels = names.into_iter().map(|name| Some(self.settings.locate_one(name, &path).ok()?.urls));
            let mut channels = channels.collect::<Option<Vec<_>>>()?;
            // If the `environment.yml` gives a channel's address and not its name, the lock contains the address. Add
            // these channels, too.
            let given: BTreeSet<String> = section.records.iter().filter_map(lock::channel_address).collect();
            for address in given {
                channels.push(vec![address.parse::<reqwest::Url>().ok()?.into()]);
            }
            Some((channels, client::client(self.offline).ok()?))
        };
        let Some((channels, client)) = here() else { return false };
        let asked = channels.iter().map(|urls| async {
            let places = urls.iter().map(|url| client::answers(url, &client));
            futures_util::future::join_all(places).await.contains(&true)
        });
        futures_util::future::join_all(asked).await.iter().all(|answers| *answers)
    }

    fn warn(&self, on_progress: OnProgress<'_>) {
        for warning in &self.settings.warnings {
            on_progress(BuildProgress::Notice(warning.clone()));
        }
    }

    /// Returns the records of locked packages, with the addresses that their channels have on this machine.
    async fn located(
        &self,
        section: &PlatformPackages,
        lock: &Path,
        sources: &SolveOptions<'_>,
    ) -> Result<Vec<RepoDataRecord>> {
        let names: BTreeSet<&str> = section.records.iter().filter_map(channel_name).collect();
        let mut places = BTreeMap::new();
        for name in names {
            let channel = self.settings.locate_one(name, lock)?;
            places.insert(name.to_owned(), solve::place(&channel, sources).await);
        }
        section.records.iter().map(|record| from_lock(record.clone(), &places, lock)).collect()
    }

    /// Builds into the folder `home`, unless another process has done so meanwhile. First removes the remains of a
    /// killed build. If this build fails, removes its own remains, too.
    async fn build_once(&self, build: &BuildInput<'_>, on_progress: OnProgress<'_>) -> Result<CompletionMarker> {
        let home = &build.home;
        let envs = home.parent().unwrap_or(home);
        std::fs::create_dir_all(envs).map_err(|error| Error::io("create", envs, error))?;
        let taken = lock_folder(home, on_progress).await?;
        if let Some(complete) = CompletionMarker::read(home) {
            return Ok(complete);
        }
        clear(home)?;
        let built = self.build_into(build, &taken, on_progress).await;
        if built.is_err() {
            tidy(home).await;
        }
        built
    }

    /// Builds into the folder `home`, which does not exist yet, while holding its lock.
    async fn build_into(
        &self,
        build: &BuildInput<'_>,
        taken: &File,
        on_progress: OnProgress<'_>,
    ) -> Result<CompletionMarker> {
        self.warn(on_progress);
        let BuildInput { source, section, lock, home, cache } = build;
        check_machine(&section.records)?;
        let client = client::client(self.offline)?;
        let sources = SolveOptions {
            client: &client,
            cache: &cache.join("conda/index"),
            priority: self.settings.priority,
            offline: self.offline,
        };
        let records = self.located(section, lock, &sources).await?;
        let python = python_of(&records, source)?;
        let prefix = home.join(PREFIX);
        std::fs::create_dir_all(home).map_err(|error| Error::io("create", home, error))?;
        let packages = cache.join("conda/packages");
        install::install(&prefix, section.platform, records, &packages, &client, self.offline, on_progress)
            .await
            .map_err(|error| error.at(*lock, None))?;
        let program = prefix.join("bin/python");
        let interpreter = program.canonicalize().map_err(|error| Error::io("find", &program, error))?;
        let layers = cache.join("conda/layers");
        let key = digest(section, &BTreeMap::new());
        let replaces = replaces_conda(section);
        if replaces || !layer::apply(&layers, &key, &prefix)? {
            wheels::install(&program, &section.pip, cache, home, self.offline, taken, on_progress)
                .await
                .map_err(|error| error.at(*lock, None))?;
            on_progress(BuildProgress::Task("compiling".into()));
            compile(&program, &site_packages(&prefix, &python), Some(&prefix), taken, on_progress).await;
            if !replaces {
                layer::keep(&layers, &key, &prefix);
            }
        }
        on_progress(BuildProgress::Task("activating".into()));
        let activated = activation::activate(&prefix, section.platform, &source.variables).await?;
        origin::forget(&prefix, &section.records)?;
        protect(&prefix)?;
        let mut variables = prefix::variables(&prefix);
        variables.extend(activated);
        let complete = CompletionMarker {
            id: source.id.clone(),
            backend: "conda".to_owned(),
            digest: digest(section, &source.variables),
            python,
            read_only: Vec::new(),
            stamp: stamp(&interpreter).map_err(|error| Error::io("read", &interpreter, error))?,
            interpreter,
            variables,
        };
        complete.write(home)?;
        Ok(complete)
    }
}

/// Removes what a failed build left. Tasks of the installer may still write for a moment; files that appear after the
/// removal do not count as an env, because there is no marker, and the next build removes them. Errors are ignored,
/// because the error of the build itself is reported.
async fn tidy(home: &Path) {
    const PAUSE: Duration = Duration::from_millis(100);
    for _ in 0..50 {
        if clear(home).is_ok() && !home.exists() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Name of the prefix's folder inside an env's folder.
const PREFIX: &str = "conda";

/// Inputs of a build.
struct BuildInput<'a> {
    source: &'a EnvironmentFile,
    section: &'a PlatformPackages,
    lock: &'a Path,
    home: PathBuf,
    cache: &'a Path,
}

#[async_trait]
impl EnvBackend for Conda {
    fn name(&self) -> &'static str {
        "conda"
    }

    /// Solves for this machine's platform only. If the env has packages for pip, conda's packages are installed into a
    /// temporary folder and pip solves there, so that it finds the same packages as at installation. The lock file's
    /// sections for other platforms are kept if they were made from the same `environment.yml`.
    async fn lock(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<PathBuf> {
        self.warn(on_progress);
        let source = EnvironmentFile::read(folder)?;
        let wanted = CondaRequest::from_environment(&source, &self.settings)?;
        let platform = here()?;
        let client = client::client(self.offline)?;
        let sources = SolveOptions {
            client: &client,
            cache: &cache.join("conda/index"),
            priority: self.settings.priority,
            offline: self.offline,
        };
        let (records, places) = solve::solve(&wanted, &source.path, platform, &sources, on_progress).await?;
        python_of(&records, &source)?;
        let pip = if source.pip.is_empty() {
            Vec::new()
        } else if self.offline {
            return Err(Error::machine(format!("offline, but locking the env `{}` needs pip's index", source.id))
                .at(&source.path, None)
                .hint("run it without `--offline`"));
        } else {
            let place = cache.join("conda");
            std::fs::create_dir_all(&place).map_err(|error| Error::io("create", &place, error))?;
            let scratch = tempfile::tempdir_in(&place).map_err(|error| Error::io("create", &place, error))?;
            let prefix = scratch.path().join(PREFIX);
            let packages = cache.join("conda/packages");
            install::install(&prefix, platform, records.clone(), &packages, &client, self.offline, on_progress)
                .await
                .map_err(|error| error.at(&source.path, None))?;
            wheels::solve(&prefix.join("bin/python"), &source.pip, on_progress)
                .await
                .map_err(|error| error.at(&source.path, None))?
        };
        let channels: Vec<String> = wanted.channels.iter().map(|channel| channel.name.clone()).collect();
        let records = records.into_iter().map(|record| to_lock(record, &wanted.channels, &places)).collect();
        let mut sections = vec![PlatformPackages { platform, records, pip }];
        if let Ok(old) = CondaLock::read(folder, &source) {
            sections.extend(old.sections.into_iter().filter(|section| section.platform != platform));
        }
        sections.sort_by_key(|section| section.platform.to_string());
        CondaLock { channels, sections }.write(folder, &source)
    }

    /// Returns the env, built if necessary. Its cache key consists of the env's id and the digest of the installed
    /// packages. So the env is reused even if the channels' locations change, or if the `environment.yml` changes
    /// without effect on the packages.
    async fn build(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Env> {
        let source = EnvironmentFile::read(folder)?;
        let lock = CondaLock::read(folder, &source)?;
        let section = lock.section(here()?, folder, &source)?;
        let cache = std::path::absolute(cache).map_err(|error| Error::io("find", cache, error))?;
        let home = home(&source, section, &cache)?;
        let complete = if let Some(complete) = CompletionMarker::read(&home) {
            complete
        } else {
            let lock = CondaLock::path(folder);
            let build = BuildInput { source: &source, section, lock: &lock, home: home.clone(), cache: &cache };
            self.build_once(&build, on_progress).await?
        };
        let prefix = home.join(PREFIX);
        let hold = Some(EnvHold::new(&home, &complete)?);
        Ok(Env {
            hold,
            backend: "conda",
            digest: complete.digest,
            python: complete.python,
            read_only: vec![prefix.clone()],
            prefix,
            variables: complete.variables,
        })
    }

    fn state(&self, folder: &Path, cache: &Path) -> Result<EnvState> {
        if !is_locked(folder) {
            return Ok(EnvState { locked: false, built: false });
        }
        let source = EnvironmentFile::read(folder)?;
        let lock = CondaLock::read(folder, &source)?;
        let Ok(section) = lock.section(here()?, folder, &source) else {
            return Ok(EnvState { locked: false, built: false });
        };
        Ok(EnvState { locked: true, built: CompletionMarker::read(&home(&source, section, cache)?).is_some() })
    }
}

/// Whether the env in `folder` has a lock file for conda.
pub(super) fn is_locked(folder: &Path) -> bool {
    CondaLock::path(folder).exists()
}

/// Returns this machine's platform.
fn here() -> Result<Subdir> {
    Subdir::current().ok_or_else(|| Error::machine("conda does not support this platform").hint("use `--env venv`"))
}

/// Returns an env's folder in the cache.
fn home(source: &EnvironmentFile, section: &PlatformPackages, cache: &Path) -> Result<PathBuf> {
    let cache = std::path::absolute(cache).map_err(|error| Error::io("find", cache, error))?;
    let key = hex(&Sha256::digest(format!("{}\n{}", source.id, digest(section, &source.variables))));
    Ok(cache.join("envs").join(&key[..32]))
}

/// Returns the version of Python among the packages; an error if Python is not among them.
fn python_of(records: &[RepoDataRecord], source: &EnvironmentFile) -> Result<String> {
    let python = records.iter().find(|record| record.package_record.name.as_normalized() == "python");
    python.map(|record| record.package_record.version.to_string()).ok_or_else(|| {
        Error::suite("the env has no Python").at(&source.path, None).hint("add `python` to `dependencies`")
    })
}

/// Whether pip replaces a conda package by another version, so that files of the conda package change.
fn replaces_conda(section: &PlatformPackages) -> bool {
    let is_conda = |name: &str| {
        section.records.iter().any(|record| record.package_record.name.as_normalized().replace(['_', '.'], "-") == name)
    };
    section.pip.iter().any(|package| is_conda(&package.name))
}

/// Returns the folder of installed Python packages. Only the files in this folder are compiled to bytecode.
fn site_packages(prefix: &Path, python: &str) -> PathBuf {
    let minor: Vec<&str> = python.split('.').take(2).collect();
    prefix.join("lib").join(format!("python{}", minor.join("."))).join("site-packages")
}

/// Returns a digest of the installed packages. It is equal on all machines of a platform, wherever the packages came
/// from.
fn digest(section: &PlatformPackages, variables: &BTreeMap<String, String>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{FORMAT}\nplatform {}\n", section.platform));
    let mut records: Vec<&RepoDataRecord> = section.records.iter().collect();
    records.sort_by_key(|record| record.identifier.to_string());
    for record in records {
        let sha256 = record.package_record.sha256.map(|hash| hex(&hash)).unwrap_or_default();
        hasher.update(format!("package {} {sha256}\n", record.identifier));
    }
    for package in &section.pip {
        hasher.update(format!("pip {} {}\n", package.file, package.sha256));
    }
    for (name, value) in variables {
        hasher.update(format!("variable {name}={value}\n"));
    }
    hex(&hasher.finalize())
}
