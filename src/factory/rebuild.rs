//! Makes the files of a package again from its downloaded sources and its stored measurements.

use std::fs;
use std::path::Path;

use super::inputs::write_test_files;
use super::layout::{self, Layout};
use super::list::{PackageEntry, digests};
use super::prepare::{Prepared, library_files, write_plan, write_repo, write_runner};
use super::source::PackageSource;
use super::vendored::copy_modules;
use super::workshop::Workshop;
use crate::draft::manifest::CompiledCode;
use crate::draft::metadata::{self, facts};
use crate::draft::{Draft, require_id};
use crate::error::{Error, Result};
use crate::suite::LoadedPaper;

impl Workshop {
    /// Makes the files of a package again from its downloaded sources and its stored measurements, without running
    /// anything.
    ///
    /// # Errors
    /// Kind `Suite` if the sources have changed, or if the files differ from those that `entry` lists; `Usage` if the entry's id is invalid, or if the suite has a paper, repo or
    /// env of this id already. In these cases, the suite gets no files of the package.
    pub(super) async fn rebuild(&self, entry: &PackageEntry) -> Result<()> {
        let (Some(source), Some(measured)) = (&entry.source, &entry.measured) else { return Ok(()) };
        let id = &entry.id;
        require_id(id)?;
        let scratch = self.scratch()?;
        let parsed = PackageSource::parse(&source.package)?;
        let found = self.fetcher.get(&parsed, &scratch.path().join("sources"), Some(source)).await?;
        let has_vendored = !entry.vendored.is_empty();
        let layout = layout::find(&found.folder)?.with_name_and_version(&entry.name, &entry.version)?;
        let layout = Layout { has_vendored, ..layout };
        let mut draft = Draft::begin(&self.suite, id)?;
        let repo = draft.suite().repo_dir(id);
        write_repo(&found.folder, &repo, &layout, &self.settings)?;
        for (place, record) in entry.vendored.iter().enumerate() {
            let source = PackageSource::parse(&record.package)?;
            let into = scratch.path().join(format!("vendored-{place}"));
            let found = self.fetcher.get(&source, &into, Some(record)).await?;
            copy_modules(&layout::find(&found.folder)?, &found.folder, &repo)?;
        }
        draft.write_env(&measured.environment)?;
        let env = draft.suite().env_dir(id);
        for (name, text) in &measured.locks {
            if name.contains(['/', '\\']) || name.contains("..") {
                return Err(Error::suite(format!("`{name}` is not the name of a lock file")));
            }
            fs::write(env.join(name), text).map_err(|error| Error::io("write", &env.join(name), error))?;
        }
        write_test_files(&repo, &measured.added)?;
        write_plan(&repo, &measured.plan)?;
        write_runner(&repo)?;
        let files = library_files(&repo);
        let compiled = CompiledCode { build: measured.build.clone(), files, abi: measured.abi.clone() };
        let facts = metadata::PackageFacts { year: Some(measured.year), ..facts(&found.folder) };
        let prepared = Prepared {
            draft,
            layout,
            sources: found.folder.clone(),
            record: source.clone(),
            earlier: None,
            compiled,
            facts,
            environment: measured.environment.clone(),
        };
        let mut used = measured.plan.clone();
        used.groups.retain(|group, _| measured.dependencies.needs.contains_key(group));
        self.write_paper(&prepared, &measured.test_files, &used, &measured.functions, Some(&measured.gold))?;
        let paper = prepared.draft.suite().paper_dir(id);
        measured.gold.save(&paper.join("gold.json"))?;
        super::list::save_json(&paper.join("dependencies.json"), &measured.dependencies)?;
        measured.evidence.save(&paper.join("evidence.json"))?;
        LoadedPaper::load(prepared.draft.suite(), id)?;
        let Prepared { draft, .. } = prepared;
        require_digests(draft.suite().root(), entry)?;
        self.move_into_suite(draft)
    }
}

/// Checks that the files of a package in the suite in the folder `root` are those that `entry` lists.
///
/// # Errors
/// Kind `Suite` if they differ; `Usage` if the entry's id is invalid.
pub(super) fn require_digests(root: &Path, entry: &PackageEntry) -> Result<()> {
    require_id(&entry.id)?;
    let (made, _) = digests(root, &entry.id)?;
    let other = super::list::differing(&made, &entry.digests);
    let Some(first) = other.first() else { return Ok(()) };
    Err(Error::suite(format!("{} of its files differ from those in the list, such as `{first}`", other.len()))
        .hint("use the version of autoexperiment that made the list, if it was another one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_from_the_list_are_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("papers/p/paper.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "text").unwrap();
        let (listed, _) = digests(folder.path(), "p").unwrap();
        let entry = PackageEntry { id: "p".to_owned(), digests: listed, ..PackageEntry::default() };
        require_digests(folder.path(), &entry).unwrap();
        fs::write(&file, "other text").unwrap();
        let message = require_digests(folder.path(), &entry).unwrap_err().message;
        assert_eq!(message, "1 of its files differ from those in the list, such as `papers/p/paper.md`");
        let outside = PackageEntry { id: "../../x".to_owned(), ..entry };
        assert!(require_digests(folder.path(), &outside).unwrap_err().message.contains("is not a valid id"));
    }
}
