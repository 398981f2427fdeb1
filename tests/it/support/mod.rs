//! Helpers that end-to-end tests share: a copy of the tiny suite, and commands that run the program on it.

pub mod browser;
#[cfg(feature = "conda")]
pub mod channel;
pub mod engine;
pub mod episodes;
#[cfg(feature = "conda")]
pub mod http;
pub mod judge;
pub mod local_model;
pub mod model_server;
pub mod prepared;
pub mod readers;
pub mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Path of the program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_autoexperiment");

/// A temporary folder for one test, usually with a copy of the tiny suite and its recorded gold.
pub struct Lab {
    folder: tempfile::TempDir,
}

/// The result of a command of the program.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Lab {
    /// Makes a copy of the tiny suite that is ready to run.
    pub fn new() -> Self {
        Self::of("tiny", "tiny", &["tiny"])
    }

    /// Makes a copy of another tree, with its env and its papers ready to run.
    pub fn of(tree: &str, env: &str, papers: &[&str]) -> Self {
        let ready = prepared::suite(tree, env, papers);
        let lab = Self::bare();
        for part in ["papers", "repos", "envs"] {
            copy(&ready.join(part), &lab.path(part));
        }
        lab
    }

    /// Makes a lab whose folder is empty.
    pub fn bare() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Makes a lab with a copy of the tiny suite, in a new folder below this one.
    pub fn below(folder: &Path) -> Self {
        let ready = Self::new();
        let lab = Self { folder: tempfile::Builder::new().prefix("lab-").tempdir_in(folder).unwrap() };
        copy(&ready.path(""), &lab.path(""));
        lab
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Replaces a text in a file, which must contain it.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "`{from}` is not in {path}");
        self.write(path, &text.replace(from, to));
    }

    /// Returns a command of the program, to be run in this lab's folder. All labs share the cached envs, but scratch
    /// files are in the lab's folder, and no results are taken from the cache.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("AUTOEXPERIMENT_CACHE", prepared::cache())
            .env("AUTOEXPERIMENT_DATA", self.path("data"))
            .env("AUTOEXPERIMENT_FRESH", "1")
            .env("AUTOEXPERIMENT_SCRATCH", self.path("scratch"))
            .env_remove("OPENAI_API_KEY")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs a command that must succeed.
    pub fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs a command that must fail with this exit code, and returns its message.
    pub fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
        self.redact(&ran.stderr)
    }

    /// Reads the records of a run.
    pub fn records(&self, run: &str) -> Vec<serde_json::Value> {
        let text = self.read(&format!("runs/{run}/attempts.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Writes a scripted agent of these tool calls; returns its name for `--agent`.
    pub fn scripted(&self, name: &str, steps: &[serde_json::Value]) -> String {
        self.write(name, &json_lines(steps));
        format!("scripted:{}", self.path(name).display())
    }

    /// Returns the first observation of the scripted agent at a sample.
    pub fn first_observation(&self, run: &str, sample: &str) -> String {
        let trajectory = self.read(&format!("runs/{run}/trajectories/scripted/{sample}.0.jsonl"));
        let mut events = trajectory.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let found = events.find(|line| line["event"] == "observation").unwrap();
        found["content"].as_str().unwrap().to_owned()
    }

    /// Replaces this lab's path in a text by `[lab]`.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "[lab]")
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Formats JSON values, one per line.
pub fn json_lines(values: &[serde_json::Value]) -> String {
    values.iter().fold(String::new(), |text, value| text + &value.to_string() + "\n")
}

/// Copies a tree of files.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns the measures in these records that their family does not describe.
pub fn undescribed_measures(family: &str, records: &[serde_json::Value]) -> std::collections::BTreeSet<String> {
    let families = autoexperiment::run::family::Families::standard();
    let known: Vec<&str> = families.get(family).unwrap().measures().iter().map(|measure| measure.name).collect();
    let of = |record: &serde_json::Value| -> Vec<String> {
        let of_verdict = |verdict: &str| {
            let measures = record[verdict]["measures"].as_object().cloned().unwrap_or_default();
            measures.into_iter().map(|(name, _)| format!("{verdict}_{name}")).collect::<Vec<_>>()
        };
        [of_verdict("reported"), of_verdict("verified")].concat()
    };
    let found: std::collections::BTreeSet<String> = records.iter().flat_map(of).collect();
    assert!(found.len() > 3, "{found:?}");
    found.into_iter().filter(|name| !known.contains(&name.as_str())).collect()
}
