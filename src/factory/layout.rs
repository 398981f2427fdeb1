//! How a package runs from its sources without being installed: the folder from which it is imported, and the files
//! that a build would have made (metadata with entry points, and files that state the version).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use toml::{Table, Value};
use walkdir::WalkDir;

use super::VENDORED;
use super::index::{is_package_name, normalised};
use super::version::has_version_characters;
use crate::draft::metadata::{metadata_fields, scripts, text};
use crate::error::{Error, Result};
use crate::workspace::is_left_out;

/// Folders of a project that are never its package.
const NOT_PACKAGES: [&str; 18] = [
    "test",
    "tests",
    "testing",
    "doc",
    "docs",
    "example",
    "examples",
    "benchmark",
    "benchmarks",
    "script",
    "scripts",
    "tool",
    "tools",
    "build",
    "dist",
    "ci",
    "tasks",
    "notebooks",
];

/// Files in a project's root that are never modules of its package.
const NOT_MODULES: [&str; 8] =
    ["setup", "conftest", "noxfile", "tasks", "fabfile", "versioneer", "runtests", "ez_setup"];

/// A package's name and version, and where its modules are in its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// The package's name in the package index.
    pub(super) name: String,
    /// Version of the package; `0` if nothing states it.
    pub(super) version: String,
    /// Folder from which the package is imported, relative to the sources; empty for the root of the sources.
    pub(super) root: PathBuf,
    /// Names under which the package's modules are imported: top-level folders and files in `root`.
    pub(super) modules: Vec<String>,
    /// Whether the repo contains copies of packages that this package requires, in the folder [`VENDORED`].
    pub(super) has_vendored: bool,
}

/// Finds a package's name, version and modules.
///
/// # Errors
/// Kind `Suite` if the folder has no importable package, or if the package's name is invalid.
pub(super) fn find(folder: &Path) -> Result<Layout> {
    let project: Table = text(folder, "pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
    let of = |key: &str| {
        let from = |table: Option<&Value>| Some(table?.get(key)?.as_str()?.to_owned());
        header(folder, key)
            .or_else(|| from(project.get("project")))
            .or_else(|| from(project.get("tool").and_then(|tool| tool.get("poetry"))))
            .or_else(|| in_ini(&text(folder, "setup.cfg")?, key))
            .or_else(|| in_setup(&text(folder, "setup.py")?, key))
    };
    let name = of("name").unwrap_or_else(|| {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        folder.split("-0").next().unwrap_or(&folder).to_owned()
    });
    let version = of("version").filter(|version| is_version(version)).unwrap_or_else(|| "0".to_owned());
    let told = top_level(folder);
    let mut roots = vec![PathBuf::from("src"), PathBuf::new(), PathBuf::from("lib"), PathBuf::from("python")];
    roots.retain(|root| folder.join(root).is_dir() && !folder.join(root).join("__init__.py").exists());
    let own = normalised(&name).replace('-', "_");
    let mut best: Option<(usize, PathBuf, Vec<String>)> = None;
    for root in roots {
        let found = modules(&folder.join(&root));
        let named: Vec<String> = found.iter().filter(|module| told.contains(module)).cloned().collect();
        let like: Vec<String> =
            found.iter().filter(|module| module.to_lowercase().replace('.', "_") == own).cloned().collect();
        // Prefer the modules that `top_level.txt` lists, then modules that are named like the package.
        let (rank, chosen) = if !named.is_empty() {
            (3, named)
        } else if !like.is_empty() {
            (2, like)
        } else if !found.is_empty() {
            (1, found)
        } else {
            continue;
        };
        if best.as_ref().is_none_or(|(known, _, _)| rank > *known) {
            best = Some((rank, root, chosen));
        }
    }
    let (_, root, modules) = best.ok_or_else(|| {
        Error::suite(format!("`{name}` has no importable package in its sources"))
            .hint("a package is a folder with Python files, in the root or in `src`")
    })?;
    require_name(&name)?;
    Ok(Layout { name, version, root, modules, has_vendored: false })
}

/// Whether a text can be a package's version, which is also part of paths and of names of tags.
fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && has_version_characters(text)
}

/// Checks a package's name, which becomes part of paths.
fn require_name(name: &str) -> Result<()> {
    if is_package_name(name) {
        return Ok(());
    }
    Err(Error::suite(format!("`{name}` is not a valid name of a package"))
        .hint("a name consists of letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit"))
}

impl Layout {
    /// Returns the layout of a package in the root of its sources.
    #[cfg(test)]
    pub(super) fn of_package(name: &str) -> Self {
        let (version, root) = ("1".to_owned(), PathBuf::new());
        Self { name: name.to_owned(), version, root, modules: vec![name.to_owned()], has_vendored: false }
    }

    /// Replaces the name and the version, which other sources or a list state.
    ///
    /// # Errors
    /// Kind `Suite` if the name or the version is invalid.
    pub(super) fn with_name_and_version(self, name: &str, version: &str) -> Result<Self> {
        require_name(name)?;
        if !is_version(version) {
            return Err(Error::suite(format!("`{version}` is not a valid version of a package")));
        }
        Ok(Self { name: name.to_owned(), version: version.to_owned(), ..self })
    }

    /// Writes the files that an installed package has and its sources lack: a `.dist-info` folder, and version files.
    /// Also cuts the root's `PKG-INFO` after its fields, because the README that follows them may show outputs of
    /// examples.
    ///
    /// # Errors
    /// Kind `Machine` if a file cannot be written.
    pub(super) fn complete(&self, sources: &Path, repo: &Path) -> Result<()> {
        self.write_metadata(sources, &repo.join(&self.root))?;
        if let Some(head) = metadata_fields(sources) {
            write(&repo.join("PKG-INFO"), &format!("{}\n", head.trim_end()))?;
        }
        for file in version_files(sources).into_iter().chain(self.imported_versions(repo)) {
            let path = repo.join(&file);
            if !path.exists() && path.parent().is_some_and(Path::is_dir) {
                write(&path, &version_file(&self.version))?;
            }
        }
        Ok(())
    }

    /// Writes the `.dist-info` folder of the installed package, in the folder from which it is imported.
    ///
    /// # Errors
    /// Kind `Machine` if a file cannot be written.
    pub(super) fn write_metadata(&self, sources: &Path, root: &Path) -> Result<()> {
        let info = root.join(format!("{}-{}.dist-info", self.name.replace('-', "_"), self.version));
        fs::create_dir_all(&info).map_err(|error| Error::io("create", &info, error))?;
        let metadata = metadata_fields(sources)
            .unwrap_or_else(|| format!("Metadata-Version: 2.1\nName: {}\nVersion: {}", self.name, self.version));
        write(&info.join("METADATA"), &format!("{}\n", metadata.trim_end()))?;
        write(&info.join("top_level.txt"), &format!("{}\n", self.modules.join("\n")))?;
        let points = entry_points(sources);
        if points.is_empty() { Ok(()) } else { write(&info.join("entry_points.txt"), &points) }
    }

    /// Returns the modules from which the package's `__init__.py` imports the version. The sources may lack them,
    /// because a build writes them.
    fn imported_versions(&self, repo: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for module in &self.modules {
            let folder = self.root.join(module.split('.').collect::<PathBuf>());
            let Some(code) = text(repo, &folder.join("__init__.py").display().to_string()) else { continue };
            let names = r"(_?_?version(?:_info)?(?:__)?|_version_meson)";
            let package = regex::escape(module);
            let import = Regex::new(&format!(
                r"(?m)^\s*(?:from\s+(?:\.|{package}\.){names}\s+import|from\s+(?:\.|{package})\s+import\s+{names}\s*$|import\s+{package}\.{names})"
            ));
            let captures = import.ok().map(|import| {
                import
                    .captures_iter(&code)
                    .map(|it| it.iter().skip(1).flatten().next().map(|name| name.as_str().to_owned()))
                    .collect::<Vec<_>>()
            });
            for name in captures.into_iter().flatten().flatten() {
                if !repo.join(&folder).join(&name).is_dir() {
                    found.push(folder.join(format!("{name}.py")));
                }
            }
        }
        found
    }

    /// Returns shell code that lets Python import the package from the workspace, whatever the working folder is later.
    pub(super) fn exports(&self) -> String {
        let root = self.root.display().to_string();
        let mut path = if root.is_empty() { "$PWD".to_owned() } else { format!("$PWD/{root}:$PWD") };
        if self.has_vendored {
            let _ = write!(path, ":$PWD/{VENDORED}");
        }
        format!("export PYTHONPATH=\"{path}${{PYTHONPATH:+:$PYTHONPATH}}\"")
    }

    /// Returns the name under which Python imports this file of the package; `None` for other files, and for
    /// `__main__.py`, whose import would run the package's command.
    pub(super) fn module_of(&self, path: &Path) -> Option<String> {
        let inside = path.strip_prefix(&self.root).ok()?;
        if !self.holds(path) || inside.extension()? != "py" {
            return None;
        }
        let without_extension = inside.with_extension("");
        let mut parts: Vec<&str> = without_extension.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        if parts.last() == Some(&"__init__") {
            parts.pop();
        }
        let is_word = |part: &&str| part.chars().all(|c| c.is_alphanumeric() || c == '_') && **part != *"__main__";
        parts.iter().all(is_word).then(|| parts.join("."))
    }

    /// Whether a path in the repo is one of the package's source files.
    pub(super) fn holds(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.root) else { return false };
        self.modules.iter().any(|module| {
            let place: PathBuf = module.split('.').collect();
            inside.starts_with(&place) || inside == place.with_extension("py")
        })
    }
}

/// Returns the top-level modules and packages of a folder, including packages in namespaces, which are folders without
/// an `__init__.py`.
fn modules(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_identifier = |name: &str| {
            name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        if path.is_dir() {
            let is_package = path.join("__init__.py").exists() || is_namespace(&path);
            if is_identifier(&name) && !is_left_out(&name) && is_package && !is_never_package(&name) {
                found.push(name);
            }
        } else if let Some(stem) = name.strip_suffix(".py")
            && is_identifier(stem)
            && !NOT_MODULES.contains(&stem)
            && !stem.starts_with("test")
            && !stem.ends_with("_test")
        {
            found.push(stem.to_owned());
        }
    }
    found.sort();
    found
}

/// Whether a folder of this name is never a package, in whatever case its name is written.
fn is_never_package(name: &str) -> bool {
    NOT_PACKAGES.contains(&name.to_lowercase().as_str())
}

/// Whether a folder without `__init__.py` contains a package.
fn is_namespace(folder: &Path) -> bool {
    let inner = WalkDir::new(folder).min_depth(2).max_depth(3).into_iter().flatten();
    inner.into_iter().any(|entry| entry.file_name() == "__init__.py")
}

/// Returns the names in `top_level.txt`, which setuptools writes into an sdist.
fn top_level(folder: &Path) -> Vec<String> {
    let infos = WalkDir::new(folder).max_depth(2).into_iter().flatten();
    let mut files = infos.filter(|entry| entry.file_type().is_file() && entry.file_name() == "top_level.txt");
    let text = files.next().and_then(|entry| fs::read_to_string(entry.path()).ok()).unwrap_or_default();
    let names = text.lines().map(str::trim).filter(|name| !name.is_empty() && !is_never_package(name));
    names.map(str::to_owned).collect()
}

fn header(folder: &Path, key: &str) -> Option<String> {
    let found = metadata_fields(folder)?.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.to_lowercase() == key).then(|| value.trim().to_owned())
    });
    found.filter(|value| !value.is_empty() && value != "UNKNOWN")
}

fn in_ini(said: &str, key: &str) -> Option<String> {
    let inside =
        said.lines().skip_while(|line| line.trim() != "[metadata]").skip(1).take_while(|line| !line.starts_with('['));
    let found = inside.into_iter().find_map(|line| {
        let (own, value) = line.split_once('=')?;
        (own.trim() == key).then(|| value.trim().to_owned())
    });
    found.filter(|value| !value.contains(':'))
}

fn in_setup(code: &str, key: &str) -> Option<String> {
    let named = Regex::new(&format!(r#"\b{key}\s*=\s*["']([^"'\n]+)["']"#)).ok()?;
    Some(named.captures(code)?.get(1)?.as_str().to_owned())
}

/// Returns the entry points as an installed package lists them.
fn entry_points(sources: &Path) -> String {
    let infos = WalkDir::new(sources).max_depth(3).into_iter().flatten();
    let mut written = infos.filter(|entry| {
        let parent = entry.path().parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        entry.file_type().is_file() && entry.file_name() == "entry_points.txt" && parent.ends_with(".egg-info")
    });
    if let Some(text) = written.next().and_then(|entry| fs::read_to_string(entry.path()).ok()) {
        return text;
    }
    let mut found = String::new();
    let console = scripts(sources);
    if !console.is_empty() {
        found.push_str("[console_scripts]\n");
        for (name, target) in console {
            let _ = writeln!(found, "{name} = {target}");
        }
    }
    let project: Table = text(sources, "pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
    let tables = [
        project.get("project").and_then(|project| project.get("entry-points")),
        project.get("tool").and_then(|tool| tool.get("poetry")).and_then(|poetry| poetry.get("plugins")),
    ];
    for (group, names) in tables.into_iter().flatten().filter_map(Value::as_table).flatten() {
        let _ = writeln!(found, "\n[{group}]");
        for (name, target) in names.as_table().into_iter().flatten() {
            let _ = writeln!(found, "{name} = {}", target.as_str().unwrap_or_default());
        }
    }
    found
}

/// Returns the files into which build tools write the version.
fn version_files(sources: &Path) -> Vec<PathBuf> {
    let project: Table = text(sources, "pyproject.toml").and_then(|text| text.parse().ok()).unwrap_or_default();
    let tool = |path: &[&str]| {
        let mut value = project.get("tool")?;
        for part in path {
            value = value.get(part)?;
        }
        Some(value.as_str()?.to_owned())
    };
    let named = [
        tool(&["setuptools_scm", "write_to"]),
        tool(&["setuptools_scm", "version_file"]),
        tool(&["hatch", "build", "hooks", "vcs", "version-file"]),
        tool(&["pdm", "version", "write_to"]),
        text(sources, "setup.py").and_then(|setup| {
            Regex::new(r#"["']?write_to["']?\s*[:=]\s*["']([^"']+)["']"#)
                .ok()?
                .captures(&setup)?
                .get(1)
                .map(|it| it.as_str().to_owned())
        }),
    ];
    let inside = |file: &String| !file.starts_with('/') && !file.contains("..") && !file.contains(char::is_control);
    named.into_iter().flatten().filter(inside).map(PathBuf::from).collect()
}

fn version_file(version: &str) -> String {
    let parts: Vec<String> = version
        .split('.')
        .map(|part| part.parse::<u64>().map_or_else(|_| format!("'{part}'"), |number| number.to_string()))
        .collect();
    let tuple = format!("({},)", parts.join(", "));
    format!(
        "__version__ = version = full_version = short_version = '{version}'\n__version_tuple__ = version_tuple = {tuple}\n\
         __git_version__ = git_revision = 'unknown'\nrelease = True\n\n\ndef get_versions():\n    return {{'version': version}}\n"
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::io("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn files_of_a_package_are_imported_by_their_dotted_names() {
        let layout = Layout { root: "src".into(), ..Layout::of_package("my_pkg") };
        for (path, name) in [
            ("src/my_pkg/__init__.py", Some("my_pkg")),
            ("src/my_pkg/sub/part.py", Some("my_pkg.sub.part")),
            ("src/my_pkg.py", Some("my_pkg")),
            ("src/my_pkg/__main__.py", None),
            ("src/my_pkg/a b.py", None),
            ("src/my_pkg/fast.pyx", None),
            ("tests/part.py", None),
        ] {
            assert_eq!(layout.module_of(Path::new(path)).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn packages_are_found_in_every_usual_layout() {
        let toml = "[project]\nname = 'my-pkg'\nversion = '1.2'\n";
        for (files, root, modules) in [
            (vec![("src/my_pkg/__init__.py", ""), ("tests/__init__.py", "")], "src", vec!["my_pkg"]),
            (vec![("my_pkg/__init__.py", ""), ("docs/conf.py", ""), ("setup.py", "")], "", vec!["my_pkg"]),
            (vec![("my_pkg.py", ""), ("test_my_pkg.py", "")], "", vec!["my_pkg"]),
            (vec![("src/space/inner/__init__.py", "")], "src", vec!["space"]),
            (vec![("lib/other/__init__.py", ""), ("x.egg-info/top_level.txt", "other\n")], "lib", vec!["other"]),
        ] {
            let mut files = files;
            files.push(("pyproject.toml", toml));
            let folder = sources(&files);
            let found = find(folder.path()).unwrap();
            assert_eq!(
                (found.root.to_str().unwrap(), found.modules),
                (root, modules.into_iter().map(str::to_owned).collect::<Vec<_>>())
            );
            assert_eq!((found.name.as_str(), found.version.as_str()), ("my-pkg", "1.2"));
        }
        assert!(find(sources(&[("README", "")]).path()).unwrap_err().message.contains("no importable package"));
    }

    #[test]
    fn a_version_module_that_only_a_build_writes_is_written() {
        let init = "from . import version\nfrom .core import f\nfrom p._version import __version__\n";
        let folder = sources(&[
            ("pyproject.toml", "[project]\nname = 'p'\nversion = '3.1'\n"),
            ("p/__init__.py", init),
            ("p/version.py", "own"),
        ]);
        let layout = find(folder.path()).unwrap();
        layout.complete(folder.path(), folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("p/_version.py").starts_with("__version__ = version = full_version = short_version = '3.1'\n"));
        assert_eq!(read("p/version.py"), "own");
        assert!(!folder.path().join("p/core.py").exists());
    }

    #[test]
    fn metadata_entry_points_and_version_files_are_as_the_build_would_make_them() {
        let toml = "[project]\nname = 'p'\nscripts = { run = 'p:main' }\n[tool.setuptools_scm]\nversion_file = 'p/_version.py'\n";
        let info = "Metadata-Version: 2.1\nName: p\nVersion: 2.0\n\n# p\n>>> p.f(1)\n2\n";
        let folder = sources(&[("pyproject.toml", toml), ("PKG-INFO", info), ("p/__init__.py", "")]);
        let layout = find(folder.path()).unwrap();
        layout.complete(folder.path(), folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("p-2.0.dist-info/METADATA"), "Metadata-Version: 2.1\nName: p\nVersion: 2.0\n");
        assert_eq!(read("p-2.0.dist-info/entry_points.txt"), "[console_scripts]\nrun = p:main\n");
        assert!(!read("PKG-INFO").contains(">>>"));
        assert!(read("p/_version.py").contains("__version_tuple__ = version_tuple = (2, 0,)"));
        assert!(layout.holds(Path::new("p/x.py")) && !layout.holds(Path::new("tests/x.py")));
    }

    #[test]
    fn a_package_whose_name_is_a_path_is_refused() {
        for name in ["/home/alice/project", "../../x", "a/b", ".x", "x y", "-"] {
            let info = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
            let folder = sources(&[("PKG-INFO", info.as_str()), ("p/__init__.py", "")]);
            let error = find(folder.path()).unwrap_err();
            assert_eq!(error.kind, crate::error::FailureKind::Suite);
            assert!(error.message.contains("is not a valid name of a package"), "{error}");
        }
    }

    #[test]
    fn a_version_that_contains_a_path_is_ignored() {
        for (stated, expected) in [
            ("1/../../../../home/alice/.ssh", "0"),
            ("1..2", "0"),
            ("1 2", "0"),
            ("1!2.0rc1+cpu-x_1", "1!2.0rc1+cpu-x_1"),
        ] {
            let info = format!("Metadata-Version: 2.1\nName: p\nVersion: {stated}\n");
            let folder = sources(&[("PKG-INFO", info.as_str()), ("p/__init__.py", "")]);
            assert_eq!(find(folder.path()).unwrap().version, expected);
        }
        let layout = Layout::of_package("p");
        assert_eq!(layout.clone().with_name_and_version("q", "2.1").unwrap().version, "2.1");
        for (name, version) in [("q", "1/../x"), ("q", ""), ("../q", "1"), ("", "1")] {
            assert!(layout.clone().with_name_and_version(name, version).is_err(), "{name} {version}");
        }
    }
}
