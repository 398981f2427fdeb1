//! Messages between the harness and the process of a Python function: one JSON object per line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::{Budget, Replication, Task};
use crate::model::{Message, Model, Sampling, Tool};

/// A request of the function, or its last message.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FunctionRequest {
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
    /// The function returned this answer. Nothing follows this message.
    Answer { answer: Option<String> },
    /// The function raised this error. Nothing follows this message.
    Failed {
        error: String,
        /// Whether the function raised the error with which the harness reports that a limit of the budget is reached.
        budget: bool,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallFailureKind {
    /// A limit of the budget is reached.
    Budget,
    /// The sandbox refused the operation.
    Sandbox,
    /// The model did not answer.
    Model,
}

/// The reply to a request.
pub(super) type CallReply = Result<Value, (CallFailureKind, String)>;

/// Encodes the reply to a request as one line.
pub(super) fn answer(answer: CallReply, budget: &Budget) -> Vec<u8> {
    line(&match answer {
        Ok(ok) => json!({ "ok": ok, "left": left(budget) }),
        Err((kind, message)) => json!({ "error": { "kind": kind, "message": message }, "left": left(budget) }),
    })
}

/// Encodes the first line sent to the process: the task, the model's properties and the budget.
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
