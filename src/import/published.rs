//! Reads the published AutoExperiment data without interpreting it.
//!
//! ```text
//! <dir>/experiments.jsonl, mlrc_n=<n>.jsonl, mlrc_main.csv      all papers together; each may be missing
//! <dir>/<paper>/functions.jsonl, experiments.jsonl, paper.txt, code/, <env>.yml
//! ```

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::json_lines;
use crate::error::{Error, Result};
use crate::suite::is_manifest_id;

/// A folder with published papers.
#[derive(Debug, Default)]
pub struct PublishedFolder {
    /// The papers, by id.
    pub papers: Vec<PaperFolder>,
    /// Lines of the file `experiments.jsonl` that all papers share.
    pub(super) experiments: Vec<Value>,
    /// For each file `mlrc_n=<n>.jsonl`, its name and its samples.
    pub(super) samples: Vec<(String, Vec<Value>)>,
}

/// The folder of one paper.
#[derive(Debug)]
pub struct PaperFolder {
    /// The folder's name, which is the paper's id.
    pub id: String,
    /// The paper, or the error that occurred when reading it. An error in one paper does not prevent reading the
    /// others.
    pub paper: Result<PublishedPaper>,
}

/// A paper as published.
#[derive(Debug, Clone)]
pub struct PublishedPaper {
    /// The folder's name, which is the paper's id.
    pub id: String,
    /// Title, if published.
    pub title: Option<String>,
    /// URL of the original repository, if published.
    pub url: Option<String>,
    /// Name of the paper's conda environment, if published.
    pub environment_name: Option<String>,
    /// The paper's conda environment file, if published.
    pub environment: Option<PathBuf>,
    /// Folder with the paper's code.
    pub code: PathBuf,
    /// File with the paper's text.
    pub text: PathBuf,
    /// The paper's functions.
    pub functions: Vec<PublishedFunction>,
    /// Lines of the paper's own `experiments.jsonl`.
    pub(super) experiments: Vec<Value>,
}

/// A function as published.
#[derive(Debug, Clone, Default)]
pub struct PublishedFunction {
    /// Id of the function in the published `functions.jsonl` (`func_id`), usually a number.
    pub number: String,
    /// Path of the function's file in the code.
    pub file: String,
    /// The function's name, usually without its class.
    pub name: String,
    /// The function's class, if published.
    pub class: Option<String>,
    /// Three line numbers (from 1): of the `def`, of the body's first line and of the body's last line. They are often
    /// outdated.
    pub lines: Option<[usize; 3]>,
    /// The function's source code, if published.
    pub source: Option<String>,
    /// Description of the function.
    pub description: String,
    /// The passage of the paper that describes the function.
    pub passage: String,
    /// Experiments that need the function, as published with the function.
    pub experiments: Option<Vec<String>>,
}

impl PublishedFolder {
    /// Opens a folder of papers, or the folder of a single paper.
    ///
    /// # Errors
    /// Kind `Usage` if the folder contains no paper; kind `Suite` for a broken line in a file that all papers share.
    pub fn open(folder: &Path) -> Result<Self> {
        let is_paper = |folder: &Path| folder.join("functions.jsonl").is_file() && folder.join("code").is_dir();
        let single = is_paper(folder);
        let mut folders = Vec::new();
        if single {
            folders.push(std::path::absolute(folder).map_err(|error| Error::io("resolve", folder, error))?);
        } else {
            let entries = std::fs::read_dir(folder).map_err(|error| Error::unreadable(folder, error))?;
            folders.extend(entries.flatten().map(|entry| entry.path()).filter(|path| is_paper(path)));
            folders.sort();
        }
        if folders.is_empty() {
            return Err(Error::usage(format!("no published paper in `{}`", folder.display()))
                .hint("give the folder that contains the papers' folders, each with `functions.jsonl` and `code`"));
        }
        let together = if single { folder.join("..") } else { folder.to_owned() };
        let main = together.join("mlrc_main.csv");
        let facts = if main.is_file() { facts(&main)? } else { Vec::new() };
        let mut published = Self::default();
        for folder in folders {
            let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let paper = paper(&folder, id.clone(), &facts);
            published.papers.push(PaperFolder { id, paper });
        }
        let experiments = together.join("experiments.jsonl");
        if experiments.is_file() {
            published.experiments = json_lines(&experiments)?;
        }
        let mut names: Vec<String> = std::fs::read_dir(&together)
            .map_err(|error| Error::io("read", &together, error))?
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| {
                name.starts_with("mlrc_n=") && Path::new(name).extension().is_some_and(|ending| ending == "jsonl")
            })
            .collect();
        names.sort();
        for name in names {
            let samples = json_lines(&together.join(&name))?;
            published.samples.push((name, samples));
        }
        Ok(published)
    }
}

/// Reads title, URL, id and environment name of each paper from `mlrc_main.csv`.
fn facts(path: &Path) -> Result<Vec<[String; 4]>> {
    let broken = |error: csv::Error| Error::suite("broken table").at(path, None).because(error);
    let mut reader = csv::Reader::from_path(path).map_err(broken)?;
    let headings = reader.headers().map_err(broken)?.clone();
    let place = |name: &str| headings.iter().position(|heading| heading.eq_ignore_ascii_case(name));
    let places = ["Title", "github", "paper_id", "conda_env"].map(place);
    let rows = reader.records().map(|row| {
        let row = row.map_err(broken)?;
        Ok(places.map(|place| place.and_then(|place| row.get(place)).unwrap_or_default().to_owned()))
    });
    rows.collect()
}

fn paper(folder: &Path, id: String, facts: &[[String; 4]]) -> Result<PublishedPaper> {
    let known = |place: usize| {
        let row = facts.iter().find(|row| row[2] == id)?;
        Some(row[place].trim().to_owned()).filter(|text| !text.is_empty())
    };
    let listed = folder.join("functions.jsonl");
    let mut functions = Vec::new();
    for (number, value) in json_lines(&listed)?.iter().enumerate() {
        functions.push(function(value).ok_or_else(|| {
            Error::suite("a function without `func_id`, `file` or `name`, or with an invalid `func_id`")
                .at(&listed, Some(number + 1))
                .hint("an id consists of letters, digits, `.`, `_` and `-`")
        })?);
    }
    functions.sort_by_key(|function| (function.number.parse::<usize>().unwrap_or(usize::MAX), function.number.clone()));
    let own = folder.join("experiments.jsonl");
    let experiments = if own.is_file() { json_lines(&own)? } else { Vec::new() };
    let mut environments: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(|error| Error::io("read", folder, error))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml"))
        .collect();
    environments.sort();
    Ok(PublishedPaper {
        title: known(0),
        url: known(1),
        environment_name: known(3),
        environment: environments.into_iter().next(),
        code: folder.join("code"),
        text: folder.join("paper.txt"),
        functions,
        experiments,
        id,
    })
}

fn function(value: &Value) -> Option<PublishedFunction> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned).filter(|text| !text.is_empty());
    let line = |name: &str| number(value.get(name)?);
    let lines = line("header_line").zip(line("line_start")).zip(line("line_end"));
    let experiments = value.get("exp_dependencies").and_then(Value::as_array);
    Some(PublishedFunction {
        number: value.get("func_id").map(plain).filter(|id| is_manifest_id(id))?,
        file: text("file")?.trim_start_matches("./").to_owned(),
        name: text("name")?,
        class: text("class").or_else(|| text("class_name")),
        lines: lines.map(|((header, start), end)| [header, start, end]),
        source: text("source").or_else(|| text("code")).or_else(|| text("content")),
        description: text("description").unwrap_or_default(),
        passage: text("relevant_paper").unwrap_or_default(),
        experiments: experiments.map(|list| list.iter().map(plain).collect()),
    })
}

/// Parses a number, which may be written as text.
fn number(value: &Value) -> Option<usize> {
    value.as_u64().map(|number| number as usize).or_else(|| value.as_str()?.trim().parse().ok())
}

/// Formats a value as text without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}
