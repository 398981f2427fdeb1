//! Files that are left out of workspaces: by name, or because their paths are too long or too deep.

/// Maximum length of a path inside a repo, in bytes, and maximum depth of its folders; real repos stay far below.
pub const LONGEST_PATH: usize = 1024;
pub const DEEPEST: usize = 100;

/// Names for which [`is_left_out`] is true.
pub const LEFT_OUT_NAMES: [&str; 11] = [
    ".git",
    ".hg",
    ".svn",
    ".bzr",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".ipynb_checkpoints",
    ".DS_Store",
    "Thumbs.db",
];

/// Endings of names for which [`is_left_out`] is true.
pub const LEFT_OUT_ENDINGS: [&str; 6] = [".pyc", ".pyo", ".orig", ".rej", ".swp", "~"];

/// Whether a file or folder of this name is left out of snapshots and of the recorded changes of attempts: version
/// control (it contains the original code), caches and compiled Python, and editors' backups (old versions of the
/// sources). `*.egg-info` is kept, because programs read their own version and entry points from it.
pub fn is_left_out(name: &str) -> bool {
    LEFT_OUT_NAMES.contains(&name) || LEFT_OUT_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
