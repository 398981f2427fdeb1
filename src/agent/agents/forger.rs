//! `forger`: cheats instead of doing the task, in a way that each family (kind of task) defines. The cheat satisfies
//! every measure that does not re-run the agent's code. So it must pass the measures of the published benchmark and
//! fail every verified measure. This shows that passing the published measures does not prove that the code works.

use async_trait::async_trait;

use crate::agent::agents::gold;
use crate::agent::{Agent, AttemptEnd, Context, End, Task};

/// The `forger` agent.
#[derive(Debug)]
pub struct Forger;

#[async_trait]
impl Agent for Forger {
    fn name(&self) -> &'static str {
        "forger"
    }

    fn needs_model(&self) -> bool {
        false
    }

    fn forges(&self) -> bool {
        true
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        match &task.forgery {
            Some(forgery) => gold::follow(forgery, context).await,
            None => End::GaveUp.because("this family defines no forged solution"),
        }
    }
}
