//! The backend `venv`: an interpreter of this machine, and packages that pip installs as the lock file says.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use sha2::{Digest, Sha256};

use super::cache::{CompletionMarker, EnvHold, clear, lock as lock_folder, stamp};
use super::environment::Environment;
use super::interpreter::{dotted, find, usual_places};
use super::lock::{LockedPackage, LockedTarget, VenvLock, minor, platform};
use super::pip::{ForeignTarget, InstallOptions, check, compile, install, make_venv, solve};
use super::prefix::protect;
use super::{BuildProgress, Env, EnvBackend, EnvState, OnProgress};
use crate::error::{Error, Result};
use crate::files::hex;

/// Version of the build procedure; increase it to prevent environments built earlier from being reused.
const FORMAT: &str = "venv 1";

/// Minor versions of Python 3 for which packages are locked, if the `environment.yml` accepts them.
const MINORS: std::ops::RangeInclusive<u64> = 9..=14;

/// Processors for which packages are locked, with Linux.
const PROCESSORS: [&str; 2] = ["x86_64", "aarch64"];

/// The venv backend, which uses Python's `venv` and pip.
#[derive(Debug, Clone)]
pub struct Venv {
    /// Folders to search for interpreters.
    pub(super) places: Vec<PathBuf>,
    pub(super) offline: bool,
    pub(super) here: bool,
    pub(super) wheels_only: bool,
}

impl Default for Venv {
    fn default() -> Self {
        Self::new()
    }
}

impl Venv {
    /// Creates a backend that searches for interpreters in the usual folders: PATH, pyenv, uv, conda and the system's
    /// folders.
    #[must_use]
    pub fn new() -> Self {
        Self { places: usual_places(), offline: false, here: false, wheels_only: false }
    }

    /// Sets whether network access is forbidden. If it is, envs that are not in the cache fail to build.
    #[must_use]
    pub fn offline(self, offline: bool) -> Self {
        Self { offline, ..self }
    }

    /// Sets whether to lock packages only for this machine's target (Python version and platform). Solving for other
    /// targets takes most of the time.
    #[must_use]
    pub fn here(self, here: bool) -> Self {
        Self { here, ..self }
    }

    /// Sets whether to install wheels only, so that pip runs no code of the packages.
    #[must_use]
    pub fn wheels_only(self, wheels_only: bool) -> Self {
        Self { wheels_only, ..self }
    }

    fn refuse_offline(&self, what: &str, id: &str) -> Result<()> {
        if self.offline {
            return Err(Error::machine(format!("offline, but {what} the env `{id}` needs pip's index"))
                .hint("repeat the command once without `--offline`: what it makes can then be used offline"));
        }
        Ok(())
    }

    /// Builds into the folder `home`, unless another process has done so meanwhile. First removes the remains of a
    /// killed build. If this build fails, removes its own remains, too.
    async fn build_once(
        &self,
        home: &Path,
        environment: &Environment,
        lock: &VenvLock,
        on_progress: OnProgress<'_>,
    ) -> Result<CompletionMarker> {
        let envs = home.parent().unwrap_or(home);
        std::fs::create_dir_all(envs).map_err(|error| Error::io("create", envs, error))?;
        let taken = lock_folder(home, on_progress).await?;
        if let Some(complete) = CompletionMarker::read(home) {
            return Ok(complete);
        }
        clear(home)?;
        let built = self.build_into(home, environment, lock, &taken, on_progress).await;
        if built.is_err() {
            clear(home)?;
        }
        built
    }

    /// Builds into the folder `home`, which does not exist yet, while holding its lock.
    async fn build_into(
        &self,
        home: &Path,
        environment: &Environment,
        lock: &VenvLock,
        taken: &File,
        on_progress: OnProgress<'_>,
    ) -> Result<CompletionMarker> {
        let id = &environment.id;
        on_progress(BuildProgress::Task(format!("looking for {}", environment.python)));
        let here = platform();
        let interpreter = find(environment, &self.places, |version| lock.has(&minor(version), &here)).await?;
        let python = dotted(interpreter.version);
        let chosen = lock
            .choose(&minor(interpreter.version), &here)
            .ok_or_else(|| Error::internal("the lock file of the env has no `[[target]]`"))?;
        if !chosen.hashes_known {
            on_progress(BuildProgress::Detail(format!(
                "hashes are not checked: the lock file lacks them for python {} on {here}; `autoexperiment env lock {id}` adds them",
                minor(interpreter.version)
            )));
        }
        on_progress(BuildProgress::Task(format!("making a venv of python {python}")));
        let prefix = home.join("venv");
        std::fs::create_dir_all(home).map_err(|error| Error::io("create", home, error))?;
        make_venv(&interpreter.path, &prefix, Some(taken), on_progress).await?;
        let inside = prefix.join("bin/python");
        if !chosen.packages.is_empty() {
            on_progress(BuildProgress::Task(format!("installing {} packages", chosen.packages.len())));
            let lock_path = VenvLock::path(environment.path.parent().unwrap_or(home));
            let options = InstallOptions { hashes: chosen.hashes_known, wheels_only: self.wheels_only };
            let requirements = home.join("requirements.txt");
            std::fs::write(&requirements, chosen.requirements())
                .map_err(|error| Error::io("write", &requirements, error))?;
            install(&inside, &requirements, options, chosen.packages.len(), taken, on_progress)
                .await
                .map_err(|error| error.at(&lock_path, None))?;
            // The check would run code of the installed packages (`.pth` files), so skip it with `wheels_only`, under
            // which no code of packages may run.
            if !chosen.hashes_known && !self.wheels_only {
                check(&inside, taken, on_progress).await.map_err(|error| {
                    error
                        .at(&lock_path, None)
                        .hint(format!("type `autoexperiment env lock {id}` to add this machine's target"))
                })?;
            }
        }
        on_progress(BuildProgress::Task("compiling".into()));
        compile(&inside, &prefix.join("lib"), None, taken, on_progress).await;
        protect(&prefix)?;
        let complete = CompletionMarker {
            id: id.clone(),
            backend: "venv".to_owned(),
            variables: BTreeMap::new(),
            digest: digest(&python, &here, chosen.packages, &environment.variables),
            python,
            read_only: interpreter.read_only,
            stamp: stamp(&interpreter.path).map_err(|error| Error::io("read", &interpreter.path, error))?,
            interpreter: interpreter.path,
        };
        complete.write(home)?;
        Ok(complete)
    }
}

#[async_trait]
impl EnvBackend for Venv {
    fn name(&self) -> &'static str {
        "venv"
    }

    /// Lets pip choose package versions for this machine's target (Python version and platform) first. Then looks for
    /// wheels of the same versions for 64-bit Linux and each version of Python that the `environment.yml` accepts. A
    /// target without such wheels gets no section.
    ///
    /// If the lock is up to date but lacks this machine's target, pip must use the versions that are already locked.
    async fn lock(&self, folder: &Path, _cache: &Path, on_progress: OnProgress<'_>) -> Result<PathBuf> {
        let environment = Environment::read(folder)?;
        self.refuse_offline("locking", &environment.id)?;
        on_progress(BuildProgress::Task(format!("looking for {}", environment.python)));
        let interpreter = find(&environment, &self.places, |_| false).await?;
        let here = (minor(interpreter.version), platform());
        let old = VenvLock::read(folder, &environment).ok().map(|(lock, _)| lock);
        let binding =
            old.as_ref().filter(|lock| !lock.has(&here.0, &here.1)).and_then(|lock| lock.choose(&here.0, &here.1));

        let scratch = tempfile::tempdir().map_err(|error| Error::io("create", &std::env::temp_dir(), error))?;
        let write = |name: &str, text: String| {
            let path = scratch.path().join(name);
            std::fs::write(&path, text).map_err(|error| Error::io("write", &path, error))?;
            Ok::<_, Error>(path)
        };
        on_progress(BuildProgress::Task(format!("making a venv of python {}", dotted(interpreter.version))));
        let prefix = scratch.path().join("venv");
        make_venv(&interpreter.path, &prefix, None, on_progress).await?;
        let python = prefix.join("bin/python");
        let requirements = write("requirements.txt", environment.requirements.join("\n") + "\n")?;

        on_progress(BuildProgress::Task("solving".into()));
        let constraints = match binding {
            Some(chosen) => Some(write("locked.txt", versions(chosen.packages))?),
            None => None,
        };
        let native =
            solve(&python, &requirements, constraints.as_deref(), None, self.wheels_only, scratch.path(), on_progress)
                .await
                .map_err(|error| error.at(&environment.path, None))?;
        let constraints = write("solved.txt", versions(&native))?;
        let mut targets =
            vec![LockedTarget { python: here.0.clone(), platform: here.1.clone(), packages: native.clone() }];

        let wanted: Vec<(String, &str)> = MINORS
            .filter(|minor| [0, 99].iter().any(|patch| environment.accepts([3, *minor, *patch])))
            .flat_map(|minor| PROCESSORS.map(|processor| (format!("3.{minor}"), processor)))
            .collect();
        if native.is_empty() {
            // The env has no packages, so nothing needs to be solved: every target gets an empty section.
            for (python, processor) in &wanted {
                add(&mut targets, python.clone(), format!("linux-{processor}"), Vec::new());
            }
        }
        let wanted = if native.is_empty() || self.here { Vec::new() } else { wanted };
        if !wanted.is_empty() {
            on_progress(BuildProgress::Task(format!("solving for {} other targets", wanted.len())));
        }
        for (count, (python_version, processor)) in wanted.iter().enumerate() {
            on_progress(BuildProgress::Step(count as u64, wanted.len() as u64));
            let foreign = ForeignTarget { python: python_version, processor };
            let solved =
                solve(&python, &requirements, Some(&constraints), Some(&foreign), true, scratch.path(), &|_| {}).await;
            match solved {
                Ok(packages) => add(&mut targets, python_version.clone(), format!("linux-{processor}"), packages),
                Err(_) => on_progress(BuildProgress::Detail(format!(
                    "not all of the chosen versions have wheels for python {python_version} on linux-{processor}"
                ))),
            }
        }
        // Keep sections that other machines added, if their versions agree with the new ones.
        for target in old.into_iter().flat_map(|lock| lock.targets) {
            if !targets.iter().any(|one| one.python == target.python && one.platform == target.platform)
                && agree(&target.packages, &native)
            {
                targets.push(target);
            }
        }
        VenvLock::new(&environment, targets).write(folder, &environment)
    }

    /// Returns the env, built if necessary. The cache key consists of the `environment.yml`, the lock and the version
    /// of the build procedure. An interpreter is searched for only if the env must be built. A complete env is built
    /// again if its interpreter has been replaced.
    async fn build(&self, folder: &Path, cache: &Path, on_progress: OnProgress<'_>) -> Result<Env> {
        let environment = Environment::read(folder)?;
        let (lock, text) = VenvLock::read(folder, &environment)?;
        let home = home(&environment, &text, cache)?;
        let complete = if let Some(complete) = CompletionMarker::read(&home) {
            complete
        } else {
            self.refuse_offline("building", &environment.id)?;
            self.build_once(&home, &environment, &lock, on_progress).await?
        };
        assemble(environment, complete, &home)
    }

    fn state(&self, folder: &Path, cache: &Path) -> Result<EnvState> {
        if !VenvLock::path(folder).exists() {
            return Ok(EnvState { locked: false, built: false });
        }
        let environment = Environment::read(folder)?;
        let (_, text) = VenvLock::read(folder, &environment)?;
        Ok(EnvState { locked: true, built: CompletionMarker::read(&home(&environment, &text, cache)?).is_some() })
    }
}

/// Returns an env's folder in the cache.
fn home(environment: &Environment, lock: &str, cache: &Path) -> Result<PathBuf> {
    let key = hex(&Sha256::digest(format!("{FORMAT}\n{}\n{}\n{lock}", environment.id, environment.digest)));
    let cache = std::path::absolute(cache).map_err(|error| Error::io("find", cache, error))?;
    Ok(cache.join("envs").join(&key[..32]))
}

/// Adds a target's packages to the lock. If the target already has a section, adds the packages' hashes to that
/// section.
fn add(targets: &mut Vec<LockedTarget>, python: String, platform: String, packages: Vec<LockedPackage>) {
    let Some(target) = targets.iter_mut().find(|target| target.python == python && target.platform == platform) else {
        targets.push(LockedTarget { python, platform, packages });
        return;
    };
    for package in packages {
        let same = |one: &&mut LockedPackage| one.name == package.name && one.version == package.version;
        if let Some(known) = target.packages.iter_mut().find(same) {
            known.sha256.extend(package.sha256);
            known.sha256.sort();
            known.sha256.dedup();
        }
    }
}

/// Whether each package that is in both lists has the same version in both.
fn agree(one: &[LockedPackage], other: &[LockedPackage]) -> bool {
    one.iter().all(|package| other.iter().all(|known| known.name != package.name || known.version == package.version))
}

fn versions(packages: &[LockedPackage]) -> String {
    packages.iter().map(|package| [&package.name, "==", &package.version, "\n"].concat()).collect()
}

/// Returns a digest of the installed packages. It is equal on all machines with the same platform and Python.
fn digest(python: &str, platform: &str, packages: &[LockedPackage], variables: &BTreeMap<String, String>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("{FORMAT}\npython {python}\nplatform {platform}\n"));
    for package in packages {
        hasher.update(format!("package {}=={}\n", package.name, package.version));
    }
    for (name, value) in variables {
        hasher.update(format!("variable {name}={value}\n"));
    }
    hex(&hasher.finalize())
}

/// Makes the description of the env that sandboxes use.
///
/// # Errors
/// Returns the errors of [`EnvHold::new`].
fn assemble(environment: Environment, complete: CompletionMarker, home: &Path) -> Result<Env> {
    let hold = Some(EnvHold::new(home, &complete)?);
    let prefix = home.join("venv");
    let mut variables = super::prefix::variables(&prefix);
    variables.insert("VIRTUAL_ENV".to_owned(), prefix.display().to_string());
    variables.extend(environment.variables);
    let read_only = std::iter::once(prefix.clone()).chain(complete.read_only).collect();
    Ok(Env { backend: "venv", digest: complete.digest, python: complete.python, prefix, read_only, variables, hold })
}
