//! `tolerance = "stochastic"`: experiments that vary on purpose are compared with all of gold's repeats.

use std::path::Path;

use autoexperiment::score::{Tolerance, score_experiment};
use serde_json::{Value, json};

use crate::support::Lab;

/// Makes the tiny paper with a first experiment whose result is 10% too low or 10% too high at random, and which is
/// declared stochastic. Its gold was recorded before this change. Only two values occur, so that five runs of the right
/// code pass in every case: five equal results count as one draw, and the mean of any mixture is near gold's mean.
fn lab() -> Lab {
    let lab = Lab::new();
    let (manifest, main) = ("papers/tiny/paper.toml", "repos/tiny/tiny/__main__.py");
    lab.edit(
        manifest,
        "parameters.curtailed = { power = 1 }",
        "parameters.curtailed = { power = 1 }\ntolerance = \"stochastic\"",
    );
    lab.edit(main, "import os\n", "import os\nimport random\n");
    lab.edit(main, "print(json.dumps({\"arithmetic\": arithmetic(values),", "jitter = random.SystemRandom().choice([0.9, 1.1])\n        print(json.dumps({\"arithmetic\": jitter * arithmetic(values),");
    lab
}

fn gold(lab: &Lab) -> Value {
    serde_json::from_str(&lab.read("papers/tiny/gold.json")).unwrap()
}

#[test]
fn an_experiment_that_varies_on_purpose_is_compared_with_all_repeats_of_gold() {
    let lab = lab();
    let refused = lab.fails(4, &["run", "-n", "1", "--agent", "gold"]);
    assert!(refused.contains("has fewer than 96 repeats"), "{refused}");
    let power = lab.ok(&["gold", "tiny", "--repeats", "2"]).stdout;
    assert!(power.contains("a right solution passes with at least 95%") && power.contains("off by 4"), "{power}");
    let mut known = gold(&lab);
    let results = &mut known["results"]["curtailed"];
    assert_eq!(results["means"]["repeats"].as_array().unwrap().len(), 96);
    assert_eq!(results["means"]["repeats"][0], results["means"]["result"]);
    assert!(results["spread"].get("repeats").is_none(), "kept where they are needed");
    let mean = results["means"]["repeats"][0]["geometric"].clone();
    let centre = results["means"]["result"]["arithmetic"].as_f64().unwrap();
    lab.ok(&["check", "tiny"]);
    // The repo has changed since the dependency matrix was measured, so all experiments are tests until it is measured.
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--name", "whole"]);
    assert_eq!(lab.records("whole")[0]["verified"]["experiments"].as_array().unwrap().len(), 3);
    // `verify` traces the experiment, masks functions and runs with two threads. All of these respect the tolerance,
    // too.
    lab.ok(&["verify", "tiny", "--no-mutants"]);

    lab.ok(&["run", "--sample", "tiny_0", "-k", "3", "--agent", "gold", "--agent", "noop", "--name", "r"]);
    let (mut errors, mut passed) = (Vec::new(), 0);
    for record in lab.records("r") {
        if record["agent"] == "gold" {
            passed += usize::from(record["pass"] == true);
        } else {
            assert_eq!(record["pass"], false, "{record:#}");
        }
        errors.extend(record["verified"]["experiments"][0]["values"][0]["error"].as_f64());
        if record["agent"] == "gold" {
            assert_eq!(record["results"]["means"]["runs"].as_array().unwrap().len(), 5);
        }
    }
    assert!(errors.iter().any(|error| *error > 0.0), "it varies: {errors:?}");
    assert_eq!(passed, 3);
    let checked = lab.ok(&["gold", "tiny", "--check"]).stdout;
    assert!(checked.contains("stochastic"), "{checked}");

    // The unchanged code fails if its results differ from gold's distribution: here, gold is tripled.
    let far = json!({"arithmetic": 3.0 * centre, "geometric": mean});
    let means = &mut known["results"]["curtailed"]["means"];
    means["result"] = far.clone();
    means["repeats"] = json!(vec![far; 96]);
    lab.write("papers/tiny/gold.json", &known.to_string());
    lab.fails(4, &["run", "--sample", "tiny_0", "--agent", "gold", "--name", "far"]);
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--no-baseline", "--name", "far"]);
    let reason = &lab.records("far")[0]["verified"]["experiments"][0]["values"][0]["reason"];
    assert!(reason.as_str().unwrap().starts_with("the mean of 5 runs differs from gold's 96 repeats"), "{reason}");
}

#[test]
fn an_invalid_tolerance_is_reported_with_the_valid_forms() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "power = 1 }", "power = 1 }\ntolerance = \"wide\"");
    let told = lab.run(&["check", "tiny"]);
    assert_eq!(told.code, 3);
    assert!(told.stdout.contains("a tolerance is a number between 0 and 1, or \"stochastic\""), "{}", told.stdout);
}

#[test]
fn values_pass_exactly_within_the_prediction_interval_of_core_benchs_gold_results() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/core_bench/core_train.json");
    let file = if file.exists() {
        file
    } else {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/core_bench/core_train.json")
    };
    let Ok(text) = std::fs::read_to_string(&file) else {
        eprintln!("skipped: no `../shared/data/core_bench`");
        return;
    };
    let tasks: Vec<Value> = serde_json::from_str(&text).unwrap();
    // Prediction intervals at 95% for three repeats, computed independently in Python: t(0.975, 2) · s · sqrt(1 + 1/3)
    // around the mean.
    let known = [
        ("capsule-7038571", "Report the average AUC", 0.919_923_361_3, 0.951_251_036_7),
        ("capsule-5286757", "Report the train loss", 0.030_539_966_9, 0.069_517_437_4),
        ("capsule-3249574", "Report the F1-score", 0.849_178_459_4, 1.081_681_540_6),
        ("capsule-3272782", "Report Average FNMR", -0.035_473_056_1, 0.054_139_722_8),
    ];
    let mut held = 0;
    for task in &tasks {
        let results = task["results"].as_array().unwrap();
        let tolerance = Tolerance { repeats: results.clone(), ..Tolerance::default() };
        // Each of the three gold results is inside the interval of all three.
        for result in results {
            let verdict = score_experiment("task", &results[0], Some(result), &tolerance);
            for value in verdict.values.iter().filter(|value| value.gold.is_number()) {
                assert!(value.pass, "{}: {value:?}", task["capsule_id"]);
                held += 1;
            }
        }
        for (_, question, low, high) in known.iter().filter(|one| task["capsule_id"] == one.0) {
            let key = results[0].as_object().unwrap().keys().find(|key| key.starts_with(question)).unwrap();
            for (value, right) in [(low + 1e-9, true), (low - 1e-9, false), (high - 1e-9, true), (high + 1e-9, false)] {
                let mut got = results[0].clone();
                got[key] = json!(value);
                let verdict = score_experiment("task", &results[0], Some(&got), &tolerance);
                let at = verdict.values.iter().find(|one| one.path == *key).unwrap();
                assert_eq!(at.pass, right, "{key} {value}");
            }
        }
    }
    assert!(held > 200, "{held} numbers");
}
