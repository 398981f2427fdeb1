//! The MCP server: protocol revisions with and without sessions over stdio, streamable HTTP, and gold, which the server
//! never shows.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Lab;
use crate::support::episodes::{Served, answers, descendants, gold};

/// Returns the metadata that each request carries in the revision of the protocol without sessions.
fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// An assistant on the other end of stdin and stdout.
struct Assistant {
    process: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
    /// Whether requests carry [`modern`].
    is_modern: bool,
    /// Everything that the server wrote.
    heard: String,
}

impl Assistant {
    fn start(lab: &Lab, is_modern: bool) -> Self {
        Self::start_with(lab, is_modern, &[])
    }

    fn start_with(lab: &Lab, is_modern: bool, options: &[&str]) -> Self {
        let own = ["mcp", "--name", "s", "--no-baseline", "-n", "1,2", "--client", "helper"];
        let mut command = lab.command(&[&own[..], options].concat());
        // This variable is meant for servers over HTTP, so its value, which is too short, must not matter here.
        command.env("AUTOEXPERIMENT_TOKEN", "short");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdin = process.stdin.take();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let mut assistant = Self { process, stdin, stdout, next: 1, is_modern, heard: String::new() };
        if is_modern {
            let found = assistant.ask("server/discover", json!({}));
            assert!(found["supportedVersions"].to_string().contains("2026-07-28"), "{found:#}");
        } else {
            let hello = json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
            });
            let found = assistant.ask("initialize", hello);
            assert_eq!(found["protocolVersion"], "2025-06-18", "{found:#}");
            assert_eq!(found["serverInfo"]["name"], "autoexperiment");
            assistant.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        assistant
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn answer_to(&mut self, method: &str, mut params: Value) -> Value {
        if self.is_modern {
            params["_meta"] = modern();
        }
        let id = self.next;
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server has ended");
            self.heard.push_str(&line);
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer_to(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer:#}");
        answer["result"].clone()
    }

    /// Calls a tool; returns its text, and whether that is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        (text, result["isError"] == true)
    }

    fn called(&mut self, tool: &str, arguments: &Value) -> Value {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.process.wait();
    }
}

fn an_assistant_attempts_a_sample(is_modern: bool) {
    let lab = Lab::new();
    let mut assistant = Assistant::start(&lab, is_modern);
    let tools = assistant.ask("tools/list", json!({}))["tools"].clone();
    let tools = tools.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["list_papers", "draw_samples", "start_attempt", "write_file", "submit", "result", "report"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for name in ["command_line", "final_answer"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
        assert!(tool["inputSchema"]["required"].to_string().contains("attempt"), "{tool:#}");
    }
    let papers = assistant.called("list_papers", &json!({}));
    assert_eq!(papers["papers"][0]["paper"], "tiny", "{papers:#}");
    let resources = assistant.ask("resources/list", json!({}));
    assert_eq!(resources["resources"][0]["uri"], "paper://tiny", "{resources:#}");
    let text = assistant.ask("resources/read", json!({ "uri": "paper://tiny" }));
    assert!(text["contents"][0]["text"].as_str().unwrap().len() > 100, "{text:#}");
    let missing = assistant.answer_to("resources/read", json!({ "uri": "paper://../gold" }));
    assert!(missing["error"]["code"].is_i64(), "{missing:#}");
    let drawn = assistant.called("draw_samples", &json!({ "n": 1, "count": 2, "seed": 4 }));
    assert_eq!(drawn["samples"].as_array().unwrap().len(), 2, "{drawn:#}");
    let begun = assistant.called("start_attempt", &json!({ "sample": "tiny_0" }));
    let attempt = begun["attempt"].as_str().unwrap().to_owned();
    assert!(begun["task"].as_str().unwrap().contains("arithmetic"), "{begun:#}");
    let original = lab.read("repos/tiny/tiny/means.py");
    assistant.called("write_file", &json!({ "attempt": attempt, "path": "tiny/means.py", "content": original }));
    let shown = assistant.called("command_line", &json!({ "attempt": attempt, "command": "cat tiny/means.py" }));
    assert!(shown.as_str().unwrap().contains("total += value"), "{shown}");
    let waiting = assistant.called("result", &json!({ "attempt": attempt }));
    assert!(waiting["state"].as_str().unwrap().contains("your next call"), "{waiting:#}");
    let known = assistant.heard.clone();
    for (id, value) in [("means", gold(&lab, "means")), ("spread", gold(&lab, "spread"))] {
        let numbers: Vec<String> =
            value.as_object().unwrap().values().filter(|it| it.is_f64()).map(ToString::to_string).collect();
        assert!(!numbers.is_empty() && numbers.iter().all(|number| !known.contains(number)), "{id}: gold was shown");
    }
    let answer = answers(&lab).to_string();
    let ended = assistant.called("submit", &json!({ "attempt": attempt, "answer": answer }));
    assert_eq!((&ended["pass"], &ended["reward"]), (&json!(true), &json!(1.0)), "{ended:#}");
    assert_eq!(assistant.called("result", &json!({ "attempt": attempt }))["pass"], true);
    assert!(assistant.called("report", &json!({})).as_str().unwrap().contains("serve:helper"));
    // A wrong call returns an error of the tool, which the assistant sees.
    for (tool, arguments, what) in [
        ("command_line", json!({ "attempt": attempt, "command": "ls" }), "the episode is over"),
        ("command_line", json!({ "command": "ls" }), "`attempt` is missing"),
        ("command_line", json!({ "attempt": "tiny_0.0-0", "command": "ls" }), "no such attempt"),
        ("start_attempt", json!({ "sample": "tiny_99" }), "no function 99"),
        ("start_attempt", json!({ "paper": "tiny" }), "wrong arguments"),
        ("draw_samples", json!({ "paper": "x" }), "no paper"),
    ] {
        let (text, is_error) = assistant.call(tool, &arguments);
        assert!(is_error && text.contains(what), "{tool}: {text}");
    }
    // An attempt that is still open when the assistant leaves is given up, so it counts as failed.
    let open = assistant.called("start_attempt", &json!({ "sample": "tiny_1" }));
    assistant.called("command_line", &json!({ "attempt": open["attempt"], "command": "echo begun" }));
    drop(assistant);
    let records = lab.records("s");
    let of = |key: &str| records.iter().map(|record| record[key].clone()).collect::<Vec<_>>();
    assert_eq!((of("agent"), of("pass")), (vec![json!("serve:helper"); 2], vec![json!(true), json!(false)]));
    assert_eq!(of("end"), ["answered", "gave_up"]);
}

#[test]
fn an_attempt_is_given_up_if_its_assistant_leaves_during_a_call() {
    let lab = Lab::new();
    let mut assistant = Assistant::start(&lab, true);
    let begun = assistant.called("start_attempt", &json!({ "sample": "tiny_0" }));
    let arguments = json!({ "attempt": begun["attempt"], "command": "sleep 300" });
    let params = json!({ "name": "command_line", "arguments": arguments, "_meta": modern() });
    assistant.write(&json!({ "jsonrpc": "2.0", "id": 1000, "method": "tools/call", "params": params }));
    let until = Instant::now() + Duration::from_secs(30);
    while descendants(assistant.process.id()).is_empty() {
        assert!(Instant::now() < until, "the command does not run");
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_millis(500));
    let left = Instant::now();
    drop(assistant);
    assert!(left.elapsed() < Duration::from_secs(30), "the call went on");
    let records = lab.records("s");
    assert_eq!((records.len(), &records[0]["end"]), (1, &json!("gave_up")), "{records:#?}");
}

#[test]
fn an_attempt_may_be_answered_with_the_tool_that_its_task_mentions() {
    let lab = Lab::new();
    let mut assistant = Assistant::start(&lab, true);
    let begun = assistant.called("start_attempt", &json!({ "sample": "tiny_0" }));
    assert!(begun.to_string().contains("final_answer"), "{begun:#}");
    let ended = assistant.called("final_answer", &json!({ "attempt": begun["attempt"], "answer": "{}" }));
    assert_eq!((&ended["end"], &ended["reward"]), (&json!("answered"), &json!(0.0)), "{ended:#}");
}

#[test]
fn the_result_of_an_attempt_that_ended_by_itself_is_its_verdict() {
    let lab = Lab::new();
    let mut assistant = Assistant::start_with(&lab, true, &["--idle", "2"]);
    let begun = assistant.called("start_attempt", &json!({ "sample": "tiny_0" }));
    let named = json!({ "attempt": begun["attempt"] });
    let until = Instant::now() + Duration::from_secs(30);
    let result = loop {
        let result = assistant.called("result", &named);
        if result["state"] != "waiting for your next call" {
            break result;
        }
        assert!(Instant::now() < until, "{result:#}");
        sleep(Duration::from_millis(100));
    };
    assert_eq!((&result["end"], &result["reward"]), (&json!("gave_up"), &json!(0.0)), "{result:#}");
    assert_eq!(assistant.called("result", &named), result);
}

#[test]
fn samples_are_drawn_at_random_unless_a_seed_is_given() {
    let lab = Lab::new();
    let mut assistant = Assistant::start(&lab, true);
    let mut draw = |arguments: Value| assistant.called("draw_samples", &arguments)["samples"].to_string();
    let mut drawn: Vec<String> = (0..30).map(|_| draw(json!({}))).collect();
    drawn.sort();
    drawn.dedup();
    assert!(drawn.len() > 1, "{drawn:?}");
    assert_eq!(draw(json!({ "seed": 4, "count": 2 })), draw(json!({ "seed": 4, "count": 2 })));
    let all: Value = serde_json::from_str(&draw(json!({ "seed": 4, "count": 1000 }))).unwrap();
    let mut ids: Vec<String> = all.as_array().unwrap().iter().map(|it| it["sample"].to_string()).collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert!(ids.len() == count && count > 2, "{all:#}");
}

#[test]
fn a_token_without_an_address_is_refused() {
    let lab = Lab::new();
    let refused = lab.fails(2, &["mcp", "--token", "0123456789abcdef", "--no-baseline"]);
    assert!(refused.contains("--listen"), "{refused}");
    let mut command = lab.command(&["mcp", "--listen", "127.0.0.1:0", "--no-baseline", "--name", "s"]);
    command.env("AUTOEXPERIMENT_TOKEN", "0123456789abcdef");
    let served = Served::run(command);
    assert_eq!(served.http("POST", "/mcp", Some(&json!({})), &[]).0, 401, "the variable counts with `--listen`");
    let token: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff0123456789abcdef");
    let mut command = lab.command(&["mcp", "--listen", "127.0.0.1:0", "--no-baseline", "--name", "other"]);
    let refused = command.env("AUTOEXPERIMENT_TOKEN", token).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("is not UTF-8"), "{said}");
}

#[test]
fn an_assistant_that_speaks_the_revision_of_mcp_without_sessions_attempts_a_sample() {
    an_assistant_attempts_a_sample(true);
}

#[test]
fn an_assistant_that_speaks_an_earlier_revision_of_mcp_attempts_a_sample() {
    an_assistant_attempts_a_sample(false);
}

#[test]
fn the_mcp_server_refuses_http_requests_without_its_token_and_public_addresses_without_a_token() {
    let lab = Lab::new();
    let token = "0123456789abcdef";
    let served =
        Served::run(lab.command(&["mcp", "--listen", "127.0.0.1:0", "--token", token, "--no-baseline", "--name", "s"]));
    assert!(served.address.ends_with("/mcp"), "{}", served.address);
    let question = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "list_papers", "arguments": {}, "_meta": modern() },
    });
    let accept = "Accept: application/json, text/event-stream";
    let headers = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: list_papers", accept];
    assert_eq!(served.http("POST", "/mcp", Some(&question), &headers).0, 401);
    let authorization = format!("Authorization: Bearer {token}");
    let headers = [headers.as_slice(), &[authorization.as_str()]].concat();
    let (status, body) = served.http("POST", "/mcp", Some(&question), &headers);
    assert_eq!(status, 200, "{body}");
    assert!(body.to_string().contains("tiny"), "{body}");
    let refused = lab.fails(2, &["mcp", "--listen", "0.0.0.0:0", "--no-baseline"]);
    assert!(refused.contains("--token"), "{refused}");
}

#[test]
#[ignore = "needs npm"]
fn an_assistant_from_npm_attempts_a_sample_and_is_shown_the_verdict() {
    let lab = Lab::new();
    let package: Value = serde_json::from_str(include_str!("../../agents/qwen-code/package.json")).unwrap();
    let (name, version) = package["dependencies"].as_object().unwrap().iter().next().unwrap();
    let original = lab.read("repos/tiny/tiny/means.py");
    let plan = json!([
        ["draw_samples", { "n": 1, "seed": 4 }],
        ["start_attempt", { "sample": "tiny_0" }],
        ["write_file", { "attempt": null, "path": "tiny/means.py", "content": original }],
        ["command_line", { "attempt": null, "command": "cat tiny/means.py" }],
        ["submit", { "attempt": null, "answer": answers(&lab).to_string() }],
    ]);
    let folder = tempfile::tempdir().unwrap();
    let of_mcp = lab.command(&["mcp", "--name", "s", "--no-baseline", "-n", "1,2", "--client", "helper"]);
    let mut assistant = std::process::Command::new("python3");
    assistant.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/assistant.py")).arg(folder.path());
    assistant.arg(format!("{name}@{}", version.as_str().unwrap())).arg(of_mcp.get_program()).args(of_mcp.get_args());
    assistant.current_dir(lab.path("")).envs(of_mcp.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut running = assistant.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    running.stdin.take().unwrap().write_all(plan.to_string().as_bytes()).unwrap();
    let said = running.wait_with_output().unwrap();
    assert!(said.status.success());
    let returned: Vec<String> = serde_json::from_slice(&said.stdout).unwrap();
    assert!(returned[3].contains("total += value"), "{returned:#?}");
    let ended: Value = serde_json::from_str(&returned[4]).unwrap();
    assert_eq!((&ended["pass"], &ended["reward"]), (&json!(true), &json!(1.0)), "{ended:#}");
    assert_eq!(lab.records("s")[0]["agent"], "serve:helper");
}
