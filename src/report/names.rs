//! How an agent, its model and an attempt's end are called in reports.

use super::clean::{clean, middle_cut};
use crate::agent::End;

/// An agent and its model by their whole names, cleaned: what tells them from others.
pub(super) fn full_name(agent: &str, model: Option<&str>) -> String {
    clean(&model.map_or_else(|| agent.to_owned(), |model| format!("{agent} {model}")))
}

/// An agent and its model for the console, which has no room for long names: cut in the middle. Never to tell two from
/// each other, for which there is [`full_name`].
pub(super) fn short_name(agent: &str, model: Option<&str>) -> String {
    middle_cut(&full_name(agent, model), 60)
}

/// Name of an end as it is stored and shown: `step_limit`.
pub(crate) fn end_name(end: End) -> String {
    serde_json::to_value(end).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
