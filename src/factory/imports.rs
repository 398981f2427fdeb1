//! Imports a package's modules in a sandbox, to find those that cannot be imported.

use std::path::PathBuf;

use serde::Serialize;

/// The program that imports modules: its text, and the names of its file and of the list of modules.
const CODE: &str = include_str!("imports.py");
const PROGRAM: &str = ".autoexperiment-imports.py";
const REQUEST: &str = ".autoexperiment-imports-request.json";

/// File into which the command of [`importing`] writes a JSON object: the modules that cannot be imported, each with the
/// reason.
pub(super) const OUTPUT: &str = ".autoexperiment-imports.json";

/// Time limit in seconds of importing all modules.
pub(super) const IMPORT_LIMIT: f64 = 300.0;

/// Files to add to the repo, and the shell command to run there.
pub(super) struct ImportCommand {
    pub(super) files: [(PathBuf, Vec<u8>); 2],
    pub(super) line: String,
}

/// Returns the command that imports these modules, given by a list of their names. `exports` is shell code that lets
/// Python find them.
pub(super) fn importing(modules: &impl Serialize, exports: &str) -> ImportCommand {
    let request = serde_json::to_vec(modules).unwrap_or_default();
    ImportCommand {
        files: [(PathBuf::from(PROGRAM), CODE.into()), (PathBuf::from(REQUEST), request)],
        line: format!("{exports}\npython -B {PROGRAM} {REQUEST} {OUTPUT} >/dev/null 2>&1 </dev/null"),
    }
}
