//! What masked replication gives its agents beside the general task: the paper, the masked functions, the experiments.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Check, End, Ended, Solution, Task};
use crate::code::Selector;
use crate::error::Error;
use crate::suite::{Paper, ResultRule};

/// An experiment as an agent is to run and report it.
#[derive(Debug, Clone)]
pub struct TaskExperiment {
    /// Id in the manifest.
    pub id: String,
    /// Key in the answer: "Experiment 3".
    pub key: String,
    /// What is measured, and the answer's JSON shape.
    pub description: String,
    /// The whole shape of its result, without values, where that is long.
    pub shape: Option<String>,
    /// Shell command with its parameters filled in.
    pub command: String,
    /// Seconds that it may take.
    pub time_limit: f64,
    /// The limit that agents are told: the same on every machine, so that recorded conversations play back.
    pub told_limit: f64,
    /// How its result is read.
    pub result: ResultRule,
}

impl TaskExperiment {
    /// What is run and read of it.
    #[must_use]
    pub fn check(&self) -> Check {
        Check {
            id: self.id.clone(),
            key: self.key.clone(),
            command: self.command.clone(),
            time_limit: self.time_limit,
            result: self.result.clone(),
        }
    }
}

/// A masked function as it is described to an agent.
#[derive(Debug, Clone)]
pub struct TaskFunction {
    /// `path/file.py::Class.method`.
    pub at: String,
    /// What it does.
    pub description: String,
    /// Headings of the paper's sections that describe it.
    pub passages: Vec<String>,
    /// Where only a part of a function is masked: that part.
    pub region: Option<TaskRegion>,
}

/// Masked statements of a function. What the original has there is on the host only, as [`Replication::originals`].
#[derive(Debug, Clone)]
pub struct TaskRegion {
    /// Its file.
    pub file: PathBuf,
    /// The name of its function in the file; `None` outside of functions.
    pub function: Option<String>,
    /// Lines of code that are masked.
    pub lines: usize,
    /// The bytes of the masked file that stand for it.
    pub stand_in: Range<usize>,
    /// The bytes of the original file that it has.
    pub range: Range<usize>,
}

impl TaskFunction {
    /// The file and the name of the function, which for a region is the one around it.
    ///
    /// # Errors
    /// A fragment for a region outside of functions.
    pub fn selector(&self) -> Result<Selector, String> {
        match &self.region {
            None => self.at.parse().map_err(|error: Error| error.to_string()),
            Some(TaskRegion { file, function: Some(function), .. }) => Ok(Selector::new(file, function)),
            Some(_) => Err(format!("`{}` is not in a function", self.at)),
        }
    }

    /// What an agent is told of it beside its name.
    #[must_use]
    pub fn told(&self) -> String {
        let description = self.description.trim();
        let Some(region) = &self.region else { return description.to_owned() };
        let lines = if region.lines == 1 { "1 line".to_owned() } else { format!("{} lines", region.lines) };
        let place = region.function.as_ref().map_or_else(
            || format!("`{}`", region.file.display()),
            |function| format!("`{function}` in `{}`", region.file.display()),
        );
        format!(
            "{description} Only this part of {place} is missing, about {lines} of code: a `raise NotImplementedError` is in its place."
        )
    }
}

/// A sample of masked replication as agents that know papers and functions see it.
#[derive(Debug, Clone)]
pub struct Replication {
    /// The paper's manifest.
    pub paper: Arc<Paper>,
    /// The paper's text, numbers removed.
    pub text: Arc<str>,
    /// The sample's tests.
    pub experiments: Vec<TaskExperiment>,
    /// The masked functions.
    pub functions: Vec<TaskFunction>,
    /// The files that hold masked functions, as they were: path in the repo and bytes. On the host only, for the
    /// baselines; no other agent may look.
    pub originals: Vec<(PathBuf, Vec<u8>)>,
}

impl Replication {
    /// The task of an attempt at this sample.
    #[must_use]
    pub fn task(self, sample: &str, attempt: u32) -> Task {
        let keys: Vec<String> = self.experiments.iter().map(|experiment| format!("\"{}\"", experiment.key)).collect();
        Task {
            sample: sample.to_owned(),
            attempt,
            instructions: self.instructions(),
            answer: format!("one JSON object with an entry for each experiment, under the keys {}", keys.join(", ")),
            solution: Solution {
                files: self.originals.clone(),
                checks: self.checks(),
                answer: None,
                ..Solution::default()
            },
            forgery: None,
            part: Some(Arc::new(self)),
        }
    }

    /// What is run and reported.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        self.experiments.iter().map(TaskExperiment::check).collect()
    }

    /// The end of an agent that knows masked replication only, at a sample of another family: runs refuse this before
    /// they begin.
    #[must_use]
    pub fn missing(agent: &str) -> Ended {
        End::GaveUp.because(format!("`{agent}` attempts masked replication only"))
    }

    fn instructions(&self) -> String {
        let missing = self.functions.iter().map(|function| {
            let told = if function.region.is_some() { function.told() } else { function.description.clone() };
            format!("- `{}`: {told}\n", function.at)
        });
        let missing: String = missing.collect();
        let missing = match missing.as_str() {
            "" => "No function is missing.".to_owned(),
            list if self.functions.iter().any(|function| function.region.is_some()) => {
                format!(
                    "These functions and parts of functions only raise NotImplementedError:\n\n{list}\nWrite them again."
                )
            }
            list => format!("These functions only raise NotImplementedError:\n\n{list}\nWrite them again."),
        };
        format!(
            "The current directory is the repository of the paper \"{}\". `paper.txt` is the paper's text, and \
             `experiments.md` lists the experiments. {missing} Run the experiments and report their results.",
            self.paper.title
        )
    }
}
