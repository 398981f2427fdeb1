//! Tests of environments that the machine's own Python and pip build, from pip's configured index.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::cache::CompletionMarker;
use super::environment::Environment;
use super::interpreter::{dotted, find, usual_places};
use super::lock::{VenvLock, minor, platform};
use super::{BuildProgress, Env, EnvBackend, Venv, cached, remove_cached};
use crate::error::{Error, FailureKind, Result};

fn folder(yml: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("environment.yml"), yml).unwrap();
    dir
}

fn read(yml: &str) -> Result<Environment> {
    Environment::read(folder(yml).path())
}

fn line(error: &Error) -> Option<usize> {
    error.place.as_ref().and_then(|(_, line)| *line)
}

#[test]
fn an_environment_yml_gives_python_versions_requirements_and_variables() {
    let environment = read(
        "name: kmeans\nchannels:\n  - conda-forge\n  - nodefaults\ndependencies:\n  - python>=3.10,<3.14\n  - pip\n  - setuptools\n  - pip:\n      - numpy==2.3.5\n      - scikit-learn==1.7.2  # pinned\nvariables:\n  A: b\n  N: '1'\n",
    )
    .unwrap();
    assert!(environment.accepts([3, 13, 1]) && !environment.accepts([3, 14, 0]));
    assert_eq!(environment.requirements, ["setuptools", "numpy==2.3.5", "scikit-learn==1.7.2"]);
    assert_eq!(environment.variables.get("N").map(String::as_str), Some("1"));
}

#[test]
fn errors_in_an_environment_yml_have_their_line() {
    for (yml, at, words) in [
        ("dependencies:\n  - python=3.11\nextra: 1\n", Some(3), "extra"),
        ("dependencies:\n  - python=3.11\n  - [x]\n", Some(3), ""),
        ("dependencies:\n  - pip:\n    - a\n  - conda:\n    - b\n", Some(4), "pip:"),
        ("dependencies:\n  - python=three\n", Some(2), "`three` is not a version"),
        ("dependencies:\n  - python\n  - numpy=2\n  - gcc_linux-64\n", Some(3), "`numpy`, `gcc_linux-64`"),
        ("dependencies:\n  - pip:\n    - six\n    - --index-url=x\n", Some(4), "option"),
        ("dependencies:\n  - pip:\n    - git+https://x.example/a\n", Some(3), "index"),
        ("dependencies: [\n", None, ""),
        ("name: x\n", None, "dependencies"),
    ] {
        let error = read(yml).unwrap_err();
        assert_eq!(error.kind, FailureKind::Suite, "{yml}");
        assert!(error.message.contains(words), "{yml}: {}", error.message);
        assert!(error.hint.is_some());
        if at.is_some() {
            assert_eq!(line(&error), at, "{yml}: {error}");
        }
    }
    let error = Environment::read(Path::new("/nonexistent/x")).unwrap_err();
    assert!(error.hint.unwrap().contains("environment.yml"));
}

#[test]
fn a_lock_file_gives_versions_of_the_nearest_target_and_hashes_only_of_an_equal_target() {
    let dir = folder("dependencies: [python]\n");
    let environment = Environment::read(dir.path()).unwrap();
    let target = |python: &str, platform: &str, version: &str| {
        format!(
            "[[target]]\npython = \"{python}\"\nplatform = \"{platform}\"\n[[target.package]]\nname = \"six\"\nversion = \"{version}\"\nsha256 = [\"{version}\"]\n"
        )
    };
    let text = format!(
        "format = 1\nenvironment = \"{}\"\n{}{}{}",
        environment.digest,
        target("3.10", "linux-x86_64", "10"),
        target("3.12", "linux-x86_64", "12"),
        target("3.12", "linux-aarch64", "a12")
    );
    std::fs::write(VenvLock::path(dir.path()), text).unwrap();
    let (lock, _) = VenvLock::read(dir.path(), &environment).unwrap();
    for (python, platform, requirements) in [
        ("3.12", "linux-x86_64", "six==12 --hash=sha256:12\n"),
        ("3.12", "linux-aarch64", "six==a12 --hash=sha256:a12\n"),
        ("3.9", "linux-aarch64", "six==10\n"),
        ("3.11", "linux-x86_64", "six==12\n"),
        ("3.13", "macos-aarch64", "six==a12\n"),
    ] {
        assert_eq!(lock.choose(python, platform).unwrap().requirements(), requirements, "{python} {platform}");
    }
}

#[test]
fn a_missing_broken_or_outdated_lock_gives_the_hint_to_lock_again() {
    let dir = folder("dependencies: [python]\n");
    let environment = Environment::read(dir.path()).unwrap();
    let id = environment.id.clone();
    let write = |text: &str| std::fs::write(VenvLock::path(dir.path()), text).unwrap();
    let check = |words: &str| {
        let error = VenvLock::read(dir.path(), &environment).unwrap_err();
        assert_eq!(error.kind, FailureKind::Suite);
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(error.hint.as_deref(), Some(format!("type `autoexperiment env lock {id}`").as_str()));
        error
    };
    check("no readable lock file");
    write("format = 1\nenvironment = 3\ntarget = []\n");
    assert_eq!(line(&check("")), Some(2));
    write("format = 1\nenvironment = \"0\"\ntarget = []\n");
    check("was changed after it was locked");
    write(&format!("format = 9\nenvironment = \"{}\"\ntarget = []\n", environment.digest));
    check("format 9");
}

/// Returns a folder with a small env that is locked for an interpreter of this machine. The lock is made once for all
/// tests.
async fn locked() -> TempDir {
    static LOCKED: OnceCell<(String, String)> = OnceCell::const_new();
    let made = LOCKED.get_or_init(|| async {
        let any = read("dependencies: [python]\n").unwrap();
        let interpreter = find(&any, &usual_places(), |_| false).await.unwrap();
        let yml = format!(
            "dependencies:\n  - python={}\n  - pip:\n    - six==1.16.0\nvariables:\n  GREETING: hello\n",
            minor(interpreter.version)
        );
        let dir = folder(&yml);
        let path = Venv::new().lock(dir.path(), dir.path(), &|_| {}).await.unwrap();
        (yml, std::fs::read_to_string(path).unwrap())
    });
    let (yml, lock) = made.await;
    let dir = folder(yml);
    std::fs::write(VenvLock::path(dir.path()), lock).unwrap();
    dir
}

fn python(env: &Env, code: &str) -> String {
    let output = std::process::Command::new(env.prefix.join("bin/python"))
        .args(["-c", code])
        .env_clear()
        .envs(&env.variables)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn a_locked_env_is_built_exactly_and_found_in_the_cache_afterwards() {
    let dir = locked().await;
    let cache = TempDir::new().unwrap();
    let said = Mutex::new(Vec::new());
    let hear = |progress| said.lock().unwrap().push(progress);
    let env = Venv::new().build(dir.path(), cache.path(), &hear).await.unwrap();
    assert_eq!(python(&env, "import six, os; print(six.__version__, os.environ['GREETING'])"), "1.16.0 hello");
    assert_eq!(python(&env, "import platform; print(platform.python_version())"), env.python);
    assert_eq!(env.read_only[0], env.prefix);
    assert!(env.read_only.iter().all(|folder| folder.is_dir()), "{:?}", env.read_only);
    assert_eq!(env.variables["VIRTUAL_ENV"], env.prefix.to_str().unwrap());
    for entry in walkdir::WalkDir::new(&env.prefix).into_iter().map(std::result::Result::unwrap) {
        let mode = entry.metadata().unwrap().permissions().mode();
        assert!(entry.file_type().is_symlink() || mode & 0o222 == 0, "{:?} is writable", entry.path());
    }
    let compiled = walkdir::WalkDir::new(&env.prefix)
        .into_iter()
        .any(|entry| entry.unwrap().file_name().to_str().unwrap().starts_with("six.cpython"));
    assert!(compiled);
    assert!(said.lock().unwrap().iter().any(|one| matches!(one, BuildProgress::Detail(text) if text.contains("six"))));

    said.lock().unwrap().clear();
    // The machine may be busy with other tests, so take the fastest of several.
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let again = Venv { places: Vec::new(), offline: false, here: false, wheels_only: false }
            .build(dir.path(), cache.path(), &hear)
            .await
            .unwrap();
        fastest = fastest.min(start.elapsed());
        assert_eq!(
            (again.digest, again.prefix, &again.variables),
            (env.digest.clone(), env.prefix.clone(), &env.variables)
        );
    }
    println!("cache hit in {fastest:?}");
    assert!(fastest < Duration::from_millis(50));
    assert!(said.lock().unwrap().is_empty(), "nothing is done on a hit");

    let kept = cached(cache.path()).unwrap();
    assert_eq!(kept.len(), 1);
    assert!(kept[0].complete && kept[0].bytes > 10_000 && kept[0].python == env.python);
    let error = remove_cached(&kept[0]).unwrap_err().to_string();
    assert!(error.contains("is in use") && env.is_intact(), "{error}");
    drop(env);
    remove_cached(&kept[0]).unwrap();
    assert!(cached(cache.path()).unwrap().is_empty());
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn concurrent_builders_build_once() {
    let dir = locked().await;
    let cache = TempDir::new().unwrap();
    let said = Mutex::new(Vec::new());
    let hear = |progress| said.lock().unwrap().push(progress);
    let backend = Venv::new();
    let (one, other) =
        tokio::join!(backend.build(dir.path(), cache.path(), &hear), backend.build(dir.path(), cache.path(), &hear));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.prefix, other.prefix);
    assert_eq!(python(&other, "import six; print(six.__version__)"), "1.16.0");
    let stages = said.lock().unwrap();
    let count = |words: &str| {
        stages.iter().filter(|one| matches!(one, BuildProgress::Task(text) if text.contains(words))).count()
    };
    assert_eq!((count("making a venv"), count("waiting")), (1, 1));
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn an_interrupted_build_starts_again() {
    let dir = locked().await;
    let cache = TempDir::new().unwrap();
    let backend = Venv::new();
    // If the installation is cancelled, as by Ctrl-C, the folder that it leaves has no marker of completion.
    let reached = tokio::sync::Notify::new();
    let hear = |progress| {
        if matches!(progress, BuildProgress::Task(text) if text.starts_with("installing")) {
            reached.notify_one();
        }
    };
    tokio::select! {
        _ = backend.build(dir.path(), cache.path(), &hear) => panic!("the build was not cut short"),
        () = reached.notified() => {}
    }
    let unfinished = cached(cache.path()).unwrap();
    assert_eq!((unfinished.len(), unfinished[0].complete), (1, false));
    std::fs::write(unfinished[0].path.join("venv/left over"), "x").unwrap();
    let env = backend.build(dir.path(), cache.path(), &|_| {}).await.unwrap();
    assert_eq!(python(&env, "import six; print(six.__version__)"), "1.16.0");
    assert!(!env.prefix.join("left over").exists());

    // If the interpreter has been replaced, the marker is no longer valid.
    let home = env.prefix.parent().unwrap();
    let mut marker = CompletionMarker::read(home).unwrap();
    marker.stamp.0 += 1;
    marker.write(home).unwrap();
    assert!(CompletionMarker::read(home).is_none());
}

/// Builds the env that environment variables name. The next test runs this test as a process and kills it.
#[tokio::test]
async fn this_test_binary_builds_the_env_that_environment_variables_name() {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(folder), Some(cache)) = (variable("TEST_ENV_FOLDER"), variable("TEST_ENV_CACHE")) else { return };
    Venv::new().build(&folder, &cache, &|_| {}).await.unwrap();
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn killed_builds_do_not_affect_the_next() {
    let dir = locked().await;
    let cache = TempDir::new().unwrap();
    let backend = Venv::new();
    for pause in [600, 1500, 3000] {
        let mut builder = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "env::tests::this_test_binary_builds_the_env_that_environment_variables_name"])
            .env("TEST_ENV_FOLDER", dir.path())
            .env("TEST_ENV_CACHE", cache.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        builder.kill().unwrap();
        builder.wait().unwrap();
    }
    assert!(std::fs::read_dir(cache.path()).unwrap().next().is_some(), "no build was begun");
    let env = backend.build(dir.path(), cache.path(), &|_| {}).await.unwrap();
    assert_eq!(python(&env, "import six; print(six.__version__)"), "1.16.0");
    assert_eq!(python(&env, "import pip; print(pip.__name__)"), "pip");
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn a_download_with_another_hash_is_refused() {
    let dir = locked().await;
    let cache = TempDir::new().unwrap();
    let path = VenvLock::path(dir.path());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("://"), "no address is written down: {text}");
    let quoted: Vec<&str> = text.split('"').collect();
    let wrong: Vec<String> = quoted
        .iter()
        .enumerate()
        .map(|(place, part)| if place > 2 && part.len() == 64 { "0".repeat(64) } else { (*part).to_owned() })
        .collect();
    std::fs::write(&path, wrong.join("\"")).unwrap();
    let error = Venv::new().build(dir.path(), cache.path(), &|_| {}).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Suite, "{error}");
    assert!(error.message.contains("does not match its hash"), "{error}");
    assert!(cached(cache.path()).unwrap().is_empty(), "nothing is left of it");
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn a_lock_made_on_this_machine_also_has_sections_for_linux_on_x86_64_and_aarch64() {
    let dir = locked().await;
    let environment = Environment::read(dir.path()).unwrap();
    let (lock, _) = VenvLock::read(dir.path(), &environment).unwrap();
    let here = &lock.targets[0].python;
    for platform in [platform().as_str(), "linux-x86_64", "linux-aarch64"] {
        assert!(lock.has(here, platform), "{platform}");
        let chosen = lock.choose(here, platform).unwrap();
        assert!(chosen.hashes_known && chosen.requirements().starts_with("six==1.16.0 --hash=sha256:"));
    }
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn a_platform_that_needs_other_packages_gets_no_section_in_the_lock_file() {
    let any = read("dependencies: [python]\n").unwrap();
    let here = minor(find(&any, &usual_places(), |_| false).await.unwrap().version);
    let yml = format!(
        "dependencies:\n  - python={here}\n  - pip:\n    - six==1.16.0\n    - iniconfig==2.0.0; platform_machine != '{}'\n",
        std::env::consts::ARCH
    );
    let dir = folder(&yml);
    Venv::new().lock(dir.path(), dir.path(), &|_| {}).await.unwrap();
    let environment = Environment::read(dir.path()).unwrap();
    let (lock, _) = VenvLock::read(dir.path(), &environment).unwrap();
    let platforms: Vec<&str> = lock.targets.iter().map(|target| target.platform.as_str()).collect();
    assert_eq!(platforms, [platform()], "the other processor needs iniconfig, which pip did not look for");
    assert_eq!(lock.targets[0].packages.len(), 1);
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn an_unknown_target_gets_the_locked_versions_without_hashes_and_a_notice() {
    let dir = locked().await;
    let path = VenvLock::path(dir.path());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(&format!("\"{}\"", platform()), "\"beos-m68k\"")).unwrap();
    let cache = TempDir::new().unwrap();
    let said = Mutex::new(Vec::new());
    let hear = |progress| said.lock().unwrap().push(progress);
    let env = Venv::new().build(dir.path(), cache.path(), &hear).await.unwrap();
    assert_eq!(python(&env, "import six; print(six.__version__)"), "1.16.0");
    let told =
        |one: &BuildProgress| matches!(one, BuildProgress::Detail(text) if text.starts_with("hashes are not checked"));
    assert!(said.lock().unwrap().iter().any(told));
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn a_platform_that_is_added_to_a_lock_gets_the_locked_versions() {
    let any = read("dependencies: [python]\n").unwrap();
    let here = minor(find(&any, &usual_places(), |_| false).await.unwrap().version);
    let dir = folder(&format!("dependencies:\n  - python={here}\n  - pip: [six]\n"));
    let environment = Environment::read(dir.path()).unwrap();
    let text = format!(
        "format = 1\nenvironment = \"{}\"\n[[target]]\npython = \"{here}\"\nplatform = \"beos-m68k\"\n\
         [[target.package]]\nname = \"six\"\nversion = \"1.15.0\"\nsha256 = [\"00\"]\n",
        environment.digest
    );
    std::fs::write(VenvLock::path(dir.path()), text).unwrap();
    Venv::new().lock(dir.path(), dir.path(), &|_| {}).await.unwrap();
    let (lock, _) = VenvLock::read(dir.path(), &environment).unwrap();
    assert!(lock.has(&here, &platform()) && lock.has(&here, "beos-m68k"));
    assert!(lock.targets.iter().all(|target| target.packages[0].version == "1.15.0"));
    // Now the lock has a section for this machine, so locking again solves anew and finds a newer version of `six`. The
    // other machine's section is removed, because it still has the old version.
    Venv::new().lock(dir.path(), dir.path(), &|_| {}).await.unwrap();
    let (lock, _) = VenvLock::read(dir.path(), &environment).unwrap();
    assert!(lock.targets.iter().all(|target| target.packages[0].version != "1.15.0"));
    assert!(!lock.has(&here, "beos-m68k"));
}

#[tokio::test]
#[ignore = "installs packages from PyPI"]
async fn a_nonexistent_version_reports_pips_message() {
    let dir = folder("dependencies:\n  - python\n  - pip:\n    - six==1.16.0\n    - six==1.15.0\n");
    let error = Venv::new().lock(dir.path(), dir.path(), &|_| {}).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Machine);
    assert!(error.message.contains("six==1.15.0") && error.message.contains("ERROR:"), "{error}");
    assert!(error.hint.is_some());
}

/// Creates an executable that prints what an interpreter would print.
fn fake(dir: &Path, name: &str, script: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn answer(version: &str, release: bool, missing: &str) -> String {
    format!(
        r#"echo '{{"version": [{version}], "release": {release}, "implementation": "cpython", "base": "/usr", "missing": [{missing}], "libraries": ["/usr/lib/x", "/opt/y"]}}'"#
    )
}

#[tokio::test]
async fn if_no_interpreter_fits_the_error_lists_the_ones_found_and_why_each_is_unsuitable() {
    let dir = TempDir::new().unwrap();
    let place = dir.path().canonicalize().unwrap();
    for (name, script) in [
        ("python3.8", answer("3, 8, 18", true, "")),
        ("python3.10", answer("3, 10, 1", true, "")),
        ("python3.12", answer("3, 12, 1", true, r#""ensurepip""#)),
        ("python3.14", answer("3, 14, 0", false, "")),
        ("python3", "echo broken >&2; exit 1".to_owned()),
        ("python3-config", "exit 0".to_owned()),
        ("python2", "exit 0".to_owned()),
    ] {
        fake(&place, name, &script);
    }
    let environment = read("dependencies: ['python>=3.11']\n").unwrap();
    let error = find(&environment, std::slice::from_ref(&place), |_| false).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Machine);
    let message = error.message.replace(place.to_str().unwrap(), "PLACE").replace(&environment.id, "ID");
    assert_eq!(
        message,
        "the env `ID` needs python>=3.11: PLACE/python3 did not report its version (broken); PLACE/python3.10 is 3.10.1; \
         PLACE/python3.12 is 3.12.1 without its module `ensurepip`; PLACE/python3.14 is cpython 3.14.0, not a release \
         of CPython; PLACE/python3.8 is 3.8.18, older than 3.9.0"
    );
    assert!(error.hint.unwrap().contains("python3-venv"));
    let error = find(&environment, &[], |_| false).await.unwrap_err();
    assert!(error.message.ends_with("none was found"));
}

#[tokio::test]
async fn the_highest_python_version_is_chosen_unless_an_older_one_is_preferred() {
    let dir = TempDir::new().unwrap();
    let place = dir.path().canonicalize().unwrap();
    for (name, version) in
        [("python3.9", "3, 9, 1"), ("python3.10", "3, 10, 3"), ("python3.13", "3, 13, 0"), ("python3", "3, 10, 9")]
    {
        fake(&place, name, &answer(version, true, ""));
    }
    let environment = read("dependencies: [python]\n").unwrap();
    let places = [place];
    let found = find(&environment, &places, |_| false).await.unwrap();
    assert_eq!(dotted(found.version), "3.13.0");
    assert!(found.read_only.contains(&"/opt/y".into()) && !found.read_only.contains(&"/usr/lib/x".into()));
    let found = find(&environment, &places, |version| version[1] == 10).await.unwrap();
    assert_eq!(dotted(found.version), "3.10.9");
}
