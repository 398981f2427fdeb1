//! From folders to [`Material`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use itertools::Itertools as _;

use crate::agent::spec::labelled;
use crate::error::{Result, with_causes};
use crate::report::figures::Condition;
use crate::report::html::{Begun, Material, Origin, RunFacts, SampleFacts};
use crate::report::{Merged, MergedRun, Options};
use crate::run::family::{Basis, Families, Item, ItemFacts, WITHHELD};
use crate::run::reading::Detail;
use crate::run::{RunFile, Store, StoredTrajectory, is_file_name};
use crate::sample::{MASKED, Sample};

/// What is known of items, by family and id: themselves, or why they cannot be read.
type Items = BTreeMap<(String, String), std::result::Result<Arc<dyn Item>, String>>;

/// Reads some runs, as often as one likes. Papers and other items are read once.
pub struct Reader {
    families: Families,
    folders: Vec<PathBuf>,
    /// Where papers are looked for; each run says where its own were when this is `None`.
    suite: Option<PathBuf>,
    /// The k of pass@k; from the runs when empty.
    ks: Vec<usize>,
    intervals: crate::stats::Intervals,
    items: Items,
}

/// Runs as they were when they were read.
pub struct Gathered {
    /// What the page is made of.
    pub material: Material,
    pub(super) stores: Vec<Store>,
    /// The samples that were tried, by id, as far as their family can read them.
    pub(super) samples: BTreeMap<String, Sample>,
    pub(super) items: Items,
}

impl Gathered {
    /// How long ago anything was last written to the runs.
    pub(super) fn changed(&self) -> Option<std::time::Duration> {
        let files = self.stores.iter().flat_map(|store| {
            let records = store.record_files().unwrap_or_default();
            let under_way =
                self.material.begun.iter().map(|one| store.trajectory(&one.origin.agent, &one.sample, one.attempt));
            records.into_iter().chain(under_way).chain([store.folder().join("run.json")]).collect::<Vec<_>>()
        });
        let times = files.filter_map(|path| path.metadata().ok()?.modified().ok()?.elapsed().ok());
        times.min()
    }
}

impl Reader {
    /// For these runs' folders.
    #[must_use]
    pub const fn new(
        families: Families,
        folders: Vec<PathBuf>,
        suite: Option<PathBuf>,
        ks: Vec<usize>,
        intervals: crate::stats::Intervals,
    ) -> Self {
        Self { families, folders, suite, ks, intervals, items: BTreeMap::new() }
    }

    /// Changes whenever what [`Self::gather`] reads does, though not with every event of an attempt under way.
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

    /// Reads everything but the trajectories.
    ///
    /// # Errors
    /// Kind `Store` when none of the runs can be read.
    pub fn gather(&mut self) -> Result<Gathered> {
        let mut merged = Merged::read(&self.folders, Detail::Whole)?.with_choices();
        let mut options = merged.options(&self.ks);
        // The overview's own figures are of pass@1, whatever else was asked for.
        options.ks.push(1);
        options.ks.sort_unstable();
        options.ks.dedup();
        let notes = std::mem::take(&mut options.notes);
        let mut material =
            Material { options: Options { intervals: self.intervals, ..options }, notes, ..Material::default() };
        let (mut samples, mut axes) = (BTreeMap::new(), BTreeSet::new());
        for (place, one) in merged.runs.iter().enumerate() {
            let (run, records) = (one.run.as_ref(), &one.records);
            material.runs.push(run_facts(&one.name, one.store.folder(), run));
            if let Some(run) = run {
                let set = &run.configuration;
                for (name, agent) in labelled(&set.agents, &set.settings) {
                    let condition = Condition::of(&name, agent, &set.settings, set.limits.steps);
                    material.conditions.insert(one.label(&name), condition);
                }
            }
            // A run from before agents were labelled so still says what it calls them.
            let steps = run.map(|run| run.configuration.limits.steps);
            for record in records {
                let agent = one.own(&record.agent).unwrap_or(&record.agent).to_owned();
                let unknown = || Condition { base: agent.clone(), steps, ..Condition::default() };
                material.conditions.entry(record.agent.clone()).or_insert_with(unknown);
                material.origins.push(Origin { run: place, agent });
            }
            let (begun, note) = begun(one, place);
            let family = run.map_or(MASKED, |run| &run.configuration.family);
            let tried = records.iter().map(|record| (record.family.as_str(), record.sample.as_str()));
            let tried: BTreeSet<(&str, &str)> =
                tried.chain(begun.iter().map(|begun| (family, begun.sample.as_str()))).collect();
            let tried: Vec<Sample> = tried.into_iter().filter_map(|(family, id)| self.sample(family, id)).collect();
            self.facts_of(run, &tried, &mut axes, &mut material);
            samples.extend(tried.into_iter().map(|sample| (sample.id().to_owned(), sample)));
            material.begun.extend(begun);
            material.notes.extend(note.map(|note| one.note(&note)));
        }
        material.records = merged.take_records();
        let one = axes.first().filter(|_| axes.len() == 1);
        one.copied().unwrap_or(WITHHELD).clone_into(&mut material.axis);
        material.title = match merged.runs.as_slice() {
            [one] => format!("Run {}", one.name),
            several => format!("Runs {}", several.iter().map(|run| &run.name).join(", ")),
        };
        let stores = merged.runs.into_iter().map(|run| run.store).collect();
        Ok(Gathered { material, stores, samples, items: self.items.clone() })
    }

    fn sample(&self, family: &str, id: &str) -> Option<Sample> {
        self.families.get(family).ok()?.sample(id).ok()
    }

    /// The facts of samples and of their items, which are loaded unless they are already.
    fn facts_of(
        &mut self,
        run: Option<&RunFile>,
        tried: &[Sample],
        axes: &mut BTreeSet<&'static str>,
        material: &mut Material,
    ) {
        let root = self.suite.clone().or_else(|| run.map(|run| run.configuration.suite.clone()));
        let basis = run.map(|run| Basis::from(&run.configuration)).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for sample in tried {
            let Ok(family) = self.families.get(sample.family()) else { continue };
            let (item, cluster) = (sample.item().to_owned(), sample.cluster().to_owned());
            let extent = family.extent(sample.n());
            axes.insert(family.axis());
            material
                .samples
                .insert(sample.id().to_owned(), SampleFacts { item: item.clone(), cluster, n: sample.n(), extent });
            if !seen.insert(item.clone()) {
                continue;
            }
            let known = self.items.entry((sample.family().to_owned(), item.clone())).or_insert_with(|| match &root {
                Some(root) if is_file_name(&item) => {
                    family.load(root, &item, basis).map_err(|error| with_causes(&error))
                }
                Some(_) => Err("its name is no folder's".to_owned()),
                None => Err("nobody says where the suite is; name it with `--suite DIR`".to_owned()),
            });
            let mut facts = match known {
                Ok(known) => known.facts(),
                Err(why) => {
                    let note = format!("paper `{item}` cannot be read, so its text and functions are not shown: {why}");
                    material.notes.push(note.clone());
                    ItemFacts { title: item.clone(), problem: Some(note), ..ItemFacts::default() }
                }
            };
            if let (Ok(known), Some(then)) = (&*known, run.and_then(|run| run.digests.papers.get(&item)))
                && *then != known.digest()
            {
                let note = format!("paper `{item}` has changed since the run was started; it is shown as it is now");
                material.notes.push(note.clone());
                facts.problem = Some(note);
            }
            material.papers.insert(item, facts);
        }
    }
}

/// A run's settings and its history, for reading.
fn run_facts(name: &str, folder: &Path, run: Option<&RunFile>) -> RunFacts {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut say = |what: &str, value: String| facts.push((what.to_owned(), value));
    say("Folder", folder.display().to_string());
    let Some(run) = run else {
        return RunFacts { name: name.to_owned(), created: String::new(), facts };
    };
    let set = &run.configuration;
    say("Command", run.command_line.join(" "));
    say("Agents", set.agents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    if let Some(model) = &set.model {
        say("Model", model.spec.clone());
    }
    say("Attempts a sample", set.k.to_string());
    let tokens = set.limits.tokens.map(|most| format!(", {most} tokens")).unwrap_or_default();
    let limits = &set.limits;
    say(
        "An attempt may take",
        format!("{} steps, {} s of tool time, ${}{tokens}", limits.steps, limits.seconds, limits.cost),
    );
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    say("Experiments", word(serde_json::to_value(set.protocol)));
    say("Scoring", word(serde_json::to_value(set.scoring)));
    say("Verification", if set.verify { "the agent's code is run again" } else { "none" }.to_owned());
    if !set.verifiers.is_empty() {
        say("Verifiers", format!("{}; a model in {} orders", set.verifiers.iter().join(", "), set.orders));
    }
    say("Seed", set.seed.to_string());
    for session in &run.sessions {
        let mut parts = vec![format!("version {}, sandbox {}", session.version, session.sandbox)];
        parts.push(if session.baseline { "gold reproduced" } else { "gold not checked" }.to_owned());
        parts.extend(session.warnings.iter().chain(&session.differences).cloned());
        say(&format!("Session of {}", session.started.strftime("%Y-%m-%d %H:%M UTC")), parts.join("; "));
    }
    let created = run.created.strftime("%Y-%m-%d %H:%M UTC").to_string();
    RunFacts { name: name.to_owned(), created, facts }
}

/// The attempts that have a trajectory and no record, and what could not be read.
fn begun(run: &MergedRun, place: usize) -> (Vec<Begun>, Option<String>) {
    let stored: HashSet<(&str, &str, u32)> =
        run.records.iter().map(|record| (record.agent.as_str(), record.sample.as_str(), record.attempt)).collect();
    let trajectories = match run.store.trajectories() {
        Ok(trajectories) => trajectories,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut found = Vec::new();
    for StoredTrajectory { agent, sample, attempt, .. } in trajectories {
        let label = run.label(&agent);
        if !stored.contains(&(label.as_str(), sample.as_str(), attempt)) {
            // Its record will name the model: until then it is the one that was planned.
            let planned = run.run.iter().flat_map(|run| &run.planned).find(|planned| planned.agent == agent);
            let model = planned.and_then(|planned| planned.model.clone());
            found.push(Begun { origin: Origin { run: place, agent }, agent: label, model, sample, attempt });
        }
    }
    (found, None)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::stats::Intervals;

    #[test]
    fn a_change_is_seen_by_a_clock_that_runs_behind_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("attempts.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let reader =
            Reader::new(Families::none(), vec![folder.path().to_owned()], None, Vec::new(), Intervals::default());
        let at = |hours: u64| {
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_hours(hours)).unwrap();
            reader.stamp()
        };
        assert_ne!(at(1), at(2));
    }
}
