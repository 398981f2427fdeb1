//! `react`: the model decides step by step: it thinks, calls tools and sees their results (Yao et al., 2023), like the
//! main agent of the original AutoExperiment benchmark. Prompt, history, tools and the protocol of tool calls are
//! settings.

mod material;
mod memory;
mod reflexion;
mod super_preset;
mod transcript;

use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::agent::budget::account::{Asker, Unanswered};
use crate::agent::plain_chat::PlainChat;
use crate::agent::prompts::dynamic;
use crate::agent::retrieval::{CodeChoice, PaperChoice, Retriever};
use crate::agent::settings::{Preset, Settings};
use crate::agent::step::{self, AfterStep};
use crate::agent::tool_calling::ToolCalling;
use crate::agent::tools::{Session, ToolSet};
use crate::agent::{Agent, AttemptEnd, Context, End, Event, Limits, Replication, Task, files, prompts};
use crate::error::{Error, Result};
use crate::model::{Message, Model, ModelError, Reply, Request, Role};
use crate::sample::MASKED;
use memory::ConversationMemory;

/// Number of consecutive unusable replies after which an attempt ends.
const FORMAT_ERRORS_IN_A_ROW: u32 = 5;

/// The `react` agent.
pub struct React {
    name: String,
    settings: Settings,
    tool_calling: ToolCalling,
    retriever: Retriever,
    /// Bytes of the tool descriptions sent with each call.
    tools_bytes: usize,
}

/// Inputs and state of one try. An attempt has one try, or several with the setting `reflexion`.
struct ReactTry {
    /// The limits of this try, as its prompt states them.
    limits: Limits,
    /// Text about the previous try, for this try's prompt; `None` once the prompt contains it.
    lesson: Option<String>,
    /// The next request, which holds the conversation.
    request: Request,
    session: Session,
}

impl React {
    /// Creates the agent with these settings and this name. Embedding vectors are stored in `cache`.
    ///
    /// # Errors
    /// Returns the errors of the embedding model; kind `Usage` for settings that the preset does not support.
    pub fn new(name: String, settings: Settings, cache: Option<&Path>) -> Result<Self> {
        settings.preset.check("react")?;
        let retrieves = settings.paper.is_some_and(|paper| paper != PaperChoice::None)
            || settings.code.is_some_and(|code| !matches!(code, CodeChoice::Agent | CodeChoice::None));
        let thinks = settings.reasoning_tokens > 0 || settings.feedback.is_some();
        if settings.preset == Preset::Super && (retrieves || thinks) {
            return Err(Error::usage("`preset=super` takes no retrieval, reasoning tokens or feedback")
                .hint("leave these options out, or the preset"));
        }
        let retriever = settings.retriever(cache)?;
        let tool_calling = ToolCalling {
            tools: ToolSet::from_choice(settings.tools),
            protocol: settings.protocol,
            one_call: settings.one_call,
        };
        let tools_bytes =
            tool_calling.offered().iter().map(|tool| tool.description.len() + tool.parameters.to_string().len()).sum();
        Ok(Self { name, settings, tool_calling, retriever, tools_bytes })
    }

    /// Runs several tries, each with its share of the budget, until one of them shows no sign of failure.
    async fn reflect(&self, task: &Task, model: &dyn Model, context: &mut Context<'_>) -> AttemptEnd {
        let tries = self.settings.reflexion;
        let mut why = None;
        let mut lesson = None;
        let mut session = Session::with_history(self.settings.history);
        let mut number = 0;
        loop {
            number += 1;
            context.trajectory.push(&Event::Try { number, why: why.take() });
            let limits = context.budget.share(tries);
            let mut work = ReactTry { limits, lesson: lesson.take(), request: Request::default(), session };
            let ended = self.work(task, model, &mut work, context).await;
            // The try could use only its share of the budget. Remove this limit: the evaluation of the try and the plan
            // for the next one may use all of the remaining budget.
            context.budget.share(1);
            if ended.end.is_infrastructure() {
                return ended;
            }
            if number >= tries || context.budget.exceeded().is_some() {
                return match &context.answer {
                    Some(_) if ended.end != End::Answered => End::Answered
                        .because(format!("the answer is from an earlier try; the last try ended with {:?}", ended.end)),
                    _ => ended,
                };
            }
            let failure = match reflexion::failed(&ended, task, context).await {
                Ok(Some(failure)) => failure,
                Ok(None) => return ended,
                Err(ended) => return ended,
            };
            match reflexion::plan(&failure, &work.request.messages, context).await {
                Ok(plan) => lesson = Some(dynamic::try_again(&failure, plan.as_deref())),
                Err(ended) => return ended,
            }
            why = Some(failure);
            session = work.session;
            session.directory = PathBuf::new();
        }
    }

    /// Returns what follows a step: `next`, or another step if the agent has answered and gets feedback on the answer.
    async fn reviewed(
        &self,
        next: AfterStep,
        reply: &Reply,
        messages: &mut Vec<Message>,
        context: &mut Context<'_>,
    ) -> AfterStep {
        match next {
            AfterStep::End(ended) if ended.end == End::Answered => {
                match context.feedback(self.settings.feedback, self.settings.rounds).await {
                    Ok(Some(told)) => {
                        step::answer_calls(reply, told, messages, context);
                        AfterStep::Step
                    }
                    Ok(None) => AfterStep::End(ended),
                    Err(lost) => AfterStep::End(lost),
                }
            }
            other => other,
        }
    }

    /// Runs one try of an attempt, from the prompts to its end.
    async fn work(&self, task: &Task, model: &dyn Model, work: &mut ReactTry, context: &mut Context<'_>) -> AttemptEnd {
        let tool_calling = &self.tool_calling;
        let ReactTry { limits, lesson, request, session } = work;
        if self.settings.preset == Preset::Super {
            let (ended, said) = super_preset::work(task, limits, lesson.take(), model, session, context).await;
            request.messages = said;
            return ended;
        }
        request.tools = tool_calling.offered().into();
        request.one_call = tool_calling.one_call && !request.tools.is_empty();
        let Settings { prompt, history, paper_file, .. } = self.settings;
        let system = if task.part::<Replication>().is_some() {
            dynamic::system(prompt, tool_calling, history, paper_file)
        } else {
            dynamic::general_system(prompt, tool_calling, history)
        };
        add_message(Role::System, system, &mut request.messages, context);
        add_message(Role::User, dynamic::task(task, limits, tool_calling, paper_file), &mut request.messages, context);
        match material::gather(&self.retriever, task, context).await {
            Ok(Some(material)) => add_message(Role::User, material, &mut request.messages, context),
            Ok(None) => {}
            Err(ended) => return ended,
        }
        if let Some(lesson) = lesson.take() {
            add_message(Role::User, lesson, &mut request.messages, context);
        }
        if self.settings.reasoning_tokens > 0 && context.budget.steps_left() > 1 {
            let mut talk = PlainChat::over(model, std::mem::take(&mut request.messages));
            let tokens = self.settings.reasoning_tokens;
            let thought = talk.think(dynamic::reason(tokens), &dynamic::wait(), tokens, context).await;
            request.messages = talk.into_messages();
            match thought {
                Ok(()) => add_message(Role::User, dynamic::begin(), &mut request.messages, context),
                Err(stop) => return stop.into(),
            }
        }
        let (history, most) = (self.settings.history, self.settings.context_tokens);
        let mut memory = ConversationMemory::new(history, most, &request.messages, self.tools_bytes);
        let mut errors = 0;
        let mut told = false;
        // The first error with which the provider refused the conversation for its length. The conversation is then
        // shortened and sent again; if that fails as well, the attempt ends with this first error.
        let mut refused: Option<ModelError> = None;
        loop {
            // Check this first: if no further call is allowed, a summary or a note about the last reply would be
            // useless.
            if let Err(refused) = context.may_ask() {
                return refused.into();
            }
            if let Err(ended) = memory.tidy(&mut request.messages, context).await {
                return ended;
            }
            let last = context.budget.last_step();
            if let Some(why) = last.filter(|_| !told) {
                told = true;
                add_message(Role::User, dynamic::submit(why, tool_calling), &mut request.messages, context);
            }
            request.sampling = context.next_sampling();
            memory.measure(&request.messages);
            let next = match context.ask(model, Asker::Agent, request).await {
                Err(Unanswered::Failed(error))
                    if memory.is_of_length(&error) && memory.shrink(&mut request.messages, context) =>
                {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(Unanswered::Failed(error)) => return AttemptEnd::from(&refused.unwrap_or(error)),
                Err(unanswered) => return unanswered.into(),
                Ok(reply) => {
                    refused = None;
                    memory.learn(&reply);
                    // If the server cuts conversations, the model may not have seen its whole task, so the attempt must
                    // not be scored.
                    if let Err(what) = memory.check_count(&reply) {
                        return End::ModelDenied.because(what);
                    }
                    if let Some(why) = last {
                        step::act_last(&reply, why, tool_calling, context)
                    } else {
                        let next = step::act(&reply, tool_calling, session, &mut request.messages, context).await;
                        self.reviewed(next, &reply, &mut request.messages, context).await
                    }
                }
            };
            match next {
                AfterStep::Step => errors = 0,
                AfterStep::Retry => {
                    errors += 1;
                    if errors >= FORMAT_ERRORS_IN_A_ROW {
                        let what = format!("{errors} replies in a row contained no call that could be run");
                        return End::FormatErrors.because(what);
                    }
                }
                AfterStep::End(ended) => return ended,
            }
        }
    }
}

#[async_trait]
impl Agent for React {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_model(&self) -> bool {
        true
    }

    /// An agent with retrieval or feedback can attempt only masked replication: retrieval needs masked functions,
    /// feedback needs experiments, and no other family (kind of task) has them.
    fn only(&self) -> Option<&'static str> {
        let by_code = !matches!(self.retriever.code, CodeChoice::Agent | CodeChoice::None);
        (self.retriever.paper != PaperChoice::None || by_code || self.settings.feedback.is_some()).then_some(MASKED)
    }

    /// Returns the digest of the prompt of the preset `super`. The run's digest of prompts does not include the prompts
    /// of presets.
    fn digest(&self) -> Option<String> {
        (self.settings.preset == Preset::Super).then(|| prompts::preset_digest("super_task"))
    }

    fn goes_without(&self) -> &'static [&'static str] {
        if self.settings.paper_file { &[] } else { &[files::PAPER] }
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let Some(model) = context.model else {
            return End::ModelDenied.because("`react` needs a model and was given none");
        };
        if self.settings.reflexion > 1 {
            return self.reflect(task, model, context).await;
        }
        let limits = *context.budget.limits();
        let session = Session::with_history(self.settings.history);
        let mut work = ReactTry { limits, lesson: None, request: Request::default(), session };
        self.work(task, model, &mut work, context).await
    }
}

fn add_message(role: Role, content: String, messages: &mut Vec<Message>, context: &mut Context<'_>) {
    context.record_message(messages, &Event::Message { role, content, call_id: None });
}
