//! Gives a run the data of a paper that it needs (see the trait [`Item`]): its samples, its scores, and the inputs of
//! an attempt.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::gold::{check_baseline, gold_of, runs};
use super::guard::Guard;
use super::judge::PaperJudge;
use super::ready::ReadyPaper;
use super::{parts, question, task};
use crate::agent::files::task_files;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::run::SampleDraw;
use crate::run::event::Observer;
use crate::run::family::{
    CheckFacts, HiddenShare, Item, ItemFacts, Question, Ready, SampleNames, SampleParts, ScoringBasis, ScoringInput,
    Staged,
};
use crate::run::machine::Machine;
use crate::sample::{MASKED, Sample, UnitChoice, Withheld, draw};
use crate::score::Verdict;
use crate::suite::{GoldResult, LoadedPaper, PartialDate, check, copies};
use crate::workspace::{Snapshot, repo_digest};

/// Parses a sample id into the paper and the indices of its masked functions.
///
/// # Errors
/// Kind `Usage` if the text isn't a sample id.
pub fn withheld(id: &str) -> Result<Withheld> {
    id.parse::<Withheld>()
        .map_err(|error| error.hint("a sample id is a paper and its masked functions, such as `kmeanspp_0,3`"))
}

/// A paper.
pub struct PaperItem {
    /// The loaded paper.
    pub loaded: Arc<LoadedPaper>,
    /// Decides whether the curtailed or the full experiments are run, and by which rule values are compared with gold.
    pub basis: ScoringBasis,
}

impl PaperItem {
    /// The indices of a sample's masked functions, all of which exist in the paper.
    fn functions(&self, sample: &Sample) -> Result<Vec<usize>> {
        let functions = withheld(sample.id())?.units;
        self.loaded.require(&functions)?;
        Ok(functions)
    }

    fn judge(&self) -> PaperJudge<'_> {
        PaperJudge { loaded: &self.loaded, protocol: self.basis.protocol, rule: self.basis.rule }
    }
}

#[async_trait]
impl Item for PaperItem {
    fn id(&self) -> &str {
        &self.loaded.paper.id
    }

    fn digest(&self) -> String {
        self.loaded.digest.clone()
    }

    fn scorable(&self) -> Result<()> {
        gold_of(&self.loaded, self.basis.protocol).map(drop)
    }

    fn problems(&self) -> Vec<Error> {
        let problems = check(&self.loaded, self.basis.protocol).into_iter();
        problems.filter(|problem| problem.fatal).map(|problem| problem.error).collect()
    }

    fn repo(&self) -> Option<Result<String>> {
        Some(repo_digest(&self.loaded.repo_dir))
    }

    fn seconds(&self, sample: Option<&Sample>) -> Option<f64> {
        let paper = &self.loaded.paper;
        let places = match sample {
            Some(sample) => self.loaded.tests(&self.functions(sample).ok()?),
            None => (0..paper.experiments.len()).collect(),
        };
        let gold = self.loaded.gold.as_ref()?.results.get(&self.basis.protocol)?;
        let mean = |place: usize| {
            let seconds = &gold.get(&paper.experiments[place].id)?.seconds;
            Some(seconds.iter().sum::<f64>() / seconds.len().max(1) as f64)
        };
        places.into_iter().map(mean).sum()
    }

    fn count(&self, n: usize) -> Option<u128> {
        self.loaded.drawn(UnitChoice::default(), |_| true).1.count(n)
    }

    fn container(&self, unit: usize) -> Option<usize> {
        self.loaded.units.parent(unit)
    }

    fn draw(&self, asked: &SampleDraw, seed: u64) -> Result<Vec<Sample>> {
        let is_young = |unit: usize| asked.is_young(self.loaded.paper.units_since(&[unit]));
        let (places, nesting) = self.loaded.drawn(asked.units, is_young);
        let id = self.id();
        let mut samples = Vec::new();
        for n in asked.counts_of(&nesting) {
            if n == 0 && !asked.is_young(self.loaded.paper.public_since()) {
                continue;
            }
            for drawn in draw(id, &nesting, n, asked.limit, seed)? {
                let units = drawn.into_iter().map(|unit| places[unit]).collect();
                samples.push(Withheld { item: id.to_owned(), units }.sample(MASKED, id));
            }
        }
        Ok(samples)
    }

    fn require(&self, sample: &Sample) -> Result<()> {
        self.functions(sample).map(drop)
    }

    fn reported(&self, sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict> {
        self.judge().reported(&self.functions(sample)?, input.answer, input.results)
    }

    fn verified(&self, sample: &Sample, input: &ScoringInput<'_>) -> Result<Verdict> {
        self.judge().verified(&self.functions(sample)?, input.results)
    }

    async fn prepare(
        self: Arc<Self>,
        machine: &Machine,
        baseline: bool,
        observer: &dyn Observer,
    ) -> Result<Box<dyn Ready>> {
        let protocol = self.basis.protocol;
        let mut paper = ReadyPaper::prepare(self.loaded.clone(), protocol, machine, observer).await?;
        if baseline {
            let measured = check_baseline(&paper, protocol, machine, observer).await?;
            paper.allow(&measured, protocol);
        }
        Ok(Box::new(ReadyItem::new(self, paper)))
    }

    fn hidden(&self, sample: &Sample) -> HiddenShare {
        let tests = self.functions(sample).map(|functions| self.loaded.tests(&functions)).unwrap_or_default();
        match tests.iter().filter(|&&test| self.loaded.paper.experiments[test].hidden).count() {
            0 => HiddenShare::Nothing,
            count if count == tests.len() => HiddenShare::All,
            _ => HiddenShare::Part,
        }
    }

    fn question(&self, sample: &Sample) -> Result<Question> {
        Ok(question::question(&self.loaded, sample, &self.functions(sample)?))
    }

    fn answered(&self, sample: &Sample, answer: Option<&str>) -> Map<String, Value> {
        self.functions(sample)
            .map_or_else(|_| Map::new(), |functions| question::answered(&self.loaded, &functions, answer))
    }

    fn facts(&self) -> ItemFacts {
        let paper = &self.loaded.paper;
        let experiments = paper.experiments.iter().map(|experiment| CheckFacts {
            id: experiment.id.clone(),
            description: experiment.description.clone(),
            command: experiment.command.clone(),
        });
        ItemFacts {
            title: paper.title.clone(),
            authors: paper.authors.join(", "),
            year: Some(paper.year),
            url: paper.url.clone(),
            public_since: paper.public_since(),
            experiments: experiments.collect(),
            problem: None,
            text: Some(self.loaded.text.to_string()),
        }
    }

    fn since(&self, sample: &Sample) -> Option<PartialDate> {
        self.loaded.paper.units_since(&self.functions(sample).ok()?)
    }

    fn parts(&self, sample: &Sample) -> Result<SampleParts> {
        Ok(SampleParts {
            asked: None,
            heading: "Masked functions".to_owned(),
            parts: parts::parts(&self.loaded, &self.functions(sample)?)?,
        })
    }

    fn written(&self, sample: &Sample, patch: &str) -> (Vec<Option<String>>, Option<String>) {
        let written = self.functions(sample).and_then(|functions| parts::written(&self.loaded, &functions, patch));
        written.unwrap_or_else(|error| (Vec::new(), Some(error.to_string())))
    }

    fn lines(&self, sample: &Sample) -> Option<usize> {
        self.functions(sample).ok().map(|units| self.loaded.masked_lines(&units))
    }

    fn listed(&self, sample: &Sample) -> Result<SampleNames> {
        let (functions, paper) = (self.functions(sample)?, &self.loaded.paper);
        let tests = self.loaded.tests(&functions).into_iter();
        Ok(SampleNames {
            units: functions.into_iter().map(|place| paper.units[place].at.clone()).collect(),
            checks: tests.map(|place| paper.experiments[place].id.clone()).collect(),
        })
    }
}

/// A paper whose repo and env are ready on this machine.
pub struct ReadyItem {
    item: Arc<PaperItem>,
    paper: ReadyPaper,
    guard: Guard,
}

impl ReadyItem {
    /// Combines the samples and scores of a paper (`item`) with its repo and env, which are ready on this machine.
    #[must_use]
    pub fn new(item: Arc<PaperItem>, paper: ReadyPaper) -> Self {
        let guard = paper.guard();
        Self { item, paper, guard }
    }
}

impl Ready for ReadyItem {
    fn item(&self) -> &dyn Item {
        self.item.as_ref()
    }

    fn repo(&self) -> &str {
        self.paper.snapshot.digest()
    }

    fn env(&self) -> &Env {
        &self.paper.env
    }

    fn problems(&self) -> Vec<Error> {
        copies::installed(&self.paper.loaded, &self.paper.env.prefix)
    }

    fn stage(&self, sample: &Sample, attempt: u32) -> Result<Staged<'_>> {
        let functions = self.item.functions(sample)?;
        let loaded = &self.paper.loaded;
        let replication = task::replication(loaded, &self.paper.experiments, &functions);
        let mut files: Vec<(PathBuf, Vec<u8>)> =
            loaded.masked(&functions)?.into_iter().map(|file| (file.path, file.bytes)).collect();
        files.extend(task_files(&replication));
        let checks = loaded.tests(&functions).into_iter().map(|place| self.paper.experiments[place].check()).collect();
        let task = replication.task(sample.id(), attempt);
        Ok(Staged { task, snapshot: &self.paper.shown, files, checks })
    }

    fn checks_are_independent(&self) -> bool {
        true
    }

    fn is_exact(&self, check: &str) -> bool {
        let gold = gold_of(&self.item.loaded, self.item.basis.protocol);
        gold.is_ok_and(|gold| gold.get(check).is_some_and(GoldResult::is_exact))
    }

    fn runs(&self, check: &str) -> usize {
        let experiments = &self.paper.loaded.paper.experiments;
        experiments.iter().find(|experiment| experiment.id == check).map_or(1, runs)
    }

    fn hidden_snapshot(&self, check: &str) -> Option<&Snapshot> {
        self.paper.hidden_snapshot(check)
    }

    fn keeps_out(&self, path: &str) -> bool {
        self.guard.keeps_out(path)
    }
}
