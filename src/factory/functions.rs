//! Chooses the functions of a package that are worth masking, and describes those without documentation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::layout::Layout;
use super::refresh::EarlierVersion;
use crate::code::{CodeTokens, Identifiers, Module, index_tree, last_part, one_spaced};
use crate::draft::first_sentence;
use crate::files::hex;

/// Limits on the lines of a function's body.
const LINES: std::ops::RangeInclusive<usize> = 3..=80;

/// Minimum number of mutants that can be made of a function's body. A body with fewer mutants does almost nothing.
const FEWEST_MUTANTS: usize = 4;

/// Names of methods that are too simple to mask: they describe an object, or pass a call on.
const PLAIN_METHODS: [&str; 28] = [
    "__repr__",
    "__str__",
    "__unicode__",
    "__bytes__",
    "__hash__",
    "__len__",
    "__bool__",
    "__nonzero__",
    "__iter__",
    "__next__",
    "__enter__",
    "__exit__",
    "__aenter__",
    "__aexit__",
    "__getstate__",
    "__setstate__",
    "__reduce__",
    "__reduce_ex__",
    "__copy__",
    "__deepcopy__",
    "__del__",
    "__dir__",
    "__sizeof__",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__init_subclass__",
    "__class_getitem__",
];

/// Words in names of functions that draw plots.
const PLOTS: [&str; 7] = ["plot", "draw_", "_draw", "figure", "imshow", "subplot", "colorbar"];

/// Calls that occur only in functions that draw plots.
const PLOT_CALLS: [&str; 6] = ["plt.", "pyplot.", "ax.", "fig.", "axes.", ".savefig"];

/// Bodies with fewer tokens than this are compared as a whole with each other. Longer bodies are left to the search for
/// copies ([`crate::audit::leaks`]).
const SHORT_BODY: usize = 32;

/// Names of methods of Python's own types, whose calls say nothing about a package's method of the same name.
const BUILTIN_METHODS: [&str; 41] = [
    "add",
    "append",
    "clear",
    "close",
    "copy",
    "count",
    "decode",
    "difference",
    "discard",
    "encode",
    "endswith",
    "extend",
    "find",
    "format",
    "get",
    "index",
    "insert",
    "intersection",
    "items",
    "join",
    "keys",
    "lower",
    "open",
    "pop",
    "popitem",
    "read",
    "remove",
    "replace",
    "reverse",
    "setdefault",
    "sort",
    "split",
    "startswith",
    "strip",
    "union",
    "update",
    "upper",
    "values",
    "write",
    "match",
    "search",
];

/// Maximum number of lines that show how an undocumented function is called.
const MOST_CALLS_SHOWN: usize = 3;

/// A function whose code looks worth masking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The function's selector.
    pub(super) at: String,
    /// The file that contains the function.
    pub(super) file: PathBuf,
    /// Number of lines with code in the function's body.
    pub(super) lines: usize,
    /// Description for the agent: one line, and examples of calls after it.
    pub(super) description: String,
    /// Whether the description says more than the signature: by a docstring, calls in the package, or examples.
    pub(super) is_described: bool,
    /// Ids of the tests that run the function, without the doctest in its own docstring.
    pub(super) tests: BTreeSet<String>,
    /// Whether the package was compared with an older version that does not have the function.
    pub(super) is_fresh: bool,
    /// Whether calls that are recorded under the function's name, without its number (`#2`), are calls of this function
    /// and not of another one of the same name.
    pub(super) has_own_calls: bool,
}

impl Candidate {
    /// Adds `lines` to the description as examples. Each line shows a call and its outcome.
    pub(super) fn add_examples(&mut self, lines: &[String]) {
        if !lines.is_empty() {
            self.is_described = true;
            self.description.push_str("\n\nExamples:");
        }
        for line in lines {
            self.description.push_str("\n    ");
            self.description.push_str(line);
        }
    }

    /// Whether nothing but the signature says what the function does: the description does not, and `text` does not
    /// name the function.
    pub(super) fn is_unexplained(&self, text: &str) -> bool {
        let name = own_name(&self.at);
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        !self.is_described && !words.any(|word| word == name)
    }

    /// Returns the selector without its number (`#2`): `path.py::Class.method`. Several functions of the file may share
    /// this name.
    pub(super) fn name(&self) -> &str {
        self.at.split('#').next().unwrap_or_default()
    }
}

/// Returns the last part of a selector's name, without its number: `method` of `path.py::Class.method#2`.
pub(super) fn own_name(at: &str) -> &str {
    at.rsplit(['.', ':']).next().unwrap_or(at).split('#').next().unwrap_or_default()
}

/// The functions of a package.
#[derive(Debug, Clone, Default)]
pub(super) struct PackageFunctions {
    /// Number of functions in the package's sources.
    pub(super) found: usize,
    /// Number of functions in the package's sources that at least one test runs. Tests that were left out do not count.
    pub(super) entered: usize,
    /// Functions worth masking, ordered by file and position in the file.
    pub(super) candidates: Vec<Candidate>,
    /// Selectors of functions that a test runs but that are not worth masking, by the reason why not.
    pub(super) refused: BTreeMap<String, Vec<String>>,
}

/// Examines all functions of a package. `entered` contains the tests that run each function, by
/// `path.py::Class.method`. With `documented`, functions without a docstring are not worth masking.
pub(super) fn examine(
    repo: &Path,
    layout: &Layout,
    test_files: &BTreeSet<String>,
    entered: &BTreeMap<String, BTreeSet<String>>,
    earlier: Option<&EarlierVersion>,
    documented: bool,
) -> PackageFunctions {
    let mut found = PackageFunctions::default();
    let modules: Vec<Module> = index_tree(repo).into_iter().filter_map(|(_, module)| module.ok()).collect();
    let is_own = |module: &Module| {
        let path = module.path().to_string_lossy();
        layout.holds(module.path()) && !test_files.contains(path.as_ref()) && !is_aside(module.path())
    };
    let own: Vec<&Module> = modules.iter().filter(|module| is_own(module)).collect();
    let sources: Vec<(&Module, String)> =
        own.iter().map(|module| (*module, String::from_utf8_lossy(module.source()).into_owned())).collect();
    let mut bodies: HashMap<u64, usize> = HashMap::new();
    let mut names: HashMap<&str, usize> = HashMap::new();
    for module in &own {
        for (place, function) in module.functions().iter().enumerate() {
            *names.entry(last_part(&function.name)).or_default() += 1;
            if let Some(body) = short_body(module, place) {
                *bodies.entry(body).or_default() += 1;
            }
        }
    }
    for module in &own {
        for (place, function) in module.functions().iter().enumerate() {
            found.found += 1;
            let name = format!("{}::{}", module.path().display(), function.name);
            let Some(tests) = entered.get(&name) else { continue };
            found.entered += 1;
            let at = module.selector(place).to_string();
            let has_twin =
                || short_body(module, place).is_some_and(|body| bodies.get(&body).is_some_and(|&count| count > 1));
            let reason = refused(module, place).or_else(|| has_twin().then_some("another function has the same body"));
            if let Some(reason) = reason {
                found.refused.entry(reason.to_owned()).or_default().push(at);
                continue;
            }
            if documented && function.docstring.is_none() {
                found.refused.entry("without a docstring".to_owned()).or_default().push(at);
                continue;
            }
            let sentence = module.docstring(place).and_then(|literal| first_sentence(&literal));
            let (description, is_described) = if let Some(sentence) = sentence {
                (sentence, true)
            } else {
                let own_name = last_part(&function.name);
                // A constructor is called by the name of its class, so its own name need not be unique.
                let is_unique = own_name == "__init__" || names.get(own_name) == Some(&1);
                described(module, place, if is_unique { &sources } else { &[] })
            };
            found.candidates.push(Candidate {
                at,
                file: module.path().to_owned(),
                lines: lines(module, place),
                description: one_spaced(&description),
                is_described,
                tests: tests.iter().filter(|id| !is_own_doctest(id, &name)).cloned().collect(),
                is_fresh: earlier.is_some_and(|earlier| !earlier.has(module, place)),
                has_own_calls: has_own_calls(module, place),
            });
        }
    }
    found
}

/// Whether calls that are recorded under this function's name are calls of this function. The recorder looks up the
/// name in the finished class or module. There, a property's name stands for its getter, so setters and deleters are
/// never found. If several other functions have the same name, the recorder may find any of them.
fn has_own_calls(module: &Module, place: usize) -> bool {
    let is_found = |place: usize| {
        let decorators = module.decorators(place);
        !decorators.iter().any(|it| it.contains("overload") || it.ends_with(".setter") || it.ends_with(".deleter"))
    };
    let functions = module.functions();
    let is_same = |other: usize| functions[other].name == functions[place].name;
    is_found(place) && !(0..functions.len()).any(|other| other != place && is_same(other) && is_found(other))
}

/// Whether a test is the doctest in the docstring of the function `name` (`path.py::Class.method`). Agents see such a
/// doctest, so it is not used as a test of this function.
fn is_own_doctest(id: &str, name: &str) -> bool {
    let (Some((file, test)), Some((own, function))) = (id.split_once("::"), name.split_once("::")) else {
        return false;
    };
    file == own && test.strip_suffix(function).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Whether a file does not implement what the package does: vendored code, code that states the version, tests, or
/// `setup.py`.
fn is_aside(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    parts.any(|part| {
        [
            "_vendor",
            "vendor",
            "vendored",
            "extern",
            "externals",
            "_version.py",
            "versioneer.py",
            "conftest.py",
            "setup.py",
        ]
        .contains(&part)
            || part.starts_with("test_")
            || part.ends_with("_test.py")
            || part == "tests"
    })
}

/// Counts the lines with code in a function's body.
fn lines(module: &Module, place: usize) -> usize {
    let body = String::from_utf8_lossy(&module.source()[module.body_code(place)]).into_owned();
    body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).count()
}

/// Returns why a function is not worth masking; `None` if it is.
fn refused(module: &Module, place: usize) -> Option<&'static str> {
    let function = &module.functions()[place];
    let name = last_part(&function.name);
    let decorators = module.decorators(place);
    let decorated = |names: &[&str]| decorators.iter().any(|it| names.iter().any(|name| it.contains(name)));
    let lower = function.name.to_lowercase();
    if function.parent.is_some() {
        return Some("nested in another function");
    }
    if lines(module, place) < *LINES.start() {
        return Some("shorter than three lines");
    }
    if lines(module, place) > *LINES.end() {
        return Some("longer than 80 lines");
    }
    if PLAIN_METHODS.contains(&name)
        || decorated(&["overload", "abstractmethod"])
        || module.only_passes_a_call_on(place)
    {
        return Some("trivial");
    }
    let draws = PLOTS.iter().any(|part| lower.contains(part))
        || module.calls(place).iter().any(|call| PLOT_CALLS.iter().any(|part| call.starts_with(part)));
    if draws {
        return Some("a plot");
    }
    if decorated(&["njit", "numba.", "@jit", "guvectorize", "vectorize("]) {
        return Some("compiled from its source");
    }
    if module.mutants(place).map_or(0, |mutants| mutants.len()) < FEWEST_MUTANTS {
        return Some("trivial");
    }
    None
}

/// Returns a hash of the tokens of a short body, in which all names count as equal; `None` for a longer body.
fn short_body(module: &Module, place: usize) -> Option<u64> {
    let tokens = CodeTokens::split(module.source(), module.body_code(place));
    let whole = (1..SHORT_BODY).contains(&tokens.len());
    whole.then(|| tokens.shingles(tokens.len(), Identifiers::Normalised).next())?.map(|(hash, _)| hash)
}

/// Describes an undocumented function by its signature and by how it is called in `sources`, without its body. Also
/// returns whether the description shows calls.
fn described(module: &Module, place: usize, sources: &[(&Module, String)]) -> (String, bool) {
    let function = &module.functions()[place];
    let name = last_part(&function.name);
    let header = one_spaced(&module.header(place));
    let owner = function.class.as_ref().map_or(String::new(), |class| format!(" of class `{class}`"));
    let called = if name == "__init__" { function.class.as_deref().map_or(name, last_part) } else { name };
    let mut shown = Vec::new();
    // Many classes have methods with names such as `__call__` and `append`, so a call of such a name may be a call of
    // another method.
    let is_common = called.starts_with("__") || (function.class.is_some() && BUILTIN_METHODS.contains(&called));
    if called.len() > 2 && !is_common {
        let needle = format!("{called}(");
        for (other, text) in sources {
            let body = if std::ptr::eq(*other, module) { function.whole.clone() } else { 0..0 };
            let mut at = 0;
            for line in text.split_inclusive('\n') {
                let range = at..at + line.len();
                at = range.end;
                let is_inside = body.start < range.end && range.start < body.end;
                let bare = line.trim();
                let begins =
                    |place: usize| bare[..place].chars().last().is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
                let is_call = bare.find(&needle).is_some_and(begins);
                let is_code = !bare.starts_with(['#', '>', '"', '\''])
                    && !bare.starts_with("def ")
                    && !bare.starts_with("class ");
                if is_call && is_code && !is_inside && shown.len() < MOST_CALLS_SHOWN && bare.len() < 120 {
                    shown.push(format!("`{bare}` in `{}`", other.path().display()));
                }
            }
        }
    }
    let kind = if function.is_async {
        "coroutine"
    } else if function.is_generator {
        "generator"
    } else if function.class.is_some() {
        "method"
    } else {
        "function"
    };
    let words = name.trim_matches('_').replace('_', " ");
    let calls = if shown.is_empty() { String::new() } else { format!(" Called as {}.", shown.join("; ")) };
    let header = header.trim_end_matches(':').replace('`', "'");
    (format!("The {kind} \"{words}\"{owner}, without documentation. Signature: `{header}`.{calls}"), !shown.is_empty())
}

/// Orders candidates: first those that an older version of the package does not have, then the others. Within each of
/// these two parts, any number of candidates, taken from the beginning, are spread over files and over lengths of
/// functions. A hash of `seed` orders candidates of the same file and class of length. Returns the candidates' indices in
/// this order.
pub(super) fn spread(candidates: &[Candidate], seed: u64) -> Vec<usize> {
    let chance = |place: &usize| hex(&Sha256::digest(format!("{seed}\n{}", candidates[*place].at)));
    let mut places: Vec<usize> = (0..candidates.len()).collect();
    places.sort_by_cached_key(chance);
    // Group candidates by file and class of length. Take the first candidate of each group, then the second of each,
    // and so on; within such a turn, a hash decides the order.
    let mut cells: BTreeMap<(&Path, usize), Vec<usize>> = BTreeMap::new();
    for place in places {
        let class = match candidates[place].lines {
            0..=7 => 0,
            8..=20 => 1,
            _ => 2,
        };
        cells.entry((&candidates[place].file, class)).or_default().push(place);
    }
    let mut ranked = Vec::new();
    for ((file, class), cell) in cells {
        for (turn, place) in cell.into_iter().enumerate() {
            let chance = hex(&Sha256::digest(format!("{seed}\n{}\n{class}\n{turn}", file.display())));
            ranked.push((!candidates[place].is_fresh, turn, chance, place));
        }
    }
    ranked.sort();
    ranked.into_iter().map(|(.., place)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "import matplotlib.pyplot as plt\n\n\ndef mean(values):\n    \"\"\"The mean of values.\"\"\"\n    total = 0\n    for value in values:\n        total += value\n    return total / len(values)\n\n\n\
        def scaled(values, by=2):\n    found = []\n    for value in values:\n        found.append(value * by)\n    return found\n\n\n\
        def short(x):\n    return x\n\n\ndef show(values):\n    plt.plot(values)\n    plt.title('a')\n    plt.show()\n    return values[0] + 1\n\n\n\
        class Box:\n    def __repr__(self):\n        a = 1 + 2\n        b = a * 3\n        return str(a - b)\n\n\ndef user():\n    data = scaled([1], by=3)\n    return data\n";

    fn examined() -> PackageFunctions {
        examined_code(SOURCE, &["mean", "scaled", "short", "show", "Box.__repr__"], false)
    }

    fn examined_code(code: &str, names: &[&str], documented: bool) -> PackageFunctions {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("p")).unwrap();
        std::fs::write(folder.path().join("p/m.py"), code).unwrap();
        std::fs::write(folder.path().join("p/__init__.py"), "").unwrap();
        let layout = Layout::of_package("p");
        let entered = names.iter().map(|name| (format!("p/m.py::{name}"), ["t".to_owned()].into())).collect();
        examine(folder.path(), &layout, &BTreeSet::new(), &entered, None, documented)
    }

    #[test]
    fn unsuitable_functions_are_refused_with_a_reason_and_suitable_ones_are_chosen() {
        let found = examined();
        assert_eq!((found.found, found.entered), (6, 5));
        let chosen: Vec<&str> = found.candidates.iter().map(|one| one.at.as_str()).collect();
        assert_eq!(chosen, ["p/m.py::mean", "p/m.py::scaled"]);
        let reasons: Vec<&str> = found.refused.keys().map(String::as_str).collect();
        assert_eq!(reasons, ["a plot", "shorter than three lines", "trivial"]);
        let found = examined_code(SOURCE, &["mean", "scaled"], true);
        let chosen: Vec<&str> = found.candidates.iter().map(|one| one.at.as_str()).collect();
        assert_eq!(
            (chosen, &found.refused["without a docstring"]),
            (vec!["p/m.py::mean"], &vec!["p/m.py::scaled".to_owned()])
        );
    }

    #[test]
    fn short_functions_that_share_their_body_with_another_function_are_not_chosen_for_masking() {
        let body = |name: &str, call: &str| {
            format!(
                "def {name}(values, axis=None):\n    found = {call}(values)\n    other = found * 2 + 1\n    return other - 3\n\n\n"
            )
        };
        let code = body("low", "min") + &body("high", "max") + &body("middle", "sum").replace('2', "7");
        let found = examined_code(&code, &["low", "high", "middle"], false);
        assert_eq!(found.refused["another function has the same body"], ["p/m.py::low", "p/m.py::high"]);
        assert_eq!(found.candidates.iter().map(|one| one.at.as_str()).collect::<Vec<_>>(), ["p/m.py::middle"]);
    }

    #[test]
    fn a_description_shows_calls_of_a_method_only_if_no_other_function_has_the_same_name() {
        let class = |name: &str, method: &str| {
            format!(
                "class {name}:\n    def {method}(self, x):\n        total = x * 2\n        total += len(x) - {}\n        return total + 1\n\n\n",
                name.len()
            )
        };
        let code = class("A", "reach")
            + &class("Bc", "grow")
            + &class("Def", "grow")
            + "def use(a, b):\n    a.reach(4)\n    b.grow(5)\n";
        let found = examined_code(&code, &["A.reach", "Bc.grow"], false);
        let described: Vec<bool> = found.candidates.iter().map(|one| one.description.contains("Called as")).collect();
        assert_eq!(described, [true, false], "{found:#?}");
        assert_eq!(found.candidates.iter().map(|one| one.is_described).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn recorded_calls_of_a_property_belong_to_its_getter_and_calls_of_an_ambiguous_name_to_no_function() {
        let body = |number: usize| {
            format!(
                "        total = self.x * {number}\n        total += len(self.y) - 1\n        return total + {number}\n\n"
            )
        };
        let methods = [
            "    @property\n    def size(self):\n",
            "    @size.setter\n    def size(self, value):\n",
            "    def again(self):\n",
            "    def again(self, more):\n",
            "    def once(self):\n",
        ];
        let methods: Vec<String> =
            methods.iter().enumerate().map(|(number, head)| format!("{head}{}", body(number + 2))).collect();
        let code = format!("class A:\n{}", methods.concat());
        let found = examined_code(&code, &["A.size", "A.again", "A.once"], false);
        let own: Vec<(&str, bool)> = found.candidates.iter().map(|one| (one.at.as_str(), one.has_own_calls)).collect();
        assert_eq!(
            own,
            [
                ("p/m.py::A.size#1", true),
                ("p/m.py::A.size#2", false),
                ("p/m.py::A.again#1", false),
                ("p/m.py::A.again#2", false),
                ("p/m.py::A.once", true)
            ],
            "{found:#?}"
        );
    }

    #[test]
    fn an_undocumented_function_is_described_by_signature_and_calls_without_its_body() {
        let found = examined();
        assert_eq!(found.candidates[0].description, "The mean of values.");
        let told = &found.candidates[1].description;
        assert!(
            told.contains("Signature: `def scaled(values, by=2)`")
                && told.contains("`data = scaled([1], by=3)` in `p/m.py`"),
            "{told}"
        );
        assert!(!told.contains("append"));
    }

    #[test]
    fn a_function_is_unexplained_if_neither_its_description_nor_the_text_says_what_it_does() {
        let mut candidate = Candidate { is_described: false, ..examined().candidates[0].clone() };
        assert!(candidate.is_unexplained("The meaning of x.mean_of."));
        assert!(!candidate.is_unexplained("`mean(values)` returns the mean."));
        candidate.add_examples(&["mean([1.5]) returns 1.5".to_owned()]);
        assert!(!candidate.is_unexplained(""));
    }

    #[test]
    fn examples_are_added_as_lines_below_a_functions_description() {
        let mut candidate = examined().candidates[0].clone();
        candidate.add_examples(&[]);
        assert_eq!(candidate.description, "The mean of values.");
        candidate
            .add_examples(&["mean([1.5]) returns 1.5".to_owned(), "mean([]) raises ZeroDivisionError('x')".to_owned()]);
        assert_eq!(
            candidate.description,
            "The mean of values.\n\nExamples:\n    mean([1.5]) returns 1.5\n    mean([]) raises ZeroDivisionError('x')"
        );
    }

    #[test]
    fn the_first_functions_of_a_draw_are_spread_over_files_and_follow_from_the_seed() {
        let candidate = |file: &str, number: usize| Candidate {
            at: format!("{file}::f{number}"),
            file: file.into(),
            lines: 10,
            description: String::new(),
            is_described: true,
            tests: BTreeSet::new(),
            is_fresh: false,
            has_own_calls: true,
        };
        let all: Vec<Candidate> = ["a.py", "b.py", "c.py"]
            .iter()
            .flat_map(|file| (0..9).map(move |number| candidate(file, number)))
            .collect();
        let spread = |candidates: &[Candidate], seed| -> Vec<Candidate> {
            super::spread(candidates, seed).into_iter().map(|place| candidates[place].clone()).collect()
        };
        let one = spread(&all, 7);
        assert_eq!(one, spread(&all.iter().rev().cloned().collect::<Vec<_>>(), 7));
        let files: BTreeSet<&PathBuf> = one[..3].iter().map(|candidate| &candidate.file).collect();
        assert_eq!(files.len(), 3);
        assert_ne!(one, spread(&all, 8));
    }
}
