//! The family (kind of task) of notebook tasks: its items and sample ids.

use std::path::Path;
use std::sync::Arc;

use super::ids::{NOTEBOOK, sample, withheld};
use super::loaded::{LoadedTask, task_ids};
use super::measures::MEASURES;
use super::task::{Solutions, TaskItem};
use crate::error::{Error, Result};
use crate::run::family::{Family, Item, MeasureFacts, ScoringBasis, Words};
use crate::sample::{Sample, Withheld};

/// The family (kind of task) of notebook tasks.
#[derive(Debug, Clone, Copy)]
pub struct Notebook;

impl Family for Notebook {
    fn name(&self) -> &'static str {
        NOTEBOOK
    }

    fn axis(&self) -> &'static str {
        "withheld blocks"
    }

    fn words(&self) -> Words {
        Words { item: "task", group: "repo", unit: "block" }
    }

    fn extent(&self, n: usize) -> String {
        match n {
            0 => "everything is executed: read the answer".to_owned(),
            1 => "1 withheld block".to_owned(),
            _ => format!("{n} withheld blocks"),
        }
    }

    fn measures(&self) -> &'static [MeasureFacts] {
        &MEASURES
    }

    fn sample(&self, id: &str) -> Result<Sample> {
        Ok(sample(&withheld(id)?))
    }

    fn withheld(&self, sample: &Sample) -> Option<Withheld> {
        withheld(sample.id()).ok()
    }

    fn forges(&self) -> bool {
        true
    }

    fn items(&self, suite: &Path, asked: &[String]) -> Result<Vec<String>> {
        let known = task_ids(suite)?;
        if let Some(id) = asked.iter().find(|id| !known.contains(id)) {
            return Err(
                Error::usage(format!("there is no task `{id}`")).hint(format!("the tasks are: {}", known.join(", ")))
            );
        }
        let mut asked = if asked.is_empty() { known } else { asked.to_vec() };
        asked.sort();
        asked.dedup();
        Ok(asked)
    }

    fn load(&self, suite: &Path, item: &str, basis: ScoringBasis) -> Result<Arc<dyn Item>> {
        let loaded = Arc::new(LoadedTask::load(suite, item)?);
        Ok(Arc::new(TaskItem { loaded, rule: basis.rule, solutions: Solutions::Gold }))
    }
}

/// Same as [`Notebook`], except that a function makes the tasks, for example tasks whose solutions differ from gold.
#[derive(Debug, Clone, Copy)]
pub struct NotebookWith<F>(pub F);

impl<F: Fn(LoadedTask, ScoringBasis) -> Result<TaskItem> + Send + Sync> Family for NotebookWith<F> {
    fn name(&self) -> &'static str {
        Notebook.name()
    }

    fn sample(&self, id: &str) -> Result<Sample> {
        Notebook.sample(id)
    }

    fn items(&self, suite: &Path, asked: &[String]) -> Result<Vec<String>> {
        Notebook.items(suite, asked)
    }

    fn load(&self, suite: &Path, item: &str, basis: ScoringBasis) -> Result<Arc<dyn Item>> {
        Ok(Arc::new((self.0)(LoadedTask::load(suite, item)?, basis)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_the_task_its_repo_and_the_number_of_withheld_blocks() {
        let sample = Notebook.sample("ir.rankers_1,2").unwrap();
        assert_eq!((sample.item(), sample.cluster(), sample.n()), ("ir.rankers", "ir", 2));
        assert_eq!(Notebook.sample("ir.rankers_").unwrap().n(), 0);
        assert!(Notebook.sample("kmeanspp_1").is_err());
    }
}
