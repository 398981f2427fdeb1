//! `autoexperiment scrub`: removes the results from a paper's text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::shared::{print, print_file};
use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::scrub::{Audit, MarkupFormat, ScrubOptions, ScrubRule, Scrubbed, scrub};
use crate::suite::result_numbers;
use crate::workspace::unified_diff;

/// Remove the results from a paper's text
///
/// Removes tables of numbers, percentages, and values of metrics in sentences and captions. Keeps equations, settings,
/// sizes, years and references. Shows the changes as a diff and writes nothing unless you ask it to. It works by rules
/// and does not understand the text, so read the diff, and check doubtful decisions in the audit.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  autoexperiment scrub paper.md
  autoexperiment scrub paper.tex -o scrubbed.tex --audit audit.json
  autoexperiment scrub paper.md --write --gold papers/kmeanspp/gold.json
  autoexperiment scrub papers/kmeanspp/paper.md --check")]
pub struct Arguments {
    /// Text of the paper: Markdown, LaTeX, or plain text from `pandoc -t plain`.
    #[arg(value_name = "PAPER.md")]
    text: PathBuf,
    /// Format of the text [default: from the extension, or guessed from the text].
    #[arg(long, value_enum)]
    format: Option<FormatOption>,
    /// Also remove numbers that round values in this file: a `gold.json`, or any JSON.
    #[arg(long, value_name = "FILE")]
    gold: Option<PathBuf>,
    /// Write the scrubbed text to this file, which must not exist.
    #[arg(short, long, value_name = "FILE", conflicts_with = "write")]
    output: Option<PathBuf>,
    /// Replace the text with the scrubbed one.
    #[arg(long)]
    write: bool,
    /// Write the decision for every number, and its rule, to this file as JSON.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Only list the results that are left, and end with exit code 3 if there are any.
    #[arg(long, conflicts_with_all = ["output", "write"])]
    check: bool,
}

/// [`MarkupFormat`] as a command-line value.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FormatOption {
    Markdown,
    Latex,
    Plain,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.text;
    let text = read(path)?;
    let format = match arguments.format {
        Some(FormatOption::Markdown) => MarkupFormat::Markdown,
        Some(FormatOption::Latex) => MarkupFormat::Latex,
        Some(FormatOption::Plain) => MarkupFormat::Plain,
        None => MarkupFormat::detect(path, &text),
    };
    let gold = arguments.gold.as_deref().map(gold_values).transpose()?.unwrap_or_default();
    let scrubbed = scrub(&text, &ScrubOptions { format, gold: &gold });
    // Check the output paths before writing anything.
    if let Some(output) = arguments.output.as_ref().filter(|output| output.exists()) {
        return Err(Error::usage(format!("`{}` exists", output.display()))
            .hint("give the name of a new file, or use `--write` to overwrite the file that is read"));
    }
    if let Some(audit) = &arguments.audit {
        if arguments.output.as_ref() == Some(audit) {
            return Err(Error::usage(format!("`{}` cannot contain both the text and the audit", audit.display()))
                .hint("name two files"));
        }
        refuse_foreign(audit)?;
        let json = serde_json::to_string_pretty(&Audit::new(&scrubbed, format))
            .map_err(|error| Error::internal("failed to serialise the audit").because(error))?;
        std::fs::write(audit, json + "\n").map_err(|error| Error::io("write", audit, error))?;
    }
    if arguments.check {
        return check(path, &scrubbed);
    }
    if let Some(output) = &arguments.output {
        std::fs::write(output, &scrubbed.text).map_err(|error| Error::io("write", output, error))?;
    } else if arguments.write && scrubbed.text != text {
        // If the path is a link, replace the text that it points to.
        let real = path.canonicalize().map_err(|error| Error::io("resolve", path, error))?;
        write_durably(&real, scrubbed.text.as_bytes())?;
    }
    let name = path.to_string_lossy();
    print_file(&unified_diff(name.trim_start_matches('/'), text.as_bytes(), scrubbed.text.as_bytes()))?;
    summarise(&scrubbed);
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::usage(format!("failed to read the text `{}`", path.display())).because(error))?;
    String::from_utf8(bytes).map_err(|error| {
        Error::suite("the text is not UTF-8")
            .at(path, None)
            .hint("convert it, for example with `iconv -t utf-8`")
            .because(error)
    })
}

const GOLD: &str = "give a paper's `gold.json`, or any JSON with the numbers to look for";

/// Returns the results of all protocols in a gold file, or all numbers in any other JSON.
fn gold_values(path: &Path) -> Result<Vec<f64>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::usage(format!("failed to read `{}`", path.display())).because(error))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Error::suite("not JSON").at(path, None).hint(GOLD).because(error))?;
    let mut values = Vec::new();
    match value.get("results").and_then(Value::as_object) {
        Some(protocols) => {
            let results = protocols.values().filter_map(Value::as_object).flat_map(serde_json::Map::values);
            for result in results.filter_map(|experiment| experiment.get("result")) {
                result_numbers(result, &mut |value| values.push(value));
            }
        }
        None => result_numbers(&value, &mut |value| values.push(value)),
    }
    if values.is_empty() {
        return Err(Error::suite("no results").at(path, None).hint(GOLD));
    }
    Ok(values)
}

/// Refuses to overwrite any file other than an older audit.
fn refuse_foreign(path: &Path) -> Result<()> {
    let foreign = match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str::<Audit>(&text).is_err(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    if foreign {
        return Err(Error::usage(format!("`{}` exists and is not an audit", path.display())).hint("name another file"));
    }
    Ok(())
}

/// Lists the numbers in a text that look like results, and fails if there are any.
fn check(path: &Path, scrubbed: &Scrubbed) -> Result<()> {
    let mut left = String::new();
    for number in scrubbed.numbers.iter().filter(|number| number.removed) {
        let _ = write!(left, "{}:{}:{}: `{}`", path.display(), number.line, number.column, number.text);
        let _ = writeln!(left, " ({})", why(number.rule, number.cue.as_deref()));
    }
    print(&left)?;
    match scrubbed.removed() {
        0 => {
            talk!("no results found among {} numbers", scrubbed.numbers.len());
            Ok(())
        }
        count => Err(Error::suite(format!("{count} number(s) in the paper's text look like results"))
            .at(path, None)
            .hint("see them with `autoexperiment scrub FILE`, take them out with `--write` or by hand")),
    }
}

/// Returns a rule's name as in the audit and, if a word in the text made the rule apply, this word.
fn why(rule: ScrubRule, cue: Option<&str>) -> String {
    let name = serde_json::to_value(rule).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
    match cue {
        Some(cue) => format!("{name}, `{cue}`"),
        None => name,
    }
}

fn summarise(scrubbed: &Scrubbed) {
    let mut rules: BTreeMap<String, usize> = BTreeMap::new();
    for number in scrubbed.numbers.iter().filter(|number| number.removed) {
        *rules.entry(why(number.rule, None)).or_default() += 1;
    }
    let removed = scrubbed.removed();
    let parts: Vec<String> = rules.into_iter().map(|(rule, count)| format!("{count} {rule}")).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    talk!("{removed} of {} numbers removed{parts}, {} kept", scrubbed.numbers.len(), scrubbed.numbers.len() - removed);
}
