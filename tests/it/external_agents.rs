//! External agents, end to end: real ones from a package index, and ones that misbehave.
//!
//! The model behind the gateway is a real HTTP server of the test that plays replies. Agents that have to be installed
//! need a package index once, so their tests are ignored by default.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::Lab;
use crate::support::model_server::questions;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Command that writes the function that sample `tiny_1` lacks.
pub const SOLVE: &str = "sed -i 's/raise NotImplementedError.*/return math.exp(arithmetic([math.log(v) for v in values]))/' \
                     tiny/means.py";
/// Command that runs the experiment and reports its result; without `$(...)`, which Gemini CLI takes for an injected
/// command.
pub const REPORT: &str = "python -m tiny means --power 1 | tail -1 | sed 's/^/{\"Experiment 1\": /; s/$/}/' \
                          > /tmp/agent/answer.json";

/// A server in place of a model's provider, which records requests and plays back replies. The number of assistant
/// messages in the conversation decides which reply is sent, so that an agent may ask other things in between. The last
/// reply is repeated for ever.
pub struct Upstream {
    pub url: String,
    pub asked: Arc<Mutex<Vec<Value>>>,
    /// A text, and the reply to requests whose last message contains that text.
    instead: Arc<Mutex<Option<(&'static str, Value)>>>,
}

impl Upstream {
    pub fn new(replies: Vec<Value>) -> Self {
        Self::late(replies, Duration::ZERO)
    }

    /// Creates a provider that delays all replies but the first by `wait`.
    fn late(replies: Vec<Value>, wait: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = asked.clone();
        let instead: Arc<Mutex<Option<(&'static str, Value)>>> = Arc::default();
        let other = instead.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(body) = read_request(&mut stream) else { continue };
                let said = body["messages"].as_array().unwrap();
                let place = said.iter().filter(|message| message["role"] == "assistant").count();
                let last = said.last().map(ToString::to_string).unwrap_or_default();
                let other = other.lock().unwrap().clone().filter(|(when, _)| last.contains(when));
                let ids = body["return_token_ids"].as_bool().map(|_| token_ids(said));
                kept.lock().unwrap().push(body);
                if kept.lock().unwrap().len() > 1 {
                    std::thread::sleep(wait);
                }
                let message = other.map_or_else(|| replies[place.min(replies.len() - 1)].clone(), |(_, said)| said);
                let finish = message.get("finish_reason").cloned().unwrap_or_else(|| json!("stop"));
                let mut body = json!({
                    "id": "x", "object": "chat.completion", "created": 0, "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                    "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
                });
                if let Some(prompt) = ids {
                    let reply = token_ids(std::slice::from_ref(&body["choices"][0]["message"]));
                    let content: Vec<Value> = reply.iter().map(|_| json!({"logprob": -0.25})).collect();
                    body["usage"]["completion_tokens"] = json!(reply.len());
                    body["prompt_token_ids"] = json!(prompt);
                    body["choices"][0]["token_ids"] = json!(reply);
                    body["choices"][0]["logprobs"] = json!({"content": content});
                    body["system_fingerprint"] = json!("weights-7");
                }
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        Self { url, asked, instead }
    }

    /// Replies differently if the last message contains this text.
    fn says_when(&self, when: &'static str, said: Value) {
        *self.instead.lock().unwrap() = Some((when, said));
    }

    /// Creates a provider that answers every request with this status.
    fn refusing(status: u16, said: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let body = json!({"error": {"message": said}}).to_string();
        std::thread::spawn(move || {
            for mut stream in questions(listener) {
                read_request(&mut stream);
                let head =
                    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        Self { url, asked: Arc::default(), instead: Arc::default() }
    }

    pub fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Waits until there have been this many calls.
    fn wait_for(&self, calls: usize) {
        let begun = Instant::now();
        while self.calls() < calls {
            assert!(begun.elapsed() < Duration::from_mins(2), "asked {} times", self.calls());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Returns token ids of messages, for a server that returns ids: for each message, a number for the role, the bytes of
/// the text, and a zero.
fn token_ids(messages: &[Value]) -> Vec<u32> {
    let ids = messages.iter().flat_map(|message| {
        let role = 1000 + u32::from(message["role"].as_str().unwrap_or_default().as_bytes()[0]);
        let text = message["content"].as_str().unwrap_or_default().bytes().map(u32::from).collect::<Vec<_>>();
        [vec![role], text, vec![0]].concat()
    });
    ids.collect()
}

fn read_request(stream: &mut TcpStream) -> Option<Value> {
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(head) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            let lines = String::from_utf8_lossy(&text[..head]).to_lowercase();
            let length: usize =
                lines.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())?;
            if text.len() >= head + 4 + length {
                return serde_json::from_slice(&text[head + 4..]).ok();
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
        }
    }
}

pub fn text(text: impl Into<String>) -> Value {
    json!({"role": "assistant", "content": text.into()})
}

fn bash(command: &str) -> Value {
    let arguments = json!({"command": command}).to_string();
    let call = json!({"id": "c", "type": "function", "function": {"name": "bash", "arguments": arguments}});
    json!({"role": "assistant", "content": "So be it.", "tool_calls": [call]})
}

/// Runs sample `tiny_1` with this agent and this provider, at a dollar per 10,000 tokens.
pub fn run(lab: &Lab, agent: &str, upstream: &Upstream, more: &[&str]) -> crate::support::Ran {
    let mut arguments = vec!["run", "--sample", "tiny_1", "--agent", agent, "--base-url", &upstream.url];
    if !more.contains(&"--model") {
        arguments.extend(["--model", "m"]);
    }
    arguments.extend(["--price", "100,100", "--no-baseline", "-j", "1", "--tries", "1", "--retries", "0"]);
    if !more.contains(&"--name") {
        arguments.extend(["--name", "r"]);
    }
    arguments.extend(more);
    lab.run(&arguments)
}

pub fn trajectory(lab: &Lab, agent: &str) -> Vec<Value> {
    let text = lab.read(&format!("runs/r/trajectories/{agent}/tiny_1.0.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn events<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == kind).collect()
}

/// Installs an agent that this project provides.
fn install(lab: &Lab, agent: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents").join(agent);
    lab.ok(&["env", "build", folder.to_str().unwrap()]);
}

/// Writes the agent `own`, which runs [`PRELUDE`] and then this Python script. Returns its name for `--agent`.
pub fn own_agent(lab: &Lab, script: &str) -> &'static str {
    let manifest = format!(
        "command = ['python3', '{{scratch}}/agent.py']\nanswer = 'file'\nvariables = {{ BASE = '{{openai_url}}', KEY = '{{key}}', \
         ANSWER = '{{answer_file}}' }}\n[files]\n\"{{scratch}}/agent.py\" = '''\n{PRELUDE}{script}'''\n"
    );
    lab.write("agents/own/agent.toml", &manifest);
    "cli:own"
}

/// Beginning of the scripts of [`own_agent`]: a function that calls the model and returns status and body, and a
/// function that reports an answer.
const PRELUDE: &str = r"
import json, os, socket, subprocess, sys, time, urllib.request, urllib.error
def call(text='hi', wait=60):
    body = json.dumps({'model': 'x', 'messages': [{'role': 'user', 'content': text}]}).encode()
    request = urllib.request.Request(os.environ['BASE'] + '/chat/completions', body, {'authorization': 'Bearer ' + os.environ['KEY']})
    try:
        with urllib.request.urlopen(request, timeout=wait) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
def answer(value):
    with open(os.environ['ANSWER'], 'w') as file:
        json.dump({'Experiment 1': value}, file)
";

/// Checks that the agent solves the sample with these replies.
fn solves(agent: &str, folder: &str, replies: Vec<Value>) {
    let lab = Lab::new();
    let name = agent.strip_prefix("cli:").unwrap().split(',').next().unwrap();
    install(&lab, name);
    let needed = replies.len();
    let upstream = Upstream::new(replies);
    let ran = run(&lab, agent, &upstream, &["--cost", "5"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    let lines = trajectory(&lab, folder);
    let program = events(&lines, "program");
    assert_eq!((&record["pass"], &record["end"]), (&json!(true), &json!("answered")), "{record:#}\n{program:#?}");
    let steps = upstream.calls();
    assert!(steps >= needed, "{program:#?}");
    assert_eq!(record["steps"], steps);
    assert_eq!(record["usage"]["input"], 1000 * steps);
    assert!((record["cost"].as_f64().unwrap() - 0.11 * steps as f64).abs() < 1e-9, "{record:#}");
    // Every call is on record, and the model's input can be reconstructed from it.
    let (asked, sent) = (events(&lines, "asked"), upstream.asked.lock().unwrap());
    assert_eq!((asked.len(), events(&lines, "reply").len(), sent.len()), (steps, steps, steps));
    for (asked, sent) in asked.iter().zip(sent.iter()) {
        let shown = asked["kept"].as_u64().unwrap() as usize + asked["messages"].as_array().unwrap().len();
        assert_eq!(shown, sent["messages"].as_array().unwrap().len());
    }
    assert!(lab.read(&format!("runs/r/diffs/{folder}/tiny_1.0.patch")).contains("+    return math.exp"));
}

#[test]
#[ignore = "installs the agent from PyPI"]
fn mini_swe_agent_solves_a_paper_with_tool_calls() {
    let submit = bash("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT");
    let replies = vec![bash("cat experiments.md"), bash(SOLVE), bash(REPORT), submit];
    solves("cli:mini-swe-agent", "mini-swe-agent", replies);
}

#[test]
#[ignore = "installs the agent from PyPI"]
fn mini_swe_agent_solves_a_paper_with_commands_in_text() {
    let fenced = |command: &str| text(format!("So be it.\n\n```mswea_bash_command\n{command}\n```\n"));
    let submit = fenced("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT");
    let replies = vec![fenced(SOLVE), fenced(REPORT), submit];
    solves("cli:mini-swe-agent,mode=text", "mini-swe-agent+mode=text", replies);
}

#[test]
#[ignore = "installs the agent from PyPI"]
fn gptme_solves_a_paper_over_streamed_messages_and_streamed_chat_completions() {
    for (agent, folder) in [("cli:gptme", "gptme"), ("cli:gptme,mode=openai", "gptme+mode=openai")] {
        let fenced = |command: &str| text(format!("So be it.\n\n```shell\n{command}\n```\n"));
        // The agent may also ask the model to name the conversation; the server answers this with one of these replies.
        solves(agent, folder, vec![fenced(SOLVE), fenced(REPORT), text("Done.\n\n```complete\n```\n")]);
    }
}

#[test]
#[ignore = "installs the agent from PyPI"]
fn aider_solves_a_paper_by_an_edit_and_reports_what_the_experiments_printed() {
    let edit = "I write it.\n\ntiny/means.py\n```python\n<<<<<<< SEARCH\n    raise NotImplementedError\n=======\n    return math.exp(arithmetic([math.log(v) for v in values]))\n>>>>>>> REPLACE\n```\n";
    let lab = Lab::new();
    install(&lab, "aider");
    // The agent asks twice: first for the edit and then, in a new conversation that shows the output of the
    // experiments, for the answer. The reply to the second request is found by the text of its prompt.
    let gold: Value = serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap();
    let result = &gold["results"]["curtailed"]["means"]["result"];
    let upstream = Upstream::new(vec![text(edit)]);
    let answers = format!("{{\"Experiment 1\": {result}}}");
    upstream.says_when("what they printed is above", text(answers));
    let ran = run(&lab, "cli:aider", &upstream, &["--cost", "5"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    let program = trajectory(&lab, "aider");
    let program = events(&program, "program");
    assert_eq!((&record["pass"], &record["end"]), (&json!(true), &json!("answered")), "{record:#}\n{program:#?}");
    assert_eq!(upstream.calls(), 2, "{program:#?}");
    let asked = upstream.asked.lock().unwrap();
    let shown = |place: usize| asked[place]["messages"].to_string();
    assert!(shown(0).contains("tiny/means.py") && shown(0).contains("def arithmetic"), "it is shown the file");
    assert!(shown(1).contains("geometric\\\": "), "it is shown what the experiments printed: {}", shown(1));
}

#[test]
fn a_program_that_is_killed_while_memory_is_left_has_failed() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("no")]);
    let ran = run(&lab, own_agent(&lab, "call()\nos.kill(os.getpid(), 9)\n"), &upstream, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["end_detail"]), (&json!("gave_up"), &json!("signal 9")), "{record:#}");
    assert_eq!(record["pass"], false);
}

#[test]
#[ignore = "needs root and a writable memory cgroup"]
fn a_program_that_exceeds_its_memory_limit_fails_but_a_kill_from_outside_loses_the_attempt() {
    let too_much = "held = bytearray(1500 << 20)";
    let fair = "held = bytearray(450 << 20)";
    // Here, the kernel kills only a child process, and the agent's program continues.
    let childs = "subprocess.run([sys.executable, '-c', 'held = bytearray(450 << 20)'])";
    let all = [("300", false, too_much), ("2000", false, too_much), ("2000", true, fair), ("2000", true, childs)];
    for (memory, is_lost, held) in all {
        let outer = (memory == "2000").then(|| OuterGroup::new(1000 << 20));
        // Another program in the outer group uses most of the group's memory, and the kernel must not kill this
        // program. So the group's limit ends the agent, although the agent keeps to its own limit.
        let mut other = outer.as_ref().filter(|_| is_lost).map(|outer| {
            let hold = "open('/proc/self/oom_score_adj', 'w').write('-1000'); held = bytearray(600 << 20)";
            let mut other = Command::new("/usr/bin/python3");
            other.args(["-c", &format!("{hold}; print(flush=True); import time; time.sleep(600)")]);
            outer.takes(&mut other);
            let mut other = other.stdout(std::process::Stdio::piped()).spawn().unwrap();
            std::io::Read::read_exact(other.stdout.as_mut().unwrap(), &mut [0]).unwrap();
            other
        });
        let script = format!("call()\n{held}\nanswer({{'arithmetic': 1, 'geometric': 1}})\n");
        let lab = Lab::new();
        let agent = own_agent(&lab, &script);
        let upstream = Upstream::new(vec![text("no")]);
        let mut command =
            lab.command(&["run", "--sample", "tiny_1", "--agent", agent, "--model", "m", "--price", "1,1"]);
        command.args(["--base-url", &upstream.url, "--no-baseline", "-j", "1", "--tries", "1", "--retries", "0"]);
        command.args(["--memory", memory, "--name", "r"]);
        if let Some(outer) = &outer {
            outer.takes(&mut command);
        }
        let ran = crate::support::Ran::from(command.output().unwrap());
        if let Some(other) = &mut other {
            other.kill().unwrap();
            other.wait().unwrap();
        }
        let record = &lab.records("r")[0];
        let detail = record["end_detail"].as_str().unwrap_or_default();
        let (end, why) = if is_lost {
            ("sandbox_lost", "a memory limit outside the sandbox")
        } else {
            ("gave_up", "it exceeded the memory of its sandbox")
        };
        assert!(record["end"] == end && detail.contains(why), "{record:#}\n{}", ran.stderr);
    }
}

/// A control group in which the program runs. Its memory limit is lower than that of the program's sandboxes.
struct OuterGroup(PathBuf);

impl OuterGroup {
    fn new(bytes: u64) -> Self {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap();
        let of = |controller: &str| {
            let is_it =
                |line: &&str| line.split(':').nth(1).is_some_and(|it| it.split(',').any(|one| one == controller));
            own.lines().find(is_it).map(|line| line.splitn(3, ':').nth(2).unwrap().trim_start_matches('/').to_owned())
        };
        let name = format!("autoexperiment-test-{}", std::process::id());
        let (folder, limits): (PathBuf, &[&str]) = if let Some(group) = of("memory") {
            let limits = &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
            (Path::new("/sys/fs/cgroup/memory").join(group).join(name), limits)
        } else {
            // Make a sibling of this process's own group. A child is not possible, because a group that contains
            // processes cannot limit child groups.
            let group = Path::new("/sys/fs/cgroup").join(of("").expect("a control group"));
            (group.parent().unwrap().join(name), &["memory.max", "memory.swap.max"])
        };
        fs::create_dir_all(folder.join("inner")).expect("a writable memory cgroup, as root");
        let outer = Self(folder);
        for (place, file) in limits.iter().enumerate() {
            // On a kernel without swap accounting, the second file of `limits` does not exist.
            let bytes = if *file == "memory.swap.max" { 0 } else { bytes };
            assert!(fs::write(outer.0.join(file), bytes.to_string()).is_ok() || place > 0, "`{file}` can be written");
        }
        outer
    }

    /// Makes a command run in the group.
    fn takes(&self, command: &mut Command) {
        let processes = self.0.join("inner/cgroup.procs");
        // SAFETY: before the program starts, the child only writes to a file, whose path was made before.
        unsafe { command.pre_exec(move || fs::write(&processes, "0")) };
    }
}

impl Drop for OuterGroup {
    fn drop(&mut self) {
        for folder in [self.0.join("inner"), self.0.clone()] {
            // Also remove the control groups that the program has made in this group and left behind.
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(entry.path());
            }
            let _ = fs::remove_dir(folder);
        }
    }
}

#[test]
fn an_agent_that_ignores_its_limits_is_refused_then_stopped_and_its_answer_still_counts() {
    let lab = Lab::new();
    let agent = own_agent(
        &lab,
        "answer({'arithmetic': 1, 'geometric': 2})\nwhile True:\n    code, body = call()\n    print(code, body['choices'][0]['message']['content'], flush=True)\n",
    );
    let upstream = Upstream::new(vec![text("no")]);
    let ran = run(&lab, agent, &upstream, &["--cost", "0.3"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["pass"]), (&json!("cost_limit"), &json!(false)), "{record:#}");
    assert_eq!(upstream.calls(), 3, "at 11 cents a call");
    assert!(record["answer"].as_str().unwrap().contains("geometric"), "{record:#}");
    let lines = trajectory(&lab, "own");
    assert_eq!(events(&lines, "call_refused").len(), 5);
    let printed = events(&lines, "program")[0]["stdout"].as_str().unwrap().to_owned();
    assert!(printed.contains("200") && printed.contains("write the answer now"), "{printed}");
}

#[test]
fn an_agent_may_still_answer_after_the_notice_that_its_steps_are_used_up() {
    let lab = Lab::new();
    let script = "while 'write the answer' not in json.dumps(call()): pass\nanswer(json.loads(subprocess.run(['python', '-m', 'tiny', 'means'], \
                  capture_output=True, text=True).stdout.splitlines()[-1]))\n";
    let script = format!("subprocess.run([{SOLVE:?}], shell=True)\n{script}");
    let agent = own_agent(&lab, &script);
    let upstream = Upstream::new(vec![text("no")]);
    let ran = run(&lab, agent, &upstream, &["--steps", "2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["steps"]), (&json!("answered"), &json!(2)), "{record:#}");
    assert_eq!(record["pass"], true, "{record:#}");
}

#[test]
fn an_external_agent_that_does_not_stop_is_ended_with_its_processes_at_the_time_limit() {
    let lab = Lab::new();
    let agent =
        own_agent(&lab, "call()\nsubprocess.Popen(['sleep', '77777'], start_new_session=True)\ntime.sleep(600)\n");
    let upstream = Upstream::new(vec![text("no")]);
    let begun = Instant::now();
    let ran = run(&lab, agent, &upstream, &["--time", "3"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!(record["end"], "time_limit", "{record:#}");
    assert!(record["tool_seconds"].as_f64().unwrap() < 8.0, "{record:#}");
    assert!(begun.elapsed() < Duration::from_mins(3));
    assert!(!is_running("sleep\x0077777"), "nothing is left");
}

#[test]
fn processes_that_an_external_agent_starts_in_new_sessions_end_with_its_attempt() {
    let lab = Lab::new();
    let script = "call()\nfor _ in range(1000):\n    try:\n        subprocess.Popen(['sleep', '66666'], start_new_session=True)\n    \
                  except OSError as error:\n        print('refused', error)\n        break\nprint('gone')\n";
    let upstream = Upstream::new(vec![text("no")]);
    let ran = run(&lab, own_agent(&lab, script), &upstream, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!(record["end"], "gave_up", "{record:#}");
    let printed = events(&trajectory(&lab, "own"), "program")[0]["stdout"].as_str().unwrap().to_owned();
    assert!(printed.contains("refused"), "{printed}");
    assert!(!is_running("sleep\x0066666"), "nothing is left");
}

#[test]
fn an_agent_finds_no_network_but_the_gateway() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("no")]);
    let port = upstream.url.rsplit(':').next().unwrap().trim_end_matches("/v1").to_owned();
    let script = format!(
        "print('gateway', call()[0])\nfor place in [('1.1.1.1', 53), ('127.0.0.1', {port})]:\n    try:\n        \
         socket.create_connection(place, 3)\n        print('OUT')\n    except OSError as error:\n        print('refused')\n\
         print(sorted(os.environ.get(name, '') for name in ['OPENAI_API_KEY', 'AUTOEXPERIMENT_API_KEY']))\n"
    );
    let agent = own_agent(&lab, &script);
    let mut command = lab.command(&[
        "run",
        "--sample",
        "tiny_1",
        "--agent",
        agent,
        "--model",
        "m",
        "--base-url",
        &upstream.url,
        "--price",
        "0,0",
        "--no-baseline",
        "--name",
        "r",
    ]);
    let ran: crate::support::Ran = command.env("AUTOEXPERIMENT_API_KEY", "sk-real").output().unwrap().into();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let printed = events(&trajectory(&lab, "own"), "program")[0]["stdout"].as_str().unwrap().to_owned();
    assert_eq!(printed, "gateway 200\nrefused\nrefused\n['', '']\n");
    assert!(!ran.stderr.contains("sk-real") && !lab.read("runs/r/run.json").contains("sk-real"));
}

#[test]
fn an_agent_that_eats_the_disk_ends_at_the_disk_limit() {
    let lab = Lab::new();
    // The agent reserves disk space without writing bytes. If the kernel does not enforce the disk limit, the harness
    // checks the disk from time to time, and notices this during the sleep.
    let script = "call()\nimport os, time\nfor number in range(100):\n    with open(f'{number}.bin', 'wb') as file:\n        \
                  os.posix_fallocate(file.fileno(), 0, 64 << 20)\ntime.sleep(60)\n";
    let upstream = Upstream::new(vec![text("no")]);
    let ran = run(&lab, own_agent(&lab, script), &upstream, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!(record["end"], "disk_limit", "{record:#}");
    let left = std::fs::read_dir(lab.path("scratch")).map_or(0, |entries| entries.flatten().count());
    assert_eq!(left, 0, "nothing is left in the scratch folder");
}

#[test]
fn an_agent_that_exits_before_its_first_call_fails_and_five_such_attempts_stop_the_run() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("no")]);
    let ran = run(&lab, own_agent(&lab, "sys.exit('no such option')\n"), &upstream, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["pass"]), (&json!("never_asked"), &json!(false)), "{record:#}");
    assert!(record["end_detail"].as_str().unwrap().contains("no such option"), "{record:#}");
    let ran = run(&lab, own_agent(&lab, "sys.exit('no such option')\n"), &upstream, &["-k", "8", "--name", "all"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("failed in all 5 attempts so far before it could ask the model"), "{}", ran.stderr);
    assert_eq!(lab.records("all").len(), 5);
}

#[test]
fn an_external_agent_is_found_by_name_or_folder_and_manifest_errors_name_their_line() {
    let lab = Lab::new();
    let fails = |code: i32, agent: &str| {
        lab.fails(
            code,
            &["run", "--agent", agent, "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--price", "0,0"],
        )
    };
    insta::assert_snapshot!(fails(2, "cli:nobody"), @r"
    error: there is no agent `cli:nobody`
      hint: there are `cli:aider`, `cli:claude-code`, `cli:cline`, `cli:codex`, `cli:copilot`, `cli:droid`, `cli:gemini-cli`, `cli:goose`, `cli:gptme`, `cli:kimi-code`, `cli:mini-swe-agent`, `cli:opencode`, `cli:openhands`, `cli:pi`, `cli:qwen-code`, `cli:NAME` for the suite's folder `agents/NAME`, and `cli:FOLDER` (with a `/`) for another folder with an `agent.toml`
    ");
    insta::assert_snapshot!(fails(2, "cli:gptme,mode=x"), @r"
    error: agent `cli:gptme` has no mode `x`
      hint: its modes are `openai`
    ");
    lab.write("agents/broken/agent.toml", "answer = 'file'\ncomand = ['a']\n");
    insta::assert_snapshot!(fails(3, "cli:broken"), @r"
    error: [lab]/agents/broken/agent.toml:1: missing field `command`
        [lab]/agents/broken/agent.toml:2: unknown field `comand`, expected one of `command`, `answer`, `stdin`, `variables`, `files`, `mode`
      hint: the manifest needs `command` (a list) and `answer` (`file` or `stdout`)
    ");
    insta::assert_snapshot!(fails(2, "cli:./none"), @r"
    error: failed to read `[lab]/none/agent.toml`
      cause: No such file or directory (os error 2)
      hint: an agent's folder needs an `agent.toml` and, for an env, an `environment.yml` and a lock file
    ");
    lab.write("a,b/mine/agent.toml", "command = ['a']\nanswer = 'file'\n[mode.other]\nstdin = 'x'\n");
    insta::assert_snapshot!(fails(2, "cli:a,b/mine,mode=x"), @r"
    error: agent `cli:mine` has no mode `x`
      hint: its modes are `other`
    ");
    insta::assert_snapshot!(fails(2, "cli:a,b/mine,other"), @r"
    error: `other` is not a setting of `cli:a,b/mine`
      hint: the only setting is `mode=NAME`
    ");
    // If an agent's manifest has changed, a run that began with it must not continue unnoticed.
    own_agent(&lab, "call()\nanswer({'arithmetic': 1})\n");
    let upstream = Upstream::new(vec![text("no")]);
    assert_eq!(run(&lab, "cli:own", &upstream, &[]).code, 0);
    lab.write("agents/own/agent.toml", &(lab.read("agents/own/agent.toml") + "# a remark\n"));
    lab.ok(&["resume", "r", "--no-baseline"]);
    lab.write("agents/own/agent.toml", &lab.read("agents/own/agent.toml").replace("call()", "call('ho')"));
    let refused = lab.fails(3, &["resume", "r", "--no-baseline"]);
    assert!(refused.contains("manifest or env of agent `own` has changed"), "{refused}");
}

#[test]
fn a_provider_that_denies_everything_stops_the_run_and_the_agent() {
    let lab = Lab::new();
    let agent = own_agent(&lab, "while True: print(call())\n");
    let ran = run(&lab, agent, &Upstream::refusing(401, "bad key"), &[]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(lab.records("r")[0]["end"], "model_denied");
}

#[test]
fn a_request_refused_by_the_provider_fails_the_attempt_but_not_the_run() {
    let lab = Lab::new();
    let agent = own_agent(&lab, "print(call())\n");
    let ran = run(&lab, agent, &Upstream::refusing(400, "no such parameter"), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["pass"]), (&json!("refused"), &json!(false)), "{record:#}");
    assert!(record["end_detail"].as_str().unwrap().contains("no such parameter"), "{record:#}");
}

#[test]
fn an_external_agent_is_told_the_models_name_and_any_known_context_size_and_effort() {
    let lab = Lab::new();
    let script = r"
call()
listed = json.load(urllib.request.urlopen(os.environ['BASE'] + '/models'))['data'][0]
print(os.environ['NAME'], os.environ.get('CONTEXT'), os.environ.get('EFFORT'), listed['id'], listed.get('max_model_len'), sys.argv[1:])
print(open(os.path.dirname(__file__) + '/settings').read().split())
";
    own_agent(&lab, script);
    let manifest = lab.read("agents/own/agent.toml");
    let settings = "[files]\n\"{scratch}/settings\" = \"a={model}\\nb={context}\\nc={effort}\\n\"\n";
    let manifest = manifest
        .replace("agent.py']", "agent.py', '--effort={effort}', '--of={model}']")
        .replace("{ BASE", "{ NAME = '{model}', CONTEXT = '{context}', EFFORT = '{effort}', BASE")
        .replace("[files]\n", settings);
    lab.write("agents/own/agent.toml", &manifest);
    for (name, more, said) in [
        (
            "r",
            vec!["--model", "some/model:8b"],
            "some/model:8b None None some/model:8b None ['--of=some/model:8b']\n['a=some/model:8b']\n",
        ),
        (
            "s",
            vec!["--model", "qwen", "--describe", "context=9000", "--effort", "low"],
            "qwen 9000 low qwen 9000 ['--effort=low', '--of=qwen']\n['a=qwen', 'b=9000', 'c=low']\n",
        ),
    ] {
        let upstream = Upstream::new(vec![text("no")]);
        let ran = run(&lab, "cli:own", &upstream, &[&more[..], &["--name", name]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let lines = lab.read(&format!("runs/{name}/trajectories/own/tiny_1.0.jsonl"));
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events(&lines, "program")[0]["stdout"], said, "{lines:#?}");
    }
}

#[test]
fn a_request_with_a_tool_of_the_provider_is_refused_and_counted_in_the_record() {
    let lab = Lab::new();
    let script = r"
body = {'messages': [{'role': 'user', 'content': 'hi'}], 'tools': [{'type': 'web_search'}]}
request = urllib.request.Request(os.environ['BASE'] + '/chat/completions', json.dumps(body).encode())
try:
    urllib.request.urlopen(request, timeout=60)
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)['error']['message'])
call()
answer({'arithmetic': 1, 'geometric': 1})
";
    let ran = run(&lab, own_agent(&lab, script), &Upstream::new(vec![text("no")]), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    assert_eq!((&record["end"], &record["refused_requests"]), (&json!("answered"), &json!(1)), "{record:#}");
    let lines = trajectory(&lab, "own");
    let what = "this gateway cannot pass on the tool `web_search`";
    assert!(events(&lines, "call_refused")[0]["what"].as_str().unwrap().starts_with(what), "{lines:#?}");
    let printed = events(&lines, "program")[0]["stdout"].as_str().unwrap();
    assert!(printed.starts_with(&format!("400 {what}")), "{printed}");
}

#[test]
fn unsupported_requests_of_an_agent_are_reported_with_the_fault() {
    let lab = Lab::new();
    let script = r"
def post(path, body):
    request = urllib.request.Request(os.environ['BASE'] + path, json.dumps(body).encode(), {'authorization': 'Bearer ' + os.environ['KEY']})
    try:
        urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
post('/files', {'input': 'hi'})
post('/chat/completions', {'messages': [{'role': 'user', 'content': 'hi'}], 'n': 2})
";
    let upstream = Upstream::new(vec![text("no")]);
    // The model never replied, so whatever the exit code is, the attempt says nothing about the model.
    for (name, end) in [("r", "sys.exit(1)\n"), ("s", "")] {
        let ran = run(&lab, own_agent(&lab, &format!("{script}{end}")), &upstream, &["--name", name]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let record = &lab.records(name)[0];
        assert_eq!(record["end"], "never_asked", "{record:#}");
        let detail = record["end_detail"].as_str().unwrap();
        let said = "none of its 2 requests could be answered: this gateway gives one choice a call: leave `n` at 1";
        assert_eq!(detail, said);
    }
    let lines = trajectory(&lab, "own");
    let refused: Vec<&str> = events(&lines, "call_refused").iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].contains("/files") && refused[0].contains("/v1/chat/completions"), "{refused:?}");
    assert_eq!(upstream.calls(), 0);
}

#[test]
fn a_reply_cut_by_the_run_is_marked_as_cut_for_the_agent() {
    let lab = Lab::new();
    let agent = own_agent(&lab, "print(call()[1]['choices'][0]['finish_reason'])\n");
    // If the server does not say why a reply ended, it counts as cut if it has as many tokens as the run allows. The
    // replies here have 100 tokens.
    for (finish, most, said) in
        [(Value::Null, "100", "length\n"), (Value::Null, "101", "stop\n"), (json!("stop"), "100", "stop\n")]
    {
        let upstream = Upstream::new(vec![json!({"role": "assistant", "content": "no", "finish_reason": finish})]);
        let ran = run(&lab, agent, &upstream, &["--max-tokens", most, "--name", "r"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(events(&trajectory(&lab, "own"), "program")[0]["stdout"], said);
        std::fs::remove_dir_all(lab.path("runs/r")).unwrap();
    }
}

#[test]
fn ctrl_c_during_an_attempt_records_output_time_and_cost_of_the_last_call() {
    let lab = Lab::new();
    let agent = own_agent(&lab, "print('begun', flush=True)\ncall()\ntime.sleep(0.3)\ncall()\ntime.sleep(600)\n");
    let upstream = Upstream::late(vec![text("no")], Duration::from_secs(1));
    let arguments =
        ["--agent", agent, "--model", "m", "--base-url", &upstream.url, "--price", "100,100", "--name", "r"];
    let arguments = [&["run", "--sample", "tiny_1", "--no-baseline", "--retries", "0"], &arguments[..]].concat();
    let child = lab.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    upstream.wait_for(2);
    let begun = Instant::now();
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let record = &lab.records("r")[0];
    assert_eq!(record["end"], "cancelled", "{record:#}");
    assert!((record["cost"].as_f64().unwrap() - 0.22).abs() < 1e-9, "at 11 cents a call: {record:#}");
    assert!(record["tool_seconds"].as_f64().unwrap() > 0.25, "{record:#}");
    let lines = trajectory(&lab, "own");
    let program = events(&lines, "program");
    assert_eq!(program[0]["stdout"], "begun\n", "{program:?}");
    assert_eq!(events(&lines, "reply").len(), 2);
}

#[test]
fn without_a_sandbox_the_next_run_removes_files_of_a_killed_one() {
    let lab = Lab::new();
    std::fs::create_dir(lab.path("temporary")).unwrap();
    // Without a sandbox, nothing ends the agent's process when the run is killed, so this process ends by itself after
    // a short time.
    let agent = own_agent(&lab, "call()\ntime.sleep(15)\n");
    let upstream = Upstream::new(vec![text("no")]);
    let arguments = ["--agent", agent, "--model", "m", "--base-url", &upstream.url, "--price", "0,0", "--name", "r"];
    let arguments = [&["run", "--sample", "tiny_1", "--no-baseline", "--sandbox", "none"], &arguments[..]].concat();
    let command = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        command.env("TMPDIR", lab.path("temporary")).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut child = command(&arguments).spawn().unwrap();
    upstream.wait_for(1);
    child.kill().unwrap();
    child.wait().unwrap();
    let next = ["run", "--sample", "tiny_1", "--no-baseline", "--sandbox", "none", "--agent", "noop", "--name", "s"];
    assert!(command(&next).status().unwrap().success());
    for folder in ["temporary", "scratch"] {
        let left: Vec<_> =
            std::fs::read_dir(lab.path(folder)).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert!(left.is_empty(), "{folder}: {left:?}");
    }
}

#[test]
#[ignore = "measures time, which takes an otherwise idle machine"]
fn the_gateway_adds_less_than_two_milliseconds_to_a_call() {
    let lab = Lab::new();
    // Calls over one connection, each with a conversation of 20 kB; the model replies at once.
    let script = r"
import http.client, urllib.parse
place = urllib.parse.urlparse(os.environ['BASE'])
connection = http.client.HTTPConnection(place.hostname, place.port)
connection.connect()
connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
body = json.dumps({'model': 'x', 'messages': [{'role': 'user', 'content': 'words ' * 3500}]})
def init():
    fields = open('/proc/1/stat').read().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
times, used, inits = [], time.process_time(), init()
for _ in range(CALLS):
    begun = time.perf_counter()
    connection.request('POST', '/v1/chat/completions', body, {'content-type': 'application/json'})
    reply = connection.getresponse()
    assert reply.status == 200
    reply.read()
    times.append(time.perf_counter() - begun)
times.sort()
print(json.dumps({'median': times[len(times) // 2], 'client': time.process_time() - used, 'init': init() - inits}))
";
    lab.write("model.jsonl", &"{\"text\": \"no\"}\n".repeat(1001));
    let measure = |name: &str, calls: u32| {
        let agent = own_agent(&lab, &script.replace("CALLS", &calls.to_string()));
        let mut arguments = vec!["run", "--sample", "tiny_1", "--agent", agent, "--model", "scripted:model.jsonl"];
        arguments.extend(["--no-baseline", "--no-verify", "--name", name, "--steps", "2000"]);
        let used = cpu_of_children();
        lab.ok(&arguments);
        let used = cpu_of_children() - used;
        let text = lab.read(&format!("runs/{name}/trajectories/own/tiny_1.0.jsonl"));
        let line = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let program = line.into_iter().find(|line| line["event"] == "program").unwrap();
        let said: Value = serde_json::from_str(program["stdout"].as_str().unwrap()).unwrap();
        (used, ["median", "client", "init"].map(|name| said[name].as_f64().unwrap()))
    };
    let (short, _) = measure("a", 10);
    let mut best = f64::INFINITY;
    for (name, calls) in [("b", 300), ("c", 300), ("d", 1000)] {
        let (used, [median, client, init]) = measure(name, calls);
        // Only print these figures and do not check them, because other tests that run at the same time change them.
        let all = (used - short) / f64::from(calls - 10) * 1000.0;
        let [client, init] = [client, init].map(|time| time / f64::from(calls) * 1000.0);
        println!(
            "a call: {:.2} ms in the median; CPU time {all:.2} ms, of which client {client:.2}, init {init:.2}",
            median * 1000.0
        );
        best = best.min(median * 1000.0);
    }
    // The measured time includes the client's own time. If more processes want to run than there are cores, most of the
    // time is spent waiting for a core, so allow more.
    let load: f64 = std::fs::read_to_string("/proc/loadavg").unwrap().split(' ').next().unwrap().parse().unwrap();
    let cores = std::thread::available_parallelism().unwrap().get() as f64;
    let most = if load <= cores { 2.0 } else { 2.0 * (load / cores) };
    assert!(best < most, "the median of a call is {best:.2} ms, at a load of {load} on {cores} cores");
}

/// Returns the CPU seconds of all processes that this one has started and waited for.
fn cpu_of_children() -> f64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN).unwrap();
    [usage.user_time(), usage.system_time()].iter().map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6).sum()
}

/// Whether a process on this machine has this command line.
fn is_running(command_line: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        std::fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).trim_end_matches('\0') == command_line)
    })
}
