//! Facts about a run that the page shows, and the run's attempts that have no record.

use std::collections::HashSet;
use std::path::Path;

use itertools::Itertools as _;

use crate::report::MergedRun;
use crate::report::html::{Material, Origin, RunFacts, UnrecordedAttempt};
use crate::run::{RunFile, StoredTrajectory};

/// Lists a run's settings and history for display.
pub(super) fn run_facts(name: &str, folder: &Path, run: Option<&RunFile>) -> RunFacts {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut say = |what: &str, value: String| facts.push((what.to_owned(), value));
    say("Folder", folder.display().to_string());
    let Some(run) = run else {
        return RunFacts { name: name.to_owned(), created: String::new(), facts };
    };
    let set = &run.configuration;
    say("Command", run.command_line.join(" "));
    say("Agents", set.agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    if let Some(model) = &set.model {
        say("Model", model.spec.clone());
    }
    say("Attempts a sample", set.k.to_string());
    let tokens = set.limits.tokens.map(|most| format!(", {most} tokens")).unwrap_or_default();
    let limits = &set.limits;
    say(
        "An attempt may take",
        format!("{} steps, {} s of tool time, ${}{tokens}", limits.steps, limits.seconds, limits.cost),
    );
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    say("Experiments", word(serde_json::to_value(set.protocol)));
    say("Scoring", word(serde_json::to_value(set.scoring)));
    say("Verification", if set.verify { "the agent's code is run again" } else { "none" }.to_owned());
    if !set.verifiers.is_empty() {
        say(
            "Verifiers",
            format!("{}; a model sees the candidates in {} orders", set.verifiers.iter().join(", "), set.orders),
        );
    }
    say("Seed", set.seed.to_string());
    for session in &run.sessions {
        let mut parts = vec![format!("version {}, sandbox {}", session.version, session.sandbox)];
        parts.push(if session.baseline { "gold reproduced" } else { "gold not checked" }.to_owned());
        parts.extend(session.warnings.iter().chain(&session.differences).cloned());
        say(&format!("Session of {}", session.started.strftime("%Y-%m-%d %H:%M UTC")), parts.join("; "));
    }
    let created = run.created.strftime("%Y-%m-%d %H:%M UTC").to_string();
    RunFacts { name: name.to_owned(), created, facts }
}

/// Returns the attempts that have a trajectory but no record, and an error if trajectories can't be listed.
pub(super) fn begun(run: &MergedRun, place: usize, material: &Material) -> (Vec<UnrecordedAttempt>, Option<String>) {
    let mine = material.records.iter().zip(&material.origins).filter(|(_, origin)| origin.run == place);
    let stored: HashSet<(&str, &str, u32)> =
        mine.map(|(record, origin)| (&*origin.agent, &*record.sample, record.attempt)).collect();
    let mut found = Vec::new();
    let read = run.store.each_trajectory(|StoredTrajectory { agent, sample, attempt, .. }| {
        if stored.contains(&(agent.as_str(), sample.as_str(), attempt)) {
            return;
        }
        // The record will name the model; until then assume the planned one.
        let planned = run.run.iter().flat_map(|run| &run.planned).find(|planned| planned.agent == agent);
        let model = planned.and_then(|planned| planned.model.as_deref()).map(|model| run.model(model));
        let label = run.label(&agent);
        let origin = Origin { run: place, agent: agent.into(), line: None };
        found.push(UnrecordedAttempt { origin, agent: label, model, sample, attempt });
    });
    match read {
        Ok(()) => (found, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    }
}
