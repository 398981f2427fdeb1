//! The readers of other projects, installed from PyPI once a checkout and run on what was exported.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

const SCRIPTS: &str = "tests/support/readers";

/// Packages that read what was exported.
pub struct Readers {
    python: PathBuf,
}

impl Readers {
    /// Inspect AI, pandas, DuckDB and datasets. `None`, said plainly, where they cannot be installed.
    pub fn tables_and_logs() -> Option<Self> {
        Self::install("readers", &["python3"], "requirements.txt", &[])
    }

    /// The models of Harbor, which needs Python 3.12; without what it needs to run agents.
    pub fn harbor() -> Option<Self> {
        let pythons = ["python3.12", "python3.13", "python3.14", "python3"];
        Self::install("harbor", &pythons, "harbor-requirements.txt", &["harbor==0.25.0"])
    }

    fn install(name: &str, pythons: &[&str], requirements: &str, bare: &[&str]) -> Option<Self> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (python, complete) = (folder.join("bin/python"), folder.join("complete"));
        let requirements = Path::new(SCRIPTS).join(requirements);
        let wanted = fs::read_to_string(&requirements).unwrap() + &bare.join("\n");
        if fs::read_to_string(&complete).ok().as_ref() != Some(&wanted) {
            let least = if bare.is_empty() { (3, 10) } else { (3, 12) };
            let Some(interpreter) = pythons.iter().find(|python| version(python) >= Some(least)) else {
                println!("skipped: no Python {}.{} on the path", least.0, least.1);
                return None;
            };
            let _ = fs::remove_dir_all(&folder);
            let pip =
                |arguments: &[&str]| quiet(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(arguments));
            let done = quiet(Command::new(interpreter).args(["-m", "venv"]).arg(&folder))
                && pip(&["-r", requirements.to_str().unwrap()])
                && (bare.is_empty() || pip(&[&["--no-deps"], bare].concat()));
            if !done {
                println!("skipped: the readers cannot be installed from PyPI");
                return None;
            }
            fs::write(&complete, wanted).unwrap();
        }
        Some(Self { python })
    }

    /// What a script says of what it read: it must succeed.
    pub fn read(&self, script: &str, arguments: &[&Path]) -> Value {
        let ran = Command::new(&self.python)
            .arg(Path::new(SCRIPTS).join(script))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{script}\n{stdout}\n{stderr}");
        serde_json::from_str(stdout.lines().last().unwrap_or_default()).unwrap()
    }
}

fn version(python: &str) -> Option<(u32, u32)> {
    let print = "import sys; print(*sys.version_info[:2])";
    let ran = Command::new(python).args(["-c", print]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(ran.stdout).ok()?;
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn quiet(command: &mut Command) -> bool {
    let ran = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}
