//! Requirements of which the index has no wheel. Nothing is built from their source archives; if they are pure Python,
//! their modules are copied into the repo, from where Python imports them.

use std::fs;
use std::path::Path;

use super::VENDORED;
use super::index::is_package_name;
use super::layout::{self, Layout};
use super::markers::applies;
use super::requirement_files::declared;
use super::requirements::{self, Requirements, name_of};
use super::source::{Fetcher, PackageSource, SourceRecord};
use super::version::VersionRange;
use crate::draft::extension::extension;
use crate::draft::metadata::text;
use crate::draft::repo::{CopyRules, copy};
use crate::error::{Error, FailureKind, Result};

/// Copies the modules of a requirement into the repo; `installed` are the names of the packages in the env, and `python`
/// is the env's version of Python. Returns where the sources came from, or `None` if they have to be built or need a
/// package that is not in the env.
///
/// # Errors
/// Kind `Machine` if the index does not answer or a file cannot be written.
pub(super) async fn vendor(
    requirement: &str,
    installed: &Requirements,
    python: &str,
    fetcher: &Fetcher,
    scratch: &Path,
    repo: &Path,
) -> Result<Option<SourceRecord>> {
    let Some((name, range)) = name_and_range(requirement) else { return Ok(None) };
    let into = scratch.join(name_of(requirement));
    let fetched = async {
        let Some(version) = fetcher.newest_within(&name, &range).await? else { return Ok(None) };
        fetcher.get(&PackageSource::Index(name, Some(version)), &into, None).await.map(Some)
    };
    let unpacked = match fetched.await {
        Ok(Some(unpacked)) => unpacked,
        Err(error) if error.kind == FailureKind::Machine => return Err(error),
        Ok(None) | Err(_) => return Ok(None),
    };
    let Ok(layout) = layout::find(&unpacked.folder) else { return Ok(None) };
    let is_there = |one: &String| installed.all().iter().any(|known| name_of(known) == name_of(one));
    let needed = needed(&unpacked.folder, &layout.name);
    let mut needed = needed.iter().filter(|one| applies(one, python));
    if extension(&unpacked.folder).is_some() || !needed.all(is_there) {
        return Ok(None);
    }
    copy_modules(&layout, &unpacked.folder, repo)?;
    Ok(Some(unpacked.record))
}

/// Returns the requirements of the package in a source archive, from the metadata that a build has written. Other
/// files, such as `requirements.txt`, are used only if there is no such metadata, because they may list a developer's
/// tools.
fn needed(folder: &Path, name: &str) -> Vec<String> {
    let listed = walkdir::WalkDir::new(folder).max_depth(2).into_iter().flatten();
    let mut infos = listed.filter(|entry| entry.file_name().to_string_lossy().ends_with(".egg-info"));
    let Some(declared) = declared(folder) else { return requirements::find(folder, name).own };
    let mut found: Vec<String> =
        declared.into_iter().filter(|(_, extras)| extras.is_empty()).map(|(plain, _)| plain).collect();
    let of_setuptools = infos.next().and_then(|info| text(info.path(), "requires.txt")).unwrap_or_default();
    let plain = of_setuptools.lines().take_while(|line| !line.starts_with('['));
    found.extend(plain.filter(|line| !line.trim().is_empty()).map(str::to_owned));
    found
}

/// Returns the name and the versions in a requirement; `None` for a requirement with extras, or in another form.
fn name_and_range(requirement: &str) -> Option<(String, VersionRange)> {
    let wanted = requirement.split(';').next().unwrap_or_default().replace([' ', '(', ')'], "");
    let end = wanted.find(['=', '<', '>', '!', '~', '[']).unwrap_or(wanted.len());
    let (name, range) = wanted.split_at(end);
    let range = VersionRange::parse(range).filter(|_| is_package_name(name))?;
    Some((name.to_owned(), range))
}

/// Copies the modules in the sources of a requirement, with their metadata, into the repo.
pub(super) fn copy_modules(layout: &Layout, sources: &Path, repo: &Path) -> Result<()> {
    let folder = repo.join(VENDORED);
    fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
    let everything = CopyRules::new(&["**".to_owned()], &[])?;
    let root = sources.join(&layout.root);
    for module in &layout.modules {
        let file = format!("{module}.py");
        if root.join(&file).is_file() {
            fs::copy(root.join(&file), folder.join(&file))
                .map_err(|error| Error::io("copy", &root.join(&file), error))?;
        } else {
            copy(&root.join(module), &folder.join(module), &everything)?;
        }
    }
    layout.write_metadata(sources, &folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_versions_of_a_requirement_are_read() {
        for (text, range) in [
            ("a", ""),
            ("a >= 0.6; python_version > '3'", ">=0.6"),
            ("a<=1,>=0.3.13", "<=1,>=0.3.13"),
            ("a (>=2)", ">=2"),
        ] {
            assert_eq!(name_and_range(text), Some(("a".to_owned(), VersionRange::parse(range).unwrap())), "{text}");
        }
        for text in ["a[x]>=1", "", ">=1", "a/../b"] {
            assert_eq!(name_and_range(text), None, "{text}");
        }
    }

    #[test]
    fn requirements_are_read_from_the_metadata_that_the_build_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("requirements.txt", "flake8\n");
        write("PKG-INFO", "Name: a\nRequires-Dist: six>=1\nRequires-Dist: tox; extra == 'dev'\n\nRequires-Dist: no\n");
        assert_eq!(needed(folder.path(), "a"), ["six>=1"]);
        write("src/a.egg-info/requires.txt", "attrs\n\n[dev]\ntox\n");
        assert_eq!(needed(folder.path(), "a"), ["six>=1", "attrs"]);
    }

    #[test]
    fn modules_and_metadata_of_a_vendored_package_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        let (sources, repo) = (folder.path().join("sources"), folder.path().join("repo"));
        for (name, text) in [
            ("PKG-INFO", "Metadata-Version: 2.1\nName: Some-Opt\nVersion: 0.6\n\n# text\n"),
            ("src/some_opt/__init__.py", "from .data import x\n"),
            ("src/some_opt/data.py", "x = 1\n"),
            ("src/some_opt/table.json", "{}"),
            ("tests/test_opt.py", ""),
            ("setup.py", "raise SystemExit"),
        ] {
            fs::create_dir_all(sources.join(name).parent().unwrap()).unwrap();
            fs::write(sources.join(name), text).unwrap();
        }
        copy_modules(&layout::find(&sources).unwrap(), &sources, &repo).unwrap();
        let vendored = repo.join(VENDORED);
        assert!(vendored.join("some_opt/table.json").is_file());
        let metadata = fs::read_to_string(vendored.join("Some_Opt-0.6.dist-info/METADATA")).unwrap();
        assert_eq!(metadata, "Metadata-Version: 2.1\nName: Some-Opt\nVersion: 0.6\n");
        assert_eq!(fs::read_dir(&vendored).unwrap().count(), 2);
        assert_eq!(fs::read_dir(&repo).unwrap().count(), 1);
    }
}
