//! Runs that several processes work on at once: whatever is killed, the result is the same as with one process.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ledger::counting_server;
use crate::support::Lab;

/// Time without a sign of life after which a shard of these tests counts as dead.
const TIMEOUT: &str = "3s";

/// The result of each attempt, by agent, sample and number: its end and its verdicts.
type Verdicts = BTreeMap<(String, String, u64), (String, Value, Value)>;

/// Returns all records of a run that have a verdict, and checks that no attempt has two.
pub fn verdicts(lab: &Lab, run: &str) -> Verdicts {
    let file = format!("{run}.jsonl");
    lab.ok(&["export", run, "--format", "jsonl", "-o", &file]);
    let table = lab.read(&file);
    let mut found = Verdicts::new();
    for line in table.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let end = record["end"].as_str().unwrap().to_owned();
        if ["sandbox_lost", "cancelled", "model_error"].contains(&end.as_str()) {
            continue;
        }
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        let key = (text("agent"), text("sample"), record["attempt"].as_u64().unwrap());
        let value = (end, record["pass"].clone(), record["verified"].clone());
        assert!(found.insert(key, value).is_none(), "made twice: {line}");
    }
    found
}

/// A generator of small random numbers, the same every time.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Shards of a run, which are started, and killed at random.
struct Shards<'a> {
    lab: &'a Lab,
    arguments: Vec<String>,
    running: Vec<Option<Child>>,
}

impl<'a> Shards<'a> {
    fn new(lab: &'a Lab, arguments: &[&str], count: usize) -> Self {
        let arguments = arguments.iter().map(|text| (*text).to_owned()).collect();
        let mut shards = Self { lab, arguments, running: (0..count).map(|_| None).collect() };
        for place in 0..count {
            shards.start(place);
        }
        shards
    }

    fn start(&mut self, place: usize) {
        let shard = format!("{}/{}", place + 1, self.running.len());
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        arguments.extend(["--shard", &shard]);
        let log = std::fs::File::options().create(true).append(true).open(self.lab.path("log")).unwrap();
        let child = self.lab.command(&arguments).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.running[place] = Some(child);
    }

    fn kill(&mut self, place: usize) -> bool {
        let Some(child) = &mut self.running[place] else { return false };
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        self.running[place] = None;
        true
    }

    /// Waits for the running shards, and returns their exit codes.
    fn wait(&mut self) -> Vec<i32> {
        let ended = self.running.iter_mut().flatten().map(|child| child.wait().unwrap());
        ended.map(|status| status.code().unwrap_or(-1)).collect()
    }

    fn log(&self) -> String {
        self.lab.read("log")
    }
}

/// Runs `count` shards and kills `kills` of them, restarting every second one that was killed. Checks that the result
/// is the same as that of a run by one process.
fn merge(count: usize, kills: usize, k: &str) {
    let lab = Lab::new();
    let common = ["run", "-n", "1..3", "-k", k, "--agent", "gold", "--agent", "noop", "--no-baseline", "-j", "1"];
    lab.ok(&[common.as_slice(), &["--name", "alone"]].concat());
    let begun = Instant::now();
    let mut shards =
        Shards::new(&lab, &[common.as_slice(), &["--name", "s", "--claim-timeout", TIMEOUT]].concat(), count);
    let (mut dice, mut killed) = (Dice(7), 0);
    while killed < kills && shards.running.iter().flatten().count() > 1 && begun.elapsed() < Duration::from_mins(2) {
        std::thread::sleep(Duration::from_millis(200 + dice.below(600)));
        let place = dice.below(count as u64) as usize;
        if shards.kill(place) {
            killed += 1;
            if killed % 2 == 0 {
                shards.start(place);
            }
        }
    }
    let codes = shards.wait();
    assert!(codes.iter().all(|code| *code == 0), "{codes:?}\n{}", shards.log());
    println!("{count} shards, {killed} kills, {:.0} s", begun.elapsed().as_secs_f64());
    assert!(killed > kills / 2, "{killed} kills");
    let (alone, merged) = (verdicts(&lab, "alone"), verdicts(&lab, "s"));
    assert_eq!(merged.len(), alone.len());
    assert_eq!(merged, alone);
    // To all commands that read runs, the shards' files are a single run.
    let status: Value = serde_json::from_str(&lab.ok(&["status", "s", "--json"]).stdout).unwrap();
    assert_eq!(
        (status["finished"].as_u64(), status["planned"].as_u64()),
        (Some(alone.len() as u64), Some(alone.len() as u64))
    );
    let rates = |run: &str| {
        let report: Value = serde_json::from_str(&lab.ok(&["report", run, "--json"]).stdout).unwrap();
        report["rates"].clone()
    };
    assert_eq!(rates("s"), rates("alone"));
    let sample = &alone.keys().next().unwrap().1;
    lab.ok(&["show", "s", sample, "--agent", "gold", "--no-pager"]);
    assert!(lab.ok(&["compare", "s", "alone"]).stdout.contains("gold"));
    // `resume` has nothing left to do.
    let again = lab.ok(&["resume", "s", "--no-baseline"]);
    assert!(again.stderr.contains(&format!("{} finished before", alone.len())), "{}", again.stderr);
}

#[test]
fn three_shards_with_one_killed_give_the_same_merged_results_as_one_process() {
    merge(3, 1, "1");
}

#[test]
#[ignore = "needs a minute for 16 processes and 24 kills"]
fn sixteen_shards_give_the_same_results_as_one_process_although_many_are_killed() {
    merge(16, 24, "4");
}

#[test]
fn shards_join_a_planned_run_only_with_the_settings_of_its_plan() {
    let lab = Lab::new();
    let settings = ["run", "-n", "1", "--agent", "noop", "--no-baseline", "--name", "p"];
    let planned = lab.ok(&[settings.as_slice(), &["--plan-only"]].concat());
    assert_eq!(planned.stdout, "runs/p\n");
    assert!(planned.stderr.contains("work on it with `autoexperiment resume runs/p --shard I/N`"));
    assert!(!lab.path("runs/p/shards").exists(), "nobody has worked on it");
    // A process that is started with the run's settings joins the run, and so does a process without settings.
    let joined = lab.command(&settings).env("AUTOEXPERIMENT_SHARD", "2/2").output().unwrap();
    assert!(joined.status.success(), "{}", String::from_utf8_lossy(&joined.stderr));
    lab.ok(&["resume", "p", "--shard", "1/2", "--no-baseline"]);
    let names = |suffix: &str| {
        let entries = std::fs::read_dir(lab.path("runs/p")).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(suffix)).count()
    };
    assert_eq!(names(".jsonl"), 4, "two files of records, two ledgers");
    let refused = lab.fails(2, &[settings.as_slice(), &["--shard", "1/2", "--seed", "3"]].concat());
    assert!(refused.contains("was planned with other"), "{refused}");
    // A setting that had its default when the run was planned is not stored. A process with another value of this
    // setting is refused, too.
    let several = ["run", "-n", "1", "-k", "2", "--agent", "noop", "--no-baseline", "--name", "q"];
    lab.ok(&[several.as_slice(), &["--plan-only"]].concat());
    let refused = lab.fails(2, &[several.as_slice(), &["--shard", "1/2", "--verifier", "majority"]].concat());
    assert!(refused.contains("was planned with other settings (`verifiers`)"), "{refused}");
    let refused = lab.fails(2, &["run", "-n", "1", "--agent", "noop", "--shard", "1/2"]);
    assert!(refused.contains("a shard needs the name of the run"), "{refused}");
    let refused = lab.fails(2, &settings);
    assert!(refused.contains("exists"), "{refused}");
    // Sandboxes of different strengths are not mixed silently.
    lab.edit("runs/p/shards/sandbox.txt", "sandbox `local`", "sandbox `docker`");
    let refused = lab.fails(5, &["resume", "p", "--no-baseline"]);
    assert!(refused.contains("sandboxes differ in strength: here sandbox `local`"), "{refused}");
    lab.ok(&["resume", "p", "--no-baseline", "--mixed-sandboxes"]);
}

#[test]
fn several_shards_together_never_spend_more_than_the_runs_cost_limit() {
    shared_money(3, 0);
}

#[test]
#[ignore = "needs a minute for 8 processes and 40 kills"]
fn shards_that_are_killed_and_restarted_together_never_spend_more_than_the_runs_cost_limit() {
    shared_money(8, 40);
}

/// Runs `count` shards that share one `--max-cost`, with a server that counts its replies. Kills and restarts shards
/// `kills` times.
fn shared_money(count: usize, kills: usize) {
    let lab = Lab::new();
    let (url, plan) = counting_server();
    let (price, most) = (0.05, if kills > 0 { 24.0 } else { 3.0 });
    let arguments = [
        "run",
        "-n",
        "1",
        "-k",
        "200",
        "--agent",
        "react",
        "--model",
        "m",
        "--base-url",
        &url,
        "--price",
        "0,10000",
        "--max-tokens",
        "5",
        "--steps",
        "4",
        "--cost",
        "0.2",
        "--max-cost",
        &most.to_string(),
        "--no-verify",
        "--no-baseline",
        "--name",
        "s",
        "-j",
        "1",
        "--claim-timeout",
        TIMEOUT,
    ];
    let mut shards = Shards::new(&lab, &arguments, count);
    let (mut dice, mut killed, begun) = (Dice(3), 0, Instant::now());
    while killed < kills && begun.elapsed() < Duration::from_mins(3) {
        std::thread::sleep(Duration::from_millis(100 + dice.below(400)));
        let place = dice.below(count as u64) as usize;
        if shards.kill(place) {
            killed += 1;
            shards.start(place);
        } else if shards.running.iter_mut().flatten().all(|child| child.try_wait().unwrap().is_some()) {
            break;
        }
    }
    let codes = shards.wait();
    assert!(codes.iter().all(|code| *code == 10), "{codes:?}\n{}", shards.log());
    let served = plan.lock().unwrap().served as f64 * price;
    let status: Value = serde_json::from_str(&lab.ok(&["status", "s", "--json"]).stdout).unwrap();
    let of = |name: &str| status[name].as_f64().unwrap();
    let (settled, reserved) = (of("cost"), of("reserved"));
    println!("{killed} kills: ${served:.2} served, ${settled:.2} settled, ${reserved:.2} reserved for calls cut off");
    assert!(served <= most + 1e-9 && settled + reserved <= most + 1e-9);
    assert!(settled <= served + 1e-9 && served <= settled + reserved + 1e-9);
    // The run stops only when the remaining money does not suffice for another attempt, which may cost 0.2 dollars.
    assert!(settled + reserved + 0.2 > most - 1e-9, "{settled} and {reserved} of {most}");
    assert!((of("recorded") - settled).abs() < 1e-9, "{status}");
    if kills == 0 {
        assert!((served - settled).abs() < 1e-9 && reserved == 0.0);
    }
    assert!(killed >= kills / 2, "{killed} kills");
}

/// Runs a mount command in a new mount namespace, and then, in this namespace, a command of the program.
fn mounted(lab: &Lab, mount: &str, arguments: &[&str]) -> std::process::Output {
    let program = lab.command(&[]).get_program().to_string_lossy().into_owned();
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script, &program]).args(arguments).current_dir(lab.path(""));
    command.envs(lab.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.output().unwrap()
}

#[test]
fn read_only_and_full_shared_folders_are_reported() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can mount");
        return;
    }
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "noop", "--no-baseline", "--name", "p", "--plan-only"]);
    let resume = &["resume", "p", "--shard", "1/2", "--no-baseline"];
    let read_only = mounted(&lab, "mount --bind runs runs && mount -o remount,ro,bind runs", resume);
    let said = String::from_utf8_lossy(&read_only.stderr).into_owned();
    assert_eq!(read_only.status.code(), Some(7), "{said}");
    assert!(said.contains("failed to write `runs/p/shards`") && said.contains("Read-only file system"), "{said}");
    let full = "cp -a runs /tmp/kept.$$ && mount -t tmpfs -o size=256k none runs && cp -a /tmp/kept.$$/. runs \
                && rm -r /tmp/kept.$$ && (dd if=/dev/zero of=runs/fill bs=1k 2>/dev/null; true)";
    let full = mounted(&lab, full, resume);
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert_eq!(full.status.code(), Some(7), "{said}");
    assert!(said.contains("No space left on device") && said.contains("free some space"), "{said}");
}

/// Writes a scripted agent whose only step sleeps for `seconds`.
fn sleeper(lab: &Lab, seconds: u32) -> String {
    lab.write(
        "sleep.jsonl",
        &format!("{{\"tool\": \"command_line\", \"arguments\": {{\"command\": \"sleep {seconds}\"}}}}\n"),
    );
    format!("scripted:{}", lab.path("sleep.jsonl").display())
}

/// Starts a shard of the run `s`, with its output in a file of its own.
fn shard(lab: &Lab, number: u32, jobs: &str) -> Child {
    let log = std::fs::File::create(lab.path(&format!("log-{number}"))).unwrap();
    let shard = format!("{number}/3");
    let arguments = ["resume", "s", "--shard", &shard, "-j", jobs, "--no-baseline"];
    lab.command(&arguments).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

#[test]
fn a_paused_shard_continues_if_no_other_shard_has_taken_over_its_attempts() {
    let lab = Lab::new();
    let settings = ["run", "-n", "1..3", "-k", "4", "--agent", "noop", "--no-verify", "--no-baseline", "--name", "s"];
    lab.ok(&[settings.as_slice(), &["--plan-only", "--claim-timeout", "1s"]].concat());
    let mut alone = shard(&lab, 1, "1");
    let begun = Instant::now();
    while std::fs::read_dir(lab.path("runs/s/claims")).map_or(0, Iterator::count) < 2 {
        assert!(begun.elapsed() < Duration::from_mins(3), "{}", lab.read("log-1"));
        std::thread::sleep(Duration::from_millis(20));
    }
    let signal = |signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(alone.id().cast_signed()), signal).unwrap();
    signal(nix::sys::signal::Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(3));
    signal(nix::sys::signal::Signal::SIGCONT);
    assert_eq!(alone.wait().unwrap().code(), Some(0), "{}", lab.read("log-1"));
    assert_eq!(verdicts(&lab, "s").len(), 44);
}

/// Waits at most `seconds` for a process to end. Returns its exit code.
fn ended(child: &mut Child, seconds: u64) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}

#[test]
fn all_idle_shards_end_except_one_that_takes_over_the_attempts_of_dead_shards() {
    let lab = Lab::new();
    let agent = sleeper(&lab, 3000);
    let settings = ["run", "-n", "1", "--limit", "3", "--agent", &agent, "--no-verify", "--no-baseline", "--name", "s"];
    lab.ok(&[settings.as_slice(), &["--plan-only", "--time", "2h", "--claim-timeout", TIMEOUT]].concat());
    let claims = || std::fs::read_dir(lab.path("runs/s/claims")).map_or(0, Iterator::count);
    let mut holder = shard(&lab, 1, "3");
    let begun = Instant::now();
    while claims() < 3 {
        assert!(begun.elapsed() < Duration::from_mins(2), "{}", lab.read("log-1"));
        std::thread::sleep(Duration::from_millis(100));
    }
    // Start two more shards, which find no attempt to begin. One of them ends. The other one stays as the keeper, which
    // takes over attempts if the holder of their claims dies.
    let mut others = [shard(&lab, 2, "1"), shard(&lab, 3, "1")];
    let begun = Instant::now();
    let first = loop {
        assert!(begun.elapsed() < Duration::from_mins(2), "{}{}", lab.read("log-2"), lab.read("log-3"));
        let done = others.iter_mut().position(|child| ended(child, 1).is_some());
        if let Some(place) = done {
            break place;
        }
    };
    assert_eq!(ended(&mut others[first], 1), Some(0));
    let said = lab.read(&format!("log-{}", first + 2));
    assert!(said.contains("other processes are still making 3 attempt(s)"), "{said}");
    let keeper = 1 - first;
    assert_eq!(ended(&mut others[keeper], 8), None, "{}", lab.read(&format!("log-{}", keeper + 2)));
    // A further shard also ends, while the keeper and the holder of the claims live.
    let mut late = shard(&lab, 2, "1");
    assert_eq!(ended(&mut late, 60), Some(0), "{}", lab.read("log-2"));
    // If the holder of the claims dies, the keeper takes over its attempts. If the keeper dies, too, the next shard
    // does.
    holder.kill().unwrap();
    holder.wait().unwrap();
    let begun = Instant::now();
    let taken_over = || {
        let names = std::fs::read_dir(lab.path("runs/s/claims")).unwrap().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().ends_with(".1")).count()
    };
    while taken_over() == 0 {
        assert!(begun.elapsed() < Duration::from_mins(1), "nobody took over");
        std::thread::sleep(Duration::from_millis(100));
    }
    others[keeper].kill().unwrap();
    others[keeper].wait().unwrap();
    lab.write("sleep.jsonl", "");
    let mut last = shard(&lab, 3, "1");
    assert_eq!(ended(&mut last, 120), Some(0), "{}", lab.read("log-3"));
    assert_eq!(verdicts(&lab, "s").len(), 3);
}
