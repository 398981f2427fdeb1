//! The import of ResearchCodeBench's tasks, on a small tree in the same layout.

use serde_json::{Value, json};

use crate::support::{Lab, copy};

const PAPERS: &str = r#"- id: alpha
  title: "Alpha: Sums of Things"
  arxiv_abs: https://example.org/alpha
  arxiv_v1_date: 2024-06-20
  first_commit_date: 2024-07-01
  annotated_file_paths: src/sums.py
  context_file_paths: helper.py

- id: beta
  title: Beta
  arxiv_abs: https://example.org/beta
  arxiv_v1_date: 2025-01-02
  annotated_file_paths:
    - beta.py
  context_file_paths: null

- id: gamma
  title: Gamma
  arxiv_abs: https://example.org/gamma
  annotated_file_paths: gamma.py
"#;

const SUMS: &str = r#""""Sums."""
from helper import first


# <paper2code name="scale of values">
SCALE = 2.0
# </paper2code name="scale of values">


class Sums:
    def total(self, values):
        # <paper2code name="total">
        result = 0.0
        count = 0
        # <paper2code name="loop">
        for value in values:
            result += SCALE * value
            count += 1
        # </paper2code name="loop">
        if count > 2 * len(values):
            raise ValueError("too many")
        return result
        # </paper2code name="total">


def spread(values):
    low = high = first(values)
    # <paper2code name="loop">
    for value in values:
        low, high = min(low, value), max(high, value)
    # </paper2code name="loop">
    return high - low
"#;

const TEST: &str = r"import unittest
from src.sums import Sums, spread
from src.sums_ref import Sums as SumsRef, spread as spread_ref

VALUES = [3.0, -1.0, 2.5]


class TestSums(unittest.TestCase):
    def test_total(self):
        self.assertAlmostEqual(Sums().total(VALUES), SumsRef().total(VALUES))

    def test_spread(self):
        self.assertEqual(spread(VALUES), spread_ref(VALUES))


if __name__ == '__main__':
    unittest.main()
";

/// Writes the small tree into the lab.
fn tree(lab: &Lab) {
    lab.write("bench/pset/papers.yaml", PAPERS);
    let alpha = "bench/pset/alpha";
    lab.write(&format!("{alpha}/src/sums.py"), SUMS);
    let is_tag = |line: &&str| !line.contains("paper2code");
    let reference = SUMS.lines().filter(is_tag).collect::<Vec<_>>().join("\n") + "\n";
    lab.write(&format!("{alpha}/src/sums_ref.py"), &reference);
    lab.write(&format!("{alpha}/helper.py"), "def first(values):\n    return values[0]\n");
    lab.write(&format!("{alpha}/paper2code_test.py"), TEST);
    lab.write(&format!("{alpha}/README.md"), "We reach 71.35% on everything.\n");
    let text = "\\section{Sums}\nTwice each value is added up.\n\\section{Results}\nOur accuracy is 71.35\\%, the other 64.20\\%.\n";
    lab.write(&format!("{alpha}/paper2code_paper.tex"), text);
    for (id, test) in
        [("beta", "import torch\nimport meltingpot\nfrom beta import one\n"), ("gamma", "from gamma import one\n")]
    {
        let code = "import loader\n\n\ndef one():\n    # <paper2code name=\"one\">\n    return 1\n    # </paper2code name=\"one\">\n";
        lab.write(&format!("bench/pset/{id}/{id}.py"), code);
        lab.write(&format!("bench/pset/{id}/paper2code_test.py"), test);
        lab.write(&format!("bench/pset/{id}/paper2code_paper.md"), "# One\n\nThe number one.\n");
        lab.write(
            &format!("bench/pset/{id}/loader.py"),
            "import torch\n\n\ndef load():\n    return torch.hub.load('a', 'b')\n",
        );
    }
}

const IMPORT: [&str; 5] = ["import", "researchcodebench-tasks", "bench", "-o", "rcb"];

/// Imports the tree, and replaces the env of the import by one that is already built.
fn imported() -> Lab {
    let lab = Lab::new();
    tree(&lab);
    lab.ok(&IMPORT);
    copy(&lab.path("envs/tiny"), &lab.path("rcb/envs/researchcodebench"));
    lab
}

#[test]
fn tagged_regions_become_units_and_papers_that_cannot_run_are_refused_with_reasons() {
    let lab = Lab::new();
    tree(&lab);
    let done: Value = serde_json::from_str(&lab.ok(&[&IMPORT[..], &["--json"]].concat()).stdout).unwrap();
    let alpha = &done["papers"][0];
    let regions = ["scale of values", "total", "loop 1", "loop 2"].map(|name| format!("src/sums.py[{name}]"));
    assert_eq!(alpha["regions"], json!(regions));
    assert_eq!((&alpha["nested"], &alpha["lines"], &alpha["left_out"]), (&json!(1), &json!(11), &json!([])));
    assert_eq!(alpha["hidden"], json!(["autoexperiment_hidden_tests.py", "paper2code_test.py", "src/sums_ref.py"]));
    assert_eq!(done["papers"].as_array().unwrap().len(), 1);
    let refused: Vec<&str> =
        done["refused"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect();
    assert!(refused[0].contains("`meltingpot` (paper2code_test.py:2)"), "{refused:?}");
    assert!(refused[1].contains("`torch.hub.load` in loader.py:5"), "{refused:?}");
    let manifest = lab.read("rcb/papers/alpha/paper.toml");
    for line in [
        "published = \"2024-06-20\"",
        "first_commit = \"2024-07-01\"",
        "year = 2024",
        "number = 2",
        "See also `helper.py`.",
    ] {
        assert!(manifest.contains(line), "{line}: {manifest}");
    }
    let text = lab.read("rcb/papers/alpha/paper.md");
    assert!(text.contains("# Sums") && !text.contains("71.35") && !text.contains("64.20"), "{text}");
    // The repo contains neither the paper's text nor other texts of the benchmark.
    assert!(
        !lab.path("rcb/repos/alpha/README.md").exists() && !lab.path("rcb/repos/alpha/paper2code_paper.tex").exists()
    );
    let message = lab.fails(2, &IMPORT);
    assert!(message.contains("`rcb` exists"), "{message}");
}

#[test]
fn region_comments_of_editors_are_not_imported_and_do_not_break_the_paper2code_tags() {
    let lab = Lab::bare();
    tree(&lab);
    lab.edit(
        "bench/pset/alpha/src/sums.py",
        "low = high = first(values)\n",
        "# region proposals are ranked first\n    # region start\n    low = high = first(values)\n    # endregion\n",
    );
    let done: Value = serde_json::from_str(&lab.ok(&[&IMPORT[..], &["--json"]].concat()).stdout).unwrap();
    let regions = ["scale of values", "total", "loop 1", "loop 2"].map(|name| format!("src/sums.py[{name}]"));
    assert_eq!(done["papers"][0]["regions"], json!(regions));
}

#[test]
fn modules_of_unknown_packages_are_named_in_the_env_and_names_of_files_are_quoted_in_the_command() {
    let lab = Lab::bare();
    tree(&lab);
    lab.edit("bench/pset/alpha/helper.py", "def first", "import cv2, shlex, some_module\n\n\ndef first");
    lab.write("bench/pset/alpha/it's_ref.py", "X = 1\n");
    let done: Value = serde_json::from_str(&lab.ok(&[&IMPORT[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!(done["packages"], json!(["opencv-python-headless"]));
    assert_eq!(done["unknown"], json!(["some_module (alpha)"]));
    let env = lab.read("rcb/envs/researchcodebench/environment.yml");
    assert!(env.contains("#   some_module (alpha)\n") && !env.contains("- some_module"), "{env}");
    let manifest: toml::Table = lab.read("rcb/papers/alpha/paper.toml").parse().unwrap();
    let command = manifest["experiment"][0]["command"].as_str().unwrap();
    assert!(command.contains(r"'it'\''s_ref.py'"), "{command}");
}

#[test]
fn an_import_leaves_other_folders_alone_and_removes_its_own_after_an_error() {
    let lab = Lab::bare();
    tree(&lab);
    lab.write("rcb.partial/mine.txt", "mine");
    let test = "bench/pset/alpha/paper2code_test.py";
    lab.edit(test, "import unittest\n", "import unittest\nimport mmcv\n");
    let names = || {
        let mut names: Vec<String> = std::fs::read_dir(lab.path("."))
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = names();
    assert!(lab.fails(3, &IMPORT).contains("no paper can run here"));
    assert_eq!(names(), before);
    lab.edit(test, "import mmcv\n", "");
    lab.ok(&IMPORT);
    assert_eq!(lab.read("rcb.partial/mine.txt"), "mine");
    assert!(names().iter().all(|name| name == "rcb" || before.contains(name)));
}

#[test]
fn gold_passes_every_region_and_noop_and_code_that_imports_the_reference_solution_fail() {
    let lab = imported();
    lab.ok(&["gold", "--suite", "rcb", "alpha", "--repeats", "2"]);
    let gold = lab.read("rcb/papers/alpha/gold.json");
    assert!(gold.contains("\"TestSums.test_total\": \"passed\"") && gold.contains("\"passed\": 2"), "{gold}");
    let borrow = "printf 'from src.sums_ref import *\\n' > src/sums.py";
    let steps = [
        json!({ "tool": "command_line", "arguments": { "command": borrow } }),
        json!({ "tool": "final_answer", "arguments": { "answer": {} } }),
    ];
    let agent = lab.scripted("s", &steps);
    let run =
        ["run", "--suite", "rcb", "-p", "alpha", "-n", "1..2", "--agent", "gold", "--agent", "noop", "--agent", &agent];
    lab.ok(&[&run[..], &["--name", "r"]].concat());
    let records = lab.records("r");
    // Four samples of one region, and five of the six pairs: one region is nested in another, so the two are never
    // masked together.
    assert_eq!(records.len(), 3 * (4 + 5));
    for record in &records {
        assert_eq!(record["pass"] == true, record["agent"] == "gold", "{record:#}");
        assert_eq!(record["reported"]["unchecked"], true);
    }
    assert!(lab.run(&["check", "--suite", "rcb", "alpha"]).stdout.contains("alpha: ok"));
    // In the published layout, the file with the solution is next to the task. If the manifest does not list this file
    // as hidden, `check` reports it.
    lab.edit("rcb/papers/alpha/paper.toml", ", \"src/sums_ref.py\"", "");
    let shown = lab.run(&["check", "--suite", "rcb", "alpha"]).stdout;
    assert!(
        shown.contains("`src/sums.py[total]` is also in a file that agents see") && shown.contains("sums_ref.py"),
        "{shown}"
    );
}

#[test]
fn a_folder_that_contradicts_itself_is_refused_with_file_and_line_and_nothing_is_written() {
    let sums = "bench/pset/alpha/src/sums.py";
    let list = "bench/pset/papers.yaml";
    let close = "        # </paper2code name=\"total\">\n";
    let cases: [(&str, &str, &str, &str); 10] = [
        (sums, close, "", "sums.py:12: the region `total` is never closed"),
        (sums, close, "        # </paper2code name=\"sum\">\n", "sums.py:23: `sum` is closed where `total` is open"),
        (
            sums,
            "count += 1\n        # </paper2code name=\"loop\">\n",
            "count += 1\n",
            "sums.py:22: `total` is closed where `loop` is open",
        ),
        (
            sums,
            "name=\"total\"",
            "name=\"loop\"",
            "sums.py:15: `loop` is inside of another region of this name, from line 12",
        ),
        (sums, "paper2code", "other words", "has no `# <paper2code name"),
        (list, "- id: beta", "- id: alpha", "papers.yaml:1: paper `alpha` is listed twice"),
        (list, "  annotated_file_paths: src/sums.py\n", "", "papers.yaml:6: missing field `annotated_file_paths`"),
        (list, "2024-06-20", "last June", "papers.yaml:1: paper `alpha`: `arxiv_v1_date`: `last June` is not a date"),
        (list, "src/sums.py", "src/gone.py", "alpha/src/gone.py: is missing"),
        (list, "- id: beta", "- id: delta", "papers.yaml:9: paper `delta`: it has no folder"),
    ];
    for (file, from, to, expected) in cases {
        let lab = Lab::bare();
        tree(&lab);
        lab.edit(file, from, to);
        let message = lab.fails(3, &IMPORT);
        assert!(message.contains(expected), "{expected}: {message}");
        assert!(!lab.path("rcb").exists() && !lab.path("rcb.partial").exists());
    }
    let lab = Lab::bare();
    tree(&lab);
    std::fs::remove_file(lab.path("bench/pset/alpha/paper2code_test.py")).unwrap();
    assert!(lab.fails(3, &IMPORT).contains("alpha/paper2code_test.py: is missing"));
    std::fs::remove_file(lab.path("bench/pset/papers.yaml")).unwrap();
    assert!(lab.fails(2, &IMPORT).contains("no `papers.yaml` in `bench`"));
}

/// Returns a stored run of the benchmark: one model's completion of each snippet, with the stored outcome.
fn stored_run() -> Value {
    let block = |code: &str| format!("Here it is:\n```python\n{code}\n```\nDone.");
    let total = "values = list(values)\nresult = sum(SCALE * value for value in values)\nreturn result";
    let snippets = [
        // A right reply in other words, a right reply, a wrong reply that is stored as passed, and a reply that is not
        // Python.
        ("scale of values", block("SCALE = 4.0 / 2"), true),
        ("total", block(total), true),
        ("loop", block("for value in values:\n    result += value"), true),
        ("loop", block("for value in values\n    low ="), false),
    ];
    let snippets = snippets.iter().map(|(name, completion, passed)| {
        let completions = json!([{ "completion": completion, "test_result": { "passed": passed, "exit_code": 0 } }]);
        json!({ "name": name, "start_line": 1, "predictions": { "MODEL_1": { "completions": completions } } })
    });
    let files = json!([{ "rel_path": "src/sums.py", "snippets": snippets.collect::<Vec<_>>() }]);
    let beta = json!({ "folder_name": "beta", "problem_files": [] });
    json!({ "folder_name": "pset", "problems": [{ "folder_name": "alpha", "problem_files": files }, beta] })
}

#[test]
fn stored_replies_are_run_again_and_differences_from_the_stored_outcomes_are_explained() {
    let lab = imported();
    lab.ok(&["gold", "--suite", "rcb", "alpha", "--repeats", "2"]);
    lab.write("stored.json", &stored_run().to_string());
    let import = ["import", "researchcodebench-replies", "stored.json", "--suite", "rcb", "-o", "replies"];
    let imported = lab.ok(&import);
    assert!(imported.stderr.contains("`beta`: the suite does not have this paper"), "{}", imported.stderr);
    assert!(imported.stdout.contains("MODEL_1"), "{}", imported.stdout);
    let replies = "replies:replies/MODEL_1.jsonl";
    lab.ok(&["run", "--suite", "rcb", "-p", "alpha", "-n", "1", "--agent", replies, "--name", "r"]);
    let compare = ["rescore", "researchcodebench-replies", "replies/MODEL_1.jsonl", "runs/r"];
    let compared: Value = serde_json::from_str(&lab.ok(&[&compare[..], &["--json"]].concat()).stdout).unwrap();
    let counts = ["compared", "both_pass", "both_fail", "left_out"].map(|name| compared[name].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 1, 0], "{compared:#}");
    assert_eq!(compared["task_rates"], json!([75.0, 50.0]));
    let differences = compared["differences"].as_array().unwrap();
    assert_eq!((differences.len(), &differences[0]["passes_here"]), (1, &json!(false)));
    assert_eq!(differences[0]["unit"], "src/sums.py[loop 1]");
    assert!(differences[0]["reason"].as_str().unwrap().contains("TestSums.test_total"), "{compared:#}");
    let shown = lab.ok(&compare).stdout;
    assert!(shown.contains("as stored") && shown.contains("75.00") && shown.contains("50.00"), "{shown}");
    // There is one reply per unit, so the second attempt has none. It counts as an attempt that gave up, not as one
    // that was lost.
    lab.ok(&["run", "--suite", "rcb", "-p", "alpha", "-n", "1", "-k", "2", "--agent", replies, "--name", "more"]);
    let more = lab.records("more");
    assert!(more.iter().filter(|record| record["attempt"] == 1).all(|record| record["end"] == "gave_up"));
}

#[test]
fn broken_files_of_replies_are_refused_with_their_line() {
    let lab = imported();
    let import = ["import", "researchcodebench-replies", "stored.json", "--suite", "rcb", "-o", "replies"];
    for (text, words) in [
        ("{", "not a stored run"),
        ("{\"problems\": [{\"folder_name\": 3}]}", "not a stored run"),
        ("{\"problems\": []}", "no completion for the suite's papers"),
        ("{\"problems\": [{\"folder_name\": \"../x\", \"problem_files\": []}]}", "no completion"),
    ] {
        lab.write("stored.json", text);
        let message = lab.fails(2, &import);
        assert!(message.contains(words), "{text}: {message}");
    }
    assert!(!lab.path("replies").exists());
    let run = ["run", "--suite", "rcb", "-p", "alpha", "-n", "1", "--agent", "replies:r.jsonl"];
    let line = json!({ "paper": "alpha", "unit": "total", "text": "" }).to_string();
    for (text, words) in [
        (String::new(), "no replies"),
        ("{}\n".to_owned(), "r.jsonl:1"),
        (format!("{line}\n{line}\n"), "two replies for `total`"),
    ] {
        lab.write("r.jsonl", &text);
        let message = lab.fails(2, &run);
        assert!(message.contains(words), "{text}: {message}");
    }
}

#[test]
fn the_preset_researchcodebench_sends_one_prompt_with_paper_files_and_the_block_to_write() {
    let lab = imported();
    lab.ok(&["gold", "--suite", "rcb", "alpha", "--repeats", "2"]);
    let right = "Draft:\n```python\nfor value in []:\n    pass\n```\nBetter:\n```python\n    for value in values:\n        low, high = min(low, value), max(high, value)\n```\n";
    let scale = "```python\nSCALE = 2.0\n```";
    let unfenced = "SCALE = 2.0";
    let run = |name: &str, preset: &str, sample: &str, reply: &str| {
        lab.write("model.jsonl", &crate::support::json_lines(&[json!({ "text": reply })]));
        let run = ["run", "--suite", "rcb", "--sample", sample, "--model", "scripted:model.jsonl", "--name", name];
        lab.ok(&[&run[..], &["--agent", preset]].concat());
        let record = lab.records(name).remove(0);
        let agent = record["agent"].as_str().unwrap().to_owned();
        let trajectory = lab.read(&format!("runs/{name}/trajectories/{agent}/{sample}.0.jsonl"));
        (record, trajectory)
    };
    let messages = |trajectory: &str| -> Vec<(String, String)> {
        let events = trajectory.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let text = |event: &Value, key: &str| event[key].as_str().map(str::to_owned);
        events.filter_map(|event| Some((text(&event, "role")?, text(&event, "content")?))).collect()
    };

    // A region inside of a function; the last fenced block of the reply counts.
    let (record, trajectory) = run("a", "fixed:preset=researchcodebench", "alpha_3", right);
    assert_eq!((&record["pass"], &record["format_errors"]), (&json!(true), &json!(0)), "{record:#}");
    assert_eq!(record["agent"], "fixed+preset=researchcodebench");
    let asked = messages(&trajectory);
    assert_eq!(asked[0].0, "user", "{trajectory}");
    let prompt = &asked[0].1;
    let todo = "    low = high = first(values)\n    # TODO: write the block \"loop 2\" here.\n    # About 2 lines of code.\n    pass\n    return high - low";
    let order = [
        "Twice each value is added up.",
        "# helper.py\ndef first(values):",
        "# src/sums.py\n",
        todo,
        "Write only the lines",
    ];
    let places: Vec<Option<usize>> = order.iter().map(|part| prompt.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {prompt}");
    // The prompt shows all code except this region, and no hidden file.
    assert!(prompt.contains("result += SCALE * value") && !prompt.contains("NotImplementedError"), "{prompt}");
    assert!(!prompt.contains("sums_ref") && !prompt.contains("TestSums"), "{prompt}");

    // A region outside of functions, with a prompt that does not contain the paper.
    let (record, trajectory) = run("b", "fixed:preset=researchcodebench,paper=none", "alpha_0", scale);
    assert_eq!(record["pass"], true, "{record:#}");
    assert_eq!(record["agent"], "fixed+paper=none+preset=researchcodebench");
    let prompt = &messages(&trajectory)[0].1;
    assert!(
        prompt.contains("\n# TODO: write the block \"scale of values\" here.\n# About 1 line of code.\npass\n"),
        "{prompt}"
    );
    assert!(!prompt.contains("Twice each value"), "{prompt}");

    // After a reply without code, the agent does not ask the model again.
    let (record, trajectory) = run("c", "fixed:preset=researchcodebench", "alpha_0", unfenced);
    assert_eq!((&record["pass"], &record["format_errors"]), (&json!(false), &json!(1)), "{record:#}");
    assert_eq!(messages(&trajectory).iter().filter(|(role, _)| role == "user").count(), 1, "{trajectory}");

    for (agent, said) in [
        ("fixed:preset=researchcodebench,repair=1", "takes no retrieval, repair, reasoning tokens or feedback"),
        ("fixed:preset=researchcodebench,paper=bm25", "takes no retrieval, repair, reasoning tokens or feedback"),
        ("fixed:preset=super", "`fixed` has no preset `super`"),
        ("react:preset=researchcodebench", "write `fixed:preset=researchcodebench`"),
    ] {
        let run =
            ["run", "--suite", "rcb", "-p", "alpha", "-n", "1", "--model", "scripted:model.jsonl", "--agent", agent];
        let message = lab.fails(2, &run);
        assert!(message.contains(said), "{agent}: {message}");
    }
}
