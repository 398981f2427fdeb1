//! Odd invocations of every verb, one per line: messages must name the fault and a remedy, and nothing panics.

use std::fmt::Write as _;

use crate::support::Lab;

/// Exit code, arguments, and two parts of the message: the fault and the remedy. `~` is an empty argument.
const ODD: &[(i32, &str, &str, &str)] = &[
    (2, "init file", "is not a folder", "autoexperiment init mysuite"),
    (2, "list nope", "no paper `nope`", "the papers are: tiny"),
    (2, "list Größe", "no paper `Größe`", "the papers are: tiny"),
    (2, "list ../tiny", "no paper `../tiny`", "the papers are: tiny"),
    (3, "list --suite nowhere", "there is no folder `papers`", "`--suite DIR`"),
    (3, "list --suite file", "there is no folder `papers`", "`--suite DIR`"),
    (3, "list --suite empty", "there is no folder `papers`", "`autoexperiment init`"),
    (2, "list --family nope", "there is no family `nope`", "`masked`"),
    (2, "check nope", "no paper `nope`", "the papers are"),
    (2, "new ../x --repo repos/tiny", "`../x` is not a valid id", "use letters"),
    (2, "new ünï --repo repos/tiny", "`ünï` is not a valid id", "use letters"),
    (2, "new y --repo repos/tiny --command true", "does not begin with an experiment's name", "`NAME=COMMAND`"),
    (2, "new y --repo repos/tiny --repeats 0", "0 is not in 2..", "--help"),
    (2, "gold", "no paper is named", "`autoexperiment list`"),
    (2, "gold tiny --repeats -1", "'-1' for '--repeats", "is not in 1.."),
    (2, "gold tiny --memory 0", "'0' for '--memory", "is not in 16.."),
    (2, "gold tiny --cpus -1", "'-1' for '--cpus", "at least 0.01"),
    (2, "gold tiny --gpus x", "graphics processors are `all`, a number", "not `x`"),
    (2, "gold tiny --sandbox nope", "unknown sandbox `nope`", "`docker`"),
    (2, "verify tiny --recheck 2", "'2' for '--recheck", "from 0 to 1"),
    (2, "verify tiny --recheck -0.5", "'-0.5' for '--recheck", "from 0 to 1"),
    (2, "verify tiny --min-score nan", "'nan' for '--min-score", "from 0 to 1"),
    (2, "verify tiny --mutants -3", "'-3' for '--mutants", "--help"),
    (2, "curtail tiny --goal 7", "`7` is not a share", "from 0 to 1"),
    (2, "curtail tiny --from nope", "there is no run `nope`", "`autoexperiment runs`"),
    (2, "curtail tiny --experiment nope", "no experiment `nope`", "it has means"),
    (2, "scrub nope.md", "failed to read the text `nope.md`", "check the path"),
    (2, "scrub empty", "failed to read the text `empty`", "name a file, not a folder"),
    (3, "scrub latin.md", "not UTF-8", "iconv"),
    (3, "scrub zero.md --gold torn.json", "torn.json: not JSON", "`gold.json`"),
    (3, "scrub zero.md --gold zero.md", "zero.md: not JSON", "`gold.json`"),
    (3, "scrub zero.md --gold list.json", "list.json: no results", "`gold.json`"),
    (2, "scrub zero.md --gold empty", "failed to read `empty`", "name a file, not a folder"),
    (2, "scrub zero.md -o empty", "`empty` exists", "give the name of a new file"),
    (5, "scrub zero.md -o nowhere/x.md", "failed to write `nowhere/x.md`", "one of its parent folders does not exist"),
    (2, "scrub zero.md --format pdf", "'pdf' for '--format", "markdown"),
    (2, "mask tiny -f 99", "no function 99", "numbered from 0"),
    (2, "mask tiny -f -1", "no function `-1`", "`autoexperiment list tiny`"),
    (2, "mask tiny -o file", "`file` exists", "the name of a new folder"),
    (2, "mask --source nope.py --function f", "failed to read `nope.py`", "check the path"),
    (2, "mask --source empty --function f", "failed to read `empty`", "name a file, not a folder"),
    (3, "mask --source latin.md --function f", "latin.md", "declare its encoding"),
    (3, "mask --source zero.md --function f", "no function `f`", "`autoexperiment index zero.md`"),
    (2, "regions nope", "no paper `nope`", "the papers are"),
    (2, "regions tiny --share 1.5", "`--share 1.5` is not a share of a function's lines", "between 0 and 1"),
    (2, "index nope", "there is no `nope`", "name a Python file"),
    (2, "suite --readme empty", "failed to read `empty`", "name a file, not a folder"),
    (2, "suite --json --csv", "cannot be used with", "--help"),
    (2, "sample -n 0..", "`0..` is not a number of masked functions", "a range"),
    (2, "sample -n -1", "`-1` is not a number of masked functions", "a range"),
    (2, "sample --fraction nan", "`NaN` is not a share", "from 0 to 1"),
    (2, "sample --limit -4", "'-4' for '--limit", "--help"),
    (2, "sample --seed abc", "'abc' for '--seed", "--help"),
    (2, "retrieve tiny nope", "no function `nope`", "`autoexperiment list tiny`"),
    (2, "import mlrc nope", "failed to read `nope`", "check the path"),
    (2, "import mlrc file", "failed to read `file`", "a file is where a folder must be"),
    (2, "import mlrc empty", "no published paper in `empty`", "give the folder"),
    (2, "rescore super-trajectories nope", "failed to read `nope`", "check the path"),
    (3, "rescore super-trajectories zero.md", "the file is empty", "one JSON object per line"),
    (3, "rescore super-trajectories torn.json", "not JSON", "one JSON object per line"),
    (3, "rescore ml-bench zero.md", "the file is empty", "one JSON object per line"),
    (3, "rescore ml-bench list.json", "not a JSON object", "one JSON object per line"),
    (2, "rescore researchcodebench empty", "failed to read `empty`", "name a file, not a folder"),
    (2, "rescore core-bench nope", "failed to read `nope`", "check the path"),
    (3, "rescore core-bench zero.md", "not a JSON list of tasks", "`capsule_id`"),
    (3, "rescore core-bench list.json", "the file contains no task", "`capsule_id`"),
    (2, "run", "--agent <AGENT>", "--help"),
    (2, "run --agent scripted:empty", "failed to read script", "one JSON object a line"),
    (2, "run --agent scripted:latin.md", "broken line in the script of replies", "a line is like"),
    (2, "run --agent cli:empty", "there is no agent `cli:empty`", "an `agent.toml`"),
    (2, "run --agent python:nope.py:f", "nope.py", "`python:FILE.py:NAME`"),
    (2, "run --agent mutant:2", "`2` is not a probability", "from 0 to 1"),
    (2, "run --agent react:steps=x --model x", "not a setting of an agent", "the keys are"),
    (2, "run --agent noop --name ..", "`..` is not a valid name for a run", "use letters"),
    (7, "run --agent noop --runs file --no-baseline", "failed to write `file/", "`--runs DIR`"),
    (2, "run --agent noop --time 0s", "must be more than 0", "--help"),
    (2, "run --agent noop --time forever", "`forever` is not a time", "`1h30m`"),
    (2, "run --agent noop --cost -1", "'-1' for '--cost", "not a number of dollars"),
    (2, "run --agent noop --max-cost inf", "`inf` is not a number of dollars", "--help"),
    (2, "run --agent noop --sample tiny_0,0", "not a sample id", "`kmeanspp_0,3`"),
    (2, "run --agent noop --sample tiny_0_1", "no paper `tiny_0`", "the papers are"),
    (2, "run --agent noop --sample tiny_0 --after 2030-01-01", "cannot be used with", "--help"),
    (2, "run --agent noop --shard 3/2", "`3/2` is not a shard", "give"),
    (2, "run --agent noop --scoring nope", "`nope` is not a rule", "`strict`"),
    (2, "run --agent noop --verifier nope", "there is no verifier `nope`", "`majority`"),
    (2, "run --agent react --model scripted:", "no file is named", "`scripted:FILE`"),
    (2, "run --agent react --model scripted:zero.md", "the script has no replies", "one JSON object a line"),
    (2, "run --agent react --model replay:zero.md", "the recording is empty", "`--record`"),
    (2, "run --agent react --model replay:torn.json", "not a recorded call", "`--record`"),
    (2, "run --agent react --model openai:", "names no model", "`openai:NAME`"),
    (
        2,
        "run --agent noop -k 2 --verifier model:x --base-url http://127.0.0.1:9/v1",
        "`--base-url` is given without `--model`",
        "`--model NAME`",
    ),
    (2, "run --agent react --model x --base-url ftp://h/v1 --price 0,0", "is not an HTTP address", "http://"),
    (2, "run --agent react --model x --price nan,0", "`nan,0` is not a price", "`0.15,0.60`"),
    (2, "run --agent react --model x --temperature -1", "'-1' for '--temperature", "give 0 or a positive number"),
    (
        2,
        "run --agent react --model x --describe nope",
        "failed to read the description of the model, `--describe nope`",
        "hint:",
    ),
    (12, "run --agent noop --cache file", "file` is not a folder", "`--cache DIR`"),
    (12, "run --agent noop --scratch file", "file` is not a folder", "`--scratch DIR`"),
    (3, "run --agent noop --family command", "no folder `commands`", "`--suite DIR`"),
    (2, "resume nope", "there is no run `nope`", "`autoexperiment runs`"),
    (7, "resume zero", "broken run file", "what can still be read"),
    (7, "resume other", "is not a run", "`--runs DIR`"),
    (2, "resume zero -j -1", "'-1' for '--jobs", "--help"),
    (2, "cancel zero", "has no Slurm job", "`run --slurm`"),
    (2, "runs --limit 0", "0 is not in 1..", "--help"),
    (7, "status file", "`file` is not a run", "name a run's folder"),
    (2, "show zero nope", "no trajectory of `nope`", "`autoexperiment report"),
    (2, "report ~", "there is no run", "`autoexperiment runs`"),
    (2, "report zero zero", "is named twice", "name each run once"),
    (2, "report zero -k 0", "a whole number from 1 up", "--help"),
    (2, "report zero --html empty", "`empty` is not a valid file name", "`--html report.html`"),
    (2, "report zero --json --csv", "cannot be used with", "--help"),
    (2, "report zero --label =x", "a label is `OLD=NEW`", "--help"),
    (2, "view zero --port 99999", "99999 is not in 0..=65535", "--help"),
    (7, "score zero", "broken run file", "what can still be read"),
    (2, "score nope", "there is no run `nope`", "`autoexperiment runs`"),
    (2, "pick zero --verifier majority", "does not say where its suite is", "`--suite DIR`"),
    (2, "export zero --format nope --output z", "'nope' for '--format", "inspect"),
    (7, "export zero --format csv --output z", "broken run file", "what can still be read"),
    (2, "parity zero nope", "there is no run `nope`", "`autoexperiment runs`"),
    (2, "power --diff -1", "'-1' for '--diff", "--help"),
    (2, "doctor --probe nope", "does not say which provider", "`openai:NAME`"),
    (2, "env lock nope", "no env `nope`", "`envs`"),
    (2, "image build nope", "no paper `nope`", "the papers are"),
    (12, "clean --scratch file", "not a folder owned by this user", "`--scratch`"),
    (2, "completions nope", "'nope' for '<SHELL>'", "bash"),
    (5, "man --output file", "failed to create `file`", "this one exists already"),
    (2, "list --json --json", "cannot be used multiple times", "--help"),
];

/// Makes a suite whose papers cannot run (nothing is built for it), with files of every wrong kind.
fn odd_lab() -> Lab {
    let lab = Lab::bare();
    crate::support::copy(std::path::Path::new("tests/trees/tiny"), &lab.path(""));
    lab.write("file", "x\n");
    lab.write("zero.md", "");
    lab.write("torn.json", "{\"a\": \n");
    lab.write("list.json", "[]");
    std::fs::write(lab.path("latin.md"), b"\xff\xfe\x00").unwrap();
    std::fs::create_dir(lab.path("empty")).unwrap();
    lab.write("runs/zero/run.json", "");
    lab.write("runs/zero/attempts.jsonl", "");
    lab.write("runs/other/notes.txt", "");
    lab
}

#[test]
fn invalid_arguments_of_every_verb_are_refused_with_the_fault_and_a_remedy() {
    let lab = odd_lab();
    let mut wrong = String::new();
    for (code, line, what, advice) in ODD {
        let arguments: Vec<&str> = line.split(' ').map(|word| if word == "~" { "" } else { word }).collect();
        let ran = lab.run(&arguments);
        let said = [ran.stdout, ran.stderr].join("\n");
        let is_right = ran.code == *code && said.contains(what) && said.contains(advice) && !said.contains("panicked");
        if !is_right {
            let _ = writeln!(wrong, "{line}\n  exit code {} for {code}; `{what}`, `{advice}`:\n{said}\n", ran.code);
        }
    }
    assert!(wrong.is_empty(), "\n{}", lab.redact(&wrong));
}
