//! `autoexperiment import mlrc`: the published layout, with a small tree for each defect of the published data.

use crate::support::{Lab, json_lines};
use serde_json::{Value, json};

/// Six functions of one name, as published. Only their descriptions distinguish them.
const LOSSES: &str = r#"import math


def cached(function):
    return function


class Loss:
    def __call__(self, weights, box):
        raise NotImplementedError


class EnergyLoss(Loss):
    """Energy inside the box."""

    def __init__(self):
        self.binarize = False

    @cached
    def __call__(self, weights, box):
        # all of it
        inside = sum(w for w, b in zip(weights, box) if b)
        return 1 - inside / sum(weights)


class RRRLoss(Loss):
    def __call__(
        self,
        weights,
        box,
    ):

        outside = [w for w, b in zip(weights, box) if not b]
        return sum(w * w for w in outside)


class L1Loss(Loss):
    def __call__(self, weights, box):
        return sum(abs(w - b) for w, b in zip(weights, box))


class EntropyLoss(Loss):
    def __call__(self, weights, box):
        return -sum(math.log(w) for w, b in zip(weights, box) if b)


class EntropyLossTwin(Loss):
    def __call__(self, weights, box):
        return -sum(math.log(w) for w, b in zip(weights, box) if b)


def scale(weights):
    top = max(weights)
    return [w / top for w in weights]


def total(weights): return sum(weights)
"#;

const MAIN: &str =
    "import json, sys\nfrom losses import *\nprint(json.dumps({'loss': EnergyLoss()([0.5, 0.25], [1, 0])}))\n";

const PAPER: &str = "# Losses\n\n## Energy {#sec:energy}\n\nThe energy loss is one minus the energy that lies inside the box.\n\n## Results\n\n| loss | IoU |\n|------|-----|\n| energy | 0.3333 |\n";

fn function(number: &str, name: &str, lines: [usize; 3], description: &str) -> Value {
    json!({
        "paper_id": "2303.00001", "func_id": number, "file": "losses.py", "name": name, "header_line": lines[0],
        "line_start": lines[1], "line_end": lines[2], "description": description, "relevant_paper": "",
    })
}

fn experiment(number: &str, result: &str, needs: &str) -> Value {
    json!({
        "paper_id": "2303.00001", "exp_id": number, "description": "Loss: {\"loss\": 0.0}.", "result": result,
        "func_dependencies": needs, "solution": format!("python main.py --number {number}"),
    })
}

/// Makes a suite without papers, and a published paper with these functions and experiments.
fn lab(functions: &[Value], experiments: &[Value]) -> Lab {
    let lab = Lab::bare();
    std::fs::create_dir_all(lab.path("suite/papers")).unwrap();
    std::fs::create_dir_all(lab.path("suite/repos")).unwrap();
    let paper = "MLRC/2303.00001";
    lab.write(&format!("{paper}/code/losses.py"), LOSSES);
    lab.write(&format!("{paper}/code/main.py"), MAIN);
    lab.write(&format!("{paper}/paper.txt"), PAPER);
    lab.write(&format!("{paper}/losses.yml"), "name: losses\ndependencies:\n  - python>=3.10\n");
    lab.write(&format!("{paper}/functions.jsonl"), &json_lines(functions));
    lab.write(&format!("{paper}/experiments.jsonl"), &json_lines(experiments));
    lab.write(
        "MLRC/mlrc_main.csv",
        "Title,github,paper_id,conda_env\nLosses,https://example.org/losses,2303.00001,losses\n",
    );
    lab
}

const IMPORT: [&str; 5] = ["import", "mlrc", "MLRC", "--suite", "suite"];

/// Imports the paper, which must succeed. Returns the selectors and the output.
fn import(lab: &Lab, more: &[&str]) -> (Vec<String>, String) {
    let ran = lab.ok(&[&IMPORT[..], more].concat());
    let manifest = lab.read("suite/papers/2303.00001/paper.toml");
    let selectors =
        manifest.lines().filter_map(|line| line.strip_prefix("at = ")).map(|at| at.trim_matches('"').to_owned());
    (selectors.collect(), ran.stdout)
}

fn refusal(functions: &[Value]) -> String {
    let lab = lab(functions, &[experiment("0", "{\"loss\": 0.5}", "0")]);
    let message = lab.fails(3, &IMPORT);
    assert!(!lab.path("suite/papers/2303.00001").exists() && !lab.path("suite/repos/2303.00001").exists());
    message
}

#[test]
fn a_function_with_a_unique_name_is_found_although_its_published_line_numbers_are_wrong() {
    let lab = lab(
        // Published line numbers: one exact range, one that is 20 lines off, and one in an entirely different place.
        &[
            function("0", "scale", [52, 53, 54], ""),
            function("1", "total", [37, 37, 38], ""),
            function("2", "cached", [900, 901, 950], ""),
        ],
        &[experiment("0", "{\"loss\": 0.5}", "0,1,2")],
    );
    let (selectors, said) = import(&lab, &[]);
    assert_eq!(selectors, ["losses.py::scale", "losses.py::total", "losses.py::cached"]);
    assert!(!said.contains("function 0:"), "nothing is wrong with it: {said}");
    assert!(
        said.contains(
            "correction: function 1: published: header in line 37, body 37 to 38; correct: header in line 57"
        ),
        "{said}"
    );
    assert!(said.contains("function 2:") && said.contains("off by -896"), "{said}");
}

#[test]
fn functions_of_one_name_are_distinguished_by_class_description_or_exact_lines() {
    let with_class = |mut function: Value, class: &str| {
        function["class"] = json!(class);
        function
    };
    let lab = lab(
        &[
            // Outdated line numbers, but only one candidate's code mentions energy.
            function("0", "__call__", [5, 6, 8], "Energy inside of the bounding box, over all energy."),
            // The published range of lines begins at the class, so masking this range would remove `def`, too. The
            // published data also contain the name of the class.
            with_class(function("1", "__call__", [26, 27, 34], ""), "RRRLoss"),
            // Only line numbers are given, and the range is one line too long, as usual in the published data.
            function("2", "__call__", [38, 39, 40], "Loss."),
        ],
        &[experiment("0", "{\"loss\": 0.5}", "0,1,2")],
    );
    let (selectors, said) = import(&lab, &[]);
    assert_eq!(
        selectors,
        ["losses.py::EnergyLoss.__call__", "losses.py::RRRLoss.__call__", "losses.py::L1Loss.__call__"]
    );
    assert!(said.contains("correction: function 0: `__call__` is `EnergyLoss.__call__`"), "{said}");
    assert!(said.contains("doubt: function 0: 6 functions have this name; `EnergyLoss.__call__` was chosen by its description, because its lines are outdated"), "{said}");
    assert!(
        said.contains("function 1: published: header in line 26, body 27 to 34")
            && said.contains("begins above the function"),
        "{said}"
    );
    assert!(
        said.contains("doubt: function 2: 6 functions have this name; `L1Loss.__call__` was chosen by its lines alone"),
        "{said}"
    );
}

#[test]
fn an_import_corrects_wrong_published_line_numbers_and_explains_the_errors() {
    let lab = lab(
        &[
            function("0", "EnergyLoss.__call__", [19, 20, 23], ""),
            function("1", "RRRLoss.__call__", [27, 28, 34], ""),
            function("2", "EntropyLoss.__call__", [43, 44, 44], ""),
        ],
        &[experiment("0", "{\"loss\": 0.5}", "0,1,2")],
    );
    let (selectors, said) = import(&lab, &[]);
    assert_eq!(selectors.len(), 3);
    assert!(
        said.contains(
            "function 0: published: header in line 19, body 20 to 23; correct: header in line 20, body 21 to 23 (the header is a decorator's line)"
        ),
        "{said}"
    );
    assert!(said.contains("function 1: published: header in line 27, body 28 to 34; correct: header in line 27, body 32 to 34 (the range begins inside the signature)"), "{said}");
    // Check that masking removes the body and nothing else.
    for (place, gone, kept) in
        [("0", "# all of it", "@cached"), ("1", "outside = ", "        box,\n    ):"), ("2", "", "class L1Loss")]
    {
        let tree = format!("masked{place}");
        let arguments = ["mask", "2303.00001", "-f", place, "-o", &tree, "--suite", "suite"];
        lab.ok(&arguments);
        let masked = lab.read(&format!("{tree}/losses.py"));
        assert_eq!(masked.matches("raise NotImplementedError").count(), 2, "{masked}");
        assert!(gone.is_empty() || !masked.contains(gone), "{masked}");
        assert!(
            masked.contains(kept) && masked.contains("def __init__(self):\n        self.binarize = False"),
            "{masked}"
        );
    }
}

#[test]
fn functions_listed_out_of_line_order_are_matched_correctly() {
    let lab = lab(
        &[
            function("0", "scale", [52, 53, 54], ""),
            function("1", "cached", [4, 5, 5], ""),
            function("2", "L1Loss.__call__", [38, 39, 39], ""),
        ],
        &[experiment("0", "{\"loss\": 0.5}", "0,1,2")],
    );
    import(&lab, &[]);
    lab.ok(&["mask", "2303.00001", "-f", "0,1,2", "-o", "masked", "--suite", "suite"]);
    let masked = lab.read("masked/losses.py");
    assert_eq!(masked.matches("raise NotImplementedError").count(), 4);
    assert!(!masked.contains("top = max") && !masked.contains("return function") && !masked.contains("abs(w - b)"));
    assert!(masked.contains("1 - inside / sum(weights)"), "the others stay");
}

#[test]
fn ambiguous_and_missing_functions_are_all_refused_with_candidates() {
    let message = refusal(&[
        function("0", "__call__", [900, 901, 902], "Loss."),
        function("1", "scaled", [52, 53, 54], ""),
        function("2", "scale", [52, 53, 54], ""),
    ]);
    for part in [
        "function 0 (`__call__` in `losses.py`): 6 functions have this name, and the published data do not distinguish them",
        "`losses.py::EntropyLossTwin.__call__` (line 48)",
        "function 1 (`scaled` in `losses.py`): the file has no function of that name; near names: scale",
        "--at 2303.00001:NUMBER=FILE::NAME",
    ] {
        assert!(message.contains(part), "{part}\n{message}");
    }
    // The description matches one function, and the exact line numbers match another.
    let message = refusal(&[function("0", "__call__", [38, 39, 39], "Energy inside the box.")]);
    assert!(message.contains("its description matches one function and its lines another"), "{message}");
    // The same function is published twice.
    let message = refusal(&[function("0", "scale", [52, 53, 54], ""), function("1", "scale", [52, 53, 54], "")]);
    assert!(message.contains("it is `losses.py::scale`, which is function 0 already"), "{message}");
}

#[test]
fn published_line_numbers_decide_between_functions_of_one_name_only_if_all_of_them_fit() {
    // This description has the words of another function.
    let energy = function("0", "__call__", [20, 21, 24], "Squares of what is outside.");
    // This range begins at the class.
    let rrr = function("1", "__call__", [26, 27, 34], "");
    let l1 = function("2", "__call__", [38, 39, 39], "Energy inside the box.");
    let needs = [experiment("0", "{\"loss\": 0.5}", "0,1,2")];
    let (selectors, said) = import(&lab(&[energy.clone(), rrr.clone(), l1.clone()], &needs), &[]);
    assert_eq!(
        selectors,
        ["losses.py::EnergyLoss.__call__", "losses.py::RRRLoss.__call__", "losses.py::L1Loss.__call__"]
    );
    assert!(
        said.contains(
            "doubt: function 2: 6 functions have this name; `L1Loss.__call__` was chosen by its lines, which fit"
        ),
        "{said}"
    );
    // Add a fourth function of the same name whose lines do not fit. Then the lines of the others are not trusted
    // either, and function 0, whose description is that of another function, is refused. The fourth function's lines
    // are outdated, or those of two functions, or those of a function that is already published.
    for other in [[41, 42, 43], [38, 39, 44], [20, 21, 23]] {
        let message = refusal(&[energy.clone(), rrr.clone(), l1.clone(), function("3", "__call__", other, "Loss.")]);
        assert!(message.contains("function 0 (`__call__` in `losses.py`): its description"), "{other:?}: {message}");
    }
}

#[test]
fn the_import_options_at_and_leave_out_resolve_functions_that_cannot_be_found() {
    let functions = [function("0", "__call__", [900, 901, 902], "Loss."), function("1", "scale", [52, 53, 54], "")];
    let decided = lab(&functions, &[experiment("0", "{\"loss\": 0.5}", "0,1")]);
    let (selectors, _) = import(&decided, &["--at", "2303.00001:0=losses.py::EntropyLossTwin.__call__"]);
    assert_eq!(selectors, ["losses.py::EntropyLossTwin.__call__", "losses.py::scale"]);
    let left = lab(&functions, &[experiment("0", "{\"loss\": 0.5}", "0,1")]);
    let (selectors, said) = import(&left, &["--leave-out"]);
    assert_eq!(selectors, ["losses.py::scale"]);
    assert!(
        said.contains("left out: function 0:") && said.contains("left out: experiment 0: it needs function 0"),
        "{said}"
    );
    let wrong = lab(&functions, &[experiment("0", "{\"loss\": 0.5}", "0,1")]);
    let place = "2303.00001:0=losses.py::Gone.__call__";
    assert!(wrong.fails(3, &[&IMPORT[..], &["--at", place]].concat()).contains("no function `Gone.__call__`"));
}

#[test]
fn an_import_keeps_published_dependencies_and_reports_contradictions_between_them() {
    let mut says_otherwise = function("1", "scale", [52, 53, 54], "");
    says_otherwise["exp_dependencies"] = json!(["0", "1"]);
    let lab = lab(
        &[function("0", "total", [57, 57, 57], ""), says_otherwise],
        &[experiment("0", "{\"loss\": 0.5}", "0"), experiment("1", "{\"loss\": 0.9}", "0, 1,7")],
    );
    let (_, said) = import(&lab, &[]);
    let matrix: Value = serde_json::from_str(&lab.read("suite/papers/2303.00001/dependencies.json")).unwrap();
    assert_eq!(matrix["needs"], json!({ "e0": ["losses.py::total"], "e1": ["losses.py::scale", "losses.py::total"] }));
    assert!(said.contains("left out: experiment 1: it needs function 7, which does not exist"), "{said}");
    assert!(said.contains("doubt: function 1: its own list of experiments differs"), "{said}");
    let sample = lab.ok(&["sample", "-p", "2303.00001", "-n", "1", "--limit", "9", "--suite", "suite"]).stdout;
    assert!(sample.contains(r#""sample":"2303.00001_1","paper":"2303.00001","n":1,"functions":["losses.py::scale"],"experiments":["e1"]"#), "{sample}");
}

#[test]
fn contradictory_and_ambiguous_results_are_reported() {
    let lab = lab(
        &[function("0", "total", [57, 57, 57], "")],
        &[
            experiment("0", "{\"loss\": 0.5}", "0"),
            experiment("1", "{'loss': 0.51}", "0"),
            experiment("2", "loss: 3", "0"),
        ],
    );
    lab.write(
        "MLRC/experiments.jsonl",
        &json_lines(&[experiment("0", "{\"loss\": 0.502}", "0"), experiment("1", "{\"loss\": 0.8}", "0")]),
    );
    let sample = json!({
        "paper_id": "2303.00001", "func_ids": "0", "results": { "Experiment 1": { "loss": 0.9 } },
        "solution": "echo Experiment 1\npython main.py --number 0\n",
    });
    lab.write("MLRC/mlrc_n=1.jsonl", &json_lines(&[sample]));
    let (_, said) = import(&lab, &[]);
    assert!(said.contains("doubt: experiment 0: its published results disagree by more than 5%: the paper's experiments.jsonl and mlrc_n=1.jsonl"), "{said}");
    assert!(said.contains("doubt: experiment 1: its published results disagree by more than 5%: the paper's experiments.jsonl and experiments.jsonl"), "{said}");
    assert!(said.contains("doubt: experiment 1: the gold results of experiments 0 would pass for this one"), "{said}");
    assert!(
        said.contains("doubt: experiment 2: its result in the paper's experiments.jsonl is not JSON: `loss: 3`"),
        "{said}"
    );
    let published: Value = serde_json::from_str(&lab.read("suite/papers/2303.00001/published.json")).unwrap();
    let expected = json!({ "the paper's experiments.jsonl": { "loss": 0.5 }, "experiments.jsonl": { "loss": 0.502 }, "mlrc_n=1.jsonl": { "loss": 0.9 } });
    assert_eq!(published["e0"], expected);
}

#[test]
fn an_import_removes_results_from_the_text_and_stores_passages_as_section_headings() {
    let mut energy = function("0", "EnergyLoss.__call__", [20, 21, 23], "Energy.");
    energy["relevant_paper"] = json!("The energy loss is one minus the energy\nthat lies inside the box.");
    let lab = lab(&[energy], &[experiment("0", "{\"loss\": 0.3333}", "0")]);
    let (_, said) = import(&lab, &[]);
    let text = lab.read("suite/papers/2303.00001/paper.md");
    assert!(!text.contains("0.3333") && text.contains("| energy |"), "{text}");
    assert!(said.contains("correction: paper.md: 1 results were still in the published text"), "{said}");
    let manifest = lab.read("suite/papers/2303.00001/paper.toml");
    for line in ["title = \"Losses\"", "year = 2023", "url = \"https://arxiv.org/abs/2303.00001\"", "    \"main.py\","]
    {
        assert!(manifest.contains(line), "{line}\n{manifest}");
    }
    assert!(manifest.contains("passages = [\"Energy {#sec:energy}\"]"), "{manifest}");
    assert_eq!(lab.run(&["list", "2303.00001", "--suite", "suite"]).code, 0);
}

#[test]
fn nothing_is_overwritten_and_a_folder_without_papers_is_refused() {
    let lab = lab(&[function("0", "total", [57, 57, 57], "")], &[experiment("0", "{\"loss\": 0.5}", "0")]);
    import(&lab, &[]);
    // An existing paper is skipped, unless it is named.
    let before = lab.read("suite/papers/2303.00001/paper.toml");
    let again = lab.ok(&IMPORT);
    assert!(again.stdout.is_empty() && again.stderr.contains("2303.00001: in the suite already, left as it is"));
    assert!(
        lab.fails(2, &[&IMPORT[..], &["-p", "2303.00001"]].concat()).contains("there is a paper `2303.00001` already")
    );
    assert_eq!(lab.read("suite/papers/2303.00001/paper.toml"), before);
    assert!(lab.fails(2, &["import", "mlrc", "suite", "--suite", "suite"]).contains("no published paper in"));
    assert!(lab.fails(2, &[&IMPORT[..], &["-p", "x"]].concat()).contains("no paper `x`"));
}

#[test]
fn refused_papers_are_all_reported_and_the_others_imported() {
    let lab = lab(&[function("0", "gone", [57, 57, 57], "")], &[experiment("0", "{\"loss\": 0.5}", "0")]);
    let first = lab.path("MLRC/2303.00001");
    for (id, name) in [("2303.00002", "total"), ("2303.00003", "lost")] {
        crate::support::copy(&first, &lab.path(&format!("MLRC/{id}")));
        let renamed = |value: Value| value.to_string().replace("2303.00001", id) + "\n";
        lab.write(&format!("MLRC/{id}/functions.jsonl"), &renamed(function("0", name, [57, 57, 57], "")));
        lab.write(&format!("MLRC/{id}/experiments.jsonl"), &renamed(experiment("0", "{\"loss\": 0.5}", "0")));
    }
    let ran = lab.run(&[&IMPORT[..], &["--json"]].concat());
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let imported: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(imported[0]["paper"], "2303.00002");
    assert_eq!(imported.as_array().unwrap().len(), 1);
    assert!(lab.path("suite/papers/2303.00002").exists() && !lab.path("suite/papers/2303.00001").exists());
    for refused in ["(`gone` in `losses.py`)", "(`lost` in `losses.py`)"] {
        assert!(ran.stderr.contains(refused), "{refused}\n{}", ran.stderr);
    }
}

#[test]
fn an_unreadable_published_paper_does_not_prevent_importing_others() {
    for (more, code) in [(&["-p", "2303.00001"][..], 0), (&[], 3)] {
        let lab = lab(&[function("0", "total", [57, 57, 57], "")], &[experiment("0", "{\"loss\": 0.5}", "0")]);
        crate::support::copy(&lab.path("MLRC/2303.00001"), &lab.path("MLRC/2303.00000"));
        lab.write("MLRC/2303.00000/functions.jsonl", "{\"func_id\": 0, \"file\":\n");
        let ran = lab.run(&[&IMPORT[..], more].concat());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert!(lab.path("suite/papers/2303.00001").exists());
        let told = ran.stderr.contains("2303.00000: refused") && ran.stderr.contains("2303.00000/functions.jsonl");
        assert_eq!(told, code != 0, "{}", ran.stderr);
    }
}

#[test]
fn published_ids_that_could_add_entries_to_the_manifest_are_refused() {
    let message = refusal(&[function("0\n[[function]]", "total", [37, 37, 38], "")]);
    assert!(message.contains("invalid `func_id`") && message.contains("functions.jsonl:1"), "{message}");
    let functions = [function("0", "total", [37, 37, 38], "")];
    let lab = lab(&functions, &[experiment("1\n[[experiment]]\nid = \"x\"", "{\"loss\": 0.5}", "0")]);
    let message = lab.fails(3, &IMPORT);
    assert!(message.contains("invalid `exp_id`"), "{message}");
    assert!(!lab.path("suite/papers/2303.00001").exists());
}

#[test]
fn an_entry_script_whose_name_is_a_glob_is_protected_by_this_name() {
    let mut of_glob = experiment("0", "{\"loss\": 0.5}", "0");
    of_glob["solution"] = json!("python run[1].py");
    let lab = lab(&[function("0", "total", [37, 37, 38], "")], &[of_glob]);
    lab.write("MLRC/2303.00001/code/run[1].py", MAIN);
    import(&lab, &[]);
    let manifest = lab.read("suite/papers/2303.00001/paper.toml");
    assert!(manifest.contains("\"run[[]1[]].py\""), "{manifest}");
}
