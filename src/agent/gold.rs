//! `gold`: writes the solution of a task, as the original functions, runs its commands and reports what they give. Must score 1 on every sample:
//! proof that the suite, the env and the sandbox are sound.

use async_trait::async_trait;

use super::{Agent, Context, End, Ended, Solution, Task, experiment};

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
        follow(&task.solution, context).await
    }
}

/// Writes the files, runs the commands and reports the answer, or else what the commands give.
pub(super) async fn follow(solution: &Solution, context: &mut Context<'_>) -> Ended {
    let Solution { files, checks, answer } = solution;
    if let Err(ended) = experiment::write_all(files, context).await {
        return ended;
    }
    let ended = experiment::report(checks, context).await;
    if let (Some(answer), End::Answered) = (answer, ended.end) {
        experiment::answer_raw(answer.clone(), context);
    }
    ended
}
