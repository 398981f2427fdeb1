//! Makes the tasks of one package: gets its sources, drafts a paper from them, runs the package's tests to choose and
//! measure functions, and moves the paper into the suite.

use std::path::Path;
use std::time::Instant;

use super::about::{RepositoryAddress, has_tests, licence, repository};
use super::index::normalised;
use super::layout::{self, Layout};
use super::list::{PackageEntry, digests, minutes_since};
use super::prepare::Prepared;
use super::refresh::EarlierVersion;
use super::source::{PackageSource, SourceRecord, Unpacked, tags_in_repository};
use super::workshop::{Workshop, has_files};
use crate::error::{Error, FailureKind, Result};
use crate::run::event::{Observer, RunEvent, Stage};

impl Workshop {
    /// Makes the tasks of a package. An error is recorded in the returned entry, as the reason why there are no tasks.
    /// The returned flag is false if another try may succeed, because the error is not the package's fault.
    pub(super) async fn make(&self, asked: &str, observer: &dyn Observer) -> (PackageEntry, bool) {
        let begun = Instant::now();
        let mut entry = PackageEntry { package: asked.to_owned(), ..PackageEntry::default() };
        let made = self.try_make(asked, &mut entry, observer).await;
        entry.minutes = minutes_since(begun);
        let mut is_final = true;
        if let Err(error) = made {
            is_final = !matches!(
                error.kind,
                FailureKind::Machine | FailureKind::Infrastructure | FailureKind::Place | FailureKind::Interrupted
            );
            entry.refused = Some(one_line(&error));
            entry.measured = None;
        }
        (entry, is_final)
    }

    async fn try_make(&self, asked: &str, entry: &mut PackageEntry, observer: &dyn Observer) -> Result<()> {
        let source = PackageSource::parse(asked)?;
        let scratch = self.scratch()?;
        let begun = Instant::now();
        observer.on(RunEvent::Stage(Stage::new("getting", asked)));
        let mut found = self.fetcher.get(&source, &scratch.path().join("sources"), None).await?;
        entry.source = Some(found.record.clone());
        let mut layout = layout::find(&found.folder)?;
        if !has_tests(&found.folder) {
            let archive = found.record.clone();
            found = self.repository_sources(&source, &found, &layout, &scratch.path().join("repository")).await?;
            found.record = found.record.replacing(&archive);
            entry.source = Some(found.record.clone());
            layout = layout::find(&found.folder)?.with_name_and_version(&layout.name, &layout.version)?;
        }
        let id = self.take_id(asked, &layout);
        entry.id.clone_from(&id);
        entry.name.clone_from(&layout.name);
        entry.version.clone_from(&layout.version);
        entry.licence = licence(&found.folder);
        entry.spent("sources", begun);
        let begun = Instant::now();
        let mut prepared = self.prepare(&id, layout, &found.folder, entry, observer).await?;
        prepared.earlier = self.earlier_version(asked, &found.record, entry, &scratch.path().join("earlier")).await?;
        prepared.record = found.record;
        entry.spent("environment", begun);
        let measured = self.measure(&prepared, entry, observer).await?;
        entry.measured = Some(measured);
        let Prepared { draft, .. } = prepared;
        (entry.digests, entry.bytes) = digests(draft.suite().root(), &id)?;
        self.move_into_suite(draft)
    }

    /// Gets the sources from the repository that the package's metadata names. Used if the archive from the index has
    /// no tests. The index has just sent the archive, so this machine's network works, as [`tags_in_repository`]
    /// requires.
    ///
    /// # Errors
    /// Kind `Suite` if the repository does not exist or has no tests of this version; `Machine` if its host does not
    /// answer, but only if the metadata says that there is a repository at this address.
    async fn repository_sources(
        &self,
        source: &PackageSource,
        found: &Unpacked,
        layout: &Layout,
        into: &Path,
    ) -> Result<Unpacked> {
        let refused = |why: &str| {
            Error::suite(format!("its sources have no tests{why}"))
                .hint("give a folder with its sources and tests, as after a `git clone`")
        };
        if !matches!(source, PackageSource::Index(..)) {
            return Err(refused(""));
        }
        let Some(RepositoryAddress { address, is_of_code }) = repository(&found.folder) else {
            return Err(refused(", and its metadata names no repository"));
        };
        let names = [format!("v{}", layout.version), layout.version.clone()];
        let tags = match tags_in_repository(&address, &names).await {
            Err(error) if error.kind == FailureKind::Suite => {
                return Err(refused(&format!(", and {}", error.message)));
            }
            Err(error) if !is_of_code => {
                return Err(refused(&format!(", and its home page `{address}` cannot be read: {}", error.message)));
            }
            answer => answer?,
        };
        for (number, tag) in tags.iter().enumerate() {
            let git = PackageSource::Git(format!("{address}@{tag}"));
            match self.fetcher.get(&git, &into.join(number.to_string()), None).await {
                Ok(unpacked) if has_tests(&unpacked.folder) => return Ok(unpacked),
                Err(error) if error.kind == FailureKind::Machine => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Err(refused(", and the repository that its metadata names has no tag of this version with tests"))
    }

    /// Reads the sources of the older version that this package is compared with, if there is one.
    async fn earlier_version(
        &self,
        asked: &str,
        record: &SourceRecord,
        entry: &mut PackageEntry,
        into: &Path,
    ) -> Result<Option<EarlierVersion>> {
        let Some(earlier) = self.earlier.get().and_then(|all| all.get(asked)) else { return Ok(None) };
        if record.released.is_none() {
            return Err(Error::suite("the package index does not say when this version was released")
                .hint("use an index that follows PEP 700, which says when each file was uploaded"));
        }
        let source = PackageSource::parse(&earlier.package)?;
        let found = self.fetcher.get(&source, into, Some(earlier)).await?;
        entry.earlier = Some(earlier.clone());
        Ok(Some(EarlierVersion::read(&found.folder)))
    }

    /// Chooses an id that neither another package nor a paper of the user has.
    fn take_id(&self, asked: &str, layout: &Layout) -> String {
        let mut taken = self.ids.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let plain = normalised(&layout.name);
        let versioned = format!("{plain}-{}", layout.version.replace(['+', '!'], "."));
        let root = self.suite.root();
        let is_free = |id: &String| taken.get(id).map_or_else(|| !has_files(root, id), |other| other == asked);
        let id = [plain.clone(), versioned.clone()].into_iter().find(is_free);
        let id = id.unwrap_or_else(|| {
            let numbered = (2..).map(|number| format!("{versioned}-{number}"));
            numbered.into_iter().find(is_free).unwrap_or(plain)
        });
        taken.insert(id.clone(), asked.to_owned());
        id
    }
}

/// Formats an error as one line.
fn one_line(error: &Error) -> String {
    let text = crate::error::with_causes(error);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.next().unwrap_or_default().to_owned();
    if let Some(last) = lines.next_back() {
        line = format!("{line}: {last}");
    }
    line.chars().take(400).collect()
}
