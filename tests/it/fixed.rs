//! The fixed agent, retrieval and the baselines on the tiny suite, end to end.

use crate::support::Lab;
use serde_json::{Value, json};

const ARITHMETIC: &str =
    "Here it is:\n```python\ndef arithmetic(values):\n    return math.fsum(values) / len(values)\n```\n";
const SQUARE: &str = "```python\ndef square(value):\n    return (value - center) ** 2\n```";

/// Writes a scripted model with these replies, one per call.
fn model(lab: &Lab, replies: &[&str]) -> String {
    let lines: Vec<Value> = replies.iter().map(|text| json!({ "text": text, "usage": {"output": 30} })).collect();
    lab.write("model.jsonl", &crate::support::json_lines(&lines));
    "scripted:model.jsonl".to_owned()
}

#[test]
fn the_fixed_agent_passes_with_right_code_and_each_of_its_settings_has_a_report_row() {
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
fn a_run_resumes_with_the_settings_of_its_agents() {
    let lab = Lab::new();
    let prose = model(&lab, &["I do not know.", ARITHMETIC]);
    let options = ["--agent", "fixed:repair=1,paper=oracle", "--model", &prose, "--name", "r"];
    lab.ok(&[&["run", "--sample", "tiny_0"], &options[..]].concat());
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
      hint: the keys are `paper`, `code`, `passages`, `snippets`, `preset`, `reasoning`, `feedback`, `rounds`; `fill`, `repair` of `fixed`; `paper-file`, `prompt`, `history`, `context`, `tools`, `protocol`, `one-call`, `reflexion` of `react`; `words`, `retrieve`, `replies`, `docs`, `file` of `ml-agent`
    ");
}

#[test]
fn mutant_0_always_passes_mutant_1_rarely_and_the_agents_random_and_copycat_never() {
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
fn the_command_retrieve_prints_retrieved_passages_and_their_recall() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.ok(&["retrieve", "tiny", "2", "--agent", "fixed:passages=1"]).stdout, @r"
    tiny  tiny/spread.py::Spread.variance

    passages ('*' marks those that the manifest names)
      1 * Spread  (86 characters)

    snippets
      1   tiny/__main__.py::main  (18 lines)
      2   tiny/spread.py::Spread.__init__  (2 lines)
      3   tiny/means.py::arithmetic  (6 lines)
      4   tiny/means.py::geometric  (3 lines)
    ");
    let table = lab.ok(&["retrieve", "--agent", "fixed:paper=bm25"]).stdout;
    assert!(table.contains("recall@1") && table.contains("tiny"), "{table}");
    let json: Value =
        serde_json::from_str(&lab.ok(&["retrieve", "tiny", "tiny/means.py::arithmetic", "--json"]).stdout).unwrap();
    assert!(!json[0]["snippets"].to_string().contains("body-of-arithmetic"));
    // A search method that is not available must not be replaced silently by another one.
    let refused = lab.fails(2, &["retrieve", "tiny", "0", "--agent", "fixed:paper=embedding"]);
    assert!(refused.contains("there is no embedding model"), "{refused}");
    let refused = lab.fails(2, &["run", "-n", "1", "--agent", "fixed:paper=embedding", "--model", "scripted:x"]);
    assert!(refused.contains("there is no embedding model"), "{refused}");
    insta::assert_snapshot!(lab.fails(2, &["retrieve", "tiny", "9"]), @r"
    error: paper `tiny` has no function 9
      hint: it has 4, numbered from 0: `autoexperiment list tiny`
    ");
}

const WRONG: &str = "```python\ndef arithmetic(values):\n    return math.fsum(values) / (len(values) - 1)\n```\n";

#[test]
fn feedback_between_rounds_reveals_only_what_its_level_permits_and_each_round_has_a_rate() {
    for (level, told, untold) in [
        ("0", "Nothing is told", "It does not pass"),
        ("1", "It does not pass", "means"),
        ("2", "- means: the code does not give the right result", "is wrong"),
        ("3", "`arithmetic` is wrong", "too high"),
        ("4", "`arithmetic` is too high", "is wrong"),
    ] {
        let lab = Lab::new();
        let model = model(&lab, &[WRONG, ARITHMETIC]);
        let agent = format!("fixed:feedback={level},rounds=1");
        let run = ["run", "--sample", "tiny_0", "--agent", &agent];
        let shown = lab.ok(&[&run[..], &["--model", &model, "--name", "r"]].concat()).stdout;
        let record = &lab.records("r")[0];
        assert_eq!((&record["pass"], &record["steps"]), (&json!(true), &json!(2)), "{record:#}");
        let rounds = record["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 1, "{record:#}");
        assert_eq!(
            (&rounds[0]["pass"], &rounds[0]["verified"], &rounds[0]["steps"]),
            (&json!(false), &json!(false), &json!(1))
        );
        let trajectory = lab.read(&format!("runs/r/trajectories/{}/tiny_0.0.jsonl", record["agent"].as_str().unwrap()));
        let events = trajectory.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let said: Vec<String> = events
            .filter_map(|event| event["content"].as_str().map(str::to_owned))
            .filter(|it| it.contains("was looked at"))
            .collect();
        assert_eq!(said.len(), 1, "{trajectory}");
        let feedback = said[0].split("was looked at").nth(1).unwrap();
        assert!(feedback.contains(told) && !feedback.contains(untold), "{level}: {feedback}");
        let gold: Value = serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap();
        let value = gold["results"]["curtailed"]["means"]["result"]["arithmetic"].to_string();
        assert!(!feedback.contains(&value), "no gold value is told: {feedback}");
        assert!(shown.contains("Pass rates after rounds of feedback"), "{shown}");
        let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
        assert_eq!(report["rows"][0]["after_rounds"], json!([0.0, 1.0]));
    }
}

#[test]
fn a_dynamic_agent_continues_after_feedback_until_it_passes_or_its_budget_ends() {
    let lab = Lab::new();
    let call =
        |name: &str, arguments: Value| json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]});
    let code = lab.read("repos/tiny/tiny/means.py");
    let write = |divisor: &str| {
        let content = code.replace("total / len(values)", &format!("total / {divisor}"));
        call("write_file", json!({"path": "tiny/means.py", "content": content}))
    };
    let gold: Value = serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap();
    let results = &gold["results"]["curtailed"];
    let answer = json!({"Experiment 1": results["means"]["result"], "Experiment 2": results["spread"]["result"],
        "Experiment 3": results["table"]["result"]});
    let report = call("final_answer", json!({ "answer": answer }));
    let replies = [write("(len(values) - 1)"), report.clone(), write("len(values)"), report.clone(), report.clone()];
    lab.write("model.jsonl", &crate::support::json_lines(&replies));
    let run = ["run", "--sample", "tiny_0", "--agent", "react:feedback=2", "--model", "scripted:model.jsonl"];
    lab.ok(&[&run[..], &["--name", "r"]].concat());
    let record = &lab.records("r")[0];
    let passes: Vec<&Value> = record["rounds"].as_array().unwrap().iter().map(|round| &round["pass"]).collect();
    assert_eq!(
        (passes, &record["pass"], &record["steps"]),
        (vec![&json!(false), &json!(true)], &json!(true), &json!(4)),
        "{record:#}"
    );
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    assert_eq!(report["rows"][0]["after_rounds"], json!([0.0, 1.0]));
    // The budget is for the whole attempt, including repairs.
    lab.ok(&[&run[..], &["--steps", "3", "--name", "short"]].concat());
    let record = &lab.records("short")[0];
    assert_eq!(
        (&record["pass"], record["rounds"].as_array().unwrap().len(), &record["steps"]),
        (&json!(false), 1, &json!(3)),
        "{record:#}"
    );
}
