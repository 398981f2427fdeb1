//! A Python process that judges files: it reads frames of JSON and bytes, and replies with lines of JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

pub struct Judge {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Judge {
    /// Starts a script of `tests/support`.
    pub fn start(python3: &Path, script: &str, arguments: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(script);
        let mut process = Command::new(python3)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, answers }
    }

    /// Sends a frame, adding the length of the bytes that follow it.
    pub fn send(&mut self, mut frame: Value, bytes: &[u8]) {
        frame["length"] = bytes.len().into();
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(format!("{frame}\n").as_bytes()).unwrap();
        stdin.write_all(bytes).unwrap();
    }

    /// Waits for the next line of JSON.
    pub fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("an answer")
    }

    /// Ends the process, which must exit successfully.
    pub fn end(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
    }
}

/// Returns the folder of Python's own modules.
pub fn standard_library() -> PathBuf {
    let place = "import os; print(os.path.dirname(os.__file__), end='')";
    python("python3".as_ref(), place).expect("python knows its library").into()
}

/// Returns what a Python program prints; `None` if it fails.
pub fn python(python3: &Path, program: &str) -> Option<String> {
    let output = Command::new(python3).args(["-c", program]).output().expect("python3 starts");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
