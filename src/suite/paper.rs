//! The manifest `papers/<id>/paper.toml`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dates::PartialDate;
use super::spans::ManifestPart;
use crate::code::Bounds;
use crate::tolerance::{DeclaredTolerance, ToleranceRule};

/// A paper's manifest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The folder's name under `papers/`.
    #[serde(skip)]
    pub id: String,
    /// The paper's title.
    pub title: String,
    /// The paper's authors, as printed.
    pub authors: Vec<String>,
    /// Year of publication.
    pub year: u16,
    /// Address where the paper can be read.
    pub url: String,
    /// When the text became public, such as `2026-11-21` or `2026-11`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PartialDate>,
    /// When the code became public: the repo's first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_commit: Option<PartialDate>,
    /// Folder name under `repos/`.
    pub repo: String,
    /// Folder name under `envs/`.
    pub env: String,
    /// Globs of files for which an agent's changes are not used in verification: data, configuration, entry scripts.
    #[serde(default)]
    pub protected: Vec<String>,
    /// Globs of files that agents never get, such as tests and reference solutions. Verification has them, and ignores
    /// an agent's files at these paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Shell command that builds the repo's C extensions in place: run once per env, in a sandbox, in the repo's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Globs of the files that the build produces, shown in every sandbox; by default, shared libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub products: Vec<String>,
    /// Globs of compiled files in the repo that contain no maskable function.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiled: Vec<String>,
    /// The only interpreter that the paper's compiled code works with, such as `cpython-312`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<String>,
    /// Maskable functions; a sample refers to them by their index in this list, from 0.
    #[serde(rename = "function", default)]
    pub functions: Vec<ManifestFunction>,
    /// Maskable regions of functions; their indices continue those of the functions.
    #[serde(rename = "region", default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<ManifestRegion>,
    /// All functions, then all regions; a sample refers to them by their index in this list.
    #[serde(skip)]
    pub units: Vec<Unit>,
    /// Experiments; an answer refers to them by their position in this list, starting with "Experiment 1".
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
}

/// A maskable function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFunction {
    /// `path/file.py::Class.method`, with `#2` for the second one of the same name.
    pub at: String,
    /// Description for the agent; also inserted into the masked body if the function has no docstring.
    pub description: String,
    /// Headings of the sections of `paper.md` that describe the function.
    #[serde(default)]
    pub passages: Vec<String>,
    /// When the function became public, if that was later than the rest of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<PartialDate>,
    /// Mutants that behave like the function, so that no experiment can distinguish them from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<Equivalent>,
}

/// Statements of a function or module that can be masked without the rest: from `first` to `last`, or between comments
/// that name `tag`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestRegion {
    /// Short name, unique among the regions with the same `at`.
    pub name: String,
    /// The function, as in [`ManifestFunction::at`]; or only a file, for statements outside of functions, and for tags.
    pub at: String,
    /// Beginning of the text of the region's first statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Beginning of the last statement, in the same block; if absent, the region is the first statement only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Name in the comments around the region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// If `first` or `tag` occurs several times, the number of the occurrence to use, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Description for the agent.
    pub description: String,
    /// Headings of the sections of `paper.md` that describe the region.
    #[serde(default)]
    pub passages: Vec<String>,
    /// Mutants that behave like the region.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalent: Vec<Equivalent>,
}

/// A function or region that can be masked.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Name in files and tables: a function's selector; for a region, followed by the region's name in brackets:
    /// `path/file.py::Class.method[name]`.
    pub at: String,
    /// Description for the agent.
    pub description: String,
    /// Headings of the sections of `paper.md` that describe the function or region.
    pub passages: Vec<String>,
    /// When the function or region became public, if that was later than the rest of the code.
    pub since: Option<PartialDate>,
    /// Mutants that behave like the original.
    pub equivalent: Vec<Equivalent>,
    /// Index of the region in the list of regions; `None` for a function.
    pub region: Option<usize>,
}

/// A mutant marked as equivalent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    /// The mutant's id, as printed by `autoexperiment verify`.
    pub mutant: String,
    /// Why the mutant behaves like the original.
    pub reason: String,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short name, unique in the paper.
    pub id: String,
    /// Description for the agent: what is measured, and the answer's JSON shape.
    pub description: String,
    /// Shell command, run in the repo's root; `{name}` is replaced by a parameter.
    pub command: String,
    /// Values of the parameters.
    #[serde(default)]
    pub parameters: Parameters,
    /// How to read the result.
    pub result: ResultRule,
    /// Relative tolerance of measured reals; or `stochastic`, for results that vary from run to run by design.
    #[serde(default)]
    pub tolerance: ToleranceRule,
    /// Relative tolerance of whole numbers, such as counts, which must be equal by default.
    #[serde(default)]
    pub count_tolerance: f64,
    /// Absolute tolerance, for values whose gold is 0.
    #[serde(default = "crate::tolerance::default_absolute")]
    pub absolute_tolerance: f64,
    /// Time limit of one curtailed run, in seconds; by default derived from the baseline.
    #[serde(default)]
    pub time_limit: Option<f64>,
    /// Whether the experiment is hidden because it runs hidden files. Agents neither see nor report a hidden
    /// experiment; it passes or fails by verification alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// The products of a build, unless the manifest names them: all shared libraries.
const PRODUCTS: &str = "**/*.so";

/// The parameters of an experiment's command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Parameters' values in the paper's own protocol.
    #[serde(default)]
    pub full: BTreeMap<String, toml::Value>,
    /// Parameters' values in the shorter protocol, which attempts run.
    #[serde(default)]
    pub curtailed: BTreeMap<String, toml::Value>,
    /// Values among which `autoexperiment curtail` may search for a shorter protocol, cheapest first. Parameters not
    /// listed here keep their full value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allowed: BTreeMap<String, Vec<toml::Value>>,
    /// Measurements of the curtailed values by `autoexperiment curtail --write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<CurtailedEvidence>,
}

/// How well the curtailed experiment distinguishes solutions that pass the full one from those that fail it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurtailedEvidence {
    /// The experiment's command with the curtailed (shorter) values that were measured.
    pub command: String,
    /// Number of solutions that were run under both protocols.
    pub attempts: usize,
    /// Number of solutions that pass the full experiment.
    pub passing: usize,
    /// Share of the solutions passing the curtailed experiment that also pass the full one.
    pub precision: f64,
    /// Share of the solutions passing the full experiment that also pass the curtailed one.
    pub recall: f64,
    /// CPU time of the curtailed experiment, as a share of the full one's.
    pub time: f64,
}

/// Which values of an experiment's parameters to use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The values under `curtailed` in the manifest, which make an experiment shorter.
    #[default]
    Curtailed,
    /// The values under `full` in the manifest, which are those of the paper.
    Full,
}

/// How to read a result after the command has run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ResultRule {
    /// `{ json_file = "results/out.json" }`: a JSON file that the command writes.
    JsonFile(String),
    /// `{ json_line = "stdout" }`: the last line of stdout that is a JSON object.
    JsonLine(Stdout),
    /// `{ regex = { loss = "loss: ([0-9.]+)" } }`: the first group of each expression's last match in stdout.
    Regex(BTreeMap<String, String>),
}

/// The stream from which a JSON line is read, as written in a manifest; only `stdout` is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdout {
    /// Standard output.
    Stdout,
}

impl Paper {
    /// Returns the date on which the paper or its code became public, whichever was first.
    #[must_use]
    pub fn public_since(&self) -> Option<PartialDate> {
        PartialDate::earlier(self.published, self.first_commit)
    }

    /// Returns the date on which the oldest of these units became public or, without units, that of the paper.
    #[must_use]
    pub fn units_since(&self, units: &[usize]) -> Option<PartialDate> {
        let known = self.public_since();
        let since = |unit: &usize| self.units.get(*unit).and_then(|unit| unit.since).or(known);
        if units.is_empty() {
            return known;
        }
        let dates: Option<Vec<PartialDate>> = units.iter().map(since).collect();
        dates?.into_iter().reduce(|one, other| PartialDate::earlier(Some(one), Some(other)).unwrap_or(one))
    }

    /// Lists what can be masked, functions before regions.
    pub(super) fn all_units(&self) -> Vec<Unit> {
        let functions = self.functions.iter().map(|function| Unit {
            at: function.at.clone(),
            description: function.description.clone(),
            passages: function.passages.clone(),
            since: function.since,
            equivalent: function.equivalent.clone(),
            region: None,
        });
        let regions = self.regions.iter().enumerate().map(|(place, region)| Unit {
            at: region.label(),
            description: region.description.clone(),
            passages: region.passages.clone(),
            since: None,
            equivalent: region.equivalent.clone(),
            region: Some(place),
        });
        functions.chain(regions).collect()
    }

    /// Returns the part of the manifest that lists this unit.
    pub(super) fn part(&self, unit: usize) -> ManifestPart {
        self.units[unit].region.map_or(ManifestPart::Function(unit), ManifestPart::Region)
    }

    /// Matches the protected files by paths relative to the repo: files that the manifest lists as protected, hidden
    /// ones, compiled ones, and products of the build. Verification does not use an agent's changes to these files.
    #[must_use]
    pub fn protected_set(&self) -> globset::GlobSet {
        glob_set(&self.protected_globs())
    }

    /// Returns the globs of [`Paper::protected_set`].
    #[must_use]
    pub fn protected_globs(&self) -> Vec<String> {
        [self.protected.as_slice(), &self.hidden, &self.compiled, &self.product_globs()].concat()
    }

    /// Matches the files that agents never get, by paths relative to the repo.
    #[must_use]
    pub fn hidden_set(&self) -> globset::GlobSet {
        glob_set(&self.hidden)
    }

    /// Matches the products of the paper's build. Empty without a build.
    #[must_use]
    pub fn product_set(&self) -> globset::GlobSet {
        glob_set(&self.product_globs())
    }

    /// Matches the compiled files of the repo that contain no maskable function.
    #[must_use]
    pub fn compiled_set(&self) -> globset::GlobSet {
        glob_set(&self.compiled)
    }

    /// Returns the globs of the build's products; empty without a build.
    #[must_use]
    pub fn product_globs(&self) -> Vec<String> {
        match &self.build {
            None => Vec::new(),
            Some(_) if self.products.is_empty() => vec![PRODUCTS.to_owned()],
            Some(_) => self.products.clone(),
        }
    }
}

/// Returns a set of globs. Paths that match a manifest's globs are withheld from agents or protected from them, so if the
/// globs cannot be used, which [`Paper::load`] refuses, the set matches every path.
pub(super) fn glob_set(globs: &[String]) -> globset::GlobSet {
    try_glob_set(globs).or_else(|_| try_glob_set(&["**".to_owned()])).unwrap_or_default()
}

/// Returns a set of globs.
///
/// # Errors
/// If one of the globs is invalid, or all globs together are too large.
pub(super) fn try_glob_set(globs: &[String]) -> Result<globset::GlobSet, globset::Error> {
    let mut set = globset::GlobSetBuilder::new();
    for glob in globs {
        set.add(globset::Glob::new(glob)?);
    }
    set.build()
}

impl ManifestRegion {
    /// Returns the region's name across the paper: `path/file.py::Class.method[name]`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}[{}]", self.at, self.name)
    }

    /// Returns what identifies the region in its function or file: a tag, or the beginnings of statements.
    #[must_use]
    pub fn bounds(&self) -> Bounds<'_> {
        match (&self.tag, &self.first) {
            (Some(name), _) => Bounds::Tag { name, number: self.number },
            (None, first) => Bounds::Statements {
                first: first.as_deref().unwrap_or_default(),
                last: self.last.as_deref(),
                number: self.number,
            },
        }
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.name.trim().is_empty() || self.name.contains(['[', ']', '\n']) {
            return Err("its name must not be empty or contain brackets".to_owned());
        }
        match (&self.first, &self.last, &self.tag) {
            (Some(_), _, None) | (None, None, Some(_)) => {}
            (None, _, None) => return Err("give `first` (and `last`), or `tag`".to_owned()),
            _ => return Err("`tag` and `first` or `last` exclude each other".to_owned()),
        }
        if self.number == Some(0) {
            return Err("`number` counts from 1".to_owned());
        }
        Ok(())
    }
}

impl Unit {
    /// Returns the word for this unit in messages: `function` or `region`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        if self.region.is_some() { "region" } else { "function" }
    }
}

impl Experiment {
    /// Returns everything that the manifest says about tolerances.
    pub(crate) const fn declared_tolerance(&self) -> DeclaredTolerance {
        DeclaredTolerance { rule: self.tolerance, counts: self.count_tolerance, absolute: self.absolute_tolerance }
    }

    /// Returns the command with the protocol's values in place of its parameters.
    ///
    /// # Errors
    /// Returns a phrase for an error message: which parameter has no value, is not in the command, or has a value that
    /// is not a string, number or boolean.
    pub fn command_line(&self, protocol: Protocol) -> Result<String, String> {
        let values = match protocol {
            Protocol::Curtailed => &self.parameters.curtailed,
            Protocol::Full => &self.parameters.full,
        };
        let line = self.command_with(values)?;
        let known: BTreeSet<_> = self.parameters.full.keys().chain(self.parameters.curtailed.keys()).collect();
        if let Some(missing) = known.into_iter().find(|name| line.contains(&format!("{{{name}}}"))) {
            return Err(format!("parameter `{missing}` has no value for the {} protocol", protocol.name()));
        }
        Ok(line)
    }

    /// Returns the command with these values in place of its parameters.
    ///
    /// # Errors
    /// Returns a phrase for an error message: which parameter is not in the command, or has a value that is not a
    /// string, number or boolean.
    pub fn command_with(&self, values: &BTreeMap<String, toml::Value>) -> Result<String, String> {
        let mut line = self.command.clone();
        for (name, value) in values {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => value.to_string(),
                _ => return Err(format!("parameter `{name}` must be a string, a number or a boolean")),
            };
            let hole = format!("{{{name}}}");
            if !line.contains(&hole) {
                return Err(format!("the command has no `{hole}` for the parameter of that name"));
            }
            line = line.replace(&hole, &value);
        }
        Ok(line)
    }
}

impl Protocol {
    /// Returns the name used in files and options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Curtailed => "curtailed",
            Self::Full => "full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    const GOOD: &str = r#"title = "T"
authors = ["A"]
year = 2007
url = "u"
repo = "r"
env = "e"

[[function]]
at = "a.py::f"
description = "d"

[[experiment]]
id = "one"
description = "d"
command = "run --n {n}"
parameters.full = { n = 10 }
parameters.curtailed = { n = 2 }
result = { json_line = "stdout" }
"#;

    fn load(text: &str) -> Result<Paper> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("paper.toml");
        std::fs::write(&path, text).unwrap();
        Paper::load(&path, "p").map_err(|mut error| {
            error.place = error.place.map(|(_, line)| ("paper.toml".into(), line));
            error
        })
    }

    fn fault(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from));
        load(&GOOD.replace(from, to)).unwrap_err().to_string()
    }

    #[test]
    fn a_manifest_is_read_with_its_defaults() {
        let paper = load(GOOD).unwrap();
        let experiment = &paper.experiments[0];
        assert_eq!((experiment.tolerance, experiment.time_limit), (ToleranceRule::default(), None));
        assert_eq!(experiment.command_line(Protocol::Full).unwrap(), "run --n 10");
        assert_eq!(experiment.command_line(Protocol::Curtailed).unwrap(), "run --n 2");
    }

    #[test]
    fn faults_of_a_manifest_are_reported_with_file_and_line() {
        insta::assert_snapshot!(fault("year = 2007", "yeer = 2007"), @r#"paper.toml:3: unknown field `yeer`, expected one of `title`, `authors`, `year`, `url`, `published`, `first_commit`, `repo`, `env`, `protected`, `hidden`, `build`, `products`, `compiled`, `abi`, `function`, `region`, `experiment`"#);
        insta::assert_snapshot!(fault("year = 2007", "year = 'x"), @r#"paper.toml:3: invalid literal string, expected `'`"#);
        insta::assert_snapshot!(fault("{ n = 2 }", "{ m = 2 }"), @r#"paper.toml:13: experiment `one`: the command has no `{m}` for the parameter of that name"#);
        insta::assert_snapshot!(fault("curtailed = { n = 2 }", "curtailed = {}"), @r#"paper.toml:13: experiment `one`: parameter `n` has no value for the curtailed protocol"#);
        let more = |more: &str| fault("curtailed = { n = 2 }", &format!("curtailed = {{ n = 2 }}\nparameters.{more}"));
        insta::assert_snapshot!(more("allowed = { m = [1] }"), @"paper.toml:13: experiment `one`: `allowed` names `m`, which is not a parameter of the full protocol");
        insta::assert_snapshot!(more("allowed = { n = [] }"), @"paper.toml:13: experiment `one`: `allowed` has no value for `n`");
        insta::assert_snapshot!(more("allowed = { n = [1, [2]] }"), @"paper.toml:13: experiment `one`: `allowed` values of `n` must be strings, numbers or booleans");
        insta::assert_snapshot!(more(r#"evidence = { command = "run --n 3", attempts = 2, passing = 1, precision = 1.0, recall = 1.0, time = 0.1 }"#), @"paper.toml:13: experiment `one`: `parameters.evidence` is of another command: remove it, or measure it again with `autoexperiment curtail --write`");
        insta::assert_snapshot!(fault("{ json_line = \"stdout\" }", "{ regex = { loss = 'loss: .*' } }"), @r#"paper.toml:13: experiment `one`: expression of `loss` has no group to read the value from"#);
        insta::assert_snapshot!(fault("{ json_line = \"stdout\" }", "{ json_file = '../x' }"), @r#"paper.toml:13: experiment `one`: json_file `../x` must be a path inside the repo"#);
        let marks =
            |marks: &str| fault("description = \"d\"\n\n", &format!("description = \"d\"\nequivalent = [{marks}]\n\n"));
        insta::assert_snapshot!(marks(r#"{ mutant = "unary:1.5 - -> nothing", reason = "" }"#), @"paper.toml:11: function `a.py::f`: mutant `unary:1.5 - -> nothing` is marked as equivalent without a reason");
        insta::assert_snapshot!(marks(r#"{ mutant = "m", reason = "r" }, { mutant = "m", reason = "s" }"#), @"paper.toml:11: function `a.py::f`: mutant `m` is marked twice");
        let twice = |from: &str| load(&format!("{GOOD}\n{from}")).unwrap_err().to_string();
        insta::assert_snapshot!(twice("[[function]]\ndescription = 'again'\nat = 'a.py::f'"), @"paper.toml:22: function `a.py::f` is listed twice");
        insta::assert_snapshot!(twice("[[experiment]]\nid = 'one'\ndescription = 'd'\ncommand = 'run'\nresult = { json_line = 'stdout' }"), @"paper.toml:21: experiment `one` is listed twice");
        let region = |more: &str| twice(&format!("[[region]]\nname = 'r'\nat = 'a.py::f'\ndescription = 'd'\n{more}"));
        insta::assert_snapshot!(region(""), @"paper.toml:21: region `a.py::f[r]`: give `first` (and `last`), or `tag`");
        insta::assert_snapshot!(region("first = 'x'\ntag = 't'"), @"paper.toml:21: region `a.py::f[r]`: `tag` and `first` or `last` exclude each other");
        insta::assert_snapshot!(region("first = 'x'\nnumber = 0"), @"paper.toml:21: region `a.py::f[r]`: `number` counts from 1");
        insta::assert_snapshot!(region("first = 'x'\n[[region]]\nname = 'r'\nat = 'a.py::f'\ndescription = 'd'\ntag = 't'"), @"paper.toml:26: region `a.py::f[r]` is listed twice");
        insta::assert_snapshot!(fault("env = \"e\"", "env = \"e\"\nprotected = [\n  'data/*',\n  '[',\n]"), @"paper.toml:9: `protected` glob `[`: error parsing glob '[': unclosed character class; missing ']'");
        insta::assert_snapshot!(fault("env = \"e\"", "env = \"e\"\nhidden = ['[']"), @"paper.toml:7: `hidden` glob `[`: error parsing glob '[': unclosed character class; missing ']'");
        insta::assert_snapshot!(fault("id = \"one\"", "id = \"a b\""), @r#"paper.toml:13: experiment id `a b` must consist of letters, digits, `-`, `_` and `.`"#);
    }
}
