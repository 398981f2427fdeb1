//! A real small model behind llama.cpp's server, for tests that set `AUTOEXPERIMENT_LOCAL_MODEL=1`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A running server. It stops when this is dropped; until then another test waits for its own.
pub struct LocalModel {
    /// What `--base-url` takes.
    pub base_url: String,
    cache: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

/// The server's model.
pub const NAME: &str = "qwen2.5-coder-0.5b";

impl LocalModel {
    /// Installs and starts the server, or prints that the test is skipped because nobody asked for it. `AUTOEXPERIMENT_LOCAL_MODEL_CACHE` names the
    /// folder to install into, the target folder's otherwise.
    pub fn start() -> Option<Self> {
        if std::env::var("AUTOEXPERIMENT_LOCAL_MODEL").as_deref() != Ok("1") {
            println!("skipped: AUTOEXPERIMENT_LOCAL_MODEL=1 is not set (it downloads 500 MB and runs a model)");
            return None;
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = std::env::var_os("AUTOEXPERIMENT_LOCAL_MODEL_CACHE")
            .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("local-llm"), PathBuf::from);
        let output = script("up").arg(&cache).output().unwrap();
        assert!(output.status.success(), "the model did not start: {}", String::from_utf8_lossy(&output.stderr));
        Some(Self { base_url: String::from_utf8(output.stdout).unwrap().trim().to_owned(), cache, _turn: turn })
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
