//! Tests that random and damaged replies never cause a panic, and that every attempt ends.

use clap::ValueEnum;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{AttemptFixture, call as called, open, task, text};
use crate::agent::protocol::{calls, text as by_text};
use crate::agent::tools::{ToolChoice, ToolSet};
use crate::agent::{End, Settings};
use crate::model::{Reply, ToolCall};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!("main.py")),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![vec(inner.clone(), 0..3).prop_map(Value::from), arguments(inner).boxed()]
    })
}

/// Generates objects whose keys are often names of tools' arguments.
fn arguments(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("path"),
        Just("content"),
        Just("question"),
        Just("instruction"),
        Just("answer"),
        Just("source"),
        Just("destination"),
        Just("start_line"),
        Just("end_line"),
        Just("Experiment 1"),
        Just("other"),
        Just("command"),
        Just("code"),
        Just("text"),
        Just("name"),
        Just("line"),
        Just("direction"),
        Just("replacement"),
        Just("old_lines"),
        Just("new_lines"),
    ];
    vec((key.prop_map(str::to_owned), value), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

/// Generates names of tools, and similar names. `all` includes tools that run commands, which must not run on this
/// machine.
fn name(all: bool) -> impl Strategy<Value = String> {
    let runs = |name: &str| ["move", "command_line", "bash"].contains(&name) || name.starts_with("execute");
    let names: Vec<String> = ToolChoice::value_variants()
        .iter()
        .flat_map(|choice| ToolSet::from_choice(*choice).definitions())
        .map(|tool| tool.name.clone())
        .filter(|name| all || !runs(name))
        .collect();
    prop_oneof![9 => proptest::sample::select(names), 1 => ".{0,8}"]
}

fn call(all: bool) -> impl Strategy<Value = ToolCall> {
    // Use only relative paths, so that nothing outside the test's folder is touched.
    (name(all), prop_oneof![4 => arguments(value()).boxed(), 1 => value().boxed()]).prop_map(|(name, arguments)| {
        let text = arguments.to_string().replace(['/', '~'], "_").replace("..", "__");
        ToolCall { id: "r".into(), name, arguments: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    })
}

/// Generates text that contains calls and is damaged somewhere.
fn damaged(all: bool) -> impl Strategy<Value = String> {
    (vec(call(all), 1..3), any::<prop::sample::Index>(), ".{0,3}", any::<bool>()).prop_map(|(calls, at, noise, cut)| {
        let mut text = String::from("I think.\n```json\n");
        for call in calls {
            text.push_str(&json!({"name": call.name, "arguments": call.arguments}).to_string());
            text.push_str("\n```\n");
        }
        let characters: Vec<char> = text.chars().collect();
        let at = at.index(characters.len());
        let tail = if cut { String::new() } else { characters[at..].iter().collect() };
        characters[..at].iter().collect::<String>() + &noise.replace(['/', '~', '.'], "_") + &tail
    })
}

fn reply(all: bool) -> impl Strategy<Value = Reply> {
    let said = prop_oneof![3 => damaged(all), 1 => "[{}\"\\\\:,a-z`\n ]{0,80}", 1 => Just(String::new())];
    let own = prop_oneof![2 => Just(Vec::new()), 3 => vec(call(all), 1..4)];
    (said, own).prop_map(|(text, tool_calls)| Reply { text, tool_calls, cost: 0.01, ..Reply::default() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn reading_a_reply_never_panics(text in prop_oneof![damaged(true), fenced(), ".{0,200}", "[{}\"\\\\:, \n`]{0,300}"]) {
        let _ = calls(&text, &[], &|name| name == "read_file");
        for choice in ToolChoice::value_variants() {
            let _ = by_text::calls(&text, &ToolSet::from_choice(*choice));
        }
    }
}

/// Generates code fences of the text protocol, for tools and for similar names.
fn fenced() -> impl Strategy<Value = String> {
    let label = prop_oneof![name(true), Just("json".to_owned()), Just("bash".to_owned()), Just("python".to_owned())];
    let body = prop_oneof![
        value().prop_map(|value| value.to_string()),
        "(path|start_line|line|content|name): ?.{0,9}\n.{0,30}\n",
        ".{0,40}",
    ];
    (label, body, "`{2,4}", "\n?`{0,4}\n?.{0,9}")
        .prop_map(|(label, body, begin, end)| format!("Thought.\n{begin}{label}\n{body}\n{end}"))
}

/// Generates very large malformed replies.
fn large() -> impl Strategy<Value = Reply> {
    let big = || "x ".repeat(1 << 19);
    prop_oneof![
        Just(text(&big())),
        name(true).prop_map(move |name| called(&name, json!({"path": "a", "content": big(), "command": big()}))),
        name(true).prop_map(|name| called(&name, Value::String(format!("{{\"path\": \"{}", "x".repeat(1 << 20))))),
        vec(call(true), 10).prop_map(|tool_calls| Reply { tool_calls, ..Reply::default() }),
        Just(called("final_answer", Value::String("{\"answer\": \"{\\\"Experiment 1".into()))),
        Just(called("submit", json!({"answer": "{\"Experiment 1\": {\"x\": "}))),
    ]
}

/// Generates lists of different replies, or of one reply repeated.
fn conversation(all: bool) -> impl Strategy<Value = Vec<Reply>> {
    prop_oneof![4 => vec(reply(all), 0..20), 1 => reply(all).prop_map(|reply| vec![reply; 30])]
}

/// Generates agents that use a model, with any settings.
fn spec() -> impl Strategy<Value = String> {
    let prompt = proptest::sample::select(vec!["react", "mlagentbench", "planning"]);
    let tools = proptest::sample::select(vec!["autoexperiment", "swe-agent", "super", "bash"]);
    let history = proptest::sample::select(vec!["full", "window:1", "window:3", "summary:1", "summary:3", "super"]);
    let protocol = proptest::sample::select(vec!["tools", "text"]);
    let rest = proptest::sample::select(vec![
        "",
        ",context=3000",
        ",reflexion=2",
        ",reflexion=3,context=6000",
        ",paper=full,code=bm25",
        ",reasoning=60",
    ]);
    let react = (prompt, tools, history, protocol, rest).prop_map(|(prompt, tools, history, protocol, rest)| {
        format!("react:prompt={prompt},tools={tools},history={history},protocol={protocol}{rest}")
    });
    let fixed = proptest::sample::select(vec![
        "fixed",
        "fixed:repair=2,reasoning=100",
        "fixed:paper=full,code=ast,fill=masked",
    ]);
    prop_oneof![6 => react, 1 => fixed.prop_map(str::to_owned)]
}

async fn ends(world: AttemptFixture, spec: &str) {
    let agent = open(spec, &Settings::default(), None).unwrap();
    let attempt = world.limits(|limits| limits.steps = 12).run(agent.as_ref(), &task()).await;
    assert!(attempt.budget.steps <= 12 && attempt.end != End::Cancelled, "{spec}: {:?}", attempt.end);
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn an_attempt_ends_whatever_random_replies_it_gets(
        replies in conversation(false),
        tools in proptest::sample::select(vec!["autoexperiment", "swe-agent", "super"]),
        history in proptest::sample::select(vec!["full", "window:2", "summary:2", "super"]),
    ) {
        block_on(async { ends(AttemptFixture::new(replies).await, &format!("react:tools={tools},history={history}")).await });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_agent_ends_with_random_replies_of_model_and_sandbox(
        replies in conversation(true),
        fences in vec(fenced(), 0..6),
        large in prop_oneof![9 => Just(None), 1 => large().prop_map(Some)],
        at in any::<prop::sample::Index>(),
        draws in vec(any::<u8>(), 1..40),
        spec in spec(),
    ) {
        let mut replies = replies;
        for (place, fence) in fences.iter().enumerate() {
            replies.insert((2 * place).min(replies.len()), text(fence));
        }
        if let Some(large) = large {
            replies.insert(at.index(replies.len() + 1), large);
        }
        block_on(async { ends(AttemptFixture::new(replies).await.drawn(draws), &spec).await });
    }
}
