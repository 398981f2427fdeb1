//! `gold`: writes the originals back, runs the experiments and reports what they give. Must score 1 on every sample:
//! proof that the suite, the env and the sandbox are sound.

use async_trait::async_trait;

use super::{Agent, Context, Ended, Task, experiment};

/// The agent.
#[derive(Debug)]
pub struct Gold;

#[async_trait]
impl Agent for Gold {
    fn name(&self) -> &'static str {
        "gold"
    }

    fn needs_model(&self) -> bool {
        false
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> Ended {
        match experiment::write_all(&task.originals, context).await {
            Ok(()) => experiment::report(task, context).await,
            Err(ended) => ended,
        }
    }
}
