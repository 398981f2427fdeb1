//! Code for all kinds of envs: write protection, and variables that make results reproducible.

use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// The system's folders of programs, as a value for PATH.
pub(super) const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Removes all write permissions in the folder `prefix`.
pub(super) fn protect(prefix: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(prefix).contents_first(true) {
        let entry =
            entry.map_err(|error| Error::machine(format!("failed to read `{}`", prefix.display())).because(error))?;
        if entry.file_type().is_symlink() {
            continue;
        }
        let mode = entry.metadata().map_or(0o555, |metadata| metadata.permissions().mode());
        set_permissions(entry.path(), Permissions::from_mode(mode & 0o7555))
            .map_err(|error| Error::io("protect", entry.path(), error))?;
    }
    Ok(())
}

/// Returns PATH and the variables of [`reproducible`].
pub(super) fn variables(prefix: &Path) -> BTreeMap<String, String> {
    let mut variables = reproducible();
    variables.insert("PATH".to_owned(), format!("{}:{SYSTEM_PATH}", prefix.join("bin").display()));
    variables
}

/// Returns variables that keep results independent of the number of cores, the locale, the time zone and Python's hash
/// seed.
pub(super) fn reproducible() -> BTreeMap<String, String> {
    [
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("PYTHONHASHSEED", "0"),
        ("PYTHONNOUSERSITE", "1"),
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("TZ", "UTC"),
        ("OMP_NUM_THREADS", "1"),
        ("OPENBLAS_NUM_THREADS", "1"),
        ("MKL_NUM_THREADS", "1"),
        ("MPLBACKEND", "Agg"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}
