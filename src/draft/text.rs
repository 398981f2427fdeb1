//! Creates `paper.md` from Markdown, LaTeX or plain text, or as an outline to be completed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::propose::MaskingProposal;
use crate::error::{Error, Result};
use crate::scrub::{MarkupFormat, ScrubOptions, scrub};
use crate::suite::{Experiment, Gold, TODO, result_numbers};

/// The text of a paper, as the user gave it.
#[derive(Debug, Clone)]
pub struct TextSource {
    /// The text.
    pub text: String,
    format: MarkupFormat,
}

/// The text of a paper in the form that agents see.
#[derive(Debug, Clone)]
pub struct ScrubbedPaper {
    /// The text, from which results have been removed.
    pub text: String,
    /// Count of the numbers that were removed.
    pub removed: usize,
    /// Count of all numbers in the original text.
    pub numbers: usize,
}

impl TextSource {
    /// Reads a text in Markdown, LaTeX or plain text.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be read or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::usage(format!("failed to read the text `{}`", path.display()))
                .because(error)
                .hint("give Markdown, LaTeX or plain text in UTF-8; `pdftotext -layout` makes plain text of a PDF")
        })?;
        let format = MarkupFormat::detect(path, &text);
        Ok(Self { text, format })
    }

    /// Removes the results from the text: the numbers that [`scrub`] recognises as results by its rules, and all
    /// numbers that equal a gold value, exactly or rounded. LaTeX headings become Markdown headings.
    #[must_use]
    pub fn scrubbed(&self, gold: &Gold) -> ScrubbedPaper {
        let mut values = Vec::new();
        for result in gold.results.values().flat_map(|results| results.values()) {
            result_numbers(&result.result, &mut |value| values.push(value));
        }
        self.without_results(&values)
    }

    /// Same as [`Self::scrubbed`], with these values as the gold values.
    #[must_use]
    pub fn without_results(&self, values: &[f64]) -> ScrubbedPaper {
        let is_latex = self.format == MarkupFormat::Latex;
        // Expand the author's own commands first: what is around a number in the text tells whether it is a result.
        let expanded = if is_latex { expanded(&self.text) } else { self.text.clone() };
        let scrubbed = scrub(&expanded, &ScrubOptions { format: self.format, gold: values });
        let (removed, numbers) = (scrubbed.removed(), scrubbed.numbers.len());
        let text = if is_latex { from_latex(&scrubbed.text) } else { scrubbed.text };
        ScrubbedPaper { text, removed, numbers }
    }
}

impl ScrubbedPaper {
    /// Returns the paper's title, if the text has one. Like the rest of the text, the title is without results.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        title(&self.text)
    }
}

/// Returns the title in a text: the first Markdown heading, or LaTeX's `\title`.
#[must_use]
fn title(text: &str) -> Option<String> {
    static LATEX: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\\title(?:\[[^\]]*\])?\{((?:[^{}]|\{[^{}]*\})+)\}").ok());
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    let found = heading.or_else(|| LATEX.as_ref()?.captures(text)?.get(1).map(|title| title.as_str()));
    let found = found?.replace("\\\\", " ");
    let found = found.split_whitespace().collect::<Vec<_>>().join(" ");
    (!found.is_empty()).then_some(found)
}

/// Converts LaTeX headings to Markdown headings, because manifests refer to passages of a paper by headings. Other
/// markup is kept. Removes the preamble, and comments, which may contain forgotten results.
#[must_use]
fn from_latex(source: &str) -> String {
    let mut text: String = source.lines().filter_map(uncommented).fold(String::new(), |text, line| text + line + "\n");
    let heading = title(&text).map(|title| format!("# {title}\n\n"));
    if let Some((_, body)) = text.split_once("\\begin{document}") {
        text = body.split("\\end{document}").next().unwrap_or(body).to_owned();
    }
    if let Ok(regex) = Regex::new(r"(?m)^[ \t]*\\title(?:\[[^\]]*\])?\{(?:[^{}]|\{[^{}]*\})*\}[ \t]*\n?") {
        text = regex.replace_all(&text, "").into_owned();
    }
    for (command, level) in
        [("section", "##"), ("subsection", "###"), ("subsubsection", "####"), ("paragraph", "#####")]
    {
        if let Ok(regex) =
            Regex::new(&format!(r"(?m)^[ \t]*\\{command}\*?(?:\[[^\]]*\])?\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}}"))
        {
            text = regex
                .replace_all(&text, |found: &regex::Captures<'_>| format!("\n{level} {}\n", &found[1]))
                .into_owned();
        }
    }
    text = text.replace("\\begin{abstract}", "## Abstract\n").replace("\\end{abstract}", "").replace("\\maketitle", "");
    let mut blank = 0;
    let lines = text.lines().filter(|line| {
        blank = if line.trim().is_empty() { blank + 1 } else { 0 };
        blank < 2
    });
    heading.unwrap_or_default() + lines.fold(String::new(), |text, line| text + line + "\n").trim_start()
}

/// Replaces commands without arguments that the author defined, such as `\newcommand{\model}{NetX}`, by their
/// definitions.
fn expanded(text: &str) -> String {
    /// Maximum depth to which commands are expanded whose definitions use other commands.
    const DEEPEST: usize = 4;
    let definition = Regex::new(
        r"\\(?:newcommand\*?|renewcommand\*?|providecommand\*?|def)\s*\{?(\\[A-Za-z]+)\}?\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}",
    );
    let command = Regex::new(r"(\\[A-Za-z]+)(?:\{\}|\\ )?");
    let (Ok(definition), Ok(command)) = (definition, command) else { return text.to_owned() };
    let valid: String = text.lines().filter_map(uncommented).fold(String::new(), |text, line| text + line + "\n");
    let own: BTreeMap<String, String> =
        definition.captures_iter(&valid).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    let mut text = definition.replace_all(text, "").into_owned();
    for _ in 0..DEEPEST {
        let next = command.replace_all(&text, |found: &regex::Captures<'_>| {
            let space = if found[0].ends_with("\\ ") { " " } else { "" };
            own.get(&found[1]).map_or_else(|| found[0].to_owned(), |meant| format!("{meant}{space}"))
        });
        if next == text {
            break;
        }
        text = next.into_owned();
    }
    text
}

/// Removes the comment in a line; returns `None` if the line is only a comment.
fn uncommented(line: &str) -> Option<&str> {
    let mut escaped = false;
    for (place, letter) in line.char_indices() {
        if letter == '%' && !escaped {
            return (!line[..place].trim().is_empty()).then(|| &line[..place]);
        }
        escaped = letter == '\\' && !escaped;
    }
    Some(line)
}

/// Returns an outline for a text, with a heading for each file that has proposed functions and for each experiment.
#[must_use]
pub fn outline(title: Option<&str>, proposal: &MaskingProposal, experiments: &[Experiment]) -> String {
    let mut text = format!(
        "# {}\n\n{TODO}: write a self-contained description of the paper, so that a person with this text and the rest of \
         the code could\nwrite any function of it: equations, initialisation, stopping rules, tie-breaking, defaults. No \
         results.\n\n## What the paper claims\n\n{TODO}\n\n## Method\n",
        title.unwrap_or(TODO)
    );
    let files: BTreeSet<_> = proposal.functions.iter().map(|function| &function.selector.file).collect();
    for file in files {
        let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().replace('_', " ");
        let functions: Vec<String> = proposal
            .functions
            .iter()
            .filter(|function| function.selector.file == *file)
            .map(|function| format!("`{}`", function.selector.name))
            .collect();
        let _ = writeln!(text, "\n### {}\n\n{TODO}: describe {}.", capitalised(&name), functions.join(", "));
    }
    text.push_str("\n## Experiments\n");
    for experiment in experiments {
        let _ = writeln!(text, "\n### {}\n\n{TODO}: data, protocol and what is measured.", experiment.id);
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_gets_headings_and_loses_preamble_and_comments() {
        let source = "\\documentclass{article}\n\\title{A \\\\ Title}\n\\begin{document}\n\\maketitle\n\\begin{abstract}\nWe \
                      show 5\\% more. % was 7.31\n\\end{abstract}\n% accuracy 0.93\n\\section{Method \\textbf{one}}\n\
                      Text $x^2$.\n\\subsection*{Stopping}\nWhen done.\n\\end{document}\nrest\n";
        assert_eq!(
            from_latex(source),
            "# A Title\n\n## Abstract\n\nWe show 5\\% more. \n\n## Method \\textbf{one}\n\nText $x^2$.\n\n### Stopping\n\n\
             When done.\n"
        );
    }

    #[test]
    fn the_authors_own_latex_commands_are_expanded() {
        let source = "\\newcommand{\\tool}{\\textsf{walk}}\n\\newcommand{\\this}{\\tool{}er}\n\\newcommand{\\two}[1]{#1}\n\
                      \\title{\\this: steps}\n\\begin{document}\n\\maketitle\nThe \\this\\ goes, \\two{far}, \\thistle.\n\
                      \\end{document}\n";
        assert_eq!(
            from_latex(&expanded(source)),
            "# \\textsf{walk}er: steps\n\nThe \\textsf{walk}er goes, \\two{far}, \\thistle.\n"
        );
    }

    #[test]
    fn results_in_the_authors_own_latex_commands_are_removed() {
        let source = "\\newcommand{\\acc}{93.4\\xspace}\n\\def\\best{\\textbf{87.1}\\%}\n% \\newcommand{\\steps}{50.5}\n\
                      \\newcommand{\\steps}{200}\n\\begin{document}\n\\section{Results}\nWe reach an accuracy of \\acc{} and \
                      a recall of \\best.\n\\section{Method}\nTraining takes \\steps{} steps.\n\\end{document}\n";
        let text = TextSource { text: source.to_owned(), format: MarkupFormat::Latex }.without_results(&[]);
        assert!(!text.text.contains("93.4") && !text.text.contains("87.1"), "{}", text.text);
        assert!(text.text.contains("takes 200 steps"), "{}", text.text);
    }

    #[test]
    fn results_are_removed_from_the_title_as_from_the_rest_of_the_text() {
        let of = |text: &str, format| {
            TextSource { text: text.to_owned(), format }.without_results(&[23457.143]).title().unwrap()
        };
        let markdown = of("# Squares sum to 23457.14 in our benchmark\n\nText.\n", MarkupFormat::Markdown);
        let latex = "\\newcommand{\\total}{23457.14}\n\\title{Squares sum to \\total{} in our benchmark}\n\\begin{document}\n\
                     \\maketitle\nText.\n\\end{document}\n";
        for title in [markdown, of(latex, MarkupFormat::Latex)] {
            assert!(title.starts_with("Squares sum to ") && !title.contains("23457"), "{title}");
        }
    }

    #[test]
    fn a_title_is_found_in_markdown_and_latex() {
        assert_eq!(title("x\n# The  Title\n").as_deref(), Some("The Title"));
        assert_eq!(title("\\title[short]{Long one}").as_deref(), Some("Long one"));
        assert_eq!(title("plain text"), None);
    }
}
