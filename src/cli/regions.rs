//! `autoexperiment regions`: proposes regions (consecutive statements of a function) to mask, as lines for a manifest.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::shared::{SuiteOptions, print_file, print_json};
use crate::code::{Module, index_tree, tagged};
use crate::error::{Error, Result};
use crate::files::toml_string;
use crate::report::clean;
use crate::suite::LoadedPaper;

/// Propose regions of functions to mask, by size or by the comments around them
///
/// A region is some statements of a function. Masking regions makes samples easier than masking whole functions. For
/// each function and share, proposes the statements whose number of code lines comes nearest to that share of the
/// function, if it is between half and one and a half times that share. Prints lines to paste into `paper.toml`;
/// describe each region there.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  Propose a third and a half of each function of a paper:
    autoexperiment regions kmeanspp
  Propose a quarter of one function:
    autoexperiment regions kmeanspp -f 3 --share 0.25
  List what ResearchCodeBench's tags mark in a file:
    autoexperiment regions --tags pset/DyT/dynamic_tanh.py")]
pub struct Arguments {
    /// A paper of the suite, or a Python file, or a folder of Python files.
    #[arg(value_name = "PAPER|PATH")]
    from: String,
    /// Only these functions: numbers in `autoexperiment list PAPER`, or selectors.
    #[arg(short, long = "functions", value_name = "FUNCTION")]
    functions: Vec<String>,
    /// Shares of a function's lines of code.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.33, 0.5], conflicts_with = "tags")]
    share: Vec<f64>,
    /// List the regions that comments mark, such as `# <paper2code name="loss">` and `# </paper2code name="loss">`, or
    /// `# region loss` and `# endregion`.
    #[arg(long)]
    tags: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    suite: SuiteOptions,
}

/// A region that could be added to a manifest.
#[derive(Serialize)]
struct ProposedRegion {
    name: String,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<usize>,
    /// Number of lines of code.
    lines: usize,
    /// Number of lines of code of the function that contains the region.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<usize>,
    /// Line (from 1) of the region's first statement.
    line: usize,
    #[serde(skip)]
    passages: Vec<String>,
}

/// A function in which regions (consecutive statements to mask) are proposed: its file, its index in the file, and the
/// headings of the paper's passages about it.
type FunctionToSplit = (Module, usize, Vec<String>);

pub fn run(arguments: &Arguments) -> Result<()> {
    if let Some(wrong) = arguments.share.iter().find(|share| !(**share > 0.0 && **share < 1.0)) {
        return Err(Error::usage(format!("`--share {wrong}` is not a share of a function's lines"))
            .hint("give numbers between 0 and 1, such as `0.25`"));
    }
    let path = PathBuf::from(&arguments.from);
    // An argument that looks like a path is not the id of a paper, so it must exist.
    let is_path = arguments.from.contains('/') || path.extension().is_some_and(|it| it == "py");
    if is_path && !path.exists() {
        return Err(Error::usage(format!("there is no file or folder `{}`", arguments.from))
            .hint("check the path, or give the id of a paper"));
    }
    let rows = if arguments.tags {
        let root = if path.exists() { path } else { loaded(arguments)?.repo_dir };
        by_tags(&root)
    } else if path.exists() {
        by_share(of_path(&path, &arguments.functions)?, &arguments.share)?
    } else {
        by_share(of_paper(&loaded(arguments)?, &arguments.functions)?, &arguments.share)?
    };
    if arguments.json {
        return print_json(&rows);
    }
    let text = rows.iter().map(written).collect::<Vec<_>>().join("\n");
    print_file(text.as_bytes())
}

fn loaded(arguments: &Arguments) -> Result<LoadedPaper> {
    let suite = arguments.suite.open()?;
    let paper = arguments.from.clone();
    suite.select(std::slice::from_ref(&paper))?;
    LoadedPaper::load(&suite, &paper)
}

/// Returns the selected functions of a paper.
fn of_paper(loaded: &LoadedPaper, asked: &[String]) -> Result<Vec<FunctionToSplit>> {
    let functions = &loaded.paper.functions;
    let place = |name: &String| {
        let number = name.parse().ok().filter(|place: &usize| *place < functions.len());
        number.or_else(|| functions.iter().position(|it| it.at == *name)).ok_or_else(|| {
            Error::usage(format!("paper `{}` has no function `{name}`", loaded.paper.id))
                .hint(format!("`autoexperiment list {}` shows them", loaded.paper.id))
        })
    };
    let places = if asked.is_empty() {
        (0..functions.len()).collect()
    } else {
        asked.iter().map(place).collect::<Result<Vec<_>>>()?
    };
    let of = |place: usize| {
        let index = loaded.function_of(place)?;
        Some((loaded.source(place).clone(), index, functions[place].passages.clone()))
    };
    Ok(places.into_iter().filter_map(of).collect())
}

/// Returns the selected functions of Python files.
fn of_path(path: &Path, asked: &[String]) -> Result<Vec<FunctionToSplit>> {
    let mut found = Vec::new();
    for module in modules(path) {
        for index in 0..module.functions().len() {
            let selector = module.selector(index).to_string();
            if asked.is_empty() || asked.contains(&selector) {
                found.push((module.clone(), index, Vec::new()));
            }
        }
    }
    if let Some(missing) = asked.iter().find(|name| !found.iter().any(|it| it.0.selector(it.1).to_string() == **name)) {
        return Err(Error::usage(format!("no function `{missing}` in `{}`", path.display()))
            .hint(format!("`autoexperiment index {}` lists them", path.display())));
    }
    Ok(found)
}

/// Returns the files that parse; reports the others on stderr.
fn modules(path: &Path) -> Vec<Module> {
    let parsed = index_tree(path).into_iter().filter_map(|(path, module)| {
        module.map_err(|error| talk!("left out: {}: {}", path.display(), clean(&error.to_string()))).ok()
    });
    parsed.collect()
}

fn by_share(functions: Vec<FunctionToSplit>, shares: &[f64]) -> Result<Vec<ProposedRegion>> {
    let mut rows = Vec::new();
    for (module, index, passages) in functions {
        let of = module.code_lines(&module.body_code(index));
        for proposal in module.propose(index, shares)? {
            rows.push(ProposedRegion {
                name: format!("{:.0}%", 100.0 * proposal.share),
                at: module.selector(index).to_string(),
                first: Some(proposal.first),
                last: proposal.last,
                tag: None,
                number: proposal.number,
                lines: proposal.lines,
                of: Some(of),
                line: proposal.region.first_line,
                passages: passages.clone(),
            });
        }
    }
    Ok(rows)
}

fn by_tags(root: &Path) -> Vec<ProposedRegion> {
    let mut rows = Vec::new();
    for module in modules(root) {
        let left_out = |line: usize, what: &str| {
            talk!("left out: {}:{line}: {}", module.path().display(), clean(what));
        };
        let all = match tagged(&module) {
            Ok(all) => all,
            Err(error) => {
                talk!("left out: {}", clean(&error.to_string()));
                continue;
            }
        };
        for it in all {
            let region = match it.region {
                Ok(region) => region,
                Err(error) => {
                    left_out(it.line, &error.message);
                    continue;
                }
            };
            let name = it.name.replace(['[', ']'], "_");
            rows.push(ProposedRegion {
                name: it.number.map_or_else(|| name.clone(), |number| format!("{name} {number}")),
                at: module.path().display().to_string(),
                first: None,
                last: None,
                tag: Some(it.name),
                number: it.number,
                lines: module.code_lines(&region.range),
                of: None,
                line: region.first_line,
                passages: Vec::new(),
            });
        }
    }
    rows
}

/// Formats a proposed region as lines of a manifest.
fn written(row: &ProposedRegion) -> String {
    let of = row.of.map_or_else(String::new, |of| format!(" of {of}"));
    let mut text = format!("# {}{of} lines of code, from line {}\n[[region]]\n", row.lines, row.line);
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(text, "{key} = {value}");
    };
    line("name", &toml_string(&row.name));
    line("at", &toml_string(&row.at));
    for (key, value) in [("first", &row.first), ("last", &row.last), ("tag", &row.tag)] {
        if let Some(value) = value {
            line(key, &toml_string(value));
        }
    }
    if let Some(number) = row.number {
        line("number", &number.to_string());
    }
    line("description", &toml_string(&format!("TODO: what these {} lines do", row.lines)));
    let passages: Vec<String> = row.passages.iter().map(|heading| toml_string(heading)).collect();
    line("passages", &format!("[{}]", passages.join(", ")));
    text
}
