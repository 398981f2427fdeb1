//! A small real model behind llama.cpp's server, for tests that are ignored by default.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A running server, stopped when dropped. Only one runs at a time; other tests wait.
pub struct LocalModel {
    /// The value for `--base-url`.
    pub base_url: String,
    cache: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

/// Name of the server's model.
pub const NAME: &str = "qwen2.5-coder-0.5b";

impl LocalModel {
    /// Installs and starts the server. `AUTOEXPERIMENT_LOCAL_MODEL_CACHE` names the folder to install into, instead of
    /// one in the target folder.
    pub fn start() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = std::env::var_os("AUTOEXPERIMENT_LOCAL_MODEL_CACHE")
            .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("local-llm"), PathBuf::from);
        let output = script("up").arg(&cache).output().unwrap();
        assert!(output.status.success(), "the model did not start: {}", String::from_utf8_lossy(&output.stderr));
        Self { base_url: String::from_utf8(output.stdout).unwrap().trim().to_owned(), cache, _turn: turn }
    }
}

impl Drop for LocalModel {
    fn drop(&mut self) {
        let _ = script("down").arg(&self.cache).status();
    }
}

fn script(verb: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/local-llm.sh")).arg(verb);
    command
}
