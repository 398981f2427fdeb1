//! The items of stored records, each loaded once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::AttemptRecord;
use super::family::{Families, Item, ScoringBasis};
use crate::error::{Error, Result};
use crate::sample::Sample;

/// The items of a set of records.
pub struct Catalogue {
    families: Families,
    /// Loaded items (such as papers), by the name of their kind of task and by id.
    items: BTreeMap<(String, String), Arc<dyn Item>>,
    /// Errors of the items that could not be loaded, by id.
    gone: BTreeMap<String, Error>,
}

impl Catalogue {
    /// Loads the items of these records. Errors are kept in [`Self::unloadable()`].
    #[must_use]
    pub fn load(families: &Families, suite: &Path, basis: ScoringBasis, records: &[AttemptRecord]) -> Self {
        let mut this = Self { families: families.clone(), items: BTreeMap::new(), gone: BTreeMap::new() };
        let tried: BTreeSet<(&str, &str, &str)> = records
            .iter()
            .map(|record| (record.family.as_str(), record.paper.as_str(), record.sample.as_str()))
            .collect();
        for (family, paper, id) in tried {
            let known = families.get(family).and_then(|family| Ok((family, family.sample(id)?)));
            match known {
                Ok((family, sample)) => {
                    let key = (sample.family().to_owned(), sample.item().to_owned());
                    if this.items.contains_key(&key) || this.gone.contains_key(sample.item()) {
                        continue;
                    }
                    match family.load(suite, sample.item(), basis) {
                        Ok(item) => drop(this.items.insert(key, item)),
                        Err(error) => drop(this.gone.insert(key.1, error)),
                    }
                }
                Err(error) => drop(this.gone.entry(paper.to_owned()).or_insert(error)),
            }
        }
        this
    }

    /// The sample and the item of a record; `None` if the item could not be loaded.
    #[must_use]
    pub fn find(&self, record: &AttemptRecord) -> Option<(Sample, &dyn Item)> {
        let sample = self.families.sample(&record.family, &record.sample).ok()?;
        let item = self.items.get(&(sample.family().to_owned(), sample.item().to_owned()))?;
        Some((sample, item.as_ref()))
    }

    /// Loaded items (such as papers), ordered by the name of their kind of task and by id.
    pub fn items(&self) -> impl Iterator<Item = &dyn Item> {
        self.items.values().map(AsRef::as_ref)
    }

    /// Errors of the items that could not be loaded, by id.
    #[must_use]
    pub const fn unloadable(&self) -> &BTreeMap<String, Error> {
        &self.gone
    }

    /// Fails if some of the items could not be loaded.
    ///
    /// # Errors
    /// Returns the first load error.
    pub fn whole(mut self) -> Result<Self> {
        match self.gone.pop_first() {
            Some((_, error)) => Err(error),
            None => Ok(self),
        }
    }
}
