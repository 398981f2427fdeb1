//! Options and helpers shared by several verbs.

use std::borrow::Cow;
use std::future::Future;
use std::io::{IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::report::{clean, safe_json};
use crate::run::family::{Families, Family};
use crate::run::machine::{Machine, default_scratch};
use crate::sample::COMMAND;
use crate::suite::{Suite, bundled, is_bundled};

/// Location of the suite.
#[derive(Default, clap::Args)]
pub(super) struct SuiteOptions {
    /// Folder of the suite, with `papers`, `repos` and `envs` [default: this folder or the nearest parent, if it has
    /// papers, tasks or instructions or is a suite just begun; else the bundled suite].
    #[arg(long, value_name = "DIR", env = "AUTOEXPERIMENT_SUITE")]
    suite: Option<PathBuf>,
}

impl SuiteOptions {
    /// Whether the suite was named, so that it must exist.
    pub const fn is_named(&self) -> bool {
        self.suite.is_some()
    }

    /// Opens the suite: the named one, else the one in this folder or a parent, else the bundled one.
    pub fn open(&self) -> Result<Suite> {
        Suite::open(&self.folder()?)
    }

    /// Opens a suite to write to, which excludes the bundled one.
    pub(super) fn open_own(&self) -> Result<Suite> {
        Suite::open(&self.own_folder()?)
    }

    /// Returns the folder of a suite to write to, without checking its contents.
    pub fn own_folder(&self) -> Result<PathBuf> {
        self.own()?.filter(|folder| !is_bundled(folder)).ok_or_else(|| {
            Error::usage("there is no suite here to write to: the bundled one is read-only").hint(
                "write a suite of your own with `autoexperiment init DIR`, or a copy of the bundled one with \
                 `autoexperiment init --bundled DIR`; then run the command there, or name it with `--suite DIR`",
            )
        })
    }

    /// Returns the suite's folder, without checking its contents.
    pub fn folder(&self) -> Result<PathBuf> {
        self.own()?.map_or_else(bundled, Ok)
    }

    /// Returns the folder of the named suite or, if none is named, of the suite in this folder or the nearest parent;
    /// `None` if only the bundled suite is available.
    pub fn own(&self) -> Result<Option<PathBuf>> {
        if let Some(folder) = &self.suite {
            return std::path::absolute(folder).map(Some).map_err(|error| Error::io("resolve", folder, error));
        }
        let here = std::env::current_dir()
            .map_err(|error| Error::machine("the current folder cannot be found").because(error))?;
        Ok(suite_around(&here))
    }

    /// Returns the ids of a suite's items: the named ones, or all.
    ///
    /// # Errors
    /// If a named item does not exist, or if there are no items. The error says which folder was taken for the suite.
    pub(super) fn items(family: &dyn Family, suite: &Path, named: &[String]) -> Result<Vec<String>> {
        let items = family.items(suite, named).map_err(|mut error| {
            if !error.message.contains(&*suite.to_string_lossy()) {
                let hint = error.hint.take().map_or_else(String::new, |hint| hint + "; ");
                error.hint = Some(format!("{hint}the suite is {}", described(suite)));
            }
            error
        })?;
        if items.is_empty() {
            // A repo is an item of this family only if there are instructions for it.
            let which = if family.name() == COMMAND { " with instructions" } else { "" };
            let what = format!("there are no {}s{which} in the suite {}", family.words().item, described(suite));
            return Err(Error::suite(what).hint("name another suite with `--suite DIR`"));
        }
        Ok(items)
    }
}

/// Returns the suite in this folder or in the nearest parent.
fn suite_around(here: &Path) -> Option<PathBuf> {
    if is_begun(here) {
        return Some(here.to_owned());
    }
    // Look into the folders, because many people have folders named `papers` and `repos` that do not belong to a suite.
    let families = Families::standard();
    let is_suite = |folder: &&Path| {
        let has_items = |family: &Arc<dyn Family>| family.items(folder, &[]).is_ok_and(|items| !items.is_empty());
        let has_folder = |name: &str| folder.join(name).is_dir();
        has_folder("repos") && (families.all().any(has_items) || (has_folder("envs") && is_begun(folder)))
    };
    here.ancestors().find(is_suite).map(Path::to_owned)
}

/// Whether a folder may be a suite that somebody has just begun: its `papers` folder is empty, except for hidden files
/// such as `.gitkeep`. For a parent folder, this is not enough: it counts as a suite only if it also has the folders
/// `repos` and `envs`.
fn is_begun(folder: &Path) -> bool {
    let is_hidden = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."))
    };
    folder.join("papers").read_dir().is_ok_and(|mut papers| papers.all(is_hidden))
}

/// Describes a suite for messages.
pub fn described(suite: &Path) -> String {
    let path = clean(&suite.display().to_string());
    if is_bundled(suite) { format!("bundled with autoexperiment, in `{path}`") } else { format!("`{path}`") }
}

/// Papers, chosen by name or with `-p`.
#[derive(clap::Args, Debug, Default)]
pub struct PaperOptions {
    /// Papers [default: all].
    #[arg(value_name = "PAPER")]
    named: Vec<String>,
    /// Papers, given as an option: `-p kmeanspp,ucb`.
    #[arg(short, long = "papers", value_name = "PAPER", value_delimiter = ',')]
    papers: Vec<String>,
}

impl PaperOptions {
    /// Returns the named papers; empty means all.
    pub fn all(&self) -> Vec<String> {
        self.named.iter().chain(&self.papers).cloned().collect()
    }

    /// Returns the named papers, at least one.
    pub fn some(&self) -> Result<Vec<String>> {
        let all = self.all();
        if all.is_empty() {
            return Err(Error::usage("no paper is named")
                .hint("write its name after the command; `autoexperiment list` shows them"));
        }
        Ok(all)
    }

    /// Returns the named paper; fails unless exactly one paper is named.
    pub fn one(&self) -> Result<String> {
        match self.some()?.as_slice() {
            [one] => Ok(one.clone()),
            several => Err(Error::usage(format!("more than one paper is named: `{}`", several.join("`, `")))
                .hint("name one of them: this command is for one paper")),
        }
    }
}

/// Folders for envs, copies of repos, and workspaces.
#[derive(clap::Args)]
pub struct PlaceOptions {
    /// Folder for envs and copies of repos [default: ~/.cache/autoexperiment].
    #[arg(long, value_name = "DIR", env = "AUTOEXPERIMENT_CACHE", help_heading = "Places")]
    cache: Option<PathBuf>,
    /// Folder for workspaces while attempts run; use a local disk [default: the system's temporary folder].
    #[arg(long, value_name = "DIR", env = "AUTOEXPERIMENT_SCRATCH", help_heading = "Places")]
    scratch: Option<PathBuf>,
}

impl PlaceOptions {
    /// Returns the cache folder, absolute.
    pub fn cache(&self) -> Result<PathBuf> {
        let folder = match &self.cache {
            Some(folder) => folder.clone(),
            None => crate::env::default_cache()?,
        };
        std::path::absolute(&folder).map_err(|error| Error::io("resolve", &folder, error))
    }

    /// Returns the arguments by which another process uses the same folders.
    pub(super) fn arguments(&self) -> Result<Vec<String>> {
        let cache = format!("--cache={}", self.cache()?.display());
        let scratch = self.scratch.as_ref().map(|scratch| format!("--scratch={}", scratch.display()));
        Ok(std::iter::once(cache).chain(scratch).collect())
    }

    /// Returns the scratch folder.
    pub fn scratch(&self) -> PathBuf {
        self.scratch.clone().unwrap_or_else(default_scratch)
    }
}

/// Whether known results are reused.
#[derive(clap::Args)]
pub(super) struct FreshOptions {
    /// Run every check of the baseline and of verification again, even if the cache has a result for the same code.
    #[arg(long, env = "AUTOEXPERIMENT_FRESH", value_parser = clap::builder::BoolishValueParser::new(), help_heading = "Scoring")]
    fresh: bool,
}

impl FreshOptions {
    /// If `--fresh` is given, makes the machine run checks again whose results are cached.
    pub const fn apply(&self, machine: &mut Machine) {
        if self.fresh {
            machine.results.doubt();
        }
    }

    /// Returns the argument `--fresh` for another process if it was given to this process.
    pub fn argument(&self) -> Option<String> {
        self.fresh.then(|| "--fresh".to_owned())
    }
}

/// Maximum number of threads for calls that block. More threads would only take memory: many attempts that begin at
/// once wait for the same disk anyway.
const BLOCKING_THREADS: usize = 48;

/// Runs a verb's future on a new runtime.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Error::machine("failed to start the runtime").because(error))?
        .block_on(future)
}

/// Escapes what could control a terminal or deceive a reader, as [`clean`] does, but keeps line breaks and tabs.
pub(super) fn clean_lines(text: &str) -> Cow<'_, str> {
    const KEPT: [char; 2] = ['\n', '\t'];
    // Return most texts quickly: tables can have millions of rows.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for part in text.split_inclusive(KEPT) {
        let words = part.trim_end_matches(KEPT);
        safe += &clean(words);
        safe += &part[words.len()..];
    }
    Cow::Owned(safe)
}

/// Writes a text to stdout. The text may quote a manifest, a model or a run, so it is escaped by [`clean_lines`].
pub fn print(text: &str) -> Result<()> {
    print_bytes(clean_lines(text).as_bytes())
}

/// Writes a file's contents, or a diff of files, to stdout: unchanged for programs, escaped on a terminal.
pub(super) fn print_file(bytes: &[u8]) -> Result<()> {
    if std::io::stdout().is_terminal() { print(&String::from_utf8_lossy(bytes)) } else { print_bytes(bytes) }
}

/// Writes bytes to stdout as they are. A closed pipe, as in `| head`, is not an error.
pub(super) fn print_bytes(bytes: &[u8]) -> Result<()> {
    match std::io::stdout().lock().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::machine("failed to write to standard output").because(error))
        }
        _ => Ok(()),
    }
}

/// Writes data as pretty JSON to stdout.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::internal("failed to serialise output").because(error))?;
    print(&(safe_json(&text) + "\n"))
}

/// Writes a value to stdout as one line of JSON.
pub(super) fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    let line =
        serde_json::to_string(value).map_err(|error| Error::internal("failed to serialise output").because(error))?;
    print(&(safe_json(&line) + "\n"))
}

/// Width of a table on a terminal of unknown width, in columns.
const COLUMNS: u16 = 80;

/// Formats a plain table, with the columns whose indices are in `numbers` aligned right. On a terminal, long cells are
/// wrapped to fit its width; otherwise each row is one line, for programs.
pub fn table(header: &[&str], numbers: &[usize], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(header);
    if std::io::stdout().is_terminal() {
        let width = terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| width.0.max(COLUMNS / 2));
        table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic).set_width(width);
    }
    for row in rows {
        table.add_row(row.iter().map(|cell| clean(cell)).collect::<Vec<_>>());
    }
    for &column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Width of wrapped lists, in columns.
pub const WIDTH: usize = 80;

/// Appends the words of `text` to `line`, in lines of at most [`WIDTH`] columns. Further lines are indented by `indent`
/// columns.
pub fn wrapped(line: &str, text: &str, indent: usize) -> String {
    let (mut all, mut line) = (String::new(), line.to_owned());
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            all += &line;
            all.push('\n');
            line = " ".repeat(indent - 1);
        }
        line.push(' ');
        line += word;
    }
    all + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_that_holds_papers_or_tasks_is_the_suite_of_its_subfolders() {
        let home = tempfile::tempdir().unwrap();
        let here = home.path().join("project/code");
        let make = |folder: &str| std::fs::create_dir_all(home.path().join(folder)).unwrap();
        let write = |file: &str| std::fs::write(home.path().join(file), "").unwrap();
        make("project/code");
        make("papers");
        assert_eq!(suite_around(&here), None, "an empty folder of a parent");
        make("repos");
        make("papers/mine");
        write("papers/a.pdf");
        assert_eq!(suite_around(&here), None, "papers to read, and repos");
        write("papers/mine/paper.toml");
        assert_eq!(suite_around(&here).as_deref(), Some(home.path()));
        std::fs::remove_file(home.path().join("papers/mine/paper.toml")).unwrap();
        make("tasks/ir.rankers");
        write("tasks/ir.rankers/task.toml");
        assert_eq!(suite_around(&here).as_deref(), Some(home.path()));
        make("project/code/papers");
        write("project/code/papers/.gitkeep");
        assert_eq!(suite_around(&here).as_ref(), Some(&here), "a suite that was begun here");
        make("project/code/repos/mine");
        let inner = here.join("repos/mine");
        assert_eq!(suite_around(&inner).as_deref(), Some(home.path()), "a parent with some folders of a suite");
        make("project/code/envs");
        assert_eq!(suite_around(&inner), Some(here), "a parent with all folders of a suite");
    }

    #[test]
    fn an_error_about_a_suites_items_says_which_folder_was_taken_for_the_suite() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().display().to_string();
        std::fs::create_dir_all(home.path().join("papers")).unwrap();
        std::fs::create_dir_all(home.path().join("tasks")).unwrap();
        for (family, named) in [("masked", None), ("masked", Some("x")), ("notebook", None), ("notebook", Some("x"))] {
            let families = Families::standard();
            let named: Vec<String> = named.into_iter().map(str::to_owned).collect();
            let error = SuiteOptions::items(families.get(family).unwrap().as_ref(), home.path(), &named).unwrap_err();
            let hint = error.hint.as_deref().unwrap_or_default();
            assert!(error.message.contains(&folder) || hint.contains(&folder), "{family} {named:?}: {error} {hint}");
        }
        std::fs::create_dir_all(home.path().join("commands")).unwrap();
        let error = SuiteOptions::items(&crate::command::Commands, home.path(), &[]).unwrap_err();
        assert_eq!(error.message, format!("there are no repos with instructions in the suite `{folder}`"));
    }

    #[test]
    fn control_characters_are_escaped_on_every_line_and_line_breaks_and_tabs_are_kept() {
        assert_eq!(clean_lines("a\tb\n\n"), "a\tb\n\n");
        assert_eq!(clean_lines("\u{1b}]0;t\u{7}\ta\r\n\u{202e}é\n"), "\\u{1b}]0;t\\u{7}\ta\\r\n\\u{202e}é\n");
    }

    #[test]
    fn no_other_file_of_the_command_line_writes_to_stdout_without_escaping() {
        let files = walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli")).into_iter().flatten();
        for file in files.filter(|file| file.file_type().is_file() && !file.path().ends_with("cli/shared.rs")) {
            let code: String = std::fs::read_to_string(file.path()).unwrap().split_whitespace().collect();
            for way in ["stdout().lock()", "println!(", "print!("] {
                assert!(!code.contains(way), "{}: `{way}`", file.path().display());
            }
        }
    }
}
