//! Finds the packages that a paper's tests import, directly or through the paper's own code, and the reasons why a
//! paper cannot run here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::read::{PublishedTask, TEST};

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
    /// Why the paper cannot run here, with the file and line that shows it.
    pub refused: Option<String>,
}

/// Finds the packages that the tests of a paper need.
pub fn needs(task: &PublishedTask) -> Needs {
    let folder = &task.folder;
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
                    needs.packages.insert(first);
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

/// Returns the package to install for a module, if the table contains the module.
fn package_of(module: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(name, _)| *name == module).map(|(_, package)| *package)
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

/// Whether a module belongs to Python's standard library. Only modules that published files use are known.
fn is_standard(name: &str) -> bool {
    const NAMES: [&str; 62] = [
        "__future__",
        "abc",
        "argparse",
        "ast",
        "asyncio",
        "base64",
        "bisect",
        "collections",
        "concurrent",
        "contextlib",
        "copy",
        "csv",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "gc",
        "glob",
        "gzip",
        "hashlib",
        "heapq",
        "importlib",
        "inspect",
        "io",
        "itertools",
        "json",
        "logging",
        "math",
        "multiprocessing",
        "numbers",
        "operator",
        "os",
        "pathlib",
        "pickle",
        "platform",
        "pprint",
        "queue",
        "random",
        "re",
        "shutil",
        "signal",
        "statistics",
        "string",
        "struct",
        "subprocess",
        "sys",
        "tarfile",
        "tempfile",
        "textwrap",
        "threading",
        "time",
        "traceback",
        "types",
        "typing",
        "unittest",
        "urllib",
        "uuid",
        "warnings",
        "weakref",
    ];
    NAMES.contains(&name)
}
