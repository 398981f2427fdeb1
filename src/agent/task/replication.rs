//! The part of a task that is specific to masked replication: the paper, the masked functions, the experiments. In
//! masked replication, function bodies of a paper's repo are removed (masked), and the agent writes them again and runs
//! the experiments.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::{AttemptEnd, Check, End, Solution, Task};
use crate::code::Selector;
use crate::error::Error;
use crate::suite::{Paper, ResultRule};

/// An experiment that the agent has to run and report.
#[derive(Debug, Clone)]
pub struct TaskExperiment {
    /// The experiment's id in the manifest.
    pub id: String,
    /// The experiment's key in the answer, such as "Experiment 3".
    pub key: String,
    /// Description of the measurement, and the JSON shape of its answer.
    pub description: String,
    /// The whole shape of the result, with all keys; `None` unless the result is long and `description` lacks some of
    /// it.
    pub shape: Option<String>,
    /// Shell command, with the values of its parameters filled in.
    pub command: String,
    /// Time limit in seconds.
    pub time_limit: f64,
    /// Time limit in seconds that prompts state. Unlike `time_limit`, which is raised on a slow machine, it is the same
    /// on every machine, because recorded conversations can be played back only if the prompts stay the same.
    pub told_limit: f64,
    /// How to read the result.
    pub result: ResultRule,
}

impl TaskExperiment {
    /// Returns the experiment as a check: its command, its time limit, and where the result is read from.
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

/// A masked function, as described to an agent.
#[derive(Debug, Clone)]
pub struct TaskFunction {
    /// The function's name, as `path/file.py::Class.method`.
    pub at: String,
    /// Description from the manifest.
    pub description: String,
    /// Headings of the paper's sections that describe the function.
    pub passages: Vec<String>,
    /// The masked statements, if only a part of the function is masked; `None` if the whole function is masked.
    pub region: Option<TaskRegion>,
}

/// A region: masked statements in a file, usually in a function. The original statements are only on the host, in
/// [`Replication::originals`].
#[derive(Debug, Clone)]
pub struct TaskRegion {
    /// The file that contains the masked statements.
    pub file: PathBuf,
    /// Name of the function that contains the masked statements; `None` if they are in no function.
    pub function: Option<String>,
    /// Number of masked lines of code.
    pub lines: usize,
    /// Byte range, in the masked file, of the statement that replaces the masked statements.
    pub stand_in: Range<usize>,
    /// Byte range of the masked statements in the original file.
    pub range: Range<usize>,
}

impl TaskFunction {
    /// Returns the file and the name of the masked function or, if only some statements are masked, of the function
    /// that contains these statements.
    ///
    /// # Errors
    /// An error message if the masked statements are in no function.
    pub fn selector(&self) -> Result<Selector, String> {
        match &self.region {
            None => self.at.parse().map_err(|error: Error| error.to_string()),
            Some(TaskRegion { file, function: Some(function), .. }) => Ok(Selector::new(file, function)),
            Some(_) => Err(format!("`{}` is not in a function", self.at)),
        }
    }

    /// Returns the description for agents. If only some statements are masked, adds a sentence that says so.
    #[must_use]
    pub fn full_description(&self) -> String {
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

/// A sample of masked replication, with the data about paper, functions and experiments that agents need.
#[derive(Debug, Clone)]
pub struct Replication {
    /// The paper's manifest.
    pub paper: Arc<Paper>,
    /// The paper's text without its results.
    pub text: Arc<str>,
    /// The experiments that the agent has to run and report. The sample's hidden experiments are not among them.
    pub experiments: Vec<TaskExperiment>,
    /// The masked functions.
    pub functions: Vec<TaskFunction>,
    /// The original files that contain masked functions: path in the repo and bytes. They stay on the host. The agents
    /// `gold` and `mutant` take code from them; `fixed` only finds out from them which function calls which.
    pub originals: Vec<(PathBuf, Vec<u8>)>,
}

impl Replication {
    /// Builds the task of one attempt at this sample.
    #[must_use]
    pub fn task(self, sample: &str, attempt: u32) -> Task {
        let keys: Vec<String> = self.experiments.iter().map(|experiment| format!("\"{}\"", experiment.key)).collect();
        Task {
            sample: sample.to_owned(),
            attempt,
            instructions: self.instructions(),
            answer: if keys.is_empty() {
                "an empty JSON object, `{}`: there is nothing to report".to_owned()
            } else {
                format!("one JSON object with an entry for each experiment, under the keys {}", keys.join(", "))
            },
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

    /// Returns each experiment of the sample as a check.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        self.experiments.iter().map(TaskExperiment::check).collect()
    }

    /// Returns how an attempt ends if its agent supports only masked replication but got a sample of another family
    /// (kind of task). A run rejects such a combination before its first attempt.
    #[must_use]
    pub fn missing(agent: &str) -> AttemptEnd {
        End::GaveUp.because(format!("`{agent}` attempts masked replication only"))
    }

    fn instructions(&self) -> String {
        let missing = self.functions.iter().map(|function| {
            let told =
                if function.region.is_some() { function.full_description() } else { function.description.clone() };
            format!("- `{}`: {}\n", function.at, told.replace('\n', "\n  "))
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
        let title = &self.paper.title;
        let place = format!(
            "The current directory is the repository of the paper \"{title}\". `paper.txt` is the paper's text"
        );
        if self.experiments.is_empty() {
            return format!("{place}. {missing} Hidden tests are run on the finished code.");
        }
        format!(
            "{place}, and `experiments.md` lists the experiments. {missing} Run the experiments and report their results."
        )
    }
}
