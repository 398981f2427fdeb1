//! Implements the trait [`Item`] for notebook tasks: their samples, scores and descriptions.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::check;
use super::ids::sample;
use super::instructions::instructions;
use super::judge;
use super::ready::ReadyTask;
use super::task::TaskItem;
use crate::error::{Error, Result};
use crate::run::SampleDraw;
use crate::run::event::Observer;
use crate::run::family::{
    CheckFacts, Item, ItemFacts, Question, Ready, SampleNames, SampleParts, ScoringInput, WrittenPart,
};
use crate::run::machine::Machine;
use crate::sample::{Sample, Units as _, Withheld, draw};
use crate::score::{Tolerance, Verdict};
use crate::suite::PartialDate;

#[async_trait]
impl Item for TaskItem {
    fn id(&self) -> &str {
        &self.loaded.id
    }

    fn digest(&self) -> String {
        self.loaded.digest.clone()
    }

    fn scorable(&self) -> Result<()> {
        self.loaded.gold().map(drop)
    }

    fn problems(&self) -> Vec<Error> {
        check::problems(&self.loaded).into_iter().map(Error::suite).collect()
    }

    fn count(&self, n: usize) -> Option<u128> {
        self.loaded.order.count(n)
    }

    fn draw(&self, asked: &SampleDraw, seed: u64) -> Result<Vec<Sample>> {
        if !asked.is_young(self.facts().public_since) {
            return Ok(Vec::new());
        }
        let (id, order) = (self.id(), &self.loaded.order);
        let mut samples = Vec::new();
        for n in asked.counts(order.len()) {
            let drawn = draw(id, order, n, asked.limit, seed)?.into_iter();
            samples.extend(drawn.map(|units| sample(&Withheld { item: id.to_owned(), units })));
        }
        Ok(samples)
    }

    fn require(&self, sample: &Sample) -> Result<()> {
        self.blocks(sample).map(drop)
    }

    fn reported(&self, sample: &Sample, findings: &ScoringInput<'_>) -> Result<Verdict> {
        self.blocks(sample)?;
        judge::reported(&self.loaded, self.rule, findings.answer, findings.observed)
    }

    fn verified(&self, sample: &Sample, findings: &ScoringInput<'_>) -> Result<Verdict> {
        judge::verified(&self.loaded, self.rule, &self.blocks(sample)?, findings)
    }

    /// Prepares the task without running the gold cells as a baseline. The agent `gold` and the command `autoexperiment
    /// verify --family notebook` show whether these cells give the gold answer on this machine.
    async fn prepare(self: Arc<Self>, machine: &Machine, _: bool, observer: &dyn Observer) -> Result<Box<dyn Ready>> {
        Ok(Box::new(ReadyTask::prepare(self, machine, observer).await?))
    }

    fn question(&self, sample: &Sample) -> Result<Question> {
        let keys = self.loaded.gold()?.as_object().into_iter().flat_map(Map::keys).cloned();
        let relative = self.loaded.manifest.answer.relative;
        let tolerance = Tolerance { relative, absolute: 0.0, ..Tolerance::default() };
        Ok(Question {
            sample: sample.id().to_owned(),
            task: instructions(&self.loaded, &self.blocks(sample)?),
            before: "the repository as it was given".to_owned(),
            criterion:
                "sets the repository up as the query asks and runs it, so that the values are those that it gives"
                    .to_owned(),
            files: Vec::new(),
            answers: keys.map(|key| (key, tolerance.clone())).collect(),
        })
    }

    fn answered(&self, _sample: &Sample, answer: Option<&str>) -> Map<String, Value> {
        match judge::submission(answer) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }

    fn gave_results(&self, results: &Map<String, Value>) -> bool {
        judge::gave_results(results)
    }

    fn facts(&self) -> ItemFacts {
        let manifest = &self.loaded.manifest;
        let entry = CheckFacts {
            id: judge::ANSWER.to_owned(),
            description: manifest.query.clone(),
            command: manifest.answer.command.clone(),
        };
        ItemFacts {
            title: manifest.title.clone(),
            year: manifest.published.and_then(|when| u16::try_from(when.first().year()).ok()),
            public_since: PartialDate::earlier(manifest.published, manifest.first_commit),
            experiments: vec![entry],
            ..ItemFacts::default()
        }
    }

    fn parts(&self, sample: &Sample) -> Result<SampleParts> {
        let blocks = self.blocks(sample)?;
        let parts = blocks.iter().map(|&place| WrittenPart {
            at: self.named(place),
            original: self.loaded.cells[place].join("\n# %%\n"),
            masked: format!("# {}", self.loaded.manifest.blocks[place].goal.trim()),
        });
        Ok(SampleParts {
            asked: Some(instructions(&self.loaded, &blocks)),
            heading: "Withheld blocks".to_owned(),
            parts: parts.collect(),
        })
    }

    fn listed(&self, sample: &Sample) -> Result<SampleNames> {
        let blocks = self.blocks(sample)?;
        let landmarks = self.loaded.manifest.landmarks_of(&blocks).map(|landmark| judge::landmark_id(&landmark.id));
        Ok(SampleNames {
            units: blocks.iter().map(|&place| self.named(place)).collect(),
            checks: std::iter::once(judge::ANSWER.to_owned()).chain(landmarks).collect(),
        })
    }
}
