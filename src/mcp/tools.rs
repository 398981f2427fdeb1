//! The tools of the MCP server: those that manage attempts, and the tools of agents, with the additional argument
//! `attempt`.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::episode::{EpisodeHost, SUBMIT};

/// Arguments of `draw_samples`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrawArguments {
    pub paper: Option<String>,
    pub n: Option<usize>,
    pub seed: Option<u64>,
    pub split: Option<String>,
    pub count: Option<u16>,
}

/// Arguments of `start_attempt`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartArguments {
    pub sample: String,
}

/// Parses a tool's arguments.
pub fn parse<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, String> {
    serde_json::from_value(arguments.into()).map_err(|error| format!("wrong arguments: {error}"))
}

/// All tools, with their schemas.
pub fn all(host: &EpisodeHost) -> Vec<Tool> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let number = |about: &str| json!({ "type": "integer", "description": about });
    let attempt = text("The attempt, as returned by start_attempt.");
    let mut tools = vec![
        tool("list_papers", "List the papers, with the numbers of functions that can be masked.", &json!({}), &[]),
        tool(
            "draw_samples",
            "Draw samples: sets of functions of a paper to be written again.",
            &json!({
                "paper": text("Only samples of this paper."),
                "n": number("Number of masked functions."),
                "seed": number("Seed of the draw: the same seed draws the same samples. Without a seed, each draw is random."),
                "split": text("`train` or `test`; functions of `test` are held out of `train`."),
                "count": number("How many different samples; by default one."),
            }),
            &[],
        ),
        tool(
            "start_attempt",
            "Start an attempt at a sample in a sandbox of its own. Returns the task and the attempt's name for other tools.",
            &json!({ "sample": text("The sample, such as `kmeanspp_0,3`.") }),
            &["sample"],
        ),
        tool(
            "result",
            "Wait for a call or a verdict that takes long, and read it.",
            &json!({ "attempt": attempt }),
            &["attempt"],
        ),
        tool("report", "Show the pass rates of all attempts so far.", &json!({}), &[]),
        tool(
            SUBMIT,
            "Report the results of all experiments and end the attempt. The code is then run again, and both are compared with the paper's.",
            &json!({
                "attempt": attempt,
                "answer": text("The results, a JSON object written as text: {\"Experiment 1\": {...}}."),
            }),
            &["attempt", "answer"],
        ),
    ];
    // The tool set's own tool for the answer is listed, too, because the task's text asks for it by its name, such as
    // `final_answer`.
    for own in host.tools().filter(|own| own.name != SUBMIT) {
        let mut schema = own.parameters.clone();
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("attempt".to_owned(), attempt.clone());
        }
        let required = schema.as_object_mut().map(|schema| schema.entry("required").or_insert_with(|| json!([])));
        if let Some(Value::Array(required)) = required {
            required.push("attempt".into());
        }
        let schema = schema.as_object().cloned().unwrap_or_default();
        tools.push(Tool::new(own.name.clone(), own.description.clone(), Arc::new(schema)));
    }
    tools
}

fn tool(name: &'static str, about: &'static str, properties: &Value, required: &[&str]) -> Tool {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Tool::new(name, about, Arc::new(schema.as_object().cloned().unwrap_or_default()))
}
