//! The fixed agent, retrieval and the baselines on the tiny suite, end to end.

use crate::support::Lab;
use serde_json::{Value, json};

const ARITHMETIC: &str =
    "Here it is:\n```python\ndef arithmetic(values):\n    return math.fsum(values) / len(values)\n```\n";
const SQUARE: &str = "```python\ndef square(value):\n    return (value - center) ** 2\n```";

/// A model that gives these replies, one a call.
fn model(lab: &Lab, replies: &[&str]) -> String {
    let lines: Vec<Value> = replies.iter().map(|text| json!({ "text": text, "usage": {"output": 30} })).collect();
    lab.write("model.jsonl", &crate::support::json_lines(&lines));
    "scripted:model.jsonl".to_owned()
}

#[test]
fn a_fixed_agent_passes_with_right_code_and_its_settings_are_rows_of_one_report() {
    let lab = Lab::new();
    let model = model(&lab, &[ARITHMETIC, SQUARE]);
    let agents = ["--agent", "fixed", "--agent", "fixed:paper=none,code=ast", "--agent", "gold"];
    lab.ok(&[&["run", "--sample", "tiny_0", "--sample", "tiny_0,3", "--model", &model, "--name", "r"], &agents[..]]
        .concat());
    let records = lab.records("r");
    assert_eq!(records.len(), 6);
    for record in &records {
        assert_eq!((&record["pass"], &record["end"]), (&json!(true), &json!("answered")), "{record:#}");
    }
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    let mut agents: Vec<&str> =
        report["rows"].as_array().unwrap().iter().map(|row| row["agent"].as_str().unwrap()).collect();
    agents.dedup();
    assert_eq!(agents, ["fixed", "fixed+paper=none+code=ast", "gold"]);
    let diff = lab.read("runs/r/diffs/fixed/tiny_0.0.patch");
    assert!(diff.contains("+    return math.fsum(values) / len(values)"), "{diff}");
}

#[test]
fn settings_of_a_run_are_kept_and_it_resumes_with_them() {
    let lab = Lab::new();
    let prose = model(&lab, &["I do not know.", ARITHMETIC]);
    let options = ["--agent", "fixed", "--repair", "1", "--paper", "oracle", "--model", &prose, "--name", "r"];
    lab.ok(&[&["run", "--sample", "tiny_0"], &options[..]].concat());
    let run: Value = serde_json::from_str(&lab.read("runs/r/run.json")).unwrap();
    assert_eq!(run["configuration"]["settings"]["repair"], 1);
    assert_eq!(run["configuration"]["settings"]["paper"], "oracle");
    let record = &lab.records("r")[0];
    assert_eq!(
        (&record["agent"], &record["pass"]),
        (&json!("fixed+paper=oracle+repair=1"), &json!(true)),
        "{record:#}"
    );
    assert_eq!(record["format_errors"], 1);
    let resumed = lab.ok(&["resume", "r"]);
    assert_eq!(lab.records("r").len(), 1, "{}", resumed.stdout);
    let wrong = lab.fails(2, &["run", "--agent", "fixed:repare=1", "--model", &prose]);
    insta::assert_snapshot!(wrong, @r"
    error: `repare=1` is not a setting of an agent
      hint: the keys are `paper`, `code`, `passages`, `snippets`, `reasoning`; `fill`, `repair` of `fixed`; `prompt`, `history`, `context`, `tools`, `protocol`, `one-call`, `reflexion` of `react`
    ");
}

#[test]
fn mutants_never_pass_random_is_never_verified_and_nothing_is_changed_by_luck() {
    let lab = Lab::new();
    let agents = ["--agent", "mutant:0", "--agent", "mutant:1", "--agent", "random", "--agent", "copycat"];
    lab.ok(&[&["run", "-n", "1", "--no-baseline", "--name", "r"], &agents[..]].concat());
    let rate = |agent: &str, key: &str| {
        let records = lab.records("r");
        let own: Vec<&Value> = records.iter().filter(|record| record["agent"] == agent).collect();
        assert_eq!(own.len(), 4);
        own.iter().filter(|record| record[key]["pass"] == true || (key == "pass" && record["pass"] == true)).count()
    };
    assert_eq!(rate("mutant-0", "pass"), 4);
    assert!(rate("mutant-1", "pass") <= 1, "a mutant of a tiny function may do the same as the function");
    assert_eq!((rate("random", "reported"), rate("random", "verified")), (0, 0));
    assert_eq!(rate("copycat", "verified"), 0);
}

#[test]
fn retrieve_shows_what_is_found_and_its_recall() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.ok(&["retrieve", "tiny", "2", "--passages", "1"]).stdout, @r"
    tiny  tiny/spread.py::Spread.variance

    passages ('*' marks those that the manifest names)
      1 * Spread  (86 characters)

    snippets
      1   tiny/__main__.py::main  (18 lines)
      2   tiny/spread.py::Spread.__init__  (2 lines)
      3   tiny/means.py::arithmetic  (6 lines)
      4   tiny/means.py::geometric  (3 lines)
    ");
    let table = lab.ok(&["retrieve", "--paper", "bm25"]).stdout;
    assert!(table.contains("recall@1") && table.contains("tiny"), "{table}");
    let json: Value =
        serde_json::from_str(&lab.ok(&["retrieve", "tiny", "tiny/means.py::arithmetic", "--json"]).stdout).unwrap();
    assert!(!json[0]["snippets"].to_string().contains("body-of-arithmetic"));
    // No other way to search goes by the name of one that there is not.
    let refused = lab.fails(2, &["retrieve", "tiny", "0", "--paper", "embedding"]);
    assert!(refused.contains("there is no embedding model"), "{refused}");
    let refused = lab.fails(2, &["run", "-n", "1", "--agent", "fixed:paper=embedding", "--model", "scripted:x"]);
    assert!(refused.contains("there is no embedding model"), "{refused}");
    insta::assert_snapshot!(lab.fails(2, &["retrieve", "tiny", "9"]), @r"
    error: paper `tiny` has no function 9
      hint: it has 4, numbered from 0: `autoexperiment list tiny`
    ");
}
