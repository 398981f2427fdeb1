//! `gold`: carries out the known solution of a task: writes the solution's files (such as the original functions), runs
//! its notebook cells and commands, and reports their results. It must score 1 on every sample, which shows that suite,
//! env and sandbox are sound.

use async_trait::async_trait;

use crate::agent::{Agent, AttemptEnd, Context, End, Solution, Task, experiment, python};
use crate::score::last_json_line;

/// The `gold` agent.
#[derive(Debug)]
pub struct GoldAgent;

#[async_trait]
impl Agent for GoldAgent {
    fn name(&self) -> &'static str {
        "gold"
    }

    fn needs_model(&self) -> bool {
        false
    }

    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
        follow(&task.solution, context).await
    }
}

/// Writes the solution's files, runs its cells and commands, and reports the solution's answer or, if it has none, the
/// results of the commands.
pub(super) async fn follow(solution: &Solution, context: &mut Context<'_>) -> AttemptEnd {
    let Solution { files, cells, checks, answer } = solution;
    if let Err(ended) = experiment::write_all(files, context).await {
        return ended;
    }
    let mut printed = None;
    for cell in cells {
        if let Some(end) = context.budget.exceeded() {
            return end.into();
        }
        context.budget.charge_step();
        match python::to_end(cell, context).await {
            Ok(shown) => printed = last_json_line(shown.output.as_bytes()).or(printed),
            Err(fault) => return fault.into(),
        }
    }
    if let (true, Some(answer)) = (checks.is_empty(), answer.clone().or(printed.map(|value| value.to_string()))) {
        experiment::answer_raw(answer, context);
        return End::Answered.into();
    }
    let ended = experiment::report(checks, context).await;
    if let (Some(answer), End::Answered) = (answer, ended.end) {
        experiment::answer_raw(answer.clone(), context);
    }
    ended
}
