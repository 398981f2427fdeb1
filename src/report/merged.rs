//! Several stored runs side by side: what their agents are called, and what is known of them together.

use std::path::PathBuf;

use itertools::Itertools as _;

use super::summary::Options;
use crate::error::{Result, with_causes};
use crate::run::reading::{Detail, Reading, Readings, labels, read, read_all};
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
    /// What stands before its agents' labels; empty for a run that is shown alone.
    prefix: String,
    /// Its folder.
    pub store: Store,
    /// What it is; `None` when its `run.json` is gone or broken.
    pub run: Option<RunFile>,
    /// Its records, in the order of writing, under the labels of [`Self::label`].
    pub records: Vec<AttemptRecord>,
    /// What verifiers chose, under the same labels.
    pub choices: Vec<ChoiceRecord>,
    /// What is missing of it, one sentence each.
    pub notes: Vec<String>,
}

impl MergedRun {
    /// One of its agents, told apart from the same agent in other runs.
    #[must_use]
    pub fn label(&self, agent: &str) -> String {
        format!("{}{agent}", self.prefix)
    }

    /// The agent that the run itself calls by the rest of this label; `None` for a label of another run.
    #[must_use]
    pub fn own<'a>(&self, label: &'a str) -> Option<&'a str> {
        label.strip_prefix(&self.prefix)
    }

    /// A sentence on it, with its name where several runs are shown.
    #[must_use]
    pub fn note(&self, note: &str) -> String {
        if self.prefix.is_empty() { note.to_owned() } else { format!("{}: {note}", self.name) }
    }

    /// The attempts that it was to make, under the labels of its records.
    pub fn planned(&self) -> impl Iterator<Item = Planned> {
        let planned = self.run.iter().flat_map(|run| &run.planned);
        planned.map(|planned| Planned { agent: self.label(&planned.agent), ..planned.clone() })
    }

    /// Attempts per sample: as many as were asked for, or the most there are where nobody says.
    fn attempts(&self) -> usize {
        let most = || self.records.iter().map(|record| record.attempt as usize + 1).max().unwrap_or(1);
        self.run.as_ref().map_or_else(most, |run| run.configuration.k as usize)
    }
}

impl Merged {
    /// Reads runs as far as they can be read.
    ///
    /// # Errors
    /// Kind `Store` when none of them can be read.
    pub fn read(folders: &[PathBuf], detail: Detail) -> Result<Self> {
        Ok(Self::of(read_all(folders, detail)?, folders.len() > 1))
    }

    /// Reads runs that must all be there.
    ///
    /// # Errors
    /// Kind `Store` when one of them cannot be read.
    pub fn read_all(folders: &[PathBuf], detail: Detail) -> Result<Self> {
        let readings = folders.iter().map(|folder| read(folder, detail)).collect::<Result<Vec<_>>>()?;
        Ok(Self::of(Readings { readings, notes: Vec::new() }, folders.len() > 1))
    }

    fn of(Readings { readings, notes }: Readings, are_several: bool) -> Self {
        let names = labels(&readings);
        let run = |(Reading { store, run, mut records, notes }, name): (Reading, String)| {
            let prefix = if are_several { format!("{name}/") } else { String::new() };
            for record in &mut records {
                record.agent.insert_str(0, &prefix);
            }
            MergedRun { name, prefix, store, run, records, choices: Vec::new(), notes }
        };
        Self { runs: readings.into_iter().zip(names).map(run).collect(), unread: notes }
    }

    /// The same with what verifiers chose. Choices that cannot be read are told in the notes.
    #[must_use]
    pub fn with_choices(mut self) -> Self {
        for run in &mut self.runs {
            match choices(&run.store) {
                Ok(mut found) => {
                    for choice in &mut found.records {
                        choice.agent.insert_str(0, &run.prefix);
                    }
                    run.choices = found.records;
                    run.notes.extend(found.notes);
                }
                Err(error) => run.notes.push(with_causes(&error)),
            }
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

    /// The run of a record's label, and what that run calls the agent.
    #[must_use]
    pub fn origin<'a>(&self, label: &'a str) -> Option<(&MergedRun, &'a str)> {
        let found = self.runs.iter().filter_map(|run| Some((run, run.own(label)?)));
        // One run's prefix may begin with another's: the longest is right.
        found.min_by_key(|(_, agent)| agent.len())
    }
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
        assert_eq!(agents(&mut Merged::read(&folders[..1], Detail::Outcome).unwrap()), ["react"; 2]);
        let mut both = Merged::read(&folders, Detail::Outcome).unwrap().with_choices();
        let options = both.options(&[]);
        assert_eq!(options.ks, [1, 2]);
        assert!(options.notes.iter().any(|note| note.starts_with("b: ")), "{:?}", options.notes);
        assert_eq!(agents(&mut both), ["a/react", "a/react", "b/react", "b/react"]);
        let (origin, agent) = both.origin("b/react").unwrap();
        assert_eq!((origin.name.as_str(), agent), ("b", "react"));
    }

    #[test]
    fn a_folder_that_is_no_run_is_left_out_unless_all_must_be_there() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), place.path().join("none")];
        let merged = Merged::read(&folders, Detail::Outcome).unwrap();
        assert_eq!((merged.runs.len(), merged.unread.len()), (1, 1));
        // It was named beside another, and is labelled so.
        assert_eq!(merged.runs[0].label("react"), "a/react");
        assert!(Merged::read_all(&folders, Detail::Outcome).is_err());
    }

    #[test]
    fn the_k_that_were_asked_for_keep_their_order() {
        assert_eq!(ks(&[5, 1, 5], [3]), [5, 1]);
        assert_eq!(ks(&[], [3, 1, 3]), [1, 3]);
    }
}
