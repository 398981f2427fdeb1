//! Names for runs, agents and models in tables, chosen by users with `--label OLD=NEW`.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use crate::error::{Error, Result};

/// New names by old names.
///
/// Both names may contain equals signs (`fixed+paper=full=Fixed`, `react=k=5`), so each label is split at every equals
/// sign, and the names in the runs decide which split is meant.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    given: Vec<Label>,
    names: BTreeMap<String, String>,
}

/// A label, given as `OLD=NEW`.
#[derive(Debug, Clone)]
pub struct Label {
    text: String,
    /// The old and the new name for each equals sign at which the label can be split.
    ways: Vec<(String, String)>,
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parted = text.match_indices('=').map(|(at, _)| (text[..at].to_owned(), text[at + 1..].trim().to_owned()));
        let ways: Vec<(String, String)> = parted.filter(|(old, new)| !old.is_empty() && !new.is_empty()).collect();
        if ways.is_empty() {
            return Err(format!("a label is `OLD=NEW`, not `{text}`"));
        }
        Ok(Self { text: text.to_owned(), ways })
    }
}

/// An agent and its model.
type AgentAndModel = (String, Option<String>);

/// Names in one run that labels can refer to.
pub struct Labelled<'a> {
    /// The run's own name.
    pub run: &'a str,
    /// Prefix of the labels of the run's agents.
    pub prefix: &'a str,
    /// Agents and models of the run, under their original names.
    pub contenders: BTreeSet<AgentAndModel>,
}

impl Labels {
    /// Collects labels. Use [`Labels::fit`] to check them against the runs.
    #[must_use]
    pub fn new(given: &[Label]) -> Self {
        let names = given.iter().flat_map(|label| label.ways.iter().cloned()).collect();
        Self { given: given.to_vec(), names }
    }

    /// Returns the new name of a run or model, or the name itself if it has no label.
    #[must_use]
    pub fn renamed(&self, name: &str) -> String {
        self.names.get(name).map_or_else(|| name.to_owned(), Clone::clone)
    }

    /// Returns an agent's new name. A label for `run/agent` replaces the whole name including the run's prefix; a label
    /// for `agent` applies in all runs and keeps the prefix.
    #[must_use]
    pub fn agent(&self, run: &str, prefix: &str, agent: &str) -> String {
        let whole = || self.names.get(&format!("{run}/{agent}")).filter(|_| !prefix.is_empty()).cloned();
        whole().unwrap_or_else(|| format!("{prefix}{}", self.renamed(agent)))
    }

    /// Returns the prefix of a run's agent labels; empty for a single run.
    #[must_use]
    pub fn prefix(&self, run: &str, are_several: bool) -> String {
        if are_several { format!("{}/", self.renamed(run)) } else { String::new() }
    }

    /// Checks that each label fits exactly one name in the runs, and that different pairs of agent and model do not get
    /// the same name.
    ///
    /// # Errors
    /// Kind `Usage` if the check fails.
    pub fn fit(&self, runs: &[Labelled<'_>]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        // Tables and comparisons tell contenders apart by the joined name of agent and model, so compare that name.
        let (mut known, mut seen) = (BTreeSet::new(), BTreeMap::<String, AgentAndModel>::new());
        for Labelled { run, prefix, contenders } in runs {
            known.insert((*run).to_owned());
            for (agent, model) in contenders {
                let was = (format!("{run}/{agent}"), model.clone());
                known.extend([agent.clone(), was.0.clone()]);
                known.extend(model.clone());
                let model = model.as_deref().map(|model| self.renamed(model));
                let now = super::full_name(&self.agent(run, prefix, agent), model.as_deref());
                if let Some(other) = seen.get(&now).filter(|other| **other != was) {
                    return Err(same(other, &was, &now));
                }
                seen.insert(now, was);
            }
        }
        let mut renamed = BTreeMap::<&str, &str>::new();
        for Label { text, ways } in &self.given {
            let named: Vec<_> = ways.iter().filter(|(old, _)| known.contains(old)).collect();
            let (old, new) = match named.as_slice() {
                [way] => way,
                [] => return Err(unknown(ways, &known)),
                [(first, _), (second, _), ..] => {
                    return Err(Error::usage(format!("`--label {text}` could rename `{first}` or `{second}`")).hint(
                        "put the run before an agent's name, as in `RUN/AGENT=NEW`, or use a new name without `=`",
                    ));
                }
            };
            if renamed.insert(old, new).is_some_and(|before| before != new) {
                return Err(Error::usage(format!("`--label` gives `{old}` two names")).hint("give it one new name"));
            }
        }
        Ok(())
    }

    /// Whether no labels were given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Error for a label whose old name is not the name of a run, agent or model.
fn unknown(ways: &[(String, String)], known: &BTreeSet<String>) -> Error {
    let names: Vec<String> = ways.iter().map(|(old, _)| format!("`{old}`")).collect();
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    Error::usage(format!("`--label` renames {}, but no run, agent or model has that name", names.join(" or ")))
        .hint(format!("the names are {}", known.join(", ")))
}

/// Error for two contenders with the same new name.
fn same(one: &AgentAndModel, other: &AgentAndModel, now: &str) -> Error {
    let name = |(agent, model): &AgentAndModel| super::full_name(agent, model.as_deref());
    Error::usage(format!("`--label` gives `{}` and `{}` the same name, `{now}`", name(one), name(other)))
        .hint("give each its own name, because their attempts would otherwise count as one agent's")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(texts: &[&str]) -> Labels {
        let given: Vec<Label> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Labels::new(&given)
    }

    fn fit(texts: &[&str], agents: &[&str]) -> Result<()> {
        let contenders = agents.iter().map(|agent| ((*agent).to_owned(), None)).collect();
        labels(texts).fit(&[Labelled { run: "r", prefix: "", contenders }])
    }

    #[test]
    fn a_label_with_several_equals_signs_is_split_after_the_name_that_exists() {
        let agents = ["fixed+paper=full", "fixed+paper=none", "react"];
        let given = ["fixed+paper=full=Fixed, k=5", "fixed+paper=none=None", "react=k = 5"];
        fit(&given, &agents).unwrap();
        let labels = labels(&given);
        let named = agents.map(|agent| labels.agent("r", "", agent));
        assert_eq!(named, ["Fixed, k=5", "None", "k = 5"]);
        for wrong in ["", "a", "=b", "a=", "a= "] {
            assert!(wrong.parse::<Label>().is_err(), "{wrong}");
        }
        let refused = |given: &[&str], agents: &[&str]| fit(given, agents).unwrap_err().to_string();
        assert_eq!(refused(&["a=b", "a=c"], &["a"]), "`--label` gives `a` two names");
        fit(&["a=b", "a=b"], &["a"]).unwrap();
        assert_eq!(refused(&["a=b=c"], &["a", "a=b"]), "`--label a=b=c` could rename `a` or `a=b`");
        assert_eq!(
            refused(&["x=y=z"], &["a"]),
            "`--label` renames `x` or `x=y`, but no run, agent or model has that name"
        );
    }

    #[test]
    fn a_label_may_not_make_the_joined_names_of_two_agents_and_models_equal() {
        let pairs = [("a b", "c"), ("x", "b c")].map(|(agent, model)| (agent.to_owned(), Some(model.to_owned())));
        let fit = |label: &str| {
            labels(&[label]).fit(&[Labelled { run: "r", prefix: "", contenders: pairs.iter().cloned().collect() }])
        };
        fit("x=y").unwrap();
        assert_eq!(
            fit("x=a").unwrap_err().to_string(),
            "`--label` gives `r/a b c` and `r/x b c` the same name, `a b c`"
        );
    }

    #[test]
    fn a_label_renames_an_agent_in_one_run_or_in_all_runs() {
        let labels = labels(&["r/react=Old", "react=ReAct"]);
        assert_eq!(labels.agent("r", "r/", "react"), "Old");
        assert_eq!(labels.agent("q", "Q/", "react"), "Q/ReAct");
        assert_eq!(labels.agent("r", "", "react"), "ReAct");
    }
}
