//! Proposes which functions to mask, of those that the experiments enter, and which files to protect from changes by
//! agents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::docstring::first_sentence;
use crate::code::{Module, Selector, last_part};

/// Minimum number of lines of a proposed function, without its docstring.
const FEWEST_LINES: usize = 5;

/// The functions that experiments enter. Each key is a file and the index of a function in the file's module; each
/// value contains the indices of the experiments that enter the function.
pub type ExperimentsByFunction = BTreeMap<(PathBuf, usize), BTreeSet<usize>>;

/// A function that is worth masking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCandidate {
    /// The function's selector.
    pub selector: Selector,
    /// The function's number of lines.
    pub lines: usize,
    /// Number of calls in the function's body.
    pub calls: usize,
    /// First sentence of the function's docstring.
    pub description: Option<String>,
    /// Indices of the experiments that enter the function.
    pub experiments: BTreeSet<usize>,
}

/// Why a function that experiments enter is not proposed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The function has fewer than five lines without its docstring.
    Short,
    /// The function is a test.
    Test,
    /// The function reads the command line.
    CommandLine,
    /// The function is in a protected file.
    Protected,
    /// The function is nested in a proposed function.
    Nested,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "shorter than five lines",
            Self::Test => "a test",
            Self::CommandLine => "reads the command line",
            Self::Protected => "in a protected file",
            Self::Nested => "nested in a proposed one",
        })
    }
}

/// The functions to mask and the files to protect that are proposed for a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskingProposal {
    /// Proposed functions, by file and in source order.
    pub functions: Vec<FunctionCandidate>,
    /// Functions that experiments enter but that are not proposed, with the reason.
    pub refused: Vec<(Selector, Reason)>,
    /// Globs that match the files to protect.
    pub protected: Vec<String>,
    /// Scripts that the experiments' commands run. They should be protected but are not, because otherwise no function
    /// could be proposed.
    pub open_scripts: Vec<PathBuf>,
}

/// Proposes functions to mask and files to protect. `modules` are the repo's Python files, `others` its other files,
/// and `commands` the experiments' shell commands.
#[must_use]
pub fn propose(
    modules: &BTreeMap<PathBuf, Module>,
    others: &[PathBuf],
    commands: &[String],
    entered: &ExperimentsByFunction,
) -> MaskingProposal {
    let scripts: BTreeSet<PathBuf> =
        modules.keys().filter(|path| commands.iter().any(|command| runs(command, path))).cloned().collect();
    let usual: BTreeSet<PathBuf> = modules.keys().filter(|path| is_entry(path)).cloned().collect();
    let mut closed: BTreeSet<PathBuf> = scripts.union(&usual).cloned().collect();
    let (mut functions, mut refused) = choose(modules, &closed, entered);
    let mut open_scripts = Vec::new();
    if functions.is_empty() {
        closed = usual;
        (functions, refused) = choose(modules, &closed, entered);
        open_scripts = scripts.difference(&closed).cloned().collect();
    }
    let chosen: BTreeSet<&PathBuf> = functions.iter().map(|candidate| &candidate.selector.file).collect();
    // Protect `__init__.py` files, because they decide what the names in a package refer to.
    let packages = modules.keys().filter(|path| path.ends_with("__init__.py") && !chosen.contains(path));
    let mut protected: BTreeSet<String> = others.iter().map(|path| glob(path)).collect();
    protected.extend(closed.iter().chain(packages).map(|path| literal(path)));
    MaskingProposal { functions, refused, protected: protected.into_iter().collect(), open_scripts }
}

fn choose(
    modules: &BTreeMap<PathBuf, Module>,
    closed: &BTreeSet<PathBuf>,
    entered: &ExperimentsByFunction,
) -> (Vec<FunctionCandidate>, Vec<(Selector, Reason)>) {
    let mut chosen = Vec::new();
    let mut refused = Vec::new();
    let mut places: BTreeSet<(&Path, usize)> = BTreeSet::new();
    // Functions are in source order, so when a nested function is reached, it is known whether the functions around it
    // were chosen.
    for ((path, place), experiments) in entered {
        let Some(module) = modules.get(path) else { continue };
        let Some(function) = module.functions().get(*place) else { continue };
        let mut around = function.parent;
        let mut nested = false;
        while let Some(outer) = around {
            nested |= places.contains(&(path.as_path(), outer));
            around = module.functions()[outer].parent;
        }
        let documented = function.docstring.clone().map_or(0, |range| lines(&module.source()[range]));
        let reason = if closed.contains(path) {
            Some(Reason::Protected)
        } else if is_test(path, &function.name) {
            Some(Reason::Test)
        } else if reads_command_line(module, *place) {
            Some(Reason::CommandLine)
        } else if function.lines().saturating_sub(documented) < FEWEST_LINES {
            Some(Reason::Short)
        } else if nested {
            Some(Reason::Nested)
        } else {
            None
        };
        let selector = module.selector(*place);
        if let Some(reason) = reason {
            refused.push((selector, reason));
        } else {
            places.insert((path, *place));
            chosen.push(FunctionCandidate {
                selector,
                lines: function.lines(),
                calls: module.calls(*place).len(),
                description: module.docstring(*place).and_then(|literal| first_sentence(&literal)),
                experiments: experiments.clone(),
            });
        }
    }
    (chosen, refused)
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count()
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// Whether a command runs this file: `python path/file.py`, `python -m path.file` or `python -m path`.
fn runs(command: &str, path: &Path) -> bool {
    let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || ";&|()\"'".contains(c)).collect();
    let named = |name: &str| {
        let name = Path::new(name);
        // The command may first change the working directory, so only compare the end of the path.
        path.ends_with(name.strip_prefix("./").unwrap_or(name))
    };
    words.iter().enumerate().any(|(place, word)| {
        let module = word.replace('.', "/");
        (is_python(Path::new(word)) && named(word))
            || (place > 0
                && words[place - 1] == "-m"
                && !module.is_empty()
                && (named(&format!("{module}.py")) || named(&format!("{module}/__main__.py"))))
    })
}

/// Whether a file's name suggests a program's entry point or configuration.
fn is_entry(path: &Path) -> bool {
    const NAMES: [&str; 16] = [
        "__main__",
        "cli",
        "main",
        "config",
        "configs",
        "configuration",
        "conf",
        "settings",
        "arguments",
        "args",
        "options",
        "setup",
        "conftest",
        "noxfile",
        "tasks",
        "constants",
    ];
    path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| NAMES.contains(&stem))
}

fn is_test(path: &Path, name: &str) -> bool {
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folders = path.parent().into_iter().flat_map(Path::iter).filter_map(|part| part.to_str());
    file.starts_with("test_")
        || file.ends_with("_test.py")
        || folders.into_iter().any(|part| part == "tests" || part == "test")
        || last_part(name).starts_with("test_")
}

fn reads_command_line(module: &Module, place: usize) -> bool {
    const NAMES: [&str; 10] = [
        "main",
        "cli",
        "parse_args",
        "parse_arguments",
        "get_args",
        "get_parser",
        "build_parser",
        "make_parser",
        "create_parser",
        "add_arguments",
    ];
    const CALLS: [&str; 8] = [
        "ArgumentParser",
        "add_argument",
        "parse_args",
        "parse_known_args",
        "add_subparsers",
        "OptionParser",
        "docopt",
        "Fire",
    ];
    const DECORATORS: [&str; 6] = ["@click.", "@app.command", "@cli.", "@main.command", "@hydra.main", "@typer."];
    let function = &module.functions()[place];
    let argv = b"sys.argv";
    NAMES.contains(&last_part(&function.name).trim_start_matches('_'))
        || module.calls(place).iter().any(|call| CALLS.contains(&last_part(call)))
        || module.decorators(place).iter().any(|it| DECORATORS.iter().any(|start| it.starts_with(start)))
        || module.source()[function.body.clone()].windows(argv.len()).any(|window| window == argv)
}

/// Returns a glob for a file that is not a Python file: all files with the same extension; without an extension, only
/// this file.
fn glob(path: &Path) -> String {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => format!("**/*.{}", globset::escape(extension)),
        None => literal(path),
    }
}

fn literal(path: &Path) -> String {
    globset::escape(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHODS: &str = r#"
class Model:
    def fit(self, x):
        """Fit the model. Slowly."""
        a = sum(x)
        b = len(x)

        def step(value):
            a = value
            b = a + 1
            c = b + 1
            return c

        return step(a / b)

    def short(self):
        """A docstring
        of
        several
        lines."""
        return 1

    def undocumented(self, x):
        a = x
        b = a
        c = b
        return c
"#;

    const SCRIPT: &str = "import argparse\n\n\ndef get_options():\n    parser = argparse.ArgumentParser()\n    \
                          parser.add_argument('--n')\n    parser.add_argument('--k')\n    return parser.parse_args()\n\n\n\
                          def train(n):\n    a = n\n    b = a\n    c = b\n    return c\n";

    fn modules(files: &[(&str, &str)]) -> BTreeMap<PathBuf, Module> {
        let parse = |path: &str, text: &str| Module::parse(path, text.as_bytes().to_vec()).unwrap();
        files.iter().map(|(path, text)| (PathBuf::from(path), parse(path, text))).collect()
    }

    fn all(modules: &BTreeMap<PathBuf, Module>) -> ExperimentsByFunction {
        let places = |(path, module): (&PathBuf, &Module)| {
            let path = path.clone();
            (0..module.functions().len())
                .map(move |place| ((path.clone(), place), BTreeSet::from([0])))
                .collect::<Vec<_>>()
        };
        modules.iter().flat_map(places).collect()
    }

    fn selectors(proposal: &MaskingProposal) -> Vec<String> {
        proposal.functions.iter().map(|candidate| candidate.selector.to_string()).collect()
    }

    #[test]
    fn functions_that_are_entered_and_long_enough_are_proposed_with_their_first_sentence() {
        let modules = modules(&[("pkg/model.py", METHODS), ("pkg/unused.py", METHODS)]);
        let mut entered = all(&modules);
        entered.retain(|(path, _), _| path.ends_with("model.py"));
        let proposal = propose(&modules, &[], &[], &entered);
        assert_eq!(selectors(&proposal), ["pkg/model.py::Model.fit", "pkg/model.py::Model.undocumented"]);
        assert_eq!(proposal.functions[0].description.as_deref(), Some("Fit the model."));
        assert_eq!(proposal.functions[1].description, None);
        let refused: Vec<String> = proposal.refused.iter().map(|(at, why)| format!("{}: {why}", at.name)).collect();
        assert_eq!(refused, ["Model.fit.step: nested in a proposed one", "Model.short: shorter than five lines"]);
    }

    #[test]
    fn a_proposal_protects_entry_files_and_data_and_offers_no_tests_for_masking() {
        let modules = modules(&[
            ("pkg/__init__.py", ""),
            ("pkg/__main__.py", SCRIPT),
            ("pkg/config.py", SCRIPT),
            ("pkg/train.py", SCRIPT),
            ("pkg/test_model.py", METHODS),
            ("scripts/run.py", SCRIPT),
        ]);
        let others = ["data/a.csv", "b.csv", "LICENSE"].map(PathBuf::from);
        let commands = ["PYTHONPATH=. python scripts/run.py --n 3".to_owned()];
        let proposal = propose(&modules, &others, &commands, &all(&modules));
        assert_eq!(selectors(&proposal), ["pkg/train.py::train"]);
        assert_eq!(
            proposal.protected,
            ["**/*.csv", "LICENSE", "pkg/__init__.py", "pkg/__main__.py", "pkg/config.py", "scripts/run.py"]
        );
        assert!(proposal.refused.contains(&(Selector::new("pkg/train.py", "get_options"), Reason::CommandLine)));
        assert!(proposal.refused.contains(&(Selector::new("pkg/test_model.py", "Model.fit"), Reason::Test)));
        assert_eq!(proposal.open_scripts, Vec::<PathBuf>::new());
    }

    #[test]
    fn functions_of_a_single_script_are_proposed_and_the_script_stays_unprotected() {
        let modules = modules(&[("train.py", SCRIPT)]);
        let proposal = propose(&modules, &[], &["python train.py".to_owned()], &all(&modules));
        assert_eq!(selectors(&proposal), ["train.py::train"]);
        assert_eq!(proposal.open_scripts, [PathBuf::from("train.py")]);
        assert_eq!(proposal.protected, Vec::<String>::new());
    }

    #[test]
    fn the_files_that_a_command_runs_are_recognised() {
        for (command, path, expected) in [
            ("python -m pkg.exp --n 3", "pkg/exp.py", true),
            ("python -m pkg", "src/pkg/__main__.py", true),
            ("cd src && python ./run.py", "src/run.py", true),
            ("bash -c 'python run.py'", "run.py", true),
            ("python -m pkg", "pkg/exp.py", false),
            ("python -c 'import pkg.exp'", "pkg/exp.py", false),
            ("python run.py", "other_run.py", false),
        ] {
            assert_eq!(runs(command, Path::new(path)), expected, "{command} {path}");
        }
    }

    #[test]
    fn protected_globs_match_their_files() {
        for path in ["data.csv", "a/b/data.csv"] {
            let glob = globset::Glob::new(&glob(Path::new(path))).unwrap().compile_matcher();
            assert!(glob.is_match(path), "{path}");
        }
        let odd = globset::Glob::new(&literal(Path::new("a[1].py"))).unwrap().compile_matcher();
        assert!(odd.is_match("a[1].py"));
    }
}
