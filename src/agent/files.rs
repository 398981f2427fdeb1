//! Files that every agent finds in its workspace in addition to the repo: the paper, the list of experiments, and a
//! script that runs them. This module only builds the contents; `run` writes them.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::Replication;

/// Name of the file with the paper's text.
pub const PAPER: &str = "paper.txt";
/// Name of the file that describes the experiments to run and report.
pub const EXPERIMENTS: &str = "experiments.md";
/// Name of the script that runs all experiments.
const RUN_EXPERIMENTS: &str = "run_experiments.sh";

/// Returns the paths and contents of a task's files: [`PAPER`], [`EXPERIMENTS`], [`RUN_EXPERIMENTS`]. The script is
/// left out if the agent has no experiment to run.
#[must_use]
pub fn task_files(task: &Replication) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files =
        vec![(PAPER.into(), task.text.as_bytes().to_vec()), (EXPERIMENTS.into(), experiments(task).into_bytes())];
    if !task.experiments.is_empty() {
        files.push((RUN_EXPERIMENTS.into(), run_experiments(task).into_bytes()));
    }
    files
}

fn experiments(task: &Replication) -> String {
    let mut text = format!("# Experiments of \"{}\"\n", task.paper.title);
    if task.experiments.is_empty() {
        text.push_str("\nThere are no experiments to run or report. Hidden tests are run on the finished code.\n");
    }
    for experiment in &task.experiments {
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\nRun in the repository's root, for at most {} seconds:\n\n    {}\n",
            experiment.key,
            experiment.description.trim(),
            experiment.told_limit,
            experiment.command.trim().replace('\n', "\n    ")
        );
        if let Some(shape) = &experiment.shape {
            let _ = write!(text, "\nThe whole shape of the answer, `x` for a number:\n\n    {shape}\n");
        }
    }
    text
}

/// Builds the script. Each command runs in a separate subshell, so that its directory, variables and failure don't
/// affect the next command.
fn run_experiments(task: &Replication) -> String {
    let mut script = "#!/bin/sh\n# Runs the experiments of experiments.md, one after another.\ncd \"$(dirname \"$0\")\" || exit 1\nfailed=0\n".to_owned();
    for experiment in &task.experiments {
        let _ = write!(
            script,
            "\necho '== {0} =='\n(\n{1}\n) || {{ echo \"{0} failed with exit code $?\"; failed=1; }}\n",
            experiment.key,
            experiment.command.trim()
        );
    }
    script.push_str("\nexit $failed\n");
    script
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::agent::tests::support::task;

    #[test]
    fn task_files_contain_the_paper_the_experiments_and_a_script_that_runs_the_experiments() {
        let files = task_files(&task());
        let names: Vec<_> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(names, ["paper.txt", "experiments.md", "run_experiments.sh"]);
        assert_eq!(files[0].1, b"To double a number, add it to itself.\n");
        let experiments = String::from_utf8(files[1].1.clone()).unwrap();
        assert!(experiments.contains("## Experiment 2\n\nDoubles a number.") && experiments.contains("    python3 -c"));
    }

    #[test]
    fn the_script_runs_every_experiment_from_the_root_even_when_one_fails() {
        let dir = tempfile::tempdir().unwrap();
        let mut task = task();
        task.experiments[0].command = "cd / && exit 3 # a comment".into();
        task.experiments[1].command = "ls experiments.md".into();
        for (path, bytes) in task_files(&task) {
            std::fs::write(dir.path().join(path), bytes).unwrap();
        }
        let ran = Command::new("sh").arg(dir.path().join(RUN_EXPERIMENTS)).current_dir("/").output().unwrap();
        let expected = "== Experiment 1 ==\nExperiment 1 failed with exit code 3\n== Experiment 2 ==\nexperiments.md\n";
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected);
        assert_eq!(ran.status.code(), Some(1));
    }
}
