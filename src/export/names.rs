//! File names derived from untrusted names of agents, models and samples.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::files::{bounded, hex};
use crate::run::record_index::IndexedRecord;

/// Number of hexadecimal digits of the digest that is appended to a changed name.
const DIGITS: usize = 8;

/// Converts a name to a path component. Valid file names stay as they are. Otherwise path separators become dashes,
/// long names are cut, and a digest of the original name is appended, so that different names stay different.
pub fn file_name(name: &str) -> String {
    let mut safe: String = name.replace(['/', '\\', '\0'], "-");
    if safe.starts_with('.') || safe.is_empty() {
        safe.insert(0, '-');
    }
    if safe == name { bounded(name).into_owned() } else { format!("{}-{}", bounded(&safe), digits(&[name])) }
}

fn digits(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())[..DIGITS].to_owned()
}

/// File names for the agents and models of a run: the agent's name, followed by `__` and the model if the agent has
/// several.
pub struct ContenderFileNames(BTreeMap<(String, Option<String>), String>);

impl ContenderFileNames {
    /// Collects the names for the agents and models of these attempts.
    pub fn for_attempts<'a>(attempts: impl Iterator<Item = &'a IndexedRecord>) -> Self {
        let mut models: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        for attempt in attempts {
            models.entry(&attempt.agent).or_default().insert(attempt.model.as_deref());
        }
        let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
        for (agent, models) in models {
            let are_several = models.len() > 1;
            for model in models {
                let whole = match model {
                    Some(model) if are_several => format!("{agent}__{model}"),
                    _ => agent.to_owned(),
                };
                let mut name = file_name(&whole);
                if !taken.insert(name.clone()) {
                    name = format!("{name}-{}", digits(&[agent, model.unwrap_or_default()]));
                    taken.insert(name.clone());
                }
                names.insert((agent.to_owned(), model.map(str::to_owned)), name);
            }
        }
        Self(names)
    }

    /// Returns the file name for an agent and model.
    pub fn get(&self, agent: &str, model: Option<&str>) -> String {
        let known = self.0.get(&(agent.to_owned(), model.map(str::to_owned)));
        known.cloned().unwrap_or_else(|| file_name(agent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_file_names_stay_and_different_names_stay_different() {
        assert_eq!(file_name("react 2_a,b"), "react 2_a,b");
        let long = "ä".repeat(300);
        let odd = ["a/b", "a-b", "a\\b", "..", ".", "", "../../outside", &long, &format!("{long}x"), ".a"];
        let names: BTreeSet<String> = odd.iter().map(|name| file_name(name)).collect();
        assert_eq!(names.len(), odd.len());
        for name in names {
            assert!(crate::run::is_file_name(&name) && name.len() < 235, "{name}");
        }
    }
}
