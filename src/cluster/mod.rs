//! Runs on a Slurm cluster as a job array. Each array task works on one shard of the run, and does not need the process
//! that submitted it.
//!
//! ```text
//! runs/<run>/slurm/job.json         Slurm options of the job
//! runs/<run>/slurm/job.sh           batch script
//! runs/<run>/slurm/submitted.jsonl  one line per submission
//! runs/<run>/slurm/<job>_<task>.out a task's output
//! ```
//!
//! Slurm is asked for the state of the tasks by the job's name, and their progress is read from the run's store. So
//! nothing is lost if the submitting process ends.

mod queue;
mod script;
mod watch;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use queue::{Queue, Tasks};
pub use script::script;
pub use watch::{JobProgress, WatchEnd, WatchEvent, watch};

use crate::error::{Error, FailureKind, Result};
use crate::files::{Appender, hex, json_lines, write_durably};

/// Maximum number of tasks in an array.
pub const MOST_TASKS: u32 = 100_000;

/// Slurm options for a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlurmJob {
    /// Number of shards of the run. Each array task works on one shard.
    pub shards: u32,
    /// Partition to submit to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// Account to charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Features that nodes must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// Time limit of a task, in Slurm's notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Number of seconds before a task's time limit at which Slurm sends the task a signal to stop; 60 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<u32>,
    /// Memory of a task, in Slurm's notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Graphics processors of a task, in Slurm's notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// Number of processors of a task, equal to the number of attempts that the task makes in parallel.
    pub cpus: usize,
    /// Lines that this cluster needs in the batch script, such as further Slurm options or commands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Path of this program.
    pub program: PathBuf,
    /// Arguments of `autoexperiment resume` in each task, besides the run and the shard.
    pub arguments: Vec<String>,
}

/// One submission of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Submitted")]
pub struct Submission {
    /// Slurm's id of the job.
    pub job: String,
    /// Numbers of the submitted array tasks, such as `1-12` or `3,7`.
    pub array: String,
    /// Time of the submission.
    pub at: jiff::Timestamp,
}

/// The job array of a run.
#[derive(Debug)]
pub struct JobArray {
    /// The run's folder as an absolute path.
    pub run: PathBuf,
    /// Slurm options of the job.
    pub job: SlurmJob,
}

impl JobArray {
    /// Reads the job array of a run, if it has one.
    ///
    /// # Errors
    /// Kind `Store` if it cannot be read.
    pub fn read(run: &Path) -> Result<Option<Self>> {
        let run = std::path::absolute(run).map_err(|error| Error::io("resolve", run, error))?;
        let path = run.join("slurm/job.json");
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| Error::store("failed to read").at(&path, None).because(error))?,
        };
        let job = serde_json::from_slice(&text).map_err(|error| Error::store(error.to_string()).at(&path, None))?;
        Ok(Some(Self { run, job }))
    }

    /// Writes the job and its batch script into the run's folder.
    ///
    /// # Errors
    /// Kind `Store` if they cannot be written.
    pub fn save(&self) -> Result<()> {
        let folder = self.folder();
        let failed = |error| Error::store(format!("failed to write `{}`", folder.display())).because(error);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let mut text = serde_json::to_vec_pretty(&self.job)
            .map_err(|error| Error::internal("failed to serialise a job").because(error))?;
        text.push(b'\n');
        let written = write_durably(&folder.join("job.json"), &text)
            .and_then(|()| write_durably(&self.script_path(), script(&self.run, &self.job).as_bytes()));
        written.map_err(|error| Error { kind: FailureKind::Store, ..error })
    }

    fn folder(&self) -> PathBuf {
        self.run.join("slurm")
    }

    /// Path of the batch script.
    #[must_use]
    fn script_path(&self) -> PathBuf {
        self.folder().join("job.sh")
    }

    /// Returns a handle on the job's tasks in Slurm's queue.
    #[must_use]
    pub fn queue(&self) -> Queue {
        Queue::new(job_name(&self.run))
    }

    /// Submits these tasks and records the submission.
    ///
    /// # Errors
    /// Kind `Machine` if Slurm rejects the job, `Store` if the record cannot be written.
    pub fn submit(&self, tasks: &[u32]) -> Result<Submission> {
        let array = ranges(tasks);
        let job = queue::submit(&self.script_path(), &array)?;
        let submitted = Submission { job, array, at: crate::files::now() };
        let path = self.folder().join("submitted.jsonl");
        let written = Appender::share(&path).and_then(|mut file| file.append(&submitted));
        written.map_err(|error| Error::store(format!("failed to write `{}`", path.display())).because(error))?;
        Ok(submitted)
    }

    /// Reads all submissions so far.
    #[must_use]
    pub fn submitted(&self) -> Vec<Submission> {
        let text = std::fs::read(self.folder().join("submitted.jsonl")).unwrap_or_default();
        json_lines(&text).filter_map(|line| line.value.ok()).collect()
    }

    /// Removes all tasks of the job from Slurm's queue, and marks the job as cancelled so that no watcher submits them
    /// again.
    ///
    /// # Errors
    /// Kind `Machine` if Slurm fails, `Store` if the mark cannot be written.
    pub fn cancel(&self) -> Result<()> {
        let path = self.cancelled_path();
        write_durably(&path, b"").map_err(|error| Error { kind: FailureKind::Store, ..error })?;
        self.queue().cancel()
    }

    /// Removes the cancellation mark, so that tasks may be submitted again.
    ///
    /// # Errors
    /// Kind `Store` if the mark cannot be removed.
    pub fn allow(&self) -> Result<()> {
        match std::fs::remove_file(self.cancelled_path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::store(format!("failed to write `{}`", self.folder().display())).because(error))
            }
            _ => Ok(()),
        }
    }

    /// Whether the job has been cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled_path().exists()
    }

    fn cancelled_path(&self) -> PathBuf {
        self.folder().join("cancelled")
    }
}

/// Name of the job in Slurm, by which its tasks are found; unique among a user's runs.
fn job_name(run: &Path) -> String {
    use sha2::{Digest, Sha256};
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    let digest = hex(&Sha256::digest(run.as_os_str().as_encoded_bytes()));
    format!("ae-{plain}-{}", &digest[..8])
}

/// Formats numbers in Slurm's notation, such as `1-4,7`.
fn ranges(tasks: &[u32]) -> String {
    let mut sorted = tasks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for task in sorted {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == task => *last = task,
            _ => parts.push((task, task)),
        }
    }
    let text = |&(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_formatted_as_ranges_and_job_names_are_unique() {
        assert_eq!(ranges(&[7, 1, 2, 3, 9, 10, 2]), "1-3,7,9-10");
        assert_eq!(ranges(&[5]), "5");
        let name = job_name(Path::new("/a/runs/two words"));
        assert!(name.starts_with("ae-two_words-"), "{name}");
        assert_ne!(name, job_name(Path::new("/b/runs/two words")));
    }

    #[test]
    fn a_stored_job_array_is_read_back_from_its_runs_folder_and_is_not_yet_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        assert!(JobArray::read(folder.path()).unwrap().is_none());
        let job = SlurmJob { shards: 3, cpus: 2, program: "/bin/ae".into(), ..SlurmJob::default() };
        let array = JobArray { run: folder.path().to_owned(), job: job.clone() };
        array.save().unwrap();
        let found = JobArray::read(folder.path()).unwrap().unwrap();
        assert_eq!((&found.job, found.submitted()), (&job, Vec::new()));
        assert!(array.script_path().exists() && !array.is_cancelled());
        array.allow().unwrap();
    }
}
