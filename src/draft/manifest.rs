//! Generates the `paper.toml` of a new paper, with comments for the person who has to complete it.

use super::metadata::PackageFacts;
use super::propose::MaskingProposal;
use crate::files::toml_string;
use crate::suite::{Experiment, ResultRule, TODO};
use crate::tolerance::ToleranceRule;
use std::fmt::Write as _;

/// Compiled code in a repo.
#[derive(Debug, Clone, Default)]
pub struct CompiledCode {
    /// Command that builds the compiled code.
    pub build: Option<String>,
    /// Compiled files that the repo contains.
    pub files: Vec<String>,
    /// Python ABI tag that the compiled files require; `None` if they are not bound to one ABI.
    pub abi: Option<String>,
}

/// The data from which a manifest is made.
#[derive(Debug, Clone, Copy)]
pub struct ManifestInput<'a> {
    /// Facts about the paper from its package or its text.
    pub facts: &'a PackageFacts,
    /// Name of the repo's folder under `repos/`.
    pub repo: &'a str,
    /// Name of the env's folder under `envs/`.
    pub env: &'a str,
    /// Compiled code of the repo.
    pub compiled: &'a CompiledCode,
    /// The paper's experiments.
    pub experiments: &'a [Experiment],
    /// Proposed functions and protected files.
    pub proposal: &'a MaskingProposal,
}

impl CompiledCode {
    fn write(&self, text: &mut String) {
        if let Some(build) = &self.build {
            let _ = writeln!(
                text,
                "# Builds the C extensions, once per env. Its products (`**/*.so`) are in every sandbox.\nbuild = {}",
                toml_string(build)
            );
        }
        if !self.files.is_empty() {
            let files: Vec<String> = self.files.iter().map(|file| quoted(file)).collect();
            let _ = writeln!(
                text,
                "# Compiled files that contain no maskable function.\ncompiled = [{}]",
                files.join(", ")
            );
        }
        if let Some(abi) = &self.abi {
            let _ = writeln!(text, "# The interpreter that the compiled code works with.\nabi = {}", quoted(abi));
        }
    }
}

impl ManifestInput<'_> {
    /// Returns the manifest's text.
    #[must_use]
    pub fn manifest(&self) -> String {
        let facts = self.facts;
        let title = quoted(facts.title.as_deref().unwrap_or(TODO));
        let authors: Vec<String> = facts.authors.iter().map(|name| quoted(name)).collect();
        let authors = if authors.is_empty() { quoted(TODO) } else { authors.join(", ") };
        let year = facts.year.map_or_else(|| format!("0 # {TODO}"), |year| year.to_string());
        let mut text = format!(
            "title = {title}\nauthors = [{authors}]\nyear = {year}\nurl = {}\nrepo = {}\nenv = {}\n",
            quoted(facts.url.as_deref().unwrap_or(TODO)),
            quoted(self.repo),
            quoted(self.env)
        );
        self.compiled.write(&mut text);
        text.push_str(
            "# Files whose changes do not count when an attempt is verified: data, configuration, entry scripts.\n\
             protected = [\n",
        );
        for glob in &self.proposal.protected {
            let _ = writeln!(text, "    {},", quoted(glob));
        }
        text.push_str("]\n");
        if !self.proposal.functions.is_empty() {
            text.push_str(
                "\n# The functions that can be masked. A sample names them by their place here, from 0: once there are \
                 results,\n# don't reorder them. `passages` are headings of paper.md that describe the function.\n",
            );
        }
        for function in &self.proposal.functions {
            let entering: Vec<&str> = function
                .experiments
                .iter()
                .filter_map(|&place| self.experiments.get(place))
                .map(|it| it.id.as_str())
                .collect();
            let description = function
                .description
                .clone()
                .unwrap_or_else(|| format!("{TODO}: what `{}` does", function.selector.name));
            let _ = write!(
                text,
                "\n[[function]] # {} lines, {} calls; entered by {}\nat = {}\ndescription = {}\npassages = []\n",
                function.lines,
                function.calls,
                entering.join(", "),
                quoted(&function.selector.to_string()),
                quoted(&description)
            );
        }
        text.push_str(
            "\n# Experiments. Agents see the description: what is measured, and the answer's JSON shape, no values.\n",
        );
        for experiment in self.experiments {
            let _ = write!(
                text,
                "\n[[experiment]]\nid = {}\ndescription = {}\ncommand = {}\n",
                quoted(&experiment.id),
                quoted(&experiment.description),
                toml_string(&experiment.command)
            );
            for (name, values) in
                [("full", &experiment.parameters.full), ("curtailed", &experiment.parameters.curtailed)]
            {
                if !values.is_empty() {
                    let pairs: Vec<String> =
                        values.iter().map(|(name, value)| format!("{} = {value}", key(name))).collect();
                    let _ = writeln!(text, "parameters.{name} = {{ {} }}", pairs.join(", "));
                }
            }
            if !experiment.parameters.allowed.is_empty() {
                let allowed = &experiment.parameters.allowed;
                let pairs = allowed.iter().map(|(name, values)| {
                    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                    format!("{} = [{}]", key(name), values.join(", "))
                });
                let pairs = pairs.collect::<Vec<_>>().join(", ");
                let _ = writeln!(text, "parameters.allowed = {{ {pairs} }}");
            }
            let _ = writeln!(text, "result = {}", rule(&experiment.result));
            if experiment.tolerance != ToleranceRule::default() {
                let _ = writeln!(text, "tolerance = {}", experiment.tolerance.in_toml());
            }
        }
        text
    }
}

/// Formats a result rule as TOML for a manifest.
#[must_use]
pub fn rule(rule: &ResultRule) -> String {
    match rule {
        ResultRule::JsonFile(file) => format!("{{ json_file = {} }}", toml_string(file)),
        ResultRule::JsonLine(_) => "{ json_line = \"stdout\" }".to_owned(),
        ResultRule::Regex(named) => {
            let pairs: Vec<String> =
                named.iter().map(|(name, expression)| format!("{} = {}", key(name), toml_string(expression))).collect();
            format!("{{ regex = {{ {} }} }}", pairs.join(", "))
        }
    }
}

/// Formats a TOML key, quoted if needed.
fn key(text: &str) -> String {
    let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { text.to_owned() } else { quoted(text) }
}

/// Formats a text as a TOML string on one line.
fn quoted(text: &str) -> String {
    toml::Value::String(text.split(['\n', '\r']).map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned())
        .to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::command::parse;
    use super::super::propose::FunctionCandidate;
    use super::*;
    use crate::code::Selector;
    use crate::suite::Paper;

    #[test]
    fn a_generated_manifest_parses_to_the_same_values() {
        let rule = ResultRule::Regex(BTreeMap::from([("top 1".to_owned(), r#" acc\s"([0-9.]+)' "#.to_owned())]));
        let mut wanted = parse("a=run 'x \"y\"' \\d {n=full:10,curtailed:1}").unwrap();
        wanted.command.insert_str(0, "cd x\n\t");
        wanted.parameters.allowed.insert("n".to_owned(), vec![1.into(), 5.into()]);
        let experiments = [wanted.experiment(rule, "One\n\"two\"".to_owned())];
        let candidate = |name: &str, description: Option<&str>| FunctionCandidate {
            selector: Selector::new("a.py", name),
            lines: 9,
            calls: 2,
            description: description.map(str::to_owned),
            experiments: [0].into(),
        };
        let proposal = MaskingProposal {
            functions: vec![candidate("f", Some("Draws \\theta from \"p\".")), candidate("g", None)],
            protected: vec!["**/*.csv".to_owned()],
            ..MaskingProposal::default()
        };
        let sheet = ManifestInput {
            facts: &PackageFacts::default(),
            repo: "r",
            env: "e",
            compiled: &CompiledCode {
                build: Some("cc -o 'x.so' \"y.c\"".to_owned()),
                files: vec!["a/b.so".to_owned()],
                abi: Some("cpython-312".to_owned()),
            },
            experiments: &experiments,
            proposal: &proposal,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paper.toml");
        std::fs::write(&path, sheet.manifest()).unwrap();
        let paper = Paper::load(&path, "p").unwrap();
        assert_eq!(paper.build.as_deref(), Some("cc -o 'x.so' \"y.c\""));
        assert_eq!((paper.compiled.len(), paper.abi.as_deref()), (1, Some("cpython-312")));
        assert_eq!(paper.functions[0].description, "Draws \\theta from \"p\".");
        assert_eq!(paper.functions[1].description, "TODO: what `g` does");
        assert_eq!(paper.experiments[0].description, "One \"two\"");
        assert_eq!(
            (&paper.experiments[0].command, &paper.experiments[0].parameters, &paper.experiments[0].result),
            (&experiments[0].command, &experiments[0].parameters, &experiments[0].result)
        );
        assert_eq!(paper.protected, ["**/*.csv"]);
        assert!(sheet.manifest().contains("# 9 lines, 2 calls; entered by a\n"));
    }
}
