//! The order in which the functions are written: callees before callers.

use crate::agent::{Replication, TaskFunction};
use crate::code::Module;

/// Returns the indices of the task's functions, callees first and otherwise in task order; cycles are broken by task
/// order. The original functions are used only to find out who calls whom.
#[must_use]
pub(super) fn callees_first(task: &Replication) -> Vec<usize> {
    let calls: Vec<Vec<String>> = task.functions.iter().map(|function| calls(task, function)).collect();
    let names: Vec<String> = task.functions.iter().map(|function| last(&function.at).to_owned()).collect();
    let mut order = Vec::with_capacity(names.len());
    let mut state = vec![false; names.len()];
    for start in 0..names.len() {
        visit(start, &calls, &names, &mut state, &mut order);
    }
    order
}

fn visit(at: usize, calls: &[Vec<String>], names: &[String], seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[at], true) {
        return;
    }
    for callee in (0..names.len()).filter(|&other| other != at && calls[at].contains(&names[other])) {
        visit(callee, calls, names, seen, order);
    }
    order.push(at);
}

/// Returns the names of the functions that the original function calls, each without its dotted prefix.
fn calls(task: &Replication, function: &TaskFunction) -> Vec<String> {
    let found = || {
        let selector = function.selector().ok()?;
        let (path, bytes) = task.originals.iter().find(|(path, _)| *path == selector.file)?;
        let module = Module::parse(path.clone(), bytes.clone()).ok()?;
        let function = module.find(&selector.name).ok()?;
        Some(module.calls(function).iter().map(|call| last(call).to_owned()).collect())
    };
    found().unwrap_or_default()
}

/// Returns the function's own name: the last component of a dotted name or of `path/file.py::Class.method`, without a
/// suffix such as `#2` or `[region]`.
pub(super) fn last(name: &str) -> &str {
    let name = name.split(['#', '[']).next().unwrap_or(name);
    name.rsplit(['.', ':']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests::support::task;

    #[test]
    fn functions_are_ordered_callees_first_even_where_calls_form_a_cycle() {
        let mut task = task();
        let source = "def a():\n    return c() + 1\n\ndef b():\n    return 2\n\ndef c():\n    return m.d()\n\ndef d():\n    return a()\n";
        task.originals = vec![("main.py".into(), source.into())];
        let function = |name: &str| TaskFunction {
            at: format!("main.py::{name}"),
            description: String::new(),
            passages: vec![],
            region: None,
        };
        task.functions = ["a", "b", "c", "d"].map(function).to_vec();
        assert_eq!(callees_first(&task), [3, 2, 0, 1]);
        task.functions.remove(3);
        assert_eq!(callees_first(&task), [2, 0, 1]);
    }
}
