//! Reads the repo's Python files in their current state from the agent's sandbox.

use std::path::{Path, PathBuf};

use super::Context;
use super::retrieval::Code;
use crate::sandbox::{EntryKind, Fault};

/// Maximum number of files that are read.
const MOST_FILES: usize = 4000;
/// Maximum bytes of a file. Larger files are skipped.
const LARGEST: u64 = 1 << 20;

/// Reads every Python file. Skips hidden folders, caches and unreadable files.
///
/// # Errors
/// [`Fault::Lost`] if the sandbox died, [`Fault::Refused`] if the time is used up.
pub(super) async fn python_files(context: &mut Context<'_>) -> Result<Code, Fault> {
    let mut folders = vec![PathBuf::new()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder.as_path() };
        let entries = match context.list(place).await {
            Ok(entries) => entries,
            Err(Fault::Refused(_)) if !context.budget.time_left().is_zero() => continue,
            Err(fault) => return Err(fault),
        };
        for entry in entries {
            let path = folder.join(&entry.name);
            let hidden = entry.name.as_encoded_bytes().starts_with(b".") || entry.name == "__pycache__";
            match entry.kind {
                EntryKind::Folder if !hidden => folders.push(path),
                EntryKind::File
                    if path.extension().is_some_and(|it| it == "py")
                        && entry.size <= LARGEST
                        && files.len() < MOST_FILES =>
                {
                    match context.read(&path, LARGEST).await {
                        Ok(bytes) => files.push((path, bytes)),
                        Err(Fault::Refused(_)) if !context.budget.time_left().is_zero() => {}
                        Err(fault) => return Err(fault),
                    }
                }
                _ => {}
            }
        }
    }
    Ok(Code::new(files))
}
