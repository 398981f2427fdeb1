//! Papers whose repo has a C extension, which is built before anything runs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::Lab;
use crate::support::engine::{Engine, Kind, on_engines};

on_engines! {
    docker: what_was_built_in_a_container_is_shown_in_the_others_and_no_change_of_it_counts;
    podman: what_was_built_in_a_container_is_shown_in_the_others_and_no_change_of_it_counts;
}

/// Build command that does what `setup.py build_ext --inplace` does, without needing packages.
const BUILD: &str = "cc -shared -fPIC -O1 $(python -c \"import sysconfig as s; print('-I' + s.get_path('include'))\") \
                     ring/_step.c -o ring/_step$(python -c \"import sysconfig as s; print(s.get_config_var('EXT_SUFFIX'))\")";

const C: &str = r#"#include <Python.h>
static PyObject *step(PyObject *self, PyObject *args) {
    long place, size;
    if (!PyArg_ParseTuple(args, "ll", &place, &size)) return NULL;
    return PyLong_FromLong((place * 7 + 3) % size);
}
static PyMethodDef methods[] = {{"step", step, METH_VARARGS, "Of [lab]"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_step", NULL, -1, methods};
PyMODINIT_FUNC PyInit__step(void) { return PyModule_Create(&module); }
"#;

const PYTHON: &str = r#"from ring._step import step


def walk(steps, size):
    """All places of a walk that begins at 1."""
    places = [1]
    for _ in range(steps):
        here = places[-1]
        following = step(here, size)
        places.append(following)
    return places


def mean(places):
    """The mean of the places, without the first."""
    total = 0
    for place in places[1:]:
        total += place
    count = len(places) - 1
    return total / count
"#;

const MAIN: &str = "import json\nimport sys\n\nfrom ring.walk import mean, walk\n\n\
                    print(json.dumps({'mean': mean(walk(int(sys.argv[1]), 101))}))\n";

/// Makes a repository with an extension, next to a suite that has an env without packages.
fn repository() -> Lab {
    let lab = Lab::new();
    lab.write("from/ring/__init__.py", "");
    lab.write("from/ring/__main__.py", MAIN);
    lab.write("from/ring/walk.py", PYTHON);
    lab.write("from/ring/_step.c", &C.replace("[lab]", &lab.path("").display().to_string()));
    lab
}

/// Makes a paper with `new` from the repository that [`repository`] makes. The paper is not verified yet.
fn paper() -> Lab {
    let lab = repository();
    let command = "mean=python -m ring {steps=full:500,curtailed:50}";
    lab.ok(&[
        "new",
        "ring",
        "--repo",
        "from",
        "--use-env",
        "tiny",
        "--build",
        BUILD,
        "--command",
        command,
        "--no-verify",
    ]);
    lab
}

/// Returns the line of the manifest that begins with this text.
fn line(lab: &Lab, begin: &str) -> String {
    lab.read("papers/ring/paper.toml").lines().find(|line| line.starts_with(begin)).unwrap().to_owned()
}

/// Returns the folders of this lab's finished builds. All labs share a cache; the built files of this lab contain its
/// path.
fn builds(lab: &Lab) -> Vec<PathBuf> {
    let command = lab.command(&[]);
    let (_, cache) = command.get_envs().find(|(name, _)| *name == "AUTOEXPERIMENT_CACHE").unwrap();
    let mark = lab.path("").display().to_string().into_bytes();
    let is_ours = |build: &Path| {
        let files = std::fs::read_dir(build.join("tree/ring")).into_iter().flatten().flatten();
        files.map(|file| std::fs::read(file.path()).unwrap()).any(|it| it.windows(mark.len()).any(|part| part == mark))
    };
    let entries = std::fs::read_dir(Path::new(cache.unwrap()).join("builds")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_ours(path)).collect();
    found.retain(|path| path.join("complete").exists());
    found.sort();
    found
}

#[test]
fn a_repo_with_a_c_extension_is_built_once_and_verified() {
    let lab = paper();
    let manifest = lab.read("papers/ring/paper.toml");
    assert!(manifest.contains("build = ") && manifest.contains("abi = \"cpython-3"), "{manifest}");
    assert!(!lab.path("repos/ring/build").exists() && !manifest.contains("compiled = "));
    let built = builds(&lab);
    assert_eq!(built.len(), 1, "{built:?}");
    let made = std::fs::metadata(&built[0]).unwrap().modified().unwrap();

    let verified = lab.ok(&["verify", "ring", "--mutants", "2", "--offline"]);
    assert!(!verified.stdout.contains("compiled code"), "{}", verified.stdout);
    let ran = lab.ok(&[
        "run",
        "--unchecked",
        "-p",
        "ring",
        "-n",
        "1..2",
        "--agent",
        "gold",
        "--agent",
        "noop",
        "--name",
        "out",
    ]);
    assert!(ran.stdout.contains("gold"), "{}", ran.stdout);
    let passes = |agent: &str| {
        let records = lab.records("out");
        records.iter().filter(|record| record["agent"] == agent && record["pass"] == true).count()
    };
    assert_eq!((passes("gold"), passes("noop")), (3, 0));
    assert_eq!(builds(&lab), built);
    assert_eq!(std::fs::metadata(&built[0]).unwrap().modified().unwrap(), made, "it was built again");
}

#[test]
fn another_interpreter_than_that_of_the_compiled_code_is_refused() {
    let lab = paper();
    lab.edit("papers/ring/paper.toml", &line(&lab, "abi = "), "abi = \"cpython-39\"");
    let said = lab.fails(3, &["verify", "ring"]);
    assert!(
        said.contains("the compiled code of paper `ring` is for `cpython-39`, but the env `tiny` has Python 3."),
        "{said}"
    );
    assert!(said.contains("python=3.9"), "{said}");
    lab.edit("papers/ring/paper.toml", "abi = \"cpython-39\"", "abi = \"py39\"");
    let checked = lab.run(&["check", "ring"]);
    assert!(checked.stdout.contains("not an interpreter's tag"), "{}", checked.stdout);
}

/// Shell command that tries to overwrite, remove and replace the built file, and then prints how that file begins.
const VANDAL: &str =
    "f=$(ls ring/_step*.so); echo garbage > $f; rm -f $f; echo garbage > x && mv -f x $f; head -c 4 $f | od -c";

/// Makes an attempt with an agent that runs [`VANDAL`]. Returns the last observation, and whether the agent's code is
/// right nevertheless.
fn vandalised(lab: &Lab, name: &str, sandbox: &str) -> (String, bool) {
    let step = serde_json::json!({"tool": "command_line", "arguments": {"command": VANDAL}});
    lab.write("vandal", &crate::support::json_lines(&[step]));
    let agent = format!("scripted:{}", lab.path("vandal").display());
    let run = [
        "run",
        "--unchecked",
        "--sample",
        "ring_",
        "--agent",
        &agent,
        "--name",
        name,
        "--sandbox",
        sandbox,
        "--no-baseline",
    ];
    lab.ok(&run);
    let seen = lab.ok(&["show", name, "ring_"]).stdout;
    let record = &lab.records(name)[0];
    (seen, record["verified"]["pass"] == true)
}

#[test]
fn built_files_are_read_only_in_sandbox_local_and_changes_in_sandbox_none_do_not_affect_verification() {
    let lab = paper();
    let (seen, is_right) = vandalised(&lab, "sealed", "local");
    assert!(seen.contains("Read-only file system") && seen.contains("177   E   L   F"), "{seen}");
    assert!(is_right, "{seen}");
    let (seen, is_right) = vandalised(&lab, "open", "none");
    assert!(seen.contains("g   a   r   b"), "{seen}");
    assert!(is_right, "the change had an effect: {seen}");
}

/// The base image has no compiler, so the build command copies a file that was compiled elsewhere.
fn what_was_built_in_a_container_is_shown_in_the_others_and_no_change_of_it_counts(kind: Kind) {
    let engine = Engine::start(kind);
    engine.give_base();
    let lab = paper();
    let tree = builds(&lab).remove(0).join("tree/ring");
    let library = std::fs::read_dir(tree).unwrap().flatten().next().unwrap();
    std::fs::copy(library.path(), lab.path("repos/ring/ring/step.bin")).unwrap();
    let build = format!("build = \"cp ring/step.bin ring/{}\"", library.file_name().display());
    lab.edit("papers/ring/paper.toml", &line(&lab, "build = "), &build);
    lab.ok(&["gold", "ring"]);
    let step = serde_json::json!({"tool": "command_line", "arguments": {"command": VANDAL}});
    lab.write("vandal", &crate::support::json_lines(&[step]));
    let agent = format!("scripted:{}", lab.path("vandal").display());
    let mut run = lab.command(&[
        "run",
        "--unchecked",
        "--sample",
        "ring_",
        "--sample",
        "ring_0",
        "--agent",
        "gold",
        "--agent",
        &agent,
    ]);
    run.args(["--sandbox", kind.name(), "--no-baseline", "--name", "r"]).env(kind.variable(), engine.address());
    let ran = crate::support::Ran::from(run.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("building the extensions of `ring`"), "{}", ran.stderr);
    let records = lab.records("r");
    let right = |agent: &str, sample: &str| {
        let record = records.iter().find(|one| one["agent"] == agent && one["sample"] == sample).unwrap();
        record["verified"]["pass"] == true
    };
    assert!(right("gold", "ring_0") && right("gold", "ring_") && !right("scripted", "ring_0"), "{records:#?}");
    let seen = lab.ok(&["show", "r", "ring_", "--agent", "scripted"]).stdout;
    assert!(seen.contains("g   a   r   b"), "it can be changed where no mount covers it: {seen}");
    assert!(right("scripted", "ring_"), "the change had an effect: {seen}");
}

#[test]
fn check_warns_of_a_build_whose_interpreter_is_not_named() {
    let lab = paper();
    let told = "the paper's `build` command makes files for one Python version, and the manifest does not say which";
    let checked = lab.run(&["check", "ring"]).stdout;
    assert!(!checked.contains(told), "{checked}");
    lab.edit("papers/ring/paper.toml", &line(&lab, "abi = "), "");
    let checked = lab.run(&["check", "ring"]).stdout;
    assert!(checked.contains(told) && checked.contains("write its tag, such as `abi = "), "{checked}");
}

#[test]
fn a_build_that_fails_or_makes_nothing_gives_a_remedy() {
    let lab = paper();
    let build = line(&lab, "build = ");
    lab.edit("papers/ring/paper.toml", &build, "build = 'echo no compiler here >&2; exit 3'");
    let said = lab.fails(3, &["verify", "ring"]);
    assert!(
        said.contains("the build of paper `ring` ended with exit code 3\n") && said.contains("no compiler here"),
        "{said}"
    );
    lab.edit("papers/ring/paper.toml", "echo no compiler here >&2; exit 3", "touch ring/x.o");
    let said = lab.fails(3, &["verify", "ring"]);
    assert!(said.contains("made no file that matches the products") && said.contains("`**/*.so`"), "{said}");
}

#[test]
fn a_build_that_is_killed_is_made_again() {
    let lab = paper();
    let build = line(&lab, "build = ");
    let slow = build.replacen("\"cc", "\"touch ring/half.so; sleep 3; cc", 1).replacen(
        "'cc",
        "'touch ring/half.so; sleep 3; cc",
        1,
    );
    assert_ne!(build, slow);
    lab.edit("papers/ring/paper.toml", &build, &slow);
    let mut command = lab.command(&["verify", "ring"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("building the extensions of `ring`")), "no build began");
    std::thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(builds(&lab).len(), 1, "a build that was killed counts");
    lab.ok(&["verify", "ring"]);
    let built = builds(&lab);
    assert_eq!(built.len(), 2);
}

#[test]
fn compiled_code_that_stands_in_for_a_masked_file_is_found() {
    let lab = paper();
    // Make the C file look as if Cython had made it from `ring/walk.py`: Cython puts the name of the Python file into
    // its output like this.
    lab.edit("repos/ring/ring/_step.c", "\"Of ", "\"ring/walk.py Of ");
    lab.ok(&["gold", "ring"]);
    let verified = lab.run(&["verify", "ring"]);
    let said = format!("{}{}", verified.stdout, verified.stderr);
    assert!(said.contains("compiled code of `ring/walk.py`, which Python would run"), "{said}");
}

#[test]
fn compiled_files_of_the_repo_are_refused_unless_the_manifest_lists_them() {
    let lab = paper();
    let tree = builds(&lab).remove(0).join("tree/ring");
    let library = std::fs::read_dir(tree).unwrap().flatten().next().unwrap();
    std::fs::copy(library.path(), lab.path("repos/ring/ring").join(library.file_name())).unwrap();
    let build = line(&lab, "build = ");
    lab.edit("papers/ring/paper.toml", &build, "");
    lab.ok(&["gold", "ring"]);
    let refused = lab.run(&["verify", "ring"]);
    assert!(refused.stderr.contains("compiled code, which may hold masked functions"), "{}", refused.stderr);
    lab.edit("papers/ring/paper.toml", "abi = ", "compiled = ['ring/_step.*.so']\nabi = ");
    lab.ok(&["verify", "ring"]);
}

#[test]
fn a_repository_that_needs_another_python_is_refused() {
    let lab = repository();
    lab.write("from/setup.py", "from setuptools import setup\nsetup(python_requires='>=3.99')\n");
    let said =
        lab.fails(2, &["new", "ring", "--repo", "from", "--use-env", "tiny", "--command", "mean=python -m ring 50"]);
    assert!(
        said.contains("the repository needs Python >=3.99, as its `setup.py` says, but the env `tiny` has 3."),
        "{said}"
    );
    assert!(!lab.path("papers/ring").exists());
}
