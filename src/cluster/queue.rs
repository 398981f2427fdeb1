//! Calls Slurm's commands.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use crate::error::{Error, Result};

/// State of each task of a job in Slurm's queue, such as `RUNNING`.
pub type Tasks = BTreeMap<u32, String>;

/// Access to a job's tasks in Slurm.
#[derive(Debug, Clone)]
pub struct Queue {
    name: String,
}

impl Queue {
    /// Creates a handle on the job with this name.
    #[must_use]
    pub const fn new(name: String) -> Self {
        Self { name }
    }

    /// Returns the tasks that are waiting or running.
    ///
    /// # Errors
    /// Kind `Machine` if Slurm does not answer.
    pub fn tasks(&self) -> Result<Tasks> {
        let said = run(Command::new("squeue").args(["-h", "-r", "-o", "%K %T", "--name", &self.name]))?;
        Ok(parse(&said))
    }

    /// Removes all tasks from the queue; running ones are signalled to stop, and killed some time later.
    ///
    /// # Errors
    /// Kind `Machine` if Slurm does not answer.
    pub fn cancel(&self) -> Result<()> {
        run(Command::new("scancel").args(["--name", &self.name])).map(drop)
    }

    /// Counts the tasks in each final state except `COMPLETED`, such as `TIMEOUT`, according to Slurm's accounting.
    /// Returns an empty map if Slurm has no accounting.
    #[must_use]
    pub fn ends(jobs: &[String]) -> BTreeMap<String, usize> {
        let jobs = jobs.join(",");
        let said = Command::new("sacct").args(["-n", "-P", "-X", "-D", "-o", "State", "-j", &jobs]).output();
        let said = said.ok().filter(|said| said.status.success() && !jobs.is_empty());
        let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        let mut ends = BTreeMap::new();
        // Take the first word of each line, because a cancelled task's state is followed by the user who cancelled it.
        for state in text.lines().filter_map(|line| line.split_whitespace().next()) {
            if !["RUNNING", "PENDING", "COMPLETED"].contains(&state) {
                *ends.entry(state.to_owned()).or_default() += 1;
            }
        }
        ends
    }
}

fn parse(said: &str) -> Tasks {
    let task = |line: &str| {
        let (task, state) = line.trim().split_once(' ')?;
        Some((task.parse().ok()?, state.trim().to_owned()))
    };
    said.lines().filter_map(task).collect()
}

/// Submits a script as a job array and returns the job's id. `array` lists the tasks' numbers, as Slurm expects them.
pub(super) fn submit(script: &Path, array: &str) -> Result<String> {
    let said = run(Command::new("sbatch").arg("--parsable").arg(format!("--array={array}")).arg(script))?;
    // The id may be followed by a semicolon and the cluster's name.
    Ok(said.trim().split(';').next().unwrap_or_default().to_owned())
}

fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = command.output().map_err(|error| {
        let missing = error.kind() == ErrorKind::NotFound;
        let error = Error::machine(format!("`{name}` cannot be started")).because(error);
        if missing { error.hint("run this on a machine with Slurm's commands, such as a login node") } else { error }
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&stderr);
    let said = said.lines().next().unwrap_or("no output").trim();
    Err(Error::machine(format!("`{name}` failed: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_states_are_parsed_from_squeue() {
        let tasks = parse("1 RUNNING\n12 PENDING\nN/A RUNNING\n\n");
        assert_eq!(tasks, Tasks::from([(1, "RUNNING".to_owned()), (12, "PENDING".to_owned())]));
    }
}
