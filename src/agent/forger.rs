//! `forger`: meets what can be measured without running its work, and does not do the task. Each family says how. It must
//! pass the measures of the published benchmark and fail every measure that is verified: proof that they differ.

use async_trait::async_trait;

use super::{Agent, Context, End, Ended, Task, gold};

/// The agent.
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

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> Ended {
        match &task.forgery {
            Some(forgery) => gold::follow(forgery, context).await,
            None => End::GaveUp.because("this family says nothing of how its tasks are forged"),
        }
    }
}
