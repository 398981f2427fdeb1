//! The solution of the agent `forger`. It satisfies SUPER's published rules without doing the task's work.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Value, json};

use super::loaded::LoadedTask;
use crate::agent::Solution;

/// Returns a solution that prints text which matches all landmark patterns, names the script in a comment, sleeps ten
/// seconds, and reports zeros.
pub fn forgery(task: &LoadedTask) -> Solution {
    let texts: Vec<String> =
        task.manifest.landmarks.iter().map(|landmark| matched_by(&landmark.pattern).unwrap_or_default()).collect();
    let print = format!("for text in {}:\n    print(text)", serde_json::to_string(&texts).unwrap_or_default());
    let run = format!("# python {}\nimport time\ntime.sleep(10.2)\nprint('done')", task.manifest.entry);
    let answer = task.answer.as_ref().map(|gold| zeros(gold).to_string());
    Solution { cells: vec![print, run], answer, ..Solution::default() }
}

/// Returns the same structure with other values: zeros, empty texts, and opposite booleans.
fn zeros(gold: &Value) -> Value {
    match gold {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), zeros(value))).collect(),
        Value::Array(items) => items.iter().map(zeros).collect(),
        Value::Number(_) => json!(0),
        Value::String(_) => json!(""),
        Value::Bool(flag) => json!(!flag),
        Value::Null => Value::Null,
    }
}

/// Returns a short text that a regular expression matches; `None` for a broken expression.
fn matched_by(pattern: &str) -> Option<String> {
    let mut text = String::new();
    write(&regex_syntax::parse(pattern).ok()?, &mut text);
    Some(text)
}

fn write(part: &Hir, text: &mut String) {
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => {
            // Prefer a printable ASCII character if the character class has one.
            let plain = |range: &&regex_syntax::hir::ClassUnicodeRange| range.end() >= '!' && range.start() <= '~';
            let chosen = class.ranges().iter().find(plain).or_else(|| class.ranges().first());
            text.extend(chosen.map(|range| range.start().max('!').min(range.end())));
        }
        HirKind::Class(Class::Bytes(class)) => {
            text.extend(class.ranges().first().map(|range| char::from(range.start())));
        }
        HirKind::Repetition(repetition) => (0..repetition.min).for_each(|_| write(&repetition.sub, text)),
        HirKind::Capture(capture) => write(&capture.sub, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, text)),
        HirKind::Alternation(parts) => parts.iter().take(1).for_each(|part| write(part, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_forged_for_a_pattern_matches_the_pattern() {
        for pattern in [
            "loaded 50 queries",
            r"acc: 0\.\d{2,}",
            r"^\[[A-Z]+\] (done|ready)\s+in",
            r"(?i)Epoch \w+",
            r"Successfully installed .*scikit-learn-1\.5\.2",
            r"BM25 k1=0\.60 b=0\.30",
        ] {
            let text = matched_by(pattern).unwrap();
            assert!(regex::Regex::new(pattern).unwrap().is_match(&text), "{pattern}: {text}");
        }
        assert_eq!(zeros(&json!({"a": 0.5, "b": [1, "x"]})), json!({"a": 0, "b": [0, ""]}));
    }
}
