//! Prompts of `react`: how to think, how to call tools, the task, the last step.

use clap::ValueEnum;
use minijinja::{Value, context};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{capitalised, general_values, render, task_values, words};
use crate::agent::history::History;
use crate::agent::protocol::ToolProtocol;
use crate::agent::tool_calling::ToolCalling;
use crate::agent::tools::{AnswerMethod, MARKER, signature_of};
use crate::agent::{End, Limits, Replication, Task};
use crate::model::Tool;

/// Text that `react` has to write before each tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Prompting {
    /// A thought, as in ReAct (Yao et al., 2023)
    #[default]
    React,
    /// Text in four parts, as in MLAgentBench (Huang et al., 2024): reflection, research plan and status, fact check, thought
    Mlagentbench,
    /// Text in two parts: the research plan and its status, then a thought
    Planning,
}

/// Renders the system prompt of masked replication. `paper` says whether the workspace contains the paper's text.
#[must_use]
pub fn system(prompting: Prompting, tool_calling: &ToolCalling, history: History, paper: bool) -> String {
    system_of("react_system", prompting, tool_calling, history, paper)
}

/// Renders the system prompt for families that define no system prompt.
#[must_use]
pub fn general_system(prompting: Prompting, tool_calling: &ToolCalling, history: History) -> String {
    system_of("general_system", prompting, tool_calling, history, false)
}

fn system_of(
    template: &str,
    prompting: Prompting,
    tool_calling: &ToolCalling,
    history: History,
    paper: bool,
) -> String {
    // Describe no tools in the prompt if they are offered through the provider's interface.
    let told: &[Tool] = if tool_calling.offered().is_empty() { tool_calling.tools.definitions() } else { &[] };
    let tools: Vec<Value> = told
        .iter()
        .map(|tool| {
            let signature = signature_of(&tool.parameters);
            context! { name => &tool.name, signature, description => &tool.description }
        })
        .collect();
    let then = if tool_calling.one_call {
        "Then call exactly one tool. You are shown what came of it, and the next step begins. Only the first call of a \
         reply is run."
    } else if tool_calling.protocol == ToolProtocol::Text {
        // Asks for one call, because models that write several calls in plain text make up the output of the first
        // ones.
        "Then call one tool. You are shown what came of it, and the next step begins."
    } else {
        "Then call a tool, or several in one reply where no call needs what another one shows. They are run in order, \
         you are shown what came of each, and the next step begins."
    };
    let thinking = match prompting {
        Prompting::React => render("think_react", context! { then }),
        Prompting::Mlagentbench => render("think_mlagentbench", context! { then }),
        Prompting::Planning => render("think_planning", context! { then }),
    };
    let calling = match tool_calling.protocol {
        ToolProtocol::Tools => String::new(),
        ToolProtocol::Text => render(
            "call_text",
            context! { first => tool_calling.tools.first(), example => tool_calling.tools.example() },
        ),
    };
    let memory = match history {
        History::Full => String::new(),
        History::Window(steps) => format!(
            "Of this conversation you are shown the last {steps} steps only. Say again, or write to a file, what you \
             must not forget."
        ),
        History::Summary(steps) => {
            format!(
                "You are shown the last {steps} steps or somewhat more as they were, and a summary of what came before."
            )
        }
        History::Super => "Of every result but the last you are shown the end only.".to_owned(),
    };
    render(template, context! { tools, thinking, calling, answer => answer(tool_calling), memory, paper })
}

/// Returns the name of the tool or action that gives the answer, for use in a sentence.
fn answer(tool_calling: &ToolCalling) -> String {
    match tool_calling.tools.answering() {
        AnswerMethod::Tool(name) => format!("`{name}`"),
        AnswerMethod::Printed => "the report".to_owned(),
    }
}

/// Renders the task. `paper` says whether the workspace contains the paper's text.
#[must_use]
pub fn task(task: &Task, limits: &Limits, tool_calling: &ToolCalling, paper: bool) -> String {
    let printed = tool_calling.tools.answering() == AnswerMethod::Printed;
    let report = match tool_calling.tools.answering() {
        AnswerMethod::Tool(name) => format!("call `{name}` with one JSON object"),
        AnswerMethod::Printed => format!(
            "report: run a command that prints the line `{MARKER}` first and below it one JSON object, nothing else. \
             That ends your work"
        ),
    };
    let Some(task) = task.part::<Replication>() else {
        return render("general_task", context! { report, printed, ..general_values(task, limits) });
    };
    // Name a file to begin with: small models otherwise open files that do not exist, or all files.
    let file = task.functions.first().and_then(|function| function.at.split("::").next());
    render("react_task", context! { report, printed, file, paper, ..task_values(task, limits) })
}

/// Renders the request to give the answer now, which is sent before the model's last reply.
#[must_use]
pub fn submit(why: End, tool_calling: &ToolCalling) -> String {
    let reason = match why {
        End::StepLimit => "This is your last step.".to_owned(),
        _ => format!("{}.", capitalised(why.used_up())),
    };
    let tool = match tool_calling.tools.answering() {
        AnswerMethod::Tool(name) => name,
        AnswerMethod::Printed => "",
    };
    render("submit", context! { reason, tool })
}

/// Renders the error message for a reply that could not be carried out.
#[must_use]
pub fn format_error(what: &str, tool_calling: &ToolCalling) -> String {
    let shown = tool_calling.tools.definitions();
    let names: Vec<String> = shown.iter().map(|tool| format!("`{}`", tool.name)).collect();
    let names = names.join(", ");
    match tool_calling.protocol {
        ToolProtocol::Text => {
            let (first, example) = (tool_calling.tools.first(), tool_calling.tools.example());
            render("format_error_text", context! { what, names, first, example })
        }
        ToolProtocol::Tools => render("format_error", context! { what, names, first => tool_calling.tools.first() }),
    }
}

/// Returns the message that replaces an output which the previous step has already shown. A small model that sees the
/// same text again would repeat the same call until the attempt's steps are used up.
#[must_use]
pub fn same_as_before(tool_calling: &ToolCalling) -> String {
    let report = match tool_calling.tools.answering() {
        AnswerMethod::Tool(name) => format!("report with `{name}`"),
        AnswerMethod::Printed => "report".to_owned(),
    };
    format!(
        "The result is the same as in the step before, and the same call will give it again. Do something else now: \
         read the code that matters, write what is missing, or {report}."
    )
}

/// Renders the request to think before the first step.
#[must_use]
pub fn reason(tokens: u32) -> String {
    render("react_reason", context! { words => words(tokens) })
}

/// Renders the request to continue thinking while tokens are left, as in "s1: Simple test-time scaling" (Muennighoff et
/// al., 2025).
#[must_use]
pub fn wait() -> String {
    render("react_wait", context! {})
}

/// Renders the user message after the thoughts: providers want the last message of a request to be the user's.
#[must_use]
pub fn begin() -> String {
    render("react_begin", context! {})
}

/// Feedback on one of the sample's tests, given between two rounds of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestFeedback {
    /// The test's name.
    pub key: String,
    /// The verdict, in words.
    pub verdict: String,
    /// Why the test failed, as error messages.
    pub faults: Vec<String>,
    /// The end of the test's error output.
    pub stderr: String,
}

/// Renders the feedback after a round.
#[must_use]
pub fn feedback(level: u32, tests: &[TestFeedback]) -> String {
    let tests: Vec<Value> = tests
        .iter()
        .map(|test| context! { key => &test.key, verdict => &test.verdict, faults => test.faults.clone(), stderr => test.stderr.trim() })
        .collect();
    render("feedback", context! { level, tests, fence => "````" })
}

/// Renders the request for a running summary, given the previous summary and the steps that are about to be removed
/// from the conversation.
#[must_use]
pub fn summarise(before: Option<&str>, steps: &str) -> String {
    render("summarise", context! { before => before.unwrap_or_default(), steps })
}

/// Renders the note that replaces removed steps.
#[must_use]
pub fn left_out(summary: Option<&str>) -> String {
    render("left_out", context! { summary => summary.unwrap_or_default() })
}

/// Renders the request for a plan after a failed try.
#[must_use]
pub fn reflect(why: &str, steps: &str) -> String {
    render("reflect", context! { why, steps })
}

/// Renders the message about a failed try, shown at the beginning of the next try.
#[must_use]
pub fn try_again(why: &str, plan: Option<&str>) -> String {
    render("try_again", context! { why, plan => plan.unwrap_or_default() })
}
