//! `autoexperiment suite`: prints the suite's table, or updates it in a README.

use std::path::{Path, PathBuf};

use super::shared::{PaperOptions, SuiteOptions, print, print_json};
use crate::error::{Error, Result};
use crate::files::write_durably;
use crate::report::{suite_console, suite_csv, suite_markdown, suite_rows};
use crate::suite::{LoadedPaper, PaperEvidence};
use crate::workspace::repo_digest;

/// The lines in a README that enclose the table.
const BEGIN: &str = "<!-- suite table: begin -->";
const END: &str = "<!-- suite table: end -->";

/// Print a table of papers: their contents, and how far each paper can be trusted
///
/// The table has one row per paper and one row for all papers. The columns are: the numbers of functions and of
/// experiments; for n = 1 to 5, the number of samples, and the tests and seconds per sample; the mean lines and calls
/// of a function; the mutation score; and the worst leak. A `-` marks values that were not measured on the current
/// state of the repo.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  autoexperiment suite\n  autoexperiment suite --csv >suite.csv\n  autoexperiment suite --readme docs/suite.md"
)]
pub struct Arguments {
    #[command(flatten)]
    papers: PaperOptions,
    /// Print JSON.
    #[arg(long, group = "format")]
    json: bool,
    /// Print CSV.
    #[arg(long, group = "format")]
    csv: bool,
    /// Print a Markdown table.
    #[arg(long, group = "format")]
    markdown: bool,
    /// Write the table to this file, between its lines `<!-- suite table: begin -->` and `<!-- suite table: end -->`.
    #[arg(long, value_name = "FILE", group = "format")]
    readme: Option<PathBuf>,
    #[command(flatten)]
    suite: SuiteOptions,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let suite = arguments.suite.open()?;
    let mut papers = Vec::new();
    for id in suite.select(&arguments.papers.all())? {
        let mut loaded = LoadedPaper::load(&suite, &id)?;
        let evidence = measured_now(&mut loaded)?;
        papers.push((loaded, evidence));
    }
    let rows = suite_rows(&papers);
    if arguments.json {
        return print_json(&rows);
    }
    if arguments.csv {
        return print(&suite_csv(&rows));
    }
    if arguments.markdown {
        return print(&suite_markdown(&rows));
    }
    match &arguments.readme {
        Some(path) => write_readme(path, &suite_markdown(&rows)),
        None => print(&suite_console(&rows)),
    }
}

/// Returns the measurements in `evidence.json`, if they were made on the repo as it is now. Removes the dependency
/// matrix and the gold from `loaded` if they are outdated.
fn measured_now(loaded: &mut LoadedPaper) -> Result<Option<PaperEvidence>> {
    let now = repo_digest(&loaded.repo_dir)?;
    let is_old = |repo: &str, file: &str| {
        let old = repo != now;
        if old {
            talk!("left out: {}: measured on another state of the repo", loaded.dir.join(file).display());
        }
        old
    };
    let evidence = PaperEvidence::load(&loaded.dir.join("evidence.json"))?;
    let evidence = evidence.filter(|evidence| !is_old(&evidence.repo, "evidence.json"));
    let dependencies = loaded.dependencies.take();
    let dependencies = dependencies.filter(|dependencies| !is_old(&dependencies.repo, "dependencies.json"));
    let gold = loaded.gold.take().filter(|gold| !is_old(&gold.repo, "gold.json"));
    (loaded.dependencies, loaded.gold) = (dependencies, gold);
    Ok(evidence)
}

fn write_readme(path: &Path, table: &str) -> Result<()> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::unreadable(path, error))?;
    let new = replaced(&text, table).map_err(|message| {
        Error::usage(message)
            .at(path, None)
            .hint(format!("put a line `{BEGIN}` and below it a line `{END}` where you want the table, each once"))
    })?;
    if new == text {
        talk!("unchanged: {}", path.display());
        return Ok(());
    }
    write_durably(path, new.as_bytes())?;
    talk!("written: {}", path.display());
    Ok(())
}

/// Replaces the lines between the marks [`BEGIN`] and [`END`]. The error is a message that says which mark is missing,
/// repeated or in the wrong place.
fn replaced(text: &str, table: &str) -> Result<String, String> {
    let place = |mark: &str| {
        let mut at = 0;
        let mut found = Vec::new();
        for line in text.split_inclusive('\n') {
            if line.trim_end() == mark {
                found.push(at..at + line.len());
            }
            at += line.len();
        }
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(format!("no line `{mark}`")),
            _ => Err(format!("{} lines `{mark}`", found.len())),
        }
    };
    let (begin, end) = (place(BEGIN)?, place(END)?);
    if end.start < begin.end {
        return Err(format!("`{END}` is before `{BEGIN}`"));
    }
    Ok(format!("{}\n{table}\n{}", &text[..begin.end], &text[end.start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replaced_between_its_marks_and_nothing_else_changes() {
        let text = format!("# Title\n\n{BEGIN}\nold\n{END}\nrest `{END}`");
        let once = replaced(&text, "| new |\n").unwrap();
        assert_eq!(once, format!("# Title\n\n{BEGIN}\n\n| new |\n\n{END}\nrest `{END}`"));
        assert_eq!(replaced(&once, "| new |\n").unwrap(), once);
    }

    #[test]
    fn a_text_with_missing_repeated_or_swapped_table_marks_is_refused() {
        for (text, expected) in [
            ("text".to_owned(), format!("no line `{BEGIN}`")),
            (format!("{BEGIN}\n"), format!("no line `{END}`")),
            (format!("{BEGIN}\n{BEGIN}\n{END}\n"), format!("2 lines `{BEGIN}`")),
            (format!("{END}\n{BEGIN}\n"), format!("`{END}` is before `{BEGIN}`")),
        ] {
            assert_eq!(replaced(&text, "x"), Err(expected));
        }
    }
}
