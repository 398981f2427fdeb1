//! The readers of other projects, installed from PyPI once per checkout and run on exported files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::Value;

const SCRIPTS: &str = "tests/support/readers";

/// Installed packages that read exported files.
pub struct Readers {
    folder: PathBuf,
}

/// Packages to install.
struct Packages {
    /// Name of their folder.
    name: &'static str,
    /// Minimum version of Python.
    least: (u32, u32),
    /// Requirements file of the packages that are installed with their dependencies.
    requirements: &'static str,
    /// Packages that are installed without their dependencies, most of which are not needed to read files.
    bare: &'static [&'static str],
}

const READERS: Packages = Packages {
    name: "readers",
    least: (3, 10),
    requirements: "requirements.txt",
    bare: &["swebench==5.0.2", "sweagent==0.0.1"],
};

/// The oldest supported versions. Earlier versions of Inspect cannot read logs whose calls refer to a pool of messages.
const OLDEST: Packages = Packages {
    name: "oldest-readers",
    least: (3, 10),
    requirements: "oldest-requirements.txt",
    bare: &["swebench==3.0.17"],
};

const HARBOR: Packages =
    Packages { name: "harbor", least: (3, 12), requirements: "harbor-requirements.txt", bare: &["harbor==0.25.0"] };

impl Readers {
    /// Installs Inspect AI, pandas, DuckDB, datasets, SWE-bench and PyPI's version of SWE-agent.
    pub fn general() -> Self {
        Self::install(&READERS)
    }

    /// Installs the oldest supported versions of the same packages, without SWE-agent.
    pub fn oldest() -> Self {
        Self::install(&OLDEST)
    }

    /// Installs Harbor: its data models, and its program with the agents that need no model.
    pub fn harbor() -> Self {
        Self::install(&HARBOR)
    }

    fn install(packages: &Packages) -> Self {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Packages { name, least, requirements, bare } = packages;
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (python, complete) = (folder.join("bin/python"), folder.join("complete"));
        let requirements = Path::new(SCRIPTS).join(requirements);
        let wanted = fs::read_to_string(&requirements).unwrap() + &bare.join("\n");
        if fs::read_to_string(&complete).ok().as_ref() != Some(&wanted) {
            let interpreter =
                interpreter(*least).unwrap_or_else(|| panic!("no Python {}.{} in the usual places", least.0, least.1));
            let _ = fs::remove_dir_all(&folder);
            let pip =
                |arguments: &[&str]| quiet(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(arguments));
            let done = quiet(Command::new(interpreter).args(["-m", "venv"]).arg(&folder))
                && pip(&["-r", requirements.to_str().unwrap()])
                && (bare.is_empty() || pip(&[&["--no-deps"], *bare].concat()));
            assert!(done, "the readers cannot be installed from PyPI");
            fs::write(&complete, wanted).unwrap();
        }
        Self { folder }
    }

    /// Returns a command that runs one of the packages' programs.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join("bin").join(name));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a script, which must succeed, and returns the JSON that it prints.
    pub fn read(&self, script: &str, arguments: &[&Path]) -> Value {
        let ran = self.program("python").arg(Path::new(SCRIPTS).join(script)).args(arguments).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{script}\n{stdout}\n{stderr}");
        serde_json::from_str(stdout.lines().last().unwrap_or_default()).unwrap()
    }
}

/// Returns an interpreter that is new enough: one on the path, or one of the versions installed by pyenv. Those are
/// searched directly, because the pyenv programs on the path all lead to the same version.
fn interpreter(least: (u32, u32)) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let pyenv = std::env::var_os("PYENV_ROOT").map_or_else(|| home.join(".pyenv"), PathBuf::from);
    let installed = fs::read_dir(pyenv.join("versions")).into_iter().flatten().flatten();
    let mut candidates: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin/python3")).collect();
    candidates.sort();
    let on_path = ["python3", "python3.12", "python3.13", "python3.14"].map(PathBuf::from);
    on_path.into_iter().chain(candidates).find(|python| version(python) >= Some(least))
}

fn version(python: &Path) -> Option<(u32, u32)> {
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
