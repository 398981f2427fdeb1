//! `autoexperiment new`: a paper is made from a repository that nobody has prepared for it.

use std::path::Path;

use crate::support::Lab;

/// Copies the repository and its paper next to a suite that has an env without packages.
fn found() -> Lab {
    let lab = Lab::new();
    crate::support::copy(Path::new("tests/trees/found"), &lab.path("found"));
    lab.write("found/repo/.git/config", "[core]\n");
    lab.write("found/repo/walk/__pycache__/ring.cpython-312.pyc", "x");
    lab
}

/// Returns the arguments of `new walk` with the tiny suite's env and these commands.
fn new<'a>(commands: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["new", "walk", "--repo", "found/repo", "--env", "tiny", "--no-verify"];
    for command in commands {
        arguments.extend(["--command", command]);
    }
    arguments
}

/// Checks that the only errors of the paper are about parts that must be written by hand.
fn assert_only_unwritten(lab: &Lab) {
    let checked = lab.run(&["check", "walk"]);
    assert_eq!(checked.code, 3, "{}", checked.stdout);
    for error in checked.stdout.lines().filter(|line| line.trim_start().starts_with("error:")) {
        let is_left = ["still to be written", "the year is still 0", "the text has `TODO`"];
        assert!(is_left.iter().any(|left| error.contains(left)), "{error}");
    }
}

/// Checks that nothing of a paper that could not be made is left in the suite.
fn assert_untouched(lab: &Lab) {
    for part in ["papers/walk", "repos/walk", "envs/walk", ".new-walk"] {
        assert!(!lab.path(part).exists(), "{part}");
    }
}

#[test]
#[ignore = "takes a minute"]
fn a_found_repository_becomes_a_paper_that_gold_passes_and_noop_fails() {
    let lab = found();
    // The repository's requirements.txt asks for no packages.
    let mut arguments = vec!["new", "walk", "--repo", "found/repo", "--text", "found/paper.tex"];
    arguments.extend(["--command", "distance=python -m walk distance --count {count=full:400,curtailed:40}"]);
    arguments.extend(["--command", "visited=python -m walk visited --steps 12"]);
    arguments.extend(["--command", "text=python -m walk text", "--regex", "text.mean=mean distance: ([.0-9]+)"]);
    arguments.extend(["--mutants", "2"]);
    let ran = lab.ok(&arguments);
    let seconds = regex::Regex::new(r" {2,}\d+\.\d\d ").unwrap();
    let stdout = seconds.replace_all(&ran.stdout, " [s] ");
    let (tables, rest) = stdout.split_once("\nwalk: 4 functions, 3 experiments\n").unwrap();
    let (verified, todo) = rest.split_once("\nTo do by hand").unwrap();
    assert!(verified.contains("mutation score: "), "{verified}");
    assert!(lab.path("papers/walk/evidence.json").exists());
    assert!(lab.read("papers/walk/dependencies.json").contains("walk/statistics.py::visited"));
    insta::assert_snapshot!(tables, @r#"
     experiment  seconds  values  result
     distance [s]       1  { json_line = "stdout" }
     visited [s]       1  { json_file = "results/visited.json" }
     text [s]       1  { regex = { mean = "mean distance: ([.0-9]+)" } }

     function                           lines  calls  experiments
     walk/ring.py::Walker.walk             11      3            3
     walk/ring.py::walks                   11      5            3
     walk/statistics.py::mean_distance      6      2            2
     walk/statistics.py::visited           11      3            1

    entered, but not proposed: 2 in a protected file, 3 shorter than five lines
    left out of the repo: notebooks/demo.ipynb (a notebook), results (saved results), tests (tests)
    "#);
    insta::assert_snapshot!(todo, @r#"
    , in papers/walk and repos/walk:
    [ ] paper.toml: title, authors, year and url
    [ ] paper.md: 2 of 4 numbers were removed as results: see them with `autoexperiment scrub found/paper.tex --gold papers/walk/gold.json`, and read the text once more
    [ ] paper.toml: describe walks, which the code does not describe
    [ ] paper.toml: say what is measured in distance, visited, text
    [ ] the env is locked for this machine only: `autoexperiment env lock --env venv walk` solves it for others
    [ ] paper.toml: name the passages for the 4 functions; delete the functions that the paper does not describe
    [ ] record gold of the full protocol: `autoexperiment gold walk --full`
    [ ] functions of a broken file are not proposed: template.py:2: syntax error
    [ ] 2 mutants that no experiment notices (`autoexperiment verify walk --survivors`): let an experiment give what they change, or mark them as equivalent
    "#);
    for left_out in [".git", "tests", "notebooks/demo.ipynb", "results", "walk/__pycache__"] {
        assert!(!lab.path(&format!("repos/walk/{left_out}")).exists(), "{left_out}");
    }
    assert!(lab.path("found/repo/results/visited.json").exists(), "the repository itself is left alone");
    let text = lab.read("papers/walk/paper.md");
    assert!(
        text.starts_with("# Random Walks on a Ring\n\n## Abstract\n") && text.contains("\n### Statistics\n"),
        "{text}"
    );
    assert!(!text.contains("3.8125"), "a comment of LaTeX holds a result: {text}");
    assert!(!text.contains("12.3") && !text.contains("95.7"), "results: {text}");
    assert_only_unwritten(&lab);

    let run = ["run", "-p", "walk", "-n", "1..2", "--limit", "4", "--agent", "gold", "--agent", "noop", "--name", "r"];
    let message = lab.fails(3, &run);
    assert!(message.contains("paper.toml:2: the authors are still to be written"), "{message}");
    lab.ok(&[&run[..], &["--unchecked"]].concat());
    let records = lab.records("r");
    assert_eq!(records.len(), 16);
    for record in records {
        assert_eq!(record["pass"], record["agent"] == "gold", "{record}");
    }
    // Using the same id again would overwrite the paper.
    let message = lab.fails(2, &new(&["distance=python -m walk distance"]));
    insta::assert_snapshot!(message, @r#"
    error: there is a paper `walk` already, in `[lab]/papers/walk`
      hint: choose another id, or remove it first: nothing is ever overwritten
    "#);
}

#[test]
fn the_written_manifest_lists_the_remaining_work() {
    let lab = found();
    lab.ok(&new(&["visited=python -m walk visited --steps {steps=full:100,curtailed:12}"]));
    insta::assert_snapshot!(lab.read("papers/walk/paper.toml"), @r#"
    title = "TODO"
    authors = ["TODO"]
    year = 0 # TODO
    url = "TODO"
    repo = "walk"
    env = "tiny"
    # Files whose changes do not count when an attempt is verified: data, configuration, entry scripts.
    protected = [
        "**/*.md",
        "**/*.txt",
        "LICENSE",
        "setup.py",
        "walk/__init__.py",
        "walk/__main__.py",
    ]

    # The functions that can be masked. A sample names them by their place here, from 0: once there are results,
    # don't reorder them. `passages` are headings of paper.md that describe the function.

    [[function]] # 11 lines, 3 calls; entered by visited
    at = "walk/ring.py::Walker.walk"
    description = "Walk some steps; ``right`` is the probability of a step to the right."
    passages = []

    [[function]] # 11 lines, 5 calls; entered by visited
    at = "walk/ring.py::walks"
    description = "TODO: what `walks` does"
    passages = []

    [[function]] # 11 lines, 3 calls; entered by visited
    at = "walk/statistics.py::visited"
    description = "Share of places that any walker visited."
    passages = []

    # Experiments. Agents see the description: what is measured, and the answer's JSON shape, no values.

    [[experiment]]
    id = "visited"
    description = 'TODO: what is measured. Answer: {"visited": x}'
    command = "python -m walk visited --steps {steps}"
    parameters.full = { steps = 100 }
    parameters.curtailed = { steps = 12 }
    result = { json_file = "results/visited.json" }
    "#);
    insta::assert_snapshot!(lab.read("papers/walk/paper.md"), @r#"
    # TODO

    TODO: write a self-contained description of the paper, so that a person with this text and the rest of the code could
    write any function of it: equations, initialisation, stopping rules, tie-breaking, defaults. No results.

    ## What the paper claims

    TODO

    ## Method

    ### Ring

    TODO: describe `Walker.walk`, `walks`.

    ### Statistics

    TODO: describe `visited`.

    ## Experiments

    ### visited

    TODO: data, protocol and what is measured.
    "#);
}

#[test]
fn experiments_that_fail_hang_or_give_nothing_are_all_named_with_the_next_step() {
    let lab = found();
    let mut arguments = new(&[
        "good=python -m walk distance",
        "crash=python -m walk crash",
        "hang=python -m walk hang",
        "silent=python -m walk silent",
        "text=python -m walk text",
    ]);
    arguments.extend(["--time-limit", "3"]);
    insta::assert_snapshot!(lab.fails(4, &arguments), @r#"
    building env `tiny`
    copying repo `walk`
    trying `good`: 0 of 5 experiments
    trying `crash`: 1 of 5 experiments
    trying `hang`: 2 of 5 experiments
    trying `silent`: 3 of 5 experiments
    trying `text`: 4 of 5 experiments
    error: paper `walk`, experiment `crash`: `python -m walk crash` ended with exit code 1
        unknown: crash
      hint: run it by hand, in a copy of the repo and without network
    error: paper `walk`, experiment `hang`: `python -m walk hang` did not end within 3 s
      hint: give it smaller curtailed parameters, such as `{n=full:1000,curtailed:50}`, or more time with `--time-limit SECONDS`; a program that waits for input or a window never ends
    error: paper `walk`, experiment `silent`: it gives no readable result: nothing on stdout, no JSON file with a number (it wrote no file)
      hint: let it print its numbers as a line of JSON, or write them to a new .json file; an existing file of the repo with unchanged numbers does not count
    error: paper `walk`, experiment `text`: it gives no readable result: no JSON object on stdout, no JSON file with a number (it wrote no file)
      hint: give an expression for each relevant value, such as `--regex 'text.mean_distance=mean distance: ([-+.0-9e]+)'`
    nothing was written: correct what is wrong and repeat the command
    error: paper `walk`: 4 of 5 experiments cannot be used
      hint: correct them as said above, or leave them out
    "#);
    assert_untouched(&lab);
}

#[test]
fn new_refuses_a_result_that_varies_and_names_its_experiment() {
    let lab = found();
    let message = lab.fails(4, &new(&["good=python -m walk distance", "noise=python -m walk noise"]));
    assert!(message.contains("error: paper `walk`, experiment `noise`: `noise` varies from "), "{message}");
    assert!(message.contains("hint: fix the experiment's seeds"), "{message}");
    assert_untouched(&lab);
}

#[test]
fn a_repo_that_does_not_import_gives_the_missing_package_and_a_remedy() {
    let lab = found();
    lab.edit("found/repo/walk/ring.py", "import random\n", "import random\n\nimport torch\n");
    let message = lab.fails(4, &new(&["distance=python -m walk distance"]));
    assert!(message.contains("paper `walk`, experiment `distance`: `python -m walk distance` ended with"), "{message}");
    assert!(
        message.contains("hint: the env has no `torch`: add the package that contains it to `--requirements`"),
        "{message}"
    );
    let lab = found();
    std::fs::create_dir(lab.path("found/repo/src")).unwrap();
    std::fs::rename(lab.path("found/repo/walk"), lab.path("found/repo/src/walk")).unwrap();
    let message = lab.fails(4, &new(&["distance=python -m walk distance"]));
    assert!(message.contains("begin the command with `PYTHONPATH=src:$PYTHONPATH`"), "{message}");
    assert_untouched(&lab);
    let stdout = lab.ok(&new(&["distance=PYTHONPATH=src:$PYTHONPATH python -m walk distance"])).stdout;
    assert!(stdout.contains("src/walk/ring.py::Walker.walk"), "{stdout}");
}

#[test]
fn new_refuses_commands_that_enter_no_python_function_or_only_functions_too_small_to_mask() {
    let lab = found();
    insta::assert_snapshot!(lab.fails(4, &new(&["echo=echo '{\"a\": 1}'"])), @r#"
    building env `tiny`
    copying repo `walk`
    trying `echo`: 0 of 1 experiments
    recording curtailed gold of `walk`: 0 of 3 experiments
    tracing `walk`: 0 of 1 experiments
    nothing was written: correct what is wrong and repeat the command
    error: paper `walk`: its experiments do not call any Python function of the repo
        experiment `echo` may enter more functions than were seen: no Python process was traced
      hint: do they run a copy of the package that is installed in the env, or compiled code? Let them import the repo's own sources, as with `PYTHONPATH=src:$PYTHONPATH`
    "#);
    let small = "small=python -c 'from walk.statistics import distance; print(\"{\\\"d\\\": %d}\" % distance(3, 4))'";
    insta::assert_snapshot!(lab.fails(4, &new(&[small])), @r#"
    building env `tiny`
    copying repo `walk`
    trying `small`: 0 of 1 experiments
    recording curtailed gold of `walk`: 0 of 3 experiments
    tracing `walk`: 0 of 1 experiments
    nothing was written: correct what is wrong and repeat the command
    error: paper `walk`: none of the functions that its experiments run can become a task
        walk/statistics.py::distance: shorter than five lines
      hint: give commands that use more of the repo
    "#);
    assert_untouched(&lab);
}

#[test]
fn new_finds_functions_that_a_command_calls_in_a_subprocess() {
    let lab = found();
    lab.write(
        "found/repo/driver.py",
        "import subprocess\nimport sys\n\nsubprocess.run([sys.executable, '-m', 'walk', 'distance'], check=True)\n",
    );
    let stdout = lab.ok(&new(&["distance=python driver.py"])).stdout;
    assert!(stdout.contains("walk/statistics.py::mean_distance"), "{stdout}");
}

#[test]
fn an_old_result_that_a_command_writes_anew_does_not_stay_in_the_repo() {
    let lab = found();
    let mut arguments = new(&["visited=python -m walk visited --steps 12"]);
    arguments.extend(["--keep", "results"]);
    lab.ok(&arguments);
    assert!(!lab.path("repos/walk/results/visited.json").exists());
    assert_only_unwritten(&lab);
}

#[test]
fn experiments_may_write_the_same_result_file_even_if_the_repo_contains_it() {
    let lab = found();
    let mut arguments = new(&["a=python -m walk visited --steps 12", "b=python -m walk visited --steps 13"]);
    arguments.extend(["--keep", "results"]);
    lab.ok(&arguments);
    assert!(!lab.path("repos/walk/results/visited.json").exists());
}

#[test]
fn a_title_that_states_a_result_is_written_without_it_and_check_finds_no_result_in_the_manifest() {
    let lab = found();
    let arguments = new(&["distance=python -m walk distance"]);
    lab.ok(&arguments);
    let gold: serde_json::Value = serde_json::from_str(&lab.read("papers/walk/gold.json")).unwrap();
    let mean = gold["results"]["curtailed"]["distance"]["result"]["mean"].as_f64().unwrap();
    for part in ["papers/walk", "repos/walk"] {
        std::fs::remove_dir_all(lab.path(part)).unwrap();
    }
    // The title comes from the package or, if there is one, from the text.
    lab.write(
        "found/repo/PKG-INFO",
        &format!("Metadata-Version: 2.1\nName: walk\nSummary: Walkers come {mean:.3} far\n"),
    );
    lab.write("found/paper.md", &format!("# Walkers come {mean:.3} far\n\n## Method\n\nText.\n"));
    for more in [&[][..], &["--text", "found/paper.md"]] {
        lab.ok(&[&arguments[..], more].concat());
        let manifest = lab.read("papers/walk/paper.toml");
        assert!(manifest.contains("Walkers come ") && !manifest.contains(&format!("{mean:.3}")), "{manifest}");
        lab.edit("papers/walk/paper.toml", "Walkers come ", &format!("Walkers come {mean:.3} "));
        let leak = format!("paper.toml: `{mean:.3}` is a gold value of experiment `distance`");
        assert!(lab.run(&["check", "walk"]).stdout.contains(&leak));
        for part in ["papers/walk", "repos/walk"] {
            std::fs::remove_dir_all(lab.path(part)).unwrap();
        }
    }
}

#[test]
fn a_stop_during_verification_leaves_the_paper_and_says_how_to_continue() {
    use nix::sys::signal::{Signal, kill};
    let lab = found();
    // Slow the experiment down, so that verification takes several seconds and can be interrupted.
    lab.edit(
        "found/repo/walk/__main__.py",
        "    options = parse_args()\n",
        "    options = parse_args()\n    time.sleep(0.3)\n",
    );
    let arguments =
        ["new", "walk", "--repo", "found/repo", "--env", "tiny", "--command", "distance=python -m walk distance"];
    let mut command = lab.command(&arguments);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let begun = std::time::Instant::now();
    while !lab.path("papers/walk/paper.toml").exists() {
        assert!(begun.elapsed() < std::time::Duration::from_mins(2), "no paper was written");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let ran = crate::support::Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("continue with `autoexperiment verify walk`"), "{}", ran.stderr);
    assert!(ran.stdout.contains("To do by hand") && ran.stdout.contains("[ ] verify it: "), "{}", ran.stdout);
}

#[test]
fn bad_arguments_are_named_before_anything_is_done() {
    let lab = found();
    let one = "d=python -m walk distance";
    let fault = |arguments: &[&str]| {
        let message = lab.fails(2, arguments);
        assert_untouched(&lab);
        message
    };
    insta::assert_snapshot!(fault(&["new", "../x", "--repo", "found/repo", "--env", "tiny", "--command", one]), @r#"
    error: `../x` is not a valid id for a paper
      hint: use letters, digits, `-`, `_` and `.`, a letter or digit first, such as `kmeanspp`
    "#);
    insta::assert_snapshot!(fault(&["new", "walk", "--repo", "nowhere", "--env", "tiny", "--command", one]), @r#"
    error: the repository `nowhere` does not exist
      hint: give the folder of its code, as it is after a `git clone`, with `--repo DIR`
    "#);
    insta::assert_snapshot!(fault(&["new", "walk", "--repo", "found/paper.tex", "--env", "tiny", "--command", one]), @r#"
    error: the repository `found/paper.tex` is not a folder
      hint: give the folder of its code, as it is after a `git clone`, with `--repo DIR`
    "#);
    insta::assert_snapshot!(fault(&["new", "walk", "--repo", ".", "--env", "tiny", "--command", one]), @r#"
    error: the suite lies inside the repository `.`
      hint: make the suite's folder elsewhere, or name it with `--suite DIR`
    "#);
    insta::assert_snapshot!(fault(&["new", "walk", "--repo", "found/repo", "--env", "nowhere", "--command", one]), @r#"
    error: no env `nowhere`: `[lab]/envs/nowhere` has no environment.yml
      hint: give a folder under `envs/`, or create one with `--requirements` or `--environment`
    "#);
    insta::assert_snapshot!(fault(&["new", "walk", "--repo", "found/repo/walk", "--command", one]), @r#"
    error: no environment: the repository has no environment.yml, requirements.txt, pyproject.toml or setup.py that names its packages
      hint: name its packages with `--requirements numpy==2.2.6,...`, or an env of the suite with `--use-env`
    "#);
    insta::assert_snapshot!(fault(&["new", "walk", "--repo", "found/repo", "--env", "tiny"]), @r#"
    error: no experiments
      hint: give them with `--command NAME=COMMAND` or `--commands FILE`
    "#);
    insta::assert_snapshot!(fault(&new(&["python -m walk distance"])), @r#"
    error: `python -m walk distance` does not begin with an experiment's name
      hint: write it as `NAME=COMMAND`, such as `table=python -m pkg table --n {n=full:1000,curtailed:50}`
    "#);
    insta::assert_snapshot!(fault(&new(&[one, one])), @r#"error: experiment `d` is given twice"#);
}

#[test]
fn new_refuses_commands_whose_tests_or_pytest_are_missing_before_it_builds_the_env() {
    let lab = found();
    for command in ["all=python tests/test_walk.py", "all=python -m pytest -q"] {
        let message = lab.fails(2, &new(&[command]));
        assert!(message.contains("experiment `all` uses `tests`, which was left out of the repo (tests)"), "{message}");
        assert!(message.contains("hint: include it with `--keep 'tests'`"), "{message}");
        assert!(!message.contains("building env"), "{message}");
    }
    let kept = [&new(&["all=python -m pytest -q tests"])[..], &["--keep", "tests/**"]].concat();
    let message = lab.fails(2, &kept);
    assert!(message.contains("experiment `all` runs `pytest`, but the env has no package `pytest`"), "{message}");
    assert!(!message.contains("building env"), "{message}");
    assert_untouched(&lab);
}

#[test]
fn a_package_whose_tests_give_nan_and_infinity_becomes_a_paper_that_gold_passes() {
    let lab = found();
    lab.write(
        "found/repo/PKG-INFO",
        "Metadata-Version: 2.1\nName: walk\nSummary: Walks on a ring.\nAuthor: A. Walker\nHome-page: https://walk.example.org\n\n",
    );
    lab.write("found/repo/LICENSE", "MIT\n\nCopyright (c) 2012-2014 A. Walker\n");
    lab.write(
        "found/repo/tests/run.py",
        "import sys\nsys.path.insert(0, '.')\nfrom walk.statistics import mean_distance\nfrom walk.ring import walks\n\
         import json\nmean = mean_distance(walks(40, 23, 50, 0.6, seed=1), 23)\nprint(json.dumps({'mean': mean, 'gap': float('nan'), 'most': float('-inf')}))\n\
         if '--fail' in sys.argv:\n    print('FAILED tests/run.py: 3 != 4')\n    sys.exit(1)\n",
    );
    let keep = ["--keep", "tests/**"];
    let failing = [&new(&["all=python tests/run.py --fail"])[..], &keep].concat();
    let message = lab.fails(4, &failing);
    assert!(message.contains("ended with exit code 1") && message.contains("FAILED tests/run.py: 3 != 4"), "{message}");
    let ran = lab.ok(&[&new(&["all=python tests/run.py"])[..], &keep].concat());
    assert!(!ran.stdout.contains("tests (tests)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("what is there is the package's, not the paper's"), "{}", ran.stdout);
    let manifest = lab.read("papers/walk/paper.toml");
    let head = "title = \"walk: Walks on a ring.\"\nauthors = [\"A. Walker\"]\nyear = 2014\nurl = \"https://walk.example.org\"\n";
    assert!(manifest.starts_with(head), "{manifest}");
    let gold: serde_json::Value = serde_json::from_str(&lab.read("papers/walk/gold.json")).unwrap();
    let result = &gold["results"]["curtailed"]["all"]["result"];
    assert_eq!((&result["gap"], &result["most"]), (&serde_json::json!("NaN"), &serde_json::json!("-Infinity")));
    // The unmasked repo reproduces these values, and so passes.
    let run = [
        "run",
        "-p",
        "walk",
        "-n",
        "1",
        "--limit",
        "1",
        "--agent",
        "gold",
        "--agent",
        "noop",
        "--name",
        "r",
        "--unchecked",
    ];
    lab.ok(&run);
    for record in lab.records("r") {
        assert_eq!(record["pass"], record["agent"] == "gold", "{record}");
    }
}
