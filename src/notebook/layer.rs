//! The env layer of an attempt: a venv on top of the base env, into which `pip install` installs from the wheelhouse.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::env::Env;
use crate::kernel::Host;
use crate::sandbox::{Command, Fault};
use crate::score::last_json_line;

/// Folder of the env layer (the attempt's venv) in the sandbox, outside of the workspace.
const LAYER: &str = "/tmp/notebook-env";
/// Time limit for each of [`make`], [`capture`] and [`restore`].
const WALL: Duration = Duration::from_mins(10);
/// Maximum bytes of the output of the script that captures a layer. The output includes the texts of changed files.
const MOST: usize = 8 << 20;

const SOURCE: &str = include_str!("layer.py");

/// Returns the env of an attempt's sandbox. This env consists of the env layer (the attempt's venv) on top of the base
/// env. pip installs packages from the wheelhouse without a network, and linear algebra uses one thread.
pub fn over(base: &Env, wheelhouse: Option<&Path>, digest: &str) -> Env {
    let mut env = base.clone();
    let path = env.variables.get("PATH").cloned().unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let mut set = |name: &str, value: String| env.variables.insert(name.to_owned(), value);
    set("PATH", format!("{LAYER}/bin:{path}"));
    set("VIRTUAL_ENV", LAYER.to_owned());
    for (name, value) in [
        ("PIP_NO_INDEX", "1"),
        ("PIP_NO_CACHE_DIR", "1"),
        ("PIP_NO_COMPILE", "1"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_ROOT_USER_ACTION", "ignore"),
        ("PIP_NO_INPUT", "1"),
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
    ] {
        set(name, value.to_owned());
    }
    if let Some(folder) = wheelhouse {
        // pip splits `PIP_FIND_LINKS` at spaces. So give the folder as a URL, in which spaces are escaped.
        let address = reqwest::Url::from_file_path(folder).map_or_else(|()| folder.display().to_string(), String::from);
        set("PIP_FIND_LINKS", address);
        env.read_only.push(folder.to_owned());
    }
    digest.clone_into(&mut env.digest);
    env
}

/// Creates an empty layer.
///
/// # Errors
/// [`Fault::Refused`] with Python's error; the errors of the sandbox.
pub async fn make(host: &mut dyn Host) -> Result<(), Fault> {
    run(json!({ "what": "make", "layer": LAYER }), host).await.map(drop)
}

/// Returns what an attempt has installed and changed in its env layer (venv): `{"packages": {name: version}, "patches":
/// {path: text}, "left": [...]}`. `patches` contains the texts of changed Python files; `left` lists changed files that
/// are not in `patches`, and unreadable files.
///
/// # Errors
/// Returns the errors of [`make`].
pub async fn capture(host: &mut dyn Host) -> Result<Map<String, Value>, Fault> {
    run(json!({ "what": "capture", "layer": LAYER }), host).await
}

/// Recreates an env layer (venv) from what [`capture`] returned. Returns a map whose entry `left` lists the packages
/// and files that could not be restored.
///
/// # Errors
/// Returns the errors of [`make`].
pub async fn restore(captured: &Map<String, Value>, host: &mut dyn Host) -> Result<Map<String, Value>, Fault> {
    let part = |name: &str| captured.get(name).cloned().unwrap_or_else(|| json!({}));
    let request =
        json!({ "what": "restore", "layer": LAYER, "packages": part("packages"), "patches": part("patches") });
    run(request, host).await
}

/// Returns the Python program that carries out a request.
fn script(request: &Value) -> String {
    // Write the JSON as a Python string literal: JSON's escapes are also valid in Python.
    let text = serde_json::to_string(&request.to_string()).unwrap_or_default();
    format!("import json\nrequest = json.loads({text})\n{SOURCE}")
}

async fn run(request: Value, host: &mut dyn Host) -> Result<Map<String, Value>, Fault> {
    let argv = ["python", "-I", "-"].map(Into::into).to_vec();
    let stdin = script(&request).into_bytes();
    let exec = host.exec(&Command { argv, stdin, ..Command::default() }, WALL, MOST).await?;
    match last_json_line(&exec.stdout) {
        Some(Value::Object(map)) if exec.success() => Ok(map),
        _ => {
            let said = String::from_utf8_lossy(&exec.stderr);
            Err(Fault::Refused(format!(
                "failed to create, save or restore the attempt's packages ({:?}): {}",
                exec.exit,
                said.trim_end()
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_plain_names_and_versions_of_packages_reach_pip_and_pip_sees_no_file_of_the_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        // `python -m pip` would run this file if it ran in the workspace.
        std::fs::write(workspace.join("pip.py"), "open('seen', 'a').close()\n").unwrap();
        let restored = |packages: Value| {
            let folder = tempfile::tempdir().unwrap();
            let layer = folder.path().join("layer");
            let request = json!({ "what": "restore", "layer": layer, "packages": packages, "patches": {} });
            let program = folder.path().join("program.py");
            std::fs::write(&program, script(&request)).unwrap();
            let mut python = Command::new("python3");
            python.arg("-I").arg(&program).current_dir(&workspace).env("PIP_NO_INDEX", "1");
            let ran = python.output().unwrap();
            assert!(!workspace.join("seen").exists(), "{}", String::from_utf8_lossy(&ran.stderr));
            last_json_line(&ran.stdout).unwrap_or_default()
        };
        let odd = [("-rreq.txt", "1.0"), ("./tool", "1.0"), ("tool", "1.0 --pre"), ("tool\n", "1.0"), ("", "1.0")];
        let packages: Map<String, Value> =
            odd.iter().map(|&(name, version)| (name.to_owned(), Value::from(version))).collect();
        let mut expected = odd.map(|(name, version)| format!("{name}=={version}"));
        expected.sort();
        assert_eq!(restored(packages.into()), json!({ "left": expected }));
        let archive = restored(json!({ "no-such-package": "1.0.zip" }));
        assert_eq!(archive, json!({ "left": ["no-such-package==1.0.zip"] }));
    }
}
