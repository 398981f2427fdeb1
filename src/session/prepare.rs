//! Preparation before the first attempt: agents, items, and the baseline check.

use std::sync::Arc;

use super::SessionOptions;
use crate::error::{Error, Result, with_causes};
use crate::run::attempt::LabelledAgent;
use crate::run::event::{Observer, RunEvent};
use crate::run::family::{Family, Item, Ready};
use crate::run::{Digests, SessionFacts};
use crate::sample::Sample;

/// Prepares agents and items. With `options.baseline`, checks that the unmasked repos reproduce their gold.
///
/// # Errors
/// Returns kind `Suite` for items in which `autoexperiment check` finds errors, unless `options.unchecked`; the errors
/// of preparing agents, envs and snapshots; kind `Baseline` if gold is not reproduced.
pub(super) async fn prepare(
    items: Vec<Arc<dyn Item>>,
    agents: &[LabelledAgent],
    options: &SessionOptions,
    observer: &dyn Observer,
) -> Result<Vec<Box<dyn Ready>>> {
    for item in items.iter().filter(|_| !options.unchecked) {
        refuse(item.id(), &item.problems())?;
    }
    for agent in agents {
        let machine = &options.machine;
        agent.agent.prepare(&machine.cache, machine.offline, &|told| observer.on(RunEvent::Env(told))).await?;
        options.machine.conceals(&agent.agent.read_only())?;
    }
    let mut ready = Vec::with_capacity(items.len());
    for item in items {
        let made = item.prepare(&options.machine, options.baseline, observer).await?;
        if !options.unchecked {
            refuse(made.item().id(), &made.problems())?;
        }
        ready.push(made);
    }
    Ok(ready)
}

/// Refuses an item that has problems.
fn refuse(id: &str, problems: &[Error]) -> Result<()> {
    let Some(kind) = problems.first().map(|problem| problem.kind) else { return Ok(()) };
    let told = problems.iter().map(|problem| match &problem.hint {
        Some(hint) => format!("{} ({hint})", with_causes(problem)),
        None => with_causes(problem),
    });
    let told: Vec<String> = told.collect();
    Err(Error::new(kind, format!("`{id}` has problems and is not run:\n{}", told.join("\n"))).hint(
        "correct it until `autoexperiment check` finds nothing wrong; `--unchecked` runs it anyway, but its scores may \
         mean nothing",
    ))
}

/// Digests of everything that the run's results depend on. `base` is the digest of the sandboxes' image.
pub(super) fn digests(
    family: &dyn Family,
    items: &[Box<dyn Ready>],
    agents: &[LabelledAgent],
    base: Option<String>,
) -> Digests {
    let mut digests = Digests { prompts: family.prompts(), base, ..Digests::default() };
    for agent in agents {
        digests.agents.extend(agent.agent.digest().map(|digest| (agent.label.clone(), digest)));
    }
    for ready in items {
        let id = ready.item().id().to_owned();
        digests.papers.insert(id.clone(), ready.item().digest());
        digests.repos.insert(id.clone(), ready.repo().to_owned());
        digests.envs.insert(id, ready.env().digest.clone());
    }
    digests
}

/// Digest of the planned attempts. All processes that share a run must have the same plan.
pub(super) fn plan_digest(samples: &[Sample], agents: &[LabelledAgent], k: u32) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(k.to_le_bytes());
    for name in agents.iter().map(|agent| agent.label.as_str()).chain(samples.iter().map(Sample::id)) {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
    }
    crate::files::hex(&hash.finalize())
}

/// Returns a copy of the stored digests `then` in which those of prompts, items and repos are replaced by the current
/// ones. Only these digests can be computed before the items are prepared, so that changes are noticed early.
pub(super) fn readable(then: &Digests, family: &dyn Family, items: &[Arc<dyn Item>]) -> Result<Digests> {
    let mut now = Digests { prompts: family.prompts(), ..then.clone() };
    for item in items {
        now.papers.insert(item.id().to_owned(), item.digest());
        if let Some(repo) = item.repo() {
            now.repos.insert(item.id().to_owned(), repo?);
        }
    }
    Ok(now)
}

/// Warning about a session whose items were not checked.
const UNCHECKED: &str = "items were run whether or not `check` finds errors in them (`--unchecked`)";

/// Describes this session for `run.json`.
pub(super) fn facts(items: &[Box<dyn Ready>], agents: &[LabelledAgent], options: &SessionOptions) -> SessionFacts {
    let backend = &options.machine.backend;
    let versions = agents.iter().filter_map(|agent| Some((agent.label.clone(), agent.agent.version()?)));
    SessionFacts {
        started: crate::files::now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sandbox: backend.name().to_owned(),
        envs: items.iter().map(|ready| (ready.item().id().to_owned(), ready.env().backend.to_owned())).collect(),
        agents: versions.collect(),
        baseline: options.baseline,
        warnings: backend.warnings().into_iter().chain(options.unchecked.then(|| UNCHECKED.to_owned())).collect(),
        differences: Vec::new(),
        shard: None,
        node: None,
        ended: None,
    }
}
