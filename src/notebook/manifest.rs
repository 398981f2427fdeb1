//! A task's manifest, `tasks/<id>/task.toml`.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;
use serde::Deserialize;

use super::changes::PermittedChanges;
use crate::error::{Error, Result};
use crate::files::{from_toml, line_naming};
use crate::sample::{MOST_STEPS, UpSets};
use crate::suite::{PartialDate, ResultRule};

/// A task.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskManifest {
    /// Always `notebook`.
    pub family: String,
    /// One-line title.
    pub title: String,
    /// The repo's id.
    pub repo: String,
    /// Id of the env in which attempts start.
    pub env: String,
    /// Name of the list of wheels that `pip install` can install: `wheels/<name>.txt`.
    #[serde(default)]
    pub wheels: Option<String>,
    /// The script that the agent must execute to satisfy the published rule "script executed".
    pub entry: String,
    /// The query to the agent.
    pub query: String,
    /// Additional instructions to the agent.
    #[serde(default)]
    pub instructions: Vec<String>,
    /// When the task became public, such as `2026-11-22` or `2026-11`.
    #[serde(default)]
    pub published: Option<PartialDate>,
    /// When the repo's code became public.
    #[serde(default)]
    pub first_commit: Option<PartialDate>,
    /// Parts of the repository that a solution may change, in addition to those that the gold cells change:
    /// `tune.py::main`, `tune.py::<module>`, `config.json`, `site-packages/boruta/boruta_py.py`.
    #[serde(default)]
    pub may_change: Vec<String>,
    /// Changes of constants in the gold cells with which an attempt may pass, because the solution stays right.
    #[serde(default)]
    pub harmless: Vec<HarmlessChange>,
    /// Budget of an attempt.
    #[serde(default)]
    pub budget: AttemptBudget,
    /// How to get and compare the answer.
    pub answer: AnswerRule,
    /// Blocks of gold cells, in the order in which they are executed.
    #[serde(rename = "block")]
    pub blocks: Vec<CellBlock>,
    /// Landmarks, which show how far an attempt got.
    #[serde(rename = "landmark", default)]
    pub landmarks: Vec<Landmark>,
}

/// Budget of an attempt, unless the run sets another; by default SUPER's.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttemptBudget {
    /// Maximum tokens of all calls together.
    pub context_tokens: u64,
    /// Maximum seconds of tool time.
    pub tool_seconds: f64,
    /// Maximum steps.
    pub steps: u32,
    /// Seconds after which a call returns even though its cell is still running.
    pub command_seconds: f64,
}

impl Default for AttemptBudget {
    fn default() -> Self {
        Self { context_tokens: 600_000, tool_seconds: 1800.0, steps: 100, command_seconds: 300.0 }
    }
}

/// A change of a constant in the gold cells with which the solution stays right.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HarmlessChange {
    /// The change, as named by `verify`: "rows: `200` becomes `201`".
    pub change: String,
    /// Why the solution stays right with the change.
    pub because: String,
}

/// How the harness's own run gets the answer, and how values are compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    /// The command, run in the repo's root.
    pub command: String,
    /// How to read the command's result.
    pub result: ResultRule,
    /// Maximum difference of a number from gold, relative to gold. Whole numbers and texts must be equal.
    #[serde(default = "last_digits")]
    pub relative: f64,
    /// Why `relative` is larger than its default, 1e-9.
    #[serde(default)]
    pub because: Option<String>,
    /// Time limit of the command, in seconds.
    #[serde(default = "five_minutes")]
    pub time_limit: f64,
}

/// Default of [`AnswerRule::relative`]: the precision that a deterministic run has on any machine.
const LAST_DIGITS: f64 = 1e-9;

const fn last_digits() -> f64 {
    LAST_DIGITS
}

const fn five_minutes() -> f64 {
    300.0
}

/// A block: the gold cells of one step of the task. A sample may withhold a block; the agent must then do this step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellBlock {
    /// Id of the block.
    pub id: String,
    /// Which of SUPER's obstacles the block overcomes.
    pub category: Category,
    /// Ids of earlier blocks that must be executed before.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Files with the block's cells.
    pub cells: Vec<String>,
    /// Purpose of the block; part of the agent's instructions if the block is withheld.
    pub goal: String,
}

/// SUPER's categories of obstacles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Missing or incompatible packages.
    Dependencies,
    /// Code that requires a GPU and must be made to run on a CPU.
    Cpu,
    /// Settings, options, hyper-parameters.
    Configuration,
    /// Data in another place or form.
    Data,
    /// Bugs of the repository that must be mended (SUPER calls them issues).
    Issue,
    /// The cells run the experiment that the task is about.
    Goal,
    /// Anything else.
    Other,
}

impl Category {
    /// Name as in the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dependencies => "dependencies",
            Self::Cpu => "cpu",
            Self::Configuration => "configuration",
            Self::Data => "data",
            Self::Issue => "issue",
            Self::Goal => "goal",
            Self::Other => "other",
        }
    }
}

/// A landmark: evidence that the step of a block is done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landmark {
    /// Id of the landmark.
    pub id: String,
    /// Id of the block that reaches the landmark.
    pub block: String,
    /// Regular expression that the published rule searches in the raw output of cells.
    pub pattern: String,
    /// How the harness verifies the landmark.
    pub check: LandmarkCheck,
}

/// How the harness verifies that a landmark was reached.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum LandmarkCheck {
    /// Path of a script that prints `reached` as its last line and exits with 0 if the landmark was reached.
    Probe(String),
    /// A regular expression that must match the output of [`AnswerRule::command`] when the harness runs this command.
    Entry(String),
}

impl TaskManifest {
    /// Reads and validates a manifest.
    ///
    /// # Errors
    /// Kind `Machine` if the file cannot be read; `Suite`, with the file, for any fault in it.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
        let manifest: Self = from_toml(&text, path)?;
        let faults = manifest.faults().into_iter();
        let faults = faults.map(|(about, what)| Error::suite(what).at(path, line_naming(&text, about)));
        match Error::all(faults.collect()) {
            None => Ok(manifest),
            Some(error) => Err(error),
        }
    }

    /// Lists all contradictions in the manifest: the name in question, and the fault.
    fn faults(&self) -> Vec<(&str, String)> {
        let mut faults = Vec::new();
        if self.family != "notebook" {
            faults.push((self.family.as_str(), format!("family `{}` is not `notebook`", self.family)));
        }
        if self.blocks.is_empty() || self.blocks.len() > MOST_STEPS {
            let what = format!("a task has 1 to {MOST_STEPS} blocks, and this has {}", self.blocks.len());
            faults.push(("", what));
        }
        let mut earlier = BTreeSet::new();
        for block in &self.blocks {
            let id = block.id.as_str();
            for needed in block.needs.iter().filter(|needed| !earlier.contains(needed.as_str())) {
                faults.push((id, format!("block `{id}` needs `{needed}`, which is not an earlier block")));
            }
            if block.cells.is_empty() {
                faults.push((id, format!("block `{id}` has no cells")));
            }
            if !earlier.insert(id) {
                faults.push((id, format!("block `{id}` is listed twice")));
            }
        }
        self.landmark_faults(&earlier, &mut faults);
        // A block that other blocks need must have a landmark. Every sample that withholds such a block also withholds
        // the blocks that need it. So without a landmark of its own, no check would show whether the block itself
        // matters.
        let is_needed = |id: &String| self.blocks.iter().any(|block| block.needs.contains(id));
        let is_seen = |id: &String| self.landmarks.iter().any(|landmark| landmark.block == *id);
        for block in self.blocks.iter().filter(|block| is_needed(&block.id) && !is_seen(&block.id)) {
            faults.push((block.id.as_str(), format!("block `{}` has no landmark", block.id)));
        }
        if !(self.answer.relative >= 0.0 && self.answer.time_limit > 0.0) {
            let what = "the answer's `time_limit` must be more than 0, and `relative` not less";
            faults.push(("", what.to_owned()));
        }
        if self.answer.relative > LAST_DIGITS && self.answer.because.as_deref().is_none_or(str::is_empty) {
            let what = format!("`relative` is more than {LAST_DIGITS:e}: `because` must say why");
            faults.push(("relative", what));
        }
        let parts = self.may_change.iter().map(String::as_str);
        if let Err(error) = PermittedChanges::new(parts) {
            faults.push(("may_change", error.message));
        }
        for harmless in self.harmless.iter().filter(|it| it.because.trim().is_empty()) {
            faults.push(("harmless", format!("the harmless change `{}` has an empty `because`", harmless.change)));
        }
        faults
    }

    fn landmark_faults<'a>(&'a self, blocks: &BTreeSet<&str>, faults: &mut Vec<(&'a str, String)>) {
        let mut seen = BTreeSet::new();
        for landmark in &self.landmarks {
            let id = landmark.id.as_str();
            if !blocks.contains(landmark.block.as_str()) {
                faults.push((
                    id,
                    format!("landmark `{id}` names the block `{}`, which the task does not have", landmark.block),
                ));
            }
            if !seen.insert(id) {
                faults.push((id, format!("landmark `{id}` is listed twice")));
            }
            let expressions = match &landmark.check {
                LandmarkCheck::Entry(expression) => vec![&landmark.pattern, expression],
                LandmarkCheck::Probe(_) => vec![&landmark.pattern],
            };
            for error in expressions.into_iter().filter_map(|expression| Regex::new(expression).err()) {
                faults.push((id, format!("landmark `{id}`: {error}")));
            }
        }
    }

    /// Returns the partial order of the blocks: which blocks need which earlier blocks, according to
    /// [`CellBlock::needs`].
    #[must_use]
    pub fn order(&self) -> UpSets {
        let place = |id: &String| self.blocks.iter().position(|block| block.id == *id).unwrap_or_default();
        let needs: Vec<Vec<usize>> = self.blocks.iter().map(|block| block.needs.iter().map(place).collect()).collect();
        UpSets::new(&needs)
    }

    /// Returns the landmarks of these blocks.
    pub(super) fn landmarks_of(&self, blocks: &[usize]) -> impl Iterator<Item = &Landmark> {
        let ids: BTreeSet<&str> = blocks.iter().map(|&place| self.blocks[place].id.as_str()).collect();
        self.landmarks.iter().filter(move |landmark| ids.contains(landmark.block.as_str()))
    }
}
