//! `scripted:FILE`: a fixed list of tool calls, one per step, without a model. It is meant for tests, demos and
//! benchmarks of the harness itself: everything but the model is real.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use crate::agent::protocol::ToolProtocol;
use crate::agent::step::{self, AfterStep};
use crate::agent::tool_calling::ToolCalling;
use crate::agent::tools::{Session, ToolSet};
use crate::agent::{Agent, AttemptEnd, Context, End, Event, Task};
use crate::error::{Error, FailureKind, Result};
use crate::files::json_lines;
use crate::model::{Reply, ToolCall};

/// The `scripted:FILE` agent with its script.
#[derive(Debug)]
pub struct ScriptedAgent {
    tool_calling: ToolCalling,
    script: Vec<ScriptedStep>,
}

/// One tool call, which is one line of a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedStep {
    /// The tool's name. Unknown names are allowed, because tests use them.
    tool: String,
    /// The tool's arguments.
    #[serde(default)]
    arguments: Value,
}

impl ScriptedAgent {
    /// Reads a script with one JSON object per line: `{"tool": "command_line", "arguments": {"command": "ls"}}`. Empty
    /// lines are skipped.
    ///
    /// # Errors
    /// Kind `Usage` if the file cannot be read or a line isn't such an object.
    pub fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).map_err(|error| {
            Error::new(FailureKind::Usage, format!("failed to read script `{}`", path.display()))
                .hint("`scripted:FILE` takes a file with one JSON object a line")
                .because(error)
        })?;
        let script = json_lines(&text)
            .map(|line| {
                line.value.map_err(|error| {
                    Error::usage("broken line in the script of replies")
                        .at(path, Some(line.number))
                        .hint("a line is like {\"tool\": \"command_line\", \"arguments\": {\"command\": \"ls\"}}")
                        .because(error)
                })
            })
            .collect::<Result<_>>()?;
        let tool_calling =
            ToolCalling { tools: ToolSet::autoexperiment(), protocol: ToolProtocol::Tools, one_call: false };
        Ok(Self { tool_calling, script })
    }
}

#[async_trait]
impl Agent for ScriptedAgent {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn needs_model(&self) -> bool {
        false
    }

    async fn attempt(&self, _task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let mut session = Session::default();
        // The tools require a list of messages, but the list is never sent. It is not kept between steps either,
        // because a script may be long.
        let mut messages = Vec::new();
        for line in &self.script {
            if let Some(end) = context.budget.exceeded() {
                return end.into();
            }
            context.budget.charge_step();
            let step = context.budget.steps;
            let call =
                ToolCall { id: format!("call_{step}"), name: line.tool.clone(), arguments: line.arguments.clone() };
            let reply = Reply { tool_calls: vec![call], ..Reply::default() };
            context.trajectory.push(&Event::reply(step, &reply, None, Duration::ZERO, None));
            let next = step::act(&reply, &self.tool_calling, &mut session, &mut messages, context).await;
            if let AfterStep::End(ended) = next {
                return ended;
            }
            messages.clear();
        }
        End::GaveUp.because("the script has ended without an answer")
    }
}
