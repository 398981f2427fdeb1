//! The agent of an episode: a client elsewhere decides each step. The client gets the prompts and tools of the built-in
//! agent `react`, so that a model trained on episodes can then be used with `react`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent::experiment::answer_raw;
use crate::agent::history::History;
use crate::agent::prompts::dynamic;
use crate::agent::protocol::ToolProtocol;
use crate::agent::step::{self, AfterStep};
use crate::agent::tool_calling::ToolCalling;
use crate::agent::tools::{AnswerMethod, Session, ToolSet, cut_middle, final_answer};
use crate::agent::{Agent, AttemptEnd, Context, End, Event, Limits, Replication, Task};
use crate::model::{Message, Reply, Role, ToolCall};
use crate::score::parse_answer;

/// Name under which every client can call a tool to report its answer, even if the run's set of tools has another name
/// for this tool or does not contain it.
pub const SUBMIT: &str = "submit";
/// Number of consecutive unusable calls that ends an episode.
const FORMAT_ERRORS_IN_A_ROW: u32 = 5;
/// Maximum characters kept of the text that a client sends with a call.
const TEXT: usize = 20_000;
/// Maximum characters kept of the error of a malformed call, which can quote the call.
const WRONG: usize = 2_000;
/// Why an episode has ended if its client disconnected, closed the episode or began another one.
const GONE: &str = "the client left before it submitted an answer";

/// The task in the form shown to a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// Instructions on how to work: the system prompt of the agent `react`.
    pub system: String,
    /// The task.
    pub prompt: String,
    /// Maximum number of steps.
    pub steps: u32,
    /// Maximum total time of the client's tool calls, in seconds.
    pub seconds: f64,
}

/// A tool's output in the form shown to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The output, or the error of a malformed call.
    pub text: String,
    /// Whether the call was malformed and not run.
    pub is_error: bool,
}

/// A client's call of a tool.
#[derive(Debug)]
pub(super) struct RemoteCall {
    /// The tool and its arguments, or why the client's message cannot be read.
    pub(super) called: Result<(String, Value), String>,
    /// Text that the client's model wrote with the call.
    pub(super) text: String,
    /// The channel to which the tool's output is sent. It is closed without an output if the episode ends instead.
    pub(super) reply: oneshot::Sender<Observed>,
}

/// The connection of an agent with its client.
pub(super) struct Exchange {
    pub(super) opened: oneshot::Sender<Opening>,
    pub(super) calls: mpsc::Receiver<RemoteCall>,
    /// Cancelled when the client leaves.
    pub(super) gone: CancellationToken,
    /// Maximum time that the agent waits for the client's next call.
    pub(super) idle: Duration,
}

/// The agent of one episode.
pub(super) struct RemoteAgent {
    label: String,
    tool_calling: ToolCalling,
    /// The connection with the client; `None` as soon as the agent's only attempt has begun.
    exchange: Mutex<Option<Exchange>>,
}

impl RemoteAgent {
    pub(super) fn new(label: String, tools: ToolSet, exchange: Exchange) -> Self {
        Self { label, tool_calling: calling(tools), exchange: Mutex::new(Some(exchange)) }
    }

    /// Adds the prompts to the trajectory and returns them.
    fn open(&self, task: &Task, context: &mut Context<'_>) -> Opening {
        let mut opening = opening(task, context.budget.limits(), self.tool_calling.tools);
        if let Some(why) = context.budget.last_step() {
            opening.prompt = format!("{}\n\n{}", opening.prompt, dynamic::submit(why, &self.tool_calling));
        }
        for (role, content) in [(Role::System, &opening.system), (Role::User, &opening.prompt)] {
            context.trajectory.push(&Event::Message { role, content: content.clone(), call_id: None });
        }
        opening
    }

    /// Carries out a client's call of a tool.
    async fn act(
        &self,
        call: &RemoteCall,
        waited: Duration,
        state: &mut Played,
        context: &mut Context<'_>,
    ) -> AfterStep {
        let last = context.budget.last_step();
        context.budget.charge_step();
        let step = context.budget.steps;
        let answering = self.tool_calling.tools.answering();
        let id = format!("call_{step}");
        let named = |tool: &str| match answering {
            AnswerMethod::Tool(name) if tool == SUBMIT => name.to_owned(),
            _ => tool.to_owned(),
        };
        let called = call.called.iter();
        let tool_calls = called
            .map(|(tool, arguments)| ToolCall { id: id.clone(), name: named(tool), arguments: arguments.clone() })
            .collect();
        let text = cut_middle(&call.text, TEXT).into_owned();
        let reply = Reply { text, tool_calls, ..Reply::default() };
        context.trajectory.push(&Event::reply(step, &reply, None, waited, None));
        let (tool, arguments) = match &call.called {
            Ok(called) => called,
            Err(what) => return self.refuse(what, None, last, state, context),
        };
        if answering == AnswerMethod::Printed && tool == SUBMIT {
            return match answer_of(arguments) {
                Ok(raw) => {
                    answer_raw(raw, context);
                    AfterStep::End(End::Answered.into())
                }
                Err(what) => self.refuse(&what, Some(id), last, state, context),
            };
        }
        if let Some(why) = last {
            return step::act_last(&reply, why, &self.tool_calling, context);
        }
        step::act(&reply, &self.tool_calling, &mut state.session, &mut state.messages, context).await
    }

    /// Counts a malformed call as a format error, and answers it with its error. If `last` says that no further call is
    /// allowed, ends the attempt instead.
    fn refuse(
        &self,
        what: &str,
        call_id: Option<String>,
        last: Option<End>,
        state: &mut Played,
        context: &mut Context<'_>,
    ) -> AfterStep {
        let what = cut_middle(what, WRONG);
        context.count_format_error(&what);
        if let Some(why) = last {
            return AfterStep::End(why.because(what));
        }
        let content = dynamic::format_error(&what, &self.tool_calling);
        let role = if call_id.is_some() { Role::Tool } else { Role::User };
        context.record_message(&mut state.messages, &Event::Message { role, content, call_id });
        AfterStep::Retry
    }

    async fn play(&self, exchange: &mut Exchange, context: &mut Context<'_>) -> AttemptEnd {
        let mut state = Played::default();
        let mut errors = 0;
        loop {
            let begun = Instant::now();
            let call = match timeout(exchange.idle, exchange.calls.recv()).await {
                Ok(Some(call)) => call,
                Ok(None) => return End::GaveUp.because(GONE),
                Err(_) => {
                    let what = format!("the client made no call for {} s", exchange.idle.as_secs());
                    return End::GaveUp.because(what);
                }
            };
            // A client whose tool time is used up may still submit its answer, so this check ignores the tool time.
            // `act` then refuses all other calls.
            if let Some(end) = context.budget.no_step_left() {
                return end.into();
            }
            let next = self.act(&call, begun.elapsed(), &mut state, context).await;
            let is_error = match next {
                AfterStep::End(ended) => return ended,
                AfterStep::Step => false,
                AfterStep::Retry => true,
            };
            errors = if is_error { errors + 1 } else { 0 };
            if errors >= FORMAT_ERRORS_IN_A_ROW {
                return End::FormatErrors.because(format!("{errors} calls in a row could not be run"));
            }
            let shown: Vec<String> = state.messages.drain(..).map(|message| message.content).collect();
            let mut text = shown.join("\n\n");
            if let Some(why) = context.budget.last_step() {
                let content = dynamic::submit(why, &self.tool_calling);
                text = format!("{text}\n\n{content}");
                context.trajectory.push(&Event::Message { role: Role::User, content, call_id: None });
            }
            // Sending fails if the client has left, which is noticed at the next call.
            let _ = call.reply.send(Observed { text, is_error });
        }
    }
}

/// Returns the task in the form shown to a client with these limits and tools.
pub(super) fn opening(task: &Task, limits: &Limits, tools: ToolSet) -> Opening {
    let tool_calling = calling(tools);
    let (prompting, history) = (dynamic::Prompting::default(), History::default());
    let system = if task.part::<Replication>().is_some() {
        dynamic::system(prompting, &tool_calling, history, true)
    } else {
        dynamic::general_system(prompting, &tool_calling, history)
    };
    let prompt = dynamic::task(task, limits, &tool_calling, true);
    Opening { system, prompt, steps: limits.steps, seconds: limits.seconds }
}

/// How clients call tools: one call per step, as in the paper on ReAct.
const fn calling(tools: ToolSet) -> ToolCalling {
    ToolCalling { tools, protocol: ToolProtocol::Tools, one_call: true }
}

/// State between the calls of an episode.
#[derive(Default)]
struct Played {
    session: Session,
    /// Messages that the last call added.
    messages: Vec<Message>,
}

/// Extracts the answer from the arguments of [`SUBMIT`], or returns an error text for the client.
fn answer_of(arguments: &Value) -> Result<String, String> {
    let raw = arguments.as_object().and_then(final_answer::answer);
    let raw = raw.ok_or_else(|| format!("`{SUBMIT}` needs its `answer`: {{\"answer\": string}}"))?;
    parse_answer(&raw).map(|_| raw.clone()).map_err(|what| format!("the answer was not accepted: {what}"))
}

#[async_trait]
impl Agent for RemoteAgent {
    fn name(&self) -> &str {
        &self.label
    }

    fn needs_model(&self) -> bool {
        false
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let taken = self.exchange.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut exchange) = taken else { return End::GaveUp.because("the episode has been played before") };
        let opening = self.open(task, context);
        let (opened, unused) = oneshot::channel();
        drop(unused);
        if std::mem::replace(&mut exchange.opened, opened).send(opening).is_err() {
            return End::GaveUp.because(GONE);
        }
        let gone = exchange.gone.clone();
        tokio::select! {
            biased;
            () = gone.cancelled() => End::GaveUp.because(GONE),
            ended = self.play(&mut exchange, context) => ended,
        }
    }
}
