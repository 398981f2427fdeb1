//! Builds [`Material`] from runs' folders, and updates it as the runs grow.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use itertools::Itertools as _;

use super::facts::{begun, run_facts};
use crate::agent::spec::labelled;
use crate::error::{Result, with_causes};
use crate::report::figures::Condition;
use crate::report::html::{Material, Origin, SampleEntry, SampleFacts, samples};
use crate::report::{Labels, Merged, MergedRun, SummaryOptions};
use crate::run::family::{Families, Item, ItemFacts, ScoringBasis, WITHHELD};
use crate::run::{RunFile, in_order, is_file_name};
use crate::sample::{MASKED, Sample};

/// An item, or the reason why it cannot be loaded.
type LoadedItem = std::result::Result<Arc<dyn Item>, String>;

/// For each family (kind of task) and item id: the item as it is in the suite of each run, by the run's index.
type ItemsOfRuns = BTreeMap<(String, String), BTreeMap<usize, LoadedItem>>;

/// Reads runs, repeatedly if needed. Papers and other items are loaded once.
pub struct RunReader {
    families: Families,
    folders: Vec<PathBuf>,
    /// Suite from which to load papers; `None` uses the suite recorded in each run.
    suite: Option<PathBuf>,
    /// The values of k for pass@k; if empty, they follow from the runs' numbers of attempts.
    ks: Vec<usize>,
    intervals: crate::stats::Intervals,
    labels: Labels,
    /// Items by suite, family (kind of task) and id.
    items: BTreeMap<(Option<PathBuf>, String, String), LoadedItem>,
}

/// The state of the runs when they were last read.
pub struct GatheredRuns {
    /// Input of the report's page.
    pub material: Material,
    pub(super) merged: Merged,
    /// The samples, in the order in which the page lists them.
    pub(super) entries: Vec<SampleEntry>,
    /// The attempted samples by id, except those whose ids cannot be parsed.
    pub(super) samples: BTreeMap<String, Sample>,
    pub(super) items: ItemsOfRuns,
    /// Items for which it is known whether they have changed since a run was started, as pairs of the run's index and
    /// the item's id.
    judged: BTreeSet<(usize, String)>,
    faults: Vec<String>,
    axes: BTreeSet<&'static str>,
}

impl GatheredRuns {
    /// Returns the time since anything was last written to the runs.
    pub(super) fn changed(&self) -> Option<std::time::Duration> {
        let files = self.merged.runs.iter().enumerate().flat_map(|(place, run)| {
            let records = run.store.record_files().unwrap_or_default();
            let under_way = self.material.begun.iter().filter(|one| one.origin.run == place);
            let under_way = under_way.map(|one| run.store.trajectory(&one.origin.agent, &one.sample, one.attempt));
            records.into_iter().chain(under_way).chain([run.store.folder().join("run.json")]).collect::<Vec<_>>()
        });
        let times = files.filter_map(|path| path.metadata().ok()?.modified().ok()?.elapsed().ok());
        times.min()
    }

    /// Whether new records repeat attempts that already have a record in the same run. Then the run must be read again:
    /// only all of its records together decide which record of an attempt is used for rates. Always false for a run
    /// with a single record file.
    fn has_doubles(&self) -> bool {
        self.merged.runs.iter().enumerate().any(|(place, run)| {
            if run.tail.files() < 2 || run.records.is_empty() {
                return false;
            }
            let known = self.material.records.iter().zip(&self.material.origins);
            let known = known.filter(|(_, origin)| origin.run == place).map(|(record, _)| record);
            let mut seen = HashSet::new();
            known
                .chain(&run.records)
                .filter(|record| !record.is_infrastructure())
                .any(|record| !seen.insert((&*record.agent, record.model.as_deref(), &*record.sample, record.attempt)))
        })
    }
}

impl RunReader {
    /// Creates a reader of these runs' folders.
    #[must_use]
    pub fn new(
        families: Families,
        folders: Vec<PathBuf>,
        suite: Option<PathBuf>,
        ks: Vec<usize>,
        intervals: crate::stats::Intervals,
    ) -> Self {
        Self { families, folders, suite, ks, intervals, labels: Labels::default(), items: BTreeMap::new() }
    }

    /// Sets the labels of runs, agents and models.
    #[must_use]
    pub fn labelled(self, labels: Labels) -> Self {
        Self { labels, ..self }
    }

    /// Returns a digest that changes whenever the input of [`Self::gather`] changes. It does not change when an attempt
    /// in progress adds an event to its trajectory.
    #[must_use]
    pub fn stamp(&self) -> String {
        use sha2::{Digest, Sha256};
        let mut hash = Sha256::new();
        for folder in &self.folders {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            files.sort();
            for path in files {
                let is_jsonl = path.extension().is_some_and(|extension| extension == "jsonl");
                if (is_jsonl || path.ends_with("run.json"))
                    && let Ok(facts) = path.metadata()
                {
                    hash.update(format!("{} {} {:?}\n", path.display(), facts.len(), facts.modified().ok()));
                }
            }
            let trajectories = walkdir::WalkDir::new(folder.join("trajectories")).min_depth(2);
            hash.update(trajectories.into_iter().flatten().count().to_le_bytes());
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hash.finalize()[..16]);
        format!("{:032x}", u128::from_be_bytes(first))
    }

    /// Reads everything except trajectories. Only what lists and rates need is kept in memory; the rest of a record is
    /// read when its sample is shown.
    ///
    /// # Errors
    /// Kind `Store` if no run can be read, `Usage` if [`Labels::fit`] rejects the labels.
    pub fn gather(&mut self) -> Result<GatheredRuns> {
        let mut gathered = GatheredRuns {
            material: Material::default(),
            merged: Merged::read(&self.folders, &self.labels)?.with_choices(),
            entries: Vec::new(),
            samples: BTreeMap::new(),
            items: BTreeMap::new(),
            judged: BTreeSet::new(),
            faults: Vec::new(),
            axes: BTreeSet::new(),
        };
        self.take_in(&mut gathered);
        Ok(gathered)
    }

    /// Adds new records to `gathered`. Returns `false` if everything has to be read again, for example because earlier
    /// contents have changed.
    ///
    /// # Errors
    /// Kind `Store` if a run can no longer be read.
    pub(super) fn read_on(&mut self, gathered: &mut GatheredRuns) -> Result<bool> {
        if !gathered.merged.unread.is_empty() {
            return Ok(false);
        }
        for run in &mut gathered.merged.runs {
            if !run.read_on()? {
                return Ok(false);
            }
        }
        if gathered.has_doubles() {
            return Ok(false);
        }
        self.take_in(gathered);
        Ok(true)
    }

    /// Adds the newly read records to `material`, the page's input, and computes the rest of `material` again.
    fn take_in(&mut self, gathered: &mut GatheredRuns) {
        let mut options = gathered.merged.options(&self.ks);
        // Add k = 1, because the page's overview always shows pass@1.
        options.ks.push(1);
        options.ks.sort_unstable();
        options.ks.dedup();
        let mut notes = std::mem::take(&mut options.notes);
        gathered.material.options = SummaryOptions { intervals: self.intervals, ..options };
        gathered.material.runs.clear();
        gathered.material.begun.clear();
        let mut runs = std::mem::take(&mut gathered.merged.runs);
        for (place, one) in runs.iter_mut().enumerate() {
            gathered.material.runs.push(run_facts(&one.name, one.store.folder(), one.run.as_ref()));
            let from = gathered.material.records.len();
            take_records(one, place, &mut gathered.material);
            let (begun, note) = begun(one, place, &gathered.material);
            let family = one.run.as_ref().map_or(MASKED, |run| &run.configuration.family);
            let fresh = gathered.material.records[from..].iter();
            let tried = fresh.map(|record| (&*record.family, &*record.sample));
            let tried = tried.chain(begun.iter().map(|begun| (family, begun.sample.as_str())));
            // Include samples that another run already has, because `facts_of` also checks for each run whether the
            // samples' items have changed since that run was started.
            let tried: BTreeSet<(&str, &str)> = tried.collect();
            let tried: Vec<Sample> = tried.into_iter().filter_map(|(family, id)| self.sample(family, id)).collect();
            for sample in tried {
                self.facts_of((place, one.run.as_ref()), &sample, gathered);
                gathered.samples.insert(sample.id().to_owned(), sample);
            }
            gathered.material.begun.extend(begun);
            notes.extend(note.map(|note| one.note(&note)));
        }
        if runs.iter().any(|run| run.tail.files() > 1) && !gathered.entries.is_empty() {
            in_order(&mut gathered.material.records, &mut gathered.material.origins);
        }
        notes.extend(gathered.faults.iter().cloned());
        let families = gathered.material.records.iter().map(|record| &*record.family);
        if let Some(words) = self.families.words(families) {
            gathered.material.options.intervals.group = words.group;
        }
        let families: BTreeSet<&str> = gathered.material.records.iter().map(|record| &*record.family).collect();
        let families = families.into_iter().filter_map(|name| self.families.get(name).ok());
        gathered.material.measures = families.flat_map(|family| family.measures()).copied().unique().collect();
        let one = gathered.axes.first().filter(|_| gathered.axes.len() == 1);
        one.copied().unwrap_or(WITHHELD).clone_into(&mut gathered.material.axis);
        gathered.material.title = match runs.as_slice() {
            [one] => format!("Run {}", one.name),
            several => format!("Runs {}", several.iter().map(|run| &run.name).join(", ")),
        };
        gathered.material.notes = notes;
        gathered.merged.runs = runs;
        gathered.entries = samples(&gathered.material);
    }

    fn sample(&self, family: &str, id: &str) -> Option<Sample> {
        self.families.get(family).ok()?.sample(id).ok()
    }

    /// Adds what the page shows about a sample and its item. Loads the item if it has not been loaded yet.
    fn facts_of(&mut self, (place, run): (usize, Option<&RunFile>), sample: &Sample, gathered: &mut GatheredRuns) {
        let Ok(family) = self.families.get(sample.family()) else { return };
        let item = sample.item().to_owned();
        let is_known = gathered.samples.contains_key(sample.id());
        let is_judged = !gathered.judged.insert((place, item.clone()));
        if is_known && is_judged {
            return;
        }
        let root = self.suite.clone().or_else(|| run.map(|run| run.configuration.suite.clone()));
        let basis = run.map(|run| ScoringBasis::from(&run.configuration)).unwrap_or_default();
        let load = || match &root {
            Some(root) if is_file_name(&item) => family.load(root, &item, basis).map_err(|error| with_causes(&error)),
            Some(_) => Err("its name is not a valid folder name".to_owned()),
            None => Err("the suite's folder is unknown; give it with `--suite DIR`".to_owned()),
        };
        let key = (root.clone(), sample.family().to_owned(), item.clone());
        let known = self.items.entry(key).or_insert_with(load).clone();
        let of_runs = gathered.items.entry((sample.family().to_owned(), item.clone())).or_default();
        of_runs.insert(place, known.clone());
        let shown = of_runs.iter().find_map(|(run, item)| Some((*run, item.as_ref().ok()?.clone())));
        let material = &mut gathered.material;
        if !is_known {
            let units = family.withheld(sample).map(|withheld| withheld.units).unwrap_or_default();
            // Ask the item for names only if a unit (such as a function) that this sample withholds has no name yet.
            // The first few samples usually cover all units of an item.
            let names = material.units.entry(item.clone()).or_default();
            if let Ok(known) = &known
                && units.iter().any(|place| !names.contains_key(place))
                && let Ok(listed) = known.listed(sample)
            {
                names.extend(units.iter().copied().zip(listed.units));
            }
            gathered.axes.insert(family.axis());
            let (cluster, n, extent) = (sample.cluster().to_owned(), sample.n(), family.extent(sample.n()));
            let facts = SampleFacts { item: item.clone(), cluster, n, extent, units };
            material.samples.insert(sample.id().to_owned(), facts);
        }
        if is_judged {
            return;
        }
        let name = |run: usize| material.runs[run].name.as_str();
        let problem = match (&known, &shown) {
            (Ok(known), _) if has_changed(known.as_ref(), run) => {
                Some(format!("`{item}` has changed since the run was started; it is shown as it is now"))
            }
            (Ok(known), Some((first, shown))) => (shown.digest() != known.digest()).then(|| {
                format!("`{item}` differs between the suites of the runs; it is shown as in that of `{}`", name(*first))
            }),
            (Ok(_), None) => None,
            (Err(why), Some(_)) => Some(unreadable(&item, why, Some(name(place)))),
            (Err(why), None) => Some(unreadable(&item, why, None)),
        };
        gathered.faults.extend(problem.clone());
        let mut former = None;
        if shown.is_none_or(|(run, _)| run == place) {
            let unknown = || ItemFacts { title: item.clone(), ..ItemFacts::default() };
            // Earlier runs may have reported that the item is not shown. Now it is shown, as this run's suite has it.
            if known.is_ok() {
                for (run, why) in of_runs.range(..place).filter_map(|(run, item)| Some((*run, item.as_ref().err()?))) {
                    let told = unreadable(&item, why, None);
                    if let Some(fault) = gathered.faults.iter_mut().find(|fault| **fault == told) {
                        *fault = unreadable(&item, why, Some(name(run)));
                        former = Some(fault.clone());
                    }
                }
            }
            material.papers.insert(item.clone(), known.map_or_else(|_| unknown(), |known| known.facts()));
        }
        if let (Some(facts), Some(problem)) = (material.papers.get_mut(&item), problem.or(former)) {
            facts.problem = Some(problem);
        }
    }
}

/// Describes the problem that an item cannot be read: in the suite of `run` or, without `run`, in the suite of any run,
/// so that the item is not shown.
fn unreadable(item: &str, why: &str, run: Option<&str>) -> String {
    match run {
        Some(run) => format!("`{item}` cannot be read in the suite of `{run}`: {why}"),
        None => format!("`{item}` cannot be read, so its text and parts are not shown: {why}"),
    }
}

/// Whether an item is not the same as when this run was started.
fn has_changed(item: &dyn Item, run: Option<&RunFile>) -> bool {
    run.and_then(|run| run.digests.papers.get(item.id())).is_some_and(|then| *then != item.digest())
}

/// Moves a run's records into `material`. Also stores where each record comes from, and the settings of the agents.
fn take_records(run: &mut MergedRun, place: usize, material: &mut Material) {
    if let Some(file) = &run.run {
        let set = &file.configuration;
        for (name, agent) in labelled(&set.agents, &set.settings) {
            let condition = Condition::from_settings(&name, agent, &set.settings, set.limits.steps);
            material.conditions.insert(run.label(&name), condition);
        }
    }
    // Runs of earlier versions may use agent labels that the configuration does not produce. For such agents, only the
    // step limit is known.
    let steps = run.run.as_ref().map(|run| run.configuration.limits.steps);
    for (record, line) in std::mem::take(&mut run.records).into_iter().zip(std::mem::take(&mut run.lines)) {
        let agent = run.own(&record).cloned().unwrap_or_else(|| record.agent.clone());
        if !material.agents.contains_key(&*record.agent) {
            material.agents.insert(record.agent.to_string(), run.short(&record.agent).to_owned());
        }
        if !material.conditions.contains_key(&*record.agent) {
            let unknown = Condition { base: agent.to_string(), steps, ..Condition::default() };
            material.conditions.insert(record.agent.to_string(), unknown);
        }
        material.origins.push(Origin { run: place, agent, line: Some(line) });
        material.records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::stats::Intervals;

    #[test]
    fn a_changed_file_is_noticed_even_if_the_clock_runs_behind_file_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attempts.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let reader =
            RunReader::new(Families::none(), vec![folder.path().to_owned()], None, Vec::new(), Intervals::default());
        let at = |hours: u64| {
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_hours(hours)).unwrap();
            reader.stamp()
        };
        assert_ne!(at(1), at(2));
    }
}
