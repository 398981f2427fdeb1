//! Facts that the sources of a package state about it.

use std::fs;
use std::path::Path;

use crate::draft::environment;
use crate::draft::metadata::{self, metadata_fields};
use crate::env;
use crate::error::Result;

/// Whether a folder contains files that look like tests.
pub(super) fn has_tests(folder: &Path) -> bool {
    let walk = walkdir::WalkDir::new(folder).max_depth(8).into_iter();
    walk.flatten().filter(|entry| entry.file_type().is_file()).any(|entry| {
        let name = entry.file_name().to_string_lossy();
        let is_test = (name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py"))
            && name.ends_with(".py");
        is_test
            && fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("def test") || text.contains("TestCase"))
    })
}

/// A web address in a package's metadata at which there may be a git repository.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RepositoryAddress {
    /// The address, without credentials.
    pub(super) address: String,
    /// Whether the address has a label such as `Source`, or a host such as `github.com`. Otherwise, it may be the home
    /// page of the package, which need not exist any more.
    pub(super) is_of_code: bool,
}

/// Returns the address in a package's metadata at which there is most likely a repository. Ignores everything that is
/// not a plain web address.
pub(super) fn repository(folder: &Path) -> Option<RepositoryAddress> {
    let head = metadata_fields(folder).unwrap_or_default();
    let mut found: Vec<(usize, String)> = Vec::new();
    for line in head.lines() {
        let (label, address) = if let Some(entry) = line.strip_prefix("Project-URL:") {
            let Some((label, address)) = entry.split_once(',') else { continue };
            (label.trim().to_lowercase(), address.trim())
        } else if let Some(address) = line.strip_prefix("Home-page:") {
            ("home".to_owned(), address.trim())
        } else {
            continue;
        };
        let parts: Vec<&str> = address.trim_start_matches("https://").trim_end_matches('/').split('/').collect();
        if !address.starts_with("https://") || address.contains('@') || parts.len() < 3 {
            continue;
        }
        let has_label = ["source", "repo", "code", "git"].iter().any(|word| label.contains(word));
        let has_code_host = ["git", "bitbucket", "codeberg"].iter().any(|word| parts[0].contains(word));
        let rank = if has_label { 0 } else { 1 + usize::from(!has_code_host) };
        found.push((rank, format!("https://{}", parts[..3].join("/"))));
    }
    let (rank, address) = found.into_iter().min()?;
    Some(RepositoryAddress { address, is_of_code: rank < 2 })
}

/// Returns the versions of Python that a package's env accepts. Compiled code works with only one version, so its env
/// gets the newest one on this machine.
pub(super) async fn python_range(sources: &Path, compiled: bool, id: &str) -> Result<String> {
    let mut range = environment::PYTHON.to_owned();
    if let Some((wanted, _)) = metadata::requires_python(sources) {
        let both = format!("{range},{}", wanted.replace(' ', ""));
        if env::python_range(&both).is_ok() {
            range = both;
        }
    }
    if !compiled {
        return Ok(range);
    }
    let version = env::newest_python(&range, id).await?;
    Ok(version.split('.').take(2).collect::<Vec<_>>().join("."))
}

/// Returns the licence in the metadata: an expression, a short text, a classifier or the beginning of a long text.
pub(super) fn licence(folder: &Path) -> Option<String> {
    let head = metadata_fields(folder).unwrap_or_default();
    let field = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
            .filter(|it| !it.is_empty() && it != "UNKNOWN")
    };
    let classifier = || {
        let mut classifiers = head.lines().filter_map(|line| line.strip_prefix("Classifier: License :: "));
        classifiers.next_back().map(|it| it.rsplit(" :: ").next().unwrap_or(it).to_owned())
    };
    let project = || {
        let table: toml::Table = metadata::text(folder, "pyproject.toml")?.parse().ok()?;
        let licence = table.get("project")?.get("license")?.clone();
        licence.as_str().or_else(|| licence.get("text")?.as_str()).map(str::to_owned)
    };
    // In some packages, the field `License` contains the licence's whole text. Use the beginning of such a text only if
    // nothing else names the licence.
    let name = |text: &String| text.chars().count() <= 80 && !text.to_lowercase().starts_with("copyright");
    let short = |text: String| text.lines().next().map(|line| line.chars().take(80).collect::<String>());
    let named = field("License-Expression:").or_else(|| field("License:").filter(name)).or_else(classifier);
    named.or_else(project).or_else(|| field("License:")).and_then(short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_its_name_rather_than_the_beginning_of_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let of = |fields: &str| {
            std::fs::write(folder.path().join("PKG-INFO"), format!("Name: x\n{fields}\n\nA description.")).unwrap();
            licence(folder.path())
        };
        let bsd = "Classifier: License :: OSI Approved :: BSD License";
        let text = "License: Copyright (c) 2021, Somebody\n        Permission is granted";
        assert_eq!(of(&format!("{text}\n{bsd}")).as_deref(), Some("BSD License"));
        assert_eq!(of(&format!("License: MIT\n{bsd}")).as_deref(), Some("MIT"));
        assert_eq!(of(text).as_deref(), Some("Copyright (c) 2021, Somebody"));
        assert_eq!(of("License: UNKNOWN"), None);
    }

    #[test]
    fn a_broken_project_url_does_not_hide_the_repository_in_other_fields() {
        let folder = tempfile::tempdir().unwrap();
        let of = |fields: &str| {
            std::fs::write(folder.path().join("PKG-INFO"), format!("Name: x\n{fields}\n")).unwrap();
            repository(folder.path()).map(|found| found.address)
        };
        let home = "Home-page: https://example.org/a/x/";
        assert_eq!(of(&format!("Project-URL: broken\n{home}")).as_deref(), Some("https://example.org/a/x"));
        assert_eq!(
            of(&format!("{home}\nProject-URL: Source, https://example.org/b/x/tree")).as_deref(),
            Some("https://example.org/b/x")
        );
        for address in ["/home/alice/x/y", "ext::sh -c id", "--upload-pack=x", "file:///a/b/c", "https://u@h/a/b"] {
            assert_eq!(of(&format!("Home-page: {address}")), None, "{address}");
        }
    }

    #[test]
    fn a_home_page_is_not_known_to_be_a_repository_unless_its_host_has_repositories() {
        let folder = tempfile::tempdir().unwrap();
        for (fields, address, is_of_code) in [
            ("Home-page: https://example.org/a/x", "https://example.org/a/x", false),
            ("Home-page: https://github.com/a/x/", "https://github.com/a/x", true),
            ("Project-URL: Source, https://example.org/a/x", "https://example.org/a/x", true),
            (
                "Project-URL: Manual, https://example.org/en/latest\nHome-page: https://gitlab.com/a/x",
                "https://gitlab.com/a/x",
                true,
            ),
        ] {
            std::fs::write(folder.path().join("PKG-INFO"), format!("Name: x\n{fields}\n")).unwrap();
            let expected = RepositoryAddress { address: address.to_owned(), is_of_code };
            assert_eq!(repository(folder.path()), Some(expected), "{fields}");
        }
    }
}
