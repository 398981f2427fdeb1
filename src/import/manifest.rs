//! Generates the manifest of an imported paper.

use std::fmt::Write as _;
use std::path::Path;

use super::find::FoundFunction;
use super::gold::PublishedExperiment;
use super::published::PublishedPaper;
use crate::files::toml_string;
use crate::suite::sections;

/// Lines of a published passage are searched for in the paper's text only if they have at least this many characters.
const PASSAGE: usize = 30;

/// The data from which a manifest is made.
pub struct ImportedManifest<'a> {
    /// The published paper.
    pub paper: &'a PublishedPaper,
    /// Name of the env's folder under `envs/`.
    pub env: &'a str,
    /// The paper's functions.
    pub functions: &'a [FoundFunction],
    /// The paper's experiments.
    pub experiments: &'a [PublishedExperiment],
    /// The paper's text, as agents are shown it.
    pub text: &'a str,
    /// Folder of the paper's code.
    pub repo: &'a Path,
}

/// Returns the manifest's text.
pub fn write(sheet: &ImportedManifest<'_>) -> String {
    let paper = sheet.paper;
    let url = if is_arxiv(&paper.id) { format!("https://arxiv.org/abs/{}", paper.id) } else { String::new() };
    let url = paper.url.clone().filter(|_| url.is_empty()).unwrap_or(url);
    let mut text = format!(
        "# Imported from the published AutoExperiment data.\ntitle = {}\nauthors = []\nyear = {}\nurl = {}\nrepo = {}\nenv = {}\n",
        toml_string(paper.title.as_deref().unwrap_or(&paper.id)),
        year(&paper.id),
        toml_string(&url),
        toml_string(&paper.id),
        toml_string(sheet.env)
    );
    text.push_str(
        "# Guessed from the commands: files whose changes do not count when an attempt is verified.\nprotected = [\n",
    );
    for file in entry_scripts(sheet) {
        let _ = writeln!(text, "    {},", toml_string(&globset::escape(&file)));
    }
    text.push_str("]\n");
    for found in sheet.functions {
        let published = paper.functions.iter().find(|function| function.number == found.number);
        let description = published.map(|function| function.description.trim()).unwrap_or_default();
        let passages = published.map(|function| headings(&function.passage, sheet.text)).unwrap_or_default();
        let passages: Vec<String> = passages.iter().map(|heading| toml_string(heading)).collect();
        let _ = write!(
            text,
            "\n[[function]] # published as function {}\nat = {}\ndescription = {}\npassages = [{}]\n",
            found.number,
            toml_string(&found.selector),
            toml_string(description),
            passages.join(", ")
        );
    }
    for experiment in sheet.experiments {
        let _ = write!(
            text,
            "\n[[experiment]] # published as experiment {}\nid = {}\ndescription = {}\ncommand = {}\nresult = {{ json_line = \"stdout\" }}\n",
            experiment.number,
            toml_string(&experiment.id),
            toml_string(&experiment.description),
            toml_string(&experiment.command)
        );
    }
    text
}

/// Whether an id is an arXiv id such as `2303.11932`: year, month and number.
fn is_arxiv(id: &str) -> bool {
    let digits = |text: &str, least: usize| text.len() >= least && text.bytes().all(|byte| byte.is_ascii_digit());
    id.split_once('.').is_some_and(|(month, number)| month.len() == 4 && digits(month, 4) && digits(number, 4))
}

/// Returns the year of the paper's first version; 0 if it is unknown.
fn year(id: &str) -> u16 {
    id.get(..2).filter(|_| is_arxiv(id)).and_then(|year| year.parse::<u16>().ok()).map_or(0, |year| 2000 + year)
}

/// Returns the files that occur in the commands, except files that contain functions to be masked.
fn entry_scripts(sheet: &ImportedManifest<'_>) -> Vec<String> {
    let words = sheet.experiments.iter().flat_map(|experiment| experiment.command.split_whitespace());
    let mut files: Vec<String> = words
        .map(|word| word.trim_matches(['"', '\'', ';']).trim_start_matches("./"))
        .filter(|word| !word.is_empty() && sheet.repo.join(word).is_file())
        .filter(|word| !sheet.functions.iter().any(|found| found.selector.starts_with(&format!("{word}::"))))
        .map(str::to_owned)
        .collect();
    files.sort();
    files.dedup();
    files
}

/// Returns the headings of the sections of the paper's `text` that contain a long line of `passage`, a published
/// passage.
fn headings(passage: &str, text: &str) -> Vec<String> {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = passage.lines().map(flat).filter(|line| line.chars().count() >= PASSAGE).collect();
    let mut headings = Vec::new();
    for section in sections(text) {
        let body = flat(section.text);
        let holds = lines.iter().any(|line| body.contains(line));
        if holds && !section.heading.is_empty() && !headings.iter().any(|known| known == section.heading) {
            headings.push(section.heading.to_owned());
        }
    }
    headings
}
