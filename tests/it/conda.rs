//! Conda envs from the command line, from a local channel that is made of the machine's own Python: builds that
//! succeed, and the messages of those that fail.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::channel::{channels, copy_of};
use crate::support::http::Server;
use crate::support::{Lab, Ran, copy};
use serde_json::Value;

/// The tiny suite's `environment.yml`, with packages that the channel contains for these tests.
const YML: &str = "\
name: tiny
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python>=3.10
  - demo-library=1
  - demo-activate
variables:
  COLOUR: blue
";

/// The tiny suite with a conda env, a cache of its own, and without the machine's conda configuration.
struct Conda {
    lab: Lab,
    alias: String,
    cache: PathBuf,
}

impl Conda {
    fn new(yml: &str, alias: &str) -> Self {
        let lab = Lab::bare();
        copy("tests/trees/tiny".as_ref(), &lab.path(""));
        lab.write("envs/tiny/environment.yml", yml);
        let cache = lab.path("cache");
        Self { lab, alias: alias.to_owned(), cache }
    }

    /// Creates a lab that reads the channels from their folder.
    fn of(channels: &Path, yml: &str) -> Self {
        Self::new(yml, &file(channels))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.lab.command(arguments);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CONDA") {
                command.env_remove(name);
            }
        }
        command
            .env("AUTOEXPERIMENT_CACHE", &self.cache)
            .env_remove("AUTOEXPERIMENT_CHANNEL_ALIAS")
            .env("CONDA_RESTRICT_RC_SEARCH_PATH", "1");
        // The servers of these tests are on this machine, so bypass any proxy for pip's index.
        let direct = std::env::var("NO_PROXY").map_or_else(|_| "127.0.0.1".to_owned(), |list| list + ",127.0.0.1");
        command.env("NO_PROXY", direct);
        if !self.alias.is_empty() {
            command.env("AUTOEXPERIMENT_CHANNEL_ALIAS", &self.alias);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs a command that must fail with this exit code, and returns its stderr.
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        self.lab.redact(&ran.stderr)
    }

    fn lock(&self) {
        self.ok(&["env", "lock", "--env", "conda", "tiny"]);
    }

    /// Builds the env and returns its prefix.
    fn build(&self) -> PathBuf {
        PathBuf::from(self.ok(&["env", "build", "--env", "conda", "tiny"]).stdout.trim())
    }

    /// Returns the folders of envs in the cache.
    fn homes(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.cache.join("envs")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
    }

    /// Whether the cache contains no folder that counts as a complete env.
    fn has_no_env(&self) -> bool {
        self.homes().iter().all(|home| !home.join("complete.json").exists())
    }
}

fn file(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// Returns what Python code prints, run in a prefix with an empty environment.
fn python(prefix: &Path, code: &str) -> String {
    let ran = Command::new(prefix.join("bin/python")).args(["-c", code]).env_clear().output().unwrap();
    assert!(ran.status.success(), "{code}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// Returns the only file of a folder whose name contains `part`.
fn only(folder: &Path, part: &str) -> PathBuf {
    let named = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(part);
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(named).collect();
    assert_eq!(found.len(), 1, "{part}: {found:?}");
    found.remove(0)
}

/// Makes a copy of the channels that a test can change.
fn changed(channels: &Path, lab: &Conda) -> PathBuf {
    let mirror = lab.lab.path("mirror");
    fs::create_dir_all(&mirror).unwrap();
    copy_of(channels, &mirror);
    mirror
}

/// Flips the bits of a byte in the middle of a package.
fn corrupt(package: &Path) {
    let mut bytes = fs::read(package).unwrap();
    fs::remove_file(package).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(package, bytes).unwrap();
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn an_env_is_locked_built_found_again_and_removed() {
    let channels = channels();
    let server = Server::of(channels);
    let mut conda = Conda::new(YML, &server.url());
    conda.lock();
    let lock = conda.lab.read("envs/tiny/conda.lock");
    assert!(lock.contains("demo-library-1.1-py_0.conda"), "the newest of 1 was not taken: {lock}");
    assert!(!lock.contains("127.0.0.1") && !lock.contains("/tmp"), "an address of this machine is locked: {lock}");
    let state = |conda: &Conda| conda.ok(&["env", "lock", "--check", "--env", "conda"]).stdout;
    insta::assert_snapshot!(state(&conda), @r"
     env   kind   lock        built
     tiny  conda  up to date  no
    ");

    let prefix = conda.build();
    assert_eq!(python(&prefix, "import demo_library; print(demo_library.VERSION)"), "1.1");
    let entered = Command::new(prefix.join("bin/demo-library")).env_clear().output().unwrap();
    assert_eq!(String::from_utf8(entered.stdout).unwrap(), "1.1\n");
    // Placeholders in packages' texts and binary files were replaced by the prefix.
    let text = fs::read_to_string(prefix.join("share/demo/where.txt")).unwrap();
    assert_eq!(text, format!("{}/share/demo\n", prefix.display()));
    let binary = fs::read(prefix.join("share/demo/where.bin")).unwrap();
    let original = format!("\0binary\0{}/share\0", prefix.display());
    assert!(binary.starts_with(original.as_bytes()) && binary.ends_with(b"\0end\0"));
    let base = python(&prefix, "import sysconfig; print(sysconfig.get_config_var('prefix'))");
    assert!(base == prefix.display().to_string() || base == "/usr", "{base}");
    // The env is read-only, even for its owner.
    for path in ["bin", "bin/demo-library", "share/demo/where.txt"] {
        assert_eq!(fs::metadata(prefix.join(path)).unwrap().permissions().mode() & 0o222, 0, "{path}");
    }
    // The interpreter loads only its own libraries.
    let modules = "import ssl, sqlite3, readline, ctypes, bz2, lzma, zlib, uuid, curses, hashlib, decimal, re, sys; \
                   from pathlib import Path; \
                   maps = Path('/proc/self/maps').read_text().splitlines(); \
                   used = {line.split()[-1] for line in maps if '.so' in line}; \
                   system = re.compile('.*/(lib(c|m|dl|pthread|rt|util)|ld-linux.*)[.]so'); \
                   print([one for one in used if not one.startswith(sys.prefix) and not system.match(one)])";
    assert_eq!(python(&prefix, modules), "[]");

    let sent = server.sent("");
    let begun = Instant::now();
    assert_eq!(conda.build(), prefix);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(server.sent(""), sent, "what was built was fetched again");
    insta::assert_snapshot!(state(&conda), @r"
     env   kind   lock        built
     tiny  conda  up to date  yes
    ");
    let listed = conda.ok(&["env", "list"]).stdout;
    assert!(listed.contains("tiny") && listed.contains("conda"), "{listed}");

    // The same channel under another address gives the same env.
    conda.alias = file(channels);
    assert_eq!(conda.build(), prefix);
    conda.ok(&["env", "prune", "tiny"]);
    assert!(!prefix.exists());
    // The env was removed, but its packages are still in the cache, so building it again is fast.
    let begun = Instant::now();
    assert_eq!(conda.build(), prefix);
    println!("a prefix from cached packages: {:?}", begun.elapsed());
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn attempts_run_in_the_activated_conda_env_and_the_gold_file_records_the_backend() {
    let channels = channels();
    let conda = Conda::of(channels, YML);
    conda.lock();
    conda.ok(&["gold", "--env", "conda", "--repeats", "2", "tiny"]);
    let gold: Value = serde_json::from_str(&conda.lab.read("papers/tiny/gold.json")).unwrap();
    assert_eq!(gold["env"]["backend"], "conda");
    let print =
        "echo \"colour=$COLOUR demo=$DEMO_ACTIVATED share=$DEMO_SHARE in=$CONDA_PREFIX python=$(command -v python)\"";
    conda.lab.write(
        "s",
        &crate::support::json_lines(&[serde_json::json!({"tool": "command_line", "arguments": {"command": print}})]),
    );
    let agent = format!("scripted:{}", conda.lab.path("s").display());
    conda.ok(&[
        "run", "-n", "0..1", "--agent", "gold", "--agent", "noop", "--agent", &agent, "--env", "conda", "--name", "r",
    ]);
    for record in conda.lab.records("r") {
        assert_eq!(record["pass"], record["agent"] == "gold", "{record:#}");
    }
    let prefix = only(&conda.homes()[0], "conda");
    let trajectory = conda.lab.read("runs/r/trajectories/scripted/tiny_0.0.jsonl");
    let expected = format!(
        "colour=blue demo=yes share={prefix}/share/demo in={prefix} python={prefix}/bin/python",
        prefix = prefix.display()
    );
    assert!(trajectory.contains(&expected), "{expected}\n{trajectory}");
    let run: Value = serde_json::from_str(&conda.lab.read("runs/r/run.json")).unwrap();
    assert!(run.to_string().contains("\"conda\""), "{run:#}");
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn a_bundled_paper_gives_its_gold_in_a_conda_env_with_packages_of_pip() {
    let channels = channels();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let conda = Conda::of(channels, YML);
    for folder in ["papers/kmeanspp", "repos/kmeanspp", "envs/numpy-sklearn"] {
        copy(&root.join(folder), &conda.lab.path(folder));
    }
    let yml = conda.lab.read("envs/numpy-sklearn/environment.yml");
    assert!(yml.contains("- conda-forge"));
    conda.ok(&["env", "lock", "--env", "conda", "numpy-sklearn"]);
    let ran = conda.ok(&[
        "run", "-p", "kmeanspp", "-n", "1", "--limit", "1", "--agent", "gold", "--agent", "noop", "--env", "conda",
        "--name", "r",
    ]);
    let records = conda.lab.records("r");
    assert_eq!(records.len(), 2);
    for record in records {
        assert_eq!(record["pass"], record["agent"] == "gold", "{record:#}\n{}", ran.stderr);
    }
    let prefix = only(&conda.homes()[0], "conda");
    let from = python(&prefix, "import numpy; print(numpy.__version__, numpy.__file__)");
    assert!(yml.contains(&format!("numpy=={}", from.split(' ').next().unwrap())), "{from}");
    assert!(from.contains(&prefix.display().to_string()), "{from}");
}

/// Reads the paths and contents of all files below a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(contents(&entry.path()));
        } else if kind.is_symlink() {
            found.insert(entry.path(), fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes());
        } else {
            found.insert(entry.path(), fs::read(entry.path()).unwrap());
        }
    }
    found
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn two_builds_of_a_lock_are_identical_and_contain_neither_channel_address_nor_password() {
    let channels = channels();
    let server = Server::of(channels);
    let odd = "cost $5 `id` $HOME \"\\";
    let yml = YML.replace("  - demo-activate\n", "  - demo-activate\n  - pip\n  - pip:\n    - six==1.17.0\n");
    let mut conda =
        Conda::new(&format!("{yml}  ODD: '{odd}'\n"), &server.url().replace("http://", "http://me:secret-word@"));
    conda.lock();
    let prefix = conda.build();
    let complete = fs::read_to_string(conda.homes()[0].join("complete.json")).unwrap();
    let complete: Value = serde_json::from_str(&complete).unwrap();
    assert_eq!(complete["variables"]["ODD"], odd, "no shell has read it");
    let first = contents(&prefix);
    for (path, content) in &first {
        let text = String::from_utf8_lossy(content);
        assert!(!text.contains("secret-word"), "{}", path.display());
    }
    let lock = conda.lab.read("envs/tiny/conda.lock");
    assert!(!lock.contains("secret-word"), "{lock}");
    // Build the env from nothing again, at the same place, from the same channel under another address. All files must
    // be the same as before.
    conda.ok(&["env", "prune", "tiny"]);
    conda.ok(&["env", "prune", "--downloads"]);
    conda.alias = file(channels);
    assert_eq!(conda.build(), prefix);
    let second = contents(&prefix);
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    let differ: Vec<_> =
        first.iter().filter(|(path, content)| second[*path] != **content).map(|(path, _)| path).collect();
    assert!(differ.is_empty(), "{differ:?}");
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn a_lock_of_a_changed_environment_yml_is_refused_with_a_remedy() {
    let channels = channels();
    let conda = Conda::of(channels, YML);
    let missing = conda.fails(3, &["env", "build", "--env", "conda", "tiny"]);
    assert!(missing.contains("autoexperiment env lock --env conda tiny"), "{missing}");
    conda.lock();
    conda.lab.edit("envs/tiny/environment.yml", "demo-library=1", "demo-library=2");
    let said = conda.fails(3, &["env", "build", "--env", "conda", "tiny"]);
    insta::assert_snapshot!(said, @r"
    error: [lab]/envs/tiny/conda.lock: `[lab]/envs/tiny/environment.yml` was changed after it was locked
      hint: type `autoexperiment env lock --env conda tiny`
    ");
    conda.fails(3, &["env", "lock", "--check", "--env", "conda", "tiny"]);
    conda.lock();
    assert!(conda.lab.read("envs/tiny/conda.lock").contains("demo-library-2.0"));
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn unsolvable_environments_are_explained() {
    let channels = channels();
    let conda = Conda::of(channels, &YML.replace("demo-library=1\n  - demo-activate", "demo-left\n  - demo-right"));
    let said = conda.fails(3, &["env", "lock", "--env", "conda", "tiny"]);
    insta::assert_snapshot!(&said[said.find("error:").unwrap()..], @r"
    error: [lab]/envs/tiny/environment.yml: no packages satisfy the requirements:
        The following packages are incompatible
        ├─ demo-right * can be installed with any of the following options:
        │  └─ demo-right 1.0 would require
        │     └─ demo-library >=2, which can be installed with any of the following options:
        │        └─ demo-library 2.0
        └─ demo-left * cannot be installed because there are no viable options:
           └─ demo-left 1.0 would require
              └─ demo-library <2, which cannot be installed because there are no viable options:
                 ├─ demo-library 1.1, which conflicts with the versions reported above.
                 └─ demo-library 1.0, which conflicts with the versions reported above.
      hint: change the versions, or add a channel that has them
    ");
    conda.lab.edit("envs/tiny/environment.yml", "demo-left\n  - demo-right", "demo-nowhere");
    let said = conda.fails(3, &["env", "lock", "--env", "conda", "tiny"]);
    assert!(said.contains("demo-nowhere"), "{said}");
    conda.lab.edit("envs/tiny/environment.yml", "demo-nowhere", "demo-native");
    let said = conda.fails(3, &["env", "lock", "--env", "conda", "tiny"]);
    assert!(said.contains("__glibc"), "{said}");
    assert!(!conda.lab.path("envs/tiny/conda.lock").exists());
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn channels_come_from_condas_configuration_and_by_default_the_first_channel_with_a_package_provides_it() {
    let channels = channels();
    let yml =
        YML.replace("  - conda-forge\n", "  - other\n  - conda-forge\n").replace("demo-library=1", "demo-library");
    let mut conda = Conda::of(channels, &yml);
    conda.alias.clear();
    conda.lab.write("rc", &format!("channel_alias: {}\nssl_verify: false\n", file(channels)));
    let lock = |conda: &Conda| {
        let mut command = conda.command(&["env", "lock", "--env", "conda", "tiny"]);
        let ran: Ran = command.env("CONDARC", conda.lab.path("rc")).output().unwrap().into();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        (conda.lab.read("envs/tiny/conda.lock"), ran.stderr)
    };
    let (locked, said) = lock(&conda);
    assert!(locked.contains("demo-library-3.0"), "{locked}");
    assert!(said.contains("ssl_verify"), "{said}");
    // Only the first channel that has a package may provide it, even if its version is older.
    conda.lab.edit("envs/tiny/environment.yml", "  - other\n  - conda-forge\n", "  - conda-forge\n  - other\n");
    assert!(lock(&conda).0.contains("demo-library-2.0"));
    conda.lab.write("rc", &format!("channel_alias: {}\nchannel_priority: disabled\n", file(channels)));
    assert!(lock(&conda).0.contains("demo-library-3.0"));
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn a_mirror_that_is_down_is_passed_over() {
    let channels = channels();
    let server = Server::of(channels);
    let mut conda = Conda::of(channels, &YML.replace("  - demo-library=1\n", ""));
    conda.alias.clear();
    let mirrors = format!("[http://127.0.0.1:9/conda-forge, {}/conda-forge]", server.url());
    conda
        .lab
        .write("rc", &format!("channel_alias: http://127.0.0.1:9\nmirrored_channels:\n  conda-forge: {mirrors}\n"));
    for verb in ["lock", "build"] {
        let mut command = conda.command(&["env", verb, "--env", "conda", "tiny"]);
        let ran: Ran = command.env("CONDARC", conda.lab.path("rc")).output().unwrap().into();
        assert_eq!(ran.code, 0, "{verb}: {}", ran.stderr);
    }
    assert_eq!(server.sent("demo-activate"), 1);
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn a_build_installs_the_locked_packages_after_the_channel_has_changed() {
    let channels = channels();
    let mut conda = Conda::of(channels, &YML.replace("demo-library=1", "demo-library=1.0"));
    let mirror = changed(channels, &conda);
    conda.alias = file(&mirror);
    conda.lock();
    let index = mirror.join("conda-forge/noarch/repodata.json");
    let text = fs::read_to_string(&index).unwrap();
    // Remove a version of the package from the channel's index, but keep the package's file.
    let mut parsed: Value = serde_json::from_str(&text).unwrap();
    assert!(parsed["packages"].as_object_mut().unwrap().remove("demo-library-1.0-py_0.tar.bz2").is_some());
    fs::write(&index, parsed.to_string()).unwrap();
    assert_eq!(python(&conda.build(), "import demo_library; print(demo_library.VERSION)"), "1.0");
    // Now remove the package's file as well.
    conda.ok(&["env", "prune", "tiny"]);
    fs::remove_dir_all(conda.cache.join("conda")).unwrap();
    fs::remove_file(mirror.join("conda-forge/noarch/demo-library-1.0-py_0.tar.bz2")).unwrap();
    let said = conda.fails(5, &["env", "build", "--env", "conda", "tiny"]);
    assert!(said.contains("demo-library-1.0-py_0"), "{said}");
    assert!(conda.has_no_env());
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn a_corrupt_package_is_named_in_the_error_and_is_not_kept_in_the_cache() {
    let channels = channels();
    let mut conda = Conda::of(channels, YML);
    conda.lock();
    let mirror = changed(channels, &conda);
    // Break a package of each format, one on a server and one in a folder, and install it into an empty cache.
    for (package, served) in [("demo-activate-1.0-0.tar.bz2", true), ("demo-library-1.1-py_0.conda", false)] {
        let broken = mirror.join("conda-forge/noarch").join(package);
        corrupt(&broken);
        let server = Server::of(&mirror);
        conda.alias = if served { server.url() } else { file(&mirror) };
        conda.cache = conda.lab.path(package);
        let said = conda.fails(3, &["env", "build", "--env", "conda", "tiny"]);
        let stem = package.trim_end_matches(".tar.bz2").trim_end_matches(".conda");
        assert!(said.contains(stem) && said.contains("hash"), "{said}");
        assert!(conda.has_no_env(), "{said}");
        // After the package is repaired, the env can be built, because the broken package was not cached.
        fs::remove_file(&broken).unwrap();
        fs::copy(channels.join("conda-forge/noarch").join(package), &broken).unwrap();
        assert_eq!(python(&conda.build(), "import demo_library; print(demo_library.VERSION)"), "1.1");
    }
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn env_commands_give_up_on_a_silent_channel_and_build_a_venv_unless_conda_was_requested() {
    let channels = channels();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let plain = YML.replace("  - demo-library=1\n  - demo-activate\n", "");
    let mut conda = Conda::of(channels, &plain);
    conda.lock();
    conda.ok(&["env", "lock", "--env", "venv", "tiny"]);
    conda.alias = url;
    let patience = |arguments: &[&str]| -> (Ran, Duration) {
        let begun = Instant::now();
        let ran = conda.command(arguments).env("CONDA_REMOTE_READ_TIMEOUT_SECS", "1").output().unwrap().into();
        (ran, begun.elapsed())
    };
    for verb in ["lock", "build"] {
        let (ran, took) = patience(&["env", verb, "--env", "conda", "tiny"]);
        assert_eq!(ran.code, 5, "{}", ran.stderr);
        assert!(ran.stderr.contains("does not answer"), "{}", ran.stderr);
        assert!(took < Duration::from_secs(30), "{took:?}");
    }
    let (ran, took) = patience(&["env", "build", "tiny"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("results may differ in the last digits"), "{}", ran.stderr);
    assert!(ran.stdout.trim().ends_with("/venv"), "{}", ran.stdout);
    assert!(took < Duration::from_mins(1), "{took:?}");
    // When the channel answers again, the conda env is used instead of the venv, without the notice that results may
    // differ.
    conda.alias = file(channels);
    let ran = conda.ok(&["env", "build", "tiny"]);
    assert!(
        ran.stdout.trim().ends_with("/conda") && !ran.stderr.contains("last digits"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    // An env that is already built needs no channel.
    conda.alias = "http://127.0.0.1:9".to_owned();
    assert!(conda.ok(&["env", "build", "tiny"]).stdout.trim().ends_with("/conda"));
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn without_a_network_only_the_cache_is_used() {
    let channels = channels();
    let server = Server::of(channels);
    let conda = Conda::new(YML, &server.url());
    conda.lock();
    let said = conda.fails(5, &["env", "build", "--env", "conda", "--offline", "tiny"]);
    assert!(said.contains("offline") && said.contains("demo-library"), "{said}");
    assert!(conda.has_no_env());
    let prefix = conda.build();
    let sent = server.sent("");
    conda.ok(&["env", "build", "--env", "conda", "--offline", "tiny"]);
    conda.ok(&["env", "prune", "tiny"]);
    conda.ok(&["env", "build", "--env", "conda", "--offline", "tiny"]);
    assert!(prefix.join("bin/python").exists());
    assert_eq!(server.sent(""), sent);
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn two_builders_at_once_share_one_build() {
    let channels = channels();
    let server = Server::of(channels);
    let conda = Conda::new(YML, &server.url());
    conda.lock();
    let begin = || {
        let mut command = conda.command(&["env", "build", "--env", "conda", "tiny"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both = [begin(), begin()];
    let prefixes: Vec<String> = both
        .map(|child| {
            let ran: Ran = child.wait_with_output().unwrap().into();
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            ran.stdout
        })
        .to_vec();
    assert_eq!(prefixes[0], prefixes[1]);
    assert_eq!(server.sent("demo-library"), 1);
    assert_eq!(conda.homes().len(), 1);
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf"]
fn a_killed_build_is_restarted() {
    let channels = channels();
    let mut conda = Conda::of(channels, YML);
    conda.lock();
    let kill = |conda: &Conda, until: &dyn Fn()| {
        let mut command = conda.command(&["env", "build", "--env", "conda", "tiny"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until();
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it was finished before it was killed");
    };
    // Kill the build in the middle of a download.
    let server = Server::holding(channels, Some("/python-3"));
    conda.alias = server.url();
    kill(&conda, &|| server.wait_for("/python-3"));
    assert!(conda.has_no_env());
    // Kill the build while packages are put into the prefix.
    conda.alias = file(channels);
    let linking = || {
        let begun = Instant::now();
        while !conda.homes().iter().any(|home| home.join("conda/bin").exists() || home.join("conda/lib").exists()) {
            assert!(begun.elapsed() < Duration::from_mins(1));
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    kill(&conda, &linking);
    assert!(conda.has_no_env());
    let listed = conda.ok(&["env", "list"]).stdout;
    assert!(listed.contains("(unfinished)"), "{listed}");
    let prefix = conda.build();
    let whole = "import demo_library, json, ssl, sqlite3, asyncio; print(demo_library.VERSION)";
    assert_eq!(python(&prefix, whole), "1.1");
}

#[test]
#[ignore = "makes a conda channel out of this machine's Python, with patchelf, and needs root to mount a small disk"]
fn a_full_disk_is_reported_and_the_build_succeeds_after_the_disk_is_enlarged() {
    let channels = channels();
    let conda = Conda::of(channels, YML);
    conda.lock();
    // A disk of 30 MiB is too small for the packages. Then the script enlarges the disk. The disk is removed with the
    // shell's mount namespace.
    let script = "mkdir cache && mount -t tmpfs -o size=30m tmpfs cache || exit 99
        \"$0\" env build --env conda tiny; code=$?
        test -z \"$(ls cache/envs/*/complete.json 2>/dev/null)\" || exit 98
        mount -o remount,size=2g cache && \"$0\" env build --env conda tiny || exit 97
        exit $code";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, crate::support::PROGRAM]).current_dir(conda.lab.path(""));
    for (name, value) in conda.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, 5, "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("the disk is full"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--cache DIR"), "{}", ran.stderr);
}
