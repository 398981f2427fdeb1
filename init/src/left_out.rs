//! What is left out of workspaces: names, and paths that are too long or too deep.

/// Longest path inside a repo, in bytes, and its deepest nesting: real repos stay far below.
pub const LONGEST_PATH: usize = 1024;
pub const DEEPEST: usize = 100;

/// Names that [`is_left_out`].
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

/// Endings of names that [`is_left_out`].
pub const LEFT_OUT_ENDINGS: [&str; 6] = [".pyc", ".pyo", ".orig", ".rej", ".swp", "~"];

/// Whether a file or folder of this name is left out of snapshots and of what attempts are said to have changed:
/// version control (it holds the originals), caches and compiled Python, and editors' backups (old versions of the
/// sources, too). `*.egg-info` stays: programs read their own version and entry points from it.
pub fn is_left_out(name: &str) -> bool {
    LEFT_OUT_NAMES.contains(&name) || LEFT_OUT_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
