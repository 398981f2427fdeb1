//! Finds the packages that a paper's tests import, directly or through the paper's own code, and the reasons why a
//! paper cannot run here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::read::TEST;

/// For each imported module, the package to install, in the version with which the published tests were tried out.
const PACKAGES: [(&str, &str); 15] = [
    ("IPython", "ipython==9.18.1"),
    ("PIL", "pillow==13.0.0"),
    ("flax", "flax==0.12.12"),
    ("jax", "jax==0.12.0.1"),
    ("matplotlib", "matplotlib==3.11.2"),
    ("ml_collections", "ml_collections==1.1.0"),
    ("numpy", "numpy==2.5.5"),
    ("pandas", "pandas==3.1.1"),
    ("pyarrow", "pyarrow==26.0.1"),
    ("scipy", "scipy==1.18.1"),
    ("timm", "timm==1.0.31"),
    ("torch", "torch==2.15.0"),
    ("torchvision", "torchvision==0.29.2"),
    ("tqdm", "tqdm==4.70.1"),
    ("typing_extensions", "typing_extensions==4.16.0"),
];

/// Other modules that research code often imports, with the packages that contain them.
const WELL_KNOWN: [(&str, &str); 25] = [
    ("absl", "absl-py"),
    ("accelerate", "accelerate"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("datasets", "datasets"),
    ("diffusers", "diffusers"),
    ("einops", "einops"),
    ("h5py", "h5py"),
    ("huggingface_hub", "huggingface_hub"),
    ("hydra", "hydra-core"),
    ("jaxtyping", "jaxtyping"),
    ("joblib", "joblib"),
    ("networkx", "networkx"),
    ("numba", "numba"),
    ("omegaconf", "omegaconf"),
    ("optax", "optax"),
    ("requests", "requests"),
    ("safetensors", "safetensors"),
    ("seaborn", "seaborn"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("transformers", "transformers"),
    ("yaml", "pyyaml"),
];

/// Modules that no package provides for current versions of Python.
const UNAVAILABLE: [&str; 4] = ["_gmflow_ops", "meltingpot", "mmcv", "mmgen"];

/// Calls that download something, by which a paper that needs the network is recognised.
const DOWNLOADS: [&str; 5] =
    ["torch.hub.load(", "requests.get(", "load_state_dict_from_url(", "urlretrieve(", "hf_hub_download("];

/// Packages that a paper needs.
#[derive(Debug, Default)]
pub struct Needs {
    /// The packages to install, as requirements.
    pub packages: BTreeSet<String>,
    /// Imported modules that are neither in the standard library nor in a known package. A package of the same name may
    /// contain something else, so it is not required.
    pub unknown: BTreeSet<String>,
    /// Why the paper cannot run here, with the file and line that shows it.
    pub refused: Option<String>,
}

/// Finds the packages that the tests of the paper in a folder need.
pub fn needs(folder: &Path) -> Needs {
    let mut needs = Needs::default();
    let mut todo = vec![PathBuf::from(TEST)];
    let mut seen = BTreeSet::new();
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    while let Some(file) = todo.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        let text = std::fs::read(folder.join(&file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        for (number, line) in text.lines().enumerate() {
            let place = || format!("{}:{}", file.display(), number + 1);
            let code = line.split('#').next().unwrap_or_default();
            if let Some(call) = DOWNLOADS.iter().find(|call| code.contains(**call)) {
                let call = call.trim_end_matches('(');
                needs
                    .refused
                    .get_or_insert_with(|| format!("its tests import code that downloads: `{call}` in {}", place()));
            }
            for module in imported(code, &file) {
                let own = files_of(folder, &module);
                if !own.is_empty() {
                    todo.extend(own);
                    continue;
                }
                let first = module.split('.').next().unwrap_or_default().to_owned();
                if UNAVAILABLE.contains(&first.as_str()) {
                    missing.entry(first).or_insert_with(place);
                } else if let Some(package) = package_of(&first) {
                    needs.packages.insert(package.to_owned());
                } else if !is_standard(&first) && !folder.join(&first).exists() {
                    needs.unknown.insert(first);
                }
            }
        }
        if text.contains("read_parquet") {
            needs.packages.extend(package_of("pyarrow").map(str::to_owned));
        }
    }
    if !missing.is_empty() {
        let named: Vec<String> = missing.iter().map(|(name, place)| format!("`{name}` ({place})")).collect();
        needs.refused =
            Some(format!("its tests need {}, which no package of a current Python provides", named.join(", ")));
    }
    needs
}

/// Returns the package to install for a module, if a table contains the module.
fn package_of(module: &str) -> Option<&'static str> {
    PACKAGES.iter().chain(&WELL_KNOWN).find(|(name, _)| *name == module).map(|(_, package)| *package)
}

/// Returns the dotted names that a line imports. For `from a import b`, these are `a` and `a.b`, because `b` may be a
/// module. Relative names are resolved by the path of the file.
fn imported(code: &str, file: &Path) -> Vec<String> {
    let code = code.trim();
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || it == '_' || it == '.');
    let plain =
        |name: &str| name.split_whitespace().next().unwrap_or_default().trim_matches(['(', ')', ',']).to_owned();
    if let Some(rest) = code.strip_prefix("import ") {
        return rest.split(',').map(plain).filter(|name| is_name(name)).collect();
    }
    let Some((from, names)) = code.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) else {
        return Vec::new();
    };
    let from = from.trim();
    let dots = from.len() - from.trim_start_matches('.').len();
    let mut base: Vec<String> = Vec::new();
    if dots > 0 {
        let around = file.parent().unwrap_or(Path::new("")).iter().map(|part| part.to_string_lossy().into_owned());
        base = around.collect();
        base.truncate((base.len() + 1).saturating_sub(dots));
    }
    base.extend(from.trim_start_matches('.').split('.').filter(|part| !part.is_empty()).map(str::to_owned));
    let base = base.join(".");
    if !is_name(&base) {
        return Vec::new();
    }
    let inner = names.split(',').map(plain).filter(|name| is_name(name)).map(|name| format!("{base}.{name}"));
    std::iter::once(base.clone()).chain(inner).collect()
}

/// Returns the paper's files that Python reads when it imports this dotted name, including the files of packages that
/// contain the module.
fn files_of(folder: &Path, module: &str) -> Vec<PathBuf> {
    let parts: Vec<&str> = module.split('.').collect();
    let mut found = Vec::new();
    for end in 1..=parts.len() {
        let path: PathBuf = parts[..end].iter().collect();
        let candidates = [path.with_extension("py"), path.join("__init__.py")];
        found.extend(candidates.into_iter().filter(|file| folder.join(file).is_file()));
    }
    found
}

/// Whether a module belongs to the standard library of a version of Python from 3.10 to 3.14.
fn is_standard(name: &str) -> bool {
    include_str!("standard_modules.txt").lines().any(|module| module == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_packages_are_required_and_other_modules_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = "import zipfile, socket, timeit\nfrom http import client\nimport shlex, secrets, cv2, yaml\n\
                    from sklearn.svm import SVC\nimport torch.nn as nn\nimport some_module.part\nimport model\n";
        std::fs::write(folder.path().join(TEST), text).unwrap();
        std::fs::write(folder.path().join("model.py"), "import tkinter\n").unwrap();
        let found = needs(folder.path());
        let packages: Vec<&str> = found.packages.iter().map(String::as_str).collect();
        assert_eq!(packages, ["opencv-python-headless", "pyyaml", "scikit-learn", "torch==2.15.0"]);
        assert_eq!(found.unknown.into_iter().collect::<Vec<_>>(), ["some_module"]);
        assert_eq!(found.refused, None);
    }
}
