//! `autoexperiment curtail` on a small paper whose shortest experiment cannot distinguish right from wrong code.

use crate::support::Lab;
use serde_json::Value;

/// Makes a lab whose experiment `means` takes time in proportion to the number of values that it reads. With one value,
/// a mean that multiplies by the number of values instead of dividing is right.
fn lab() -> Lab {
    slow(Lab::new(), "nothing stored")
}

/// Makes the experiment of a lab slow. All labs share a cache of trial results, so `name` makes the code different from
/// that of tests that run at the same time.
fn slow(lab: Lab, name: &str) -> Lab {
    let main = "repos/tiny/tiny/__main__.py";
    lab.edit(main, "type=int, default=1", "type=int, default=4");
    lab.edit(
        main,
        "values = [value**options.power for value in json.load(file)]",
        &format!(
            "values = json.load(file)[: min(options.power, 4)]\n    sum(range(options.power * 1000000))  # {name}"
        ),
    );
    let manifest = "papers/tiny/paper.toml";
    lab.edit(manifest, "parameters.full = { power = 3 }", "parameters.full = { power = 12 } # the paper's");
    let allowed = "parameters.curtailed = { power = 2 }\nparameters.allowed = { power = [1, 3, 12] }";
    lab.edit(manifest, "parameters.curtailed = { power = 1 }", allowed);
    // Mutants of a line without effect are right solutions.
    let unused = "    spare = (len(values) + 1) * 2\n";
    lab.edit("repos/tiny/tiny/means.py", "    logarithms", &format!("{unused}    logarithms"));
    lab
}

/// Runs `curtail` with all mutants. Returns its report and its messages.
fn curtail(lab: &Lab, more: &[&str]) -> (Value, String) {
    let mut arguments = vec!["curtail", "tiny", "--experiment", "means", "--mutants", "100", "--json"];
    arguments.extend(more);
    let ran = lab.ok(&arguments);
    (serde_json::from_str(&ran.stdout).unwrap(), ran.stderr)
}

#[test]
fn curtail_writes_the_cheapest_setting_that_separates_right_from_wrong_solutions() {
    let lab = lab();
    let (found, _) = curtail(&lab, &[]);
    let means = &found["experiments"][0];
    assert_eq!((&means["settings"], &means["given_up"]), (&2.into(), &1.into()), "{found:#}");
    let chosen = &means["chosen"];
    assert_eq!((&chosen["setting"]["power"], &chosen["reached"]), (&3.into(), &true.into()));
    let agreement = &chosen["agreement"];
    assert_eq!((&agreement["precision"]["value"], &agreement["recall"]["value"]), (&1.0.into(), &1.0.into()));
    assert!(agreement["both"].as_u64() >= Some(5), "{agreement:#}");
    assert_eq!((&agreement["false_pass"], &chosen["disagreements"]), (&0.into(), &Value::Array(vec![])));
    assert_eq!(found["pairs"], found["attempts"]);
    assert!(means["full_seconds"].as_f64() > chosen["seconds"].as_f64());

    let (again, _) = curtail(&lab, &["--write", "--budget", "1"]);
    assert_eq!((&again["experiments"], &again["cpu"]), (&found["experiments"], &0.0.into()));
    let manifest = lab.read("papers/tiny/paper.toml");
    assert!(
        manifest.contains("parameters.full = { power = 12 } # the paper's\nparameters.curtailed = { power = 3 }\n"),
        "{manifest}"
    );
    assert!(
        manifest.contains("parameters.evidence = { command = \"python -m tiny means --power 3\", attempts = "),
        "{manifest}"
    );
    lab.ok(&["list", "tiny"]);
    lab.edit("papers/tiny/paper.toml", "parameters.curtailed = { power = 3 }", "parameters.curtailed = { power = 2 }");
    insta::assert_snapshot!(lab.fails(3, &["list", "tiny"]), @"error: [lab]/papers/tiny/paper.toml:30: experiment `means`: `parameters.evidence` is of another command: remove it, or measure it again with `autoexperiment curtail --write`");
}

#[test]
fn solutions_can_come_from_a_stored_run_and_count_once_if_they_differ_from_the_repos_code() {
    let lab = Lab::new();
    lab.ok(&["run", "-n", "1", "--agent", "gold", "--agent", "noop", "--no-baseline", "--name", "stored"]);
    let lab = slow(lab, "a stored run");
    let (without, _) = curtail(&lab, &[]);
    let (with, said) = curtail(&lab, &["--from", "stored"]);
    let figure = |report: &Value, name: &str| report["experiments"][0]["chosen"]["agreement"][name].as_u64().unwrap();
    let right = |record: &&Value| record["agent"] == "gold" && record["results"]["means"].is_object();
    assert!(lab.records("stored").iter().filter(right).count() >= 2);
    // The repo's `geometric` has changed since the run, so the stored one is another right solution. The other three
    // stored solutions are copies of the repo's code.
    assert_eq!(figure(&with, "both"), figure(&without, "both") + 1, "{with:#}");
    assert_eq!(figure(&with, "neither"), figure(&without, "neither"));
    assert!(said.contains("note: 3 of the attempts in ") && said.contains(" are left out"), "{said}");
    // A missing diff leaves out only its own attempt.
    std::fs::remove_file(lab.path("runs/stored/diffs/gold/tiny_0.0.patch")).unwrap();
    let (_, said) = curtail(&lab, &["--from", "stored"]);
    assert!(said.contains("note: attempt `gold/tiny_0.0` is left out: its diff cannot be read: "), "{said}");
    assert!(said.contains("note: 2 of the attempts in "), "{said}");
}

#[test]
fn curtail_writes_no_setting_if_too_few_solutions_pass_to_measure_recall() {
    let lab = lab();
    let manifest = lab.read("papers/tiny/paper.toml");
    // Without the line that has no effect, every mutant is wrong.
    lab.edit("repos/tiny/tiny/means.py", "    spare = (len(values) + 1) * 2\n", "");
    let (found, said) = curtail(&lab, &["--write"]);
    let experiment = &found["experiments"][0];
    assert_eq!(experiment["chosen"]["agreement"]["both"], 0, "{found:#}");
    assert!(said.contains("not written: experiment `means`: only 0 solutions pass"), "{said}");
    assert_eq!(lab.read("papers/tiny/paper.toml"), manifest);
}

#[test]
fn the_search_for_a_curtailed_setting_stops_with_a_message_when_its_budget_is_spent() {
    let lab = lab();
    // Make the code different each time, so that there are no cached results.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    lab.edit("repos/tiny/tiny/__main__.py", "* 1000000))", &format!("* 1000000))  # {now},"));
    let ran = lab.ok(&["curtail", "tiny", "--experiment", "means", "--budget", "0.01"]);
    insta::assert_snapshot!(ran.stderr.lines().find(|line| line.starts_with("note")).unwrap_or_default(), @"note: experiment `means`: 0 of 16 solutions were run in full: the budget is spent; repeat the command to continue");
    let error = lab.fails(2, &["curtail", "tiny", "--experiment", "mean"]);
    insta::assert_snapshot!(error, @r"
    error: paper `tiny` has no experiment `mean`
      hint: it has means, spread, table
    ");
}
