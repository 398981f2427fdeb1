//! A run as a job array of a real Slurm with three nodes on this machine (`tests/support/slurm.sh`), while tasks, nodes
//! and the submitting process are killed.
//!
//! Ignored by default (`-- --ignored slurm::`), with AUTOEXPERIMENT_SLURM_ATTEMPTS attempts at each of 11 samples by
//! two agents and AUTOEXPERIMENT_SLURM_KILLS kills.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::ledger::counting_server;
use crate::shards::{Dice, verdicts};
use crate::support::Lab;

/// A running Slurm, stopped when dropped.
struct Slurm {
    folder: tempfile::TempDir,
}

impl Slurm {
    fn start() -> Self {
        let slurm = Self { folder: tempfile::tempdir().unwrap() };
        slurm.script(&["up"], &[]);
        slurm
    }

    fn script(&self, verb: &[&str], more: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/slurm.sh");
        // No pipes, because the daemons keep inherited descriptors open.
        let mut command = Command::new(script);
        command.args(verb).arg(self.folder.path()).args(more).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(command.status().unwrap().success(), "{verb:?} {more:?}: see what `tests/support/slurm.sh` says");
    }

    fn conf(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let said = Command::new(program).args(arguments).env("SLURM_CONF", self.conf()).output().unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.script(&["down"], &[]);
    }
}

/// A task's process, and its node.
#[derive(Clone)]
struct Task {
    pid: Pid,
    parent: Pid,
    node: String,
    place: String,
}

/// Returns the running tasks of this lab's run.
fn tasks(lab: &Lab) -> Vec<Task> {
    let run = lab.path("runs/s").display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let command = read("cmdline");
        if !command.contains(&run) || !command.contains("--shard") {
            continue;
        }
        let environ = read("environ");
        let variable = |name: &str| {
            let line = environ.split('\0').find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().to_owned()
        };
        let parent = read("status").lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        found.push(Task {
            pid: Pid::from_raw(pid),
            parent: Pid::from_raw(parent.unwrap_or_default()),
            node: variable("SLURMD_NODENAME"),
            place: format!("{}_{}", variable("SLURM_ARRAY_JOB_ID"), variable("SLURM_ARRAY_TASK_ID")),
        });
    }
    found
}

/// Kills a node's daemon and all its tasks, and restarts the node at once.
fn kill_node(slurm: &Slurm, lab: &Lab, node: &str) {
    if let Ok(pid) = std::fs::read_to_string(slurm.folder.path().join(format!("{node}.pid"))) {
        let _ = kill(Pid::from_raw(pid.trim().parse().unwrap()), Signal::SIGKILL);
    }
    for task in tasks(lab).into_iter().filter(|task| task.node == node) {
        // Also kill the task's parent, which is Slurm's own process on the node, because it would report the task's
        // end.
        if task.parent.as_raw() > 1 {
            let _ = kill(task.parent, Signal::SIGKILL);
        }
        let _ = kill(task.pid, Signal::SIGKILL);
    }
    slurm.script(&["node"], &[node.trim_start_matches("node")]);
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |number| number.parse().unwrap())
}

#[test]
#[ignore = "needs Slurm, root and three minutes"]
fn a_job_array_is_completed_although_tasks_nodes_and_the_submitting_process_are_killed() {
    let kills = number("AUTOEXPERIMENT_SLURM_KILLS", 12);
    let k = number("AUTOEXPERIMENT_SLURM_ATTEMPTS", 4).to_string();
    let slurm = Slurm::start();
    let lab = Lab::new();
    let (url, plan) = counting_server();
    // The second agent's attempts cost money, and end at their limit of steps.
    let common = [
        "run",
        "-n",
        "1..3",
        "-k",
        &k,
        "--agent",
        "gold",
        "--agent",
        "react",
        "--model",
        "m",
        "--base-url",
        &url,
        "--price",
        "0,1000",
        "--max-tokens",
        "5",
        "--steps",
        "2",
        "--no-baseline",
        "--cost",
        "0.5",
    ];
    lab.ok(&[common.as_slice(), &["--name", "alone"]].concat());
    let served_before = plan.lock().unwrap().served;

    let submit = |arguments: &[&str]| -> Child {
        let log = std::fs::File::options().create(true).append(true).open(lab.path("log")).unwrap();
        let mut command = lab.command(arguments);
        command.env("SLURM_CONF", slurm.conf()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    };
    let shards = number("AUTOEXPERIMENT_SLURM_SHARDS", 6).to_string();
    let sharing = ["--name", "s", "--slurm", "--shards", &shards, "--claim-timeout", "5s", "-j", "1"];
    let mut submitter = submit(&[common.as_slice(), &sharing].concat());
    let (mut dice, begun, mut counts) = (Dice(11), Instant::now(), [0_u64; 4]);
    let said = || std::fs::read_to_string(lab.path("log")).unwrap_or_default();
    while counts.iter().sum::<u64>() < kills {
        std::thread::sleep(Duration::from_millis(500 + dice.below(2000)));
        assert!(begun.elapsed() < Duration::from_mins(40), "{}", said());
        let running = tasks(&lab);
        if let Some(status) = submitter.try_wait().unwrap() {
            assert!(status.success(), "{}", said());
            break;
        }
        if running.is_empty() {
            continue;
        }
        let task = running[dice.below(running.len() as u64) as usize].clone();
        let what = dice.below(8) as usize;
        match what {
            0..=3 => _ = kill(task.pid, Signal::SIGKILL),
            4 => kill_node(&slurm, &lab, &task.node),
            // Requeue the task, as Slurm does when another job takes the node.
            5 | 6 => _ = slurm.ask("scontrol", &["requeue", &task.place]),
            _ => {
                let _ = kill(Pid::from_raw(submitter.id().cast_signed()), Signal::SIGKILL);
                submitter.wait().unwrap();
                submitter = submit(&["resume", "s", "--slurm"]);
            }
        }
        counts[[0, 0, 0, 0, 1, 2, 2, 3][what]] += 1;
    }
    let [by_task, by_node, by_requeue, by_submitter] = counts;
    let ended = submitter.wait().unwrap();
    assert!(ended.success(), "{}", said());
    println!(
        "{by_task} tasks, {by_node} nodes and {by_submitter} submitters killed, {by_requeue} tasks requeued in {:.0} s; {} starts of shards",
        begun.elapsed().as_secs_f64(),
        std::fs::read_dir(lab.path("runs/s/shards")).unwrap().flatten().count() / 2,
    );
    let (alone, array) = (verdicts(&lab, "alone"), verdicts(&lab, "s"));
    let differing: Vec<String> = alone
        .iter()
        .filter(|&(attempt, verdict)| array.get(attempt) != Some(verdict))
        .map(|(attempt, verdict)| {
            let (agent, sample, number) = attempt;
            let steps = lab.path(&format!("runs/s/trajectories/{agent}/{sample}.{number}.jsonl"));
            let steps = std::fs::read_to_string(steps).unwrap_or_default();
            format!("{attempt:?}: {verdict:?} alone, {:?} in the array\n{steps}", array.get(attempt))
        })
        .collect();
    assert!(differing.is_empty() && array.len() == alone.len(), "{}", differing.join("\n"));
    println!("{} attempts, each with one verdict, as in the undisturbed run", array.len());
    let status: Value = serde_json::from_str(&lab.ok(&["status", "s", "--json"]).stdout).unwrap();
    let of = |name: &str| status[name].as_f64().unwrap();
    let served = (plan.lock().unwrap().served - served_before) as f64 * 0.005;
    println!("${served:.3} served, ${:.3} settled, ${:.3} reserved for calls cut off", of("cost"), of("reserved"));
    assert!(of("cost") <= served + 1e-9 && served <= of("cost") + of("reserved") + 1e-9);
    assert!((of("cost") - of("recorded")).abs() < 1e-9, "{status}");
    assert!(by_task > 0 && by_task + by_node + by_requeue + by_submitter >= kills / 2);
    assert_eq!(slurm.ask("squeue", &["-h"]), "", "tasks were left in the queue");
}

#[test]
#[ignore = "needs Slurm, root and a minute"]
fn a_job_is_shown_cancelled_and_resumed() {
    let slurm = Slurm::start();
    let lab = Lab::new();
    let settings =
        ["run", "-n", "1..3", "-k", "6", "--agent", "gold", "--no-baseline", "-j", "1", "--name", "s", "--slurm"];
    let dry = lab.ok(&[settings.as_slice(), &["--shards", "2", "--partition", "main", "--dry-run"]].concat());
    assert!(
        dry.stdout.contains("#SBATCH --partition=main\n") && dry.stdout.contains("SLURM_ARRAY_TASK_ID/2"),
        "{}",
        dry.stdout
    );
    assert!(dry.stderr.contains("sbatch --parsable --array=1-2 "), "{}", dry.stderr);
    assert!(!lab.path("runs/s").exists());
    let command = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.env("SLURM_CONF", slurm.conf()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    // The job must continue after the process that submitted it has been interrupted.
    let submitter =
        command(&[settings.as_slice(), &["--shards", "2", "--claim-timeout", "5s"]].concat()).spawn().unwrap();
    let begun = Instant::now();
    // Wait for the first session, because a task that is cancelled before its session begins leaves no session.
    let sessions = || {
        let files = std::fs::read_dir(lab.path("runs/s/shards")).into_iter().flatten().flatten();
        let files = files.map(|entry| entry.path());
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect::<Vec<_>>()
    };
    while sessions().is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(2));
        std::thread::sleep(Duration::from_millis(200));
    }
    kill(Pid::from_raw(submitter.id().cast_signed()), Signal::SIGINT).unwrap();
    let left = submitter.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&left.stderr).into_owned();
    assert!(left.status.code() == Some(130) && said.contains("stopped watching; the job continues"), "{said}");
    let status = command(&["status", "s"]).output().unwrap();
    assert!(String::from_utf8_lossy(&status.stderr).contains("Slurm job"), "{status:?}");
    let cancelled = command(&["cancel", "s"]).output().unwrap();
    assert!(cancelled.status.success(), "{cancelled:?}");
    while !slurm.ask("squeue", &["-h"]).is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(3));
        std::thread::sleep(Duration::from_millis(200));
    }
    // The tasks must have stopped by themselves after Slurm's signal, and not been killed.
    let ended: Vec<String> = sessions()
        .into_iter()
        .map(|path| {
            let session: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            session["ended"].as_str().unwrap_or("killed").to_owned()
        })
        .collect();
    assert!(!ended.is_empty() && ended.iter().all(|how| how == "interrupted"), "{ended:?}");
    let on = command(&["resume", "s", "--slurm"]).output().unwrap();
    assert!(on.status.success(), "{}", String::from_utf8_lossy(&on.stderr));
    assert_eq!(verdicts(&lab, "s").len(), 66);
}

#[test]
#[ignore = "needs Slurm, root and a minute"]
fn preempted_and_timed_out_tasks_lose_no_attempt_and_repeat_none() {
    let slurm = Slurm::start();
    let lab = Lab::new();
    let (url, plan) = counting_server();
    // The attempts wait until this file exists. They can see the file because they run without a sandbox.
    let gate = lab.path("gate");
    let step = serde_json::json!({ "tool": "command_line", "arguments": {
        "command": format!("while [ ! -e {} ]; do sleep 0.1; done", gate.display()) } });
    lab.write("wait.jsonl", &format!("{step}\n"));
    let waiting = format!("scripted:{}", lab.path("wait.jsonl").display());
    let mut settings = vec!["run", "-n", "1", "--limit", "3", "-k", "2", "--agent", &waiting, "--agent", "gold"];
    settings.extend(["--agent", "react", "--model", "m", "--base-url", &url, "--price", "0,1000", "--max-tokens", "5"]);
    settings.extend(["--steps", "2", "--cost", "0.5", "--time", "2h", "--no-baseline", "--sandbox", "none"]);
    // Six attempts wait for the file, and the three tasks can make six attempts at once. So all other attempts end
    // first, and the waiting attempts then fill all tasks.
    settings.extend(["--name", "s", "-j", "2", "--slurm", "--shards", "3", "--claim-timeout", "5s"]);
    settings.extend(["--job-time", "10", "--job-notice", "1"]);
    let log = std::fs::File::create(lab.path("log")).unwrap();
    let mut command = lab.command(&settings);
    let mut submitter = command.env("SLURM_CONF", slurm.conf()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let said = || std::fs::read_to_string(lab.path("log")).unwrap_or_default();
    let controller = || std::fs::read_to_string(slurm.folder.path().join("slurmctld.log")).unwrap_or_default();
    let wait_for = |what: &str, is_so: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < Duration::from_mins(10), "{what}: {}\n{}", said(), controller());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    let claimed = || {
        std::fs::read_dir(lab.path("runs/s/claims")).map_or(0, |entries| {
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with(".0")).count()
        })
    };
    let kept = || std::fs::read_dir(lab.path("runs/s")).into_iter().flatten().flatten().map(|entry| entry.path());
    let lines = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    let finished = || {
        let is_record = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("attempts-");
        kept().filter(is_record).map(lines).sum::<usize>()
    };
    wait_for("all attempts are begun, and only those that wait are left", &|| claimed() >= 18 && finished() >= 12);
    let running = tasks(&lab);
    let nodes: std::collections::BTreeSet<&str> = running.iter().map(|task| task.node.as_str()).collect();
    assert_eq!((running.len(), nodes.len()), (3, 3), "a task on each node");
    let (late, driven_out) = (&running[0], &running[1]);
    slurm.ask("scontrol", &["update", &format!("JobId={}", late.place), "EndTime=now+5"]);
    let out = format!("--output={}", lab.path("urgent.out").display());
    slurm.ask("sbatch", &["-p", "urgent", "-w", &driven_out.node, "-c", "2", &out, "--wrap", "true"]);
    wait_for("a task is preempted", &|| controller().contains("has been requeued to reclaim resources"));
    let submissions = || lines(lab.path("runs/s/slurm/submitted.jsonl"));
    // A task gets a signal, or is killed, when Slurm next checks the time, which is every half minute.
    wait_for("a task's time is up, and it is submitted again", &|| submissions() >= 2);
    println!("killed at its limit: {}", controller().contains("Time limit exhausted"));
    std::fs::write(&gate, "").unwrap();
    let ended = submitter.wait().unwrap();
    assert!(ended.success(), "{}", said());
    let made = verdicts(&lab, "s");
    assert_eq!(made.len(), 18, "{}", said());
    assert!(made.iter().all(|((agent, ..), (.., verified))| *verified == Value::Bool(agent == "gold")), "{made:?}");
    let status: Value = serde_json::from_str(&lab.ok(&["status", "s", "--json"]).stdout).unwrap();
    let of = |name: &str| status[name].as_f64().unwrap();
    let served = plan.lock().unwrap().served as f64 * 0.005;
    assert!((of("cost") - served).abs() < 1e-9 && of("reserved") == 0.0, "{served} served: {status}");
    assert!((of("cost") - of("recorded")).abs() < 1e-9, "{status}");
    assert_eq!(slurm.ask("squeue", &["-h"]), "", "tasks were left in the queue");
}
