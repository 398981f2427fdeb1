//! Agents, which attempt samples (the benchmark's tasks): the [`Agent`] trait, the task that an agent is given, and the
//! context in which it works.
//!
//! An agent acts only through its [`Context`], which gives it a sandbox, a model, a budget that it cannot exceed, and a
//! trajectory that records its actions. The agents themselves are in `agents`; the other files here are shared by
//! several agents.

mod agents;
mod budget;
mod context;
mod end;
pub(crate) mod experiment;
pub(crate) mod files;
mod filled;
pub(crate) mod history;
pub(crate) mod measure;
mod plain_chat;
pub(crate) mod prompts;
pub(crate) mod protocol;
pub(crate) mod python;
mod repo;
pub(crate) mod retrieval;
pub(crate) mod review;
pub(crate) mod settings;
pub(crate) mod spec;
pub(crate) mod step;
pub(crate) mod tail;
mod task;
#[cfg(test)]
mod tests;
pub(crate) mod tool_calling;
pub(crate) mod tools;
mod trajectory;

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use crate::env::OnProgress;
use crate::error::Result;

pub(crate) use agents::external::{bundled_names, list_bundled};
pub(crate) use agents::one_reply::{OneReply, ShownRepo};
pub(crate) use agents::replies::{StoredReply, stored_replies};
pub use budget::live_usage::LiveUsage;
pub use budget::{Budget, Limits};
pub use context::Context;
pub use end::{AttemptEnd, End};
pub(crate) use python::session::PythonSession;
pub(crate) use settings::setting_keys;
pub(crate) use settings::written;
pub use settings::{SettingHelp, Settings, describe_settings};
pub use spec::AgentSpec;
pub(crate) use spec::NAMES as AGENTS;
pub use task::check::Check;
pub use task::replication::{Replication, TaskExperiment, TaskFunction, TaskRegion};
pub use task::{Solution, Task};
pub use trajectory::call_tokens::CallTokens;
pub(crate) use trajectory::call_tokens::{RecentTokens, WholeTokens};
pub use trajectory::conversation;
pub use trajectory::{Event, TimedEvent, Trajectory};

/// An agent: a method of attempting samples. All attempts of a run share it, so it holds no state of an attempt.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Short name, such as `react` or `gold`, used in file names and tables.
    fn name(&self) -> &str;
    /// Whether [`Context::model`] must be present.
    fn needs_model(&self) -> bool;
    /// The only family (kind of task) whose samples the agent can attempt; `None` if it can attempt any sample.
    fn only(&self) -> Option<&'static str> {
        None
    }
    /// Whether the agent submits the task's forged solution ([`Task::forgery`]), which does not do the task but
    /// satisfies the published measures. Only the tasks of some families have a forged solution.
    fn forges(&self) -> bool {
        false
    }
    /// Installs into the folder `cache` what the agent needs on this machine, such as its env; the model is not part of
    /// this. With `offline`, uses no network. Called before the first attempt.
    ///
    /// # Errors
    /// Kinds `Suite` and `Machine` if an env cannot be built.
    async fn prepare(&self, _cache: &Path, _offline: bool, _on_progress: OnProgress<'_>) -> Result<()> {
        Ok(())
    }
    /// Folders of the host that the agent's sandboxes must mount read-only; complete only after [`Agent::prepare`].
    fn read_only(&self) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Names of files, such as `paper.txt`, that a task puts into the workspaces of other agents but not into this
    /// agent's.
    fn goes_without(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether processes in the agent's sandbox must be able to reach the harness:
    /// [`crate::sandbox::Backend::listens`].
    fn needs_listener(&self) -> bool {
        false
    }
    /// Digest of the agent's own parts, such as the manifest and env of an external agent, the file of a Python
    /// function, or the prompt of a preset. `None` if the agent has no such parts. Runs with equal digests used the
    /// same agent. Known only after [`Agent::prepare`].
    fn digest(&self) -> Option<String> {
        None
    }
    /// Version of the agent, if the agent is another project's program.
    fn version(&self) -> Option<String> {
        None
    }
    /// Time that the agent gets to end and to complete its record once [`Context::cancel`] is set. If it is zero, the
    /// agent is dropped at once, in the middle of any action.
    fn winds_down(&self) -> Duration {
        Duration::ZERO
    }
    /// Works on the task until the attempt ends. Must not panic, whatever a model or a sandbox returns.
    ///
    /// Call it through [`attempt`], which stops the agent when the run is cancelled and records its end.
    async fn attempt(&self, task: &Task, context: &mut Context<'_>) -> AttemptEnd;
}

/// Runs one attempt until the agent ends it. If the run is cancelled, the agent is stopped after the time
/// [`Agent::winds_down`], even in the middle of a model call or a command. Records [`Event::Ended`]. The caller records
/// [`Event::Started`], because only the caller knows the sandbox's backend.
pub async fn attempt(agent: &dyn Agent, task: &Task, context: &mut Context<'_>) -> AttemptEnd {
    let cancel = context.cancel.clone();
    let patience = agent.winds_down();
    let given_up = async {
        cancel.cancelled().await;
        if !patience.is_zero() {
            tokio::time::sleep(patience).await;
        }
    };
    let ended = tokio::select! {
        biased;
        () = given_up => End::Cancelled.into(),
        ended = agent.attempt(task, context) => ended,
    };
    context.trajectory.push(&Event::Ended { end: ended.end, detail: ended.detail.clone() });
    ended
}
