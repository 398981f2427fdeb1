//! No finished attempt is ever lost by kills, signals, full disks or files that were cut off.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Lab;
use crate::support::episodes::descendants;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

const RUN: [&str; 8] = ["run", "-n", "1..3", "--agent", "gold", "--agent", "noop", "--no-baseline"];

/// Returns the verdicts by attempt, and checks that each is there once.
fn verdicts(lab: &Lab, run: &str) -> BTreeMap<(String, String, u64), bool> {
    let mut verdicts = BTreeMap::new();
    for record in lab.records(run) {
        let text = |field: &str| record[field].as_str().unwrap().to_owned();
        let key = (text("agent"), text("sample"), record["attempt"].as_u64().unwrap());
        let twice = verdicts.insert(key, record["pass"].as_bool().unwrap());
        assert!(twice.is_none(), "{record} was run twice");
    }
    verdicts
}

/// Finds the processes on this machine whose command line or working folder names this lab.
fn survivors(lab: &Lab) -> Vec<String> {
    let needle = lab.path("").display().to_string();
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let folder = fs::read_link(process.path().join("cwd")).unwrap_or_default();
        let is_test = process.file_name().to_string_lossy() == std::process::id().to_string();
        if !is_test && (command.contains(&needle) || folder.starts_with(&needle)) {
            found.push(command);
        }
    }
    found
}

/// Returns the rows of a run's report, which must be the same for a killed and resumed run.
fn table(lab: &Lab, run: &str) -> Vec<[serde_json::Value; 4]> {
    let text = lab.ok(&["report", run, "--json"]).stdout;
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| ["agent", "n", "passed", "pass_at"].map(|field| row[field].clone())).collect()
}

#[test]
fn a_run_killed_during_any_write_resumes_to_the_same_results_as_an_unkilled_run() {
    let lab = Lab::new();
    let run = |name| {
        let samples = ["run", "--sample", "tiny_0", "--sample", "tiny_1"];
        [&samples[..], &["--agent", "gold", "--agent", "noop", "--no-baseline", "-j", "1", "--name", name]].concat()
    };
    lab.ok(&run("reference"));
    let expected = verdicts(&lab, "reference");
    // For each run, the moments at which it is killed, in order: the file being written, the moment of the write, and
    // the number of the write to that file.
    for (name, moments) in [
        ("begun", &["run.json before 1", "run.json after 1"][..]),
        (
            "recorded",
            &["attempts.jsonl before 1", "attempts.jsonl torn 1", "attempts.jsonl after 1", "attempts.jsonl torn 2"],
        ),
        (
            "attempted",
            &["tiny_0.0.jsonl before 1", "tiny_0.0.jsonl torn 2", "tiny_1.0.patch torn 1", "tiny_1.0.patch after 1"],
        ),
    ] {
        let next = || {
            let is_begun = lab.path(&format!("runs/{name}/run.json")).exists();
            if is_begun { vec!["resume", name, "--no-baseline", "-j", "1"] } else { run(name) }
        };
        for moment in moments {
            let path = lab.path(&format!("runs/{name}/attempts.jsonl"));
            let before = fs::read_to_string(&path).unwrap_or_default();
            let status = lab.command(&next()).env("AUTOEXPERIMENT_KILL_AT", moment).output().unwrap().status;
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{moment}: {status}");
            let kept = &before[..before.rfind('\n').map_or(0, |last| last + 1)];
            let now = fs::read_to_string(&path).unwrap_or_default();
            assert!(now.starts_with(kept), "{moment}: what was finished changed");
        }
        lab.ok(&next());
        assert_eq!(verdicts(&lab, name), expected, "{name}");
        assert_eq!(table(&lab, name), table(&lab, "reference"), "{name}");
    }
}

#[test]
#[ignore = "kills the program at 50 random moments, which takes a minute"]
fn a_run_killed_50_times_resumes_to_the_same_end_as_one_that_was_not() {
    let lab = Lab::new();
    let mut reference = RUN.to_vec();
    reference.extend(["--name", "reference"]);
    let begun = Instant::now();
    lab.ok(&reference);
    let whole = begun.elapsed();
    let expected = verdicts(&lab, "reference");
    assert_eq!(expected.len(), 2 * 11);

    // Kill at moments from a fixed sequence. They are spread over a whole run, including its start and its end.
    let mut kills = 0;
    let mut round = 0;
    while kills < 50 {
        let name = format!("killed-{round}");
        round += 1;
        let mut arguments = RUN.to_vec();
        arguments.extend(["--name", &name]);
        let mut stored = String::new();
        loop {
            let mut child = lab.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let moment = whole.mul_f64(f64::from(kills * 37 % 50) / 50.0);
            std::thread::sleep(moment);
            let ended = child.try_wait().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            let path = lab.path(&format!("runs/{name}/attempts.jsonl"));
            let now = fs::read_to_string(&path).unwrap_or_default();
            let kept = &stored[..stored.rfind('\n').map_or(0, |last| last + 1)];
            assert!(now.starts_with(kept), "what was finished changed");
            stored = now;
            if lab.path(&format!("runs/{name}/run.json")).exists() {
                arguments = vec!["resume", &name, "--no-baseline"];
            }
            if ended.is_some_and(|status| status.success()) || kills >= 50 {
                break;
            }
        }
        if arguments[0] == "run" && !lab.path(&format!("runs/{name}/run.json")).exists() {
            continue;
        }
        lab.ok(&["resume", &name, "--no-baseline"]);
        let kept = &stored[..stored.rfind('\n').map_or(0, |last| last + 1)];
        assert!(lab.read(&format!("runs/{name}/attempts.jsonl")).starts_with(kept));
        assert_eq!(verdicts(&lab, &name), expected);
        assert_eq!(table(&lab, &name), table(&lab, "reference"));
    }
    let begun = Instant::now();
    while !survivors(&lab).is_empty() && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(survivors(&lab), Vec::<String>::new());
    // The last session has removed the files that the killed sessions left in the scratch folder.
    let left: Vec<_> = fs::read_dir(lab.path("scratch")).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn ctrl_c_stops_cleanly_and_explains_how_to_resume() {
    let lab = Lab::new();
    lab.write("steps", "{\"tool\": \"command_line\", \"arguments\": {\"command\": \"sleep 30\"}}\n");
    let agent = format!("scripted:{}", lab.path("steps").display());
    let arguments = ["run", "-n", "1", "--agent", "noop", "--agent", &agent, "--name", "r", "--no-baseline", "-j", "2"];
    let child = lab.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while fs::read_to_string(lab.path("runs/r/attempts.jsonl")).unwrap_or_default().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no attempt finished");
        std::thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(130));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("autoexperiment resume runs/r"), "{message}");
    // The attempt that was stopped has a record with the step that it took, and will be repeated.
    assert!(lab.records("r").iter().all(|record| record["agent"] == "noop" || record["end"] == "cancelled"));
}

/// A batch system, or a machine that shuts down, sends SIGTERM to all processes of a job. An experiment may get it some
/// time before the program does, and then ends without a result. The attempt must not fail because of this.
#[test]
fn a_stop_signal_that_reaches_an_experiment_before_the_harness_does_not_fail_the_attempt() {
    let lab = Lab::new();
    // With this code, the last experiment is slow enough to be stopped.
    let body = r#"    import sys, time; time.sleep(2 * ("table" in sys.argv)); return sum(values) \/ len(values)"#;
    let write = format!("sed -i 's/    raise NotImplementedError/{body}/' tiny/means.py");
    let agent = lab.scripted("steps", &[json!({"tool": "command_line", "arguments": {"command": write}})]);
    let common = ["run", "--sample", "tiny_0", "--agent", &agent, "--name", "r", "--no-baseline"];
    let mut arguments = common.as_slice();
    for (signal, delay) in [(Signal::SIGTERM, 300), (Signal::SIGKILL, 50)] {
        let child = lab.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let harness = Pid::from_raw(child.id().cast_signed());
        let begun = Instant::now();
        let experiment = loop {
            assert!(begun.elapsed() < Duration::from_mins(1), "no experiment was verified");
            std::thread::sleep(Duration::from_millis(20));
            let all = descendants(child.id());
            let is_experiment = |pid: &u32| {
                let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&command).contains("-m\0tiny\0table")
            };
            if all.iter().any(is_experiment) {
                break all;
            }
        };
        // Wait until Python has imported the code and sleeps in it.
        std::thread::sleep(Duration::from_millis(400));
        for pid in experiment.into_iter().rev() {
            let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
        }
        std::thread::sleep(Duration::from_millis(delay));
        kill(harness, signal).unwrap();
        child.wait_with_output().unwrap();
        let counted = lab.records("r").into_iter().filter(|record| record["verified"].is_object());
        assert_eq!(counted.collect::<Vec<_>>(), Vec::<serde_json::Value>::new(), "{signal}");
        arguments = &["resume", "r"];
    }
    lab.ok(arguments);
    let records = lab.records("r");
    assert_eq!(records.last().unwrap()["verified"]["pass"], true, "{records:?}");
}

#[test]
fn time_while_the_harness_is_stopped_is_not_charged_to_the_attempt() {
    let lab = Lab::new();
    lab.write("steps", "{\"tool\": \"command_line\", \"arguments\": {\"command\": \"sleep 2.125\"}}\n");
    let agent = format!("scripted:{}", lab.path("steps").display());
    let arguments = ["run", "--sample", "tiny_0", "--agent", &agent, "--name", "r", "--no-baseline"];
    let child = lab.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sleeps = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.map(|it| fs::read(it.path().join("cmdline")).unwrap_or_default()).any(|line| line == b"sleep\x002.125\x00")
    };
    let begun = Instant::now();
    while !sleeps() {
        assert!(begun.elapsed() < Duration::from_mins(1), "the command did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let harness = Pid::from_raw(child.id().cast_signed());
    kill(harness, Signal::SIGSTOP).unwrap();
    std::thread::sleep(Duration::from_secs(6));
    kill(harness, Signal::SIGCONT).unwrap();
    child.wait_with_output().unwrap();
    let charged = lab.records("r")[0]["tool_seconds"].as_f64().unwrap();
    assert!((2.1..5.0).contains(&charged), "{charged} s for a command of 2.125 s");
}

#[test]
fn a_torn_last_line_is_dropped_and_that_attempt_made_again() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    let whole = lab.read("runs/r/attempts.jsonl");
    lab.write("runs/r/attempts.jsonl", &whole[..whole.len() - 40]);
    assert!(lab.ok(&["report", "r", "--json"]).stdout.contains("\"attempts\": 3"));
    lab.ok(&["resume", "r"]);
    assert_eq!(verdicts(&lab, "r").len(), 4);
}

#[test]
fn a_run_with_a_broken_line_in_the_middle_is_not_resumed_and_the_line_is_named() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    let whole = lab.read("runs/r/attempts.jsonl");
    lab.write("runs/r/attempts.jsonl", &whole.replacen("{\"agent\"", "garbage", 1));
    let message = lab.fails(7, &["resume", "r"]);
    assert!(message.contains("attempts.jsonl:1: broken line"), "{message}");
}

#[test]
fn two_processes_never_write_to_one_run() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    let lock = fs::File::open(lab.path("runs/r/lock")).unwrap();
    lock.lock().unwrap();
    let message = lab.fails(7, &["resume", "r"]);
    assert!(message.contains("is being written by another process"), "{message}");
}

#[test]
fn a_run_of_another_format_version_is_refused() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r"]);
    lab.edit("runs/r/run.json", "\"format\": 1", "\"format\": 2");
    let message = lab.fails(7, &["report", "r"]);
    assert!(message.contains("the run is of format 2, this version reads format 1"), "{message}");
}

#[test]
fn a_store_that_cannot_be_written_fails_the_run_before_anything_is_spent() {
    let lab = Lab::new();
    let message = lab.fails(7, &["run", "-n", "1", "--agent", "noop", "--runs", "/proc/runs"]);
    assert!(message.contains("--runs DIR"), "{message}");
}

#[test]
#[ignore = "needs root to mount a small disk"]
fn a_full_disk_keeps_finished_attempts() {
    let lab = Lab::new();
    // A small disk for the runs, in a mount namespace that ends with the shell.
    let script = format!(
        "mkdir -p small && mount -t tmpfs -o size=220k tmpfs small && \
         {program} run -n 1..3 -k 12 --agent gold --no-baseline --runs small --name r; code=$?; \
         cp -r small/r kept; exit $code",
        program = crate::support::PROGRAM
    );
    let mut command = lab.command(&[]);
    let template: Vec<_> =
        command.get_envs().map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(lab.path(""));
    for (key, value) in template {
        if let Some(value) = value {
            command.env(key, value);
        }
    }
    let ran: crate::support::Ran = command.output().unwrap().into();
    assert_eq!(ran.code, 7, "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("free some space"), "{}", ran.stderr);
    let kept = lab.read("kept/attempts.jsonl");
    assert!(kept.lines().count() > 3, "{kept}");
    lab.ok(&["resume", "kept", "--runs", ".", "--no-baseline"]);
    let finished = lab.read("kept/attempts.jsonl");
    let whole = &kept[..=kept.rfind('\n').unwrap()];
    assert!(finished.starts_with(whole));
    // An attempt that was stopped with the run is on record as cancelled, with its cost, and was repeated.
    let counted = finished.lines().filter(|line| !line.contains(r#""end":"cancelled""#));
    assert_eq!(counted.count(), 11 * 12);
}

/// Makes a folder look as if it had been left a minute ago.
fn age(path: &std::path::Path) {
    let old = std::time::SystemTime::now() - Duration::from_mins(1);
    fs::File::open(path).unwrap().set_modified(old).unwrap();
}

#[test]
fn clean_and_resume_remove_the_temporary_folders_of_killed_processes() {
    let lab = Lab::new();
    let temporary = lab.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = |arguments: &[&str]| lab.command(arguments).env("TMPDIR", &temporary).output().unwrap();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--name", "r", "--no-baseline"]);
    for sweep in [&["clean"][..], &["resume", "r", "--no-baseline"]] {
        let mut killed = lab.command(&["run", "-n", "1", "--agent", "noop", "--name", "s", "--no-baseline"]);
        killed.env("AUTOEXPERIMENT_KILL_AT", "run.json before 1").output().unwrap();
        let starting = || {
            let entries = fs::read_dir(lab.path("runs")).unwrap().flatten().map(|entry| entry.path());
            entries.filter(|path| path.display().to_string().contains(".starting-")).collect::<Vec<_>>()
        };
        assert_eq!(starting().len(), 1);
        age(&starting()[0]);
        let probe = temporary.join("autoexperiment-sandbox-left");
        fs::create_dir_all(probe.join("work/work")).unwrap();
        age(&probe);
        let swept = run(sweep);
        assert!(swept.status.success(), "{}", String::from_utf8_lossy(&swept.stderr));
        assert_eq!(starting(), Vec::<std::path::PathBuf>::new(), "{sweep:?}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{sweep:?}");
    }
}

#[test]
fn a_run_whose_record_file_is_removed_ends_with_an_error_and_saves_new_records_elsewhere() {
    let lab = Lab::new();
    lab.write("steps", "{\"tool\": \"command_line\", \"arguments\": {\"command\": \"sleep 1\"}}\n");
    let agent = format!("scripted:{}", lab.path("steps").display());
    let arguments = ["run", "-n", "1", "--agent", "noop", "--agent", &agent, "--name", "r", "--no-baseline", "-j", "1"];
    let child = lab.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let path = lab.path("runs/r/attempts.jsonl");
    let begun = Instant::now();
    while fs::read_to_string(&path).unwrap_or_default().is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(1), "no attempt finished");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::remove_file(&path).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{message}");
    assert!(message.contains("was removed or replaced") && message.contains("rescued-1.jsonl"), "{message}");
    fs::rename(lab.path("runs/r/rescued-1.jsonl"), &path).unwrap();
    lab.ok(&["resume", "r", "--no-baseline"]);
    assert_eq!(verdicts(&lab, "r").len(), 8);
}

#[test]
fn an_env_in_use_is_not_pruned_and_an_attempt_whose_env_vanishes_is_lost_and_not_failed() {
    let lab = Lab::new();
    lab.write(
        "steps",
        "{\"tool\": \"command_line\", \"arguments\": {\"command\": \"sleep 4\"}}\n\
         {\"tool\": \"final_answer\", \"arguments\": {\"answer\": \"{}\"}}\n",
    );
    let agent = format!("scripted:{}", lab.path("steps").display());
    // This test removes the mark of a complete env, so it must not use the cache that other tests share.
    let cache = lab.path("own-cache");
    let command = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.env("AUTOEXPERIMENT_CACHE", &cache);
        command
    };
    // Leave out verification, because it would notice that the env is missing. Here, the loss must be noticed without
    // it.
    let run = ["run", "-n", "1", "--limit", "1", "--agent", &agent, "--name", "r", "--no-baseline", "--no-verify"];
    let child = command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while !lab.path("runs/r/run.json").exists() {
        assert!(begun.elapsed() < Duration::from_mins(2), "the run does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let envs = command(&["env", "list"]).output().unwrap().stdout;
    let envs = String::from_utf8(envs).unwrap();
    let id = envs.lines().find(|line| line.contains("venv")).and_then(|line| line.split_whitespace().next()).unwrap();
    let pruned = command(&["env", "prune", id]).output().unwrap();
    let said = String::from_utf8_lossy(&pruned.stderr).into_owned();
    assert!(!pruned.status.success() && said.contains("is in use by another process"), "{said}");
    for env in fs::read_dir(cache.join("envs")).unwrap().flatten() {
        let marker = env.path().join("complete.json");
        if marker.exists() {
            fs::remove_file(marker).unwrap();
        }
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let records = lab.records("r");
    let lost = |record: &&serde_json::Value| record["evidence"]["kind"] == "env_gone";
    assert!(!records.is_empty() && records.iter().all(|record| lost(&record)), "{records:?}\n{said}");
    assert!(!output.status.success(), "{said}");
}
