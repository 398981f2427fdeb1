//! The external agents with bundled manifests, installed from npm or PyPI, end to end in the sandbox without a network.
//! Each solves a sample. In place of a real model, a test server plays back replies that call the agent's tools.

use serde_json::{Value, json};

use crate::external_agents::{REPORT, SOLVE, Upstream, events, run, text, trajectory};
use crate::support::Lab;

/// Returns a reply that calls a program's shell tool.
fn shell(number: usize, tool: &str, arguments: &Value) -> Value {
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"id": format!("c{number}"), "type": "function", "function": function});
    json!({"role": "assistant", "content": "So be it.", "reasoning_content": "Hm.", "tool_calls": [call]})
}

/// Checks that the agent solves the sample with its shell tool `tool`, which takes the command in the argument `key`;
/// `more` are the tool's other arguments. `begun` is the number of assistant messages that the agent itself puts at the
/// beginning of the conversation. Returns the gateway's notes about the parts of requests that were not passed on, and
/// the requests that reached the provider; `None` if the machine's Node.js is too old.
fn solves(agent: &str, tool: &str, key: &str, more: &Value, begun: usize) -> Option<(Vec<String>, Vec<Value>)> {
    let lab = Lab::new();
    let node = std::process::Command::new("node").arg("--version").output().unwrap();
    let node = String::from_utf8_lossy(&node.stdout).into_owned();
    if !node
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()
        .is_some_and(|major| major.parse::<u32>().is_ok_and(|major| major >= 20))
    {
        eprintln!("skipped: these programs need Node.js 20, and there is {node}");
        return None;
    }
    let call = |number: usize, command: &str| {
        let mut arguments = more.clone();
        arguments[key] = json!(command);
        shell(number, tool, &arguments)
    };
    let mut replies = vec![call(0, SOLVE); begun + 1];
    replies.extend([call(1, REPORT), text("Done.")]);
    let upstream = Upstream::new(replies);
    let ran = run(&lab, &format!("cli:{agent}"), &upstream, &["--cost", "5"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    let lines = trajectory(&lab, agent);
    let program = events(&lines, "program");
    assert_eq!((&record["pass"], &record["end"]), (&json!(true), &json!("answered")), "{record:#}\n{program:#?}");
    assert!(upstream.calls() >= 3, "{program:#?}");
    // The agent sends the model's reasoning back to the model, together with the model's calls.
    let asked = upstream.asked.lock().unwrap();
    let said = asked.iter().rev().flat_map(|body| body["messages"].as_array().unwrap().clone());
    let with_calls: Vec<Value> = said.filter(|message| message["tool_calls"].is_array()).collect();
    assert!(
        !with_calls.is_empty() && with_calls.iter().all(|message| message["reasoning_content"] == "Hm."),
        "{with_calls:#?}"
    );
    assert!(lab.read(&format!("runs/r/diffs/{agent}/tiny_1.0.patch")).contains("+    return math.exp"));
    let not_passed = events(&lines, "not_passed");
    Some((not_passed.iter().map(|line| line["what"].as_str().unwrap().to_owned()).collect(), asked.clone()))
}

#[test]
#[ignore = "needs npm"]
fn codex_solves_a_paper_over_the_responses_api() {
    solves("codex", "exec_command", "cmd", &json!({}), 0);
}

#[test]
#[ignore = "needs npm"]
fn claude_code_solves_a_paper_over_messages_and_ignored_betas_are_recorded() {
    let Some((not_passed, _)) = solves("claude-code", "Bash", "command", &json!({"description": "runs"}), 0) else {
        return;
    };
    assert!(not_passed.iter().any(|what| what.starts_with("beta `")), "{not_passed:?}");
}

#[test]
#[ignore = "needs npm"]
fn gemini_cli_solves_a_paper_over_the_gemini_api_and_sends_its_own_sampling_settings() {
    let Some((_, asked)) = solves("gemini-cli", "run_shell_command", "command", &json!({"description": "runs"}), 0)
    else {
        return;
    };
    let sampled = |body: &Value| body["top_k"].is_number() && body["top_p"].is_number();
    assert!(asked.iter().any(sampled), "{asked:#?}");
}

#[test]
#[ignore = "needs npm"]
fn qwen_code_solves_a_paper_over_chat_completions() {
    solves("qwen-code", "run_shell_command", "command", &json!({"description": "runs", "is_background": false}), 1);
}

#[test]
#[ignore = "needs npm"]
fn opencode_solves_a_paper_over_chat_completions() {
    solves("opencode", "bash", "command", &json!({"description": "runs"}), 0);
}

#[test]
#[ignore = "needs npm"]
fn cline_solves_a_paper_over_chat_completions() {
    solves("cline", "run_commands", "commands", &json!({}), 0);
}

#[test]
#[ignore = "needs npm"]
fn copilot_solves_a_paper_over_chat_completions_without_an_account() {
    solves("copilot", "bash", "command", &json!({"description": "runs"}), 0);
}

#[test]
#[ignore = "needs npm"]
fn droid_solves_a_paper_over_chat_completions_without_an_account() {
    solves("droid", "Execute", "command", &json!({}), 0);
}

#[test]
#[ignore = "needs npm"]
fn kimi_code_solves_a_paper_over_chat_completions() {
    solves("kimi-code", "Bash", "command", &json!({}), 0);
}

#[test]
#[ignore = "needs npm"]
fn pi_solves_a_paper_over_chat_completions() {
    solves("pi", "bash", "command", &json!({}), 0);
}

#[test]
#[ignore = "needs PyPI and Python 3.12"]
fn openhands_solves_a_paper_in_its_terminal() {
    solves("openhands", "terminal", "command", &json!({"security_risk": "LOW", "summary": "runs"}), 0);
}

#[test]
#[ignore = "needs npm"]
fn codex_gets_its_own_prompt_and_tools_for_a_model_that_it_knows() {
    // For this model, Codex offers the tool `exec`, which runs JavaScript. That JavaScript calls Codex's tool for
    // commands.
    let code = |command: &str| {
        let command = json!({"cmd": command}).to_string();
        json!({"input": format!("const done = await tools.exec_command({command}); text(done.output);")})
    };
    let call = |number: usize, command: &str| shell(number, "exec", &code(command));
    let upstream = Upstream::new(vec![call(0, SOLVE), call(1, REPORT), text("Done.")]);
    let lab = Lab::new();
    let ran = run(&lab, "cli:codex", &upstream, &["--cost", "5", "--model", "gpt-5.6-sol"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let record = &lab.records("r")[0];
    let lines = trajectory(&lab, "codex");
    assert_eq!((&record["pass"], &record["end"]), (&json!(true), &json!("answered")), "{record:#}\n{lines:#?}");
    let tools = &events(&lines, "asked")[0]["tools"];
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"exec") && names.iter().any(|name| name.starts_with("collaboration__")), "{names:?}");
    assert!(record["refused_requests"].is_null(), "{record:#}");
    // The export of the attempt names the version of Codex and its tools.
    lab.ok(&["export", "r", "--format", "atif", "-o", "atif"]);
    let exported: Value = serde_json::from_str(&lab.read("atif/codex/tiny_1.0.json")).unwrap();
    assert_eq!(exported["agent"]["version"], "0.169.0");
    let exported = exported["agent"]["tool_definitions"].as_array().unwrap().len();
    assert_eq!(exported, names.len());
}

#[test]
#[ignore = "needs npm"]
fn goose_solves_a_paper_over_chat_completions() {
    solves("goose", "shell", "command", &json!({}), 0);
}

#[test]
fn the_agents_that_come_with_the_program_are_listed() {
    let lab = Lab::new();
    let listed: Value = serde_json::from_str(&lab.ok(&["agents", "--json"]).stdout).unwrap();
    let names: Vec<&str> =
        listed["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "aider",
            "claude-code",
            "cline",
            "codex",
            "copilot",
            "droid",
            "gemini-cli",
            "goose",
            "gptme",
            "kimi-code",
            "mini-swe-agent",
            "opencode",
            "openhands",
            "pi",
            "qwen-code"
        ]
    );
    let shown = lab.ok(&["agents"]).stdout;
    assert!(shown.contains("npm: @openai/codex"), "{shown}");
    // The settings are listed with the agents that use them and their defaults.
    assert!(shown.contains("\n  code=CHOICE            fixed [bm25], react [agent]\n"), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 100), "{shown}");
}
