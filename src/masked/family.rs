//! Masked replication as a family (kind of task): parses its sample ids and loads its papers.

use std::path::Path;
use std::sync::Arc;

use super::item::{PaperItem, withheld};
use crate::agent::prompts;
use crate::error::Result;
use crate::run::family::{Family, Item, ScoringBasis, Words};
use crate::sample::{MASKED, Sample, Withheld};
use crate::suite::{LoadedPaper, Suite};

/// Masked replication as a kind of task.
#[derive(Debug, Clone, Copy)]
pub struct MaskedReplication;

impl Family for MaskedReplication {
    fn name(&self) -> &'static str {
        MASKED
    }

    fn axis(&self) -> &'static str {
        "masked functions"
    }

    fn words(&self) -> Words {
        Words { item: "paper", group: "paper", unit: "function" }
    }

    fn extent(&self, n: usize) -> String {
        match n {
            0 => "nothing is masked: reproduction".to_owned(),
            1 => "1 masked function".to_owned(),
            _ => format!("{n} masked functions"),
        }
    }

    fn sentence(&self, sample: &Sample) -> String {
        format!("Sample `{sample}`: {} masked functions of the paper `{}`.", sample.n(), sample.cluster())
    }

    fn sample(&self, id: &str) -> Result<Sample> {
        let withheld = withheld(id)?;
        Ok(withheld.sample(MASKED, &withheld.item))
    }

    fn withheld(&self, sample: &Sample) -> Option<Withheld> {
        withheld(sample.id()).ok()
    }

    fn items(&self, suite: &Path, asked: &[String]) -> Result<Vec<String>> {
        Suite::open(suite)?.select(asked)
    }

    fn load(&self, suite: &Path, item: &str, basis: ScoringBasis) -> Result<Arc<dyn Item>> {
        Ok(Arc::new(PaperItem { loaded: Arc::new(LoadedPaper::load(&Suite::open(suite)?, item)?), basis }))
    }

    /// Digest of the prompts of masked replication.
    fn prompts(&self) -> String {
        prompts::digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_id_contains_the_paper_and_its_masked_functions() {
        let sample = MaskedReplication.sample("a_b_0,3").unwrap();
        assert_eq!((sample.id(), sample.item(), sample.cluster(), sample.n()), ("a_b_0,3", "a_b", "a_b", 2));
        assert_eq!(MaskedReplication.sentence(&sample), "Sample `a_b_0,3`: 2 masked functions of the paper `a_b`.");
        assert!(MaskedReplication.sample("a_b").is_err());
    }
}
