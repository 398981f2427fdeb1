//! `react:preset=super`: imitates SUPER's own agent (Bogin et al., 2024), with prompts in our words. The prompt has
//! three examples (shots). The whole history is one assistant message. The model writes its calls of `execute`, `edit`
//! and `submit` as text. Progress bars and compiler messages are removed from what the model is shown.

mod clean;
mod history;
mod reply;

use serde_json::{Map, Value};

use crate::agent::budget::account::Asker;
use crate::agent::prompts::super_task;
use crate::agent::step::{CallEffect, use_tool};
use crate::agent::tools::{Session, ToolChoice, ToolSet, cut_middle};
use crate::agent::{AttemptEnd, Context, End, Event, Limits, Task};
use crate::model::{Message, Model, Request, RequestOptions, Role};
use history::PastTurns;

/// Sampling settings of SUPER's agent, used unless the run sets its own.
const TEMPERATURE: f64 = 0.2;
const TOP_P: f64 = 0.5;
const MOST_TOKENS: u32 = 1500;
/// Number of consecutive unusable replies after which an attempt ends. It is four, because SUPER retries three times.
const FORMAT_ERRORS_IN_A_ROW: u32 = 4;
/// Maximum characters of the message to the model about a faulty reply.
const FAULT: usize = 2000;

/// Runs one attempt or, with the setting `reflexion`, one of the tries within an attempt. `lesson` is a text about the
/// previous try, which becomes part of the prompt.
pub(super) async fn work(
    task: &Task,
    limits: &Limits,
    lesson: Option<String>,
    model: &dyn Model,
    session: &mut Session,
    context: &mut Context<'_>,
) -> (AttemptEnd, Vec<Message>) {
    let mut prompt = super_task(task, limits, context.session.patience());
    prompt.extend(lesson.map(|lesson| format!("\n\n{lesson}")));
    let prompt = Message::new(Role::User, prompt);
    let mut past = PastTurns::default();
    let ended = steps(&prompt, &mut past, model, session, context).await;
    (ended, past.messages(&prompt))
}

async fn steps(
    prompt: &Message,
    past: &mut PastTurns,
    model: &dyn Model,
    session: &mut Session,
    context: &mut Context<'_>,
) -> AttemptEnd {
    let tools = ToolSet::from_choice(ToolChoice::Super);
    let (mut errors, mut first) = (0, true);
    loop {
        if let Err(refused) = context.may_ask() {
            return refused.into();
        }
        let mut sampling = context.next_sampling();
        sampling.temperature.get_or_insert(TEMPERATURE);
        sampling.max_tokens.get_or_insert(MOST_TOKENS);
        let wishes = RequestOptions { top_p: Some(TOP_P), ..RequestOptions::default() };
        let messages = past.messages(prompt);
        let kept = usize::from(!first);
        first = false;
        let (asked, call) = (messages[kept..].to_vec(), context.budget.calls);
        let mut request = Request { messages, sampling, wishes, ..Request::default() };
        let (sampling, wishes) = (request.sampling.clone(), request.wishes.clone());
        context.trajectory.push(&Event::Asked { call, kept, messages: asked, tools: None, sampling, wishes });
        let reply = match context.ask(model, Asker::Agent, &mut request).await {
            Ok(reply) => reply,
            Err(unanswered) => return unanswered.into(),
        };
        let (said, call) = reply::read(&reply.text);
        let call = match context.cut_note(&reply) {
            Some(note) if !reply::is_complete(&reply.text) => Err(note),
            _ => call,
        };
        session.next_step();
        let ran = match call {
            Ok((name, arguments)) => run(&tools, name, arguments, session, context).await,
            Err(what) => CallEffect::Wrong(what),
        };
        match ran {
            CallEffect::Observed(observation, _) => {
                errors = 0;
                past.add(said, observation);
            }
            CallEffect::Wrong(what) => {
                let what = cut_middle(&what, FAULT).into_owned();
                context.count_format_error(&what);
                errors += 1;
                if errors >= FORMAT_ERRORS_IN_A_ROW {
                    return End::FormatErrors
                        .because(format!("{errors} replies in a row contained no call that could be run"));
                }
                past.add(said, format!("nothing was run: {what}"));
            }
            CallEffect::End(ended) => return ended,
        }
    }
}

/// Runs an action. Progress bars and compiler messages are removed from the returned observation. If the observation is
/// too long, only its end is kept.
async fn run(
    tools: &ToolSet,
    name: String,
    arguments: Map<String, Value>,
    session: &mut Session,
    context: &mut Context<'_>,
) -> CallEffect {
    let Some(tool) = tools.get(&name) else {
        let known: Vec<String> = tools.definitions().iter().map(|tool| format!("`{}`", tool.name)).collect();
        let name: String = name.chars().take(80).collect();
        return CallEffect::Wrong(format!("there is no action `{name}`; the actions are {}", known.join(", ")));
    };
    let (shown, seconds) = match use_tool(tool, arguments.clone(), session, context).await {
        CallEffect::Observed(shown, seconds) => (shown, seconds),
        other => return other,
    };
    let observation = history::newest(&clean::clean(&shown));
    context.trajectory.push(&Event::Observation {
        step: context.budget.steps,
        call_id: None,
        tool: name,
        arguments: arguments.into(),
        content: observation.clone(),
        seconds,
    });
    CallEffect::Observed(observation, seconds)
}
