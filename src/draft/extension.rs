//! Detects whether a repository contains code to be compiled, and the command that compiles it.
//!
//! setuptools can build in place. Other build systems (meson, scikit-build, maturin) can only make wheels. The shared
//! libraries in such a wheel are copied next to the sources, so that Python imports the repo's own files instead of
//! installed copies.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::metadata::{build_backend, build_requires, text};

/// How to build a repository's compiled code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Command that builds the code. It is run in the repo's root.
    pub command: String,
    /// Packages that this command needs.
    pub requirements: Vec<String>,
    /// The evidence that the repository has code to build, as a text for the user.
    pub because: String,
}

/// Packages that some build systems need even if the project does not declare them. Each key is a part of the build
/// backend's name.
const TOOLS: [(&str, &[&str]); 3] =
    [("mesonpy", &["meson", "ninja"]), ("scikit_build", &["cmake", "ninja"]), ("skbuild", &["cmake", "ninja"])];

/// Detects how to build a repository; returns `None` if there is nothing to build.
#[must_use]
pub fn extension(repo: &Path) -> Option<Extension> {
    let backend = build_backend(repo).unwrap_or_default();
    let sources = sources(repo);
    let setup = text(repo, "setup.py").unwrap_or_default();
    let declared = text(repo, "pyproject.toml").is_some_and(|toml| toml.contains("ext-modules"));
    let because = |what: &str| match sources.first() {
        Some(file) => format!("{what}, `{}`", file.display()),
        None => what.to_owned(),
    };
    let (command, because) = if let Some((_, name)) = other(&backend, &sources) {
        (wheel(repo), because(&format!("`pyproject.toml` builds with {name}")))
    } else if ["ext_modules", "Extension(", "cythonize("].iter().any(|sign| setup.contains(sign)) {
        ("python setup.py build_ext --inplace".to_owned(), because("`setup.py` has extension modules"))
    } else if declared {
        let call = "python -c 'import setuptools; setuptools.setup()' build_ext --inplace";
        (call.to_owned(), because("`pyproject.toml` has extension modules"))
    } else {
        return None;
    };
    let mut requirements = build_requires(repo);
    let mut need = |name: &str| {
        if !requirements.iter().any(|one| name_of(one) == name) {
            requirements.push(name.to_owned());
        }
    };
    match TOOLS.iter().find(|(part, _)| backend.contains(part)) {
        Some((_, tools)) => tools.iter().for_each(|tool| need(tool)),
        None if command.contains("setup") => need("setuptools"),
        None => {}
    }
    if command.contains("pip install") {
        need("pip");
    }
    if command.contains("setup") {
        for (sign, name) in [("cython", "cython"), ("numpy", "numpy")] {
            if setup.to_ascii_lowercase().contains(&format!("import {sign}"))
                || setup.to_ascii_lowercase().contains(&format!("from {sign}"))
            {
                need(name);
            }
        }
    }
    // Skip this package: it only selects an old version of NumPy, which may conflict with the experiments' version.
    requirements.retain(|one| name_of(one) != "oldest-supported-numpy");
    Some(Extension { command, requirements, because })
}

/// Returns `packages`, followed by those packages of `more` that `packages` doesn't contain in any version.
#[must_use]
pub fn joined(packages: &[String], more: &[String]) -> Vec<String> {
    let mut all = packages.to_vec();
    all.extend(more.iter().filter(|one| !packages.iter().any(|known| name_of(known) == name_of(one))).cloned());
    all
}

/// Returns the paths of the shared libraries in a repository.
#[must_use]
pub fn libraries(repo: &Path) -> Vec<PathBuf> {
    with_endings(repo, &["so"])
}

/// Returns the package name in a requirement, normalised as package indexes do.
fn name_of(requirement: &str) -> String {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    requirement[..end.unwrap_or(requirement.len())].to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Returns the build system if it can only make wheels and there are sources to compile: the part of the build
/// backend's name by which it was recognised, and its readable name.
fn other<'a>(backend: &'a str, sources: &[PathBuf]) -> Option<(&'a str, &'static str)> {
    let known = [
        ("mesonpy", "meson"),
        ("scikit_build_core", "scikit-build"),
        ("skbuild", "scikit-build"),
        ("maturin", "maturin"),
        ("setuptools_rust", "setuptools-rust"),
        ("py_build_cmake", "py-build-cmake"),
    ];
    let (part, name) = known.into_iter().find(|(part, _)| backend.contains(part))?;
    (!sources.is_empty()).then_some((part, name))
}

/// Returns a shell command that builds a wheel and copies the shared libraries in it next to the sources.
fn wheel(repo: &Path) -> String {
    let to = if repo.join("src").is_dir() && !repo.join("src/__init__.py").exists() { "/src" } else { "" };
    format!(
        "python -m pip install --quiet --no-index --no-deps --no-build-isolation --target /tmp/built . && (cd /tmp/built \
         && find . -name '*.so' -exec cp --parents -t \"$OLDPWD{to}\" {{}} +)"
    )
}

/// Returns the source files in compiled languages.
fn sources(repo: &Path) -> Vec<PathBuf> {
    with_endings(repo, &["pyx", "c", "cc", "cpp", "cxx", "f", "f90", "rs"])
}

fn with_endings(repo: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let walk = WalkDir::new(repo).sort_by_file_name().into_iter();
    let seen = walk.filter_entry(|entry| {
        let name = entry.file_name().to_str();
        entry.depth() == 0 || !name.is_some_and(|name| crate::workspace::is_left_out(name) || name == "tests")
    });
    let paths = seen.flatten().filter(|entry| entry.file_type().is_file()).filter_map(|entry| {
        let ending = entry.path().extension()?.to_str()?.to_ascii_lowercase();
        endings.contains(&ending.as_str()).then(|| entry.path().strip_prefix(repo).unwrap_or(entry.path()).to_owned())
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Option<Extension> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        extension(folder.path())
    }

    #[test]
    fn a_setup_with_extensions_is_built_in_place() {
        let setup =
            "from setuptools import setup, Extension\nimport numpy\nsetup(ext_modules=[Extension('a._x', ['a/x.c'])])";
        let extension = found(&[("setup.py", setup), ("a/x.c", "")]).unwrap();
        assert_eq!(extension.command, "python setup.py build_ext --inplace");
        assert_eq!(extension.requirements, ["setuptools", "numpy"]);
        assert_eq!(extension.because, "`setup.py` has extension modules, `a/x.c`");
        let toml =
            "[build-system]\nrequires = ['setuptools>=61', 'Cython>=3']\n[[tool.setuptools.ext-modules]]\nname = 'x'\n";
        let extension = found(&[("pyproject.toml", toml), ("x.pyx", "")]).unwrap();
        assert!(extension.command.starts_with("python -c 'import setuptools;"));
        assert_eq!(extension.requirements, ["setuptools>=61", "Cython>=3"]);
    }

    #[test]
    fn build_systems_other_than_setuptools_make_a_wheel_whose_libraries_are_copied() {
        let toml = "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n";
        let extension = found(&[("pyproject.toml", toml), ("src/p/__init__.py", ""), ("src/p/x.c", "")]).unwrap();
        assert!(extension.command.ends_with("cp --parents -t \"$OLDPWD/src\" {} +)"), "{}", extension.command);
        assert_eq!(extension.requirements, ["meson-python", "meson", "ninja", "pip"]);
        assert_eq!(found(&[("pyproject.toml", toml), ("p/__init__.py", "")]), None, "nothing to compile");
    }

    #[test]
    fn pure_python_needs_no_build() {
        let toml = "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n";
        assert_eq!(found(&[("pyproject.toml", toml), ("setup.py", "setup()"), ("docs/plot.c", "")]), None);
    }

    #[test]
    fn requirement_lists_are_joined_without_repeating_a_package() {
        let all = joined(&["Numpy==2".into(), "a_b".into()], &["numpy>=1".into(), "a-b>1".into(), "cython".into()]);
        assert_eq!(all, ["Numpy==2", "a_b", "cython"]);
    }
}
