//! `single`: makes one model call without tools. The reply is the answer.

use async_trait::async_trait;

use crate::agent::plain_chat::PlainChat;
use crate::agent::{Agent, AttemptEnd, Context, End, OneReply, Task, experiment};
use crate::model::Role;
use crate::sample::COMMAND;

/// The `single` agent.
#[derive(Debug)]
pub struct Single;

#[async_trait]
impl Agent for Single {
    fn name(&self) -> &'static str {
        "single"
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn only(&self) -> Option<&'static str> {
        Some(COMMAND)
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        let (task, model) = match OneReply::given(self.name(), task, context) {
            Ok(given) => given,
            Err(ended) => return ended,
        };
        let mut talk = PlainChat::over(model, Vec::new());
        talk.add_message(Role::User, task.prompt.clone(), context);
        match talk.ask(None, context).await {
            Ok(reply) => {
                experiment::answer_raw(reply.text, context);
                End::Answered.into()
            }
            Err(stop) => stop.into(),
        }
    }
}
