//! Every reply that was paid for is on record, whichever process is killed, and `--max-cost` holds over any number of
//! kills.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::provider::read_request;
use crate::support::Lab;
use crate::support::engine::{Engine, Kind, on_engines};

on_engines! {
    docker: what_was_served_to_attempts_in_containers_is_on_record_over_kills;
    podman: what_was_served_to_attempts_in_containers_is_on_record_over_kills;
}

/// Tokens in every reply.
const TOKENS: u64 = 5;

/// State of the counting server: how many replies it has served, and when it kills the program.
#[derive(Default)]
pub struct Plan {
    /// Number of replies served, each of which costs money.
    pub served: u64,
    /// The program to kill, and the number of further requests until then.
    victim: Option<(Pid, u64)>,
    /// Whether the program is killed when the request arrives, while the call is in progress. Otherwise, it is killed
    /// some time after the reply.
    at_request: bool,
    /// Delay of the kill after the reply, in milliseconds.
    delay: u64,
}

/// Starts a model server that counts its replies and, at the request that the plan names, kills the program that sent
/// it.
pub fn counting_server() -> (String, Arc<Mutex<Plan>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let plan = Arc::new(Mutex::new(Plan::default()));
    let own = plan.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let own = own.clone();
            std::thread::spawn(move || {
                // A connection without a request only checks that the server is there.
                if read_request(&mut stream).is_empty() {
                    return;
                }
                let mut plan = own.lock().unwrap();
                plan.served += 1;
                let is_last = plan.victim.as_mut().is_some_and(|(_, left)| {
                    *left = left.saturating_sub(1);
                    *left == 0
                });
                let victim = if is_last { plan.victim.take() } else { None };
                let (at_request, delay) = (plan.at_request, plan.delay);
                drop(plan);
                if let Some((pid, _)) = victim {
                    if !at_request {
                        answer(&mut stream, &call("list_files", &json!({}), TOKENS));
                        std::thread::sleep(Duration::from_millis(delay));
                    }
                    let _ = kill(pid, Signal::SIGKILL);
                }
                answer(&mut stream, &call("list_files", &json!({}), TOKENS));
            });
        }
    });
    (url, plan)
}

fn answer(stream: &mut TcpStream, (status, body): &(u16, Value)) {
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

/// Returns a reply that calls a tool.
fn call(tool: &str, arguments: &Value, tokens: u64) -> (u16, Value) {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let message = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "c", "type": "function", "function": function}]});
    let reply = json!({
        "id": "x", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": tokens, "total_tokens": tokens},
    });
    (200, reply)
}

/// Returns dollars from the run's ledger: the cost of finished calls, and the amount reserved for calls that were cut
/// off.
fn ledger(lab: &Lab) -> (f64, f64) {
    let status: Value = serde_json::from_str(&lab.ok(&["status", "r", "--json"]).stdout).unwrap();
    (status["cost"].as_f64().unwrap(), status["reserved"].as_f64().unwrap())
}

/// Returns the sum of the records' costs, in dollars.
fn recorded(lab: &Lab) -> f64 {
    lab.records("r").iter().map(|record| record["cost"].as_f64().unwrap()).sum()
}

/// Result of a run that was killed again and again, until its money was spent. Amounts are in dollars.
struct Survived {
    kills: u32,
    served: f64,
    settled: f64,
    reserved: f64,
}

/// Kills a run at most `most_kills` times, each time after a few replies, and resumes it until it is done. If `exact`,
/// kills are always during a call, otherwise at any moment.
fn killed(most_kills: u32, jobs: &str, exact: bool) -> Survived {
    killed_in(None, most_kills, jobs, exact)
}

/// Same as [`killed`], in containers of an engine.
fn killed_in(engine: Option<&Engine>, most_kills: u32, jobs: &str, exact: bool) -> Survived {
    let lab = Lab::new();
    let command = |arguments: &[&str]| {
        let mut command = lab.command(arguments);
        if let Some(engine) = engine {
            command.env(engine.kind.variable(), engine.address());
        }
        command
    };
    if let Some(engine) = engine {
        engine.give_base();
        let built = command(&["image", "build", "--engine", engine.kind.name(), "tiny"]).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    let (url, plan) = counting_server();
    // Choose the price of a reply so that 8 dollars pay for about three replies per kill.
    let price = 8.0 / f64::from(3 * most_kills);
    let (per_million, cost) = ((price / TOKENS as f64 * 1e6).to_string(), (4.0 * price).to_string());
    let tokens = TOKENS.to_string();
    let attempts = most_kills.to_string();
    let mut arguments = vec!["run", "-n", "1", "-k", &attempts, "--agent", "react", "--model", "m"];
    let prices = format!("0,{per_million}");
    arguments.extend(["--base-url", &url, "--price", &prices, "--max-tokens", &tokens, "--steps", "4"]);
    arguments.extend(["--cost", &cost, "--max-cost", "8", "--no-verify", "--no-baseline", "--name", "r", "-j", jobs]);
    if let Some(engine) = engine {
        arguments.extend(["--sandbox", engine.kind.name()]);
    }
    let mut kills = 0;
    loop {
        let child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        {
            let mut plan = plan.lock().unwrap();
            let victim = Pid::from_raw(child.id().cast_signed());
            plan.victim = (kills < most_kills).then(|| (victim, 1 + u64::from(kills * 7 % 4)));
            plan.at_request = exact || kills % 3 == 0;
            plan.delay = u64::from(kills * 13 % 40);
        }
        let ended = child.wait_with_output().unwrap();
        let served = plan.lock().unwrap().served as f64 * price;
        assert!(served <= 8.0 + price * jobs.parse::<f64>().unwrap() + 1e-9, "{served} dollars were served");
        let is_killed = std::os::unix::process::ExitStatusExt::signal(&ended.status) == Some(9);
        if is_killed {
            kills += 1;
            arguments = vec!["resume", "r", "--no-baseline"];
            continue;
        }
        assert_eq!(ended.status.code(), Some(10), "{}", String::from_utf8_lossy(&ended.stderr));
        let (settled, reserved) = ledger(&lab);
        // The records contain the cost of every call that the ledger contains as finished.
        assert!((settled - recorded(&lab)).abs() < 1e-9, "{settled} in the ledger, {} recorded", recorded(&lab));
        return Survived { kills, served, settled, reserved };
    }
}

#[test]
fn the_ledger_is_exact_after_ten_kills_and_the_cost_limit_holds() {
    let survived = killed(10, "1", true);
    assert!(survived.kills >= 6, "{} kills", survived.kills);
    let (served, on_record) = (survived.served, survived.settled + survived.reserved);
    assert!((served - on_record).abs() < 1e-9, "{served} dollars served, {on_record} on record");
}

#[test]
#[ignore = "kills the program 200 times, or AUTOEXPERIMENT_KILLS times, which takes minutes"]
fn the_cost_limit_holds_over_200_kills_at_any_moment() {
    let kills = std::env::var("AUTOEXPERIMENT_KILLS").map_or(200, |kills| kills.parse().unwrap());
    let Survived { kills, served, settled, reserved } = killed(kills, "2", false);
    println!("{kills} kills: ${served:.6} served, ${settled:.6} settled, ${reserved:.6} reserved for calls cut off");
    // Money stays reserved for a call that a kill has cut off, whether or not the server has received the call. So the
    // money for served replies lies between the settled sum and the sum of settled and reserved money.
    assert!(settled <= served + 1e-9 && served <= settled + reserved + 1e-9);
}

fn what_was_served_to_attempts_in_containers_is_on_record_over_kills(kind: Kind) {
    let engine = Engine::start(kind);
    // `AUTOEXPERIMENT_KILLS` sets the number of kills.
    let most = std::env::var("AUTOEXPERIMENT_KILLS").map_or(8, |kills| kills.parse().unwrap());
    let Survived { kills, served, settled, reserved } = killed_in(Some(&engine), most, "2", false);
    println!("{kills} kills: ${served:.6} served, ${settled:.6} settled, ${reserved:.6} reserved for calls cut off");
    assert!(kills >= most / 2, "{kills} kills");
    assert!(settled <= served + 1e-9 && served <= settled + reserved + 1e-9);
    // No container of a killed process may be left: such a container ends by itself, which takes a moment, or `resume`
    // removes it.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(engine.running(), Vec::<String>::new());
}

/// Starts a server whose replies have as many tokens as the request allows. It refuses requests that allow more than
/// `longest` tokens.
fn greedy_server(longest: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let request: Value = serde_json::from_str(&read_request(&mut stream)).unwrap_or_default();
            let bound = request["max_tokens"].as_u64().or_else(|| request["max_completion_tokens"].as_u64());
            let reply = match bound {
                Some(bound) if bound > longest => {
                    let what = format!(
                        "max_tokens is too large: {bound}. This model supports at most {longest} completion tokens, \
                         whereas you provided {bound}."
                    );
                    (400, json!({"error": {"message": what, "code": null}}))
                }
                bound => call("list_files", &json!({}), bound.unwrap_or(1 << 20)),
            };
            answer(&mut stream, &reply);
        }
    });
    url
}

#[test]
fn replies_are_limited_by_the_remaining_money_and_by_the_models_own_maximum() {
    // At a cent per 100 tokens, the attempt's dollar pays for one reply of 10,000 tokens. If the model writes at most
    // 4,096 tokens per reply, the attempt ends after two replies, because the money left is too little for a third one.
    // The agent was warned of that before the second reply.
    for (longest, steps, tokens) in [(1 << 20, 1, 10_000.0), (4096, 2, 8192.0)] {
        let lab = Lab::new();
        let url = greedy_server(longest);
        let mut arguments =
            vec!["run", "-n", "1", "--limit", "1", "--agent", "react", "--model", "m", "--base-url", &url];
        arguments.extend(["--price", "0,100", "--cost", "1", "--no-verify", "--no-baseline", "--name", "r"]);
        lab.ok(&arguments);
        let record = &lab.records("r")[0];
        assert_eq!(record["end"], "cost_limit");
        let cost = record["cost"].as_f64().unwrap();
        assert!(cost <= 1.0 && (cost - tokens / 10_000.0).abs() < 0.01, "{cost}");
        assert_eq!(record["steps"], steps);
    }
}

#[test]
fn a_run_without_a_ledger_is_summed_from_records_and_gets_one_on_resume() {
    let lab = Lab::new();
    lab.write("replies", "{\"text\": \"\", \"tool_calls\": [{\"name\": \"list_files\"}], \"cost\": 0.5}\n");
    let model = format!("scripted:{}", lab.path("replies").display());
    lab.ok(&["run", "-n", "1", "--limit", "2", "--agent", "react", "--model", &model, "--name", "r", "--no-baseline"]);
    assert_eq!(ledger(&lab), (1.0, 0.0));
    std::fs::remove_file(lab.path("runs/r/ledger.jsonl")).unwrap();
    assert_eq!(ledger(&lab), (1.0, 0.0));
    lab.ok(&["resume", "r", "--no-baseline"]);
    assert!(lab.read("runs/r/ledger.jsonl").contains("\"carried\""));
    assert_eq!(ledger(&lab), (1.0, 0.0));
    // A cost that is in the ledger, but in no record, is reported and then recorded.
    let attempts = lab.read("runs/r/attempts.jsonl");
    lab.ok(&["run", "-n", "1", "--limit", "2", "--agent", "react", "--model", &model, "--name", "s", "--no-baseline"]);
    lab.write("runs/s/attempts.jsonl", "");
    let text = lab.ok(&["status", "s"]).stdout;
    assert!(text.contains("the ledger shows a cost of $1.0000, the records $0.0000"), "{text}");
    lab.ok(&["resume", "s", "--no-baseline"]);
    assert_eq!(lab.records("s").len(), 4, "two tries each");
    assert_eq!(attempts.lines().count(), 2);
    let shown = lab.ok(&["show", "s", lab.records("s")[0]["sample"].as_str().unwrap(), "--no-pager"]).stdout;
    assert!(shown.contains("cost in the ledger: $1.0000; in the records of its 2 tries: $1.0000"), "{shown}");
}
