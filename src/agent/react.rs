//! `react`: a thought, then one tool call, step by step, with the whole history (Yao et al., 2023), as in the
//! original's main agent.

use std::path::Path;
use std::time::Instant;

use async_trait::async_trait;

use super::retrieval::{CodeChoice, PaperChoice, Retriever};
use super::settings::{Settings, label, written};
use super::step::{self, Next};
use super::tools::{Session, ToolSet};
use super::{Agent, Context, End, Event, Task, material, prompts};
use crate::error::Result;
use crate::model::{Message, Request, Role};

/// So many replies in a row that could not be acted upon end an attempt.
const FORMAT_ERRORS_IN_A_ROW: u32 = 5;

/// The agent.
pub struct React {
    name: String,
    tools: ToolSet,
    retriever: Retriever,
}

impl React {
    /// With the original's tools, and these settings of what is put into its task at the start: nothing by default.
    /// Vectors are kept in `cache`.
    ///
    /// # Errors
    /// Those of the embedding model.
    pub fn new(settings: &Settings, cache: Option<&Path>) -> Result<Self> {
        let (paper, code) = (PaperChoice::None, CodeChoice::Agent);
        let retriever = settings.retriever(paper, code, cache)?;
        let mut parts =
            vec![("paper", written(retriever.paper), written(paper)), ("code", written(retriever.code), written(code))];
        let default = Settings::default();
        if matches!(retriever.paper, PaperChoice::Bm25 | PaperChoice::Embedding) {
            parts.push(("passages", settings.passages.to_string(), default.passages.to_string()));
        }
        if matches!(retriever.code, CodeChoice::Bm25 | CodeChoice::Ast | CodeChoice::Embedding) {
            parts.push(("snippets", settings.snippets.to_string(), default.snippets.to_string()));
        }
        Ok(Self { name: label("react", &parts), tools: ToolSet::autoexperiment(), retriever })
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

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> (End, Option<String>) {
        let Some(model) = context.model else {
            return (End::ModelDenied, Some("`react` needs a model and was given none".to_owned()));
        };
        let mut request = Request { tools: self.tools.shown().to_vec(), ..Request::default() };
        say(Role::System, prompts::react_system(&self.tools), &mut request.messages, context);
        say(Role::User, prompts::react_task(task, context.budget.limits()), &mut request.messages, context);
        match material::gather(&self.retriever, task, context).await {
            Ok(Some(material)) => say(Role::User, material, &mut request.messages, context),
            Ok(None) => {}
            Err(end) => return end,
        }
        let mut session = Session::default();
        let mut errors = 0;
        loop {
            if let Some(end) = context.budget.barred() {
                return (end, None);
            }
            if let Some(error) = context.trajectory.failed() {
                // The attempt fails for it; what is not recorded must not cost more.
                return (End::Cancelled, Some(format!("the trajectory cannot be written: {error}")));
            }
            let last = context.budget.closing();
            if let Some(why) = last {
                say(Role::User, prompts::submit(why), &mut request.messages, context);
            }
            request.call = context.budget.calls;
            request.sampling = context.next_sampling();
            let begun = Instant::now();
            let asked = model.query(&request).await;
            let waited = begun.elapsed();
            let next = match asked {
                Err(failed) => {
                    context.call_failed(None, &failed, waited);
                    step::model_failed(&failed.error)
                }
                Ok(reply) => {
                    context.budget.charge_reply(&reply, waited);
                    let event = Event::reply(context.budget.steps, &reply, waited);
                    context.tell(&mut request.messages, &event);
                    match last {
                        Some(why) => step::act_last(&reply, why, &self.tools, context),
                        None => step::act(&reply, &self.tools, &mut session, &mut request.messages, context).await,
                    }
                }
            };
            match next {
                Next::Step => errors = 0,
                Next::Retry => {
                    errors += 1;
                    if errors >= FORMAT_ERRORS_IN_A_ROW {
                        return (End::FormatErrors, Some(format!("{errors} replies in a row could not be acted upon")));
                    }
                }
                Next::End(end, detail) => return (end, detail),
            }
        }
    }
}

fn say(role: Role, content: String, messages: &mut Vec<Message>, context: &mut Context<'_>) {
    context.tell(messages, &Event::Message { role, content, call_id: None });
}
