//! A run's agents with their labels, and the model that they share.

use std::path::Path;
use std::sync::Arc;

use itertools::Itertools;

use crate::agent::{self, Agent};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::run::attempt::LabelledAgent;
use crate::run::family::Family;
use crate::run::{Configuration, PlannedAttempts, VerifierSpec};
use crate::sample::Sample;
use crate::sandbox::Backend;

/// Opens the run's agents with their labels.
pub(super) fn open_agents(configuration: &Configuration, cache: &Path) -> Result<Vec<LabelledAgent>> {
    let agents = agent::spec::labelled(&configuration.agents, &configuration.settings);
    agents
        .into_iter()
        .map(|(label, spec)| Ok(LabelledAgent { label, agent: spec.open(&configuration.settings, Some(cache))? }))
        .collect()
}

/// Opens the run's model if an agent or verifier needs it. Causes no network traffic.
pub(super) fn open_model(agents: &[LabelledAgent], configuration: &Configuration) -> Result<Option<Arc<dyn Model>>> {
    let asking = agents.iter().find(|agent| agent.agent.needs_model());
    let verifier_asks = || configuration.verifiers.iter().any(VerifierSpec::asks_own_model);
    match (asking, &configuration.model) {
        (None, None) => Ok(None),
        (Some(agent), None) => Err(Error::usage(format!("agent `{}` needs a model", agent.label))
            .hint("give one with `--model`, such as `--model openai:gpt-5-mini`; see `autoexperiment run --help`")),
        (None, Some(choice)) if !verifier_asks() => {
            Err(Error::usage(format!("no agent here uses the model `{}`", choice.spec))
                .hint("leave out `--model`, or add `--agent react`"))
        }
        (_, Some(choice)) => choice.open(configuration.seed).map(Some),
    }
}

/// Fails if an agent cannot attempt samples of this family.
pub(super) fn require_family(agents: &[LabelledAgent], family: &dyn Family) -> Result<()> {
    let name = family.name();
    let cannot =
        |agent: &dyn Agent| agent.only().is_some_and(|only| only != name) || (agent.forges() && !family.forges());
    match agents.iter().find(|agent| cannot(agent.agent.as_ref())) {
        None => Ok(()),
        Some(agent) => {
            Err(Error::usage(format!("agent `{}` cannot attempt samples of the family `{name}`", agent.label))
                .hint("use `react` without retrieval, `cli:NAME`, `scripted:FILE`, `gold` or `noop`"))
        }
    }
}

/// Fails if an agent must reach its model from inside its sandbox, but this backend's sandboxes cannot open
/// connections.
pub(super) fn require_listener(agents: &[LabelledAgent], backend: &dyn Backend) -> Result<()> {
    match agents.iter().find(|agent| agent.agent.needs_listener() && !backend.listens()) {
        None => Ok(()),
        Some(agent) => Err(Error::machine(format!(
            "agent `{}` must reach its model, but commands in a `{}` sandbox cannot open connections",
            agent.label,
            backend.name()
        ))
        .hint("use `--sandbox docker` or `--sandbox podman`, or a machine that allows user namespaces")),
    }
}

/// Returns the numbers of planned attempts, by agent and by the samples' n.
pub(super) fn planned(
    samples: &[Sample],
    agents: &[LabelledAgent],
    model: Option<&dyn Model>,
    k: u32,
) -> Vec<PlannedAttempts> {
    let counts = samples.iter().map(Sample::n).counts();
    let mut planned = Vec::new();
    for agent in agents {
        let model = model.filter(|_| agent.agent.needs_model()).map(|model| model.name().to_owned());
        for (&n, &samples) in counts.iter().sorted() {
            let (label, model) = (agent.label.clone(), model.clone());
            planned.push(PlannedAttempts { agent: label, model, n, attempts: samples * k as usize });
        }
    }
    planned
}
