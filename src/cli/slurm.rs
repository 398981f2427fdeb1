//! `run --slurm`, `resume --slurm` and `cancel`: a run as a job array of a Slurm cluster.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use super::exit::ProgramExit;
use super::naming::{report_options, run_folder};
use super::shared::print;
use super::signals::stop_on_signals;
use crate::cluster::{JobArray, JobProgress, MOST_TASKS, Queue, SlurmJob, WatchEnd, WatchEvent, script, watch};
use crate::error::{Error, Result, with_causes};
use crate::report::{self, clean};
use crate::run::reading::read_outcomes;
use crate::session::Run;

/// Settings of the Slurm job.
#[derive(clap::Args)]
#[command(next_help_heading = "Slurm")]
pub(super) struct SlurmOptions {
    /// Submit the run as a Slurm job array and show its progress. Tasks that are preempted, time out or are lost with
    /// their node are submitted again. The array continues when this command ends: `resume RUN --slurm` watches it
    /// again, `status` shows it, `cancel` ends it.
    #[arg(long)]
    slurm: bool,
    /// Number of shards, each a task of the array [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TASKS)), requires = "slurm")]
    shards: Option<u32>,
    /// Partition to submit to.
    #[arg(long, requires = "slurm")]
    partition: Option<String>,
    /// Account to charge.
    #[arg(long, requires = "slurm")]
    account: Option<String>,
    /// Features that nodes must have.
    #[arg(long, requires = "slurm")]
    constraint: Option<String>,
    /// Time limit of a task, in Slurm's format.
    #[arg(long, value_name = "TIME", requires = "slurm")]
    job_time: Option<String>,
    /// Seconds from the signal that asks a task to stop to the task's time limit; unfinished attempts get no verdict and
    /// are made again [default: 60].
    #[arg(long, value_name = "SECONDS", requires = "slurm", value_parser = clap::value_parser!(u32).range(1..=65535))]
    job_notice: Option<u32>,
    /// Memory of a task, in Slurm's format, such as `16G`.
    #[arg(long, value_name = "SIZE", requires = "slurm")]
    job_memory: Option<String>,
    /// GPUs of a task, in Slurm's format, such as `1` or `a100:2`.
    #[arg(long, value_name = "GPUS", requires = "slurm")]
    job_gpus: Option<String>,
    /// File with lines for the batch script, such as `#SBATCH --qos=low` and `module load python`.
    #[arg(long, value_name = "FILE", requires = "slurm")]
    slurm_template: Option<PathBuf>,
    /// Show samples, attempts, the highest cost and the expected time, and do nothing: build nothing, ask no model.
    /// With --slurm, print the batch script and how it would be submitted.
    #[arg(long)]
    dry_run: bool,
}

impl SlurmOptions {
    /// Whether the run is to be submitted as a job.
    pub const fn is_given(&self) -> bool {
        self.slurm
    }

    /// Whether to only show the script without submitting it.
    pub(super) const fn is_dry(&self) -> bool {
        self.dry_run
    }

    /// Describes the Slurm job of a run. Each task of the job runs `autoexperiment resume` with `arguments` and makes
    /// `jobs` attempts in parallel.
    pub fn job(&self, jobs: usize, arguments: Vec<String>) -> Result<SlurmJob> {
        let template = match &self.slurm_template {
            None => String::new(),
            Some(path) => std::fs::read_to_string(path).map_err(|error| Error::unreadable(path, error))?,
        };
        let program = std::env::current_exe()
            .map_err(|error| Error::machine("failed to find the path of this program").because(error))?;
        Ok(SlurmJob {
            shards: self.shards.unwrap_or(4),
            partition: self.partition.clone(),
            account: self.account.clone(),
            constraint: self.constraint.clone(),
            time: self.job_time.clone(),
            notice: self.job_notice,
            memory: self.job_memory.clone(),
            gpus: self.job_gpus.clone(),
            cpus: jobs,
            template,
            program,
            arguments,
        })
    }

    /// Changes a run's job by the options that were given. Each task gets `arguments` instead of its earlier arguments
    /// of the same names, and makes `jobs` attempts in parallel if this is given.
    ///
    /// # Errors
    /// Kind `Usage` for another number of shards.
    pub fn changed(&self, job: SlurmJob, jobs: Option<usize>, arguments: Vec<String>) -> Result<SlurmJob> {
        if let Some(shards) = self.shards.filter(|shards| *shards != job.shards) {
            return Err(Error::usage(format!("the job was planned with {} shards, not {shards}", job.shards))
                .hint("leave out `--shards`; other processes can join with `resume RUN --shard I/N`"));
        }
        let given = self.job(jobs.unwrap_or(job.cpus), arguments)?;
        Ok(SlurmJob {
            shards: job.shards,
            partition: given.partition.or(job.partition),
            account: given.account.or(job.account),
            constraint: given.constraint.or(job.constraint),
            time: given.time.or(job.time),
            notice: given.notice.or(job.notice),
            memory: given.memory.or(job.memory),
            gpus: given.gpus.or(job.gpus),
            cpus: given.cpus,
            template: if self.slurm_template.is_some() { given.template } else { job.template },
            program: given.program,
            arguments: replaced(without_consents(job.arguments), given.arguments),
        })
    }
}

/// Removes the arguments `--changed-suite` and `--unchecked`, each of which accepts a problem for one submission only.
/// A user who resumes the run must give them again.
fn without_consents(mut arguments: Vec<String>) -> Vec<String> {
    arguments.retain(|argument| !["--changed-suite", "--unchecked"].contains(&argument.as_str()));
    arguments
}

/// Appends the arguments in `given`, and removes earlier arguments of the same names. An argument is `--name` or
/// `--name=value`.
fn replaced(mut arguments: Vec<String>, given: Vec<String>) -> Vec<String> {
    let name = |argument: &str| argument.split('=').next().unwrap_or(argument).to_owned();
    arguments.retain(|old| given.iter().all(|new| name(new) != name(old)));
    arguments.extend(given);
    arguments
}

/// Prints the script and how it would be submitted.
pub(super) fn show_script(folder: &Path, job: &SlurmJob) -> Result<ProgramExit> {
    let folder = std::path::absolute(folder).map_err(|error| Error::io("resolve", folder, error))?;
    print(&script(&folder, job))?;
    talk!("sbatch --parsable --array=1-{} {}", job.shards, folder.join("slurm/job.sh").display());
    Ok(ProgramExit::Done)
}

/// Plans a run, submits it and watches it.
pub(super) async fn submit_new(run: Run, job: SlurmJob) -> Result<ProgramExit> {
    let Some(folder) = super::session::plan(run).await? else { return Ok(ProgramExit::Interrupted) };
    submit(&folder, job).await
}

/// Submits a planned run and watches it. Submits nothing if tasks of the run are in Slurm's queue already.
pub async fn submit(folder: &Path, job: SlurmJob) -> Result<ProgramExit> {
    let run = std::path::absolute(folder).map_err(|error| Error::io("resolve", folder, error))?;
    let array = JobArray { run, job };
    array.save()?;
    array.allow()?;
    let known = array.queue().tasks()?;
    let new: Vec<u32> = (1..=array.job.shards).filter(|task| !known.contains_key(task)).collect();
    if !known.is_empty() {
        talk!("{} tasks are in Slurm's queue already; options given now count for tasks submitted later", known.len());
    } else if !new.is_empty() {
        let submitted = array.submit(&new)?;
        talk!("submitted job {} with {} tasks", clean(&submitted.job), array.job.shards);
    }
    follow(&array).await
}

/// Watches a run's job until the job ends, or until a signal such as Ctrl-C ends only the watching.
async fn follow(array: &JobArray) -> Result<ProgramExit> {
    let mut tell = |told: WatchEvent<'_>| match told {
        WatchEvent::Progress(seen) => talk!("{}", line(seen)),
        WatchEvent::Submitted(again) => {
            talk!("submitted tasks {} again, as job {}", clean(&again.array), clean(&again.job));
        }
        WatchEvent::Unanswered(error) => talk!("warning: {}; asking again", clean(&with_causes(error))),
    };
    let folder = array.run.display();
    if std::io::stderr().is_terminal() {
        talk!("Ctrl-C stops watching; the job continues. `autoexperiment cancel {folder}` ends it.");
    }
    if watch(array, &mut tell, &stop_on_signals()).await? == WatchEnd::Left {
        super::render_message(
            "stopped watching; the job continues",
            Some(&format!(
                "watch it with `autoexperiment resume {folder} --slurm`, end it with `autoexperiment cancel {folder}`"
            )),
        );
        return Ok(ProgramExit::Interrupted);
    }
    let jobs: Vec<String> = array.submitted().into_iter().map(|submitted| submitted.job).collect();
    for (end, count) in Queue::ends(&jobs) {
        talk!("{count} tasks ended as {}", clean(&end));
    }
    results(&array.run)
}

fn line(seen: &JobProgress) -> String {
    let tasks: Vec<String> = seen.tasks.iter().map(|(state, count)| format!("{count} {}", clean(state))).collect();
    let tasks = if tasks.is_empty() { "no tasks".to_owned() } else { tasks.join(", ") };
    format!("{}/{} finished, {} lost; Slurm: {tasks}", seen.finished, seen.planned, seen.lost)
}

/// Prints the results of a finished job.
fn results(folder: &Path) -> Result<ProgramExit> {
    let reading = read_outcomes(folder)?;
    let planned = reading.run.as_ref().map(|run| run.planned.clone()).unwrap_or_default();
    let k = reading.run.as_ref().map_or(1, |run| run.configuration.k);
    let mut options = report_options(&reading.records, &planned, k, &[]);
    options.notes.extend(reading.run.as_ref().and_then(|run| report::changes_warning(&run.run, run)));
    print(&report::console(&report::summarise(&reading.records, &options)))?;
    print(&format!("\nrun: {}\n", folder.display()))?;
    let wanted: usize = planned.iter().map(|one| one.attempts).sum();
    let finished = crate::run::scored(&reading.records).count();
    if finished == wanted {
        return Ok(ProgramExit::Done);
    }
    let ends = |name: &str| {
        let sessions = reading.run.iter().flat_map(|run| &run.sessions);
        sessions.filter_map(|session| session.ended.as_deref()).any(|ended| ended == name)
    };
    let (exit, what) = match () {
        () if ends("cost_limit") => {
            (ProgramExit::CostLimit, "stopped before `--max-cost` could be exceeded".to_owned())
        }
        () if ends("lost") => {
            (ProgramExit::Lost, format!("{} attempt(s) were lost to infrastructure", wanted - finished))
        }
        () => {
            (ProgramExit::Interrupted, format!("the job has ended, and {} attempt(s) are not made", wanted - finished))
        }
    };
    let hint = format!("continue with `autoexperiment resume {} --slurm`", folder.display());
    super::render_message(&what, Some(&hint));
    Ok(exit)
}

/// End a run's Slurm job
///
/// Removes the tasks of a run that was started with `run --slurm` from Slurm's queue. Running tasks are asked to stop,
/// and finished attempts are kept. `resume RUN --slurm` continues the run.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  autoexperiment cancel sweep")]
pub struct CancelArguments {
    /// A run: its folder, or its name under --runs.
    run: String,
    /// Folder of runs.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub fn cancel(arguments: &CancelArguments) -> Result<()> {
    let folder = run_folder(&arguments.run, &arguments.runs)?;
    let array = load(&folder)?;
    let tasks = array.queue().tasks()?.len();
    array.cancel()?;
    talk!("cancelled {tasks} tasks; continue with `autoexperiment resume {} --slurm`", folder.display());
    Ok(())
}

/// Returns the job of a run, which must have one.
pub fn load(folder: &Path) -> Result<JobArray> {
    JobArray::read(folder)?.ok_or_else(|| {
        Error::usage(format!("run `{}` has no Slurm job", folder.display()))
            .hint("start one with `run --slurm`; a run on this machine is stopped with Ctrl-C")
    })
}

/// Describes a run's job for `status`; `None` for a run without one.
pub fn status(folder: &Path) -> Option<String> {
    let array = JobArray::read(folder).ok()??;
    let jobs: Vec<String> = array.submitted().into_iter().map(|one| clean(&one.job)).collect();
    let jobs = jobs.join(", ");
    Some(match array.queue().tasks() {
        Err(error) => format!("Slurm job {jobs}: {}", clean(&with_causes(&error))),
        Ok(tasks) if tasks.is_empty() => format!("Slurm job {jobs}: no task waits or runs"),
        Ok(tasks) => {
            let mut states: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
            for state in tasks.values() {
                *states.entry(state.to_lowercase()).or_default() += 1;
            }
            let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {}", clean(state))).collect();
            format!("Slurm job {jobs}: {}", states.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{replaced, without_consents};

    #[test]
    fn an_argument_replaces_the_earlier_one_of_its_name() {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let now = replaced(list("--jobs=2 --cache=a --fresh"), list("--cache=b --fresh --max-cost=3"));
        assert_eq!(now, list("--jobs=2 --cache=b --fresh --max-cost=3"));
    }

    #[test]
    fn what_one_resume_allowed_is_not_allowed_to_the_next() {
        let earlier = ["--changed-suite", "--jobs=2", "--unchecked"].map(str::to_owned).to_vec();
        assert_eq!(without_consents(earlier), ["--jobs=2"]);
    }
}
