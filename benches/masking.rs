//! Measures how fast files are indexed and masked: `cargo bench --bench masking`.
//!
//! Indexing is compared with Python's own `ast.parse` and `ast.walk` of the same files (the standard library of the
//! `python3` on the path), and masking with copying the bytes. Figures are the best of several rounds, in processor
//! time, so that other work on the machine disturbs them little. Figures with all threads are in wall time.

use std::collections::HashSet;
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use autoexperiment::code::{MaskTarget, Module, index_tree};
use nix::sys::resource::{UsageWho, getrusage};

const ROUNDS: usize = 5;

/// Python program that reads paths, and prints the seconds taken, followed by the paths that parse.
const PYTHON: &str = r"
import ast, sys, time, warnings
warnings.simplefilter('ignore')
paths, sources = [], []
for path in sys.stdin.read().split('\0')[:-1]:
    try:
        source = open(path, 'rb').read()
        ast.parse(source)
    except (SyntaxError, ValueError):
        continue
    paths.append(path)
    sources.append(source)
best = float('inf')
for _ in range(3):
    begin, functions = time.process_time(), 0
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            functions += isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    best = min(best, time.process_time() - begin)
print(best)
print('\0'.join(paths), end='')
";

fn main() {
    let Some(library) = python("import os; print(os.path.dirname(os.__file__), end='')", "") else {
        println!("skipped: no python3 on the path");
        return;
    };
    let library = PathBuf::from(library);
    let found = index_tree(&library).into_iter().filter(|(path, _)| !path.starts_with("site-packages"));
    let mut modules: Vec<Module> = found.filter_map(|(_, module)| module.ok()).collect();
    let path = |module: &Module| format!("{}\0", library.join(module.path()).display());
    let paths = modules.iter().map(path).collect::<Vec<_>>().concat();
    let Some(answer) = python(PYTHON, &paths) else {
        println!("skipped: python3 failed");
        return;
    };
    let (seconds, taken) = answer.split_once('\n').unwrap_or(("", ""));
    let theirs = Duration::from_secs_f64(seconds.trim().parse().unwrap_or_default());
    let taken: HashSet<&str> = taken.split('\0').collect();
    modules.retain(|module| taken.contains(library.join(module.path()).to_string_lossy().as_ref()));
    index(&library, &modules, theirs);
    for n in [1, 3] {
        render(&modules, n);
    }
}

fn index(library: &Path, modules: &[Module], theirs: Duration) {
    let bytes = modules.iter().map(|module| module.source().len()).sum::<usize>() as f64;
    let functions: usize = modules.iter().map(|module| module.functions().len()).sum();
    println!("{} files, {:.1} MB, {functions} functions", modules.len(), bytes / 1e6);
    let parse =
        |module: &Module| Module::parse(module.path(), module.source().to_vec()).map_or(0, |it| it.functions().len());
    let ours = best(processor_time, || modules.iter().map(parse).sum());
    let show = |what: &str, time: Duration| {
        let seconds = time.as_secs_f64();
        println!(
            "{what:38} {:8.0} ms  {:6.1} MB/s  {:5.2} x",
            seconds * 1e3,
            bytes / 1e6 / seconds,
            theirs.as_secs_f64() / seconds
        );
    };
    show("index: ast.parse and ast.walk", theirs);
    show("index: Module::parse, one thread", ours);
    let begin = Instant::now();
    show("index: index_tree, reading, all threads", best(|| begin.elapsed(), || index_tree(library).len()));
}

/// Measures how long it takes to mask n functions in a file. Uses all files with at least n functions of which none
/// contains another, and compares with copying the files' bytes.
fn render(modules: &[Module], n: usize) {
    let targets = |module: &Module| {
        let mut chosen: Vec<usize> = Vec::new();
        for function in 0..module.functions().len() {
            if chosen.len() < n && !chosen.iter().any(|&other| module.overlaps(function, other)) {
                chosen.push(function);
            }
        }
        chosen
            .into_iter()
            .map(|function| MaskTarget { function, description: Some("Does what it should.") })
            .collect::<Vec<_>>()
    };
    let cases: Vec<(&Module, Vec<MaskTarget>)> =
        modules.iter().map(|module| (module, targets(module))).filter(|(_, targets)| targets.len() == n).collect();
    let copied =
        best(processor_time, || cases.iter().map(|(module, _)| black_box(module.source().to_vec()).len()).sum());
    let rendered = best(processor_time, || {
        cases.iter().map(|(module, targets)| black_box(module.mask(targets)).map_or(0, |masked| masked.len())).sum()
    });
    let each = |time: Duration| time.as_secs_f64() * 1e6 / cases.len() as f64;
    println!(
        "render: n = {n}, {} files: {:.2} us a file, copying its bytes {:.2} us, {:.2} x",
        cases.len(),
        each(rendered),
        each(copied),
        each(rendered) / each(copied)
    );
}

/// Runs `work` several times and returns the shortest time that a run took, measured with `clock`.
fn best(clock: impl Fn() -> Duration, mut work: impl FnMut() -> usize) -> Duration {
    let mut round = || {
        let begin = clock();
        black_box(work());
        clock().saturating_sub(begin)
    };
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

/// Returns the user and system CPU time of this process.
fn processor_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
    let times = usage.map_or([0; 4], |it| {
        let (user, system) = (it.user_time(), it.system_time());
        [user.tv_sec(), user.tv_usec(), system.tv_sec(), system.tv_usec()]
    });
    Duration::from_secs((times[0] + times[2]) as u64) + Duration::from_micros((times[1] + times[3]) as u64)
}

fn python(program: &str, input: &str) -> Option<String> {
    let mut child =
        Command::new("python3").args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    child.stdin.take()?.write_all(input.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
