//! Masking judged by Python's own `ast`, over every function of the standard library, numpy and scikit-learn.
//!
//! Every function is masked in a random group (a random set of functions of its file, none nested in another). In small
//! files every function is also masked alone, and in other files a random few; with `AUTOEXPERIMENT_ORACLE=full`, all
//! functions are masked alone, which takes hours. `support/masking_oracle.py` finds the functions independently and
//! compares names, lines, signatures, decorators, masked bodies and the rest of the file.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use autoexperiment::code::{MaskTarget, Module, index_tree};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::support::judge::{Judge, python, standard_library};

/// Every second function is masked with this description, the others without one.
const DESCRIPTION: &str =
    "Does \"it\": \"\"\"quoted\"\"\", c:\\new, \u{e9} \u{2192} \u{1f980}.\n\nMore:\n  about 'it' \"\"\"\"";

/// Maximum total size in bytes of a file's masked copies for which all its functions are masked alone.
const ALONE_BYTES: usize = 150_000;

/// In other files, one of this many functions is masked alone.
const ALONE_ONE_IN: u32 = 60;

const PROCESSES: usize = 2;

/// Lock with which one library at a time is judged, because each uses all judging processes.
static TURN: Mutex<()> = Mutex::new(());

#[test]
#[ignore = "masks every function of the standard library, which takes minutes"]
fn python_confirms_the_mask_of_every_function_of_its_standard_library() {
    judge("the standard library", "python3".as_ref(), &[standard_library()], 20_000);
}

#[test]
fn python_confirms_the_mask_of_every_function_of_the_packages_email_and_json() {
    let roots = ["email", "json"].map(|package| standard_library().join(package));
    judge("two packages", "python3".as_ref(), &roots, 300);
}

#[test]
#[ignore = "installs numpy and scikit-learn from PyPI and masks every function of theirs, which takes minutes"]
fn every_function_of_numpy_and_scikit_learn_is_masked_correctly_according_to_pythons_parser() {
    let python3 = environment();
    let place = "import numpy, sklearn; print(numpy.__path__[0], sklearn.__path__[0], sep='\\n', end='')";
    let places = python(&python3, place).expect("numpy and scikit-learn are installed");
    let roots: Vec<PathBuf> = places.lines().map(PathBuf::from).collect();
    judge("numpy and scikit-learn", &python3, &roots, 10_000);
}

#[test]
fn the_python_script_that_judges_masks_finds_every_kind_of_wrong_mask() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.py");
    let original =
        "# above\n@a\ndef f(x,  y):\n    'doc'\n    # hint\n    return x\n    # hint\n\n# about g\ndef g(): return 2\n";
    fs::write(&path, original).unwrap();
    let right =
        "# above\n@a\ndef f(x,  y):\n    'doc'\n    raise NotImplementedError\n\n# about g\ndef g(): return 2\n";
    let change = |from: &str, to: &str| {
        assert!(right.contains(from), "{from}");
        right.replace(from, to)
    };
    let wrong = [
        original.to_owned(),
        change("# above\n", ""),
        change("# about g\n", ""),
        change("\n\n#", "\n\n\n#"),
        change("@a", "@b"),
        change("x,  y", "x, y"),
        change("x,  y", "y,  x"),
        change("Error\n", "Error\n    # hint\n"),
        change("    'doc'\n", ""),
        change("'doc'", "'other'"),
        change("raise NotImplementedError", "pass"),
        change("raise NotImplementedError", "raise NotImplementedError()"),
        change("raise NotImplementedError", "x = 1\n    raise NotImplementedError"),
        change("return 2", "return 3"),
        change("def g(): return 2\n", ""),
        change("def g(): return 2\n", "def g():\n    raise NotImplementedError\n"),
        change("    raise NotImplementedError", "raise NotImplementedError"),
        change("y):\n", "y):  # hint\n"),
    ];
    let mut judge = start("python3".as_ref());
    let functions = json!([["f", 3, 6, false, false, 1, true], ["g", 10, 10, false, false, 0, false]]);
    let mut failures = |masked: &str, functions: &Value| {
        judge.send(json!({"op": "file", "path": path, "functions": functions}), b"");
        let frame = json!({"op": "mask", "labels": ["f"], "described": [true]});
        judge.send(frame, masked.as_bytes());
        verdict(&mut judge)["failures"].as_array().unwrap().len()
    };
    assert_eq!(failures(right, &functions), 0);
    for masked in wrong {
        assert_eq!(failures(&masked, &functions), 1, "{masked}");
    }
    for functions in [json!([]), json!([["f", 2, 6, false, false, 1, true], ["g", 10, 10, false, false, 0, false]])] {
        assert_eq!(failures(right, &functions), 1);
    }
}

/// Results for one library.
#[derive(Default)]
struct Tally {
    files: usize,
    functions: usize,
    masks_alone: usize,
    groups: usize,
    bytes: usize,
    /// Files that Python accepts and this program does not.
    refused: Vec<String>,
    /// Files that this program accepts and Python does not.
    rejected: Vec<String>,
    failures: Vec<String>,
}

/// Checks all files below `roots`, and that at least `expected` functions were checked.
fn judge(name: &str, python3: &Path, roots: &[PathBuf], expected: usize) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let begin = std::time::Instant::now();
    let mut files = Vec::new();
    let mut refused = Vec::new();
    for root in roots {
        for (path, module) in index_tree(root) {
            let foreign = path.components().any(|part| part.as_os_str() == "site-packages");
            match module {
                _ if foreign => {}
                Ok(module) => files.push((root.join(path), module)),
                Err(error) => refused.push((root.join(path), error.to_string())),
            }
        }
    }
    files.sort_by_key(|(_, module)| std::cmp::Reverse(module.source().len()));
    let next = AtomicUsize::new(0);
    let mut tally = std::thread::scope(|scope| {
        let work = || scope.spawn(|| judge_all(start(python3), &files, &next));
        let workers: Vec<_> = (0..PROCESSES).map(|_| work()).collect();
        workers.into_iter().fold(Tally::default(), |tally, worker| tally.with(worker.join().unwrap()))
    });
    for (path, error) in refused {
        let takes = "import ast, sys; ast.parse(open(sys.argv[1], 'rb').read())";
        let status =
            Command::new(python3).args(["-W", "ignore", "-c", takes]).arg(&path).stderr(Stdio::null()).status();
        if status.unwrap().success() {
            tally.refused.push(format!("{}: {error}", path.display()));
        }
    }
    println!(
        "{name}: {} functions in {} files, {} groups, {} strictly alone, {:.0} MB judged in {:.0} s",
        tally.functions,
        tally.files,
        tally.groups,
        tally.masks_alone,
        tally.bytes as f64 / 1e6,
        begin.elapsed().as_secs_f64()
    );
    for (what, list) in [("only Python takes", &tally.refused), ("Python does not take", &tally.rejected)] {
        println!("{} files that {what}", list.len());
        for file in list {
            println!("  {file}");
        }
    }
    let shown: Vec<&str> = tally.failures.iter().take(50).map(String::as_str).collect();
    assert!(shown.is_empty(), "{} wrong, among them:\n{}", tally.failures.len(), shown.join("\n"));
    assert!(tally.functions >= expected, "only {} functions were checked", tally.functions);
    assert!(tally.refused.len() * 100 <= tally.files, "{} files are refused", tally.refused.len());
}

impl Tally {
    fn with(mut self, other: Self) -> Self {
        self.files += other.files;
        self.functions += other.functions;
        self.masks_alone += other.masks_alone;
        self.groups += other.groups;
        self.bytes += other.bytes;
        self.rejected.extend(other.rejected);
        self.failures.extend(other.failures);
        self
    }
}

/// Starts the process that judges masked files.
fn start(python3: &Path) -> Judge {
    Judge::start(python3, "masking_oracle.py", &[DESCRIPTION])
}

/// Judges files until none is left.
fn judge_all(mut judge: Judge, files: &[(PathBuf, Module)], next: &AtomicUsize) -> Tally {
    let mut tally = Tally::default();
    while let Some((path, module)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
        judge_one(&mut judge, path, module, &mut tally);
    }
    judge.end();
    tally
}

fn judge_one(judge: &mut Judge, path: &Path, module: &Module, tally: &mut Tally) {
    let functions: Vec<Value> = module
        .functions()
        .iter()
        .map(|it| {
            let documented = it.docstring.is_some();
            let decorators = it.decorators.len();
            json!([it.label(), it.first_line, it.last_line, it.is_async, it.is_generator, decorators, documented])
        })
        .collect();
    judge.send(json!({"op": "file", "path": path, "functions": functions}), b"");
    let (groups, alone) = cases(path, module);
    for case in groups.iter().chain(&alone) {
        let described = |function: usize| function.is_multiple_of(2);
        let target =
            |&function: &usize| MaskTarget { function, description: described(function).then_some(DESCRIPTION) };
        let masked = module.mask(&case.iter().map(target).collect::<Vec<_>>()).unwrap();
        let labels: Vec<String> = case.iter().map(|&function| module.functions()[function].label()).collect();
        let described: Vec<bool> = case.iter().map(|&function| described(function)).collect();
        let frame = json!({"op": "mask", "labels": labels, "described": described});
        judge.send(frame, &masked);
        tally.bytes += masked.len();
    }
    let answer = verdict(judge);
    if let Some(why) = answer["rejected"].as_str() {
        tally.rejected.push(format!("{}: {why}", path.display()));
        return;
    }
    let failures = answer["failures"].as_array().unwrap();
    tally.failures.extend(failures.iter().map(|failure| format!("{}: {failure}", path.display())));
    tally.files += 1;
    tally.functions += functions.len();
    tally.groups += groups.len();
    tally.masks_alone += alone.len();
}

/// Tells the judge that the file has no more cases, and waits for the list of the file's faults.
fn verdict(judge: &mut Judge) -> Value {
    judge.send(json!({"op": "end"}), b"");
    judge.answer()
}

/// Returns random groups that together contain every function once, and the functions that are masked alone.
fn cases(path: &Path, module: &Module) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut hasher = DefaultHasher::new();
    path.file_name().hash(&mut hasher);
    let mut random = StdRng::seed_from_u64(hasher.finish());
    let count = module.functions().len();
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut random);
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); 2];
    for function in order {
        let first = random.random_range(0..groups.len());
        let fits = |group: &Vec<usize>| group.iter().all(|&other| !module.overlaps(function, other));
        let found = (0..groups.len()).map(|at| (at + first) % groups.len()).find(|&at| fits(&groups[at]));
        match found {
            Some(at) => groups[at].push(function),
            None => groups.push(vec![function]),
        }
    }
    groups.retain(|group| !group.is_empty());
    let full = std::env::var("AUTOEXPERIMENT_ORACLE").is_ok_and(|value| value == "full");
    let all = full || count * module.source().len() <= ALONE_BYTES;
    let alone = (0..count).filter(|_| all || random.random_ratio(1, ALONE_ONE_IN)).map(|function| vec![function]);
    let alone = alone.collect();
    (groups, alone)
}

/// Returns the interpreter of a virtual environment with numpy and scikit-learn, which is made once.
fn environment() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("masking-oracle");
    let python3 = folder.join("bin/python3");
    if python3.exists() && python(&python3, "import numpy, sklearn").is_some() {
        return python3;
    }
    fs::create_dir_all(&folder).unwrap();
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("python3".as_ref(), &["-m", "venv", folder.to_str().unwrap()]);
    run(&python3, &["-m", "pip", "install", "--quiet", "numpy==2.4.1", "scikit-learn==1.8.0"]);
    python3
}
