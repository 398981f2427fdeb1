//! One step of an attempt: runs the calls of a reply in order, cuts each output to a size that the model can take,
//! records it and adds it to the conversation. Used by `react` with a model's replies, and by `scripted` with a
//! script's calls.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::experiment::answer_raw;
use super::prompts::dynamic;
use super::tool_calling::ToolCalling;
use super::tools::{
    AnswerMethod, AnyTool, OBSERVATION_LIMIT, Session, ToolFailure, ToolOutput, cut_middle, final_answer,
};
use super::trajectory::seconds;
use super::{AttemptEnd, Context, End, Event};
use crate::agent::protocol::{self, ParsedCall};
use crate::model::{Message, Reply, Role};

/// How the attempt continues after a step.
#[derive(Debug)]
pub enum AfterStep {
    /// The attempt continues with the next step, because a call was run.
    Step,
    /// The attempt continues with the next step, although the reply was unusable.
    Retry,
    /// The attempt ends.
    End(AttemptEnd),
}

/// Maximum number of calls of one reply that are run.
const MOST_CALLS: usize = 32;

/// Maximum characters of all observations of one step together. Each observation may have at least [`LEAST_SHOWN`],
/// even if the sum is then larger.
const STEP_LIMIT: usize = 4 * OBSERVATION_LIMIT;
const LEAST_SHOWN: usize = 3000;

/// Outcome of one call.
pub(super) enum CallEffect {
    /// The call was run. Contains its observation, and the tool time in seconds.
    Observed(String, f64),
    /// The call is malformed. Contains an error text for the model.
    Wrong(String),
    /// The call ends the attempt.
    End(AttemptEnd),
}

/// Carries out a reply: runs its calls in order and answers each of them. A malformed call is answered with its error,
/// and the other calls are still run. Such a reply counts as a format error, and as unusable only if none of its calls
/// was run. With `one-call=true`, only the first call is run; if there are others, they are answered with a note, and
/// the reply counts as a format error. Calls found in the text are treated in the same way; if there are several, the
/// output of each begins with the call's number and tool.
pub async fn act(
    reply: &Reply,
    tool_calling: &ToolCalling,
    session: &mut Session,
    messages: &mut Vec<Message>,
    context: &mut Context<'_>,
) -> AfterStep {
    let calls = match tool_calling.calls(reply) {
        Ok(calls) => calls,
        Err(what) => return refuse(&what, reply, tool_calling, messages, context),
    };
    session.next_step();
    let most = if tool_calling.one_call { 1 } else { MOST_CALLS };
    let (to_run, others) = calls.split_at(calls.len().min(most));
    let limit = (STEP_LIMIT / to_run.len().max(1)).clamp(LEAST_SHOWN, OBSERVATION_LIMIT);
    let (mut acted, mut wrong) = (false, false);
    for (place, call) in to_run.iter().enumerate() {
        match run(call, limit, tool_calling, session, messages, context).await {
            CallEffect::Observed(mut content, seconds) => {
                acted = true;
                // If the text is empty, the call was found in the model's thoughts, which are not part of the
                // conversation, so the observation must name the call.
                if call.id.is_none() && (to_run.len() > 1 || reply.text.trim().is_empty()) {
                    content = format!("Call {} of {}, `{}`:\n{content}", place + 1, to_run.len(), call.name);
                }
                if !others.is_empty() && call.id.is_none() && place + 1 == to_run.len() {
                    content = format!("{content}\n\nNote: {}.", too_many(calls.len(), to_run.len()));
                }
                let (step, call_id, tool) = (context.budget.steps, call.id.clone(), call.name.clone());
                let arguments = call.arguments.clone().unwrap_or_default().into();
                let observation = Event::Observation { step, call_id, tool, arguments, content, seconds };
                context.record_message(messages, &observation);
            }
            CallEffect::Wrong(what) => {
                let what = in_short(&what, reply, context);
                if !wrong {
                    context.count_format_error(&what);
                }
                wrong = true;
                let content = dynamic::format_error(&what, tool_calling);
                let role = if call.id.is_some() { Role::Tool } else { Role::User };
                context.record_message(messages, &Event::Message { role, content, call_id: call.id.clone() });
            }
            CallEffect::End(ended) => return AfterStep::End(ended),
        }
    }
    if !others.is_empty() && !wrong {
        context.count_format_error(&too_many(calls.len(), to_run.len()));
    }
    for other in others.iter().filter(|other| other.id.is_some()) {
        let content = format!("not run: {}", too_many(calls.len(), to_run.len()));
        context.record_message(messages, &Event::Message { role: Role::Tool, content, call_id: other.id.clone() });
    }
    if acted { AfterStep::Step } else { AfterStep::Retry }
}

fn too_many(calls: usize, run: usize) -> String {
    let which =
        if run == 1 { "only the first one was run".to_owned() } else { format!("only the first {run} were run") };
    format!("{calls} tool calls in one reply; {which}")
}

/// Runs one call. Cuts its output to `limit` characters.
async fn run(
    call: &ParsedCall,
    limit: usize,
    tool_calling: &ToolCalling,
    session: &mut Session,
    messages: &[Message],
    context: &mut Context<'_>,
) -> CallEffect {
    let Some(tool) = tool_calling.tools.get(&call.name) else {
        return CallEffect::Wrong(format!("there is no tool `{}`", call.name.chars().take(80).collect::<String>()));
    };
    let arguments = match &call.arguments {
        Ok(arguments) => arguments,
        Err(what) => return CallEffect::Wrong(format!("the arguments of `{}` are {what}", call.name)),
    };
    let (content, seconds) = match use_tool(tool, arguments.clone(), session, context).await {
        CallEffect::Observed(content, seconds) => (content, seconds),
        other => return other,
    };
    let content = cut_middle(&content, limit).into_owned();
    let same = session.same_as_before(&call.name, arguments, &content);
    if same && !tool.waits() && session.history.still_shows(messages, &content) {
        return CallEffect::Observed(dynamic::same_as_before(tool_calling), seconds);
    }
    CallEffect::Observed(content, seconds)
}

/// Runs a tool. Does not cut its output.
pub(super) async fn use_tool(
    tool: &dyn AnyTool,
    arguments: Map<String, Value>,
    session: &mut Session,
    context: &mut Context<'_>,
) -> CallEffect {
    let before = context.budget.tool_time;
    let observed = match tool.call(arguments, context, session).await {
        Ok(ToolOutput::Observation(text)) => text,
        Ok(ToolOutput::Answer(raw)) => return CallEffect::End(answered(raw, context)),
        Err(ToolFailure::Refused(what)) => format!("error: {what}"),
        Err(ToolFailure::Arguments(what)) => return CallEffect::Wrong(what),
        Err(ToolFailure::Lost(loss)) => return CallEffect::End(loss.into()),
        Err(ToolFailure::Model(error)) => return CallEffect::End(AttemptEnd::from(&error)),
    };
    CallEffect::Observed(observed, seconds(context.budget.tool_time.saturating_sub(before)))
}

/// Continues the conversation after a call has reported the attempt's answer. Providers demand a result for every call,
/// so each call of the reply that lacks a result gets one: the first gets `told`, the feedback, and the others get a
/// note that they were not run.
pub(super) fn answer_calls(reply: &Reply, told: String, messages: &mut Vec<Message>, context: &mut Context<'_>) {
    let since = messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or_default();
    let is_open = |id: &str| !messages[since..].iter().any(|message| message.tool_call_id.as_deref() == Some(id));
    let open: Vec<String> =
        reply.tool_calls.iter().filter(|call| is_open(&call.id)).map(|call| call.id.clone()).collect();
    let Some((first, others)) = open.split_first() else {
        context.record_message(messages, &Event::Message { role: Role::User, content: told, call_id: None });
        return;
    };
    context.record_message(messages, &Event::Message { role: Role::Tool, content: told, call_id: Some(first.clone()) });
    for other in others {
        let call_id = Some(other.clone());
        context.record_message(messages, &Event::Message { role: Role::Tool, content: "not run".to_owned(), call_id });
    }
}

/// Carries out the last reply of an attempt, in which only an answer counts. The answer is not checked: no step is left
/// to correct it, and scoring will judge it.
pub(crate) fn act_last(reply: &Reply, why: End, tool_calling: &ToolCalling, context: &mut Context<'_>) -> AfterStep {
    let what = match tool_calling.tools.answering() {
        AnswerMethod::Tool(name) => match tool_calling.calls(reply) {
            Ok(calls) => match calls.iter().find(|call| call.name == name) {
                Some(ParsedCall { arguments: Ok(arguments), .. }) => match final_answer::answer(arguments) {
                    Some(raw) => return AfterStep::End(answered(raw, context)),
                    None => format!("`{name}` was called without an answer"),
                },
                Some(ParsedCall { arguments: Err(what), .. }) => format!("the arguments of `{name}` are {what}"),
                None => {
                    let called = calls.first().map_or("no tool".to_owned(), |call| format!("`{}`", call.name));
                    format!("the last reply called {called}, but only `{name}` counts in it")
                }
            },
            Err(what) => what,
        },
        AnswerMethod::Printed => {
            let called = |call: &ParsedCall| {
                call.arguments.as_ref().ok()?.values().find_map(|it| it.as_str().map(str::to_owned))
            };
            let commands = tool_calling.calls(reply).unwrap_or_default();
            let texts = std::iter::once(reply.text.clone()).chain(commands.iter().filter_map(called));
            match texts.filter_map(|text| protocol::results(&text)).next_back() {
                Some(raw) => return AfterStep::End(answered(raw, context)),
                None => "no results in the last reply".to_owned(),
            }
        }
    };
    let what = in_short(&what, reply, context);
    context.count_format_error(&what);
    AfterStep::End(why.because(what))
}

fn answered(raw: String, context: &mut Context<'_>) -> AttemptEnd {
    answer_raw(raw, context);
    End::Answered.into()
}

/// Returns the error of a reply, cut to a useful length. If the reply itself was cut off, the error says so.
fn in_short(what: &str, reply: &Reply, context: &Context<'_>) -> String {
    let mut what = cut_middle(what, OBSERVATION_LIMIT / 10).into_owned();
    if let Some(note) = context.cut_note(reply) {
        let _ = write!(what, " ({note})");
    }
    what
}

/// Counts a reply without a readable call as a format error, and tells the model what was expected. Providers demand a
/// result for each call that they report: the first gets the error, the others a note that they were not run.
fn refuse(
    what: &str,
    reply: &Reply,
    tool_calling: &ToolCalling,
    messages: &mut Vec<Message>,
    context: &mut Context<'_>,
) -> AfterStep {
    let what = in_short(what, reply, context);
    context.count_format_error(&what);
    let content = dynamic::format_error(&what, tool_calling);
    match reply.tool_calls.split_first() {
        None => context.record_message(messages, &Event::Message { role: Role::User, content, call_id: None }),
        Some((first, others)) => {
            let call_id = Some(first.id.clone());
            context.record_message(messages, &Event::Message { role: Role::Tool, content, call_id });
            for other in others {
                let content = "not run".to_owned();
                let call_id = Some(other.id.clone());
                context.record_message(messages, &Event::Message { role: Role::Tool, content, call_id });
            }
        }
    }
    AfterStep::Retry
}
