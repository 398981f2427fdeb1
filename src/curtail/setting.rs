//! Lists the settings to try as the curtailed parameters of an experiment.

use std::collections::BTreeMap;

use crate::suite::Experiment;

/// A value for each of an experiment's parameters.
pub type Setting = BTreeMap<String, toml::Value>;

/// Maximum number of settings to try per experiment.
pub const MOST: usize = 200;

/// Returns all settings that the manifest allows, except the full one. The settings are ordered by the sum of the
/// positions of their values in the manifest's `allowed` lists. Without such lists, returns only the manifest's
/// curtailed setting. Settings beyond the first [`MOST`] are dropped.
#[must_use]
pub fn settings(experiment: &Experiment) -> Vec<Setting> {
    let parameters = &experiment.parameters;
    if parameters.allowed.is_empty() {
        let current = parameters.curtailed.clone();
        return if current == parameters.full { Vec::new() } else { vec![current] };
    }
    // The settings made so far, each with the sum of the positions of its values in the lists of allowed values. These
    // lists begin with the cheapest values, so a small sum means a cheap setting. Each pass of the loop varies one more
    // parameter.
    let mut all: Vec<(usize, Setting)> = vec![(0, parameters.full.clone())];
    for (name, values) in &parameters.allowed {
        let mut longer = Vec::with_capacity(all.len() * values.len());
        for (places, setting) in &all {
            for (place, value) in values.iter().enumerate() {
                let mut setting = setting.clone();
                setting.insert(name.clone(), value.clone());
                longer.push((places + place, setting));
            }
        }
        longer.sort_by_key(|(places, _)| *places);
        // Drop the settings with the largest sums already here. Later passes never lower a sum, and the first allowed
        // value of each further parameter leaves it unchanged. So enough settings with smaller or equal sums remain.
        longer.truncate(MOST + 1);
        all = longer;
    }
    let settings = all.into_iter().map(|(_, setting)| setting).filter(|setting| *setting != parameters.full);
    settings.take(MOST).collect()
}

/// Formats a setting on one line, as in a manifest.
#[must_use]
pub fn written(setting: &Setting) -> String {
    let parts: Vec<String> = setting.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    format!("{{ {} }}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(allowed: &str) -> Experiment {
        let text = format!(
            "id = 'e'\ndescription = ''\ncommand = 'run {{a}} {{b}} {{c}}'\nresult = {{ json_line = 'stdout' }}\n\
             [parameters]\nfull = {{ a = 9, b = 'x,y', c = 1.5 }}\ncurtailed = {{ a = 1, b = 'x', c = 0.5 }}\n{allowed}"
        );
        toml::from_str(&text).unwrap()
    }

    fn listed(allowed: &str) -> Vec<String> {
        settings(&experiment(allowed)).iter().map(written).collect()
    }

    #[test]
    fn settings_to_try_begin_with_the_cheapest_values_and_exclude_the_papers_full_setting() {
        assert_eq!(
            listed("allowed = { a = [1, 3, 9], b = ['x', 'x,y'] }"),
            [
                r#"{ a = 1, b = "x", c = 1.5 }"#,
                r#"{ a = 1, b = "x,y", c = 1.5 }"#,
                r#"{ a = 3, b = "x", c = 1.5 }"#,
                r#"{ a = 3, b = "x,y", c = 1.5 }"#,
                r#"{ a = 9, b = "x", c = 1.5 }"#,
            ]
        );
    }

    #[test]
    fn without_allowed_values_in_the_manifest_only_its_curtailed_setting_is_tried() {
        assert_eq!(listed(""), [r#"{ a = 1, b = "x", c = 0.5 }"#]);
    }

    #[test]
    fn only_the_cheapest_settings_of_a_huge_grid_are_tried() {
        let values = (0..100).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
        let all = listed(&format!("allowed = {{ a = [{values}], c = [{values}] }}"));
        assert_eq!((all.len(), all[0].as_str()), (MOST, r#"{ a = 0, b = "x,y", c = 0 }"#));
    }
}
