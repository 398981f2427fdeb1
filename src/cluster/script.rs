//! Generates the batch script of a run.

use std::path::Path;

use super::{SlurmJob, job_name};

/// Default number of seconds before a task's time limit at which it gets a signal to stop.
const NOTICE: u32 = 60;

/// Returns the batch script of a job array. Each task of the array is one shard: a process that makes a share of the
/// run's attempts.
#[must_use]
pub fn script(run: &Path, job: &SlurmJob) -> String {
    let mut lines = vec!["#!/bin/bash".to_owned()];
    let mut ask = |option: &str, value: &str| lines.push(format!("#SBATCH --{option}={value}"));
    ask("job-name", &job_name(run));
    ask("output", &quoted(&run.join("slurm/%A_%a.out").display().to_string()));
    ask("open-mode", "append");
    ask("ntasks", "1");
    ask("cpus-per-task", &job.cpus.to_string());
    // Send SIGTERM before the time limit, so that the program can stop cleanly.
    ask("signal", &format!("B:TERM@{}", job.notice.unwrap_or(NOTICE)));
    for (option, value) in [
        ("partition", &job.partition),
        ("account", &job.account),
        ("constraint", &job.constraint),
        ("time", &job.time),
        ("mem", &job.memory),
        ("gres", &job.gpus.as_ref().map(|gpus| format!("gpu:{gpus}"))),
    ] {
        if let Some(value) = value {
            ask(option, &quoted(value));
        }
    }
    lines.push("#SBATCH --requeue".to_owned());
    if !job.template.is_empty() {
        lines.push(job.template.trim_end().to_owned());
    }
    lines.push("# Workspaces are in $TMPDIR, on the node's own disk.".to_owned());
    let arguments: Vec<String> = job.arguments.iter().map(|argument| quoted(argument)).collect();
    lines.push(format!(
        "exec {} resume {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" {}",
        quoted(&job.program.display().to_string()),
        quoted(&run.display().to_string()),
        job.shards,
        arguments.join(" ")
    ));
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=%,+@".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_contains_the_job_options_and_quotes_paths() {
        let job = SlurmJob {
            shards: 12,
            partition: Some("gpu".into()),
            time: Some("04:00:00".into()),
            notice: Some(120),
            gpus: Some("1".into()),
            cpus: 4,
            template: "#SBATCH --qos=low\nmodule load python\n".into(),
            program: "/opt/a b/autoexperiment".into(),
            arguments: vec!["--no-baseline".into(), "--cache".into(), "it's".into()],
            ..SlurmJob::default()
        };
        let text = script(Path::new("/data/runs/s"), &job);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "#!/bin/bash");
        for expected in [
            "#SBATCH --output=/data/runs/s/slurm/%A_%a.out",
            "#SBATCH --partition=gpu",
            "#SBATCH --time=04:00:00",
            "#SBATCH --signal=B:TERM@120",
            "#SBATCH --gres=gpu:1",
            "#SBATCH --cpus-per-task=4",
            "#SBATCH --qos=low",
            "module load python",
            "exec '/opt/a b/autoexperiment' resume /data/runs/s --shard \"$SLURM_ARRAY_TASK_ID/12\" --no-baseline --cache 'it'\\''s'",
        ] {
            assert!(lines.contains(&expected), "{expected}\n{text}");
        }
        let last_ask = lines.iter().rposition(|line| line.starts_with("#SBATCH")).unwrap();
        let first_command = lines.iter().position(|line| !line.starts_with('#')).unwrap();
        assert!(last_ask < first_command, "{text}");
    }
}
