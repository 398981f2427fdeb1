//! Several stored runs side by side: what their agents are called, and what is known of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use itertools::Itertools as _;

use super::labels::{Labelled, Labels};
use super::summary::Options;
use crate::error::{Result, with_causes};
use crate::run::reading::{Detail, Line, Reading, Readings, Tail, labels, read, read_all, read_on};
use crate::run::{AttemptRecord, Planned, RunFile, Store};
use crate::verifier::stored::{ChoiceRecord, choices};

/// Runs that are shown together. The same agent in two runs is two agents: each is labelled with its run.
#[derive(Debug)]
pub struct Merged {
    /// The runs that could be read, if only in part.
    pub runs: Vec<MergedRun>,
    /// Why the others could not, one sentence each.
    pub unread: Vec<String>,
}

/// One of them.
#[derive(Debug)]
pub struct MergedRun {
    /// Its name, or its folder where several runs have that name.
    pub name: String,
    /// What it calls itself.
    own_name: String,
    /// What stands before its agents' labels; empty for a run that is shown alone.
    prefix: String,
    /// What its agents and models are called here.
    labels: Labels,
    /// Its own names of its agents, by their labels and those of their models.
    own: BTreeMap<String, BTreeMap<Option<String>, Arc<str>>>,
    /// The greatest number of attempts that a sample has.
    most: usize,
    /// Its folder.
    pub store: Store,
    /// What it is; `None` when its `run.json` is gone or broken.
    pub run: Option<RunFile>,
    /// Its records, in the order of writing, under the labels of [`Self::label`].
    pub records: Vec<AttemptRecord>,
    /// Where each of them stands in the run's files.
    pub lines: Vec<Line>,
    /// How far these files were read.
    pub tail: Tail,
    /// What verifiers chose, under the same labels.
    pub choices: Vec<ChoiceRecord>,
    /// What is missing of it, one sentence each.
    pub notes: Vec<String>,
}

impl MergedRun {
    /// One of its agents, told apart from the same agent in other runs.
    #[must_use]
    pub fn label(&self, agent: &str) -> String {
        self.labels.agent(&self.own_name, &self.prefix, agent)
    }

    /// A label without the run's name before it.
    #[must_use]
    pub fn short<'a>(&self, label: &'a str) -> &'a str {
        label.strip_prefix(&self.prefix).unwrap_or(label)
    }

    /// A model under the name that it has here.
    #[must_use]
    pub fn model(&self, model: &str) -> String {
        self.labels.of(model)
    }

    /// What the run itself calls the agent of a record; `None` for a record of another run.
    #[must_use]
    pub fn own(&self, record: &AttemptRecord) -> Option<&Arc<str>> {
        self.own.get(&record.agent)?.get(&record.model)
    }

    /// Reads what was added to it since: its records are then the further ones alone. `false` where what was read before is
    /// not as it was.
    ///
    /// # Errors
    /// Kind `Store` when it cannot be read any more.
    pub fn read_on(&mut self, detail: Detail) -> Result<bool> {
        let tail = std::mem::take(&mut self.tail);
        let Some(reading) = read_on(self.store.folder(), detail, tail)? else { return Ok(false) };
        if reading.name() != self.own_name || reading.run.is_none() != self.run.is_none() {
            return Ok(false);
        }
        let Reading { run, records, lines, tail, notes, .. } = reading;
        (self.run, self.lines, self.tail, self.notes) = (run, lines, tail, notes);
        self.take_in(records);
        self.read_choices();
        Ok(true)
    }

    /// Takes records as its own, with the labels of agents and models that they have here.
    fn take_in(&mut self, mut records: Vec<AttemptRecord>) {
        for record in &mut records {
            let own = std::mem::take(&mut record.agent);
            record.agent = self.label(&own);
            if let Some(model) = &mut record.model
                && !self.labels.is_empty()
            {
                *model = self.labels.of(model);
            }
            self.most = self.most.max(record.attempt as usize + 1);
            if self.own(record).is_none() {
                let of_agent = self.own.entry(record.agent.clone()).or_default();
                of_agent.insert(record.model.clone(), own.into());
            }
        }
        self.records = records;
    }

    /// Reads what verifiers chose. Choices that cannot be read are told in the notes.
    fn read_choices(&mut self) {
        match choices(&self.store) {
            Ok(mut found) => {
                for choice in &mut found.records {
                    choice.agent = self.label(&choice.agent);
                    choice.model = choice.model.take().map(|model| self.model(&model));
                }
                self.choices = found.records;
                self.notes.extend(found.notes);
            }
            Err(error) => self.notes.push(with_causes(&error)),
        }
    }

    /// A sentence on it, with its name where several runs are shown.
    #[must_use]
    pub fn note(&self, note: &str) -> String {
        if self.prefix.is_empty() { note.to_owned() } else { format!("{}: {note}", self.name) }
    }

    /// The attempts that it was to make, under the labels of its records.
    pub fn planned(&self) -> impl Iterator<Item = Planned> {
        let planned = self.run.iter().flat_map(|run| &run.planned);
        planned.map(|planned| Planned {
            agent: self.label(&planned.agent),
            model: planned.model.as_deref().map(|model| self.model(model)),
            ..planned.clone()
        })
    }

    /// Attempts per sample: as many as were asked for, or the most there are where nobody says.
    fn attempts(&self) -> usize {
        self.run.as_ref().map_or_else(|| self.most.max(1), |run| run.configuration.k as usize)
    }
}

impl Merged {
    /// Reads runs as far as they can be read, and gives them the names that users chose.
    ///
    /// # Errors
    /// Kind `Store` when none of them can be read, `Usage` where names do not fit.
    pub fn read(folders: &[PathBuf], detail: Detail, names: &Labels) -> Result<Self> {
        Self::of(read_all(folders, detail)?, folders.len() > 1, names)
    }

    /// Reads runs that must all be there.
    ///
    /// # Errors
    /// Kind `Store` when one of them cannot be read, `Usage` where names do not fit.
    pub fn read_all(folders: &[PathBuf], detail: Detail, names: &Labels) -> Result<Self> {
        let readings = folders.iter().map(|folder| read(folder, detail)).collect::<Result<Vec<_>>>()?;
        Self::of(Readings { readings, notes: Vec::new() }, folders.len() > 1, names)
    }

    fn of(Readings { readings, notes }: Readings, are_several: bool, labels_here: &Labels) -> Result<Self> {
        let names = labels(&readings);
        let run = |(reading, own_name): (Reading, String)| {
            let Reading { store, run, records, lines, tail, notes } = reading;
            let name = labels_here.of(&own_name);
            let prefix = labels_here.prefix(&own_name, are_several);
            let mut merged = MergedRun {
                name,
                own_name,
                prefix,
                labels: labels_here.clone(),
                own: BTreeMap::new(),
                most: 0,
                store,
                run,
                records: Vec::new(),
                lines,
                tail,
                choices: Vec::new(),
                notes,
            };
            merged.take_in(records);
            merged
        };
        let contenders: Vec<_> = readings.iter().map(contenders).collect();
        let runs: Vec<MergedRun> = readings.into_iter().zip(names).map(run).collect();
        let labelled: Vec<_> = runs
            .iter()
            .zip(contenders)
            .map(|(run, contenders)| Labelled { run: &run.own_name, prefix: &run.prefix, contenders })
            .collect();
        labels_here.fit(&labelled)?;
        Ok(Self { runs, unread: notes })
    }

    /// The same with what verifiers chose. Choices that cannot be read are told in the notes.
    #[must_use]
    pub fn with_choices(mut self) -> Self {
        for run in &mut self.runs {
            run.read_choices();
        }
        self
    }

    /// How they are summarised together: for these k of pass@k, or those of the runs when there are none.
    #[must_use]
    pub fn options(&self, asked: &[usize]) -> Options {
        let notes = self.runs.iter().flat_map(|run| run.notes.iter().map(|note| run.note(note)));
        Options {
            ks: ks(asked, self.runs.iter().map(MergedRun::attempts)),
            planned: self.runs.iter().flat_map(MergedRun::planned).collect(),
            notes: self.unread.iter().cloned().chain(notes).collect(),
            choices: self.runs.iter().flat_map(|run| run.choices.iter().cloned()).collect(),
            ..Options::default()
        }
    }

    /// Hands over the records of all runs, one run after another.
    pub fn take_records(&mut self) -> Vec<AttemptRecord> {
        self.runs.iter_mut().flat_map(|run| std::mem::take(&mut run.records)).collect()
    }

    /// The run of a record, and what that run calls the agent.
    #[must_use]
    pub fn origin(&self, record: &AttemptRecord) -> Option<(&MergedRun, &str)> {
        self.runs.iter().find_map(|run| Some((run, &**run.own(record)?)))
    }
}

/// The agents of a run with their models, as it calls them.
fn contenders(reading: &Reading) -> BTreeSet<(String, Option<String>)> {
    let of_records = reading.records.iter().map(|record| (&record.agent, &record.model));
    let of_plan = reading.run.iter().flat_map(|run| &run.planned).map(|planned| (&planned.agent, &planned.model));
    of_records.chain(of_plan).unique().map(|(agent, model)| (agent.clone(), model.clone())).collect()
}

/// The k of pass@k: those that were asked for, in their order, or 1 and the number of attempts of each run.
#[must_use]
pub fn ks(asked: &[usize], attempts: impl IntoIterator<Item = usize>) -> Vec<usize> {
    if asked.is_empty() {
        std::iter::once(1).chain(attempts).sorted_unstable().dedup().collect()
    } else {
        asked.iter().copied().unique().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::masked;

    /// A run's folder without its `run.json`, with two attempts of one agent.
    fn run(folder: &std::path::Path) -> PathBuf {
        let record = |attempt| AttemptRecord::blank("react", &masked("x_0,3"), attempt);
        let lines: Vec<String> =
            [0, 1].iter().map(|&attempt| serde_json::to_string(&record(attempt)).unwrap() + "\n").collect();
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("attempts.jsonl"), lines.concat()).unwrap();
        folder.to_owned()
    }

    #[test]
    fn one_run_keeps_its_labels_and_several_are_told_apart_by_run() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), run(&place.path().join("b"))];
        let agents = |merged: &mut Merged| -> Vec<String> {
            merged.take_records().into_iter().map(|record| record.agent).collect()
        };
        let none = Labels::default();
        assert_eq!(agents(&mut Merged::read(&folders[..1], Detail::Outcome, &none).unwrap()), ["react"; 2]);
        let mut both = Merged::read(&folders, Detail::Outcome, &none).unwrap().with_choices();
        let options = both.options(&[]);
        assert_eq!(options.ks, [1, 2]);
        assert!(options.notes.iter().any(|note| note.starts_with("b: ")), "{:?}", options.notes);
        let last = both.runs[1].records[0].clone();
        assert_eq!(agents(&mut both), ["a/react", "a/react", "b/react", "b/react"]);
        let (origin, agent) = both.origin(&last).unwrap();
        assert_eq!((origin.name.as_str(), agent), ("b", "react"));
    }

    #[test]
    fn runs_and_agents_are_called_as_users_like_and_stay_two() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), run(&place.path().join("b"))];
        let read = |pairs: &[(&str, &str)]| {
            let given: Vec<_> = pairs.iter().map(|(old, new)| format!("{old}={new}").parse().unwrap()).collect();
            Merged::read(&folders, Detail::Outcome, &Labels::new(&given))
        };
        let mut merged = read(&[("a", "First"), ("b/react", "The second")]).unwrap();
        let agents: Vec<String> = merged.runs.iter().map(|run| run.records[0].agent.clone()).collect();
        assert_eq!(agents, ["First/react", "The second"]);
        assert_eq!(merged.runs[1].own(&merged.runs[1].records[0]).map(|own| &**own), Some("react"));
        assert!(merged.runs[1].read_on(Detail::Outcome).unwrap() && merged.runs[1].records.is_empty());
        let unknown = read(&[("nobody", "x")]).unwrap_err();
        assert!(unknown.to_string().contains("`nobody`"), "{unknown}");
        let same = read(&[("a/react", "x"), ("b/react", "x")]).unwrap_err();
        assert!(same.to_string().contains("the same name, `x`"), "{same}");
    }

    #[test]
    fn a_folder_that_is_no_run_is_left_out_unless_all_must_be_there() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), place.path().join("none")];
        let merged = Merged::read(&folders, Detail::Outcome, &Labels::default()).unwrap();
        assert_eq!((merged.runs.len(), merged.unread.len()), (1, 1));
        // It was named beside another, and is labelled so.
        assert_eq!(merged.runs[0].label("react"), "a/react");
        assert!(Merged::read_all(&folders, Detail::Outcome, &Labels::default()).is_err());
    }

    #[test]
    fn the_k_that_were_asked_for_keep_their_order() {
        assert_eq!(ks(&[5, 1, 5], [3]), [5, 1]);
        assert_eq!(ks(&[], [3, 1, 3]), [1, 3]);
    }
}
