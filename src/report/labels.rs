//! What users call runs, agents and models in tables: `--label OLD=NEW`.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

/// New names by old ones.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    names: BTreeMap<String, String>,
}

/// An agent and its model.
type Contender = (String, Option<String>);

/// A run as labels speak of it.
pub struct Labelled<'a> {
    /// Its own name.
    pub run: &'a str,
    /// What stands before its agents' labels.
    pub prefix: &'a str,
    /// Its agents with their models, as it calls them.
    pub contenders: BTreeSet<Contender>,
}

impl Labels {
    /// From pairs of an old name and a new one.
    ///
    /// # Errors
    /// Kind `Usage` where one old name has two new ones.
    pub fn new(pairs: &[(String, String)]) -> Result<Self> {
        let mut names = BTreeMap::new();
        for (old, new) in pairs {
            if names.insert(old.clone(), new.clone()).is_some_and(|before| before != *new) {
                return Err(Error::usage(format!("`--label` gives `{old}` two names")).hint("name it once"));
            }
        }
        Ok(Self { names })
    }

    /// Reads `OLD=NEW`.
    ///
    /// # Errors
    /// Where it is nothing like that, for a parser of command lines.
    pub fn pair(text: &str) -> std::result::Result<(String, String), String> {
        // A name of a model may hold one itself: the last is between the two.
        let pair = text.rsplit_once('=').filter(|(old, new)| !old.is_empty() && !new.trim().is_empty());
        let (old, new) = pair.ok_or_else(|| format!("a label is `OLD=NEW`, not `{text}`"))?;
        Ok((old.to_owned(), new.trim().to_owned()))
    }

    /// A run or a model under its new name.
    #[must_use]
    pub fn of(&self, name: &str) -> String {
        self.names.get(name).map_or_else(|| name.to_owned(), Clone::clone)
    }

    /// An agent of a run under its new name. It may be named with its run, and the new name is then all of it, or
    /// without, which speaks of all runs.
    #[must_use]
    pub fn agent(&self, run: &str, prefix: &str, agent: &str) -> String {
        let whole = || self.names.get(&format!("{run}/{agent}")).filter(|_| !prefix.is_empty()).cloned();
        whole().unwrap_or_else(|| format!("{prefix}{}", self.of(agent)))
    }

    /// What stands before the labels of a run's agents, where it is one of several.
    #[must_use]
    pub fn prefix(&self, run: &str, are_several: bool) -> String {
        if are_several { format!("{}/", self.of(run)) } else { String::new() }
    }

    /// That no two contenders of these runs become one, and that every label names something.
    ///
    /// # Errors
    /// Kind `Usage` where that is not so.
    pub fn fit(&self, runs: &[Labelled<'_>]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (mut known, mut seen) = (BTreeSet::new(), BTreeMap::<Contender, Contender>::new());
        for Labelled { run, prefix, contenders } in runs {
            known.insert((*run).to_owned());
            for (agent, model) in contenders {
                let was = (format!("{run}/{agent}"), model.clone());
                known.extend([agent.clone(), was.0.clone()]);
                known.extend(model.clone());
                let now = (self.agent(run, prefix, agent), model.as_deref().map(|model| self.of(model)));
                if let Some(other) = seen.get(&now).filter(|other| **other != was) {
                    return Err(same(other, &was, &now));
                }
                seen.insert(now, was);
            }
        }
        match self.names.keys().find(|name| !known.contains(*name)) {
            None => Ok(()),
            Some(name) => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                Err(Error::usage(format!("`--label` renames `{name}`, which is no run, agent or model here"))
                    .hint(format!("there are {}", known.join(", "))))
            }
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Two contenders have become one.
fn same(one: &Contender, other: &Contender, now: &Contender) -> Error {
    let name = |(agent, model): &Contender| super::full_name(agent, model.as_deref());
    Error::usage(format!("`--label` gives `{}` and `{}` the same name, `{}`", name(one), name(other), name(now)))
        .hint("give each a name of its own: their attempts would count as one agent's")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_equals_sign_stands_between_the_names() {
        assert_eq!(Labels::pair("a=b").unwrap(), ("a".to_owned(), "b".to_owned()));
        assert_eq!(
            Labels::pair("fixed+paper=full=Fixed").unwrap(),
            ("fixed+paper=full".to_owned(), "Fixed".to_owned())
        );
        for wrong in ["", "a", "=b", "a="] {
            assert!(Labels::pair(wrong).is_err(), "{wrong}");
        }
        let two = [("a".to_owned(), "b".to_owned()), ("a".to_owned(), "c".to_owned())];
        assert!(Labels::new(&two).is_err());
    }

    #[test]
    fn an_agent_is_named_with_its_run_or_for_all_runs() {
        let labels = Labels::new(&[("r/react".into(), "Old".into()), ("react".into(), "ReAct".into())]).unwrap();
        assert_eq!(labels.agent("r", "r/", "react"), "Old");
        assert_eq!(labels.agent("q", "Q/", "react"), "Q/ReAct");
        assert_eq!(labels.agent("r", "", "react"), "ReAct");
    }
}
