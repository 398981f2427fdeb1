//! Harbor tasks in real containers: the images are built from the exported Dockerfiles, by a Docker that the test
//! starts, and Harbor's own program runs them.
//!
//! The test's Docker needs root and takes minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::Lab;
use crate::support::engine::{Engine, Kind};
use crate::support::readers::Readers;
use serde_json::{Value, json};

/// Parts of the masked functions' bodies, and gold results, which agents must not see.
const SECRETS: [&str; 6] = [
    "body-of-arithmetic",
    "body-of-geometric",
    "4.166666666666667",
    "3.5830831474778333",
    "4.826388888888889",
    "1.1583333333333334",
];

/// Makes a lab with exported tasks, and an engine with their base image. Python images cannot be pulled everywhere, so
/// the paper's env replaces them, with the same version of Python.
fn ready() -> (Engine, Lab) {
    let engine = Engine::start(Kind::Docker);
    engine.give_base();
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1..2", "--agent", "noop", "--no-baseline", "--name", "r"]);
    lab.ok(&["export", "r", "--format", "harbor", "-o", "harbor"]);
    let mut build = lab.command(&["image", "build", "--engine", "docker", "tiny"]);
    let built = build.env("DOCKER_HOST", engine.address()).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let names = String::from_utf8(built.stdout).unwrap();
    let env = names.lines().find_map(|line| line.split('\t').find(|name| name.contains("/env:"))).unwrap();
    let dockerfile = lab.read("harbor/tasks/tiny_0/environment/Dockerfile");
    let base = dockerfile.lines().find_map(|line| line.strip_prefix("FROM ")).unwrap();
    assert!(base.starts_with("python:3.") && base.ends_with("-slim"), "{base}");
    fs::create_dir(lab.path("empty")).unwrap();
    let file = Path::new("tests/support/python.Dockerfile").display().to_string();
    let empty = lab.path("empty").display().to_string();
    let argument = format!("ENV={env}");
    engine.say(&["build", "--network", "none", "--build-arg", &argument, "-t", base, "-f", &file, &empty]);
    (engine, lab)
}

/// A container that waits for commands; removed when dropped.
struct Container<'a> {
    engine: &'a Engine,
    id: String,
}

impl<'a> Container<'a> {
    fn start(engine: &'a Engine, image: &str) -> Self {
        let id = engine.say(&["run", "-d", "--network", "none", image, "sh", "-c", "sleep infinity"]);
        Self { engine, id }
    }

    fn exec(&self, command: &str) -> String {
        self.engine.say(&["exec", &self.id, "sh", "-c", command])
    }

    fn give(&self, from: &Path, to: &str) {
        self.engine.say(&["cp", &from.display().to_string(), &format!("{}:{to}", self.id)]);
    }

    fn take(&self, from: &str, to: &Path) {
        let _ = fs::remove_dir_all(to);
        self.engine.say(&["cp", &format!("{}:{from}", self.id), &to.display().to_string()]);
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        self.engine.cli(&["rm", "-f", &self.id]);
    }
}

/// Runs the verifier on a workspace and returns the reward and the verdict. As in Harbor, the workspace is copied from
/// the agent's container into a new one of the verifier.
fn verified(engine: &Engine, workspace: &Path) -> (Value, Value) {
    let verifier = Container::start(engine, "verifier");
    verifier.give(workspace, "/workspace");
    verifier.exec("/tests/test.sh");
    let read = |name: &str| serde_json::from_str(&verifier.exec(&format!("cat /logs/verifier/{name}"))).unwrap();
    (read("reward.json"), read("verdict.json"))
}

#[test]
#[ignore = "needs Harbor, which it installs from PyPI, and starts a Docker of its own, which takes root and minutes"]
fn docker_builds_the_images_the_solution_is_rewarded_and_harbor_itself_runs_the_tasks() {
    let (engine, lab) = ready();
    let task = lab.path("harbor/tasks/tiny_0-1");
    for (folder, image) in [("environment", "agent"), ("tests", "verifier")] {
        engine.say(&["build", "--network", "none", "-t", image, &task.join(folder).display().to_string()]);
    }
    images_hold_no_secrets(&engine, &lab);
    the_verifier_rewards_the_solution_alone(&engine, &lab, &task);
    harbor_runs_its_oracle_and_its_nop(&engine, &lab);
}

/// Checks all layers of the agent's image, as bytes.
fn images_hold_no_secrets(engine: &Engine, lab: &Lab) {
    let saved = lab.path("agent.tar");
    engine.say(&["save", "-o", &saved.display().to_string(), "agent"]);
    let found = |texts: &[&str]| {
        let mut grep = Command::new("grep");
        grep.args(["-aoF"]).args(texts.iter().flat_map(|text| ["-e", text])).arg(&saved);
        String::from_utf8_lossy(&grep.output().unwrap().stdout).into_owned()
    };
    // The search would find nothing in compressed layers. It finds these texts, which shows that the layers are not
    // compressed.
    let control = ["def geometric(values)", "raise NotImplementedError"];
    let seen = found(&control);
    assert!(control.iter().all(|text| seen.contains(text)), "{seen}");
    assert_eq!(found(&SECRETS), "");
    fs::remove_file(saved).unwrap();
}

fn the_verifier_rewards_the_solution_alone(engine: &Engine, lab: &Lab, task: &Path) {
    let all = |reported: f64, verified: f64| json!({ "reward": reported.min(verified), "reported": reported, "verified": verified });
    let agent = Container::start(engine, "agent");
    let workspace = lab.path("workspace");
    let (reward, _) = {
        agent.take("/workspace", &workspace);
        verified(engine, &workspace)
    };
    assert_eq!(reward, all(0.0, 0.0), "nothing done");

    agent.give(&task.join("solution"), "/solution");
    agent.exec("/solution/solve.sh");
    agent.take("/workspace", &workspace);
    let (reward, verdict) = verified(engine, &workspace);
    assert_eq!(reward, all(1.0, 1.0), "{verdict}");

    // Submit a right answer without writing the functions.
    lab.write("answer.json", &fs::read_to_string(workspace.join("answer.json")).unwrap());
    let answered = Container::start(engine, "agent");
    answered.give(&lab.path("answer.json"), "/workspace/answer.json");
    answered.take("/workspace", &workspace);
    assert_eq!(verified(engine, &workspace).0, all(1.0, 0.0));

    // Code that looks for gold, forges the reward, and leaves a process that would forge it later.
    let cheat = "import json, os, subprocess\n\n\ndef arithmetic(values):\n    for path in ['/logs/verifier/reward.json', '/logs/verifier/reward.txt']:\n        \
                 try:\n            open(path, 'w').write('1')\n        except OSError:\n            pass\n    \
                 forge = 'sleep 1; echo 1 > /logs/verifier/reward.txt'\n    \
                 subprocess.Popen(['sh', '-c', forge], start_new_session=True)\n    \
                 return json.load(open('/tests/task.json'))['experiments'][0]['gold']['arithmetic']\n\n\n\
                 def geometric(values):\n    return 1\n";
    lab.write("means.py", cheat);
    answered.give(&lab.path("means.py"), "/workspace/tiny/means.py");
    answered.take("/workspace", &workspace);
    let (reward, verdict) = verified(engine, &workspace);
    assert_eq!(reward, all(1.0, 0.0));
    assert_eq!(verdict["experiments"]["means"]["error"], "exit code 1", "{verdict}");
}

/// Returns Docker's folder of plugins with Compose, which Harbor needs. If Docker has none, takes that of a newer
/// Debian.
fn compose() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docker");
    let program = folder.join("cli-plugins/docker-compose");
    let quiet = |command: &mut Command| {
        let ran = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        ran.is_ok_and(|status| status.success())
    };
    fs::create_dir_all(folder.join("cli-plugins")).unwrap();
    let is_there = || quiet(Command::new("docker").args(["compose", "version"]).env("DOCKER_CONFIG", &folder));
    if is_there() {
        return folder;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=docker-compose", "--download-only", "trixie"]);
    if quiet(debootstrap.arg(scratch.path().join("root"))) {
        let archives = fs::read_dir(scratch.path().join("root/var/cache/apt/archives")).unwrap().flatten();
        let package =
            archives.map(|entry| entry.path()).find(|path| path.display().to_string().contains("docker-compose_"));
        let files = scratch.path().join("files");
        if quiet(Command::new("dpkg").arg("-x").arg(package.unwrap()).arg(&files)) {
            fs::copy(files.join("usr/libexec/docker/cli-plugins/docker-compose"), &program).unwrap();
        }
    }
    assert!(is_there(), "Harbor needs Docker Compose 2, and debootstrap brings none here");
    folder
}

/// Replaces the task's network setting. Harbor would cut off the network with a container of its own, whose image it
/// would have to pull. Instead, a Compose file next to the Dockerfile turns off the network. The rest of the task is
/// unchanged.
fn without_network(task: &Path) {
    let file = task.join("task.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches("network_mode = \"no-network\"").count(), 2);
    fs::write(file, text.replace("no-network", "public")).unwrap();
    for folder in ["environment", "tests"] {
        let services = "services:\n  main:\n    build:\n      network: none\n    network_mode: none\n";
        fs::write(task.join(folder).join("docker-compose.yaml"), services).unwrap();
    }
}

fn harbor_runs_its_oracle_and_its_nop(engine: &Engine, lab: &Lab) {
    let (readers, docker) = (Readers::harbor(), compose());
    let mut running = Vec::new();
    for (agent, task, reward) in [("oracle", "tiny_0", 1.0), ("oracle", "tiny_1-2", 1.0), ("nop", "tiny_0-1", 0.0)] {
        let folder = lab.path(&format!("run/{agent}-{task}"));
        crate::support::copy(&lab.path(&format!("harbor/tasks/{task}")), &folder.join(task));
        without_network(&folder.join(task));
        let mut harbor = readers.program("harbor");
        harbor.args(["run", "-q", "-a", agent, "-e", "docker", "-p"]).arg(folder.join(task));
        harbor.arg("-o").arg(folder.join("jobs")).env("HOME", lab.path("home")).env("HARBOR_TELEMETRY", "off");
        harbor.env("DOCKER_HOST", engine.address()).env("DOCKER_CONFIG", &docker);
        let log = fs::File::create(folder.join("log")).unwrap();
        harbor.stdout(log.try_clone().unwrap()).stderr(log);
        running.push((folder, reward, harbor.spawn().unwrap()));
    }
    for (folder, reward, mut harbor) in running {
        let status = harbor.wait().unwrap();
        let said = fs::read_to_string(folder.join("log")).unwrap();
        assert!(status.success(), "{said}");
        let files = walkdir::WalkDir::new(folder.join("jobs")).into_iter().flatten();
        let rewards: Vec<Value> = files
            .filter(|entry| entry.file_name() == "reward.json")
            .map(|entry| serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap())
            .collect();
        let expected = json!({ "reward": reward, "reported": reward, "verified": reward });
        assert_eq!(rewards, [expected], "{}\n{said}", folder.display());
    }
}
