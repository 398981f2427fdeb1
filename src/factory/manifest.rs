//! Writes the manifest of the paper that is made from a package.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::inputs::is_added;
use super::layout::Layout;
use super::list::ListedFunction;
use super::survey::Plan;
use super::{PLAN, RUNNER};
use crate::draft::manifest::CompiledCode;
use crate::draft::metadata::PackageFacts;
use crate::files::toml_string;
use crate::suite::PartialDate;

/// Relative and absolute tolerance for results of tests. The runner summarises the values of a test in a digest, which
/// contains sums of floating-point numbers; these sums need a tolerance.
const TOLERANCE: (&str, &str) = ("1e-5", "1e-9");

/// The data from which this manifest is written.
pub(super) struct PackageManifest<'a> {
    /// Id of the paper, and of its repo and env.
    pub(super) id: &'a str,
    /// Title, authors, year and address.
    pub(super) facts: &'a PackageFacts,
    /// How the package is imported.
    pub(super) layout: &'a Layout,
    /// The package's compiled code.
    pub(super) compiled: &'a CompiledCode,
    /// Files of the package's tests. Verification ignores agents' changes to them. They are also hidden from agents,
    /// unless `visible`.
    pub(super) test_files: &'a [String],
    /// All files of the repo.
    pub(super) files: &'a [PathBuf],
    /// Whether agents see the tests.
    pub(super) visible: bool,
    /// Groups of tests.
    pub(super) plan: &'a Plan,
    /// Functions to mask.
    pub(super) functions: &'a [ListedFunction],
    /// When the package's first release became public.
    pub(super) published: Option<PartialDate>,
}

/// File that tells the runner which tests to run.
pub(super) const IDS: &str = "autoexperiment_ids.json";

/// Returns the command that runs each test listed in [`IDS`] once, on trusted code. Agents' code may cheat, so
/// verification runs each test several times, and alters the test in some of these runs so that it must fail. One way
/// to alter a test is to change the values that it expects. If `altered`, this command also runs each test with each
/// possible change of these values. Then this command looks for tests that depend on earlier tests.
pub(super) fn unguarded_command(layout: &Layout, altered: bool) -> String {
    let altered = if altered { " --altered" } else { "" };
    format!("{} && exec python -B -I {RUNNER} run '*' --ids {IDS} --unguarded{altered}", layout.exports())
}

/// File with changes of the package's code. The test runner runs tests with each of these changes.
pub(super) const TRIALS: &str = "autoexperiment_trials.json";

/// Returns the command that runs tests on the package's code with each of the changes that the file [`TRIALS`] lists.
pub(super) fn trials_command(layout: &Layout) -> String {
    format!("{} && exec python -B -I {RUNNER} trials {TRIALS}", layout.exports())
}

/// Returns the command that runs a group of tests.
pub(super) fn command(layout: &Layout, group: &str) -> String {
    format!("{} && exec python -B -I {RUNNER} run {group}", layout.exports())
}

/// Returns the command that runs a group of tests to record gold for one of the plan's drawings (random texts), given
/// by its index. [`command`] draws one of them, and then alters some tests and runs some parts of the test files alone.
/// This command runs all that [`command`] may run with this drawing.
pub(super) fn recording_command(layout: &Layout, group: &str, drawing: usize) -> String {
    format!("{} --drawing {drawing}", command(layout, group))
}

impl PackageManifest<'_> {
    /// Returns the manifest's text.
    pub(super) fn text(&self) -> String {
        let line = |text: &str| toml_string(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        let facts = self.facts;
        let authors: Vec<String> = facts.authors.iter().map(|name| line(name)).collect();
        let mut text = format!(
            "# Made by `autoexperiment factory` from the package {} {}.\ntitle = {}\nauthors = [{}]\nyear = {}\nurl = {}\nrepo = {id}\nenv = {id}\n",
            self.layout.name,
            self.layout.version,
            line(facts.title.as_deref().unwrap_or(&self.layout.name)),
            authors.join(", "),
            facts.year.unwrap_or(0),
            line(facts.url.as_deref().unwrap_or("unknown")),
            id = toml_string(self.id),
        );
        if let Some(date) = self.published {
            let _ = writeln!(text, "published = \"{date}\"");
        }
        if let Some(build) = &self.compiled.build {
            let _ = writeln!(text, "build = {}", toml_string(build));
        }
        if !self.compiled.files.is_empty() {
            let files: Vec<String> = self.compiled.files.iter().map(|file| toml_string(file)).collect();
            let _ = writeln!(text, "compiled = [{}]", files.join(", "));
        }
        if let Some(abi) = &self.compiled.abi {
            let _ = writeln!(text, "abi = {}", toml_string(abi));
        }
        let own = [RUNNER.to_owned(), PLAN.to_owned()];
        // The added tests hold answers, so agents never see them.
        let (shown, hidden): (Vec<&String>, Vec<&String>) =
            self.test_files.iter().partition(|file| self.visible && !is_added(file));
        let hidden = own.iter().chain(hidden);
        let _ = writeln!(text, "# The tests, and what runs them.\nhidden = [");
        for file in hidden {
            let _ = writeln!(text, "    {},", toml_string(&globset::escape(file)));
        }
        text.push_str("]\n# Configuration, data and metadata, which the tests rely on.\nprotected = [\n");
        let always = [
            "**/conftest.py",
            "**/*.dist-info/**",
            "*.toml",
            "*.cfg",
            "*.ini",
            "setup.py",
            "**/*.json",
            "**/*.csv",
            "**/*.txt",
        ];
        let is_used = |glob: &&str| {
            let matcher = globset::Glob::new(glob).map(|glob| glob.compile_matcher());
            matcher.is_ok_and(|matcher| self.files.iter().any(|file| matcher.is_match(file)))
        };
        let used = always.into_iter().filter(is_used).map(str::to_owned);
        for glob in used.chain(shown.into_iter().map(|file| globset::escape(file))) {
            let _ = writeln!(text, "    {},", toml_string(&glob));
        }
        text.push_str("]\n");
        for function in self.functions {
            let passages: Vec<String> = function.passages.iter().map(|passage| toml_string(passage)).collect();
            let _ = write!(
                text,
                "\n[[function]]\nat = {}\ndescription = {}\npassages = [{}]\n",
                toml_string(&function.at),
                toml_string(&function.description),
                passages.join(", ")
            );
            if let Some(date) = function.since {
                let _ = writeln!(text, "since = \"{date}\"");
            }
        }
        for (group, ids) in &self.plan.groups {
            let _ = write!(
                text,
                "\n[[experiment]]\nid = {}\nhidden = true\ndescription = {}\ncommand = {}\nresult = {{ json_line = \"stdout\" }}\n\
                 tolerance = {}\nabsolute_tolerance = {}\n",
                toml_string(group),
                toml_string(&format!("Outcomes and values of {} of the package's tests.", ids.len())),
                toml_string(&command(self.layout, group)),
                TOLERANCE.0,
                TOLERANCE.1
            );
        }
        text
    }
}
