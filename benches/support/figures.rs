//! Writes what a benchmark has measured into docs/performance.md.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a benchmark")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// A row of a table: what was measured, the figure, and the aim.
pub type Row = (String, String, &'static str);

/// Replaces the section between the markers `<!-- NAME -->` and `<!-- /NAME -->` by a line and a table of `rows`. The
/// line has the program's version, the date, the command, and `load`, the machine's load before the benchmark began.
pub fn write(name: &str, load: &str, rows: &[Row]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/performance.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let Some((front, rest)) = text.split_once(&begin) else { panic!("no `{}` in {}", begin.trim(), path.display()) };
    let Some((_, back)) = rest.split_once(&end) else { panic!("no `{end}` in {}", path.display()) };
    let load = load.split(' ').next().unwrap_or_default();
    let date = jiff::Zoned::now().strftime("%-d %B %Y");
    let mut section = format!(
        "Version {}{}, {date}, load {load} before it, by `cargo bench --bench {name} -- --readme`:\n\n",
        env!("CARGO_PKG_VERSION"),
        commit().map(|commit| format!(" ({commit})")).unwrap_or_default(),
    );
    section.push_str("| what | measured | aim |\n|---|---|---|\n");
    for (what, measured, aim) in rows {
        writeln!(section, "| {what} | {measured} | {aim} |").unwrap();
    }
    std::fs::write(&path, format!("{front}{begin}{section}{end}{back}")).unwrap();
    println!("written to {}", path.display());
}

/// Returns the current commit, with a `+` if the working tree differs from it.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no", "--", "src", "init", "Cargo.lock", "Cargo.toml"])?;
    Some(if changed.is_empty() { commit } else { commit + "+" })
}
