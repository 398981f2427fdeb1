//! All repos of a suite for `ml-agent`: their documentation and their files, as text.

use std::collections::BTreeMap;
use std::path::Path;

use super::loaded::{FOLDER, ids};
use super::manifest::CommandSet;
use crate::agent::ShownRepo;
use crate::error::Result;
use crate::workspace::is_left_out;

/// Maximum bytes of a file that is shown. Larger files are assumed to be data and are left out.
const MOST: u64 = 64 << 10;

/// Returns the suite's repos that have instructions, sorted by id. Repos with an invalid manifest are left out; `check`
/// reports them.
///
/// # Errors
/// Kind `Machine` if the folder cannot be read.
pub fn shelf(suite: &Path) -> Result<Vec<ShownRepo>> {
    let folder = suite.join(FOLDER);
    let read = |id: String| {
        let set = CommandSet::read(&folder.join(format!("{id}.toml"))).ok()?;
        let mut files = BTreeMap::new();
        if let Some(repo) = &set.repo {
            gather(&suite.join("repos").join(repo), &mut files);
        }
        gather(&folder.join(&id), &mut files);
        let docs: Vec<&str> = set.readme.iter().filter_map(|name| files.get(name)).map(String::as_str).collect();
        Some(ShownRepo { docs: docs.join("\n\n"), id, files: files.into_iter().collect() })
    };
    Ok(ids(suite)?.into_iter().filter_map(read).collect())
}

/// Collects the text files below a folder.
fn gather(folder: &Path, files: &mut BTreeMap<String, String>) {
    let walk = walkdir::WalkDir::new(folder).min_depth(1);
    let kept = walk.into_iter().filter_entry(|entry| !entry.file_name().to_str().is_some_and(is_left_out));
    for entry in kept.filter_map(Result::ok) {
        let small = entry.file_type().is_file() && entry.metadata().is_ok_and(|facts| facts.len() <= MOST);
        let path = entry.path().strip_prefix(folder).ok().and_then(Path::to_str);
        if let (true, Some(path)) = (small, path)
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            files.insert(path.to_owned(), text);
        }
    }
}
