//! Writes a package's paper: manifest, text, and what was measured.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use regex::Regex;

use super::documentation;
use super::functions::own_name;
use super::gates::Passed;
use super::list::{ListedFunction, Measured, PackageEntry};
use super::manifest::PackageManifest;
use super::prepare::Prepared;
use super::survey::Plan;
use super::workshop::Workshop;
use crate::audit::{Bench, leaks};
use crate::error::{Error, Result};
use crate::suite::{
    Dependencies, EVIDENCE_FORMAT, Gold, GoldValues, LoadedPaper, PaperEvidence, Protocol, check, sections,
};

impl Workshop {
    /// Writes the paper and checks that it can be loaded. The functions that the paper offers for masking are the
    /// listed functions that passed all checks.
    #[allow(clippy::too_many_arguments, reason = "everything that was measured")]
    pub(super) fn finish(
        &self,
        prepared: &Prepared,
        bench: &Bench,
        test_files: &[String],
        plan: Plan,
        mut gold: Gold,
        listed: &[ListedFunction],
        passed: &[(usize, Passed)],
        entry: &mut PackageEntry,
    ) -> Result<Measured> {
        let id = prepared.draft.id();
        let suite = prepared.draft.suite();
        let units = &bench.loaded().paper.units;
        let functions: Vec<ListedFunction> = passed.iter().map(|(place, _)| listed[*place].clone()).collect();
        let needed: BTreeSet<&String> = passed.iter().flat_map(|(_, one)| &one.needed_by).collect();
        let mut used = plan.clone();
        used.groups.retain(|group, _| needed.contains(group));
        for results in gold.results.values_mut() {
            results.retain(|group, _| needed.contains(group));
        }
        let functions = self.with_passages(prepared, test_files, functions, &gold);
        self.write_paper(prepared, test_files, &used, &functions, Some(&gold))?;
        let paper = suite.paper_dir(id);
        gold.save(&paper.join("gold.json"))?;
        let mut dependencies = Dependencies { format: 1, repo: gold.repo.clone(), ..Dependencies::default() };
        for group in used.groups.keys() {
            let needs = passed.iter().filter(|(_, one)| one.needed_by.contains(group));
            dependencies.needs.insert(group.clone(), needs.map(|(place, _)| units[*place].at.clone()).collect());
        }
        let loaded = LoadedPaper::load(suite, id)?;
        (0..loaded.paper.units.len()).try_for_each(|place| loaded.prove_mask(place))?;
        let mut evidence = PaperEvidence {
            format: EVIDENCE_FORMAT,
            repo: gold.repo.clone(),
            kinds: Some(crate::code::MutantKind::COUNT),
            ..PaperEvidence::default()
        };
        for (place, one) in passed {
            evidence.functions.insert(units[*place].at.clone(), one.evidence.clone());
        }
        for leak in leaks::measure(&loaded, Some(&bench.ready().shown))?.functions {
            if let Some(function) = evidence.functions.get_mut(&leak.at) {
                function.containment = (1e4 * leak.containment).round() / 1e4;
                function.contained_in = leak.place;
            }
        }
        entry.funnel.kept = functions.len();
        entry.funnel.fresh = functions.iter().filter(|function| function.since.is_some()).count();
        entry.funnel.mutants =
            evidence.functions.values().fold((0, 0), |(made, killed), one| (made + one.mutants, killed + one.killed));
        super::list::save_json(&paper.join("dependencies.json"), &dependencies)?;
        evidence.save(&paper.join("evidence.json"))?;
        let written = LoadedPaper::load(suite, id)?;
        if let Some(problem) = check(&written, Protocol::Curtailed).into_iter().find(|problem| problem.fatal) {
            return Err(problem.error);
        }
        let env = suite.env_dir(id);
        let mut locks = BTreeMap::new();
        for file in fs::read_dir(&env).map_err(|error| Error::io("read", &env, error))?.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            if name != "environment.yml" {
                let text = fs::read_to_string(file.path()).map_err(|error| Error::io("read", &file.path(), error))?;
                locks.insert(name, text);
            }
        }
        Ok(Measured {
            environment: prepared.environment.clone(),
            locks,
            build: prepared.compiled.build.clone(),
            abi: prepared.compiled.abi.clone(),
            year: prepared.facts.year.unwrap_or(0),
            test_files: test_files.to_vec(),
            added: BTreeMap::new(),
            plan,
            functions,
            gold,
            dependencies,
            evidence,
        })
    }

    /// Adds to each function the headings of the paper's text that contain the function's name.
    fn with_passages(
        &self,
        prepared: &Prepared,
        test_files: &[String],
        functions: Vec<ListedFunction>,
        gold: &Gold,
    ) -> Vec<ListedFunction> {
        let text = GoldValues::of(Some(gold)).hide(&self.document(prepared, test_files, &functions));
        let headings: Vec<&str> = sections(&text).into_iter().map(|section| section.heading).collect();
        let named = |function: &ListedFunction| -> Vec<String> {
            let name = own_name(&function.at);
            if name.len() < 4 || name.starts_with("__") {
                return Vec::new();
            }
            let Ok(word) = Regex::new(&format!(r"(?:^|[^\w]){}(?:$|[^\w])", regex::escape(name))) else {
                return Vec::new();
            };
            let mut found: Vec<String> =
                headings.iter().filter(|heading| word.is_match(heading)).map(|it| (*it).to_owned()).collect();
            found.dedup();
            found.truncate(3);
            found
        };
        functions.into_iter().map(|function| ListedFunction { passages: named(&function), ..function }).collect()
    }

    fn document(&self, prepared: &Prepared, test_files: &[String], functions: &[ListedFunction]) -> String {
        let masked: BTreeSet<String> = functions.iter().map(|function| function.at.clone()).collect();
        let repo = prepared.draft.suite().repo_dir(prepared.draft.id());
        let (sources, layout, facts) = (&prepared.sources, &prepared.layout, &prepared.facts);
        documentation::write(sources, &repo, layout, facts, test_files, &masked, self.settings.keep_examples).text
    }

    /// Writes manifest and text. If `gold` is given, its values are removed from both.
    pub(super) fn write_paper(
        &self,
        prepared: &Prepared,
        test_files: &[String],
        plan: &Plan,
        functions: &[ListedFunction],
        gold: Option<&Gold>,
    ) -> Result<()> {
        let values = GoldValues::of(gold);
        let hidden = |function: &ListedFunction| {
            let description = values.hide(&function.description);
            ListedFunction { description, ..function.clone() }
        };
        let shown: Vec<ListedFunction> = functions.iter().map(hidden).collect();
        let repo = prepared.draft.suite().repo_dir(prepared.draft.id());
        let walk = walkdir::WalkDir::new(&repo).sort_by_file_name().into_iter().flatten();
        let files: Vec<PathBuf> = walk
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(&repo).unwrap_or(entry.path()).to_owned())
            .collect();
        let manifest = PackageManifest {
            id: prepared.draft.id(),
            files: &files,
            facts: &prepared.facts,
            layout: &prepared.layout,
            compiled: &prepared.compiled,
            test_files,
            visible: self.settings.visible_tests,
            plan,
            functions: &shown,
            published: prepared.record.first_released,
        };
        prepared.draft.write("paper.toml", &manifest.text())?;
        prepared.draft.write("paper.md", &values.hide(&self.document(prepared, test_files, functions)))
    }
}
