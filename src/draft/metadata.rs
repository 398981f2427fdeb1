//! Reads a repository's packaging metadata: dependencies, Python versions, console scripts.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use toml::Table;

/// A repository's dependencies, and the file that lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageDependencies {
    /// Requirements in pip's notation.
    pub packages: Vec<String>,
    /// The file that lists the dependencies, relative to the repository.
    pub file: &'static str,
}

/// Returns the dependencies from the first of these files that declares any: `pyproject.toml`, the `PKG-INFO` of a
/// source distribution, `setup.cfg`, `setup.py`.
#[must_use]
pub fn dependencies(repo: &Path) -> Option<PackageDependencies> {
    let found = |file: &'static str, packages: Option<Vec<String>>| {
        packages.map(|packages| PackageDependencies { packages, file })
    };
    found("pyproject.toml", pyproject(repo).and_then(|table| declared(&table)))
        .or_else(|| found("PKG-INFO", metadata_fields(repo).and_then(|fields| required(&fields))))
        .or_else(|| {
            found("setup.cfg", text(repo, "setup.cfg").and_then(|said| section(&said, "options", "install_requires")))
        })
        .or_else(|| found("setup.py", text(repo, "setup.py").and_then(|said| called(&said, "install_requires"))))
}

/// Facts about a package, used for the manifest of a paper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageFacts {
    /// The package's name and summary.
    pub title: Option<String>,
    /// Names of the authors.
    pub authors: Vec<String>,
    /// The last year of the licence's copyright notice.
    pub year: Option<u16>,
    /// Address of the home page or, if there is no home page, of the sources.
    pub url: Option<String>,
}

/// Reads facts about the package from the `PKG-INFO` of a source distribution or, without one, from `pyproject.toml`.
/// The year is read from the licence.
#[must_use]
pub fn facts(repo: &Path) -> PackageFacts {
    let mut found = match (metadata_fields(repo), pyproject(repo)) {
        (Some(fields), _) => facts_of_sdist(&fields),
        (None, Some(table)) => facts_of_project(&table),
        (None, None) => PackageFacts::default(),
    };
    let licence = std::fs::read_dir(repo).into_iter().flatten().flatten().find(|entry| {
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        name.starts_with("licen") || name.starts_with("copying")
    });
    found.year = licence.and_then(|entry| copyright(&std::fs::read_to_string(entry.path()).ok()?));
    found
}

fn facts_of_sdist(fields: &str) -> PackageFacts {
    let all = |field: &str| {
        let prefix = format!("{field}:");
        let lines = fields.lines().filter_map(|line| line.strip_prefix(&prefix).map(|value| value.trim().to_owned()));
        lines.filter(|value| !value.is_empty() && value != "UNKNOWN").collect::<Vec<_>>()
    };
    let first = |field: &str| all(field).into_iter().next();
    let addresses = all("Project-URL").into_iter().filter_map(|entry| {
        let (label, address) = entry.split_once(',')?;
        Some((label.trim().to_lowercase(), address.trim().to_owned()))
    });
    PackageFacts {
        title: title(first("Name"), first("Summary")),
        authors: names(&first("Author").or_else(|| first("Author-email")).unwrap_or_default()),
        year: None,
        url: first("Home-page").or_else(|| home_page(addresses)),
    }
}

fn facts_of_project(table: &Table) -> PackageFacts {
    let Some(project) = table.get("project") else { return PackageFacts::default() };
    let text = |field: &str| Some(project.get(field)?.as_str()?.to_owned());
    let authors = project.get("authors").and_then(toml::Value::as_array).into_iter().flatten();
    let addresses = project.get("urls").and_then(toml::Value::as_table).into_iter().flatten();
    PackageFacts {
        title: title(text("name"), text("description")),
        authors: authors.filter_map(|author| Some(author.get("name")?.as_str()?.to_owned())).collect(),
        year: None,
        url: home_page(addresses.filter_map(|(label, it)| Some((label.to_lowercase(), it.as_str()?.to_owned())))),
    }
}

fn title(name: Option<String>, summary: Option<String>) -> Option<String> {
    match (name, summary) {
        (Some(name), Some(summary)) => Some(format!("{name}: {summary}")),
        (name, summary) => name.or(summary),
    }
}

/// Splits a list of authors into names, without e-mail addresses.
fn names(said: &str) -> Vec<String> {
    let name = |part: &str| part.split('<').next().unwrap_or_default().trim().trim_matches('"').to_owned();
    said.split(',').flat_map(|part| part.split(" and ")).map(name).filter(|name| !name.is_empty()).collect()
}

/// Chooses the home page among addresses. Each address has a label in lower case, such as `homepage`.
fn home_page(addresses: impl Iterator<Item = (String, String)>) -> Option<String> {
    const LABELS: [&str; 6] = ["homepage", "home-page", "home", "repository", "source", "documentation"];
    let all: Vec<(String, String)> = addresses.collect();
    let labelled = LABELS.iter().find_map(|label| all.iter().find(|(own, _)| own.replace(' ', "-") == *label));
    labelled.or_else(|| all.first()).map(|(_, address)| address.clone())
}

/// Returns the last year of a licence's copyright notices.
fn copyright(licence: &str) -> Option<u16> {
    let year = Regex::new(r"\b(?:19|20)\d\d\b").ok()?;
    let notices = licence.lines().filter(|line| line.to_ascii_lowercase().contains("copyright"));
    notices.flat_map(|line| year.find_iter(line)).filter_map(|found| found.as_str().parse().ok()).max()
}

/// Returns the function that each console script calls, as `package.module:function`, by the script's name. The scripts
/// are declared by entries such as `name = package.module:function`.
#[must_use]
pub fn scripts(repo: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut add = |line: &str| {
        if let Some((name, target)) = line.split_once('=') {
            let target = target.split('[').next().unwrap_or_default().trim();
            if target.contains(':') {
                found.insert(name.trim().to_owned(), target.to_owned());
            }
        }
    };
    let cfg = text(repo, "setup.cfg").and_then(|said| section(&said, "options.entry_points", "console_scripts"));
    let setup = text(repo, "setup.py").and_then(|said| called(&said, "console_scripts"));
    cfg.into_iter().chain(setup).flatten().for_each(|line| add(&line));
    let table = pyproject(repo).unwrap_or_default();
    let project = table.get("project").and_then(|project| project.get("scripts"));
    let poetry = table.get("tool").and_then(|tool| tool.get("poetry")).and_then(|poetry| poetry.get("scripts"));
    for (name, target) in project.into_iter().chain(poetry).filter_map(toml::Value::as_table).flatten() {
        add(&format!("{name}={}", target.as_str().unwrap_or_default()));
    }
    found
}

/// Returns the supported versions of Python, and the file that declares them.
#[must_use]
pub fn requires_python(repo: &Path) -> Option<(String, &'static str)> {
    let project = || pyproject(repo)?.get("project")?.get("requires-python")?.as_str().map(str::to_owned);
    let sdist = || {
        let fields = metadata_fields(repo)?;
        fields.lines().find_map(|line| line.strip_prefix("Requires-Python:")).map(|range| range.trim().to_owned())
    };
    let cfg = || section(&text(repo, "setup.cfg")?, "options", "python_requires")?.into_iter().next();
    let setup = || {
        let named = Regex::new(r#"python_requires\s*=\s*["']([^"'\n]+)["']"#).ok()?;
        Some(named.captures(&text(repo, "setup.py")?)?.get(1)?.as_str().to_owned())
    };
    let found = |file, range: Option<String>| range.filter(|range| !range.trim().is_empty()).map(|range| (range, file));
    found("pyproject.toml", project())
        .or_else(|| found("PKG-INFO", sdist()))
        .or_else(|| found("setup.cfg", cfg()))
        .or_else(|| found("setup.py", setup()))
}

/// Returns the list `requires` in the section `[build-system]` of `pyproject.toml`.
#[must_use]
pub(super) fn build_requires(repo: &Path) -> Vec<String> {
    let table = pyproject(repo).unwrap_or_default();
    let listed = table.get("build-system").and_then(|system| system.get("requires")).and_then(toml::Value::as_array);
    listed.into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
}

/// Returns `build-backend` in the section `[build-system]` of `pyproject.toml`.
#[must_use]
pub(super) fn build_backend(repo: &Path) -> Option<String> {
    pyproject(repo)?.get("build-system")?.get("build-backend")?.as_str().map(str::to_owned)
}

/// Returns the text of a file in the repository's root.
#[must_use]
pub fn text(repo: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(repo.join(file)).ok()
}

/// Returns the fields in an sdist's `PKG-INFO`, without the package's long description, because its examples may show
/// results. The description is the text below the fields or, in older sdists, the field `Description`.
#[must_use]
pub fn metadata_fields(repo: &Path) -> Option<String> {
    let said = text(repo, "PKG-INFO")?;
    let mut fields: Vec<&str> = Vec::new();
    let mut in_description = false;
    let lines: Vec<&str> = said.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            in_description = name.eq_ignore_ascii_case("description");
        }
        // The fields end at the first blank line. But a line of spaces belongs to a field of several lines, such as a
        // licence's text, if the next line that is not blank is indented.
        let is_continued = || lines[number..].iter().find(|line| !line.trim().is_empty());
        let is_inside = || is_continued().is_some_and(|next| next.starts_with([' ', '\t']));
        if line.is_empty() || (line.trim().is_empty() && !in_description && !is_inside()) {
            break;
        }
        if !in_description {
            fields.push(line);
        }
    }
    Some(fields.join("\n"))
}

fn pyproject(repo: &Path) -> Option<Table> {
    text(repo, "pyproject.toml")?.parse().ok()
}

/// Returns `dependencies` in the section `[project]` of a `pyproject.toml`; `None` if the project declares them as
/// dynamic, so that they are determined elsewhere.
fn declared(table: &Table) -> Option<Vec<String>> {
    let project = table.get("project")?.as_table()?;
    let dynamic = project.get("dynamic").and_then(toml::Value::as_array);
    if dynamic.is_some_and(|names| names.iter().any(|name| name.as_str() == Some("dependencies"))) {
        return None;
    }
    let listed = project.get("dependencies").and_then(toml::Value::as_array);
    Some(listed.into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect())
}

/// Returns the `Requires-Dist` entries in a package's core metadata, except those that belong to extras.
fn required(fields: &str) -> Option<Vec<String>> {
    let needed = fields.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    let of_an_extra = |line: &str| line.split_once(';').is_some_and(|(_, marker)| marker.contains("extra"));
    let needed = needed.map(str::trim).filter(|line| !of_an_extra(line)).map(str::to_owned).collect::<Vec<_>>();
    (!needed.is_empty()).then_some(needed)
}

/// Returns the lines of a key's value in a section of an ini file such as `setup.cfg`.
fn section(text: &str, name: &str, key: &str) -> Option<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| line.trim() != format!("[{name}]")).skip(1);
    let mut found = Vec::new();
    let first = lines.by_ref().take_while(|line| !line.starts_with('[')).find_map(|line| {
        let (own, value) = line.split_once('=')?;
        (own.trim() == key).then(|| value.trim().to_owned())
    })?;
    found.push(first);
    found.extend(lines.take_while(|line| line.starts_with([' ', '\t'])).map(|line| line.trim().to_owned()));
    found.retain(|line| !line.is_empty() && !line.starts_with('#'));
    (!found.is_empty()).then_some(found)
}

/// Returns the strings of a literal list in a `setup.py`. The list is an argument of `setup`, such as
/// `install_requires=[...]`, or a value in a dict, such as `"console_scripts": [...]`.
fn called(text: &str, key: &str) -> Option<Vec<String>> {
    let list = Regex::new(&format!(r#"{key}["']?\s*[=:]\s*[\[(]([^\[\]()]*(?:\[[^\]]*\][^\[\]()]*)*)[\])]"#)).ok()?;
    let string = Regex::new(r#""([^"\n]+)"|'([^'\n]+)'"#).ok()?;
    let inside = list.captures(text)?.get(1)?.as_str();
    let inside: String = inside
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .fold(String::new(), |all, line| all + line + "\n");
    let found = string
        .captures_iter(&inside)
        .filter_map(|one| one.get(1).or(one.get(2)))
        .map(|one| one.as_str().trim().to_owned());
    let found: Vec<String> = found.filter(|one| !one.is_empty()).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repo(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    fn depends(files: &[(&str, &str)]) -> Option<(&'static str, String)> {
        dependencies(repo(files).path()).map(|found| (found.file, found.packages.join(" ")))
    }

    #[test]
    fn dependencies_are_read_wherever_a_package_names_them() {
        let project = "[project]\nname = 'x'\ndependencies = ['numpy>=1.20', 'scipy; python_version > \"3.8\"']\n";
        let setup = "setup(\n  name='x',\n  install_requires=[\n    'numpy>=1.20',  # arrays\n    \"requests[socks]\",\n  ],\n)";
        let cfg =
            "[options]\npackages = find:\ninstall_requires =\n    numpy\n    # why\n    scipy>=1\n\n[other]\nx = 1\n";
        let sdist =
            "Metadata-Version: 2.1\nRequires-Dist: numpy\nRequires-Dist: pytest; extra==\"dev\"\n\nRequires-Dist: x\n";
        assert_eq!(
            depends(&[("pyproject.toml", project), ("setup.py", setup)]).unwrap(),
            ("pyproject.toml", "numpy>=1.20 scipy; python_version > \"3.8\"".to_owned())
        );
        assert_eq!(depends(&[("setup.py", setup)]).unwrap(), ("setup.py", "numpy>=1.20 requests[socks]".to_owned()));
        assert_eq!(
            depends(&[("setup.cfg", cfg), ("setup.py", "setup()")]).unwrap(),
            ("setup.cfg", "numpy scipy>=1".to_owned())
        );
        let dynamic = "[project]\nname = 'x'\ndynamic = ['dependencies']\n";
        assert_eq!(
            depends(&[("pyproject.toml", dynamic), ("PKG-INFO", sdist)]).unwrap(),
            ("PKG-INFO", "numpy".to_owned())
        );
        assert_eq!(depends(&[("pyproject.toml", "[build-system]\nrequires = ['x']\n")]), None);
        assert_eq!(depends(&[("pyproject.toml", "[project]\nname = 'x'\n")]).unwrap().1, "");
    }

    #[test]
    fn the_versions_of_python_are_read_wherever_a_package_names_them() {
        let range = |files: &[(&str, &str)]| requires_python(repo(files).path());
        let project = "[project]\nname = 'x'\nrequires-python = '>=3.12'\n";
        assert_eq!(range(&[("pyproject.toml", project)]), Some((">=3.12".to_owned(), "pyproject.toml")));
        let sdist = "Metadata-Version: 2.1\nRequires-Python: >=3.7\n\nRequires-Python: no\n";
        assert_eq!(range(&[("PKG-INFO", sdist)]).unwrap().0, ">=3.7");
        assert_eq!(range(&[("setup.cfg", "[options]\npython_requires = >=3.8, <4\n")]).unwrap().0, ">=3.8, <4");
        assert_eq!(range(&[("setup.py", "setup(python_requires='>=3.9')")]).unwrap(), (">=3.9".to_owned(), "setup.py"));
        assert_eq!(range(&[("setup.py", "setup()")]), None);
    }

    #[test]
    fn title_authors_year_and_address_come_from_the_package() {
        let sdist = "Metadata-Version: 2.1\nName: emcee\nSummary: The Python ensemble sampling toolkit for MCMC\n\
                     Home-page: https://emcee.example.org\nAuthor: Daniel Foreman-Mackey and David W. Hogg\n\
                     Author-email: d@example.org\n\nAuthor: nobody\n";
        let licence = "The MIT License\n\nCopyright (c) 2010-2021 the authors\n\nIn 2099 nothing changes.\n";
        let found = facts(repo(&[("PKG-INFO", sdist), ("LICENSE.txt", licence)]).path());
        let expected = PackageFacts {
            title: Some("emcee: The Python ensemble sampling toolkit for MCMC".into()),
            authors: vec!["Daniel Foreman-Mackey".into(), "David W. Hogg".into()],
            year: Some(2021),
            url: Some("https://emcee.example.org".into()),
        };
        assert_eq!(found, expected);
        let newer = "Name: x\nAuthor-email: A B <a@example.org>, \"C D\" <c@example.org>\nHome-page: UNKNOWN\n\
                     Project-URL: Bug Tracker, https://b.example.org\nProject-URL: Homepage, https://h.example.org\n";
        let found = facts(repo(&[("PKG-INFO", newer)]).path());
        assert_eq!((found.authors, found.title.as_deref()), (vec!["A B".into(), "C D".into()], Some("x")));
        assert_eq!((found.url.as_deref(), found.year), (Some("https://h.example.org"), None));
        let project = "[project]\nname = 'y'\ndescription = 'Draws.'\nauthors = [{name = 'E F'}, {email = 'g'}]\n\
                       [project.urls]\nRepository = 'https://r.example.org'\n";
        let found = facts(repo(&[("pyproject.toml", project)]).path());
        assert_eq!((found.title.as_deref(), found.authors), (Some("y: Draws."), vec!["E F".to_owned()]));
        assert_eq!(found.url.as_deref(), Some("https://r.example.org"));
        assert_eq!(facts(repo(&[]).path()), PackageFacts::default());
    }

    #[test]
    fn console_scripts_are_read_with_the_functions_that_they_call() {
        let project = "[project.scripts]\nfit = 'pkg.cli:main'\n";
        let setup = "setup(entry_points={'console_scripts': ['draw=pkg.draw:run [plot]', 'x = pkg:go']})";
        let cfg = "[options.entry_points]\nconsole_scripts =\n    old = pkg.old:main\n";
        let found = scripts(repo(&[("pyproject.toml", project), ("setup.py", setup), ("setup.cfg", cfg)]).path());
        let all: Vec<String> = found.into_iter().map(|(name, target)| format!("{name}={target}")).collect();
        assert_eq!(all, ["draw=pkg.draw:run", "fit=pkg.cli:main", "old=pkg.old:main", "x=pkg:go"]);
    }

    #[test]
    fn the_readme_is_removed_from_metadata_in_its_older_and_newer_forms() {
        let older = "Metadata-Version: 1.1\nName: p\nVersion: 2.0\nDescription: P\n        =\n        \n        \
                     >>> p.f(1)\n        2\n        \nKeywords: x\nRequires-Dist: six\n";
        let unindented = "Name: p\nDescription: P\n>>> p.f(1)\n2\nKeywords: x\n";
        let windows = "Name: p\r\nVersion: 2.0\r\n\r\n>>> p.f(1)\r\n2\r\n";
        let spaces = "Name: p\n  \n>>> p.f(1)\n2\n";
        let licence = "Name: p\nLicense: MIT\n        \n        As is.\nRequires-Python: >=3.8\n\ntext\n";
        for (info, expected) in [
            (older, "Metadata-Version: 1.1\nName: p\nVersion: 2.0\nKeywords: x\nRequires-Dist: six"),
            (unindented, "Name: p\nKeywords: x"),
            (windows, "Name: p\nVersion: 2.0"),
            (spaces, "Name: p"),
            (licence, "Name: p\nLicense: MIT\n        \n        As is.\nRequires-Python: >=3.8"),
        ] {
            let folder = repo(&[("PKG-INFO", info)]);
            assert_eq!(metadata_fields(folder.path()).as_deref(), Some(expected));
        }
    }
}
