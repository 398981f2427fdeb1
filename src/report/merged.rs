//! Several stored runs combined: labels of their agents and their merged records.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use itertools::Itertools as _;

use super::comparability::{Incomparable, changes_warning};
use super::curriculum::CurriculumRun;
use super::labels::{Labelled, Labels};
use super::summary::SummaryOptions;
use crate::error::{Result, with_causes};
use crate::run::reading::{LinePosition, ReadableRun, ReadableRuns, Tail, labels, read_all, read_on, read_outcomes};
use crate::run::{Outcome, PlannedAttempts, RunFile, Store};
use crate::verifier::stored::{ChoiceRecord, choices};

/// The labels of an agent and of its model.
type AgentAndModel = (Arc<str>, Option<Arc<str>>);

/// Runs that are reported together. The same agent in two runs counts as two agents, each labelled with its run.
#[derive(Debug)]
pub struct Merged {
    /// Runs that could be read, completely or in part.
    pub runs: Vec<MergedRun>,
    /// Reasons why the other runs could not be read, one sentence each.
    pub unread: Vec<String>,
}

/// One of the combined runs.
#[derive(Debug)]
pub struct MergedRun {
    /// The run's name in reports: a user's label for it, else its own name, else (if several runs have that name) its
    /// folder.
    pub name: String,
    /// The run's own name, without a user's label, or its folder if several runs have that name.
    own_name: String,
    /// Prefix of the labels of the run's agents; empty if only one run was requested.
    prefix: String,
    /// User-chosen labels of the run's agents and models.
    labels: Labels,
    /// Original names of each agent and its model. The key is the pair of names that the report shows.
    own: BTreeMap<AgentAndModel, AgentAndModel>,
    /// The largest number of attempts at any sample.
    most: usize,
    /// The run's folder.
    pub store: Store,
    /// The contents of `run.json`; `None` if the file is missing or broken.
    pub run: Option<RunFile>,
    /// Records in the order of [`ReadableRun::records`], with the labels of [`Self::label`].
    pub records: Vec<Outcome>,
    /// Position of each record in the run's files.
    pub lines: Vec<LinePosition>,
    /// Position up to which the files have been read.
    pub tail: Tail,
    /// Which attempts the verifiers chose, with the same labels of agents and models as the records.
    pub choices: Vec<ChoiceRecord>,
    /// Sentences about what is missing.
    pub notes: Vec<String>,
}

impl MergedRun {
    /// Returns the label of one of the run's agents, which is unique among all combined runs.
    #[must_use]
    pub fn label(&self, agent: &str) -> String {
        self.labels.agent(&self.own_name, &self.prefix, agent)
    }

    /// Removes the run's prefix from a label.
    #[must_use]
    pub fn short<'a>(&self, label: &'a str) -> &'a str {
        label.strip_prefix(&self.prefix).unwrap_or(label)
    }

    /// Returns the label of a model.
    #[must_use]
    pub fn model(&self, model: &str) -> String {
        self.labels.renamed(model)
    }

    /// Returns the original name of a record's agent; `None` for a record of another run.
    #[must_use]
    pub fn own(&self, record: &Outcome) -> Option<&Arc<str>> {
        self.own.get(&(record.agent.clone(), record.model.clone())).map(|(agent, _)| agent)
    }

    /// Returns the original name of a model. `agent` and `model` are the labels that the report shows.
    fn own_model(&self, agent: &str, model: &str) -> Option<&str> {
        let mut labels = self.own.iter();
        let (_, own) =
            labels.find(|((its_agent, its_model), _)| **its_agent == *agent && its_model.as_deref() == Some(model))?;
        own.1.as_deref()
    }

    /// Reads the records added to the run since the last read. Afterwards, `records` contains only the new records.
    /// Returns `false` if everything must be read again, because the part read earlier or the run's name has changed,
    /// or `run.json` has appeared or disappeared.
    ///
    /// # Errors
    /// Kind `Store` if the run can no longer be read.
    pub fn read_on(&mut self) -> Result<bool> {
        let tail = std::mem::take(&mut self.tail);
        let Some(reading) = read_on(self.store.folder(), tail)? else { return Ok(false) };
        if reading.name() != self.own_name || reading.run.is_none() != self.run.is_none() {
            return Ok(false);
        }
        let ReadableRun { run, records, lines, tail, notes, .. } = reading;
        (self.run, self.lines, self.tail, self.notes) = (run, lines, tail, notes);
        self.take_in(records);
        self.read_choices();
        Ok(true)
    }

    /// Stores records under the labels of their agents and models.
    fn take_in(&mut self, mut records: Vec<Outcome>) {
        // Labels of agent and model by their original names. Records with the same names share the strings of the
        // labels.
        let mut labelled: HashMap<AgentAndModel, AgentAndModel> = HashMap::new();
        for record in &mut records {
            self.most = self.most.max(record.attempt as usize + 1);
            let names = (record.agent.clone(), record.model.clone());
            let labels = match labelled.get(&names) {
                Some(labels) => labels.clone(),
                None => {
                    let (agent, model) = &names;
                    let model = model.as_deref().map(|model| self.labels.renamed(model).into());
                    let labels = (self.label(agent).into(), model);
                    self.own.entry(labels.clone()).or_insert_with(|| names.clone());
                    labelled.insert(names, labels.clone());
                    labels
                }
            };
            (record.agent, record.model) = labels;
        }
        self.records = records;
    }

    /// Reads which attempts the verifiers chose. If this cannot be read, a note says so.
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

    /// Prefixes a note with the run's name if several runs were requested.
    #[must_use]
    pub fn note(&self, note: &str) -> String {
        if self.prefix.is_empty() { note.to_owned() } else { format!("{}: {note}", self.name) }
    }

    /// The run's curriculum (the settings by which it adapts the difficulty of episodes to the success rate), if it has
    /// one.
    fn curriculum(&self) -> Option<CurriculumRun> {
        let settings = self.run.as_ref()?.configuration.serving.as_ref()?.curriculum?;
        Some(CurriculumRun { run: self.name.clone(), labels: self.own.keys().cloned().collect(), settings })
    }

    /// The run's planned attempts, with the same labels of agents and models as the records.
    pub fn planned(&self) -> impl Iterator<Item = PlannedAttempts> {
        let planned = self.run.iter().flat_map(|run| &run.planned);
        planned.map(|planned| PlannedAttempts {
            agent: self.label(&planned.agent),
            model: planned.model.as_deref().map(|model| self.model(model)),
            ..planned.clone()
        })
    }

    /// Attempts per sample: the configured number or, if unknown, the largest number found.
    fn attempts(&self) -> usize {
        self.run.as_ref().map_or_else(|| self.most.max(1), |run| run.configuration.k as usize)
    }
}

impl Merged {
    /// Reads and labels the runs that can be read.
    ///
    /// # Errors
    /// Kind `Store` if no run can be read, `Usage` if [`Labels::fit`] rejects the labels.
    pub fn read(folders: &[PathBuf], names: &Labels) -> Result<Self> {
        Self::combine(read_all(folders)?, folders.len() > 1, names)
    }

    /// Reads runs, all of which must be readable.
    ///
    /// # Errors
    /// Kind `Store` if any run can't be read, `Usage` if [`Labels::fit`] rejects the labels.
    pub fn read_all(folders: &[PathBuf], names: &Labels) -> Result<Self> {
        let readings = folders.iter().map(|folder| read_outcomes(folder)).collect::<Result<Vec<_>>>()?;
        Self::combine(ReadableRuns { readings, notes: Vec::new() }, folders.len() > 1, names)
    }

    fn combine(
        ReadableRuns { readings, notes }: ReadableRuns,
        are_several: bool,
        labels_here: &Labels,
    ) -> Result<Self> {
        let names = labels(&readings);
        let run = |(reading, own_name): (ReadableRun, String)| {
            let ReadableRun { store, run, records, lines, tail, notes } = reading;
            let name = labels_here.renamed(&own_name);
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

    /// Adds which attempts the verifiers chose. If this cannot be read, a note says so.
    #[must_use]
    pub fn with_choices(mut self) -> Self {
        for run in &mut self.runs {
            run.read_choices();
        }
        self
    }

    /// Options for summarising the runs together. The values of k in pass@k are those in `asked`. If `asked` is empty,
    /// they are 1 and each run's number of attempts per sample. The notes begin with warnings if the runs scored their
    /// attempts under different conditions, or if the conditions changed during a run.
    #[must_use]
    pub fn options(&self, asked: &[usize]) -> SummaryOptions {
        let notes = self.runs.iter().flat_map(|run| run.notes.iter().map(|note| run.note(note)));
        let runs: Vec<_> = self.runs.iter().map(|run| (run.name.as_str(), run.run.as_ref())).collect();
        let changed = runs.iter().filter_map(|(name, run)| changes_warning(name, (*run)?));
        let warnings = Incomparable::new(&runs).warning().into_iter().chain(changed);
        SummaryOptions {
            ks: ks(asked, self.runs.iter().map(MergedRun::attempts)),
            planned: self.runs.iter().flat_map(MergedRun::planned).collect(),
            notes: warnings.chain(self.unread.iter().cloned()).chain(notes).collect(),
            choices: self.runs.iter().flat_map(|run| run.choices.iter().cloned()).collect(),
            curricula: self.runs.iter().filter_map(MergedRun::curriculum).collect(),
            ..SummaryOptions::default()
        }
    }

    /// Removes and returns the records of all runs, one run after another.
    pub fn take_records(&mut self) -> Vec<Outcome> {
        self.runs.iter_mut().flat_map(|run| std::mem::take(&mut run.records)).collect()
    }

    /// Returns the original name of a model. `agent` and `model` are the labels that the report shows; `None` if no run
    /// has both.
    #[must_use]
    pub fn own_model(&self, agent: &str, model: &str) -> Option<&str> {
        self.runs.iter().find_map(|run| run.own_model(agent, model))
    }

    /// Returns a record's run, and the agent's original name in it.
    #[must_use]
    pub fn origin(&self, record: &Outcome) -> Option<(&MergedRun, &str)> {
        self.runs.iter().find_map(|run| Some((run, &**run.own(record)?)))
    }
}

/// Returns the names that a run itself uses for its agents and models, before users' labels replace them.
fn contenders(reading: &ReadableRun) -> BTreeSet<(String, Option<String>)> {
    let of_records = reading.records.iter().map(|record| (&*record.agent, record.model.as_deref()));
    let planned = reading.run.iter().flat_map(|run| &run.planned);
    let of_plan = planned.map(|planned| (planned.agent.as_str(), planned.model.as_deref()));
    of_records.chain(of_plan).unique().map(|(agent, model)| (agent.to_owned(), model.map(str::to_owned))).collect()
}

/// The values of k in pass@k: the requested values, in their order, or else 1 and each run's number of attempts per
/// sample.
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
    use crate::run::SessionFacts;
    use crate::sample::masked;

    /// Creates a run's folder without `run.json`, with two attempts of one agent.
    fn run(folder: &std::path::Path) -> PathBuf {
        let record = |attempt| Outcome::blank("react", &masked("x_0,3"), attempt);
        let lines: Vec<String> =
            [0, 1].iter().map(|&attempt| serde_json::to_string(&record(attempt)).unwrap() + "\n").collect();
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("attempts.jsonl"), lines.concat()).unwrap();
        folder.to_owned()
    }

    #[test]
    fn agent_labels_begin_with_the_name_of_their_run_only_if_several_runs_are_merged() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), run(&place.path().join("b"))];
        let agents = |merged: &mut Merged| -> Vec<String> {
            merged.take_records().into_iter().map(|record| record.agent.to_string()).collect()
        };
        let none = Labels::default();
        assert_eq!(agents(&mut Merged::read(&folders[..1], &none).unwrap()), ["react"; 2]);
        let mut both = Merged::read(&folders, &none).unwrap().with_choices();
        let options = both.options(&[]);
        assert_eq!(options.ks, [1, 2]);
        assert!(options.notes.iter().any(|note| note.starts_with("b: ")), "{:?}", options.notes);
        let last = both.runs[1].records[0].clone();
        assert_eq!(agents(&mut both), ["a/react", "a/react", "b/react", "b/react"]);
        let (origin, agent) = both.origin(&last).unwrap();
        assert_eq!((origin.name.as_str(), agent), ("b", "react"));
    }

    #[test]
    fn labels_rename_runs_and_agents_and_keep_them_distinct() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), run(&place.path().join("b"))];
        let read = |pairs: &[(&str, &str)]| {
            let given: Vec<_> = pairs.iter().map(|(old, new)| format!("{old}={new}").parse().unwrap()).collect();
            Merged::read(&folders, &Labels::new(&given))
        };
        let mut merged = read(&[("a", "First"), ("b/react", "The second")]).unwrap();
        let agents: Vec<String> = merged.runs.iter().map(|run| run.records[0].agent.to_string()).collect();
        assert_eq!(agents, ["First/react", "The second"]);
        assert_eq!(merged.runs[1].own(&merged.runs[1].records[0]).map(|own| &**own), Some("react"));
        assert!(merged.runs[1].read_on().unwrap() && merged.runs[1].records.is_empty());
        let unknown = read(&[("nobody", "x")]).unwrap_err();
        assert!(unknown.to_string().contains("`nobody`"), "{unknown}");
        let same = read(&[("a/react", "x"), ("b/react", "x")]).unwrap_err();
        assert!(same.to_string().contains("the same name, `x`"), "{same}");
    }

    #[test]
    fn a_renamed_models_original_name_is_known() {
        let place = tempfile::tempdir().unwrap();
        let record = Outcome { model: Some("gpt-4o".into()), ..Outcome::blank("react", &masked("x_0"), 0) };
        std::fs::write(place.path().join("attempts.jsonl"), serde_json::to_string(&record).unwrap() + "\n").unwrap();
        let labels = Labels::new(&["gpt-4o=Mine".parse().unwrap()]);
        let mut merged = Merged::read(&[place.path().to_owned()], &labels).unwrap();
        assert_eq!(merged.take_records()[0].model.as_deref(), Some("Mine"));
        assert_eq!(merged.own_model("react", "Mine"), Some("gpt-4o"));
        assert_eq!((merged.own_model("react", "gpt-4o"), merged.own_model("other", "Mine")), (None, None));
    }

    #[test]
    fn runs_without_run_files_have_a_warning_only_if_there_are_several() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), run(&place.path().join("b"))];
        let warned = |folders: &[PathBuf]| {
            let options = Merged::read(folders, &Labels::default()).unwrap().options(&[]);
            options.notes.iter().any(|note| note.starts_with("WARNING ") && note.contains("`a` and `b`"))
        };
        assert!(warned(&folders) && !warned(&folders[..1]));
    }

    #[test]
    fn each_run_that_was_continued_over_a_changed_suite_has_a_warning() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), run(&place.path().join("b"))];
        let mut changed = SessionFacts::blank();
        changed.differences.push("the repo of `x` has changed since the run was started".to_owned());
        for (folder, name, session) in [(&folders[0], "a", SessionFacts::blank()), (&folders[1], "b", changed)] {
            Store::at(folder).save_run(&RunFile::blank(name, vec![session])).unwrap();
        }
        let warnings = |folders: &[PathBuf]| -> Vec<String> {
            let notes = Merged::read(folders, &Labels::default()).unwrap().options(&[]).notes;
            notes.into_iter().filter(|note| note.starts_with("WARNING ")).collect()
        };
        assert!(warnings(&folders[..1]).is_empty());
        for folders in [&folders[..], &folders[1..]] {
            let found = warnings(folders);
            assert!(found.len() == 1 && found[0].starts_with("WARNING run `b` "), "{found:?}");
            assert!(found[0].ends_with(": the repo of `x` has changed since the run was started"), "{found:?}");
        }
    }

    #[test]
    fn a_folder_without_a_run_is_left_out_by_read_and_refused_by_read_all() {
        let place = tempfile::tempdir().unwrap();
        let folders = [run(&place.path().join("a")), place.path().join("none")];
        let merged = Merged::read(&folders, &Labels::default()).unwrap();
        assert_eq!((merged.runs.len(), merged.unread.len()), (1, 1));
        // Two runs were requested, so the label contains the run's name, although only one run could be read.
        assert_eq!(merged.runs[0].label("react"), "a/react");
        assert!(Merged::read_all(&folders, &Labels::default()).is_err());
    }

    #[test]
    fn requested_values_of_k_keep_their_order() {
        assert_eq!(ks(&[5, 1, 5], [3]), [5, 1]);
        assert_eq!(ks(&[], [3, 1, 3]), [1, 3]);
    }
}
