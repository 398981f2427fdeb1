//! What all prefixes have in common: protection from writes, and the variables that results must not depend on.

use std::collections::BTreeMap;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};

/// Where the system's own programs are.
pub(super) const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Takes away all write permissions below `prefix`.
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

/// PATH, and what keeps results from depending on the number of cores, the locale, the time zone or Python's hash seed.
pub(super) fn variables(prefix: &Path) -> BTreeMap<String, String> {
    let path = format!("{}:{SYSTEM_PATH}", prefix.join("bin").display());
    [
        ("PATH", path.as_str()),
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
