//! Finds the cases in a function's body that a test may or may not try: parts that run in some cases only, such as the
//! block of an `if`, and conditions that are true or false.

use tree_sitter::Node;

use super::encoding::line_of;
use super::extent;
use super::module::Module;
use super::walk;

/// A place in a function's body at which code is inserted that records when a case occurs, such as when a branch runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CasePoint {
    /// Offset in the file's bytes.
    start: usize,
    /// Number of the case. A condition has two cases with consecutive numbers: this number if the condition is true,
    /// the next number if it is false.
    number: usize,
    kind: CaseKind,
}

/// The kind of a [`CasePoint`]: it stands for one case or, if it is a condition, for two (true and false).
#[derive(Debug, Clone, PartialEq, Eq)]
enum CaseKind {
    /// A block runs. Its first statement has this indentation; `None` if that statement is on the same line as the
    /// block's head.
    Block(Option<String>),
    /// The block of an `if` without `else` does not run. The `if` has this indentation, and its block ends at this
    /// offset.
    Else(String, usize),
    /// One of the values of a conditional expression is evaluated. The value ends at this offset.
    Value(usize),
    /// A condition is true, or it is false (two cases). The condition ends at this offset.
    Condition(usize),
}

/// The cases of a function's body, and a version of the function's file that records which cases occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cases {
    /// Line (from 1) of each case in the file, by the case's number (from 0). For an `if` without `else`, the line of
    /// the `if`.
    pub(crate) lines: Vec<usize>,
    /// The file's bytes with code that adds the number of each case that occurs to the set `sys.autoexperiment_cases`,
    /// and passes the arguments of each call to `sys.autoexperiment_called`, if there is such a function.
    pub(crate) recording: Vec<u8>,
}

impl Module {
    /// Returns the cases of a function's body, which are:
    ///
    /// - for each block of `if`, `elif`, `else`, `for`, `while`, `except` and `case`, and each body of an inner
    ///   function: it runs;
    /// - for each `if` without `else`: its block does not run;
    /// - for each of the two values of a conditional expression: it is evaluated;
    /// - for each operand of `and` or `or`, and each condition of a comprehension: it is true; it is false.
    pub(crate) fn cases(&self, function: usize) -> Cases {
        let within = self.body_code(function);
        let tree = walk::parse(&self.encoding.readable(self.source()));
        let (mut points, mut lines) = (Vec::new(), Vec::new());
        for node in tree.iter().flat_map(|tree| walk::nodes_within(tree, &within)) {
            // Skip the function's own block: it always runs, so it is not a case.
            if node.parent().is_some_and(|parent| within.start <= parent.start_byte()) || node.kind() != "block" {
                for (start, kind) in self.cases_at(node) {
                    let number = lines.len();
                    let count = if matches!(kind, CaseKind::Condition(_)) { 2 } else { 1 };
                    lines.extend(std::iter::repeat_n(line_of(self.source(), start), count));
                    points.push(CasePoint { start, number, kind });
                }
            }
        }
        Cases { lines, recording: self.recording(function, &points) }
    }

    /// Returns the cases (blocks, branches and conditions) that begin with a node, each with its byte offset in the file.
    fn cases_at(&self, node: Node<'_>) -> Vec<(usize, CaseKind)> {
        let start = node.start_byte();
        match node.kind() {
            "block" if node.parent().is_some_and(|parent| runs_in_some_cases(parent.kind())) => {
                let first = node.named_child(0).map(|first| first.start_byte());
                first.map(|first| (first, CaseKind::Block(self.indentation(first)))).into_iter().collect()
            }
            "if_statement" if !walk::children(node).any(|child| child.kind() == "else_clause") => {
                let indentation = self.indentation(start);
                indentation.map(|it| (start, CaseKind::Else(it, node.end_byte()))).into_iter().collect()
            }
            "conditional_expression" => {
                let values = walk::parts(node).enumerate().filter(|(place, _)| *place != 1);
                values.map(|(_, value)| (value.start_byte(), CaseKind::Value(value.end_byte()))).collect()
            }
            _ if is_part_of_condition(&node) => vec![(start, CaseKind::Condition(node.end_byte()))],
            _ => Vec::new(),
        }
    }

    fn recording(&self, function: usize, points: &[CasePoint]) -> Vec<u8> {
        let mut insertions: Vec<(usize, bool, usize, String)> = Vec::new();
        let begin = self.body_code(function).start;
        let rest_of_line = self.source()[begin..].split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
        // The code that records the arguments of calls is inserted as a line before the body. This is not possible if
        // the body begins on the line of the header; the arguments are then not recorded.
        if matches!(rest_of_line.trim_ascii_start(), [] | [b'#', ..]) {
            let indentation = String::from_utf8_lossy(&self.functions()[function].indent);
            let call = "getattr(__import__(\"sys\"), \"autoexperiment_called\", dict)(locals())";
            insertions.push((begin, true, 0, format!("\n{indentation}{call}")));
        }
        for CasePoint { start, number, kind } in points {
            let set = "__import__(\"sys\").__dict__.setdefault(\"autoexperiment_cases\", set())";
            let record = format!("{set}.add({number})");
            let mut insert = |at, is_end, text| insertions.push((at, is_end, *number, text));
            match kind {
                CaseKind::Block(Some(indentation)) => insert(*start, false, format!("{record}\n{indentation}")),
                CaseKind::Block(None) => insert(*start, false, format!("{record}; ")),
                CaseKind::Else(indentation, end) => insert(*end, true, format!("\n{indentation}else: {record}")),
                CaseKind::Value(end) => {
                    insert(*start, false, format!("({record} or ("));
                    insert(*end, true, "))".to_owned());
                }
                CaseKind::Condition(end) => {
                    let which = format!("{number} if it else {}", number + 1);
                    insert(*start, false, format!("(lambda it: ({set}.add({which}), it)[1])("));
                    insert(*end, true, ")".to_owned());
                }
            }
        }
        // Sort the insertions by offset. If one part of the code ends where another one begins, the text that ends the
        // first part comes first. If parts are nested, the outer part has the smaller number, so its texts are sorted
        // to enclose those of the inner part.
        insertions
            .sort_by_key(|(at, is_end, number, _)| (*at, !is_end, if *is_end { usize::MAX - number } else { *number }));
        let mut text = self.source().to_vec();
        for (at, _, _, inserted) in insertions.iter().rev() {
            text.splice(at..at, inserted.bytes());
        }
        text
    }

    /// Returns the indentation of the line of this offset; `None` if the statement at the offset is not the first on
    /// its line.
    fn indentation(&self, at: usize) -> Option<String> {
        let begins_line = extent::begins_line(self.source(), at);
        begins_line.then(|| String::from_utf8_lossy(extent::indent_of_line(self.source(), at)).into_owned())
    }
}

/// Whether the block of a statement or clause of this kind runs in some cases only.
fn runs_in_some_cases(kind: &str) -> bool {
    matches!(
        kind,
        "if_statement"
            | "elif_clause"
            | "else_clause"
            | "for_statement"
            | "while_statement"
            | "except_clause"
            | "except_group_clause"
            | "case_clause"
            | "function_definition"
    )
}

/// Whether a node is an operand of `and` or `or`, or the condition of a comprehension, and Python tests whether its
/// value is true. Operands that consist of `and` or `or` themselves do not count.
fn is_part_of_condition(node: &Node<'_>) -> bool {
    if !node.is_named() || matches!(node.kind(), "boolean_operator" | "comment") {
        return false;
    }
    let mut inner = *node;
    while let ("parenthesized_expression" | "not_operator", Some(part)) = (inner.kind(), inner.named_child(0)) {
        inner = part;
    }
    inner.kind() != "boolean_operator"
        && node.parent().is_some_and(|parent| matches!(parent.kind(), "boolean_operator" | "if_clause"))
        && is_condition(node)
}

/// Whether Python tests the value of an expression for being true or false.
fn is_condition(node: &Node<'_>) -> bool {
    let Some(parent) = node.parent() else { return false };
    let is_field = |name| parent.child_by_field_name(name).is_some_and(|child| child.id() == node.id());
    match parent.kind() {
        "parenthesized_expression" => is_condition(&parent),
        "boolean_operator" => is_field("left") || is_condition(&parent),
        "if_statement" | "elif_clause" | "while_statement" => is_field("condition"),
        "conditional_expression" => parent.named_child(1).is_some_and(|condition| condition.id() == node.id()),
        "not_operator" | "if_clause" | "assert_statement" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;

    const SOURCE: &str = "\
def f(x, y=None):
    \"\"\"Some cases.\"\"\"
    if y is None: y = 1
    if x < 0:
        # A comment.
        if y:
            raise ValueError
    elif x == 1:
        return 2
    for i in range(x):
        y += (i if i % 2 else
              # a comment
              (0 if y else 1))
    try:
        def g(): return 1 / (x - 3)
        z = g()
    except ZeroDivisionError:
        z = 7
    else:
        z = 8  # after it
    return lambda: (yield z) if x else z, y
";

    /// Runs a call of the source, and returns the lines of the cases that do not occur.
    fn untried(source: &str, calls: &str) -> Vec<usize> {
        let module = Module::parse("m.py", source.as_bytes().to_vec()).unwrap();
        let Cases { lines, recording } = module.cases(0);
        let text = String::from_utf8(recording).unwrap();
        let program = format!(
            "{text}\nimport sys\ntry: {calls}\nexcept ValueError: pass\nprint(*getattr(sys, 'autoexperiment_cases', ()))"
        );
        let ran = Command::new("python3").args(["-c", &program]).output().unwrap();
        assert!(ran.status.success(), "{}\n{text}", String::from_utf8_lossy(&ran.stderr));
        let numbers = String::from_utf8(ran.stdout).unwrap();
        let tried: BTreeSet<usize> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
        assert!(tried.iter().all(|number| *number < lines.len()), "{tried:?}");
        lines.iter().enumerate().filter(|(number, _)| !tried.contains(number)).map(|(_, line)| *line).collect()
    }

    #[test]
    fn lines_that_no_call_runs_are_found() {
        assert_eq!(untried(SOURCE, "f(-1, 0); f(1); f(3); f(4); list(f(0)[0]())"), [7, 13, 21]);
        assert_eq!(untried(SOURCE, "f(1)"), [3, 4, 6, 6, 7, 11, 11, 13, 13, 13, 15, 18, 20, 21, 21]);
        assert_eq!(untried("def f(x):\n    return x + 1\n", "f(1)"), [0; 0]);
    }

    #[test]
    fn inserted_code_records_the_arguments_of_each_call_of_a_function() {
        for text in [
            "def f(x, *y):  # of x\n    \"\"\"Of x.\"\"\"\n    return x\n",
            "def f(x, *y):  # of x\n    z = x; return z\n",
        ] {
            let module = Module::parse("m.py", text.as_bytes().to_vec()).unwrap();
            let recording = String::from_utf8(module.cases(0).recording).unwrap();
            let program = format!("import sys\nsys.autoexperiment_called = print\n{recording}\nf(7, 8)");
            let ran = Command::new("python3").args(["-c", &program]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&ran.stdout), "{'x': 7, 'y': (8,)}\n", "{recording}");
        }
        let module = Module::parse("m.py", b"def f(x): return x\n".to_vec()).unwrap();
        assert_eq!(module.cases(0).recording, module.source());
    }

    #[test]
    fn parts_of_conditions_that_are_only_true_or_only_false_are_found() {
        let source = "\
def f(x, y):
    while x and (y or
                 not x):
        x -= 1
    if not (x == 0 and
            y != 3):
        return [i for i in range(9)
                if i > y]
    return (x or y
            or None)
";
        assert_eq!(untried(source, "f(3, 3); f(-1, 0)"), [3, 5, 6, 9, 9, 9, 9]);
        assert_eq!(untried(source, "f(3, 3); f(-1, 0); f(0, 1)"), [3, 9, 9]);
    }
}
