//! One step: the calls of a reply become one action, its observation is cut to what a model can take, recorded
//! and shown. Used by `react`, with a model's replies, and by `scripted`, with a script's.

use std::fmt::Write as _;

use super::prompts::dynamic;
use super::protocol::{self, Call};
use super::tool_calling::ToolCalling;
use super::tools::{Answering, Failure, OBSERVATION_LIMIT, Outcome, Session, cut_middle, final_answer};
use super::trajectory::seconds;
use super::{Context, End, Ended, Event};
use crate::model::{Message, Reply, Role};

/// What follows a step.
#[derive(Debug)]
pub enum Next {
    /// The next step: an action was run.
    Step,
    /// The next step, after a reply that could not be acted upon.
    Retry,
    /// Nothing: the attempt ends.
    End(Ended),
}

/// Acts upon a reply. One action a step, as in the original: of several calls only the first one is run, the others
/// are answered with a note and the reply counts as a format error, but not as one that could not be read.
pub async fn act(
    reply: &Reply,
    tool_calling: &ToolCalling,
    session: &mut Session,
    messages: &mut Vec<Message>,
    context: &mut Context<'_>,
) -> Next {
    let calls = match tool_calling.calls(reply) {
        Ok(calls) => calls,
        Err(what) => return refuse(&what, reply, tool_calling, messages, context),
    };
    let Some((call, others)) = calls.split_first() else {
        return refuse("the reply has no tool call", reply, tool_calling, messages, context);
    };
    let Some(tool) = tool_calling.tools.get(&call.name) else {
        let what = format!("there is no tool `{}`", call.name.chars().take(80).collect::<String>());
        return refuse(&what, reply, tool_calling, messages, context);
    };
    let arguments = match &call.arguments {
        Ok(arguments) => arguments,
        Err(what) => {
            let what = format!("the arguments of `{}` are {what}", call.name);
            return refuse(&what, reply, tool_calling, messages, context);
        }
    };
    let step = context.budget.steps;
    let tool_time = context.budget.tool_time;
    let content = match tool.call(arguments.clone(), context, session).await {
        Ok(Outcome::Observation(text)) => text,
        Ok(Outcome::Answer(raw)) => return answered(raw, context),
        Err(Failure::Refused(what)) => format!("error: {what}"),
        Err(Failure::Arguments(what)) => return refuse(&what, reply, tool_calling, messages, context),
        Err(Failure::Lost(loss)) => return Next::End(loss.into()),
        Err(Failure::Model(error)) => return Next::End(Ended::from(&error)),
    };
    let seconds = seconds(context.budget.tool_time.saturating_sub(tool_time));
    let mut content = cut_middle(&content, OBSERVATION_LIMIT).into_owned();
    if session.same_as_before(&call.name, arguments, &content) && !tool.waits() {
        content = dynamic::same_as_before(tool_calling);
    }
    if !others.is_empty() {
        let what = format!("{} tool calls in one reply; only the first one was run", calls.len());
        count(&what, context);
        if call.id.is_none() {
            content = format!("{content}\n\nNote: {what}.");
        }
    }
    let (call_id, tool, arguments) = (call.id.clone(), call.name.clone(), arguments.clone().into());
    let observation = Event::Observation { step, call_id, tool, arguments, content, seconds };
    context.tell(messages, &observation);
    for other in others.iter().filter(|other| other.id.is_some()) {
        let content = "not run: one tool call a reply, and this was not the first".to_owned();
        context.tell(messages, &Event::Message { role: Role::Tool, content, call_id: other.id.clone() });
    }
    Next::Step
}

/// Acts upon the last reply, in which only an answer counts. It is taken as it is: there is no step left to correct
/// it in, and it is for the score to say what is wrong with it.
pub fn act_last(reply: &Reply, why: End, tool_calling: &ToolCalling, context: &mut Context<'_>) -> Next {
    let what = match tool_calling.tools.answering() {
        Answering::Tool(name) => match tool_calling.calls(reply) {
            Ok(calls) => match calls.iter().find(|call| call.name == name) {
                Some(Call { arguments: Ok(arguments), .. }) => match final_answer::answer(arguments) {
                    Some(raw) => return answered(raw, context),
                    None => format!("`{name}` without an answer"),
                },
                Some(Call { arguments: Err(what), .. }) => format!("the arguments of `{name}` are {what}"),
                None => {
                    let called = calls.first().map_or("nothing", |call| call.name.as_str());
                    format!("called `{called}` when only `{name}` counted")
                }
            },
            Err(what) => what,
        },
        Answering::Printed => {
            let called =
                |call: &Call| call.arguments.as_ref().ok()?.values().find_map(|it| it.as_str().map(str::to_owned));
            let commands = tool_calling.calls(reply).unwrap_or_default();
            let texts = std::iter::once(reply.text.clone()).chain(commands.iter().filter_map(called));
            match texts.filter_map(|text| protocol::results(&text)).next_back() {
                Some(raw) => return answered(raw, context),
                None => "no results in the last reply".to_owned(),
            }
        }
    };
    count(&what, context);
    Next::End(why.because(what))
}

fn answered(raw: String, context: &mut Context<'_>) -> Next {
    context.trajectory.push(&Event::Answer { raw: raw.clone() });
    context.answer = Some(raw);
    Next::End(End::Answered.into())
}

/// Counts and records what was wrong with a reply.
fn count(what: &str, context: &mut Context<'_>) {
    context.budget.format_errors += 1;
    context.trajectory.push(&Event::FormatError { step: context.budget.steps, what: what.to_owned() });
}

/// Counts a reply that could not be acted upon, and tells the model what was expected. Providers demand that each
/// of their own calls is answered, so the first one is told what was wrong, the others that they were not run.
fn refuse(
    what: &str,
    reply: &Reply,
    tool_calling: &ToolCalling,
    messages: &mut Vec<Message>,
    context: &mut Context<'_>,
) -> Next {
    let mut what = cut_middle(what, OBSERVATION_LIMIT / 10).into_owned();
    // Not being told, a model writes the same long reply again.
    if let Some(most) = context.sampling.max_tokens.filter(|most| reply.usage.output >= u64::from(*most)) {
        let _ = write!(what, " (the reply was cut off at {most} tokens, so write a shorter one)");
    }
    count(&what, context);
    let content = dynamic::format_error(&what, tool_calling);
    match reply.tool_calls.split_first() {
        None => context.tell(messages, &Event::Message { role: Role::User, content, call_id: None }),
        Some((first, others)) => {
            let call_id = Some(first.id.clone());
            context.tell(messages, &Event::Message { role: Role::Tool, content, call_id });
            for other in others {
                let content = "not run".to_owned();
                let call_id = Some(other.id.clone());
                context.tell(messages, &Event::Message { role: Role::Tool, content, call_id });
            }
        }
    }
    Next::Retry
}
