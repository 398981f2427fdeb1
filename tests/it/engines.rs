//! Engines in bad and unusual states: full disks, no free addresses, vanished containers, other base images,
//! registries, quotas. Failures of an engine are infrastructure: they are retried, never scored and never shown to an
//! agent.
//!
//! Each test starts its own engines, which needs root and takes up to a minute, so these tests are ignored by default
//! (`-- --ignored`).

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::engine::{Engine, Kind, on_engines};
use crate::support::{Lab, Ran};
use serde_json::{Value, json};

on_engines! {
    docker: a_disk_that_is_full_is_no_fault_of_the_agent_s, an_engine_without_addresses_left_runs_attempts_all_the_same, a_container_that_vanishes_is_never_shown_to_the_agent, a_daemon_that_stays_away_loses_attempts_and_scores_none, graphics_processors_that_are_not_there_are_missed_before_anything_is_done, verification_has_a_fresh_container_of_the_same_image, attempts_leave_nothing_in_an_engine, a_storage_driver_that_can_holds_a_container_to_its_size_and_another_is_not_asked_twice, two_machines_run_the_same_bytes_by_way_of_a_registry, the_python_session_of_super_lives_in_containers_from_call_to_call;
    podman: a_container_that_vanishes_is_never_shown_to_the_agent, verification_has_a_fresh_container_of_the_same_image, attempts_leave_nothing_in_an_engine, the_python_session_of_super_lives_in_containers_from_call_to_call;
}

/// Returns a command of the program that uses this engine.
fn command(lab: &Lab, engine: &Engine, arguments: &[&str]) -> Command {
    let mut command = lab.command(arguments);
    command.env(engine.kind.variable(), engine.address());
    command
}

fn run(lab: &Lab, engine: &Engine, arguments: &[&str]) -> Ran {
    command(lab, engine, arguments).output().unwrap().into()
}

fn ok(lab: &Lab, engine: &Engine, arguments: &[&str]) -> Ran {
    let ran = run(lab, engine, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}\n{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// Makes a lab whose images are already in the engine, and returns their names, too.
fn ready(engine: &Engine) -> (Lab, Vec<String>) {
    engine.give_base();
    let lab = Lab::new();
    let built = ok(&lab, engine, &["image", "build", "--engine", engine.kind.name(), "tiny"]);
    let names = built.stdout.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect();
    (lab, names)
}

/// Writes a scripted agent that runs a command and then gives up.
fn scripted(lab: &Lab, script: &str) -> String {
    let step = json!({"tool": "command_line", "arguments": {"command": script}});
    lab.write("agent", &crate::support::json_lines(&[step]));
    format!("scripted:{}", lab.path("agent").display())
}

/// Returns all trajectories of a run as one text, including those of tries that were lost and repeated.
fn trajectories(lab: &Lab, name: &str) -> String {
    let folder = lab.path(&format!("runs/{name}/trajectories"));
    let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect()
}

/// A file system in a file, removed when dropped.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(kind: &str, bytes: u64, options: &str) -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        fs::create_dir(disk.path()).unwrap();
        let image = disk.0.path().join("image");
        fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        let succeeds = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let made = succeeds(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&image))
            && succeeds(Command::new("mount").args(["-o", options]).arg(&image).arg(disk.path()));
        assert!(made, "no file system of the kind {kind} can be made here");
        disk
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("disk")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).stderr(Stdio::null()).status();
    }
}

fn a_disk_that_is_full_is_no_fault_of_the_agent_s(kind: Kind) {
    let disk = Disk::new("ext4", 3 << 30, "loop");
    let data = disk.path().join("data");
    let engine = Engine::start_with(kind, Some(&data), &[]);
    let (lab, _) = ready(&engine);
    // Make an attempt before the disk is full, because the first attempt also creates the volume with the sandboxes'
    // init.
    ok(&lab, &engine, &["run", "--sample", "tiny_0", "--agent", "noop", "--sandbox", "docker", "--no-baseline"]);
    let agent = scripted(&lab, "head -c 200000000 /dev/zero > large && echo written || echo FAILED");
    // Fill the disk except for 60 MiB: enough for a container, but not for the 200 MB that its agent writes.
    let filler = disk.path().join("filler");
    let free = nix::sys::statvfs::statvfs(&disk.path()).unwrap();
    let length = free.blocks_available() * free.fragment_size() - (60 << 20);
    let file = fs::File::create(&filler).unwrap();
    nix::fcntl::fallocate(&file, nix::fcntl::FallocateFlags::empty(), 0, length.try_into().unwrap()).unwrap();
    let first = ["run", "--sample", "tiny_0", "--agent", &agent, "--sandbox", "docker", "--name", "r", "--no-baseline"];
    let ran = run(&lab, &engine, &first);
    assert_eq!(ran.code, 8, "{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("disk that holds its workspace is full"), "{}", ran.stderr);
    for record in lab.records("r") {
        assert_eq!(record["end"], "sandbox_lost", "{record}");
    }
    let seen = trajectories(&lab, "r");
    assert!(!seen.contains("\"observation\""), "{seen}");
    drop(file);
    fs::remove_file(filler).unwrap();
    ok(&lab, &engine, &["resume", "r", "--no-baseline"]);
    assert!(trajectories(&lab, "r").contains("stdout:\\nwritten"), "it had room this time");
    assert_eq!(engine.say(&["ps", "-aq"]), "");
}

fn an_engine_without_addresses_left_runs_attempts_all_the_same(kind: Kind) {
    let pool = ["--default-address-pool", "base=10.213.77.0/24,size=24"];
    let engine = Engine::start_with(kind, None, &pool);
    let mut number = 0;
    while engine.cli(&["network", "create", &format!("full{number}")]).0 {
        number += 1;
        assert!(number < 5, "the pool does not end");
    }
    let (lab, _) = ready(&engine);
    ok(&lab, &engine, &["run", "-n", "1", "--agent", "gold", "--sandbox", "docker", "--name", "r", "--require-pass"]);
    for number in 0..number {
        engine.say(&["network", "rm", &format!("full{number}")]);
    }
}

fn a_container_that_vanishes_is_never_shown_to_the_agent(kind: Kind) {
    let engine = Engine::start(kind);
    let (lab, _) = ready(&engine);
    let agent = scripted(&lab, "test -e new && echo OLD; touch new; echo begun; sleep 4; echo over");
    let arguments =
        ["run", "--sample", "tiny_0", "--agent", &agent, "--sandbox", kind.name(), "--name", "r", "--no-baseline"];
    let mut child = command(&lab, &engine, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let init = loop {
        assert!(begun.elapsed() < Duration::from_mins(1), "no container came");
        if let Some(init) = engine.inits().first() {
            break *init;
        }
    };
    std::thread::sleep(Duration::from_millis(1500));
    assert!(init > 0);
    // Kill the container through the engine, as another user of the engine might do. The engine reports this.
    let id = engine.say(&["ps", "-q"]);
    engine.say(&["kill", &id]);
    assert!(child.wait().unwrap().success());
    let lost = lab.read("runs/r/trajectories/scripted/tiny_0.0.lost-1.jsonl");
    assert!(lost.contains("\"sandbox_lost\"") && !lost.contains("\"observation\""), "{lost}");
    let made = lab.read("runs/r/trajectories/scripted/tiny_0.0.jsonl");
    assert!(made.contains("\"observation\"") && !made.contains("stdout:\\nOLD"), "{made}");
    let ends: Vec<_> = lab.records("r").iter().map(|record| record["end"].clone()).collect();
    assert_eq!(ends, ["sandbox_lost", "gave_up"]);
    assert_eq!(lab.records("r")[0]["evidence"]["kind"], "stopped_by_others");
}

fn a_daemon_that_stays_away_loses_attempts_and_scores_none(kind: Kind) {
    let engine = Engine::start(kind);
    let (lab, _) = ready(&engine);
    let agent = scripted(&lab, "echo begun; sleep 600");
    let arguments = [
        "run",
        "--sample",
        "tiny_0",
        "--agent",
        &agent,
        "--sandbox",
        "docker",
        "--name",
        "r",
        "--no-baseline",
        "--tries",
        "1",
    ];
    let child = command(&lab, &engine, &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while engine.inits().is_empty() {
        assert!(begun.elapsed() < Duration::from_mins(1), "no container came");
    }
    engine.kill();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{said}");
    for record in lab.records("r") {
        assert_eq!((&record["end"], &record["pass"]), (&json!("sandbox_lost"), &json!(false)), "{record}");
    }
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    assert_eq!(report["rows"][0]["attempts"], 0, "{report:#}");
    // Without an engine, no run begins.
    let ran = run(&lab, &engine, &["run", "-n", "1", "--agent", "gold", "--sandbox", "docker", "--name", "s"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("no docker answers") && !lab.path("runs/s").exists(), "{}", ran.stderr);
    engine.go().unwrap();
    ok(&lab, &engine, &["clean"]);
    assert_eq!(engine.say(&["ps", "-aq"]), "");
}

fn graphics_processors_that_are_not_there_are_missed_before_anything_is_done(kind: Kind) {
    let engine = Engine::start(kind);
    let (lab, _) = ready(&engine);
    let arguments = ["run", "-n", "1", "--agent", "gold", "--sandbox", "docker", "--gpus", "all", "--name", "r"];
    let ran = run(&lab, &engine, &arguments);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("no container with `--gpus all` starts here"), "{}", ran.stderr);
    assert!(!lab.path("runs/r").exists());
    assert_eq!(engine.say(&["ps", "-aq"]), "");
}

fn verification_has_a_fresh_container_of_the_same_image(kind: Kind) {
    let engine = Engine::start(kind);
    let (lab, images) = ready(&engine);
    // The attempt leaves a file outside the workspace, which verification must not see.
    let agent = scripted(&lab, "touch /tmp/left; echo done");
    let arguments =
        ["run", "--sample", "tiny_0", "--agent", &agent, "--sandbox", kind.name(), "--name", "r", "--no-baseline"];
    let mut watch = Command::new(kind.name());
    match kind {
        Kind::Docker => watch.args(["--host", &engine.address()]),
        Kind::Podman => watch.args(["--remote", "--url", &engine.address()]),
    };
    let format = if kind == Kind::Docker { "{{.From}} {{.ID}}" } else { "{{.Image}} {{.ID}}" };
    watch.args(["events", "--filter", "event=create", "--format", format]);
    let watch = Watch(watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok());
    std::thread::sleep(Duration::from_secs(1));
    ok(&lab, &engine, &arguments);
    std::thread::sleep(Duration::from_secs(1));
    let said = watch.said();
    let made: Vec<(&str, &str)> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    // Count only the containers made from the repo's image. There is one more, made from the base image, which fills
    // the volume with the sandboxes' init.
    let over_repo: Vec<_> =
        made.iter().filter(|(image, _)| Some(*image) == images.last().map(String::as_str)).collect();
    // One container for the attempt, and one for each verified experiment.
    assert!(over_repo.len() > 2, "{}: {said}", kind.name());
    let ids: std::collections::BTreeSet<&str> = over_repo.iter().map(|(_, id)| *id).collect();
    assert_eq!(ids.len(), over_repo.len(), "{}: {said}", kind.name());
    assert_eq!(lab.records("r")[0]["verified"]["pass"], false, "a masked function was not written");
}

/// A process that prints the engine's events. Its output is read after it is killed.
struct Watch(Option<Child>);

impl Watch {
    fn said(mut self) -> String {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
        }
    }
}

fn attempts_leave_nothing_in_an_engine(kind: Kind) {
    let engine = Engine::start(kind);
    let (lab, _) = ready(&engine);
    let run = |name: &str, k: &str| {
        let first = ["run", "-n", "1", "-k", k, "--agent", "gold", "--agent", "noop", "--no-baseline"];
        let second = ["--sandbox", kind.name(), "--name", name];
        ok(&lab, &engine, &[&first[..], &second].concat());
    };
    run("first", "1");
    let before = engine.objects();
    run("second", "3");
    assert_eq!(engine.objects(), before, "{}", kind.name());
    assert_eq!(engine.mounts(), Vec::<String>::new(), "{}", kind.name());
}

fn a_storage_driver_that_can_holds_a_container_to_its_size_and_another_is_not_asked_twice(kind: Kind) {
    for (system, driver) in [("btrfs", "btrfs"), ("xfs", "overlay2")] {
        // The xfs is mounted without project quotas. It looks as if it supported size limits, but refuses them.
        let disk = Disk::new(system, 8 << 30, "loop");
        let data = disk.path().join("data");
        let engine = Engine::start_with(kind, Some(&data), &["--storage-driver", driver]);
        let (lab, _) = ready(&engine);
        let agent = scripted(&lab, "sleep 5; echo slept");
        let arguments =
            ["run", "--sample", "tiny_0", "--agent", &agent, "--sandbox", "docker", "--name", "r", "--no-baseline"];
        let mut child = command(&lab, &engine, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while engine.inits().is_empty() {
            assert!(begun.elapsed() < Duration::from_mins(1), "no container came");
        }
        let id = engine.say(&["ps", "-q"]);
        let size = engine.say(&["inspect", "--format", "{{index .HostConfig.StorageOpt \"size\"}}", &id]);
        assert!(child.wait().unwrap().success());
        // On btrfs, the engine's limit is higher than the limit of 4 GiB that the program watches: by an eighth, and by
        // 64 MiB. On xfs, the engine has no limit.
        let expected = if system == "btrfs" { ((4_u64 << 30) / 8 * 9 + (64 << 20)).to_string() } else { String::new() };
        assert_eq!(size.replace("<no value>", ""), expected, "{system}");
        assert!(trajectories(&lab, "r").contains("\"observation\""), "{system}");
    }
}

/// A registry on this machine that requires a log-in with name `me` and password `secret`.
struct Registry {
    process: Child,
    folder: tempfile::TempDir,
    address: String,
}

impl Registry {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        fs::write(folder.path().join("users"), "me:$2y$04$lWtZV4S1//W5r91Gb1C4yOngr/N862qBdKW0GdzdLv4rAhxTkFpxS\n")
            .unwrap();
        let root = folder.path().display();
        let configuration = format!(
            "version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {root}/data}}}}\n\
             http: {{addr: '{address}'}}\nauth: {{htpasswd: {{realm: test, path: {root}/users}}}}\n"
        );
        fs::write(folder.path().join("configuration.yml"), configuration).unwrap();
        // "me:secret", as `docker login` stores it.
        let logged_in = json!({ "auths": { &address: { "auth": "bWU6c2VjcmV0" } } });
        fs::write(folder.path().join("config.json"), logged_in.to_string()).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(folder.path().join("configuration.yml"));
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let process = process.expect("`docker-registry` starts");
        let begun = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            let said = || fs::read_to_string(folder.path().join("log")).unwrap();
            assert!(begun.elapsed() < Duration::from_mins(1), "{}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { process, folder, address }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn two_machines_run_the_same_bytes_by_way_of_a_registry(kind: Kind) {
    let here = Engine::start(kind);
    let registry = Registry::start();
    let place = format!("{}/me", registry.address);
    let (lab, names) = ready(&here);
    let pushed = run(&lab, &here, &["image", "push", &place]);
    assert_eq!(pushed.code, 8, "nobody has logged in: {}", pushed.stderr);
    assert!(pushed.stderr.contains("docker login"), "{}", pushed.stderr);
    let before = here.objects();
    let logged_in = |engine: &Engine, arguments: &[&str], variables: &[(&str, &str)]| -> Ran {
        let mut command = command(&lab, engine, arguments);
        command.env("DOCKER_CONFIG", registry.folder.path()).envs(variables.iter().copied());
        command.output().unwrap().into()
    };
    let pushed = logged_in(&here, &["image", "push", &place], &[]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    for name in &names {
        let there = name.replace("localhost/autoexperiment", &place);
        assert!(pushed.stdout.lines().any(|line| line == there), "{there} in {}", pushed.stdout);
    }
    assert_eq!(here.objects(), before, "names of the registry's were left");

    let there = Engine::start(kind);
    let from = [("AUTOEXPERIMENT_REGISTRY", place.as_str())];
    let begun = Instant::now();
    let built = logged_in(&there, &["image", "build", "tiny"], &from);
    println!("images from a registry: {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(built.code, 0, "{}", built.stderr);
    let id = |engine: &Engine, name: &str| engine.say(&["image", "inspect", "--format", "{{.Id}}", name]);
    for name in &names {
        assert_eq!(id(&here, name), id(&there, name), "{name}");
    }
    let gold = ["run", "-n", "1", "--limit", "1", "--agent", "gold", "--sandbox", "docker", "--require-pass", "--name"];
    let base = |name: &str| -> Value {
        let run: Value = serde_json::from_str(&lab.read(&format!("runs/{name}/run.json"))).unwrap();
        assert!(run["digests"]["base"].as_str().unwrap().starts_with("sha256:"), "{run:#}");
        run["digests"]["base"].clone()
    };
    ok(&lab, &here, &[&gold[..], &["here"]].concat());
    ok(&lab, &there, &[&gold[..], &["there"]].concat());
    assert_eq!(base("here"), base("there"));

    // A base that is named by its digest stays the same, even if its tag moves.
    let digest = there.say(&["image", "inspect", "--format", "{{.Id}}", &names[0]]);
    assert_eq!(digest, id(&here, &names[0]));
    let tag = format!("{place}/base:1");
    let named = logged_in(&there, &["image", "build", "tiny"], &[("AUTOEXPERIMENT_BASE_IMAGE", &tag)]);
    assert_eq!(named.code, 0, "{}", named.stderr);
    let of_named: Vec<_> = named.stdout.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_ne!(of_named[0], names[0]);
    assert_eq!(id(&there, of_named[0]), id(&here, &names[0]), "one of this program's bases is used as it is");
    assert_eq!(of_named.last(), names.last().map(String::as_str).as_ref(), "so all over it is the same");

    // A run that was started with this base image refuses to resume with another base image.
    let container = there.say(&["create", "--label", "autoexperiment.kind=other", &names[0], "true"]);
    there.say(&["commit", "--change", "LABEL autoexperiment.kind=other", &container, "localhost/other:1"]);
    there.say(&["rm", &container]);
    let other = [("AUTOEXPERIMENT_BASE_IMAGE", "localhost/other:1")];
    let resumed = logged_in(&there, &["resume", "there", "--no-baseline"], &other);
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("the base image has changed"), "{}", resumed.stderr);
    let resumed = logged_in(&there, &["resume", "there", "--no-baseline", "--changed-suite"], &other);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let unknown = [("AUTOEXPERIMENT_BASE_IMAGE", "127.0.0.1:1/none:1")];
    let refused = logged_in(&there, &["image", "build"], &unknown);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
}

fn the_python_session_of_super_lives_in_containers_from_call_to_call(kind: Kind) {
    let answer = r#"{"Experiment 1": {"arithmetic": 1, "geometric": 1}}"#;
    let replies = crate::support::session::replies("    return math.fsum(values) / len(values)", answer);
    let engine = Engine::start(kind);
    let (lab, _) = ready(&engine);
    lab.write("model.jsonl", &crate::support::json_lines(&replies));
    let settings = ["--agent", "react:tools=super", "--model", "scripted:model.jsonl", "--no-baseline"];
    let place = ["run", "--sample", "tiny_0", "--sandbox", kind.name(), "--name", "r"];
    ok(&lab, &engine, &[&place[..], &settings].concat());
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["verified"]["pass"]), (&json!("answered"), &json!(true)), "{record:#}");
    let lines = trajectories(&lab, "r");
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let observations = events.filter(|line| line["event"] == "observation");
    let shown: Vec<String> = observations.map(|line| line["content"].as_str().unwrap().to_owned()).collect();
    crate::support::session::assert_lives(&shown);
    // The background process that the attempt left is gone with its container.
    assert_eq!(engine.say(&["ps", "-aq"]), "", "{}", kind.name());
    println!("{}: the session lived", kind.name());

    // The Python session also survives feedback, for which the files are copied out of its container and verified in
    // fresh containers.
    let mut again = crate::support::session::replies("    return math.fsum(values)", answer);
    let right = json!({"path": "tiny/means.py", "old_lines": "    return math.fsum(values)",
        "new_lines": "    return math.fsum(values) / len(values)"});
    let call = |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
    again.push(call("execute", json!({"code": "print('still', sum(x))"})));
    again.push(call("edit", right));
    again.push(call("submit", json!({ "answer": answer })));
    lab.write("model.jsonl", &crate::support::json_lines(&again));
    let settings =
        ["--agent", "react:tools=super,feedback=3,rounds=1", "--model", "scripted:model.jsonl", "--no-baseline"];
    let place = ["run", "--sample", "tiny_0", "--sandbox", kind.name(), "--name", "told"];
    ok(&lab, &engine, &[&place[..], &settings].concat());
    let record = &lab.records("told")[0];
    let verified: Vec<&Value> = record["rounds"].as_array().unwrap().iter().map(|round| &round["verified"]).collect();
    assert_eq!((verified, &record["verified"]["pass"]), (vec![&json!(false)], &json!(true)), "{record:#}");
    let told = trajectories(&lab, "told");
    assert!(told.contains("still 20") && told.contains("`arithmetic` is wrong"), "{told}");
    assert_eq!(engine.say(&["ps", "-aq"]), "", "{}", kind.name());
}
