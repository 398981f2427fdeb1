//! Names of agents, models and ends (the reasons why attempts stopped) in reports.

use super::clean::{clean, middle_cut};
use crate::agent::End;

/// Returns the full, cleaned name of an agent and its model. No other agent and model have the same name.
pub(super) fn full_name(agent: &str, model: Option<&str>) -> String {
    clean(&model.map_or_else(|| agent.to_owned(), |model| format!("{agent} {model}")))
}

/// Shortens the name of an agent and its model for the console by cutting out the middle. Two names may become equal:
/// use [`full_name`] to distinguish agents and models.
pub(super) fn short_name(agent: &str, model: Option<&str>) -> String {
    middle_cut(&full_name(agent, model), 60)
}

/// Name of an end as stored and shown, such as `step_limit`.
pub(crate) fn end_name(end: End) -> String {
    serde_json::to_value(end).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
