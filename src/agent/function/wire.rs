//! The messages between the harness and the process of a function: one JSON object a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::{Budget, Replication, Task};
use crate::model::{Message, Model, Sampling, Tool};

/// What the function asks for, or how it ended.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Call {
    /// Run a program in the sandbox.
    Exec {
        argv: Vec<String>,
        #[serde(default)]
        cwd: PathBuf,
        #[serde(default)]
        seconds: Option<f64>,
        #[serde(default)]
        stdin: String,
    },
    /// Read a file.
    Read { path: PathBuf },
    /// Write a file.
    Write { path: PathBuf, base64: String },
    /// List a folder.
    List { path: PathBuf },
    /// Ask the model.
    Ask {
        messages: Vec<Message>,
        #[serde(default)]
        tools: Vec<Tool>,
        #[serde(default)]
        temperature: Option<f64>,
        #[serde(default)]
        max_tokens: Option<u32>,
    },
    /// The function has returned this: the last message.
    Answer { answer: Option<String> },
    /// The function has raised this: the last message.
    Failed {
        error: String,
        /// Whether it was told that a limit is reached, and raised that.
        budget: bool,
    },
}

/// Why a call is not done.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    /// A limit is reached.
    Budget,
    /// The sandbox refuses.
    Sandbox,
    /// The model does not answer.
    Model,
}

/// What is sent back for a call.
pub(super) type Answer = Result<Value, (Why, String)>;

/// A call's answer as a line.
pub(super) fn answer(answer: Answer, budget: &Budget) -> Vec<u8> {
    line(&match answer {
        Ok(ok) => json!({ "ok": ok, "left": left(budget) }),
        Err((kind, message)) => json!({ "error": { "kind": kind, "message": message }, "left": left(budget) }),
    })
}

/// The first line: the task and what there is to do it with.
pub(super) fn begin(
    task: &Task,
    workdir: &str,
    model: Option<&dyn Model>,
    sampling: &Sampling,
    budget: &Budget,
) -> Vec<u8> {
    let part = task.part::<Replication>();
    let functions = part
        .map(|part| part.functions.as_slice())
        .unwrap_or_default()
        .iter()
        .map(|it| json!({ "at": it.at, "description": it.description, "passages": it.passages }));
    let experiments = part.map(|part| part.experiments.as_slice()).unwrap_or_default().iter().map(|it| {
        json!({
            "id": it.id, "key": it.key, "description": it.description, "command": it.command,
            "time_limit": it.told_limit,
        })
    });
    line(&json!({
        "task": {
            "sample": task.sample, "attempt": task.attempt, "instructions": task.instructions, "answer": task.answer,
            "paper": part.map(|part| &*part.text), "functions": functions.collect::<Vec<_>>(),
            "experiments": experiments.collect::<Vec<_>>(), "seed": sampling.seed,
        },
        "workdir": workdir,
        "model": model.map(Model::name),
        "left": left(budget),
    }))
}

fn left(budget: &Budget) -> Value {
    json!({
        "steps": budget.steps_left(),
        "seconds": budget.time_left().as_secs_f64(),
        "cost": budget.money_left(),
        "tokens": budget.tokens_left(),
    })
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
