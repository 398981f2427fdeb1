//! The family `command`: gold is recorded and checked, programs are run and judged by the arguments that their parsers
//! got, and programs that only look right pass the published measures but not ours.

use crate::support::episodes::Served;
use crate::support::{Lab, json_lines, undescribed_measures};
use serde_json::{Value, json};

const MANIFEST: &str = r#"
family = "command"
title = "Adder"
env = "tiny"
readme = ["README.md"]

[[instruction]]
id = "a1"
kind = "bash"
text = "Add 17 as the first number and 25 as the second."
oracle = { file = "README.md", heading = "Adding" }
gold = "python main.py --first 17 --second 25"
arguments = { first = 17, second = 25 }

[instruction.expect]
parsed = { first = 17, second = 25 }
outcome = true

[[instruction]]
id = "a2"
kind = "python"
text = "Add 30 and 12 by the function of the package."
oracle = { file = "README.md", heading = "From Python" }
gold = '''
import json

from adder import add

print(json.dumps({"sum": add(30, 12)}))
'''
arguments = { first = 30, second = 12 }

[instruction.expect]
outcome = true
"#;

const README: &str = "# Adder\n\nAdds. It has no other use.\n\n## Adding\n\n```\npython main.py --first 1 --second 2\n```\n\n\
                      ## From Python\n\n`from adder import add` gives `add(first, second)`.\n";

const MAIN: &str = "\
import argparse
import json

from adder import add

parser = argparse.ArgumentParser()
parser.add_argument('--first', type=int, default=0)
parser.add_argument('--second', type=int, default=0)
parser.add_argument('--scale', type=float, default=1.0)
args = parser.parse_args()
print(json.dumps({'sum': args.scale * add(args.first, args.second)}))
";

/// Makes the tiny suite with a repo of two instructions, without gold.
fn bare() -> Lab {
    let lab = Lab::new();
    lab.write("commands/adder.toml", MANIFEST);
    lab.write("commands/adder/README.md", README);
    lab.write("commands/adder/main.py", MAIN);
    lab.write("commands/adder/adder.py", "def add(first, second):\n    return first + second\n");
    lab
}

/// Makes the suite of [`bare`] and records its gold.
fn ready() -> Lab {
    let lab = bare();
    lab.ok(&["gold", "--family", "command", "--repeats", "2", "adder"]);
    lab
}

/// Writes a script that runs commands and then answers.
fn script(lab: &Lab, name: &str, commands: &[&str], answer: &Value) -> String {
    let call = |tool: &str, arguments: Value| json!({ "tool": tool, "arguments": arguments });
    let mut lines: Vec<Value> =
        commands.iter().map(|command| call("command_line", json!({ "command": command }))).collect();
    lines.push(call("final_answer", json!({ "answer": answer })));
    lab.write(name, &json_lines(&lines));
    format!("scripted:{name}")
}

/// An attempt and its expected record: name, commands, answer, whether it passes, the source of the judged arguments,
/// the share of arguments that are right, the kind of error.
type Case<'a> = (&'a str, &'a [&'a str], Value, bool, &'a str, f64, &'a str);

/// Returns a measure of a record's verification.
fn measure<'a>(record: &'a Value, name: &str) -> &'a Value {
    &record["verified"]["measures"][name]
}

#[test]
fn gold_passes_noop_fails_and_a_forger_passes_only_by_the_published_rules() {
    let lab = ready();
    lab.ok(&["check", "--family", "command"]);
    let agents = ["--agent", "gold", "--agent", "noop", "--agent", "forger"];
    let ran = lab.ok(&[&["run", "--family", "command", "-n", "0..3", "--name", "r"], &agents[..]].concat());
    let records = lab.records("r");
    assert_eq!(records.len(), 2 * 4 * 3, "each instruction once for each context");
    for record in &records {
        let expected = match record["agent"].as_str().unwrap() {
            "gold" => json!([true, 1.0, 1.0, 1.0]),
            "forger" => json!([false, 0.0, 1.0, 0.0]),
            _ => json!([false, 0.0, 0.0, 0.0]),
        };
        let (shipped, arguments) = (measure(record, "shipped"), measure(record, "arguments"));
        let found = json!([record["pass"], record["verified"]["score"], shipped, arguments]);
        assert_eq!(found, expected, "{record:#}");
        if record["agent"] == "gold" {
            let basis = if record["sample"].as_str().unwrap().contains("a1") { "namespace" } else { "calls" };
            let checks = record["verified"]["experiments"].as_array().unwrap();
            assert_eq!(checks[2]["experiment"], format!("arguments by {basis}"));
            assert_eq!(measure(record, &format!("by_{basis}")), &json!(1.0), "{record:#}");
        }
    }
    assert!(ran.stdout.contains("verified_shipped"), "{}", ran.stdout);
    assert_eq!(undescribed_measures("command", &records), [""; 0].map(str::to_owned).into());
    lab.ok(&["report", "r", "--html", "r.html"]);
    let page = lab.read("r.html");
    let (_, section) = page.split_once("id=\"measures\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    for part in
        ["verified_<wbr>arguments", ">n = 3<", "n = 0: context: oracle segment.", "n = 3: context: instruction only."]
    {
        assert!(section.contains(part), "{part}: {section}");
    }

    // The plan of a comparison counts the instructions, not the samples of the suite's papers.
    let plan = lab.ok(&["power", "--diff", "0.2", "--run", "r", "--agent", "noop", "-n", "3", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&plan).unwrap()["rows"][0]["available"], 2);

    // The runs can be listed, shown, exported and scored again, also by the published rules.
    let listed: Value = serde_json::from_str(&lab.ok(&["list", "--family", "command", "--json"]).stdout).unwrap();
    assert_eq!((&listed[0]["item"], &listed[0]["samples"]["3"]), (&json!("adder"), &json!(2)));
    let told = lab.ok(&["report", "leaderboard", "r"]).stdout;
    assert!(told.contains("over samples of these repos") && !told.contains("paper"), "{told}");
    let planned = lab.ok(&["run", "--family", "command", "--agent", "gold", "--dry-run"]).stdout;
    assert!(planned.starts_with(" repo") && !planned.contains("paper"), "{planned}");
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    for row in report["rows"].as_array().unwrap() {
        // Answers are programs and contain no results to compare with gold, so the report has no rate of right answers.
        // `noop` gives no answer, which counts as wrong.
        assert!(row["reported"] == Value::Null || row["agent"] == "noop", "{row:#}");
        assert_eq!(row["unsupported"], 0, "{row:#}");
    }
    lab.ok(&["show", "r", "adder.a1_3", "--agent", "gold"]);
    lab.ok(&["export", "r", "--format", "csv", "-o", "tables"]);
    let heading = lab.read("tables/attempts.csv").lines().next().unwrap().to_owned();
    assert!(heading.contains("verified_shipped") && heading.contains("verified_error_syntax"), "{heading}");
    lab.ok(&["export", "r", "--format", "inspect", "-o", "logs"]);
    let again = lab.ok(&["score", "r", "--scoring", "reference"]).stdout;
    assert!(again.contains("forger"), "{again}");
}

#[test]
fn a_program_is_judged_by_the_arguments_that_the_repos_parser_got() {
    let lab = ready();
    let code = |text: &str| json!({ "code": text });
    let forged = "python - <<'END'\nimport argparse\np = argparse.ArgumentParser()\np.add_argument('--first', type=int)\n\
                  p.add_argument('--second', type=int)\np.add_argument('--scale', type=float, default=1.0)\n\
                  p.parse_args(['--first', '17', '--second', '25'])\nprint('{\"sum\": 0}')\nEND\n";
    let cheat = [
        "echo 'def add(first, second): return 42' > adder.py",
        "cp adder.py argparse.py",
        "echo 'python main.py' > run.sh",
    ];
    let write = ["echo 'python main.py --second=25 --first=17' > run.sh"];
    let cases: [Case<'_>; 9] = [
        ("spelling", &[], code("python main.py --second=25 --first 17"), true, "namespace", 2.0, ""),
        ("file", &write, json!({ "file": "run.sh" }), true, "namespace", 2.0, ""),
        ("value", &[], code("python main.py --first 17 --second 26"), false, "namespace", 1.0, "lack_of_knowledge"),
        (
            "extra",
            &[],
            code("python main.py --first 17 --second 25 --scale 2"),
            false,
            "namespace",
            2.0,
            "knowledge_manipulation",
        ),
        ("unknown", &[], code("python main.py --frist 17 --second 25"), false, "namespace", 1.0, "hallucination"),
        ("syntax", &[], code("if true; then python main.py --first 17 --second 25"), false, "outcome", 2.0, "syntax"),
        ("forged", &[], json!({ "code": forged, "kind": "bash" }), false, "outcome", 2.0, "knowledge_manipulation"),
        ("cheat", &cheat, json!({ "file": "run.sh" }), false, "namespace", 0.0, "lack_of_knowledge"),
        ("kind", &[], json!({ "code": "import main", "kind": "python" }), false, "namespace", 0.0, "lack_of_knowledge"),
    ];
    let mut arguments =
        vec!["run".to_owned(), "--family=command".into(), "--sample=adder.a1_3".into(), "--name=r".into()];
    for (name, commands, answer, ..) in &cases {
        arguments.push(format!("--agent={}", script(&lab, &format!("{name}.jsonl"), commands, answer)));
    }
    lab.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let records = lab.records("r");
    for (place, (name, _, _, pass, basis, hits, error)) in cases.iter().enumerate() {
        let label = if place == 0 { "scripted".to_owned() } else { format!("scripted-{}", place + 1) };
        let record = records.iter().find(|record| record["agent"] == label).unwrap();
        assert_eq!(record["pass"], *pass, "{name}: {record:#}");
        assert_eq!(measure(record, &format!("by_{basis}")), &json!(1.0), "{name}: {record:#}");
        assert_eq!(measure(record, "parameters_hit"), &json!(hits), "{name}: {record:#}");
        for kind in ["syntax", "hallucination", "lack_of_knowledge", "knowledge_manipulation"] {
            let expected = f64::from(kind == *error);
            assert_eq!(measure(record, &format!("error_{kind}")), &json!(expected), "{name} {kind}: {record:#}");
        }
        if *name == "cheat" {
            assert_eq!(record["ignored"], json!(["adder.py", "argparse.py"]), "{record:#}");
        }
    }
}

#[test]
fn files_of_the_repo_are_no_answer_and_verification_ignores_changes_of_them_even_if_they_are_named_like_programs() {
    let lab = bare();
    lab.write("commands/adder/run.sh", "python main.py --first 17 --second 25\n");
    lab.write("commands/adder/parts/run.py", "def plus(first, second):\n    return first + second\n");
    lab.write(
        "commands/adder/adder.py",
        "from parts.run import plus\n\n\ndef add(one, two):\n    return plus(one, two)\n",
    );
    lab.ok(&["gold", "--family", "command", "--repeats", "1", "adder"]);
    let right = "python main.py --first 17 --second 25";
    let file = json!({ "file": "run.sh" });
    let cheat = ["echo 'def plus(first, second): return 42' > parts/run.py", "echo python main.py > run.sh"];
    let (over, beside) = (format!("echo '{right}' > run.sh"), format!("echo '{right}' > run.py"));
    let script = |name: &str, commands: &[&str], answer: &Value| script(&lab, name, commands, answer);
    let agents = [
        ("unchanged", script("unchanged.jsonl", &[], &file), false),
        ("cheat", script("cheat.jsonl", &cheat, &file), false),
        ("changed", script("changed.jsonl", &[&over.replace(" --second", "  --second")], &file), true),
        ("beside", script("beside.jsonl", &[&beside], &json!({ "code": "bash run.py" })), true),
    ];
    let mut arguments = vec!["run", "--family=command", "--sample=adder.a1_3", "--name=r", "--agent=noop"];
    for (_, agent, _) in &agents {
        arguments.extend(["--agent", agent]);
    }
    lab.ok(&arguments);
    let records = lab.records("r");
    assert!(records.iter().any(|record| record["agent"] == "noop" && record["pass"] == false));
    for (place, (name, _, passes)) in agents.iter().enumerate() {
        let label = if place == 0 { "scripted".to_owned() } else { format!("scripted-{}", place + 1) };
        let record = records.iter().find(|record| record["agent"] == label).unwrap();
        assert_eq!(record["pass"], *passes, "{name}: {record:#}");
    }
}

#[test]
fn gold_is_not_recorded_of_a_program_without_an_outcome_if_outcomes_are_compared() {
    let lab = bare();
    let silent = MAIN.replace("print(json.dumps({'sum': args.scale * add(args.first, args.second)}))", "print('done')");
    assert_ne!(silent, MAIN);
    lab.write("commands/adder/main.py", &silent);
    let told = lab.fails(4, &["gold", "--family", "command", "--repeats", "1", "adder"]);
    assert!(told.contains("instruction `a1`: its right program has no outcome: "), "{told}");
}

#[test]
fn the_agent_single_answers_with_its_reply_and_n_decides_which_documentation_is_shown() {
    let lab = ready();
    let reply =
        json!({ "text": "So:\n```bash\npython main.py --first 17 --second 25\n```\n", "usage": { "output": 9 } });
    lab.write("model.jsonl", &json_lines(&[reply]));
    let samples = ["--sample", "adder.a1_0", "--sample", "adder.a1_2", "--sample", "adder.a1_3"];
    let model = ["--agent", "single", "--model", "scripted:model.jsonl", "--name", "r"];
    lab.ok(&[&["run", "--family", "command"], &samples[..], &model[..]].concat());
    for record in lab.records("r") {
        assert_eq!((&record["pass"], &record["steps"]), (&json!(true), &json!(1)), "{record:#}");
        let shown = lab.ok(&["show", "r", record["sample"].as_str().unwrap()]).stdout;
        let n = record["n"].as_u64().unwrap();
        assert_eq!(shown.contains("python main.py --first 1 --second 2"), n < 3, "{shown}");
        assert_eq!(shown.contains("It has no other use"), n == 2, "{shown}");
    }
}

/// A second repo besides the adder, about another topic.
const PAINTER: &str = r#"
family = "command"
title = "Painter"
env = "tiny"
readme = ["README.md"]

[[instruction]]
id = "p1"
kind = "bash"
text = "Paint it in the colour 7."
oracle = { file = "README.md", heading = "Painting" }
gold = "python paint.py --colour 7"
arguments = { colour = 7 }

[instruction.expect]
outcome = true
"#;

#[test]
fn the_ml_agent_first_searches_for_the_right_repo_and_then_writes_the_program() {
    let lab = ready();
    lab.write("commands/painter.toml", PAINTER);
    lab.write("commands/painter/README.md", "# Painter\n\n## Painting\n\nPaints numbers, in first and second coats.\n");
    lab.write("commands/painter/paint.py", "import sys\n\nprint(sys.argv)\n");
    let replies = |texts: &[&str]| json_lines(&texts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>());
    let program = "```bash\npython main.py --first 17 --second 25\n```";
    let right =
        ["add\nfirst number", "painter\nadder", "next", "accept\nmain.py first.", "read main.py", "hm", program];
    lab.write("right.jsonl", &replies(&right));
    let never = ["add", "adder\npainter", "accept", "reject", "next"];
    lab.write("never.jsonl", &replies(&never));
    // If the agent may examine only one repo, asking for the `next` one ends the search.
    lab.write("one.jsonl", &replies(&["add\nfirst number", "adder", "next"]));
    for (name, agent, passes, steps) in [
        ("right", "ml-agent", true, 7),
        ("never", "ml-agent", false, 5),
        ("one", "ml-agent:retrieve=1,words=2", false, 3),
    ] {
        let model = format!("scripted:{name}.jsonl");
        let run = ["run", "--family", "command", "--sample", "adder.a1_3", "--agent", agent];
        lab.ok(&[&run[..], &["--model", &model, "--name", name]].concat());
        let record = &lab.records(name)[0];
        assert_eq!(record["pass"], json!(passes), "{record:#}");
        assert_eq!(record["steps"], json!(steps), "{record:#}");
    }
    assert_eq!(lab.records("one")[0]["agent"], json!("ml-agent+words=2+retrieve=1"));
    assert_eq!(lab.records("one")[0]["end"], json!("gave_up"));
    let shown = lab.ok(&["show", "right", "adder.a1_3"]).stdout;
    // The repo is not named before it is found; its files are shown when requested.
    assert!(shown.contains("# The repository `painter`") && shown.contains("parser.add_argument"), "{shown}");
    assert!(!shown.contains("You work with the repository of Adder"), "{shown}");
    assert_eq!(lab.records("right")[0]["format_errors"], json!(1));
    assert_eq!(lab.records("never")[0]["end"], json!("gave_up"));
}

#[test]
fn react_writes_a_script_runs_it_and_submits_its_name() {
    let lab = ready();
    let call =
        |name: &str, arguments: Value| json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]});
    let script = "python main.py --first 17 --second 25\n";
    let replies = [
        call("read_file", json!({ "path": "main.py" })),
        call("write_file", json!({ "path": "run.sh", "content": script })),
        call("command_line", json!({ "command": "bash run.sh" })),
        call("final_answer", json!({ "answer": "{\"file\": \"run.sh\"}" })),
    ];
    lab.write("model.jsonl", &json_lines(&replies));
    let run = ["run", "--family", "command", "--sample", "adder.a1_3", "--agent", "react", "--name", "r"];
    lab.ok(&[&run[..], &["--model", "scripted:model.jsonl"]].concat());
    let record = &lab.records("r")[0];
    assert_eq!((&record["pass"], &record["steps"]), (&json!(true), &json!(4)), "{record:#}");
    assert_eq!(measure(record, "by_namespace"), &json!(1.0), "{record:#}");
    assert!(lab.ok(&["show", "r", "adder.a1_3"]).stdout.contains("\"sum\": 42"));
}

#[test]
fn a_result_file_is_read_by_code_of_the_manifest_that_the_agents_program_cannot_influence() {
    let lab = bare();
    let probe =
        "probe = '''\nimport json, sys\nprint(json.dumps({\"size\": len(open(sys.argv[1]).read().split())}))\n'''\n";
    let first = "\n[[instruction]]\nid = \"a1\"";
    let manifest = MANIFEST
        .replace(first, &format!("{probe}{first}\nfiles = [\"out.txt\"]"))
        .replace("--second 25\"", "--second 25 > out.txt\"")
        .replace("as the second.", "as the second, and write it to out.txt.");
    lab.write("commands/adder.toml", &manifest);
    lab.ok(&["gold", "--family", "command", "--repeats", "1", "adder"]);
    let gold: Value = serde_json::from_str(&lab.read("commands/adder.gold.json")).unwrap();
    assert_eq!(gold["results"]["a1"]["outcome"], json!({ "size": 2 }), "{gold:#}");
    // A module of the agent's program must not replace the module that the probe imports.
    let forged = "python main.py --first 17 --second 25\necho 'def dumps(it): return chr(123) + chr(125)' > json.py";
    let cases = [("python main.py --first 17 --second 25 > out.txt", true), (forged, false)];
    for (place, (code, passes)) in cases.into_iter().enumerate() {
        let name = format!("r{place}");
        let agent = script(&lab, &format!("{name}.jsonl"), &[], &json!({ "code": code }));
        lab.ok(&["run", "--family", "command", "--sample", "adder.a1_3", "--agent", &agent, "--name", &name]);
        let record = &lab.records(&name)[0];
        assert_eq!(record["pass"], json!(passes), "{record:#}");
    }
}

#[test]
fn rates_are_split_where_a_models_knowledge_ends() {
    let lab = bare();
    lab.edit(
        "commands/adder.toml",
        "env = \"tiny\"",
        "env = \"tiny\"\npublished = \"2026-11\"\nfirst_commit = \"2025-03-31\"",
    );
    lab.ok(&["gold", "--family", "command", "--repeats", "1", "adder"]);
    lab.write("model.jsonl", &json_lines(&[json!({ "text": "```bash\npython main.py --first 17 --second 25\n```" })]));
    let run = ["run", "--family", "command", "-n", "3", "--agent", "single", "--name", "r"];
    lab.ok(&[&run[..], &["--model", "scripted:model.jsonl"]].concat());
    let model = lab.records("r")[0]["model"].as_str().unwrap().to_owned();
    for (cutoff, public) in [("2025-03-30", "after"), ("2025-03", "before"), ("", "unknown")] {
        let given = format!("{model}={cutoff}");
        let mut arguments = vec!["report", "dates", "r", "--json"];
        arguments.extend(["--cutoff", &given].iter().filter(|_| !cutoff.is_empty()));
        let shown: Value = serde_json::from_str(&lab.ok(&arguments).stdout).unwrap();
        let row = &shown["rows"][0];
        assert_eq!(
            (&row["public"], &row["samples"], &row["pass"]),
            (&json!(public), &json!(2), &json!(0.5)),
            "{shown:#}"
        );
    }
    // A model that `--label` renames keeps the cutoff that is given for its original name. The cutoff may also be given
    // for its new name.
    let label = format!("{model}=gpt-4o");
    for (named, cutoff) in [(model.as_str(), "2025-03-30"), ("gpt-4o", "2025-03-30"), ("another", "2025-01")] {
        let given = format!("{named}={cutoff}");
        let arguments = ["report", "dates", "r", "--json", "--label", &label, "--cutoff", &given];
        let shown: Value = serde_json::from_str(&lab.ok(&arguments).stdout).unwrap();
        let row = &shown["rows"][0];
        // If no cutoff is given for the model, its new name does not give it the cutoff of the real `gpt-4o`.
        let public = if named == "another" { "unknown" } else { "after" };
        assert_eq!((&row["model"], &row["public"]), (&json!("gpt-4o"), &json!(public)), "{shown:#}");
    }
    let shown = lab.ok(&["report", "dates", "r"]).stdout;
    assert!(shown.contains("unknown") && shown.contains("--cutoff MODEL=DATE"), "{shown}");
    lab.edit("commands/adder.toml", "2025-03-31", "soon");
    let broken = lab.fails(3, &["run", "--family", "command", "--agent", "gold"]);
    assert!(broken.contains("`soon` is not a date"), "{broken}");
}

#[test]
fn an_argument_that_changes_nothing_and_a_broken_manifest_are_refused() {
    let lab = bare();
    let wrong = lab.fails(3, &["check", "--family", "command"]);
    assert!(wrong.contains("error(s)"), "{wrong}");
    lab.edit("commands/adder.toml", "add(30, 12)}))", "add(30, 12)}))\ncolour = 77");
    lab.edit(
        "commands/adder.toml",
        "arguments = { first = 30, second = 12 }",
        "arguments = { first = 30, colour = 77 }",
    );
    let useless = lab.fails(4, &["gold", "--family", "command", "--repeats", "1", "adder"]);
    assert!(useless.contains("instruction `a2`: changing the argument `colour` changes nothing"), "{useless}");
    lab.edit("commands/adder.toml", "kind = \"bash\"", "kind = \"fish\"");
    let broken = lab.fails(3, &["run", "--family", "command", "--agent", "gold"]);
    assert!(broken.contains("commands/adder.toml"), "{broken}");
}

#[test]
#[ignore = "needs the bundled env, and minutes"]
fn gold_passes_every_bundled_instruction_and_the_forger_passes_none() {
    let lab = Lab::bare();
    for part in ["commands", "repos", "papers", "envs"] {
        crate::support::copy(std::path::Path::new(part), &lab.path(part));
    }
    lab.ok(&["check", "--family", "command"]);
    let agents = ["--agent", "gold", "--agent", "noop", "--agent", "forger"];
    // The baseline is left out, because it would only show that the right programs pass, which the attempts of `gold`
    // show, too.
    let run = ["run", "--family", "command", "-n", "3", "--no-baseline", "--name", "r"];
    lab.ok(&[&run[..], &agents[..]].concat());
    let report: Value = serde_json::from_str(&lab.ok(&["report", "r", "--json"]).stdout).unwrap();
    for row in report["rows"].as_array().unwrap() {
        // The published rule looks for `.py ` or `.sh ` in the command. Some gold commands contain neither, because
        // they run a package instead of a script, so they fail by this rule.
        let (passed, shipped) = match row["agent"].as_str().unwrap() {
            "gold" => (json!(104), 83.0 / 104.0),
            "forger" => (json!(0), 1.0),
            _ => (json!(0), 0.0),
        };
        let published = row["measures"]["verified_shipped"].as_f64().unwrap();
        assert!(row["passed"] == passed && (published - shipped).abs() < 1e-3, "{row:#}");
        assert_eq!(row["attempts"], json!(104));
    }
}

#[test]
fn the_verify_command_runs_gold_noop_and_forger_on_every_instruction() {
    let lab = ready();
    let told = lab.ok(&["verify", "--family", "command", "adder"]).stdout;
    let changes = "of 20 changed constants 0 unnoticed, 0 harmless";
    assert_eq!(
        told,
        format!("adder: sound; gold passes 2 of 2, noop passes 0 of 2, forger passes 0 of 2; {changes}\n")
    );
}

#[test]
fn an_instruction_can_be_played_as_an_episode_through_a_server() {
    let lab = ready();
    let served = Served::start(&lab, &["--family", "command"]);
    let mut client = served.client();
    for (second, passes) in [(25, true), (26, false)] {
        let first = client.reset(&json!({ "sample": "adder.a1_3" }));
        let prompt = first["observation"]["prompt"].as_str().unwrap();
        assert!(prompt.contains("as the second"), "{first:#}");
        let script = format!("python main.py --first 17 --second {second}\n");
        client.step("write_file", &json!({ "path": "run.sh", "content": script }));
        assert!(client.shell("bash run.sh").contains("sum"));
        let last = client.submit(&json!({ "file": "run.sh" }));
        assert_eq!(last["metadata"]["pass"], json!(passes), "{last:#}");
        assert_eq!(last["reward"], if passes { 1.0 } else { 0.0 }, "{last:#}");
    }
    drop(client);
    let (code, said) = served.stop();
    assert_eq!(code, 0, "{said}");
    assert_eq!(lab.records("s").len(), 2);
}
