//! Token ids and log-probabilities: a model server returns them, and exported tables contain them, for agents of this
//! program and for command-line agents.

use std::path::Path;

use serde_json::{Value, json};

use crate::external_agents::{Upstream, own_agent, run, text};
use crate::support::Lab;
use crate::support::readers::Readers;

/// Runs an attempt whose server returns ids, and returns the lines of the exported table.
fn turns(lab: &Lab, agent: &str, upstream: &Upstream) -> Vec<Value> {
    let ran = run(lab, agent, upstream, &["--describe", "tokens=true", "--steps", "4"]);
    assert!(ran.stderr.contains("attempt"), "{}", ran.stderr);
    let exported = lab.ok(&["export", "r", "--format", "turns", "-o", "turns.jsonl"]);
    println!("{}", exported.stderr);
    lab.write("notes", &exported.stderr);
    lab.read("turns.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns all token ids of a row: those of its prompt, then those of its reply.
fn whole(row: &Value) -> Vec<Value> {
    let list = |name: &str| row[name].as_array().unwrap().clone();
    [list("prompt_ids"), list("completion_ids")].concat()
}

/// An agent's script that calls the model three times; before the third call it rewrites its first message.
const REWRITES: &str = r"
def ask(messages):
    body = json.dumps({'model': 'x', 'messages': messages}).encode()
    headers = {'authorization': 'Bearer ' + os.environ['KEY']}
    request = urllib.request.Request(os.environ['BASE'] + '/chat/completions', body, headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)['choices'][0]['message']['content']
said = [{'role': 'user', 'content': 'one'}]
said.append({'role': 'assistant', 'content': ask(said)})
said.append({'role': 'user', 'content': 'two'})
said.append({'role': 'assistant', 'content': ask(said)})
said[0]['content'] = 'one, in short'
said.append({'role': 'user', 'content': 'three'})
ask(said)
answer(1)
";

#[test]
fn turns_of_a_command_line_agent_have_token_ids_and_masks_and_show_where_it_rewrote_history() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("first"), text("second"), text("third")]);
    let rows = turns(&lab, own_agent(&lab, REWRITES), &upstream);
    assert_eq!(rows.len(), 3);
    assert_eq!(upstream.asked.lock().unwrap()[0]["logprobs"], true);
    // The second prompt is the first one, its reply, and a new message.
    let before = whole(&rows[0]);
    assert_eq!(rows[1]["prompt_ids"].as_array().unwrap()[..before.len()], before);
    assert_eq!((&rows[1]["kept_tokens"], &rows[1]["dropped_tokens"]), (&json!(before.len()), &json!(0)));
    let written = rows[1]["prompt_written"].as_array().unwrap().iter().filter(|mark| **mark == json!(true)).count();
    assert_eq!(written, rows[0]["completion_ids"].as_array().unwrap().len());
    for row in &rows {
        assert_eq!(row["logprobs"].as_array().unwrap().len(), row["completion_ids"].as_array().unwrap().len());
        let facts = [&row["weights"], &row["finish"], &row["reward"], &row["counts"]];
        assert_eq!(facts, [&json!("weights-7"), &json!("stop"), &json!(0.0), &json!(true)]);
    }
    // Four ids are kept from step 2: the role and the text "one" of the first message.
    assert_eq!((&rows[2]["kept_tokens"], &rows[2]["continues"]), (&json!(4), &json!(2)));
    assert_eq!(rows[2]["dropped_by"], "the agent rewrote its messages or asked in another conversation");
    let notes = lab.read("notes");
    assert!(
        notes.contains("step 3 of attempt 0 of `own` at `tiny_1` does not continue step 2: from token 4"),
        "{notes}"
    );
}

#[test]
fn token_ids_are_requested_only_if_the_user_asks_and_never_invented() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("nothing to do")]);
    run(&lab, "react", &upstream, &["--steps", "2"]);
    assert!(upstream.asked.lock().unwrap().iter().all(|asked| asked.get("logprobs").is_none()));
    let exported = lab.ok(&["export", "r", "--format", "turns", "-o", "turns.jsonl"]);
    assert!(exported.stderr.contains("2 of 2 replies have no prompt ids"), "{}", exported.stderr);
    let row: Value = serde_json::from_str(lab.read("turns.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(
        (&row["prompt_ids"], &row["logprobs"], &row["text"]),
        (&Value::Null, &Value::Null, &json!("nothing to do"))
    );
}

#[test]
fn react_records_token_ids_and_a_replay_of_its_recording_gives_the_same_ids() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("I think."), text("I still think.")]);
    let recorded =
        run(&lab, "react", &upstream, &["--describe", "tokens=true", "--steps", "2", "--record", "calls.jsonl"]);
    assert!(lab.path("calls.jsonl").is_file(), "{}", recorded.stderr);
    let export = |run: &str| {
        lab.ok(&["export", run, "--format", "turns", "-o", &format!("{run}.jsonl")]);
        let rows = lab.read(&format!("{run}.jsonl"));
        rows.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .map(|row| row["prompt_ids"].clone())
            .collect::<Vec<_>>()
    };
    let first = export("r");
    assert!(
        first.len() == 2 && first.iter().all(|ids| ids.as_array().is_some_and(|ids| ids.len() > 1000)),
        "{first:?}"
    );
    let replay = ["run", "--sample", "tiny_1", "--agent", "react", "--model", "replay:calls.jsonl", "--steps", "2"];
    lab.ok(&[&replay[..], &["--name", "again", "--no-baseline", "-j", "1"]].concat());
    assert_eq!(export("again"), first);
}

#[test]
#[ignore = "needs other projects' readers, which it installs from PyPI"]
fn pandas_duckdb_and_harbor_read_the_token_ids() {
    let lab = Lab::new();
    let upstream = Upstream::new(vec![text("first"), text("second"), text("third")]);
    let rows = turns(&lab, own_agent(&lab, REWRITES), &upstream);
    lab.ok(&["export", "r", "--format", "turns", "-o", "tables"]);
    for readers in [Readers::general(), Readers::oldest()] {
        let found = readers
            .read("turns.py", &[&lab.path("tables/turns.parquet"), &lab.path("turns.jsonl"), Path::new("schemas")]);
        assert_eq!(
            found,
            json!({ "rows": rows.len(), "same": true, "valid": rows.len(), "ids": whole(&rows[1]).len() })
        );
    }
    lab.ok(&["export", "r", "--format", "atif", "-o", "atif"]);
    let found = Readers::harbor().read("harbor_files.py", &[&lab.path("atif")]);
    assert_eq!(found["rollouts"]["own/tiny_1.0.rollout_details.json"], json!([2, 1]), "{found}");
}
