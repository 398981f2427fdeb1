//! Slurm's own commands.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output};

use crate::error::{Error, Result};

/// The tasks of a run's job in Slurm's queue: the state of each, as `RUNNING`.
pub type Tasks = BTreeMap<u32, String>;

/// A job's tasks, as Slurm knows them.
#[derive(Debug, Clone)]
pub struct Queue {
    name: String,
}

impl Queue {
    /// Those of the job of this name.
    #[must_use]
    pub const fn new(name: String) -> Self {
        Self { name }
    }

    /// The tasks that wait or run.
    ///
    /// # Errors
    /// Kind `Machine` when Slurm does not answer.
    pub fn tasks(&self) -> Result<Tasks> {
        let said = run(Command::new("squeue").args(["-h", "-r", "-o", "%K %T", "--name", &self.name]))?;
        Ok(parse(&said))
    }

    /// Takes all tasks out of the queue; those that run are told to stop, and killed some time later.
    ///
    /// # Errors
    /// Kind `Machine` when Slurm does not answer.
    pub fn cancel(&self) -> Result<()> {
        run(Command::new("scancel").args(["--name", &self.name])).map(drop)
    }

    /// How many tasks have ended in which way, by accounting: `2 TIMEOUT`. Empty where there is none.
    #[must_use]
    pub fn ends(jobs: &[String]) -> BTreeMap<String, usize> {
        let jobs = jobs.join(",");
        let said = Command::new("sacct").args(["-n", "-P", "-X", "-D", "-o", "State", "-j", &jobs]).output();
        let said = said.ok().filter(|said| said.status.success() && !jobs.is_empty());
        let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        let mut ends = BTreeMap::new();
        // Who cancelled one is told behind the state.
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

/// Submits a script as an array of these tasks; gives the job's number.
pub(super) fn submit(script: &Path, array: &str) -> Result<String> {
    let said = run(Command::new("sbatch").arg("--parsable").arg(format!("--array={array}")).arg(script))?;
    // Behind a semicolon stands the cluster.
    Ok(said.trim().split(';').next().unwrap_or_default().to_owned())
}

fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = command.output().map_err(|error| {
        let missing = error.kind() == ErrorKind::NotFound;
        let error = Error::machine(format!("`{name}` cannot be started")).because(error);
        if missing { error.hint("run this on a machine with Slurm's commands, as a login node") } else { error }
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&stderr);
    let said = said.lines().next().unwrap_or("nothing was said").trim();
    Err(Error::machine(format!("`{name}` failed: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_from_what_squeue_says() {
        let tasks = parse("1 RUNNING\n12 PENDING\nN/A RUNNING\n\n");
        assert_eq!(tasks, Tasks::from([(1, "RUNNING".to_owned()), (12, "PENDING".to_owned())]));
    }
}
