//! The family of tasks in which an agent turns an instruction into a command. An item is a repo with instructions.

use std::path::Path;
use std::sync::Arc;

use super::context::LAYERS;
use super::item::CommandItem;
use super::loaded::{LoadedCommands, ids};
use super::measures::MEASURES;
use super::sample_id::parts;
use crate::error::{Error, Result};
use crate::run::family::{Family, Item, MeasureFacts, ScoringBasis, Words};
use crate::sample::{COMMAND, Sample};

/// The family of tasks in which an agent turns an instruction into a command.
#[derive(Debug, Clone, Copy)]
pub struct Commands;

impl Family for Commands {
    fn name(&self) -> &'static str {
        COMMAND
    }

    fn axis(&self) -> &'static str {
        "withheld layers of documentation"
    }

    fn words(&self) -> Words {
        Words { item: "repo", group: "repo", unit: "layer" }
    }

    fn extent(&self, n: usize) -> String {
        LAYERS.get(n).map_or_else(|| format!("n = {n}"), |layer| format!("context: {layer}"))
    }

    fn measures(&self) -> &'static [MeasureFacts] {
        &MEASURES
    }

    fn sentence(&self, sample: &Sample) -> String {
        format!("Sample `{sample}`: an instruction for the repo `{}`, {}.", sample.cluster(), self.extent(sample.n()))
    }

    fn sample(&self, id: &str) -> Result<Sample> {
        let (repo, _, n) = parts(id)?;
        Ok(Sample::new(COMMAND, repo, repo, id.to_owned(), n))
    }

    fn forges(&self) -> bool {
        true
    }

    fn items(&self, suite: &Path, asked: &[String]) -> Result<Vec<String>> {
        let known = ids(suite)?;
        if asked.is_empty() {
            return Ok(known);
        }
        if let Some(id) = asked.iter().find(|id| !known.contains(id)) {
            return Err(Error::usage(format!("there is no repo `{}` with instructions", id.escape_debug()))
                .hint(format!("the repos are: {}", known.join(", "))));
        }
        Ok(known.into_iter().filter(|id| asked.contains(id)).collect())
    }

    fn load(&self, suite: &Path, item: &str, basis: ScoringBasis) -> Result<Arc<dyn Item>> {
        Ok(Arc::new(CommandItem { loaded: Arc::new(LoadedCommands::load(suite, item)?), rule: basis.rule }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_the_repo_the_instruction_and_the_context() {
        let sample = Commands.sample("kmeanspp.c07_2").unwrap();
        assert_eq!((sample.item(), sample.cluster(), sample.n()), ("kmeanspp", "kmeanspp", 2));
        assert_eq!(Commands.extent(2), "context: README");
        for wrong in ["kmeanspp_0", "kmeanspp.c07", "kmeanspp.c07_4", ".c07_1", "kmeanspp.c07_01", "a.b_-1"] {
            assert!(Commands.sample(wrong).is_err(), "{wrong}");
        }
    }
}
