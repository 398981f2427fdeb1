//! `noop`: does nothing and reports nothing. It must score 0 on every sample, which shows that no sample passes by
//! itself.

use async_trait::async_trait;

use crate::agent::{Agent, AttemptEnd, Context, End, Task};

/// The `noop` agent.
#[derive(Debug)]
pub struct Noop;

#[async_trait]
impl Agent for Noop {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn needs_model(&self) -> bool {
        false
    }

    async fn attempt(&self, _task: &Task, _context: &mut Context<'_>) -> AttemptEnd {
        End::GaveUp.into()
    }
}
