//! A conversation that uses the Python session of the tools `super` in every way, and its expected observations.

use serde_json::{Value, json};

fn call(name: &str, arguments: &Value) -> Value {
    json!({"text": "Next.", "tool_calls": [{"name": name, "arguments": arguments}]})
}

fn execute(code: &str) -> Value {
    call("execute", &json!({ "code": code }))
}

/// Returns replies that, in this order, set a variable, fill in the body of `arithmetic` by the tool `edit`, call the
/// filled function, run a shell command, raise an error, wait for another thread, and submit the answer.
pub fn replies(body: &str, answer: &str) -> Vec<Value> {
    let edit = json!({"path": "tiny/means.py", "old_lines": "    raise NotImplementedError", "new_lines": body});
    vec![
        execute("from tiny import means\nx = [1, 2, 3]"),
        call("edit", &edit),
        execute("import importlib\nimportlib.reload(means).arithmetic(x)"),
        execute("!echo from the shell; sleep 300 & true\nx.append(6)"),
        execute("1 / 0"),
        execute("import threading, time\nthreading.Timer(0.2, x.append, [8]).start()\ntime.sleep(1)\nprint(sum(x))"),
        call("submit", &json!({ "answer": answer })),
    ]
}

/// Checks that the observations come from a single Python session, which lived from the first call to the last.
pub fn assert_lives(shown: &[String]) {
    assert_eq!((shown[0].as_str(), shown[2].as_str()), ("no output", "2.0"), "{shown:?}");
    assert_eq!(shown[3], "from the shell", "{shown:?}");
    assert!(shown[4].ends_with("ZeroDivisionError: division by zero"), "{shown:?}");
    assert_eq!(shown[5], "20", "{shown:?}");
}
