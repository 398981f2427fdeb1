//! Graphics processors, each of which is given to one attempt at a time. The devices are made up: the tests check which
//! device each attempt gets.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Lab;

/// Writes a scripted agent that runs one command.
fn agent(lab: &Lab, name: &str, command: &str) -> String {
    let step = serde_json::json!({ "tool": "command_line", "arguments": { "command": command } });
    lab.scripted(name, &[step])
}

/// Starts a shard of the run `s` on a machine with these devices.
fn shard(lab: &Lab, number: u32, devices: &str) -> Child {
    let log = std::fs::File::create(lab.path(&format!("log-{number}"))).unwrap();
    let place = format!("{number}/2");
    let mut command = lab.command(&["resume", "s", "--shard", &place, "--no-baseline"]);
    command.env("CUDA_VISIBLE_DEVICES", devices).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

fn records(lab: &Lab) -> Vec<Value> {
    lab.ok(&["export", "s", "--format", "jsonl", "-o", "s.jsonl"]);
    lab.read("s.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn attempts_of_two_processes_never_share_a_gpu_and_verification_uses_the_attempts_gpu() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("held")).unwrap();
    // Without a sandbox, attempts can detect each other: if two attempts use one device at the same time, one of them
    // cannot make the device's folder.
    let held = lab.path("held").display().to_string();
    let script = format!(
        "mkdir \"{held}/$CUDA_VISIBLE_DEVICES\" || echo $CUDA_VISIBLE_DEVICES >> {held}/twice; sleep 0.1; \
         rmdir \"{held}/$CUDA_VISIBLE_DEVICES\"; for file in tiny/means.py tiny/spread.py; do \
         echo 'import os, sys; sys.exit(\"verified on \" + os.environ[\"CUDA_VISIBLE_DEVICES\"])' > $file; done"
    );
    let agent = agent(&lab, "agent.jsonl", &script);
    let mut plan = lab.command(&["run", "-n", "1", "-k", "2", "--agent", &agent, "--no-baseline", "--name", "s"]);
    plan.args(["--sandbox", "none", "--gpus", "each", "-j", "4", "--plan-only"]);
    // Plan the run as on a cluster's login node, which has no devices.
    let planned = plan.env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    assert!(planned.status.success(), "{}", String::from_utf8_lossy(&planned.stderr));
    let shards = [1, 2].map(|number| shard(&lab, number, "GPU-a,GPU-b"));
    for (place, mut shard) in shards.into_iter().enumerate() {
        assert_eq!(shard.wait().unwrap().code(), Some(0), "{}", lab.read(&format!("log-{}", place + 1)));
    }
    assert!(!lab.path("held/twice").exists(), "held twice at once: {}", lab.read("held/twice"));
    let records = records(&lab);
    assert_eq!(records.len(), 8);
    let mut used = BTreeSet::new();
    for record in &records {
        let text = |name: &str| record[name].as_str().unwrap();
        let own = text("gpu");
        used.insert(own);
        let attempt = format!("{}.{}", text("sample"), record["attempt"]);
        let trajectory = lab.read(&format!("runs/s/trajectories/{}/{attempt}.jsonl", text("agent")));
        assert!(trajectory.contains(&format!("verified on {own}")), "{own}: {trajectory}");
    }
    let first = &records[0];
    let shown =
        lab.ok(&["show", "s", &format!("{}.{}", first["sample"].as_str().unwrap(), first["attempt"]), "--no-pager"]);
    let own = format!("graphics processor: {}", first["gpu"].as_str().unwrap());
    assert!(shown.stdout.contains(&own), "{}", shown.stdout);
    assert!(used.is_subset(&["GPU-a", "GPU-b"].into()) && !used.is_empty(), "{used:?}");
}

#[test]
fn a_device_is_free_again_after_its_process_was_killed() {
    let lab = Lab::new();
    let sleeper = agent(&lab, "agent.jsonl", "sleep 3000");
    let settings =
        ["run", "-n", "1", "--limit", "3", "--agent", &sleeper, "--no-verify", "--no-baseline", "--name", "s"];
    let more = ["--gpus", "each:1", "--time", "2h", "--claim-timeout", "3s", "--plan-only"];
    lab.ok(&[settings.as_slice(), &more].concat());
    let claims = || std::fs::read_dir(lab.path("runs/s/claims")).map_or(0, Iterator::count);
    let mut holder = shard(&lab, 1, "7");
    let begun = Instant::now();
    while claims() < 1 {
        assert!(begun.elapsed() < Duration::from_mins(3), "{}", lab.read("log-1"));
        std::thread::sleep(Duration::from_millis(50));
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    // From now on, attempts end at once.
    lab.write("agent.jsonl", "");
    let mut other = shard(&lab, 2, "7");
    assert_eq!(other.wait().unwrap().code(), Some(0), "{}", lab.read("log-2"));
    let gpus: Vec<Value> = records(&lab).into_iter().map(|record| record["gpu"].clone()).collect();
    assert_eq!(gpus, ["7", "7", "7"]);
}

#[test]
fn a_machine_without_devices_is_reported_before_the_first_attempt() {
    let lab = Lab::bare();
    let run = |devices: &str, asked: &str| {
        let mut command: Command = lab.command(&["run", "-p", "kmeanspp", "-n", "1", "--agent", "noop"]);
        let output = command.args(["--gpus", asked]).env("CUDA_VISIBLE_DEVICES", devices).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run("", "each");
    assert!(code == Some(5) && said.contains("any graphics processors were requested"), "{said}");
    let (code, said) = run("0,1", "each:3");
    assert!(code == Some(5) && said.contains("3 graphics processors were requested"), "{said}");
    let (code, said) = run("0,1", "2");
    assert!(code == Some(2) && said.contains("`--gpus each`"), "{said}");
}
