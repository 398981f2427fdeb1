//! Writes a package's repo and locks and builds its env.

use std::fs;
use std::path::{Path, PathBuf};

use super::about::python_range;
use super::examples::{source_without_outputs, without_outputs};
use super::index::normalised;
use super::layout::Layout;
use super::list::{FactorySettings, PackageEntry};
use super::refresh::EarlierVersion;
use super::requirements::{self, Requirements, name_of};
use super::source::SourceRecord;
use super::survey::Plan;
use super::vendored::vendor;
use super::workshop::Workshop;
use super::{RUNNER, RUNNER_CODE};
use crate::code::index_tree;
use crate::draft::extension::{extension, joined, libraries};
use crate::draft::manifest::CompiledCode;
use crate::draft::metadata::{self, facts};
use crate::draft::repo::{CopyRules, copy};
use crate::draft::{Draft, environment};
use crate::error::{Error, Result};
use crate::masked::build::tag;
use crate::run::event::{Observer, RunEvent, Stage};

/// Files of tests. `autoexperiment new` does not copy them, but `autoexperiment factory` does.
const TESTS: [&str; 10] = [
    "**/tests",
    "**/test",
    "**/testing",
    "**/tests.py",
    "**/test.py",
    "**/test_*.py",
    "**/*_test.py",
    "**/*_tests.py",
    "**/conftest.py",
    "**/pytest.ini",
];

/// Files that may give functions or values away, and that tests usually do not need.
const LEFT_OUT: [&str; 12] = [
    "doc",
    "docs",
    "documentation",
    "*.egg-info",
    "*/*.egg-info",
    "build",
    "paper",
    "joss",
    "CHANGE*",
    "HISTORY*",
    "NEWS*",
    "*.ipynb",
];

/// A repo that is ready for its tests.
pub(super) struct Prepared {
    /// The paper, repo and env that are being made.
    pub(super) draft: Draft,
    /// How the package is imported.
    pub(super) layout: Layout,
    /// Folder of the sources.
    pub(super) sources: PathBuf,
    /// Where the sources came from.
    pub(super) record: SourceRecord,
    /// The older version of the package, by which new functions are recognised.
    pub(super) earlier: Option<EarlierVersion>,
    /// The repo's compiled code.
    pub(super) compiled: CompiledCode,
    /// Title, authors, year and address.
    pub(super) facts: metadata::PackageFacts,
    /// `environment.yml`.
    pub(super) environment: String,
}

impl Workshop {
    /// Writes repo and env, and builds the env.
    pub(super) async fn prepare(
        &self,
        id: &str,
        mut layout: Layout,
        sources: &Path,
        entry: &mut PackageEntry,
        observer: &dyn Observer,
    ) -> Result<Prepared> {
        self.remove_unfinished(id)?;
        let mut draft = Draft::begin(&self.suite, id)?;
        let repo = draft.suite().repo_dir(id);
        write_repo(sources, &repo, &layout, &self.settings)?;
        let mut needed = requirements::find(sources, &layout.name);
        let found = extension(sources);
        if let Some(found) = &found {
            needed.own = joined(&needed.own, &found.requirements);
        }
        needed.drop_modules_of(sources);
        let python = python_range(sources, found.is_some(), id).await?;
        let permit = self.envs.acquire().await.map_err(|_| Error::internal("the envs' queue was closed"))?;
        observer.on(RunEvent::Stage(Stage::new("building env of", id)));
        let (environment, without_wheels) = self.lock(&mut draft, id, &python, &mut needed).await?;
        let scratch = self.scratch()?;
        for requirement in without_wheels {
            match vendor(&requirement, &needed, &self.fetcher, scratch.path(), &repo).await? {
                Some(record) => entry.vendored.push(record),
                None => needed.left_out.push(format!("{requirement}: cannot be installed")),
            }
        }
        layout.has_vendored = !entry.vendored.is_empty();
        entry.left_out = std::mem::take(&mut needed.left_out);
        let folder = draft.suite().env_dir(id);
        refuse_itself(&folder, &layout)?;
        let built = self.machine.envs.build(&folder, &self.machine.cache, &|_| {}).await?;
        drop(permit);
        entry.env_bytes = folder_bytes(&built.prefix);
        let files = library_files(&repo);
        let bound = found.is_some() || files.iter().any(|file| tag(file).is_some());
        let compiled = CompiledCode { build: found.map(|found| found.command), files, abi: bound.then(|| built.abi()) };
        let mut facts = facts(sources);
        if facts.year.is_none() {
            facts.year = Some(u16::try_from(crate::files::now().to_zoned(jiff::tz::TimeZone::UTC).year()).unwrap_or(0));
        }
        Ok(Prepared {
            draft,
            layout,
            sources: sources.to_owned(),
            record: SourceRecord::default(),
            earlier: None,
            compiled,
            facts,
            environment,
        })
    }

    /// Locks the env. Whenever pip fails, drops the requirements that pip's error names, or all requirements of the tests
    /// if it names none, and tries again. Returns `environment.yml`, and the dropped requirements that pip named.
    async fn lock(
        &self,
        draft: &mut Draft,
        id: &str,
        python: &str,
        needed: &mut Requirements,
    ) -> Result<(String, Vec<String>)> {
        let (mut without_tests, mut without_wheels) = (false, Vec::new());
        loop {
            let yml = environment::yml(id, python, &needed.all());
            draft.write_env(&yml)?;
            if draft.take_lock(&self.machine.cache)? {
                return Ok((yml, without_wheels));
            }
            let folder = draft.suite().env_dir(id);
            match self.machine.envs.lock(&folder, &self.machine.cache, &|_| {}).await {
                Ok(_) => {
                    draft.keep_lock(&self.machine.cache)?;
                    return Ok((yml, without_wheels));
                }
                Err(error) => {
                    let message = error.to_string();
                    if message.contains("does not answer") || message.contains("disk is full") {
                        return Err(error);
                    }
                    let named = needed.drop_named(&message);
                    if !named.is_empty() {
                        without_wheels.extend(named);
                        continue;
                    }
                    if !needed.tests.is_empty() && !without_tests {
                        without_tests = true;
                        let dropped = std::mem::take(&mut needed.tests);
                        needed.left_out.extend(
                            dropped
                                .into_iter()
                                .map(|one| format!("{one}: its tests' requirements contradict each other")),
                        );
                        continue;
                    }
                    let said = message.lines().rev().find(|line| line.contains("ERROR")).unwrap_or(&message);
                    let said = said.trim().trim_start_matches("ERROR:").trim().to_owned();
                    return Err(Error::suite(format!("its requirements cannot be installed: {said}")));
                }
            }
        }
    }
}

/// Writes the plan of the tests into a repo.
pub(super) fn write_plan(repo: &Path, plan: &Plan) -> Result<()> {
    let (path, bytes) = plan.file();
    fs::write(repo.join(&path), bytes).map_err(|error| Error::io("write", &path, error))
}

/// Writes the runner of the tests into a repo.
pub(super) fn write_runner(repo: &Path) -> Result<()> {
    fs::write(repo.join(RUNNER), RUNNER_CODE).map_err(|error| Error::io("write", &repo.join(RUNNER), error))
}

/// Returns the paths of the compiled libraries in a repo.
pub(super) fn library_files(repo: &Path) -> Vec<String> {
    libraries(repo).into_iter().filter_map(|path| Some(path.to_str()?.to_owned())).collect()
}

/// Copies the sources to the repo that agents get: with the tests and with the files that a build would have made,
/// without documents and without outputs of examples.
pub(super) fn write_repo(sources: &Path, repo: &Path, layout: &Layout, settings: &FactorySettings) -> Result<()> {
    let owned = |globs: &[&str]| globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>();
    copy(sources, repo, &CopyRules::new(&owned(&TESTS), &owned(&LEFT_OUT))?)?;
    if !settings.keep_examples {
        for entry in fs::read_dir(repo).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().to_lowercase();
            if name.starts_with("readme")
                && let Ok(text) = fs::read_to_string(entry.path())
            {
                fs::write(entry.path(), without_outputs(&text).0)
                    .map_err(|error| Error::io("write", &entry.path(), error))?;
            }
        }
    }
    // Doctests are tests in the code itself, so their outputs stay.
    if !settings.keep_examples && !settings.doctests {
        for (path, module) in index_tree(repo) {
            if let Ok(module) = module
                && layout.holds(&path)
                && let Some((bytes, _)) = source_without_outputs(&module)
            {
                fs::write(repo.join(&path), bytes).map_err(|error| Error::io("write", &repo.join(&path), error))?;
            }
        }
    }
    layout.complete(sources, repo)
}

/// Refuses an env that contains the package itself, which happens if one of the package's requirements needs the
/// package.
fn refuse_itself(env: &Path, layout: &Layout) -> Result<()> {
    for file in fs::read_dir(env).into_iter().flatten().flatten() {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("name = "));
        if names.into_iter().any(|name| name_of(name.trim_matches('"')) == normalised(&layout.name)) {
            return Err(Error::suite(format!(
                "a requirement of its tests installs `{}` itself, where agents could read it",
                layout.name
            )));
        }
    }
    Ok(())
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}
