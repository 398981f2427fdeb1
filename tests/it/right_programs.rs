//! The family `command`: right programs in other words pass, and programs with another argument fail even if their
//! result is the same.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Lab, copy, json_lines};

const MANIFEST: &str = r#"
family = "command"
title = "Picker"
env = "tiny"
readme = ["README.md"]

[[instruction]]
id = "p1"
kind = "python"
text = "Pick the best of 3 draws with the seed 5 and the limit 80, and print one line of JSON with the key best."
oracle = { file = "README.md", heading = "Picking" }
gold = '''
import json

from picker import Picker

print(json.dumps({"best": Picker(limit=80).best(3, seed=5)}))
'''
arguments = { count = 3, seed = 5, limit = 80 }

[instruction.expect]
outcome = true

[[instruction]]
id = "p3"
kind = "python"
text = "Add 7 to the floor of a picker with any limit, and print one line of JSON with the key sum."
oracle = { file = "README.md", heading = "Picking" }
gold = '''
import json

from picker import Picker

print(json.dumps({"sum": Picker(limit=80).floor + 7}))
'''
arguments = { added = 7 }

[instruction.expect]
outcome = true
free = { limit = "any limit" }

[[instruction]]
id = "p2"
kind = "bash"
text = "Sort the file words.txt by the field 2 into sorted.txt."
oracle = { file = "README.md", heading = "Picking" }
gold = "sort -k 2 words.txt > sorted.txt"
arguments = { field = 2, words = "words.txt" }
files = ["sorted.txt"]

[instruction.expect]
outcome = true
"#;

/// A module for programs of the tests. `best` returns a number below 1, so neither a `limit` of 1 or more nor a `floor`
/// of 0 changes its result.
const PICKER: &str = "\
import random


class Picker:
    def __init__(self, limit=100, floor=0):
        self.limit, self.floor = limit, floor

    def best(self, count, seed, repeat=1):
        rng = random.Random(seed)
        return max(self.floor, min(self.limit, max(rng.random() for _ in range(count))))


def make(kind='plain', **options):
    return Picker(**options)
";

fn ready() -> Lab {
    let lab = Lab::new();
    let probe = "probe = '''\nimport json, sys\nprint(json.dumps({\"text\": open(sys.argv[1]).read()}))\n'''\n";
    lab.write("commands/picker.toml", &MANIFEST.replacen("\n[[", &format!("\n{probe}\n[["), 1));
    lab.write("commands/picker/README.md", "# Picker\n\n## Picking\n\n`Picker(limit).best(count, seed)`\n");
    lab.write("commands/picker/picker.py", PICKER);
    lab.write("commands/picker/words.txt", "1 b\n2 a\n");
    lab.ok(&["gold", "--family", "command", "--repeats", "2", "picker"]);
    lab
}

/// Runs programs on a sample, and returns their records.
fn judged(lab: &Lab, sample: &str, name: &str, programs: &[&str]) -> Vec<Value> {
    let sample = format!("--sample={sample}");
    let mut arguments = vec!["run", "--family=command", &sample, "--no-baseline", "--name", name];
    let mut agents = Vec::new();
    for (place, code) in programs.iter().enumerate() {
        let file = format!("{name}-{place}.jsonl");
        lab.write(
            &file,
            &json_lines(&[json!({ "tool": "final_answer", "arguments": { "answer": { "code": code } } })]),
        );
        agents.push(format!("--agent=scripted:{file}"));
    }
    arguments.extend(agents.iter().map(String::as_str));
    lab.ok(&arguments);
    let records = lab.records(name);
    let label = |place: usize| if place == 0 { "scripted".to_owned() } else { format!("scripted-{}", place + 1) };
    (0..programs.len()).map(|place| records.iter().find(|it| it["agent"] == label(place)).unwrap().clone()).collect()
}

#[test]
fn calls_are_compared_by_their_arguments_however_they_are_written() {
    let lab = ready();
    let gold: Value = serde_json::from_str(&lab.read("commands/picker.gold.json")).unwrap();
    let best = &gold["results"]["p1"]["outcome"]["best"];
    assert_eq!(gold["results"]["p1"]["shift"]["shift"]["name"], json!("seed"), "{gold:#}");
    let head = "import json\nimport picker\nshow = lambda best: print(json.dumps({'best': best}))\n";
    let right = [
        "show(picker.Picker(80).best(count=3, seed=5))",
        "show(picker.Picker(floor=0, limit=80).best(3, 5, repeat=1))",
        "show(picker.make(limit=80).best(3, seed=5))",
        "def run(limit, *rest):\n    return picker.Picker(limit).best(*rest)\nfor seed in [5]:\n    show(run(80.0, 3, seed))",
        "picked = picker.Picker()\npicked.limit = 80\nshow(picked.best(3, seed=5))",
        // This program fails if it is run again on the files that it left.
        "import os\nos.mkdir('made')\nshow(picker.Picker(80).best(3, seed=5))",
        "import functools\nshow(list(map(functools.partial(picker.Picker(80).best, 3), [5]))[0])",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'from picker import Picker; print(chr(123) + chr(34) + \
         \"best\" + chr(34) + chr(58) + str(Picker(80).best(3, 5)) + chr(125))'], check=True)",
    ];
    let known = format!("show({best} + 0 * picker.Picker(limit=80).best(3, seed=5))");
    let forged = format!(
        "import os\nplan = json.load(open(os.environ['AUTOEXPERIMENT_RECORDER']))\nwith open(plan['out'], 'a') as out:\n    \
         for name, values in [('Picker.__init__', {{'self': 'Picker', 'limit': 80, 'floor': 0}}), \
         ('Picker.best', {{'count': 3, 'seed': 5, 'repeat': 1}})]:\n        \
         print(json.dumps({{'function': 'picker.py::' + name, 'direct': True, 'set': values}}), file=out)\nshow({best})"
    );
    let printed = format!("limit, seed, count = 80, 5, 3\nshow({best})");
    let wrong = [
        "show(picker.Picker(81).best(3, seed=5))",
        "show(picker.Picker(80, floor=-1).best(3, seed=5))",
        "picked = picker.Picker()\npicked.limit = 81\nshow(picked.best(3, seed=5))",
        "picked = picker.Picker()\npicked.limit, picked.floor = 80, -1\nshow(picked.best(3, seed=5))",
        "show(picker.Picker(80).best(3, seed=5, repeat=2))",
        "show(picker.make(limit=79).best(3, seed=5))",
        "show(picker.Picker(80).best(3, seed=6))",
        "show(picker.Picker(80).best(3, seed=5) * 1.00000001)",
        &known,
        &forged,
        &printed,
    ];
    let programs: Vec<String> = right.iter().chain(&wrong).map(|code| format!("{head}{code}\n")).collect();
    let records = judged(&lab, "picker.p1_3", "r", &programs.iter().map(String::as_str).collect::<Vec<_>>());
    for (place, record) in records.iter().enumerate() {
        assert_eq!(record["pass"], json!(place < right.len()), "{}\n{record:#}", programs[place]);
    }
    assert_eq!(records[0]["verified"]["measures"]["by_calls"], json!(1.0));
}

#[test]
fn a_program_passes_by_its_result_if_all_arguments_of_the_gold_programs_calls_are_free() {
    let lab = ready();
    let head = "import json\nfrom picker import Picker\nshow = lambda sum: print(json.dumps({'sum': sum}))\n";
    let ends = ["show(Picker(limit=80).floor + 7)", "show(7 + Picker().floor)", "show(Picker(limit=5).floor + 8)"];
    let programs = ends.map(|end| format!("{head}{end}\n"));
    let records = judged(&lab, "picker.p3_3", "r", &programs.each_ref().map(String::as_str));
    let passed: Vec<&Value> = records.iter().map(|record| &record["pass"]).collect();
    assert_eq!(passed, [true, true, false], "{records:#?}");
}

#[test]
fn scripts_are_judged_by_the_programs_that_they_start_if_no_calls_are_recorded() {
    let lab = ready();
    let programs = [
        ("sort words.txt -k 2 > sorted.txt", true),
        ("field=2\nif true; then cat words.txt > /dev/null; sort -k \"$field\" ./words.txt > sorted.txt; fi", true),
        ("sort -k 2 -s words.txt > sorted.txt", false),
        ("sort -k 1 words.txt > sorted.txt; sort -k 2 words.txt > sorted.txt", false),
        ("sort -k 02x words.txt > sorted.txt || sort -k 3 words.txt > sorted.txt", false),
    ];
    let codes: Vec<&str> = programs.iter().map(|(code, _)| *code).collect();
    for (record, (code, passes)) in judged(&lab, "picker.p2_3", "s", &codes).iter().zip(programs) {
        assert_eq!(record["pass"], json!(passes), "{code}\n{record:#}");
        assert_eq!(record["verified"]["measures"]["by_programs"], json!(1.0), "{code}\n{record:#}");
    }
}

#[derive(Deserialize)]
struct Pool {
    program: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    sample: String,
    shows: String,
    /// The whole program; absent if `change` makes the program from the right one.
    code: Option<String>,
    /// A piece of the right program's text, and its replacement.
    change: Option<(String, String)>,
}

/// Runs a pool of programs on the bundled instructions, and checks that all of them pass, or that none does.
fn run_pool(pool: &str, passes: bool) {
    let pool: Pool = toml::from_str(&std::fs::read_to_string(pool).unwrap()).unwrap();
    let lab = Lab::bare();
    for part in ["commands", "repos", "papers", "envs"] {
        copy(std::path::Path::new(part), &lab.path(part));
    }
    let samples: BTreeSet<&str> = pool.program.iter().map(|entry| entry.sample.as_str()).collect();
    let mut odd = Vec::new();
    for sample in samples {
        let entries: Vec<&Entry> = pool.program.iter().filter(|entry| entry.sample == sample).collect();
        let (repo, id) = sample.split_once('.').unwrap();
        let gold: Value = serde_json::from_str(&lab.read(&format!("commands/{repo}.gold.json"))).unwrap();
        let right = gold["results"][id]["program"].as_str().unwrap();
        let codes: Vec<String> = entries
            .iter()
            .map(|entry| match (&entry.code, &entry.change) {
                (Some(code), _) => format!("{}\n", code.trim()),
                (None, Some((old, new))) => {
                    assert!(right.contains(old), "{sample}: no `{old}` in {right}");
                    right.replacen(old, new, 1)
                }
                (None, None) => panic!("{sample}: neither `code` nor `change`"),
            })
            .collect();
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        let records = judged(&lab, &format!("{sample}_3"), &sample.replace('.', "-"), &codes);
        for (entry, record) in entries.iter().zip(records) {
            if record["pass"] != json!(passes) {
                odd.push(format!("{sample}: {}\n{:#}", entry.shows, record["verified"]["experiments"]));
            }
        }
    }
    let all = pool.program.len();
    println!("{} of {all} as they should be", all - odd.len());
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
#[ignore = "needs the bundled envs, and minutes"]
fn right_programs_that_are_written_differently_pass() {
    run_pool("tests/commands/right.toml", true);
}

#[test]
#[ignore = "needs the bundled envs, and minutes"]
fn wrong_programs_with_the_right_result_fail() {
    run_pool("tests/commands/wrong.toml", false);
}
