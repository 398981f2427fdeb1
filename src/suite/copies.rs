//! Finds the paper's own code among the packages of its environment, where agents could read the masked functions: by
//! package names before the environment is built, and by name and content afterwards.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use autoexperiment_init::left_out::is_left_out;

use super::{Bodies, LoadedPaper};
use crate::code::CodeTokens;
use crate::error::Error;

/// A file counts as a copy of a masked function if it contains at least this share of the function's body.
const COPY: f64 = 0.9;

/// Maximum size of a file that is compared, in bytes.
const LARGEST: u64 = 4 << 20;

const HINT: &str = "leave it out of the environment: agents would find the masked functions there";

/// Reports packages in the env's lock files or `environment.yml` that are named like the paper's own package.
#[must_use]
pub fn listed(loaded: &LoadedPaper) -> Vec<Error> {
    let own = own_names(loaded);
    let mut found = Vec::new();
    for file in ["environment.yml", "conda.lock", "venv.lock"] {
        let path = loaded.env_dir.join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let packages: BTreeSet<String> = text
            .lines()
            .filter_map(|line| {
                let line = line.trim();
                // In `environment.yml`, only list items name packages; its line `name:` names the env.
                let item = line.strip_prefix("- ").filter(|_| file != "venv.lock").map(|item| {
                    ["name: ", "pypi: ", "conda: "].iter().find_map(|key| item.strip_prefix(key)).unwrap_or(item)
                });
                let named = if file == "environment.yml" { None } else { line.strip_prefix("name = ") };
                item.or(named)
            })
            .map(package)
            .collect();
        found.extend(packages.intersection(&own).map(|name| {
            Error::suite(format!("the environment has a package `{name}`, which is the paper's own"))
                .at(&path, None)
                .hint(HINT)
        }));
    }
    found
}

/// Returns the normalised name of the package in a requirement: `numpy==2.2.6`, `conda-forge::scipy`, `-e ../pkg`, `pkg
/// @ file:///tmp/pkg`, `git+https://host/pkg.git`, `https://host/pkg-1.0-py3-none-any.whl`.
fn package(requirement: &str) -> String {
    let mut text = requirement.trim().trim_matches(['"', '\'']);
    for option in ["--editable ", "--editable=", "-e "] {
        text = text.strip_prefix(option).unwrap_or(text).trim();
    }
    if let Some((_, egg)) = text.split_once("#egg=") {
        text = egg;
    } else if let Some((name, _)) = text.split_once('@').filter(|(name, _)| !name.contains('/')) {
        text = name;
    } else if text.contains('/') || text.starts_with('.') {
        let path = text.split(['#', '?']).next().unwrap_or(text).trim_end_matches(['/', '.']);
        let last = path.rsplit('/').next().unwrap_or(path).split('@').next().unwrap_or(path);
        // Only archives have a version after their name.
        let is_archive = [".whl", ".gz", ".zip", ".conda", ".bz2"].iter().any(|ending| last.ends_with(ending));
        let end = if is_archive { version_at(last) } else { None };
        text = last[..end.unwrap_or(last.len())].trim_end_matches(".git");
    }
    let text = text.rsplit("::").next().unwrap_or(text);
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || "-_.".contains(letter)));
    normalised(&text[..end.unwrap_or(text.len())])
}

/// Returns the position of the dash before an archive's version.
fn version_at(name: &str) -> Option<usize> {
    let bytes = name.as_bytes();
    bytes.windows(2).position(|pair| pair[0] == b'-' && pair[1].is_ascii_digit())
}

/// Reports errors if a built environment contains the paper's own packages, modules or masked functions. `prefix` is
/// the environment's folder, which contains `lib/python3.*/site-packages`.
#[must_use]
pub fn installed(loaded: &LoadedPaper, prefix: &Path) -> Vec<Error> {
    let own = own_names(loaded);
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let sites: Vec<PathBuf> = entries(&prefix.join("lib")).map(|python| python.join("site-packages")).collect();
    let mut named: Vec<PathBuf> = sites
        .iter()
        .flat_map(|site| entries(site).collect::<Vec<_>>())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Handles names such as `package`, `module.py`, `name-1.0.dist-info`, `name.egg-link` and
            // `__editable__.name-1.0.pth`.
            let name = name.trim_start_matches("__editable__.").trim_start_matches("__editable___");
            let end = name.find(".py").or_else(|| name.find(".egg")).or_else(|| name.find('-')).unwrap_or(name.len());
            own.contains(&normalised(&name[..end]))
        })
        .collect();
    named.sort();
    let by_content = copied(loaded, &sites, &named);
    let by_name = named.into_iter().map(|path| {
        Error::suite("the env contains a package of the same name as the paper's own package").at(path, None).hint(HINT)
    });
    by_name.chain(by_content).collect()
}

/// Reports installed files that contain a masked function's body. Reads only files outside of the `known` folders, and
/// compares only files that define a function with the name of a masked function. Names that begin with `__`, such as
/// `__init__`, do not count.
fn copied(loaded: &LoadedPaper, sites: &[PathBuf], known: &[PathBuf]) -> Vec<Error> {
    let bodies = Bodies::new(loaded);
    let name = |at: &str| -> Option<String> {
        let (_, function) = at.split_once("::")?;
        let last = function.split(['#', '[']).next()?.rsplit('.').next()?;
        (!last.starts_with("__")).then(|| regex::escape(last))
    };
    let names: BTreeSet<String> = loaded.paper.units.iter().filter_map(|unit| name(&unit.at)).collect();
    let defined = format!(r"\bdef\s+(?:{})\s*\(", names.into_iter().collect::<Vec<_>>().join("|"));
    let Ok(defined) = regex::bytes::Regex::new(&defined) else { return Vec::new() };
    let mut found: BTreeMap<usize, PathBuf> = BTreeMap::new();
    let files = sites.iter().flat_map(|site| walkdir::WalkDir::new(site).sort_by_file_name());
    for entry in files.flatten() {
        let path = entry.path();
        let is_code = entry.file_type().is_file() && path.extension().is_some_and(|ending| ending == "py");
        let is_short = || entry.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST);
        if !is_code || !is_short() || known.iter().any(|known| path.starts_with(known)) {
            continue;
        }
        let Some(bytes) = std::fs::read(path).ok().filter(|bytes| defined.is_match(bytes)) else { continue };
        for function in copied_in(&bodies, &bytes) {
            found.entry(function).or_insert_with(|| path.to_owned());
        }
    }
    let error = |(function, path): (usize, PathBuf)| {
        let unit = &loaded.paper.units[function];
        Error::suite(format!("{} `{}` is installed in the environment", unit.kind(), unit.at)).at(path, None).hint(HINT)
    };
    found.into_iter().map(error).collect()
}

/// Reports a function or region if another file of the repo that agents see contains at least nine tenths of its body.
#[must_use]
pub fn visible(loaded: &LoadedPaper) -> Vec<Error> {
    let (bodies, hidden) = (Bodies::new(loaded), loaded.paper.hidden_set());
    let mut found: BTreeMap<usize, PathBuf> = BTreeMap::new();
    let is_seen =
        |entry: &walkdir::DirEntry| entry.depth() == 0 || !entry.file_name().to_str().is_some_and(is_left_out);
    let walk = walkdir::WalkDir::new(&loaded.repo_dir).sort_by_file_name().into_iter();
    for entry in walk.filter_entry(is_seen).flatten() {
        let Ok(path) = entry.path().strip_prefix(&loaded.repo_dir) else { continue };
        let is_code = entry.file_type().is_file() && path.extension().is_some_and(|ending| ending == "py");
        if !is_code || hidden.is_match(path) || !entry.metadata().is_ok_and(|metadata| metadata.len() <= LARGEST) {
            continue;
        }
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        for function in copied_in(&bodies, &bytes) {
            if loaded.source(function).path() != path {
                found.entry(function).or_insert_with(|| path.to_owned());
            }
        }
    }
    let error = |(function, path): (usize, PathBuf)| {
        let unit = &loaded.paper.units[function];
        Error::suite(format!("the body of {} `{}` is also in a file that agents see", unit.kind(), unit.at))
            .at(loaded.repo_dir.join(path), None)
            .hint("name the file in `hidden`, or leave it out of the repo")
    };
    found.into_iter().map(error).collect()
}

/// Returns the indices of the functions and regions with at least nine tenths of their body in this text.
fn copied_in(bodies: &Bodies, text: &[u8]) -> BTreeSet<usize> {
    let mut hits: BTreeMap<(usize, usize), HashSet<usize>> = BTreeMap::new();
    bodies.hits(&CodeTokens::new(text), &mut |hit| {
        hits.entry((hit.function, hit.way)).or_default().insert(hit.shingle);
    });
    let is_copy = |((function, way), shingles): ((usize, usize), HashSet<usize>)| {
        (shingles.len() as f64 >= COPY * bodies.sizes[function][way] as f64).then_some(function)
    };
    hits.into_iter().filter_map(is_copy).collect()
}

/// Returns the names of the packages and modules that can be imported from the repo's root or from its `src`, `lib` or
/// `python`, and the project's name.
fn own_names(loaded: &LoadedPaper) -> BTreeSet<String> {
    let repo = &loaded.repo_dir;
    let mut names = BTreeSet::new();
    for root in [repo.to_owned(), repo.join("src"), repo.join("lib"), repo.join("python")] {
        for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_module = path.extension().is_some_and(|ending| ending == "py");
            if path.join("__init__.py").is_file() || is_module {
                names.insert(normalised(&path.file_stem().unwrap_or_default().to_string_lossy()));
            }
        }
    }
    // Also add the names of the packages that contain masked functions: the loop above misses packages without an
    // `__init__.py`.
    for place in 0..loaded.paper.units.len() {
        let path = loaded.source(place).path();
        let path = ["src", "lib", "python"].iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let first = path.iter().next().map(Path::new).and_then(Path::file_stem);
        names.extend(first.map(|name| normalised(&name.to_string_lossy())));
    }
    let read = |file: &str| std::fs::read_to_string(repo.join(file)).unwrap_or_default();
    if let Ok(project) = read("pyproject.toml").parse::<toml::Table>() {
        let name = |table: Option<&toml::Value>| table?.get("name")?.as_str().map(normalised);
        names.extend(name(project.get("project")));
        names.extend(name(project.get("tool").and_then(|tool| tool.get("poetry"))));
    }
    for file in ["setup.cfg", "setup.py"] {
        let text = read(file);
        let named = text.lines().filter_map(|line| line.trim().strip_prefix("name")?.trim_start().strip_prefix('='));
        names.extend(named.map(|name| normalised(name.trim().trim_matches([',', '"', '\'']))));
    }
    // Remove names that many repos use, because they do not identify the paper's own package.
    for common in ["setup", "conftest", "tests", "test", "main", "utils", "scripts", "examples", "--init--", ""] {
        names.remove(common);
    }
    names
}

/// Normalises a package's name as in PEP 503.
fn normalised(name: &str) -> String {
    name.to_lowercase().replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::package;

    #[test]
    fn the_name_of_a_package_is_read_from_every_kind_of_requirement() {
        for requirement in [
            "my-pkg==1.0",
            "My_Pkg>=1",
            "conda-forge::my.pkg=1.0",
            "-e ../repos/my-pkg",
            "./my_pkg/",
            "my-pkg @ file:///tmp/elsewhere",
            "my-pkg[extra] @ https://host/a.zip",
            "git+https://host/someone/my-pkg.git@v1",
            "git+https://host/someone/else.git#egg=my-pkg",
            "https://host/my_pkg-1.0-py3-none-any.whl",
            "https://host/channel/my-pkg-1.0-0.conda",
            "\"my-pkg\"",
        ] {
            assert_eq!(package(requirement), "my-pkg", "{requirement}");
        }
        assert_eq!(package("my-pkgs"), "my-pkgs");
    }
}
