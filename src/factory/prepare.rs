//! Writes a package's repo and locks and builds its env.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::about::python_range;
use super::examples::{source_without_outputs, without_outputs};
use super::index::{is_package_name, normalised};
use super::layout::Layout;
use super::list::{FactorySettings, PackageEntry};
use super::refresh::EarlierVersion;
use super::requirements::{self, Requirements, name_of};
use super::source::SourceRecord;
use super::survey::Plan;
use super::test_paths::is_test_path;
use super::vendored::vendor;
use super::workshop::Workshop;
use super::{RUNNER, RUNNER_CODE};
use crate::code::index_tree;
use crate::draft::extension::{extension, joined, libraries};
use crate::draft::manifest::CompiledCode;
use crate::draft::metadata::{self, facts};
use crate::draft::repo::{CopyRules, copy};
use crate::draft::{Draft, environment};
use crate::error::{Error, FailureKind, Result};
use crate::masked::build::tag;
use crate::run::event::{Observer, RunEvent, Stage};
use crate::workspace::remove_tree;

/// Files of tests, in whatever case their names are written. `autoexperiment new` does not copy them, but
/// `autoexperiment factory` does.
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

/// Folders in the root that a build has made. They may contain copies of tests, so they are left out as a whole, even
/// files that match [`TESTS`].
const BUILT: [&str; 2] = ["build", "dist"];

/// Parts, in lower case, of pip's errors that are due to the network, the index or this machine. All other errors of
/// pip would be the same the next time.
const PASSING_ERRORS: [&str; 18] = [
    "timed out",
    "timeouterror",
    "connecttimeout",
    "connectionerror",
    "connection reset",
    "connection aborted",
    "connection refused",
    "connection broken",
    "new connection",
    "connectionpool(",
    "remote end closed",
    "incompleteread",
    "name resolution",
    "http error 429",
    "http error 5",
    " server error: ",
    "no space left on device",
    "cannot allocate memory",
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
        let python = locked_python(&draft.suite().env_dir(id));
        for requirement in without_wheels {
            match vendor(&requirement, &needed, &python, &self.fetcher, scratch.path(), &repo).await? {
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

    /// Locks the env. Whenever pip cannot install the requirements, drops the requirements that pip's error names, or
    /// all requirements of the tests if it names none, and tries again. Returns `environment.yml`, and the dropped
    /// requirements that pip named.
    ///
    /// # Errors
    /// Kind `Suite` if the requirements can never be installed; `Machine` if pip failed for another reason.
    async fn lock(
        &self,
        draft: &mut Draft,
        id: &str,
        python: &str,
        needed: &mut Requirements,
    ) -> Result<(String, Vec<String>)> {
        let (mut without_tests, mut without_wheels) = (false, Vec::new());
        let mut tried_again = BTreeSet::new();
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
                    if is_passing(&error) {
                        return Err(Error { kind: FailureKind::Machine, ..error });
                    }
                    // pip also says that a package has no versions if the index answers with a server error. So ask
                    // the index. If it lists wheels of the package, run pip once more before believing pip.
                    if let Some(name) = without_versions(&message)
                        && tried_again.insert(name.clone())
                        && self.fetcher.has_wheel(&name).await?
                    {
                        continue;
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
                                .map(|one| format!("{one}: its tests' requirements cannot be installed together")),
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

/// Whether locking an env may succeed the next time: something else than pip failed on this machine, pip was killed,
/// its error is one of [`PASSING_ERRORS`], or a download was broken.
fn is_passing(error: &Error) -> bool {
    // Ignore warnings: pip also warns of requests that then succeed, or that it does not need.
    let said = error.message.lines().filter(|line| !line.starts_with("WARNING")).collect::<Vec<_>>().join("\n");
    let is_pips = said.lines().next().is_some_and(|line| line.contains("fit together (exit status: "));
    let said = said.to_lowercase();
    let is_of_machine = !is_pips || PASSING_ERRORS.iter().any(|part| said.contains(part));
    (error.kind == FailureKind::Machine && is_of_machine) || said.contains("does not match its hash")
}

/// Returns the name of the package of which pip found no version at all, according to pip's error.
fn without_versions(message: &str) -> Option<String> {
    let line = message.lines().find(|line| line.contains("(from versions: none)"))?;
    let (_, requirement) = line.split_once("satisfies the requirement ")?;
    Some(name_of(requirement)).filter(|name| is_package_name(name))
}

/// Returns the rules for copying a package's sources: with the tests, without documents.
fn copy_rules() -> Result<CopyRules> {
    let left_out: Vec<String> = LEFT_OUT.iter().map(|glob| (*glob).to_owned()).collect();
    CopyRules::new(&TESTS.map(any_case), &left_out)
}

/// Returns a glob that matches the same paths, but ignores upper and lower case.
fn any_case(glob: &str) -> String {
    let mut text = String::new();
    for c in glob.chars() {
        if c.is_ascii_alphabetic() {
            text.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']);
        } else {
            text.push(c);
        }
    }
    text
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
    copy(sources, repo, &copy_rules()?)?;
    remove_built(repo)?;
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

/// Removes the folders that a build has left in a repo: [`BUILT`], and `*.egg-info` that is not data of tests.
fn remove_built(repo: &Path) -> Result<()> {
    let walk = walkdir::WalkDir::new(repo).min_depth(1).max_depth(2).into_iter().flatten();
    let is_built = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let path = entry.path().strip_prefix(repo).unwrap_or(entry.path());
        let is_info = name.ends_with(".egg-info") && !is_test_path(path);
        entry.file_type().is_dir() && (is_info || (entry.depth() == 1 && BUILT.contains(&&*name)))
    };
    let built: Vec<PathBuf> = walk.filter(is_built).map(walkdir::DirEntry::into_path).collect();
    for folder in built {
        remove_tree(&folder).map_err(|error| Error::io("remove", &folder, error))?;
    }
    Ok(())
}

/// Returns the version of Python for which an env was locked; empty if the env has no lock file.
fn locked_python(env: &Path) -> String {
    let lock = fs::read_to_string(env.join("venv.lock")).unwrap_or_default();
    let version = lock.lines().find_map(|line| line.strip_prefix("python = "));
    version.unwrap_or_default().trim_matches('"').to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_copied_in_whatever_case_the_name_of_their_folder_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let tests = ["Tests/test_a.py", "p/Test/data.txt", "p/tests/x.py", "p/Test_b.py", "TESTING/conftest.py"];
        for file in tests.iter().chain(&["p/__init__.py", "docs/index.py"]) {
            fs::create_dir_all(from.join(file).parent().unwrap()).unwrap();
            fs::write(from.join(file), "").unwrap();
        }
        copy(&from, &to, &copy_rules().unwrap()).unwrap();
        for file in tests {
            assert!(to.join(file).is_file(), "{file}");
        }
        assert!(to.join("p/__init__.py").is_file() && !to.join("docs").exists());
    }

    #[test]
    fn copies_of_tests_that_a_build_has_left_are_removed() {
        let repo = tempfile::tempdir().unwrap();
        let built =
            ["build/lib/p/test_core.py", "dist/test_core.py", "p.egg-info/tests/test_a.py", "src/p.egg-info/test.py"];
        let others = ["p/dist/core.py", "src/build/__init__.py", "tests/q.egg-info/PKG-INFO", "dist.py"];
        for file in built.iter().chain(&others) {
            fs::create_dir_all(repo.path().join(file).parent().unwrap()).unwrap();
            fs::write(repo.path().join(file), "").unwrap();
        }
        remove_built(repo.path()).unwrap();
        assert!(others.iter().all(|file| repo.path().join(file).is_file()));
        assert!(!built.iter().any(|file| repo.path().join(file).exists()));
        assert!(!repo.path().join("build").exists());
    }

    #[test]
    fn the_version_of_python_is_read_from_the_lock_file() {
        let env = tempfile::tempdir().unwrap();
        assert_eq!(locked_python(env.path()), "");
        fs::write(env.path().join("venv.lock"), "format = 1\n\n[[target]]\npython = \"3.12\"\n").unwrap();
        assert_eq!(locked_python(env.path()), "3.12");
    }

    #[test]
    fn only_errors_of_the_network_or_of_this_machine_are_tried_again() {
        let machine =
            |text: &str| Error::machine(format!("failed to find versions that fit together (exit status: 1)\n{text}"));
        for text in [
            "ERROR: No matching distribution found for numpy==99",
            "ERROR: Cannot install a and b because these package versions have conflicting dependencies.",
            "ERROR: Package 'a' requires a different Python: 3.10.1 not in '>=3.12'",
            "ERROR: Invalid requirement: 'a=>1'",
            "pip._vendor.packaging.version.InvalidVersion: Invalid version: '2004d'",
            "ERROR: Wheel 'a' located at /tmp/a-1-py3-none-any.whl is invalid.",
            "pip._vendor.resolvelib.resolvers.ResolutionTooDeep: 200000",
            "WARNING: Connection timed out while downloading.\nERROR: No matching distribution found for connection-pool",
            "",
        ] {
            assert!(!is_passing(&machine(text)), "{text}");
        }
        for text in [
            "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='x', port=443): Read timed out.",
            "ERROR: HTTP error 503 while getting https://x/numpy-2.0-cp312.whl",
            "pip._vendor.requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://x/numpy/",
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        ] {
            assert!(is_passing(&machine(text)), "{text}");
        }
        for text in [
            "failed to find versions that fit together: the package index does not answer (no route)",
            "failed to find versions that fit together: the disk is full\nERROR: x",
            "failed to find versions that fit together (signal: 9 (SIGKILL))\n",
            "failed to make a venv (exit status: 1)\nError: x",
        ] {
            assert!(is_passing(&Error::machine(text)), "{text}");
        }
        let broken = Error::suite("failed to find versions: a download does not match its hash in the lock file");
        assert!(is_passing(&broken) && !is_passing(&Error::suite("`a=>1` is not a requirement")));
    }

    #[test]
    fn a_package_for_which_pip_finds_no_version_is_read_from_pips_error() {
        let said = |requirement: &str, versions: &str| {
            format!(
                "x\nERROR: Could not find a version that satisfies the requirement {requirement} (from versions: {versions})\n"
            )
        };
        assert_eq!(without_versions(&said("My_Pkg[x]>=2 (from other)", "none")).as_deref(), Some("my-pkg"));
        assert_eq!(without_versions(&said("numpy>=99", "1.0, 2.0")), None);
        assert_eq!(without_versions("ERROR: Read timed out."), None);
    }
}
